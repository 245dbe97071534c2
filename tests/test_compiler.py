"""The compiler's runs, which end when nobody wants them any more; settings that cannot be used."""
from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SLOW = """#!/bin/sh
case "$*" in *-dM*) exec gcc "$@";; esac
touch {folder}/started.$$
{folder}/sleeper 31 &
wait
"""
INTERRUPTED = """
import sys; sys.path.insert(0, {root!r})
import _thread, os, signal, threading, time, numpy as np
from pathlib import Path
from uopc.tensor import Tensor
folder = Path({folder!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
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


def sleepers(folder: Path) -> list[int]:
    """Processes that the slow compiler of a folder started."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            if f"{folder}/sleeper".encode() in process.read_bytes():
                found.append(int(process.parent.name))
    return found


def slow_compiler(folder: Path) -> Path:
    path = folder / "slow-gcc"
    path.write_text(SLOW.format(folder=folder))
    path.chmod(0o755)
    shutil.copy(shutil.which("sleep"), folder / "sleeper")
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
    assert not sleepers(tmp_path) and not list((tmp_path / "cache").glob("build-*"))


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


NO_ROOM = """
import sys; sys.path.insert(0, {root!r})
import os, resource, numpy as np
from uopc.tensor import Tensor
if os.getuid() == 0:  # whom such a limit does not bind
    os.setuid(12345)
assert (Tensor(np.ones(3, np.float32)) + 1).numpy()[0] == 2
if {is_limited}:
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
x = Tensor(np.ones((512, 512), np.float32))
print((x @ x + 1).mean().item())
if {is_limited}:
    (x @ x + 3.25).exp().realize()
"""


def test_no_room_for_threads() -> None:
    """What is compiled already runs in one thread; what is not names the reason."""
    with tempfile.TemporaryDirectory() as folder:
        if os.getuid() == 0:
            os.chown(folder, 12345, -1)
        fresh, limited = (program(NO_ROOM.format(root=str(ROOT), is_limited=is_limited),
                                  UOPC_CACHE=folder, OMP_NUM_THREADS="3")
                          for is_limited in (False, True))
    assert (fresh.stdout, fresh.stderr) == ("513.0\n", "")
    assert limited.stdout == "513.0\n"
    lines = limited.stderr.splitlines()
    assert lines[0] == "uopc: uses 1 of 3 threads: the system has no room for more (ulimit -u)"
    assert "CompileError: cannot start" in lines[-1] and "temporarily unavailable" in lines[-1]


@pytest.mark.parametrize(("wanted", "said"), [
    (5, ""), (100_000, "uopc: uses 256 of 100000 threads: more than 256 are of no use here\n")])
def test_any_number_of_threads(wanted: int, said: str) -> None:
    done = program(SUM.format(number=1), OMP_NUM_THREADS=str(wanted))
    assert (done.stdout, done.stderr) == ("513.0\n", said)


@pytest.mark.parametrize("stream", ["None", "open(os.devnull)", "closed", "Broken()"])
def test_nothing_depends_on_stderr(stream: str, tmp_path: Path) -> None:
    """It may be absent, not to be written to, closed, or raise whatever files raise."""
    code = """
import io, os, sys
class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError
closed = io.StringIO()
closed.close()
sys.stderr = {stream}
""" + SUM
    done = program(code.format(stream=stream, number=7), DEBUG="4", DUMP="1",
                   UOPC_CACHE=os.devnull, PROFILE="/nowhere/x.json", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "519.0\n")


def test_no_folder_at_all(tmp_path: Path) -> None:
    code = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'nowhere')!r}\n"
    done = program(code + SUM.format(number=1), UOPC_CACHE=os.devnull)
    last = done.stderr.splitlines()[-1]
    assert "there is no folder for compiled kernels: /dev/null cannot be used" in last
    assert "set UOPC_CACHE or TMPDIR" in last


def test_the_timeline_of_a_home(tmp_path: Path) -> None:
    program(SUM.format(number=1), PROFILE="~/trace.json", HOME=str(tmp_path),
            UOPC_CACHE=str(tmp_path / "cache"))
    assert (tmp_path / "trace.json").exists()


def test_as_many_compilers_as_the_process_may_use_cores() -> None:
    code = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n" \
        "from uopc import runtime\nprint(runtime.Loading().pool._max_workers)"
    assert program(code).stdout == "1\n"


def test_one_failure_ends_the_others(tmp_path: Path) -> None:
    """The call that waits for them raises at once, and its compilers end."""
    code = """
import _thread, os, threading, time
from uopc import runtime
os.sched_getaffinity = lambda _: range(4)
try:
    with runtime.loading() as load:
        load("void slow(float* a) {\\n}\\n" + "/*" + "x" * runtime.UNIT + "*/")
        raise ValueError("of the caller's own")
except ValueError as error:
    print(error)
"""
    start = time.monotonic()
    done = program(code, CC=str(slow_compiler(tmp_path)), UOPC_CACHE=str(tmp_path / "cache"))
    assert (done.stdout, done.stderr) == ("of the caller's own\n", "")
    assert time.monotonic() - start < 20 and not sleepers(tmp_path)
