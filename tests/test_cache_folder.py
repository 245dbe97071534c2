"""The cache folder: whose it must be, what is never loaded from it, and what happens instead."""
from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from uopc.cache_folder import Cache, Folder, _cache, cache, cache_folder

ROOT = Path(__file__).resolve().parents[1]
STRANGER = 12345  # a user who is not us
NAME, OTHER = "a" * 40 + ".plan", "b" * 40 + ".plan"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "cache")


def test_a_file_is_what_was_written_under_its_name(folder: Folder) -> None:
    folder.write(b"one", NAME)
    folder.write(b"two", OTHER, "c.so")
    assert folder.read(NAME) == b"one"
    assert folder.read(OTHER) == folder.read("c.so") == b"two"
    assert folder.read("d.so") is None
    assert not list(folder.path.glob("build-*"))


def test_exchanged_names_are_noticed(folder: Folder) -> None:
    """The content would be right for another key."""
    folder.write(b"one", NAME)
    folder.write(b"two", OTHER)
    first, second = folder.path / NAME, folder.path / OTHER
    first.rename(folder.path / "aside")
    second.rename(first)
    (folder.path / "aside").rename(second)
    assert folder.read(NAME) is None and folder.read(OTHER) is None
    folder.write(b"one", NAME)
    assert folder.read(NAME) == b"one"


def unreadable(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0)


PLACES: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo, "folder": Path.mkdir, "link": lambda p: p.symlink_to("/etc/passwd"),
    "loop": lambda p: p.symlink_to(p), "device": lambda p: p.symlink_to("/dev/zero"),
    "socket": lambda p: socket.socket(socket.AF_UNIX).bind(str(p)[-100:]), "empty": Path.touch,
    "unreadable": unreadable,
}


@pytest.mark.parametrize("what", PLACES)
def test_what_is_no_file_is_not_there(what: str, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path / "c")
    monkeypatch.chdir(folder.path)
    PLACES[what](Path(NAME) if what == "socket" else folder.path / NAME)
    assert folder.read(NAME) is None
    folder.write(b"one", NAME)  # and it makes room for one
    assert folder.read(NAME) == b"one"


def test_a_file_that_others_may_write_to_is_not_there(folder: Folder) -> None:
    folder.write(b"one", NAME)
    (folder.path / NAME).chmod(0o666)
    assert folder.read(NAME) is None
    folder.write(b"one", NAME)
    if os.getuid() == 0:
        os.chown(folder.path / NAME, STRANGER, STRANGER)
        assert folder.read(NAME) is None


def test_each_folder_above_is_checked(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    Folder(shared / "mine" / "cache")
    for mode in (0o777, 0o775):
        shared.chmod(mode)
        with pytest.raises(PermissionError, match=f"others may write to {shared},"):
            Folder(shared / "mine" / "cache")
    shared.chmod(0o1777)  # where nobody can rename what is not theirs
    Folder(shared / "mine" / "cache")
    for mode in (0o755, 0o1777) if os.getuid() == 0 else ():
        os.chown(shared, STRANGER, STRANGER)
        shared.chmod(mode)  # the owner of a sticky folder may rename what lies in it
        with pytest.raises(PermissionError, match=f"{shared} belongs to user {STRANGER}"):
            Folder(shared / "mine" / "cache")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a link away")
def test_a_link_of_somebody_else_is_not_followed(tmp_path: Path) -> None:
    """Else a stranger chooses which of our folders is the cache."""
    Folder(tmp_path / "mine")
    (tmp_path / "link").symlink_to("mine")
    assert Folder(tmp_path / "link" / ".." / "link").path == tmp_path / "mine"
    os.chown(tmp_path / "link", STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(PermissionError, match=f"link belongs to user {STRANGER}"):
        Folder(tmp_path / "link")


def test_a_refused_folder_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError):
        Folder(tmp_path / "open" / "new" / "cache")
    assert not list((tmp_path / "open").iterdir())


def test_new_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        folder = Folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in (folder.path, folder.path.parent)} == {0o700}


def test_without_a_home_a_private_folder_serves(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "all"))
    monkeypatch.setenv("UOPC_CACHE", "~nobody-of-this-name/x")
    _cache.cache_clear()
    assert cache_folder() == tmp_path / "all" / f"uopc-{os.getuid()}"
    _cache.cache_clear()


def test_a_link_of_the_user_is_followed_and_its_target_checked(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    folder = Folder(tmp_path / "cache")
    folder.write(b"one", NAME)
    assert (tmp_path / "disk" / NAME).exists() and folder.read(NAME) == b"one"
    (tmp_path / "disk").chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        Folder(tmp_path / "cache")


def test_a_relative_folder_stays_where_it_was(tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a program that changes its folder would run what it finds there."""
    monkeypatch.setenv("UOPC_CACHE", "some-cache")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    _cache.cache_clear()
    mine = cache()
    mine.write(b"one", NAME)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache().read(NAME) == b"one" and cache_folder() == tmp_path / "some-cache"
    assert mine.find(NAME).startswith("/") and not list((tmp_path / "elsewhere").iterdir())
    _cache.cache_clear()


def test_a_folder_that_is_exchanged_after_the_check_is_not_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "cache")
    folder.write(b"mine", NAME)
    (tmp_path / "cache").rename(tmp_path / "moved")
    forged = Folder(tmp_path / "cache")
    forged.write(b"forged", NAME)
    assert folder.read(NAME) == b"mine"
    with open(folder.loadable(NAME), "rb") as file:
        assert file.read().startswith(b"mine")


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, value, place in (("UOPC_CACHE", "~/mine", "mine"),
                                   ("XDG_CACHE_HOME", "~/caches", "caches/uopc"),
                                   ("UOPC_CACHE", "", ".cache/uopc")):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("UOPC_CACHE", "")
        monkeypatch.setenv(variable, value)
        _cache.cache_clear()
        assert cache_folder() == tmp_path / place
    _cache.cache_clear()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")
def test_a_stranger_cannot_run_code(tmp_path: Path) -> None:
    """The attack: another user owns a folder above, or what a relative path leads to."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_mode & stat.S_ISVTX:
            break
        parent.chmod(0o755)
    place = tmp_path / "theirs"
    pid = os.fork()
    if pid == 0:
        os._exit(_as_stranger(lambda: (place.mkdir(), (place / "cache").mkdir())))
    assert os.waitpid(pid, 0)[1] != 0  # they cannot write here
    place.mkdir()
    os.chown(place, STRANGER, STRANGER)
    pid = os.fork()
    if pid == 0:
        os._exit(_as_stranger((place / "cache").mkdir))
    assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(PermissionError, match=str(STRANGER)):
        Folder(place / "cache")
    os.chown(place / "cache", 0, 0)  # a folder of our own below theirs is no better
    with pytest.raises(PermissionError, match=f"{place} belongs to user {STRANGER}"):
        Folder(place / "cache")


def _as_stranger(act: Callable[[], object]) -> int:
    try:
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)
        act()
    except OSError:
        return 1
    return 0


def test_what_is_read_only_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    Folder(tmp_path / "cache").write(b"one", NAME)
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    found = Cache(tmp_path / "cache")
    found.write(b"two", OTHER)
    assert found.read(NAME) == b"one" and found.read(OTHER) == b"two"
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [NAME]
    (line,) = capsys.readouterr().err.splitlines()
    assert "read-only" in line and str(tmp_path / "cache") in line


def test_a_folder_that_goes_away_comes_again(tmp_path: Path) -> None:
    found = Cache(tmp_path / "cache")
    (tmp_path / "cache").rmdir()
    found.write(b"one", NAME)
    assert found.read(NAME) == b"one" and (tmp_path / "cache" / NAME).exists()


FORKS = """
import os, sys; sys.path.insert(0, {root!r})
from uopc.cache_folder import cache, cache_folder
folder = cache_folder()
if os.fork() == 0:
    sys.exit()
os.wait()
print(folder.exists())
"""


def test_a_child_leaves_its_parents_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run([sys.executable, "-c", FORKS.format(root=str(ROOT))], text=True,
                          capture_output=True,
                          env={**os.environ, "UOPC_CACHE": str(tmp_path / "file" / "cache"),
                               "TMPDIR": str(tmp_path)})
    assert done.stdout == "True\n" and len(done.stderr.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["file"], "and the parent removes it"
