"""Layout, decided on the graph: an operand that a reduction reads again and again is first copied
into the order in which it will be read. The copy is a STAGE of movement operations, read back
through their inverse; no other concept is needed.

    sum over k of A[n, k] * B[m, k]     B is read for every n
    B (m, k)  →  pad, reshape (m/16, 16, k), permute (m/16, k, 16), STAGE, and back

Afterwards the inner loop over k reads 16 neighbours at each step. If the operand is an expression
it is computed once, on the way. A STAGE of partial results divides a long reduction likewise.
"""
from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from uopc.ops import ACCUMULATED, ALU, MOVEMENT
from uopc.opt.access import access
from uopc.opt.target import Target, target
from uopc.rangeify import lower_movement, regrouped
from uopc.uop import Ops, ParamArg, UOp, prod


def store_permuted(roots: Sequence[UOp]) -> list[UOp]:
    """A reduction that is only wanted permuted or flipped is stored that way, without a copy.

        PERMUTE(REDUCE(x))  →  REDUCE(PERMUTE(x))
    """
    order = UOp(Ops.SINK, tuple(roots)).toposort()
    uses = Counter(s for u in order for s in u.src)
    found: set[UOp] = set()
    for u in order:
        if u.op in (Ops.PERMUTE, Ops.FLIP) and uses[u.src[0]] == 1 and (
                u.src[0].op is Ops.REDUCE or u.src[0] in found):
            found.add(u)
    return UOp.wrap(roots, found, _reduce_last)


def _reduce_last(moved: UOp) -> UOp:
    (reduce,) = moved.src
    x, kept = reduce.src[0], len(reduce.shape)
    arg = moved.arg if moved.op is Ops.FLIP else (*moved.arg, *range(kept, len(x.shape)))
    return UOp(moved.op, (x,), arg).reduce(*reduce.arg)


def sum_products_apart(roots: Sequence[UOp]) -> list[UOp]:
    """The gradient of a weight that is used several times, which is the sum over several products
    of matrices, becomes a sum of matrix products: each is tiled by itself, and equal ones are
    compiled once. Other sums stay: taken apart they could overflow, or lose what cancels.

        sum over n of (a[n, i]*b[n, j] + c[n, i]*d[n, j])
        →  (sum over n of a[n, i]*b[n, j]) + (sum over n of c[n, i]*d[n, j])
    """
    order = UOp(Ops.SINK, tuple(roots)).toposort()
    uses = Counter(s for u in order for s in u.src)
    done: dict[UOp, UOp] = {}
    for u in order:
        terms, reduced = _terms(u, uses)
        if len(terms) > 1 and all(t.op is Ops.MUL and has_reuse(reduced(t)) for t in terms):
            done[u] = functools.reduce(UOp.__add__, [reduced(done[t]) for t in terms])
        else:
            done[u] = u.replace(src=tuple([done[s] for s in u.src]))
    return [done[r] for r in roots]


def _terms(u: UOp, uses: Mapping[UOp, int]) -> tuple[list[UOp], Callable[[UOp], UOp]]:
    """The gradients that are added up before a reduction sums them, as long as nobody else needs a
    sum of them; and how one of these terms is reduced. No terms for any other node."""
    if u.op is not Ops.REDUCE or u.arg[0] is not Ops.ADD or not u.dtype.is_float:
        return [], UOp.stage
    orders, x = [], u.src[0]
    while x.op is Ops.PERMUTE and uses[x] == 1:
        orders.append(x.arg)
        x = x.src[0]
    terms, todo = [], [x]
    while todo:
        v = todo.pop()
        if v.op is Ops.ADD and v.arg == ACCUMULATED and uses[v] == 1:
            todo += reversed(v.src)
        else:
            terms.append(v)

    def reduced(term: UOp) -> UOp:
        for order in reversed(orders):
            term = term.permute(order)
        return term.reduce(*u.arg)

    return terms, reduced


def has_reuse(u: UOp) -> bool:
    """Whether `u` sums products of which a factor is read again and again."""
    return u.op is Ops.REDUCE and any(constant_axes(f) for f in product_of(u) or ())


def pack_operands(roots: Sequence[UOp], shares: bool = False) -> list[UOp]:
    """Put a packed STAGE on the operands of every product that is summed and pays for it. `shares`
    tells that what is computed is in the cache when it is read."""
    machine = target()
    products = [u for u in UOp(Ops.SINK, tuple(roots)).toposort()
                if u.op is Ops.REDUCE and u.arg[0] is Ops.ADD and product_of(u) is not None]
    return UOp.wrap(roots, products, lambda u: _with_packed_operands(u, machine, shares))


def product_of(reduce: UOp) -> tuple[UOp, UOp] | None:
    """The two factors of what is summed, as (..., k): in the order of the sum's result, with the
    axes that are summed merged into one. None if it is no product."""
    order, u = list(range(len(reduce.src[0].shape))), reduce.src[0]
    while u.op is Ops.PERMUTE:
        order, u = [u.arg[a] for a in order], u.src[0]
    if u.op is not Ops.MUL or any(s.op is Ops.CONST for s in u.src):
        return None
    kept = reduce.src[0].shape[:-reduce.arg[1]]
    shape = (*kept, prod(reduce.src[0].shape[len(kept):]))
    return u.src[0].permute(order).reshape(shape), u.src[1].permute(order).reshape(shape)


def reduce_in_parts(roots: Sequence[UOp], shares: bool = False) -> list[UOp]:
    """Put a STAGE of partial results into every reduction that threads could not share otherwise,
    or that would stride through more memory than the caches hold. Where kernels share loops
    (`shares`), also into one that sums many rows of what is computed: by its first axis, so that
    a part may be summed while it is in the cache.

        max over n of x[n]  →  max over p of STAGE(max over i of x[p*8192 + i])

    The parts follow from the shape alone, so the number of threads changes no bit.
    """
    machine = target()
    found = [u for u in UOp(Ops.SINK, tuple(roots)).toposort()
             if u.op is Ops.REDUCE and prod(u.src[0].shape) >= machine.min_packed_work]
    return UOp.wrap(roots, found, lambda u: _in_parts(u, machine, shares))


def _in_parts(reduce: UOp, machine: Target, shares: bool) -> UOp:
    x, (op, axes) = reduce.src[0], reduce.arg
    kept = x.shape[:-axes]
    n = prod(x.shape[len(kept):])
    part = _part(reduce, machine, shares)
    if part is None or n < 2 * part:
        return reduce
    if has_reuse(reduce):  # its tiles are shared out
        return reduce
    merged = x.reshape((*kept, n))
    whole = n // part * part
    parts = _slice_last(merged, 0, whole).reshape((*kept, n // part, part))
    axis = len(kept)
    stored = parts.permute((axis, *range(axis), axis + 1)).reduce(op, 1).stage()
    total = stored.permute((*range(1, axis + 1), 0)).reduce(op, 1)
    return total if whole == n else total.alu(op, _slice_last(merged, whole, n).reduce(op, 1))


def _part(reduce: UOp, machine: Target, shares: bool) -> int | None:
    """How many elements of each sum make a part of their own; None if all of them do."""
    x, axes = reduce.src[0], reduce.arg[1]
    summed, outputs = x.shape[-axes:], prod(reduce.shape)
    n = prod(summed)
    if shares and outputs >= machine.min_shared_lanes and _base(x).op is not Ops.BUFFER and \
            machine.min_shared_steps <= summed[0] <= n // machine.min_shared_steps:
        return n // summed[0]
    if n * outputs < machine.min_divided_work:
        return None
    if outputs < machine.many_outputs:
        return max(machine.min_part, machine.part // outputs)
    if n * outputs < machine.strided_work or strides(x.reshape((*reduce.shape, n)))[-1] in (0, 1):
        return None
    return max(machine.block, machine.cache // 2 // (outputs * reduce.dtype.size))


def _slice_last(x: UOp, start: int, stop: int) -> UOp:
    return x.shrink([*[(0, n) for n in x.shape[:-1]], (start, stop)])


def _with_packed_operands(reduce: UOp, machine: Target, shares: bool) -> UOp:
    a, b = product_of(reduce)
    shape = a.shape
    if len(shape) < 3 or prod(shape) < machine.min_packed_work or \
            shape[-2] < machine.lanes(reduce.dtype.size):
        return reduce
    packed = [_packed(x, constant_axes(other), machine, shares) for x, other in ((a, b), (b, a))]
    if packed == [None, None]:
        return reduce
    a, b = (x if p is None else p for x, p in zip((a, b), packed, strict=True))
    return (a * b).reduce(Ops.ADD, 1)


def strides(x: UOp) -> list[int | None]:
    """By how much memory moves along each axis of `x`, if what it is a view of lies in memory as it
    is; None for an axis along which that is not one number."""
    if 0 in x.shape:
        return [None] * len(x.shape)
    base = _base(x)
    memory = UOp(Ops.BUFFER, (), ParamArg(0, x.dtype, base.shape, "layout"))
    out = UOp(Ops.BUFFER, (), ParamArg(1, x.dtype, x.shape, "layout"))
    view = x.substitute({base: memory})
    loops = lower_movement(UOp(Ops.SINK, (UOp(Ops.STORE, (out, view)),)))
    reads = [access(u) for u in loops.toposort() if u.op is Ops.INDEX and u.src[0] is memory]
    ranges = iter(loops.src[0].src[1:] if loops.src and loops.src[0].op is Ops.END else ())
    found = []
    for n in x.shape:
        r = next(ranges) if n > 1 else None
        steps = {0 if r is None else a.stride(r) for a in reads}
        found.append(steps.pop() if len(steps) == 1 else None)
    return found


def _base(x: UOp) -> UOp:
    """What `x` is a view of."""
    while x.op in MOVEMENT:
        x = x.src[0]
    return x


def _packed(x: UOp, rows: set[int], machine: Target, shares: bool) -> UOp | None:
    """`x` (..., m, k) read through panels of m, or of another axis among `rows`, along which the
    other operand stays. None if it moves with every axis, or not with k."""
    same, k = constant_axes(x), len(x.shape) - 1
    reuse = prod(x.shape[a] for a in same)
    if k in same or reuse < machine.min_packed_reuse:
        return None
    once = x.shrink([(0, 1) if a in same else (0, n) for a, n in enumerate(x.shape)])
    if k - 1 not in same:
        panel = machine.tile[1] * machine.lanes(x.dtype.size)
        return _in_panels(once, k - 1, panel).expand(x.shape)
    moving = [a for a in sorted(rows) if once.shape[a] > 1]
    if not moving or reuse < machine.min_left_reuse:
        return None
    at_hand = shares and _base(once).op is not Ops.BUFFER
    if (reuse < machine.min_copied_reuse or at_hand) and strides(once)[k] == 1:
        return None
    return _in_panels(once, moving[-1], machine.tile[0]).expand(x.shape)


def _in_panels(x: UOp, axis: int, panel: int) -> UOp:
    """`x` (..., m at `axis`, ..., k) stored as (..., m/panel, ..., k, panel), and read back."""
    m = x.shape[axis]
    count = -(-m // panel)
    full = x.pad([(0, count * panel - m) if a == axis else (0, 0) for a in range(len(x.shape))])
    cut = full.reshape((*x.shape[:axis], count, panel, *x.shape[axis + 1:]))
    order = [a for a in range(len(cut.shape)) if a != axis + 1] + [axis + 1]
    stored = cut.permute(order).stage()
    back = stored.permute([order.index(a) for a in range(len(order))]).reshape(full.shape)
    return back.shrink([(0, n) for n in x.shape])


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
        return ones | {b for before, after in regrouped(u.src[0].shape, u.shape)
                       for b in after if known[u.src[0]].issuperset(before)}
    return ones
