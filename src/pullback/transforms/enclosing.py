"""Nested custom gradients: find out which captured tensors were computed from the inputs of the inner function.

In TensorFlow a second derivative is defined by a custom gradient inside a gradient function.  The body of the inner
function uses tensors of the outer one.  No gradient is lost if all of these were computed from the inputs of the inner
function: then the gradient that it defines is the whole derivative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pullback.core.memory import node_of
from pullback.core.tape import TAPED, Tape
from pullback.core.tensor import Tensor, iterate_levels


class DualLevel:
    """The level of dual numbers, with the attributes of a tape that are read here."""

    def __init__(self, level: int) -> None:
        self.level = level

    def holds(self, z: Any) -> bool:
        """Return whether ``z`` is a dual number of this level."""
        return isinstance(z, Tensor) and z.has_tangent and z.level == self.level


class Scope:
    """The tensors that one run of a function with a custom gradient was given, and those that it made."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.inputs: list[Any] = []
        self.duals: dict[int, tuple[Any, frozenset[int]]] = {}  # dual numbers by id, with the ids of their inputs
        for v in values:
            for t in iterate_levels(v):
                if type(t) in TAPED:
                    self.inputs.append(node_of(t))
                elif t.has_tangent:
                    self.duals[id(t)] = t, frozenset({id(t)})
        self.tapes: list[Tape] = list({id(n.meta.tape): n.meta.tape for n in self.inputs}.values())
        self.spans: list[tuple[Tape, int, int]] = []  # ranges of nodes that it made: a tape, first and end position

    @property
    def is_needed(self) -> bool:
        """Return whether an input is differentiated."""
        return bool(self.tapes or self.duals)

    def note_dual(self, dual: Any, operands: Sequence[Any]) -> None:
        """Record a dual number if all its operands of the same level were computed from the inputs."""
        of = [id(a) for a in operands if a.has_tangent and a.level == dual.level]
        if all(number in self.duals for number in of):
            self.duals[id(dual)] = dual, frozenset[int]().union(*(self.duals[number][1] for number in of))

    @contextmanager
    def open(self) -> Iterator[None]:
        """Mark what the body or the gradient function records in this block as made by this run."""
        if not self.is_needed:
            yield
            return
        begun = [(tape, len(tape.nodes)) for tape in self.tapes]
        self.spans += [(tape, start, -1) for tape, start in begun]
        at = len(self.spans) - len(begun)
        token = _scopes.set((*_scopes.get(), self))
        try:
            yield
        finally:
            _scopes.reset(token)
            self.spans[at : at + len(begun)] = [(tape, start, len(tape.nodes)) for tape, start in begun]

    def nodes_on(self, tape: Tape) -> Iterator[Any]:
        for of, start, end in self.spans:
            if of is tape:
                yield from tape.nodes[start : None if end < 0 else end]


_scopes: ContextVar[tuple[Scope, ...]] = ContextVar("enclosing custom gradients", default=())
scopes = _scopes.get


def is_made_from(z: Tensor, operands: Sequence[Any], within: Sequence[Scope], since: int | None = None) -> bool:
    """Return whether a tensor was computed inside enclosing functions, and from ``operands`` only.

    Nodes of its tape from position ``since`` on count as computed inside, none if it is None.
    """
    if z.has_tangent:
        sources = {id(a) for a in operands}
        return any(id(z) in scope.duals and scope.duals[id(z)][1] <= sources for scope in within)
    tape = z.meta.tape
    inputs = {id(n) for scope in within for n in scope.inputs}
    inside = _list_inside(tape, within, since)
    ends = {id(node_of(a)) for a in operands if tape.holds(a)} & (inputs | inside)
    waiting, seen = [node_of(z)], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or id(node) in ends:
            continue
        seen.add(id(node))
        if id(node) not in inside:
            return False
        waiting += _list_operands(node, tape)
    return True


def _list_inside(tape: Tape, within: Sequence[Scope], since: int | None) -> set[int]:
    """Return the ids of the nodes of a tape that enclosing functions made, or that were put on it from ``since`` on."""
    inside = {id(n) for scope in within for n in scope.nodes_on(tape)}
    return inside if since is None else inside | {id(n) for n in tape.nodes[since:]}


@contextmanager
def pause(tape: Tape) -> Iterator[None]:
    """Make the tensors of a tape constants in this block."""
    metas = [(m, m.tape, m.push, m.note, m.pool, m.small) for m in [*tape.values(), *tape.above.values()]]
    for m, *_ in metas:
        m.detach()
    try:
        yield
    finally:
        for m, *before in metas:
            m.attach(*before)


def _list_operands(node: Tensor, tape: Tape) -> list[Any]:
    """Return the operands of a node that are on its tape; a leaf has none."""
    if node.x is None:
        return []
    found = node.via.original.operands(node)
    return [node_of(a) for a in found if isinstance(a, Tensor) and tape.holds(node_of(a))]
