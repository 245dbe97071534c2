"""Locks that a forked child finds free.

A child has one thread, that which forked; what another thread of its parent held would stay held
for ever. So each lock of uopc is made here, and those that still live are made anew in a child.
They are Python's own, so they cost what those cost.

A thread that holds one of these takes only such as stand after it:

    a jitted function's → a repetition's (`running`) → a plan's → the others, of which two are held
    together only where one of them is a `destructors_lock`: an object that dies at any moment may
    take it. In a child the dead threads' objects die before anything else happens; so these locks
    belong to the forking thread during the fork.

What the other thread had half done in the child's copy of memory does no harm: tables change by
single steps of the interpreter; a plan writes its temporaries and its table of addresses in each
run before it reads them; the counters and the bytes that the pool counts may be off by what was
under way; compilations belong to the call that waits for them, which the child does not have. Only
the values that the other thread was assigning in place (by a jitted step) may be mixed of old and
new, as those of an array of NumPy's would be.
"""
from __future__ import annotations

import functools
import os
import threading
import weakref

_living: weakref.WeakSet = weakref.WeakSet()
_over_forks: list[threading.RLock] = []


def lock() -> threading.Lock:
    """A `threading.Lock`, free in a forked child."""
    made = threading.Lock()
    _living.add(made)
    return made


def rlock() -> threading.RLock:
    """A `threading.RLock`, free in a forked child."""
    made = threading.RLock()
    _living.add(made)
    return made


def destructors_lock() -> threading.RLock:
    """One that is held for moments only, in which nobody else's code runs, and that the death of
    an object may take."""
    made = threading.RLock()
    _over_forks.append(made)
    return made


class cached_property(functools.cached_property):  # noqa: N801, as that is named
    """The standard one, whose lock (which it has before Python 3.12) is one of these, too."""

    def __init__(self, function: object) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            self.lock = rlock()


def _free_all() -> None:
    for held in list(_living):
        is_own = getattr(held, "_is_owned", bool)  # of the thread that goes on, in the child
        if not is_own():
            held._at_fork_reinit()  # as the standard library's own modules do it


def _take_all() -> None:
    for wanted in _over_forks:
        wanted.acquire()


def _give_back() -> None:
    for held in reversed(_over_forks):
        held.release()


os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_give_back)
os.register_at_fork(after_in_child=_free_all)
