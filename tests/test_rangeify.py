"""Shape graph → loops: each pass keeps the meaning, and so does the compiled C."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import INTS, as_kernel, buffer, run_c, same_meaning, stages
from random_graphs import random_body

from uopc.composite import array_buffer, matmul, reduce_axes
from uopc.dtype import ALL_DTYPES, DType, dtypes
from uopc.passes import PASSES
from uopc.rangeify import lower
from uopc.render_c import render_c
from uopc.runtime import load_all
from uopc.uop import Ops, ParamArg, UOp

SEEDS = 16  # random bodies for each dtype


def ramp(*shape: int) -> UOp:
    return array_buffer(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


# *** random bodies ***


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda d: d.name)
def test_random_bodies_keep_their_meaning(dtype: DType) -> None:
    """Movement, arithmetic and reductions in any order; the same bodies in every run."""
    bodies = [random_body(1000 * dtype.rank + k, dtype) for k in range(SEEDS)]
    kernels = [as_kernel(body) for body in bodies]
    load_all([render_c(lower(numbered, out), "kernel") for numbered, out, _ in kernels])
    for body in bodies:
        same_meaning(body)


def test_random_bodies_are_varied() -> None:
    bodies = [random_body(1000 * d.rank + k, d) for d in ALL_DTYPES for k in range(SEEDS)]
    seen = {u.op for body in bodies for u in body.toposort()}
    assert seen >= {Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.SHRINK, Ops.PAD, Ops.FLIP, Ops.REDUCE,
                    Ops.GATHER, Ops.STAGE, Ops.IOTA, Ops.WHERE, Ops.IDIV, Ops.MOD, Ops.CAST}
    sizes = {n for body in bodies for u in body.toposort() if u.shape for n in u.shape}
    assert sizes >= {0, 1, 2, 3, 5, 7, 11}


# *** every op in a known case ***


def test_fused_reductions_nest_and_stand_side_by_side() -> None:
    """Softmax in one kernel, and (A@B)@C with the inner product inside the outer one."""
    x = ramp(4, 8)
    top = x.reduce(Ops.MAX, 1).reshape((4, 1)).expand((4, 8))
    e = (x - top).exp2()
    total = e.reduce(Ops.ADD, 1).reshape((4, 1)).expand((4, 8))
    values = np.exp2(np.arange(8.0) - 7)
    np.testing.assert_allclose(same_meaning(e / total, rtol=1e-5),
                               np.tile(values / values.sum(), (4, 1)), rtol=1e-5)
    a, b, c = ramp(2, 3), ramp(3, 4), ramp(4, 2)
    want = np.arange(6).reshape(2, 3) @ np.arange(12).reshape(3, 4) @ np.arange(8).reshape(4, 2)
    np.testing.assert_array_equal(same_meaning(matmul(matmul(a, b), c)), want)


@pytest.mark.parametrize("index_dtype", INTS, ids=lambda d: d.name)
def test_gather(index_dtype: DType) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = np.array([[3, 0], [1, 1]])
    got = same_meaning(UOp(Ops.GATHER, (array_buffer(x) * 2 + 1, buffer(rows, index_dtype))))
    np.testing.assert_array_equal(got, x[rows] * 2 + 1)


def test_a_gather_out_of_range_gives_zero_whatever_it_reads() -> None:
    rows = buffer([-1, 0, 2, 7, -2**31, 2**31 - 1], dtypes.i32)
    for x in (ramp(2, 2) + 5, UOp.iota(2), ramp(2) * 0 + 1):
        got = same_meaning(UOp(Ops.GATHER, (x, rows)))
        assert (got[[0, 2, 3, 4, 5]] == 0).all()
    huge = buffer([2**32, 1], dtypes.i64)  # must be judged before it is narrowed
    assert same_meaning(UOp(Ops.GATHER, (ramp(2) + 1, huge))).tolist() == [0, 2]
    assert same_meaning(UOp(Ops.GATHER, (ramp(0, 2), rows))).tolist() == [[0, 0]] * 6


def test_scatter() -> None:
    rows = buffer([2, 0, 2, -1, 9], dtypes.i32)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    got = same_meaning(UOp(Ops.SCATTER, (rows, array_buffer(x) * 2), 4))
    np.testing.assert_array_equal(got, [[4, 6], [0, 0], [8, 12], [0, 0]])
    summed = ramp(5, 2, 3).reduce(Ops.ADD, 1)
    np.testing.assert_array_equal(
        same_meaning(UOp(Ops.SCATTER, (rows, summed), 3)),
        [[21, 30], [0, 0], [3 + 39, 12 + 48]])
    grid = buffer([[0, 1], [1, 1]], dtypes.i64)
    assert same_meaning(UOp(Ops.SCATTER, (grid, ramp(2, 2)), 2)).tolist() == [0, 6]


def test_scatter_of_nothing_and_into_nothing() -> None:
    rows = buffer([0, 1], dtypes.i32)
    assert same_meaning(UOp(Ops.SCATTER, (rows, ramp(2, 2)), 0)).shape == (0, 2)
    none = array_buffer(np.zeros(0, np.int32))
    got = same_meaning(UOp(Ops.SCATTER, (none, ramp(0, 2)), 3))
    assert got.tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MAXIMUM], ids=lambda o: o.name)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda d: d.name)
def test_reducing_an_empty_axis_gives_the_identity(op: Ops, dtype: DType) -> None:
    got = same_meaning(array_buffer(np.zeros((2, 0), dtype.np)).reduce(op, 1))
    want = {Ops.ADD: 0, Ops.MUL: 1}.get(op, dtype.min)
    assert (got == np.full(2, want, dtype.np)).all()


def test_an_empty_result_touches_nothing() -> None:
    for shape in [(0,), (3, 0), (0, 3), (2, 0, 1), (0, 1)]:
        numbered, out, arrays = as_kernel(array_buffer(np.zeros(shape, np.float32)) + 1)
        sink = lower(numbered, out)
        assert not [u for u in sink.toposort() if u.op is Ops.STORE]
        assert run_c(sink, arrays).size == 0
    edge = ramp(5, 3).shrink(((5, 5), (0, 3))).permute((1, 0)).reduce(Ops.ADD, 1)
    assert same_meaning(edge).tolist() == [0, 0, 0]


def test_scalars() -> None:
    assert same_meaning(ramp(4, 8).reduce(Ops.ADD, 2)) == 496
    assert same_meaning(buffer(3.0) * 2) == 6
    assert same_meaning(UOp.const(2, dtypes.f32).reshape((1,)).expand((3,))).tolist() == [2, 2, 2]


# *** the cases ***


def test_a11_pad_split_merge_cut() -> None:
    x = ramp(2, 5, 5)
    padded = x.pad(((2, 0), (0, 0), (0, 0)))
    merged = padded.reshape((2, 2, 5, 5)).reshape((4, 5, 5))
    split = (padded.reshape((2, 2, 5, 5)) + 0).reshape((4, 5, 5))
    for u in (merged, split):
        got = same_meaning(u.shrink(((2, 4), (0, 5), (0, 5))) + 0)
        np.testing.assert_array_equal(got, np.arange(50).reshape(2, 5, 5))


def test_a12_halves_of_a_range() -> None:
    r = UOp.iota(10)
    got = same_meaning(r.shrink(((0, 5),)) + r.shrink(((5, 10),)))
    assert got.tolist() == [5, 7, 9, 11, 13]


def test_a16_a_reversed_view() -> None:
    zeros, six = buffer(np.zeros(6)), UOp.iota(6, dtypes.i32).cast(dtypes.f32)
    got = same_meaning((zeros.flip((0,)) + six.flip((0,)) * 2).flip((0,)))
    assert got.tolist() == [0, 2, 4, 6, 8, 10]


def test_a17_transpose_then_flatten() -> None:
    assert same_meaning(ramp(2, 3).permute((1, 0)).reshape((6,))).tolist() == [0, 3, 1, 4, 2, 5]


def test_a46_running_sum_as_a_product_with_a_triangle() -> None:
    n = 100
    row = UOp.iota(n).reshape((1, n)).expand((n, n))
    lower_half = (row < row.permute((1, 0)) + 1)
    x = UOp.iota(n).reshape((1, n)).expand((n, n))
    got = same_meaning(reduce_axes(lower_half.where(x, 0), Ops.ADD, (1,)))
    assert got.tolist() == [k * (k + 1) // 2 for k in range(n)]


# *** form ***


def test_each_pass_does_what_it_says() -> None:
    body = (ramp(4, 8).permute((1, 0)).pad(((1, 1), (0, 0))) * 2).reduce(Ops.ADD, 1)
    numbered, out, _ = as_kernel(body)
    made = dict(stages(numbered, out))
    assert list(made) == [step.name for step in PASSES[0]]
    ops = {name: {u.op for u in sink.toposort()} for name, sink in made.items()}
    assert Ops.PAD not in ops["lower_movement"] and Ops.REDUCE in ops["lower_movement"]
    assert Ops.REDUCE not in ops["place_accumulators"] and Ops.ACC in ops["place_accumulators"]
    assert lower(numbered, out) is made["place_accumulators"]
    assert all(step.after for step in PASSES[0])


def test_movement_alone_leaves_no_division_behind() -> None:
    body = ramp(4, 6).reshape((2, 2, 6)).permute((1, 0, 2)).flip((2,)).shrink(
        ((0, 2), (1, 2), (2, 5))) * 2
    numbered, out, _ = as_kernel(body)
    assert not {Ops.IDIV, Ops.MOD} & {u.op for u in lower(numbered, out).toposort()}


def test_the_index_widens_when_int_is_too_small() -> None:
    side = 1 << 16
    big = UOp(Ops.BUFFER, (), ParamArg(0, dtypes.u8, (side, side), "kernel"))
    out = UOp(Ops.BUFFER, (), ParamArg(1, dtypes.u8, (side, side), "kernel"))
    wide = render_c(lower(big.permute((1, 0)) + 1, out), "wide")
    assert "65536L" in wide and "(long)" in wide
    index = [u.src[1] for u in lower(big + 1, out).toposort() if u.op is Ops.INDEX]
    assert {i.dtype for i in index} == {dtypes.i64}
    corner = big.shrink(((side - 1, side), (side - 1, side)))
    small = UOp(Ops.BUFFER, (), ParamArg(1, dtypes.u8, (1, 1), "kernel"))
    assert "data0[4294967295L]" in render_c(lower(corner + 1, small), "corner")


@pytest.mark.parametrize("depth", [300, 20_000])
def test_deep_bodies_lower_without_recursion(depth: int) -> None:
    x = buffer(np.zeros(2))
    u = x
    for k in range(depth // 2):
        u = (u + x).stage() * (k % 3)
    numbered, out, arrays = as_kernel(u)
    sink = lower(numbered, out)
    assert len(render_c(sink, "deep").splitlines()) > depth // 200
    if depth == 300:
        assert run_c(sink, arrays).tolist() == [0, 0]


def test_deep_chains_of_movement_and_reductions() -> None:
    u = ramp(3)
    for _ in range(60):
        u = u.reshape((1, 3)).expand((2, 3)).permute((1, 0)).reduce(Ops.MAX, 1).flip((0,))
    assert same_meaning(u + 0).tolist() == [0, 1, 2]


def test_lower_refuses_what_it_cannot_do() -> None:
    wrong = UOp(Ops.BUFFER, (), ParamArg(1, dtypes.f32, (5,), "kernel"))
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(5,\)"):
        lower(ramp(2, 3) + 1, wrong)
    with pytest.raises(ValueError, match="cannot be inside a kernel"):
        rows = buffer([0, 1], dtypes.i32)
        lower(UOp(Ops.SCATTER, (rows, ramp(2)), 2) + 1, buffer([0.0, 0.0]))


def test_an_output_of_another_shape_with_as_many_elements() -> None:
    numbered, _, arrays = as_kernel(ramp(2, 3).permute((1, 0)) + 0)
    flat = UOp(Ops.BUFFER, (), ParamArg(1, dtypes.f32, (6,), "kernel"))
    assert run_c(lower(numbered, flat), arrays).tolist() == [0, 3, 1, 4, 2, 5]
