"""Conversions between grayscale, RGB and binary images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import no_derivative
from pullback.core.composition import check_numbers
from pullback.core.convert import as_number, check_real
from pullback.core.op import observable, op
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.batching import batch_one_by_one

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, TensorLike, Value

__all__ = ["grayscale_to_rgb", "rgb_to_grayscale", "threshold"]

LUMA = np.array([0.2989, 0.5870, 0.1140])  # how bright red, green and blue are


def _check_image(name: str, image: TensorLike, depth: int) -> Value:
    image = check_numbers(name, "image", image)
    if image.ndim < 2 or image.shape[-1] != depth:
        raise ShapeError(
            f"{name}: image must have rank 2 or more and a last axis of length {depth}, got {image.shape}."
        )
    return image


@observable
def grayscale_to_rgb(image: TensorLike) -> Any:
    """Return grayscale images as RGB images with three equal channels.

    image: images with channels along the last axis.

    >>> pb.image.grayscale_to_rgb(np.array([[1.0], [2.0]]))
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    image = _check_image("grayscale_to_rgb", image, 1)
    return np.tile(image, (1,) * (image.ndim - 1) + (3,))


@observable
def rgb_to_grayscale(image: TensorLike) -> Any:
    """Return RGB images as grayscale images; integers stay integers.

    image: images with channels along the last axis.

    >>> pb.image.rgb_to_grayscale(np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]))
    array([[0.9999],
           [0.2989]])
    """
    image = _check_image("rgb_to_grayscale", image, 3)
    if image.dtype.kind == "f":
        return image @ LUMA.astype(image.dtype)[:, None]
    return (image.astype(np.float32) @ LUMA.astype(np.float32)[:, None]).astype(image.dtype)


def _find_otsu_threshold(grey: Array) -> float:
    """Return Otsu's threshold, which separates the two classes most; -1 if all pixels are of one grey."""
    levels = np.rint(grey).astype(np.intp).reshape(-1)
    if levels.size and levels.min() < 0:
        raise ArgumentError(f"threshold: with method 'otsu' image must be from 0 to 255, got {levels.min()}.")
    counts = np.bincount(levels[levels < 256], minlength=256).astype(float)
    moments = counts * np.arange(256)
    first, second = np.cumsum(counts)[:-1], np.cumsum(counts[::-1])[::-1][1:]
    both = (first > 0) & (second > 0)
    means = np.cumsum(moments)[:-1] / np.maximum(first, 1), np.cumsum(moments[::-1])[::-1][1:] / np.maximum(second, 1)
    between = np.where(both, first * second * (means[0] - means[1]) ** 2, 0)
    return float(np.argmax(between)) if between.max() > 0 else -1.0


def _threshold(image: Array, method: Any = "binary", inverted: bool = False, thresh_value: Any = 0.5) -> Any:
    _infer_threshold_shape(image.shape, method, inverted, thresh_value)
    check_real("threshold", image, "image")
    grey = image if image.dtype.kind == "f" else image.astype(np.float32)
    if image.shape[2] == 3:
        red, green, blue = LUMA.astype(grey.dtype)
        grey = grey[..., :1] * red + grey[..., 1:2] * green + grey[..., 2:] * blue
    limit = _find_otsu_threshold(grey) if method == "otsu" else (0.5 if thresh_value is None else thresh_value) * 255
    return np.where(grey <= limit if inverted else grey > limit, 255, 0).astype(np.int32)


def _infer_threshold_shape(s: tuple[int, ...], method: str, inverted: bool, thresh_value: Any) -> tuple[int, ...]:
    if len(s) != 3 or s[2] not in (1, 3):
        raise ShapeError(f"threshold: image must have shape (height, width, 1) or (height, width, 3), got {s}.")
    if method not in ("binary", "otsu", None):
        raise ArgumentError(f"threshold: method must be 'binary' or 'otsu', got {method!r}.")
    as_number("threshold", "thresh_value", 0.5 if thresh_value is None else thresh_value, 0, 1)
    return (*s[:2], 1)


def _batch_pictures(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    """Batch by one picture of all rows, unless each picture has a threshold of its own."""
    if params["method"] == "otsu":
        return batch_one_by_one(op, args, on, params)
    (x,) = args
    n, height = x.shape[:2]
    z = op.call([np.reshape(x, (n * height, *x.shape[2:]))], params)
    return np.reshape(z, (n, height, *z.shape[1:]))


@op(
    _threshold,
    acts=moves(
        _infer_threshold_shape,
        [
            (((2, 3, 1),), {"thresh_value": 0.3}), (((2, 3, 3),), {"method": "otsu"}),
            (((2, 3, 3),), {"inverted": True}), (((0, 2, 1),), {"method": "otsu", "inverted": True}),
        ],
        _batch_pictures,
    ),
    d=no_derivative(),
    domain=(0.0, 255.0),
)  # fmt: skip
def threshold(
    image: TensorLike, /, method: str = "binary", inverted: bool = False, thresh_value: float = 0.5
) -> Any:  # fmt: skip
    """Return 255 where an image (values 0 to 255) is brighter than the threshold, and 0 elsewhere, or the inverse.

    The threshold is ``255 * thresh_value``, or with the method ``"otsu"`` the one that separates two classes best.

    image: images with channels along the last axis.
    method: ``"binary"``, or ``"otsu"``, which finds the threshold itself.
    inverted: whether pixels below the threshold are white.
    thresh_value: the threshold from 0 to 1, times 255.

    >>> pb.image.threshold(np.array([10.0, 200.0]).reshape(1, 2, 1)).ravel()
    array([  0, 255], dtype=int32)
    """
