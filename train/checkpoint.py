"""A checkpoint is one safetensors file: arrays, and a JSON of everything else in its metadata.

It is written beside its place, flushed to the disk and moved there by an atomic rename, so that
whatever kills the program, the file is either the old one or the new one, whole.
"""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

FILE_NAME = "ckpt.safetensors"
METADATA_KEY = "uopc"


@dataclass
class Checkpoint:
    """`weights` by parameter name; `moments` by kind and parameter name, `info` is JSON-able."""

    weights: dict[str, np.ndarray]
    moments: dict[str, np.ndarray] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(out_dir: Path, checkpoint: Checkpoint) -> Path:
    """Write `<out_dir>/ckpt.safetensors`; returns its path."""
    arrays = {f"model.{k}": v for k, v in checkpoint.weights.items()}
    arrays |= {f"optimizer.{k}": v for k, v in checkpoint.moments.items()}
    content = save(arrays, metadata={METADATA_KEY: json.dumps(checkpoint.info)})
    target = out_dir / FILE_NAME
    unfinished = target.with_suffix(".unfinished")
    with open(unfinished, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, target)
    return target


def load_checkpoint(out_dir: Path) -> Checkpoint:
    """Read `<out_dir>/ckpt.safetensors`. Raises ValueError with the reason if that cannot be."""
    path = out_dir / FILE_NAME
    if not path.exists():
        raise ValueError(f"there is no checkpoint {path}; train one with "
                         f"python train/gpt.py --out_dir={out_dir}")
    checkpoint = Checkpoint({})
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            for name in file.keys():
                kind, _, rest = name.partition(".")
                place = checkpoint.weights if kind == "model" else checkpoint.moments
                place[rest] = file.get_tensor(name)
        checkpoint.info = json.loads(metadata[METADATA_KEY])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a checkpoint of uopc: {error}") from None
    return checkpoint
