"""``numpy.linalg``, whose functions take tensors."""

from __future__ import annotations

import typing as _typing

import numpy.linalg as _module
from numpy.linalg import *  # noqa: F403


def __getattr__(name: str) -> _typing.Any:
    return getattr(_module, name)
