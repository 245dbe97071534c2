"""`t[key]` and `t[key] = value` against NumPy."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numeric import Case, array, check

from uopc.counters import counters
from uopc.dtype import ALL_DTYPES, dtypes
from uopc.interpret import interpret_graph
from uopc.nn import Embedding
from uopc.tensor import Tensor

CUBE = array(3, 4, 5)
K = np.array([2, 0, 2])
J = np.array([[1], [-1]])

BASIC = [
    0, -1, (1, 2), (1, 2, 3), (-3, -4, -5), slice(None), slice(1, 3), slice(None, None, 2),
    slice(None, None, -1), slice(5, None, -2), slice(-2, None), slice(2, 1), slice(100, 200),
    slice(-100, 2), (slice(None), 1), (Ellipsis, 1), (Ellipsis, slice(None, None, 3)), Ellipsis,
    None, (None, 0), (slice(None), None, 2), (0, Ellipsis, 4), (Ellipsis, None),
    (slice(0, 2), slice(None, None, -3), slice(4, 0, -2)), (slice(1, 2), slice(3, 4), slice(0, 1)),
    (), np.int64(1), (0, Ellipsis, 1, 2),
]
GATHERS = [
    K, J, (K, np.array([3, 3, 0])), (K, J), (slice(None), K), (slice(None), J, 0), (0, K),
    (0, slice(None), K), (K, slice(None), 0), (K, slice(None), K), (slice(None), 0, K),
    (Ellipsis, K), (None, K), (K, None), (slice(None), K, K), (K, K, K), [0, -1], ([0, 1], [2, 3]),
    (slice(0, 2), [1, 1]), (slice(None, None, -1), K), (None, K, slice(None), K),
    np.array(1), np.zeros((0,), np.int64),
    np.zeros((2, 0), np.int32), (K, slice(1, 3)), (slice(2, None), slice(None), K),
    np.array([1, 0], np.uint8), (np.int64(-1), K), [],
]


def shown(key):
    return str(key).replace("None", "").replace("slice", "")


def test_numbers_and_slices():
    check([Case(shown(k), lambda x, k=k: x[k], lambda x, k=k: x[k], (CUBE,)) for k in BASIC])


def test_integer_arrays():
    check([Case(shown(k), lambda x, k=k: x[k], lambda x, k=k: x[k], (CUBE,)) for k in GATHERS])


@pytest.mark.parametrize("dtype", [dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64], ids=str)
def test_tensors_of_every_integer_dtype_are_indices(dtype):
    rows = np.array([2, 0, 1, 1])
    x, index = Tensor(CUBE), Tensor(rows, dtype=dtype)
    np.testing.assert_array_equal(x[index].numpy(), CUBE[rows])
    np.testing.assert_array_equal(x[:, index + 1, index].numpy(), CUBE[:, rows + 1, rows])


def test_an_index_may_still_have_to_be_computed():
    x, index = Tensor(CUBE), Tensor([0.0, 3.0, 1.0]).argmax() * Tensor([2, 1])
    np.testing.assert_array_equal(x[index].numpy(), CUBE[[2, 1]])
    np.testing.assert_array_equal(x[Tensor.arange(3)].numpy(), CUBE)


def test_other_indices_of_one_shape_need_no_new_plan():
    x = Tensor(CUBE)
    x[Tensor([0, 1])].realize()
    before = counters.copy()
    for pair in ([1, 2], [2, 2], [0, 0]):
        assert x[Tensor(pair)].numpy().tolist() == CUBE[pair].tolist()
    assert (counters - before).plan_misses == 0


def test_zero_dimensions_and_no_elements():
    assert Tensor(3.0)[()].item() == Tensor(3.0)[...].item() == 3
    assert Tensor(3.0)[None].tolist() == [3]
    empty = Tensor(np.zeros((0, 3), np.float32))
    assert empty[:, 1].shape == (0,)
    assert empty[::-1].numpy().shape == (0, 3)
    assert empty[np.zeros(0, int)].numpy().shape == (0, 3)


def test_other_dtypes():
    for dtype in (np.int64, np.bool_, np.float64):
        x = (CUBE[0] > 0).astype(dtype)
        check([Case("slice", lambda t: t[::2, ::-1], lambda t: t[::2, ::-1], (x,)),
               Case("gather", lambda t: t[[0, 2]], lambda t: t[[0, 2]], (x,))])


def test_rows_by_take():
    check([Case(f"axis {a}", lambda t, a=a: t.take(K, a), lambda v, a=a: np.take(v, K, a), (CUBE,))
           for a in (0, 1, -1)]
          + [Case("a number", lambda t: t.take(2, 1), lambda v: np.take(v, 2, 1), (CUBE,))])
    assert Tensor(CUBE).take(K).shape == (3, 4, 5)


def test_the_gradient_of_an_element_taken_often_adds_up():
    table, index = Tensor(array(4, 2)), Tensor([[1, 1, 0], [1, 3, -1]])
    (table[index] * Tensor(np.arange(6, dtype=np.float32).reshape(2, 3, 1))).sum().backward([table])
    np.testing.assert_array_equal(table.grad.numpy(), [[2, 2], [4, 4], [0, 0], [9, 9]])


def test_iterating_goes_through_the_rows():
    assert [row.tolist() for row in Tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]


# *** assignment ***


def assigned(key, value):
    """Case: an array with `value` put at `key`, and the gradients of both."""
    def op(x, v):
        x = x.copy() if isinstance(x, np.ndarray) else x * 1
        x[key] = v
        return x
    return Case(f"[{shown(key)}] = {value.shape}", op, op, (CUBE, value))


def test_assignment_by_numbers_and_slices():
    keys = [k for k in BASIC if k is not None]
    cases = [assigned(k, array(*CUBE[k].shape, seed=5)) for k in keys]
    cases += [assigned(0, array()), assigned(slice(None), array(5)),
              assigned((slice(0, 2), 1), array(2, 1)), assigned((Ellipsis, 0), array(1, 4)),
              assigned((slice(None), slice(None, None, -2)), array(2, 1))]
    check(cases)


def test_assignment_by_integer_arrays():
    once = np.array([2, 0])
    check([assigned(k, array(*CUBE[k].shape, seed=5))
           for k in (once, (once, once), (once, J), (1, once), (once, once, 0),
                     np.zeros(0, np.int64))]
          + [assigned(once, array()), assigned(once, array(4, 1))])


def test_of_equal_indices_the_last_assignment_wins():
    x, want = Tensor([[1.0, 2], [3, 4], [5, 6]]), np.float32([[1, 2], [3, 4], [5, 6]])
    values = np.float32([[10, 11], [12, 13], [14, 15]])
    x[[1, 1, 0]] = values
    want[[1, 1, 0]] = values
    np.testing.assert_array_equal(x.numpy(), want)


def test_whoever_read_before_an_assignment_keeps_what_was_read():
    x = Tensor([1.0, 2.0, 3.0])
    view, double = x[:2], x * 2
    x[0] = 9
    x[1] += 5
    x[2] = x[0]
    assert x.tolist() == [9, 7, 9]
    assert view.tolist() == [1, 2]
    assert double.tolist() == [2, 4, 6]


def test_assigned_values_take_the_dtype_of_the_tensor():
    x = Tensor([1.0, 2.0])
    x[0] = Tensor([7])[0]
    x[1] = True
    assert x.dtype is dtypes.f32
    assert x.tolist() == [7, 1]
    b = Tensor([False, False])
    b[0] = 5
    assert b.tolist() == [True, False]


def test_gradients_do_not_reach_what_was_overwritten():
    x, v = Tensor([1.0, 2.0, 3.0]), Tensor([5.0])
    y = x * 1
    y[1:2] = v
    (y * Tensor([1.0, 10.0, 100.0])).sum().backward([x, v])
    assert x.grad.tolist() == [1, 0, 100]
    assert v.grad.tolist() == [10]


@st.composite
def shape_and_key(draw: st.DrawFn) -> tuple[tuple[int, ...], object]:
    """A shape, and an index expression: numbers, slices, None, an Ellipsis and integer arrays, in
    any order and number."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    common = draw(st.sampled_from([(), (2,), (3,), (2, 1), (2, 3)]))
    keys, ellipsis_at = [], draw(st.none() | st.integers(0, len(shape)))
    for axis, n in enumerate(shape):
        if axis == ellipsis_at:
            keys.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
        keys += [None] * draw(st.sampled_from([0, 0, 0, 1]))
        kind = draw(st.sampled_from(["end", "slice", "slice", "number", "array", "array"]))
        if kind == "end":
            break
        if kind == "slice":
            part = st.none() | st.integers(-n - 1, n + 1)
            step = draw(st.sampled_from([None, 1, 2, -1, -2, 3]))
            keys.append(slice(draw(part), draw(part), step))
        elif kind == "number":
            keys.append(draw(st.integers(-n, n - 1)))
        else:
            of = draw(st.sampled_from([common, common[-1:], (1,), ()]))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=prod(of), max_size=prod(of)))
            index = np.array(values, draw(st.sampled_from([np.int64, np.int32]))).reshape(of)
            keys.append(index.tolist() if of and draw(st.booleans()) else index)
    if Ellipsis not in [k if k is Ellipsis else None for k in keys] and draw(st.booleans()):
        keys.append(Ellipsis)
    return shape, tuple(keys)


@settings(max_examples=150, deadline=None)
@given(shape_and_key())
def test_any_index_expression_reads_and_writes_what_numpy_does(case: tuple) -> None:
    shape, key = case
    x = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    try:
        selected = x[key]
    except IndexError:
        with pytest.raises(IndexError):
            Tensor(x)[key].realize()
        return
    got = Tensor(x)[key]
    assert got.shape == selected.shape
    (values,) = interpret_graph([got.uop])
    np.testing.assert_array_equal(values, selected)
    new = -1 - np.arange(selected.size, dtype=np.float32).reshape(selected.shape)
    for value in (new, new[..., :1] if selected.ndim else new, np.float32(7)):
        t, want = Tensor(x), x.copy()
        t[key] = value
        want[key] = value
        (values,) = interpret_graph([t.uop])
        np.testing.assert_array_equal(values, want)


@pytest.mark.parametrize("key", [(None, [0, 1], Ellipsis, [0, 1]), ([0, 1], Ellipsis, [0, 1]),
                                 (slice(None), [0, 1], Ellipsis, [0, 1]), (0, slice(None), [1, 0]),
                                 (None, [0, 1], [1, 0]), ([0, 1], None, 0), (0, None, [0, 1, 1])],
                         ids=shown)
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_the_axes_of_indices_that_stand_apart_come_first(rank: int, key: tuple) -> None:
    x = array(*(2, 3, 4, 2)[:rank])
    if sum(k is not None and k is not Ellipsis for k in key) <= rank:
        np.testing.assert_array_equal(Tensor(x)[key].numpy(), x[key])


# *** views ***


VIEWS = {
    "a row": lambda t: t[0], "rows": lambda t: t[:2], "all": lambda t: t[...],
    "a column": lambda t: t[:, 1], "a row of the transposed": lambda t: t.T[0],
    "transposed": lambda t: t.T, "permuted": lambda t: t.permute(1, 0),
    "reshaped": lambda t: t.reshape(12), "viewed": lambda t: t.view(3, 4),
    "flattened": lambda t: t.flatten(), "reversed": lambda t: t.flip(0),
    "expanded": lambda t: t.expand(2, 3, 4), "unsqueezed": lambda t: t.unsqueeze(0),
    "squeezed": lambda t: t.unsqueeze(0).squeeze(0), "detached": lambda t: t.detach(),
    "a row while iterating": lambda t: next(iter(t)), "a chain": lambda t: t.T[1:][0].flip(0),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_write_to_a_view_would_be_lost_and_is_refused(view: Callable) -> None:
    t = Tensor(array(3, 4))
    before = t.numpy()
    with pytest.raises(ValueError, match=r"writing into this view.*t\[0, 1\] = v.*contiguous"):
        view(t)[0] = 5.0
    v = view(t)
    with pytest.raises(ValueError, match="assigning to this view"):
        v.assign(v * 2)
    own = v.contiguous()
    own[0] = 5.0  # which is asked for
    assert (own.numpy()[0] == 5).all()
    np.testing.assert_array_equal(t.numpy(), before)
    del t
    v[0] = 7.0  # nobody else can miss it
    assert (v.numpy()[0] == 7).all()


def test_a_row_of_a_vector_and_what_augments_one() -> None:
    t = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="writing into this view"):
        t.T[0] = 7.0
    t[0] += 1
    t[:] *= 2
    t[::-1][0].item()
    assert t.tolist() == [4.0, 4.0]
    t = t.reshape(2, 1)  # the tensor before is nobody's any more
    t[0, 0] = 9.0
    x = Tensor.arange(6).reshape(2, 3)
    x[0] = 1
    assert t.tolist() == [[9.0], [4.0]] and x.tolist() == [[1, 1, 1], [3, 4, 5]]


def test_what_numpy_copies_is_no_view() -> None:
    x, i = Tensor([[1.5, 2.0], [3.0, 4.0]]), Tensor([1, 2, 3])
    for made in (x[[0, 1]], x.float(), x.pad(0), x + 0, x.contiguous(), x.clip(), x.tril()):
        made[0] = 9.0
    for made in (i.abs(), i.trunc(), i.floor(), i.ceil(), i.clip(), i.int()):
        made[0] = 9
    assert x.tolist() == [[1.5, 2.0], [3.0, 4.0]] and i.tolist() == [1, 2, 3]


# *** errors ***


def test_check_index_names_a_value_that_is_out_of_range():
    x = Tensor([0, 4, 2])
    assert x.check_index(5).tolist() == [0, 4, 2]
    assert Tensor([-1, 0, -5]).check_index(5, negative=True).tolist() == [4, 0, 0]
    assert Tensor([1, -100]).check_index(5, allowed=-100).tolist() == [1, -100]
    for values, bad, options in (([1, 5], 5, {}), ([0, -1], -1, {}),
                                 ([-6, 1], -6, {"negative": True}), ([2, -1], -1, {"allowed": 9})):
        with pytest.raises(IndexError, match=f"token {bad} is out of range for size 5"):
            Tensor(values).check_index(5, "token", **options)


def test_errors_name_the_index():
    x = Tensor(CUBE)
    for key, message in (
            (3, "index 3 is out of range for an axis of size 3"),
            (-4, "index -4 is out of range for an axis of size 3"),
            ((0, 0, 5), "index 5 is out of range for an axis of size 5"),
            ((0, 0, 0, 0), r"4 indices for a tensor of shape \(3, 4, 5\)"),
            ((Ellipsis, 0, Ellipsis), "a single ellipsis"),
            ([0, 3], "index 3 is out of range for size 3"),
            ([-4, 0], "index -4 is out of range for size 3"),
            ((slice(None), [4]), "index 4 is out of range for size 4"),
            ((7, [0]), "index 7 is out of range for an axis of size 3")):
        with pytest.raises(IndexError, match=message):
            x[key]
        with pytest.raises(IndexError, match=message):
            x[key] = 0.0
    with pytest.raises(IndexError, match="index 0 is out of range for an axis of size 0"):
        Tensor([])[0]
    with pytest.raises(IndexError, match="index 0 is out of range for size 0"):
        Tensor([])[[0]]
    with pytest.raises(IndexError, match=r"1 indices for a tensor of shape \(\)"):
        Tensor(1.0)[0]
    with pytest.raises(IndexError, match="axis 3 is out of range for 3 axes"):
        x.take(K, 3)


def test_what_is_no_index_is_a_type_error():
    x = Tensor(CUBE)
    for key in (1.0, [0.5], Tensor([1.0]), "a", {}):
        with pytest.raises(TypeError, match="index must be whole numbers|uopc has no dtype"):
            x[key]
    for key in (True, [True, False, True], CUBE > 0, Tensor([True, False, True])):
        with pytest.raises(TypeError, match="bool mask"):
            x[key]
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        x[::0]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_lookup_takes_integers_and_names_what_is_none(dtype):
    x, table = Tensor(array(3, 4)), Embedding(3, 4)
    values = np.array([1, 0, 1], dtype.np)

    def put(index):
        x[index] = 0.0

    lookups = {"x[i]": lambda i: x[i], "x[:, i]": lambda i: x[:, i], "put": put, "take": x.take,
               "x[i, i]": lambda i: x[i, i], "embedding": table, "rows": lambda i: x.rows(
                   i if isinstance(i, Tensor) else Tensor(i)),
               "labels": lambda i: x.cross_entropy(i), "check": lambda i: Tensor(i).check_index(3)}
    for name, lookup in lookups.items():
        for index in (values, Tensor(values), [*values], Tensor(values) + values):
            if name == "take" and isinstance(index, list):
                continue
            if dtype.is_int:
                lookup(index)
                continue
            with pytest.raises(TypeError, match=f"(?s)(index|labels|mask).*{dtype}"):
                lookup(index)
    one = values[0] if dtype.is_int else values[:1].reshape(())
    for scalar in (one, Tensor(one)):
        if dtype.is_int:
            assert x[scalar].shape == (4,) and table(scalar).shape == (4,)
        else:
            with pytest.raises(TypeError, match=str(dtype)):
                x[scalar]
            with pytest.raises(TypeError, match=str(dtype)):
                table(scalar)


def test_an_empty_list_is_an_index_and_an_empty_array_of_floats_is_none():
    x = Tensor(array(3, 4))
    assert x[[]].shape == (0, 4) and Embedding(3, 4)([]).shape == (0, 4)
    for bad in (np.zeros(0), Tensor([])):
        with pytest.raises(TypeError, match="whole numbers"):
            x[bad]


def test_values_that_do_not_fit_are_refused():
    x, i = Tensor(CUBE), Tensor([1, 2], dtype=dtypes.u8)
    for key, shape in ((0, r"\(4, 5\)"), (slice(0, 2), r"\(2, 4, 5\)"), (K, r"\(3, 4, 5\)")):
        with pytest.raises(ValueError, match=rf"shape \(7,\) into a selection of {shape}"):
            x[key] = np.zeros(7, np.float32)
    with pytest.raises(ValueError, match=r"\(2, 1\) into a selection of \(\)"):
        x[0, 0, 0] = [[1.0], [2.0]]
    for value in (0.5, Tensor([0.5, 1.5])):
        with pytest.raises(TypeError, match="cannot put dtypes.f32 .* tensor of dtypes.u8"):
            i[:] = value
    with pytest.raises(OverflowError, match="300 is out of range for dtypes.u8"):
        i[0] = 300
    np.testing.assert_array_equal(x.numpy(), CUBE)


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_an_index_of_no_axes_and_then_a_number(opt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reshape to () and back keeps the type that positions have."""
    monkeypatch.setenv("OPT", str(opt))
    w, i = np.arange(12, dtype=np.float32).reshape(4, 3), Tensor(np.int32(2))
    assert Tensor(w)[i][2].numpy() == 8
    assert Tensor(w)[Tensor([1, 2])][1][1].numpy() == 7
