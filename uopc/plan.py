"""A Plan: the kernels of one graph, in order, with the storage they pass values through.

It holds no UOps and no user's arrays, so it may be kept as long as one likes: arrays come in with
`run` and go out as its result (a `Repeated` run does hold its own). Temporaries belong to the plan
and are used again by every run.
"""
from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from uopc import profile
from uopc.counters import counters
from uopc.dtype import DType
from uopc.liveness import place
from uopc.memory import address, empty_array
from uopc.phases import Ref, phases
from uopc.runtime import Program, Tasks

Storage = tuple[DType, int]  # dtype, number of elements
_numbers = itertools.count()


@dataclass(frozen=True)
class Kernel:
    """One C function and the arrays it is called with, of which it writes the last `outputs`.
    `flops` counts its arithmetic; `lines` ("file:line") built what it computes, if noted."""

    name: str
    src: str
    refs: list[Ref]
    program: Program
    flops: int
    outputs: int = 1
    lines: tuple[str, ...] = ()


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
    _launch: _Launch | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @functools.cached_property
    def phases(self) -> list[list[int]]:
        """Numbers of the kernels that may run at the same time, in order."""
        return phases([(k.refs[:len(k.refs) - k.outputs], k.refs[len(k.refs) - k.outputs:])
                       for k in self.kernels])

    @functools.cached_property
    def number(self) -> int:
        """By which a timeline names it."""
        return next(_numbers)

    def bytes_used(self, kernel: Kernel, inputs: Sequence[np.ndarray]) -> int:
        """Of all arrays that a kernel reads and writes, each counted once."""
        sizes = {"in": [a.nbytes for a in inputs], **{
            kind: [dtype.size * size for dtype, size in storage]
            for kind, storage in (("tmp", self.temps), ("out", self.outs))}}
        return sum(sizes[kind][i] for kind, i in set(kernel.refs))

    def _placed(self) -> tuple[list[int], int]:
        return place([dtype.size * size for dtype, size in self.temps],
                     [[i for k in phase for kind, i in self.kernels[k].refs if kind == "tmp"]
                      for phase in self.phases])

    def _shared_storage(self) -> list[np.ndarray]:
        """An array for each temporary, all in one block."""
        offsets, total = self._placed()
        block = empty_array((total,), np.dtype(np.uint8))
        return [block[at:at + dtype.size * size].view(dtype.np)
                for at, (dtype, size) in zip(offsets, self.temps, strict=True)]

    def bytes_needed(self) -> dict[str, int]:
        """Bytes of the results, and of the temporaries as they share memory and each for itself."""
        separate = sum(dtype.size * size for dtype, size in self.temps)
        return {"results": sum(dtype.size * size for dtype, size in self.outs),
                "temporaries": self._placed()[1], "temporaries unshared": separate}

    def launch(self, inputs: int) -> _Launch:
        if self._storage is None:
            self._storage = self._shared_storage()
        if self._launch is None:
            self._launch = _Launch(self, inputs, self._storage)
        return self._launch

    def run(self, inputs: Sequence[np.ndarray], debug: int = 0,
            spare: Mapping[int, np.ndarray] | None = None) -> list[np.ndarray]:
        """Run every kernel on `inputs`; returns the outs as flat arrays, new ones but for those in
        `spare`, by number. Raises TypeError for an input of a wrong dtype or memory layout."""
        spare = spare or {}
        outs = [spare[k] if k in spare else empty_array((size,), dtype.np)
                for k, (dtype, size) in enumerate(self.outs)]
        with self._lock:  # two threads may run one plan, but not on the same temporaries
            if self._storage is None:
                self._storage = self._shared_storage()
            start = time.perf_counter()
            if debug >= 2 or len(self.kernels) < 2:
                arrays = {"in": inputs, "tmp": self._storage, "out": outs}
                for k, kernel in enumerate(self.kernels):
                    args = [arrays[kind][i] for kind, i in kernel.refs]
                    run = functools.partial(self._run_one, k, args, inputs)
                    _timed(kernel, args, debug, run) if debug >= 2 else run()
            else:
                launch = self.launch(len(inputs))
                self._run_all(launch, launch.bind(inputs, outs), inputs)
            self._note(start)
        return outs

    def _run_one(self, k: int, args: list[np.ndarray], inputs: Sequence[np.ndarray]) -> None:
        program, timeline = self.kernels[k].program, profile.timeline()
        if timeline is None:
            program(*args)
        else:
            log = program.new_log()
            program(*args, log=log)
            timeline.ran_kernels(self, inputs, [k], log)

    def _run_all(self, launch: _Launch, addresses: np.ndarray,
                 inputs: Sequence[np.ndarray]) -> None:
        timeline = profile.timeline()
        if timeline is None:
            launch.run(addresses)
        else:
            log = launch.tasks.new_log()
            launch.run(addresses, log)
            timeline.ran_kernels(self, inputs, launch.tasks.order, log)

    def _note(self, start: float) -> None:
        """A run that began at `start` is done."""
        counters.run_time += time.perf_counter() - start
        counters.kernels += len(self.kernels)
        profile.note("run plan", start, plan=self.number, kernels=len(self.kernels))


class _Launch:
    """All kernels of a plan as one native call, with a table of their arrays' addresses."""

    def __init__(self, plan: Plan, inputs: int, temporary: Sequence[np.ndarray]) -> None:
        outs = len(plan.outs)
        self.inputs, self.outs = inputs, outs
        first = {"in": 0, "out": inputs, "tmp": inputs + outs}
        self.addresses = np.zeros(inputs + outs + len(temporary), np.uintp)
        self.addresses[inputs + outs:] = [address(a) for a in temporary]
        self.places = np.array([first[kind] + i for k in plan.kernels for kind, i in k.refs],
                               np.intp)
        self.dtypes = {i: dtype for k in plan.kernels
                       for (kind, i), dtype in zip(k.refs, k.program.dtypes, strict=True)
                       if kind == "in"}
        self.tasks = Tasks([k.program for k in plan.kernels], plan.phases)

    def bind(self, inputs: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> np.ndarray:
        """The addresses of all arrays: inputs, outs, temporaries."""
        if max(self.dtypes, default=-1) >= len(inputs):
            raise TypeError(f"a plan reads input {max(self.dtypes)}, and got {len(inputs)} arrays")
        for i in self.dtypes:
            self.check(i, inputs[i])
        self.addresses[:self.inputs + self.outs] = [*map(address, inputs), *map(address, outs)]
        return self.addresses

    def check(self, i: int, array: np.ndarray) -> None:
        dtype = self.dtypes[i]
        if array.dtype != dtype.np or not array.flags.c_contiguous:
            raise TypeError(f"input {i} of a plan must be a C-contiguous array of {dtype}, "
                            f"got one of {array.dtype}")

    def run(self, addresses: np.ndarray, log: np.ndarray | None = None) -> None:
        table = addresses[self.places]
        self.tasks(address(table), log)


class Repeated:
    """A plan's run of which most arrays are the same every time: their addresses are known."""

    def __init__(self, plan: Plan, inputs: Sequence[np.ndarray], outs: Mapping[int, np.ndarray],
                 fixed: Mapping[int, np.ndarray]) -> None:
        """The `fixed` ones of the inputs and all of `outs`, by number, are those of every run."""
        nothing = np.empty(0, np.uint8)
        self.plan, self.kept = plan, [*fixed.values(), *outs.values()]
        self.like = [np.broadcast_to(a.dtype.type(), a.shape) for a in inputs]  # of their sizes
        with plan._lock:
            self.launch = plan.launch(len(inputs))
            bound = self.launch.bind(inputs, [outs.get(k, nothing) for k in range(len(plan.outs))])
            self.addresses = bound.copy()

    def run(self, inputs: Mapping[int, np.ndarray], outs: Mapping[int, np.ndarray]) -> None:
        """Run with these inputs and outs, by number; the others are those of before. Raises
        TypeError as `Plan.run` does."""
        for i, array in inputs.items():
            if i in self.launch.dtypes:
                self.launch.check(i, array)
            self.addresses[i] = address(array)
        for k, array in outs.items():
            self.addresses[self.launch.inputs + k] = address(array)
        with self.plan._lock:
            start = time.perf_counter()
            self.plan._run_all(self.launch, self.addresses, self.like)
            self.plan._note(start)


def _timed(kernel: Kernel, args: list[np.ndarray], debug: int, run: Callable[[], None]) -> None:
    """Run a kernel and print its time; from level 3 on once more, warm."""
    moved = sum(a.nbytes for a in args)
    for label in ("", " warm")[:2 if debug >= 3 else 1]:
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
        print(f"    {kernel.name + label:<32} {seconds * 1e3:9.3f} ms "
              f"{kernel.flops / seconds / 1e9:8.2f} GFLOP/s {moved / seconds / 1e9:8.2f} GB/s",
              file=sys.stderr)
