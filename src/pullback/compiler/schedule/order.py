"""Order the steps of a program so that few values are in memory at the same time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush
from textwrap import indent
from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Node


class ScheduledStep(NamedTuple):
    """A kernel or a call, with the values that it stores and reads, and the scratch memory that it needs."""

    source: Any  # a Kernel, or a Node of another kind
    plan: Any  # how it is computed: the record of its kind; None if there is nothing to choose
    stored: tuple[Node, ...]
    read: tuple[Node, ...]
    fixed: bool = False  # whether it must keep its place in the order
    scratch: tuple[tuple[str, int], ...] = ()  # names and bytes of memory that it needs
    overwritable: frozenset[tuple[int, int]] = frozenset()  # numbers of results and of operands they may overwrite

    @property
    def number(self) -> int:
        number: int = self.source.number
        return number

    def __str__(self) -> str:
        stored, read = (", ".join(map(repr, nodes)) for nodes in (self.stored, self.read))
        line = f"{stored} = {self.source.name}({read})"
        plans = self.plan if type(self.plan) is tuple else () if self.plan is None else (self.plan,)
        return "\n".join([line, *(indent(str(plan), "    ") for plan in plans)])


def order_steps(steps: Sequence[ScheduledStep], outputs: Sequence[Node]) -> tuple[ScheduledStep, ...]:
    """Return the steps in the order in which they run: outputs that nothing reads are written early, to free memory."""
    wanted = {o.number for o in outputs}
    maker = {n.number: at for at, s in enumerate(steps) for n in s.stored}
    read = {n.number for s in steps for n in s.read}
    last = wanted - read
    times = [_find_time(s, at, maker, wanted, last) for at, s in enumerate(steps)]
    return tuple(steps[at] for at in sorted(range(len(steps)), key=times.__getitem__))


def _find_time(
    s: ScheduledStep, at: int, maker: dict[int, int], wanted: set[int], last: set[int]
) -> tuple[int, int, int]:
    """Return when a step runs: right after what it needs if it stores only ``last`` outputs and frees memory."""
    needed = [n for n in s.read if n.number in maker]
    freed = sum(n.nbytes for n in needed if n.number not in wanted) - sum(n.nbytes for n in s.stored)
    if s.fixed or freed < 0 or not last.issuperset(n.number for n in s.stored):
        return at, 0, 0
    return max((maker[n.number] for n in needed), default=-1), 1, at


def order_by_needs(preferences: Sequence[Any], needs: Sequence[Collection[int]]) -> list[int]:
    """Return the numbers from 0 on in an order in which each follows those it needs, by preference otherwise.

    >>> order_by_needs([0, 1, 2], [{2}, set(), set()])
    [1, 2, 0]
    """
    missing = [len(those) for those in needs]
    waiting: list[list[int]] = [[] for _ in needs]
    for i, those in enumerate(needs):
        for other in those:
            waiting[other].append(i)
    ready = [(preferences[i], i) for i, count in enumerate(missing) if not count]
    heapify(ready)
    found = []
    while ready:
        _, i = heappop(ready)
        found.append(i)
        for other in waiting[i]:
            missing[other] -= 1
            if not missing[other]:
                heappush(ready, (preferences[other], other))
    return found
