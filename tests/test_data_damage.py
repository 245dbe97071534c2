"""Prepared data that was damaged, by each kind once, and what killed processes leave behind."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import stat
from pathlib import Path

import pytest

import data.store
from data import load_dataset
from data.files import SCRATCH_PREFIX
from data.store import cache_root, writable_folder
from tests.fuzz.data_folders import KINDS, damage
from tests.fuzz.harness import outcome_of

TEXT = "Nothing is lost: é, € and 𝄞 stay as they are.\n" * 20
NOBODY = 65534  # a user without rights
OTHER = TEXT.translate({ord("N"): "M", ord("M"): "N"})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_damage_is_prepared_again(
    kind: str, corpus: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = corpus.with_name("other.txt")
    other.write_text(OTHER, encoding="utf-8")
    root = corpus.parent / "prepared"
    strange = load_dataset(str(other), data_dir=root).folder
    folder = load_dataset(str(corpus), data_dir=root).folder
    damage(kind, random.Random(5), folder, strange)
    for _ in range(2):
        found = load_dataset(str(corpus), data_dir=root)
        assert found.tokenizer.decode([*found.train, *found.val]) == TEXT
    said = [s for s in capfd.readouterr().err.splitlines() if "was in the way" not in s]
    assert len(said) <= 1 and all(s.endswith("prepared again") for s in said)


def test_what_stood_in_the_way_is_put_aside(
    corpus: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = corpus.parent / "prepared"
    folder = load_dataset(str(corpus), data_dir=root).folder
    (folder / "val.bin").unlink()
    (folder / "val.bin").mkdir()
    (folder / "val.bin" / "theirs").write_text("kept")
    load_dataset(str(corpus), data_dir=root)
    (theirs,) = folder.glob("val.bin-aside-*/val.bin/theirs")
    assert theirs.read_text() == "kept" and str(theirs.parent) in capfd.readouterr().err


def test_scratch_folders_of_dead_processes_are_swept(corpus: Path) -> None:
    root = corpus.parent / "prepared"
    folder = load_dataset(str(corpus), data_dir=root).folder
    places = (root, folder)
    dead = [place / f"{SCRATCH_PREFIX}abcd123_" for place in places]
    alive = [place / f"{SCRATCH_PREFIX}alive123" for place in places]
    theirs = [place / f"{SCRATCH_PREFIX}theirs" for place in places]  # a name that we do not give
    filled = root / f"{SCRATCH_PREFIX}filled12"  # holds a folder, which ours never do
    for path in (*dead, *alive, *theirs, filled):
        path.mkdir()
        (path / "train.bin").write_bytes(b"half")
    (filled / "more").mkdir()
    locks = [os.open(path, os.O_RDONLY) for path in alive]
    try:
        for lock in locks:
            fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "meta.json").unlink()
        load_dataset(str(corpus), data_dir=root)
    finally:
        for lock in locks:
            os.close(lock)
    assert not [path for path in dead if path.exists()]
    assert all(path.exists() for path in (*alive, *theirs, filled / "more"))


def test_a_killed_preparation_leaves_nothing_for_ever(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock ends with the process, however it ends."""
    root = corpus.parent / "prepared"
    folder = load_dataset(str(corpus), data_dir=root).folder
    (folder / "meta.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(data.store, "_write_files", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        outcome = outcome_of(lambda: load_dataset(str(corpus), data_dir=root))
    assert outcome.code == -signal.SIGKILL
    assert list(folder.glob(f"{SCRATCH_PREFIX}*"))
    load_dataset(str(corpus), data_dir=root)
    assert sorted(path.name for path in folder.iterdir()) == ["meta.json", "train.bin", "val.bin"]


def test_the_cache_folder_is_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code lies there, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / ".cache"))
    before = os.umask(0o002)
    try:
        writable_folder([cache_root() / "corpus-char"])
    finally:
        os.umask(before)
    for folder in (cache_root(), cache_root().parent, tmp_path / "home" / ".cache"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_place_without_rights_is_named(corpus: Path) -> None:
    """By a user who is not root, whom rights do not stop."""
    root = corpus.parent / "prepared"
    root.mkdir()
    corpus.parent.chmod(0o755)
    if os.getuid() == 0:
        os.chown(root, NOBODY, NOBODY)

    def load() -> None:
        os.chdir(corpus.parent)  # before: another user may not pass the folders above
        if os.getuid() == 0:
            os.setuid(NOBODY)
        load_dataset(corpus.name, data_dir="prepared")

    assert outcome_of(load).code == 0
    (folder,) = root.iterdir()
    for path, said in ((folder / "meta.json", "meta.json: Permission denied; prepared again"),
                       (folder / "val.bin", "val.bin: Permission denied; prepared again"),
                       (folder, f"cannot write prepared/{folder.name} (Permission denied)"),
                       (root, "cannot write prepared (Permission denied)")):
        mode = path.stat().st_mode
        path.chmod(0)
        outcome = outcome_of(load)
        path.chmod(mode)
        assert said in outcome.output
        assert (outcome.code == 0) == said.endswith("again")
