"""Patterns over UOps, and the engine that applies rules until none fits.

A rule is a pair: a pattern, and a function whose parameters bear the pattern's names. It returns
the node to put in the matched one's place, or None to decline.

    simplify_rules = PatternMatcher([(UPat.var("x") * 1, lambda x: x), ...])
    graph_rewrite(root, simplify_rules)
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from uopc.dtype import DType, Number
from uopc.ops import COMMUTATIVE
from uopc.uop import Ops, UOp, _argkey

Bindings = dict[str, UOp]


class UPat:
    """A pattern: an op (or several, or None for any), sources, arg, dtypes, and a name to bind.

    `src` as a tuple must match in order; `commute=True` tries the two sources both ways round.
    A name that occurs twice must match one and the same node.
    """

    __slots__ = ("ops", "src", "arg", "dtypes", "name", "commute", "value", "source_ops")

    def __init__(self, op: Ops | Sequence[Ops] | frozenset[Ops] | None = None,
                 src: Sequence[UPat] | None = None, arg: Any = None, name: str | None = None,
                 dtype: DType | Sequence[DType] | None = None, commute: bool = False,
                 value: Number | None = None) -> None:
        self.ops = None if op is None else frozenset((op,) if isinstance(op, Ops) else op)
        self.src = None if src is None else tuple(src)
        self.arg, self.name, self.commute, self.value = arg, name, commute, value
        self.dtypes = (dtype,) if isinstance(dtype, DType) else dtype
        self.source_ops = None if src is None else [p.ops for p in self.src]

    @staticmethod
    def var(name: str, dtype: DType | Sequence[DType] | None = None) -> UPat:
        """Any node, bound to `name`."""
        return UPat(name=name, dtype=dtype)

    @staticmethod
    def const(name: str | None = None, value: Number | None = None,
              dtype: DType | Sequence[DType] | None = None) -> UPat:
        """A CONST; with `value`, one that holds this number (of whatever type; -0.0 is not 0)."""
        return UPat(Ops.CONST, name=name, value=value, dtype=dtype)

    def alu(self, op: Ops, *others: UPat | Number) -> UPat:
        src = (self, *(o if isinstance(o, UPat) else UPat.const(value=o) for o in others))
        return UPat(op, src, commute=op in COMMUTATIVE)

    def named(self, name: str) -> UPat:
        """The same pattern, with what it matches bound to `name`."""
        return UPat(self.ops, self.src, self.arg, name, self.dtypes, self.commute, self.value)

    def __add__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.ADD, other)

    def __mul__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.MUL, other)

    def __floordiv__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.IDIV, other)

    def __mod__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.MOD, other)

    def __lt__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.CMPLT, other)

    def __and__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.AND, other)

    def __or__(self, other: UPat | Number) -> UPat:
        return self.alu(Ops.OR, other)

    def where(self, a: UPat | Number, b: UPat | Number) -> UPat:
        return self.alu(Ops.WHERE, a, b)

    def may_match(self, node: UOp) -> bool:
        """False where the sources' ops alone rule a match out: a quick look before `match`."""
        wanted = self.source_ops
        if wanted is None:
            return True
        if len(wanted) != len(node.src):
            return False
        return _ops_fit(wanted, node.src) or (self.commute and _ops_fit(wanted, node.src[::-1]))

    def match(self, node: UOp, bound: Bindings) -> Iterator[Bindings]:
        """Every way in which `node` fits, as `bound` extended by the names."""
        if self.ops is not None and node.op not in self.ops:
            return
        if self.dtypes is not None and node.dtype not in self.dtypes:
            return
        if self.arg is not None and _argkey(node.arg) != _argkey(self.arg):
            return
        if self.value is not None and not _holds(node, self.value):
            return
        if self.name is not None:
            if bound.get(self.name, node) is not node:
                return
            bound = {**bound, self.name: node}
        if self.src is None:
            yield bound
        elif len(self.src) == len(node.src):
            yield from _match_all(self.src, node.src, bound)
            if self.commute and len(node.src) == 2:
                yield from _match_all(self.src, node.src[::-1], bound)


def _holds(node: UOp, value: Number) -> bool:
    held = node.arg.value
    return held == value and not (value == 0 and str(held)[0] == "-")


def _ops_fit(wanted: list[frozenset[Ops] | None], nodes: tuple[UOp, ...]) -> bool:
    for ops, node in zip(wanted, nodes, strict=True):
        if ops is not None and node.op not in ops:
            return False
    return True


def _match_all(patterns: tuple[UPat, ...], nodes: tuple[UOp, ...],
               bound: Bindings) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    for extended in patterns[0].match(nodes[0], bound):
        yield from _match_all(patterns[1:], nodes[1:], extended)


class PatternMatcher:
    """A table of rules, tried in order. Tables add up: `index_rules + float_rules`."""

    def __init__(self, rules: Sequence[tuple[UPat, Callable[..., UOp | None]]]) -> None:
        self.rules = list(rules)
        self._by_op: dict[Ops, list[tuple[UPat, Callable, tuple[str, ...]]]] = {}
        for pattern, fn in self.rules:
            names = tuple(inspect.signature(fn).parameters)
            for op in pattern.ops or Ops:
                self._by_op.setdefault(op, []).append((pattern, fn, names))

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def rewrite(self, node: UOp) -> UOp | None:
        """What the first rule that fits makes of `node`, or None when none does."""
        for pattern, fn, names in self._by_op.get(node.op, ()):
            if not pattern.may_match(node):
                continue
            for bound in pattern.match(node, {}):
                result = fn(**{name: bound[name] for name in names})
                if result is not None and result is not node:
                    return result
        return None


MAX_REWRITES = 1000  # of one node in a row: beyond any chain that shrinks what it rewrites


def graph_rewrite(root: UOp, matcher: PatternMatcher, memo: dict[UOp, UOp] | None = None) -> UOp:
    """Apply `matcher` to every node, sources first, until no rule fits any more.

    `memo` keeps what was rewritten for the next call with the same matcher. Works in place of
    recursion with a stack of its own, so depth has no limit. Raises RuntimeError when rules undo
    one another.
    """
    done: dict[UOp, UOp] = {} if memo is None else memo
    became: dict[UOp, UOp] = {}  # node → what it was rewritten to, itself not finished yet
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
        elif node in became:
            if (result := became.pop(node)) not in done:
                raise RuntimeError(f"the rules do not settle: {node!r} became {result!r}, which "
                                   "contains it")
            done[node] = done[result]
            stack.pop()
        elif missing := [s for s in node.src if s not in done]:
            stack.extend(reversed(missing))
        else:
            rebuilt = node.replace(src=tuple([done[s] for s in node.src]))
            result = matcher.rewrite(rebuilt)
            if result is None:
                done[node] = done[rebuilt] = rebuilt
                stack.pop()
            elif result in became or len(became) > MAX_REWRITES + 10 * len(done):
                raise RuntimeError(f"the rules do not settle: {rebuilt!r} became {result!r}, which "
                                   "is being rewritten already")
            else:
                became[node] = result
                stack.append(result)
    return done[root]
