"""The log of a training run: a progress line for people, `log.jsonl` for programs."""
from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from train.run_folder import write_whole
from train.terminal import printer, visible
from uopc.counters import counters


class TrainingLog:
    """A tqdm line on a terminal, plain lines elsewhere; every record goes to `log.jsonl`.

    `with log.step(): ...` measures a step: its time and what the compiler did in it.
    """

    def __init__(self, out_dir: Path, first: int, last: int, every: int) -> None:
        self.path, self.file = out_dir / "log.jsonl", None
        terminal = not getattr(sys.stderr, "closed", True) and \
            getattr(sys.stderr, "isatty", lambda: False)()
        self.bar = tqdm(initial=first, total=last, unit="step", disable=not terminal)
        self.every = every

    def write(self, **record: Any) -> None:
        """Append one record to `log.jsonl`; a number that is not finite becomes null. Before the
        first one the log of what came earlier is cut to what precedes it. Raises OSError if the
        file cannot be written; it then ends with the record before."""
        if self.file is None:
            self.file = self._opened(record)
        end = self.file.seek(0, os.SEEK_END)
        rest = memoryview(_line(record))
        try:
            while rest:
                rest = rest[self.file.write(rest):]
        except OSError as error:
            self.file.truncate(end)
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def _opened(self, record: dict[str, Any]) -> FileIO:
        """The file, with what an earlier run logged before `record`."""
        if self.path.exists() and not self.path.is_file():
            raise OSError(errno.EINVAL, "it is not a regular file", str(self.path))
        kept, damaged = _records_before(self.path, _place(record))
        if damaged:
            aside = self.path.with_name("log.damaged.jsonl")
            write_whole(aside, self.path.read_bytes())
            self.say(f"{damaged} lines of {self.path} are no records of a run; it is kept as "
                     f"{aside}, and what can be read of it goes on as {self.path}")
        write_whole(self.path, b"".join(map(_line, kept)))
        return open(self.path, "ab", buffering=0)

    def say(self, text: str) -> None:
        """A line for people, above the progress line. Raises OSError, which names the standard
        output, if it cannot be written; one that is closed for good is no error."""
        if not self.bar.disable:
            self.bar.write(visible(text))
        elif sys.stdout is not None and not getattr(sys.stdout, "closed", False):
            printer(sys.stdout)(visible(text) + "\n")

    def step(self) -> StepTimer:
        return StepTimer()

    def log_step(self, timer: StepTimer, iteration: int, loss: float, lr: float,
                 tokens: int) -> None:
        """Record a finished step; `tokens` is how many it trained on."""
        did, seconds = timer.did, timer.seconds
        self.write(iter=iteration, loss=loss, lr=lr, ms=round(seconds * 1e3, 3),
                   tokens_per_s=round(tokens / seconds, 1), plan_hits=did.plan_hits,
                   plan_misses=did.plan_misses, kernels=did.kernels,
                   schedule_ms=round(did.schedule_time * 1e3, 3),
                   run_ms=round(did.run_time * 1e3, 3))
        note = f"loss {loss:.4f}, {seconds * 1e3:.0f} ms, {did.kernels} kernels, " \
               f"plan {did.plan_hits} hit {did.plan_misses} miss"
        if did.plan_misses:
            self.say(f"step {iteration}: {note}; {did.plan_time:.2f} s of it compiling "
                     f"({did.objects_built} kernels built, {did.objects_found} found on disk)")
        elif self.bar.disable and iteration % self.every == 0:
            self.say(f"step {iteration}: {note}, {tokens / seconds:.0f} tokens/s")
        if not self.bar.disable:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update()

    def close(self) -> None:
        self.bar.close()
        if self.file is not None:
            self.file.close()


def _line(record: dict[str, Any]) -> bytes:
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v
              for k, v in record.items()}
    return (json.dumps(finite, allow_nan=False) + "\n").encode()


def _place(record: dict[str, Any]) -> tuple[int, bool]:
    """Orders records: of one iteration the evaluation comes before the step."""
    return record["iter"], "loss" in record


def _records_before(path: Path, place: tuple[int, bool]) -> tuple[list[dict[str, Any]], int]:
    """The records of an earlier log that one at `place` follows, and how many lines are none. An
    empty line, or a last one that was cut by a kill, does not count."""
    kept, damaged = [], 0
    if place[0] == 0 or not path.exists():
        return kept, damaged
    with open(path, "rb") as file:
        for line in file:
            try:
                record = json.loads(line)
                if type(record["iter"]) is not int:
                    raise TypeError("no iteration")
                if _place(record) < place:
                    _line(record)
                    kept.append(record)
            except (ValueError, KeyError, TypeError, RecursionError):
                damaged += bool(line.strip()) and line.endswith(b"\n")
    return kept, damaged


class StepTimer:
    """Seconds, and what the compiler's counters gained, between enter and exit."""

    def __enter__(self) -> StepTimer:
        self._before, self._start = counters.copy(), time.perf_counter()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.seconds = time.perf_counter() - self._start
        self.did = counters - self._before
