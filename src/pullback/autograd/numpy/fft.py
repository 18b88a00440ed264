"""``numpy.fft``, whose functions take tensors."""

from __future__ import annotations

import typing as _typing

import numpy.fft as _module
from numpy.fft import *  # noqa: F403


def __getattr__(name: str) -> _typing.Any:
    return getattr(_module, name)
