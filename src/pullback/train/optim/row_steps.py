"""Optimizer updates of only those rows that a row-sparse gradient contains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from pullback.core.memory import LARGE
from pullback.core.rowsparse import RowSparse, group_rows
from pullback.core.tensor import call_unfollowed
from pullback.core.variable import Variable
from pullback.ops.gathering import gather, scatter_add

Rule = Callable[..., tuple[Any, ...]]  # from a parameter, its gradient, slots and numbers to the parameter and slots


class RowUpdate(NamedTuple):
    """A row-sparse gradient, prepared for the update rule of an optimizer."""

    indices: Any  # the rows; each once, if their values are known
    sums: Any  # the gradient of each distinct row, padded with zeros if ``groups`` are given
    groups: Any  # the index into ``sums`` of each row; None if they correspond one to one

    @staticmethod
    def from_gradient(g: RowSparse) -> RowUpdate:
        """Sum the gradients of rows that occur several times."""
        if g.is_symbolic:  # the number of distinct rows is not known
            groups = call_unfollowed(group_rows, g.indices, g.shape[0])
            return RowUpdate(g.indices, scatter_add(g.values, groups, g.values.shape), groups)
        g = g.coalesce()
        return RowUpdate(g.indices, g.values, None)

    def update(
        self,
        rule: Rule,
        sums: Any,
        targets: Sequence[Variable],
        read: Callable[[Variable], Any],
        numbers: Sequence[Any],
    ) -> None:
        """Apply the rule to these rows of a variable and its slots; ``read`` returns the value of each."""
        g = sums if self.groups is None else gather(sums, self.groups)
        x, *slots = [gather(read(v), self.indices) for v in targets]
        results = rule(x, g, *slots, *numbers)
        for target, new in zip(targets, results, strict=True):
            target.write_rows(self.indices, new)


def is_large(x: Variable | RowSparse) -> bool:
    """Return whether a table is so large that updating rows may be quicker than updating all of it."""
    return bool(prod(x.shape) * x.dtype.itemsize >= LARGE)


def has_few_rows(g: RowSparse) -> bool:
    """Return whether updating rows is quicker than updating all: the table is large, and the gradient has few rows."""
    few = g.shape[0] // (8 if g.is_symbolic else 2)  # compiled code updates a whole table quickly
    return is_large(g) and g.indices.size <= few
