"""The log of a training run: a progress line for people, `log.jsonl` for programs."""
from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm import tqdm

from uopc.counters import counters


class TrainingLog:
    """A tqdm line on a terminal, plain lines elsewhere; every record goes to `log.jsonl`.

    `with log.step(): ...` measures a step: its time and what the compiler did in it.
    """

    def __init__(self, out_dir: Path, first: int, last: int, every: int) -> None:
        path = out_dir / "log.jsonl"
        kept = _records_before(path, first)
        self.file = open(path, "w", encoding="utf-8")
        self.file.writelines(kept)
        terminal = sys.stderr.isatty()
        self.bar = tqdm(initial=first, total=last, unit="step", disable=not terminal)
        self.every = every

    def write(self, **record: Any) -> None:
        """Append one record to `log.jsonl`."""
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def say(self, text: str) -> None:
        """A line for people, above the progress line."""
        if self.bar.disable:
            print(text, flush=True)
        else:
            self.bar.write(text)

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
        self.file.close()


def _records_before(path: Path, iteration: int) -> list[str]:
    """The lines of an earlier log that a run starting at `iteration` continues: none for 0."""
    if iteration == 0 or not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n") and _is_before(line, iteration)]


def _is_before(line: str, iteration: int) -> bool:
    record = json.loads(line)
    return record["iter"] < iteration or (record["iter"] == iteration and "val_loss" in record)


class StepTimer:
    """Seconds, and what the compiler's counters gained, between enter and exit."""

    def __enter__(self) -> StepTimer:
        self._before, self._start = counters.copy(), time.perf_counter()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.seconds = time.perf_counter() - self._start
        self.did = counters - self._before
