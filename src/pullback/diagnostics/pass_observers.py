"""Observed backward passes: they run step by step, with strong zeros or under a monitor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pullback.core import hooks
from pullback.core.interpreter import new_level
from pullback.core.tape import Tape, add_cotangent, forget
from pullback.diagnostics.backward_steps import list_cotangents


class PassObserver(hooks.Observer):
    """An observer of backward passes."""

    events = frozenset({"open_tape", "walk"})
    is_strong = False  # whether cotangents of zero give zero, whatever they are multiplied by
    monitor: Any = None  # notes every op

    def open_tape(self) -> Tape:
        tape = ObservedTape(new_level())
        tape.observers = _list_pass_observers()
        return tape

    def walk(self, nodes: list[Any], keep: bool, transposed: bool) -> None:
        walk_observed(_iterate_back(nodes, keep), _list_pass_observers(), transposed)


def _list_pass_observers() -> list[PassObserver]:
    return [o for o in hooks.observers() if isinstance(o, PassObserver)]


class ObservedTape(Tape):
    """A tape whose backward pass runs step by step, for the observers that were on when it was opened."""

    __slots__ = ("observers",)

    observers: Sequence[PassObserver]

    def make_leaf(self, value: Any) -> Any:
        monitor = _find_monitor(self.observers)
        return super().make_leaf(value if monitor is None else monitor.lift(value))

    def walk(self) -> None:
        walk_observed(_pop_back(self.list_steps()), self.observers)

    def close(self) -> None:
        while self.nodes:
            forget(self.nodes.pop())
        self.cuts.clear()
        self.release()
        self.above.release()


def _find_monitor(observers: Sequence[PassObserver]) -> Any:
    return next((o.monitor for o in reversed(observers) if o.monitor is not None), None)


def walk_observed(nodes: Iterable[Any], observers: Sequence[PassObserver], transposed: bool = False) -> None:
    """Run the backward pass over nodes, latest first; the initial cotangents are set."""
    strong, monitor = any(o.is_strong for o in observers), _find_monitor(observers)
    if monitor is not None:
        monitor.walk_noted(nodes, strong, transposed)
        return
    for r in nodes:
        if r.g is not None:
            for a, d in list_cotangents(r, strong):
                add_cotangent(a, d)


def _pop_back(nodes: list[Any]) -> Iterable[Any]:
    while nodes:
        r = nodes.pop()
        yield r
        r.x = r.y = None  # so that a tensor that a user keeps does not keep the graph behind it


def _iterate_back(nodes: list[Any], keep: bool) -> Iterable[Any]:
    for r in reversed(nodes):
        yield r
        if not keep:
            r.g = None
