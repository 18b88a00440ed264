"""Equations, inverses and determinants."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback.core import lapack
from pullback.core.axes import moves
from pullback.core.calculus import rule
from pullback.core.composition import check_numbers, rename_errors
from pullback.core.convert import as_number
from pullback.core.lowering import made_of
from pullback.core.lowering import matrices as on_matrices
from pullback.core.op import observable, op
from pullback.core.residuals import find_residual, keep_residual
from pullback.errors import ShapeError
from pullback.numerics.adjoints import H, T
from pullback.ops.linalg.decompositions import svd, svdvals
from pullback.ops.linalg.pieces import (
    DIVERGED,
    SINGULAR,
    SQUARE,
    UNSOLVED,
    Matrices,
    Systems,
    explain_errors,
    is_complex,
    make_complex_matrices,
    make_imaginary,
    make_matrices,
    same_square,
    take_real_part,
)  # fmt: skip
from pullback.ops.linalg.triangular import as_columns, multiply_into_rows, pull_columns

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = ["LeastSquares", "SlogDet", "det", "inv", "lstsq", "pinv", "slogdet", "solve"]


# ---- equations


@op(
    np.linalg.solve,
    acts=Systems(),
    d=rule(
        lambda g, x, z: pull_solve(g, x, z)[0],
        lambda g, x, z: pull_columns(solve_adjoint(g, x, z), g.ndim < x.ndim),
        together=lambda g, x, z: pull_solve(g, x, z),
        jvp=lambda dx, dy, x, z: push_solve(dx, dy, x, z),
    ),
    lower=on_matrices("solve"),
    run=explain_errors("solve", np.linalg.solve, UNSOLVED),
    saving=explain_errors("solve", lambda x, y: solve_and_save(x, y), UNSOLVED),
)
def solve(x: TensorLike, y: TensorLike, /) -> Any:
    """Return the solution ``z`` of ``x @ z = y`` for square ``x``; ``y`` is a vector, or columns if it has more axes.

    >>> pb.linalg.solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0]))
    array([0.5 , 0.25])
    """


def solve_and_save(x: Array, y: Array) -> Any:
    """Return the solution, and save the factors of a large matrix as its residual."""
    factors = lapack.factor(x) if y.ndim in (1, 2) and y.dtype is x.dtype else None
    columns = None if factors is None else lapack.solve_factored(factors, as_columns(y, y.ndim == 1))
    if columns is None:
        return np.linalg.solve(x, y)
    z = columns[:, 0] if y.ndim == 1 else np.ascontiguousarray(columns)
    keep_residual(z, factors)
    return z


def solve_adjoint(g: Value, x: Value, z: Value) -> Any:
    """Return the solution for the adjoint matrix; right-hand sides are columns, or a vector as in ``solve``."""
    right, factors = as_columns(g, g.ndim < x.ndim), find_residual(z)
    found = lapack.solve_factored(factors, right, trans=True) if factors and type(right) is ndarray else None
    return np.linalg.solve(T(x), right) if found is None else found


def pull_solve(g: Value, x: Value, z: Value) -> tuple[Any, Any]:
    """Return the cotangents of the matrix and of the right-hand sides."""
    w, vector = solve_adjoint(g, x, z), g.ndim < x.ndim
    return -multiply_into_rows(w, z, vector), pull_columns(w, vector)


def push_solve(dx: Array, dy: Array, x: Array, z: Array) -> Any:
    vector = z.ndim < x.ndim
    moved = np.linalg.solve(x, as_columns(dy, vector) - dx @ as_columns(z, vector))
    return moved[..., 0] if vector else moved


def invert(x: Array) -> Any:
    factors = lapack.factor(x.T)  # whose columns are the rows of x, so that nothing is rearranged
    return np.linalg.inv(x) if factors is None else lapack.invert_factored(factors).T


@op(
    np.linalg.inv,
    acts=same_square,
    d=rule(lambda g, z: -(T(z) @ g @ T(z)), jvp=lambda dx, z: -(z @ dx @ z)),
    lower=on_matrices("inv"),
    run=explain_errors("inv", invert, SINGULAR),
)
def inv(x: TensorLike, /) -> Any:
    """Return the inverse of square matrices over the last two axes.

    x: a tensor, an array or a number.

    >>> pb.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """


def pseudo_invert(x: Any, rtol: Any = None, hermitian: bool = False) -> Any:
    if rtol is not None and not np.ndim(rtol):
        as_number("pinv", "rtol", rtol, 0)
    if rtol is None and x.ndim > 1:
        rtol = max(x.shape[-2:]) * np.finfo(x.dtype if x.dtype.kind in "fc" else float).eps
    return np.linalg.pinv(x, rtol=rtol, hermitian=bool(hermitian))


@op(
    pseudo_invert,
    acts=Matrices(lambda m, n: (n, m), [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2, 3)], square=False),
    d=rule(lambda g, x, z: pull_pinv(g, x, z), jvp=lambda dx, x, z: push_pinv(dx, x, z), adjoint=True),
    lower=made_of(lambda x, rtol, hermitian: compute_pinv_by_svd(x, rtol)),
    run=explain_errors("pinv", pseudo_invert, DIVERGED),
)
def pinv(x: TensorLike, /, rtol: float | Value | None = None, hermitian: bool = False) -> Any:
    """Return the pseudo-inverse of matrices of any shape; singular values under ``rtol`` times the largest count as 0.

    It is differentiable where the rank is constant nearby, as at full rank; singular values that count as 0 are assumed
    to be exactly 0.  The default of ``rtol`` is the larger side times the precision of the dtype.

    x: a tensor, an array or a number.
    rtol: singular values below this fraction of the largest count as zero.
    hermitian: whether the matrices are symmetric or Hermitian.

    >>> pb.linalg.pinv(np.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """


def compute_pinv_by_svd(x: Value, rtol: Any) -> Any:
    """Return the pseudo-inverse as a formula of the singular vectors, as NumPy computes it."""
    u, s, vh = svd(x)
    if rtol is None:
        rtol = max(x.shape[-2:]) * np.finfo(s.dtype).eps
    cut = np.asarray(rtol, s.dtype)[..., None] * s[..., :1]
    inverse = np.where(s > cut, 1 / np.where(s > cut, s, np.ones_like(s)), np.zeros_like(s))
    return H(vh) @ (inverse[..., None] * H(u))


def pull_pinv(g: Value, x: Value, z: Value) -> Any:
    h, t = H(g), H(z)
    a, b = h @ z @ t, t @ z @ h
    return a - x @ (z @ a) + b - (b @ z) @ x - t @ g @ t


def push_pinv(dx: Array, x: Array, z: Array) -> Any:
    d, t = H(dx), H(z)
    a, b = z @ t @ d, d @ t @ z
    return a - (a @ x) @ z + b - z @ (x @ b) - z @ dx @ z


class LeastSquares(NamedTuple):
    """The result of ``lstsq``: the solution, the sums of squared residuals, the ranks and the singular values.

    >>> pb.linalg.lstsq(np.eye(2), np.ones(2)).rank
    np.int64(2)
    """

    x: Any
    residuals: Any
    rank: Any
    s: Any


@rename_errors("lstsq")
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> LeastSquares:
    """Return the least-squares solution of ``a @ x = b`` with the smallest norm; ``b`` is a vector or has columns.

    ``residuals`` are the sums of squared residuals.  It is differentiable where the rank of ``a`` is constant nearby.

    a: the matrix.
    b: the right-hand side, a vector or a matrix.
    rcond: singular values below this fraction of the largest count as zero.

    >>> pb.linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0])).x
    array([2.])
    """
    a, b = check_numbers("lstsq", "a", a), check_numbers("lstsq", "b", b)
    if a.ndim < 2 or not b.ndim or b.shape[-2:][0] != a.shape[-2]:
        raise ShapeError(
            f"lstsq: a has a row and b an element or a row for each equation; got shapes {a.shape} and {b.shape}."
        )
    s = svdvals(a)
    rtol = max(a.shape[-2:]) * np.finfo(s.dtype).eps if rcond is None else as_number("lstsq", "rcond", rcond, 0)
    x = least_squares(a, b, rtol) if a.ndim == 2 and b.ndim < 3 else pinv(a, rtol) @ b
    off = np.absolute(b - a @ x)
    rank = np.sum(s > s[..., :1] * rtol, axis=-1)
    return LeastSquares(x, np.sum(off * off, axis=-1 if b.ndim == 1 else -2), rank, s)


def solve_least_squares(a: Array, b: Array, rtol: float) -> Any:
    if not a.size:  # LAPACK's is not always defined there
        return pinv(a, rtol) @ b
    return np.linalg.lstsq(a, b, rtol)[0]


def list_least_squares_samples() -> list[Any]:
    right = [np.cos(np.arange(1.0, 1.0 + prod(shape))).reshape(shape) for shape in ((4,), (4, 2), (2,), (2, 3), (4, 2))]
    left = [
        make_matrices(4, 2),
        make_matrices(4, 2),
        make_matrices(2, 4),
        make_matrices(2, 2),
        make_complex_matrices(4, 2),
    ]
    return [((a, b), {"rtol": 1e-12}) for a, b in zip(left, right, strict=True)]


@op(
    solve_least_squares,
    acts=moves(lambda a, b, rtol: (a[1], *b[1:]), list_least_squares_samples),
    d=rule(
        lambda g, a, b, rtol: pull_least_squares(g, a, b, pinv(a, rtol)),
        lambda g, a, rtol: H(pinv(a, rtol)) @ g,
        jvp=lambda da, db, a, b, rtol: push_least_squares(da, db, a, b, pinv(a, rtol)),
        adjoint=True,
    ),
    lower=made_of(lambda a, b, rtol: solve_least_squares_by_svd(a, b, rtol)),
    run=explain_errors("lstsq", solve_least_squares, DIVERGED),
)
def least_squares(a: TensorLike, b: TensorLike, /, rtol: float) -> Any:
    """Return the least-squares solution with the smallest norm for one matrix.

    >>> least_squares(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]), 1e-15)
    array([2.])
    """


def solve_least_squares_by_svd(a: Any, b: Any, rtol: float) -> Any:
    """Return the solution by the pseudo-inverse; integers take the precision of the other operand."""
    if a.dtype.kind in "iub" and b.dtype.kind in "fc":
        a = np.astype(a, b.dtype)
    return pinv(a, rtol) @ b


def pull_least_squares(g: Value, a: Value, b: Value, inverse: Value) -> Any:
    outer = g[:, None] * np.conjugate(b) if b.ndim == 1 else g @ H(b)
    return pull_pinv(outer, a, inverse)


def push_least_squares(da: Array, db: Array, a: Array, b: Array, inverse: Array) -> Any:
    return inverse @ db + push_pinv(da, a, inverse) @ b


# ---- determinants


def det_vjp(g: Value, x: Value) -> Any:
    return g[..., None, None] * cofactors(x)


def det_jvp(dx: Value, x: Value) -> Any:
    return np.sum(cofactors(x) * dx, axis=(-2, -1))


@op(
    np.linalg.det,
    acts=Matrices(lambda m, n: (), SQUARE),
    d=rule(det_vjp, jvp=det_jvp),
    lower=on_matrices("det", fails=False),
    run=explain_errors("det", np.linalg.det, SINGULAR),
)
def det(x: TensorLike, /) -> Any:
    """Return the determinant of square matrices over the last two axes.

    The gradient is correct for singular matrices too; higher derivatives need an invertible matrix.

    x: a tensor, an array or a number.

    >>> pb.linalg.det(np.array([[1.0, 2.0], [3.0, 5.0]])).round(6)
    np.float64(-1.0)
    >>> pb.grad(pb.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]])).round(6)
    array([[ 4., -2.],
           [-2.,  1.]])
    """


def compute_cofactors(x: Array) -> Any:
    try:
        factors = lapack.factor(x.T)
        if factors is None:
            return np.linalg.det(x)[..., None, None] * T(np.linalg.inv(x))
        sign, logarithm = lapack.slogdet_factored(factors)
        return sign * np.exp(logarithm) * lapack.invert_factored(factors)
    except np.linalg.LinAlgError:  # a singular one has cofactors too, by products of all other singular values
        u, s, v = np.linalg.svd(x)
        signs = np.linalg.det(u) * np.linalg.det(v)
        u, v = np.conjugate(u), np.conjugate(v)  # the transposed inverse, not the adjoint one
        ones = np.ones_like(s[..., :1])
        before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
        after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
        return signs[..., None, None] * ((u * (before * after)[..., None, :]) @ v)


@op(
    compute_cofactors,
    acts=same_square,
    d=rule(lambda g, x, z: differentiate_cofactors(g, x, z), jvp=lambda dx, x, z: differentiate_cofactors(dx, x, z)),
    lower=on_matrices("cofactors"),
    run=explain_errors("cofactors", compute_cofactors, SINGULAR),
)
def cofactors(x: TensorLike, /) -> Any:
    """Return the matrix of cofactors, ``det(x) * inv(x).T``: the gradient of the determinant.

    >>> cofactors(np.array([[1.0, 2.0], [2.0, 4.0]])).round(6)
    array([[ 4., -2.],
           [-2.,  1.]])
    """


def differentiate_cofactors(g: Value, x: Value, z: Value) -> Any:
    """Return the tangent or cotangent: the derivative is its own adjoint."""
    products: Any = g * z
    return (np.sum(products, axis=(-2, -1), keepdims=True) * z - z @ T(g) @ z) / np.linalg.det(x)[..., None, None]


def compute_slogdet(x: Array) -> Any:
    """Return sign and logarithm of the determinant as one array; of large matrices the factors are kept, transposed."""
    try:
        factors = lapack.factor(x.T)
    except np.linalg.LinAlgError:
        factors = None
    if factors is None:
        return np.stack(np.linalg.slogdet(x), axis=-1)
    z = np.array(lapack.slogdet_factored(factors))
    keep_residual(z, factors)
    return z


@op(
    compute_slogdet,
    acts=Matrices(lambda m, n: (2,), SQUARE),
    d=rule(
        lambda g, x, z: pull_slogdet(g, x, z),
        jvp=lambda dx, x, z: push_slogdet(np.sum(T(inv(x)) * dx, axis=(-2, -1)), z),
        adjoint=True,
    ),
    lower=on_matrices("slogdet", fails=False),
    run=explain_errors("slogdet", compute_slogdet, SINGULAR),
)
def slogdet_pair(x: TensorLike, /) -> Any:
    """Return the sign and the logarithm of the determinant, along a last axis of two.

    >>> slogdet_pair(np.diag([-1.0, 1.0]))
    array([-1.,  0.])
    """


def pull_slogdet(g: Value, x: Value, z: Value) -> Any:
    size = g[..., 1]
    if is_complex(x):  # a complex sign has a tangent
        size = np.real(size) + make_imaginary(np.imag(np.conjugate(z[..., 0]) * g[..., 0]))
    factors = find_residual(z)
    inverse = H(inv(x)) if factors is None else lapack.invert_factored(factors)
    return size[..., None, None] * inverse


def push_slogdet(t: Array, z: Array) -> Any:
    """Return the tangent from that of the logarithm of the determinant."""
    if not is_complex(t):
        return np.stack([np.zeros_like(t), t], axis=-1)
    return np.stack(
        [z[..., 0] * make_imaginary(np.imag(t)), np.real(t) + make_imaginary(np.zeros_like(np.real(t)))], axis=-1
    )


class SlogDet(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value.

    >>> pb.linalg.SlogDet(1.0, 0.5).logabsdet
    0.5
    """

    sign: Any
    logabsdet: Any


@observable
@rename_errors("slogdet")
def slogdet(x: TensorLike) -> SlogDet:
    """Return the sign of the determinant and the logarithm of its absolute value, which does not overflow.

    The gradient is the transposed inverse, so a singular matrix, whose logarithm is ``-inf``, has none.  The sign of a
    complex determinant is a number of absolute value 1, which has a gradient too.

    x: a tensor, an array or a number.

    >>> sign, log = pb.linalg.slogdet(np.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> print(sign, round(float(log), 6))
    -1.0 0.693147
    """
    z = slogdet_pair(x)
    return SlogDet(z[..., 0][()], take_real_part(z[..., 1])[()])  # numbers, not views, where there are no axes
