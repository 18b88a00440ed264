"""Decompositions: QR, eigenvalues of symmetric matrices, singular values.

An op has one result, so the parts of a decomposition are computed as one, with their rows on top of each other, and
taken apart by slices.  So they are computed once, and one rule knows the cotangents of all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback.core.adjoints import T
from pullback.core.axes import Shape
from pullback.core.calculus import rule
from pullback.core.composition import numbers
from pullback.core.op import op
from pullback.core.tensor import all_values, unfollowed
from pullback.errors import ArgumentError, MatrixError, ShapeError
from pullback.ops.linalg.pieces import (
    ANY,
    DIVERGED,
    SQUARE,
    TALL,
    Matrices,
    below,
    clear,
    diagonal_row,
    differences,
    divided,
    on_diagonal,
    per_gap,
    symmetric,
    unwarned,
)  # fmt: skip
from pullback.ops.linalg.triangular import triangular_solve

__all__ = ["QR", "SVD", "Eigh", "eigh", "eigvalsh", "gram_schmidt", "qr", "svd", "svdvals"]


def joined(*parts: Any) -> Any:
    """Matrices of as many columns, one over the other."""
    return np.concatenate(parts, axis=-2)


def matrix(x: Any, name: str) -> Any:
    x = numbers(name, "x", x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: x must be a matrix, or several over its last two axes; got shape {x.shape}.")
    return x


# ---- eigenvalues


def both_of_eigh(x: Any) -> Any:
    w, v = np.linalg.eigh(symmetric(x))
    return joined(w[..., None, :], v)


@unwarned
def eigh_back(g: Any, z: Any) -> Any:
    w, v = z[..., 0, :], z[..., 1:, :]
    turn = per_gap(T(v) @ g[..., 1:, :], differences(w))
    return symmetric(v @ (turn + on_diagonal(g[..., 0, :])) @ T(v))


@unwarned
def eigh_moved(dx: Any, z: Any) -> Any:
    w, v = z[..., 0, :], z[..., 1:, :]
    turn = T(v) @ symmetric(dx) @ v
    return joined(diagonal_row(turn), v @ per_gap(turn, differences(w)))


@op(
    both_of_eigh,
    acts=Matrices(lambda m, n: (n + 1, n), SQUARE),
    d=rule(lambda g, z: eigh_back(g, z), jvp=lambda dx, z: eigh_moved(dx, z)),
    run=clear("eigh", both_of_eigh, DIVERGED),
)
def joined_eigh(x: Any, /) -> Any:
    """What ``eigh`` gives: a row of eigenvalues, and under it the matrix of eigenvectors.

    >>> joined_eigh(np.diag([1.0, 2.0]))
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


def eigh(x: Any) -> Eigh:
    """The eigenvalues of symmetric matrices, in ascending order, and their eigenvectors as columns.

    What is decomposed is the mean of ``x`` and its transpose, so that gradients are symmetric too.  The sign of an
    eigenvector is a matter of chance; a gradient says how it moves with its sign kept.  Equal eigenvalues have no
    eigenvectors of their own: the gradient of what depends on these is infinite or NaN there, and so is the second
    derivative of eigenvalues.  First derivatives of the eigenvalues alone are fine.

    >>> w, v = pb.linalg.eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> w
    array([1., 2.])
    """
    z = joined_eigh(matrix(x, "eigh"))
    return Eigh(z[..., 0, :], z[..., 1:, :])


def values_of_eigh(x: Any) -> Any:
    return np.linalg.eigvalsh(symmetric(x))


@op(
    values_of_eigh,
    acts=Matrices(lambda m, n: (n,), SQUARE),
    d=rule(lambda g, x: eigvalsh_back(g, x), jvp=lambda dx, x: eigvalsh_moved(dx, x)),
    run=clear("eigvalsh", values_of_eigh, DIVERGED),
)
def eigvalsh(x: Any, /) -> Any:
    """The eigenvalues of symmetric matrices, in ascending order.

    The mean of ``x`` and its transpose is meant.  Second derivatives need eigenvalues that differ.

    >>> pb.linalg.eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([1., 2.])
    """


def eigvalsh_back(g: Any, x: Any) -> Any:
    v = eigh(x).eigenvectors
    return (v * g[..., None, :]) @ T(v)


def eigvalsh_moved(dx: Any, x: Any) -> Any:
    v = eigh(x).eigenvectors
    return np.sum(v * (symmetric(dx) @ v), axis=-2)


# ---- singular values


def all_of_svd(x: Any) -> Any:
    u, s, v = np.linalg.svd(x, full_matrices=False)
    return joined(u, s[..., None, :], T(v))


def svd_parts(z: Any, m: int) -> tuple[Any, Any, Any]:
    return z[..., :m, :], z[..., m, :], z[..., m + 1 :, :]


def square_gaps(s: Any) -> Any:
    """``s[j]**2 - s[i]**2`` for all pairs."""
    return differences(s) * (s[..., None, :] + s[..., :, None])


def beside(x: Any, q: Any) -> Any:
    """The part of the columns ``x`` that is at right angles to those of ``q``."""
    return x - q @ (T(q) @ x)


@unwarned
def svd_back(g: Any, z: Any, x_shape: Shape) -> Any:
    m, n = x_shape[-2:]
    (u, s, v), (du, ds, dv) = svd_parts(z, m), svd_parts(g, m)
    gaps, row = square_gaps(s), s[..., None, :]
    left, right = per_gap(T(u) @ du, gaps), per_gap(T(v) @ dv, gaps)
    turn = (left + T(left)) * row + s[..., :, None] * (right + T(right)) + on_diagonal(ds)
    dx = u @ turn @ T(v)
    if m > n:
        dx = dx + divided(beside(du, u), row) @ T(v)
    if n > m:
        dx = dx + u @ T(divided(beside(dv, v), row))
    return dx


@unwarned
def svd_moved(dx: Any, z: Any) -> Any:
    m, n = dx.shape[-2:]
    u, s, v = svd_parts(z, m)
    gaps, row = square_gaps(s), s[..., None, :]
    turn = T(u) @ dx @ v
    scaled, other = turn * row, s[..., :, None] * turn
    du = u @ per_gap(scaled + T(scaled), gaps)
    dv = v @ per_gap(other + T(other), gaps)
    if m > n:
        du = du + divided(beside(dx @ v, u), row)
    if n > m:
        dv = dv + divided(beside(T(dx) @ u, v), row)
    return joined(du, diagonal_row(turn), dv)


@op(
    all_of_svd,
    acts=Matrices(lambda m, n: (m + 1 + n, min(m, n)), ANY, square=False),
    d=rule(lambda g, z, x_shape: svd_back(g, z, x_shape), jvp=lambda dx, z: svd_moved(dx, z)),
    run=clear("svd", all_of_svd, DIVERGED),
)
def joined_svd(x: Any, /) -> Any:
    """What ``svd`` gives: U, under it the row of singular values, under that V.

    >>> joined_svd(np.array([[2.0]])).shape
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


def svd(x: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """The singular values of matrices, in descending order, between orthonormal ``U`` and ``Vh``.

    Without ``compute_uv`` the singular values alone.  With ``full_matrices`` the bases ``U`` and ``Vh`` are completed;
    a gradient of what depends on the choice of the added vectors has no meaning.  The signs of pairs of vectors are a
    matter of chance; a gradient says how they move with their signs kept.  Equal singular values, and for matrices
    that are not square those that are 0, have no vectors of their own: the gradient of what depends on these is
    infinite or NaN there.  First derivatives of the singular values alone are fine.

    >>> u, s, v = pb.linalg.svd(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    >>> s
    array([4., 3.])
    >>> u.shape, v.shape
    ((3, 2), (2, 2))
    """
    if not compute_uv:
        return svdvals(x)
    x = matrix(x, "svd")
    m, n = x.shape[-2:]
    u, s, v = svd_parts(joined_svd(x), m)
    if full_matrices and m != n:
        if m > n:
            u = completed(u, unfollowed(lambda x: np.linalg.svd(x)[0][..., n:], x))
        else:
            v = completed(v, unfollowed(lambda x: T(np.linalg.svd(x)[2])[..., m:], x))
    return SVD(u, s, T(v))


@op(
    np.linalg.svdvals,
    acts=Matrices(lambda m, n: (min(m, n),), ANY, square=False),
    d=rule(lambda g, x: svdvals_back(g, x), jvp=lambda dx, x: svdvals_moved(dx, x)),
    run=clear("svdvals", np.linalg.svdvals, DIVERGED),
)
def svdvals(x: Any, /) -> Any:
    """The singular values of matrices, in descending order.  Second derivatives need values that differ.

    >>> pb.linalg.svdvals(np.array([[3.0, 0.0], [0.0, -4.0]]))
    array([4., 3.])
    """


def svdvals_back(g: Any, x: Any) -> Any:
    u, _, v = svd(x)
    return (u * g[..., None, :]) @ v


def svdvals_moved(dx: Any, x: Any) -> Any:
    u, _, v = svd(x)
    return np.sum((T(u) @ dx) * v, axis=-1)


# ---- QR


def both_of_qr(x: Any) -> Any:
    q, r = np.linalg.qr(x)
    return joined(q, T(r))


@op(
    both_of_qr,
    acts=Matrices(lambda m, n: (m + n, n), TALL, square=False),
    d=rule(lambda g, z, x_shape: qr_back(g, z, x_shape[-2]), jvp=lambda dx, z: qr_moved(dx, z)),
    run=clear("qr", both_of_qr, DIVERGED),
)
def joined_qr(x: Any, /) -> Any:
    """What ``qr`` gives for a matrix that is not wide: Q, and under it the transpose of R.

    >>> joined_qr(np.array([[3.0], [4.0]])).shape
    (3, 1)
    """


def qr_back(g: Any, z: Any, m: int) -> Any:
    q, r = z[..., :m, :], T(z[..., m:, :])
    dq, dr = g[..., :m, :], T(g[..., m:, :])
    turn = r @ T(dr) - T(dq) @ q
    strict = turn * below(turn.shape[-1], -1, turn.dtype)
    return T(over_triangle(r, dq + q @ (strict + T(strict) + on_diagonal(diagonal_row(turn)[..., 0, :])), False))


def qr_moved(dx: Any, z: Any) -> Any:
    m = dx.shape[-2]
    q, r = z[..., :m, :], T(z[..., m:, :])
    c = T(over_triangle(r, dx, True))
    b = T(q) @ c
    strict = b * below(b.shape[-1], -1, b.dtype)
    up = b - strict + T(strict)
    return joined(c - q @ up, T(up @ r))


def over_triangle(r: Any, x: Any, trans: bool) -> Any:
    """The transpose of ``x`` divided by R; where R is singular the columns of the matrix were dependent."""
    try:
        return triangular_solve(r, T(x), False, trans)
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


def qr(x: Any, full_matrices: bool = False) -> QR:
    """Orthonormal columns ``Q`` and an upper triangular ``R`` with ``Q @ R = x``, for matrices of any shape.

    With ``full_matrices`` Q is square and R has the shape of ``x``; a gradient of what depends on the choice of the
    added columns has no meaning.  Differentiable where the first columns, as many as fit, are linearly independent.

    >>> q, r = pb.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> np.abs(r).round(6)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    x = matrix(x, "qr")
    m, n = x.shape[-2:]
    if m < n:
        q, r = qr(x[..., :m])
        return QR(q, np.concatenate([r, T(q) @ x[..., m:]], axis=-1))
    z = joined_qr(x)
    q, r = z[..., :m, :], T(z[..., m:, :])
    if full_matrices and m > n:
        q = completed(q, unfollowed(lambda x: np.linalg.qr(x, mode="complete")[0][..., n:], x))
        r = joined(r, np.zeros((*x.shape[:-2], m - n, n), r.dtype))
    return QR(q, r)


def completed(q: Any, more: Any) -> Any:
    """A basis with ``more`` columns, which stay at right angles to ``q`` however that moves."""
    return np.concatenate([q, orthonormal(beside(more, q))], axis=-1)


def orthonormal(x: Any) -> Any:
    """Columns made orthonormal from the first on, each on its own side."""
    q, r = qr(x)
    one = np.ones((), q.dtype)
    return q * np.where(diagonal_row(r) < 0, -one, one)


def gram_schmidt(xs: Any) -> Any:
    """Vectors made orthonormal one after the other: the rows of a matrix, or a list, which gives a list.

    They must be linearly independent, so there are no more of them than they have components.

    >>> pb.linalg.gram_schmidt(np.array([[2.0, 0.0, 0.0], [3.0, 4.0, 0.0]])).round(6) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    several = isinstance(xs, list | tuple) and not all(isinstance(x, list | tuple) for x in xs)
    if several:
        vectors = [numbers("gram_schmidt", f"xs[{i}]", x) for i, x in enumerate(xs)]
        shapes = {x.shape for x in vectors}
        if len(shapes) != 1 or vectors[0].ndim != 1:
            raise ArgumentError(
                f"gram_schmidt: expected vectors of one length, got shapes {[x.shape for x in vectors]}."
            )
        xs = np.stack(vectors)
    x = matrix(xs, "gram_schmidt")
    count, length = x.shape[-2:]
    if count > length:
        raise ShapeError(f"gram_schmidt: {count} vectors of {length} components are not independent; got {x.shape}.")
    values = all_values(x)
    if values.size and np.any(np.linalg.matrix_rank(values) < count):
        raise MatrixError(f"gram_schmidt: the vectors are linearly dependent (got shape {x.shape}).")
    z = T(orthonormal(T(x)))
    return [z[i] for i in range(count)] if several else z
