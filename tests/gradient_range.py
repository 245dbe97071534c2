"""Gradients over the whole range of exponents, against derivatives in extended precision.

    python tests/gradient_range.py     the table of where a gradient leaves the right one

A gradient is wrong where it is off by more than `TOLERANCE`, relative to the right one; what the
dtype cannot hold counts as infinity or 0, and below its smallest normal number the spacing counts.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from uopc.tensor import Tensor

TOLERANCE = 1e-5
Array = np.ndarray
Wide = np.longdouble  # 80 bits on x86, so that f64 has a judge, too


class Rule(NamedTuple):
    """A function of one or two tensors, its derivatives, and where and why it may leave them."""

    function: Callable[..., Tensor]
    derivatives: tuple[Callable[..., Array], ...]
    excused: Callable[..., Array] = lambda *_: False
    reason: str = ""


def normal(x: Array) -> Array:
    return np.exp(-x * x / 2) / np.sqrt(2 * Wide(np.pi))


def tanh_slope(x: Array) -> Array:
    e = np.exp(-2 * abs(x))
    return 4 * e / (1 + e) ** 2


def sigmoid_slope(x: Array) -> Array:
    e = np.exp(-abs(x))
    return e / (1 + e) ** 2


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[Wide])(x.astype(float))


def normal_integral(x: Array) -> Array:
    return np.vectorize(math.erfc, otypes=[Wide])((-x / np.sqrt(Wide(2))).astype(float)) / 2


def silu_slope(x: Array) -> Array:
    e = np.exp(-abs(x))
    s, rest = np.where(x > 0, 1, e) / (1 + e), np.where(x > 0, e, 1) / (1 + e)
    return s * (1 + x * rest)


def by_hand(x: Tensor) -> Tensor:
    return 1 / (1 + (-x).exp())


RULES: dict[str, Rule] = {
    "exp": Rule(Tensor.exp, (np.exp,)),
    "exp2": Rule(Tensor.exp2, (lambda x: np.exp2(x) * np.log(Wide(2)),)),
    "log": Rule(Tensor.log, (lambda x: 1 / x,)),
    "log2": Rule(Tensor.log2, (lambda x: 1 / (x * np.log(Wide(2))),)),
    "sqrt": Rule(Tensor.sqrt, (lambda x: 0.5 / np.sqrt(x),)),
    "rsqrt": Rule(Tensor.rsqrt, (lambda x: -0.5 / (x * np.sqrt(x)),)),
    "reciprocal": Rule(Tensor.reciprocal, (lambda x: -1 / x / x,)),
    "square": Rule(Tensor.square, (lambda x: 2 * x,)),
    "abs": Rule(Tensor.abs, (np.sign,)),
    "sin": Rule(Tensor.sin, (np.cos,)),
    "cos": Rule(Tensor.cos, (lambda x: -np.sin(x),)),
    "tanh": Rule(Tensor.tanh, (tanh_slope,), lambda x: abs(x) > 1,
                 "1 - tanh**2 cancels where tanh is near 1"),
    "sigmoid": Rule(Tensor.sigmoid, (sigmoid_slope,)),
    "sigmoid by hand": Rule(by_hand, (sigmoid_slope,), lambda x: x < -40,
                            "exp(-x) overflows or rounds as exp does"),
    "erf": Rule(Tensor.erf, (lambda x: 2 / np.sqrt(Wide(np.pi)) * np.exp(-x * x),)),
    "gelu": Rule(Tensor.gelu, (lambda x: normal_integral(x) + x * normal(x),), lambda x: x < -0.5,
                 "erf + 1 cancels, and the slope has a zero"),
    "silu": Rule(Tensor.silu, (silu_slope,)),
    "relu": Rule(Tensor.relu, (lambda x: (x > 0).astype(Wide),)),
    "x ** 3": Rule(lambda x: x ** 3, (lambda x: 3 * x * x,)),
    "x ** -2": Rule(lambda x: x ** -2, (lambda x: -2 / x / x / x,)),
    "x ** 0.5": Rule(lambda x: x ** 0.5, (lambda x: 0.5 / np.sqrt(x),)),
    "x ** 2.5": Rule(lambda x: x ** 2.5, (lambda x: 2.5 * x * np.sqrt(x),)),
    "x ** 0": Rule(lambda x: x ** 0, (lambda x: 0 * x,)),
    "x / 3": Rule(lambda x: x / 3, (lambda x: 0 * x + Wide(1) / 3,)),
    "3 / x": Rule(lambda x: 3 / x, (lambda x: -3 / x / x,)),
    "a * b": Rule(lambda a, b: a * b, (lambda a, b: b, lambda a, b: a)),
    "a / b": Rule(lambda a, b: a / b, (lambda a, b: 1 / b, lambda a, b: -a / b / b)),
    "a - b": Rule(lambda a, b: a - b, (lambda a, b: 0 * a + 1, lambda a, b: 0 * a - 1)),
    "maximum": Rule(Tensor.maximum, (lambda a, b: (a > b) + (a == b) * Wide(0.5),
                                     lambda a, b: (b > a) + (a == b) * Wide(0.5))),
    "norm": Rule(lambda a, b: (a * a + b * b).sqrt(), (lambda a, b: a / np.hypot(a, b),
                                                       lambda a, b: b / np.hypot(a, b)),
                 lambda a, b: (np.maximum(abs(a), abs(b)) > 1e18)
                 | (np.maximum(abs(a), abs(b)) < 1e-16),
                 "the squares leave the range"),
    "share": Rule(lambda a, b: a / (a + b), (lambda a, b: b / (a + b) / (a + b),
                                             lambda a, b: -a / (a + b) / (a + b)),
                  lambda a, b: (abs(b) < 1e-2 * abs(a)) | (abs(a + b) < 1e-2 * abs(a))
                  | (abs(a) < 1e-36) | (abs(b) < 1e-36) | (abs(a / b) < 1e-36),
                  "1/(a+b) - a/(a+b)**2 cancels where b is small beside a"),
}


def exponents(dtype: np.dtype, count: int) -> Array:
    """Numbers of both signs from the smallest to nearly the largest that the dtype has."""
    low = np.log2(Wide(np.finfo(dtype).smallest_subnormal))
    high = np.log2(Wide(np.finfo(dtype).max)) - 2  # so that sums of two are finite
    magnitudes = np.exp2(np.linspace(low, high, count))
    magnitudes = np.concatenate([magnitudes, np.linspace(0.1, 100, count // 2)])
    return np.concatenate([magnitudes, -magnitudes]).astype(dtype)


def wrong(rule: Rule, dtype: np.dtype, count: int = 400) -> tuple[list[Array], Array]:
    """The inputs, and where among them some gradient is wrong."""
    inputs = [exponents(dtype, count)]
    if len(rule.derivatives) == 2:
        few = exponents(dtype, max(4, int((count / 2) ** 0.5)))
        inputs = [x.ravel() for x in np.meshgrid(few, few)]
    with np.errstate(all="ignore"):
        tensors = [Tensor(x, requires_grad=True) for x in inputs]
        y = rule.function(*tensors)
        y.backward(tensors, gradient=Tensor(np.ones(y.shape, dtype)))
        got = [t.grad.numpy() for t in tensors]
        bad = np.zeros(len(inputs[0]), bool)
        tiny = np.finfo(dtype).smallest_normal
        defined = ~np.isnan(y.numpy())
        for g, derivative in zip(got, rule.derivatives, strict=True):
            exact = derivative(*[x.astype(Wide) for x in inputs])
            right = exact.astype(dtype)
            off = abs(g.astype(Wide) - exact)
            near = off <= TOLERANCE * np.maximum(abs(exact), Wide(tiny))
            near |= (g == right) | np.isnan(right)
            bad |= ~near & defined
    return inputs, bad


def unexcused(rule: Rule, inputs: list[Array], bad: Array) -> Array:
    with np.errstate(all="ignore"):
        excused = rule.excused(*[x.astype(Wide) for x in inputs])
    return bad & ~np.broadcast_to(np.asarray(excused, bool), bad.shape)


def main() -> None:
    for name, rule in RULES.items():
        for dtype in (np.float32, np.float64):
            inputs, bad = wrong(rule, np.dtype(dtype))
            left = unexcused(rule, inputs, bad)
            where = ", ".join(f"{np.abs(x[bad]).min():.3g}..{np.abs(x[bad]).max():.3g}"
                              for x in inputs) if bad.any() else "nowhere"
            print(f"| {name} | {np.dtype(dtype).name} | {bad.sum()} of {len(bad)} | {where} | "
                  f"{rule.reason if bad.any() else ''} | {left.sum()} |")
            for at in np.flatnonzero(left)[:4]:
                print("   unexcused", *[x[at] for x in inputs])


if __name__ == "__main__":
    main()
