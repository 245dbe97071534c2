"""Transforms of loops: each small, each keeping the meaning, each usable with any other.

A Nest is one STORE and the loops around it, outermost first. The ranges of the reductions in the
stored value are loops, too: `split`, `merge` and `mark` take a range of either kind, and the ranges
that take its place are closed where it was.

    split(r, 4)        for r < 12: S(r)       →  for ro < 3: for ri < 4: S(ro*4 + ri)
    merge(a, b)        for a < 3: for b < 4: S(a*4 + b)  →  for r < 12: S(r)
    mark(r, kind)      the same loop, to be run by threads, unrolled, or as vector lanes
    partition(r, 8)    for r < 13: S(r)       →  for r' < 8: S(r');  for r'' < 5: S(8 + r'')
    partition_reduce   sum(r < 13)            →  sum(r' < 8) + sum(8 + r'' for r'' < 5)
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from uopc.dtype import dtypes
from uopc.linearize import ranges_below
from uopc.simplify import simplify
from uopc.uop import THREAD, UNROLL, VECTOR, Ops, UOp, kind

Ranges = tuple[UOp, ...]


class Numbers:
    """Fresh RANGEs for one kernel."""

    def __init__(self, kernel: UOp) -> None:
        used = [u.arg[0] for u in kernel.toposort() if u.op is Ops.RANGE]
        self._next = count(max(used, default=-1) + 1)

    def range(self, size: int, *mark: object) -> UOp:
        return UOp(Ops.RANGE, (), (next(self._next), size, *mark))

    def like(self, r: UOp) -> UOp:
        """A fresh range of the same size and kind."""
        return self.range(*r.arg[1:])


@dataclass(frozen=True)
class Nest:
    store: UOp
    loops: Ranges

    def end(self) -> UOp:
        loops = [r for r in self.loops if r.arg[1] != 1 or r in ranges_below(self.store)]
        return UOp(Ops.END, (self.store, *loops)) if loops else self.store

    def replaced(self, mapping: dict[UOp, UOp], loops: Ranges) -> Nest:
        """The nest with nodes replaced in its store, simplified, under other loops."""
        return Nest(simplify(self.store.substitute(mapping)), loops)

    @property
    def stored(self) -> UOp:
        """The INDEX that is stored to."""
        return self.store.src[0]

    def loads(self) -> list[UOp]:
        """The INDEX of each LOAD."""
        return [u.src[0] for u in self.store.toposort() if u.op is Ops.LOAD]

    def accesses(self) -> list[UOp]:
        """Every INDEX, the one that is stored to among them."""
        return [u for u in self.store.toposort() if u.op is Ops.INDEX]

    def values(self) -> set[UOp]:
        """What is computed to be stored, the addresses left out."""
        return set(self.store.src[1].toposort(stop=lambda u: u.op is Ops.INDEX))

    def reduces(self) -> list[UOp]:
        return [u for u in self.store.toposort() if u.op is Ops.REDUCE]

    def with_ranges(self, values: Mapping[UOp, UOp], ranges: Mapping[UOp, Ranges]) -> Nest:
        """The nest with each range's value replaced where it is used, and the range itself by
        other ranges where it is closed, be that by a loop of the nest or by a REDUCE."""
        def replacing(old: Ranges) -> Ranges:
            return tuple(new for r in old for new in ranges.get(r, (r,)))

        done: dict[UOp, UOp] = {}
        for u in self.store.toposort():
            if u.op is Ops.REDUCE:
                done[u] = u.replace(src=(done[u.src[0]], *replacing(u.src[1:])))
            else:
                done[u] = values.get(u) or u.replace(src=tuple([done[s] for s in u.src]))
        return Nest(simplify(done[self.store]), replacing(self.loops))


def split(nest: Nest, r: UOp, factor: int, numbers: Numbers,
          *how: object) -> tuple[Nest, UOp | None, UOp]:
    """r → ro*factor + ri, ri just inside of ro and marked. `factor` must divide the size.

    Returns the nest, ro (None if it would have one step) and ri.
    """
    outer, inner = numbers.range(r.arg[1] // factor), numbers.range(factor, *how)
    if r.arg[1] == factor:
        return nest.with_ranges({r: inner.cast(r.dtype)}, {r: (inner,)}), None, inner
    value = outer.cast(r.dtype) * factor + inner.cast(r.dtype)
    return nest.with_ranges({r: value}, {r: (outer, inner)}), outer, inner


def mark(nest: Nest, r: UOp, numbers: Numbers, *how: object) -> Nest:
    """The same loop with another kind."""
    new = numbers.range(r.arg[1], *how)
    return nest.with_ranges({r: new.cast(r.dtype)}, {r: (new,)})


def merge(nest: Nest, a: UOp, b: UOp, numbers: Numbers) -> Nest | None:
    """Two neighbouring loops as one, or None where an index would need a division."""
    whole = numbers.range(a.arg[1] * b.arg[1])
    size = UOp.const(b.arg[1], whole.dtype)
    values = {a: (whole // size).cast(a.dtype), b: (whole % size).cast(b.dtype)}
    merged = nest.with_ranges(values, {a: (whole,), b: ()})
    return merged if _divisions(merged) <= _divisions(nest) else None


def _divisions(nest: Nest) -> int:
    return sum(u.op in (Ops.IDIV, Ops.MOD) for u in nest.store.toposort())


def partition(nest: Nest, r: UOp, at: int, numbers: Numbers,
              *how: object) -> tuple[Nest, Nest]:
    """Two nests: r below `at`, and r from there on, marked. All their loops are distinct."""
    low, high = numbers.range(at), numbers.range(r.arg[1] - at, *how)
    around = {s for s in ranges_below(nest.store) if kind(s) == THREAD and s not in nest.loops}
    others = sorted({*ranges_below(nest.store), *nest.loops} - around - {r},
                    key=lambda s: s.arg[0])

    def part(own: UOp, value: UOp) -> Nest:
        fresh = {s: numbers.like(s) for s in others}
        return nest.with_ranges({**fresh, r: value},
                                {r: (own,), **{s: (new,) for s, new in fresh.items()}})

    return part(low, low.cast(r.dtype)), part(high, high.cast(r.dtype) + at)


def pieces(nest: Nest, r: UOp, step: int, numbers: Numbers) -> list[tuple[Nest, int]]:
    """The loop `r` as a part that `step` divides, and what is left, in the same place among the
    loops; each with its step."""
    size = r.arg[1]
    whole = size // step * step
    if whole in (0, size):
        return [(nest, step if whole else size)]
    main, rest = partition(nest, r, whole, numbers)
    return [(main, step), (rest, size - whole)]


def partition_reduce(nest: Nest, r: UOp, at: int, numbers: Numbers) -> tuple[Nest, UOp]:
    """reduce(r) → op(reduce(r below at), reduce(r from there on)). Also returns the first loop."""
    reduce = reduce_over(nest, r)
    low, high = numbers.range(at), numbers.range(r.arg[1] - at)
    parts = []
    for value, new in ((low.cast(r.dtype), low), (high.cast(r.dtype) + at, high)):
        fresh = {s: numbers.like(s) for s in reduce.src[1:] if s is not r}
        body = reduce.src[0].substitute({r: value, **fresh})
        ranges = [new if s is r else fresh[s] for s in reduce.src[1:]]
        parts.append(UOp(Ops.REDUCE, (body, *ranges), reduce.arg))
    return nest.replaced({reduce: parts[0].alu(reduce.arg, parts[1])}, nest.loops), low


def reduce_over(nest: Nest, r: UOp) -> UOp:
    """The reduction of which `r` is a range."""
    return next(u for u in nest.reduces() if r in u.src[1:])


def sum_in_blocks(nest: Nest, r: UOp, block: int, numbers: Numbers) -> Nest:
    """A sum of f32 whose blocks of `r` are added up in f64, so that its error does not grow with
    its length. What `block` does not divide is a sum of its own.

        sum(r)  →  f32(sum over ro of f64(sum over ri))
    """
    whole = r.arg[1] // block * block
    if whole < r.arg[1]:
        nest, r = partition_reduce(nest, r, whole, numbers)
    nest, outer, inner = split(nest, r, block, numbers)
    reduce = reduce_over(nest, inner)
    place = reduce.src.index(outer)
    within = UOp(Ops.REDUCE, (reduce.src[0], *reduce.src[place + 1:]), Ops.ADD)
    total = UOp(Ops.REDUCE, (within.cast(dtypes.f64), *reduce.src[1:place + 1]), Ops.ADD)
    return nest.replaced({reduce: total.cast(reduce.dtype)}, nest.loops)


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
