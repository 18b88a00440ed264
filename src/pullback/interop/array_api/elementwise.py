"""Elementwise functions, by the names of the Array API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import call_unfollowed, may_hold, strip
from pullback.interop.array_api.arguments import call, make_unary, name_function

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Operand, Value


def _make_binary(name: str, f: Callable[..., Any], summary: str) -> Callable[[Operand, Operand], Tensor]:
    """Return a function of two arrays, or an array and a number, under the name that the standard has for it."""

    def function(x1: Operand, x2: Operand, /) -> Tensor:
        return call(f, x1, x2)

    return name_function(function, name, summary)


def _keep_whole(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that rounds, which leaves integers as they are."""
    return lambda x: x if x.dtype.kind in "iub" else f(x)


def _expm1(x: Any) -> Any:
    """Return exp(x) - 1; of complex numbers that are 0 or not finite as the standard says, not as NumPy."""
    if x.dtype.kind != "c":
        return np.expm1(x)
    finite = np.isfinite(strip(x))
    if not may_hold(~finite):
        return np.expm1(x) + complex(0.0, -0.0)  # -0 is made 0 in the real part
    return np.where(finite, _expm1(np.where(finite, x, 0)), np.exp(np.where(finite, 0, x)) - 1)


def _tanh(x: Any) -> Any:
    """Return tanh(x); of complex numbers with an infinite real part 1 or -1, with the sign of zero that x has."""
    if x.dtype.kind != "c":
        return np.tanh(x)
    infinite = np.isinf(strip(np.real(x)))
    if not may_hold(infinite):
        return np.tanh(x)

    def find_limit(x: Any) -> Any:
        limit = np.copysign(1.0, x.real) + 0j
        return np.where(np.signbit(x.imag), np.conjugate(limit), limit).astype(x.dtype)

    return np.where(infinite, call_unfollowed(find_limit, x), np.tanh(np.where(infinite, 0, x)))


# ---- of one array

abs = make_unary("abs", np.abs, "Return the absolute value of each element.")
acos = make_unary("acos", np.arccos, "Return the angle whose cosine is each element.")
acosh = make_unary("acosh", np.arccosh, "Return the inverse hyperbolic cosine of each element.")
asin = make_unary("asin", np.arcsin, "Return the angle whose sine is each element.")
asinh = make_unary("asinh", np.arcsinh, "Return the inverse hyperbolic sine of each element.")
atan = make_unary("atan", np.arctan, "Return the angle whose tangent is each element.")
atanh = make_unary("atanh", np.arctanh, "Return the inverse hyperbolic tangent of each element.")
bitwise_invert = make_unary("bitwise_invert", np.invert, "Return each integer with all its bits inverted.")
ceil = make_unary("ceil", _keep_whole(np.ceil), "Return each element rounded up.")
conj = make_unary("conj", np.conjugate, "Return the complex conjugate of each element.")
cos = make_unary("cos", np.cos, "Return the cosine of each element.")
cosh = make_unary("cosh", np.cosh, "Return the hyperbolic cosine of each element.")
exp = make_unary("exp", np.exp, "Return e to the power of each element.")
expm1 = make_unary("expm1", _expm1, "Return exp(x) - 1 of each element, precise near 0.")
floor = make_unary("floor", _keep_whole(np.floor), "Return each element rounded down.")
imag = make_unary("imag", np.imag, "Return the imaginary part of each element.")
isfinite = make_unary("isfinite", np.isfinite, "Return where elements are neither infinite nor NaN.")
isinf = make_unary("isinf", np.isinf, "Return where elements are infinite.")
isnan = make_unary("isnan", np.isnan, "Return where elements are NaN.")
log = make_unary("log", np.log, "Return the natural logarithm of each element.")
log1p = make_unary("log1p", np.log1p, "Return log(1 + x) of each element, precise near 0.")
log2 = make_unary("log2", np.log2, "Return the logarithm of each element to base 2.")
log10 = make_unary("log10", np.log10, "Return the logarithm of each element to base 10.")
logical_not = make_unary("logical_not", np.logical_not, "Return where elements are false.")
negative = make_unary("negative", np.negative, "Return each element with the other sign.")
positive = make_unary("positive", np.positive, "Return a copy of the elements.")
real = make_unary("real", np.real, "Return the real part of each element.")
reciprocal = make_unary("reciprocal", np.reciprocal, "Return 1 divided by each element.")
round = make_unary(
    "round", _keep_whole(np.round), "Return each element rounded to the nearest integer, halves to even."
)
sign = make_unary("sign", np.sign, "Return the sign of each element: -1, 0 or 1.")
signbit = make_unary("signbit", np.signbit, "Return where the sign bit of elements is set.")
sin = make_unary("sin", np.sin, "Return the sine of each element.")
sinh = make_unary("sinh", np.sinh, "Return the hyperbolic sine of each element.")
sqrt = make_unary("sqrt", np.sqrt, "Return the square root of each element.")
square = make_unary("square", np.square, "Return the square of each element.")
tan = make_unary("tan", np.tan, "Return the tangent of each element.")
tanh = make_unary("tanh", _tanh, "Return the hyperbolic tangent of each element.")
trunc = make_unary("trunc", _keep_whole(np.trunc), "Return each element rounded towards 0.")

# ---- of two arrays

add = _make_binary("add", np.add, "Return the sums of elements.")
atan2 = _make_binary("atan2", np.arctan2, "Return the angle of the points (x2, x1).")
bitwise_and = _make_binary("bitwise_and", np.bitwise_and, "Return the bits that both integers have.")
bitwise_left_shift = _make_binary("bitwise_left_shift", np.left_shift, "Return the bits of x1 moved up by x2 places.")
bitwise_or = _make_binary("bitwise_or", np.bitwise_or, "Return the bits that either integer has.")
bitwise_right_shift = _make_binary(
    "bitwise_right_shift", np.right_shift, "Return the bits of x1 moved down by x2 places."
)
bitwise_xor = _make_binary("bitwise_xor", np.bitwise_xor, "Return the bits that one of both integers has.")
copysign = _make_binary("copysign", np.copysign, "Return the magnitudes of x1 with the signs of x2.")
divide = _make_binary("divide", np.divide, "Return the quotients of elements.")
equal = _make_binary("equal", np.equal, "Return where elements are equal.")
floor_divide = _make_binary("floor_divide", np.floor_divide, "Return the quotients of elements, rounded down.")
greater = _make_binary("greater", np.greater, "Return where elements of x1 are greater.")
greater_equal = _make_binary("greater_equal", np.greater_equal, "Return where elements of x1 are greater or equal.")
hypot = _make_binary("hypot", np.hypot, "Return the distance of the points (x1, x2) from 0.")
less = _make_binary("less", np.less, "Return where elements of x1 are less.")
less_equal = _make_binary("less_equal", np.less_equal, "Return where elements of x1 are less or equal.")
logaddexp = _make_binary("logaddexp", np.logaddexp, "Return log(exp(x1) + exp(x2)), without overflow.")
logical_and = _make_binary("logical_and", np.logical_and, "Return where both elements are true.")
logical_or = _make_binary("logical_or", np.logical_or, "Return where either element is true.")
logical_xor = _make_binary("logical_xor", np.logical_xor, "Return where one of both elements is true.")
maximum = _make_binary("maximum", np.maximum, "Return the larger of two elements.")
minimum = _make_binary("minimum", np.minimum, "Return the smaller of two elements.")
multiply = _make_binary("multiply", np.multiply, "Return the products of elements.")
nextafter = _make_binary(
    "nextafter", np.nextafter, "Return the floating-point number next to x1 in the direction of x2."
)
not_equal = _make_binary("not_equal", np.not_equal, "Return where elements are different.")
pow = _make_binary("pow", np.power, "Return x1 to the power of x2.")
remainder = _make_binary("remainder", np.remainder, "Return the remainders of division, with the signs of x2.")
subtract = _make_binary("subtract", np.subtract, "Return the differences of elements.")


def clip(x: Value, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Return the elements clipped to limits.

    x: the array.
    min: the least value, or None for no limit.
    max: the largest value, or None for no limit.
    """
    return call(lambda x: np.clip(x, min, max), x)
