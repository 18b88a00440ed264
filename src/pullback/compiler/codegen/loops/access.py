"""Loads and stores of loop kernels: whole and masked vectors, gathered elements, and scratch memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pullback.compiler.builder import TYPES, Code, Value, code_of, join_lanes, splat, vector
from pullback.compiler.codegen.loops.interleave import interleave, pick_lanes, rotate
from pullback.compiler.ir.graph import Node, compute_strides
from pullback.compiler.schedule.fuse import Use
from pullback.compiler.schedule.loops import Axis, LoopPlan

if TYPE_CHECKING:
    import numpy as np

MEMORY_TYPES = {**TYPES, "b1": "i8"}


def get_memory_type(dtype: np.dtype[Any]) -> str:
    """Return the LLVM type of an element in memory."""
    return MEMORY_TYPES[code_of(dtype)]


def choose_inactive_value(memory: str, width: int) -> str:
    """Return the value of lanes that are not loaded: 1.0, for which no function takes its slow path."""
    return f"splat ({memory} 1.0)" if memory in ("float", "double") and width > 1 else "zeroinitializer"


def make_loaded_value(code: Code, name: str, dtype: np.dtype[Any], width: int) -> Value:
    """Return a vector that was loaded as a value; bools are bytes in memory."""
    if code_of(dtype) == "b1":
        name = code.op(f"trunc {vector('i8', width)} {name} to {vector('i1', width)}")
    return Value(code, name, code_of(dtype), width)


def read_vector(code: Code, pointer: str, dtype: np.dtype[Any], width: int, mask: str | None) -> Value:
    """Load the lanes of a vector that are set in the mask, or all of them."""
    memory = get_memory_type(dtype)
    name = code.read(pointer, memory, dtype.itemsize, width, mask, choose_inactive_value(memory, width))
    return make_loaded_value(code, name, dtype, width)


def write_vector(code: Code, v: Value, pointer: str, mask: str | None) -> None:
    """Store the lanes of a vector that are set in the mask, or all of them."""
    name, memory = v.name, TYPES[v.dtype]
    if v.dtype == "b1":
        name, memory = code.op(f"zext {v.type} {v.name} to {vector('i8', v.width)}"), "i8"
    size = 1 if v.dtype == "b1" else int(v.dtype[1])
    code.write(name, pointer, memory, size, v.width, mask)


def split_index(code: Code, index: str, axes: list[Axis]) -> dict[int, str]:
    """Return the index along each of several axes, from one index that runs over all of them.

    A merged axis is indexed by its last member.
    """
    found, rest = {}, index
    for axis in reversed(axes):
        if axis is axes[0]:
            found[axis.members[-1]] = rest
        else:
            whole, length = rest, axis.length
            found[axis.members[-1]] = part = code.op(f"urem i64 {whole}, {length}")
            rest = code.op(f"udiv i64 {whole}, {length}")
            code.splits[rest] = whole, part, length
    return found


def find_element_address(code: Code, node: Node, base: str, at: str) -> str:
    """Return the address of an element of a node's dtype, counted from ``base``."""
    return code.at(get_memory_type(node.dtype), base, at)


class ArrayAccess:
    """Emits loads and stores of a kernel's arrays and scratch memory, at the current indices of its loops."""

    def __init__(self, code: Code, plan: LoopPlan) -> None:
        self.code, self.plan = code, plan
        self.names = {n.number: f"%a{i}" for i, n in enumerate(plan.arrays)}  # the addresses of arrays, by node
        self.places: dict[int, str] = {}  # the index along each axis of the loops around the innermost one
        self.cells: dict[Any, str] = {}  # memory on the stack, filled when the kernel begins, for arrays of pieces
        self.tile_place_of_row = "0", "0"  # the first element of the current row in a tile, and the tile's first column
        self.lane = "0"  # the number of the row among those whose values are in scratch memory at the same time

    def get_address(self, node: Node) -> str:
        """Return the address of an array, a parameter of the kernel."""
        return self.names[node.number]

    def find_element(self, node: Node, base: str, at: str) -> str:
        """Return the address of an element of a node's dtype, counted from ``base``."""
        return find_element_address(self.code, node, base, at)

    # ---- places

    def find_offset(self, use: Use) -> str:
        """Return the offset of a use's first element along the innermost axis, at the indices of the outer loops."""
        at = self.plan.find_begin(use)
        for place, stride in self._join_indices({place: use.strides[i] for i, place in self.places.items()}).items():
            at = self.code.add(at, self.code.times(place, stride))
        return at

    def _join_indices(self, strides: dict[str, int]) -> dict[str, int]:
        """Return the stride of each index; parts that an index was split into are joined again if strides allow it."""
        for rest, (whole, part, length) in reversed(self.code.splits.items()):
            if rest in strides and part in strides and strides[rest] == strides[part] * length:
                strides[whole] = strides.pop(part)
                del strides[rest]
        return strides

    def find_place(self, use: Use, index: str, axis: int | None) -> str:
        """Return the offset of the element of a use that has ``index`` along the innermost axis."""
        at = self.find_offset(use)
        return at if axis is None else self.code.add(at, self.code.times(index, use.strides[axis]))

    def list_lane_indices(self, index: str, width: int) -> str:
        """Return a vector of the indices from ``index`` on, one for each lane."""
        if width == 1:
            return index
        lanes = ", ".join(f"i64 {i}" for i in range(width))
        return self.code.op(f"add <{width} x i64> {splat(self.code, index, 'i64', width)}, <{lanes}>")

    def find_accumulator(self, index: str) -> str:
        """Return the number of a column's accumulator among those of all columns; ``index`` is its innermost index."""
        outer = self.plan.axes[1][:-1]
        for axis, unit in zip(outer, compute_strides(tuple(a.length for a in outer)), strict=True):
            ahead = self.code.times(self.places[axis.members[-1]], unit * self.plan.column_length)
            index = self.code.add(index, ahead)
        return index

    # ---- arrays

    def load(self, node: Node, at: str, mask: str | None, width: int) -> Value:
        """Load neighbouring elements of an array."""
        return read_vector(self.code, self.find_element(node, self.get_address(node), at), node.dtype, width, mask)

    def gather(self, node: Node, at: str, step: int, mask: str | None, width: int) -> Value:
        """Load elements with a stride of ``step``."""
        steps = f"<{', '.join(f'i64 {i * step}' for i in range(width))}>"
        return self.gather_at(node, at, Value(self.code, steps, "i8", width), mask)

    def gather_at(self, node: Node, at: str, places: Value, mask: str | None) -> Value:
        """Load an element for each lane, at its own offset from ``at``."""
        code, memory, width = self.code, get_memory_type(node.dtype), places.width
        base = code.at(memory, self.get_address(node), at)
        if width == 1:
            pointer = code.at(memory, base, places.name)
            return read_vector(code, pointer, node.dtype, 1, None)
        pointers = code.op(f"getelementptr {memory}, ptr {base}, <{width} x i64> {places.name}")
        got = code.gather(pointers, memory, node.dtype.itemsize, width, mask, choose_inactive_value(memory, width))
        return make_loaded_value(code, got, node.dtype, width)

    def load_apart(self, use: Use, index: str, width: int, axis: int) -> Value:
        """Load elements at a small stride from whole vectors, which other uses between them share.

        The last of these vectors ends with the last element that a use needs: nothing behind it is loaded.
        """
        code, node, step = self.code, use.node, use.strides[axis]
        first, last = self.plan.find_neighbours(use, axis)
        lanes, memory = min(width, self.plan.lanes), get_memory_type(node.dtype)
        type_, end = vector(memory, lanes), (width - 1) * step + last - first + 1
        start = self.find_place(use._replace(offset=first), index, axis)
        base, registers = self.find_element(node, self.get_address(node), start), []
        for register in range(width // lanes):
            vectors = []
            for number in range(register * step, (register + 1) * step):
                back = max((number + 1) * lanes - end, 0)
                if back >= lanes:
                    vectors.append("poison")
                    continue
                pointer = code.at(memory, base, number * lanes - back)
                loaded = code.read(pointer, memory, node.dtype.itemsize, lanes, None)
                vectors.append(rotate(code, type_, loaded, lanes, back))
            registers.append(pick_lanes(code, type_, vectors, lanes, use.offset - first))
        return join_lanes([Value(code, name, code_of(node.dtype), lanes) for name in registers])

    def load_use(self, use: Use, index: str, mask: str | None, width: int, axis: int | None) -> Value:
        """Load a vector of a use along the innermost axis."""
        if use in self.plan.tiles:
            row, column = self.tile_place_of_row
            at = self.code.add(row, self.code.op(f"sub i64 {index}, {column}"))
            return read_vector(self.code, self.find_tile_place(use, use.node, at), use.node.dtype, width, None)
        step = 1 if axis is None else use.strides[axis]
        if step == 1 and axis is not None:  # the row's address does not change along it
            row = self.find_element(use.node, self.get_address(use.node), self.find_offset(use))
            return read_vector(self.code, self.find_element(use.node, row, index), use.node.dtype, width, mask)
        at = self.find_place(use, index, axis)
        if step == 1 or width == 1:
            return self.load(use.node, at, mask, width)
        if step == -1 and mask is None:
            v = self.load(use.node, self.code.add(at, str(1 - width)), None, width)
            return v.like(self.code.shuffle(v.type, v.name, "poison", range(width)[::-1]))
        if axis is not None and mask is None and self.plan.is_apart(use, axis):
            return self.load_apart(use, index, width, axis)
        return self.gather(use.node, at, step, mask, width)

    def store_together(self, values: list[Value], pointer: str) -> None:
        """Store an element of each vector in turn."""
        code, memory, lanes = self.code, MEMORY_TYPES[values[0].dtype], values[0].width
        joined = interleave(code, vector(memory, lanes), [v.name for v in values], lanes)
        for number, name in enumerate(joined):
            at = code.at(memory, pointer, number * lanes)
            code.write(name, at, memory, int(values[0].dtype[1]), lanes, None)

    def store(self, v: Value, node: Node, at: str, mask: str | None) -> None:
        """Store a vector in an array."""
        memory = MEMORY_TYPES[v.dtype]
        write_vector(self.code, v, self.code.at(memory, self.get_address(node), at), mask)

    # ---- scratch memory: values for later passes, and transposed tiles

    def find_kept_place(self, n: Node, index: str) -> str:
        """Return the address of a value that is kept for later passes over the row."""
        row = self.code.add(
            str(self.plan.scratch.kept[n.number]), self.code.times(self.lane, self.plan.count_row_bytes(n))
        )
        base = self.code.at("i8", "%scratch", row)
        outer = self.plan.axes[1][:-1]
        for axis, unit in zip(outer, compute_strides(tuple(a.length for a in outer)), strict=True):
            ahead = self.code.times(self.places[axis.members[-1]], unit * self.plan.row_length)
            index = self.code.add(index, ahead)
        return self.find_element(n, base, index)

    def find_tile_place(self, key: Any, n: Node, index: str) -> str:
        """Return the address of an element of a transposed tile."""
        return self.find_element(n, self.code.at("i8", "%scratch", self.plan.scratch.tiles[key]), index)
