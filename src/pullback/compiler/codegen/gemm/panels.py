"""Matrix products of medium size, for which panels of columns of the right matrix are copied for the cache.

A panel is as wide as two registers and as deep as the first cache holds.  Rows of the left matrix go along it, a dozen
at a time, their sums in registers.  Panels are independent of each other, so threads may share them out.
"""

from __future__ import annotations

from functools import lru_cache

from pullback.compiler.builder import FLOATS, Code, first_lanes, literal, vector
from pullback.compiler.codegen.gemm.small import multiply_add
from pullback.compiler.codegen.kernel_code import Function, KernelCode, make_function
from pullback.compiler.codegen.loops.transpose import Tile
from pullback.compiler.ir.products import Product
from pullback.compiler.schedule.products import panel_depth, plan_panels
from pullback.compiler.target import Target

__all__ = ["emit_panels"]


@lru_cache(256)
def emit_panels(p: Product, target: Target) -> KernelCode:
    """Return a product as a kernel whose rows are panels; its arrays are left, right, what is added, and the result."""
    writer = BlockedProduct(p, target)
    function, code = writer.write(), writer.code
    return KernelCode(function, plan_panels(p, target), frozenset(code.declared), helpers=tuple(code.helpers.items()))


class BlockedProduct:
    """Emits the kernel of one product."""

    def __init__(self, p: Product, target: Target) -> None:
        self.p, self.target, self.code = p, target, Code()
        self.type, self.size = FLOATS[p.dtype], int(p.dtype[1])
        self.width = target.vector_bytes // self.size
        self.vector = vector(self.type, self.width)
        self.depth = panel_depth(p)
        most = (target.registers - 3) // 2  # two registers of the panel and one of the left matrix are taken
        blocks = -(-p.m // most)
        self.rows = -(-p.m // blocks)

    def write(self) -> Function:
        """Return the function."""
        p, code, wide = self.p, self.code, 2 * self.width
        whole = p.n // wide
        if whole:
            stop = code.op(f"call i64 @llvm.smin.i64(i64 %hi, i64 {whole})")
            code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
            some, done = code.block("some"), code.block("done")
            code.branch(code.op(f"icmp slt i64 %lo, {stop}"), some, done)
            code.begin(some)
            with code.loop("%lo", stop) as panel:
                self._panel(code.times(panel, wide), wide)
            code.jump(done)
            code.begin(done)
        if whole * wide < p.n:
            last, end = code.block("last"), code.block("end")
            code.branch(code.op(f"icmp sgt i64 %hi, {whole}"), last, end)
            code.begin(last)
            self._panel(str(whole * wide), p.n - whole * wide)
            code.jump(end)
            code.begin(end)
        arrays = "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z"
        return make_function(code, *arrays, "i64 %lo", "i64 %hi", "ptr %partial", "ptr noalias %scratch")

    def _panel(self, j: str, columns: int) -> None:
        """Emit all rows of a few columns from ``j`` on, block by block along the shared axis."""
        for first in range(0, self.p.k, self.depth):
            deep = min(self.depth, self.p.k - first)
            self._copy_panel(first, deep, j, columns)
            self._all_rows(first, deep, j, columns)

    def _copy_panel(self, first: int, deep: int, j: str, columns: int) -> None:
        p, code = self.p, self.code
        if p.b.column != 1 and p.b.row == 1:
            self._copy_transposed(first, deep, j, columns)
            return
        with code.loop("0", deep) as k:
            source = code.add(code.times(code.add(k, str(first)), p.b.row), code.times(j, p.b.column))
            for v in range(2):
                left = min(max(columns - v * self.width, 0), self.width)
                value = self._load_right(source, v * self.width, left)
                to = code.add(code.times(k, 2 * self.width), str(v * self.width))
                code.line(f"store {self.vector} {value}, ptr {self._at('%scratch', to)}, align 64")

    def _copy_transposed(self, first: int, deep: int, j: str, columns: int) -> None:
        """Copy a panel whose columns lie in one piece each; in place of those that do not exist, the last one again."""
        p, code, wide = self.p, self.code, 2 * self.width
        reader = Tile(self.type, self.size, wide, deep).emit_reader(code)
        offsets = ", ".join(f"i64 {min(c, columns - 1) * p.b.column}" for c in range(wide))
        cell = code.allocate(f"<{wide} x i64>")
        code.line(f"store <{wide} x i64> <{offsets}>, ptr {cell}, align 64")
        start = self._at("%b", code.add(code.times(j, p.b.column), str(first)))
        code.line(f"call void @{reader}(ptr {start}, ptr {cell}, ptr %scratch)")

    def _load_right(self, source: str, ahead: int, count: int) -> str:
        """Load elements of a row of the right matrix; zeros beyond its end."""
        return self._read(self._at("%b", self.code.add(source, str(ahead))), count) if count else "zeroinitializer"

    def _all_rows(self, first: int, deep: int, j: str, columns: int) -> None:
        p, code = self.p, self.code
        whole = p.m // self.rows * self.rows
        if whole:
            with code.loop("0", whole, self.rows) as i:
                self._block(i, self.rows, first, deep, j, columns)
        if whole < p.m:
            self._block(str(whole), p.m - whole, first, deep, j, columns)

    def _block(self, i: str, rows: int, first: int, deep: int, j: str, columns: int) -> None:
        """Emit a few rows, with their sums in registers."""
        p, code = self.p, self.code
        counts = [c for c in (min(columns, self.width), columns - self.width) if c > 0]
        cells = [[code.allocate(self.vector) for _ in counts] for _ in range(rows)]
        for cell in (r for row in cells for r in row):
            code.line(f"store {self.vector} zeroinitializer, ptr {cell}, align 64")
        starts = [
            self._at("%a", code.add(code.times(code.add(i, str(r)), p.a.row), str(first * p.a.column)))
            for r in range(rows)
        ]
        fma = multiply_add(self.target, self.size, self.width)
        with code.loop("0", deep) as k:
            along = code.times(k, 2 * self.width)
            right = [
                code.op(f"load {self.vector}, ptr {self._at('%scratch', place)}, align 64")
                for place in [code.add(along, str(v * self.width)) for v in range(len(counts))]
            ]
            step = code.times(k, p.a.column)
            for r in range(rows):
                one = code.op(f"load {self.type}, ptr {self._at(starts[r], step)}, align {self.size}")
                lane = code.op(f"insertelement {self.vector} poison, {self.type} {one}, i64 0")
                zeros = f"<{self.width} x i32> zeroinitializer"
                left = code.op(f"shufflevector {self.vector} {lane}, {self.vector} poison, {zeros}")
                for v in range(len(counts)):
                    so_far = code.op(f"load {self.vector}, ptr {cells[r][v]}, align 64")
                    new = code.call(fma, self.vector, [(self.vector, x) for x in (left, right[v], so_far)])
                    code.line(f"store {self.vector} {new}, ptr {cells[r][v]}, align 64")
        for r in range(rows):
            for v, count in enumerate(counts):
                place = code.add(code.add(code.times(code.add(i, str(r)), p.n), j), str(v * self.width))
                self._store(code.op(f"load {self.vector}, ptr {cells[r][v]}, align 64"), place, count, first)

    def _store(self, total: str, place: str, count: int, first: int) -> None:
        """Store a sum, added to that of earlier blocks or to what the product is added to."""
        p, code = self.p, self.code
        if p.times != 1.0:
            total = code.op(f"fmul {self.vector} {total}, {literal(p.times, p.dtype, self.width)}")
        if first or p.adds:
            before = self._read(self._at("%z" if first else "%c", place), count)
            total = code.op(f"fadd {self.vector} {before}, {total}")
        mask = first_lanes(count, self.width)
        code.write(total, self._at("%z", place), self.type, self.size, self.width, mask)

    def _read(self, pointer: str, count: int) -> str:
        return self.code.read(pointer, self.type, self.size, self.width, first_lanes(count, self.width))

    def _at(self, base: str, place: str) -> str:
        return self.code.op(f"getelementptr {self.type}, ptr {base}, i64 {place}")
