"""Loops, branches and gates of a program that is being compiled: what they have in common as ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import hooks
from pullback.core.bundle import place_all
from pullback.core.convert import unwrap_constant
from pullback.core.interpreter import level_of
from pullback.core.memory import node_of
from pullback.core.tape import Tape

__all__: list[str] = []


class StructuredOp:
    """An op with bodies."""

    custom = True
    is_structured = True
    makes_views = False
    chooses = False
    name = ""

    def apply(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Perform the op on operands of any level; the results are of the highest."""
        args = hooks.capture_operands([unwrap_constant(a) for a in args])
        top: Any = max(args, key=level_of, default=None)
        if not level_of(top):
            return self.run(args)
        results: tuple[Any, ...] = top.interpret(self, tuple(args), {})
        return results

    def call(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return self.apply(args)

    def run(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Perform the op on plain arrays."""
        raise NotImplementedError

    def infer(self) -> list[tuple[Any, Any]]:
        """Return shape and dtype of each result."""
        raise NotImplementedError

    def lower(self, trace: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Add the op to a program."""
        raise NotImplementedError

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return results and their tangents, None for those that are zero."""
        raise NotImplementedError

    def batch(self, arrays: Sequence[Any], on: Sequence[bool], size: int) -> tuple[Sequence[Any], Sequence[bool]]:
        """Return the results for all examples, and for each whether it differs between examples."""
        raise NotImplementedError

    def record(self, tape: Tape, args: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Perform the op one level down, and put its node on the tape."""
        values = [unwrap_constant(v) for v in values]
        live = [tape.holds(a) for a in args]
        nodes = [node_of(a) if on else None for a, on in zip(args, live, strict=True)]
        zs, back = self.differentiate(values, live)
        return place_all(tape, zs, nodes, back)

    def differentiate(self, values: Sequence[Any], live: Sequence[bool]) -> tuple[Sequence[Any], Any]:
        """Return the results, and the function from their cotangents to those of the operands."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<op {self.name}>"
