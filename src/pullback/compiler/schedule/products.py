"""Plans of matrix products: by a function for their size, by panels or by BLAS, and by how many threads.

A panel is a copy of a few columns of the right matrix that fits the first-level cache (see ``codegen/gemm/panels``).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple, TypeAlias

from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.products import (
    Batch,
    BatchedProduct,
    BlasLayout,
    Matrix,
    Product,
    find_blas_layout,
    resolve_product,
)
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.work import Work, estimate_product_time
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
EVEN_ROWS = 12  # rows from which on a block has an even number: half of it is then a block for the rows left over
MAX_BLOCK_ROWS = 12  # of a block of a small product
MANY_REGISTERS = 32  # of so many, rows alone fill enough with their sums


# ---- records


class TinyPlan(NamedTuple):
    """How a batch of products of tiny matrices is computed: by one function, each product in registers."""

    batch: tuple[Batch, ...]
    work: Work  # its rows are those of the first axis of the batch


class Blocks(NamedTuple):
    """Where the blocks of a product begin, as ranges of rows and of vectors of columns."""

    rows: tuple[range, ...]
    vectors: tuple[range, ...]

    def estimate_cost(self) -> tuple[int, int]:
        """Return the estimated time of all blocks and their number; fewer sums take as long as ``SUMS`` of them."""
        blocks = [(r.step * v.step, len(r) * len(v)) for r in self.rows for v in self.vectors]
        return sum(max(sums, SUMS) * count for sums, count in blocks), sum(count for _, count in blocks)


class SmallPlan(NamedTuple):
    """How a small product is computed: by a function for its size."""

    width: int  # elements of a vector
    blocks: Blocks
    work: Work


class FewVectorsPlan(NamedTuple):
    """How a large matrix is multiplied by a few vectors."""

    is_left_large: bool  # and the vectors are columns; else the right matrix is transposed and large
    large_rows: int
    groups: tuple[int, ...]  # the vectors, in groups that are multiplied at a time
    rows: int  # of the large matrix that are multiplied at a time
    depth: int  # elements of the vectors that are copied at a time
    work: Work


class FewRowsPlan(NamedTuple):
    """How a product with few rows is computed: without a copy of the right matrix."""

    product: Product  # the one that has few rows: the given one, or the transposed one
    is_transposed: bool
    rows: int  # that are multiplied at a time
    columns: int  # of the right matrix that are multiplied at a time
    depth: int  # rows of the right matrix that are read at a time
    work: Work  # its rows are groups of columns


class PanelPlan(NamedTuple):
    """How a product of medium size is computed: by copies of panels of the right matrix."""

    rows: tuple[range, ...]  # where blocks of rows of the left matrix begin
    columns: int  # of a panel
    depth: int  # rows of a panel
    work: Work  # its rows are panels


class BlasPlan(NamedTuple):
    """How BLAS computes a product."""

    blas_layouts: tuple[BlasLayout, BlasLayout]  # of the left and the right matrix
    work: Work = Work(1, 1)


ProductKernelPlan: TypeAlias = FewVectorsPlan | FewRowsPlan | PanelPlan  # threads can share one product
ProductPlan: TypeAlias = TinyPlan | SmallPlan | ProductKernelPlan | BlasPlan


class ProductSchedule(NamedTuple):
    """The plan of the matrix products of a node."""

    product: BatchedProduct
    plan: ProductPlan  # of each product of the batch, or of all if they are tiny
    work: Work  # its rows are those of the plan, or the products of a batch


# ---- the choice


def schedule_product(n: Node, target: Target, options: Options) -> ProductSchedule:
    """Return the plan of the matrix products of a node."""
    product = resolve_product(n)
    plan = plan_product(product, target, options)
    work = plan.work
    if product.loop and not isinstance(plan, TinyPlan):
        work = _plan_batch(prod(product.loop), work.scratch)
    if not isinstance(plan, BlasPlan):  # which has its own threads
        work = work.share(estimate_product_time(product), options.threads)
    return ProductSchedule(product, plan, work)


def _plan_batch(count: int, scratch: int) -> Work:
    return Work(count, max(1, -(-count // MAX_PARTS)), scratch=scratch)


def plan_product(product: BatchedProduct, target: Target, options: Options) -> ProductPlan:
    """Return how each product of a batch is computed."""
    p = product.matrices
    if options.is_enabled("matrix products"):
        if p.is_tiny:
            batch = product.batch or (Batch(1, 0, 0, 0),)
            return TinyPlan(batch, _plan_batch(batch[0].length, 0))
        if plan := _plan_quick_panels(p, target):
            return plan
        if p.is_small:
            return _plan_small(p, target)
    if target.has_blas:
        return BlasPlan((find_blas_layout((p.m, p.k), p.a), find_blas_layout((p.k, p.n), p.b)))
    return _plan_panels(p, target)


def _plan_panels(p: Product, target: Target) -> ProductKernelPlan:
    """Return how a product is computed by panels of its right matrix, or without if one of the matrices is narrow."""
    if _has_few_vectors(p, target):
        return _plan_few_vectors(p, target)
    if turned := _turn_few_columns(p):
        return _plan_few_rows(turned, round_up(p.m * p.n * int(p.dtype[1])), target, is_transposed=True)
    if _has_few_rows(p):
        return _plan_few_rows(p, 0, target, is_transposed=False)
    columns, depth = _count_columns(p, target), _choose_depth(p)
    most = (target.registers - 3) // 2  # two registers hold the panel, and one an element of the left matrix
    work = Work(-(-p.n // columns), 1, scratch=round_up(depth * columns * int(p.dtype[1])))
    return PanelPlan(_split_axis(p.m, most), columns, depth, work)


def _plan_quick_panels(p: Product, target: Target) -> ProductKernelPlan | None:
    """Return the plan by panels if they are quicker than BLAS, as measured: for contiguous rows and mostly full panels.

    Of small products those are quicker whose right matrix is transposed; the result is None for others.
    """
    if target.vector_bytes < 32 or p.m < 2 or 1 not in p.b or (p.is_small and (p.k < MIN_DEPTH or p.b.column == 1)):
        return None
    plan, is_in_order = _plan_panels(p, target), _is_left_in_order(p, target)
    if isinstance(plan, FewRowsPlan):
        is_quick = (is_in_order or plan.is_transposed) and p.k >= MIN_DEPTH and plan.product.n >= plan.columns
    elif isinstance(plan, FewVectorsPlan):
        is_quick = is_in_order and not _turn_few_columns(p)  # both matrices transposed and narrow: BLAS is quicker
    else:
        is_quick = is_in_order and _is_quick_in_panels(p, target)
    return plan if is_quick else None


def _is_quick_in_panels(p: Product, target: Target) -> bool:
    """Return whether panels are mostly full, and what they are copied from and multiplied by is near."""
    size, wide = int(p.dtype[1]), _count_columns(p, target)
    near = p.b.row == 1 or p.n * size <= SHORT_ROW or p.k * p.n * size <= target.second_cache
    full = p.n % wide == 0 or p.n >= 4 * wide or p.is_small
    kept = p.m * _choose_depth(p) * size <= LEFT_SHARE * target.second_cache or p.n <= 2 * wide
    return near and full and kept and p.m * p.n * p.k <= MAX_MULTIPLICATIONS


def _is_left_in_order(p: Product, target: Target) -> bool:
    """Return whether the left matrix is read along its rows, or is transposed and small."""
    return p.a.column == 1 or (p.a.row == 1 and p.m * p.k <= MAX_TRANSPOSED_ELEMENTS * target.vector_bytes)


# ---- small products


def _plan_small(p: Product, target: Target) -> SmallPlan:
    """Return the plan of a small product: the blocks that take the least time."""
    width = target.vector_bytes // int(p.dtype[1])
    while width > 4 and width // 2 >= p.n:
        width //= 2
    few = _count_vectors(p.m)
    widths = (3, 2) if few == 2 and target.registers < MANY_REGISTERS else (few,)
    blocks = min((_split_product(p.m, -(-p.n // width), most, target) for most in widths), key=Blocks.estimate_cost)
    scratch = 0 if p.b.column == 1 else round_up(p.k * p.n * int(p.dtype[1]))  # for a copy of a transposed right matrix
    return SmallPlan(width, blocks, Work(1, 1, scratch=scratch))


def _split_product(rows: int, vectors: int, most: int, target: Target) -> Blocks:
    """Return the blocks of rows and of vectors of columns if a block is at most ``most`` vectors wide."""
    most = min(most, vectors)
    most_rows = (target.registers - 1 - most) // most  # whose sums are in registers
    return Blocks(_split_axis(rows, max(1, min(most_rows, MAX_BLOCK_ROWS))), _split_axis(vectors, most))


def _count_rows(m: int, most: int) -> int:
    """Return the number of rows of a block: about ``most``, such that few rows or none are left over.

    >>> [_count_rows(m, 12) for m in (16, 30, 17, 5)]
    [8, 10, 9, 5]
    """
    if m <= most:
        return max(m, 1)
    evenly = [r for r in range(most, most // 2, -1) if m % r == 0]
    return evenly[0] if evenly else -(-m // -(-m // most))


def _split_axis(length: int, most: int) -> tuple[range, ...]:
    """Return where blocks along an axis begin, as ranges whose steps are the lengths of blocks.

    Two equal blocks replace one and a short rest, whose few sums would wait for each other.

    >>> _split_axis(32, 6), _split_axis(17, 6), _split_axis(32, 12)
    ((range(0, 24, 6), range(24, 32, 4)), (range(0, 12, 6), range(12, 17, 5)), (range(0, 32, 8),))
    """
    step = _count_rows(length, most) if most >= EVEN_ROWS else -(-length // -(-length // most))
    rest = length % step
    whole = length - rest
    if step < length and 0 < 2 * rest < step and (step + rest) % 2 == 0:
        whole, rest = whole - step, (step + rest) // 2
    return tuple(r for r in (range(0, whole, step), range(whole, length, rest or step)) if r)


# ---- few rows, few columns


def _has_few_vectors(p: Product, target: Target) -> bool:
    """Return whether a large matrix, contiguous along the shared axis, is multiplied by so few vectors.

    Those that fill panels are multiplied in less time side by side.
    """
    if p.is_small or p.k < MIN_DEPTH:
        return False
    are_columns = 1 < p.n <= FEW_COLUMNS and p.a.column == 1 and not _is_quick_in_panels(p, target)
    return are_columns or (1 < p.m <= FEW_LEFT_ROWS and p.b.row == 1)


def _plan_few_vectors(p: Product, target: Target) -> FewVectorsPlan:
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
    work = Work(blocks, max(1, -(-blocks // MAX_PARTS)), scratch=round_up(few * depth * size))
    return FewVectorsPlan(is_left_large, large_rows, groups, rows, min(depth, p.k), work)


def _turn_few_columns(p: Product) -> Product | None:
    """Return the transposed product, which has few rows, if the left matrix is large and transposed; else None."""
    if p.is_small or p.k < MIN_DEPTH or not 1 < p.n <= FEW_ROWS or p.a.row != 1:
        return None
    return Product(p.dtype, p.n, p.m, p.k, Matrix(*reversed(p.b)), Matrix(*reversed(p.a)), False)


def _has_few_rows(p: Product) -> bool:
    """Return whether the left matrix has so few rows that panels of the right one are not worth copying."""
    return p.m <= FEW_ROWS and p.b.column == 1


def _plan_few_rows(p: Product, scratch: int, target: Target, is_transposed: bool) -> FewRowsPlan:
    """Return the plan of a product with few rows."""
    columns = _count_columns(p, target)
    rows = _count_rows(p.m, (target.registers - 3) // _count_vectors(p.m))
    work = Work(-(-p.n // columns), 1, scratch=scratch)
    return FewRowsPlan(p, is_transposed, rows, columns, _choose_depth(p), work)


def _count_vectors(m: int) -> int:
    """Return the width of a block of rows in vectors: more of few rows, as each sum waits for itself."""
    return max(2, SUMS // m)


def _count_columns(p: Product, target: Target) -> int:
    """Return the number of columns of a panel, or of those that few rows are multiplied by at a time."""
    return (_count_vectors(p.m) if _has_few_rows(p) else 2) * target.vector_bytes // int(p.dtype[1])


def _choose_depth(p: Product) -> int:
    """Return the number of rows of a panel: equal for all panels, and small enough for the cache."""
    if _has_few_rows(p):
        return min(FEW_DEPTH, p.k)
    return -(-p.k // -(-p.k // DEPTH[p.dtype]))
