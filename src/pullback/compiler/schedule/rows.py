"""Plans of functions of whole rows (top-k, searchsorted): the number of rows, scratch memory, and threads."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.work import Work, estimate_time
from pullback.compiler.target import Options, Target

PART_ELEMENTS = 32768  # about how many elements a part has


class RowsPlan(NamedTuple):
    """The plan of a function of rows."""

    node: Node
    target: Target
    work: Work

    def __str__(self) -> str:
        return str(self.work)


def plan_rows(n: Node, target: Target, options: Options) -> RowsPlan:
    """Return the plan of a function of rows."""
    rows, scratch = ROWS[n.data[0].lower.symbol](n)
    work = Work(rows, max(1, PART_ELEMENTS * rows // max(1, n.args[-1].size)), scratch=scratch)
    return RowsPlan(n, target, work.share(estimate_time(n), options.threads))


def _plan_largest(n: Node) -> tuple[int, int]:
    return prod(n.shape[:-1]), 16 * n.shape[-1]


def _plan_search_sorted(n: Node) -> tuple[int, int]:
    return n.size, 0


# By name of the function: the number of rows, and the bytes of scratch memory for one of them.
ROWS: dict[str, Callable[[Node], tuple[int, int]]] = {"largest": _plan_largest, "search sorted": _plan_search_sorted}
