"""The loop optimizer (level 1, and 2 where several kernels matter) against level 0, NumPy and the
interpreter."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import as_kernel, same_meaning
from random_graphs import random_body

from uopc.composite import buffer_data
from uopc.dtype import ALL_DTYPES, DType, dtypes
from uopc.kernelize import Kernel, make_plan, realize
from uopc.rangeify import lower
from uopc.render_c import render_c
from uopc.runtime import load_all
from uopc.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 33, 64, 65, 97)


def levels_agree(*tensors: Tensor, rtol: float = 2e-5, level: int = 1) -> None:
    """The level gives what level 0 does: bit for bit, save for the order of a sum of floats."""
    roots = [t.uop for t in tensors]
    for got, want in zip(realize(roots, opt=level), realize(roots, opt=0), strict=True):
        a, b = buffer_data(got), buffer_data(want)
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind == "f":
            scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda d: d.name)
def test_random_bodies_keep_their_meaning(dtype: DType) -> None:
    """After every pass, by the interpreter, and in C; on small shapes."""
    bodies = [random_body(7000 + 1000 * dtype.rank + k, dtype) for k in range(8)]
    kernels = [as_kernel(body) for body in bodies]
    load_all([render_c(lower(numbered, out, 1), "kernel") for numbered, out, _ in kernels])
    for body in bodies:
        same_meaning(body, rtol=1e-5 if dtype.is_float else 0.0, level=1)


def random_tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Tensor:
    values = rng.standard_normal(shape) * 4
    return Tensor(values.astype(dtype.np) if dtype is not dtypes.bool else values > 0)


@pytest.mark.parametrize("seed", range(6))
def test_random_sizes(seed: int) -> None:
    """Elementwise chains, sums, products of matrices and their gradients' forms, on sizes that no
    tile divides."""
    rng = np.random.default_rng(seed)
    m, n, k = (int(rng.choice(SIZES)) for _ in range(3))
    dtype = (dtypes.f32, dtypes.f64, dtypes.i32)[seed % 3]
    a, b, c = (random_tensor(rng, s, dtype) for s in ((m, k), (k, n), (m, n)))
    row, column = random_tensor(rng, (n,), dtype), random_tensor(rng, (m, 1), dtype)
    levels_agree(
        (c * 2 + row).relu() * column, (c > row).where(c, column), c.maximum(row),
        c.sum(0), c.sum(1), c.sum(), c.max(0), c.max(1), c.min(), c.T.sum(1),
        a @ b, b.T @ a.T, c @ b.T, a.T @ c, (a @ b + row).relu() @ b.T,
        c.T.contiguous(), c.reshape(n, m).T + 1, c.flip(1) * 3, c.pad(((1, 2), (0, 3))),
        c[::2, ::-1], (c == row).sum(1), (c > 0).any(0), c.argmax(1))


@pytest.mark.parametrize("shape", [(3, 64, 32, 65), (2, 5, 9, 7), (1, 1, 1, 1), (4, 33, 16, 33)])
def test_batched_products(shape: tuple[int, ...]) -> None:
    b, m, k, n = shape
    rng = np.random.default_rng(0)
    x, y = (random_tensor(rng, s, dtypes.f32) for s in ((b, m, k), (b, k, n)))
    w = random_tensor(rng, (n, k), dtypes.f32)
    for level in (1, 2):
        levels_agree(x @ y, y.transpose() @ x.transpose(), x @ w.T, (x @ y).softmax(-1),
                     level=level)


def test_special_values_survive_vectors() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -1.5] * 5, np.float32)
    x, y = Tensor(special), Tensor(np.roll(special, 3))
    tensors = (x * y, x + y, x.maximum(y), x.minimum(y), (x < y).where(x, y), x.relu(), x.abs(),
               x.sqrt(), x.int(), x != y, x.isfinite(), x.sign(), -x, x // y)
    for t in tensors:
        got, want = (buffer_data(realize([t.uop], opt=level)[0]) for level in (1, 0))
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f":
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


RESULTS = """
import sys; sys.path.insert(0, {root!r})
import hashlib, numpy as np
from uopc.tensor import Tensor
rng = np.random.default_rng(0)
a, b = (Tensor(rng.standard_normal((n, 200)).astype(np.float32)) for n in (300, 100))
w = Tensor(rng.standard_normal((200, 64)).astype(np.float32), requires_grad=True)
rows = (a - a.mean(-1, keepdim=True)) * (a.var(-1, keepdim=True) + 1e-5).rsqrt()
hidden = (rows @ w).gelu()
(hidden @ hidden[:100].T).softmax(-1).square().sum().backward()
parts = [a @ b.T, a.T @ a, a.sum(0), a.sum(1), a.sum(), a.softmax(-1), (a * 2).gelu(), a.max(),
         w.grad]
Tensor.realize_all(*parts)
print(hashlib.sha256(b"".join(p.numpy().tobytes() for p in parts)).hexdigest())
"""


@pytest.mark.parametrize("level", ["1", "2"])
def test_neither_the_number_of_threads_nor_another_run_changes_a_bit(level: str) -> None:
    said = {subprocess.run([sys.executable, "-c", RESULTS.format(root=str(ROOT))],
                           env={**os.environ, "OPT": level, "OMP_NUM_THREADS": str(n)},
                           capture_output=True, text=True, check=True).stdout for n in (1, 2, 8, 8)}
    assert len(said) == 1


FORK = """
import sys; sys.path.insert(0, {root!r})
import os, numpy as np
from uopc.tensor import Tensor
x = Tensor(np.ones((512, 512), np.float32))
assert (x @ x).numpy()[3, 4] == 512
assert (x + 1).softmax(-1).numpy()[3, 4] == 1 / 512
child = os.fork()
if child == 0:
    rows = (x + 3).softmax(-1).numpy()[3, 4] == 1 / 512
    os._exit(0 if rows and (x @ x + 1).numpy()[3, 4] == 513 else 1)
assert os.waitpid(child, 0)[1] == 0
assert (x @ x + 2).numpy()[3, 4] == 514
"""


@pytest.mark.parametrize("level", ["1", "2"])
def test_a38_a_forked_child_does_not_hang(level: str) -> None:
    subprocess.run([sys.executable, "-c", FORK.format(root=str(ROOT))], check=True, timeout=60,
                   env={**os.environ, "OPT": level})


def test_indices_and_random_numbers() -> None:
    Tensor.manual_seed(0)
    table = Tensor(np.random.default_rng(0).standard_normal((50, 24)).astype(np.float32))
    index = Tensor(np.array([3, 49, 0, 3, 7], np.int32))
    levels_agree(table[index], table[index] * 2, Tensor.arange(100) * 3 - 7,
                 Tensor.rand(1000), Tensor.randn(17, 9), Tensor.arange(40).cumsum(0))
    table.requires_grad = True
    (table[index] * table[index].softmax(-1)).sum().backward()
    for level in (1, 2):
        levels_agree(table.grad, level=level)


def test_products_whose_points_exceed_32_bits() -> None:
    """1300**3 is more than an int holds: indices are 64 bits wide, and still become vectors."""
    n = 1300
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    plan, inputs = make_plan([(Tensor(a) @ Tensor(b)).uop], opt=1)
    assert "vector_size" in plan.kernels[-1].src
    (out,) = plan.run([buffer_data(u) for u in inputs])
    np.testing.assert_allclose(out.reshape(n, n), a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [1, 33, 2049, 62_500, 300_001])
def test_long_sums_keep_their_accuracy(n: int) -> None:
    """Of equal numbers, whose rounding errors all point the same way, and of random ones."""
    rng = np.random.default_rng(n)
    for values in (np.full(n, 1.23456, np.float32), rng.random(n, np.float32)):
        columns = np.stack([values] * 9, axis=1)
        for t, want in ((Tensor(values).sum(), values), (Tensor(columns).sum(0), columns),
                        (Tensor(columns.T.copy()).sum(1), columns),
                        (Tensor(values[None]) @ Tensor(columns), columns * values[:, None])):
            exact = want.sum(0, dtype=np.float64)
            (got,) = realize([t.uop], opt=1)
            np.testing.assert_allclose(buffer_data(got).ravel(), exact, rtol=1e-6)


@pytest.mark.parametrize("shape", [(300_007,), (3, 100_003), (2, 70_001, 2), (2053, 2053)])
def test_long_reductions_in_parts(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).integers(-1000, 1000, shape)
    for dtype in (np.int32, np.float64):
        t = Tensor(values.astype(dtype))
        reductions = [t.sum(), t.max(), t.min(), (t > 998).any(), t.argmax(),
                      *[f for axis in range(len(shape)) for f in (t.sum(axis), t.max(axis))]]
        levels_agree(*reductions, rtol=1e-12)


def test_padding_is_cut_off_the_loops() -> None:
    """The parts that are not padding are plain vector copies; no element asks where it is."""
    x = Tensor(np.arange(65 * 40, dtype=np.float32).reshape(65, 40))
    padded = x.pad(((15, 16), (0, 8))).contiguous()
    levels_agree(padded, x.pad(((3, 0), (0, 1))), x.pad(((0, 7), (5, 2))).T.contiguous())
    plan, _ = make_plan([padded.uop], opt=1)
    assert "?" not in plan.kernels[0].src


def test_a_permuted_result_is_stored_so() -> None:
    rng = np.random.default_rng(0)
    a, b = (random_tensor(rng, s, dtypes.f32) for s in ((3, 33, 20), (3, 20, 17)))
    product = a @ b
    moved = [product.transpose(), product.permute(2, 0, 1), product.flip(1), a.sum(1).T,
             a.max(2).flip(0).T.contiguous()]
    for t in moved:
        plan, _ = make_plan([t.uop], opt=1)
        assert plan.kernels[-1].name.startswith("r_")
        levels_agree(t)
    kept = (product, product.transpose().contiguous())  # one is wanted as it was: a copy is made
    levels_agree(*kept)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.i32, dtypes.i64],
                         ids=lambda d: d.name)
def test_masks_are_as_wide_as_the_lanes(dtype: DType) -> None:
    """Where bools alone are read along the lanes, and beside values of any width."""
    rng = np.random.default_rng(0)
    mask = Tensor(rng.random((19, 32)) > 0.5)
    column, x = random_tensor(rng, (19, 1), dtype), random_tensor(rng, (32,), dtype)
    levels_agree(mask.where(column, 0), (mask == (column > 0)).where(column, x), mask.argmax(1),
                 (Tensor.arange(32) < 8).where(column, x).sum(1))


@pytest.mark.parametrize("sizes", [(7, 11, 5), (32, 64, 16), (3, 2, 7)])
def test_the_gradient_of_a_weight_that_is_used_again_is_a_sum_of_products(
        sizes: tuple[int, int, int]) -> None:
    """Each product is a kernel of its own, and equal ones share their C: however often the weight
    is used, little more is compiled than for a few times."""
    n, k, m = sizes
    rng = np.random.default_rng(0)
    w = random_tensor(rng, (k, m), dtypes.f32)

    def kernels(times: int) -> list[Kernel]:
        inputs = [random_tensor(rng, (n, k), dtypes.f32) for _ in range(times)]
        total = sum([((x @ w).tanh() * 0.1).sum() for x in inputs], Tensor(0.0))
        w.grad = None
        total.backward([w])
        for level in (1, 2):
            levels_agree(w.grad, total, level=level)
        return make_plan([w.grad.uop], opt=1)[0].kernels

    few, many = kernels(5), kernels(15)
    assert len({kernel.src for kernel in many}) <= len({kernel.src for kernel in few}) + 1
    assert max(kernel.flops for kernel in many) <= max(kernel.flops for kernel in few) + 10 * k * m


def test_sums_that_are_wanted_otherwise_stay_sums() -> None:
    rng = np.random.default_rng(1)
    a, b, c, d = (random_tensor(rng, (9, 33), dtypes.f32) for _ in range(4))
    outer = a.unsqueeze(1) * b.unsqueeze(2) + c.unsqueeze(1) * d.unsqueeze(2)
    for level in (1, 2):
        levels_agree(outer.sum(0), outer, level=level)  # the sum itself is a result
        levels_agree((a * b + c * d).sum(0), (a * b + c * d).sum(), level=level)  # no reuse
        levels_agree((outer + 1).sum(0), (outer.cast(dtypes.i32) * 2).sum(0), level=level)
        levels_agree((a.unsqueeze(1) * b.unsqueeze(2) + 1).sum(0), level=level)
    large, small = (Tensor(np.full(s, 1e19, np.float32)) for s in ((4, 1, 8), (4, 8)))
    for level in (1, 2):  # each of the products overflows, their sum does not
        levels_agree((large * small + (-large) * small).sum(-1), level=level)


def test_a_long_chain_is_cut_into_pieces_that_are_alike() -> None:
    x, steps = Tensor([1.0, -2.0, 0.5]), [Tensor([0.5, 0.25, k]) for k in range(4)]
    for k in range(3000):
        x = x * 0.5 + steps[k % 4]
    for level in (1, 2):
        levels_agree(x, x.sum(), level=level)
    plan, _ = make_plan([x.uop], opt=2)
    assert len(plan.kernels) > 4
    assert len({kernel.src for kernel in plan.kernels}) <= 3  # the first, the middle, the last
