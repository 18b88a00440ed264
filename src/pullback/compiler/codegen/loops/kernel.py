"""One kernel as text: loops over rows and along them, with what is computed in each pass.

A kernel is a function of the addresses of its arrays and of the part of its rows that it is to do.  What is folded over
all of them is left for that part in ``partial``, and put together afterwards in a fixed order: so the result does not
depend on who did which part.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from pullback.compiler.builder import Value, code_of, first_lanes, literal, splat, vector
from pullback.compiler.codegen.loops.reductions import Finish
from pullback.compiler.codegen.loops.row_blocks import Blocks
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import FOLD, PIECES, TAKE
from pullback.compiler.schedule.fuse import ROW, Use, placed, rows_of, taken
from pullback.compiler.schedule.loops import Axis

__all__ = ["Writer", "Written"]

PART = 16384  # elements of one part; their partial sums are added in order
MANY = 64  # parts of fewer elements are made up to this number
RUN = 4096  # elements along a row that are added up before they join the sum of the others


class Written(NamedTuple):
    """A kernel as text, with what it must be given."""

    body: str
    arrays: tuple[Node, ...]  # whose addresses it takes
    rows: int
    part: int  # rows of one part
    partial: int  # bytes that each part leaves
    scratch: int  # bytes that it needs for itself
    finish: str  # the text of the function that puts the parts together, if there is anything to put
    declared: frozenset[str]
    helpers: tuple[tuple[str, str], ...]
    ahead: tuple[int, ...] = ()  # where in the first arrays the addresses that it takes are, in elements


class Writer(Blocks):
    """Writes one kernel."""

    def write(self) -> Written:
        code = self.code
        rows, columns = self.axes
        count = prod(a.length for a in rows)
        width = prod(a.length for a in columns)
        self._choose()
        self.width = self.block if self.across else self._width(columns)
        self._lay_scratch()
        if self.flat:
            total = width
            part = max(self.width, self._part(width) // self.width * self.width)
        else:
            total, part = count, max(1, self._part(count * width) // max(width, 1))
            if any(self._is_column(n) for n in self.after):
                part = max(part, -(-count // 8))  # each part has a row of its own to add up in
            part = -(-part // self.block) * self.block
        for n in self.after:
            size = self._partial_size(n)
            self.partial_at[n.number] = sum(map(self._partial_size, self.after[: self.after.index(n)]))
            assert size % 64 == 0
        self._begin_after()
        if self.flat:
            self._flat(columns)
        else:
            with code.loop("%lo", "%hi", self.block) as row:
                if self.across:
                    self._side_by_side(row, columns)
                elif self.block > 1:
                    self._one_by_one(row, rows, columns)
                else:
                    self._row(row, rows, columns)
        self._end_after()
        return self._packed(total, part)

    def _part(self, size: int) -> int:
        """Elements of one part: fewer, where each takes long, so that threads find enough parts; but not many parts."""
        return min(PART, max(PART // 16, 9 * PART // max(self.kernel.cost, 1), size // MANY))

    def _packed(self, total: int, part: int) -> Written:
        code = self.code
        params = "".join(f"ptr noalias %a{i}, " for i in range(len(self.arrays)))
        head = f"define internal void @KERNEL({params}i64 %lo, i64 %hi, ptr %partial, ptr %scratch) noinline {{\nentry:"
        body = "\n".join([head, *code.entry, *code.lines, "ret void", "}"])
        partial = sum(map(self._partial_size, self.after))
        finish = Finish(self).text() if self.after else ""
        arrays = (*self.arrays, *(n for n in self.after))
        declared, helpers = frozenset(code.declared), tuple(code.helpers.items())
        ahead = tuple(self.ahead.get(n.number, 0) for n in self.arrays)
        return Written(body, arrays, total, part, partial, self.scratch, finish, declared, helpers, ahead)

    def _row(self, row: str, rows: list[Axis], columns: list[Axis]) -> None:
        """One row: every pass along it."""
        self.row, self.row_values, self.row_memo = row, {}, {}
        self.places_of_row = self.places(row, rows)
        for number in range(self.passes):
            self._pass(number, columns)
        self._store_rows()

    def _one_by_one(self, row: str, rows: list[Axis], columns: list[Axis]) -> None:
        """A block of rows: each pass along all of them, then what is computed of all at once."""
        code = self.code
        self._begin_block(row)
        code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
        count = code.op(f"call i64 @llvm.smin.i64(i64 {self.block}, i64 {code.op(f'sub i64 %hi, {row}')})")
        for number in range(self.passes):
            if self._done_in(number):
                self._keep_rows(number)
                with code.loop("0", count) as self.lane:
                    self.row_memo = {}
                    self.places_of_row = self.places(code.add(row, self.lane), rows)
                    self._pass(number, columns)
        self._store_rows()

    def _side_by_side(self, row: str, columns: list[Axis]) -> None:
        """A block of rows: each pass along all of them at the same time."""
        code, (inner,) = self.code, columns
        self._begin_block(row)
        self._read_tiles(inner)
        for number in range(self.passes):
            done = self._done_in(number)
            folds = [n for n in done if n.kind is FOLD and self.kernel.levels[n.number] == ROW]
            self.accumulators = {n.number: self._accumulator(n) for n in folds}
            if done:
                hoisted = self._hoisted_rows(number, inner)
                with code.loop("0", inner.length) as self.column:
                    self._columns(code.times(self.column, self.block), self.row_mask, number, hoisted, self.block)
            for n in folds:
                self.row_values[n.number] = self._loaded(n, self.accumulators[n.number])
        self._write_tiles(inner)
        self._store_rows()

    def _flat(self, columns: list[Axis]) -> None:
        self.places_of_row = {}
        self.row_memo = {}
        code, w = self.code, self.width
        if not columns:
            self._columns("0", None, 0, {}, 1)
            return
        length = columns[-1].length
        full = length // w * w
        axis = columns[-1].members[-1]
        hoisted = self._hoisted(0, columns)
        if full:
            stop = code.op(f"call i64 @llvm.smin.i64(i64 %hi, i64 {full})")
            code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
            some, done = code.block("some"), code.block("done")
            code.branch(code.op(f"icmp slt i64 %lo, {stop}"), some, done)
            code.begin(some)
            with code.loop("%lo", stop, w) as i:
                self._columns(i, None, 0, hoisted, w, axis)
            code.jump(done)
            code.begin(done)
        if full < length:
            tail, end = code.block("tail"), code.block("end")
            code.branch(code.op(f"icmp eq i64 %hi, {length}"), tail, end)
            code.begin(tail)
            self._columns(str(full), first_lanes(length - full, w), 0, hoisted, w, axis)
            code.jump(end)
            code.begin(end)

    def _pass(self, number: int, columns: list[Axis]) -> None:
        """Once along a row."""
        code = self.code
        done = self._done_in(number)
        self.accumulators: dict[int, str] = {}
        for n in done:
            if n.kind is FOLD and self.kernel.levels[n.number] == ROW:
                self.accumulators[n.number] = self._accumulator(n)
        if not done:
            return
        if not columns:
            self._columns("0", None, number, self._hoisted(number, columns), 1)
        else:
            outer, inner = columns[:-1], columns[-1]
            if outer:
                with code.loop("0", prod(a.length for a in outer)) as i:
                    before = self.places_of_row
                    self.places_of_row = {**before, **self.places(i, outer)}
                    self.row_memo, kept = {}, self.row_memo
                    self._along(number, inner)
                    self.places_of_row, self.row_memo = before, kept
            else:
                self._along(number, inner)
        for n in done:
            if n.number in self.accumulators:
                folded = self._across(n, self._loaded(n, self.accumulators[n.number]))
                if self.block == 1:
                    self.row_values[n.number] = folded
                else:
                    self._write(folded, self._room_of(n, self.lane), None)

    def _along(self, number: int, inner: Axis) -> None:
        code, w, axis = self.code, self.width, inner.members[-1]
        full = inner.length // w * w
        hoisted = self._hoisted(number, [inner])
        sums = [n for n in self._done_in(number) if n.number in self.accumulators]
        if full > 8 * RUN and sums:  # long rows: sums of runs, then the sum of these
            run = RUN // w * w
            totals = {n.number: self._accumulator(n) for n in sums}
            with code.loop("0", full // run) as r:
                for n in sums:
                    self._reset(n, self.accumulators[n.number])
                base = code.times(r, run)
                with code.loop("0", run, w) as i:
                    self._columns(code.add(base, i), None, number, hoisted, w, axis)
                for n in sums:
                    self._fold_into(n, totals[n.number], self._loaded(n, self.accumulators[n.number]))
            for n in sums:
                self._reset(n, self.accumulators[n.number])
            if full // run * run < full:
                with code.loop(str(full // run * run), full, w) as i:
                    self._columns(i, None, number, hoisted, w, axis)
            self._tail(number, inner, hoisted)
            for n in sums:
                self._fold_into(n, totals[n.number], self._loaded(n, self.accumulators[n.number]))
                self.accumulators[n.number] = totals[n.number]
            return
        if full > w:
            with code.loop("0", full, w) as i:
                self._columns(i, None, number, hoisted, w, axis)
        elif full:
            self._columns("0", None, number, hoisted, w, axis)
        self._tail(number, inner, hoisted)

    def _tail(self, number: int, inner: Axis, hoisted: dict[Any, Value]) -> None:
        full = inner.length // self.width * self.width
        if full < inner.length:
            mask = first_lanes(inner.length - full, self.width)
            self._columns(str(full), mask, number, hoisted, self.width, inner.members[-1])

    def _hoisted(self, number: int, columns: list[Axis]) -> dict[Any, Value]:
        """What is the same all along: loaded once, before the loop."""
        inner = columns[-1].members[-1] if columns else None
        same = [use for use in self.loads if inner is None or not use.steps[inner]]
        found: dict[Any, Value] = {use: self._splat(self._row_scalar(use), self.width) for use in same}
        for use, stage in self.even.items():
            if stage <= number:
                found[use] = self._splat(self._row_scalar(use), self.width)
        return found

    def _columns(
        self, index: str, mask: str | None, number: int, hoisted: dict[Any, Value], width: int, axis: int | None = None
    ) -> None:
        """One vector along the row: everything that this pass does there."""
        memo: dict[Any, Value] = {}

        def value(use: Use) -> Value:
            key: Any = use
            if key not in memo:
                memo[key] = computed(use)
            return memo[key]

        def computed(use: Use) -> Value:
            node = use.node
            if is_number(node):
                return self._number(node, width)
            if use in hoisted:
                return hoisted[use]
            if self.kernel.makes(use):
                kept = self.stage[node.number] < number
                if kept and node.number in self.scratch_at:
                    return self._load_scratch(node, index, None if self.across else mask, width)
                if kept and node.number in self.fused.stored:
                    return self._full(use, index, mask, width, axis)
                if node.kind is PIECES:
                    return self._pieces(node, index, mask, width, axis, value)
                if node.kind is TAKE:
                    return self._take(node, index, mask, width, axis, value)
                return self._computed(node, [value(u) for u in self.given(node)], width)
            if node.number in self.fused.virtual:
                return self._computed(node, [value(taken(use, a)) for a in node.args], width)
            return self._full(use, index, mask, width, axis)

        if 0 < number == self.passes - 1 and axis is not None and mask is None:
            self._fetch_ahead(index, width, axis)
        for n in self._done_in(number):
            if n.kind is FOLD:
                (use,) = self.given(n)
                self._fold_lanes(n, value(use), mask, index, axis)
            else:
                use = Use(n, 0, self.kernel.natural(n))
                v = value(use)
                if n in self.scratch_nodes:
                    self._store_scratch(v, n, index, None if self.across else mask)
                if n.number in self.fused.stored and self.across:
                    self._write(v, self._tile_place(n.number, n, index), None)
                elif n.number in self.fused.stored:
                    self._store(v, n, self._place(use, index, axis), mask)

    def _full(self, use: Use, index: str, mask: str | None, width: int, axis: int | None) -> Value:
        """A vector of what lies in memory for every place."""
        if self.across:
            return self._loaded_across(use, index)
        return self._vector_load(use, index, mask, width, axis)

    def _pieces(
        self, n: Node, index: str, mask: str | None, width: int, axis: int | None, value: Callable[[Use], Value]
    ) -> Value:
        """Each piece where it lies, the filling elsewhere."""
        code, dtype = self.code, code_of(n.dtype)
        v = Value(code, literal(n.data.fill, dtype, width), dtype, width)
        rows, columns = self.axes
        joined = {a.members[-1]: a for a in (*rows, *columns)}
        for use, guard in zip(placed(n), self.guards[n.number], strict=True):
            inside = mask or literal(True, "b1", width)
            for i, a in joined.items():
                first, last = guard[a.members[0]]  # an axis that was joined is covered but for its outermost member
                within = a.length // self.kernel.axes[a.members[0]]
                first, last = first * within, last * within
                if (first, last) == (0, a.length):
                    continue
                place = self.places_of_row.get(i, index) if i != axis else index
                here = self._lane_places(place, width) if i == axis else splat(code, place, "i64", width)
                whole = vector("i64", width)
                moved = code.op(f"sub {whole} {here}, {literal(first, 'i8', width)}")
                near = code.op(f"icmp ult {whole} {moved}, {literal(last - first, 'i8', width)}")
                inside = code.op(f"and {vector('i1', width)} {inside}, {near}")
            made = self.kernel.makes(use)
            got = value(use) if made else self._guarded_load(use, index, inside, width, axis)
            v = v.like(code.op(f"select {vector('i1', width)} {inside}, {v.type} {got.name}, {v.type} {v.name}"))
        return v

    def _take(
        self, n: Node, index: str, mask: str | None, width: int, axis: int | None, value: Callable[[Use], Value]
    ) -> Value:
        """Elements of rows that are found by their positions: one row, or a row for each lane."""
        at, use = rows_of(n)
        length, made = prod(n.args[0].shape[1:]), self.kernel.makes(at)
        if axis is None or at.steps[axis] == 0:
            row = (value(at) if made else self._row_scalar(at)).name
            place = self.code.add(self._place(use, index, axis), self.code.times(row, length))
            step = 1 if axis is None else use.steps[axis]
            if step == 1 or width == 1:
                return self._load(use.node, place, mask, width)
            return self._gather(use.node, place, step, mask, width)
        rows = value(at) if made else self._vector_load(at, index, mask, width, axis)
        return self._gather_at(use.node, self._place(use, index, axis), rows * length if length != 1 else rows, mask)
