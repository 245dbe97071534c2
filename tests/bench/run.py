"""Benchmarks: `./run.sh bench`. Figures mean something only beside others of the same run.

For the GPT of `./run.sh` and for the default one: the time of a step and what it is made of, and
what the first step costs with an empty and with a warm cache of objects.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from models.gpt import GPT, GPTConfig
from uopc import nn
from uopc.counters import counters
from uopc.tensor import Tensor

CONFIGS = {
    "run.sh": (GPTConfig(65, block_size=32, n_layer=2, n_head=2, n_embd=64), 8),
    "default": (GPTConfig(65, block_size=64, n_layer=4, n_head=4, n_embd=128), 12),
}


def training_step(model: GPT, optimizer: nn.AdamW, tokens: np.ndarray) -> float:
    optimizer.zero_grad()
    loss = model.loss(Tensor(tokens[:, :-1]), Tensor(tokens[:, 1:]))
    loss.backward(optimizer.params)
    norm = nn.clip_grad_norm(optimizer.params, 1.0)
    optimizer.step(loss, norm)
    return loss.item()


def measure(name: str, steps: int) -> None:
    """Print the first step's compile time and the medians of `steps` steady ones."""
    config, batch = CONFIGS[name]
    rng = np.random.default_rng(0)
    Tensor.manual_seed(0)
    model = GPT(config)
    optimizer = nn.AdamW(nn.parameters(model))
    rows = []
    for step in range(steps + 1):
        tokens = rng.integers(0, config.vocab_size, (batch, config.block_size + 1), np.int32)
        before, start = counters.copy(), time.perf_counter()
        training_step(model, optimizer, tokens)
        seconds, did = time.perf_counter() - start, counters - before
        if step == 0:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", choices=CONFIGS, help="only this one, in this process")
    parser.add_argument("--steps", type=int, default=15, help="steady steps to time")
    parser.add_argument("--kernels", action="store_true", help="single kernels against peers")
    options = parser.parse_args()
    if options.kernels:
        slowing = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # NumPy
        subprocess.run([sys.executable, str(Path(__file__).with_name("kernels.py"))], check=True,
                       env={k: v for k, v in os.environ.items() if k not in slowing})
        return
    if options.config:
        measure(options.config, options.steps)
        return
    for name in CONFIGS:
        with tempfile.TemporaryDirectory() as cache:
            for state in ("empty", "warm"):
                print(f"GPT {name}, {state} cache of objects", flush=True)
                subprocess.run([sys.executable, __file__, f"--config={name}",
                                f"--steps={options.steps}"], check=True,
                               env={**os.environ, "UOPC_CACHE": cache})


if __name__ == "__main__":
    main()
