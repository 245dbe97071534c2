"""Points of the graph → kernels in C: a kernel of one point, or one of several that share a loop.

    LayerNorm's points r_768 (mean), r_768 (variance), e_768_128  →  fused3_768_128, which takes
    each step of the loop through three functions, with the mean in memory of the thread's own
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from uopc import config
from uopc.liveness import place
from uopc.ops import ALU
from uopc.opt.share import Group, Loops, Member, Shared, size_in_step
from uopc.passes import lower_loops, optimize_loops
from uopc.rangeify import lower
from uopc.render_c import Call, Function, parameter, render_c, render_function, render_shared
from uopc.say import say
from uopc.uop import Ops, UOp, prod


class Point(NamedTuple):
    """A body with its buffers numbered as a kernel's parameters, and the plan's buffers by these
    numbers; the last one is what it writes, and may lie where one of `over` did. `is_asked` tells
    that the user wants it in memory, `line` where the user's program built it, if that was noted.
    """

    body: UOp
    out: UOp
    buffers: list[UOp]
    over: frozenset[UOp]
    is_asked: bool
    line: str


class Emitted(NamedTuple):
    """A kernel's C, the plan's buffers that it takes, of which it writes the last `outputs`; of the
    pairs in `over` the second one, which it writes, may lie where the first one did."""

    name: str
    src: str
    buffers: list[UOp]
    flops: int
    outputs: int
    lines: tuple[str, ...]
    over: list[tuple[UOp, UOp]]


def kernel_name(body: UOp) -> str:
    """r_ or e_ (with or without a reduction), then the output's shape."""
    reduces = any(u.op in (Ops.REDUCE, Ops.SCATTER) for u in body.toposort())
    return ("r_" if reduces else "e_") + _shape_name(body)


def _shape_name(body: UOp) -> str:
    return "_".join(map(str, body.shape)) or "1"


def count_flops(body: UOp) -> int:
    """One per element of each ALU node, and a reduction's source elements."""
    total = 0
    for u in body.toposort():
        if u.op in ALU:
            total += prod(u.shape)
        elif u.op is Ops.REDUCE:
            total += prod(u.src[0].shape)
        elif u.op is Ops.SCATTER:
            total += prod(u.src[1].shape)
    return total


class Emitter:
    """Makes kernels; what is alike is lowered once."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.made: dict[tuple, Any] = {}

    def once(self, make: Callable[..., Any], *of: Any) -> Any:
        key = (make, *of)
        if key not in self.made:
            self.made[key] = make(*of)
        return self.made[key]

    def kernel(self, p: Point) -> Emitted:
        name, src, alive = self.once(self._render, p.body, p.out, _slots(p, p.over))
        return Emitted(name, src, [p.buffers[k] for k in alive], count_flops(p.body),
                       int(p.out.arg.slot in alive), (p.line,) if p.line else (),
                       [(b, p.buffers[-1]) for b in p.over])

    def _render(self, body: UOp, out: UOp, over: frozenset[int]) -> tuple[str, str, list[int]]:
        """(name, C, the slots that the lowered program still uses) of a kernel's body."""
        known = self.made.get((_lowered, body, out))
        sink = lower(body, out, self.level) if known is None else optimize_loops(known)
        alive = sorted(u.arg.slot for u in sink.toposort() if u.op is Ops.BUFFER)
        name = kernel_name(body)
        src = render_c(sink, name, over)
        _show(src)
        return name, src, alive

    def member(self, p: Point) -> Member:
        """The point as something whose loops may be shared."""
        return Member(self.once(Loops, self.lowered(p)), p.buffers, p.is_asked)

    def lowered(self, p: Point) -> UOp:
        return self.once(_lowered, p.body, p.out)

    def shared_kernel(self, group: Group, points: Sequence[Point], private: Set[UOp]) -> Emitted:
        """A kernel of several points. What lies in `private` nobody else reads."""
        sizes = {m.given: size_in_step(m, shared)
                 for m, shared in zip(group.members, group.chosen, strict=True)
                 if m.given in private}
        readers = Counter(b for p in points for b in p.buffers)
        over = [(b, p.buffers[-1]) for p in points for b in p.over if readers[b] == 1]
        may_alias = {b for pair in over for b in pair}
        functions: list[Function] = []
        for p, shared in zip(points, group.chosen, strict=True):
            local = tuple((k, sizes[b]) for k, b in enumerate(p.buffers) if b in sizes)
            functions.append(self.once(_render_shared, self.lowered(p), kernel_name(p.body),
                                       tuple(shared), local, _slots(p, may_alias)))
        numbers = {id(f): k for k, f in reversed(list(enumerate(functions)))}
        taken = [[p.buffers[k] for k in f.slots] for p, f in zip(points, functions, strict=True)]
        given = {m.given for m in group.members}
        params = sorted(dict.fromkeys(b for bs in taken for b in bs if b not in sizes),
                        key=given.__contains__)
        names = {b: f"data{k}" for k, b in enumerate(params)}
        names |= {b: f"local{k}" for k, b in enumerate(sizes)}
        order = list(sizes)
        starts, size = place([sizes[b] * b.dtype.size for b in order],
                             [[order.index(b) for b in p.buffers if b in sizes] for p in points])
        calls = [Call(f.renamed(f"{f.name}_{numbers[id(f)]}"), [names[b] for b in bs])
                 for f, bs in zip(functions, taken, strict=True)]
        name = f"fused{len(points)}_{_shape_name(points[-1].body)}"
        src = render_shared(name, [parameter(b.dtype, names[b], b in may_alias) for b in params],
                            [f"{b.dtype.c}* {names[b]} = ({b.dtype.c}*)(scratch+{start});"
                             for b, start in zip(order, starts, strict=True)], size, calls)
        self.once(_show, src)
        return Emitted(name, src, params, sum(count_flops(p.body) for p in points),
                       sum(b in given for b in params),
                       tuple([p.line for p in points if p.line]), over)


def _slots(p: Point, may_alias: Set[UOp]) -> frozenset[int]:
    """Of the parameters that may not be `restrict`."""
    inputs = [k for k, b in enumerate(p.buffers[:-1]) if b in p.over and b in may_alias]
    return frozenset([*inputs, len(p.buffers) - 1] if inputs else [])


def _lowered(body: UOp, out: UOp) -> UOp:
    return lower_loops(UOp(Ops.SINK, (UOp(Ops.STORE, (out, body)),)))


def _render_shared(sink: UOp, name: str, shared: tuple[Shared, ...],
                   local: tuple[tuple[int, int], ...], over: frozenset[int]) -> Function:
    return render_function(optimize_loops(sink, shared, dict(local)), name, over)


def _show(src: str) -> None:
    if config.debug() >= 4:
        say(src)
