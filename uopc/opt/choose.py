"""The one place that decides how a kernel's loops are transformed.

It looks at strides alone: by how much each memory access moves when a loop takes a step. No shape
and no operation is special.

* An output axis along which every access is contiguous or constant becomes vector lanes.
* Where one operand does not move along that axis and another does not along a second (a matrix
  product), the second is unrolled too: a tile of accumulators stays in registers.
* Otherwise a reduction along which accesses are contiguous gets vector accumulators.
* Long sums of f32 are taken in blocks, so that they keep their accuracy.
* The outermost loop is shared out to threads if the work pays for it, or is the one that several
  kernels share (`share.py`). A reduction never is, so the number of threads cannot change a result.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from uopc.dtype import dtypes
from uopc.linearize import ranges_below
from uopc.ops import ALU
from uopc.opt.access import access
from uopc.opt.cuts import regular_parts
from uopc.opt.share import Shared
from uopc.opt.target import Target, target
from uopc.opt.transform import (
    Nest,
    Numbers,
    mark,
    merge,
    partition,
    partition_reduce,
    pieces,
    split,
    sum_in_blocks,
)
from uopc.opt.vectorize import lane_pieces, lane_strides, lanes_along, vectorize
from uopc.uop import THREAD, UNROLL, VECTOR, Ops, UOp, kind, prod


def optimize(kernel: UOp) -> UOp:
    """SINK → SINK, with loops split, reordered and marked for this machine."""
    return UOp(Ops.SINK, tuple(_optimized(kernel.src, Numbers(kernel), target())))


def optimize_shared(kernel: UOp, shared: Sequence[Shared], local: Mapping[int, int]) -> UOp:
    """SINK(END(STORE)) → the same with the shared parts of its loops as one loop for threads.

    In the buffers numbered in `local`, of that many elements, a step finds just what it needs.
    """
    (end,) = kernel.src
    numbers, machine = Numbers(kernel), replace(target(), threads=1)
    steps = numbers.range(prod(s.digit.size // s.block for s in shared), THREAD)
    nest = _in_steps(Nest(end.src[0], end.src[1:]), shared, steps, numbers)
    nest = nest.replaced({u: _local(u, steps, local[u.src[0].arg.slot]) for u in nest.accesses()
                          if u.src[0].arg.slot in local}, nest.loops)
    parts = [_keep_exact(tile, numbers, machine)
             for part in regular_parts(_merge_all(nest, numbers), numbers, machine)
             for tile in _tile(part, numbers, machine)]
    group = UOp(Ops.GROUP, tuple(_with_shared_loops(parts, numbers)))
    return UOp(Ops.SINK, (UOp(Ops.END, (group, steps)),))


def _in_steps(nest: Nest, shared: Sequence[Shared], steps: UOp, numbers: Numbers) -> Nest:
    """The nest with the shared digits of its loops taken from `steps`.

        for b: for t < 64: S(b, t), sharing b and blocks of 16 of t
        →  for t' < 16: S(steps // 4, steps % 4 * 16 + t')
    """
    fixed: dict[UOp, list[tuple[Shared, UOp]]] = {}
    inner = steps.arg[1]
    for s in shared:
        count = s.digit.size // s.block
        inner //= count
        value = steps // inner % count
        fixed.setdefault(s.digit.loop, []).append((s, value))
    mapping, loops = {}, []
    for r in nest.loops:
        at, value, left = 1, UOp.const(0, r.dtype), []
        for s, step in sorted(fixed.get(r, []), key=lambda f: f[0].digit.inner):
            low = s.digit.inner * s.block
            if low > at:
                left.append((numbers.range(low // at), at))
            value, at = value + step.cast(r.dtype) * low, s.digit.inner * s.digit.size
        if r.arg[1] > at:
            left.append((numbers.range(r.arg[1] // at), at))
        for new, weight in left:
            value = value + new.cast(r.dtype) * weight
        mapping[r] = value
        loops += [new for new, _ in reversed(left)]
    return nest.replaced(mapping, tuple(loops))


def _local(index: UOp, steps: UOp, size: int) -> UOp:
    """The index within what one step needs of a buffer."""
    buffer, at, *gate = index.src
    part = UOp(Ops.BUFFER, (), buffer.arg._replace(shape=(size,)))
    return UOp(Ops.INDEX, (part, at.substitute({steps: UOp.const(0, steps.dtype)}), *gate))


def _optimized(statements: Sequence[UOp], numbers: Numbers, machine: Target) -> list[UOp]:
    done = []
    for s in statements:
        nest = Nest(s.src[0], s.src[1:]) if s.op is Ops.END else Nest(s, ())
        waiting = [u for u in nest.store.toposort() if u.op is Ops.LOAD and len(u.src) > 1]
        if waiting:
            done += _in_order(nest, waiting[0], numbers, machine)
            continue
        parts = [_thread(_keep_exact(tile, numbers, machine), numbers, machine)
                 for part in regular_parts(_merge_all(nest, numbers), numbers, machine)
                 for tile in _tile(part, numbers, machine)]
        done += _with_shared_loops(parts, numbers)
    return done


def _with_shared_loops(parts: Sequence[Nest], numbers: Numbers) -> list[UOp]:
    """Parts of one statement whose outermost loops take equal steps through the result take them
    together: what is read for one part is there for the next.

        for r: A(r);  for s: B(s)   →   for r: { A(r); B(r) }
    """
    together: dict[object, list[Nest]] = {}
    for k, nest in enumerate(parts):
        r = nest.loops[0] if nest.loops else None
        fits = r is not None and kind(r) in (None, THREAD)
        step = None if not fits or kind(r) == THREAD else access(nest.stored).stride(r)
        together.setdefault((r.arg[1:], step) if fits else k, []).append(nest)
    ends = []
    for members in together.values():
        if len(members) == 1:
            ends.append(members[0].end())
            continue
        first = members[0].loops[0]
        shared = numbers.range(*first.arg[1:])
        inner = [nest.replaced({nest.loops[0]: shared.cast(nest.loops[0].dtype)}, nest.loops[1:])
                 for nest in members]
        group = UOp(Ops.GROUP, tuple(_with_shared_loops(inner, numbers)))
        ends.append(UOp(Ops.END, (group, shared)))
    return ends


def _in_order(nest: Nest, load: UOp, numbers: Numbers, machine: Target) -> list[UOp]:
    """A statement that adds to what an earlier one stores, in places that may repeat (a scatter).
    The earlier one as if it were alone; the later one's loops in their order, the last as lanes."""
    before = [u for u in load.src[1:] if u.op in (Ops.END, Ops.STORE)]
    earlier = _optimized(before, numbers, machine)
    nest = nest.replaced({load: load.replace(src=load.src[:1])}, nest.loops)
    lanes = _lane_axis(nest, machine)
    inside = lanes is not None and lanes is nest.loops[-1] and not nest.reduces()
    at_once = _registers_at_once(nest, machine)
    parts = lane_pieces(nest, lanes, at_once, numbers, machine) if inside else [nest]
    ends = []
    for part in parts:
        target_index, loops = part.store.src[0], [r for r in part.loops if kind(r) is None]
        waits = {UOp(Ops.LOAD, (target_index,)): UOp(Ops.LOAD, (target_index, *earlier, *loops))}
        ends.append(Nest(part.store.substitute(waits), part.loops).end())
    return ends


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
            if merged := merge(nest, a, b, numbers):
                return merged
    return None


def _tile(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    reduces = nest.reduces()
    lanes = _lane_axis(nest, machine)
    if lanes is None and len(reduces) == 1:
        return [_tile_reduction(nest, reduces[0], numbers, machine)]
    at_once = _registers_at_once(nest, machine)
    if not reduces:
        parts = _in_blocks(nest, numbers, machine)
        if lanes is None:
            return [_unroll_innermost(n, numbers, machine) for n in parts]
        return [p for n in parts
                for p in lane_pieces(n, _lane_axis(n, machine), at_once, numbers, machine)]
    if lanes is None or len(reduces) > 1:
        return [nest]
    rows = _reused_axes(nest, lanes)
    if not rows:
        return lane_pieces(nest, lanes, at_once, numbers, machine)
    row, (height, width), result = rows[-1], machine.tile, []
    for part, step in _tiles(nest, row, height, numbers):
        part, _, _ = split(part, part.loops[nest.loops.index(row)], step, numbers, UNROLL)
        for chunk in _in_chunks(part, numbers, machine):
            result += lane_pieces(chunk, _lane_axis(chunk, machine), width, numbers, machine)
    return result


def _registers_at_once(nest: Nest, machine: Target) -> int:
    """Vectors to work on side by side; with a long body, fewer accumulators of a sum."""
    work = sum(u.op in ALU for u in nest.values())
    if not nest.reduces() or work <= machine.short_body:
        return 4
    return 2 if work <= 2 * machine.short_body else 1


def _tiles(nest: Nest, r: UOp, height: int, numbers: Numbers) -> list[tuple[Nest, int]]:
    """The rows in tiles of `height`, some of them lower by one so that none is much lower: with few
    accumulators each waits for its own last addition."""
    size = r.arg[1]
    count = -(-size // height)
    low = count * height - size
    if low == count:
        return [(nest, height - 1)]
    if low == 0 or low > count:
        return pieces(nest, r, height, numbers)
    high, rest = partition(nest, r, (count - low) * height, numbers)
    return [(high, height), (rest, height - 1)]


def _in_chunks(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    """The tiles of a product in chunks whose rows of the left operand stay in cache while all
    columns go by: (..., tiles, rows, lanes) → (..., chunks, lanes, tiles, rows)."""
    lanes = _lane_axis(nest, machine)
    tiles = [r for r in _reused_axes(nest, lanes) if kind(r) is None][-1:]
    if not tiles:
        return [nest]
    place, count = nest.loops.index(tiles[0]), tiles[0].arg[1]
    row = sum(prod(r.arg[1] for r in u.src[1:]) * u.dtype.size for u in nest.reduces())
    share = count // (4 * machine.threads) if machine.threads > 1 else count
    limit = max(1, min(machine.cache // 2 // (row * machine.tile[0]), share))
    size = max(n for n in range(1, limit + 1) if count % n == 0)
    chunks = []
    for part, step in pieces(nest, tiles[0], size if 2 * size > limit else limit, numbers):
        part, _, tile = split(part, part.loops[place], step, numbers)
        inner = [_lane_axis(part, machine), tile, *[r for r in part.loops if kind(r) == UNROLL]]
        chunks.append(Nest(part.store, (*[r for r in part.loops if r not in inner], *inner)))
    return chunks


def _lane_axis(nest: Nest, machine: Target) -> UOp | None:
    """The output loop to become vector lanes: the result is contiguous along it, and so is or does
    not move everything that is read."""
    for r in reversed(nest.loops):
        if access(nest.stored).stride(r) == 1:
            lanes = lanes_along(nest, r, machine)
            fits = kind(r) == VECTOR or (lanes is not None and r.arg[1] >= lanes)
            return r if fits and lane_strides(nest.accesses(), r) <= {0, 1} else None
    return None


def _reused_axes(nest: Nest, lanes: UOp) -> list[UOp]:
    """The output loops along which something that moves with the lanes stays, and something that
    does not move with them moves: the rows of a product."""
    reads = [access(i) for i in nest.loads()]
    return [r for r in nest.loops if r is not lanes
            and any(a.stride(r) == 0 and a.stride(lanes) == 1 for a in reads)
            and any(a.stride(r) != 0 and a.stride(lanes) == 0 for a in reads)]


def _tile_reduction(nest: Nest, reduce: UOp, numbers: Numbers, machine: Target) -> Nest:
    """Vector accumulators along a contiguous range of the reduction, several at a time."""
    reads = [u.src[0] for u in reduce.toposort() if u.op is Ops.LOAD]
    for r in reversed(reduce.src[1:]):
        strides = lane_strides(reads, r)
        lanes = lanes_along(nest, r, machine)
        if lanes is None or 1 not in strides or not strides <= {0, 1}:
            continue
        registers = min(_registers_at_once(nest, machine), r.arg[1] // lanes)
        if not registers:
            continue
        step = registers * lanes
        whole = r.arg[1] // step * step
        if whole != r.arg[1]:
            nest, r = partition_reduce(nest, r, whole, numbers)
        return vectorize(nest, r, step, lanes, numbers)
    return nest


def _keep_exact(nest: Nest, numbers: Numbers, machine: Target) -> Nest:
    """Long sums of f32 in blocks. Those of a tile of accumulators, which fill the registers, in
    longer ones."""
    tile = prod(r.arg[1] for r in nest.loops if kind(r) == UNROLL)
    block = machine.exact_steps * (machine.exact_steps if tile > 4 else 1)
    for reduce in nest.reduces():
        plain = [r for r in reduce.src[1:] if kind(r) is None and r.arg[1] >= 2 * block]
        if plain and reduce.arg is Ops.ADD and reduce.dtype is dtypes.f32:
            blocked = sum_in_blocks(nest, plain[-1], block, numbers)
            return _keep_exact(blocked, numbers, machine)
    return nest


def _in_blocks(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    """Where the loop that is contiguous in memory is not the same for what is read and what is
    written (a transposed copy): blocks of both, so that each line of the cache is used up while it
    is there; the reads innermost.

        for i: for j: out[i, j] = a[j, i]  →  for io: for jo: for ji: for ii: ...

    Where it is the same, but an outer loop takes smaller steps through what is read than an inner
    one: the inner loop in blocks, the blocks outermost.

        for i: for j: for k: out[i, j, k] = a[j, i, k]  →  for jo: for i: for ji: for k: ...
    """
    written = next((r for r in nest.loops if access(nest.stored).stride(r) == 1), None)
    reads = [access(u) for u in nest.accesses() if u is not nest.stored]
    for r in nest.loops:
        if r.arg[1] >= machine.block and r is not written and \
                any(a.stride(r) == 1 and a.stride(written) not in (0, 1) for a in reads):
            return _in_square_blocks(nest, written, r, numbers, machine)
    for place in reversed(range(1, len(nest.loops))):
        r = nest.loops[place]
        far = any(0 < abs(a.stride(outer) or 0) < abs(a.stride(r) or 0)
                  for a in reads for outer in nest.loops[:place])
        if far and r.arg[1] >= 2 * machine.block:
            parts = []
            for part, step in pieces(nest, r, machine.block, numbers):
                if step == machine.block:
                    part, blocks, _ = split(part, part.loops[place], step, numbers)
                    part = Nest(part.store, (blocks, *[s for s in part.loops if s is not blocks]))
                parts.append(part)
            return parts
    return [nest]


def _in_square_blocks(nest: Nest, written: UOp, read: UOp, numbers: Numbers,
                      machine: Target) -> list[Nest]:
    """(..., written, read) → (..., read blocks, written blocks, in the block: written, read)."""
    others = [s for s in nest.loops if s not in (written, read)]
    place, parts = len(others), []
    for rows, height in pieces(Nest(nest.store, (*others, written, read)), written, machine.block,
                               numbers):
        rows, _, _ = split(rows, rows.loops[place], height, numbers)
        for part, width in pieces(rows, rows.loops[-1], machine.block, numbers):
            *around, inner_row, column = part.loops
            part, outer, inner = split(part, column, width, numbers)
            blocks = around[place:]  # of rows, if there are several
            order = (*around[:place], *[outer] * (outer is not None), *blocks, inner_row, inner)
            parts.append(Nest(part.store, order))
    return parts


def _unroll_innermost(nest: Nest, numbers: Numbers, machine: Target) -> Nest:
    """A loop that cannot be vectors at least needs fewer steps."""
    size = nest.loops[-1].arg[1] if nest.loops else 0
    factor = size if size <= machine.block else next((n for n in (8, 4, 2) if size % n == 0), 1)
    return split(nest, nest.loops[-1], factor, numbers, UNROLL)[0] if factor > 1 else nest


def _thread(nest: Nest, numbers: Numbers, machine: Target) -> Nest:
    """Share out the outermost loop that has a step for each thread, if the work pays for it."""
    work = prod(s.arg[1] for s in ranges_below(nest.store))
    work *= 1 + sum(u.op in ALU for u in nest.values())
    work //= max((s.arg[3] for s in ranges_below(nest.store) if kind(s) == VECTOR), default=1)
    plain = [r for r in nest.loops if kind(r) is None]
    if work < machine.min_threaded_work or machine.threads < 2 or not plain:
        return nest
    r = next((r for r in plain if r.arg[1] >= 2 * machine.threads), plain[0])
    nest = Nest(nest.store, (r, *[s for s in nest.loops if s is not r]))
    return mark(nest, r, numbers, THREAD)
