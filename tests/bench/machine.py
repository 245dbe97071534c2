"""What the machine can do: fused multiply-adds per second, and bytes per second of a copy.

Its speed drifts, so both are measured beside whatever is compared with them, as cases of a
"library" of their own, and all over the run; `summary` gives the median and the extremes.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from libraries import Case, Turns, peers

STEPS = 1 << 20     # of the loop over the chains
CHAINS = 12         # of dependent multiply-adds: enough to fill the pipelines, within 16 registers
LARGE = 1 << 24     # floats of a copy that no cache holds
LOOKS = 5


def fma_peak(_: str, threads: int) -> Callable[[], object]:
    """Chains of x = x*a + b in registers."""
    from uopc.runtime import Program
    lanes = _lanes()
    lines = [f"typedef float lanes __attribute__((vector_size({4 * lanes})));",
             "void fma_peak(float* restrict out, float* restrict in) {",
             f"  {_parallel(threads)}",
             f"  for (int t = 0; t < {threads}; t++) {{",
             "    lanes a = in[0]-(lanes){}, b = in[1]-(lanes){};",
             *[f"    lanes x{k} = a*{k}.0f;" for k in range(CHAINS)],
             f"    for (int i = 0; i < {STEPS}; i++) {{",
             *[f"      x{k} = x{k}*a+b;" for k in range(CHAINS)],
             "    }",
             f"    lanes total = {'+'.join(f'x{k}' for k in range(CHAINS))};",
             f"    for (int k = 0; k < {lanes}; k++) out[t*{lanes}+k] = total[k];",
             "  }",
             "}", ""]
    program = Program("\n".join(lines), "fma_peak")
    arrays = np.empty(threads * lanes, np.float32), np.array([0.5, 1], np.float32)
    return lambda: program(*arrays)


def fma_flops(threads: int) -> int:
    return 2 * CHAINS * STEPS * threads * _lanes()


def copy(_: str, elements: int, threads: int) -> Callable[[], object]:
    """Copies that many floats, by one thread or by all, whichever is faster."""
    calls = [_copy(elements, t) for t in sorted({1, threads})]
    return min(calls, key=_quickest)


def _copy(elements: int, threads: int) -> Callable[[], object]:
    from uopc.runtime import Program
    lanes = _lanes()
    elements = -(-elements // lanes) * lanes
    program = Program("\n".join([
        f"typedef float lanes __attribute__((vector_size({4 * lanes}), aligned(4), may_alias));",
        "void copy(float* restrict out, float* restrict in) {",
        f"  {_parallel(threads)}",
        f"  for (int i = 0; i < {elements}; i += {lanes}) *(lanes*)(out+i) = *(lanes*)(in+i);",
        "}", ""]), "copy")
    arrays = np.zeros(elements, np.float32), np.ones(elements, np.float32)
    arrays[0][:] = 1  # so that its memory is there
    return lambda: program(*arrays)


def _quickest(call: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _lanes() -> int:
    from uopc.opt.target import target
    return target().lanes(4)


def _parallel(threads: int) -> str:
    return f"#pragma omp parallel for schedule(static) num_threads({threads})" \
        if threads > 1 else ""


class Machine:
    """Cases to be timed beside others, and every rate that was seen. GB/s count a copied byte
    twice, read and written."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.cases: dict[str, Case] = {"peak": ("machine", fma_peak, threads),
                                       "copy": ("machine", copy, LARGE, threads)}
        if threads > 1:
            self.cases["peak 1"] = ("machine", fma_peak, 1)
        self.seen: dict[str, list[float]] = {name: [] for name in self.cases}

    def copy_of(self, moved: float) -> Case:
        """A copy that moves as many bytes as something else, from the same caches."""
        return ("machine", copy, max(1, min(LARGE, int(moved) // 8)), self.threads)

    def rate(self, name: str, seconds: float) -> float:
        """GFLOP/s or GB/s of one of the cases; remembers it."""
        work = 8 * LARGE if name == "copy" else fma_flops(1 if name == "peak 1" else self.threads)
        self.seen[name].append(work / seconds / 1e9)
        return self.seen[name][-1]

    def best(self, name: str, seconds: float) -> float:
        """The same, but the highest that was seen so far: whatever disturbs slows it down, on two
        cores often by half."""
        self.rate(name, seconds)
        return max(self.seen[name])

    def look(self, turns: Turns) -> dict[str, float]:
        """Measure all of them, a few times."""
        turns.prepare(self.cases)
        seconds = turns.time(self.cases, LOOKS)
        return {name: self.rate(name, s) for name, s in seconds.items()}

    def threads_said(self) -> str:
        return f"{self.threads} thread{'s' * (self.threads > 1)}"

    def summary(self) -> str:
        names = {"peak 1": "FMA peak of 1 thread, GFLOP/s",
                 "peak": f"FMA peak of {self.threads_said()}, GFLOP/s",
                 "copy": f"copy of {LARGE >> 18} MiB, GB/s"}
        return "machine: " + "; ".join(
            f"{names[name]} {statistics.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f}, "
            f"{len(rates)} times)" for name, rates in self.seen.items())


@dataclass
class Bench:
    """What each part of the benchmark works with: `libraries` are uopc and its peers, `wanted`
    tells whether a case is to be run."""

    turns: Turns
    machine: Machine
    libraries: list[str]
    wanted: Callable[[str], object]

    @classmethod
    def started(cls, threads: int | None, wanted: Callable[[str], object]) -> Bench:
        """`threads` for each library, None for its own choice, which is taken to be all cores."""
        from uopc.opt.target import usable_cores
        libraries = ["uopc", *peers()]
        turns = Turns([*libraries, "machine"], threads)
        return cls(turns, Machine(threads or usable_cores()), libraries, wanted)
