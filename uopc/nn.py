"""Layers, optimizers, and what a training script needs beside them.

A module is any object whose attributes are Tensors, modules, or lists of either;
`named_parameters` finds the trainable ones by walking the attributes, so a name reads like the path
to it: `transformer.h.0.attn.c_attn.weight`.
"""
from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from uopc import recording
from uopc.atomic import atomic, change
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


@atomic
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
        _check_sizes("Linear", n_in, n_out)
        bound = 1 / math.sqrt(n_in) if n_in else 0.0
        self.weight = _uniform((n_out, n_in), bound) if std is None else _normal((n_out, n_in), std)
        self.bias = None
        if bias:
            self.bias = _uniform((n_out,), bound) if std is None else \
                Tensor.zeros(n_out, requires_grad=True)

    def __call__(self, x: Tensor) -> Tensor:
        _check_width("Linear", self.weight.shape[1], x)
        y = x @ self.weight.transpose()
        return y if self.bias is None else y + self.bias


class Embedding:
    """Rows of weight (n, dim) by integer index; normal at first, with standard deviation `std`."""

    def __init__(self, n: int, dim: int, std: float = 1.0) -> None:
        _check_sizes("Embedding", n, dim)
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
        _check_sizes("LayerNorm", dim)
        self.weight = Tensor.ones(dim, requires_grad=True)
        self.bias = Tensor.zeros(dim, requires_grad=True) if bias else None
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        _check_width("LayerNorm", self.weight.shape[0], x)
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


def _check_sizes(layer: str, *sizes: int) -> None:
    for n in sizes:
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"{layer}: sizes must be whole numbers, got {n!r}")
        if n < 0:
            raise ValueError(f"{layer}: sizes must not be negative, got {n}")


def _check_width(layer: str, width: int, x: Tensor) -> None:
    if not x.shape or x.shape[-1] != width:
        raise ValueError(f"{layer} of width {width} needs it as the last axis, got a tensor of "
                         f"shape {x.shape}")


def _uniform(shape: tuple[int, ...], bound: float) -> Tensor:
    return _parameter(Tensor.rand(*shape) * (2 * bound) - bound)


def _normal(shape: tuple[int, ...], std: float) -> Tensor:
    return _parameter(Tensor.randn(*shape) * std)


def _parameter(start: Tensor) -> Tensor:
    """A parameter whose first value is computed when it is needed, so not at all where it gets
    another one before."""
    return Tensor(np.zeros(start.shape, start.dtype.np), requires_grad=True).assign(start)


# *** optimizers ***


@atomic
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

    `params` is a list of Tensors, or of dicts {"params": [...], "lr": ..., "weight_decay": ...}: a
    group's own options come before the optimizer's. `param_groups` has the dicts; an `lr` that is
    changed there, or of the optimizer for groups without one, holds from the next step on. Raises
    TypeError or ValueError for what is no such list, or an option that does not exist.
    """

    options: tuple[str, ...] = ("lr", "weight_decay")

    def __init__(self, params: Iterable[Any], **defaults: Any) -> None:
        self.param_groups = _groups(params, self.options)
        self.params: list[Tensor] = [p for g in self.param_groups for p in g["params"]]
        self._group_of = [g for g in self.param_groups for _ in g["params"]]
        _check_parameters(self.params)
        for options in (defaults, *self.param_groups):
            _check_options(options)
        for name, value in defaults.items():
            setattr(self, name, value)

    def _source(self, name: str, k: int) -> dict[str, Any]:
        """Where the option of the k-th parameter stands: in its group, or in the optimizer."""
        group = self._group_of[k]
        return group if name in group else vars(self)

    def _option(self, name: str, k: int) -> Any:
        return self._source(name, k)[name]

    @atomic
    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.params:
            p.grad = None

    @atomic
    def step(self, *extra: Tensor) -> None:
        """Update every parameter that has a gradient. Parameters, the optimizer's state and the
        `extra` tensors (a loss to be shown, say) are computed in one plan."""
        for options in (vars(self), *self.param_groups):  # they may have been changed
            _check_options(options)
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

    options = ("lr", "momentum", "weight_decay")

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.0,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay)
        moves = any(self._option("momentum", k) for k in range(len(self.params)))
        self.v = [_zeros_like(p) for p in self.params] if moves else []

    def _update(self, active: list[int]) -> list[Tensor]:
        rates: dict[int, Tensor] = {}
        changed = []
        for k in active:
            p, g, source = self.params[k], self.params[k].grad, self._source("lr", k)
            if id(source) not in rates:
                rates[id(source)] = _rate(lambda source=source: source["lr"])
            if decay := self._option("weight_decay", k):
                g = g + p * decay
            if momentum := self._option("momentum", k):
                if not self.v:  # it was 0 for all until now
                    change(self, v=[_zeros_like(q) for q in self.params])
                g = self.v[k].assign(self.v[k] * momentum + g)
                changed.append(g)
            changed.append(p.assign(p - _scalar(rates[id(source)], p) * g))
        return changed

    def state(self) -> dict[str, list[Tensor]]:
        return {"v": self.v}


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019).

    Defaults: lr 1e-3, betas (0.9, 0.999), eps 1e-8, weight_decay 0.01. What changes from step to
    step (the learning rate, the two bias corrections) enters the graph as data, so every step has
    the same plan.
    """

    options = ("lr", "betas", "eps", "weight_decay")

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.01) -> None:
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self.t = [0] * len(self.params)  # steps that each parameter has taken
        self.m = [_zeros_like(p) for p in self.params]
        self.v = [_zeros_like(p) for p in self.params]

    def _update(self, active: list[int]) -> list[Tensor]:
        recording.do(lambda: self._count_step(active))
        rates: dict[tuple, Tensor] = {}

        def rate(key: tuple, value: Callable[[], float]) -> Tensor:
            """One tensor for all parameters whose number is the same in every step."""
            if key not in rates:
                rates[key] = _rate(value)
            return rates[key]

        changed = []
        for k in active:
            p, g, t = self.params[k], self.params[k].grad, self.t[k]
            (beta1, beta2), eps = self._option("betas", k), self._option("eps", k)
            decay, source = self._option("weight_decay", k), self._source("lr", k)
            lr = rate((id(source), beta1, t), lambda k=k, source=source, beta1=beta1:
                      source["lr"] / (1 - beta1 ** self.t[k]))
            correction = rate((beta2, t), lambda k=k, beta2=beta2: 1 / (1 - beta2 ** self.t[k]))
            m = self.m[k].assign(self.m[k] * beta1 + g * (1 - beta1))
            v = self.v[k].assign(self.v[k] * beta2 + g.square() * (1 - beta2))
            update = m / ((v * _scalar(correction, p)).sqrt() + eps)
            if decay:
                p = p * _scalar(rate((id(source), "decay", decay), lambda source=source,
                                     decay=decay: 1 - source["lr"] * decay), p)
            new = p - update * _scalar(lr, p)
            changed += [m, v, self.params[k].assign(new)]
        return changed

    def _count_step(self, active: list[int]) -> None:
        change(self, t=[t + (k in active) for k, t in enumerate(self.t)])

    def state(self) -> dict[str, list[Tensor]]:
        return {"m": self.m, "v": self.v}


def _groups(params: Any, options: tuple[str, ...]) -> list[dict[str, Any]]:
    """Parameters as an optimizer takes them, as groups, each with a list of its own."""
    entries = _listed(params, "an optimizer")
    groups = [dict(e) if isinstance(e, dict) else {"params": [e]} for e in entries]
    for group in groups:
        unknown = [name for name in group if name not in ("params", *options)]
        if unknown or "params" not in group:
            said = f"{unknown[0]!r} is no option of it" if unknown else "it has no 'params'"
            raise ValueError(f"a group of parameters: {said}; a group has 'params', and may have "
                             f"{', '.join(map(repr, options))}")
        group["params"] = _listed(group["params"], "a group's 'params'")
    if not any(group["params"] for group in groups):
        raise ValueError("an optimizer needs a parameter, got none: an empty list, or an iterator "
                         "that is used up")
    return groups


def _listed(params: Any, name: str) -> list[Any]:
    if isinstance(params, (Tensor, dict, str)) or not isinstance(params, Iterable):
        raise TypeError(f"{name} takes a list of parameters, got a {type(params).__name__}")
    return list(params)


def _check_parameters(params: list[Tensor]) -> None:
    for k, p in enumerate(params):
        if not isinstance(p, Tensor):
            raise TypeError(f"an optimizer's parameters must be tensors, number {k} is {p!r}")
        if not p.dtype.is_float:
            raise TypeError(f"an optimizer's parameters must be floats, one is {p.dtype}")
    if len({id(p) for p in params}) < len(params):
        raise ValueError("a parameter is given to the optimizer twice")


def _check_options(options: dict[str, Any]) -> None:
    for name in ("lr", "weight_decay", "momentum", "eps"):
        value = options.get(name, 0)
        if not isinstance(value, numbers.Real) or not value >= 0:
            raise ValueError(f"{name} must be a number and not negative, got {value!r}")
    betas = options.get("betas", (0, 0))
    if not isinstance(betas, (tuple, list)) or len(betas) != 2 or not all(
            isinstance(b, numbers.Real) and 0 <= b < 1 for b in betas):
        raise ValueError(f"betas must be two numbers in [0, 1), got {betas!r}")


def _rate(value: Callable[[], float]) -> Tensor:
    """A number that changes from step to step, as data."""
    return Tensor._of(recording.made_by(lambda: np.array([value()], np.float32)))


def _zeros_like(p: Tensor) -> Tensor:
    return Tensor(np.zeros(p.shape, p.dtype.np))


def _scalar(x: Tensor, p: Tensor) -> Tensor:
    """A one-element tensor as a number of p's dtype, so that it broadcasts to any shape."""
    return x.reshape(()).cast(p.dtype)
