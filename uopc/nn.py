"""Layers, optimizers, and what a training script needs beside them.

A module is any object whose attributes are Tensors, modules, or lists of either;
`named_parameters` finds the trainable ones by walking the attributes, so a name reads like the path
to it: `transformer.h.0.attn.c_attn.weight`.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from uopc import recording
from uopc.tensor import Tensor


def named_parameters(module: Any, prefix: str = "") -> dict[str, Tensor]:
    """Every Tensor with `requires_grad` below `module` by name; a shared one by its first name."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in _walk(module, prefix):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor
    return found


def _walk(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield name, value
        return
    if isinstance(value, dict):
        items: Iterable[tuple[str, Any]] = value.items()
    elif isinstance(value, (list, tuple)):
        items = ((str(k), v) for k, v in enumerate(value))
    else:
        items = vars(value).items() if hasattr(value, "__dict__") else ()
    for key, v in items:
        yield from _walk(v, f"{name}.{key}" if name else str(key))


def parameters(modules: Any) -> list[Tensor]:
    """The trainable Tensors of a module, or of a list of modules, each once."""
    return list(named_parameters(modules).values())


def load_parameters(module: Any, arrays: dict[str, np.ndarray]) -> None:
    """Put `arrays` into the module's parameters. Raises ValueError that lists every name that is
    missing, unknown, or of another shape; then nothing was changed."""
    wanted = named_parameters(module)
    problems = [f"{n} is missing" for n in wanted if n not in arrays]
    problems += [f"{n} is unknown" for n in arrays if n not in wanted]
    problems += [f"{n} has shape {arrays[n].shape}, the model needs {t.shape}"
                 for n, t in wanted.items() if n in arrays and arrays[n].shape != t.shape]
    if problems:
        raise ValueError("the weights do not fit the model: " + "; ".join(problems))
    for name, tensor in wanted.items():
        tensor.assign(Tensor(arrays[name], dtype=tensor.dtype))


# *** layers ***


class Linear:
    """x @ weight.T + bias; weight (n_out, n_in) and bias (n_out,), uniform in ±1/sqrt(n_in). With
    `std` the weight is normal with this standard deviation, and the bias 0."""

    def __init__(self, n_in: int, n_out: int, bias: bool = True, std: float | None = None) -> None:
        bound = 1 / math.sqrt(n_in) if n_in else 0.0
        self.weight = _uniform((n_out, n_in), bound) if std is None else _normal((n_out, n_in), std)
        self.bias = None
        if bias:
            self.bias = _uniform((n_out,), bound) if std is None else \
                Tensor.zeros(n_out, requires_grad=True)

    def __call__(self, x: Tensor) -> Tensor:
        y = x @ self.weight.transpose()
        return y if self.bias is None else y + self.bias


class Embedding:
    """Rows of weight (n, dim) by integer index; normal at first, with standard deviation `std`."""

    def __init__(self, n: int, dim: int, std: float = 1.0) -> None:
        self.weight = _normal((n, dim), std)

    def __call__(self, index: Tensor) -> Tensor:
        """(...) → (..., dim). Raises IndexError for an index outside of 0..n-1, TypeError for one
        that is not of integers."""
        index = Tensor.as_index(index).check_index(self.weight.shape[0], "embedding index")
        return self.weight.rows(index)


class LayerNorm:
    """Normalizes the last axis to mean 0 and variance 1, then scales and shifts it.

    Ba, Kiros and Hinton, "Layer Normalization", 2016.
    """

    def __init__(self, dim: int, eps: float = 1e-5, bias: bool = True) -> None:
        self.weight = Tensor.ones(dim, requires_grad=True)
        self.bias = Tensor.zeros(dim, requires_grad=True) if bias else None
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        deviation = x - x.mean(-1, keepdim=True)
        variance = deviation.square().mean(-1, keepdim=True)
        y = deviation * (variance + self.eps).rsqrt() * self.weight
        return y if self.bias is None else y + self.bias


def dropout(x: Tensor, p: float) -> Tensor:
    """Each element is 0 with probability `p`, else scaled by 1/(1-p). Raises ValueError unless
    0 <= p < 1."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout needs a probability in [0, 1), got {p}")
    if p == 0:
        return x
    kept = (Tensor.rand(*x.shape) >= p).contiguous()
    return kept.where(x * (1 / (1 - p)), 0.0)


def _uniform(shape: tuple[int, ...], bound: float) -> Tensor:
    return _parameter(Tensor.rand(*shape) * (2 * bound) - bound)


def _normal(shape: tuple[int, ...], std: float) -> Tensor:
    return _parameter(Tensor.randn(*shape) * std)


def _parameter(start: Tensor) -> Tensor:
    """A parameter whose first value is computed when it is needed, so not at all where it gets
    another one before."""
    return Tensor(np.zeros(start.shape, start.dtype.np), requires_grad=True).assign(start)


# *** optimizers ***


def clip_grad_norm(params: Sequence[Tensor], max_norm: float) -> Tensor:
    """Scale all gradients so that their joint norm is at most `max_norm`; returns the norm before.

    Lazy: the factor is part of the graph. If the norm is not finite, all gradients become 0, so a
    step cannot spoil the parameters; look at the norm to notice. Raises ValueError unless
    max_norm > 0.
    """
    if not max_norm > 0:
        raise ValueError(f"clip_grad_norm needs a norm above 0, got {max_norm}")
    with_grad = [p for p in params if p.grad is not None]
    total = None
    for p in with_grad:
        squares = p.grad.square().sum()
        total = squares if total is None else total + squares
    if total is None:
        return Tensor(0.0)
    norm = total.sqrt()
    finite = norm.isfinite()
    factor = (norm > max_norm).where(max_norm / norm, 1.0)
    for p in with_grad:
        p.grad = finite.where(p.grad * factor, 0.0)
    return norm


class Optimizer:
    """What SGD and AdamW share: parameters in groups, and one plan per step.

    `params` is a list of Tensors, or of dicts {"params": [...], "weight_decay": ...}.
    """

    def __init__(self, params: Sequence[Any], lr: float, weight_decay: float) -> None:
        if not lr >= 0 or not weight_decay >= 0:
            raise ValueError(f"lr and weight_decay must not be negative, got {lr} and "
                             f"{weight_decay}")
        if isinstance(params, Tensor):
            raise TypeError("an optimizer takes a list of parameters, got a single tensor")
        groups = [g if isinstance(g, dict) else {"params": [g]} for g in params]
        self.lr = lr
        self.params: list[Tensor] = [p for g in groups for p in g["params"]]
        self.decays = [g.get("weight_decay", weight_decay) for g in groups for _ in g["params"]]
        if len({id(p) for p in self.params}) < len(self.params):
            raise ValueError("a parameter is given to the optimizer twice")
        for p in self.params:
            if not p.dtype.is_float:
                raise TypeError(f"an optimizer's parameters must be floats, one is {p.dtype}")

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.params:
            p.grad = None

    def step(self, *extra: Tensor) -> None:
        """Update every parameter that has a gradient. Parameters, the optimizer's state and the
        `extra` tensors (a loss to be shown, say) are computed in one plan."""
        changed = self._update([k for k, p in enumerate(self.params) if p.grad is not None])
        Tensor.realize_all(*changed, *extra)

    def _update(self, active: list[int]) -> list[Tensor]:
        """Assign the parameters numbered in `active` their new values; returns all that changed."""
        raise TypeError(f"{type(self).__name__} does not say how to update")

    def state(self) -> dict[str, list[Tensor]]:
        """The moments, each a list parallel to `params`, for a checkpoint."""
        return {}


class SGD(Optimizer):
    """v ← momentum*v + g; w ← w - lr*v. Weight decay is added to g."""

    def __init__(self, params: Sequence[Any], lr: float, momentum: float = 0.0,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, lr, weight_decay)
        self.momentum = momentum
        self.v = [_zeros_like(p) for p in self.params] if momentum else []

    def _update(self, active: list[int]) -> list[Tensor]:
        lr = _rate(lambda: self.lr)
        changed = []
        for k in active:
            p, g = self.params[k], self.params[k].grad
            if self.decays[k]:
                g = g + p * self.decays[k]
            if self.momentum:
                g = self.v[k].assign(self.v[k] * self.momentum + g)
                changed.append(g)
            changed.append(p.assign(p - _scalar(lr, p) * g))
        return changed

    def state(self) -> dict[str, list[Tensor]]:
        return {"v": self.v}


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019).

    Defaults: lr 1e-3, betas (0.9, 0.999), eps 1e-8, weight_decay 0.01. What changes from step to
    step (the learning rate, the two bias corrections) enters the graph as data, so every step has
    the same plan.
    """

    def __init__(self, params: Sequence[Any], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.01) -> None:
        super().__init__(params, lr, weight_decay)
        if not all(0 <= b < 1 for b in betas):
            raise ValueError(f"betas must be in [0, 1), got {betas}")
        self.betas, self.eps = betas, eps
        self.t = [0] * len(self.params)  # steps that each parameter has taken
        self.m = [_zeros_like(p) for p in self.params]
        self.v = [_zeros_like(p) for p in self.params]

    def _update(self, active: list[int]) -> list[Tensor]:
        beta1, beta2 = self.betas
        recording.do(lambda: self._count_step(active))
        first = {self.t[k]: k for k in reversed(active)}  # a parameter of each number of steps
        rates = {t: _rate(lambda k=k: self.lr / (1 - beta1 ** self.t[k]))
                 for t, k in first.items()}
        corrections = {t: _rate(lambda k=k: 1 / (1 - beta2 ** self.t[k]))
                       for t, k in first.items()}
        kept = {d: _rate(lambda d=d: 1 - self.lr * d) for d in dict.fromkeys(self.decays)}
        changed = []
        for k in active:
            p, g, t = self.params[k], self.params[k].grad, self.t[k]
            m = self.m[k].assign(self.m[k] * beta1 + g * (1 - beta1))
            v = self.v[k].assign(self.v[k] * beta2 + g.square() * (1 - beta2))
            update = m / ((v * _scalar(corrections[t], p)).sqrt() + self.eps)
            decayed = p * _scalar(kept[self.decays[k]], p) if self.decays[k] else p
            changed += [m, v, p.assign(decayed - update * _scalar(rates[t], p))]
        return changed

    def _count_step(self, active: list[int]) -> None:
        for k in active:
            self.t[k] += 1

    def state(self) -> dict[str, list[Tensor]]:
        return {"m": self.m, "v": self.v}


def _rate(value: Callable[[], float]) -> Tensor:
    """A number that changes from step to step, as data."""
    return Tensor._of(recording.made_by(lambda: np.array([value()], np.float32)))


def _zeros_like(p: Tensor) -> Tensor:
    return Tensor(np.zeros(p.shape, p.dtype.np))


def _scalar(x: Tensor, p: Tensor) -> Tensor:
    """A one-element tensor as a number of p's dtype, so that it broadcasts to any shape."""
    return x.reshape(()).cast(p.dtype)
