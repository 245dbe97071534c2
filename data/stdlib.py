"""The default corpus "python": the sources of Python's own standard library.

Every installation has them, so training needs no network.

    <stdlib>/__future__.py, _collections_abc.py, abc.py, …  →  one ASCII text of about 2 MB

The text differs a little from one Python version to the next; within one installation it is the
same every time.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from data.source import Source, source_of_bytes

CAP = 2_000_000  # bytes: enough to train a small GPT on, prepared in a moment

# Written when Python was built or put there by a distribution: not the same in two installations.
_LOCAL = ("_sysconfigdata", "sitecustomize", "usercustomize")


def stdlib_source(folder: Path | None = None) -> Source:
    """The top-level modules of the standard library, in the order of their names, up to `CAP`.

    Packages are left out: distributions drop some of them, and some hold tests. Files with
    non-ASCII characters are left out to keep the character vocabulary below 100.

    Raises ValueError if this Python came without its sources.
    """
    stdlib = folder or Path(sysconfig.get_path("stdlib"))
    pieces: list[bytes] = []
    size = 0
    for path in sorted(stdlib.glob("*.py"), key=lambda path: path.name):
        if path.name.startswith(_LOCAL) or not path.is_file():
            continue
        raw = path.read_bytes().replace(b"\r\n", b"\n")
        if not raw.isascii():
            continue
        if size + len(raw) > CAP:
            break
        pieces.append(raw)
        size += len(raw)
    if not pieces:
        raise ValueError(
            f"data set 'python': this Python has no sources in {stdlib}; "
            "use --dataset=PATH with a text file of yours"
        )
    return source_of_bytes("python", b"".join(pieces))
