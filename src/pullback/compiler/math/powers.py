"""Powers and roots on lanes, and the error function."""

from __future__ import annotations

import math

from pullback.compiler.builder import Value, known
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import LEAST, LN2, ROUND
from pullback.compiler.math.exp_log import LOG2E, Exponentials
from pullback.errors import CompileError

__all__ = ["Powers"]

BY_ROOTS = (0.5, -0.5, 1.5, -1, -2)  # exponents that need no logarithm


class Powers(Exponentials):
    def power(self, x: Value, y: Value) -> Value:
        x, y = self._both(x, y)
        exponent = known(y)
        if exponent is not None and exponent in range(1, 5 if x.dtype == "f8" else 7):
            return self._multiplied(x, int(exponent))
        if x.kind != "f":
            raise CompileError("there is no machine code for powers of integers.")
        with self.code.exactly():
            if exponent in BY_ROOTS:
                return self._by_roots(x, exponent)
            made, far = self._power_of_positive(x, y)
            return self.rarely(self.not_normal(x) | far, made, "far_power", Powers._far_power, x, y)

    def _multiplied(self, x: Value, n: int) -> Value:
        """A small whole power by products."""
        with self.code.exactly():
            made: Value | None = None
            while n:
                if n & 1:
                    made = x if made is None else made * x
                n >>= 1
                x = x * x if n else x
            assert made is not None
            return made

    def _by_roots(self, x: Value, exponent: float | None) -> Value:
        """By a root or a quotient; the root is NumPy's of -0 and -inf too, which are not those of a power."""
        if exponent == 0.5:
            return self.sqrt(x)
        if exponent in (-1, -2):
            inverse = 1.0 / x
            return inverse if exponent == -1 else inverse * inverse
        x = x + 0.0  # -0 becomes 0
        root = self.sqrt(x)
        made, limit = (1.0 / root, 0.0) if exponent == -0.5 else (x * root, math.inf)
        return self.select(x.compare("oeq", -math.inf), limit, made)

    def _far_power(self, x: Value, y: Value) -> Value:
        """Of negative numbers too; the C library has the rest."""
        a = self.absolute(x)
        made, far = self._power_of_positive(a, y)
        odd = self.rint(y * 0.5).compare("une", y * 0.5)
        signed = self.select(self.rint(y).compare("oeq", y), self.select(odd, -made, made), math.nan)
        made = self.select(x.compare("olt", 0.0), signed, made)
        return self.rarely(self.not_normal(a) | far, made, "any_power", self.by_library("pow"), x, y)

    def _power_of_positive(self, x: Value, y: Value) -> tuple[Value, Value]:
        """x ** y, and where that is beyond what can be done here."""
        if x.dtype == "f4":
            return self._power_by_doubles(x, y)
        high, low = self._long_log(x)
        product = y * high
        low = self.fma(y, low, self.fma(y, high, -product))
        part = self._reduced(product, low, careful=True)
        return self._scaled(self._raised(part), part.bits), self.absolute(product).compare("uge", 708.0)

    def _power_by_doubles(self, x: Value, y: Value) -> tuple[Value, Value]:
        """In f4 only what needs more digits is done in f8: the logarithm, and what is left of its product."""
        part = self._split(x)
        f = (part.m - 1.0).cast("f8")
        near = self.fma(f * f, self.fma(f, self.fitted(fit.LOG_SHORT, f), -0.5), f)
        product = y.cast("f8") * self.fma(part.e.cast("f8"), math.log(2), near)
        whole, _ = self.nearest(product, LOG2E)
        r = self.fma(whole, -math.log(2), product).cast("f4")
        n = whole.cast("f4")
        made = self.fma(r * r, self.fitted(fit.EXP_F4, r), r) + 1.0
        return self._scaled(made, (n + ROUND["f4"]).as_bits()), self.absolute(n).compare("uge", 126.0)

    def _long_log(self, x: Value) -> tuple[Value, Value]:
        """log(x) in two parts, right to some 2 ** -66 of it: 2 * s + s**3 * (2/3 + w), all but w in two parts."""
        part = self._split(x)
        f = part.m - 1.0
        d = f + 2.0
        over = 1.0 / d
        s = f * over
        s_low = self.fma(-s, (2.0 - d) + f, self.fma(-s, d, f)) * over
        z = s * s
        z_low = self.fma(s, s_low + s_low, self.fma(s, s, -z))
        cube = s * z
        cube_low = self.fma(s, z_low, self.fma(s_low, z, self.fma(s, z, -cube)))
        w = z * self.fitted(fit.LOG_LONG, z)
        third = 0.6666666666666666
        c = w + third
        c_low = ((third - c) + w) + 3.700743415417188e-17
        q = c * cube
        q_low = self.fma(c, cube_low, self.fma(c_low, cube, self.fma(c, cube, -q)))
        twice = s + s
        near = twice + q
        near_low = ((twice - near) + q) + (s_low + s_low + q_low)
        whole = part.e * LN2["f8"][0]
        high = whole + near
        low = ((whole - high) + near) + self.fma(part.e, LN2["f8"][1], near_low)
        total = high + low
        return total, (high - total) + low

    def cbrt(self, x: Value) -> Value:
        with self.code.exactly():
            a = self.absolute(self._real(x))
            y = self._cbrt_of_positive(a)
            return self.copysign(self.rarely(self.not_normal(a), y, "far_cbrt", Powers._far_cbrt, a), x)

    def _far_cbrt(self, a: Value) -> Value:
        small = a.compare("olt", LEAST[a.dtype])
        y = self._cbrt_of_positive(self.select(small, a * 2.0**60, a))
        y = self.select(small, y * 2.0**-20, y)
        return self.select(a.compare("oeq", 0.0) | a.compare("uge", math.inf), a, y)

    def _cbrt_of_positive(self, a: Value) -> Value:
        """From its inverse, which is polished without a division."""
        part = self._split(a)
        third, bits = self.nearest(part.e, 1 / 3)
        m = part.m * self.power_of_two((part.e - third * 3.0 + ROUND[a.dtype]).as_bits())
        r = self.polynomial(fit.CBRT, m)
        h = self.fma(m * r, -(r * r), 1.0)
        r = self.fma(r * h, self.polynomial((14 / 81, 2 / 9, 1 / 3), h), r)
        if a.dtype == "f8":
            h = self.fma(m * r, -(r * r), 1.0)
            r = self.fma(r * h, self.fma(h, 2 / 9, 1 / 3), r)
        y = m * r * r
        square = y * y
        left = self.fma(-y, self.fma(y, y, -square), self.fma(-y, square, m))
        y = self.fma(left, r * r * (1 / 3), y)
        return y * self.power_of_two(bits)

    def hypot(self, x: Value, y: Value) -> Value:
        with self.code.exactly():
            x, y = (self.absolute(v) for v in self._reals(x, y))
            square = self.fma(x, x, y * y)
            low, high = (1e-30, 1e37) if x.dtype == "f4" else (1e-290, 1e307)
            rare = square.compare("ult", low) | square.compare("uge", high)
            return self.rarely(rare, self.sqrt(square), "far_hypot", Powers._far_hypot, x, y)

    def _far_hypot(self, x: Value, y: Value) -> Value:
        """Scaled, so that squares are finite and of full precision."""
        larger = self.select(x.compare("ogt", y), x, y)
        up, limit = (2.0**90, 1e12) if x.dtype == "f4" else (2.0**600, 1e140)
        scale = self.select(larger.compare("olt", 1 / limit), up, x.lift(1.0))
        scale = self.select(larger.compare("ogt", limit), 1 / up, scale)
        a, b = x * scale, y * scale
        z = self.sqrt(self.fma(a, a, b * b)) / scale
        return self.select(x.compare("oeq", math.inf) | y.compare("oeq", math.inf), math.inf, z)

    # ---- the error function

    def erf(self, x: Value) -> Value:
        with self.code.exactly():
            a, z = self.absolute(self._real(x)), x * x
            if x.dtype == "f4":
                r = self.fma(a, -1.72853470e-5, 3.83197126e-4)
                u = self.fma(a, -3.88396438e-3, 2.42546219e-2)
                r = self.fma(r, z, u)
                for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
                    r = self.fma(r, a, c)
                edge, r = 0.927734375, self.fma(r, a, -a)
                near = self.polynomial(
                    (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1), z
                )
            else:
                edge, r = 1.0, self.wide_polynomial(fit.ERFC_F8, self.at_most(a, 5.95))
                near = self.wide_polynomial(fit.ERF_F8, z)
            part = self._reduced(self.at_least(r, -45.0))
            far = 1.0 - self._scaled(self._raised(part), part.bits)
            return self.select(a.compare("ogt", edge), self.copysign(far, x), self.fma(near, x, x))
