"""Run a graph by the functions of another array library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from warnings import warn

import numpy as np

from pullback.compiler.backends.library import Library
from pullback.compiler.backends.nodes import find_evaluator
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import CONSTANT, PART
from pullback.compiler.runtime.numpy_executor import raise_for_positions

__all__ = ["LibraryExecutor"]


class LibraryExecutor:
    """Evaluates the nodes of a graph in order, on the library's arrays; host ops copy theirs to the host and back."""

    def __init__(self, graph: Graph, library: Library, traced: Graph | None = None) -> None:
        self.library, self.stats = library, dict[str, float]()
        self.checked = traced if traced is not None and traced.checks else None
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self.constants = {n.number: n.data for n in graph.nodes if n.kind is CONSTANT}
        self.host_ops: list[str] = []
        self.steps: list[tuple[Node, Callable[..., Any]]] = []
        parts = _collect_parts(graph)
        for n in graph.nodes:
            if n.kind.is_leaf:
                continue
            evaluate = find_evaluator(library, n)
            if evaluate is None:
                self.host_ops.append(n.name)
                evaluate = library.call_host(partial(n.kind.evaluate, n), parts.get(n.number, {None: n}))
            self.steps.append((n, evaluate))
        if self.host_ops:
            warn(
                f"compile: backend={library.name!r} has no {', '.join(dict.fromkeys(self.host_ops))}: NumPy runs this "
                "on the host, and its arguments and results are copied in every call.", stacklevel=6,
            )  # fmt: skip
        self.run = library.prepare(self._run)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        library = self.library
        made = self.run([x if library.is_own(x) else library.enter(x) for x in values])
        if self.checked is not None and library.leave(made.pop()):
            raise_for_positions(self.checked, [library.leave(x) if library.is_own(x) else x for x in values])
        return made if library.device is not None else [np.array(library.leave(x)) for x in made]

    def _run(self, first: Sequence[Any]) -> list[Any]:
        values = {number: self.library.enter(x) for number, x in self.constants.items()}
        values |= zip((n.number for n in self.inputs), first, strict=True)
        for n, evaluate in self.steps:
            values[n.number] = evaluate(*[values[a.number] for a in n.args])
        return [values[o.number] for o in self.outputs]


def _collect_parts(graph: Graph) -> dict[int, dict[Any, Node]]:
    """Return the parts that are used of each host op that has several results, by their places."""
    found: dict[int, dict[Any, Node]] = {}
    for n in graph.nodes:
        if n.kind is PART:
            found.setdefault(n.args[0].number, {})[n.data] = n
    return found
