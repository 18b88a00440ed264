"""Circular functions on lanes, and their inverses."""

from __future__ import annotations

import math
from typing import NamedTuple

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import Pieces

__all__ = ["Circular"]

LIMIT = {"f4": 1e5, "f8": 1e9}  # up to here an argument is reduced by the parts of pi / 2
PARTS = {  # of pi / 2; the first ones are positive, so that what is left of -0 is -0
    "f4": (1.57079625129699707031, 7.54978941586159635335e-08, 5.39030285815811905290e-15),
    "f8": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
HALF_PI = {"f4": (1.57079637050628662109375, -4.37113900018624283e-8), "f8": PARTS["f8"][:2]}


class Turned(NamedTuple):
    """Sine and cosine of what is left of an angle after whole quarters; ``bits`` end in their number.

    In f8 each is what is first and a small rest.
    """

    bits: Value
    r: Value
    sine: Value
    cosine: Value
    firsts: tuple[Value, Value] | None = None
    rests: tuple[Value, Value] | None = None


class Circular(Pieces):
    def _turned(self, x: Value) -> Turned:
        n, bits = self.nearest(x, 2 / math.pi)
        first, second, third = PARTS[x.dtype]
        higher = self.fma(n, -first, x)  # exact, as n has few bits
        if x.dtype == "f4":
            r = self.fma(n, -third, self.fma(n, -second, higher))
            z = r * r
            sine = self.fma(z * r, self.fitted(fit.SIN_F4, z), r)
            return Turned(bits, r, sine, self.fma(z * z, self.fitted(fit.COS_F4, z), self.fma(z, -0.5, 1.0)))
        w = n * second
        r = higher - w
        rest = ((higher - r) - w) - self.fma(n, third, self.fma(n, second, -w))
        z = r * r
        sine_rest = self.fma(z * r, self.fitted(fit.SIN_F8, z), rest)
        half = z * 0.5
        most = 1.0 - half
        less = self.fma(-r, rest, (1.0 - most) - half)
        cosine_rest = self.fma(z * z, self.fitted(fit.COS_F8, z), less)
        return Turned(bits, r, r + sine_rest, most + cosine_rest, (r, most), (sine_rest, cosine_rest))

    def _circle(self, x: Value, quarter: int, name: str) -> Value:
        with self.code.exactly():
            part: Turned = self.once("turned", self._turned, self._real(x))
            q = part.bits + quarter if quarter else part.bits
            sine = part.sine if quarter else self.copysign(part.sine, part.r)  # of -0 it is -0
            y = self.select((q & 1).compare("une", 0), part.cosine, sine)
            y = (y.as_bits() ^ ((q & 2) << (x.bits - 2))).as_floats()
            rare = self.absolute(x).compare("ogt", LIMIT[x.dtype])
            return self.rarely(rare, y, f"far_{name}", self.by_library(name), x)

    def sin(self, x: Value) -> Value:
        return self._circle(x, 0, "sin")

    def cos(self, x: Value) -> Value:
        return self._circle(x, 1, "cos")

    def tan(self, x: Value) -> Value:
        with self.code.exactly():
            part: Turned = self.once("turned", self._turned, self._real(x))
            odd = (part.bits & 1).compare("une", 0)
            top, bottom = self.select(odd, part.cosine, part.sine), self.select(odd, -part.sine, part.cosine)
            if part.firsts is None or part.rests is None:
                y = top / bottom
            else:  # with what the sums have lost
                sine, cosine = ((f - v) + w for f, v, w in zip(part.firsts, part[2:4], part.rests, strict=True))
                over = 1.0 / bottom
                y = top * over
                lost = self.fma(-y, self.select(odd, -sine, cosine), self.select(odd, cosine, sine))
                y = self.fma(self.fma(-y, bottom, top) + lost, over, y)
            rare = self.absolute(x).compare("ogt", LIMIT[x.dtype])
            y = self.select(x.compare("oeq", 0.0), x, y)
            return self.rarely(rare, y, "far_tan", self.by_library("tan"), x)

    # ---- inverses

    def _arctan_of_fraction(self, t: Value) -> Value:
        """From 0 to 1."""
        z = t * t
        return self.fma(t * z, self.fitted(fit.ATAN_F4 if t.dtype == "f4" else fit.ATAN_F8, z), t)

    def arctan(self, x: Value) -> Value:
        with self.code.exactly():
            a = self.absolute(self._real(x))
            steep = a.compare("ogt", 1.0)
            y = self._arctan_of_fraction(self.select(steep, 1.0 / a, a))
            first, second = HALF_PI[x.dtype]
            return self.copysign(self.select(steep, (first - y) + second, y), x)

    def arctan2(self, y: Value, x: Value) -> Value:
        """By the smaller over the larger, which then is turned to where it belongs."""
        with self.code.exactly():
            y, x = self._reals(y, x)
            b, a = self.absolute(y), self.absolute(x)
            steep = b.compare("ogt", a)
            less, more = self.select(steep, a, b), self.select(steep, b, a)
            t = self.select(less.compare("oeq", more), 1.0, less / more)  # of two infinities too
            z = self._arctan_of_fraction(self.select(less.compare("oeq", 0.0), 0.0, t))
            first, second = HALF_PI[x.dtype]
            z = self.select(steep, (first - z) + second, z)
            back = x.as_bits().compare("olt", 0)
            z = self.select(back, (2 * first - z) + 2 * second, z)
            return self.copysign(self.select(x.compare("uno", y), x + y, z), y)

    def _arcsin_parts(self, x: Value) -> tuple[Value, Value, Value]:
        """Whether x is beyond a half, then its size or there the sine of half the angle to 1, and what its arc adds."""
        a = self.absolute(x)
        far = a.compare("ogt", 0.5)
        z = self.select(far, self.fma(a, -0.5, 0.5), a * a)
        s = self.select(far, self.sqrt(z), a)
        return far, s, s * z * self.fitted(fit.ASIN_F4 if x.dtype == "f4" else fit.ASIN_F8, z)

    def arcsin(self, x: Value) -> Value:
        with self.code.exactly():
            far, s, rest = self._arcsin_parts(self._real(x))
            first, second = HALF_PI[x.dtype]
            high = self.fma(s, -2.0, first)
            low = self.fma(s, -2.0, first - high)
            y = high - (self.fma(rest, 2.0, -second) - low)
            return self.copysign(self.select(far, y, s + rest), x)

    def arccos(self, x: Value) -> Value:
        with self.code.exactly():
            far, s, rest = self._arcsin_parts(self._real(x))
            first, second = HALF_PI[x.dtype]
            back = x.compare("olt", 0.0)
            signed, longer = self.copysign(s, x), self.copysign(rest, x)
            near = first - (signed - (second - longer))
            twice = s + s
            left = self.fma(s, -2.0, 2 * first) - self.fma(rest, 2.0, -2 * second)
            end = self.select(back, left, self.fma(rest, 2.0, twice))
            return self.select(far, end, near)
