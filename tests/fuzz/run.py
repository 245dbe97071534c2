"""The long runs of the fuzzers: `./run.sh fuzz`, or some: `./run.sh fuzz checkpoints --count=50`.

Prints each fault as it is found and a table at the end; the exit status is 1 if there was one. The
same seed gives the same cases; `tests/test_fuzz.py` runs a short stride of each.
"""
from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.harness import ENDINGS, Case, Fuzzer

HERE = Path(__file__).resolve().parent
NAMES = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in ("__init__", "harness", "run"))


def fuzzer(name: str) -> Fuzzer:
    return importlib.import_module(f"tests.fuzz.{name}")


def cases(name: str, count: int, seed: int) -> list[Case]:
    """Run `count` cases of a fuzzer, with a line for each fault."""
    found = []
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        for case in fuzzer(name).fuzz(random.Random(seed), count, Path(folder)):
            found.append(case)
            if case.is_fault:
                print(f"{name}: {case.ending}: {case.what}\n{case.output[-2000:]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; else all")
    parser.add_argument("--count", type=int, help="cases of each; else as many as a long run has")
    parser.add_argument("--seed", type=int, default=1, help="of the cases")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    faults, rows = 0, []
    for name in options.names or NAMES:
        start = time.monotonic()
        endings = Counter(case.ending for case in cases(name, options.count or fuzzer(name).COUNT,
                                                        options.seed))
        faults += sum(endings[e] for e in ENDINGS[2:])
        rows.append((name, endings, time.monotonic() - start))
    print(f"{'fuzzer':14}" + "".join(f"{e:>11}" for e in ENDINGS) + f"{'seconds':>10}")
    for name, endings, seconds in rows:
        print(f"{name:14}" + "".join(f"{endings[e]:11}" for e in ENDINGS) + f"{seconds:10.0f}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
