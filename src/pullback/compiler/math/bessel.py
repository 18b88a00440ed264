"""Modified Bessel functions of the first kind, of orders 0 and 1, on vectors."""

from __future__ import annotations

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.math.exp_log import exp

FAR = 8.0  # from here on a polynomial of 1 / x is multiplied by exp(x) / sqrt(x)
NEAR = {
    ("f4", 0): fit.I0_NEAR_F4,
    ("f8", 0): fit.I0_NEAR_F8,
    ("f4", 1): fit.I1_NEAR_F4,
    ("f8", 1): fit.I1_NEAR_F8,
}
BEYOND = {("f4", 0): fit.I0_FAR_F4, ("f8", 0): fit.I0_FAR_F8, ("f4", 1): fit.I1_FAR_F4, ("f8", 1): fit.I1_FAR_F8}


def i0(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        return _bessel(b, b.absolute(b.as_real(x)), 0)


def i1(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        return _odd(b, x, _bessel(b, b.absolute(b.as_real(x)), 1))


def i0e(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        return _exp_bessel(b, b.absolute(b.as_real(x)), 0)


def i1e(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        return _odd(b, x, _exp_bessel(b, b.absolute(b.as_real(x)), 1))


def _odd(b: MathBuilder, x: Value, of_positive: Value) -> Value:
    """Return the value at x of an odd function, from that at abs(x); at -0 it is 0, as in SciPy."""
    return b.select(x.compare("olt", 0.0), -of_positive, of_positive)


def _bessel(b: MathBuilder, a: Value, order: int) -> Value:
    """Return the Bessel function of numbers that are not negative."""
    root = exp(b, a * 0.5)  # multiplied twice, as the result may be finite where exp(a) overflows
    return b.select(a.compare("olt", FAR), _by_series(b, a, order), root * _asymptote(b, a, order) * root)


def _exp_bessel(b: MathBuilder, a: Value, order: int) -> Value:
    """Return exp(-a) times the Bessel function, of numbers that are not negative."""
    near = exp(b, -b.at_most(a, FAR)) * _by_series(b, a, order)
    return b.select(a.compare("olt", FAR), near, _asymptote(b, a, order))


def _by_series(b: MathBuilder, a: Value, order: int) -> Value:
    """Return the Bessel function of numbers up to FAR; the first term of its series is 1 or a / 2."""
    a = b.at_most(a, FAR)
    square = a * a
    series = b.fma(square, b.fit_polynomial(NEAR[a.dtype, order], square), 0.5 if order else 1.0)
    return a * series if order else series


def _asymptote(b: MathBuilder, a: Value, order: int) -> Value:
    """Return exp(-a) times the Bessel function, of numbers from FAR on."""
    a = b.at_least(a, FAR)
    return b.fit_polynomial(BEYOND[a.dtype, order], 2 * FAR / a - 1.0) / b.sqrt(a)
