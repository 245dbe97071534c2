"""The spec: well-formed graphs pass at every stage; each kind of broken node is named."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers import as_kernel, buffer, stages

from uopc import spec
from uopc.composite import array_buffer
from uopc.dtype import dtypes
from uopc.ops import ConstArg
from uopc.uop import Ops, ParamArg, UOp

X = array_buffer(np.zeros((2, 3), np.float32))
INDEX = array_buffer(np.zeros((2, 3), np.int32))
B = array_buffer(np.zeros((2, 3), np.bool_))
R = UOp(Ops.RANGE, (), (0, 3))
PLACE = UOp(Ops.INDEX, (X, R))
LOAD = UOp(Ops.LOAD, (PLACE,))

BROKEN_SHAPE = [
    UOp(Ops.ADD, (X, INDEX)), UOp(Ops.ADD, (X,)), UOp(Ops.ADD, (X, X.permute((1, 0)))),
    UOp(Ops.WHERE, (X, X, X)), UOp(Ops.WHERE, (B, X, INDEX)), UOp(Ops.EXP2, (X, X)), UOp(Ops.ADD),
    UOp(Ops.RESHAPE, (X,), (5,)), UOp(Ops.RESHAPE, (), (5,)), UOp(Ops.EXPAND, (X,), (4, 3)),
    UOp(Ops.PERMUTE, (X,), (0, 0)), UOp(Ops.SHRINK, (X,), ((0, 3), (0, 3))),
    UOp(Ops.PAD, (X,), ((-1, 0), (0, 0))), UOp(Ops.FLIP, (X,), (1, 0)), UOp(Ops.FLIP, (X,), (2,)),
    UOp(Ops.REDUCE, (X,), (Ops.IDIV, 1)), UOp(Ops.REDUCE, (X,), (Ops.ADD, 3)),
    UOp(Ops.CONST, (), ConstArg(1, dtypes.f32)), UOp(Ops.CONST, (), ConstArg(1.5, dtypes.i32)),
    UOp(Ops.CONST, (), ConstArg(1, dtypes.bool)), UOp(Ops.STAGE, (X,), "elsewhere"),
    UOp(Ops.BUFFER, (), ParamArg(1, dtypes.f32, (-1,))), UOp(Ops.IOTA, (), (4, dtypes.f32)),
    UOp(Ops.GATHER, (X, X)), UOp(Ops.SCATTER, (INDEX, array_buffer(np.zeros(2, np.float32))), 4),
    R, UOp(Ops.LOAD, (X,)),
]
BROKEN_LOOPS = [
    UOp(Ops.LOAD, (X,)), UOp(Ops.LOAD), UOp(Ops.INDEX, (R, R)), UOp(Ops.INDEX, (X, LOAD)),
    UOp(Ops.INDEX, (X, R, R)), UOp(Ops.STORE, (PLACE, R)), UOp(Ops.STORE, (PLACE,)),
    UOp(Ops.END, (UOp(Ops.STORE, (PLACE, LOAD)),)), UOp(Ops.REDUCE, (LOAD,), Ops.ADD),
    UOp(Ops.REDUCE, (LOAD, R), Ops.IDIV), UOp(Ops.REDUCE, (LOAD, LOAD), Ops.ADD),
    UOp(Ops.ACC, (LOAD,), (0, dtypes.f32)), UOp(Ops.RANGE, (), (0, -1)), UOp(Ops.SINK, (LOAD,)),
    X.reshape((6,)), UOp.iota(3), UOp(Ops.ADD, (LOAD, R)),
]


@pytest.mark.parametrize(("rules", "node"), [
    *((spec.shape_rules, u) for u in BROKEN_SHAPE), *((spec.loop_rules, u) for u in BROKEN_LOOPS),
])
def test_a_broken_node_is_named(rules: spec.Rules, node: UOp) -> None:
    with pytest.raises(ValueError) as error:
        spec.check(node, rules, "some pass", always=True)
    assert re.match(r"after some pass: UOp\(Ops\.\w+", str(error.value))
    assert repr(node) in str(error.value)


def test_the_error_lies_deep_and_names_sources_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UOp, "track_origins", True)
    broken = UOp(Ops.MUL, (buffer([1.0, 2.0]), buffer([1, 2], dtypes.i32)))
    with pytest.raises(ValueError) as error:
        spec.check((broken + 1).reduce(Ops.ADD, 1), spec.shape_rules, "building", always=True)
    message = str(error.value)
    assert "Ops.MUL" in message and message.count("Ops.BUFFER") == 2
    assert re.search(r"built at .*test_spec\.py:\d+", message)


def test_well_formed_graphs_pass() -> None:
    body = (X.permute((1, 0)) * 2).pad(((0, 1), (1, 0))).reduce(Ops.MAX, 1)
    spec.check(body, spec.shape_rules, "building", always=True)
    numbered, out, _ = as_kernel(body)
    assert [name for name, _ in stages(numbered, out)][0] == "lower_movement"


def test_checking_is_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPEC", raising=False)
    spec.check(BROKEN_SHAPE[0], spec.shape_rules, "some pass")
    monkeypatch.setenv("SPEC", "1")
    with pytest.raises(ValueError, match="not well formed"):
        spec.check(BROKEN_SHAPE[0], spec.shape_rules, "some pass")
