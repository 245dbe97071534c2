"""Arrays for results: aligned, and in memory that was used before where there is some.

Fresh memory costs a page fault for every 4 KiB, about as much as writing it twice. So a large block
goes back to a pool when the last array that looks into it is gone.
"""
from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from uopc.uop import prod

LINE = 64            # bytes, of the caches of most machines: no vector lies across two
MIN_POOLED = 1 << 17  # bytes; below, malloc uses its memory again by itself
POOL_LIMIT = 1 << 28  # bytes that wait for use


def empty_array(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """As np.empty, starting at a line of the cache."""
    size = prod(shape) * dtype.itemsize
    pooled = size >= MIN_POOLED
    block = _pool.take(size) if pooled else np.empty(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    if not pooled:
        return block[start:start + size].view(dtype).reshape(shape)
    # every view of an array that was made from a memoryview keeps that memoryview alive
    array = np.frombuffer(memoryview(block)[start:start + size], dtype)
    weakref.finalize(array.base, _pool.give_back, block).atexit = False
    return array.reshape(shape)


class _Pool:
    """Blocks by size, the one unused for longest first."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[int, np.ndarray] = OrderedDict()  # id → block
        self.bytes = 0
        self.lock = threading.RLock()  # a finalizer may run while this thread holds it

    def take(self, size: int) -> np.ndarray:
        with self.lock:
            for key, block in reversed(list(self.waiting.items())):
                if block.nbytes == size + LINE:
                    del self.waiting[key]
                    self.bytes -= block.nbytes
                    return block
        return np.empty(size + LINE, np.uint8)

    def give_back(self, block: np.ndarray) -> None:
        with self.lock:
            self.waiting[id(block)] = block
            self.bytes += block.nbytes
            while self.bytes > POOL_LIMIT:
                _, oldest = self.waiting.popitem(last=False)
                self.bytes -= oldest.nbytes


_pool = _Pool()
