"""Plan the memory of a program: every value is in the array of a slot, or in the arena, placed by lifetime.

Inputs, outputs, constants and the operands and results of host ops have slots: arrays that the program is called with.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from pullback.compiler.ir.graph import Graph, Node, is_number
from pullback.compiler.ir.kinds import CONSTANT
from pullback.compiler.schedule.arena import Allocation, Layout, place_apart, place_values, verify
from pullback.compiler.schedule.order import ScheduledStep


class Memory(NamedTuple):
    """The memory of a program: its slots, and the layout of all other values."""

    slots: list[Node]
    slot: dict[int, int]  # by number of a node: its slot
    values: list[Allocation]  # the values that have no slots, and scratch memory
    # outputs and their slots; their memory may hold other values before
    results: dict[Hashable, tuple[int, Allocation]]
    over: dict[Hashable, Hashable]  # by value: the one that it is written over
    layout: Layout

    def verify(self) -> None:
        """Raise CompileError if a value is written over another one that is still needed."""
        verify(self.layout, [*self.values, *(v for _, v in self.results.values())], self.over)

    def __str__(self) -> str:
        lines = [f"slot {i}: {n!r} {n.dtype}{list(n.shape)}" for i, n in enumerate(self.slots)]
        for v in self.values:
            place, name = self.layout.places[v.key], _describe_key(v.key)
            where = f"slot {place.slot}" if place.slot >= 0 else "arena"
            over = f", over {_describe_key(self.over[v.key])}" if v.key in self.over else ""
            lines.append(f"{name}: {v.size} bytes at {where} + {place.offset}, steps {v.first} to {v.last}{over}")
        return "\n".join([*lines, f"arena: {self.layout.arena} bytes"])


def _describe_key(key: Hashable) -> str:
    return " of step ".join(map(str, key)) if isinstance(key, tuple) else f"%{key}"


def plan_memory(graph: Graph, steps: Sequence[ScheduledStep], guarded: bool = False) -> Memory:
    """Return the memory of a program with these steps, in order.

    With ``guarded``, for tests, every value has pages of its own.
    """
    slots = _give_slots(graph)
    slot = {n.number: i for i, n in enumerate(slots)}
    wanted = {o.number for o in graph.outputs}
    over = _plan_overwrites(steps, slot, wanted)
    last = _find_last_steps(steps)
    values: list[Allocation] = []
    results: dict[Hashable, tuple[int, Allocation]] = {}
    for at, step in enumerate(steps):
        for n in _list_made(step):
            if n.number not in slot:
                values.append(Allocation(n.number, n.nbytes, at, last.get(n.number, at)))
            elif n.number in wanted:
                results[n.number] = slot[n.number], Allocation(n.number, n.nbytes, at, len(steps))
        values += [Allocation((purpose, step.number), size, at, at) for purpose, size in step.scratch]
    layout = (place_apart if guarded else place_values)(values, over, results)
    return Memory(slots, slot, values, results, over, layout)


def _list_made(step: ScheduledStep) -> list[Node]:
    return [n for n in step.stored if not n.kind.runs_on_host]


def _find_last_steps(steps: Sequence[ScheduledStep]) -> dict[int, int]:
    """Return the last step that reads or stores each value."""
    return {n.number: at for at, step in enumerate(steps) for n in (*step.stored, *step.read)}


def _plan_overwrites(
    steps: Sequence[ScheduledStep], slot: dict[int, int], wanted: set[int]
) -> dict[Hashable, Hashable]:
    """Return which outputs and values of the arena are written over which values of the arena."""
    over: dict[Hashable, Hashable] = {}
    last = _find_last_steps(steps)
    extent: dict[int, int] = {}  # by value: bytes of its place, which an earlier value there may have made larger
    for at, step in enumerate(steps):
        computed = _list_made(step)
        spent = [n for n in step.read if n.number in extent and last[n.number] == at]
        free = [n for n in computed if n.number in wanted or n.number not in slot]
        for z, x in _find_overwrites(step, sorted(free, key=lambda z: z.number not in slot), spent):
            is_result = z.number in slot
            if is_result and x.number in over:  # outputs are not aligned, as values that are read often should be
                continue
            if z.nbytes <= 2 * extent[x.number] <= (2 if is_result else 4) * z.nbytes:
                over[z.number] = x.number
                if not is_result:
                    extent[z.number] = max(z.nbytes, extent[x.number])
        for n in computed:
            if n.number not in slot:
                extent.setdefault(n.number, n.nbytes)
    return over


def _give_slots(graph: Graph) -> list[Node]:
    """Return the nodes that have slots, in the order of the slots."""
    found: dict[int, Node] = {n.number: n for n in (*graph.inputs, *graph.outputs) if n.kind is not CONSTANT}
    users = graph.find_users()
    for n in graph.nodes:
        if n.kind is CONSTANT:
            if not is_number(n) or any(u.kind.reads_memory for u in users[n.number]):
                found[n.number] = n
        elif n.kind.runs_on_host:
            found.update((m.number, m) for m in (n, *n.args) if m.kind is not CONSTANT)
    return list(found.values())


def _find_overwrites(step: ScheduledStep, computed: list[Node], spent: list[Node]) -> Iterator[tuple[Node, Node]]:
    """Yield pairs: a value that a step stores, and one that it reads for the last time and may overwrite."""
    for z in computed if spent else ():
        x = max((x for x in spent if (z.number, x.number) in step.overwritable), key=lambda x: x.number, default=None)
        if x is not None:
            spent.remove(x)
            yield z, x
