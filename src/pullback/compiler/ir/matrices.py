"""Factorizations of matrices, and equations with them, as data of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pullback.compiler.ir.graph import Node, Shape, compute_strides
from pullback.compiler.ir.products import find_operand

CHOLESKY = "cholesky"  # the lower factor of a symmetric matrix
TRIANGULAR = "triangular"  # the solutions of equations with a triangular matrix, for columns
LU = "lu"  # both factors of the transposed matrix, packed in column order as in LAPACK, and a row of pivots below them
MULTIPLY = "multiply"  # the product of a triangular matrix and columns
EIGH = "eigh"  # of a symmetric matrix: its eigenvalues, and its eigenvectors as rows
SVD = "svd"  # of the transpose of a matrix in memory: U in column order, singular values, V in row order
QR = "qr"  # of the same: Q and R in column order
SUBSTITUTE = "substitute"  # the solutions of equations with a matrix, from its factors and columns
PIVOTS = "pivots"  # the diagonal of the upper factor, with the signs of the exchanges of rows

# Axes of the result for each matrix, of its rows and columns; else the result has the shape of the last argument.
RESULT_SHAPES: dict[str, Callable[[int, int], Shape]] = {
    LU: lambda rows, columns: (rows + 1, columns),
    EIGH: lambda rows, columns: (rows * (rows + 1),),
    SVD: lambda rows, columns: ((rows + 1 + columns) * min(rows, columns),),
    QR: lambda rows, columns: ((rows + columns) * rows,),
    PIVOTS: lambda rows, columns: (columns,),
}


class Routine(NamedTuple):
    """A routine that is applied to each matrix of a batch."""

    name: str
    lower: bool = True  # which triangle is used
    trans: bool = False  # the equations are those of the transposed matrix
    right: bool = False  # solve ``z @ a = b``: the rows of z are solutions

    def __str__(self) -> str:
        words = {"upper": not self.lower, "transposed": self.trans, "from the right": self.right}
        return ", ".join([self.name, *(word for word, holds in words.items() if holds)])

    def find_shape(self, shapes: Sequence[Shape]) -> Shape:
        """Return the shape of the result for arguments of these shapes."""
        *batch, rows, columns = shapes[0]
        return (*batch, *RESULT_SHAPES[self.name](rows, columns)) if self.name in RESULT_SHAPES else shapes[-1]


def find_matrix(n: Node) -> tuple[Node, int, tuple[int, ...]]:
    """Return the node whose memory holds the matrix of equations, its offset there, and its strides."""
    x = n.args[0]
    base, offset, strides = find_operand(x)
    is_by_rows = strides[-1] == 1 and x is not n.args[-1]
    return (base, offset, strides) if is_by_rows else (x, 0, compute_strides(x.shape))
