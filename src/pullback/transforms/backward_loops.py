"""Backward passes of Python loops as loops: equal steps that a tape recorded are differentiated once.

``BackwardLoop`` is put on the tape instead of the steps.  Its backward pass runs the rules of one step on symbols, and
adds the loop over all steps to the program that is being compiled.  The first and last steps that differ stay on the
tape, and so does everything that does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.convert import float_of
from pullback.core.op import REGISTRY
from pullback.core.tape import Step, Tape, add_cotangent, copy_node, make_node, walk_node
from pullback.core.tensor import Tensor
from pullback.core.variable import get_trace
from pullback.settings import is_enabled
from pullback.transforms.gates import Gate
from pullback.transforms.recorded_steps import (
    MAX_DELAY,
    WRITE,
    EarlierOperand,
    Fixed,
    Line,
    Operand,
    Other,
    RecordedSteps,
    are_same,
    find_line,
    find_repeated_steps,
    identify,
)
from pullback.transforms.scan_op import ScanOp
from pullback.transforms.structured import fit_derivative, make_dense, make_zeros, stack_values


def roll_steps(tape: Tape) -> None:
    """Put one node for all on a tape instead of many equal steps."""
    if not is_enabled("loop rolling"):
        return
    nodes = tape.list_steps()
    rolled: list[Tensor] = []
    done = 0
    for steps in find_repeated_steps(nodes):
        rolled += [*nodes[done : steps.begin], _make_node(steps)]
        done = steps.end
    if done:
        tape.nodes[:] = [*rolled, *nodes[done:]]


def _make_node(steps: RecordedSteps) -> Tensor:
    """Return the node of a tape whose backward pass is that of all steps."""
    loop, node = BackwardLoop(steps), Tensor()
    node.meta, node.value, node.x, node.y = steps.nodes[0].meta, None, None, None
    node.g = True  # any: the backward pass calls ``back`` of nodes with a cotangent only
    node.via = Step(None, back=lambda _: loop.pull())
    return node


class BackwardLoop:
    """The backward pass of recorded steps."""

    def __init__(self, steps: RecordedSteps) -> None:
        self.steps = steps

    def pull(self) -> None:
        """Add the contributions of all steps to the cotangents of what they were computed from."""
        steps = self.steps
        nodes = steps.nodes[steps.first * steps.length : steps.last * steps.length]
        for r in [] if self._pull_as_loop() else reversed(nodes):
            walk_node(r)
        for r in nodes:
            r.x = r.y = None

    def _pull_as_loop(self) -> bool:
        """Run the backward pass as a loop; return False, with nothing changed, if that is not possible."""
        steps = self.steps
        nodes = steps.nodes[steps.first * steps.length : steps.last * steps.length]
        writes = None if any(isinstance(n.g, Gate) for n in nodes) else self._find_writes()
        if writes is None:
            return False
        step = StepWriter(steps, self._find_incoming(), writes)
        if step.reached and not step.write(get_trace()):
            return False
        for write in writes:
            self._pull_base(write)
        for node, g in step.outside:
            add_cotangent(node, g)
        if step.reached:
            step.run()
        self._pull_fixed()
        return True

    def _find_incoming(self) -> dict[int, list[Any]]:
        """Return the cotangents that nodes of the loop have from after it, by place."""
        steps = self.steps
        places = [j for j in range(steps.length) if j not in steps.sinks | steps.fixed]
        found = {j: [n.g for n in steps.get_all(j)] for j in places}
        return {j: gs for j, gs in found.items() if any(g is not None for g in gs)}

    def _pull_fixed(self) -> None:
        """Run the rules of nodes that are the same in all steps, once for all."""
        for j in sorted(self.steps.fixed, reverse=True):
            first, *others = self.steps.get_all(j)
            for n in others:
                if n.g is not None:
                    add_cotangent(first, n.g)
            walk_node(first)

    def _find_writes(self) -> list[StepWrites] | None:
        """Return the writes of all steps, with the cotangents of the arrays.

        None if they are not at equal distances, or if an array is used in between.
        """
        steps, found = self.steps, []
        for j in steps.sinks:
            nodes = steps.get_all(j)
            line, base, last = find_line([n.y[0] for n in nodes]), steps.operands[j, 0], nodes[-1]
            if (
                line is None
                or (base is not None and base != EarlierOperand(j, 1))
                or any(n.g is not None for n in nodes[:-1])
            ):
                return None
            if np.shape(last.x[1][1]) != _find_shape(last.y[0], last.shape):
                return None
            g = None if last.g is None else _fit(last.g, last)
            found.append(StepWrites(j, line, g, steps.operands[j, 1]))
        return found

    def _pull_base(self, write: StepWrites) -> None:
        """Add the contributions of the elements that are not written to the cotangent of the array before the loop."""
        base = self.steps.get_operand(write.place, 0, self.steps.first)
        if base is not None and write.g is not None:
            zero = np.zeros((), write.g.dtype)[()]
            add_cotangent(base, REGISTRY[WRITE].function(write.g, zero, write.line.place))


class StepWrites(NamedTuple):
    """The writes of all steps at one place: where, the cotangent of the array, and the class of the written value."""

    place: int
    line: Line
    g: Any
    value: Operand


def _find_shape(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    found: tuple[int, ...] = np.broadcast_to(np.True_, shape)[index].shape
    return found


def _fit(d: Any, like: Any) -> Any:
    """Return a cotangent as a dense one in the shape of a node."""
    return fit_derivative(make_dense(d), like)


def _add_up(*terms: Any) -> Any:
    """Return the sum of terms, of which those that are None are zero; None if all are."""
    total = None
    for d in terms:
        if d is not None:
            total = d if total is None else total + d
    return total


def _delay(rows: Any) -> Any:
    """Return stacked rows one step later, after a row of zeros."""
    return np.concatenate([np.zeros_like(rows[:1]), rows[:-1]])


class StepWriter:
    """Writes the backward pass of one step as the body of a loop, and runs the loop.

    ``incoming`` are cotangents that nodes have from after the loop, ``writes`` those of written elements.
    """

    def __init__(self, steps: RecordedSteps, incoming: dict[int, list[Any]], writes: Sequence[StepWrites]) -> None:
        self.steps, self.incoming = steps, incoming
        self.stacked: dict[int, list[Any]] = {}  # cotangents that come in at a place, stacked over the steps
        self.outside: list[tuple[Tensor, Any]] = []  # cotangents of written values that the loop does not compute
        for write in writes:
            if write.g is not None:
                self._add_written(write)
        self.reached = self._find_reached()
        self.delays: dict[int, int] = {}  # after how many steps the node at a place is used last
        for j in self.reached - steps.sources:
            for operand in steps.list_operands(j):
                if isinstance(operand, EarlierOperand) and operand.delay and operand.place not in steps.fixed:
                    self.delays[operand.place] = max(self.delays.get(operand.place, 0), operand.delay)
        self.late: set[int] = set()  # places whose cotangents come in at the last steps only
        self.depths = self._find_depths()
        # Cotangents that come in at a node with a carry are added at the end of the step before: a product is fused
        # with the addition, so that a recurrence waits for one instruction instead of two.
        self.early = self.stacked.keys() & self.delays.keys()
        self.keys: list[Any] = []  # of the inputs of the body, in order
        self.values: dict[Any, Any] = {}  # values of the forward pass in the body
        self.terms: dict[tuple[int, int], Any] = {}  # contributions to nodes, by place and delay
        self.sums: dict[int, tuple[Tensor, Any]] = {}  # contributions to what is the same in all steps
        self.rows: dict[tuple[int, int], Any] = {}  # cotangents of what is another node in each step

    def _add_written(self, write: StepWrites) -> None:
        """Add the cotangents of the values that all steps write."""
        steps, operand, rows = self.steps, write.value, write.line.select(write.g)
        if isinstance(operand, EarlierOperand) and operand.place not in steps.fixed:
            place, delay = operand
            if delay:
                self.outside += [(steps.get(place, steps.first + t - delay), rows[t]) for t in range(delay)]
                rows = np.concatenate([rows[delay:], np.zeros_like(rows[:delay])])
            self.stacked.setdefault(place, []).append(rows)
        elif isinstance(operand, Other):
            self.outside += [
                (steps.get_operand(write.place, 1, t), rows[t - steps.first]) for t in range(steps.first, steps.last)
            ]
        elif operand is not None:
            self.outside.append((steps.get_fixed(operand), np.sum(rows, 0)))

    def _find_reached(self) -> set[int]:
        """Return the places whose nodes have a cotangent, in some step."""
        steps = self.steps
        reached, waiting = set[int](), [*self.incoming, *self.stacked]
        while waiting:
            j = waiting.pop()
            if j in reached or j in steps.fixed:
                continue
            reached.add(j)
            if j not in steps.sources:
                waiting += [operand.place for operand in steps.list_operands(j) if isinstance(operand, EarlierOperand)]
        return reached

    def _find_depths(self) -> dict[int, int]:
        """Return over how many steps cotangents of the node at each place are carried; stack those of most steps."""
        steps, depths = self.steps, dict(self.delays)
        for j, gs in self.incoming.items():
            late = steps.steps - next(t for t, g in enumerate(gs) if g is not None)
            if late <= MAX_DELAY:
                self.late.add(j)
                depths[j] = max(depths.get(j, 0), late)
            else:
                nodes = steps.get_all(j)
                rows = [make_zeros(n) if g is None else _fit(g, n) for g, n in zip(gs, nodes, strict=True)]
                self.stacked.setdefault(j, []).append(stack_values(rows))
        return depths

    # ---- the body

    def write(self, program: Any) -> bool:
        """Record the backward pass of one step; return whether there is machine code for it."""
        steps = self.steps
        with program.open_body() as trace:
            self.trace = trace
            self.carried = [(j, k) for j, depth in self.depths.items() for k in range(1, depth + 1)]
            carried = {key: self._add_cotangent("carried", key, key[0]) for key in self.carried}
            cotangents = {j: self._add_cotangent("stacked", j, j) for j in self.stacked}
            for j in sorted(self.reached, reverse=True):
                due = cotangents.get(j) if j not in self.early else None
                g = _add_up(self.terms.get((j, 0)), carried.get((j, 1)), due)
                if g is not None:
                    self._pull_node(j, g)
            later = {(j, 1): cotangents[j] for j in self.early}
            after = [
                _add_up(carried.get((j, k + 1)), later.get((j, k)), self.terms.get((j, k))) for j, k in self.carried
            ]
            outputs = [
                make_zeros(steps.get(j, 0)) if g is None else g for (j, _), g in zip(self.carried, after, strict=True)
            ]
            for key, (_, d) in self.sums.items():
                outputs.append(self._add_input(("sum", key), d.shape, d.dtype) + d)
            self.body, captured = trace.close([*outputs, *self.rows.values()])
            return not captured and not trace.has_host_ops

    def _add_input(self, key: Any, shape: tuple[int, ...], dtype: Any, weak: Any = None) -> Any:
        self.keys.append(key)
        return self.trace.add_input(shape, dtype, weak)

    def _add_cotangent(self, kind: str, key: Any, j: int) -> Any:
        node = self.steps.get(j, 0)
        return self._add_input((kind, key), node.shape, float_of(node.dtype))

    def _pull_node(self, j: int, g: Any) -> None:
        """Add the contributions of the node at a place, whose cotangent is ``g``."""
        if j in self.steps.sources:
            self.rows[j, 0] = g
        elif j in self.steps.aliases:
            self._contribute(j, 0, g)
        else:
            for k, d in enumerate(self._run_rule(j, g)):
                if d is not None:
                    self._contribute(j, k, d)

    def _contribute(self, j: int, k: int, d: Any) -> None:
        """Add a contribution to the cotangent of an operand."""
        steps, operand = self.steps, self.steps.operands[j, k]
        if operand is None:
            return
        d = _fit(d, steps.get_operand(j, k, steps.middle))
        if isinstance(operand, Other):
            self.rows[j, k] = d
        elif isinstance(operand, EarlierOperand) and operand.place not in steps.fixed:
            self.terms[operand] = _add_up(self.terms.get(operand), d)
        else:
            node = steps.get_fixed(operand)
            self.sums[id(node)] = node, _add_up(self.sums.get(id(node), (node, None))[1], d)

    def _run_rule(self, j: int, g: Any) -> list[Any]:
        """Return the contributions of the node at a place to the cotangents of its operands, in the body."""
        r = self.steps.get(j, self.steps.middle)
        is_crossed = type(r.x) is not tuple and r.via.has_two_inputs and r.via.crossed
        order = iter((1, 0) if is_crossed else range(len(r.via.values(r))))
        node_copy = copy_node(r, g, self._get_value(j), lambda node, value: self._get_value(j, next(order)))
        ds: list[Any] = r.via.cotangents(node_copy)
        return ds

    def _get_value(self, j: int, k: int | None = None) -> Any:
        """Return the value of the node at a place, or of its operand ``k``, in the body."""
        key = self._find_key(j, k)
        if key not in self.values:
            column = self._list_values(key)
            v = column[0]
            if isinstance(v, Tensor) and v.level:
                value = self._add_input(key, v.shape, v.dtype, getattr(v, "weak", None))
            elif are_same(column):
                value = v
            else:
                is_number = type(v) in (bool, int, float)
                value = self._add_input(key, np.shape(v), np.asarray(v).dtype, type(v) if is_number else None)
            self.values[key] = value
        return self.values[key]

    def _find_key(self, j: int, k: int | None) -> Any:
        """Return what identifies a value of a step; that of an operand is that of the node that computed it."""
        steps = self.steps
        if k is None:
            return "node", j, 0
        r, operand = steps.get(j, steps.middle), steps.operands.get((j, k))
        if isinstance(operand, EarlierOperand) and j not in steps.aliases:
            step = steps.get(operand.place, steps.middle - operand.delay)
            if identify(step.value) == identify(r.via.values(r)[k]):
                return "node", *operand
        return "operand", j, k

    def _list_values(self, key: Any) -> list[Any]:
        """Return a value in all steps."""
        kind, j, k = key
        steps = self.steps
        if kind == "node":
            return [steps.get(j, t - k).value for t in range(steps.first, steps.last)]
        return [n.via.values(n)[k] for n in steps.get_all(j)]

    # ---- the loop

    def run(self) -> None:
        """Run the loop, and add the contributions to the cotangents of nodes before it."""
        steps, body = self.steps, self.body
        numbers = dict(zip(self.keys, body.inputs, strict=True))
        incoming = {j: _add_up(*parts) for j, parts in self.stacked.items()}
        used = body.list_used()
        constants, rows = self._find_operands([key for key in self.values if numbers.get(key) in used])
        rows = {("stacked", j): _delay(ds) if j in self.early else ds for j, ds in incoming.items()} | rows
        begin: dict[Any, Any] = {("carried", key): self._find_begin(*key) for key in self.carried}
        for j in self.early:
            begin["carried", (j, 1)] = begin["carried", (j, 1)] + incoming[j][-1]
        begin.update({("sum", key): make_zeros(d) for key, (_, d) in self.sums.items()})
        body.inputs = [numbers[key] for key in (*constants, *begin, *rows)]
        op = ScanOp(body, len(constants), len(begin), steps.steps, reverse=True)
        results = iter(op.apply([*constants.values(), *begin.values(), *rows.values()]))
        for j, k in self.carried:
            d = next(results)
            if k <= self.delays.get(j, 0):
                add_cotangent(steps.get(j, steps.first - k), d)
        for node, _ in self.sums.values():
            add_cotangent(node, next(results))
        for (j, k), ds in zip(self.rows, results, strict=True):
            self._spread(j, k, ds)

    def _find_operands(self, keys: Sequence[Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Return values of the forward pass that are the same in all steps, and the others, stacked."""
        constants, rows = dict[Any, Any](), dict[Any, Any]()
        for key in keys:
            column = self._list_values(key)
            if are_same(column) or (key[0] == "node" and key[1] in self.steps.fixed):
                constants[key] = column[0]
            else:
                rows[key] = stack_values(column)
        return constants, rows

    def _find_begin(self, j: int, k: int) -> Any:
        """Return the cotangent of a node ``k`` steps before the end, of which the loop begins with the carry."""
        node = self.steps.get(j, self.steps.last - k)
        return _fit(node.g, node) if node.g is not None and j in self.late else make_zeros(node)

    def _spread(self, j: int, k: int, ds: Any) -> None:
        """Add cotangents of all steps to those of nodes before the loop."""
        steps = self.steps
        if j not in steps.sources:
            for t in range(steps.first, steps.last):
                add_cotangent(steps.get_operand(j, k, t), ds[t - steps.first])
            return
        nodes = steps.get_all(j)
        line, operand = find_line([n.y[0] for n in nodes]), steps.operands[j, 0]
        assert isinstance(operand, Fixed)
        assert line is not None
        node = make_node(line.arrange(ds), operand.node.value, (line.place,))
        add_cotangent(operand.node, nodes[0].via.cotangents(node)[0])
