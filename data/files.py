"""Files that may be anything: read without waiting and within bounds, written where nobody else is.

    read_bounded("meta.json", 1 << 20)   →  its bytes, or ValueError: it is a FIFO, not a file
    with scratch_folder(place) as folder:   files that are moved to their own places when whole
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

SCRATCH_PREFIX = ".writing-"
_OWN_SCRATCH = re.compile(re.escape(SCRATCH_PREFIX) + r"[a-z0-9_]{8}")  # as tempfile names them


def path_of(text: str | Path) -> Path:
    """The path that `text` means: `~` is the user's home, and a name that the locale cannot
    encode (it comes from a program, or from a run in another locale) is meant in UTF-8."""
    name = os.path.expanduser(str(text))
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = os.fsdecode(name.encode("utf-8", "surrogateescape"))
    return Path(name)


def kind_of(mode: int) -> str:
    """What a file of this `st_mode` is, in words."""
    kinds = ((stat.S_ISREG, "a file"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"),
             (stat.S_ISSOCK, "a socket"), (stat.S_ISLNK, "a symbolic link"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")


def open_file(path: Path) -> BinaryIO:
    """A regular file, or a link to one, opened for reading; never waits for a writer.

    Raises ValueError if it is something else, OSError if it cannot be opened.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path.name} is {kind_of(mode)}, not a file")
    # It may have been replaced since: then it is at least not waited for.
    return open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a regular file. Raises as `open_file`, ValueError if it is beyond `limit`."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ValueError(f"{path.name} has {size:,} bytes, at most {limit:,} were expected")
        return file.read(size)


@contextlib.contextmanager
def scratch_folder(place: Path) -> Iterator[Path]:
    """A new folder in `place` for unfinished files; it is removed at the end.

    It is locked meanwhile, so what a killed process left behind is known by having no lock, and is
    removed by the next one that comes here.
    """
    sweep(place)
    lock = None
    while lock is None:
        folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=place))
        lock = _lock_new(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock_new(folder: Path) -> int | None:
    """The descriptor that locks it; None if another process swept it away before that."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there
        fcntl.flock(lock, fcntl.LOCK_EX)
    if folder.is_dir():
        return lock
    os.close(lock)
    return None


def sweep(place: Path) -> None:
    """Remove the scratch folders of dead processes: files with no process to finish them."""
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(place)):
            if _OWN_SCRATCH.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _remove_unless_locked(Path(entry.path))


def _remove_unless_locked(folder: Path) -> None:
    with contextlib.suppress(OSError):
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in folder.iterdir():
                path.unlink()  # never a folder: those are not ours
            folder.rmdir()
        finally:
            os.close(lock)
