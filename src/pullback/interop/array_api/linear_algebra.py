"""Linear algebra by the names of the Array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pullback.interop.array_api.arguments import call, call_several, cast, make_unary, widen

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Axis, DType, Value


class EighResult(NamedTuple):
    """The result of ``eigh``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """The result of ``eig``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of ``qr``."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of ``slogdet``."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of ``svd``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# ---- of matrices alone

MATRICES = "x: the matrices."
det = make_unary("det", np.linalg.det, "Return the determinants of square matrices.", MATRICES)
eigvalsh = make_unary(
    "eigvalsh", np.linalg.eigvalsh, "Return the eigenvalues of symmetric (Hermitian) matrices.", MATRICES
)
inv = make_unary("inv", np.linalg.inv, "Return the inverses of square matrices.", MATRICES)
matrix_transpose = make_unary(
    "matrix_transpose", np.matrix_transpose, "Return matrices with rows and columns exchanged.", MATRICES
)
svdvals = make_unary("svdvals", np.linalg.svdvals, "Return the singular values of matrices.", MATRICES)


# ---- products


def cross(x1: Value, x2: Value, /, *, axis: int = -1) -> Tensor:
    """Return the cross products of vectors of three elements.

    x1: the first vectors.
    x2: the second vectors.
    axis: the axis of both along which the vectors are.
    """
    return call(np.linalg.cross, x1, x2, axis=axis)


def matmul(x1: Value, x2: Value, /) -> Tensor:
    """Return the products of matrices.

    x1: the first matrices, or a vector.
    x2: the second matrices, or a vector.
    """
    return call(np.matmul, x1, x2)


def matrix_power(x: Value, n: int, /) -> Tensor:
    """Return powers of square matrices.

    x: the matrices.
    n: the power, an integer.
    """
    return call(lambda x: np.linalg.matrix_power(x, n), x)


def outer(x1: Value, x2: Value, /) -> Tensor:
    """Return the products of all elements of one vector with all of another.

    x1: the first vector.
    x2: the second vector.
    """
    return call(np.outer, x1, x2)


def tensordot(x1: Value, x2: Value, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Return products summed over axes.

    x1: the first array.
    x2: the second array.
    axes: how many axes, the last of ``x1`` and the first of ``x2``; or the axes of both.
    """
    return call(np.tensordot, x1, x2, axes=axes)


def vecdot(x1: Value, x2: Value, /, *, axis: int = -1) -> Tensor:
    """Return the dot products of vectors, the first of them conjugated.

    x1: the first vectors.
    x2: the second vectors.
    axis: the axis of both along which the vectors are.
    """
    return call(np.linalg.vecdot, x1, x2, axis=axis)


# ---- diagonals and norms


def diagonal(x: Value, /, *, offset: int = 0) -> Tensor:
    """Return diagonals of matrices.

    x: the matrices.
    offset: which diagonal; above the main one if positive.
    """
    return call(np.linalg.diagonal, x, offset=offset)


def trace(x: Value, /, *, offset: int = 0, dtype: DType = None) -> Tensor:
    """Return the sums of diagonals of matrices.

    x: the matrices.
    offset: which diagonal; above the main one if positive.
    dtype: the dtype to add in; without it that of ``x``, and short integers as int64 or uint64.
    """
    return cast(call(np.linalg.trace, widen(x, dtype), offset=offset), dtype)


def matrix_norm(x: Value, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """Return norms of matrices.

    x: the matrices.
    keepdims: whether the two axes stay, with length 1.
    ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.
    """
    return call(np.linalg.matrix_norm, x, keepdims=keepdims, ord=ord)


def vector_norm(x: Value, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return norms of vectors.

    x: the vectors.
    axis: the axes along which they are; None for one vector of all elements.
    keepdims: whether the axes stay, with length 1.
    ord: the power of the norm: a number, inf or -inf.
    """
    return call(np.linalg.vector_norm, x, axis=axis, keepdims=keepdims, ord=ord)


# ---- equations, inverses and determinants


def slogdet(x: Value, /) -> SlogdetResult:
    """Return sign and logarithm of the determinants of square matrices.

    x: the matrices.
    """
    return SlogdetResult(*call_several(np.linalg.slogdet, x))


def solve(x1: Value, x2: Value, /) -> Tensor:
    """Return the solutions of linear equations.

    x1: the matrices of coefficients.
    x2: the right-hand sides: one vector, or matrices.
    """
    return call(np.linalg.solve, x1, x2)


def pinv(x: Value, /, *, rtol: float | Value | None = None) -> Tensor:
    """Return the pseudo-inverses of matrices.

    x: the matrices.
    rtol: singular values below this share of the largest count as zero.
    """
    return call(np.linalg.pinv, x, rtol=rtol)


def matrix_rank(x: Value, /, *, rtol: float | Value | None = None) -> Tensor:
    """Return the ranks of matrices.

    x: the matrices.
    rtol: singular values below this share of the largest count as zero.
    """
    return call(np.linalg.matrix_rank, x, rtol=rtol)


# ---- decompositions


def cholesky(x: Value, /, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factors of positive definite matrices.

    x: the matrices.
    upper: whether the factors are upper triangular.
    """
    return call(np.linalg.cholesky, x, upper=upper)


def eigh(x: Value, /) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    x: the matrices.
    """
    return EighResult(*call_several(np.linalg.eigh, x))


def eig(x: Value, /) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices, which are complex.

    x: the matrices.
    """
    return EigResult(*(_as_complex(part) for part in call_several(np.linalg.eig, x)))


def eigvals(x: Value, /) -> Tensor:
    """Return the eigenvalues of square matrices, which are complex.

    x: the matrices.
    """
    return _as_complex(call(np.linalg.eigvals, x))


def _as_complex(x: Any) -> Tensor:
    return x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64))  # type: ignore[no-any-return]


def qr(x: Value, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return matrices as products of an orthogonal and an upper triangular one.

    x: the matrices.
    mode: "reduced", or "complete" for a square orthogonal matrix.
    """
    return QRResult(*call_several(np.linalg.qr, x, mode=mode))


def svd(x: Value, /, *, full_matrices: bool = True) -> SVDResult:
    """Return singular values and vectors of matrices.

    x: the matrices.
    full_matrices: whether the matrices of vectors are square.
    """
    return SVDResult(*call_several(np.linalg.svd, x, full_matrices=full_matrices))
