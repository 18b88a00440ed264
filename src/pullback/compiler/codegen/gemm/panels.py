"""Matrix products of medium size: panels of columns of the right matrix are copied so that they fit the cache.

A panel is as wide as two vector registers and as deep as the first-level cache allows.  It is multiplied by a dozen
rows of the left matrix at a time, whose sums stay in registers.  Panels are independent of each other, so threads can
share them.
"""

from __future__ import annotations

from functools import lru_cache

from pullback.compiler.builder import FLOATS, Code, first_lanes, vector
from pullback.compiler.codegen.gemm.block import Block
from pullback.compiler.codegen.gemm.few_rows import FewRows
from pullback.compiler.codegen.gemm.few_vectors import FewVectors
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.codegen.loops.transpose import Tile
from pullback.compiler.ir.products import Product
from pullback.compiler.schedule.products import FewRowsPlan, FewVectorsPlan, PanelPlan, ProductKernelPlan
from pullback.compiler.target import Target


@lru_cache(256)
def emit_panels(p: Product, plan: ProductKernelPlan, target: Target) -> KernelCode:
    """Return the kernel of a product, whose rows are panels; its arrays are left, right, what is added, the result."""
    if isinstance(plan, FewVectorsPlan):
        return FewVectors(p, plan, target).write()
    return (FewRows(p, plan, target) if isinstance(plan, FewRowsPlan) else BlockedProduct(p, plan, target)).write()


class BlockedProduct:
    """Emits the kernel of one product."""

    def __init__(self, p: Product, plan: PanelPlan, target: Target) -> None:
        self.p, self.plan, self.target, self.code = p, plan, target, Code()
        self.type, self.size = FLOATS[p.dtype], int(p.dtype[1])
        self.width = target.vector_bytes // self.size
        self.vector = vector(self.type, self.width)

    def write(self) -> KernelCode:
        """Return the kernel."""
        p, code, wide = self.p, self.code, self.plan.columns
        whole = p.n // wide
        if whole:
            stop = code.minimum("%hi", whole)
            with code.when(code.op(f"icmp slt i64 %lo, {stop}")), code.loop("%lo", stop) as panel:
                self._panel(code.times(panel, wide), wide)
        if whole * wide < p.n:
            with code.when(code.op(f"icmp sgt i64 %hi, {whole}")):
                self._panel(str(whole * wide), p.n - whole * wide)
        arrays = "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z"
        return make_kernel(code, *arrays, *RANGE)

    def _panel(self, j: str, columns: int) -> None:
        """Emit the product of all rows and a few columns from ``j`` on, panel by panel along the shared axis."""
        code, k, depth = self.code, self.p.k, self.plan.depth
        whole = k // depth * depth
        if whole > depth:
            with code.loop("0", whole, depth) as first:
                self._multiply_panel(first, depth, j, columns)
        else:
            self._multiply_panel("0", depth, j, columns)
        if whole < k:
            self._multiply_panel(str(whole), k - whole, j, columns)

    def _multiply_panel(self, first: str, deep: int, j: str, columns: int) -> None:
        self._copy_panel(first, deep, j, columns)
        self._all_rows(first, deep, j, columns)

    def _copy_panel(self, first: str, deep: int, j: str, columns: int) -> None:
        p, code = self.p, self.code
        if p.b.column != 1 and p.b.row == 1:
            self._copy_transposed(first, deep, j, columns)
            return
        with code.loop("0", deep) as k:
            source = code.add(code.times(code.add(k, first), p.b.row), code.times(j, p.b.column))
            for v in range(self.plan.columns // self.width):
                left = min(max(columns - v * self.width, 0), self.width)
                value = self._load_right(source, v * self.width, left)
                to = code.add(code.times(k, self.plan.columns), str(v * self.width))
                code.line(f"store {self.vector} {value}, ptr {code.at(self.type, '%scratch', to)}, align 64")

    def _copy_transposed(self, first: str, deep: int, j: str, columns: int) -> None:
        """Copy a panel of a transposed matrix, whose columns are contiguous; missing columns are copies of the last."""
        p, code, wide = self.p, self.code, self.plan.columns
        reader = Tile(self.type, self.size, wide, deep).emit_reader(code)
        offsets = ", ".join(f"i64 {min(c, columns - 1) * p.b.column}" for c in range(wide))
        cell = code.allocate(f"<{wide} x i64>")
        code.line(f"store <{wide} x i64> <{offsets}>, ptr {cell}, align 64")
        start = code.at(self.type, "%b", code.add(code.times(j, p.b.column), first))
        code.line(f"call void @{reader}(ptr {start}, ptr {cell}, ptr %scratch, i64 {deep})")

    def _load_right(self, source: str, ahead: int, count: int) -> str:
        """Load elements of a row of the right matrix; zeros beyond its end."""
        return (
            self._read(self.code.at(self.type, "%b", self.code.add(source, str(ahead))), count)
            if count
            else "zeroinitializer"
        )

    def _all_rows(self, first: str, deep: int, j: str, columns: int) -> None:
        for blocks in self.plan.rows:
            with self.code.loop(str(blocks.start), blocks.stop, blocks.step) as i:
                self._call_block(i, blocks.step, first, deep, j, columns)

    def _call_block(self, i: str, rows: int, first: str, deep: int, j: str, columns: int) -> None:
        """Call the function of a few rows; their sums are added to those of earlier panels, or to the third array."""
        p, code = self.p, self.code
        block = Block(p, rows, columns, self.width, self.target, is_padded=True)
        start = code.at(self.type, "%a", code.add(code.times(i, p.a.row), code.times(first, p.a.column)))
        place = code.add(code.times(i, p.n), j)
        result, before, flag = code.at(self.type, "%z", place), code.at(self.type, "%c", place), str(p.adds).lower()
        if deep < p.k:  # of several panels only the first may store its sums
            is_later = code.op(f"icmp ne i64 {first}, 0")
            before = code.op(f"select i1 {is_later}, ptr {result}, ptr {before}")
            flag = "true" if p.adds else is_later
        block.call(code, start, "%scratch", self.plan.columns, deep, result, before, flag)

    def _read(self, pointer: str, count: int) -> str:
        return self.code.read(pointer, self.type, self.size, self.width, first_lanes(count, self.width))
