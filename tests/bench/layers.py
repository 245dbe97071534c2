"""Layers as a user calls them, under @jit, against PyTorch eager and compiled: microseconds a call.

`./run.sh bench --layers`. "Gradient": forward, and the gradients of all inputs. Where PyTorch has
several ways to write a layer, the fastest counts.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from machine import Bench

from uopc import nn
from uopc.jit import jit
from uopc.tensor import Tensor

TOLERANCE = 1e-4  # of a value, for those of 1 and more relative to it


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """nn.LayerNorm's, with parameters that are arguments."""
    return nn.LayerNorm.__call__(SimpleNamespace(weight=weight, bias=bias, eps=1e-5), x)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As in models/gpt.py."""
    T, C = q.shape[-2:]
    past = Tensor.arange(T).unsqueeze(1) >= Tensor.arange(T)
    return past.where(q @ k.transpose() * (1 / math.sqrt(C)), -math.inf).softmax(-1) @ v


LAYERS = {  # name → (uopc's function, the shapes of its inputs); labels come after them
    "softmax": (lambda x: x.softmax(-1), [(512, 512)]),
    "LayerNorm": (layer_norm, [(768, 128), (128,), (128,)]),
    "cross-entropy": (lambda x, labels: x.cross_entropy(labels), [(768, 65)]),
    "attention": (attention, [(4, 6, 256, 64)] * 3),
}
CASES = [("softmax", False), *((name, with_gradient) for name in list(LAYERS)[1:]
                               for with_gradient in (False, True))]


def data(name: str) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray | None]:
    """(inputs, labels, the gradient of the result, which is None where that is a number)."""
    rng = np.random.default_rng(0)
    shapes = LAYERS[name][1]
    inputs = [rng.standard_normal(shape, np.float32) for shape in shapes]
    if name == "cross-entropy":
        rows, classes = shapes[0]
        return inputs, [rng.integers(0, classes, rows, np.int32)], None
    return inputs, [], rng.standard_normal(shapes[0], np.float32)


class UopcLayer:
    """A call computes the layer, `values` says what came of it."""

    def __init__(self, _: str, name: str, with_gradient: bool) -> None:
        inputs, labels, gradient = data(name)
        self.function = LAYERS[name][0]
        self.floats, self.given = len(inputs), [Tensor(a) for a in (*inputs, *labels)]
        self.gradient = None if gradient is None else Tensor(gradient)
        self.compute = jit(self.with_gradient if with_gradient else self.function)

    def with_gradient(self, *given: Tensor) -> list[Tensor]:
        result, inputs = self.function(*given), given[:self.floats]
        result.backward(inputs, self.gradient)
        gradients = [x.grad for x in inputs]
        for x in inputs:
            x.grad = None
        return [result, *gradients]

    def __call__(self) -> Any:
        return self.compute(*self.given)

    def values(self) -> list[np.ndarray]:
        result = self()
        return [t.numpy() for t in (result if isinstance(result, list) else [result])]


def torch_layer(_: str, name: str, with_gradient: bool, way: str, compiled: bool) -> Any:
    from torch_layers import TorchLayer
    from torch_training import works
    layer = TorchLayer(way, *data(name), with_gradient, compiled)
    return layer if not compiled or works(layer) else None


def ways(bench: Bench, name: str) -> Sequence[str]:
    if "torch" not in bench.libraries:
        return ()
    return ("scaled_dot_product", "attention") if name == "attention" else (name,)


def run(bench: Bench) -> None:
    print(f"layers, {bench.machine.threads_said()}, medians of {bench.turns.rounds} rounds; "
          "ratios are of uopc's time to theirs")
    for name, with_gradient in CASES:
        size = "x".join(map(str, LAYERS[name][1][0]))
        label = f"{name} {size}{' gradient' * with_gradient}"
        if bench.wanted(label):
            compare(bench, name, with_gradient, label)


def compare(bench: Bench, name: str, with_gradient: bool, label: str) -> None:
    turns = bench.turns
    theirs = {(kind, way): ("torch", torch_layer, name, with_gradient, way, kind == "compiled")
              for kind in ("eager", "compiled") for way in ways(bench, name)}
    ready = turns.prepare({"uopc": ("uopc", UopcLayer, name, with_gradient), **theirs})
    ours = turns.ask("uopc", "values")
    wrong = [peer for peer in ready[1:] if not agree(ours, turns.ask(peer, "values"))]
    seconds = turns.time(ready)
    line = f"{label:32} uopc {seconds['uopc'] * 1e6:8.1f} us"
    for kind in dict.fromkeys(kind for kind, _ in ready[1:]):
        s, way = min((seconds[peer], peer[1]) for peer in ready[1:] if peer[0] == kind)
        line += f"  {kind} {s * 1e6:8.1f} us{f' ({way})' * (way != name)}, ratio " \
                f"{seconds['uopc'] / s:.2f}"
    print(line + "".join(f"  DIFFERS from {' '.join(peer)}" for peer in wrong), flush=True)


def agree(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return all(np.allclose(a, b, TOLERANCE, TOLERANCE)
               for a, b in zip(ours, theirs, strict=True))
