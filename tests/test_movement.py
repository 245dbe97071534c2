"""Operations of a Tensor that only move elements, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from numeric import Case, array, both, check

from uopc.dtype import dtypes
from uopc.tensor import Tensor

BOX = array(3, 1, 5)
EMPTY = array(0, 3)


def test_reshape():
    check([
        both("in numbers", lambda x: x.reshape(5, 3), BOX),
        both("as a tuple", lambda x: x.reshape((15,)), BOX),
        both("-1", lambda x: x.reshape(5, -1), BOX),
        both("same", lambda x: x.reshape(3, 1, 5), BOX),
        both("twice", lambda x: x.reshape(15).reshape(5, 3), BOX),
        both("of a transpose", lambda x: x.transpose(2, 1, 0).reshape(3, 5)
             if isinstance(x, np.ndarray) else x.permute(2, 1, 0).reshape(3, 5), BOX),
        both("to 0-d", lambda x: x.reshape(()), array(1)),
        both("from 0-d", lambda x: x.reshape(1, 1), array()),
        both("-1 of one", lambda x: x.reshape(-1), array()),
        both("empty", lambda x: x.reshape(3, 0, 7), EMPTY),
        both("empty -1", lambda x: x.reshape(-1, 3), EMPTY),
        Case("view", lambda x: x.view(5, 3), lambda x: x.reshape(5, 3), (BOX,)),
        Case("flatten", Tensor.flatten, np.ravel, (BOX,)),
        Case("flatten from 1", lambda x: x.flatten(1), lambda x: x.reshape(3, 5), (BOX,)),
        Case("flatten from -2", lambda x: x.flatten(-2), lambda x: x.reshape(3, 5), (BOX,)),
        Case("flatten 0-d", Tensor.flatten, np.ravel, (array(),)),
    ])


def test_axes_of_size_one_come_and_go():
    check([
        *[Case(f"unsqueeze {a}", lambda x, a=a: x.unsqueeze(a),
               lambda x, a=a: np.expand_dims(x, a), (BOX,)) for a in (0, 1, 3, -1, -4)],
        Case("squeeze", Tensor.squeeze, np.squeeze, (array(1, 3, 1),)),
        Case("squeeze 0", lambda x: x.squeeze(0), lambda x: x.squeeze(0), (array(1, 3, 1),)),
        Case("squeeze both", lambda x: x.squeeze((0, -1)), lambda x: x.squeeze((0, -1)),
             (array(1, 3, 1),)),
        Case("squeeze nothing", Tensor.squeeze, np.squeeze, (array(3, 5),)),
        Case("expand", lambda x: x.expand(3, 4, 5), lambda x: np.broadcast_to(x, (3, 4, 5)),
             (BOX,)),
        Case("expand -1", lambda x: x.expand(-1, 4, -1), lambda x: np.broadcast_to(x, (3, 4, 5)),
             (BOX,)),
        Case("expand in front", lambda x: x.expand((2, 3, 1, 5)),
             lambda x: np.broadcast_to(x, (2, 3, 1, 5)), (BOX,)),
        Case("expand 0-d", lambda x: x.expand(2, 3), lambda x: np.broadcast_to(x, (2, 3)),
             (array(),)),
        Case("expand to nothing", lambda x: x.expand(3, 0), lambda x: np.broadcast_to(x, (3, 0)),
             (array(3, 1),)),
    ])


def test_order_of_axes():
    cube = array(2, 3, 5)
    check([
        Case("permute", lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1), (cube,)),
        Case("permute tuple", lambda x: x.permute((1, -1, 0)), lambda x: x.transpose(1, -1, 0),
             (cube,)),
        Case("permute 0-d", lambda x: x.permute(), lambda x: x, (array(),)),
        Case("transpose", Tensor.transpose, lambda x: x.swapaxes(-2, -1), (cube,)),
        Case("transpose 0 2", lambda x: x.transpose(0, 2), lambda x: x.swapaxes(0, 2), (cube,)),
        Case("T", lambda x: x.T, lambda x: x.swapaxes(-2, -1), (cube,)),
        Case("T of a vector", lambda x: x.T, lambda x: x, (array(5),)),
        Case("T of nothing", lambda x: x.T, lambda x: x.T, (EMPTY,)),
        Case("flip", Tensor.flip, np.flip, (cube,)),
        Case("flip 1", lambda x: x.flip(1), lambda x: np.flip(x, 1), (cube,)),
        Case("flip two", lambda x: x.flip((0, -1)), lambda x: np.flip(x, (0, -1)), (cube,)),
        Case("flip 0-d", Tensor.flip, np.flip, (array(),)),
    ])


def test_pad():
    x = array(2, 3)
    check([
        *[Case(f"pad {pairs}", lambda t, p=pairs: t.pad(p), lambda a, p=pairs: np.pad(a, p), (x,))
          for pairs in (2, (1, 2), ((1, 2), (0, 3)), [(0, 0), (2, 0)], 0)],
        Case("with 7", lambda t: t.pad(1, 7), lambda a: np.pad(a, 1, constant_values=7), (x,)),
        Case("an integer with a float", lambda t: t.pad(1, 0.5),
             lambda a: np.pad(a * 1.0, 1, constant_values=0.5), (np.int32([1]),), dtypes.f32),
        Case("nothing", lambda t: t.pad(1), lambda a: np.pad(a, 1), (EMPTY,)),
        Case("bools", lambda t: t.pad(1, True), lambda a: np.pad(a, 1, constant_values=True),
             (np.array([False]),), dtypes.bool),
    ])
    assert Tensor(3.0).pad([]).item() == 3


def test_repeat_and_tril():
    x = array(3, 5)
    check([
        *[Case(f"repeat {times}", lambda t, n=times: t.repeat(n), lambda a, n=times: np.tile(a, n),
               (x,)) for times in ((2, 3), (1, 1), (2, 1, 3), (0, 2))],
        Case("repeat 0-d", lambda t: t.repeat(3), lambda a: np.tile(a, 3), (array(),)),
        *[Case(f"tril {k}", lambda t, k=k: t.tril(k), lambda a, k=k: np.tril(a, k), (x,))
          for k in (0, 1, -1, 9, -9)],
        Case("tril of a stack", Tensor.tril, np.tril, (array(2, 3, 3),)),
        Case("tril of integers", Tensor.tril, np.tril, (np.ones((3, 3), np.int32),), dtypes.i32),
    ])
    assert Tensor(np.full((2, 2), np.nan, np.float32)).tril().numpy()[0, 1] == 0


def test_cat_and_stack():
    a, b, c = array(2, 3), array(1, 3, seed=2), array(0, 3)

    def cat(*xs, axis=0):
        return Tensor.cat(xs, axis) if isinstance(xs[0], Tensor) else np.concatenate(xs, axis)

    def stack(*xs, axis=0):
        return Tensor.stack(xs, axis) if isinstance(xs[0], Tensor) else np.stack(xs, axis)

    check([
        both("cat", cat, a, b, c),
        both("cat along 1", lambda *xs: cat(*xs, axis=1), a, array(2, 1, seed=3)),
        both("cat along -1", lambda *xs: cat(*xs, axis=-1), a, array(2, 1, seed=3)),
        both("cat one", cat, a),
        both("cat itself", lambda x: cat(x, x), a),
        both("cat of nothing", cat, c, c),
        Case("cat of two dtypes", cat, cat, (np.int32([1, 2]), np.float32([0.5])), dtypes.f32),
        both("stack", stack, a, array(2, 3, seed=4)),
        both("stack along 1", lambda *xs: stack(*xs, axis=1), a, array(2, 3, seed=4)),
        both("stack along -1", lambda *xs: stack(*xs, axis=-1), a, array(2, 3, seed=4)),
        both("stack 0-d", stack, array(), array(seed=1), array(seed=2)),
    ])
    assert Tensor.cat([Tensor([1]), [2, 3]]).tolist() == [1, 2, 3]


def test_cat_of_many_is_done_in_groups():
    parts = [Tensor(np.full((2,), k, np.float32)) for k in range(37)]
    whole = Tensor.cat(parts)
    (whole * Tensor.arange(74)).sum().backward([parts[0], parts[36]])
    Tensor.realize_all(whole, parts[0].grad, parts[36].grad)
    np.testing.assert_array_equal(whole.numpy(), np.repeat(np.arange(37), 2))
    assert parts[0].grad.tolist() == [0, 1]
    assert parts[36].grad.tolist() == [72, 73]


def test_views_of_views_of_views():
    def chain(x):
        turn = (lambda v: v.permute(1, 0, 2)) if isinstance(x, Tensor) else \
            (lambda v: v.transpose(1, 0, 2))
        x = turn(x[:, ::-1].reshape(2, 3, 5))[1:, :, ::2]
        return turn(x.reshape(2, 3, 2))[::-1, 1] * 2 + 1

    check([both("chain", chain, array(2, 15))])


def test_integers_and_bools_move_too():
    for dtype in (np.uint8, np.int64, np.bool_):
        x = np.array([[1, 0, 1], [0, 0, 1]], dtype)
        check([both("reshape", lambda t: t.reshape(3, 2), x), both("T", lambda t: t.T, x)])


# *** errors ***


def test_errors_name_old_and_new_shape():
    x = Tensor(BOX)
    for wanted in ((4, 4), (4, -1), (-1, -1), (-2, 15), (0, -1)):
        with pytest.raises(ValueError, match=r"cannot reshape \(3, 1, 5\) to "):
            x.reshape(wanted)
    for wanted in ((3, 5), (3, 2, 6), (5, 1, 5), (3, -2, 5)):
        with pytest.raises(ValueError, match=r"cannot expand \(3, 1, 5\) to "):
            x.expand(wanted)
    with pytest.raises(ValueError, match=r"cannot permute \(3, 1, 5\) by \(0, 1\)"):
        x.permute(0, 1)
    with pytest.raises(ValueError, match=r"cannot permute \(3, 1, 5\) by \(0, 0, 1\)"):
        x.permute(0, 0, 1)
    with pytest.raises(IndexError, match=r"cannot permute \(3, 1, 5\) by \(0, 1, 3\)"):
        x.permute(0, 1, 3)
    with pytest.raises(ValueError, match=r"cannot squeeze axes \(0,\) of \(3, 1, 5\)"):
        x.squeeze(0)
    with pytest.raises(ValueError, match=r"cannot pad \(3, 1, 5\) by"):
        x.pad(-1)
    with pytest.raises(ValueError, match=r"cannot pad \(3, 1, 5\) by"):
        x.pad([(1, 1)])
    with pytest.raises(ValueError, match=r"repeat: \(2,\) does not give a count .* \(3, 1, 5\)"):
        x.repeat(2)
    with pytest.raises(ValueError, match=r"tril needs two axes or more, .* \(5,\)"):
        Tensor(array(5)).tril()
    for wrong in (lambda: x.transpose(0, 3), lambda: x.flip(3), lambda: x.unsqueeze(5),
                  lambda: x.flatten(3), lambda: x.squeeze(4)):
        with pytest.raises(IndexError, match=r"axis \d is out of range for \d axes"):
            wrong()
    for wrong in (lambda: x.reshape(3.0, 5), lambda: x.reshape("a"), lambda: x.permute(0, 1, None)):
        with pytest.raises(TypeError, match="must be whole numbers, got"):
            wrong()


def test_errors_of_cat_and_stack_name_the_shapes():
    a, b = Tensor(array(2, 3)), Tensor(array(2, 4))
    with pytest.raises(ValueError, match=r"cat along axis 0: .* \(2, 3\), \(2, 4\)"):
        Tensor.cat([a, b])
    with pytest.raises(ValueError, match=r"stack: all shapes must agree, got \(2, [34]\), \(2"):
        Tensor.stack([a, b])
    with pytest.raises(ValueError, match="at least one tensor"):
        Tensor.cat([])
    with pytest.raises(ValueError, match="at least one tensor"):
        Tensor.stack([])
    with pytest.raises(IndexError, match="axis 2 is out of range for 2 axes"):
        Tensor.cat([a, a], 2)
