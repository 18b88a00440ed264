"""Matrix products: their sizes, where the elements of their operands are, and which of them are small."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

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


class BlasLayout(NamedTuple):
    """How BLAS reads a matrix."""

    is_transposed: bool
    leading: int  # elements from one row, or column of a transposed matrix, to the next


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
    strides: list[tuple[int, ...]]
    out: tuple[int, ...]
    blas_layouts: tuple[BlasLayout, BlasLayout]

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
        for axis in zip(self.loop, *self.strides, self.out, strict=False):
            length, *strides = axis
            if length == 1:
                continue
            if merged and all(s == own * length for s, own in zip(merged[-1][1:], strides, strict=True)):
                merged[-1] = Batch(merged[-1].length * length, *strides)
            else:
                merged.append(Batch(*axis))
        return tuple(merged)


def plan_product(n: Node, options: Options) -> ProductPlan:
    """Return the plan of a product."""
    a, b = n.args[:2]
    (base_a, at_a, strides_a), (base_b, at_b, strides_b) = find_operand(a), find_operand(b)
    (m, k), loop = a.shape[-2:], n.shape[:-2]
    if loop and not any(strides_b[:-2]) and _is_one_matrix(a.shape, strides_a):  # one product with all rows
        whole = m * prod(loop)
        if is_read_by_blas((whole, k), strides_a[-2:]):  # not so if one row is repeated
            m, loop = whole, ()
    matrices = Product(
        n.dtype.str[1:], m, b.shape[-1], k, Matrix(*strides_a[-2:]), Matrix(*strides_b[-2:]), len(n.args) > 2,
        not options.is_enabled("matrix products"),
    )  # fmt: skip
    blas_layouts = find_blas_layout((m, k), matrices.a), find_blas_layout((k, matrices.n), matrices.b)
    return ProductPlan(
        [(base_a, at_a), (base_b, at_b)], matrices, loop, [strides_a, strides_b], compute_strides(n.shape), blas_layouts
    )


def _is_one_matrix(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the rows of a batch of matrices are the rows of one matrix."""
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2)) and strides[-1] == 1


def find_operand(x: Node) -> tuple[Node, int, tuple[int, ...]]:
    """Return the node whose memory holds an operand of a product, its offset there, and its strides."""
    if x.kind is VIEW and is_blas_ready(x):
        return x.args[0], x.data.offset, x.data.strides
    return x, 0, compute_strides(x.shape)


def is_blas_ready(x: Node) -> bool:
    """Return whether BLAS can read a view without a copy: one of its last two axes has stride 1."""
    return is_read_by_blas(x.shape[-2:], x.data.strides[-2:])


def is_read_by_blas(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether BLAS can read a matrix: its rows or its columns are contiguous and do not overlap."""
    return _is_by_rows(shape, strides) or _is_by_rows(shape[::-1], strides[::-1])


def find_blas_layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> BlasLayout:
    """Return how BLAS reads a matrix that it can read."""
    is_transposed = not _is_by_rows(shape, strides)
    (rows, columns), (row, _) = (shape[::-1], strides[::-1]) if is_transposed else (shape, strides)
    return BlasLayout(is_transposed, max(row if rows > 1 else columns, columns, 1))


def _is_by_rows(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    (rows, columns), (row, column) = shape, strides
    return (column == 1 or columns == 1) and (row >= columns or rows == 1)
