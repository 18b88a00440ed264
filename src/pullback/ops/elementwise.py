"""Elementwise arithmetic, powers and rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.axes import elementwise1, elementwise2, elementwise3, keeps_shape
from pullback.core.calculus import partials, rule
from pullback.core.convert import join_array
from pullback.core.lowering import scalar
from pullback.core.memory import Scratch
from pullback.core.op import alias, method, observable, op
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS, Tensor
from pullback.errors import ArgumentError
from pullback.numerics.adjoints import make_zero_cotangent, multiply_real, replace_zeros, select

if TYPE_CHECKING:
    from pullback.typing import Array, ArrayOrNumber, Operand, TensorLike, Value

NUMBERS = frozenset({np.float32, np.float64})
MAX_COMPILED_EXPONENT = 64  # of integers, whose powers compile as products
MAX_SLOW_POWERS = 32  # elements for which the slow power of negative numbers does not matter

__all__ = [
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "div_no_nan", "add_n",
    "squared_difference", "mod", "remainder", "floor_div", "floor_divide", "maximum", "minimum",
    "neg", "negative", "abs", "absolute", "sign", "square", "cube", "sqrt", "rsqrt", "reciprocal", "pow", "power",
    "exp", "expm1", "log", "log1p", "clip_by_value", "clip", "round", "ceil", "floor",
]  # fmt: skip


@op(np.add, acts=elementwise2, d=partials(1, 1), lower=scalar(lambda s, x, y: x + y))
def add(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the sum ``x + y``, element by element.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.add(2.0, 3.0)
    np.float64(5.0)
    """


@op(np.subtract, acts=elementwise2, d=partials(1, -1), lower=scalar(lambda s, x, y: x - y))
def sub(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the difference ``x - y``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.sub(2.0, 3.0)
    np.float64(-1.0)
    """


@op(np.multiply, acts=elementwise2, d=partials(lambda y: y, lambda x: x), lower=scalar(lambda s, x, y: x * y))
def mul(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the product ``x * y``, element by element.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.mul(2.0, 3.0)
    np.float64(6.0)
    """


@op(
    np.divide,
    acts=elementwise2,
    domain=(0.5, 2.0),
    d=partials(lambda y: 1 / y, lambda z, y: -z / y),
    lower=scalar(lambda s, x, y: x / y),
)
def div(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the quotient ``x / y``; it is a float for integers too, as in Python.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.div(3.0, 2.0)
    np.float64(1.5)
    """


def _divide_or_zero(x: Operand, y: Operand) -> Any:
    """Return ``x / y``, and 0 where ``y`` is 0, without warnings."""
    empty = y == 0
    return select(empty, 0, x / select(empty, 1, y))


@op(
    _divide_or_zero,
    acts=elementwise2,
    domain=(0.5, 2.0),
    d=partials(lambda g, y: _divide_or_zero(g, y), lambda g, z, y: -_divide_or_zero(g * z, y)),
    lower=scalar(lambda s, x, y: s.select(s.equal(y, 0), 0, x / y)),
)
def div_no_nan(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the quotient ``x / y``, and 0 where ``y`` is 0; the derivatives there are 0 too.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.div_no_nan(np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """


@observable
def add_n(tensors: Sequence[TensorLike]) -> Any:
    """Return the sum of a list of tensors.

    tensors: a list of tensors or arrays.

    >>> pb.add_n([np.array([1.0, 2.0]), np.array([3.0, 4.0]), 1.0])
    array([5., 7.])
    """
    if not isinstance(tensors, list | tuple):
        got = type(tensors).__name__
        raise ArgumentError(f"add_n: tensors must be a list of tensors, got {got}. Write add_n([x, y]).")
    if not tensors:
        raise ArgumentError("add_n: tensors is an empty list; give at least one tensor.")
    z = join_array(tensors[0]) if isinstance(tensors[0], ARRAYS) else as_tensor(tensors[0])
    for x in tensors[1:]:
        z = add(z, x)
    return z


def _squared_difference(x: ArrayOrNumber, y: Array) -> Any:
    d = x - y
    return d * d


@op(
    _squared_difference,
    acts=elementwise2,
    d=partials(lambda g, x, y: (g + g) * (x - y), lambda g, x, y: (g + g) * (y - x)),
    lower=scalar(lambda s, x, y: (x - y) * (x - y)),
)
def squared_difference(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``(x - y) ** 2``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.squared_difference(5.0, 2.0)
    np.float64(9.0)
    """


@op(np.remainder, acts=elementwise2, domain=(0.5, 2.0), d=partials(1, lambda g, x, y: -(g * np.floor_divide(x, y))))
def mod(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the remainder of ``x // y``, with the sign of ``y``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.mod(np.array([5.0, -5.0]), 3.0)
    array([2., 1.])
    """


def _divide_rounding_down(x: Any, y: Any) -> Any:
    """Return the quotient rounded down, as NumPy does, but of infinities as the Array API and TensorFlow.js do."""
    z = np.floor_divide(x, y)
    if z.dtype.kind != "f" or (np.isfinite(x).all() and np.isfinite(y).all()):
        return z
    return np.where(np.isinf(x) | np.isinf(y), np.floor(np.divide(x, y)), z)[()]


@op(
    np.floor_divide,
    acts=elementwise2,
    domain=(0.5, 2.0),
    d=partials(lambda g: make_zero_cotangent(g), lambda g: make_zero_cotangent(g)),
    run=_divide_rounding_down,
)
def floor_div(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the quotient rounded down; its derivative is 0 between the jumps.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.floor_div(np.array([5.0, -5.0]), 3.0)
    array([ 1., -2.])
    """


@op(
    np.maximum,
    acts=elementwise2,
    d=partials(
        lambda g, x, y: (g * (x > y) + g * (x >= y)) * 0.5,
        lambda g, x, y: (g * (x < y) + g * (x <= y)) * 0.5,
    ),
)
def maximum(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the elementwise maximum; where both are equal, each gets half of the gradient.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.maximum(np.array([1.0, 4.0]), 2.0)
    array([2., 4.])
    """


@op(
    np.minimum,
    acts=elementwise2,
    d=partials(
        lambda g, x, y: (g * (x < y) + g * (x <= y)) * 0.5,
        lambda g, x, y: (g * (x > y) + g * (x >= y)) * 0.5,
    ),
)
def minimum(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the elementwise minimum; where both are equal, each gets half of the gradient.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> pb.minimum(np.array([1.0, 4.0]), 2.0)
    array([1., 2.])
    """


# ---- of one argument


@op(np.negative, acts=elementwise1, d=partials(-1), lower=scalar(lambda s, x: -x))
def neg(x: TensorLike, /) -> Any:
    """Return the negative, ``-x``.

    x: a tensor, an array or a number.

    >>> pb.neg(2.0)
    np.float64(-2.0)
    """


@op(
    np.absolute, acts=elementwise1, d=rule(lambda g, x: g * np.sign(x), jvp=lambda dx, x: multiply_real(np.sign(x), dx))
)
def abs(x: TensorLike, /) -> Any:
    """Return the absolute value (the modulus of complex numbers); its derivative at 0 is 0.

    x: a tensor, an array or a number.

    >>> pb.abs(-2.0)
    np.float64(2.0)
    """


def _push_direction(t: Array, z: Value, x: Value) -> Any:
    """Return the tangent of the direction ``z = x / abs(x)`` for the tangent ``t`` of ``x``."""
    return (t - z * multiply_real(z, t)) * (x != 0) / replace_zeros(np.absolute(x))


def _sign(x: Array) -> Any:
    return np.subtract(x > 0, x < 0, dtype=x.dtype) if x.dtype.kind == "f" else np.sign(x)


@op(
    _sign,
    acts=elementwise1,
    d=rule(
        lambda g, x: _push_direction(g, np.conjugate(np.sign(x)), x) if x.dtype.kind == "c" else make_zero_cotangent(g),
        jvp=lambda dx, x: _push_direction(dx, np.sign(x), x) if x.dtype.kind == "c" else make_zero_cotangent(dx),
    ),
    lower=scalar(lambda s, x: s.select(s.greater(x, 0), 1, s.select(s.less(x, 0), -1, 0))),
)
def sign(x: TensorLike, /) -> Any:
    """Return the sign, -1, 0 or 1; 0 for NaN, as in TensorFlow.js (``np.sign`` gives NaN); ``x / abs(x)`` if complex.

    x: a tensor, an array or a number.

    >>> pb.sign(-3.0)
    np.float64(-1.0)
    """


@op(np.square, acts=elementwise1, d=partials(lambda x: x + x), run=lambda x: x * x, lower=scalar(lambda s, x: x * x))
def square(x: TensorLike, /) -> Any:
    """Return the square.

    x: a tensor, an array or a number.

    >>> pb.square(3.0)
    np.float64(9.0)
    """


def _cube(x: Array) -> Any:
    return x * x * x


@op(_cube, acts=elementwise1, d=partials(lambda g, x: g * (x * x) * 3), run=_cube, lower=scalar(lambda s, x: x * x * x))
def cube(x: TensorLike, /) -> Any:
    """Return the third power; ``x ** 3`` calls it, as two products are many times faster than a power.

    x: a tensor, an array or a number.

    >>> pb.cube(3.0)
    np.float64(27.0)
    """


@op(np.sqrt, acts=elementwise1, domain=(0.5, 3.0), d=partials(lambda g, z: g / (z + z)))
def sqrt(x: TensorLike, /) -> Any:
    """Return the square root; its derivative at 0 is infinite.

    x: a tensor, an array or a number.

    >>> pb.sqrt(9.0)
    np.float64(3.0)
    """


@op(
    lambda x: np.reciprocal(np.sqrt(x)),
    acts=elementwise1,
    domain=(0.5, 3.0),
    d=partials(lambda g, z, x: -(g * z) / (x + x)),
    lower=scalar(lambda s, x: 1 / s.sqrt(x)),
)
def rsqrt(x: TensorLike, /) -> Any:
    """Return ``1 / sqrt(x)``.

    x: a tensor, an array or a number.

    >>> pb.rsqrt(4.0)
    np.float64(0.5)
    """


def _reciprocal(x: Array) -> Any:
    return np.reciprocal(x) if x.dtype.kind == "f" else 1 / x


@op(
    _reciprocal,
    acts=elementwise1,
    domain=(0.5, 3.0),
    d=partials(lambda g, z: -(g * (z * z))),
    lower=scalar(lambda s, x: 1 / x),
)
def reciprocal(x: TensorLike, /) -> Any:
    """Return ``1 / x``; it is a float for integers too (``np.reciprocal`` returns an integer).

    x: a tensor, an array or a number.

    >>> pb.reciprocal(4.0)
    np.float64(0.25)
    """


def _power(x: Array, y: Any) -> Any:
    """Return ``np.power``, by products for small exponents, which is many times faster."""
    if type(x) in NUMBERS and type(y) in NUMBERS:
        return x**y
    kinds = {int: "iufc", float: "fc"}.get(type(y))
    if kinds and y in (2, 3) and hasattr(x, "dtype") and x.dtype.kind in kinds:
        return x * x if y == 2 else x * x * x
    if type(x) in (ndarray, Scratch) and x.size > MAX_SLOW_POWERS and x.dtype.kind == "f" and _is_whole(y):
        z = np.power(np.abs(x), y)  # NumPy may take twenty times as long for negative numbers
        return np.copysign(z, x) if y % 2 else z
    return np.square(x) if type(y) is int and y == 2 else np.power(x, y)  # of bools NumPy's x ** 2 is no power


def _is_whole(y: Any) -> bool:
    """Return whether an exponent is one whole number, not too large to be odd."""
    real = type(y) in (float, int) or (isinstance(y, ndarray | np.generic) and not y.ndim and y.dtype.kind in "fi")
    return bool(real and abs(y) < 2**24 and y == int(y))


def _differentiate_by_base(x: Any, y: Any) -> Any:
    """Return ``y * x ** (y - 1)``, and 0 for the exponent 0."""
    if getattr(y, "shape", ()) or isinstance(y, Tensor):
        flat = (y == 0) & (x == 0) if y.dtype.kind in "fc" else y == 0  # an integer has no reciprocal
        return x ** np.where(flat, 0, y - 1) * y
    if y == 0:
        return make_zero_cotangent(x) if isinstance(x, Tensor | ndarray) else 0.0
    if y == 2:
        return x * y
    raised = pow if isinstance(x, Tensor) else _power
    return raised(x, (y if np.iscomplexobj(y) else float(y)) - 1) * y


def _differentiate_by_exponent(z: Value, x: Value) -> Any:
    """Return ``z * log(x)``, and 0 for a base that is not positive."""
    if z.dtype.kind == "c":
        return np.where(x == 0, 0, z) * np.log(np.where(x == 0, 1, x) + 0j)
    out = x <= 0
    return np.where(out, 0, z) * np.log(np.where(out, 1, x))


@op(
    np.power,
    acts=elementwise2,
    domain=(0.5, 2.0),
    d=partials(_differentiate_by_base, _differentiate_by_exponent),
    run=_power,
    shortcuts={2: np.square, 3: _cube, 0.5: np.sqrt, -1: _reciprocal},
    lower=scalar(
        lambda s, x, y: s.power(x, y),
        fits=lambda dtypes, numbers: dtypes[0][0] == "f" or numbers[1] in range(1, MAX_COMPILED_EXPONENT + 1),
    ),
)
def pow(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``x`` to the power ``y``.  ``x ** 0`` has slope 0; the exponent of a base ``x <= 0`` gets gradient 0.

    >>> pb.pow(2.0, 3.0)
    np.float64(8.0)
    """


@op(np.exp, acts=elementwise1, d=partials(lambda z: z))
def exp(x: TensorLike, /) -> Any:
    """Return the exponential of ``x``.

    x: a tensor, an array or a number.

    >>> pb.exp(0.0)
    np.float64(1.0)
    """


@op(np.expm1, acts=elementwise1, d=partials(lambda g, z: g + g * z))
def expm1(x: TensorLike, /) -> Any:
    """Return ``exp(x) - 1``, accurate for small ``x`` too.

    >>> pb.expm1(1e-12)
    np.float64(1.0000000000005e-12)
    """


@op(np.log, acts=elementwise1, domain=(0.5, 3.0), d=partials(lambda x: 1 / x))
def log(x: TensorLike, /) -> Any:
    """Return the natural logarithm.

    x: a tensor, an array or a number.

    >>> pb.log(1.0)
    np.float64(0.0)
    """


@op(np.log1p, acts=elementwise1, domain=(-0.5, 2.0), d=partials(lambda x: 1 / (1 + x)))
def log1p(x: TensorLike, /) -> Any:
    """Return ``log(1 + x)``, accurate for small ``x`` too.

    >>> pb.log1p(1e-20)
    np.float64(1e-20)
    """


# ---- bounds and rounding


@op(
    np.clip,
    acts=elementwise3,
    d=partials(
        lambda g, x, clip_value_min, clip_value_max: select((x >= clip_value_min) & (x <= clip_value_max), g, 0),
        lambda g, x, clip_value_min, clip_value_max: select(
            (x < clip_value_min) & (clip_value_min <= clip_value_max), g, 0
        ),
        lambda g, x, clip_value_min, clip_value_max: select(
            (x > clip_value_max) | (clip_value_min > clip_value_max), g, 0
        ),
    ),
    run=lambda x, low, high: np.minimum(np.maximum(x, low), high),
    lower=scalar(lambda s, x, low, high: s.minimum(s.maximum(x, low), high)),
)
def clip_by_value(x: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, /) -> Any:
    """Return ``x`` clipped to two bounds, which may be tensors; at a bound the gradient goes to ``x``.

    x: a tensor, an array or a number.
    clip_value_min: the least value.
    clip_value_max: the largest value.

    >>> pb.clip_by_value(np.array([-2.0, 0.5, 2.0]), -1, 1)
    array([-1. ,  0.5,  1. ])
    """


@method
def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Any:
    """Return ``x`` clipped to bounds, as ``np.clip``: ``None`` stands for no bound.

    x: a tensor, an array or a number.
    min: the least value.
    max: the largest value.

    >>> pb.clip(np.array([-2.0, 0.5, 2.0]), min=0)
    array([0. , 0.5, 2. ])
    """
    dtype = getattr(x, "dtype", np.dtype(float))
    low: Any = np.iinfo(dtype).min if dtype.kind in "iu" else False if dtype.kind == "b" else -np.inf
    high: Any = np.iinfo(dtype).max if dtype.kind in "iu" else True if dtype.kind == "b" else np.inf
    return clip_by_value(x, low if min is None else min, high if max is None else max)


def _round(x: Array, decimals: int = 0) -> Any:
    floats = np.astype(x, np.float32) if x.dtype.kind == "b" else x
    return np.rint(x) if not decimals and x.dtype.kind == "f" else np.round(floats, decimals)


@op(
    np.round,
    acts=keeps_shape({}, {"decimals": 1}),
    d=partials(lambda g: make_zero_cotangent(g)),
    run=_round,
    lower=scalar(
        lambda s, x, decimals: (
            s.rint(x * 10.0**decimals) / 10.0**decimals
            if decimals >= 0
            else s.rint(x / 10.0**-decimals) * 10.0**-decimals
        ),
        fits=lambda dtypes, numbers: dtypes[0][0] == "f",
    ),
)
def round(x: TensorLike, /, decimals: int = 0) -> Any:
    """Return the nearest integer, with ties to even, or the nearest number with so many decimals; its derivative is 0.

    x: a tensor, an array or a number.
    decimals: the number of digits after the decimal point.

    >>> pb.round(np.array([0.5, 1.5, 1.7]))
    array([0., 2., 2.])
    """


@op(np.ceil, acts=elementwise1, d=partials(lambda g: make_zero_cotangent(g)))
def ceil(x: TensorLike, /) -> Any:
    """Return the smallest integer that is not less than ``x``; its derivative is 0.

    x: a tensor, an array or a number.

    >>> pb.ceil(1.2)
    np.float64(2.0)
    """


@op(np.floor, acts=elementwise1, d=partials(lambda g: make_zero_cotangent(g)))
def floor(x: TensorLike, /) -> Any:
    """Return the largest integer that is not greater than ``x``; its derivative is 0.

    x: a tensor, an array or a number.

    >>> pb.floor(-1.2)
    np.float64(-2.0)
    """


# ---- NumPy's names

subtract = alias("subtract", sub)
multiply = alias("multiply", mul)
divide = alias("divide", div)
true_divide = alias("true_divide", div)
remainder = alias("remainder", mod)
floor_divide = alias("floor_divide", floor_div)
negative = alias("negative", neg)
absolute = alias("absolute", abs)
power = alias("power", pow)
alias("__round__", round)
