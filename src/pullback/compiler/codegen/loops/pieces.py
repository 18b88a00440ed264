"""Vectors of arrays that are made of pieces: concatenations and paddings, which a loop kernel reads without a copy.

A kernel knows when it is emitted in which segment of the innermost axis a vector lies, and so which pieces it may lie
in.  Which of them it is along other axes is known when it runs: the address of the vector, or its value, is selected
by conditions, or the address is looked up in a table.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pullback.compiler.builder import Value, code_of, literal, splat, vector
from pullback.compiler.codegen.loops.access import MEMORY_TYPES, get_memory_type, read_vector
from pullback.compiler.codegen.loops.row_blocks import broadcast
from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.fuse import Use, locate_pieces

if TYPE_CHECKING:
    from pullback.compiler.codegen.loops.vector_body import VectorBody

MIN_TABLE_PIECES = 5  # pieces of an array from which on their addresses are looked up in a table


class ReadPiece(NamedTuple):
    """An argument of a node of pieces (a concatenation or padding) in which the current vector may lie."""

    use: Use
    bounds: list[tuple[int, int]]  # first index and end along each axis of the kernel
    conditions: list[str]  # under which the vector lies in it, as ``i1`` values; empty if it always does


class PieceReader:
    """Emits the current vector of nodes that are made of pieces."""

    def __init__(self, body: VectorBody) -> None:
        self.body, self.code, self.plan, self.access = body, body.code, body.plan, body.access
        self.lanes, self.width, self.axis = body.lanes, body.width, body.axis

    def read(self, n: Node) -> Value:
        """Return the vector of a node of pieces: elements of the piece in which it lies, else the fill value.

        All lanes lie in the same piece, as vectors do not cross the bounds of segments.  Which piece that is along the
        innermost axis is known when code is emitted, along other axes only when it runs.  Nothing is loaded from
        outside an array.
        """
        pieces: list[ReadPiece] = []
        for use, bounds in zip(locate_pieces(n), self.plan.piece_bounds[n.number], strict=True):
            conditions = self._compare_with_bounds(bounds)
            if conditions:
                pieces.append(ReadPiece(use, bounds, conditions))
            elif conditions is not None:  # it covers all pieces before it
                pieces = [ReadPiece(use, bounds, [])]
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

    def _find_common_step(self, pieces: list[ReadPiece]) -> int | None:
        """Return the stride of the lanes if it is the same in all pieces, and 0 or 1; else None."""
        steps = {0 if self.axis is None else piece.use.strides[self.axis] for piece in pieces}
        is_stored = not any(self.plan.kernel.makes(piece.use) for piece in pieces)
        return min(steps) if is_stored and len(steps) == 1 and steps <= {0, 1} else None

    def _separate_by_steps(self, pieces: list[ReadPiece]) -> tuple[list[ReadPiece], list[ReadPiece]]:
        """Return the pieces that have the most frequent strides, and the others; two empty lists if any overlap."""
        groups: dict[tuple[int, ...] | None, list[ReadPiece]] = {}
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
        return self.body.index if axis == self.axis else self.access.places[axis]

    def _both(self, conditions: list[str]) -> str:
        return reduce(lambda a, b: self.code.op(f"and i1 {a}, {b}"), conditions)

    def _address(self, use: Use) -> str:
        at = self.access.find_place(use, self.body.index, self.axis)
        return self.access.find_element(use.node, self.access.get_address(use.node), at)

    def _select_address(self, n: Node, pieces: list[ReadPiece]) -> str:
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

    def _find_in_table(self, n: Node, pieces: list[ReadPiece]) -> str | None:
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

    def _load_address(self, n: Node, pieces: list[ReadPiece], axis: int, firsts: list[int], length: int) -> str:
        """Return the address of the vector by a table of pieces, of one length, that begin at ``firsts`` on an axis."""
        code, access, place, use = self.code, self.access, self._find_place(axis), pieces[0].use
        starts = {first // length: piece.use for first, piece in zip(firsts, pieces, strict=True)}
        rows, columns = self.plan.axes
        whole = next(a.length for a in (*rows, *columns) if a.members[-1] == axis)
        count = -(-whole // length)  # what is left at the end has a row too
        table = self._fill_table(n, [starts.get(i) for i in range(count)], length * use.strides[axis])
        number = code.op(f"udiv i64 {place}, {length}")
        start = code.load("ptr", table, number)
        at = code.times(code.op(f"sub i64 {place}, {code.times(number, length)}"), use.strides[axis])
        for i in {*access.places, *(() if self.axis is None else (self.axis,))} - {axis}:
            at = code.add(at, code.times(self._find_place(i), use.strides[i]))
        pointer = access.find_element(n, start, at)
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
                    address, at = f"%{code.fresh('piece')}", int(self.plan.find_begin(use)) + i * step
                    whole = f"ptr {access.get_address(use.node)}"
                    code.entry.append(f"{address} = getelementptr {get_memory_type(n.dtype)}, {whole}, i64 {at}")
                code.entry.append(f"{slot} = getelementptr ptr, ptr {table}, i64 {i}")
                code.entry.append(f"store ptr {address}, ptr {slot}")
        return access.cells[key]

    def _read_from(self, n: Node, pointer: str, pieces: list[ReadPiece]) -> Value:
        width = self.width if self._find_common_step(pieces) == 1 else 1
        v = read_vector(self.code, pointer, n.dtype, width, None)
        return v if width == self.width else broadcast(v, self.width)

    def _select_value(self, pieces: list[ReadPiece], v: Value) -> Value:
        """Return the vector of the piece in which it lies, and ``v`` if it lies in none; every piece is loaded."""
        code, width = self.code, self.width
        for piece in pieces:
            if not piece.conditions:
                v = self._read_piece(piece.use)
                continue
            chosen = self._both(piece.conditions)
            got = self.body.value(piece.use) if self.plan.kernel.makes(piece.use) else self._load_nearest(piece, chosen)
            lanes = splat(code, chosen, "i1", width)
            v = v.like(code.op(f"select {vector('i1', width)} {lanes}, {got!r}, {v!r}"))
        return v

    def _load_nearest(self, piece: ReadPiece, chosen: str) -> Value:
        """Load the vector from a piece if it is ``chosen``, else one from its beginning, which is not used."""
        code, places, index = self.code, self.access.places, self.body.index
        nearest = dict(self._list_bounds(piece.bounds))
        self.access.places = {
            i: code.op(f"select i1 {chosen}, i64 {place}, i64 {nearest[i][0]}") if i in nearest else place
            for i, place in places.items()
        }
        if self.axis in nearest:  # the segment is computed element by element
            self.body.index = code.op(f"select i1 {chosen}, i64 {index}, i64 {nearest[self.axis][0]}")
        got = self.body.load(piece.use)
        self.access.places, self.body.index = places, index
        return got

    def _read_piece(self, use: Use) -> Value:
        return self.body.value(use) if self.plan.kernel.makes(use) else self.body.load(use)


def _read_grid(ranges: list[tuple[int, int]]) -> tuple[list[int], int]:
    """Return where ranges begin, and their length if they are different cells of one regular grid, else 0.

    >>> _read_grid([(4, 8), (0, 4)]), _read_grid([(0, 4), (6, 10)])[1]
    (([4, 0], 4), 0)
    """
    firsts = [first for first, _ in ranges]
    length = ranges[0][1] - ranges[0][0]
    is_grid = all(last - first == length and first % length == 0 for first, last in ranges)
    return firsts, length if is_grid and len({*firsts}) == len(firsts) else 0
