"""Plans on disk, beside the objects: a second process neither lowers nor compiles.

A plan's file name is a hash of all it depends on: the structure of the graph, the level, uopc's own
source, the compiler and the machine description. It ends with a digest, as an object does; one that
is damaged, or of another make, counts as missing.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from enum import Enum
from pathlib import Path
from typing import Any

from uopc import config
from uopc.cache_folder import cache
from uopc.counters import counters
from uopc.dtype import DType, dtypes
from uopc.opt.target import target
from uopc.phases import Ref
from uopc.plan import Kernel, Plan
from uopc.runtime import CompileError, Program, identity, load_all


def load_plan(key: tuple) -> Plan | None:
    """The plan that was stored under a structure key, or None."""
    if not _wanted():
        return None
    content = cache().read(_name(key))
    if content is None:
        return None
    try:
        plan = _from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, CompileError):
        return None
    counters.plans_found += 1
    return plan


def store_plan(key: tuple, plan: Plan) -> None:
    """Keep a plan. A full or unwritable folder is no error: the next process makes it again."""
    if _wanted():
        with contextlib.suppress(OSError):
            cache().write(json.dumps(_to_json(plan)).encode(), _name(key))


def _wanted() -> bool:
    """Not while somebody wants to see how a plan is made, or which lines its kernels are of."""
    return not (config.read_int("SPEC") or config.read_int("DUMP") or config.debug() >= 4
                or config.read("PROFILE") != "0")


def _name(key: tuple) -> str:
    parts = [_text(key), _version(), repr(target()), *identity("")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40] + ".plan"


@functools.cache
def _version() -> str:
    """A hash of uopc's own source."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _text(x: Any) -> str:
    """A structure key's part, the same in every process."""
    if isinstance(x, tuple):
        return f"({','.join(map(_text, x))})"
    if isinstance(x, (Enum, DType)):
        return x.name
    return x.__name__ if isinstance(x, type) else repr(x)


def _to_json(plan: Plan) -> dict[str, Any]:
    sources = list(dict.fromkeys(k.src for k in plan.kernels))
    number = {src: k for k, src in enumerate(sources)}
    return {"sources": sources,
            "kernels": [[k.name, number[k.src], k.refs, k.flops, k.outputs] for k in plan.kernels],
            "ins": [[dtype.name, size] for dtype, size in plan.ins],
            "temps": [[dtype.name, size] for dtype, size in plan.temps],
            "outs": [[dtype.name, size] for dtype, size in plan.outs],
            "results": plan.results, "over": plan.over}


def _refs(plan: Plan) -> list[Ref]:
    return [*[ref for k in plan.kernels for ref in k.refs], *[ref for ref, _ in plan.results]]


def _from_json(saved: dict[str, Any]) -> Plan:
    sources = saved["sources"]
    loaded = load_all(sources)
    kernels = [Kernel(name, sources[k], [(kind, i) for kind, i in refs],
                      Program(sources[k], name), flops, outputs)
               for name, k, refs, flops, outputs in saved["kernels"]]
    del loaded  # the programs have what they need
    ins, temps, outs = ([(getattr(dtypes, name), size) for name, size in saved[part]]
                        for part in ("ins", "temps", "outs"))
    results = [((kind, k), tuple(shape)) for (kind, k), shape in saved["results"]]
    count = {"in": len(ins), "tmp": len(temps), "out": len(outs)}
    plan = Plan(kernels, ins, temps, outs, results, [(i, k) for i, k in saved["over"]])
    if not all(0 <= k < count[kind] for kind, k in [
            *_refs(plan), *[ref for i, k in plan.over for ref in (("in", i), ("out", k))]]):
        raise ValueError("a reference to an array that the plan does not have")
    return plan
