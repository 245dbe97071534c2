"""The options of the test suite, and fixtures that several test files use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from uopc import cache_folder, compiler, runtime


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true",
                     help="write the C that comes out now into tests/golden; then read the diff")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of compiled objects, in a process that has loaded and looked up nothing.

    Elsewhere the tests use the user's own cache, so that they need not compile everything anew.
    """
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("UOPC_CACHE", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(runtime, "_loaded", {})
    lookups = (compiler._find_compiler, cache_folder._cache, compiler.probe)
    for lookup in lookups:
        lookup.cache_clear()
    yield folder
    for lookup in lookups:
        lookup.cache_clear()
