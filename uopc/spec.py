"""What a well-formed graph is: a table of rules per stage, checked after every pass under `SPEC=1`.

Each rule says for a set of operations what their sources and arg must be. A node that no rule of
the stage admits is an error that names the pass, the node, its sources and, where it is known, the
line of the user's program that built it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from uopc import config
from uopc.dtype import DType, dtypes
from uopc.ops import ALU, COMPARE, MOVEMENT, UNARY, ConstArg
from uopc.uop import IDENTITY, Ops, ParamArg, UOp, prod

FLOAT_ONLY = UNARY - {Ops.CAST, Ops.BITCAST} | {Ops.DIV, Ops.POW}
Rule = Callable[[UOp], bool]
Rules = Sequence[tuple[Sequence[Ops] | frozenset[Ops], Rule]]


def is_const(u: UOp) -> bool:
    return u.src == () and isinstance(u.arg, ConstArg) and isinstance(
        u.arg.value, float if u.dtype.is_float else bool if u.dtype is dtypes.bool else int)


def is_buffer(u: UOp) -> bool:
    return u.src == () and isinstance(u.arg, ParamArg) and isinstance(u.arg.dtype, DType) \
        and all(isinstance(n, int) and n >= 0 for n in u.arg.shape)


def is_alu(u: UOp) -> bool:
    """Right number of sources, values of one dtype, shapes equal save for constants."""
    arity = 1 if u.op in UNARY else 3 if u.op is Ops.WHERE else 2
    values = u.src[1:] if u.op is Ops.WHERE else u.src
    shapes = {s.shape for s in u.src if s.op is not Ops.CONST and s.shape is not None}
    typed = len({s.dtype for s in values}) == 1 and all(s.dtype is not None for s in u.src)
    converts = u.op in (Ops.CAST, Ops.BITCAST)
    wanted = dtypes.bool if u.op in COMPARE else u.arg if converts else values[0].dtype
    gate = u.op is not Ops.WHERE or u.src[0].dtype is dtypes.bool
    typed = typed and (u.op not in FLOAT_ONLY or u.dtype.is_float)
    return len(u.src) == arity and typed and gate and len(shapes) <= 1 and u.dtype is wanted


def is_movement(u: UOp) -> bool:
    """The arg fits the source's shape."""
    old = u.src[0].shape
    if len(u.src) != 1 or old is None:
        return False
    if u.op is Ops.RESHAPE:
        return prod(old) == prod(u.arg)
    if u.op is Ops.EXPAND:
        return len(old) == len(u.arg) and all(
            a == b or a == 1 for a, b in zip(old, u.arg, strict=True))
    if u.op is Ops.PERMUTE:
        return sorted(u.arg) == list(range(len(old)))
    if u.op is Ops.SHRINK:
        return len(old) == len(u.arg) and all(
            0 <= a <= b <= n for (a, b), n in zip(u.arg, old, strict=True))
    if u.op is Ops.PAD:
        return len(old) == len(u.arg) and all(a >= 0 and b >= 0 for a, b in u.arg)
    return list(u.arg) == sorted(set(u.arg)) and all(0 <= a < len(old) for a in u.arg)


def is_shape_reduce(u: UOp) -> bool:
    return len(u.src) == 1 and u.arg[0] in IDENTITY and 0 < u.arg[1] <= len(u.src[0].shape)


def is_loop_reduce(u: UOp) -> bool:
    return u.arg in IDENTITY and len(u.src) > 1 and all(r.op is Ops.RANGE for r in u.src[1:])


def is_index(u: UOp) -> bool:
    return u.src[0].op is Ops.BUFFER and u.src[1].dtype.is_int and (
        len(u.src) == 2 or len(u.src) == 3 and u.src[2].dtype is dtypes.bool)


def is_access(u: UOp) -> bool:
    place = u.src[0]
    stores = u.op is not Ops.STORE or u.src[1].dtype is place.dtype
    return place.op in (Ops.INDEX, Ops.ACC) and stores


shape_rules: Rules = [
    ([Ops.BUFFER], is_buffer),
    ([Ops.CONST], is_const),
    ([Ops.IOTA], lambda u: u.src == () and u.arg[0] >= 0 and u.arg[1].is_int),
    ([Ops.STAGE], lambda u: len(u.src) == 1
     and (u.arg in (None, "detach", "asked") or u.arg[0] == "assign")),
    ([Ops.REDUCE], is_shape_reduce),
    ([Ops.GATHER], lambda u: len(u.src) == 2 and u.src[1].dtype.is_int and len(u.src[0].shape) > 0),
    ([Ops.SCATTER], lambda u: len(u.src) == 2 and u.src[0].dtype.is_int
     and u.src[1].shape[:len(u.src[0].shape)] == u.src[0].shape and u.arg >= 0),
    (MOVEMENT, is_movement),
    (ALU, is_alu),
    ([Ops.SINK], lambda u: u.dtype is None),
]

loop_rules: Rules = [
    ([Ops.BUFFER], is_buffer),
    ([Ops.CONST], is_const),
    ([Ops.RANGE], lambda u: u.src == () and u.arg[0] >= 0 and u.arg[1] >= 0),
    ([Ops.REDUCE], is_loop_reduce),
    ([Ops.INDEX], is_index),
    ([Ops.LOAD, Ops.STORE], is_access),
    ([Ops.ACC], lambda u: all(r.op is Ops.RANGE for r in u.src)),
    ([Ops.GROUP], lambda u: all(s.op in (Ops.STORE, Ops.GROUP, Ops.END) for s in u.src)),
    ([Ops.END], lambda u: len(u.src) > 1 and all(r.op is Ops.RANGE for r in u.src[1:])),
    (ALU, is_alu),
    ([Ops.SINK], lambda u: all(s.op in (Ops.END, Ops.STORE, Ops.GROUP) for s in u.src)),
]


def check(root: UOp, rules: Rules, after: str, always: bool = False) -> None:
    """Raise ValueError at the first node below `root` that breaks a rule of the stage.

    Does nothing unless `SPEC=1` is set or `always` is true.
    """
    if not (always or config.read_int("SPEC")):
        return
    table = {op: rule for ops, rule in rules for op in ops}
    for u in root.toposort():
        rule = table.get(u.op)
        if rule is None or not _admits(rule, u):
            raise ValueError(f"after {after}: {u!r} is not well formed"
                             f" (sources: {', '.join(map(repr, u.src))}){built_at(u)}")


def _admits(rule: Rule, u: UOp) -> bool:
    """Rules may take for granted that sources and arg have the right form."""
    try:
        return rule(u)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return False


def built_at(u: UOp) -> str:
    """", built at file:line" when the node's origin was noted."""
    line = line_of(u)
    return f", built at {line}" if line else ""


def line_of(u: UOp) -> str:
    """"file:line" where the user's program built the node, or else what it is made of; "" where
    that was not noted."""
    if not UOp.track_origins:
        return ""
    origins = (v.__dict__.get("origin") for v in (u, *reversed(u.toposort())))
    return next((f"{origin[0]}:{origin[1]}" for origin in origins if origin), "")
