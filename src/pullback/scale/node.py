"""The differentiable sum: a function of parameters whose value and derivatives of any order come from workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from pullback.core.tensor import Tensor
from pullback.transforms.custom import custom_gradient

__all__ = ["Kind", "list_kinds", "make_node"]

Ask = Callable[[tuple[int, ...], Sequence[Any]], list[Any]]  # (counts of arrays by order, arrays) -> results
Kind = Literal["whole", "parts"]  # of an array: the same for all shards, or one for each of them


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
        # not copies, as x.numpy() would be: they are only read
        results = ask(counts, [np.asarray(x.read().value if isinstance(x, Tensor) else x) for x in xs])
        return list(results), back

    return node  # type: ignore[no-any-return]


def list_kinds(leaves: int, order: int) -> tuple[list[Kind], list[Kind]]:
    """Return the kinds of the arrays and of the results of a derivative of a function with a result for each shard.

    The arrays of the next order are these arrays and a cotangent for each result; its results are cotangents of these
    arrays.

    >>> list_kinds(2, 1)
    (['whole', 'whole', 'parts'], ['whole', 'whole'])
    """
    arrays: list[Kind] = ["whole"] * leaves
    results: list[Kind] = ["parts"]
    for _ in range(order):
        arrays, results = arrays + results, arrays
    return arrays, results
