"""How an array library evaluates each kind of node; a kind or op that is missing here is run by NumPy on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from pullback.compiler.backends.library import Library, locate_elements
from pullback.compiler.backends.ops import find_map, find_op_evaluator
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import (
    CAST,
    CONSTANT,
    FOLD,
    MAP,
    OPAQUE,
    PART,
    PIECES,
    PRODUCT,
    RESULT,
    SCAN,
    SCATTER,
    SPACED,
    STRUCTURES,
    TAKE,
    VIEW,
    Kind,
)  # fmt: skip

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

    def run(*xs: object) -> Any:
        z = lib.full(n.shape, n.data.fill, n.dtype)
        for place, x in zip(places, xs, strict=True):
            z = lib.put(z, place, x)
        return z

    return run


def _take(lib: Library, n: Node) -> Evaluate:
    table = (n.args[0].size // prod(n.data), *n.data)
    return lambda x, rows: lib.take(lib.reshape(x, table), rows)


def _scatter(lib: Library, n: Node) -> Evaluate | None:
    if n.data.combine != "add":
        return None
    table = (n.size // prod(n.data.row), *n.data.row)
    return lambda x, rows: lib.reshape(lib.add_at(lib.full(table, 0, n.dtype), (rows,), x), n.shape)


def _space_out(lib: Library, n: Node) -> Evaluate:
    places = locate_elements(n.size, n.args[0].shape, n.data.offset, n.data.strides)

    def run(x: Any) -> Any:
        return lib.reshape(lib.put(lib.full((n.size,), 0, n.dtype), (lib.enter(places),), x), n.shape)

    return run


def _product(lib: Library, n: Node) -> Evaluate:
    def run(a: Any, b: Any, *added: object) -> Any:
        z = lib.matmul(a, b)
        return z + added[0] if added else z

    return run


def _part(lib: Library, n: Node) -> Evaluate:
    return lambda parts: parts[n.data]


class GraphRunner:
    """Evaluates the nodes of a graph in order, on the library's arrays; host ops copy theirs to the host and back."""

    def __init__(self, lib: Library, graph: Graph) -> None:
        self.lib, self.graph = lib, graph
        self.constants = {n.number: n.data for n in graph.nodes if n.kind is CONSTANT}
        self.host_ops: list[str] = []
        self.steps: list[tuple[Node, Evaluate]] = []
        parts: dict[int, dict[Any, Node]] = {}
        for n in graph.nodes:
            if n.kind is PART:
                parts.setdefault(n.args[0].number, {})[n.data] = n
        for n in graph.nodes:
            if n.kind.is_leaf:
                continue
            evaluate = find_evaluator(lib, n)
            if evaluate is None:
                self.host_ops.append(n.name)
                evaluate = lib.call_host(partial(n.kind.evaluate, n), parts.get(n.number, {None: n}))
            self.host_ops += getattr(evaluate, "host_ops", ())
            self.steps.append((n, evaluate))

    def __call__(self, first: Sequence[Any]) -> list[Any]:
        values = {number: self.lib.enter(x) for number, x in self.constants.items()}
        values |= zip((n.number for n in self.graph.inputs), first, strict=True)
        for n, evaluate in self.steps:
            values[n.number] = evaluate(*[values[a.number] for a in n.args])
        return [self.lib.astype(values[o.number], o.dtype) for o in self.graph.outputs]


def _structure(lib: Library, n: Node) -> Evaluate:
    """Evaluate a loop or branches: by the library's own, unless NumPy runs a part of a body on the host."""
    runners = {id(body): GraphRunner(lib, body) for body in n.data.bodies}
    host_ops = [name for r in runners.values() for name in r.host_ops]

    def run(*xs: object) -> Any:
        return lib.run_structure(n.data, lambda body, inputs: runners[id(body)](inputs), xs, not host_ops)

    run.host_ops = host_ops  # type: ignore[attr-defined]
    return run


KINDS: dict[Kind, Callable[[Library, Node], Evaluate | None]] = {
    MAP: find_map, CAST: _cast, FOLD: _fold, VIEW: _view, PIECES: _pieces, TAKE: _take, SCATTER: _scatter,
    SPACED: _space_out, PRODUCT: _product, PART: _part, RESULT: _part, SCAN: find_op_evaluator,
    OPAQUE: find_op_evaluator,
    **dict.fromkeys(STRUCTURES, _structure),
}  # fmt: skip


def find_evaluator(lib: Library, n: Node) -> Evaluate | None:
    """Return a function of the library's arrays that evaluates a node; None if there is none."""
    if not n.size:  # of nothing, which some functions refuse
        return lambda *xs: lib.full(n.shape, 0, n.dtype)
    if (own := lib.find_own(n)) is not None:
        return own
    return KINDS[n.kind](lib, n) if n.kind in KINDS else None
