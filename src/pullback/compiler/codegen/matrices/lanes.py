"""Cholesky factorizations and triangular solutions of many small matrices at once, one matrix in each lane.

Matrices are copied to scratch memory, where a vector has the same element of all matrices, and results are copied back.
For matrices of a few rows the overhead of a call of LAPACK is larger than all of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from pullback.compiler.builder import FLOATS, Code, Value, code_of, constant, transpose_square, vector
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.codegen.matrices.places import find_matrix_offset
from pullback.compiler.ir.matrices import CHOLESKY
from pullback.compiler.schedule.matrices import MatricesPlan

TILE = 4  # elements of the result that are computed at a time, so that the latencies of their sums overlap


def emit_lanes(plan: MatricesPlan) -> KernelCode:
    """Return the kernel of a batch; its arrays are the matrices, the right-hand sides if any, and the result."""
    writer = LaneWriter(plan)
    code = writer.code
    with code.loop("%lo", "%hi") as u:
        writer.write(u)
    arrays = [f"ptr %a{i}" for i in range(len(plan.node.args))]
    return make_kernel(code, *arrays, "ptr %z", *RANGE)


class Grid(NamedTuple):
    """A matrix in scratch memory, each element of which is a vector."""

    start: int  # the number of its first vector
    row: int  # vectors from one row to the next
    column: int  # vectors from one column to the next

    def transpose(self) -> Grid:
        """Return the transposed matrix, in the same memory."""
        return self._replace(row=self.column, column=self.row)


class LaneWriter:
    """Emits the computation for the matrices in the lanes of one vector."""

    def __init__(self, plan: MatricesPlan) -> None:
        self.plan, self.node, self.n, self.width = plan, plan.node, plan.order, plan.width
        self.code = Code(plan.target.has_fma, plan.target.vector_bytes)
        self.dtype = code_of(plan.node.dtype)
        self.one, self.many = FLOATS[self.dtype], vector(FLOATS[self.dtype], self.width)

    def write(self, u: str) -> None:
        """Emit the computation for the vector with number ``u``."""
        code, plan, n, shape = self.code, self.plan, self.n, self.node.shape
        each = shape[-2] * shape[-1]
        first = code.times(u, self.width)
        # Lanes beyond the last matrix compute that one again.
        numbers = [self.code.minimum(code.add(first, str(i)), plan.matrices - 1) for i in range(self.width)]
        matrices = [code.at(self.one, "%a0", find_matrix_offset(code, plan, k)) for k in numbers]
        results = [code.at(self.one, "%z", code.times(k, each)) for k in numbers]
        self._load(matrices, 0, n * n)
        if self.node.data.name == CHOLESKY:
            self._factor(Grid(0, n, 1))
            self._store(results, 0, each)
            return
        self._load([code.at(self.one, "%a1", code.times(k, each)) for k in numbers], n * n, each)
        self._solve(Grid(0, n, 1), Grid(n * n, shape[-1], 1))
        self._store(results, n * n, each)

    # ---- algorithms

    def _factor(self, a: Grid) -> None:
        """Emit a Cholesky factorization column by column; in lanes where it fails the first element becomes NaN."""
        code, n = self.code, self.n
        failed = self._keep(self._number(0.0))
        with code.loop("0", n) as j:
            row = partial(self._get, a, j)
            [pivot] = self._subtract_products([self._get(a, j, j)], lambda k: [self._get(a, j, k)], row, "0", j)
            self._fail_unless(failed, pivot > 0.0)
            root = pivot.like(code.call(f"llvm.sqrt.{pivot.suffix}", self.many, [(self.many, pivot.name)]))
            self._put(a, j, j, root)
            inverse = 1.0 / root

            def divide(rows: list[str], j: str = j, row: Callable[[str], Value] = row, by: Value = inverse) -> None:
                begin = [self._get(a, i, j) for i in rows]
                sums = self._subtract_products(begin, lambda k: [self._get(a, i, k) for i in rows], row, "0", j)
                for i, x in zip(rows, sums, strict=True):
                    self._put(a, i, j, x * by)

            self._loop_over_tiles(code.add(j, "1"), str(n), divide)
        self._mark_failed(a, failed)
        with self._loop_if_any("1", str(n)) as j, self._loop_if_any("0", j) as i:
            self._put(a, i, j, self._number(0.0))

    def _solve(self, a: Grid, x: Grid) -> None:
        """Emit a substitution row by row; in lanes where a diagonal has a zero the first element becomes NaN."""
        code, n, routine = self.code, self.n, self.node.data
        others = self.node.shape[-2] if routine.right else self.plan.columns
        trans = routine.trans != routine.right
        matrix, right_sides = a.transpose() if trans else a, x.transpose() if routine.right else x
        forward = routine.lower != trans
        failed = self._keep(self._number(0.0))
        with code.loop("0", n) as step:
            i = step if forward else code.op(f"sub i64 {n - 1}, {step}")
            pivot = self._get(matrix, i, i)
            self._fail_unless(failed, pivot.compare("une", 0.0))
            ends = ("0", i) if forward else (code.add(i, "1"), str(n))

            def substitute(
                columns: list[str], i: str = i, by: Value = 1.0 / pivot, ends: tuple[str, str] = ends
            ) -> None:
                begin = [self._get(right_sides, i, c) for c in columns]
                row = partial(self._get, matrix, i)
                sums = self._subtract_products(
                    begin, lambda k: [self._get(right_sides, k, c) for c in columns], row, *ends
                )
                for c, z in zip(columns, sums, strict=True):
                    self._put(right_sides, i, c, z * by)

            self._loop_over_tiles("0", str(others), substitute)
        self._mark_failed(x, failed)

    def _subtract_products(
        self,
        begin: list[Value],
        lefts: Callable[[str], list[Value]],
        right: Callable[[str], Value],
        first: str,
        stop: str,
    ) -> list[Value]:
        """Return numbers minus sums of products; the right factors are the same for all of them."""
        cells = [self._keep(x) for x in begin]
        with self._loop_if_any(first, stop) as k:
            y = right(k)
            for cell, x in zip(cells, lefts(k), strict=True):
                self._keep(self._read(cell) - x * y, cell)
        return [self._read(cell) for cell in cells]

    # ---- loops

    @contextmanager
    def _loop_if_any(self, first: str, stop: str) -> Iterator[str]:
        """Emit a loop that may be empty."""
        with self.code.when(self.code.op(f"icmp slt i64 {first}, {stop}")), self.code.loop(first, stop) as i:
            yield i

    def _loop_over_tiles(self, first: str, stop: str, emit: Callable[[list[str]], None]) -> None:
        """Call ``emit`` for a range of numbers: TILE at a time in a loop, and one by one for those that remain."""
        code = self.code
        tiles = code.op(f"sdiv i64 {code.op(f'sub i64 {stop}, {first}')}, {TILE}")
        with self._loop_if_any("0", tiles) as t:
            i = code.add(first, code.times(t, TILE))
            emit([code.add(i, str(r)) for r in range(TILE)])
        with self._loop_if_any(code.add(first, code.times(tiles, TILE)), stop) as i:
            emit([i])

    # ---- lanes that fail

    def _fail_unless(self, failed: str, condition: Value) -> None:
        before, nan = self._read(failed), self._number(float("nan"))
        self._keep(self._select(condition, before, nan), failed)

    def _mark_failed(self, x: Grid, failed: str) -> None:
        self._put(x, "0", "0", self._get(x, "0", "0") + self._read(failed))

    def _select(self, condition: Value, x: Value, y: Value) -> Value:
        return x.like(self.code.op(f"select {condition!r}, {x!r}, {y!r}"))

    # ---- from and to arrays

    def _load(self, rows: list[str], start: int, count: int) -> None:
        """Copy elements of the matrices of all lanes into scratch memory."""
        code, width = self.code, self.width
        whole = count // width * width if width > 1 else 0
        if whole:
            with code.loop("0", whole, width) as k:
                lanes = [
                    self._value(code.op(f"load {self.many}, ptr {code.at(self.one, row, k)}, align 1")) for row in rows
                ]
                for j, v in enumerate(transpose_square(lanes)):
                    self._write(start, code.add(k, str(j)), v)
        if whole < count:
            with code.loop(str(whole), count) as k:
                self._write(
                    start, k, self._value(code.pack(self.one, [code.load(self.one, row, k) for row in rows], width))
                )

    def _store(self, rows: list[str], start: int, count: int) -> None:
        """Copy elements from scratch memory into the matrices of all lanes."""
        code, width = self.code, self.width
        whole = count // width * width if width > 1 else 0
        if whole:
            with code.loop("0", whole, width) as k:
                columns = [self._fetch(start, code.add(k, str(j))) for j in range(width)]
                for row, v in zip(rows, transpose_square(columns), strict=True):
                    code.line(f"store {self.many} {v.name}, ptr {code.at(self.one, row, k)}, align 1")
        if whole < count:
            with code.loop(str(whole), count) as k:
                v = self._fetch(start, k)
                for i, row in enumerate(rows):
                    x = v.name if width == 1 else code.op(f"extractelement {self.many} {v.name}, i64 {i}")
                    code.store(self.one, x, row, k)

    # ---- vectors

    def _number(self, x: float) -> Value:
        return constant(self.code, x, self.dtype, self.width)

    def _value(self, name: str) -> Value:
        return Value(self.code, name, self.dtype, self.width)

    def _keep(self, x: Value, cell: str = "") -> str:
        """Store a vector in a variable, and return its address."""
        cell = cell or self.code.allocate(self.many)
        self.code.store(self.many, x.name, cell)
        return cell

    def _read(self, cell: str) -> Value:
        return self._value(self.code.load(self.many, cell))

    def _find_vector(self, start: int, k: str) -> str:
        return self.code.at(self.many, "%scratch", self.code.add(k, str(start)))

    def _fetch(self, start: int, k: str) -> Value:
        return self._read(self._find_vector(start, k))

    def _write(self, start: int, k: str, v: Value) -> None:
        self._keep(v, self._find_vector(start, k))

    def _find_element(self, x: Grid, i: str, j: str) -> str:
        return self.code.add(self.code.times(i, x.row), self.code.times(j, x.column))

    def _get(self, x: Grid, i: str, j: str) -> Value:
        return self._fetch(x.start, self._find_element(x, i, j))

    def _put(self, x: Grid, i: str, j: str, v: Value) -> None:
        self._write(x.start, self._find_element(x, i, j), v)
