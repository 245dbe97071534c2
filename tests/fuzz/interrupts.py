"""KeyboardInterrupt at random moments of a training loop, at every level, with and without `jit`:
count, moments, parameters and random state belong to one step afterwards, and the loop goes on to
the values of a run that nothing disturbed."""
from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.harness import Case, outcome_of, verdict
from uopc import nn
from uopc import random as numbers
from uopc.jit import jit
from uopc.tensor import Tensor

COUNT = 1500
STRIDE = 18
PER_PROCESS = 3
STEPS = 8


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    for k in range(0, count, PER_PROCESS):
        level, jitted = k // PER_PROCESS % 3, k // PER_PROCESS % 2 == 0
        seed = rng.randrange(1 << 30)

        def run(level: int = level, jitted: bool = jitted, seed: int = seed) -> None:
            os.environ["OPT"] = str(level)
            disturb(random.Random(seed), jitted)

        outcome = outcome_of(run, seconds=120)
        ending = "wrong" if "differs" in outcome.output else verdict(outcome)
        for n in range(min(PER_PROCESS, count - k)):
            yield Case(f"level {level}, jit {jitted}, seed {seed}, {n}", ending, outcome.output)


class Training:
    """A small net with AdamW and noise from the random numbers."""

    def __init__(self, jitted: bool) -> None:
        Tensor.manual_seed(1)
        self.net = [nn.Linear(6, 8), nn.Linear(8, 2)]
        self.optimizer = nn.AdamW([{"params": nn.parameters(self.net[0]), "lr": 0.03},
                                   *nn.parameters(self.net[1])])
        Tensor.realize_all(*self.optimizer.params)
        self.step: Callable[[], Tensor] = jit(self._step) if jitted else self._step

    def _step(self) -> Tensor:
        self.optimizer.zero_grad()
        x = Tensor.randn(4, 6)
        loss = (self.net[1](self.net[0](x).relu()) - 1).square().mean()
        loss.backward(self.optimizer.params)
        self.optimizer.step(loss)
        return loss

    def state(self) -> list:
        o = self.optimizer
        return [o.t, *[t.numpy().tobytes() for t in (*o.params, *o.m, *o.v)]]


def disturb(rng: random.Random, jitted: bool) -> None:
    plain = Training(jitted)
    wanted = [(plain.state(), numbers.get_state())]
    for _ in range(STEPS):
        plain.step()
        wanted.append((plain.state(), numbers.get_state()))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for _ in range(PER_PROCESS):
        training = Training(jitted)
        while (done := training.optimizer.t[0]) < STEPS:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 6e-3))
                for _ in range(STEPS - done):
                    training.step()
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            done = training.optimizer.t[0]
            state, at = wanted[done]
            if training.state() != state:
                raise ValueError(f"what was left after step {done} differs")
            if jitted and numbers.get_state() != at:
                raise ValueError(f"the random state after step {done} differs")
            numbers.set_state(*at)  # without jit the numbers are drawn before the step
