"""Programs of many kernels, which may share loops: known layers, and random ones.

A random program is made by its seed, so it is the same in every run. All its values have one shape,
and each is made of earlier ones: row by row, where a loop may be shared, or by what needs other
rows, where it must not be.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from kernel_checks import layer_norm

from uopc.dtype import DType, dtypes
from uopc.opt.target import Target
from uopc.tensor import Tensor
from uopc.uop import prod

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
MAX_ELEMENTS = 600


def eager(machine: Target) -> Target:
    """The machine, but that it shares every loop that may be shared, however small."""
    return replace(machine, min_shared_steps=1, min_shared_rows=1, min_shared_lanes=1)


def some(*shape: int, dtype: DType = dtypes.f32, seed: int = 0) -> Tensor:
    """Data: small numbers of both signs."""
    values = np.random.default_rng((*shape, seed)).standard_normal(shape) * 3
    return Tensor(values.astype(dtype.np) if dtype is not dtypes.bool else values > 0)


# *** known layers, with all gradients ***


def with_gradients(y: Tensor, *leaves: Tensor) -> list[Tensor]:
    """A layer's result, and the gradients of a weighted sum of it."""
    (y * some(*y.shape, dtype=y.dtype, seed=1)).sum().backward(leaves)
    return [y, *[t.grad for t in leaves]]


def softmaxes(m: int, n: int, dtype: DType = dtypes.f32) -> list[Tensor]:
    x = some(m, n, dtype=dtype)
    return [x.softmax(-1), x.log_softmax(-1), x.softmax(0), x.T.log_softmax(-1).flip(0)]


def norm_layer(*shape: int, dtype: DType = dtypes.f32) -> list[Tensor]:
    x, weight, bias = (some(*s, dtype=dtype) for s in (shape, shape[-1:], shape[-1:]))
    return with_gradients(layer_norm(x) * weight + bias, x, weight, bias)


def classifier(m: int, n: int, dtype: DType = dtypes.f32) -> list[Tensor]:
    """Cross-entropy."""
    x = some(m, n, dtype=dtype)
    loss = x.cross_entropy(Tensor(np.arange(m) * 3 % n))
    loss.backward([x])
    return [loss, x.grad]


def mlp(m: int, c: int, hidden: int, dtype: DType = dtypes.f32) -> list[Tensor]:
    """Normalized rows, linear, gelu, linear, residual."""
    x, w, b, v = (some(*s, dtype=dtype) for s in ((m, c), (c, hidden), (hidden,), (hidden, c)))
    return with_gradients(x + ((layer_norm(x) @ w * 0.2 + b).gelu() @ v), x, w, b, v)


def attention(b: int, t: int, heads: int, c: int, dtype: DType = dtypes.f32) -> list[Tensor]:
    """Causal, of several heads, `c` channels each."""
    x, w = some(b, t, heads * c, dtype=dtype), some(heads * c, 3 * heads * c, dtype=dtype)
    mixed = (x @ w * 0.05).reshape(b, t, 3, heads, c)
    q, k, v = (mixed[:, :, part].transpose(1, 2) for part in range(3))
    past = Tensor.arange(t).unsqueeze(1) >= Tensor.arange(t)
    weights = past.where(q @ k.transpose() * 0.2, -np.inf).softmax(-1)
    y = x + (weights @ v).transpose(1, 2).reshape(b, t, heads * c)
    return with_gradients(y, x, w)


def embedding(m: int, n: int, dtype: DType = dtypes.f32) -> list[Tensor]:
    """Rows of a table, some of them twice; the gradient is a scatter."""
    table, scale = some(m, n, dtype=dtype), some(n, dtype=dtype)
    rows = Tensor(np.arange(2 * m) * 5 % m)
    return with_gradients(layer_norm(table[rows]) * scale, table, scale)


def neighbours(m: int, n: int, dtype: DType = dtypes.i32) -> list[Tensor]:
    """What is computed, read at other places than it was computed for, and at several at once."""
    x = (some(m, n, dtype=dtype) * 2 + 1).contiguous()
    rows = x + x.sum(1, keepdim=True)
    flipped = (x.flip(0) * 3).contiguous()
    return [x[:, 1:] - x[:, :-1], x[1:] - x[:-1], x.flip(0) + x, (flipped + x).contiguous().sum(1),
            x @ x.T, x.T @ x, x @ x.T @ x + x, rows.contiguous()[::2], rows.contiguous().flip(1),
            rows.contiguous().T.sum(1), rows.pad(((1, 2), (3, 0))).contiguous().sum(1),
            rows.reshape(n, m).contiguous().sum(1), rows.flatten()[1:].contiguous() * 2,
            x.cumsum(1).sum(1), x.cumsum(0).contiguous() * x, Tensor.cat([rows, x[:1]]).sum(1),
            (x.sum(1) * 2).contiguous() + x[:, 0], x]


LAYERS: dict[str, Callable[..., list[Tensor]]] = {
    f.__name__: f for f in (softmaxes, norm_layer, classifier, mlp, attention, embedding,
                            neighbours)}


# *** random ones ***


class Program:
    """Values that are made one after the other; `roots` are some of them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = (dtypes.i32, dtypes.f32, dtypes.f64, dtypes.i32)[seed % 4]
        shape = (0,)
        while shape == (0,) or prod(shape) > MAX_ELEMENTS:
            shape = tuple(self.rng.choice(SIZES, int(self.rng.integers(2, 4))).tolist())
        self.shape = (*shape[:-1], 0) if self.chance(0.03) else shape
        self.values = [self.leaf(*self.shape)]
        for _ in range(int(self.rng.integers(3, 9))):
            x = self.rng.choice(STEPS)(self, self.pick(), int(self.rng.integers(len(shape))))
            x = x * 0.5 if self.dtype.is_float else x
            self.values.append(x.contiguous() if self.chance(0.5) else x)
        self.roots = [self.values[-1], *[self.root() for _ in range(int(self.rng.integers(3)))]]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def leaf(self, *shape: int) -> Tensor:
        return Tensor((self.rng.standard_normal(shape) * 3).astype(self.dtype.np))

    def pick(self) -> Tensor:
        """A value, most often one of the last."""
        return self.values[max(0, len(self.values) - 1 - int(self.rng.exponential(1.0)))]

    def root(self) -> Tensor:
        x = self.pick()
        return x.sum(int(self.rng.integers(x.ndim))) if self.chance(0.5) else x * 2 + 1

    def cut(self, axis: int, *bounds: int | None) -> tuple[slice, ...]:
        """The index that takes a part of an axis."""
        return tuple(slice(*bounds) if a == axis else slice(None) for a in range(len(self.shape)))


def highest(x: Tensor, axis: int) -> Tensor:
    return x.max(axis, keepdim=True) if x.shape[axis] else x.sum(axis, keepdim=True)


def normalize(p: Program, x: Tensor, axis: int) -> Tensor:
    x = x - highest(x, axis)
    x = x.exp() if p.dtype.is_float else x
    total = x.sum(axis, keepdim=True)
    return x / total if p.dtype.is_float else x * total


def add_sum(p: Program, x: Tensor, axis: int) -> Tensor:
    return x + x.sum(axis, keepdim=True)


def add_total(p: Program, x: Tensor, axis: int) -> Tensor:
    return x + p.pick().sum()


def scale_by_highest(p: Program, x: Tensor, axis: int) -> Tensor:
    return p.pick() * highest(x, axis)


def compare(p: Program, x: Tensor, axis: int) -> Tensor:
    """With floats another order of a sum could change what a comparison gives."""
    return x.maximum(p.pick()) if p.dtype.is_float else (x < p.pick()).where(x * 2, p.pick() + 1)


def multiply(p: Program, x: Tensor, axis: int) -> Tensor:
    return x * p.pick() + 3


def flip(p: Program, x: Tensor, axis: int) -> Tensor:
    return x.flip(axis) + p.pick()


def shift(p: Program, x: Tensor, axis: int) -> Tensor:
    if x.shape[axis] < 2:
        return x
    k = int(p.rng.integers(1, min(x.shape[axis], 4)))
    moved = x[p.cut(axis, k, None)]
    moved = moved - p.pick()[p.cut(axis, None, -k)] if p.chance(0.5) else moved
    moved = moved.contiguous() if p.chance(0.3) else moved
    pair = (0, k) if p.chance(0.5) else (k, 0)
    return moved.pad([pair if a == axis else (0, 0) for a in range(x.ndim)], int(p.chance(0.2)))


def shift_flat(p: Program, x: Tensor, axis: int) -> Tensor:
    """Across the ends of rows."""
    if x.size < 2:
        return x
    k, flat = int(p.rng.integers(1, min(x.size, 20))), x.flatten()
    moved = flat[k:].pad(((0, k),)) if p.chance(0.5) else flat.pad(((k, 0),))[:x.size]
    return (moved.flip(0) if p.chance(0.2) else moved).reshape(*x.shape)


def regroup(p: Program, x: Tensor, axis: int) -> Tensor:
    """As a matrix of other rows, and back."""
    if not x.size:
        return x
    rows = int(p.rng.choice([n for n in range(1, x.size + 1) if x.size % n == 0]))
    y, side = x.reshape(rows, x.size // rows), int(p.rng.integers(2))
    changed = (y + y.sum(side, keepdim=True), y.T.contiguous(), y.T, y.flip(side),
               (y * 2).contiguous())[int(p.rng.integers(5))]
    return changed.reshape(*x.shape)


def permute(p: Program, x: Tensor, axis: int) -> Tensor:
    order = p.rng.permutation(x.ndim).tolist()
    y = add_sum(p, x.permute(*order), axis)
    y = y.contiguous() if p.chance(0.5) else y
    return y.permute(*[order.index(a) for a in range(x.ndim)])


def linear(p: Program, x: Tensor, axis: int) -> Tensor:
    return x @ p.leaf(x.shape[-1], x.shape[-1])


def two_linear(p: Program, x: Tensor, axis: int) -> Tensor:
    hidden = int(p.rng.integers(1, 9))
    return (x @ p.leaf(x.shape[-1], hidden)).relu() @ p.leaf(hidden, x.shape[-1]) + x


def attend(p: Program, x: Tensor, axis: int) -> Tensor:
    scores = x @ p.pick().transpose()
    return ((scores * 0.3).softmax(-1) if p.dtype.is_float else scores) @ p.pick()


def gram(p: Program, x: Tensor, axis: int) -> Tensor:
    return p.pick() @ (x.transpose() @ p.pick())


def gather(p: Program, x: Tensor, axis: int) -> Tensor:
    n = x.shape[axis]
    return x.take(p.rng.integers(0, n, n), axis) + p.pick() if n else x


def gather_by_value(p: Program, x: Tensor, axis: int) -> Tensor:
    """Rows whose numbers are computed."""
    n = x.shape[0]
    return x[x.reshape(n, -1).argmax(1) % n] * 2 if x.size and not p.dtype.is_float else x


def scatter(p: Program, x: Tensor, axis: int) -> Tensor:
    changed, n = x + 0, x.shape[0]
    changed[Tensor(p.rng.permutation(n)[:max(1, n // 2)])] = p.pick()[0]
    return changed * 1


def halves(p: Program, x: Tensor, axis: int) -> Tensor:
    if x.shape[axis] < 2:
        return x
    k = int(p.rng.integers(1, x.shape[axis]))
    first, second = x[p.cut(axis, None, k)], p.pick()[p.cut(axis, k, None)]
    first = (first + 1).contiguous() if p.chance(0.5) else first
    return Tensor.cat([second, first] if p.chance(0.5) else [first, second], axis)


def interleave(p: Program, x: Tensor, axis: int) -> Tensor:
    even, odd = x[p.cut(axis, None, None, 2)], p.pick()[p.cut(axis, 1, None, 2)]
    return Tensor.cat([even, odd], axis)


def running_sum(p: Program, x: Tensor, axis: int) -> Tensor:
    return x.cumsum(axis) if x.size else x


def subtract_row(p: Program, x: Tensor, axis: int) -> Tensor:
    k = int(p.rng.integers(max(1, x.shape[axis])))
    return x - p.pick()[p.cut(axis, k, k + 1)] if x.shape[axis] else x


STEPS = [normalize, normalize, add_sum, add_sum, add_total, scale_by_highest, compare, multiply,
         flip, shift, shift, shift_flat, regroup, regroup, permute, permute, linear, two_linear,
         attend, gram, gather, gather_by_value, scatter, halves, interleave, running_sum,
         subtract_row]
