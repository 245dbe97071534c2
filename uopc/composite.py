"""What is written in terms of UOps but needs no Tensor: buffers and their arrays, and the
operations that are expressions of simpler ones.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from uopc.bounds import bounds
from uopc.dtype import DType, dtypes, from_np
from uopc.uop import Ops, ParamArg, UOp

LOG2_E = math.log2(math.e)
LN_2 = math.log(2)

_slots = itertools.count(1)


def new_buffer(dtype: DType, size: int, data: np.ndarray | None = None) -> UOp:
    """A fresh BUFFER of `size` elements, of shape (size,), which owns `data`, or an array that is
    made for it and whose content is undefined. Raises ValueError or TypeError for data of another
    size or dtype."""
    if data is None:
        data = np.empty(size, dtype.np)
    if data.size != size:
        raise ValueError(f"a buffer of {size} elements cannot own {data.size} of shape "
                         f"{data.shape}")
    if data.dtype != dtype.np:
        raise TypeError(f"a buffer of {dtype} needs an array of {dtype.np}, got {data.dtype}")
    return array_buffer(data if data.shape == (size,) else data.reshape(size))


def array_buffer(array: np.ndarray) -> UOp:
    """A fresh BUFFER that owns `array` (not copied; made C-contiguous if it is not)."""
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).reshape(array.shape)
    buffer = UOp(Ops.BUFFER, (), ParamArg(next(_slots), from_np(array.dtype), array.shape))
    buffer.__dict__["np"] = array
    return buffer


def base_buffer(u: UOp) -> UOp:
    """The BUFFER at the bottom of a chain of RESHAPEs. Raises ValueError if there is none."""
    base = u
    while base.op is Ops.RESHAPE:
        base = base.src[0]
    if base.op is not Ops.BUFFER:
        raise ValueError(f"{u!r} is not a contiguous buffer: below its RESHAPEs lies {base!r}")
    return base


def is_contiguous_buffer(u: UOp) -> bool:
    """True for a BUFFER, or a chain of RESHAPEs on one."""
    while u.op is Ops.RESHAPE:
        u = u.src[0]
    return u.op is Ops.BUFFER


def buffer_data(u: UOp) -> np.ndarray:
    """The array of a contiguous buffer, in its shape. Raises ValueError if it has none."""
    base = u if u.op is Ops.BUFFER else base_buffer(u)
    array = base.__dict__.get("np")
    if array is None:
        raise ValueError(f"{base!r} has no data")
    return array if base is u else array.reshape(u.shape)


# *** expressions ***


def exp(x: UOp) -> UOp:
    return (x * LOG2_E).exp2()


def log(x: UOp) -> UOp:
    return x.log2() * LN_2


def power(base: UOp, exponent: UOp) -> UOp:
    """base ** exponent, both of one dtype, exponents of integers not negative. Integers (bools as
    i32) and constant whole exponents from 0 to 16 multiply, others follow C's pow."""
    n = exponent.arg.value if exponent.op is Ops.CONST else None
    if base.dtype is dtypes.bool:
        base, exponent = base.cast(dtypes.i32), exponent.cast(dtypes.i32)
    if n is not None and (base.dtype.is_int or n in range(17)):
        return _constant_power(base, int(n))
    if not base.dtype.is_float:
        return _integer_power(base, exponent)
    if n == 0.5:
        return base.sqrt()
    return base.reciprocal() if n == -1 else base.alu(Ops.POW, exponent)


def _constant_power(x: UOp, n: int) -> UOp:
    """By squaring; x**0 is a 1 that depends on `x`, so that it has a gradient: 0."""
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        square = square * square if n else square
    one = UOp.const(1, x.dtype)
    return x.eq(x).where(one, one) if result is None else result


def _integer_power(x: UOp, exponent: UOp) -> UOp:
    """By squaring: for each bit that an exponent may have, a factor that is a square or 1."""
    result, square = None, broadcast(x, exponent.shape)  # the base may be a constant
    for bit in range(max(1, bounds(exponent)[1].bit_length())):
        factor = (exponent & 1 << bit).ne(0).where(square, 1)
        result = factor if result is None else result * factor
        square = square * square
    return result


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """NumPy's broadcasting. Raises ValueError that names the shapes."""
    if len(set(shapes)) == 1:  # the common case, and np.broadcast_shapes is slow
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError("shapes do not broadcast: " + " and ".join(map(str, shapes))) from None


def broadcast(x: UOp, shape: tuple[int, ...]) -> UOp:
    """`x` repeated to `shape`, with axes added in front."""
    if x.shape == shape:
        return x
    return x.reshape((1,) * (len(shape) - len(x.shape)) + x.shape).expand(shape)


def reduce_axes(x: UOp, op: Ops, axes: Sequence[int], keepdim: bool = False) -> UOp:
    """Combine `axes` (non-negative) with `op`, wherever they stand."""
    kept = [a for a in range(len(x.shape)) if a not in axes]
    result = x.permute((*kept, *sorted(axes))).reduce(op, len(axes))
    return result.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) \
        if keepdim else result


def matmul(a: UOp, b: UOp) -> UOp:
    """(..., n, k) @ (..., k, m): a multiplication over (..., n, m, k), the last axis summed."""
    *_, n, k = a.shape
    m = b.shape[-1]
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    rank = len(b.shape)
    left = a.reshape((*a.shape[:-1], 1, k))
    right = b.permute((*range(rank - 2), rank - 1, rank - 2)).reshape((*b.shape[:-2], 1, m, k))
    full = (*batch, n, m, k)
    return (broadcast(left, full) * broadcast(right, full)).reduce(Ops.ADD, 1)
