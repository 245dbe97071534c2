"""The corpus "shakespeare": tinyshakespeare, 1,115,394 characters, of char-rnn and nanoGPT.

Downloaded once from char-rnn's repository and kept beside the prepared folders. Size and checksum
are fixed here, so a changed or cut download is noticed and a prepared folder needs no text.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from pathlib import Path

from data.files import read_bounded, scratch_folder
from data.source import Source

URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
NAME = "shakespeare.txt"
SIZE = 1_115_394
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
TIMEOUT = 30  # seconds without an answer before the download is given up


def shakespeare_source() -> Source:
    """tinyshakespeare; reading it downloads it unless the folder already has it."""
    return Source("shakespeare", SIZE, SHA256, _read)


def _read(folder: Path) -> str:
    """The text from `folder`, or from the network and then kept there.

    Raises ConnectionError if it cannot be downloaded or is not the text expected.
    """
    raw = _kept(folder / NAME)
    if raw is None:
        raw = _download()
        # A reader sees the whole file or none, also when two processes download at once.
        with scratch_folder(folder) as scratch:
            (scratch / NAME).write_bytes(raw)
            os.replace(scratch / NAME, folder / NAME)
    return raw.decode("utf-8")


def _kept(path: Path) -> bytes | None:
    """The text that an earlier run downloaded; None if it is not there, or damaged."""
    try:
        raw = read_bounded(path, SIZE)
    except (OSError, ValueError):
        return None
    return raw if hashlib.sha256(raw).hexdigest() == SHA256 else None


def _download() -> bytes:
    try:
        with urllib.request.urlopen(URL, timeout=TIMEOUT) as answer:
            raw = answer.read(SIZE + 1)  # one more than expected shows that it is too long
    except (OSError, http.client.HTTPException) as error:
        raise _download_error(str(error) or type(error).__name__) from error
    digest = hashlib.sha256(raw).hexdigest()
    if digest != SHA256:
        found = f"got {len(raw)} bytes with sha256 {digest[:8]}…"
        raise _download_error(f"{found}, expected {SIZE} bytes with {SHA256[:8]}…")
    return raw


def _download_error(reason: str) -> ConnectionError:
    return ConnectionError(
        f"data set 'shakespeare': cannot download {URL} ({reason}); use --dataset=PATH with a "
        "text file of yours, or --dataset=python, which needs no network"
    )
