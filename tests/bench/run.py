"""Benchmarks: `./run.sh bench`. Figures mean something only beside others of the same run.

Without options, for the GPT of `./run.sh` and for the default one: the time of a step and what it
is made of, and what the first step costs with an empty and with a warm cache of objects.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # what would slow NumPy down
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
CONFIGS = ("run.sh", "default")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", choices=CONFIGS, help="only this one, in this process")
    parser.add_argument("--steps", type=int, default=15, help="steady steps to time")
    parser.add_argument("--kernels", action="store_true", help="single kernels against peers")
    parser.add_argument("--step", action="store_true",
                        help="the default GPT's step against PyTorch's, and its slowest kernels")
    parser.add_argument("--rounds", type=int, default=15, help="turns that each library has")
    parser.add_argument("--threads", type=int, help="for each library; else its own choice")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="of --kernels, such as products, 'batched|vector', memory, layernorm, "
                             "embedding or 1024x1024")
    parser.add_argument("--level", type=int, choices=(0, 1), help="of --step; else both")
    parser.add_argument("--source", action="store_true", help="print the C of the slowest kernels")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    for name in SLOWING:
        os.environ.pop(name, None)
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    if options.kernels or options.step:
        from uopc.opt.target import usable_cores
        if options.kernels:
            import kernels
            kernels.run(options.rounds, options.threads, usable_cores(), options.only)
        if options.step:
            import step
            levels = (1, 0) if options.level is None else (options.level,)
            step.run(options.rounds, options.threads, usable_cores(), levels, options.source)
        return
    if options.config:
        import training
        training.measure(options.config, options.steps)
        return
    for name in CONFIGS:
        with tempfile.TemporaryDirectory() as cache:
            for state in ("empty", "warm"):
                print(f"GPT {name}, {state} cache of objects", flush=True)
                subprocess.run([sys.executable, __file__, f"--config={name}",
                                f"--steps={options.steps}"], check=True,
                               env={**os.environ, "UOPC_CACHE": cache})


if __name__ == "__main__":
    main()
