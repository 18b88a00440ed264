"""Matrix products with few rows: the right matrix is read where it is, as it is used too seldom to be copied.

A few of its rows at a time are multiplied along all columns, so that memory is read in order; the sums so far, of which
there are few, stay in the cache.  A product of a transposed left matrix and few columns is the transpose of one with
few rows, whose sums are in scratch memory until they are complete.
"""

from __future__ import annotations

from pullback.compiler.builder import FLOATS, Code
from pullback.compiler.codegen.gemm.block import Block
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.ir.products import Product
from pullback.compiler.schedule.products import FewRowsPlan
from pullback.compiler.target import Target


class FewRows:
    """Emits the kernel of one product, whose rows are groups of columns."""

    def __init__(self, p: Product, plan: FewRowsPlan, target: Target) -> None:
        self.given, self.p, self.plan, self.target, self.code = p, plan.product, plan, target, Code()
        names = ("%b", "%a", "%scratch", "%scratch") if plan.is_transposed else ("%a", "%b", "%c", "%z")
        self.left, self.right, self.before, self.z = names
        self.type = FLOATS[p.dtype]
        self.width = target.vector_bytes // int(p.dtype[1])
        self.rows, self.columns, self.depth = plan.rows, plan.columns, plan.depth

    def write(self) -> KernelCode:
        """Return the kernel."""
        p, code = self.p, self.code
        whole = p.k // self.depth * self.depth
        with code.loop("0", whole, self.depth) as first:
            self._multiply_slice(first, self.depth)
        if whole < p.k:
            self._multiply_slice(str(whole), p.k - whole)
        if self.plan.is_transposed:
            self._turn_result()
        arrays = "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z"
        return make_kernel(code, *arrays, *RANGE[:3], "ptr %scratch")

    def _turn_result(self) -> None:
        """Emit the transposed copy of the sums to the result."""
        p, code, type_ = self.p, self.code, self.type
        end = code.minimum(code.times("%hi", self.columns), p.n)
        with code.loop(code.times("%lo", self.columns), end) as j:
            for i in range(p.m):
                place = code.add(code.times(j, p.m), str(i))
                total = code.load(type_, "%scratch", code.add(j, str(i * p.n)))
                if self.given.adds:
                    total = code.op(f"fadd {type_} {code.load(type_, '%c', place)}, {total}")
                code.store(type_, total, "%z", place)

    def _multiply_slice(self, first: str, deep: int) -> None:
        """Emit the product with some rows of the right matrix, from ``first`` on."""
        code, whole = self.code, self.p.n // self.columns
        stop = code.minimum("%hi", whole)
        if whole:
            with code.when(code.op(f"icmp slt i64 %lo, {stop}")), code.loop("%lo", stop) as group:
                self._multiply_columns(first, deep, code.times(group, self.columns), self.columns)
        if whole * self.columns < self.p.n:
            with code.when(code.op(f"icmp sgt i64 %hi, {whole}")):
                self._multiply_columns(first, deep, str(whole * self.columns), self.p.n - whole * self.columns)

    def _multiply_columns(self, first: str, deep: int, j: str, columns: int) -> None:
        p, code = self.p, self.code
        left = p.m % self.rows
        right = code.at(self.type, self.right, code.add(code.times(first, p.b.row), j))
        if p.m > left:
            with code.loop("0", p.m - left, self.rows) as i:
                self._call_block(i, self.rows, first, deep, right, j, columns)
        if left:
            self._call_block(str(p.m - left), left, first, deep, right, j, columns)

    def _call_block(self, i: str, rows: int, first: str, deep: int, right: str, j: str, columns: int) -> None:
        p, code = self.p, self.code
        block = Block(p, rows, columns, self.width, self.target, is_padded=False)
        left = code.at(self.type, self.left, code.add(code.times(i, p.a.row), code.times(first, p.a.column)))
        place = code.add(code.times(i, p.n), j)
        z, is_later = code.at(self.type, self.z, place), code.op(f"icmp ne i64 {first}, 0")
        before = code.op(f"select i1 {is_later}, ptr {z}, ptr {code.at(self.type, self.before, place)}")
        block.call(code, left, right, p.b.row, deep, z, before, "true" if p.adds else is_later)
