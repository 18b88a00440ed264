"""Find kernels that differ only in their arrays, such as those of an unrolled loop: they share one loop plan."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Node, fingerprint, is_number
from pullback.compiler.ir.kinds import VIEW
from pullback.compiler.schedule.fuse import READS, Fused, Kernel
from pullback.compiler.schedule.in_place import find_overwritable
from pullback.compiler.schedule.loops import LoopPlan
from pullback.compiler.target import Target


class LoopPlanner:
    """Plans the loops of a program's kernels, once for each signature."""

    def __init__(self, fused: Fused, target: Target) -> None:
        self.fused, self.target = fused, target
        self.known: dict[Any, tuple[PlannedLoops, list[int], list[int]]] = {}

    def plan(self, kernel: Kernel) -> PlannedLoops:
        """Return the loops of a kernel: its own arrays, with a new plan or that of a kernel with the same signature."""
        signature = KernelSignature(kernel, self.fused)
        found = self.known.get(signature.key)
        if found is not None:
            first, places, begins = found
            arrays = tuple(signature.nodes[place] for place in places)
            moved = [signature.begins.get(n.number, 0) for n in arrays]
            offsets = [at + new - old for at, new, old in zip(first.offsets, moved, begins, strict=False)]
            return first._replace(arrays=arrays, offsets=tuple(offsets))
        plan = LoopPlan(kernel, self.fused, self.target)
        arrays = (*plan.arrays, *plan.after)
        offsets = [plan.base_offsets.get(n.number, 0) for n in plan.arrays]
        loops = PlannedLoops(plan, arrays, tuple(offsets), find_overwritable(plan))
        if all(a.number in signature.places for a in arrays):
            begins = [signature.begins.get(a.number, 0) for a in arrays]
            self.known[signature.key] = loops, [signature.places[a.number] for a in arrays], begins
        return loops


class PlannedLoops(NamedTuple):
    """The loops of a kernel, and the arrays that its function is called with."""

    plan: LoopPlan  # made for this kernel, or for another one of the same signature
    arrays: tuple[Node, ...]  # those whose addresses the function takes; the results of reductions over rows are last
    offsets: tuple[int, ...]  # elements from the beginning of an array to the address that the function is given
    overwritable: frozenset[tuple[int, int]]  # positions of results and of operands that they may overwrite


class KernelSignature:
    """Everything that the code of a kernel depends on: its nodes, from what is loaded on, in order."""

    def __init__(self, kernel: Kernel, fused: Fused) -> None:
        self.kernel, self.fused = kernel, fused
        self.nodes: list[Node] = []
        self.places: dict[int, int] = {}
        self.seen: list[Any] = []
        self.begins: dict[int, int] = {}  # by array that is only read through views: the offset at which these begin
        if not any(n.kind in READS for n in kernel.nodes):
            self._find_begins()
        own = [self._place(n) for n in kernel.nodes]
        self.key = kernel.axes, kernel.split, tuple(own), tuple(self.seen)

    def _find_begins(self) -> None:
        """Find the arrays that the kernel only reads through views, and where the first view of each begins."""
        whole: set[int] = set()
        waiting, met = list(self.kernel.nodes), set()
        while waiting:
            n = waiting.pop()
            if n.number in met:
                continue
            met.add(n.number)
            if n.number not in self.kernel.levels and n.number not in self.fused.virtual and n.kind is not VIEW:
                continue  # it is loaded
            for a in n.args:
                if n.kind is VIEW:
                    self.begins[a.number] = min(n.data.offset, self.begins.get(a.number, n.data.offset))
                else:
                    whole.add(a.number)
                waiting.append(a)
        for number in whole | self.kernel.levels.keys():
            self.begins.pop(number, None)

    def _place(self, n: Node) -> int:
        if n.number in self.places:
            return self.places[n.number]
        level = self.kernel.levels.get(n.number)
        virtual, stored = n.number in self.fused.virtual, n.number in self.fused.stored
        through = level is not None or virtual or n.kind is VIEW
        args = [self._place(a) for a in n.args] if through else None
        data = fingerprint(n.data) if through or is_number(n) else None
        if n.kind is VIEW and n.args[0].number in self.begins:
            data = fingerprint(n.data._replace(offset=n.data.offset - self.begins[n.args[0].number]))
        self.places[n.number] = place = len(self.nodes)
        self.nodes.append(n)
        operands = None if args is None else tuple(args)
        self.seen.append((n.kind, n.shape, n.dtype, level, virtual, stored, data, operands))
        return place
