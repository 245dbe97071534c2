"""Division of floats is IEEE's at every level: NumPy's result, to the last bit."""
from __future__ import annotations

import numpy as np
import pytest
from numeric import both, check

from uopc.composite import buffer_data
from uopc.dtype import dtypes, exact_reciprocal
from uopc.kernelize import realize
from uopc.tensor import Tensor
from uopc.uop import Ops

LEVELS = (0, 1, 2)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 49.0]


def spread(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Numbers of both signs and of all exponents, subnormal ones among them."""
    info = np.finfo(dtype)
    exponents = rng.uniform(np.log2(np.longdouble(info.smallest_subnormal)), info.maxexp, shape)
    signs = rng.choice([-1.0, 1.0], shape)
    return np.asarray(signs * np.exp2(exponents.astype(np.longdouble))).astype(dtype)


def quotients_agree(a: object, b: object, want: np.ndarray) -> None:
    for level in LEVELS:
        got = buffer_data(realize([(a / b).uop], opt=level)[0])
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=str(level))
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (7,), (0,), (3, 5), (1009,), (33, 65)])
def test_quotients_of_all_exponents(shape: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(0)
    a, b = spread(rng, shape, dtype), spread(rng, shape, dtype)
    with np.errstate(all="ignore"):
        quotients_agree(Tensor(a), Tensor(b), a / b)
        quotients_agree(Tensor(a), Tensor(a), a / a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_of_special_numbers(dtype: type) -> None:
    a, b = (x.ravel() for x in np.meshgrid(np.array(SPECIAL * 3, dtype), np.array(SPECIAL, dtype)))
    with np.errstate(all="ignore"):
        quotients_agree(Tensor(a), Tensor(b), a / b)
        for number in (0.0, -0.0, 3.0, 0.1, -0.25, 2.0**120, 2.0**-130, np.inf, 7, 1):
            quotients_agree(Tensor(a), number, a / dtype(number))
            quotients_agree(number, Tensor(a), dtype(number) / a)


def test_integers_divide_as_floats() -> None:
    a, b = np.array([7, -7, 0, 2**31 - 1], np.int32), np.array([2, 3, 5, 7], np.int32)
    quotients_agree(Tensor(a), Tensor(b), a.astype(np.float32) / b.astype(np.float32))
    quotients_agree(Tensor(a), 3, a.astype(np.float32) / np.float32(3))
    quotients_agree(1, Tensor(b), np.float32(1) / b.astype(np.float32))


def test_a_power_of_two_multiplies() -> None:
    """Which is as exact, and quicker."""
    assert exact_reciprocal(8, dtypes.f32) == 0.125 and exact_reciprocal(-0.5, dtypes.f64) == -2
    assert exact_reciprocal(2.0**149, dtypes.f32) == 2.0**-149
    for value in (3, 0, 0.0, np.inf, np.nan, 2.0**150, 1e-3):
        assert exact_reciprocal(value, dtypes.f32) is None
    assert Ops.DIV not in {u.op for u in (Tensor([1.0]) / 4).uop.toposort()}
    assert Ops.DIV in {u.op for u in (Tensor([1.0]) / 5).uop.toposort()}


def test_gradients_of_quotients() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((5, 7)), rng.uniform(0.5, 2, (5, 1))
    check([both("a / b", lambda a, b: a / b, a, b), both("2 / b", lambda b: 2 / b, b),
           both("a row by its sum of squares", lambda a: a / (a * a).sum(-1)[..., None] / 3, a)])


def test_the_gradient_of_what_was_not_taken_stays_zero() -> None:
    x = Tensor([0.0, 2.0], requires_grad=True)
    (x == 0).where(0.0, 1 / x + x / x).sum().backward()
    assert x.grad.tolist() == [0.0, -0.25]
