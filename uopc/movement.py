"""Operations of a Tensor that only move elements: reshape, permute, pad, cat and their kin.

All of them are index maps on the graph; nothing is copied unless the result is asked for.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uopc.composite import broadcast
from uopc.dtype import Number, dtypes, index_dtype, promote
from uopc.reductions import normalize_axes
from uopc.uop import Ops, UOp, prod

if TYPE_CHECKING:
    from uopc.tensor import Tensor

CAT_FAN_IN = 16  # tensors joined in one kernel; more are joined group by group


def shape_argument(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """`reshape(2, 3)` and `reshape((2, 3))` mean the same."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    for n in sizes:
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"sizes and axes must be whole numbers, got {n!r} in {sizes}")
    return tuple(int(n) for n in sizes)


class Movement:
    """Mixed into Tensor."""

    uop: UOp

    def reshape(self, *shape: int) -> Tensor:
        """The same elements in row-major order in another shape; one size may be -1."""
        old, wanted = self.uop.shape, shape_argument(shape)
        if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
            raise ValueError(f"cannot reshape {old} to {wanted}: at most one size may be -1, the "
                             "others must not be negative")
        if -1 in wanted:
            known = prod(n for n in wanted if n != -1)
            if known == 0 or prod(old) % known:
                raise ValueError(f"cannot reshape {old} to {wanted}: {prod(old)} elements are not "
                                 f"a multiple of {known}")
            wanted = tuple(prod(old) // known if n == -1 else n for n in wanted)
        return self._view(self.uop.reshape(wanted))

    view = reshape

    def flatten(self, start: int = 0) -> Tensor:
        """Merge the axes from `start` on into one. Raises IndexError for an axis not there."""
        if self.uop.shape:
            (start,) = normalize_axes(start, len(self.uop.shape))
        return self.reshape(*self.uop.shape[:start], prod(self.uop.shape[start:]))

    def unsqueeze(self, axis: int) -> Tensor:
        """A new axis of size 1 at `axis` of the result."""
        (axis,) = normalize_axes(axis, len(self.uop.shape) + 1)
        shape = self.uop.shape
        return self._view(self.uop.reshape((*shape[:axis], 1, *shape[axis:])))

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """Drop axes of size 1: all of them, or those named. Raises ValueError for another."""
        shape = self.uop.shape
        axes = [a for a, n in enumerate(shape) if n == 1] if axis is None \
            else normalize_axes(axis, len(shape))
        if any(shape[a] != 1 for a in axes):
            raise ValueError(f"cannot squeeze axes {tuple(axes)} of {shape}: not of size 1")
        return self._view(self.uop.reshape([n for a, n in enumerate(shape) if a not in axes]))

    def expand(self, *shape: int) -> Tensor:
        """Repeat axes of size 1 to `shape`; -1 keeps a size, and axes may be added in front."""
        old, wanted = self.uop.shape, shape_argument(shape)
        if len(wanted) < len(old):
            raise ValueError(f"cannot expand {old} to {wanted}: there are fewer axes")
        padded = (1,) * (len(wanted) - len(old)) + old
        if any(n < -1 for n in wanted):
            raise ValueError(f"cannot expand {old} to {wanted}: a size must not be negative")
        full = tuple(o if n == -1 else n for o, n in zip(padded, wanted, strict=True))
        return self._view(self.uop.reshape(padded).expand(full))

    def permute(self, *order: int) -> Tensor:
        """Reorder the axes; negative ones count from the end."""
        ndim = len(self.uop.shape)
        axes = shape_argument(order)
        if any(not -ndim <= a < ndim for a in axes):
            raise IndexError(f"cannot permute {self.uop.shape} by {axes}: no such axis")
        return self._view(self.uop.permute([a % ndim for a in axes]))

    def transpose(self, first: int = -2, second: int = -1) -> Tensor:
        """Swap two axes, the last two by default. A tensor of fewer than two stays as it is."""
        ndim = len(self.uop.shape)
        if ndim < 2 and (first, second) == (-2, -1):
            return self._view(self.uop)
        (a,), (b,) = normalize_axes(first, ndim), normalize_axes(second, ndim)
        order = list(range(ndim))
        order[a], order[b] = b, a
        return self._view(self.uop.permute(order))

    @property
    def T(self) -> Tensor:
        """The last two axes swapped."""
        return self.transpose()

    def flip(self, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """Reverse the order along the axes, all by default."""
        return self._view(self.uop.flip(normalize_axes(axis, len(self.uop.shape))))

    def pad(self, pairs: Any, value: Number = 0) -> Tensor:
        """NumPy-style: a pair (before, after) for each axis, one pair for all, or one number.

        The result has the dtype in which `value` and this tensor meet.
        """
        ndim = len(self.uop.shape)
        pairs = pairs.tolist() if hasattr(pairs, "tolist") else pairs  # a NumPy array
        if hasattr(pairs, "__index__"):
            pairs = [(pairs, pairs)] * ndim
        elif len(pairs) == 2 and all(hasattr(p, "__index__") for p in pairs):
            pairs = [tuple(pairs)] * ndim
        padded = self.uop.pad(pairs)
        if value == 0 or padded is self.uop:
            return self._of(padded)
        inside = broadcast(UOp.const(True, dtypes.bool), self.uop.shape).pad(pairs)
        return self._of(inside).where(self._of(padded), value)

    def repeat(self, *times: int) -> Tensor:
        """Tile the tensor `times` along each axis."""
        counts = shape_argument(times)
        shape = (1,) * (len(counts) - len(self.uop.shape)) + self.uop.shape
        if len(counts) < len(shape) or any(n < 0 for n in counts):
            raise ValueError(f"repeat: {counts} does not give a count for each axis of {shape}")
        interleaved = [k for n in shape for k in (1, n)]
        full = [k for c, n in zip(counts, shape, strict=True) for k in (c, n)]
        result = self.uop.reshape(interleaved).expand(full)
        return self._of(result.reshape([c * n for c, n in zip(counts, shape, strict=True)]))

    def tril(self, diagonal: int = 0) -> Tensor:
        """Zeros above the `diagonal`-th diagonal of the last two axes, which must be there."""
        if len(self.uop.shape) < 2:
            raise ValueError(f"tril needs two axes or more, this tensor has shape {self.uop.shape}")
        rows, columns = self.uop.shape[-2:]
        dtype = index_dtype(rows + columns)
        column = UOp.iota(columns, dtype).reshape((1, columns)).expand((rows, columns))
        row = UOp.iota(rows, dtype).reshape((rows, 1)).expand((rows, columns))
        below = column.alu(Ops.CMPLE, row + max(-rows, min(diagonal, columns)))
        return self._of(broadcast(below, self.uop.shape).where(self.uop, 0))

    @classmethod
    def cat(cls, tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
        """Join along an axis that is there. Raises ValueError unless the other sizes agree."""
        tensors = [t if isinstance(t, cls) else cls(t) for t in tensors]
        if not tensors:
            raise ValueError("cat needs at least one tensor")
        shapes = [t.uop.shape for t in tensors]
        (axis,) = normalize_axes(axis, len(shapes[0]))
        if len({(len(s), s[:axis], s[axis + 1:]) for s in shapes}) > 1:
            shown = ", ".join(map(str, dict.fromkeys(shapes)))
            raise ValueError(f"cat along axis {axis}: all other sizes must agree, got {shown}")
        dtype = tensors[0].uop.dtype
        for t in tensors:
            dtype = promote(dtype, t.uop.dtype)
        parts = [t.uop.cast(dtype) for t in tensors]
        while len(parts) > CAT_FAN_IN:
            groups = [parts[k:k + CAT_FAN_IN] for k in range(0, len(parts), CAT_FAN_IN)]
            parts = [_join(g, axis).stage() if len(g) > 1 else g[0] for g in groups]
        return cls._of(_join(parts, axis))

    @classmethod
    def stack(cls, tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
        """Join along a new axis. Raises ValueError unless all shapes agree."""
        tensors = [t if isinstance(t, cls) else cls(t) for t in tensors]
        shapes = {t.uop.shape for t in tensors}
        if len(shapes) > 1:
            raise ValueError(f"stack: all shapes must agree, got {', '.join(map(str, shapes))}")
        return cls.cat([t.unsqueeze(axis) for t in tensors], axis)


def _join(parts: Sequence[UOp], axis: int) -> UOp:
    """Each part padded to the whole, chosen by where the index falls."""
    total = sum(p.shape[axis] for p in parts)
    shape = tuple(total if a == axis else n for a, n in enumerate(parts[0].shape))
    along = [total if a == axis else 1 for a in range(len(shape))]
    index = UOp.iota(total).reshape(along).expand(shape)
    result, end = None, total
    for part in reversed(parts):
        start = end - part.shape[axis]
        placed = part.pad([(start, total - end) if a == axis else (0, 0)
                           for a in range(len(shape))])
        result = placed if result is None else (index < end).where(placed, result)
        end = start
    return result
