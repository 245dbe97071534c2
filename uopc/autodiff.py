"""Reverse-mode differentiation: a shape graph in, the graphs of its gradients out.

    d(sum(x * y)) / dx   →   y, broadcast from the gradient 1 of the sum

One table says how each operation passes the gradient of its result on to its sources. Choices where
mathematics leaves one: a tie in a maximum shares the gradient evenly; `sqrt` has the gradient 0 at
0 (the subgradient of a norm that is nearest to zero); a gradient that is exactly 0 stays 0 through
`sqrt`, `log`, `1/x` and `pow`, so that a branch of `where` that was not taken cannot turn it into
NaN; through what is constant almost everywhere (`trunc`, `//`, comparisons, casts to integers) no
gradient flows, so what a result depends on only by that has the gradient 0.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from uopc.composite import LN_2, LOG2_E, broadcast, exp, log, reduce_axes
from uopc.ops import ACCUMULATED
from uopc.uop import Ops, UOp

Gradients = tuple[UOp | None, ...]


def gradients(root: UOp, targets: Iterable[UOp], seed: UOp) -> dict[UOp, UOp]:
    """The gradient of `root` with respect to each of `targets` that it depends on: zeros where that
    is only by what is constant almost everywhere. What is detached depends on nothing.

    `seed`, of root's shape and dtype, is the gradient of whatever comes after. Every gradient has
    the shape and dtype of its target.
    """
    targets = set(targets)
    order = root.toposort()
    leads_to_target: set[UOp] = set()
    for u in order:
        if u in targets or (u.dtype.is_float and any(s in leads_to_target for s in u.src)):
            leads_to_target.add(u)
    grads: dict[UOp, UOp] = {root: seed}
    for u in reversed(order):
        if u not in grads or u not in leads_to_target or u.op not in gradient_rules:
            continue
        g = grads[u] if u in targets else grads.pop(u)
        for s, part in zip(u.src, gradient_rules[u.op](g, u), strict=True):
            if part is not None and s in leads_to_target:
                grads[s] = _accumulated(grads[s], part) if s in grads else part
    found = {t: grads[t] for t in targets if t in grads}
    if len(found) < len(targets):
        for t in targets.intersection(root.toposort(stop=_is_detached)).difference(found):
            found[t] = broadcast(UOp.const(0, t.dtype), t.shape)
    return found


def _is_detached(u: UOp) -> bool:
    return u.op is Ops.STAGE and u.arg is not None


def _accumulated(so_far: UOp, part: UOp) -> UOp:
    return (so_far + part).replace(arg=ACCUMULATED)


def _unless_zero(g: UOp, value: UOp) -> UOp:
    return g.eq(0).where(g, value)


def _sqrt(g: UOp, u: UOp) -> Gradients:
    return ((g.eq(0) | u.eq(0)).where(0.0, g * 0.5 / u),)


def _divide(g: UOp, u: UOp) -> Gradients:
    """Of a / b: g / b, and g * (u / b) * -1, where no square of b can overflow."""
    b = u.src[1]
    return _unless_zero(g, g / b), _unless_zero(g, g * (u / b) * -1)


def _pow(g: UOp, u: UOp) -> Gradients:
    x, y = (broadcast(s, u.shape) for s in u.src)  # one may be a constant, of shape ()
    of_base = y.eq(0).where(0.0, y * x.alu(Ops.POW, y + -1))
    of_exponent = (x.eq(0) & UOp.const(0, y.dtype).alu(Ops.CMPLE, y)).where(0.0, u * log(x))
    return _unless_zero(g, g * of_base), _unless_zero(g, g * of_exponent)


def _maximum(g: UOp, u: UOp) -> Gradients:
    x, y = (broadcast(s, u.shape) for s in u.src)
    tie = x.eq(y).where(g * 0.5, 0.0)
    return ((y < x) | x.ne(x)).where(g, tie), ((x < y) | y.ne(y)).where(g, tie)


def _float_modulo(g: UOp, u: UOp) -> Gradients:
    x, y = u.src
    return g, g * (x // y) * -1


def _expand(g: UOp, u: UOp) -> Gradients:
    repeated = [a for a, (old, new) in enumerate(zip(u.src[0].shape, u.shape, strict=True))
                if old != new]
    return (reduce_axes(g, Ops.ADD, repeated, keepdim=True),)


def _shrink(g: UOp, u: UOp) -> Gradients:
    return (g.pad([(a, n - b) for (a, b), n in zip(u.arg, u.src[0].shape, strict=True)]),)


def _pad(g: UOp, u: UOp) -> Gradients:
    return (g.shrink([(a, a + n) for (a, _), n in zip(u.arg, u.src[0].shape, strict=True)]),)


def _permute(g: UOp, u: UOp) -> Gradients:
    return (g.permute([u.arg.index(a) for a in range(len(u.arg))]),)


def _reduce(g: UOp, u: UOp) -> Gradients:
    x, (op, n) = u.src[0], u.arg

    def spread(v: UOp) -> UOp:
        return v.reshape((*u.shape, *(1,) * n)).expand(x.shape)

    if op is Ops.ADD:
        return (spread(g),)
    if op is Ops.MUL:
        return (_product(x, n, spread) * spread(g),)
    hit = x.eq(spread(u)) | x.ne(x)  # a maximum that is NaN comes from the NaNs
    count = hit.cast(x.dtype).reduce(Ops.ADD, n)
    return (hit.where(spread(g / count), 0.0),)


def _product(x: UOp, n: int, spread: Callable[[UOp], UOp]) -> UOp:
    """The product of all the other elements, right where some are 0."""
    zero = x.eq(0)
    zeros = spread(zero.cast(x.dtype).reduce(Ops.ADD, n))
    rest = spread(zero.where(1.0, x).reduce(Ops.MUL, n))
    return zero.where(zeros.eq(1).where(rest, 0.0),
                      zeros.eq(0).where(rest / x, 0.0))


def _cast(g: UOp, u: UOp) -> Gradients:
    return (g.cast(u.src[0].dtype) if u.src[0].dtype.is_float else None,)


gradient_rules: dict[Ops, Callable[[UOp, UOp], Gradients]] = {
    # elementwise: g is the gradient of the result u
    Ops.ADD: lambda g, u: (g, g),
    Ops.MUL: lambda g, u: (g * u.src[1], g * u.src[0]),
    Ops.DIV: _divide,
    Ops.RECIPROCAL: lambda g, u: (_unless_zero(g, g * u * u * -1),),
    Ops.EXP2: lambda g, u: (g * u * LN_2,),
    Ops.LOG2: lambda g, u: (_unless_zero(g, g / u.src[0] * LOG2_E),),
    Ops.SIN: lambda g, u: (g * UOp(Ops.COS, u.src),),
    Ops.COS: lambda g, u: (g * UOp(Ops.SIN, u.src) * -1,),
    Ops.TANH: lambda g, u: (g * (u * u * -1 + 1),),
    Ops.ERF: lambda g, u: (g * exp(u.src[0] * u.src[0] * -1) * (2 / math.sqrt(math.pi)),),
    Ops.SQRT: _sqrt,
    Ops.POW: _pow,
    Ops.MOD: _float_modulo,
    Ops.MAX: _maximum,
    Ops.MAXIMUM: _maximum,
    Ops.WHERE: lambda g, u: (None, u.src[0].where(g, 0.0), u.src[0].where(0.0, g)),
    Ops.CAST: _cast,
    # movement: the gradient takes the way back
    Ops.RESHAPE: lambda g, u: (g.reshape(u.src[0].shape),),
    Ops.EXPAND: _expand,
    Ops.PERMUTE: _permute,
    Ops.SHRINK: _shrink,
    Ops.PAD: _pad,
    Ops.FLIP: lambda g, u: (g.flip(u.arg),),
    # structure
    Ops.STAGE: lambda g, u: (None if _is_detached(u) else g,),
    Ops.REDUCE: _reduce,
    Ops.GATHER: lambda g, u: (UOp(Ops.SCATTER, (u.src[1], g), u.src[0].shape[0]), None),
    Ops.SCATTER: lambda g, u: (None, UOp(Ops.GATHER, (g, u.src[0]))),
}
