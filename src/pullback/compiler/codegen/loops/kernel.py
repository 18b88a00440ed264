"""Loop kernels: from the plan of a kernel's loops (``schedule/loops.py``) to its function.

A kernel is a function of the addresses of its arrays and of a range of rows, one part of its work.  It makes one or
several passes along each row.  Reductions over rows are computed for each part, stored in ``partial``, and combined
afterwards in a fixed order (``reductions.emit_finish``), so that results do not depend on which thread did which part;
if there is one part, it stores the result itself.
``KernelWriter`` emits the loops, ``VectorBody`` what is inside the innermost one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod

from pullback.compiler.builder import Code, Value
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.codegen.loops.access import ArrayAccess, get_memory_type, split_index
from pullback.compiler.codegen.loops.reductions import Reductions, reduce_lanes
from pullback.compiler.codegen.loops.row_blocks import RowValues, broadcast, take_lanes
from pullback.compiler.codegen.loops.transpose import Tile
from pullback.compiler.codegen.loops.vector_body import KernelEmitters, Lanes, VectorBody
from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.fuse import Use
from pullback.compiler.schedule.loops import Axis, AxisSegment, LoopPlan, Remainder

MANY_LINES = 128  # lines of code from which on values may be spilled to the stack


class KernelWriter:
    """Emits the loops of one kernel."""

    def __init__(self, plan: LoopPlan, overwrites: bool, flags_rare: bool) -> None:
        self.overwrites = overwrites  # whether a result is written over an operand
        self.plan, self.code = plan, Code(plan.target.has_fma, plan.target.vector_bytes)
        self.code.flags_rare = flags_rare
        self.access = ArrayAccess(self.code, plan)
        self.reductions = Reductions(self.code, plan, self.access)
        self.rows = RowValues(self.code, plan, self.access)
        self.parts = KernelEmitters(self.code, plan, self.access, self.reductions, self.rows)

    def write(self) -> KernelCode:
        """Return the kernel's function."""
        plan, code = self.plan, self.code
        rows, columns = plan.axes
        self.reductions.begin_part()
        if plan.is_flat:
            self._emit_flat(columns)
        elif plan.tiles:
            self._emit_tiles(rows, columns[0])
        elif plan.rows_by_columns:
            self._emit_columns(rows, columns[0])
        else:
            with code.loop("%lo", "%hi", 1 if plan.has_adjacent_elements else plan.block) as row:
                if plan.is_transposed:
                    self._emit_transposed(row, columns)
                elif plan.block > 1:
                    self._emit_block(row, rows, columns)
                else:
                    self._emit_row(row, rows, columns)
        self.reductions.end_part()
        return self._finish()

    def _finish(self) -> KernelCode:
        """Return what was emitted as a function."""
        code, plan = self.code, self.plan
        addresses = [f"ptr noalias %a{i}" for i in range(len(plan.arrays))]
        if not plan.has_partial_results:
            addresses += [f"ptr %o{i}" for i in range(len(plan.after))]
        # The stack is aligned so that vectors that are spilled do not cross cache lines.
        aligned = f"alignstack({plan.target.vector_bytes}) " if len(code.lines) > MANY_LINES else ""
        params = *addresses, *RANGE[:3], "ptr %scratch"
        return make_kernel(code, *params, attributes=f"noinline {aligned}")

    # ---- loops over rows

    def _emit_row(self, row: str, rows: list[Axis], columns: list[Axis]) -> None:
        """Emit every pass along one row."""
        self.rows.begin_row(row, split_index(self.code, row, rows))
        for number in range(self.plan.passes):
            self._emit_pass(number, columns)
        self.rows.store()

    def _emit_block(self, row: str, rows: list[Axis], columns: list[Axis]) -> None:
        """Emit each pass along the rows of a block, one after the other, then the values that are computed per row."""
        code, plan = self.code, self.plan
        self.rows.begin_block(row)
        count = code.minimum(plan.block, code.op(f"sub i64 %hi, {row}"))
        for number in range(plan.passes):
            if not plan.results[number]:
                continue
            self.rows.keep_for_rows(number)
            if plan.sums_only_columns(number):
                self._emit_columns_of_block(number, row, count, rows, columns[0])
                continue
            if plan.rows_at_once > 1:
                self._emit_rows_at_once(row, count, rows, columns[0])
                continue
            with self._each_row(row, count, rows):
                self._emit_pass(number, columns)
        self.rows.store()

    def _emit_rows_at_once(self, row: str, count: str, rows: list[Axis], inner: Axis) -> None:
        """Emit the only pass along a few rows at the same time; missing rows are the last one again."""
        code, plan, reductions = self.code, self.plan, self.reductions
        (n,), axis = plan.row_reductions[0], inner.members[-1]
        with code.loop("0", count, plan.rows_at_once) as first:
            states = []
            for r in range(plan.rows_at_once):
                lane = code.minimum(code.add(first, str(r)), code.add(count, "-1"))
                self.rows.begin_row_of_block(split_index(code, code.add(row, lane), rows))
                hoisted = self._hoist(0, axis, plan.width)
                states.append((lane, self.access.places, reductions.allocate(n), hoisted))

            def emit(lanes: Lanes) -> None:
                shared: dict[Use, Value] = {}
                for _, self.access.places, reductions.accumulators[n.number], hoisted in states:
                    row_values = {use: take_lanes(v, lanes.width) for use, v in hoisted.items()}
                    body = VectorBody(self.parts, 0, row_values, lanes)
                    body.values.update(shared)
                    body.emit()
                    shared = {u: v for u, v in body.values.items() if u in plan.loads and plan.is_same_for_rows(u)}

            self._emit_vectors(inner, emit)
            for self.access.lane, _, accumulator, _ in states:
                self.rows.set_reduced(n, reduce_lanes(code, n, accumulator.get()))

    @contextmanager
    def _each_row(self, row: str, count: str, rows: list[Axis]) -> Iterator[None]:
        """Emit a loop over the rows of a block, with the ``with`` block as its body."""
        with self.code.loop("0", count) as lane:
            self.access.lane = lane
            self.rows.begin_row_of_block(split_index(self.code, self.code.add(row, lane), rows))
            yield

    def _emit_columns_of_block(self, number: int, row: str, count: str, rows: list[Axis], inner: Axis) -> None:
        """Emit a pass that only reduces over rows: for each vector of columns, a loop over the rows of the block."""

        def emit(lanes: Lanes) -> None:
            self.reductions.load_columns(lanes.kept, lanes.width)
            with self._each_row(row, count, rows):
                self._emit_vector(number, self._hoist(number, lanes.axis, lanes.width), lanes)
            self.reductions.store_columns(lanes.kept)

        self._emit_vectors(inner, emit)

    def _emit_transposed(self, row: str, columns: list[Axis]) -> None:
        """Emit each pass along all rows of a transposed block at the same time, with a row in each lane."""
        code, plan, (inner,) = self.code, self.plan, columns
        self.rows.begin_block(row)
        self.rows.read_tiles(inner)
        for number in range(plan.passes):
            folds = plan.row_reductions[number]
            self.reductions.accumulators = {n.number: self.reductions.allocate(n) for n in folds}
            if plan.results[number]:
                hoisted = {u: self.rows.emit_use(u) for u in self._list_hoisted(number, inner.members[-1])}
                with code.loop("0", inner.length) as column:
                    self.rows.column = column
                    index = code.times(column, plan.block)
                    self._emit_vector(number, hoisted, Lanes(index, plan.block, None, self.rows.mask))
            for n in folds:
                self.rows.values[n.number] = self.reductions.accumulators[n.number].get()
        self.rows.write_tiles(inner)
        self.rows.store()

    def _emit_flat(self, columns: list[Axis]) -> None:
        """Emit one loop over all elements; a part is a range of its vectors."""
        code, plan = self.code, self.plan
        self.rows.begin_row("", {})
        if not columns:
            self._emit_vector(0, {}, Lanes("0", 1))
            return
        axis = columns[-1].members[-1]
        hoisted = self._hoist(0, axis, plan.width)
        if plan.work.parts == 1:
            self._emit_vectors(columns[-1], lambda lanes: self._emit_vector(0, hoisted, lanes))
            return
        before = 0  # number of the vectors of earlier segments
        for segment in plan.segments:
            width, stop, last = self._cut(segment)
            count = (stop - segment.start) // width
            if count:
                with self._within(before, before + count) as (first, end):
                    start, end = (
                        code.add(code.times(at, width), str(segment.start - before * width)) for at in (first, end)
                    )
                    with code.loop(start, end, width) as i:
                        self._emit_vector(0, hoisted, self._take(segment, i, width, axis))
            if last is not None:
                with self._within(before + count, before + count + 1):
                    self._emit_vector(0, hoisted, self._take_last(segment, axis))
            before += count + (last is not None)

    @contextmanager
    def _within(self, first: int, stop: int) -> Iterator[tuple[str, str]]:
        """Emit the ``with`` block under the condition that this part has some of these vectors; it gets their range."""
        code = self.code
        begin, end = code.maximum("%lo", first), code.minimum("%hi", stop)
        with code.when(code.op(f"icmp slt i64 {begin}, {end}")):
            yield begin, end

    def _emit_columns(self, rows: list[Axis], inner: Axis) -> None:
        """Emit the only pass for some rows at a time: for each vector of columns, a loop over these rows."""
        code, count = self.code, self.plan.rows_by_columns
        with code.loop("%lo", "%hi", count) as first:
            stop = code.minimum(code.add(first, str(count)), "%hi")
            self._emit_vectors(inner, lambda lanes: self._emit_columns_of_rows(first, stop, rows, lanes))

    def _emit_columns_of_rows(self, first: str, stop: str, rows: list[Axis], lanes: Lanes) -> None:
        """Emit the loop over a range of rows for one vector of columns, with its accumulators in registers."""
        code = self.code
        self.reductions.load_columns(lanes.kept, lanes.width)
        with code.loop(first, stop) as row:
            self.rows.begin_row(row, split_index(code, row, rows))
            self._emit_vector(0, self._hoist(0, lanes.axis, lanes.width), lanes)
        self.reductions.store_columns(lanes.kept)

    def _emit_tiles(self, rows: list[Axis], inner: Axis) -> None:
        """Emit the only pass for blocks of rows and columns: tiles are transposed, then rows are computed one by one.

        The last vector of the rows, if it overlaps the one before, is a block of its own.
        """
        code, plan, axis = self.code, self.plan, inner.members[-1]
        (segment,), (*outer, over) = plan.segments, rows
        width, stop, last = self._cut(segment)
        with code.loop("%lo", "%hi") as number:
            before = code.op(f"udiv i64 {number}, {plan.groups}")
            first = code.times(code.op(f"sub i64 {number}, {code.times(before, plan.groups)}"), plan.tile_rows)
            end = code.minimum(code.add(first, str(plan.tile_rows)), over.length)
            places = split_index(code, before, outer) if outer else {}

            def emit_block(start: str, columns: str, emit: Callable[[], None]) -> None:
                self.access.places = {**places, over.members[-1]: first}
                for use in plan.tiles:
                    self._read_tile(use, axis, (first, end, over.length), (start, columns, inner.length))
                with code.loop(first, end) as row:
                    whole = code.add(code.times(before, over.length), row)
                    self.rows.begin_row(whole, {**places, over.members[-1]: row})
                    within = code.add(code.op(f"sub i64 {row}, {first}"), str(plan.tile_side))
                    self.access.tile_place_of_row = code.times(within, plan.tile_pitch), start
                    emit()

            with code.loop(segment.start, stop, plan.tile_columns) as column:
                further = code.minimum(code.add(column, str(plan.tile_columns)), stop)
                start = code.minimum(column, inner.length - width)
                columns = code.op(f"sub i64 {code.minimum(further, inner.length)}, {start}")

                def emit_vectors() -> None:
                    hoisted = self._hoist(0, axis, width)
                    with code.loop(column, further, width) as i:
                        self._emit_vector(0, hoisted, self._take(segment, i, width, axis))

                emit_block(start, columns, emit_vectors)
            if last is not None:
                lanes = self._take_last(segment, axis)
                emit_block(
                    lanes.start,
                    str(lanes.width),
                    lambda: self._emit_vector(0, self._hoist(0, axis, lanes.width), lanes),
                )

    def _read_tile(self, use: Use, axis: int, rows: tuple[str, str, int], columns: tuple[str, str, int]) -> None:
        """Emit the call that reads the tile of a use.

        ``rows`` are the first, the one after the last and the length of their axis; ``columns`` the first, their number
        and the length of their axis.
        """
        code, plan = self.code, self.plan
        (first, end, height), (start, count, length) = rows, columns
        side, node = plan.tile_side, use.node
        function = Tile(get_memory_type(node.dtype), node.dtype.itemsize, side, side).emit_block_reader(
            code, plan.tile_pitch
        )
        array = self.access.find_element(node, self.access.get_address(node), self.access.find_place(use, start, axis))
        tile = self.access.find_tile_place(use, node, str(side * plan.tile_pitch))
        counts = [
            str(use.strides[axis]),
            code.op(f"sub i64 {end}, {first}"),
            count,
            code.op(f"sub i64 {height - side}, {first}"),
            code.op(f"sub i64 {length - side}, {start}"),
        ]
        code.line(f"call void @{function}(ptr {array}, ptr {tile}, {', '.join(f'i64 {c}' for c in counts)})")

    # ---- loops along a row

    def _emit_pass(self, number: int, columns: list[Axis]) -> None:
        """Emit one pass along a row."""
        code, plan, reductions = self.code, self.plan, self.reductions
        folds = plan.row_reductions[number]
        reductions.accumulators = {}
        for n in folds:
            reductions.accumulators[n.number] = reductions.allocate(n)
        if not plan.results[number]:
            return
        if not columns:
            self._emit_vector(number, self._hoist(number, None, 1), Lanes("0", 1))
        elif len(columns) == 1:
            self._emit_innermost(number, columns[0])
        else:
            *outer, inner = columns
            with code.loop("0", prod(a.length for a in outer)) as i:
                places, loaded = self.access.places, self.rows.loaded
                self.access.places = {**places, **split_index(code, i, outer)}
                self.rows.loaded = {}
                self._emit_innermost(number, inner)
                self.access.places, self.rows.loaded = places, loaded
        for n in folds:
            total = reductions.accumulators[n.number].get()
            self.rows.set_reduced(n, reduce_lanes(code, n, total))

    def _emit_innermost(self, number: int, inner: Axis) -> None:
        """Emit the loop along the innermost axis."""
        hoisted = self._hoist(number, inner.members[-1], self.plan.width)
        if self.plan.runs[number]:
            self._emit_runs(number, inner, hoisted)
        else:
            self._emit_vectors(inner, lambda lanes: self._emit_vector(number, hoisted, lanes))

    def _emit_vectors(self, inner: Axis, emit: Callable[[Lanes], None]) -> None:
        """Call ``emit`` for each segment of an axis: in a loop over whole vectors, and for the last, partial one."""
        axis = inner.members[-1]
        for segment in self.plan.segments:
            width, stop, last = self._cut(segment)
            if stop - segment.start > width:
                with self.code.loop(segment.start, stop, width) as i:
                    emit(self._take(segment, i, width, axis))
            elif stop > segment.start:
                emit(self._take(segment, str(segment.start), width, axis))
            if last is not None:
                emit(self._take_last(segment, axis))

    def _cut(self, segment: AxisSegment) -> tuple[int, int, Remainder | None]:
        """Return the width of a segment's vectors, the index at which their loop ends, and what comes after it."""
        width, stop, last, _ = segment.cut
        return (width, stop + width, None) if self._shares_body(segment) else (width, stop, last)

    def _shares_body(self, segment: AxisSegment) -> bool:
        """Return whether the loop over whole vectors computes the last one, too; in place its operands are gone."""
        return segment.cut.shares_body and not self.overwrites

    def _take(self, segment: AxisSegment, start: str, width: int, axis: int) -> Lanes:
        """Return the lanes of a vector in the loop over a segment."""
        code, moved = self.code, str(segment.kept - segment.start)
        if not self._shares_body(segment):
            return Lanes(start, width, axis, segment=segment, kept=code.add(start, moved))
        _, stop, last, _ = segment.cut
        assert last is not None
        index = code.minimum(start, last.start)
        is_last = code.op(f"icmp eq i64 {start}, {stop}")
        reduced = self.reductions.select_mask(is_last, segment.stop - stop, width)
        return Lanes(index, width, axis, segment=segment, kept=code.add(start, moved), reduced=reduced)

    def _take_last(self, segment: AxisSegment, axis: int) -> Lanes:
        """Return the lanes of the last vector of a segment; its accumulators and kept values come after the others'."""
        assert segment.cut.last is not None
        start, width, mask, overlaps = segment.cut.last
        blends = overlaps and self.overwrites
        kept = str(segment.kept + segment.cut.stop - segment.start)
        return Lanes(str(start), width, axis, mask, overlaps, blends, segment, kept)

    def _emit_runs(self, number: int, inner: Axis, hoisted: dict[Use, Value]) -> None:
        """Emit the loop along a long row in runs, and add up the sums of runs: that loses less by rounding."""
        code, width, axis, reductions = self.code, self.plan.width, inner.members[-1], self.reductions
        folds, (segment,) = self.plan.row_reductions[number], self.plan.segments
        (_, full, last), run = self._cut(segment), self.plan.runs[number]
        totals = {n.number: reductions.allocate(n) for n in folds}

        def add_run(n: Node) -> None:
            reductions.accumulate(n, totals[n.number], reductions.accumulators[n.number].get())

        def reset() -> None:
            for n in folds:
                reductions.accumulators[n.number].set(reductions.accumulators[n.number].start)

        with code.loop("0", full // run) as r:
            reset()
            base = code.times(r, run)
            with code.loop("0", run, width) as i:
                self._emit_vector(number, hoisted, self._take(segment, code.add(base, i), width, axis))
            for n in folds:
                add_run(n)
        reset()
        if full // run * run < full:
            with code.loop(str(full // run * run), full, width) as i:
                self._emit_vector(number, hoisted, self._take(segment, i, width, axis))
        if last is not None:
            self._emit_vector(number, hoisted, self._take_last(segment, axis))
        for n in folds:
            add_run(n)
            reductions.accumulators[n.number] = totals[n.number]

    def _list_hoisted(self, number: int, inner: int | None) -> list[Use]:
        """Return the uses that have the same value for all vectors of a pass along an axis."""
        same = [use for use in self.plan.loads if inner is None or not use.strides[inner]]
        return [*same, *(use for use, stage in self.plan.uniform_uses.items() if stage <= number)]

    def _hoist(self, number: int, inner: int | None, width: int) -> dict[Use, Value]:
        """Emit, before the loop of a pass along an axis, what has the same value for all its vectors."""
        uses = self._list_hoisted(number, inner)
        return {use: broadcast(self.rows.emit_scalar_use(use), width) for use in uses}

    def _emit_vector(self, number: int, hoisted: dict[Use, Value], lanes: Lanes) -> None:
        VectorBody(self.parts, number, {use: take_lanes(v, lanes.width) for use, v in hoisted.items()}, lanes).emit()
