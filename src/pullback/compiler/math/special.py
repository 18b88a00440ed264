"""The logarithm of the gamma function and its derivatives, and the normal distribution function, on vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.math.exp_log import exp, log, log1p
from pullback.compiler.math.trigonometry import sin, tan
from pullback.errors import CompileError

FAR = 8  # from here on the asymptotic series of gammaln and its derivatives have full precision
# Coefficients of Stirling's series in 1 / x**2, and of its derivatives: as many as are needed from FAR on.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
SLOPES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160, 43867 / 14364)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
TERMS = {"f4": 3, "f8": 9}
DIGAMMA_ROOT = {"f4": (1.4616321325302124, 1.2438149938918909e-08), "f8": (1.4616321449683622, 9.549995429965697e-17)}
NEGATIVE_ROOT = (-0.5040830082644554, -8.15428206243813e-18)  # of digamma, the first, as a sum of two numbers
LGAMMA = {"f4": fit.LGAMMA_F4, "f8": fit.LGAMMA_F8}
DIGAMMA = {"f4": fit.DIGAMMA_F4, "f8": fit.DIGAMMA_F8}
ERFCX = {"f4": (2.0, fit.ERFCX_F4), "f8": (4.0, fit.ERFCX_F8)}
ERFC_END = {"f4": 12.0, "f8": 30.0}  # beyond it erfc is 0


# ---- gamma functions


def gammaln(b: MathBuilder, x: Value) -> Value:
    """Return log(abs(gamma(x))): by factors from a number near 2, and from FAR on by Stirling's series."""
    with b.code.exactly():
        x = b.as_real(x)
        far = x.compare("oge", FAR - 0.5)
        up, down, near = split_gamma(b, x)
        is_below = x.compare("olt", 1.5)
        factors = b.select(far, x, b.select(is_below, down, up))
        series = sum_stirling(b, b.select(far, x, 1.0)) + (0.5 * math.log(2 * math.pi) - 0.5)
        rest = b.select(far, series, near)
        scale = b.select(far, x - 0.5, b.select(is_below, -1.0, x.lift(1.0)))
        result = b.fma(scale, log(b, factors) - b.select(far, 1.0, x.lift(0.0)), rest)
        return b.rarely(x.compare("ule", 0.0), result, "far_gammaln", _far_gammaln, x)


def split_gamma(b: MathBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Return (up, down, near) such that gamma(x) = up / down * exp(near), for positive x below FAR - 0.5."""
    nearest = b.rint(b.at_most(x, FAR - 1.0))
    count, t = nearest - 2.0, x - nearest  # the number of factors up to x, or down to it if negative
    below = b.select(count.compare("olt", -1.0), x * (x + 1.0), x)
    down = b.select(count.compare("olt", 0.0), below, 1.0)
    return _multiply_up(b, t + 2.0, count), down, t * b.fit_polynomial(LGAMMA[x.dtype], t)


def sum_stirling(b: MathBuilder, x: Value) -> Value:
    """Return the terms of Stirling's series in 1 / x."""
    over = 1.0 / x
    return _sum_series(b, STIRLING, over) * over


def _multiply_up(b: MathBuilder, y: Value, count: Value) -> Value:
    """Return y * (y + 1) * …, a product of ``count`` factors."""
    product = y.lift(1.0)
    for i in range(FAR - 3):
        product = product * b.select(count.compare("ogt", float(i)), y + float(i), 1.0)
    return product


def _sum_series(b: MathBuilder, terms: Sequence[float], over: Value) -> Value:
    return b.fit_polynomial(terms[: TERMS[over.dtype]][::-1], over * over)


def _far_gammaln(b: MathBuilder, x: Value) -> Value:
    return b.select(x.compare("oeq", -math.inf), -math.inf, b.each("lgamma", x))


def digamma(b: MathBuilder, x: Value) -> Value:
    """Return the derivative of gammaln: by its recurrence from [1, 2], and from FAR on by a series."""
    with b.code.exactly():
        x = b.as_real(x)
        return b.rarely(x.compare("ule", 0.0), _digamma_of_positive(b, x), "far_digamma", _far_digamma, x)


def _digamma_of_positive(b: MathBuilder, x: Value) -> Value:
    far = x.compare("oge", float(FAR))
    count = b.intrinsic("floor", b.at_most(x, FAR - 1.0)) - 1.0
    y = b.at_most(x - count, 2.0)
    first, second = DIGAMMA_ROOT[x.dtype]
    near = ((y - first) - second) * b.fit_polynomial(DIGAMMA[x.dtype], y - 1.5)
    above, under = x.lift(0.0), x.lift(1.0)  # numerator and denominator of the sum of 1 / (y + i)
    for i in range(FAR - 2):
        counts = count.compare("ogt", float(i))
        factor = b.select(counts, y + float(i), 1.0)
        above, under = b.fma(above, factor, b.select(counts, under, 0.0)), under * factor
    is_below = count.compare("olt", 0.0)
    above = b.select(far, 1.0, b.select(is_below, -1.0, above))
    quotient = above / b.select(far | is_below, x, under)
    series = b.fma(-(quotient * quotient), _sum_series(b, SLOPES, quotient), quotient * -0.5)
    return b.select(far, log(b, b.select(far, x, 1.0)) + series, near + quotient)


def _far_digamma(b: MathBuilder, x: Value) -> Value:
    """Return digamma of numbers that are not positive, by reflection; NaN at integers.

    It is computed in float64, as both terms cancel near roots; near the first root by a polynomial.
    """
    wide = x.cast("f8")
    apart = wide - b.rint(wide)
    result = _digamma_of_positive(b, 1.0 - wide) - math.pi / tan(b, apart * math.pi)
    first, second = NEGATIVE_ROOT
    t = (wide - first) - second
    result = b.select(b.absolute(t).compare("olt", 0.1), t * b.fit_polynomial(fit.DIGAMMA_BELOW, t), result)
    result = b.select(apart.compare("une", 0.0), result, math.nan)
    return b.select(wide.compare("oeq", 0.0), b.copysign(math.inf, -wide), result).cast(x.dtype)


def polygamma(b: MathBuilder, n: Value, x: Value) -> Value:
    """Return the derivative of digamma: by FAR reciprocals of squares, and a series for the sum of the others."""
    if n.number != 1:
        raise CompileError("there is machine code of polygamma for the order 1 only.")
    with b.code.exactly():
        x = b.as_real(x)
        return b.rarely(x.compare("ule", 0.0), _trigamma_of_positive(b, x), "far_trigamma", _far_trigamma, x)


def _trigamma_of_positive(b: MathBuilder, x: Value) -> Value:
    far = x.compare("oge", float(FAR))
    y = b.at_most(x, float(FAR))
    above, under = x.lift(1.0), y + 1.0  # the sum of 1 / (y + i) ** 2, for i from 1 on, is above / under ** 2
    for i in range(2, FAR):
        factor = y + float(i)
        above, under = b.fma(above * factor, factor, under * under), under * factor
    first = 1.0 / y
    near = b.fma(first, first, above / (under * under))
    over = 1.0 / (x + b.select(far, 0.0, x.lift(float(FAR))))
    square = over * over
    series = b.fma(square * over, _sum_series(b, BERNOULLI, over), square * 0.5) + over
    return b.select(far, series, near + series)


def _far_trigamma(b: MathBuilder, x: Value) -> Value:
    """Return trigamma of numbers that are not positive, by reflection; infinity at integers."""
    apart = x - b.rint(x)
    sine = sin(b, apart * math.pi) * (1 / math.pi)
    result = 1.0 / (sine * sine) - _trigamma_of_positive(b, 1.0 - x)
    return b.select(apart.compare("oeq", 0.0) | x.compare("oeq", -math.inf), math.inf, result)


# ---- the bell curve


def erfc(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        a = b.at_most(b.absolute(b.as_real(x)), ERFC_END[x.dtype])
        tail = _gaussian(b, a, 1.0) * _erfcx(b, a)
        return b.select(x.compare("olt", 0.0), 2.0 - tail, tail)


def ndtr(b: MathBuilder, x: Value) -> Value:
    """Return the standard normal distribution function: the probability of a number below x."""
    with b.code.exactly():
        a = b.at_most(b.absolute(b.as_real(x)), ERFC_END[x.dtype] * 1.5)
        half = _gaussian(b, a, 0.5) * _erfcx(b, a * math.sqrt(0.5)) * 0.5
        return b.select(x.compare("ogt", 0.0), 1.0 - half, half)


def log_ndtr(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        a = b.absolute(b.as_real(x))
        half = _erfcx(b, b.at_most(a, 1e18 if x.dtype == "f4" else 1e150) * math.sqrt(0.5)) * 0.5
        right = log1p(b, -(_gaussian(b, b.at_most(a, ERFC_END[x.dtype] * 1.5), 0.5) * half))
        return b.select(x.compare("olt", 0.0), b.fma(a * a, -0.5, log(b, half)), right)


def _gaussian(b: MathBuilder, a: Value, scale: float) -> Value:
    """Return exp(-scale * a * a), computed with the rounding error of the square."""
    square = a * a
    e = exp(b, square * -scale)
    return b.fma(e, b.exact_fma(a, a, -square) * -scale, e)


def _erfcx(b: MathBuilder, a: Value) -> Value:
    """Return exp(a * a) * erfc(a), for a that are not negative, by a polynomial in (a - c) / (a + c)."""
    c, coefficients = ERFCX[a.dtype]
    over = 1.0 / (a + c)
    q = (a - c) * over
    q = b.fma(over, b.fma(-q, a, b.fma(q + 1.0, -c, a)), q)
    return b.fma(b.wide_polynomial(coefficients, q), q + 1.0, 1.0) / b.fma(a, 2.0, 1.0)
