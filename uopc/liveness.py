"""Where a plan's temporaries lie: those that are not alive together share memory.

Kernels run in steps, the phases of a plan, those of one step at the same time. A temporary is alive
from the step that writes it to the last one that reads it, both included, so whatever is used in
one step never overlaps. In a kernel whose members share a loop (`emit.py`) each member is a step.

    k0: t0 = f(x)    k1: t1 = g(t0)    k2: t2 = h(t1)   →  t0 and t2 start at 0, t1 behind them
"""
from __future__ import annotations

from collections.abc import Sequence

from uopc.memory import LINE

Use = Sequence[int]  # the temporaries that a step's kernels read or write


def lifetimes(uses: Sequence[Use]) -> dict[int, tuple[int, int]]:
    """For each temporary its (first, last) step."""
    found: dict[int, tuple[int, int]] = {}
    for k, used in enumerate(uses):
        for t in used:
            found[t] = (found.get(t, (k, k))[0], k)
    return found


def place(sizes: Sequence[int], uses: Sequence[Use]) -> tuple[list[int], int]:
    """(the offset of each temporary, the bytes that all need together), from their sizes in bytes
    and what each step uses. At each step a new one takes the smallest gap that it fits into;
    offsets are multiples of a line of the cache."""
    alive = lifetimes(uses)
    offsets, end = [0] * len(sizes), 0
    gaps: list[tuple[int, int]] = []  # (offset, size), by offset, none next to another
    for k, used in enumerate(uses):
        for t in dict.fromkeys(used):
            if alive[t][0] != k:
                continue
            size = -(-sizes[t] // LINE) * LINE
            fitting = [g for g in gaps if g[1] >= size]
            if fitting:
                gap = min(fitting, key=lambda g: g[1])
                offsets[t] = gap[0]
                gaps.remove(gap)
                gaps += [(gap[0] + size, gap[1] - size)] if gap[1] > size else []
                continue
            start = end
            if gaps and sum(max(gaps)) == end:  # the last gap can be made larger
                start = gaps.pop(gaps.index(max(gaps)))[0]
            offsets[t], end = start, start + size
        for t in dict.fromkeys(used):
            if alive[t][1] == k:
                gaps = _with_gap(gaps, offsets[t], -(-sizes[t] // LINE) * LINE)
    return offsets, end


def _with_gap(gaps: list[tuple[int, int]], start: int, size: int) -> list[tuple[int, int]]:
    """The gaps and one more, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for gap in sorted([*gaps, (start, size)]):
        if joined and sum(joined[-1]) == gap[0]:
            joined[-1] = (joined[-1][0], joined[-1][1] + gap[1])
        elif gap[1]:
            joined.append(gap)
    return joined
