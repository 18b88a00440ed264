"""Norms, condition number and rank of matrices."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.calculus import no_derivative
from pullback.core.composition import rename_errors
from pullback.core.op import observable, op
from pullback.errors import ArgumentError
from pullback.ops.linalg.decompositions import svdvals
from pullback.ops.linalg.eigenvalues import check_matrix
from pullback.ops.linalg.pieces import ANY, DIVERGED, Matrices, explain_errors
from pullback.ops.linalg.solving import inv

if TYPE_CHECKING:
    from pullback.typing import TensorLike

__all__ = ["cond", "matrix_norm", "matrix_rank"]


@observable
def matrix_norm(x: TensorLike, ord: str | float = "fro", keepdims: bool = False) -> Any:
    """Return the norm of matrices over the last two axes.

    ``ord`` is ``"fro"`` (of all elements), ``"nuc"`` (the sum of the singular values), 2 or -2 (the largest or
    smallest of them), 1 or -1 (the largest or smallest column sum), ``inf`` or ``-inf`` (the same of rows).

    x: a tensor, an array or a number.
    ord: which norm, as in NumPy.
    keepdims: whether the axes that are reduced stay, with length 1.

    >>> pb.linalg.matrix_norm(np.array([[3.0, 0.0], [0.0, 4.0]]), "nuc")
    np.float64(7.0)
    """
    x = check_matrix(x, "matrix_norm")
    if ord in ("fro", "f", "euclidean", 1, -1, inf, -inf):
        return np.linalg.matrix_norm(x, keepdims=keepdims, ord="fro" if isinstance(ord, str) else ord)
    if ord not in ("nuc", 2, -2):
        raise ArgumentError(f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf; got {ord!r}.")
    s = svdvals(x)
    z = np.sum(s, axis=-1) if ord == "nuc" else np.max(s, axis=-1) if ord == 2 else np.min(s, axis=-1)
    return z[..., None, None] if keepdims else z


@rename_errors("cond")
def cond(x: TensorLike, p: str | float | None = None) -> Any:
    """Return the condition number: the bound on the growth of relative errors in solving equations.

    x: a tensor, an array or a number.
    p: which norm, as in NumPy.

    >>> pb.linalg.cond(np.array([[1.0, 0.0], [0.0, 4.0]]))
    np.float64(4.0)
    """
    x = check_matrix(x, "cond")
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, inf, -inf):
        raise ArgumentError(f"cond: p must be None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf; got {p!r}.")
    if p is None or p in (2, -2):
        s = svdvals(x)
        z = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        is_undefined = np.isnan(z) & ~np.any(np.isnan(x), axis=(-2, -1))  # of zeros or infinities: NumPy gives inf
        return np.where(is_undefined, inf, z)[()]
    return matrix_norm(x, p) * matrix_norm(inv(x), p)


def _count_singular_values(x: Any, tol: Any, hermitian: bool, rtol: Any) -> Any:
    for name, limit in (("tol", tol), ("rtol", rtol)):
        if np.ndim(limit):
            raise ArgumentError(
                f"matrix_rank: {name} must be one number, got shape {np.shape(limit)}. np.linalg.matrix_rank takes one "
                "for each matrix."
            )
    return np.asarray(np.linalg.matrix_rank(x, tol, hermitian, rtol=rtol))


@op(
    np.linalg.matrix_rank,
    acts=Matrices(lambda m, n: (), [s for s in ANY if 0 not in s[-2:]], square=False),
    d=no_derivative(),
    run=explain_errors("matrix_rank", _count_singular_values, DIVERGED),
)
def matrix_rank(x: TensorLike, /, tol: float | None = None, hermitian: bool = False, rtol: float | None = None) -> Any:
    """Return the number of singular values above ``tol``, or above ``rtol`` times the largest; it has no gradient.

    x: a tensor, an array or a number.
    tol: singular values below it count as zero.
    hermitian: whether the matrices are symmetric or Hermitian.
    rtol: the same, relative to the largest singular value.

    >>> pb.linalg.matrix_rank(np.array([[1.0, 2.0], [2.0, 4.0]]))
    np.int64(1)
    """
