"""Triangular systems and LU factors by the routines of NumPy's own OpenBLAS, which NumPy itself has no functions for.

The compiler imports this package, not the other way round: ``late_binding.find_blas`` gives the
addresses of the routines by name.  Every function here returns None where there is no such library, or where an array
is small or of another dtype; the caller uses NumPy then.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback import late_binding
from pullback.settings import is_enabled

if TYPE_CHECKING:
    from pullback.typing import Array

MIN_ROWS = 48  # of a matrix for which a call by ctypes is worth its time
ROWS, LEFT, UPPER, LOWER, NOT_TRANSPOSED, TRANSPOSED, NOT_UNIT = 101, 141, 121, 122, 111, 112, 131  # of CBLAS
BLOCK_COLUMNS = 64  # for which getri gets memory, so that it works by blocks
LETTERS = {"f": "s", "d": "d"}
FLAG, COUNT, PLACE = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p


class Factors(NamedTuple):
    """The LU factors of a matrix in column order, as LAPACK stores them."""

    lu: Any
    pivots: Any


def _find(name: str, char: str) -> Any:
    """Return a routine for a dtype; None if there is none, or if eager kernels are switched off."""
    return _load(name, char) if is_enabled("eager kernels") else None


@cache
def _load(name: str, char: str) -> Any:
    """Return a routine for a dtype, None if there is none."""
    address = late_binding.find_blas().get(LETTERS[char] + name)
    if not address:
        return None
    number = ctypes.c_float if char == "f" else ctypes.c_double
    types: dict[str, list[Any]] = {
        "trsm": [FLAG] * 5 + [COUNT, COUNT, number, PLACE, COUNT, PLACE, COUNT],
        "trsv": [FLAG] * 4 + [COUNT, PLACE, COUNT, PLACE, COUNT],
        "getrf": [PLACE] * 6,
        "getri": [PLACE] * 7,
        "getrs": [PLACE] * 9 + [COUNT],
    }
    return ctypes.CFUNCTYPE(None, *types[name])(address)


def _is_large_square(a: Any) -> bool:
    """Return whether an array is a square matrix of native floats that is large enough for a call."""
    if type(a) is not ndarray or a.ndim != 2 or a.shape[0] != a.shape[1]:
        return False
    return a.shape[0] >= MIN_ROWS and a.dtype.char in LETTERS and a.dtype.isnative


def _are_columns(b: Any, a: Any) -> bool:
    """Return whether ``b`` has right-hand sides that fit the matrix ``a``: LAPACK would read beyond others."""
    return b.ndim == 2 and b.shape[0] == a.shape[0] and b.shape[1] > 0 and b.dtype is a.dtype


def solve_triangular(a: Array, b: Array, lower: bool) -> Any:
    """Return the solution of ``a @ z = b`` for a triangular matrix and columns ``b``; None where NumPy must solve it.

    >>> solve_triangular(np.eye(2), np.ones((2, 1)), True) is None  # too small for it
    True
    """
    if not _is_large_square(a) or not _are_columns(b, a):
        return None
    by_rows = a.flags.c_contiguous
    if (not by_rows and not a.flags.f_contiguous) or not a.flags.aligned:
        return None
    n, columns = b.shape
    routine = _find("trsv" if columns == 1 else "trsm", a.dtype.char)
    if routine is None:
        return None
    z = np.array(b, order="C")
    triangle = LOWER if lower == by_rows else UPPER  # a matrix by columns is its transpose by rows
    flags = triangle, NOT_TRANSPOSED if by_rows else TRANSPOSED, NOT_UNIT
    if columns == 1:
        routine(ROWS, *flags, n, a.ctypes.data, n, z.ctypes.data, 1)
    else:
        routine(ROWS, LEFT, *flags, n, columns, 1.0, a.ctypes.data, n, z.ctypes.data, columns)
    return z


def factor(a: Array) -> Factors | None:
    """Return the LU factors of a square matrix; raise if it is singular; None where NumPy must be used."""
    if not _is_large_square(a):
        return None
    routine = _find("getrf", a.dtype.char)
    if routine is None or _find("getrs", a.dtype.char) is None or _find("getri", a.dtype.char) is None:
        return None
    n = COUNT(a.shape[0])
    info, size = COUNT(0), ctypes.addressof(n)
    lu, pivots = np.array(a, order="F"), np.empty(a.shape[0], np.int64)
    routine(size, size, lu.ctypes.data, size, pivots.ctypes.data, ctypes.addressof(info))
    if info.value > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return Factors(lu, pivots)


def solve_factored(factors: Factors, b: Array, trans: bool = False) -> Any:
    """Return the solution for a factored matrix, or with ``trans`` its transpose, and columns ``b``.

    The result is None where NumPy must be used.
    """
    lu, pivots = factors
    if not _are_columns(b, lu):
        return None
    z = np.array(b, order="F")
    n, columns, info = COUNT(z.shape[0]), COUNT(z.shape[1]), COUNT(0)
    letter = ctypes.create_string_buffer(b"T" if trans else b"N")
    size = ctypes.addressof(n)
    _load("getrs", lu.dtype.char)(
        ctypes.addressof(letter), size, ctypes.addressof(columns), lu.ctypes.data, size, pivots.ctypes.data,
        z.ctypes.data, size, ctypes.addressof(info), 1,
    )  # fmt: skip
    return z


def invert_factored(factors: Factors) -> Any:
    """Return the inverse of a factored matrix, in column order; half the work of solving for the identity."""
    z, pivots = factors.lu.copy(order="F"), factors.pivots
    work = np.empty(len(pivots) * BLOCK_COLUMNS, z.dtype)
    n, count, info = COUNT(len(pivots)), COUNT(work.size), COUNT(0)
    size = ctypes.addressof(n)
    _find("getri", z.dtype.char)(
        size, z.ctypes.data, size, pivots.ctypes.data, work.ctypes.data, ctypes.addressof(count), ctypes.addressof(info)
    )
    return z


def slogdet_factored(factors: Factors) -> tuple[Any, Any]:
    """Return the sign of the determinant of a factored matrix, and the logarithm of its absolute value."""
    diagonal = factors.lu.diagonal()
    swaps = np.count_nonzero(factors.pivots != np.arange(1, len(diagonal) + 1))
    negative = np.count_nonzero(diagonal < 0) + swaps
    return diagonal.dtype.type(-1 if negative % 2 else 1), np.add.reduce(np.log(np.abs(diagonal)))
