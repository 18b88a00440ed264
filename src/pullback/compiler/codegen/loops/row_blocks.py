"""Values that a loop kernel computes once per row; for a block of rows, with a lane for each of them.

Short rows, not much longer than a vector, are transposed: a tile of them is read so that a vector has one element of
each row, and a reduction along the rows needs no reduction of lanes.  Of longer rows each pass runs along one after
the other, and their reductions become the lanes of a vector.  Rows that are longer still are not in blocks.
"""

from __future__ import annotations

from math import prod
from typing import Any

from pullback.compiler.builder import TYPES, Code, Value, code_of, constant, literal, splat
from pullback.compiler.codegen.loops.access import ArrayAccess, get_memory_type, read_vector, split_index, write_vector
from pullback.compiler.codegen.loops.transpose import Tile
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import CAST, FOLD, VIEW
from pullback.compiler.math.functions import emit_scalar
from pullback.compiler.schedule.fuse import ROW, Use, use_argument
from pullback.compiler.schedule.loops import Axis, LoopPlan


def broadcast(v: Value, width: int) -> Value:
    """Return a scalar in all lanes."""
    return Value(v.code, splat(v.code, v.name, TYPES[v.dtype], width), v.dtype, width)


def take_lanes(v: Value, width: int) -> Value:
    """Return the first lanes of a vector whose lanes are all equal."""
    if v.width == width:
        return v
    if width == 1:
        return Value(v.code, v.code.op(f"extractelement {v!r}, i64 0"), v.dtype, 1)
    lanes = f"shufflevector {v!r}, {v.type} poison, <{width} x i32> zeroinitializer"
    return Value(v.code, v.code.op(lanes), v.dtype, width)


def emit_number(code: Code, node: Node, width: int) -> Value:
    """Return the number of a constant node in all lanes."""
    return constant(code, node.data.item(), code_of(node.dtype), width)


def emit_node(code: Code, plan: LoopPlan, n: Node, args: list[Value], width: int) -> Value:
    """Return the value of an elementwise node from those of its arguments."""
    if n.kind is VIEW:
        return args[0]
    if n.kind is CAST:
        return args[0].cast(code_of(n.dtype))
    op, params = n.data
    value = emit_scalar(code, op, params, args, width, code_of(n.dtype))
    return value.round_product() if n.number in plan.fused.shared else value


class RowValues:
    """Emits the values that are computed once per row, for one row or a block of rows."""

    def __init__(self, code: Code, plan: LoopPlan, access: ArrayAccess) -> None:
        self.code, self.plan, self.access = code, plan, access
        self.row = ""  # the index of the row, or of the first row of the block
        self.mask: str | None = None  # the lanes whose rows exist; None if all do
        self.column = ""  # the index along transposed rows
        self.values: dict[int, Value] = {}
        self.loaded: dict[Use, Value] = {}  # for a row
        self.block_values: dict[Any, Any] = {}  # for a block: loads, and where rows begin
        self.cells: dict[int, str] = {}
        self._rows = ""  # the indices of the rows of the block; the last existing one for those that do not exist

    # ---- rows and blocks

    def begin_row(self, row: str, places: dict[int, str]) -> None:
        """Begin one row, whose indices along the axes over rows are ``places``."""
        self.row, self.values, self.loaded, self.access.places = row, {}, {}, places

    def begin_row_of_block(self, places: dict[int, str]) -> None:
        """Begin one row of the block; values of the block stay known."""
        self.loaded, self.access.places = {}, places

    def begin_block(self, row: str) -> None:
        """Begin a block of rows, the first of which is ``row``."""
        code, b = self.code, self.plan.block
        if self.plan.has_adjacent_elements:
            self._begin_adjacent_rows(row)
            return
        self.row, self.values, self.access.places, self.block_values = row, {}, {}, {}
        here = self.access.list_lane_indices(row, b)
        last = splat(code, code.op("sub i64 %hi, 1"), "i64", b)
        self.mask = code.existing = code.op(f"icmp sle <{b} x i64> {here}, {last}")
        self._rows = code.op(f"select <{b} x i1> {self.mask}, <{b} x i64> {here}, <{b} x i64> {last}")

    def _begin_adjacent_rows(self, number: str) -> None:
        """Begin a block of rows whose elements are neighbours; the last block along their axis overlaps another."""
        code, plan, (rows, _) = self.code, self.plan, self.plan.axes
        *outer, last = rows
        before = code.op(f"udiv i64 {number}, {plan.groups}")
        due = code.times(code.op(f"sub i64 {number}, {code.times(before, plan.groups)}"), plan.block)
        first = code.minimum(due, last.length - plan.block)
        self.row = code.add(code.times(before, last.length), first)
        self.values, self.block_values, self.mask = {}, {}, None
        self.access.places = {**(split_index(code, before, outer) if outer else {}), last.members[-1]: first}
        if last.length % plan.block:  # rows that no block before has
            kind = f"<{plan.block} x i64>"
            here, least = self.access.list_lane_indices(first, plan.block), splat(code, due, "i64", plan.block)
            self.mask = code.op(f"icmp sge {kind} {here}, {least}")

    def _row_offsets(self, use: Use) -> str:
        """Return a vector of the offsets at which the rows of the block begin, for a use."""
        plan, (rows, _) = self.plan, self.plan.axes
        key = tuple(use.strides[a.members[-1]] for a in rows)
        if key not in self.block_values:
            code, kind, total = self.code, f"<{plan.block} x i64>", ""
            for axis, step in zip(rows, key, strict=True):
                if step:
                    place = self._split_rows()[axis.members[-1]]
                    place = code.op(f"mul {kind} {place}, {literal(step, 'i8', plan.block)}")
                    total = code.op(f"add {kind} {total}, {place}") if total else place
            self.block_values[key] = total
        return str(self.block_values[key])

    def _split_rows(self) -> dict[int, str]:
        """Return the indices of the rows of the block along each of their axes."""
        if "places" not in self.block_values:
            code, block, (rows, _) = self.code, self.plan.block, self.plan.axes
            wide, whole = f"<{block} x i64>", self._rows
            # In 32 bits where possible: vectors have no 64-bit division, which would be done lane by lane.
            size = 4 if prod(a.length for a in rows) < 2**31 else 8
            kind = f"<{block} x i{8 * size}>"
            rest = code.op(f"trunc {wide} {whole} to {kind}") if size == 4 and len(rows) > 1 else whole
            found = {}
            for axis in reversed(rows[1:]):
                length = literal(axis.length, f"i{size}", block)
                before = code.op(f"udiv {kind} {rest}, {length}")
                place = code.op(f"sub {kind} {rest}, {code.op(f'mul {kind} {before}, {length}')}")
                found[axis.members[-1]] = code.op(f"zext {kind} {place} to {wide}") if size == 4 else place
                rest = before
            is_narrow = size == 4 and len(rows) > 1
            found[rows[0].members[-1]] = code.op(f"zext {kind} {rest} to {wide}") if is_narrow else rest
            self.block_values["places"] = found
        places: dict[int, str] = self.block_values["places"]
        return places

    def _load_lanes(self, use: Use, at: str = "0") -> Value:
        """Load an element of each row of the block, ``at`` elements after the row's beginning."""
        block = self.plan.block
        if self.plan.has_adjacent_elements:
            return self._load_adjacent(use, self.code.add(self.access.find_offset(use), at))
        at = self.code.add(self.plan.find_begin(use), at)
        if self.plan.is_same_for_rows(use):
            return broadcast(self.access.load(use.node, at, None, 1), block)
        if self.plan.has_adjacent_rows(use):
            return self.access.load(use.node, self.code.add(at, self.row), self.mask, block)
        return self.access.gather_at(use.node, at, Value(self.code, self._row_offsets(use), "i8", block), None)

    def _load_adjacent(self, use: Use, at: str) -> Value:
        step = use.strides[self.plan.axes[0][-1].members[-1]]
        if step == 0:
            return broadcast(self.access.load(use.node, at, None, 1), self.plan.block)
        if step == 1:
            return self.access.load(use.node, at, None, self.plan.block)
        return self.access.gather(use.node, at, step, None, self.plan.block)

    # ---- values, a lane for each row of the block

    def emit(self, n: Node) -> Value:
        """Return a node's value for the rows of the block, one in each lane."""
        if n.number not in self.values:
            if n.kind is FOLD:
                value = self._load_cell(n, "0", self.plan.block)
            else:
                args = [self.emit_use(u) for u in self.plan.list_uses(n)]
                value = emit_node(self.code, self.plan, n, args, self.plan.block)
            self.values[n.number] = value
        return self.values[n.number]

    def emit_use(self, use: Use) -> Value:
        """Return the value of a use for the rows of the block, one in each lane."""
        node, block = use.node, self.plan.block
        if is_number(node):
            return emit_number(self.code, node, block)
        if self.plan.kernel.makes(use):
            return self.emit(node)
        if node.number in self.plan.fused.virtual:
            return emit_node(
                self.code, self.plan, node, [self.emit_use(use_argument(use, a)) for a in node.args], block
            )
        if block == 1:
            return self._load_scalar(use)
        if use not in self.block_values:
            self.block_values[use] = self._load_lanes(use)
        loaded: Value = self.block_values[use]
        return loaded

    def _load_scalar(self, use: Use) -> Value:
        if use not in self.loaded:
            self.loaded[use] = self.access.load(use.node, self.access.find_offset(use), None, 1)
        return self.loaded[use]

    def store(self) -> None:
        """Store the results that have one value per row."""
        code, kernel = self.code, self.plan.kernel
        stored = [n for n in kernel.nodes if kernel.levels[n.number] == ROW and n.number in self.plan.fused.stored]
        values = [(n, self.emit(n)) for n in stored]
        if not values:
            return
        if self.mask is None or self.plan.has_adjacent_elements:
            self._store_rows(values, None)
            return
        whole, some, done = code.block("whole"), code.block("some"), code.block("done")
        end = code.add(self.row, str(self.plan.block))
        code.branch(code.op(f"icmp sle i64 {end}, %hi"), whole, some)
        code.begin(whole)
        self._store_rows(values, None)
        code.jump(done)
        code.begin(some)  # masked only for the last block: a masked store is slow, or is done lane by lane
        self._store_rows(values, self.mask)
        code.jump(done)
        code.begin(done)

    def _store_rows(self, values: list[tuple[Node, Value]], mask: str | None) -> None:
        for n, v in values:
            self.access.store(v, n, self.row, mask)

    # ---- rows one after the other: their values are on the stack, from where that of one row is loaded

    def _cell(self, n: Node, lane: str) -> str:
        memory, block = get_memory_type(n.dtype), self.plan.block
        if n.number not in self.cells:
            cell = self.cells[n.number] = self.code.allocate(f"[{block} x {memory}]")
            self.code.entry.append(f"store [{block} x {memory}] zeroinitializer, ptr {cell}")
        return self.access.find_element(n, self.cells[n.number], lane)

    def _load_cell(self, n: Node, lane: str, width: int) -> Value:
        return read_vector(self.code, self._cell(n, lane), n.dtype, width, None)

    def set_reduced(self, n: Node, v: Value) -> None:
        """Set the value of a reduction for the current row."""
        if self.plan.block == 1:
            self.values[n.number] = v
        else:
            write_vector(self.code, v, self._cell(n, self.access.lane), None)

    def keep_for_rows(self, number: int) -> None:
        """Store values of the block that a pass needs row by row on the stack; reductions are there already."""
        plan = self.plan
        used = {
            u.node.number for use, stage in plan.uniform_uses.items() if stage <= number for u in plan.list_leaves(use)
        }
        for n in plan.kernel.nodes:
            if n.number in used and n.kind is not FOLD:
                write_vector(self.code, self.emit(n), self._cell(n, "0"), None)

    def emit_scalar_use(self, use: Use) -> Value:
        """Return the value of a use that is the same along the current row."""
        node = use.node
        if is_number(node):
            return emit_number(self.code, node, 1)
        if self.plan.kernel.makes(use):
            return self.emit(node) if self.plan.block == 1 else self._load_cell(node, self.access.lane, 1)
        if node.number in self.plan.fused.virtual:
            return emit_node(
                self.code, self.plan, node, [self.emit_scalar_use(use_argument(use, a)) for a in node.args], 1
            )
        return self._load_scalar(use)

    # ---- transposed rows

    def read_tiles(self, inner: Axis) -> None:
        """Read the tiles of a block of rows, transposed, into scratch memory."""
        for key in self.plan.scratch.tiles:
            if isinstance(key, Use):
                tile = Tile(get_memory_type(key.node.dtype), key.node.dtype.itemsize, self.plan.block, inner.length)
                tile.step = key.strides[inner.members[-1]]
                self._call_tile(tile.emit_reader(self.code), inner.length, key, key)

    def write_tiles(self, inner: Axis) -> None:
        """Write the tiles of results from scratch memory into the rows of the block."""
        for n in self.plan.stored:
            if n.number in self.plan.scratch.tiles:
                tile = Tile(get_memory_type(n.dtype), n.dtype.itemsize, self.plan.block, inner.length)
                use = Use(n, 0, self.plan.kernel.find_strides(n))
                self._call_tile(tile.emit_writer(self.code), inner.length, use, n.number)

    def _call_tile(self, function: str, length: int, use: Use, key: Any) -> None:
        code, offsets = self.code, self._row_offsets(use)
        if ("cell", offsets) not in self.block_values:
            addresses = self.block_values["cell", offsets] = code.allocate(f"[{self.plan.block} x i64]")
            code.line(f"store <{self.plan.block} x i64> {offsets}, ptr {addresses}, align 64")
        array = self.access.find_element(use.node, self.access.get_address(use.node), self.plan.find_begin(use))
        tile = self.access.find_tile_place(key, use.node, "0")
        cell = self.block_values["cell", offsets]
        code.line(f"call void @{function}(ptr {array}, ptr {cell}, ptr {tile}, i64 {length})")

    def load_transposed(self, use: Use, index: str) -> Value:
        """Load a vector that has an element of each row of the block."""
        key = use if use in self.plan.scratch.tiles else use.node.number
        if key not in self.plan.scratch.tiles:
            step = use.strides[self.plan.axes[1][-1].members[-1]]
            return self._load_lanes(use, self.code.times(self.column, step))
        pointer = self.access.find_tile_place(key, use.node, index)
        return read_vector(self.code, pointer, use.node.dtype, self.plan.block, None)
