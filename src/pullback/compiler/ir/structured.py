"""Loops: what the node of a loop holds, and how NumPy runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import CONSTANT

__all__ = ["Loop", "run_graph"]


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop: ``carry, y = body(constants, carry, x)`` for each ``x`` along axis 0 of the xs.

    The operands of its node are constants, carry and xs, as the inputs of the body are; its results the last carry and
    all ys, as the outputs of the body are.
    """

    body: Graph
    constants: int
    carry: int
    length: int
    reverse: bool

    whole = True  # two are the same only if they are one object

    @property
    def counts(self) -> tuple[int, int, int, bool]:
        """All but the body."""
        return self.constants, self.carry, self.length, self.reverse

    @property
    def xs(self) -> int:
        """The first of the xs among the operands."""
        return self.constants + self.carry

    @property
    def likes(self) -> list[tuple[tuple[int, ...], Any]]:
        """Shape and dtype of each result."""
        outputs = self.body.outputs
        first = [(o.shape, o.dtype) for o in outputs[: self.carry]]
        return first + [((self.length, *o.shape), o.dtype) for o in outputs[self.carry :]]

    @property
    def carried(self) -> list[Node]:
        """The inputs of the body that hold the carry."""
        return self.body.inputs[self.constants : self.xs]

    def find_stacks(self) -> dict[int, int]:
        """Return which ys hold a part of the carry, by its place: that lies in them, and not in memory of its own.

        These are outputs of the body that are an input of the carry, or the same value as its output.
        """
        outputs = self.body.outputs
        found: dict[int, int] = {}
        for k, x in enumerate(self.carried):
            same = [i for i in range(self.carry, len(outputs)) if outputs[i] is x]
            same = same or [i for i in range(self.carry, len(outputs)) if outputs[i] is outputs[k]]
            if same and same[0] not in found:
                found[same[0]] = k
        return found

    def check(self, operands: Sequence[tuple[Any, Any]]) -> str:
        """Return what is wrong with operands of these shapes and dtypes, or with the body."""
        self.body.verify()
        wanted = [(n.shape, n.dtype) for n in self.body.inputs]
        wanted[self.xs :] = [((self.length, *shape), dtype) for shape, dtype in wanted[self.xs :]]
        if wanted != list(operands):
            return f"the body takes {wanted}, its operands are {list(operands)}."
        carry = [(n.shape, n.dtype) for n in self.body.inputs[self.constants : self.xs]]
        return "" if carry == self.likes[: self.carry] else f"the carry {carry} becomes {self.likes[: self.carry]}."

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Run the loop by NumPy."""
        constants, carry = values[: self.constants], list(values[self.constants : self.xs])
        ys = [np.empty(shape, dtype) for shape, dtype in self.likes[self.carry :]]
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            made = run_graph(self.body, [*constants, *carry, *(x[t] for x in values[self.xs :])])
            carry = made[: self.carry]
            for y, z in zip(ys, made[self.carry :], strict=True):
                y[t] = z
        return [*carry, *ys]

    def __str__(self) -> str:
        direction = " backwards" if self.reverse else ""
        lines = str(self.body).replace("\n", "\n    ")
        return f"of {self.length} steps{direction}, {self.constants} constants, {self.carry} carried {{\n    {lines}\n}}"


def run_graph(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Return the outputs of a graph, by NumPy."""
    env: dict[int, Any] = dict(zip((n.number for n in graph.inputs), values, strict=True))
    for n in graph.nodes:
        if n.number not in env:
            env[n.number] = n.data if n.kind is CONSTANT else n.kind.evaluate(n, *(env[a.number] for a in n.args))
    return [np.array(env[o.number]) for o in graph.outputs]
