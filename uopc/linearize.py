"""Loops as a graph → a list of steps in the order in which a program takes them.

Every statement goes into the outermost loop that its operands allow, what a loop ends with into
that loop; and within a loop statements keep their topological order. An inner loop counts as one
statement, standing where its END does; among plain loops, what can run before it comes first. What
a loop computes side by side, for several vectors that do not depend on each other, advances
together: a processor looks only so far ahead, and one long polynomial would fill its view.

    END(STORE(..r0..r1..), r0, r1)  →  open r0, open r1, do STORE, close r1, close r0
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from uopc.ops import ALU
from uopc.uop import VECTOR, Ops, UOp, kind, per_node

MAX_NESTING = 60  # of one inlined expression; clang refuses more than 256 brackets
SIDE_BY_SIDE = 40  # operations on floats, from which on several vectors advance together
REPEATING = frozenset({Ops.MAX, Ops.MAXIMUM, Ops.REDUCE})  # C names their operands twice


class Step(NamedTuple):
    kind: Literal["open", "do", "close"]
    node: UOp  # a RANGE for open and close, else a statement


def ranges_below(u: UOp) -> frozenset[UOp]:
    """All RANGEs that `u` is made of, whether or not their loops are closed. Remembered."""
    if u.op is Ops.RANGE:
        return frozenset((u,))
    found = u.__dict__.get("ranges")
    if found is None:
        for node in u.toposort(stop=lambda s: "ranges" in s.__dict__ or s.op is Ops.RANGE):
            if node.op is not Ops.RANGE and "ranges" not in node.__dict__:
                node.__dict__["ranges"] = frozenset().union(*map(ranges_below, node.src))
        found = u.__dict__["ranges"]
    return found


def open_ranges(root: UOp) -> dict[UOp, frozenset[UOp]]:
    """For each node below `root`, the loops it has to be inside of."""
    inside: dict[UOp, frozenset[UOp]] = {}
    for node in root.toposort():
        if node.op is Ops.RANGE:
            inside[node] = frozenset((node,))
        else:
            below = frozenset().union(*[inside[s] for s in node.src])
            closes = node.op in (Ops.END, Ops.REDUCE)
            inside[node] = below - set(node.src[1:]) if closes else below
    return inside


@per_node
def side_by_side(sink: UOp) -> set[UOp]:
    """All that long bodies of loops are made of which store several results. Remembered."""
    found: set[UOp] = set()
    for end in sink.toposort():
        if end.op is Ops.END and end.src[0].op is Ops.GROUP and not any(
                s.op is Ops.GROUP or s.op is Ops.END and loops(s) for s in end.src[0].src):
            body = end.src[0].toposort()
            if not any(u.op in (Ops.ACC, Ops.REDUCE) for u in body) and \
                    sum(u.op in ALU and u.dtype.is_float for u in body) >= SIDE_BY_SIDE:
                found.update(body)
    return found


@per_node
def statements(sink: UOp) -> set[UOp]:
    """The nodes that become a line of their own: memory accesses, accumulators, and ALU values
    that are used more than once, would nest too deeply, or advance side by side. Remembered."""
    order, together = sink.toposort(), side_by_side(sink)
    uses: Counter[UOp] = Counter({sink: 1})
    for node in reversed(order):
        if node.op in ALU and not uses[node]:
            continue  # an address that nothing spells out
        times = uses[node] if node.op is Ops.INDEX else 2 if node.op in REPEATING else 1
        for s in operands(node):
            uses[s] += times
    chosen: set[UOp] = set()
    depth: dict[UOp, int] = {}
    for node in order:
        depth[node] = 1 + max((depth[s] for s in node.src), default=0)
        is_short = node in together and node.op in ALU and node.dtype.is_float
        if node.op in (Ops.LOAD, Ops.STORE, Ops.ACC, Ops.REDUCE) or (node.op in ALU and (
                uses[node] > 1 or depth[node] > (2 if is_short else MAX_NESTING))):
            chosen.add(node)
            depth[node] = 0
    return chosen


def operands(u: UOp) -> tuple[UOp, ...]:
    """What the text of `u` contains: of a contiguous vector access, where it starts."""
    start = contiguous_start(u)
    return u.src if start is None else (u.src[0], start, *u.src[2:])


def contiguous_start(u: UOp) -> UOp | None:
    """`base` of INDEX(buffer, base + lane); None for any other node."""
    if u.op is not Ops.INDEX or u.src[1].op is not Ops.ADD:
        return None
    base, lane = u.src[1].src
    lane = lane.src[0] if lane.op is Ops.CAST else lane
    is_lane = lane.op is Ops.RANGE and kind(lane) == VECTOR
    return base if is_lane and lane not in ranges_below(base) else None


def linearize(sink: UOp) -> list[Step]:
    """The steps of the program. Raises ValueError when loops would have to cross."""
    order = sink.toposort()
    inside = {u: frozenset(r for r in ranges if kind(r) != VECTOR)
              for u, ranges in open_ranges(sink).items()}  # lanes are no loop
    for node in reversed(order):  # a body is inside of its loops, whether or not it counts on them
        if node.op in (Ops.END, Ops.GROUP):
            around = inside[node].union(loops(node)) if node.op is Ops.END else inside[node]
            for body in node.src[:1] if node.op is Ops.END else node.src:
                inside[body] |= around
    path = _nesting(order, inside)
    lines, together = statements(sink), side_by_side(sink)
    blocks: dict[UOp | None, list[UOp]] = {None: []}
    for node in order:
        if node.op is Ops.END:
            outer = _deepest(inside[node], path)
            for r in loops(node):
                blocks.setdefault(outer, []).append(r)
                outer = r
        elif node in lines:
            blocks.setdefault(_deepest(inside[node], path), []).append(node)
    level: dict[UOp, int] = {}
    for node in order:
        level[node] = max((level[s] for s in node.src), default=0) + (node in lines)
    for block in blocks.values():
        if together.issuperset(block) and not any(node.op is Ops.RANGE for node in block):
            block.sort(key=level.__getitem__)
    if not any(u.op is Ops.RANGE and kind(u) for u in order):
        _put_before_loops(order, blocks.values())
    steps: list[Step] = []
    stack = [iter(blocks[None])]
    opened: list[UOp] = []
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            if opened:
                steps.append(Step("close", opened.pop()))
        elif node.op is Ops.RANGE:
            steps.append(Step("open", node))
            opened.append(node)
            stack.append(iter(blocks.get(node, ())))
        else:
            steps.append(Step("do", node))
    return steps


def _put_before_loops(order: list[UOp], blocks: Iterable[list[UOp]]) -> None:
    """Move each statement of a block before the inner loops that do not have to run before it.
    Loops that are tiled for a machine stay as they are: what an epilogue loads would hold
    registers that the accumulators need.

    for r1: (acc0 ..); val = load c; acc1 ..  →  val = load c; for r1: (acc0 ..); acc1 ..
    """
    done: dict[UOp, frozenset[UOp]] = {}  # the loops that have to run before a node
    for u in order:
        before = frozenset().union(*[done[s] for s in u.src])
        done[u] = before.union(loops(u)) if u.op is Ops.END else before
    for block in blocks:
        place = {r: k for k, r in enumerate([u for u in block if u.op is Ops.RANGE], 1)}
        block.sort(key=lambda u, place=place: (place[u], 0) if u in place else
                   (max((place[r] for r in done[u] if r in place), default=0), 1))


def loops(end: UOp) -> list[UOp]:
    """The loops that an END (or a REDUCE) closes, outermost first."""
    return [r for r in end.src[1:] if kind(r) != VECTOR]


def _nesting(order: list[UOp], inside: dict[UOp, frozenset[UOp]]) -> dict[UOp, tuple[UOp, ...]]:
    """For each RANGE, the loops around it and itself, outermost first."""
    path: dict[UOp, tuple[UOp, ...]] = {}
    for node in reversed(order):  # an outer END comes after the inner ones
        if node.op is Ops.END:
            outer = _deepest(inside[node], path)
            around = path[outer] if outer is not None else ()
            for r in loops(node):
                around = (*around, r)
                path[r] = around
    return path


def _deepest(ranges: frozenset[UOp], path: dict[UOp, tuple[UOp, ...]]) -> UOp | None:
    if not ranges:
        return None
    deepest = max(ranges, key=lambda r: len(path[r]))
    if not ranges <= set(path[deepest]):
        numbers = sorted(r.arg[0] for r in ranges)
        raise ValueError(f"ranges {numbers} are needed together, but their loops do not nest")
    return deepest
