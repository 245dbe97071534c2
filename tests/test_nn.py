"""Layers and optimizers against NumPy; cases A78 to A80."""
from __future__ import annotations

import numpy as np
import pytest

from models.mlp import MLP
from train import mlp as train_mlp
from uopc import nn
from uopc.counters import counters
from uopc.dtype import dtypes
from uopc.tensor import Tensor


def test_linear_layernorm_embedding() -> None:
    Tensor.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    linear, norm, table = nn.Linear(7, 3), nn.LayerNorm(7), nn.Embedding(11, 4)
    np.testing.assert_allclose(linear(Tensor(x)).numpy(),
                               x @ linear.weight.numpy().T + linear.bias.numpy(), rtol=1e-5)
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(norm(Tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)
    index = np.array([[0, 10], [3, 3]], np.int32)
    assert (table(Tensor(index)).numpy() == table.weight.numpy()[index]).all()
    for bad in (11, -1):
        with pytest.raises(IndexError, match=f"{bad}.*11"):
            table(Tensor([bad]))


def test_layers_of_one_shape_are_distinct_parameters() -> None:
    """Equal initial values must not make two parameters one."""
    first, second = nn.LayerNorm(4), nn.LayerNorm(4)
    x = Tensor(np.arange(8, dtype=np.float32).reshape(2, 4) ** 2)
    (first(x) * 3 + second(x)).square().sum().backward()
    assert not np.allclose(first.weight.grad.numpy(), second.weight.grad.numpy())
    for layer in (first, second):
        layer.weight.assign(Tensor.zeros(4))
        layer.bias.assign(second.bias)
    Tensor.realize_all(first.weight, second.weight, first.bias, second.bias)
    assert len({p.uop for p in nn.parameters([first, second])}) == 4


def test_named_parameters_and_loading() -> None:
    model = MLP([3, 4, 2])
    names = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert list(nn.named_parameters(model)) == names
    assert len(nn.parameters([model, model])) == 4
    arrays = {n: np.full(p.shape, k, np.float32)
              for k, (n, p) in enumerate(nn.named_parameters(model).items())}
    nn.load_parameters(model, arrays)
    assert (model.layers[1].weight.numpy() == 2).all()
    wrong = {**arrays, "layers.0.bias": np.zeros(5, np.float32), "extra": np.zeros(1)}
    del wrong["layers.1.bias"]
    with pytest.raises(ValueError, match=r"layers.1.bias is missing.*extra.*\(5,\).*\(4,\)"):
        nn.load_parameters(model, wrong)


def test_dropout() -> None:
    Tensor.manual_seed(1)
    x = Tensor(np.ones((200, 100), np.float32))
    y = nn.dropout(x, 0.25).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert nn.dropout(x, 0.0) is x
    with pytest.raises(ValueError, match="1.0"):
        nn.dropout(x, 1.0)


def quadratic(w: Tensor, target: np.ndarray) -> Tensor:
    return (w - Tensor(target)).square().sum()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd(momentum: float) -> None:
    target = np.array([1.0, -2.0, 3.0], np.float32)
    w = Tensor([0.0, 0.0, 0.0], requires_grad=True)
    optimizer = nn.SGD([w], lr=0.1, momentum=momentum, weight_decay=0.01)
    x, v = np.zeros(3), np.zeros(3)
    for _ in range(5):
        optimizer.zero_grad()
        quadratic(w, target).backward(optimizer.params)
        optimizer.step()
        v = momentum * v + 2 * (x - target) + 0.01 * x
        x = x - 0.1 * v
    np.testing.assert_allclose(w.numpy(), x, rtol=1e-5)


def test_adamw_with_groups_and_extra() -> None:
    target = np.array([1.0, -2.0, 3.0])
    decayed, plain = (Tensor(np.ones(3), requires_grad=True) for _ in range(2))
    assert decayed.dtype is dtypes.f64
    optimizer = nn.AdamW([{"params": [decayed], "weight_decay": 0.5}, plain], lr=0.1,
                         betas=(0.8, 0.9), weight_decay=0.0)
    m, v, x = np.zeros((2, 3)), np.zeros((2, 3)), np.ones((2, 3))
    for t in range(1, 6):
        optimizer.zero_grad()
        loss = quadratic(decayed, target) + quadratic(plain, target)
        loss.backward(optimizer.params)
        before = counters.copy()
        optimizer.step(loss)
        assert (counters - before).plan_hits + (counters - before).plan_misses == 1
        np.testing.assert_allclose(loss.item(), ((x - target) ** 2).sum(), rtol=1e-5)
        g = 2 * (x - target)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        x = x * np.array([[1 - 0.1 * 0.5], [1.0]])
        x = x - 0.1 * (m / (1 - 0.8 ** t)) / (np.sqrt(v / (1 - 0.9 ** t)) + 1e-8)
    np.testing.assert_allclose(decayed.numpy(), x[0], rtol=1e-5)
    np.testing.assert_allclose(plain.numpy(), x[1], rtol=1e-5)


def test_a_parameter_without_gradient_stays() -> None:
    used, unused = Tensor([1.0], requires_grad=True), Tensor([5.0], requires_grad=True)
    optimizer = nn.AdamW([used, unused])
    quadratic(used, np.array([0.0], np.float32)).backward(optimizer.params)
    optimizer.step()
    assert unused.grad is None and unused.item() == 5.0 and used.item() != 1.0


def test_a78_adamw_defaults() -> None:
    optimizer = nn.AdamW([Tensor([1.0], requires_grad=True)])
    assert (optimizer.lr, optimizer.betas, optimizer.eps, optimizer.weight_decay) \
        == (1e-3, (0.9, 0.999), 1e-8, 0.01)
    for bad in ({"lr": -1.0}, {"betas": (1.0, 0.9)}, {"weight_decay": -0.1}):
        with pytest.raises(ValueError):
            nn.AdamW([Tensor([1.0], requires_grad=True)], **bad)


def with_gradient(values: list[float]) -> Tensor:
    w = Tensor([1.0] * len(values), requires_grad=True)
    w.grad = Tensor(values)
    return w


@pytest.mark.parametrize(("limit", "wanted"), [(1.0, [0.6, 0.8]), (10.0, [3.0, 4.0])])
def test_a80_clipping(limit: float, wanted: list[float]) -> None:
    w = with_gradient([3.0, 4.0])
    norm = nn.clip_grad_norm([w], limit)
    np.testing.assert_allclose(w.grad.numpy(), wanted, rtol=1e-6)
    assert norm.item() == 5.0


@pytest.mark.parametrize("limit", [-1.0, 0.0, float("nan")])
def test_a80_limits_that_make_no_sense_are_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        nn.clip_grad_norm([with_gradient([3.0, 4.0])], limit)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a79_an_infinite_gradient_is_reported_and_dropped(bad: float) -> None:
    w = with_gradient([bad, 1.0])
    norm = nn.clip_grad_norm([w], 1.0)
    nn.AdamW([w], weight_decay=0.0).step(norm)
    assert not np.isfinite(norm.item())
    assert w.numpy().tolist() == [1.0, 1.0]


def test_mlp_learns_digits(tmp_path: pytest.TempPathFactory,
                           capsys: pytest.CaptureFixture[str]) -> None:
    train_mlp.main([f"--out_dir={tmp_path}", "--max_iters=400"])
    said = capsys.readouterr().out
    assert float(said.split("held-out accuracy ")[1].split("%")[0]) >= 97.0


def test_a_group_has_its_own_options() -> None:
    """Each parameter moves as one of an optimizer of its own with these options does."""
    cases = [(nn.SGD, {"lr": 0.1}, [{"lr": 0.5}, {"momentum": 0.9, "weight_decay": 0.1}, {}]),
             (nn.AdamW, {"lr": 0.1}, [{"lr": 0.5, "eps": 0.1}, {"betas": (0.5, 0.6)},
                                      {"weight_decay": 0.3, "lr": 0.0}, {}])]
    for kind, common, groups in cases:
        together = [Tensor([1.0, 2.0], requires_grad=True) for _ in groups]
        alone = [Tensor([1.0, 2.0], requires_grad=True) for _ in groups]
        optimizers = [kind([{"params": iter([p]), **g} for p, g in
                            zip(together, groups, strict=True)], **common)]
        optimizers += [kind([p], **{**common, **g}) for p, g in zip(alone, groups, strict=True)]
        for step in range(4):
            if step == 2:
                optimizers[0].param_groups[0]["lr"] = optimizers[1].lr = 0.25
            for p in together + alone:
                p.grad = p * 3 + 1
            for optimizer in optimizers:
                optimizer.step()
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("kind", [nn.AdamW, lambda p: nn.SGD(p, lr=0.1)], ids=["AdamW", "SGD"])
def test_what_is_no_list_of_parameters_is_refused(kind: object) -> None:
    w = Tensor([1.0], requires_grad=True)
    used = iter([w])
    next(used)
    for bad, error, words in (
            (w, TypeError, "a list of parameters, got a Tensor"),
            ({"a": w}, TypeError, "a list of parameters, got a dict"),
            ([{"params": w}], TypeError, "'params' takes a list of parameters, got a Tensor"),
            ([], ValueError, "needs a parameter"), (used, ValueError, "used up"),
            ([{"params": []}], ValueError, "needs a parameter"), (None, TypeError, "NoneType"),
            ([{"params": [w], "lrr": 1}], ValueError, "'lrr' is no option.*'lr'.*'weight_decay'"),
            ([{"lr": 1}], ValueError, "no 'params'"), ([w, w], ValueError, "twice"),
            (["w"], TypeError, "number 0 is 'w'"), ([Tensor([1])], TypeError, "floats"),
            ([{"params": [w], "lr": -1}], ValueError, "lr must be a number and not negative")):
        with pytest.raises(error, match=words):
            kind(bad)
    assert len(kind(p for p in [w]).params) == 1


def test_sizes_and_widths_that_do_not_fit_are_refused() -> None:
    for make in (lambda n: nn.Linear(n, 3), lambda n: nn.Linear(3, n), lambda n: nn.Embedding(n, 2),
                 lambda n: nn.Embedding(2, n), nn.LayerNorm):
        with pytest.raises(ValueError, match="must not be negative, got -1"):
            make(-1)
        with pytest.raises(TypeError, match="whole numbers, got 2.5"):
            make(2.5)
    for layer in (nn.Linear(3, 2), nn.LayerNorm(3)):
        for shape in ((1,), (2, 1), (2, 4), ()):
            with pytest.raises(ValueError, match="of width 3 needs it as the last axis, got"):
                layer(Tensor.ones(*shape))


def test_momentum_may_come_later() -> None:
    w = Tensor([1.0], requires_grad=True)
    optimizer = nn.SGD([w], lr=0.1)
    for momentum in (0.0, 0.5, 0.5):
        optimizer.momentum = momentum
        optimizer.zero_grad()
        (w * 2).sum().backward([w])
        optimizer.step()
    assert w.item() == pytest.approx(1 - 0.1 * (2 + 2 + 3))
