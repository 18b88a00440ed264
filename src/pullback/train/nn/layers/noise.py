"""Layers that draw random numbers in training: dropout and noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pullback.errors import ArgumentError
from pullback.ops import random
from pullback.train.arguments import is_whole_number
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import Checks, check_data_format, check_number, check_shares
from pullback.typing import Shape, Value

__all__ = [
    "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise",
    "SpatialDropout1d", "SpatialDropout2d", "SpatialDropout3d",
]  # fmt: skip

Seed = int | np.random.Generator | None


@dataclass(eq=False)
class RandomLayer(Layer):
    """The base of layers that draw random numbers: with a seed, from a generator of their own that advances."""

    seed: Seed = field(default=None, kw_only=True)
    supports_masking = True

    def __post_init__(self) -> None:
        super().__post_init__()
        seed = self.seed
        if not (seed is None or is_whole_number(seed, 0) or isinstance(seed, np.random.Generator)):
            raise ArgumentError(f"{self.name}: seed must be a whole number of 0 or more, or None, got {seed!r}.")
        self._generator = None if seed is None else np.random.default_rng(seed)


@dataclass(eq=False)
class RateLayer(RandomLayer):
    """The base of layers that drop a fraction of their inputs."""

    rate: float
    argument_checks: ClassVar[Checks] = ((check_shares, "rate"),)


@dataclass(eq=False)
class Dropout(RateLayer):
    """In training, sets a fraction ``rate`` of the inputs to zero and scales the others up; otherwise the identity.

    - rate: the fraction of the inputs that is dropped.
    - noise_shape: 1 along axes that are dropped together; None means the input's own length.

    >>> pb.layers.dropout(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    noise_shape: Sequence[int | None] | None = None

    def call(self, x: Value, training: bool = False) -> Any:
        shape: Any = self.noise_shape
        return random.dropout(x, self.rate, shape, self._generator) if training and self.rate else x


@dataclass(eq=False)
class SpatialDropout(RateLayer):
    """The base of layers that drop whole channels."""

    data_format: str | None = field(default=None, kw_only=True)
    argument_checks = ((check_data_format,),)

    def call(self, x: Value, training: bool = False) -> Any:
        if not (training and self.rate):
            return x
        axis = 1 if self.data_format == "channels_first" else x.ndim - 1
        shape = [n if i in (0, axis) else 1 for i, n in enumerate(x.shape)]
        return random.dropout(x, self.rate, shape, self._generator)


@dataclass(eq=False)
class SpatialDropout1d(SpatialDropout):
    """In training, drops whole channels of sequences (batch, steps, channels).

    - rate: the fraction of the channels that is dropped.

    >>> y = pb.layers.spatial_dropout1d(0.5, seed=1)(np.ones((1, 3, 4)), training=True)
    >>> bool(np.all(y[0] == y[0, 0]))
    True
    """

    rank = 2


@dataclass(eq=False)
class SpatialDropout2d(SpatialDropout):
    """In training, drops whole channels of images (batch, height, width, channels).

    - rate: the fraction of the channels that is dropped.

    >>> pb.layers.spatial_dropout2d(0.5)(np.ones((1, 2, 2, 3))).shape
    (1, 2, 2, 3)
    """

    rank = 3


@dataclass(eq=False)
class SpatialDropout3d(SpatialDropout):
    """In training, drops whole channels of volumes (batch, depth, height, width, channels).

    - rate: the fraction of the channels that is dropped.

    >>> pb.layers.spatial_dropout3d(0.5)(np.ones((1, 2, 2, 2, 3))).shape
    (1, 2, 2, 2, 3)
    """

    rank = 4


@dataclass(eq=False)
class GaussianNoise(RandomLayer):
    """In training, adds normal noise of this standard deviation; otherwise the identity.

    - stddev: the standard deviation.

    >>> pb.layers.gaussian_noise(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    stddev: float
    argument_checks = ((check_number, "stddev", 0),)

    def call(self, x: Value, training: bool = False) -> Any:
        return x + random.normal(x.shape, 0.0, self.stddev, x.dtype, self._generator) if training else x


@dataclass(eq=False)
class GaussianDropout(RateLayer):
    """In training, multiplies by normal numbers with mean 1 and the variance that ``dropout(rate)`` has.

    - rate: the fraction that ``dropout`` would drop.

    >>> pb.layers.gaussian_dropout(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    def call(self, x: Value, training: bool = False) -> Any:
        if not (training and self.rate):
            return x
        return x * random.normal(x.shape, 1.0, math.sqrt(self.rate / (1.0 - self.rate)), x.dtype, self._generator)


@dataclass(eq=False)
class AlphaDropout(RateLayer):
    """In training, drops inputs to ``selu``'s lowest value and keeps mean 0 and variance 1: for networks with ``selu``.

    - rate: the fraction of the inputs that is dropped.
    - noise_shape: 1 along axes that are dropped together; None means the input's own length.

    >>> pb.layers.alpha_dropout(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    noise_shape: Sequence[int | None] | None = None
    lowest = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946  # what selu tends to

    def call(self, x: Value, training: bool = False) -> Any:
        if not (training and self.rate):
            return x
        lengths: Any = self.noise_shape or x.shape
        shape: Shape = tuple(n if k is None else k for k, n in zip(lengths, x.shape, strict=True))
        drawn = random.uniform(shape, 0.0, 1.0, x.dtype, self._generator)
        is_kept = np.broadcast_to(drawn >= self.rate, x.shape)
        scale = ((1.0 - self.rate) * (1.0 + self.rate * self.lowest**2)) ** -0.5
        return np.where(is_kept, x, 0.0 * x + self.lowest) * scale - scale * self.lowest * self.rate
