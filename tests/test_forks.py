"""Children forked while another thread computes: they find every lock free."""
from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from _thread import LockType
from pathlib import Path

import pytest

from uopc import locks

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import sys; sys.path.insert(0, {root!r})
import os, threading, time, numpy as np
from uopc.jit import jit
from uopc.tensor import Tensor
x = Tensor(np.ones((200, 200), np.float32))
def value(k=1):
    y = x @ x + k
    return (y.softmax(-1) + y.sum()).numpy()[3, 4]
captured = jit(lambda x: (x @ x + 1).sum())
work = {{"plan": lambda: value() == np.float32(200 * 200 * 201 + 1 / 200),
        "jit": lambda: captured(x).item() == 200 * 200 * 201,
        "new": lambda: value(numbers.pop()) > 0}}[{work!r}]
numbers = [float(k) for k in range(1000)]
for _ in range(4):
    assert work()
ended = threading.Event()
def loop():
    while not ended.is_set():
        work()
thread = threading.Thread(target=loop)
thread.start()
codes = []
for _ in range({forks}):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        os._exit(0 if work() and value() > 0 else 1)
    deadline = time.monotonic() + 10
    while not (ended_now := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.002)
    if not ended_now[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    codes.append(ended_now[1] if ended_now[0] else "hangs")
ended.set()
thread.join()
print(codes)
"""


@pytest.mark.parametrize("work", ["plan", "jit", "new"])
def test_a_child_computes_while_its_parent_does(work: str) -> None:
    code = PROGRAM.format(root=str(ROOT), work=work, forks=10)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=120)
    assert (done.stdout, done.stderr) == (f"{[0] * 10}\n", "")


def test_every_lock_of_uopc_is_freed_in_a_child() -> None:
    """Nobody makes one elsewhere: not in its source, and none that lives is unknown."""
    for path in (ROOT / "uopc").rglob("*.py"):
        text = path.read_text()
        assert path.name == "locks.py" or not any(
            f"{name}(" in text for name in ("Lock", "RLock", "Condition", "Event")), path


def test_what_the_forking_thread_holds_stays_held() -> None:
    own, foreign = locks.rlock(), locks.lock()
    thread = threading.Thread(target=foreign.acquire)
    thread.start()
    thread.join()
    with own:
        child = os.fork()
        if child == 0:
            try:
                is_free = foreign.acquire(timeout=5)
                own.release()
                os._exit(0 if is_free else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert foreign.locked()


def test_a_lock_that_nobody_has_is_not_remembered() -> None:
    gc.collect()
    before = len(locks._living)
    made = [locks.lock(), locks.rlock()]
    assert len(locks._living) == before + 2 and type(made[0]) is LockType
    made.clear()
    assert len(locks._living) == before
