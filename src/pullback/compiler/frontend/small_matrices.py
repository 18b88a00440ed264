"""Solve, invert and take determinants of small matrices by elimination, unrolled to ops on their elements.

A call of LAPACK takes microseconds even for a matrix of two rows.  Rows are exchanged for the largest pivot, as LAPACK
does, by selecting elements; each element is an array over the batch of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.frontend.host_ops import OnHost
from pullback.errors import MatrixError

if TYPE_CHECKING:
    from pullback.compiler.frontend.trace import Trace
    from pullback.core.op import Op

MAX_ROWS = 4  # rows of the largest matrix for which elimination is unrolled
NEARLY_SINGULAR = 1e5  # condition number beyond which a pivot of zero may result from rounding, in float32

Row = list[Any]


class SingularityCheck(OnHost):
    """The check of an op that its matrices are not singular."""

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        """Raise the op's own error, or ours if the op, with other rounding, finds no singular matrix."""
        (x,) = values
        operands = [x, np.ones((*x.shape[:-1], 1), x.dtype)] if len(self.op.inputs) > 1 else [x]
        self.op.perform(operands, params)
        if x.size and np.linalg.cond(x).max() > NEARLY_SINGULAR:
            raise MatrixError(f"{self.name}: a matrix is singular (got shape {x.shape}).")
        return x


def lower_small_matrices(t: Trace, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the result of an op of ``SMALL_MATRICES`` as elementwise ops; None where the op runs itself."""
    x = args[0]
    shape, n = np.shape(x), np.shape(x)[-1] if np.ndim(x) > 1 else 0
    if not 1 <= n <= MAX_ROWS or shape[-2] != n or 0 in shape or t.checks is None:
        return None
    dtypes = {np.dtype(a.dtype) for a in args if hasattr(a, "dtype")}
    if len(dtypes) != 1 or next(iter(dtypes)).char not in "fd":
        return None
    op.acts.shape(op.name, [np.shape(a) for a in args], params)  # which raises the error
    return SMALL_MATRICES[op.name](t, op, *args)


def _eliminate(x: Any, rows: list[Any]) -> tuple[list[Row], list[Any], Any]:
    """Return a matrix and rows of right-hand sides after elimination: the triangle, the rows, the sign of exchanges."""
    n = x.shape[-1]
    a = [[x[..., i, j] for j in range(n)] for i in range(n)]
    sign: Any = np.ones((), x.dtype)
    for k in range(n):
        for i in range(k + 1, n):
            exchange = np.abs(a[i][k]) > np.abs(a[k][k])
            a[k][k:], a[i][k:] = _exchange(exchange, a[k][k:], a[i][k:])
            if rows:
                (rows[k],), (rows[i],) = _exchange(exchange[..., None], [rows[k]], [rows[i]])
            sign = np.where(exchange, -sign, sign)
        for i in range(k + 1, n):
            factor = np.where(a[k][k] == 0, np.zeros((), x.dtype), a[i][k] / a[k][k])  # 0 / 0 otherwise
            a[i] = [*a[i][: k + 1], *(b - factor * c for b, c in zip(a[i][k + 1 :], a[k][k + 1 :], strict=True))]
            if rows:
                rows[i] = rows[i] - factor[..., None] * rows[k]
    return a, rows, sign


def _exchange(condition: Any, x: Row, y: Row) -> tuple[Row, Row]:
    pairs = [*zip(x, y, strict=True)]
    return [np.where(condition, b, a) for a, b in pairs], [np.where(condition, a, b) for a, b in pairs]


def _solve_rows(t: Trace, op: Op, x: Any, rows: list[Any]) -> list[Any]:
    """Return the rows of the solution for rows of right-hand sides."""
    a, found, _ = _eliminate(x, list(rows))
    n = len(rows)
    singular = reduce(np.logical_or, (a[k][k] == 0 for k in range(n)))
    t.add_check(t.as_node(x), SingularityCheck(op), singular)
    zs: list[Any] = [None] * n
    for i in reversed(range(n)):
        z = found[i]
        for j in range(i + 1, n):
            z = z - a[i][j][..., None] * zs[j]
        zs[i] = z / a[i][i][..., None]
    return zs


def _solve(t: Trace, op: Op, x: Any, y: Any) -> Any:
    x, y = t.as_symbol(x), t.as_symbol(y)
    vector = len(y.shape) == 1
    rows = [y[..., i, None] if vector else y[..., i, :] for i in range(x.shape[-1])]
    z = np.stack(_solve_rows(t, op, x, rows), axis=-2)
    return z[..., 0] if vector else z


def _invert(t: Trace, op: Op, x: Any) -> Any:
    x = t.as_symbol(x)
    n = x.shape[-1]
    unit = np.eye(n, dtype=x.dtype)
    rows = [np.broadcast_to(unit[i], (*x.shape[:-2], n)) for i in range(n)]
    return np.stack(_solve_rows(t, op, x, rows), axis=-2)


def _compute_det(t: Trace, op: Op, x: Any) -> Any:
    x = t.as_symbol(x)
    a, _, sign = _eliminate(x, [])
    return reduce(np.multiply, (a[k][k] for k in range(x.shape[-1])), sign)


def _compute_slogdet(t: Trace, op: Op, x: Any) -> Any:
    x = t.as_symbol(x)
    a, _, sign = _eliminate(x, [])
    pivots = [a[k][k] for k in range(x.shape[-1])]
    return np.stack(
        [reduce(np.multiply, map(np.sign, pivots), sign), reduce(np.add, (np.log(np.abs(p)) for p in pivots))], axis=-1
    )


def _find_cofactors(t: Trace, op: Op, x: Any) -> Any:
    x = t.as_symbol(x)
    every = tuple(range(x.shape[-1]))
    entries: dict[tuple[tuple[int, ...], tuple[int, ...]], Any] = {((), ()): np.ones(x.shape[:-2], x.dtype)}

    def find_minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Any:
        """Return the determinant of these rows and columns, expanded along the first row."""
        if (rows, columns) not in entries:
            first, *below = rows
            z: Any = None
            for k, j in enumerate(columns):
                term = x[..., first, j]
                if below:
                    term = term * find_minor(tuple(below), columns[:k] + columns[k + 1 :])
                z = term if z is None else z - term if k % 2 else z + term
            entries[rows, columns] = z
        return entries[rows, columns]

    def find_cofactor(i: int, j: int) -> Any:
        minor = find_minor(every[:i] + every[i + 1 :], every[:j] + every[j + 1 :])
        return -minor if (i + j) % 2 else minor

    return np.stack([np.stack([find_cofactor(i, j) for j in every], axis=-1) for i in every], axis=-2)


SMALL_MATRICES: dict[str, Callable[..., Any]] = {  # by the names of ops
    "solve": _solve,
    "inv": _invert,
    "det": _compute_det,
    "slogdet_pair": _compute_slogdet,
    "cofactors": _find_cofactors,
}
