"""Checks of arguments that the packages of training share."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.errors import ArgumentError

__all__ = ["check_count", "is_count"]


def is_count(value: Any) -> bool:
    """Return whether a value is a positive whole number.

    >>> is_count(3), is_count(0), is_count(True)
    (True, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, int | np.integer) and bool(value > 0)


def check_count(what: str, argument: str, value: Any) -> None:
    """Raise an error unless an argument is a positive whole number."""
    if not is_count(value):
        raise ArgumentError(f"{what}: {argument} must be a positive whole number, got {value!r}.")
