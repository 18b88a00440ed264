"""Plans of scans along an axis and of searches for a position: geometry, units of work, and scratch memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod

from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.work import Work, estimate_time
from pullback.compiler.target import Options, Target
from pullback.core.lowering import position

MAX_ROWS_AT_ONCE = 8  # rows that are scanned at the same time
MIN_VECTOR_ELEMENTS = 64  # elements from which on a single row is scanned by vectors
MIN_LANES = 8  # of these vectors; the scan within one of fewer takes as long as the elements one by one
MAX_LANE_ELEMENTS = 16  # elements of a row up to which several rows are searched at once, one in each lane
MAX_SEARCHES = 4  # vectors of a row that are searched at the same time
MAX_VECTORS_AT_ONCE = 4  # vectors along the inner axis whose accumulators stay in registers
BLOCK_BYTES = 4096  # of neighbours that are computed together: their last results are still in the first-level cache
PART_ELEMENTS = 32768  # about how many elements a part has


def plan_scan(n: Node, target: Target, options: Options) -> ScanPlan | SearchPlan:
    """Return the plan of a scan or a search."""
    return (SearchPlan if isinstance(n.data[0].lower, position) else ScanPlan)(n, target, options)


class AxisPlan(ABC):
    """The plan of a kernel along an axis of an array of shape (``outer``, ``length``, ``inner``).

    The rows of its work are units that are independent of each other.
    """

    def __init__(self, n: Node, target: Target, options: Options) -> None:
        self.node, self.target = n, target
        x, axis = n.args[-1], n.data[1]["axis"]
        if isinstance(axis, list | tuple):
            (axis,) = axis
        whole = axis is None or not x.shape
        at = 0 if whole else int(axis) % len(x.shape)
        self.outer = 1 if whole else prod(x.shape[:at])
        self.length = x.size if whole else x.shape[at]
        self.inner = 1 if whole else prod(x.shape[at + 1 :])
        self.size = x.dtype.itemsize
        self.width = max(1, target.vector_bytes // self.size)
        self.columns = max(1, BLOCK_BYTES // (self.size * self.width))  # vectors along the inner axis of a block
        self.choose()
        units, scratch = self.count_units(), self.count_scratch()
        work = Work(units, max(1, PART_ELEMENTS * units // max(1, x.size)), scratch=scratch)
        self.work = work.share(estimate_time(n), options.threads)

    def __str__(self) -> str:
        return f"shape {self.outer} × {self.length} × {self.inner}, width {self.width}, {self.work}"

    @property
    def vectors(self) -> int:
        """The number of vectors along the inner axis; the last may overlap the one before."""
        return -(-self.inner // self.width)

    @abstractmethod
    def choose(self) -> None:
        """Choose how the rows are computed; it sets the attributes that are not common to all plans."""

    @abstractmethod
    def count_units(self) -> int:
        """Return how many units of work there are."""

    def count_scratch(self) -> int:
        """Return the bytes that a thread needs."""
        return 0


class ScanPlan(AxisPlan):
    """The plan of a scan: each value is computed from the one before."""

    def choose(self) -> None:
        params, x = self.node.data[1], self.node.args[-1]
        self.lag = bool(params.get("adjoint"))  # whether all arguments but the last are read one place before
        self.back = bool(params.get("reverse")) != self.lag
        self.shift = int(bool(params.get("exclusive")))
        self.count = self.length - self.shift
        regroups = self.node.data[0].lower.regroups and x.dtype.kind == "f"
        is_long = self.count >= MIN_VECTOR_ELEMENTS and self.width >= MIN_LANES
        self.by_vectors = self.inner == 1 and self.outer < 3 and regroups and is_long
        self.rows = 1 if self.by_vectors else min(MAX_ROWS_AT_ONCE, self.outer)
        self.in_registers = self.vectors <= MAX_VECTORS_AT_ONCE

    def count_units(self) -> int:
        if self.inner == 1:
            return -(-self.outer // self.rows)
        return self.outer * (1 if self.in_registers else -(-self.vectors // self.columns))


class SearchPlan(AxisPlan):
    """The plan of a search for the first position of the maximum or minimum."""

    def choose(self) -> None:
        self.index = "i4" if self.length < 2**31 and self.size < 8 else "i8"
        self.width = max(1, self.target.vector_bytes // max(self.size, int(self.index[1])))
        self.columns = max(1, BLOCK_BYTES // 4 // (self.size * self.width))
        self.searches = max(1, min(MAX_SEARCHES, self.length // self.width))  # vectors of a row searched at once
        self.short = (
            self.inner == 1 and self.length <= MAX_LANE_ELEMENTS and self.outer >= self.width > 1 and self.size >= 4
        )

    def count_units(self) -> int:
        if self.short:
            return -(-self.outer // self.width)
        return self.outer if self.inner == 1 else self.outer * -(-self.vectors // self.columns)

    def count_scratch(self) -> int:
        return 2 * self.columns * self.width * 8 if self.inner > 1 and self.vectors > 1 else 0
