"""Gradients over the whole range of exponents, and of quotients and powers at its ends.

Each function of gradient_range.RULES leaves the right derivative only where that table says why.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from gradient_range import RULES, unexcused, wrong

from uopc.tensor import Tensor


@functools.cache
def judged(name: str, dtype: type) -> tuple[list[np.ndarray], np.ndarray]:
    return wrong(RULES[name], np.dtype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RULES)
def test_a_gradient_is_right_wherever_it_can_be(name: str, dtype: type) -> None:
    inputs, bad = judged(name, dtype)
    left = unexcused(RULES[name], inputs, bad)
    assert not left.any(), [x[left][:5] for x in inputs]


@pytest.mark.parametrize("name", RULES)
def test_no_excuse_is_without_a_case(name: str) -> None:
    assert bool(RULES[name].reason) == any(
        judged(name, dtype)[1].any() for dtype in (np.float32, np.float64))


def softmax_by_hand(x: Tensor) -> Tensor:
    e = x.exp()
    return e / e.sum(-1, keepdim=True)


@pytest.mark.parametrize("function", [softmax_by_hand, Tensor.softmax,
                                      lambda x: x.log_softmax(-1).exp()])
def test_softmax_of_large_and_small_numbers(function: Callable[[Tensor], Tensor]) -> None:
    """A square of a sum of exponentials would leave the range from 44 on."""
    for shift in (-80.0, -50.0, -5.0, 0.0, 5.0, 50.0, 80.0):
        x = np.float32([[shift, shift + 1, shift + 2]])
        t = Tensor(x, requires_grad=True)
        (function(t) * Tensor([[1.0, 0.0, 0.0]])).sum().backward()
        e = np.exp(x.astype(np.float64) - shift)
        p = e / e.sum()
        want = p[0, 0] * (np.eye(1, 3) - p)
        np.testing.assert_allclose(t.grad.numpy(), want, rtol=2e-5, err_msg=str(shift))


@pytest.mark.parametrize("size", [1e-15, 1e-6, 1.0, 1e6, 1e15])
def test_norms_and_variances_at_any_scale(size: float) -> None:
    x = np.float32([1.0, -2.0, 2.0]) * np.float32(size)
    t = Tensor(x, requires_grad=True)
    (t / t.square().sum().sqrt()).sum().backward()
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64))
    want = (1 - unit.sum() * unit) / np.linalg.norm(x.astype(np.float64))
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-5)
    t = Tensor(x, requires_grad=True)
    t.std().backward()
    centred = x - x.astype(np.float64).mean()
    np.testing.assert_allclose(t.grad.numpy(), centred / 3 / centred.std(), rtol=1e-5)
