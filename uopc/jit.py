"""`@jit`: a function's plans, recorded once and replayed on new inputs, without building a graph.

    @jit
    def step(x, y):
        loss = model.loss(x, y)
        ...
        return loss

The first call runs as it is, so that all that is lazy gets computed; the second is recorded; from
then on the recorded plans run on the new arguments, on what the assigned tensors hold, and on fresh
random numbers and rates. Other shapes or dtypes are recorded anew.
"""
from __future__ import annotations

import functools
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from uopc import config, profile
from uopc.composite import base_buffer, buffer_data, is_contiguous_buffer, new_buffer
from uopc.counters import counters
from uopc.kernelize import run_plan, run_repeated
from uopc.memory import address, empty_array
from uopc.plan import Repeated
from uopc.recording import Recording, current, note_assignment
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp

Key = tuple
MAX_PROGRAMS = 16  # of one function; beyond, the oldest goes


class jit:
    """Record what `function` computes, and replay it.

    Arguments may be Tensors, Python numbers, strings, None, other objects (told apart by identity),
    and lists, tuples and dicts of them; the result Tensors, None, or lists, tuples and dicts of
    them, else TypeError. A number is part of the graph: one that differs from the recorded call's
    raises ValueError, naming it; pass what changes as a Tensor. RuntimeError where a value is read
    in the function (`numpy`, `item`), or a gradient is left in `.grad` of a tensor that the
    function does not assign. What is plain Python in it (an optimizer's betas, whether a model is
    training) is as it was when recorded; an optimizer's `lr` and its count of steps go on.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.programs: dict[Key, _Program | None] = {}  # None: not recorded yet
        # by the call before: tensors from outside, and the places of arguments
        self.assigned: dict[Key, tuple[list[Tensor], set[int]]] = {}
        self.lock = threading.RLock()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:  # part of a function that is recorded
            return self.function(*args, **kwargs)
        start = time.perf_counter()
        leaves = [leaf for name, value in [*enumerate(args), *kwargs.items()]
                  for leaf in _leaves(value, f"argument {name}")]
        tensors = list({id(v): v for _, v in leaves if isinstance(v, Tensor)}.values())
        numbers = [(path, v) for path, v in leaves if isinstance(v, (bool, int, float))]
        key = _outline((args, kwargs), {id(t): k for k, t in enumerate(tensors)})
        with self.lock:
            program = self.programs.get(key)
            if program is not None and not program.is_stale:
                program.check_numbers(self.function.__qualname__, numbers)
                result = program.replay(tensors)
                profile.note("replay", start, function=self.function.__qualname__)
                return result
            if key in self.programs:
                return self._record(key, args, kwargs, numbers)
            with Recording(strict=False) as watching:
                result = self.function(*args, **kwargs)
            self._remember(key, None, watching, tensors)
            while len(self.programs) > MAX_PROGRAMS:
                oldest = next(iter(self.programs))
                del self.programs[oldest], self.assigned[oldest]
            return result

    def _remember(self, key: Key, program: _Program | None, recording: Recording,
                  arguments: list[Tensor]) -> None:
        places = {id(t): k for k, t in enumerate(arguments)}
        held = [t for t, _ in recording.held.values()]
        self.programs[key] = program
        self.assigned[key] = ([t for t in held if id(t) not in places],
                              {places[id(t)] for t in held if id(t) in places})

    def _record(self, key: Key, args: tuple, kwargs: dict, numbers: list) -> Any:
        given: list[tuple[Tensor, Tensor]] = []  # the caller's, and with memory of its own

        def distinct(t: Tensor) -> Tensor:
            same = next((inner for outer, inner in given if outer is t), None)
            if same is None:
                same = Tensor._of(new_buffer(buffer_data(t._computed())))
                same.requires_grad = t.requires_grad
                given.append((t, same))
            return same

        inner_args, inner_kwargs = _mapped((args, kwargs), distinct)
        states, places = self.assigned[key]
        for t in states:  # a state's node is no other tensor's
            if is_contiguous_buffer(t.uop):
                _set(t, new_buffer(buffer_data(t.uop)))
        inputs = [inner for _, inner in given]
        before = [t.uop for t in inputs]
        with Recording() as recording:
            result = self.function(*inner_args, **inner_kwargs)
            outputs = _tensors_of(result)
            held = [t for t, _ in recording.held.values()]
            lazy = [t for t in held if not is_contiguous_buffer(t.uop)]
            if outputs or lazy:
                Tensor.realize_all(*outputs, *lazy)
        for t in held:
            t.uop, t._former = t._computed(), None
        self._check(recording, given, places)
        in_memory = all(is_contiguous_buffer(u) for _, u in recording.held.values())
        known = {id(t) for t in (*states, *inputs)} >= {id(t) for t in held}
        program = None  # while it needs what was not computed before, or assigns what it did not
        if in_memory and recording.is_fit and known:
            program = _Program(recording, inputs, before, numbers, result)
        self._remember(key, program, recording, inputs)
        for outer, inner in given:
            if id(inner) in recording.held:
                note_assignment(outer, outer.uop)
                outer.uop, outer._former = inner.uop, None
        for t in held:
            t.grad = None
        return result

    def _check(self, recording: Recording, given: list[tuple[Tensor, Tensor]],
               places: set[int]) -> None:
        """`places` are those of the arguments that the call before assigned."""
        name = self.function.__qualname__
        outer = {id(t) for t, _ in given}
        now = {k for k, (_, t) in enumerate(given) if id(t) in recording.held}
        if places != now or any(k in outer for k in (*recording.held, *recording.graded)):
            raise ValueError(f"{name}: a tensor is an argument, and the function also assigns or "
                             "differentiates it by another way (an optimizer's parameter?); do "
                             "not pass it")
        left = [t for k, t in recording.graded.items()
                if k not in recording.held and t.grad is not None]
        if left:
            raise RuntimeError(f"{name} leaves a gradient in .grad of a tensor of shape "
                               f"{left[0].shape} that it does not assign; replays would not. Take "
                               "the optimizer's step in it, or return the gradient")


def _tensors_of(result: Any) -> list[Tensor]:
    """The tensors of a result. Raises TypeError for what is none."""
    tensors = []
    for path, value in _leaves(result, "result"):
        if isinstance(value, Tensor):
            tensors.append(value)
        elif value is not None:
            raise TypeError(f"a jitted function must give tensors, {path} is {value!r}: replays "
                            "would give it again and again")
    return tensors


class _Program:
    """Recorded plans, with a slot for every array that goes into one or comes out."""

    def __init__(self, recording: Recording, given: list[Tensor], before: list[UOp],
                 numbers: list[tuple[str, Any]], result: Any) -> None:
        self.is_stale = False
        self.numbers = numbers
        self.slots: dict[UOp, int] = {}
        self.given = [self.slot(u) for u in before]
        held = list(recording.held.values())
        positions = {id(t): k for k, t in enumerate(given)}
        self.states = [_State(self, t, self.slot(u)) for t, u in held if id(t) not in positions]
        self.held = [(s.tensor, s.value) for s in self.states]
        self.turn = 0
        self.repeated: list[_Repeated | None] = [None, None]  # by turn
        self.actions = [(None if u is None else self.slot(u), make)
                        for u, make in recording.actions]
        fresh = set(self.slots)
        self.runs, made = [], set()
        for plan, inputs, results in recording.runs:
            places = plan.results if plan else [(("in", 0), results[0].shape)]
            self.runs.append((plan, [self.slot(u) for u in inputs],
                              [(self.slot(u), *place) for u, place in
                               zip(results, places, strict=True)]))
            made.update(map(base_buffer, results))
        self.checks = [(self.slot(u), check) for u, check in recording.checks]
        self.assigned = [(positions[id(t)], self.slot(t.uop), t.shape)
                         for t, _ in held if id(t) in positions]
        # by the memory, which may lie under several nodes
        shared = Counter(address(buffer_data(t.uop)) for t, _ in held)
        shared.update(address(buffer_data(t._computed())) for t in _tensors_of(result))
        for state, (_, u) in zip(self.states, [(t, u) for t, u in held if id(t) not in positions],
                                 strict=True):
            state.after = self.slot(state.tensor.uop)
            state.alone = shared[address(buffer_data(state.tensor.uop))] == 1 \
                and not shared[address(buffer_data(u))]
        self.result = _mapped(result, lambda t: _Place(self.slot(t._computed()), t.shape))
        self.values: list[np.ndarray | None] = []
        for u in self.slots:  # what nothing of the above gives is data that stays
            stays = u not in fresh and u not in made
            self.values.append(buffer_data(u) if stays else None)
        for u in {*recording.nodes, *self.slots} - fresh - made:
            if u.op is not Ops.CONST:
                u.__dict__.setdefault("recorded_in", weakref.WeakSet()).add(self)

    def slot(self, u: UOp) -> int:
        return self.slots.setdefault(base_buffer(u), len(self.slots))

    def make_stale(self) -> None:
        """Never to be replayed again: keep no array alive."""
        self.is_stale, self.values, self.slots, self.repeated = True, [], {}, [None, None]

    def check_numbers(self, name: str, numbers: list[tuple[str, Any]]) -> None:
        for (path, now), (_, then) in zip(numbers, self.numbers, strict=True):
            if repr(now) != repr(then):  # which tells -0.0 from 0.0
                raise ValueError(
                    f"{name}: {path} is {now!r}, and was {then!r} when the function was recorded; "
                    "a number is part of the graph. Pass what changes as a Tensor")

    def replay(self, given: list[Tensor]) -> Any:
        start = time.perf_counter()
        values = self.values.copy()
        for slot, t in zip(self.given, given, strict=True):
            values[slot] = buffer_data(base_buffer(t._computed()))
        are_private = all(tensor._held is value for tensor, value in self.held)
        repeated = self.repeated[self.turn] if are_private and config.debug() < 2 else None
        if not are_private:
            self.repeated = [None, None]
        if repeated is None:
            for state in self.states:
                values[state.before] = state.array()
        for slot, make in self.actions:
            made = make()
            if slot is not None:
                values[slot] = made
        profile.note("schedule", start)
        if repeated is not None:
            repeated(values)
            counters.plan_hits += 1
        else:
            self.run(values)
        for slot, check in self.checks:
            check(values[slot])
        buffers: dict[int, UOp] = {}

        def buffer(slot: int, shape: tuple[int, ...]) -> UOp:
            if slot not in buffers:
                buffers[slot] = new_buffer(values[slot])
            return buffers[slot] if buffers[slot].shape == shape else buffers[slot].reshape(shape)

        if repeated is None:
            for state in self.states:
                if state.alone:
                    state.arrays[self.turn ^ 1] = values[state.after].reshape(state.shape)
        self.turn ^= 1  # from here on the states that are private have their new values
        seen = [state for state in self.states if not state.is_private]
        for state in seen:
            if state.alone:
                state.keep()
            else:
                _set(state.tensor, buffer(state.after, state.shape))
        if seen:
            self.repeated = [None, None]
        if self.repeated[self.turn] is None:
            self.prepare(values)
        for position, slot, shape in self.assigned:
            _set(given[position], buffer(slot, shape))
        return _mapped(self.result, lambda p: Tensor._of(buffer(p.slot, p.shape)), _Place)

    def run(self, values: list[np.ndarray | None]) -> None:
        """Run the plans on the arrays in `values`, by slot, and put there what they give."""
        spare = {state.after: array for state in self.states
                 if (array := state.spare()) is not None}
        for plan, inputs, results in self.runs:
            arrays = [values[k] for k in inputs]
            given_outs = {k: spare.pop(slot) for slot, (kind, k), _ in results
                          if kind == "out" and slot in spare}
            outs = run_plan(plan, arrays, spare=given_outs) if plan else []
            counters.plan_hits += plan is not None
            for slot, (kind, k), shape in results:
                values[slot] = outs[k].reshape(shape) if kind == "out" else \
                    arrays[k].reshape(shape) if plan else arrays[k].copy()

    def prepare(self, values: list[np.ndarray | None]) -> None:
        """For the next call: a run that finds the states where they will be then."""
        checked = {slot for slot, _ in self.checks}
        if len(self.runs) == 1 and self.runs[0][0] is not None and \
                all(state.is_private and state.spare() is not None
                    and not checked & {state.before, state.after} for state in self.states):
            self.repeated[self.turn] = _Repeated(self, values)


class _Repeated:
    """The one run of a program whose states lie where they lay two calls ago."""

    def __init__(self, program: _Program, values: list[np.ndarray | None]) -> None:
        (self.plan, inputs, results), = program.runs
        before = {s.before: s.array() for s in program.states}
        after = {s.after: s.spare() for s in program.states}
        fixed = [before.get(slot, program.values[slot]) for slot in inputs]
        self.inputs = [(i, slot) for i, slot in enumerate(inputs) if fixed[i] is None]
        self.results = [(slot, kind, k, shape) for slot, (kind, k), shape in results
                        if slot not in after]
        spare = {k: after[slot] for slot, (kind, k), _ in results
                 if kind == "out" and slot in after}
        self.fresh = [k for k in range(len(self.plan.outs)) if k not in spare]
        arrays = [values[slot] if a is None else a for slot, a in zip(inputs, fixed, strict=True)]
        self.slots = inputs
        self.known = {i: a for i, a in enumerate(fixed) if a is not None}
        self.run = Repeated(self.plan, arrays, spare, self.known)

    def __call__(self, values: list[np.ndarray | None]) -> None:
        outs = {k: empty_array((self.plan.outs[k][1],), self.plan.outs[k][0].np)
                for k in self.fresh}
        run_repeated(self.run, {i: values[slot] for i, slot in self.inputs}, outs)
        for slot, kind, k, shape in self.results:
            array = outs[k] if kind == "out" else \
                self.known[k] if k in self.known else values[self.slots[k]]
            values[slot] = array.reshape(shape)


class _State:
    """A tensor that every call reads and assigns. Between calls its array stays here, until
    somebody asks the tensor for its graph; so the array of the call before may be written again.

    `arrays[program.turn]` is what it holds now, the other one what it held before.
    """

    def __init__(self, program: _Program, tensor: Tensor, before: int) -> None:
        self.program, self.tensor, self.before, self.after = program, tensor, before, before
        self.shape = tensor.shape  # to ask the tensor later would be to ask for its graph
        self.alone = False  # nothing else shares the array that it gets
        self.arrays: list[np.ndarray | None] = [None, None]
        self.value = self._value  # one object, to be recognized

    @property
    def is_private(self) -> bool:
        """Whether nobody but this has seen the array."""
        return self.tensor._held is self.value

    def _value(self) -> np.ndarray:
        self.program.repeated = [None, None]
        turn = self.program.turn
        array, self.arrays[turn] = self.arrays[turn], None
        return array

    def spare(self) -> np.ndarray | None:
        array = self.arrays[self.program.turn ^ 1]
        return None if array is None else array.reshape(-1)

    def array(self) -> np.ndarray:
        if self.is_private:
            return self.arrays[self.program.turn]
        self.arrays = [None, None]
        return buffer_data(base_buffer(self.tensor._computed()))

    def keep(self) -> None:
        """After the program's turn: let the tensor, whose value somebody has, hold the new one."""
        _set(self.tensor, self.tensor.uop)
        self.arrays[self.program.turn ^ 1] = None
        self.tensor._held = self.value


def _set(tensor: Tensor, u: UOp) -> None:
    note_assignment(tensor, tensor.uop)
    tensor.uop, tensor._former = u, None


@dataclass(frozen=True)
class _Place:
    """Where a result lies."""

    slot: int
    shape: tuple[int, ...]


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(where it is, value) of all that is no container. Raises TypeError for a NumPy array."""
    if isinstance(tree, (dict, list, tuple)):
        for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _leaves(value, f"{path}[{name!r}]")
    elif isinstance(tree, (np.ndarray, np.generic)):
        raise TypeError(f"{path} of a jitted function is a NumPy array: pass a Tensor")
    else:
        yield path, tree


def _mapped(tree: Any, change: Callable[[Any], Any], leaf: type = Tensor) -> Any:
    """The same containers with every leaf of a type changed."""
    if isinstance(tree, leaf):
        return change(tree)
    if isinstance(tree, dict):
        return {name: _mapped(value, change, leaf) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        values = [_mapped(value, change, leaf) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
    return tree


def _outline(tree: Any, position: dict[int, int]) -> Key:
    """What must be equal for a recorded program to serve: all but the values of tensors and
    numbers. Tensors that are the same one must be so again."""
    if isinstance(tree, dict):
        return dict, *[(name, _outline(value, position)) for name, value in tree.items()]
    if isinstance(tree, (list, tuple)):
        return type(tree), *[_outline(value, position) for value in tree]
    if isinstance(tree, Tensor):
        return tree.shape, tree.dtype, position[id(tree)]
    if isinstance(tree, (bool, int, float)):
        return (type(tree),)
    return (tree if isinstance(tree, (str, type(None))) else _Identity(tree),)


class _Identity:
    """Equal only to that of the same object, which it keeps alive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
