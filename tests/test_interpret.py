"""The oracle itself: against NumPy, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_same_bits, buffer, slots, stages

from uopc.composite import array_buffer, matmul
from uopc.dtype import dtypes
from uopc.interpret import interpret_graph, interpret_loops
from uopc.uop import Ops, ParamArg, UOp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7


def one(u: UOp) -> np.ndarray:
    return interpret_graph([u])[0]


@pytest.mark.parametrize(("build", "want"), [
    (lambda x: x.reshape((4, 6)), X.reshape(4, 6)),
    (lambda x: x.permute((2, 0, 1)), X.transpose(2, 0, 1)),
    (lambda x: x.reshape((2, 1, 12)).expand((2, 5, 12)), np.repeat(X.reshape(2, 1, 12), 5, 1)),
    (lambda x: x.shrink(((0, 1), (1, 3), (0, 4))), X[:1, 1:]),
    (lambda x: x.pad(((1, 0), (0, 2), (0, 0))), np.pad(X, ((1, 0), (0, 2), (0, 0)))),
    (lambda x: x.flip((0, 2)), X[::-1, :, ::-1]),
    (lambda x: x.stage() * 2, X * 2),
    (lambda x: x.reduce(Ops.ADD, 2), X.sum((1, 2))),
    (lambda x: x.reduce(Ops.MAX, 1), X.max(2)),
    (lambda x: x.shrink(((0, 2), (0, 0), (0, 4))).reduce(Ops.MUL, 2), np.ones(2)),
    (lambda x: (x < 0).where(x, 1), np.where(X < 0, X, 1)),
    (lambda x: x.cast(dtypes.i32) // 3, X.astype(np.int32) // 3),
    (lambda x: x // 3, X // 3),
    (lambda x: x % 3, X % 3),
])
def test_graph_agrees_with_numpy(build: object, want: np.ndarray) -> None:
    np.testing.assert_array_equal(one(build(array_buffer(X))), want)


def test_sources_of_values() -> None:
    assert_same_bits(one(UOp.iota(5)), np.arange(5, dtype=np.int32))
    assert_same_bits(one(UOp.const(2, dtypes.f64)), np.float64(2))
    hollow = UOp(Ops.BUFFER, (), ParamArg(3, dtypes.f32, (2,), "kernel"))
    assert_same_bits(interpret_graph([hollow + 1], {hollow: np.float32([1, 2])})[0],
                     np.float32([2, 3]))
    with pytest.raises(ValueError, match="has no data"):
        one(hollow)
    with pytest.raises(ValueError, match="does not belong to a shape graph"):
        one(UOp(Ops.RANGE, (), (0, 3)))


def test_reductions_take_one_element_after_the_other() -> None:
    x = np.float32([1e8, 1.0, -1e8, 1.0])
    assert one(array_buffer(x).reduce(Ops.ADD, 1)) == ((x[0] + x[1]) + x[2]) + x[3] == 1.0


def test_maximum_and_max() -> None:
    x, y = buffer([1, np.nan, 3]), buffer([np.nan, 2, 2])
    assert_same_bits(one(x.alu(Ops.MAX, y)), np.float32([np.nan, 2, 3]))
    assert_same_bits(one(x.alu(Ops.MAXIMUM, y)), np.float32([np.nan, np.nan, 3]))


def test_gather_and_scatter() -> None:
    x = array_buffer(np.arange(6, dtype=np.float32).reshape(3, 2))
    rows = buffer([[2, 0], [-1, 3]], dtypes.i32)
    np.testing.assert_array_equal(one(UOp(Ops.GATHER, (x, rows))),
                                  [[[4, 5], [0, 1]], [[0, 0], [0, 0]]])
    spread = UOp(Ops.SCATTER, (buffer([1, 1, 5], dtypes.i32), x), 3)
    np.testing.assert_array_equal(one(spread), [[0, 0], [2, 4], [0, 0]])


def test_several_roots_and_depth() -> None:
    x = buffer([1.0])
    u = x
    for _ in range(20_000):
        u = u + 1
    first, second = interpret_graph([u, x])
    assert first == 20_001 and second == 1
    first[:] = 0
    assert one(x) == 1, "a result is no view of the data"


# *** loops ***


def test_loops_at_every_stage() -> None:
    a, b = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[1, 0, 2], [0, 1, 3]])
    left, right = (UOp(Ops.BUFFER, (), ParamArg(k, dtypes.f32, v.shape, "kernel"))
                   for k, v in enumerate((a, b)))
    out = UOp(Ops.BUFFER, (), ParamArg(2, dtypes.f32, (3, 3), "kernel"))
    for name, sink in stages(matmul(left, right), out):
        arrays = {0: a.ravel(), 1: b.ravel(), 2: np.full(9, np.nan, np.float32)}
        interpret_loops(sink, arrays)
        np.testing.assert_array_equal(arrays[2], (a @ b).ravel(), err_msg=name)
        assert slots(sink) == [0, 1, 2]


def parameter(slot: int, size: int) -> UOp:
    return UOp(Ops.BUFFER, (), ParamArg(slot, dtypes.f32, (size,), "kernel"))


@pytest.mark.parametrize(("read", "write"), [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_every_access_is_checked(read: int, write: int) -> None:
    r = UOp(Ops.RANGE, (), (0, 4))
    value = UOp(Ops.LOAD, (UOp(Ops.INDEX, (parameter(0, 4), r + read)),))
    store = UOp(Ops.STORE, (UOp(Ops.INDEX, (parameter(1, 4), r + write)), value))
    sink = UOp(Ops.SINK, (UOp(Ops.END, (store, r)),))
    with pytest.raises(IndexError, match="outside UOp"):
        interpret_loops(sink, {0: np.zeros(4, np.float32), 1: np.zeros(4, np.float32)})


def test_a_shut_gate_reads_nothing() -> None:
    r = UOp(Ops.RANGE, (), (0, 4))
    index = UOp(Ops.INDEX, (parameter(0, 2), r + -1, (UOp.const(0, dtypes.i32) < r) & (r < 3)))
    store = UOp(Ops.STORE, (UOp(Ops.INDEX, (parameter(1, 4), r)), UOp(Ops.LOAD, (index,))))
    out = np.full(4, 9, np.float32)
    interpret_loops(UOp(Ops.SINK, (UOp(Ops.END, (store, r)),)), {0: np.float32([5, 6]), 1: out})
    assert out.tolist() == [0, 5, 6, 0]


def test_an_accumulator_must_be_set_before_it_is_read() -> None:
    acc = UOp(Ops.ACC, (), (0, dtypes.f32))
    target = UOp(Ops.INDEX, (parameter(0, 1), UOp.const(0, dtypes.i32)))
    sink = UOp(Ops.SINK, (UOp(Ops.STORE, (target, UOp(Ops.LOAD, (acc,)))),))
    with pytest.raises(KeyError):
        interpret_loops(sink, {0: np.zeros(1, np.float32)})
