"""The folder that keeps what was compiled: objects and plans.

A file ends with the SHA-256 of what comes before it, so a damaged one is noticed. Files appear by
an atomic rename; any number of processes may share the folder, and its size is bounded.
"""
from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import itertools
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

from uopc import config

CACHE_LIMIT = 1 << 30  # bytes of plans and objects
FILES_BETWEEN_TRIMS = 500
SCRATCH_SECONDS = 3600  # after which nobody works in a folder any more
DIGEST_BYTES = hashlib.sha256().digest_size


@functools.cache
def _usable_folder(wanted: str) -> Path:
    """`wanted`, or the user's own cache folder, made and private; else a temporary one, with a
    warning that names the reason."""
    home_cache = config.read("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(wanted or os.path.join(home_cache, "uopc"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & stat.S_ISVTX:  # a place for all, like /tmp: a folder of our own
            folder = folder / f"uopc-{os.getuid()}"
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid != os.getuid():
            raise PermissionError(f"it belongs to user {found.st_uid}")
        if found.st_mode & 0o022:
            raise PermissionError("others may write to it, and its files are run as programs")
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        return folder
    except OSError as error:
        temporary = Path(tempfile.mkdtemp(prefix="uopc-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        print(f"uopc: cannot use the cache folder {folder} ({error.strerror or error}); compiled "
              "kernels are kept for this run only. Set UOPC_CACHE to a folder of your own.",
              file=sys.stderr)
        return temporary


def cache_folder() -> Path:
    """Where compiled objects are kept: UOPC_CACHE, or `uopc` in the user's cache folder."""
    return _usable_folder(config.read("UOPC_CACHE"))


def in_cache(name: str) -> Path:
    return cache_folder() / name


def read_intact(path: Path) -> bytes | None:
    """The content that `write_intact` wrote; None where there is none, or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it is in use
    return body


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


_written = itertools.count(1)


def is_intact(path: Path) -> bool:
    """True when the file ends with the digest of what comes before it."""
    return read_intact(path) is not None


def write_intact(content: bytes, *paths: Path) -> None:
    """Put a file there at once, with the digest of its content at its end. Several names get the
    same file; a copy each where there are no links."""
    folder = paths[0].parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # somebody may have deleted it
    content += hashlib.sha256(content).digest()
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as scratch:
        made, link = Path(scratch, "made"), Path(scratch, "link")
        _write(made, content)
        for path in paths[1:]:
            try:
                os.link(made, link)
            except OSError:
                _write(link, content)
            os.replace(link, path)
        os.replace(made, paths[0])
    if next(_written) % FILES_BETWEEN_TRIMS == 1:
        trim_cache()


def _write(path: Path, content: bytes) -> None:
    """A new file that nobody else may write to, or read."""
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
