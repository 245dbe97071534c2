"""What a memory access does along the loops: all that the decisions about loops rest on.

    INDEX(data, r0*384 + r1*64 + r2//16*8 + 5)
    →  strides {r0: 384, r1: 64}, others [(r2//16, 8)], constant 5
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from uopc.bounds import bounds
from uopc.linearize import ranges_below
from uopc.simplify import linear
from uopc.uop import Ops, UOp, per_node


class Digit(NamedTuple):
    """`loop // inner % size`: an axis as a part of a kernel's loop."""

    loop: UOp
    inner: int
    size: int


class Access:
    """An INDEX as the sum of `strides` times ranges, of `others` (a term and its factor), and of a
    `constant`. `conditions` are comparisons that hold wherever it is used."""

    def __init__(self, index: UOp) -> None:
        _, flat, *gate = index.src
        parts = linear(flat)
        terms, self.constant = parts if parts is not None else ([(flat, 1)], 0)
        self.strides: dict[UOp, int] = {}
        self.others: list[tuple[UOp, int]] = []
        for u, factor in terms:
            r = u.src[0] if u.op is Ops.CAST else u
            if r.op is Ops.RANGE:
                self.strides[r] = self.strides.get(r, 0) + factor
            else:
                self.others.append((u, factor))
        self.gate = gate[0] if gate else None
        self.conditions = [c for c in self.gate.toposort(stop=lambda u: u.op is not Ops.AND)
                           if c.op is Ops.CMPLT] if gate else []

    def stride(self, r: UOp) -> int | None:
        """By how much the index grows with each step of `r`; None if that is not one number."""
        return None if any(r in ranges_below(u) for u, _ in self.others) else \
            self.strides.get(r, 0)

    def lane_stride(self, r: UOp) -> int | None:
        """The same, but None where `r` decides whether the element is there at all."""
        return None if self.gate is not None and r in ranges_below(self.gate) else self.stride(r)

    def digit(self, loop: UOp, stride: int, size: int) -> Digit | None:
        """The part of `loop` that steps by `stride`, if it is a digit of the index: all the other
        terms are multiples of stride * size, or stay between 0 and stride."""
        own = self.strides.get(loop, 0)
        if own <= 0 or stride % own or any(loop in ranges_below(u) for u, _ in self.others):
            return None
        inner, whole = stride // own, loop.arg[1]
        if whole % (inner * size):
            return None
        below = [(0, own * (inner - 1))] if inner > 1 else []
        terms = {u: f for u, f in [*self.strides.items(), *self.others] if u is not loop}
        small = {u: f for u, f in terms.items() if f % (stride * size)}
        below += self._spread(small)
        low, high = (sum(b[side] for b in below) + self.constant % (stride * size)
                     for side in (0, 1))
        return Digit(loop, inner, size) if low >= 0 and high < stride else None

    def _spread(self, terms: dict[UOp, int]) -> Iterator[tuple[int, int]]:
        """Least and greatest of some of the terms, where the index is used at all."""
        terms = dict(terms)
        for condition in self.conditions:
            limited = linear(condition.src[0])
            if limited is None or condition.src[1].op is not Ops.CONST or not limited[0]:
                continue
            found = [(u.src[0] if u.op is Ops.CAST else u, f) for u, f in limited[0]]
            times = {terms.get(u, 0) / f for u, f in found}
            if len(times) == 1 and min(times) > 0 and min(f for _, f in found) > 0:
                (factor,) = times
                most = condition.src[1].arg.value - 1 - limited[1]
                yield 0, int(factor * most)
                for u, _ in found:
                    del terms[u]
        for u, factor in terms.items():
            yield tuple(sorted(factor * b for b in bounds(u)))


@per_node
def access(index: UOp) -> Access:
    """Of an INDEX. Remembered."""
    return Access(index)
