"""Transforms of loops: each small, each keeping the meaning, each usable with any other.

A Nest is one STORE and the loops around it, outermost first. Reductions inside the stored value
have loops of their own, which `split_reduce` reaches.

    split(r, 4)        for r < 12: S(r)       →  for ro < 3: for ri < 4: S(ro*4 + ri)
    partition(r, 8)    for r < 13: S(r)       →  for r' < 8: S(r');  for r'' < 5: S(8 + r'')
    merge(a, b)        for a < 3: for b < 4: S(a*4 + b)  →  for r < 12: S(r)
    mark(r, kind)      the same loop, to be run by threads, unrolled, or as vector lanes
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from uopc.dtype import dtypes
from uopc.linearize import ranges_below
from uopc.simplify import linear, simplify
from uopc.uop import THREAD, UNROLL, VECTOR, Ops, UOp, kind


class Numbers:
    """Fresh RANGEs for one kernel."""

    def __init__(self, kernel: UOp) -> None:
        used = [u.arg[0] for u in kernel.toposort() if u.op is Ops.RANGE]
        self._next = count(max(used, default=-1) + 1)

    def range(self, size: int, *mark: object) -> UOp:
        return UOp(Ops.RANGE, (), (next(self._next), size, *mark))


@dataclass(frozen=True)
class Nest:
    store: UOp
    loops: tuple[UOp, ...]

    def end(self) -> UOp:
        loops = [r for r in self.loops if r.arg[1] != 1 or r in ranges_below(self.store)]
        return UOp(Ops.END, (self.store, *loops)) if loops else self.store

    def replaced(self, mapping: dict[UOp, UOp], loops: tuple[UOp, ...]) -> Nest:
        """The nest with ranges replaced in its store, simplified, under other loops."""
        return Nest(simplify(self.store.substitute(mapping)), loops)

    def reduces(self) -> list[UOp]:
        return [u for u in self.store.toposort() if u.op is Ops.REDUCE]


def split(nest: Nest, r: UOp, factor: int, numbers: Numbers,
          *how: object) -> tuple[Nest, UOp | None, UOp]:
    """r → ro*factor + ri, ri just inside of ro and marked. `factor` must divide the size.

    Returns the nest, ro (None if it would have one step) and ri.
    """
    outer, inner = numbers.range(r.arg[1] // factor), numbers.range(factor, *how)
    position = nest.loops.index(r)
    alone = r.arg[1] == factor
    joined = inner.cast(r.dtype) if alone else _joined(r, outer, factor, inner)
    new = (inner,) if alone else (outer, inner)
    loops = (*nest.loops[:position], *new, *nest.loops[position + 1:])
    return nest.replaced({r: joined}, loops), None if alone else outer, inner


def _joined(r: UOp, outer: UOp, factor: int, inner: UOp) -> UOp:
    return outer.cast(r.dtype) * factor + inner.cast(r.dtype)


def split_reduce(nest: Nest, r: UOp, factor: int, numbers: Numbers,
                 *how: object) -> tuple[Nest, UOp | None, UOp]:
    """The same for a range of a reduction."""
    reduce = reduce_over(nest, r)
    outer, inner = numbers.range(r.arg[1] // factor), numbers.range(factor, *how)
    alone = r.arg[1] == factor
    joined = inner.cast(r.dtype) if alone else _joined(r, outer, factor, inner)
    new = (inner,) if alone else (outer, inner)
    ranges = [p for s in reduce.src[1:] for p in (new if s is r else (s,))]
    changed = UOp(Ops.REDUCE, (reduce.src[0].substitute({r: joined}), *ranges), reduce.arg)
    return nest.replaced({reduce: changed}, nest.loops), None if alone else outer, inner


def reduce_over(nest: Nest, r: UOp) -> UOp:
    return next(u for u in nest.reduces() if r in u.src[1:])


def partition(nest: Nest, r: UOp, at: int, numbers: Numbers,
              *how: object) -> tuple[Nest, Nest]:
    """Two nests: r below `at`, and r from there on, marked. All their loops are distinct."""
    low, high = numbers.range(at), numbers.range(r.arg[1] - at, *how)
    first = _renumbered(nest, {r: low.cast(r.dtype)}, {r: low}, numbers)
    second = _renumbered(nest, {r: high.cast(r.dtype) + at}, {r: high}, numbers)
    return first, second


def _renumbered(nest: Nest, values: dict[UOp, UOp], loops: dict[UOp, UOp],
                numbers: Numbers) -> Nest:
    around = [s for s in ranges_below(nest.store) if kind(s) == THREAD and s not in nest.loops]
    ranges = sorted({*ranges_below(nest.store), *nest.loops}.difference(around),
                    key=lambda s: s.arg[0])
    fresh = {s: numbers.range(s.arg[1], *s.arg[2:]) for s in ranges if s not in values}
    mapping = {**fresh, **values}
    return nest.replaced(mapping, tuple(loops.get(s, fresh.get(s, s)) for s in nest.loops))


def partition_reduce(nest: Nest, reduce: UOp, r: UOp, at: int,
                     numbers: Numbers) -> tuple[Nest, UOp]:
    """reduce(r) → op(reduce(r below at), reduce(r from there on)). Also returns the first loop."""
    low, high = numbers.range(at), numbers.range(r.arg[1] - at)
    parts = []
    for value, new in ((low.cast(r.dtype), low), (high.cast(r.dtype) + at, high)):
        fresh = {s: numbers.range(s.arg[1], *s.arg[2:]) for s in reduce.src[1:] if s is not r}
        body = reduce.src[0].substitute({r: value, **fresh})
        ranges = [new if s is r else fresh[s] for s in reduce.src[1:]]
        parts.append(UOp(Ops.REDUCE, (body, *ranges), reduce.arg))
    return nest.replaced({reduce: parts[0].alu(reduce.arg, parts[1])}, nest.loops), low


def sum_in_blocks(nest: Nest, reduce: UOp, r: UOp, block: int, numbers: Numbers) -> Nest:
    """A sum of f32 whose blocks of `r` are added up in f64, so that its error does not grow with
    its length. What `block` does not divide is a sum of its own.

        sum(r)  →  f32(sum over ro of f64(sum over ri))
    """
    whole = r.arg[1] // block * block
    if whole < r.arg[1]:
        nest, r = partition_reduce(nest, reduce, r, whole, numbers)
        reduce = reduce_over(nest, r)
    outer, inner = numbers.range(whole // block), numbers.range(block)
    value = reduce.src[0].substitute({r: _joined(r, outer, block, inner)})
    place = reduce.src.index(r)
    within = UOp(Ops.REDUCE, (value, inner, *reduce.src[place + 1:]), Ops.ADD)
    total = UOp(Ops.REDUCE, (within.cast(dtypes.f64), *reduce.src[1:place], outer), Ops.ADD)
    return nest.replaced({reduce: total.cast(reduce.dtype)}, nest.loops)


def mark(nest: Nest, r: UOp, numbers: Numbers, *how: object) -> Nest:
    """The same loop with another kind."""
    new = numbers.range(r.arg[1], *how)
    return nest.replaced({r: new.cast(r.dtype)}, tuple(new if s is r else s for s in nest.loops))


def merge(nest: Nest, a: UOp, b: UOp, numbers: Numbers) -> Nest | None:
    """Two neighbouring loops as one, or None where an index would need a division."""
    whole = numbers.range(a.arg[1] * b.arg[1])
    position = nest.loops.index(a)
    loops = (*nest.loops[:position], whole, *nest.loops[position + 2:])
    return _unless_divided(nest, nest.replaced(_halves(whole, a, b), loops))


def merge_reduce(nest: Nest, reduce: UOp, a: UOp, b: UOp, numbers: Numbers) -> Nest | None:
    """The same for two neighbouring ranges of a reduction."""
    whole = numbers.range(a.arg[1] * b.arg[1])
    ranges = [whole if s is a else s for s in reduce.src[1:] if s is not b]
    value = reduce.src[0].substitute(_halves(whole, a, b))
    merged = UOp(Ops.REDUCE, (value, *ranges), reduce.arg)
    return _unless_divided(nest, nest.replaced({reduce: merged}, nest.loops))


def _halves(whole: UOp, a: UOp, b: UOp) -> dict[UOp, UOp]:
    size = UOp.const(b.arg[1], whole.dtype)
    return {a: (whole // size).cast(a.dtype), b: (whole % size).cast(b.dtype)}


def _unless_divided(before: Nest, after: Nest) -> Nest | None:
    def divisions(nest: Nest) -> int:
        return sum(u.op in (Ops.IDIV, Ops.MOD) for u in nest.store.toposort())
    return after if divisions(after) <= divisions(before) else None


def expand(kernel: UOp) -> UOp:
    """UNROLL ranges become copies: of the statement, and of a reduction's terms.

        END(S(r, u), r, u: unroll 2)   →  END(GROUP(S(r, 0), S(r, 1)), r)
        REDUCE(f(k, u), k, u: unroll 2)  →  REDUCE(f(k, 0), k) + REDUCE(f(k, 1), k)
    """
    done: dict[UOp, UOp] = {}
    for u in kernel.toposort():
        rebuilt = u.replace(src=tuple(done[s] for s in u.src))
        unrolled = [r for r in rebuilt.src[1:] if r.op is Ops.RANGE and kind(r) == UNROLL] \
            if u.op in (Ops.END, Ops.REDUCE) else []
        for r in unrolled:
            rebuilt = _expanded(rebuilt, r)
        done[u] = rebuilt
    return simplify(done[kernel])


def _expanded(node: UOp, r: UOp) -> UOp:
    body, rest = node.src[0], tuple(s for s in node.src[1:] if s is not r)
    copies = [body.substitute({r: UOp.const(k, r.dtype)}) for k in range(r.arg[1])]
    if node.op is Ops.END:
        statements = tuple(s for c in copies for s in (c.src if c.op is Ops.GROUP else (c,)))
        group = UOp(Ops.GROUP, statements)
        return UOp(Ops.END, (group, *rest)) if rest else group
    lanes = tuple(s for s in rest if kind(s) == VECTOR)  # combined last, and once
    loops = tuple(s for s in rest if s not in lanes)
    terms = [UOp(Ops.REDUCE, (c, *loops), node.arg) if loops else c for c in copies]
    while len(terms) > 1:  # a tree, which is shallow and rounds less than a chain
        pairs = [terms[k].alu(node.arg, terms[k + 1]) for k in range(0, len(terms) - 1, 2)]
        terms = pairs + terms[len(terms) - len(terms) % 2:]
    return UOp(Ops.REDUCE, (terms[0], *lanes), node.arg) if lanes else terms[0]


def address_vectors(sink: UOp) -> UOp:
    """data[f(lane)]  →  data[base + lane] where f grows by 1: the form of a contiguous access."""
    def addressed(u: UOp) -> UOp:
        lanes = [r for r in ranges_below(u.src[1]) if kind(r) == VECTOR]
        if len(lanes) != 1 or stride(u.src[1], lanes[0]) != 1:
            return u
        start = u.src[1].substitute({lanes[0]: UOp.const(0, lanes[0].dtype)})
        base = simplify(start)
        address = UOp(Ops.ADD, (base, lanes[0].cast(base.dtype)))
        return u.replace(src=(u.src[0], address, *u.src[2:]))

    return UOp.wrap([sink], [u for u in sink.toposort() if u.op is Ops.INDEX], addressed)[0]


def stride(index: UOp, r: UOp) -> int | None:
    """By how much a flat index grows with each step of `r`; None if that is not one number."""
    if r not in ranges_below(index):
        return 0
    parts = linear(index)
    if parts is None:
        return None
    total = 0
    for u, factor in parts[0]:
        if u is r or (u.op is Ops.CAST and u.src[0] is r):
            total += factor
        elif r in ranges_below(u):
            return None
    return total
