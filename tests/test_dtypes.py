"""Integers, bools and how dtypes meet: elementwise operations against NumPy."""
from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from numeric import Case, array, both, check

from uopc.dtype import ALL_DTYPES, DType, dtypes
from uopc.tensor import Tensor

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


INTS = {"u8": np.uint8, "i32": np.int32, "u32": np.uint32, "i64": np.int64}


@pytest.mark.parametrize("dtype", INTS.values(), ids=INTS)
def test_integer_arithmetic_wraps_and_rounds_down_as_numpy_does(dtype):
    a = np.array([[200], [7], [0]], dtype)
    b = np.array([100, 3, 255, 2, 1], dtype)
    if np.iinfo(dtype).min:
        a, b = a - dtype(50), b * np.array([1, -1, 1, -1, 1], dtype)
    operators = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
                 operator.and_, operator.or_, operator.xor, operator.lt, operator.ge)
    cases = [Case(op.__name__, op, op, (a, b)) for op in operators]
    cases += [Case(name, getattr(Tensor, name), getattr(np, name), (a, b))
              for name in ("maximum", "minimum")]
    cases += [Case(op.__name__, op, op, (a,)) for op in (operator.neg, operator.invert, abs)]
    cases += [Case("square", Tensor.square, np.square, (a,)),
              Case("sign", Tensor.sign, np.sign, (a,)),
              Case("x - 3", lambda x: x - 3, lambda x: x - dtype(3), (a,)),
              Case("3 - x", lambda x: 3 - x, lambda x: dtype(3) - x, (a,)),
              Case("x ** 3", lambda x: x ** 3, lambda x: x ** 3, (a,)),
              Case("7 // x", lambda x: 7 // x, lambda x: dtype(7) // x, (b,)),
              Case("7 % x", lambda x: 7 % x, lambda x: dtype(7) % x, (b,)),
              Case("floor", Tensor.floor, lambda x: x, (a,)),
              Case("clip", lambda x: x.clip(3, 150), lambda x: np.clip(x, 3, 150), (a,)),
              Case("relu", Tensor.relu, lambda x: np.maximum(x, 0), (a,))]
    with np.errstate(over="ignore"):
        check([case._replace(dtype=None) for case in cases])
    for case in cases:
        result = case.op(*map(Tensor, case.inputs))
        expected = dtypes.bool if case.op in COMPARISONS else Tensor(a).dtype
        assert result.dtype is expected, case.name


@pytest.mark.parametrize("dtype", INTS.values(), ids=INTS)
def test_an_integer_divided_by_zero_is_zero(dtype):
    x, zero = Tensor(np.array([5, 0, 200], dtype)), Tensor(np.zeros(3, dtype))
    for result in (x // zero, x % zero, x // 0, x % 0, 5 // zero, 5 % zero):
        np.testing.assert_array_equal(result.numpy(), [0, 0, 0])


def test_the_smallest_integer_has_no_positive():
    low = np.int32(-2**31)
    x = Tensor(np.array([low]))
    for result in (x // -1, x // Tensor([-1]), -x, x.abs(), x * -1):
        assert result.numpy() == low
    assert (x % Tensor([-1])).item() == 0


def test_bools():
    a = np.array([[True], [False]])
    b = np.array([True, False])
    check([Case(op.__name__, op, op, (a, b), dtypes.bool) for op in (
        operator.and_, operator.or_, operator.xor, operator.add, operator.mul, *COMPARISONS)]
        + [Case("~", operator.invert, operator.invert, (a,), dtypes.bool),
           Case("maximum", Tensor.maximum, np.maximum, (a, b), dtypes.bool),
           Case("minimum", Tensor.minimum, np.minimum, (a, b), dtypes.bool),
           both("b + 1", lambda x: x + 1, a, dtype=dtypes.i32),
           both("b - 1", lambda x: x - 1, a, dtype=dtypes.i32),
           both("1 - b", lambda x: 1 - x, a, dtype=dtypes.i32),
           both("b * 0.5", lambda x: x * 0.5, a, dtype=dtypes.f32),
           both("b | True", lambda x: x | True, a, dtype=dtypes.bool)])
    x = Tensor(a)
    for wrong in (lambda: x - Tensor(b), lambda: x - True, lambda: True - x):
        with pytest.raises(TypeError, match="bool tensors do not subtract"):
            wrong()
    with pytest.raises(TypeError, match="bool tensor has no negative"):
        -Tensor(a)


def test_bit_operations_refuse_floats():
    for op in (operator.and_, operator.or_, operator.xor):
        with pytest.raises(TypeError, match="needs integers or bools, got dtypes.f32"):
            op(Tensor([1.0]), 1)
    with pytest.raises(TypeError, match="needs integers or bools"):
        ~Tensor([1.0])


# *** dtypes ***


def test_functions_that_leave_the_integers_give_f32():
    x = np.int32([1, 2, 3])
    check([Case(name, getattr(Tensor, name), getattr(np, name), (x,), dtypes.f32)
           for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "reciprocal")
           if name != "reciprocal"]
          + [Case("reciprocal", Tensor.reciprocal, lambda v: 1 / v, (x,), dtypes.f32),
             Case("/", operator.truediv, operator.truediv, (x, x), dtypes.f32),
             Case("/ 2", lambda v: v / 2, lambda v: v / 2, (x,), dtypes.f32),
             Case("** -1.0", lambda v: v ** -1.0, lambda v: 1 / v, (x,), dtypes.f32),
             Case("** 2.0", lambda v: v ** 2.0, lambda v: v ** 2.0, (x,), dtypes.f32),
             Case("** x / 2", lambda v: v ** (v / 2), lambda v: v ** (v / 2), (x,), dtypes.f32),
             Case("sigmoid", Tensor.sigmoid, lambda v: 1 / (1 + np.exp(-v)), (x,), dtypes.f32)])


ORDER = ("bool", "u8", "i32", "u32", "i64", "f32", "f64")


def test_two_dtypes_meet_in_the_wider_one():
    tensors = {name: Tensor([1], dtype=getattr(dtypes, name)) for name in ORDER}
    for i, a in enumerate(ORDER):
        for j, b in enumerate(ORDER):
            wider = "i64" if {a, b} == {"i32", "u32"} else ORDER[max(i, j)]
            assert (tensors[a] + tensors[b]).dtype is getattr(dtypes, wider), (a, b)
            assert (tensors[a] < tensors[b]).dtype is dtypes.bool


def test_a_python_number_adopts_the_dtype_that_can_hold_its_kind():
    for name in ORDER:
        x = Tensor([1], dtype=getattr(dtypes, name))
        assert (x * True).dtype is x.dtype
        assert (x * 2).dtype is (dtypes.i32 if name == "bool" else x.dtype)
        assert (x * 0.5).dtype is (x.dtype if name[0] == "f" else dtypes.f32)
        assert (2 * x).dtype is (x * 2).dtype


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int32])
def test_numpy_numbers_are_as_good_as_pythons(kind):
    x = array(2)
    check([both(op.__name__, lambda v, op=op: op(v, kind(2)), x, dtype=dtypes.f32, grad=False)
           for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.mod,
                      operator.floordiv, operator.pow)]
          + [both("from the left", lambda v: kind(2) - v, x, dtype=dtypes.f32),
             both("compared", lambda v: kind(2) < v, x)])


def test_arrays_and_lists_are_operands_on_both_sides():
    x, a = Tensor([1, 2], dtype=dtypes.u8), np.int32([3, 1])
    for result, want in ((a - x, [2, -1]), (x - a, [-2, 1]), (a + x, [4, 3]), (x * [2, 2], [2, 4]),
                         ([2, 2] * x, [2, 4]), (a < x, [False, True]), (a // x, [3, 0])):
        assert isinstance(result, Tensor)
        np.testing.assert_array_equal(result.numpy(), want)


def test_subtracting_from_an_unsigned_tensor_meets_in_the_wider_dtype_first():
    x = Tensor([5, 200], dtype=dtypes.u8)
    np.testing.assert_array_equal((2.5 - x).numpy(), [-2.5, -197.5])
    np.testing.assert_array_equal((Tensor([1, 1]) - x).numpy(), [-4, -199])
    np.testing.assert_array_equal((x - Tensor([6, 6])).numpy(), [-1, 194])


def test_casts():
    floats = np.float32([0, 1.9, -1.9, 200.5])
    kinds = {dtypes.u8: [0, 1, 0, 200], dtypes.i32: [0, 1, -1, 200], dtypes.u32: [0, 1, 0, 200],
             dtypes.i64: [0, 1, -1, 200], dtypes.bool: [False, True, True, True],
             dtypes.f64: floats, dtypes.f32: floats}
    results = [Tensor(floats).cast(d) for d in kinds]
    extremes = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30])
    wide = [Tensor(extremes).cast(d) for d in (dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64)]
    wrapped = Tensor([300, -1]).cast(dtypes.u8)
    Tensor.realize_all(*results, *wide, wrapped)
    for result, (dtype, want) in zip(results, kinds.items(), strict=True):
        assert result.dtype is dtype
        np.testing.assert_array_equal(result.numpy(), want)
    for result in wide:
        low, high = result.dtype.min, result.dtype.max
        assert result.tolist() == [0, high, low, high, low]
    assert wrapped.tolist() == [44, 255]


def test_the_gradient_of_a_cast_comes_back_in_the_dtype_of_its_source():
    x = Tensor([1.0, 2.0])
    (x.cast(dtypes.f64) ** 2).sum().backward([x])
    assert x.grad.dtype is dtypes.f32
    assert x.grad.tolist() == [2, 4]
    y = Tensor([1.0, 2.0])
    y.int().float().sum().backward([y])
    assert y.grad.dtype is dtypes.f32 and y.grad.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_a_dtype_goes_by_its_constant_its_names_and_numpys_type(dtype: DType) -> None:
    for name in (dtype, dtype.name, dtype.np.name, dtype.np, dtype.np.type):
        assert Tensor([1, 0], dtype=name).dtype is dtype
        assert Tensor.zeros(2, dtype=name).dtype is Tensor.ones(2, dtype=name).dtype is dtype
        assert Tensor.full((2,), 1, name).dtype is Tensor.arange(3, dtype=name).dtype is dtype
        assert Tensor([1.0]).cast(name).dtype is dtype
        if dtype.is_float:
            assert Tensor.rand(2, dtype=name).dtype is Tensor.randn(2, dtype=name).dtype is dtype


@pytest.mark.parametrize("bad", ["float", "f4", "i8", "", float, int, np.float16, np.dtype(">f4"),
                                 np.complex64, 5, None, [], np.ones(2)], ids=repr)
def test_what_is_no_dtype_is_refused(bad: object) -> None:
    makers = [lambda: Tensor([1.0]).cast(bad), lambda: Tensor.zeros(2, dtype=bad),
              lambda: Tensor.ones(2, dtype=bad), lambda: Tensor.rand(2, dtype=bad)]
    if bad is not None:
        makers += [lambda: Tensor([1.0], dtype=bad), lambda: Tensor.full((2,), 1, bad)]
    for make in makers:
        with pytest.raises(TypeError, match="is no dtype of uopc; it has dtypes.bool .or 'bool'"):
            make()


@pytest.mark.parametrize("source", ALL_DTYPES, ids=str)
def test_data_of_another_dtype_is_converted_as_cast_does(source: DType) -> None:
    """From every dtype to every other: arrays, small and large, lists and single numbers."""
    values = [0, 1, 2, 100, 255]
    if source.is_float:
        values += [-1.5, 2.9, -0.0, 1e10, -1e10, 3e9, 1e30, -1e300, 2.0**31, 2.0**63, 2.0**64,
                   math.nan, math.inf, -math.inf]
    elif source.is_int:
        values += [source.min, source.max, source.max - 1]
    with np.errstate(all="ignore"):
        array = np.array([v % 2 for v in values] if source is dtypes.bool else values, source.np)
    for wanted in ALL_DTYPES:
        want = Tensor(array).cast(wanted).numpy()
        large = np.tile(array, 1 << 15)
        for got in (Tensor(array, dtype=wanted), Tensor(array[:, None].T, dtype=wanted).reshape(-1),
                    Tensor(array.astype(source.np.newbyteorder()), dtype=wanted),
                    Tensor([*array], dtype=wanted), Tensor(Tensor(array), dtype=wanted),
                    Tensor(large, dtype=wanted)[:len(array)]):
            assert got.dtype is wanted
            np.testing.assert_array_equal(got.numpy(), want, err_msg=str(wanted))
        for value, one in zip(array, want, strict=True):
            np.testing.assert_array_equal(Tensor(value, dtype=wanted).numpy(), one)
            if source is dtypes.f64:
                for plain in (float(value), [float(value)]):
                    np.testing.assert_array_equal(Tensor(plain, dtype=wanted).numpy().ravel(), one)


def test_an_int_that_does_not_fit_is_refused() -> None:
    for value, dtype in ((300, "u8"), (-1, "u32"), (2**31, "i32"), ([1, 256], "u8")):
        with pytest.raises(OverflowError):
            Tensor(value, dtype=dtype)
