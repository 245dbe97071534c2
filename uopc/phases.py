"""Which kernels of a plan may run at the same time, and which share memory for what they give.

A kernel's phase comes after those of all that it reads. One that reads nothing but the plan's
inputs runs in the last phase before its result is needed, so that it does not lie in wait.

    k0: t0 = f(x)    k1: t1 = g(y)    k2: t2 = h(t0)    k3: t3 = i(t1, t2)
    →  {k0}, {k1, k2}, {k3}
"""
from __future__ import annotations

from collections.abc import Sequence

Ref = tuple[str, int]  # ("in", i), ("tmp", j) or ("out", r)
Use = tuple[Sequence[Ref], Sequence[Ref]]  # what a kernel reads, what it writes


def phases(uses: Sequence[Use]) -> list[list[int]]:
    """The kernels' numbers, phase by phase, each in order."""
    after: dict[Ref, int] = {}  # the first phase that may read it
    phase = []
    for reads, writes in uses:
        phase.append(max((after.get(r, 0) for r in reads), default=0))
        after.update(dict.fromkeys(writes, phase[-1] + 1))
    needed: dict[Ref, int] = {}  # the first phase that does read it
    for k in reversed(range(len(uses))):
        reads, writes = uses[k]
        if all(kind == "in" for kind, _ in reads):
            phase[k] = min((needed[w] for w in writes if w in needed), default=phase[k] + 1) - 1
        for r in reads:
            needed[r] = min(phase[k], needed.get(r, phase[k]))
    found: list[list[int]] = [[] for _ in range(max(phase, default=-1) + 1)]
    for k, p in enumerate(phase):
        found[p].append(k)
    return [p for p in found if p]
