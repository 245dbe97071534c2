"""Which kernels may run together, and how threads share out their steps."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from uopc import config
from uopc.kernelize import make_plan
from uopc.memory import address
from uopc.phases import phases
from uopc.runtime import Program, Tasks
from uopc.tensor import Tensor

ROOT = Path(__file__).parents[1]
IN, OTHER = ("in", 0), ("in", 1)


def tmp(k: int) -> tuple[str, int]:
    return ("tmp", k)


def test_a_kernel_comes_after_what_it_reads() -> None:
    chain = [([IN], [tmp(0)]), ([tmp(0)], [tmp(1)]), ([tmp(1), tmp(0)], [("out", 0)])]
    assert phases(chain) == [[0], [1], [2]]
    assert phases([([IN], [("out", 0)]), ([IN], [("out", 1)]), ([("out", 0)], [("out", 2)])]) == [
        [0, 1], [2]]
    assert phases([]) == []
    assert phases([([IN], [])]) == [[0]]


def test_what_reads_only_inputs_waits_until_it_is_needed() -> None:
    uses = [([OTHER], [tmp(9)]), ([IN], [tmp(0)]), ([tmp(0)], [tmp(1)]),
            ([tmp(1), tmp(9)], [("out", 0)])]
    assert phases(uses) == [[1], [0, 2], [3]]


def test_kernels_of_one_phase_write_to_memory_of_their_own() -> None:
    x = Tensor(np.ones((40, 50), np.float32))
    parts = [(x * k).contiguous().sum(k % 2) for k in range(6)]
    plan, _ = make_plan([p.uop for p in parts], opt=config.LEVELS[-1])
    storage = plan._shared_storage()
    for phase in plan.phases:
        used = {k for n in phase for kind, k in plan.kernels[n].refs if kind == "tmp"}
        ends = sorted((address(storage[k]), storage[k].nbytes) for k in used)
        assert all(a + n <= b for (a, n), (b, _) in zip(ends, ends[1:], strict=False))


COUNTING = """enum {{count_steps = {steps}}};
void count(int* restrict data0, long first, long last) {{
  for (long k = first; k < last; k++) data0[k] += 1;
}}
"""
AFTER = """enum {{after_steps = {steps}}};
void after(int* restrict data0, int* restrict data1, long first, long last) {{
  for (long k = first; k < last; k++) data1[k] = data0[{steps}-1-k]*(k+1);
}}
"""


@pytest.mark.parametrize("steps", [2, 3, 17, 1000, 54_321])
def test_every_step_is_done_once_and_after_its_phase(steps: int) -> None:
    count, after = (Program(src.format(steps=steps), name)
                    for src, name in ((COUNTING, "count"), (AFTER, "after")))
    tasks = Tasks([count, after, after], [[0], [1, 2]])
    for _ in range(50):
        data = [np.zeros(steps, np.int32) for _ in range(3)]
        table = np.array([address(data[k]) for k in (0, 0, 1, 0, 2)], np.uintp)
        tasks(address(table))
        assert (data[0] == 1).all()
        assert (data[1] == np.arange(1, steps + 1)).all() and (data[2] == data[1]).all()


def test_the_log_has_every_chunk() -> None:
    count = Program(COUNTING.format(steps=100), "count")
    tasks, data = Tasks([count, count], [[0], [1]]), np.zeros(100, np.int32)
    table, log = np.array([address(data)] * 2, np.uintp), tasks.new_log()
    tasks(address(table), log)
    seen = log[log[:, 3] > 0]
    assert set(seen[:, 0]) == {0, 1} and (seen[:, 3] >= seen[:, 2]).all()
    first, second = (seen[seen[:, 0] == k] for k in (0, 1))
    assert first[:, 3].max() <= second[:, 2].min()  # one phase after the other


MANY = """
import sys; sys.path.insert(0, {root!r})
import numpy as np
from uopc.tensor import Tensor
x = Tensor(np.ones((300, 300), np.float32))
for _ in range(20):
    y = (x @ x * 0.01).softmax(-1)
    assert abs(float(y.sum().item()) - 300) < 1e-2
"""


@pytest.mark.parametrize("threads", [1, 2, 7, 64])
def test_more_threads_than_cores(threads: int) -> None:
    subprocess.run([sys.executable, "-c", MANY.format(root=str(ROOT))], check=True, timeout=120,
                   env={**os.environ, "OMP_NUM_THREADS": str(threads)})
