"""The oracle of the Tensor tests: value and gradient equal NumPy.

A Case states an operation twice, on Tensors and on arrays. `check` computes the values and
gradients of many cases in one plan, since the C compiler takes most of the time, and names each
case that fails.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from uopc.dtype import DType
from uopc.tensor import Tensor

Array = np.ndarray
STEP = 1e-5  # of the central differences
TOLERANCE = {"float32": (1e-5, 2e-6, 1e-4, 2e-5), "float64": (1e-12, 1e-13, 1e-6, 1e-8)}
"""By dtype: relative and absolute, of values and then of gradients."""


class Case(NamedTuple):
    """`op` on Tensors of `inputs` must equal `reference` on the arrays.

    `dtype` is the dtype of the result, where that matters. With `grad`, the gradient with respect
    to each float input must equal central differences of `reference` in float64.
    """

    name: str
    op: Callable[..., Tensor]
    reference: Callable[..., Any]
    inputs: tuple[Array, ...]
    dtype: DType | None = None
    grad: bool = True


def both(name: str, op: Callable[..., Any], *inputs: Array, dtype: DType | None = None,
         grad: bool = True) -> Case:
    """A case that reads the same on Tensors and on arrays."""
    return Case(name, op, op, inputs, dtype, grad)


class _Work(NamedTuple):
    case: Case
    result: Tensor
    weights: Array
    leaves: list[tuple[int, Tensor]]


def array(*shape: int, dtype: Any = np.float32, seed: int = 0, low: float = -2.0,
          high: float = 2.0) -> Array:
    """Numbers between `low` and `high`; distinct, and never near 0 or near each other."""
    n = int(np.prod(shape))
    grid = np.linspace(low, high, 2 * n + 2)[1::2][:n]
    return np.random.default_rng(seed).permutation(grid).reshape(shape).astype(dtype)


def check(cases: Sequence[Case]) -> None:
    """Raise AssertionError that lists every case whose value or gradient is not NumPy's."""
    __tracebackhide__ = True
    work = [_start(case) for case in cases]
    Tensor.realize_all(*(w.result for w in work),
                       *(leaf.grad for w in work for _, leaf in w.leaves if leaf.grad is not None))
    wrong = []
    for w in work:
        try:
            _check_value(w)
            for k, leaf in w.leaves:
                _check_gradient(w, k, leaf)
        except AssertionError as error:
            shapes = [a.shape for a in w.case.inputs]
            wrong.append(f"{w.case.name} on {shapes}: {str(error).strip()}")
    assert not wrong, f"{len(wrong)} of {len(cases)} are wrong\n" + "\n\n".join(wrong)


def _start(case: Case) -> _Work:
    """Build the graphs of a case."""
    tensors = [Tensor(a) for a in case.inputs]
    result = case.op(*tensors)
    weights = array(*result.shape, dtype=np.float64, seed=1)
    leaves = []
    if case.grad and result.dtype.is_float:
        leaves = [(k, t) for k, t in enumerate(tensors) if t.dtype.is_float]
        if leaves:
            result.backward([t for _, t in leaves], Tensor(weights.astype(result.dtype.np)))
    return _Work(case, result, weights, leaves)


def _in_f64(arrays: Sequence[Array]) -> list[Array]:
    return [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]


def _check_value(w: _Work) -> None:
    got = w.result.numpy()
    with np.errstate(all="ignore"):
        want = np.asarray(w.case.reference(*_in_f64(w.case.inputs)))
    assert got.shape == want.shape, f"shape {got.shape}, NumPy's is {want.shape}"
    assert got.dtype == w.result.dtype.np
    assert w.case.dtype in (None, w.result.dtype), f"dtype {w.result.dtype}"
    if got.dtype.kind != "f":
        assert want.dtype.kind in "biu", f"dtype {got.dtype}, NumPy's is {want.dtype}"
        np.testing.assert_array_equal(got, want)
        return
    rtol, atol, _, _ = TOLERANCE[str(got.dtype)]
    np.testing.assert_allclose(got, want, rtol, atol, err_msg="value")


def _check_gradient(w: _Work, k: int, leaf: Tensor) -> None:
    assert leaf.grad is not None, f"no gradient for input {k}"
    assert leaf.grad.dtype is leaf.dtype
    want = numeric_gradient(w.case.reference, w.case.inputs, k, w.weights)
    _, _, rtol, atol = TOLERANCE[str(leaf.dtype.np)]
    np.testing.assert_allclose(leaf.grad.numpy(), want, rtol, atol, err_msg=f"gradient of {k}")


def numeric_gradient(fn: Callable[..., Any], inputs: Sequence[Array], k: int,
                     weights: Array) -> Array:
    """d sum(weights * fn(inputs)) / d inputs[k], by central differences in float64."""
    inputs = _in_f64(inputs)
    gradient = np.zeros(inputs[k].shape)
    for at in np.ndindex(inputs[k].shape):
        sums = []
        for step in (STEP, -STEP):
            moved = inputs[k].copy()
            moved[at] += step
            sums.append(np.sum(weights * fn(*inputs[:k], moved, *inputs[k + 1:])))
        gradient[at] = (sums[0] - sums[1]) / (2 * STEP)
    return gradient
