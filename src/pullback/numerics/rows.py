"""Scatter-add of rows by index, the adjoint of gathering rows.

``np.add.at`` is slow on rows of a matrix, fast on a vector, and adding whole rows by an index is fast if no row comes
twice.  So each row number is added once per round, until few are left or most are the same row: these are added element
by element.  Many rows are added to a short table by matrix products with ones and zeros.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ShapeError
from pullback.numerics.axis_arguments import resolve_axis

if TYPE_CHECKING:
    from pullback.typing import Array, Shape, Value

MIN_ROW = 4  # elements in a row from which on adding whole rows is faster
MAX_ONE_BY_ONE = 4096  # elements that are as quickly added one by one
MAX_TABLE_ROWS = 64  # rows of a table to which much is quickest added by products
PAIRS = {"f": "F", "d": "D"}  # two floats are added as one complex number, in about the time of one
BLOCK_ROWS = 1024  # rows of one product, so that its matrix of ones and zeros stays in the cache
MIN_COMPILED = 1 << 15  # added elements from which machine code is worth compiling
MIN_COMPILED_ROW = 4  # contiguous elements from which it is faster


def add_rows(into: Array, rows: Any, values: Array, fresh: bool = False) -> None:
    """Add ``values[i]`` to ``into[rows[i]]`` for every ``i``; ``fresh``: ``into`` holds zeros.

    >>> acc = np.zeros((3, 2))
    >>> add_rows(acc, np.array([2, 0, 2]), np.ones((3, 2)))
    >>> acc
    array([[1., 1.],
           [0., 0.],
           [2., 2.]])
    """
    width = prod(into.shape[1:])
    rows = rows.astype(np.intp, copy=False)  # short integers would overflow
    if not into.flags.c_contiguous or values.dtype != into.dtype:
        np.add.at(into, rows, values)
        return
    if rows.ndim != 1:
        rows, values = rows.ravel(), values.reshape(rows.size, *into.shape[1:])
    if width >= MIN_ROW and values.size > MAX_ONE_BY_ONE:
        n = len(into)
        often = n <= min(MAX_TABLE_ROWS, 4 * width, rows.size // 4)
        if often and _add_by_products(into.reshape(n, width), rows, values.reshape(-1, width)):
            return
        left = _add_by_rounds(into, rows, values, fresh)
        if not left.size:
            return
        rows, values = rows[left], values[left]
    into, values = into.reshape(-1), values.ravel()
    if width % 2 == 0 and into.dtype.char in PAIRS:
        into, values, width = into.view(PAIRS[into.dtype.char]), values.view(PAIRS[into.dtype.char]), width // 2
    if width != 1:
        rows = np.add.outer(rows * width, np.arange(width)).ravel()
    np.add.at(into, rows, values)


def _add_by_products(into: Array, rows: Value, values: Array) -> bool:
    """Add all rows by matrix products; return False and change nothing if a sum is not finite, as 0 * inf is NaN."""
    total: Any = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for i in range(0, rows.size, BLOCK_ROWS):
            part = rows[i : i + BLOCK_ROWS]
            chosen = np.zeros((len(into), part.size), into.dtype)
            chosen[part, np.arange(part.size)] = 1
            total = total + chosen.dot(values[i : i + BLOCK_ROWS])
    if not np.isfinite(total).all():
        return False
    into += total
    return True


def _add_by_rounds(into: Array, rows: Value, values: Array, fresh: bool) -> Any:
    """Add each row number once per round; return the positions that are left when rounds are no longer faster."""
    width, left = values[0].size, np.arange(rows.size)
    last = np.empty(len(into), np.intp)  # for each row of the table, the last position that names it
    if fresh:
        into[rows] = values  # of several values for one row the last one stays
        last[rows] = left
        left = left[last.take(rows) != left]
    while left.size * width > MAX_ONE_BY_ONE:
        at = rows[left]
        last[at] = left
        served = last.take(at) == left
        now = left[served]
        if now.size * 4 <= left.size:
            break
        at = at[served]
        sums = into.take(at, 0)  # quicker than into[at]
        sums += values if now.size == rows.size else values[now]
        into[at] = sums
        left = left[~served]
    return left


def resolve_gather_axes(
    name: str, x: Shape, indices: Shape, axis: int | None, batch_dims: int | None
) -> tuple[int, int]:
    """Return the axis that ``indices`` are positions of and the number of batch axes, as non-negative integers.

    >>> resolve_gather_axes("gather", (2, 3), (2, 4), -1, 1)
    (1, 1)
    """
    if x and axis == 0 and not batch_dims:
        return 0, 0
    if not x:
        raise ShapeError(f"{name}: x must have an axis to pick from, got rank 0.")
    at = resolve_axis(len(x), 0 if axis is None else axis, name)
    batch = int(batch_dims or 0)
    batch = batch + len(indices) if batch < 0 else batch
    if batch > at or x[:batch] != indices[:batch]:
        raise ShapeError(
            f"{name}: x has shape {x} and indices have shape {indices}; the first {batch} axes (batch_dims) must agree "
            f"and come before axis {at}."
        )
    return at, batch


def number_rows(indices: Value, batch: int, length: int) -> Any:
    """Return indices into the flattened batches.

    >>> number_rows(np.array([[0, 2], [1, -1]]), 1, 3)
    array([[0, 2],
           [4, 5]])
    """
    if not batch:
        return indices
    indices = indices.astype(np.intp)  # short integers would overflow
    count = prod(indices.shape[:batch])
    starts = np.arange(0, count * length, length) if length else np.zeros(count, np.intp)
    if indices.size and indices.min() < 0:
        indices = np.where(indices < 0, indices + length, indices)
    return starts.reshape(indices.shape[:batch] + (1,) * (indices.ndim - batch)) + indices


def scatter_rows(g: Any, indices: Value, shape: Shape, axis: int | None = 0, batch_dims: int | None = 0) -> Any:
    """Return zeros of ``shape`` with the slices of ``g`` added at these positions of an axis.

    >>> scatter_rows(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), (3,))
    array([2., 0., 5.])
    """
    shape = tuple(shape)
    at, batch = resolve_gather_axes("scatter_add", shape, indices.shape, axis, batch_dims)
    n = shape[at]
    rest = shape[batch:at] + shape[at + 1 :]
    e = np.zeros((*shape[:batch], n, *rest), g.dtype)
    if g.size:
        rows = number_rows(indices, batch, n).reshape(-1)
        picked = indices.ndim - batch
        if at > batch and picked:
            g = np.moveaxis(g, range(at, at + picked), range(batch, batch + picked))
        add_rows(e.reshape(-1, *rest), rows, g.reshape(-1, *rest), True)
    return e if at == batch else np.moveaxis(e, batch, at)


def is_worth_compiling(g: Array, indices: Array, *params: object) -> bool:
    """Return whether machine code for ``scatter_rows`` of these arguments is worth the time to compile it."""
    return type(indices) is np.ndarray and g.size >= max(MIN_COMPILED, MIN_COMPILED_ROW * indices.size)


def mark_last_positions(positions: Array, size: int) -> Any:
    """Return where each position occurs last: of several assignments to one place that one counts.

    >>> mark_last_positions(np.array([1, 0, 1]), 2)
    array([False,  True,  True])
    """
    flat = positions.ravel()
    numbers = np.arange(flat.size)
    own = np.empty(size, np.intp)
    own[flat] = numbers
    return (own.take(flat) == numbers).reshape(positions.shape)
