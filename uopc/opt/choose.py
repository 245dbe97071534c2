"""The one place that decides how a kernel's loops are transformed.

It looks at strides alone: by how much each memory access moves when a loop takes a step. No shape
and no operation is special.

* An output axis along which every access is contiguous or constant becomes vector lanes.
* Where one operand does not move along that axis and another does not along a second (a matrix
  product), the second is unrolled too: a tile of accumulators stays in registers.
* Otherwise a reduction along which accesses are contiguous gets vector accumulators.
* The outermost loop is shared out to threads if the work pays for it. A reduction never is, so the
  number of threads cannot change a result.
"""
from __future__ import annotations

from uopc.bounds import bounds
from uopc.dtype import dtypes
from uopc.linearize import ranges_below
from uopc.opt.target import Target, target
from uopc.opt.transform import (
    Nest,
    Numbers,
    mark,
    merge,
    merge_reduce,
    partition,
    partition_reduce,
    split,
    split_reduce,
    stride,
)
from uopc.uop import ALU, COMPARE, THREAD, UNROLL, VECTOR, Ops, UOp, kind, prod


def optimize(kernel: UOp) -> UOp:
    """SINK → SINK, with loops split, reordered and marked for this machine."""
    nests = [_nest_of(s) for s in kernel.src]
    if None in nests:
        return kernel  # a statement that waits for another: loops stay as they are
    numbers, machine = Numbers(kernel), target()
    nests = [part for nest in nests for part in _at_panels(_merge_all(nest, numbers), numbers)]
    done = [tile for nest in nests for tile in _tile(nest, numbers, machine)]
    return UOp(Ops.SINK, tuple(_thread(n, numbers, machine).end() for n in done))


def _nest_of(s: UOp) -> Nest | None:
    store, loops = (s.src[0], s.src[1:]) if s.op is Ops.END else (s, ())
    waits = any(u.op is Ops.END or (u.op is Ops.LOAD and len(u.src) > 1) for u in store.toposort())
    return None if waits else Nest(store, loops)


# *** strides ***


def accesses(nest: Nest) -> list[UOp]:
    return [u for u in nest.store.toposort() if u.op is Ops.INDEX]


def moves_by(places: list[UOp], r: UOp) -> set[int | None]:
    """The strides of memory accesses along `r`; None for one that has none, or a gate along it."""
    return {None if len(u.src) > 2 and r in ranges_below(u.src[2]) else stride(u.src[1], r)
            for u in places}


def vector_width(nest: Nest, r: UOp) -> int | None:
    """Bytes per lane if all values that depend on `r` are of one width (bools adapt), else None."""
    widths = set()
    for u in _value_nodes(nest):
        if r not in ranges_below(u):
            continue
        typed = u.src if u.op in COMPARE else (u,)
        widths |= {s.dtype.size for s in typed if s.dtype not in (None, dtypes.bool)
                   and s.op not in (Ops.INDEX, Ops.CONST)
                   and not (s.op is Ops.RANGE and u.op not in COMPARE)}
        if u.op is Ops.REDUCE and u.dtype is dtypes.bool:
            return None
    return widths.pop() if widths in ({4}, {8}) else None


def _value_nodes(nest: Nest) -> set[UOp]:
    """What is computed to be stored, the addresses left out."""
    return set(nest.store.src[1].toposort(stop=lambda u: u.op is Ops.INDEX))


# *** the decision ***


def _merge_all(nest: Nest, numbers: Numbers) -> Nest:
    """Neighbouring loops that are one walk through memory become one."""
    k = 0
    while k + 1 < len(nest.loops):
        merged = merge(nest, nest.loops[k], nest.loops[k + 1], numbers)
        nest, k = (merged, k) if merged else (nest, k + 1)
    while (merged := _merge_in_reduces(nest, numbers)) is not None:
        nest = merged
    return nest


def _merge_in_reduces(nest: Nest, numbers: Numbers) -> Nest | None:
    """The first two ranges of a reduction that merge, merged; None if there are none."""
    for reduce in nest.reduces():
        for a, b in zip(reduce.src[1:], reduce.src[2:], strict=False):
            if merged := merge_reduce(nest, reduce, a, b, numbers):
                return merged
    return None


def _at_panels(nest: Nest, numbers: Numbers) -> list[Nest]:
    """A loop r that an index takes apart, as in r//16 and r%16, becomes two."""
    for place, r in enumerate(nest.loops):
        cuts = {u.src[1].arg.value for u in nest.store.toposort()
                if u.op in (Ops.IDIV, Ops.MOD) and u.src[0] in (r, r.cast(u.dtype))
                and u.src[1].op is Ops.CONST}
        cut = max((c for c in cuts if 1 < c < r.arg[1]), default=None)
        if cut is None:
            continue
        parts = []
        for part, step in _pieces(nest, r, cut, numbers):
            if step == cut:
                part, _, _ = split(part, part.loops[place], cut, numbers)
            parts += _at_panels(part, numbers)
        return parts
    return [nest]


def _tile(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    reduces = nest.reduces()
    lanes = _lane_axis(nest, machine)
    if lanes is None and len(reduces) == 1:
        return [_tile_reduction(nest, reduces[0], numbers, machine)]
    if lanes is None or len(reduces) > 1:
        return [nest] if reduces else [_unroll_innermost(n, numbers)
                                       for n in _in_blocks(nest, numbers, machine)]
    rows = _reused_axis(nest, lanes) if reduces else None
    if rows is None:
        return _lane_pieces(nest, lanes, 4 if reduces else 1, numbers, machine)
    # rows run inside columns, so that a panel of the right operand stays in cache
    others = [r for r in nest.loops if r is not lanes and r is not rows]
    nest = Nest(nest.store, (*others, lanes, rows))
    height, width = machine.tile
    result = []
    for part, step in _pieces(nest, rows, height, numbers):
        lanes, rows = part.loops[len(others):]
        part, _, _ = split(part, rows, step, numbers, UNROLL)
        result += _lane_pieces(part, lanes, width, numbers, machine)
    return result


def _lane_axis(nest: Nest, machine: Target) -> UOp | None:
    """The output loop to become vector lanes: the result is contiguous along it, and so is or does
    not move everything that is read."""
    for r in reversed(nest.loops):
        if stride(nest.store.src[0].src[1], r) == 1:
            width = vector_width(nest, r)
            fits = width is not None and r.arg[1] >= machine.lanes(width)
            return r if fits and moves_by(accesses(nest), r) <= {0, 1} else None
    return None


def _reused_axis(nest: Nest, lanes: UOp) -> UOp | None:
    """An output loop along which something that moves with the lanes stays, and something that
    does not move with them moves."""
    reads = [u.src[0].src[1] for u in nest.store.toposort() if u.op is Ops.LOAD]
    for r in reversed(nest.loops):
        if r is not lanes and any(stride(i, r) == 0 and stride(i, lanes) == 1 for i in reads) \
                and any(stride(i, r) != 0 and stride(i, lanes) == 0 for i in reads):
            return r
    return None


def _pieces(nest: Nest, r: UOp, step: int, numbers: Numbers) -> list[tuple[Nest, int]]:
    """The loop `r` as a part that `step` divides, and what is left, in the same place among the
    loops; each with its step."""
    size = r.arg[1]
    whole = size // step * step
    if whole in (0, size):
        return [(nest, step if whole else size)]
    main, rest = partition(nest, r, whole, numbers)
    return [(main, step), (rest, size - whole)]


def _lane_pieces(nest: Nest, r: UOp, registers: int, numbers: Numbers,
                 machine: Target) -> list[Nest]:
    """The loop `r` as vectors: tiles of several registers, then fewer, then the lanes left."""
    place = nest.loops.index(r)
    lanes = machine.lanes(vector_width(nest, r))
    result = []
    for part, step in _pieces(nest, r, registers * lanes, numbers):
        for piece, width in _pieces(part, part.loops[place], step // lanes * lanes or step,
                                    numbers):
            result.append(_vectorize(piece, piece.loops[place], width, lanes, numbers))
    return result


def _vectorize(nest: Nest, r: UOp, width: int, lanes: int, numbers: Numbers) -> Nest:
    """`width` elements along `r` as registers; fewer than a register's lanes as a part of one,
    where reading the whole register stays inside every buffer, else as a plain loop."""
    if width < lanes:
        safe = width == r.arg[1] and all(_may_overhang(u, r, lanes - width)
                                         for u in accesses(nest) if u is not nest.store.src[0])
        return split(nest, r, width, numbers, VECTOR, lanes)[0] if safe else nest
    nest, _, tile = split(nest, r, width, numbers)
    nest, registers, _ = split(nest, tile, lanes, numbers, VECTOR, lanes)
    return nest if registers is None else mark(nest, registers, numbers, UNROLL)


def _may_overhang(access: UOp, r: UOp, extra: int) -> bool:
    return stride(access.src[1], r) == 0 or \
        bounds(access.src[1])[1] + extra < prod(access.src[0].shape)


def _tile_reduction(nest: Nest, reduce: UOp, numbers: Numbers, machine: Target) -> Nest:
    """Vector accumulators along a contiguous range of the reduction, four at a time."""
    reads = [u.src[0] for u in reduce.toposort() if u.op is Ops.LOAD]
    for r in reversed(reduce.src[1:]):
        strides = moves_by(reads, r)
        width = vector_width(nest, r)
        if width is None or 1 not in strides or not strides <= {0, 1}:
            continue
        lanes = machine.lanes(width)
        registers = min(4, r.arg[1] // lanes)
        if not registers:
            continue
        step = registers * lanes
        whole = r.arg[1] // step * step
        if whole != r.arg[1]:
            nest, r = partition_reduce(nest, reduce, r, whole, numbers)
        nest, _, tile = split_reduce(nest, r, step, numbers)
        nest, outer, _ = split_reduce(nest, tile, lanes, numbers, VECTOR, lanes)
        return nest if outer is None else split_reduce(nest, outer, registers, numbers, UNROLL)[0]
    return nest


def _in_blocks(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    """Where an outer loop takes smaller steps through what is read than an inner one (a transposed
    copy): the inner loop in blocks, the blocks outermost, so that each line of the cache is used up
    while it is there.

        for i: for j: out[i, j] = a[j, i]   →   for jo: for i: for ji: out[i, jo*16 + ji] = ...
    """
    reads = [u.src[1] for u in accesses(nest) if u is not nest.store.src[0]]
    for place in reversed(range(1, len(nest.loops))):
        r = nest.loops[place]
        far = any(abs(stride(i, outer) or 0) < abs(stride(i, r) or 0) and stride(i, outer)
                  for i in reads for outer in nest.loops[:place])
        if not far or r.arg[1] < 2 * machine.block:
            continue
        parts = []
        for part, step in _pieces(nest, r, machine.block, numbers):
            if step == machine.block:
                part, blocks, _ = split(part, part.loops[place], step, numbers)
                part = Nest(part.store, (blocks, *[s for s in part.loops if s is not blocks]))
            parts.append(part)
        return parts
    return [nest]


def _unroll_innermost(nest: Nest, numbers: Numbers) -> Nest:
    """A loop that cannot be vectors at least needs fewer steps."""
    for factor in (8, 4, 2):
        if nest.loops and nest.loops[-1].arg[1] % factor == 0 and nest.loops[-1].arg[1] > 0:
            return split(nest, nest.loops[-1], factor, numbers, UNROLL)[0]
    return nest


def _thread(nest: Nest, numbers: Numbers, machine: Target) -> Nest:
    """Share out the outermost loop that has a step for each thread, if the work pays for it."""
    work = prod(s.arg[1] for s in ranges_below(nest.store))
    work *= 1 + sum(u.op in ALU for u in _value_nodes(nest))
    work //= max((s.arg[3] for s in ranges_below(nest.store) if kind(s) == VECTOR), default=1)
    plain = [r for r in nest.loops if kind(r) is None]
    if work < machine.min_threaded_work or machine.threads < 2 or not plain:
        return nest
    r = next((r for r in plain if r.arg[1] >= 2 * machine.threads), plain[0])
    nest = Nest(nest.store, (r, *[s for s in nest.loops if s is not r]))
    return mark(nest, r, numbers, THREAD)
