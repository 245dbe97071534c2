"""`t[key]` and `t[key] = value`, by NumPy's rules.

Integers, slices with any step, None and Ellipsis are movement operations. Integer tensors (or lists
and arrays) gather; several of them broadcast together. Assignment builds a new value: a tensor's
storage is never overwritten, so whoever read it before keeps what was read. Hence a value that is
written into a view (`t[0][1] = 5`) cannot reach the tensor behind it, and is refused.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.bounds import bounds
from uopc.composite import broadcast, broadcast_shape
from uopc.dtype import Number, dtypes, index_dtype, promote
from uopc.elementwise import constant
from uopc.reductions import normalize_axes
from uopc.uop import Ops, UOp, prod

if TYPE_CHECKING:
    from uopc.tensor import Tensor

Key = Any


class Indexing:
    """Mixed into Tensor."""

    uop: UOp

    def __getitem__(self, key: Key) -> Tensor:
        """Raises IndexError for an index that is out of range or one too many."""
        basic, gathers, front = self._split(key)
        result = _slice(self.uop, basic)
        result = result.reshape(_shape_after(basic, result.shape))
        return self._of(_gather(result, gathers, front)) if gathers else self._view(result)

    def __setitem__(self, key: Key, value: Any) -> None:
        """`value` broadcasts to the selection. Of equal indices the last assignment wins."""
        self._refuse_view("writing into")
        basic, gathers, front = self._split(key)
        value = self._lift_value(value)
        sliced = _slice(self.uop, basic)
        selected = sliced.reshape(_shape_after(basic, sliced.shape))
        source = _scatter(selected, gathers, front, value) if gathers \
            else _fit(value, selected.shape)
        everywhere = broadcast(UOp.const(True, dtypes.bool), sliced.shape)
        put, mask = (_unslice(x, basic, self.uop.shape)
                     for x in (source.reshape(sliced.shape), everywhere))
        self._assign(mask.where(put, self.uop))

    def _lift_value(self, value: Any) -> UOp:
        value = self._lift(value)
        if isinstance(value, Number) and (self.uop.dtype.is_float or not isinstance(value, float)):
            return constant(value, self.uop.dtype)
        u = value.uop if hasattr(value, "uop") else type(self)(value).uop
        if self.uop.dtype.is_float or not u.dtype.is_float:
            return u.cast(self.uop.dtype)
        raise TypeError(f"cannot put {u.dtype} values into a tensor of {self.uop.dtype}; "
                        "cast one of them first")

    def take(self, index: Any, axis: int = 0) -> Tensor:
        """Rows along `axis`, as `self[index]` for axis 0. Raises IndexError out of range."""
        (axis,) = normalize_axes(axis, len(self.uop.shape))
        return self[(*[slice(None)] * axis, self._lift(index))]

    def rows(self, index: Tensor) -> Tensor:
        """self[index] for an index (integers) that is known to be in 0..len(self)-1. Raises
        TypeError for one that is not of integers."""
        if not index.uop.dtype.is_int:
            raise TypeError(f"an index must be whole numbers, got {index.uop.dtype}")
        return self._of(UOp(Ops.GATHER, (self.uop, index.uop)))

    def check_index(self, size: int, name: str = "index", allowed: int | None = None,
                    negative: bool = False) -> Tensor:
        """This integer tensor with every element known to be in 0..size-1 (or `allowed`).

        With `negative`, -size..-1 count from the end. Computes the tensor if it is not data yet
        and its bounds do not settle the matter. Raises IndexError that names a bad value, TypeError
        for a tensor that is not of integers.
        """
        if not self.uop.dtype.is_int:
            raise TypeError(f"{name}: an index must be whole numbers, got {self.uop.dtype}")
        u = self.uop.cast(dtypes.i32) if self.uop.dtype is dtypes.u8 else self.uop
        u = u.cast(dtypes.i64) if u.dtype is dtypes.u32 else u
        low, high = bounds(u)
        if low < 0 or high >= size:
            unsigned = np.dtype(f"u{self.dtype.size}")  # in which negative numbers are large
            below = min(size, int(self.dtype.max) + 1)

            def check(values: np.ndarray) -> None:
                if not values.size or np.maximum.reduce(values.view(unsigned), axis=None) < below:
                    return
                bad = (values < (-size if negative else 0)) | (values >= size)
                bad &= values != (size if allowed is None else allowed)
                bad |= (values == size) & (allowed != size)
                if bad.any():
                    raise IndexError(f"{name} {values[bad].flat[0]} is out of range for size "
                                     f"{size}")

            self._check_data(check)
        if negative and low < 0:  # whatever the data says, so that one plan serves all of it
            u = u.cast(promote(index_dtype(size), u.dtype))
            u = (u < 0).where(u + size, u)
        return self._of(u)

    def _split(self, key: Key) -> tuple[list[Any], dict[int, UOp], int]:
        """(per axis of this tensor a slice or an int, or None for a new axis; the integer tensors
        by the axis of the sliced result on which they work; the place of their own axes among the
        others: that of the first of them, or, as in NumPy, 0 where anything stands between)."""
        keys = list(key) if isinstance(key, tuple) else [key]
        shape = self.uop.shape
        used = sum(k is not None and k is not Ellipsis for k in keys)
        if used > len(shape):
            raise IndexError(f"{used} indices for a tensor of shape {shape}")
        if sum(k is Ellipsis for k in keys) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
        gathering = any(not _is_basic(k) for k in keys)
        apart = gathering and _are_apart(keys)
        keys[at:at + 1] = [slice(None)] * (len(shape) - used)
        basic: list[Any] = []
        gathers: dict[int, UOp] = {}
        axis = position = 0
        for k in keys:
            if k is None:
                basic.append(None)
            elif isinstance(k, slice):
                basic.append(slice(*k.indices(shape[axis])))
            elif gathering:  # beside a tensor an int is a tensor too, as in NumPy
                size = shape[axis]
                gathers[position] = UOp.const(_in_range(int(k), size), index_dtype(size)) \
                    if _is_basic(k) else self._index_tensor(k, size)
                basic.append(slice(0, shape[axis], 1))
            else:
                basic.append(_in_range(int(k), shape[axis]))
            axis += k is not None
            position += not isinstance(basic[-1], int)
        return basic, gathers, 0 if apart or not gathers else next(iter(gathers))

    def _index_tensor(self, k: Any, size: int) -> UOp:
        index = self.as_index(k)
        if index.uop.dtype is dtypes.bool:
            raise TypeError("a bool mask (dtypes.bool) would give a shape that depends on data; "
                            "use where")
        return index.check_index(size, negative=True).uop

    @classmethod
    def as_index(cls, index: Any) -> Tensor:
        """A Tensor of what is to be an index; a list without elements becomes integers."""
        tensor = index if hasattr(index, "uop") else cls(index)
        empty = isinstance(index, (list, tuple)) and prod(tensor.uop.shape) == 0
        return tensor.cast(dtypes.i32) if empty else tensor


def _is_basic(k: Any) -> bool:
    """True for all that selects without a tensor: None, a slice, a whole number."""
    return k is None or k is Ellipsis or isinstance(k, slice) or (
        hasattr(k, "__index__") and not isinstance(k, (bool, np.ndarray)) and not hasattr(k, "uop"))


def _are_apart(keys: list[Any]) -> bool:
    """Whether a slice, None or an Ellipsis stands between two of the others."""
    taken = [not (k is None or k is Ellipsis or isinstance(k, slice)) for k in keys]
    first, last = taken.index(True), len(taken) - taken[::-1].index(True)
    return not all(taken[first:last])


def _in_range(k: int, size: int) -> int:
    if not -size <= k < size:
        raise IndexError(f"index {k} is out of range for an axis of size {size}")
    return k % size


def _per_axis(basic: list[Any]) -> list[slice]:
    """The slices alone, an int being one of length 1."""
    return [k if isinstance(k, slice) else slice(k, k + 1, 1) for k in basic if k is not None]


def _slice(x: UOp, basic: list[Any]) -> UOp:
    """Apply the slices; every axis stays, ints leave size 1."""
    cuts = _per_axis(basic)
    lengths = [len(range(k.start, k.stop, k.step)) for k in cuts]
    lows = [min(k.start, k.start + (n - 1) * k.step) if n else 0
            for k, n in zip(cuts, lengths, strict=True)]
    spans = [(n - 1) * abs(k.step) + 1 if n else 0 for k, n in zip(cuts, lengths, strict=True)]
    x = x.shrink([(low, low + span) for low, span in zip(lows, spans, strict=True)])
    x = x.flip([a for a, (k, n) in enumerate(zip(cuts, lengths, strict=True)) if k.step < 0 and n])
    for a, (k, n) in enumerate(zip(cuts, lengths, strict=True)):
        if abs(k.step) > 1 and n > 1:
            x = _every(x, a, abs(k.step), n)
    return x


def _every(x: UOp, axis: int, step: int, n: int) -> UOp:
    """Each `step`-th element, `n` of them: a (n, step) reshape with its first column kept."""
    shape = x.shape
    x = x.pad([(0, n * step - shape[axis]) if a == axis else (0, 0) for a in range(len(shape))])
    x = x.reshape((*shape[:axis], n, step, *shape[axis + 1:]))
    x = x.shrink([(0, 1) if a == axis + 1 else (0, k) for a, k in enumerate(x.shape)])
    return x.reshape((*shape[:axis], n, *shape[axis + 1:]))


def _unslice(x: UOp, basic: list[Any], shape: tuple[int, ...]) -> UOp:
    """The inverse of `_slice`: the elements back in their places in `shape`, 0 elsewhere."""
    cuts = _per_axis(basic)
    for a, k in enumerate(cuts):
        n, step = x.shape[a], abs(k.step)
        if step > 1 and n > 1:
            old = x.shape
            x = x.reshape((*old[:a], n, 1, *old[a + 1:]))
            x = x.pad([(0, step - 1) if b == a + 1 else (0, 0) for b in range(len(x.shape))])
            x = x.reshape((*old[:a], n * step, *old[a + 1:]))
            x = x.shrink([(0, (n - 1) * step + 1) if b == a else (0, m)
                          for b, m in enumerate(x.shape)])
    x = x.flip([a for a, k in enumerate(cuts) if k.step < 0 and x.shape[a]])
    pairs = []
    for a, k in enumerate(cuts):
        n = len(range(k.start, k.stop, k.step))
        low = min(k.start, k.start + (n - 1) * k.step) if n else 0
        pairs.append((low, shape[a] - low - x.shape[a]))
    return x.pad(pairs)


def _shape_after(basic: list[Any], sliced: tuple[int, ...]) -> tuple[int, ...]:
    """Drop the axes that ints took, add those that None asks for."""
    sizes = iter(sliced)
    shape = []
    for k in basic:
        if k is None:
            shape.append(1)
        else:
            n = next(sizes)
            if isinstance(k, slice):
                shape.append(n)
    return tuple(shape)


def _fit(value: UOp, shape: tuple[int, ...]) -> UOp:
    try:
        fits = broadcast_shape(value.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"cannot put values of shape {value.shape} into a selection of {shape}")
    return broadcast(value, shape)


def _flat_index(gathers: dict[int, UOp], sizes: tuple[int, ...]) -> tuple[UOp, tuple[int, ...]]:
    """Several index tensors as one into the flattened axes, and their common shape."""
    shape = broadcast_shape(*(g.shape for g in gathers.values()))
    dtype = index_dtype(prod(sizes[:len(gathers)]))
    for g in gathers.values():
        dtype = promote(dtype, g.dtype)
    flat = None
    for size, g in zip(sizes, gathers.values(), strict=False):
        g = broadcast(g.cast(dtype), shape)
        flat = g if flat is None else flat * size + g
    return flat, shape


def _gather(x: UOp, gathers: dict[int, UOp], front: int) -> UOp:
    """The elements of `x` at the integer tensors, whose axes go behind the first `front`."""
    rows, flat, shape = _as_rows(x, gathers)
    result = UOp(Ops.GATHER, (rows, flat))
    order = [*range(len(shape), len(shape) + front), *range(len(shape)),
             *range(len(shape) + front, len(result.shape))]
    return result.permute(order)


def _scatter(x: UOp, gathers: dict[int, UOp], front: int, value: UOp) -> UOp:
    """`x` with `value` where `_gather` reads; of equal indices the last wins."""
    rows, flat, shape = _as_rows(x, gathers)
    (n, *rest), count = rows.shape, prod(shape)
    new = _fit(value, (*rest[:front], *shape, *rest[front:]))
    new = new.permute([*range(front, front + len(shape)), *range(front),
                       *range(front + len(shape), len(new.shape))]).reshape((count, *rest))
    row = UOp.iota(n, flat.dtype).reshape((n, 1)).expand((n, count))
    hit = row.eq(broadcast(flat.reshape((1, count)), (n, count)))
    turn = broadcast((UOp.iota(count) + 1).reshape((1, count)), (n, count))
    last = hit.where(turn, 0).reduce(Ops.MAX, 1)
    chosen = UOp(Ops.GATHER, (new, (last + -1).maximum(0)))
    written = (UOp.const(0, last.dtype) < last).reshape((n, *(1,) * len(rest)))
    result = written.expand(rows.shape).where(chosen, rows)
    order = _moved_front(x, gathers)
    return result.reshape([x.shape[a] for a in order]).permute(
        [order.index(a) for a in range(len(order))])


def _as_rows(x: UOp, gathers: dict[int, UOp]) -> tuple[UOp, UOp, tuple[int, ...]]:
    """(`x` with the indexed axes as one, in front; the index into it; the indices' shape)."""
    moved = x.permute(_moved_front(x, gathers))
    flat, shape = _flat_index(gathers, moved.shape)
    n = len(gathers)
    return moved.reshape((prod(moved.shape[:n]), *moved.shape[n:])), flat, shape


def _moved_front(x: UOp, gathers: dict[int, UOp]) -> list[int]:
    return [*gathers, *(a for a in range(len(x.shape)) if a not in gathers)]
