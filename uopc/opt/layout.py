"""Layout, decided on the graph: an operand that a reduction reads again and again is first copied
into the order in which it will be read. The copy is a STAGE of movement operations, read back
through their inverse; no other concept is needed.

    sum over k of A[n, k] * B[m, k]     B is read for every n
    B (m, k)  →  pad, reshape (m/16, 16, k), permute (m/16, k, 16), STAGE, and back

Afterwards the inner loop over k reads 16 neighbours at each step. If the operand is an expression
it is computed once, on the way.
"""
from __future__ import annotations

from collections.abc import Sequence

from uopc.opt.target import Target, target
from uopc.uop import ALU, Ops, UOp, prod


def pack_operands(roots: Sequence[UOp]) -> list[UOp]:
    """Put a packed STAGE on the operands of every product that is summed and pays for it."""
    machine = target()
    products = [u for u in UOp(Ops.SINK, tuple(roots)).toposort()
                if u.op is Ops.REDUCE and u.arg == (Ops.ADD, 1) and product_of(u) is not None]
    return UOp.wrap(roots, products, lambda u: _with_packed_operands(u, machine))


def product_of(reduce: UOp) -> tuple[UOp, UOp] | None:
    """The two factors of what is summed, in the sum's own axes; None if it is no product."""
    order, u = list(range(len(reduce.src[0].shape))), reduce.src[0]
    while u.op is Ops.PERMUTE:
        order, u = [u.arg[a] for a in order], u.src[0]
    if u.op is not Ops.MUL or any(s.op is Ops.CONST for s in u.src):
        return None
    return u.src[0].permute(order), u.src[1].permute(order)


def _with_packed_operands(reduce: UOp, machine: Target) -> UOp:
    a, b = product_of(reduce)
    shape = a.shape
    if len(shape) < 3 or prod(shape) < machine.min_packed_work or \
            shape[-2] < machine.lanes(reduce.dtype.size):
        return reduce
    packed = [_packed(x, machine) for x in (a, b)]
    if packed == [None, None]:
        return reduce
    a, b = (x if p is None else p for x, p in zip((a, b), packed, strict=True))
    return (a * b).reduce(*reduce.arg)


def _packed(x: UOp, machine: Target) -> UOp | None:
    """`x` (..., m, k) read through panels of m; None if it moves with every axis, or not with m."""
    same = constant_axes(x)
    last = len(x.shape) - 2
    reuse = prod(x.shape[a] for a in same)
    if {last, last + 1} & same or reuse < machine.min_packed_reuse:
        return None
    once = x.shrink([(0, 1) if a in same else (0, n) for a, n in enumerate(x.shape)])
    *lead, m, k = once.shape
    panel = machine.tile[1] * machine.lanes(x.dtype.size)
    count = -(-m // panel)
    axes = list(range(last))
    full = once.pad([*[(0, 0)] * last, (0, count * panel - m), (0, 0)])
    order = [*axes, last, last + 2, last + 1]
    stored = full.reshape((*lead, count, panel, k)).permute(order).stage()
    back = stored.permute(order).reshape((*lead, count * panel, k))
    return back.shrink([*[(0, n) for n in lead], (0, m), (0, k)]).expand(x.shape)


def constant_axes(u: UOp) -> set[int]:
    """Axes of size above 1 along which all elements of `u` are known to be equal."""
    known: dict[UOp, set[int]] = {}
    for node in u.toposort(stop=lambda s: s.op not in ALU and s.op not in _TRACED):
        known[node] = _constant_axes(node, known)
    return {a for a in known[u] if u.shape[a] > 1}


_TRACED = frozenset({Ops.EXPAND, Ops.PERMUTE, Ops.RESHAPE})


def _constant_axes(u: UOp, known: dict[UOp, set[int]]) -> set[int]:
    """Axes of size 1 count here."""
    everywhere = set(range(len(u.shape)))
    if u.op is Ops.CONST:
        return everywhere
    if u.op in ALU:
        parts = [known[s] for s in u.src if s.op is not Ops.CONST]
        return set.intersection(*parts) if parts else everywhere
    if u.op is Ops.EXPAND:
        return known[u.src[0]] | {a for a, n in enumerate(u.src[0].shape) if n == 1}
    if u.op is Ops.PERMUTE:
        return {u.arg.index(a) for a in known[u.src[0]]}
    ones = {a for a, n in enumerate(u.shape) if n == 1}
    if u.op is Ops.RESHAPE:
        before = [a for a, n in enumerate(u.src[0].shape) if n != 1]
        after = [a for a, n in enumerate(u.shape) if n != 1]
        if [u.src[0].shape[a] for a in before] == [u.shape[a] for a in after]:
            return ones | {b for a, b in zip(before, after, strict=True) if a in known[u.src[0]]}
    return ones
