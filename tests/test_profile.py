"""`PROFILE=trace.json`: the timeline of a process, which is another one here."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from uopc.profile import TRACKS

ROOT = Path(__file__).resolve().parents[1]
Event = dict[str, Any]
PYTHON = {"realize", "schedule", "make plan", "compile", "replay", "run plan"}
SLACK = 0.01  # µs: times are rounded
START = f"""import sys; sys.path.insert(0, {str(ROOT)!r})
import json, os, threading
import numpy as np
from uopc import kernelize, profile
from uopc.jit import jit
from uopc.tensor import Tensor
x = Tensor(np.ones((200, 200), np.float32))
"""
PROGRAM = START + """
@jit
def step(a):
    h = (a @ a).relu().contiguous()  # line: product
    h = h.sum(1)
    return h * 2  # line: end

for _ in range(5):
    step(x).numpy()
(x + 1).numpy()  # line: alone
print(json.dumps([[p.number, p.phases, [[k.name, k.flops] for k in p.kernels]]
                  for p in kernelize._plans.values()]))
"""


def run(folder: Path, code: str, **env: str) -> tuple[str, str]:
    """What a program prints that ends well: (stdout, stderr)."""
    (folder / "program.py").write_text(code)
    env = {**os.environ, "PROFILE": "trace.json", "OMP_NUM_THREADS": "2", **env}
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def trace(folder: Path) -> dict[str, Any]:
    """The file's content, of which every event is well formed."""
    found = json.loads((folder / "trace.json").read_text())
    assert found["displayTimeUnit"] == "ms"
    for e in found["traceEvents"]:
        assert type(e["pid"]) is type(e["tid"]) is int and isinstance(e["args"], dict)
        assert e["ph"] == "M" or e["ph"] == "X" and e["ts"] >= 0 and e["dur"] >= 0
        assert e["ph"] == "M" or e["cat"] == "kernel" or e["name"] in PYTHON
    used = {e["tid"] for e in found["traceEvents"] if e["ph"] == "X"}
    named = [e["tid"] for e in found["traceEvents"] if e["name"] == "thread_name"]
    assert sorted(used) == sorted(named)
    return found


def named(folder: Path, name: str) -> list[Event]:
    return [e for e in trace(folder)["traceEvents"] if e["name"] == name]


def kernels(folder: Path) -> list[Event]:
    return [e for e in trace(folder)["traceEvents"] if e.get("cat") == "kernel"]


def inside(outer: Event, events: Sequence[Event]) -> list[Event]:
    """Those of the same thread of Python, or its team, that happen while `outer` does."""
    return [e for e in events if e["tid"] // TRACKS == outer["tid"] // TRACKS
            and outer["ts"] <= e["ts"] + SLACK and end(e) <= end(outer) + SLACK]


def end(e: Event) -> float:
    return e["ts"] + e["dur"]


def check_apart(chunks: Sequence[Event]) -> None:
    """A thread does one thing at a time."""
    by_thread = defaultdict(list)
    for e in chunks:
        by_thread[e["tid"]].append(e)
    for own in by_thread.values():
        own.sort(key=lambda e: e["ts"])
        assert all(end(a) <= b["ts"] + SLACK for a, b in pairwise(own))


@pytest.mark.parametrize("level", ["0", "1", "2"])
@pytest.mark.parametrize("debug", ["0", "2", "3"])
def test_all_kernels_are_there(level: str, debug: str, tmp_path: Path) -> None:
    printed, _ = run(tmp_path, PROGRAM, OPT=level, DEBUG=debug)
    plans = {number: (phases, made) for number, phases, made in json.loads(printed)}
    chunks, runs = kernels(tmp_path), named(tmp_path, "run plan")
    check_apart(chunks)
    assert {e["tid"] for e in chunks} <= {0, 1}
    assert len(runs) == 6 and sum(len(inside(r, chunks)) for r in runs) == len(chunks)
    for r in runs:
        phases, made = plans[r["args"]["plan"]]
        own = inside(r, chunks)
        assert {e["args"]["plan"] for e in own} == {r["args"]["plan"]}
        times = 2 if debug == "3" else 1  # once more, warm
        assert sorted({(e["name"], e["args"]["kernel_flops"]) for e in own}) == sorted(
            {(name, flops) for name, flops in made})
        check_rates(own, times)
        if debug == "0":
            by_phase = [[e for e in own if e["args"]["phase"] == p] for p in range(len(phases))]
            assert all(by_phase)
            assert all(max(map(end, a)) <= min(e["ts"] for e in b) + SLACK
                       for a, b in pairwise(by_phase))


def check_rates(chunks: Sequence[Event], times: int) -> None:
    """What is said of whole kernels, against their chunks."""
    by_kernel = defaultdict(list)
    for e in chunks:
        by_kernel[e["name"], json.dumps(e["args"])].append(e)
    for (_, text), own in by_kernel.items():
        args = json.loads(text)
        if times == 1:
            assert len(own) == args["kernel_chunks"]
        time, reached = 0.0, 0.0  # in which at least one thread was at it
        for e in sorted(own, key=lambda e: e["ts"]):
            time += max(0.0, end(e) - max(reached, e["ts"]))
            reached = max(reached, end(e))
        # the cold and the warm run are one group where they took the same time to the ns
        assert any(n * args["kernel_us"] == pytest.approx(time, abs=len(own) * SLACK)
                   for n in range(1, times + 1))
        for rate, amount in (("GFLOP/s", "flops"), ("GB/s", "bytes")):
            want = args[f"kernel_{amount}"] / args["kernel_us"] / 1e3
            assert args[f"kernel_{rate}"] == pytest.approx(want, rel=1e-3)


def test_bytes_are_of_distinct_arrays(tmp_path: Path) -> None:
    run(tmp_path, START + "(x + x.T).numpy()\n", OPT="0")
    (chunk,) = kernels(tmp_path)
    assert chunk["name"] == "e_200_200" and chunk["args"]["kernel_bytes"] == 2 * 200 * 200 * 4


@pytest.mark.parametrize("level", ["0", "2"])
def test_kernels_name_the_users_lines(level: str, tmp_path: Path) -> None:
    lines = {text.split("# line: ")[1]: k for k, text in enumerate(PROGRAM.splitlines(), 1)
             if "# line: " in text}
    for _ in range(2):  # a plan of the process before does not know them
        run(tmp_path, PROGRAM, OPT=level)
        last = max(e["args"]["plan"] for e in kernels(tmp_path))
        alone = {e["args"]["line"] for e in kernels(tmp_path) if e["args"]["plan"] == last}
        assert alone == {f"program.py:{lines['alone']}"}
        step = {e["args"]["line"] for e in kernels(tmp_path)} - alone
        assert {f"program.py:{lines[part]}" for part in ("product", "end")} <= step
        assert all(re.fullmatch(r"program.py:\d+(,\d+)*", line) for line in step)


def test_python_in_its_order(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    run(tmp_path, PROGRAM, UOPC_CACHE=str(cache), OPT="2")
    replays, realizes, runs, schedules, made, compiled = (
        named(tmp_path, name) for name in ("replay", "realize", "run plan", "schedule",
                                           "make plan", "compile"))
    assert [e["args"] for e in replays] == [{"function": "step"}] * 3
    assert len(realizes) == 3 and len(made) == 2  # called, recorded; the other graph
    for outer in (*replays, *realizes):
        (schedule,), (ran,) = inside(outer, schedules), inside(outer, runs)
        assert end(schedule) <= ran["ts"] + SLACK and inside(ran, kernels(tmp_path))
    assert len({e["args"]["plan"] for e in runs[:-1]}) == 1
    assert runs[0]["args"]["plan"] != runs[-1]["args"]["plan"]
    assert all(inside(s, made) for s in schedules if s["args"].get("is_new"))
    assert {e["name"] for e in kernels(tmp_path)} <= {
        name for e in compiled for name in e["args"]["function"].split(", ")}
    tracks = {e["tid"]: e["args"]["name"] for e in named(tmp_path, "thread_name")}
    assert tracks[replays[0]["tid"]] == "Python: MainThread"
    assert all("compiler" in tracks[e["tid"]] for e in compiled
               if e["args"]["function"].startswith(("e_", "r_", "fused")))


def test_threads_of_python_have_tracks_of_their_own(tmp_path: Path) -> None:
    run(tmp_path, START + """
def work():
    a = Tensor(np.ones((200, 200), np.float32))
    for _ in range(20):
        (a @ a).softmax(-1).numpy()
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
""")
    check_apart(kernels(tmp_path))
    assert len(named(tmp_path, "run plan")) == 60
    assert len({e["tid"] for e in named(tmp_path, "run plan")}) == 3


UNWRITABLE = {"no folder": "missing/trace.json", "a folder": ".", "no file": "/dev/null"}


@pytest.mark.parametrize("path", UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_file_that_cannot_be_written(path: str, tmp_path: Path) -> None:
    printed, said = run(tmp_path, START + "print((x + 1).numpy().sum(), file=sys.stderr)\n"
                        "print(2 * (x + 1).numpy().sum())\n", PROFILE=path)
    assert printed == "160000.0\n"
    first, second = said.splitlines()  # at the beginning
    assert first.startswith("uopc: PROFILE: cannot write the timeline to ")
    assert second == "80000.0"
    assert [p.name for p in tmp_path.iterdir()] == ["program.py"]


def test_a_file_that_cannot_be_written_any_more(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    _, said = run(tmp_path, START + "(x + 1).numpy()\nimport shutil; shutil.rmtree('gone')\n",
                  PROFILE="gone/trace.json")
    (line,) = said.splitlines()
    assert line.startswith("uopc: PROFILE: cannot write the timeline to ")


@pytest.mark.parametrize("value", ["", "0"])
def test_no_profile_no_file(value: str, tmp_path: Path) -> None:
    _, said = run(tmp_path, START + "(x + 1).numpy()\n", PROFILE=value)
    assert said == "" and [p.name for p in tmp_path.iterdir()] == ["program.py"]


@pytest.mark.parametrize("before", ["(x + 1).numpy()", "pass"])
def test_a_forked_child_leaves_the_file_alone(before: str, tmp_path: Path) -> None:
    printed, _ = run(tmp_path, START + before + """
child = os.fork()
(x * 3).sum().numpy()
if child == 0:
    (x @ x).numpy()
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert not os.path.exists("trace.json") or "r_200_200" not in open("trace.json").read()
print(os.getpid())
""")
    assert {e["pid"] for e in trace(tmp_path)["traceEvents"]} == {int(printed)}
    assert "r_200_200" not in {e["name"] for e in kernels(tmp_path)}
    assert len(named(tmp_path, "run plan")) == 1 + (before != "pass")


def test_it_stops_after_so_many_events(tmp_path: Path) -> None:
    _, said = run(tmp_path, START + "profile.LIMIT = 100\n"
                  "for _ in range(50): ((x + 1) @ x).sum(1).numpy()\n")
    (line,) = said.splitlines()
    assert "the timeline has 100 events" in line
    found = trace(tmp_path)
    assert found["otherData"]["stopped"] in line
    assert 50 < len([e for e in found["traceEvents"] if e["ph"] == "X"]) <= 100


def test_a_process_that_is_killed_leaves_an_empty_timeline(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text("of another process")
    run(tmp_path, START + "(x + 1).numpy()\nos._exit(0)\n")
    assert "unfinished" in trace(tmp_path)["otherData"] and kernels(tmp_path) == []
