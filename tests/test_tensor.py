"""The Tensor itself: construction, dtypes, what it tells of itself, computing and assigning."""
from __future__ import annotations

import numpy as np
import pytest

from uopc.counters import counters
from uopc.dtype import ALL_DTYPES, dtypes
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


def test_requires_grad_may_be_set_later() -> None:
    x, y = Tensor.zeros(3), Tensor.zeros(3)
    x.requires_grad = y.requires_grad = True
    (x * 2 + y * 3).sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and y.grad.tolist() == [3.0] * 3
    x.requires_grad, x.grad = False, None
    for params in (None, [], iter(())):
        with pytest.raises(ValueError, match="nothing to differentiate for.*requires_grad=True"):
            (x * 2).sum().backward(params)
    with pytest.raises(TypeError, match="gradients are of tensors; one given is 'w'"):
        (x * 2).sum().backward({"w": x})
    assert x.grad is None and not x.requires_grad and y.requires_grad
    with pytest.raises(TypeError, match="floats"):
        Tensor([1]).requires_grad = True
