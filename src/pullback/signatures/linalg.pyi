"""The functions of ``pb.linalg``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Sequence
from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, ShapeLike, TensorLike, TensorOrNested, Value
from typing import Any, Generic, NamedTuple, TypeVar, overload

V = TypeVar("V")

class Eig(NamedTuple, Generic[V]):
    """Eigenvalues and eigenvectors, as ``eig`` gives them."""

    eigenvalues: V
    eigenvectors: V

class Eigh(NamedTuple, Generic[V]):
    """Eigenvalues and eigenvectors, as ``eigh`` gives them."""

    eigenvalues: V
    eigenvectors: V

class QR(NamedTuple, Generic[V]):
    """The parts of a QR decomposition."""

    Q: V
    R: V

class LeastSquares(NamedTuple, Generic[V]):
    """The result of ``lstsq``: the solution, the sums of squared residuals, the ranks and the singular values."""

    x: V
    residuals: V
    rank: V
    s: V

class SlogDet(NamedTuple, Generic[V]):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: V
    logabsdet: V

class SVD(NamedTuple, Generic[V]):
    """The parts of a singular value decomposition: ``x = (U * S[..., None, :]) @ Vh``."""

    U: V
    S: V
    Vh: V

@overload
def band_part(x: TensorOrNested, /, num_lower: int, num_upper: int) -> Tensor:
    """Return a copy with zeros outside a band: ``num_lower`` diagonals below the main one stay, ``num_upper`` above it."""

@overload
def band_part(x: ArrayLike, /, num_lower: int, num_upper: int) -> Array: ...
@overload
def diag(x: TensorOrNested, /) -> Tensor:
    """Return zeros with ``x`` on the diagonal: a matrix for a vector, a tensor of twice the rank for other inputs."""

@overload
def diag(x: ArrayLike, /) -> Array: ...
@overload
def diag_embed(x: TensorOrNested, /, k: int = 0, shape: ShapeLike | None = None) -> Tensor:
    """Return matrices with the vectors ``x`` on their ``k``-th diagonal; of ``shape``, or the smallest square ones."""

@overload
def diag_embed(x: ArrayLike, /, k: int = 0, shape: ShapeLike | None = None) -> Array: ...
@overload
def diag_part(x: TensorOrNested, /, k: int = 0) -> Tensor:
    """Return the diagonals of matrices over the last two axes; ``k`` above the main one, or below it if negative."""

@overload
def diag_part(x: ArrayLike, /, k: int = 0) -> Array: ...
@overload
def tensor_diag_part(x: TensorOrNested, /) -> Tensor:
    """Return the diagonal of a tensor of shape ``(*s, *s)``: the inverse of ``diag``."""

@overload
def tensor_diag_part(x: ArrayLike, /) -> Array: ...
@overload
def trace(x: TensorOrNested, offset: int = 0) -> Tensor:
    """Return the sum of the diagonal, of matrices over the last two axes."""

@overload
def trace(x: ArrayLike, offset: int = 0) -> Array: ...
@overload
def cholesky(x: TensorOrNested, /, upper: bool = False) -> Tensor:
    """Return the lower triangular ``L`` with ``L @ L.T = x``, for symmetric (Hermitian) positive definite matrices."""

@overload
def cholesky(x: ArrayLike, /, upper: bool = False) -> Array: ...
@overload
def eig(x: TensorOrNested) -> Eig[Tensor]:
    """Return the eigenvalues of square matrices, in no order, and their eigenvectors as columns; both are complex."""

@overload
def eig(x: ArrayLike) -> Eig[Array]: ...
@overload
def eigh(x: TensorOrNested, uplo: str = "L") -> Eigh[Tensor]:
    """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order, and their eigenvectors as columns."""

@overload
def eigh(x: ArrayLike, uplo: str = "L") -> Eigh[Array]: ...
@overload
def eigvals(x: TensorOrNested, /) -> Tensor:
    """Return the eigenvalues of square matrices, in no order; they are complex."""

@overload
def eigvals(x: ArrayLike, /) -> Array: ...
@overload
def eigvalsh(x: TensorOrNested, /, uplo: str = "L") -> Tensor:
    """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order."""

@overload
def eigvalsh(x: ArrayLike, /, uplo: str = "L") -> Array: ...
@overload
def gram_schmidt(xs: TensorOrNested) -> Tensor:
    """Return vectors made orthonormal one after the other: the rows of a matrix, or a list, which gives a list."""

@overload
def gram_schmidt(xs: ArrayLike) -> Array: ...
@overload
def qr(x: TensorOrNested, full_matrices: bool = False) -> QR[Tensor]:
    """Return orthonormal columns ``Q`` and an upper triangular ``R`` with ``Q @ R = x``, for matrices of any shape."""

@overload
def qr(x: ArrayLike, full_matrices: bool = False) -> QR[Array]: ...
@overload
def svd(x: TensorOrNested, full_matrices: bool = False, compute_uv: bool = True) -> Tensor:
    """Return the singular value decomposition: ``U``, the singular values in descending order, and ``Vh``."""

@overload
def svd(x: ArrayLike, full_matrices: bool = False, compute_uv: bool = True) -> Array: ...
@overload
def svdvals(x: TensorOrNested, /) -> Tensor:
    """Return the singular values of matrices, in descending order.  Second derivatives need values that differ."""

@overload
def svdvals(x: ArrayLike, /) -> Array: ...
@overload
def det(x: TensorOrNested, /) -> Tensor:
    """Return the determinant of square matrices over the last two axes."""

@overload
def det(x: ArrayLike, /) -> Array: ...
@overload
def inv(x: TensorOrNested, /) -> Tensor:
    """Return the inverse of square matrices over the last two axes."""

@overload
def inv(x: ArrayLike, /) -> Array: ...
@overload
def lstsq(a: TensorOrNested, b: TensorLike, rcond: float | None = None) -> LeastSquares[Tensor]:
    """Return the least-squares solution of ``a @ x = b`` with the smallest norm; ``b`` is a vector or has columns."""

@overload
def lstsq(a: TensorLike, b: TensorOrNested, rcond: float | None = None) -> LeastSquares[Tensor]:
    """Return the least-squares solution of ``a @ x = b`` with the smallest norm; ``b`` is a vector or has columns."""

@overload
def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None) -> LeastSquares[Array]: ...
@overload
def pinv(x: TensorOrNested, /, rtol: float | Value | None = None, hermitian: bool = False) -> Tensor:
    """Return the pseudo-inverse of matrices of any shape; singular values under ``rtol`` times the largest count as 0."""

@overload
def pinv(x: ArrayLike, /, rtol: float | Value | None = None, hermitian: bool = False) -> Array: ...
@overload
def slogdet(x: TensorOrNested) -> SlogDet[Tensor]:
    """Return the sign of the determinant and the logarithm of its absolute value, which does not overflow."""

@overload
def slogdet(x: ArrayLike) -> SlogDet[Array]: ...
@overload
def solve(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the solution ``z`` of ``x @ z = y`` for square ``x``; ``y`` is a vector, or columns if it has more axes."""

@overload
def solve(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the solution ``z`` of ``x @ z = y`` for square ``x``; ``y`` is a vector, or columns if it has more axes."""

@overload
def solve(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def triangular_solve(x: TensorOrNested, y: TensorLike, /, lower: bool = True, trans: bool = False) -> Tensor:
    """Return the solution ``z`` of ``x @ z = y`` for a triangular ``x``; with ``trans``, of ``x.T @ z = y``."""

@overload
def triangular_solve(x: TensorLike, y: TensorOrNested, /, lower: bool = True, trans: bool = False) -> Tensor:
    """Return the solution ``z`` of ``x @ z = y`` for a triangular ``x``; with ``trans``, of ``x.T @ z = y``."""

@overload
def triangular_solve(x: ArrayLike, y: ArrayLike, /, lower: bool = True, trans: bool = False) -> Array: ...
@overload
def cond(x: TensorOrNested, p: str | float | None = None) -> Tensor:
    """Return the condition number: the bound on the growth of relative errors in solving equations."""

@overload
def cond(x: ArrayLike, p: str | float | None = None) -> Array: ...
@overload
def matrix_norm(x: TensorOrNested, ord: str | float = "fro", keepdims: bool = False) -> Tensor:
    """Return the norm of matrices over the last two axes."""

@overload
def matrix_norm(x: ArrayLike, ord: str | float = "fro", keepdims: bool = False) -> Array: ...
@overload
def matrix_power(x: TensorOrNested, n: int) -> Tensor:
    """Return square matrices raised to the power ``n``; for negative ``n`` the inverse is raised."""

@overload
def matrix_power(x: ArrayLike, n: int) -> Array: ...
@overload
def matrix_rank(
    x: TensorOrNested, /, tol: float | None = None, hermitian: bool = False, rtol: float | None = None
) -> Tensor:
    """Return the number of singular values above ``tol``, or above ``rtol`` times the largest; it has no gradient."""

@overload
def matrix_rank(
    x: ArrayLike, /, tol: float | None = None, hermitian: bool = False, rtol: float | None = None
) -> Array: ...
def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """Return the product of several matrices, in the order that takes the least work; the ends may be vectors."""
