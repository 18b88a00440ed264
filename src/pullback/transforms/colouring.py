"""Column colouring of sparse matrices: columns of one colour share no row, so one pass computes all of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pullback.typing import Array

MAX_EXTRA_COLOURS = 4  # how many more colours than the widest row needs are tried for cyclic colouring
MAX_WORK = 50_000_000  # rows times colours up to which that is tried


def color_columns(rows: Array, columns: Array, row_count: int) -> Any:
    """Return a colour for each column, such that no two columns of a colour share a row.

    Colours are assigned cyclically (column number modulo the number of colours) if few suffice, else greedily.

    ``rows`` are those of the first column, then of the second and so on; ``columns``: where each begins.

    >>> color_columns(np.array([0, 0, 1, 1]), np.array([0, 1, 3, 4]), 2)
    array([0, 1, 0])
    """
    count = len(columns) - 1
    widest = int(np.bincount(rows).max(initial=0))
    of_each = np.repeat(np.arange(count), np.diff(columns))
    for colours in range(widest, widest + MAX_EXTRA_COLOURS):  # cyclic, which is optimal for a banded matrix
        if colours and colours * row_count <= MAX_WORK and _is_valid(rows, of_each % colours, colours, row_count):
            return np.arange(count) % colours
    taken = [0] * row_count  # by row: a bit set of its colours
    where, starts = rows.tolist(), columns.tolist()
    found = []
    for start, end in pairwise(starts):
        column_rows = where[start:end]
        used = 0
        for i in column_rows:
            used |= taken[i]
        free = ~used & (used + 1)  # the lowest bit that is not set
        for i in column_rows:
            taken[i] |= free
        found.append(free.bit_length() - 1)
    return np.array(found, np.intp)


def _is_valid(rows: Array, colours: Array, count: int, row_count: int) -> bool:
    """Return whether no row has a colour twice."""
    met = np.zeros(row_count * count, bool)
    met[rows * count + colours] = True
    return int(np.count_nonzero(met)) == len(rows)
