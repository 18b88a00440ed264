"""Conditions that have no single value: ``if x > 0`` while a function is compiled, or for the examples of ``vmap``.

They raise an error.  A function that catches it (``except ValueError``) would continue in a branch that no value
chose, so the error is raised again when the function returns.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

_refused: ContextVar[Exception | None] = ContextVar("refused_condition", default=None)


def note_refusal(error: Exception) -> None:
    """Let the transform that runs the function raise ``error`` again, in case the function catches it."""
    _refused.set(error)


class RefusedConditions:
    """The block in which a transform runs a function: at its end, errors of conditions that were caught are raised."""

    __slots__ = ("outer",)

    def __enter__(self) -> None:
        self.outer: Token[Exception | None] = _refused.set(None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        refused = _refused.get()
        _refused.reset(self.outer)
        if refused is not None and kind is None:
            raise refused
