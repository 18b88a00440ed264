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
from pullback.compiler.ir.kinds import CAST, CONSTANT, PART, PIECES, VIEW

__all__ = ["LibraryExecutor"]

FOLLOWING = (CAST, VIEW, PIECES, PART)  # kinds through which host ops of the arguments alone are followed


class LibraryExecutor:
    """Evaluates the nodes of a graph in order, on the library's arrays.

    Host ops that depend on arguments alone, such as checks of given positions, are run by NumPy before the library
    begins; the others copy their arguments to the host and their results back.
    """

    def __init__(self, graph: Graph, library: Library) -> None:
        self.library, self.stats = library, dict[str, float]()
        found = {n.number: find_evaluator(library, n) for n in graph.nodes if not n.kind.is_leaf}
        hosted = {number for number, evaluate in found.items() if evaluate is None}
        self.host_ops = [graph.nodes[number].name for number in sorted(hosted)]
        early = _find_early(graph, hosted)
        copied = dict.fromkeys(graph.nodes[number].name for number in sorted(hosted - early))
        if copied:
            warn(
                f"compile: backend={library.name!r} has no {', '.join(copied)}: NumPy runs this on the host, and its "
                "arguments and results are copied in every call.", stacklevel=6,
            )  # fmt: skip
        parts = _collect_parts(graph)
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self.constants = {n.number: n.data for n in graph.nodes if n.kind is CONSTANT}
        self.early = [n for n in graph.nodes if n.number in early]
        later = {a.number for n in graph.nodes if n.number not in early for a in n.args}
        later |= {o.number for o in graph.outputs}
        self.given = [n for n in self.early if n.number in later and n.number not in parts]
        self.steps: list[tuple[Node, Callable[..., Any]]] = []
        for n in graph.nodes:
            if not n.kind.is_leaf and n.number not in early:
                results = parts.get(n.number, {None: n})
                evaluate = found[n.number] or library.call_host(partial(n.kind.evaluate, n), results)
                self.steps.append((n, evaluate))
        self.run = library.prepare(self._run)

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        known: dict[int, Any] = dict(zip((n.number for n in self.inputs), values, strict=True))
        if self.early:
            known |= self._run_early(known)
        first = [known[n.number] for n in (*self.inputs, *self.given)]
        own = self.library.is_own
        made = self.run([x if own(x) else self.library.enter(x) for x in first])
        return made if self.library.device is not None else [np.array(self.library.leave(x)) for x in made]

    def _run_early(self, known: dict[int, Any]) -> dict[int, Any]:
        own, leave = self.library.is_own, self.library.leave
        values = {number: leave(x) if own(x) else x for number, x in known.items()} | self.constants
        for n in self.early:
            values[n.number] = n.kind.evaluate(n, *(values[a.number] for a in n.args))
        return {n.number: np.asarray(values[n.number]) for n in self.given}

    def _run(self, first: Sequence[Any]) -> list[Any]:
        values = {number: self.library.enter(x) for number, x in self.constants.items()}
        values |= zip((n.number for n in (*self.inputs, *self.given)), first, strict=True)
        for n, evaluate in self.steps:
            values[n.number] = evaluate(*[values[a.number] for a in n.args])
        return [values[o.number] for o in self.outputs]


def _find_early(graph: Graph, hosted: set[int]) -> set[int]:
    """Return the nodes that NumPy evaluates first: host ops of the arguments alone, and what these are made from."""
    reachable, early = set[int](), set[int]()
    for n in graph.nodes:
        follows = n.number in hosted or n.kind in FOLLOWING
        if n.kind.is_leaf or (follows and all(a.number in reachable for a in n.args)):
            reachable.add(n.number)
    for n in reversed(graph.nodes):
        if n.number in reachable and not n.kind.is_leaf and (n.number in hosted or n.number in early):
            early.add(n.number)
            early.update(a.number for a in n.args if not a.kind.is_leaf)
    early.update(n.number for n in graph.nodes if n.kind is PART and n.args[0].number in early)
    return early


def _collect_parts(graph: Graph) -> dict[int, dict[Any, Node]]:
    """Return the parts that are used of each host op that has several results, by their places."""
    found: dict[int, dict[Any, Node]] = {}
    for n in graph.nodes:
        if n.kind is PART:
            found.setdefault(n.args[0].number, {})[n.data] = n
    return found
