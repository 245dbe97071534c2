"""Values of options that users, scripts and accidents give, to train/gpt.py, mlp.py and sample.py.

A run may be refused in words that name the option, or do what it was told; a value of which Python
itself would complain, one that cannot fit memory and one that makes a loss overflow are among them.
"""
from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.harness import Case, Outcome, outcome_of, verdict
from train import gpt, mlp, sample
from train.options import gpt_parser

COUNT, STRIDE = 800, 24
TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 8, "batch_size": 2, "max_iters": 2,
        "eval_iters": 1, "warmup_iters": 1, "eval_interval": 2}
NUMBERS = ("0", "1", "3", "-1", "1.5", "1e400", "1e-400", "1e30", "-0.0", "nan", "inf", "-inf",
           "99999999999", str(2**31), str(2**63), "9" * 5000, "\u0663", "\uff11", "1_0", "0x10",
           " 7 ", "1e3", "0.5", "0.9999999999999999999")
WORDS = ("", " ", "True", "no", "None", "two", "[1]", "\x00", "a\x00b", "\x1b[2J", "\ud800",
         "\u202e",
         "-", "--", "=", "%s", "{}", "x" * 10_000, "/dev/null", "/dev/full", "/proc/x", "~/x", "*")
LONG = ("max_iters", "eval_iters", "max_new_tokens", "num_samples")  # many of these take long
MLP = ("hidden", "batch_size", "max_iters", "learning_rate", "weight_decay", "log_interval", "seed",
       "out_dir")
SAMPLE = ("start", "num_samples", "max_new_tokens", "temperature", "top_k", "seed", "out_dir")
MEMORY = 8 << 30  # bytes of address space, so that what is accepted cannot take the machine down


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    text, trained = folder / "text.txt", folder / "trained"
    text.write_text("".join(f"{k} of {k * k} dogs.\n" for k in range(300)))
    given = {**TINY, "dataset": text, "data_dir": folder}
    outcome = outcome_of(lambda: gpt.main(arguments({**given, "out_dir": trained})))
    yield Case("none: training", verdict(outcome), outcome.output)
    own = vars(gpt_parser().parse_args([]))
    scripts = {
        "gpt": (gpt.main, given, tuple(own)),
        "mlp": (mlp.main, {"max_iters": 2}, MLP),
        "sample": (sample.main, {"out_dir": trained, "max_new_tokens": 2}, SAMPLE),
    }
    for number in range(count):
        script = rng.choice(("gpt", "gpt", "mlp", "sample"))
        main, basis, names = scripts[script]
        name = rng.choice(names)
        value = rng.choice(NUMBERS + WORDS)
        if name in LONG and value.strip("9") == "" and len(value) < 20 or value == str(2**31):
            value = "2"
        out_dir = {} if script == "sample" else {"out_dir": folder / f"{number}"}
        argv = arguments({**out_dir, **basis, name: value})
        result = outcome_of(lambda main=main, argv=argv: inside(folder, main, argv), memory=MEMORY)
        yield Case(f"{script} --{name}={value[:40]!r}", judged(result, name), result.output)


def inside(folder: Path, main: Callable[[list[str]], None], argv: list[str]) -> None:
    """A relative path or a ~ leads to a folder of ours."""
    os.chdir(folder)
    os.environ["HOME"] = str(folder)
    main(argv)


def arguments(options: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


def judged(result: Outcome, name: str) -> str:
    """A refusal of an option by the parser must name it."""
    ending = verdict(result)
    return "wrong" if result.code == 2 and f"--{name}" not in result.output else ending
