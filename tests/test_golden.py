"""The C of whole plans at level 0, compared byte for byte with the files in golden/.

People learn from reading this C, so a change of it has to be seen: after one that is meant, run
`pytest tests/test_golden.py --update-golden` and read the diff.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_checks import layer_norm, ramp, refs

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


def text(plan: Plan) -> str:
    """Each kernel's C below a line that says what it is called with."""
    return "\n".join(f"// {k.name}: {args}\n{k.src}"
                     for k, args in zip(plan.kernels, refs(plan), strict=True))


@pytest.mark.parametrize("name", GRAPHS)
def test_golden(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.endswith("_unstaged"):
        monkeypatch.setattr("uopc.kernelize.stage_broadcast_compute", list)
    plan, _ = make_plan([GRAPHS[name]().uop], fuse_reduce=name.endswith("_fused"))
    path = GOLDEN / f"{name}.c"
    if request.config.getoption("--update-golden"):
        path.write_text(text(plan))
    assert path.exists(), f"{path.name} is missing: run pytest with --update-golden"
    assert text(plan) == path.read_text()


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(GRAPHS)
