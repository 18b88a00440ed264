"""Tables, shapes and numbers of bytes as plain text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

UNKNOWN = "?"


def format_bytes(count: int) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(512), format_bytes(1_600_000)
    ('512 B', '1.6 MB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return the lines of a table whose columns are as wide as their longest cell.

    rows: the cells, with a header as the first row if there is one.
    right: the numbers of the columns that are set flush right, as numbers are.

    >>> align_columns([("layer", "size"), ("dense_1", "16")], right=[1])
    ['layer    size', 'dense_1    16']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def format_shape(shape: Sequence[Any] | None) -> str:
    """Return the shape of an output with its batch, or those of several outputs.

    >>> format_shape((3, None)), format_shape(((3,), (2,))), format_shape(None)
    ('(batch, 3, None)', '(batch, 3), (batch, 2)', '?')
    """
    if shape and isinstance(shape[0], tuple):  # of several outputs
        return ", ".join(map(format_shape, shape))
    return UNKNOWN if shape is None else f"({', '.join(['batch', *map(str, shape)])})"
