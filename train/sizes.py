"""Whether a training can fit this machine's memory, before any work is done for it."""
from __future__ import annotations

import argparse

from data.memory import available_memory

BYTES = 4  # of a float32
LAYER_OVERHEAD = 100_000  # bytes of graph, plan and loaded kernels for a layer, at the least


def gpt_memory(options: argparse.Namespace, vocab_size: int) -> dict[str, int]:
    """Bytes by the options that decide them; less than a training takes in fact. Weights count
    four times: with their gradients and AdamW's two moments."""
    C, layers, block = options.n_embd, options.n_layer, options.block_size
    sequences = options.batch_size * options.gradient_accumulation_steps
    tokens = sequences * block
    return {
        f"--n_layer {layers} of --n_embd {C}":
            layers * (4 * BYTES * 12 * C * C + LAYER_OVERHEAD),
        f"--block_size {block} and {vocab_size} in the vocabulary":
            4 * BYTES * (block + vocab_size) * C,
        f"--batch_size {options.batch_size} of --block_size {block} with "
        f"--gradient_accumulation_steps {options.gradient_accumulation_steps}":
            BYTES * tokens * (layers * 8 * C + vocab_size),
    }


def check_memory(parts: dict[str, int]) -> None:
    """Raises ValueError, which names the largest part, if all parts together cannot fit."""
    memory, size = available_memory(), sum(parts.values())
    if size > memory:
        largest = max(parts, key=parts.__getitem__)
        raise ValueError(f"this needs at least {_gigabytes(size)} of memory, there are "
                         f"{_gigabytes(memory)}; most of it is for {largest}")


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e15 else f"{size // 10**9:,} GB"
