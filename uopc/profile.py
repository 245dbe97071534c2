"""`PROFILE=trace.json`: a timeline of the process, for Perfetto (ui.perfetto.dev) and
chrome://tracing.

In: what the rest of uopc reports as it happens. Out: at the end of the process, a file in the
trace-event format, with an event for each chunk of a kernel, on the thread that ran it, and events
for what Python did: realize, schedule, make plan, compile, replay, run plan.

    a kernel of 1 ms on two threads  →  {"name": "r_64_64", "ph": "X", "ts": 12.5, "dur": 498.0, …},
                                        {"name": "r_64_64", "ph": "X", "ts": 13.1, "dur": 502.5, …}

`ts` and `dur` are in microseconds. In `args`, what begins with `kernel_` is of the whole kernel in
that run; its time is that in which at least one thread was at it. Where PROFILE is not set, all
this costs a look at one variable per event.
"""
from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uopc import config
from uopc.locks import lock
from uopc.say import say

if TYPE_CHECKING:
    from uopc.plan import Plan

LIMIT = 200_000  # events; then recording stops, for the file's sake (60 MB) and the memory's
TRACKS = 10_000  # tids per thread of Python: from 0 the threads of its team, the last is its own
Event = dict[str, Any]


class Work(NamedTuple):
    """What the timeline tells of a kernel, whenever it runs."""

    name: str
    flops: int
    bytes: int  # of its distinct arrays
    phase: int
    lines: str  # of the user's program


class Timeline:
    """What happened so far. Raises OSError when its file cannot be written."""

    def __init__(self, path: str) -> None:
        self.path, self.pid = os.path.realpath(os.path.expanduser(path)), os.getpid()
        self.folder = os.getcwd()
        self.lock = lock()
        self.left, self.is_full = LIMIT, False
        main = threading.main_thread()
        self.threads = {(main.ident, main.name): 0}  # of Python, numbered as they come
        self.plans: dict[int, list[Work]] = {}
        self.did: list[tuple[int, str, int, int, Event]] = []  # thread, name, start, stop, args
        self.ran: list[tuple[int, int, np.ndarray]] = []  # thread, plan, (kernel, …) as Tasks logs
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise OSError("it is not a regular file")
        self.write({"unfinished": "the process has not come to its end, or was killed"})

    def note(self, name: str, start: float, stop: float, args: Event) -> None:
        """Something that this thread of Python did."""
        if self._takes(1):
            self.did.append((self._thread(), name, _ns(start), _ns(stop), args))

    def ran_kernels(self, plan: Plan, order: Sequence[int], log: np.ndarray) -> None:
        """A log that `Tasks` filled; `order` are the numbers of its kernels."""
        rows = log[log[:, 3] > 0]
        if not self._takes(len(rows)):
            return
        if plan.number not in self.plans:
            self.plans[plan.number] = self._works(plan)
        rows[:, 0] = np.array(order, np.int64)[rows[:, 0]]
        self.ran.append((self._thread(), plan.number, rows))

    def _works(self, plan: Plan) -> list[Work]:
        phase = {k: p for p, kernels in enumerate(plan.phases) for k in kernels}
        return [Work(kernel.name, kernel.flops, plan.bytes_used(kernel), phase[k],
                     _shown(kernel.lines, self.folder)) for k, kernel in enumerate(plan.kernels)]

    def _takes(self, events: int) -> bool:
        """Whether there is room for them; else nothing is recorded any more."""
        with self.lock:
            if self.left >= events:
                self.left -= events
                return True
            self.left = 0
            if not self.is_full:
                say(f"uopc: {_too_much()}")
            self.is_full = True
        _record_no_more()
        return False

    def _thread(self) -> int:
        thread = threading.current_thread()
        with self.lock:
            return self.threads.setdefault((thread.ident, thread.name), len(self.threads))

    def events(self) -> Iterator[Event]:
        """All in order of time, which begins with 0; before them the threads' names."""
        found = [*itertools.starmap(_span, self.did), *self._chunks()]
        found.sort(key=lambda e: (e["ts"], -e["dur"]))
        zero = found[0]["ts"] if found else 0
        yield self._name("process_name", 0, name=f"uopc: {os.path.basename((sys.argv or [''])[0])}")
        tids = sorted({e["tid"] for e in found}, key=lambda t: (t // TRACKS, (t + 1) % TRACKS))
        for k, tid in enumerate(tids):  # Python above its team
            yield self._name("thread_name", tid, name=self._track(tid))
            yield self._name("thread_sort_index", tid, sort_index=k)
        for e in found:
            yield {**e, "ph": "X", "pid": self.pid, "ts": (e["ts"] - zero) / 1000,
                   "dur": e["dur"] / 1000}

    def _name(self, kind: str, tid: int, **args: Any) -> Event:
        return {"name": kind, "ph": "M", "pid": self.pid, "tid": tid, "args": args}

    def _track(self, tid: int) -> str:
        owner, member = divmod(tid, TRACKS)
        name = next(name for (_, name), k in self.threads.items() if k == owner)
        if member == TRACKS - 1:
            return f"Python: {name}"
        return f"kernels: thread {member}" + (f" of {name}'s team" if owner else "")

    def _chunks(self) -> Iterator[Event]:
        """Times in ns."""
        for thread, plan, rows in self.ran:
            for k in np.unique(rows[:, 0]).tolist():
                work, chunks = self.plans[plan][k], rows[rows[:, 0] == k]
                args = _kernel_args(plan, work, chunks)
                for _, member, start, stop in chunks.tolist():
                    yield {"name": work.name, "cat": "kernel", "ts": start, "dur": stop - start,
                           "tid": thread * TRACKS + member, "args": args}

    def write(self, about: dict[str, str]) -> None:
        """Put the file there at once. `about` is shown as the trace's metadata."""
        made = f"{self.path}.{self.pid}.tmp"
        head = json.dumps({"displayTimeUnit": "ms", "otherData": about})
        try:
            with open(made, "w") as file:
                file.write(head[:-1] + ', "traceEvents": [')
                for k, event in enumerate(self.events()):
                    file.write((",\n" if k else "\n") + json.dumps(event))
                file.write("\n]}\n")
            os.replace(made, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(made)
            raise

    def finish(self) -> None:
        """At the end of the process. A forked child has no part in it."""
        if os.getpid() == self.pid:
            _record_no_more()  # whatever still runs
            try:
                self.write({"stopped": _too_much()} if self.is_full else {})
            except OSError as error:
                _cannot_write(self.path, error)


def _ns(seconds: float) -> int:
    """On Linux, time.perf_counter and the clock of `launch.c` are the same."""
    return int(seconds * 1e9)


def _span(thread: int, name: str, start: int, stop: int, args: Event) -> Event:
    return {"name": name, "cat": "python", "ts": start, "dur": stop - start,
            "tid": thread * TRACKS + TRACKS - 1, "args": args}


def _shown(lines: Sequence[str], folder: str) -> str:
    """a.py:3 a.py:7 b.py:1  →  a.py:3,7 b.py:1, each once; files in `folder` relative to it."""
    by_file: dict[str, list[str]] = {}
    for file, _, line in (text.rpartition(":") for text in dict.fromkeys(lines)):
        by_file.setdefault(file.removeprefix(folder + os.sep), []).append(line)
    return " ".join(f"{file}:{','.join(numbers)}" for file, numbers in by_file.items())


def _kernel_args(plan: int, work: Work, chunks: np.ndarray) -> Event:
    ns = max(1, _time_at_it(chunks[:, 2], chunks[:, 3]))
    rates = {"kernel_GFLOP/s": work.flops / ns, "kernel_GB/s": work.bytes / ns}
    return {"plan": plan, "phase": work.phase, "line": work.lines or "not known",
            "kernel_us": ns / 1000, **{k: float(f"{v:.4g}") for k, v in rates.items()},
            "kernel_flops": work.flops, "kernel_bytes": work.bytes, "kernel_chunks": len(chunks)}


def _time_at_it(starts: np.ndarray, stops: np.ndarray) -> int:
    """How long at least one of some things was going on: |union of [start, stop)|."""
    order = np.argsort(starts)
    starts, reached = starts[order], np.maximum.accumulate(stops[order])
    return int((reached - np.maximum(starts, [starts[0], *reached[:-1]])).sum())


def _too_much() -> str:
    return f"the timeline has {LIMIT:,} events; what comes after them is not recorded"


def _cannot_write(path: str, error: OSError) -> None:
    say(f"uopc: PROFILE: cannot write the timeline to {path} ({error.strerror or error})")


# *** the process's timeline ***

_chosen: list[Timeline | None] = []  # empty: PROFILE has not been looked at
_choice = lock()


def timeline() -> Timeline | None:
    """What records this process; None without PROFILE (which is read when the first graph is
    computed), in a forked child, and when it is full."""
    if not _chosen:
        with _choice:
            if not _chosen:
                _chosen.append(_start(config.read("PROFILE")))
    return _chosen[0]


def _start(path: str) -> Timeline | None:
    if path == "0":
        return None
    try:
        started = Timeline(path)
    except OSError as error:
        _cannot_write(path, error)
        return None
    atexit.register(started.finish)
    return started


def _record_no_more() -> None:
    _chosen[:] = [None]


os.register_at_fork(after_in_child=_record_no_more)


def note(name: str, start: float, **args: Any) -> None:
    """Record what Python has done from `start`, a time of time.perf_counter, until now."""
    if (recorder := timeline()) is not None:
        recorder.note(name, start, time.perf_counter(), args)
