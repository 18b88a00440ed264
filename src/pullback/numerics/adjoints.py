"""Formulas that derivative rules of several op files share."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import empty, ndarray

from pullback.numerics.axis_arguments import resolve_reduced_axes

if TYPE_CHECKING:
    from pullback.typing import Array, Axis, Operand, Value

SCALARS: dict[type, np.dtype[Any]] = {np.float64: np.dtype("f8"), np.float32: np.dtype("f4")}
MAX_FILLED = 4096  # elements up to which a broadcast array is written out
MAX_BRANCHES = 8192  # elements; the CPU does not learn more branches of np.where, and takes most of them wrongly
BITS: dict[str, Any] = {"f": np.int32, "d": np.int64}


@lru_cache(1000)
def find_kept_shape(shape: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """Return the shape with the reduced axes as 1.

    >>> find_kept_shape((2, 3, 4), (0, 2))
    (1, 3, 1)
    """
    gone = resolve_reduced_axes(len(shape), axis)
    return tuple(1 if i in gone else n for i, n in enumerate(shape))


def as_axes(axis: Axis) -> Any:
    """Return ``axis`` as NumPy takes it: a list becomes a tuple.

    >>> as_axes([0, 1])
    (0, 1)
    """
    return tuple(axis) if type(axis) is list else axis


def restore_axes(z: Value, x_shape: tuple[int, ...], axis: Axis) -> Any:
    """Return the result of a reduction with the reduced axes as length 1, so that it broadcasts against ``x``.

    >>> restore_axes(np.array([1.0, 2.0]), (2, 3), 1).shape
    (2, 1)
    """
    if not z.shape:
        return z
    shape = find_kept_shape(x_shape, tuple(axis) if type(axis) is list else axis)
    return z.reshape(shape) if type(z) is ndarray else np.reshape(z, shape)


def sum_over(x: Value, axis: Axis, keepdims: bool = False) -> Any:
    """Return the sum over ``axis``.

    >>> sum_over(np.ones((2, 3)), [0, 1])
    np.float64(6.0)
    """
    return np.sum(x, axis=as_axes(axis), keepdims=keepdims)


def replace_zeros(z: Value) -> Any:
    """Return ``z`` with 1 in place of 0, as a divisor where 0 / 0 is to be 0.

    >>> replace_zeros(np.array([0.0, 2.0]))
    array([1., 2.])
    """
    return z + (z == 0)


def invert_or_zero(z: Value) -> Any:
    """Return ``1 / z``, and 0 where ``z`` is 0, with derivatives of 0 there.

    >>> invert_or_zero(np.array([0.0, 2.0]))
    array([0. , 0.5])
    """
    return (z != 0) / replace_zeros(z)


def spread(g: Any, x_shape: tuple[int, ...], axis: Axis) -> Any:
    """Return the adjoint of a sum: the cotangent broadcast to the shape of ``x``.

    >>> spread(np.array([1.0, 2.0]), (2, 3), 1)
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    dtype = SCALARS.get(type(g))
    if dtype is not None:  # a number, of which a small filled array is quicker than a view
        if not x_shape:
            return g
        if prod(x_shape) > MAX_FILLED:
            return ndarray(x_shape, dtype, g, 0, (0,) * len(x_shape))  # broadcast_to is slower
        e: ndarray[Any, Any] = empty(x_shape, dtype)
        e.fill(g)
        return e
    if g.shape:
        shape = find_kept_shape(x_shape, tuple(axis) if type(axis) is list else axis)
        g = g.reshape(shape) if type(g) is ndarray else np.reshape(g, shape)
    if not x_shape:
        return g
    if type(g) is not ndarray or prod(x_shape) > MAX_FILLED:
        return np.broadcast_to(g, x_shape)
    e = empty(x_shape, g.dtype)
    e[...] = g
    return e


def count_elements(shape: tuple[int, ...], axis: Axis) -> int:
    """Return how many elements are reduced to each result.

    >>> count_elements((2, 3, 4), (0, 2))
    8
    """
    return prod([shape[i] for i in resolve_reduced_axes(len(shape), axis)])


def T(x: Value) -> Any:
    """Return the matrix transpose, over the last two axes.

    >>> T(np.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return x.T if type(x) is ndarray and x.ndim == 2 else np.swapaxes(x, -1, -2)


def H(x: Value) -> Any:
    """Return the conjugate transpose, over the last two axes.

    >>> H(np.array([[1.0, 2j]]))
    array([[1.-0.j],
           [0.-2.j]])
    """
    return np.conjugate(T(x)) if x.dtype.kind == "c" else T(x)


def select(condition: Any, x: Operand, y: Operand) -> Any:
    """Return ``np.where``, as a NumPy scalar for rank 0.

    >>> select(np.True_, np.float64(1.0), 0)
    np.float64(1.0)
    """
    if type(condition) is ndarray and condition.size > MAX_BRANCHES and condition.dtype == bool:
        z = _select_bits(condition, x, y)
        if z is not None:
            return z
    if type(condition) is np.bool_ and type(x) is type(y) and isinstance(x, np.generic):
        return x if condition else y  # np.where takes twenty times as long for numbers
    z = np.where(condition, x, y)
    return z[()] if type(z) is ndarray and not z.ndim else z


def _select_bits(condition: Any, x: Any, y: Any) -> Any:
    """Return the floats of ``np.where`` by arithmetic on their bits, without a branch; None for other operands."""
    dtype = next((v.dtype for v in (x, y) if type(v) is ndarray and v.ndim), None)
    if dtype is None or dtype.char not in BITS or not dtype.isnative:
        return None
    if not all(_is_fitting(v, dtype, condition.shape) for v in (x, y)):
        return None
    a, b = (np.asarray(v, dtype).view(BITS[dtype.char]) for v in (x, y))
    if a.ndim != b.ndim and not (a if b.ndim else b):  # the bits of 0.0
        return (b & (condition.view(np.int8) - 1) if b.ndim else a & -condition.view(np.int8)).view(dtype)
    z = a ^ b
    z &= -condition.view(np.int8)
    z ^= b
    return z.view(dtype)


def _is_fitting(v: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Return whether an operand is a Python number, a scalar of this dtype, or an array of this dtype and shape."""
    if type(v) in (int, float):
        return True
    return getattr(v, "dtype", None) == dtype and (type(v) is not ndarray or not v.ndim or v.shape == shape)


def multiply_real(x: Any, t: Value) -> Any:
    """Return ``x * t``; of complex numbers the real inner product ``Re(conj(x) * t)``.

    >>> multiply_real(np.array([1j]), np.array([2.0 + 3.0j]))
    array([3.])
    """
    return np.real(np.conjugate(x) * t) if x.dtype.kind == "c" else x * t


def find_repeated(g: Array) -> Any:
    """Return an array that repeats one number in memory, as the cotangent of a sum does, as that number without axes.

    >>> find_repeated(np.broadcast_to(2.0, (3, 4))), find_repeated(np.ones(2))
    (array(2.), array([1., 1.]))
    """
    return g if any(g.strides) or not g.size else g[(0,) * g.ndim + (...,)]


def make_zero_cotangent(g: Value) -> Any:
    """Return zeros like ``g``, also where ``g`` is infinite: the cotangent through a piecewise constant function.

    >>> make_zero_cotangent(np.array([1.0, np.inf]))
    array([0., 0.])
    """
    return np.zeros(g.shape, g.dtype) if g.shape else g.dtype.type(0)
