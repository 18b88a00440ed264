"""The names of the kinds of things that go in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Array: TypeAlias = np.ndarray[Any, Any]
TensorLike: TypeAlias = Any  # a Tensor, an array, a number, or nested lists of numbers
Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = int | Sequence[int] | None
Tree: TypeAlias = Any  # dicts, lists, tuples, named tuples and dataclasses of tensors
Function: TypeAlias = Callable[..., Any]
DType: TypeAlias = "DTypeLike"
