"""Exponentials and logarithms on lanes, and the hyperbolic functions.

An argument is reduced to a small range, where a polynomial is close enough; what is rare goes a way of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import BITS_OF_ONE, LEAST, LN2, MANTISSA, Pieces

__all__ = ["LOG2E", "Exponentials"]

LOG2E = 1.4426950408889634
EXP_LIMIT = {"f4": 87.33, "f8": 708.39}  # between these exp has full precision, and so has its inverse
EXP2_LIMIT = {"f4": 126.0, "f8": 1022.0}
EXP_ENDS = {"f4": (-110.0, 90.0), "f8": (-750.0, 711.0)}  # beyond these it is 0 or infinite
LARGE = {"f4": 1e37, "f8": 1e300}
LOG2E_TWO = (1.4426950408889634, 2.0355273740931033e-17)
LOG10E_TWO = (0.4342944819032518, 1.098319650216765e-17)
LOG10_2 = {"f4": (0.30102539, 4.6050390e-6), "f8": (0.30102999566395283, 2.8363394551042263e-14)}
TAIL = {"f4": fit.EXP_F4, "f8": fit.EXP_F8}


class Reduced(NamedTuple):
    """An argument of exp as ``n * log(2) + r + rest``; ``bits`` end in n, and exp(r) is 1 + r + r * r * series."""

    n: Value
    bits: Value
    r: Value
    series: Value
    rest: Value | None


class Split(NamedTuple):
    """A number as ``m`` * 2 ** ``e``, with m near 1; ``up`` is e as the bits of an exponent."""

    m: Value
    e: Value
    up: Value


class Exponentials(Pieces):
    # ---- exp

    def _reduced(self, x: Value, low: Value | None = None, careful: bool = False) -> Reduced:
        """``low`` is what x is too small by; with care the reduction is exact to more than a rounding."""
        n, bits = self.nearest(x, LOG2E)
        first, second = LN2[x.dtype]
        higher = self.fma(n, -first, x)
        r = self.fma(n, -second, higher)
        rest = self.fma(n, -second, higher - r) if careful else None
        if rest is not None and low is not None:
            rest = rest + low
            total = r + rest
            r, rest = total, (r - total) + rest
        return Reduced(n, bits, r, self.fitted(TAIL[x.dtype], r), rest)

    def _above_one(self, part: Reduced) -> Value:
        """What exp of what was left has beyond 1."""
        square = part.r * part.r
        if part.rest is None:
            return self.fma(square, part.series, part.r)
        return part.r + self.fma(square, part.series, part.rest)

    def _raised(self, part: Reduced) -> Value:
        return self._above_one(part) + 1.0

    def _tail(self, part: Reduced) -> Value:
        """What that has beyond 1 + r."""
        square = part.r * part.r
        return square * part.series if part.rest is None else self.fma(square, part.series, part.rest)

    def exp(self, x: Value) -> Value:
        with self.code.exactly():
            part: Reduced = self.once("reduced", self._reduced, self._real(x))
            scaled = self._scaled(self._raised(part), part.bits)
            rare = self.absolute(x).compare("ugt", EXP_LIMIT[x.dtype])
            return self.rarely(rare, scaled, "far_exp", Exponentials._far_exp, x)

    def _far_exp(self, x: Value, halved: int = 0) -> Value:
        """exp(x) / 2 ** halved, scaled in two steps, so that results of less precision are rounded once."""
        low, high = EXP_ENDS[x.dtype]
        part = self._reduced(self.at_least(self.at_most(x, high), low))
        _, half = self.nearest(part.n, 0.5)
        return self._raised(part) * self.power_of_two(half) * self.power_of_two(part.bits - half - halved)

    def _scaled(self, y: Value, bits: Value) -> Value:
        """y times 2 to the number these bits end in, by adding to its exponent."""
        return (y.as_bits() + (bits << MANTISSA[y.dtype])).as_floats()

    def expm1(self, x: Value) -> Value:
        with self.code.exactly():
            part = self._reduced(self._real(x), careful=x.dtype == "f8")
            scale = self.power_of_two(part.bits)
            y = self.fma(scale, self._tail(part), self.fma(scale, part.r, scale - 1.0))
            rare = self.absolute(x).compare("ugt", EXP_LIMIT[x.dtype])
            return self.copysign(self.rarely(rare, y, "far_expm1", lambda s, x: s._far_exp(x) - 1.0, x), x)

    def exp2(self, x: Value) -> Value:
        with self.code.exactly():
            part: Reduced = self.once("reduced by two", self._reduced_by_two, self._real(x))
            scaled = self._scaled(self._raised(part), part.bits)
            rare = self.absolute(x).compare("ugt", EXP2_LIMIT[x.dtype])
            return self.rarely(rare, scaled, "far_exp2", Exponentials._far_exp2, x)

    def _reduced_by_two(self, x: Value) -> Reduced:
        """x * log(2), as an argument of exp."""
        n, bits = self.nearest(x, 1.0)
        f = x - n
        r = f * math.log(2)
        rest = self.fma(f, 2.3190468138462996e-17, self.fma(f, math.log(2), -r)) if x.dtype == "f8" else None
        return Reduced(n, bits, r, self.fitted(TAIL[x.dtype], r), rest)

    def _far_exp2(self, x: Value) -> Value:
        end = 160.0 if x.dtype == "f4" else 1100.0
        part = self._reduced_by_two(self.at_least(self.at_most(x, end), -end))
        _, half = self.nearest(part.n, 0.5)
        return self._raised(part) * self.power_of_two(half) * self.power_of_two(part.bits - half)

    # ---- log

    def _split(self, x: Value) -> Split:
        half, mask = (0x3F3504F3, 0x7FFFFF) if x.dtype == "f4" else (0x3FE6A09E667F3BCD, 0xFFFFFFFFFFFFF)
        bits = x.as_bits()  # counted from those of sqrt(1/2)
        if x.dtype == "f4":
            away = bits - half
            exponent = away >> 23
            return Split(((away & mask) + half).as_floats(), exponent.cast("f4"), exponent << 23)
        # a processor may have no arithmetic shift, nor a cast, of 64-bit lanes
        away = bits + ((1 << 62) - half)
        raised = away.like(away.name, "u8") >> 52
        raised = raised.like(raised.name, "i8")
        e = (raised | 0x4330000000000000).as_floats() - (4503599627370496.0 + 1024)
        return Split(((away & mask) + half).as_floats(), e, (raised - 1024) << 52)

    def _log_near(self, f: Value, e: Value, low: Value | None = None) -> Value:
        """log((1 + f + low) * 2 ** e); in f4 the low part is left out."""
        first, second = LN2[f.dtype]
        if f.dtype == "f4":
            z = f * f
            y = z * f * self.fitted(fit.LOG_F4, f)
            y = self.fma(z, -0.5, self.fma(e, second, y))
            return self.fma(e, first, f + y)
        s, beyond = self._by_quotient(f)
        small = e * second if low is None else self.fma(e, second, low)
        return self.fma(e, first, f + self.fma(s, beyond, small))

    def _by_quotient(self, f: Value) -> tuple[Value, Value]:
        """Two numbers whose product is what log(1 + f) has beyond f."""
        s = f / (f + 2.0)
        z = s * s
        return s, self.fma(z, self.fitted(fit.LOG_F8, z), -f)

    def _log_by(self, x: Value, name: str, near: Callable[..., Value]) -> Value:
        with self.code.exactly():
            part = self._split(self._real(x))
            y = near(self, part.m - 1.0, part.e)
            return self.rarely(self.not_normal(x), y, f"far_{name}", lambda s, x: s._far_log(x, near), x)

    def _far_log(self, x: Value, near: Callable[..., Value]) -> Value:
        """Of any number at all."""
        raised = MANTISSA[x.dtype] + 1
        small = x.compare("olt", LEAST[x.dtype])
        part = self._split(self.select(small, x * 2.0**raised, x))
        y = near(self, part.m - 1.0, self.select(small, part.e - float(raised), part.e))
        y = self.select(x.compare("uge", math.inf), x, y)
        y = self.select(x.compare("olt", 0.0), math.nan, y)
        return self.select(x.compare("oeq", 0.0), -math.inf, y)

    def log(self, x: Value) -> Value:
        return self._log_by(x, "log", Exponentials._log_near)

    def log2(self, x: Value) -> Value:
        return self._log_by(x, "log2", Exponentials._log2_near)

    def log10(self, x: Value) -> Value:
        return self._log_by(x, "log10", Exponentials._log10_near)

    def _log2_near(self, f: Value, e: Value) -> Value:
        high, low = self._scaled_log(f, LOG2E_TWO)
        total = e + high
        return total + (((e - total) + high) + low)

    def _log10_near(self, f: Value, e: Value) -> Value:
        high, low = self._scaled_log(f, LOG10E_TWO)
        first, second = LOG10_2[f.dtype]
        whole = e * first
        total = whole + high
        return total + (((whole - total) + high) + self.fma(e, second, low))

    def _scaled_log(self, f: Value, scale: tuple[float, float]) -> tuple[Value, Value]:
        """log(1 + f) times a number that is given in two parts, in two parts."""
        if f.dtype == "f4":
            z = f * f
            rest = self.fma(z, -0.5, z * f * self.fitted(fit.LOG_F4, f))
            high = f * scale[0]
            return high, self.fma(rest, scale[0], self.fma(f, scale[0], -high) + f * _lost(scale[0]))
        s, beyond = self._by_quotient(f)
        total = self.fma(s, beyond, f)
        low = self.fma(s, beyond, f - total)
        product = total * scale[0]
        return product, self.fma(total, scale[1], self.fma(low, scale[0], self.fma(total, scale[0], -product)))

    def log1p(self, x: Value) -> Value:
        with self.code.exactly():
            return self.copysign(self._log_of_sum(self._real(x)), x)

    def _log_of_sum(self, x: Value, low: Value | None = None) -> Value:
        """log(1 + x + low), where x is not beyond 1e37 (in f8 1e300); the sum is not rounded."""
        y = self._log_near(*self._split_sum(x, low))
        rare = x.compare("ule", -1.0) | x.compare("uge", LARGE[x.dtype])
        return self.rarely(rare, y, "far_log1p", Exponentials._far_log1p, x)

    def _split_sum(self, x: Value, low: Value | None) -> tuple[Value, Value, Value]:
        """1 + x + low as (1 + f + rest) * 2 ** e: f, e and the rest."""
        u = x + 1.0
        lost = x - (u - 1.0)
        part = self._split(u)
        scale = (x.lift(0).as_bits() - part.up + BITS_OF_ONE[x.dtype]).as_floats()
        lost, near = lost if low is None else lost + low, part.m - 1.0
        f = self.fma(lost, scale, near)
        return f, part.e, self.fma(lost, scale, near - f)

    def _far_log1p(self, x: Value) -> Value:
        large = x.compare("uge", LARGE[x.dtype])
        return self._far_log(self.select(large, x, x + 1.0), Exponentials._log_near)

    def logaddexp(self, x: Value, y: Value) -> Value:
        return self._log_of_two(x, y, self.exp, 1.0, math.log(2))

    def logaddexp2(self, x: Value, y: Value) -> Value:
        return self._log_of_two(x, y, self.exp2, math.log(2), 1.0)

    def _log_of_two(self, x: Value, y: Value, exp: Callable[[Value], Value], base: float, equal: float) -> Value:
        """The larger one, and the logarithm of 1 + exp of the difference; two infinities have none."""
        with self.code.exactly():
            x, y = self._reals(x, y)
            first = x.compare("ogt", y)
            larger, smaller = self.select(first, x, y), self.select(first, y, x)
            away, lost = self._sum(larger, -smaller)
            e = exp(-away)
            low = self.select(away.compare("oeq", math.inf), 0.0, e * (lost * -base))
            f, exponent, rest = self._split_sum(e, low)
            if x.dtype == "f4":
                log = self._log_near(f, exponent)
                made = larger + log if base == 1.0 else self.fma(log, LOG2E, larger)
            else:
                high, low = self._log_in_two(f, exponent, rest)
                if base != 1.0:
                    log, product = high, high * LOG2E
                    low = self.fma(low, LOG2E, self.fma(log, LOG2E_TWO[1], self.fma(log, LOG2E, -product)))
                    high = product
                made, lost = self._sum(larger, high)
                made = self.select(made.compare("oeq", math.inf), made, made + (lost + low))
            return self.select(x.compare("oeq", y), x + equal, made)

    def _sum(self, x: Value, y: Value) -> tuple[Value, Value]:
        """A sum, and what its rounding has lost."""
        total = x + y
        back = total - x
        return total, (x - (total - back)) + (y - back)

    def _log_in_two(self, f: Value, e: Value, low: Value) -> tuple[Value, Value]:
        """log((1 + f + low) * 2 ** e) of doubles in two parts."""
        first, second = LN2["f8"]
        s, beyond = self._by_quotient(f)
        rest = self.fma(s, beyond, self.fma(e, second, low))
        near, whole = f + rest, e * first
        total = whole + near
        return total, ((whole - total) + near) + ((f - near) + rest)

    # ---- hyperbolic

    def tanh(self, x: Value) -> Value:
        """By t = expm1(2 * x): t / (t + 2); in f8 with half of t, which is in two parts: t / (t + 1)."""
        with self.code.exactly():
            a = self.at_most(self.absolute(self._real(x)), 10.0 if x.dtype == "f4" else 20.0)
            part = self._reduced(a + a, careful=x.dtype == "f8")
            if x.dtype == "f4":
                scale = self.power_of_two(part.bits)
                t = self.fma(scale, self._tail(part), self.fma(scale, part.r, scale - 1.0))
                return self.copysign(t / (t + 2.0), x)
            scale = self.power_of_two(part.bits, halved=1)
            less, more = scale - 0.5, scale * part.r
            high = less + more
            low = self.fma(scale, self._tail(part), (less - high) + more)
            t = high + low
            low = (high - t) + low
            d = t + 1.0
            lower = (1.0 - d) + t
            over = 1.0 / d
            q = t * over
            left = self.fma(-q, d, t) + self.fma(-q, lower, low * over)  # low is in t and in d, and 1 - q is 1 / d
            return self.copysign(self.fma(left, over, q), x)

    def _hyperbolic(self, x: Value) -> tuple[Value, ...]:
        """sinh and cosh of n * log(2), what they have lost, r, and what sinh(r) has beyond r and cosh(r) beyond 1."""
        a = self.absolute(x)
        n, bits = self.nearest(a, LOG2E)
        first, second = LN2[x.dtype]
        higher = self.fma(n, -first, a)
        r = self.fma(n, -second, higher)
        rest = self.fma(n, -second, higher - r)
        z = r * r
        single = x.dtype == "f4"
        odd = self.fma(z * r, self.fitted(fit.SINH_F4 if single else fit.SINH_F8, z), rest)
        even = z * self.fitted(fit.COSH_F4 if single else fit.COSH_F8, z)
        up, down = self.power_of_two(bits) * 0.5, self.power_of_two(x.lift(0).as_bits() - bits) * 0.5
        sinh, cosh = up - down, up + down
        return sinh, cosh, (up - sinh) - down, (up - cosh) + down, r, odd, even

    def sinh(self, x: Value) -> Value:
        with self.code.exactly():
            sinh, cosh, lost, _, r, odd, even = self.once("hyperbolic", self._hyperbolic, self._real(x))
            y = self.fma(cosh, r, sinh) + self.fma(sinh, even, self.fma(cosh, odd, lost))
            rare = self.absolute(x).compare("ogt", 87.0 if x.dtype == "f4" else 708.0)
            return self.copysign(self.rarely(rare, y, "far_hyperbolic", Exponentials._far_hyperbolic, x), x)

    def cosh(self, x: Value) -> Value:
        with self.code.exactly():
            sinh, cosh, _, lost, r, odd, even = self.once("hyperbolic", self._hyperbolic, self._real(x))
            y = self.fma(sinh, r, cosh) + self.fma(cosh, even, self.fma(sinh, odd, lost))
            rare = self.absolute(x).compare("ogt", 87.0 if x.dtype == "f4" else 708.0)
            return self.rarely(rare, y, "far_hyperbolic", Exponentials._far_hyperbolic, x)

    def _far_hyperbolic(self, x: Value) -> Value:
        """There both are half of exp."""
        return self._far_exp(self.absolute(x), 1)

    def arcsinh(self, x: Value) -> Value:
        """log(1 + t) with t = a + a**2 / (1 + sqrt(1 + a**2))."""
        with self.code.exactly():
            a = self.absolute(self._real(x))
            w = a * a / (self.sqrt(self.fma(a, a, 1.0)) + 1.0)
            t = a + w
            y = self._log_of_sum(t, (a - t) + w)
            rare = a.compare("ogt", 1e18 if x.dtype == "f4" else 1e150)
            return self.copysign(self.rarely(rare, y, "far_arcsinh", self.by_library("asinh"), a), x)

    def arccosh(self, x: Value) -> Value:
        """log(1 + t + sqrt(2 * t + t**2)) with t = x - 1."""
        with self.code.exactly():
            t = self._real(x) - 1.0
            square = self.fma(t, t, t + t)
            w = self.sqrt(square)
            u = w + t
            low = (w - u) + t
            if x.dtype == "f8":  # what the root has lost
                low = self.fma(self.fma(-w, w, square), 0.5 / (w + LEAST["f8"]), low)
            y = self._log_of_sum(u, low)
            rare = x.compare("ult", 1.0) | x.compare("ogt", 1e18 if x.dtype == "f4" else 1e150)
            return self.rarely(rare, y, "far_arccosh", self.by_library("acosh"), x)

    def arctanh(self, x: Value) -> Value:
        """Half of log(1 + t) with t = 2 * a / (1 - a)."""
        with self.code.exactly():
            a = self.absolute(self._real(x))
            d = 1.0 - a
            over = 1.0 / d
            t = (a + a) * over
            low = self.fma(-t, (1.0 - d) - a, self.fma(-t, d, a + a)) * over
            y = self._log_of_sum(t, low) * 0.5
            rare = a.compare("uge", 1.0)
            return self.copysign(self.rarely(rare, y, "far_arctanh", self.by_library("atanh"), a), x)


def _lost(x: float) -> float:
    """What a number loses as a float32."""
    return float(x - float(np.float32(x)))
