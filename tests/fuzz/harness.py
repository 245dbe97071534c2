"""What the fuzzers share: a case runs in a forked child, and how it ends is judged.

    outcome_of(lambda: gpt.main(["--n_layer=zero"]))  →  Outcome(code=2, output="usage: …", …)
    verdict(outcome)                                  →  "refused"

A fuzzer is a module of this folder with `COUNT`, the number of cases of a long run, `STRIDE`, that
of the test suite, and `fuzz(rng, count, folder)`, which yields a `Case` for each case that it ran.
"""
from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

SECONDS = 20  # longer than that is a hang
FAULTS = ("traceback", "hang", "crash", "silent", "wrong")
# traceback: Python's own words reach the user; hang: no end in time; crash: ended by a signal;
# silent: damage was accepted without a word; wrong: a wrong result
ENDINGS = ("right", "refused", *FAULTS)


@dataclass(frozen=True)
class Outcome:
    """How a command ended. `code` is its exit status, negative for a signal, None for a hang."""

    code: int | None
    output: str
    seconds: float


@dataclass(frozen=True)
class Case:
    """What was done to the input, how that ended (one of ENDINGS), and what was printed."""

    what: str
    ending: str
    output: str = ""

    @property
    def is_fault(self) -> bool:
        return self.ending in FAULTS


class Fuzzer(Protocol):
    COUNT: int
    STRIDE: int

    def fuzz(self, rng: random.Random, count: int, folder: Path) -> Iterator[Case]: ...


def outcome_of(run: Callable[[], object], seconds: float = SECONDS,
               memory: int | None = None) -> Outcome:
    """Run a function as a program of its own would run: in a forked child, whose output is
    collected and which is killed after `seconds`. `memory` bounds its address space in bytes."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            _be_a_program(run, output.fileno(), memory)
        code = _wait(pid, start + seconds)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Outcome(code, text, time.monotonic() - start)


def _be_a_program(run: Callable[[], object], output: int, memory: int | None) -> None:
    """The child's side; never returns."""
    code = 1
    try:
        os.setsid()
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(code)


def _wait(pid: int, deadline: float) -> int | None:
    """The child's exit status; None, and it is killed, when it has not ended by the deadline."""
    pause = 0.001
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def outcome_of_command(command: Sequence[str], seconds: float = SECONDS,
                       env: dict[str, str] | None = None, cwd: Path | None = None) -> Outcome:
    """The same for a command in a process of its own, where the start of Python is part of it."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   env=env, cwd=cwd, start_new_session=True)
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Outcome(code, text, time.monotonic() - start)


def verdict(outcome: Outcome) -> str:
    """The ending that an outcome shows by itself; whether "right" is right, or should have been a
    refusal ("silent"), only the fuzzer knows."""
    if outcome.code is None:
        return "hang"
    if outcome.code < 0:
        return "crash"
    if "Traceback (most recent call last)" in outcome.output \
            or "Exception ignored" in outcome.output:
        return "traceback"
    return "right" if outcome.code == 0 else "refused"
