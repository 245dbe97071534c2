"""Elementwise operations of a Tensor against NumPy: values, gradients, dtypes, special numbers."""
from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from numeric import Case, array, both, check

from uopc.dtype import dtypes
from uopc.tensor import Tensor

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


FUNCTIONS = {  # name: (on a Tensor, on an array, lowest and highest input)
    "neg": (operator.neg, operator.neg, -2, 2),
    "abs": (Tensor.abs, np.abs, -2, 2),
    "exp": (Tensor.exp, np.exp, -2, 2),
    "exp2": (Tensor.exp2, np.exp2, -2, 2),
    "log": (Tensor.log, np.log, 0.1, 4),
    "log2": (Tensor.log2, np.log2, 0.1, 4),
    "sqrt": (Tensor.sqrt, np.sqrt, 0.1, 4),
    "rsqrt": (Tensor.rsqrt, lambda x: 1 / np.sqrt(x), 0.1, 4),
    "reciprocal": (Tensor.reciprocal, lambda x: 1 / x, 0.5, 4),
    "square": (Tensor.square, np.square, -2, 2),
    "sin": (Tensor.sin, np.sin, -4, 4),
    "cos": (Tensor.cos, np.cos, -4, 4),
    "tanh": (Tensor.tanh, np.tanh, -2, 2),
    "erf": (Tensor.erf, erf, -2, 2),
    "sign": (Tensor.sign, np.sign, -2, 2),
    "relu": (Tensor.relu, lambda x: np.maximum(x, 0), -2, 2),
    "sigmoid": (Tensor.sigmoid, sigmoid, -4, 4),
    "silu": (Tensor.silu, lambda x: x * sigmoid(x), -4, 4),
    "gelu": (Tensor.gelu, lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))), -3, 3),
    "gelu_tanh": (lambda x: x.gelu("tanh"), gelu_tanh, -3, 3),
    "clip": (lambda x: x.clip(-1.1, 0.9), lambda x: np.clip(x, -1.1, 0.9), -2, 2),
    "float": (Tensor.float, lambda x: x, -2, 2),
}
EXPRESSIONS = {
    "clip from below": (lambda x: x.clip(-1.1), lambda x: np.clip(x, -1.1, None), -2, 2),
    "clip from above": (lambda x: x.clip(high=0.9), lambda x: np.clip(x, None, 0.9), -2, 2),
    "x + 2": (lambda x: x + 2, lambda x: x + 2, -2, 2),
    "2 + x": (lambda x: 2 + x, lambda x: 2 + x, -2, 2),
    "x - 1.5": (lambda x: x - 1.5, lambda x: x - 1.5, -2, 2),
    "1.5 - x": (lambda x: 1.5 - x, lambda x: 1.5 - x, -2, 2),
    "x * 3": (lambda x: x * 3, lambda x: x * 3, -2, 2),
    "x / 3": (lambda x: x / 3, lambda x: x / 3, -2, 2),
    "3 / x": (lambda x: 3 / x, lambda x: 3 / x, 0.5, 4),
    "x % 0.7": (lambda x: x % 0.7, lambda x: x % 0.7, -2, 2),
    "x ** 2": (lambda x: x ** 2, lambda x: x ** 2, -2, 2),
    "x ** 3.0": (lambda x: x ** 3.0, lambda x: x ** 3.0, -2, 2),
    "x ** 7": (lambda x: x ** 7, lambda x: x ** 7, -1.2, 1.2),
    "x ** 20": (lambda x: x ** 20, lambda x: x ** 20, -1.1, 1.1),
    "x ** -1": (lambda x: x ** -1, lambda x: 1 / x, 0.5, 2),
    "x ** -2": (lambda x: x ** -2, lambda x: x ** -2.0, -2, 2),
    "x ** 0.5": (lambda x: x ** 0.5, lambda x: x ** 0.5, 0.1, 2),
    "x ** 1.7": (lambda x: x ** 1.7, lambda x: x ** 1.7, 0.1, 2),
    "2 ** x": (lambda x: 2 ** x, lambda x: 2 ** x, -2, 2),
    "methods": (lambda x: x.add(1).mul(2).sub(3).div(4).pow(2),
                lambda x: (((x + 1) * 2 - 3) / 4) ** 2, -2, 2),
}
CONSTANT = {  # piecewise constant: the gradient is 0
    "trunc": (Tensor.trunc, np.trunc),
    "floor": (Tensor.floor, np.floor),
    "ceil": (Tensor.ceil, np.ceil),
    "round": (Tensor.round, np.round),
    "x // 0.7": (lambda x: x // 0.7, lambda x: x // 0.7),
    "x ** 0": (lambda x: x ** 0, lambda x: x ** 0),
    "isnan": (Tensor.isnan, np.isnan),
    "isinf": (Tensor.isinf, np.isinf),
    "isfinite": (Tensor.isfinite, np.isfinite),
    "logical_not": (Tensor.logical_not, np.logical_not),
    "bool": (Tensor.bool, lambda x: x.astype(bool)),
    "int": (Tensor.int, lambda x: x.astype(np.int32)),
}
BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "%": operator.mod, "maximum": lambda a, b: _numpy_or_method("maximum", a, b),
    "minimum": lambda a, b: _numpy_or_method("minimum", a, b),
    "**": lambda a, b: abs(a) ** b,
}
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def _numpy_or_method(name, a, b):
    return getattr(a, name)(b) if isinstance(a, Tensor) else getattr(np, name)(a, b)


@pytest.mark.parametrize("shape", [(3, 5), (0, 3)], ids=str)
def test_functions_of_one_number(shape):
    check([Case(name, op, reference, (array(*shape, low=low, high=high),))
           for name, (op, reference, low, high) in {**FUNCTIONS, **EXPRESSIONS}.items()])


def test_functions_of_one_number_in_f64_without_axes():
    check([Case(name, op, reference, (array(dtype=np.float64, low=low, high=high),), dtypes.f64)
           for name, (op, reference, low, high) in FUNCTIONS.items() if name != "float"])


def test_round_goes_to_the_even_number_from_halfway():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.3, 0.0, -0.0, 7.5, 2**23 - 0.5,
                  2**23 + 1, -2**24 - 2, 1e30, np.inf, -np.inf, np.nan, 3.7, -3.2])
    for dtype in (np.float32, np.float64):
        got, want = Tensor(x.astype(dtype)).round().numpy(), np.round(x.astype(dtype))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert Tensor([3, -4]).round().tolist() == [3, -4]


def test_piecewise_constant_functions_have_the_gradient_zero():
    x = Tensor(array(3, 5))
    check([Case(name, op, reference, (x.numpy(),), grad=False)
           for name, (op, reference) in CONSTANT.items()])
    for name in ("trunc", "floor", "ceil", "round", "x // 0.7", "x ** 0"):
        x.grad = None
        CONSTANT[name][0](x).sum().backward([x])
        assert not x.grad.numpy().any(), name


PAIRS = [((3, 5), (5,)), ((3, 1), (1, 5)), ((), (3, 5)), ((3, 5), ()), ((1,), (0,)),
         ((2, 1, 3), (4, 1)), ((1, 1), (1,))]


@pytest.mark.parametrize("name", BINARY)
def test_two_operands_broadcast(name):
    op = BINARY[name]
    low = 0.5 if name in ("/", "%", "**") else -2
    pairs = PAIRS if name in ("+", "/") else [((3, 1), (1, 5))]
    check([Case(f"a {name} b {dtype.__name__}", op, op,
                (array(*a, dtype=dtype), array(*b, dtype=dtype, seed=2, low=low)))
           for a, b in pairs for dtype in (np.float32, np.float64)
           if dtype is np.float32 or (a, b) == ((3, 1), (1, 5))])


def test_comparisons():
    a = array(3, 1)
    b = np.concatenate([a.ravel(), array(2, seed=2)]).reshape(1, 5)
    cases = [Case(op.__name__, op, op, (a, b), dtypes.bool) for op in COMPARISONS]
    for op in COMPARISONS:
        cases.append(both(f"{op.__name__} 1", lambda x, op=op: op(x, 1), np.float32([0, 1, 2])))
        cases.append(both(f"1 {op.__name__}", lambda x, op=op: op(1, x), np.int32([0, 1, 2])))
    check(cases)


def test_where_broadcasts_all_three():
    condition = np.array([[True], [False], [True]])
    a, b = array(3, 5), array(5, seed=2)
    check([
        Case("c.where(a, b)", Tensor.where, np.where, (condition, a, b)),
        Case("c.where(a, 2)", lambda c, a: c.where(a, 2), lambda c, a: np.where(c, a, 2),
             (condition, a), dtypes.f32),
        Case("c.where(2.5, i)", lambda c, i: c.where(2.5, i), lambda c, i: np.where(c, 2.5, i),
             (condition, np.int32([1, 2])), dtypes.f32),
        Case("c.where(1, 0)", lambda c: c.where(1, 0), lambda c: np.where(c, 1, 0),
             (condition,), dtypes.i32),
        Case("0-d", Tensor.where, np.where, (np.array(True), a, b)),
        Case("a number is true unless 0", lambda x, a: x.where(a, 0),
             lambda x, a: np.where(x, a, 0), (np.int32([0, 1, -1, 0, 2]), b)),
        Case("NaN is true", lambda x: x.where(1, 0), lambda x: np.where(x, 1, 0),
             (np.float32([0, -0.0, 0.5, np.nan]),)),
    ])


def test_equal_elements_share_the_gradient():
    a, b = Tensor([1.0, 2.0, 3.0]), Tensor([2.0, 2.0, 2.0])
    a.maximum(b).sum().backward([a, b])
    np.testing.assert_array_equal(a.grad.numpy(), [0, 0.5, 1])
    np.testing.assert_array_equal(b.grad.numpy(), [1, 0.5, 0])
    a, b = Tensor([1.0, 2.0, 3.0]), Tensor([2.0, 2.0, 2.0])
    a.minimum(b).sum().backward([a, b])
    np.testing.assert_array_equal(a.grad.numpy(), [1, 0.5, 0])
    np.testing.assert_array_equal(b.grad.numpy(), [0, 0.5, 1])


# *** numbers that are special ***

SPECIAL = np.float32([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan, 3e38, 1e-40])


def assert_same(got, want, what):
    """Equal, NaN to NaN, and -0.0 is not 0.0."""
    np.testing.assert_allclose(got, want, rtol=2e-6, err_msg=what)
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]), err_msg=what)


def test_special_numbers_go_where_ieee_sends_them():
    x, y = SPECIAL, SPECIAL[::-1].copy()
    with np.errstate(all="ignore"):
        want = [np.exp(x), np.log(x), np.sqrt(x), 1 / x, np.tanh(x), np.sin(x), x * x, -x,
                np.abs(x), np.trunc(x), np.sign(x), np.floor(x), x + y, x * y, np.maximum(x, y),
                x ** 3, sigmoid(x.astype(np.float64)).astype(np.float32)]
    t, u = Tensor(x), Tensor(y)
    got = [t.exp(), t.log(), t.sqrt(), t.reciprocal(), t.tanh(), t.sin(), t.square(), -t,
           t.abs(), t.trunc(), t.sign(), t.floor(), t + u, t * u, t.maximum(u),
           t ** 3, t.sigmoid()]
    Tensor.realize_all(*got)
    for k, (result, expected) in enumerate(zip(got, want, strict=True)):
        assert_same(result.numpy(), expected, f"function {k}")


def test_comparing_and_testing_special_numbers():
    x = SPECIAL
    check([Case(op.__name__, op, op, (x, x[::-1].copy())) for op in COMPARISONS]
          + [Case(name, getattr(Tensor, name), getattr(np, name), (x,), dtypes.bool)
             for name in ("isnan", "isinf", "isfinite", "logical_not")])


def test_relu_of_nan_is_zero():
    np.testing.assert_array_equal(Tensor([np.nan, -1.0, -0.0, 2.0]).relu().numpy(), [0, 0, 0, 2])


def test_division_by_zero_of_floats():
    x, zero = Tensor([1.0, -1.0, 0.0]), Tensor([0.0, 0.0, 0.0])
    want = np.array([np.inf, -np.inf, np.nan])
    for got in (x / zero, x / 0, x / 0.0, -(x / -0.0), x.int() / 0):
        np.testing.assert_array_equal(got.numpy(), want)
    assert np.isnan((x % zero).numpy()).all()


def test_a_gradient_of_zero_stays_zero_where_a_branch_is_not_finite():
    """As the table of gradients promises for sqrt, log, 1/x and pow."""
    x = Tensor([0.0, 4.0])
    safe = x > 0
    total = sum(safe.where(f(x), 0.0).sum() for f in (
        Tensor.sqrt, Tensor.log, Tensor.reciprocal, lambda v: v ** 0.3, Tensor.rsqrt))
    total.backward([x])
    want = 1 / 4 + 1 / 4 - 1 / 16 + 0.3 * 4 ** -0.7 - 0.5 * 4 ** -1.5
    np.testing.assert_allclose(x.grad.numpy(), [0, want], rtol=1e-5)


def test_the_largest_arguments_do_not_overflow_on_the_way():
    x = Tensor([-200.0, 200.0])
    (x.sigmoid().sum() + x.tanh().sum() + x.gelu().sum()).backward([x])
    np.testing.assert_allclose(x.sigmoid().numpy(), [0, 1], atol=1e-30)
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1])


# *** errors ***


def test_errors_name_what_does_not_fit():
    a, b = Tensor(np.zeros((2, 3), np.float32)), Tensor(np.zeros(4, np.float32))
    for wrong in (lambda: a + b, lambda: a < b, lambda: a.maximum(b), lambda: (a > 0).where(a, b),
                  lambda: a ** b, lambda: b - a, lambda: a / b):
        with pytest.raises(ValueError, match=r"\(2, 3\).*\(4,\)|\(4,\).*\(2, 3\)"):
            wrong()
    for wrong in (lambda: a + None, lambda: "x" * a, lambda: a - "x", lambda: a / None,
                  lambda: a ** "x", lambda: a < "x", lambda: a & None, lambda: a // "x"):
        with pytest.raises(TypeError, match="Tensor|NoneType|str"):
            wrong()
    with pytest.raises(TypeError, match="uopc has no dtype"):
        a.maximum("x")
    with pytest.raises(OverflowError, match=r"300 is out of range for dtypes.u8: 0 to 255"):
        Tensor([1], dtype=dtypes.u8) + 300
    with pytest.raises(ValueError, match="'none' or 'tanh', got 'fast'"):
        a.gelu("fast")
    with pytest.raises(TypeError, match="'float16' is no dtype of uopc; it has dtypes.bool"):
        a.cast("float16")
