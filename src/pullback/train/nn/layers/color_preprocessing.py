"""Layers that change the colors of images, mostly at random and in training only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.ops.convolution import depthwise_conv2d
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_data_format
from pullback.train.nn.layers.image_preprocessing import (
    Factor,
    RandomImageLayer,
    as_floats,
    as_range,
    check_value_range,
    shape_for_images,
)
from pullback.typing import Value

__all__ = [
    "AutoContrast", "RandomColorDegeneration", "RandomErasing", "RandomGrayscale", "RandomHue", "RandomInvert",
    "RandomPosterization", "RandomSaturation", "RandomSharpness", "Solarization",
]  # fmt: skip

GRAY = (0.2989, 0.5870, 0.1140)  # how bright red, green and blue are


def _as_share(layer: Layer, name: str) -> tuple[float, float]:
    """Return an argument that is the highest of numbers from 0 to 1, or the lowest and the highest, as the latter."""
    low, high = as_range(layer, name, symmetric=False)
    if low < 0 or high > 1:
        raise ArgumentError(f"{layer.name}: {name} must be from 0 to 1, got {getattr(layer, name)!r}.")
    return low, high


def _draw_chances(layer: RandomImageLayer, x: Value, low: float, high: float) -> Any:
    """Return for each image whether it is changed: with a probability that is drawn between two."""
    return np.reshape(layer.draw(x, 0.0, 1.0) < layer.draw(x, low, high), (-1, 1, 1, 1))


def _check_colors(layer: Layer, x: Value) -> None:
    if x.shape[-1] != 3:
        raise ShapeError(f"{layer.name}: expected images of 3 colors, got {x.shape[-1]} channels.")


def _compute_gray(layer: Layer, x: Value) -> Any:
    """Return the brightness of images of three colors, with a last axis of length 1."""
    _check_colors(layer, x)
    return np.sum(x * np.array(GRAY, x.dtype), axis=-1, keepdims=True)


def _to_hsv(layer: Layer, x: Value) -> tuple[Any, Any, Any]:
    """Return hue and saturation, from 0 to 1, and the value of the strongest color."""
    _check_colors(layer, x)
    colors: list[Any] = [x[..., 0], x[..., 1], x[..., 2]]
    r, g, b = colors
    most, least = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
    width = most - least
    safe = np.where(width == 0, 1.0, width)
    not_red = np.where(most == g, (b - r) / safe + 2.0, (r - g) / safe + 4.0)
    sector = np.where(most == r, (g - b) / safe, not_red)
    hue = np.where(width == 0, 0.0, sector / 6.0)
    return hue - np.floor(hue), np.where(most > 0, width / np.where(most > 0, most, 1.0), 0.0), most


def _from_hsv(hue: Value, saturation: Value, value: Value) -> Any:
    """Return images of three colors."""
    channels = []
    for start in (5.0, 3.0, 1.0):
        sector: Any = 6.0 * hue
        k = start + sector
        k = k - 6.0 * np.floor(k / 6.0)
        share: Any = np.clip(np.minimum(k, 4.0 - k), 0.0, 1.0)
        lost: Any = value * saturation * share
        channels.append(value - lost)
    return np.stack(channels, axis=-1)


@dataclass(eq=False)
class AutoContrast(Layer):
    """Stretches each channel of each image to the whole range of values, outside training too.

    >>> pb.layers.auto_contrast(value_range=[0, 1])(np.array([0.2, 0.4, 0.6]).reshape(1, 1, 3, 1)).ravel().round(3)
    array([0. , 0.5, 1. ])
    """

    value_range: Sequence[float] = (0, 255)
    data_format: str | None = field(default=None, kw_only=True)

    rank = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_data_format(self)
        check_value_range(self)

    def call(self, x: Value) -> Any:
        x, axes = as_floats(x), (2, 3) if self.data_format == "channels_first" else (1, 2)
        least, most = np.min(x, axis=axes, keepdims=True), np.max(x, axis=axes, keepdims=True)
        low, high = self.value_range
        width = most - least
        return np.where(
            width == 0, x, np.clip((x - least) / np.where(width == 0, 1.0, width), 0, 1) * (high - low) + low
        )


@dataclass(eq=False)
class ColorLayer(RandomImageLayer):
    """The base of layers that change colors by a factor from 0 to 1."""

    factor: Factor
    value_range: Sequence[float] = (0, 255)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._range = _as_share(self, "factor")
        check_value_range(self)


@dataclass(eq=False)
class RandomGrayscale(RandomImageLayer):
    """In training, makes some images gray.

    - factor: with which probability.

    >>> pb.layers.random_grayscale(1.0)(np.array([100.0, 0.0, 0.0]).reshape(1, 1, 1, 3), training=True).numpy().ravel()
    array([29.89, 29.89, 29.89])
    """

    factor: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        _as_share(self, "factor")

    def change(self, x: Value) -> Any:
        x = as_floats(x)
        return np.where(_draw_chances(self, x, self.factor, self.factor), _compute_gray(self, x), x)


@dataclass(eq=False)
class RandomColorDegeneration(ColorLayer):
    """In training, reduces the saturation: mixes images with their grayscale versions.

    - factor: the largest share of gray, or the lowest and the highest.

    >>> layer = pb.layers.random_color_degeneration([0.5, 0.5])
    >>> layer(np.array([100.0, 0.0, 0.0]).reshape(1, 1, 1, 3), training=True).numpy().ravel()
    array([64.945, 14.945, 14.945])
    """

    def change(self, x: Value) -> Any:
        x, (low, high) = as_floats(x), self.value_range
        return np.clip(x + shape_for_images(self.draw(x, *self._range), x) * (_compute_gray(self, x) - x), low, high)


@dataclass(eq=False)
class RandomInvert(ColorLayer):
    """In training, inverts some images: subtracts them from the highest value.

    - factor: the largest probability, or the lowest and the highest.

    >>> pb.layers.random_invert([1, 1])(np.array([[[[100.0, 0.0, 5.0]]]]), training=True).numpy().ravel()
    array([155., 255., 250.])
    """

    factor: Factor = 1.0

    def change(self, x: Value) -> Any:
        x = as_floats(x)
        is_chosen = _draw_chances(self, x, *self._range)
        inverted: Any = self.value_range[1] - x
        return np.where(is_chosen, inverted, x)


@dataclass(eq=False)
class RandomPosterization(RandomImageLayer):
    """In training, reduces the number of bits of each color channel.

    - factor: how many bits at most, from 1 to 8, or the fewest and one more than the most.

    >>> pb.layers.random_posterization([2, 2])(np.array([[[[100.0], [63.0], [255.0]]]]), training=True).numpy().ravel()
    array([ 64.,   0., 192.])
    """

    factor: Factor
    value_range: Sequence[float] = (0, 255)

    def __post_init__(self) -> None:
        super().__post_init__()
        factor = self.factor
        low, high = as_range(self, "factor", symmetric=False)
        low = low if isinstance(factor, list | tuple) else 1
        if low < 1 or high > 8 or low != int(low) or high != int(high):
            raise ArgumentError(f"{self.name}: factor must be whole numbers from 1 to 8, got {factor!r}.")
        self._bits = int(low), max(int(high), int(low) + 1)
        check_value_range(self)

    def change(self, x: Value) -> Any:
        x, (low, high) = as_floats(x), self.value_range
        bits = np.floor(self.draw(x, *self._bits))
        step = shape_for_images(2.0 ** (8.0 - bits), x)
        levels = np.floor((x - low) * (255.0 / (high - low)))
        return np.floor(levels / step) * step * ((high - low) / 255.0) + low


@dataclass(eq=False)
class RandomSaturation(ColorLayer):
    """In training, changes the saturation: 0.5 leaves it, 0 makes images gray, 1 fully saturated.

    - factor: the largest, or the lowest and the highest.

    >>> layer = pb.layers.random_saturation([0.0, 0.0])
    >>> layer(np.array([100.0, 20.0, 0.0]).reshape(1, 1, 1, 3), training=True).numpy().ravel()
    array([100., 100., 100.])
    """

    def change(self, x: Value) -> Any:
        x = as_floats(x)
        factor = self.draw(x, *self._range)
        hue, saturation, value = _to_hsv(self, x)
        factor = np.reshape(factor / (1.0 - factor + 1e-7), (-1, 1, 1)).astype(x.dtype)
        return _from_hsv(hue, np.clip(saturation * factor, 0.0, 1.0), value)


@dataclass(eq=False)
class RandomHue(ColorLayer):
    """In training, shifts the hue of all pixels of an image.

    - factor: the largest share of half the circle of colors, in either direction, or the lowest and the highest.

    >>> layer = pb.layers.random_hue([1.0, 1.0])
    >>> layer(np.array([100.0, 0.0, 0.0]).reshape(1, 1, 1, 3), training=True).numpy().ravel().round(3)
    array([  0., 100., 100.])
    """

    def change(self, x: Value) -> Any:
        x, (low, high) = as_floats(x), self.value_range
        turn = np.where(self.draw(x, 0.0, 1.0) > 0.5, -0.5, 0.5) * self.draw(x, *self._range)
        hue, saturation, value = _to_hsv(self, (x - low) / (high - low))
        hue = hue + np.reshape(turn, (-1, 1, 1)).astype(x.dtype)
        return np.clip(_from_hsv(hue - np.floor(hue), saturation, value), 0.0, 1.0) * (high - low) + low


@dataclass(eq=False)
class RandomSharpness(ColorLayer):
    """In training, makes images sharper or softer: 0.5 leaves them, 0 mixes each pixel with its neighbours.

    - factor: the largest, or the lowest and the highest.

    >>> layer = pb.layers.random_sharpness([0.0, 0.0])
    >>> float(layer(np.eye(3).reshape(1, 3, 3, 1) * 13, training=True)[0, 1, 1, 0].round(3))
    7.0
    """

    def change(self, x: Value) -> Any:
        x, (low, high) = as_floats(x), self.value_range
        factor = shape_for_images(self.draw(x, *self._range) * 2.0, x)
        kernel = np.full((3, 3, x.shape[-1], 1), 1.0 / 13.0, x.dtype)
        kernel[1, 1] = 5.0 / 13.0
        smooth = depthwise_conv2d(x, kernel, 1, "same")
        return np.clip(x + (1.0 - factor) * (smooth - x), low, high)


@dataclass(eq=False)
class Solarization(RandomImageLayer):
    """In training, adds a number to images and inverts the pixels above a threshold.

    - addition_factor: the largest share of 255 that is added, or the lowest and the highest.
    - threshold_factor: the largest share of 255 that the threshold is, or the lowest and the highest.

    >>> pb.layers.solarization()(np.array([100.0, 0.0, 255.0]).reshape(1, 1, 3, 1), training=True).numpy().ravel()
    array([155., 255.,   0.])
    """

    addition_factor: Factor = 0.0
    threshold_factor: Factor = 0.0
    value_range: Sequence[float] = (0, 255)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._addition, self._threshold = _as_share(self, "addition_factor"), _as_share(self, "threshold_factor")
        check_value_range(self)

    def change(self, x: Value) -> Any:
        x, (low, high) = as_floats(x), self.value_range
        added, limit = (shape_for_images(self.draw(x, *pair), x) for pair in (self._addition, self._threshold))
        y = np.clip((x - low) / (high - low) + added, 0.0, 1.0)
        return np.where(y < limit, y, 1.0 - y) * (high - low) + low


@dataclass(eq=False)
class RandomErasing(RandomImageLayer):
    """In training, fills a random rectangle of some images.

    - factor: the largest probability, or the lowest and the highest.
    - scale: the smallest and the largest share of the image that the rectangle has.
    - fill_value: the value of its pixels; None draws noise.
    - value_range: the lowest and the highest value of a pixel, of noise too.

    >>> layer = pb.layers.random_erasing([1.0, 1.0], scale=[0.25, 0.25], fill_value=0.0, seed=1)
    >>> bool((layer(np.ones((1, 8, 8, 1)), training=True) == 0).any())
    True
    """

    factor: Factor = 1.0
    scale: Sequence[float] = (0.02, 0.33)
    fill_value: float | None = None
    value_range: Sequence[float] = (0, 255)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._range, self._scale = _as_share(self, "factor"), _as_share(self, "scale")
        check_value_range(self)

    def change(self, x: Value) -> Any:
        x = as_floats(x)
        is_inside: Any = _draw_chances(self, x, *self._range)
        for axis in (1, 2):
            length = x.shape[axis]
            half = np.reshape(np.sqrt(self.draw(x, *self._scale)) * length / 2.0, (-1, 1))
            middle = np.reshape(self.draw(x, 0.0, float(length)), (-1, 1))
            inside = np.abs(np.arange(length, dtype=np.float32) + 0.5 - middle) <= half
            is_inside = np.logical_and(
                is_inside, np.reshape(inside, (-1, length, 1, 1) if axis == 1 else (-1, 1, length, 1))
            )
        low, high = self.value_range
        fill: Any = self.fill_value
        if fill is None:
            fill = np.reshape(self.draw(np.reshape(x, (-1, 1)), low, high), x.shape).astype(x.dtype)
        return np.where(is_inside, fill, x)
