"""Reductions of a Tensor, and what is built on them: softmax, cross-entropy, matrix products.

A reduction takes no axis (all), an int or a tuple of them, and `keepdim`. Sums and products of
integers and bools are i64, as NumPy's are.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uopc.composite import broadcast, exp, matmul, reduce_axes
from uopc.dtype import Number, dtypes, index_dtype, promote
from uopc.elementwise import Operand, as_float
from uopc.uop import Ops, UOp, prod

if TYPE_CHECKING:
    from uopc.tensor import Tensor

Axes = int | tuple[int, ...] | None
CUMSUM_BLOCK = 128  # elements summed by brute force; longer axes are summed block by block


def normalize_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Non-negative, sorted axes. Raises IndexError for one that is not there, ValueError for one
    given twice, TypeError for what is no whole number."""
    axes = tuple(range(ndim)) if axis is None else \
        tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if isinstance(a, bool) or not hasattr(a, "__index__"):
            raise TypeError(f"an axis must be a whole number, got {a!r}")
        if not -ndim <= a < ndim:
            raise IndexError(f"axis {a} is out of range for {ndim} axes")
    result = tuple(sorted(int(a) % ndim for a in axes))
    if len(set(result)) != len(result):
        raise ValueError(f"an axis is given twice in {axis}")
    return result


class Reductions:
    """Mixed into Tensor."""

    uop: UOp

    def _reduce(self, op: Ops, axis: Axes, keepdim: bool, x: UOp | None = None) -> Tensor:
        x = self.uop if x is None else x
        return self._of(reduce_axes(x, op, normalize_axes(axis, len(x.shape)), keepdim))

    def _accumulator(self) -> UOp:
        """The elements in the type in which they are added or multiplied."""
        return self.uop if self.uop.dtype.is_float else self.uop.cast(dtypes.i64)

    def _as_tensor(self, value: Operand) -> Tensor:
        value = self._lift(value)
        return type(self)(value) if isinstance(value, Number) else value

    def sum(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        return self._reduce(Ops.ADD, axis, keepdim, self._accumulator())

    def prod(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        return self._reduce(Ops.MUL, axis, keepdim, self._accumulator())

    def max(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        """NaN where there is one. Equal maxima share the gradient. Raises ValueError over an axis
        without elements."""
        self._needs_elements("max", axis)
        op = Ops.MAXIMUM if self.uop.dtype.is_float else Ops.MAX
        return self._reduce(op, axis, keepdim)

    def min(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        """As `max`."""
        self._needs_elements("min", axis)
        if self.uop.dtype.is_float:
            return -(-self).max(axis, keepdim)
        return ~(~self).max(axis, keepdim)  # ~ reverses the order, and no value overflows

    def _needs_elements(self, name: str, axis: Axes) -> None:
        axes = normalize_axes(axis, len(self.uop.shape))
        if any(self.uop.shape[a] == 0 for a in axes) and prod(self.uop.shape) == 0:
            raise ValueError(f"{name} over axes {axes} of shape {self.uop.shape}: there is no "
                             "element to choose")

    def any(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        return self._reduce(Ops.MAX, axis, keepdim, self.uop.cast(dtypes.bool))

    def all(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        return self._reduce(Ops.MUL, axis, keepdim, self.uop.cast(dtypes.bool))

    def mean(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        """NaN over an axis without elements. Integers are added in f64; their mean is f32."""
        n = prod(self.uop.shape[a] for a in normalize_axes(axis, len(self.uop.shape)))
        share = 1 / n if n else math.inf
        if self.uop.dtype.is_float:
            return self._reduce(Ops.ADD, axis, keepdim) * share
        return (self._reduce(Ops.ADD, axis, keepdim, self.uop.cast(dtypes.f64)) * share).float()

    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 0) -> Tensor:
        """Mean squared deviation: the sum divided by n - correction (0: of a population)."""
        n = prod(self.uop.shape[a] for a in normalize_axes(axis, len(self.uop.shape)))
        x = self._of(as_float(self.uop))
        deviation = x - x.mean(axis, keepdim=True)
        rest = max(0, n - correction)
        return deviation.square().sum(axis, keepdim) * (1 / rest if rest else math.inf)

    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 0) -> Tensor:
        return self.var(axis, keepdim, correction).sqrt()

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Tensor:
        """Index of the first maximum, or of the first NaN, as i32 (i64 along an axis that needs
        it); over all elements, flattened, when no axis is given. Raises ValueError over an axis
        without elements."""
        if axis is None:
            flat = self.reshape(-1).argmax(0)
            return flat.reshape((1,) * len(self.uop.shape)) if keepdim else flat
        (axis,) = normalize_axes(axis, len(self.uop.shape))
        self._needs_elements("argmax", axis)
        x, n = self.uop, self.uop.shape[axis]
        best = self.max(axis, keepdim=True).uop.expand(x.shape)
        hit = x.eq(best) | x.ne(x) if x.dtype.is_float else x.eq(best)
        along = [n if a == axis else 1 for a in range(len(x.shape))]
        from_end = broadcast((UOp.iota(n) * -1 + n).reshape(along), x.shape)
        last = self._reduce(Ops.MAX, axis, keepdim, hit.where(from_end, 0))
        return n - last

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Tensor:
        """As `argmax`."""
        flipped = -self if self.uop.dtype.is_float else ~self
        return flipped.argmax(axis, keepdim)

    def cumsum(self, axis: int = 0) -> Tensor:
        """Running sums along `axis`."""
        (axis,) = normalize_axes(axis, len(self.uop.shape))
        order = [a for a in range(len(self.uop.shape)) if a != axis] + [axis]
        back = [order.index(a) for a in range(len(order))]
        return self._of(_running_sum(self._accumulator().permute(order)).permute(back))

    # *** softmax and losses ***

    def softmax(self, axis: int = -1) -> Tensor:
        """exp(x) over its sum along `axis`. A row with NaN, or of -inf alone, gives NaN."""
        e, total = self._exponentials(axis)
        return self._of(e) * self._of(total).reciprocal()

    def log_softmax(self, axis: int = -1) -> Tensor:
        """Logarithm of softmax. A row with NaN or +inf, or of -inf alone, gives NaN."""
        x = as_float(self.uop)
        axes = normalize_axes(axis, len(x.shape))
        shifted = self._of(x) - self._of(reduce_axes(x, Ops.MAX, axes, keepdim=True)).detach()
        return shifted - shifted.exp().sum(axis, keepdim=True).log()

    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Tensor:
        """log(sum(exp(x))): inf where an element is inf, -inf where all are."""
        x = self._of(as_float(self.uop))
        best = x.max(axis, keepdim=True).detach()
        best = best.isfinite().where(best, 0.0)
        total = (x - best).exp().sum(axis, keepdim=True).log() + best
        return total if keepdim else total.squeeze(normalize_axes(axis, len(self.uop.shape)))

    def _exponentials(self, axis: int) -> tuple[UOp, UOp]:
        """exp(x - max) and its sum. MAX suffices here: a NaN reaches the sum by itself."""
        x = as_float(self.uop)
        axes = normalize_axes(axis, len(x.shape))
        best = reduce_axes(x, Ops.MAX, axes, keepdim=True)
        e = exp(x + broadcast(best.stage("detach") * -1, x.shape))
        return e, reduce_axes(e, Ops.ADD, axes, keepdim=True)

    def cross_entropy(self, labels: Operand, ignore_index: int = -100,
                      label_smoothing: float = 0.0) -> Tensor:
        """Mean over rows of -log softmax(self)[label]; self (..., classes), labels (...) integer.

        Rows labelled `ignore_index` do not count; the mean over none is NaN. With smoothing s the
        target is 1-s on the label and s/classes on all. Raises ValueError for shapes that do not
        fit, TypeError for labels that are not integers, IndexError for one that is no class.
        """
        labels = self._as_tensor(labels)
        rows, classes = self.uop.shape[:-1], self.uop.shape[-1] if self.uop.shape else 0
        if labels.shape != rows or not self.uop.shape:
            raise ValueError(f"cross_entropy: logits {self.uop.shape} need labels of shape {rows}, "
                             f"got {labels.shape}")
        if not labels.uop.dtype.is_int:
            raise TypeError(f"cross_entropy needs integer labels, got {labels.uop.dtype}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"label_smoothing must be in 0..1, got {label_smoothing}")
        labels = labels.check_index(classes, "cross_entropy: label", allowed=ignore_index)
        labels = labels.cast(promote(labels.uop.dtype, index_dtype(classes)))
        counted = labels != ignore_index
        logp = counted.unsqueeze(-1).where(self, 0.0).log_softmax(-1)  # what is ignored stays out
        hit = labels.unsqueeze(-1) == self._of(UOp.iota(classes, labels.uop.dtype))
        loss = -hit.where(logp, 0.0).sum(-1)
        if label_smoothing:
            loss = loss * (1 - label_smoothing) - logp.mean(-1) * label_smoothing
        return counted.where(loss, 0.0).sum() / counted.cast(loss.uop.dtype).sum()

    # *** matrix products ***

    def matmul(self, other: Operand) -> Tensor:
        """(..., n, k) @ (..., k, m) → (..., n, m); a vector on either side loses its axis again.

        Raises ValueError that names both shapes when they do not fit.
        """
        other = self._as_tensor(other)
        a, b = self.uop, other.uop
        if not _matmul_fits(a.shape, b.shape):
            raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit: the last axis of "
                             "the first must equal the second to last of the second, and the axes "
                             "before must broadcast")
        dtype = promote(a.dtype, b.dtype)
        left = a.cast(dtype).reshape((1, *a.shape) if len(a.shape) == 1 else a.shape)
        right = b.cast(dtype).reshape((*b.shape, 1) if len(b.shape) == 1 else b.shape)
        result = matmul(left, right)
        shape = list(result.shape)
        if len(b.shape) == 1:
            shape.pop()
        if len(a.shape) == 1:
            shape.pop(-1 if len(b.shape) == 1 else -2)
        return self._of(result.reshape(shape))

    def __matmul__(self, other: Operand) -> Tensor:
        return self.matmul(other)

    def __rmatmul__(self, other: Operand) -> Tensor:
        return self._as_tensor(other).matmul(self)


def _matmul_fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    if not a or not b or a[-1] != b[-2:][0]:
        return False
    return all(m == n or 1 in (m, n) for m, n in zip(a[-3::-1], b[-3::-1], strict=False))


def _running_sum(x: UOp) -> UOp:
    """Running sums along the last axis: inside blocks, and of the blocks before."""
    *lead, n = x.shape
    if n <= CUMSUM_BLOCK:
        before = UOp.iota(n).reshape((1, n)).expand((n, n))
        now = UOp.iota(n).reshape((n, 1)).expand((n, n))
        full = (*lead, n, n)
        taken = broadcast(before.alu(Ops.CMPLE, now), full)
        return taken.where(broadcast(x.reshape((*lead, 1, n)), full), 0).reduce(Ops.ADD, 1)
    blocks = -(-n // CUMSUM_BLOCK)
    padding = [(0, 0)] * len(lead) + [(0, blocks * CUMSUM_BLOCK - n)]
    inside = _running_sum(x.pad(padding).reshape((*lead, blocks, CUMSUM_BLOCK)))
    last = [(0, k) for k in (*lead, blocks)]
    totals = inside.shrink([*last, (CUMSUM_BLOCK - 1, CUMSUM_BLOCK)]).reshape((*lead, blocks))
    earlier = _running_sum(totals).pad([*[(0, 0)] * len(lead), (1, 0)]).shrink(last)
    total = inside + earlier.reshape((*lead, blocks, 1)).expand(inside.shape)
    return total.reshape((*lead, blocks * CUMSUM_BLOCK)).shrink([*last[:-1], (0, n)])
