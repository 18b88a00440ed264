"""``debug_nans`` for ``GradientTape``: its block cannot be run again, so the report is made from the recorded nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback.core.source import find_user_place
from pullback.core.tape import add_cotangent
from pullback.core.tensor import ARRAYS, Tensor
from pullback.core.variable import watch_below
from pullback.diagnostics.backward_steps import is_finite, list_cotangents
from pullback.diagnostics.monitor import GIVEN, SEED, Note
from pullback.diagnostics.monitored_run import MonitoredResult
from pullback.diagnostics.nan_report import NanReport
from pullback.errors import NanError
from pullback.transforms.recording import unwatch

if TYPE_CHECKING:
    from pullback.core.op import Op


class Push:
    """The ``push`` of a tape that also stores the user's line of each node."""

    def __init__(self, nodes: list[Any]) -> None:
        self.nodes = nodes
        self.places: dict[int, tuple[str, int]] = {}

    def __call__(self, r: Tensor) -> None:
        self.nodes.append(r)
        self.places[id(r)] = find_user_place()


class Notes:
    """Notes of what was recorded and of the backward pass over it."""

    def __init__(self, tape: Any) -> None:
        self.places: dict[int, tuple[str, int]] = getattr(tape.push, "places", {})
        self.notes: list[Note] = []
        self.values: dict[int, Note] = {}  # by the node
        self.cotangents: dict[int, Note] = {}

    def add(self, name: str, op: Op | None, args: Sequence[Any], value: Any, owner: Note | None = None) -> Note:
        note = Note(len(self.notes), name, op, args, {}, value)
        if owner is not None:
            note.owner, note.inherited, note.file, note.line = owner, True, owner.file, owner.line
        self.notes.append(note)
        return note

    def add_forward(self, r: Tensor) -> None:
        """Note a node, with the operands that are kept."""
        step = r.via.original
        inputs = [v if node is None else node for node, v in zip(step.operands(r), step.values(r), strict=True)]
        operands = [self._operand(a) for a in inputs if isinstance(a, ARRAYS)]
        value = r.value if isinstance(r.value, ARRAYS) else 0.0  # a big one that no rule needs is not kept
        note = self.values[id(r)] = self.add(getattr(step.op, "name", "custom gradient"), step.op, operands, value)
        note.file, note.line = self.places.get(id(r), ("", 0))

    def _operand(self, a: Any) -> Any:
        if not isinstance(a, Tensor) or id(a) in self.values:
            return self.values.get(id(a), a)
        note = self.add(GIVEN, None, (), a.value if isinstance(a.value, ARRAYS) else 0.0)
        return self.values.setdefault(id(a), note)

    def add_backward(self, r: Any) -> None:
        """Note the backward pass through a node."""
        owner = self.values[id(r)]
        if isinstance(r.g, ARRAYS) and id(r) not in self.cotangents:
            self.cotangents[id(r)] = self.add(SEED, None, (), r.g)
        seeds = [self.cotangents[id(r)]] if id(r) in self.cotangents else []
        for a, d in list_cotangents(r):
            add_cotangent(a, d)
            result = [owner] if r.via.original.needs_z else []  # where a rule computes with the result of its op
            note = self.add(f"{owner.name}'", owner.op, [*seeds, *owner.args, *result], d, owner)
            before = self.cotangents.get(id(a))
            self.cotangents[id(a)] = note if before is None else self.add("add", None, [before, note], a.g, owner)


def check_pulled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a backward pass of a ``GradientTape`` gives; an error with a report if it is not finite."""
    out = function(*args, **kwargs)
    if all(d is None or is_finite(d) for d in out):
        return out
    tape, known, seeds, sources, *_ = args
    raise NanError(_report(tape, known, seeds, sources))


def _report(tape: Any, known: Any, seeds: Sequence[Any], sources: Any) -> NanReport:
    nodes, notes = list(tape._tape.list_steps()), Notes(tape._tape)
    leaves = [n for s in sources for n in tape._list_leaves(s) or [tape._find_node(s, known)] if n is not None]
    with unwatch(nodes), watch_below(tape._tape.level):
        try:
            for r in nodes:
                notes.add_forward(r)
            for node, seed in seeds:
                if node is not None:
                    add_cotangent(node, seed)
            for r in reversed(nodes):
                if r.g is not None:
                    notes.add_backward(r)
        finally:
            for r in known.values():
                r.g = None
    found = [notes.cotangents[id(n)] for n in leaves if id(n) in notes.cotangents]
    return NanReport([MonitoredResult("the gradient", note.value, note) for note in found], notes.notes)
