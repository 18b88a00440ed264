"""Powers, roots and the error function on vectors."""

from __future__ import annotations

import math

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import LEAST, LN2, ROUND, MathBuilder
from pullback.compiler.math.exp_log import LOG2E, exp_of_reduced, reduce_argument, scale_by_power, split_number
from pullback.errors import CompileError

BY_ROOTS = (0.5, -0.5, 1.5, -1, -2)  # exponents whose powers are computed by square roots and divisions
MAX_ROUNDED = {"f4": 6, "f8": 4}  # the largest whole exponent for which each product may be rounded
MAX_WHOLE = 64  # the largest whole exponent whose powers are products


def power(b: MathBuilder, x: Value, y: Value) -> Value:
    x, y = b.lift_both(x, y)
    exponent = y.number
    if exponent is not None and exponent in range(1, 1 + MAX_ROUNDED.get(x.dtype, MAX_WHOLE)):
        return _multiply(b, x, int(exponent))
    if x.kind != "f":
        raise CompileError("there is no machine code for powers of integers.")
    with b.code.exactly():
        if exponent == 0:
            return x.lift(1.0)
        if exponent in BY_ROOTS:
            return _power_by_root(b, x, exponent)
        if exponent is not None and abs(exponent) <= MAX_WHOLE and exponent == int(exponent):
            return _multiply_precisely(b, x, int(exponent))
        result, far = _power_of_positive(b, x, y)
        return b.rarely(b.is_not_normal(x) | far, result, "far_power", _far_power, x, y)


def _multiply(b: MathBuilder, x: Value, n: int) -> Value:
    """Return x ** n for a small positive integer n, by multiplications."""
    with b.code.exactly():
        product: Value | None = None
        while n:
            if n & 1:
                product = x if product is None else product * x
            n >>= 1
            x = x * x if n else x
        assert product is not None
        return product


def _multiply_precisely(b: MathBuilder, x: Value, n: int) -> Value:
    """Return x ** n for an integer n, by multiplications of sums of two, in which nearly nothing is lost."""
    base, rest = x, x.lift(0.0)
    if n < 0:
        base = 1.0 / x
        rest = b.exact_fma(-base, x, 1.0) * base
    result, lost = base, rest
    for digit in f"{abs(n):b}"[1:]:
        square = result * result
        result, lost = square, b.fma(result + result, lost, b.exact_fma(result, result, -square))
        if digit == "1":
            product = result * base
            lost = b.fma(lost, base, b.fma(result, rest, b.exact_fma(result, base, -product)))
            result = product
    total = result + lost
    return b.select(total.compare("ueq", 0.0), result, total)  # an infinity has lost nothing, and -0 keeps its sign


def _power_by_root(b: MathBuilder, x: Value, exponent: float | None) -> Value:
    """Return x ** exponent by a root or a quotient; x ** 0.5 is NumPy's square root for -0 and -inf too."""
    if exponent == 0.5:
        return b.sqrt(x)
    if exponent in (-1, -2):
        inverse = 1.0 / x
        return inverse if exponent == -1 else inverse * inverse
    x = x + 0.0  # -0 becomes 0
    root = b.sqrt(x)
    result, limit = (1.0 / root, 0.0) if exponent == -0.5 else (x * root, math.inf)
    return b.select(x.compare("oeq", -math.inf), limit, result)


def _far_power(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return x ** y for any x and y; where the fast path has no answer, by the C library."""
    a = b.absolute(x)
    result, far = _power_of_positive(b, a, y)
    odd = b.rint(y * 0.5).compare("une", y * 0.5)
    signed = b.select(b.rint(y).compare("oeq", y), b.select(odd, -result, result), math.nan)
    result = b.select(x.compare("olt", 0.0), signed, result)
    return b.rarely(b.is_not_normal(a) | far, result, "any_power", b.by_library("pow"), x, y)


def _power_of_positive(b: MathBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return x ** y of positive x, and the lanes in which it overflows or underflows."""
    if x.dtype == "f4":
        return _power_by_doubles(b, x, y)
    high, low = _log_in_two_parts(b, x)
    product = y * high
    low = b.fma(y, low, b.exact_fma(y, high, -product))
    part = reduce_argument(b, product, low, careful=True)
    return scale_by_power(b, exp_of_reduced(b, part), part.bits), b.absolute(product).compare("uge", 708.0)


def _power_by_doubles(b: MathBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return x ** y of positive float32, and its lanes out of range; logarithm and product are in float64."""
    part = split_number(x)
    f = (part.m - 1.0).cast("f8")
    near = b.fma(f * f, b.fma(f, b.fit_polynomial(fit.LOG_SHORT, f), -0.5), f)
    product = y.cast("f8") * b.fma(part.e.cast("f8"), math.log(2), near)
    whole, _ = b.nearest(product, LOG2E)
    r = b.fma(whole, -math.log(2), product).cast("f4")
    n = whole.cast("f4")
    result = b.fma(r * r, b.fit_polynomial(fit.EXP_F4, r), r) + 1.0
    return scale_by_power(b, result, (n + ROUND["f4"]).as_bits()), b.absolute(n).compare("uge", 126.0)


def _log_in_two_parts(b: MathBuilder, x: Value) -> tuple[Value, Value]:
    """Return log(x), by 2 * s + s**3 * (2/3 + w), as a sum of two numbers with a relative error of about 2 ** -66."""
    part = split_number(x)
    f = part.m - 1.0
    d = f + 2.0
    over = 1.0 / d
    s = f * over
    s_low = b.fma(-s, (2.0 - d) + f, b.exact_fma(-s, d, f)) * over
    z = s * s
    z_low = b.fma(s, s_low + s_low, b.exact_fma(s, s, -z))
    cube = s * z
    cube_low = b.fma(s, z_low, b.fma(s_low, z, b.exact_fma(s, z, -cube)))
    w = z * b.fit_polynomial(fit.LOG_LONG, z)
    third = 0.6666666666666666
    c = w + third
    c_low = ((third - c) + w) + 3.700743415417188e-17
    q = c * cube
    q_low = b.fma(c, cube_low, b.fma(c_low, cube, b.exact_fma(c, cube, -q)))
    twice = s + s
    near = twice + q
    near_low = ((twice - near) + q) + (s_low + s_low + q_low)
    whole = part.e * LN2["f8"][0]
    high = whole + near
    low = ((whole - high) + near) + b.fma(part.e, LN2["f8"][1], near_low)
    total = high + low
    return total, (high - total) + low


def cbrt(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        a = b.absolute(b.as_real(x))
        y = _cbrt_of_positive(b, a)
        return b.copysign(b.rarely(b.is_not_normal(a), y, "far_cbrt", _far_cbrt, a), x)


def _far_cbrt(b: MathBuilder, a: Value) -> Value:
    small = a.compare("olt", LEAST[a.dtype])
    y = _cbrt_of_positive(b, b.select(small, a * 2.0**60, a))
    y = b.select(small, y * 2.0**-20, y)
    return b.select(a.compare("oeq", 0.0) | a.compare("uge", math.inf), a, y)


def _cbrt_of_positive(b: MathBuilder, a: Value) -> Value:
    """Return the cube root of a positive number, by Newton steps for its inverse, which need no division."""
    part = split_number(a)
    third, bits = b.nearest(part.e, 1 / 3)
    m = part.m * b.power_of_two((part.e - third * 3.0 + ROUND[a.dtype]).as_bits())
    r = b.polynomial(fit.CBRT, m)
    h = b.fma(m * r, -(r * r), 1.0)
    r = b.fma(r * h, b.polynomial((14 / 81, 2 / 9, 1 / 3), h), r)
    if a.dtype == "f8":
        h = b.fma(m * r, -(r * r), 1.0)
        r = b.fma(r * h, b.fma(h, 2 / 9, 1 / 3), r)
    y = m * r * r
    square = y * y
    left = b.fma(-y, b.exact_fma(y, y, -square), b.exact_fma(-y, square, m))
    y = b.fma(left, r * r * (1 / 3), y)
    return y * b.power_of_two(bits)


def hypot(b: MathBuilder, x: Value, y: Value) -> Value:
    with b.code.exactly():
        x, y = (b.absolute(v) for v in b.as_reals(x, y))
        square = b.fma(x, x, y * y)
        low, high = (1e-30, 1e37) if x.dtype == "f4" else (1e-290, 1e307)
        rare = square.compare("ult", low) | square.compare("uge", high)
        return b.rarely(rare, b.sqrt(square), "far_hypot", _far_hypot, x, y)


def _far_hypot(b: MathBuilder, x: Value, y: Value) -> Value:
    """Return hypot by way of scaled arguments, whose squares neither overflow nor underflow."""
    larger = b.select(x.compare("ogt", y), x, y)
    up, limit = (2.0**90, 1e12) if x.dtype == "f4" else (2.0**600, 1e140)
    scale = b.select(larger.compare("olt", 1 / limit), up, x.lift(1.0))
    scale = b.select(larger.compare("ogt", limit), 1 / up, scale)
    x_scaled, y_scaled = x * scale, y * scale
    z = b.sqrt(b.fma(x_scaled, x_scaled, y_scaled * y_scaled)) / scale
    return b.select(x.compare("oeq", math.inf) | y.compare("oeq", math.inf), math.inf, z)


# ---- the error function


def erf(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        a, z = b.absolute(b.as_real(x)), x * x
        if x.dtype == "f4":
            r = b.fma(a, -1.72853470e-5, 3.83197126e-4)
            u = b.fma(a, -3.88396438e-3, 2.42546219e-2)
            r = b.fma(r, z, u)
            for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
                r = b.fma(r, a, c)
            edge, r = 0.927734375, b.fma(r, a, -a)
            near = b.polynomial(
                (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1), z
            )
        else:
            edge, r = 1.0, b.wide_polynomial(fit.ERFC_F8, b.at_most(a, 5.95))
            near = b.wide_polynomial(fit.ERF_F8, z)
        part = reduce_argument(b, b.at_least(r, -45.0))
        far = 1.0 - scale_by_power(b, exp_of_reduced(b, part), part.bits)
        return b.select(a.compare("ogt", edge), b.copysign(far, x), b.fma(near, x, x))
