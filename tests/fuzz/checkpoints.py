"""Damaged and hostile checkpoints, each given to train/sample.py and to a resume of train/gpt.py.

Damage is flipped, cut, added and exchanged bytes: never accepted without a word, because of the
checksum. A hostile file is well-formed and has a checksum that fits: its fields, its tensors or its
kind are not what they should be. One that is refused must leave its folder as it was.
"""
from __future__ import annotations

import copy
import json
import math
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.harness import Case, outcome_of, verdict
from train import gpt, sample
from train.checkpoint import FILE_NAME, METADATA_KEY, with_checksum

COUNT, STRIDE = 500, 24
WRONG = (None, "x", "1", "", "\x1b[2J\u202e", -1, 10**7, 10**30, 1.5, -0.5, math.nan, math.inf, [],
         {}, [[[]]], {"a": 1}, [1, 2, 3], "/etc/passwd", "../../x", "\ud800", "x" * 100_000)
PATHS = ("/etc/passwd", "../../x", "~/x", "text.txt", "\x1b]0;x\x07", "/dev/zero")
Info = dict[str, Any]
Tensors = dict[str, dict[str, Any]]


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    text, whole = folder / "text.txt", folder / "whole"
    text.write_text("".join(f"{k} of {k * k} dogs.\n" for k in range(300)))
    train = [f"--dataset={text}", f"--data_dir={folder}"]
    outcome = outcome_of(lambda: gpt.main(
        [*train, f"--out_dir={whole}", "--n_layer=1", "--n_head=2", "--n_embd=16", "--block_size=8",
         "--batch_size=2", "--max_iters=2", "--eval_iters=1", "--warmup_iters=1"]))
    yield Case("none: training", verdict(outcome), outcome.output)
    good = (whole / FILE_NAME).read_bytes()
    for number in range(count):
        what, damage = rng.choice((bytes_damaged, bytes_damaged, info_edited, info_edited,
                                   tensors_edited, tensors_edited, kind_changed, untouched))(rng)
        runs = [("sample", sample_of), ("resume", resume_of)]
        for name, run in [*runs, ("resume without paths", bare_resume_of)] \
                if ": path" in what else runs:
            out_dir = folder / f"{number}-{name}"
            out_dir.mkdir()
            damage(good, out_dir / FILE_NAME)
            yield judged(f"{name}, {what}", run(out_dir, train), out_dir)
            shutil.rmtree(out_dir)


def sample_of(out_dir: Path, _: list[str]) -> Callable[[], object]:
    return lambda: sample.main([f"--out_dir={out_dir}", "--start=1", "--max_new_tokens=2"])


def resume_of(out_dir: Path, train: list[str]) -> Callable[[], object]:
    return lambda: gpt.main([f"--out_dir={out_dir}", "--init_from=resume", "--max_iters=3", *train])


def bare_resume_of(out_dir: Path, _: list[str]) -> Callable[[], object]:
    return resume_of(out_dir, [])


def judged(what: str, run: Callable[[], object], out_dir: Path) -> Case:
    """What is untouched must be right, what is damaged or hostile refused; a path that nobody
    follows does no harm, and what a warning was given of was not accepted without a word."""
    harmless = ": untouched" in what or (": path" in what and "without paths" not in what)
    before = listing(out_dir)
    outcome = outcome_of(run, memory=8 << 30)
    ending = verdict(outcome)
    if ending == "right" and not harmless and "has no checksum" not in outcome.output:
        ending = "silent"
    if ending == "refused" and (harmless or listing(out_dir) != before):
        ending = "wrong"
    if ending in ("right", "refused") and any(c in outcome.output for c in "\x1b\x07\u202e"):
        ending = "wrong"  # a terminal would obey the file
    return Case(what, ending, outcome.output)


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((p.name, p.lstat().st_mtime_ns, p.lstat().st_size) for p in folder.iterdir())


# *** what is done to the file: a name for it, and a function of the good bytes and the path ***

Damage = tuple[str, Callable[[bytes, Path], object]]


def untouched(_: random.Random) -> Damage:
    return "file: untouched", lambda good, path: path.write_bytes(good)


def bytes_damaged(rng: random.Random) -> Damage:
    kind, share, seed = rng.choice(("flip", "set", "cut", "append", "length", "swap", "pad")), \
        rng.random(), rng.random()

    def damage(good: bytes, path: Path) -> None:
        raw, local = bytearray(good), random.Random(seed)
        header = 8 + int.from_bytes(raw[:8], "little")
        # Half of all hits go to the header, which is small.
        at = int(share * 2 * header) if share < 0.5 else int(share * len(raw))
        if kind == "flip":
            raw[at] ^= 1 << local.randrange(8)
        elif kind == "set":
            raw[at] ^= local.randrange(1, 256)
        elif kind == "cut":
            del raw[at:at + local.choice((1, 4, len(raw)))]
        elif kind == "append":
            raw += local.randbytes(local.choice((1, 8, 1000)))
        elif kind == "length":
            raw[:8] = struct.pack("<Q", local.choice((0, 1, header, 1 << 20, 1 << 62)))
        elif kind == "swap":
            middle = (header + len(raw)) // 8 * 4
            raw[header:] = raw[middle:] + raw[header:middle]
        elif kind == "pad":  # blanks at the header's end mean nothing, and are not as they were
            raw[:8] = struct.pack("<Q", header)
            raw[header:header] = b" " * 8
        path.write_bytes(raw)

    return f"bytes: {kind} at {share:.4f}", damage


def taken_apart(good: bytes) -> tuple[Info, Tensors]:
    size = int.from_bytes(good[:8], "little")
    header, data = json.loads(good[8:8 + size]), good[8 + size:]
    info = json.loads(header.pop("__metadata__")[METADATA_KEY])
    tensors = {name: {"dtype": at["dtype"], "shape": at["shape"],
                      "data": data[slice(*at["data_offsets"])]} for name, at in header.items()}
    return info, tensors


def put_together(info: Any, tensors: Tensors, path: Path, checksum: bool = True) -> None:
    """A well-formed file, for whose checksum its author took care."""
    if isinstance(info, dict):
        info.pop("sha256", None)

    def serialize(description: str) -> bytes:
        header: dict[str, Any] = {"__metadata__": {METADATA_KEY: description}}
        at = 0
        for name, tensor in tensors.items():
            end = at + len(tensor["data"])
            header[name] = {"dtype": tensor["dtype"], "shape": tensor["shape"],
                            "data_offsets": [at, end]}
            at = end
        raw = json.dumps(header).encode()
        return struct.pack("<Q", len(raw)) + raw + b"".join(t["data"] for t in tensors.values())

    path.write_bytes(with_checksum(serialize, info) if checksum and isinstance(info, dict)
                     else serialize(json.dumps(info)))


def info_edited(rng: random.Random) -> Damage:
    kind = rng.choice(("value", "value", "value", "delete", "add", "whole", "deep", "path",
                       "steps", "no checksum"))
    seed = rng.random()
    def damage(good: bytes, path: Path) -> None:
        info, tensors = taken_apart(good)
        local = random.Random(seed)
        place, key = local.choice(places(info))
        if kind == "value":
            wrong = [w for w in WRONG if not plausible(place[key], w, key)]
            place[key] = copy.deepcopy(local.choice(wrong))
        elif kind == "delete":
            del info[local.choice([name for name in info if name != "sha256"])]
        elif kind == "add":
            local.choice([info, info["options"], info["model"]])[local.choice(
                ("x", "__class__", "\x1b[2J", "", "x" * 10_000))] = local.choice(WRONG)
        elif kind == "whole":
            info = local.choice(WRONG)
        elif kind == "deep":
            deep: Any = 1
            for _ in range(800):
                deep = [deep]
            place[key] = deep
        elif kind == "path":
            info["options"][local.choice(("dataset", "data_dir", "out_dir"))] = local.choice(PATHS)
        elif kind == "steps":
            steps = info["optimizer_steps"]
            local.choice((steps.pop, lambda: steps.append(1), lambda: steps.insert(0, -1),
                          lambda: steps.insert(0, 10**9), lambda: steps.__setitem__(0, 1.0)))()
        put_together(info, tensors, path, checksum=kind != "no checksum")

    return f"info: {kind} {seed}", damage


def places(info: Info) -> list[tuple[Any, Any]]:
    """Every place of the JSON: what contains it, and its key there."""
    found: list[tuple[Any, Any]] = [(info, key) for key in info if key != "sha256"]
    for key in ("options", "model", "tokenizer"):
        found += [(info[key], name) for name in info[key]]
    return found + [(info["random"], k) for k in range(2)] \
        + [(info["optimizer_steps"], k) for k in (0, -1)]


def plausible(now: Any, wrong: Any, key: Any) -> bool:
    """Whether `wrong` is a value like the present one, which may well be right."""
    if isinstance(wrong, float) and wrong in (1.5, -0.5):
        return type(now) is float
    if type(now) is int:
        return type(wrong) is int and wrong >= 0
    return key in ("dataset", "data_dir", "out_dir") and (wrong is None or type(wrong) is str)


def tensors_edited(rng: random.Random) -> Damage:
    kind = rng.choice(("rename", "drop", "add", "reshape", "retype", "grow", "nan", "inf",
                       "negative", "layers", "width", "vocabulary", "context"))
    seed = rng.random()

    def damage(good: bytes, path: Path) -> None:
        info, tensors = taken_apart(good)
        local = random.Random(seed)
        name = local.choice(list(tensors))
        if kind == "negative":
            name = local.choice([n for n in tensors if n.startswith("optimizer.v.")])
        tensor = tensors[name]
        if kind == "rename":
            tensors[local.choice(("x", "model", "\x1b[2J", name + ".x", name[1:]))] = \
                tensors.pop(name)
        elif kind == "drop":
            del tensors[name]
        elif kind == "add":
            tensors[local.choice(("x", "model.x", "optimizer.m.\x1b[2J"))] = tensor
        elif kind == "reshape":
            tensor["shape"] = local.choice(([1, *tensor["shape"]], [len(tensor["data"]) // 4, 1, 1],
                                            [*tensor["shape"], 1]))
        elif kind == "retype":
            tensor["dtype"] = local.choice(("I32", "F16", "F64", "BF16", "F8_E5M2", "U8", "BOOL"))
            size = {"I32": 4, "F64": 8, "F16": 2, "BF16": 2}.get(tensor["dtype"], 1)
            tensor["data"] = b"\0" * math.prod(tensor["shape"]) * size
        elif kind == "grow":
            tensor["shape"] = [2 * tensor["shape"][0], *tensor["shape"][1:]]
            tensor["data"] *= 2
        elif kind in ("nan", "inf", "negative"):
            values = np.frombuffer(tensor["data"], np.float32).copy()
            values[local.randrange(len(values))] = {"nan": math.nan, "inf": -math.inf,
                                                    "negative": -1.0}[kind]
            tensor["data"] = values.tobytes()
        elif kind == "context":
            with_context(info, tensors, 400_000)
        else:
            size = {"layers": "n_layer", "width": "n_embd", "vocabulary": "vocab_size"}[kind]
            info["model"][size] = local.choice((2, 2000, 10**7, 2**30))
            if kind != "vocabulary":
                info["options"][size] = info["model"][size]
        put_together(info, tensors, path)

    return f"tensors: {kind} {seed}", damage


def with_context(info: Info, tensors: Tensors, size: int) -> None:
    """A context of `size` tokens, for which the file has all that it must have."""
    info["options"]["block_size"] = info["model"]["block_size"] = size
    for name, tensor in tensors.items():
        if name.endswith("wpe.weight"):
            width = tensor["shape"][1]
            tensor |= {"shape": [size, width], "data": bytes(size * width * 4)}


def kind_changed(rng: random.Random) -> Damage:
    kind = rng.choice(("FIFO", "folder", "loop", "/dev/zero", "/dev/null", "/dev/tty", "dangling",
                       "empty", "sparse", "text", "unreadable"))

    def damage(good: bytes, path: Path) -> None:
        if kind == "FIFO":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "loop":
            path.symlink_to(path)
        elif kind.startswith("/"):
            path.symlink_to(kind)
        elif kind == "dangling":
            path.symlink_to(path.with_name("nothing"))
        elif kind == "sparse":
            path.write_bytes(good)
            os.truncate(path, 1 << 42)
        elif kind == "unreadable" and os.geteuid() != 0:
            path.write_bytes(good)
            path.chmod(0)
        else:
            path.write_bytes({"text": b"Not a checkpoint.\n" * 99}.get(kind, b""))

    return f"file: {kind}", damage
