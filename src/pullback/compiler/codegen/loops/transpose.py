"""Functions that read and write transposed tiles: as many short rows as a vector has lanes.

A tile holds the first column of all its rows, then the second, and so on, so that each column is a vector.  Its rows
may be anywhere in an array: ``%offsets`` has the offset of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.compiler.builder import Code, define_function, first_lanes, vector

SHORT_ROW = 4  # elements; longer rows are transposed so many elements at a time


class Tile:
    """Emits functions that read or write transposed tiles of one shape."""

    def __init__(self, memory: str, size: int, height: int, length: int, step: int = 1) -> None:
        self.memory, self.size, self.height, self.length = memory, size, height, length
        self.step = step  # the stride along a row, in elements
        self.code = Code()
        self._short = f"x{length}" if length <= SHORT_ROW else ""  # longer rows have functions for any length

    def emit_reader(self, code: Code) -> str:
        """Add the function that reads a tile to the helpers of the caller, and return its name.

        Its parameters are the array, the offsets of the rows, the tile and the length of the rows.
        """
        name = f"tile_in_{self.memory}_{self.height}{self._short}_{self.step}"
        if name not in code.helpers:
            if self.size < 4 or self.step != 1:
                self._copy_elements("tile", "row")
            else:
                self._read()
            self._add_helper(code, name)
        return name

    def emit_writer(self, code: Code) -> str:
        """Add the function that writes a tile to the helpers of the caller, and return its name.

        Rows are written from the last to the first: missing rows have the address of the last existing one, which is
        thus written after them.
        """
        name = f"tile_out_{self.memory}_{self.height}{self._short}"
        if name not in code.helpers:
            if self.size < 4:
                self._copy_elements("row", "tile")
            else:
                self._write()
            self._add_helper(code, name)
        return name

    def emit_block_reader(self, code: Code, pitch: int) -> str:
        """Add the function that reads a block of a transposed matrix to the helpers of the caller, and return its name.

        Its parameters are the first element of the array and of the tile, the stride of columns in the array, the
        numbers of rows and columns, and the last row and column at which a square may begin.
        """
        name, side, inner = f"block_in_{self.memory}_{self.height}_{pitch}", self.height, self.code
        if name in code.helpers:
            return name
        with inner.loop("0", "%columns", side) as j:
            column = inner.minimum(j, "%last_column")
            with inner.loop("0", "%rows", side) as i:
                row = inner.minimum(i, "%last_row")
                read = []
                for k in range(side):
                    at = inner.op(f"mul i64 {inner.add(column, str(k))}, %stride")
                    pointer = inner.at(self.memory, "%array", inner.add(at, row))
                    read.append(inner.read(pointer, self.memory, self.size, side, None))
                for k, v in enumerate(self._transpose_squares(read)):
                    at = inner.add(inner.times(inner.add(row, str(k)), pitch), column)
                    inner.write(v, inner.at(self.memory, "%tile", at), self.memory, self.size, side, None)
        counts = ", ".join(f"i64 %{name}" for name in ("stride", "rows", "columns", "last_row", "last_column"))
        head = f"define internal void @{name}(ptr noalias %array, ptr noalias %tile, {counts}) noinline {{"
        code.helpers[name] = define_function(head, inner.body)
        code.declared |= inner.declared
        return name

    def _add_helper(self, code: Code, name: str) -> None:
        params = "ptr noalias %array, ptr noalias %offsets, ptr noalias %tile, i64 %length"
        head = f"define internal void @{name}({params}) noinline {{"
        code.helpers[name] = define_function(head, self.code.body)
        code.declared |= self.code.declared

    def _read(self) -> None:
        code, rows = self.code, [self._row(str(r)) for r in range(self.height)]
        with self._columns() as (first, count, wide):
            mask = first_lanes(count, wide)
            read = [code.read(code.at(self.memory, row, first), self.memory, self.size, wide, mask) for row in rows]
            turned = self._transpose_squares(self._join_rows(read, wide))
            for j in range(count):
                code.write(turned[j], self._column(first, j), self.memory, self.size, self.height, None)

    def _write(self) -> None:
        code, rows = self.code, [self._row(str(r)) for r in range(self.height)]
        with self._columns() as (first, count, wide):
            mask = first_lanes(count, wide)
            columns = [
                code.read(self._column(first, j), self.memory, self.size, self.height, None) for j in range(count)
            ]
            turned = self._transpose_squares(columns + ["poison"] * (wide - count))
            for r in reversed(range(self.height)):
                row = self._take_row(turned[r % wide], r // wide, wide)
                code.write(row, code.at(self.memory, rows[r], first), self.memory, self.size, wide, mask)

    @contextmanager
    def _columns(self) -> Iterator[tuple[str, int, int]]:
        """Yield groups of columns that are transposed together: the first, their number, and that as a power of two.

        Four at a time; the last four may have some in common with those before.
        """
        code = self.code
        if self.length <= SHORT_ROW:
            yield "0", self.length, 1 << (self.length - 1).bit_length()
            return
        last = code.op(f"sub i64 %length, {SHORT_ROW}")
        with code.loop("0", "%length", SHORT_ROW) as i:
            yield code.minimum(i, last), SHORT_ROW, SHORT_ROW

    def _copy_elements(self, to: str, of: str) -> None:
        """Copy a tile element by element, for small elements and strided rows."""
        code, height = self.code, self.height
        with code.loop("0", height) as i:
            r = code.op(f"sub i64 {height - 1}, {i}")
            row = self._row(r)
            with code.loop("0", "%length") as j:
                place = code.at(self.memory, "%tile", code.add(code.times(j, height), r))
                places = {"tile": place, "row": code.at(self.memory, row, code.times(j, self.step))}
                v = code.op(f"load {self.memory}, ptr {places[of]}, align {self.size}")
                code.line(f"store {self.memory} {v}, ptr {places[to]}, align {self.size}")

    # ---- places

    def _row(self, r: str) -> str:
        return self.code.at(self.memory, "%array", self.code.load("i64", "%offsets", r))

    def _column(self, first: str, j: int) -> str:
        return self.code.at(self.memory, "%tile", self.code.times(self.code.add(first, str(j)), self.height))

    # ---- vectors

    def _join_rows(self, rows: list[str], wide: int) -> list[str]:
        """Return short rows joined to whole vectors: the first has rows 0, ``wide``, ``2 * wide``, and so on."""
        groups = [rows[i::wide] for i in range(wide)]
        while wide < self.height:
            pairs = [zip(group[::2], group[1::2], strict=True) for group in groups]
            groups = [[self._join_two(a, b, wide) for a, b in pair] for pair in pairs]
            wide *= 2
        return [v for (v,) in groups]

    def _join_two(self, a: str, b: str, wide: int) -> str:
        if wide > 1:
            return self._shuffle(a, b, wide, range(2 * wide))
        v = self.code.op(f"insertelement <2 x {self.memory}> poison, {self.memory} {a}, i64 0")
        return self.code.op(f"insertelement <2 x {self.memory}> {v}, {self.memory} {b}, i64 1")

    def _transpose_squares(self, vectors: list[str]) -> list[str]:
        """Return the square matrices in these vectors transposed, by exchanging halves, then quarters, and so on."""
        lanes, step = range(self.height), len(vectors) // 2
        vectors = list(vectors)
        while step:
            low = [i + (self.height - step if i & step else 0) for i in lanes]
            high = [i + (self.height if i & step else step) for i in lanes]
            for i in range(len(vectors)):
                if not i & step:
                    a, b = vectors[i], vectors[i + step]
                    vectors[i], vectors[i + step] = (self._shuffle(a, b, self.height, by) for by in (low, high))
            step //= 2
        return vectors

    def _take_row(self, v: str, number: int, wide: int) -> str:
        """Return one of the short rows of a vector."""
        if wide == self.height:
            return v
        if wide == 1:
            return self.code.op(f"extractelement {vector(self.memory, self.height)} {v}, i64 {number}")
        return self._shuffle(v, "poison", self.height, range(number * wide, number * wide + wide))

    def _shuffle(self, a: str, b: str, wide: int, lanes: range | list[int]) -> str:
        return self.code.shuffle(vector(self.memory, wide), a, b, lanes)
