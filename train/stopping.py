"""How a training run is asked to end: Ctrl-C, SIGTERM and SIGHUP become the exception `Stopped`.

    with Stopping() as stopping:
        ...                          # here it is raised at once
        with stopping.later(): ...   # here at the end, so that a step or a save is never cut in two

The exit status is 128 plus the signal's number, as a shell has it.
"""
from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator

from train.terminal import visible
from uopc.runtime import CompileError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONE_PRESS = 0.5  # seconds in which a second SIGINT is the same one, passed on by a parent


class Stopped(KeyboardInterrupt):
    """A signal asked the run to end; what was finished can be saved."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number


class Stopping:
    """While entered, handles the signals; those that the process ignores (nohup) stay ignored.
    Outside of the main thread, where Python allows no handlers, it does nothing."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._waits = False
        self._at = 0.0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, SystemExit) and isinstance(error.code, str) \
                and threading.current_thread() is not threading.main_thread():
            print_error(error.code)  # where Python says nothing
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _: object) -> None:
        if self.number is None:
            self.number, self._at = number, time.monotonic()
            if not self._waits:
                raise Stopped(number)
            print_error("\nfinishing this step, then saving (Ctrl-C again to quit at once)")
        elif number == signal.SIGINT and time.monotonic() - self._at > ONE_PRESS:
            raise KeyboardInterrupt("quit at once")

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """A signal that comes meanwhile raises Stopped at the end; another Ctrl-C quits at once."""
        self._waits = True
        try:
            yield
        except CompileError:  # a signal to all processes of a group ends the compilers, too
            if self.number is None:
                raise
        finally:
            self._waits = False
        if self.number is not None:
            raise Stopped(self.number)


def print_error(text: str) -> None:
    """A line on the standard error output, unless there is none."""
    with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
        print(visible(text), file=sys.stderr, flush=True)


def told(error: BaseException) -> str:
    """What ended a run, as a person would say it."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}"
    if isinstance(error, BrokenPipeError):
        return "cannot write to standard output: its reader has gone"
    if isinstance(error, MemoryError):
        return "there is not enough memory; try smaller sizes of the model or the batch"
    return str(error) or "interrupted"


def status(error: BaseException) -> int:
    """The exit status by convention: 128 and the number of the signal, else 1."""
    if isinstance(error, BrokenPipeError):
        return 128 + signal.SIGPIPE
    if isinstance(error, KeyboardInterrupt):
        return getattr(error, "status", 128 + signal.SIGINT)
    return 1
