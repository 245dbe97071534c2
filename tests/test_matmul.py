"""Matrix products of Tensors against NumPy."""
from __future__ import annotations

import operator

import numpy as np
import pytest
from numeric import Case, array, check

from uopc.dtype import dtypes
from uopc.tensor import Tensor

SHAPES = [((3, 5), (5, 2)), ((1, 5), (5, 1)), ((3, 1), (1, 2)), ((1, 1), (1, 1)), ((5,), (5,)),
          ((5,), (5, 2)), ((3, 5), (5,)), ((2, 3, 5), (2, 5, 4)), ((2, 3, 5), (5, 4)),
          ((3, 5), (2, 5, 4)), ((2, 1, 3, 5), (4, 5, 1)), ((2, 3, 5), (5,)), ((5,), (2, 5, 4)),
          ((0, 5), (5, 2)), ((3, 0), (0, 2)), ((0,), (0,))]


def product(name, a, b, **options):
    return Case(name, operator.matmul, np.matmul, (a, b), **options)


def test_every_kind_of_shape():
    check([product("@", array(*a), array(*b, seed=2)) for a, b in SHAPES])


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64, np.uint8, np.uint32, np.bool_])
def test_dtypes(dtype):
    a, b = array(3, 5, low=0, high=60).astype(dtype), array(5, 2, low=0, high=9).astype(dtype)
    check([product(dtype.__name__, a, b, dtype=Tensor(a).dtype)])


def test_integers_wrap_as_numpys_do():
    a = np.full((2, 300), 2**20, np.int32)
    assert (Tensor(a) @ Tensor(a.T)).tolist() == (a @ a.T).tolist()


def test_two_dtypes_meet_in_the_wider_one():
    a, b = np.int32([[1, 2], [3, 4]]), np.float32([[0.5], [0.25]])
    check([product("i32 @ f32", a, b, dtype=dtypes.f32),
           product("f32 @ f64", b.T, a.astype(np.float64), dtype=dtypes.f64)])


def test_an_array_on_either_side():
    a = array(3, 5)
    right, left = Tensor(a) @ a.T, a.T @ Tensor(a)
    Tensor.realize_all(right, left)
    np.testing.assert_allclose(right.numpy(), a @ a.T, rtol=1e-5)
    np.testing.assert_allclose(left.numpy(), a.T @ a, rtol=1e-5)


def test_a_matrix_times_itself_and_its_transpose():
    check([Case("x @ x", lambda x: x @ x, lambda x: x @ x, (array(3, 3),)),
           Case("x @ x.T", lambda x: x @ x.T, lambda x: x @ x.T, (array(3, 5),)),
           Case("(x @ w).relu() @ w", lambda x, w: (x @ w).relu() @ w,
                lambda x, w: np.maximum(x @ w, 0) @ w, (array(2, 3), array(3, 3, seed=3)))])


def test_nan_and_inf_reach_only_their_rows():
    a = array(3, 3)
    a[1, 2] = np.nan
    got = (Tensor(a) @ Tensor(array(3, 2))).numpy()
    assert np.isnan(got).all(1).tolist() == [False, True, False]
    assert np.isfinite(got).all(1).tolist() == [True, False, True]


@pytest.mark.parametrize(("a", "b"), [((3, 5), (3, 5)), ((5,), (4,)), ((3,), (1, 3)), ((), (3,)),
                                      ((3, 3), ()), ((2, 3, 4), (3, 4, 5))])
def test_shapes_that_do_not_fit_are_both_named(a, b):
    with pytest.raises(ValueError) as error:
        Tensor(array(*a)) @ Tensor(array(*b))
    assert f"shapes {a} and {b} do not fit" in str(error.value)


def test_a_number_is_no_matrix():
    x = Tensor(array(3))
    for wrong in (lambda: x @ 2, lambda: 2 @ x):
        with pytest.raises(ValueError, match="do not fit"):
            wrong()
