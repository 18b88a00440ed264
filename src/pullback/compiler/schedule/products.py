"""Plans of matrix products: by a function for their size, by panels or by BLAS, and by how many threads.

A panel is a copy of a few columns of the right matrix that fits the first-level cache (see ``codegen/gemm/panels``).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.products import Matrix, Product, ProductPlan, plan_product
from pullback.compiler.schedule.work import Work, count_workers, estimate_product_time
from pullback.compiler.target import Options, Target

MAX_MULTIPLICATIONS = 400**3  # of a product by generated code; for larger ones BLAS is as quick, with AVX2 quicker
LEFT_SHARE = 3 / 4  # of the second-level cache that the left matrix may take while it is multiplied by all panels
SHORT_ROW = 1024  # bytes of rows of a right matrix beyond the cache whose panels the CPU prefetches in time
MAX_TRANSPOSED_ELEMENTS = 2**11  # of a transposed left matrix, per byte of a vector; for more BLAS is quicker
FEW_ROWS = 12  # of a left matrix, for which the right one is not copied
FEW_DEPTH = 8  # rows of the right matrix that are read at a time; of more the CPU prefetches some too late
MIN_DEPTH = 16  # terms of the sums of small products by panels, and of those with few rows or columns
FEW_COLUMNS = 15  # of a right matrix, by which a left one is multiplied row by row
FEW_LEFT_ROWS = 6  # of a left matrix, by which a transposed right one is multiplied
GROUP = 4  # columns that are multiplied at a time; of left rows one less, as LLVM would run out of registers
MAX_GROUP_ROWS = 6  # rows of the large matrix that are multiplied at a time; of more the CPU prefetches some too late
VECTORS_SHARE = 1 / 2  # of the first-level cache that the few vectors may take
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


def schedule_product(n: Node, target: Target, options: Options) -> ProductSchedule:
    """Return the plan of the matrix products of a node."""
    plan = plan_product(n, options)
    p, time = plan.matrices, estimate_product_time(plan)
    by_panels = (not plan.is_small or p.b.column != 1) and is_panel_product(p, target)
    by_panels = by_panels or not (plan.is_small or target.has_blas)
    if plan.is_tiny:
        work = _plan_batch(plan.batch[0].length if plan.batch else 1, 0)
    else:
        work = plan_panels(p, target) if by_panels else Work(1, 1, scratch=p.scratch)
        if plan.loop:
            work = _plan_batch(prod(plan.loop), work.scratch)
    is_shared = by_panels or plan.is_small  # BLAS has its own threads
    workers = count_workers(work, time, options.threads) if is_shared else 1
    return ProductSchedule(plan, by_panels, work, workers, time)


def _plan_batch(count: int, scratch: int) -> Work:
    return Work(count, max(1, -(-count // MAX_PARTS)), scratch=scratch)


def has_few_rows(p: Product) -> bool:
    """Return whether the left matrix has so few rows that panels of the right one are not worth copying."""
    return p.m <= FEW_ROWS and p.b.column == 1


def count_vectors(m: int) -> int:
    """Return the width of a block of rows in vectors: more of few rows, as each sum waits for itself."""
    return max(2, SUMS // m)


def has_few_vectors(p: Product, target: Target) -> bool:
    """Return whether a large matrix, contiguous along the shared axis, is multiplied by so few vectors.

    Those that fill panels are multiplied in less time side by side.
    """
    if p.is_small or p.k < MIN_DEPTH:
        return False
    are_columns = 1 < p.n <= FEW_COLUMNS and p.a.column == 1 and not _is_quick_in_panels(p, target)
    return are_columns or (1 < p.m <= FEW_LEFT_ROWS and p.b.row == 1)


def turn_few_columns(p: Product) -> Product | None:
    """Return the transposed product, which has few rows, if the left matrix is large and transposed; else None."""
    if p.is_small or p.k < MIN_DEPTH or not 1 < p.n <= FEW_ROWS or p.a.row != 1:
        return None
    return Product(p.dtype, p.n, p.m, p.k, Matrix(*reversed(p.b)), Matrix(*reversed(p.a)), False, p.by_blas)


class FewVectorsPlan(NamedTuple):
    """How a large matrix is multiplied by a few vectors."""

    is_left_large: bool  # and the vectors are columns; else the right matrix is transposed and large
    large_rows: int
    groups: tuple[int, ...]  # the vectors, in groups that are multiplied at a time
    rows: int  # of the large matrix that are multiplied at a time
    depth: int  # elements of the vectors that are copied at a time
    work: Work


@lru_cache(256)
def plan_few_vectors(p: Product, target: Target) -> FewVectorsPlan:
    """Return the plan of a product of a large matrix and a few vectors."""
    is_left_large = 1 < p.n <= FEW_COLUMNS and p.a.column == 1
    large_rows, few = (p.m, p.n) if is_left_large else (p.n, p.m)
    count, size = -(-few // (GROUP if is_left_large else GROUP - 1)), int(p.dtype[1])
    groups = tuple(len(range(i, few, count)) for i in range(count))
    rows = min(large_rows, MAX_GROUP_ROWS, (target.registers - 1) // (groups[0] + 1))
    width = target.vector_bytes // size
    most = max(1, int(VECTORS_SHARE * target.first_cache / (few * size * width)))  # registers of each vector
    registers = -(-p.k // width)
    depth = -(-registers // -(-registers // most)) * width
    blocks = -(-large_rows // rows)
    work = Work(blocks, max(1, -(-blocks // MAX_PARTS)), scratch=-(-few * depth * size // 64) * 64)
    return FewVectorsPlan(is_left_large, large_rows, groups, rows, min(depth, p.k), work)


def panel_width(p: Product, target: Target) -> int:
    return (count_vectors(p.m) if has_few_rows(p) else 2) * target.vector_bytes // int(p.dtype[1])


def choose_panel_depth(p: Product) -> int:
    """Return the number of rows of a panel: equal for all panels, and small enough for the cache."""
    if has_few_rows(p):
        return min(FEW_DEPTH, p.k)
    return -(-p.k // -(-p.k // DEPTH[p.dtype]))


def plan_panels(p: Product, target: Target) -> Work:
    """Return the work of one product by panels."""
    if has_few_vectors(p, target):
        return plan_few_vectors(p, target).work
    if turned := turn_few_columns(p):
        size = int(p.dtype[1])
        return Work(-(-turned.n // panel_width(turned, target)), 1, scratch=-(-p.m * p.n * size // 64) * 64)
    wide = panel_width(p, target)
    if has_few_rows(p):
        return Work(-(-p.n // wide), 1)
    return Work(-(-p.n // wide), 1, scratch=-(-choose_panel_depth(p) * wide * int(p.dtype[1]) // 64) * 64)


def is_panel_product(p: Product, target: Target) -> bool:
    """Return whether panels are quicker than BLAS, as measured: for contiguous rows and mostly full panels."""
    if p.by_blas or target.vector_bytes < 32 or p.m < 2 or 1 not in p.b or (p.is_small and p.k < MIN_DEPTH):
        return False
    if turned := turn_few_columns(p):
        return turned.n >= panel_width(turned, target)
    if not _is_left_in_order(p, target):
        return False
    if has_few_vectors(p, target):
        return True
    if has_few_rows(p):
        return p.k >= MIN_DEPTH and p.n >= panel_width(p, target)
    return _is_quick_in_panels(p, target)


def _is_quick_in_panels(p: Product, target: Target) -> bool:
    """Return whether panels are mostly full, and what they are copied from and multiplied by is near."""
    size, wide = int(p.dtype[1]), panel_width(p, target)
    near = p.b.row == 1 or p.n * size <= SHORT_ROW or p.k * p.n * size <= target.second_cache
    full = p.n % wide == 0 or p.n >= 4 * wide or p.is_small
    kept = p.m * choose_panel_depth(p) * size <= LEFT_SHARE * target.second_cache or p.n <= 2 * wide
    return near and full and kept and p.m * p.n * p.k <= MAX_MULTIPLICATIONS


def _is_left_in_order(p: Product, target: Target) -> bool:
    """Return whether the left matrix is read along its rows, or is transposed and small."""
    return p.a.column == 1 or (p.a.row == 1 and p.m * p.k <= MAX_TRANSPOSED_ELEMENTS * target.vector_bytes)
