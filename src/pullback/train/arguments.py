"""Checks of arguments that the packages of training share."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

import numpy as np

from pullback.errors import ArgumentError

__all__ = ["as_whole_number", "check_count", "is_count"]


def is_count(value: object) -> bool:
    """Return whether a value is a positive whole number.

    >>> is_count(3), is_count(0), is_count(True)
    (True, False, False)
    """
    return not isinstance(value, bool) and isinstance(value, int | np.integer) and bool(value > 0)


def check_count(what: str, argument: str, value: object) -> None:
    """Raise an error unless an argument is a positive whole number."""
    if not is_count(value):
        raise ArgumentError(f"{what}: {argument} must be a positive whole number, got {value!r}.")


def as_whole_number(what: str, argument: str, value: SupportsIndex, least: int) -> int:
    """Return an argument as an integer; raise an error unless it is a whole number of ``least`` or more.

    >>> as_whole_number("batch", "batch_size", np.int64(3), 1)
    3
    """
    try:
        number = index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or number < least:
        raise ArgumentError(f"{what}: {argument} must be an integer of {least} or more, got {value!r}.")
    return number
