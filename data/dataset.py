"""A text data set: from its name to batches of token ids.

    load_dataset("notes.txt").get_batch("train", 2, 4, rng)
        →  x = [[5, 1, 8, 8], [2, 7, 0, 3]]    y = [[1, 8, 8, 11], [7, 0, 3, 3]]   (x one ahead)

The text is prepared at the first call and found again by later ones (`store`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from data.files import path_of
from data.shakespeare import shakespeare_source
from data.source import Source
from data.stdlib import stdlib_source
from data.store import (
    DEFAULT_ROOT,
    SPLITS,
    Prepared,
    UnusableError,
    cache_root,
    folder_of,
    open_prepared,
    writable_folder,
    write_prepared,
)
from data.textfile import textfile_source
from data.tokenizer import Tokenizer, check_tokenizer_name

SOURCES: dict[str, Callable[[], Source]] = {
    "python": stdlib_source,
    "shakespeare": shakespeare_source,
}


class TextDataset:
    """Token ids of both splits, and batches of them.

    `train` and `val` are 1-d arrays of unsigned ids, memory-mapped: batches are gathered from the
    file, so memory grows by at most the file's size, however many are drawn.
    """

    def __init__(self, name: str, tokenizer: Tokenizer, prepared: Prepared) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.vocab_size = tokenizer.vocab_size
        self.train = prepared.train
        self.val = prepared.val
        self.folder = prepared.folder

    def has_room(self, split: str, block_size: int) -> bool:
        """Whether `split` is long enough for one block: block_size tokens and their successor."""
        _check_positive("block_size", block_size)
        return len(self._tokens(split)) > block_size

    def check(self, block_size: int) -> None:
        """Raises ValueError, with both numbers, if the train split is too short for one block.

        A short val split is no error: ask `has_room("val", block_size)` and skip the evaluation.
        """
        self._check_room("train", block_size)

    def get_batch(
        self, split: str, batch_size: int, block_size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Random blocks: x and y, int32 (batch_size, block_size), with y one token ahead of x.

        Raises ValueError if the split is too short for one block; nothing is ever padded.
        """
        _check_positive("batch_size", batch_size)
        self._check_room(split, block_size)
        starts = rng.integers(len(self._tokens(split)) - block_size, size=batch_size)
        return self._blocks(split, starts, block_size)

    def windows(
        self, split: str, batch_size: int, block_size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Every block that fits, once and in order: x and y, int32 (≤ batch_size, block_size).

        Neighbours share exactly one token, the last target of one being the first input of the
        next. The last batch holds what is left and may be smaller.

        Raises ValueError if the split is too short for one block.
        """
        _check_positive("batch_size", batch_size)
        self._check_room(split, block_size)
        starts = np.arange(0, len(self._tokens(split)) - block_size, block_size)
        return (
            self._blocks(split, starts[i : i + batch_size], block_size)
            for i in range(0, len(starts), batch_size)
        )

    def _blocks(
        self, split: str, starts: np.ndarray, block_size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        positions = starts[:, None] + np.arange(block_size + 1)
        blocks = self._tokens(split)[positions].astype(np.int32)
        return np.ascontiguousarray(blocks[:, :-1]), np.ascontiguousarray(blocks[:, 1:])

    def _tokens(self, split: str) -> np.ndarray:
        if split not in SPLITS:
            raise ValueError(f"split must be 'train' or 'val', got {split!r}")
        return self.train if split == "train" else self.val

    def _check_room(self, split: str, block_size: int) -> None:
        if not self.has_room(split, block_size):
            raise ValueError(
                f"data set {self.name!r}: the {split} split has {len(self._tokens(split))} tokens, "
                f"but block_size {block_size} needs at least {block_size + 1}; use a longer text"
                + (" or a smaller --block_size" if len(self._tokens(split)) > 1 else "")
            )


def load_dataset(
    dataset: str, tokenizer: str = "char", data_dir: str | Path | None = None
) -> TextDataset:
    """The data set of this name, prepared now unless it already is.

    dataset: "python" (Python's own sources), "shakespeare" (downloaded) or the path of a text file,
        which may be a pipe.
    tokenizer: "char", or the name of a tiktoken encoding such as "gpt2".
    data_dir: where prepared data is kept; by default `data/prepared` in the repository, or a
        folder in the user's cache if that cannot be written.

    Raises ValueError for an unknown name or an unusable text, ConnectionError if something has to
    be downloaded and cannot be, OSError if a file cannot be read or written.
    """
    check_tokenizer_name(tokenizer)
    if not str(dataset):
        raise ValueError(f"the data set is an empty name; known are {', '.join(SOURCES)} and the "
                         "path of any text")
    if data_dir is not None and not str(data_dir):
        raise ValueError("the folder of prepared data is an empty name; leave --data_dir out for "
                         f"{DEFAULT_ROOT}")
    roots = [DEFAULT_ROOT, cache_root()] if data_dir is None else [path_of(data_dir)]
    source = None
    try:
        source = _find_source(str(dataset))
        prepared = _open_or_write([folder_of(root, source, tokenizer) for root in roots],
                                  source, tokenizer)
    except MemoryError:
        size = f"of {source.size:,} bytes " if source else ""
        raise ValueError(f"data set {dataset!r}: the text {size}does not fit into memory") from None
    return TextDataset(source.name, prepared.tokenizer, prepared)


def _open_or_write(folders: list[Path], source: Source, tokenizer: str) -> Prepared:
    """What the first usable of `folders` holds, else prepared anew, with a line if one of them had
    to be passed over."""
    problems = []
    for folder in folders:
        try:
            prepared = open_prepared(folder, source, tokenizer)
        except UnusableError as error:
            problems.append(f"{folder} cannot be used: {error}")
        else:
            if prepared is not None:
                return prepared
    if problems:
        print(f"data: {'; '.join(problems)}; prepared again", file=sys.stderr)
    return write_prepared(writable_folder(folders), source, tokenizer)


def _find_source(dataset: str) -> Source:
    if dataset in SOURCES:
        return SOURCES[dataset]()
    path = path_of(dataset)
    try:
        return textfile_source(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(
            f"unknown data set {dataset!r}: the file {str(path.absolute())!r} does not exist, and "
            f"the known names are {', '.join(SOURCES)}; prepare a text with: "
            "python data/prepare.py --dataset=PATH"
        ) from None
    except OSError as error:
        raise OSError(f"data set {dataset!r}: {error.strerror or error}") from error


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
