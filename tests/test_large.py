"""Beyond 2**31 elements: positions are right wherever they are counted, compared and multiplied.

Nothing of that size is computed, see `fuzz/positions.py`, which does chains of movement.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tests.fuzz.positions import (
    LIMIT,
    SAMPLES,
    assert_no_index_wraps,
    memory,
    ravel,
    stored,
    unravel,
    values_at,
)
from uopc import emit
from uopc import random as uopc_random
from uopc import uop as uop_module
from uopc.composite import buffer_data
from uopc.dtype import DType, dtypes
from uopc.kernelize import make_plan
from uopc.linearize import ranges_below
from uopc.rangeify import lower
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp, prod

# *** tensors of which no element lies in memory ***


def virtual(*shape: int, dtype: DType = dtypes.i64) -> Tensor:
    """Each element is its own position, as its dtype has it."""
    return Tensor._of(memory(0, shape, dtype))


def elements(t: Tensor, level: int) -> list[tuple[tuple[int, ...], int]]:
    """(index, value) of some elements, as the lowered kernel computes them."""
    read = {u.arg.slot: lambda at, u=u: buffer_data(u).reshape(-1)[np.where(
        (0 <= at) & (at < prod(u.shape)), at, 0)]
        for u in t.uop.toposort() if u.op is Ops.BUFFER and "np" in u.__dict__}
    sink = lower(t.uop, memory(10**9, t.shape, t.dtype), level)
    found = stored(sink, {0: lambda at: at, **read}, random.Random(1))
    return [(unravel(at, t.shape), value) for at, value in found]


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("dtype", [dtypes.i32, dtypes.i64, dtypes.u32])
def test_integer_indexing_of_several_axes(level: int, dtype: DType) -> None:
    """Each index fits its dtype, their combination does not."""
    shape = (3, 5, 800_000_000)
    rows, planes, columns = np.array([[2], [0], [1]]), np.array([4, 0]), np.array([799_999_999, 7])

    def position(*index: int) -> int:
        return ravel(index, shape)

    x = virtual(*shape)
    r, p, c = (Tensor(a).cast(dtype) for a in (rows, planes, columns))
    for (i, j), value in elements(x[r, p, c], level):
        assert value == position(rows[i, 0], planes[j], columns[j])
    for (i, j), value in elements(x[r, 3, c], level):
        assert value == position(rows[i, 0], 3, columns[j])
    for (i, j, k), value in elements(x[r, :, c], level):
        assert value == position(rows[i, 0], k, columns[j])
    for (i, j), value in elements(x[1, 4][c].reshape(2, 1), level):
        assert value == position(1, 4, columns[i]) and j == 0


@pytest.mark.parametrize("level", [0, 1])
def test_indices_along_an_axis_beyond_i32(level: int) -> None:
    x = virtual(2, LIMIT + 5)
    for (k,), value in elements(x[1][Tensor([-1, 0, -(LIMIT - 1), 5])], level):
        assert value == LIMIT + 5 + [LIMIT + 4, 0, 6, 5][k], "an index of i32 counts from the end"
    for (k,), value in elements(x[[0, 1], [LIMIT + 4, -1]], level):
        assert value == [LIMIT + 4, 2 * LIMIT + 9][k]
    for (k,), value in elements(x[[0, 1], LIMIT + 3], level):
        assert value == [LIMIT + 3, 2 * LIMIT + 8][k]
    table = virtual(2**26, 64)
    for (k, column), value in elements(table.rows(Tensor([2**26 - 1, 2**25])), level):
        assert value == [2**26 - 1, 2**25][k] * 64 + column
    with pytest.raises(IndexError, match=rf"index {LIMIT + 5} is out of range for size"):
        x[1][[LIMIT + 5]]
    with pytest.raises(IndexError, match=rf"index -1 is out of range for size {2**33}"):
        Tensor([5, -1]).check_index(2**33)


@pytest.mark.parametrize("level", [0, 1])
def test_an_assignment_to_places_beyond_i32(level: int) -> None:
    x = virtual(LIMIT + 5)
    x[Tensor([-2])] = -7
    for (k,), value in elements(x, level):
        assert value == (-7 if k == LIMIT + 3 else k)
    y = virtual(3, LIMIT + 5)
    y[1:, ::-2] = 0
    for (row, column), value in elements(y, level):
        assert value == (0 if row and column % 2 == 0 else row * (LIMIT + 5) + column)


@pytest.mark.parametrize("level", [0, 1])
def test_a_scatter_adds_to_the_right_place(level: int) -> None:
    """The gradient of a table of more than 2**31 numbers."""
    rows, columns = 2**26, 64
    index, x = memory(0, (1000,), dtypes.i32), memory(1, (1000, columns))
    body = UOp(Ops.SCATTER, (index, x), rows)
    sink = lower(body, memory(2, body.shape, body.dtype), level)
    read = {0: lambda at: rows - 1 - at, 1: lambda at: at, 2: lambda at: at * 0}
    rng, adding = random.Random(1), [u for u in sink.toposort() if u.op is Ops.STORE
                                     and u.src[1].op is not Ops.CONST]
    assert adding
    for store in adding:
        points = {r: np.array([rng.randrange(r.arg[1]) for _ in range(SAMPLES)], r.dtype.np)
                  for r in ranges_below(store)}
        values = values_at(store, points, read)
        for at, added in zip(values[store.src[0].src[1]], values[store.src[1]], strict=True):
            assert at == (rows - 1 - added // columns) * columns + added % columns


def test_a_row_that_its_index_cannot_name_is_no_limit() -> None:
    """2**31 + 5 rows are more than an i32 holds; every one that is not negative is there."""
    x = virtual(LIMIT + 5)
    for level in (0, 1):
        for (k,), value in elements(x.rows(Tensor([LIMIT - 1, 3])), level):
            assert value == [LIMIT - 1, 3][k]


@pytest.mark.parametrize("level", [0, 1])
def test_counting_beyond_i32(level: int) -> None:
    for t, value_of in (
            (Tensor.arange(LIMIT + 5), lambda k: k),
            (Tensor.arange(-5, 3 * LIMIT, 3), lambda k: 3 * k - 5),
            (Tensor.arange(LIMIT + 5, dtype=dtypes.i32), lambda k: (k + LIMIT) % 2**32 - LIMIT),
            (Tensor.arange(-LIMIT, LIMIT - 1), lambda k: k - LIMIT),
            (Tensor.arange(2 * LIMIT, dtype=dtypes.u32), lambda k: k),
            (Tensor.arange(LIMIT + 300, dtype=dtypes.u8), lambda k: k % 256),
            (Tensor.arange(2**40, dtype=dtypes.f64), float)):
        for (k,), value in elements(t, level):
            assert value == value_of(k), (t, k)
    assert Tensor.arange(LIMIT + 5).dtype is dtypes.i64
    assert Tensor.arange(LIMIT).dtype is dtypes.i32


@pytest.mark.parametrize("level", [0, 1])
def test_what_is_built_on_counting(level: int) -> None:
    joined = Tensor.cat([virtual(LIMIT - 3), virtual(LIMIT - 3) * -1, virtual(LIMIT - 3)])
    for (k,), value in elements(joined, level):
        part, within = divmod(k, LIMIT - 3)
        assert value == (-within if part == 1 else within)
    for shape, diagonal in (((3, LIMIT + 5), LIMIT + 2), ((LIMIT + 5, 2), -LIMIT - 3),
                            ((3, 3), 2**40), ((3, 3), -2**40), ((3, 4), -LIMIT)):
        for (row, column), value in elements((virtual(*shape) + 1).tril(diagonal), level):
            wanted = row * shape[1] + column + 1 if column <= row + diagonal else 0
            assert value == wanted, (shape, diagonal, row, column)


@pytest.mark.parametrize("level", [0, 1])
def test_random_numbers_do_not_repeat(level: int) -> None:
    """Each block of 2**32 elements is another call."""
    Tensor.manual_seed(5)
    large = Tensor.rand(2**33 + 3)
    assert uopc_random.get_state() == (5, 3)
    shown = elements(large[2**32 - 1::2**31], level)
    Tensor.manual_seed(5)
    calls = [Tensor.rand(4) for _ in range(3)]
    for (k,), value in elements(large[2**32:2**32 + 4], level):
        assert np.float32(value) == calls[1].numpy()[k]
    for (k,), value in elements(large[:4], level):
        assert np.float32(value) == calls[0].numpy()[k]
    assert len({value for _, value in shown}) == len({k for k, _ in shown}) == 3


def test_positions_are_i32_as_long_as_that_holds_them() -> None:
    small, large = virtual(2, LIMIT - 1), virtual(2, LIMIT)
    assert small.argmax(1).dtype is dtypes.i32 and large.argmax(1).dtype is dtypes.i64
    assert small.argmin().dtype is dtypes.i64 and large.argmax(0).dtype is dtypes.i32
    assert virtual(2, LIMIT + 5, dtype=dtypes.f32).cross_entropy(Tensor([1, 2])).shape == ()


def test_argmax_of_i64_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uop_module, "index_dtype", lambda n: dtypes.i64)
    x = np.random.default_rng(0).integers(-3, 3, (5, 7))
    for axis in (None, 0, 1):
        got = Tensor(x).argmax(axis), Tensor(x).argmin(axis)
        assert got[0].dtype is got[1].dtype is dtypes.i64
        np.testing.assert_array_equal(got[0].numpy(), x.argmax(axis))
        np.testing.assert_array_equal(got[1].numpy(), x.argmin(axis))


def f32(*shape: int) -> Tensor:
    return Tensor._of(memory(hash(shape) % 10**6, shape, dtypes.f32))


PROGRAMS = {
    "rows that are one step each": lambda: f32(2**32, 2).softmax(-1),
    "long rows": lambda: f32(70_000, 40_000).softmax(-1),
    "a layer": lambda: ((f32(2**22, 1024) @ f32(1024, 512)).relu() @ f32(512, 1024)),
    "a norm": lambda: (lambda x: x * (x.square().mean(-1, keepdim=True) + 1).rsqrt())(
        f32(2**22, 1024)) @ f32(1024, 1024),
    "attention": lambda: (lambda q, k, v: (q @ k.transpose()).softmax(-1) @ v)(
        *[f32(4096, 8, 1024, n) for n in (64, 64, 32)]),
    "argmax": lambda: virtual(3, LIMIT + 5).argmax(1), "sums": lambda: f32(2**16, 2**16).sum(0),
    "running sum": lambda: virtual(LIMIT + 77, dtype=dtypes.u8).cumsum(),
}


@pytest.mark.parametrize("level", [0, 1, 2])
def test_plans_have_no_index_that_wraps(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is lowered, also where kernels share loops of more than 2**31 steps."""
    sinks: list[UOp] = []

    def recorded(lowered: Callable[..., UOp]) -> Callable[..., UOp]:
        def lowering(*args: object, **kwargs: object) -> UOp:
            sinks.append(lowered(*args, **kwargs))
            return sinks[-1]
        return lowering

    for name in ("lower", "optimize_loops"):
        monkeypatch.setattr(emit, name, recorded(getattr(emit, name)))
    for name, program in PROGRAMS.items() if level != 1 else list(PROGRAMS.items())[::3]:
        before = len(sinks)
        make_plan([program().uop], opt=level)
        assert len(sinks) > before, name
    for sink in sinks:
        assert_no_index_wraps(sink)


# *** and some that are computed ***


def test_elements_that_are_computed_on_the_way() -> None:
    """Of counts, repeated and indexed, only what is asked for is computed."""
    n = LIMIT + 5
    count = Tensor.arange(n)
    rows = Tensor.arange(3).reshape(3, 1) * 100 + (Tensor.arange(800_000_000) % 97).reshape(1, -1)
    for got, want in (
            (count[-1], LIMIT + 4), (count.flip(0)[:2], [LIMIT + 4, LIMIT + 3]),
            (rows.cast(dtypes.u8)[[2, 0, -1], [799_999_999, 5, -2]], [9, 5, 8]),
            (Tensor([7, 8]).reshape(2, 1).expand(2, n).reshape(-1)[[n - 1, n]], [7, 8]),
            (count[::-2**30], [LIMIT + 4, 2**30 + 4, 4])):
        assert got.tolist() == want
