"""Benchmarks: `./run.sh bench`. Figures mean something only beside others of the same run.

Without a part, for a small GPT and for the default one: the time of a step and what it is
made of, and what the first step costs with an empty and with a warm cache of objects. Where PyTorch
is installed, the parts compare with it.
"""
from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # what would slow NumPy down
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
CONFIGS = ("small", "default", "baby")
PARTS = {
    "kernels": "single kernels, and NumPy's",
    "step": "a GPT's training step, its kernels, and the slowest of them",
    "mlp": "the same for the MLP 784-512-256-10",
    "sample": "tokens per second of the default GPT",
    "layers": "softmax, LayerNorm, cross-entropy and attention",
    "resources": "first loss, memory, page faults, Python's share, two trainings at once",
}
ROUNDS = {"kernels": 15, "baby": 10}
ELSE_ROUNDS = 30


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_argument_group("parts")
    for name, text in PARTS.items():
        parts.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--config", choices=CONFIGS,
                        help="of --step, else default; without a part only this one, in this "
                             "process")
    parser.add_argument("--steps", type=int, default=15, help="steady steps to time without a part")
    parser.add_argument("--rounds", type=int,
                        help=f"turns that each library has; else {ELSE_ROUNDS}, but "
                             + ", ".join(f"{n} for {name}" for name, n in ROUNDS.items()))
    parser.add_argument("--threads", type=int, help="for each library; else its own choice")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="of --kernels, such as products, 'batched|vector', memory, layernorm, "
                             "embedding or 1024x1024; of --layers, such as attention or gradient; "
                             "of --resources, such as start, call or together")
    parser.add_argument("--level", type=int, choices=(0, 1, 2),
                        help="of the optimizer; else the default one, for --step and --mlp each "
                             "but 0; --kernels are of level 1")
    parser.add_argument("--source", action="store_true", help="print the C of the slowest kernels")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    for name in SLOWING:
        os.environ.pop(name, None)
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    if options.level is not None:
        os.environ["OPT"] = str(options.level)
    parts = [name for name in PARTS if getattr(options, name)]
    if parts:
        run_parts(parts, options)
    elif options.config:
        import training
        training.measure(options.config, options.steps)
    else:
        measure_starts(options.steps)


def run_parts(parts: list[str], options: argparse.Namespace) -> None:
    from machine import Bench
    bench = Bench.started(options.threads, re.compile(options.only, re.IGNORECASE).search)
    for part in parts:
        name = (options.config or "default") if part == "step" else part
        bench.turns.rounds = options.rounds or ROUNDS.get(name, ELSE_ROUNDS)
        if part in ("step", "mlp"):
            import step
            levels = step.timed_levels() if options.level is None else [options.level]
            step.run(bench, name, levels, options.source)
        else:
            importlib.import_module(part).run(bench)


def measure_starts(steps: int) -> None:
    for name in ("small", "default"):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("empty", "warm"):
                print(f"GPT {name}, {state} cache of objects", flush=True)
                subprocess.run([sys.executable, __file__, f"--config={name}", f"--steps={steps}"],
                               check=True, env={**os.environ, "UOPC_CACHE": cache})


if __name__ == "__main__":
    main()
