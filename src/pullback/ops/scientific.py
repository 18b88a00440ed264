"""More elementwise functions of NumPy: logarithms, ``cbrt``, ``hypot``, ``logaddexp``, ``fmod``, ``nextafter``."""

from __future__ import annotations

from math import log as ln
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import elementwise1, elementwise2
from pullback.core.calculus import partials
from pullback.core.lowering import opaque
from pullback.core.op import op
from pullback.numerics.adjoints import make_zero_cotangent

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Value

__all__ = ["cbrt", "fmod", "hypot", "log10", "log2", "logaddexp", "logaddexp2", "nextafter"]

LN2, LN10 = ln(2), ln(10)


@op(np.log2, acts=elementwise1, domain=(0.5, 3.0), d=partials(lambda x: 1 / (x * LN2)))
def log2(x: TensorLike, /) -> Any:
    """Return the logarithm to the base 2.

    x: a tensor, an array or a number.

    >>> np.log2(pb.tensor([8.0]))
    Tensor([3.], dtype=float32)
    """


@op(np.log10, acts=elementwise1, domain=(0.5, 3.0), d=partials(lambda x: 1 / (x * LN10)))
def log10(x: TensorLike, /) -> Any:
    """Return the logarithm to the base 10.

    x: a tensor, an array or a number.

    >>> np.log10(pb.tensor(np.array([1000.0])))
    Tensor([3.], dtype=float64)
    """


@op(np.cbrt, acts=elementwise1, domain=(0.5, 3.0), d=partials(lambda z: 1 / (3 * (z * z))))
def cbrt(x: TensorLike, /) -> Any:
    """Return the cube root.

    x: a tensor, an array or a number.

    >>> np.cbrt(pb.tensor([-8.0]))
    Tensor([-2.], dtype=float32)
    """


def _divide_or_zero(x: Value, z: Value) -> Any:
    """Return ``x / z``, and 0 where both are 0."""
    nothing = z == 0
    return np.where(nothing, z, x / np.where(nothing, z + 1, z))


@op(
    np.hypot,
    acts=elementwise2,
    domain=(0.5, 2.0),
    d=partials(lambda x, z: _divide_or_zero(x, z), lambda y, z: _divide_or_zero(y, z)),
)
def hypot(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the length ``sqrt(x**2 + y**2)``; its derivative at the origin is 0, as that of a norm.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> np.hypot(pb.tensor([3.0]), 4.0)
    Tensor([5.], dtype=float32)
    """


@op(np.logaddexp, acts=elementwise2, d=partials(lambda x, z: np.exp(x - z), lambda y, z: np.exp(y - z)))
def logaddexp(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``log(exp(x) + exp(y))``, without overflow.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> np.logaddexp(pb.tensor([1000.0]), 0.0)
    Tensor([1000.], dtype=float32)
    """


@op(np.logaddexp2, acts=elementwise2, d=partials(lambda x, z: 2.0 ** (x - z), lambda y, z: 2.0 ** (y - z)))
def logaddexp2(x: TensorLike, y: TensorLike, /) -> Any:
    """Return ``log2(2**x + 2**y)``, without overflow.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> np.logaddexp2(pb.tensor([3.0]), 3.0)
    Tensor([4.], dtype=float32)
    """


@op(np.fmod, acts=elementwise2, domain=(0.5, 2.0), d=partials(1, lambda x, y: -np.trunc(x / y)))
def fmod(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the remainder with the sign of ``x``.

    x: a tensor, an array or a number.
    y: the same; broadcast against ``x``.

    >>> np.fmod(pb.tensor([-7.0]), 3.0)
    Tensor([-1.], dtype=float32)
    """


@op(np.nextafter, acts=elementwise2, d=partials(1, lambda g: make_zero_cotangent(g)), lower=opaque())
def nextafter(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the next floating-point number after ``x`` in the direction of ``y``; its derivative by ``x`` is 1.

    >>> pb.nextafter(1.0, 2.0) - 1.0 == np.finfo(float).eps
    np.True_
    """
