"""The operations, and how a node's dtype and shape follow from what it is made of."""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from uopc.dtype import DType, Number, dtypes, index_dtype

if TYPE_CHECKING:
    from uopc.uop import UOp


class Ops(enum.IntEnum):
    """Operations. IntEnum, since its hash runs in C."""

    # where values come from
    BUFFER = enum.auto()     # arg ParamArg
    CONST = enum.auto()      # arg ConstArg; of shape (), it combines with any shape
    IOTA = enum.auto()       # arg (n, dtype): 0, 1, ... n-1
    # structure
    STAGE = enum.auto()      # identity: "materialize here"; arg "detach" or ("assign", number)
    REDUCE = enum.auto()     # arg (op, n): combines the last n axes; in loops src = value, *ranges
    GATHER = enum.auto()     # src (x, index): x[index], along x's first axis; 0 if out of range
    SCATTER = enum.auto()    # src (index, x), arg rows: out[index[i]] += x[i], the rest 0
    # movement: index maps
    RESHAPE = enum.auto()    # arg shape
    EXPAND = enum.auto()     # arg shape: repeats axes of size 1
    PERMUTE = enum.auto()    # arg order
    SHRINK = enum.auto()     # arg ((start, stop), ...)
    PAD = enum.auto()        # arg ((before, after), ...): with zeros
    FLIP = enum.auto()       # arg axes
    # ALU
    CAST = enum.auto()       # arg DType; a float out of an integer's range saturates, NaN gives 0
    BITCAST = enum.auto()    # arg DType of the same width: the same bits read as another type
    EXP2 = enum.auto()
    LOG2 = enum.auto()
    SIN = enum.auto()
    COS = enum.auto()
    TANH = enum.auto()
    ERF = enum.auto()
    SQRT = enum.auto()
    RECIPROCAL = enum.auto()
    TRUNC = enum.auto()      # towards zero
    ADD = enum.auto()        # arg ACCUMULATED where it adds up gradients
    MUL = enum.auto()
    DIV = enum.auto()        # floats only: IEEE's quotient, rounded once
    IDIV = enum.auto()       # floor division; an integer divided by 0 gives 0
    MOD = enum.auto()        # a - floor(a/b)*b; an integer modulo 0 gives 0
    POW = enum.auto()        # floats only
    MAX = enum.auto()        # a > b ? a : b, so that b wins where they do not compare
    MAXIMUM = enum.auto()    # IEEE 754's maximum: a NaN on either side gives NaN
    CMPLT = enum.auto()
    CMPLE = enum.auto()
    CMPEQ = enum.auto()
    CMPNE = enum.auto()
    AND = enum.auto()
    OR = enum.auto()
    XOR = enum.auto()
    SHL = enum.auto()
    SHR = enum.auto()
    WHERE = enum.auto()
    # loops
    RANGE = enum.auto()      # arg (number, size[, kind[, lanes]]): 0 <= value < size
    INDEX = enum.auto()      # src (BUFFER, flat index[, valid])
    LOAD = enum.auto()       # src (INDEX or ACC, *what must have run before)
    STORE = enum.auto()      # src (INDEX or ACC, value, *what must have run before)
    ACC = enum.auto()        # arg (number, dtype), src: the ranges that it lives in
    END = enum.auto()        # src (statement, *ranges): closes the loops around it
    GROUP = enum.auto()      # several statements
    SINK = enum.auto()


MOVEMENT = frozenset({Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.PAD, Ops.FLIP})
COMPARE = frozenset({Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE})
UNARY = frozenset({Ops.CAST, Ops.BITCAST, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF,
                   Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC})
BINARY = COMPARE | {Ops.ADD, Ops.MUL, Ops.DIV, Ops.IDIV, Ops.MOD, Ops.POW, Ops.MAX, Ops.MAXIMUM,
                    Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR}
ALU = UNARY | BINARY | {Ops.WHERE}
COMMUTATIVE = frozenset({Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPEQ, Ops.CMPNE})


ACCUMULATED = "accumulated"  # the arg of an ADD of gradients, which may be taken apart again


class ParamArg(NamedTuple):
    """A buffer's identity. `addrspace` is None for an array, "kernel" for a kernel's parameter."""

    slot: int
    dtype: DType
    shape: tuple[int, ...]
    addrspace: str | None = None


class ConstArg(NamedTuple):
    value: Number
    dtype: DType


_DTYPES: dict[Ops, Callable[[tuple[UOp, ...], Any], DType | None]] = {
    **dict.fromkeys((Ops.BUFFER, Ops.CONST), lambda src, arg: arg.dtype),
    **dict.fromkeys((Ops.IOTA, Ops.ACC), lambda src, arg: arg[1]),
    **dict.fromkeys((Ops.CAST, Ops.BITCAST), lambda src, arg: arg),
    **dict.fromkeys(COMPARE, lambda src, arg: dtypes.bool),
    Ops.RANGE: lambda src, arg: index_dtype(arg[1]),
    **dict.fromkeys((Ops.WHERE, Ops.SCATTER), lambda src, arg: src[1].dtype),
    **dict.fromkeys((Ops.STORE, Ops.END, Ops.GROUP, Ops.SINK), lambda src, arg: None),
}
"""How a node's dtype follows; of all others it is the one of their first source."""


def dtype_of(op: Ops, src: tuple[UOp, ...], arg: Any) -> DType | None:
    rule = _DTYPES.get(op)
    if rule is not None:
        return rule(src, arg)
    return src[0].dtype if src else None


def shape_of(op: Ops, src: tuple[UOp, ...], arg: Any) -> tuple[int, ...] | None:
    if op in ALU:
        for source in src:
            if source.shape != ():
                return source.shape
        return ()
    if op >= Ops.RANGE:
        return None
    if op in (Ops.RESHAPE, Ops.EXPAND):
        return arg
    if op is Ops.BUFFER:
        return arg.shape
    if op is Ops.CONST:
        return ()
    if op is Ops.IOTA:
        return (arg[0],)
    if op is Ops.GATHER:
        return src[1].shape + src[0].shape[1:]
    if op is Ops.SCATTER:
        return (arg, *src[1].shape[len(src[0].shape):])
    if not src or (shape := src[0].shape) is None:
        return None
    if op is Ops.STAGE or op is Ops.FLIP:
        return shape
    if op is Ops.REDUCE:
        return shape[:len(shape) - arg[1]] if isinstance(arg, tuple) else None
    if op is Ops.PERMUTE:
        return tuple(shape[i] for i in arg)
    if op is Ops.SHRINK:
        return tuple(stop - start for start, stop in arg)
    if op is Ops.PAD:
        return tuple(before + n + after for (before, after), n in zip(arg, shape, strict=True))
    return None
