"""Batches of a text data set: random blocks, sequential windows, and texts too short for them."""

from __future__ import annotations

import os
import string
from pathlib import Path

import numpy as np
import pytest

from data import CharTokenizer, TextDataset, load_dataset
from data.store import Prepared


def dataset_of(text: str) -> TextDataset:
    """The data set of `text`, without files: the first 90 % train."""
    tokenizer = CharTokenizer.of_text(text)
    ids = np.array(tokenizer.encode(text), dtype=np.uint16)
    train, val = np.split(ids, [len(ids) * 9 // 10])
    return TextDataset("text", tokenizer, Prepared(Path(), train, val, tokenizer))


def random_text(length: int) -> str:
    letters = list(string.ascii_letters)
    return "".join(np.random.default_rng(0).choice(letters, length))


def test_batches_are_shifted_blocks_of_the_text() -> None:
    text = random_text(500)
    dataset = dataset_of(text)
    x, y = dataset.get_batch("train", 16, 32, np.random.default_rng(1))
    assert x.shape == y.shape == (16, 32) and x.dtype == y.dtype == np.int32
    assert x.flags.c_contiguous and y.flags.c_contiguous and type(x) is np.ndarray
    for row_x, row_y in zip(x, y, strict=True):
        start = text.index(dataset.tokenizer.decode(row_x))
        assert dataset.tokenizer.decode(row_y) == text[start + 1 : start + 33]
    again, _ = dataset.get_batch("train", 16, 32, np.random.default_rng(1))
    other, _ = dataset.get_batch("train", 16, 32, np.random.default_rng(2))
    assert np.array_equal(x, again) and not np.array_equal(x, other)


def test_every_start_is_drawn_and_none_runs_over() -> None:
    dataset = dataset_of("abcdefghij")  # 9 train tokens: starts 0, 1 and 2 fit 7
    _, y = dataset.get_batch("train", 300, 6, np.random.default_rng(0))
    assert sorted(set(y[:, -1].tolist())) == [6, 7, 8]


def test_short_corpus_is_refused_with_both_numbers() -> None:
    dataset = dataset_of("x" * 30)
    with pytest.raises(ValueError, match="train split has 27 tokens.* block_size 64 .* 65"):
        dataset.check(64)
    with pytest.raises(ValueError, match="has 27 tokens"):
        dataset.get_batch("train", 1, 27, np.random.default_rng(0))
    dataset.check(26)
    assert dataset.get_batch("train", 1, 26, np.random.default_rng(0))[0].shape == (1, 26)


def test_short_validation_split_is_known_before_training() -> None:
    dataset = dataset_of(random_text(100))
    dataset.check(32)
    assert dataset.has_room("train", 32) and not dataset.has_room("val", 32)
    assert dataset.has_room("val", 9) and not dataset.has_room("val", 10)
    with pytest.raises(ValueError, match="val split has 10 tokens"):
        dataset.get_batch("val", 4, 32, np.random.default_rng(0))


def test_one_character_is_a_corpus_too_short_to_train_on() -> None:
    dataset = dataset_of("x")
    assert (len(dataset.train), len(dataset.val)) == (0, 1)
    with pytest.raises(ValueError, match="has 0 tokens"):
        dataset.check(1)


def test_wrong_arguments_are_named() -> None:
    dataset = dataset_of("some text")
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="'train' or 'val', got 'test'"):
        dataset.get_batch("test", 1, 1, rng)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        dataset.get_batch("train", 0, 1, rng)
    with pytest.raises(ValueError, match="block_size must be at least 1, got -1"):
        dataset.windows("train", 1, -1)


@pytest.mark.parametrize("tokens, n_windows", [(100, 12), (97, 12), (96, 11), (9, 1)])
def test_windows_cover_the_split_once(tokens: int, n_windows: int) -> None:
    dataset = dataset_of(random_text(1000))
    dataset.train = np.arange(tokens, dtype=np.uint16)
    batches = list(dataset.windows("train", 2, 8))
    x = np.concatenate([x for x, _ in batches])
    y = np.concatenate([y for _, y in batches])
    assert [len(x) for x, _ in batches] == [2] * (n_windows // 2) + [1] * (n_windows % 2)
    assert np.array_equal(x.ravel(), np.arange(8 * n_windows))
    assert np.array_equal(y, x + 1)  # so the last of y is the first of the next x, and no more
    with pytest.raises(ValueError, match="block_size 100"):
        dataset.windows("train", 2, 100)


def test_memory_does_not_climb_with_the_batches(tmp_path: Path) -> None:
    resident = Path("/proc/self/statm")
    if not resident.exists():
        pytest.skip("resident memory is read from /proc")
    (tmp_path / "corpus.txt").write_text(random_text(2_000_000))
    dataset = load_dataset(str(tmp_path / "corpus.txt"), data_dir=tmp_path)
    file_bytes = dataset.train.nbytes
    rng = np.random.default_rng(0)

    def draw(batches: int) -> int:
        for _ in range(batches):
            dataset.get_batch("train", 32, 256, rng)
        return int(resident.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = draw(200)
    assert draw(3000) - before < file_bytes + (4 << 20)  # keeping the batches would be 200 MB
