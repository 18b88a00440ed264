"""The body of a loop kernel's innermost loop: what one pass computes, stores and reduces for one vector."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from math import prod
from typing import NamedTuple

from pullback.compiler.builder import Code, Value
from pullback.compiler.codegen.loops.access import ArrayAccess, read_vector, write_vector
from pullback.compiler.codegen.loops.pieces import PieceReader
from pullback.compiler.codegen.loops.reductions import Reductions
from pullback.compiler.codegen.loops.row_blocks import RowValues, emit_node, emit_number
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import FOLD, PIECES, STACK
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.schedule.fuse import READS, Use, locate_rows, use_argument
from pullback.compiler.schedule.loops import AxisSegment, Cut, LoopPlan


class KernelEmitters(NamedTuple):
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
    segment: AxisSegment = AxisSegment(0, 1, False, 0, Cut(1, 1, None))  # the segment of the axis that they are in
    kept: str = ""  # the index of their accumulators and kept values, if it is not ``start``
    reduced: str = ""  # the address of a mask of the lanes that are reduced, if it is known only at run time


class VectorBody:
    """Emits what a pass does with the lanes of one vector."""

    def __init__(self, parts: KernelEmitters, number: int, hoisted: dict[Use, Value], lanes: Lanes) -> None:
        self.code, self.plan, self.access, self.reductions, self.rows = parts
        self.number, self.hoisted = number, hoisted  # of the pass; the values that are the same for all its vectors
        self.lanes, self.index, self.width, self.axis = lanes, lanes.start, lanes.width, lanes.axis
        self.mask = None if lanes.overlaps else lanes.mask  # the lanes that are loaded and stored
        self.values: dict[Use, Value] = {}

    def emit(self) -> None:
        """Emit everything that is stored or reduced in the pass, with one flag for all lanes that need a slow path."""
        collecting: AbstractContextManager[list[Value]] = nullcontext([])
        if self.code.flags_rare:
            collecting = self.code.collect_rare()
        with collecting as rare:
            for n in self.plan.results[self.number]:
                self._finish(n, [self.value(use) for use in self.plan.list_result_uses(n)])
        if rare:
            MathBuilder(self.code).flag_rare(reduce(Value.__or__, rare), self.lanes.mask)

    def _finish(self, n: Node, values: list[Value]) -> None:
        """Emit what becomes of the values of a node: they are added to a reduction, stored, or stored as columns."""
        code, plan, access, v = self.code, self.plan, self.access, values[0]
        if n.kind is STACK:
            assert self.mask is None  # rows have at least as many elements as a vector has lanes
            at = access.find_place(Use(n, 0, plan.kernel.find_strides(n)), self.index, self.axis)
            access.store_together(values, access.find_element(n, access.get_address(n), at))
            return
        if n.kind is FOLD:
            v = self.reductions.mask(n, v, self.lanes.reduced) if self.lanes.reduced else v
            self.reductions.add(n, v, self.lanes.mask, self.lanes.kept or self.index)
            return
        if n in plan.scratch_nodes:
            write_vector(code, v, self._find_kept_place(n), None)
        if n.number in plan.fused.stored and plan.is_transposed:
            write_vector(code, v, access.find_tile_place(n.number, n, self.index), None)
        elif n.number in plan.fused.stored:
            at = access.find_place(Use(n, 0, plan.kernel.find_strides(n)), self.index, self.axis)
            pointer = access.find_element(n, access.get_address(n), at)
            if self.lanes.blends and self.lanes.mask is not None:
                old = read_vector(code, pointer, n.dtype, v.width, None)
                v = v.like(code.op(f"select <{v.width} x i1> {self.lanes.mask}, {v!r}, {old!r}"))
            write_vector(code, v, pointer, self.mask)

    def _find_kept_place(self, n: Node) -> str:
        """Return the address at which a vector is kept for later passes; the last one is after all others."""
        return self.access.find_kept_place(n, self.lanes.kept or self.index)

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
            return emit_node(self.code, plan, node, [self.value(u) for u in plan.list_uses(node)], self.width)
        if use not in self.hoisted and not plan.kernel.makes(use) and node.number in plan.fused.virtual:
            return emit_node(self.code, plan, node, [self.value(use_argument(use, a)) for a in node.args], self.width)
        return self.hoisted[use] if use in self.hoisted else self._read(use)

    def _is_kept(self, node: Node) -> bool:
        """Return whether an earlier pass has stored a value."""
        plan = self.plan
        is_known = plan.stage[node.number] < self.number
        return is_known and (node.number in plan.scratch.kept or node.number in plan.fused.stored)

    def _read(self, use: Use) -> Value:
        """Return the vector of a use that is in memory, or that its node reads from memory (pieces, rows)."""
        node, plan = use.node, self.plan
        if not plan.kernel.makes(use):
            return self.load(use)
        if self._is_kept(node) and node.number in plan.scratch.kept:
            return read_vector(self.code, self._find_kept_place(node), node.dtype, self.width, None)
        if self._is_kept(node):
            return self.load(use)
        return PieceReader(self).read(node) if node.kind is PIECES else self._take_rows(node)

    def load(self, use: Use) -> Value:
        """Load the vector of a use from an array or a transposed tile."""
        if self.plan.is_transposed:
            return self.rows.load_transposed(use, self.index)
        return self.access.load_use(use, self.index, self.mask, self.width, self.axis)

    # ---- rows at positions

    def _take_rows(self, n: Node) -> Value:
        """Return the vector of a node that takes rows at positions: from one row, or from a row for each lane."""
        code, access, axis = self.code, self.access, self.axis
        at, use = locate_rows(n)
        length, is_made = prod(n.data), self.plan.kernel.makes(at)
        if axis is None or at.strides[axis] == 0:
            row = (self.value(at) if is_made else self.rows.emit_scalar_use(at)).name
            place = code.add(access.find_place(use, self.index, axis), code.times(row, length))
            step = 1 if axis is None else use.strides[axis]
            if step == 1 or self.width == 1:
                return access.load(use.node, place, self.mask, self.width)
            return access.gather(use.node, place, step, self.mask, self.width)
        rows = self.value(at) if is_made else access.load_use(at, self.index, self.mask, self.width, axis)
        first = access.find_place(use, self.index, axis)
        # In place, the vector before has overwritten the positions of lanes that overlap it with results.
        mask = self.lanes.mask if self.lanes.blends else self.mask
        return access.gather_at(use.node, first, rows * length if length != 1 else rows, mask)
