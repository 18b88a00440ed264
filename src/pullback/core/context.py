"""Context variables that have a value inside a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def bind(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Give a context variable a value in this block and thread.

    >>> depth = ContextVar("depth", default=0)
    >>> with bind(depth, 1):
    ...     depth.get()
    1
    """
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
