"""Plans of scatters: rows that are added at positions, and elements that are written at regular strides."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node, compute_strides
from pullback.compiler.schedule.work import Work, estimate_time
from pullback.compiler.target import Options, Target

MAX_VECTOR_STEP = 8  # strides up to which vectors with both elements and zeros are stored


class ScatterPlan(NamedTuple):
    """The plan of adding rows at positions: each part goes through all rows, and adds those of its own range."""

    width: int  # lanes of a vector
    work: Work

    def __str__(self) -> str:
        return f"width {self.width}, {self.work}"


class SpacedPlan(NamedTuple):
    """The plan of writing elements into zeros at regular strides."""

    width: int  # lanes of a vector
    is_by_rows: bool  # whether rows are stored as vectors of elements with zeros between them; else zeros come first

    def __str__(self) -> str:
        return f"width {self.width}, {'rows of elements and zeros' if self.is_by_rows else 'elements after zeros'}"


def plan_scatter(n: Node, target: Target, options: Options) -> ScatterPlan:
    """Return the plan of adding rows at positions."""
    length = prod(n.data.row)
    places = n.size // length
    work = Work(places, 1).share(estimate_time(n), options.threads)
    return ScatterPlan(_choose_width(n, length, target), work._replace(part=max(1, -(-places // work.workers))))


def plan_spaced(n: Node, target: Target, options: Options) -> SpacedPlan:
    """Return the plan of writing elements at regular strides."""
    shape, strides = n.args[0].shape or (1,), n.data.strides or (1,)
    width = _choose_width(n, shape[-1], target)
    has_all_rows = strides[:-1] == compute_strides(n.shape)[:-1] and shape[:-1] == n.shape[:-1]
    return SpacedPlan(width, has_all_rows and 1 < strides[-1] <= MAX_VECTOR_STEP and width > 1)


def _choose_width(n: Node, length: int, target: Target) -> int:
    """Return the lanes of a vector: not more than a row has elements."""
    width = max(1, target.vector_bytes // n.dtype.itemsize)
    while width > max(1, length):
        width //= 2
    return width
