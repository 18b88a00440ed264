"""Norms of vectors and matrices."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, reduces
from pullback.core.calculus import rule
from pullback.core.composition import check_numbers
from pullback.core.lowering import made_of
from pullback.core.op import method, op
from pullback.errors import ArgumentError
from pullback.numerics.adjoints import as_axes, invert_or_zero, multiply_real, replace_zeros, restore_axes, sum_over

if TYPE_CHECKING:
    from pullback.typing import Array, Axis, TensorLike, Value

__all__ = ["euclidean_norm", "norm"]


add_reduce: Any = np.add.reduce


def _euclidean_norm(x: Array, axis: Axis = None, keepdims: bool = False) -> Any:
    if x.dtype.kind not in "fc":  # squares of small integers overflow
        x = x.astype(float)
    if axis is None:  # as NumPy does it, to the last digit
        flat = x.ravel(order="K")
        z = np.sqrt(flat.dot(flat) if x.dtype.kind == "f" else flat.real.dot(flat.real) + flat.imag.dot(flat.imag))
        return z.reshape((1,) * x.ndim) if keepdims else z
    square = x * x if x.dtype.kind == "f" else (x.conj() * x).real
    return np.sqrt(add_reduce(square, as_axes(axis), None, None, keepdims))


def compose_euclidean_norm(x: Any, axis: Axis, keepdims: bool) -> Any:
    if x.dtype.kind != "f":
        x = np.abs(x) if x.dtype.kind == "c" else np.astype(x, np.dtype(float))
    return np.sqrt(sum_over(x * x, axis, keepdims))


@op(
    _euclidean_norm,
    acts=reduces(),
    d=rule(
        lambda g, x, z, axis: x * restore_axes(g * invert_or_zero(z), x.shape, axis),
        jvp=lambda dx, x, z, axis, keepdims: sum_over(multiply_real(x, dx), axis, keepdims) * invert_or_zero(z),
    ),
    lower=made_of(compose_euclidean_norm),
    domain=(0.5, 2.0),
)
def euclidean_norm(x: TensorLike, /, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the square root of the sum of squares; its gradient at 0 is 0.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.euclidean_norm(np.array([3.0, 4.0]))
    np.float64(5.0)
    >>> pb.grad(pb.euclidean_norm)(np.zeros(2))
    array([0., 0.])
    """


def compute_p_norm(x: Array, ord: float, axis: Axis = None, keepdims: bool = False) -> Any:
    return add_reduce(np.abs(x) ** float(ord), as_axes(axis), None, None, keepdims) ** (1 / ord)


class Powers(reduces):
    """A reduction with an exponent."""

    def samples(self) -> list[Sample]:
        return [(x, {"ord": 3 if n % 2 else 2.5, **params}) for n, (x, params) in enumerate(super().samples())]


@op(
    compute_p_norm,
    acts=Powers(),
    d=rule(
        lambda g, x, z, ord, axis: restore_axes(g, x.shape, axis) * differentiate_p_norm(x, z, ord, axis),
        jvp=lambda dx, x, z, ord, axis, keepdims: sum_over(
            multiply_real(differentiate_p_norm(x, z, ord, axis), dx), axis, keepdims
        ),
    ),
    lower=made_of(lambda x, ord, axis, keepdims: sum_over(np.abs(x) ** float(ord), axis, keepdims) ** (1 / ord)),
    domain=(0.5, 2.0),
)
def p_norm(x: TensorLike, /, ord: str | float, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``sum(abs(x) ** ord) ** (1 / ord)``, for any ``ord`` but 0; its gradient at 0 is 0.

    >>> round(float(p_norm(np.array([1.0, 2.0, 3.0]), 3)), 6)
    3.301927
    """


def differentiate_p_norm(x: Value, z: Value, ord: float, axis: Axis) -> Any:
    return np.sign(x) * (np.abs(x) / restore_axes(replace_zeros(z), x.shape, axis)) ** (ord - 1)


def check_order(ord: object, shape: tuple[int, ...], axis: Axis, matrix: bool) -> None:
    """Raise an error if ``ord`` is no order of a norm of vectors or, if ``matrix``, of matrices."""
    if not isinstance(ord, int | float | np.number) or (matrix and ord not in (1, inf, -inf)):
        expected = "'euclidean', 'fro', 1, inf or -inf for matrices" if matrix else "'euclidean', 'fro' or a number"
        raise ArgumentError(f"norm: ord must be {expected}, got {ord!r} for shape {shape} and axis={axis!r}.")


@method
def norm(x: TensorLike, ord: str | float | None = "euclidean", axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the norm of vectors or, over two axes, of matrices; without ``axis`` that of the flattened array.

    ``ord`` is ``"euclidean"`` (or 2, or ``"fro"`` for matrices), 1, ``inf``, ``-inf``, or for vectors any number.

    x: a tensor, an array or a number.
    ord: which norm, as in NumPy.
    axis: the axis or axes; all of them without it.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.norm(np.array([[3.0, 4.0], [0.0, 1.0]]), 1, [0, 1])
    np.float64(5.0)
    >>> pb.norm(np.array([3.0, -4.0]), np.inf)
    np.float64(4.0)
    """
    x = check_numbers("norm", "x", x)
    if not x.shape:
        return np.abs(x)
    named = len(axis) if isinstance(axis, list | tuple) else 1
    if named > 2:
        raise ArgumentError(
            f"norm: axis must name one axis, or two for matrices, got {axis!r}. Reshape x, or leave it out."
        )
    matrix = named == 2
    if ord is None or ord in ("euclidean", "fro") or (ord == 2 and not matrix):
        return euclidean_norm(x, axis, keepdims)
    check_order(ord, x.shape, axis, matrix)
    gone, size = as_axes(axis), np.abs(x)
    if matrix:
        size = sum_over(size, gone[0] if ord == 1 else gone[1], True)
    if ord in (inf, -inf) or matrix:
        return (np.min if ord == -inf else np.max)(size, axis=gone, keepdims=keepdims)
    if ord == 0:
        return sum_over(size != 0, gone, keepdims) * size.dtype.type(1)
    return sum_over(size, gone, keepdims) if ord == 1 else p_norm(x, ord, gone, keepdims)
