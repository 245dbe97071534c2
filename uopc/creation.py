"""How a Tensor comes to be without data: filled, counted, drawn at random."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from uopc import random
from uopc.composite import broadcast
from uopc.dtype import DType, DTypeLike, Number, as_dtype, dtypes, promote
from uopc.elementwise import constant
from uopc.movement import shape_argument
from uopc.uop import UOp

if TYPE_CHECKING:
    from uopc.tensor import Tensor


class Creation:
    """Mixed into Tensor."""

    @classmethod
    def _made(cls, uop: UOp, requires_grad: bool) -> Tensor:
        """A created tensor; one that wants gradients becomes data, hence distinct from equals."""
        tensor = cls._of(uop)
        if requires_grad:
            tensor = cls(tensor)
            tensor.requires_grad = True
        return tensor

    @classmethod
    def full(cls, shape: Sequence[int], value: Number, dtype: DTypeLike | None = None,
             requires_grad: bool = False) -> Tensor:
        """A tensor of `shape` (a tuple) filled with a number."""
        shape = _sizes((shape,) if isinstance(shape, int) else shape)
        value = value.item() if isinstance(value, np.generic) else value
        dtype = _number_dtype(value) if dtype is None else as_dtype(dtype)
        filled = constant(value, dtype)
        if requires_grad:
            return cls(np.full(shape, filled.arg.value, dtype.np), requires_grad)
        return cls._made(broadcast(filled, shape), requires_grad)

    @classmethod
    def zeros(cls, *shape: int, dtype: DTypeLike = dtypes.f32,
              requires_grad: bool = False) -> Tensor:
        return cls.full(shape_argument(shape), 0, as_dtype(dtype), requires_grad)

    @classmethod
    def ones(cls, *shape: int, dtype: DTypeLike = dtypes.f32,
             requires_grad: bool = False) -> Tensor:
        return cls.full(shape_argument(shape), 1, as_dtype(dtype), requires_grad)

    @classmethod
    def arange(cls, start: Number, stop: Number | None = None, step: Number = 1,
               dtype: DTypeLike | None = None) -> Tensor:
        """Like Python's range, floats allowed. Raises ValueError for a step of 0."""
        start, stop = (0, start) if stop is None else (start, stop)
        start, stop, step = (v.item() if isinstance(v, np.generic) else v
                             for v in (start, stop, step))
        if step == 0:
            raise ValueError("arange: the step must not be 0")
        n = max(0, int(-((start - stop) // step)))
        if dtype is None:
            last = start + max(0, n - 1) * step
            dtype = promote(_number_dtype(start + 0 * stop), _number_dtype(last))
        return cls._of(UOp.iota(n).cast(as_dtype(dtype)) * step + start)

    @classmethod
    def rand(cls, *shape: int, dtype: DTypeLike = dtypes.f32,
             requires_grad: bool = False) -> Tensor:
        """Uniform in [0, 1)."""
        return cls._made(random.uniform(_sizes(shape), as_dtype(dtype)), requires_grad)

    @classmethod
    def randn(cls, *shape: int, dtype: DTypeLike = dtypes.f32,
              requires_grad: bool = False) -> Tensor:
        """Standard normal."""
        return cls._made(random.normal(_sizes(shape), as_dtype(dtype)), requires_grad)

    @staticmethod
    def manual_seed(seed: int) -> None:
        """Restart the random numbers: what follows depends on `seed` and the calls' order only."""
        random.manual_seed(seed)


def _sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a new tensor. Raises ValueError for a negative size."""
    shape = shape_argument(tuple(shape))
    if any(n < 0 for n in shape):
        raise ValueError(f"sizes must not be negative, got {shape}")
    return shape


def _number_dtype(value: Number) -> DType:
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, float):
        return dtypes.f32
    return dtypes.i32 if dtypes.i32.min <= value <= dtypes.i32.max else dtypes.i64
