"""Temporaries that share memory: never two that are alive together."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uopc.kernelize import _plans, make_plan, realize
from uopc.liveness import lifetimes, place
from uopc.memory import LINE
from uopc.tensor import Tensor


def overlapping(offsets: list[int], sizes: list[int], uses: list[list[int]]) -> list[tuple]:
    alive = lifetimes(uses)
    return [(a, b) for a in alive for b in alive if a < b and sizes[a] and sizes[b]
            and alive[a][0] <= alive[b][1] and alive[b][0] <= alive[a][1]
            and offsets[a] < offsets[b] + sizes[b] and offsets[b] < offsets[a] + sizes[a]]


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(
    st.lists(st.integers(0, 5 * LINE), min_size=n, max_size=n),
    st.lists(st.lists(st.integers(0, n - 1), max_size=4), max_size=15))))
def test_no_two_that_live_together_overlap(case: tuple[list[int], list[list[int]]]) -> None:
    sizes, uses = case
    offsets, total = place(sizes, uses)
    assert overlapping(offsets, sizes, uses) == []
    assert all(offset % LINE == 0 for offset in offsets)
    assert all(offsets[t] + sizes[t] <= total for t in lifetimes(uses))


def test_a_chain_needs_two_places() -> None:
    offsets, total = place([LINE] * 9, [[0], *[[k, k + 1] for k in range(8)]])
    assert total == 2 * LINE and set(offsets) == {0, LINE}


@pytest.mark.parametrize("level", [1, 2])
def test_a_plan_with_shared_temporaries_computes_the_same(level: int) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((37, 53)).astype(np.float32))
    y = x
    for k in range(6):
        y = (y.softmax(-1) @ x.T @ x + y).contiguous() * (1 / (k + 1))
    roots = [y.uop, y.sum(0).uop]
    want = [b.__dict__["np"] for b in realize(roots, opt=0)]
    plan, inputs = make_plan(roots, opt=level)
    for _ in range(3):
        outs = plan.run([u.__dict__["np"] for u in inputs])
        for got, expected in zip(outs, want, strict=True):
            np.testing.assert_allclose(got, expected.ravel(), rtol=1e-4, atol=1e-5)
    separate = sum(size * dtype.size for dtype, size in plan.temps)
    assert plan.bytes_needed()["temporaries"] < separate / 2
    assert _plans
