"""Libraries that take turns, each in a process of its own.

Idle threads of one library spin for a while and take a core from the next, so before another one
has its turn all are left alone for a moment. A case is (library, factory, *arguments): in the
library's process `factory(library, *arguments)` gives the call that is timed, or None where the
machine cannot run it.
"""
from __future__ import annotations

import atexit
import importlib.util
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import numpy as np

PAUSE = 0.1      # seconds until another library's threads sleep
WARM_UP = 0.03   # seconds of calls before those that are timed; a long call needs none
SPAN = 0.01      # seconds of calls, one at least, whose median is one measurement
LONG = 0.3

Case = tuple


def peers() -> list[str]:
    return ["numpy"] + ["torch"] * bool(importlib.util.find_spec("torch"))


class Turns:
    """`measure(cases)` gives the median seconds of each case over `rounds` in which all take turns.
    `threads` are those that each library may use, None for what it uses by itself."""

    def __init__(self, libraries: Sequence[str], threads: int | None = None) -> None:
        self.rounds, self.libraries = 1, libraries
        self.library_of: dict[str, str] = {}
        self.pipes: dict[str, Connection] = {}
        self.processes: list[SpawnProcess] = []
        context = multiprocessing.get_context("spawn")
        for library in libraries:
            self.pipes[library], theirs = context.Pipe()
            process = context.Process(target=serve, args=(library, threads, theirs), daemon=True)
            process.start()
            self.processes.append(process)
        atexit.register(self.close)

    def close(self) -> None:
        """Let the processes end by themselves, so that they leave nothing behind."""
        for pipe in self.pipes.values():
            pipe.close()
        for process in self.processes:
            process.join()

    def measure(self, cases: dict[str, Case]) -> dict[str, float]:
        return self.time(self.prepare(cases))

    def prepare(self, cases: dict[str, Case], keep: bool = False) -> list[str]:
        """Make the calls of `cases`, by label; those of before are dropped unless `keep`. Returns
        the labels of those that can run."""
        if not keep:
            for library in self.libraries:
                self.order(library, "forget")
        self.library_of.update({label: library for label, (library, *_) in cases.items()})
        return [label for label, (library, *made_by) in cases.items()
                if self.order(library, "prepare", label, *made_by)]

    def time(self, labels: Iterable[str], rounds: int | None = None) -> dict[str, float]:
        times: dict[str, list[float]] = {label: [] for label in labels}
        before = None
        for _ in range(rounds or self.rounds):
            for label, column in times.items():
                library = self.library_of[label]
                if library != before:
                    time.sleep(PAUSE)
                column.append(self.order(library, "time", label))
                before = library
        return {label: statistics.median(column) for label, column in times.items()}

    def ask(self, label: str, method: str, *arguments: Any) -> Any:
        """What a method of a case's call returns."""
        return self.order(self.library_of[label], "ask", label, method, *arguments)

    def order(self, library: str, *words: Any) -> Any:
        self.pipes[library].send(words)
        return self.pipes[library].recv()


class Server:
    """A library's process."""

    def __init__(self, library: str, threads: int | None) -> None:
        self.library = library
        self.calls: dict[str, Callable[[], object]] = {}
        self.last: dict[str, float] = {}
        if library == "torch" and threads:
            import torch
            torch.set_num_threads(threads)

    def forget(self) -> None:
        self.calls.clear()
        self.last.clear()

    def prepare(self, label: str, factory: Callable[..., Any], *arguments: Any) -> bool:
        self.calls[label] = factory(self.library, *arguments)
        return self.calls[label] is not None

    def ask(self, label: str, method: str, *arguments: Any) -> Any:
        return getattr(self.calls[label], method)(*arguments)

    def time(self, label: str) -> float:
        call, warm = self.calls[label], time.perf_counter() + WARM_UP
        while self.last.get(label, 0) < LONG and time.perf_counter() < warm:
            call()
        times: list[float] = []
        while sum(times) < SPAN:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        self.last[label] = statistics.median(times)
        return self.last[label]


def serve(library: str, threads: int | None, pipe: Connection) -> None:
    server = Server(library, threads)
    while True:
        try:
            method, *arguments = pipe.recv()
        except EOFError:  # the benchmark has ended
            return
        pipe.send(getattr(server, method)(*arguments))


def wrap(library: str, array: np.ndarray) -> Any:
    """`array` as a library has it."""
    if library == "torch":
        import torch
        return torch.from_numpy(array)
    if library == "uopc":
        from uopc.tensor import Tensor
        return Tensor(array)
    return array


def call_of(library: str, function: Callable[[], Any]) -> Callable[[], object]:
    """The call that computes what `function` gives; for uopc the plan's run, which is what a
    training step repeats."""
    return plan_call([function().uop]) if library == "uopc" else function


def plan_call(roots: Sequence[Any], level: int = 1) -> Callable[[], object]:
    from uopc.composite import buffer_data
    from uopc.kernelize import make_plan
    plan, inputs = make_plan(roots, opt=level)
    arrays = [buffer_data(u) for u in inputs]
    return lambda: plan.run(arrays)
