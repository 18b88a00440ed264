"""Faster reductions and products for small and narrow arrays, and sums of large ones.

NumPy's reductions have a cost per row.  A product with ones runs in BLAS and is several times faster; a maximum over
short rows is faster down the columns of a transposed copy.  The lengths are limited, so that no sum loses digits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import late_binding

if TYPE_CHECKING:
    from pullback.typing import Array, Axis

add_reduce: Any = np.add.reduce
max_reduce: Any = np.maximum.reduce
MAX_VECTOR = 4096  # elements of a vector that is summed by a product
MAX_ROW = 1024  # elements of a row or column that is summed by a product
MAX_NARROW = 64  # elements beside each other up to which NumPy's own sums along an axis before them are slow
MAX_COMPARED_ROW = 32  # rows up to here are better compared down the columns
MIN_SUMMED = 1 << 15  # elements of an array from which on machine code sums it
MAX_SUMMED_ROW = 96  # elements of a row up to which many of them are summed by a product
MIN_SUMMED_ROW = 8  # elements that are added up; NumPy adds fewer as quickly
MAX_SUMMED_BYTES = 16384  # of the elements beside each other; NumPy adds up longer ones as quickly
ONES: dict[Any, Any] = {}


def get_ones(n: int, dtype: np.dtype[Any]) -> Any:
    """Return a cached vector of ones.

    >>> get_ones(3, np.dtype("f4"))
    array([1., 1., 1.], dtype=float32)
    """
    ones = ONES.get((n, dtype.char))
    return _make_ones(n, dtype) if ones is None else ones


def _make_ones(n: int, dtype: np.dtype[Any]) -> Any:
    if len(ONES) >= 64:  # bounds the cache
        ONES.clear()
    ones = ONES[n, dtype.char] = np.ones(n, dtype)
    return ones


def sum_quickly(x: Array, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the sum over ``axis``.

    >>> sum_quickly(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([3., 7.])
    """
    # Not split: with matrices in a function of their own, 8 × 8 elements take 1.05 times as long (0.9 µs; np.sum 2.3).
    ndim, dtype = x.ndim, x.dtype
    if ndim == 1:
        n, char = x.size, dtype.char
        if n <= MAX_VECTOR and not keepdims and (axis is None or axis == 0) and char in "fd":
            ones = ONES.get((n, char))
            return x.dot(_make_ones(n, dtype) if ones is None else ones)
    elif ndim == 2 and dtype.char in "fd":
        if axis == 1 or axis == -1:
            n = x.shape[1]
            if n <= MAX_ROW and (n <= MAX_SUMMED_ROW or x.size < MIN_SUMMED) and (n != 5 or dtype.char == "d"):
                z = x.dot(get_ones(n, dtype))
                return z.reshape(-1, 1) if keepdims else z
        elif axis == 0 or axis == -2:
            n = x.shape[0]
            if n <= MAX_ROW and (n != 5 or dtype.char == "d"):
                z = get_ones(n, dtype).dot(x)
                return z.reshape(1, -1) if keepdims else z
    elif ndim > 2 and type(axis) is int and dtype.char in "fd" and (z := _sum_narrow(x, axis, keepdims)) is not None:
        return z
    if dtype.char in "fd" and x.size >= MIN_SUMMED and (z := _sum_large(x, axis, keepdims)) is not None:
        return z
    return add_reduce(x, tuple(axis) if type(axis) is list else axis, None, None, keepdims)


def _sum_narrow(x: Array, axis: int, keepdims: bool) -> Any:
    """Return the sum over one of several axes by a product with ones; None if NumPy or machine code is quicker."""
    shape, ndim = x.shape, x.ndim
    if not -ndim <= axis < ndim or not x.flags.c_contiguous:
        return None
    n, before, after = shape[axis], shape[: axis % ndim], shape[axis % ndim + 1 :]
    inner = prod(after)
    is_short = x.size < MIN_SUMMED or n <= MAX_SUMMED_ROW or inner > 1
    if not (0 < n <= MAX_ROW and 0 < inner <= MAX_NARROW and is_short) or (n == 5 and x.dtype.char == "f"):
        return None
    z = x.reshape(-1, n).dot(get_ones(n, x.dtype)) if inner == 1 else get_ones(n, x.dtype) @ x.reshape(-1, n, inner)
    return z.reshape(*before, *((1,) * keepdims), *after)


def _sum_large(x: Array, axis: Any, keepdims: bool) -> Any:
    """Return the sum of a large array by machine code; None if NumPy is to compute it."""
    ndim, shape = x.ndim, x.shape
    axes = range(ndim) if axis is None else axis if type(axis) in (tuple, list) else (axis,)
    if not x.flags.c_contiguous or not all(type(a) is int and -ndim <= a < ndim for a in axes):
        return None
    along = sorted(a % ndim for a in axes)
    first, end = (along[0], along[-1] + 1) if along else (0, 0)
    count = prod(shape[first:end])
    if len(along) != end - first or len({*along}) != len(along):
        return None  # axes that do not follow each other
    inner = prod(shape[end:])
    if count < MIN_SUMMED_ROW or inner * x.itemsize > MAX_SUMMED_BYTES:
        return None
    z = late_binding.sum_middle(x, prod(shape[:first]), count, inner)
    if z is None:
        return None
    return z.reshape((*shape[:first], *(1,) * (keepdims * len(along)), *shape[end:]))[()]


def sum_columns(x: Array) -> Any:
    """Return the sum over all axes but the last, in two stages so that no sum is long.

    >>> sum_columns(np.ones((2, 3, 4)))
    array([6., 6., 6., 6.])
    """
    n, columns = x.shape[0], x.shape[-1]
    rows = x.size // (n * columns) if x.size else MAX_VECTOR + 1
    if rows > MAX_VECTOR or n > MAX_VECTOR or x.dtype.char not in "fd":
        return add_reduce(x, tuple(range(x.ndim - 1)))
    return get_ones(n, x.dtype).dot(np.matmul(get_ones(rows, x.dtype), x.reshape(n, rows, columns)))


def has_short_rows(x: Array, axis: Any) -> bool:
    """Return whether many short rows are reduced, which is faster down the columns of a transposed copy.

    >>> has_short_rows(np.ones((100, 10)), 1)
    True
    """
    return bool(x.ndim == 2 and (axis == 1 or axis == -1) and 0 < x.shape[1] <= MAX_COMPARED_ROW < 2 * x.shape[0])


def max_quickly(x: Array, axis: object = None, keepdims: bool = False) -> Any:
    """Return the largest element over ``axis``.

    >>> max_quickly(np.array([[1.0, 2.0], [4.0, 3.0]]), 1, True)
    array([[2.],
           [4.]])
    """
    if has_short_rows(x, axis):
        z = max_reduce(x.T.copy(), 0)
        return z.reshape(-1, 1) if keepdims else z
    return max_reduce(x, tuple(axis) if type(axis) is list else axis, None, None, keepdims)


def dot_fives(x: Array, y: Array) -> Any:
    """Return ``x @ y`` of a matrix and a matrix or vector, without BLAS if one is a vector of 5 float32.

    OpenBLAS's AVX-512 kernel for rows of 5 float32 computes with uninitialised memory in lanes it does not use: the
    result is right, but NumPy may warn of an invalid value.  For the same reason no sum of 5 is a product with ones.

    >>> dot_fives(np.ones((2, 5), "f4"), np.ones(5, "f4"))
    array([5., 5.], dtype=float32)
    """
    columns = y if y.ndim == 2 else y[:, None]
    is_vector = x.ndim == 1 or len(x) == 1 or columns.shape[1] == 1
    if not is_vector or x.shape[-1] != 5 or x.dtype.char != "f" or y.dtype.char != "f":
        return x.dot(y)
    z = add_reduce(x[..., None] * columns, -2)
    return z if y.ndim == 2 else z[..., 0]


def multiply_columns_by_rows(x: Array, y: Array) -> Any:
    """Return ``x[b, i] * y[b, j]`` for all indices, as a matrix product with zeros added, which BLAS computes faster.

    >>> multiply_columns_by_rows(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[[3., 4.],
            [6., 8.]]])
    """
    (count, m), n = x.shape, y.shape[1]
    if m * n < 64 or x.dtype != y.dtype or x.dtype.char not in "fd":
        return np.einsum("bi,bj->bij", x, y)
    columns, rows = np.zeros((count, m, 2), x.dtype), np.zeros((count, 2, n), x.dtype)
    columns[:, :, 0] = x
    rows[:, 0] = y
    return np.matmul(columns, rows)
