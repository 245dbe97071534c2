"""Loops as vectors: along which of them lanes may run, in how many registers, and what is left.

    for r < 65: out[r] = f(a[r])
    →  for ro < 2: for 4 registers: for 8 lanes: out[ro*32 + register*8 + lane] = f(..)
       out[64] = f(a[64])
"""
from __future__ import annotations

from collections.abc import Iterable

from uopc.bounds import bounds
from uopc.dtype import dtypes
from uopc.linearize import ranges_below
from uopc.ops import COMPARE
from uopc.opt.access import access
from uopc.opt.target import Target
from uopc.opt.transform import Nest, Numbers, mark, partition, pieces, split
from uopc.simplify import simplify
from uopc.uop import UNROLL, VECTOR, Ops, UOp, kind, prod


def lane_strides(places: Iterable[UOp], r: UOp) -> set[int | None]:
    """By how much memory accesses move along `r`; None for one that has no such number, or that `r`
    decides about."""
    return {access(u).lane_stride(r) for u in places}


def vector_width(nest: Nest, r: UOp) -> int | None:
    """Bytes per lane if all values that depend on `r` are of one width (bools adapt), else None."""
    widths = set()
    for u in nest.values():
        if r not in ranges_below(u):
            continue
        typed = u.src if u.op in COMPARE else (u,)
        widths |= {s.dtype.size for s in typed if s.dtype not in (None, dtypes.bool)
                   and s.op not in (Ops.INDEX, Ops.CONST)
                   and not (s.op is Ops.RANGE and u.op not in COMPARE)}
        if u.op is Ops.REDUCE and u.dtype is dtypes.bool:
            return None
    stored = nest.store.src[1].dtype
    widths |= {stored.size} if not widths and stored is not dtypes.bool else set()  # a constant
    return widths.pop() if widths in ({4}, {8}) else None


def lanes_along(nest: Nest, r: UOp, machine: Target) -> int | None:
    """Elements along `r` that fill a register; None where values of several widths meet."""
    width = vector_width(nest, r)
    return None if width is None else machine.lanes(width)


def cut_tail(nest: Nest, r: UOp, at: int, lanes: int, numbers: Numbers) -> tuple[Nest, Nest]:
    """The loop `r` below `at`, and the fewer than `lanes` steps from there on: as a part of a
    register where reading the whole one stays inside every buffer, else as a plain loop."""
    main, tail = partition(nest, r, at, numbers, VECTOR, lanes)
    part = tail.loops[nest.loops.index(r)]
    read = tail.loads()
    contiguous = access(tail.stored).stride(part) == 1 and lane_strides(read, part) <= {0, 1}
    safe = all(bounds(u.src[1])[1] < prod(u.src[0].shape) for u in read)
    return (main, tail) if contiguous and safe else partition(nest, r, at, numbers)


def lane_pieces(nest: Nest, r: UOp, registers: int, numbers: Numbers,
                 machine: Target) -> list[Nest]:
    """The loop `r` as vectors: tiles of several registers, then fewer; lanes that are left as a
    part of a register, where reading the whole one stays inside every buffer, else one by one."""
    if kind(r) == VECTOR:
        return [nest]
    place, lanes, tail = nest.loops.index(r), lanes_along(nest, r, machine), []
    whole = r.arg[1] // lanes * lanes
    if whole < r.arg[1]:
        nest, rest = cut_tail(nest, r, whole, lanes, numbers)
        tail = [rest]
    return [vectorize(part, part.loops[place], width, lanes, numbers)
            for part, width in pieces(nest, nest.loops[place], registers * lanes, numbers)] + tail


def vectorize(nest: Nest, r: UOp, width: int, lanes: int, numbers: Numbers) -> Nest:
    """`width` elements along `r` as registers."""
    nest, _, tile = split(nest, r, width, numbers)
    nest, registers, _ = split(nest, tile, lanes, numbers, VECTOR, lanes)
    return nest if registers is None else mark(nest, registers, numbers, UNROLL)


def address_vectors(sink: UOp) -> UOp:
    """data[f(lane)]  →  data[base + lane] where f grows by 1: the form of a contiguous access."""
    def addressed(u: UOp) -> UOp:
        lanes = [r for r in ranges_below(u.src[1]) if kind(r) == VECTOR]
        if len(lanes) != 1 or access(u).stride(lanes[0]) != 1:
            return u
        start = u.src[1].substitute({lanes[0]: UOp.const(0, lanes[0].dtype)})
        base = simplify(start)
        address = UOp(Ops.ADD, (base, lanes[0].cast(base.dtype)))
        return u.replace(src=(u.src[0], address, *u.src[2:]))

    return UOp.wrap([sink], [u for u in sink.toposort() if u.op is Ops.INDEX], addressed)[0]
