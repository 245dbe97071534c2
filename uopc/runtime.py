"""C → machine code. Compiles a kernel's source into a shared object, keeps it on disk, and calls it
on NumPy arrays.

An object's file name is a hash of all it depends on: source, flags, the compiler and the macros
that it predefines for this machine. A damaged one is noticed before it is loaded, and rebuilt.
"""
from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import errno
import functools
import hashlib
import itertools
import os
import re
import shlex
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np

from uopc import config, profile
from uopc.cache_folder import cache, cache_folder
from uopc.compiler import CompileError, Runs, compiler, probe, run, usable_cores
from uopc.counters import counters
from uopc.dtype import ALL_DTYPES, DType
from uopc.locks import cached_property, lock
from uopc.memory import LINE, address, empty_array
from uopc.say import say

SILENCE = 2  # seconds that one waits for compilers without being told
UNIT = 1 << 15  # characters of several sources that make one translation unit
MOST_THREADS = 256  # that are of use, whatever OMP_NUM_THREADS says, if the cores are fewer
CHUNKS = 16  # per thread, of a program whose steps are shared out


NO_ROOM = re.compile(re.escape(os.strerror(errno.ENOSPC)) + "|" + os.strerror(errno.EDQUOT))

_lock = lock()  # around the counters, and what is said once
_waiting_lock = lock()  # around what waits for a compiler


def np_dtype(dtype: DType) -> np.dtype:
    """The NumPy dtype of a uopc dtype."""
    return dtype.np


# *** objects ***


OPENMP_PROBE = "#include <omp.h>\nint f(void) { return omp_get_max_threads(); }\n"


@functools.cache
def openmp(command: tuple[str, ...]) -> bool:
    """True when the compiler can build and link programs with OpenMP; the probe stays on disk."""
    try:
        build(OPENMP_PROBE)
        return True
    except CompileError:
        return False


def flags_of(src: str) -> tuple[str, ...]:
    """The flags for a source: vectors may fuse multiply and add, `launch.c` needs OpenMP."""
    flags, quicker, _ = probe(compiler())
    if "vector_size" in src:
        flags = tuple("-ffp-contract=fast" if f.startswith("-ffp-contract") else f for f in flags)
        flags += quicker
    wants_threads = src == OPENMP_PROBE or "#pragma omp" in src and openmp(compiler())
    return (*flags, "-fopenmp") if wants_threads else flags


def identity(src: str) -> list[str]:
    """All that an object depends on: the source, the flags, and the compiler on this machine."""
    command = compiler()
    return [src, ENTRY, *flags_of(src), *command, *probe(command).macros]


def object_name(src: str) -> str:
    """The name under which the cache keeps the object of a source."""
    return hashlib.sha256("\0".join(identity(src)).encode()).hexdigest()[:40] + ".so"


def build(src: str) -> str:
    """Compile a source unless an intact object of it is there. Returns the object's path.

    Raises CompileError with the lines of C around the first error; the source is kept.
    """
    return build_together([src])[0]


def build_together(sources: Sequence[str]) -> list[str]:
    """The same for several sources that take the same flags. Those that have no object get one
    that they share, under a name for each: a compiler needs 50 ms before it reads a line."""
    names = {src: object_name(src) for src in sources}
    found = {src: cache().find(name) for src, name in names.items()}
    missing = {src: names[src] for src, path in found.items() if path is None}
    with _lock:
        counters.objects_found += len(found) - len(missing)
    if missing:
        try:
            _compile(missing)
        except OSError as error:
            raise CompileError(f"there is no room for compiled kernels: {error}") from None
    return [found[src] or cache().folder.loadable(names[src]) for src in sources]


def _compile(targets: Mapping[str, str]) -> None:
    """Sources, with the names of their objects, as one translation unit. Raises OSError where
    there is no room for it."""
    start = time.perf_counter()
    command = compiler()
    (first, name), *others = targets.items()
    source = "\n".join(map(_with_own_names, targets)) if others else _with_entries(first)
    with cache().scratch() as scratch:
        (scratch / "kernel.c").write_text(source)
        made = scratch / "kernel.so"
        done = run([*command, *flags_of(first), str(scratch / "kernel.c"), "-o", str(made), "-lm"],
                   scratch)
        if done.returncode and NO_ROOM.search(done.stderr) and not cache().has_retreated:
            cache().retreat(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            _compile(targets)
            return
        if done.returncode and others:  # one by one, to tell which it is
            for src, own_name in targets.items():
                _compile({src: own_name})
            return
        if done.returncode:
            raise CompileError(_explain(done.stderr, first, _keep_source(first, name), command))
        cache().write(made.read_bytes(), *targets.values())
    with _lock:
        counters.objects_built += len(targets)
        counters.compile_time += time.perf_counter() - start
    names = [(_SIGNATURE.findall(src) or [("launch", "")])[-1][0] for src in targets]
    profile.note("compile", start, function=", ".join(names))


def _with_entries(src: str) -> str:
    return src + "".join(_entry(*found, src) for found in _SIGNATURE.findall(src))


def _with_own_names(src: str) -> str:
    """The same, with names for all that it defines that no other source has."""
    constants = (f"{name}_{what}" for name, what, _ in _CONSTANTS.findall(src))
    names = {*_FUNCTION.findall(src), *constants}
    own = re.compile(rf"\b({'|'.join(sorted(names))})\b")
    return own.sub(rf"\1_{_tag(src)}", _with_entries(src))


def _tag(src: str) -> str:
    return hashlib.sha256(src.encode()).hexdigest()[:16]


class Loading:
    """Compiles and loads sources in the background, as many at a time as there are cores; short
    ones that wait are compiled together. They stay loaded as long as this lives."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.libraries: dict[str, _Library | Future[list[_Library]]] = {}
        self.runs = Runs()
        self.pool = ThreadPoolExecutor(usable_cores(), "compiler", self.runs.begin_thread)

    def __call__(self, src: str) -> None:
        if src in self.libraries:
            return
        library = _loaded.get(src)
        if library is None:
            compiler()  # found, and the folder made, by one thread
            cache_folder()
            self.waiting.append(src)
        self.libraries[src] = library or self._submit()

    def _submit(self) -> Future[list[_Library]]:
        try:
            return self.pool.submit(self._load)
        except RuntimeError:  # no room for a thread
            done: Future[list[_Library]] = Future()
            done.set_result(self._load())
            return done

    def _load(self) -> list[_Library]:
        return _load_together(_next_unit(self.waiting))

    def finish(self) -> None:
        """Wait until all are loaded. Raises CompileError as soon as one has failed."""
        running = [x for x in self.libraries.values() if isinstance(x, Future)]
        done, late = wait(running, SILENCE, FIRST_EXCEPTION)
        if late and not any(future.exception() for future in done):
            say(f"uopc: compiling {len(self.libraries)} kernels; that may take a while")
        done, _ = wait(running, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()


@contextlib.contextmanager
def loading() -> Iterator[Loading]:
    """Gives `load`, to be called with sources. On leaving, all are there; whatever happens before
    ends what is being compiled. Raises CompileError for one that failed."""
    load = Loading()
    try:
        yield load
        load.finish()
    except BaseException:
        load.runs.stop()
        raise
    finally:
        load.pool.shutdown(cancel_futures=True)


def _next_unit(waiting: list[str]) -> list[str]:
    """Takes from what is waiting as much as makes one translation unit."""
    with _waiting_lock:
        sizes = itertools.accumulate(len(src) for src in waiting)
        count = max(1, sum(size <= UNIT for size in sizes))
        alike = list(itertools.takewhile(lambda src: flags_of(src) == flags_of(waiting[0]),
                                         waiting[:count]))
        del waiting[:len(alike)]
    return alike


def load_all(sources: Iterable[str]) -> Loading:
    """Compile and load several sources; they stay loaded as long as the result lives."""
    with loading() as load:
        for src in sources:
            load(src)
    return load


def _keep_source(src: str, name: str) -> Path:
    """Where the source of an object that was not to be is left for the user to look at."""
    path = (cache_folder() / name).with_suffix(".c")
    with contextlib.suppress(OSError):
        path.write_text(src)
    return path


def _explain(stderr: str, src: str, kept: Path, command: Sequence[str]) -> str:
    found = re.search(r"kernel\.c:(\d+):\d+: (?:fatal )?error: .*", stderr)
    message = f"{shlex.join(command)} refused a kernel (kept as {kept}): "
    if found is None:
        return message + stderr.strip()[:2000]
    at = int(found[1])
    lines = src.splitlines()[max(0, at - 4):at + 3]
    numbered = [f"{max(1, at - 3) + k:5d} {line}" for k, line in enumerate(lines)]
    return "\n".join([message + found[0].split(": ", 1)[1], *numbered])


# *** programs ***

_SIGNATURE = re.compile(r"^void (\w+)\(([^)]*)\)", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:void|static .*?) (\w+)\((?!\()", re.MULTILINE)
_CONSTANTS = re.compile(r"^enum {(\w+)_(steps|scratch) = (\d+)};$", re.MULTILINE)
PART = "long first, long last"  # the parameters of a kernel whose steps may be done in parts
SCRATCH = "char* scratch"  # the parameter of one that needs memory of the thread's own
# how `launch` calls any kernel: with its arrays in a table
ENTRY = "\nvoid {entry}(void** arrays, char* scratch, long first, long last) " \
        "{{ {name}({arguments}); }}\n"


_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)


class _Library(ctypes.CDLL):
    """A shared object that stays in memory until nobody refers to it any more: each takes a few of
    the 65,530 mappings that Linux allows a process."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        # not __del__, in which the table of what is loaded would still give it away
        weakref.finalize(self, _ctypes.dlclose, self._handle).atexit = False


_loaded: weakref.WeakValueDictionary[str, _Library] = weakref.WeakValueDictionary()
_said: set[str] = set()  # what is said once in a process


def _entry(name: str, parameters: str, src: str) -> str:
    count = parameters.count("*") - (SCRATCH in parameters)
    arguments = [f"arrays[{k}]" for k in range(count)]
    arguments += ["scratch"] if SCRATCH in parameters else []
    arguments += ["first", "last"] if PART in parameters else []
    return ENTRY.format(entry=_entry_name(name, src), name=name, arguments=", ".join(arguments))


def _entry_name(name: str, src: str) -> str:
    return f"{name}_entry_{_tag(src)}"


LAUNCH = (Path(__file__).parent / "launch.c").read_text()


@functools.cache
def launcher() -> _Library:
    """The library of `launch.c`: `launch`, `threads`, `room_for`, `one_thread`. No types are
    checked."""
    library = _load(LAUNCH)
    library.launch.argtypes = [ctypes.c_long, ctypes.c_long, *[ctypes.c_void_p] * 5,
                               ctypes.c_long]
    library.launch.restype = None
    library.threads.restype = library.room_for.restype = ctypes.c_long
    library.room_for.argtypes = [ctypes.c_long]
    return library


@functools.cache
def _useful_threads(wanted: int) -> int:
    """Of so many that OpenMP would take those that may be of use, and for which there is room;
    says so if that is fewer."""
    most = max(MOST_THREADS, usable_cores())
    threads = launcher().room_for(min(wanted, most))
    if threads < wanted:
        reason = f"more than {most} are of no use here" if threads == most else \
            "the system has no room for more (ulimit -u)"
        say(f"uopc: uses {threads} of {wanted} threads: {reason}")
    return threads


def team() -> int:
    """How many threads do the loops that are shared out."""
    return _useful_threads(launcher().threads())


def _load(src: str) -> _Library:
    if (library := _loaded.get(src)) is not None:
        return library
    found = load_all([src]).libraries[src]
    return found.result()[0] if isinstance(found, Future) else found


def _load_together(sources: Sequence[str]) -> list[_Library]:
    """Compile and load sources that take the same flags. They are found as loaded while somebody
    has them."""
    # libgomp reads this once, when it is loaded; by default idle threads spin for long, which
    # takes the cores from whatever else runs on the machine
    os.environ.setdefault("GOMP_SPINCOUNT", config.read("GOMP_SPINCOUNT"))
    libraries = []
    for src, path in zip(sources, build_together(sources), strict=True):
        libraries.append(_library(src, path))
        _loaded[src] = libraries[-1]
    return libraries


def _library(src: str, path: str) -> _Library:
    """The object at a path, loaded. Where that fails it is built once more, since another process
    may have cleared the folder just now, and at last in a temporary folder."""
    with contextlib.suppress(OSError):
        return _Library(path)
    try:
        return _Library(build(src))
    except OSError as error:
        folder, problem = cache_folder(), error
    try:
        cache().retreat(problem, alone=True)
        return _Library(build(src))
    except OSError:
        raise CompileError(f"cannot load a compiled kernel from {folder} ({problem}); if the "
                           "folder is mounted noexec, set UOPC_CACHE to another") from None


def _say_threads(threads: int) -> None:
    """Once: how many threads there are for the loops that are shared out, and why."""
    with _lock:
        if "threads" in _said:
            return
        _said.add("threads")
    command = compiler()
    said = f"{threads} (OpenMP; OMP_NUM_THREADS sets another number)" \
        if openmp(command) else f"1 ({shlex.join(command)} has no OpenMP)"
    say(f"uopc: threads: {said}")


def _one_thread_in_child() -> None:
    """A forked child has none of its parent's threads: OpenMP must not wait for them."""
    if (library := _loaded.get(LAUNCH)) is not None:
        library.one_thread()


os.register_at_fork(after_in_child=_one_thread_in_child)


def steps_of(src: str, name: str) -> int:
    """Into how many steps the kernel's work can be cut."""
    return _constant(src, name, "steps") or 1


def scratch_of(src: str, name: str) -> int:
    """Bytes of memory of the thread's own that the kernel needs."""
    return _constant(src, name, "scratch")


def _constant(src: str, name: str, what: str) -> int:
    return next((int(n) for *owner, n in _CONSTANTS.findall(src) if owner == [name, what]), 0)


class Program:
    """A compiled kernel. Call it with one C-contiguous NumPy array per parameter.

    `src` is C that defines `void name(T* ..., ...)`. Raises CompileError when it does not compile.
    """

    def __init__(self, src: str, name: str) -> None:
        signature = next((m for m in _SIGNATURE.finditer(src) if m[1] == name), None)
        if signature is None:
            raise ValueError(f"the source defines no function 'void {name}(...)'")
        by_c_name = {d.c: d for d in ALL_DTYPES}
        pieces = [p.split("*") for p in signature[2].split(",")
                  if "*" in p and p.strip() != SCRATCH]
        parameters = [c_type.strip() for c_type, _ in pieces]
        self.name, self.src = name, src
        self.parameters = [rest.split()[-1] for _, rest in pieces]
        self.dtypes = tuple(by_c_name[p] for p in parameters)
        self.steps, self.scratch = steps_of(src, name), scratch_of(src, name)
        self.library = _load(src)  # which stays as long as this
        self.entry = ctypes.addressof(ctypes.c_char.in_dll(self.library, _entry_name(name, src)))
        self._call = _Entry(self.entry)  # a function of a CDLL's own would refer to itself

    def __call__(self, *arrays: np.ndarray, log: np.ndarray | None = None) -> None:
        """Run on `arrays`. Raises TypeError for a wrong number, dtype or memory layout. `log` is
        one of `new_log`, and filled as `Tasks` does."""
        if len(arrays) != len(self.dtypes):
            raise TypeError(f"{self.name} takes {len(self.dtypes)} arrays, got {len(arrays)}")
        for k, (array, dtype) in enumerate(zip(arrays, self.dtypes, strict=True)):
            if not isinstance(array, np.ndarray) or array.dtype != dtype.np:
                got = getattr(array, "dtype", type(array).__name__)
                raise TypeError(f"{self.name}: array {k} must be {dtype.np}, got {got}")
            if not (array.flags.c_contiguous and array.flags.aligned):
                raise TypeError(f"{self.name}: array {k} must be C-contiguous and aligned")
            if not array.flags.writeable and self.writes(k):
                raise TypeError(f"{self.name} writes to array {k}, which is read-only")
        table = (ctypes.c_void_p * len(arrays))(*map(address, arrays))
        if self.steps == 1 and not self.scratch and log is None:
            self._call(table, None, 0, 1)
        else:
            self._tasks(ctypes.addressof(table), log)

    def new_log(self) -> np.ndarray:
        return self._tasks.new_log()

    def writes(self, k: int) -> bool:
        """Whether the source stores anything in the k-th array, or hands it on."""
        name = self.parameters[k]
        stored = rf"\b{name}\[[^;]*\]\s*=[^=]|\({name}\+[^;]*\) =|\b{name}, [^*)]*step\+1\)"
        return bool(re.search(stored, self.src))

    @cached_property
    def _tasks(self) -> Tasks:
        return Tasks([self], [[0]])


class Tasks:
    """Programs in phases (lists of their numbers), with the chunks into which each is cut."""

    def __init__(self, programs: Sequence[Program], phases: Sequence[Sequence[int]]) -> None:
        library = launcher()
        parallel = any(p.steps > 1 for p in programs)
        self.threads, self.launch = team() if parallel else 1, library.launch
        if parallel and config.debug() >= 1:
            _say_threads(self.threads)
        self.phases = len(phases)
        first = [0, *itertools.accumulate(len(p.dtypes) for p in programs)]
        self.order = [k for phase in phases for k in phase]
        rows = [(programs[k].entry, first[k], programs[k].steps,
                 min(programs[k].steps, CHUNKS * self.threads)) for k in self.order]
        self.tasks = np.array(rows, np.int64).reshape(-1, 4)
        self.ends = np.cumsum([len(phase) for phase in phases], dtype=np.int64)
        self.at = address(self.ends), address(self.tasks)
        most = max((p.scratch for p in programs), default=0)
        self.scratch = -(-most // LINE) * LINE  # bytes for each thread

    def __call__(self, arrays: int, log: np.ndarray | None = None,
                 scratch: np.ndarray | None = None) -> None:
        """Run all; `arrays` is the address of a table with the addresses of all their arrays,
        program after program. `log` gets a row (place in `order`, thread, start and stop in ns) for
        each chunk. `scratch` is one of `new_scratch`, which no other run uses meanwhile."""
        scratch = self.new_scratch() if scratch is None else scratch
        self.launch(*self.arguments(arrays, log, scratch))

    def arguments(self, arrays: int, log: np.ndarray | None, scratch: np.ndarray) -> tuple:
        """Of the native call; it holds no reference to what lies at these addresses."""
        return (self.threads, self.phases, *self.at, arrays,
                None if log is None else address(log), address(scratch), self.scratch)

    def new_scratch(self) -> np.ndarray:
        """Memory for what kernels keep from one step to the next, for all threads."""
        return empty_array((self.threads * self.scratch,), np.dtype(np.uint8))

    def new_log(self) -> np.ndarray:
        return np.zeros((self.tasks[:, 3].sum(), 4), np.int64)
