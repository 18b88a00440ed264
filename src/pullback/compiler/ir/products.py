"""Matrix products: their sizes, where the elements of their operands are, and which of them are small."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node, compute_strides
from pullback.compiler.ir.kinds import VIEW

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
    """Sizes and strides of a product of two matrices."""

    dtype: str
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    adds: bool  # an addend with the layout of the result is added

    @property
    def is_tiny(self) -> bool:
        """Whether the matrices are so small that all of the product fits the registers."""
        return max(self.m, self.n, self.k) <= MAX_TINY

    @property
    def is_small(self) -> bool:
        """Whether a function for this size takes less time than a call of BLAS; tiny products are small too."""
        packed = self.b.column == 1 or self.m >= 8
        filled = self.n >= 4 or (self.n > 1 and min(self.m, self.k) <= MAX_TINY and self.k <= MAX_NARROW_DEPTH)
        return (self.m * self.n * self.k <= SMALL_PRODUCT and packed and filled) or self.is_tiny


class BatchedProduct(NamedTuple):
    """The products of a node: one of them, the batch axes that are looped over, and the operands in memory."""

    matrices: Product
    loop: tuple[int, ...]
    bases: list[tuple[Node, int]]  # for each operand, the node whose memory holds it, and its offset there
    strides: list[tuple[int, ...]]  # of the operands
    out: tuple[int, ...]  # strides of the result

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


def resolve_product(n: Node) -> BatchedProduct:
    """Return the products of a node; those of all rows of a batch and one right matrix are one product."""
    a, b = n.args[:2]
    (base_a, at_a, strides_a), (base_b, at_b, strides_b) = find_operand(a), find_operand(b)
    (m, k), loop = a.shape[-2:], n.shape[:-2]
    if loop and not any(strides_b[:-2]) and _is_one_matrix(a.shape, strides_a):
        whole = m * prod(loop)
        if is_read_by_blas((whole, k), strides_a[-2:]):  # not so if one row is repeated
            m, loop = whole, ()
    left, right, adds = Matrix(*strides_a[-2:]), Matrix(*strides_b[-2:]), len(n.args) > 2
    matrices = Product(n.dtype.str[1:], m, b.shape[-1], k, left, right, adds)
    bases = [(base_a, at_a), (base_b, at_b)]
    return BatchedProduct(matrices, loop, bases, [strides_a, strides_b], compute_strides(n.shape))


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
