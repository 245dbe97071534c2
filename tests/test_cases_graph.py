"""Cases that users of other small compilers reported: graphs, views, mutation, cached plans.

Each test is named after its case; the right values follow from mathematics or NumPy's rules.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernel_checks import forget_plans, new_plans

from uopc.dtype import DType, dtypes
from uopc.jit import jit
from uopc.tensor import Tensor

ROOT = Path(__file__).parent.parent
Array = np.ndarray


@pytest.fixture(autouse=True)
def _no_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_plans(monkeypatch)


@pytest.fixture(params=["1", "2"], ids=lambda n: f"level{n}")
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", request.param)


at_each_level = pytest.mark.usefixtures("level")


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


# *** A01, A02: large and deep graphs ***


def test_a01_stack_of_6131_images() -> None:
    images = random(6131, 28, 28)
    stacked = Tensor.stack([Tensor(image) for image in images])
    assert stacked.shape == (6131, 28, 28)
    np.testing.assert_array_equal(stacked.numpy(), images)


def numpy_chain(x: Array, weights: Array, biases: Array) -> tuple[float, Array, Array]:
    """(loss, gradients of the weights and of the biases) of layers relu(x@w + b), in f64."""
    inputs = [x.astype(np.float64)]
    for w, b in zip(weights, biases, strict=True):
        inputs.append(np.maximum(inputs[-1] @ w + b, 0))
    g = 2 * inputs[-1] / inputs[-1].size
    gw, gb = np.zeros(weights.shape), np.zeros(biases.shape)
    for k in reversed(range(len(weights))):
        g = g * (inputs[k + 1] > 0)
        gw[k], gb[k] = inputs[k].T @ g, g.sum(0)
        g = g @ weights[k].T
    return float(np.square(inputs[-1]).mean()), gw, gb


def test_a02_chain_of_300_layers() -> None:
    layers, width = 300, 4
    weights = np.eye(width, dtype=np.float32) + random(layers, width, width) * 0.02
    biases = np.abs(random(layers, width, seed=1)) * 0.01
    x = np.abs(random(3, width, seed=2))
    ws, bs = [Tensor(w) for w in weights], [Tensor(b) for b in biases]
    h = Tensor(x)
    for w, b in zip(ws, bs, strict=True):
        h = (h @ w + b).relu()
    loss = h.square().mean()
    loss.backward([*ws, *bs])
    Tensor.realize_all(loss, *[p.grad for p in (*ws, *bs)])
    want, gw, gb = numpy_chain(x, weights, biases)
    assert want > 1e-3 and np.abs(gw[0]).max() > 1e-3  # the chain did not die out
    assert loss.item() == pytest.approx(want, rel=1e-4)
    np.testing.assert_allclose([w.grad.numpy() for w in ws], gw, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose([b.grad.numpy() for b in bs], gb, rtol=1e-3, atol=1e-5)


# *** A11 to A17: views ***


def test_a11_pad_split_merge_and_cut_is_the_identity() -> None:
    ramp = np.arange(50, dtype=np.float32).reshape(2, 5, 5)
    padded = Tensor(ramp).pad([(2, 0), (0, 0), (0, 0)])
    assert padded.shape == (4, 5, 5)
    merged = padded.reshape(2, 2, 5, 5).reshape(4, 5, 5)
    np.testing.assert_array_equal(merged[2:].numpy(), ramp)
    squared = padded.reshape(2, 2, 25).transpose(0, 1).reshape(4, 5, 5)  # no mere round trip
    want = np.pad(ramp, [(2, 0), (0, 0), (0, 0)]).reshape(2, 2, 25).transpose(1, 0, 2)
    np.testing.assert_array_equal(squared[2:].numpy(), want.reshape(4, 5, 5)[2:])


@pytest.mark.parametrize("store", [False, True])
def test_a12_two_halves_of_a_range(store: bool) -> None:
    r = Tensor.arange(10)
    if store:
        r.realize()
    assert (r[:5] + r[5:]).tolist() == [5, 7, 9, 11, 13]


@pytest.mark.parametrize("force", [lambda t: t, Tensor.contiguous, Tensor.realize])
def test_a13_column_equals_its_transpose_on_the_diagonal(
        force: Callable[[Tensor], Tensor]) -> None:
    column = force(Tensor.arange(4).reshape(4, 1))
    equal = column == column.T
    assert equal.dtype is dtypes.bool
    np.testing.assert_array_equal(equal.numpy(), np.eye(4, dtype=bool))


@at_each_level
def test_a14_statistics_requested_together() -> None:
    row = Tensor([[1.0, 2.0, 3.0, 4.0]])
    mean, squares, variance = row.mean(1), row.square().sum(1), row.var(1)
    Tensor.realize_all(mean, squares, variance)
    assert (mean.tolist(), squares.tolist(), variance.tolist()) == ([2.5], [30.0], [1.25])


@at_each_level
@pytest.mark.parametrize("columns", [slice(0, 2), slice(1, 3), slice(3, None, -2), [2, 0]])
def test_a15_softmax_over_kept_columns(columns: slice | list[int]) -> None:
    x = random(4, 4)
    kept = Tensor(x)[:, columns].softmax(-1)
    assert kept.sum().item() == pytest.approx(4.0, rel=1e-6)
    e = np.exp(x[:, columns])
    np.testing.assert_allclose(kept.numpy(), e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("store", [False, True])
def test_a16_add_through_a_reversed_view(store: bool) -> None:
    z = Tensor.zeros(6)
    if store:
        z.realize()
    z[::-1] += Tensor.arange(6).flip() * 2
    assert z.tolist() == [0, 2, 4, 6, 8, 10]


def test_a17_transpose_then_flatten() -> None:
    t = Tensor.arange(6).reshape(2, 3).T
    assert t.flatten().tolist() == t.reshape(-1).tolist() == [0, 3, 1, 4, 2, 5]


# *** A18 to A20: assignment ***


@at_each_level
def test_a18_overlapping_assignment() -> None:
    t = Tensor([[3], [2], [1]])
    t[1:3] = t[0:2]
    assert t.tolist() == [[3], [3], [2]]


@at_each_level
@pytest.mark.parametrize("store", [False, True])
def test_a19_a_value_read_before_an_assignment_stays(store: bool) -> None:
    x = Tensor([3.0])
    y = x.log()
    x.assign(x.log())
    if store:
        x.realize()
    assert y.item() == pytest.approx(np.log(3), rel=1e-6)
    assert x.item() == pytest.approx(np.log(3), rel=1e-6)
    x.assign(x.log())
    assert x.item() == pytest.approx(np.log(np.log(3)), rel=1e-5)


@at_each_level
def test_a20_multiply_a_part_in_place() -> None:
    t = Tensor([1, 2, 3, 4, 5, 6])
    t[:3] *= 10
    for _ in range(3):  # however often it is read
        assert t.tolist() == [10, 20, 30, 4, 5, 6]


@at_each_level
def test_a21_draw_from_a_running_sum_lazily_and_step_by_step() -> None:
    def draw(force: Callable[[Tensor], Tensor]) -> tuple[Array, Array]:
        Tensor.manual_seed(3)
        weights = force(Tensor(np.ones(10, np.float32)))
        shares = force(weights / weights.sum())
        running = force(shares.cumsum(0))
        points = force(Tensor.rand(200, 1))
        return running.numpy(), force((running < points).sum(1)).numpy()

    (lazy, drawn), (forced, again) = draw(lambda t: t), draw(Tensor.realize)
    np.testing.assert_array_equal(lazy, forced)
    np.testing.assert_allclose(lazy, np.arange(1, 11) / 10, rtol=1e-6)
    np.testing.assert_array_equal(drawn, again)
    assert set(drawn.tolist()) == set(range(10))


# *** A22 to A25: one plan, other data ***


@at_each_level
def test_a22_a_score_with_two_sets_of_parameters() -> None:
    x = np.linspace(0, 3, 120, dtype=np.float32)
    y, scale = 2 * x + random(120), 0.5 + np.abs(random(120, seed=1))
    data = Tensor(x), Tensor(y), Tensor(scale)

    def score(slope: Tensor, intercept: Tensor) -> Tensor:
        residual = (data[1] - (slope * data[0] + intercept)) / data[2]
        return residual.square().sum()

    with new_plans() as made:
        for slope, intercept in ((2.0, 0.0), (1.5, 0.7)):
            got = score(Tensor([slope]), Tensor([intercept])).item()
            want = np.square((y - (slope * x + intercept)) / scale).sum(dtype=np.float64)
            assert got == pytest.approx(want, rel=1e-5)
    assert made.count == 1


@at_each_level
def test_a23_results_of_a_cached_step_stay_apart() -> None:
    def step(x: Tensor) -> Tensor:
        return (x + 1).realize()

    with new_plans() as made:
        first, second = step(Tensor([1.1])), step(Tensor([1.2]))
    assert made.count == 1
    assert first.item() == pytest.approx(2.1) and second.item() == pytest.approx(2.2)
    assert (first == second).tolist() == [False]


@at_each_level
def test_a24_a_cached_step_over_a_list() -> None:
    def step(tensors: list[Tensor]) -> Tensor:
        return (tensors[0] + 1).realize()

    with new_plans() as made:
        results = [step([Tensor([k])]) for k in range(5)]
        assert [r.item() for r in results] == [1, 2, 3, 4, 5]
    assert made.count == 1


# *** A18 to A24 once more, recorded and replayed ***


@at_each_level
def test_a18_to_a20_assignments_in_a_jitted_function() -> None:
    @jit
    def change(column: Tensor, x: Tensor, t: Tensor) -> Tensor:
        column[1:3] = column[0:2]
        before = x.log()
        x.assign(x.log())
        t[:3] *= 10
        return before

    for k in range(4):
        column, x, t = Tensor([[k], [2], [1]]), Tensor([3.0 + k]), Tensor([1, 2, k, 4, 5, 6])
        before = change(column, x, t)
        assert column.tolist() == [[k], [k], [2]] and t.tolist() == [10, 20, 10 * k, 4, 5, 6]
        np.testing.assert_allclose([before.item(), x.item()], np.log(3 + k), rtol=1e-6)


@at_each_level
def test_a21_to_a24_data_changes_from_call_to_call() -> None:
    x, y = np.linspace(0, 3, 120, dtype=np.float32), random(120)

    def step(parts: list[Tensor], weights: Tensor) -> list[Tensor]:
        running = (weights / weights.sum()).cumsum(0)
        drawn = (running < Tensor.rand(50, 1)).sum(1)
        return [(y - (parts[0] * x + parts[1])).square().sum(), parts[0] + 1, running, drawn]

    kept = []
    for run in (jit(step), step):
        Tensor.manual_seed(3)
        kept.append([run([Tensor([1.1 + k]), Tensor([k / 2])], Tensor(np.ones(10, np.float32) + k))
                     for k in range(4)])
    for k, (replayed, plain) in enumerate(zip(*kept, strict=True)):  # none overwrote another
        for got, want in zip(replayed, plain, strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())
        score = np.square(y - (np.float32(1.1 + k) * x + k / 2)).sum(dtype=np.float64)
        assert replayed[0].item() == pytest.approx(score, rel=1e-5)
        assert replayed[1].item() == pytest.approx(2.1 + k)
        np.testing.assert_allclose(replayed[2].numpy(), np.arange(1, 11) / 10, rtol=1e-6)
    assert (kept[0][0][3] != kept[0][1][3]).any().item()  # other numbers in every call


ORDERS = list(itertools.permutations([dtypes.i32, dtypes.f32, dtypes.i64, dtypes.u8], 2))


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: f"{o[0].name}-{o[1].name}")
def test_a25_one_expression_on_several_dtypes(order: tuple[DType, DType]) -> None:
    for data, other in itertools.product(order, order):
        left = Tensor([1, 2], dtype=data).cast(other)
        right = Tensor([10, 20], dtype=data).cast(other)
        outer = left.reshape(2, 1) * right.reshape(1, 2)
        assert outer.dtype is other and outer.tolist() == [[10, 20], [20, 40]]


# *** A26: processes ***

STEP = """
import numpy as np
from uopc.tensor import Tensor
rng = np.random.default_rng(0)
x, w, v = (Tensor(rng.standard_normal(s, np.float32)) for s in [(8, 6), (6, 5), (5, 3)])
for _ in range(3):
    loss = ((x @ w).relu() @ v).square().mean()
    w.grad = v.grad = None
    loss.backward([w, v])
    w.assign(w - w.grad * 0.1)
    v.assign(v - v.grad * 0.1)
    Tensor.realize_all(loss, w, v)
print(loss.item())
"""


def test_a26_eight_processes_on_an_empty_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    env = {**os.environ, "UOPC_CACHE": str(cache), "DEBUG": ""}
    running = [(level, subprocess.Popen([sys.executable, "-c", STEP], cwd=ROOT, text=True,
                                        env={**env, "OPT": level}, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)) for level in ("1", "2") * 4]
    done = [(level, *p.communicate(timeout=60), p.returncode) for level, p in running]
    assert [(err, code) for _, _, err, code in done] == [("", 0)] * 8
    assert len({(level, out) for level, out, _, _ in done}) == 2
    assert {path.suffix for path in cache.iterdir()} == {".so", ".plan"}  # nothing half done
