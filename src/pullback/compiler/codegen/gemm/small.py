"""Small matrix products: a function for each size, as a call of BLAS would take longer than the product.

The sums of a block of rows and a few vectors of columns stay in registers during the loop over the shared axis.  The
left matrix may have any strides, as its elements are loaded one by one; the right one is loaded by vectors, so a
transposed one is copied first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pullback.compiler.builder import FLOATS, Code, code_of, first_lanes, literal, vector
from pullback.compiler.codegen.call_table import CallList, Constant, Operand
from pullback.compiler.codegen.kernel_code import Function, make_function
from pullback.compiler.ir.products import Product, ProductPlan
from pullback.compiler.target import Target


def declare_blas(dtype: Any) -> str:
    """Return the LLVM declaration of the BLAS function for products of a dtype."""
    t, letter = FLOATS[code_of(dtype)], _letter(code_of(dtype))
    return f"declare void @{letter}gemm(i32, i32, i32, i64, i64, i64, {t}, ptr, i64, ptr, i64, {t}, ptr, i64)"


def call_blas(code: CallList, plan: ProductPlan, a: Operand, b: Operand, z: Operand) -> None:
    """Call BLAS for one product."""
    p, t = plan.matrices, FLOATS[plan.matrices.dtype]
    (turned_a, row_a), (turned_b, row_b) = plan.flags
    flags = [Constant("i32", str(flag)) for flag in (101, 112 if turned_a else 111, 112 if turned_b else 111)]
    lengths = [Constant("i64", str(length)) for length in (p.m, p.n, p.k, row_a, row_b, p.n)]
    alpha = Constant(t, str(literal(p.times, p.dtype, 1)))
    beta = Constant(t, "1.0" if p.adds else "0.0")
    args = [*flags, *lengths[:3], alpha, a, lengths[3], b, lengths[4], beta, z, lengths[5]]
    code.call_void(f"{_letter(p.dtype)}gemm", args)


def get_blas_name(dtype: Any) -> str:
    """Return the name of the BLAS function for products of a dtype."""
    return f"{_letter(code_of(dtype))}gemm"


def _letter(dtype: str) -> str:
    return "s" if dtype == "f4" else "d"


def count_rows(m: int, most: int) -> int:
    """Return the number of rows of a block: about ``most``, such that few rows or none are left over.

    >>> count_rows(16, 12), count_rows(30, 12), count_rows(17, 12), count_rows(5, 12)
    (8, 10, 9, 5)
    """
    if m <= most:
        return max(m, 1)
    evenly = [r for r in range(most, most // 2, -1) if m % r == 0]
    return evenly[0] if evenly else -(-m // -(-m // most))


@lru_cache(256)
def emit_small_product(product: Product, target: Target) -> tuple[Function, frozenset[str]]:
    """Return the function of a small product, and its declarations."""
    writer = SmallProduct(product, target)
    return writer.write(), frozenset(writer.code.declared)


def multiply_add(target: Target, size: int, width: int) -> str:
    """Return the name of LLVM's intrinsic for x * y + z: rounded once if the CPU has an instruction for it."""
    type_ = f"f{size * 8}" if width == 1 else f"v{width}f{size * 8}"
    return f"llvm.{'fma' if target.has_fma else 'fmuladd'}.{type_}"


class SmallProduct:
    """Emits the function ``(a, b, c, result, scratch)`` of one product."""

    def __init__(self, product: Product, target: Target) -> None:
        self.p, self.target, self.code = product, target, Code()
        self.type = FLOATS[product.dtype]
        self.size = int(product.dtype[1])
        most = target.vector_bytes // self.size
        while most > 4 and most // 2 >= product.n:
            most //= 2
        self.width = most
        registers = target.registers
        self.vectors = 2 if product.n > self.width else 1
        self.rows = count_rows(product.m, min((registers - 2 - self.vectors) // self.vectors // 2 * 2, 12))

    def write(self) -> Function:
        """Return the function."""
        p, code = self.p, self.code
        self.b, self.b_row = "%b", p.b.row
        if p.b.column != 1:
            self._copy_right()
        block = self.width * self.vectors
        whole = p.n // block * block
        if whole:
            with code.loop("0", whole, block) as j:
                self._columns(j, self.vectors, None)
        at = whole
        while at < p.n:
            left = p.n - at
            mask = None if left >= self.width else left
            self._columns(str(at), 1, mask)
            at += self.width
        return make_function(code.body, "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z", "ptr noalias %scratch")

    def _copy_right(self) -> None:
        p, code = self.p, self.code
        with code.loop("0", p.k) as i, code.loop("0", p.n) as j:
            source = code.add(code.times(i, p.b.row), code.times(j, p.b.column))
            v = code.op(f"load {self.type}, ptr {self._at('%b', source)}")
            code.line(f"store {self.type} {v}, ptr {self._at('%scratch', code.add(code.times(i, p.n), j))}")
        self.b, self.b_row = "%scratch", p.n

    def _at(self, base: str, place: str) -> str:
        return self.code.op(f"getelementptr {self.type}, ptr {base}, i64 {place}")

    def _columns(self, j: str, vectors: int, mask: int | None) -> None:
        """Emit the product of all rows and a few vectors of columns."""
        p, code = self.p, self.code
        whole = p.m // self.rows * self.rows
        if whole > self.rows:
            with code.loop("0", whole, self.rows) as i:
                self._block(i, j, self.rows, vectors, mask)
        elif whole:
            self._block("0", j, self.rows, vectors, mask)
        if whole < p.m:
            self._block(str(whole), j, p.m - whole, vectors, mask)

    def _block(self, i: str, j: str, rows: int, vectors: int, mask: int | None) -> None:
        p, code = self.p, self.code
        type_ = vector(self.type, self.width)
        cells = [[code.allocate(type_) for _ in range(vectors)] for _ in range(rows)]
        for r in range(rows):
            for v in range(vectors):
                start = self._read("%c", self._place(i, r, j, v), mask) if p.adds else "zeroinitializer"
                code.line(f"store {type_} {start}, ptr {cells[r][v]}, align 64")
        fma = multiply_add(self.target, self.size, self.width)
        with code.loop("0", p.k) as k:
            along = code.add(code.times(k, self.b_row), j)
            right = [self._read(self.b, code.add(along, str(v * self.width)), mask) for v in range(vectors)]
            for r in range(rows):
                place = code.add(code.times(code.add(i, str(r)), p.a.row), code.times(k, p.a.column))
                one = code.op(f"load {self.type}, ptr {self._at('%a', place)}")
                first = code.op(f"insertelement {type_} poison, {self.type} {one}, i64 0")
                left = code.op(f"shufflevector {type_} {first}, {type_} poison, <{self.width} x i32> zeroinitializer")
                for v in range(vectors):
                    so_far = code.op(f"load {type_}, ptr {cells[r][v]}, align 64")
                    new = code.call(fma, type_, [(type_, left), (type_, right[v]), (type_, so_far)])
                    code.line(f"store {type_} {new}, ptr {cells[r][v]}, align 64")
        for r in range(rows):
            for v in range(vectors):
                done = code.op(f"load {type_}, ptr {cells[r][v]}, align 64")
                self._write(done, self._at("%z", self._place(i, r, j, v)), mask)

    def _place(self, i: str, row: int, j: str, v: int) -> str:
        code = self.code
        return code.add(code.add(code.times(code.add(i, str(row)), self.p.n), j), str(v * self.width))

    def _read(self, base: str, place: str, mask: int | None) -> str:
        return self.code.read(self._at(base, place), self.type, self.size, self.width, self._mask(mask))

    def _write(self, value: str, pointer: str, mask: int | None) -> None:
        self.code.write(value, pointer, self.type, self.size, self.width, self._mask(mask))

    def _mask(self, count: int | None) -> str | None:
        return None if count is None else first_lanes(count, self.width)
