"""Powers: integers exact but that they wrap around, whatever the two dtypes; no negative exponents
of integers; floats as accurate as C's pow."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from uopc import nn
from uopc.dtype import DType, dtypes
from uopc.jit import jit
from uopc.tensor import Tensor

WHOLE = (dtypes.bool, dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64)


def numbers(dtype: DType) -> np.ndarray:
    """Of every kind that a dtype has: small, its ends, odd and even, negative."""
    low, high = int(dtype.min), int(dtype.max)
    chosen = {0, 1, 2, 3, 7, 10, -1, -2, -3, 17, 31, 32, high // 3, high - 1, high, low, low + 1}
    return np.array(sorted(n for n in chosen if low <= n <= high), dtype.np)


def exact(base: np.ndarray, exponent: np.ndarray, dtype: DType) -> np.ndarray:
    """base ** exponent in Python's integers, then wrapped around."""
    base, exponent = np.broadcast_arrays(base, exponent)
    modulus = 1 << 8 * dtype.size
    words = [pow(int(b), int(e), modulus) for b, e in zip(base.flat, exponent.flat, strict=True)]
    unsigned = np.array(words, f"u{dtype.size}").reshape(base.shape)
    return unsigned.view(dtype.np)


@pytest.mark.parametrize("first", WHOLE, ids=lambda d: d.name)
def test_integers_to_integers_are_exact(first: DType) -> None:
    results = []
    for second in WHOLE:
        base, exponent = numbers(first)[:, None], np.abs(numbers(second).astype(object))
        exponent = np.minimum(exponent, int(second.max)).astype(second.np)
        results.append((Tensor(base) ** Tensor(exponent), base, exponent))
    Tensor.realize_all(*[result for result, _, _ in results])
    for result, base, exponent in results:
        with np.errstate(all="ignore"):
            numpys = np.result_type(base ** exponent)
        dtype = dtypes.i32 if numpys == np.int8 else result.dtype  # NumPy's type of bool ** bool
        assert result.dtype is dtype and numpys in (np.int8, dtype.np)
        np.testing.assert_array_equal(result.numpy(), exact(base, exponent, dtype))


@pytest.mark.parametrize("dtype", WHOLE, ids=lambda d: d.name)
def test_python_numbers_as_exponent_and_as_base(dtype: DType) -> None:
    values = numbers(dtype)
    exponents = values[values >= 0]
    wide = dtypes.i32 if dtype is dtypes.bool else dtype
    chosen = [n for n in (0, 1, 3, 17, 255, 10**6) if n <= wide.max]
    powers = [Tensor(values) ** n for n in chosen]
    roots = [n ** Tensor(exponents) for n in chosen]
    Tensor.realize_all(*powers, *roots)
    for n, power, root in zip(chosen, powers, roots, strict=True):
        assert power.dtype is root.dtype is wide
        np.testing.assert_array_equal(power.numpy(), exact(values, np.array(n), wide))
        np.testing.assert_array_equal(root.numpy(), exact(np.array(n), exponents, wide))


def test_the_three_cases_that_gave_floats() -> None:
    assert (Tensor([3]) ** 17).tolist() == [3 ** 17] and (Tensor([3]) ** 17).dtype is dtypes.i32
    assert (Tensor([3]) ** Tensor([19])).tolist() == [3 ** 19]
    assert (3 ** Tensor([17])).tolist() == [3 ** 17]


@pytest.mark.parametrize("bad", [
    lambda: Tensor([3]) ** -1, lambda: Tensor([3], dtype=dtypes.u8) ** -2,
    lambda: Tensor([True]) ** -1, lambda: Tensor([3]).pow(-3), lambda: Tensor([3]) ** np.int32(-1),
    lambda: Tensor([3, 3]) ** Tensor([2, -1]), lambda: Tensor([True]) ** Tensor([-1]),
    lambda: 2 ** Tensor([1, -1]), lambda: [1, 2] ** Tensor([0, -1]),
    lambda: Tensor([3]) ** (Tensor.arange(3) - 1)])
def test_a_negative_exponent_of_an_integer_is_refused_at_the_call(bad: Callable) -> None:
    with pytest.raises(ValueError, match=r"no negative powers, got -[123]; make"):
        bad()


def test_a_number_that_the_other_dtype_cannot_hold_is_refused() -> None:
    x = Tensor([3], dtype=dtypes.u8)
    for bad in (lambda: x ** 300, lambda: 300 ** x):
        with pytest.raises(OverflowError, match=r"300 is out of range for dtypes\.u8: 0 to 255"):
            bad()


def test_exponents_whose_bounds_are_known_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "_computed", None)
    x = Tensor([2, 3, 5])
    for exponent in (Tensor.arange(3), x % 4, Tensor([1, 2, 3], dtype=dtypes.u32), x < 3,
                     x.maximum(0)):
        assert (x ** exponent).shape == (3,)


def test_a_recorded_function_looks_at_its_exponents_in_every_call() -> None:
    @jit
    def power(base: Tensor, exponent: Tensor) -> Tensor:
        return base ** exponent

    for n in range(5):
        assert power(Tensor([3, 2]), Tensor([n, n + 1])).tolist() == [3 ** n, 2 ** (n + 1)]
    with pytest.raises(ValueError, match=r"no negative powers, got -7"):
        power(Tensor([3, 2]), Tensor([1, -7]))
    assert power(Tensor([3, 2]), Tensor([2, 2])).tolist() == [9, 4]


def test_powers_that_leave_the_integers() -> None:
    x = Tensor([4, 9])
    for result, want in ((x ** 0.5, [2, 3]), (x ** -1.0, [1 / 4, 1 / 9]), (x ** 2.0, [16, 81]),
                         (2.0 ** x, [16, 512]), (x ** Tensor([0.5, 1.0]), [2, 9]),
                         (Tensor([2.0, 3.0]) ** Tensor([-1, 2]), [0.5, 9])):
        assert result.dtype is dtypes.f32
        np.testing.assert_allclose(result.numpy(), want, rtol=1e-6)
    far = Tensor([2**24 + 1]).cast(dtypes.i64) ** Tensor([1.0], dtype=dtypes.f64)
    assert far.dtype is dtypes.f64 and far.item() == 2**24 + 1, "not by way of f32"


def test_large_exponents_of_floats_keep_their_accuracy() -> None:
    for dtype, rtol in ((dtypes.f32, 2.0 ** -23), (dtypes.f64, 2.0 ** -50)):
        x = np.array([0.93, 1.01, -1.07, 1 - 1e-7, 1 + 1e-6], dtype.np)
        for n in (17, 100, 999, 1000, -3, -1000):
            got = (Tensor(x) ** n).numpy()
            np.testing.assert_allclose(got, x.astype(np.longdouble) ** n, rtol=rtol)


# *** flat dependence ***

FLAT = {
    "x ** 0": lambda x: x ** 0, "x.float() ** 0.0": lambda x: x ** 0.0,
    "floor": Tensor.floor, "ceil": Tensor.ceil, "trunc": Tensor.trunc, "sign": Tensor.sign,
    "round": Tensor.round,
    "//": lambda x: x // 0.5, "comparison": lambda x: (x > 0).where(1.0, 2.0),
    "equality": lambda x: (x == 0.5).float(),
    "cast": lambda x: x.int().float(), "bool": lambda x: x.bool().float(), "x * 0": lambda x: x * 0,
    "isnan": lambda x: x.isnan().float(), "argmax": lambda x: x.argmax().float(),
    "index": lambda x: Tensor([1.0, 2.0, 3.0])[x.int() % 3], "nothing of it": lambda x: x[:0],
    "integer power": lambda x: (x.int() ** 0).float(),
    "0 ** it": lambda x: 0 ** x.int().abs() * 1.0,
    "shifted": lambda x: x.reshape(1, -1).T.floor().pad(((1, 0), (0, 2))),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_parameter_that_only_flat_functions_read_has_the_gradient_zero(name: str) -> None:
    x = Tensor([0.5, -1.5, 2.0], requires_grad=True)
    loss = FLAT[name](x).sum()
    loss.backward()
    assert x.grad.dtype is x.dtype and x.grad.tolist() == [0, 0, 0]
    (loss + (x * 2).sum()).backward([x])
    assert x.grad.tolist() == [2, 2, 2], "what is smooth counts beside what is flat"


def test_what_is_not_reached_or_detached_keeps_no_gradient() -> None:
    x, y = Tensor([0.5], requires_grad=True), Tensor([0.5], requires_grad=True)
    x.floor().sum().backward([x, y])
    assert x.grad.tolist() == [0] and y.grad is None
    (y.detach() ** 2 + y.detach().floor()).sum().backward([y])
    assert y.grad is None
    z = Tensor([1.0], requires_grad=True)
    z.assign(y * 2)
    z.floor().sum().backward([y, z])
    assert y.grad is None and z.grad.tolist() == [0]


def test_optimizers_take_a_parameter_that_is_read_flatly() -> None:
    for opt, level in itertools.product((nn.SGD, nn.AdamW), (False, True)):
        x, w = Tensor([1.5], requires_grad=True), Tensor([2.0], requires_grad=True)
        optimizer = opt([x, w], lr=0.5, weight_decay=0.0)

        def step(x: Tensor = x, w: Tensor = w, optimizer: object = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = (w * x.floor()).sum()
            loss.backward([w, x])
            optimizer.step(loss)
            return loss

        step = jit(step) if level else step
        losses = [step().item() for _ in range(4)]
        assert x.item() == 1.5 and losses == sorted(losses, reverse=True) and losses[3] < losses[0]
