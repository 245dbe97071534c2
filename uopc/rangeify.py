"""Shape graph → loops. In: one kernel's body, which reads only BUFFERs. Out: a SINK of stores in
loops. Afterwards there are no movement operations, no shapes and no REDUCE over axes.

A value is asked for *at an index*: each movement operation only changes the index that is passed
on to its source, so all of them vanish.

    out (2, 4) = a.permute((1, 0)) * 2
    →  END(STORE(INDEX(out, r0*4 + r1), MUL(LOAD(INDEX(a, r1*2 + r0)), 2)), r0, r1)

This is the first of the passes that `passes.py` lists.
"""
from __future__ import annotations

from collections.abc import Generator

from uopc.bounds import bounds
from uopc.dtype import DType, dtypes, index_dtype, promote
from uopc.ops import ALU, MOVEMENT
from uopc.simplify import simplify
from uopc.uop import Ops, UOp, prod

Index = tuple[UOp, ...]
Request = tuple[UOp, Index, UOp | None]  # the value of a node, at an index, where a gate is open


def lower(body: UOp, out: UOp, opt: int | None = None) -> UOp:
    """The loops that compute `body` into the BUFFER `out`, as a SINK that `render_c` takes.

    `opt` is the optimizer level, None meaning 0. Raises ValueError or TypeError where `out` does
    not fit the body.
    """
    from uopc.passes import run_passes  # the passes are this module's, and others'

    if out.op is not Ops.BUFFER or prod(out.shape) != prod(body.shape):
        raise ValueError(f"the output must be a BUFFER of {body.shape}, got {out!r}")
    if out.dtype is not body.dtype:
        raise TypeError(f"a body of {body.dtype} cannot be stored in a buffer of {out.dtype}")
    return run_passes(UOp(Ops.SINK, (UOp(Ops.STORE, (out, body)),)), opt or 0)


def lower_movement(kernel: UOp, narrowest: DType = dtypes.i32) -> UOp:
    """STORE(out, body) → loops: every value gets its index, REDUCE becomes one over ranges.

    Indices are of the type `narrowest`, or i64 where i32 cannot hold them.
    """
    out, body = kernel.src[0].src
    lowering = _Lowering(body, narrowest)
    loops = lowering.store_all(body, out)
    return loops if lowering.fits else lower_movement(kernel, dtypes.i64)


def movement_index(u: UOp, index: Index) -> tuple[Index, list[UOp]]:
    """Where in its source a movement operation finds the element at `index`, and the conditions
    under which it is there at all (PAD). This is the whole meaning of the movement operations."""
    source = u.src[0].shape
    if u.op is Ops.RESHAPE:
        return _reshaped(index, u.shape, source), []
    if u.op is Ops.EXPAND:
        return tuple(UOp.const(0, i.dtype) if n == 1 else i
                     for i, n in zip(index, source, strict=True)), []
    if u.op is Ops.PERMUTE:
        return tuple(index[u.arg.index(axis)] for axis in range(len(source))), []
    if u.op is Ops.SHRINK:
        return tuple(i + start for i, (start, _) in zip(index, u.arg, strict=True)), []
    if u.op is Ops.FLIP:
        return tuple(i * -1 + (n - 1) if axis in u.arg else i
                     for axis, (i, n) in enumerate(zip(index, source, strict=True))), []
    conditions = []
    for i, (before, after), n in zip(index, u.arg, source, strict=True):
        conditions += [UOp.const(before - 1, i.dtype) < i] if before else []
        conditions += [i < before + n] if after else []
    return tuple(i + -before for i, (before, _) in zip(index, u.arg, strict=True)), conditions


def flatten(index: Index, shape: tuple[int, ...]) -> UOp:
    """Row-major position of `index` in `shape`."""
    flat, stride = None, 1
    for i, n in zip(reversed(index), reversed(shape), strict=True):
        if n != 1:
            part = i * stride
            flat = part if flat is None else part + flat
        stride *= n
    return UOp.const(0, index[0].dtype if index else dtypes.i32) if flat is None else flat


def unflatten(flat: UOp, shape: tuple[int, ...]) -> Index:
    """The index in `shape` of the row-major position `flat`."""
    index, stride, whole = [], 1, prod(shape)
    for n in reversed(shape):
        if n == 1:
            index.append(UOp.const(0, flat.dtype))
        else:  # the first digit is what is left
            index.append(flat // stride % n if stride * n < whole else flat // stride)
        stride *= n
    return tuple(reversed(index))


def _reshaped(index: Index, new: tuple[int, ...], old: tuple[int, ...]) -> Index:
    """Where the element at `index` in a reshape from `old` to `new` comes from: each group of axes
    by itself, so that what one index is in doubt of (in padding, say) leaves the others alone."""
    found: Index = ()
    for before, after in regrouped(old, new):
        flat = flatten(tuple(index[a] for a in after), tuple(new[a] for a in after))
        found += unflatten(flat, tuple(old[b] for b in before))
    return found


def regrouped(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The axes of a reshape in the smallest groups of equal size: (axes of old, axes of new)."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        before, after, sizes = [], [], [1, 1]
        while not before or not after or sizes[0] != sizes[1]:
            if i < len(old) and (sizes[0] < sizes[1] or not before or j == len(new)):
                before.append(i)
                sizes[0] *= old[i]
                i += 1
            elif j < len(new):
                after.append(j)
                sizes[1] *= new[j]
                j += 1
            else:
                break
        groups.append((before, after))
    return groups


class _Lowering:
    """The state of one `lower_movement`: range numbers, and what was lowered already."""

    def __init__(self, body: UOp, narrowest: DType) -> None:
        largest = max(prod(u.shape) for u in body.toposort())
        self.index_dtype = promote(narrowest, index_dtype(largest))
        self.fits = True  # False once a position, be it one behind a shut gate, may wrap around
        self.range_count = 0
        self.values: dict[Request, UOp] = {}

    def new_ranges(self, shape: tuple[int, ...]) -> Index:
        """A loop for each axis; an axis of size 1 needs none."""
        index = []
        for n in shape:
            if n == 1:
                index.append(UOp.const(0, self.index_dtype))
                continue
            index.append(UOp(Ops.RANGE, (), (self.range_count, n)).cast(self.index_dtype))
            self.range_count += 1
        return tuple(index)

    def store_all(self, body: UOp, out: UOp) -> UOp:
        if 0 in body.shape:  # not even a store that no loop repeats may touch an empty array
            return UOp(Ops.SINK)
        index = self.new_ranges(body.shape)
        target = UOp(Ops.INDEX, (out, simplify(flatten(index, body.shape))))
        if body.op is Ops.SCATTER:
            zeroed = _end(UOp(Ops.STORE, (target, UOp.const(0, out.dtype))), index)
            if 0 in body.src[1].shape:
                return UOp(Ops.SINK, (zeroed,))
            return UOp(Ops.SINK, (self.scatter(body, out, zeroed),))
        value = self.value((body, index, None))
        return UOp(Ops.SINK, (_end(UOp(Ops.STORE, (target, value)), index),))

    def scatter(self, body: UOp, out: UOp, zeroed: UOp) -> UOp:
        """for i, c: out[index[i], c] += x[i, c]. An index that is out of range adds nothing."""
        index, x = body.src
        at = self.new_ranges(x.shape)
        row = self.value((index, at[:len(index.shape)], None))
        inside = self.inside(row, body.arg)
        place = self.row_or_first(row, inside), *at[len(index.shape):]
        target = UOp(Ops.INDEX, (out, simplify(flatten(place, body.shape))))
        loops = tuple(r for i in at for r in _ranges(i))
        so_far = UOp(Ops.LOAD, (target, zeroed, *loops))
        added = inside.where(self.value((x, at, None)), UOp.const(0, x.dtype))
        return _end(UOp(Ops.STORE, (target, so_far + added)), at)

    def position(self, i: UOp) -> UOp:
        i = simplify(i.cast(self.index_dtype))
        self.fits &= i.dtype is dtypes.i64 or bounds(i) != (i.dtype.min, i.dtype.max)
        return i

    def inside(self, row: UOp, rows: int) -> UOp:
        conditions = [UOp.const(-1, row.dtype) < row] if row.dtype.min < 0 else []
        if rows <= row.dtype.max:
            conditions.append(row < UOp.const(rows, row.dtype))
        return self.all_of(conditions, None) or UOp.const(True, dtypes.bool)

    def row_or_first(self, row: UOp, inside: UOp) -> UOp:
        """An index that is in range in any case."""
        safe = inside.where(row, UOp.const(0, row.dtype))
        return simplify(safe.cast(self.index_dtype))

    def value(self, root: Request) -> UOp:
        """Run `lower_node` on `root` and on all that it asks for, without recursion."""
        stack = [(root, self.lower_node(*root))]
        answer: UOp | None = None
        while stack:
            request, steps = stack[-1]
            try:
                wanted = steps.send(answer)
            except StopIteration as finished:
                answer = self.values[request] = finished.value
                stack.pop()
                continue
            answer = self.values.get(wanted)
            if answer is None:
                stack.append((wanted, self.lower_node(*wanted)))
        return self.values[root]

    def lower_node(self, u: UOp, index: Index, gate: UOp | None) -> Generator[Request, UOp, UOp]:
        """The value of `u` at `index`. Yields what it needs to know of other nodes."""
        if 0 in u.shape:  # no loop ever gets to an element; a load would be moved out of its loop
            return UOp.const(0, u.dtype)
        if u.op is Ops.CONST:
            return u
        if u.op is Ops.IOTA:
            return index[0].cast(u.dtype)
        if u.op is Ops.BUFFER:
            flat = self.position(flatten(index, u.shape))
            return UOp(Ops.LOAD, (UOp(Ops.INDEX, (u, flat) if gate is None else (u, flat, gate)),))
        if u.op in ALU:
            values = []
            for s in u.src:
                values.append((yield s, index if s.shape else (), gate))
            return UOp(u.op, tuple(values), u.arg)
        if u.op in MOVEMENT:
            moved, conditions = movement_index(u, index)
            moved = tuple(map(self.position, moved))
            valid = self.all_of(conditions, None)
            value = yield u.src[0], moved, self.all_of(conditions, gate)
            return value if valid is None else valid.where(value, UOp.const(0, u.dtype))
        if u.op is Ops.STAGE:
            return (yield u.src[0], index, gate)
        if u.op is Ops.REDUCE:
            op, n = u.arg
            inner = self.new_ranges(u.src[0].shape[-n:])
            value = yield u.src[0], index + inner, gate
            ranges = tuple(r for i in inner for r in _ranges(i))
            return UOp(Ops.REDUCE, (value, *ranges), op) if ranges else value
        if u.op is Ops.GATHER:
            x, rows = u.src
            split = len(rows.shape)
            row = yield rows, index[:split], gate
            inside = self.inside(row, x.shape[0])
            value = yield x, (self.row_or_first(row, inside), *index[split:]), gate
            return inside.where(value, UOp.const(0, u.dtype))
        raise ValueError(f"{u!r} cannot be inside a kernel")

    def all_of(self, conditions: list[UOp], gate: UOp | None) -> UOp | None:
        """The conjunction; None when it always holds."""
        for condition in conditions:
            gate = condition if gate is None else gate & condition
        gate = None if gate is None else simplify(gate)
        return None if gate is not None and gate.op is Ops.CONST and gate.arg.value else gate


def _ranges(i: UOp) -> list[UOp]:
    """The RANGE behind a loop index; none for an axis of size 1."""
    return [u for u in i.toposort() if u.op is Ops.RANGE]


def _end(statement: UOp, index: Index) -> UOp:
    loops = tuple(r for i in index for r in _ranges(i))
    return UOp(Ops.END, (statement, *loops)) if loops else statement
