"""Find which results of a kernel may overwrite its operands: every element must be read before it is written."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from pullback.compiler.ir.graph import Node, find_contiguous, is_number
from pullback.compiler.ir.kinds import FOLD, STACK, TAKE
from pullback.compiler.schedule.fuse import FULL, READS, ROW, Use, use_argument
from pullback.compiler.schedule.loops import LoopPlan

MAX_WAITING_VECTORS = 8  # vectors of a row up to which waiting for one store takes much of the time


def find_overwritable(plan: LoopPlan) -> frozenset[tuple[int, int]]:
    """Return which results of a kernel may overwrite which operands, as pairs of positions among its arrays.

    An operand must be read by no other step afterwards.
    """
    results = [n for n in plan.stored if plan.kernel.levels[n.number] == FULL]
    # The last vector of a stack overlaps the one before, and computes what that has stored again from its operands.
    keeps_operands = any(n.kind is STACK for n in plan.stored)
    parts_overlap = len(plan.segments) > 1 and plan.work.parts > 1  # by vectors at the ends of segments
    operands = [] if not results or keeps_operands or parts_overlap else _find_operands(plan, results[0])
    if not operands:
        return frozenset()
    order, places = AccessOrder(plan), {n.number: i for i, n in enumerate(plan.arrays)}
    return frozenset(
        (places[z.number], places[x.number])
        for z in results
        for x in operands
        if x.dtype.itemsize == z.dtype.itemsize and order.read.get(x.number, inf) <= order.written[z.number]
    )


def _find_operands(plan: LoopPlan, z: Node) -> list[Node]:
    """Return the operands, computed by other steps, of which elements are read only where those of ``z`` are stored."""
    kernel, strides = plan.kernel, plan.kernel.find_strides(z)
    elsewhere = {u.node.number for u in plan.loads if u.offset or u.strides != strides}
    elsewhere |= {find_contiguous(n.args[0])[0].number for n in kernel.nodes if n.kind is TAKE}
    others = elsewhere | kernel.levels.keys()
    found = [x for x in plan.arrays if not x.kind.is_leaf and x.number not in others]
    return [x for x in found if x.nbytes > plan.target.second_cache] if found and _waits_for_stores(plan) else found


def _waits_for_stores(plan: LoopPlan) -> bool:
    """Return whether rows are short and end in a vector that overlaps the one before, which in place was just stored.

    A CPU cannot forward a store to a load that it covers in part: the load waits.  Other memory is quicker then, as
    long as the cache holds it.
    """
    if plan.is_flat or plan.is_transposed:
        return False
    count = sum((s.cut.stop - s.start) // s.cut.width for s in plan.segments)
    return count < MAX_WAITING_VECTORS and any(s.cut.last is not None for s in plan.segments)


class AccessOrder:
    """The order in which a kernel reads and writes its arrays at one place of its loops."""

    def __init__(self, plan: LoopPlan) -> None:
        self.plan, self.kernel, self.fused = plan, plan.kernel, plan.fused
        self.read: dict[int, int] = {}  # by array: the time at which it is read last; times count stores and reductions
        self.written: dict[int, int] = {}  # by result: the time at which it is stored
        time = 0
        for number in range(plan.passes):
            seen: set[Use] = set()  # a pass loads an element once, and then has it in a register
            for n in plan.results[number]:
                uses = plan.list_uses(n) if n.kind is FOLD else [Use(n, 0, self.kernel.find_strides(n))]
                for node in self._reads(uses, number, seen):
                    self.read[node.number] = time
                if n.kind is not FOLD:
                    self.written[n.number] = time
                time += 1

    def _reads(self, uses: list[Use], number: int, seen: set[Use]) -> Iterator[Node]:
        """Yield the nodes from whose memory elements are loaded for some uses in a pass."""
        plan, kernel = self.plan, self.kernel
        loaded: set[Use] = set()  # what pieces and rows are computed from: it is loaded again for them
        waiting = [(use, seen) for use in uses]
        while waiting:
            use, known = waiting.pop()
            node = use.node
            if use in known or is_number(node):
                continue
            known.add(use)
            if kernel.makes(use):
                if self._has_value(node, number):
                    continue
                if node.kind in READS:  # they load elements from memory even if the kernel computes their arguments
                    yield from (u.node for u in plan.list_uses(node))
                    waiting += [(u, loaded) for u in plan.list_uses(node) if kernel.makes(u)]
                else:
                    waiting += [(u, known) for u in plan.list_uses(node)]
            elif node.number in self.fused.virtual:
                waiting += [(use_argument(use, a), known) for a in node.args]
            else:
                yield node

    def _has_value(self, node: Node, number: int) -> bool:
        """Return whether the value of a node is not computed again in a pass: it is that of a row, or was stored."""
        if self.kernel.levels[node.number] == ROW:
            return True
        is_stored = node in self.plan.scratch_nodes or node.number in self.fused.stored
        return is_stored and self.plan.stage[node.number] < number
