"""Where the graph is cut into kernels, and the cache of what came of it.

In: the roots of a shape graph. Out: a Plan, cached under the *structure* of the graph, and one
BUFFER per root. Afterwards there are no STAGEs: each became a kernel's output, or memory of its
own.

    softmax(x)  →  r_4 (row maximum)   r_4 (row sum of exponentials)   e_4_8

The textbook policy (level 0): a kernel ends at every root, STAGE and REDUCE; everything between is
fused into its consumer, and an expensive expression that is broadcast gets a STAGE first. Level 1
puts STAGEs on packed operands besides (`opt/layout.py`); level 2 keeps costly functions, computes
short epilogues with their reduction (`opt/fuse.py`), and makes one kernel of several points that
share a loop (`opt/share.py`).
"""
from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

import numpy as np

from uopc import config, profile, spec
from uopc.composite import (
    array_buffer,
    base_buffer,
    buffer_data,
    is_contiguous_buffer,
    new_buffer,
)
from uopc.counters import counters
from uopc.emit import Emitted, Emitter, Point
from uopc.emit import count_flops as _flops
from uopc.emit import kernel_name as _kernel_name
from uopc.explain import first_difference
from uopc.locks import lock
from uopc.ops import ALU, MOVEMENT
from uopc.opt.fuse import (
    COSTLY,
    cut_long_chains,
    keep_costly,
    reads_nothing,
    with_epilogues,
)
from uopc.opt.layout import (
    pack_operands,
    reduce_in_parts,
    store_permuted,
    sum_products_apart,
)
from uopc.opt.share import share_loops
from uopc.opt.target import target
from uopc.phases import Ref
from uopc.plan import Kernel, Plan, Storage
from uopc.plan_cache import load_plan, store_plan
from uopc.recording import note_run
from uopc.runtime import LAUNCH, Program, loading
from uopc.say import say
from uopc.simplify import remembering
from uopc.uop import Ops, ParamArg, UOp, prod

__all__ = ["DEBUG", "Kernel", "Plan", "_flops", "_kernel_name", "base_buffer", "buffer_data",
           "is_contiguous_buffer", "make_plan", "new_buffer", "realize", "stage_broadcast_compute"]

DEBUG = config.EnvInt("DEBUG")
BROADCAST_FACTOR = 4      # an EXPAND that repeats less than this recomputes cheaply
MIN_STAGED_WORK = 4096    # ALU operations below which a kernel of its own does not pay
PLAN_LIMIT = 512          # plans kept; the one unused for longest goes first
KERNEL_LIMIT = 8192       # of all of them: a loaded one takes about five of 65,530 mappings
ENDS_A_KERNEL = (Ops.BUFFER, Ops.REDUCE, Ops.SCATTER, Ops.STAGE)

StructureKey = tuple
_plans: OrderedDict[StructureKey, Plan] = OrderedDict()
_plans_lock = lock()  # held for a look or an entry only: plans are made outside of it


# *** the policy ***


def _fused_work(base: UOp, costly: int = 1) -> int:
    """ALU operations that computing `base` takes when everything up to it is fused, where one of
    COSTLY counts as so many."""
    inside = base.toposort(stop=lambda u: u.op in ENDS_A_KERNEL)
    return sum(costly if u.op in COSTLY else u.op in ALU for u in inside) * prod(base.shape)


def stage_broadcast_compute(roots: Sequence[UOp], factor: int = BROADCAST_FACTOR,
                            is_cheap: Callable[[UOp], bool] = lambda base: False,
                            costly: int = 1) -> list[UOp]:
    """Put a STAGE on each expensive expression that an EXPAND repeats `factor` times or more,
    since without one each of its copies would be computed again; none on one that `is_cheap`.
    `costly` is that of `_fused_work`."""
    targets = set()
    for u in UOp(Ops.SINK, tuple(roots)).toposort():
        if u.op is not Ops.EXPAND or prod(u.shape) < factor * max(1, prod(u.src[0].shape)):
            continue
        base = u.src[0]
        while base.op in MOVEMENT:
            base = base.src[0]
        if base.op in ALU and base.op is not Ops.CAST and base.shape \
                and _fused_work(base, costly) >= MIN_STAGED_WORK and not is_cheap(base):
            targets.add(base)
    return UOp.wrap(roots, targets, UOp.stage)


def _homes(roots: Sequence[UOp], fuse_reduce: bool,
           inlined: Set[UOp] = frozenset()) -> dict[UOp, UOp]:
    """For each node whose value will lie in memory as it is: the node that puts it there.

    A RESHAPE, and a STAGE of what lies in memory already, need nothing of their own. Reductions
    that are `inlined` are computed where they are used.
    """
    homes: dict[UOp, UOp] = {}
    wanted = set(roots)
    for u in UOp(Ops.SINK, tuple(roots)).toposort():
        cut = u.op in (Ops.BUFFER, Ops.SCATTER) or (
            u.op is Ops.REDUCE and not fuse_reduce and u not in inlined)
        if u.op in (Ops.RESHAPE, Ops.STAGE) and u.src[0] in homes:
            homes[u] = homes[u.src[0]]
        elif cut or u.op is Ops.STAGE or u in wanted:
            homes[u] = u
    return homes


def _materialize_points(roots: Sequence[UOp], fuse_reduce: bool = False) -> list[UOp]:
    """The nodes at which a kernel ends, in the order in which the kernels run."""
    return [u for u, home in _homes(roots, fuse_reduce).items()
            if home is u and u.op is not Ops.BUFFER]


# *** roots → Plan ***


def make_plan(roots: Sequence[UOp], fuse_reduce: bool = False,
              opt: int | None = None) -> tuple[Plan, list[UOp]]:
    """(the Plan that computes `roots`, its input BUFFERs in order). Looks into no cache.

    `fuse_reduce` keeps reductions inside their consumers' kernels. `opt` is the optimizer level;
    None is level 0. Raises ValueError for a level that does not exist.
    """
    _check_level(opt)
    spec.check(UOp(Ops.SINK, tuple(roots)), spec.shape_rules, "building the graph")
    inputs = _input_buffers(roots)
    assigned = [u.op is Ops.STAGE and isinstance(u.arg, tuple) for u in roots]
    roots = _strip_detach(roots)
    if opt and opt >= 2:
        roots = _mark_asked(roots)
    if opt and not fuse_reduce:
        roots = store_permuted(sum_products_apart(roots))
        roots = pack_operands(reduce_in_parts(roots, opt >= 2), opt >= 2)
    if not fuse_reduce and not opt:
        roots = stage_broadcast_compute(roots)
    elif not fuse_reduce:  # in a reduction, what is the same for all its terms is in no lanes
        costly = target().function_work if opt >= 2 else 1
        roots = stage_broadcast_compute(roots, is_cheap=reads_nothing, costly=costly)
    if opt and opt >= 2 and not fuse_reduce:
        roots = keep_costly(roots, _homes(roots, fuse_reduce=False), MIN_STAGED_WORK)
    if opt and not fuse_reduce:
        roots = cut_long_chains(roots, _homes(roots, fuse_reduce=False))
    with remembering():
        return _Planner(roots, inputs, fuse_reduce, opt or 0, assigned).plan(), inputs


def _check_level(opt: int | None) -> None:
    if opt is not None and opt not in config.LEVELS:
        raise ValueError(f"there is no optimizer level {opt}; the levels are {config.LEVELS}")


def _input_buffers(roots: Sequence[UOp]) -> list[UOp]:
    return [u for u in UOp(Ops.SINK, tuple(roots)).toposort() if u.op is Ops.BUFFER]


def _strip_detach(roots: Sequence[UOp]) -> list[UOp]:
    targets = [u for u in UOp(Ops.SINK, tuple(roots)).toposort()
               if u.op is Ops.STAGE and u.arg]
    return UOp.wrap(roots, targets, lambda u: u.src[0])


def _mark_asked(roots: Sequence[UOp]) -> list[UOp]:
    """Tell the STAGEs that the user asked for from those to come."""
    targets = [u for u in UOp(Ops.SINK, tuple(roots)).toposort() if u.op is Ops.STAGE]
    return UOp.wrap(roots, targets, lambda u: u.replace(arg="asked"))


class _Planner:
    """Walks the graph once, sources first, and makes a kernel at each point, or, at level 2, one of
    several points that share a loop."""

    def __init__(self, roots: Sequence[UOp], inputs: Sequence[UOp], fuse_reduce: bool,
                 level: int, assigned: Sequence[bool]) -> None:
        self.roots, self.level, self.inputs = roots, level, set(inputs)
        self.homes = _homes(roots, fuse_reduce)
        if level >= 2 and not fuse_reduce:
            self.homes = _homes(roots, fuse_reduce, with_epilogues(roots, self.homes))
        self.root_homes = {self.homes[r] for r in roots}
        self.updated = {self.homes[r] for r, is_new in zip(roots, assigned, strict=True)
                        if is_new and level >= 1}
        self.refs: dict[UOp, Ref] = {u: ("in", i) for i, u in enumerate(inputs)}
        self.plan_storage: dict[str, list[Storage]] = {
            "in": [(u.dtype, prod(u.shape)) for u in inputs], "tmp": [], "out": []}
        self.emitter = Emitter(level)

    def plan(self) -> Plan:
        points, done = self.points()
        made: dict[int, Emitted] = {}
        with loading() as load:
            if self.level >= 1:
                load(LAUNCH)
            for k, kernel in self.shared(points) if self.level >= 2 else \
                    enumerate(map(self.emitter.kernel, points)):
                made[k] = kernel
                load(kernel.src)  # while the next one is lowered
        kernels = [Kernel(k.name, k.src, [self.ref(b) for b in k.buffers],
                          Program(k.src, k.name), k.flops, k.outputs, k.lines)
                   for _, k in sorted(made.items())]  # while `load` keeps them loaded
        results = [(self.ref(base_buffer(done[r])), r.shape) for r in self.roots]
        ins, temps, outs = (self.plan_storage[kind] for kind in ("in", "tmp", "out"))
        over = [(self.ref(a)[1], self.ref(b)[1]) for k in made.values() for a, b in k.over]
        return Plan(kernels, ins, temps, outs, results, over)

    def points(self) -> tuple[list[Point], dict[UOp, UOp]]:
        """The points in order; and the graph with each of them replaced by its buffer."""
        points: list[Point] = []
        done: dict[UOp, UOp] = {}
        for u in UOp(Ops.SINK, tuple(self.roots)).toposort():
            rebuilt = u.replace(src=tuple([done[s] for s in u.src]))
            home = self.homes.get(u)
            if home is not None and home is not u:
                rebuilt = done[home].reshape(u.shape)
            elif home is u and u.op is not Ops.BUFFER:
                kind = "out" if u in self.root_homes else "tmp"
                out = UOp(Ops.BUFFER, (), ParamArg(len(points), u.dtype, u.shape, kind))
                body = rebuilt.src[0] if u.op is Ops.STAGE else rebuilt
                over = _read_in_place(body) & self.inputs if u in self.updated else frozenset()
                points.append(_point(body, out, over, u.op is Ops.STAGE and u.arg == "asked",
                                     spec.line_of(u)))
                rebuilt = out
            done[u] = rebuilt
        return points, done

    def shared(self, points: Sequence[Point]) -> Iterator[tuple[int, Emitted]]:
        """Kernels of the points that share loops, each with its place. The largest come first:
        they take the compiler longest."""
        point_of = {p.buffers[-1]: p for p in points}
        groups = share_loops([self.emitter.member(p) for p in points], target())
        readers: dict[UOp, set[int]] = {}
        for k, group in enumerate(groups):
            for m in group.members:
                for b in m.buffers[:-1]:
                    readers.setdefault(b, set()).add(k)
        for k, group in sorted(enumerate(groups), key=lambda g: -len(g[1].members)):
            members = [point_of[m.given] for m in group.members]
            if len(members) == 1:
                yield k, self.emitter.kernel(members[0])
                continue
            private = {m.given for m in group.members if readers.get(m.given) == {k}
                       and m.given.arg.addrspace == "tmp"}
            yield k, self.emitter.shared_kernel(group, members, private)

    def ref(self, buffer: UOp) -> Ref:
        """How the plan refers to a buffer; one that it has not seen gets a place."""
        if buffer not in self.refs:
            kind = buffer.arg.addrspace
            self.refs[buffer] = (kind, len(self.plan_storage[kind]))
            self.plan_storage[kind].append((buffer.dtype, prod(buffer.shape)))
        return self.refs[buffer]


def _read_in_place(body: UOp) -> frozenset[UOp]:
    """The buffers of which each element of `body` needs none but the one of its own place, as
    large."""
    found, elsewhere = set(), []
    for u in body.toposort(stop=lambda u: u.op not in ALU):
        if u.op not in ALU:
            base = base_buffer(u) if is_contiguous_buffer(u) else u
            if base.op is Ops.BUFFER and (base.dtype, prod(u.shape)) == (body.dtype,
                                                                         prod(body.shape)):
                found.add(base)
            else:
                elsewhere.append(u)
    return frozenset(found.difference(UOp(Ops.SINK, tuple(elsewhere)).toposort()))


def _point(body: UOp, out: UOp, over: frozenset[UOp], is_asked: bool, line: str) -> Point:
    buffers = [v for v in body.toposort() if v.op is Ops.BUFFER] + [out]
    params = {v: UOp(Ops.BUFFER, (), v.arg._replace(slot=k, addrspace="kernel"))
              for k, v in enumerate(buffers)}
    return Point(body.substitute(params), params[out], buffers, over, is_asked, line)


# *** the cache, and running ***


def _structure_key(roots: Sequence[UOp], fuse_reduce: bool = False,
                   opt: int | None = None) -> StructureKey:
    """The graph without the identity of its buffers: equal keys mean that one plan serves both."""
    return _structure(UOp(Ops.SINK, tuple(roots)).toposort(), fuse_reduce, opt)


def _structure(order: list[UOp], fuse_reduce: bool, opt: int | None) -> StructureKey:
    position: dict[UOp, int] = {}
    nodes = []
    for k, u in enumerate(order):
        position[u] = k
        if u.op is Ops.BUFFER:
            nodes.append((u.op, u.dtype, u.shape))
        elif u.op is Ops.STAGE:  # an assignment's number tells it apart, and means nothing more
            arg = "assign" if isinstance(u.arg, tuple) else u.arg
            nodes.append((u.op, arg, position[u.src[0]]))
        else:
            nodes.append((u.op, u.argkey, *[position[s] for s in u.src]))
    return (fuse_reduce, opt or 0, tuple(nodes))


def realize(roots: Sequence[UOp], fuse_reduce: bool = False,
            opt: int | None = None) -> list[UOp]:
    """Compute `roots`; returns one BUFFER per root, in order. Equal roots are computed once.

    Where all roots are BUFFERs already, nothing is done. Raises what `make_plan` raises, and
    CompileError when the C compiler is missing or fails.
    """
    if all(u.op is Ops.BUFFER for u in roots):
        return list(roots)
    debug = int(DEBUG)
    UOp.track_origins = config.explains()
    start = time.perf_counter()
    order = UOp(Ops.SINK, tuple(roots)).toposort()
    key = _structure(order, fuse_reduce, opt)
    plan = _cached_plan(key)
    hit = plan is not None
    if plan is None:
        if debug >= 1 and _plans:
            with _plans_lock:
                reason = first_difference(key, order, _plans)
            say(f"uopc: new plan; {reason}")
        making = time.perf_counter()
        plan = load_plan(key) if opt else None
        if plan is None:
            plan, _ = make_plan(roots, fuse_reduce, opt)
            if opt:
                store_plan(key, plan)
        _keep_plan(key, plan)
        counters.plan_time += time.perf_counter() - start
        profile.note("make plan", making, plan=plan.number, kernels=len(plan.kernels))
    inputs = [u for u in order if u.op is Ops.BUFFER]
    arrays = [buffer_data(u) for u in inputs]
    needs = "" if hit or debug < 1 else _needs(plan)
    schedule_time = time.perf_counter() - start
    counters.schedule_time += schedule_time
    profile.note("schedule", start, plan=plan.number, is_new=not hit)
    outs = run_plan(plan, arrays, f"plan {'hit' if hit else 'miss'}, schedule "
                                  f"{schedule_time * 1e3:.2f} ms", needs)
    results = _results(plan, inputs, outs)
    note_run(plan, inputs, results)
    profile.note("realize", start, plan=plan.number)
    return results


def _needs(plan: Plan) -> str:
    """The memory that a plan needs, in words."""
    return "; needs " + ", ".join(f"{name} {size / 1e6:.3f} MB"
                                  for name, size in plan.bytes_needed().items())


def run_plan(plan: Plan, arrays: Sequence[np.ndarray], note: str = "replayed", more: str = "",
             spare: Mapping[int, np.ndarray] | None = None) -> list[np.ndarray]:
    """`plan.run`, with a line about it at DEBUG=1."""
    debug, start = int(DEBUG), time.perf_counter()
    outs = plan.run(arrays, debug, spare)
    if debug >= 1:
        say_run(plan, note, start, more)
    return outs


def say_run(plan: Plan, note: str, start: float, more: str = "") -> None:
    """DEBUG=1's line about a run that began at `start`."""
    say(f"uopc: {len(plan.kernels)} kernels, {note}, run "
        f"{(time.perf_counter() - start) * 1e3:.2f} ms{more}")


def _cached_plan(key: StructureKey) -> Plan | None:
    with _plans_lock:
        plan = _plans.get(key)
        if plan is None:
            counters.plan_misses += 1
        else:
            counters.plan_hits += 1
            _plans.move_to_end(key)
        return plan


def _keep_plan(key: StructureKey, plan: Plan) -> None:
    gone = []  # they die, and their kernels are unloaded, when the lock is free again
    with _plans_lock:
        _plans[key] = plan
        kernels = sum(len(p.kernels) for p in _plans.values())
        while len(_plans) > PLAN_LIMIT or kernels > KERNEL_LIMIT and len(_plans) > 1:
            gone.append(_plans.popitem(last=False)[1])
            kernels -= len(gone[-1].kernels)


def _results(plan: Plan, inputs: Sequence[UOp], outs: Sequence[np.ndarray]) -> list[UOp]:
    made: dict[tuple, UOp] = {}
    for ref, shape in plan.results:
        kind, k = ref
        if (ref, shape) in made:
            continue
        if kind == "in" and inputs[k].shape == shape:
            made[ref, shape] = inputs[k]
        else:
            data = buffer_data(inputs[k]) if kind == "in" else outs[k]
            made[ref, shape] = array_buffer(data.reshape(shape))
    return [made[result] for result in plan.results]
