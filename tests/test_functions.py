"""exp2, log2, sin, cos, tanh and erf of f32 at level 1, against f64; calls of the C library."""
from __future__ import annotations

import math
import re

import numpy as np
import pytest
from helpers import as_kernel, buffer, same_meaning

from uopc.composite import buffer_data
from uopc.dtype import DType, dtypes
from uopc.kernelize import realize
from uopc.rangeify import lower
from uopc.render_c import render_c
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp

FUNCTIONS = {"exp2": np.exp2, "log2": np.log2, "tanh": np.tanh, "erf": np.vectorize(math.erf),
             "sin": np.sin, "cos": np.cos}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1.1754944e-38,
           128.0, 127.99999, -126.0, -149.0, -150.0, -151.0, 3.4e38,
           6399.9995, 6400.0, -6400.0, 16367173 * 2.0 ** 72)  # the last: nearest to n*pi/2
TURNS = np.arange(1, 4100) * (np.pi / 2)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_within_2_ulp(name: str) -> None:
    """On a stride of all f32 there are, on those that are special, and where sin or cos is 0."""
    every = np.arange(0, 2**32, 65_521, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([every, np.array(SPECIAL, np.float32), TURNS.astype(np.float32)])
    forward, backward = realize([getattr(t, name)().uop for t in (Tensor(x), Tensor(x)[::-1])],
                                opt=1)
    within_2_ulp(name, x, buffer_data(forward))
    within_2_ulp(name, x[::-1], buffer_data(backward))  # what cannot be lanes: fuses no product


def within_2_ulp(name: str, x: np.ndarray, got: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name](x.astype(np.float64))
        rounded = want.astype(np.float32)
        exact = ~np.isfinite(rounded) | (rounded == 0)
        np.testing.assert_array_equal(got[exact], rounded[exact])
        number = exact & ~np.isnan(rounded)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(rounded[number]))
        error = np.abs(got[~exact] - want[~exact]) / np.spacing(np.abs(rounded[~exact]))
    assert error.max() <= 2, x[~exact][error.argmax()]


@pytest.mark.parametrize("op", [Ops.SIN, Ops.COS], ids=lambda o: o.name)
def test_every_pass_keeps_sin_and_cos(op: Ops) -> None:
    """By the interpreter, and in C; of numbers on both sides of what is left to the C library."""
    x = np.random.default_rng(0).standard_normal((5, 37)) * 10.0 ** np.arange(-18, 19)
    u = buffer(x)
    for body in (UOp(op, (u,)), UOp(op, (u,)).reduce(Ops.ADD, 1), UOp(op, (u.flip((0, 1)),)),
                 UOp(op, (UOp(op, (u,)),)), UOp(op, (u.reduce(Ops.MAX, 1),))):
        same_meaning(body, rtol=2e-6, level=1)


# *** calls of the C library in one branch of a WHERE ***


def c_of(body: UOp) -> str:
    numbered, out, _ = as_kernel(body)
    return render_c(lower(numbered, out, 1), "kernel")


def call_of(op: Ops, dtype: DType) -> tuple[UOp, UOp, list[UOp]]:
    """A call with lanes, another value, and masks of several origins."""
    rng = np.random.default_rng(1)
    x, y, z = (buffer(rng.standard_normal((3, 64)) * 4, dtype) for _ in range(3))
    counts = buffer(rng.integers(-5, 5, (3, 64)), dtypes.i32 if dtype.size == 4 else dtypes.i64)
    flags = buffer(rng.random((3, 64)) < 0.1, dtypes.bool)
    never, row = UOp.const(1e9, dtype) < x, y.reduce(Ops.ADD, 1).reshape((3, 1)).expand((3, 64))
    masks = [x < y, counts < 3, flags, flags | (counts < 0), never, row < 0]
    return UOp(op, (x, z) if op is Ops.POW else (x,)), y, masks


@pytest.mark.parametrize("op, dtype", [(Ops.POW, dtypes.f32), *[
    (op, dtypes.f64) for op in (Ops.SIN, Ops.EXP2, Ops.POW)]], ids=lambda v: v.name)
def test_a_call_in_one_branch(op: Ops, dtype: DType) -> None:
    call, other, masks = call_of(op, dtype)
    bodies = [body for mask in masks for body in (mask.where(call, other), mask.where(other, call))]
    for body in (*bodies, masks[0].where(call, 2.0), masks[0].where(call, call * other)):
        same_meaning(body, rtol=1e-5 if dtype is dtypes.f32 else 1e-12, level=1)


def test_only_the_lanes_of_the_mask_call_the_library() -> None:
    x, y = (buffer(np.ones(64)) for _ in range(2))
    power = x.alu(Ops.POW, y)
    for text in (c_of((x < y).where(power, y)), c_of((x < y).where(y, power)),
                 c_of(UOp(Ops.SIN, (x,)))):
        assert len(calls := re.findall(r".*(?:powf|sinf)\(.*", text)) == 1
        assert "if (c[k])" in calls[0]


def test_a_call_that_is_used_elsewhere_is_made_in_all_lanes() -> None:
    x, y = (buffer(np.ones(64)) for _ in range(2))
    power = x.alu(Ops.POW, y)
    assert "if (c[k])" not in c_of((x < y).where(power, y) * power)
