"""Runs that are killed, asked to end or given no more disk, at random moments.

Whatever happens, the checkpoint loads or there is none yet, and the run that goes on from it ends
with the bits of the run that nothing disturbed: weights, moments, and the losses of the log.
"""
from __future__ import annotations

import json
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.harness import Case, outcome_of, verdict
from train import gpt
from train.checkpoint import FILE_NAME, load_checkpoint

COUNT, STRIDE = 300, 6
STEPS = 300
ENDS = {"SIGKILL": -signal.SIGKILL, "SIGTERM": 143, "full disk": 1}


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    text = folder / "text.txt"
    text.write_text("".join(f"{k} of {k * k} dogs.\n" for k in range(300)))
    options = [f"--dataset={text}", f"--data_dir={folder}", "--n_layer=1", "--n_head=2",
               "--n_embd=16", "--block_size=8", "--batch_size=2", "--eval_iters=1",
               "--eval_interval=20", "--warmup_iters=2", f"--max_iters={STEPS}", "--dropout=0.1"]
    whole = folder / "whole"
    outcome = outcome_of(lambda: gpt.main([*options, f"--out_dir={whole}"]))
    yield Case("none: training", verdict(outcome), outcome.output)
    for number in range(count):
        out_dir, kind = folder / f"{number}", list(ENDS)[number % len(ENDS)]
        argv = [*options, f"--out_dir={out_dir}"]
        moment = rng.uniform(0, 1.2 * outcome.seconds) if kind != "full disk" \
            else rng.randrange(1, 2 * (whole / "log.jsonl").stat().st_size)
        ended = outcome_of(lambda kind=kind, moment=moment, argv=argv: disturbed(
            argv, kind, moment))
        what = f"{kind} at {moment:.3f}"
        if ended.code not in (0, ENDS[kind], -signal.SIGTERM):  # before its handler is there
            yield Case(what, "wrong", f"status {ended.code}\n{ended.output}")
            continue
        more = ["--init_from=resume"] if (out_dir / FILE_NAME).exists() else []
        resumed = outcome_of(lambda argv=argv, more=more: gpt.main([*argv, *more]))
        ending = "traceback" if "Traceback" in ended.output else verdict(resumed)
        # A step whose record no longer fitted the disk is saved none the less; and a run that is
        # ended while it evaluates what it has done has nothing left to do.
        missing = int(kind == "full disk" and "log.jsonl: " in ended.output
                      or f"{STEPS} steps are done" in ended.output)
        if ending == "right" and not same(whole, out_dir, missing):
            ending = "wrong"
        yield Case(what, ending, ended.output + resumed.output)


def disturbed(argv: list[str], kind: str, moment: float) -> None:
    """Train; after `moment` seconds comes the signal, or files cannot exceed `moment` bytes."""
    if kind == "full disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(moment), resource.RLIM_INFINITY))
    else:
        def end() -> None:
            time.sleep(moment)
            os.kill(os.getpid(), getattr(signal, kind))

        threading.Thread(target=end, daemon=True).start()
    gpt.main(argv)


def same(a: Path, b: Path, missing: int) -> bool:
    """Whether two folders hold the same training, and nothing that is unfinished; b's log may lack
    as many records."""
    x, y = load_checkpoint(a), load_checkpoint(b)
    equal = all(p.keys() == q.keys() and all(p[k].tobytes() == q[k].tobytes() for k in p)
                for p, q in ((x.weights, y.weights), (x.moments, y.moments)))
    logged, wanted = losses(b), losses(a)
    return equal and [r for r in wanted if r in logged] == logged \
        and len(wanted) - len(logged) <= missing \
        and {p.name for p in b.iterdir()} == {FILE_NAME, "log.jsonl"}


def losses(folder: Path) -> list[tuple[object, ...]]:
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [tuple(r.get(k) for k in ("iter", "loss", "lr", "train_loss", "val_loss"))
            for r in records]
