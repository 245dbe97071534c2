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
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from uopc import config, profile
from uopc.atomic import atomic, change
from uopc.composite import array_buffer, base_buffer, buffer_data, is_contiguous_buffer
from uopc.counters import counters
from uopc.kernelize import run_plan
from uopc.locks import rlock
from uopc.memory import address
from uopc.recording import Recording, current, note_assignment
from uopc.replay import Repetition, State
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp

Key = tuple
NUMBERS = (bool, int, float)
MAX_PROGRAMS = 16  # of one function; beyond, the oldest goes


class jit:
    """Record what `function` computes, and replay it.

    Arguments may be Tensors, Python numbers, strings, None, other objects (told apart by identity),
    and lists, tuples and dicts of them; the result Tensors, None, or lists, tuples and dicts of
    them, else TypeError. A number is part of the graph: one that differs from the recorded call's
    raises ValueError, naming it; pass what changes as a Tensor. RuntimeError where a value is read
    in the function (`numpy`, `item`), or a gradient is left in `.grad` of a tensor that the
    function does not assign. What is plain Python in it (an optimizer's betas, whether a model is
    training) is as it was when recorded; an optimizer's `lr` and its count of steps go on. A call
    that raises, KeyboardInterrupt included, changes no tensor, gradient, count or random state.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.programs: dict[Key, Program | None] = {}  # None: not recorded yet
        # by the call before: tensors from outside, and the places of arguments
        self.assigned: dict[Key, tuple[list[Tensor], set[int]]] = {}
        self.lock = rlock()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @atomic
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:  # part of a function that is recorded
            return self.function(*args, **kwargs)
        start = time.perf_counter()
        tensors: dict[int, tuple[int, Tensor]] = {}
        numbers: list[Any] = []
        key = len(args), *[_outline(value, tensors, numbers) for value in args], \
            *[(name, _outline(value, tensors, numbers)) for name, value in kwargs.items()]
        given = [t for _, t in tensors.values()]
        with self.lock:
            program = self.programs.get(key)
            values = [] if program is None else program.values  # which go when it becomes stale
            if program is not None and not program.is_stale:
                if numbers:
                    program.check_numbers(numbers, args, kwargs)
                result = program.replay(given, values)
                if profile.timeline() is not None:
                    profile.note("replay", start, function=program.name)
                return result
            if key in self.programs:
                return self._record(key, args, kwargs, numbers)
            for _ in _leaves_of(args, kwargs):  # which raises for what must not be among them
                pass
            with Recording(strict=False) as watching:
                result = self.function(*args, **kwargs)
            self._remember(key, None, watching, given)
            while len(self.programs) > MAX_PROGRAMS:
                oldest = next(iter(self.programs))
                del self.programs[oldest], self.assigned[oldest]
            return result

    def _remember(self, key: Key, program: Program | None, recording: Recording,
                  arguments: list[Tensor]) -> None:
        places = {id(t): k for k, t in enumerate(arguments)}
        held = [t for t, _ in recording.held.values()]
        self.assigned[key] = ([t for t in held if id(t) not in places],
                              {places[id(t)] for t in held if id(t) in places})
        self.programs[key] = program

    def _record(self, key: Key, args: tuple, kwargs: dict, numbers: list) -> Any:
        given: list[tuple[Tensor, Tensor]] = []  # the caller's, and with memory of its own

        def distinct(t: Tensor) -> Tensor:
            same = next((inner for outer, inner in given if outer is t), None)
            if same is None:
                same = Tensor._of(array_buffer(buffer_data(t._computed())))
                same.requires_grad = t.requires_grad
                given.append((t, same))
            return same

        inner_args, inner_kwargs = _mapped((args, kwargs), distinct)
        states, places = self.assigned[key]
        for t in states:  # a state's node is no other tensor's
            if is_contiguous_buffer(t.uop):
                t._become(buffer_data(t.uop))
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
            t.uop = t._computed()
        self._check(recording, given, places)
        in_memory = all(is_contiguous_buffer(u) for _, u in recording.held.values())
        known = {id(t) for t in (*states, *inputs)} >= {id(t) for t in held}
        program = None  # while it needs what was not computed before, or assigns what it did not
        if in_memory and recording.is_fit and known:
            program = Program(self.function.__qualname__, recording, inputs, before, numbers,
                               result)
        for outer, inner in given:
            if id(inner) in recording.held:
                note_assignment(outer, outer.uop)
                outer.uop = inner.uop
        for t in held:
            t.grad = None
        self._remember(key, program, recording, inputs)
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


class Program:
    """Recorded plans, with a slot for every array that goes into one or comes out."""

    def __init__(self, name: str, recording: Recording, given: list[Tensor], before: list[UOp],
                 numbers: list[Any], result: Any) -> None:
        self.name, self.numbers = name, numbers
        self.is_stale = False
        self.slots: dict[UOp, int] = {}
        self.given = [self.slot(u) for u in before]
        held = list(recording.held.values())
        positions = {id(t): k for k, t in enumerate(given)}
        self.states = [State(self, t, self.slot(u)) for t, u in held if id(t) not in positions]
        self.turn = 0
        self.repeated: list[Repetition | None] = [None, None]  # by turn
        self.results: list[np.ndarray | None] = []  # of the last call: memory to be used again
        self.running = rlock()  # held while `repeated` is run or a state is given away
        self.actions = [(None if u is None else self.slot(u), make)
                        for u, make in recording.actions]
        fresh = set(self.slots)
        self.runs, made = [], set()
        for plan, inputs, results in recording.runs:
            places = plan.results if plan else [(("in", 0), results[0].shape)]
            self.runs.append((plan, [self.slot(u) for u in inputs],
                              [(self.slot(u), *place) for u, place in
                               zip(results, places, strict=True)]))
            read = set(map(base_buffer, inputs))
            made.update(b for b in map(base_buffer, results) if b not in read)
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
        self.kept: list[np.ndarray] = []  # what was computed for all calls
        self.is_steady = self._is_steady()
        if self.is_steady:
            self._become_steady()
        for u in {*recording.nodes, *self.slots} - fresh - made:
            if u.op is not Ops.CONST:
                programs = u.__dict__.setdefault("recorded_in", {})
                programs[id(self)] = weakref.ref(self, partial(programs.pop, id(self)))
        self.slots = {}  # the nodes hold arrays

    def _is_steady(self) -> bool:
        """Whether all is done by one plan, what must be looked at is known before it runs, and
        no result is what a state was."""
        if len(self.runs) != 1 or self.runs[0][0] is None:
            return False
        _, inputs, results = self.runs[0]
        states = {state.before for state in self.states}
        computed = states | {slot for slot, _, _ in results}
        return computed.isdisjoint(slot for slot, _ in self.checks) and states.isdisjoint(
            inputs[i] for _, (kind, i), _ in results if kind == "in")

    def _become_steady(self) -> None:
        """Compute what is the same in every call, and tell the states whose new value may be
        written over the old one."""
        plan, inputs, results = self.runs[0]
        constant = [i for i, slot in enumerate(inputs) if self.values[slot] is not None]
        self.plan = plan
        if (parts := plan.split(set(constant))) is not None:
            once, self.plan = parts
            self.kept = once.run([self.values[inputs[i]] for i in constant])
            plan.forget()
        uses, out_of = Counter(inputs), {slot: k for slot, (kind, k), _ in results if kind == "out"}
        for state in self.states:
            state.in_place = state.alone and uses[state.before] == 1 and \
                (inputs.index(state.before), out_of.get(state.after)) in self.plan.updates

    def slot(self, u: UOp) -> int:
        return self.slots.setdefault(base_buffer(u), len(self.slots))

    def make_stale(self) -> None:
        """Never to be replayed again: keep no array of the recording alive."""
        self.is_stale, self.values, self.repeated = True, [], [None, None]
        self.kept, self.results = [], []

    def check_numbers(self, numbers: list[Any], args: tuple, kwargs: dict) -> None:
        for k, (now, then) in enumerate(zip(numbers, self.numbers, strict=True)):
            if now is not then and repr(now) != repr(then):  # which tells -0.0 from 0.0
                path = [path for path, v in _leaves_of(args, kwargs) if isinstance(v, NUMBERS)][k]
                raise ValueError(
                    f"{self.name}: {path} is {now!r}, and was {then!r} when the function was "
                    "recorded; a number is part of the graph. Pass what changes as a Tensor")

    def replay(self, given: list[Tensor], constant: list[np.ndarray | None]) -> Any:
        """`constant` has the values that stay, by slot."""
        start, debug = time.perf_counter(), config.debug()
        values = constant.copy()
        for slot, t in zip(self.given, given, strict=True):
            values[slot] = t._data()
        with self.running:
            repeated = self.repeated[self.turn] or self.prepare(constant) if debug < 2 else None
            if repeated is not None:
                repeated(values, given, start, debug)
        if repeated is None:
            self.run_anew(values, start)
            self.assign_arguments(values, given)
        return _mapped(self.result, lambda p: p.tensor(values), _Place)

    def assign_arguments(self, values: list[np.ndarray | None], given: Sequence[Tensor]) -> None:
        for position, slot, shape in self.assigned:
            given[position]._become(values[slot].reshape(shape))

    def prepare(self, constant: list[np.ndarray | None]) -> Repetition | None:
        """What runs with the states where they are now, if nobody else has seen them and there
        is where to put their new values."""
        kept = self.kept
        if self.is_stale or not self.is_steady or not all(
                state.is_private and state.has_place() for state in self.states):
            return None
        self.repeated[self.turn] = Repetition(self, constant, kept)
        return self.repeated[self.turn]

    def run_anew(self, values: list[np.ndarray | None], start: float) -> None:
        """The same whatever has become of the states."""
        for state in self.states:
            values[state.before] = state.array()
        for slot, make in self.actions:
            made = make()
            if slot is not None:
                values[slot] = made
        profile.note("schedule", start)
        self.run(values)
        for slot, check in self.checks:
            check(values[slot])
        with self.running:
            for state in self.states:
                if state.alone:
                    state.arrays[self.turn ^ 1] = values[state.after].reshape(state.shape)
            # from here on the states that are private have their new values
            change(self, turn=self.turn ^ 1, repeated=[None, None])
            left = [s for s in self.states if not s.is_private and not s.keep()]
        for state in left:
            state.tensor._become(values[state.after].reshape(state.shape))

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


@dataclass(frozen=True)
class _Place:
    """Where a result lies."""

    slot: int
    shape: tuple[int, ...]

    def tensor(self, values: list[np.ndarray | None]) -> Tensor:
        array = values[self.slot]
        return Tensor._of_array(array if array.shape == self.shape else array.reshape(self.shape))


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


def _leaves_of(args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in [*enumerate(args), *kwargs.items()]:
        yield from _leaves(value, f"argument {name}")


def _outline(tree: Any, tensors: dict[int, tuple[int, Tensor]], numbers: list[Any]) -> Key:
    """What must be equal for a recorded program to serve: all but the values of tensors and
    numbers, which are collected. Tensors that are the same one must be so again."""
    if isinstance(tree, Tensor):
        place, _ = tensors.setdefault(id(tree), (len(tensors), tree))
        known = tree._uop or tree  # a node is asked more quickly
        return known.shape, known.dtype, place
    if isinstance(tree, (list, tuple)):
        return type(tree), *[_outline(value, tensors, numbers) for value in tree]
    if isinstance(tree, dict):
        return dict, *[(name, _outline(value, tensors, numbers)) for name, value in tree.items()]
    if isinstance(tree, NUMBERS):
        numbers.append(tree)
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
