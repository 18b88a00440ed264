"""Eigenvalues and eigenvectors, of symmetric (Hermitian) matrices and of any square ones.

An op has one result, so eigenvalues and eigenvectors are computed as one array, the values as a row above the matrix of
vectors, and separated by slices.  So they are computed once, and one rule gets the cotangents of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback.core.calculus import rule
from pullback.core.composition import check_numbers, rename_errors
from pullback.core.lowering import matrices
from pullback.core.op import observable, op
from pullback.core.residuals import find_residual, keep_residual
from pullback.errors import ShapeError
from pullback.numerics.adjoints import H
from pullback.ops.linalg.pieces import (
    DIVERGED,
    MIN_SAVED,
    SQUARE,
    Matrices,
    check_phase,
    divide_by_gaps,
    explain_errors,
    is_complex,
    make_diagonal_matrix,
    make_imaginary,
    subtract_pairs,
    symmetrize,
    take_diagonal_row,
    take_real_part,
    unwarned,
)  # fmt: skip

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = ["Eig", "Eigh", "eig", "eigh", "eigvals", "eigvalsh"]


def stack_rows(*parts: Value) -> Any:
    """Stack matrices of equal width by rows."""
    return np.concatenate(parts, axis=-2)


def check_matrix(x: TensorLike, name: str) -> Value:
    x = check_numbers(name, "x", x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: x must be a matrix, or several over its last two axes; got shape {x.shape}.")
    return x


# ---- symmetric matrices


def compute_eigh(x: Value, uplo: Any = "L") -> Any:
    w, v = np.linalg.eigh(symmetrize(x), uplo)
    return stack_rows(w[..., None, :], v)


@unwarned
def pull_eigh(g: Value, z: Value) -> Any:
    w, v, dv = take_real_part(z[..., 0, :]), z[..., 1:, :], g[..., 1:, :]
    if type(dv) is ndarray and type(v) is ndarray and not dv.any():  # the eigenvalues alone are used
        return (v * g[..., :1, :]) @ H(v)
    turn = H(v) @ dv
    if is_complex(v):
        check_phase("eigh", np.imag(take_diagonal_row(turn)), dv)
    return symmetrize(v @ (divide_by_gaps(turn, subtract_pairs(w)) + make_diagonal_matrix(g[..., 0, :])) @ H(v))


@unwarned
def push_eigh(dx: Array, z: Array) -> Any:
    w, v = take_real_part(z[..., 0, :]), z[..., 1:, :]
    turn = H(v) @ symmetrize(dx) @ v
    return stack_rows(take_diagonal_row(turn), v @ divide_by_gaps(turn, subtract_pairs(w)))


@op(
    compute_eigh,
    acts=Matrices(lambda m, n: (n + 1, n), SQUARE, complex=None),
    d=rule(lambda g, z: pull_eigh(g, z), jvp=lambda dx, z: push_eigh(dx, z), adjoint=True),
    lower=matrices("eigh"),
    run=explain_errors("eigh", compute_eigh, DIVERGED),
)
def eigh_rows(x: TensorLike, /, uplo: str = "L") -> Any:
    """Return the result of ``eigh``: a row of eigenvalues, and under it the matrix of eigenvectors.

    ``uplo`` is the triangle that LAPACK is given; the signs of the vectors may depend on it.

    >>> eigh_rows(np.diag([1.0, 2.0]))
    array([[1., 2.],
           [1., 0.],
           [0., 1.]])
    """


class Eigh(NamedTuple):
    """Eigenvalues and eigenvectors, as ``eigh`` gives them.

    >>> pb.linalg.eigh(np.eye(2)).eigenvalues
    array([1., 1.])
    """

    eigenvalues: Any
    eigenvectors: Any


@observable
@rename_errors("eigh")
def eigh(x: TensorLike, uplo: str = "L") -> Eigh:
    """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order, and their eigenvectors as columns.

    The mean of ``x`` and its (conjugate) transpose is decomposed, so that gradients are symmetric too.  The sign of an
    eigenvector (the phase of a complex one) is arbitrary; gradients assume a fixed sign, and a function that depends on
    phases raises an error.  Equal eigenvalues have no unique eigenvectors: gradients of functions that depend on these
    are infinite or NaN, and so are second derivatives of the eigenvalues.  First derivatives of the eigenvalues are
    always fine.  ``uplo`` ("L" or "U") is the triangle that LAPACK reads.

    >>> w, v = pb.linalg.eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w
    array([1., 2.])
    """
    z = eigh_rows(check_matrix(x, "eigh"), uplo)
    return Eigh(take_real_part(z[..., 0, :]), z[..., 1:, :])


def compute_eigvalsh(x: Value, uplo: Any = "L") -> Any:
    return np.linalg.eigvalsh(symmetrize(x), uplo)


@op(
    compute_eigvalsh,
    acts=Matrices(lambda m, n: (n,), SQUARE),
    d=rule(lambda g, x, z: pull_eigvalsh(g, x, z), jvp=lambda dx, x: push_eigvalsh(dx, x), adjoint=True),
    run=explain_errors("eigvalsh", compute_eigvalsh, DIVERGED),
    saving=explain_errors("eigvalsh", lambda x, uplo="L": save_eigenvectors(x, uplo), DIVERGED),
)
def eigvalsh(x: TensorLike, /, uplo: str = "L") -> Any:
    """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order.

    The mean of ``x`` and its (conjugate) transpose is decomposed; ``uplo`` is the triangle that LAPACK reads.
    Second derivatives need eigenvalues that differ.

    >>> pb.linalg.eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([1., 2.])
    """


def save_eigenvectors(x: Array, uplo: Any) -> Any:
    """Return the eigenvalues; of large matrices with the eigenvectors, which the rule would else compute again."""
    if x.shape[-1] < MIN_SAVED:
        return compute_eigvalsh(x, uplo)
    w, v = np.linalg.eigh(symmetrize(x), uplo)
    keep_residual(w, v)
    return w


def pull_eigvalsh(g: Value, x: Value, z: Value) -> Any:
    v = find_residual(z)
    if v is None:
        v = eigh(x).eigenvectors
    return (v * g[..., None, :]) @ H(v)


def push_eigvalsh(dx: Array, x: Array) -> Any:
    v = eigh(x).eigenvectors
    moved = symmetrize(dx) @ v
    return np.sum(np.real(np.conjugate(v) * moved) if is_complex(v) else v * moved, axis=-2)


# ---- any square matrices


def compute_eig(x: Array) -> Any:
    w, v = np.linalg.eig(x)
    z = stack_rows(w[..., None, :], v)
    return z.astype(np.result_type(z.dtype, np.complex64))


def mask_pivots(v: Value) -> Any:
    """Return a mask of the element of each vector that LAPACK makes real: the largest."""
    if not v.shape[-1]:
        return v == 0
    size = np.abs(v) * (np.imag(v) == 0) + np.abs(v)  # of several large ones the real one
    best = np.argmax(size, axis=-2)
    return np.reshape(np.arange(v.shape[-1]), (-1, 1)) == np.expand_dims(best, -2)


@unwarned
def pull_eig(g: Value, z: Value) -> Any:
    w, v, dw, dv = z[..., 0, :], z[..., 1:, :], g[..., 0, :], g[..., 1:, :]
    along = take_diagonal_row(H(v) @ dv)  # the vectors keep their length, and one of their elements real
    real = mask_pivots(v)
    kept = (
        dv - v * np.real(along) - real * make_imaginary(np.imag(along) / np.real(np.sum(v * real, -2, keepdims=True)))
    )
    turn = divide_by_gaps(H(v) @ kept, np.conjugate(subtract_pairs(w))) + make_diagonal_matrix(dw)
    return np.linalg.solve(H(v), turn @ H(v))


@unwarned
def push_eig(dx: Array, z: Array) -> Any:
    w, v = z[..., 0, :], z[..., 1:, :]
    turn = np.linalg.solve(v, dx @ v)
    moved = v @ divide_by_gaps(turn, subtract_pairs(w))
    real, along = mask_pivots(v), np.sum(np.conjugate(v) * moved, -2, keepdims=True)
    turned = np.imag(np.sum(moved * real, -2, keepdims=True)) / np.real(np.sum(v * real, -2, keepdims=True))
    return stack_rows(take_diagonal_row(turn), moved - v * np.real(along) - v * make_imaginary(turned))


@op(
    compute_eig,
    acts=Matrices(lambda m, n: (n + 1, n), SQUARE),
    d=rule(lambda g, z: pull_eig(g, z), jvp=lambda dx, z: push_eig(dx, z), adjoint=True),
    run=explain_errors("eig", compute_eig, DIVERGED),
)
def eig_rows(x: TensorLike, /) -> Any:
    """Return the result of ``eig``: a row of eigenvalues, and under it the matrix of eigenvectors; always complex.

    >>> eig_rows(np.diag([1.0, 2.0]))
    array([[1.+0.j, 2.+0.j],
           [1.+0.j, 0.+0.j],
           [0.+0.j, 1.+0.j]])
    """


class Eig(NamedTuple):
    """Eigenvalues and eigenvectors, as ``eig`` gives them.

    >>> pb.linalg.eig(np.array([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    array([0.+1.j, 0.-1.j])
    """

    eigenvalues: Any
    eigenvectors: Any


@observable
@rename_errors("eig")
def eig(x: TensorLike) -> Eig:
    """Return the eigenvalues of square matrices, in no order, and their eigenvectors as columns; both are complex.

    As in LAPACK, the vectors have length 1 and a real largest element, which gradients take into account; gradients of
    functions that do not depend on lengths and phases agree with PyTorch and JAX.  Equal eigenvalues have no unique
    eigenvectors: gradients are infinite or NaN there.  (``np.linalg.eig`` of a tensor returns real numbers where NumPy
    does: before NumPy 2.5, if no eigenvalue has an imaginary part.)

    x: a tensor, an array or a number.

    >>> w, v = pb.linalg.eig(np.array([[2.0, 1.0], [0.0, 1.0]]))
    >>> w
    array([2.+0.j, 1.+0.j])
    """
    z = eig_rows(check_matrix(x, "eig"))
    return Eig(z[..., 0, :], z[..., 1:, :])


def compute_eigvals(x: Array) -> Any:
    w = np.linalg.eigvals(x)
    return w.astype(np.result_type(w.dtype, np.complex64))


@op(
    compute_eigvals,
    acts=Matrices(lambda m, n: (n,), SQUARE),
    d=rule(lambda g, x: pull_eigvals(g, x), jvp=lambda dx, x: push_eigvals(dx, x), adjoint=True),
    run=explain_errors("eigvals", compute_eigvals, DIVERGED),
)
def eigvals(x: TensorLike, /) -> Any:
    """Return the eigenvalues of square matrices, in no order; they are complex.

    x: a tensor, an array or a number.

    >>> pb.linalg.eigvals(np.array([[0.0, -4.0], [1.0, 0.0]]))
    array([0.+2.j, 0.-2.j])
    """


def pull_eigvals(g: Value, x: Value) -> Any:
    v = eig(x).eigenvectors
    return np.linalg.solve(H(v), g[..., :, None] * H(v))


def push_eigvals(dx: Array, x: Array) -> Any:
    v = eig(x).eigenvectors
    return take_diagonal_row(np.linalg.solve(v, dx @ v))[..., 0, :]
