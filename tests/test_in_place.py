"""Updates in place: an assigned tensor's new value may be written over its old one, where no kernel
needs the old one any more."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from uopc.composite import buffer_data
from uopc.dtype import DType, dtypes
from uopc.jit import jit
from uopc.kernelize import make_plan
from uopc.linearize import linearize
from uopc.plan import Plan
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp

SHAPES = [(), (7,), (13, 17), (65, 128), (3, 1, 37), (600, 33)]


def data(shape: Sequence[int], dtype: DType = dtypes.f32, seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(tuple(shape)) * 3
    return Tensor(values.astype(dtype.np))


def planned(level: int, p: Tensor, value: Tensor, *others: Tensor) -> tuple[Plan, list, int]:
    """The plan that assigns `value` to `p`, the inputs' arrays, and the number of p's."""
    old = p.uop
    new = Tensor._of(old).assign(value)
    plan, inputs = make_plan([new.uop, *[t.uop for t in others]], opt=level)
    return plan, [buffer_data(u).copy() for u in inputs], inputs.index(old)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.u8])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", [1, 2])
def test_what_is_written_in_place_is_what_would_be_written_elsewhere(
        level: int, shape: tuple, dtype: DType) -> None:
    for k, f in enumerate([lambda p, g: p + g, lambda p, g: (p < g).where(p * 3, p + g * p),
                           lambda p, g: p * 2 + (p + g).sum().cast(dtype)]):
        p, g = data(shape, dtype), data(shape, dtype, 1)
        plan, arrays, i = planned(level, p, f(p, g), (g * 2).sum())
        assert plan.updates <= {(i, 0), (1 - i, 0)} and (k == 2 or (i, 0) in plan.updates)
        want = plan.run([a.copy() for a in arrays])
        for which, _ in plan.updates:
            given = [a.copy() for a in arrays]
            got = plan.run(given, spare={0: given[which].reshape(-1)})
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)


HAZARDS: dict[str, Callable[[Tensor], tuple]] = {  # new value, what else is computed
    "transposed": lambda p: (p.T + 1,),
    "itself and transposed": lambda p: (p + p.T,),
    "reversed": lambda p: (p.flip(0) * 2,),
    "shifted": lambda p: (p[1:].pad(((0, 1), (0, 0))) + p,),
    "a row for all": lambda p: (p + p[:1],),
    "gathered": lambda p: (p[Tensor(np.arange(9, dtype=np.int32)[::-1].copy())],),
    "a product": lambda p: (p @ p,),
    "read by another kernel at the same time": lambda p: (p + 1, p @ p),
    "reduced": lambda p: (p - p.sum(1, keepdim=True) * 1e-3,),
    "softmax": lambda p: (p.softmax(-1),),
    "a view of another shape": lambda p: (p.reshape(3, 27).T.reshape(9, 9) + 1,),
    "under another shape": lambda p: ((p.reshape(27, 3) + 1).reshape(9, 9), p.reshape(81).sum()),
    "masked": lambda p: ((p > 0).where(p, p.T),),
}


@pytest.mark.parametrize("name", HAZARDS)
@pytest.mark.parametrize("level", [1, 2])
def test_no_hazard_is_taken_for_an_update(level: int, name: str) -> None:
    p = data((9, 9))
    plan, arrays, i = planned(level, p, *HAZARDS[name](p))
    want = plan.run([a.copy() for a in arrays])
    for which, k in plan.updates:
        given = [a.copy() for a in arrays]
        for a, b in zip(plan.run(given, spare={k: given[which].reshape(-1)}), want, strict=True):
            np.testing.assert_array_equal(a, b)
    if name in ("transposed", "itself and transposed", "reversed", "shifted", "a row for all",
                "gathered", "a product", "read by another kernel at the same time",
                "a view of another shape", "masked"):
        assert (i, 0) not in plan.updates


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("name", HAZARDS)
def test_replays_with_hazards(name: str, look: bool) -> None:
    """Also while somebody looks at the values in between, and keeps some."""
    p, q = (data((9, 9)) for _ in range(2))

    def step(t: Tensor) -> Tensor | None:
        new, *more = HAZARDS[name](t * 0.1)
        t.assign(new)
        return more[0] if more else None

    fast, kept = jit(lambda: step(p)), []
    for k in range(9):
        a, b = fast(), step(q)
        q.realize()
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)
        if look and k % 3 == 0:
            kept.append((Tensor._of(p.uop), q.numpy()))
    np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5, atol=1e-6)
    for tensor, value in kept:
        np.testing.assert_allclose(tensor.numpy(), value, rtol=1e-5, atol=1e-6)


def test_states_of_a_replay_stay_where_they_are() -> None:
    p, m = data((50, 70)), Tensor(np.zeros((50, 70), np.float32))

    @jit
    def step(g: Tensor) -> Tensor:
        m.assign(m * 0.9 + g)
        p.assign(p - m * 0.1)
        return (g * 2).sum()

    for k in range(6):
        step(data((50, 70), seed=k))
    (program,) = step.programs.values()
    assert [s.in_place for s in program.states] == [True, True]
    places = [[id(a) for a in s.arrays] for s in program.states]
    assert all(a == b for a, b in places)
    step(data((50, 70)))
    assert places == [[id(a) for a in s.arrays] for s in program.states]


def test_an_index_out_of_range_changes_nothing() -> None:
    p = data((10, 4))

    @jit
    def step(at: Tensor) -> Tensor:
        row = p[at].sum()
        p.assign(p * 2)
        return row

    good = Tensor(np.array([1, 2], np.int32))
    for _ in range(6):
        step(good)
    before = p.numpy()
    for _ in range(3):
        step(good)
    with pytest.raises(IndexError, match="10"):
        step(Tensor(np.array([1, 10], np.int32)))
    np.testing.assert_array_equal(p.numpy(), before * 8)


def test_a_body_stays_in_its_loops() -> None:
    """Even if it does not count on one of them: else every thread would do it all."""
    one, many = (UOp(Ops.RANGE, (), (k, size)) for k, size in enumerate((1, 5)))
    x = data((5,)).uop
    index = UOp(Ops.INDEX, (x, many.cast(dtypes.i64)))
    inner = UOp(Ops.END, (UOp(Ops.STORE, (index, UOp.const(1.0, dtypes.f32))), many))
    sink = UOp(Ops.SINK, (UOp(Ops.END, (inner, one)),))
    opened = [s.node for s in linearize(sink) if s.kind == "open"]
    assert opened == [one, many]
