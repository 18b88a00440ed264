"""Layers that change the size of sequences, images and volumes: padding, cropping, enlarging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.train.arguments import is_whole_number
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_choice
from pullback.train.nn.layers.interpolation import INTERPOLATIONS, resize_images
from pullback.train.nn.layers.spatial import Lengths, SpatialLayer, as_lengths
from pullback.typing import Value

__all__ = [
    "Cropping1d", "Cropping2d", "Cropping3d", "UpSampling1d", "UpSampling2d", "UpSampling3d", "ZeroPadding1d",
    "ZeroPadding2d", "ZeroPadding3d",
]  # fmt: skip

Widths = int | Sequence[int] | Sequence[Sequence[int]]  # one for all sides, one for each axis, or one for each side


def _as_widths(layer: Layer, name: str, axes: int) -> list[tuple[int, int]]:
    """Return an argument that is one width, one for each axis, or one for each side, as one for each side."""
    widths = getattr(layer, name)
    listed = list(widths) if isinstance(widths, list | tuple) else [widths] * axes
    if axes == 1 and len(listed) == 2:
        listed = [listed]  # [before, after] of the only axis
    pairs = [tuple(p) if isinstance(p, list | tuple) else (p, p) for p in listed]
    if len(pairs) != axes or not all(len(p) == 2 and all(is_whole_number(n, 0) for n in p) for p in pairs):
        raise ArgumentError(
            f"{layer.name}: {name} must be a whole number of 0 or more, one for each axis, or one for each side; "
            f"got {widths!r}."
        )
    return [(int(a), int(b)) for a, b in pairs]


# ---- padding


@dataclass(eq=False)
class ZeroPadding(SpatialLayer):
    """The base of layers that put zeros around their inputs."""

    padding: Widths = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        around = _as_widths(self, "padding", self.axes)
        self._widths = [(0, 0), (0, 0), *around] if self._first else [(0, 0), *around, (0, 0)]

    def call(self, x: Value) -> Any:
        return np.pad(x, self._widths)


@dataclass(eq=False)
class ZeroPadding1d(ZeroPadding):
    """Pads sequences with zeros.

    - padding: one width for both ends, or [before, after].

    >>> pb.layers.zero_padding1d([1, 2])(np.ones((1, 2, 1))).ravel()
    array([0., 1., 1., 0., 0.])
    """

    rank = 2


@dataclass(eq=False)
class ZeroPadding2d(ZeroPadding):
    """Pads images with zeros.

    - padding: one width, [above and below, left and right], or [[above, below], [left, right]].

    >>> pb.layers.zero_padding2d([[1, 0], [0, 2]])(np.ones((1, 1, 1, 1)))[0, :, :, 0]
    array([[0., 0., 0.],
           [1., 0., 0.]])
    """


@dataclass(eq=False)
class ZeroPadding3d(ZeroPadding):
    """Pads volumes with zeros.

    - padding: one width, one for each axis, or a pair for each axis.

    >>> pb.layers.zero_padding3d(1)(np.ones((1, 2, 3, 4, 1))).shape
    (1, 4, 5, 6, 1)
    """

    rank = 4


# ---- cropping


@dataclass(eq=False)
class Cropping(SpatialLayer):
    """The base of layers that cut the borders of their inputs off."""

    cropping: Widths = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._widths = _as_widths(self, "cropping", self.axes)

    def call(self, x: Value) -> Any:
        space = x.shape[2:] if self._first else x.shape[1:-1]
        if any(a + b >= n for (a, b), n in zip(self._widths, space, strict=True)):
            raise ShapeError(f"cropping={self.cropping!r} leaves nothing of {space}.")
        inside = [slice(a, n - b) for (a, b), n in zip(self._widths, space, strict=True)]
        return x[(slice(None), slice(None), *inside) if self._first else (slice(None), *inside)]


@dataclass(eq=False)
class Cropping1d(Cropping):
    """Cuts the ends of sequences off.

    - cropping: one width for both ends, or [before, after].

    >>> pb.layers.cropping1d([1, 2])(np.arange(5.0).reshape(1, 5, 1)).ravel()
    array([1., 2.])
    """

    rank = 2


@dataclass(eq=False)
class Cropping2d(Cropping):
    """Cuts the borders of images off.

    - cropping: one width, [above and below, left and right], or [[above, below], [left, right]].

    >>> pb.layers.cropping2d([[1, 0], [0, 2]])(np.arange(9.0).reshape(1, 3, 3, 1))[0, :, :, 0]
    array([[3.],
           [6.]])
    """


@dataclass(eq=False)
class Cropping3d(Cropping):
    """Cuts the borders of volumes off.

    - cropping: one width, one for each axis, or a pair for each axis.

    >>> pb.layers.cropping3d(1)(np.ones((1, 3, 4, 5, 1))).shape
    (1, 1, 2, 3, 1)
    """

    rank = 4


# ---- enlarging


@dataclass(eq=False)
class UpSampling(SpatialLayer):
    """The base of layers that repeat each element along the axes of space."""

    size: Lengths = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self._size = as_lengths(self, "size", self.axes)

    def call(self, x: Value) -> Any:
        return self.move_channels_back(self.enlarge(self.move_channels_last(x)))

    def enlarge(self, x: Value) -> Any:
        """Return the input, with the channels last, with each element repeated."""
        batch, *space, channels = x.shape
        apart = [n for length in space for n in (length, 1)]
        wide = [n for pair in zip(space, self._size, strict=True) for n in pair]
        z = np.broadcast_to(np.reshape(x, (batch, *apart, channels)), (batch, *wide, channels))
        return np.reshape(z, (batch, *(n * k for n, k in zip(space, self._size, strict=True)), channels))


@dataclass(eq=False)
class UpSampling1d(UpSampling):
    """Repeats each step of sequences ``size`` times.

    - size: how many times.

    >>> pb.layers.up_sampling1d(2)(np.array([[[1.0], [2.0]]])).ravel()
    array([1., 1., 2., 2.])
    """

    rank = 2


@dataclass(eq=False)
class UpSampling2d(UpSampling):
    """Enlarges images ``size`` times; "bilinear" uses half-pixel centers, as Keras does.

    - size: how many times, along each axis or along both.
    - interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".

    >>> pb.layers.up_sampling2d()(np.array([[[[1.0], [2.0]]]]))[0, :, :, 0]
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]])
    """

    interpolation: str = "nearest"
    argument_checks = ((check_choice, "interpolation", *INTERPOLATIONS),)

    def enlarge(self, x: Value) -> Any:
        if self.interpolation == "nearest":
            return super().enlarge(x)
        height, width = (n * k for n, k in zip(x.shape[1:3], self._size, strict=True))
        return resize_images(x, height, width, self.interpolation)


@dataclass(eq=False)
class UpSampling3d(UpSampling):
    """Repeats each element of volumes ``size`` times along each axis.

    - size: how many times, along each axis or along all.

    >>> pb.layers.up_sampling3d(2)(np.ones((1, 1, 2, 3, 1))).shape
    (1, 2, 4, 6, 1)
    """

    rank = 4
