"""The slow interpreter: what a graph means, in NumPy, before and after each pass. In: roots of a
shape graph, or a SINK of loops at any stage. Out: the values; nothing is compiled.

It is the oracle of the tests: a pass is right when both sides of it give the same arrays.

    interpret_graph([a * 2 + 1])[0]  ==  what interpret_loops(lower(a * 2 + 1, out), ...) stores

Sums are taken one element after the other, in the order of the loops, so floats agree to the bit.
"""
from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from uopc.alu import apply_alu, constant_array
from uopc.composite import buffer_data
from uopc.ops import ALU, MOVEMENT
from uopc.uop import IDENTITY, Ops, UOp, prod

Array = np.ndarray
Point = dict[UOp, int]  # the value of each open RANGE


def interpret_graph(roots: Sequence[UOp], data: Mapping[UOp, Array] | None = None) -> list[Array]:
    """The value of each root. A BUFFER's array comes from `data`, else from the buffer itself.

    Raises ValueError for a buffer without data and for an op that no shape graph has.
    """
    data, values = data or {}, {}
    for u in UOp(Ops.SINK, tuple(roots)).toposort()[:-1]:
        if u.op is Ops.BUFFER:
            values[u] = np.asarray(data[u] if u in data else buffer_data(u)).reshape(u.shape)
        else:
            values[u] = _node_value(u, [values[s] for s in u.src])
    return [np.array(values[root]) for root in roots]


def _node_value(u: UOp, src: list[Array]) -> Array:
    if u.op in ALU:
        return apply_alu(u.op, src, u.dtype)
    if u.op is Ops.CONST:
        return constant_array(u)
    if u.op is Ops.IOTA:
        return np.arange(u.arg[0]).astype(u.dtype.np)
    if u.op is Ops.GATHER:
        return _gather(*src, u)
    if u.op is Ops.SCATTER:
        return _scatter(*src, u)
    if u.op in MOVEMENT:
        return _moved(u, *src)
    if u.op is Ops.STAGE:
        return src[0]
    if u.op is Ops.REDUCE:
        x, (op, n) = src[0], u.arg
        if prod(x.shape[x.ndim - n:]) == 1:  # no loop: a lone -0.0 stays, 0.0 + -0.0 would not
            return x.reshape(u.shape)
        return _fold(op, x, n, u)
    raise ValueError(f"{u!r} does not belong to a shape graph")


def _moved(u: UOp, x: Array) -> Array:
    arg = u.arg
    if u.op is Ops.RESHAPE:
        return x.reshape(arg)
    if u.op is Ops.EXPAND:
        return np.broadcast_to(x, arg)
    if u.op is Ops.PERMUTE:
        return x.transpose(arg)
    if u.op is Ops.SHRINK:
        return x[tuple(slice(start, stop) for start, stop in arg)]
    if u.op is Ops.PAD:
        return np.pad(x, arg) if x.ndim else x
    return np.flip(x, arg)


def _fold(op: Ops, x: Array, n: int, u: UOp) -> Array:
    """Combine the last `n` axes, one element after the other, from the identity on."""
    x = x.reshape((*x.shape[:x.ndim - n], prod(x.shape[x.ndim - n:])))
    total = np.full(x.shape[:-1], IDENTITY[op](u.dtype), u.dtype.np)
    for k in range(x.shape[-1]):
        total = apply_alu(op, [total, x[..., k]], u.dtype)
    return total


def _gather(x: Array, rows: Array, u: UOp) -> Array:
    """Rows of `x`; zeros for an index out of range."""
    inside = (rows >= 0) & (rows < len(x))
    out = np.zeros(u.shape, x.dtype)
    out[inside] = x[rows[inside]]
    return out


def _scatter(rows: Array, x: Array, u: UOp) -> Array:
    inside = (rows >= 0) & (rows < u.arg)
    out = np.zeros(u.shape, x.dtype)
    np.add.at(out, rows[inside], x[inside])
    return out


# *** loops ***


def interpret_loops(sink: UOp, arrays: Mapping[int, Array]) -> None:
    """Run a SINK on flat C-contiguous arrays, keyed by the slots of its BUFFERs, in place.

    Takes any stage of `rangeify`, with REDUCE or with accumulators. Raises IndexError for an
    access outside an array, KeyError for a read of an accumulator that nothing has set.
    """
    _Loops(sink, arrays).run()


class _Loops:
    """What depends on no statement is computed for all loop counters at once (`whole`), the rest
    step by step in the order that the graph asks for (`steps`)."""

    def __init__(self, sink: UOp, arrays: Mapping[int, Array]) -> None:
        self.sink, self.arrays = sink, arrays
        self.axes: dict[UOp, tuple[UOp, ...]] = {}  # the RANGEs that each node depends on
        self.whole: dict[UOp, Array] = {}           # one array axis for each of them
        self.memo: dict[tuple, Any] = {}
        self.accumulators: dict[tuple, Array] = {}
        order = sink.toposort()
        written = {u.src[0].src[0] for u in order if u.op is Ops.STORE and u.src[0].op is Ops.INDEX}
        for u in order:
            below = {r for s in u.src for r in self.axes[s]}
            below |= {u} if u.op is Ops.RANGE else set()
            below -= set(u.src[1:]) if u.op in (Ops.END, Ops.REDUCE) else set()
            self.axes[u] = tuple(sorted(below, key=lambda r: r.arg[0]))
            if self.is_pure(u, written):
                self.whole[u] = self.whole_value(u)

    def is_pure(self, u: UOp, written: set[UOp]) -> bool:
        """True when no statement can change the value."""
        if u.op is Ops.LOAD:
            index = u.src[0]
            return len(u.src) == 1 and index.op is Ops.INDEX and index.src[0] not in written \
                and all(s in self.whole for s in index.src[1:])
        return u.op in (Ops.CONST, Ops.RANGE) or (
            (u.op in ALU or u.op is Ops.REDUCE) and all(s in self.whole for s in u.src))

    def whole_value(self, u: UOp) -> Array:
        if u.op is Ops.CONST:
            return _node_value(u, [])
        if u.op is Ops.RANGE:
            return np.arange(u.arg[1], dtype=u.dtype.np)
        if u.op in ALU:
            return apply_alu(u.op, [self.spread(s, self.axes[u]) for s in u.src], u.dtype)
        if u.op is Ops.LOAD:
            buffer, *parts = u.src[0].src
            flat, *gate = (self.spread(s, self.axes[u]) for s in parts)
            return self.read(buffer, flat, gate[0] if gate else np.asarray(True))
        value, *ranges = u.src
        axes = (*self.axes[u], *ranges)
        full = np.broadcast_to(self.spread(value, axes), [r.arg[1] for r in axes])
        return _fold(u.arg, full, len(ranges), u)

    def spread(self, u: UOp, axes: tuple[UOp, ...]) -> Array:
        """A node's values along `axes`; size 1 along those that it does not depend on."""
        own = self.axes[u]
        value = self.whole[u].transpose([own.index(r) for r in axes if r in own])
        return value[tuple(slice(None) if r in own else None for r in axes)]

    def read(self, buffer: UOp, flat: Array, gate: Array) -> Array:
        """The elements at `flat`, or 0 where the gate is shut."""
        flat, gate = np.broadcast_arrays(flat, gate)
        array = self.arrays[buffer.arg.slot]
        self.check(buffer, flat[gate])
        out = np.zeros(flat.shape, array.dtype)
        out[gate] = array[flat[gate]]
        return out

    def check(self, buffer: UOp, flat: Array) -> None:
        size = self.arrays[buffer.arg.slot].size
        wrong = flat[(flat < 0) | (flat >= size)]
        if wrong.size:
            raise IndexError(f"index {wrong.flat[0]} is outside {buffer!r}, an array of {size}")

    # *** statement by statement ***

    def run(self) -> None:
        """Answer what the generators of `steps` ask for, with a stack in place of recursion."""
        stack = [(self.key(self.sink, {}), self.steps(self.sink, {}))]
        answer: Any = None
        while stack:
            key, steps = stack[-1]
            try:
                node, point = steps.send(answer)
            except StopIteration as finished:
                answer = self.memo[key] = finished.value
                stack.pop()
                continue
            wanted = self.key(node, point)
            if node in self.whole:
                answer = self.whole[node][wanted[1:]]
            elif wanted in self.memo:
                answer = self.memo[wanted]
            else:
                answer = None
                stack.append((wanted, self.steps(node, point)))

    def key(self, u: UOp, point: Point) -> tuple:
        """A node runs once for each value of the RANGEs that it depends on."""
        return (u, *[point[r] for r in self.axes[u]])

    def steps(self, u: UOp, point: Point) -> Generator[tuple[UOp, Point], Any, Any]:
        """Run `u`. Yields the nodes that must run before, and where; returns its value."""
        if u.op in (Ops.END, Ops.REDUCE):
            inner, *ranges = u.src
            total = None if u.op is Ops.END else np.asarray(IDENTITY[u.arg](u.dtype), u.dtype.np)
            for s in u.toposort():  # what no loop repeats runs even if the loop never does
                if s.op is Ops.STORE and all(r in point for r in self.axes[s]):
                    yield s, point
            for at in itertools.product(*(range(r.arg[1]) for r in ranges)):
                value = yield inner, {**point, **dict(zip(ranges, at, strict=True))}
                total = apply_alu(u.arg, [total, value], u.dtype) if u.op is Ops.REDUCE else None
            return total
        memory = u.op in (Ops.LOAD, Ops.STORE)
        values = []
        for s in u.src[1:] if memory else u.src:
            values.append((yield s, point))
        if u.op in ALU:
            return apply_alu(u.op, values, u.dtype)
        if not memory:
            return None  # a SINK
        where = []
        for s in u.src[0].src[1:] if u.src[0].op is Ops.INDEX else ():
            where.append((yield s, point))
        cells, at = self.cell(u.src[0], where, point)
        if u.op is Ops.LOAD:
            return np.asarray(0, u.dtype.np) if at is None else cells[at]
        if at is not None:
            cells[at] = values[0]
        return None

    def cell(self, place: UOp, where: list[Array], point: Point) -> tuple[Any, Any]:
        """What a LOAD or STORE goes to, and the key there; None behind a shut gate."""
        if place.op is Ops.ACC:
            return self.accumulators, self.key(place, point)
        if len(where) == 2 and not where[1]:
            return None, None
        self.check(place.src[0], np.asarray(where[0]))
        return self.arrays[place.src[0].arg.slot], int(where[0])
