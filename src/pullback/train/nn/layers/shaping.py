"""Layers that reorder the elements of every example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.train.arguments import is_whole_number
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_counts, check_data_format
from pullback.typing import Value

__all__ = ["Flatten", "Permute", "RepeatVector", "Reshape"]


@dataclass(eq=False)
class Flatten(Layer):
    """Flattens every example.

    - data_format: with "channels_first", channels are moved to the end before, so that weights fit both layouts.

    >>> pb.layers.flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    data_format: str | None = None
    argument_checks = ((check_data_format,),)

    def call(self, x: Value) -> Any:
        y: Any = x
        if self.data_format == "channels_first" and x.ndim > 2:
            y = np.moveaxis(y, 1, -1)
        return np.reshape(y, (x.shape[0], math.prod(x.shape[1:])))


@dataclass(eq=False)
class Reshape(Layer):
    """Reshapes every example; one length may be -1, which is inferred.

    - target_shape: the new shape of an example.

    >>> pb.layers.reshape([2, -1])(np.ones((5, 6))).shape
    (5, 2, 3)
    """

    target_shape: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.target_shape
        lengths = shape if isinstance(shape, list | tuple) else [shape]
        lengths = [-1 if n is None else n for n in lengths]
        if not all(is_whole_number(n, -1) for n in lengths) or lengths.count(-1) > 1:
            raise ArgumentError(f"{self.name}: target_shape must be lengths, of which one may be -1, got {shape!r}.")
        self.target_shape = tuple(int(n) for n in lengths)

    def call(self, x: Value) -> Any:
        size, product = math.prod(x.shape[1:]), math.prod(n for n in self.target_shape if n != -1)
        rest = size // product if product else 0
        shape = tuple(rest if n == -1 else n for n in self.target_shape)
        if math.prod(shape) != size:
            raise ShapeError(f"{size} numbers do not fill the shape {self.target_shape}.")
        return np.reshape(x, (x.shape[0], *shape))


@dataclass(eq=False)
class Permute(Layer):
    """Transposes the axes of every example; the first is 1, as in Keras.

    - dims: for each axis of the output, the axis of the input.

    >>> pb.layers.permute([2, 1])(np.ones((5, 3, 4))).shape
    (5, 4, 3)
    """

    dims: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        dims = self.dims
        if not isinstance(dims, list | tuple) or sorted(dims) != list(range(1, len(dims) + 1)):
            raise ArgumentError(f"{self.name}: dims must be each of 1, 2, ... once, got {dims!r}.")
        self.dims = tuple(dims)

    def call(self, x: Value) -> Any:
        if x.ndim != len(self.dims) + 1:
            raise ShapeError(f"expected rank {len(self.dims) + 1}, the batch included, for dims {self.dims}.")
        return np.transpose(x, (0, *self.dims))


@dataclass(eq=False)
class RepeatVector(Layer):
    """Repeats every example ``n`` times along a new axis: a sequence from one vector.

    - n: how many times.

    >>> pb.layers.repeat_vector(3)(np.ones((2, 5))).shape
    (2, 3, 5)
    """

    n: int
    rank = 1
    argument_checks = ((check_counts, "n"),)

    def call(self, x: Value) -> Any:
        return np.broadcast_to(np.expand_dims(x, 1), (x.shape[0], self.n, x.shape[1]))
