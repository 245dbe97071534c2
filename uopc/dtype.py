"""Data types: their names, their NumPy and C counterparts, and how they promote.

`dtypes.f32` is the default float, `dtypes.i32` the default integer. Promotion follows one chain,
bool < u8 < i32 < u32 < i64 < f32 < f64, in which the wider of two types wins, except that u32 meets
a signed type at i64. A Python number adopts the tensor's type when that can hold its kind:
`i32 + 1` stays i32, `i32 * 0.5` becomes f32.
"""
from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Number = bool | int | float


@dataclass(frozen=True, eq=False)
class DType:
    """A scalar element type. `c` is its spelling in C, `size` its width in bytes."""

    name: str
    np: np.dtype
    c: str
    rank: int

    def __repr__(self) -> str:
        return f"dtypes.{self.name}"

    def __reduce__(self) -> tuple:
        return _by_name, (self.name,)

    @property
    def size(self) -> int:
        return self.np.itemsize

    @property
    def is_float(self) -> bool:
        return self.np.kind == "f"

    @property
    def is_int(self) -> bool:
        """True for the integers, signed or not; bool is not one."""
        return self.np.kind in "iu"

    @property
    def min(self) -> Number:
        """The smallest value: the identity of a maximum."""
        return _limit(self, "min", -math.inf)

    @property
    def max(self) -> Number:
        return _limit(self, "max", math.inf)


@functools.cache
def _limit(dtype: DType, which: str, infinite: float) -> Number:
    if dtype.is_float:
        return infinite
    if dtype.is_int:
        return int(getattr(np.iinfo(dtype.np), which))
    return which == "max"


class dtypes:
    """The namespace of all data types, in order of promotion."""

    bool = DType("bool", np.dtype(np.bool_), "_Bool", 0)
    u8 = DType("u8", np.dtype(np.uint8), "unsigned char", 1)
    i32 = DType("i32", np.dtype(np.int32), "int", 2)
    u32 = DType("u32", np.dtype(np.uint32), "unsigned int", 3)
    i64 = DType("i64", np.dtype(np.int64), "long", 4)
    f32 = DType("f32", np.dtype(np.float32), "float", 5)
    f64 = DType("f64", np.dtype(np.float64), "double", 6)


ALL_DTYPES = (dtypes.bool, dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64, dtypes.f32, dtypes.f64)


def _by_name(name: str) -> DType:
    return getattr(dtypes, name)


_of_np = {dtype.np: dtype for dtype in ALL_DTYPES}
_of_name = {name: dtype for dtype in ALL_DTYPES for name in (dtype.name, dtype.np.name)}


def from_np(np_dtype: np.dtype | type) -> DType:
    """The DType of a NumPy dtype. Raises TypeError for a type that uopc does not have."""
    wanted = np.dtype(np_dtype)
    if (dtype := _of_np.get(wanted)) is not None:
        return dtype
    names = ", ".join(str(d.np) for d in ALL_DTYPES)
    raise TypeError(f"uopc has no dtype {wanted}; convert the array first to one of: {names}")


DTypeLike = DType | np.dtype | type | str


def as_dtype(wanted: Any) -> DType:
    """A DType as whoever calls may name it: a constant of `dtypes`, its name or NumPy's for it
    ("f32", "float32"), or NumPy's type or dtype. Raises TypeError for what is none, and for what
    means one type here and another elsewhere (Python's `float` and `int`, NumPy's "u8" in bytes).
    """
    if isinstance(wanted, DType):
        return wanted
    if wanted is bool:
        return dtypes.bool
    if isinstance(wanted, str):
        found = _of_name.get(wanted)
    elif isinstance(wanted, np.dtype) or (
            isinstance(wanted, type) and issubclass(wanted, np.generic)):
        found = _of_np.get(np.dtype(wanted))
    else:
        found = None
    if found is None:
        names = ", ".join(f"{d!r} (or {d.np.name!r})" for d in ALL_DTYPES)
        raise TypeError(f"{wanted!r} is no dtype of uopc; it has {names}")
    return found


def promote(a: DType, b: DType) -> DType:
    """The type in which values of `a` and `b` meet."""
    if {a, b} == {dtypes.u32, dtypes.i32}:
        return dtypes.i64
    return a if a.rank >= b.rank else b


def index_dtype(size: int) -> DType:
    """The type of a position among `size` elements, which holds `size` itself, too."""
    return dtypes.i32 if size <= dtypes.i32.max else dtypes.i64


def promote_number(dtype: DType, value: Number) -> DType:
    """The type of an operation between a tensor of `dtype` and the Python number `value`."""
    if isinstance(value, float):
        return dtype if dtype.is_float else dtypes.f32
    if isinstance(value, bool) or dtype is not dtypes.bool:
        return dtype
    return dtypes.i32


def as_const(value: Number, dtype: DType) -> Number:
    """`value` as the Python number that a constant of `dtype` holds; integers wrap around."""
    if dtype.is_float:
        return float(value)
    if dtype is dtypes.bool:
        return bool(value)
    value, bits = int(value), 8 * dtype.size
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.min < 0 and value >> (bits - 1) else value


def exact_reciprocal(value: Number, dtype: DType) -> float | None:
    """1 / value where multiplying by it is dividing by `value`, to the last bit: for powers of two
    whose reciprocal the dtype holds. Else None."""
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    share = 1 / value
    with np.errstate(all="ignore"):
        return share if float(dtype.np.type(share)) == share else None
