"""What a recorded program does in each call: its steady run, and the states that pass from call to
call.

In: the program and its plan. Out: a `Repetition`, for which only what changes is looked at, and for
each tensor that every call assigns a `State`, which holds the tensor's value between calls.
"""
from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from uopc import profile
from uopc.atomic import change, commit, fields
from uopc.counters import counters
from uopc.kernelize import say_run
from uopc.memory import MIN_POOLED, address, empty_array, unshared
from uopc.plan import Repeated
from uopc.tensor import Tensor

if TYPE_CHECKING:
    from uopc.jit import Program

MAX_KEPT = 1 << 20  # bytes of a result whose memory is kept for the next call


class Repetition:
    """The one run of a program whose states lie where they lay two calls ago, or in the call
    before. `constant` has the values that stay, by slot; `kept` is what was computed from them."""

    def __init__(self, program: Program, constant: Sequence[np.ndarray | None],
                 kept: Sequence[np.ndarray]) -> None:
        self.program, self.plan = program, program.plan
        _, inputs, results = program.runs[0]
        source = {("in", i): slot for i, slot in enumerate(inputs)}
        # what an action makes is small and goes into many kernels: it is put where they look
        made = {slot: np.empty(self.plan.ins[i][1], self.plan.ins[i][0].np)
                for slot, _ in program.actions for i, s in enumerate(inputs) if s == slot}
        self.actions = [(slot, make, made.get(slot)) for slot, make in program.actions]
        fixed = {**made, **{s.before: s.array() for s in program.states}}
        after = {s.after: s.arrays[program.turn ^ 1].reshape(-1) for s in program.states}
        known = {ref: fixed.get(slot, constant[slot]) for ref, slot in source.items()}
        known.update((ref, after[slot]) for slot, ref, _ in results if slot in after)
        known.update((("in", len(inputs) + k), array) for k, array in enumerate(kept))
        self.run = Repeated(self.plan, {ref: a for ref, a in known.items() if a is not None})
        self.call = self.run.call()
        # each slot of what is another array in every call, with its places in the table
        self.given = [(slot, self.run.where([r for r, s in source.items() if s == slot]))
                      for slot in program.given]
        # slot, shape, dtype, places, and which of the results is kept for the next call
        self.fresh: list[tuple] = []
        kept_results = 0
        self.views = []  # slot, the slot of the same array, shape
        for slot, ref, shape in results:
            if ref in source:
                self.views.append((slot, source[ref], shape))
            elif slot not in after:
                source[ref] = slot
                dtype = self.plan.outs[ref[1]][0].np
                stays = MIN_POOLED <= math.prod(shape) * dtype.itemsize <= MAX_KEPT
                self.fresh.append((slot, shape, dtype, self.run.where([ref]),
                                   kept_results if stays else None))
                kept_results += stays
        program.results = self.results = program.results or [None] * kept_results

    def __call__(self, values: list[np.ndarray | None], given: Sequence[Tensor], start: float,
                 debug: int) -> None:
        """Run on the given arrays in `values`, and put there, and into the arguments that are
        assigned, what comes out."""
        program, plan, table = self.program, self.plan, self.run.table
        timeline = profile.timeline()
        for slot, check in program.checks:
            check(values[slot])
        for slot, places in self.given:
            table[places] = address(values[slot])
        for slot, make, array in self.actions:
            made = make()
            if slot is not None:
                values[slot] = made
            if array is not None:
                array[:] = made.reshape(-1)
        free = unshared(self.results) if self.results else ()
        for slot, shape, dtype, places, k in self.fresh:
            array = empty_array(shape, dtype) if k is None or not free[k] else self.results[k]
            values[slot], table[places] = array, address(array)
            if k is not None:
                self.results[k] = array
        for slot, source, shape in self.views:
            values[slot] = values[source].reshape(shape)
        program.assign_arguments(values, given)
        if timeline is not None:
            profile.note("schedule", start)
        with plan._lock:
            log = None if timeline is None else self.run.tasks.new_log()
            launch, arguments = self.call if log is None else self.run.call(log)
            started = time.perf_counter()
            # values may be updated in place: this cannot be undone, and is done as a whole
            commit(partial(launch, *arguments), partial(setattr, program, "turn", program.turn ^ 1))
            plan.note(started)
        if timeline is not None:
            timeline.ran_kernels(plan, plan.order, log)
        counters.plan_hits += 1
        if debug >= 1:
            say_run(plan, "replayed", started)


class State:
    """A tensor that every call reads and assigns. Between calls its array stays here, until
    somebody asks the tensor for its value; so the array of the call before may be written again.

    `arrays[program.turn]` is what it holds now, the other one what it held before, or the same if
    values are updated in place.
    """

    def __init__(self, program: Program, tensor: Tensor, before: int) -> None:
        self.program, self.tensor, self.before, self.after = program, tensor, before, before
        self.shape = tensor.shape  # to ask the tensor later would be to ask for its value
        self.alone = False  # nothing else shares the array that it gets
        self.in_place = False  # and that may be the one that it has
        self.arrays: list[np.ndarray | None] = [None, None]

    @property
    def is_private(self) -> bool:
        """Whether nobody but this has seen the array."""
        return self.tensor._holder is self

    def release(self) -> None:
        with self.program.running:
            if not self.is_private:
                return
            self.program.repeated = [None, None]
            array = self.arrays[self.program.turn]
            with fields:
                change(self.tensor, _array=array, _holder=None)
            self.arrays = [None if a is array else a for a in self.arrays]

    def spare(self) -> np.ndarray | None:
        """An array for the next value beside the one of now."""
        now, array = (self.arrays[self.program.turn ^ k] for k in (0, 1))
        return None if array is None or array is now else array.reshape(-1)

    def has_place(self) -> bool:
        """Whether there is where to put the next value, be it over the one of now."""
        if self.in_place:
            self.arrays = [self.arrays[self.program.turn]] * 2
        return self.arrays[self.program.turn ^ 1] is not None

    def array(self) -> np.ndarray:
        with self.program.running:
            if self.is_private:
                return self.arrays[self.program.turn]
        self.arrays = [None, None]
        return self.tensor._data()

    def keep(self) -> bool:
        """After the program's turn: hold the new value of the tensor, whose old one somebody has.
        Returns whether that can be."""
        if not self.alone or not self.tensor._give(self):
            return False
        self.arrays[self.program.turn ^ 1] = None
        return True
