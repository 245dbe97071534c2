"""What the default training takes beside kernels: its start, memory, page faults and Python's part,
and a second training at the same time.

`./run.sh bench --resources`. Each training is a process of its own, see worker.py.
"""
from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import Bench

TASK = "default"
STEPS = 50        # of which the first
UNSTEADY = 20     # are not counted
STARTS = 5        # with a warm cache
TOGETHER = 4.0    # seconds that two trainings run at the same time
CACHES = ("UOPC_CACHE", "TORCHINDUCTOR_CACHE_DIR")
STARTED = (  # library, its cache, how often
    ("uopc", "empty cache", 1),
    ("uopc", "warm cache", STARTS),
    ("torch", "eager", STARTS),
    ("torch.compile", "empty cache", 1),
)


class Worker:
    """A training's process. `cache` is the folder of what it compiles."""

    def __init__(self, library: str, cache: str) -> None:
        self.start = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), library, TASK], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(CACHES, cache)})
        self.process.stdout.readline()  # the first loss
        self.first = time.perf_counter() - self.start

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def order(self, steps: int, seconds: float = 0) -> None:
        print(json.dumps({"steps": steps, "seconds": seconds}), file=self.process.stdin, flush=True)

    def answer(self) -> dict[str, float]:
        return json.loads(self.process.stdout.readline())

    def train(self, steps: int, seconds: float = 0) -> dict[str, float]:
        self.order(steps, seconds)
        return self.answer()


def run(bench: Bench) -> None:
    """The cache is empty at first, and warm from then on."""
    with tempfile.TemporaryDirectory() as cache:
        started = [start for start in STARTED if has(bench, start[0])
                   and bench.wanted("start {} {}".format(*start))]
        if started:
            print(f"{TASK} training: from the process's start to the first loss; steps "
                  f"{UNSTEADY + 1} to {STEPS}, medians, and minor page faults a step; the most "
                  "memory until then")
        for library, state, starts in started:
            show_start(f"{library}, {state}", library, cache, starts)
        for library in ("uopc", "torch"):
            if bench.wanted(f"together {library}") and has(bench, library):
                show_together(library, cache)
    if bench.wanted("call"):
        seconds = bench.turns.measure({"call": ("uopc", captured_call)})["call"]
        print(f"a captured call of a plan of one kernel: {seconds * 1e6:.1f} us", flush=True)


def has(bench: Bench, library: str) -> bool:
    return library.partition(".")[0] in bench.libraries


def show_start(label: str, library: str, cache: str, starts: int) -> None:
    firsts: list[float] = []
    for _ in range(starts):
        with Worker(library, cache) as worker:
            firsts.append(worker.first)
            if len(firsts) == starts:
                worker.train(UNSTEADY - 1)
                did = worker.train(STEPS - UNSTEADY)
    line = (f"  {label:28} first loss {statistics.median(firsts):6.2f} s, a step "
            f"{did['median'] * 1e3:6.1f} ms, {did['faults']:6.1f} faults, "
            f"{did['memory'] / 1e6:6.1f} MB")
    if library == "uopc":
        line += f", outside kernels {did['outside'] * 1e3:.3f} ms"
    print(line, flush=True)


def show_together(library: str, cache: str) -> None:
    with Worker(library, cache) as one, Worker(library, cache) as other:
        both = (one, other)
        for worker in both:
            worker.train(UNSTEADY - 1)
        alone = [worker.train(0, TOGETHER) for worker in both]
        for worker in both:
            worker.order(0, TOGETHER)
        together = [worker.answer() for worker in both]
    print(f"two {TASK} trainings with {library}, ms a step (median, mean)")
    for a, b in zip(alone, together, strict=True):
        print("  alone {:.1f}, {:.1f}; together {:.1f}, {:.1f}: {:.2f} and {:.2f} times".format(
            *(s * 1e3 for d in (a, b) for s in (d["median"], d["mean"])),
            *(b[kind] / a[kind] for kind in ("median", "mean"))), flush=True)


def captured_call(_: str) -> Callable[[], Any]:
    from uopc.jit import jit
    from uopc.tensor import Tensor
    function, x = jit(lambda t: t * 2 + 1), Tensor(np.ones(16, np.float32))
    return lambda: function(x)
