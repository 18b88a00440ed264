"""The plan of a kernel's loops: axes, passes over rows, blocks of rows, vector width, parts and scratch memory.

A kernel has axes over rows and axes along rows; the last of these is the innermost loop, which is computed by vectors.
``LoopPlan`` decides everything that ``codegen/loops`` emits.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

from pullback.compiler.builder import first_lanes, last_lanes
from pullback.compiler.ir.graph import Node, is_number, squeeze
from pullback.compiler.ir.kinds import FOLD, PIECES, STACK, TAKE, VIEW, Kind
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.cost import estimate_cost, is_minor
from pullback.compiler.schedule.fuse import (
    AFTER,
    FULL,
    READS,
    ROW,
    Fused,
    Kernel,
    Use,
    find_loop_shape,
    use_argument,
    use_node,
)
from pullback.compiler.schedule.work import Work
from pullback.compiler.target import Target

MAX_REGISTERS = 4  # of a vector: the latencies of their computations overlap
PLAIN_REGISTERS = 2  # of a vector of plain arithmetic: several iterations of such a short loop overlap, too
INDEPENDENT_REGISTERS = 2  # of a vector of 64 bytes whose own computations overlap: half the code to compile
MIN_INDEPENDENT_COST = 100  # cost of a kernel from which on that is worth it
MIN_INDEPENDENT = 2.5  # cost of a kernel ÷ cost of its longest chain of ops, from which on computations overlap
MAX_PLAIN_COST = 4  # cost of an op of plain arithmetic
MIN_PLAIN_COST = 6  # cost of all ops together: of cheaper loops, counting and jumping is a part that matters
MIN_VECTORS = 3  # along a row, for vectors of several registers: for fewer, the longer code is not worth compiling
MANY_ROWS = 16  # rows from which on two such vectors are enough
FEW_VECTORS = 64  # registers of all rows together, up to which several to a vector save less than 0.3 µs a call
LONG_CODE_COST = 24  # cost of a kernel from which on their code takes LLVM milliseconds more
MAX_APART = 9  # stride of elements that are loaded by whole vectors and taken apart
MAX_SEGMENTS = 4  # segments of an axis, each with a loop of its own
MAX_LONG_SEGMENTS = 12  # the same for long segments, if there are more; the others are computed element by element
LONGEST_SUM = 2**15  # elements that are added up one after the other; longer rows are summed in runs, for precision
RUN_ELEMENTS = 4096  # elements of such a run
ROWS_BY_COLUMNS = 16  # rows that are computed together, column by column
LONG_SEGMENT = 16  # elements of a long segment
MIN_KEPT_COST = 6  # cost of a value that is kept for later passes over the row, rather than computed again
SLOW_COST = 3  # cost of one op, such as a division or a square root, whose value is kept in any case
PART_ELEMENTS = 16384  # elements of one part; the reductions of parts are combined in order
MAX_PARTS = 64  # the most parts of fewer elements than that
MAX_TRANSPOSED_VECTORS = 2  # vectors of a row up to which a block of rows is transposed
ROWS_OF_BLOCK = 16  # rows of a block that is not transposed, if they stay in the cache
TRANSPOSE_COST = 2  # cost of transposing one vector of a tile
ROWS_AT_ONCE = 4  # rows that are reduced at the same time, so that a vector that all of them use is loaded once
MAX_COST_AT_ONCE = 4  # cost of an element in such rows
MAX_ROW_BYTES = 4096  # bytes of such a row: the CPU prefetches several longer ones too late
MIN_SHARED_COST = 24  # cost of a pass from which on the loop over whole vectors computes the last one, too
MAX_SHARED_SHARE = 1 / 100  # of the elements that it may compute twice for that
TILE_ROWS = 16  # rows of a block that is read by tiles and fills cache lines, if the second-level cache holds the array
LARGE_TILE_ROWS = 64  # the same for larger arrays, of which the CPU prefetches neighbouring lines
TILE_ROW_BYTES = 512  # of a row of such a block
MAX_TILE_SIDE = 8  # rows and columns of the squares that a tile is transposed by


class Axis(NamedTuple):
    """One axis of the loops: its length, and the axes of the kernel that are merged in it."""

    length: int
    members: tuple[int, ...]


class Remainder(NamedTuple):
    """The last vector of a segment, if whole vectors do not fill it."""

    start: int  # the index of its first lane
    width: int  # the number of its lanes
    mask: str | None  # the lanes that are not in the vector before, as LLVM text; None for all
    overlaps: bool  # whether the other lanes are elements of the vector before; else they are beyond the end


class Cut(NamedTuple):
    """A segment divided into vectors."""

    width: int  # lanes of a vector
    stop: int  # the index at which the last whole vector ends
    last: Remainder | None  # None if whole vectors fill the segment
    shares_body: bool = False  # whether the last vector is as wide as the others and may be computed by their loop


class AxisSegment(NamedTuple):
    """A range of the innermost axis inside which no piece of a concatenation or padding begins or ends."""

    start: int
    stop: int
    by_element: bool  # it is many short pieces instead, and computed element by element
    kept: int  # the index of its first element among the values that are kept for later passes
    cut: Cut


class RowBlock(NamedTuple):
    """A block of rows that are computed together."""

    rows: int  # their number; 1 if rows are computed one by one
    is_transposed: bool  # whether a vector has one element of each row
    is_adjacent: bool = False  # whether the elements of such a vector are neighbours in memory already


class ScratchArrays(NamedTuple):
    """The offsets of values in scratch memory, in bytes."""

    tiles: dict[Any, int]  # of tiles: by use for what is loaded, by number of a node for what is stored
    kept: dict[int, int]  # of rows that are kept for later passes, by number of a node
    size: int  # bytes of the scratch memory


class Partial(NamedTuple):
    """The layout of the accumulators of a reduction over rows, in the partial results of a part.

    The columns are an array of ``rows`` times ``length`` elements, by the innermost axis and all others.
    """

    rows: int
    stride: int  # accumulators from one of these rows to the next
    length: int
    ranges: list[tuple[int, int, int]]  # ranges along ``length``: first element, count, and first accumulator


class LoopPlan:
    """Everything that is decided about a kernel's loops before they are emitted."""

    def __init__(self, kernel: Kernel, fused: Fused, target: Target) -> None:
        self.kernel, self.fused, self.target = kernel, fused, target
        self.split = kernel.split
        self.stored = [n for n in kernel.nodes if n.number in fused.stored and kernel.levels[n.number] != AFTER]
        self.after = [n for n in kernel.nodes if kernel.levels[n.number] == AFTER]
        # What the kernel reads, the axes of its loops, and its passes along them.
        self.loads = self._find_loads()
        self.whole_loads = self._find_whole_loads()
        self.arrays = self._list_arrays()
        self.base_offsets = self._find_base_offsets()
        self.piece_bounds = self._find_piece_bounds()
        self.axes = self._merge_axes()  # over rows, and along them
        self.ranges = self._list_ranges()
        self.is_by_element = all(by_element for _, _, by_element in self.ranges)
        self.stage = self._find_stages()
        self.uniform_uses = self._find_uniform_uses()
        self.scratch_nodes = self._find_scratch_nodes()
        self.passes = self._count_passes()
        self.results = self._list_results()
        self.row_reductions = self._list_row_reductions()
        # How rows are computed together: several at a time, in blocks, by columns or by tiles.
        self.widest = self._find_widest()
        self.rows_at_once = self._count_rows_at_once()
        self.block, self.is_transposed, self.has_adjacent_elements = self._choose_row_block()
        self.sums_columns_in_registers = self._sums_columns_in_registers()
        self.across_rows = self._find_uses_across_rows()
        self.tiles = self._find_tiles()
        self.rows_by_columns = self._count_rows_by_columns()
        # How a row is divided into vectors, and the work into parts with their memory.
        self.lanes = self.block if self.is_transposed else self._count_lanes()  # of a register
        self.width = self.lanes * (1 if self.is_transposed else self._count_registers())  # of a vector
        self.segments = self._cut_segments()
        self.runs = self._choose_runs()
        self.scratch = self._lay_out_scratch()
        self.partial_at = self._place_partial_results()
        self.work = self._plan_work()

    def __str__(self) -> str:
        rows, columns = (" × ".join(str(a.length) for a in axes) or "1" for axes in self.axes)
        width = f"width {self.width}, registers {self.width // self.lanes}, block {self.block}"
        return f"rows {rows}, columns {columns}, {width}, passes {self.passes}"

    def list_uses(self, n: Node) -> list[Use]:
        """Return the uses of a node's arguments along the axes of the kernel."""
        if n.kind is VIEW:
            return [Use(n.args[0], n.data.offset, use_node(n, n.shape).strides)]
        if n.kind in READS:
            return READS[n.kind](n)
        shape = find_loop_shape(n)
        uses = [use_node(a, shape) for a in n.args]
        missing = len(self.kernel.axes) - len(squeeze(shape))
        return [u._replace(strides=u.strides + (0,) * missing) for u in uses]

    def list_leaves(self, use: Use) -> list[Use]:
        """Return the uses that a use is computed from: those that are loaded, or computed in the kernel."""
        node = use.node
        if is_number(node):
            return []
        if node.number in self.fused.virtual and not self.kernel.makes(use):
            return [leaf for a in node.args for leaf in self.list_leaves(use_argument(use, a))]
        return [use]

    def _find_loads(self) -> list[Use]:
        """Return the uses that the kernel loads from memory."""
        found: dict[Use, None] = {}
        for n in self.kernel.nodes:
            for use in self.list_uses(n):
                for leaf in self.list_leaves(use):
                    if not self.kernel.makes(leaf):
                        found[leaf] = None
        return list(found)

    def _list_arrays(self) -> tuple[Node, ...]:
        """Return the arrays whose addresses the kernel is given: what it loads, and what it stores in rows."""
        read = [u.node for n in self.kernel.nodes if n.kind in READS for u in READS[n.kind](n) if is_number(u.node)]
        loaded = (use.node for use in self.loads)
        return tuple({n.number: n for n in (*loaded, *read, *self.stored)}.values())

    def _find_base_offsets(self) -> dict[int, int]:
        """Return, by array that is only read, the smallest offset of its uses.

        The kernel is given the address at that offset, so that all steps of an unrolled loop over ``x[0]``, ``x[1]``, …
        have the same kernel.
        """
        found: dict[int, int] = {}
        for use in self.loads:
            found[use.node.number] = min(use.offset, found.get(use.node.number, use.offset))
        return {number: at for number, at in found.items() if at > 0 and number not in self.kernel.levels}

    def find_begin(self, use: Use) -> str:
        """Return the offset of a use's first element from the address that the kernel is given."""
        return str(use.offset - self.base_offsets.get(use.node.number, 0))

    def _find_piece_bounds(self) -> dict[int, list[list[tuple[int, int]]]]:
        """Return, by node that is made of pieces, the bounds of each piece along each axis of the kernel."""
        return {
            n.number: [
                [(s, s + k) for s, k, length in zip(start, a.shape, n.shape, strict=True) if length != 1]
                for a, start in zip(n.args, n.data.starts, strict=True)
            ]
            for n in self.kernel.nodes
            if n.kind is PIECES
        }

    def _merge_axes(self) -> tuple[list[Axis], list[Axis]]:
        """Return the axes over rows and along them, merged where all strides allow it."""
        lengths = self.kernel.axes
        stepping = [u.strides for u in self.loads] + [self.kernel.find_strides(n) for n in self.stored]
        split = self.split

        def merge(members: range) -> list[Axis]:
            out: list[Axis] = []
            for i in members:
                whole = all(g[i] == (0, lengths[i]) for pieces in self.piece_bounds.values() for g in pieces)
                few = not out or self._count_segments(out[-1].members[0]) <= MAX_SEGMENTS
                if out and whole and few and all(s[out[-1].members[-1]] == s[i] * lengths[i] for s in stepping):
                    out[-1] = Axis(out[-1].length * lengths[i], (*out[-1].members, i))
                else:
                    out.append(Axis(lengths[i], (i,)))
            return out

        if split is None:
            whole = merge(range(len(lengths)))
            return whole[:-1], whole[-1:]
        return merge(range(split)), merge(range(split, len(lengths)))

    def _list_ends(self, axis: int) -> set[int]:
        """Return where pieces begin and end along an axis of the kernel."""
        ends = {end for pieces in self.piece_bounds.values() for bounds in pieces for end in bounds[axis]}
        return {0, self.kernel.axes[axis]} | ends

    def _count_segments(self, axis: int) -> int:
        return len(self._list_ends(axis)) - 1

    def _list_ranges(self) -> list[tuple[int, int, bool]]:
        """Return the segments of the innermost axis: start, stop, and whether it is computed element by element."""
        _, columns = self.axes
        if not columns:
            return [(0, 1, False)]
        length, first = columns[-1].length, columns[-1].members[0]
        ends = [end * (length // self.kernel.axes[first]) for end in sorted(self._list_ends(first))]
        found = [*pairwise(ends)]
        if len(found) <= MAX_SEGMENTS:
            return [(start, stop, False) for start, stop in found]
        long = sorted((r for r in found if r[1] - r[0] >= LONG_SEGMENT), key=lambda r: r[0] - r[1])[:MAX_LONG_SEGMENTS]
        ranges: list[tuple[int, int, bool]] = []
        for start, stop in found:
            by_element = (start, stop) not in long
            if by_element and ranges and ranges[-1][2]:
                start = ranges.pop()[0]
            ranges.append((start, stop, by_element))
        return ranges

    def _cut_segments(self) -> tuple[AxisSegment, ...]:
        """Return the segments of the innermost axis."""
        segments: list[AxisSegment] = []
        kept = 0
        for start, stop, by_element in self.ranges:
            segments.append(AxisSegment(start, stop, by_element, kept, self._cut(start, stop, by_element)))
            kept += -(-(stop - start) // self.width) * self.width
        return tuple(segments)

    @property
    def is_flat(self) -> bool:
        """Whether the kernel is one loop; its parts are ranges of that loop, counted in vectors."""
        rows, columns = self.axes
        return not rows and len(columns) <= 1 and self.split is None

    def _find_stages(self) -> dict[int, int]:
        """Return, by node, the pass in which elements can be computed, or after which a row's value is known."""
        found: dict[int, int] = {}
        for n in self.kernel.nodes:
            known = [
                found[u.node.number]
                for use in self.list_uses(n)
                for u in self.list_leaves(use)
                if u.node.number in found
            ]
            found[n.number] = max(known, default=0) + (n.kind is FOLD and self.kernel.levels[n.number] == ROW)
        return found

    def _count_passes(self) -> int:
        """Return the number of passes over a row."""
        last = [
            self.stage[n.number] - (n.kind is FOLD and self.kernel.levels[n.number] == ROW)
            for n in self.kernel.nodes
            if self.kernel.levels[n.number] != ROW or n.kind is FOLD
        ]
        return max(last, default=0) + 1

    def _list_results(self) -> list[list[Node]]:
        """Return the nodes that are stored or reduced in each pass."""
        return [[n for n in self.kernel.nodes if self._is_result(n, number)] for number in range(self.passes)]

    def list_result_uses(self, n: Node) -> list[Use]:
        """Return the uses of what is reduced, stacked or stored for a result."""
        return self.list_uses(n) if n.kind in (FOLD, STACK) else [Use(n, 0, self.kernel.find_strides(n))]

    def _list_row_reductions(self) -> list[list[Node]]:
        """Return the reductions along the row that are computed in each pass."""
        levels = self.kernel.levels
        return [[n for n in results if n.kind is FOLD and levels[n.number] == ROW] for results in self.results]

    def _is_result(self, n: Node, number: int) -> bool:
        level = self.kernel.levels[n.number]
        if level == ROW:
            return n.kind is FOLD and self.stage[n.number] == number + 1
        is_stored = level == AFTER or n.number in self.fused.stored or n in self.scratch_nodes
        return is_stored and self.stage[n.number] == number

    def _find_scratch_nodes(self) -> list[Node]:
        """Return the costly values that a later pass needs, and no array has: they are kept in scratch memory."""
        found: list[Node] = []
        for n in self.kernel.nodes:
            for use in self.list_uses(n):
                for u in self.list_leaves(use):
                    m = u.node
                    later = self.kernel.levels.get(m.number) == FULL and self.stage[n.number] > self.stage[m.number]
                    if later and n.kind is FOLD and self.kernel.levels[n.number] == ROW:
                        later = self.stage[n.number] - 1 > self.stage[m.number]
                    if (
                        later
                        and m not in found
                        and m.number not in self.fused.stored
                        and (self._sum_costs(m) >= MIN_KEPT_COST or self._has_slow_op(m))
                    ):
                        found.append(m)
        return found

    def _sum_costs(self, n: Node) -> int:
        """Return the cost of computing an element of a value from what is loaded."""
        total = estimate_cost(n)
        for use in self.list_uses(n):
            for u in self.list_leaves(use):
                if self.kernel.levels.get(u.node.number) == FULL:
                    total += self._sum_costs(u.node)
        return total

    def _has_slow_op(self, n: Node) -> bool:
        """Return whether a value takes a division or the like for each element, not one for the whole row."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else 0
        uses = [u for use in self.list_uses(n) for u in self.list_leaves(use)]
        if estimate_cost(n) >= SLOW_COST and any(u.strides[inner] for u in uses):
            return True
        return any(self._has_slow_op(u.node) for u in uses if self.kernel.levels.get(u.node.number) == FULL)

    def count_row_bytes(self, n: Node) -> int:
        """Return the bytes that a row of a kept value takes in scratch memory: whole vectors and cache lines."""
        _, columns = self.axes
        outer = prod(a.length for a in columns[:-1])
        return round_up(outer * self.row_length * n.dtype.itemsize)

    @property
    def row_length(self) -> int:
        """The length of the innermost axis in whole vectors: elements of a row of a kept value."""
        last = self.segments[-1]
        return last.kept + ((last.stop - last.start) // self.width + 1) * self.width

    def is_column(self, n: Node) -> bool:
        """Return whether a node is a reduction over rows with a result for each column."""
        return self.kernel.levels[n.number] == AFTER and bool(squeeze(n.shape))

    def count_partial_bytes(self, n: Node) -> int:
        """Return the bytes of a part's accumulators of a reduction over rows."""
        partial = self.lay_out_partial(n)
        return round_up(partial.rows * partial.stride * max(n.dtype.itemsize, 1))

    def lay_out_partial(self, n: Node) -> Partial:
        """Return the layout of a part's accumulators of a reduction over rows.

        Each vector of columns has accumulators of its own, even if it overlaps the one before: else it would have to
        wait for the store of the other's.
        """
        _, columns = self.axes
        if not self.is_column(n) or self.is_transposed:
            size = max(n.size, 1)
            return Partial(1, size, size, [(0, size, 0)])
        ranges = []
        for start, stop, _, kept, (_, whole, last, _) in self.segments:
            ranges.append((start, whole - start, kept))
            if last is not None:
                ranges.append((whole, stop - whole, kept + whole - start + whole - last.start))
        rows = prod(a.length for a in columns[:-1])
        return Partial(rows, self.column_length, columns[-1].length, [r for r in ranges if r[1]])

    @property
    def column_length(self) -> int:
        """The accumulators along the innermost axis of a reduction over rows."""
        last = self.segments[-1]
        return last.kept + -(-(last.stop - last.start) // self.width) * self.width

    def _find_widest(self) -> int:
        """Return the bytes of the widest element that is computed or loaded along the rows."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else None
        loaded = [u.node for u in self.loads if inner is None or u.strides[inner]]
        computed = [n for n in self.kernel.nodes if n.kind is FOLD or self.kernel.levels[n.number] != ROW]
        return max((n.dtype.itemsize for n in (*computed, *loaded)), default=8)

    def is_apart(self, use: Use, axis: int) -> bool:
        """Return whether the elements of a use are at a small stride along an axis, and loaded by whole vectors."""
        return 1 < use.strides[axis] <= MAX_APART and use.node.dtype.itemsize >= 4

    def _find_whole_loads(self) -> set[Use]:
        """Return the uses that are loaded for every element."""
        nodes = [n for n in self.kernel.nodes if n.kind not in READS]
        return {leaf for n in nodes for use in self.list_uses(n) for leaf in self.list_leaves(use)}

    def find_neighbours(self, use: Use, axis: int) -> tuple[int, int]:
        """Return the first and the last offset of the uses that lie between the elements of a use along an axis.

        A piece has no neighbours: it is loaded only where it is, which may be a part of the loops.
        """
        alike = {u.offset for u in self.whole_loads if u.node is use.node and u.strides == use.strides}
        if use.offset not in alike:
            return use.offset, use.offset
        first = last = min(alike)
        for offset in sorted(alike):
            if offset >= first + use.strides[axis]:
                if first <= use.offset <= last:
                    break
                first = offset
            last = offset
        return first, last

    def _find_uniform_uses(self) -> dict[Use, int]:
        """Return the uses with one value along the innermost axis, each with the pass before which it is known."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else None
        found: dict[Use, int] = {}

        def add_uniform(use: Use) -> None:
            is_computed, node = self.kernel.makes(use), use.node
            if inner is None or not use.strides[inner]:
                if is_computed or node.number in self.fused.virtual:
                    computed = [u.node.number for u in self.list_leaves(use) if self.kernel.makes(u)]
                    found[use] = max((self.stage[m] for m in computed), default=0)
            elif node.number in self.fused.virtual and not is_computed:
                for a in node.args:
                    add_uniform(use_argument(use, a))

        for n in self.kernel.nodes:
            if n.kind is FOLD or self.kernel.levels[n.number] != ROW:
                for use in self.list_uses(n):
                    add_uniform(use)
        return found

    def _count_lanes(self) -> int:
        """Return the lanes of a register: not more than a row needs, or has if stores cannot be masked."""
        _, columns = self.axes
        lanes = 1 if self.is_by_element else max(1, self.target.vector_bytes // self.widest)
        length = columns[-1].length if columns else 1
        while lanes > 1 and (lanes // 2 if self.target.has_masked_stores else lanes - 1) >= length:
            lanes //= 2
        return lanes

    def _count_registers(self) -> int:
        """Return the number of registers of a vector: several, if rows are long and elements contiguous."""
        rows, columns = self.axes
        if not columns or self.is_by_element or self._has_kind(TAKE) or any(map(is_minor, self.kernel.nodes)):
            return 1
        inner = columns[-1].members[-1]
        apart = self._find_apart(inner)
        if not all(self.is_apart(use, inner) for use in apart):
            return 1
        has_columns = len(apart) > 2 and self.kernel.cost >= MIN_SHARED_COST
        if has_columns or self._has_kind(STACK):
            return 1  # of each column: their computations overlap
        if self.rows_at_once > 1:
            return self.target.registers // (2 * self.rows_at_once)
        registers = MAX_REGISTERS
        if apart or self._is_plain():
            registers = PLAIN_REGISTERS
        elif self._is_independent():
            registers = INDEPENDENT_REGISTERS
        most = self._limit_registers(prod(a.length for a in rows))
        while registers > most:
            registers //= 2
        return registers

    def _has_kind(self, kind: Kind) -> bool:
        return any(n.kind is kind for n in self.kernel.nodes)

    def _find_apart(self, axis: int) -> list[Use]:
        """Return the uses whose elements are not neighbours along an axis, without those that are read by tiles."""
        return [use for use in self.loads if use.strides[axis] not in (0, 1) and use not in self.tiles]

    def _limit_registers(self, rows: int) -> int:
        """Return how many registers a vector may have beside the accumulators, such that a row is several vectors."""
        length = max(stop - start for start, stop, by_element in self.ranges if not by_element)
        if rows * length < FEW_VECTORS * self._count_lanes() and self.kernel.cost >= LONG_CODE_COST:
            return 1
        sums = max(sum(n.kind is FOLD for n in results) for results in self.results)
        vectors = MIN_VECTORS if rows < MANY_ROWS else 2
        return max(1, min(self.target.registers // (sums + 2), length // (vectors * self._count_lanes())))

    def _is_plain(self) -> bool:
        """Return whether every pass stores something, and all ops are plain arithmetic: few instructions each."""
        stores = all(any(n.kind is not FOLD for n in results) for results in self.results)
        is_cheap = self.kernel.cost < MIN_PLAIN_COST
        return stores and not is_cheap and all(estimate_cost(n) <= MAX_PLAIN_COST for n in self.kernel.nodes)

    def _is_independent(self) -> bool:
        """Return whether vectors are long, and most ops of the only pass do not wait for each other.

        With 4 registers such kernels run 0.98 to 1.05 times as fast as with 2, and compile 1.3 to 1.5 times as long.
        With vectors of 32 bytes they run up to 1.25 times as fast.
        """
        if self.passes > 1 or self.target.vector_bytes < 64 or self.kernel.cost < MIN_INDEPENDENT_COST:
            return False
        longest: dict[int, int] = {}  # cost of the longest chain of ops that ends with a node
        for n in self.kernel.nodes:
            computed = (
                u.node.number for use in self.list_uses(n) for u in self.list_leaves(use) if self.kernel.makes(u)
            )
            longest[n.number] = estimate_cost(n) + max((longest[m] for m in computed), default=0)
        return self.kernel.cost >= MIN_INDEPENDENT * max(longest.values(), default=1)

    def _sums_columns_in_registers(self) -> bool:
        """Return whether reductions over rows are computed for a vector of columns in several rows at a time."""
        _, columns = self.axes
        is_one_pass = self.passes == 1 and not self.row_reductions[0]
        return is_one_pass and len(columns) == 1 and any(self.is_column(n) for n in self.after)

    def _count_rows_by_columns(self) -> int:
        """Return how many rows are computed column by column, a vector for all before the next; 0 if each by itself.

        Accumulators of columns stay in registers for these rows; or neighbours in memory are in neighbouring rows, as
        in a transposed matrix, and share cache lines.
        """
        across = bool(self.across_rows) and not self.tiles
        return ROWS_BY_COLUMNS if self.sums_columns_in_registers or across else 0

    def _choose_runs(self) -> list[int]:
        """Return, by pass, the elements of a run, which is summed by itself; 0 if rows are short or have segments."""
        _, columns = self.axes
        is_long = bool(columns) and columns[-1].length > 8 * RUN_ELEMENTS and len(self.segments) == 1
        run = RUN_ELEMENTS // self.width * self.width
        return [run if is_long and folds else 0 for folds in self.row_reductions]

    def _find_uses_across_rows(self) -> list[Use]:
        """Return the uses whose neighbours in memory are in neighbouring rows, if the kernel is one pass along rows."""
        rows, columns = self.axes
        if self.passes > 1 or self.row_reductions[0] or len(columns) != 1 or not rows or self.block > 1:
            return []
        across, along = rows[-1].members[-1], columns[0].members[-1]
        is_long = columns[0].length >= LONG_SEGMENT
        return [u for u in self.loads if is_long and u.strides[along] > 1 and u.strides[across] == 1]

    def _find_tiles(self) -> list[Use]:
        """Return the uses across rows that are read by tiles, which are transposed for a block of rows and columns."""
        rows, columns = self.axes
        if self.sums_columns_in_registers or any(n.kind in READS for n in self.kernel.nodes):
            return []
        if not self.across_rows or not rows[-1].length >= self.tile_side > 1:
            return []
        along = columns[0].members[-1]
        return [u for u in self.across_rows if u.strides[along] > MAX_APART and u.node.dtype.itemsize >= 4]

    @property
    def tile_side(self) -> int:
        """The rows and columns of the squares that a tile is transposed by."""
        return min(self._count_lanes(), MAX_TILE_SIDE)

    @property
    def tile_rows(self) -> int:
        """The rows of a block that is read by tiles."""
        size = sum(u.node.nbytes for u in self.tiles)
        return TILE_ROWS if size <= self.target.second_cache else LARGE_TILE_ROWS

    @property
    def tile_columns(self) -> int:
        """The columns of a block that is read by tiles."""
        return max(TILE_ROW_BYTES // self.widest, self.width)

    @property
    def tile_pitch(self) -> int:
        """The elements from one row of a tile to the next: the last vector of a block may begin before it."""
        return self.tile_columns + max(self.width, 16)

    def _count_rows_at_once(self) -> int:
        """Return how many rows are reduced at the same time: several, if all use one vector, which is then loaded once.

        A matrix that the second-level cache does not hold is read row by row.
        """
        rows, columns = self.axes
        is_sum = self._sums_one_product() and prod(a.length for a in rows) >= ROWS_AT_ONCE
        if not is_sum or not 4 * self._count_lanes() <= columns[0].length <= LONGEST_SUM:
            return 1
        inner, row_bytes = columns[0].members[-1], columns[0].length * self.widest
        along = [u for u in self.loads if u.strides[inner]]
        is_matrix = len(along) == 2 and all(u.strides[inner] == 1 for u in along)
        is_shared = [self.is_same_for_rows(u) for u in along].count(True) == 1
        is_cached = sum(u.node.nbytes for u in along) <= self.target.second_cache and row_bytes <= MAX_ROW_BYTES
        return ROWS_AT_ONCE if is_matrix and is_shared and is_cached else 1

    def _sums_one_product(self) -> bool:
        """Return whether the kernel only sums something cheap along contiguous rows."""
        rows, columns = self.axes
        if self.split is None or self.passes > 1 or len(columns) != 1 or not rows or self.is_by_element:
            return False
        if len(self.ranges) > 1 or self.results[0] != self.row_reductions[0] or len(self.results[0]) != 1:
            return False
        nodes = [n for n in self.kernel.nodes if self.kernel.levels[n.number] == FULL]
        return all(n.kind not in READS for n in nodes) and sum(map(estimate_cost, nodes)) <= MAX_COST_AT_ONCE

    def sums_only_columns(self, number: int) -> bool:
        """Return whether a pass only reduces over rows, with a result for each column."""
        _, columns = self.axes
        return len(columns) == 1 and all(n.kind is FOLD and self.is_column(n) for n in self.results[number])

    def _cut(self, start: int, stop: int, by_element: bool) -> Cut:
        """Return how a segment is divided into vectors; the last one overlaps the one before, if that is possible."""
        length, width = stop - start, 1 if by_element else self.width
        if length < width and not self.piece_bounds:
            return Cut(width, start, Remainder(start, width, first_lanes(length, width), False))
        while width > length:
            width //= 2
        left = length % width
        if not left:
            return Cut(width, stop, None)
        last = min(width, self.lanes)
        while last < left:
            last *= 2
        shares_body = self._is_sharing_worth(length, width - last)
        last = width if shares_body else last
        return Cut(width, stop - left, Remainder(stop - last, last, last_lanes(left, last), True), shares_body)

    def _is_sharing_worth(self, length: int, more: int) -> bool:
        """Return whether a loop over whole vectors computes the last one, too, for which it takes ``more`` lanes.

        Code of its own for the last vector would take as long to compile as the loop.  In the loop, a mask is applied
        to what is reduced, which takes an instruction for each register.
        """
        folds = [n for results in self.results for n in results if n.kind is FOLD]
        return (
            self.kernel.cost >= MIN_SHARED_COST * self.passes
            and more <= MAX_SHARED_SHARE * length
            and all(n.dtype.kind != "b" and n.dtype.itemsize >= 4 for n in folds)
            and not self.is_transposed
        )

    # ---- rows at a time

    def _choose_row_block(self) -> RowBlock:
        """Return the block of rows that are computed together: several, if they are short or have costly values."""
        rows, _ = self.axes
        nodes, levels = self.kernel.nodes, self.kernel.levels
        folds = [n for n in nodes if n.kind is FOLD and levels[n.number] == ROW]
        if self.split is None or self.widest < 4 or not folds:
            return RowBlock(1, False)
        count, lanes = prod(a.length for a in rows), self.target.vector_bytes // self.widest
        if self._has_adjacent_elements():
            return RowBlock(self._count_adjacent_rows(lanes, len(folds)), True, True)
        if count >= lanes >= 4 and self._is_transposing_worth(lanes):
            return RowBlock(lanes, True)
        costly = {levels[n.number] for n in nodes if estimate_cost(n) >= MIN_KEPT_COST}
        is_worth = ROW in costly or self.rows_at_once > 1 or any(map(self.sums_only_columns, range(self.passes)))
        return RowBlock(self._count_cached_rows(count, lanes, costly) if is_worth else 1, False)

    def _has_adjacent_elements(self) -> bool:
        """Return whether neighbours in memory are in neighbouring rows, as for a reduction over a middle axis."""
        rows, columns = self.axes
        if len(columns) != 1 or not rows or rows[-1].length < 4 or any(n.kind in READS for n in self.kernel.nodes):
            return False
        if columns[0].length > LONGEST_SUM:
            return False
        if any(self.kernel.levels[n.number] == FULL for n in self.stored) or any(map(self.is_column, self.after)):
            return False
        across, along = rows[-1].members[-1], columns[0].members[-1]
        apart = [u for u in self.loads if u.strides[along] not in (0, 1)]
        return bool(apart) and all(u.strides[across] in (0, 1) for u in self.loads if u.strides[along])

    def _count_adjacent_rows(self, lanes: int, sums: int) -> int:
        """Return how many neighbouring rows are computed together: enough to fill some registers."""
        rows, _ = self.axes
        most = self.target.registers // (sums + 2)
        count = lanes * min(MAX_REGISTERS, 1 << max(most, 1).bit_length() - 1)
        while count > rows[-1].length:
            count //= 2
        return count

    @property
    def groups(self) -> int:
        """How many blocks of neighbouring rows there are along their last axis; the last may overlap the one before."""
        rows, _ = self.axes
        return -(-rows[-1].length // (self.tile_rows if self.tiles else self.block))

    def _count_cached_rows(self, count: int, lanes: int, costly: set[str]) -> int:
        """Return how many rows stay in the first-level cache between passes; 1 if they do not fill half a register.

        Rows that only the second-level cache holds fill a register if elements are cheap: where rows are costly, or so
        long that what all rows share would not stay in the first-level cache either.
        """
        own, shared = self._count_bytes_between_passes()
        rows = max(lanes, ROWS_OF_BLOCK)
        while rows > 1 and (2 * rows * own > self.target.first_cache or rows // 2 >= count):
            rows //= 2
        if 2 * rows >= lanes:
            return rows
        fills = costly == {ROW} or (not costly and own + shared > self.target.first_cache)
        is_near = 2 * lanes * own <= self.target.second_cache
        return lanes if fills and is_near and lanes <= count else 1

    def _count_bytes_between_passes(self) -> tuple[int, int]:
        """Return the bytes of what passes along a row read and keep: of each row, and of what all rows share."""
        _, columns = self.axes
        length = prod(a.length for a in columns)
        read = [u for u in self.loads if u.strides[-1]]
        own = [*self.scratch_nodes, *(u.node for u in read if not self.is_same_for_rows(u))]
        shared = [*(u.node for u in read if self.is_same_for_rows(u)), *filter(self.is_column, self.after)]
        of_row, of_all = (length * sum(n.dtype.itemsize for n in nodes) for nodes in (own, shared))
        return of_row, of_all

    def _is_transposing_worth(self, lanes: int) -> bool:
        """Return whether rows leave so many lanes empty that filling them gains more than transposing costs."""
        _, columns = self.axes
        if (
            len(columns) != 1
            or columns[0].length > MAX_TRANSPOSED_VECTORS * lanes
            or any(n.kind in READS or n.kind is STACK for n in self.kernel.nodes)
        ):
            return False
        length, width = columns[0].length, self._count_lanes()
        each = lanes if width == lanes else 0.7 * lanes  # half a vector costs less than a whole
        spent = -(-length // width) * each
        tiles = sum(map(self.is_tile, self.loads)) + sum(self.kernel.levels[n.number] == FULL for n in self.stored)
        return self.kernel.cost * (1 - length / spent) >= TRANSPOSE_COST * tiles

    def is_same_for_rows(self, use: Use) -> bool:
        """Return whether all rows use the same elements."""
        rows, _ = self.axes
        return not any(use.strides[a.members[-1]] for a in rows)

    def has_adjacent_rows(self, use: Use) -> bool:
        """Return whether the elements of neighbouring rows are neighbours."""
        rows, _ = self.axes
        return len(rows) == 1 and use.strides[rows[0].members[-1]] == 1

    def is_tile(self, use: Use) -> bool:
        """Return whether a use is read as a transposed tile if blocks of rows are transposed."""
        step = use.strides[self.axes[1][-1].members[-1]]
        return bool(step) and not self.is_same_for_rows(use) and not self.has_adjacent_rows(use)

    # ---- memory, and parts

    def _lay_out_scratch(self) -> ScratchArrays:
        """Return the layout of scratch memory: transposed tiles of loads and stores, and values for later passes."""
        tiles: dict[Any, Node] = {}
        if self.is_transposed and not self.has_adjacent_elements:
            tiles = {u: u.node for u in self.loads if self.is_tile(u)}
            tiles |= {n.number: n for n in self.stored if self.kernel.levels[n.number] == FULL}
            tiles |= {n.number: n for n in self.after if self.is_column(n)}
        kept = {n.number: n for n in self.scratch_nodes}
        sizes = {key: self.block * self.count_row_bytes(n) for key, n in (tiles | kept).items()}
        sizes |= {u: self._count_tile_bytes(u) for u in self.tiles}
        offsets = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
        return ScratchArrays(
            {k: offsets[k] for k in (*tiles, *self.tiles)}, {k: offsets[k] for k in kept}, sum(sizes.values())
        )

    def _count_tile_bytes(self, use: Use) -> int:
        """Return the bytes of a tile; squares of its last rows may begin before its first row."""
        return (self.tile_rows + self.tile_side) * self.tile_pitch * use.node.dtype.itemsize

    def _place_partial_results(self) -> dict[int, int]:
        """Return, by reduction over rows, the offset of its accumulators in the partial results of a part."""
        sizes = [self.count_partial_bytes(n) for n in self.after]
        return {n.number: sum(sizes[:i]) for i, n in enumerate(self.after)}

    def _plan_work(self) -> Work:
        """Return the work of the outermost loop: its rows, how many of them are a part, and the memory of a part."""
        rows, part = self._choose_parts()
        work = Work(rows, part, scratch=self.scratch.size)
        if work.parts == 1 and not any(map(self.is_column, self.after)):
            return work
        return work._replace(partial=sum(map(self.count_partial_bytes, self.after)))

    @property
    def has_partial_results(self) -> bool:
        """Whether reductions over rows have partial results; else the only part stores the results themselves."""
        return self.work.partial > 0

    def _choose_parts(self) -> tuple[int, int]:
        rows, columns = self.axes
        count, length = (prod(a.length for a in axes) for axes in (rows, columns))
        if self.is_flat:
            vectors = sum(-(-(s.stop - s.start) // s.cut.width) for s in self.segments)
            part = max(1, self._count_part(length) // self.width)
            while 1 == vectors % part < part and vectors > 1:  # the last vector must not overlap another part
                part += 1
            return vectors, part
        if self.has_adjacent_elements:
            count = count // rows[-1].length * self.groups
            return count, max(1, self._count_part(count * self.block * length) // (self.block * length))
        if self.tiles:
            count = count // rows[-1].length * self.groups
            return count, max(1, self._count_part(count * self.tile_rows * length) // (self.tile_rows * length))
        part = max(1, self._count_part(count * length) // max(length, 1))
        if any(self.is_column(n) for n in self.after):
            part = max(part, -(-count // 8))  # at most 8 parts, as each has accumulators for all columns
        return count, -(-part // self.block) * self.block

    def _count_part(self, size: int) -> int:
        """Return the elements of one part: fewer if each costs much, so that there are parts for all threads."""
        return min(
            PART_ELEMENTS, max(PART_ELEMENTS // 16, 9 * PART_ELEMENTS // max(self.kernel.cost, 1), size // MAX_PARTS)
        )
