"""Tapes that walk back step by step, strongly or under watch, while one of the two is switched on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.core.interpreter import new_level
from pullback.core.tape import Tape, add_cotangent, forget, walk_again
from pullback.diagnostics import switches
from pullback.diagnostics.steps import parts

__all__: list[str] = []


class LookingTape(Tape):
    """A tape that walks back step by step, strongly or under watch."""

    __slots__ = ("looking",)

    looking: switches.Mode

    def leaf(self, value: Any) -> Any:
        monitor = self.looking.monitor
        return super().leaf(value if monitor is None else monitor.lifted(value))

    def walk(self) -> None:
        walk_back(_popped(self.recorded()), self.looking)

    def close(self) -> None:
        while self.nodes:
            forget(self.nodes.pop())
        self.cuts.clear()
        self.release()
        self.above.release()


def _popped(nodes: list[Any]) -> Iterable[Any]:
    while nodes:
        r = nodes.pop()
        yield r
        r.x = r.y = None  # whoever still holds this tensor does not hold the graph behind it


def walk_back(nodes: Iterable[Any], mode: switches.Mode, turned: bool = False) -> None:
    if mode.monitor is not None:
        mode.monitor.walk(nodes, mode.strong, turned)
        return
    for r in nodes:
        if r.g is not None:
            for a, d in parts(r, mode.strong):
                add_cotangent(a, d)


def _opening(own: Any) -> Any:
    def open() -> Tape:
        mode = switches.mode()
        if mode.monitor is None and not mode.strong:
            return own()  # type: ignore[no-any-return]
        tape = LookingTape(new_level())
        tape.looking = mode
        return tape

    return open


def _walking(own: Any) -> Any:
    def walk(nodes: list[Any], keep: bool = True, transposed: bool = False) -> None:
        mode = switches.mode()
        if mode.monitor is None and not mode.strong:
            own(nodes, keep, transposed)
        else:
            walk_back(_left(nodes, keep), mode, transposed)

    return walk


def _left(nodes: list[Any], keep: bool) -> Iterable[Any]:
    for r in reversed(nodes):
        yield r
        if not keep:
            r.g = None


# Whoever switches something on that tapes must know takes it from here.
switched = switches.switched

switches.asking(Tape.open, _opening)
switches.asking(walk_again, _walking)
