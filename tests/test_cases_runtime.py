"""Cases that users of small ML compilers reported: the compiler, its C, threads; at every level.

Values stand in arrays longer than a vector register, so that the fast loops compute them too.
"""
from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from uopc import config
from uopc.dtype import dtypes
from uopc.runtime import compiler
from uopc.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]
LONG = 37
INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True, params=config.LEVELS, ids=lambda n: f"level{n}")
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("OPT", str(request.param))
    return request.param


def filled(*values: float, dtype: type = np.float32) -> Tensor:
    """`values` again and again."""
    return Tensor(np.resize(np.array(values, dtype), LONG * len(values)))


def assert_repeats(got: Tensor, *values: float, dtype: type = np.float32) -> None:
    want = np.resize(np.array(values, dtype), LONG * len(values))
    assert got.numpy().dtype == want.dtype
    np.testing.assert_array_equal(got.numpy(), want)


def in_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=60)


def compiler_command() -> str:
    return shlex.join(compiler())


# *** values ***


def test_a09_casts_of_constants_and_of_data_agree() -> None:
    for value, dtype, want in ((2147483646.0, dtypes.i32, 2147483647),  # 2147483648 as f32
                               (-3.0, dtypes.u32, 0), (-3.0, dtypes.u8, 0), (NAN, dtypes.i32, 0)):
        assert_repeats(filled(value).cast(dtype), want, dtype=dtype.np)
        assert_repeats(Tensor.full((LONG,), value).cast(dtype), want, dtype=dtype.np)


def test_a36_the_smallest_number_times_infinity() -> None:
    smallest = filled(1e-45)
    assert_repeats(smallest * filled(INF), INF)
    assert_repeats(smallest * INF, INF)
    assert_repeats(filled(INF) * 1e-45, INF)
    assert_repeats(smallest * 3, 4.2e-45)  # three times 1.4e-45: nothing is flushed to zero


def test_a37_log_sum_exp_of_squared_distances() -> None:
    x, centres = np.array([0.3, -1.2]), np.array([[0.5, 0.5], [-1.0, 2.0]])

    def value(scale: np.ndarray) -> float:
        exponents = -np.square((x - centres) * scale).sum(1)
        return float(np.log(np.exp(exponents).sum()) - np.square(scale).sum())

    scale = Tensor([1.0, 1.0], requires_grad=True)
    distances = (Tensor(x).float() - Tensor(centres).float()) * scale
    y = (-distances.square().sum(1)).logsumexp() - scale.square().sum()
    y.backward()
    step = 1e-4 * np.eye(2)
    slopes = [(value(1 + d) - value(1 - d)) / 2e-4 for d in step]
    assert y.item() == pytest.approx(value(np.ones(2)), abs=1e-5)
    np.testing.assert_allclose(scale.grad.numpy(), slopes, atol=1e-2)


def test_a41_the_sum_of_62500_equal_numbers(level: int) -> None:
    """Level 0 adds one after the other, in f32, so it is off by 11."""
    total = Tensor(np.full((250, 250), 1.23456, np.float32)).sum().item()
    assert total == pytest.approx(77160.0, abs=0.1 if level else 12)


def test_a42_maximum_and_minimum_with_nan() -> None:
    for values in ([1, NAN], [NAN, 1], [1] * LONG + [NAN]):
        x = Tensor(np.float32(values))
        assert np.isnan(x.max().item()) and np.isnan(x.min().item()), values
    a, b = filled(2, 1, NAN, NAN), filled(NAN, 5, 3, NAN)
    assert_repeats(a.maximum(b), NAN, 5, NAN, NAN)
    assert_repeats(a.minimum(b), NAN, 1, NAN, NAN)


def test_a43_maximum_of_64_bit_integers() -> None:
    x = filled(-3, 2, -2**40, 2**62, dtype=np.int64)
    assert_repeats(x.maximum(-x), 3, 2, 2**40, 2**62, dtype=np.int64)


def test_a44_bytes_wrap_before_they_are_widened() -> None:
    x = filled(200, dtype=np.uint8)
    assert_repeats(x + 100, 44, dtype=np.uint8)
    assert_repeats((-(x + 100)).cast(dtypes.i32), 212, dtype=np.int32)


# *** beside other libraries ***

THREADED = """
import numpy as np
ones = np.ones((512, 512), np.float32)

def numpy_product():
    assert (ones @ ones)[3, 4] == 512

def uopc_product():
    from uopc.tensor import Tensor
    assert (Tensor(ones) @ Tensor(ones)).numpy()[3, 4] == 512

def torch_product():
    import torch
    assert (torch.ones(512, 512) @ torch.ones(512, 512))[3, 4] == 512

def sklearn_product():
    from sklearn.cluster import KMeans
    KMeans(2, n_init=1).fit(ones[:, :2] + np.arange(512)[:, None])
"""


@pytest.mark.parametrize("other", ["numpy", "torch", "sklearn"])
def test_a39_threads_of_another_library(other: str) -> None:
    """Whichever is imported, and starts its threads, first."""
    if in_new_process(f"import {other}").returncode:
        pytest.skip(f"needs {other}")
    for order in ([other, "uopc"], ["uopc", other]):
        calls = "".join(f"{name}_product()\n" for name in order * 2)
        done = in_new_process(THREADED + calls)
        assert done.returncode == 0, f"{order}: {done.stderr}"


# *** starting ***

ONE_ADDITION = """
from uopc.counters import counters
from uopc.tensor import Tensor
print((Tensor([1.0]) + Tensor([2.0])).item(), counters.objects_built)
"""


def test_a40_nothing_is_compiled_a_second_time(tmp_path: Path) -> None:
    """The compiler is asked what it is, once per process, and no more."""
    calls, logging = tmp_path / "calls", tmp_path / "logging-cc"
    logging.write_text(f'#!/bin/sh\necho "$@" >>{calls}\nexec {compiler_command()} "$@"\n')
    logging.chmod(0o700)
    environment = {"CC": str(logging), "UOPC_CACHE": str(tmp_path / "cache"), "DEBUG": "1"}
    built = []
    for _ in range(2):
        calls.write_text("")
        done = in_new_process(ONE_ADDITION, **environment)
        result, count = done.stdout.split()
        built.append(int(count))
        made = calls.read_text().splitlines()
        assert result == "3.0" and len(made) == 1 + built[-1]
        assert sum("-dM -E" in call for call in made) == 1
        assert done.stderr and str(logging) not in done.stderr
    assert built[0] > 0 and built[1] == 0


# *** threads ***

TRAINING = """
import numpy as np
from uopc import nn
from uopc.tensor import Tensor
x = Tensor(np.linspace(-1, 1, 96 * 128, dtype=np.float32).reshape(96, 128))
w = Tensor(np.zeros((128, 64), np.float32), requires_grad=True)
optimizer = nn.SGD([w], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = (x @ w - 1).square().mean()
    loss.backward()
    optimizer.step(loss)
    print(loss.item())
"""
WITHOUT_OPENMP = """#!/bin/sh
case "$*" in *-fopenmp*) echo "no OpenMP here" >&2; exit 1;; esac
exec {cc} "$@"
"""


def lines_on_threads(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if "threads" in line]


def test_a45_the_log_says_how_many_threads_and_why(tmp_path: Path, level: int) -> None:
    poor = tmp_path / "poor-cc"
    poor.write_text(WITHOUT_OPENMP.format(cc=compiler_command()))
    poor.chmod(0o700)
    full = in_new_process(TRAINING, DEBUG="1", OMP_NUM_THREADS="3")
    alone = in_new_process(TRAINING, DEBUG="1", CC=str(poor), UOPC_CACHE=str(tmp_path / "cache"))
    assert full.stdout and full.stdout == alone.stdout, full.stderr + alone.stderr
    silent = in_new_process(TRAINING, DEBUG="0")
    assert (silent.stdout, silent.stderr) == (full.stdout, "")
    if level == 0 or len(os.sched_getaffinity(0)) == 1:  # no loop is shared out
        assert lines_on_threads(full.stderr) == lines_on_threads(alone.stderr) == []
    else:
        assert lines_on_threads(alone.stderr) == [f"uopc: threads: 1 ({poor} has no OpenMP)"]
        (said,) = lines_on_threads(full.stderr)
        assert said.startswith("uopc: threads: 3 (OpenMP; OMP_NUM_THREADS")
