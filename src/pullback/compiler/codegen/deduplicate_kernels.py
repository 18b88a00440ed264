"""Kernels that differ only in their arrays, as those of the steps of an unrolled loop, are emitted once."""

from __future__ import annotations

from typing import Any

from pullback.compiler.codegen.kernel_code import Function, KernelCode
from pullback.compiler.codegen.loops.kernel import KernelWriter
from pullback.compiler.ir.graph import Node, fingerprint, is_number
from pullback.compiler.ir.kinds import VIEW
from pullback.compiler.schedule.fuse import READS, Fused, Kernel
from pullback.compiler.schedule.loops import LoopPlan
from pullback.compiler.target import Target

__all__ = ["KernelDeduplicator"]


class KernelDeduplicator:
    """Emits the kernels of a program, each signature once."""

    def __init__(self, fused: Fused, target: Target) -> None:
        self.fused, self.target = fused, target
        self.known: dict[Any, tuple[KernelCode, list[int], list[int]]] = {}
        self.plans: dict[Function, tuple[LoopPlan, tuple[Node, ...]]] = {}  # of each text, with the arrays

    def emit(self, kernel: Kernel) -> KernelCode:
        """Return the code of a kernel: that of one with the same signature, with its own arrays, or a new one."""
        signature = KernelSignature(kernel, self.fused)
        found = self.known.get(signature.key)
        if found is not None:
            made, places, begins = found
            arrays = tuple(signature.nodes[place] for place in places)
            moved = [signature.begins.get(n.number, 0) for n in arrays]
            offsets = tuple(at + new - old for at, new, old in zip(made.offsets, moved, begins, strict=False))
            return made._replace(arrays=arrays, offsets=offsets)
        plan = LoopPlan(kernel, self.fused, self.target)
        made = KernelWriter(plan).write()
        self.plans.setdefault(made.function, (plan, made.arrays))
        if all(a.number in signature.places for a in made.arrays):
            begins = [signature.begins.get(a.number, 0) for a in made.arrays]
            self.known[signature.key] = made, [signature.places[a.number] for a in made.arrays], begins
        return made


class KernelSignature:
    """All of a kernel that its code depends on: its nodes, down to what is loaded, in order."""

    def __init__(self, kernel: Kernel, fused: Fused) -> None:
        self.kernel, self.fused = kernel, fused
        self.nodes: list[Node] = []
        self.places: dict[int, int] = {}
        self.seen: list[Any] = []
        self.begins: dict[int, int] = {}  # where the views of an array begin, for arrays that are only read by views
        if not any(n.kind in READS for n in kernel.nodes):
            self._find_begins()
        own = [self._place(n) for n in kernel.nodes]
        self.key = kernel.axes, kernel.split, tuple(own), tuple(self.seen)

    def _find_begins(self) -> None:
        """Find the arrays that the kernel only reads by views."""
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
