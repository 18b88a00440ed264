"""Decompositions: QR and singular values.

An op has one result, so the parts of a decomposition are stacked into one array and separated by slices.  So they are
computed once, and one rule gets the cotangents of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback.core.axes import Shape
from pullback.core.calculus import rule
from pullback.core.composition import check_numbers
from pullback.core.lowering import matrices as on_matrices
from pullback.core.op import observable, op
from pullback.core.residuals import find_residual, keep_residual
from pullback.core.tensor import all_values, call_unfollowed, strip
from pullback.errors import ArgumentError, MatrixError, ShapeError
from pullback.numerics.adjoints import H, T
from pullback.ops.linalg.eigenvalues import check_matrix, stack_rows
from pullback.ops.linalg.pieces import (
    ANY,
    DIVERGED,
    MIN_SAVED,
    TALL,
    Matrices,
    check_phase,
    divide_by_gaps,
    divide_or_zero,
    explain_errors,
    is_complex,
    make_diagonal_matrix,
    make_imaginary,
    make_triangle,
    subtract_pairs,
    take_diagonal_row,
    take_real_part,
    unwarned,
)  # fmt: skip
from pullback.ops.linalg.triangular import triangular_solve

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = ["QR", "SVD", "gram_schmidt", "qr", "svd", "svdvals"]


# ---- singular values


def compute_svd(x: Array, full: bool = False) -> Any:
    u, s, v = np.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    return stack_rows(u[..., :k], s[..., None, :], H(v[..., :k, :]))


def split_svd(z: Value, m: int) -> tuple[Any, Any, Any]:
    return z[..., :m, :], take_real_part(z[..., m, :]), z[..., m + 1 :, :]


def subtract_squares(s: Value) -> Any:
    """Return ``s[j]**2 - s[i]**2`` for all pairs."""
    return subtract_pairs(s) * (s[..., None, :] + s[..., :, None])


def project_beside(x: Value, q: Value) -> Any:
    """Return the part of the columns ``x`` that is orthogonal to those of ``q``."""
    return x - q @ (H(q) @ x)


@unwarned
def pull_svd(g: Value, z: Value, x_shape: Shape) -> Any:
    m, n = x_shape[-2:]
    (u, s, v), (du, ds, dv) = split_svd(z, m), split_svd(g, m)
    gaps, row = subtract_squares(s), s[..., None, :]
    by_u, by_v = H(u) @ du, H(v) @ dv
    left, right = divide_by_gaps(by_u, gaps), divide_by_gaps(by_v, gaps)
    turn = (left + H(left)) * row + s[..., :, None] * (right + H(right)) + make_diagonal_matrix(ds)
    if is_complex(u):  # each pair of vectors may turn together; against each other they turn as the product does
        phases, others = np.imag(take_diagonal_row(by_u)), np.imag(take_diagonal_row(by_v))
        check_phase("svd", phases + others, g)
        turn = turn + make_diagonal_matrix(make_imaginary(divide_or_zero(phases - others, 2 * row))[..., 0, :])
    dx = u @ turn @ H(v)
    if m > n:
        dx = dx + divide_or_zero(project_beside(du, u), row) @ H(v)
    if n > m:
        dx = dx + u @ H(divide_or_zero(project_beside(dv, v), row))
    return dx


@unwarned
def push_svd(dx: Array, z: Array) -> Any:
    m, n = dx.shape[-2:]
    u, s, v = split_svd(z, m)
    gaps, row = subtract_squares(s), s[..., None, :]
    turn = H(u) @ dx @ v
    scaled, other = turn * row, s[..., :, None] * turn
    du = u @ divide_by_gaps(scaled + H(scaled), gaps)
    dv = v @ divide_by_gaps(other + H(other), gaps)
    if is_complex(u):
        phases = make_imaginary(divide_or_zero(np.imag(take_diagonal_row(turn)), 2 * row))
        du, dv = du + u * phases, dv - v * phases
    if m > n:
        du = du + divide_or_zero(project_beside(dx @ v, u), row)
    if n > m:
        dv = dv + divide_or_zero(project_beside(H(dx) @ u, v), row)
    return stack_rows(du, take_real_part(take_diagonal_row(turn)), dv)


@op(
    compute_svd,
    acts=Matrices(lambda m, n: (m + 1 + n, min(m, n)), ANY, square=False, complex=None),
    d=rule(lambda g, z, x_shape: pull_svd(g, z, x_shape), jvp=lambda dx, z: push_svd(dx, z), adjoint=True),
    lower=on_matrices("svd"),
    run=explain_errors("svd", compute_svd, DIVERGED),
)
def svd_rows(x: TensorLike, /, full: bool = False) -> Any:
    """Return U of ``svd``, under it the row of singular values, under that V; ``full`` is how LAPACK is called.

    >>> svd_rows(np.array([[2.0]])).shape
    (3, 1)
    """


class SVD(NamedTuple):
    """The parts of a singular value decomposition: ``x = (U * S[..., None, :]) @ Vh``.

    >>> pb.linalg.svd(np.eye(2)).S
    array([1., 1.])
    """

    U: Any
    S: Any
    Vh: Any


@observable
def svd(x: TensorLike, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition: ``U``, the singular values in descending order, and ``Vh``.

    Without ``compute_uv`` only the singular values are returned.  With ``full_matrices`` the bases ``U`` and ``Vh`` are
    completed; gradients of functions that depend on the added vectors are meaningless.  The signs of pairs of vectors
    (phases of complex ones) are arbitrary; gradients assume fixed signs, and a function that depends on phases raises
    an error.  Equal singular values, and zero ones of matrices that are not square, have no unique vectors: gradients
    of functions that depend on these are infinite or NaN.  First derivatives of the singular values are always fine.

    x: a tensor, an array or a number.
    full_matrices: whether ``U`` and ``Vh`` are square.
    compute_uv: whether the vectors are computed.

    >>> u, s, v = pb.linalg.svd(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    >>> s
    array([4., 3.])
    >>> u.shape, v.shape
    ((3, 2), (2, 2))
    """
    if not compute_uv:
        return svdvals(x)
    x = check_matrix(x, "svd")
    m, n = x.shape[-2:]
    u, s, v = split_svd(svd_rows(x, bool(full_matrices)), m)
    if full_matrices and m != n:
        if m > n:
            u = complete_basis(u, call_unfollowed(lambda x: np.linalg.svd(x)[0][..., n:], x))
        else:
            v = complete_basis(v, call_unfollowed(lambda x: H(np.linalg.svd(x)[2])[..., m:], x))
    return SVD(u, s, H(v))


@op(
    np.linalg.svdvals,
    acts=Matrices(lambda m, n: (min(m, n),), ANY, square=False),
    d=rule(lambda g, x, z: pull_svdvals(g, x, z), jvp=lambda dx, x: push_svdvals(dx, x), adjoint=True),
    run=explain_errors("svdvals", np.linalg.svdvals, DIVERGED),
    saving=explain_errors("svdvals", lambda x: save_vectors(x), DIVERGED),
)
def svdvals(x: TensorLike, /) -> Any:
    """Return the singular values of matrices, in descending order.  Second derivatives need values that differ.

    x: a tensor, an array or a number.

    >>> pb.linalg.svdvals(np.array([[3.0, 0.0], [0.0, -4.0]]))
    array([4., 3.])
    """


def save_vectors(x: Array) -> Any:
    """Return the singular values; of large matrices with their vectors, which the rule would else compute again."""
    if min(x.shape[-2:]) < MIN_SAVED:
        return np.linalg.svdvals(x)
    u, s, v = np.linalg.svd(x, full_matrices=False)
    keep_residual(s, (u, v))
    return s


def pull_svdvals(g: Value, x: Value, z: Value) -> Any:
    u, v = find_residual(z) or svd(x)[::2]
    return (u * g[..., None, :]) @ v


def push_svdvals(dx: Array, x: Array) -> Any:
    u, _, v = svd(x)
    moved = H(u) @ dx
    return np.sum(np.real(moved * np.conjugate(v)) if is_complex(v) else moved * v, axis=-1)


# ---- QR


def compute_qr(x: Array, complete: bool = False) -> Any:
    q, r = np.linalg.qr(x, "complete" if complete else "reduced")
    n = x.shape[-1]
    return stack_rows(q[..., :n], T(r[..., :n, :]))


@op(
    compute_qr,
    acts=Matrices(lambda m, n: (m + n, n), TALL, square=False),
    d=rule(lambda g, z, x_shape: pull_qr_rows(g, z, x_shape[-2]), jvp=lambda dx, z: push_qr_rows(dx, z), adjoint=True),
    lower=on_matrices("qr"),
    run=explain_errors("qr", compute_qr, DIVERGED),
)
def qr_rows(x: TensorLike, /, complete: bool = False) -> Any:
    """Return the result of ``qr`` of a matrix that is not wide: Q, and under it the transpose of R.

    ``complete`` is how LAPACK is called.

    >>> qr_rows(np.array([[3.0], [4.0]])).shape
    (3, 1)
    """


def pull_qr_rows(g: Value, z: Value, m: int) -> Any:
    q, r = z[..., :m, :], T(z[..., m:, :])
    return pull_qr(q, r, g[..., :m, :], T(g[..., m:, :]))


def pull_qr(q: Value, r: Value, dq: Value, dr: Value) -> Any:
    """Return the cotangent of a matrix that is not wide from those of its Q and R."""
    turn = r @ H(dr)
    if type(dq) is not ndarray or dq.any():  # often R alone is used
        turn = turn - H(dq) @ q
    strict = turn * make_triangle(turn.shape[-1], -1, np.finfo(turn.dtype).dtype)
    whole = strict + H(strict) + make_diagonal_matrix(take_real_part(take_diagonal_row(turn))[..., 0, :])
    return H(solve_with_triangle(r, dq + q @ whole))


def push_qr_rows(dx: Array, z: Array) -> Any:
    m = dx.shape[-2]
    q, r = z[..., :m, :], T(z[..., m:, :])
    dq, dr = push_qr(q, r, dx)
    return stack_rows(dq, T(dr))


def push_qr(q: Array, r: Array, dx: Array) -> tuple[Any, Any]:
    """Return the tangents of Q and R from that of a matrix that is not wide."""
    c = H(solve_with_triangle(r, dx, True))
    b = H(q) @ c
    strict = b * make_triangle(b.shape[-1], -1, np.finfo(b.dtype).dtype)
    up = b - strict + H(strict)
    if is_complex(up):  # the diagonal of R stays real
        up = up - make_diagonal_matrix(make_imaginary(np.imag(take_diagonal_row(b)))[..., 0, :])
    return c - q @ up, up @ r


def compute_wide_qr(x: Array) -> Any:
    return np.concatenate(np.linalg.qr(x), axis=-1)


@op(
    compute_wide_qr,
    acts=Matrices(lambda m, n: (m, m + n), ((2, 4), (3, 2, 3), (4, 5)), square=False),
    d=rule(lambda g, z, x: pull_wide_qr(g, z, x), jvp=lambda dx, z, x: push_wide_qr(dx, z, x), adjoint=True),
    run=explain_errors("qr", compute_wide_qr, DIVERGED),
)
def wide_qr_columns(x: TensorLike, /) -> Any:
    """Return the result of ``qr`` of a matrix with more columns than rows: Q, and beside it R.

    >>> wide_qr_columns(np.array([[3.0, 4.0]])).shape
    (1, 3)
    """


def pull_wide_qr(g: Value, z: Value, x: Value) -> Any:
    """Return the cotangent of a wide matrix; the columns of R beyond its square part are ``H(Q) @ x``."""
    m = x.shape[-2]
    q, r = z[..., :m], z[..., m : 2 * m]
    dq, dr, rest = g[..., :m], g[..., m : 2 * m], g[..., 2 * m :]
    square = pull_qr(q, r, dq + x[..., m:] @ H(rest), dr)
    beside: Any = q @ rest
    return np.concatenate([square, beside], axis=-1)


def push_wide_qr(dx: Array, z: Array, x: Array) -> Any:
    m = x.shape[-2]
    q = z[..., :m]
    dq, dr = push_qr(q, z[..., m : 2 * m], dx[..., :m])
    return np.concatenate([dq, dr, H(dq) @ x[..., m:] + H(q) @ dx[..., m:]], axis=-1)


def solve_with_triangle(r: Value, x: Value, adjoint: bool = False) -> Any:
    """Solve with the triangular R or its adjoint; an error where R is singular."""
    try:
        return triangular_solve(np.conjugate(r) if adjoint and is_complex(r) else r, H(x), False, adjoint)
    except MatrixError:
        n = r.shape[-1]
        raise MatrixError(
            f"qr: the gradient needs linearly independent columns, but R of shape {r.shape} has a zero among the {n} "
            "numbers of its diagonal. Drop columns, or use pb.linalg.svd."
        ) from None


class QR(NamedTuple):
    """The parts of a QR decomposition.

    >>> pb.linalg.qr(np.eye(2)).R.shape
    (2, 2)
    """

    Q: Any
    R: Any


@observable
def qr(x: TensorLike, full_matrices: bool = False) -> QR:
    """Return orthonormal columns ``Q`` and an upper triangular ``R`` with ``Q @ R = x``, for matrices of any shape.

    With ``full_matrices`` Q is square and R has the shape of ``x``; gradients of functions that depend on the added
    columns are meaningless.  It is differentiable where the leading columns are linearly independent.

    >>> q, r = pb.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> np.abs(r).round(6)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    x = check_matrix(x, "qr")
    m, n = x.shape[-2:]
    if m < n:
        z = wide_qr_columns(x)
        return QR(z[..., :m], z[..., m:])
    z = qr_rows(x, bool(full_matrices))
    q, r = z[..., :m, :], T(z[..., m:, :])
    if full_matrices and m > n:
        q = complete_basis(q, call_unfollowed(lambda x: np.linalg.qr(x, mode="complete")[0][..., n:], x))
        r = stack_rows(r, np.zeros((*x.shape[:-2], m - n, n), r.dtype))
    return QR(q, r)


def complete_basis(q: Value, more: Value) -> Any:
    """Return a basis with ``more`` columns orthogonal to ``q``, also under its derivatives."""
    moving = orthonormalize(project_beside(more, q))
    return np.concatenate([q, more + (moving - strip(moving))], axis=-1)


def orthonormalize(x: Value) -> Any:
    """Orthonormalize columns from the first on, keeping their sides."""
    q, r = qr(x)
    one = np.ones((), np.finfo(q.dtype).dtype)
    return q * np.where(take_real_part(take_diagonal_row(r)) < 0, -one, one)


@observable
def gram_schmidt(xs: TensorLike) -> Any:
    """Return vectors made orthonormal one after the other: the rows of a matrix, or a list, which gives a list.

    They must be linearly independent, so there are no more of them than they have components.

    xs: vectors, as rows or a list.

    >>> pb.linalg.gram_schmidt(np.array([[2.0, 0.0, 0.0], [3.0, 4.0, 0.0]])).round(6) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    several = isinstance(xs, list | tuple) and not all(isinstance(x, list | tuple) for x in xs)
    if isinstance(xs, list | tuple) and several:
        vectors = [check_numbers("gram_schmidt", f"xs[{i}]", x) for i, x in enumerate(xs)]
        shapes = {x.shape for x in vectors}
        if len(shapes) != 1 or vectors[0].ndim != 1:
            raise ArgumentError(
                f"gram_schmidt: expected vectors of one length, got shapes {[x.shape for x in vectors]}."
            )
        xs = np.stack(vectors)
    x = check_matrix(xs, "gram_schmidt")
    count, length = x.shape[-2:]
    if count > length:
        raise ShapeError(f"gram_schmidt: {count} vectors of {length} components are not independent; got {x.shape}.")
    values = all_values(x)
    if values.size and np.any(np.linalg.matrix_rank(values) < count):
        raise MatrixError(f"gram_schmidt: the vectors are linearly dependent (got shape {x.shape}).")
    z = T(orthonormalize(T(x)))
    return [z[i] for i in range(count)] if several else z
