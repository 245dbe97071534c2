"""The C compiler, the cache of objects, and calling a kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from uopc import compiler, runtime
from uopc.cache_folder import Folder
from uopc.counters import counters
from uopc.dtype import dtypes
from uopc.runtime import CompileError, Program, build, load_all, np_dtype, object_name
from uopc.tensor import Tensor

ROOT = Path(__file__).parents[1]
SOURCE = """#include <math.h>

void twice(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 3; ridx0++) {
    data1[ridx0] = (data0[ridx0]*2.0f);
  }
}
"""


def twice(source: str = SOURCE) -> list[float]:
    """What the kernel gives for (1, 2, 3)."""
    out = np.zeros(3, np.float32)
    Program(source, "twice")(np.float32([1, 2, 3]), out)
    return out.tolist()


def is_intact(path: Path) -> bool:
    """Whether the cache would use the file."""
    return Folder(path.parent).read(path.name) is not None


def other_source(number: int) -> str:
    return SOURCE.replace("2.0f", f"{number}.0f")


# *** the compiler ***


@pytest.mark.parametrize("command", [
    lambda gcc: "gcc", lambda gcc: gcc, lambda gcc: "gcc -m64", lambda gcc: f"  {gcc}   -m64 -g0 ",
], ids=["name", "path", "argument", "spaces"])
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_cc_may_be_a_name_a_path_or_a_command(command: Callable[[str], str], empty_cache: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = shutil.which("gcc")
    monkeypatch.setenv("CC", command(gcc))
    assert runtime.compiler() == (gcc, *command(gcc).split()[1:])
    assert twice() == [2, 4, 6]
    assert len(list(empty_cache.glob("*.so"))) == 1


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
def test_clang(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "clang")
    assert twice() == [2, 4, 6]


def test_a_missing_compiler_is_named(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O1")
    with pytest.raises(CompileError, match=r"tried no-such-compiler.*set CC"):
        twice()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(empty_cache))
    compiler._find_compiler.cache_clear()
    with pytest.raises(CompileError, match=r"tried gcc, clang, cc.*CC"):
        twice()


def test_a_program_that_is_no_compiler_is_refused(empty_cache: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(CompileError, match="false does not work as a C compiler"):
        twice()


def test_a_syntax_error_shows_the_lines_of_c(empty_cache: Path) -> None:
    broken = SOURCE.replace("*2.0f);", "*2.0f;")
    with pytest.raises(CompileError) as error:
        twice(broken)
    message = str(error.value)
    assert "error:" in message and "data1[ridx0] = (data0[ridx0]*2.0f;" in message
    assert "    5     data1" in message, "with its line number"
    kept = next(empty_cache.glob("*.c"))
    assert str(kept) in message and kept.read_text() == broken
    assert not list(empty_cache.glob("*.so")) and not list(empty_cache.glob("build-*"))


# *** the cache ***


def test_an_object_is_built_once(empty_cache: Path) -> None:
    before = counters.copy()
    assert build(SOURCE) == build(SOURCE)
    (path,) = empty_cache.iterdir()
    assert path.name == object_name(SOURCE) and is_intact(path)
    done = counters - before
    assert (done.objects_built, done.objects_found) == (1, 1) and done.compile_time > 0
    assert [p.name for p in empty_cache.iterdir()] == [path.name], "nothing else is left behind"


@pytest.mark.parametrize("damage", [
    lambda whole: b"", lambda whole: whole[:20], lambda whole: whole[:len(whole) // 2],
    lambda whole: whole[:-1], lambda whole: whole[:500] + b"\xff" + whole[501:],
    lambda whole: bytes(len(whole)),
], ids=["empty", "a few bytes", "half", "but one byte", "one byte changed", "zeros"])
def test_a_damaged_object_is_rebuilt(damage: Callable[[bytes], bytes], empty_cache: Path) -> None:
    build(SOURCE)
    path = empty_cache / object_name(SOURCE)
    path.write_bytes(damage(path.read_bytes()))
    assert not is_intact(path)
    assert twice() == [2, 4, 6]
    assert is_intact(path)


def test_the_key_covers_compiler_flags_and_source(empty_cache: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Case A28: after a change of any of them, new objects are built."""
    paths = [object_name(SOURCE), object_name(other_source(3))]
    monkeypatch.setenv("CC", f"{shutil.which('gcc') or 'cc'} -DOTHER")
    paths.append(object_name(SOURCE))
    monkeypatch.setenv("CC", f"{shutil.which('gcc') or 'cc'} -mno-avx")
    paths.append(object_name(SOURCE))
    monkeypatch.delenv("CC")
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-O1"))
    compiler.probe.cache_clear()
    paths.append(object_name(SOURCE))
    assert len(set(paths)) == len(paths)
    monkeypatch.undo()
    compiler.probe.cache_clear()


def test_an_unusable_folder_gives_one_line_and_works(tmp_path: Path, empty_cache: Path,
                                                     monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path / "file" / "cache"))
    assert twice(SOURCE) == [2, 4, 6] and twice(other_source(5)) == [5, 10, 15]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and str(tmp_path / "file") in lines[0] and "UOPC_CACHE" in lines[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_someone_else_is_not_used(tmp_path: Path, empty_cache: Path,
                                              monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    monkeypatch.setenv("UOPC_CACHE", str(theirs))
    assert twice() == [2, 4, 6] and not list(theirs.iterdir())
    assert "12345" in capsys.readouterr().err


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_gives_one_line(tmp_path: Path, empty_cache: Path,
                                           monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    monkeypatch.setenv("UOPC_CACHE", str(locked))
    assert twice() == [2, 4, 6]
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_folder_that_others_may_write_to_is_not_used_or_changed(
        tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture) -> None:
    shared = tmp_path / "open"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("UOPC_CACHE", str(shared))
    assert twice() == [2, 4, 6] and not list(shared.iterdir())
    assert shared.stat().st_mode & 0o777 == 0o777
    assert f"others may write to {shared}" in capsys.readouterr().err


def test_in_a_place_for_all_there_is_a_private_folder(tmp_path: Path, empty_cache: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "everybody"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setenv("UOPC_CACHE", str(place))
    assert twice() == [2, 4, 6] and place.stat().st_mode & 0o7777 == 0o1777
    (private,) = place.iterdir()
    assert private.stat().st_mode & 0o777 == 0o700 and list(private.iterdir())


def test_a_read_only_array_is_not_written_to() -> None:
    program = Program("void f(float* restrict data0, float* restrict data1) {\n"
                      "  data1[0] = data0[0];\n}\n", "f")
    frozen, open_ = np.frombuffer(bytes(4), np.float32), np.ones(1, np.float32)
    program(frozen, open_)
    assert open_[0] == 0
    with pytest.raises(TypeError, match="writes to array 1, which is read-only"):
        program(open_, frozen)


def in_new_process(code: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True,
                            env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


STEP = """
import numpy as np
from uopc.composite import matmul, array_buffer
from uopc.kernelize import buffer_data, realize
from uopc.uop import Ops
x = array_buffer(np.arange(12, dtype=np.float32).reshape(3, 4))
y = matmul(x, x.permute((1, 0))) * 0.5
print(float(buffer_data(realize([(y + k).reduce(Ops.ADD, 2) for k in range(4)])[3])))
"""


def test_processes_that_start_together_on_an_empty_cache(tmp_path: Path) -> None:
    """Case A26."""
    running = [in_new_process(STEP, UOPC_CACHE=str(tmp_path / "cache")) for _ in range(8)]
    results = [(*p.communicate(timeout=60), p.returncode) for p in running]
    x = np.arange(12.0).reshape(3, 4)
    want = f"{(x @ x.T * 0.5 + 3).sum()}\n"
    assert results == [(want, "", 0)] * 8
    assert all(is_intact(p) for p in (tmp_path / "cache").iterdir())


def test_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    """Cases A30 and A33: HOME and TMPDIR of its own; a cache variable that is not set."""
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    places = {"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": "", "UOPC_CACHE": "",
              "USER": "back\\slash"}
    _, errors = in_new_process(STEP, **places).communicate(timeout=60)
    assert errors == "" and {p.name for p in home.iterdir()} == {".cache"}
    assert list((home / ".cache" / "uopc").glob("*.so")) and not list(temporary.iterdir())
    (tmp_path / "no-home").write_text("")
    places["HOME"] = str(tmp_path / "no-home")
    out, errors = in_new_process(STEP, **places).communicate(timeout=60)
    assert out and len(errors.splitlines()) == 1 and not list(temporary.iterdir())


def test_load_all_builds_each_source_once(empty_cache: Path) -> None:
    before = counters.copy()
    load_all([other_source(k % 4) for k in range(12)])
    assert (counters - before).objects_built == 4 == len(list(empty_cache.glob("*.so")))


HELPED = """#include <math.h>
enum {twice_steps = 3};

static inline float scaled(float x) { return x*2.0f; }

static float shifted(float x) { return x+0.0f; }

void twice(float* restrict data0, float* restrict data1, long first, long last) {
  for (int ridx0 = first; ridx0 < last; ridx0++) {
    data1[ridx0] = shifted(scaled(data0[ridx0]));
  }
}
"""


@pytest.mark.parametrize("links", [True, False])
def test_sources_that_wait_are_compiled_together(links: bool, empty_cache: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """They may define the same names; a file system without links gets copies."""
    if not links:
        monkeypatch.setattr("os.link", Mock(side_effect=OSError(95, "no links")))
    runtime.launcher()
    sources = [HELPED.replace("2.0f", f"{k}.0f") for k in range(2, 5)] + [SOURCE]
    paths = [empty_cache / Path(path).name for path in runtime.build_together(sources)]
    assert len(set(paths)) == 4 and all(map(is_intact, paths))
    assert {path.stat().st_nlink for path in paths} == {4 if links else 1}
    before = counters.objects_built
    assert [twice(src) for src in sources] == [[2, 4, 6], [3, 6, 9], [4, 8, 12], [2, 4, 6]]
    assert counters.objects_built == before and not list(empty_cache.glob("build-*"))
    paths[1].unlink()
    monkeypatch.setattr(runtime, "_loaded", {})
    assert [twice(src) for src in sources[:2]] == [[2, 4, 6], [3, 6, 9]]
    assert counters.objects_built == before + 1


def test_a_gcc_that_does_not_know_a_flag(empty_cache: Path, tmp_path: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """As those before 11, which have no very-cheap model of what vectors cost."""
    old = tmp_path / "old-gcc"
    old.write_text("#!/bin/sh\ncase \"$*\" in *very-cheap*) echo unknown >&2; exit 1;; esac\n"
                   f'exec {shutil.which("gcc") or "cc"} "$@"\n')
    old.chmod(0o700)
    monkeypatch.setenv("CC", str(old))
    x = Tensor(np.arange(40, dtype=np.float32))
    assert (x * 2).sum().item() == 1560 and "-fexpensive-optimizations" not in \
        runtime.flags_of("vector_size")


def test_nobody_else_may_write_to_what_is_run(empty_cache: Path) -> None:
    before = os.umask(0)
    try:
        runtime.build_together([SOURCE, HELPED])
        runtime.build_together([other_source(7)])
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in empty_cache.glob("*.so")} == {0o600}


def test_of_sources_compiled_together_the_broken_one_is_named(empty_cache: Path) -> None:
    broken = SOURCE.replace("*2.0f);", "*2.0f;")
    with pytest.raises(CompileError, match=r"data1\[ridx0\] = \(data0\[ridx0\]\*2.0f;"):
        runtime.build_together([HELPED, SOURCE, broken])
    assert len(list(empty_cache.glob("*.so"))) == 2, "the others are there"


def test_an_object_that_cannot_be_loaded_names_its_folder(empty_cache: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError("failed to map segment")

    monkeypatch.setattr(runtime, "_Library", refuse)
    with pytest.raises(CompileError, match=f"{empty_cache}.*noexec.*UOPC_CACHE"):
        twice()


# *** calling ***


def test_a_program_checks_its_arrays() -> None:
    program = Program(SOURCE, "twice")
    good, out = np.float32([1, 2, 3]), np.zeros(3, np.float32)
    assert program.dtypes == (dtypes.f32, dtypes.f32)
    with pytest.raises(TypeError, match="takes 2 arrays, got 1"):
        program(good)
    with pytest.raises(TypeError, match="array 0 must be float32, got float64"):
        program(good.astype(np.float64), out)
    with pytest.raises(TypeError, match="array 0 must be float32, got list"):
        program([1.0, 2.0, 3.0], out)
    with pytest.raises(TypeError, match="array 0 must be float32, got >f4"):
        program(good.astype(">f4"), out)
    with pytest.raises(TypeError, match="array 1 must be C-contiguous"):
        program(good, np.zeros(6, np.float32)[::2])
    with pytest.raises(ValueError, match="no function 'void thrice"):
        Program(SOURCE, "thrice")
    assert out.tolist() == [0, 0, 0]


def test_every_dtype_is_known_to_a_program() -> None:
    for dtype in vars(dtypes).values():
        if hasattr(dtype, "np"):
            program = Program(f"void f({dtype.c}* restrict data0) {{ data0[0] = 1; }}\n", "f")
            array = np.zeros(1, np_dtype(dtype))
            program(array)
            assert array[0] == 1 and program.dtypes == (dtype,)
    Program("void nothing() {\n}\n", "nothing")()


SMALL_STACKS = """
import sys; sys.path.insert(0, {root!r})
import numpy as np
from uopc.tensor import Tensor
x = Tensor(np.random.default_rng(0).standard_normal((64, 16384)).astype(np.float32))
y = (x * 0.1).softmax(-1).gelu().softmax(-1)
y.square().sum().backward([x])
print(float(y.sum().item()), np.isfinite(x.grad.numpy()).all())
"""


def test_a_thread_needs_hardly_any_stack() -> None:
    """What kernels of a shared loop pass on lies in the plan's memory, since a thread may have as
    little as musl's 128 kB of stack."""
    done = subprocess.run([sys.executable, "-c", SMALL_STACKS.format(root=str(ROOT))], text=True,
                          capture_output=True, env={**os.environ, "OMP_STACKSIZE": "64K"})
    assert done.returncode == 0, done.stderr
    total, finite = done.stdout.split()
    assert abs(float(total) - 64) < 1e-2 and finite == "True"
