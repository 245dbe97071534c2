"""What is trained, the same for every library: the models' sizes, and rows of random batches.

It imports none of them, so that a process in which one is measured need not hold another.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

BATCHES = 20  # that are different; then they come again
Batch = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class GPTTask:
    """A GPT on random tokens; sizes have the names of models.gpt.GPTConfig."""

    batch: int
    block_size: int = 64
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    vocab_size: int = 65
    bias: bool = True
    max_norm: ClassVar[float | None] = 1.0  # to which gradients are clipped
    estimate: ClassVar[str] = "nanoGPT's estimate"

    def draw(self, rng: np.random.Generator) -> Batch:
        tokens = rng.integers(0, self.vocab_size, (self.batch, self.block_size + 1), np.int32)
        return tokens[:, :-1], tokens[:, 1:]

    def flops(self, weights: dict[str, np.ndarray]) -> int:
        """Of a step: (6 * (parameters without positions) + 12 * layers * channels * block) per
        token."""
        inside = sum(w.size for w in weights.values()) - weights["transformer.wpe.weight"].size
        attention = 12 * self.n_layer * self.n_embd * self.block_size
        return self.batch * self.block_size * (6 * inside + attention)


@dataclass(frozen=True)
class MLPTask:
    """An MLP on random images."""

    batch: int
    sizes: tuple[int, ...]
    max_norm: ClassVar[float | None] = None
    estimate: ClassVar[str] = "its products"

    def draw(self, rng: np.random.Generator) -> Batch:
        return (rng.random((self.batch, self.sizes[0]), np.float32),
                rng.integers(0, self.sizes[-1], self.batch, np.int32))

    def flops(self, weights: dict[str, np.ndarray]) -> int:
        """Of a step: three products a layer, of which the first layer needs only two."""
        products = [w.size for w in weights.values() if w.ndim == 2]
        return 2 * self.batch * (3 * sum(products) - products[0])


Task = GPTTask | MLPTask
TASKS = {
    "small": GPTTask(8, block_size=32, n_layer=2, n_head=2, n_embd=64),
    "default": GPTTask(12),
    "baby": GPTTask(4, block_size=256, n_layer=6, n_head=6, n_embd=384),
    "mlp": MLPTask(128, (784, 512, 256, 10)),
}


def batches(task: Task) -> Iterator[Batch]:
    rng = np.random.default_rng(0)
    return itertools.cycle([task.draw(rng) for _ in range(BATCHES)])
