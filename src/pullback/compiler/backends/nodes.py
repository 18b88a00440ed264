"""How an array library evaluates each kind of node; a kind or op that is missing here is run by NumPy on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from pullback.compiler.backends.library import Library, locate_elements
from pullback.compiler.backends.ops import evaluate_scalar, find_op
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import (
    CAST,
    CONSTANT,
    FOLD,
    LOOP,
    MAP,
    OPAQUE,
    PART,
    PIECES,
    PRODUCT,
    RESULT,
    SCAN,
    SCATTER,
    SPACED,
    SWITCH,
    TAKE,
    VIEW,
    WHILE,
    Kind,
)  # fmt: skip

__all__ = ["GraphRunner"]

Evaluate = Callable[..., Any]


def _cast(lib: Library, n: Node) -> Evaluate:
    return lambda x: lib.astype(x, n.dtype)


def _fold(lib: Library, n: Node) -> Evaluate:
    return lambda x: lib.reduce(n.data.op.name, x, n.data.axes)


def _view(lib: Library, n: Node) -> Evaluate:
    return lambda x: lib.view(x, n.shape, n.data.offset, n.data.strides)


def _pieces(lib: Library, n: Node) -> Evaluate:
    places = [
        tuple(slice(s, s + length) for s, length in zip(start, a.shape, strict=True))
        for a, start in zip(n.args, n.data.starts, strict=True)
    ]

    def run(*xs: Any) -> Any:
        z = lib.full(n.shape, n.data.fill, n.dtype)
        for place, x in zip(places, xs, strict=True):
            z = lib.put(z, place, x)
        return z

    return run


def _take(lib: Library, n: Node) -> Evaluate:
    table = (n.args[0].size // prod(n.data), *n.data)
    return lambda x, rows: lib.take(lib.reshape(x, table), rows)


def _scatter(lib: Library, n: Node) -> Evaluate:
    table = (n.size // prod(n.data), *n.data)
    return lambda x, rows: lib.reshape(lib.add_at(lib.full(table, 0, n.dtype), (rows,), x), n.shape)


def _spaced(lib: Library, n: Node) -> Evaluate:
    places = locate_elements(n.size, n.args[0].shape, n.data.offset, n.data.strides)

    def run(x: Any) -> Any:
        return lib.reshape(lib.put(lib.full((n.size,), 0, n.dtype), (lib.enter(places),), x), n.shape)

    return run


def _product(lib: Library, n: Node) -> Evaluate:
    def run(a: Any, b: Any, *added: Any) -> Any:
        z = lib.matmul(a, b)
        z = z if n.data is None else z * n.data
        return z + added[0] if added else z

    return run


def _part(lib: Library, n: Node) -> Evaluate:
    return lambda parts: parts[n.data]


class _Structured:
    """A loop or branches, whose bodies are run by the library too."""

    def __init__(self, lib: Library, n: Node, run: Evaluate) -> None:
        self.data, self.run = n.data, run
        self.bodies = [GraphRunner(lib, body) for body in n.data.bodies]
        self.host_ops = [name for body in self.bodies for name in body.host_ops]

    def __call__(self, *xs: Any) -> Any:
        return self.run(self.data, self.bodies, list(xs))


def _loop(lib: Library, n: Node) -> Evaluate:
    return _Structured(lib, n, lib.run_loop)


def _while(lib: Library, n: Node) -> Evaluate:
    return _Structured(lib, n, lib.run_while)


def _switch(lib: Library, n: Node) -> Evaluate:
    return _Structured(lib, n, lib.run_switch)


KINDS: dict[Kind, Callable[[Library, Node], Evaluate | None]] = {
    MAP: evaluate_scalar, CAST: _cast, FOLD: _fold, VIEW: _view, PIECES: _pieces, TAKE: _take, SCATTER: _scatter,
    SPACED: _spaced, SCAN: find_op, PRODUCT: _product, OPAQUE: find_op, PART: _part, RESULT: _part,
    LOOP: _loop, WHILE: _while, SWITCH: _switch,
}  # fmt: skip


def find_evaluator(lib: Library, n: Node) -> Evaluate | None:
    """Return a function of the library's arrays that evaluates a node; None if there is none."""
    if not n.size:  # of nothing, which some functions refuse
        return lambda *xs: lib.full(n.shape, 0, n.dtype)
    return KINDS[n.kind](lib, n) if n.kind in KINDS else None


class GraphRunner:
    """Evaluates the nodes of a graph in order; what the library lacks is run by NumPy on the host."""

    def __init__(self, library: Library, graph: Graph) -> None:
        self.library, self.inputs, self.outputs = library, graph.inputs, graph.outputs
        self.constants = {n.number: n.data for n in graph.nodes if n.kind is CONSTANT}
        self.host_ops: list[str] = []
        self.steps: list[tuple[Node, Evaluate]] = []
        parts = _collect_parts(graph)
        for n in graph.nodes:
            if n.kind.is_leaf:
                continue
            evaluate = find_evaluator(library, n)
            if evaluate is None:
                self.host_ops.append(n.name)
                evaluate = library.call_host(partial(n.kind.evaluate, n), parts.get(n.number, {None: n}))
            self.host_ops += getattr(evaluate, "host_ops", ())
            self.steps.append((n, evaluate))

    def __call__(self, first: Sequence[Any]) -> list[Any]:
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
