"""Matrix products: their sizes, where the elements of their operands are, and which of them are small."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Node, contiguous
from pullback.compiler.ir.kinds import VIEW
from pullback.settings import is_enabled

__all__ = ["Matrix", "Plan", "Product", "gemm_ready", "layout", "planned"]

SMALL = 96**3  # multiplications; above, others are quicker


class Matrix(NamedTuple):
    """How a matrix lies: elements from one row, and from one column, to the next."""

    row: int
    column: int


class Product(NamedTuple):
    """Everything that the text of a product depends on."""

    dtype: str
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    adds: bool  # something is added, laid out as the result is
    times: float = 1.0

    @property
    def is_small(self) -> bool:
        if self.times != 1.0 or not is_enabled("matrix products"):
            return False
        packed = self.b.column == 1 or self.m >= 8
        return self.m * self.n * self.k <= SMALL and packed and self.n >= 4

    @property
    def scratch(self) -> int:
        """Bytes for the right matrix laid out anew."""
        return 0 if self.b.column == 1 else -(-self.k * self.n * int(self.dtype[1]) // 64) * 64


class Plan(NamedTuple):
    """How a product of two nodes is computed: where their elements lie, and what is gone through one by one."""

    bases: list[tuple[Node, int]]
    matrices: Product
    loop: tuple[int, ...]
    steps: list[tuple[int, ...]]
    out: tuple[int, ...]
    flags: list[Any]

    @property
    def adds(self) -> bool:
        return self.matrices.adds

    @property
    def is_small(self) -> bool:
        return self.matrices.is_small


def planned(n: Node) -> Plan:
    """The plan of a product."""
    a, b = n.args[:2]
    (base_a, at_a, steps_a), (base_b, at_b, steps_b) = layout(a), layout(b)
    (m, k), loop = a.shape[-2:], n.shape[:-2]
    if loop and not any(steps_b[:-2]) and _rows_go_on(a.shape, steps_a):  # one product with all rows
        whole = m * prod(loop)
        if gemm_flag((whole, k), steps_a[-2:]) is not None:  # not so if one row is repeated
            m, loop = whole, ()
    matrices = Product(
        n.dtype.str[1:], m, b.shape[-1], k, Matrix(*steps_a[-2:]), Matrix(*steps_b[-2:]), len(n.args) > 2,
        1.0 if n.data is None else n.data,
    )  # fmt: skip
    flags = [gemm_flag(shape, steps[-2:]) for shape, steps in (((m, k), steps_a), (b.shape[-2:], steps_b))]
    return Plan([(base_a, at_a), (base_b, at_b)], matrices, loop, [steps_a, steps_b], contiguous(n.shape), flags)


def _rows_go_on(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether the rows of one matrix are followed by those of the next."""
    return all(steps[i] == steps[i + 1] * shape[i + 1] for i in range(len(shape) - 2)) and steps[-1] == 1


def layout(x: Node) -> tuple[Node, int, tuple[int, ...]]:
    """The memory of an operand of a product, where it begins in it, and its steps."""
    if x.kind is VIEW and gemm_ready(x):
        return x.args[0], x.data.offset, x.data.strides
    return x, 0, contiguous(x.shape)


def gemm_ready(x: Node) -> bool:
    """Whether BLAS can take a view as it lies: one of the last two axes goes by single steps, the other by rows."""
    steps, shape = x.data.strides[-2:], x.shape[-2:]
    return gemm_flag(shape, steps) is not None


@lru_cache(4096)
def gemm_flag(shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Whether a matrix lies transposed, and the length of its rows in memory; None if BLAS cannot take it."""
    (m, n), (row, column) = shape, steps
    if (column == 1 or n == 1) and (row >= n or m == 1):
        return False, max(row if m > 1 else n, n, 1)
    if (row == 1 or m == 1) and (column >= m or n == 1):
        return True, max(column if n > 1 else m, m, 1)
    return None
