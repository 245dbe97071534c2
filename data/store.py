"""Prepared data on disk: a folder with the token ids of both splits and what they mean.

    text, tokenizer  →  train.bin  val.bin  (flat uint16 or uint32)  and  meta.json

`meta.json` holds the checksum of the source and of both files. A folder is used only if all of them
match, so no lock is needed: whatever a killed process, a full disk or two processes at once leave
behind is either right or prepared again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.source import Source
from data.tokenizer import Tokenizer, make_tokenizer

FORMAT = 1  # raise it when the layout changes: older folders are then prepared again
DEFAULT_ROOT = Path(__file__).resolve().parent / "prepared"
SPLITS = ("train", "val")


@dataclass(frozen=True)
class Prepared:
    """Both splits as 1-d memory maps, and the state of the tokenizer that made them."""

    folder: Path
    train: np.ndarray
    val: np.ndarray
    tokenizer_state: dict[str, Any]


def cache_root() -> Path:
    """Where data goes if the repository cannot be written; honours XDG_CACHE_HOME."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "uopc" / "data"


def folder_of(root: Path, source: Source, tokenizer_name: str) -> Path:
    """The folder for this source and tokenizer, such as `python-char`."""
    parts = [source.name, tokenizer_name] + ([source.suffix] if source.suffix else [])
    return root / "-".join(parts)


def open_prepared(folder: Path, source: Source) -> Prepared | None:
    """What `folder` holds, or None if it is missing, damaged or made from another text."""
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        if meta["format"] != FORMAT or meta["source"] != _identity(source):
            return None
        prepared = Prepared(folder, *_map_splits(folder, meta), meta["tokenizer"])
        # Checked through the maps, not the files: another process may replace a file meanwhile.
        hashes = {split: _hash(getattr(prepared, split)) for split in SPLITS}
        vocabulary = prepared.tokenizer_state.get("chars")
        if vocabulary is not None and len(vocabulary) != meta["vocab_size"]:
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # absent or damaged in any way: the caller prepares it again
    return prepared if hashes == meta["sha256"] else None


def write_prepared(root: Path, source: Source, tokenizer_name: str) -> Prepared:
    """Tokenize the source into its folder under `root`; the first 90 % of its characters train.

    Raises OSError if it cannot be written, and what the source and the tokenizer raise.
    """
    text = source.read(root)
    tokenizer = make_tokenizer(tokenizer_name, text)
    folder = folder_of(root, source, tokenizer_name)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=root) as scratch_name:
        scratch = Path(scratch_name)
        meta = _write_files(scratch, text, source, tokenizer)
        # Opened before the move: these maps stay ours whatever other processes do to the folder.
        prepared = Prepared(folder, *_map_splits(scratch, meta), meta["tokenizer"])
        for name in ("train.bin", "val.bin", "meta.json"):
            os.replace(scratch / name, folder / name)
    return prepared


def writable_root(roots: Sequence[Path]) -> Path:
    """The first of `roots` that can be written (made if need be); says so if it is a later one.

    Raises OSError naming all of them if none can.
    """
    problems: list[str] = []
    for root in roots:
        try:
            root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=root):
                pass
        except OSError as error:
            problems.append(f"cannot write {root} ({error.strerror or error})")
            continue
        if problems:
            print(f"data: {'; '.join(problems)}; using {root}", file=sys.stderr)
        return root
    raise OSError(f"{'; '.join(problems)}; use --data_dir=FOLDER with a folder you can write")


def _write_files(
    folder: Path, text: str, source: Source, tokenizer: Tokenizer
) -> dict[str, Any]:
    dtype = "uint16" if tokenizer.vocab_size < 65536 else "uint32"
    n_train = len(text) * 9 // 10
    counts: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for split, part in zip(SPLITS, (text[:n_train], text[n_train:]), strict=True):
        digest = hashlib.sha256()
        counts[split] = 0
        with open(folder / f"{split}.bin", "wb") as file:
            for ids in tokenizer.encode_pieces(part):
                raw = ids.astype(dtype).tobytes()
                file.write(raw)
                digest.update(raw)
                counts[split] += len(ids)
        hashes[split] = digest.hexdigest()
    meta = {
        "format": FORMAT,
        "source": _identity(source),
        "dtype": dtype,
        "vocab_size": tokenizer.vocab_size,
        "tokens": counts,
        "sha256": hashes,
        "tokenizer": tokenizer.state(),
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
    return meta


def _map_splits(folder: Path, meta: dict[str, Any]) -> list[np.ndarray]:
    """Memory maps of train and val. Raises ValueError if a size or the type is not as in `meta`."""
    if meta["dtype"] not in ("uint16", "uint32"):
        raise ValueError(f"{folder}: unknown token type {meta['dtype']!r}")
    maps = []
    for split in SPLITS:
        path, count = folder / f"{split}.bin", meta["tokens"][split]
        expected = count * np.dtype(meta["dtype"]).itemsize
        if path.stat().st_size != expected:
            raise ValueError(f"{path} has {path.stat().st_size} bytes, expected {expected}")
        if count == 0:  # an empty file cannot be mapped
            maps.append(np.empty(0, dtype=meta["dtype"]))
        else:
            maps.append(np.memmap(path, dtype=meta["dtype"], mode="r", shape=(count,)))
    return maps


def _identity(source: Source) -> dict[str, Any]:
    return {"name": source.name, "size": source.size, "sha256": source.sha256}


def _hash(array: np.ndarray) -> str:
    return hashlib.sha256(memoryview(array).cast("B") if array.size else b"").hexdigest()
