"""What uopc tells the user, beside results and exceptions."""
from __future__ import annotations

import contextlib
import sys


def say(text: str) -> None:
    """A line on stderr, where there is one: daemons and notebooks close or replace it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
