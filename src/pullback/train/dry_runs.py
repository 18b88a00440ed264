"""Dry runs: calls of a model of which only the shape or kind of the output matters, so that no layer may change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pullback.core.accelerate import compile_nothing
from pullback.core.context import bind

_dry: ContextVar[bool] = ContextVar("dry_run", default=False)


def is_dry_run() -> bool:
    """Return whether only the shape or the kind of the output matters.

    >>> is_dry_run()
    False
    """
    return _dry.get()


@contextmanager
def dry_run() -> Iterator[None]:
    """Keep layers from storing states and adding losses in a ``with`` block, and ops from being compiled for it.

    >>> with dry_run():
    ...     is_dry_run()
    True
    """
    with bind(_dry, True), compile_nothing():
        yield
