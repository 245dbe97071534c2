"""A graph as text: one line per node, sources before users, numbered.

    0  BUFFER  slot 1               f32 (2, 4)
    1  CONST   2.0
    2  MUL     0 1                  f32 (2, 4)
"""
from __future__ import annotations

from uopc.uop import Ops, UOp


def pretty(root: UOp) -> str:
    """The graph below `root`, for people: number, op, sources by number, arg, dtype and shape."""
    order = root.toposort()
    number = {u: k for k, u in enumerate(order)}
    width = len(str(len(order)))
    lines = []
    for u in order:
        parts = [str(number[s]) for s in u.src] + ([_arg(u)] if u.arg is not None else [])
        kind = f"{u.dtype.name if u.dtype else ''} {u.shape if u.shape is not None else ''}"
        line = f"{number[u]:>{width}}  {u.op.name:<10} {' '.join(parts):<28} {kind.strip()}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _arg(u: UOp) -> str:
    if u.op is Ops.CONST:
        return repr(u.arg.value)
    if u.op is Ops.BUFFER:
        return f"slot {u.arg.slot}"
    if u.op is Ops.RANGE:
        return f"r{u.arg[0]} < {u.arg[1]}"
    if u.op is Ops.REDUCE:
        return u.arg.name if isinstance(u.arg, Ops) else f"{u.arg[0].name} of {u.arg[1]} axes"
    return str(u.arg)
