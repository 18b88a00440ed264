"""Plans of loops and branches: their bodies, and the scratch memory of what a run of the bodies leaves to the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import LOOP, WHILE
from pullback.compiler.ir.structured import Loop
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.memory import Memory
from pullback.compiler.schedule.order import ScheduledStep

Place = tuple[str, int]  # what is in a part of scratch memory: its name, and a number of the carry or of a result


class BodyPlan(NamedTuple):
    """The plan of the body of a loop or a branch: its steps in order, and the memory of one run."""

    graph: Graph
    steps: tuple[ScheduledStep, ...]
    memory: Memory

    def __str__(self) -> str:
        return "\n".join(["body:", *map(str, self.steps)])


class StructurePlan(NamedTuple):
    """The plan of a loop or of branches: their bodies; none for a loop over numbers, which stay in registers.

    Scratch memory begins with that of the bodies, which run one at a time; the ``offsets`` are those of what follows.
    """

    bodies: tuple[BodyPlan, ...]
    stacks: dict[int, int]  # by number in the carry of a loop: the result that all values of it are written to
    offsets: dict[Place, int]
    scratch_bytes: int

    @property
    def is_in_registers(self) -> bool:
        """Whether it is a loop over numbers."""
        return not self.bodies

    def __str__(self) -> str:
        return "in registers" if self.is_in_registers else "\n".join(map(str, self.bodies))


IN_REGISTERS = StructurePlan((), {}, {}, 0)


def plan_structure(n: Node, bodies: tuple[BodyPlan, ...], results: Collection[int]) -> StructurePlan:
    """Return the plan of a loop or of branches; ``results`` are the numbers of the results that are read."""
    stacks = {k: i for i, k in n.data.find_stacks().items() if i in results}
    offsets: dict[Place, int] = {}
    end = max(round_up(body.memory.layout.arena) for body in bodies)
    for place, size in _list_places(n, stacks, results):
        offsets[place] = end
        end += round_up(size)
    return StructurePlan(bodies, stacks, offsets, end)


def _list_places(n: Node, stacks: dict[int, int], results: Collection[int]) -> Iterator[tuple[Place, int]]:
    """Yield what is in scratch memory besides the memory of the bodies, and its bytes."""
    outputs = n.data.bodies[-1].outputs
    if n.kind is WHILE:
        yield ("condition", 0), 1
        for k, x in enumerate(outputs):
            yield ("odd", k), x.nbytes
            yield ("even", k), x.nbytes
        return
    for i, x in enumerate(outputs):  # what nothing reads is written all the same
        if i not in results and (i not in stacks or begins_in_stack(n.data, stacks, i)):
            yield ("result", i), x.nbytes
    if n.kind is LOOP:
        for k in range(n.data.carry):
            if k not in stacks:
                yield ("other", k), outputs[k].nbytes


def begins_in_stack(loop: Loop, stacks: dict[int, int], k: int) -> bool:
    """Return whether the stacked values of a part of the carry are those before each step, not after it."""
    return loop.body.outputs[stacks[k]] is loop.carry_inputs[k]
