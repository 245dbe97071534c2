"""Intervals: they hold for every value, also where integers wrap, and simplification keeps both."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import INTS, assert_same_bits, evaluate, variable
from hypothesis import given, settings
from hypothesis import strategies as st

from uopc.alu import apply_alu
from uopc.bounds import bounds, cannot_wrap
from uopc.dtype import DType, dtypes
from uopc.ops import COMPARE
from uopc.rewrite import graph_rewrite
from uopc.simplify import simplify_rules
from uopc.uop import Ops, UOp

BINARY = (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MAXIMUM, Ops.CMPLT, Ops.CMPLE,
          Ops.CMPEQ, Ops.CMPNE, Ops.AND, Ops.OR, Ops.XOR)
RUNS = settings(max_examples=250, deadline=None, derandomize=True, database=None)
RANGES = [UOp(Ops.RANGE, (), (k, n)) for k, n in enumerate((3, 8, 5, 1))]
POINTS = dict(zip(RANGES, np.meshgrid(*(np.arange(r.arg[1], dtype=np.int32) for r in RANGES),
                                      indexing="ij"), strict=True))


def check(u: UOp, values: dict[UOp, np.ndarray]) -> None:
    """The bounds hold, and the simplified form has the same values and bounds that hold."""
    after = graph_rewrite(u, simplify_rules)
    want = evaluate(u, values)
    got, want = np.broadcast_arrays(evaluate(after, values), want)
    assert_same_bits(got, want, (u, after))
    for form in (u, after):
        low, high = bounds(form)
        assert low <= int(want.min()) and int(want.max()) <= high, (form, low, high)


@st.composite
def index_expressions(draw: st.DrawFn) -> UOp:
    """What lowering makes of movement: sums, multiples, quotients and remainders of loop counters,
    with conditions on them."""
    parts: list[UOp] = list(RANGES)
    for _ in range(draw(st.integers(2, 9))):
        a, b = draw(st.sampled_from(parts)), draw(st.sampled_from(parts))
        n = draw(st.sampled_from((1, 2, 3, 4, 5, 6, 8, 12, 15, 24, 40, 120)))
        kind = draw(st.integers(0, 8))
        if kind == 0:
            parts.append(a + b)
        elif kind == 1:
            parts.append(a * n)
        elif kind == 2:
            parts.append(a // n)
        elif kind == 3:
            parts.append(a % n)
        elif kind == 4:
            parts.append(a + draw(st.integers(-30, 30)))
        elif kind == 5:
            parts.append(a * -1 + n)
        elif kind == 6:
            parts.append((a // n) * n + a % n)
        elif kind == 7:
            parts.append((a < draw(st.integers(-9, 60))).where(a, b))
        else:
            parts.append(((a < n) & (UOp.const(1, dtypes.i32) < b)).where(a * n + b, a))
    last = parts[-1]
    return last if draw(st.booleans()) else last < draw(st.integers(-20, 200))


@RUNS
@given(index_expressions())
def test_index_expressions(u: UOp) -> None:
    check(u, POINTS)


@st.composite
def data_expressions(draw: st.DrawFn) -> tuple[UOp, dict[UOp, np.ndarray]]:
    """Arithmetic on data of a type, which may wrap around at every step."""
    dtype: DType = draw(st.sampled_from(INTS))
    unknowns = [variable(dtype, name=1), variable(dtype, name=2)]
    number = st.one_of(st.integers(-5, 9), st.sampled_from(
        [int(dtype.min), int(dtype.max), int(dtype.max) // 2 + 1]))
    parts = list(unknowns)
    for _ in range(draw(st.integers(1, 6))):
        op, a = draw(st.sampled_from(BINARY)), draw(st.sampled_from(parts))
        other = draw(st.one_of(st.sampled_from(parts), number))
        result = a.alu(op, other)
        parts.append(result.where(a, parts[0]) if op in COMPARE else result)
        if draw(st.integers(0, 5)) == 0:
            parts.append(parts[-1].cast(draw(st.sampled_from(INTS))).cast(dtype))
    values = st.lists(number, min_size=12, max_size=12)
    given_values = {u: np.array([UOp.const(v, dtype).arg.value for v in draw(values)], dtype.np)
                    for u in unknowns}
    return parts[-1], given_values


@RUNS
@given(data_expressions())
def test_data_expressions(case: tuple[UOp, dict[UOp, np.ndarray]]) -> None:
    check(*case)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_bounds_of_every_small_interval(op: Ops) -> None:
    """All pairs of intervals inside -3..3."""
    ends = [(low, high) for low in range(-3, 4) for high in range(low, 4)]
    for a in ends:
        for b in ends:
            x, y = variable(dtypes.i32, *a, name=1), variable(dtypes.i32, *b, name=2)
            low, high = bounds(x.alu(op, y))
            xs, ys = np.arange(a[0], a[1] + 1), np.arange(b[0], b[1] + 1)
            values = apply_alu(op, [xs[:, None], ys], dtypes.i32)
            assert low <= values.min() and values.max() <= high, (op, a, b)


def test_bounds_that_index_arithmetic_relies_on() -> None:
    r = UOp(Ops.RANGE, (), (0, 8))
    assert bounds(r) == (0, 7)
    assert bounds(r * 4 + 3) == (3, 31)
    assert bounds(r // 3) == (0, 2) and bounds(r % 3) == (0, 2)
    assert bounds(r * -1 + 7) == (0, 7)
    assert bounds(r < 8) == (1, 1) and bounds(r < 0) == (0, 0) and bounds(r < 4) == (0, 1)
    assert bounds(r.cast(dtypes.i64)) == (0, 7)


def test_bounds_widen_where_values_wrap() -> None:
    x = variable(dtypes.u8)
    assert bounds(x) == (0, 255) and bounds(x + 1) == (0, 255)
    assert not cannot_wrap(x + 1)
    assert bounds(variable(dtypes.i32, 200, 300, name=1).cast(dtypes.u8)) == (0, 255)
    assert bounds(UOp.iota(300, dtypes.u8)) == (0, 255), "300 steps do not fit"
    assert bounds(UOp.iota(256, dtypes.u8)) == (0, 255)
    assert bounds(variable(dtypes.f32).cast(dtypes.i32)) == (-2**31, 2**31 - 1)
    r = UOp(Ops.RANGE, (), (0, 70_000))
    assert bounds(r * 70_000) == (-2**31, 2**31 - 1)
    assert bounds(r.cast(dtypes.i64) * 70_000) == (0, 69_999 * 70_000)


def test_bounds_of_deep_graphs() -> None:
    u = UOp(Ops.RANGE, (), (0, 2))
    for _ in range(20_000):
        u = u + 1
    assert bounds(u) == (20_000, 20_001)
