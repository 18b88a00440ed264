"""Loops and branches: the data of their nodes, and how NumPy runs them.

Each has graphs of its own, its bodies.  Operands of the node are inputs of the bodies, and outputs of the bodies are
its results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import CONSTANT

Likes = list[tuple[tuple[int, ...], Any]]  # shapes and dtypes
RunBody = Callable[[Graph, Sequence[Any]], Sequence[Any]]


class Structure(ABC):
    """Base of loops and branches."""

    whole = True  # compared by identity

    @property
    @abstractmethod
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs that it runs."""

    @abstractmethod
    def replace_bodies(self, bodies: Sequence[Graph]) -> Structure:
        """Return the same structure with other bodies."""

    @property
    def settings(self) -> tuple[Any, ...]:
        """All data except the bodies."""
        return ()

    @property
    @abstractmethod
    def operand_likes(self) -> Likes:
        """The shapes and dtypes of its operands."""

    @property
    @abstractmethod
    def result_likes(self) -> Likes:
        """The shapes and dtypes of its results."""

    def find_stacks(self) -> dict[int, int]:
        """Return which results stack a part of the carry over all steps, by its place."""
        return {}

    @abstractmethod
    def run(self, values: Sequence[Any], run_body: RunBody | None = None) -> list[Any]:
        """Return the results; ``run_body`` runs a body, by default NumPy does."""

    @abstractmethod
    def find_problem(self) -> str:
        """Return what is wrong with the bodies together, given that each is a valid graph; empty if nothing is."""

    def check(self, operands: Likes) -> str:
        """Return what is wrong with operands of these shapes and dtypes, or with the bodies."""
        for body in self.bodies:
            body.verify()
        if self.operand_likes != operands:
            return f"it takes {self.operand_likes}, its operands are {operands}."
        return self.find_problem()

    def __str__(self) -> str:
        bodies = (f"{{\n{body}".replace("\n", "\n    ") + "\n}" for body in self.bodies)
        return " ".join([*map(str, self.settings), *bodies])


@dataclass(frozen=True, eq=False)
class Loop(Structure):
    """A loop with a known number of steps: ``carry, y = body(constants, carry, x)`` for each ``x`` along axis 0 of xs.

    The operands are constants, carry and xs; the results are the last carry, and the ys of all steps.
    """

    body: Graph
    constants: int
    carry: int
    length: int
    reverse: bool

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    def replace_bodies(self, bodies: Sequence[Graph]) -> Loop:
        return replace(self, body=bodies[0])

    @property
    def settings(self) -> tuple[Any, ...]:
        return self.constants, self.carry, self.length, "backwards" if self.reverse else "forwards"

    @property
    def xs(self) -> int:
        """The first of the xs among the operands."""
        return self.constants + self.carry

    @property
    def carry_inputs(self) -> list[Node]:
        """The inputs of the body that are the carry."""
        return self.body.inputs[self.constants : self.xs]

    @property
    def operand_likes(self) -> Likes:
        likes = _list_likes(self.body.inputs)
        return likes[: self.xs] + [((self.length, *shape), dtype) for shape, dtype in likes[self.xs :]]

    @property
    def result_likes(self) -> Likes:
        likes = _list_likes(self.body.outputs)
        return likes[: self.carry] + [((self.length, *shape), dtype) for shape, dtype in likes[self.carry :]]

    def find_problem(self) -> str:
        before, after = _list_likes(self.carry_inputs), self.result_likes[: self.carry]
        return "" if before == after else f"the carry {before} becomes {after}."

    def find_stacks(self) -> dict[int, int]:
        """Return which ys stack a part of the carry, by its place: this part needs no memory of its own.

        These are outputs of the body that are an input of the carry, or the same value as its output.
        """
        outputs = self.body.outputs
        found: dict[int, int] = {}
        for k, x in enumerate(self.carry_inputs):
            same = [i for i in range(self.carry, len(outputs)) if outputs[i] is x]
            same = same or [i for i in range(self.carry, len(outputs)) if outputs[i] is outputs[k]]
            if same and same[0] not in found and not outputs[k].kind.is_leaf:
                found[same[0]] = k
        return found

    def run(self, values: Sequence[Any], run_body: RunBody | None = None) -> list[Any]:
        run_body = run_body or run_graph
        constants, carry = values[: self.constants], list(values[self.constants : self.xs])
        ys = [np.empty(shape, dtype) for shape, dtype in self.result_likes[self.carry :]]
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            results = run_body(self.body, [*constants, *carry, *(x[t] for x in values[self.xs :])])
            carry = list(results[: self.carry])
            for y, z in zip(ys, results[self.carry :], strict=True):
                y[t] = z
        return [*carry, *ys]


@dataclass(frozen=True, eq=False)
class While(Structure):
    """A loop with a condition: ``carry = body(constants, carry)`` while ``condition(constants, carry)`` holds."""

    condition: Graph
    body: Graph
    constants: int

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.condition, self.body

    def replace_bodies(self, bodies: Sequence[Graph]) -> While:
        return While(bodies[0], bodies[1], self.constants)

    @property
    def settings(self) -> tuple[Any, ...]:
        return (self.constants,)

    @property
    def operand_likes(self) -> Likes:
        return _list_likes(self.body.inputs)

    @property
    def result_likes(self) -> Likes:
        return _list_likes(self.body.outputs)

    def find_problem(self) -> str:
        if _list_likes(self.condition.outputs) != [((), np.dtype(bool))]:
            return "its condition is not one bool."
        if _list_likes(self.condition.inputs) != self.operand_likes:
            return "its condition takes something else than its body."
        before, after = self.operand_likes[self.constants :], self.result_likes
        return "" if before == after else f"the carry {before} becomes {after}."

    def run(self, values: Sequence[Any], run_body: RunBody | None = None) -> list[Any]:
        run_body = run_body or run_graph
        constants, carry = values[: self.constants], list(values[self.constants :])
        while run_body(self.condition, [*constants, *carry])[0]:
            carry = list(run_body(self.body, [*constants, *carry]))
        return [np.array(x) for x in carry]


@dataclass(frozen=True, eq=False)
class Switch(Structure):
    """Branches: the first operand is the index of the one that is taken, clipped to those that exist."""

    branches: tuple[Graph, ...]

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.branches

    def replace_bodies(self, bodies: Sequence[Graph]) -> Switch:
        return Switch(tuple(bodies))

    @property
    def operand_likes(self) -> Likes:
        return [((), np.dtype(np.int64)), *_list_likes(self.branches[0].inputs)]

    @property
    def result_likes(self) -> Likes:
        return _list_likes(self.branches[0].outputs)

    def find_problem(self) -> str:
        kinds = [(_list_likes(b.inputs), _list_likes(b.outputs)) for b in self.branches]
        return "" if all(kind == kinds[0] for kind in kinds) else "its branches take or give different things."

    def run(self, values: Sequence[Any], run_body: RunBody | None = None) -> list[Any]:
        number = min(max(int(values[0]), 0), len(self.branches) - 1)
        return list((run_body or run_graph)(self.branches[number], values[1:]))


def _list_likes(nodes: Sequence[Node]) -> Likes:
    return [(n.shape, n.dtype) for n in nodes]


def run_graph(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Return the outputs of a graph, by NumPy."""
    env: dict[int, Any] = dict(zip((n.number for n in graph.inputs), values, strict=True))
    for n in graph.nodes:
        if n.number not in env:
            env[n.number] = n.data if n.kind is CONSTANT else n.kind.evaluate(n, *(env[a.number] for a in n.args))
    return [np.array(env[o.number]) for o in graph.outputs]
