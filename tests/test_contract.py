"""The figures of the contract at level 0: kernels, references, FLOPs, storage, plans."""

from __future__ import annotations

import importlib
import weakref

import numpy as np
import pytest
from kernel_checks import (
    assert_kernels,
    forget_plans,
    layer_norm,
    new_plans,
    ramp,
    refs,
)

from uopc.composite import array_buffer, buffer_data, new_buffer
from uopc.dtype import dtypes
from uopc.kernelize import (
    _fused_work,
    _structure_key,
    make_plan,
    realize,
    stage_broadcast_compute,
)
from uopc.nn import AdamW, Linear, parameters
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp

F32, I32 = dtypes.f32, dtypes.i32


@pytest.fixture(autouse=True)
def _no_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_plans(monkeypatch)


def stages(roots: list[UOp]) -> list[UOp]:
    return [u for u in UOp(Ops.SINK, tuple(roots)).toposort() if u.op is Ops.STAGE]


# *** names ***


@pytest.mark.parametrize("module,names", {
    "uop": "UOp Ops ParamArg prod MOVEMENT ALU _argkey", "dtype": "DType dtypes",
    "rewrite": "UPat PatternMatcher graph_rewrite", "rangeify": "lower",
    "composite": "is_contiguous_buffer", "render_c": "render_c", "runtime": "Program np_dtype",
    "kernelize": "Kernel Plan new_buffer buffer_data base_buffer make_plan realize "
                 "stage_broadcast_compute _materialize_points _fused_work _kernel_name _flops "
                 "_structure_key _plans DEBUG",
    "tensor": "Tensor", "nn": "Linear SGD AdamW parameters",
}.items())
def test_names_that_others_import(module: str, names: str) -> None:
    found = importlib.import_module(f"uopc.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


# *** one kernel or several ***


def test_elementwise_chain_is_one_kernel() -> None:
    assert_kernels((ramp(64, 64) * 2 + 1).relu() * 3, "e_64_64")


def test_add_alone_and_under_a_sum() -> None:
    a, b = ramp(64, 64), ramp(64, 64)
    assert_kernels(a + b, "e_64_64")
    assert_kernels((a + b).sum(), "r_1")


def test_softmax() -> None:
    plan = assert_kernels(ramp(4, 8).softmax(-1), "r_4 r_4 e_4_8")
    assert refs(plan) == ["in0 tmp0", "in0 tmp0 tmp1", "in0 tmp0 tmp1 out0"]
    assert [k.flops for k in plan.kernels] == [32, 132, 136]
    assert plan.temps == [(F32, 4), (F32, 4)] and plan.outs == [(F32, 32)]


def test_fused_softmax_has_sibling_loops_in_the_row_loop() -> None:
    plan = assert_kernels(ramp(4, 8).softmax(-1), "r_4_8", fuse_reduce=True)
    assert refs(plan) == ["in0 out0"] and plan.temps == []
    loops = [line for line in plan.kernels[0].src.splitlines() if "for (" in line]
    assert [(line.index("for") // 2, line.split()[2]) for line in loops] == [
        (1, "ridx0"), (2, "ridx2"), (2, "ridx3"), (2, "ridx1")]


def test_variance() -> None:
    x = ramp(4, 8)
    plan = assert_kernels(x.var(-1), "r_4 r_4 e_4")
    assert "(val1*0.125f)" in plan.kernels[2].src
    np.testing.assert_allclose(x.var(-1).numpy(), x.numpy().var(-1), rtol=1e-6)


def test_chained_matmul_is_two_kernels() -> None:
    a, b, c = ramp(6, 6), ramp(6, 6) + 1, ramp(6, 6) * 2
    plan = assert_kernels((ramp(6, 6) @ ramp(6, 6)) @ ramp(6, 6), "r_6_6 r_6_6")
    assert plan.kernels[0].src == plan.kernels[1].src
    want = a.numpy() @ b.numpy() @ c.numpy()
    np.testing.assert_allclose(((a @ b) @ c).numpy(), want, rtol=1e-5, atol=1e-6)


def test_fused_chained_matmul_recomputes_the_inner_accumulator() -> None:
    a, b, c = ramp(6, 6), ramp(6, 6), ramp(6, 6)
    plan = assert_kernels((a @ b) @ c, "r_6_6", fuse_reduce=True)
    lines = [line.strip() for line in plan.kernels[0].src.splitlines()]
    order = [lines.index(x) for x in ("float acc1;", "float acc0;")]
    outer = next(k for k, line in enumerate(lines) if "ridx2 < 6" in line)
    assert order[0] < outer < order[1]  # acc0 starts anew in each step of acc1's loop
    result = realize([((a @ b) @ c).uop], fuse_reduce=True)[0]
    want = a.numpy() @ b.numpy() @ c.numpy()
    np.testing.assert_allclose(buffer_data(result), want, rtol=1e-5, atol=1e-6)


def test_matmul_relu_matmul() -> None:
    a, b, c = ramp(64, 64), ramp(64, 64), ramp(64, 64)
    assert_kernels((a @ b).relu() @ c, "r_64_64 e_64_64 r_64_64")


def test_layer_norm_into_matmul_is_staged() -> None:
    y = layer_norm(ramp(128, 256)) @ ramp(256, 256)
    assert_kernels(y, "r_128 r_128 e_128_256 r_128_256")
    assert stages([y.uop]) == []
    (stage,) = stages(stage_broadcast_compute([y.uop]))
    assert stage.shape == (128, 256) and _fused_work(stage.src[0]) == 262144


def test_layer_norm_without_staging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uopc.kernelize.stage_broadcast_compute", list)
    assert_kernels(layer_norm(ramp(128, 256)) @ ramp(256, 256), "r_128 r_128 r_128_256")


def test_staging_is_off_under_fuse_reduce() -> None:
    assert_kernels(layer_norm(ramp(128, 256)) @ ramp(256, 256), "r_128_256", fuse_reduce=True)


def test_loss_and_gradient_share_the_forward_matmul() -> None:
    x, w = ramp(32, 64), ramp(64, 10)
    loss = (x @ w).relu().square().mean()
    loss.backward([w])
    plan = assert_kernels([loss, w.grad], "r_32_10 r_1 e_1 r_10_64 e_64_10")
    assert refs(plan) == ["in0 in1 tmp0", "tmp0 tmp1", "tmp1 out0", "tmp0 in0 tmp2", "tmp2 out1"]


def test_contiguous_cuts() -> None:
    assert_kernels((ramp(256, 256).exp() * 2).contiguous().sum(1), "e_256_256 r_256")


def test_equal_kernels_on_two_buffers_are_the_same_c() -> None:
    plan = assert_kernels([ramp(16, 16).sum(1), ramp(16, 16).sum(1)], "r_16 r_16")
    assert plan.kernels[0].src == plan.kernels[1].src
    assert refs(plan) == ["in0 out0", "in1 out1"]


def test_int_times_zero_reads_nothing() -> None:
    t = Tensor([7, 8, 9])
    plan = assert_kernels(t * 0, "e_3")
    assert plan.kernels[0].refs == [("out", 0)]
    assert "void e_3(int* restrict data1) {" in plan.kernels[0].src
    assert (t * 0).tolist() == [0, 0, 0] and t.tolist() == [7, 8, 9]


def test_kernel_names_of_other_shapes() -> None:
    assert_kernels(ramp(3, 1, 2) + 1, "e_3_1_2")
    assert_kernels(ramp(5).max(), "r_1")
    assert_kernels(ramp(2, 3).T.contiguous(), "e_3_2")


# *** cut points ***


def test_movement_alone_is_a_kernel_only_as_a_root() -> None:
    a = ramp(4, 6)
    assert_kernels(a.T, "e_6_4")
    assert_kernels(a.T.reshape(3, 8) + 1, "e_3_8")
    assert_kernels(a.reshape(3, 8), "")


def test_a_stage_on_what_lies_in_memory_needs_no_kernel() -> None:
    a = ramp(4, 6)
    assert_kernels(a.contiguous() + 1, "e_4_6")
    assert_kernels((a + 1).contiguous().contiguous() * 2, "e_4_6 e_4_6")
    assert_kernels(a.sum(0).contiguous() + 1, "r_6 e_6")


def test_nested_stages_are_a_kernel_each() -> None:
    a = ramp(4, 6)
    assert_kernels(((a + 1).contiguous() * 2).contiguous().exp(), "e_4_6 e_4_6 e_4_6")


def test_detach_is_stripped_before_cutting() -> None:
    a = ramp(4, 6)
    assert_kernels((a * 2).detach() + 1, "e_4_6")
    assert_kernels(a.detach(), "")
    y = (a * 2).detach() * a
    y.sum().backward([a])
    np.testing.assert_allclose(a.grad.numpy(), a.numpy() * 2)


def test_stage_has_the_identity_as_gradient() -> None:
    a = ramp(4, 6)
    (a * a).contiguous().sum().backward([a])
    np.testing.assert_allclose(a.grad.numpy(), 2 * a.numpy())


def test_wrap_composes_and_substitute_does_not() -> None:
    x = ramp(4, 6).uop
    inner = x * 2 + 1
    outer = inner.exp2() * inner
    root = outer.reduce(Ops.ADD, 1)
    wrapped = UOp.wrap([root], [inner, outer], UOp.stage)
    assert len(stages(wrapped)) == 2
    substituted = root.substitute({inner: inner.stage(), outer: outer.stage()})
    assert len(stages([substituted])) == 1


# *** roots ***


def test_a_contiguous_root_aliases_its_input() -> None:
    a = ramp(4, 6).uop
    assert realize([a]) == [a]
    same, flat, more = realize([a, a.reshape((24,)), a + 1])
    assert same is a
    assert np.shares_memory(buffer_data(flat), buffer_data(a)) and flat.shape == (24,)
    np.testing.assert_array_equal(buffer_data(more), buffer_data(a) + 1)
    plan, inputs = make_plan([a, a.reshape((24,))])
    assert plan.kernels == plan.outs == [] and inputs == [a]


def test_duplicates_are_computed_once() -> None:
    a = ramp(4, 6)
    plan = assert_kernels([a + 1, a + 1, (a + 1).reshape(24)], "e_4_6")
    assert plan.outs == [(F32, 24)]
    first, second, flat = realize([(a + 1).uop, (a + 1).uop, (a + 1).reshape(24).uop])
    assert first is second and first.shape == (4, 6) and flat.shape == (24,)


def test_a_root_inside_another_is_read_from_memory() -> None:
    a = ramp(4, 6)
    plan = assert_kernels([a.exp(), a.exp() + 1], "e_4_6 e_4_6")
    assert refs(plan) == ["in0 out0", "out0 out1"]


def test_a_staged_root_is_computed_once() -> None:
    base = ramp(64, 64) + 1
    wide = base.reshape(64, 64, 1).expand(64, 64, 8) * 2
    plan = assert_kernels([base, wide], "e_64_64 e_64_64_8")
    assert refs(plan) == ["in0 out0", "out0 out1"] and plan.temps == []


def test_a_value_and_its_detached_self_are_one() -> None:
    a = ramp(4, 6)
    first, second = realize([(a + 1).uop, (a + 1).detach().uop])
    assert first is second


def test_a_stage_cuts_under_fuse_reduce_too() -> None:
    a = ramp(4, 6)
    assert_kernels(a.sum(1).contiguous() + 1, "r_4 e_4", fuse_reduce=True)
    assert_kernels((a + 1).contiguous().sum(1) + 1, "e_4_6 r_4", fuse_reduce=True)


def test_roots_without_elements() -> None:
    a = Tensor(np.zeros((2, 0), np.float32))
    plus, total = a + 1, a.sum(1)
    Tensor.realize_all(plus, total)
    assert plus.numpy().shape == (2, 0) and total.tolist() == [0, 0]


def test_a_constant_root_beside_its_user() -> None:
    a = ramp(4)
    two, doubled = Tensor.full((), 2.0), a * 2.0
    Tensor.realize_all(two, doubled)
    assert two.item() == 2.0
    np.testing.assert_array_equal(doubled.numpy(), a.numpy() * 2)


def test_inputs_come_in_topological_order() -> None:
    a, b, c = (ramp(4).uop for _ in range(3))
    _, inputs = make_plan([(b + a) * c + b])
    assert inputs == [b, a, c]


# *** the structure key ***


def test_the_slot_is_not_structure() -> None:
    a, b = ramp(4, 6).uop, ramp(4, 6).uop
    assert a is not b
    assert _structure_key([a + 1]) == _structure_key([b + 1])
    assert _structure_key([a + b]) != _structure_key([a + a])
    assert _structure_key([a]) != _structure_key([ramp(6, 4).uop])
    assert _structure_key([a]) != _structure_key([array_buffer(np.zeros((4, 6), np.int32))])


@pytest.mark.parametrize("one, other", [(1.0, 2.0), (0.0, -0.0), (1.0, float("nan"))])
def test_the_value_of_a_constant_is_structure(one: float, other: float) -> None:
    a = ramp(4, 6).uop
    assert _structure_key([a + one]) != _structure_key([a + other])
    assert _structure_key([a + one]) == _structure_key([ramp(4, 6).uop + one])


def test_whatever_else_is_structure() -> None:
    a = ramp(4, 4).uop
    graphs = [a, a + 1, a * 1, (a + 1).stage(), (a + 1).stage("detach"), a.permute((1, 0)),
              a.reduce(Ops.ADD, 1), a.reduce(Ops.MAX, 1), a.reduce(Ops.ADD, 2), a.cast(I32)]
    keys = [_structure_key([u]) for u in graphs]
    keys += [_structure_key([a], fuse_reduce=True), _structure_key([a, a + 1])]
    assert len(set(keys)) == len(graphs) + 2


def test_a_float_factor_makes_a_plan_per_step_and_a_tensor_one_in_all() -> None:
    w, factors = ramp(5), [0.1, 0.19, 0.271]
    with new_plans() as floats:
        got = [(w * corr).numpy() for corr in factors]
    with new_plans() as tensors:
        same = [(w * Tensor([corr])).numpy() for corr in factors]
    assert (floats.count, tensors.count) == (3, 1)
    np.testing.assert_array_equal(got, same)


def test_adamw_needs_no_new_plan_after_the_second_step() -> None:
    layer, x = Linear(4, 2), ramp(8, 4)
    optimizer = AdamW(parameters([layer]), lr=0.01)
    counts = []
    for _ in range(5):
        with new_plans() as made:
            loss = layer(x).square().mean()
            optimizer.zero_grad()
            loss.backward(optimizer.params)
            optimizer.step(loss)
        counts.append(made.count)
    assert counts[0] >= 1 and counts[2:] == [0, 0, 0]


# *** memory ***


def test_a_dropped_tensor_frees_its_memory_though_its_plan_is_cached() -> None:
    with new_plans() as made:
        t = ramp(32, 32)
        y = t.softmax(-1).sum()
        y.realize()
    assert made.count == 1
    buffer, array = weakref.ref(t.uop), weakref.ref(t.uop.__dict__["np"])
    result = weakref.ref(y.uop.__dict__["realized"])
    del t
    assert buffer() is not None  # y's graph still reads it
    del y
    assert buffer() is array() is result() is None


def test_gradients_and_steps_keep_nothing_alive() -> None:
    x, w = ramp(8, 4), ramp(4, 2)
    loss = (x @ w).square().mean()
    loss.backward([w])
    Tensor.realize_all(loss, w.grad)
    old = weakref.ref(w.uop)
    w.assign(w - w.grad * 0.1)
    w.grad = None
    w.realize()
    del loss
    assert old() is None


def test_a_buffer_shows_its_slot_dtype_and_shape() -> None:
    buffer = ramp(32).uop
    assert repr(buffer) == (f"UOp(Ops.BUFFER, arg=ParamArg(slot={buffer.arg.slot}, "
                            "dtype=dtypes.f32, shape=(32,), addrspace=None))")
    assert buffer.arg.slot > 0


def test_a_new_buffer_has_its_array_given_or_made() -> None:
    data = np.arange(6, dtype=np.float32)
    for buffer in (new_buffer(dtypes.f32, 6), new_buffer(dtypes.f32, 6, data)):
        assert (buffer.op, buffer.dtype, buffer.shape) == (Ops.BUFFER, dtypes.f32, (6,))
        assert buffer_data(buffer).shape == (6,)
    assert buffer_data(buffer) is data
    first, second = new_buffer(dtypes.i32, 2), new_buffer(dtypes.i32, 2)
    assert first is not second and 0 < first.arg.slot < second.arg.slot
    with pytest.raises(ValueError, match="5 elements cannot own 6"):
        new_buffer(dtypes.f32, 5, data)
    with pytest.raises(TypeError, match="float32"):
        new_buffer(dtypes.i32, 6, data)
