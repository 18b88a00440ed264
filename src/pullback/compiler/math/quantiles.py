"""Inverses of the error function and of the normal distribution function, on vectors."""

from __future__ import annotations

import math

from pullback.compiler.builder import Value
from pullback.compiler.math import coefficients as fit
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.math.exp_log import log

MIDDLE = math.exp(-5)  # where 1 - x * x is larger, erfinv is x times a polynomial of log(1 - x * x)
CENTER = {"f4": fit.ERFINV_F4, "f8": fit.ERFINV_F8}
TAIL = {"f4": (0.26, fit.ERFCINV_F4), "f8": (0.29, fit.ERFCINV_F8)}  # in f4 for all that are left
FAR = 6.1  # the square root of the logarithm from which on another polynomial is used in float64


def erfinv(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        x = b.as_real(x)
        result = _invert(b, x, (1.0 - x) * (x + 1.0), 1.0 - b.absolute(x))
        return result + 0.0  # at -0 it is 0, as in SciPy


def ndtri(b: MathBuilder, x: Value) -> Value:
    with b.code.exactly():
        x = b.as_real(x)
        rest = 1.0 - x
        tail = b.select(x.compare("olt", 0.5), x, rest)
        return _invert(b, x * 2.0 - 1.0, x * 4.0 * rest, tail * 2.0) * math.sqrt(2)


def _invert(b: MathBuilder, x: Value, product: Value, tail: Value) -> Value:
    """Return erfinv(x); ``product`` is 1 - x * x and ``tail`` is 1 - abs(x), without rounding errors if small."""
    shift, outside = TAIL[x.dtype]
    is_central = product.compare("ogt", MIDDLE)
    w = -log(b, b.select(is_central, product, tail))
    near = x * b.fit_polynomial(CENTER[x.dtype], w - 2.5)
    root = b.sqrt(w)
    ratio = b.fit_polynomial(outside, 1.0 / root - shift)
    if x.dtype == "f8":
        ratio = b.rarely(root.compare("ogt", FAR), ratio, "far_quantile", _far_quantile, root)
    return b.select(is_central, near, b.copysign(root * ratio, x))


def _far_quantile(b: MathBuilder, root: Value) -> Value:
    return b.fit_polynomial(fit.ERFCINV_FAR_F8, 1.0 / root - 0.1)
