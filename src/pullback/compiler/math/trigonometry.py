"""Trigonometric functions and their inverses, on vectors."""

from __future__ import annotations

import math
from typing import NamedTuple

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import MathBuilder

LIMIT = {"f4": 1e5, "f8": 1e9}  # larger arguments are rare; others are reduced by subtracting multiples of pi / 2
PARTS = {  # of pi / 2 as a sum; the first ones are positive, so that -0 is reduced to -0
    "f4": (1.57079625129699707031, 7.54978941586159635335e-08, 5.39030285815811905290e-15),
    "f8": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
HALF_PI = {"f4": (1.57079637050628662109375, -4.37113900018624283e-8), "f8": PARTS["f8"][:2]}


class ReducedAngle(NamedTuple):
    """An angle as n * pi / 2 + ``r``, with n in the low bits of ``bits``, and the sine and cosine of r.

    In float64 each is also given as a sum of two numbers, the second of which is small.
    """

    bits: Value
    r: Value
    sine: Value
    cosine: Value
    firsts: tuple[Value, Value] | None = None
    rests: tuple[Value, Value] | None = None


def _reduce_angle(b: MathBuilder, x: Value) -> ReducedAngle:
    n, bits = b.nearest(x, 2 / math.pi)
    first, second, third = PARTS[x.dtype]
    higher = b.exact_fma(n, -first, x)  # exact, as n has few bits
    if x.dtype == "f4":
        r = b.fma(n, -third, b.exact_fma(n, -second, higher))
        z = r * r
        sine = b.fma(z * r, b.fit_polynomial(fit.SIN_F4, z), r)
        return ReducedAngle(bits, r, sine, b.fma(z * z, b.fit_polynomial(fit.COS_F4, z), b.fma(z, -0.5, 1.0)))
    w = n * second
    r = higher - w
    rest = ((higher - r) - w) - b.fma(n, third, b.exact_fma(n, second, -w))
    z = r * r
    sine_rest = b.fma(z * r, b.fit_polynomial(fit.SIN_F8, z), rest)
    half = z * 0.5
    most = 1.0 - half
    less = b.fma(-r, rest, (1.0 - most) - half)
    cosine_rest = b.fma(z * z, b.fit_polynomial(fit.COS_F8, z), less)
    return ReducedAngle(bits, r, r + sine_rest, most + cosine_rest, (r, most), (sine_rest, cosine_rest))


def _sine_of_quarter(b: MathBuilder, x: Value, quarter: int, name: str) -> Value:
    with b.code.exactly():
        part: ReducedAngle = b.once("reduced angle", _reduce_angle, b.as_real(x))
        is_even = (part.bits & 1).compare("oeq", 0)
        turned = part.bits << (x.bits - 2)
        if quarter:
            y, turned = b.select(is_even, part.cosine, part.sine), turned + (1 << (x.bits - 2))
        else:
            y = b.select(is_even, b.copysign(part.sine, part.r), part.cosine)  # at -0 it is -0
        y = (y.as_bits() ^ (turned & -(1 << (x.bits - 1)))).as_floats()
        rare = b.absolute(x).compare("ogt", LIMIT[x.dtype])
        return b.rarely(rare, y, f"far_{name}", b.by_library(name), x)


def sin(b: MathBuilder, x: Value) -> Value:
    return _sine_of_quarter(b, x, 0, "sin")


def cos(b: MathBuilder, x: Value) -> Value:
    return _sine_of_quarter(b, x, 1, "cos")


def tan(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        part: ReducedAngle = b.once("reduced angle", _reduce_angle, b.as_real(x))
        odd = (part.bits & 1).compare("une", 0)
        top, bottom = b.select(odd, part.cosine, part.sine), b.select(odd, -part.sine, part.cosine)
        if part.firsts is None or part.rests is None:
            y = top / bottom
        else:  # with the rounding errors of the sums
            sine, cosine = ((f - v) + w for f, v, w in zip(part.firsts, part[2:4], part.rests, strict=True))
            over = 1.0 / bottom
            y = top * over
            lost = b.fma(-y, b.select(odd, -sine, cosine), b.select(odd, cosine, sine))
            y = b.fma(b.exact_fma(-y, bottom, top) + lost, over, y)
        rare = b.absolute(x).compare("ogt", LIMIT[x.dtype])
        y = b.select(x.compare("oeq", 0.0), x, y)
        return b.rarely(rare, y, "far_tan", b.by_library("tan"), x)


# ---- inverses


def _arctan_of_fraction(b: MathBuilder, t: Value) -> Value:
    """Return arctan of t from 0 to 1."""
    z = t * t
    return b.fma(t * z, b.polynomial(fit.ATAN_F4 if t.dtype == "f4" else fit.ATAN_F8, z), t)


def arctan(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        a = b.absolute(b.as_real(x))
        steep = a.compare("ogt", 1.0)
        y = _arctan_of_fraction(b, b.select(steep, 1.0 / a, a))
        first, second = HALF_PI[x.dtype]
        return b.copysign(b.select(steep, (first - y) + second, y), x)


def arctan2(b: MathBuilder, y: Value, x: Value) -> Value:
    """Return arctan2(y, x): arctan of the smaller over the larger argument, moved to its quadrant."""
    with b.code.exactly():
        y, x = b.as_reals(y, x)
        high, wide = b.absolute(y), b.absolute(x)
        steep = high.compare("ogt", wide)
        less, more = b.select(steep, wide, high), b.select(steep, high, wide)
        t = b.select(less.compare("oeq", more), 1.0, less / more)  # equal infinities have the quotient 1, too
        z = _arctan_of_fraction(b, b.select(less.compare("oeq", 0.0), 0.0, t))
        first, second = HALF_PI[x.dtype]
        z = b.select(steep, (first - z) + second, z)
        back = x.as_bits().compare("olt", 0)
        z = b.select(back, (2 * first - z) + 2 * second, z)
        return b.copysign(b.select(x.compare("uno", y), x + y, z), y)


def _reduce_arcsin(b: MathBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Return whether abs(x) > 1/2, s = sqrt((1 - abs(x)) / 2) there and abs(x) else, and arcsin(s) - s."""
    a = b.absolute(x)
    far = a.compare("ogt", 0.5)
    z = b.select(far, b.fma(a, -0.5, 0.5), a * a)
    s = b.select(far, b.sqrt(z), a)
    return far, s, s * z * b.fit_polynomial(fit.ASIN_F4 if x.dtype == "f4" else fit.ASIN_F8, z)


def arcsin(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        far, s, rest = _reduce_arcsin(b, b.as_real(x))
        first, second = HALF_PI[x.dtype]
        high = b.fma(s, -2.0, first)
        low = b.fma(s, -2.0, first - high)
        y = high - (b.fma(rest, 2.0, -second) - low)
        return b.copysign(b.select(far, y, s + rest), x)


def arccos(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        far, s, rest = _reduce_arcsin(b, b.as_real(x))
        first, second = HALF_PI[x.dtype]
        back = x.compare("olt", 0.0)
        signed, longer = b.copysign(s, x), b.copysign(rest, x)
        near = first - (signed - (second - longer))
        twice = s + s
        left = b.fma(s, -2.0, 2 * first) - b.fma(rest, 2.0, -2 * second)
        end = b.select(back, left, b.fma(rest, 2.0, twice))
        return b.select(far, end, near)
