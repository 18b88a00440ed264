"""Roll loops that tracing has unrolled: a Python ``for`` of many equal steps becomes one loop.

Each step of such a loop adds the same nodes to the graph, and so does each step of its backward pass.  ``find_periods``
finds where nodes repeat.  ``Repetition`` classifies each operand: it is of the same step, of an earlier step, the
same in all steps, or another element of one array in each.  ``LoopWriter`` writes the loop.  Steps at both ends that
differ stay unrolled, and so does everything that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.builder import TYPES, code_of
from pullback.compiler.ir.graph import (
    Graph,
    Node,
    Pieces,
    View,
    add_view,
    compute_strides,
    is_in_order,
    make_data_key,
    rebase_view,
    resolve_view,
)
from pullback.compiler.ir.kinds import CONSTANT, INPUT, LOOP, PIECES, RESULT, VIEW
from pullback.compiler.ir.structured import Loop
from pullback.compiler.passes.legalize import legalize
from pullback.compiler.passes.simplify import remove_dead_nodes, simplify_nodes, simplify_structures
from pullback.compiler.target import Options, Target
from pullback.numerics import periods
from pullback.numerics.periods import Period, find_outer_periods, find_periods

__all__ = ["roll_bodies", "roll_steps"]

MOVES = (VIEW, PIECES)  # steps of these kinds alone need no loop
MIN_NODES = 300  # nodes in steps; fewer compile quickly
LONG_LOOP, MANY_NODES = 32, 1000  # steps and nodes from which on elementwise steps are rolled too
SMALL_STEP = 1024  # bytes of the values of elementwise steps that need no kernel in common
FORWARD_PART = 0.25  # of the nodes of a program; the others are not there if the backward pass is a loop already
MAX_DELAY = 4  # steps after which a value may be used last
MAX_PERIODS_OF_STEP = 4  # periods that one step may have: x and y may be computed by the same ops


def roll_loops(graph: Graph, target: Target, options: Options) -> Graph:
    """Return an equivalent graph with loops instead of repeated steps; the same graph if there are none."""
    rolled = roll_steps(graph, target, options)
    return roll_bodies(rolled if rolled is graph else simplify_structures(rolled), target, options)


def roll_steps(graph: Graph, target: Target, options: Options) -> Graph:
    """Return an equivalent graph with loops instead of repeated steps; loops and branches stay as they are."""
    has_loops = any(n.kind is LOOP for n in graph.nodes)
    if len(graph.nodes) < MIN_NODES and not has_loops:
        return graph
    roller = Roller(graph, FORWARD_PART if has_loops else 1.0, target, options)
    if not roller.periods and not has_loops:
        return graph
    return simplify_nodes(remove_dead_nodes(roller.run()))


def roll_bodies(graph: Graph, target: Target, options: Options) -> Graph:
    """Roll repeated steps in the bodies of loops and branches of a graph, and return it."""
    for n in graph.nodes:
        if n.kind.has_bodies:
            bodies = [roll_loops(body, target, options) for body in n.data.bodies]
            if any(new is not old for new, old in zip(bodies, n.data.bodies, strict=True)):
                n.data = n.data.replace_bodies(bodies)
    return graph


# ---- classes of nodes and of their operands


def _label_nodes(nodes: Sequence[Node]) -> Any:
    """Return a label for each node; nodes with equal labels could be the same node of two steps."""
    known: dict[Any, int] = {}
    labels = np.empty(len(nodes), np.int64)
    for i, n in enumerate(nodes):
        data = n.data.strides if n.kind is VIEW else make_data_key(n.kind, n.data)
        key = (n.kind, n.shape, n.dtype, data, *[(a.shape, a.dtype) for a in n.args])
        labels[i] = known.setdefault(key, len(known))
    return labels


class Same(NamedTuple):
    """An operand that is the same in all steps."""

    node: Node


class EarlierNode(NamedTuple):
    """An operand from the same step, or from some steps earlier."""

    place: int
    delay: int


class Row(NamedTuple):
    """An operand that is another element of one array in each step."""

    base: Node
    offset: int  # in the first step
    step: int
    strides: tuple[int, ...]


class Numbers(NamedTuple):
    """An operand that is another constant in each step."""

    nodes: tuple[Node, ...]


Operand = Same | EarlierNode | Row | Numbers
BodyValue = tuple[Node, View | None]  # a value in the body, and a view of it that is the operand
Place = tuple[Node, int, tuple[int, ...]]  # the node in whose memory elements are, the first of them, the strides


class Repetition:
    """Steps that repeat, from ``first`` to ``last``: the nodes of each, and the classes of their operands."""

    def __init__(self, roller: Roller, period: Period) -> None:
        self.roller, self.nodes = roller, roller.nodes
        start = period.start + self._choose_cut(period)
        self.start, self.length, self.count = start, period.length, (period.end - start) // period.length
        self.first, self.last = 0, self.count
        self.at = {n.number: i for i, n in enumerate(self.nodes[start : start + self.count * self.length])}
        self.middle = self.count // 2
        self.views = self._find_views()
        self.operands: dict[tuple[int, int], Operand] = {}

    def get(self, place: int, step: int) -> Node:
        return self.nodes[self.start + step * self.length + place]

    @property
    def steps(self) -> int:
        return self.last - self.first

    @property
    def places(self) -> list[int]:
        return [j for j in range(self.length) if j not in self.views]

    def holds(self, n: Node) -> bool:
        """Return whether a node is computed in one of the steps."""
        i = self.at.get(n.number, -1)
        return self.first <= i // self.length < self.last and i % self.length not in self.views

    def _choose_cut(self, period: Period) -> int:
        """Return where in a period steps begin: where the fewest bytes are carried from one to the next."""
        start, length, end = period
        begin = start + (end - start) // length // 2 * length
        at = {n.number: i for i, n in enumerate(self.nodes[start:end], start)}
        until: dict[int, int] = {}  # the last use of each value of one period
        for i in range(begin, min(begin + (MAX_DELAY + 1) * length, end)):
            for a in self.nodes[i].args:
                first = at.get(a.number, -1)
                if begin <= first < begin + length and i - first <= MAX_DELAY * length:
                    until[first] = i
        crossed = [0] * length
        for first, used in until.items():
            for i in range(first + 1, used + 1):
                crossed[(i - start) % length] += self.nodes[first].nbytes
        return min(range(length), key=lambda cut: (crossed[cut], cut))

    def _find_views(self) -> set[int]:
        """Return the operands, by number, that are elements of an array that is the same in all steps."""
        return {
            j
            for j in range(self.length)
            if (n := self.get(j, self.middle)).kind is VIEW and n.args[0] is self.get(j, self.middle + 1).args[0]
        }

    def classify(self) -> bool:
        """Classify all operands and find the steps that agree; return whether these are enough."""
        places = [(j, k) for j in self.places for k in range(len(self.get(j, 0).args))]
        for j, k in places:
            self.operands[j, k] = self._classify_operand(j, k)
        for j, k in places:
            self._narrow(j, k)
        return self._drop_first_steps() and all(self._has_same_data(j) for j in self.places)

    def _classify_operand(self, j: int, k: int) -> Operand:
        a, b = (self.get(j, t).args[k] for t in (self.middle, self.middle + 1))
        i = self.at.get(a.number, -1)
        if a is b:
            return Same(a)
        if i >= 0 and i % self.length not in self.views:
            return EarlierNode(i % self.length, self.middle - i // self.length)
        if a.kind is CONSTANT:
            return Numbers(())
        base, offset, strides = self.roller.resolve(a)
        return Row(base, offset, self.roller.resolve(b)[1] - offset, strides)

    def _narrow(self, j: int, k: int) -> None:
        """Leave out the steps at both ends in which an operand has another class."""
        operand = self.operands[j, k]
        low, high = self.middle, self.middle + 1
        while low > self.first and self._agrees(operand, j, k, low - 1):
            low -= 1
        while high < self.last and self._agrees(operand, j, k, high):
            high += 1
        if isinstance(operand, EarlierNode):
            low = max(low - operand.delay, self.first) if operand.delay <= MAX_DELAY else high
        if isinstance(operand, Same) and operand.node.number in self.at:
            low = max(low, self.at[operand.node.number] // self.length + 1)
        self.first, self.last = low, max(high, low)

    def _agrees(self, operand: Operand, j: int, k: int, t: int) -> bool:
        a = self.get(j, t).args[k]
        if isinstance(operand, Same):
            return a is operand.node
        if isinstance(operand, EarlierNode):
            return t >= operand.delay and a is self.get(operand.place, t - operand.delay)
        i = self.at.get(a.number, -1)
        if i >= 0 and i % self.length not in self.views:
            return False
        like = self.get(j, self.middle).args[k]
        if isinstance(operand, Numbers):
            return a.kind is CONSTANT and (a.shape, a.dtype) == (like.shape, like.dtype)
        offset = operand.offset + (t - self.middle) * operand.step
        return self.roller.resolve(a) == (operand.base, offset, operand.strides)

    def _drop_first_steps(self) -> bool:
        """Leave out first steps until the initial values of the carry are computed before the loop."""
        for _ in range(MAX_DELAY + 1):
            if self.steps < periods.MIN_STEPS:
                return False
            begun = [
                self.get(j, self.first + t).args[k]
                for (j, k), operand in self.operands.items()
                if isinstance(operand, EarlierNode)
                for t in range(operand.delay)
            ]
            if not any(map(self.holds, begun)):
                return True
            self.first += 1
        return False

    def _has_same_data(self, j: int) -> bool:
        """Return whether views of computed values are the same in all steps; other nodes are, by their labels."""
        like = self.get(j, self.middle)
        return like.kind is not VIEW or all(self.get(j, t).data == like.data for t in range(self.first, self.last))

    def list_long_delays(self) -> list[int]:
        """Return after how many steps values are used that are used later than a loop supports."""
        delays = {operand.delay for operand in self.operands.values() if isinstance(operand, EarlierNode)}
        return sorted(d for d in delays if d > max(MAX_DELAY, MAX_PERIODS_OF_STEP))

    def is_worthwhile(self) -> bool:
        """Return whether the loop is about as quick as its steps: few elementwise steps would be one kernel."""
        if self.steps >= LONG_LOOP and self.roller.repeated >= MANY_NODES:
            return True
        nodes = [self.get(j, self.middle) for j in self.places]
        is_one_kernel = all(n.kind.is_elementwise or n.kind in MOVES for n in nodes)
        return not is_one_kernel or all(n.nbytes <= SMALL_STEP for n in nodes)

    def find_operand(self, j: int, k: int) -> Operand:
        """Return the class of an operand, adjusted to the first step."""
        operand = self.operands[j, k]
        if isinstance(operand, Row):
            return operand._replace(offset=operand.offset + (self.first - self.middle) * operand.step)
        if isinstance(operand, Numbers):
            return Numbers(tuple(self.get(j, t).args[k] for t in range(self.first, self.last)))
        return operand


# ---- writing the graph


class Roller:
    """Copies a graph, with loops instead of repeated steps.

    ``part`` is the share of the program's nodes that the graph has.
    """

    def __init__(self, graph: Graph, part: float, target: Target, options: Options) -> None:
        self.graph, self.target, self.options = graph, target, options
        self.new, self.new_nodes = graph.copy_inputs()
        leaves: set[int] = set()  # inputs, constants, and views of these
        for n in graph.nodes:
            if n.kind.is_leaf or (n.kind is VIEW and n.args[0].number in leaves):
                leaves.add(n.number)
        self.leaves = [n for n in graph.nodes if n.number in leaves]
        self.nodes = [n for n in graph.nodes if n.number not in leaves]
        labels = _label_nodes(self.nodes)
        inner = find_periods(labels)
        self.repeated = sum(period.end - period.start for period in inner) / part
        self.periods = sorted([*find_outer_periods(labels, inner), *inner], key=lambda p: (p.start, -p.length))
        if self.repeated < MIN_NODES:
            self.periods = []

    def run(self) -> Graph:
        """Return the new graph."""
        for n in self.leaves:
            if n.kind is not INPUT:
                self._copy(n)
        self.users = self.graph.find_users()
        self.wanted = {o.number for o in self.graph.outputs}
        done = 0
        for period in self.periods:
            if period.start < done:  # in a loop around it
                continue
            self._copy_all(done, period.start)
            done = period.start
            repetition = self._find_repetition(period)
            if repetition is not None:
                begin, end = (repetition.start + t * repetition.length for t in (repetition.first, repetition.last))
                self._copy_all(done, begin)
                done = end if self._write_loop(repetition) else begin
        self._copy_all(done, len(self.nodes))
        self.new.outputs = [self.new_nodes[o.number] for o in self.graph.outputs]
        return self.new

    def _find_repetition(self, period: Period) -> Repetition | None:
        """Return the steps of a period that can be a loop; a step may be several periods, with other operands.

        In two nested loops, values of the step before of the outer one are used after all periods of the inner one.
        """
        counts = [*range(1, MAX_PERIODS_OF_STEP + 1)]
        for count in counts:
            if (period.end - period.start) // (period.length * count) >= periods.MIN_STEPS:
                repetition = Repetition(self, period._replace(length=period.length * count))
                if repetition.classify():
                    return repetition if repetition.is_worthwhile() else None
                if count == 1:
                    counts += repetition.list_long_delays()
        return None

    def _copy_all(self, start: int, end: int) -> None:
        for n in self.nodes[start:end]:
            self._copy(n)

    def _copy(self, n: Node) -> None:
        args = [self.new_nodes[a.number] for a in n.args]
        if n.kind is VIEW:
            self.new_nodes[n.number] = add_view(self.new, args[0], n.shape, n.data, n.line)
        elif n.kind is PIECES and len(args) >= periods.MIN_STEPS:
            data, args = join_pieces(self.new, n, args)
            self.new_nodes[n.number] = self.new.add(PIECES, args, n.shape, n.dtype, data, n.line)
        else:
            self.new_nodes[n.number] = self.new.copy_node(n, args)

    def resolve(self, n: Node) -> Place:
        """Return the place of the elements of an old node, in a node of the new graph if that exists already."""
        node = self.new_nodes.get(n.number)
        if node is not None:
            return resolve_view(node)
        if n.kind is not VIEW:
            return n, 0, compute_strides(n.shape)
        base, view = rebase_view(self.resolve(n.args[0]), n.args[0], n.data)
        return base, view.offset, view.strides

    def find_new(self, base: Node) -> Node:
        """Return the node of the new graph for one of either graph."""
        old = self.graph.nodes
        return self.new_nodes[base.number] if base.number < len(old) and old[base.number] is base else base

    def _write_loop(self, repetition: Repetition) -> bool:
        """Write a loop instead of the steps of a repetition; return whether machine code supports it."""
        for j in sorted(repetition.views):
            for t in range(repetition.first, repetition.last):
                self._copy(repetition.get(j, t))
        writer = LoopWriter(self, repetition)
        only_moves = all(n.kind in MOVES for n in writer.inner.values())
        if only_moves or not _can_compile(writer.body, self.target, self.options):
            return False
        writer.write_loop()
        return True


def _can_compile(body: Graph, target: Target, options: Options) -> bool:
    if not all(code_of(n.dtype) in TYPES and n.size for n in body.nodes):
        return False
    return not any(n.kind.runs_on_host for n in legalize(body, target, options).nodes)


@dataclass
class Chain:
    """A value that is carried over one or more steps, with one part of the carry for each."""

    place: int
    begin: list[Node]  # the oldest first
    inputs: list[Node]  # of the body, the oldest first


class LoopWriter:
    """Writes the loop of one repetition."""

    def __init__(self, roller: Roller, repetition: Repetition) -> None:
        self.roller, self.repetition, self.new = roller, repetition, roller.new
        self.body = Graph()
        self.constants: dict[int, tuple[Node, Node]] = {}  # by number: operands, and inputs of the body
        self.chains: dict[Any, Chain] = {}
        self.rows: dict[Any, tuple[Node, Node]] = {}  # operands, and inputs of the body
        self.inner: dict[int, Node] = {}  # the nodes of the body, by their places
        self.reverse = self._choose_direction()
        self._write_body()
        self._choose_results()

    def _choose_direction(self) -> bool:
        """Return whether most inputs of the steps are stored in the opposite order."""
        repetition, total = self.repetition, 0
        for (j, k), operand in repetition.operands.items():
            if isinstance(operand, Row):
                total += np.sign(operand.step).item() * repetition.get(j, repetition.middle).args[k].nbytes
        return total < 0

    # ---- the body

    def _write_body(self) -> None:
        repetition, body = self.repetition, self.body
        operands = {at: repetition.find_operand(*at) for at in repetition.operands}
        inputs: dict[tuple[int, int], BodyValue] = {}
        for make in (self._add_constant, self._add_chain, self._add_row):  # the order of the inputs of a loop
            for (j, k), operand in operands.items():
                found = make(operand, j, k)
                if found is not None:
                    inputs[j, k] = found
        for j in repetition.places:
            n = repetition.get(j, repetition.middle)
            args = [self._use(operands[j, k], inputs.get((j, k)), a) for k, a in enumerate(n.args)]
            self.inner[j] = body.copy_node(n, args)

    def _choose_results(self) -> None:
        """Choose the outputs of the body: the carry, and values of all steps that are used outside the loop."""
        repetition = self.repetition
        self.used = {j: ts for j in repetition.places if (ts := [*self._list_used(j)])}
        self.carried = [(i, chain) for chain in self.chains.values() for i in range(len(chain.inputs))]
        ends = {chain.place: at for at, (i, chain) in enumerate(self.carried) if i == len(chain.inputs) - 1}
        self.last = {j: ends[j] for j, ts in self.used.items() if ts == [repetition.last - 1] and j in ends}
        self.stacked = [j for j in self.used if j not in self.last]
        self.body.outputs = [self._find_next(i, chain) for i, chain in self.carried]
        self.body.outputs += [self.inner[j] for j in self.stacked]

    def _use(self, operand: Operand, found: BodyValue | None, like: Node) -> Node:
        if isinstance(operand, EarlierNode) and not operand.delay:
            return self.inner[operand.place]
        assert found is not None
        x, view = found
        if view is None:
            return x
        return self.body.add(VIEW, (x,), like.shape, like.dtype, view, like.line)

    def _add_constant(self, operand: Operand, j: int, k: int) -> BodyValue | None:
        if not isinstance(operand, Same):
            return None
        x = self.roller.new_nodes[operand.node.number]
        if x.number not in self.constants:
            self.constants[x.number] = x, self.body.add_input(x.shape, x.dtype)
        return self.constants[x.number][1], None

    def _add_chain(self, operand: Operand, j: int, k: int) -> BodyValue | None:
        if not isinstance(operand, EarlierNode) or not operand.delay:
            return None
        repetition = self.repetition
        begin = [
            self.roller.new_nodes[repetition.get(j, repetition.first + t).args[k].number] for t in range(operand.delay)
        ]
        key = operand.place, *(x.number for x in begin)
        if key not in self.chains:
            inputs = [self.body.add_input(x.shape, x.dtype) for x in begin]
            self.chains[key] = Chain(operand.place, begin, inputs)
        return self.chains[key].inputs[0], None

    def _add_row(self, operand: Operand, j: int, k: int) -> BodyValue | None:
        like = self.repetition.get(j, self.repetition.middle).args[k]
        if isinstance(operand, Numbers):
            return self._add_numbers(operand), None
        if not isinstance(operand, Row):
            return None
        base, size, steps = self.roller.find_new(operand.base), abs(operand.step), self.repetition.steps
        low = operand.offset + min(operand.step * (steps - 1), 0)
        begin = low - low % size if size else 0
        reach = low - begin + 1 + sum((length - 1) * s for length, s in zip(like.shape, operand.strides, strict=True))
        forwards = (operand.step < 0) == self.reverse
        if forwards and all(s >= 0 for s in operand.strides) and reach <= size and begin + steps * size <= base.size:
            return self._add_block(base, begin, size, like, View(low - begin, operand.strides))
        offset = low if forwards else low + size * (steps - 1)
        strides = (size if forwards else -size, *operand.strides)
        key = base.number, offset, strides, like.shape
        if key not in self.rows:
            x = self.new.add(VIEW, (base,), (steps, *like.shape), like.dtype, View(offset, strides), like.line)
            self.rows[key] = x, self.body.add_input(like.shape, like.dtype)
        return self.rows[key][1], None

    def _add_block(self, base: Node, begin: int, size: int, like: Node, view: View) -> BodyValue:
        """Add as an input the contiguous block that contains the elements of one step."""
        key = base.number, begin, size
        is_whole = prod(like.shape) == size and is_in_order(like.shape, view)
        if key not in self.rows:
            item = like.shape if is_whole else (size,)
            shape = (self.repetition.steps, *item)
            x = add_view(self.new, base, shape, View(begin, compute_strides(shape)), like.line)
            self.rows[key] = x, self.body.add_input(item, like.dtype)
        row = self.rows[key][1]
        return row, None if is_whole and row.shape == like.shape else view

    def _add_numbers(self, operand: Numbers) -> Node:
        stacked = np.stack([n.data for n in operand.nodes[:: -1 if self.reverse else 1]])
        x = self.new.add_constant(stacked)
        if x.number not in self.rows:
            self.rows[x.number] = x, self.body.add_input(operand.nodes[0].shape, operand.nodes[0].dtype)
        return self.rows[x.number][1]

    # ---- the loop

    def write_loop(self) -> None:
        """Write the loop, and replace the nodes of its steps by its results."""
        repetition, new, new_nodes = self.repetition, self.new, self.roller.new_nodes
        operands = [x for x, _ in self.constants.values()] + [chain.begin[i] for i, chain in self.carried]
        operands += [x for x, _ in self.rows.values()]
        counts = len(self.constants), len(self.carried), repetition.steps
        data = Loop(roll_loops(self.body, self.roller.target, self.roller.options), *counts, self.reverse)
        whole = new.add(LOOP, operands, (), np.dtype(bool), data, repetition.get(0, repetition.first).line)
        likes = data.result_likes
        for j, place in self.last.items():
            new_nodes[repetition.get(j, repetition.last - 1).number] = new.add(RESULT, (whole,), *likes[place], place)
        for place, j in enumerate(self.stacked, len(self.carried)):
            result = new.add(RESULT, (whole,), *likes[place], place)
            for t in self.used[j]:
                n = repetition.get(j, t)
                at = repetition.last - 1 - t if self.reverse else t - repetition.first
                view = View(at * n.size, compute_strides(n.shape))
                new_nodes[n.number] = new.add(VIEW, (result,), n.shape, n.dtype, view, n.line)

    def _find_next(self, i: int, chain: Chain) -> Node:
        """Return the value of a part of the carry after a step."""
        return self.inner[chain.place] if i == len(chain.inputs) - 1 else chain.inputs[i + 1]

    def _list_used(self, j: int) -> Iterator[int]:
        """Return the steps whose node at a place is used outside the loop."""
        repetition, roller = self.repetition, self.roller
        for t in range(repetition.first, repetition.last):
            n = repetition.get(j, t)
            if n.number in roller.wanted or not all(map(repetition.holds, roller.users[n.number])):
                yield t


def join_pieces(g: Graph, n: Node, args: Sequence[Node]) -> tuple[Pieces, list[Node]]:
    """Return pieces where neighbours in the result that are equally far apart in one array are joined."""
    starts: list[tuple[int, ...]] = []
    groups: list[tuple[Node, int, int, int]] = []  # the first of them, how many, along which axis, how far apart
    places = list(map(resolve_view, args))
    i = 0
    while i < len(args):
        count, axis, apart = _count_neighbours(args, places, n.data.starts, i)
        starts.append(n.data.starts[i])
        groups.append((args[i], count, axis, apart))
        i += count
    joined = []
    for x, count, axis, apart in groups:
        if count > 1:
            base, offset, strides = resolve_view(x)
            shape = (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :])
            step = apart if x.shape[axis] == 1 else strides[axis]
            x = g.add(
                VIEW, (base,), shape, x.dtype, View(offset, (*strides[:axis], step, *strides[axis + 1 :])), n.line
            )
        joined.append(x)
    return Pieces(tuple(starts), n.data.fill), joined


def _count_neighbours(
    args: Sequence[Node], places: Sequence[Place], starts: Sequence[tuple[int, ...]], i: int
) -> tuple[int, int, int]:
    """Return how many pieces, from piece ``i`` on, are consecutive parts of one array; their axis; their distance."""
    moved = (
        []
        if i + 1 == len(args)
        else [k for k, (a, b) in enumerate(zip(starts[i], starts[i + 1], strict=True)) if a != b]
    )
    if len(moved) != 1:
        return 1, 0, 0
    (axis,) = moved
    (base, offset, strides), length = places[i], args[i].shape[axis]
    apart = places[i + 1][1] - offset
    if length != 1 and apart != length * strides[axis]:
        return 1, 0, 0
    count = 1
    while i + count < len(args):
        start = tuple(s + (count * length if k == axis else 0) for k, s in enumerate(starts[i]))
        same = args[i + count].shape == args[i].shape and starts[i + count] == start
        if not same or places[i + count] != (base, offset + count * apart, strides):
            break
        count += 1
    return count, axis, apart
