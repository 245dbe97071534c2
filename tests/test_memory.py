"""Arrays for results: aligned, and never one that somebody still looks into."""
from __future__ import annotations

import gc

import numpy as np

from uopc.memory import LINE, MIN_POOLED, POOL_LIMIT, _pool, empty_array
from uopc.tensor import Tensor

F32 = np.dtype(np.float32)
BIG = (MIN_POOLED // 4 + 3,)


def test_arrays_start_at_a_line_of_the_cache() -> None:
    for shape in ((), (0,), (1,), (3, 5), BIG, (2, *BIG)):
        array = empty_array(shape, F32)
        assert array.shape == shape and array.dtype == F32 and array.flags.c_contiguous
        assert (array.nbytes <= LINE or array.ctypes.data % LINE == 0) and array.flags.writeable


def test_memory_is_used_again_only_when_no_view_is_left() -> None:
    first = empty_array(BIG, F32)
    place = first.ctypes.data
    view = np.asarray(first).reshape(-1)[5:].T[::2]
    del first
    gc.collect()
    assert empty_array(BIG, F32).ctypes.data != place
    del view
    gc.collect()
    assert empty_array(BIG, F32).ctypes.data == place


def test_results_stay_what_they_were() -> None:
    """A loop that keeps every result, in the form of an array or of a Tensor."""
    x = Tensor(np.arange(BIG[0], dtype=np.float32))
    kept = []
    for k in range(6):
        y = x * 2 + k
        kept.append((k, y.numpy() if k % 2 else y))
        del y
    want = np.arange(BIG[0], dtype=np.float32) * 2
    for k, result in kept:
        np.testing.assert_array_equal(result if k % 2 else result.numpy(), want + k)


def test_the_pool_is_bounded() -> None:
    size = POOL_LIMIT // 4
    arrays = [empty_array((size,), np.dtype(np.uint8)) for _ in range(6)]
    del arrays
    gc.collect()
    assert _pool.bytes <= POOL_LIMIT
    assert _pool.bytes == sum(
        size * len(blocks) for size, blocks in _pool.waiting.items())
