"""Pooling layers: windows, everything at once, or a given number of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pullback.ops import joining, pooling, reductions
from pullback.train.masks import Mask
from pullback.train.nn.layers.checks import check_choice
from pullback.train.nn.layers.spatial import Lengths, SpatialLayer, as_lengths
from pullback.typing import Value

__all__ = [
    "AdaptiveAveragePooling1d", "AdaptiveAveragePooling2d", "AdaptiveAveragePooling3d", "AdaptiveMaxPooling1d",
    "AdaptiveMaxPooling2d", "AdaptiveMaxPooling3d", "AveragePooling1d", "AveragePooling2d", "AveragePooling3d",
    "GlobalAveragePooling1d", "GlobalAveragePooling2d", "GlobalAveragePooling3d", "GlobalMaxPooling1d",
    "GlobalMaxPooling2d", "GlobalMaxPooling3d", "MaxPooling1d", "MaxPooling2d", "MaxPooling3d",
]  # fmt: skip

MAXIMUM = {1: pooling.max_pool1d, 2: pooling.max_pool, 3: pooling.max_pool3d}  # by the axes of space
MEAN = {1: pooling.avg_pool1d, 2: pooling.avg_pool, 3: pooling.avg_pool3d}


# ---- windows


@dataclass(eq=False)
class PoolingLayer(SpatialLayer):
    """The base of pooling layers: windows of ``pool_size``, at distances of ``strides`` (default: ``pool_size``)."""

    pool_size: Lengths = 2
    strides: Lengths | None = None
    padding: str = "valid"

    functions: ClassVar[Mapping[int, Callable[..., Any]]]  # for each number of axes of space

    def __post_init__(self) -> None:
        super().__post_init__()
        self._size = as_lengths(self, "pool_size", self.axes)
        self._strides = self._size if self.strides is None else as_lengths(self, "strides", self.axes)
        check_choice(self, "padding", "valid", "same")

    def call(self, x: Value) -> Any:
        pool = self.functions[self.axes]
        return self.move_channels_back(pool(self.move_channels_last(x), self._size, self._strides, self.padding))


class MaxPooling(PoolingLayer):
    """The base of maximum pooling."""

    functions = MAXIMUM


class AveragePooling(PoolingLayer):
    """The base of average pooling."""

    functions = MEAN


@dataclass(eq=False)
class MaxPooling1d(MaxPooling):
    """The maximum of each window of sequences (batch, steps, channels).

    - strides: the distance between windows; by default ``pool_size``.

    >>> pb.layers.max_pooling1d(2)(np.array([[[1.0], [3.0], [2.0], [0.0]]])).ravel()
    array([3., 2.])
    """

    rank = 2


@dataclass(eq=False)
class MaxPooling2d(MaxPooling):
    """The maximum of each window of images (batch, height, width, channels).

    - strides: the distance between windows; by default ``pool_size``.

    >>> pb.layers.max_pooling2d()(np.arange(16.0).reshape(1, 4, 4, 1)).ravel()
    array([ 5.,  7., 13., 15.])
    """


@dataclass(eq=False)
class MaxPooling3d(MaxPooling):
    """The maximum of each window of volumes (batch, depth, height, width, channels).

    - strides: the distance between windows; by default ``pool_size``.

    >>> pb.layers.max_pooling3d()(np.arange(8.0).reshape(1, 2, 2, 2, 1)).ravel()
    array([7.])
    """

    rank = 4


@dataclass(eq=False)
class AveragePooling1d(AveragePooling):
    """The mean of each window of sequences (batch, steps, channels).

    - strides: the distance between windows; by default ``pool_size``.

    >>> pb.layers.average_pooling1d(2)(np.array([[[1.0], [3.0], [2.0], [0.0]]])).ravel()
    array([2., 1.])
    """

    rank = 2


@dataclass(eq=False)
class AveragePooling2d(AveragePooling):
    """The mean of each window of images (batch, height, width, channels).

    - strides: the distance between windows; by default ``pool_size``.

    >>> pb.layers.average_pooling2d()(np.arange(16.0).reshape(1, 4, 4, 1)).ravel()
    array([ 2.5,  4.5, 10.5, 12.5])
    """


@dataclass(eq=False)
class AveragePooling3d(AveragePooling):
    """The mean of each window of volumes (batch, depth, height, width, channels).

    - strides: the distance between windows; by default ``pool_size``.

    >>> pb.layers.average_pooling3d()(np.arange(8.0).reshape(1, 2, 2, 2, 1)).ravel()
    array([3.5])
    """

    rank = 4


# ---- everything at once


@dataclass(eq=False)
class GlobalPooling(SpatialLayer):
    """The base of pooling over all of space: one number for each channel."""

    keepdims: bool = field(default=False, kw_only=True)

    reduce: ClassVar[Callable[..., Any]]  # of x, axis and keepdims

    def call(self, x: Value) -> Any:
        space = range(2, self.axes + 2) if self._first else range(1, self.axes + 1)
        return type(self).reduce(x, axis=tuple(space), keepdims=self.keepdims)


class GlobalMaxPooling(GlobalPooling):
    """The base of global maximum pooling."""

    reduce = staticmethod(reductions.max)


class GlobalAveragePooling(GlobalPooling):
    """The base of global average pooling."""

    reduce = staticmethod(reductions.mean)


@dataclass(eq=False)
class GlobalMaxPooling1d(GlobalMaxPooling):
    """The maximum of each channel of a sequence.

    >>> pb.layers.global_max_pooling1d()(np.array([[[1.0, 4.0], [3.0, 2.0]]]))
    array([[3., 4.]])
    """

    rank = 2


@dataclass(eq=False)
class GlobalMaxPooling2d(GlobalMaxPooling):
    """The maximum of each channel of an image.

    >>> pb.layers.global_max_pooling2d()(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[6., 7.]])
    """


@dataclass(eq=False)
class GlobalMaxPooling3d(GlobalMaxPooling):
    """The maximum of each channel of a volume.

    >>> pb.layers.global_max_pooling3d()(np.arange(16.0).reshape(1, 2, 2, 2, 2))
    array([[14., 15.]])
    """

    rank = 4


@dataclass(eq=False)
class GlobalAveragePooling1d(GlobalAveragePooling):
    """The mean of each channel of a sequence.  Masked steps do not count.

    >>> pb.layers.global_average_pooling1d()(np.array([[[1.0, 4.0], [3.0, 2.0]]]))
    array([[2., 3.]])
    """

    rank = 2

    def call(self, x: Value, mask: Mask = None) -> Any:
        if mask is None:
            return super().call(x)
        steps = 2 if self._first else 1
        counted = np.expand_dims(mask, 3 - steps).astype(x.dtype)
        total = reductions.sum(x * counted, axis=steps, keepdims=self.keepdims)
        return total / reductions.sum(counted, axis=steps, keepdims=self.keepdims)


@dataclass(eq=False)
class GlobalAveragePooling2d(GlobalAveragePooling):
    """The mean of each channel of an image.

    >>> pb.layers.global_average_pooling2d()(np.arange(8.0).reshape(1, 2, 2, 2))
    array([[3., 4.]])
    """


@dataclass(eq=False)
class GlobalAveragePooling3d(GlobalAveragePooling):
    """The mean of each channel of a volume.

    >>> pb.layers.global_average_pooling3d()(np.arange(16.0).reshape(1, 2, 2, 2, 2))
    array([[7., 8.]])
    """

    rank = 4


# ---- a given number of parts


@dataclass(eq=False)
class AdaptivePooling(SpatialLayer):
    """The base of pooling to a given size: each axis is divided into parts of nearly equal length."""

    output_size: Lengths

    reduce: ClassVar[Callable[..., Any]]  # of x, axis and keepdims

    def __post_init__(self) -> None:
        super().__post_init__()
        self._out = as_lengths(self, "output_size", self.axes)

    def call(self, x: Value) -> Any:
        for i, parts in enumerate(self._out):
            axis = i + (2 if self._first else 1)
            n = x.shape[axis]
            at = [slice(k * n // parts, -(-(k + 1) * n // parts)) for k in range(parts)]
            front = (slice(None),) * axis
            reduced = [type(self).reduce(x[(*front, part)], axis=axis, keepdims=True) for part in at]
            x = joining.concat(reduced, axis)
        return x


class AdaptiveMaxPooling(AdaptivePooling):
    """The base of adaptive maximum pooling."""

    reduce = staticmethod(reductions.max)


class AdaptiveAveragePooling(AdaptivePooling):
    """The base of adaptive average pooling."""

    reduce = staticmethod(reductions.mean)


@dataclass(eq=False)
class AdaptiveMaxPooling1d(AdaptiveMaxPooling):
    """The maximum of each part of a sequence that is divided into ``output_size`` parts along the steps.

    >>> pb.layers.adaptive_max_pooling1d(3)(np.ones((1, 5, 2))).shape
    (1, 3, 2)
    """

    rank = 2


@dataclass(eq=False)
class AdaptiveMaxPooling2d(AdaptiveMaxPooling):
    """The maximum of each part of an image that is divided into ``output_size`` parts along each axis.

    >>> pb.layers.adaptive_max_pooling2d(3)(np.ones((1, 5, 5, 2))).shape
    (1, 3, 3, 2)
    """


@dataclass(eq=False)
class AdaptiveMaxPooling3d(AdaptiveMaxPooling):
    """The maximum of each part of a volume that is divided into ``output_size`` parts along each axis.

    >>> pb.layers.adaptive_max_pooling3d(3)(np.ones((1, 5, 5, 5, 2))).shape
    (1, 3, 3, 3, 2)
    """

    rank = 4


@dataclass(eq=False)
class AdaptiveAveragePooling1d(AdaptiveAveragePooling):
    """The mean of each part of a sequence that is divided into ``output_size`` parts along the steps.

    >>> pb.layers.adaptive_average_pooling1d(3)(np.ones((1, 5, 2))).shape
    (1, 3, 2)
    """

    rank = 2


@dataclass(eq=False)
class AdaptiveAveragePooling2d(AdaptiveAveragePooling):
    """The mean of each part of an image that is divided into ``output_size`` parts along each axis.

    >>> pb.layers.adaptive_average_pooling2d(3)(np.ones((1, 5, 5, 2))).shape
    (1, 3, 3, 2)
    """


@dataclass(eq=False)
class AdaptiveAveragePooling3d(AdaptiveAveragePooling):
    """The mean of each part of a volume that is divided into ``output_size`` parts along each axis.

    >>> pb.layers.adaptive_average_pooling3d(3)(np.ones((1, 5, 5, 5, 2))).shape
    (1, 3, 3, 3, 2)
    """

    rank = 4
