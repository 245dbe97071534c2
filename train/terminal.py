r"""Text that may come from a stranger, on its way to a terminal or into a message.

    visible("\x1b[2J")  →  r"\x1b[2J"      on a terminal, what is a command to it is shown instead
    quoted(name)        →  a name or value of a file, escaped and cut, for a message
"""
from __future__ import annotations

import contextlib
import re
import reprlib
import sys
from collections.abc import Callable
from typing import Any, TextIO

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
                     "\ud800-\udfff]")
"""C0 and C1 controls but for tab and newline, DEL, what turns or breaks lines, lone surrogates."""

_quoting = reprlib.Repr()
_quoting.maxstring = _quoting.maxother = _quoting.maxlong = 80


def visible(text: str) -> str:
    """The text with every control character written as Python writes it."""
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def quoted(value: Any) -> str:
    """A value as Python writes it, escaped, of at most about a line."""
    return visible(_quoting.repr(value))


def few(names: list[str], limit: int = 3) -> str:
    """Names for a message: the first ones, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(quoted(name) for name in names[:limit]) + more


def printer(stream: TextIO | None) -> Callable[[str], None]:
    """A function that writes text to `stream` at once: on a terminal the visible text, elsewhere
    the text as it is; a character that the stream's encoding lacks is escaped.

    `stream` need not be a file: whatever stands in for sys.stdout in a notebook or under
    redirect_stdout will do. Raises OSError where it is closed; the function raises OSError, of
    which BrokenPipeError says that the reader has gone.
    """
    if stream is None or getattr(stream, "closed", False):
        raise OSError("standard output is closed: there is nowhere to print to")
    on_terminal = hasattr(stream, "isatty") and stream.isatty()
    encoding = getattr(stream, "encoding", None)

    def write(text: str) -> None:
        text = visible(text) if on_terminal else text
        if encoding:
            text = text.encode(encoding, "backslashreplace").decode(encoding)
        try:
            stream.write(text)
            if hasattr(stream, "flush"):
                stream.flush()
        except BrokenPipeError:
            _abandon(stream)
            raise
        except OSError as error:
            _abandon(stream)
            raise OSError(f"cannot write to standard output: {error.strerror}") from None

    return write


def _abandon(stream: TextIO) -> None:
    """Forget what the process's own standard output still holds, or Python would try to write it
    again as it exits, and complain."""
    if stream is sys.__stdout__:
        with contextlib.suppress(OSError):
            stream.close()
