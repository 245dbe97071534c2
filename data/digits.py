"""The embedded default of the MLP: 1797 handwritten digits, 8×8 (origin: `digits.md`).

    digits.npz: uint8 0..16 (1797, 8, 8)  →  float32 0..1 (1797, 64), labels int32 (1797,)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

_FILE = Path(__file__).with_name("digits.npz")
_BRIGHTEST = 16  # each value counts the set pixels of a 4×4 block


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images float32 (1797, 64) in 0..1 and labels int32 (1797,) in 0..9."""
    with np.load(_FILE, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    flat = images.reshape(len(images), -1).astype(np.float32) / np.float32(_BRIGHTEST)
    return flat, labels.astype(np.int32)


def split_digits(
    seed: int = 0,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The digits shuffled by `seed`: (train images, labels), (held-out images, labels).

    A fifth is held out: 359 images, which leaves 1438 to train on.
    """
    images, labels = load_digits()
    order = np.random.default_rng(seed).permutation(len(images))
    held_out, train = np.split(order, [len(images) // 5])
    return (images[train], labels[train]), (images[held_out], labels[held_out])
