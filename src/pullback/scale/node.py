"""The differentiable sum: a function of parameters whose value and derivatives of any order come from workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from pullback.core.convert import unwrap_constant
from pullback.core.interpreter import level_of
from pullback.transforms.arguments import Arguments
from pullback.transforms.customop import CustomOp, Run

__all__ = ["Kind", "compute_on_workers", "list_kinds"]

Ask = Callable[[tuple[int, ...], Sequence[Any]], list[Any]]  # (counts of arrays by order, arrays) -> results
Kind = Literal["whole", "parts"]  # of an array: the same for all shards, or one for each of them


class WorkersOp(CustomOp):
    """A function of arrays that workers compute; its backward pass is such a function of the next order.

    ``counts`` has the number of arrays for each order (see ``scale.work.make_derivative``).
    """

    def __init__(self, name: str, ask: Ask, counts: tuple[int, ...]) -> None:
        super().__init__(name)
        self.ask, self.counts = ask, counts

    def run(self, values: Sequence[Any]) -> Run:
        def back(dys: list[Any]) -> Sequence[Any]:
            return WorkersOp(self.name, self.ask, (*self.counts, len(values) + len(dys))).apply([*values, *dys])

        if any(map(level_of, values)):  # a further transform follows them
            return Run(WorkersOp(self.name, self.ask, self.counts).apply(values), back)
        return Run(tuple(map(unwrap_constant, self.ask(self.counts, [np.asarray(x) for x in values]))), back)

    def check_linear(self, back: Any, xs: Sequence[Any], zs: Sequence[Any]) -> None:
        """Do nothing: what workers compute as a backward pass is linear, and need not be asked to find out."""


def compute_on_workers(name: str, ask: Ask, xs: Sequence[Any]) -> list[Any]:
    """Return what workers compute from arrays: Tensors if there is one among these, and arrays otherwise."""
    arguments = Arguments(xs)
    return [arguments.convert_back(z) for z in WorkersOp(name, ask, (len(xs),)).apply(arguments.flat)]


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
