"""Integer expressions with numbers at the ends of their types: simplification keeps every value,
and the bounds hold for all of them.

    v % 4096 + (v // 4096 % 524288) * 4096      v of i32: the weights end where the type does
"""
from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.fuzz.harness import Case
from uopc.alu import apply_alu, constant_array
from uopc.bounds import bounds
from uopc.dtype import ALL_DTYPES, DType, as_const, dtypes
from uopc.simplify import simplify
from uopc.uop import Ops, ParamArg, UOp

COUNT, STRIDE = 200_000, 2_000
INTS = [d for d in ALL_DTYPES if d.is_int]
VALUES = 32  # of each unknown, at which an expression is evaluated
Data = dict[UOp, np.ndarray]


def fuzz(rng: random.Random, count: int, folder: Path) -> Iterator[Case]:
    for k in range(count):
        dtype = rng.choice(INTS)
        unknowns = [_unknown(3 * k + j, dtype, rng) for j in range(3)]
        u = _expression(rng, list(unknowns), dtype)
        data = {v: _values(v, rng) for v in unknowns}
        yield Case(_text(u), *_judged(u, data))


def _judged(u: UOp, data: Data) -> tuple[str, str]:
    want, after = _evaluated(u, data), simplify(u)
    got = _evaluated(after, data)
    if not (got == want).all():
        at = int((got != want).argmax())
        return "wrong", f"became {_text(after)}, which gives {got[at]} for {want[at]}"
    for form in (u, after):
        low, high = bounds(form)
        if int(want.min()) < low or high < int(want.max()):
            return "wrong", f"bounds {low} to {high} of {_text(form)}; it is {want.tolist()}"
    return "right", ""


def _number(dtype: DType, rng: random.Random) -> int:
    low, high, power = int(dtype.min), int(dtype.max), 1 << rng.randrange(8 * dtype.size)
    chosen = rng.choice([rng.randrange(-4, 10), power, power - 1, -power, low, low + 1, high,
                         high - 1, high // 2, high // 3, rng.randrange(low, high + 1)])
    return as_const(chosen, dtype)


def _unknown(name: int, dtype: DType, rng: random.Random) -> UOp:
    """A LOAD, of which the bounds are sometimes known to be less than the type's."""
    buffer = UOp(Ops.BUFFER, (), ParamArg(name, dtype, (1,), "fuzz"))
    unknown = UOp(Ops.LOAD, (UOp(Ops.INDEX, (buffer, UOp.const(0, dtypes.i32))),))
    if rng.random() < 0.7:
        low, high = sorted((_number(dtype, rng), _number(dtype, rng)))
        low = max(0, low) if high >= 0 and rng.random() < 0.4 else low
        unknown.__dict__["bounds"] = (low, high)
    return unknown


def _values(unknown: UOp, rng: random.Random) -> np.ndarray:
    low, high = bounds(unknown)
    near = [min(max(_number(unknown.dtype, rng), low), high) for _ in range(VALUES // 2)]
    within = [rng.randrange(low, high + 1) for _ in range(VALUES - VALUES // 2 - 2)]
    return np.array(rng.sample([low, high, *near, *within], VALUES), unknown.dtype.np)


def _expression(rng: random.Random, parts: list[UOp], dtype: DType) -> UOp:
    for _ in range(rng.randrange(2, 8)):
        a, b = rng.choice(parts), rng.choice(parts)
        c, d = (UOp.const(n, dtype) for n in _factors(dtype, rng))
        parts.append(rng.choice((
            lambda a, b, c, d: a + b, lambda a, b, c, d: a * b, lambda a, b, c, d: a * c,
            lambda a, b, c, d: a // c, lambda a, b, c, d: a % c, lambda a, b, c, d: a + c,
            lambda a, b, c, d: a // c % d * c + a % c, lambda a, b, c, d: a // c * c + a % c,
            lambda a, b, c, d: a // c // d, lambda a, b, c, d: a % c % d,
            lambda a, b, c, d: (a * c + b) // d, lambda a, b, c, d: (a * c + b) % d,
            lambda a, b, c, d: (a < c).where(b, a),
            lambda a, b, c, d: a.cast(rng.choice(INTS)).cast(dtype)))(a, b, c, d))
    last = parts[-1]
    return rng.choice((last, last, last < _number(dtype, rng), last.cast(rng.choice(INTS))))


def _factors(dtype: DType, rng: random.Random) -> tuple[int, int]:
    """Two numbers, whose product is often next to the end of the type."""
    c, high = _number(dtype, rng), int(dtype.max)
    if c == 0 or rng.random() < 0.5:
        return c, _number(dtype, rng)
    return c, as_const((high + rng.choice([0, 1, 1, high])) // c + rng.choice([-1, 0, 0, 1]), dtype)


def _evaluated(u: UOp, data: Data) -> np.ndarray:
    values = dict(data)
    for node in u.toposort(stop=values.__contains__):
        if node not in values:
            values[node] = constant_array(node) if node.op is Ops.CONST else \
                apply_alu(node.op, [values[s] for s in node.src], node.dtype)
    return np.broadcast_to(values[u], VALUES)


def _text(u: UOp) -> str:
    if u.op is Ops.CONST:
        return str(u.arg.value)
    if u.op is Ops.LOAD:
        return f"v{u.src[0].src[0].arg.slot}{bounds(u)}"
    name = u.dtype.name if u.op is Ops.CAST else u.op.name
    return f"{name}({', '.join(map(_text, u.src))})"
