"""Reading and writing the arrays of a kernel: whole vectors, some of their lanes, or lanes from here and there."""

from __future__ import annotations

from math import prod

from pullback.compiler.builder import TYPES, Code, Value, code_of, splat, vector
from pullback.compiler.ir.graph import Node, contiguous
from pullback.compiler.schedule.fuse import Fused, Kernel, Use
from pullback.compiler.schedule.loops import Axis, Plan
from pullback.compiler.target import Target

__all__ = ["Access"]

AHEAD = 1 / 8  # of the second cache that is brought before it is used; more would drive out each other


def idle(memory: str, width: int) -> str:
    """What lanes hold that are not loaded: 1, of which every function has its usual value."""
    return f"splat ({memory} 1.0)" if memory in ("float", "double") and width > 1 else "zeroinitializer"


class Access(Plan):
    """The text of a kernel, as far as it touches memory."""

    def __init__(self, kernel: Kernel, fused: Fused, target: Target) -> None:
        super().__init__(kernel, fused, target)
        self.code = Code()
        self.arrays: list[Node] = []
        self.places_of_row: dict[int, str] = {}
        self.scratch_at: dict[int, int] = {}
        self.lane = "0"  # of the row, among those whose values are kept at the same time

    def address(self, node: Node) -> str:
        if node not in self.arrays:
            self.arrays.append(node)
        return f"%a{self.arrays.index(node)}"

    def _kept_as(self, n: Node) -> str:
        """The type of an element in memory."""
        return "i8" if n.dtype == bool else TYPES[code_of(n.dtype)]

    def offset(self, use: Use, places: dict[int, str]) -> str:
        """Where the elements of a use begin, given the place along each axis of the kernel that is known."""
        at = self.begin(use)
        for i, place in places.items():
            at = self.code.add(at, self.code.times(place, use.steps[i]))
        return at

    def places(self, index: str, axes: list[Axis]) -> dict[int, str]:
        """The place along each axis of one index over several; a joined axis goes by the steps of its last member."""
        code, found, rest = self.code, {}, index
        for axis in reversed(axes):
            if axis is axes[0]:
                found[axis.members[-1]] = rest
            else:
                found[axis.members[-1]] = code.op(f"urem i64 {rest}, {axis.length}")
                rest = code.op(f"udiv i64 {rest}, {axis.length}")
        return found

    def _place(self, use: Use, index: str, axis: int | None) -> str:
        at = self.offset(use, self.places_of_row)
        return at if axis is None else self.code.add(at, self.code.times(index, use.steps[axis]))

    def _lane_places(self, index: str, width: int) -> str:
        if width == 1:
            return index
        lanes = ", ".join(f"i64 {i}" for i in range(width))
        return self.code.op(f"add <{width} x i64> {splat(self.code, index, 'i64', width)}, <{lanes}>")

    def _vector_load(self, use: Use, index: str, mask: str | None, width: int, axis: int | None) -> Value:
        step = 1 if axis is None else use.steps[axis]
        at = self._place(use, index, axis)
        if step == 1 or width == 1:
            return self._load(use.node, at, mask, width)
        return self._gather(use.node, at, step, mask, width)

    def _guarded_load(self, use: Use, index: str, inside: str, width: int, axis: int | None) -> Value:
        """A load where ``inside`` says so; elsewhere nothing is read."""
        at = self._place(use, index, axis)
        if width == 1:
            return self._load(use.node, self.code.op(f"select i1 {inside}, i64 {at}, i64 0"), None, 1)
        step = 0 if axis is None else use.steps[axis]
        return self._load(use.node, at, inside, width) if step == 1 else self._gather(use.node, at, step, inside, width)

    def _fetch_ahead(self, index: str, width: int, axis: int) -> None:
        """Have the memory bring what the next rows load, where these ones only use what is near already."""
        rows, columns = self.axes
        each = prod(a.length for a in columns) * sum(u.node.dtype.itemsize for u in self.loads if u.steps[axis])
        for use in self.loads if self.block * each <= AHEAD * self.target.second_cache else ():
            step = use.steps[rows[-1].members[-1]] if rows else 0
            if step and use.steps[axis] == 1 and width * use.node.dtype.itemsize >= 32:
                at = self.code.add(self._place(use, index, axis), str(self.block * step))
                pointer = self.code.op(
                    f"getelementptr {self._kept_as(use.node)}, ptr {self.address(use.node)}, i64 {at}"
                )
                self.code.fetch(pointer)

    def _load(self, node: Node, at: str, mask: str | None, width: int) -> Value:
        dtype = code_of(node.dtype)
        memory = self._kept_as(node)
        pointer = self.code.op(f"getelementptr {memory}, ptr {self.address(node)}, i64 {at}")
        return self._from_memory(self._read(pointer, memory, node.dtype.itemsize, mask, width), dtype, width)

    def _read(self, pointer: str, memory: str, size: int, mask: str | None, width: int) -> str:
        return self.code.read(pointer, memory, size, width, mask, idle(memory, width))

    def _from_memory(self, name: str, dtype: str, width: int) -> Value:
        if dtype == "b1":
            name = self.code.op(f"trunc {vector('i8', width)} {name} to {vector('i1', width)}")
        return Value(self.code, name, dtype, width)

    def _gather(self, node: Node, at: str, step: int, mask: str | None, width: int) -> Value:
        """Elements that lie ``step`` apart."""
        steps = f"<{', '.join(f'i64 {i * step}' for i in range(width))}>"
        return self._gather_at(node, at, Value(self.code, steps, "i8", width), mask)

    def _gather_at(self, node: Node, at: str, places: Value, mask: str | None) -> Value:
        """An element for each lane, at its own place after ``at``."""
        dtype, memory, width = code_of(node.dtype), self._kept_as(node), places.width
        code = self.code
        base = code.op(f"getelementptr {memory}, ptr {self.address(node)}, i64 {at}")
        if width == 1:
            pointer = code.op(f"getelementptr {memory}, ptr {base}, i64 {places.name}")
            return self._from_memory(self._read(pointer, memory, node.dtype.itemsize, None, 1), dtype, 1)
        pointers = code.op(f"getelementptr {memory}, ptr {base}, <{width} x i64> {places.name}")
        got = code.gather(pointers, memory, node.dtype.itemsize, width, mask, idle(memory, width))
        return self._from_memory(got, dtype, width)

    def _store(self, v: Value, node: Node, at: str, mask: str | None) -> None:
        memory = "i8" if v.dtype == "b1" else TYPES[v.dtype]
        pointer = self.code.op(f"getelementptr {memory}, ptr {self.address(node)}, i64 {at}")
        self._write(v, pointer, mask)

    def _write(self, v: Value, pointer: str, mask: str | None) -> None:
        name, memory = v.name, TYPES[v.dtype]
        if v.dtype == "b1":
            name, memory = self.code.op(f"zext {v.type} {v.name} to {vector('i8', v.width)}"), "i8"
        size = 1 if v.dtype == "b1" else int(v.dtype[1])
        self.code.write(name, pointer, memory, size, v.width, mask)

    def _in_row(self, index: str) -> str:
        """The place in a row of a place along its last axis."""
        split = self.split or 0
        units = (0,) * split + contiguous(self.kernel.axes[split:])
        for i, place in self.places_of_row.items():
            index = self.code.add(index, self.code.times(place, units[i]))
        return index

    def _scratch_place(self, n: Node, index: str) -> str:
        memory = self._kept_as(n)
        row = self.code.add(str(self.scratch_at[n.number]), self.code.times(self.lane, self._row_bytes(n)))
        base = self.code.op(f"getelementptr i8, ptr %scratch, i64 {row}")
        return self.code.op(f"getelementptr {memory}, ptr {base}, i64 {self._in_row(index)}")

    def _load_scratch(self, n: Node, index: str, mask: str | None, width: int) -> Value:
        read = self._read(self._scratch_place(n, index), self._kept_as(n), n.dtype.itemsize, mask, width)
        return self._from_memory(read, code_of(n.dtype), width)

    def _store_scratch(self, v: Value, n: Node, index: str, mask: str | None) -> None:
        self._write(v, self._scratch_place(n, index), mask)
