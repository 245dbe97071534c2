"""Elementwise operations of a Tensor: arithmetic, comparisons, and functions of one number.

Operands broadcast by NumPy's rules and meet in the wider dtype (see `dtype.promote`); functions
that leave the integers, division among them, take integers as f32. `a / b` is `a * (1/b)`.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.bounds import bounds
from uopc.composite import broadcast, broadcast_shape, exp, log, power
from uopc.dtype import (
    DType,
    DTypeLike,
    Number,
    as_dtype,
    dtypes,
    promote,
    promote_number,
)
from uopc.uop import Ops, UOp

if TYPE_CHECKING:
    from uopc.tensor import Tensor

Operand = Any  # a Tensor, a Python number, or what Tensor(...) takes


def as_float(x: UOp) -> UOp:
    return x if x.dtype.is_float else x.cast(dtypes.f32)


class Elementwise:
    """Mixed into Tensor, which provides `uop`, `_of` and `_lift`."""

    uop: UOp

    def _operands(self, *others: Operand) -> list[UOp]:
        """This tensor and `others` in one dtype and one shape; numbers become constants."""
        values = [self, *map(self._lift, others)]
        tensors = [v.uop for v in values if not isinstance(v, Number)]
        dtype = tensors[0].dtype
        for t in tensors[1:]:
            dtype = promote(dtype, t.dtype)
        for v in values:
            if isinstance(v, Number):
                dtype = promote_number(dtype, v)
        shape = broadcast_shape(*(t.shape for t in tensors))
        return [constant(v, dtype) if isinstance(v, Number)
                else broadcast(v.uop.cast(dtype), shape) for v in values]

    def _binary(self, op: Ops, other: Operand, reverse: bool = False) -> Tensor:
        if not _is_operand(other):
            return NotImplemented
        a, b = self._operands(other)
        if reverse:
            a, b = b, a
        return self._of(UOp(op, (a, b)))

    def _float(self) -> UOp:
        return as_float(self.uop)

    # *** arithmetic ***

    def __add__(self, other: Operand) -> Tensor:
        return self._binary(Ops.ADD, other)

    def __mul__(self, other: Operand) -> Tensor:
        return self._binary(Ops.MUL, other)

    def __sub__(self, other: Operand) -> Tensor:
        """`a - b` is `a + b * -1`. Raises TypeError for two bools, as NumPy does."""
        if not _is_operand(other):
            return NotImplemented
        other = self._lift(other)
        if isinstance(other, Number):
            x, number = self._operands(other)
            _refuse_bool(x.dtype)
            return self._of(x + _negative(number))
        dtype = promote(self.uop.dtype, other.uop.dtype)
        _refuse_bool(dtype)
        return self + self._of(other.uop.cast(dtype) * -1)

    def __rsub__(self, other: Operand) -> Tensor:
        if not _is_operand(other):
            return NotImplemented
        other = self._lift(other)
        if not isinstance(other, Number):
            return other - self
        x, number = self._operands(other)
        _refuse_bool(x.dtype)
        return self._of(x * -1 + number)

    def __neg__(self) -> Tensor:
        if self.uop.dtype is dtypes.bool:
            raise TypeError("a bool tensor has no negative; use logical_not, or cast it first")
        return self._of(self.uop * -1)

    def __truediv__(self, other: Operand) -> Tensor:
        if not _is_operand(other):
            return NotImplemented
        return self._quotient(self, self._lift(other))

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self._quotient(self._lift(other), self) if _is_operand(other) else NotImplemented

    def _quotient(self, a: Operand, b: Operand) -> Tensor:
        """a / b, of which one may be a number; integers become floats first."""
        typed = [self._of(x._float()) if isinstance(x, Elementwise) else x for x in (a, b)]
        if isinstance(b, Number):
            return self._of(typed[0].uop / b)
        if isinstance(a, Number):
            return self._of(a / typed[1].uop)
        return typed[0]._binary(Ops.DIV, typed[1])

    def __floordiv__(self, other: Operand) -> Tensor:
        """Rounds towards minus infinity, as Python does. An integer divided by 0 gives 0."""
        return self._binary(Ops.IDIV, other)

    def __rfloordiv__(self, other: Operand) -> Tensor:
        return self._binary(Ops.IDIV, other, reverse=True)

    def __mod__(self, other: Operand) -> Tensor:
        """Has the divisor's sign, as in Python. An integer modulo 0 gives 0."""
        return self._binary(Ops.MOD, other)

    def __rmod__(self, other: Operand) -> Tensor:
        return self._binary(Ops.MOD, other, reverse=True)

    def __pow__(self, other: Operand) -> Tensor:
        """Integers to integers stay integers, exact but that they wrap around; bools count as i32.
        Of floats, whole Python exponents from 0 to 16 multiply, others follow C's pow.

        Raises ValueError for an integer to the power of a negative one. A tensor of exponents is
        computed to see whether it has one, unless its bounds tell.
        """
        if not _is_operand(other):
            return NotImplemented
        other = self._lift(other)
        if isinstance(other, int) and other < 0 and not self.uop.dtype.is_float:
            raise _negative_power(other)
        base, exponent = self._operands(other)
        if not base.dtype.is_float and not isinstance(other, Number):
            other._check_exponents()
        return self._of(power(base, exponent))

    def __rpow__(self, other: Operand) -> Tensor:
        if not _is_operand(other):
            return NotImplemented
        exponent, base = self._operands(other)
        if not base.dtype.is_float:
            self._check_exponents()
        return self._of(power(base, exponent))

    def _check_exponents(self) -> None:
        def check(values: np.ndarray) -> None:
            if values.size and (least := values.min()) < 0:
                raise _negative_power(least)

        if bounds(self.uop)[0] < 0:
            self._check_data(check)

    __radd__, __rmul__ = __add__, __mul__
    add, mul, sub, div, pow = __add__, __mul__, __sub__, __truediv__, __pow__

    # *** comparisons and logic ***

    def __lt__(self, other: Operand) -> Tensor:
        return self._binary(Ops.CMPLT, other)

    def __le__(self, other: Operand) -> Tensor:
        return self._binary(Ops.CMPLE, other)

    def __gt__(self, other: Operand) -> Tensor:
        return self._binary(Ops.CMPLT, other, reverse=True)

    def __ge__(self, other: Operand) -> Tensor:
        return self._binary(Ops.CMPLE, other, reverse=True)

    def __eq__(self, other: Operand) -> Tensor:
        return self._binary(Ops.CMPEQ, other)

    def __ne__(self, other: Operand) -> Tensor:
        return self._binary(Ops.CMPNE, other)

    __hash__ = object.__hash__

    def _bits(self, op: Ops, other: Operand) -> Tensor:
        result = self._binary(op, other)
        if result is not NotImplemented and result.uop.dtype.is_float:
            raise TypeError(f"{op.name} needs integers or bools, got {result.uop.dtype}")
        return result

    def __and__(self, other: Operand) -> Tensor:
        return self._bits(Ops.AND, other)

    def __or__(self, other: Operand) -> Tensor:
        return self._bits(Ops.OR, other)

    def __xor__(self, other: Operand) -> Tensor:
        return self._bits(Ops.XOR, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Tensor:
        if self.uop.dtype is dtypes.bool:
            return self.logical_not()
        return self ^ (-1 if self.uop.dtype.min else self.uop.dtype.max)  # the word of all ones

    def logical_not(self) -> Tensor:
        """True where the element is 0 (or false)."""
        return self._of(self.uop.eq(0))

    def isnan(self) -> Tensor:
        return self != self

    def isinf(self) -> Tensor:
        return self._of(self._float().eq(math.inf) | self._float().eq(-math.inf))

    def isfinite(self) -> Tensor:
        x = self._float()
        return self._of((x < math.inf) & (UOp.const(-math.inf, x.dtype) < x))

    def where(self, a: Operand, b: Operand) -> Tensor:
        """`a` where this tensor is true, else `b`; all three broadcast.

        The branch that is not taken gets the gradient 0. sqrt, log, 1/x and powers pass a 0 on as 0
        even where their own slope is infinite; before others (exp, say) use `where` on the input.
        """
        a, b = self._lift(a), self._lift(b)
        if isinstance(a, Number) and isinstance(b, Number):
            a = type(self)(a)
        if isinstance(a, Number):
            b, a = b._operands(a)
        else:
            a, b = a._operands(b)
        shape = broadcast_shape(self.shape, a.shape, b.shape)
        parts = [x if x.op is Ops.CONST else broadcast(x, shape) for x in (a, b)]
        return self._of(UOp(Ops.WHERE, (broadcast(self.bool().uop, shape), *parts)))

    # *** minima, maxima, signs ***

    def maximum(self, other: Operand) -> Tensor:
        """Elementwise; NaN on either side gives NaN. Of two zeros it gives the second. Equal
        elements share the gradient."""
        a, b = self._operands(other)
        return self._of(UOp(Ops.MAXIMUM if a.dtype.is_float else Ops.MAX, (a, b)))

    def minimum(self, other: Operand) -> Tensor:
        """As `maximum`."""
        a, b = self._operands(other)
        if a.dtype.is_float:
            return self._of(UOp(Ops.MAXIMUM, (_negative(a), _negative(b))) * -1)
        return self._of(UOp(Ops.WHERE, (a < b, a, b)))

    def clip(self, low: Operand | None = None, high: Operand | None = None) -> Tensor:
        result = self._of(self.uop) if low is None else self.maximum(low)
        return result if high is None else result.minimum(high)

    def sign(self) -> Tensor:
        """-1, 0 or 1; NaN stays NaN."""
        x = self.uop
        zero = x * 0 + 0 if x.dtype.is_float else UOp.const(0, x.dtype)  # NaN, or 0.0 from -0.0
        return self._of((x < 0).where(-1, (UOp.const(0, x.dtype) < x).where(1, zero)))

    def abs(self) -> Tensor:
        """Absolute value; its gradient at 0 is 0."""
        x = self.uop
        if not x.dtype.is_float:
            unsigned = x.dtype in (dtypes.bool, dtypes.u8, dtypes.u32)
            return self._of(x if unsigned else (x < 0).where(x * -1, x))
        zero = UOp.const(0, x.dtype)
        sign = (x < 0).where(-1.0, (zero < x).where(1.0, zero))
        return self._of(x * sign + 0.0)  # + 0.0 takes -0.0 to 0.0

    __abs__ = abs

    # *** functions of one number ***

    def exp(self) -> Tensor:
        """e**x, as exp2(x * log2(e))."""
        return self._of(exp(self._float()))

    def exp2(self) -> Tensor:
        return self._of(self._float().exp2())

    def log(self) -> Tensor:
        """Natural logarithm, as log2(x) * ln(2)."""
        return self._of(log(self._float()))

    def log2(self) -> Tensor:
        return self._of(self._float().log2())

    def sqrt(self) -> Tensor:
        """Square root; its gradient at 0 is 0."""
        return self._of(self._float().sqrt())

    def rsqrt(self) -> Tensor:
        return self._of(self._float().sqrt().reciprocal())

    def reciprocal(self) -> Tensor:
        return self._of(self._float().reciprocal())

    def square(self) -> Tensor:
        return self._of(self.uop * self.uop)

    def sin(self) -> Tensor:
        return self._of(UOp(Ops.SIN, (self._float(),)))

    def cos(self) -> Tensor:
        return self._of(UOp(Ops.COS, (self._float(),)))

    def tanh(self) -> Tensor:
        return self._of(UOp(Ops.TANH, (self._float(),)))

    def erf(self) -> Tensor:
        return self._of(UOp(Ops.ERF, (self._float(),)))

    def trunc(self) -> Tensor:
        """Towards zero."""
        x = self.uop
        return self._of(UOp(Ops.TRUNC, (x,)) if x.dtype.is_float else x)

    def floor(self) -> Tensor:
        whole = self.trunc()
        return (self < whole).where(whole - 1, whole) if self.uop.dtype.is_float else whole

    def ceil(self) -> Tensor:
        whole = self.trunc()
        return (whole < self).where(whole + 1, whole) if self.uop.dtype.is_float else whole

    def round(self) -> Tensor:
        """To the nearest whole number, from halfway to the even one, as NumPy does."""
        if not self.uop.dtype.is_float:
            return self
        whole = self.trunc()
        rest = (self - whole).abs()
        odd = (whole * 0.5).trunc() * 2 != whole
        away = whole + (self < 0).where(-1.0, 1.0)
        return ((rest > 0.5) | ((rest == 0.5) & odd)).where(away, whole)

    def relu(self) -> Tensor:
        """`0 < x ? x : 0`, so NaN gives 0."""
        return self._of((UOp.const(0, self.uop.dtype) < self.uop).where(self.uop, 0))

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)), by whichever of two forms does not overflow."""
        x = self._float()
        negative = x < 0
        e = exp(negative.where(x, x * -1))
        return self._of(negative.where(e, 1.0) * (e + 1).reciprocal())

    def silu(self) -> Tensor:
        return self * self.sigmoid()

    def gelu(self, approximate: str = "none") -> Tensor:
        """x * Phi(x), with the normal distribution Phi exact ("none") or by "tanh". The GPT in
        models/ uses the exact one.

        Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. Raises ValueError for another
        name.
        """
        x = self._of(self._float())
        if approximate == "none":
            return x * 0.5 * ((x * math.sqrt(0.5)).erf() + 1)
        if approximate == "tanh":
            inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
            return x * 0.5 * (inner.tanh() + 1)
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")

    # *** dtypes ***

    def cast(self, dtype: DTypeLike) -> Tensor:
        """Convert. A float beyond an integer type's range gives the nearest end, NaN gives 0."""
        return self._of(self.uop.cast(as_dtype(dtype)))

    def float(self) -> Tensor:
        return self.cast(dtypes.f32)

    def int(self) -> Tensor:
        return self.cast(dtypes.i32)

    def bool(self) -> Tensor:
        return self.cast(dtypes.bool)


def _is_operand(x: Any) -> bool:
    return isinstance(x, (Elementwise, bool, int, float, np.ndarray, np.generic, list, tuple))


def _negative(x: UOp) -> UOp:
    return UOp.const(-x.arg.value, x.dtype) if x.op is Ops.CONST else x * -1


def _refuse_bool(dtype: DType) -> None:
    if dtype is dtypes.bool:
        raise TypeError("bool tensors do not subtract; use ^, or cast one of them first")


def constant(value: Number, dtype: DType) -> UOp:
    """A Python number as a constant. Raises OverflowError where the dtype cannot hold it."""
    if dtype.is_int and not dtype.min <= value <= dtype.max:
        raise OverflowError(f"{value} is out of range for {dtype}: {dtype.min} to {dtype.max}")
    return UOp.const(value, dtype)


def _negative_power(exponent: int) -> ValueError:
    return ValueError(f"integers take no negative powers, got {exponent}; make one of the two "
                      "floats first, with .float()")
