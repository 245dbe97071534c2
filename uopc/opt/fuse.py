"""What level 2 computes where: functions that several kernels need are kept, and a short expression
is computed as the result of a reduction is.

    exp(x - m) in two kernels        →  STAGE(exp(x - m)), read by both
    STAGE(REDUCE(a * b) + bias)      →  one kernel, which adds the bias to a sum in a register

`homes` tells which nodes lie in memory, as in `kernelize.py`.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from uopc.dtype import dtypes
from uopc.ops import ALU, MOVEMENT
from uopc.opt.layout import strides
from uopc.opt.target import target
from uopc.uop import Ops, UOp, prod

Homes = Mapping[UOp, UOp]
COSTLY = (Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.POW)


def reads_nothing(u: UOp) -> bool:
    """Whether `u` is a short expression of numbers and positions, as a mask of the past is: that
    takes less time than reading it from memory."""
    order = u.toposort(stop=lambda v: v.op not in ALU and v.op not in MOVEMENT)
    return sum(v.op in ALU for v in order) <= target().short_body and all(
        v.op in ALU or v.op in MOVEMENT or v.op in (Ops.CONST, Ops.IOTA) for v in order) and \
        not any(v.op in COSTLY for v in order)


def keep_costly(roots: Sequence[UOp], homes: Homes, least: int) -> list[UOp]:
    """Put a STAGE on each function of at least so many elements that several kernels would compute,
    each for itself."""
    used_by: dict[UOp, set[UOp]] = {}  # the kernels of which it is a part
    for u in reversed(UOp(Ops.SINK, tuple(roots)).toposort()):
        kernels = {u} if u in homes else used_by.get(u, set())
        for s in u.src:
            used_by.setdefault(s, set()).update(kernels)
    costly = [u for u, kernels in used_by.items() if u.op in COSTLY and len(kernels) > 1
              and u not in homes and prod(u.shape) >= least]
    return UOp.wrap(roots, costly, UOp.stage)


def cut_long_chains(roots: Sequence[UOp], homes: Homes) -> list[UOp]:
    """Put a STAGE after every `max_chain` operations in a row, since the C compiler's time for a
    function grows faster than its length. Pieces that are alike are compiled once.

        ((((x + a) + b) + c) + d), cut after 2 operations  →  (STAGE((x + a) + b) + c) + d
    """
    limit, depth, long = target().max_chain, {}, []
    for u in UOp(Ops.SINK, tuple(roots)).toposort():
        before = max((depth[s] for s in u.src), default=0)
        depth[u] = 0 if u in homes else before + (u.op in ALU)
        if depth[u] >= limit and u.op in ALU and u.shape:
            depth[u] = 0
            long.append(u)
    return UOp.wrap(roots, long, UOp.stage)


def with_epilogues(roots: Sequence[UOp], homes: Homes) -> set[UOp]:
    """The reductions to be computed where they are used: in one place, by a short expression of the
    same shape, whose other operands can be read as the reduction's result is computed."""
    order = UOp(Ops.SINK, tuple(roots)).toposort()
    users: dict[UOp, list[UOp]] = {}
    for u in order:
        for s in u.src:
            users.setdefault(s, []).append(u)
    found: dict[UOp, UOp] = {}  # by the node that ends the expression
    for u in order:
        if u.op is Ops.REDUCE and u.shape and u not in roots:
            end = _epilogue_of(u, users, homes)
            if end is not None and (end not in found
                                    or prod(found[end].src[0].shape) < prod(u.src[0].shape)):
                found[end] = u
    return set(found.values())


def _epilogue_of(reduce: UOp, users: Mapping[UOp, list[UOp]],
                 homes: Homes) -> UOp | None:
    """The node that ends the expression in which the reduction is used, if it is a fitting one."""
    ends, body, todo = set(), set(), [reduce]
    while todo:
        for u in users.get(todo.pop(), ()):
            if u.op not in ALU and not (u.op is Ops.STAGE and homes.get(u) is u):
                return None
            body.add(u)
            if homes.get(u) is u:
                ends.add(u)
            elif u not in todo:
                todo.append(u)
    if len(ends) != 1:
        return None
    (end,) = ends
    work = [u for u in end.toposort(stop=lambda u: u in homes and u is not end) if u.op in ALU]
    others = {s for u in body for s in u.src} - body - {reduce}
    fits = len(work) <= target().short_body and all(
        u.dtype in (reduce.dtype, dtypes.bool) and u.op not in COSTLY for u in work) and all(
        s.op is Ops.CONST or s.dtype is reduce.dtype and strides(s)[-1] in (0, 1) for s in others)
    return end if work and fits else None
