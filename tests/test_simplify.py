"""Simplification keeps every value: rule by rule, exhaustively on small integers, and at random."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from helpers import FLOATS, INTS, assert_same_bits, buffer, evaluate, same_meaning, variable

from uopc.bounds import bounds
from uopc.dtype import ALL_DTYPES, DType, dtypes
from uopc.ops import ALU, UNARY
from uopc.rewrite import PatternMatcher, graph_rewrite
from uopc.simplify import simplify_rules
from uopc.uop import Ops, UOp

SMALL = np.arange(-40, 41)
SPECIAL = [1e8, 1e-8, 0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -3.0]
FLOAT_BINARY = (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MAXIMUM, Ops.CMPLT, Ops.CMPLE,
                Ops.CMPEQ, Ops.CMPNE)
INT_BINARY = (*FLOAT_BINARY, Ops.AND, Ops.OR, Ops.XOR)
EXACT_UNARY = (Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC)


def simplify(u: UOp) -> UOp:
    return graph_rewrite(u, simplify_rules)


def samples(u: UOp, dtype: DType) -> np.ndarray:
    """Values that the unknown `u` may take."""
    if dtype is dtypes.bool:
        return np.array([False, True])
    if dtype.is_float:
        return np.array(SPECIAL, dtype.np)
    low, high = bounds(u)
    if high - low < 200:
        return np.arange(low, high + 1).astype(dtype.np)
    ends = [low, low + 1, low + 7, high - 6, high - 1, high]
    return np.array([v for v in (*SMALL.tolist(), *ends) if low <= v <= high], dtype.np)


def constants(dtype: DType) -> list[UOp]:
    if dtype is dtypes.bool:
        numbers: list = [False, True]
    elif dtype.is_float:
        numbers = SPECIAL
    else:
        numbers = [0, 1, 2, 3, 4, 7, 12, dtype.max, dtype.min, *([-1, -2, -3, -12]
                                                                if dtype.min < 0 else [])]
    return [UOp.const(n, dtype) for n in numbers]


def expressions(dtype: DType) -> tuple[list[UOp], list[UOp]]:
    """(unknowns, expressions over them that cover the forms of every rule)."""
    x, y = variable(dtype, name=1), variable(dtype, name=2)
    unknowns = [x, y]
    if dtype.is_int:  # with bounds, many more rules apply
        low = -40 if dtype.min < 0 else 0
        unknowns.append(variable(dtype, low, 40, name=3))
    binary = FLOAT_BINARY if dtype.is_float else INT_BINARY
    numbers = constants(dtype)
    made: list[UOp] = []
    for u in (unknowns[0], unknowns[-1]):
        once = [u.alu(op, c) for op in binary for c in numbers]
        once += [c.alu(op, u) for op in binary for c in numbers]
        linear = [v for v in once if v.op in (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD)]
        made += once
        made += [v.alu(op, c) for v in linear for c in numbers[::2]
                 for op in (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.CMPLT)]
        made += [u.alu(op, u) for op in binary] + [u * -1 * -1]
        gate = variable(dtypes.bool, name=4)
        made += [gate.where(u, u), UOp.const(True, dtypes.bool).where(u, y),
                 UOp.const(False, dtypes.bool).where(u, y), (u < y).where(u, y)]
    made += [a.alu(op, b) for op in binary for a in numbers for b in numbers]
    if dtype.is_float:
        made += [UOp(op, (c,)) for op in EXACT_UNARY for c in [*numbers, x]]
    made += [c.cast(to) for c in numbers for to in ALL_DTYPES]
    alike = dtype in (dtypes.u32, dtypes.i64, dtypes.f64)  # to others: a third of it will do
    return [*unknowns, variable(dtypes.bool, name=4)], made[::3] if alike else made


def grid(unknowns: list[UOp]) -> dict[UOp, np.ndarray]:
    """Every combination of the unknowns' values, an axis for each."""
    values = [samples(u, u.dtype) for u in unknowns]
    return dict(zip(unknowns, np.meshgrid(*values, indexing="ij", sparse=True), strict=True))


def check_keeps_value(before: UOp, after: UOp, given: dict[UOp, np.ndarray]) -> None:
    assert after.dtype is before.dtype, (before, after)
    assert set(after.toposort()) & set(given) <= set(before.toposort())
    want, got = np.broadcast_arrays(evaluate(before, given), evaluate(after, given))
    assert_same_bits(got, want, f"{show(before)} became {show(after)}")


def show(u: UOp) -> str:
    if not u.src or u.op is Ops.LOAD:
        return str(u.arg.value) if u.op is Ops.CONST else f"v{u.src[0].src[0].arg.slot}"
    return f"{u.op.name}({', '.join(map(show, u.src))})"


# *** rule by rule (case A10) ***

POOLS = {dtype: expressions(dtype) for dtype in (dtypes.bool, *INTS, *FLOATS)}


@pytest.mark.parametrize("number", range(len(simplify_rules.rules)))
def test_rule_keeps_every_value(number: int) -> None:
    """Each rule alone, on expressions of every dtype, for the integers of -40..40 and the ends of
    the type, and for the floats that are prone to go wrong."""
    pattern, fn = simplify_rules.rules[number]
    rule = PatternMatcher([(pattern, fn)])
    touched = 0
    for unknowns, pool in POOLS.values():
        given = grid(unknowns)
        for u in pool:
            after = rule.rewrite(u)
            if after is not None:
                check_keeps_value(u, after, given)
                touched += 1
    needs_loops = pattern.ops in ({Ops.LOAD}, {Ops.WHERE}, {Ops.CAST}) \
        or "recombine" in fn.__name__
    assert touched or needs_loops, "no expression exercises this rule"


FORMS = {
    "x//a//c": lambda x, a, c: (x // a) // c, "x%a%c": lambda x, a, c: (x % a) % c,
    "(x+a)*c": lambda x, a, c: (x + a) * c, "x+a<c": lambda x, a, c: (x + a) < c,
    "x*a<c": lambda x, a, c: (x * a) < c, "(x+a)//c": lambda x, a, c: (x + a) // c,
    "x*a//c": lambda x, a, c: (x * a) // c, "(x+a)%c": lambda x, a, c: (x + a) % c,
    "x*a%c": lambda x, a, c: (x * a) % c, "max": lambda x, a, c: x.maximum(a).maximum(c),
}


@pytest.mark.parametrize("form", FORMS)
def test_small_integers_exhaustively(form: str) -> None:
    """x, a and c each from -40 to 40."""
    x, a, c = variable(dtypes.i32, -40, 40), variable(name=1), variable(name=2)
    small = SMALL.astype(np.int32)
    cube = dict(zip((a, c, x), np.meshgrid(small, small, small, indexing="ij"), strict=True))
    want = evaluate(FORMS[form](x, a, c), cube)
    for p, q in itertools.product(range(len(SMALL)), repeat=2):
        after = simplify_rules.rewrite(FORMS[form](x, int(SMALL[p]), int(SMALL[q])))
        if after is not None:
            assert (evaluate(after, {x: small}) == want[p, q]).all(), (form, SMALL[p], SMALL[q])


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
def test_digits_of_which_the_weights_end_where_the_type_does(dtype: DType) -> None:
    """(x//c % d)*c + x%c is x % (c*d), unless the type does not hold c*d."""
    x, bits = variable(dtype, name=1), 8 * dtype.size
    given = {x: samples(x, dtype)}
    for total in (bits - 2, bits - 1, bits):
        for k in range(1, total):
            c, d = (UOp.const(1 << n, dtype) for n in (k, total - k))
            check_keeps_value(u := x // c % d * c + x % c, simplify(u), given)


@pytest.mark.parametrize("dtype", POOLS, ids=lambda d: d.name)
def test_all_rules_together_keep_every_value(dtype: DType) -> None:
    unknowns, pool = POOLS[dtype]
    given = grid(unknowns)
    for u in pool[::4]:
        after = simplify(u)
        assert simplify(after) is after
        if after is not u:
            check_keeps_value(u, after, given)


def test_gated_loads() -> None:
    index = UOp(Ops.INDEX, (variable().src[0].src[0], variable(name=5), variable(dtypes.bool)))
    load, gate = UOp(Ops.LOAD, (index,)), index.src[2]
    opened = UOp(Ops.LOAD, (index.replace(src=index.src[:2]),))
    assert simplify(load.substitute({gate: UOp.const(True, dtypes.bool)})) is opened
    shut = load.substitute({gate: UOp.const(False, dtypes.bool)})
    assert simplify(shut) is UOp.const(0, dtypes.i32)
    assert simplify(gate.where(load, 0)) is load
    assert simplify(gate.where(load, 1)) is not load
    assert simplify(variable(dtypes.bool, name=8).where(load, 0)) is not load


# *** what index arithmetic must come to ***


def test_index_arithmetic_shrinks() -> None:
    r = UOp(Ops.RANGE, (), (0, 6))
    c = UOp(Ops.RANGE, (), (1, 8))
    flat = r * 8 + c
    assert simplify(flat // 8) is r
    assert simplify(flat % 8) is c
    assert simplify((flat // 8) * 8 + flat % 8) is flat
    assert simplify(flat // 4 % 2 * 4 + flat % 4) is c
    assert simplify(flat < 48) is UOp.const(True, dtypes.bool)
    assert simplify((r + 3) < 5) is (r < 2)
    assert simplify((r * 2) < 5) is (r < 3)
    assert simplify(r // 2 // 3) is UOp.const(0, dtypes.i32)


# *** the cases ***


def test_a03_times_zero() -> None:
    got = same_meaning(buffer([np.inf, np.nan, 1]) * 0)
    assert_same_bits(got, np.float32([np.nan, np.nan, 0]))
    assert simplify(variable(dtypes.i32) * 0) is UOp.const(0, dtypes.i32)


def test_a04_divided_by_itself() -> None:
    x = buffer([0, np.inf, np.nan, 5])
    assert_same_bits(same_meaning(x / x), np.float32([np.nan, np.nan, np.nan, 1]))


def test_a05_floor_division_and_modulo() -> None:
    x = buffer(np.arange(-7, 8), dtypes.i32)
    u = x * 4 + 3
    assert (same_meaning(u // 4) == np.arange(-7, 8)).all()
    assert (same_meaning(u % 4) == 3).all()


def test_a06_dividing_zero_by_what_may_be_zero_settles() -> None:
    start = time.monotonic()
    simplify(UOp.const(0, dtypes.u32) // variable(dtypes.u32))
    simplify(UOp.const(0, dtypes.u32) % variable(dtypes.u32, 0, 9))
    assert time.monotonic() - start < 1


def test_a07_square_root_of_zero() -> None:
    assert simplify(UOp.const(0, dtypes.f32).sqrt()) is UOp.const(0.0, dtypes.f32)
    assert (same_meaning(buffer([0.0]).sqrt()) == 0).all()


def test_a08_signed_zeros() -> None:
    x, y = buffer([-0.0, 0.0]), buffer([0.0, -0.0])
    assert_same_bits(same_meaning(x + y), np.float32([0.0, 0.0]))
    assert_same_bits(same_meaning(x + -0.0), np.float32([-0.0, 0.0]))
    assert simplify(x + -0.0) is x and simplify(x + 0.0) is not x


def test_a13_column_equals_its_transpose() -> None:
    column = UOp.iota(4).reshape((4, 1))
    for source in (column, column.stage(), buffer(np.arange(4), dtypes.i32).reshape((4, 1))):
        rows = source.expand((4, 4))
        assert (same_meaning(rows.eq(rows.permute((1, 0)))) == np.eye(4, dtype=bool)).all()


def test_inexact_functions_are_not_folded() -> None:
    for op in UNARY & {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF}:
        u = UOp(op, (UOp.const(0.5, dtypes.f32),))
        assert simplify(u) is u
    assert all(op in ALU for op in EXACT_UNARY)


def test_folding_rounds_as_the_type_does() -> None:
    third = UOp.const(1, dtypes.f32) * UOp.const(1 / 3, dtypes.f32)
    assert simplify(third).arg.value == 0.33333334  # the shortest number of that f32
    assert simplify(UOp.const(1e39, dtypes.f32) + 1).arg.value == np.inf
    assert simplify(UOp.const(2**31 - 1, dtypes.i32) + 1).arg.value == -2**31
    assert simplify(UOp.const(200, dtypes.u8) + 100).arg.value == 44


def test_shared_sums_are_taken_apart_once() -> None:
    """x + x, forty times over: a tree of 2**40 leaves, a graph of 40 nodes."""
    x = UOp(Ops.RANGE, (), (0, 2)).cast(dtypes.i64)
    total = x
    for _ in range(40):
        total = total + total
    got = simplify((total + 5) // 2**40)
    assert evaluate(got, {x.src[0]: np.asarray([0, 1], np.int32)}).tolist() == [0, 1]


def test_a_widening_cast_moves_inside_where_nothing_wraps() -> None:
    values = np.arange(-40, 41, dtype=np.int32)
    x, free = variable(low=-40, high=40), variable(name=77)
    for form in (lambda v: v * 3 + 1, lambda v: (v + 5) // 4, lambda v: v % 7 * 2, lambda v: v * v):
        before = form(x).cast(dtypes.i64)
        after = simplify(before)
        assert_same_bits(evaluate(after, {x: values}), evaluate(before, {x: values}))
        assert {u.dtype for u in after.toposort() if u.op in ALU} == {dtypes.i64}
    ends = np.array([-2**31, 2**31 - 1, 0, 7], np.int32)
    wraps = (free * 3 + 1).cast(dtypes.i64)
    assert_same_bits(evaluate(simplify(wraps), {free: ends}), evaluate(wraps, {free: ends}))
    again = free.cast(dtypes.i64).cast(dtypes.f64)
    assert_same_bits(evaluate(simplify(again), {free: ends}), evaluate(again, {free: ends}))
