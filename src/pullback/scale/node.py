"""The differentiable sum: a function of parameters whose value and derivatives of any order come from workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.tensor import Tensor
from pullback.transforms.custom import custom_gradient

__all__ = ["add_pairs", "make_node"]

Ask = Callable[[tuple[int, ...], Sequence[Any]], list[Any]]  # (counts of arrays by order, arrays) -> results


def make_node(ask: Ask, counts: tuple[int, ...]) -> Callable[..., Any]:
    """Return a function of arrays that workers compute; its backward pass is such a function of the next order.

    ``counts`` has the number of arrays for each order (see ``scale.work.make_derivative``).
    """

    @custom_gradient
    def node(*xs: Any) -> Any:
        def back(*dys: Any) -> Any:
            return list(make_node(ask, (*counts, len(xs) + len(dys)))(*xs, *dys))

        if any(isinstance(x, Tensor) and x.read().level for x in xs):  # a further transform follows them
            return node(*xs), back
        results = ask(counts, [np.asarray(x.numpy() if isinstance(x, Tensor) else x) for x in xs])
        return list(results), back

    return node  # type: ignore[no-any-return]


def add_pairs(terms: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the sums of rows of arrays, added in pairs, pairs of pairs and so on, so that the order is fixed.

    >>> add_pairs([[1.0], [2.0], [3.0]])
    [6.0]
    """
    rows = [list(row) for row in terms]
    while len(rows) > 1:
        pairs = [[a + b for a, b in zip(*rows[i : i + 2], strict=True)] for i in range(0, len(rows) - 1, 2)]
        rows = pairs + rows[len(rows) - len(rows) % 2 :]
    return rows[0]
