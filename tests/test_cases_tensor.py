"""Cases that users of small ML compilers reported: gradients and the Tensor's operations."""
from __future__ import annotations

import math

import numpy as np
import pytest

from uopc.dtype import dtypes
from uopc.tensor import Tensor

INF, NAN = np.inf, np.nan


def gradient(f, values):
    """(value of f, its gradient) at `values`."""
    x = Tensor(values)
    y = f(x)
    y.sum().backward([x])
    Tensor.realize_all(y, x.grad)
    return y.numpy(), x.grad.numpy()


def test_a46_running_sum_of_1022_and_its_gradient():
    _, g = gradient(lambda x: x.cumsum().sum(), np.ones(1022, np.float32))
    np.testing.assert_array_equal(g, np.arange(1022, 0, -1))
    k = np.arange(1022)
    for dtype in (np.float32, np.int32):
        got = Tensor(k.astype(dtype)).cumsum().numpy()
        np.testing.assert_array_equal(got, k * (k + 1) // 2)


def test_a47_a_product_used_three_ways():
    x, a = Tensor([1.0]), Tensor([1.0])
    inner = x * (x * a)
    (inner + inner + (x * x) * a).sum().backward([x])
    assert x.grad.item() == 6


def test_a48_backward_twice_without_clearing_doubles():
    a, b, d = (Tensor(v, requires_grad=True) for v in (3.0, 2.0, 1.0))
    y = (a + b) * d
    y.backward()
    assert (a.grad.item(), b.grad.item(), d.grad.item()) == (1, 1, 5)
    y.backward()
    assert (a.grad.item(), b.grad.item(), d.grad.item()) == (2, 2, 10)


def test_a49_an_element_picked_twice_gets_both_gradients():
    x = Tensor([7.0])
    x[[0, 0]].backward([x], Tensor([0.2, 0.3]))
    assert x.grad.item() == pytest.approx(0.5)


def test_a50_mean_along_the_only_axis():
    for axis in (0, None):
        _, g = gradient(lambda x, a=axis: x.square().mean(a), np.ones(5, np.float32))
        np.testing.assert_allclose(g, [0.4] * 5, rtol=1e-6)


def test_a51_the_branch_that_is_not_taken_gives_no_nan():
    _, g = gradient(lambda x: (x == 0).where(0.0, x * x.sqrt()), [0.0])
    assert g.tolist() == [0]
    _, g = gradient(lambda x: (x > 0).where(x.sqrt(), x), [-1.0, -4.0])
    assert g.tolist() == [1, 1]


def test_a52_the_norm_of_zeros_has_gradient_zero():
    y, g = gradient(lambda x: x.square().sum().sqrt(), [0.0, 0.0, 0.0])
    assert y == 0
    assert g.tolist() == [0, 0, 0]


def test_a53_the_maximum_of_70000_equal_values_shares_its_gradient():
    _, g = gradient(Tensor.max, np.full(70_000, 3, np.float32))
    np.testing.assert_allclose(g, 1 / 70_000, rtol=1e-6)
    assert g.sum(dtype=np.float64) == pytest.approx(1, abs=1e-5)


def test_a54_powers_of_a_negative_number():
    for exponent, value, slope in ((2, 4, -4), (3, -8, 12), (2.0, 4, -4), (3.0, -8, 12)):
        y, g = gradient(lambda x, n=exponent: x ** n, [-2.0])
        assert (y, g) == (value, slope)
    y, g = gradient(lambda x: x ** Tensor([2.0]), [-2.0])
    assert (y, g) == (4, -4)
    assert math.isnan((Tensor([-2.0]) ** 0.5).item())


def test_a55_a_gradient_of_integers_is_refused():
    i = Tensor([1, 2])
    with pytest.raises(TypeError, match="only floats have gradients; a given tensor is dtypes.i32"):
        (i * 0.5).sum().backward([i])
    with pytest.raises(TypeError, match="needs a float tensor, this one is dtypes.i64"):
        i.sum().backward()


def test_a56_losses_one_by_one_and_in_a_batch_have_the_same_gradients():
    x = np.float32([[0, 0], [0, 1], [1, 0], [1, 1]])
    y = np.float32([[0], [1], [1], [0]])
    rng = np.random.default_rng(0)
    weights = [Tensor(rng.standard_normal(s).astype(np.float32)) for s in ((2, 3), (3,), (3, 1))]

    def loss(inputs, targets):
        w1, b, w2 = weights
        return (((Tensor(inputs) @ w1 + b).tanh() @ w2 - Tensor(targets)) ** 2).sum()

    total = Tensor(np.zeros(1, np.float32))
    for row, target in zip(x, y, strict=True):
        total = total + loss(row[None], target[None])
    total.backward(weights)
    single = [w.grad.numpy() for w in weights]
    for w in weights:
        w.grad = None
    loss(x, y).backward(weights)
    for w, want in zip(weights, single, strict=True):
        np.testing.assert_allclose(w.grad.numpy(), want, atol=1e-6)


def test_a57_tanh_and_a_parameter_out_of_reach():
    _, g = gradient(Tensor.tanh, [0.0, 1.0, -1.0])
    np.testing.assert_allclose(g, [1, 0.41997, 0.41997], atol=1e-5)
    x, unreachable = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    x.tanh().sum().backward([x, unreachable])
    assert unreachable.grad is None


def test_a58_division_of_two_tensors_known_only_at_run_time():
    a, b = Tensor([110]), Tensor([55])
    assert ((a // b).item(), (a % b).item()) == (2, 0)


def test_a59_division_rounds_down():
    assert (Tensor([1, -1]) // Tensor([2, 2])).tolist() == [0, -1]
    assert (Tensor([1, -1]) // 2).tolist() == [0, -1]


def test_a60_ranges_and_one_hot_rows_of_every_length():
    ranges = {n: Tensor.arange(n) for n in range(1, 34)}
    one_hot = {(n, c): ((ranges[n] % c).unsqueeze(-1) == Tensor.arange(c)).int()
               for n in (1, 2, 7, 16, 33) for c in (3, 5, 7)}
    Tensor.realize_all(*ranges.values(), *one_hot.values())
    for n, x in ranges.items():
        assert x.tolist() == list(range(n))
    for (n, c), x in one_hot.items():
        np.testing.assert_array_equal(x.numpy(), np.eye(c)[np.arange(n) % c])


def test_a61_of_equal_indices_the_last_wins():
    x = Tensor([1, 2, 3, 4])
    x[[1, 1]] = [1, 0]
    assert x.tolist() == [1, 0, 3, 4]


def test_a62_argmax_finds_the_nan():
    assert Tensor([1.0, NAN, 3.0]).argmax().item() == 1
    assert Tensor([1.0, NAN, 3.0]).argmin().item() == 1


def test_a63_argmax_takes_the_first_of_equals():
    assert Tensor([3.0, 1.0, 3.0]).argmax().item() == 0
    assert Tensor([0.25] * 9).argmax().item() == 0
    assert Tensor([[0.25] * 9] * 2).argmax(-1).tolist() == [0, 0]


def test_a64_reductions_over_no_elements():
    x = Tensor(np.zeros((2, 0), np.float32))
    assert x.sum(-1).tolist() == [0, 0]
    assert x.prod(-1).tolist() == [1, 1]
    assert np.isnan(x.mean(-1).numpy()).all()
    with pytest.raises(ValueError, match=r"max over axes \(1,\) of shape \(2, 0\)"):
        x.max(-1)


def test_a65_a_product_of_shapes_that_do_not_fit_names_both():
    with pytest.raises(ValueError, match=r"\(3,\) and \(1, 3\) do not fit"):
        Tensor([1.0, 2.0, 3.0]) @ Tensor([[1.0, 2.0, 3.0]])


def test_a66_a_number_has_no_length():
    with pytest.raises(TypeError, match="0-d"):
        len(Tensor(1.0))


def test_a67_reshapes_that_do_not_fit_name_both_shapes():
    x = Tensor(np.zeros((2, 6), np.float32))
    for wanted in ((-1, -1), (5, -1)):
        with pytest.raises(ValueError) as error:
            x.reshape(wanted)
        assert f"cannot reshape (2, 6) to {wanted}" in str(error.value)


def test_a68_indices_out_of_range():
    x = Tensor([1, 2, 3, 4, 5])
    for k in (5, -6):
        with pytest.raises(IndexError, match=f"index {k} is out of range for an axis of size 5"):
            x[k]
        with pytest.raises(IndexError, match=f"index {k} is out of range for size 5"):
            x[[k]]
    assert x[-1].item() == 5


def test_a69_logsumexp_with_an_infinity():
    got = Tensor([[INF, 2.0, 3.0], [4.0, 5.0, 6.0]]).logsumexp(-1).numpy()
    np.testing.assert_allclose(got, [INF, 6.40761], rtol=1e-6)


@pytest.mark.parametrize("n", [1, 7, 8, 127, 128])
def test_a70_rows_of_minus_infinity_are_nan_at_every_length(n):
    x = Tensor(np.full(n, -INF, np.float32))
    soft, logs, total = x.softmax(), x.log_softmax(), x.logsumexp()
    Tensor.realize_all(soft, logs, total)
    assert np.isnan(soft.numpy()).all() and np.isnan(logs.numpy()).all()
    assert total.item() == -INF


def test_a71_an_ignored_row_does_not_count_even_with_smoothing():
    logits = np.float32([[0.5, -1, 2], [3, 1, 0]])
    both = Tensor(logits).cross_entropy([2, -100], label_smoothing=0.2).item()
    first = Tensor(logits[:1]).cross_entropy([2], label_smoothing=0.2).item()
    logp = logits[0] - np.log(np.exp(logits[0]).sum())
    assert both == pytest.approx(first)
    assert both == pytest.approx(-(0.8 * logp[2] + 0.2 * logp.mean()), rel=1e-6)


def test_a72_logical_not():
    assert Tensor([0.0, 1.0, 2.0, 0.5]).logical_not().tolist() == [True, False, False, False]


def test_a73_assignment_into_many_axes():
    x = Tensor.zeros(2, 3, 4, 5, 3)
    x[..., 0] = 1
    want = np.zeros((2, 3, 4, 5, 3))
    want[..., 0] = 1
    np.testing.assert_array_equal(x.numpy(), want)
    y = Tensor.zeros(3, 4, 4, 4)
    y[0, :, 3, :] = Tensor.ones(4, 4)
    want = np.zeros((3, 4, 4, 4))
    want[0, :, 3, :] = 1
    np.testing.assert_array_equal(y.numpy(), want)


def test_a74_300_true_values():
    x = Tensor(np.ones(300, bool))
    assert (x.sum().item(), x.cumsum()[-1].item()) == (300, 300)


def test_a75_the_mean_of_the_largest_integers_does_not_overflow():
    mean = Tensor([2147483647, 2147483647]).mean()
    assert mean.dtype is dtypes.f32
    assert abs(mean.item() - 2147483647) <= 128


def test_a76_gelu_in_both_forms():
    x = Tensor(1.0)
    assert x.gelu().item() == x.gelu("none").item() == pytest.approx(0.841345, abs=1e-6)
    assert x.gelu("tanh").item() == pytest.approx(0.841192, abs=1e-6)
    assert "GPT" in Tensor.gelu.__doc__


def test_a77_the_last_item_and_one_beyond_the_first():
    items = Tensor.arange(10) * 10
    assert items[-1].item() == 90
    with pytest.raises(IndexError, match="index -11 is out of range for an axis of size 10"):
        items[-11]
