"""Plans on disk: found by the next process, and never trusted when they are not whole."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from uopc import kernelize, plan_cache
from uopc.cache_folder import Folder, cache, trim_cache
from uopc.composite import buffer_data
from uopc.counters import counters
from uopc.kernelize import realize
from uopc.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernelize, "_plans", type(kernelize._plans)())
    return empty_cache


def value(scale: float = 2.0, level: int = 1) -> tuple[np.ndarray, int, int]:
    """What a graph gives in a process that remembers no plan; plans found, and lowered."""
    kernelize._plans.clear()
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    before = counters.copy()
    (buffer,) = realize([((x * scale).softmax(-1) @ x.T).uop], opt=level)
    did = counters - before
    return buffer_data(buffer), did.plans_found, did.plan_misses


def test_a_plan_is_found_again(folder: Path) -> None:
    for level in (1, 2):  # each has its own
        first, found, misses = value(level=level)
        assert (found, misses) == (0, 1)
        again, found, misses = value(level=level)
        assert (found, misses) == (1, 1)
        np.testing.assert_array_equal(first, again)
    assert value(3.0)[1] == 0  # another constant is another graph


SPOILS = {"truncated": lambda b: b[:len(b) // 2], "empty": lambda b: b"",
          "one bit": lambda b: b[:9] + bytes([b[9] ^ 1]) + b[10:], "foreign": lambda b: b"x" * 99}


@pytest.mark.parametrize("how", SPOILS)
def test_a_damaged_plan_is_made_again(how: str, folder: Path) -> None:
    first, _, _ = value()
    (path,) = folder.glob("*.plan")
    path.write_bytes(SPOILS[how](path.read_bytes()))
    again, found, _ = value()
    assert found == 0
    np.testing.assert_array_equal(first, again)
    assert value()[1] == 1  # it was written again


@pytest.mark.parametrize("content", ["[]", "{}", '{"sources": [], "kernels": [["k", 4, [], 0]]}',
                                     '{"sources": [], "kernels": [], "temps": [["f99", 3]], '
                                     '"outs": [], "results": [], "inputs": 0}',
                                     '{"sources": [], "kernels": [], "temps": [], "outs": [], '
                                     '"results": [[["in", 5], [1]]], "inputs": 1}'])
def test_a_plan_of_another_make_is_made_again(content: str, folder: Path) -> None:
    value()
    (path,) = folder.glob("*.plan")
    cache().write(content.encode(), path.name)
    assert value()[1] == 0


def test_the_key_covers_uopc_and_the_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value()
    monkeypatch.setattr(plan_cache, "_version", lambda: "another")
    assert value()[1] == 0
    assert value()[1] == 1
    monkeypatch.setattr(plan_cache, "target", lambda: "another machine")
    assert value()[1] == 0


def test_plans_are_made_anew_for_those_who_watch(folder: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    value()
    monkeypatch.setenv("SPEC", "1")
    assert value()[1] == 0


def test_a_plan_whose_objects_are_gone_compiles_them(folder: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, _ = value()
    for path in folder.glob("*.so"):
        path.unlink()
    monkeypatch.setattr("uopc.runtime._loaded", {})
    before = counters.objects_built
    again, found, _ = value()
    assert found == 1 and counters.objects_built > before
    np.testing.assert_array_equal(first, again)


MANY = """
import sys; sys.path.insert(0, {root!r})
import numpy as np
from uopc.cache_folder import trim_cache
from uopc.tensor import Tensor
x = Tensor(np.arange(30, dtype=np.float32).reshape(5, 6))
print(((x.softmax(-1) @ x.T) * 3).sum().item())
"""


def test_many_processes_share_the_folder(folder: Path) -> None:
    environment = {**os.environ, "UOPC_CACHE": str(folder)}
    running = [(level, subprocess.Popen([sys.executable, "-c", MANY.format(root=str(ROOT))],
                                        stdout=subprocess.PIPE, text=True,
                                        env={**environment, "OPT": level}))
               for level in ("1", "2") * 2]
    said = {(level, p.communicate(timeout=60)[0]) for level, p in running}
    assert len(said) == 2 and all(p.returncode == 0 for _, p in running)
    assert not list(folder.glob("build-*"))


def test_a_folder_that_is_gone_or_full_is_no_error(
        folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(folder)
    first, _, _ = value()
    assert value(3.0)[1] == 0

    write = Folder.write

    def full(self: Folder, *what: object) -> None:
        if self.path == folder:
            raise OSError(28, "No space left on device")
        write(self, *what)

    monkeypatch.setattr(Folder, "write", full)
    value(4.0)
    np.testing.assert_array_equal(value()[0], first)
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left" in line and str(folder) in line


def test_only_own_files_are_deleted(folder: Path) -> None:
    value()
    others = [folder / "main.c", folder / "lib.so", folder / "notes.plan"]
    for path in others:
        path.write_text("mine")
    trim_cache(0)
    assert sorted(folder.iterdir()) == sorted(others)


def test_what_a_killed_compiler_left_goes(folder: Path) -> None:
    value()
    old, new = folder / "build-old", folder / "build-new"
    for path in (old, new):
        path.mkdir()
        (path / "kernel.c").write_text("half")
    os.utime(old, (1, 1))
    trim_cache()
    assert not old.exists() and (new / "kernel.c").exists()


def test_the_folder_is_bounded(folder: Path) -> None:
    value()
    files = sorted(folder.iterdir())
    total = sum(path.stat().st_size // path.stat().st_nlink for path in files)
    assert trim_cache(total) == 0
    oldest = files[0]
    os.utime(oldest, (1, 1))
    assert trim_cache(total - 1) == 1 and not oldest.exists()
    assert trim_cache(0) == len(files) - 1 and not list(folder.iterdir())
    value()  # and it is filled again


def test_a_new_plan_says_what_it_needs(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEBUG", "1")
    value()
    said = capsys.readouterr().err
    assert "; needs inputs 0.000 MB, results 0.000 MB, temporaries 0.000 MB" in said
