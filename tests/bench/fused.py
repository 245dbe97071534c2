"""Where the cut between kernels matters: a LayerNorm before a product, and an embedding's rows."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from libraries import plan_call, wrap
from machine import Bench

N = 512
EPS = 1e-5
TOKENS, CHANNELS = 768, 128
VOCABULARIES = (65, 50_257)
NORM_CASES = {  # label → (library, level, what is staged)
    "level 0": ("uopc", 0, "packed"),
    "packed": ("uopc", 1, "packed"),
    "staged": ("uopc", 1, "staged"),
    "not staged": ("uopc", 1, "not staged"),
    "torch": ("torch", None, ""),
}
NORM_NOTE = """\
  level 1 as it is stages the normalized rows in the order in which the product reads them
  ("packed"). "staged": packing is kept from the rows, so stage_broadcast_compute stages them as
  they are. "not staged": nor that, so each tile of the product normalizes its rows again. The
  right operand is packed in all three. torch is F.layer_norm(x) @ w, eager."""


def norm_product(library: str, level: int | None, staging: str) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    x, w = (wrap(library, rng.standard_normal((N, N), np.float32)) for _ in range(2))
    if library == "torch":
        from torch.nn.functional import layer_norm
        return lambda: layer_norm(x, (N,), eps=EPS) @ w
    deviation = x - x.mean(-1, keepdim=True)
    variance = deviation.square().mean(-1, keepdim=True)
    y = (deviation * (variance + EPS).rsqrt()) @ w

    from uopc import kernelize
    from uopc.opt import layout
    with mock.patch.object(layout, "_packed", layout._packed if staging == "packed"
                           else only_memory(layout._packed)):
        if staging != "not staged":
            return plan_call([y.uop], level)
        with mock.patch.object(kernelize, "stage_broadcast_compute", lambda roots: roots):
            return plan_call([y.uop], level)


def only_memory(packed: Callable[..., Any]) -> Callable[..., Any]:
    """`layout._packed` that leaves operands alone which are computed."""
    from uopc.ops import MOVEMENT
    from uopc.uop import Ops

    def chosen(x: Any, *more: Any) -> Any:
        base = x
        while base.op in MOVEMENT:
            base = base.src[0]
        return packed(x, *more) if base.op is Ops.BUFFER else None
    return chosen


def embedding(library: str, vocabulary: int, whole: bool) -> Callable[[], object]:
    """The sum of the squares of rows of a table, and the table's gradient: as a user calls it, or
    (for uopc, not `whole`) the plan's run alone."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((vocabulary, CHANNELS), np.float32)
    index = rng.integers(0, vocabulary, TOKENS, np.int32)
    table = wrap(library, weight)
    table.requires_grad = True

    def built() -> Any:
        table.grad = None
        loss = table[wrap(library, index)].square().sum()
        loss.backward()
        return loss

    if library == "torch":
        return built
    from uopc.tensor import Tensor
    return (lambda: Tensor.realize_all(built(), table.grad)) if whole \
        else plan_call([built().uop, table.grad.uop])


def run(bench: Bench) -> None:
    if bench.wanted("layernorm"):
        run_norm(bench)
    if bench.wanted("embedding"):
        run_embedding(bench)


def run_norm(bench: Bench) -> None:
    cases = {label: (library, norm_product, *how) for label, (library, *how) in NORM_CASES.items()
             if library in bench.libraries}
    seconds = bench.turns.measure({**cases, "peak": bench.machine.cases["peak"]})
    peak = bench.machine.rate("peak", seconds.pop("peak"))
    print(f"LayerNorm {N}x{N} @ {N}x{N}")
    print(NORM_NOTE)
    for label, s in seconds.items():
        rate = 2 * N ** 3 / s / 1e9
        print(f"  {label:11} {s * 1e3:8.3f} ms  {rate:6.1f} GFLOP/s of the product alone, of the "
              f"peak {rate / peak:.3f}   time to that of packed {s / seconds['packed']:.2f}",
              flush=True)


def run_embedding(bench: Bench) -> None:
    ways = {"user": ("uopc", True), "plan": ("uopc", False), "torch": ("torch", True)}
    cases = {f"{way} {v}": (library, embedding, v, whole)
             for way, (library, whole) in ways.items() if library in bench.libraries
             for v in VOCABULARIES}
    seconds = bench.turns.measure(cases)
    few, many = VOCABULARIES
    print(f"embedding, {TOKENS} tokens of {CHANNELS} channels, sum of squares and the table's "
          f"gradient, vocabulary {few} and {many}")
    for way, (library, _) in ways.items():
        if library in bench.libraries:
            a, b = (seconds[f"{way} {v}"] for v in VOCABULARIES)
            what = {"user": "uopc, graph built anew", "plan": "uopc, the plan's run",
                    "torch": "torch, eager"}[way]
            print(f"  {what:24} {a * 1e3:8.3f} ms  {b * 1e3:8.3f} ms   ratio {b / a:.2f}",
                  flush=True)
