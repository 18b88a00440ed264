"""Triangular systems and the Cholesky factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core import lapack
from pullback.core.calculus import rule
from pullback.core.lapack import MIN_ROWS
from pullback.core.lowering import matrices
from pullback.core.op import op
from pullback.errors import ArgumentError, MatrixError
from pullback.numerics.adjoints import H, T
from pullback.ops.linalg.pieces import (
    SQUARE,
    Matrices,
    Systems,
    explain_errors,
    make_complex_positive_matrices,
    make_identity,
    make_positive_matrices,
    make_triangle,
    mask_triangle,
    symmetrize,
)  # fmt: skip

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = ["cholesky", "triangular_solve"]

BLOCK_ROWS = 32  # up to here elimination of the whole is as quick as substitution


# ---- right sides that may be one vector


def as_columns(y: Any, vector: bool) -> Any:
    """Return right-hand sides as columns."""
    return y[..., None] if vector else y


def pull_columns(y: Value, vector: bool) -> Any:
    """Return the cotangent of right-hand sides from that of columns; a shared vector is summed over matrices."""
    if not vector:
        return y
    y = y[..., 0]
    return np.sum(y, axis=tuple(range(y.ndim - 1))) if y.ndim > 1 else y


def multiply_into_rows(w: Value, z: Value, vector: bool) -> Any:
    """Return the products of columns ``w`` with solutions ``z``, which is where a change of the matrix acts."""
    return w @ T(as_columns(z, vector))


# ---- substitution


def substitute(x: Array, y: Array, lower: bool = True, trans: bool = False) -> Any:
    for argument, value in (("lower", lower), ("trans", trans)):
        if value not in (True, False):
            raise ArgumentError(f"triangular_solve: {argument} must be True or False, got {value!r}.")
    vector = y.ndim == 1
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or y.shape[-2:][:1] != x.shape[-1:]:
        raise ValueError("shapes do not fit")  # the engine raises the error
    if not x.diagonal(0, -2, -1).all():
        raise MatrixError(
            f"triangular_solve: a zero on the diagonal of x makes it singular (got shape {x.shape} and {y.shape})."
        )
    z = solve_by_blocks(T(x) if trans else x, as_columns(y, vector), lower != trans)
    return z[..., 0] if vector else z


def solve_by_blocks(a: Array, b: Array, lower: bool) -> Any:
    """Return the solution by substitution of a block of rows after the other: most of it is matrix products."""
    n, columns = a.shape[-1], b.shape[-1]
    if n >= MIN_ROWS and (found := lapack.solve_triangular(a, b, lower)) is not None:
        return found
    if n <= BLOCK_ROWS:
        return np.linalg.solve(take_triangle(a, lower), b)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    z = np.empty((*batch, n, columns), np.result_type(a, b))
    starts = range(0, n, BLOCK_ROWS)
    for start in starts if lower else reversed(starts):
        own = slice(start, min(start + BLOCK_ROWS, n))
        done = slice(start) if lower else slice(own.stop, n)
        known: Any = a[..., own, done] @ z[..., done, :]
        right = b[..., own, :] - known
        block = take_triangle(a[..., own, own], lower)
        # the inverse of a block pays for many columns
        z[..., own, :] = np.linalg.inv(block) @ right if columns > BLOCK_ROWS else np.linalg.solve(block, right)
    return z


@op(
    substitute,
    acts=Systems([{"lower": lower, "trans": trans} for lower in (True, False) for trans in (False, True)]),
    d=rule(
        lambda g, x, y_shape, z, lower, trans: pull_substitution(g, x, z, len(y_shape) == 1, lower, trans)[0],
        lambda g, x, y_shape, lower, trans: pull_columns(
            substitute_adjoint(g, x, len(y_shape) == 1, lower, trans), len(y_shape) == 1
        ),
        together=lambda g, x, y_shape, z, lower, trans: pull_substitution(g, x, z, len(y_shape) == 1, lower, trans),
        jvp=lambda dx, dy, x, y_shape, z, lower, trans: push_substitution(
            dx, dy, x, z, len(y_shape) == 1, lower, trans
        ),
    ),
    lower=matrices("triangular"),
    run=explain_errors("triangular_solve", substitute, "the matrix is singular"),
)
def triangular_solve(x: TensorLike, y: TensorLike, /, lower: bool = True, trans: bool = False) -> Any:
    """Return the solution ``z`` of ``x @ z = y`` for a triangular ``x``; with ``trans``, of ``x.T @ z = y``.

    The other triangle of ``x`` is not read.

    x: triangular matrices.
    y: right-hand sides: a vector, or columns if it has more axes.
    lower: whether the matrix is lower triangular.
    trans: whether the transposed system is solved.

    >>> x = np.array([[2.0, 9.0], [1.0, 4.0]])
    >>> pb.linalg.triangular_solve(x, np.array([2.0, 5.0]))
    array([1., 1.])
    >>> pb.linalg.triangular_solve(x, np.array([11.0, 4.0]), lower=False)
    array([1., 1.])
    """


def take_triangle(x: Value, lower: bool) -> Any:
    return np.where(mask_triangle(x.shape[-1], lower), x, np.zeros((), x.dtype))


def substitute_adjoint(g: Value, x: Value, vector: bool, lower: bool, trans: bool) -> Any:
    return triangular_solve(x, as_columns(g, vector), lower, not trans)


def pull_substitution(g: Value, x: Value, z: Value, vector: bool, lower: bool, trans: bool) -> tuple[Any, Any]:
    """Return the cotangents of the matrix and of the right sides."""
    w = substitute_adjoint(g, x, vector, lower, trans)
    moved = multiply_into_rows(w, z, vector)
    return -take_triangle(T(moved) if trans else moved, lower), pull_columns(w, vector)


def push_substitution(dx: Array, dy: Array, x: Array, z: Array, vector: bool, lower: bool, trans: bool) -> Any:
    change = take_triangle(dx, lower)
    right = as_columns(dy, vector) - (T(change) if trans else change) @ as_columns(z, vector)
    moved = triangular_solve(x, right, lower, trans)
    return moved[..., 0] if vector else moved


# ---- Cholesky

INDEFINITE = "a matrix is not positive definite; try adding a little to the diagonal"


def compute_cholesky(x: Array, upper: bool = False) -> Any:
    return np.linalg.cholesky(symmetrize(x), upper=bool(upper))


def halve_diagonal(x: Value) -> Any:
    """Return the lower triangle with half of the diagonal."""
    n = x.shape[-1]
    kind = np.finfo(x.dtype).dtype
    return x * (make_triangle(n, 0, kind) - make_identity(n, kind) / 2)


@op(
    compute_cholesky,
    acts=Matrices(
        lambda m, n: (m, n),
        SQUARE,
        fill=make_positive_matrices,
        parameter_sets=({}, {"upper": True}),
        complex=make_complex_positive_matrices,
    ),
    d=rule(
        lambda g, z, upper: pull_cholesky(H(g), H(z)) if upper else pull_cholesky(g, z),
        jvp=lambda dx, z, upper: H(push_cholesky(dx, H(z))) if upper else push_cholesky(dx, z),
        adjoint=True,
    ),
    lower=matrices("cholesky"),
    run=explain_errors("cholesky", compute_cholesky, INDEFINITE),
)
def cholesky(x: TensorLike, /, upper: bool = False) -> Any:
    """Return the lower triangular ``L`` with ``L @ L.T = x``, for symmetric (Hermitian) positive definite matrices.

    The mean of ``x`` and its (conjugate) transpose is factored, so that gradients are symmetric too.  With ``upper``
    the (conjugate) transpose of ``L`` is returned.

    >>> pb.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 10.0]]))
    array([[2., 0.],
           [1., 3.]])
    """


def factor_triangle(x: Array, upper: bool = False) -> Any:
    return np.linalg.cholesky(x, upper=bool(upper))


@op(
    factor_triangle,
    acts=Matrices(
        lambda m, n: (m, n), SQUARE, fill=make_positive_matrices, parameter_sets=({}, {"upper": True}), complex=None
    ),
    d=rule(
        lambda g, z, upper: T(pull_triangle_factor(T(g), T(z))) if upper else pull_triangle_factor(g, z),
        jvp=lambda dx, z, upper: T(push_triangle_factor(T(dx), T(z))) if upper else push_triangle_factor(dx, z),
    ),
    lower=matrices("triangle_factor"),
    run=explain_errors("cholesky", factor_triangle, INDEFINITE),
)
def cholesky_of_triangle(x: TensorLike, /, upper: bool = False) -> Any:
    """Return the Cholesky factor of the symmetric matrix that one triangle determines: lower, or with ``upper`` upper.

    >>> cholesky_of_triangle(np.array([[4.0, np.nan], [2.0, 10.0]]))
    array([[2., 0.],
           [1., 3.]])
    """


def pull_triangle_factor(g: Value, z: Value) -> Any:
    both = solve_on_both_sides(z, halve_diagonal(H(z) @ g), True)
    return halve_diagonal(both + H(both))


def push_triangle_factor(dx: Array, z: Array) -> Any:
    own = halve_diagonal(dx)
    return z @ halve_diagonal(solve_on_both_sides(z, own + H(own), False))


def solve_on_both_sides(z: Value, x: Value, trans: bool) -> Any:
    """Return ``inv(z) @ x @ inv(z).H`` for a lower triangular ``z``; with ``trans`` that of ``z.H`` in its place."""
    if type(z) is ndarray and z.shape[-1] <= BLOCK_ROWS:  # one inverse takes less time than two solutions
        w = H(np.linalg.inv(z)) if trans else np.linalg.inv(z)
        return w @ x @ H(w)
    z = np.conjugate(z) if trans and z.dtype.kind == "c" else z
    w = triangular_solve(z, x, True, trans)
    return H(triangular_solve(z, H(w), True, trans))


def pull_cholesky(g: Value, z: Value) -> Any:
    return symmetrize(solve_on_both_sides(z, halve_diagonal(H(z) @ g), True))


def push_cholesky(dx: Array, z: Array) -> Any:
    return z @ halve_diagonal(solve_on_both_sides(z, symmetrize(dx), False))
