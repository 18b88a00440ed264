"""Batches of products of tiny matrices, each in one function; all of a product is in registers at once.

A row of the result is a vector with a lane for each column.  Vectors may be longer than a row: what they load lies
within the same matrix, and what they store beyond a row is overwritten by the next row.
"""

from __future__ import annotations

from functools import lru_cache

from pullback.compiler.builder import FLOATS, Code, splat, vector
from pullback.compiler.codegen.gemm.block import multiply_add
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.ir.products import Batch, Matrix, Product
from pullback.compiler.schedule.products import TinyPlan
from pullback.compiler.target import Target


@lru_cache(256)
def emit_tiny_products(p: Product, plan: TinyPlan, target: Target) -> KernelCode:
    """Return the kernel of a batch of products; its arrays are left, right, what is added and the result."""
    writer = TinyProducts(p, target)
    code = writer.code
    writer.loop(plan.batch, ["%a", "%b", "%c", "%z"], "%lo", "%hi")
    return make_kernel(code, "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z", *RANGE)


class TinyProducts:
    """Emits the products of a batch."""

    def __init__(self, p: Product, target: Target) -> None:
        self.p, self.target, self.code = p, target, Code()
        self.type, self.size = FLOATS[p.dtype], int(p.dtype[1])
        self.width = 1 << (p.n - 1).bit_length()

    def loop(self, batch: tuple[Batch, ...], pointers: list[str], start: str, stop: str) -> None:
        """Emit the loops over the axes of the batch, and one product inside them."""
        code, (axis, *inner) = self.code, batch
        with code.loop(start, stop) as i:
            strides = axis.a, axis.b, axis.z, axis.z
            moved = [
                code.at(self.type, x, code.times(i, s)) if s else x for x, s in zip(pointers, strides, strict=True)
            ]
            if inner:
                self.loop((*inner,), moved, "0", str(inner[0].length))
            else:
                self._multiply(*moved)

    def _multiply(self, a: str, b: str, c: str, z: str) -> None:
        p, code, type_ = self.p, self.code, vector(self.type, self.width)
        fma = multiply_add(self.target, self.size, self.width)
        right = [self._load_row(b, i, p.k, p.b) for i in range(p.k)]
        rows = [self._load_row(c, i, p.m, Matrix(p.n, 1)) if p.adds else "" for i in range(p.m)]
        for i in range(p.m):
            for k in range(p.k):
                left = splat(code, self._load(a, i * p.a.row + k * p.a.column), self.type, self.width)
                if rows[i]:
                    rows[i] = code.call(fma, type_, [(type_, x) for x in (left, right[k], rows[i])])
                else:
                    rows[i] = code.op(f"fmul {type_} {left}, {right[k]}")
        for i, row in enumerate(rows):
            self._store_row(row, z, i)

    def _load_row(self, base: str, i: int, rows: int, strides: Matrix) -> str:
        """Load row ``i`` of a matrix; the value of lanes beyond it is arbitrary."""
        n, width, code = self.p.n, self.width, self.code
        first, end = i * strides.row, (rows - 1) * strides.row + n
        if (strides.column != 1 and n > 1) or end < width:
            return code.pack(self.type, [self._load(base, first + j * strides.column) for j in range(n)], width)
        at = min(first, end - width)
        row = code.read(code.at(self.type, base, at), self.type, self.size, width, None)
        return row if at == first else self._shuffle(row, row, [min(first - at + j, width - 1) for j in range(width)])

    def _store_row(self, row: str, z: str, i: int) -> None:
        """Store row ``i`` of the result: as a whole vector if the next row overwrites the lanes beyond it."""
        p, code = self.p, self.code
        first, done, count = i * p.n, 0, self.width
        while done < p.n:
            inside = first + done + count <= (p.m * p.n if count == self.width else first + p.n)
            if not inside:
                count //= 2
                continue
            part = row if count == self.width else self._shuffle(row, row, [*range(done, done + count)])
            code.write(part, code.at(self.type, z, first + done), self.type, self.size, count, None)
            done += count

    def _shuffle(self, x: str, y: str, lanes: list[int]) -> str:
        type_ = vector(self.type, self.width)
        if len(lanes) == 1:
            return self.code.op(f"extractelement {type_} {x}, i64 {lanes[0]}")
        return self.code.shuffle(type_, x, y, lanes)

    def _load(self, base: str, at: int) -> str:
        return self.code.read(self.code.at(self.type, base, at), self.type, self.size, 1, None)
