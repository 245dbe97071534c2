"""Gradients: how they flow through a graph, and what `backward` promises."""
from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from numeric import Case, array, check

from uopc.autodiff import gradient_rules, gradients
from uopc.dtype import dtypes
from uopc.ops import ALU, COMPARE, MOVEMENT
from uopc.tensor import Tensor
from uopc.uop import Ops


def test_every_operation_has_a_rule_or_passes_no_gradient():
    constant = COMPARE | {Ops.TRUNC, Ops.IDIV, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR,
                          Ops.BITCAST}
    structure = {Ops.STAGE, Ops.REDUCE, Ops.GATHER, Ops.SCATTER}
    assert set(gradient_rules) == (ALU | MOVEMENT | structure) - constant


def layer_norm(x, w, b):
    centred = x - x.mean(-1, **_keep(x))
    variance = (centred * centred).mean(-1, **_keep(x))
    return centred * (variance + 1e-5) ** -0.5 * w + b


def attention(q, k, v):
    transposed = k.transpose() if isinstance(k, Tensor) else k.swapaxes(-2, -1)
    scores = q @ transposed * 0.5
    if isinstance(q, Tensor):
        rows = Tensor.arange(3).reshape(3, 1)
        mask = Tensor.arange(3) <= rows
        return mask.where(scores, -np.inf).softmax() @ v
    scores = np.where(np.tril(np.ones((3, 3), bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def often(x):
    square = x * x
    return square + x / (square + 1) * square


def mlp(x, w1, b1, w2):
    return ((x @ w1 + b1).tanh() if isinstance(x, Tensor) else np.tanh(x @ w1 + b1)) @ w2


def _keep(x):
    return {"keepdim" if isinstance(x, Tensor) else "keepdims": True}


def test_what_models_are_made_of():
    check([
        Case("layer norm", layer_norm, layer_norm, (array(2, 5), array(5), array(5, seed=2))),
        Case("attention", attention, attention,
             (array(2, 3, 4), array(2, 3, 4, seed=3), array(2, 3, 4, seed=4))),
        Case("mlp", mlp, mlp, (array(2, 3), array(3, 4, seed=3), array(4), array(4, 2, seed=4))),
        Case("a node used often", often, often, (array(3),)),
    ])


def test_second_and_third_derivatives():
    x = Tensor([0.5, -1.5])
    for f, first, second in (
            (lambda t: t ** 3, lambda v: 3 * v**2, lambda v: 6 * v),
            (Tensor.sin, np.cos, lambda v: -np.sin(v)),
            (Tensor.exp, np.exp, np.exp),
            (Tensor.tanh, lambda v: 1 - np.tanh(v)**2,
             lambda v: -2 * np.tanh(v) * (1 - np.tanh(v)**2))):
        x.grad = None
        f(x).sum().backward([x])
        gradient, x.grad = x.grad, None
        gradient.sum().backward([x])
        np.testing.assert_allclose(gradient.numpy(), first(x.numpy()), rtol=1e-5)
        np.testing.assert_allclose(x.grad.numpy(), second(x.numpy()), rtol=1e-5)


def test_a_broadcast_operand_gets_a_gradient_of_its_own_shape():
    shapes = [(), (1,), (5,), (3, 1), (1, 1), (2, 1, 5)]
    leaves = [Tensor(np.ones(s, np.float32)) for s in shapes]
    total = Tensor(np.ones((2, 3, 5), np.float32))
    for leaf in leaves:
        total = total + leaf
    total.sum().backward(leaves)
    for leaf in leaves:
        assert leaf.grad.shape == leaf.shape
        np.testing.assert_array_equal(leaf.grad.numpy(), np.full(leaf.shape, 30 / leaf.size))


def test_gradients_with_respect_to_what_was_computed():
    x = Tensor([2.0])
    hidden = x * 3
    loss = (hidden * hidden).sum()
    loss.backward([x, hidden, loss])
    assert (x.grad.item(), hidden.grad.item(), loss.grad.item()) == (36, 12, 1)


def test_a_gradient_to_multiply_with():
    x = Tensor([1.0, 2.0])
    (x * x).backward([x], Tensor([10.0, 100.0]))
    assert x.grad.tolist() == [20, 400]
    (x * x).backward([x], Tensor([1, 1]))  # added, and integers will do
    assert x.grad.tolist() == [22, 404]


def test_backward_adds_to_what_is_there():
    x = Tensor([3.0])
    for k in (1, 2, 3):
        (x * x).sum().backward([x])
        assert x.grad.item() == 6 * k


def test_one_tensor_or_one_given_twice_counts_once():
    x = Tensor([3.0, 1.0])
    (x * x).sum().backward(x)
    (x * x).sum().backward([x, x])
    assert x.grad.tolist() == [12, 4]


def test_without_parameters_it_is_every_living_leaf_that_the_loss_depends_on():
    w, other = Tensor([2.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    plain = Tensor([5.0])
    (w * plain).sum().backward()
    assert w.grad.item() == 5
    assert other.grad is None and plain.grad is None


def test_a_leaf_is_not_kept_alive_by_being_one():
    w = Tensor([2.0], requires_grad=True)
    seen = weakref.ref(w)
    del w
    gc.collect()
    assert seen() is None


def test_an_unreachable_parameter_has_no_gradient():
    x, y = Tensor([1.0]), Tensor([1.0])
    x.sum().backward([x, y])
    assert y.grad is None
    (x > 0).where(1.0, 2.0).sum().backward([y])
    assert y.grad is None


def test_realizing_keeps_the_graph():
    x = Tensor([1.0, 2.0], requires_grad=True)
    hidden = (x * x).realize()
    loss = hidden.sum()
    assert loss.item() == 5
    loss.backward()
    assert x.grad.tolist() == [2, 4]


def test_detach_stops_and_contiguous_passes():
    x = Tensor([3.0])
    (x * x.detach()).sum().backward([x])
    assert x.grad.item() == 3
    x.grad = None
    still = x.detach()
    assert still.numpy() == 3
    (x * still).sum().backward([x])
    assert x.grad.item() == 3
    x.grad = None
    (x.contiguous() * 2).contiguous().sum().backward([x])
    assert x.grad.item() == 2


def test_equal_leaves_are_told_apart():
    a, b = Tensor.ones(2, requires_grad=True), Tensor.ones(2, requires_grad=True)
    (a * 2 + b * 3).sum().backward()
    assert a.grad.tolist() == [2, 2]
    assert b.grad.tolist() == [3, 3]
    a.assign(b)
    a.grad = b.grad = None
    a.realize()
    (a * b * 5).sum().backward([a])
    assert a.grad.tolist() == [5, 5]


def test_leaves_that_hold_one_unfinished_expression_are_told_apart():
    a, b, c = (Tensor([k], requires_grad=True) for k in (1.0, 2.0, 3.0))
    a.assign(c * 2)
    b.assign(c * 2)
    z = (c * 2).detach()
    (a * b * b * z).sum().backward([a, b])
    assert (a.grad.item(), b.grad.item()) == (216, 432)
    a.grad = b.grad = None
    Tensor.realize_all(a, b)
    (a * b * b).sum().backward([a, b])
    assert (a.grad.item(), b.grad.item()) == (36, 72)


def test_gradients_after_an_assignment_are_those_of_the_new_value():
    w = Tensor([2.0], requires_grad=True)
    for _ in range(3):
        w.grad = None
        (w * w).sum().backward()
        w.assign(w - w.grad * 0.25)
    assert w.item() == 0.25
    (w * w).sum().backward([w])


def test_a_deep_graph_needs_no_recursion():
    x = Tensor([1.0])
    y = x
    for _ in range(5000):
        y = y * 1.0001 + x * 1e-6
    found = gradients(y.uop, [x.uop], Tensor([1.0]).uop)
    assert found[x.uop].shape == (1,)


def test_gradients_of_where_go_to_the_branch_that_was_taken():
    x, y = Tensor([1.0, -2.0, np.nan]), Tensor([5.0])
    (x > 0).where(x * 2, y * 3).sum().backward([x, y])
    assert x.grad.tolist() == [2, 0, 0]
    assert y.grad.tolist() == [6]


# *** errors ***


def test_backward_needs_one_float_number():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"one element, or a gradient; this one has shape \(2,\)"):
        (x * 2).backward([x])
    with pytest.raises(ValueError, match=r"shape \(3,\) is not \(2,\)"):
        (x * 2).backward([x], Tensor([1.0, 1.0, 1.0]))
    with pytest.raises(TypeError, match="backward needs a float tensor, this one is dtypes.i64"):
        Tensor([1, 2]).sum().backward([x])


def test_only_floats_have_gradients():
    i = Tensor([1, 2])
    for wrong in (lambda: (i * 0.5).sum().backward([i]), lambda: Tensor([1], requires_grad=True),
                  lambda: Tensor.ones(2, dtype=dtypes.i32, requires_grad=True)):
        with pytest.raises(TypeError, match="only floats have gradients; .* dtypes.i32"):
            wrong()


def test_a_constant_expression_is_no_parameter():
    w = Tensor.ones(2)
    with pytest.raises(ValueError, match=r"shape \(2,\) is a constant expression"):
        (w * 2).sum().backward([w])


def test_a_loss_built_before_its_parameter_was_computed_keeps_its_gradient():
    w = Tensor([3.0], requires_grad=True)
    w.assign(w * 2)
    loss = (w * w).sum()
    assert w.item() == 6
    loss.backward()
    (w * 1).sum().backward()
    assert w.grad.item() == 13


def test_backward_does_not_ask_about_unrelated_leaves():
    p, q = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    p.assign(Tensor.zeros(1))
    (q * 2).sum().backward()
    assert q.grad.item() == 2 and p.grad is None


def test_a_constant_that_was_computed_changes_no_other_graph():
    zero, x = Tensor.zeros(()), Tensor([1.0, -1.0])
    before = x.relu().uop
    assert zero.item() == 0.0 and zero.item() == 0.0
    assert x.relu().uop is before and x.relu().tolist() == [1.0, 0.0]
    assert "realized" not in zero.uop.__dict__


def test_nan_takes_the_gradient_of_a_maximum():
    x = Tensor([1.0, float("nan")], requires_grad=True)
    (x.max() + x.maximum(0.5).sum()).backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_ignored_rows_have_no_gradient_whatever_they_hold():
    x = Tensor([[0.0, 1.0], [-float("inf"), -float("inf")]], requires_grad=True)
    x.cross_entropy(Tensor([1, -100])).backward()
    assert x.grad.numpy()[1].tolist() == [0.0, 0.0]
    assert abs(x.grad.numpy()[0].sum()) < 1e-6 and x.grad.numpy()[0, 0] > 0.2
