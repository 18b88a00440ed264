"""Sums of matrix products, each added to the last by BLAS itself.

NumPy gives every product an array of its own, which is then added in a pass over memory.  BLAS adds while it
multiplies.  The BLAS that NumPy was linked with is called for that, where it can be found; otherwise NumPy does it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.settings import is_enabled

if TYPE_CHECKING:
    from pullback.typing import Array, Value

__all__ = ["add_transposed_products", "align_to_cache_line", "gemm", "sum_of_products"]

ROWS, PLAIN, TURNED = map(ctypes.c_int, (101, 111, 112))  # as cblas.h numbers them: rows lie together; transposed
REALS = {"f": ("sgemm", ctypes.c_float), "d": ("dgemm", ctypes.c_double)}
LINE = 64  # bytes of a line of the cache
WORTH = 8192  # elements of a result; adding fewer costs less than a call from here
long, address = ctypes.c_int64, ctypes.c_void_p


class Gemm:
    """The BLAS function gemm of one dtype, with the numbers 0 and 1 as its factor ``beta``."""

    def __init__(self, function: Any, real: Any) -> None:
        self.function, self.nothing, self.one = function, real(0), real(1)


@cache
def gemm(char: str) -> Gemm | None:
    """Return BLAS's gemm of a dtype, looked up once; None if it is not found in NumPy's BLAS.

    >>> gemm("i") is None
    True
    """
    if char not in REALS:
        return None
    name, real = REALS[char]
    umath: Any = np._core._multiarray_umath  # type: ignore[attr-defined]
    try:
        library = ctypes.CDLL(umath.__file__)  # what it was linked with is found through it
    except OSError:
        return None
    for known in (f"scipy_cblas_{name}64_", f"cblas_{name}64_"):  # both take integers of 64 bits
        function = getattr(library, known, None)
        if function is not None:
            function.restype = None
            return Gemm(function, real)
    return None


def align_to_cache_line(x: Array) -> Any:
    """Return a copy of ``x`` aligned to a cache line, which makes small products about 10 % faster.

    >>> align_to_cache_line(np.ones(3)).__array_interface__["data"][0] % 64
    0
    """
    buffer = np.empty(x.nbytes + LINE, np.uint8)
    first = -_place(buffer) % LINE
    z = buffer[first : first + x.nbytes].view(x.dtype).reshape(x.shape)
    z[...] = x
    return z


def _place(x: Any) -> int:
    return int(x.__array_interface__["data"][0])


def _find_function(rows: Any, step: int, other: Any, matrices: Any) -> Gemm | None:
    """Return gemm if the arrays have the memory layout that it needs, else None."""
    (layers, length, depth), (images, height, n) = matrices.shape, rows.shape
    fits = n == length and (layers - 1) * step + other.shape[1] <= height and other.shape[::2] == (images, depth)
    if not fits or not rows.dtype == other.dtype == matrices.dtype or not rows.size:
        return None
    if not (rows.flags.c_contiguous and other.flags.c_contiguous and matrices.flags.c_contiguous):
        return None
    return gemm(rows.dtype.char) if is_enabled("direct BLAS") else None


def sum_of_products(rows: Any, step: int, matrices: Any, out: Any) -> None:
    """Write the sum over k of ``rows[:, k * step:] @ matrices[k]`` into each matrix of ``out``, row by row.

    >>> z = np.empty((1, 2, 1))
    >>> sum_of_products(np.array([[[1.0], [2.0], [4.0]]]), 1, np.array([[[1.0]], [[10.0]]]), z)
    >>> z.ravel()
    array([21., 42.])
    """
    n, blas = out.shape[1], None
    if len(matrices) > 1 and out[:1].size >= WORTH and out.flags.writeable:
        blas = _find_function(rows, step, out, matrices)
    if blas is None:
        np.matmul(rows[:, :n], matrices[0], out)
        more = np.empty_like(out) if len(matrices) > 1 else None
        for i in range(1, len(matrices)):
            np.add(out, np.matmul(rows[:, i * step : i * step + n], matrices[i], more), out)
        return
    (layers, length, depth), size = matrices.shape, rows.itemsize
    m, k, d = long(n), long(length), long(depth)
    further, next_matrix = step * length * size, length * depth * size
    for image, its in zip(rows, out, strict=True):
        x, y, z, add = _place(image), _place(matrices), address(_place(its)), blas.nothing
        for _ in range(layers):
            blas.function(ROWS, PLAIN, PLAIN, m, d, k, blas.one, address(x), k, address(y), d, add, z, d)
            x, y, add = x + further, y + next_matrix, blas.one


def add_transposed_products(rows: Any, step: int, weights: Value, totals: Any) -> None:
    """Add to each ``totals[k]`` the sum over the matrices of ``rows[:, k * step:].T @ weights``.

    >>> totals = np.zeros((2, 1, 1))
    >>> add_transposed_products(np.array([[[1.0], [2.0], [4.0]]]), 1, np.array([[[1.0], [10.0]]]), totals)
    >>> totals.ravel()
    array([21., 42.])
    """
    weights = np.ascontiguousarray(weights)
    n, blas = weights.shape[1], None
    if totals[0].size >= WORTH and totals.flags.writeable:
        blas = _find_function(rows, step, weights, totals)
    if blas is None:
        turned, more = rows.swapaxes(1, 2), np.empty((len(rows), *totals.shape[1:]), totals.dtype)
        for i, total in enumerate(totals):
            np.matmul(turned[:, :, i * step : i * step + n], weights, more)
            np.add(total, more[0] if len(more) == 1 else np.add.reduce(more, 0), total)
        return
    (layers, length, depth), size = totals.shape, rows.itemsize
    m, k, d = long(n), long(length), long(depth)
    further, next_total = step * length * size, length * depth * size
    for image, its in zip(rows, weights, strict=True):
        x, y, z = _place(image), address(_place(its)), _place(totals)
        for _ in range(layers):
            blas.function(ROWS, TURNED, PLAIN, k, d, m, blas.one, address(x), k, y, d, blas.one, address(z), d)
            x, z = x + further, z + next_total
