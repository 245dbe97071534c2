"""The node: hash-consing, the weak cache, derived shapes, wrap and substitute, depth, errors."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from helpers import buffer, same_meaning

from uopc.composite import array_buffer
from uopc.dtype import ALL_DTYPES, dtypes, from_np, promote, promote_number
from uopc.uop import Ops, ParamArg, UOp, _argkey

DEPTHS = [300, 20_000]


def a_buffer(*shape: int) -> UOp:
    return array_buffer(np.zeros(shape, np.float32))


# *** identity ***


def test_equal_nodes_are_one_object() -> None:
    x = a_buffer(3)
    assert x * 2 + 1 is x * 2 + 1
    assert x.reshape((1, 3)) is x.reshape([1, 3])
    assert UOp.const(2, dtypes.f32) is UOp.const(2.0, dtypes.f32)
    assert a_buffer(3) is not a_buffer(3), "equal-shaped buffers are distinct"


def test_argkey_tells_numbers_apart() -> None:
    keys = [_argkey(v) for v in (0, 1, 1.0, True, False, 0.0, -0.0, None, (1,), (1.0,), (True,))]
    assert len(set(keys)) == len(keys)
    nan, other_nan = float("nan"), float("inf") - float("inf")
    assert _argkey(nan) == _argkey(other_nan)
    assert UOp.const(nan, dtypes.f32) is UOp.const(other_nan, dtypes.f32)
    assert UOp.const(0.0, dtypes.f32) is not UOp.const(-0.0, dtypes.f32)
    assert UOp.const(1, dtypes.i32) is not UOp.const(1, dtypes.i64)
    assert UOp.const(1, dtypes.u8) is not UOp.const(True, dtypes.bool)


def test_cache_holds_nothing_alive() -> None:
    gc.collect()
    before = len(UOp._cache)
    graph = (a_buffer(4) * 2 + 1).reduce(Ops.ADD, 1)
    assert len(UOp._cache) > before
    del graph
    gc.collect()
    assert len(UOp._cache) <= before  # what earlier tests left may go meanwhile


def test_a_buffer_takes_its_array_with_it() -> None:
    array = np.zeros(5, np.float32)
    alive = weakref.ref(array)
    graph = array_buffer(array) + 1
    del array
    gc.collect()
    assert alive() is not None
    del graph
    gc.collect()
    assert alive() is None


def test_threads_agree_on_one_object() -> None:
    x, made = a_buffer(2), []

    def build() -> None:
        u = x
        for k in range(300):
            u = u + k
        made.append(u)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8 and len(set(map(id, made))) == 1


def test_immutable_and_not_sent_elsewhere() -> None:
    x = a_buffer(2)
    with pytest.raises(AttributeError, match="op cannot be set"):
        x.op = Ops.CONST
    with pytest.raises(TypeError, match="one object per process"):
        pickle.dumps(x)
    assert pickle.loads(pickle.dumps(dtypes.f32)) is dtypes.f32


def test_repr_of_a_buffer() -> None:
    x = UOp(Ops.BUFFER, (), ParamArg(slot=1, dtype=dtypes.f32, shape=(32,)))
    assert repr(x) == ("UOp(Ops.BUFFER, arg=ParamArg(slot=1, dtype=dtypes.f32, shape=(32,), "
                       "addrspace=None))")
    assert "Ops.ADD" in repr(x + 1)


# *** depth ***


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_chains_need_no_recursion(depth: int) -> None:
    before = len(UOp._cache)
    x = a_buffer(2)
    u = x
    for _ in range(depth // 2):
        u = (u * 2) + x
    order = u.toposort()
    assert len(order) == 2 * (depth // 2) + 2
    y = a_buffer(2)
    assert len(u.substitute({x: y}).toposort()) == len(order)
    (wrapped,) = UOp.wrap([u], [x], UOp.stage)
    assert len(wrapped.toposort()) == len(order) + 1
    del order, u, wrapped, x, y
    gc.collect()
    assert len(UOp._cache) == before, "a deep graph is collected without recursion"


def test_toposort_puts_sources_first_and_shared_nodes_once() -> None:
    x = a_buffer(2)
    u = x
    for _ in range(60):
        u = u + u  # 2**60 paths
    order = u.toposort()
    position = {node: k for k, node in enumerate(order)}
    assert len(order) == len(position) == 61
    assert all(position[s] < position[node] for node in order for s in node.src)
    assert u.toposort(stop=lambda node: node is u) == [u]


# *** wrap and substitute ***


def test_wrap_composes_where_substitute_does_not() -> None:
    x = a_buffer(4, 4)
    inner = x * 2 + 1
    outer = inner.exp2() * inner
    root = outer.reduce(Ops.ADD, 1)

    def stages(graph: UOp) -> int:
        return sum(u.op is Ops.STAGE for u in graph.toposort())

    (wrapped,) = UOp.wrap([root], [inner, outer], UOp.stage)
    assert stages(wrapped) == 2
    assert stages(root.substitute({inner: inner.stage(), outer: outer.stage()})) == 1


def test_substitute_does_not_look_inside_its_results() -> None:
    x = a_buffer(2)
    assert x.substitute({x: x + 1}) is x + 1
    assert (x * 3).substitute({}) is x * 3


def test_wrap_keeps_order_and_sharing() -> None:
    x, y = a_buffer(2), a_buffer(2)
    shared = x + 1
    first, second = UOp.wrap([shared * 2, shared * y], [shared], UOp.stage)
    assert first.src[0] is second.src[0] is shared.stage()


# *** derived shape and dtype ***


def test_shapes_and_dtypes() -> None:
    x = a_buffer(2, 3, 4)
    assert x.permute((2, 0, 1)).shape == (4, 2, 3)
    assert x.pad(((1, 2), (0, 0), (0, 1))).shape == (5, 3, 5)
    assert x.shrink(((0, 1), (1, 3), (4, 4))).shape == (1, 2, 0)
    assert x.reduce(Ops.ADD, 2).shape == (2,) and x.reduce(Ops.ADD, 0) is x
    assert (x < 1).dtype is dtypes.bool and (x < 1).shape == x.shape
    assert UOp.const(1, dtypes.f32).alu(Ops.ADD, x).shape == x.shape
    assert x.cast(dtypes.i32).dtype is dtypes.i32 and x.cast(dtypes.f32) is x
    rows = array_buffer(np.zeros((5, 6), np.int32))
    assert UOp(Ops.GATHER, (x, rows)).shape == (5, 6, 3, 4)
    assert UOp(Ops.SCATTER, (rows, a_buffer(5, 6, 3)), 9).shape == (9, 3)
    assert UOp.iota(7).shape == (7,) and UOp.iota(7).dtype is dtypes.i32


def test_movement_that_moves_nothing_is_no_node() -> None:
    x = a_buffer(2, 3)
    assert x.reshape((2, 3)) is x.reshape((6,)).reshape((2, 3)) is x
    assert x.expand((2, 3)) is x.permute((0, 1)) is x.shrink(((0, 2), (0, 3))) is x
    assert x.pad(((0, 0), (0, 0))) is x.flip(()) is x


def test_python_operators_mean_what_they_say() -> None:
    x = buffer([1.5, -2.0, 4.0])
    values = np.array([1.5, -2.0, 4.0], np.float32)
    for u, want in [(x - 1, values - 1), (1 - x, 1 - values), (x / 2, values / 2),
                    (1 / x, 1 / values), (2 * x + 1, 2 * values + 1), (-x, -values),
                    (x - x, values - values), (x // 2, values // 2), (x % 3, values % 3),
                    ((x < 2).where(x, 0), np.where(values < 2, values, 0))]:
        np.testing.assert_allclose(same_meaning(u), want, rtol=1e-6)
    assert (x - x).src[1] is x * -1, "a - b is a + b*-1"


def test_dividing_by_a_zero_number_follows_ieee() -> None:
    x = buffer([1.0, -1.0, 0.0])
    np.testing.assert_array_equal(same_meaning(x / 0), np.float32([np.inf, -np.inf, np.nan]))
    np.testing.assert_array_equal(same_meaning(x / -0.0), np.float32([-np.inf, np.inf, np.nan]))


# *** errors name both values ***


@pytest.mark.parametrize(("build", "names"), [
    (lambda x: x.reshape((5,)), ["(2, 3)", "(5,)"]),
    (lambda x: x.reshape((-1, -6)), ["(2, 3)", "(-1, -6)"]),
    (lambda x: x.expand((2, 4)), ["(2, 3)", "(2, 4)"]),
    (lambda x: x.expand((1, 2, 3)), ["(2, 3)", "(1, 2, 3)"]),
    (lambda x: x.permute((0, 0)), ["(2, 3)", "(0, 0)"]),
    (lambda x: x.shrink(((0, 3), (0, 3))), ["(2, 3)", "((0, 3), (0, 3))"]),
    (lambda x: x.shrink(((0, 2),)), ["(2, 3)", "((0, 2),)"]),
    (lambda x: x.pad(((-1, 0), (0, 0))), ["(2, 3)", "((-1, 0), (0, 0))"]),
    (lambda x: x.flip((2,)), ["(2, 3)", "(2,)"]),
    (lambda x: x.flip((0, 0)), ["(2, 3)", "(0, 0)"]),
    (lambda x: x.reduce(Ops.ADD, 3), ["(2, 3)", "3"]),
    (lambda x: x.reduce(Ops.IDIV, 1), ["(2, 3)", "IDIV"]),
    (lambda x: x + a_buffer(3, 2), ["(2, 3)", "(3, 2)"]),
])
def test_wrong_shapes_are_refused(build: object, names: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        build(a_buffer(2, 3))
    assert all(name in str(error.value) for name in names), error.value


def test_wrong_dtypes_are_refused() -> None:
    x, y = a_buffer(2), array_buffer(np.zeros(2, np.int32))
    with pytest.raises(TypeError, match="dtypes.f32 and dtypes.i32|dtypes.i32 and dtypes.f32"):
        x + y
    with pytest.raises(TypeError, match="1 and 2"):
        (x < 1).where(1, 2)
    with pytest.raises(TypeError, match="complex128"):
        from_np(np.complex128)


# *** dtypes ***


def test_promotion() -> None:
    assert all(promote(a, b) is promote(b, a) for a in ALL_DTYPES for b in ALL_DTYPES)
    assert promote(dtypes.u32, dtypes.i32) is dtypes.i64
    assert promote(dtypes.bool, dtypes.u8) is dtypes.u8
    assert promote(dtypes.i64, dtypes.f32) is dtypes.f32
    assert promote_number(dtypes.i32, 1) is dtypes.i32
    assert promote_number(dtypes.i32, 0.5) is dtypes.f32
    assert promote_number(dtypes.bool, 1) is dtypes.i32
    assert promote_number(dtypes.f64, 0.5) is dtypes.f64


def test_integer_constants_wrap_around() -> None:
    assert UOp.const(300, dtypes.u8).arg.value == 44
    assert UOp.const(-1, dtypes.u32).arg.value == 2**32 - 1
    assert UOp.const(2**31, dtypes.i32).arg.value == -2**31
    assert UOp.const(2, dtypes.bool).arg.value is True
