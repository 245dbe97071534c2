"""Kernels that share their outermost loop (level 2): which may, and that they compute the same.

The interpreter of the graph is the oracle: bit for bit it is what level 0 gives.
"""
from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from helpers import evaluate
from kernel_checks import forget_plans
from layers import LAYERS, Program, eager, some

from uopc import emit, kernelize, nn
from uopc.composite import buffer_data
from uopc.dtype import dtypes
from uopc.emit import Emitter, Point
from uopc.interpret import interpret_graph
from uopc.jit import jit
from uopc.kernelize import Plan, make_plan
from uopc.opt.access import Access, Digit
from uopc.opt.share import Group, Shared, share_loops
from uopc.opt.target import Target, target
from uopc.passes import lower_loops
from uopc.runtime import scratch_of
from uopc.tensor import Tensor
from uopc.uop import Ops, ParamArg, UOp, prod

Array = np.ndarray
lowered = functools.cache(lower_loops)


@pytest.fixture
def eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops are shared that may be, past `contiguous` too."""
    machine = eager(target())
    monkeypatch.setattr(kernelize, "target", lambda: machine)
    monkeypatch.setattr(kernelize, "_mark_asked", lambda roots: roots)


# *** digits ***


def index_of(terms: Sequence[UOp], *conditions: UOp) -> UOp:
    buffer = UOp(Ops.BUFFER, (), ParamArg(0, dtypes.f32, (10_000,), "kernel"))
    gates = [conditions[0]] if conditions else []
    for c in conditions[1:]:
        gates[0] = gates[0] & c
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    return UOp(Ops.INDEX, (buffer, total, *gates))


def loop(number: int, size: int) -> tuple[UOp, UOp]:
    r = UOp(Ops.RANGE, (), (number, size))
    return r, r.cast(dtypes.i64)


def test_the_digits_of_an_index() -> None:
    (a, i), (b, j) = loop(0, 32), loop(1, 8)
    plain = Access(index_of([i * 8, j]))
    assert plain.digit(a, 8, 32) == Digit(a, 1, 32)
    assert plain.digit(a, 32, 8) == Digit(a, 4, 8)
    assert plain.digit(b, 1, 8) == Digit(b, 1, 8)
    assert plain.digit(b, 2, 4) == Digit(b, 2, 4)
    assert plain.digit(a, 4, 32) is None and plain.digit(b, 8, 32) is None
    assert plain.digit(a, 8, 5) is None  # 32 steps are no multiple of 5
    whole = UOp.const(256 * 3, dtypes.i64)
    assert Access(index_of([i * 8, j, whole])).digit(a, 8, 32) == Digit(a, 1, 32)
    assert Access(index_of([i * 8 + 3, j % 4])).digit(a, 8, 32) == Digit(a, 1, 32)
    for others in ([i * 8, j, UOp.const(1, dtypes.i64)], [i * 8, j * 2], [i * 8, i // 4],
                   [i * 8 + 8, j], [i * -8 + 248, j], [i * 8 + 1, j * -1]):
        assert Access(index_of(others)).digit(a, 8, 32) is None


def test_a_condition_limits_an_index() -> None:
    (a, i), (_, j), (_, k) = loop(0, 32), loop(1, 3), loop(2, 4)
    terms = [i * 10, j * 4, k]
    assert Access(index_of(terms)).digit(a, 10, 32) is None
    assert Access(index_of(terms, j * 4 + k < 10)).digit(a, 10, 32) == Digit(a, 1, 32)
    assert Access(index_of(terms, j * 4 + k < 11)).digit(a, 10, 32) is None
    assert Access(index_of(terms, (j * 4 + k < 10) | (i < 3))).digit(a, 10, 32) is None
    below = [i * 8, j * -1, UOp.const(1, dtypes.i64)]  # the row before, where j is 2
    assert Access(index_of(below, j * -1 < 0)).digit(a, 8, 32) is None


def random_index(rng: np.random.Generator) -> tuple[UOp, list[UOp]]:
    """Loops with strides of both signs, under conditions on sums of some of them."""
    pairs = [loop(k, int(rng.choice((2, 3, 4, 6, 8, 12)))) for k in range(int(rng.integers(1, 4)))]
    factors = [int(rng.choice((1, 1, 2, 3, 4, 6, 8, 12, 24, -1, -2))) for _ in pairs]
    terms = [i * f for (_, i), f in zip(pairs, factors, strict=True)]
    terms += [UOp.const(int(rng.integers(-8, 25)), dtypes.i64)] if rng.random() < 0.6 else []
    terms += [(pairs[-1][1] * -1 + 3) % 4] if rng.random() < 0.2 else []
    conditions = []
    for _ in range(int(rng.integers(3))):
        some_terms = [i * int(rng.choice((f, 1, 2 * f, -1))) for (_, i), f in
                      zip(pairs, factors, strict=True) if rng.random() < 0.6]
        if some_terms:
            conditions.append(index_of(some_terms).src[1] < int(rng.integers(-6, 20)))
    return index_of(terms, *conditions), [r for r, _ in pairs]


def test_digits_of_random_indices() -> None:
    """Wherever the index is used, the loop's digit is the index's."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(250):
        index, ranges = random_index(rng)
        given = loop_counters(ranges)
        flat, *gate = np.broadcast_arrays(*[evaluate(u, given) for u in index.src[1:]])
        used = gate[0] if gate else np.full(flat.shape, True)
        for r in ranges:
            for stride in (1, 2, 4, 6, 8, 12, 24):
                for size in (2, 3, 4, 6, 8):
                    digit = Access(index).digit(r, stride, size)
                    if digit is not None:
                        found += 1
                        step = np.broadcast_to(given[r] // digit.inner % size, flat.shape)
                        assert (flat // stride % size == step)[used].all(), (index, digit, stride)
    assert found > 100


# *** which kernels share a loop ***


def shared_groups(tensors: Sequence[Tensor]) -> tuple[list[Point], list[Group]]:
    """The points of a plan at level 2, in order, and their groups. Nothing is compiled."""
    points: list[Point] = []
    groups: list[Group] = []
    member = Emitter.member

    def noted(emitter: Emitter, p: Point) -> object:
        points.append(p)
        return member(emitter, p)

    def grouped(members: Sequence, machine: Target) -> list[Group]:
        groups.extend(share_loops(members, machine))
        return []  # no kernel is made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Emitter, "member", noted)
        patch.setattr(emit, "lower_loops", lowered)
        patch.setattr(kernelize, "share_loops", grouped)
        make_plan([t.uop for t in tensors], opt=2)
    return points, groups


def values_of(points: Sequence[Point]) -> dict[UOp, Array]:
    """What each buffer of the plan holds, flat."""
    values: dict[UOp, Array] = {}
    for p in points:
        for b in p.buffers[:-1]:
            values.setdefault(b, buffer_data(b).ravel() if b not in values else values[b])
        data = {u: values[p.buffers[u.arg.slot]] for u in p.body.toposort() if u.op is Ops.BUFFER}
        values[p.buffers[-1]] = interpret_graph([p.body], data)[0].ravel()
    return values


def loop_counters(ranges: Sequence[UOp]) -> dict[UOp, Array]:
    counters = np.indices([r.arg[1] for r in ranges], np.int32, sparse=True)
    return dict(zip(ranges, counters, strict=True))


def accesses(p: Point, shared: Sequence[Shared],
             values: Mapping[UOp, Array]) -> Iterator[tuple[UOp, Array, Array]]:
    """(buffer, elements, the step that gets to each) for all that a member reads, and then for what
    it writes."""
    sink = lowered(UOp(Ops.SINK, (UOp(Ops.STORE, (p.out, p.body)),)))
    order = sink.toposort()
    given = loop_counters([u for u in order if u.op is Ops.RANGE])
    step = np.int64(0)
    for s in shared:
        d = s.digit
        step = step * (d.size // s.block) + given[d.loop] // d.inner % d.size // s.block
    for u in order:
        if u.op is Ops.LOAD or (u.op is Ops.STORE and u.src[0].op is Ops.INDEX):
            buffer = p.buffers[u.src[0].src[0].arg.slot]
            flat, *gate = (evaluate(s, given) for s in u.src[0].src[1:])
            parts = np.broadcast_arrays(flat, step, *(gate or [np.True_]))
            yield buffer, *(a[parts[2]] for a in parts[:2])
            if u.op is Ops.LOAD:
                flat, used = np.broadcast_arrays(flat, *(gate or [np.True_]))
                given[u] = np.zeros(flat.shape, u.dtype.np)
                given[u][used] = values[buffer][flat[used]]


def check_group(group: Group, point_of: Mapping[UOp, Point], values: Mapping[UOp, Array]) -> None:
    """A member reads of what the others give only what the same step has given."""
    written: dict[UOp, Array] = {}  # the step that writes each element
    assert len({prod(s.digit.size // s.block for s in chosen) for chosen in group.chosen}) == 1
    for m, chosen in zip(group.members, group.chosen, strict=True):
        for buffer, elements, steps in accesses(point_of[m.given], chosen, values):
            if buffer is m.given:
                written[buffer] = np.full(m.loops.size, -1)
                written[buffer][elements] = steps
                assert (written[buffer] >= 0).all() and group.steps == steps.max() + 1
            elif buffer in written:
                np.testing.assert_array_equal(written[buffer][elements], steps)


def check_groups(tensors: Sequence[Tensor]) -> tuple[int, int]:
    """Check what is shared; returns how many kernels there are, and in how many groups."""
    points, groups = shared_groups(tensors)
    point_of, values = {p.buffers[-1]: p for p in points}, values_of(points)
    order = [m.given for g in groups for m in g.members]
    assert len(order) == len(points) and set(order) == set(point_of)
    for place, given in enumerate(order):
        assert not set(point_of[given].buffers[:-1]) & set(order[place:])
    for group in groups:
        if len(group.members) > 1:
            check_group(group, point_of, values)
    return len(points), len(groups)


def test_random_programs_share_only_what_they_may(eagerly: None) -> None:
    kernels, groups = np.sum([check_groups(Program(seed).roots) for seed in range(180, 300)], 0)
    assert groups < kernels / 2


@pytest.mark.parametrize("name, sizes", [
    ("softmaxes", (7, 13)), ("norm_layer", (3, 5, 8)), ("classifier", (9, 5)), ("mlp", (6, 5, 7)),
    ("attention", (2, 5, 3, 4)), ("embedding", (6, 5)), ("neighbours", (6, 6)),
    ("neighbours", (4, 8)), ("neighbours", (8, 3))], ids=str)
def test_layers_share_only_what_they_may(name: str, sizes: tuple[int, ...], eagerly: None) -> None:
    kernels, groups = check_groups(LAYERS[name](*sizes))
    assert groups < kernels


def one_group(*tensors: Tensor) -> bool:
    kernels, groups = check_groups(tensors)
    return kernels > 1 and groups == 1


def test_what_is_read_in_another_order_is_not_shared(eagerly: None) -> None:
    x = some(8, 8)
    high = x.max(1, keepdim=True)
    assert one_group(x * high, high) and one_group((x * high).sum(1))
    assert one_group((x * high.T).sum(0)) and one_group((x * high.T).T.sum(1))
    rows = Tensor(np.arange(8)[::-1].copy())
    for other in (high.flip(0), high.T, high[rows], high[1:].pad(((0, 1), (0, 0)))):
        assert not one_group((x * other).sum(1)), other
    assert not one_group((x[1:] * high[:-1]).sum(1))


def test_a_value_read_at_two_places(eagerly: None) -> None:
    """Through what it was read at another place for, too."""
    x = some(8, 16)
    high = x.max(1, keepdim=True)
    between = (x * high.flip(0)).sum(1, keepdim=True)
    assert not one_group((x * (between * high)).sum(1))
    assert not one_group((x * high * high.flip(0)).sum(1))
    doubled = (x * 2).contiguous()
    assert not one_group((doubled.flip((0, 1)) * 3).contiguous() + doubled)
    assert not one_group(doubled[:, 1:] - doubled[:, :-1].flip(0))


def test_loops_end_where_the_user_wants_memory() -> None:
    x = some(128, 64)
    x = x / x.sum(1, keepdim=True)
    for y, kernels in ((x, 1), (x.contiguous(), 2)):
        plan, _ = make_plan([(y - y.max(1, keepdim=True)).square().sum(1).uop], opt=2)
        assert len(plan.kernels) == kernels
        assert plan.temps == [(dtypes.f32, 128 * 64)] * (kernels - 1)


# *** memory ***


def scratch_arrays(plan: Plan) -> list[tuple[str, int]]:
    """(type, first byte) of what lies in the memory that a thread has of its own."""
    return [(kind, int(start)) for k in plan.kernels for kind, start in
            re.findall(r"^  (\w+)\* local\d+ = \(\w+\*\)\(scratch\+(\d+)\);", k.src, re.MULTILINE)]


def scratch_bytes(plan: Plan) -> int:
    """Of that memory, in the kernel that has the most."""
    return max((scratch_of(k.src, k.name) for k in plan.kernels), default=0)


def test_what_only_the_group_reads_is_not_in_memory(eagerly: None) -> None:
    x = some(32, 16)
    high = x.max(1, keepdim=True)
    result = (x - high) / (x - high).sum(1, keepdim=True)
    plan, _ = make_plan([result.uop], opt=2)
    assert [k.name for k in plan.kernels] == ["fused3_32_16"] and plan.temps == []
    assert scratch_arrays(plan) == [("float", 0), ("float", 64)] and scratch_bytes(plan) == 128
    plan, _ = make_plan([result.uop, high.uop], opt=2)
    assert len(plan.outs) == 2 and plan.temps == [] and len(scratch_arrays(plan)) == 1
    plan, _ = make_plan([result.uop, (x * high.flip(0)).sum(1).uop], opt=2)
    assert plan.temps == [(dtypes.f32, 32)] and len(scratch_arrays(plan)) == 1


def test_what_is_not_alive_together_shares_memory(eagerly: None) -> None:
    plan, _ = make_plan([some(512, 512).softmax(-1).uop], opt=2)
    (kernel,) = plan.kernels
    start = {name: int(at) for name, at in
             re.findall(r"\* (local\d+) = \(\w+\*\)\(scratch\+(\d+)\);", kernel.src)}
    assert len(set(start.values())) < len(start), "some start where others did"
    for call in re.findall(r"^    \w+\((.*), step, step\+1\);", kernel.src, re.MULTILINE):
        used = [start[name] for name in call.split(", ") if name in start]
        assert len(set(used)) == len(used), "but none that one member takes"


def test_a_thread_has_little_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums along the first axis share a loop of small strides."""
    monkeypatch.setattr(kernelize, "Program", lambda src, name: None)
    monkeypatch.setattr(kernelize, "loading", lambda: nullcontext(lambda src: None))
    for shape in ((1000, 4096), (300, 4096), (2000, 512), (70, 64, 64), (512, 8192)):
        x = Tensor(np.zeros(shape, np.float32)).exp()
        plan, _ = make_plan([(x * x.sum(0)).max(0).uop], opt=2)
        assert scratch_bytes(plan) <= target().max_local, shape
    for rows, columns in ((640, 4096), (1024, 4096), (512, 8192), (512, 4096)):
        x, v = (Tensor(np.zeros(s, np.float32)) for s in ((rows, columns), (rows, 48)))
        plan, _ = make_plan([((x.tanh() * x).transpose() @ v).uop], opt=2)
        assert scratch_bytes(plan) <= target().max_local, (rows, columns)


# *** values ***


def assert_close(got: Array, want: Array) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind == "f":
        rtol = 1e-4 if want.dtype == np.float32 else 1e-10
        scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol, rtol * scale)
    else:
        np.testing.assert_array_equal(got, want)


def check_values(tensors: Sequence[Tensor]) -> list[str]:
    """Compare level 2 with the interpreter; returns the names of the kernels."""
    roots = [t.uop for t in tensors]
    plan, inputs = make_plan(roots, opt=2)
    arrays = [buffer_data(u) for u in inputs]
    first, second = plan.run(arrays), plan.run(arrays)  # the second finds what the first left
    for (ref, shape), want in zip(plan.results, interpret_graph(roots), strict=True):
        for outs in (first, second):
            got = outs[ref[1]] if ref[0] == "out" else arrays[ref[1]]
            assert_close(got.reshape(shape), want)
    return [k.name for k in plan.kernels]


def shares(names: Sequence[str]) -> bool:
    return any(name.startswith("fused") for name in names)


@pytest.mark.parametrize("name, sizes", [
    ("softmaxes", (67, 129)), ("norm_layer", (5, 13, 96)), ("classifier", (40, 65)),
    ("mlp", (96, 32, 64)), ("attention", (3, 40, 2, 8)), ("embedding", (50, 24))], ids=str)
def test_layers_of_a_size_that_pays(name: str, sizes: tuple[int, ...]) -> None:
    assert shares(check_values(LAYERS[name](*sizes)))


def test_steps_of_adamw(eagerly: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, and recorded and replayed; the losses and the parameters after them."""
    forget_plans(monkeypatch)
    monkeypatch.setattr(kernelize, "load_plan", lambda key: None)  # none of another machine
    monkeypatch.setattr(kernelize, "store_plan", lambda key, plan: None)
    x, labels = [some(9, 6, seed=k) for k in range(4)], Tensor(np.arange(9) % 5)

    def trained(level: str, wrap: Callable[[Callable], Callable]) -> list[Array]:
        monkeypatch.setenv("OPT", level)
        Tensor.manual_seed(0)
        norm, linear = nn.LayerNorm(6), nn.Linear(6, 5)
        optimizer = nn.AdamW(nn.parameters([norm, linear]), lr=0.05)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = linear(norm(x)).cross_entropy(labels)
            loss.backward(optimizer.params)
            nn.clip_grad_norm(optimizer.params, 0.3)
            optimizer.step(loss)
            return loss

        run = wrap(step)
        return [t.numpy() for t in [*[run(part) for part in x], *optimizer.params]]

    plain = [trained(level, lambda step: step) for level in ("0", "2")]
    for want, got, again in zip(*plain, trained("2", jit), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)
        np.testing.assert_array_equal(again, got)
    assert any(shares([k.name for k in plan.kernels]) for plan in kernelize._plans.values())


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
def test_another_compiler(eagerly: None, empty_cache: Path,
                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "clang")
    assert shares(check_values(LAYERS["norm_layer"](2, 5, 8)))


def test_neighbours(eagerly: None) -> None:
    assert shares(check_values(LAYERS["neighbours"](9, 9)))


def test_random_programs(eagerly: None) -> None:
    names = [check_values(Program(seed).roots) for seed in range(300, 304)]
    assert sum(map(shares, names)) > 2
