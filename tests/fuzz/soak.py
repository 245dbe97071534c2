"""A long life: many different graphs in one process, whose mappings, open files and memory stay
where they were."""
from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.fuzz.harness import Case
from uopc import kernelize
from uopc.tensor import Tensor

COUNT, STRIDE = 3000, 40
PLANS = 6  # kept, so that a stride comes to their end, too
MAPPINGS, FILES, MEMORY = 100, 4, 40 << 20  # that may come and go


def state() -> tuple[int, int, int]:
    """(memory mappings, open files, bytes of memory) of this process."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    return (len(Path("/proc/self/maps").read_text().splitlines()),
            len(os.listdir("/proc/self/fd")), resident * os.sysconf("SC_PAGE_SIZE"))


def compute(rng: random.Random, number: int) -> bool:
    """A graph that was not there before; whether its value is right."""
    rows, columns = rng.randrange(1, 40), rng.randrange(1, 40)
    data = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) / 100
    x = Tensor(data)
    scale = 1 + number / 1024
    got = [((x * scale + 1).sum(rng.randrange(2) if rows == columns else 0) * 2).sum().item()]
    want = [2 * (data * scale + 1).sum()]
    if rng.random() < 0.2:
        got.append((x.exp().softmax(-1) * scale).sum().item())
        want.append(rows * scale)
    return bool(np.allclose(got, want, rtol=1e-4))


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    limit = kernelize.PLAN_LIMIT
    kernelize.PLAN_LIMIT = PLANS
    try:
        first = rng.randrange(1 << 16)
        warm_up = min(count // 2, 2 * PLANS)
        for number in range(warm_up):
            compute(rng, first + number)
        before = state()
        for number in range(warm_up, count):
            ending = "right" if compute(rng, first + number) else "wrong"
            now = state() if number % 500 == 499 or number == count - 1 else before
            grown = [b - a for a, b in zip(before, now, strict=True)]
            flat = all(g <= most for g, most in zip(grown, (MAPPINGS, FILES, MEMORY), strict=True))
            yield Case(f"{number}: {grown} more (mappings, files, bytes) than {before}",
                       ending if flat else "wrong")
    finally:
        kernelize.PLAN_LIMIT = limit
