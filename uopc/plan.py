"""A Plan: the kernels of one graph, in order, with the storage they pass values through.

It holds no UOps and no user's arrays, so it may be kept as long as one likes: arrays come in with
`run` and go out as its result (a `Repeated` run does hold its own). Temporaries belong to the plan
and are used again by every run.
"""
from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from uopc import profile
from uopc.counters import counters
from uopc.dtype import DType
from uopc.liveness import place
from uopc.locks import cached_property, lock
from uopc.memory import address, empty_array
from uopc.phases import Ref, phases
from uopc.runtime import Program, Tasks
from uopc.say import say

Storage = tuple[DType, int]  # dtype, number of elements
MIN_KEPT = 1 << 16  # bytes that are worth keeping from run to run
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

    def taking(self, other: Mapping[Ref, Ref]) -> Kernel:
        """The same with other arrays in the place of some."""
        return replace(self, refs=[other.get(ref, ref) for ref in self.refs])


@dataclass
class Plan:
    """`kernels` in order; `ins` are the arrays that they work on, `temps` and `outs` what they
    need and give besides.

    `results` tells for each root where it lies (an input that a root aliases, or an out) and its
    shape. `over` has pairs of an input and an out for which the kernel that writes the out needs of
    the input, at each place, only what lies there.
    """

    kernels: list[Kernel]
    ins: list[Storage]
    temps: list[Storage]
    outs: list[Storage]
    results: list[tuple[Ref, tuple[int, ...]]]
    over: list[tuple[int, int]] = field(default_factory=list)
    _storage: list[np.ndarray] | None = field(default=None, repr=False)
    _launch: _Launch | None = field(default=None, repr=False)
    _lock: Lock = field(default_factory=lock, repr=False)

    @cached_property
    def phases(self) -> list[list[int]]:
        """Numbers of the kernels that may run at the same time, in order."""
        return phases([(k.refs[:len(k.refs) - k.outputs], k.refs[len(k.refs) - k.outputs:])
                       for k in self.kernels])

    @cached_property
    def updates(self) -> set[tuple[int, int]]:
        """(input, out) pairs that may be one array, in which the plan then writes in place: those
        of `over` of which no kernel needs the input once the out is being written."""
        phase = {k: p for p, kernels in enumerate(self.phases) for k in kernels}
        users: dict[Ref, list[int]] = {}
        for k, kernel in enumerate(self.kernels):
            for ref in kernel.refs:
                users.setdefault(ref, []).append(k)
        writer = {ref: k for k, kernel in enumerate(self.kernels)
                  for ref in kernel.refs[len(kernel.refs) - kernel.outputs:]}
        return {(i, out) for i, out in self.over
                if all(phase[k] < phase[writer["out", out]] for k in users.get(("in", i), [])
                       if k != writer["out", out])}

    @cached_property
    def order(self) -> list[int]:
        """In which the kernels are started."""
        return [k for phase in self.phases for k in phase]

    @cached_property
    def number(self) -> int:
        """By which a timeline names it."""
        return next(_numbers)

    def split(self, constant: Set[int]) -> tuple[Plan, Plan] | None:
        """(a plan of what depends on these inputs alone, which it takes in their order; one of the
        rest, which takes what the first gives behind its own inputs). None if that is little."""
        known: set[Ref] = {("in", i) for i in constant}
        once: list[int] = []
        for k, kernel in enumerate(self.kernels):
            first = len(kernel.refs) - kernel.outputs  # of those that it writes
            read, written = kernel.refs[:first], kernel.refs[first:]
            if known.issuperset(read) and all(kind == "tmp" for kind, _ in written):
                once.append(k)
                known.update(written)
        rest = [k for k in range(len(self.kernels)) if k not in once]
        read = {ref for k in rest for ref in self.kernels[k].refs}
        passed = list(dict.fromkeys(ref for k in once for ref in self.kernels[k].refs
                                    if ref[0] == "tmp" and ref in read))
        given = [self.temps[t] for _, t in passed]
        if _bytes(given) < MIN_KEPT:
            return None
        inputs = {("in", i): ("in", n) for n, i in enumerate(sorted(constant))}
        outs = {ref: ("out", n) for n, ref in enumerate(passed)}
        more = {ref: ("in", len(self.ins) + n) for n, ref in enumerate(passed)}
        first = Plan([self.kernels[k].taking(inputs | outs) for k in once],
                     [self.ins[i] for i in sorted(constant)], self.temps, given, [])
        second = Plan([self.kernels[k].taking(more) for k in rest], [*self.ins, *given],
                      self.temps, self.outs, self.results, self.over)
        return first, second

    def forget(self) -> None:
        """Give back what it keeps between runs; another run takes it anew."""
        with self._lock:
            self._storage = self._launch = None

    def bytes_used(self, kernel: Kernel) -> int:
        """Of all arrays that a kernel reads and writes, each counted once."""
        storage = {"in": self.ins, "tmp": self.temps, "out": self.outs}
        return _bytes(storage[kind][i] for kind, i in set(kernel.refs))

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
        """Bytes of what goes in and comes out, and of the temporaries as they share memory and
        each for itself."""
        return {"inputs": _bytes(self.ins), "results": _bytes(self.outs),
                "temporaries": self._placed()[1], "temporaries unshared": _bytes(self.temps)}

    def launch(self) -> _Launch:
        """Its table of addresses belongs to whoever has the plan's lock."""
        if self._storage is None:
            self._storage = self._shared_storage()
        if self._launch is None:
            self._launch = _Launch(self, self._storage)
        return self._launch

    def run(self, inputs: Sequence[np.ndarray], debug: int = 0,
            spare: Mapping[int, np.ndarray] | None = None) -> list[np.ndarray]:
        """Run every kernel on `inputs`; returns the outs as flat arrays, new ones but for those in
        `spare`, by number. Raises TypeError for an input of a wrong dtype, size or memory layout.
        """
        if len(inputs) != len(self.ins):
            raise TypeError(f"a plan takes {len(self.ins)} arrays, got {len(inputs)}")
        for i, array in enumerate(inputs):
            self.check(i, array)
        spare = spare or {}
        outs = [spare[k] if k in spare else empty_array((size,), dtype.np)
                for k, (dtype, size) in enumerate(self.outs)]
        with self._lock:  # two threads may run one plan, but not on the same temporaries
            if self._storage is None:
                self._storage = self._shared_storage()
            start = time.perf_counter()
            if debug >= 2 or len(self.kernels) < 2:
                arrays = {"in": inputs, "tmp": self._storage, "out": outs}
                for k in self.order:
                    kernel = self.kernels[k]
                    args = [arrays[kind][i] for kind, i in kernel.refs]
                    run = functools.partial(self._run_one, k, args)
                    _timed(kernel, args, debug, run) if debug >= 2 else run()
            else:
                launch = self.launch()
                launch.bind(inputs, outs)
                launch.run(self)
            self.note(start)
        return outs

    def check(self, i: int, array: np.ndarray) -> None:
        """Raises TypeError for an array that cannot be the i-th input."""
        dtype, size = self.ins[i]
        if array.dtype != dtype.np or array.size != size or not array.flags.c_contiguous:
            raise TypeError(f"input {i} of a plan must be a C-contiguous array of {size} {dtype}, "
                            f"got {array.size} {array.dtype}")

    def _run_one(self, k: int, args: list[np.ndarray]) -> None:
        program, timeline = self.kernels[k].program, profile.timeline()
        if timeline is None:
            program(*args)
        else:
            log = program.new_log()
            program(*args, log=log)
            timeline.ran_kernels(self, [k], log)

    def note(self, start: float) -> None:
        """A run that began at `start` is done."""
        counters.run_time += time.perf_counter() - start
        counters.kernels += len(self.kernels)
        if profile.timeline() is not None:
            profile.note("run plan", start, plan=self.number, kernels=len(self.kernels))


class _Launch:
    """All kernels of a plan as one native call, with a table of their arrays' addresses: first all
    arrays once, inputs, outs and temporaries, then those of each kernel as it takes them."""

    def __init__(self, plan: Plan, temporary: Sequence[np.ndarray]) -> None:
        self.temporary = temporary  # the addresses are theirs
        self.programs = [k.program for k in plan.kernels]  # not the plan, which has this
        self.first = {"in": 0, "out": len(plan.ins), "tmp": len(plan.ins) + len(plan.outs)}
        self.addresses = np.zeros(self.first["tmp"] + len(temporary), np.uintp)
        self.addresses[self.first["tmp"]:] = [address(a) for a in temporary]
        self.refs = [ref for k in plan.kernels for ref in k.refs]
        self.places = np.array([self.first[kind] + i for kind, i in self.refs], np.intp)
        self.table = np.zeros(len(self.refs), np.uintp)
        self.tasks = Tasks(self.programs, plan.phases)
        self.scratch = self.tasks.new_scratch()

    def bind(self, inputs: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        self.addresses[:self.first["tmp"]] = [*map(address, inputs), *map(address, outs)]
        np.take(self.addresses, self.places, out=self.table, mode="clip")

    def run(self, plan: Plan) -> None:
        timeline = profile.timeline()
        if timeline is None:
            self.tasks(address(self.table), None, self.scratch)
        else:
            log = self.tasks.new_log()
            self.tasks(address(self.table), log, self.scratch)
            timeline.ran_kernels(plan, plan.order, log)


class Repeated(_Launch):
    """A plan's run of which most arrays are the same every time: whoever makes its `call` puts the
    others' addresses into `table` before."""

    def __init__(self, plan: Plan, fixed: Mapping[Ref, np.ndarray]) -> None:
        """`fixed` are the inputs and outs of every run. Raises TypeError as `Plan.run` does."""
        for (kind, i), array in fixed.items():
            if kind == "in":
                plan.check(i, array)
        with plan._lock:
            temporary = plan.launch().temporary
        super().__init__(plan, temporary)
        self.fixed = fixed
        for (kind, i), array in fixed.items():
            self.addresses[self.first[kind] + i] = address(array)
        np.take(self.addresses, self.places, out=self.table, mode="clip")

    def call(self, log: np.ndarray | None = None) -> tuple[Callable[..., None], tuple]:
        """The native function that runs it, and its arguments."""
        return self.tasks.launch, self.tasks.arguments(address(self.table), log, self.scratch)

    def where(self, refs: Sequence[Ref]) -> np.ndarray | int:
        """The index in the table of the address of an array that these mean."""
        places = np.flatnonzero([ref in refs for ref in self.refs])
        return int(places[0]) if len(places) == 1 else places


def _bytes(storage: Iterable[Storage]) -> int:
    return sum(dtype.size * size for dtype, size in storage)


def _timed(kernel: Kernel, args: list[np.ndarray], debug: int, run: Callable[[], None]) -> None:
    """Run a kernel and print its time; from level 3 on once more, warm."""
    moved = sum(a.nbytes for a in args)
    for label in ("", " warm")[:2 if debug >= 3 else 1]:
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
        say(f"    {kernel.name + label:<32} {seconds * 1e3:9.3f} ms "
            f"{kernel.flops / seconds / 1e9:8.2f} GFLOP/s {moved / seconds / 1e9:8.2f} GB/s")
