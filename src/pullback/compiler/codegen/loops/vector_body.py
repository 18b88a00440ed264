"""The body of a kernel's innermost loop: everything that one pass computes and stores for one vector."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pullback.compiler.builder import Code, Value, code_of, literal, splat, vector
from pullback.compiler.codegen.loops.access import ArrayAccess, read_vector, write_vector
from pullback.compiler.codegen.loops.reductions import Reductions
from pullback.compiler.codegen.loops.row_blocks import RowValues, emit_node, emit_number
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import FOLD, PIECES, TAKE
from pullback.compiler.schedule.fuse import Use, locate_pieces, locate_rows, use_argument
from pullback.compiler.schedule.loops import LoopPlan

__all__ = ["Parts", "VectorBody"]


class Parts(NamedTuple):
    """What a kernel is emitted with."""

    code: Code
    plan: LoopPlan
    access: ArrayAccess
    reductions: Reductions
    rows: RowValues


class VectorBody:
    """Emits what a pass does with the lanes from ``index`` on, of those that the mask has."""

    def __init__(
        self,
        parts: Parts,
        number: int,
        hoisted: dict[Use, Value],
        index: str,
        mask: str | None,
        width: int,
        axis: int | None,
    ) -> None:
        self.code, self.plan, self.access, self.reductions, self.rows = parts
        self.number, self.hoisted = number, hoisted  # the pass, and what is the same for all vectors
        self.index, self.mask, self.width, self.axis = index, mask, width, axis
        self.kept_mask = None if self.plan.is_transposed else mask
        self.values: dict[Use, Value] = {}

    def emit(self) -> None:
        """Emit everything that is stored or reduced in the pass."""
        code, plan, access, number = self.code, self.plan, self.access, self.number
        if 0 < number == plan.passes - 1 and self.axis is not None and self.mask is None:
            access.prefetch_next_rows(self.index, self.width, self.axis)
        for n in plan.results[number]:
            if n.kind is FOLD:
                (use,) = plan.given(n)
                self.reductions.add(n, self.value(use), self.mask, self.index)
                continue
            use = Use(n, 0, plan.kernel.natural(n))
            v = self.value(use)
            if n in plan.scratch_nodes:
                write_vector(code, v, access.find_kept_place(n, self.index), self.kept_mask)
            if n.number in plan.fused.stored and plan.is_transposed:
                write_vector(code, v, access.tile_place(n.number, n, self.index), None)
            elif n.number in plan.fused.stored:
                access.store(v, n, access.place(use, self.index, self.axis), self.mask)

    def value(self, use: Use) -> Value:
        """Return the lanes of a use; they are computed once."""
        if use not in self.values:
            self.values[use] = self._compute(use)
        return self.values[use]

    def _compute(self, use: Use) -> Value:
        node, plan = use.node, self.plan
        if is_number(node):
            return emit_number(self.code, node, self.width)
        if use in self.hoisted:
            return self.hoisted[use]
        if plan.kernel.makes(use):
            is_kept = plan.stage[node.number] < self.number
            if is_kept and node.number in plan.scratch.kept:
                pointer = self.access.find_kept_place(node, self.index)
                return read_vector(self.code, pointer, node.dtype, self.width, self.kept_mask)
            if is_kept and node.number in plan.fused.stored:
                return self._load(use)
            if node.kind is PIECES:
                return self._join_pieces(node)
            if node.kind is TAKE:
                return self._take_rows(node)
            return emit_node(self.code, plan, node, [self.value(u) for u in plan.given(node)], self.width)
        if node.number in plan.fused.virtual:
            return emit_node(self.code, plan, node, [self.value(use_argument(use, a)) for a in node.args], self.width)
        return self._load(use)

    def _load(self, use: Use) -> Value:
        if self.plan.is_transposed:
            return self.rows.load_transposed(use, self.index)
        return self.access.load_use(use, self.index, self.mask, self.width, self.axis)

    def _join_pieces(self, n: Node) -> Value:
        """Return each piece where it belongs, and the filling elsewhere."""
        code, width, dtype = self.code, self.width, code_of(n.dtype)
        v = Value(code, literal(n.data.fill, dtype, width), dtype, width)
        for use, bounds in zip(locate_pieces(n), self.plan.guards[n.number], strict=True):
            inside = self._compare_with_bounds(bounds)
            if self.plan.kernel.makes(use):
                got = self.value(use)
            else:
                got = self.access.load_inside(use, self.index, inside, width, self.axis)
            v = v.like(code.op(f"select {vector('i1', width)} {inside}, {v.type} {got.name}, {v.type} {v.name}"))
        return v

    def _compare_with_bounds(self, bounds: list[tuple[int, int]]) -> str:
        """Return which lanes are within bounds along every axis of the kernel."""
        code, width, indices = self.code, self.width, vector("i64", self.width)
        rows, columns = self.plan.axes
        inside = self.mask or literal(True, "b1", width)
        for i, a in {a.members[-1]: a for a in (*rows, *columns)}.items():
            first, last = bounds[a.members[0]]  # along the other members of a merged axis a piece is whole
            within = a.length // self.plan.kernel.axes[a.members[0]]
            first, last = first * within, last * within
            if (first, last) == (0, a.length):
                continue
            place = self.access.places.get(i, self.index) if i != self.axis else self.index
            here = self.access.lane_indices(place, width) if i == self.axis else splat(code, place, "i64", width)
            moved = code.op(f"sub {indices} {here}, {literal(first, 'i8', width)}")
            near = code.op(f"icmp ult {indices} {moved}, {literal(last - first, 'i8', width)}")
            inside = code.op(f"and {vector('i1', width)} {inside}, {near}")
        return inside

    def _take_rows(self, n: Node) -> Value:
        """Return elements of rows that are given by their positions: of one row, or of a row for each lane."""
        code, access, axis = self.code, self.access, self.axis
        at, use = locate_rows(n)
        length, is_made = prod(n.data), self.plan.kernel.makes(at)
        if axis is None or at.steps[axis] == 0:
            row = (self.value(at) if is_made else self.rows.emit_scalar_use(at)).name
            place = code.add(access.place(use, self.index, axis), code.times(row, length))
            step = 1 if axis is None else use.steps[axis]
            if step == 1 or self.width == 1:
                return access.load(use.node, place, self.mask, self.width)
            return access.gather(use.node, place, step, self.mask, self.width)
        rows = self.value(at) if is_made else access.load_use(at, self.index, self.mask, self.width, axis)
        first = access.place(use, self.index, axis)
        return access.gather_at(use.node, first, rows * length if length != 1 else rows, self.mask)
