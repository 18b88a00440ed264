"""Plans of matrix factorizations and linear equations: by LAPACK, or many at once in the lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.matrices import CHOLESKY, EIGH, LU, QR, SVD, TRIANGULAR, find_matrix
from pullback.compiler.schedule.work import Work
from pullback.compiler.target import Options, Target

LARGEST = {CHOLESKY: 64, TRIANGULAR: 32}  # rows of the largest matrices that are computed in lanes
SCRATCH_SHARE = 1 / 2  # of the second-level cache that the scratch memory of matrices in lanes may take
MAX_PARTS = 32  # parts of a batch

MAX_LAPACK_BLOCK = 64  # the most columns of LAPACK's blocks
# Sizes of LAPACK's work arrays of floats and of integers, for columns and rows: about what it recommends.
LAPACK_WORK: dict[str, Callable[[int, int], tuple[int, int]]] = {
    EIGH: lambda n, m: (1 + (6 + MAX_LAPACK_BLOCK) * n + 2 * n * n, 3 + 5 * n),
    SVD: lambda n, m: (5 * min(m, n) ** 2 + (9 + MAX_LAPACK_BLOCK) * (m + n), 8 * min(m, n)),
    QR: lambda n, m: (MAX_LAPACK_BLOCK * n + n, 0),
}


class MatricesPlan(NamedTuple):
    """The plan of factoring the matrices of a batch, or of solving equations with them."""

    node: Node
    target: Target
    order: int  # rows of the square matrix
    columns: int  # right-hand sides of equations; the length of a row in memory
    leading: int  # elements from one row of the matrix to the next
    batch: tuple[int, ...]
    strides: tuple[int, ...]  # elements from one matrix to the next, for each axis of the batch
    width: int  # matrices that are computed at a time, one in each lane; 0 if LAPACK is called for each
    work: Work

    def __str__(self) -> str:
        return f"order {self.order}, width {self.width}, {self.work}"

    @property
    def matrices(self) -> int:
        """How many matrices there are."""
        return prod(self.batch)


def plan_matrices(n: Node, target: Target, options: Options) -> MatricesPlan:
    """Return the plan of a factorization, or of equations."""
    x = n.args[0]
    _, _, strides = find_matrix(n)
    batch, order = x.shape[:-2], x.shape[-1]
    columns = n.shape[-1] if len(n.args) > 1 else order
    leading = max(strides[-2], order)  # the stride of a single row may be any number
    width = _choose_width(n, target) if options.is_enabled("matrix products") else 0
    count = prod(batch)
    if width and leading == order:
        vectors = -(-count // width)
        scratch = sum(a.shape[-2] * a.shape[-1] for a in n.args) * width * n.dtype.itemsize
        work = Work(vectors, max(1, vectors // MAX_PARTS), scratch=scratch).share(n.size * order // 4, options.threads)
    else:
        width, work = 0, Work(count, max(1, count), scratch=_count_work(n))
    return MatricesPlan(n, target, order, columns, leading, batch, strides[:-2], width, work)


def _count_work(n: Node) -> int:
    """Return the bytes that LAPACK needs: a copy of the matrix, and work arrays of floats and of 8-byte integers."""
    (rows, columns), name = n.args[0].shape[-2:], n.data.name
    if name == LU:
        return 8 * rows  # pivots
    if name not in LAPACK_WORK:
        return 0
    floats, integers = LAPACK_WORK[name](rows, columns)
    return (rows * columns + floats) * n.dtype.itemsize + 8 * integers + 64


def _choose_width(n: Node, target: Target) -> int:
    """Return how many matrices are computed at once, in lanes; 0 if LAPACK is quicker: for few or large ones."""
    x = n.args[0]
    width = target.vector_bytes // n.dtype.itemsize
    each = sum(a.shape[-2] * a.shape[-1] for a in n.args) * target.vector_bytes
    fits = (
        x.shape[-1] <= LARGEST.get(n.data.name, 0)
        and each <= SCRATCH_SHARE * target.second_cache
        and prod(x.shape[:-2]) > width // 2
    )
    return width if fits else 0


def find_overwritable_right_sides(z: Node, read: tuple[Node, ...]) -> Node | None:
    """Return the right-hand sides, or else the matrix, if the result may be written over them."""
    *others, x = read
    return x if x not in others and x.shape == z.shape else None
