"""What each ALU operation means, in NumPy: the one definition that constant folding and the
interpreter share, and that the C has to agree with.

Integers wrap around. Integer division floors and gives 0 for a zero divisor. A cast of a float to
an integer saturates and takes NaN to 0. MAX is `a > b ? a : b`; MAXIMUM propagates NaN.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from uopc.dtype import DType, Number
from uopc.uop import Ops, UOp

Array = np.ndarray


def apply_alu(op: Ops, arrays: list[Array], dtype: DType) -> Array:
    """`op` on NumPy arrays (or 0-d ones), as an array of `dtype`."""
    with np.errstate(all="ignore"):
        if op is Ops.CAST:
            return cast(arrays[0], dtype)
        if op is Ops.BITCAST:
            return np.asarray(arrays[0]).view(dtype.np)
        return np.asarray(_NUMPY[op](*arrays)).astype(dtype.np, copy=False)


def cast(x: Array, dtype: DType) -> Array:
    """Convert; a float beyond an integer type's range gives the nearest end, NaN gives 0."""
    x = np.asarray(x)
    if not (dtype.is_int and x.dtype.kind == "f"):
        return x.astype(dtype.np)
    low, high = x < float(dtype.min), x >= float(dtype.max) + 1
    inside = np.where(low | high | np.isnan(x), 0, x).astype(dtype.np)
    return np.where(high, dtype.max, np.where(low, dtype.min, inside)).astype(dtype.np)


def fold(op: Ops, constants: tuple[UOp, ...], dtype: DType) -> UOp:
    """The CONST that `op` gives on CONST sources."""
    value = apply_alu(op, [constant_array(c) for c in constants], dtype)
    return UOp.const(_shortest(value), dtype)


def constant_array(u: UOp) -> Array:
    """The value of a CONST, as its dtype holds it: 1e39 is infinite as an f32."""
    with np.errstate(all="ignore"):
        return np.asarray(u.arg.value).astype(u.dtype.np)


def _shortest(x: Array) -> Number:
    """The only element; of an f32 the shortest number that rounds to it, which reads best in C."""
    return float(str(x[()])) if x.dtype == np.float32 else x.item()


def _idiv(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.floor_divide(a, b)
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


def _mod(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.mod(a, b)
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[x.dtype])(x) if x.size else x


_NUMPY: dict[Ops, Callable[..., Array]] = {
    Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin, Ops.COS: np.cos, Ops.TANH: np.tanh,
    Ops.ERF: _erf, Ops.SQRT: np.sqrt, Ops.TRUNC: np.trunc,
    Ops.RECIPROCAL: lambda x: np.asarray(1, x.dtype) / x,
    Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.DIV: np.divide, Ops.IDIV: _idiv, Ops.MOD: _mod,
    Ops.POW: np.power,
    Ops.MAX: lambda a, b: np.where(a > b, a, b),
    Ops.MAXIMUM: lambda a, b: np.where((a > b) | (a != a), a, b),
    Ops.CMPLT: np.less, Ops.CMPLE: np.less_equal, Ops.CMPEQ: np.equal, Ops.CMPNE: np.not_equal,
    Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift, Ops.SHR: np.right_shift,
    Ops.WHERE: np.where,
}
