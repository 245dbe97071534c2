"""A Plan: the kernels of one graph, in order, with the storage they pass values through.

It holds no UOps and no user's arrays, so it may be kept as long as one likes: arrays come in with
`run` and go out as its result. Temporaries belong to the plan and are used again by every run.
"""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from uopc.counters import counters
from uopc.dtype import DType
from uopc.memory import empty_array
from uopc.runtime import Program

Ref = tuple[str, int]  # ("in", i), ("tmp", j) or ("out", r)
Storage = tuple[DType, int]  # dtype, number of elements


@dataclass(frozen=True)
class Kernel:
    """One C function and the arrays it is called with. `flops` counts its arithmetic."""

    name: str
    src: str
    refs: list[Ref]
    program: Program
    flops: int


@dataclass
class Plan:
    """`kernels` in order; `temps` and `outs` are what they need and give besides the inputs.

    `results` tells for each root where it lies (an input that a root aliases, or an out) and its
    shape.
    """

    kernels: list[Kernel]
    temps: list[Storage]
    outs: list[Storage]
    results: list[tuple[Ref, tuple[int, ...]]]
    _storage: list[np.ndarray] | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def run(self, inputs: Sequence[np.ndarray], debug: int = 0) -> list[np.ndarray]:
        """Run every kernel on `inputs`; returns the outs as flat new arrays."""
        outs = _allocate(self.outs)
        with self._lock:  # two threads may run one plan, but not on the same temporaries
            if self._storage is None:
                self._storage = _allocate(self.temps)
            arrays = {"in": inputs, "tmp": self._storage, "out": outs}
            start = time.perf_counter()
            for kernel in self.kernels:
                args = [arrays[kind][i] for kind, i in kernel.refs]
                if debug >= 2:
                    _timed(kernel, args, debug)
                else:
                    kernel.program(*args)
            counters.run_time += time.perf_counter() - start
        counters.kernels += len(self.kernels)
        return outs


def _allocate(storage: Sequence[Storage]) -> list[np.ndarray]:
    return [empty_array((size,), dtype.np) for dtype, size in storage]


def _timed(kernel: Kernel, args: list[np.ndarray], debug: int) -> None:
    """Run a kernel and print its time; from level 3 on once more, warm."""
    moved = sum(a.nbytes for a in args)
    for label in ("", " warm")[:2 if debug >= 3 else 1]:
        start = time.perf_counter()
        kernel.program(*args)
        seconds = time.perf_counter() - start
        print(f"    {kernel.name + label:<32} {seconds * 1e3:9.3f} ms "
              f"{kernel.flops / seconds / 1e9:8.2f} GFLOP/s {moved / seconds / 1e9:8.2f} GB/s",
              file=sys.stderr)
