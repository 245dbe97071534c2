"""Damaged folders of prepared data: the batches are those of the text all the same, with a line
that it was prepared again, or the command ends with a refusal."""
from __future__ import annotations

import json
import os
import random
import shutil
import stat
import string
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data import TextDataset, load_dataset
from tests.fuzz.harness import Case, Outcome, outcome_of, verdict

COUNT, STRIDE = 200, 10
NAMES = ("meta.json", "train.bin", "val.bin")
WRONG = "other batches or another vocabulary"


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    corpus, other = folder / "corpus.txt", folder / "other.txt"
    corpus.write_text(text_of(rng), encoding="utf-8")
    other.write_text(text_of(rng), encoding="utf-8")
    intact = load_dataset(str(corpus), data_dir=folder / "intact")
    strange = load_dataset(str(other), data_dir=folder / "intact").folder
    for number in range(count):
        place = folder / f"case{number}"
        damaged = place / intact.folder.name
        shutil.copytree(intact.folder, damaged)
        what = damage(rng.choice(KINDS), rng, damaged, strange)
        must_say = (damaged / "meta.json").exists() \
            and contents(damaged) != contents(intact.folder)
        outcome = outcome_of(lambda place=place: load(corpus, place, intact))
        yield Case(f"{number}: {what}", judged(outcome, must_say), outcome.output)
        if damaged.is_dir():
            damaged.chmod(0o700)
        shutil.rmtree(place)


def text_of(rng: random.Random) -> str:
    """A text of 3000 characters; all such texts have the same vocabulary."""
    chars = list((string.ascii_letters + " \né€𝄞") * 60)[:3000]
    rng.shuffle(chars)
    return "".join(chars)


def contents(folder: Path) -> dict[str, bytes | None]:
    """The beginning of each file, longer than an intact one is; None where there is no file."""
    found: dict[str, bytes | None] = dict.fromkeys(NAMES)
    for path in (folder / name for name in NAMES):
        if path.is_file():
            with open(path, "rb") as file:
                found[path.name] = file.read(100_000)
    return found


def load(corpus: Path, place: Path, intact: TextDataset) -> None:
    """Load it twice: the first time may repair it, the second must find it sound."""
    for _ in range(2):
        data = load_dataset(str(corpus), data_dir=place)
        batches = [d.get_batch("train", 4, 16, np.random.default_rng(1)) for d in (data, intact)]
        if not (np.array_equal(*batches) and np.array_equal(data.train, intact.train)
                and np.array_equal(data.val, intact.val)
                and data.tokenizer.state() == intact.tokenizer.state()):
            sys.exit(WRONG)
        print("loaded", file=sys.stderr)


def judged(outcome: Outcome, must_say: bool) -> str:
    if WRONG in outcome.output:
        return "silent"
    lines = [line for line in outcome.output.splitlines() if line != "loaded"]
    if outcome.code != 0:
        # What load_dataset raises for a command to print; a caller sees no other exception.
        last = lines[-1] if lines else ""
        return "refused" if last.startswith(("ValueError: data set", "OSError: cannot write")) \
            else verdict(outcome)
    if must_say and not any(line.endswith("prepared again") for line in lines):
        return "silent"
    return "right" if sum("was in the way" not in line for line in lines) <= 1 else "wrong"


def damage(kind: str, rng: random.Random, folder: Path, strange: Path) -> str:
    """Do something of this kind to a prepared folder; returns what it was. `strange` is the folder
    of another text."""
    chosen = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    if kind in BYTES:
        for path in (folder / name for name in chosen):
            path.write_bytes(BYTES[kind](path.read_bytes(), rng))
        return f"{kind} of {', '.join(chosen)}"
    if kind in PLACES:
        for path in (folder / name for name in chosen):
            path.unlink()
            PLACES[kind](path)
        return f"{kind} for {', '.join(chosen)}"
    if kind in META:
        path = folder / "meta.json"
        meta = json.loads(path.read_bytes())
        where = META[kind](meta, rng)
        path.write_text(json.dumps(meta, indent=rng.choice([1, 1, None])))
        return f"{kind}: {where}"
    if kind == "rights":
        mode = rng.choice([0o000, 0o400, 0o777])
        target = rng.choice([folder, *(folder / name for name in NAMES)])
        target.chmod(mode)
        return f"mode {mode:o} of {target.name}"
    return kind + FOLDERS[kind](folder, strange, chosen)


def flipped(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1:]


def swapped(content: bytes, rng: random.Random) -> bytes:
    """Two tokens exchanged: every size, range and count stays as it was."""
    i, j = (2 * rng.randrange(len(content) // 2) for _ in range(2))
    pieces = bytearray(content)
    pieces[i:i + 2], pieces[j:j + 2] = content[j:j + 2], content[i:i + 2]
    return bytes(pieces)


BYTES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": flipped,
    "swap": swapped,
    "cut": lambda content, rng: content[:rng.randrange(len(content))],
    "append": lambda content, rng: content + rng.randbytes(rng.choice([1, 2, 1000])),
    "zeros": lambda content, rng: bytes(len(content)),
    "noise": lambda content, rng: rng.randbytes(len(content)),
    "deep JSON": lambda content, rng: b'{"format":' * 100_000,
    "deep list": lambda content, rng: b"[" * 100_000,
    "huge JSON": lambda content, rng: b"[" + b"0," * (10 << 20) + b"0]",
    "long number": lambda content, rng: b'{"format": ' + b"9" * 10_000 + b"}",
    "other JSON": lambda content, rng: rng.choice([b"null", b"[]", b"{}", b'""', b"1e999", b"NaN"]),
    "byte order mark": lambda content, rng: b"\xef\xbb\xbf" + content,
    "UTF-16": lambda content, rng: content.decode("latin-1").encode("utf-16"),
}

PLACES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "empty file": Path.touch,
    "FIFO": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "folder": lambda path: (path / "theirs").mkdir(parents=True),
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "link to a text": lambda path: path.symlink_to(__file__),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "100 GB": lambda path: (path.touch(), os.truncate(path, 10**11)),
}

VALUES: list[Any] = [None, True, 0, -1, 1, 10**30, -(10**30), 0.5, float("nan"), float("inf"), "",
                     "x", "\ud800", "uint32", "float64", "object", [], [1], [[]], {},
                     {"kind": "char"}, {"kind": "char", "chars": ""},
                     {"kind": "char", "chars": "ba"}, {"kind": "char", "chars": "\ud800"},
                     {"kind": "tiktoken", "name": "gpt2"}]


def places_in(meta: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Each entry of meta.json, those of its inner objects included."""
    inner = [(value, key) for value in meta.values() if isinstance(value, dict) for key in value]
    return [*((meta, key) for key in meta), *inner]


def other_value(meta: dict[str, Any], rng: random.Random) -> str:
    place, key = rng.choice(places_in(meta))
    place[key] = rng.choice([v for v in VALUES if v != place[key]])
    return f"{key} = {place[key]!r}"


def nested_value(meta: dict[str, Any], rng: random.Random) -> str:
    place, key = rng.choice(places_in(meta))
    for _ in range(rng.choice([1, 5, 500])):
        place[key] = rng.choice([[place[key]], {key: place[key]}])
    return key


def deleted_value(meta: dict[str, Any], rng: random.Random) -> str:
    place, key = rng.choice(places_in(meta))
    del place[key]
    return key


def added_value(meta: dict[str, Any], rng: random.Random) -> str:
    place = rng.choice([meta, *(v for v in meta.values() if isinstance(v, dict))])
    place["added"] = rng.choice(VALUES)
    return f"{place['added']!r}"


def other_vocabulary(meta: dict[str, Any], rng: random.Random) -> str:
    """One character is another, and the order stays: only the text tells that it is wrong."""
    chars = meta["tokenizer"]["chars"]
    at = rng.randrange(len(chars) - 1)
    between = [chr(c) for c in range(ord(chars[at]) + 1, ord(chars[at + 1]))]
    new = rng.choice(between) if between else ""
    meta["tokenizer"]["chars"] = chars[:at] + new + chars[at + 1:]
    return f"{chars[at]!r} is {new!r}"


META: dict[str, Callable[[dict[str, Any], random.Random], str]] = {
    "other value": other_value, "nested value": nested_value, "deleted value": deleted_value,
    "added value": added_value, "other vocabulary": other_vocabulary,
}


def exchange(folder: Path, strange: Path, chosen: list[str]) -> str:
    first, second = folder / "train.bin", folder / "val.bin"
    first.rename(folder / "aside")
    second.rename(first)
    (folder / "aside").rename(second)
    return " of the splits"


def strange_files(folder: Path, strange: Path, chosen: list[str]) -> str:
    for name in chosen:
        shutil.copy(strange / name, folder / name)
    return f" {', '.join(chosen)}"


def strange_folder(folder: Path, strange: Path, chosen: list[str]) -> str:
    shutil.rmtree(folder)
    folder.symlink_to(shutil.copytree(strange, folder.with_name("theirs")))
    return " behind a link"


def no_folder(folder: Path, strange: Path, chosen: list[str]) -> str:
    shutil.rmtree(folder)
    what = sorted(PLACES)[len(chosen) * 3 % len(PLACES)]
    PLACES[what](folder)
    return f": {what}"


FOLDERS: dict[str, Callable[[Path, Path, list[str]], str]] = {
    "exchange": exchange, "strange file": strange_files, "strange folder": strange_folder,
    "not a folder": no_folder,
}
KINDS = [*BYTES, *PLACES, *META, *FOLDERS, "rights"]
