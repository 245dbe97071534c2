"""uopc's training step of a task, and the time of the first and of steady ones."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tasks import TASKS, GPTTask, Task, batches

from models.gpt import GPT, GPTConfig
from models.mlp import MLP
from uopc import nn
from uopc.counters import counters
from uopc.jit import jit
from uopc.tensor import Tensor


def gpt_of(task: GPTTask) -> GPT:
    return GPT(GPTConfig(task.vocab_size, task.block_size, task.n_layer, task.n_head, task.n_embd,
                         bias=task.bias))


def model_of(task: Task) -> tuple[Any, Callable[[Tensor, Tensor], Tensor]]:
    """(the model, its loss)."""
    Tensor.manual_seed(0)
    if isinstance(task, GPTTask):
        gpt = gpt_of(task)
        return gpt, gpt.loss
    mlp = MLP(task.sizes)
    return mlp, lambda x, y: mlp(x).cross_entropy(y)


def weights_of(model: Any) -> dict[str, np.ndarray]:
    return {name: p.numpy() for name, p in nn.named_parameters(model).items()}


class Training:
    """A call is a step, on the next of a fixed row of batches; it returns the loss."""

    def __init__(self, name: str) -> None:
        self.task = TASKS[name]
        self.model, self.loss = model_of(self.task)
        self.optimizer = nn.AdamW(nn.parameters(self.model))
        self.batches = batches(self.task)
        self.step = jit(self._step)

    def __call__(self) -> float:
        x, y = next(self.batches)
        return self.step(Tensor(x), Tensor(y)).item()

    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward(self.optimizer.params)
        extra = [loss]
        if self.task.max_norm:
            extra.append(nn.clip_grad_norm(self.optimizer.params, self.task.max_norm))
        self.optimizer.step(*extra)
        return loss


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
