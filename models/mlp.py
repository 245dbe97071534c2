"""A multilayer perceptron: linear layers with ReLU between them."""
from __future__ import annotations

from collections.abc import Sequence

from uopc import nn
from uopc.tensor import Tensor


class MLP:
    """`sizes` (n_in, hidden, ..., n_out): (B, n_in) → (B, n_out)."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)
