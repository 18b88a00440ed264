"""Layers that prepare images: resizing and cropping, and random changes in training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pullback.core.variable import get_trace
from pullback.errors import ArgumentError, CompileError
from pullback.ops import random
from pullback.ops.image import warping
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import Checks, check_choice, check_counts, check_data_format
from pullback.train.nn.layers.interpolation import INTERPOLATIONS, resize_images
from pullback.train.nn.layers.noise import RandomLayer
from pullback.train.nn.layers.spatial import SpatialLayer
from pullback.typing import Value

__all__ = [
    "CenterCrop", "RandomBrightness", "RandomContrast", "RandomCrop", "RandomFlip", "RandomRotation", "RandomShear",
    "RandomTranslation", "RandomWidth", "RandomZoom", "Resizing",
]  # fmt: skip

Factor = float | Sequence[float]  # one number for both directions, or the lowest and the highest
FILLS = ("constant", "reflect", "wrap", "nearest")


def as_range(layer: Layer, name: str, symmetric: bool = True, ordered: bool = True) -> tuple[float, float]:
    """Return an argument that is one number, or the lowest and the highest, as the latter."""
    value = getattr(layer, name)
    pair = tuple(value) if isinstance(value, list | tuple) else ((-value if symmetric else 0.0), value)
    is_pair = len(pair) == 2 and all(isinstance(n, int | float) and math.isfinite(n) for n in pair)
    if not is_pair or (ordered and pair[0] > pair[1]):
        raise ArgumentError(f"{layer.name}: {name} must be a number, or the lowest and the highest, got {value!r}.")
    return float(pair[0]), float(pair[1])


def check_value_range(layer: Any) -> None:
    """Raise an error unless ``value_range`` is the lowest and the highest value of a pixel."""
    value = layer.value_range
    if not isinstance(value, list | tuple) or len(value) != 2 or not value[0] < value[1]:
        raise ArgumentError(f"{layer.name}: value_range must be the lowest and the highest value, got {value!r}.")


def as_floats(x: Value) -> Any:
    """Return images as floats."""
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def shape_for_images(numbers: Value, x: Value) -> Any:
    """Return a number of each image in the dtype of the images, and in a shape that fits them."""
    return np.reshape(numbers, (-1, 1, 1, 1)).astype(x.dtype)


def _crop_middle(x: Value, height: int, width: int) -> Any:
    top, left = (x.shape[1] - height) // 2, (x.shape[2] - width) // 2
    return x[:, top : top + height, left : left + width]


def _crop_to_ratio(x: Value, height: int, width: int) -> Any:
    """Return the largest middle of images that has the ratio of this height and width."""
    tall, wide = _fit_ratio(x, height, width)
    return _crop_middle(x, max(min(x.shape[1], tall), 1), max(min(x.shape[2], wide), 1))


def _fit_ratio(x: Value, height: int, width: int) -> tuple[int, int]:
    """Return the height that belongs to the width of images, and the width that belongs to their height."""
    return int(x.shape[2] * height / width), int(x.shape[1] * width / height)


# ---- always


@dataclass(eq=False)
class Resizing(SpatialLayer):
    """Resizes images to ``height`` and ``width``.

    - height, width: the new size.
    - interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5".
    - crop_to_aspect_ratio: whether images are cropped first, so that they are not distorted.
    - pad_to_aspect_ratio: whether images are padded first, so that they are not distorted.
    - fill_value: the padding value.

    >>> pb.layers.resizing(4, 6)(np.ones((1, 2, 3, 1))).shape
    (1, 4, 6, 1)
    """

    height: int
    width: int
    interpolation: str = "bilinear"
    crop_to_aspect_ratio: bool = False
    pad_to_aspect_ratio: bool = field(default=False, kw_only=True)
    fill_value: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "height", "width")
        check_choice(self, "interpolation", *INTERPOLATIONS)
        if self.crop_to_aspect_ratio and self.pad_to_aspect_ratio:
            raise ArgumentError(f"{self.name}: give one of crop_to_aspect_ratio and pad_to_aspect_ratio.")

    def call(self, x: Value) -> Any:
        x = as_floats(self.move_channels_last(x))
        if self.crop_to_aspect_ratio:
            x = _crop_to_ratio(x, self.height, self.width)
        elif self.pad_to_aspect_ratio:
            tall, wide = _fit_ratio(x, self.height, self.width)
            down, right = (max(n, 0) // 2 for n in (tall - x.shape[1], wide - x.shape[2]))  # as in Keras, on both sides
            sides = [(0, 0), (down, down), (right, right), (0, 0)]
            x = np.pad(x, sides, constant_values=self.fill_value)
        return self.move_channels_back(resize_images(x, self.height, self.width, self.interpolation))


@dataclass(eq=False)
class CenterCrop(SpatialLayer):
    """Cuts the middle out of images; smaller ones are resized first.

    - height, width: the size of what is cut out.

    >>> pb.layers.center_crop(1, 2)(np.arange(12.0).reshape(1, 3, 4, 1)).ravel()
    array([5., 6.])
    """

    height: int
    width: int
    argument_checks = ((check_counts, "height", "width"),)

    def call(self, x: Value) -> Any:
        x = self.move_channels_last(x)
        if x.shape[1] < self.height or x.shape[2] < self.width:
            x = _crop_to_ratio(x, self.height, self.width)
            return self.move_channels_back(resize_images(x, self.height, self.width, "bilinear"))
        return self.move_channels_back(_crop_middle(x, self.height, self.width))


# ---- at random, in training


@dataclass(eq=False)
class RandomImageLayer(RandomLayer):
    """The base of layers that change images in training only, each in its own way."""

    data_format: str | None = field(default=None, kw_only=True)

    rank = 3
    argument_checks: ClassVar[Checks] = ((check_data_format,),)

    def call(self, x: Value, training: bool = False) -> Any:
        if not training or not x.shape[0]:
            return self.keep(x)
        y: Any = x
        first = self.data_format == "channels_first"
        y = self.change(np.moveaxis(y, 1, -1) if first else y)
        return np.moveaxis(y, -1, 1) if first else y

    def keep(self, x: Value) -> Any:
        """Return what images become outside training."""
        return x

    def change(self, x: Value) -> Any:
        """Return changed images, with the channels last."""
        raise NotImplementedError(f"{type(self).__name__} has no change(x).")

    def draw(self, x: Value, low: float, high: float) -> Any:
        """Return a number between two for each image."""
        return random.uniform([x.shape[0]], low, high, np.float32, self._generator)


@dataclass(eq=False)
class WarpLayer(RandomImageLayer):
    """The base of layers that move the pixels of images."""

    fill_mode: str = field(default="reflect", kw_only=True)
    interpolation: str = field(default="bilinear", kw_only=True)
    fill_value: float = field(default=0.0, kw_only=True)
    argument_checks = ((check_choice, "fill_mode", *FILLS), (check_choice, "interpolation", "bilinear", "nearest"))

    def warp(self, x: Value, a: Sequence[Any], b: Sequence[Any]) -> Any:
        """Return images whose pixel (column, row) is read at ``a[0] column + a[1] row + a[2]`` and the same with b."""
        zero = np.zeros(x.shape[0], np.float32)
        rows = np.stack([n + zero for n in (*a, *b, 0.0, 0.0)], axis=1)
        return warping.transform(x, rows, self.interpolation, self.fill_mode, self.fill_value).astype(x.dtype)


@dataclass(eq=False)
class RandomFlip(RandomImageLayer):
    """In training, mirrors half of the images.

    - mode: "horizontal", "vertical" or "horizontal_and_vertical".

    >>> pb.layers.random_flip()(np.ones((2, 3, 3, 1))).shape
    (2, 3, 3, 1)
    """

    mode: str = "horizontal_and_vertical"
    argument_checks = ((check_choice, "mode", "horizontal", "vertical", "horizontal_and_vertical"),)

    def change(self, x: Value) -> Any:
        for name, axis in (("horizontal", 2), ("vertical", 1)):
            if name in self.mode:
                flips = np.reshape(self.draw(x, 0.0, 1.0) < 0.5, (-1, 1, 1, 1))
                x = np.where(flips, np.flip(x, axis), x)
        return x


@dataclass(eq=False)
class RandomRotation(WarpLayer):
    """In training, rotates images about their centers by random angles.

    - factor: the largest angle as a share of a full turn, in both directions, or the lowest and the highest.

    >>> pb.layers.random_rotation(0.1, seed=1)(np.ones((2, 3, 3, 1)), training=True).shape
    (2, 3, 3, 1)
    """

    factor: Factor

    def __post_init__(self) -> None:
        super().__post_init__()
        self._range = as_range(self, "factor")

    def change(self, x: Value) -> Any:
        angle = self.draw(x, *self._range) * (2 * math.pi)
        height, width = x.shape[1] - 1, x.shape[2] - 1
        cos, sin = np.cos(angle), np.sin(angle)
        right = (width - (cos * width - sin * height)) / 2.0
        down = (height - (sin * width + cos * height)) / 2.0
        return self.warp(x, (cos, -sin, right), (sin, cos, down))


@dataclass(eq=False)
class RandomTranslation(WarpLayer):
    """In training, shifts images by random distances.

    - height_factor: the largest shift as a share of the height, up and down, or the lowest and the highest.
    - width_factor: the same of the width.

    >>> pb.layers.random_translation(0.2, 0.2, seed=1)(np.ones((2, 3, 3, 1)), training=True).shape
    (2, 3, 3, 1)
    """

    height_factor: Factor
    width_factor: Factor

    def __post_init__(self) -> None:
        super().__post_init__()
        self._down, self._right = as_range(self, "height_factor"), as_range(self, "width_factor")

    def change(self, x: Value) -> Any:
        down, right = self.draw(x, *self._down) * x.shape[1], self.draw(x, *self._right) * x.shape[2]
        return self.warp(x, (1.0, 0.0, -right), (0.0, 1.0, -down))


@dataclass(eq=False)
class RandomShear(WarpLayer):
    """In training, slants images by random angles.

    - x_factor: the largest shift of a row for each row above it, in both directions, or the lowest and the highest.
    - y_factor: the same of columns.

    >>> pb.layers.random_shear(0.2, 0.2, seed=1)(np.ones((2, 3, 3, 1)), training=True).shape
    (2, 3, 3, 1)
    """

    x_factor: Factor = 0.0
    y_factor: Factor = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ranges = as_range(self, "x_factor"), as_range(self, "y_factor")

    def change(self, x: Value) -> Any:
        sign = np.where(self.draw(x, 0.0, 1.0) > 0.5, -1.0, 1.0)
        right, down = (sign * self.draw(x, *one) for one in self._ranges)
        return self.warp(x, (1.0, right, 0.0), (down, 1.0, 0.0))


@dataclass(eq=False)
class RandomZoom(WarpLayer):
    """In training, zooms images by random factors.

    - height_factor: how much larger the part of the image is that is seen: 0.2 for up to a fifth, negative to zoom in.
    - width_factor: the same of the width; by default the same draw, so that images are not distorted.

    >>> pb.layers.random_zoom(0.2, seed=1)(np.ones((2, 3, 3, 1)), training=True).shape
    (2, 3, 3, 1)
    """

    height_factor: Factor
    width_factor: Factor | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._down = as_range(self, "height_factor")
        self._right = None if self.width_factor is None else as_range(self, "width_factor")

    def change(self, x: Value) -> Any:
        down = self.draw(x, *self._down) + 1.0
        right = down if self._right is None else self.draw(x, *self._right) + 1.0
        height, width = x.shape[1] - 1, x.shape[2] - 1
        return self.warp(x, (right, 0.0, width * (1.0 - right) / 2.0), (0.0, down, height * (1.0 - down) / 2.0))


@dataclass(eq=False)
class RandomCrop(RandomImageLayer):
    """In training, cuts a random part out of each image; otherwise the middle.

    - height, width: the size of what is cut out.

    >>> pb.layers.random_crop(2, 2, seed=1)(np.ones((3, 4, 5, 1)), training=True).shape
    (3, 2, 2, 1)
    """

    height: int
    width: int
    argument_checks = ((check_counts, "height", "width"),)

    def keep(self, x: Value) -> Any:
        middle = CenterCrop(self.height, self.width, name=f"{self.name}_center", data_format=self.data_format)
        return middle(x)

    def change(self, x: Value) -> Any:
        batch, height, width, channels = x.shape
        if height < self.height or width < self.width:
            x = resize_images(x, max(height, self.height), max(width, self.width), "bilinear")
            batch, height, width, channels = x.shape
        top = np.floor(self.draw(x, 0.0, 1.0) * (height - self.height + 1)).astype(np.int32)
        left = np.floor(self.draw(x, 0.0, 1.0) * (width - self.width + 1)).astype(np.int32)
        rows = np.reshape(top, (-1, 1)) + np.arange(self.height, dtype=np.int32)
        columns = np.reshape(left, (-1, 1)) + np.arange(self.width, dtype=np.int32)
        each = np.reshape(np.arange(batch, dtype=np.int32), (-1, 1, 1)) * (height * width)
        places = each + np.expand_dims(rows, 2) * width + np.expand_dims(columns, 1)
        return np.take(np.reshape(x, (batch * height * width, channels)), places, axis=0)


@dataclass(eq=False)
class RandomBrightness(RandomImageLayer):
    """In training, makes images lighter or darker: adds a random number to each.

    - factor: the largest share of ``value_range`` that is added, in both directions, or the lowest and the highest.

    >>> pb.layers.random_brightness(0.2, value_range=[0, 1], seed=1)(np.ones((2, 3, 3, 1)), training=True).shape
    (2, 3, 3, 1)
    """

    factor: Factor
    value_range: Sequence[float] = (0, 255)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._range = as_range(self, "factor")
        check_value_range(self)

    def change(self, x: Value) -> Any:
        low, high = self.value_range
        return np.clip(x + shape_for_images(self.draw(x, *self._range) * (high - low), x), low, high)


@dataclass(eq=False)
class RandomContrast(RandomImageLayer):
    """In training, raises or lowers the contrast: multiplies what differs from the mean of a channel.

    - factor: by how much the factor differs from 1, in both directions, or how much below and above it may be.

    >>> pb.layers.random_contrast(0.2, value_range=[0, 1], seed=1)(np.ones((2, 3, 3, 1)), training=True).shape
    (2, 3, 3, 1)
    """

    factor: Factor
    value_range: Sequence[float] = (0, 255)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = as_range(self, "factor", ordered=False)
        self._range = (-low, high) if isinstance(self.factor, list | tuple) else (low, high)
        check_value_range(self)

    def change(self, x: Value) -> Any:
        factor = shape_for_images(self.draw(x, *self._range) + 1.0, x)
        mean = np.mean(x, axis=(1, 2), keepdims=True)
        low, high = self.value_range
        return np.clip((x - mean) * factor + mean, low, high)


@dataclass(eq=False)
class RandomWidth(RandomImageLayer):
    """In training, resizes a batch to a random width; it cannot be compiled, as compiled programs have fixed shapes.

    - factor: the largest share by which the width changes, in both directions, or the lowest and the highest.
    - auto_vectorize: accepted, and has no effect.

    >>> pb.layers.random_width([0.5, 0.5])(np.ones((1, 2, 4, 1)), training=True).shape
    (1, 2, 6, 1)
    """

    factor: Factor
    interpolation: str = "bilinear"
    auto_vectorize: bool = False  # accepted, as TensorFlow.js has it

    def __post_init__(self) -> None:
        super().__post_init__()
        self._range = as_range(self, "factor")
        check_choice(self, "interpolation", "bilinear", "nearest")

    def change(self, x: Value) -> Any:
        if get_trace() is not None:
            raise CompileError(f"layer '{self.name}': a random width cannot be compiled. Train with eager=True.")
        share = float(np.asarray(self.draw(x[:1], *self._range))[0])
        return resize_images(x, x.shape[1], max(int(x.shape[2] * (1.0 + share)), 1), self.interpolation)
