"""Resizing of images by every interpolation that layers take."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.ops.image import resizing
from pullback.typing import Array, Value

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


def resize_images(x: Value, height: int, width: int, interpolation: str) -> Any:
    """Return images, with the channels last, of another size; pixels have their centers at halves.

    "bicubic" is PyTorch's, with the border repeated; "lanczos3" and "lanczos5" are JAX's, with weights that sum to 1.
    """
    if interpolation == "nearest":
        return resizing.resize_nearest_neighbor(x, [height, width], half_pixel_centers=True)
    if interpolation == "bilinear":
        return resizing.resize_bilinear(x, [height, width], half_pixel_centers=True)
    make = _make_cubic if interpolation == "bicubic" else _make_lanczos3 if interpolation[-1] == "3" else _make_lanczos5
    batch, tall, wide, channels = x.shape
    rows, columns = (make(new, old).astype(x.dtype) for new, old in ((height, tall), (width, wide)))
    y = np.reshape(rows @ np.reshape(x, (batch, tall, wide * channels)), (batch * height, wide, channels))
    return np.reshape(columns @ y, (batch, height, width, channels))


def _find_places(new: int, old: int) -> Array:
    """Return the places of new pixels among the old ones."""
    return (np.arange(new) + 0.5) * (old / new) - 0.5


@lru_cache(64)
def _make_cubic(new: int, old: int) -> Array:
    """Return the matrix of the weights of old pixels in new ones: cubic convolution with a slope of -0.75."""
    at, a, matrix = _find_places(new, old), -0.75, np.zeros((new, old))
    for step in range(-1, 3):
        pixel = np.floor(at) + step
        d = np.abs(at - pixel)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        np.add.at(matrix, (np.arange(new), np.clip(pixel, 0, old - 1).astype(int)), np.where(d <= 1, near, far))
    return matrix


def _make_lanczos(radius: int) -> Callable[[int, int], Array]:
    @lru_cache(64)
    def make(new: int, old: int) -> Array:
        d = _find_places(new, old)[:, None] - np.arange(old)
        weights = np.where(np.abs(d) < radius, np.sinc(d) * np.sinc(d / radius), 0.0)
        matrix: Array = weights / weights.sum(axis=1, keepdims=True)
        return matrix

    return make


_make_lanczos3, _make_lanczos5 = _make_lanczos(3), _make_lanczos(5)
