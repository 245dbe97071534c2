"""A call that raises changes nothing, be it for a value that is refused or for Ctrl-C.

    @atomic
    def step(self) -> None: ...

What a tensor's value and its gradient are, an optimizer's count of steps and the state of the
random numbers change by `change` alone. It writes down first, for each atomic call under way in
this thread, what was there; a call that raises puts that back. Python looks for signals between
its own instructions, not inside a function written in C: what must not be cut in two is one such
call.
"""
from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import repeat
from operator import methodcaller
from typing import Any, ParamSpec, TypeVar

from uopc.locks import rlock

P = ParamSpec("P")
R = TypeVar("R")

fields = rlock()  # around changes of what a tensor's value is
_run = methodcaller("__call__")


class _Journal:
    """What was there before an atomic call's changes; `outer` is that of the call around it."""

    def __init__(self, outer: _Journal | None) -> None:
        self.outer = outer
        self.before: dict[tuple[int, str], partial] = {}  # the first note of an attribute counts

    def note(self, owner: Any, name: str, value: Any) -> None:
        self.before.setdefault((id(owner), name), partial(setattr, owner, name, value))

    def undo(self) -> None:
        with fields:
            deque(map(_run, self.before.values()), 0)


class _Open(threading.local):
    journal: _Journal | None = None  # of the innermost atomic call


_open = _Open()


def change(owner: Any, **values: Any) -> None:
    """Set attributes of `owner`, all or none; an atomic call around it that raises undoes it."""
    before = {name: getattr(owner, name) for name in values}  # nothing is freed on the way
    journal = _open.journal
    while journal is not None:
        for name, value in before.items():
            journal.note(owner, name, value)
        journal = journal.outer
    deque(map(setattr, repeat(owner), values.keys(), values.values()), 0)


def commit(*calls: Callable[[], object]) -> None:
    """Run functions written in C, and from there on let the atomic call be done; all or none. What
    such functions do cannot be undone, so the atomic calls around it are done as far, too."""
    journal, ends = _open.journal, []
    while journal is not None:
        ends.append(journal.before.clear)
        journal = journal.outer if calls else None
    deque(map(_run, [*calls, *ends]), 0)


def atomic(function: Callable[P, R]) -> Callable[P, R]:
    """Whatever the function raises, at whatever moment: its changes are undone then."""

    @functools.wraps(function)
    def whole(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _open.journal
        journal = _Journal(outer)
        try:
            try:
                _open.journal = journal
                result = function(*args, **kwargs)
                commit()
            except BaseException:
                journal.undo()
                raise
            finally:
                _open.journal = outer
        except BaseException:  # again, should the undoing have been interrupted
            journal.undo()
            _open.journal = outer
            raise
        return result

    return whole
