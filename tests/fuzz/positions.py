"""Movement of more than 2**31 elements: chains of it, against Python's integers.

Nothing of that size is computed: what a kernel stores, and where, is evaluated at a few steps of
its loops, on memory that is a function of the position.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tests.fuzz.harness import Case
from uopc.alu import apply_alu, constant_array
from uopc.bounds import bounds, cannot_wrap
from uopc.dtype import DType, dtypes
from uopc.linearize import ranges_below
from uopc.ops import ALU
from uopc.pretty import pretty
from uopc.rangeify import lower
from uopc.uop import VECTOR, Ops, ParamArg, UOp, kind, prod

COUNT, STRIDE = 5_000, 150
Array = np.ndarray
Memory = Mapping[int, Callable[[Array], Array]]
SAMPLES = 24  # steps of each loop that are looked at: both ends, and some between
LIMIT = 2**31


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    for number in range(count):
        body, source = chain(rng)
        sink = lower(body, memory(1, body.shape, body.dtype), number % 2)
        ending, output = "right", ""
        try:
            assert_no_index_wraps(sink)
            for position, value in stored(sink, {0: lambda at: at + 1}, rng):
                assert value == source(position), f"{value} at {position}, not {source(position)}"
        except AssertionError as wrong:
            ending, output = "wrong", str(wrong)
        yield Case(f"level {number % 2}:\n{pretty(body)}", ending, output)


def memory(slot: int, shape: Sequence[int], dtype: DType = dtypes.i64) -> UOp:
    """A BUFFER without an array."""
    return UOp(Ops.BUFFER, (), ParamArg(slot, dtype, tuple(shape), "kernel"))


def values_at(root: UOp, points: Mapping[UOp, Array], read: Memory) -> dict[UOp, Array]:
    """The value of each node below `root` where the loops are at `points`."""
    values = dict(points)
    for u in root.toposort():
        if u.op is Ops.CONST:
            values[u] = constant_array(u)
        elif u.op is Ops.LOAD:
            buffer, at, *gate = u.src[0].src
            is_open = values[gate[0]] if gate else np.True_
            inside = (0 <= values[at]) & (values[at] < prod(buffer.shape))
            assert np.all(inside | ~is_open), f"{u!r} reads outside of {buffer!r}"
            found = read[buffer.arg.slot](values[at].astype(np.int64)).astype(u.dtype.np)
            values[u] = np.where(is_open, found, np.zeros((), u.dtype.np))
        elif u.op in ALU:
            values[u] = apply_alu(u.op, [values[s] for s in u.src], u.dtype)
    return values


def stored(sink: UOp, read: Memory, rng: random.Random) -> Iterator[tuple[int, int]]:
    """(position, value) of some of what the loops store; each element must be stored once."""
    total = 0
    stores = [u for u in sink.toposort() if u.op is Ops.STORE]
    for store in stores:
        ranges = sorted(ranges_below(store), key=lambda r: r.arg[0])
        total += prod(r.arg[1] for r in ranges)
        points = {r: np.array([rng.choice([0, r.arg[1] - 1, rng.randrange(r.arg[1])])
                               for _ in range(SAMPLES)]).astype(r.dtype.np) for r in ranges}
        values = values_at(store, points, read)
        at = np.broadcast_to(values[store.src[0].src[1]], SAMPLES)
        yield from zip(at.tolist(), np.broadcast_to(values[store.src[1]], SAMPLES).tolist(),
                       strict=True)
    assert total == prod(stores[0].src[0].src[0].shape)


def assert_no_index_wraps(sink: UOp) -> None:
    """As the intervals have it, no address leaves its type; nor do the loops' counters."""
    for index in (u for u in sink.toposort() if u.op is Ops.INDEX):
        for u in index.src[1].toposort(stop=lambda u: u.op is Ops.LOAD):
            if u.op in (Ops.ADD, Ops.MUL):
                assert cannot_wrap(u), u
            elif u.op is Ops.CAST and not u.src[0].dtype.is_float:
                low, high = bounds(u.src[0])
                assert u.dtype.min <= low and high <= u.dtype.max, u
            elif u.op is Ops.RANGE:
                assert (u.arg[3] if kind(u) == VECTOR else u.arg[1]) <= u.dtype.max


# *** chains of movement ***

SHAPES = [(3, 800_000_000), (2**31 + 5,), (46341, 46341), (46340, 46340), (1, 70_000, 1, 70_001),
          (2, 3, 5, 7, 2**27), (2**16, 2**16), (2**31 - 1,), (1, 2**20, 2**12 + 1)]
Step = Callable[[tuple[int, ...]], tuple[int, ...] | None]  # where an element comes from


def unravel(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    index = []
    for n in reversed(shape):
        position, rest = divmod(position, n)
        index.append(rest)
    return tuple(reversed(index))


def ravel(index: Sequence[int], shape: Sequence[int]) -> int:
    position = 0
    for i, n in zip(index, shape, strict=True):
        position = position * n + i
    return position


def before_padding(index: tuple[int, ...], pairs: Sequence[tuple[int, int]],
                   shape: Sequence[int]) -> tuple[int, ...] | None:
    source = tuple(k - before for k, (before, _) in zip(index, pairs, strict=True))
    return source if all(0 <= k < n for k, n in zip(source, shape, strict=True)) else None


def moved(u: UOp, rng: random.Random) -> tuple[UOp, Step]:
    """A random movement operation on `u`, and its meaning in Python's integers."""
    shape, choice = u.shape, rng.randrange(6)
    if choice == 0:
        factors, n = [], prod(shape)
        for k in (2, 3, 5, 7, 16, 46341, 4099, 2**12 + 1):
            if n % k == 0 and rng.random() < 0.6:
                factors.append(k)
                n //= k
        new = [*factors, n, *[1] * rng.randrange(2)]
        rng.shuffle(new)
        return u.reshape(new), lambda i: unravel(ravel(i, new), shape)
    if choice == 1:
        order = rng.sample(range(len(shape)), len(shape))
        return u.permute(order), lambda i: tuple(i[order.index(a)] for a in range(len(shape)))
    if choice == 2:
        axes = [a for a in range(len(shape)) if rng.random() < 0.5]
        return u.flip(axes), lambda i: tuple(
            n - 1 - k if a in axes else k for a, (k, n) in enumerate(zip(i, shape, strict=True)))
    if choice == 3:
        pairs = [(rng.choice([0, 0, 1, n // 3, 1000]), rng.choice([0, 0, 1, n // 2]))
                 for n in shape]
        return u.pad(pairs), lambda i: before_padding(i, pairs, shape)
    if choice == 4:
        cuts = [sorted((rng.choice([0, n // 3]), rng.choice([n, n - n // 7]))) for n in shape]
        return u.shrink(cuts), lambda i: tuple(k + a for k, (a, _) in zip(i, cuts, strict=True))
    new = [rng.choice([1, 3, 5000]) if n == 1 else n for n in shape]
    return u.expand(new), lambda i: tuple(0 if n == 1 else k for k, n in zip(i, shape, strict=True))


def chain(rng: random.Random) -> tuple[UOp, Callable[[int], int]]:
    """(a graph over memory 0 or a count from 0, which position it shows at each position, from 1
    on; 0 where it shows none)."""
    shape = rng.choice(SHAPES)
    u = rng.choice([memory(0, shape), UOp.iota(prod(shape)).reshape(shape).cast(dtypes.i64) + 1])
    steps: list[Step] = []
    for _ in range(rng.randrange(1, 6)):
        new, step = moved(u, rng)
        if new is not u and 0 < prod(new.shape) < 2**45:
            u = new
            steps.append(step)
    result = u

    def source(position: int) -> int:
        index = unravel(position, result.shape)
        for step in reversed(steps):
            if (index := step(index)) is None:
                return 0
        return ravel(index, shape) + 1

    return u, source
