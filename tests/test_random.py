"""Random numbers: the generator's known answers, and what `manual_seed` promises."""
from __future__ import annotations

import numpy as np
import pytest

from uopc import random
from uopc.composite import array_buffer, buffer_data
from uopc.counters import counters
from uopc.dtype import dtypes
from uopc.interpret import interpret_graph
from uopc.kernelize import realize
from uopc.tensor import Tensor

ONES = 0xFFFFFFFF
KNOWN = {  # (key, counter): words; of Random123's kat_vectors for threefry2x32, 20 rounds
    ((0, 0), (0, 0)): (0x6B200159, 0x99BA4EFE),
    ((ONES, ONES), (ONES, ONES)): (0x1CB996FC, 0xBB002BE7),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)): (0xC4923A9C, 0x483DF7A0),
}


def words(*values):
    return array_buffer(np.array(values, np.uint32))


def test_threefry_gives_the_known_answers():
    keys = [words(*(k[i] for k, _ in KNOWN)) for i in range(2)]
    counts = [words(*(c[i] for _, c in KNOWN)) for i in range(2)]
    result = random.threefry(tuple(keys), tuple(counts))
    want = np.array(list(KNOWN.values()), np.uint32).T
    np.testing.assert_array_equal(np.array(interpret_graph(result)), want)
    np.testing.assert_array_equal(np.array([buffer_data(u) for u in realize(result)]), want)


def test_the_key_is_the_seed_and_the_counter_is_element_and_call():
    Tensor.manual_seed(0x0370734413198A2E)
    random.set_state(0x0370734413198A2E, 7)
    drawn = Tensor.rand(3)
    key = words(*[0x13198A2E] * 3), words(*[0x03707344] * 3)
    first, _ = interpret_graph(random.threefry(key, (words(0, 1, 2), words(7, 7, 7))))
    np.testing.assert_array_equal(drawn.numpy(), (first >> 8) * np.float32(2.0**-24))


def test_the_same_seed_gives_the_same_numbers():
    draws = []
    for _ in range(2):
        Tensor.manual_seed(5)
        draws.append([Tensor.rand(3, 5), Tensor.randn(4), Tensor.rand(3, 5)])
    first, second = draws
    Tensor.realize_all(*reversed(first))  # whatever the order of evaluation
    assert second[2].tolist() == first[2].tolist()
    assert second[0].tolist() == first[0].tolist()
    assert second[1].tolist() == first[1].tolist()
    assert first[0].tolist() != first[2].tolist()


def test_other_seeds_give_other_numbers():
    seen = set()
    for seed in (0, 1, 2**32, 2**63, -1):
        Tensor.manual_seed(seed)
        seen.add(tuple(Tensor.rand(4).tolist()))
    assert len(seen) == 5


def test_a_drawn_tensor_keeps_its_numbers():
    x = Tensor.rand(5)
    assert x.tolist() == x.tolist() == (x + 0).tolist()
    y = x * 2
    np.testing.assert_array_equal(y.numpy(), x.numpy() * 2)


def test_a_longer_draw_begins_like_a_shorter_one():
    Tensor.manual_seed(3)
    short = Tensor.rand(4).tolist()
    Tensor.manual_seed(3)
    assert Tensor.rand(2, 4).tolist()[0] == short


def test_the_state_can_be_saved_and_put_back():
    Tensor.manual_seed(11)
    Tensor.rand(2)
    state = random.get_state()
    want = [Tensor.rand(3).tolist(), Tensor.randn(3).tolist()]
    random.set_state(*state)
    assert [Tensor.rand(3).tolist(), Tensor.randn(3).tolist()] == want
    assert random.get_state() == (11, 3)


def test_a_new_seed_or_call_is_no_new_plan():
    (Tensor.randn(5) + Tensor.rand(5)).realize()
    before = counters.copy()
    for seed in (1, 2**40):
        Tensor.manual_seed(seed)
        for _ in range(3):
            (Tensor.randn(5) + Tensor.rand(5)).realize()
    assert (counters - before).plan_misses == 0


def test_uniform_numbers_fill_the_unit_interval_evenly():
    Tensor.manual_seed(0)
    x = Tensor.rand(200, 500).numpy()
    assert x.dtype == np.float32
    assert 0 <= x.min() < 1e-4 and 1 - 1e-4 < x.max() < 1
    assert abs(x.mean() - 0.5) < 0.004
    assert abs(x.var() - 1 / 12) < 0.001
    counts = np.histogram(x, bins=100, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 160  # chi-squared of 99 degrees: p < 1e-4
    assert abs(np.corrcoef(x.ravel()[:-1], x.ravel()[1:])[0, 1]) < 0.015


def test_normal_numbers_have_the_moments_of_the_normal_distribution():
    Tensor.manual_seed(0)
    x = Tensor.randn(200, 500).numpy().astype(np.float64)
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 0.015
    assert abs(x.var() - 1) < 0.02
    assert abs((x ** 3).mean()) < 0.04
    assert abs((x ** 4).mean() - 3) < 0.12
    for bound, share in ((1, 0.6827), (2, 0.9545), (3, 0.9973)):
        assert abs((abs(x) < bound).mean() - share) < 0.006


def test_shapes_and_dtypes():
    assert Tensor.rand().shape == Tensor.randn(()).shape == ()
    assert Tensor.rand(2, 0).numpy().shape == (2, 0)
    assert Tensor.rand((2, 3)).shape == Tensor.randn(2, 3).shape == (2, 3)
    wide = Tensor.randn(3, dtype=dtypes.f64)
    assert wide.dtype is dtypes.f64 and wide.numpy().dtype == np.float64
    for draw in (Tensor.rand, Tensor.randn):
        with pytest.raises(TypeError, match="random numbers are floats; .* dtypes.i32"):
            draw(3, dtype=dtypes.i32)
        with pytest.raises(TypeError, match="must be whole numbers"):
            draw(2.5)
        with pytest.raises(ValueError, match="negative"):
            draw(-1)


def test_a_drawn_parameter_is_data():
    w = Tensor.randn(3, requires_grad=True)
    assert w.requires_grad
    (w * w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * w.numpy(), rtol=1e-6)
