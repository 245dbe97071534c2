"""A call that raises changes nothing: count, moments, parameters, gradients, random state."""
from __future__ import annotations

import numpy as np
import pytest

from uopc import nn, random
from uopc.atomic import atomic
from uopc.jit import jit
from uopc.tensor import Tensor


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("before", [0, 1, 2, 3, 5])  # calls: as it is, recorded, replayed
@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_a_refused_step_changes_nothing(level: str, before: int, jitted: bool,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPT", level)
    Tensor.manual_seed(0)
    table = nn.Embedding(5, 3)
    optimizer = nn.AdamW([table.weight])

    def step(index: Tensor) -> Tensor:
        optimizer.zero_grad()
        noise = Tensor.rand(2, 3) if jitted else Tensor.ones(2, 3)
        loss = (table(index) * noise).sum()
        loss.backward(optimizer.params)
        optimizer.step(loss)
        return loss

    def state() -> list:
        tensors = [table.weight, *optimizer.m, *optimizer.v]
        grad = table.weight.grad
        return [optimizer.t, random.get_state(), grad is None or grad.numpy().tolist(),
                *[t.numpy().tolist() for t in tensors]]

    run = jit(step) if jitted else step
    for k in range(before):
        run(Tensor([k, 1]))
    if jitted:
        table.weight.grad = Tensor.ones(5, 3)
    earlier = state()
    with pytest.raises(IndexError, match="9 is out of range"):
        run(Tensor([0, 9]))
    if jitted:
        assert state() == earlier
    else:  # zero_grad was a call of its own
        assert [state()[0], *state()[3:]] == [earlier[0], *earlier[3:]]
    run(Tensor([0, 1]))
    assert optimizer.t == [before + 1]


def test_a_step_whose_computing_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = nn.AdamW([w])
    w.grad = Tensor([1.0, 1.0])
    for wrong in ("fast", -5):
        optimizer.lr = wrong
        with pytest.raises(ValueError, match="lr must be a number and not negative"):
            optimizer.step()
    optimizer.lr = 0.1
    with pytest.raises(ValueError, match="broken"), monkeypatch.context() as patch:
        def broken(*_: object) -> None:
            raise ValueError("broken")
        patch.setattr("uopc.tensor.realize", broken)
        optimizer.step()
    assert optimizer.t == [0] and w.numpy().tolist() == [1, 2]
    assert not np.any(optimizer.m[0].numpy()) and w.grad.tolist() == [1, 1]
    optimizer.step()
    assert optimizer.t == [1] and w.numpy()[0] < 1


def test_what_a_native_call_has_done_is_done_for_the_calls_around_it() -> None:
    """Its arrays cannot be taken back, so count and parameters stay those of one step."""
    w = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = nn.AdamW([w], lr=0.1)

    @jit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (w * x).square().sum()
        loss.backward([w])
        optimizer.step(loss)
        return loss

    @atomic
    def step_and_fail() -> None:
        step(Tensor([1.0, 1.0]))
        raise ValueError("after the step")

    for _ in range(5):
        step(Tensor([1.0, 1.0]))
    with pytest.raises(ValueError, match="after the step"):
        step_and_fail()
    count, values = optimizer.t, w.numpy()
    again = Tensor([1.0, 2.0], requires_grad=True)
    other = nn.AdamW([again], lr=0.1)
    for _ in range(count[0]):
        again.grad = None
        again.square().sum().backward([again])
        other.step()
    np.testing.assert_allclose(values, again.numpy(), rtol=1e-5)
