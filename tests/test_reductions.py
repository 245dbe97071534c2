"""Reductions of a Tensor, softmax and losses against NumPy."""
from __future__ import annotations

import math

import numpy as np
import pytest
from numeric import Case, array, check

from uopc.dtype import dtypes
from uopc.tensor import Tensor

AXES = [(None, False), (0, False), (-1, True), ((0, 2), False), ((2, -3), True), ((0, 1, 2), True),
        ((), False)]
FLOATS = ("sum", "prod", "max", "min", "mean", "var", "std")


def reduced(name, axis, keepdim, x, **options):
    """One case: the method on a Tensor, NumPy's function on the array."""
    return Case(f"{name} axis={axis} keepdim={keepdim}",
                lambda t: getattr(t, name)(axis, keepdim, **options),
                lambda a: getattr(np, name)(a, axis=axis, keepdims=keepdim), (x,))


@pytest.mark.parametrize("name", FLOATS)
def test_over_every_kind_of_axis(name):
    axes = AXES if name in ("sum", "max") else AXES[:4:3] + AXES[4:5]
    check([reduced(name, axis, keepdim, array(3, 1, 5)) for axis, keepdim in axes])


def test_in_f64_and_of_a_single_number():
    cases = []
    for name in ("sum", "prod", "max", "min", "mean"):
        cases.append(reduced(name, None, False, array(dtype=np.float64)))
        cases.append(reduced(name, 0, False, array(7, 3, dtype=np.float64)))
    cases.append(reduced("var", 0, False, array(7, 3, dtype=np.float64)))
    check(cases)


def test_an_axis_may_be_a_list_or_a_numpy_integer():
    x = Tensor(array(3, 1, 5))
    assert x.sum(np.int64(0)).shape == (1, 5)
    assert x.sum([0, 2]).shape == (1,)


def test_variance_with_a_correction():
    x = array(3, 5)
    check([Case("sample", lambda t: t.var(1, correction=1), lambda a: a.var(1, ddof=1), (x,)),
           Case("sample std", lambda t: t.std(correction=1), lambda a: a.std(ddof=1), (x,))])
    assert np.isnan(Tensor([[2.0]]).var(1, correction=1).item())


def test_the_standard_deviation_of_equal_numbers_has_gradient_zero():
    x = Tensor([3.0, 3.0])
    x.std().backward([x])
    assert x.grad.tolist() == [0, 0]


def test_mean_of_a_long_axis_is_accurate():
    assert Tensor(np.full(1000, 0.1, np.float32)).mean().item() == pytest.approx(0.1, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint32, np.int64])
def test_integers_add_up_as_i64(dtype):
    x = np.array([[200, 7, 0], [255, 1, 9]], dtype)
    cases = [Case(f"{name} {axis}", lambda t, n=name, a=axis: getattr(t, n)(a),
                  lambda v, n=name, a=axis: getattr(np, n)(v, axis=a).astype(np.int64), (x,),
                  dtypes.i64) for name in ("sum", "prod", "cumsum") for axis in (0, 1)]
    cases += [Case(name, getattr(Tensor, name), getattr(np, name), (x,), Tensor(x).dtype)
              for name in ("max", "min")]
    cases += [Case(name, getattr(Tensor, name), getattr(np, name), (x,), dtypes.i32)
              for name in ("argmax", "argmin")]
    cases += [Case(name, getattr(Tensor, name), getattr(np, name), (x,), dtypes.bool)
              for name in ("any", "all")]
    cases += [Case(name, getattr(Tensor, name), getattr(np, name), (x,), dtypes.f32)
              for name in ("mean", "var")]
    check(cases)


def test_the_least_and_the_greatest_integers():
    for dtype in (dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64):
        x = Tensor([dtype.max, dtype.min], dtype=dtype)
        assert (x.min().item(), x.max().item()) == (dtype.min, dtype.max)
        assert (x.argmin().item(), x.argmax().item()) == (1, 0)


def test_bools():
    x = np.array([[True, False, True], [True, True, True]])
    check([Case(f"{name} {axis}", lambda t, n=name, a=axis: getattr(t, n)(a),
                lambda v, n=name, a=axis: getattr(np, n)(v, axis=a), (x,))
           for name in ("sum", "any", "all", "max", "min") for axis in (None, 0, 1)]
          + [Case("mean", Tensor.mean, np.mean, (x,), dtypes.f32)])
    assert Tensor(x).sum().dtype is dtypes.i64
    assert Tensor(x).max().dtype is dtypes.bool


def test_nan_wins_every_maximum_and_minimum():
    x = np.float32([[1, np.nan, 3], [np.inf, 2, -np.inf], [np.nan, np.nan, 1]])
    check([Case(f"{name} {axis}", lambda t, n=name, a=axis: getattr(t, n)(a),
                lambda v, n=name, a=axis: getattr(np, n)(v, axis=a), (x,), grad=False)
           for name in ("max", "min", "argmax", "argmin", "sum", "any", "all")
           for axis in (None, 1)])


def test_equal_maxima_share_the_gradient():
    x = Tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    x.max(1).sum().backward([x])
    np.testing.assert_allclose(x.grad.numpy(), [[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    x.grad = None
    x.min(1).sum().backward([x])
    np.testing.assert_allclose(x.grad.numpy(), [[0, 1, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_the_gradient_of_a_product_with_zeros():
    x = Tensor([[2.0, 0.0, 5.0], [0.0, 0.0, 4.0], [1.0, 2.0, 3.0]])
    x.prod(1).sum().backward([x])
    np.testing.assert_allclose(x.grad.numpy(), [[0, 10, 0], [0, 0, 0], [6, 3, 2]], rtol=1e-6)


def test_argmax_along_axes():
    x = array(3, 5)
    cases = [Case(f"{name} {axis}", lambda t, n=name, a=axis: getattr(t, n)(a),
                  lambda v, n=name, a=axis: getattr(np, n)(v, axis=a), (x,), dtypes.i32)
             for name in ("argmax", "argmin") for axis in (None, 0, -1)]
    ties = np.int32([[3, 1, 3, 1], [2, 2, 2, 2]])
    check(cases + [Case(name, lambda t, n=name: getattr(t, n)(1),
                        lambda v, n=name: getattr(np, n)(v, axis=1), (ties,))
                   for name in ("argmax", "argmin")])
    assert Tensor(x).argmax(keepdim=True).shape == (1, 1)
    assert Tensor(x).argmin(1, keepdim=True).shape == (3, 1)


def test_an_empty_axis_gives_the_identity_or_an_error():
    x = Tensor(np.zeros((2, 0, 3), np.float32))
    for result, want in ((x.sum(1), 0), (x.prod(1), 1), (x.mean(1), np.nan), (x.var(1), np.nan),
                         (x.any(1), False), (x.all(1), True)):
        np.testing.assert_array_equal(result.numpy(), np.full((2, 3), want))
    assert x.sum().item() == 0
    assert x.max(2).shape == x.argmax(2).shape == (2, 0)
    assert x.max(2).numpy().size == x.softmax(1).numpy().size == x.cumsum(1).numpy().size == 0
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match=r"\(2, 0, 3\): there is no element"):
            getattr(x, name)(1)


def test_reducing_no_rows_at_all():
    x = Tensor(np.zeros((0, 3), np.float32))
    assert x.sum(1).numpy().shape == x.max(1).numpy().shape == (0,)
    x.sum().backward([x])
    assert x.grad.numpy().shape == (0, 3)


def test_running_sums():
    check([Case(f"{shape} axis {axis}", lambda t, a=axis: t.cumsum(a),
                lambda v, a=axis: np.cumsum(v, axis=a), (array(*shape, low=-1, high=1),))
           for shape, axis in (((3, 5), 0), ((3, 5), -1), ((2, 1, 3), 1), ((1,), 0), ((0,), 0),
                               ((2, 300), 1))])


# *** softmax and its kin ***


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def test_softmax():
    x = array(3, 1, 5)
    cases = []
    for axis in (-1, 0, 1):
        cases.append(Case(f"softmax {axis}", lambda t, a=axis: t.softmax(a),
                          lambda v, a=axis: softmax(v, a), (x,)))
        cases.append(Case(f"log_softmax {axis}", lambda t, a=axis: t.log_softmax(a),
                          lambda v, a=axis: np.log(softmax(v, a)), (x,)))
    cases.append(Case("f64", Tensor.softmax, softmax, (array(4, dtype=np.float64),)))
    cases.append(Case("integers", Tensor.softmax, softmax, (np.int32([[1, 2, 3]]),), dtypes.f32))
    check(cases)


def test_logsumexp():
    x = array(3, 1, 5)
    check([Case(f"{axis} {keepdim}", lambda t, a=axis, k=keepdim: t.logsumexp(a, k),
                lambda v, a=axis, k=keepdim: logsumexp(v, a, k), (x,))
           for axis, keepdim in ((None, False), (0, False), (-1, True), ((0, 2), False))])


def test_softmax_of_large_and_infinite_numbers():
    x = Tensor([[1000.0, 1000, -1000], [-np.inf, 0, 0], [-np.inf, -np.inf, 7]])
    np.testing.assert_array_equal(x.softmax().numpy(), [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]])
    half = -math.log(2)
    np.testing.assert_allclose(x.log_softmax().numpy(), [
        [half, half, -2000 + half], [-np.inf, half, half], [-np.inf, -np.inf, 0]], rtol=1e-6)
    for value in (np.nan, np.inf):
        assert np.isnan(Tensor([[1.0, value, 2.0]]).log_softmax().numpy()).all()


def test_the_gradient_of_softmax_adds_up_to_nothing_even_for_large_numbers():
    x = Tensor([1000.0, 999.0, -1000.0])
    x.softmax()[0].backward([x])
    p = 1 / (1 + math.exp(-1))
    np.testing.assert_allclose(x.grad.numpy(), [p * (1 - p), -p * (1 - p), 0], rtol=1e-5, atol=1e-7)


# *** cross-entropy ***

LABELS = np.int64([1, 4, 0])


def cross_entropy(x, labels=LABELS, smoothing=0.0, ignore=-100):
    logp = np.log(softmax(x)).reshape(-1, x.shape[-1])
    labels = labels.reshape(-1)
    rows = np.flatnonzero(labels != ignore)
    losses = -(1 - smoothing) * logp[rows, labels[rows]] - smoothing * logp[rows].mean(-1)
    return losses.sum() / len(rows)


def test_cross_entropy():
    x = array(3, 5)
    deep, deep_labels = array(2, 3, 5), np.int32([[1, 4, 0], [2, 2, 3]])
    ignoring = np.int64([1, -100, 0])
    check([
        Case("rows", lambda t: t.cross_entropy(Tensor(LABELS)), cross_entropy, (x,)),
        Case("labels as a list", lambda t: t.cross_entropy([1, 4, 0]), cross_entropy, (x,)),
        Case("u8 labels", lambda t: t.cross_entropy(LABELS.astype(np.uint8)), cross_entropy, (x,)),
        Case("batches", lambda t: t.cross_entropy(deep_labels),
             lambda v: cross_entropy(v, deep_labels), (deep,)),
        Case("smoothed", lambda t: t.cross_entropy(LABELS, label_smoothing=0.2),
             lambda v: cross_entropy(v, smoothing=0.2), (x,)),
        Case("a row is ignored", lambda t: t.cross_entropy(ignoring),
             lambda v: cross_entropy(v, ignoring), (x,)),
        Case("label 0 is ignored", lambda t: t.cross_entropy(LABELS, ignore_index=0),
             lambda v: cross_entropy(v, LABELS, ignore=0), (x,)),
        Case("one row", lambda t: t.cross_entropy(3),
             lambda v: -np.log(softmax(v))[3], (array(5),)),
    ])


def test_cross_entropy_of_sure_and_of_wrong_logits():
    assert Tensor([[0.0, 200.0]]).cross_entropy([1]).item() == 0
    assert Tensor([[0.0, 200.0]]).cross_entropy([0]).item() == 200
    assert np.isnan(Tensor([[0.0, 1.0]]).cross_entropy([-100]).item())


def test_errors_of_cross_entropy_name_what_does_not_fit():
    x = Tensor(array(3, 5))
    with pytest.raises(ValueError, match=r"\(3, 5\) need labels of shape \(3,\), got \(2,\)"):
        x.cross_entropy([1, 2])
    with pytest.raises(ValueError, match=r"logits \(\)"):
        Tensor(1.0).cross_entropy(0)
    with pytest.raises(TypeError, match="integer labels, got dtypes.f32"):
        x.cross_entropy(Tensor([1.0, 2.0, 3.0]))
    for bad in (5, -1):
        with pytest.raises(IndexError, match=f"label {bad} is out of range for size 5"):
            x.cross_entropy([0, bad, 1])
    with pytest.raises(ValueError, match="label_smoothing must be in 0..1, got 1.5"):
        x.cross_entropy([1, 2, 3], label_smoothing=1.5)


def test_errors_name_the_axis():
    x = Tensor(array(3, 5))
    for wrong in (lambda: x.sum(2), lambda: x.max(-3), lambda: x.softmax(2), lambda: x.cumsum(2),
                  lambda: x.argmax(5), lambda: x.mean((0, 2))):
        with pytest.raises(IndexError, match=r"axis -?\d is out of range for 2 axes"):
            wrong()
    with pytest.raises(ValueError, match=r"an axis is given twice in \(0, -2\)"):
        x.sum((0, -2))
    with pytest.raises(TypeError, match="an axis must be a whole number, got 1.0"):
        x.sum(1.0)
    with pytest.raises(IndexError, match="axis 0 is out of range for 0 axes"):
        Tensor(1.0).sum(0)
