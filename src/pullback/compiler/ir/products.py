"""Matrix products: their sizes, where the elements of their operands are, and which of them are small."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Node, compute_strides
from pullback.compiler.ir.kinds import VIEW
from pullback.compiler.target import Options

SMALL_PRODUCT = 96**3  # multiplications of the largest product that is compiled for its size
MAX_TINY = 8  # rows and columns of matrices that fit the registers
MAX_NARROW_DEPTH = 2**16  # terms of the sums of two or three columns, which are added up one after the other


class Matrix(NamedTuple):
    """The strides of a matrix, in elements."""

    row: int
    column: int


class Batch(NamedTuple):
    """An axis of a batch of products: its length, and the strides of operands and results, in elements."""

    length: int
    a: int
    b: int
    z: int


class Product(NamedTuple):
    """Everything that the code of a product depends on except the target."""

    dtype: str
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    adds: bool  # an addend with the layout of the result is added
    by_blas: bool = False  # where there is one, whatever its size

    @property
    def is_tiny(self) -> bool:
        """Whether the matrices are so small that all of the product is in registers."""
        return max(self.m, self.n, self.k) <= MAX_TINY and not self.by_blas

    @property
    def is_small(self) -> bool:
        packed = self.b.column == 1 or self.m >= 8
        filled = self.n >= 4 or (self.n > 1 and min(self.m, self.k) <= MAX_TINY and self.k <= MAX_NARROW_DEPTH)
        return self.m * self.n * self.k <= SMALL_PRODUCT and packed and filled and not self.by_blas

    @property
    def scratch(self) -> int:
        """Bytes for a copy of the right matrix."""
        return 0 if self.b.column == 1 else -(-self.k * self.n * int(self.dtype[1]) // 64) * 64


class ProductPlan(NamedTuple):
    """How a product of two nodes is computed: its operands in memory, and the batch axes that are looped over."""

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
        return self.matrices.is_small or self.is_tiny

    @property
    def is_tiny(self) -> bool:
        return self.matrices.is_tiny

    @property
    def batch(self) -> tuple[Batch, ...]:
        """The batch axes, where axes that are one axis in memory are merged."""
        merged: list[Batch] = []
        for axis in zip(self.loop, *self.steps, self.out, strict=False):
            length, *steps = axis
            if length == 1:
                continue
            if merged and all(s == own * length for s, own in zip(merged[-1][1:], steps, strict=True)):
                merged[-1] = Batch(merged[-1].length * length, *steps)
            else:
                merged.append(Batch(*axis))
        return tuple(merged)


def plan_product(n: Node, options: Options) -> ProductPlan:
    """Return the plan of a product."""
    a, b = n.args[:2]
    (base_a, at_a, steps_a), (base_b, at_b, steps_b) = find_operand(a), find_operand(b)
    (m, k), loop = a.shape[-2:], n.shape[:-2]
    if loop and not any(steps_b[:-2]) and _is_one_matrix(a.shape, steps_a):  # one product with all rows
        whole = m * prod(loop)
        if find_gemm_layout((whole, k), steps_a[-2:]) is not None:  # not so if one row is repeated
            m, loop = whole, ()
    matrices = Product(
        n.dtype.str[1:], m, b.shape[-1], k, Matrix(*steps_a[-2:]), Matrix(*steps_b[-2:]), len(n.args) > 2,
        not options.is_enabled("matrix products"),
    )  # fmt: skip
    flags = [find_gemm_layout(shape, steps[-2:]) for shape, steps in (((m, k), steps_a), (b.shape[-2:], steps_b))]
    return ProductPlan(
        [(base_a, at_a), (base_b, at_b)], matrices, loop, [steps_a, steps_b], compute_strides(n.shape), flags
    )


def _is_one_matrix(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Return whether the rows of a batch of matrices are the rows of one matrix."""
    return all(steps[i] == steps[i + 1] * shape[i + 1] for i in range(len(shape) - 2)) and steps[-1] == 1


def find_operand(x: Node) -> tuple[Node, int, tuple[int, ...]]:
    """Return the node whose memory holds an operand of a product, its offset there, and its strides."""
    if x.kind is VIEW and is_gemm_ready(x):
        return x.args[0], x.data.offset, x.data.strides
    return x, 0, compute_strides(x.shape)


def is_gemm_ready(x: Node) -> bool:
    """Return whether BLAS can read a view without a copy: one of its last two axes has stride 1."""
    steps, shape = x.data.strides[-2:], x.shape[-2:]
    return find_gemm_layout(shape, steps) is not None


@lru_cache(4096)
def find_gemm_layout(shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Return whether a matrix is transposed, and its leading dimension; None if BLAS cannot read it."""
    (m, n), (row, column) = shape, steps
    if (column == 1 or n == 1) and (row >= n or m == 1):
        return False, max(row if m > 1 else n, n, 1)
    if (row == 1 or m == 1) and (column >= m or n == 1):
        return True, max(column if n > 1 else m, m, 1)
    return None
