"""The program by NumPy: where there is no llvmlite, and as the measure of what machine code must give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.passes.simplify import evaluated

__all__ = ["Executor"]

Step = tuple[int, Callable[..., Any], tuple[int, ...], tuple[int, ...]]


class Executor:
    """Runs a graph node by node; a value is let go after its last use."""

    def __init__(self, graph: Graph) -> None:
        self.stats: dict[str, float] = {}  # nothing is made that would take time
        last = {a.number: n.number for n in graph.nodes for a in n.args}
        kept = {o.number for o in graph.outputs}
        self.steps: list[Step] = []
        self.start: list[Any] = [n.data if n.kind == "constant" else None for n in graph.nodes]
        self.inputs = [n.number for n in graph.inputs]
        self.outputs = [o.number for o in graph.outputs]
        for n in graph.nodes:
            if n.kind not in ("input", "constant"):
                spent = {a.number for a in n.args if last[a.number] == n.number and a.number not in kept}
                gone = tuple(i for i in spent if graph.nodes[i].kind not in ("input", "constant"))
                self.steps.append((n.number, performer(n), tuple(a.number for a in n.args), gone))

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        env = list(self.start)
        for place, v in zip(self.inputs, values, strict=True):
            env[place] = v
        with np.errstate(all="ignore"):
            for place, perform, args, gone in self.steps:
                env[place] = perform(*[env[i] for i in args])
                for i in gone:
                    env[i] = None
        return [np.array(env[i]) for i in self.outputs]


def performer(n: Node) -> Callable[..., Any]:
    """How a node is computed from the arrays of its arguments."""
    if n.kind in ("map", "opaque", "scan"):
        op, params = n.data
        return lambda *xs: op.perform([x[()] if not x.ndim else x for x in map(np.asarray, xs)], params)
    if n.kind == "fold":
        op, axes = n.data
        given = {**op.params, "axis": axes, "keepdims": False}
        return lambda x: op.perform([x], {k: given[k] for k in op.params})
    if n.kind == "product":
        return lambda a, b, *c: np.matmul(a, b) + c[0] if c else np.matmul(a, b)
    if n.kind == "part":
        return lambda zs: zs[n.data]
    return lambda *xs: evaluated(n, [np.asarray(x) for x in xs])
