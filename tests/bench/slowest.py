"""The kernels of a step: how many, the bytes that they move, and the slowest against the roofline.

A kernel's flops are `Kernel.flops`: one for each element of each operation, be it an erf, and each
element that is summed. Its bytes are its arrays, each once; the least that a step can move are the
arrays that go in and those that come out. A kernel's bound is the longer of flops / FMA peak and
bytes / copy, where the copy moves as many bytes, so from the same caches. Its time has the call
from Python in it.
"""
from __future__ import annotations

import contextlib
import io
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from machine import Bench

PROFILED = 3  # steps
SHOWN = 10    # kernels


class Call(NamedTuple):
    """A kernel of the step: its C, the median of its seconds, its flops and bytes."""

    name: str
    src: str
    seconds: float
    flops: int
    moved: int


class Profile(NamedTuple):
    """The kernels in order, and the least bytes that the step must move."""

    calls: list[Call]
    least: int


def profile(step: Callable[[], object], steps: int) -> Profile:
    """Time each kernel of `steps` steps by itself."""
    from uopc import plan
    rows: list[list[tuple[Any, float, int]]] = []
    outer: dict[tuple[str, int], int] = {}  # bytes of what the plans are given and give

    def timed(kernel: Any, args: list, debug: int, run: Callable[[], None]) -> None:
        start = time.perf_counter()
        run()
        rows[-1].append((kernel, time.perf_counter() - start, sum(a.nbytes for a in args)))
        outer.update(((kind, a.ctypes.data), a.nbytes)
                     for (kind, _), a in zip(kernel.refs, args, strict=True) if kind != "tmp")

    with mock.patch.object(plan, "_timed", timed), mock.patch.dict(os.environ, DEBUG="2"), \
            contextlib.redirect_stderr(io.StringIO()):
        for _ in range(steps):
            rows.append([])
            outer.clear()
            step()
    calls = [Call(kernel.name, kernel.src, statistics.median(row[1] for row in same),
                  kernel.flops, moved)
             for same in zip(*rows, strict=True) for kernel, _, moved in same[:1]]
    return Profile(calls, sum(outer.values()))


def count(label: str, found: Profile) -> None:
    moved = sum(call.moved for call in found.calls)
    print(f"{label}: {len(found.calls)} kernels a step, {len({c.src for c in found.calls})} "
          f"different ones, move {moved / 1e6:.1f} MB, {moved / found.least:.1f} times the least "
          f"possible ({found.least / 1e6:.1f} MB, what goes in and out)", flush=True)


def show(bench: Bench, label: str, source: bool) -> None:
    """Print the kernels whose calls of a step take longest together: equal C is one kernel,
    `first` its place in the step."""
    turns, machine = bench.turns, bench.machine
    found = turns.ask(label, "profile", PROFILED)
    count(label, found)
    groups: dict[str, list[Call]] = {}
    places: dict[str, int] = {}
    for place, call in enumerate(found.calls):
        groups.setdefault(call.src, []).append(call)
        places.setdefault(call.src, place)
    total = sum(call.seconds for call in found.calls)
    first = sorted(groups.values(), key=lambda calls: -sum(c.seconds for c in calls))[:SHOWN]
    copies = {f"copy {calls[0].moved}": machine.copy_of(calls[0].moved) for calls in first}
    turns.prepare({**copies, "peak": machine.cases["peak"]}, keep=True)
    beside = turns.time([*copies, "peak"])
    peak = machine.best("peak", beside["peak"])
    print(f"  one by one they take {total * 1e3:.1f} ms and do "
          f"{sum(c.flops for c in found.calls) / 1e9:.2f} GFLOP by Kernel.flops; FMA peak "
          f"{peak:.1f} GFLOP/s")
    print("  kernel                 first  calls      ms   share  GFLOP/s    GB/s  bound  reached")
    for calls in first:
        name, src, _, flops, moved = calls[0]
        each = sum(c.seconds for c in calls) / len(calls)
        needed = {"FMA": flops / peak / 1e9, "copy": beside[f"copy {moved}"]}
        bound = max(needed, key=needed.get)
        print(f"  {name:22} {places[src]:5} {len(calls):6} {each * len(calls) * 1e3:7.2f} "
              f"{each * len(calls) / total:7.1%} {flops / each / 1e9:8.1f} "
              f"{moved / each / 1e9:7.1f}  {bound:5}  {needed[bound] / each:7.3f}", flush=True)
        if source:
            print(src)
