"""Text ↔ token ids: one id per character of the corpus, or one of tiktoken's encodings.

    CharTokenizer("abn").encode("banana")     →  [1, 0, 2, 0, 2, 0]
    make_tokenizer("gpt2", "").encode("Hello world")  →  [15496, 995]

`state()` is a dict of JSON values that stands in every prepared folder and checkpoint;
`tokenizer_from_state` gives the same tokenizer back.
"""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

_PIECE = 1 << 20  # characters encoded at once: bounds the memory that a large corpus takes


class Tokenizer(Protocol):
    """What both kinds offer."""

    name: str
    vocab_size: int

    def encode(self, text: str) -> list[int]: ...

    def encode_pieces(self, text: str) -> Iterator[np.ndarray]:
        """The ids of `text` as 1-d integer arrays, to be put one after another."""
        ...

    def decode(self, ids: Iterable[int]) -> str: ...

    def state(self) -> dict[str, Any]: ...


class CharTokenizer:
    """One id per character; ids follow the order of the characters' code points."""

    name = "char"

    def __init__(self, chars: str) -> None:
        """`chars`: the vocabulary, sorted and without repeats. Raises ValueError otherwise."""
        codes = _code_points(chars)
        if codes.size == 0 or np.any(codes[1:] <= codes[:-1]):
            raise ValueError("a character vocabulary must be sorted, distinct and not empty")
        if np.any((codes >= 0xD800) & (codes < 0xE000)):
            raise ValueError("a character vocabulary cannot hold halves of characters (surrogates)")
        self.chars = chars
        self.vocab_size = len(chars)
        # Indexed by code point; the last entry stands for everything beyond the highest one.
        self._ids = np.full(int(codes[-1]) + 2, -1, dtype=np.int32)
        self._ids[codes] = np.arange(codes.size, dtype=np.int32)

    @classmethod
    def of_text(cls, text: str) -> CharTokenizer:
        """The tokenizer whose vocabulary is the distinct characters of `text`."""
        return cls("".join(sorted(set(text))))

    def encode(self, text: str) -> list[int]:
        """One id per character. Raises ValueError naming a character outside the vocabulary."""
        return [i for piece in self.encode_pieces(text) for i in piece.tolist()]

    def encode_pieces(self, text: str) -> Iterator[np.ndarray]:
        for start in range(0, len(text), _PIECE):
            codes = _code_points(text[start : start + _PIECE])
            ids = self._ids[np.minimum(codes, self._ids.size - 1)]
            unknown = np.flatnonzero(ids < 0)
            if unknown.size:
                char = text[start + int(unknown[0])]
                raise ValueError(
                    f"character {char!r} (U+{ord(char):04X}) at position {start + unknown[0]} is "
                    f"not one of the {self.vocab_size} characters of the training text"
                )
            yield ids

    def decode(self, ids: Iterable[int]) -> str:
        """One character per id. Raises ValueError for an id outside the vocabulary."""
        return "".join(self.chars[i] for i in _checked_ids(ids, self))

    def state(self) -> dict[str, Any]:
        return {"kind": "char", "chars": self.chars}


class TiktokenTokenizer:
    """An encoding of the tiktoken library, by its name. Special tokens are never encoded."""

    def __init__(self, name: str) -> None:
        """Raises ValueError for a name tiktoken lacks, ConnectionError if it cannot be loaded."""
        check_tokenizer_name(name)
        import tiktoken  # here, not above: character data sets do without it

        try:
            self._encoding = tiktoken.get_encoding(name)
        except (OSError, ValueError) as error:  # no network, or a damaged download
            reason = textwrap.shorten(str(error), 150, placeholder="…") or type(error).__name__
            raise ConnectionError(
                f"tokenizer {name!r}: tiktoken cannot load it ({reason}); it needs a network the "
                "first time, or use --tokenizer=char, which needs none"
            ) from error
        self.name = name
        self.vocab_size = self._encoding.n_vocab

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, read as ordinary text."""
        return self._encoding.encode_ordinary(text)

    def encode_pieces(self, text: str) -> Iterator[np.ndarray]:
        # In one piece: a cut in the text could split a token.
        yield np.asarray(self.encode(text), dtype=np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; bytes that are not UTF-8 become U+FFFD.

        Raises ValueError for an id outside the vocabulary.
        """
        checked = _checked_ids(ids, self)
        try:
            return self._encoding.decode(checked)
        except KeyError as error:  # some encodings have gaps among their special tokens
            raise ValueError(f"{self.name} has no token for one of the ids: {error}") from error

    def state(self) -> dict[str, Any]:
        return {"kind": "tiktoken", "name": self.name, "vocab_size": self.vocab_size}


def check_tokenizer_name(name: str) -> None:
    """Raises ValueError listing the known names unless `name` is one of them."""
    if name == "char":
        return
    try:
        import tiktoken
    except ImportError as error:
        raise ValueError(
            f"tokenizer {name!r} needs the tiktoken package (pip install tiktoken); "
            "--tokenizer=char does without"
        ) from error
    known = tiktoken.list_encoding_names()
    if name not in known:
        raise ValueError(f"unknown tokenizer {name!r}; known: char, {', '.join(sorted(known))}")


def make_tokenizer(name: str, text: str) -> Tokenizer:
    """The tokenizer `name`; "char" takes its vocabulary from `text`. Raises as its class does."""
    return CharTokenizer.of_text(text) if name == "char" else TiktokenTokenizer(name)


def tokenizer_from_state(state: dict[str, Any]) -> Tokenizer:
    """The tokenizer whose `state()` this is.

    Raises ValueError if it is no such state, or if tiktoken's vocabulary has another size now.
    """
    if not isinstance(state, dict):
        raise ValueError(f"a tokenizer's state is a dict, got {type(state).__name__}")
    if state.get("kind") == "char" and isinstance(state.get("chars"), str):
        return CharTokenizer(state["chars"])
    if state.get("kind") == "tiktoken" and isinstance(state.get("name"), str):
        tokenizer = TiktokenTokenizer(state["name"])
        saved = state.get("vocab_size", tokenizer.vocab_size)
        if saved != tokenizer.vocab_size:
            raise ValueError(
                f"tokenizer {tokenizer.name!r} had {reprlib.repr(saved)} tokens when this was "
                f"saved, the installed one has {tokenizer.vocab_size}"
            )
        return tokenizer
    raise ValueError(f"not a tokenizer's state: {reprlib.repr(state)}")


def _code_points(text: str) -> np.ndarray:
    # "surrogatepass": a prompt from the command line may hold half a character.
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _checked_ids(ids: Iterable[int], tokenizer: Tokenizer) -> list[int]:
    checked = [int(i) for i in ids]
    for i in checked:
        if not 0 <= i < tokenizer.vocab_size:
            raise ValueError(
                f"id {i} is outside the vocabulary of {tokenizer.name!r}: "
                f"0 <= id < {tokenizer.vocab_size}"
            )
    return checked
