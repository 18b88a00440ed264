"""The plan of a kernel's loops: axes, passes over rows, rows at a time, vector width, and scratch memory."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from pullback.compiler.builder import first_lanes, last_lanes
from pullback.compiler.ir.graph import Node, is_number, squeeze
from pullback.compiler.ir.kinds import FOLD, PIECES, TAKE, VIEW
from pullback.compiler.schedule.cost import estimate_cost
from pullback.compiler.schedule.fuse import AFTER, FULL, READS, ROW, Fused, Kernel, Use, use_argument, use_node
from pullback.compiler.schedule.work import Work
from pullback.compiler.target import Target

__all__ = ["Axis", "Cut", "LoopPlan", "Partial", "Remainder", "RowBlock", "Scratch", "Segment"]

MAX_REGISTERS = 4  # of a vector: their computations do not wait for each other
MIN_VECTORS = 3  # along a row, if they have several registers: for fewer, long code is not worth compiling
MANY_ROWS = 16  # of which two vectors are enough
MAX_SEGMENTS = 4  # ranges of an axis that have loops of their own, for pieces that lie along it
MAX_LONG_SEGMENTS = 12  # the same for long segments; the others are computed element by element
LONGEST_SUM = 2**15  # elements that are added up one after the other; longer rows are in runs, for precision
LONG_SEGMENT = 16  # elements of a long segment
MIN_KEPT_COST = 6  # cost of a value that is kept for later passes over the row, rather than computed again
PART_ELEMENTS = 16384  # elements of one part; the reductions of parts are combined in order
MAX_PARTS = 64  # parts into which fewer elements than PART_ELEMENTS each are divided
MAX_TRANSPOSED_VECTORS = 2  # vectors of a row that may be transposed
ROWS_OF_BLOCK = 16  # rows that are computed one after the other, if they stay in the cache
TRANSPOSE_COST = 2  # of each vector of a tile
ROWS_AT_ONCE = 4  # rows that are multiplied by the same vector
MAX_COST_AT_ONCE = 4  # cost of what is summed in rows that are computed at once
MAX_ROW_BYTES = 4096  # of rows that are computed at once: prefetched lines of longer ones do not arrive in time


class Axis(NamedTuple):
    """One axis of the loops: its length, and the axes of the kernel that are merged in it."""

    length: int
    members: tuple[int, ...]


class Segment(NamedTuple):
    """A range along the innermost axis in which vectors are of the same pieces; mostly the whole axis."""

    start: int
    stop: int
    by_element: bool  # many short pieces lie in it, so that it is done element by element
    kept: int  # where its values begin among those that are kept for later passes


class Remainder(NamedTuple):
    """The last vector of a segment, if whole vectors do not fill it."""

    start: int  # the index of its first lane
    width: int  # its lanes
    mask: str | None  # the lanes that no vector before it has
    overlaps: bool  # all its lanes are elements; else the mask has those that are


class Cut(NamedTuple):
    """A segment cut into vectors."""

    width: int
    stop: int  # where the whole vectors end
    last: Remainder | None


class RowBlock(NamedTuple):
    """How many rows are done at a time, and whether they are transposed: a vector has one element of each row."""

    rows: int
    is_transposed: bool
    is_adjacent: bool = False  # rows along the last of their axes lie side by side, so that nothing must be transposed


class Scratch(NamedTuple):
    """Where values are in scratch memory, and its size in bytes."""

    tiles: dict[Any, int]  # of transposed rows: of uses that are loaded, and of nodes by number
    kept: dict[int, int]  # for later passes over the row
    size: int


class Partial(NamedTuple):
    """Where the accumulators of a reduction over rows are, when a part is done."""

    rows: int  # along all axes of the columns but the innermost
    stride: int  # accumulators of each
    length: int  # elements of each
    ranges: list[tuple[int, int, int]]  # of these: the first, how many there are, and where their accumulators begin


class LoopPlan:
    """What is known of a kernel's loops before they are emitted."""

    def __init__(self, kernel: Kernel, fused: Fused, target: Target) -> None:
        self.kernel, self.fused, self.target = kernel, fused, target
        self.split = kernel.split
        self.stored = [n for n in kernel.nodes if n.number in fused.stored and kernel.levels[n.number] != AFTER]
        self.after = [n for n in kernel.nodes if kernel.levels[n.number] == AFTER]

    def uses_of(self, n: Node) -> list[Use]:
        """Return the uses of a node's arguments along the axes of the kernel."""
        if n.kind is VIEW:
            return [Use(n.args[0], n.data.offset, use_node(n, n.shape).strides)]
        if n.kind in READS:
            return READS[n.kind](n)
        shape = n.args[0].shape if n.kind is FOLD else n.shape
        uses = [use_node(a, shape) for a in n.args]
        missing = len(self.kernel.axes) - len(squeeze(shape))
        return [u._replace(strides=u.strides + (0,) * missing) for u in uses]

    def leaves(self, use: Use) -> list[Use]:
        """Return what must be loaded, or is computed in the kernel, for a use."""
        node = use.node
        if is_number(node):
            return []
        if node.number in self.fused.virtual and not self.kernel.makes(use):
            return [leaf for a in node.args for leaf in self.leaves(use_argument(use, a))]
        return [use]

    @cached_property
    def loads(self) -> list[Use]:
        found: dict[Use, None] = {}
        for n in self.kernel.nodes:
            for use in self.uses_of(n):
                for leaf in self.leaves(use):
                    if not self.kernel.makes(leaf):
                        found[leaf] = None
        return list(found)

    @cached_property
    def arrays(self) -> tuple[Node, ...]:
        """The arrays whose addresses the kernel is given: what it loads, and what it stores before the end."""
        read = [u.node for n in self.kernel.nodes if n.kind in READS for u in READS[n.kind](n) if is_number(u.node)]
        loaded = (use.node for use in self.loads)
        return tuple({n.number: n for n in (*loaded, *read, *self.stored)}.values())

    @cached_property
    def ahead(self) -> dict[int, int]:
        """Where the first use of an array that is only read begins: the kernel is given that address, so that an
        unrolled loop over ``x[0]``, ``x[1]``, … has one kernel.
        """
        found: dict[int, int] = {}
        for use in self.loads:
            found[use.node.number] = min(use.offset, found.get(use.node.number, use.offset))
        return {number: at for number, at in found.items() if at > 0 and number not in self.kernel.levels}

    def begin(self, use: Use) -> str:
        """Return where the elements of a use begin, counted from the address that the kernel is given."""
        return str(use.offset - self.ahead.get(use.node.number, 0))

    @cached_property
    def guards(self) -> dict[int, list[list[tuple[int, int]]]]:
        """The bounds of each piece along each axis of the kernel, for the nodes that are made of pieces."""
        return {
            n.number: [
                [(s, s + k) for s, k, length in zip(start, a.shape, n.shape, strict=True) if length != 1]
                for a, start in zip(n.args, n.data.starts, strict=True)
            ]
            for n in self.kernel.nodes
            if n.kind is PIECES
        }

    @cached_property
    def axes(self) -> tuple[list[Axis], list[Axis]]:
        """The axes over rows and along them, merged where all strides allow it."""
        lengths = self.kernel.axes
        stepping = [u.strides for u in self.loads] + [self.kernel.natural(n) for n in self.stored]
        split = self.split

        def merge(members: range) -> list[Axis]:
            out: list[Axis] = []
            for i in members:
                whole = all(g[i] == (0, lengths[i]) for guards in self.guards.values() for g in guards)
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
        ends = {end for guards in self.guards.values() for bounds in guards for end in bounds[axis]}
        return {0, self.kernel.axes[axis]} | ends

    def _count_segments(self, axis: int) -> int:
        return len(self._list_ends(axis)) - 1

    @cached_property
    def is_by_element(self) -> bool:
        """Whether the whole innermost axis is done element by element."""
        return all(by_element for _, _, by_element in self._ranges)

    @cached_property
    def _ranges(self) -> list[tuple[int, int, bool]]:
        """The segments of the innermost axis: where they begin and end, and whether they are done by element."""
        _, columns = self.axes
        if not columns:
            return [(0, 1, False)]
        length, first = columns[-1].length, columns[-1].members[0]
        ends = [end * (length // self.kernel.axes[first]) for end in sorted(self._list_ends(first))]
        found = [*pairwise(ends)]
        if len(found) <= MAX_SEGMENTS:
            return [(start, stop, False) for start, stop in found]
        long = sorted((r for r in found if r[1] - r[0] >= LONG_SEGMENT), key=lambda r: r[0] - r[1])[:MAX_LONG_SEGMENTS]
        made: list[tuple[int, int, bool]] = []
        for start, stop in found:
            by_element = (start, stop) not in long
            if by_element and made and made[-1][2]:
                start = made.pop()[0]
            made.append((start, stop, by_element))
        return made

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of the innermost axis."""
        made: list[Segment] = []
        kept = 0
        for start, stop, by_element in self._ranges:
            made.append(Segment(start, stop, by_element, kept))
            kept += -(-(stop - start) // self.width) * self.width
        return tuple(made)

    @property
    def flat(self) -> bool:
        """Whether the kernel is one loop; its parts are ranges of that loop, counted in vectors."""
        rows, columns = self.axes
        return not rows and len(columns) <= 1 and self.split is None

    @cached_property
    def stage(self) -> dict[int, int]:
        """The pass after which a value of a row is known, or in which a full one can be computed."""
        found: dict[int, int] = {}
        for n in self.kernel.nodes:
            known = [
                found[u.node.number] for use in self.uses_of(n) for u in self.leaves(use) if u.node.number in found
            ]
            found[n.number] = max(known, default=0) + (n.kind is FOLD and self.kernel.levels[n.number] == ROW)
        return found

    @cached_property
    def passes(self) -> int:
        """The number of passes over a row."""
        last = [
            self.stage[n.number] - (n.kind is FOLD and self.kernel.levels[n.number] == ROW)
            for n in self.kernel.nodes
            if self.kernel.levels[n.number] != ROW or n.kind is FOLD
        ]
        return max(last, default=0) + 1

    @cached_property
    def recomputed_nodes(self) -> frozenset[int]:
        """Values that several passes compute: a product must not be fused with a sum in one and rounded in another."""
        counts: Counter[int] = Counter()
        waiting, seen = list(self.kernel.nodes) if self.passes > 1 else [], set()
        while waiting:
            n = waiting.pop()
            for a in dict.fromkeys(x.args[0] if x.kind is VIEW else x for x in n.args):
                counts[a.number] += 1
                if a.number in self.fused.virtual and a.number not in seen:
                    seen.add(a.number)
                    waiting.append(a)
        return frozenset(number for number, count in counts.items() if count > 1)

    @cached_property
    def results(self) -> list[list[Node]]:
        """What is stored or reduced in each pass."""
        return [[n for n in self.kernel.nodes if self._is_result(n, number)] for number in range(self.passes)]

    @cached_property
    def row_reductions(self) -> list[list[Node]]:
        """The reductions along the row that are done in each pass."""
        levels = self.kernel.levels
        return [[n for n in results if n.kind is FOLD and levels[n.number] == ROW] for results in self.results]

    def _is_result(self, n: Node, number: int) -> bool:
        level = self.kernel.levels[n.number]
        if level == ROW:
            return n.kind is FOLD and self.stage[n.number] == number + 1
        is_stored = level == AFTER or n.number in self.fused.stored or n in self.scratch_nodes
        return is_stored and self.stage[n.number] == number

    @cached_property
    def scratch_nodes(self) -> list[Node]:
        """Costly values that a later pass needs and that are not stored anyway."""
        found: list[Node] = []
        for n in self.kernel.nodes:
            for use in self.uses_of(n):
                for u in self.leaves(use):
                    m = u.node
                    later = self.kernel.levels.get(m.number) == FULL and self.stage[n.number] > self.stage[m.number]
                    if later and n.kind is FOLD and self.kernel.levels[n.number] == ROW:
                        later = self.stage[n.number] - 1 > self.stage[m.number]
                    if (
                        later
                        and m not in found
                        and m.number not in self.fused.stored
                        and self._sum_costs(m) >= MIN_KEPT_COST
                    ):
                        found.append(m)
        return found

    def _sum_costs(self, n: Node) -> int:
        """Return the cost of computing a full value from what is loaded."""
        total = estimate_cost(n)
        for use in self.uses_of(n):
            for u in self.leaves(use):
                if self.kernel.levels.get(u.node.number) == FULL:
                    total += self._sum_costs(u.node)
        return total

    def count_row_bytes(self, n: Node) -> int:
        """Return the bytes of a row of a value that is kept, up to the end of the cache line and its last vector."""
        _, columns = self.axes
        outer = prod(a.length for a in columns[:-1])
        return -(-outer * self.row_length * n.dtype.itemsize // 64) * 64

    @cached_property
    def row_length(self) -> int:
        """The elements along the innermost axis of a value that is kept, up to the end of the last vector."""
        last = self.segments[-1]
        return last.kept + ((last.stop - last.start) // self.width + 1) * self.width

    def is_column(self, n: Node) -> bool:
        """Return whether a node is a reduction over rows with a result for each column."""
        return self.kernel.levels[n.number] == AFTER and bool(squeeze(n.shape))

    def count_partial_bytes(self, n: Node) -> int:
        """Return the bytes that a part leaves of a reduction over rows."""
        partial = self.lay_out_partial(n)
        return -(-partial.rows * partial.stride * max(n.dtype.itemsize, 1) // 64) * 64

    def lay_out_partial(self, n: Node) -> Partial:
        """Return where a part leaves a reduction over rows: for all columns one, or the numbers in order.

        Each vector of columns has accumulators of its own.  One that overlapped another would have to wait until that
        is stored.
        """
        _, columns = self.axes
        if not self.is_column(n) or self.is_transposed:
            size = max(n.size, 1)
            return Partial(1, size, size, [(0, size, 0)])
        return Partial(
            prod(a.length for a in columns[:-1]), self.column_length, columns[-1].length, self._column_ranges
        )

    @cached_property
    def column_length(self) -> int:
        """The accumulators along the innermost axis of a reduction over rows."""
        last = self.segments[-1]
        return last.kept + -(-(last.stop - last.start) // self.width) * self.width

    @cached_property
    def _column_ranges(self) -> list[tuple[int, int, int]]:
        found = []
        for segment in self.segments:
            start, stop, _, kept = segment
            _, whole, last = self.cut(segment)
            found.append((start, whole - start, kept))
            if last is not None:
                found.append((whole, stop - whole, kept + whole - start + whole - last.start))
        return [r for r in found if r[1]]

    @cached_property
    def widest(self) -> int:
        """The bytes of the widest element that is computed or loaded along the rows."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else None
        loaded = [u.node for u in self.loads if inner is None or u.strides[inner]]
        made = [n for n in self.kernel.nodes if n.kind is FOLD or self.kernel.levels[n.number] != ROW]
        return max((n.dtype.itemsize for n in (*made, *loaded)), default=8)

    @cached_property
    def even(self) -> dict[Use, int]:
        """Uses that are the same all along a row, with the pass before which each is known."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else None
        found: dict[Use, int] = {}

        def look(use: Use) -> None:
            here, node = self.kernel.makes(use), use.node
            if inner is None or not use.strides[inner]:
                if here or node.number in self.fused.virtual:
                    made = [u.node.number for u in self.leaves(use) if self.kernel.makes(u)]
                    found[use] = max((self.stage[m] for m in made), default=0)
            elif node.number in self.fused.virtual and not here:
                for a in node.args:
                    look(use_argument(use, a))

        for n in self.kernel.nodes:
            if n.kind is FOLD or self.kernel.levels[n.number] != ROW:
                for use in self.uses_of(n):
                    look(use)
        return found

    def _count_lanes(self) -> int:
        """Return the lanes of a register along a row: with masks a few more than elements, else not more."""
        _, columns = self.axes
        lanes = 1 if self.is_by_element else max(1, self.target.vector_bytes // self.widest)
        length = columns[-1].length if columns else 1
        while lanes > 1 and (lanes // 2 if self.target.has_masked_stores else lanes - 1) >= length:
            lanes //= 2
        return lanes

    def _count_registers(self) -> int:
        """Return the registers of a vector: several, if rows are long and elements lie side by side."""
        rows, columns = self.axes
        if not columns or self.is_by_element or any(n.kind is TAKE for n in self.kernel.nodes):
            return 1
        inner = columns[-1].members[-1]
        length = max(stop - start for start, stop, by_element in self._ranges if not by_element)
        if any(use.strides[inner] not in (0, 1) for use in self.loads):
            return 1
        registers, lanes = MAX_REGISTERS, self._count_lanes()
        sums = max(sum(n.kind is FOLD for n in results) for results in self.results)
        if self.rows_at_once > 1:
            return self.target.registers // (2 * self.rows_at_once)
        vectors = MIN_VECTORS if prod(a.length for a in rows) < MANY_ROWS else 2
        most = min(self.target.registers // (sums + 2), length // (vectors * lanes))
        while registers > max(most, 1):
            registers //= 2
        return registers

    @cached_property
    def sums_columns_in_registers(self) -> bool:
        """Whether reductions over rows are done for some columns of several rows at a time."""
        _, columns = self.axes
        is_one_pass = self.passes == 1 and not self.row_reductions[0]
        return is_one_pass and len(columns) == 1 and any(self.is_column(n) for n in self.after)

    @cached_property
    def reads_across_rows(self) -> bool:
        """Whether neighbouring elements that are read lie in neighbouring rows, as those of a transposed matrix do.

        Each vector is then done for several rows, which are the same cache lines, before the next one is.
        """
        rows, columns = self.axes
        if self.passes > 1 or self.row_reductions[0] or len(columns) != 1 or not rows or self.block > 1:
            return False
        across, along = rows[-1].members[-1], columns[0].members[-1]
        return (
            any(u.strides[along] > 1 and u.strides[across] == 1 for u in self.loads)
            and columns[0].length >= LONG_SEGMENT
        )

    @cached_property
    def rows_at_once(self) -> int:
        """How many rows are reduced at the same time: several, if all are multiplied by the same vector.

        That vector is then loaded once for them.  A matrix that the second cache does not hold is read row by row.
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
        """Return whether all that the kernel does is to sum something cheap along contiguous rows."""
        rows, columns = self.axes
        if self.split is None or self.passes > 1 or len(columns) != 1 or not rows or self.is_by_element:
            return False
        if len(self._ranges) > 1 or self.results[0] != self.row_reductions[0] or len(self.results[0]) != 1:
            return False
        nodes = [n for n in self.kernel.nodes if self.kernel.levels[n.number] == FULL]
        return all(n.kind not in READS for n in nodes) and sum(map(estimate_cost, nodes)) <= MAX_COST_AT_ONCE

    def sums_only_columns(self, number: int) -> bool:
        """Return whether all that a pass does is to reduce over rows, with a result for each column."""
        _, columns = self.axes
        return len(columns) == 1 and all(n.kind is FOLD and self.is_column(n) for n in self.results[number])

    def cut(self, segment: Segment) -> Cut:
        """Return the vectors of a segment; its last one overlaps the one before."""
        start, stop, by_element, _ = segment
        length, width = stop - start, 1 if by_element else self.width
        if length < width and not self.guards:
            return Cut(width, start, Remainder(start, width, first_lanes(length, width), False))
        while width > length:
            width //= 2
        left = length % width
        if not left:
            return Cut(width, stop, None)
        last = min(width, self.lanes)
        while last < left:
            last *= 2
        return Cut(width, stop - left, Remainder(stop - last, last, last_lanes(left, last), True))

    # ---- rows at a time

    @cached_property
    def row_block(self) -> RowBlock:
        """How many rows are done at a time: several, if they are short or much is computed once for each row."""
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
        is_worth = (
            any(levels[n.number] == ROW and estimate_cost(n) >= MIN_KEPT_COST for n in nodes) or self.rows_at_once > 1
        )
        if not is_worth and not any(map(self.sums_only_columns, range(self.passes))):
            return RowBlock(1, False)
        return RowBlock(self._count_cached_rows(count, lanes), False)

    def _has_adjacent_elements(self) -> bool:
        """Return whether neighbouring elements are of neighbouring rows: a reduction over a middle axis, say."""
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
        """Return how many neighbouring rows are done at a time: some registers full."""
        rows, _ = self.axes
        most = self.target.registers // (sums + 2)
        count = lanes * min(MAX_REGISTERS, 1 << max(most, 1).bit_length() - 1)
        while count > rows[-1].length:
            count //= 2
        return count

    @property
    def has_adjacent_elements(self) -> bool:
        """Whether a vector has neighbouring elements of the rows of a block."""
        return self.row_block.is_adjacent

    @property
    def groups(self) -> int:
        """How many blocks there are along the last axis of rows that lie side by side; the last overlaps another."""
        rows, _ = self.axes
        return -(-rows[-1].length // self.block)

    def _count_cached_rows(self, count: int, lanes: int) -> int:
        """Return how many rows stay in the first cache from one pass to the next; 1 if not even half a register."""
        _, columns = self.axes
        length = prod(a.length for a in columns)
        kept = sum(n.dtype.itemsize for n in self.scratch_nodes)
        full = kept + sum(u.node.dtype.itemsize for u in self.loads if u.strides[-1])
        rows = max(lanes, ROWS_OF_BLOCK)
        while rows > 1 and (2 * rows * full * length > self.target.first_cache or rows // 2 >= count):
            rows //= 2
        return rows if 2 * rows >= lanes else 1

    def _is_transposing_worth(self, lanes: int) -> bool:
        """Return whether rows leave so many lanes empty that filling them is worth more than transposing costs."""
        _, columns = self.axes
        if (
            len(columns) != 1
            or columns[0].length > MAX_TRANSPOSED_VECTORS * lanes
            or any(n.kind in READS for n in self.kernel.nodes)
        ):
            return False
        length, width = columns[0].length, self._count_lanes()
        each = lanes if width == lanes else 0.7 * lanes  # half a vector costs less than a whole
        spent = -(-length // width) * each
        tiles = sum(map(self.is_tile, self.loads)) + sum(self.kernel.levels[n.number] == FULL for n in self.stored)
        return self.kernel.cost * (1 - length / spent) >= TRANSPOSE_COST * tiles

    @cached_property
    def block(self) -> int:
        """The rows that are done at a time."""
        return self.row_block.rows

    @cached_property
    def is_transposed(self) -> bool:
        """Whether a vector has one element of each row of a block."""
        return self.row_block.is_transposed

    @cached_property
    def width(self) -> int:
        """The lanes of a vector."""
        return self.lanes * (1 if self.is_transposed else self._count_registers())

    @cached_property
    def lanes(self) -> int:
        """The lanes of a register."""
        return self.block if self.is_transposed else self._count_lanes()

    def is_same_for_rows(self, use: Use) -> bool:
        """Return whether all rows use the same elements."""
        rows, _ = self.axes
        return not any(use.strides[a.members[-1]] for a in rows)

    def has_adjacent_rows(self, use: Use) -> bool:
        """Return whether the elements of neighbouring rows are neighbours."""
        rows, _ = self.axes
        return len(rows) == 1 and use.strides[rows[0].members[-1]] == 1

    def is_tile(self, use: Use) -> bool:
        """Return whether a use is read as a transposed tile, if rows are transposed."""
        step = use.strides[self.axes[1][-1].members[-1]]
        return bool(step) and not self.is_same_for_rows(use) and not self.has_adjacent_rows(use)

    # ---- memory, and parts

    @cached_property
    def scratch(self) -> Scratch:
        """Scratch memory: transposed tiles of what is loaded, stored or summed over rows, and values for later."""
        tiles: dict[Any, Node] = {}
        if self.is_transposed and not self.has_adjacent_elements:
            tiles = {u: u.node for u in self.loads if self.is_tile(u)}
            tiles |= {n.number: n for n in self.stored if self.kernel.levels[n.number] == FULL}
            tiles |= {n.number: n for n in self.after if self.is_column(n)}
        kept = {n.number: n for n in self.scratch_nodes}
        size = 0
        places: list[int] = []
        for n in (*tiles.values(), *kept.values()):
            places.append(size)
            size += self.block * self.count_row_bytes(n)
        at = iter(places)
        return Scratch({key: next(at) for key in tiles}, {key: next(at) for key in kept}, size)

    @cached_property
    def partial_at(self) -> dict[int, int]:
        """Where in the memory of a part each reduction over rows is."""
        sizes = [self.count_partial_bytes(n) for n in self.after]
        return {n.number: sum(sizes[:i]) for i, n in enumerate(self.after)}

    @cached_property
    def work(self) -> Work:
        """The rows of the outermost loop, how many of them are a part, and the memory that a part needs."""
        rows, part = self._choose_parts()
        return Work(rows, part, sum(map(self.count_partial_bytes, self.after)), self.scratch.size)

    def _choose_parts(self) -> tuple[int, int]:
        rows, columns = self.axes
        count, length = (prod(a.length for a in axes) for axes in (rows, columns))
        if self.flat:
            vectors = sum(-(-(s.stop - s.start) // self.cut(s).width) for s in self.segments)
            part = max(1, self._count_part(length) // self.width)
            while 1 == vectors % part < part and vectors > 1:  # the last vector must not overlap another part
                part += 1
            return vectors, part
        if self.has_adjacent_elements:
            count = count // rows[-1].length * self.groups
            return count, max(1, self._count_part(count * self.block * length) // (self.block * length))
        part = max(1, self._count_part(count * length) // max(length, 1))
        if any(self.is_column(n) for n in self.after):
            part = max(part, -(-count // 8))  # each part has a row of its own to add up in
        return count, -(-part // self.block) * self.block

    def _count_part(self, size: int) -> int:
        """Return the elements of one part: fewer if each takes long, so that there are enough for all threads."""
        return min(
            PART_ELEMENTS, max(PART_ELEMENTS // 16, 9 * PART_ELEMENTS // max(self.kernel.cost, 1), size // MAX_PARTS)
        )
