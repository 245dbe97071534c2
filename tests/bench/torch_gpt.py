"""The same GPT in PyTorch, as nanoGPT writes it. Parameters have the names of `models/gpt.py`, so
its weights can be loaded."""
from __future__ import annotations

import torch
from tasks import GPTTask
from torch import Tensor, nn
from torch.nn import functional


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTTask) -> None:
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
    def __init__(self, config: GPTTask) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, config: GPTTask) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config: GPTTask) -> None:
        super().__init__()
        self.block_size = config.block_size
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, config.n_embd),
            "wpe": nn.Embedding(config.block_size, config.n_embd),
            "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
            "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
        })

    def hidden(self, tokens: Tensor) -> Tensor:
        wte, wpe, blocks, ln_f = self.transformer.values()
        x = wte(tokens) + wpe(torch.arange(tokens.shape[1]))
        for block in blocks:
            x = block(x)
        return ln_f(x)

    def head(self, x: Tensor) -> Tensor:
        return x @ self.transformer["wte"].weight.T

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        logits = self.head(self.hidden(tokens))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(self, tokens: Tensor, count: int, temperature: float) -> Tensor:
        """`tokens` (B, T) with `count` more, which are drawn one after the other."""
        for _ in range(count):
            last = self.hidden(tokens[:, -self.block_size:])[:, -1]
            probabilities = functional.softmax(self.head(last) / temperature, dim=-1)
            tokens = torch.cat((tokens, torch.multinomial(probabilities, 1)), dim=1)
        return tokens
