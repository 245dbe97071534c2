"""Generated C under the compiler's own checks of addresses and of undefined behaviour.

Many plans become one program. Each of its buffers is a block of memory of just that size, so a
kernel that reads or writes one byte too many ends the program, and so does an operation that C
leaves undefined. What the program gives must be what the interpreter gives.
"""
from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import random_graphs
from kernel_checks import plan_for
from layers import LAYERS, Program, eager, some

from uopc import kernelize
from uopc.composite import buffer_data
from uopc.dtype import DType, dtypes
from uopc.interpret import interpret_graph
from uopc.kernelize import make_plan
from uopc.opt.target import target
from uopc.plan import Plan
from uopc.runtime import compiler, flags_of, scratch_of, steps_of
from uopc.tensor import Tensor
from uopc.uop import UOp

CHECKS = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")


class Machine(NamedTuple):
    """The optimizer's level; bytes of a vector register, and how many there are."""

    level: int
    vector_bytes: int = 16
    registers: int = 16


MACHINES = {"64-byte vectors": Machine(1, 64, 32), "32-byte vectors": Machine(1, 32),
            "shared loops": Machine(2, 32), "level 0": Machine(0)}


def start_compiler(source: Path) -> subprocess.Popen[str]:
    """Without optimization no access is optimized away."""
    flags = [f for f in flags_of("") if f not in ("-O2", "-shared")]
    return subprocess.Popen([*compiler(), *flags, "-O0", "-g1", "-w", *CHECKS, str(source), "-o",
                             str(source.with_suffix("")), "-lm"], text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def run_program(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(source.with_suffix("")), *arguments], capture_output=True, text=True,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, timeout=60)


@pytest.fixture(scope="module", autouse=True)
def _sanitizers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where the compiler has none; and see that they work."""
    source = tmp_path_factory.mktemp("probe") / "probe.c"
    source.write_text("#include <stdlib.h>\nint main(int n, char **a) {\n"
                      "  char *p = malloc(5);\n  p[3 + n] = 1;\n  return 0;\n}\n")
    if start_compiler(source).wait() or run_program(source).returncode:
        pytest.skip("the compiler has no sanitizers")
    assert "heap-buffer-overflow" in run_program(source, "one too many").stderr


# *** what is run ***


class Case(NamedTuple):
    """Roots of one plan, and their values. Without `rtol` level 0 must give the same floats bit for
    bit, and level 1 may give any: another order of a sum may change what it is cast to."""

    name: str
    roots: list[UOp]
    want: list[np.ndarray]
    rtol: float | None = None
    fuse_reduce: bool = False


def random_case(seed: int, dtype: DType) -> Case:
    body = random_graphs.random_body(seed, dtype)
    return Case(f"{dtype.name} {seed}", [body], interpret_graph([body]), None, seed % 2 == 1)


def case(name: str, tensors: Sequence[Tensor]) -> Case:
    roots = [t.uop for t in tensors]
    return Case(name, roots, interpret_graph(roots), 1e-4)


def products(m: int, k: int, n: int, dtype: DType) -> Case:
    a, b, c = some(m, k, dtype=dtype), some(k, n, dtype=dtype), some(m, n, dtype=dtype)
    return case(f"products {dtype.name} {m} {k} {n}", [
        a @ b, b.T @ a.T, a.T @ c, c @ b.T, (a @ b + c).relu() @ b.T, a @ b[:, 0],
        some(3, m, k, dtype=dtype) @ some(3, k, n, dtype=dtype)])


def memory_bound(m: int, n: int, dtype: DType) -> Case:
    """Reductions, transposes, views, gathers and scatters."""
    x, row = some(m, n, dtype=dtype), some(n, dtype=dtype)
    rows, columns = Tensor(np.arange(m)[::-3].copy()), Tensor(np.arange(2 * n) % n)
    changed, scattered = (some(m, n, dtype=dtype) for _ in range(2))
    changed[1:, ::2] = row[::2]
    scattered[rows] = x[0]
    return case(f"memory {dtype.name} {m} {n}", [
        (x > row).where(x, row), x.sum(0), x.sum(1), x.sum(), x.max(0), x.max(1), x.min(),
        x.argmax(1), x.argmax(0), x.any(0), x.T.contiguous(), x.T.sum(0),
        x.reshape(n, m).T * 2, x.flip(1) + row, x.pad(((1, 2), (0, 3))),
        x.pad(((0, 0), (5, 1)), 1).sum(1), x[::2, ::-1], x[1:, :-1].cumsum(1), x[rows], x[rows, 1:],
        x[:, columns], x[rows][:, 0], changed, scattered, x.cast(dtypes.f64).sum(1),
        x.cast(dtypes.u8) + row.cast(dtypes.u8), x.cast(dtypes.bool), Tensor.cat([x, x[:1] * 2]),
        x.tril(1), x.repeat(2, 1)])


def functions(n: int) -> Case:
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, -1.5, 700, -2e9, 0.3])
    x = Tensor(np.resize(special, n))
    return case(f"functions {n}", [
        x.exp2(), x.log2(), x.erf(), x.tanh(), x.exp(), x.log(), x.gelu(), x.sigmoid(), x.softmax(),
        x.sqrt(), x.int(), x.cast(dtypes.u32), x.cast(dtypes.i64), x // 3, x % 3, x ** 2.5, x.sin(),
        x.floor(), Tensor.rand(n)])


def all_cases() -> list[Case]:
    f32, f64, i32, i64, truth = dtypes.f32, dtypes.f64, dtypes.i32, dtypes.i64, dtypes.bool
    kinds = (f32, i32, truth)
    cases = [random_case(50_000 + 1000 * d.rank + k, d) for d in kinds for k in range(40)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_graphs, "MAX_ELEMENTS", 3000)
        patch.setattr(random_graphs, "SIZES", (1, 2, 3, 8, 9, 16, 17, 35, 64))
        cases += [random_case(60_000 + 1000 * d.rank + k, d) for d in kinds for k in range(8)]
    cases += [products(*sizes) for sizes in ((1, 3, 2, f32), (33, 65, 37, f32), (5, 17, 9, i32),
                                             (13, 8, 33, f64))]
    cases += [memory_bound(*sizes) for sizes in ((3, 5, f32), (19, 33, f32), (35, 16, i32),
                                                 (19, 33, truth), (7, 9, i64))]
    return [*cases, functions(37), case("attention", LAYERS["attention"](2, 9, 2, 5)),
            case("classifier", LAYERS["classifier"](18, 10))]


def shared_cases() -> list[Case]:
    """Plans of many kernels, that share all loops that may be shared."""
    sizes = {"softmaxes": [(16, 33)], "norm_layer": [(3, 5, 8), (7, 33)], "classifier": [(9, 5)],
             "mlp": [(6, 5, 7)], "attention": [(2, 5, 3, 4), (1, 17, 2, 8)],
             "embedding": [(9, 16)], "neighbours": [(6, 6), (17, 16)]}
    cases = [case(f"{name} {s}", LAYERS[name](*s)) for name in sizes for s in sizes[name]]
    cases += [case(f"program {seed}", Program(seed).roots) for seed in range(16)]
    return [*cases, products(33, 65, 37, dtypes.f32)]


# *** one program of many kernels ***


class Build(NamedTuple):
    cases: list[Case]
    plans: list[Plan]
    given: bytes
    source: Path
    compiler: subprocess.Popen[str]


def chunks(src: str) -> list[str]:
    """The parts of a source that begin at its left edge: includes, typedefs, functions."""
    return re.findall(r"^\S.*\n(?:(?: .*|\})\n)*", src, re.MULTILINE)


def program(plans: Sequence[Plan], given: Sequence[Sequence[np.ndarray]]) -> str:
    """C of a program that reads all inputs from one file and writes all results to another."""
    parts = dict.fromkeys(["#include <math.h>\n", "#include <stdio.h>\n", "#include <stdlib.h>\n"])
    names: dict[str, str] = {}
    for number, (plan, arrays) in enumerate(zip(plans, given, strict=True)):
        sizes = {f"in{k}": a.nbytes for k, a in enumerate(arrays)}
        for kind, written in (("tmp", plan.temps), ("out", plan.outs)):
            sizes |= {f"{kind}{k}": dtype.size * n for k, (dtype, n) in enumerate(written)}
        lines = [f"static void run{number}(FILE *from, FILE *to) {{",
                 *[f"  void *{name} = malloc({n});" for name, n in sizes.items()],
                 *[f"  if (fread({name}, 1, {n}, from) != {n}) abort();"
                   for name, n in sizes.items() if name.startswith("in")]]
        for kernel in plan.kernels:
            name = names.setdefault(kernel.src, f"kernel{len(names)}")
            src = kernel.src
            for function in re.findall(r"^(?:static )?void (\w+)\(", src, re.MULTILINE):
                new = name if function == kernel.name else f"{name}_{function}"
                src = re.sub(rf"\b{function}(?=\(|_steps|_scratch)", new, src)
            parts |= dict.fromkeys(chunks(src))
            arrays = [f"{kind}{k}" for kind, k in kernel.refs]
            if size := scratch_of(src, name):  # of its own, so that nothing beyond it goes unseen
                arrays.append(f"scratch{len(sizes)}")
                sizes[arrays[-1]] = size
                lines.append(f"  void *{arrays[-1]} = malloc({size});")
            steps = steps_of(src, name)
            middle = steps // 3
            for share in ([],) if steps == 1 else ((middle, steps), (0, middle)):
                lines.append(f"  {name}({', '.join(map(str, [*arrays, *share]))});")
        lines += [f"  fwrite({name}, 1, {n}, to);"
                  for name, n in sizes.items() if name.startswith("out")]
        lines += [f"  free({name});" for name in sizes]
        parts["\n".join([*lines, "}\n"])] = None
    calls = "".join(f"  run{number}(from, to);\n" for number in range(len(plans)))
    return "".join(parts) + f"""int main(int count, char **names) {{
  FILE *from = fopen(names[1], "rb"), *to = fopen(names[2], "wb");
{calls}  return fclose(from) || fclose(to);
}}
"""


def start_build(cases: list[Case], machine: Machine, folder: Path) -> Build:
    """`machine`: what the C may use wherever it is compiled."""
    described = eager(replace(target(), threads=2, vector_bytes=machine.vector_bytes,
                              registers=machine.registers))
    with pytest.MonkeyPatch.context() as patch:
        plan_for(patch, described)
        patch.setattr(kernelize, "_mark_asked", lambda roots: roots)
        made = [make_plan(c.roots, c.fuse_reduce, machine.level) for c in cases]
    plans, given = [plan for plan, _ in made], [[buffer_data(u) for u in ins] for _, ins in made]
    source = folder / "kernels.c"
    source.write_text(program(plans, given))
    return Build(cases, plans, b"".join(a.tobytes() for arrays in given for a in arrays), source,
                 start_compiler(source))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Build]]:
    """One for each machine. The compiler works on a program while the next is being written."""
    cases, sharing = all_cases(), shared_cases()
    made = {name: start_build(sharing if machine.level == 2 else cases, machine,
                              tmp_path_factory.mktemp("program"))
            for name, machine in MACHINES.items()}
    yield made
    for build in made.values():
        build.compiler.kill()


def check_results(build: Build, level: int, written: bytes) -> None:
    at = 0
    for c, plan in zip(build.cases, build.plans, strict=True):
        got = []
        for dtype, n in plan.outs:
            got.append(np.frombuffer(written, dtype.np, n, at))
            at += got[-1].nbytes
        for root, want, (ref, shape) in zip(c.roots, c.want, plan.results, strict=True):
            if ref[0] == "out":
                value, name = got[ref[1]].reshape(shape), f"{c.name}: {root!r}"
                if c.rtol and want.dtype.kind == "f":
                    scale = np.abs(want[np.isfinite(want)]).max(initial=0)
                    np.testing.assert_allclose(value, want, c.rtol, c.rtol * scale, err_msg=name)
                elif level == 0 or want.dtype.kind != "f":
                    np.testing.assert_array_equal(value, want, name)
    assert at == len(written)


@pytest.mark.parametrize("machine", MACHINES)
def test_no_kernel_leaves_its_buffers_or_the_language(machine: str,
                                                      builds: dict[str, Build]) -> None:
    build = builds[machine]
    _, errors = build.compiler.communicate(timeout=60)
    assert build.compiler.returncode == 0, errors[:3000]
    given, written = build.source.with_name("given"), build.source.with_name("written")
    given.write_bytes(build.given)
    done = run_program(build.source, str(given), str(written))
    assert done.returncode == 0, done.stderr[:3000]
    check_results(build, MACHINES[machine].level, written.read_bytes())
