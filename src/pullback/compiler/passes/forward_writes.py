"""Read what a program wrote into an array from the written values, not from the array.

``out[i] = a * out[i - 1] + x[i]`` makes a new version of ``out`` in each step; its backward pass adds to places of a
cotangent and sets others to zero.  A view of a version whose elements were written, or added to, becomes a
view of the written values, or a sum of small arrays.  What is left of a loop is a recurrence of these values, which
``roll`` recognizes, and one array that contains all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Block, Graph, Node, Pieces, Shape, View, add_view, compute_strides
from pullback.compiler.ir.kinds import CONSTANT, INPUT, MAP, PIECES, VIEW

MAX_CELLS = 16  # places, each written as a whole, that one write or read may have
MAX_PARTS = 4  # written values that one read may consist of, and cells if these are parts of written values


def forward_writes(graph: Graph) -> Graph:
    """Return an equivalent graph in which reads of written places use the written values."""
    if not any(n.kind is PIECES for n in graph.nodes):
        return graph
    histories = Histories(graph)
    return Rewriter(graph, histories).run() if histories.reads or histories.has_chains else graph


class BlockWrite(NamedTuple):
    """A value that a version of an array has at a block."""

    version: int
    block: Block
    value: Node  # of the old graph; of an addition, the term that is added
    node: Node  # the version
    adds: bool


class ReadPart(NamedTuple):
    """A part of what is read: a block of one written value, or of the array before all writes."""

    block: Block
    write: BlockWrite | None
    adds_zero: bool  # zeros were added to it since, which make 0 of -0


class BlockRead(NamedTuple):
    """A block of a version, and the axes of the array along which the axes of the view are; -1 for a repeated one."""

    history: WriteHistory
    block: Block
    axes: Shape
    parts: list[ReadPart]


class WriteHistory:
    """The versions of one array, each written from the one before, and what was written."""

    def __init__(self, base: Node | None, like: Node, blocks: list[Block]) -> None:
        self.base, self.shape, self.fill = base, like.shape, like.data.fill if base is None else None
        self.versions: list[Node] = []
        self.zeros: list[int] = []  # versions that add zeros to all other places
        self.cells: dict[Shape, tuple[list[int], list[BlockWrite]]] = {}
        self.axes = tuple(
            k for k, length in enumerate(like.shape) if any(block.shape[k] != length for block in blocks)
        )  # along which cells are counted; along the others each is whole

    def list_cells(self, block: Block) -> list[Shape] | None:
        """Return the cells in which a block lies; None if there are too many."""
        if len(self.axes) == 1:
            (k,) = self.axes
            first, count = block.start[k], block.shape[k]
            return [(i,) for i in range(first, first + count)] if count <= MAX_CELLS else None
        if prod(block.shape[k] for k in self.axes) > MAX_CELLS:
            return None
        return [*product(*(range(block.start[k], block.start[k] + block.shape[k]) for k in self.axes))]

    def add(self, n: Node, values: list[tuple[Block, Node]], adds: bool) -> bool:
        """Add a version with values at blocks; return False, and change nothing, if these are no whole cells."""
        cells = [self.list_cells(block) for block, _ in values]
        if None in cells or not all(self._has_whole_cells(block) for block, _ in values):
            return False
        self.versions.append(n)
        version = len(self.versions)
        for (block, value), found in zip(values, cells, strict=True):
            write = BlockWrite(version, block, value, n, adds)
            for cell in found or ():
                times, writes = self.cells.setdefault(cell, ([], []))
                times.append(version)
                writes.append(write)
        if adds:
            self.zeros.append(version)
        return True

    def _has_whole_cells(self, block: Block) -> bool:
        return all(block.shape[k] == length for k, length in enumerate(self.shape) if k not in self.axes)

    def find_parts(self, version: int, block: Block) -> list[ReadPart] | None:
        """Return what a block of a version consists of; None if these are too many parts."""
        cells = self.list_cells(block)
        if cells is None:
            return None
        found = [self._find_write(cell, version) for cell in cells]
        if all(one == found[0] for one in found):
            return [ReadPart(block, *found[0])]
        moving = [k for k in self.axes if block.shape[k] > 1]
        if len(moving) != 1:
            return None
        (axis,) = moving
        parts: list[ReadPart] = []
        for i, one in enumerate(found):
            if i and one == found[i - 1]:
                last = parts[-1].block
                parts[-1] = parts[-1]._replace(block=Block(last.start, _change(last.shape, axis, last.shape[axis] + 1)))
            else:
                at = Block(_change(block.start, axis, block.start[axis] + i), _change(block.shape, axis, 1))
                parts.append(ReadPart(at, *one))
        is_whole = all(part.write is None or part.write.block == part.block for part in parts)
        return parts if len(cells) <= MAX_PARTS or (is_whole and len(parts) <= MAX_PARTS) else None

    def _find_write(self, cell: Shape, version: int) -> tuple[BlockWrite | None, bool]:
        """Return the last write to a cell up to a version, and whether zeros were added after it."""
        times, writes = self.cells.get(cell, ((), ()))
        at = bisect_right(times, version)
        write = writes[at - 1] if at else None
        begin = bisect_right(self.zeros, write.version if write else 0)
        return write, begin < len(self.zeros) and self.zeros[begin] <= version


class Histories:
    """The histories of all arrays of a graph, and the views that read from written values."""

    def __init__(self, graph: Graph) -> None:
        self.places: dict[int, tuple[WriteHistory, int]] = {}  # by the number of a node: its history, its version
        self.reads: dict[int, BlockRead] = {}  # by the number of a view, or of a version that adds
        self.terms: dict[int, Node] = {}  # by the number of a version that adds: what it adds at a block
        self.has_chains = False  # whether a version was written from another one
        read = _find_read(graph)
        for n in graph.nodes:
            if n.kind is VIEW:
                self._add_view(n)
            elif n.kind is PIECES:
                if n.size and (n.number in read or _split_pieces(n)[0] is not None):
                    self._add_pieces(n)
            elif n.number in read:
                self._add_sum(n)

    def _add_view(self, n: Node) -> None:
        place = self.places.get(n.args[0].number)
        if place is None or not n.size:
            return
        found = _find_block(n, place[0].shape)
        parts = None if found is None else place[0].find_parts(place[1], found[0])
        if found is not None and parts is not None:
            self.reads[n.number] = BlockRead(place[0], *found, parts)

    def _add_pieces(self, n: Node) -> None:
        base, values = _split_pieces(n)
        for history in self._list_histories(base, n, [block for block, _ in values]):
            if history.add(n, values, False):
                self.places[n.number] = history, len(history.versions)
                self.has_chains = self.has_chains or len(history.versions) > 1
                return

    def _add_sum(self, n: Node) -> None:
        """Add a sum of an array and one with a block of other values and zeros around."""
        x, y = _split_sum(n)
        if x is None or y is None:
            return
        block = Block(y.data.starts[0], y.args[0].shape)
        for history in self._list_histories(x, n, [block]):
            parts = history.find_parts(len(history.versions), block)
            if parts is not None and history.add(n, [(block, y.args[0])], True):
                self.places[n.number] = history, len(history.versions)
                self.reads[n.number] = BlockRead(history, block, tuple(range(len(n.shape))), parts)
                self.terms[n.number] = y.args[0]
                return

    def _list_histories(self, base: Node | None, like: Node, blocks: list[Block]) -> Iterator[WriteHistory]:
        """Return the history of which ``base`` is the last version, if there is one, and a new one."""
        place = None if base is None else self.places.get(base.number)
        if place is not None and place[1] == len(place[0].versions):
            yield place[0]
        if blocks:
            yield WriteHistory(base, like, blocks)


def _find_read(graph: Graph) -> set[int]:
    """Return the numbers of the nodes of which there are views, or views of versions that are written from them."""
    found: set[int] = set()
    for n in reversed(graph.nodes):
        if n.kind is VIEW:
            found.add(n.args[0].number)
        elif n.kind is PIECES:
            before = _split_pieces(n)[0]
            if before is not None:
                found.add(before.number)
        elif n.number in found:
            before = _split_sum(n)[0]
            if before is not None:
                found.add(before.number)
    return found


def _split_sum(n: Node) -> tuple[Node | None, Node | None]:
    """Return an array, and one with a block of values and zeros around, whose sum a node is; two None for others."""
    if n.kind is MAP and len(n.args) == 2 and n.data[0].kernel is np.add and n.dtype.kind == "f":
        for x, y in (n.args, n.args[::-1]):
            if _is_padded_block(y) and x.shape == y.shape and x.dtype == y.dtype and x is not y:
                return x, y
    return None, None


def _is_padded_block(n: Node) -> bool:
    """Return whether a node is one block with zeros around it."""
    return n.kind is PIECES and len(n.args) == 1 and n.data.fill == 0 and not np.signbit(n.data.fill)


def _change(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _find_block(n: Node, shape: Shape) -> tuple[Block, Shape] | None:
    """Return the block of an array of ``shape`` that a view reads, and the array's axis for each axis of the view.

    It is -1 for an axis of the view that has one element, or repeats one.  None if the view does not read a block.
    """
    strides = compute_strides(shape)
    start, rest = [], n.data.offset
    for step in strides:
        start.append(rest // step)
        rest %= step
    lengths, axes = [1] * len(shape), []
    for length, step in zip(n.shape, n.data.strides, strict=True):
        axis = -1
        if length > 1 and step:
            fits = (k for k, s in enumerate(strides) if s == step and lengths[k] == 1 and start[k] + length <= shape[k])
            axis = next(fits, -1)
            if axis < 0:
                return None
            lengths[axis] = length
        axes.append(axis)
    return Block(tuple(start), tuple(lengths)), tuple(axes)


class Rewriter:
    """Writes the new graph: finds which nodes are needed, and copies these in order."""

    def __init__(self, graph: Graph, histories: Histories) -> None:
        self.graph, self.places, self.reads, self.terms = graph, histories.places, histories.reads, histories.terms
        self.needed = {o.number for o in graph.outputs}
        self.summed: set[int] = set()  # versions that add, whose sum at the block is needed
        self.passed: set[int] = set()  # versions whose values are needed in a later one
        self.new, self.new_nodes = graph.copy_inputs()
        self.sums: dict[int, Node] = {}

    def run(self) -> Graph:
        """Return the new graph."""
        for n in reversed(self.graph.nodes):
            self._find_needed(n)
        for n in self.graph.nodes:
            if n.number in self.summed:
                x = self._add_read(self.reads[n.number], self.terms[n.number])
                term = self.new_nodes[self.terms[n.number].number]
                self.sums[n.number] = self.new.add(MAP, (x, term), term.shape, term.dtype, n.data, n.line)
            if n.number in self.needed and n.kind is not INPUT:
                self.new_nodes[n.number] = self._copy(n)
        self.new.outputs = [self.new_nodes[o.number] for o in self.graph.outputs]
        return self.new

    def _find_needed(self, n: Node) -> None:
        """Note which nodes before it a node needs, if it is needed itself."""
        number = n.number
        if number in self.summed:
            self.needed.add(self.terms[number].number)
            self._need_parts(self.reads[number])
        if self._is_written(n) and (number in self.needed or number in self.passed):
            before, values = _split_pieces(n)
            self.needed.update(x.number for _, x in values)
            if before is not None:
                (self.passed if self._is_written(before) else self.needed).add(before.number)
        elif number in self.needed and n.kind is VIEW and number in self.reads:
            self._need_parts(self.reads[number])
        elif number in self.needed:
            self.needed.update([a.number for a in n.args])

    def _is_written(self, n: Node) -> bool:
        return n.kind is PIECES and n.number in self.places

    def _need_parts(self, read: BlockRead) -> None:
        for part in read.parts:
            if part.write is None:
                if read.history.base is not None:
                    self.needed.add(read.history.base.number)
            elif part.write.adds:
                self.summed.add(part.write.node.number)
            else:
                self.needed.add(part.write.value.number)

    def _copy(self, n: Node) -> Node:
        if self._is_written(n):
            return self._join_versions(n)
        if n.kind is VIEW and n.number in self.reads:
            return self._add_read(self.reads[n.number], n)
        return self.new.copy_node(n, [self.new_nodes[a.number] for a in n.args])

    def _join_versions(self, n: Node) -> Node:
        """Return a version with the values of all versions before it that are not needed by themselves."""
        before, values = _split_pieces(n)
        versions = [values]
        while before is not None and before.number in self.passed and before.number not in self.needed:
            before, values = _split_pieces(before)
            versions.append(values)
        found: dict[Block, Node] = {}
        for values in reversed(versions):
            for block, x in values:
                found.pop(block, None)  # the last one covers the others
                found[block] = self.new_nodes[x.number]
        starts, args, fill = [block.start for block in found], [*found.values()], n.data.fill
        if before is not None:
            number = _find_fill(before)
            if number is None:
                starts, args = [(0,) * len(n.shape), *starts], [self.new_nodes[before.number], *args]
            else:
                fill = number
        return self.new.add(PIECES, args, n.shape, n.dtype, Pieces(tuple(starts), fill), n.line)

    def _add_read(self, read: BlockRead, like: Node) -> Node:
        """Return what is read, with the shape of ``like``."""
        if len(read.parts) == 1:
            return self._add_part(read.history, read.parts[0], read.axes, like)
        block, axes = read.block, tuple(range(len(read.block.shape)))
        starts, args = [], []
        for part in read.parts:
            starts.append(tuple(i - k for i, k in zip(part.block.start, block.start, strict=True)))
            args.append(self._add_part(read.history, part, axes, like, part.block.shape))
        whole = self.new.add(PIECES, args, block.shape, like.dtype, Pieces(tuple(starts), 0.0), like.line)
        return self._view(whole, (0,) * len(block.shape), read.axes, like.shape, like.line)

    def _add_part(
        self, history: WriteHistory, part: ReadPart, axes: Shape, like: Node, shape: Shape | None = None
    ) -> Node:
        """Return a part of what is read, with its axes along these of the array."""
        write, shape = part.write, like.shape if shape is None else shape
        start: Shape = part.block.start
        if write is not None:
            x = self.sums[write.node.number] if write.adds else self.new_nodes[write.value.number]
            start = tuple(i - k for i, k in zip(start, write.block.start, strict=True))
        elif history.base is not None:
            x = self.new_nodes[history.base.number]
        else:
            number = self.new.add_constant(history.fill, like.dtype)
            return self.new.add(VIEW, (number,), shape, like.dtype, View(0, (0,) * len(shape)), like.line)
        found = self._view(x, start, axes, shape, like.line)
        if not part.adds_zero:
            return found
        return self.new.add_op(np.add, found, self.new.add_constant(0.0, like.dtype), line=like.line)

    def _view(self, x: Node, start: Shape, axes: Shape, shape: Shape, line: str) -> Node:
        """Return a view that begins at a place of an array, with its axes along these of the array."""
        strides = compute_strides(x.shape)
        offset = sum(i * step for i, step in zip(start, strides, strict=True))
        return add_view(self.new, x, shape, View(offset, tuple(0 if k < 0 else strides[k] for k in axes)), line)


def _split_pieces(n: Node) -> tuple[Node | None, list[tuple[Block, Node]]]:
    """Return the array into which pieces are written, None if there is none, and the pieces with their places."""
    values = [(Block(start, a.shape), a) for a, start in zip(n.args, n.data.starts, strict=True)]
    return (n.args[0], values[1:]) if len(values) > 1 and n.args[0].shape == n.shape else (None, values)


def _find_fill(n: Node) -> float | None:
    """Return the number that all elements of a constant of floats are; None if it is no such constant."""
    while n.kind is VIEW:
        (n,) = n.args
    if n.kind is not CONSTANT or n.dtype.kind != "f" or n.data.tobytes() != n.data.reshape(-1)[:1].tobytes() * n.size:
        return None
    number: float = n.data.reshape(-1)[0].item()
    return number
