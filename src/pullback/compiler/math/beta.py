"""The logarithm of the beta function, on vectors."""

from __future__ import annotations

import math

from pullback.compiler.builder import Value
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.math.exp_log import log, log1p
from pullback.compiler.math.special import FAR, split_gamma, sum_stirling

SERIES_START = FAR - 0.5  # from here on Stirling's series has full precision
SMALL = 1e-18  # for smaller x, gamma(x) is 1 / x
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def betaln(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return gammaln(x) + gammaln(y) - gammaln(x + y); the large terms of their series were cancelled algebraically."""
    with b.code.exactly():
        x, y = b.as_reals(x, y)
        low, high = _sort(b, x, y)
        rare = low.compare("ult", SMALL) | high.compare("uge", math.inf)
        return b.rarely(rare, _betaln_of_positive(b, low, high), "far_betaln", _far_betaln, x, y)


def _sort(b: MathBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    is_less = x.compare("olt", y)
    return b.select(is_less, x, y), b.select(is_less, y, x)


def _betaln_of_positive(b: MathBuilder, low: Value, high: Value) -> Value:
    """Return betaln of positive numbers.

    The larger one is raised to where Stirling's series is precise; the smaller one has a series, too, or is raised
    by factors.
    """
    above = under = low.lift(1.0)
    steps = low.lift(0.0)
    for i in range(FAR):
        raised = high + float(i)
        is_below = raised.compare("olt", SERIES_START)
        above = above * b.select(is_below, low + raised, 1.0)
        under = under * b.select(is_below, raised, 1.0)
        steps = b.select(is_below, i + 1.0, steps)
    high = high + steps
    is_far = low.compare("oge", SERIES_START)
    up, down, near = split_gamma(b, low)
    first = log(b, b.select(is_far, low, above * up) / b.select(is_far, high, under * down))
    second = log(b, b.select(is_far, low, high))
    of_near = b.fma(-low, second - 1.0, first + near)
    of_far = b.fma(low, first, b.fma(second, -0.5, sum_stirling(b, b.select(is_far, low, FAR)) + HALF_LOG_TWO_PI))
    return b.select(is_far, of_far, of_near) + _compare_gammas(b, low, high)


def _compare_gammas(b: MathBuilder, low: Value, high: Value) -> Value:
    """Return gammaln(high) - gammaln(low + high) + low * (log(high) - 1), both by Stirling's series."""
    growth = log1p(b, low / high)
    rest = sum_stirling(b, high) - sum_stirling(b, low + high)
    return rest - b.fma(high, growth, (low - 0.5) * growth)


def _far_betaln(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return betaln for an argument that is tiny, not positive or NaN."""
    low, high = _sort(b, x, y)
    result = b.each("lgamma", x) + b.each("lgamma", y) - b.each("lgamma", x + y)
    has_series = high.compare("oge", SERIES_START) & (x + y).compare("oge", SERIES_START)
    by_series = b.each("lgamma", low) + _compare_gammas(b, low, high) - low * (log(b, high) - 1.0)
    result = b.select(has_series, by_series, result)
    is_tiny = low.compare("ogt", 0.0) & low.compare("olt", SMALL)
    result = b.select(is_tiny, log1p(b, low / high) - log(b, low), result)
    of_infinity = b.select(
        low.compare("olt", 0.0), math.inf, b.select(low.compare("olt", math.inf), -math.inf, math.nan * low)
    )
    result = b.select(high.compare("oeq", math.inf), of_infinity, result)
    result = b.select(_is_pole(b, y), _at_pole(b, y, x), result)
    return b.select(_is_pole(b, x), _at_pole(b, x, y), result)


def _is_pole(b: MathBuilder, x: Value) -> Value:
    return x.compare("ole", 0.0) & x.compare("oeq", b.intrinsic("floor", x))


def _at_pole(b: MathBuilder, pole: Value, other: Value) -> Value:
    """Return betaln at a pole: infinity, but finite if the gamma function of the sum has a pole, too."""
    beyond = 1.0 - pole
    left = beyond - other
    is_number = other.compare("ogt", 0.0) & other.compare("oeq", b.intrinsic("floor", other)) & left.compare("ogt", 0.0)
    is_number = is_number & pole.compare("ogt", -(2.0**31))
    result = b.each("lgamma", left) + b.each("lgamma", other) - b.each("lgamma", beyond)
    return b.select(is_number, result, math.inf)
