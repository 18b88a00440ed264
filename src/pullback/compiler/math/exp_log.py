"""Exponentials, logarithms and hyperbolic functions on vectors.

Arguments are reduced to a small range, where a polynomial is accurate; rare arguments have a slow path (``_far_…``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import BITS_OF_ONE, LEAST, LN2, MANTISSA, ROUND, MathBuilder

LOG2E = 1.4426950408889634
EXP_LIMIT = {"f4": 87.33, "f8": 708.39}  # for abs(x) up to this, exp(x) and exp(-x) are normal numbers
EXP2_LIMIT = {"f4": 126.0, "f8": 1022.0}
EXP_AHEAD = {"f4": 24, "f8": 54}  # exponent by which a result is scaled up, so that a subnormal one is rounded once
EXP_LARGEST = {"f4": 125.0, "f8": 1021.0}  # the largest exponent, scaled so, for which nothing overflows
EXP_ENDS = {"f4": (-110.0, 90.0), "f8": (-750.0, 711.0)}  # beyond these exp is 0 or infinite
LARGE = {"f4": 1e37, "f8": 1e300}
LOG2E_TWO = (1.4426950408889634, 2.0355273740931033e-17)
LOG10E_TWO = (0.4342944819032518, 1.098319650216765e-17)
LOG10_2 = {"f4": (0.30102539, 4.6050390e-6), "f8": (0.30102999566395283, 2.8363394551042263e-14)}
TAIL = {"f4": fit.EXP_F4, "f8": fit.EXP_F8}


class ReducedArgument(NamedTuple):
    """An argument of exp as n * log(2) + ``r`` + ``rest``.

    The low bits of ``bits`` are the integer n, and exp(r) is 1 + r + r * r * ``series``.
    """

    n: Value
    bits: Value
    r: Value
    series: Value
    rest: Value | None


class SplitNumber(NamedTuple):
    """A number as ``m`` * 2 ** ``e``, with m near 1; ``up`` is e in the exponent bits of a float."""

    m: Value
    e: Value
    up: Value


# ---- exp


def reduce_argument(
    b: MathBuilder, x: Value, low: Value | None = None, careful: bool = False, ahead: int = 0
) -> ReducedArgument:
    """Reduce x + low for exp; ``careful`` keeps the rounding error as ``rest``, ``ahead`` is added to the integer n."""
    n, bits = b.nearest(x, LOG2E, ahead)
    first, second = LN2[x.dtype]
    higher = b.fma(n, -first, x)
    r = b.fma(n, -second, higher)
    rest = b.fma(n, -second, higher - r) if careful else None
    if rest is not None and low is not None:
        rest = rest + low
        total = r + rest
        r, rest = total, (r - total) + rest
    return ReducedArgument(n, bits, r, b.fit_polynomial(TAIL[x.dtype], r), rest)


def _expm1_of_reduced(b: MathBuilder, part: ReducedArgument) -> Value:
    """Return exp(r + rest) - 1 of a reduced argument."""
    square = part.r * part.r
    if part.rest is None:
        return b.fma(square, part.series, part.r)
    return part.r + b.fma(square, part.series, part.rest)


def exp_of_reduced(b: MathBuilder, part: ReducedArgument) -> Value:
    return _expm1_of_reduced(b, part) + 1.0


def _exp_tail(b: MathBuilder, part: ReducedArgument) -> Value:
    """Return exp(r + rest) - 1 - r of a reduced argument."""
    square = part.r * part.r
    return square * part.series if part.rest is None else b.fma(square, part.series, part.rest)


def exp(b: MathBuilder, x: Value) -> Value:
    """Return exp(x); only large x are rare: a masked softmax has many arguments so small that the result is 0."""
    with b.code.exactly():
        x = b.as_real(x)
        ahead = EXP_AHEAD[x.dtype]
        part = reduce_argument(b, b.at_least(x, EXP_ENDS[x.dtype][0]), ahead=ahead)
        if x.dtype == "f4":  # so that 1 + r need not wait for the series
            near = b.fma(part.r * part.r, part.series, part.r + 1.0)
        else:
            near = exp_of_reduced(b, part)
        larger = scale_by_power(b, near, part.bits).as_bits()
        # below the smallest exponent the result is 0
        normal = b.intrinsic("smax", larger, larger.lift(0)).as_floats()
        # Tested by the rounded argument, which is still needed: testing x would occupy one more register.
        rare = part.bits.as_floats().compare("ugt", ROUND[x.dtype] + EXP_LARGEST[x.dtype])
        return b.rarely(rare, normal * 2.0**-ahead, "far_exp", _far_exp, x)


def _far_exp(b: MathBuilder, x: Value, halved: int = 0) -> Value:
    """Return exp(x) / 2 ** halved, scaled in two steps so that subnormal results are rounded once."""
    low, high = EXP_ENDS[x.dtype]
    part = reduce_argument(b, b.at_least(b.at_most(x, high), low))
    _, half = b.nearest(part.n, 0.5)
    return exp_of_reduced(b, part) * b.power_of_two(half) * b.power_of_two(part.bits - half - halved)


def scale_by_power(b: MathBuilder, y: Value, bits: Value) -> Value:
    """Return y times 2 to the integer in the last bits, by adding to its exponent."""
    return (y.as_bits() + (bits << MANTISSA[y.dtype])).as_floats()


def expm1(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        part = reduce_argument(b, b.as_real(x), careful=x.dtype == "f8")
        scale = b.power_of_two(part.bits)
        y = b.fma(scale, _exp_tail(b, part), b.fma(scale, part.r, scale - 1.0))
        rare = b.absolute(x).compare("ugt", EXP_LIMIT[x.dtype])
        return b.copysign(b.rarely(rare, y, "far_expm1", lambda b, x: _far_exp(b, x) - 1.0, x), x)


def exp2(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        part: ReducedArgument = b.once("reduced by two", _reduce_by_two, b.as_real(x))
        scaled = scale_by_power(b, exp_of_reduced(b, part), part.bits)
        rare = b.absolute(x).compare("ugt", EXP2_LIMIT[x.dtype])
        return b.rarely(rare, scaled, "far_exp2", _far_exp2, x)


def _reduce_by_two(b: MathBuilder, x: Value) -> ReducedArgument:
    """Reduce x * log(2) for exp."""
    n, bits = b.nearest(x, 1.0)
    f = x - n
    r = f * math.log(2)
    rest = b.fma(f, 2.3190468138462996e-17, b.exact_fma(f, math.log(2), -r)) if x.dtype == "f8" else None
    return ReducedArgument(n, bits, r, b.fit_polynomial(TAIL[x.dtype], r), rest)


def _far_exp2(b: MathBuilder, x: Value) -> Value:
    end = 160.0 if x.dtype == "f4" else 1100.0
    part = _reduce_by_two(b, b.at_least(b.at_most(x, end), -end))
    _, half = b.nearest(part.n, 0.5)
    return exp_of_reduced(b, part) * b.power_of_two(half) * b.power_of_two(part.bits - half)


# ---- log


def split_number(x: Value) -> SplitNumber:
    half, mask = (0x3F3504F3, 0x7FFFFF) if x.dtype == "f4" else (0x3FE6A09E667F3BCD, 0xFFFFFFFFFFFFF)
    bits = x.as_bits()  # relative to the bits of sqrt(1/2)
    if x.dtype == "f4":
        away = bits - half
        exponent = away >> 23
        return SplitNumber(((away & mask) + half).as_floats(), exponent.cast("f4"), exponent << 23)
    # a CPU may have no arithmetic shift of 64-bit lanes, nor a conversion to floats
    away = bits + ((1 << 62) - half)
    raised = away.like(away.name, "u8") >> 52
    raised = raised.like(raised.name, "i8")
    e = (raised | 0x4330000000000000).as_floats() - (4503599627370496.0 + 1024)
    return SplitNumber(((away & mask) + half).as_floats(), e, (raised - 1024) << 52)


def _log_near(b: MathBuilder, f: Value, e: Value, low: Value | None = None) -> Value:
    """Return log((1 + f + low) * 2 ** e); in float32 without ``low``."""
    first, second = LN2[f.dtype]
    if f.dtype == "f4":
        z = f * f
        y = z * f * b.fit_polynomial(fit.LOG_F4, f)
        y = b.fma(z, -0.5, b.fma(e, second, y))
        return b.fma(e, first, f + y)
    s, beyond = _log_by_quotient(b, f)
    small = e * second if low is None else b.fma(e, second, low)
    return b.fma(e, first, f + b.fma(s, beyond, small))


def _log_by_quotient(b: MathBuilder, f: Value) -> tuple[Value, Value]:
    """Return two numbers whose product is log(1 + f) - f."""
    s = f / (f + 2.0)
    z = s * s
    return s, b.fma(z, b.fit_polynomial(fit.LOG_F8, z), -f)


def _log_in_base(b: MathBuilder, x: Value, name: str, near: Callable[..., Value]) -> Value:
    with b.code.exactly():
        part = split_number(b.as_real(x))
        y = near(b, part.m - 1.0, part.e)
        return b.rarely(b.is_not_normal(x), y, f"far_{name}", lambda b, x: _far_log(b, x, near), x)


def _far_log(b: MathBuilder, x: Value, near: Callable[..., Value]) -> Value:
    """Return the logarithm of any number; ``near`` computes that of a normal one."""
    raised = MANTISSA[x.dtype] + 1
    small = x.compare("olt", LEAST[x.dtype])
    part = split_number(b.select(small, x * 2.0**raised, x))
    y = near(b, part.m - 1.0, b.select(small, part.e - float(raised), part.e))
    y = b.select(x.compare("uge", math.inf), x, y)
    y = b.select(x.compare("olt", 0.0), math.nan, y)
    return b.select(x.compare("oeq", 0.0), -math.inf, y)


def log(b: MathBuilder, x: Value) -> Value:
    return _log_in_base(b, x, "log", _log_near)


def log2(b: MathBuilder, x: Value) -> Value:
    return _log_in_base(b, x, "log2", _log2_near)


def log10(b: MathBuilder, x: Value) -> Value:
    return _log_in_base(b, x, "log10", _log10_near)


def _log2_near(b: MathBuilder, f: Value, e: Value) -> Value:
    high, low = _scale_log(b, f, LOG2E_TWO)
    total = e + high
    return total + (((e - total) + high) + low)


def _log10_near(b: MathBuilder, f: Value, e: Value) -> Value:
    high, low = _scale_log(b, f, LOG10E_TWO)
    first, second = LOG10_2[f.dtype]
    whole = e * first
    total = whole + high
    return total + (((whole - total) + high) + b.fma(e, second, low))


def _scale_log(b: MathBuilder, f: Value, scale: tuple[float, float]) -> tuple[Value, Value]:
    """Return log(1 + f) * scale; both the scale and the result are sums of two numbers."""
    if f.dtype == "f4":
        z = f * f
        rest = b.fma(z, -0.5, z * f * b.fit_polynomial(fit.LOG_F4, f))
        high = f * scale[0]
        return high, b.fma(rest, scale[0], b.exact_fma(f, scale[0], -high) + f * _compute_rounding_error(scale[0]))
    s, beyond = _log_by_quotient(b, f)
    total = b.exact_fma(s, beyond, f)
    low = b.exact_fma(s, beyond, f - total)
    product = total * scale[0]
    return product, b.fma(total, scale[1], b.fma(low, scale[0], b.exact_fma(total, scale[0], -product)))


def log1p(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        sign = b.as_real(x).as_bits() & -(1 << (x.bits - 1))
        return (_log_of_sum(b, x).as_bits() | sign).as_floats()


def _log_of_sum(b: MathBuilder, x: Value, low: Value | None = None) -> Value:
    """Return log(1 + x + low) without rounding the sum, for x up to 1e37 (in float64 1e300)."""
    y = _log_near(b, *_split_sum(b, x, low))
    rare = b.is_not_normal(x + 1.0, LARGE[x.dtype])
    return b.rarely(rare, y, "far_log1p", _far_log1p, x)


def _split_sum(b: MathBuilder, x: Value, low: Value | None) -> tuple[Value, Value, Value]:
    """Return f, e and rest with 1 + x + low = (1 + f + rest) * 2 ** e."""
    u = x + 1.0
    part = split_number(u)
    scale = (x.lift(0).as_bits() - part.up + BITS_OF_ONE[x.dtype]).as_floats()
    if low is None:
        factor, near = x, scale - 1.0
    else:
        factor, near = x - (u - 1.0) + low, part.m - 1.0
    f = b.fma(factor, scale, near)  # a product by a power of two is exact
    return f, part.e, b.fma(factor, scale, near - f)


def _far_log1p(b: MathBuilder, x: Value) -> Value:
    large = x.compare("uge", LARGE[x.dtype])
    return _far_log(b, b.select(large, x, x + 1.0), _log_near)


def logaddexp(b: MathBuilder, x: Value, y: Value) -> Value:
    return _log_of_sum_of_exps(b, x, y, exp, 1.0, math.log(2))


def logaddexp2(b: MathBuilder, x: Value, y: Value) -> Value:
    return _log_of_sum_of_exps(b, x, y, exp2, math.log(2), 1.0)


def _log_of_sum_of_exps(
    b: MathBuilder, x: Value, y: Value, exp: Callable[[MathBuilder, Value], Value], base: float, equal: float
) -> Value:
    """Return log(exp(x) + exp(y)), as the larger argument plus log(1 + exp(-difference)).

    The difference of two equal infinities, which is NaN, is not used.
    """
    with b.code.exactly():
        x, y = b.as_reals(x, y)
        first = x.compare("ogt", y)
        larger, smaller = b.select(first, x, y), b.select(first, y, x)
        away, lost = _add_exactly(larger, -smaller)
        e = exp(b, -away)
        low = b.select(away.compare("oeq", math.inf), 0.0, e * (lost * -base))
        f, exponent, rest = _split_sum(b, e, low)
        if x.dtype == "f4":
            log = _log_near(b, f, exponent)
            total = larger + log if base == 1.0 else b.fma(log, LOG2E, larger)
        else:
            high, low = _log_of_split(b, f, exponent, rest)
            if base != 1.0:
                log, product = high, high * LOG2E
                low = b.fma(low, LOG2E, b.fma(log, LOG2E_TWO[1], b.exact_fma(log, LOG2E, -product)))
                high = product
            total, lost = _add_exactly(larger, high)
            total = b.select(total.compare("oeq", math.inf), total, total + (lost + low))
        return b.select(x.compare("oeq", y), x + equal, total)


def _add_exactly(x: Value, y: Value) -> tuple[Value, Value]:
    """Return a sum and its rounding error."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _log_of_split(b: MathBuilder, f: Value, e: Value, low: Value) -> tuple[Value, Value]:
    """Return log((1 + f + low) * 2 ** e) of float64 as a sum of two numbers."""
    first, second = LN2["f8"]
    s, beyond = _log_by_quotient(b, f)
    rest = b.fma(s, beyond, b.fma(e, second, low))
    near, whole = f + rest, e * first
    total = whole + near
    return total, ((whole - total) + near) + ((f - near) + rest)


# ---- hyperbolic


def tanh(b: MathBuilder, x: Value) -> Value:
    """Return tanh(x) as (p - 1 + (p + 1) * u) / (p + 1 + (p - 1) * u), where abs(x) = n * log(2) / 2 + r.

    p is 2 ** n, and u is tanh(r), a polynomial.  Near 0 n is 0, and the quotient is u; in float64 for results up to
    0.25, and those from 0.5 on are 1 minus a quotient: rounding errors are smaller so.
    """
    with b.code.exactly():
        is_single = x.dtype == "f4"
        sign = b.as_real(x).as_bits() & -(1 << (x.bits - 1))
        a = b.at_most(b.absolute(x), 10.0 if is_single else 20.0)
        n, bits = b.nearest(a if is_single else a - math.log(2) / 8.0, 2.0 * LOG2E)
        first, second = LN2[x.dtype]
        r = b.fma(n, -second / 2.0, b.fma(n, -first / 2.0, a))
        square = r * r
        u = b.fma(square * r, b.polynomial(fit.TANH_F4 if is_single else fit.TANH_F8, square), r)
        p = b.power_of_two(bits)
        less, more = p - 1.0, p + 1.0
        over, under = b.fma(more, u, less), b.fma(less, u, more)
        if is_single:
            y = over / under
        else:
            far = a.compare("ogt", 0.55)
            y = b.select(far, 1.0, 0.0) + b.select(far, b.fma(u, 2.0, -2.0), over) / under
        return (y.as_bits() | sign).as_floats()


def _reduce_hyperbolic(b: MathBuilder, x: Value) -> tuple[Value, ...]:
    """Return sinh and cosh of n * log(2), their rounding errors, r, sinh(r) - r and cosh(r) - 1."""
    a = b.absolute(x)
    n, bits = b.nearest(a, LOG2E)
    first, second = LN2[x.dtype]
    higher = b.fma(n, -first, a)
    r = b.fma(n, -second, higher)
    rest = b.fma(n, -second, higher - r)
    z = r * r
    single = x.dtype == "f4"
    odd = b.fma(z * r, b.fit_polynomial(fit.SINH_F4 if single else fit.SINH_F8, z), rest)
    even = z * b.fit_polynomial(fit.COSH_F4 if single else fit.COSH_F8, z)
    up, down = b.power_of_two(bits) * 0.5, b.power_of_two(x.lift(0).as_bits() - bits) * 0.5
    sinh, cosh = up - down, up + down
    return sinh, cosh, (up - sinh) - down, (up - cosh) + down, r, odd, even


def sinh(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        sinh, cosh, lost, _, r, odd, even = b.once("hyperbolic", _reduce_hyperbolic, b.as_real(x))
        y = b.exact_fma(cosh, r, sinh) + b.fma(sinh, even, b.fma(cosh, odd, lost))
        rare = b.absolute(x).compare("ogt", 87.0 if x.dtype == "f4" else 708.0)
        return b.copysign(b.rarely(rare, y, "far_hyperbolic", _far_hyperbolic, x), x)


def cosh(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        sinh, cosh, _, lost, r, odd, even = b.once("hyperbolic", _reduce_hyperbolic, b.as_real(x))
        y = b.exact_fma(sinh, r, cosh) + b.fma(cosh, even, b.fma(sinh, odd, lost))
        rare = b.absolute(x).compare("ogt", 87.0 if x.dtype == "f4" else 708.0)
        return b.rarely(rare, y, "far_hyperbolic", _far_hyperbolic, x)


def _far_hyperbolic(b: MathBuilder, x: Value) -> Value:
    """Return exp(abs(x)) / 2, which is both abs(sinh(x)) and cosh(x) for large arguments."""
    return _far_exp(b, b.absolute(x), 1)


def arcsinh(b: MathBuilder, x: Value) -> Value:
    """Return arcsinh(x) as log(1 + t) with t = a + a**2 / (1 + sqrt(1 + a**2)) and a = abs(x)."""
    with b.code.exactly():
        a = b.absolute(b.as_real(x))
        w = a * a / (b.sqrt(b.fma(a, a, 1.0)) + 1.0)
        t = a + w
        y = _log_of_sum(b, t, (a - t) + w)
        rare = a.compare("ogt", 1e18 if x.dtype == "f4" else 1e150)
        return b.copysign(b.rarely(rare, y, "far_arcsinh", b.by_library("asinh"), a), x)


def arccosh(b: MathBuilder, x: Value) -> Value:
    """Return arccosh(x) as log(1 + t + sqrt(2 * t + t**2)) with t = x - 1."""
    with b.code.exactly():
        t = b.as_real(x) - 1.0
        square = b.fma(t, t, t + t)
        w = b.sqrt(square)
        u = w + t
        low = (w - u) + t
        if x.dtype == "f8":  # with the rounding error of the square root
            low = b.fma(b.exact_fma(-w, w, square), 0.5 / (w + LEAST["f8"]), low)
        y = _log_of_sum(b, u, low)
        rare = x.compare("ult", 1.0) | x.compare("ogt", 1e18 if x.dtype == "f4" else 1e150)
        return b.rarely(rare, y, "far_arccosh", b.by_library("acosh"), x)


def arctanh(b: MathBuilder, x: Value) -> Value:
    """Return arctanh(x) as half of log(1 + t) with t = 2 * a / (1 - a) and a = abs(x)."""
    with b.code.exactly():
        a = b.absolute(b.as_real(x))
        d = 1.0 - a
        over = 1.0 / d
        t = (a + a) * over
        low = b.fma(-t, (1.0 - d) - a, b.exact_fma(-t, d, a + a)) * over
        y = _log_of_sum(b, t, low) * 0.5
        rare = a.compare("uge", 1.0)
        return b.copysign(b.rarely(rare, y, "far_arctanh", b.by_library("atanh"), a), x)


def _compute_rounding_error(x: float) -> float:
    """Return the rounding error of a number in float32."""
    return float(x - float(np.float32(x)))
