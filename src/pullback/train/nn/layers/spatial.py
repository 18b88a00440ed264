"""The base of layers for sequences, images and volumes: the number of axes, and the axis of the channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.train.arguments import is_whole_number
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import UnknownShape, check_choice

Lengths = int | Sequence[int]  # one number for all axes, or one for each


def as_lengths(layer: Layer, name: str, axes: int, least: int = 1) -> tuple[int, ...]:
    """Return an argument that is one whole number of ``least`` or more, or one for each axis, as one for each axis."""
    value = getattr(layer, name)
    lengths = tuple(value) if isinstance(value, list | tuple) else (value,) * axes
    if len(lengths) != axes or not all(is_whole_number(n, least) for n in lengths):
        kind = "a positive whole number" if least else "a whole number of 0 or more"
        each = f", or {axes} of them" if axes > 1 else ""
        raise ArgumentError(f"{layer.name}: {name} must be {kind}{each}, got {value!r}.")
    return tuple(int(n) for n in lengths)


@dataclass(eq=False)
class SpatialLayer(Layer):
    """The base of layers for (batch, *space, channels), or with ``data_format="channels_first"`` (batch, channels, …).

    The attribute ``rank`` of a subclass is the number of axes of an example, and computes with the channels last.
    """

    data_format: str | None = field(default="channels_last", kw_only=True)

    rank = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self.data_format = "channels_last" if self.data_format is None else self.data_format
        check_choice(self, "data_format", "channels_last", "channels_first")
        self._first = self.data_format == "channels_first"

    @property
    def axes(self) -> int:
        """The number of axes of space."""
        return self.rank - 1

    def count_channels(self, shape: UnknownShape) -> Any:
        """Return the number of channels in the shape of an example."""
        return shape[0] if self._first else shape[-1]

    def move_channels_last(self, x: Any) -> Any:
        """Return the input with the channels along the last axis."""
        return np.moveaxis(x, 1, -1) if self._first else x

    def move_channels_back(self, y: Any) -> Any:
        """Return the output with the channels where the input has them."""
        return np.moveaxis(y, -1, 1) if self._first else y
