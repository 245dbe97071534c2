"""C for loops with vector lanes, in GCC's vector extension, which clang has too.

A node that depends on a RANGE marked VECTOR is a vector; the range itself is no loop. A bool vector
is a mask of integers, -1 or 0, as wide as the other elements. Scalars combine with vectors as they
are, save where C wants both sides equal.

    data0[base + lane] * 2   →   (*(f32x8u*)(data0+base)*2.0f)
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from uopc.dtype import dtypes
from uopc.linearize import Step, contiguous_start
from uopc.opt.target import target
from uopc.render_c import FUNCTIONS, Body
from uopc.simplify import INEXACT
from uopc.uop import VECTOR, Ops, UOp, kind

TYPE_NAME = re.compile(r"\b([a-z]\d+)x(\d+)(u?)\b")
ON_MASKS = {Ops.ADD: "|", Ops.MAX: "|", Ops.MAXIMUM: "|", Ops.MUL: "&"}
UNROLLED = 4  # accumulators from which on a loop is taken to be one over a tile
SWAPPED = {Ops.CMPLT: "({1}<{0})", Ops.CMPLE: "({1}<={0})"}  # false < true, but 0 > -1


class VectorBody(Body):
    """As Body; `lane_of` tells for each node its VECTOR range, None for a scalar."""

    def __init__(self, sink: UOp) -> None:
        super().__init__(sink)
        self.lane_of: dict[UOp, UOp | None] = {}
        for u in sink.toposort():
            lanes = u if u.op is Ops.RANGE and kind(u) == VECTOR else None
            if u.op not in (Ops.END, Ops.REDUCE, Ops.GROUP, Ops.SINK, Ops.RANGE):
                lanes = next((r for s in u.src if (r := self.lane_of[s]) is not None), None)
            self.lane_of[u] = lanes

    def before_loop(self, steps: Sequence[Step]) -> list[str]:
        """An innermost loop over a tile of accumulators: what a step costs beside its
        multiplications shall count a few times less."""
        body = list(itertools.takewhile(lambda s: s.kind == "do", steps))
        updates = sum(s.node.op is Ops.STORE and s.node.src[0].op is Ops.ACC for s in body)
        innermost = steps[len(body)].kind == "close"
        return ["#pragma GCC unroll 4"] if innermost and updates >= UNROLLED else []

    # *** types ***

    def c_type(self, u: UOp) -> str:
        lanes = self.lane_of[u]
        if lanes is None:
            return u.dtype.c
        return self.mask_type(u) if u.dtype is dtypes.bool else f"{u.dtype.name}x{lanes.arg[3]}"

    def mask_type(self, like: UOp) -> str:
        lanes = self.lane_of[like].arg[3]
        return f"i{8 * target().vector_bytes // lanes}x{lanes}"

    def vector(self, u: UOp, like: UOp) -> str:
        """`u` as a vector with the lanes of `like`, whether or not it is one."""
        if self.lane_of[u] is not None:
            return self.text(u)
        lanes = self.lane_of[like].arg[3]
        if u.dtype is dtypes.bool:
            return f"({self.mask(u)}+({self.mask_type(like)}){{}})"
        sign = "-" if u.dtype.is_float else "+"  # x - 0.0 keeps a -0.0, x + 0.0 does not
        return f"({self.text(u)}{sign}({u.dtype.name}x{lanes}){{}})"

    def mask(self, u: UOp) -> str:
        """A bool as 0 or -1."""
        if self.lane_of[u] is not None:
            return self.text(u)
        return str(-int(u.arg.value)) if u.op is Ops.CONST else f"(-(int){self.text(u)})"

    def typedefs(self, function: list[str]) -> list[str]:
        names = sorted(set(TYPE_NAME.findall("\n".join([*self.helpers.values(), *function]))))
        typedefs = []
        for name, lanes, unaligned in names:
            dtype = getattr(dtypes, name)
            loose = f", aligned({dtype.size}), may_alias" if unaligned else ""
            typedefs.append(f"typedef {dtype.c} {name}x{lanes}{unaligned} __attribute__(("
                            f"vector_size({dtype.size * int(lanes)}){loose}));")
        return typedefs

    # *** memory ***

    def place(self, u: UOp) -> str:
        """The start of a contiguous access as a pointer."""
        start = contiguous_start(u)
        if start is None:
            raise ValueError(f"{u!r} is not contiguous along its lanes")
        return f"({self.text(u.src[0])}+{self.text(start)})"

    def load(self, u: UOp) -> str:
        index = u.src[0]
        if self.lane_of[u] is None or index.op is Ops.ACC:
            return super().load(u)
        vector, lanes = self.c_type(u), self.lane_of[u].arg[3]
        if u.dtype is dtypes.bool:
            bytes_ = f"*(u8x{lanes}u*){self.place(index)}"
            value = f"(__builtin_convertvector({bytes_}, {vector})!=0)"
        else:
            value = f"*({vector}u*){self.place(index)}"
        if len(index.src) == 3:  # ?: wants one type on both sides, the unaligned one is another
            return f"({self.text(index.src[2])}?({vector}){value}:({vector}){{}})"
        return value

    def store(self, u: UOp) -> str:
        index, value = u.src[:2]
        lanes = self.lane_of[index]
        if lanes is None:
            return super().store(u)
        text = self.vector(value, index)
        if index.op is Ops.ACC:
            return f"{self.text(index)} = {text};"
        size, full = lanes.arg[1], lanes.arg[3]
        if size < full:
            vector = self.mask_type(index) if u.src[1].dtype is dtypes.bool \
                else f"{value.dtype.name}x{full}"
            truth = "!=0" if value.dtype is dtypes.bool else ""
            return (f"{{ {vector} part = {text}; for (int k = 0; k < {size}; k++) "
                    f"{self.place(index)}[k] = part[k]{truth}; }}")
        if value.dtype is dtypes.bool:
            return (f"*(u8x{full}u*){self.place(index)} = "
                    f"__builtin_convertvector(-{text}, u8x{full});")
        return f"*({value.dtype.name}x{full}u*){self.place(index)} = {text};"

    # *** values ***

    def text(self, u: UOp) -> str:
        if self.lane_of[u] is u:
            numbers = ",".join(map(str, range(u.arg[3])))
            return f"(({u.dtype.name}x{u.arg[3]}){{{numbers}}})"
        return super().text(u)

    def alu(self, u: UOp) -> str:
        if u.op is Ops.REDUCE:
            return self.across_lanes(u)
        if self.lane_of[u] is None:
            return super().alu(u)
        if u.op is Ops.CAST:
            return self.cast(u)
        if u.op is Ops.BITCAST:
            return f"(({self.c_type(u)}){self.text(u.src[0])})"
        if u.op is Ops.WHERE:
            return self.where(u)
        masks = all(s.dtype is dtypes.bool for s in u.src)
        if masks and (u.op in ON_MASKS or u.op in (Ops.AND, Ops.OR, Ops.XOR)):
            args = [self.mask(s) for s in u.src]
            symbol = ON_MASKS.get(u.op) or {Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^"}[u.op]
            return f"({args[0]}{symbol}{args[1]})"
        if masks and u.op in (Ops.CMPEQ, Ops.CMPNE):
            return self.plain_alu(u, [self.mask(s) for s in u.src])
        if masks and u.op in SWAPPED:
            return SWAPPED[u.op].format(*(self.vector(s, u) for s in u.src))
        if u.op in (Ops.MAX, Ops.MAXIMUM):
            a, b = (self.vector(s, u) for s in u.src)
            chosen = f"({a}>{b})" if u.op is Ops.MAX else f"(({a}>{b})|({a}!={a}))"
            return f"{self.select(u)}({chosen}, {a}, {b})"
        if u.op in FUNCTIONS or u.op in (Ops.IDIV, Ops.MOD):
            return self.lanewise(u)
        return self.plain_alu(u, [self.text(s) for s in u.src])

    def cast(self, u: UOp) -> str:
        (source,) = u.src
        text, vector = self.text(source), self.c_type(u)
        if u.dtype is dtypes.bool:
            return f"({text}!=0)"
        if source.dtype is dtypes.bool:
            return f"__builtin_convertvector(-{text}, {vector})"
        if source.dtype.is_float and u.dtype.is_int:
            return self.lanewise(u)
        return f"__builtin_convertvector({text}, {vector})"

    def where(self, u: UOp) -> str:
        condition, a, b = u.src
        if u.dtype is dtypes.bool:
            c, x, y = (self.vector(s, u) for s in u.src)
            return f"(({c}&{x})|(~{c}&{y}))"
        if self.lane_of[condition] is None:
            return f"({self.text(condition)}?{self.vector(a, u)}:{self.vector(b, u)})"
        mask = self.text(condition)
        for call, other, wanted in ((a, b, mask), (b, a, f"~{mask}")):
            if call.op in INEXACT and call not in self.lines and self.lane_of[call] is not None:
                return self.lanewise_where(call, wanted, other)
        return f"{self.select(u)}({mask}, {self.vector(a, u)}, {self.vector(b, u)})"

    def select(self, u: UOp) -> str:
        """The name of the function that chooses lanes of u's type by a mask."""
        vector, mask = self.c_type(u), self.mask_type(u)
        name = f"select_{vector}"
        self.helpers[name] = (
            f"static inline {vector} {name}({mask} c, {vector} a, {vector} b) {{\n"
            f"  return ({vector})((c & ({mask})a) | (~c & ({mask})b));\n}}\n")
        return name

    def lanewise(self, u: UOp) -> str:
        """A call of a function that computes lane by lane what has no vector form in C."""
        name, params, args, value = self.one_lane(u)
        result, lanes = self.c_type(u), self.lane_of[u].arg[3]
        self.helpers[name] = (
            f"static inline {result} {name}({params}) {{\n  {result} y;\n"
            f"  for (int k = 0; k < {lanes}; k++) y[k] = {value};\n"
            "  return y;\n}\n")
        return f"{name}({args})"

    def lanewise_where(self, u: UOp, mask: str, other: UOp) -> str:
        """The same in the lanes of a mask alone, where few may be; the others are those of `other`.
        What calls the C library stands in a function of its own, so that the registers of the loop
        around need not be saved."""
        name, params, args, value = self.one_lane(u)
        result, lanes, of_mask = self.c_type(u), self.lane_of[u].arg[3], self.mask_type(u)
        numbers = [f"x{k}" for k in range(len(u.src))]
        self.helpers[f"{name}_where"] = (
            f"static __attribute__((noinline, cold)) {result} {name}_some({of_mask} c, {result} y, "
            f"{params}) {{\n"
            f"  for (int k = 0; k < {lanes}; k++) if (c[k]) y[k] = {value};\n"
            "  return y;\n}\n"
            f"static inline {result} {name}_where({of_mask} c, {result} y, {params}) {{\n"
            f"  int any = 0;\n  for (int k = 0; k < {lanes}; k++) any |= c[k];\n"
            f"  return any ? {name}_some(c, y, {', '.join(numbers)}) : y;\n}}\n")
        return f"{name}_where({mask}, {self.vector(other, u)}, {args})"

    def one_lane(self, u: UOp) -> tuple[str, str, str, str]:
        """Of a function that computes `u` lane by lane: name, parameters, arguments, lane k."""
        vectors = [self.vector(s, u) for s in u.src]
        types = [f"{s.dtype.name}x{self.lane_of[u].arg[3]}" for s in u.src]
        scalars = [UOp(Ops.ACC, (), (f"_{k}", s.dtype)) for k, s in enumerate(u.src)]
        one = Body.__new__(Body)
        one.names = {s: f"x{k}[k]" for k, s in enumerate(scalars)}
        value = one.plain_alu(u.replace(src=tuple(scalars)), list(one.names.values()))
        name = f"{u.op.name.lower()}_{'_'.join([*types, self.c_type(u)])}"
        params = ", ".join(f"{t} x{k}" for k, t in enumerate(types))
        return name, params, ", ".join(vectors), value

    def across_lanes(self, u: UOp) -> str:
        """The lanes of a vector, or the first ones, combined by halves."""
        value, lanes = u.src
        vector, size = f"{u.dtype.name}x{lanes.arg[3]}", lanes.arg[1]
        node = UOp(u.arg, tuple(UOp(Ops.ACC, (), (f"_{k}", u.dtype)) for k in range(2)))
        one = Body.__new__(Body)
        parts, lines = [f"x[{k}]" for k in range(size)], []
        while len(parts) > 1:
            half = (len(parts) + 1) // 2
            for k in range(half, len(parts)):
                combined = one.plain_alu(node, [parts[k - half], parts[k]])
                parts[k - half] = f"y{len(lines)}"
                lines.append(f"  {u.dtype.c} {parts[k - half]} = {combined};\n")
            parts = parts[:half]
        name = f"across_{u.arg.name.lower()}_{vector}_{size}"
        self.helpers[name] = (f"static inline {u.dtype.c} {name}({vector} x) {{\n"
                              f"{''.join(lines)}  return {parts[0]};\n}}\n")
        return f"{name}({self.vector(value, lanes)})"
