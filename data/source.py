"""What every text source gives: a name, the identity of its text, and a way to read it.

The identity comes apart from the text so that a prepared folder can be checked without the text:
tinyshakespeare's is known in advance, and once prepared it needs no network and no download.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A corpus. `read(folder)` returns its text; a download may be kept in `folder`."""

    name: str
    size: int  # bytes of the UTF-8 text
    sha256: str  # of the same bytes
    read: Callable[[Path], str]
    suffix: str = ""  # tells apart the prepared folders of files that share a name


def source_of_bytes(name: str, raw: bytes, suffix: str = "") -> Source:
    """The source whose text is `raw`, already known to be UTF-8."""
    digest = hashlib.sha256(raw).hexdigest()
    return Source(name, len(raw), digest, lambda _folder: raw.decode("utf-8"), suffix)
