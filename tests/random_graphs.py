"""Random shape graphs, the same ones in every run: a seed makes a body."""

from __future__ import annotations

import numpy as np
from helpers import buffer

from uopc.dtype import ALL_DTYPES, DType, dtypes
from uopc.uop import Ops, UOp, prod

MAX_ELEMENTS = 150
SIZES = (1, 1, 2, 3, 4, 5, 7, 11)
REDUCTIONS = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MAXIMUM)


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Mostly small numbers, so that sums mean something, with a few extreme ones among them."""
    if dtype is dtypes.bool:
        return rng.random(shape) < 0.5
    if dtype.is_float:
        values = np.asarray(rng.standard_normal(shape) * 4).astype(dtype.np)
        extremes = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e8, 1e-8]
    else:
        values = rng.integers(0 if dtype.min == 0 else -9, 10, shape).astype(dtype.np)
        extremes = [dtype.min, dtype.max, 0]
    odd = rng.random(shape) < 0.05
    return np.where(odd, rng.choice(np.array(extremes, dtype.np), shape), values).astype(dtype.np)


def random_leaf(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> UOp:
    if len(shape) == 1 and dtype.is_int and rng.random() < 0.3:
        return UOp.iota(shape[0], dtype)
    return buffer(random_array(rng, shape, dtype), dtype)


def random_body(seed: int, dtype: DType) -> UOp:
    """A chain of movement, elementwise and reducing operations, deep enough to get entangled."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.choice(SIZES, rank))
    if rng.random() < 0.06:
        shape = (*shape[:-1], 0)
    if prod(shape) > MAX_ELEMENTS:
        shape = shape[:1]
    x = random_leaf(rng, shape, dtype)
    for _ in range(int(rng.integers(3, 10))):
        x = rng.choice(STEPS)(rng, x)
    return x if x.op is not Ops.BUFFER else x + 1


def reshape(rng: np.random.Generator, x: UOp) -> UOp:
    left, shape = prod(x.shape), []
    if left == 0:
        return x.reshape((*x.shape, 1))
    while left > 1 and len(shape) < 4:
        divisors = [d for d in range(1, left + 1) if left % d == 0]
        shape.append(int(rng.choice(divisors)))
        left //= shape[-1]
    return x.reshape((*shape, left))


def permute(rng: np.random.Generator, x: UOp) -> UOp:
    return x.permute([int(a) for a in rng.permutation(len(x.shape))])


def expand(rng: np.random.Generator, x: UOp) -> UOp:
    at = int(rng.integers(0, len(x.shape) + 1))
    n = int(rng.integers(1, 4))
    if prod(x.shape) * n > MAX_ELEMENTS or len(x.shape) > 4:
        return x
    with_one = x.reshape((*x.shape[:at], 1, *x.shape[at:]))
    return with_one.expand([n if a == at else m for a, m in enumerate(with_one.shape)])


def shrink(rng: np.random.Generator, x: UOp) -> UOp:
    bounds = []
    for n in x.shape:
        start = int(rng.integers(0, max(1, n)))
        stop = n - int(rng.integers(0, max(1, n - start)))
        bounds.append((start, stop) if rng.random() < 0.6 else (0, n))
    return x.shrink(bounds)


def pad(rng: np.random.Generator, x: UOp) -> UOp:
    pairs = [tuple(int(p) for p in rng.integers(0, 3, 2)) if rng.random() < 0.5 else (0, 0)
             for _ in x.shape]
    padded = x.pad(pairs)
    return padded if prod(padded.shape) <= MAX_ELEMENTS else x


def flip(rng: np.random.Generator, x: UOp) -> UOp:
    return x.flip([a for a in range(len(x.shape)) if rng.random() < 0.5])


def elementwise(rng: np.random.Generator, x: UOp) -> UOp:
    kind = int(rng.integers(0, 8))
    if kind == 0:
        return (x < 2).where(x * 3, x + 1)
    if kind == 1:
        return x + random_leaf(rng, x.shape, x.dtype)
    if kind == 2:
        return x.alu(Ops.MAX, x.flip(range(len(x.shape))))
    if kind == 3:
        return x.alu(Ops.MAXIMUM, random_leaf(rng, x.shape, x.dtype)) * x
    if kind == 4 and x.dtype is not dtypes.bool:
        return x.alu(Ops.IDIV if rng.random() < 0.5 else Ops.MOD,
                     random_leaf(rng, x.shape, x.dtype))
    if kind == 5 and x.dtype is not dtypes.bool:
        return x // int(rng.integers(1, 5)) + x % int(rng.integers(1, 5))
    if kind == 6:
        other = ALL_DTYPES[int(rng.integers(0, len(ALL_DTYPES)))]
        return (x.cast(other) + 1).cast(x.dtype)
    return x * 2 + 1


def reduce(rng: np.random.Generator, x: UOp) -> UOp:
    n = int(rng.integers(0, len(x.shape) + 1))
    return x.reduce(REDUCTIONS[int(rng.integers(0, 4))], min(n, 2))


def gather(rng: np.random.Generator, x: UOp) -> UOp:
    """Rows at random, some of them out of range."""
    if not x.shape or prod(x.shape[1:]) * 4 > MAX_ELEMENTS:
        return x
    kind = dtypes.i32 if rng.random() < 0.5 else dtypes.i64
    rows = rng.integers(-1, x.shape[0] + 1, int(rng.integers(1, 5)))
    return UOp(Ops.GATHER, (x, buffer(rows, kind)))


def stage(rng: np.random.Generator, x: UOp) -> UOp:
    return x.stage()


STEPS = [reshape, permute, expand, shrink, pad, flip, elementwise, elementwise, elementwise, reduce,
         gather, stage]
