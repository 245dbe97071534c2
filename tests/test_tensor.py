"""The Tensor itself: construction, dtypes, what it tells of itself, computing and assigning."""
from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from uopc.counters import counters
from uopc.dtype import ALL_DTYPES, dtypes
from uopc.kernelize import _plans
from uopc.tensor import Tensor

# *** construction ***


@pytest.mark.parametrize(("data", "dtype"), [
    (1, dtypes.i32), (1.0, dtypes.f32), (True, dtypes.bool), ([1, 2], dtypes.i32),
    ([1, 2.5], dtypes.f32), ([[True], [False]], dtypes.bool), ([], dtypes.f32),
    ([[], []], dtypes.f32), (2**40, dtypes.i64), ([0, -2**31 - 1], dtypes.i64),
    ([2**31 - 1, -2**31], dtypes.i32), ((1, 2), dtypes.i32), (range(3), dtypes.i32),
    (np.float64(1), dtypes.f64), ([np.float64(1)], dtypes.f64), ([np.int64(1)], dtypes.i64),
    ([[np.zeros(2), np.ones(2)]], dtypes.f64)], ids=str)
def test_dtype_of_plain_data(data, dtype):
    x = Tensor(data)
    assert x.dtype is dtype
    assert x.shape == np.shape(data)
    np.testing.assert_array_equal(x.numpy(), np.array(data))


def test_arrays_keep_their_dtype_and_are_copied():
    for dtype in ALL_DTYPES:
        array = np.ones((2, 3), dtype.np)
        x = Tensor(array)
        array[:] = 0
        assert x.dtype is dtype
        assert x.numpy().dtype == dtype.np
        assert x.numpy().all()
    assert Tensor(np.ones(2, ">f4")).dtype is dtypes.f32


def test_arrays_of_any_memory_layout():
    base = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for array in (base.T, base[:, ::-2], base[..., 1], np.asfortranarray(base),
                  np.broadcast_to(base[0, 0], (3, 4)), base[:0]):
        x = Tensor(array)
        np.testing.assert_array_equal((x + 1).numpy(), array + 1)


def test_a_given_dtype_converts():
    assert Tensor([1, 0], dtype=dtypes.bool).tolist() == [True, False]
    assert Tensor(np.float64([1.5]), dtype=dtypes.f32).dtype is dtypes.f32
    assert Tensor(Tensor([1, 2]), dtype=dtypes.f64).tolist() == [1.0, 2.0]
    assert Tensor([2.9], dtype=dtypes.i32).tolist() == [2]
    with pytest.raises(OverflowError, match="300"):
        Tensor(300, dtype=dtypes.u8)


def test_a_tensor_of_a_tensor_is_a_copy():
    x = Tensor([1.0])
    y = Tensor(x)
    x[0] = 5
    assert y.tolist() == [1]


@pytest.mark.parametrize("data", [np.zeros(2, np.float16), np.zeros(2, np.complex64), "a", None,
                                  np.zeros(2, np.int16), ["a", "b"], 2**70, object()], ids=str)
def test_data_that_has_no_dtype_here_is_refused(data):
    with pytest.raises(TypeError, match="uopc has no dtype .*; convert the array first to one of"):
        Tensor(data)


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError, match="inhomogeneous"):
        Tensor([[1, 2], [3]])


def test_creation():
    made = {
        "zeros": (Tensor.zeros(2, 3), np.zeros((2, 3), np.float32)),
        "zeros tuple": (Tensor.zeros((2, 0)), np.zeros((2, 0), np.float32)),
        "zeros 0-d": (Tensor.zeros(), np.zeros((), np.float32)),
        "ones": (Tensor.ones(3, dtype=dtypes.i64), np.ones(3, np.int64)),
        "full": (Tensor.full((2, 1), 7), np.full((2, 1), 7, np.int32)),
        "full float": (Tensor.full(2, 0.5), np.full(2, 0.5, np.float32)),
        "full bool": (Tensor.full([2], True), np.full(2, True)),
        "full large": (Tensor.full((1,), 2**40), np.full(1, 2**40)),
        "full numpy": (Tensor.full((1,), np.float32(0.5)), np.full(1, 0.5, np.float32)),
        "arange": (Tensor.arange(5), np.arange(5, dtype=np.int32)),
        "arange from": (Tensor.arange(2, 9, 3), np.arange(2, 9, 3, dtype=np.int32)),
        "arange down": (Tensor.arange(5, 0, -2), np.arange(5, 0, -2, dtype=np.int32)),
        "arange none": (Tensor.arange(3, 3), np.arange(0, dtype=np.int32)),
        "arange floats": (Tensor.arange(0, 1, 0.25), np.arange(0, 1, 0.25, dtype=np.float32)),
        "arange to a float": (Tensor.arange(0, 2.5), np.arange(0, 2.5, dtype=np.float32)),
        "arange far": (Tensor.arange(0, 2**33, 2**32), np.arange(0, 2**33, 2**32)),
        "arange dtype": (Tensor.arange(3, dtype=dtypes.f64), np.arange(3.0)),
    }
    Tensor.realize_all(*(t for t, _ in made.values()))
    for name, (tensor, want) in made.items():
        np.testing.assert_array_equal(tensor.numpy(), want, err_msg=name)
        assert tensor.numpy().dtype == want.dtype, name


def test_errors_of_creation():
    with pytest.raises(ValueError, match=r"must not be negative, got \(2, -1\)"):
        Tensor.zeros(2, -1)
    with pytest.raises(TypeError, match=r"whole numbers, got 2.5"):
        Tensor.ones(2.5)
    with pytest.raises(ValueError, match="step must not be 0"):
        Tensor.arange(0, 5, 0)
    with pytest.raises(OverflowError, match="300 is out of range for dtypes.u8"):
        Tensor.full((2,), 300, dtypes.u8)


# *** what it tells of itself ***


def test_shape_size_and_repr():
    x = Tensor(np.zeros((2, 0, 3), np.int64))
    assert (x.shape, x.ndim, x.size, len(x), x.dtype) == ((2, 0, 3), 3, 0, 2, dtypes.i64)
    assert repr(x) == "Tensor(shape=(2, 0, 3), dtype=dtypes.i64)"
    w = Tensor([1.0], requires_grad=True)
    assert repr(w) == "Tensor(shape=(1,), dtype=dtypes.f32, requires_grad=True)"
    assert not (w * 2).requires_grad


def test_a_repr_computes_nothing():
    before = counters.copy()
    repr(Tensor([1.0]) * 2)
    assert (counters - before).kernels == 0


def test_truth_is_that_of_the_only_element():
    assert Tensor(2.0) and Tensor([[1]]) and not Tensor([0.0])
    for shape in ((2,), (0,)):
        with pytest.raises(ValueError, match=r"truth of a tensor of shape \(\d,\) is ambiguous"):
            bool(Tensor.zeros(shape))


def test_item_and_tolist_give_python_numbers():
    for data, kind in ((2.5, float), (2, int), (True, bool)):
        item = Tensor([[data]]).item()
        assert item == data and type(item) is kind
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    for shape in ((2,), (0,)):
        with pytest.raises(ValueError, match=r"exactly one element, this tensor has shape \(\d,\)"):
            Tensor.zeros(shape).item()


def test_length_and_rows():
    assert len(Tensor([[1, 2]])) == 1
    assert [row.tolist() for row in Tensor([[1, 2], [3, 4]]) * 2] == [[2, 4], [6, 8]]
    assert list(Tensor([])) == []
    assert 2 in Tensor([1, 2]) and 3 not in Tensor([1, 2])
    for wrong in (len, list):
        with pytest.raises(TypeError, match="0-d tensor"):
            wrong(Tensor(1.0))


def test_numpy_gives_a_new_array_every_time():
    for x in (Tensor([1.0, 2.0]), Tensor([1.0, 2.0]) * 1.5):
        want = x.tolist()
        x.numpy()[:] = 0
        assert x.tolist() == want
        assert np.asarray(x).tolist() == want
        assert np.asarray(x, dtype=np.float64).dtype == np.float64


def test_tensors_are_hashed_by_identity():
    a, b = Tensor([1.0]), Tensor([1.0])
    assert len({a: 1, b: 2}) == 2


# *** computing ***


def test_nothing_is_computed_before_it_is_asked_for_and_then_only_once():
    x = Tensor([1.0, 2.0]) * 2.75
    before = counters.copy()
    y = (x + 1).sum()
    assert (counters - before).kernels == 0
    y.realize()
    first = counters.copy()
    assert (first - before).kernels > 0
    assert y.item() == 10.25
    y.realize()
    assert (counters - first).kernels == 0


def test_a_value_that_was_computed_is_found_wherever_it_occurs():
    x = Tensor(np.arange(6, dtype=np.float32))
    norm = (x * x).sum().realize()
    before = counters.copy()
    scaled = (x / (x * x).sum()).numpy()
    assert (counters - before).kernels == 1  # the sum is not computed again
    np.testing.assert_allclose(scaled, np.arange(6) / 55, rtol=1e-6)
    assert norm.item() == 55


def test_a_tensor_knows_the_value_that_an_equal_one_computed():
    x = Tensor([1.0, 2.0])
    (x * 3).realize()
    kept = (x * 3).realize()
    before = counters.copy()
    assert (x * 3).tolist() == [3, 6]
    assert (counters - before).kernels == 0
    assert kept.tolist() == [3, 6]


def test_several_are_computed_in_one_plan():
    x = Tensor([1.0, 2.0])
    before = counters.copy()
    a, b = x + 1.25, (x + 1.25) * 3
    Tensor.realize_all(a, b, a, x)
    done = counters - before
    assert done.plan_hits + done.plan_misses == 1
    assert (a.tolist(), b.tolist(), x.tolist()) == ([2.25, 3.25], [6.75, 9.75], [1, 2])
    Tensor.realize_all()


def test_equal_structure_is_one_plan():
    def step(values):
        return (Tensor(values) * 2.5 - 1).sum().item()

    assert step([1.0, 2.0, 3.0]) == 12
    before = counters.copy()
    assert step([3.0, 4.0, 5.0]) == 27
    assert (counters - before).plan_misses == 0
    assert (counters - before).plan_hits == 1


def test_a_plan_for_one_dtype_or_shape_does_not_serve_another():
    for data in ([1, 2], [1.0, 2.0], [1, 2, 3], [[1, 2]]):
        np.testing.assert_array_equal((Tensor(data) * 3).numpy(), np.array(data) * 3)


def test_results_of_one_plan_do_not_share_memory():
    first = (Tensor([1.0]) + 1.5).realize()
    second = (Tensor([2.0]) + 1.5).realize()
    assert (first.item(), second.item()) == (2.5, 3.5)


def test_fusing_reductions_changes_no_value():
    x = Tensor(np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32))
    plain = [x.softmax().numpy(), x.var(1).numpy()]
    Tensor.fuse_reduce = True
    try:
        y = Tensor(x)
        before = counters.copy()
        fused = [y.softmax().numpy(), y.var(1).numpy()]
        assert (counters - before).kernels == 2
    finally:
        Tensor.fuse_reduce = False
    for a, b in zip(plain, fused, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_views_of_data_need_no_copy_to_be_read():
    x = Tensor(np.arange(6, dtype=np.float32))
    before = counters.copy()
    assert x.reshape(2, 3).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (counters - before).kernels == 0


# *** assignment ***


def test_assign_gives_a_new_value_and_others_keep_the_old():
    x = Tensor([1.0, 2.0])
    double = x * 2
    assert x.assign([5.0, 6.0]) is x
    assert (x.tolist(), double.tolist()) == ([5, 6], [2, 4])
    x.assign(x + 1)
    x.assign(x * x)
    assert x.tolist() == [36, 49]


def test_assigned_tensors_are_independent():
    x, y = Tensor([1.0]), Tensor([2.0])
    x.assign(y)
    y[0] = 7
    assert (x.item(), y.item()) == (2, 7)


def test_assign_swaps():
    x, y = Tensor([1.0]), Tensor([2.0])
    old = x * 1
    x.assign(y)
    y.assign(old)
    Tensor.realize_all(x, y)
    assert (x.item(), y.item()) == (2, 1)


def test_assign_refuses_another_shape_or_dtype():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"cannot assign shape \(3,\) to a tensor of \(2,\)"):
        x.assign(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"cannot assign dtypes.i32 to a tensor of dtypes.f32"):
        x.assign(Tensor([1, 2]))
    assert x.tolist() == [1, 2]


def test_a_parameter_that_is_assigned_and_realized_does_not_grow_a_graph():
    w = Tensor([1.0], requires_grad=True)
    sizes = []
    for _ in range(3):
        w.assign(w * 0.5)
        w.realize()
        sizes.append(len(w.uop.toposort()))
    assert sizes == [1, 1, 1]
    assert w.item() == 0.125 and w.requires_grad


# *** memory ***


def array_of(tensor):
    """A weak reference to the array that holds a computed tensor."""
    node = tensor.uop.__dict__.get("realized", tensor.uop)
    return weakref.ref(node.__dict__["np"])


def test_memory_goes_with_the_last_tensor_that_can_reach_it():
    x = Tensor(np.ones(1000, np.float32))
    y = (x * 1.75).realize()
    data, result = array_of(x), array_of(y)
    del x
    gc.collect()
    assert data() is not None  # y's graph still reaches it
    del y
    gc.collect()
    assert data() is None and result() is None


def test_no_plan_keeps_an_array_alive():
    x = Tensor(np.ones(1000, np.float32))
    data = array_of(x)
    (x + 1.125).sum().item()
    assert len(_plans) > 0
    del x
    gc.collect()
    assert data() is None


def test_what_was_overwritten_is_let_go():
    w = Tensor(np.ones(1000, np.float32))
    old = array_of(w)
    w.assign(w * 0.5)
    w.realize()
    gc.collect()
    assert old() is None
