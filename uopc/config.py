"""Every environment variable that uopc reads, each with its default and what it means.

They are read when they are needed, not when uopc is imported, so a program may set them first.
"""
from __future__ import annotations

import functools
import os

VARIABLES = {
    "DEBUG": ("0", "1: a line per realize; 2: a line per kernel; 3: a warm run too; 4: the C"),
    "OPT": ("2", "the optimizer level: 0 the textbook compiler, 1 fast loops, 2 fused kernels"),
    "SPEC": ("0", "1: check the graph against the stage's spec after every pass"),
    "PROFILE": ("0", "a file for a timeline of the process, in the trace-event format; 0: none"),
    "GOMP_SPINCOUNT": ("10000", "how long idle threads of OpenMP spin before they sleep"),
    "DUMP": ("0", "1: print the loops of each new kernel after every pass"),
    "CC": ("", "the C compiler, with arguments if needed; else gcc, clang or cc is looked for"),
    "XDG_CACHE_HOME": ("", "the user's cache folder; else ~/.cache"),
    "UOPC_CACHE": ("", "the folder of compiled objects; else the user's own cache folder"),
}
LEVELS = (0, 1, 2)  # the optimizer levels that exist


def read(name: str) -> str:
    """The value of a variable of the table above, or its default."""
    return os.environ.get(name) or VARIABLES[name][0]


def read_int(name: str) -> int:
    """The same as a whole number. Raises ValueError that names the variable otherwise."""
    text = read(name)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} in the environment: expected a whole number") from None


def explains() -> bool:
    """Whether messages are wanted that name the line of the user's program."""
    return any(read(name) != "0" for name in ("DEBUG", "SPEC", "PROFILE"))


def debug() -> int:
    return read_int("DEBUG")


@functools.total_ordering
class EnvInt:
    """A whole-numbered variable of the environment that compares like the number it holds now."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __int__(self) -> int:
        return read_int(self.name)

    __index__ = __int__

    def __bool__(self) -> bool:
        return int(self) != 0

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    def __lt__(self, other: int) -> bool:
        return int(self) < other

    def __hash__(self) -> int:
        return hash(int(self))

    def __repr__(self) -> str:
        return f"{self.name}={int(self)}"


def opt_level() -> int:
    """The optimizer level. Raises ValueError when `OPT` names one that does not exist."""
    level = read_int("OPT")
    if level not in LEVELS:
        known = ", ".join(map(str, LEVELS))
        raise ValueError(f"OPT={level} in the environment: the levels are {known}")
    return level
