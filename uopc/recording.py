"""What a function does while `jit` watches it: the plans it runs, the tensors it assigns, and the
data that it makes anew in every call.

The rest of uopc reports here; it costs nothing while nobody records.
"""
from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uopc.atomic import change
from uopc.composite import array_buffer
from uopc.uop import Ops, UOp

assignments = itertools.count()  # each `assign` has a number


@dataclass
class Recording:
    """In the order in which things happened.

    actions  (the BUFFER that gets what is made, or None, the function that makes it)
    runs     (the Plan, or None for a plain copy; its input BUFFERs; the BUFFERs of its results)
    held     for each assigned tensor, by id: the tensor and the node that it was before
    is_fit   False when a plan computes what was assigned, but not computed, before the recording
    nodes    all that the plans were asked for: an assignment to one of them makes them stale
    graded   the tensors that got gradients, by id
    checks   (a BUFFER, a function that raises for bad values in it)
    strict   whether to read a value is an error
    """

    actions: list[tuple[UOp | None, Callable[[], Any]]] = field(default_factory=list)
    runs: list[tuple[Any, list[UOp], list[UOp]]] = field(default_factory=list)
    held: dict[int, tuple[Any, UOp]] = field(default_factory=dict)
    is_fit: bool = True
    nodes: set[UOp] = field(default_factory=set)
    graded: dict[int, Any] = field(default_factory=dict)
    checks: list[tuple[UOp, Callable[[np.ndarray], None]]] = field(default_factory=list)
    strict: bool = True
    first_assignment: int = field(default_factory=lambda: next(assignments))

    def __enter__(self) -> Recording:
        if current() is not None:
            raise RuntimeError("a function is being recorded already")
        change(_state, recording=self)
        return self

    def __exit__(self, *_: object) -> None:
        change(_state, recording=None)


class _State(threading.local):
    recording: Recording | None = None


_state = _State()


def current() -> Recording | None:
    """The recording that goes on in this thread."""
    return _state.recording


def made_by(make: Callable[[], np.ndarray]) -> UOp:
    """A BUFFER of data that is another in every call: a learning rate, a random number's key."""
    buffer = array_buffer(make())
    if (recording := current()) is not None:
        recording.actions.append((buffer, make))
    return buffer


def do(action: Callable[[], Any]) -> None:
    """Change the state of an object in Python, by `change`, in this call and in every replay."""
    action()
    if (recording := current()) is not None:
        recording.actions.append((None, action))


def note_roots(wanted: list[UOp], roots: list[UOp]) -> None:
    """What is to be computed, and what of it is left when known values are put in."""
    if (recording := current()) is not None:
        left = UOp(Ops.SINK, tuple(roots)).toposort()
        recording.nodes.update(UOp(Ops.SINK, tuple(wanted)).toposort(), left)
        recording.is_fit &= all(u.arg[1] > recording.first_assignment for u in left
                                if u.op is Ops.STAGE and isinstance(u.arg, tuple))


def note_gradient(tensor: Any) -> None:
    if (recording := current()) is not None:
        recording.graded[id(tensor)] = tensor


def note_check(values: UOp, check: Callable[[np.ndarray], None]) -> None:
    """Data that must be looked at in every call."""
    if (recording := current()) is not None:
        recording.checks.append((values, check))


def note_run(plan: Any, inputs: list[UOp], results: list[UOp]) -> None:
    if (recording := current()) is not None:
        recording.runs.append((plan, inputs, results))


def note_assignment(tensor: Any, before: UOp) -> None:
    """Called before a tensor gets a new value."""
    recording = current()
    if recording is not None:
        recording.held.setdefault(id(tensor), (tensor, before))
    note_change(before)


def note_change(before: UOp) -> None:
    """Called when a tensor has another node than this one from now on."""
    for known in list(before.__dict__.get("recorded_in", {}).values()):
        if (program := known()) is not None:
            program.make_stale()  # it took this value for one that never changes
