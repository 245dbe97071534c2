"""Kernels at level 1 against NumPy, and PyTorch where it is installed, in one run.

`./run.sh bench --kernels`. Matrix products are timed with the packing of their operands; GB/s count
each array once. Every figure is a median of alternating runs; the ratio is to the faster peer.
"""
from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from uopc.composite import buffer_data
from uopc.kernelize import make_plan
from uopc.tensor import Tensor

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 15
PRODUCTS = ((768, 384, 128), (768, 128, 128), (768, 512, 128), (768, 128, 512), (768, 65, 128),
            (1024, 1152, 384), (1024, 1536, 384), (1024, 384, 1536), (1024, 1024, 1024),
            (2048, 2048, 2048))


def compiled(t: Tensor) -> Callable[[], object]:
    """A call that computes `t` again each time."""
    plan, inputs = make_plan([t.uop], opt=1)
    arrays = [buffer_data(u) for u in inputs]
    return lambda: plan.run(arrays)


def medians(calls: list[Callable[[], object]]) -> list[float]:
    """Seconds of each call, taken in turns. Each library has threads of its own, which spin for
    some 30 ms after a call and would slow the next library: hence the pause, and a warm-up."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS + 2):
        for call, column in zip(calls, times, strict=True):
            time.sleep(0.04)
            call()
            start = time.perf_counter()
            call()
            column.append(time.perf_counter() - start)
    return [statistics.median(column[2:]) for column in times]


def products() -> None:
    rng = np.random.default_rng(0)
    ratios = []
    for m, n, k in PRODUCTS:
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        forms = {"A@B": (Tensor(a), Tensor(b)), "A@B.T": (Tensor(a), Tensor(b.T).T),
                 "A.T@B": (Tensor(a.T).T, Tensor(b))}
        for form, (x, y) in forms.items():
            left = np.ascontiguousarray(a.T).T if form == "A.T@B" else a
            right = np.ascontiguousarray(b.T).T if form == "A@B.T" else b
            calls = [compiled(x @ y), lambda left=left, right=right: left @ right]
            if torch is not None:
                tensors = [torch.from_numpy(v.T).T if v.flags.f_contiguous else torch.from_numpy(v)
                           for v in (left, right)]
                calls.append(lambda p=tensors: p[0] @ p[1])
            ours, *peers = medians(calls)
            ratios.append(min(peers) / ours)
            rates = "  ".join(f"{2e-9 * m * n * k / t:6.1f}" for t in (ours, *peers))
            print(f"{m:5} {n:5} {k:5} {form:6} GFLOP/s: {rates}   ratio {ratios[-1]:.2f}",
                  flush=True)
    print(f"matrix products: geometric mean {statistics.geometric_mean(ratios):.2f} of the faster "
          f"peer, worst {min(ratios):.2f}")


def memory_bound() -> None:
    rng = np.random.default_rng(0)
    flat, square = rng.standard_normal(1 << 24, np.float32), rng.standard_normal((4096, 4096),
                                                                                 np.float32)
    out = np.empty_like(flat)
    cases = {
        "(a*2+1).relu()*3": (lambda t: (t * 2 + 1).relu() * 3, flat, 2,
                             lambda x: (x * 2 + 1).relu() * 3),
        "sum": (lambda t: t.sum(), flat, 1, lambda x: x.sum()),
        "max over rows": (lambda t: t.max(1), square, 1, lambda x: x.amax(1)),
        "max over columns": (lambda t: t.max(0), square, 1, lambda x: x.amax(0)),
        "transpose": (lambda t: t.T.contiguous(), square, 2, lambda x: x.T.contiguous()),
        "exp": (lambda t: t.exp(), flat, 2, lambda x: x.exp()),
        "softmax 512x512": (lambda t: t.softmax(-1), square[:512, :512].copy(), 2,
                            lambda x: x.softmax(-1)),
    }
    (copy,) = medians([lambda: np.copyto(out, flat)])
    print(f"copy of 16M floats: {2 * flat.nbytes / copy / 1e9:.1f} GB/s")
    for name, (ours, array, times, theirs) in cases.items():
        calls = [compiled(ours(Tensor(array)))]
        if torch is not None:
            tensor = torch.from_numpy(array)
            calls.append(lambda f=theirs, t=tensor: f(t))
        rates = "  ".join(f"{times * array.nbytes / t / 1e9:6.1f}" for t in medians(calls))
        print(f"{name:18} GB/s: {rates}", flush=True)


if __name__ == "__main__":
    print("uopc, NumPy" + (", PyTorch" if torch is not None else " (PyTorch is not installed)"))
    products()
    memory_bound()
