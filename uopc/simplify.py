"""Simplification: rules that keep every value bit for bit, NaN, infinities and -0.0 included.

Floats get only what IEEE 754 allows: `x*1`, `x + -0.0`, constant folding of exactly rounded
operations; never `x*0` or `x/x`. Integers wrap around, and where a rule holds only in unlimited
integers it asks `bounds` first.

    ((r*8 + c) // 8) * 8 + (r*8 + c) % 8   →   r*8 + c        0 <= c < 8
"""
from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator

from uopc.alu import fold
from uopc.bounds import bounds, cannot_wrap
from uopc.dtype import ALL_DTYPES, dtypes
from uopc.ops import ALU, COMMUTATIVE
from uopc.rewrite import PatternMatcher, UPat, graph_rewrite
from uopc.uop import Ops, UOp, per_node

REMEMBERED = 20_000  # nodes that were simplified, from kernel to kernel
INTS = tuple(d for d in ALL_DTYPES if d.is_int)
INEXACT = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.POW})
"""Operations whose last bit is up to the C library: folding them could change a result."""


def fold_constants(x: UOp) -> UOp | None:
    foldable = x.op not in INEXACT and x.src and all(s.op is Ops.CONST for s in x.src)
    return fold(x.op, x.src, x.dtype) if foldable else None


def constant_last(x: UOp) -> UOp | None:
    a, b = x.src
    return x.replace(src=(b, a)) if a.op is Ops.CONST and b.op is not Ops.CONST else None


def single_value(x: UOp) -> UOp | None:
    """An integer that can have one value only."""
    if x.dtype.is_float:
        return None
    low, high = bounds(x)
    return UOp.const(low, x.dtype) if low == high else None


# *** sums of multiples: a*3 + b + 5 is ([(a, 3), (b, 1)], 5) ***

Terms = list[tuple[UOp, int]]


@per_node
def linear(x: UOp) -> tuple[Terms, int] | None:
    """`x` as multiples plus a constant, or None when a step of it may wrap around. Remembered."""
    factors: dict[UOp, int] = {x: 1}  # a shared part is taken apart once, with its total factor
    terms, constant = [], 0
    for u in reversed(x.toposort(stop=lambda u: not _is_linear_step(u))):
        factor = factors[u]
        if u.op is Ops.CONST:
            constant += factor * u.arg.value
        elif not _is_linear_step(u):
            terms.append((u, factor))
        elif not cannot_wrap(u):
            return None
        elif u.op is Ops.ADD:
            for s in u.src:
                factors[s] = factors.get(s, 0) + factor
        else:
            s, c = u.src
            factors[s] = factors.get(s, 0) + factor * c.arg.value
            factors.setdefault(c, 0)
    return terms[::-1], constant


def _is_linear_step(u: UOp) -> bool:
    return u.op is Ops.ADD or (u.op is Ops.MUL and u.src[1].op is Ops.CONST)


def build_linear(terms: Terms, constant: int, like: UOp) -> UOp | None:
    """The sum of `terms` and `constant`, or None when a step of it may wrap around."""
    total = None
    for u, factor in terms:
        part = u if factor == 1 else u * UOp.const(factor, u.dtype)
        if part is not u and (factor != part.src[1].arg.value or not cannot_wrap(part)):
            return None
        total = part if total is None else total + part
        if total is not part and not cannot_wrap(total):
            return None
    number = UOp.const(constant, like.dtype)
    if number.arg.value != constant:
        return None
    if total is None or constant == 0:
        return number if total is None else total
    total = total + number
    return total if cannot_wrap(total) else None


def divide_sum(x: UOp, c: UOp) -> UOp | None:
    """(a*(k*c) + rest) // c  →  a*k + rest // c; and (a*g + small) // (g*d)  →  a // d where
    0 <= small < g."""
    d = c.arg.value
    if d <= 0 or (parts := linear(x)) is None:
        return None
    terms, constant = parts
    whole = [(u, f // d) for u, f in terms if f % d == 0]
    rest = [(u, f) for u, f in terms if f % d]
    remainder = constant % d
    common, small = _split_off_small(rest, remainder, d)
    if not whole and remainder == constant and common == 1:
        return None
    large = [(u, f // common) for u, f in rest if (u, f) not in small]
    inner = build_linear(large, remainder // common, x)
    outer = build_linear(whole, constant // d, x)
    if inner is None or outer is None:
        return None
    total = outer + inner // (d // common)
    return total if cannot_wrap(total) else None


def modulo_sum(x: UOp, c: UOp) -> UOp | None:
    """(a*(k*c) + rest) % c  →  rest % c; and (a*g + small) % (g*d)  →  (a % d)*g + small where
    0 <= small < g."""
    d = c.arg.value
    if d <= 0 or (parts := linear(x)) is None:
        return None
    terms, constant = parts
    rest, remainder = [(u, f) for u, f in terms if f % d], constant % d
    common, small = _split_off_small(rest, remainder, d)
    if len(rest) == len(terms) and remainder == constant and common == 1:
        return None
    large = [(u, f // common) for u, f in rest if (u, f) not in small]
    inner = build_linear(large, remainder // common, x)
    if inner is None:
        return None
    part = inner % (d // common)
    return build_linear([(part, common), *small], remainder % common, x)


def _split_off_small(terms: Terms, constant: int, d: int) -> tuple[int, Terms]:
    """(g, small): the largest factor g of d such that what is no multiple of g, the terms `small`
    and part of the constant, adds up to at least 0 and less than g. g is 1 if there is none."""
    factors = {abs(f) for _, f in terms} | {math.gcd(d, *(f for _, f in terms))}
    for g in sorted(factors, reverse=True):
        if g <= 1 or d % g:
            continue
        small = [(u, f) for u, f in terms if f % g]
        low = high = constant % g
        for u, f in small:
            ends = [f * end for end in bounds(u)]
            low, high = low + min(ends), high + max(ends)
        if 0 <= low and high < g:
            return g, small
    return 1, []


def within_one_period(x: UOp, c: UOp, op: Ops) -> UOp | None:
    """x // c is one number q for all of x's values, so x % c is x - q*c."""
    d = c.arg.value
    low, high = bounds(x)
    if d <= 0 or low // d != high // d:
        return None
    q = low // d
    return UOp.const(q, x.dtype) if op is Ops.IDIV else build_linear([(x, 1)], -q * d, x)


def recombine(x: UOp) -> UOp | None:
    """(u//c)*(c*k) + (u%c)*k  →  u*k, anywhere in a sum."""
    if (parts := linear(x)) is None:
        return None
    terms, constant = parts
    for u, k in terms:
        if u.op is not Ops.MOD or u.src[1].op is not Ops.CONST or u.src[1].arg.value <= 0:
            continue
        for v, f in terms:
            merged = _merge_quotient(v, u) if f == k * u.src[1].arg.value else None
            if merged is not None:
                others = [t for t in terms if t[0] is not u and t[0] is not v]
                return build_linear([(merged, k), *others], constant, x)
    return None


def _merge_quotient(v: UOp, remainder: UOp) -> UOp | None:
    """w with w // c == v and w % c == remainder (which is u % c), or None."""
    u, c = remainder.src
    if v.op is Ops.IDIV and v.src[1] is c:
        w = v.src[0]
        of_u = w.op is Ops.MOD and w.src[0] is u and _divides(c, w.src[1])
        return w if w is u or of_u else None
    if v.op is Ops.MOD and v.src[1].op is Ops.CONST and v.src[0].op is Ops.IDIV \
            and v.src[0].src == (u, c) and v.src[1].arg.value > 0:
        period = c.arg.value * v.src[1].arg.value
        return u % period if period <= u.dtype.max else None
    return None


def _divides(c: UOp, d: UOp) -> bool:
    return d.op is Ops.CONST and d.arg.value > 0 and d.arg.value % c.arg.value == 0


def compare_sum(x: UOp, a: UOp, c: UOp) -> UOp | None:
    """x + a < c  →  x < c - a."""
    bound = c.arg.value - a.arg.value
    total = x + a
    fits = x.dtype.min <= bound <= x.dtype.max
    return x < UOp.const(bound, x.dtype) if fits and cannot_wrap(total) else None


def compare_multiple(x: UOp, a: UOp, c: UOp) -> UOp | None:
    """x * a < c  →  x < ceil(c / a), for a > 0."""
    if a.arg.value <= 0 or not cannot_wrap(x * a):
        return None
    return x < UOp.const(-(-c.arg.value // a.arg.value), x.dtype)


def nested_division(x: UOp, a: UOp, c: UOp) -> UOp | None:
    """x // a // c  →  x // (a*c)."""
    d = a.arg.value * c.arg.value
    fits = a.arg.value > 0 and c.arg.value > 0 and d <= x.dtype.max
    return x // UOp.const(d, x.dtype) if fits else None


def widen_inside(x: UOp, y: UOp) -> UOp | None:
    """cast(a + b)  →  cast(a) + cast(b), where neither the sum nor the cast changes a value."""
    low, high = bounds(y)
    if y.op in (Ops.ADD, Ops.MUL) and not cannot_wrap(y):
        return None
    if y.op in (Ops.IDIV, Ops.MOD) and bounds(y.src[1])[0] <= 0:
        return None
    fits = x.dtype.size > y.dtype.size and x.dtype.min <= low and high <= x.dtype.max
    return UOp(y.op, tuple(s.cast(x.dtype) for s in y.src)) if fits else None


def narrow_inside(x: UOp, y: UOp) -> UOp | None:
    """cast(a + b)  →  cast(a) + cast(b) for a position that the smaller type holds, too."""
    low, high = bounds(y)
    fits = x.dtype.size < y.dtype.size and x.dtype.min <= low and high <= x.dtype.max
    return UOp(y.op, tuple(s.cast(x.dtype) for s in y.src)) if fits else None


def drop_gate(x: UOp, i: UOp, valid: UOp) -> UOp | None:
    """A load whose gate is always open, or always shut."""
    index = x.src[0]
    if valid.op is not Ops.CONST:
        return None
    if not valid.arg.value:
        return UOp.const(0, x.dtype)
    return x.replace(src=(index.replace(src=(index.src[0], i)), *x.src[1:]))


def where_of_gated_load(c: UOp, x: UOp) -> UOp | None:
    """A gated load gives 0 where its gate is shut."""
    index = x.src[0]
    return x if index.op is Ops.INDEX and len(index.src) == 3 and index.src[2] is c else None


x, y, a, c = UPat.var("x"), UPat.var("y"), UPat.const("a"), UPat.const("c")
i, j = UPat.var("x", INTS), UPat.const("c", dtype=INTS)
b = UPat.var("x", dtypes.bool)

simplify_rules = PatternMatcher([
    (UPat(ALU, name="x"), fold_constants),
    (UPat(COMMUTATIVE, name="x"), constant_last),
    (UPat(ALU, name="x"), single_value),
    # the same for every type
    (x * 1, lambda x: x),
    (x * -1 * -1, lambda x: x),
    (UPat.var("x").alu(Ops.MAX, x), lambda x: x),
    (UPat.var("x").alu(Ops.MAXIMUM, x), lambda x: x),
    (UPat(Ops.WHERE, (c, x, y)), lambda c, x, y: x if c.arg.value else y),
    (UPat(Ops.WHERE, (y, x, x)), lambda x: x),
    (UPat(Ops.WHERE, (UPat.var("c"), UPat(Ops.LOAD, name="x"), UPat.const(value=0))),
     where_of_gated_load),
    (UPat(Ops.LOAD, (UPat(Ops.INDEX, (y, UPat.var("i"), UPat.var("valid"))),), name="x"),
     drop_gate),
    # floats: only the zero of the same sign is neutral
    (UPat.var("x", (dtypes.f32, dtypes.f64)) + UPat.const("c"),
     lambda x, c: x if c.arg.value == 0 and math.copysign(1, c.arg.value) < 0 else None),
    # bools
    (b & b, lambda x: x),
    (b | b, lambda x: x),
    (b & c, lambda x, c: x if c.arg.value else c),
    (b | c, lambda x, c: c if c.arg.value else x),
    # integers
    (i + 0, lambda x: x),
    (i * 0, lambda x: UOp.const(0, x.dtype)),
    (i // 1, lambda x: x),
    ((i + a) + c, lambda x, a, c: x + fold(Ops.ADD, (a, c), x.dtype)),
    ((i * a) * c, lambda x, a, c: x * fold(Ops.MUL, (a, c), x.dtype)),
    ((i + a) * c, lambda x, a, c: x * c + fold(Ops.MUL, (a, c), x.dtype)),
    ((i // a) // c, nested_division),
    ((i % a) % c, lambda x, a, c: x % c if c.arg.value > 0 and a.arg.value > 0
     and a.arg.value % c.arg.value == 0 else None),
    (i // j, lambda x, c: within_one_period(x, c, Ops.IDIV)),
    (i % j, lambda x, c: within_one_period(x, c, Ops.MOD)),
    (i // j, divide_sum),
    (i % j, modulo_sum),
    (UPat(Ops.ADD, name="x", dtype=INTS), recombine),
    (UPat(Ops.CAST, (UPat((Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD), name="y", dtype=INTS),), name="x",
          dtype=INTS), widen_inside),
    (UPat(Ops.CAST, (UPat((Ops.ADD, Ops.MUL), name="y", dtype=INTS),), name="x", dtype=INTS),
     narrow_inside),
    (UPat(Ops.CAST, (UPat(Ops.CAST, (i,), name="y", dtype=INTS),), name="c", dtype=INTS),
     lambda x, y, c: x.cast(c.dtype) if y.dtype.min <= x.dtype.min and x.dtype.max <= y.dtype.max
     else None),
    ((i + a) < c, compare_sum),
    ((i * a) < c, compare_multiple),
])


class _Memo(threading.local):
    """What was simplified already: the passes of a plan's kernels come across most nodes many
    times."""

    def __init__(self) -> None:
        self.done: dict[UOp, UOp] = {}
        self.users = 0  # of `remembering`


_memo = _Memo()


def simplify(u: UOp) -> UOp:
    """`u` with every rule applied that fits."""
    return graph_rewrite(u, simplify_rules, _memo.done)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """While this lasts `simplify` keeps what it came across, up to a limit."""
    if len(_memo.done) > REMEMBERED:
        _memo.done = {}
    _memo.users += 1
    try:
        yield
    finally:
        _memo.users -= 1
        if not _memo.users:
            _memo.done = {}
