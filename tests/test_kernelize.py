"""The cutting policy, the cache of plans, what DEBUG prints, and what happens on errors."""

from __future__ import annotations

import gc
import inspect
import os
import re
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernel_checks import assert_kernels, forget_plans, new_plans, ramp, refs

from uopc import emit, kernelize
from uopc.composite import array_buffer, buffer_data
from uopc.counters import counters
from uopc.dtype import dtypes
from uopc.jit import jit
from uopc.kernelize import (
    DEBUG,
    _flops,
    _fused_work,
    _kernel_name,
    _materialize_points,
    make_plan,
    realize,
    stage_broadcast_compute,
)
from uopc.plan import Plan, _Launch
from uopc.runtime import CompileError
from uopc.tensor import Tensor
from uopc.uop import Ops, UOp

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _no_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_plans(monkeypatch)
    monkeypatch.delenv("DEBUG", raising=False)
    monkeypatch.delenv("OPT", raising=False)


def count(op: Ops, roots: list[UOp]) -> int:
    return sum(u.op is op for u in UOp(Ops.SINK, tuple(roots)).toposort())


# *** which expressions are staged ***


def test_fused_work_counts_alu_times_elements() -> None:
    x = ramp(4, 8).uop
    assert _fused_work(x) == 0
    assert _fused_work(x * 2 + 1) == 2 * 32
    assert _fused_work((x * 2).exp2() * (x * 2)) == 3 * 32  # the shared x*2 counts once


@pytest.mark.parametrize("stop", [
    lambda x: (x + 1).stage(),
    lambda x: (x + 1).reshape((4, 8, 1)).reduce(Ops.ADD, 1),
    lambda x: UOp(Ops.SCATTER, (Tensor([0, 1, 1, 3]).uop, x + 1), 4),
])
def test_fused_work_stops_where_a_kernel_ends(stop: Callable[[UOp], UOp]) -> None:
    assert _fused_work(stop(ramp(4, 8).uop) * 3) == 32


def broadcast_of(base: UOp, times: int) -> UOp:
    return base.reshape((*base.shape, 1)).expand((*base.shape, times))


@pytest.mark.parametrize("times, staged", [(3, 0), (4, 1), (5, 1)])
def test_staging_starts_at_a_factor_of_four(times: int, staged: int) -> None:
    root = broadcast_of(ramp(64, 64).uop + 1, times)
    assert count(Ops.STAGE, stage_broadcast_compute([root])) == staged


@pytest.mark.parametrize("shape, staged", [((63, 65), 0), ((64, 64), 1)])
def test_staging_starts_at_work_of_4096(shape: tuple[int, int], staged: int) -> None:
    root = broadcast_of(ramp(*shape).uop + 1, 4)
    assert count(Ops.STAGE, stage_broadcast_compute([root])) == staged


def test_the_factor_can_be_given() -> None:
    root = broadcast_of(ramp(64, 64).uop + 1, 3)
    assert count(Ops.STAGE, stage_broadcast_compute([root], factor=3)) == 1
    assert count(Ops.STAGE, stage_broadcast_compute([root], factor=4)) == 0


def test_the_factor_is_of_one_expand() -> None:
    base = (ramp(64, 64).uop + 1).reshape((64, 64, 1, 1))
    twice = base.expand((64, 64, 2, 1)).expand((64, 64, 2, 2))
    assert count(Ops.STAGE, stage_broadcast_compute([twice])) == 0


@pytest.mark.parametrize("base", [
    lambda x: x,
    lambda x: (x + 1).cast(dtypes.f64),
    lambda x: (x + 1).stage(),
    lambda x: (x + 1).reduce(Ops.ADD, 1),
])
def test_only_alu_values_other_than_casts_are_staged(base: Callable[[UOp], UOp]) -> None:
    root = broadcast_of(base(ramp(128, 128).uop), 4)
    assert stage_broadcast_compute([root]) == [root]


@pytest.mark.parametrize("shape, staged", [((), 0), ((1,), 1)])
def test_a_value_without_axes_is_not_staged(shape: tuple[int, ...], staged: int) -> None:
    value = array_buffer(np.ones(shape, np.float32))
    for _ in range(4096):
        value = value + 1
    root = value.reshape((1,)).expand((4,))
    assert count(Ops.STAGE, stage_broadcast_compute([root])) == staged


def test_the_stage_stands_below_the_movement() -> None:
    base = ramp(64, 64).uop + 1
    moved = base.permute((1, 0)).flip((0,)).pad([(0, 0), (1, 1)])
    (root,) = stage_broadcast_compute([broadcast_of(moved, 4)])
    (stage,) = [u for u in root.toposort() if u.op is Ops.STAGE]
    assert stage is base.stage() and root is broadcast_of(
        stage.permute((1, 0)).flip((0,)).pad([(0, 0), (1, 1)]), 4)


def test_nested_broadcasts_are_both_staged() -> None:
    inner = ramp(64, 64).uop + 1
    outer = broadcast_of(inner, 4) * 2
    assert count(Ops.STAGE, stage_broadcast_compute([broadcast_of(outer, 4)])) == 2


def test_cheap_graphs_stay_the_same_object() -> None:
    root = (ramp(4, 8).uop + 1).reduce(Ops.ADD, 1)
    assert stage_broadcast_compute([root, root]) == [root, root]


# *** where kernels end, and what they are called ***


def test_materialize_points() -> None:
    x = ramp(4, 8).uop
    total = (x + 1).reduce(Ops.ADD, 1)
    staged = (total * 2).stage()
    root = staged.exp2()
    assert _materialize_points([root]) == [total, staged, root]
    assert _materialize_points([root], fuse_reduce=True) == [staged, root]
    assert _materialize_points([x, x.reshape((32,))]) == []
    assert _materialize_points([total.reshape((2, 2)), total, total]) == [total]
    assert _materialize_points([total.stage(), x.stage()]) == [total]
    assert _materialize_points([x.permute((1, 0))]) == [x.permute((1, 0))]


def test_the_schedule_is_topological_order() -> None:
    x, y = ramp(4, 8).uop, ramp(4, 8).uop
    roots = [y.reduce(Ops.ADD, 1), x.reduce(Ops.ADD, 1) + y.reduce(Ops.ADD, 1)]
    order = UOp(Ops.SINK, tuple(roots)).toposort()
    points = _materialize_points(roots)
    assert [order.index(p) for p in points] == sorted(order.index(p) for p in points)


def test_kernel_names() -> None:
    x = ramp(4, 1, 8).uop
    assert _kernel_name(x + 1) == "e_4_1_8"
    assert _kernel_name(x.reduce(Ops.ADD, 1)) == "r_4_1"
    assert _kernel_name(x.reduce(Ops.ADD, 3)) == "r_1"
    assert _kernel_name(UOp.const(1.0, dtypes.f32)) == "e_1"
    assert _kernel_name(x.reduce(Ops.MAX, 1).reshape((4,)) + 1) == "r_4"


def test_flops() -> None:
    x = ramp(4, 8).uop
    assert _flops(x.permute((1, 0))) == 0
    assert _flops((x * 2 + 1).exp2()) == 3 * 32
    assert _flops((x * 2).reduce(Ops.ADD, 1) + 1) == 32 + 32 + 4
    assert _flops(x.reshape((4, 8, 1)).expand((4, 8, 10)) * 2) == 320
    assert _flops(x.cast(dtypes.f64)) == 32


# *** plans ***


def test_storage_belongs_to_the_plan_and_results_are_new() -> None:
    x = ramp(4, 8)
    (first,) = realize([x.softmax(-1).uop])
    (plan,) = kernelize._plans.values()
    storage = list(plan._storage)
    (second,) = realize([x.softmax(-1).uop])
    assert all(a is b for a, b in zip(plan._storage, storage, strict=True))
    assert sum(a.nbytes for a in storage) == 2 * 4 * 4
    assert first is not second and not np.shares_memory(buffer_data(first), buffer_data(second))
    np.testing.assert_array_equal(buffer_data(first), buffer_data(second))


def test_a_plan_serves_other_data_of_the_same_structure() -> None:
    with new_plans() as made:
        results = [(ramp(4, 8) * k).softmax(-1) for k in (Tensor(1.0), Tensor(7.0))]
        values = [r.numpy() for r in results]
    assert made.count == 1
    for value, k in zip(values, (1, 7), strict=True):
        e = np.exp(ramp(4, 8).numpy() * k)
        np.testing.assert_allclose(value, e / e.sum(-1, keepdims=True), rtol=1e-5)


def test_make_plan_looks_into_no_cache() -> None:
    root = ramp(4, 8).uop + 1
    one, inputs = make_plan([root])
    other, _ = make_plan([root])
    assert one is not other and not kernelize._plans
    (out,) = one.run([buffer_data(u) for u in inputs])
    np.testing.assert_array_equal(out, ramp(4, 8).numpy().ravel() + 1)


def test_a_plan_refers_to_no_graph() -> None:
    plan = assert_kernels(ramp(4, 8).softmax(-1), "r_4 r_4 e_4_8")
    held = [plan.temps, plan.outs, plan.results, *(k.refs for k in plan.kernels)]
    assert "UOp" not in repr(held)


def test_each_kernel_numbers_its_buffers_anew() -> None:
    a, b = ramp(4, 8), ramp(4, 8)
    plan = assert_kernels([(a * b).sum(1), (b * a).sum(1)], "r_4 r_4")
    assert refs(plan) == ["in0 in1 out0", "in1 in0 out1"]
    assert plan.kernels[0].src == plan.kernels[1].src


def test_equal_kernels_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered, lower = [], emit.lower
    monkeypatch.setattr(emit, "lower",
                        lambda body, *rest: lowered.append(body) or lower(body, *rest))
    assert_kernels([ramp(4, 8).sum(1) for _ in range(3)], "r_4 r_4 r_4")
    assert len(lowered) == 1


def test_the_plan_unused_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelize, "PLAN_LIMIT", 2)
    x = ramp(3)

    def misses(shift: float) -> int:
        with new_plans() as made:
            realize([x.uop + shift])
        return made.count

    assert [misses(s) for s in (1.0, 2.0, 1.0)] == [1, 1, 0]
    assert misses(3.0) == 1 and len(kernelize._plans) == 2
    assert [misses(1.0), misses(2.0)] == [0, 1]  # 2.0 had to go, 1.0 had been used


def test_no_roots_and_nothing_to_compute() -> None:
    x = ramp(3).uop
    with new_plans() as made:
        assert realize([]) == [] and realize([x, x]) == [x, x]
    assert made.count == 0
    plan, inputs = make_plan([])
    assert plan.kernels == [] and inputs == []


def test_reading_a_value_again_computes_nothing() -> None:
    y = ramp(3).sum()
    y.item()
    before = counters.copy()
    assert y.item() == y.item() and y.realize() is y
    spent = counters - before
    assert (spent.plan_misses, spent.plan_hits, spent.kernels) == (0, 0, 0)


def test_a_buffer_without_data_is_refused() -> None:
    with pytest.raises(ValueError, match="has no data"):
        realize([UOp(Ops.BUFFER, (), ramp(3).uop.arg._replace(slot=-5)) + 1])


# *** threads ***


def run_in_threads(work: Callable[[int], None], count: int = 4) -> None:
    """Run `work(k)` in threads that start together; raises what one of them raised."""
    start, errors = threading.Barrier(count), []

    def body(k: int) -> None:
        start.wait()
        try:
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_one_plan_in_four_threads_at_once() -> None:
    inputs = [np.random.default_rng(k).standard_normal((64, 64), np.float32) for k in range(4)]
    wanted = [Tensor(x).softmax(-1).numpy() for x in inputs]

    def work(k: int) -> None:
        for _ in range(50):
            np.testing.assert_array_equal(Tensor(inputs[k]).softmax(-1).numpy(), wanted[k])

    with new_plans() as made:
        run_in_threads(work)
    assert made.count == 0


def test_the_cache_of_plans_in_four_threads(monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    """More graphs than plans are kept, so that threads take away each other's plans."""
    monkeypatch.setattr(kernelize, "PLAN_LIMIT", 2)
    monkeypatch.setenv("DEBUG", "1")
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(k: int) -> None:
        x = ramp(3)
        for step in range(60):
            shift = (step + k) % 3
            np.testing.assert_array_equal((x + shift).numpy(), x.numpy() + shift)

    try:
        run_in_threads(work)
    finally:
        sys.setswitchinterval(switch)
    assert len(kernelize._plans) <= 2


# *** DEBUG ***

LINE = re.compile(r"uopc: (\d+) kernels, plan (hit|miss), schedule [\d.]+ ms, run [\d.]+ ms"
                  r"(?:; needs inputs [\d.]+ MB, results .*)?")
KERNEL = re.compile(r" +(\w+)( warm)? +[\d.]+ ms +[\d.]+ GFLOP/s +[\d.]+ GB/s")


def debug_lines(level: int, monkeypatch: pytest.MonkeyPatch,
                capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("DEBUG", str(level))
    assert level == DEBUG and level + 1 > DEBUG
    capsys.readouterr()
    realize([ramp(4, 8).softmax(-1).uop])
    realize([ramp(4, 8).softmax(-1).uop])
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.splitlines()


def test_debug_0_is_silent(monkeypatch: pytest.MonkeyPatch,
                           capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "0")
    realize([ramp(4, 8).softmax(-1).uop])
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


def test_debug_1_is_a_line_per_realize(monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    lines = debug_lines(1, monkeypatch, capsys)
    assert [LINE.fullmatch(line).groups() for line in lines] == [("3", "miss"), ("3", "hit")]


@pytest.mark.parametrize("level, labels", [(2, [None]), (3, [None, " warm"])])
def test_debug_2_and_3_time_each_kernel(level: int, labels: list[str | None],
                                        monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    lines = debug_lines(level, monkeypatch, capsys)
    once = [(name, label) for name in ("r_4", "r_4", "e_4_8") for label in labels]
    kernels = [m.groups() for line in lines if (m := KERNEL.fullmatch(line))]
    assert kernels == 2 * once
    assert [bool(LINE.fullmatch(line)) for line in lines].count(True) == 2
    assert len(lines) == len(kernels) + 2


def python(code: str, **env: str) -> str:
    """The standard error of a fresh Python that runs `code`."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, check=False,
                          capture_output=True, env={**os.environ, **env})
    assert done.returncode == 0 and done.stdout == "", done.stderr
    return done.stderr


def test_debug_4_prints_the_c_of_a_new_plan(tmp_path: Path) -> None:
    code = ("from uopc.tensor import Tensor; x = Tensor([[1.0, 2.0]])\n"
            "for _ in range(2): x.softmax(-1).numpy()")
    assert "void" not in python(code, DEBUG="3", UOPC_CACHE=str(tmp_path / "other"))
    cold, warm = (python(code, DEBUG="4", UOPC_CACHE=str(tmp_path / "one")) for _ in range(2))
    printed = re.findall(r"^void (\w+)\(", cold, re.MULTILINE)
    assert sorted(printed) == ["e_1_2", "r_1", "r_1"]
    assert cold.count("plan miss") == cold.count("plan hit") == 1
    assert re.findall(r"^void (\w+)\(", warm, re.MULTILINE) == printed  # objects are on disk


def test_a_miss_names_the_first_difference_and_the_users_line(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "1")
    x = ramp(5)
    realize([(x * 0.123).uop])
    assert "new plan" not in capsys.readouterr().err  # there was none to compare with
    y = x * 0.456
    line = inspect.currentframe().f_lineno - 1
    realize([y.uop])
    first, second = capsys.readouterr().err.splitlines()
    assert first == ("uopc: new plan; the nearest plan differs in CONST 0.456 (was CONST 0.123) "
                     f"at node 1, built at {__file__}:{line}")
    assert LINE.fullmatch(second)


@pytest.mark.parametrize("change, said", [
    (lambda: ramp(6).uop * 0.5, "BUFFER f32 (6,) (was BUFFER f32 (5,)) at node 0"),
    (lambda: ramp(5).uop + 0.5, "ADD of nodes [0, 1] (was MUL of nodes [0, 1]) at node 2"),
])
def test_other_differences(change: Callable[[], UOp], said: str, monkeypatch: pytest.MonkeyPatch,
                           capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "1")
    realize([ramp(5).uop * 0.5])
    realize([change()])
    assert f"the nearest plan differs in {said}" in capsys.readouterr().err


def test_other_options_make_another_plan(monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "1")
    x = ramp(5).uop + 1
    realize([x])
    realize([x], fuse_reduce=True)
    assert "made with other options" in capsys.readouterr().err
    with new_plans() as made:
        realize([x], opt=0)  # the same as none
    assert made.count == 0


# *** counters ***


def test_counters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path))
    x = ramp(4, 9) * 0.625 + 0.0078125  # constants of this test's own: nothing is compiled yet
    before = counters.copy()
    realize([x.softmax(-1).uop])
    cold = counters - before
    realize([x.softmax(-1).uop])
    both = counters - before
    assert (cold.plan_misses, cold.plan_hits, cold.kernels) == (1, 0, 3)
    assert (both.plan_misses, both.plan_hits, both.kernels) == (1, 1, 6)
    assert (cold.objects_built, both.objects_built) == (3, 3)
    assert cold.compile_time > 0 and cold.plan_time > 0 and both.run_time > 0
    assert both.plan_time == cold.plan_time and both.schedule_time > cold.schedule_time
    assert len(list(tmp_path.glob("*.so"))) == 3


# *** errors ***


def test_unknown_level() -> None:
    for call in (make_plan, realize):
        with pytest.raises(ValueError, match="no optimizer level 9; the levels are"):
            call([ramp(3).uop + 1], opt=9)
    assert not kernelize._plans


@pytest.mark.parametrize("name, value", [("OPT", "9"), ("OPT", "fast"), ("DEBUG", "yes"),
                                         ("DEBUG", "1.5")])
def test_a_bad_variable_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name}='?{value}'? in the environment"):
        (ramp(3) + 1).realize()
    monkeypatch.delenv(name)
    np.testing.assert_array_equal((ramp(3) + 1).numpy(), ramp(3).numpy() + 1)


def test_a_variable_set_to_nothing_has_its_default(monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "")
    monkeypatch.setenv("OPT", "")
    (ramp(3) + 1).realize()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("compiler, n, said", [
    ("/bin/false", 7, "does not work as a C compiler"),
    ("no-such-compiler", 9, "no C compiler found (tried no-such-compiler)"),
])
def test_a_failed_compile_poisons_nothing(compiler: str, n: int, said: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path))
    x = ramp(n) * 0.8125
    y = (x.softmax() + 0.34375).sum()  # several kernels, compiled in parallel
    monkeypatch.setenv("CC", compiler)
    for _ in range(2):
        with pytest.raises(CompileError, match=re.escape(said)):
            y.item()
    assert not kernelize._plans and list(tmp_path.iterdir()) == []
    monkeypatch.delenv("CC")
    assert y.item() == pytest.approx(1 + n * 0.34375)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("where", ["uopc.emit.render_c", "uopc.kernelize.loading"])
def test_an_interrupted_plan_is_not_kept(where: str, error: type[BaseException],
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    y = ramp(4, 8).softmax(-1)

    def interrupt(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("uopc.kernelize.load_plan", lambda key: None)  # none from disk
        patch.setattr(where, interrupt)
        with pytest.raises(error):
            y.realize()
    assert not kernelize._plans
    assert y.numpy().sum() == pytest.approx(4)


def test_an_interrupted_run_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    y, launch, calls = ramp(4, 8).softmax(-1), _Launch.run, []

    def interrupt(self: _Launch, plan: Plan) -> None:
        calls.append(len(plan.outs))
        if len(calls) == 1:
            raise KeyboardInterrupt
        launch(self, plan)

    monkeypatch.setattr(_Launch, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        y.realize()
    assert y.numpy().sum() == pytest.approx(4)  # the plan's lock is free again
    assert calls == [1, 1]


@pytest.mark.parametrize("constants", [(1, 2), (True, False), (0.25, 0.75)])
def test_a_difference_in_constants_of_any_kind(constants: tuple, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "1")
    x = ramp(5) < 2 if isinstance(constants[0], bool) else ramp(5).cast(
        dtypes.i32 if isinstance(constants[0], int) else dtypes.f32)
    for c in constants:
        realize([(x ^ c if isinstance(c, bool) else x + c).uop])
    first, second = constants
    assert f"differs in CONST {second} (was CONST {first})" in capsys.readouterr().err


def test_what_no_plan_needs_is_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans go by their number and by that of their kernels; a jitted function keeps its own."""
    def objects() -> int:
        return len({line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()
                    if line.endswith(".so") and len(Path(line.split()[-1]).name) == 43})

    def compute(k: int) -> None:
        assert (ramp(3, 4) * (k + 0.5) + 1).softmax(-1).sum().item() == pytest.approx(3)

    monkeypatch.setattr(kernelize, "_plans", OrderedDict())
    captured = jit(lambda x: (x.softmax(-1) + 12.5).sum())
    x = ramp(3, 4).realize()
    assert [captured(x).item() for _ in range(4)] == pytest.approx([153] * 4)
    gc.collect()
    before = objects()
    for limits, most in (((3, 8192), 12), ((512, 6), 8)):
        monkeypatch.setattr(kernelize, "PLAN_LIMIT", limits[0])
        monkeypatch.setattr(kernelize, "KERNEL_LIMIT", limits[1])
        for k in range(16):
            compute(k)
            assert objects() <= before + most  # at once: nothing waits for the collector
    kernelize._plans.clear()
    assert captured(x).item() == pytest.approx(153)
