"""NumPy, whose functions take tensors; ``array`` and some others take lists with traced arrays in them, too."""

from __future__ import annotations

import typing as _typing

import numpy as _np  # noqa: ICN001
from numpy import *  # noqa: F403
from numpy import __version__ as __version__

from pullback.autograd.arrays import array as array  # type: ignore[no-redef]
from pullback.autograd.arrays import make_diagonal as make_diagonal
from pullback.autograd.arrays import metadata as metadata
from pullback.autograd.arrays import take_list as _take_list
from pullback.autograd.arrays import take_parts as _take_parts
from pullback.autograd.arrays import where as where  # type: ignore[no-redef]
from pullback.autograd.numpy import fft as fft  # type: ignore[no-redef]
from pullback.autograd.numpy import linalg as linalg  # type: ignore[no-redef]
from pullback.autograd.numpy import random as random  # type: ignore[no-redef]

mean, std, var = _take_list(_np.mean), _take_list(_np.std), _take_list(_np.var)
sum, prod, max, min = _take_list(_np.sum), _take_list(_np.prod), _take_list(_np.max), _take_list(_np.min)

concatenate, stack, column_stack = _take_parts(_np.concatenate), _take_parts(_np.stack), _take_parts(_np.column_stack)
hstack, vstack, dstack = _take_parts(_np.hstack), _take_parts(_np.vstack), _take_parts(_np.dstack)


def __getattr__(name: str) -> _typing.Any:
    return getattr(_np, name)
