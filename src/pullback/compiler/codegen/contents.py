"""What a program consists of besides machine code: its manifest, its constants and the ops that NumPy runs."""

from __future__ import annotations

from pullback.compiler.codegen.module import Module
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import CONSTANT, LOOP, PART, WHILE
from pullback.compiler.runtime.manifest import ArraySlot, Contents, HostOpRecord, Manifest, Segment
from pullback.compiler.schedule.cost import estimate_cost
from pullback.compiler.schedule.memory import Memory

MIN_UNLOCKED_COST = 200_000  # vector instructions from which on a program releases the interpreter's lock


def collect_contents(traced: Graph, graph: Graph, memory: Memory, module: Module) -> Contents:
    """Return the contents of a program whose module was emitted for ``graph``, the legalized form of ``traced``."""
    nodes = list(memory.slots)
    slots = {n.number: i for i, n in enumerate(nodes)}
    for o in graph.outputs:
        if o.number not in slots:  # a constant number that is an output
            slots[o.number] = len(nodes)
            nodes.append(o)
    manifest = Manifest(
        imports=module.imports,
        segments=_list_segments(traced, module, nodes, slots),
        slots=tuple(ArraySlot(n.kind, n.shape, n.dtype) for n in nodes),
        inputs=tuple(slots[n.number] for n in graph.inputs),
        outputs=tuple(slots[o.number] for o in graph.outputs),
        arena=memory.layout.arena,
        blocks=tuple(memory.layout.blocks),
        releases_gil=sum(map(_count_instructions, graph.nodes)) > MIN_UNLOCKED_COST,
        described=module.described,
        flags_rare=module.flags_rare,
    )
    constants = {i: n.data for i, n in enumerate(nodes) if n.kind is CONSTANT}
    return Contents(manifest, constants, tuple(s.host_op.data for s in module.segments if s.host_op is not None))


def _list_segments(traced: Graph, module: Module, nodes: list[Node], slots: dict[int, int]) -> tuple[Segment, ...]:
    """Return the segments of a program as data: functions, and host ops with the slots that they read and write."""
    source = {id(n.data): n.number for n in traced.nodes if n.kind.has_params}
    parts: dict[int, list[tuple[int, int]]] = {}
    for n in nodes:
        if n.kind is PART:
            parts.setdefault(n.args[0].number, []).append((slots[n.number], n.data))

    def make_host_op(n: Node) -> HostOpRecord:
        inputs = [slots[a.number] for a in n.args]
        return HostOpRecord(
            source.get(id(n.data), -1), n.number, inputs, parts.get(n.number) or [(slots[n.number], -1)]
        )

    return tuple(
        Segment(s.name, sorted(s.slots), None if s.host_op is None else make_host_op(s.host_op))
        for s in module.segments
    )


def _count_instructions(n: Node) -> int:
    """Return an estimate of the vector instructions that a node takes."""
    if n.kind is WHILE:
        return MIN_UNLOCKED_COST  # the number of its steps is unknown
    if n.kind.has_bodies:
        once = sum(_count_instructions(m) for body in n.data.bodies for m in body.nodes)
        return n.data.length * once if n.kind is LOOP else once
    if n.kind.is_call:
        return n.kind.cost(n)
    return 0 if n.kind.is_leaf else n.size * estimate_cost(n)
