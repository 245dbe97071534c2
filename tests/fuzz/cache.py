"""Damaged, exchanged and unusable cache folders: a computation gives its right result all the same,
with at most one line of warning."""
from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.harness import Case, Outcome, outcome_of_command, verdict

COUNT, STRIDE = 200, 4
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import resource, sys; sys.path.insert(0, {root!r})
{before}
import numpy as np
from uopc.tensor import Tensor
x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
y = (x * {scale}).softmax(-1).numpy().ravel()
print([round(float(v), 4) for v in y[:4]], (x * 3).sum().item())
"""
LIMITS = {"no file": "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
          "small files": "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))",
          "few descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))"}


def program(folder: Path, scale: float = 2.0, before: str = "") -> Outcome:
    code = PROGRAM.format(root=str(ROOT), scale=scale, before=before)
    return outcome_of_command([sys.executable, "-c", code],
                              env={**os.environ, "UOPC_CACHE": str(folder)})


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    full = folder / "full"
    right = {scale: program(full, scale).output for scale in (2.0, 5.0)}
    for number in range(count):
        damaged = folder / f"case{number}"
        shutil.copytree(full, damaged)
        damaged.chmod(0o700)
        what, before = damage(rng, damaged)
        scale = rng.choice([2.0, 5.0])
        outcome = program(damaged, scale, before)
        yield Case(f"{number}: {what}", judged(outcome, right[scale]), outcome.output)
        damaged.chmod(0o700)
        shutil.rmtree(damaged)


def judged(outcome: Outcome, right: str) -> str:
    """One line of explanation may stand beside the right result, or in its place."""
    lines = outcome.output.splitlines()
    if outcome.code != 0:
        ending = verdict(outcome)
        raised = [line for line in lines if line.startswith("uopc.compiler.CompileError")]
        return "refused" if ending == "traceback" and raised else ending
    said = [line for line in lines if line.startswith("uopc: ")]
    given = "\n".join(line for line in lines if line not in said) + "\n"
    return "right" if given == right and len(said) <= 1 else "wrong"


def damage(rng: random.Random, folder: Path) -> tuple[str, str]:
    """(what was done to the folder, code that the program begins with)."""
    files = sorted(folder.iterdir())
    kind = rng.choice(sorted([*FILE_DAMAGE, "exchange", "shift", "clear", "mode", *LIMITS]))
    if kind in LIMITS:
        for path in rng.sample(files, rng.randrange(len(files) + 1)):
            path.unlink()
        return kind, LIMITS[kind]
    if kind in ("exchange", "shift"):
        suffix = rng.choice([".plan", ".so"])
        alike = [p for p in files if p.suffix == suffix]
        rng.shuffle(alike)
        contents = [p.read_bytes() for p in alike]
        for path, content in zip(alike, contents[1:] + contents[:1], strict=True):
            path.unlink()  # links stay apart
            path.write_bytes(content)
            path.chmod(0o600)
        return f"{kind} of {len(alike)} {suffix}", ""
    if kind == "clear":
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        return kind, ""
    if kind == "mode":
        mode = rng.choice([0o777, 0o770, 0o500, 0o1777, 0o000])
        folder.chmod(mode)
        return f"mode {mode:o}", ""
    chosen = rng.sample(files, rng.randint(1, len(files)))
    for path in chosen:
        content = path.read_bytes()
        path.unlink()
        FILE_DAMAGE[kind](path, content, rng)
    return f"{kind} of {len(chosen)} of {len(files)}", ""


def flipped(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1:]


def given_away(path: Path, content: bytes, rng: random.Random) -> None:
    path.write_bytes(content)
    path.chmod(rng.choice([0o666, 0o606, 0o000]))
    if os.getuid() == 0 and rng.random() < 0.5:
        os.chown(path, 12345, 12345)


FILE_DAMAGE: dict[str, Callable[[Path, bytes, random.Random], object]] = {
    "cut": lambda path, content, rng: path.write_bytes(content[:rng.randrange(len(content))]),
    "flip": lambda path, content, rng: path.write_bytes(flipped(content, rng)),
    "append": lambda path, content, rng: path.write_bytes(content + rng.randbytes(40)),
    "foreign": lambda path, content, rng: path.write_bytes(rng.randbytes(500)),
    "missing": lambda path, content, rng: None,
    "fifo": lambda path, content, rng: os.mkfifo(path),
    "folder": lambda path, content, rng: (path.mkdir(), (path / "x").touch()),
    "link": lambda path, content, rng: path.symlink_to(rng.choice(["/dev/zero", "/etc/passwd",
                                                                   path.name, "nowhere"])),
    "other rights": given_away,
}
