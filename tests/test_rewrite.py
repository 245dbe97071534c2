"""Patterns and the engine: what matches, in which order, how deep, and rules that do not settle."""

from __future__ import annotations

import time

import pytest
from helpers import buffer, variable

from uopc.dtype import dtypes
from uopc.rewrite import PatternMatcher, UPat, graph_rewrite
from uopc.uop import Ops, UOp

X, Y = variable(dtypes.f32, name=1), variable(dtypes.f32, name=2)


def bindings(pattern: UPat, node: UOp) -> list[dict[str, UOp]]:
    return list(pattern.match(node, {}))


def test_var_binds_anything_and_may_ask_for_a_dtype() -> None:
    assert bindings(UPat.var("x"), X) == [{"x": X}]
    assert bindings(UPat.var("x", dtypes.f32), X) == [{"x": X}]
    assert not bindings(UPat.var("x", dtypes.i32), X)
    assert bindings(UPat.var("x", (dtypes.i32, dtypes.f32)), X)
    assert bindings(UPat(), X) == [{}]


def test_ops_and_sources() -> None:
    assert bindings(UPat(Ops.ADD, name="x"), X + Y) == [{"x": X + Y}]
    assert not bindings(UPat(Ops.MUL), X + Y)
    assert bindings(UPat((Ops.MUL, Ops.ADD)), X + Y)
    assert bindings(UPat(Ops.ADD, (UPat.var("a"), UPat.var("b"))), X + Y) == [{"a": X, "b": Y}]
    assert not bindings(UPat(Ops.ADD, (UPat.var("a"),)), X + Y), "the number of sources counts"


def test_commuting_patterns_try_both_orders() -> None:
    pattern = UPat.var("x") + UPat.const("c")
    two = UOp.const(2, dtypes.f32)
    assert bindings(pattern, X + 2) == bindings(pattern, two + X) == [{"x": X, "c": two}]
    assert not bindings(UPat.var("x") // UPat.const("c"), two // X), "IDIV does not commute"
    assert len(bindings(UPat.var("a") * UPat.var("b"), X * Y)) == 2


def test_one_name_is_one_node() -> None:
    pattern = UPat.var("x") + UPat.var("x")
    assert bindings(pattern, X + X) and not bindings(pattern, X + Y)
    nested = (UPat.var("a") * UPat.var("b")) + UPat.var("a")
    assert {"a": Y, "b": X} in bindings(nested, X * Y + Y)


def test_constants_match_by_value_and_sign() -> None:
    for dtype in (dtypes.i32, dtypes.f32, dtypes.bool):
        assert bindings(UPat.const(value=1), UOp.const(1, dtype))
    assert not bindings(UPat.const(value=0), UOp.const(-0.0, dtypes.f32))
    assert not bindings(UPat.const(value=1), UOp.const(float("nan"), dtypes.f32))
    assert not bindings(UPat.const(), X)


def test_arg_and_named() -> None:
    cast = X.cast(dtypes.i32)
    assert bindings(UPat(Ops.CAST, arg=dtypes.i32), cast)
    assert not bindings(UPat(Ops.CAST, arg=dtypes.i64), cast)
    assert bindings((UPat.var("x") + 1).named("whole"), X + 1) == [{"x": X, "whole": X + 1}]


def test_the_first_rule_that_does_not_decline_wins() -> None:
    tried: list[str] = []

    def decline(x: UOp) -> None:
        tried.append("decline")

    def same(x: UOp) -> UOp:
        tried.append("same")
        return x + 1

    add = UPat.var("x") + 1
    rules = PatternMatcher([(add, decline), (add, same)]) + PatternMatcher([(add, lambda x: x)])
    assert rules.rewrite(X + 1) is X, "a rule that gives the node back has declined"
    assert tried == ["decline", "same"]
    assert rules.rewrite(X * 2) is None


def test_a_rule_sees_only_the_names_it_asks_for() -> None:
    rules = PatternMatcher([(UPat.var("a") + UPat.var("b"), lambda b: b)])
    assert rules.rewrite(X + Y) is Y


def test_rewriting_is_bottom_up_and_runs_to_the_end() -> None:
    rules = PatternMatcher([(UPat.var("x") + 0, lambda x: x), (UPat.var("x") * 1, lambda x: x)])
    assert graph_rewrite(((X + 0) * 1 + 0) * Y, rules) is X * Y
    assert graph_rewrite(X * Y, rules) is X * Y


def test_a_result_is_rewritten_again() -> None:
    halve = PatternMatcher([(UPat(Ops.CONST, name="c", dtype=dtypes.i32),
                             lambda c: UOp.const(c.arg.value // 2, dtypes.i32)
                             if c.arg.value > 1 else None)])
    assert graph_rewrite(UOp.const(64, dtypes.i32), halve) is UOp.const(1, dtypes.i32)


def test_shared_nodes_are_rewritten_once() -> None:
    calls: list[UOp] = []
    rules = PatternMatcher([(UPat(Ops.ADD, name="x"), lambda x: calls.append(x))])
    u = X
    for _ in range(50):
        u = u + u
    graph_rewrite(u, rules)
    assert len(calls) == 50


def test_memo_carries_over() -> None:
    calls: list[UOp] = []
    rules = PatternMatcher([(UPat(Ops.ADD, name="x"), lambda x: calls.append(x))])
    memo: dict[UOp, UOp] = {}
    graph_rewrite(X + Y, rules, memo)
    graph_rewrite((X + Y) * 2, rules, memo)
    assert calls == [X + Y]


@pytest.mark.parametrize("depth", [300, 20_000])
def test_depth_has_no_limit(depth: int) -> None:
    rules = PatternMatcher([(UPat.var("x") * 1, lambda x: x)])
    x = buffer([1.0, 2.0])
    u = want = x
    for k in range(depth // 2):
        u, want = (u + k) * 1, want + k
    assert graph_rewrite(u, rules) is want


@pytest.mark.parametrize("rules", [
    [(UPat.var("a") + UPat.var("b"), lambda a, b: b + a)],
    [(UPat.var("x") + 1, lambda x: x * 1), (UPat.var("x") * 1, lambda x: x + 1)],
    [(UPat(Ops.LOAD, name="x"), lambda x: x + 1)],
    [(UPat(Ops.CONST, name="x"), lambda x: UOp.const(x.arg.value + 1, x.dtype))],
    [(UPat.var("x") + UPat.var("y"), lambda x, y: (x + 1) + y)],
    [(UPat(Ops.ADD, name="x"), lambda x: x * 2), (UPat(Ops.MUL, name="x"), lambda x: x + 3)],
])
def test_rules_that_do_not_settle_stop_with_an_error(rules: list) -> None:
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="do not settle"):
        graph_rewrite((X + Y) + 1, PatternMatcher(rules))
    assert time.monotonic() - start < 5
