"""A training in a process of its own, for resources.py: `worker.py LIBRARY TASK`.

Prints the first loss; then, for each line {"steps": n, "seconds": s} on its input, trains for both
and prints, as JSON too, what that took.
"""
from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from uopc.counters import counters

KILOBYTE = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


def training(library: str, task: str) -> Callable[[], float]:
    """Only this library is imported."""
    if library == "uopc":
        from training import Training
        return Training(task)
    from torch_training import TorchTraining
    return TorchTraining(task, compiled=library == "torch.compile")


def measured(step: Callable[[], float], steps: int, seconds: float) -> dict[str, float]:
    """Seconds of a step and, for uopc, of its part outside kernels; memory in bytes."""
    times: list[float] = []
    outside: list[float] = []
    faults, end = _usage().ru_minflt, time.perf_counter() + seconds
    while len(times) < steps or time.perf_counter() < end:
        start, run_time = time.perf_counter(), counters.run_time
        step()
        times.append(time.perf_counter() - start)
        outside.append(times[-1] - (counters.run_time - run_time))
    return {"median": statistics.median(times), "mean": statistics.fmean(times),
            "outside": statistics.median(outside), "steps": len(times),
            "faults": (_usage().ru_minflt - faults) / len(times),
            "memory": _usage().ru_maxrss * KILOBYTE}


def _usage() -> resource.struct_rusage:
    return resource.getrusage(resource.RUSAGE_SELF)


def main() -> None:
    step = training(*sys.argv[1:])
    print(step(), flush=True)
    for line in sys.stdin:
        print(json.dumps(measured(step, **json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
