"""Simplify loops and branches: what no step changes is computed before, and unused results are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pullback.compiler.ir.graph import Graph, Node, View, is_number
from pullback.compiler.ir.kinds import CONSTANT, INPUT, LOOP, RESULT, VIEW
from pullback.compiler.ir.structured import Loop

__all__ = ["simplify_loops"]

Simplify = Callable[[Graph], Graph]


def simplify_loops(graph: Graph, simplify: Simplify) -> Graph:
    """Return an equivalent graph with smaller loops; ``simplify`` is for their bodies."""
    new = Graph()
    made: dict[int, Node] = {}
    for n in graph.inputs:
        made[n.number] = new.input(n.shape, n.dtype)
    users = graph.users()
    for n in graph.nodes:
        if n.kind is RESULT and n.number in made:
            continue
        args = [made[a.number] for a in n.args]
        if n.kind is LOOP:
            used = {u.data: u for u in users[n.number]}
            for place, z in LoopSimplifier(new, n, args, simplify).run({*used}).items():
                if place in used:
                    made[used[place].number] = z
        elif n.kind is not INPUT:
            data = n.data.replace_bodies([*map(simplify, n.data.bodies)]) if n.kind.has_bodies else n.data
            made[n.number] = new.add(n.kind, args, n.shape, n.dtype, data, n.line)
    new.outputs = [made[o.number] for o in graph.outputs]
    return new


class LoopSimplifier:
    """Makes a smaller loop of one loop, in a graph that is being built."""

    def __init__(self, graph: Graph, n: Node, args: Sequence[Node], simplify: Simplify) -> None:
        self.graph, self.node, self.args = graph, n, list(args)
        self.loop: Loop = n.data
        self.body = simplify(self.loop.body)
        self.inner = Graph()  # the new body
        self.moved: dict[int, Node] = {}  # what is computed before the loop, by its number in the old body
        self.made: dict[int, Node] = {}  # what is computed in the new body, by the same
        self.constants: list[tuple[Node, Node]] = []  # operands, and inputs of the new body

    def run(self, used: set[int]) -> dict[int, Node]:
        """Return the results by their places, of those that are used."""
        loop, body = self.loop, self.body
        inputs, outputs = body.inputs, body.outputs
        unchanged = {k for k in range(loop.carry) if outputs[k] is inputs[loop.constants + k]}
        carried = self._find_needed(used - unchanged)
        ys = [i for i in range(loop.carry, len(outputs)) if i in used]
        for i in (*range(loop.constants), *(loop.constants + k for k in unchanged)):
            self.moved[inputs[i].number] = self.args[i]
        results = {k: self.args[loop.constants + k] for k in unchanged}
        rows = self._list_rows()
        if not carried and not ys:
            return results
        self._move_out()
        wanted = self._list_reached([outputs[i] for i in (*carried, *ys)])
        kept = [i for i in rows if inputs[i].number in wanted]
        self._build(carried, kept, wanted)
        self.inner.outputs = [self.made[outputs[i].number] for i in (*carried, *ys)]
        return {**results, **self._add_loop(carried, ys, kept)}

    def _add_loop(self, carried: list[int], ys: list[int], kept: list[int]) -> dict[int, Node]:
        """Add the new loop to the graph, and return its results by their places in the old one."""
        loop, results = self.loop, {}
        operands = [x for x, _ in self.constants]
        operands += [self.args[loop.constants + k] for k in carried] + [self.args[i] for i in kept]
        data = replace(loop, body=self.inner, constants=len(self.constants), carry=len(carried))
        whole = self.graph.add(LOOP, operands, (), self.node.dtype, data, self.node.line)
        for place, (i, like) in enumerate(zip((*carried, *ys), data.result_likes, strict=True)):
            results[i] = self.graph.add(RESULT, (whole,), *like, place)
        return results

    def _list_rows(self) -> list[int]:
        """Return the inputs that differ from step to step; those that are the same for all become constants."""
        rows = []
        for i in range(self.loop.xs, len(self.body.inputs)):
            same = self._find_repeated_row(self.args[i], self.body.inputs[i])
            if same is None:
                rows.append(i)
            else:
                self.moved[self.body.inputs[i].number] = same
        return rows

    def _find_needed(self, used: set[int]) -> list[int]:
        """Return which parts of the carry are needed for results that are used."""
        loop, found = self.loop, {k for k in used if k < self.loop.carry}
        while True:
            reached = self._list_reached([self.body.outputs[i] for i in used | found])
            more = {k for k in range(loop.carry) if self.body.inputs[loop.constants + k].number in reached}
            more = {k for k in more if self.body.outputs[k] is not self.body.inputs[loop.constants + k]}
            if more <= found:
                return sorted(found)
            found |= more

    def _list_reached(self, nodes: Sequence[Node]) -> set[int]:
        """Return the numbers of the nodes that these depend on, without what is moved out of the loop."""
        found: set[int] = set()
        waiting = list(nodes)
        while waiting:
            n = waiting.pop()
            if n.number not in found:
                found.add(n.number)
                if n.number not in self.moved:
                    waiting += n.args
        return found

    def _find_repeated_row(self, operand: Node, x: Node) -> Node | None:
        """Return the element that all steps are given, if it is the same."""
        if operand.kind is not VIEW or (operand.data.strides[0] and operand.shape[0] > 1):
            return None
        view = View(operand.data.offset, operand.data.strides[1:])
        return self.graph.add(VIEW, operand.args, x.shape, x.dtype, view, operand.line)

    def _move_out(self) -> None:
        """Compute before the loop what depends on nothing that changes."""
        for n in self.body.nodes:
            if n.kind is INPUT or n.number in self.moved:
                continue
            if n.kind is CONSTANT:
                self.moved[n.number] = self.graph.constant(n.data)
            elif all(a.number in self.moved for a in n.args):
                args = [self.moved[a.number] for a in n.args]
                self.moved[n.number] = self.graph.add(n.kind, args, n.shape, n.dtype, n.data, n.line)

    def _build(self, carried: list[int], rows: list[int], wanted: set[int]) -> None:
        """Build the new body: its constants are the first inputs, in the order in which they are met."""
        constants: dict[int, Node] = {}  # outside, by number
        later: list[Node] = []
        for n in self.body.nodes:
            if n.number in wanted and n.number not in self.moved:
                later.append(n)
                for a in n.args:
                    self._meet(a, constants)
        for o in self.body.outputs:
            if o.number in wanted:
                self._meet(o, constants)
        for number, x in constants.items():
            made = self.inner.input(x.shape, x.dtype)
            self.constants.append((x, made))
            constants[number] = made
        for i in [self.loop.constants + k for k in carried] + rows:
            source = self.body.inputs[i]
            self.made[source.number] = self.inner.input(source.shape, source.dtype)
        for n in later:
            if n.kind is not INPUT:
                args = [self._use(a, constants) for a in n.args]
                self.made[n.number] = self.inner.add(n.kind, args, n.shape, n.dtype, n.data, n.line)
        for o in self.body.outputs:
            if o.number in wanted and o.number in self.moved:
                self.made[o.number] = self._use(o, constants)

    def _meet(self, n: Node, constants: dict[int, Node]) -> None:
        if n.number in self.moved:
            base = self._find_base(self.moved[n.number])
            if not is_number(base):
                constants[base.number] = base

    def _find_base(self, x: Node) -> Node:
        """Return what a step is given for a value: the array that it is a view of, or a copy of a transposed one."""
        if x.kind is not VIEW or (len(x.shape) > 1 and x.data.strides[-1] > 1 and all(x.data.strides)):
            return x
        return x.args[0]

    def _use(self, n: Node, constants: dict[int, Node]) -> Node:
        """Return a value in the new body."""
        if n.number not in self.moved:
            return self.made[n.number]
        x = self.moved[n.number]
        base = self._find_base(x)
        found = self.inner.constant(base.data) if is_number(base) else constants[base.number]
        return found if x is base else self.inner.add(VIEW, (found,), x.shape, x.dtype, x.data, x.line)
