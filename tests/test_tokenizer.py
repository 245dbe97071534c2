"""Tokenizers: text to ids and back, their JSON state, and what they refuse."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import CharTokenizer, load_dataset, tokenizer_from_state


def test_char_tokenizer_names_an_unknown_character() -> None:
    tokenizer = CharTokenizer.of_text("hello world")
    assert tokenizer.decode(tokenizer.encode("lower")) == "lower"
    for char, name in (("Q", "'Q'"), ("é", "'é'"), ("😀", "'😀'"), ("\udc80", r"'\\udc80'")):
        with pytest.raises(ValueError, match=f"{name} .* position 3 .* 8 characters"):
            tokenizer.encode("wor" + char)


@pytest.mark.parametrize("bad_id", [-1, 8])
def test_char_tokenizer_refuses_an_id_outside_the_vocabulary(bad_id: int) -> None:
    with pytest.raises(ValueError, match=f"id {bad_id} .* < 8"):
        CharTokenizer.of_text("hello world").decode([0, bad_id])


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_char_tokenizer_round_trip_through_json(text: str) -> None:
    tokenizer = CharTokenizer.of_text(text)
    again = tokenizer_from_state(json.loads(json.dumps(tokenizer.state())))
    assert again.vocab_size == len(set(text))
    assert again.decode(again.encode(text)) == text
    assert again.encode(text) == tokenizer.encode(text)


@pytest.mark.parametrize(
    "state", [{}, {"kind": "word"}, {"kind": "char"}, {"kind": "char", "chars": "ba"}, None]
)
def test_a_broken_tokenizer_state_is_refused(state: object) -> None:
    with pytest.raises(ValueError):
        tokenizer_from_state(state)


def test_unknown_tokenizer_lists_the_known_ones(tmp_path: Path) -> None:
    pytest.importorskip("tiktoken")
    with pytest.raises(ValueError, match="unknown tokenizer 'gpt5'; known: char, .*gpt2"):
        load_dataset("python", "gpt5", data_dir=tmp_path)


def test_tiktoken_without_network_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken")

    def fail(_name: str) -> None:
        raise OSError("no\nroute")

    monkeypatch.setattr(tiktoken, "get_encoding", fail)
    with pytest.raises(ConnectionError) as caught:
        tokenizer_from_state({"kind": "tiktoken", "name": "gpt2"})
    assert "'gpt2'" in str(caught.value) and "--tokenizer=char" in str(caught.value)
    assert "\n" not in str(caught.value)


def load_gpt2_or_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken")

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    try:
        tiktoken.get_encoding("gpt2")
    except (OSError, ValueError):
        pytest.skip("tiktoken has no gpt2 in its cache, and tests use no network")


def test_gpt2_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_gpt2_or_skip(monkeypatch)
    text = "Hello world, uopc!" * 10
    path = tmp_path / "corpus.txt"
    path.write_text(text)
    dataset = load_dataset(str(path), "gpt2", data_dir=tmp_path)
    assert dataset.vocab_size == 50257 and dataset.train.dtype == np.uint16
    assert dataset.train[:7].tolist() == [15496, 995, 11, 334, 404, 66, 0]
    assert dataset.tokenizer.decode(np.concatenate([dataset.train, dataset.val])) == text
    assert tokenizer_from_state(dataset.tokenizer.state()).encode("Hello") == [15496]
    with pytest.raises(ValueError, match="50257"):
        dataset.tokenizer.decode([50257])
    with pytest.raises(ValueError, match="had 9 tokens"):
        tokenizer_from_state({"kind": "tiktoken", "name": "gpt2", "vocab_size": 9})
