"""A short stride of each fuzzer in tests/fuzz; `./run.sh fuzz` is the long run."""
from __future__ import annotations

import pytest

from tests.fuzz.run import NAMES, cases, fuzzer


@pytest.mark.parametrize("name", NAMES)
def test_stride_finds_no_fault(name: str) -> None:
    found = cases(name, fuzzer(name).STRIDE, seed=1)
    assert found
    assert not [f"{case.ending}: {case.what}" for case in found if case.is_fault]
