"""Prepared data on disk: a folder with the token ids of both splits and what they mean.

    text, tokenizer  →  train.bin  val.bin  (flat uint16 or uint32)  and  meta.json

`meta.json` says which text and tokenizer the ids are of, how many there are, and the checksum of
both files; its `digest` covers all that, the vocabulary included. Nothing that it says is trusted:
it has to be, byte for byte, what would be written for this text and these files. So no lock is
needed: whatever a killed process, a full disk or two processes at once leave behind is either right
or prepared again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import reprlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.files import open_file, path_of, read_bounded, scratch_folder, sweep
from data.source import Source
from data.tokenizer import Tokenizer, make_tokenizer, tokenizer_from_state

FORMAT = 2  # raise it when the layout changes: older folders are then prepared again
DEFAULT_ROOT = Path(__file__).resolve().parent / "prepared"
SPLITS = ("train", "val")
META_LIMIT = 16 << 20  # bytes: a vocabulary of all of Unicode takes 13 MB


class UnusableError(ValueError):
    """A prepared folder that is damaged or of something else; the message says what is wrong."""


@dataclass(frozen=True)
class Prepared:
    """Both splits as 1-d memory maps, and the tokenizer that made them."""

    folder: Path
    train: np.ndarray
    val: np.ndarray
    tokenizer: Tokenizer


def cache_root() -> Path:
    """Where data goes if the repository cannot be written; honours XDG_CACHE_HOME."""
    return path_of(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "uopc" / "data"


def folder_of(root: Path, source: Source, tokenizer_name: str) -> Path:
    """The folder for this source and tokenizer, such as `python-char`."""
    parts = [source.name, tokenizer_name] + ([source.suffix] if source.suffix else [])
    return root / "-".join(parts)


# ---- reading ----


def open_prepared(folder: Path, source: Source, tokenizer_name: str) -> Prepared | None:
    """What `folder` holds, or None if nothing was prepared there.

    Raises UnusableError if it is damaged in any way or made from another text, ConnectionError if
    tiktoken has to load its encoding and cannot.
    """
    named = None if tokenizer_name == "char" else make_tokenizer(tokenizer_name, "")
    with _as_unusable(folder):
        try:
            raw = read_bounded(folder / "meta.json", META_LIMIT)
        except (FileNotFoundError, NotADirectoryError):
            return None
        meta = _parse(raw)
        tokenizer = named or _char_tokenizer(meta)
        tokens = [_map_tokens(folder / f"{split}.bin", tokenizer) for split in SPLITS]
        counts = {split: len(ids) for split, ids in zip(SPLITS, tokens, strict=True)}
        expected = _meta(source, tokenizer, counts, meta["sha256"])
        if raw != _encode(expected):
            raise ValueError(_difference(meta, expected))
        # Checked through the maps, not the files: another process may replace a file meanwhile.
        for split, ids in zip(SPLITS, tokens, strict=True):
            if _hash(ids) != meta["sha256"][split]:
                raise ValueError(f"{split}.bin does not have its checksum")
        return Prepared(folder, *tokens, tokenizer)


@contextlib.contextmanager
def _as_unusable(folder: Path) -> Iterator[None]:
    """Turns what damage raises into an UnusableError."""
    try:
        yield
    except RecursionError:
        raise UnusableError("meta.json is nested too deeply") from None
    except OSError as error:
        name = os.path.basename(error.filename or folder)
        raise UnusableError(f"{name}: {error.strerror or error}") from error
    except ValueError as error:
        raise UnusableError(str(error)) from error


def _parse(raw: bytes) -> dict[str, Any]:
    """The entries of meta.json. Raises ValueError if it is no JSON object of this format."""
    try:
        meta = json.loads(raw)
    except ValueError as error:
        raise ValueError(f"meta.json is not JSON ({reprlib.repr(str(error))})") from error
    if not isinstance(meta, dict):
        raise ValueError(f"meta.json holds {type(meta).__name__}, not an object")
    if meta.get("format") != FORMAT:
        raise ValueError(f"its format is {reprlib.repr(meta.get('format'))}, not {FORMAT}")
    hashes = meta.get("sha256")
    if not isinstance(hashes, dict) or set(hashes) != set(SPLITS):
        raise ValueError("meta.json has no checksums of both splits")
    return meta


def _char_tokenizer(meta: dict[str, Any]) -> Tokenizer:
    tokenizer = tokenizer_from_state(meta.get("tokenizer"))
    if tokenizer.name != "char":
        raise ValueError(f"it is of the tokenizer {tokenizer.name!r}, not 'char'")
    return tokenizer


def _map_tokens(path: Path, tokenizer: Tokenizer) -> np.ndarray:
    """A memory map of all that the file holds. Raises ValueError if that is no row of tokens."""
    dtype = np.dtype(_token_type(tokenizer))
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size % dtype.itemsize:
            raise ValueError(f"{path.name} has {size:,} bytes, but its tokens take "
                             f"{dtype.itemsize} each")
        if size == 0:  # an empty file cannot be mapped
            return np.empty(0, dtype=dtype)
        return np.memmap(file, dtype=dtype, mode="r", shape=(size // dtype.itemsize,))


def _difference(meta: dict[str, Any], expected: dict[str, Any]) -> str:
    """What is wrong with a meta.json that is not as expected."""
    for key, right in expected.items():
        if key not in meta:
            return f"meta.json has no entry {key!r}"
        if meta[key] != right and key == "source":
            return "it was made from another text"
        if meta[key] != right and key != "digest":
            return (f"meta.json has {key} {reprlib.repr(meta[key])}, "
                    f"where {reprlib.repr(right)} was expected")
    return "meta.json was changed: it does not have its own digest"


# ---- writing ----


def write_prepared(folder: Path, source: Source, tokenizer_name: str) -> Prepared:
    """Tokenize the source into `folder`; the first 90 % of its characters train.

    Raises OSError if it cannot be written, and what the source and the tokenizer raise.
    """
    sweep(folder.parent)
    text = source.read(folder.parent)
    tokenizer = make_tokenizer(tokenizer_name, text)
    if os.path.lexists(folder) and not folder.is_dir():
        _put_aside(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder(folder) as scratch:
        try:
            _write_files(scratch, text, source, tokenizer)
        except OSError as error:  # a full disk does not say where
            raise OSError(f"cannot write {folder} ({error.strerror or error})") from error
        # Opened before the move: these maps stay ours whatever other processes do to the folder.
        tokens = [_map_tokens(scratch / f"{split}.bin", tokenizer) for split in SPLITS]
        for name in ("train.bin", "val.bin", "meta.json"):
            if (folder / name).is_dir():
                _put_aside(folder / name)
            os.replace(scratch / name, folder / name)
    return Prepared(folder, *tokens, tokenizer)


def _put_aside(path: Path) -> None:
    """Rename what stands in the place of a file or folder of ours: it may be of use to somebody."""
    place = Path(tempfile.mkdtemp(prefix=f"{path.name}-aside-", dir=path.parent))
    os.rename(path, place / path.name)
    print(f"data: {path} was in the way; it is now {place / path.name}", file=sys.stderr)


def writable_folder(folders: Sequence[Path]) -> Path:
    """The first of `folders` that can be written; says so if it is a later one.

    The folders that they stand in are made if need be, in the user's cache for the user alone.
    Raises OSError naming all of them if none can be written.
    """
    problems: list[str] = []
    for folder in folders:
        place = root = folder.parent
        try:
            _make_root(root)
            place = folder if folder.is_dir() else root
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            problems.append(f"cannot write {place} ({error.strerror or error})")
            continue
        if problems:
            print(f"data: {'; '.join(problems)}; using {root}", file=sys.stderr)
        return folder
    raise OSError(f"{'; '.join(problems)}; use --data_dir=FOLDER with a folder you can write")


def _make_root(root: Path) -> None:
    if root == cache_root():
        # Compiled code lies in this folder, too: nobody else may write to it or to those above it.
        for folder in [*reversed(root.parents), root]:
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
    root.mkdir(parents=True, exist_ok=True)


def _write_files(folder: Path, text: str, source: Source, tokenizer: Tokenizer) -> None:
    n_train = len(text) * 9 // 10
    counts: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for split, part in zip(SPLITS, (text[:n_train], text[n_train:]), strict=True):
        digest = hashlib.sha256()
        counts[split] = 0
        with open(folder / f"{split}.bin", "wb") as file:
            for ids in tokenizer.encode_pieces(part):
                raw = ids.astype(_token_type(tokenizer)).tobytes()
                file.write(raw)
                digest.update(raw)
                counts[split] += len(ids)
        hashes[split] = digest.hexdigest()
    (folder / "meta.json").write_bytes(_encode(_meta(source, tokenizer, counts, hashes)))


# ---- what meta.json says ----


def _meta(source: Source, tokenizer: Tokenizer, counts: dict[str, int],
          hashes: dict[str, str]) -> dict[str, Any]:
    """Everything in meta.json, for a text, its tokenizer, and the length and checksum of each
    split."""
    meta = {
        "format": FORMAT,
        "source": {"name": source.name, "size": source.size, "sha256": source.sha256},
        "dtype": _token_type(tokenizer),
        "vocab_size": tokenizer.vocab_size,
        "tokens": counts,
        "sha256": hashes,
        "tokenizer": tokenizer.state(),
    }
    return {**meta, "digest": hashlib.sha256(_encode(meta)).hexdigest()}


def _encode(meta: dict[str, Any]) -> bytes:
    return json.dumps(meta, indent=1).encode("ascii")


def _token_type(tokenizer: Tokenizer) -> str:
    return "uint16" if tokenizer.vocab_size < 65536 else "uint32"


def _hash(array: np.ndarray) -> str:
    return hashlib.sha256(memoryview(array).cast("B") if array.size else b"").hexdigest()
