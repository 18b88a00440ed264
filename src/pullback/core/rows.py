"""Rows added by number: the way back from picking elements, quickly.

``np.add.at`` on the rows of a matrix is slow, but it is quick on a vector, and whole rows are quickly assigned and
added as long as none comes twice.  So every row number is served once at a time, until what is left is mostly one row
again and again: that is added element by element.  A small table is quickest served by a product with ones and zeros.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

WIDE = 4  # elements in a row from which on serving whole rows pays
SMALL = 16384  # rows of the table times rows to add, up to which a product is quicker


def add_rows(into: Any, rows: Any, values: Any, fresh: bool = False) -> None:
    """``into[rows[i]] += values[i]`` for every ``i``, in place; ``fresh`` says that ``into`` holds zeros.

    >>> acc = np.zeros((3, 2))
    >>> add_rows(acc, np.array([2, 0, 2]), np.ones((3, 2)))
    >>> acc
    array([[1., 1.],
           [0., 0.],
           [2., 2.]])
    """
    width = prod(into.shape[1:])
    if not into.flags.c_contiguous or values.dtype != into.dtype:
        np.add.at(into, rows, values)
        return
    if len(into) * rows.size <= SMALL and width >= WIDE and np.isfinite(values).all():  # 0 * inf would reach other rows
        chosen = np.zeros((len(into), rows.size), into.dtype)
        chosen[rows.ravel(), np.arange(rows.size)] = 1
        into += chosen.dot(values.reshape(rows.size, width)).reshape(into.shape)
        return
    while width >= WIDE:
        last = last_of_each(rows, len(into))
        if fresh:
            into[rows] = values  # of several values for one row the last one stays
        elif last.all():
            into[rows] += values
        elif np.count_nonzero(last) * 4 > rows.size:
            into[rows[last]] += values[last]
        else:
            break
        if last.all():
            return
        more = ~last
        rows, values, fresh = rows[more], values[more], False
    if width != 1:
        rows = np.add.outer(rows.ravel() * width, np.arange(width))
    np.add.at(into.reshape(-1), rows.ravel(), values.ravel())


def last_of_each(positions: Any, size: int) -> Any:
    """Where each position is named for the last time: of several assignments to one place, that one stays.

    >>> last_of_each(np.array([1, 0, 1]), 2)
    array([False,  True,  True])
    """
    flat = positions.ravel()
    numbers = np.arange(flat.size)
    own = np.empty(size, np.intp)
    own[flat] = numbers
    return (own[flat] == numbers).reshape(positions.shape)
