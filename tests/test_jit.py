"""`@jit`: what is replayed is what the function would have computed."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers import tensor

from uopc import nn
from uopc.counters import counters
from uopc.jit import jit
from uopc.tensor import Tensor


def test_replays_run_on_new_inputs() -> None:
    calls = []

    @jit
    def f(x: Tensor, rest: dict) -> dict:
        calls.append(1)
        return {"sum": (x * rest["by"][0]).sum(0), "pair": (x + 1, None)}

    for seed in range(6):
        x, by = tensor(3, 5, seed=seed), tensor(5, seed=seed + 100)
        got = f(x, {"by": [by]})
        np.testing.assert_allclose(got["sum"].numpy(), (x.numpy() * by.numpy()).sum(0), rtol=1e-5)
        np.testing.assert_array_equal(got["pair"][0].numpy(), x.numpy() + 1)
        assert got["pair"][1] is None
    assert len(calls) == 2  # as it is, then recorded


def test_a_replay_looks_up_no_plan_and_makes_none() -> None:
    f = jit(lambda x: (x @ x).softmax(-1))
    for _ in range(2):
        f(tensor(7, 7))
    before = counters.copy()
    f(tensor(7, 7, seed=3))
    did = counters - before
    assert (did.plan_hits, did.plan_misses, did.schedule_time) == (1, 0, 0)


class Net:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 1)

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        hidden = nn.dropout(self.first(x).relu(), 0.2)
        return (self.second(hidden) - y).square().mean()


OPTIMIZERS: list[Callable] = [
    lambda p: nn.SGD(p, lr=0.05, momentum=0.9), lambda p: nn.AdamW(p, lr=0.01),
    lambda p: nn.AdamW([{"params": p[:1], "weight_decay": 0.1}, {"params": p[1:]}])]


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("level", ["1", "2"])
def test_training_is_bit_for_bit_what_it_is_without(level: str, make: Callable,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout (fresh random numbers) and a learning rate that changes in each step."""
    monkeypatch.setenv("OPT", level)
    results = []
    for wrap in (jit, lambda f: f):
        Tensor.manual_seed(3)
        net = Net()
        optimizer = make(nn.parameters(net))

        def step(x: Tensor, y: Tensor, net: Net = net, optimizer: nn.Optimizer = optimizer) -> list:
            optimizer.zero_grad()
            loss = net.loss(x, y)
            loss.backward(optimizer.params)
            norm = nn.clip_grad_norm(optimizer.params, 0.5)
            optimizer.step(loss, norm)
            return [loss, norm]

        run, losses = wrap(step), []
        for k in range(8):
            optimizer.lr = 0.05 / (k + 1)
            losses.append([t.item() for t in run(tensor(16, 4, seed=k), tensor(16, 1, seed=k))])
        weights = [p.numpy() for p in optimizer.params]
        moments = [m.numpy() for values in optimizer.state().values() for m in values]
        results.append((losses, [w.tobytes() for w in weights + moments]))
    assert results[0] == results[1]
    assert len({tuple(pair) for pair in results[0][0]}) == 8


def test_other_shapes_and_dtypes_are_recorded_anew() -> None:
    f = jit(lambda x: x * 2)
    for n in (3, 5, 3, 5, 3, 5):
        np.testing.assert_array_equal(f(tensor(n, seed=n)).numpy(), tensor(n, seed=n).numpy() * 2)
    for _ in range(3):
        assert f(Tensor([1, 2, 3])).numpy().dtype == np.int32


def test_a_number_that_changes_is_named() -> None:
    f = jit(lambda x, scale, more: x * scale + more["bias"])
    for _ in range(3):
        f(tensor(3), 2, more={"bias": 1.5})
    with pytest.raises(ValueError, match=r"argument 1 is 3, and was 2.*Tensor"):
        f(tensor(3), 3, more={"bias": 1.5})
    with pytest.raises(ValueError, match=r"argument more\['bias'\] is 2.5, and was 1.5"):
        f(tensor(3), 2, more={"bias": 2.5})
    np.testing.assert_array_equal(f(tensor(3), 2, more={"bias": 1.5}).numpy(),
                                  tensor(3).numpy() * 2 + 1.5)


def test_a_value_is_not_read_inside() -> None:
    f = jit(lambda x: x * x.sum().item())
    f(tensor(3))
    with pytest.raises(RuntimeError, match="read in a jitted function"):
        f(tensor(3))
    g = jit(lambda x: x + 1)  # nothing is left of the failed recording
    for _ in range(3):
        np.testing.assert_array_equal(g(tensor(3)).numpy(), tensor(3).numpy() + 1)
    with pytest.raises(TypeError, match="argument 0 .*NumPy"):
        g(np.ones(3))


def test_results_are_not_overwritten() -> None:
    f = jit(lambda x: x * 3)
    kept = [(k, f(tensor(50_000, seed=k))) for k in range(6)]
    for k, result in kept:
        np.testing.assert_array_equal(result.numpy(), tensor(50_000, seed=k).numpy() * 3)


def test_a_tensor_from_outside_may_be_assigned_between_calls() -> None:
    w = Tensor([1.0, 2.0])
    f = jit(lambda x: x * w)
    for k in range(8):
        if k % 3 == 2:
            w.assign([k, 1.0])
        np.testing.assert_array_equal(f(Tensor([1.0, 1.0])).numpy(), w.numpy())


def test_what_one_function_assigns_another_reads() -> None:
    w = Tensor([1.0])
    read = jit(lambda x: x * w)

    @jit
    def grow(by: Tensor) -> None:
        w.assign(w + by)
        w.realize()

    for k in range(2, 9):
        grow(Tensor([1.0]))
        for x in (1.0, 2.0, 3.0):
            assert read(Tensor([x])).item() == k * x


def test_arguments_may_be_assigned_and_may_repeat() -> None:
    @jit
    def swap(a: Tensor, b: Tensor) -> None:
        old = a.detach()
        a.assign(b + 0)
        b.assign(old + 0)
        Tensor.realize_all(a, b)

    a, b = Tensor([1.0]), Tensor([2.0])
    for k in range(5):
        swap(a, b)
        assert (a.item(), b.item()) == ((2, 1) if k % 2 == 0 else (1, 2))
    add = jit(lambda x, y: x + y)
    for k in range(4):
        assert add(Tensor([k * 1.0]), Tensor([1.0])).item() == k + 1
        same = Tensor([k * 1.0])
        assert add(same, same).item() == 2 * k


def test_a_state_that_counts() -> None:
    total = Tensor([0.0])

    @jit
    def add(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total

    for k in range(1, 7):
        assert add(Tensor([1.0])).item() == k
        assert total.item() == k


def test_methods() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = Tensor([by])

        @jit
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.by

    two, three = Scale(2), Scale(3)
    for k in range(4):
        assert two(Tensor([k * 1.0])).item() == 2 * k
        assert three(Tensor([k * 1.0])).item() == 3 * k


def test_an_argument_that_is_lazy_or_broadcast() -> None:
    f = jit(lambda x: x.sum())
    for k in range(4):
        assert f(Tensor.ones(3, 4) * k).item() == 12 * k
        assert f(Tensor([[float(k)] * 4] * 3).T).item() == 12 * k


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_snapshot_of_a_state_stays_what_it_was(every: int) -> None:
    total = Tensor(np.zeros(40_000, np.float32))

    @jit
    def add(x: Tensor) -> None:
        total.assign(total + x)
        total.realize()

    kept = []
    for k in range(1, 13):
        add(Tensor([1.0]))
        if k % every == 0:
            kept.append((k, total.detach() if k % 2 else total * 1))  # both refer to the graph
    for k, snapshot in kept:
        np.testing.assert_array_equal(snapshot.numpy(), np.full(40_000, k, np.float32))


def grow(w: Tensor, result: Callable[[Tensor], Tensor]) -> list[float]:
    """What a function that adds 1 to w gives in eight calls, while all its results are kept."""
    @jit
    def f(x: Tensor) -> Tensor:
        wanted = result(w)
        w.assign(w + x)
        w.realize()
        return wanted

    kept = [f(Tensor([1.0])) for _ in range(8)]
    return [t.numpy().flat[0].item() for t in kept]


def test_a_result_that_is_the_state_of_before() -> None:
    assert grow(Tensor([0.0]), lambda w: w.detach()) == list(range(8))
    assert grow(Tensor([0.0]), lambda w: w.detach().reshape(1, 1)) == list(range(8))


def test_one_array_under_two_shapes() -> None:
    w, a, b = (Tensor([0.0, 0.0]) for _ in range(3))

    @jit
    def f(x: Tensor) -> Tensor:
        e = w + x
        w.assign(e)
        a.assign(e * 2)
        b.assign((e * 2).reshape(2, 1).reshape(2))
        y = e.reshape(2, 1)
        Tensor.realize_all(w, a, b, y)
        return y

    kept = [(f(Tensor([1.0])), a.detach(), b.detach()) for _ in range(8)]
    assert [[t.numpy().flat[0] for t in row] for row in kept] == [
        [k, 2 * k, 2 * k] for k in range(1, 9)]


def test_a_snapshot_from_before_is_not_the_state() -> None:
    w, first = Tensor([0.0]), {}

    @jit
    def f(x: Tensor) -> Tensor:
        w.assign(w + x)
        out = w - first.get("w", 0.0)
        Tensor.realize_all(w, out)
        return out

    f(Tensor([1.0]))
    first["w"] = w.detach()
    assert [f(Tensor([1.0])).item() for _ in range(5)] == [1, 2, 3, 4, 5]


def test_functions_in_functions() -> None:
    inner = jit(lambda x: x * 2)
    for _ in range(3):
        inner(Tensor([1.0]))
    outer = jit(lambda x: inner(x) + 1)
    assert [outer(Tensor([float(k)])).item() for k in range(5)] == [1, 3, 5, 7, 9]


def made(how: str) -> Tensor:
    base = Tensor([1.0, 2.0])
    return {"data": base, "lazy": base * 1, "computed": (base * 1).realize(), "constant":
            Tensor.zeros(2), "view": base.reshape(2, 1).reshape(2), "detached": base.detach()}[how]


@pytest.mark.parametrize("how", ["data", "lazy", "computed", "constant", "view", "detached"])
@pytest.mark.parametrize("change", ["assign", "item"])
def test_a_tensor_from_outside_is_seen_to_change(how: str, change: str) -> None:
    w = made(how)
    f = jit(lambda x: x + w)
    for k in range(10):
        if k in (3, 4, 7):
            if change == "assign":
                w.assign(Tensor([k * 1.0, 5.0]))
            else:
                w[0] = k * 1.0
        np.testing.assert_array_equal(f(Tensor([1.0, 1.0])).numpy(), w.numpy() + 1)


def test_items_assigned_inside() -> None:
    w = Tensor([0.0, 0.0])

    @jit
    def f(x: Tensor) -> Tensor:
        w[0:1] = w[0:1] + x
        w.realize()
        return w * 1

    assert [f(Tensor([1.0])).numpy()[0] for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(w.numpy(), [6, 0])


def test_what_a_replay_could_not_do_is_an_error() -> None:
    w = Tensor([1.0], requires_grad=True)
    optimizer = nn.SGD([w], lr=0.1)

    def train(p: Tensor, x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (p * x).sum()
        loss.backward(optimizer.params)
        optimizer.step(loss)
        return loss

    step = jit(train)
    with pytest.raises(ValueError, match="is an argument, and the function also assigns"):
        for _ in range(3):
            step(w, Tensor([1.0]))

    def left(x: Tensor) -> Tensor:
        loss = (w * x).sum()
        loss.backward([w])
        return loss

    gradient = jit(left)
    with pytest.raises(RuntimeError, match="leaves a gradient"):
        for _ in range(3):
            gradient(Tensor([1.0]))
    number = jit(lambda x: (x + 1, 3))
    with pytest.raises(TypeError, match=r"result\[1\] is 3"):
        for _ in range(3):
            number(Tensor([1.0]))


def test_indices_are_checked_in_every_call() -> None:
    table = Tensor(np.arange(8, dtype=np.float32).reshape(4, 2))
    f = jit(lambda index: table[index] * 1)
    for k in range(4):
        np.testing.assert_array_equal(f(Tensor([k, 3])).numpy(), table.numpy()[[k, 3]])
    with pytest.raises(IndexError, match="4 is out of range"):
        f(Tensor([4, 0]))


def test_containers_tell_calls_apart() -> None:
    f = jit(lambda x, *rest: x + len(rest) + sum(len(r) for r in rest))
    for _ in range(3):
        assert f(Tensor([0.0])).item() == 0
        assert f(Tensor([0.0]), []).item() == 1
        assert f(Tensor([0.0]), [None]).item() == 2
    zero = jit(lambda x, n: x * n)
    for _ in range(3):
        zero(Tensor([1.0]), 0.0)
    with pytest.raises(ValueError, match=r"-0.0"):
        zero(Tensor([1.0]), -0.0)


def test_a_training_step_is_recorded_once() -> None:
    net = Net()
    optimizer, calls = nn.AdamW(nn.parameters(net)), []

    @jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        calls.append(1)
        optimizer.zero_grad()
        loss = net.loss(x, y)
        loss.backward(optimizer.params)
        optimizer.step(loss)
        return loss

    for k in range(6):
        step(tensor(16, 4, seed=k), tensor(16, 1, seed=k)).item()
    assert len(calls) == 2
