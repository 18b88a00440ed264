"""Plans of matrix products: by a function for their size, by panels or by BLAS, and by how many threads.

A panel is a copy of a few columns of the right matrix that fits the first-level cache (see ``codegen/gemm/panels``).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.products import Product, ProductPlan, plan_product
from pullback.compiler.schedule.work import Work, count_workers, estimate_product_time
from pullback.compiler.target import Target
from pullback.settings import is_enabled

__all__ = ["ProductSchedule", "choose_panel_depth", "count_vectors", "has_few_rows", "plan_panels", "schedule_product"]

MAX_MULTIPLICATIONS = 400**3  # of a product by generated code; for larger ones BLAS is as quick, with AVX2 quicker
LEFT_SHARE = 3 / 4  # of the second-level cache that the left matrix may take while it is multiplied by all panels
MAX_TRANSPOSED_ELEMENTS = 2**11  # of a transposed left matrix, per byte of a vector; for more BLAS is quicker
FEW_ROWS = 12  # of a left matrix, for which the right one is not copied
FEW_DEPTH = 8  # rows of the right matrix that are read at a time; of more the CPU prefetches some too late
SUMS = 8  # vectors of sums that keep the units for multiplication busy
DEPTH = {"f4": 320, "f8": 160}  # rows of a panel that fits the first-level cache
MAX_PARTS = 32  # parts of a batch of products


class ProductSchedule(NamedTuple):
    """The plan of the matrix products of a node."""

    plan: ProductPlan
    is_by_panels: bool  # rather than by the function of a small product, or by BLAS
    work: Work  # its rows are the panels of one product, or the products of a batch
    workers: int
    time: int  # estimated nanoseconds for one thread


def schedule_product(n: Node, target: Target, threads: int) -> ProductSchedule:
    """Return the plan of the matrix products of a node."""
    plan = plan_product(n)
    p, time = plan.matrices, estimate_product_time(plan)
    by_panels = (not plan.is_small or p.b.column != 1) and is_panel_product(p, target)
    by_panels = by_panels or not (plan.is_small or target.has_blas)
    if plan.is_tiny:
        work = _plan_batch(plan.batch[0].length if plan.batch else 1, 0)
    else:
        work = plan_panels(p, target) if by_panels else Work(1, 1, scratch=p.scratch)
        if plan.loop:
            work = _plan_batch(prod(plan.loop), work.scratch)
    workers = count_workers(work, time, threads) if by_panels or plan.is_small else 1  # BLAS has its own threads
    return ProductSchedule(plan, by_panels, work, workers, time)


def _plan_batch(count: int, scratch: int) -> Work:
    return Work(count, max(1, -(-count // MAX_PARTS)), scratch=scratch)


def has_few_rows(p: Product) -> bool:
    """Return whether the left matrix has so few rows that panels of the right one are not worth copying."""
    return p.m <= FEW_ROWS and p.b.column == 1


def count_vectors(m: int) -> int:
    """Return the width of a block of rows in vectors: more of few rows, as each sum waits for itself."""
    return max(2, SUMS // m)


def panel_width(p: Product, target: Target) -> int:
    return (count_vectors(p.m) if has_few_rows(p) else 2) * target.vector_bytes // int(p.dtype[1])


def choose_panel_depth(p: Product) -> int:
    """Return the number of rows of a panel: equal for all panels, and small enough for the cache."""
    if has_few_rows(p):
        return min(FEW_DEPTH, p.k)
    return -(-p.k // -(-p.k // DEPTH[p.dtype]))


def plan_panels(p: Product, target: Target) -> Work:
    """Return the work of one product by panels."""
    wide = panel_width(p, target)
    if has_few_rows(p):
        return Work(-(-p.n // wide), 1)
    return Work(-(-p.n // wide), 1, scratch=-(-choose_panel_depth(p) * wide * int(p.dtype[1]) // 64) * 64)


def is_panel_product(p: Product, target: Target) -> bool:
    """Return whether panels are quicker than BLAS, as measured: for contiguous rows and mostly full panels."""
    if not is_enabled("matrix products"):
        return False
    if target.vector_bytes < 32 or p.m < 2 or p.k < 16 or 1 not in p.b or not _is_left_in_order(p, target):
        return False
    wide = panel_width(p, target)
    if has_few_rows(p):
        return p.n >= wide
    size = int(p.dtype[1])
    near = p.b.row == 1 or p.k * p.n * size <= target.second_cache
    full = p.n % wide == 0 or p.n >= 4 * wide or p.is_small
    kept = p.m * choose_panel_depth(p) * size <= LEFT_SHARE * target.second_cache or plan_panels(p, target).rows == 1
    return near and full and kept and p.m * p.n * p.k <= MAX_MULTIPLICATIONS


def _is_left_in_order(p: Product, target: Target) -> bool:
    """Return whether the left matrix is read along its rows, or is transposed and small."""
    return p.a.column == 1 or (p.a.row == 1 and p.m * p.k <= MAX_TRANSPOSED_ELEMENTS * target.vector_bytes)
