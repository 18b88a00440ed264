"""Sums of large arrays of any shape along one axis.

The LLVM module exports ``run(x, z, outer, count, inner)``: the elements of ``x`` are those of an array of the shape
(outer, count, inner), and ``z`` gets their sums over the axis in the middle; the result is 1 if all of them are finite.
Long rows are summed in halves, columns 16 rows at a time, so that no sum loses more digits than NumPy's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pullback.compiler.builder import FLOATS, Code, code_of, define_function, splat, vector
from pullback.compiler.runtime.abi.layout import choose_address
from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.compiler.runtime.llvm import TranslatorError, get_code, llvm_available
from pullback.compiler.target import Target, get_target

if TYPE_CHECKING:
    import numpy as np

AVX2 = 32  # bytes of its vectors

VECTOR_BYTES = 64  # at least; several registers where these are shorter, so that their latencies overlap
CHAINS = 8  # vectors that are summed side by side
MOST_VECTORS = 128  # of a row that are not summed in halves
ROWS = 16  # that are added up before they are added to the sums of columns
NARROW = 64  # columns below which 16 rows are summed as one row of 16 times as many columns


def compile_sum(dtype: np.dtype[Any]) -> Callable[[Any, Any, int, int, int], bool] | None:
    """Return a function of an array, of an array for the result, and of three lengths; None if there is none.

    The array is in order, of the shape that the lengths give, and is summed over the axis in the middle.  The function
    returns whether all sums are finite.

    >>> import numpy as np
    >>> f, z = compile_sum(np.dtype("f8")), np.ones(3)
    >>> f is None or (f(np.arange(6.0), z, 1, 2, 3) and z.tolist() == [3.0, 5.0, 7.0])
    True
    """
    target = get_target()
    if not llvm_available() or target.vector_bytes < AVX2:
        return None  # where it was not measured
    try:
        code, _ = get_code(emit_sums(code_of(dtype), target), ["run"], {}, get_default_cache())
    except TranslatorError:
        return None
    code.keep()
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(code.addresses["run"])

    def call(x: Any, z: Any, outer: int, count: int, inner: int) -> bool:
        return bool(run(find_data(x), find_data(z), outer, count, inner))

    find_data = choose_address()
    return call


def emit_sums(dtype: str, target: Target) -> str:
    """Return the LLVM module for arrays of a dtype, ``"f4"`` or ``"f8"``."""
    return SumsWriter(dtype, target).write()


class SumsWriter:
    """Writes the functions of the module; each method that begins with ``_write`` emits the body of one of them."""

    def __init__(self, dtype: str, target: Target) -> None:
        self.number, self.size = FLOATS[dtype], int(dtype[1])
        self.width = max(VECTOR_BYTES, target.vector_bytes) // self.size
        self.vector, self.mask = vector(self.number, self.width), f"<{self.width} x i1>"
        self.functions: list[str] = []
        self.declared: set[str] = set()

    def write(self) -> str:
        """Return the text of the module."""
        row, columns = "ptr %x, i64 %count", "ptr %x, ptr %z, i64 %count, i64 %inner"
        self._define(self.vector, "chains", "ptr %x, i64 %vectors", self._write_chains)
        self._define(self.vector, "halves", "ptr %x, i64 %vectors", self._write_halves)
        self._define(self.number, "short_row", row, self._write_short_row)
        self._define(self.number, "long_row", row, self._write_long_row)
        self._define("void", "rows", "ptr %x, ptr %z, i64 %rows, i64 %count", self._write_rows)
        self._define("void", "add_rows", "ptr %x, ptr %z, i64 %rows, i64 %inner", self._write_add_rows)
        self._define("void", "columns", columns, self._write_columns)
        self._define("void", "narrow", f"ptr %cells, {columns}", self._write_narrow)
        self._define("i64", "is_finite", "ptr %z, i64 %count", self._write_is_finite)
        self._define("i64", "run", "ptr %x, ptr %z, i64 %outer, i64 %count, i64 %inner", self._write_run, "")
        return "\n".join([*sorted(self.declared), *self.functions])

    def _define(
        self, kind: str, name: str, parameters: str, write: Callable[[], str | None], linkage: str = "internal "
    ) -> None:
        self.code = code = Code()
        result = write()
        head = f"define {linkage}{kind} @{name}({parameters}) {{"
        function = define_function(head, code.body, "void" if result is None else f"{kind} {result}")
        self.functions.append(function.text)
        self.declared |= code.declared

    # ---- what the functions are made of

    def _at(self, base: str, place: str | int, unit: str = "") -> str:
        return self.code.op(f"getelementptr {unit or self.number}, ptr {base}, i64 {place}")

    def _make_cell(self, kind: str) -> str:
        """Return the address of a variable that is 0."""
        cell = self.code.allocate(kind)
        self.code.line(f"store {kind} zeroinitializer, ptr {cell}")
        return cell

    def _load(self, at: str, mask: str | None = None) -> str:
        return self.code.read(at, self.number, self.size, self.width, mask)

    def _add(self, kind: str, cell: str, x: str) -> None:
        """Emit the addition of a value to a variable."""
        total = self.code.op(f"fadd {kind} {self.code.op(f'load {kind}, ptr {cell}')}, {x}")
        self.code.line(f"store {kind} {total}, ptr {cell}")

    def _select_lanes(self, count: str) -> str:
        """Return the mask of the first ``count`` lanes."""
        lanes = ", ".join(f"i64 {i}" for i in range(self.width))
        all_ = splat(self.code, count, "i64", self.width)
        return self.code.op(f"icmp slt <{self.width} x i64> <{lanes}>, {all_}")

    def _emit_if(self, test: str, yes: Callable[[], None], no: Callable[[], None] | None = None) -> None:
        """Emit branches for a comparison."""
        code = self.code
        first, second, after = map(code.block, ("yes", "no", "after"))
        code.branch(code.op(f"icmp {test}"), first, after if no is None else second)
        code.begin(first)
        yes()
        code.jump(after)
        if no is not None:
            code.begin(second)
            no()
            code.jump(after)
        code.begin(after)

    # ---- rows

    def _write_chains(self) -> str:
        """Emit the sum of a multiple of CHAINS vectors."""
        code = self.code
        sums = [self._make_cell(self.vector) for _ in range(CHAINS)]
        with code.loop("0", "%vectors", CHAINS) as i:
            for k, cell in enumerate(sums):
                self._add(self.vector, cell, self._load(self._at("%x", code.add(i, str(k)), self.vector)))
        parts = [code.op(f"load {self.vector}, ptr {cell}") for cell in sums]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [code.op(f"fadd {self.vector} {a}, {b}") for a, b in pairs]
        return parts[0]

    def _write_halves(self) -> str:
        code = self.code
        total = self._make_cell(self.vector)

        def add(function: str, x: str, vectors: str) -> None:
            part = code.op(f"call {self.vector} @{function}(ptr {x}, i64 {vectors})")
            self._add(self.vector, total, part)

        def add_halves() -> None:
            half = code.op("lshr i64 %vectors, 1")
            first = code.op(f"and i64 {code.op(f'add i64 {half}, 63')}, -64")
            add("halves", "%x", first)
            add("halves", self._at("%x", first, self.vector), code.op(f"sub i64 %vectors, {first}"))

        self._emit_if(f"sle i64 %vectors, {MOST_VECTORS}", partial(add, "chains", "%x", "%vectors"), add_halves)
        return code.op(f"load {self.vector}, ptr {total}")

    def _write_short_row(self) -> str:
        code = self.code
        total = self._make_cell(self.number)
        with code.loop("0", "%count") as i:
            self._add(self.number, total, code.op(f"load {self.number}, ptr {self._at('%x', i)}"))
        return code.op(f"load {self.number}, ptr {total}")

    def _write_long_row(self) -> str:
        code = self.code
        total = self._make_cell(self.vector)
        vectors = code.op(f"udiv i64 %count, {self.width}")
        chained = code.op(f"and i64 {vectors}, -{CHAINS}")

        def add_chained() -> None:
            self._add(self.vector, total, code.op(f"call {self.vector} @halves(ptr %x, i64 {chained})"))

        def add_singles() -> None:
            with code.loop(chained, vectors) as i:
                self._add(self.vector, total, self._load(self._at("%x", i, self.vector)))

        self._emit_if(f"ne i64 {chained}, 0", add_chained)
        self._emit_if(f"slt i64 {chained}, {vectors}", add_singles)
        mask = self._select_lanes(code.op(f"urem i64 %count, {self.width}"))
        self._add(self.vector, total, self._load(self._at("%x", vectors, self.vector), mask))
        lanes = code.op(f"load {self.vector}, ptr {total}")
        function = f"@llvm.vector.reduce.fadd.v{self.width}f{8 * self.size}"
        code.declared.add(f"declare {self.number} {function}({self.number}, {self.vector})")
        return code.op(f"call reassoc {self.number} {function}({self.number} 0.0, {self.vector} {lanes})")

    def _write_rows(self) -> None:
        code = self.code
        with code.loop("0", "%rows") as i:
            row = self._at("%x", code.op(f"mul i64 {i}, %count"))

            def store(function: str, row: str = row, i: str = i) -> None:
                total = code.op(f"call {self.number} @{function}(ptr {row}, i64 %count)")
                code.line(f"store {self.number} {total}, ptr {self._at('%z', i)}")

            self._emit_if(f"slt i64 %count, {self.width}", partial(store, "short_row"), partial(store, "long_row"))

    # ---- columns

    def _write_add_rows(self) -> None:
        """Emit the addition of some rows, which are ROWS at most, to the sums of columns."""
        code = self.code
        with code.loop("0", "%inner", self.width) as j:
            left = code.op(f"sub i64 %inner, {j}")
            first, to = self._at("%x", j), self._at("%z", j)

            def add(is_whole: bool, first: str = first, to: str = to, left: str = left) -> None:
                total, mask = self._make_cell(self.vector), None if is_whole else self._select_lanes(left)
                with code.loop("0", "%rows") as i:
                    row = self._at(first, code.op(f"mul i64 {i}, %inner"))
                    self._add(self.vector, total, self._load(row, mask))
                self._add(self.vector, total, self._load(to, mask))
                sums = code.op(f"load {self.vector}, ptr {total}")
                code.write(sums, to, self.number, self.size, self.width, mask)

            self._emit_if(f"sge i64 {left}, {self.width}", partial(add, True), partial(add, False))

    def _write_columns(self) -> None:
        code = self.code
        with code.loop("0", "%inner") as j:
            code.line(f"store {self.number} 0.0, ptr {self._at('%z', j)}")
        with code.loop("0", "%count", ROWS) as i:
            left = code.op(f"sub i64 %count, {i}")
            rows = code.op(f"select i1 {code.op(f'icmp slt i64 {left}, {ROWS}')}, i64 {left}, i64 {ROWS}")
            first = self._at("%x", code.op(f"mul i64 {i}, %inner"))
            code.line(f"call void @add_rows(ptr {first}, ptr %z, i64 {rows}, i64 %inner)")

    def _write_narrow(self) -> None:
        """Emit sums of few columns: ROWS rows are one with ROWS times as many, whose sums are added up in the end."""
        code = self.code
        wide = code.op(f"mul i64 %inner, {ROWS}")
        groups, rest = code.op(f"udiv i64 %count, {ROWS}"), code.op(f"urem i64 %count, {ROWS}")
        code.line(f"call void @columns(ptr %x, ptr %cells, i64 {groups}, i64 {wide})")

        def add_rest() -> None:
            left = self._at("%x", code.op(f"mul i64 {groups}, {wide}"))
            others = code.op(f"mul i64 {rest}, %inner")
            code.line(f"call void @add_rows(ptr {left}, ptr %cells, i64 1, i64 {others})")

        self._emit_if(f"ne i64 {rest}, 0", add_rest)
        code.line(f"call void @columns(ptr %cells, ptr %z, i64 {ROWS}, i64 %inner)")

    # ---- all

    def _write_is_finite(self) -> str:
        code = self.code
        odd = self._make_cell(self.mask)
        suffix = f"v{self.width}f{8 * self.size}"
        with code.loop("0", "%count", self.width) as i:
            mask = self._select_lanes(code.op(f"sub i64 %count, {i}"))
            lanes = self._load(self._at("%z", i), mask)
            size = code.call(f"llvm.fabs.{suffix}", self.vector, [(self.vector, lanes)])
            is_odd = code.op(f"fcmp uge {self.vector} {size}, splat ({self.number} 0x7FF0000000000000)")
            before = code.op(f"load {self.mask}, ptr {odd}")
            code.line(f"store {self.mask} {code.op(f'or {self.mask} {before}, {is_odd}')}, ptr {odd}")
        found = code.op(f"load {self.mask}, ptr {odd}")
        some = code.call(f"llvm.vector.reduce.or.v{self.width}i1", "i1", [(self.mask, found)])
        return code.op(f"select i1 {some}, i64 0, i64 1")

    def _write_run(self) -> str:
        code = self.code
        cells = code.allocate(f"[{ROWS * NARROW} x {self.number}]")

        def sum_columns() -> None:
            each = code.op("mul i64 %count, %inner")
            few, many = code.op(f"icmp slt i64 %inner, {NARROW}"), code.op(f"icmp sge i64 %count, {NARROW}")
            is_narrow = code.op(f"and i1 {few}, {many}")
            with code.loop("0", "%outer") as i:
                x = self._at("%x", code.op(f"mul i64 {i}, {each}"))
                z = self._at("%z", code.op(f"mul i64 {i}, %inner"))
                arguments = f"ptr {x}, ptr {z}, i64 %count, i64 %inner"
                by_cells = partial(code.line, f"call void @narrow(ptr {cells}, {arguments})")
                self._emit_if(
                    f"eq i1 {is_narrow}, true", by_cells, partial(code.line, f"call void @columns({arguments})")
                )

        def sum_rows() -> None:
            code.line("call void @rows(ptr %x, ptr %z, i64 %outer, i64 %count)")

        self._emit_if("eq i64 %inner, 1", sum_rows, sum_columns)
        size = code.op("mul i64 %outer, %inner")
        return code.op(f"call i64 @is_finite(ptr %z, i64 {size})")
