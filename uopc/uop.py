"""The one node type of every graph in uopc, from a user's expression down to loops.

A UOp is `(op, src, arg)`, immutable and hash-consed: building an equal node twice gives the same
object, so `is` means structural equality and shared work is shared by construction. `dtype` and
`shape` are derived. The table of unique nodes holds weak references only.

    a * 2 + 1   →   ADD(MUL(BUFFER, CONST 2), CONST 1)

The *shape graph* uses BUFFER, CONST, IOTA, STAGE, REDUCE, GATHER, SCATTER, the movement operations
and ALU operations. *Loops* (made by rangeify) use RANGE, INDEX, LOAD, STORE, ACC, END and SINK, and
their nodes have no shape.
"""
from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar
from weakref import _remove_dead_weakref, ref

from uopc import config
from uopc.dtype import DType, Number, as_const, exact_reciprocal, index_dtype
from uopc.locks import destructors_lock
from uopc.ops import ALU, MOVEMENT, ConstArg, Ops, ParamArg, dtype_of, shape_of

__all__ = ["ALU", "IDENTITY", "MOVEMENT", "THREAD", "UNROLL", "VECTOR", "Ops", "ParamArg", "UOp",
           "kind", "per_node", "prod"]

IDENTITY: dict[Ops, Callable[[DType], Number]] = {
    Ops.ADD: lambda dtype: as_const(0, dtype),
    Ops.MUL: lambda dtype: as_const(1, dtype),
    Ops.MAX: lambda dtype: dtype.min,
    Ops.MAXIMUM: lambda dtype: dtype.min,
}
"""What each reduction gives over an empty axis."""


THREAD, UNROLL, VECTOR = "thread", "unroll", "vector"  # how a RANGE is run; plain if unmarked


def kind(r: UOp) -> str | None:
    """THREAD, UNROLL, VECTOR, or None for a plain loop."""
    return r.arg[2] if len(r.arg) > 2 else None


def prod(sizes: Iterable[int]) -> int:
    return math.prod(sizes)


def _argkey(arg: Any) -> Any:
    """A hashable key that tells 1, 1.0 and True apart, and 0.0 from -0.0; NaN equals itself."""
    if arg is None or type(arg) in (int, ParamArg):
        return arg
    if isinstance(arg, tuple):
        return (type(arg), *map(_argkey, arg))
    return (type(arg), repr(arg) if type(arg) is float else arg)


T = TypeVar("T")
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_lock = destructors_lock()


class _Ref(ref):
    """What the table of nodes has of one: does not keep it alive. `forget` takes the entry out,
    unless it is another node's by now."""

    __slots__ = ("forget",)
    forget: partial


# no function of Python's: a Ctrl-C in one that a weak reference calls would be printed and lost
_forget = methodcaller("forget")


def per_node(analysis: Callable[[UOp], T]) -> Callable[[UOp], T]:
    """An analysis of a node, remembered as long as the node lives."""
    name = analysis.__name__

    @functools.wraps(analysis)
    def remembered(u: UOp) -> T:
        results = u.__dict__
        if name not in results:
            results[name] = analysis(u)
        return results[name]

    return remembered


class UOp:
    """A node: `op`, its sources `src`, and `arg`, whatever else the operation needs."""

    __slots__ = ("op", "src", "arg", "argkey", "dtype", "shape", "__weakref__", "__dict__")
    op: Ops
    src: tuple[UOp, ...]
    arg: Any
    argkey: Any
    dtype: DType | None
    shape: tuple[int, ...] | None
    track_origins = config.explains()  # note which line of the user's program built each node
    _cache: dict[tuple, _Ref] = {}  # by (op, src, argkey)

    def __new__(cls, op: Ops, src: tuple[UOp, ...] = (), arg: Any = None,
                of: UOp | None = None) -> UOp:  # `of`: the node that it takes the place of
        argkey = _argkey(arg)
        key = (op, src, argkey)
        known = cls._cache.get(key)
        node = None if known is None else known()
        if node is not None:
            return node
        with _lock:
            known = cls._cache.get(key)
            node = None if known is None else known()
            if node is None:
                node = object.__new__(cls)
                put = object.__setattr__
                put(node, "op", op)
                put(node, "src", src)
                put(node, "arg", arg)
                put(node, "argkey", argkey)
                put(node, "dtype", dtype_of(op, src, arg))
                put(node, "shape", shape_of(op, src, arg))
                if cls.track_origins:
                    node.__dict__["origin"] = \
                        _user_line() if of is None else of.__dict__.get("origin")
                known = _Ref(node, _forget)
                known.forget = partial(_remove_dead_weakref, cls._cache, key)
                cls._cache[key] = known
        return node

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a UOp is immutable; {name} cannot be set")

    def __reduce__(self) -> tuple:
        raise TypeError("a UOp is one object per process; send its NumPy values instead")

    def __repr__(self) -> str:
        parts = [f"Ops.{self.op.name}"]
        if self.src:
            parts.append("src=(" + "".join(f"{s.op.name}, " for s in self.src).rstrip() + ")")
        if self.arg is not None:
            parts.append(f"arg={self.arg!r}")
        return f"UOp({', '.join(parts)})"

    # *** the graph ***

    def toposort(self, stop: Callable[[UOp], bool] | None = None) -> list[UOp]:
        """All nodes below this one and itself, sources before users, each once.

        Below a node for which `stop` is true it does not look.
        """
        order: dict[UOp, None] = {}
        seen: set[UOp] = set()
        stack = [self]
        while stack:
            node = stack[-1]
            if node in seen:  # its sources are done
                order[stack.pop()] = None
                continue
            seen.add(node)
            if node.src and (stop is None or not stop(node)):
                for s in reversed(node.src):
                    if s not in seen:
                        stack.append(s)
        return list(order)

    def replace(self, src: tuple[UOp, ...] | None = None, arg: Any = ...) -> UOp:
        """This node with other sources, or another arg."""
        src = self.src if src is None else src
        if src == self.src and arg is ...:
            return self
        return UOp(self.op, src, self.arg if arg is ... else arg, self)

    def substitute(self, mapping: dict[UOp, UOp]) -> UOp:
        """The graph with every key of `mapping` replaced, top down: inside a replaced node, and
        inside what replaces it, nothing is looked at. Compare `wrap`."""
        done: dict[UOp, UOp] = {}
        for node in self.toposort(stop=mapping.__contains__):
            done[node] = mapping[node] if node in mapping else _rebuild(node, done)
        return done[self]

    @staticmethod
    def wrap(roots: Sequence[UOp], targets: Iterable[UOp], fn: Callable[[UOp], UOp]) -> list[UOp]:
        """Rebuild `roots` bottom up, putting `fn(node)` in the place of each of `targets`.

        `fn` gets the node whose own sources are already rebuilt, so that nested targets compose.
        """
        targets, done = set(targets), {}
        for node in UOp(Ops.SINK, tuple(roots)).toposort():
            rebuilt = _rebuild(node, done)
            done[node] = fn(rebuilt) if node in targets else rebuilt
        return [done[root] for root in roots]

    # *** construction ***

    @staticmethod
    def const(value: Number, dtype: DType) -> UOp:
        return UOp(Ops.CONST, (), ConstArg(as_const(value, dtype), dtype))

    @staticmethod
    def iota(n: int, dtype: DType | None = None) -> UOp:
        """0, 1, ... n-1, of shape (n,): i32, or i64 where that cannot hold n."""
        return UOp(Ops.IOTA, (), (n, dtype or index_dtype(n)))

    def lift(self, other: UOp | Number) -> UOp:
        """A Python number as a constant of this node's dtype. Raises TypeError for a fraction
        beside integers."""
        if isinstance(other, UOp):
            return other
        if not self.dtype.is_float and isinstance(other, float) and not other.is_integer():
            raise TypeError(f"{other} meets a node of {self.dtype}; cast the node to a float first")
        return UOp.const(other, self.dtype)

    def _function(self, op: Ops) -> UOp:
        if not self.dtype.is_float:
            raise TypeError(f"{op.name} needs floats, got {self.dtype}; cast the node first")
        return UOp(op, (self,))

    def alu(self, op: Ops, *others: UOp | Number) -> UOp:
        """`op` on this node and `others`. Raises ValueError where shapes differ (a constant
        combines with any), TypeError where dtypes do."""
        src = (self, *(self.lift(o) for o in others))
        shapes = {s.shape for s in src if s.op is not Ops.CONST and s.shape is not None}
        if len(shapes) > 1:
            raise ValueError(f"{op.name} needs equal shapes, got {_and(s.shape for s in src)}")
        values = src[1:] if op is Ops.WHERE else src
        if len({s.dtype for s in values}) > 1 and op is not Ops.CAST:
            raise TypeError(f"{op.name} needs equal dtypes, got {_and(s.dtype for s in values)}")
        return UOp(op, src)

    def cast(self, dtype: DType) -> UOp:
        return self if dtype is self.dtype else UOp(Ops.CAST, (self,), dtype)

    def stage(self, arg: str | tuple[str, int] | None = None) -> UOp:
        return UOp(Ops.STAGE, (self,), arg)

    def __add__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.ADD, other)

    def __mul__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.MUL, other)

    def __neg__(self) -> UOp:
        return self * -1

    def __sub__(self, other: UOp | Number) -> UOp:
        return self + self.lift(other) * -1 if isinstance(other, UOp) else self + -other

    def __truediv__(self, other: UOp | Number) -> UOp:
        """IEEE's quotient of floats; by a power of two it is a product, which is as exact."""
        exact = None if isinstance(other, UOp) else exact_reciprocal(other, self.dtype)
        return self.alu(Ops.DIV, other) if exact is None else self * exact

    def __floordiv__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.IDIV, other)

    def __mod__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.MOD, other)

    def __lt__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.CMPLT, other)

    def __le__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.CMPLE, other)

    def __and__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.AND, other)

    def __or__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.OR, other)

    def __xor__(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.XOR, other)

    def __radd__(self, other: Number) -> UOp:
        return self + other

    def __rmul__(self, other: Number) -> UOp:
        return self * other

    def __gt__(self, other: Number) -> UOp:
        return self.lift(other) < self

    def __ge__(self, other: Number) -> UOp:
        return self.lift(other) <= self

    def __rfloordiv__(self, other: Number) -> UOp:
        return self.lift(other) // self

    def __rmod__(self, other: Number) -> UOp:
        return self.lift(other) % self

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __rsub__(self, other: Number) -> UOp:
        return self.lift(other) + self * -1

    def __rtruediv__(self, other: Number) -> UOp:
        return self.lift(other) / self

    def eq(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.CMPEQ, other)

    def ne(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.CMPNE, other)

    def maximum(self, other: UOp | Number) -> UOp:
        return self.alu(Ops.MAX, other)

    def where(self, a: UOp | Number, b: UOp | Number) -> UOp:
        """`a` where this node is true, else `b`; one of the two must be a UOp."""
        typed = a if isinstance(a, UOp) else b
        if not isinstance(typed, UOp):
            raise TypeError(f"where needs a UOp on one side, got the numbers {a} and {b}")
        return self.alu(Ops.WHERE, typed.lift(a), typed.lift(b))

    def exp2(self) -> UOp:
        return self._function(Ops.EXP2)

    def log2(self) -> UOp:
        return self._function(Ops.LOG2)

    def sqrt(self) -> UOp:
        return self._function(Ops.SQRT)

    def reciprocal(self) -> UOp:
        return self._function(Ops.RECIPROCAL)

    # *** movement and reduction ***

    def reshape(self, shape: Sequence[int]) -> UOp:
        if shape == self.shape:
            return self
        shape = tuple([int(n) for n in shape])
        if prod(shape) != prod(self.shape) or any(s < 0 for s in shape):
            raise ValueError(f"cannot reshape {self.shape} to {shape}: {prod(self.shape)} elements "
                             f"do not fit {prod(shape)}")
        if shape == self.shape:
            return self
        source = self.src[0] if self.op is Ops.RESHAPE else self
        return source if source.shape == shape else UOp(Ops.RESHAPE, (source,), shape)

    def expand(self, shape: Sequence[int]) -> UOp:
        shape = tuple([int(n) for n in shape])
        if len(shape) != len(self.shape) or any(
                new != old and old != 1 for new, old in zip(shape, self.shape, strict=True)):
            raise ValueError(f"cannot expand {self.shape} to {shape}: only axes of size 1 can "
                             "be repeated, and the number of axes must stay")
        return self if shape == self.shape else UOp(Ops.EXPAND, (self,), shape)

    def permute(self, order: Sequence[int]) -> UOp:
        order = tuple(int(a) for a in order)
        if sorted(order) != list(range(len(self.shape))):
            raise ValueError(f"cannot permute {self.shape} by {order}: every axis must appear once")
        return self if order == tuple(range(len(order))) else UOp(Ops.PERMUTE, (self,), order)

    def shrink(self, bounds: Sequence[tuple[int, int]]) -> UOp:
        bounds = tuple((int(a), int(b)) for a, b in bounds)
        if len(bounds) != len(self.shape) or any(
                not 0 <= a <= b <= n for (a, b), n in zip(bounds, self.shape, strict=True)):
            raise ValueError(f"cannot shrink {self.shape} to {bounds}: each axis needs "
                             "0 <= start <= stop <= size")
        whole = all((a, b) == (0, n) for (a, b), n in zip(bounds, self.shape, strict=True))
        return self if whole else UOp(Ops.SHRINK, (self,), bounds)

    def pad(self, pairs: Sequence[tuple[int, int]]) -> UOp:
        pairs = tuple((int(a), int(b)) for a, b in pairs)
        if len(pairs) != len(self.shape) or any(a < 0 or b < 0 for a, b in pairs):
            raise ValueError(f"cannot pad {self.shape} by {pairs}: each axis needs (before, "
                             "after), both at least 0")
        return self if not any(a or b for a, b in pairs) else UOp(Ops.PAD, (self,), pairs)

    def flip(self, axes: Sequence[int]) -> UOp:
        axes = tuple(sorted(int(a) for a in axes))
        if len(set(axes)) != len(axes) or any(not 0 <= a < len(self.shape) for a in axes):
            raise ValueError(f"cannot flip axes {axes} of {self.shape}")
        return UOp(Ops.FLIP, (self,), axes) if axes else self

    def reduce(self, op: Ops, n: int) -> UOp:
        """Combine the last `n` axes with `op` (ADD, MUL, MAX or MAXIMUM) and drop them."""
        if op not in IDENTITY or not 0 <= n <= len(self.shape):
            raise ValueError(f"cannot reduce the last {n} axes of {self.shape} with {op.name}")
        return UOp(Ops.REDUCE, (self,), (op, n)) if n else self


def _rebuild(node: UOp, done: dict[UOp, UOp]) -> UOp:
    return node.replace(src=tuple([done[s] for s in node.src]))


def _and(things: Iterable[Any]) -> str:
    return " and ".join(map(str, things))


def _user_line() -> tuple[str, int] | None:
    """(file, line) of the nearest caller outside this package; None for what a planner makes."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_name == "make_plan":
            return None
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else None
