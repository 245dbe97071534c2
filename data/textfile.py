"""Any UTF-8 text file as a corpus.

    corpus/my notes.txt  →  Source(name="my_notes", suffix=<8 hex digits of the full path's hash>)

The suffix keeps two files of one name apart; a file that was edited keeps its folder, which is then
prepared anew because the text's identity changed.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from data.source import Source, source_of_bytes


def textfile_source(path: Path) -> Source:
    """The text of `path`, character for character (line ends are kept as they are).

    Raises ValueError if the file is empty or not UTF-8, OSError if it cannot be read.
    """
    raw = path.read_bytes()
    if not raw:
        raise ValueError(f"data set {path}: the file is empty")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"data set {path}: not UTF-8 text (byte 0x{raw[error.start]:02x} at offset "
            f"{error.start}); convert it to UTF-8 first"
        ) from error
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", path.stem)[:40] or "text"
    full_path = os.fsencode(path.resolve())  # a file name need not be valid Unicode
    return source_of_bytes(name, raw, hashlib.sha256(full_path).hexdigest()[:8])
