"""What the memory accesses of a nest of loops do: all that the decisions rest on."""
from __future__ import annotations

from uopc.bounds import bounds
from uopc.dtype import dtypes
from uopc.linearize import ranges_below
from uopc.ops import COMPARE
from uopc.opt.target import Target
from uopc.opt.transform import Nest, Numbers, partition, stride
from uopc.uop import VECTOR, Ops, UOp, prod


def accesses(nest: Nest) -> list[UOp]:
    return [u for u in nest.store.toposort() if u.op is Ops.INDEX]


def moves_by(places: list[UOp], r: UOp) -> set[int | None]:
    """The strides of memory accesses along `r`; None for one that has none, or a gate along it."""
    return {None if len(u.src) > 2 and r in ranges_below(u.src[2]) else stride(u.src[1], r)
            for u in places}


def vector_width(nest: Nest, r: UOp) -> int | None:
    """Bytes per lane if all values that depend on `r` are of one width (bools adapt), else None."""
    widths = set()
    for u in value_nodes(nest):
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


def value_nodes(nest: Nest) -> set[UOp]:
    """What is computed to be stored, the addresses left out."""
    return set(nest.store.src[1].toposort(stop=lambda u: u.op is Ops.INDEX))


def lanes_along(nest: Nest, r: UOp, machine: Target) -> int | None:
    """Elements along `r` that fill a register; None where values of several widths meet."""
    width = vector_width(nest, r)
    return None if width is None else machine.lanes(width)


def cut_tail(nest: Nest, r: UOp, at: int, lanes: int, numbers: Numbers) -> tuple[Nest, Nest]:
    """The loop `r` below `at`, and the fewer than `lanes` steps from there on: as a part of a
    register where reading the whole one stays inside every buffer, else as a plain loop."""
    main, tail = partition(nest, r, at, numbers, VECTOR, lanes)
    part = tail.loops[nest.loops.index(r)]
    read = [u.src[0] for u in tail.store.toposort() if u.op is Ops.LOAD]
    contiguous = stride(tail.store.src[0].src[1], part) == 1 and moves_by(read, part) <= {0, 1}
    safe = all(bounds(u.src[1])[1] < prod(u.src[0].shape) for u in read)
    return (main, tail) if contiguous and safe else partition(nest, r, at, numbers)
