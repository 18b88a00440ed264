"""Plans of factorizations and equations: how many matrices there are, and where they are in memory."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.matrices import LU, find_matrix
from pullback.compiler.schedule.work import Work
from pullback.compiler.target import Target

__all__ = ["MatricesPlan", "may_overwrite_right_sides", "plan_matrices"]


class MatricesPlan(NamedTuple):
    """How the matrices of a batch are factored, or equations with them solved."""

    node: Node
    target: Target
    order: int  # rows of the square matrix
    columns: int  # right sides of equations; the length of a row in memory
    leading: int  # elements from one row of the matrix to the next
    batch: tuple[int, ...]
    steps: tuple[int, ...]  # elements from one matrix to the next, for each axis of the batch
    work: Work
    workers: int
    time: int


def plan_matrices(n: Node, target: Target, threads: int) -> MatricesPlan:
    """Return the plan of a factorization, or of equations."""
    x = n.args[0]
    _, _, strides = find_matrix(n)
    batch, order = x.shape[:-2], x.shape[-1]
    columns = n.shape[-1] if len(n.args) > 1 else order
    scratch = 8 * order if n.data.name == LU else 0  # pivots
    work = Work(prod(batch), max(1, prod(batch)), scratch=scratch)
    leading = max(strides[-2], order)  # of one row it is anything
    return MatricesPlan(n, target, order, columns, leading, batch, strides[:-2], work, 1, 0)


def may_overwrite_right_sides(read: tuple[Node, ...], z: Node, x: Node) -> bool:
    """Return whether solutions or factors may be written over right sides, or the matrix, of the same shape."""
    return x is read[-1] and x not in read[:-1] and x.shape == z.shape
