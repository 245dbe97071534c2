"""Kernels at level 1 against NumPy, and PyTorch where it is installed, in one run.

`./run.sh bench --kernels`. Each library lives in a process of its own, since idle threads of one
spin for a while and take a core from the next; the processes take turns. Matrix products are timed
with the packing of their operands. GB/s count each array once each way. Figures are medians.
"""
from __future__ import annotations

import importlib.util
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

ROUNDS = 15
PAUSE = 0.1      # seconds until another library's threads sleep
WARM_UP = 0.03   # seconds of calls before the one that is timed
PRODUCTS = ((768, 384, 128), (768, 128, 128), (768, 512, 128), (768, 128, 512), (768, 65, 128),
            (1024, 1152, 384), (1024, 1536, 384), (1024, 384, 1536), (1024, 1024, 1024),
            (2048, 2048, 2048))
FORMS = ("A@B", "A@B.T", "A.T@B")
MEMORY_BOUND = {  # name → (shape, how often its size is moved, the expression)
    "(a*2+1).relu()*3": ((1 << 24,), 2, lambda t: (t * 2 + 1).relu() * 3),
    "sum": ((1 << 24,), 1, lambda t: t.sum()),
    "max over rows": ((4096, 4096), 1, lambda t: t.max(1)),
    "max over columns": ((4096, 4096), 1, lambda t: t.max(0)),
    "transpose": ((4096, 4096), 2, lambda t: t.T.contiguous()),
    "exp": ((1 << 24,), 2, lambda t: t.exp()),
    "softmax": ((512, 512), 2, lambda t: t.softmax(-1)),
}


def product(library: str, m: int, n: int, k: int, form: str) -> Callable[[], object]:
    """A call that multiplies two random matrices, stored as the form says."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((k, m) if form == "A.T@B" else (m, k)).astype(np.float32)
    b = rng.standard_normal((n, k) if form == "A@B.T" else (k, n)).astype(np.float32)
    x, y = wrap(library, a), wrap(library, b)
    return call_of(library, lambda: (x.T if form == "A.T@B" else x) @ (
        y.T if form == "A@B.T" else y))


def expression(library: str, name: str) -> Callable[[], object]:
    shape, _, function = MEMORY_BOUND[name]
    x = wrap(library, np.random.default_rng(0).standard_normal(shape, np.float32))
    return call_of(library, lambda: function(x))


def wrap(library: str, array: np.ndarray) -> object:
    if library == "torch":
        import torch
        return torch.from_numpy(array)
    if library == "uopc":
        from uopc.tensor import Tensor
        return Tensor(array)
    return array


def call_of(library: str, function: Callable[[], object]) -> Callable[[], object]:
    """For uopc the plan's run: what a training step repeats."""
    if library != "uopc":
        return function
    from uopc.composite import buffer_data
    from uopc.kernelize import make_plan
    plan, inputs = make_plan([function().uop], opt=1)
    arrays = [buffer_data(u) for u in inputs]
    return lambda: plan.run(arrays)


def serve(library: str, pipe: Connection) -> None:
    """A library's process: prepares what it is told, then times it whenever asked."""
    call = None
    while (order := pipe.recv()) is not None:
        if order != "time":
            kind, *arguments = order
            call = (product if kind == "product" else expression)(library, *arguments)
            pipe.send(None)
            continue
        warm = time.perf_counter() + WARM_UP
        while time.perf_counter() < warm:
            call()
        start = time.perf_counter()
        call()
        pipe.send(time.perf_counter() - start)


def medians(pipes: list[Connection], order: tuple) -> list[float]:
    """Seconds that each library takes for an order, in turns."""
    for pipe in pipes:
        pipe.send(order)
        pipe.recv()
    times: list[list[float]] = [[] for _ in pipes]
    for _ in range(ROUNDS):
        for pipe, column in zip(pipes, times, strict=True):
            time.sleep(PAUSE)
            pipe.send("time")
            column.append(pipe.recv())
    return [statistics.median(column) for column in times]


def main() -> None:
    libraries = ["uopc", "numpy"] + ["torch"] * bool(importlib.util.find_spec("torch"))
    context, pipes = multiprocessing.get_context("spawn"), {}
    for library in libraries:
        pipes[library], theirs = context.Pipe()
        context.Process(target=serve, args=(library, theirs), daemon=True).start()
    print(*libraries)
    ratios = []
    for m, n, k in PRODUCTS:
        for form in FORMS:
            ours, *peers = medians(list(pipes.values()), ("product", m, n, k, form))
            ratios.append(min(peers) / ours)
            rates = "  ".join(f"{2e-9 * m * n * k / t:6.1f}" for t in (ours, *peers))
            print(f"{m:5} {n:5} {k:5} {form:6} GFLOP/s: {rates}   ratio {ratios[-1]:.2f}",
                  flush=True)
    print(f"matrix products: geometric mean {statistics.geometric_mean(ratios):.2f} of the faster "
          f"peer, worst {min(ratios):.2f}")
    with_methods = [pipes[library] for library in libraries if library != "numpy"]
    for name, (shape, times, _) in MEMORY_BOUND.items():
        moved = times * 4 * np.prod(shape, dtype=float)
        rates = [f"{moved / t / 1e9:6.1f}" for t in medians(with_methods, ("expression", name))]
        print(f"{name:18} GB/s: {'  '.join(rates)}", flush=True)


if __name__ == "__main__":
    main()
