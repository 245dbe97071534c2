"""Computing a Tensor: when it happens, what is used again, assignment, and memory."""
from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from uopc.counters import counters
from uopc.kernelize import _plans
from uopc.tensor import Tensor

# *** computing ***


def test_nothing_is_computed_before_it_is_asked_for_and_then_only_once():
    x = Tensor([1.0, 2.0]) * 2.75
    before = counters.copy()
    y = (x + 1).sum()
    assert (counters - before).kernels == 0
    y.realize()
    first = counters.copy()
    assert (first - before).kernels > 0
    assert y.item() == 10.25
    y.realize()
    assert (counters - first).kernels == 0


def test_a_value_that_was_computed_is_found_wherever_it_occurs():
    x = Tensor(np.arange(6, dtype=np.float32))
    norm = (x * x).sum().realize()
    before = counters.copy()
    scaled = (x / (x * x).sum()).numpy()
    assert (counters - before).kernels == 1  # the sum is not computed again
    np.testing.assert_allclose(scaled, np.arange(6) / 55, rtol=1e-6)
    assert norm.item() == 55


def test_a_tensor_knows_the_value_that_an_equal_one_computed():
    x = Tensor([1.0, 2.0])
    (x * 3).realize()
    kept = (x * 3).realize()
    before = counters.copy()
    assert (x * 3).tolist() == [3, 6]
    assert (counters - before).kernels == 0
    assert kept.tolist() == [3, 6]


def test_several_are_computed_in_one_plan():
    x = Tensor([1.0, 2.0])
    before = counters.copy()
    a, b = x + 1.25, (x + 1.25) * 3
    Tensor.realize_all(a, b, a, x)
    done = counters - before
    assert done.plan_hits + done.plan_misses == 1
    assert (a.tolist(), b.tolist(), x.tolist()) == ([2.25, 3.25], [6.75, 9.75], [1, 2])
    Tensor.realize_all()


def test_equal_structure_is_one_plan():
    def step(values):
        return (Tensor(values) * 2.5 - 1).sum().item()

    assert step([1.0, 2.0, 3.0]) == 12
    before = counters.copy()
    assert step([3.0, 4.0, 5.0]) == 27
    assert (counters - before).plan_misses == 0
    assert (counters - before).plan_hits == 1


def test_a_plan_for_one_dtype_or_shape_does_not_serve_another():
    for data in ([1, 2], [1.0, 2.0], [1, 2, 3], [[1, 2]]):
        np.testing.assert_array_equal((Tensor(data) * 3).numpy(), np.array(data) * 3)


def test_results_of_one_plan_do_not_share_memory():
    first = (Tensor([1.0]) + 1.5).realize()
    second = (Tensor([2.0]) + 1.5).realize()
    assert (first.item(), second.item()) == (2.5, 3.5)


def test_fusing_reductions_changes_no_value():
    x = Tensor(np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32))
    plain = [x.softmax().numpy(), x.var(1).numpy()]
    Tensor.fuse_reduce = True
    try:
        y = Tensor(x)
        before = counters.copy()
        fused = [y.softmax().numpy(), y.var(1).numpy()]
        assert (counters - before).kernels == 2
    finally:
        Tensor.fuse_reduce = False
    for a, b in zip(plain, fused, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_views_of_data_need_no_copy_to_be_read():
    x = Tensor(np.arange(6, dtype=np.float32))
    before = counters.copy()
    assert x.reshape(2, 3).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (counters - before).kernels == 0


# *** assignment ***


def test_assign_gives_a_new_value_and_others_keep_the_old():
    x = Tensor([1.0, 2.0])
    double = x * 2
    assert x.assign([5.0, 6.0]) is x
    assert (x.tolist(), double.tolist()) == ([5, 6], [2, 4])
    x.assign(x + 1)
    x.assign(x * x)
    assert x.tolist() == [36, 49]


def test_assigned_tensors_are_independent():
    x, y = Tensor([1.0]), Tensor([2.0])
    x.assign(y)
    y[0] = 7
    assert (x.item(), y.item()) == (2, 7)


def test_assign_swaps():
    x, y = Tensor([1.0]), Tensor([2.0])
    old = x * 1
    x.assign(y)
    y.assign(old)
    Tensor.realize_all(x, y)
    assert (x.item(), y.item()) == (2, 1)


def test_assign_refuses_another_shape_or_dtype():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"cannot assign shape \(3,\) to a tensor of \(2,\)"):
        x.assign(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"cannot assign dtypes.i32 to a tensor of dtypes.f32"):
        x.assign(Tensor([1, 2]))
    assert x.tolist() == [1, 2]


def test_a_parameter_that_is_assigned_and_realized_does_not_grow_a_graph():
    w = Tensor([1.0], requires_grad=True)
    sizes = []
    for _ in range(3):
        w.assign(w * 0.5)
        w.realize()
        sizes.append(len(w.uop.toposort()))
    assert sizes == [1, 1, 1]
    assert w.item() == 0.125 and w.requires_grad


# *** memory ***


def array_of(tensor):
    """A weak reference to the array that holds a computed tensor."""
    node = tensor.uop.__dict__.get("realized", tensor.uop)
    return weakref.ref(node.__dict__["np"])


def test_memory_goes_with_the_last_tensor_that_can_reach_it():
    x = Tensor(np.ones(1000, np.float32))
    y = (x * 1.75).realize()
    data, result = array_of(x), array_of(y)
    del x
    gc.collect()
    assert data() is not None  # y's graph still reaches it
    del y
    gc.collect()
    assert data() is None and result() is None


def test_no_plan_keeps_an_array_alive():
    x = Tensor(np.ones(1000, np.float32))
    data = array_of(x)
    (x + 1.125).sum().item()
    assert len(_plans) > 0
    del x
    gc.collect()
    assert data() is None


def test_what_was_overwritten_is_let_go():
    w = Tensor(np.ones(1000, np.float32))
    old = array_of(w)
    w.assign(w * 0.5)
    w.realize()
    gc.collect()
    assert old() is None
