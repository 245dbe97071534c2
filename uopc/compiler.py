"""The C compiler: which one, what it can do, and its runs, which end when nobody waits for them.
"""
from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from uopc import config
from uopc.locks import lock

FLAGS = ("-O2", "-march=native", "-fPIC", "-shared", "-std=gnu11", "-fwrapv", "-fno-math-errno",
         "-fno-trapping-math", "-fno-strict-aliasing", "-ffp-contract=off")
# -fno-strict-aliasing: what a kernel's members pass on shares memory, whatever its types.
# For vectors, in gcc from 11 on: what makes its -O2 of use for them, in three quarters of its time
QUICKER = ("-O1", "-fexpensive-optimizations", "-ftree-loop-vectorize", "-ftree-slp-vectorize",
           "-fvect-cost-model=very-cheap", "-fira-region=one")
NEEDED = "#define __CHAR_BIT__ "  # which a C compiler predefines


class CompileError(RuntimeError):
    """No compiler was found, or it refused a kernel."""


@functools.cache
def _find_compiler(wanted: str) -> tuple[str, ...]:
    """The command of the C compiler as words; `wanted` is the value of CC."""
    tried = [wanted] if wanted else ["gcc", "clang", "cc"]
    for command in tried:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise CompileError(f"CC={wanted!r} in the environment cannot be taken apart as a "
                               f"shell would: {error}") from None
        if words and (path := shutil.which(words[0])):
            return (os.path.abspath(path), *words[1:])
    raise CompileError(f"no C compiler found (tried {', '.join(tried)}): install gcc or clang, or "
                       "set CC to the command of one")


def compiler() -> tuple[str, ...]:
    """The C compiler's command, from CC or the first of gcc, clang, cc. Raises CompileError."""
    return _find_compiler(config.read("CC"))


class Probed(NamedTuple):
    """Of FLAGS those that a compiler takes, QUICKER if it is a gcc that knows all of it (else
    nothing), and the lines of its predefined macros, which name its version and, with
    -march=native, each feature of the CPU."""

    flags: tuple[str, ...]
    quicker: tuple[str, ...]
    macros: tuple[str, ...]


@functools.cache
def probe(command: tuple[str, ...]) -> Probed:
    without = tuple(f for f in FLAGS if f != "-march=native")
    for flags, quicker in itertools.product((FLAGS, without), (QUICKER, ())):
        tried = run([*command, *flags, *quicker, "-dM", "-E", "-x", "c", os.devnull])
        if tried.returncode == 0 and NEEDED in tried.stdout:
            is_clang = "#define __clang__ " in tried.stdout
            return Probed(flags, () if is_clang else quicker,
                           tuple(sorted(tried.stdout.splitlines())))
    raise CompileError(f"{shlex.join(command)} does not work as a C compiler: "
                       f"{tried.stderr.strip()[:500] or 'it predefines nothing'}")


def macros(command: tuple[str, ...]) -> frozenset[str]:
    """The names that the compiler predefines on this machine."""
    lines = probe(command).macros
    return frozenset(line.split()[1] for line in lines if line.startswith("#define"))


def usable_cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# *** its runs ***


class Runs:
    """Those that one caller waits for, in threads that are its own."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen] = set()
        self.are_stopped = False
        self.lock = lock()

    def begin_thread(self) -> None:
        """What this thread runs from now on belongs here."""
        _thread.runs = self

    def begin(self, process: subprocess.Popen) -> None:
        with self.lock:
            self.running.add(process)
            if self.are_stopped:
                _kill(process)

    def end(self, process: subprocess.Popen) -> None:
        with self.lock:
            self.running.discard(process)

    def stop(self) -> None:
        """Kill those that run, and those that begin later."""
        with self.lock:
            self.are_stopped = True
            for process in self.running:
                _kill(process)


_thread = threading.local()


def _kill(process: subprocess.Popen) -> None:
    """With its children: gcc is a program that starts others."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def run(command: Sequence[str], scratch: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a compiler in a process group of its own: a Ctrl-C that we mean to survive must not end
    it, and any other exception ends all of it. Its own temporary files go to `scratch`. Raises
    CompileError if it cannot be started, or a signal ended it."""
    runs = getattr(_thread, "runs", None) or Runs()
    environment = None if scratch is None else {**os.environ, "TMPDIR": str(scratch)}
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace",
                                   start_new_session=True, env=environment)
    except OSError as error:
        raise CompileError(f"cannot start {shlex.join(command)}: {error.strerror}") from None
    with process:
        try:
            runs.begin(process)
            output, errors = process.communicate()
        except BaseException:
            _kill(process)
            raise
        finally:
            runs.end(process)
    if process.returncode < 0:
        raise CompileError(f"{shlex.join(command)} was ended by signal {-process.returncode}")
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
