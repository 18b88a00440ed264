"""The body of a loop kernel's innermost loop: what one pass computes, stores and reduces for one vector."""

from __future__ import annotations

from functools import reduce
from hashlib import sha256
from itertools import pairwise
from math import prod
from typing import NamedTuple

from pullback.compiler.builder import Code, Value, code_of, literal, splat, vector
from pullback.compiler.codegen.loops.access import (
    MEMORY_TYPES,
    ArrayAccess,
    element_of,
    memory_type,
    read_vector,
    write_vector,
)
from pullback.compiler.codegen.loops.reductions import Reductions
from pullback.compiler.codegen.loops.row_blocks import RowValues, broadcast, emit_node, emit_number
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import FOLD, PIECES
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.schedule.fuse import READS, Use, locate_pieces, locate_rows, use_argument
from pullback.compiler.schedule.loops import LoopPlan, Segment

__all__ = ["Lanes", "Parts", "VectorBody"]

MIN_TABLE_PIECES = 5  # pieces of an array from which on their addresses are looked up in a table


class Parts(NamedTuple):
    """The emitters that the functions of one kernel share."""

    code: Code
    plan: LoopPlan
    access: ArrayAccess
    reductions: Reductions
    rows: RowValues


class Lanes(NamedTuple):
    """The lanes of one vector along an axis."""

    start: str  # the index of the first lane
    width: int
    axis: int | None = None  # the axis of the kernel that they are along
    mask: str | None = None  # the lanes that are stored and reduced; None for all
    overlaps: bool = False  # whether the other lanes are elements, too, which the vector before has stored and reduced
    blends: bool = False  # whether that vector may have overwritten their operands, so that their results must be kept
    segment: Segment = Segment(0, 1, False, 0)  # the segment of the axis that they are in
    kept: str = ""  # the index of their accumulators and kept values, if it is not ``start``


class Piece(NamedTuple):
    """An argument of a node of pieces (a concatenation or padding) in which the current vector may lie."""

    use: Use
    bounds: list[tuple[int, int]]  # first and last index along each axis of the kernel
    conditions: list[str]  # under which the vector lies in it, as ``i1`` values; empty if it always does


class VectorBody:
    """Emits what a pass does with the lanes of one vector."""

    def __init__(self, parts: Parts, number: int, hoisted: dict[Use, Value], lanes: Lanes) -> None:
        self.parts = parts
        self.code, self.plan, self.access, self.reductions, self.rows = parts
        self.number, self.hoisted = number, hoisted  # of the pass; the values that are the same for all its vectors
        self.lanes, self.index, self.width, self.axis = lanes, lanes.start, lanes.width, lanes.axis
        self.mask = None if lanes.overlaps else lanes.mask  # the lanes that are loaded and stored
        self.values: dict[Use, Value] = {}
        self.given: dict[Use, Value] = {}  # those of the values that are loaded or hoisted, not computed here
        self.has_stored = False  # whether a result was stored, perhaps over what values were loaded from

    def emit(self) -> None:
        """Emit everything that is stored or reduced in the pass.

        Results that depend on a function with a slow path are stored last, after one branch for all such functions
        to the code that computes the rare lanes again.
        """
        plan, number = self.plan, self.number
        if 0 < number == plan.passes - 1 and self.axis is not None and self.lanes.mask is None:
            self.access.prefetch_next_rows(self.index, self.width, self.axis)
        waiting: dict[Node, Use] = {}
        with self.code.collect_rare() as rare:
            for n in plan.results[number]:
                use = plan.uses_of(n)[0] if n.kind is FOLD else Use(n, 0, plan.kernel.natural(n))
                v = self.value(use)
                if rare and not self.code.flags_rare:
                    waiting[n] = use
                else:
                    self._finish(n, v)
        if rare and self.code.flags_rare:
            MathBuilder(self.code).flag_rare(reduce(Value.__or__, rare), self.lanes.mask)
        elif rare:
            uses = list(dict.fromkeys(waiting.values()))
            made = dict(zip(uses, self._redo_rare_lanes(rare, uses), strict=True))
            for n, use in waiting.items():
                self._finish(n, made[use])

    def _finish(self, n: Node, v: Value) -> None:
        """Add a vector to a reduction, or store it."""
        code, plan, access = self.code, self.plan, self.access
        if n.kind is FOLD:
            self.reductions.add(n, v, self.lanes.mask, self.lanes.kept or self.index)
            return
        self.has_stored = True
        if n in plan.scratch_nodes:
            write_vector(code, v, self._find_kept_place(n), None)
        if n.number in plan.fused.stored and plan.is_transposed:
            write_vector(code, v, access.tile_place(n.number, n, self.index), None)
        elif n.number in plan.fused.stored:
            at = access.place(Use(n, 0, plan.kernel.natural(n)), self.index, self.axis)
            pointer = access.element(n, access.address(n), at)
            if self.lanes.blends and self.lanes.mask is not None:
                old = read_vector(code, pointer, n.dtype, v.width, None)
                v = v.like(code.op(f"select <{v.width} x i1> {self.lanes.mask}, {v!r}, {old!r}"))
            write_vector(code, v, pointer, self.mask)

    def _find_kept_place(self, n: Node) -> str:
        """Return the address at which a vector is kept for later passes; the last one is after all others."""
        return self.access.find_kept_place(n, self.lanes.kept or self.index)

    def _redo_rare_lanes(self, rare: list[Value], uses: list[Use]) -> list[Value]:
        """Return values whose rare lanes, if there are any, are computed again with slow paths by a function."""
        code, fast = self.code, [self.value(use) for use in uses]
        math, is_rare = MathBuilder(code), reduce(Value.__or__, rare)
        here, cold, on = code.block("usual"), code.block("rare"), code.block("on")
        code.jump(here)
        code.begin(here)
        code.branch(math.any_lane(is_rare), cold, on, unlikely=True)
        code.begin(cold)
        given = [(use, v) for use, v in self.given.items() if v.number is None]
        cells = [code.allocate(f"[{v.width} x {memory_type(v.dtype)}]") for v in (*(v for _, v in given), *fast)]
        for (use, v), cell in zip(given, cells, strict=False):
            write_vector(code, self._load_again(use, v), cell, None)
        function = self._emit_slow_function([use for use, _ in given], uses)
        code.line(f"call void @{function}({', '.join(f'ptr {cell}' for cell in cells)}, i64 {self.width})")
        slow = [
            read_vector(code, cell, use.node.dtype, self.width, None)
            for use, cell in zip(uses, cells[len(given) :], strict=True)
        ]
        chosen = [math.select(is_rare, s, f) for s, f in zip(slow, fast, strict=True)]
        code.jump(on)
        code.begin(on)
        return [
            f.like(code.op(f"phi {f.type} [{f.name}, %{here}], [{c.name}, %{cold}]"))
            for f, c in zip(fast, chosen, strict=True)
        ]

    def _load_again(self, use: Use, v: Value) -> Value:
        """Return a value for the slow function: from memory if possible, so that no register must hold it."""
        is_loaded = use not in self.hoisted and not self.plan.kernel.makes(use)
        return self._load(use) if is_loaded and not self.has_stored else v

    def _emit_slow_function(self, given: list[Use], uses: list[Use]) -> str:
        """Emit the function that computes ``uses`` from ``given`` with slow paths, and return its name."""
        code, width = Code(self.code.has_fma), min(self.width, self.plan.lanes)
        with code.loop("0", "%lanes", width) as i:
            body = VectorBody(self.parts._replace(code=code), self.number, {}, Lanes(i, width))
            for k, use in enumerate(given):
                at = element_of(code, use.node, f"%p{k}", i)
                body.values[use] = read_vector(code, at, use.node.dtype, width, None)
            made = [body.value(use) for use in uses]
            for k, (use, v) in enumerate(zip(uses, made, strict=True), len(given)):
                write_vector(code, v, element_of(code, use.node, f"%p{k}", i), None)
        params = ", ".join(f"ptr noalias %p{k}" for k in range(len(given) + len(uses)))
        head = f"({params}, i64 %lanes) noinline cold {{"
        text = "\n".join([head, "entry:", *code.entry, *code.lines, "ret void", "}"])
        name = f"slow_{sha256(text.encode()).hexdigest()[:16]}"
        functions = {**code.helpers, name: f"define internal void @{name}{text}"}
        self.code.add_helper(name, lambda: (functions, code.declared))
        return name

    def value(self, use: Use) -> Value:
        """Return the vector of a use; it is computed once."""
        if use not in self.values:
            self.values[use] = self._compute(use)
        return self.values[use]

    def _compute(self, use: Use) -> Value:
        node, plan = use.node, self.plan
        if is_number(node):
            return emit_number(self.code, node, self.width)
        if use not in self.hoisted and plan.kernel.makes(use) and not self._is_kept(node) and node.kind not in READS:
            return emit_node(self.code, plan, node, [self.value(u) for u in plan.uses_of(node)], self.width)
        if use not in self.hoisted and not plan.kernel.makes(use) and node.number in plan.fused.virtual:
            return emit_node(self.code, plan, node, [self.value(use_argument(use, a)) for a in node.args], self.width)
        self.given[use] = self.hoisted[use] if use in self.hoisted else self._read(use)
        return self.given[use]

    def _is_kept(self, node: Node) -> bool:
        """Return whether an earlier pass has stored a value."""
        plan = self.plan
        is_known = plan.stage[node.number] < self.number
        return is_known and (node.number in plan.scratch.kept or node.number in plan.fused.stored)

    def _read(self, use: Use) -> Value:
        """Return the vector of a use that is in memory, or that its node reads from memory (pieces, rows)."""
        node, plan = use.node, self.plan
        if not plan.kernel.makes(use):
            return self._load(use)
        if self._is_kept(node) and node.number in plan.scratch.kept:
            return read_vector(self.code, self._find_kept_place(node), node.dtype, self.width, None)
        if self._is_kept(node):
            return self._load(use)
        return self._join_pieces(node) if node.kind is PIECES else self._take_rows(node)

    def _load(self, use: Use) -> Value:
        if self.plan.is_transposed:
            return self.rows.load_transposed(use, self.index)
        return self.access.load_use(use, self.index, self.mask, self.width, self.axis)

    # ---- pieces

    def _join_pieces(self, n: Node) -> Value:
        """Return the vector of a node of pieces: elements of the piece in which it lies, else the fill value.

        All lanes lie in the same piece, as vectors do not cross the bounds of segments.  Which piece that is along the
        innermost axis is known when code is emitted, along other axes only when it runs.  Nothing is loaded from
        outside of an array.
        """
        pieces: list[Piece] = []
        for use, bounds in zip(locate_pieces(n), self.plan.piece_bounds[n.number], strict=True):
            conditions = self._compare_with_bounds(bounds)
            if conditions is not None:
                pieces = [*pieces, Piece(use, bounds, conditions)] if conditions else [Piece(use, bounds, [])]
        if not pieces:
            return self._fill(n)
        if self._find_common_step(pieces) is not None:
            pointer = self._find_in_table(n, pieces) or self._select_address(n, pieces)
            return self._read_from(n, pointer, pieces)
        usual, others = self._separate_by_steps(pieces)
        found = self._find_in_table(n, usual) if others else None
        if found is None:
            return self._select_value(pieces, self._fill(n))
        return self._select_value(others, self._read_from(n, found, usual))

    def _find_common_step(self, pieces: list[Piece]) -> int | None:
        """Return the stride of the lanes if it is the same in all pieces, and 0 or 1; else None."""
        steps = {0 if self.axis is None else piece.use.strides[self.axis] for piece in pieces}
        is_stored = not any(self.plan.kernel.makes(piece.use) for piece in pieces)
        return min(steps) if is_stored and len(steps) == 1 and steps <= {0, 1} else None

    def _separate_by_steps(self, pieces: list[Piece]) -> tuple[list[Piece], list[Piece]]:
        """Return the pieces that have the most frequent strides, and the others; two empty lists if any overlap."""
        groups: dict[tuple[int, ...] | None, list[Piece]] = {}
        for piece in pieces:
            key = None if self._find_common_step([piece]) is None else piece.use.strides
            groups.setdefault(key, []).append(piece)
        others = groups.pop(None, [])
        usual = max(groups.values(), key=len, default=[])
        bounds = [dict(self._list_bounds(piece.bounds)) for piece in pieces]
        axes = {axis for found in bounds for axis in found}
        ranges = sorted(next(iter(found.values())) for found in bounds if found)
        is_apart = len(axes) == 1 and all(a[1] <= b[0] for a, b in pairwise(ranges))
        if not is_apart or len(ranges) < len(pieces) or len(usual) < MIN_TABLE_PIECES:
            return [], []
        return usual, others + [piece for group in groups.values() if group is not usual for piece in group]

    def _fill(self, n: Node) -> Value:
        dtype = code_of(n.dtype)
        return Value(self.code, literal(n.data.fill, dtype, self.width), dtype, self.width)

    def _compare_with_bounds(self, bounds: list[tuple[int, int]]) -> list[str] | None:
        """Return the conditions under which the vector is within bounds along every axis; None if it never is."""
        code, found = self.code, []
        for axis, (first, last) in self._list_bounds(bounds):
            if axis == self.axis and not self.lanes.segment.by_element:
                start, stop = self.lanes.segment[:2]
                if stop <= first or start >= last:
                    return None
            else:
                moved = code.op(f"sub i64 {self._find_place(axis)}, {first}")
                found.append(code.op(f"icmp ult i64 {moved}, {last - first}"))
        return found

    def _list_bounds(self, bounds: list[tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
        """Return the axes of the loops that a piece does not fill, each with the bounds of the piece along it."""
        rows, columns = self.plan.axes
        found = []
        for a in (*rows, *columns):
            first, last = bounds[a.members[0]]  # a piece fills the other members of a merged axis
            within = a.length // self.plan.kernel.axes[a.members[0]]
            if (first * within, last * within) != (0, a.length):
                found.append((a.members[-1], (first * within, last * within)))
        return found

    def _find_place(self, axis: int) -> str:
        return self.index if axis == self.axis else self.access.places[axis]

    def _both(self, conditions: list[str]) -> str:
        return reduce(lambda a, b: self.code.op(f"and i1 {a}, {b}"), conditions)

    def _address(self, use: Use) -> str:
        at = self.access.place(use, self.index, self.axis)
        return self.access.element(use.node, self.access.address(use.node), at)

    def _select_address(self, n: Node, pieces: list[Piece]) -> str:
        """Return the address of the vector in the piece in which it lies, else that of a vector of fill values."""
        pointer = self._address(pieces[0].use) if not pieces[0].conditions else self._fill_cell(n)
        for piece in pieces if pieces[0].conditions else pieces[1:]:
            chosen, address = self._both(piece.conditions), self._address(piece.use)
            pointer = self.code.op(f"select i1 {chosen}, ptr {address}, ptr {pointer}")
        return pointer

    def _fill_cell(self, n: Node) -> str:
        """Return the address of a vector of fill values on the stack."""
        code, key = self.code, ("filling", n.number, self.width)
        if key not in self.access.cells:
            dtype = code_of(n.dtype)
            memory = MEMORY_TYPES[dtype]
            cell = self.access.cells[key] = code.allocate(f"[{self.width} x {memory}]")
            number = literal(n.data.fill, "u1" if dtype == "b1" else dtype, self.width)
            code.entry.append(f"store {vector(memory, self.width)} {number}, ptr {cell}")
        return self.access.cells[key]

    def _find_in_table(self, n: Node, pieces: list[Piece]) -> str | None:
        """Return the address of the vector by a table of addresses; None unless there are many pieces of one shape."""
        if len(pieces) < MIN_TABLE_PIECES:
            return None
        bounds = [self._list_bounds(piece.bounds) for piece in pieces]
        known = set() if self.lanes.segment.by_element else {self.axis}
        axes = {axis for found in bounds for axis, _ in found} - known
        if len(axes) > 1 or not pieces[0].conditions or len({piece.use.strides for piece in pieces}) > 1:
            return None
        (axis,) = axes
        firsts, length = _read_grid([dict(found)[axis] for found in bounds])
        return self._load_address(n, pieces, axis, firsts, length) if length else None

    def _load_address(self, n: Node, pieces: list[Piece], axis: int, firsts: list[int], length: int) -> str:
        """Return the address of the vector by a table of pieces, of one length, that begin at ``firsts`` on an axis."""
        code, access, place, use = self.code, self.access, self._find_place(axis), pieces[0].use
        starts = {first // length: piece.use for first, piece in zip(firsts, pieces, strict=True)}
        rows, columns = self.plan.axes
        count = next(a.length for a in (*rows, *columns) if a.members[-1] == axis) // length
        table = self._fill_table(n, [starts.get(i) for i in range(count)], length * use.strides[axis])
        number = code.op(f"udiv i64 {place}, {length}")
        start = code.op(f"load ptr, ptr {code.op(f'getelementptr ptr, ptr {table}, i64 {number}')}")
        at = code.times(code.op(f"sub i64 {place}, {code.times(number, length)}"), use.strides[axis])
        for i in {*access.places, *(() if self.axis is None else (self.axis,))} - {axis}:
            at = code.add(at, code.times(self._find_place(i), use.strides[i]))
        pointer = access.element(n, start, at)
        if len(pieces) < count:
            missing = code.op(f"icmp eq ptr {start}, null")
            pointer = code.op(f"select i1 {missing}, ptr {self._fill_cell(n)}, ptr {pointer}")
        return pointer

    def _fill_table(self, n: Node, uses: list[Use | None], step: int) -> str:
        """Return the address of a table, on the stack, of the addresses of pieces; null where there is no piece."""
        code, access, key = self.code, self.access, ("table", n.number, tuple(uses))
        if key not in access.cells:
            table = access.cells[key] = code.allocate(f"[{len(uses)} x ptr]")
            for i, use in enumerate(uses):
                slot, address = f"%{code.fresh('slot')}", "null"
                if use is not None:
                    address, at = f"%{code.fresh('piece')}", int(self.plan.begin(use)) + i * step
                    whole = f"ptr {access.address(use.node)}"
                    code.entry.append(f"{address} = getelementptr {memory_type(n.dtype)}, {whole}, i64 {at}")
                code.entry.append(f"{slot} = getelementptr ptr, ptr {table}, i64 {i}")
                code.entry.append(f"store ptr {address}, ptr {slot}")
        return access.cells[key]

    def _read_from(self, n: Node, pointer: str, pieces: list[Piece]) -> Value:
        width = self.width if self._find_common_step(pieces) == 1 else 1
        v = read_vector(self.code, pointer, n.dtype, width, None)
        return v if width == self.width else broadcast(v, self.width)

    def _select_value(self, pieces: list[Piece], v: Value) -> Value:
        """Return the vector of the piece in which it lies, and ``v`` if it lies in none; every piece is loaded."""
        code, width = self.code, self.width
        for piece in pieces:
            if not piece.conditions:
                v = self._read_piece(piece.use)
                continue
            chosen = self._both(piece.conditions)
            got = self.value(piece.use) if self.plan.kernel.makes(piece.use) else self._load_nearest(piece, chosen)
            lanes = splat(code, chosen, "i1", width)
            v = v.like(code.op(f"select {vector('i1', width)} {lanes}, {got!r}, {v!r}"))
        return v

    def _load_nearest(self, piece: Piece, chosen: str) -> Value:
        """Load the vector from a piece if it is ``chosen``, else one from its beginning, which is not used."""
        code, places, index = self.code, self.access.places, self.index
        nearest = dict(self._list_bounds(piece.bounds))
        self.access.places = {
            i: code.op(f"select i1 {chosen}, i64 {place}, i64 {nearest[i][0]}") if i in nearest else place
            for i, place in places.items()
        }
        if self.axis in nearest:  # the segment is computed element by element
            self.index = code.op(f"select i1 {chosen}, i64 {index}, i64 {nearest[self.axis][0]}")
        got = self._load(piece.use)
        self.access.places, self.index = places, index
        return got

    def _read_piece(self, use: Use) -> Value:
        return self.value(use) if self.plan.kernel.makes(use) else self._load(use)

    # ---- rows at positions

    def _take_rows(self, n: Node) -> Value:
        """Return the vector of a node that takes rows at positions: from one row, or from a row for each lane."""
        code, access, axis = self.code, self.access, self.axis
        at, use = locate_rows(n)
        length, is_made = prod(n.data), self.plan.kernel.makes(at)
        if axis is None or at.strides[axis] == 0:
            row = (self.value(at) if is_made else self.rows.emit_scalar_use(at)).name
            place = code.add(access.place(use, self.index, axis), code.times(row, length))
            step = 1 if axis is None else use.strides[axis]
            if step == 1 or self.width == 1:
                return access.load(use.node, place, self.mask, self.width)
            return access.gather(use.node, place, step, self.mask, self.width)
        rows = self.value(at) if is_made else access.load_use(at, self.index, self.mask, self.width, axis)
        first = access.place(use, self.index, axis)
        # In place, the vector before has overwritten the positions of lanes that overlap it with results.
        mask = self.lanes.mask if self.lanes.blends else self.mask
        return access.gather_at(use.node, first, rows * length if length != 1 else rows, mask)


def _read_grid(ranges: list[tuple[int, int]]) -> tuple[list[int], int]:
    """Return where ranges begin, and their length if they are different cells of one regular grid, else 0.

    >>> _read_grid([(4, 8), (0, 4)]), _read_grid([(0, 4), (6, 10)])[1]
    (([4, 0], 4), 0)
    """
    firsts = [first for first, _ in ranges]
    length = ranges[0][1] - ranges[0][0]
    is_grid = all(last - first == length and first % length == 0 for first, last in ranges)
    return firsts, length if is_grid and len({*firsts}) == len(firsts) else 0
