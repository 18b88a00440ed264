"""A step of an optimizer on the rows that a row-sparse gradient names, which leaves all other rows as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from pullback.core.memory import LARGE
from pullback.core.rowsparse import RowSparse, group_rows
from pullback.core.tensor import unfollowed
from pullback.core.variable import Variable
from pullback.ops.gathering import gather, scatter_add

__all__ = ["RowStep", "has_few_rows", "is_large"]


class RowStep(NamedTuple):
    """A row-sparse gradient, ready for the rule of an optimizer."""

    indices: Any  # the rows; if they are known, each of them once
    sums: Any  # the gradient of each different row, and zeros if ``groups`` are given
    groups: Any  # which of the sums belongs to each of the rows; None if they go together one by one

    @staticmethod
    def of(g: RowSparse) -> RowStep:
        """The sums over rows that come several times."""
        if g.is_symbolic:  # how many rows are different is not known
            groups = unfollowed(group_rows, g.indices, g.shape[0])
            return RowStep(g.indices, scatter_add(g.values, groups, g.values.shape), groups)
        g = g.coalesce()
        return RowStep(g.indices, g.values, None)

    def update(
        self, rule: Any, sums: Any, targets: Sequence[Variable], read: Callable[[Variable], Any], numbers: Any
    ) -> None:
        """Make the rule's step in these rows of a variable and its slots; ``read`` gives what each of them holds."""
        g = sums if self.groups is None else gather(sums, self.groups)
        x, *kept = [gather(read(v), self.indices) for v in targets]
        made = rule(x, g, *kept, *numbers)
        for target, new in zip(targets, made, strict=True):
            target.write_rows(self.indices, new)


def is_large(x: Any) -> bool:
    """Whether a table is so large that a step by rows may be quicker than one on the whole."""
    return bool(prod(x.shape) * x.dtype.itemsize >= LARGE)


def has_few_rows(g: RowSparse) -> bool:
    """Whether a step by rows is quicker than one on the whole: the table is large, and few of its rows are named."""
    few = g.shape[0] // (8 if g.is_symbolic else 2)  # compiled code goes through a whole table quickly
    return is_large(g) and g.indices.size <= few
