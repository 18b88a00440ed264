"""NumPy's linear algebra: ``np.linalg.f(tensor)``, with NumPy's parameters and what it reads of a matrix."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback.core.adjoints import T
from pullback.core.op import operand
from pullback.core.tensor import Tensor, all_values, stripped
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import aligned, no_rule, ruleless, tensors, traced
from pullback.ops import linalg

__all__: list[str] = []


@lru_cache
def _kind(function: Any) -> Any:
    """The class of named tuples that a NumPy function gives."""
    return type(function(np.ones((1, 1))))


def _mirrored(x: Any, UPLO: str = "L") -> Any:
    """The symmetric matrix that one triangle means: NumPy does not read the other."""
    x = operand(x)
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"np.linalg: UPLO must be 'L' or 'U', got {UPLO!r}.")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return x  # the op says what is wrong
    half = np.tril(x) if UPLO.upper() == "L" else np.triu(x)
    return half + T(half - half * np.eye(x.shape[-1], dtype=x.dtype))


def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    z = linalg.cholesky(_mirrored(a, "U" if upper else "L"))
    return T(z) if upper else z


def _eigh(a: Any, /, UPLO: str = "L") -> Any:
    return _kind(np.linalg.eigh)(*linalg.eigh(_mirrored(a, UPLO)))


def _eigvalsh(a: Any, /, UPLO: str = "L") -> Any:
    return linalg.eigvalsh(_mirrored(a, UPLO))


def _svd(a: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    z = linalg.svd(a, full_matrices, compute_uv)
    return _kind(np.linalg.svd)(*z) if compute_uv else z


def _qr(a: Any, /, mode: str = "reduced") -> Any:
    if mode == "r":
        return linalg.qr(a).R
    if mode not in ("reduced", "complete"):
        if traced(a):
            raise no_rule(f"np.linalg.qr(mode={mode!r})")
        return ruleless("np.linalg.qr", np.linalg.qr, (a, mode))
    return _kind(np.linalg.qr)(*linalg.qr(a, mode == "complete"))


def _pinv(a: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    return linalg.pinv(a, rcond if rcond is not None else rtol if rtol is not None else 1e-15)


def _lstsq(a: Any, b: Any, /, rcond: Any = None) -> Any:
    a, b = aligned((a, b))
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise ShapeError(f"np.linalg.lstsq: expected a matrix, and a vector or matrix; got {a.shape} and {b.shape}.")
    x, residuals, rank, s = linalg.lstsq(a, b, rcond)
    rows, columns = a.shape
    rank = stripped(rank)
    known = columns < rows and np.all(all_values(rank) == columns)  # NumPy leaves out what is 0, or not of one solution
    return x, np.reshape(residuals, -1)[: None if known else 0], rank if isinstance(rank, Tensor) else int(rank), s


def _solve(a: Any, b: Any, /) -> Any:
    return linalg.solve(*aligned((a, b)))


def _multi_dot(arrays: Any, /) -> Any:
    return linalg.multi_dot(aligned(arrays))


def _unless_complex(function: Any, ours: Any) -> Any:
    """Ours for real numbers; complex matrices have no rule, and are NumPy's business while nobody follows them."""

    def of(*args: Any, **kwargs: Any) -> Any:
        if any(t.dtype.kind == "c" for t in tensors(args)):
            return ruleless(f"np.linalg.{function.__name__}", function, args, kwargs)
        return ours(*args, **kwargs)

    of.__wrapped__ = ours  # type: ignore[attr-defined]  # whose signature it has
    return of


FUNCTIONS = {
    function: _unless_complex(function, ours)
    for function, ours in {
        np.linalg.inv: linalg.inv, np.linalg.solve: _solve, np.linalg.pinv: _pinv, np.linalg.lstsq: _lstsq,
        np.linalg.det: linalg.det, np.linalg.slogdet: lambda a, /: _kind(np.linalg.slogdet)(*linalg.slogdet(a)),
        np.linalg.cond: lambda x, /, p=None: linalg.cond(x, p),
        np.linalg.cholesky: _cholesky, np.linalg.qr: _qr, np.linalg.eigh: _eigh, np.linalg.eigvalsh: _eigvalsh,
        np.linalg.svd: _svd, np.linalg.svdvals: linalg.svdvals, np.linalg.matrix_rank: linalg.matrix_rank,
        np.linalg.matrix_power: lambda a, /, n: linalg.matrix_power(a, n), np.linalg.multi_dot: _multi_dot,
    }.items()
}  # fmt: skip
