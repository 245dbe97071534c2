"""The same GPT and training step in PyTorch, eager, as nanoGPT writes them. Parameters have the
names of `models/gpt.py`, so its weights can be loaded."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.gpt import GPTConfig


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head = config.n_head

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        heads = (part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                 for part in self.c_attn(x).split(C, dim=2))
        y = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, config.n_embd),
            "wpe": nn.Embedding(config.block_size, config.n_embd),
            "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
            "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
        })

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        wte, wpe, blocks, ln_f = self.transformer.values()
        x = wte(tokens) + wpe(torch.arange(tokens.shape[1]))
        for block in blocks:
            x = block(x)
        logits = ln_f(x) @ wte.weight.T
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class TorchTraining:
    """As training.Training: a call is a step and returns the loss."""

    def __init__(self, config: GPTConfig, weights: dict[str, np.ndarray],
                 batches: Iterator[np.ndarray]) -> None:
        self.model = GPT(config)
        self.model.load_state_dict({n: torch.from_numpy(w) for n, w in weights.items()})
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.999),
                                           eps=1e-8, weight_decay=0.01, fused=True)
        self.batches = batches

    def __call__(self) -> float:
        tokens = torch.from_numpy(next(self.batches)).long()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model.loss(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()
