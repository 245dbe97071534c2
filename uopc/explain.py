"""Why a plan was not found: the nearest cached plan, and the first node that differs.

    the nearest plan differs in CONST 0.2 (was 0.1) at node 41, built at train.py:57
"""
from __future__ import annotations

from collections.abc import Iterable

from uopc.spec import built_at
from uopc.uop import Ops, UOp


def first_difference(key: tuple, order: list[UOp], plans: Iterable[tuple]) -> str:
    """Compare a structure key with those of the cached plans; `order` are the key's nodes."""
    nodes = key[-1]
    nearest = max(plans, key=lambda other: (_common(nodes, other[-1]),
                                            len(other[-1]) == len(nodes)))
    at = _common(nodes, nearest[-1])
    if key[:-1] != nearest[:-1] and at == len(nodes):
        return f"the nearest plan was made with other options: {nearest[:-1]} (now {key[:-1]})"
    if at >= len(nodes):
        return f"the nearest plan is longer, {len(nearest[-1])} nodes (now {len(nodes)})"
    was = _describe(nearest[-1][at]) if at < len(nearest[-1]) else "not there"
    return (f"the nearest plan differs in {_describe(nodes[at])} (was {was}) at node {at}"
            f"{built_at(order[at])}")


def _common(a: tuple, b: tuple) -> int:
    """Length of the common beginning."""
    for k, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return k
    return min(len(a), len(b))


def _describe(node: tuple) -> str:
    op, detail, *sources = node
    name = Ops(op).name
    if op is Ops.BUFFER:
        return f"{name} {detail.name} {sources[0]}"
    if op is Ops.CONST:
        return f"{name} {detail[1][-1] if isinstance(detail[1], tuple) else detail[1]}"
    shown = "" if detail is None else f" {_plain(detail)}"
    return f"{name}{shown} of nodes {sources}" if sources else f"{name}{shown}"


def _plain(argkey: object) -> object:
    """An argkey without the types that it carries to tell 1 from 1.0."""
    if isinstance(argkey, tuple) and argkey and isinstance(argkey[0], type):
        rest = [_plain(part) for part in argkey[1:]]
        return rest[0] if argkey[0] is not tuple and len(rest) == 1 else tuple(rest)
    return argkey
