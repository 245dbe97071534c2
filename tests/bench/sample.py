"""Tokens per second that the default GPT gives, against nanoGPT's generate() with the same weights.

`./run.sh bench --sample`. uopc pads the context to the block, so that one plan serves every length;
nanoGPT crops it, and computes less while it is short. Neither keeps keys and values. "Whole" are
samples of as many tokens as train/sample.py gives, from one token on; with "full" contexts each
token has a whole block before it.
"""
from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from machine import Bench
from tasks import TASKS
from training import gpt_of, weights_of

from train.sample import generate
from uopc.jit import jit
from uopc.tensor import Tensor

TASK = TASKS["default"]
TEMPERATURE = 0.8
TOKENS = {"whole": 300, "full": 50}  # of a call
ENDLESS = 1 << 30


class UopcSampling:
    """A call draws tokens."""

    def __init__(self, _: str, contexts: str) -> None:
        Tensor.manual_seed(0)
        self.model = gpt_of(TASK)
        self.model.training = False
        self.next_logits = jit(self.model.next_logits)
        self.contexts, self.rng = contexts, np.random.default_rng(0)
        self.endless = self.tokens([0] * TASK.block_size, ENDLESS)

    def tokens(self, start: list[int], count: int) -> Iterator[int]:
        options = argparse.Namespace(max_new_tokens=count, temperature=TEMPERATURE,
                                     top_k=TASK.vocab_size)
        return generate(self.model, start, options, self.rng, self.next_logits)

    def __call__(self) -> None:
        count = TOKENS[self.contexts]
        tokens = self.endless if self.contexts == "full" else self.tokens([0], count)
        for _ in itertools.islice(tokens, count):
            pass

    def weights(self) -> dict[str, Any]:
        return weights_of(self.model)


def torch_sampling(_: str, contexts: str, weights: dict[str, Any]) -> Any:
    import torch
    from torch_training import model_of
    model = model_of(TASK, weights).eval()
    start = torch.zeros((1, TASK.block_size if contexts == "full" else 1), dtype=torch.long)
    return lambda: model.generate(start, TOKENS[contexts], TEMPERATURE)


def run(bench: Bench) -> None:
    turns = bench.turns
    print(f"sampling from the default GPT, {bench.machine.threads_said()}, medians of "
          f"{turns.rounds} rounds")
    for contexts, tokens in TOKENS.items():
        labels = turns.prepare({"uopc": ("uopc", UopcSampling, contexts)})
        if "torch" in bench.libraries:
            weights = turns.ask("uopc", "weights")
            labels += turns.prepare({"torch": ("torch", torch_sampling, contexts, weights)},
                                    keep=True)
        rates = {label: tokens / s for label, s in turns.time(labels).items()}
        line = ", ".join(f"{label} {rate:.0f}" for label, rate in rates.items())
        line += f" tokens/s; {rates['uopc'] / rates['torch']:.2f} times torch's" \
            if "torch" in rates else " tokens/s"
        print(f"  {contexts:5} contexts, {tokens} tokens a call: {line}", flush=True)
