"""Small matrix products: a function for each size, as a call of BLAS would take longer than the product.

The left matrix may have any strides, as its elements are loaded one by one; the right one is loaded by vectors, so a
transposed one is copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pullback.compiler.builder import FLOATS, Code, code_of
from pullback.compiler.codegen.call_table import CallList, ConstantOperand, Operand
from pullback.compiler.codegen.gemm.block import Block
from pullback.compiler.codegen.kernel_code import KernelCode, make_kernel
from pullback.compiler.ir.products import Product
from pullback.compiler.schedule.products import BlasPlan, SmallPlan
from pullback.compiler.target import Target

if TYPE_CHECKING:
    import numpy as np

ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED = (ConstantOperand("i32", flag) for flag in ("101", "111", "112"))  # of CBLAS


def declare_blas(dtype: np.dtype[Any]) -> str:
    """Return the LLVM declaration of the BLAS function for products of a dtype."""
    t, letter = FLOATS[code_of(dtype)], get_letter(code_of(dtype))
    return f"declare void @{letter}gemm(i32, i32, i32, i64, i64, i64, {t}, ptr, i64, ptr, i64, {t}, ptr, i64)"


def call_blas(code: CallList, p: Product, plan: BlasPlan, a: Operand, b: Operand, z: Operand) -> None:
    """Call BLAS for one product."""
    t, (left, right) = FLOATS[p.dtype], plan.blas_layouts
    flags = [ROW_MAJOR, *(TRANSPOSED if x.is_transposed else NOT_TRANSPOSED for x in (left, right))]
    lengths = [ConstantOperand("i64", str(length)) for length in (p.m, p.n, p.k, left.leading, right.leading, p.n)]
    one, beta = ConstantOperand(t, "1.0"), ConstantOperand(t, "1.0" if p.adds else "0.0")
    args = [*flags, *lengths[:3], one, a, lengths[3], b, lengths[4], beta, z, lengths[5]]
    code.call_void(f"{get_letter(p.dtype)}gemm", args)


def get_blas_name(dtype: np.dtype[Any]) -> str:
    """Return the name of the BLAS function for products of a dtype."""
    return f"{get_letter(code_of(dtype))}gemm"


def get_letter(dtype: str) -> str:
    """Return the letter with which the names of the routines of BLAS and LAPACK for a dtype begin."""
    return "s" if dtype == "f4" else "d"


@lru_cache(256)
def emit_small_product(product: Product, plan: SmallPlan, target: Target) -> KernelCode:
    """Return the function ``(a, b, c, result, scratch)`` of a small product."""
    return SmallProduct(product, plan, target).write()


class SmallProduct:
    """Emits the function of one product, which calls those of its blocks."""

    def __init__(self, product: Product, plan: SmallPlan, target: Target) -> None:
        self.p, self.target, self.code = product, target, Code()
        self.type, self.width, self.blocks = FLOATS[product.dtype], plan.width, plan.blocks

    def write(self) -> KernelCode:
        """Return the function."""
        p, code = self.p, self.code
        self.b, self.b_row = "%b", p.b.row
        if p.b.column != 1:
            self._copy_right()
        for vectors in self.blocks.vectors:
            starts = range(vectors.start * self.width, vectors.stop * self.width, vectors.step * self.width)
            whole = starts if starts.stop <= p.n else starts[:-1]
            for j in self._loop(whole):
                self._multiply_columns(j, starts.step)
            if whole is not starts:
                self._multiply_columns(str(starts[-1]), p.n - starts[-1])
        return make_kernel(code, "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z", "ptr noalias %scratch")

    def _loop(self, starts: range) -> Iterator[str]:
        """Emit a loop over a range, and yield its index; the one index itself if the range has no other."""
        if len(starts) > 1:
            with self.code.loop(str(starts.start), starts.stop, starts.step) as i:
                yield i
        elif starts:
            yield str(starts.start)

    def _copy_right(self) -> None:
        p, code = self.p, self.code
        with code.loop("0", p.k) as i, code.loop("0", p.n) as j:
            source = code.add(code.times(i, p.b.row), code.times(j, p.b.column))
            v = code.load(self.type, "%b", source)
            code.store(self.type, v, "%scratch", code.add(code.times(i, p.n), j))
        self.b, self.b_row = "%scratch", p.n

    def _multiply_columns(self, j: str, columns: int) -> None:
        """Emit the product of all rows and a few columns from ``j`` on."""
        for rows in self.blocks.rows:
            for i in self._loop(rows):
                self._call_block(i, j, rows.step, columns)

    def _call_block(self, i: str, j: str, rows: int, columns: int) -> None:
        p, code = self.p, self.code
        block = Block(p, rows, columns, self.width, self.target, is_padded=False)
        place = code.add(code.times(i, p.n), j)
        a, z = code.at(self.type, "%a", code.times(i, p.a.row)), code.at(self.type, "%z", place)
        block.call(
            code,
            a,
            code.at(self.type, self.b, j),
            self.b_row,
            p.k,
            z,
            code.at(self.type, "%c", place),
            str(p.adds).lower(),
        )
