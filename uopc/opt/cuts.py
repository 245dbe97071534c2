"""Loops cut where their body changes its form, so that every part is regular.

    at panels    a loop r that an index takes apart, as in r // 16 and r % 16, becomes two
    at gates     a loop along which a condition r*16 + s < 65 goes from true to false becomes
                 the part where it holds, the part where it does not, and the step between
"""
from __future__ import annotations

from collections.abc import Iterator

from uopc.bounds import bounds
from uopc.opt.target import Target
from uopc.opt.transform import Nest, Numbers, partition, pieces, split
from uopc.opt.vectorize import cut_tail, lanes_along
from uopc.simplify import linear
from uopc.uop import Ops, UOp

MAX_PARTS = 9  # of one nest: padding on both sides of two axes


def regular_parts(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    """The nest as parts in which no loop has to be cut any more."""
    at_panels = _at_panels(nest, numbers, machine)
    parts = [p for part in at_panels for p in _at_gates(part, numbers)]
    return parts if len(parts) <= MAX_PARTS else at_panels


def _at_panels(nest: Nest, numbers: Numbers, machine: Target) -> list[Nest]:
    for place, r in enumerate(nest.loops):
        cuts = {u.src[1].arg.value for u in nest.store.toposort()
                if u.op in (Ops.IDIV, Ops.MOD) and u.src[0] in (r, r.cast(u.dtype))
                and u.src[1].op is Ops.CONST}
        cut = max((c for c in cuts if 1 < c < r.arg[1]), default=None)
        if cut is None:
            continue
        whole, lanes = r.arg[1] // cut * cut, lanes_along(nest, r, machine)
        tail = []
        if lanes is not None and 0 < r.arg[1] - whole < lanes:
            nest, rest = cut_tail(nest, r, whole, lanes, numbers)
            tail = _at_panels(rest, numbers, machine)
        parts = []
        for part, step in pieces(nest, nest.loops[place], cut, numbers):
            if step == cut:
                part, _, _ = split(part, part.loops[place], cut, numbers)
            parts += _at_panels(part, numbers, machine)
        return parts + tail
    return [nest]


def _at_gates(nest: Nest, numbers: Numbers) -> list[Nest]:
    for condition in nest.store.toposort():
        if condition.op is Ops.CMPLT and condition.src[0].dtype.is_int:
            for r, at in _changes(condition, nest.loops):
                return [p for part in partition(nest, r, at, numbers)
                        for p in _at_gates(part, numbers)]
    return [nest]


def _changes(condition: UOp, loops: tuple[UOp, ...]) -> Iterator[tuple[UOp, int]]:
    """Loops and their steps from which on `a < b` is decided, or not any more.

    Only loops that decide it alone but for one step: factor*r + rest < 0 where |factor| exceeds
    the spread of the rest.
    """
    sides = [linear(s) for s in condition.src]
    if None in sides:
        return
    terms = [*sides[0][0], *[(u, -factor) for u, factor in sides[1][0]]]
    constant = sides[0][1] - sides[1][1]
    for k, (u, factor) in enumerate(terms):
        r = u.src[0] if u.op is Ops.CAST else u
        if r not in loops:
            continue
        corners = [sorted(f * b for b in bounds(s)) for s, f in terms[:k] + terms[k + 1:]]
        low, high = (constant + sum(c[side] for c in corners) for side in (0, 1))
        if high - low >= abs(factor):
            continue
        # the first steps that are not in the same state as the ones before: ceil(-x / factor)
        ends = {-(x // factor) if factor > 0 else x // -factor + 1 for x in (high, low)}
        yield from ((r, at) for at in sorted(ends) if 0 < at < r.arg[1])
