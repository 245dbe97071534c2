"""The folder of a training run: one run at a time writes to it, and every file in it is whole.

    with locked(folder): ...               → ValueError that names the process which has it
    write_whole(folder / "x", content)     → the old file or the new one, whatever happens
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"
UNFINISHED = ".unfinished-"  # how the names of files begin that are being written
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder if need be and keep other runs out of it; what a killed run was writing is
    deleted. The system releases the lock however the process ends. Raises ValueError if another
    run has it, OSError if the folder cannot be written."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _lock(folder)
    try:
        for unfinished in folder.glob(f"{UNFINISHED}*") if descriptor is not None else ():
            unfinished.unlink(missing_ok=True)
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                if _is_at(descriptor, folder / LOCK):
                    (folder / LOCK).unlink()
                if is_new:
                    folder.rmdir()  # unless something was written to it
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file still stands under this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _lock(folder: Path) -> int | None:
    """The descriptor that holds the lock; None, and a line, where the file system has no locks."""
    path = folder / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.2)  # a run that is just ending is gone then, one just starting has signed
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = _is_at(descriptor, path)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}, started "
                              f"{time.strftime('%Y-%m-%d %H:%M:%S')}".encode(), 0)
    except BlockingIOError:
        holder = os.pread(descriptor, 300, 0).decode(errors="replace")
        os.close(descriptor)
        raise ValueError(f"another run is writing to {folder}: {holder or 'its name is unknown'}; "
                         "wait for it, or give this one another --out_dir") from None
    except OSError as error:
        os.close(descriptor)
        if error.errno not in NO_LOCKS:
            raise OSError(error.errno, error.strerror, str(path)) from None
        if sys.stderr is not None:
            print(f"the file system of {folder} has no locks: take care that no other run writes "
                  "to it", file=sys.stderr)
        return None
    if is_ours:
        return descriptor
    os.close(descriptor)  # the run that had it has ended and deleted it, and the folder perhaps
    folder.mkdir(parents=True, exist_ok=True)
    return _lock(folder)


def write_whole(target: Path, content: bytes | bytearray) -> None:
    """Write a file beside its place, flush it to the disk, and move it there by an atomic rename.
    If that fails nothing is left of it, and the old file stays. Raises OSError, with the name."""
    unfinished = target.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
    try:
        with open(unfinished, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()  # it is there only if something failed
