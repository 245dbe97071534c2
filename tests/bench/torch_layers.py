"""The layers of layers.py in PyTorch."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch_training import tensor

FUTURE = torch.ones(256, 256, dtype=torch.bool).triu(1)  # made once, as in nanoGPT


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As nanoGPT writes it out."""
    T, C = q.shape[-2:]
    scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(C))
    return scores.masked_fill(FUTURE[:T, :T], -math.inf).softmax(-1) @ v


WAYS: dict[str, Callable[..., Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "LayerNorm": lambda x, weight, bias: functional.layer_norm(x, x.shape[-1:], weight, bias),
    "cross-entropy": functional.cross_entropy,
    "scaled_dot_product": lambda *qkv: functional.scaled_dot_product_attention(
        *qkv, is_causal=True),
    "attention": attention,
}


class TorchLayer:
    """As layers.UopcLayer."""

    def __init__(self, way: str, inputs: Sequence[np.ndarray], labels: Sequence[np.ndarray],
                 gradient: np.ndarray | None, with_gradient: bool, compiled: bool) -> None:
        self.function = torch.compile(WAYS[way]) if compiled else WAYS[way]
        self.inputs = [tensor(a).requires_grad_(with_gradient) for a in inputs]
        self.labels = [tensor(a) for a in labels]
        self.gradient = None if gradient is None else tensor(gradient)
        self.with_gradient = with_gradient

    def __call__(self) -> list[Tensor]:
        result = self.function(*self.inputs, *self.labels)
        if not self.with_gradient:
            return [result]
        return [result, *torch.autograd.grad(result, self.inputs, self.gradient)]

    def values(self) -> list[np.ndarray]:
        return [t.detach().numpy() for t in self()]
