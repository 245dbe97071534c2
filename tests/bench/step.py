"""The default GPT's training step against PyTorch's, and the kernels that take most of its time.

`./run.sh bench --step`. A step's flops are those of nanoGPT's estimate, (6 * (parameters without
positions) + 12 * layers * channels * block) per token, the same for every library; a kernel's are
`Kernel.flops`: one for each element of each operation, be it an erf, and each element that is
summed. A kernel's bytes are its arrays, each once. Its bound is the longer of flops / FMA peak and
bytes / copy, where the copy moves as many bytes, so from the same caches. Its time has the call
from Python in it.
"""
from __future__ import annotations

import contextlib
import io
import os
import statistics
from collections.abc import Callable
from typing import Any

from libraries import Turns, peers
from machine import Machine
from training import CONFIGS, Training, batches

from uopc import nn
from uopc.counters import Counters, counters

NAME = "default"
COMPARED = 20     # first steps whose losses must agree with PyTorch's
TOLERANCE = 1e-4
PROFILED = 3      # steps
SHOWN = 10        # kernels


class Step:
    """A training step whose losses are kept."""

    def __init__(self, training: Callable[[], float]) -> None:
        self.training = training
        self.losses: list[float] = []

    def __call__(self) -> None:
        self.losses.append(self.training())

    def first_losses(self, steps: int) -> list[float]:
        while len(self.losses) < steps:
            self()
        return self.losses[:steps]


class UopcStep(Step):
    """uopc's step at a level, and what is known of those done so far."""

    def __init__(self, level: int) -> None:
        self.level = str(level)
        self.done: list[Counters] = []
        self.set_level()
        super().__init__(Training(NAME))

    def set_level(self) -> None:
        os.environ["OPT"] = self.level

    def __call__(self) -> None:
        self.set_level()
        before = counters.copy()
        super().__call__()
        self.done.append(counters - before)

    def weights(self) -> dict[str, Any]:
        return {n: p.numpy() for n, p in nn.named_parameters(self.training.model).items()}

    def parts(self) -> tuple[float, float, int]:
        """Medians of the seconds in kernels and for the schedule, and the number of kernels."""
        steady = self.done[2:]
        return (statistics.median(d.run_time for d in steady),
                statistics.median(d.schedule_time for d in steady), steady[-1].kernels)

    def profile(self) -> list[tuple[str, str, float, int, int]]:
        """(name, C, median seconds, flops, bytes) of each kernel of a step, in order."""
        from uopc import plan
        steps: list[list] = []

        def timed(kernel: Any, args: list, debug: int) -> None:
            before = plan.time.perf_counter()
            kernel.program(*args)
            seconds = plan.time.perf_counter() - before
            steps[-1].append((kernel, seconds, sum(a.nbytes for a in args)))

        kept, plan._timed, os.environ["DEBUG"] = plan._timed, timed, "2"  # times each kernel
        try:
            for _ in range(PROFILED):
                steps.append([])
                with contextlib.redirect_stderr(io.StringIO()):
                    self()
        finally:
            plan._timed = kept
            del os.environ["DEBUG"]
        return [(k.name, k.src, statistics.median(row[1] for row in rows), k.flops, moved)
                for rows in zip(*steps, strict=True) for k, _, moved in rows[:1]]


def uopc_step(_: str, level: int) -> UopcStep:
    return UopcStep(level)


def torch_step(_: str, weights: dict[str, Any]) -> Step:
    from torch_gpt import TorchTraining
    config, batch = CONFIGS[NAME]
    return Step(TorchTraining(config, weights, batches(config, batch)))


def run(rounds: int, threads: int | None, cores: int, levels: tuple[int, ...],
        source: bool) -> None:
    with_torch = "torch" in peers()
    turns = Turns(["uopc", *["torch"] * with_torch, "machine"], rounds, threads)
    machine = Machine(threads or cores)
    machine.look(turns)
    labels = {f"level {level}": ("uopc", uopc_step, level) for level in levels}
    turns.prepare(labels)
    weights = turns.ask(next(iter(labels)), "weights")
    if with_torch:
        turns.prepare({"torch": ("torch", torch_step, weights)}, keep=True)
    turns.prepare({"peak": machine.cases["peak"]}, keep=True)
    seconds = turns.time([*labels, *["torch"] * with_torch, "peak"])
    show_steps(turns, machine, seconds, model_flops(weights))
    if with_torch:
        compare_losses(turns, list(labels))
    for label in labels:
        slowest(turns, machine, label, source)
    machine.look(turns)
    print(machine.summary())


def compare_losses(turns: Turns, labels: list[str]) -> None:
    theirs = turns.ask("torch", "first_losses", COMPARED)
    for label in labels:
        ours = turns.ask(label, "first_losses", COMPARED)
        worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        verdict = "agree with" if worst <= TOLERANCE else "DIFFER from"
        print(f"{label}: the losses of the first {COMPARED} steps {verdict} torch's: at most "
              f"{worst:.1e} apart (from {ours[0]:.4f} to {ours[-1]:.4f})", flush=True)


def model_flops(weights: dict[str, Any]) -> int:
    config, batch = CONFIGS[NAME]
    inside = sum(w.size for w in weights.values()) - weights["transformer.wpe.weight"].size
    tokens = batch * config.block_size
    return tokens * (6 * inside + 12 * config.n_layer * config.n_embd * config.block_size)


def show_steps(turns: Turns, machine: Machine, seconds: dict[str, float], flops: int) -> None:
    peak = machine.rate("peak", seconds.pop("peak"))
    print(f"a step of the {NAME} GPT, {flops / 1e9:.2f} GFLOP by nanoGPT's estimate; FMA peak of "
          f"{machine.threads} threads {peak:.1f} GFLOP/s")
    for label, s in seconds.items():
        line = f"  {label:8} {s * 1e3:8.1f} ms, of the peak {flops / s / 1e9 / peak:.3f}"
        if "torch" in seconds and label != "torch":
            line += f", torch's time {s / seconds['torch']:.2f} times"
        if label != "torch":
            run_s, schedule, kernels = turns.ask(label, "parts")
            line += (f"; {kernels} kernels in {run_s * 1e3:.1f} ms (of the peak "
                     f"{flops / run_s / 1e9 / peak:.3f}), schedule {schedule * 1e3:.1f} ms, "
                     f"the rest of Python {(s - run_s - schedule) * 1e3:.1f} ms")
        print(line, flush=True)


def slowest(turns: Turns, machine: Machine, label: str, source: bool) -> None:
    """Print the kernels whose calls of a step take longest together: equal C is one
    kernel, `first` its place in the step."""
    groups: dict[str, list] = {}
    places: dict[str, int] = {}
    for place, kernel in enumerate(turns.ask(label, "profile")):
        groups.setdefault(kernel[1], []).append(kernel)
        places.setdefault(kernel[1], place)
    total = sum(k[2] for calls in groups.values() for k in calls)
    first = sorted(groups.values(), key=lambda calls: -sum(k[2] for k in calls))[:SHOWN]
    copies = {f"copy {calls[0][4]}": machine.copy_of(calls[0][4]) for calls in first}
    turns.prepare({**copies, "peak": machine.cases["peak"]}, keep=True)
    beside = turns.time([*copies, "peak"])
    peak = machine.rate("peak", beside["peak"])
    calls_of_step = sum(map(len, groups.values()))
    plan_flops = sum(k[3] for calls in groups.values() for k in calls)
    print(f"{label}: {calls_of_step} kernels, {len(groups)} different ones, {total * 1e3:.1f} ms "
          f"one by one, {plan_flops / 1e9:.2f} GFLOP by Kernel.flops; FMA peak {peak:.1f} GFLOP/s")
    print("  kernel                 first  calls      ms   share  GFLOP/s    GB/s  bound  reached")
    for calls in first:
        name, src, _, flops, moved = calls[0]
        each = sum(k[2] for k in calls) / len(calls)
        needed = {"FMA": flops / peak / 1e9, "copy": beside[f"copy {moved}"]}
        bound = max(needed, key=needed.get)
        print(f"  {name:22} {places[src]:5} {len(calls):6} {each * len(calls) * 1e3:7.2f} "
              f"{each * len(calls) / total:7.1%} {flops / each / 1e9:8.1f} "
              f"{moved / each / 1e9:7.1f}  {bound:5}  {needed[bound] / each:7.3f}", flush=True)
        if source:
            print(src)
