"""Split arrays of a few elements in the steps of loops into numbers, which stay in registers.

``u + h * np.array([u[1], -u[0]])`` puts elements together and takes them apart in each step.  In a loop over single
numbers an operation is an instruction, where it would be a part of a kernel that is called in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, Pieces, View, add_view, compute_strides
from pullback.compiler.ir.kinds import CONSTANT, FOLD, INPUT, LOOP, PIECES, RESULT, VIEW, Kind
from pullback.compiler.ir.structured import Loop
from pullback.compiler.passes.simplify import remove_dead_nodes, simplify_nodes

MAX_ELEMENTS = 4  # of an array that is split
MAX_NODES = 4000  # of the new body


def split_small_arrays(graph: Graph) -> Graph:
    """Return an equivalent graph whose loops over a few numbers have no arrays in their steps."""
    if not any(n.kind is LOOP and _has_small_arrays(n.data) for n in graph.nodes):
        return graph
    new, new_nodes = graph.copy_inputs()
    results = {(n.args[0].number, n.data): n for n in graph.nodes if n.kind is RESULT}
    for n in graph.nodes:
        if n.kind is INPUT or n.number in new_nodes:
            continue
        args = [new_nodes[a.number] for a in n.args]
        if n.kind is LOOP and _has_small_arrays(n.data):
            for place, z in LoopSplitter(new, n, args).run().items():
                if (n.number, place) in results:
                    new_nodes[results[n.number, place].number] = z
        else:
            new_nodes[n.number] = new.copy_node(n, args)
    new.outputs = [new_nodes[o.number] for o in graph.outputs]
    return simplify_nodes(remove_dead_nodes(new))


def _has_small_arrays(loop: Loop) -> bool:
    """Return whether the steps of a loop put a few numbers together, or take them apart, and do nothing else."""
    constants = {x.number for x in loop.body.inputs[: loop.constants]}
    nodes = [n for n in loop.body.nodes if n.number not in constants]
    values = [n for n in nodes if n.kind is not CONSTANT]
    can_split = all(map(_is_splittable, nodes)) and sum(n.size for n in values) <= MAX_NODES
    return can_split and any(n.kind in (PIECES, FOLD) for n in values)


def _is_splittable(n: Node) -> bool:
    """Return whether a node in a step has few elements, each of which can be computed by itself."""
    is_sum = n.kind is FOLD and n.data.op.kernel is np.sum and n.dtype.kind == "f"
    has_rule = n.kind.is_elementwise or n.kind in (INPUT, CONSTANT, VIEW, PIECES) or is_sum
    return has_rule and (n.size > 0 or n.kind is CONSTANT) and n.size <= MAX_ELEMENTS


class LoopSplitter:
    """Writes a loop over numbers instead of one over small arrays."""

    def __init__(self, graph: Graph, n: Node, args: Sequence[Node]) -> None:
        self.graph, self.node, self.args, self.loop = graph, n, args, n.data
        self.body = Graph()
        self.elements: dict[int, list[Node]] = {}  # of each node of the old body, in C order

    def run(self) -> dict[int, Node]:
        """Add the loop, and return its results, by their places."""
        loop, old, graph = self.loop, self.loop.body, self.graph
        operands: list[Node] = []
        for i, x in enumerate(old.inputs):
            if i < loop.constants:
                whole = self.body.add_input(x.shape, x.dtype)
                self.elements[x.number] = [self._read(whole, k) for k in range(x.size)]
                operands.append(self.args[i])
            else:
                self.elements[x.number] = [self.body.add_input((), x.dtype) for _ in range(x.size)]
                operands += [self._split_operand(self.args[i], k, x.size, i >= loop.xs) for k in range(x.size)]
        for n in old.nodes:
            if n.kind is not INPUT:
                self.elements[n.number] = self._split(n)
        self.body.outputs = [x for o in old.outputs for x in self.elements[o.number]]
        carry = sum(x.size for x in loop.carry_inputs)
        data = Loop(remove_dead_nodes(self.body), loop.constants, carry, loop.length, loop.reverse)
        whole = graph.add(LOOP, operands, (), np.dtype(bool), data, self.node.line)
        new_nodes: dict[int, Node] = {}
        at = 0
        for place, (o, (shape, dtype)) in enumerate(zip(old.outputs, loop.result_likes, strict=True)):
            likes = data.result_likes[at : at + o.size]
            parts = [graph.add(RESULT, (whole,), *like, i) for i, like in enumerate(likes, at)]
            new_nodes[place] = self._join(parts, shape, dtype)
            at += o.size
        return new_nodes

    def _read(self, x: Node, k: int) -> Node:
        return x if not x.shape else self.body.add(VIEW, (x,), (), x.dtype, View(k, ()), x.line)

    def _split_operand(self, x: Node, k: int, size: int, is_row: bool) -> Node:
        """Return one element of the carry, or of the elements of all steps."""
        if is_row:
            return add_view(self.graph, x, (self.loop.length,), View(k, (size,)), x.line)
        return x if not x.shape else add_view(self.graph, x, (), View(k, ()), x.line)

    def _join(self, parts: Sequence[Node], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
        """Return the results of a loop for each element as one array."""
        if len(parts) == 1:
            return add_view(self.graph, parts[0], shape, View(0, compute_strides(shape)), self.node.line)
        lead = parts[0].shape
        column = (*lead, 1)
        columns = [add_view(self.graph, x, column, View(0, compute_strides(column)), x.line) for x in parts]
        starts = tuple((*(0,) * len(lead), k) for k in range(len(parts)))
        whole = self.graph.add(PIECES, columns, (*lead, len(parts)), dtype, Pieces(starts, 0.0), self.node.line)
        return add_view(self.graph, whole, shape, View(0, compute_strides(shape)), self.node.line)

    def _split(self, n: Node) -> list[Node]:
        """Return the elements of a node."""
        split = LoopSplitter._split_elements if n.kind.is_elementwise else SPLIT[n.kind]
        return split(self, n, [self.elements[a.number] for a in n.args])

    def _split_elements(self, n: Node, elements: list[list[Node]]) -> list[Node]:
        """Return the elements of a node each of which is computed from one element of every argument."""
        places = [np.broadcast_to(np.arange(a.size).reshape(a.shape), n.shape).reshape(-1).tolist() for a in n.args]
        return [
            self.body.add(
                n.kind, [xs[at[i]] for xs, at in zip(elements, places, strict=True)], (), n.dtype, n.data, n.line
            )
            for i in range(n.size)
        ]

    def _split_constant(self, n: Node, elements: list[list[Node]]) -> list[Node]:
        return [self.body.add_constant(v, n.dtype) for v in n.data.reshape(-1)]

    def _split_view(self, n: Node, elements: list[list[Node]]) -> list[Node]:
        at = np.full(n.shape, n.data.offset)
        for axis, (length, step) in enumerate(zip(n.shape, n.data.strides, strict=True)):
            at = at + (np.arange(length) * step).reshape(-1, *(1,) * (len(n.shape) - 1 - axis))
        return [elements[0][i] for i in at.reshape(-1).tolist()]

    def _split_pieces(self, n: Node, elements: list[list[Node]]) -> list[Node]:
        found: Any = np.full(n.shape, None, object)
        for a, start, xs in zip(n.args, n.data.starts, elements, strict=True):
            block = np.empty(prod(a.shape), object)
            block[:] = xs
            found[tuple(slice(s, s + length) for s, length in zip(start, a.shape, strict=True))] = block.reshape(
                a.shape
            )
        fill = self.body.add_constant(n.data.fill, n.dtype)
        return [fill if x is None else x for x in found.reshape(-1).tolist()]

    def _split_sum(self, n: Node, elements: list[list[Node]]) -> list[Node]:
        (x,), (xs,) = n.args, elements
        order = np.moveaxis(np.arange(x.size).reshape(x.shape), n.data.axes, range(-len(n.data.axes), 0))
        sums = []
        for row in order.reshape(n.size, -1).tolist():
            total = self.body.add_constant(0.0, n.dtype)  # a sum of -0 is 0
            for i in row:
                total = self.body.add_op(np.add, total, xs[i], line=n.line)
            sums.append(total)
        return sums


# How the nodes of a kind are split; those of elementwise kinds are computed element by element.
SPLIT: dict[Kind, Callable[[LoopSplitter, Node, list[list[Node]]], list[Node]]] = {
    CONSTANT: LoopSplitter._split_constant,
    VIEW: LoopSplitter._split_view,
    PIECES: LoopSplitter._split_pieces,
    FOLD: LoopSplitter._split_sum,
}
