"""Trigonometry: circular and hyperbolic functions, and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import elementwise1, elementwise2
from pullback.core.calculus import partials
from pullback.core.op import alias, op

if TYPE_CHECKING:
    from pullback.typing import Array, ArrayOrNumber, TensorLike

__all__ = [
    "sin", "cos", "tan", "asin", "arcsin", "acos", "arccos", "atan", "arctan", "atan2", "arctan2",
    "sinh", "cosh", "tanh", "asinh", "arcsinh", "acosh", "arccosh", "atanh", "arctanh",
]  # fmt: skip


@op(np.sin, acts=elementwise1, d=partials(lambda x: np.cos(x)))
def sin(x: TensorLike, /) -> Any:
    """Return the sine.

    x: a tensor, an array or a number.

    >>> pb.sin(0.0)
    np.float64(0.0)
    """


@op(np.cos, acts=elementwise1, d=partials(lambda g, x: -(g * np.sin(x))))
def cos(x: TensorLike, /) -> Any:
    """Return the cosine.

    x: a tensor, an array or a number.

    >>> pb.cos(0.0)
    np.float64(1.0)
    """


@op(np.tan, acts=elementwise1, domain=(-1.0, 1.0), d=partials(lambda g, z: g + g * (z * z)))
def tan(x: TensorLike, /) -> Any:
    """Return the tangent.

    x: a tensor, an array or a number.

    >>> pb.tan(0.0)
    np.float64(0.0)
    """


@op(np.arcsin, acts=elementwise1, domain=(-0.9, 0.9), d=partials(lambda x: 1 / np.sqrt((1 - x) * (1 + x))))
def asin(x: TensorLike, /) -> Any:
    """Return the inverse sine, between -π/2 and π/2.

    x: a tensor, an array or a number.

    >>> pb.asin(1.0)
    np.float64(1.5707963267948966)
    """


@op(np.arccos, acts=elementwise1, domain=(-0.9, 0.9), d=partials(lambda g, x: -g / np.sqrt((1 - x) * (1 + x))))
def acos(x: TensorLike, /) -> Any:
    """Return the inverse cosine, between 0 and π.

    x: a tensor, an array or a number.

    >>> pb.acos(1.0)
    np.float64(0.0)
    """


@op(np.arctan, acts=elementwise1, d=partials(lambda x: 1 / (1 + x * x)))
def atan(x: TensorLike, /) -> Any:
    """Return the inverse tangent, between -π/2 and π/2.

    x: a tensor, an array or a number.

    >>> pb.atan(1.0)
    np.float64(0.7853981633974483)
    """


def _divide_by_square(g: Array, b: ArrayOrNumber, r: Array) -> Any:
    return g * (b / r) / r  # the square itself could overflow, or vanish


@op(
    np.arctan2,
    acts=elementwise2,
    domain=(0.5, 2.0),
    d=partials(
        lambda g, a, b: _divide_by_square(g, b, np.hypot(a, b)),
        lambda g, a, b: -_divide_by_square(g, a, np.hypot(a, b)),
    ),
)
def atan2(a: TensorLike, b: TensorLike, /) -> Any:
    """Return the angle of the point ``(b, a)``, the inverse tangent of ``a / b``, between -π and π.

    a: the height.
    b: the width; broadcast against ``a``.

    >>> pb.atan2(1.0, -1.0)
    np.float64(2.356194490192345)
    """


@op(np.sinh, acts=elementwise1, d=partials(lambda x: np.cosh(x)))
def sinh(x: TensorLike, /) -> Any:
    """Return the hyperbolic sine.

    x: a tensor, an array or a number.

    >>> pb.sinh(0.0)
    np.float64(0.0)
    """


@op(np.cosh, acts=elementwise1, d=partials(lambda x: np.sinh(x)))
def cosh(x: TensorLike, /) -> Any:
    """Return the hyperbolic cosine.

    x: a tensor, an array or a number.

    >>> pb.cosh(0.0)
    np.float64(1.0)
    """


@op(np.tanh, acts=elementwise1, d=partials(lambda g, z: g - g * (z * z)))
def tanh(x: TensorLike, /) -> Any:
    """Return the hyperbolic tangent.

    x: a tensor, an array or a number.

    >>> pb.tanh(0.0)
    np.float64(0.0)
    """


# cosh(asinh(x)) is sqrt(1 + x*x), without the square that could overflow


@op(np.arcsinh, acts=elementwise1, d=partials(lambda z: 1 / np.cosh(z)))
def asinh(x: TensorLike, /) -> Any:
    """Return the inverse hyperbolic sine.

    x: a tensor, an array or a number.

    >>> pb.asinh(0.0)
    np.float64(0.0)
    """


@op(
    np.arccosh,
    acts=elementwise1,
    domain=(1.2, 3.0),
    d=partials(lambda x: 1 / np.sqrt((x - 1) * (x + 1) + 0)),  # + 0, as the root of -0.0 is -0.0
)
def acosh(x: TensorLike, /) -> Any:
    """Return the inverse hyperbolic cosine, which is not negative.

    x: a tensor, an array or a number.

    >>> pb.acosh(1.0)
    np.float64(0.0)
    """


@op(np.arctanh, acts=elementwise1, domain=(-0.9, 0.9), d=partials(lambda x: 1 / ((1 - x) * (1 + x))))
def atanh(x: TensorLike, /) -> Any:
    """Return the inverse hyperbolic tangent.

    x: a tensor, an array or a number.

    >>> pb.atanh(0.0)
    np.float64(0.0)
    """


# ---- NumPy's names

arcsin = alias("arcsin", asin)
arccos = alias("arccos", acos)
arctan = alias("arctan", atan)
arctan2 = alias("arctan2", atan2)
arcsinh = alias("arcsinh", asinh)
arccosh = alias("arccosh", acosh)
arctanh = alias("arctanh", atanh)
