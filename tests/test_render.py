"""Loops → C: the form that people read, and arithmetic that is Python's or NumPy's throughout."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from helpers import FLOATS, INTS, as_kernel, assert_same_bits, buffer, evaluate, run_c, same_meaning

from uopc.composite import array_buffer, exp, matmul
from uopc.dtype import ALL_DTYPES, DType, dtypes
from uopc.linearize import linearize
from uopc.rangeify import lower
from uopc.render_c import render_c, render_const
from uopc.rewrite import graph_rewrite
from uopc.simplify import simplify_rules
from uopc.uop import Ops, ParamArg, UOp


def source(body: UOp, name: str = "kernel") -> str:
    numbered, out, _ = as_kernel(body)
    return render_c(lower(numbered, out), name)


def body_of(text: str) -> list[str]:
    """The lines inside the function."""
    lines = text.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("void"))
    return lines[first + 1:lines.index("}", first)]


def zeros(*shape: int) -> UOp:
    return array_buffer(np.zeros(shape, np.float32))


# *** the listings of the contract ***


def test_row_maximum() -> None:
    assert source(zeros(4, 8).reduce(Ops.MAX, 1), "r_4") == """#include <math.h>

void r_4(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
    float acc0;
    acc0 = -INFINITY;
    for (int ridx1 = 0; ridx1 < 8; ridx1++) {
      float val1 = acc0;
      float val2 = data0[((ridx0*8)+ridx1)];
      acc0 = ((val1>val2)?val1:val2);
    }
    float val3 = acc0;
    data1[ridx0] = val3;
  }
}
"""


def test_elementwise_chain() -> None:
    a = zeros(2, 4) * 2 + 1
    relu = (UOp.const(0, dtypes.f32) < a).where(a, 0)
    assert body_of(source(relu * 3)) == """\
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    for (int ridx1 = 0; ridx1 < 4; ridx1++) {
      int alu1 = ((ridx0*4)+ridx1);
      float val2 = data0[alu1];
      float alu3 = ((val2*2.0f)+1.0f);
      data1[alu1] = (((0.0f<alu3)?alu3:0.0f)*3.0f);
    }
  }""".splitlines()


def test_forms_of_operations() -> None:
    a, b = zeros(3), zeros(3)
    for body, form in [(a - b, "(val1+(val2*-1.0f))"), (1 / a, "(1.0f/val1)"),
                       (a.exp2(), "exp2f(val1)"), (a.sqrt(), "sqrtf(val1)"),
                       (exp(a), "exp2f((val1*1.4426950408889634f))"),
                       (a.maximum(b), "((val1>val2)?val1:val2)"),
                       (a * (1 / 256), "(val1*0.00390625f)"), (a + 1e-5, "(val1+1e-05f)")]:
        assert f"= {form};" in source(body), form


def test_nested_reductions_number_the_inner_accumulator_first() -> None:
    text = source(matmul(matmul(zeros(3, 3), zeros(3, 3)), zeros(3, 3)))
    assert text.index("acc1 = 0.0f") < text.index("acc0 = 0.0f")
    assert text.count("for (") == 4
    assert re.search(r"acc1 = \(val\d+\+\(val\d+\*val\d+\)\)", text)


def test_what_a_loop_does_not_change_stands_outside_of_it() -> None:
    a, b = zeros(3), zeros(4)
    body = a.exp2().reshape((3, 1)).expand((3, 4)) * b.reshape((1, 4)).expand((3, 4))
    lines = body_of(source(body))
    assert lines[1].startswith("    float val1 = data0[ridx0]")
    assert lines[2].startswith("    for (int ridx1")


def test_a_deleted_read_deletes_its_parameter() -> None:
    t = buffer([1, 2, 3], dtypes.i32)
    assert "void e_3(int* restrict data1) {" in source(t * 0, "e_3")
    assert same_meaning(t * 0).tolist() == [0, 0, 0]


def test_chains_of_maxima_stay_short() -> None:
    """The text of a maximum has its first operand twice; a chain must not double each time."""
    u, want = buffer([0.0, 1.0]), np.float32([0, 1])
    for k in range(40):
        value = np.float32([k % 7, -k])
        u = u.alu(Ops.MAX if k % 2 else Ops.MAXIMUM, array_buffer(value) * 1.5)
        want = np.maximum(want, value * np.float32(1.5))
    assert len(source(u)) < 10_000
    assert_same_bits(same_meaning(u), want)


def test_long_expressions_are_split() -> None:
    u = zeros(2)
    for k in range(500):
        u = u + k
    text = source(u)
    assert max(line.count("(") for line in text.splitlines()) < 130
    assert same_meaning(u).tolist() == [sum(range(500))] * 2


def test_loops_that_do_not_nest_are_refused() -> None:
    place = UOp(Ops.BUFFER, (), ParamArg(0, dtypes.f32, (9,), "kernel"))
    r, s = (UOp(Ops.RANGE, (), (k, 3)) for k in range(2))

    def loop(index: UOp, *ranges: UOp) -> UOp:
        store = UOp(Ops.STORE, (UOp(Ops.INDEX, (place, index)), UOp.const(1, dtypes.f32)))
        return UOp(Ops.END, (store, *ranges))

    sink = UOp(Ops.SINK, (loop(r, r), loop(s, s), loop(r + s, r, s)))
    with pytest.raises(ValueError, match="do not nest"):
        linearize(sink)


# *** constants ***


@pytest.mark.parametrize(("value", "dtype", "text"), [
    (1.0, dtypes.f32, "1.0f"), (-1.5, dtypes.f32, "-1.5f"), (-0.0, dtypes.f32, "-0.0f"),
    (1e-5, dtypes.f32, "1e-05f"), (0.1, dtypes.f64, "0.1"), (float("inf"), dtypes.f32, "INFINITY"),
    (float("-inf"), dtypes.f64, "-INFINITY"), (float("nan"), dtypes.f32, "NAN"),
    (True, dtypes.bool, "1"), (7, dtypes.u8, "7"), (7, dtypes.u32, "7u"), (7, dtypes.i64, "7L"),
    (-7, dtypes.i32, "-7"), (-2**31, dtypes.i32, "(-2147483647-1)"),
    (-2**63, dtypes.i64, "(-9223372036854775807L-1L)"),
])
def test_constants(value: float, dtype: DType, text: str) -> None:
    assert render_const(UOp.const(value, dtype)) == text


ODD_FLOATS = [0.1, 1 / 3, 1 + 2**-24, 1 + 2**-23 + 2**-24, 16777217.0, 3.4028235e38, 1e39, -1e39,
              3.4028235677973366e38, 1e-45, 7e-46, 1e-60, -1e-60, 2**-149 * 1.5,
              2.0**-150, -2.0**-150, 5e-324, np.pi]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda d: d.name)
def test_constants_mean_the_same_in_c(dtype: DType) -> None:
    """Also doubles that lie exactly between two floats, beyond all, or below the least."""
    numbers = ODD_FLOATS if dtype.is_float else [dtype.min, dtype.max, 0, 1]
    for value in numbers:
        u = UOp.const(value, dtype)
        got = run_c(*constant_kernel(u))
        assert_same_bits(got, np.full(1, evaluate(u, {})), value)


def constant_kernel(u: UOp) -> tuple[UOp, list[np.ndarray]]:
    out = UOp(Ops.BUFFER, (), ParamArg(0, u.dtype, (1,), "kernel"))
    return lower(u.reshape((1,)), out), [np.zeros(1, u.dtype.np)]


# *** arithmetic: compiled = NumPy's = folded ***


def pairs(values: list, dtype: DType) -> tuple[UOp, UOp]:
    a, b = zip(*itertools.product(values, values), strict=True)
    return buffer(a, dtype), buffer(b, dtype)


def python_floor(a: int, b: int, dtype: DType) -> tuple[int, int]:
    if b == 0:
        return 0, 0
    return UOp.const(a // b, dtype).arg.value, UOp.const(a % b, dtype).arg.value


@pytest.mark.parametrize("dtype", INTS, ids=lambda d: d.name)
def test_integer_division_is_pythons(dtype: DType) -> None:
    """Zero divisors give 0 and the least number divided by -1 wraps; nothing traps."""
    low, high = dtype.min, dtype.max
    values = [*range(-7 if low < 0 else 0, 8), low, low + 1, low + 2, high - 1, high, high // 2]
    a, b = pairs(values, dtype)
    quotient, remainder = same_meaning(a // b), same_meaning(a % b)
    for k, (p, q) in enumerate(itertools.product(values, values)):
        assert (quotient[k], remainder[k]) == python_floor(p, q, dtype), (p, q)
    for q in [1, 2, 7, 8, high, *([-1, -3, low] if low < 0 else [])]:
        column = buffer(values, dtype)
        want = [python_floor(p, q, dtype) for p in values]
        both = same_meaning(column // q), same_meaning(column % q)
        assert list(zip(*(v.tolist() for v in both), strict=True)) == want, q


FLOAT_VALUES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 7.0, 0.1, 1e8, -1e-8, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MAXIMUM,
                                Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE], ids=lambda o: o.name)
def test_float_operations_bit_for_bit(op: Ops, dtype: DType) -> None:
    a, b = pairs(FLOAT_VALUES, dtype)
    got = same_meaning(a.alu(op, b))
    for k, (p, q) in enumerate(itertools.product(FLOAT_VALUES, FLOAT_VALUES)):
        folded = graph_rewrite(UOp.const(p, dtype).alu(op, q), simplify_rules)
        assert_same_bits(np.asarray(folded.arg.value, got.dtype), got[k], (op, p, q))


@pytest.mark.parametrize("target", ALL_DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("origin", ALL_DTYPES, ids=lambda d: d.name)
def test_casts_agree_with_folded_ones(origin: DType, target: DType) -> None:
    """Case A09: a float outside the target's range gives its nearest end; NaN gives 0."""
    if origin.is_float:
        values = [*FLOAT_VALUES, 2147483646.0, 2147483648.0, -2147483648.0, 4294967296.0, 255.5,
                  256.0, -3.0, -0.5, 2.0**63, -2.0**63, 1e30, 16777217.0, 0.99]
    else:
        values = [origin.min, origin.max, 0, 1, origin.max // 2]
    values = np.array(values, origin.np).tolist()
    got = same_meaning(buffer(values, origin).cast(target))
    for value, result in zip(values, got, strict=True):
        folded = graph_rewrite(UOp.const(value, origin).cast(target), simplify_rules)
        assert_same_bits(np.asarray(folded.arg.value, got.dtype), result, value)
        if origin.is_float and target.is_int:
            whole = 0 if value != value else min(max(value, target.min), target.max)
            assert int(result) == int(whole), value


def test_a09_the_documented_values() -> None:
    x = buffer([2147483646.0, -3.0, 300.0])  # as f32 the first is 2147483648
    assert same_meaning(x.cast(dtypes.i32)).tolist() == [2147483647, -3, 300]
    assert same_meaning(x.cast(dtypes.u32)).tolist() == [2147483648, 0, 300]
    assert same_meaning(x.cast(dtypes.u8)).tolist() == [255, 0, 255]


def test_a44_small_integers_wrap_inside_a_fused_expression() -> None:
    t = buffer([200], dtypes.u8)
    assert same_meaning(t + 100).tolist() == [44]
    assert same_meaning(-(t + 100)).tolist() == [212]
    assert same_meaning((-(t + 100)).cast(dtypes.i32)).tolist() == [212]
    assert same_meaning((t * t * 3).cast(dtypes.i32)).tolist() == [200 * 200 * 3 % 256]


def test_bits_and_shifts() -> None:
    for dtype in INTS:
        a, b = pairs([0, 1, 2, 5, 7, dtype.max, dtype.max // 3], dtype)
        for op in (Ops.AND, Ops.OR, Ops.XOR):
            same_meaning(a.alu(op, b))
        for count in (0, 1, 7):
            same_meaning(a.alu(Ops.SHL, count))
            same_meaning(a.alu(Ops.SHR, count))
    assert same_meaning(buffer([-8, 255], dtypes.i32).alu(Ops.SHR, 1)).tolist() == [-4, 127]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.SQRT,
                                Ops.TRUNC, Ops.RECIPROCAL], ids=lambda o: o.name)
def test_functions(op: Ops, dtype: DType) -> None:
    x = buffer([*FLOAT_VALUES, 0.5, -0.75, 3.0, 1e-3], dtype)
    same_meaning(UOp(op, (x,)), rtol=1e-6 if dtype is dtypes.f32 else 1e-14)
    base, power = pairs([0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan], dtype)
    same_meaning(base.alu(Ops.POW, power), rtol=1e-6 if dtype is dtypes.f32 else 1e-14)
