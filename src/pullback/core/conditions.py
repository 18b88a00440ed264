"""Conditions without one value: ``if x > 0`` while a function is being compiled, or of the examples of ``vmap``.

They raise where they are.  A function that catches the error (``except ValueError``) goes on in a direction that no
value chose, so the error is raised again when it returns.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

__all__ = ["RefusedConditions", "note_refusal"]

_refused: ContextVar[Exception | None] = ContextVar("refused_condition", default=None)


def note_refusal(error: Exception) -> None:
    """Have the transform that runs the function raise ``error``, should the function catch it."""
    _refused.set(error)


class RefusedConditions:
    """The block in which a transform runs a function: raises what the function was refused and caught."""

    __slots__ = ("outer",)

    def __enter__(self) -> None:
        self.outer: Token[Exception | None] = _refused.set(None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        refused = _refused.get()
        _refused.reset(self.outer)
        if refused is not None and kind is None:
            raise refused
