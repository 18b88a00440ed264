"""The part of the compiler that a program goes through when nothing is kept of it; opened when that is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiler.codegen.module import Assembler, Assembly
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import CONSTANT, PART, PRODUCT, SCAN, WINDOWS, Kind
from pullback.compiler.passes.legalize import prepared
from pullback.compiler.runtime.manifest import Kernel, Piece, Recipe, Slot
from pullback.compiler.schedule.cost import estimate_cost
from pullback.compiler.target import Target

__all__ = ["assembled", "prepared", "recipe_of"]

LONG = 200_000  # work, in elements, from which on other threads of the interpreter may run meanwhile


def assembled(graph: Graph, target: Target, threads: int, apart: bool) -> Assembly:
    """A prepared graph as text, for a target and at most so many threads."""
    return Assembler(graph, target, threads, apart=apart).run()


def recipe_of(traced: Graph, graph: Graph, assembly: Assembly) -> tuple[Recipe, dict[int, Any]]:
    """How a program is run, and its constants: of the graph as it was traced, as it was prepared, and put together."""
    nodes = list(assembly.slots)
    places = {n.number: i for i, n in enumerate(nodes)}
    for o in graph.outputs:
        if o.number not in places:  # a number that is a result
            places[o.number] = len(nodes)
            nodes.append(o)
    source = {id(n.data): n.number for n in traced.nodes if n.kind.has_params}
    parts: dict[int, list[tuple[int, int]]] = {}
    for n in nodes:
        if n.kind is PART:
            parts.setdefault(n.args[0].number, []).append((places[n.number], n.data))

    def kernel(n: Node) -> Kernel:
        given = [places[a.number] for a in n.args]
        return Kernel(source.get(id(n.data), -1), n.number, given, parts.get(n.number) or [(places[n.number], -1)])

    recipe = Recipe(
        imports=tuple(k for k in ("sgemm", "dgemm", "parallel") if f"@{k}(" in assembly.text),
        pieces=tuple(
            Piece(s.name, sorted(s.slots), None if s.opaque is None else kernel(s.opaque)) for s in assembly.segments
        ),
        slots=tuple(Slot(n.kind, n.shape, n.dtype) for n in nodes),
        inputs=tuple(places[n.number] for n in graph.inputs),
        outputs=tuple(places[o.number] for o in graph.outputs),
        arena=assembly.arena,
        blocks=tuple(assembly.blocks),
        long=sum(map(_work, graph.nodes)) > LONG,
        described=tuple(assembly.described),
    )
    return recipe, {i: n.data for i, n in enumerate(nodes) if n.kind is CONSTANT}


def _work(n: Node) -> int:
    """About how many vector instructions a node is."""
    if n.kind in CALL_WORK:
        return CALL_WORK[n.kind](n)
    return 0 if n.kind.is_leaf else n.size * estimate_cost(n)


CALL_WORK: dict[Kind, Callable[[Node], int]] = {
    PRODUCT: lambda n: n.size * n.args[0].shape[-1] // 4,
    SCAN: lambda n: n.args[0].size,
    WINDOWS: lambda n: int(n.data.work) // 4,
}
