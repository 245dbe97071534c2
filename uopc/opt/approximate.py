"""Transcendental functions of f32 as arithmetic, so that they run in vector lanes.

Each rule rewrites one operation into multiplications, additions and bit operations; at most 2 ulp
from the exact value over the whole range, whether or not the compiler fuses them, and right at
zeros, infinities, NaN and subnormals. SIN and COS of large numbers stay calls of the C library.
The polynomials are minimax fits (Lawson's iteration on Chebyshev nodes) to the functions named.

    EXP2(x)  →  (1 + f*p(f)) * 2**n        n the nearest integer to x, f = x - n
"""
from __future__ import annotations

import math

from uopc.dtype import dtypes
from uopc.rewrite import PatternMatcher, UPat
from uopc.uop import Ops, UOp

Coefficients = tuple[float, ...]  # lowest power first

EXP2_MINUS_1: Coefficients = (  # (2**f - 1) / f, |f| <= 1/2
    0.6931471824645996, 0.24022650718688965, 0.055503278970718384, 0.009618008509278297,
    0.0013400273164734244, 0.00015475194959435612)
LOG2_1P: Coefficients = (  # log2(1 + t) / t, sqrt(1/2) - 1 <= t <= sqrt(2) - 1
    1.4426950216293335, -0.7213473320007324, 0.4808982312679291, -0.3606966435909271,
    0.2885673940181732, -0.23961739242076874, 0.20460093021392822, -0.19106319546699524,
    0.18617330491542816, -0.10994654148817062)
ERF_SMALL: Coefficients = (  # erf(x)/x - 1 in x*x, |x| <= 0.9
    0.1283792257308960, -0.37612634897232056, 0.11283715069293976, -0.02686050906777382,
    0.005203858949244022, -0.0008175637922249734, 8.513099601259455e-05)
LOG2_ERFC: Coefficients = (  # log2(1 - erf(t)), 0.85 <= t <= 4
    0.0002820172521751374, -1.6297321319580078, -0.9132400751113892, -0.15691101551055908,
    0.03683765232563019, -0.006333646830171347, 0.0007271285285241902, -4.7912322770571336e-05,
    1.2787457990270923e-06)
TANH_SMALL: Coefficients = (  # tanh(x)/x - 1 in x*x, |x| <= 0.625
    0.0, -0.333333283662796, 0.13333183526992798, -0.05394469574093819, 0.021691819652915,
    -0.008159111253917217, 0.0021285053808242083)
SIN: Coefficients = (  # (sin(f)/f - 1) / f**2 in f*f, |f| <= pi/4 + 1/1000
    -0.16666655242443085, 0.008332187309861183, -0.0001951789454324171)
COS: Coefficients = (  # cos(f) in f*f, likewise
    1.0, -0.5, 0.04166664555668831, -0.0013887309469282627, 2.4432329155388288e-05)
HALF_PI = (1.57080078125, -4.410743713378906e-06, -4.3713953346014023e-08, 2.5633440682570896e-12)
"""pi/2 as a sum; the first three times n are exact in f32 for |n| <= 4096."""

ROUNDING = 12582912.0         # 1.5 * 2**23: adding it leaves the nearest integer in the low bits
ROUNDING_BITS = 0x4B400000
EXPONENT_BIAS, MANTISSA_BITS = 127, 23
SQRT_HALF_BITS = 0x3F3504F3
SMALLEST_NORMAL = 2.0 ** -126
SIGN, NO_SIGN = -2 ** 31, 2 ** 31 - 1
REDUCED = 6400.0              # beyond it sin and cos stay, as calls of the C library
LOG2_E = 1.4426950408889634


def polynomial(x: UOp, coefficients: Coefficients) -> UOp:
    """By Horner's rule."""
    result = x.lift(coefficients[-1])
    for c in coefficients[-2::-1]:
        result = x * result + c
    return result


def bits(x: UOp) -> UOp:
    return UOp(Ops.BITCAST, (x,), dtypes.i32)


def from_bits(x: UOp) -> UOp:
    return UOp(Ops.BITCAST, (x,), dtypes.f32)


def power_of_two(n: UOp) -> UOp:
    """2.0**n for an integer n from -126 to 127."""
    return from_bits((n + EXPONENT_BIAS).alu(Ops.SHL, MANTISSA_BITS))


def exp2(x: UOp) -> UOp:
    """2**n in two steps, so that neither overflows before its time, and a subnormal result is
    rounded once. What gives 0, as every masked score does, is not computed: where results are
    subnormal, processors are slow."""
    gives_0 = x < -150.0
    x = gives_0.where(0.0, x)
    mantissa, n = _exp2_parts((x.lift(129.0) < x).where(129.0, x))
    half = n.alu(Ops.SHR, 1)
    value = mantissa * power_of_two(half) * power_of_two(n + half * -1)
    return gives_0.where(0.0, value)


def small_exp2(x: UOp) -> UOp:
    """The same for x from -126 to 127, or NaN."""
    mantissa, n = _exp2_parts(x)
    return mantissa * power_of_two(n)


def _exp2_parts(x: UOp) -> tuple[UOp, UOp]:
    """(m, n) with 2**x = m * 2**n, where m is about 1."""
    shifted = x + ROUNDING
    f = x + (shifted + -ROUNDING) * -1.0
    return f * polynomial(f, EXP2_MINUS_1) + 1.0, bits(shifted) + -ROUNDING_BITS


def log2(x: UOp) -> UOp:
    """log2(m * 2**e) = e + log2(m), with m between sqrt(1/2) and sqrt(2)."""
    subnormal = x < SMALLEST_NORMAL
    normal = subnormal.where(x * 2.0 ** MANTISSA_BITS, x)
    e = (bits(normal) + -SQRT_HALF_BITS).alu(Ops.SHR, MANTISSA_BITS)
    m = from_bits(bits(normal) + e.alu(Ops.SHL, MANTISSA_BITS) * -1)
    t = m + -1.0
    exponent = e.cast(dtypes.f32) + subnormal.where(x.lift(-float(MANTISSA_BITS)), 0.0)
    value = t * polynomial(t, LOG2_1P) + exponent
    value = x.eq(0).where(-float("inf"), (x < 0).where(float("nan"), value))
    return (x < float("inf")).where(value, (x < 0).where(float("nan"), x))  # inf and NaN


def erf(x: UOp) -> UOp:
    """Of |x|, with the sign of x."""
    t = from_bits(bits(x).alu(Ops.AND, NO_SIGN))
    t = (t.lift(4.0) < t).where(4.0, t)
    large = small_exp2(polynomial(t, LOG2_ERFC)) * -1.0 + 1.0
    return _odd(x, (t < 0.9).where(t * polynomial(t * t, ERF_SMALL) + t, large))


def tanh(x: UOp) -> UOp:
    """Of |x|: 1 - 2 / (e**2|x| + 1), away from 0."""
    t = from_bits(bits(x).alu(Ops.AND, NO_SIGN))
    t = (t.lift(10.0) < t).where(10.0, t)
    large = (small_exp2(t * (2 * LOG2_E)) + 1.0).reciprocal() * -2.0 + 1.0
    return _odd(x, (t < 0.625).where(t * polynomial(t * t, TANH_SMALL) + t, large))


def _odd(x: UOp, value: UOp) -> UOp:
    """f(x) from f(|x|), of an odd function."""
    return from_bits(bits(value) ^ bits(x).alu(Ops.AND, SIGN))


def sin(x: UOp) -> UOp:
    """sin(-x) = -sin(x): the sign goes from bit to bit, so that -0.0 stays."""
    return periodic(x, Ops.SIN, 0, bits(x).alu(Ops.AND, SIGN))


def cos(x: UOp) -> UOp:
    """cos(x) = sin(|x| + pi/2)."""
    return periodic(x, Ops.COS, 1, UOp.const(0, dtypes.i32))


def periodic(x: UOp, op: Ops, quarters: int, sign: UOp) -> UOp:
    """sin(|x| + quarters*pi/2), its sign flipped by `sign`; beyond REDUCED `op` of x itself.

    With |x| = n*pi/2 + f, |f| <= pi/4, it is one of sin(f), cos(f), -sin(f) and -cos(f), by the
    quadrant n + quarters. W. Cody and W. Waite, "Software Manual for the Elementary Functions",
    1980: n*pi/2 is subtracted term by term, so that the first three products are exact. What the
    third difference loses by rounding is made good with the fourth.
    """
    size = from_bits(bits(x).alu(Ops.AND, NO_SIGN))
    shifted = size * (2 / math.pi) + ROUNDING
    n, quadrant = shifted + -ROUNDING, bits(shifted) + quarters
    first, second, third, fourth = [n * -term for term in HALF_PI]
    coarse = size + first + second
    f = coarse + third
    f = f + (coarse + f * -1.0 + third + fourth)
    square = f * f
    sine = f * (square * polynomial(square, SIN)) + f
    value = quadrant.alu(Ops.AND, 1).eq(1).where(polynomial(square, COS), sine)
    flip = quadrant.alu(Ops.AND, 2).alu(Ops.SHL, 30) ^ sign
    return (size < REDUCED).where(from_bits(bits(value) ^ flip), UOp(op, (x,)))


x = UPat.var("x", dtypes.f32)
approximation_rules = PatternMatcher([
    (UPat(Ops.EXP2, (x,)), exp2),
    (UPat(Ops.LOG2, (x,)), log2),
    (UPat(Ops.ERF, (x,)), erf),
    (UPat(Ops.TANH, (x,)), tanh),
    (UPat(Ops.SIN, (x,)), sin),
    (UPat(Ops.COS, (x,)), cos),
])


def approximate(sink: UOp) -> UOp:
    """SINK → SINK without these operations on f32, but for the SIN and COS that the rules put in:
    each node is rewritten once."""
    return UOp.wrap([sink], sink.toposort(), lambda u: approximation_rules.rewrite(u) or u)[0]
