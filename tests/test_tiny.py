"""The everyday part: the most telling checks of every layer, in seconds."""
from __future__ import annotations

import numpy as np
import pytest

from uopc.composite import array_buffer
from uopc.counters import counters
from uopc.dtype import dtypes
from uopc.interpret import interpret_graph
from uopc.kernelize import make_plan
from uopc.rangeify import lower
from uopc.render_c import render_c
from uopc.rewrite import PatternMatcher, UPat, graph_rewrite
from uopc.tensor import Tensor
from uopc.uop import Ops, ParamArg, UOp


def param(slot: int, *shape: int) -> UOp:
    return UOp(Ops.BUFFER, (), ParamArg(slot, dtypes.f32, shape))


def test_equal_nodes_are_one_object():
    a = param(0, 4)
    assert a * 2 + 1 is a * 2 + 1
    assert a * 2 is not a * 2.5
    assert UOp.const(0.0, dtypes.f32) is not UOp.const(-0.0, dtypes.f32)


def test_wrap_composes_and_substitute_does_not():
    inner = param(0, 2, 3) * 2 + 1
    outer = inner.exp2() * inner
    root = outer.reduce(Ops.ADD, 1)
    (wrapped,) = UOp.wrap([root], [inner, outer], UOp.stage)
    replaced = root.substitute({inner: inner.stage(), outer: outer.stage()})
    assert [sum(u.op is Ops.STAGE for u in g.toposort()) for g in (wrapped, replaced)] == [2, 1]


def test_a_rule_rewrites_until_it_fits_no_more():
    rules = PatternMatcher([(UPat.var("x") * 1, lambda x: x)])
    a = param(0, 4)
    assert graph_rewrite((a * 1 * 1 + 3) * 1, rules) is a + 3


CHAIN = """\
void e_2_4(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    for (int ridx1 = 0; ridx1 < 4; ridx1++) {
      int alu1 = ((ridx0*4)+ridx1);
      float val2 = data0[alu1];
      float alu3 = ((val2*2.0f)+1.0f);
      data1[alu1] = (((0.0f<alu3)?alu3:0.0f)*3.0f);
    }
  }
}
"""
ROW_MAXIMUM = """\
void r_4(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
    float acc0;
    acc0 = -INFINITY;
    for (int ridx1 = 0; ridx1 < 8; ridx1++) {
      float val1 = acc0;
      float val2 = data0[((ridx0*8)+ridx1)];
      acc0 = ((val1>val2)?val1:val2);
    }
    float val3 = acc0;
    data1[ridx0] = val3;
  }
}
"""


def test_the_c_of_two_kernels():
    chain = (Tensor._of(param(0, 2, 4)) * 2 + 1).relu() * 3
    row_maximum = param(0, 4, 8).reduce(Ops.MAX, 1)
    for body, name, want in ((chain.uop, "e_2_4", CHAIN), (row_maximum, "r_4", ROW_MAXIMUM)):
        text = render_c(lower(body, param(1, *body.shape)), name)
        assert text[text.index("void"):] == want


def test_softmax_is_three_kernels():
    plan, inputs = make_plan([Tensor(np.zeros((4, 8), np.float32)).softmax().uop])
    assert [(k.name, k.flops) for k in plan.kernels] == [("r_4", 32), ("r_4", 132), ("e_4_8", 136)]
    assert [k.refs for k in plan.kernels] == [
        [("in", 0), ("tmp", 0)], [("in", 0), ("tmp", 0), ("tmp", 1)],
        [("in", 0), ("tmp", 0), ("tmp", 1), ("out", 0)]]
    assert len(inputs) == 1


def test_a_second_step_of_one_structure_needs_no_new_plan():
    def step(values):
        x = Tensor(values, requires_grad=True)
        (x * x).sum().backward()
        return x.grad.tolist()

    assert step([1.0, 2.0]) == [2, 4]
    before = counters.copy()
    assert step([3.0, 5.0]) == [6, 10]
    assert (counters - before).plan_misses == 0


def test_the_compiled_c_agrees_with_the_interpreter():
    data = array_buffer(np.arange(12, dtype=np.float32).reshape(3, 4))
    graph = (data.permute((1, 0)).pad([(0, 1), (1, 0)]) * 2 + 1).reduce(Ops.ADD, 1)
    np.testing.assert_array_equal(Tensor._of(graph).numpy(), interpret_graph([graph])[0])


def test_operations_equal_numpy():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 4)).astype(np.float32), np.int32([[-7], [5], [0]])
    x, y = Tensor(a), Tensor(b)
    e = np.exp(a - a.max(-1, keepdims=True))
    want = [a + b, a * 0.5 - 1, b // 4, b % -4, a @ a.T, e / e.sum(-1, keepdims=True), a.var(0),
            a.argmax(1), np.cumsum(b), np.concatenate([a, a[:, :1]], 1), a[::-1, 1:3].T,
            np.where(a > 0, a, b)]
    got = [x + y, x * 0.5 - 1, y // 4, y % -4, x @ x.T, x.softmax(), x.var(0), x.argmax(1),
           y.reshape(-1).cumsum(), Tensor.cat([x, x[:, :1]], 1), x[::-1, 1:3].T,
           (x > 0).where(x, y)]
    Tensor.realize_all(*got)
    for k, (result, value) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(result.numpy(), value, rtol=1e-5, atol=1e-6, err_msg=str(k))


def test_gradients_equal_those_by_hand():
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 2)))
    x, weight = Tensor(a), Tensor(w, requires_grad=True)
    loss = (x @ weight).relu().square().mean()
    assert loss.item() == pytest.approx((np.maximum(a @ w, 0) ** 2).mean(), rel=1e-5)
    loss.backward([weight, x])
    upstream = 2 * np.maximum(a @ w, 0) / 6
    np.testing.assert_allclose(weight.grad.numpy(), a.T @ upstream, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), upstream @ w.T, rtol=1e-4, atol=1e-6)


def test_indexing_and_assignment():
    table = Tensor(np.arange(8, dtype=np.float32).reshape(4, 2))
    assert table[[3, 0, 3], -1].tolist() == [7, 1, 7]
    table[[3, 0, 3]].sum().backward([table])
    assert table.grad.tolist() == [[1, 1], [0, 0], [0, 0], [2, 2]]
    rows = table[1:3]
    table[::2, 0] = [10.0, 20.0]
    assert table.tolist() == [[10, 1], [2, 3], [20, 5], [6, 7]]
    assert rows.tolist() == [[2, 3], [4, 5]]


def test_random_numbers_depend_on_the_seed_and_the_call_alone():
    Tensor.manual_seed(1)
    first, second = Tensor.randn(5), Tensor.rand(5)
    values = second.tolist(), first.tolist()
    Tensor.manual_seed(1)
    assert (Tensor.randn(5).tolist(), Tensor.rand(5).tolist()) == values[::-1]
    assert len({*values[0], *values[1]}) == 10


def test_errors_name_what_does_not_fit():
    x = Tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 3\) do not fit"):
        x @ x
    with pytest.raises(ValueError, match=r"cannot reshape \(2, 3\) to \(4,\)"):
        x.reshape(4)
    with pytest.raises(IndexError, match="index 2 is out of range for an axis of size 2"):
        x[2]
    with pytest.raises(TypeError, match="only floats have gradients"):
        Tensor([1], requires_grad=True)


def test_a_gpt_learns_to_count_in_one_plan_per_step() -> None:
    from models.gpt import GPT, GPTConfig
    from uopc import nn

    Tensor.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=5, block_size=4, n_layer=1, n_head=1, n_embd=8))
    optimizer = nn.AdamW(nn.parameters(model), lr=0.03)
    tokens = (np.arange(5)[None] + np.arange(6)[:, None]).astype(np.int32) % 5
    losses = []
    for step in range(30):
        optimizer.zero_grad()
        loss = model.loss(Tensor(tokens[:, :-1]), Tensor(tokens[:, 1:]))
        loss.backward(optimizer.params)
        before = counters.copy()
        optimizer.step(loss)
        assert (counters - before).plan_misses == (step == 0)
        losses.append(loss.item())
    assert losses[-1] < 0.3 < losses[0]
