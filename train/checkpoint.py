"""A checkpoint is one safetensors file: arrays, and a JSON of everything else in its metadata.

It is written beside its place, flushed to the disk and moved there by an atomic rename, so that
whatever kills the program, the file is either the old one or the new one, whole. The JSON begins
with the SHA-256 of the file, in which those 64 digits are zeros, so that no byte can change
unnoticed; what the file holds is then checked against `schema` before it is used.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from data.memory import available_memory
from train.run_folder import write_whole
from train.schema import attention_bytes, check_info, check_tensors, check_values, parse_info
from train.terminal import few, quoted, visible

FILE_NAME = "ckpt.safetensors"
METADATA_KEY = "uopc"
CHECKSUM = "sha256"
NO_DIGEST = "0" * 64
KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
         stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


@dataclass
class Checkpoint:
    """`weights` by parameter name; `moments` by kind and parameter name, `info` is JSON-able."""

    weights: dict[str, np.ndarray]
    moments: dict[str, np.ndarray] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(out_dir: Path, checkpoint: Checkpoint) -> Path:
    """Write `<out_dir>/ckpt.safetensors`; returns its path. Raises OSError if that cannot be; the
    one before it is kept then."""
    arrays = {f"model.{k}": v for k, v in checkpoint.weights.items()}
    arrays |= {f"optimizer.{k}": v for k, v in checkpoint.moments.items()}
    content = with_checksum(lambda text: save(arrays, metadata={METADATA_KEY: text}),
                            checkpoint.info)
    target = out_dir / FILE_NAME
    write_whole(target, content)
    return target


def with_checksum(serialize: Callable[[str], bytes], info: dict[str, Any]) -> bytearray:
    """The file that `serialize` makes of the JSON of `info`, with its checksum put in."""
    content = bytearray(serialize(json.dumps({CHECKSUM: NO_DIGEST, **info})))
    place = _place_of_digest(content, NO_DIGEST)
    content[place:place + len(NO_DIGEST)] = hashlib.sha256(content).hexdigest().encode()
    return content


def load_checkpoint(out_dir: Path) -> Checkpoint:
    """Read `<out_dir>/ckpt.safetensors`. Raises ValueError with the reason if that cannot be, or
    if what it holds is damaged or no checkpoint of a GPT."""
    path = out_dir / FILE_NAME
    try:
        # Without waiting: opening a FIFO would hang until somebody writes to it.
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as raw:
            about = os.fstat(raw.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise ValueError(f"it is {KINDS.get(stat.S_IFMT(about.st_mode), 'no file')}")
            check_memory("the file", about.st_size)
            # The open file, not its name: a training that goes on may replace it meanwhile.
            with safe_open(f"/dev/fd/{raw.fileno()}", framework="np") as file:
                return _read(raw, file)
    except FileNotFoundError:
        raise ValueError(f"there is no checkpoint {path}; train one with "
                         f"python train/gpt.py --out_dir={out_dir}") from None
    except ConnectionError:  # an OSError, and no fault of the file: its tokenizer needs a network
        raise
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except MemoryError:
        raise ValueError(f"{path} needs more memory than there is") from None
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is not a checkpoint of uopc: {error}") from None


def _read(raw: BinaryIO, file: safe_open) -> Checkpoint:
    """Everything but the tensors' values is checked before any of them is read."""
    metadata = file.metadata() or {}
    if metadata.keys() != {METADATA_KEY}:
        raise ValueError(f"its metadata are {few(list(metadata))}, not {METADATA_KEY!r} alone"
                         if metadata else "it has no metadata")
    info = parse_info(metadata[METADATA_KEY])
    digest = info.pop(CHECKSUM, None) if isinstance(info, dict) else None
    if digest is not None:
        _check_digest(raw, digest)
    check_info(info)
    slices = {name: file.get_slice(name) for name in file.keys()}
    check_tensors({name: (s.get_dtype(), tuple(s.get_shape())) for name, s in slices.items()},
                  info)
    check_memory("its attention", attention_bytes(info))
    checkpoint = Checkpoint({}, info=info)
    for name in slices:
        kind, _, rest = name.partition(".")
        place = checkpoint.weights if kind == "model" else checkpoint.moments
        place[rest] = file.get_tensor(name)
        check_values(name, place[rest])
    if digest is None and sys.stderr is not None:
        print(visible(f"the checkpoint {raw.name} has no checksum (it is of an earlier version): "
                      "damage to it may go unnoticed"), file=sys.stderr)
    return checkpoint


def check_memory(what: str, size: int) -> None:
    """Raises ValueError if there is less memory than this, in bytes."""
    memory = available_memory()
    if size > memory:
        raise ValueError(f"{what} needs {size:,} bytes, there are {memory:,}")


def _place_of_digest(header: bytes | bytearray, digest: str) -> int:
    """Where the checksum's digits stand, in the JSON string inside of the header's JSON; -1 if
    nowhere. A name that a user chose cannot look so: its quotes are escaped once more."""
    before = json.dumps(f'"{CHECKSUM}": "')[1:-1].encode()
    found = header.find(before + digest.encode())
    return found if found < 0 else found + len(before)


def _check_digest(raw: BinaryIO, digest: Any) -> None:
    if not isinstance(digest, str) or len(digest) != len(NO_DIGEST) or not digest.isascii():
        raise ValueError(f"its checksum is {quoted(digest)}")
    raw.seek(0)
    start = raw.read(8)
    header = raw.read(int.from_bytes(start, "little"))
    place = _place_of_digest(header, digest)
    computed = hashlib.sha256(start)
    if place >= 0:
        header = header[:place] + NO_DIGEST.encode() + header[place + len(NO_DIGEST):]
    computed.update(header)
    while piece := raw.read(1 << 20):
        computed.update(piece)
    if computed.hexdigest() != digest:
        raise ValueError("it is damaged: its content does not match its checksum")
