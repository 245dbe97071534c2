"""Reductions become accumulators. In: loops with REDUCE over ranges. Out: loops in which no REDUCE
over a loop is left.

    REDUCE(value, r) op ADD  →  acc = 0; for r: acc = acc + value; then acc is read once

An accumulator lives in the loops that its result depends on. Reductions over the same ranges (the
copies of an unrolled one) share their loop. Of a reduction over vector lanes a REDUCE of the
accumulator's lanes is left, for the renderer to write out.
"""
from __future__ import annotations

from uopc.linearize import loops, open_ranges
from uopc.uop import IDENTITY, Ops, UOp


def place_accumulators(sink: UOp) -> UOp:
    groups: dict[tuple[UOp, ...], list[UOp]] = {}
    for node in sink.toposort():
        if node.op is Ops.REDUCE:
            groups.setdefault(tuple(loops(node)), []).append(node)
    done: dict[UOp, UOp] = {}
    number = 0
    for node in _grouped_order(sink, groups):
        if node in done:
            continue
        if node.op is not Ops.REDUCE or not loops(node):
            done[node] = node.replace(src=tuple(done[s] for s in node.src))
            continue
        group = groups[tuple(loops(node))]
        members = [u.replace(src=tuple(done[s] for s in u.src)) for u in group]
        done.update(zip(group, _accumulate(members, number), strict=True))
        number += len(group)
    return done[sink]


def _grouped_order(sink: UOp, groups: dict[tuple[UOp, ...], list[UOp]]) -> list[UOp]:
    """A toposort in which a reduction comes after the sources of all that share its loops."""
    order: list[UOp] = []
    seen: set[UOp] = set()
    stack = [(sink, False)]
    while stack:
        node, sources_done = stack.pop()
        if sources_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            sharing = [node]
            if node.op is Ops.REDUCE and loops(node):
                sharing = groups[tuple(loops(node))]
            stack.extend((s, False) for u in reversed(sharing) for s in reversed(u.src)
                         if s not in seen)
    return order


def _accumulate(members: list[UOp], number: int) -> list[UOp]:
    """The results of reductions that share their loops, each with an accumulator of its own."""
    ranges = loops(members[0])
    accs, updates = [], []
    for k, u in enumerate(members):
        outer = open_ranges(u.src[0])[u.src[0]] - set(ranges)
        acc = UOp(Ops.ACC, tuple(sorted(outer, key=lambda r: r.arg[0])), (number + k, u.dtype))
        start = UOp.const(IDENTITY[u.arg](u.dtype), u.dtype)
        initialized = UOp(Ops.STORE, (acc, start))
        so_far = UOp(Ops.LOAD, (acc, initialized, *ranges))
        updates.append(UOp(Ops.STORE, (acc, so_far.alu(u.arg, u.src[0]))))
        accs.append(acc)
    body = updates[0] if len(updates) == 1 else UOp(Ops.GROUP, tuple(updates))
    end = UOp(Ops.END, (body, *ranges))
    results = []
    for acc, u in zip(accs, members, strict=True):
        total = UOp(Ops.LOAD, (acc, end))
        lanes = [r for r in u.src[1:] if r not in ranges]
        results.append(UOp(Ops.REDUCE, (total, *lanes), u.arg) if lanes else total)
    return results
