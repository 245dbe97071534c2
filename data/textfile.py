"""Any UTF-8 text file as a corpus; a pipe will do.

    corpus/my notes.txt  →  Source(name="my_notes", suffix=<8 hex digits of the full path's hash>)
    <(zcat notes.gz)     →  Source(name="stream", suffix=<8 hex digits of the text's hash>)

The suffix keeps two files of one name apart; a file that was edited keeps its folder, which is then
prepared anew because the text's identity changed. A pipe is read once and has no path that lasts,
so its text alone says which folder is its own.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
from pathlib import Path

import numpy as np

from data.files import kind_of
from data.memory import available_memory
from data.source import Source, source_of_bytes

_PIECE = 1 << 20  # bytes read at once from what does not say its size
_ENCODINGS = ((codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"),
              (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))


def textfile_source(path: Path) -> Source:
    """The text of `path`, character for character (line ends are kept as they are), without the
    byte order mark that some editors put before it.

    Raises ValueError if the text is empty, not UTF-8 or too large for the memory, or if `path` is a
    folder, a socket or a device without an end; OSError if it cannot be read.
    """
    mode = path.stat().st_mode
    memory = available_memory()
    raw = _read(path, mode, memory // 4).removeprefix(codecs.BOM_UTF8)
    if not raw:
        raise ValueError(f"data set {str(path)!r}: the file is empty")
    _check_memory(path, raw, memory)
    _check_is_text(path, raw)
    full_path = path.resolve()
    # A file that a shell passed on may be deleted already, or stand where this user may not look.
    if stat.S_ISREG(mode) and os.path.exists(full_path):
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", path.stem)[:40] or "text"
        identity = os.fsencode(full_path)  # a file name need not be valid Unicode
    else:
        name, identity = "stream", raw
    return source_of_bytes(name, raw, hashlib.sha256(identity).hexdigest()[:8])


def _read(path: Path, mode: int, limit: int) -> bytes:
    """All of it. Raises ValueError once there are more than `limit` bytes."""
    if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        raise ValueError(f"data set {str(path)!r} is {kind_of(mode)}, not a text file")
    with open(path, "rb", buffering=0) as file:  # waits, if it is a pipe, for its writer
        os.set_blocking(file.fileno(), True)  # a descriptor that was passed on may be otherwise
        size = os.fstat(file.fileno()).st_size
        _check_size(path, size, limit)
        pieces, total = [file.read(max(size, _PIECE))], 0
        if pieces[0] and stat.S_ISCHR(mode) and not file.isatty():
            raise ValueError(f"data set {str(path)!r} is a device, whose text may have no end")
        while pieces[-1]:
            total += len(pieces[-1])
            _check_size(path, total, limit)
            pieces.append(file.read(_PIECE))
    return b"".join(pieces)


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise ValueError(f"data set {str(path)!r}: {size:,} bytes or more, but with the memory "
                         f"that is free a text may have {limit:,}")


def _check_memory(path: Path, raw: bytes, memory: int) -> None:
    """Raises ValueError if what the preparation holds at once is more than `memory` bytes: the
    text, its characters, and those once more as the two splits."""
    units = np.frombuffer(raw, np.uint8)
    widest = int(units.max())  # the leading byte of a character tells how Python stores it
    width = 1 if widest < 0xC4 else 2 if widest < 0xF0 else 4
    needed = len(raw) + 2 * width * int(np.count_nonzero(units & 0xC0 != 0x80))
    if needed > memory:
        raise ValueError(f"data set {str(path)!r}: {len(raw):,} bytes of text take {needed:,} "
                         f"while they are prepared, and {memory:,} are free")


def _check_is_text(path: Path, raw: bytes) -> None:
    for mark, encoding in _ENCODINGS:
        if raw.startswith(mark):
            raise _not_utf8(path, f"it begins with the mark of {encoding}", encoding)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{raw[error.start]:02x} at offset {error.start}"
        raise _not_utf8(path, where, "ENCODING") from error
    if raw[:4096].count(0) * 4 > len(raw[:4096]):
        raise _not_utf8(path, "zero bytes between its characters, as in UTF-16", "UTF-16LE")


def _not_utf8(path: Path, reason: str, encoding: str) -> ValueError:
    return ValueError(f"data set {str(path)!r}: not UTF-8 text ({reason}); convert it first: "
                      f"iconv -f {encoding} -t UTF-8 FILE > NEW")
