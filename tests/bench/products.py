"""Matrix products, the packing of their operands included: alone, in batches, and by a vector."""
from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np
from libraries import Case, call_of, wrap
from machine import Bench

PRODUCTS = ((768, 384, 128), (768, 128, 128), (768, 512, 128), (768, 128, 512), (768, 65, 128),
            (1024, 1152, 384), (1024, 1536, 384), (1024, 384, 1536), (1024, 1024, 1024),
            (2048, 2048, 2048))  # (m, n, k)
FORMS = ("A@B", "A@B.T", "A.T@B")
BATCHED = ((48, 64, 64, 32), (24, 256, 256, 64))  # (batch, m, n, k)
BY_VECTOR = (1, 1536, 384)


def product(library: str, batch: tuple[int, ...], m: int, n: int, k: int,
            form: str) -> Callable[[], object]:
    """A call that multiplies two random matrices, stored as the form says."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((*batch, *shape)).astype(np.float32)
            for shape in ((k, m) if form == "A.T@B" else (m, k),
                          (n, k) if form == "A@B.T" else (k, n)))
    x, y = wrap(library, a), wrap(library, b)
    return call_of(library, lambda: (x.T if form == "A.T@B" else x) @ (
        y.T if form == "A@B.T" else y))


def run(bench: Bench) -> None:
    ratios, shares = [], []
    for m, n, k in PRODUCTS:
        for form in FORMS:
            label = f"{m}x{n}x{k} {form}"
            if bench.wanted(f"products {label}"):
                ratio, share = compare(bench, label, (), m, n, k, form)
                ratios.append(ratio)
                shares.append(share)
    if ratios:
        print(f"{len(ratios)} products: geometric mean {statistics.geometric_mean(ratios):.2f} of "
              f"the faster peer, worst {min(ratios):.2f}; of the FMA peak "
              f"{statistics.geometric_mean(shares):.2f}, worst {min(shares):.2f}", flush=True)
    for b, m, n, k in BATCHED:
        label = f"{b} of {m}x{n}x{k}"
        if bench.wanted(f"batched {label}"):
            compare(bench, label, (b,), m, n, k, "A@B")
    for form in ("A@B", "A@B.T"):
        m, n, k = BY_VECTOR
        label = f"{m}x{n}x{k} {form}"
        if bench.wanted(f"vector {label}"):
            compare_by_vector(bench, label, form)


def cases(bench: Bench, *size: object) -> dict[str, Case]:
    return {library: (library, product, *size) for library in bench.libraries}


def compare(bench: Bench, label: str, batch: tuple[int, ...], m: int, n: int, k: int,
            form: str) -> tuple[float, float]:
    """Print a line; returns (ratio to the faster peer, share of the FMA peak)."""
    machine, flops = bench.machine, 2 * m * n * k * math.prod(batch)
    seconds = bench.turns.measure({**cases(bench, batch, m, n, k, form),
                                   "peak": machine.cases["peak"]})
    peak = machine.rate("peak", seconds.pop("peak"))
    rates = {library: flops / s / 1e9 for library, s in seconds.items()}
    ratio, share = ratio_to_peers(rates), rates["uopc"] / peak
    print(f"{label:22} GFLOP/s: {shown(rates)}   ratio {ratio:.2f}   of the peak {share:.2f}",
          flush=True)
    return ratio, share


def compare_by_vector(bench: Bench, label: str, form: str) -> None:
    """Such a product reads the matrix once, so bytes per second are what it may be judged by."""
    m, n, k = BY_VECTOR
    moved = 4 * (m * k + k * n + m * n)
    seconds = bench.turns.measure({**cases(bench, (), m, n, k, form),
                                   "copy": bench.machine.copy_of(moved)})
    copied = moved / seconds.pop("copy") / 1e9
    rates = {library: moved / s / 1e9 for library, s in seconds.items()}
    print(f"{label:22} GB/s: {shown(rates)}   ratio {ratio_to_peers(rates):.2f}   to a copy of as "
          f"many bytes ({copied:.1f}) {rates['uopc'] / copied:.2f}", flush=True)


def shown(rates: dict[str, float]) -> str:
    return "  ".join(f"{library} {rate:6.1f}" for library, rate in rates.items())


def ratio_to_peers(rates: dict[str, float]) -> float:
    return rates["uopc"] / max(rate for library, rate in rates.items() if library != "uopc")
