"""What several test files need: the interpreter against every pass and against the compiled C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from uopc import spec
from uopc.alu import apply_alu, constant_array
from uopc.composite import array_buffer, buffer_data
from uopc.dtype import DType, dtypes
from uopc.interpret import interpret_graph, interpret_loops
from uopc.ops import ALU
from uopc.passes import PASSES
from uopc.rangeify import lower
from uopc.render_c import render_c
from uopc.runtime import Program
from uopc.tensor import Tensor
from uopc.uop import Ops, ParamArg, UOp, prod

INTS = (dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64)
FLOATS = (dtypes.f32, dtypes.f64)
Array = np.ndarray


def buffer(values: object, dtype: DType = dtypes.f32) -> UOp:
    """A BUFFER that holds `values`."""
    return array_buffer(np.array(values, dtype=dtype.np))


def variable(dtype: DType = dtypes.i32, low: int | None = None, high: int | None = None,
             name: int = 0) -> UOp:
    """An unknown value: a LOAD, whose bounds are its dtype's unless `low` and `high` say more."""
    number = name if low is None else hash((name, low, high)) % 1_000_000
    shape = (1000 + number,)
    index = UOp(Ops.INDEX, (UOp(Ops.BUFFER, (), ParamArg(number, dtype, shape, "variable")),
                            UOp.const(0, dtypes.i32)))
    unknown = UOp(Ops.LOAD, (index,))
    if low is not None:
        unknown.__dict__["bounds"] = (low, high)
    return unknown


def evaluate(u: UOp, given: Mapping[UOp, Array]) -> Array:
    """The value of an ALU expression, where `given` says what its unknowns are."""
    values = dict(given)
    for node in u.toposort(stop=values.__contains__):
        if node in values:
            continue
        assert node.op in ALU or node.op is Ops.CONST, f"{node!r} has no given value"
        values[node] = apply_alu(node.op, [values[s] for s in node.src], node.dtype) \
            if node.src else constant_array(node)
    return values[u]


def assert_same_bits(got: Array, want: Array, what: object = "") -> None:
    """Equal dtype, shape and bits: -0.0 is not 0.0. Any NaN equals any other."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    np.testing.assert_array_equal(got, want, err_msg=str(what))
    if want.dtype.kind == "f":
        number = ~np.isnan(want)
        assert (np.signbit(got) == np.signbit(want))[number].all(), f"{what}: a zero's sign"


def as_kernel(body: UOp) -> tuple[UOp, UOp, list[Array]]:
    """(body, output BUFFER, arrays) with BUFFERs numbered from 0, the output last.

    So the C of a body is the same in every run, and the cache of objects knows it.
    """
    inputs = [u for u in body.toposort() if u.op is Ops.BUFFER]
    params = {u: UOp(Ops.BUFFER, (), u.arg._replace(slot=k, addrspace="kernel"))
              for k, u in enumerate(inputs)}
    out = UOp(Ops.BUFFER, (), ParamArg(len(inputs), body.dtype, body.shape, "kernel"))
    arrays = [buffer_data(u).ravel().copy() for u in inputs]
    return body.substitute(params), out, [*arrays, rubbish(body.dtype, prod(body.shape))]


def rubbish(dtype: DType, size: int) -> Array:
    """What memory may hold before it is written."""
    return np.full(size, 77).astype(dtype.np)


def slots(sink: UOp) -> list[int]:
    """The parameters of the C that a SINK gives."""
    return sorted(u.arg.slot for u in sink.toposort() if u.op is Ops.BUFFER)


def stages(body: UOp, out: UOp, level: int = 0) -> list[tuple[str, UOp]]:
    """(name, SINK) after each pass of lowering, each checked against the spec."""
    sink = UOp(Ops.SINK, (UOp(Ops.STORE, (out, body)),))
    made = []
    for step in PASSES[level]:
        sink = step.run(sink)
        made.append((step.name, sink))
    for name, sink in made:
        spec.check(sink, spec.loop_rules, name, always=True)
    return made


def run_loops(sink: UOp, arrays: Sequence[Array]) -> Array:
    """The output (the last array) that the interpreter gives; inputs must stay as they are."""
    copies = {k: a.copy() for k, a in enumerate(arrays)}
    interpret_loops(sink, copies)
    for k, before in enumerate(arrays[:-1]):
        assert_same_bits(copies[k], before, f"input {k} was written to")
    return copies[len(arrays) - 1]


def run_c(sink: UOp, arrays: Sequence[Array], name: str = "kernel") -> Array:
    """The output that the compiled C gives."""
    copies = [a.copy() for a in arrays]
    Program(render_c(sink, name), name)(*[copies[k] for k in slots(sink)])
    return copies[-1]


def same_meaning(body: UOp, rtol: float = 0.0, level: int = 0) -> Array:
    """Check that the graph, the loops after each pass, and the C compute the same; returns it.

    Bit for bit, unless `rtol` allows for functions that C and NumPy round differently.
    """
    spec.check(body, spec.shape_rules, "building", always=True)
    want = interpret_graph([body])[0]
    assert want.shape == body.shape and want.dtype == body.dtype.np
    numbered, out, arrays = as_kernel(body)
    results = [(name, run_loops(sink, arrays)) for name, sink in stages(numbered, out, level)]
    results.append(("C", run_c(lower(numbered, out, level), arrays)))
    for name, got in results:
        if rtol:
            np.testing.assert_allclose(got, want.ravel(), rtol=rtol, atol=rtol, err_msg=name)
        else:
            assert_same_bits(got, want.ravel(), f"after {name}")
    return want


def tensor(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, the same ones for the same arguments."""
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))
