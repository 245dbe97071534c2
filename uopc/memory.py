"""Arrays: for results, aligned, and in memory that was used before where there is some; and
copies of what a user gives.

Fresh memory costs a page fault for every 4 KiB, about as much as writing it twice. So a large block
goes back to a pool when the last array that looks into it is gone.
"""
from __future__ import annotations

import ctypes
import math
import operator
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from sys import getrefcount
from typing import Any

import numpy as np

from uopc.alu import cast
from uopc.dtype import DType, dtypes, from_np
from uopc.locks import destructors_lock

LINE = 64            # bytes, of the caches of most machines: no vector lies across two
MIN_POOLED = 1 << 17  # bytes; below, malloc uses its memory again by itself
POOL_LIMIT = 1 << 28  # bytes that wait for use


_char_at = ctypes.c_char.from_buffer


def address(array: np.ndarray) -> int:
    """Where a C-contiguous array starts; quicker than NumPy's ways to ask."""
    try:
        return ctypes.addressof(_char_at(array))
    except (TypeError, ValueError):  # it is read-only, or empty
        return array.ctypes.data


def empty_array(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """As np.empty, starting at a line of the cache if it is larger than one."""
    size = math.prod(shape) * dtype.itemsize
    if size <= LINE:
        return np.empty(shape, dtype)
    if size >= MIN_POOLED:
        return _pool.array(size, dtype).reshape(shape)
    block = np.empty(size + LINE, np.uint8)
    start = -address(block) % LINE
    return block[start:start + size].view(dtype).reshape(shape)


def unshared(arrays: Sequence[np.ndarray | None]) -> list[bool]:
    """For each array of the pool, whether nobody but this sequence has it or a view of it: NumPy's
    views of a view refer to what that is a view of. False for None."""
    return [*map(_UNSHARED.__contains__, _references(arrays))]


def _references(arrays: Sequence[np.ndarray | None]) -> Iterator[tuple[int, int]]:
    """How many there are to each array, and to what it is a view of. No variable of Python's ever
    has one of them, so whoever watches this function changes nothing."""
    bases = [*map(getattr, arrays, repeat("base"), repeat(None))]
    return zip(map(getrefcount, arrays), map(getrefcount, bases), strict=True)


def as_array(data: Any, dtype: DType | None) -> np.ndarray:
    """A new C-contiguous array of `data`: a number, a (nested) list or an array. Python's floats
    become f32, its ints i32, or i64 where they need it. `dtype` asks for another one, into which
    values are converted as `cast` does it; but an int of Python's that it cannot hold raises
    OverflowError."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        native = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
        wanted = dtype or from_np(native)
        if array.nbytes < MIN_POOLED or wanted.np != native:
            return _converted(array, wanted)
        copied = empty_array(array.shape, wanted.np)
        np.copyto(copied, array)
        return copied
    array = np.asarray(data)
    if dtype is not None and (array.dtype.kind == "f" or _holds_numpy(data)):
        return _converted(array, dtype)
    if dtype is not None:
        return np.array(data, dtype.np, order="C")
    if array.dtype == np.float64 and not _holds_numpy(data):
        dtype = dtypes.f32
    elif array.dtype == np.int64 and not _holds_numpy(data):
        fits = array.size == 0 or (dtypes.i32.min <= array.min() and array.max() <= dtypes.i32.max)
        dtype = dtypes.i32 if fits else dtypes.i64
    return _converted(array, dtype or from_np(array.dtype))


def _converted(array: np.ndarray, dtype: DType) -> np.ndarray:
    """A new array, as `cast` converts."""
    with np.errstate(all="ignore"):
        return np.asarray(cast(array, dtype), order="C")


def _holds_numpy(data: Any) -> bool:
    """True for a list whose first leaf is a NumPy value, which keeps its own dtype."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic))


class _Pool:
    """Blocks of memory of which some are in use and some wait for use."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[int, list[memoryview]] = OrderedDict()  # by size, the latest last
        self.used: dict[int, tuple[weakref.ref, memoryview]] = {}  # by the reference's id
        self.bytes = 0
        self.lock = destructors_lock()  # a block may come back while this thread holds it

    def array(self, size: int, dtype: np.dtype) -> np.ndarray:
        block = self.take(size)
        array = np.frombuffer(block, dtype)
        # every view of it, and of those, keeps its memoryview alive, which is this array's alone
        alive = weakref.ref(array.base, self.give_back)
        self.used[id(alive)] = alive, block
        return array

    def take(self, size: int) -> memoryview:
        with self.lock:
            if blocks := self.waiting.get(size):
                self.bytes -= size
                return blocks.pop()
        fresh = np.empty(size + LINE, np.uint8)
        start = -address(fresh) % LINE
        return memoryview(fresh)[start:start + size]

    def give_back(self, gone: weakref.ref) -> None:
        _, block = self.used.pop(id(gone))
        with self.lock:
            self.waiting.setdefault(block.nbytes, []).append(block)
            self.waiting.move_to_end(block.nbytes)
            self.bytes += block.nbytes
            while self.bytes > POOL_LIMIT:  # those of the size that was in use the longest ago
                size, blocks = self.waiting.popitem(last=False)
                self.bytes -= size * len(blocks)


_pool = _Pool()

_UNSHARED: set[tuple[int, int]] = set()  # what `_references` counts then


def _count_unshared() -> None:
    """Fills _UNSHARED, unless counts do not tell here who shares what."""
    made = partial(empty_array, dtype=np.dtype(np.uint8))
    counts = {*_references([*map(made, [(MIN_POOLED,)])])}
    held = [*map(made, [(MIN_POOLED,)])]
    views = [*map(operator.itemgetter(slice(1)), held)]
    if views and counts.isdisjoint(_references(held)):
        _UNSHARED.update(counts)


_count_unshared()
