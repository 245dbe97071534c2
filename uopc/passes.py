"""The passes from a kernel's shape graph to loops, in order: one list per optimizer level.

The same lists drive the verifier (`SPEC=1` checks each result against the spec) and the dump
(`DUMP=1` prints it). Every pass takes a SINK and gives one; the interpreter can run what any gives.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from uopc import config, spec
from uopc.accumulate import place_accumulators
from uopc.dtype import dtypes
from uopc.opt.approximate import approximate
from uopc.opt.choose import optimize, optimize_shared
from uopc.opt.share import Shared
from uopc.opt.transform import expand
from uopc.opt.vectorize import address_vectors
from uopc.pretty import pretty
from uopc.rangeify import lower_movement
from uopc.say import say
from uopc.simplify import remembering, simplify
from uopc.uop import UOp


class Pass(NamedTuple):
    """A named step from SINK to SINK. `after` says what holds when it is done."""

    name: str
    run: Callable[[UOp], UOp]
    after: str


LOWER = (
    Pass("lower_movement", lower_movement, "no movement operation and no shape is left"),
    Pass("simplify", simplify, "no index arithmetic that bounds can decide is left"),
)
WIDE = (  # a compiler need not care whether an index of the machine's word wraps around
    Pass("lower_movement", partial(lower_movement, narrowest=dtypes.i64),
         "as above, with indices of 64 bits"),
    *LOWER[1:],
)
OPTIMIZE = (
    Pass("approximate", approximate, "exponentials, erf and tanh of f32 are arithmetic,"
         " sin and cos but of large numbers"),
    Pass("optimize", optimize, "loops are split, reordered and marked for this machine"),
    Pass("expand", expand, "no loop is marked UNROLL"),
)
FINISH = (
    Pass("place_accumulators", place_accumulators, "no REDUCE over a loop is left"),
)
VECTORS = (
    Pass("address_vectors", address_vectors, "a contiguous access reads base + lane"),
)
FAST = WIDE + OPTIMIZE + FINISH + VECTORS
PASSES: dict[int, tuple[Pass, ...]] = {
    0: LOWER + FINISH,
    1: FAST,
    2: FAST,  # with `optimize_shared` in the place of `optimize` where kernels share a loop
}


def run_passes(kernel: UOp, level: int) -> UOp:
    """SINK(STORE(out, body)) → loops, by the passes of an optimizer level."""
    return _run(kernel, PASSES[level])


def lower_loops(kernel: UOp) -> UOp:
    """SINK(STORE(out, body)) → loops that no optimization has seen."""
    return _run(kernel, WIDE)


def optimize_loops(sink: UOp, shared: Sequence[Shared] = (),
                   local: Mapping[int, int] | None = None) -> UOp:
    """The same loops, optimized. `shared` and `local` are those of `optimize_shared`."""
    steps = [s if s.run is not optimize or not shared else
             s._replace(run=partial(optimize_shared, shared=shared, local=local or {}))
             for s in OPTIMIZE]
    return _run(sink, (*steps, *FINISH, *VECTORS))


def _run(kernel: UOp, passes: Sequence[Pass]) -> UOp:
    with remembering():
        for step in passes:
            kernel = step.run(kernel)
            spec.check(kernel, spec.loop_rules, step.name)
            if config.read_int("DUMP"):
                say(f"after {step.name}:\n{pretty(kernel)}\n")
    return kernel
