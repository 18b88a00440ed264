"""Pooling, upsampling and padding layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.ops import pooling, reductions
from pullback.ops.image import resizing
from pullback.train.nn.layers.base import Layer, check_choice
from pullback.train.nn.layers.convolution import Lengths, as_lengths
from pullback.typing import Value

__all__ = [
    "AveragePooling1d", "AveragePooling2d", "GlobalAveragePooling1d", "GlobalAveragePooling2d", "GlobalMaxPooling1d",
    "GlobalMaxPooling2d", "MaxPooling1d", "MaxPooling2d", "UpSampling2d", "ZeroPadding2d",
]  # fmt: skip


@dataclass(eq=False)
class PoolingLayer(Layer):
    """The base of pooling layers: windows of ``pool_size``, at distances of ``strides`` (default: ``pool_size``)."""

    pool_size: Lengths = 2
    strides: Lengths | None = None
    padding: str = "valid"

    rank = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = self.rank - 1
        self._size = as_lengths(self, "pool_size", axes)
        self._strides = self._size if self.strides is None else as_lengths(self, "strides", axes)
        check_choice(self, "padding", "valid", "same")


@dataclass(eq=False)
class MaxPooling1d(PoolingLayer):
    """The maximum of each window of sequences (batch, steps, channels).

    >>> pb.layers.max_pooling1d(2)(np.array([[[1.0], [3.0], [2.0], [0.0]]])).ravel()
    array([3., 2.])
    """

    rank = 2

    def call(self, x: Value) -> Any:
        return pooling.max_pool1d(x, self._size[0], self._strides[0], self.padding)


@dataclass(eq=False)
class AveragePooling1d(PoolingLayer):
    """The mean of each window of sequences (batch, steps, channels).

    >>> pb.layers.average_pooling1d(2)(np.array([[[1.0], [3.0], [2.0], [0.0]]])).ravel()
    array([2., 1.])
    """

    rank = 2

    def call(self, x: Value) -> Any:
        return pooling.avg_pool1d(x, self._size[0], self._strides[0], self.padding)


@dataclass(eq=False)
class MaxPooling2d(PoolingLayer):
    """The maximum of each window of images (batch, height, width, channels).

    >>> pb.layers.max_pooling2d()(np.arange(16.0).reshape(1, 4, 4, 1)).ravel()
    array([ 5.,  7., 13., 15.])
    """

    def call(self, x: Value) -> Any:
        return pooling.max_pool(x, self._size, self._strides, self.padding)


@dataclass(eq=False)
class AveragePooling2d(PoolingLayer):
    """The mean of each window of images (batch, height, width, channels).

    >>> pb.layers.average_pooling2d()(np.arange(16.0).reshape(1, 4, 4, 1)).ravel()
    array([ 2.5,  4.5, 10.5, 12.5])
    """

    def call(self, x: Value) -> Any:
        return pooling.avg_pool(x, self._size, self._strides, self.padding)


@dataclass(eq=False)
class GlobalMaxPooling1d(Layer):
    """The maximum of each channel of a sequence.

    >>> pb.layers.global_max_pooling1d()(np.array([[[1.0, 4.0], [3.0, 2.0]]]))
    array([[3., 4.]])
    """

    rank = 2

    def call(self, x: Value) -> Any:
        return reductions.max(x, axis=1)


@dataclass(eq=False)
class GlobalAveragePooling1d(Layer):
    """The mean of each channel of a sequence.

    >>> pb.layers.global_average_pooling1d()(np.array([[[1.0, 4.0], [3.0, 2.0]]]))
    array([[2., 3.]])
    """

    rank = 2

    def call(self, x: Value) -> Any:
        return reductions.mean(x, axis=1)


@dataclass(eq=False)
class GlobalMaxPooling2d(Layer):
    """The maximum of each channel of an image.

    >>> pb.layers.global_max_pooling2d()(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[6., 7.]])
    """

    rank = 3

    def call(self, x: Value) -> Any:
        return reductions.max(x, axis=(1, 2))


@dataclass(eq=False)
class GlobalAveragePooling2d(Layer):
    """The mean of each channel of an image.

    >>> pb.layers.global_average_pooling2d()(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[3., 4.]])
    """

    rank = 3

    def call(self, x: Value) -> Any:
        return reductions.mean(x, axis=(1, 2))


@dataclass(eq=False)
class UpSampling2d(Layer):
    """Enlarges images ``size`` times; "bilinear" uses half-pixel centers, as Keras does.

    >>> pb.layers.up_sampling2d()(np.array([[[[1.0], [2.0]]]]))[0, :, :, 0]
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.]])
    """

    size: Lengths = 2
    interpolation: str = "nearest"
    rank = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._size = as_lengths(self, "size", 2)
        check_choice(self, "interpolation", "nearest", "bilinear")

    def call(self, x: Value) -> Any:
        batch, height, width, channels = x.shape
        down, right = self._size
        if self.interpolation == "bilinear":
            return resizing.resize_bilinear(x, [height * down, width * right], half_pixel_centers=True)
        z = np.reshape(x, (batch, height, 1, width, 1, channels))
        z = np.broadcast_to(z, (batch, height, down, width, right, channels))
        return np.reshape(z, (batch, height * down, width * right, channels))


@dataclass(eq=False)
class ZeroPadding2d(Layer):
    """Pads images with zeros: one width, [above and below, left and right], or [[above, below], [left, right]].

    >>> pb.layers.zero_padding2d([[1, 0], [0, 2]])(np.ones((1, 1, 1, 1)))[0, :, :, 0]
    array([[0., 0., 0.],
           [1., 0., 0.]])
    """

    padding: Any = 1
    rank = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.padding
        pairs = given if isinstance(given, list | tuple) else (given, given)
        pairs = [tuple(p) if isinstance(p, list | tuple) else (p, p) for p in pairs]
        if len(pairs) != 2 or not all(len(p) == 2 and all(_is_pad_width(n) for n in p) for p in pairs):
            raise ArgumentError(
                f"{self.name}: padding must be a whole number of 0 or more, one for each axis, or one for each side; "
                f"got {given!r}."
            )
        self._widths = [(0, 0), *pairs, (0, 0)]

    def call(self, x: Value) -> Any:
        return np.pad(x, self._widths)


def _is_pad_width(n: object) -> bool:
    return isinstance(n, int | np.integer) and not isinstance(n, bool) and bool(n >= 0)
