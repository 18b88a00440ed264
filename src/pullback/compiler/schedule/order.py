"""Order the steps of a program so that few values are in memory at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Node

__all__ = ["Step", "order_by_needs", "order_steps"]


def _never(z: Node, x: Node) -> bool:
    return False


class Step(NamedTuple):
    """A kernel or a call, with the values that it stores and reads, and the scratch memory that it needs."""

    what: Any  # a Kernel, or a Node of another kind
    plan: Any  # how it is computed: the record of its kind; None if there is nothing to choose
    stored: tuple[Node, ...]
    read: tuple[Node, ...]
    fixed: bool = False  # whether it must keep its place in the order
    scratch: tuple[tuple[str, int], ...] = ()  # names and bytes of memory that it needs
    may_overwrite: Callable[[Node, Node], bool] = _never  # whether a value may be written over one that it reads

    @property
    def number(self) -> int:
        number: int = self.what.number
        return number

    def __str__(self) -> str:
        stored, read = (", ".join(map(repr, nodes)) for nodes in (self.stored, self.read))
        return f"{stored} = {self.what.name}({read})"


def order_steps(steps: Sequence[Step], outputs: Sequence[Node]) -> tuple[Step, ...]:
    """Return the steps in the order in which they run.

    Steps are delayed until their results are needed, and outputs that no other step reads are written early.
    """
    wanted = {o.number for o in outputs}
    return tuple(_advance(_delay(list(steps), wanted), wanted))


def _delay(steps: list[Step], wanted: set[int]) -> list[Step]:
    """Return the steps with each just before the first that reads its result, or before its operands would be freed."""
    maker = _find_makers(steps)
    needs = [{maker[n.number] for n in s.read if n.number in maker} for s in steps]
    readers = _list_readers(needs)
    last: dict[int, int] = {}  # by value: the last of the steps so far that reads it
    when = [*range(len(steps))]
    for at in reversed(range(len(steps))):
        s = steps[at]
        if readers[at] and not s.fixed and not any(n.number in wanted for n in s.stored):
            kept = _list_kept(s, maker, wanted)
            if all(n.number in last for n in kept):
                when[at] = min(*(when[i] for i in readers[at]), *(when[last[n.number]] for n in kept), len(steps))
        for n in s.read:
            last[n.number] = max(last.get(n.number, at), at, key=lambda i: when[i])
    return [steps[at] for at in order_by_needs([(w, at) for at, w in enumerate(when)], needs)]


def _find_makers(steps: list[Step]) -> dict[int, int]:
    """Return, by value, the position of the step that stores it."""
    return {n.number: at for at, s in enumerate(steps) for n in s.stored}


def _list_readers(needs: Sequence[Collection[int]]) -> list[list[int]]:
    """Return, for each number, the numbers that need it; ``needs`` has what each needs."""
    readers: list[list[int]] = [[] for _ in needs]
    for at, needed in enumerate(needs):
        for other in needed:
            readers[other].append(at)
    return readers


def _list_kept(s: Step, maker: dict[int, int], wanted: set[int]) -> list[Node]:
    """Return the values of other steps that a step reads and that are no outputs: they take memory until then."""
    return [n for n in s.read if n.number in maker and n.number not in wanted]


def order_by_needs(preferences: Sequence[Any], needs: Sequence[Collection[int]]) -> list[int]:
    """Return the numbers from 0 on in an order in which each follows those it needs, by preference otherwise.

    >>> order_by_needs([0, 1, 2], [{2}, set(), set()])
    [1, 2, 0]
    """
    missing = [len(those) for those in needs]
    waiting = _list_readers(needs)
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


def _advance(steps: list[Step], wanted: set[int]) -> list[Step]:
    """Return the steps with those that write outputs nothing reads as early as possible, where that frees memory."""
    maker = _find_makers(steps)
    read = {n.number for s in steps for n in s.read}

    def when(at: int) -> tuple[int, int, int]:
        s = steps[at]
        if s.fixed or any(n.number not in wanted or n.number in read for n in s.stored):
            return at, 0, 0
        kept = sum(n.nbytes for n in _list_kept(s, maker, wanted))
        if kept < sum(n.nbytes for n in s.stored):
            return at, 0, 0
        return max((maker[n.number] for n in s.read if n.number in maker), default=-1), 1, at

    return [steps[at] for at in sorted(range(len(steps)), key=when)]
