"""How a kernel goes along its rows: what is loaded by which steps, in which pass each value is known, what is kept."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node, is_number, squeezed
from pullback.compiler.ir.kinds import FOLD, PIECES, VIEW
from pullback.compiler.schedule.cost import estimate_cost
from pullback.compiler.schedule.fuse import AFTER, FULL, READS, ROW, Fused, Kernel, Use, taken, used_as
from pullback.compiler.target import Target

__all__ = ["Axis", "Plan"]

HEAVY = 6  # work that is not done again in a later pass: its result is kept for the row


class Axis(NamedTuple):
    """One axis of the loops: its length, and the axes of the kernel it stands for."""

    length: int
    members: tuple[int, ...]


class Plan:
    """What is to be known of a kernel before it can be written."""

    def __init__(self, kernel: Kernel, fused: Fused, target: Target) -> None:
        self.kernel, self.fused, self.target = kernel, fused, target
        self.split = kernel.split
        self.block, self.across = 1, False  # rows at a time, and whether they are gone along side by side
        self.stored = [n for n in kernel.nodes if n.number in fused.stored and kernel.levels[n.number] != AFTER]
        self.after = [n for n in kernel.nodes if kernel.levels[n.number] == AFTER]

    def given(self, n: Node) -> list[Use]:
        """The uses of a node's arguments along the axes of the kernel."""
        if n.kind is VIEW:
            return [Use(n.args[0], n.data.offset, used_as(n, n.shape).steps)]
        if n.kind in READS:
            return READS[n.kind](n)
        shape = n.args[0].shape if n.kind is FOLD else n.shape
        uses = [used_as(a, shape) for a in n.args]
        missing = len(self.kernel.axes) - len(squeezed(shape))
        return [u._replace(steps=u.steps + (0,) * missing) for u in uses]

    def leaves(self, use: Use) -> list[Use]:
        """What must be loaded or is computed here, of what a use needs."""
        node = use.node
        if is_number(node):
            return []
        if node.number in self.fused.virtual and not self.kernel.makes(use):
            return [leaf for a in node.args for leaf in self.leaves(taken(use, a))]
        return [use]

    @cached_property
    def loads(self) -> list[Use]:
        found: dict[Use, None] = {}
        for n in self.kernel.nodes:
            for use in self.given(n):
                for leaf in self.leaves(use):
                    if not self.kernel.makes(leaf):
                        found[leaf] = None
        return list(found)

    @cached_property
    def ahead(self) -> dict[int, int]:
        """How far into the arrays that are only read the first use begins: their addresses are given from there, so
        that the steps of a loop over ``x[0]``, ``x[1]``, … are the same kernel.
        """
        found: dict[int, int] = {}
        for use in self.loads:
            found[use.node.number] = min(use.offset, found.get(use.node.number, use.offset))
        return {number: at for number, at in found.items() if at > 0 and number not in self.kernel.levels}

    def begin(self, use: Use) -> str:
        """Where the elements of a use begin, from the address that is given."""
        return str(use.offset - self.ahead.get(use.node.number, 0))

    @cached_property
    def guards(self) -> dict[int, list[list[tuple[int, int]]]]:
        """For the nodes that are pieces, and each piece: where it begins and ends along each axis of the kernel."""
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
        """The axes over rows and along them, joined where everything goes on as if they were one."""
        lengths = self.kernel.axes
        stepping = [u.steps for u in self.loads] + [self.kernel.natural(n) for n in self.stored]
        split = self.split

        def joined(members: range) -> list[Axis]:
            out: list[Axis] = []
            for i in members:
                whole = all(g[i] == (0, lengths[i]) for guards in self.guards.values() for g in guards)
                if out and whole and all(s[out[-1].members[-1]] == s[i] * lengths[i] for s in stepping):
                    out[-1] = Axis(out[-1].length * lengths[i], (*out[-1].members, i))
                else:
                    out.append(Axis(lengths[i], (i,)))
            return out

        if split is None:
            whole = joined(range(len(lengths)))
            return whole[:-1], whole[-1:]
        return joined(range(split)), joined(range(split, len(lengths)))

    @property
    def flat(self) -> bool:
        """One loop over everything: its parts are parts of that loop."""
        rows, columns = self.axes
        return not rows and len(columns) <= 1 and self.split is None

    @cached_property
    def stage(self) -> dict[int, int]:
        """The pass after which a value of a row is known, or in which a full one can be computed."""
        found: dict[int, int] = {}
        for n in self.kernel.nodes:
            known = [found[u.node.number] for use in self.given(n) for u in self.leaves(use) if u.node.number in found]
            found[n.number] = max(known, default=0) + (n.kind is FOLD and self.kernel.levels[n.number] == ROW)
        return found

    @cached_property
    def passes(self) -> int:
        """How often a row is gone along."""
        last = [
            self.stage[n.number] - (n.kind is FOLD and self.kernel.levels[n.number] == ROW)
            for n in self.kernel.nodes
            if self.kernel.levels[n.number] != ROW or n.kind is FOLD
        ]
        return max(last, default=0) + 1

    @cached_property
    def settled(self) -> frozenset[int]:
        """Values that several passes compute: a product is not joined with a sum in one and rounded in another."""
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

    def _done_in(self, number: int) -> list[Node]:
        """What is stored or folded in a pass."""
        k = self.kernel
        out = []
        for n in k.nodes:
            level = k.levels[n.number]
            if level == ROW:
                if n.kind is FOLD and self.stage[n.number] == number + 1:
                    out.append(n)
            elif self.stage[n.number] == number and (
                level == AFTER or n.number in self.fused.stored or n in self.scratch_nodes
            ):
                out.append(n)
        return out

    @cached_property
    def scratch_nodes(self) -> list[Node]:
        """Costly values that a later pass asks for again, and that are not stored anyway."""
        found: list[Node] = []
        for n in self.kernel.nodes:
            for use in self.given(n):
                for u in self.leaves(use):
                    m = u.node
                    later = self.kernel.levels.get(m.number) == FULL and self.stage[n.number] > self.stage[m.number]
                    if later and n.kind is FOLD and self.kernel.levels[n.number] == ROW:
                        later = self.stage[n.number] - 1 > self.stage[m.number]
                    if later and m not in found and m.number not in self.fused.stored and self._weight(m) >= HEAVY:
                        found.append(m)
        return found

    def _weight(self, n: Node) -> int:
        """The work of computing a full value again, from what is loaded."""
        total = estimate_cost(n)
        for use in self.given(n):
            for u in self.leaves(use):
                if self.kernel.levels.get(u.node.number) == FULL:
                    total += self._weight(u.node)
        return total

    def _row_bytes(self, n: Node) -> int:
        split = self.split or 0
        return -(-prod(self.kernel.axes[split:]) * n.dtype.itemsize // 64) * 64

    def _is_column(self, n: Node) -> bool:
        """Whether a fold over the rows is known for each place along them, when all is done."""
        return self.kernel.levels[n.number] == AFTER and bool(squeezed(n.shape))

    def _partial_size(self, n: Node) -> int:
        return -(-max(n.size, 1) * max(n.dtype.itemsize, 1) // 64) * 64

    @cached_property
    def widest(self) -> int:
        """Bytes of the largest of what is computed or loaded all along the rows."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else None
        loaded = [u.node for u in self.loads if inner is None or u.steps[inner]]
        made = [n for n in self.kernel.nodes if n.kind is FOLD or self.kernel.levels[n.number] != ROW]
        return max((n.dtype.itemsize for n in (*made, *loaded)), default=8)

    @cached_property
    def even(self) -> dict[Use, int]:
        """What is used all along the rows and is the same there, and the pass before which it is known."""
        _, columns = self.axes
        inner = columns[-1].members[-1] if columns else None
        found: dict[Use, int] = {}

        def look(use: Use) -> None:
            here, node = self.kernel.makes(use), use.node
            if inner is None or not use.steps[inner]:
                if here or node.number in self.fused.virtual:
                    made = [u.node.number for u in self.leaves(use) if self.kernel.makes(u)]
                    found[use] = max((self.stage[m] for m in made), default=0)
            elif node.number in self.fused.virtual and not here:
                for a in node.args:
                    look(taken(use, a))

        for n in self.kernel.nodes:
            if n.kind is FOLD or self.kernel.levels[n.number] != ROW:
                for use in self.given(n):
                    look(use)
        return found

    def _width(self, columns: list[Axis]) -> int:
        """Lanes: as many as the widest dtype has in a register, not more than there are elements along a row."""
        lanes = max(1, self.target.vector_bytes // self.widest)
        length = columns[-1].length if columns else 1
        while lanes > 1 and lanes // 2 >= length:
            lanes //= 2
        return lanes
