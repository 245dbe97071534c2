"""The folder that keeps what was compiled: objects and plans.

A file ends with the names that it has, and the SHA-256 of all that: one that is damaged, or stands
under another's name, is not there. Files appear by an atomic rename; any number of processes may
share the folder, and its size is bounded. Where the folder cannot be written to, or not any more, a
temporary one takes what is new.

Its files are run as programs, so nobody else may write to it: its owner and its rights are checked
as ssh checks them, and those of each folder above it; then its files are opened relative to the
folder that was checked, whatever the working directory or the path may become.
"""
from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import itertools
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from uopc import config
from uopc.locks import rlock
from uopc.say import say

CACHE_LIMIT = 1 << 30  # bytes of plans and objects
FILES_BETWEEN_TRIMS = 500
SCRATCH_SECONDS = 3600  # after which nobody works in a folder any more
DIGEST_BYTES = hashlib.sha256().digest_size
MAX_LINKS = 40  # to follow on the way to the folder
LENGTH_BYTES = 4  # that tell how long a file's list of names is
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
BY_DESCRIPTOR = Path("/proc/self/fd")  # where Linux has open files by their numbers


class Folder:
    """An open folder that only its owner, us or root, may write to. Raises OSError for any other,
    and where there is none and none can be made."""

    def __init__(self, path: Path) -> None:
        self.path = _checked(path)
        if self.path.stat().st_mode & stat.S_ISVTX:  # a place for all, like /tmp
            self.path = _checked(self.path / f"uopc-{os.getuid()}")
        self.fd = os.open(self.path, OPEN_FLAGS | os.O_DIRECTORY)
        try:
            _check_rights(self.path, os.fstat(self.fd))
        except OSError:
            os.close(self.fd)
            raise
        self.is_writable = os.access(self.path, os.W_OK)

    def read(self, name: str) -> bytes | None:
        """The content that `write` wrote under this name; None where there is none, or it is
        damaged, or no file that we may trust."""
        try:
            with open(name, "rb", opener=self._open) as file:
                _check_rights(self.path / name, os.fstat(file.fileno()))
                body = _verified(file.read(), name)
                if body is not None:
                    with contextlib.suppress(OSError):
                        os.utime(file.fileno())  # it is in use
                return body
        except OSError:
            return None

    def _open(self, name: str, _: int) -> int:
        fd = os.open(name, OPEN_FLAGS, dir_fd=self.fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):  # nothing that reading would wait for
            os.close(fd)
            raise OSError(f"{self.path / name} is no file")
        return fd

    def write(self, content: bytes, *names: str) -> None:
        """Put a file there at once. Several names get the same file; a copy each where there are
        no links. What stands in its place goes, be it a folder."""
        with self.scratch() as scratch:
            made, link = scratch / "made", scratch / "link"
            _write(made, _signed(content, names))
            for name in names[1:]:
                try:
                    os.link(made, link)
                except OSError:
                    _write(link, _signed(content, names))
                self._put(link, name)
            self._put(made, names[0])
        if next(_written) % FILES_BETWEEN_TRIMS == 1:
            trim_cache()

    def _put(self, made: Path, name: str) -> None:
        try:
            os.replace(made, name, dst_dir_fd=self.fd)
        except IsADirectoryError:
            shutil.rmtree(self.path / name)
            os.replace(made, name, dst_dir_fd=self.fd)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for work that is not done yet."""
        with tempfile.TemporaryDirectory(dir=self.path, prefix="build-") as scratch:
            yield Path(scratch)

    def loadable(self, name: str) -> str:
        """A path by which the dynamic linker finds a file of the folder that was checked."""
        by_descriptor = BY_DESCRIPTOR / str(self.fd) / name
        return str(by_descriptor if by_descriptor.exists() else self.path / name)


def _checked(path: Path) -> Path:
    """The folder that an absolute path leads to, made where it is missing. From the root on, each
    folder and each link on the way is checked before what lies below it is looked at. Raises
    PermissionError for one that somebody else could have changed, OSError where there is no
    folder."""
    at, parts, links = Path(path.anchor), list(reversed(path.parts[1:])), 0
    while parts:
        step = at / parts.pop()
        with contextlib.suppress(FileExistsError):
            if not os.path.lexists(step):
                step.mkdir(mode=0o700)
        found = step.lstat()
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            _check_owner(step, found)
            target = Path(os.readlink(step))
            at = Path(target.anchor) if target.is_absolute() else at
            parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        elif not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{step} is no folder")
        else:
            # In a sticky folder only its owner can rename what is not theirs.
            check = _check_owner if found.st_mode & stat.S_ISVTX else _check_rights
            check(step, found)
            at = at.parent if step.name == ".." else step
    return at


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (os.getuid(), 0):
        raise PermissionError(f"{path} belongs to user {found.st_uid}")


def _check_rights(path: Path, found: os.stat_result) -> None:
    """Raises PermissionError for what somebody else could have changed."""
    _check_owner(path, found)
    if found.st_mode & OTHERS_WRITE:
        raise PermissionError(f"others may write to {path}, and its files are run as programs")


def _signed(content: bytes, names: tuple[str, ...]) -> bytes:
    listed = "\n".join(names).encode()
    whole = content + listed + len(listed).to_bytes(LENGTH_BYTES, "big")
    return whole + hashlib.sha256(whole).digest()


def _verified(content: bytes, name: str) -> bytes | None:
    """What `_signed` got, if the name is one of those that it got."""
    whole, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if hashlib.sha256(whole).digest() != digest or len(whole) < LENGTH_BYTES:
        return None
    end = len(whole) - LENGTH_BYTES
    start = end - int.from_bytes(whole[end:], "big")
    is_listed = start >= 0 and name.encode() in whole[start:end].split(b"\n")
    return whole[:start] if is_listed else None


class Cache:
    """The folder of the user's choice, and a temporary one from the time on that it is needed."""

    def __init__(self, wanted: Path) -> None:
        self.wanted = wanted
        self.folders: list[Folder] = []  # the last one takes what is new
        self._lock = rlock()  # around changes of these
        try:
            self.folders.append(Folder(wanted))
        except OSError as error:
            self.retreat(error)
        else:
            if not self.folders[0].is_writable:
                self.retreat(PermissionError("it is read-only; what it holds is used"))

    @property
    def folder(self) -> Folder:
        """The one that takes what is new."""
        return self.folders[-1]

    @property
    def has_retreated(self) -> bool:
        return self.folder.path in _temporary

    def retreat(self, error: OSError, alone: bool = False) -> None:
        """From now on what is new goes to a temporary folder; says so. If it is `alone`, nothing
        is read from another one any more. Raises OSError where there is no room for one."""
        try:
            path = Path(tempfile.mkdtemp(prefix="uopc-")).resolve()
        except OSError as problem:
            raise OSError(f"there is no folder for compiled kernels: {self.wanted} cannot be used "
                          f"({error.strerror or error}), and neither can a temporary one "
                          f"({problem.strerror or problem}); set UOPC_CACHE or TMPDIR to a folder "
                          "of your own") from None
        _temporary.add(path)
        atexit.register(_remove, path, os.getpid())
        self.folders = [*([] if alone else self.folders), Folder(path)]
        say(f"uopc: cannot use the cache folder {self.wanted} ({error.strerror or error}); "
            "compiled kernels are kept for this run only. Set UOPC_CACHE to a folder of your own.")

    def read(self, name: str) -> bytes | None:
        """The content under a name, from the first folder that has it whole."""
        return next((body for folder in self.folders
                     if (body := folder.read(name)) is not None), None)

    def find(self, name: str) -> str | None:
        """A path for the dynamic linker to a file that is there and whole; else None."""
        return next((folder.loadable(name) for folder in self.folders
                     if folder.read(name) is not None), None)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for the compiler, where what it makes will be kept, or a temporary one."""
        with contextlib.ExitStack() as stack:
            folder = self.folder
            try:
                scratch = stack.enter_context(folder.scratch())
            except OSError as error:
                self._replace(folder, error)
                scratch = stack.enter_context(self.folder.scratch())
            yield scratch

    def write(self, content: bytes, *names: str) -> None:
        """Keep a file under its names, in a temporary folder if need be. Raises OSError where that
        fails, too."""
        folder = self.folder
        try:
            folder.write(content, *names)
        except OSError as error:
            self._replace(folder, error)
            self.folder.write(content, *names)

    def _replace(self, folder: Folder, error: OSError) -> None:
        """Another folder in the place of one that could not be written to, unless another thread
        has seen to it: the same one made anew if somebody has deleted it, or a temporary one.
        Raises the error if it was temporary."""
        with self._lock:
            if folder is not self.folder:
                return
            if os.fstat(folder.fd).st_nlink == 0:
                with contextlib.suppress(OSError):
                    self.folders[-1] = Folder(folder.path)
                    return
            if self.has_retreated:
                raise error
            self.retreat(error)


_temporary: set[Path] = set()
_written = itertools.count(1)


def _remove(path: Path, pid: int) -> None:
    """At the end of the process that made it, not of one that it has forked."""
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """A new file that nobody else may write to, or read."""
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)


@functools.cache
def _cache(wanted: str, home_cache: str) -> Cache:
    """By the values of UOPC_CACHE and XDG_CACHE_HOME, which are made absolute once."""
    folder = os.path.expanduser(wanted or os.path.join(home_cache or "~/.cache", "uopc"))
    if folder.startswith("~"):  # nobody's home: a folder of our own in the place for all
        folder = tempfile.gettempdir()
    return Cache(Path(os.path.abspath(folder)))


def cache() -> Cache:
    """The cache that the environment asks for: UOPC_CACHE, or `uopc` in the user's cache folder."""
    return _cache(config.read("UOPC_CACHE"), config.read("XDG_CACHE_HOME"))


def cache_folder() -> Path:
    """Where new objects and plans are kept."""
    return cache().folder.path


OWN_FILE = re.compile(r"[0-9a-f]{40}\.(so|plan|c)")
OWN_SCRATCH = re.compile(r"build-\w+")


def trim_cache(limit: int = CACHE_LIMIT) -> int:
    """Delete what was used longest ago until uopc's files in the folder take at most `limit` bytes;
    returns how many went. Another process may delete the same ones, and one that has loaded an
    object keeps it. What a compiler that was killed has left goes, too."""
    found = []
    for path in cache_folder().iterdir():
        with contextlib.suppress(OSError):
            known = path.stat()
            if OWN_SCRATCH.fullmatch(path.name) and path.is_dir():
                if known.st_mtime < time.time() - SCRATCH_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            elif OWN_FILE.fullmatch(path.name) and path.is_file():
                found.append((known.st_mtime, known.st_size // known.st_nlink, path))
    total, gone = sum(size for _, size, _ in found), 0
    for _, size, path in sorted(found):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            gone += 1
            total -= size
    return gone
