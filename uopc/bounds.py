"""Intervals of integer and bool values: what lets index arithmetic shrink.

    RANGE of size 8            →  (0, 7)
    RANGE of size 8 * 4 + 3    →  (3, 31)

The bounds of a node hold for every value it can take. Where an operation could leave its dtype's
range and wrap around, they widen to the whole range, so a rule that relies on them is right for
data as well as for indices.
"""
from __future__ import annotations

from collections.abc import Callable

from uopc.uop import VECTOR, Ops, UOp, kind

Bounds = tuple[int, int]


def bounds(node: UOp) -> Bounds:
    """(least, greatest) value of an integer or bool node."""
    cached = node.__dict__.get("bounds")
    if cached is not None:
        return cached
    for u in node.toposort(stop=_known_or_opaque):
        if "bounds" not in u.__dict__ and u.dtype is not None and not u.dtype.is_float:
            u.__dict__["bounds"] = _derive(u)
    return node.__dict__["bounds"]


def exact(op: Ops, a: Bounds, b: Bounds) -> Bounds:
    """The bounds of `a op b` in unlimited integers, for ADD and MUL."""
    if op is Ops.ADD:
        return a[0] + b[0], a[1] + b[1]
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def cannot_wrap(node: UOp) -> bool:
    """True when this ADD or MUL gives the unlimited integers' result for all its operands."""
    low, high = exact(node.op, bounds(node.src[0]), bounds(node.src[1]))
    return node.dtype.min <= low and high <= node.dtype.max


def _known_or_opaque(u: UOp) -> bool:
    return "bounds" in u.__dict__ or u.op not in _RULES


def _derive(u: UOp) -> Bounds:
    whole = (int(u.dtype.min), int(u.dtype.max))
    if u.op is Ops.CONST:
        return int(u.arg.value), int(u.arg.value)
    if u.op is Ops.RANGE:
        return 0, max(0, (u.arg[3] if kind(u) == VECTOR else u.arg[1]) - 1)  # lanes count whole
    if u.op is Ops.IOTA:
        return (0, max(0, u.arg[0] - 1)) if u.arg[0] - 1 <= whole[1] else whole
    if u.op not in _RULES or any(s.dtype.is_float for s in u.src):
        return whole
    operands = [s.__dict__["bounds"] for s in u.src]
    if u.op is Ops.WHERE:
        operands[1] = _where_true(u.src[0], u.src[1], operands[1])
    low, high = _RULES[u.op](*operands)
    return (low, high) if whole[0] <= low and high <= whole[1] else whole


def _where_true(condition: UOp, u: UOp, known: Bounds) -> Bounds:
    """The bounds of `u` where a conjunction of comparisons holds."""
    low, high = known
    for c in condition.toposort(stop=lambda s: s.op is not Ops.AND):
        if c.op is Ops.CMPLT and c.src[0] is u and c.src[1].op is Ops.CONST:
            high = min(high, c.src[1].arg.value - 1)
        elif c.op is Ops.CMPLT and c.src[1] is u and c.src[0].op is Ops.CONST:
            low = max(low, c.src[0].arg.value + 1)
    return (low, high) if low <= high else known


def _idiv(a: Bounds, b: Bounds) -> Bounds:
    if b[0] > 0:
        corners = [x // y for x in a for y in b]
        return min(corners), max(corners)
    widest = max(abs(a[0]), abs(a[1]))
    return -widest - 1, widest + 1


def _mod(a: Bounds, b: Bounds) -> Bounds:
    if b[0] > 0:
        fits = a[0] >= 0 and a[1] < b[0]
        return a if fits else (0, b[1] - 1)
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _less(a: Bounds, b: Bounds) -> Bounds:
    return int(a[1] < b[0]), int(a[0] < b[1])


def _less_equal(a: Bounds, b: Bounds) -> Bounds:
    return int(a[1] <= b[0]), int(a[0] <= b[1])


def _equal(a: Bounds, b: Bounds) -> Bounds:
    return int(a[0] == a[1] == b[0] == b[1]), int(a[0] <= b[1] and b[0] <= a[1])


def _not_equal(a: Bounds, b: Bounds) -> Bounds:
    same = _equal(a, b)
    return 1 - same[1], 1 - same[0]


def _bits(a: Bounds, b: Bounds) -> Bounds:
    """OR and XOR of non-negative numbers stay below the next power of two."""
    if min(a[0], b[0]) < 0:
        return -(1 << 70), 1 << 70
    return 0, (1 << max(a[1], b[1]).bit_length()) - 1


def _and(a: Bounds, b: Bounds) -> Bounds:
    if min(a[0], b[0]) < 0:
        return -(1 << 70), 1 << 70
    return (1 if a == b == (1, 1) else 0), min(a[1], b[1])


def _or(a: Bounds, b: Bounds) -> Bounds:
    low, high = _bits(a, b)
    return max(low, a[0], b[0]) if low == 0 else low, high


_RULES: dict[Ops, Callable[..., Bounds]] = {
    Ops.ADD: lambda a, b: exact(Ops.ADD, a, b),
    Ops.MUL: lambda a, b: exact(Ops.MUL, a, b),
    Ops.IDIV: _idiv,
    Ops.MOD: _mod,
    Ops.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Ops.MAXIMUM: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Ops.CMPLT: _less,
    Ops.CMPLE: _less_equal,
    Ops.CMPEQ: _equal,
    Ops.CMPNE: _not_equal,
    Ops.AND: _and,
    Ops.OR: _or,
    Ops.XOR: _bits,
    Ops.WHERE: lambda c, a, b: (min(a[0], b[0]), max(a[1], b[1])),
    Ops.CAST: lambda a: a,
    **dict.fromkeys((Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.STAGE),
                    lambda a: a),
    Ops.PAD: lambda a: (min(a[0], 0), max(a[1], 0)),
}
