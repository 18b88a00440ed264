"""``numpy.random``: draws are not differentiated."""

from __future__ import annotations

import typing as _typing

import numpy.random as _module
from numpy.random import *  # noqa: F403


def __getattr__(name: str) -> _typing.Any:
    return getattr(_module, name)
