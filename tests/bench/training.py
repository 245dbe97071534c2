"""The training step of a GPT on random tokens, and the time of the first and of steady ones."""
from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from models.gpt import GPT, GPTConfig
from uopc import nn
from uopc.counters import counters
from uopc.jit import jit
from uopc.tensor import Tensor

CONFIGS = {
    "run.sh": (GPTConfig(65, block_size=32, n_layer=2, n_head=2, n_embd=64), 8),
    "default": (GPTConfig(65, block_size=64, n_layer=4, n_head=4, n_embd=128), 12),
}


class Training:
    """A call is a step, on the next of a fixed row of batches; it returns the loss."""

    def __init__(self, name: str) -> None:
        Tensor.manual_seed(0)
        self.config, batch = CONFIGS[name]
        self.model = GPT(self.config)
        self.optimizer = nn.AdamW(nn.parameters(self.model))
        self.batches = batches(self.config, batch)

        self.step = jit(self._step)

    def __call__(self) -> float:
        tokens = next(self.batches)
        return self.step(Tensor(tokens[:, :-1]), Tensor(tokens[:, 1:])).item()

    def _step(self, tokens: Tensor, targets: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.model.loss(tokens, targets)
        loss.backward(self.optimizer.params)
        norm = nn.clip_grad_norm(self.optimizer.params, 1.0)
        self.optimizer.step(loss, norm)
        return loss


def batches(config: GPTConfig, batch: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    while True:
        yield rng.integers(0, config.vocab_size, (batch, config.block_size + 1), np.int32)


def measure(name: str, steps: int) -> None:
    """Print the first step's compile time and the medians of `steps` steady ones."""
    step, rows = Training(name), []
    for number in range(steps + 1):
        before, start = counters.copy(), time.perf_counter()
        step()
        seconds, did = time.perf_counter() - start, counters - before
        if number == 0:
            print(f"  first step {seconds:6.2f} s, {did.plan_time:.2f} s of it making the plan: "
                  f"{did.kernels} kernels, {did.objects_built} built, {did.objects_found} found",
                  flush=True)
        else:
            rows.append((seconds, did.schedule_time, did.run_time))
    step_s, schedule, run = (statistics.median(column) for column in zip(*rows, strict=True))
    rest = step_s - schedule - run
    print(f"  steady step {step_s * 1e3:8.1f} ms (median of {steps}): kernels {run * 1e3:.1f} ms, "
          f"schedule {schedule * 1e3:.2f} ms ({schedule / step_s:.1%}), building the graph and "
          f"the rest {rest * 1e3:.1f} ms", flush=True)
