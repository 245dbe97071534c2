"""Which kernels share their outermost loop, so that what one gives the next takes from the cache.

    for b: t[b] = f(x[b])    for b: y[b] = g(t[b])   →   for b: { t = f(x[b]);  y[b] = g(t) }

Kernels may share the loops along which each reads, of what the others give, only what the same step
has given. That is decided on the indices alone (`Access.digit`). How many steps there
are, and so how much lies between one kernel and the next, is a matter of the cache's size and of
the rows that a product needs; it may be that a loop is shared in blocks.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from uopc.linearize import ranges_below
from uopc.opt.access import Access, Digit, access
from uopc.opt.target import Target
from uopc.uop import Ops, UOp, prod


class Shared(NamedTuple):
    """A digit that is shared: `size // block` steps, of which each does `block` of them."""

    digit: Digit
    block: int


class Loops:
    """What the decision asks of a kernel's loops, over buffers that are numbered from 0."""

    def __init__(self, sink: UOp) -> None:
        self.is_plain = len(sink.src) == 1 and sink.src[0].op is Ops.END and \
            sink.src[0].src[0].op is Ops.STORE
        if not self.is_plain:
            return
        store, *loops = sink.src[0].src
        order = store.toposort()
        self.is_plain = not any(u.op is Ops.LOAD and len(u.src) > 1 for u in order)
        value = store.src[1].src[1] if store.src[1].op is Ops.WHERE else store.src[1]
        self.is_copy = value.op is Ops.LOAD
        has_reduce = any(u.op is Ops.REDUCE for u in order)
        self.loops = tuple(loops)
        self.stored = access(store.src[0])
        self.loaded: dict[int, list[Access]] = {}
        for u in order:
            if u.op is Ops.LOAD:
                self.loaded.setdefault(u.src[0].src[0].arg.slot, []).append(access(u.src[0]))
        last = next((r for r in loops if self.stored.strides.get(r) == 1), None)
        reads = [a for accesses in self.loaded.values() for a in accesses]
        self.lanes = None if any(a.strides.get(last, 1) != 1 for a in reads) else last
        used = [ranges_below(u) for u in order if u.op is Ops.INDEX and u is not store.src[0]]
        self.rows = [r for r in loops if r is not last and any(
            r in x and r not in y and n in y and n not in x
            for x in used for y in used for n in loops)] if has_reduce else []
        self.size = prod(r.arg[1] for r in loops)


@dataclass(eq=False)
class Member:
    """A kernel: its loops, and the plan's buffers by number; the one that it writes is last. Where
    it `ends` a group, its result is taken from memory."""

    loops: Loops
    buffers: Sequence[UOp]
    ends: bool = False

    @property
    def given(self) -> UOp:
        return self.buffers[-1]

    @property
    def bytes_given(self) -> int:
        return self.given.dtype.size * self.loops.size


@dataclass(eq=False)
class Axis:
    """A loop that the members share, as a digit of each one's loops."""

    size: int
    digits: list[Digit]


@dataclass(eq=False)
class Group:
    members: list[Member] = field(default_factory=list)
    axes: list[Axis] = field(default_factory=list)  # outermost first
    after: set[Group] = field(default_factory=set)  # whose results are read
    chosen: list[list[Shared]] = field(default_factory=list)  # for each member, the shared digits

    @property
    def steps(self) -> int:
        return prod(s.digit.size // s.block for s in self.chosen[0]) if self.chosen else 1

    def comes_after(self, other: Group) -> bool:
        seen, todo = set(), [self]
        while todo:
            for g in todo.pop().after - seen:
                if g is other:
                    return True
                seen.add(g)
                todo.append(g)
        return False


def share_loops(members: Sequence[Member], machine: Target) -> list[Group]:
    """The members, which come in the order of their dependences, in groups that share loops; the
    groups too come in order."""
    group_of: dict[UOp, Group] = {}  # by what it gives
    groups: dict[Group, None] = {}
    ends = {m.given for m in members if m.ends}
    for m in members:
        sources = {group_of[b] for b in m.buffers[:-1] if b in group_of}
        close = {group_of[b] for b in m.buffers[:-1] if b in group_of and b not in ends}
        group = Group([m], _own_axes(m), sources)
        for source in sorted(close, key=list(groups).index, reverse=True):
            made = _together(source, group, machine)
            for old in (source, group) if made else ():
                groups.pop(old, None)
            for other in groups:
                if made and other.after & {source, group}:
                    other.after = other.after - {source, group} | {*made}
            for new in made:
                groups[new] = None
                group_of.update((one.given, new) for one in new.members)
            group = made[-1] if made else group
        groups[group] = None
        group_of[m.given] = group
    return _in_order(list(groups))


def _in_order(groups: Sequence[Group]) -> list[Group]:
    done: dict[Group, None] = {}
    for root in groups:
        stack = [root]
        while stack:
            missing = [g for g in stack[-1].after if g not in done]
            if missing:
                stack += sorted(missing, key=groups.index)
            else:
                done[stack.pop()] = None
    return list(done)


def _own_axes(m: Member) -> list[Axis]:
    return [Axis(r.arg[1], [Digit(r, 1, r.arg[1])]) for r in m.loops.loops] \
        if m.loops.is_plain else []


def _together(first: Group, second: Group, machine: Target) -> list[Group]:
    """Two groups as one, if that is possible, and of use; else nothing. The second reads what the
    first gives. Copies may be in the way, as an operand's is that all rows of a product need: then
    they go apart, and come first, if they are less than what is passed on."""
    members = [*first.members, *second.members]
    if not all(m.loops.is_plain for m in members) or first.comes_after(second) or \
            any(g is not first and g.comes_after(first) for g in second.after):
        return []
    after = (first.after | second.after) - {first, second}
    joined = _joined(first, second, machine)
    if joined is not None:
        joined.after = after
        return [joined]
    given = {m.given for m in members}
    copies = [m for m in members if m.loops.is_copy and given.isdisjoint(m.buffers[:-1])]
    left = [m for m in members if m not in copies]
    read = {b for m in left for b in m.buffers[:-1]}
    passed = sum(m.bytes_given for m in first.members if m in left and m.given in read)
    if not left or sum(m.bytes_given for m in copies) >= passed or not copies:
        return []
    joined = Group(left[:1], _own_axes(left[0]))
    for m in left[1:]:
        joined = joined and _joined(joined, Group([m], _own_axes(m)), machine)
    if joined is None:
        return []
    apart = [Group([m], _own_axes(m), {g for g in after if any(
        one.given in m.buffers for one in g.members)}) for m in copies]
    joined.after = after | {*apart}
    return [*apart, joined]


def _joined(first: Group, second: Group, machine: Target) -> Group | None:
    """One group of both, whatever there is between them; what it comes `after` is left open."""
    members = [*first.members, *second.members]
    given = {m.given for m in first.members}
    readers = [k for k, m in enumerate(second.members) if given.intersection(m.buffers[:-1])]
    if len(members) > machine.max_members or not readers:
        return None
    axes, order = [], _early(members, len(first.members))
    for axis in first.axes:
        wanted = {k: _digit_of(axis, first, second.members[k]) for k in readers}
        theirs = [[wanted[0]]] if len(second.members) == 1 else \
            [a.digits for a in second.axes if all(a.digits[k] == d for k, d in wanted.items())]
        if None not in wanted.values() and theirs:
            digits = [*axis.digits, *theirs[0]]
            axes.append(Axis(axis.size, [digits[k] for k in order]))
    members = [members[k] for k in order]
    chosen = _choose(axes, members, machine)
    if chosen is None:
        return None
    return Group(members, axes, set(), chosen)


def _early(members: Sequence[Member], start: int) -> list[int]:
    """The order in which the members from `start` on come right after what they read, if less is
    alive at one time then."""
    order = list(range(start))
    place = {m.given: k for k, m in enumerate(members)}
    for k in range(start, len(members)):
        read = [order.index(place[b]) for b in members[k].buffers[:-1] if place.get(b, k) < k]
        order.insert(max(read, default=len(order) - 1) + 1, k)
    early = [members[k] for k in order]
    return order if _most_alive(early) < _most_alive(members) else list(range(len(members)))


def _digit_of(axis: Axis, group: Group, m: Member) -> Digit | None:
    """The axis as a digit of one of m's loops: the same one in all that it reads of the group's."""
    found: set[Digit | None] = set()
    for producer, digit in zip(group.members, axis.digits, strict=True):
        if producer.given not in m.buffers[:-1]:
            continue
        stride = producer.loops.stored.strides.get(digit.loop, 0) * digit.inner
        for read in m.loops.loaded.get(list(m.buffers).index(producer.given), []):
            fits = [read.digit(r, stride, axis.size) for r in m.loops.loops] if stride else []
            found.add(next((d for d in fits if d is not None), None))
    return found.pop() if len(found) == 1 else None


def _choose(axes: Sequence[Axis], members: Sequence[Member],
            machine: Target) -> list[list[Shared]] | None:
    """For each member what it shares; None if nothing would be gained."""
    best: list[list[Shared]] | None = None
    least: tuple[float, int] | None = None
    for depth in range(1, len(axes) + 1):
        last = axes[depth - 1].size
        for block in _divisors(last):
            chosen = [[Shared(a.digits[k], 1) for a in axes[:depth - 1]]
                      + [Shared(axes[depth - 1].digits[k], block)] for k in range(len(members))]
            cost = _cost(chosen, members, machine)
            if cost is not None and (least is None or cost < least):
                best, least = chosen, cost
    return best


def _divisors(n: int) -> list[int]:
    """Those below `n`."""
    low = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return [d for d in sorted({*low, *(n // d for d in low)}) if d < n]


def size_in_step(m: Member, shared: Sequence[Shared]) -> int:
    """Elements from the first to the last that a step stores."""
    last = 0
    for r, stride in m.loops.stored.strides.items():
        last += stride * (r.arg[1] - 1)
        for s in shared:
            if s.digit.loop is r:
                last -= stride * s.digit.inner * (s.digit.size - s.block)
    return last + 1


def _cost(chosen: Sequence[Sequence[Shared]], members: Sequence[Member],
          machine: Target) -> tuple[float, int] | None:
    """To be as low as possible: bytes or wasted time, then steps. None where it is not worth it."""
    steps = prod(s.digit.size // s.block for s in chosen[0])
    between = _most_alive(members) // steps
    products = [(m, c) for m, c in zip(members, chosen, strict=True) if m.loops.rows]
    read = {b for m in members for b in m.buffers[:-1]}
    local = sum(size_in_step(m, c) * m.given.dtype.size
                for m, c in zip(members, chosen, strict=True) if m.given in read)
    if steps < machine.min_shared_steps or between > machine.max_between or \
            local > machine.max_local:
        return None
    largest = max(m.loops.size for m in members)
    for m, parts in zip(members, chosen, strict=True):
        left = {r: r.arg[1] for r in m.loops.loops}
        for s in parts:
            left[s.digit.loop] //= s.digit.size // s.block
        if m.loops.lanes is not None and m.loops.size * machine.small_part > largest and \
                left[m.loops.lanes] < min(m.loops.lanes.arg[1], machine.min_shared_lanes):
            return None
    if not products:
        return max(between, machine.small_cache // 2), steps
    waste = 0.0
    for m, parts in products:
        rows = prod(r.arg[1] for r in m.loops.rows)
        for s in parts:
            if s.digit.loop in m.loops.rows:
                rows //= s.digit.size // s.block
        if rows < min(machine.min_shared_rows, prod(r.arg[1] for r in m.loops.rows)):
            return None
        waste += _tile_cost(rows, machine.tile[0])
    return waste, steps


def _most_alive(members: Sequence[Member]) -> int:
    """The most bytes of what members give that are there at one time: each from the member that
    gives it to the last that reads it."""
    last = {m.given: k for k, m in enumerate(members)}
    for k, m in enumerate(members):
        last.update(dict.fromkeys((b for b in m.buffers[:-1] if b in last), k))
    change = [0] * (len(members) + 1)
    for k, m in enumerate(members):
        size = m.bytes_given if last[m.given] > k else 0
        change[k] += size
        change[last[m.given] + 1] -= size
    return max(accumulate(change))


def _tile_cost(rows: int, height: int) -> float:
    """The time of a row in tiles of `height` rows and what is left: a low tile waits for its
    additions."""
    whole, rest = divmod(rows, height)
    return (whole * height + (max(rest, height - 2) if rest else 0)) / rows
