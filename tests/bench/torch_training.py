"""The training step of a task in PyTorch, eager or with the model compiled."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from tasks import TASKS, GPTTask, MLPTask, Task, batches
from torch import Tensor, nn
from torch.nn import functional
from torch_gpt import GPT


class MLP(nn.Module):
    """Parameters have the names of `models/mlp.py`."""

    def __init__(self, task: MLPTask) -> None:
        super().__init__()
        pairs = zip(task.sizes, task.sizes[1:], strict=False)
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in pairs])

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return functional.cross_entropy(self.layers[-1](x), labels)


def model_of(task: Task, weights: dict[str, np.ndarray] | None = None) -> GPT | MLP:
    model = GPT(task) if isinstance(task, GPTTask) else MLP(task)
    if weights:
        model.load_state_dict({n: torch.from_numpy(w) for n, w in weights.items()})
    return model


class TorchTraining:
    """As training.Training: a call is a step and returns the loss."""

    def __init__(self, name: str, weights: dict[str, np.ndarray] | None = None,
                 compiled: bool = False) -> None:
        task = TASKS[name]
        self.model, self.max_norm = model_of(task, weights), task.max_norm
        self.loss = torch.compile(self.model.loss) if compiled else self.model.loss
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.999),
                                           eps=1e-8, weight_decay=0.01, fused=True)
        self.batches = batches(task)

    def __call__(self) -> float:
        x, y = map(tensor, next(self.batches))
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(x, y)
        loss.backward()
        if self.max_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.optimizer.step()
        return loss.item()


def tensor(array: np.ndarray) -> Tensor:
    """Integers as PyTorch wants its indices."""
    wrapped = torch.from_numpy(array)
    return wrapped if wrapped.is_floating_point() else wrapped.long()


def works(call: Callable[[], object]) -> bool:
    """Whether a compiled function runs here; its first call compiles it. Says why where not."""
    try:
        call()
    except RuntimeError as error:  # TorchDynamoException is one: no C++ compiler, say
        reason = str(error).strip().splitlines()[0]
        print(f"torch.compile does not work here and is left out: {reason}", flush=True)
        return False
    return True
