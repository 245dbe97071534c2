"""Loops → C. In: a SINK from `rangeify.lower`. Out: the text of one function.

    for ridx0 < 4: STORE(INDEX(data1, ridx0), LOAD(INDEX(data0, ridx0)) * 2)
    →  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
         float val1 = data0[ridx0];
         data1[ridx0] = (val1*2.0f);
       }

Every load and every read of an accumulator gets a name `valN`, an ALU value used more than once a
name `aluN`, one counter for both. A kernel whose outermost loops may be shared out to threads takes
`first` and `last` and does only those of its steps, which count through its loops one after the
other (a statement outside of them is one step). Whatever C leaves undefined (dividing by zero,
casting a float that is out of range) is spelled out in small helper functions, printed only where
they are used.
"""
from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from uopc.bounds import bounds
from uopc.dtype import DType, dtypes
from uopc.linearize import Step, linearize, loops, statements
from uopc.runtime import PART, SCRATCH
from uopc.uop import THREAD, VECTOR, Ops, UOp, kind

FUNCTIONS = {Ops.EXP2: "exp2", Ops.LOG2: "log2", Ops.SIN: "sin", Ops.COS: "cos", Ops.TANH: "tanh",
             Ops.ERF: "erf", Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.POW: "pow"}
SYMBOLS = {Ops.ADD: "+", Ops.MUL: "*", Ops.DIV: "/", Ops.CMPLT: "<", Ops.CMPLE: "<=",
           Ops.CMPEQ: "==", Ops.CMPNE: "!=", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^",
           Ops.SHL: "<<", Ops.SHR: ">>"}
FROM_MATH_H = re.compile(r"\b(?:INFINITY|NAN|(?:" + "|".join(
    [*FUNCTIONS.values(), "fmod", "floor", "copysign"]) + r")f?\()")
HELPER_NAME = re.compile(r"\b(?:floordiv|floormod|saturate|bits)_\w+")


class Function(NamedTuple):
    """The lines of a C function, and what must stand before them."""

    lines: list[str]
    typedefs: list[str]
    helpers: dict[str, str]
    name: str
    slots: list[int]  # of the buffers that it takes, in order
    steps: int        # 0 where its work cannot be cut into parts

    def renamed(self, name: str) -> Function:
        first = self.lines[0].replace(f"void {self.name}(", f"void {name}(")
        return self._replace(lines=[first, *self.lines[1:]], name=name)


class Call(NamedTuple):
    """A function that is called with the buffers of these names."""

    function: Function
    arguments: Sequence[str]


def render_c(sink: UOp, name: str, may_alias: Set[int] = frozenset()) -> str:
    """C source of `void name(...)`: one pointer per BUFFER in use, ordered by slot."""
    function = render_function(sink, name, may_alias)
    return _source([function], [*_steps(function), *function.lines])


def render_shared(name: str, params: Sequence[str], local: Sequence[str], size: int,
                  calls: Sequence[Call]) -> str:
    """C source of a function that takes each of its steps through all `calls`, one after the other.
    `params` are its parameters, without the last ones; `local` the declarations of what lies in the
    `size` bytes of SCRATCH, memory that each thread has of its own."""
    functions = list({c.function.name: c.function for c in calls}.values())
    lines = [f"static {line}" if line.startswith("void ") else line
             for f in functions for line in (*f.lines, "")]
    lines += _steps(calls[0].function._replace(name=name))
    lines += [f"enum {{{name}_scratch = {size}}};"] if size else []
    lines.append(f"void {name}({', '.join([*params, *[SCRATCH] * bool(size), PART])}) {{")
    lines += [f"  {declaration}" for declaration in local]
    lines.append("  for (long step = first; step < last; step++) {")
    lines += [f"    {c.function.name}({', '.join([*c.arguments, 'step', 'step+1'])});"
              for c in calls]
    return _source(functions, [*lines, "  }", "}"])


def parameter(dtype: DType, name: str, may_alias: bool) -> str:
    return f"{dtype.c}* {name}" if may_alias else f"{dtype.c}* restrict {name}"


def render_function(sink: UOp, name: str, may_alias: Set[int] = frozenset()) -> Function:
    """`may_alias` are the slots of buffers that may lie in the same place: an element is written
    after it was read for the last time."""
    from uopc.render_vector import VectorBody  # which builds on this module

    order = sink.toposort()
    buffers = sorted({u for u in order if u.op is Ops.BUFFER}, key=lambda u: u.arg.slot)
    params = [parameter(u.dtype, f"data{u.arg.slot}", u.arg.slot in may_alias) for u in buffers]
    vectors = any(u.op is Ops.RANGE and kind(u) == VECTOR for u in order)
    body = (VectorBody if vectors else Body)(sink)
    steps = sum(n for _, n in body.shares.values())
    params += [PART] if steps else []
    lines = [f"void {name}({', '.join(params)}) {{", *body.render(), "}"]
    return Function(lines, body.typedefs(lines), body.helpers, name,
                    [u.arg.slot for u in buffers], steps)


def _steps(function: Function) -> list[str]:
    return [f"enum {{{function.name}_steps = {function.steps}}};"] if function.steps else []


def _source(functions: Sequence[Function], lines: Sequence[str]) -> str:
    """`lines` and all that the functions need before them."""
    typedefs = list(dict.fromkeys(t for f in functions for t in f.typedefs))
    helpers = {name: text for f in functions for name, text in f.helpers.items()}
    prelude = [*typedefs, *[""] * bool(typedefs), *helpers.values()]
    used = sorted(set(HELPER_NAME.findall("\n".join([*prelude, *lines]))))
    text = "\n".join([*map(_helper, used), *prelude, *lines, ""])
    return "#include <math.h>\n\n" + text if FROM_MATH_H.search(text) else text


def _shares(sink: UOp) -> dict[UOp, tuple[int, int]]:
    """Where no loop is for threads: nothing. Else for each outermost loop that stores, and for each
    STORE outside of loops: (the steps before it, its own)."""
    parts, todo = [], list(reversed(sink.src))
    while todo:
        u = todo.pop()
        if u.op is Ops.GROUP:
            todo += reversed(u.src)
        elif u.op is Ops.END and not loops(u):  # over lanes alone
            todo.append(u.src[0])
        else:
            parts.append(loops(u)[0] if u.op is Ops.END else u)
    if not any(kind(u) == THREAD for u in parts if u.op is Ops.RANGE):
        return {}
    sizes = [u.arg[1] if u.op is Ops.RANGE and kind(u) == THREAD else 1 for u in parts]
    return dict(zip(parts, zip(itertools.accumulate([0, *sizes[:-1]]), sizes, strict=True),
                    strict=True))


class Body:
    """Renders the statements; holds the names given so far."""

    def __init__(self, sink: UOp) -> None:
        self.sink = sink
        self.lines = statements(sink)
        self.shares = _shares(sink)
        self.names: dict[UOp, str] = {}
        self.count = 0
        self.helpers: dict[str, str] = {}  # functions that the text needs, by name

    def typedefs(self, function: list[str]) -> list[str]:
        """The types that the text of the function needs."""
        return []

    def render(self) -> list[str]:
        out: list[str] = []
        indent = "  "
        steps = linearize(self.sink)
        for k, (step, node) in enumerate(steps):
            if step == "close":
                indent = indent[2:]
                out.append(f"{indent}}}")
            elif step == "open":
                r, c_type = f"ridx{node.arg[0]}", node.dtype.c
                self.names[node] = r
                only, start, stop = self.part(node)
                out += [f"{indent}{line}" for line in self.before_loop(steps[k + 1:])]
                out.append(f"{indent}{only}for ({c_type} {r} = {start}; {r} < {stop}; {r}++) {{")
                indent += "  "
            else:
                out.append(f"{indent}{self.part(node)[0]}{self.statement(node)}")
        return out

    def before_loop(self, steps: Sequence[Step]) -> list[str]:
        """What to tell the compiler of a loop; `steps` begin with its body."""
        return []

    def part(self, node: UOp) -> tuple[str, str, str]:
        """What of a loop (or statement) belongs to this call: a condition, from where, to where."""
        size = str(node.arg[1]) if node.op is Ops.RANGE else ""
        if node not in self.shares:
            return "", "0", size
        at, steps = self.shares[node]
        if node.op is not Ops.RANGE or kind(node) != THREAD:
            return f"if (first<={at} && {at}<last) ", "0", size
        if len(self.shares) == 1:
            return "", "first", "last"
        return "", f"(first>{at})?first-{at}:0", f"((last<{at + steps})?last-{at}:{size})"

    def c_type(self, u: UOp) -> str:
        return u.dtype.c

    def statement(self, u: UOp) -> str:
        if u.op is Ops.ACC:
            self.names[u] = f"acc{u.arg[0]}"
            return f"{self.c_type(u)} acc{u.arg[0]};"
        if u.op is Ops.STORE:
            return self.store(u)
        value = self.load(u) if u.op is Ops.LOAD else self.alu(u)
        self.count += 1
        self.names[u] = f"{'val' if u.op is Ops.LOAD else 'alu'}{self.count}"
        return f"{self.c_type(u)} {self.names[u]} = {value};"

    def store(self, u: UOp) -> str:
        return f"{self.text(u.src[0])} = {self.text(u.src[1])};"

    def text(self, u: UOp) -> str:
        """`u` as an expression. `linearize.MAX_NESTING` bounds the recursion."""
        if u in self.names:
            return self.names[u]
        if u.op is Ops.CONST:
            return render_const(u)
        if u.op is Ops.BUFFER:
            return f"data{u.arg.slot}"
        if u.op is Ops.INDEX:
            return f"{self.text(u.src[0])}[{self.text(u.src[1])}]"
        return self.alu(u)

    def load(self, u: UOp) -> str:
        place = u.src[0]
        if place.op is Ops.INDEX and len(place.src) == 3:
            gate, zero = self.text(place.src[2]), render_const(UOp.const(0, u.dtype))
            return f"({gate}?{self.text(place)}:{zero})"
        return self.text(place)

    def alu(self, u: UOp) -> str:
        args = [self.text(s) for s in u.src]
        value = self.plain_alu(u, args)
        narrow = u.dtype.size < 4 and u.op in (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.SHL)
        return f"(({u.dtype.c}){value})" if narrow else value  # C computes these as int

    def plain_alu(self, u: UOp, args: list[str]) -> str:
        if u.op is Ops.CAST:
            source = u.src[0].dtype
            if source.is_float and u.dtype.is_int:
                return f"saturate_{u.dtype.name}_{source.name}({args[0]})"
            return f"(({u.dtype.c}){args[0]})"
        if u.op is Ops.BITCAST:
            return f"bits_{u.dtype.name}_{u.src[0].dtype.name}({args[0]})"
        if u.op in SYMBOLS:
            return f"({args[0]}{SYMBOLS[u.op]}{args[1]})"
        if u.op in FUNCTIONS:
            suffix = "f" if u.dtype is dtypes.f32 else ""
            return f"{FUNCTIONS[u.op]}{suffix}({','.join(args)})"
        if u.op in (Ops.IDIV, Ops.MOD):
            return self.division(u, *args)
        if u.op is Ops.WHERE:
            return f"({args[0]}?{args[1]}:{args[2]})"
        if u.op is Ops.RECIPROCAL:
            return f"({render_const(UOp.const(1, u.dtype))}/{args[0]})"
        if u.op is Ops.MAX:
            return "(({0}>{1})?{0}:{1})".format(*args)
        if u.op is Ops.MAXIMUM:
            return "((({0}>{1})|({0}!={0}))?{0}:{1})".format(*args)
        raise ValueError(f"{u!r} has no form in C")

    def division(self, u: UOp, a: str, b: str) -> str:
        """C's own operator where it agrees with Python's rule, else a helper function."""
        symbol, helper = ("/", "floordiv") if u.op is Ops.IDIV else ("%", "floormod")
        if not u.dtype.is_float and bounds(u.src[0])[0] >= 0 and bounds(u.src[1])[0] > 0:
            return f"({a}{symbol}{b})"
        return f"{helper}_{u.dtype.name}({a},{b})"


def render_const(u: UOp) -> str:
    value, dtype = u.arg
    if dtype.is_float:
        suffix = "f" if dtype is dtypes.f32 else ""
        if math.isnan(value):
            return "NAN"
        value = _decided(value) if dtype is dtypes.f32 else value
        return repr(value) + suffix if math.isfinite(value) else \
            "INFINITY" if value > 0 else "-INFINITY"
    suffix = {dtypes.u32: "u", dtypes.i64: "L"}.get(dtype, "")
    if dtype.min < 0 and value == dtype.min:  # in C -2147483648 is -(2147483648), a long
        return f"({value + 1}{suffix}-1{suffix})"
    return f"{int(value)}{suffix}"


def _decided(value: float) -> float:
    """`value`, or the float next to it if it lies exactly between two: its shortest decimal form
    may lie on the other side of the middle, so C would round it the other way than NumPy."""
    with np.errstate(all="ignore"):
        nearest = np.float32(value)
        beyond = np.float32(math.copysign(math.inf, value - float(nearest)))
        middle = (float(nearest) + float(np.nextafter(nearest, beyond))) / 2
    return float(nearest) if middle == value or not np.isfinite(nearest) else value


def _helper(name: str) -> str:
    """The C of a helper function, from its name."""
    kind, *types = name.split("_")
    known: dict[str, DType] = vars(dtypes)
    dtype = known[types[0]]
    if kind == "bits":
        return BITS.format(name=name, out=dtype.c, x=known[types[1]].c)
    if kind == "saturate":
        return SATURATE.format(name=name, out=dtype.c, x=known[types[1]].c,
                               low=render_const(UOp.const(dtype.min, dtype)),
                               high=render_const(UOp.const(dtype.max, dtype)),
                               above=repr(float(dtype.max) + 1), below=repr(float(dtype.min)))
    if dtype.is_float:
        suffix = "f" if dtype is dtypes.f32 else ""
        return FLOAT_DIVISION[kind].format(name=name, t=dtype.c, f=suffix)
    return INT_DIVISION[kind if dtype.min < 0 else kind + "_unsigned"].format(name=name, t=dtype.c)


BITS = """static inline {out} {name}({x} x) {{
  {out} y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}}
"""
SATURATE = """static inline {out} {name}({x} x) {{
  return (x != x) ? 0 : (x < {below}) ? {low} : (x >= {above}) ? {high} : ({out})x;
}}
"""
INT_DIVISION = {
    "floordiv": """static inline {t} {name}({t} a, {t} b) {{
  if (b == 0) return 0;
  if (b == -1) return 0-a;
  return a/b - ((a%b != 0) & ((a%b < 0) != (b < 0)));
}}
""",
    "floormod": """static inline {t} {name}({t} a, {t} b) {{
  if (b == 0 || b == -1) return 0;
  return a%b + (((a%b != 0) & ((a%b < 0) != (b < 0))) ? b : 0);
}}
""",
    "floordiv_unsigned": "static inline {t} {name}({t} a, {t} b) {{ return b ? a/b : 0; }}\n",
    "floormod_unsigned": "static inline {t} {name}({t} a, {t} b) {{ return b ? a%b : 0; }}\n",
}
FLOAT_DIVISION = {  # as Python and NumPy define them
    "floordiv": """static inline {t} {name}({t} a, {t} b) {{
  if (b == 0) return a/b;
  {t} rest = fmod{f}(a, b);
  {t} quotient = (a-rest)/b - ((rest != 0) & ((rest < 0) != (b < 0)));
  {t} whole = floor{f}(quotient);
  return quotient == 0 ? copysign{f}(0, a/b) : whole + (quotient-whole > ({t})0.5);
}}
""",
    "floormod": """static inline {t} {name}({t} a, {t} b) {{
  {t} rest = fmod{f}(a, b);
  if (rest == 0) return copysign{f}(rest, b);
  return rest + (((rest < 0) != (b < 0)) ? b : 0);
}}
""",
}
