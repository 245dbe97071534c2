"""A training step against PyTorch's, and what it is made of.

`./run.sh bench --step` for the GPT of a `--config`, `--mlp` for an MLP. A step's flops are the same
for every library, see tasks.py. "Outside kernels" is the step's time less that of the native calls
of its plans.
"""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import slowest
from libraries import Case
from machine import Bench
from tasks import TASKS
from training import Training, weights_of

from uopc import config
from uopc.counters import counters

COMPARED = 20     # first steps whose losses must agree with PyTorch's
UNSTEADY = 5      # first steps, in which plans are made and recorded
TOLERANCE = 1e-4
PEERS = {"torch": False, "torch.compile": True}  # label → whether the model is compiled


class Step:
    """A training step whose losses are kept."""

    def __init__(self, training: Callable[[], float]) -> None:
        self.training = training
        self.losses: list[float] = []

    def __call__(self) -> None:
        self.losses.append(self.training())

    def become_steady(self) -> None:
        self.first_losses(UNSTEADY)

    def first_losses(self, steps: int) -> list[float]:
        while len(self.losses) < steps:
            self()
        return self.losses[:steps]


class Parts(NamedTuple):
    """Of a step: its kernels, and medians of the seconds in them and outside."""

    kernels: int
    run: float
    outside: float


class UopcStep(Step):
    """uopc's step at a level, and what is known of those done so far."""

    def __init__(self, name: str, level: int) -> None:
        self.level = str(level)
        self.done: list[Parts] = []
        self.set_level()
        super().__init__(Training(name))

    def set_level(self) -> None:
        os.environ["OPT"] = self.level

    def __call__(self) -> None:
        self.set_level()
        before, start = counters.copy(), time.perf_counter()
        super().__call__()
        seconds, did = time.perf_counter() - start, counters - before
        self.done.append(Parts(did.kernels, did.run_time, seconds - did.run_time))

    def weights(self) -> dict[str, Any]:
        return weights_of(self.training.model)

    def parts(self) -> Parts:
        steady = self.done[UNSTEADY:]
        return Parts(steady[-1].kernels, statistics.median(p.run for p in steady),
                     statistics.median(p.outside for p in steady))

    def profile(self, steps: int) -> slowest.Profile:
        return slowest.profile(self, steps)


def uopc_step(_: str, name: str, level: int) -> UopcStep:
    return UopcStep(name, level)


def torch_step(_: str, name: str, weights: dict[str, Any], compiled: bool) -> Step | None:
    from torch_training import TorchTraining, works
    step = Step(TorchTraining(name, weights, compiled))
    return step if not compiled or works(step) else None


def run(bench: Bench, name: str, levels: Sequence[int], source: bool) -> None:
    """`levels` are timed; where level 0 is none of them, its kernels are counted, unless it takes
    minutes."""
    turns, machine = bench.turns, bench.machine
    machine.look(turns)
    ours = turns.prepare(cases_of(name, levels))
    weights = turns.ask(ours[0], "weights")
    theirs = turns.prepare({label: ("torch", torch_step, name, weights, compiled)
                            for label, compiled in PEERS.items() if "torch" in bench.libraries},
                           keep=True)
    turns.prepare({"peak": machine.cases["peak"]}, keep=True)
    for label in (*ours, *theirs):
        turns.ask(label, "become_steady")
    seconds = turns.time([*ours, *theirs, "peak"])
    show_steps(bench, name, seconds, ours, theirs, TASKS[name].flops(weights))
    if theirs:
        compare_losses(bench, ours, theirs[0])
    for label in ours:
        slowest.show(bench, label, source)
    if 0 not in levels and name != "baby":
        for label in turns.prepare(cases_of(name, (0,)), keep=True):
            slowest.count(label, turns.ask(label, "profile", 1))
    machine.look(turns)
    print(machine.summary())


def cases_of(name: str, levels: Sequence[int]) -> dict[str, Case]:
    return {f"level {level}": ("uopc", uopc_step, name, level) for level in levels}


def timed_levels() -> list[int]:
    """All but level 0, whose step takes seconds; the highest first."""
    return sorted(config.LEVELS, reverse=True)[:-1]


def show_steps(bench: Bench, name: str, seconds: dict[str, float], ours: list[str],
               theirs: list[str], flops: int) -> None:
    peak = bench.machine.best("peak", seconds["peak"])
    print(f"a step of {name}, {flops / 1e9:.2f} GFLOP by {TASKS[name].estimate}; "
          f"{bench.machine.threads_said()}, FMA peak {peak:.1f} GFLOP/s; medians of "
          f"{bench.turns.rounds} rounds")
    for label in [*theirs, *ours]:
        s = seconds[label]
        line = f"  {label:14} {s * 1e3:8.2f} ms, of the peak {flops / s / 1e9 / peak:.3f}"
        if label in ours:
            line += "".join(f", {s / seconds[peer]:.2f} of {peer}'s" for peer in theirs)
            if theirs:
                line += f", {s / min(seconds[peer] for peer in theirs):.2f} of the fastest's"
            parts = bench.turns.ask(label, "parts")
            line += (f"; {parts.kernels} kernels in {parts.run * 1e3:.2f} ms (of the peak "
                     f"{flops / parts.run / 1e9 / peak:.3f}), outside kernels "
                     f"{parts.outside * 1e3:.2f} ms")
        print(line, flush=True)


def compare_losses(bench: Bench, ours: list[str], peer: str) -> None:
    theirs = bench.turns.ask(peer, "first_losses", COMPARED)
    for label in ours:
        losses = bench.turns.ask(label, "first_losses", COMPARED)
        worst = max(abs(a - b) for a, b in zip(losses, theirs, strict=True))
        verdict = "agree with" if worst <= TOLERANCE else "DIFFER from"
        print(f"{label}: the losses of the first {COMPARED} steps {verdict} {peer}'s: at most "
              f"{worst:.1e} apart (from {losses[0]:.4f} to {losses[-1]:.4f})", flush=True)
