"""The C of whole plans, compared byte for byte with the files in golden/: at level 0, and at levels
1 and 2 for a fixed machine.

People learn from reading this C, so a change of it has to be seen: after one that is meant, run
`pytest tests/test_golden.py --update-golden` and read the diff.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_checks import AVX2, layer_norm, plan_for, ramp, refs

from uopc.kernelize import Plan, make_plan
from uopc.tensor import Tensor

GOLDEN = Path(__file__).parent / "golden"


def embedding(table: Tensor) -> Tensor:
    return table[Tensor([[1, 2], [3, 1]])]


def embedding_gradient() -> Tensor:
    table = ramp(10, 4)
    embedding(table).square().sum().backward([table])
    return table.grad


GRAPHS: dict[str, Callable[[], Tensor]] = {
    "elementwise_chain": lambda: (ramp(2, 4) * 2 + 1).relu() * 3,
    "row_sum": lambda: ramp(4, 8).sum(1),
    "softmax_cut": lambda: ramp(4, 8).softmax(-1),
    "softmax_fused": lambda: ramp(4, 8).softmax(-1),
    "layer_norm_matmul_staged": lambda: layer_norm(ramp(128, 256)) @ ramp(256, 256),
    "layer_norm_matmul_unstaged": lambda: layer_norm(ramp(128, 256)) @ ramp(256, 256),
    "chained_matmul_fused": lambda: (ramp(8, 8) @ ramp(8, 8)) @ ramp(8, 8),
    "int_times_zero": lambda: Tensor([1, 2, 3]) * 0,
    "embedding": lambda: embedding(ramp(10, 4)),
    "embedding_gradient": embedding_gradient,
    "padded": lambda: (ramp(2, 3) * 2).pad([(1, 0), (2, 1)]),
    "argmax": lambda: ramp(3, 5).argmax(-1),
}


def layer_norm_gradient() -> list[Tensor]:
    x, weight, bias = ramp(64, 96), ramp(96), ramp(96) + 1
    y = layer_norm(x) * weight + bias
    (y * ramp(64, 96)).sum().backward([x, weight, bias])
    return [y, x.grad, weight.grad, bias.grad]


def attention() -> Tensor:
    q, k, v = (ramp(1, 2, 48, 16) * n for n in (1, 2, 3))
    past = Tensor.arange(48).unsqueeze(1) >= Tensor.arange(48)
    return past.where(q @ k.transpose() * 0.25, -math.inf).softmax(-1) @ v


LAYERS: dict[str, Callable[[], Tensor | list[Tensor]]] = {
    "softmax": lambda: ramp(64, 96).softmax(-1),
    "layer_norm_gradient": layer_norm_gradient,
    "attention": attention,
    "linear_gelu": lambda: (ramp(48, 40) @ ramp(40, 65) + ramp(65)).gelu(),
}


def text(plan: Plan) -> str:
    """Each kernel's C below a line that says what it is called with."""
    return "\n".join(f"// {k.name}: {args}\n{k.src}"
                     for k, args in zip(plan.kernels, refs(plan), strict=True))


@pytest.mark.parametrize("name", GRAPHS)
def test_golden(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.endswith("_unstaged"):
        monkeypatch.setattr("uopc.kernelize.stage_broadcast_compute", list)
    plan, _ = make_plan([GRAPHS[name]().uop], fuse_reduce=name.endswith("_fused"))
    compare(plan, name, request)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
def test_golden_of_a_machine(name: str, level: int, request: pytest.FixtureRequest,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    plan_for(monkeypatch, AVX2)
    results = LAYERS[name]()
    roots = [t.uop for t in (results if isinstance(results, list) else [results])]
    compare(make_plan(roots, opt=level)[0], f"{name}_level{level}", request)


def compare(plan: Plan, name: str, request: pytest.FixtureRequest) -> None:
    path = GOLDEN / f"{name}.c"
    if request.config.getoption("--update-golden"):
        path.write_text(text(plan))
    assert path.exists(), f"{path.name} is missing: run pytest with --update-golden"
    assert text(plan) == path.read_text()


def test_no_golden_is_left_over() -> None:
    of_machines = {f"{name}_level{level}" for name in LAYERS for level in (1, 2)}
    assert {path.stem for path in GOLDEN.iterdir()} == GRAPHS.keys() | of_machines
