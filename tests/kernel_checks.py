"""What several test files need to say "this graph gives these kernels"."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext

import numpy as np
import pytest

from uopc import kernelize, render_vector
from uopc.counters import counters
from uopc.kernelize import Plan, make_plan
from uopc.opt import choose, fuse, layout
from uopc.opt.target import Target
from uopc.tensor import Tensor

AVX2 = Target(vector_bytes=32, registers=16, threads=2, cache=1 << 19)


def ramp(*shape: int) -> Tensor:
    """A tensor of data: small numbers, all different, of both signs."""
    n = int(np.prod(shape))
    return Tensor(np.linspace(-1, 1, n, dtype=np.float32).reshape(shape))


def assert_kernels(tensors: Tensor | list[Tensor], expected: str,
                   fuse_reduce: bool = False) -> Plan:
    """Check that one plan for `tensors` runs the kernels that `expected` names; returns it."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    plan, _ = make_plan([t.uop for t in tensors], fuse_reduce)
    assert [k.name for k in plan.kernels] == expected.split()
    return plan


def refs(plan: Plan) -> list[str]:
    """For each kernel its arguments, as in `in0 tmp0 out0`."""
    return [" ".join(f"{kind}{i}" for kind, i in k.refs) for k in plan.kernels]


def layer_norm(x: Tensor) -> Tensor:
    """Over the last axis, no affine part, mean and variance written out."""
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()


def plan_for(monkeypatch: pytest.MonkeyPatch, machine: Target) -> None:
    """Until the end of the test, plans are made for `machine`, and nothing is compiled."""
    for module in (choose, fuse, kernelize, layout, render_vector):
        monkeypatch.setattr(module, "target", lambda: machine)
    not_one_by_one = nullcontext(lambda src: None)
    monkeypatch.setattr(kernelize, "loading", lambda: not_one_by_one)
    monkeypatch.setattr(kernelize, "Program", lambda src, name: None)


def forget_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with an empty cache of plans until the end of the test."""
    monkeypatch.setattr(kernelize, "_plans", OrderedDict())


class new_plans:
    """`with new_plans() as made: ...` and then `made.count` plans were made inside."""

    def __enter__(self) -> new_plans:
        self.before = counters.copy()
        return self

    def __exit__(self, *_: object) -> None:
        self.count = (counters - self.before).plan_misses
