"""GPT-2's architecture: pre-norm blocks of causal self-attention and an MLP, a head that shares the
token embedding's weight. Parameters are named as in GPT-2: `transformer.h.0.attn.c_attn.weight`.

Radford et al., "Language Models are Unsupervised Multitask Learners", 2019. The activation is the
exact GELU. In the shapes B is the batch, T time, C channels, H heads and V the vocabulary.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from uopc import nn
from uopc.tensor import Tensor


@dataclass
class GPTConfig:
    vocab_size: int
    block_size: int = 64
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    dropout: float = 0.0
    bias: bool = True

    def __post_init__(self) -> None:
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd {self.n_embd} must be a multiple of n_head {self.n_head}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")

    @property
    def std(self) -> float:
        """Of weights at first. GPT-2's 0.02 belongs to its 768 channels; other widths scale it so
        that activations keep their size."""
        return 0.02 * math.sqrt(768 / self.n_embd)

    @property
    def residual_std(self) -> float:
        """As GPT-2, less by the number of projections that are added up."""
        return self.std / math.sqrt(2 * self.n_layer)


def parameter_shapes(config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and shape of every parameter of GPT(config), one by one, without building it."""
    C = config.n_embd
    yield "transformer.wte.weight", (config.vocab_size, C)
    yield "transformer.wpe.weight", (config.block_size, C)
    block = {"attn.c_attn": (3 * C, C), "attn.c_proj": (C, C), "mlp.c_fc": (4 * C, C),
             "mlp.c_proj": (C, 4 * C), "ln_1": (C,), "ln_2": (C,)}
    layers = ((f"h.{k}.{name}", shape) for k in range(config.n_layer)
              for name, shape in block.items())
    for name, shape in chain(layers, [("ln_f", (C,))]):
        yield f"transformer.{name}.weight", shape
        if config.bias:
            yield f"transformer.{name}.bias", shape[:1]


class CausalSelfAttention:
    def __init__(self, config: GPTConfig) -> None:
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, config.bias, config.std)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, config.bias, config.residual_std)
        self.n_head = config.n_head

    def __call__(self, x: Tensor, dropout: float) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).reshape(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))  # (B, H, T, C/H)
        scores = q @ k.transpose() * (1 / math.sqrt(C // self.n_head))
        past = Tensor.arange(T).unsqueeze(1) >= Tensor.arange(T)
        weights = nn.dropout(past.where(scores, -math.inf).softmax(-1), dropout)
        y = (weights @ v).transpose(1, 2).reshape(B, T, C)
        return nn.dropout(self.c_proj(y), dropout)


class MLP:
    def __init__(self, config: GPTConfig) -> None:
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, config.bias, config.std)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, config.bias, config.residual_std)

    def __call__(self, x: Tensor, dropout: float) -> Tensor:
        return nn.dropout(self.c_proj(self.c_fc(x).gelu()), dropout)


class Block:
    """The residual stream lies in memory between blocks (`contiguous`); fused on and on, each block
    would compute the sum of all blocks before it again."""

    def __init__(self, config: GPTConfig) -> None:
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def __call__(self, x: Tensor, dropout: float) -> Tensor:
        x = (x + self.attn(self.ln_1(x), dropout)).contiguous()
        return (x + self.mlp(self.ln_2(x), dropout)).contiguous()


class GPT:
    """`model(tokens)` gives logits; `model.loss(tokens, targets)` the mean cross-entropy."""

    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        self.training = True  # whether dropout is applied
        self.transformer = {
            "wte": nn.Embedding(config.vocab_size, config.n_embd, config.std),
            "wpe": nn.Embedding(config.block_size, config.n_embd, config.std),
            "h": [Block(config) for _ in range(config.n_layer)],
            "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
        }
        Tensor.realize_all(*nn.parameters(self))

    def hidden(self, tokens: Tensor) -> Tensor:
        """(B, T) → (B, T, C), after the last norm. Raises ValueError if T exceeds block_size."""
        T = tokens.shape[1]
        if T > self.config.block_size:
            raise ValueError(f"{T} tokens do not fit the model's block_size "
                             f"{self.config.block_size}")
        dropout = self.config.dropout if self.training else 0.0
        x = self.transformer["wte"](tokens) + self.transformer["wpe"].weight[:T]
        x = nn.dropout(x, dropout).contiguous()
        for block in self.transformer["h"]:
            x = block(x, dropout)
        return self.transformer["ln_f"](x)

    def head(self, x: Tensor) -> Tensor:
        """(..., C) → (..., V), with the token embedding's weight."""
        return x @ self.transformer["wte"].weight.transpose()

    def __call__(self, tokens: Tensor) -> Tensor:
        """(B, T) → logits (B, T, V)."""
        return self.head(self.hidden(tokens))

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy of the targets (B, T); those of -1 do not count."""
        return self(tokens).cross_entropy(targets, ignore_index=-1)

    def next_logits(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Logits (B, V) of what follows tokens[:, position]; position (1,) is data, so one plan
        serves every length of a padded context."""
        return self.head(self.hidden(tokens)[:, position].squeeze(1))

    def parameter_count(self) -> int:
        return sum(p.size for p in nn.parameters(self))
