"""Ctrl-C while a script is starting: one line and status 130, where Python would print a traceback
of whichever module it was loading."""
from __future__ import annotations

import os
import signal


def end_at_once(program: str) -> None:
    """From now on Ctrl-C ends the process. Where it does nothing, as below nohup, that
    stays. A standard stream that is closed becomes the null device."""
    for descriptor in range(3):  # or a file that is opened next would take what is printed
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)

    def end(*_: object) -> None:
        os.write(2, f"{program}: interrupted\n".encode())
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def raise_again() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, as Python has it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
