"""Expressions that are bound by memory: GB/s, each array counted once each way."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from libraries import call_of, wrap
from machine import LARGE, Bench


def largest(t: Any, axis: int) -> Any:
    """PyTorch's `max` would look for the indices too."""
    return t.amax(axis) if hasattr(t, "amax") else t.max(axis)


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


EXPRESSIONS = {  # name → (shape, how often its size is moved, the expression, NumPy's)
    "(a*2+1).relu()*3": ((LARGE,), 2, lambda t: (t * 2 + 1).relu() * 3,
                         lambda a: np.maximum(a * 2 + 1, 0) * 3),
    "sum": ((LARGE,), 1, lambda t: t.sum(), np.sum),
    "max over rows": ((4096, 4096), 1, lambda t: largest(t, 1), lambda a: a.max(1)),
    "max over columns": ((4096, 4096), 1, lambda t: largest(t, 0), lambda a: a.max(0)),
    "transpose": ((4096, 4096), 2, lambda t: t.T.contiguous(),
                  lambda a: np.ascontiguousarray(a.T)),
    "exp": ((LARGE,), 2, lambda t: t.exp(), np.exp),
    "softmax 512x512": ((512, 512), 2, lambda t: t.softmax(-1), numpy_softmax),
}


def expression(library: str, name: str) -> Callable[[], object]:
    shape, _, of_tensors, of_arrays = EXPRESSIONS[name]
    x = wrap(library, np.random.default_rng(0).standard_normal(shape, np.float32))
    function = of_arrays if library == "numpy" else of_tensors
    return call_of(library, lambda: function(x))


def run(bench: Bench) -> None:
    """The copy beside them is of 64 MiB, or of as many bytes where the caches hold them."""
    libraries, machine = bench.libraries, bench.machine
    for name, (shape, times, *_) in EXPRESSIONS.items():
        if not bench.wanted(f"memory {name}"):
            continue
        moved = times * 4 * int(np.prod(shape))
        large = max(shape) >= 4096
        cases = {library: (library, expression, name) for library in libraries}
        seconds = bench.turns.measure({**cases, "copy": machine.cases["copy"] if large
                                       else machine.copy_of(moved)})
        copied = machine.rate("copy", seconds["copy"]) if large else moved / seconds["copy"] / 1e9
        rates = {library: moved / seconds[library] / 1e9 for library in libraries}
        shown = "  ".join(f"{library} {rate:5.1f}" for library, rate in rates.items())
        peers = ", ".join(f"to {library} {rates['uopc'] / rate:.2f}"
                          for library, rate in rates.items() if library != "uopc")
        print(f"{name:18} GB/s: {shown}  copy {copied:5.1f}   ratio to the copy "
              f"{rates['uopc'] / copied:.2f}, {peers}", flush=True)
