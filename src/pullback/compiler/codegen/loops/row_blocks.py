"""Many rows at a time: what is computed once for each row has a lane for each of them.

Rows that are not much longer than a vector are gone along side by side as well (``across``): a tile of them is turned,
so that a vector has one element of each row, and a fold along the rows needs nothing but whole vectors.  Longer rows
are gone along one after the other, and what they fold to is put into the lanes.  In rows that are longer still, what is
done once for each of them does not count: they are taken one at a time.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np

from pullback.compiler.builder import TYPES, Value, code_of, literal, splat
from pullback.compiler.codegen.loops.reductions import Folds
from pullback.compiler.codegen.loops.transpose import Tile
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import CAST, FOLD, VIEW
from pullback.compiler.math.functions import emit_scalar
from pullback.compiler.schedule.cost import estimate_cost
from pullback.compiler.schedule.fuse import FULL, READS, ROW, Fused, Kernel, Use, taken
from pullback.compiler.schedule.loops import HEAVY, Axis
from pullback.compiler.target import Target

__all__ = ["Blocks"]

SHORT = 2  # vectors of a row that may be turned
TURNING = 2  # work that turning a tile is worth, for each of its vectors


class Blocks(Folds):
    """The text of a kernel, as far as it is about rows."""

    def __init__(self, kernel: Kernel, fused: Fused, target: Target) -> None:
        super().__init__(kernel, fused, target)
        self.row_values: dict[int, Value] = {}
        self.row_memo: dict[Any, Value] = {}  # loaded for a row
        self.block_memo: dict[Any, Any] = {}  # loaded for a block of them
        self.row_mask: str | None = None  # the rows of the block that there are
        self.row = self.lane_rows = self.column = ""
        self.scratch = 0
        self.rooms: dict[int, str] = {}
        self.tiles: dict[Any, int] = {}

    def _choose(self) -> None:
        """How many rows at a time, and in which way."""
        rows, columns = self.axes
        nodes, levels = self.kernel.nodes, self.kernel.levels
        folds = [n for n in nodes if n.kind is FOLD and levels[n.number] == ROW]
        if self.split is None or self.widest < 4 or not folds:
            return
        count, lanes = prod(a.length for a in rows), self.target.vector_bytes // self.widest
        if count >= lanes >= 4 and self._is_worth_turning(lanes):
            self.across, self.block = True, lanes
        elif any(levels[n.number] == ROW and estimate_cost(n) >= HEAVY for n in nodes):
            length = prod(a.length for a in columns)
            full = sum(u.node.dtype.itemsize for u in self.loads if u.steps[-1])
            while lanes > 1 and (2 * lanes * full * length > self.target.first_cache or lanes // 2 >= count):
                lanes //= 2
            self.block = lanes if 2 * lanes >= self.target.vector_bytes // self.widest else 1

    def _is_worth_turning(self, lanes: int) -> bool:
        """Whether rows leave so many lanes empty that filling them is worth more than the turning costs."""
        _, columns = self.axes
        nodes = self.kernel.nodes
        if len(columns) != 1 or columns[0].length > SHORT * lanes or any(n.kind in READS for n in nodes):
            return False
        length, width = columns[0].length, self._width(columns)
        each = lanes if width == lanes else 0.7 * lanes  # half a vector costs less than a whole
        spent = -(-length // width) * each
        tiles = sum(map(self._is_turned, self.loads)) + sum(self.kernel.levels[n.number] == FULL for n in self.stored)
        return self.kernel.cost * (1 - length / spent) >= TURNING * tiles

    # ---- a block of rows

    def _begin_block(self, row: str) -> None:
        code, b = self.code, self.block
        self.row, self.row_values, self.places_of_row, self.block_memo = row, {}, {}, {}
        here = self._lane_places(row, b)
        last = splat(code, code.op("sub i64 %hi, 1"), "i64", b)
        self.row_mask = code.op(f"icmp sle <{b} x i64> {here}, {last}")
        self.lane_rows = code.op(f"select <{b} x i1> {self.row_mask}, <{b} x i64> {here}, <{b} x i64> {last}")

    def _row_places(self, use: Use) -> str:
        """Where each row of the block begins; for those that are not there, where the last one does."""
        rows, _ = self.axes
        key = tuple(use.steps[a.members[-1]] for a in rows)
        if key not in self.block_memo:
            code, kind, rest, total = self.code, f"<{self.block} x i64>", self.lane_rows, ""
            for axis, step in zip(reversed(rows), reversed(key), strict=True):
                place = rest
                if axis is not rows[0]:
                    length = literal(axis.length, "i8", self.block)
                    place = code.op(f"urem {kind} {rest}, {length}")
                    rest = code.op(f"udiv {kind} {rest}, {length}")
                if step:
                    place = code.op(f"mul {kind} {place}, {literal(step, 'i8', self.block)}")
                    total = code.op(f"add {kind} {total}, {place}") if total else place
            self.block_memo[key] = total
        return str(self.block_memo[key])

    def _same_for_rows(self, use: Use) -> bool:
        rows, _ = self.axes
        return not any(use.steps[a.members[-1]] for a in rows)

    def _by_rows(self, use: Use) -> bool:
        """Whether the elements of neighbouring rows are neighbours."""
        rows, _ = self.axes
        return len(rows) == 1 and use.steps[rows[0].members[-1]] == 1

    def _row_load(self, use: Use, at: str = "0") -> Value:
        """An element for each row of the block, ``at`` after where the row begins."""
        at = self.code.add(self.begin(use), at)
        if self._same_for_rows(use):
            return self._splat(self._load(use.node, at, None, 1), self.block)
        if self._by_rows(use):
            return self._load(use.node, self.code.add(at, self.row), self.row_mask, self.block)
        return self._gather_at(use.node, at, Value(self.code, self._row_places(use), "i8", self.block), None)

    def _splat(self, v: Value, width: int) -> Value:
        return Value(self.code, splat(self.code, v.name, TYPES[v.dtype], width), v.dtype, width)

    # ---- values of rows

    def row_value(self, n: Node) -> Value:
        """What is computed once for each row, with a lane for each row of the block."""
        if n.number not in self.row_values:
            if n.kind is FOLD:
                made = self._from_room(n, "0", self.block)
            else:
                made = self._computed(n, [self._row_of(u) for u in self.given(n)], self.block)
            self.row_values[n.number] = made
        return self.row_values[n.number]

    def _row_of(self, use: Use) -> Value:
        node = use.node
        if is_number(node):
            return self._number(node, self.block)
        if self.kernel.makes(use):
            return self.row_value(node)
        if node.number in self.fused.virtual:
            return self._computed(node, [self._row_of(taken(use, a)) for a in node.args], self.block)
        if self.block == 1:
            return self._scalar_load(use)
        if use not in self.block_memo:
            self.block_memo[use] = self._row_load(use)
        loaded: Value = self.block_memo[use]
        return loaded

    def _computed(self, n: Node, args: list[Value], width: int) -> Value:
        if n.kind is VIEW:
            return args[0]
        if n.kind is CAST:
            return args[0].cast(code_of(n.dtype))
        op, params = n.data
        with self.code.exactly() if n.number in self.settled and op.kernel is np.multiply else nullcontext():
            return emit_scalar(self.code, op, params, args, width, code_of(n.dtype))

    def _scalar_load(self, use: Use) -> Value:
        if use not in self.row_memo:
            self.row_memo[use] = self._load(use.node, self.offset(use, self.places_of_row), None, 1)
        return self.row_memo[use]

    def _number(self, node: Node, width: int) -> Value:
        dtype = code_of(node.dtype)
        return Value(self.code, literal(node.data.item(), dtype, width), dtype, width)

    def _store_rows(self) -> None:
        """What is wanted of the values of rows: they lie in the order of the rows."""
        for n in self.kernel.nodes:
            if self.kernel.levels[n.number] == ROW and n.number in self.fused.stored:
                self._store(self.row_value(n), n, self.row, self.row_mask)

    # ---- rows one after the other: their values lie in memory, where one of them can be taken

    def _room_of(self, n: Node, lane: str) -> str:
        memory = self._kept_as(n)
        if n.number not in self.rooms:
            room = self.rooms[n.number] = self.code.room(f"[{self.block} x {memory}]")
            self.code.entry.append(f"store [{self.block} x {memory}] zeroinitializer, ptr {room}")
        return self.code.op(f"getelementptr {memory}, ptr {self.rooms[n.number]}, i64 {lane}")

    def _from_room(self, n: Node, lane: str, width: int) -> Value:
        memory = self._kept_as(n)
        pointer = self._room_of(n, lane)
        return self._from_memory(self._read(pointer, memory, n.dtype.itemsize, None, width), code_of(n.dtype), width)

    def _keep_rows(self, number: int) -> None:
        """Put down what this pass takes row by row; folds are there already."""
        used = {u.node.number for use, stage in self.even.items() if stage <= number for u in self.leaves(use)}
        for n in self.kernel.nodes:
            if n.number in used and n.kind is not FOLD:
                self._write(self.row_value(n), self._room_of(n, "0"), None)

    def _row_scalar(self, use: Use) -> Value:
        """What is the same all along a row, of this row."""
        node = use.node
        if is_number(node):
            return self._number(node, 1)
        if self.kernel.makes(use):
            return self.row_value(node) if self.block == 1 else self._from_room(node, self.lane, 1)
        if node.number in self.fused.virtual:
            return self._computed(node, [self._row_scalar(taken(use, a)) for a in node.args], 1)
        return self._scalar_load(use)

    # ---- rows side by side

    def _lay_scratch(self) -> None:
        """Where lies what is kept for later passes, and the tiles: of what is loaded, stored, or summed over rows."""
        tiles: dict[Any, Node] = {}
        if self.across:
            tiles = {u: u.node for u in self.loads if self._is_turned(u)}
            tiles |= {n.number: n for n in self.stored if self.kernel.levels[n.number] == FULL}
            tiles |= {n.number: n for n in self.after if self._is_column(n)}
        for places, kept in ((self.tiles, tiles), (self.scratch_at, {n.number: n for n in self.scratch_nodes})):
            for key, n in kept.items():
                places[key] = self.scratch
                self.scratch += self.block * self._row_bytes(n)

    def _is_turned(self, use: Use) -> bool:
        step = use.steps[self.axes[1][-1].members[-1]]
        return bool(step) and not self._same_for_rows(use) and not self._by_rows(use)

    def _read_tiles(self, inner: Axis) -> None:
        for key in self.tiles:
            if isinstance(key, Use):
                tile = Tile(self._kept_as(key.node), key.node.dtype.itemsize, self.block, inner.length)
                tile.step = key.steps[inner.members[-1]]
                self._turn(tile.reader(self.code), key, key)

    def _write_tiles(self, inner: Axis) -> None:
        for n in self.stored:
            if n.number in self.tiles:
                tile = Tile(self._kept_as(n), n.dtype.itemsize, self.block, inner.length)
                self._turn(tile.writer(self.code), Use(n, 0, self.kernel.natural(n)), n.number)

    def _turn(self, function: str, use: Use, key: Any) -> None:
        code, places = self.code, self._row_places(use)
        if ("room", places) not in self.block_memo:
            room = self.block_memo["room", places] = code.room(f"[{self.block} x i64]")
            code.line(f"store <{self.block} x i64> {places}, ptr {room}, align 64")
        array = self._element(use.node, self.address(use.node), self.begin(use))
        tile = self._tile_place(key, use.node, "0")
        code.line(f"call void @{function}(ptr {array}, ptr {self.block_memo['room', places]}, ptr {tile})")

    def _tile_place(self, key: Any, n: Node, index: str) -> str:
        return self._element(n, self.code.op(f"getelementptr i8, ptr %scratch, i64 {self.tiles[key]}"), index)

    def _element(self, n: Node, base: str, at: str) -> str:
        return self.code.op(f"getelementptr {self._kept_as(n)}, ptr {base}, i64 {at}")

    def _hoisted_rows(self, number: int, inner: Axis) -> dict[Any, Value]:
        """What is the same all along the rows of a block."""
        same = [u for u in self.loads if not u.steps[inner.members[-1]]]
        return {u: self._row_of(u) for u in (*same, *(u for u, stage in self.even.items() if stage <= number))}

    def _loaded_across(self, use: Use, index: str) -> Value:
        """A vector of what lies in memory for every place."""
        key = use if use in self.tiles else use.node.number
        if key not in self.tiles:
            step = use.steps[self.axes[1][-1].members[-1]]
            return self._row_load(use, self.code.times(self.column, step))
        read = self.code.read(
            self._tile_place(key, use.node, index), self._kept_as(use.node), use.node.dtype.itemsize, self.block, None
        )
        return self._from_memory(read, code_of(use.node.dtype), self.block)

    def _columns_of(self, n: Node) -> str:
        return self._tile_place(n.number, n, "0") if self.across else super()._columns_of(n)

    def _columns_size(self, n: Node) -> int:
        return n.size * self.block if self.across else super()._columns_size(n)

    def _end_after(self) -> None:
        super()._end_after()
        code = self.code
        for n in self.after:
            if self.across and self._is_column(n):
                with code.loop("0", n.size) as j:
                    at = self._tile_place(n.number, n, code.times(j, self.block))
                    read = code.read(at, self._kept_as(n), n.dtype.itemsize, self.block, None)
                    lanes = self._from_memory(read, code_of(n.dtype), self.block)
                    self._write(self._across(n, lanes), self._element(n, super()._columns_of(n), j), None)
