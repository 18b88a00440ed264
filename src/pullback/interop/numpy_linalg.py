"""NumPy's linear algebra: ``np.linalg.f(tensor)``, with NumPy's parameters and its choice of triangles."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.op import REGISTRY, convert_operand
from pullback.core.tensor import Tensor, all_values, call_unfollowed, may_hold, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import (
    TABLES,
    align_operands,
    as_numpy_number,
    is_traced,
    make_no_rule_error,
    run_without_rule,
)
from pullback.numerics.adjoints import H
from pullback.numerics.axis_arguments import resolve_axis
from pullback.ops import linalg

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Value

COMPLEX_EIG = np.lib.NumpyVersion(np.__version__) >= "2.5.0"  # eig and eigvals return complex numbers always


@lru_cache
def _find_result_class(function: Callable[..., Any]) -> Any:
    """Return the named tuple class of the result of a NumPy function."""
    return type(function(np.ones((1, 1))))


def mirror_triangle(x: Value, UPLO: str = "L") -> Any:
    """Return the symmetric (Hermitian) matrix that one triangle determines; NumPy does not read the other."""
    x = convert_operand(x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return x  # the op raises the error
    if x.dtype.kind != "c":
        lower = np.tri(x.shape[-1], dtype=bool)
        return np.where(lower if UPLO == "L" else lower.T, x, H(x))
    half = np.tril(x) if UPLO == "L" else np.triu(x)
    diagonal = half * np.eye(x.shape[-1], dtype=x.dtype)
    strict = half - diagonal
    return strict + H(strict) + np.real(diagonal)


def _check_uplo(UPLO: Any) -> str:
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"np.linalg: UPLO must be 'L' or 'U', got {UPLO!r}.")
    return UPLO.upper()


def _replace_value(z: Value, run: Callable[..., Any], *args: object) -> Any:
    """Return ``z`` with the value that NumPy computes by ``run``, so that all digits agree."""
    return call_unfollowed(run, *args) + (z - strip(z))


def _cholesky(a: Value, /, *, upper: bool = False) -> Any:
    a = convert_operand(a)
    if a.dtype.kind == "f" and a.ndim > 1 and a.shape[-1] == a.shape[-2]:
        return REGISTRY["cholesky_of_triangle"].function(a, bool(upper))
    return linalg.cholesky(mirror_triangle(a, "U" if upper else "L"), bool(upper))


def _eigh(a: Value, /, UPLO: str = "L") -> Any:
    uplo = _check_uplo(UPLO)
    return _find_result_class(np.linalg.eigh)(*linalg.eigh(mirror_triangle(a, uplo), uplo))


def _eigvalsh(a: Value, /, UPLO: str = "L") -> Any:
    uplo = _check_uplo(UPLO)
    return linalg.eigvalsh(mirror_triangle(a, uplo), uplo)


def _eig(a: Value, /) -> Any:
    w, v = linalg.eig(a)
    return _find_result_class(np.linalg.eig)(*((np.real(w), np.real(v)) if _are_real(a, w) else (w, v)))


def _eigvals(a: Value, /) -> Any:
    w = linalg.eigvals(a)
    return np.real(w) if _are_real(a, w) else w


def _are_real(a: Value, w: Tensor) -> bool:
    """Return whether NumPy gives real eigenvalues: before 2.5 those of a real matrix without imaginary parts."""
    return not COMPLEX_EIG and a.dtype.kind != "c" and not may_hold(np.imag(w) != 0)


def _svd(a: Value, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    z = linalg.svd(a, full_matrices, compute_uv)
    return _find_result_class(np.linalg.svd)(*z) if compute_uv else z


def _hermitian_svd(a: Value, compute_uv: bool) -> Any:
    """Return the SVD by eigenvalues as NumPy does: absolute values in descending order, signs in ``Vh``."""
    if not compute_uv:
        return np.sort(np.abs(_eigvalsh(a)))[..., ::-1]
    s, u = _eigh(a)
    signs = np.copysign(np.ones((), s.dtype), strip(s))
    order = np.argsort(np.abs(strip(s)))[..., ::-1]
    s, signs = np.take_along_axis(np.abs(s), order, axis=-1), np.take_along_axis(signs, order, axis=-1)
    u = np.take_along_axis(u, np.broadcast_to(np.expand_dims(order, -2), u.shape), axis=-1)
    return _find_result_class(np.linalg.svd)(u, s, H(u * np.expand_dims(signs, -2)))


def _qr(a: Value, /, mode: str = "reduced") -> Any:
    if mode == "r":
        return linalg.qr(a).R
    if mode not in ("reduced", "complete"):
        if is_traced(a):
            raise make_no_rule_error(f"np.linalg.qr(mode={mode!r})")
        return run_without_rule("np.linalg.qr", np.linalg.qr, (a, mode))
    return _find_result_class(np.linalg.qr)(*linalg.qr(a, mode == "complete"))


def _pinv(a: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    if rcond is not None and rtol is not np._NoValue:
        raise ArgumentError(f"np.linalg.pinv: rtol and rcond mean the same; got rcond={rcond!r} and rtol={rtol!r}.")
    cut = rcond if rcond is not None else 1e-15 if rtol is np._NoValue else rtol
    return linalg.pinv(mirror_triangle(a) if hermitian else a, strip(cut), bool(hermitian))


def _lstsq(a: Value, b: Value, /, rcond: Any = None) -> Any:
    a, b = align_operands((a, b))
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise ShapeError(f"np.linalg.lstsq: expected a matrix, and a vector or matrix; got {a.shape} and {b.shape}.")
    # as LAPACK reads it
    cut = np.finfo(np.result_type(a.dtype, np.float32)).eps if rcond is not None and rcond < 0 else rcond
    x, residuals, rank, s = linalg.lstsq(a, b, cut)
    rows, columns = a.shape
    rank = strip(rank)
    known = columns < rows and np.all(all_values(rank) == columns)  # NumPy returns no residuals then
    residuals = np.reshape(residuals, -1)[: None if known else 0]
    if a.size and np.size(all_values(rank)):
        s = _replace_value(s, lambda a, b: np.linalg.lstsq(a, b, rcond)[3], a, b)
        if known:
            residuals = _replace_value(residuals, lambda a, b: np.linalg.lstsq(a, b, rcond)[1], a, b)
    return x, residuals, rank if isinstance(rank, Tensor) else int(rank), s


def _solve(a: TensorLike, b: TensorLike, /) -> Any:
    return linalg.solve(*align_operands((a, b)))


def _multi_dot(arrays: list[Any], /) -> Any:
    return as_numpy_number(linalg.multi_dot(align_operands(arrays)))


def _tensorinv(a: Value, /, ind: int = 2) -> Any:
    if ind <= 0:
        raise ArgumentError(f"np.linalg.tensorinv: ind must be a positive integer, got {ind!r}.")
    before, after = a.shape[:ind], a.shape[ind:]
    if prod(before) != prod(after):
        raise ShapeError(
            f"np.linalg.tensorinv: the axes {before} before ind={ind} and {after} after it must be of the same size."
        )
    return np.reshape(linalg.inv(np.reshape(a, (prod(before), prod(after)))), (*after, *before))


def _tensorsolve(a: Value, b: Value, /, axes: Any = None) -> Any:
    a, b = align_operands((a, b))
    if axes is not None:
        last = [resolve_axis(a.ndim, k, "np.linalg.tensorsolve") for k in axes]
        a = np.transpose(a, [*(k for k in range(a.ndim) if k not in last), *last])
    out = a.shape[b.ndim :]
    if a.size != prod(out) ** 2:
        raise ShapeError(
            f"np.linalg.tensorsolve: a must have b.size² elements and begin with the axes of b; got {a.shape} "
            f"and {b.shape}."
        )
    return np.reshape(linalg.solve(np.reshape(a, (prod(out), prod(out))), np.reshape(b, (-1,))), out)


def _matrix_rank(A: Value, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    A = convert_operand(A)
    if A.ndim < 2:
        return np.minimum(np.count_nonzero(A), 1)
    if not np.ndim(tol) and not np.ndim(rtol):
        return linalg.matrix_rank(A, tol, hermitian, rtol)
    if tol is not None and rtol is not None:
        raise ArgumentError("np.linalg.matrix_rank: give either tol or rtol, got both.")
    s = np.abs(np.linalg.eigvalsh(A)) if hermitian else linalg.svdvals(A)
    limit = tol if rtol is None else np.max(s, axis=-1) * rtol
    return np.count_nonzero(s > np.expand_dims(limit, -1), axis=-1)


FUNCTIONS = {
    np.linalg.inv: linalg.inv, np.linalg.solve: _solve, np.linalg.pinv: _pinv, np.linalg.lstsq: _lstsq,
    np.linalg.det: linalg.det,
    np.linalg.slogdet: lambda a, /: _find_result_class(np.linalg.slogdet)(*linalg.slogdet(a)),
    np.linalg.cond: lambda x, /, p=None: linalg.cond(x, p),
    np.linalg.cholesky: _cholesky, np.linalg.qr: _qr, np.linalg.eigh: _eigh, np.linalg.eigvalsh: _eigvalsh,
    np.linalg.eig: _eig, np.linalg.eigvals: _eigvals,
    np.linalg.svd: _svd, np.linalg.svdvals: linalg.svdvals, np.linalg.matrix_rank: _matrix_rank,
    np.linalg.matrix_power: lambda a, /, n: linalg.matrix_power(a, n), np.linalg.multi_dot: _multi_dot,
    np.linalg.tensorinv: _tensorinv, np.linalg.tensorsolve: _tensorsolve,
}  # fmt: skip
TABLES.append(FUNCTIONS)
