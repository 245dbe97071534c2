"""The compiler's runs: which end when they are not wanted any more; settings that cannot be used."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SLOW = """#!/bin/sh
case "$*" in *-dM*) exec gcc "$@";; esac
touch {folder}/started.$$
sleep 31.4159 &
wait
"""
INTERRUPTED = """
import sys; sys.path.insert(0, {root!r})
import _thread, os, threading, time, numpy as np
from pathlib import Path
from uopc.tensor import Tensor
folder = Path({folder!r})
def interrupt():
    while not list(folder.glob("started.*")):
        time.sleep(0.01)
    time.sleep({after})
    {act}
threading.Thread(target=interrupt, daemon=True).start()
x = Tensor(np.ones((30, 30), np.float32))
try:
    (x @ x).softmax(-1).numpy()
except KeyboardInterrupt:
    print("interrupted")
os.environ["CC"] = "gcc"
print((x + 1).sum().item())
"""


def sleepers() -> list[int]:
    """Processes that the slow compiler started."""
    found = subprocess.run(["pgrep", "-f", "sleep 31.4159"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def slow_compiler(folder: Path) -> Path:
    path = folder / "slow-gcc"
    path.write_text(SLOW.format(folder=folder))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("after", [0, 2.3])
def test_an_interrupt_ends_the_compilers(after: float, tmp_path: Path) -> None:
    """At once, with the compilers' children; what compiles for longer than 2 s is said."""
    code = INTERRUPTED.format(root=str(ROOT), folder=str(tmp_path), after=after,
                              act="os.kill(os.getpid(), 2)")
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "UOPC_CACHE": str(tmp_path / "cache"),
                               "CC": str(slow_compiler(tmp_path))})
    assert done.stdout == "interrupted\n1800.0\n"
    assert time.monotonic() - start < 20
    lines = [line for line in done.stderr.splitlines() if "compiling" in line]
    assert len(lines) == bool(after) and done.stderr.count("\n") == len(lines)
    assert not sleepers() and not list((tmp_path / "cache").glob("build-*"))


def program(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True,
                          timeout=60, env={**os.environ, **environment})


SUM = """
import numpy as np
from uopc.tensor import Tensor
x = Tensor(np.ones((512, 512), np.float32))
print((x @ x + {number}).mean().item())
"""


@pytest.mark.parametrize(("setting", "said"), [
    ({"CC": "'gcc"}, "CC=\"'gcc\" in the environment cannot be taken apart as a shell would: "
                     "No closing quotation"),
    ({"CC": "true"}, "true does not work as a C compiler: it predefines nothing"),
    ({"DEBUG": "x"}, "DEBUG='x' in the environment: expected a whole number"),
    ({"OPT": "9"}, "OPT=9 in the environment: the levels are 0, 1, 2"),
    ({"OPT": "x"}, "OPT='x' in the environment: expected a whole number"),
])
def test_a_setting_that_cannot_be_used(setting: dict[str, str], said: str) -> None:
    done = program(SUM.format(number=1), **setting)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].endswith(said)


def test_a_signal_to_the_compiler_alone(tmp_path: Path) -> None:
    killed = tmp_path / "killed-gcc"
    killed.write_text("#!/bin/sh\ncase \"$*\" in *-dM*) exec gcc \"$@\";; esac\nkill -9 $$\n")
    killed.chmod(0o755)
    done = program(SUM.format(number=1), CC=str(killed), UOPC_CACHE=str(tmp_path / "cache"))
    assert done.stderr.splitlines()[-1].endswith(f"was ended by signal {signal.SIGKILL.value}")
