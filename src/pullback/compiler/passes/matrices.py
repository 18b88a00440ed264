"""Lower matrix factorizations and linear equations to nodes that have machine code.

Equations with a matrix, its transpose, its inverse and its determinant share one factorization, as equal nodes are
merged: so a function and its gradients factor a matrix once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.ir.graph import (
    Fold,
    Graph,
    Node,
    Pieces,
    Shape,
    View,
    compute_strides,
    is_transposed,
    reshape,
    resolve_view,
    transpose,
)
from pullback.compiler.ir.kinds import CAST, FOLD, MATRICES, PIECES, VIEW
from pullback.compiler.ir.matrices import CHOLESKY, EIGH, LU, MULTIPLY, PIVOTS, QR, SUBSTITUTE, SVD, TRIANGULAR, Routine
from pullback.core.axes import together
from pullback.core.tensor import BY_KERNEL

MIN_HALVED_ROWS = 64  # rows from which half of a product is worth a call of LAPACK


def lower_matrices(g: Graph, n: Node, args: list[Node]) -> Node | None:
    """Return nodes with machine code for a function of matrices; None if NumPy must run it."""
    op, params = n.data
    has_floats = code_of(n.dtype) in FLOATS and all(a.dtype == n.dtype and a.size for a in args)
    return RULES[op.lower.symbol](g, n, *args, **params) if has_floats else None


def multiply_triangle(g: Graph, n: Node, a: Node, b: Node) -> Node | None:
    """Return the product of a Cholesky factor or its transpose and a matrix, with half the work; None for others."""
    factor = a.args[0] if is_transposed(a) else a
    fits = factor.kind is MATRICES and factor.data.name == CHOLESKY and factor.shape == a.shape and len(a.shape) == 2
    if not fits or min(n.shape) < MIN_HALVED_ROWS:
        return None
    return _call(g, n, Routine(MULTIPLY, trans=factor is not a), factor, b)


def _lower_cholesky(g: Graph, n: Node, x: Node, upper: bool) -> Node:
    z = _call(g, n, Routine(CHOLESKY), _symmetrize(g, n, x))
    return transpose(g, z) if upper else z


def _symmetrize(g: Graph, n: Node, x: Node) -> Node:
    both = g.add_op(np.add, x, transpose(g, x), line=n.line)
    return g.add_op(np.multiply, both, g.add_constant(0.5, x.dtype), line=n.line)


def _lower_triangle_factor(g: Graph, n: Node, x: Node, upper: bool) -> Node:
    """Return the Cholesky factor of the symmetric matrix that one triangle determines: LAPACK reads only that."""
    z = _call(g, n, Routine(CHOLESKY), transpose(g, x) if upper else x)
    return transpose(g, z) if upper else z


def _lower_triangular(g: Graph, n: Node, x: Node, y: Node, lower: bool, trans: bool) -> Node:
    a, b = _align(g, x, y)
    if is_transposed(a):
        a, lower, trans = transpose(g, a), not lower, not trans  # as it lies in memory
    if is_transposed(b) and b.shape[-1] <= b.shape[-2]:  # solve for its rows; for more of them a copy is quicker
        z = transpose(g, _call(g, n, Routine(TRIANGULAR, lower, not trans, True), a, transpose(g, b)))
    else:
        z = _call(g, n, Routine(TRIANGULAR, lower, trans), a, b)
    return reshape(g, z, n.shape)


def _lower_solve(g: Graph, n: Node, x: Node, y: Node) -> Node:
    factors, trans = _factor(g, n, x)
    a, b = _align(g, factors, y)
    return reshape(g, _call(g, n, Routine(SUBSTITUTE, trans=trans), a, b), n.shape)


def _lower_inv(g: Graph, n: Node, x: Node) -> Node:
    factors, trans = _factor(g, n, x)
    a, b = _align(g, factors, g.add_constant(np.eye(x.shape[-1], dtype=x.dtype)))
    z = _call(g, n, Routine(SUBSTITUTE), a, b)
    return transpose(g, z) if trans else z


def _lower_det(g: Graph, n: Node, x: Node) -> Node:
    sign, logarithm = _find_determinant(g, n, x)
    return g.add_op(np.multiply, sign, g.add_op(np.exp, logarithm, line=n.line), line=n.line)  # no product overflows


def _lower_slogdet(g: Graph, n: Node, x: Node) -> Node:
    parts = [reshape(g, part, (*part.shape, 1)) for part in _find_determinant(g, n, x)]
    before = (0,) * (len(n.shape) - 1)
    return g.add(PIECES, parts, n.shape, n.dtype, Pieces(((*before, 0), (*before, 1)), 0.0), n.line)


def _lower_cofactors(g: Graph, n: Node, x: Node) -> Node:
    det = _lower_det(g, n, x)
    inverse = transpose(g, _lower_inv(g, n, x))
    return g.add_op(np.multiply, reshape(g, det, (*det.shape, 1, 1)), inverse, line=n.line)


def _factor(g: Graph, n: Node, x: Node) -> tuple[Node, bool]:
    """Return the factors of a matrix or of its transpose, and whether they are those of the transpose."""
    trans = is_transposed(x)
    columns = x if trans else transpose(g, x)  # in memory a factorization goes by columns
    return _call(g, n, Routine(LU), columns), trans


def _find_determinant(g: Graph, n: Node, x: Node) -> tuple[Node, Node]:
    """Return the sign of the determinant and the logarithm of its absolute value."""
    factors, _ = _factor(g, n, x)
    pivots = _call(g, n, Routine(PIVOTS), factors)
    numbers = {k: g.add_constant(float(k), x.dtype) for k in (-1, 0, 1)}
    apply = partial(g.add_op, line=n.line)
    negative, is_zero = (apply(compare, pivots, numbers[0], dtype=bool) for compare in (np.less, np.equal))
    signs = apply(np.where, negative, numbers[-1], numbers[1], dtype=x.dtype)
    signs = apply(np.where, is_zero, numbers[0], signs, dtype=x.dtype)
    logarithms = apply(np.log, apply(np.absolute, pivots))
    return _fold(g, n, np.prod, signs), _fold(g, n, np.sum, logarithms)


def _call(g: Graph, n: Node, routine: Routine, *args: Node) -> Node:
    return g.add(MATRICES, args, routine.find_shape([a.shape for a in args]), args[0].dtype, routine, n.line)


def _align(g: Graph, x: Node, y: Node) -> tuple[Node, Node]:
    """Return matrices and right-hand sides as columns, both broadcast to the whole batch."""
    y = reshape(g, y, (*y.shape, 1)) if len(y.shape) == 1 else y
    batch = together(x.shape[:-2], y.shape[:-2])
    return _spread(g, x, batch), _spread(g, y, batch)


def _spread(g: Graph, x: Node, batch: Shape) -> Node:
    """Return matrices broadcast to the axes of a batch."""
    shape = (*batch, *x.shape[-2:])
    if x.shape == shape:
        return x
    base, offset, steps = resolve_view(x)
    kept = [0 if length == 1 else step for length, step in zip(x.shape[:-2], steps, strict=False)]
    strides = (*(0,) * (len(shape) - len(x.shape)), *kept, *steps[-2:])
    return g.add(VIEW, (base,), shape, x.dtype, View(offset, strides), x.line)


def _fold(g: Graph, n: Node, kernel: Callable[..., Any], x: Node) -> Node:
    if x.shape[-1] == 1:
        return reshape(g, x, x.shape[:-1])
    return g.add(FOLD, (x,), x.shape[:-1], x.dtype, Fold(BY_KERNEL[kernel], (len(x.shape) - 1,)), n.line)


def _lower_eigh(g: Graph, n: Node, x: Node, uplo: str) -> Node | None:
    if uplo.upper() not in ("L", "U"):
        return None
    x = _widen(g, x)
    z = _call(g, n, Routine(EIGH, lower=uplo.upper() == "L"), _symmetrize(g, n, x))
    return _stack(g, n, z, [(1, False), (x.shape[-1], True)])


def _lower_svd(g: Graph, n: Node, x: Node, full: bool) -> Node | None:
    if full:
        return None
    x = _widen(g, x)
    rows, columns = x.shape[-2:]
    z = _call(g, n, Routine(SVD), transpose(g, x))
    return _stack(g, n, z, [(rows, True), (1, False), (columns, False)])


def _lower_qr(g: Graph, n: Node, x: Node, complete: bool) -> Node | None:
    if complete:
        return None
    rows, columns = x.shape[-2:]
    z = _call(g, n, Routine(QR), transpose(g, x))
    return _stack(g, n, z, [(rows, True), (columns, False)])


def _stack(g: Graph, n: Node, z: Node, parts: Sequence[tuple[int, bool]]) -> Node:
    """Return consecutive matrices stacked below each other; ``parts`` has the rows of each, and if it is by columns."""
    width, at, starts, pieces = n.shape[-1], 0, [], []
    steps = tuple(s for s in compute_strides(z.shape)[:-1])
    for rows, is_by_columns in parts:
        inner = (1, rows) if is_by_columns else (width, 1)
        view = View(at * width, (*steps, *inner))
        pieces.append(g.add(VIEW, (z,), (*n.shape[:-2], rows, width), z.dtype, view, n.line))
        starts.append((*(0,) * (len(n.shape) - 2), at, 0))
        at += rows
    whole = g.add(PIECES, pieces, n.shape, z.dtype, Pieces(tuple(starts), 0.0), n.line)
    return whole if z.dtype == n.dtype else g.add(CAST, (whole,), n.shape, n.dtype, None, n.line)


def _widen(g: Graph, x: Node) -> Node:
    """Return the matrix in float64, in which NumPy decomposes float32 too, so that the signs of vectors agree.

    QR does not need it: its signs are opposite to those of the diagonal.
    """
    return x if x.dtype == np.float64 else g.add(CAST, (x,), x.shape, np.float64, None, x.line)


RULES: dict[str, Callable[..., Node | None]] = {
    "cholesky": _lower_cholesky,
    "triangle_factor": _lower_triangle_factor,
    "triangular": _lower_triangular,
    "solve": _lower_solve,
    "inv": _lower_inv,
    "det": _lower_det,
    "slogdet": _lower_slogdet,
    "cofactors": _lower_cofactors,
    "eigh": _lower_eigh,
    "svd": _lower_svd,
    "qr": _lower_qr,
}
