"""Losses that layers add while a model is called: ``layer.add_loss``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from pullback.core.context import bind

_collected: ContextVar[list[Any] | None] = ContextVar("_collected", default=None)


def add_loss(loss: Any) -> None:
    """Add a number to the loss of the step that is being computed; outside one it has no effect."""
    collected = _collected.get()
    if collected is not None:
        collected.append(loss)


def collect_losses() -> AbstractContextManager[list[Any]]:
    """Collect what is added in a ``with`` block.

    >>> with collect_losses() as found:
    ...     add_loss(2.0)
    >>> found
    [2.0]
    """
    return bind(_collected, [])
