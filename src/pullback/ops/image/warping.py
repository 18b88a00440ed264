"""Crops, flips, rotations and projective transforms of images, differentiable by image and coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.composition import check_numbers, pick
from pullback.core.convert import as_array, as_number
from pullback.core.op import check_rank, observable
from pullback.core.tensor import Tensor, all_values, may_hold, strip
from pullback.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from pullback.typing import Array, ShapeLike, TensorLike, Value

MOST = float(np.finfo(float).max)

__all__ = ["crop_and_resize", "flip_left_right", "rotate_with_offset", "transform"]


def _check_pictures(name: str, image: TensorLike) -> Value:
    """Return a batch of pictures as floats."""
    image = check_rank(name, check_numbers(name, "image", image), 4, "image")
    return image if image.dtype.kind == "f" else image.astype(np.float32)


def _check_size(name: str, argument: str, size: Any) -> tuple[int, int]:
    """Return a checked height and width."""
    whole = isinstance(size, list | tuple | np.ndarray) and all(
        isinstance(n, int | float | np.number) and n >= 1 and float(n).is_integer() for n in size
    )
    if not whole or len(size) != 2:
        raise ArgumentError(f"{name}: {argument} must be two integers >= 1 [height, width], got {size!r}.")
    return int(size[0]), int(size[1])


def _pick_pixels(image: Value, batch: Value, y: Value, x: Value) -> Any:
    """Return the pixels at integer coordinates, which broadcast."""
    n, height, width, depth = image.shape
    row: Any = batch * height + y
    rows = row * width + x
    return pick(np.reshape(image, (n * height * width, depth)), rows)


def _interpolate(low: Value, high: Value, weight: Value) -> Any:
    """Interpolate linearly; exactly ``low`` for weight 0 and ``high`` for weight 1."""
    part: Any = high * weight
    rest: Any = 1 - weight
    return low * rest + part


def _round_place(at: Value) -> Any:
    return np.floor(at + 0.5)


def _connect(z: Value, at: Value) -> Any:
    """Return ``z`` connected to the coordinates it was read at, with gradient 0."""
    return z + np.astype(np.floor(at) - np.floor(strip(at)), z.dtype) if isinstance(at, Tensor) else z


# ---- cut out


def _place_pixels(first: Value, last: Value, length: int, n: int) -> tuple[Any, Any]:
    """Return the coordinates of ``n`` new pixels between the borders of boxes, and a mask of those inside."""
    share = np.arange(n) / (n - 1) if n > 1 else np.array([0.5])
    at = _interpolate(first, last, share) * (length - 1)
    here = strip(at)
    within = (here >= 0) & (here <= length - 1)
    return np.where(within, at, 0.0), within


def _find_neighbours(at: Value, length: int) -> tuple[Any, Any, Any]:
    """Return the two old pixels around each coordinate, and the weight of the second."""
    low = np.clip(np.floor(strip(at)), 0, max(length - 2, 0)).astype(np.intp)
    return low, np.minimum(low + 1, length - 1), at - low


@observable
def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike,
    crop_size: Sequence[int] | Array,
    method: str | None = "bilinear",
    extrapolation_value: float | None = 0,
) -> Any:
    """Return boxes ``[y1, x1, y2, x2]``, in fractions of the image ``box_ind``, cropped and resized to ``crop_size``.

    Outside the image the value is ``extrapolation_value``.  There are gradients by ``image`` and by ``boxes``; with the
    method ``"nearest"`` that by ``boxes`` is 0.

    image: images with channels along the last axis.
    boxes: rows [y1, x1, y2, x2].
    box_ind: the image of each box.
    crop_size: the height and width of the results.
    method: ``"bilinear"`` or ``"nearest"``.
    extrapolation_value: what stands outside the image.

    >>> image = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
    >>> pb.image.crop_and_resize(image, np.array([[0.0, 0.0, 1.0, 0.5]]), np.array([0]), [2, 2])[0, :, :, 0]
    array([[1. , 1.5],
           [3. , 3.5]])
    """
    name = "crop_and_resize"
    image, boxes = _check_pictures(name, image), check_numbers(name, "boxes", boxes)
    batch, height, width, _ = image.shape
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"{name}: boxes must have shape (number, 4), got {boxes.shape}.")
    which = strip(check_numbers(name, "box_ind", box_ind))
    numbers = all_values(which)
    if which.shape != boxes.shape[:1]:
        raise ShapeError(
            f"{name}: boxes have shape {boxes.shape}, so box_ind must have {boxes.shape[:1]}, got {which.shape}."
        )
    if np.any((numbers < 0) | (numbers >= batch) | (numbers != np.floor(numbers))):
        raise ArgumentError(
            f"{name}: box_ind must be from 0 to {batch - 1}, the pictures in image, got {numbers.tolist()}."
        )
    if not height or not width:
        raise ShapeError(f"{name}: there is nothing to cut out of image, which has shape {image.shape}.")
    rows, columns = _check_size(name, "crop_size", crop_size)
    if method not in ("bilinear", "nearest", None):
        raise ArgumentError(f"{name}: method must be 'bilinear' or 'nearest', got {method!r}.")
    fill = as_number(name, "extrapolation_value", extrapolation_value or 0)
    exact = boxes.astype(np.float64)  # a float32 could step over the border
    y, rows_within = _place_pixels(exact[:, 0:1], exact[:, 2:3], height, rows)
    x, columns_within = _place_pixels(exact[:, 1:2], exact[:, 3:4], width, columns)
    y, x = y[:, :, None], x[:, None, :]
    which = which.astype(np.intp)[:, None, None]
    if method == "nearest":
        ys, xs = (_round_place(strip(at)).astype(np.intp) for at in (y, x))
        z = _connect(_pick_pixels(image, which, ys, xs), (y + x)[..., None])
    else:
        (top, bottom, down), (left, right, across) = _find_neighbours(y, height), _find_neighbours(x, width)
        down, across = (np.astype(weight, image.dtype)[..., None] for weight in (down, across))
        upper, lower = (
            _interpolate(_pick_pixels(image, which, row, left), _pick_pixels(image, which, row, right), across)
            for row in (top, bottom)
        )  # fmt: skip
        z = _interpolate(upper, lower, down)
    within = (rows_within[:, :, None] & columns_within[:, None, :])[..., None]
    return np.where(within, z, image.dtype.type(fill)) if may_hold(~within) else z


# ---- by a projection


def _fold_places(at: Value, length: int, mode: str) -> Any:
    """Map coordinates beyond the border by ``mode``; the slope is kept, 0 for clamped ones."""
    here = strip(at)
    slope: Any = np.ones(here.shape)
    if mode == "constant":
        return at
    folded = here
    if length <= 1:
        folded = np.zeros(here.shape)
    elif mode == "reflect":
        period = 2 * length
        low, high = here < 0, here > length - 1
        folded = np.where(low, here + period * np.trunc(-here / period), here)
        folded = np.where(high, here - period * np.trunc(here / period), folded)
        turned = np.where(low, folded >= -length, high & (folded >= length))
        folded = np.where(
            turned, np.where(low, -folded - 1, period - folded - 1), np.where(low, folded + period, folded)
        )
        slope = np.where(turned, -1.0, 1.0)
    elif mode == "wrap":
        folded = np.where(here < 0, here + length * (np.trunc(-here / (length - 1)) + 1), here)
        folded = np.where(here > length - 1, here - length * np.trunc(here / (length - 1)), folded)
    held = np.clip(folded, 0, length - 1)
    slope = np.where(held == folded, slope if length > 1 else 0.0, 0.0)
    return at * slope + (held - here * slope)


@observable
def transform(
    image: TensorLike,
    transforms: TensorLike,
    interpolation: str | None = "nearest",
    fill_mode: str | None = "constant",
    fill_value: float | None = 0,
    output_shape: ShapeLike | None = None,
) -> Any:
    """Return images under a projective transform.

    The pixel (x, y) of the result is read at ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`` with
    ``k = c0 x + c1 y + 1``.  ``transforms`` has a row ``[a0, a1, a2, b0, b1, b2, c0, c1]`` for each image, or one for
    all.  Outside the image the value is ``fill_value``, or as ``fill_mode`` says.  There are gradients by ``image`` and
    by ``transforms``; with the interpolation ``"nearest"`` the latter is 0.

    image: images with channels along the last axis.
    transforms: eight numbers for each image, or for all.
    interpolation: ``"nearest"`` or ``"bilinear"``.
    fill_mode: what stands outside: ``"constant"``, ``"reflect"``, ``"wrap"`` or ``"nearest"``.
    fill_value: what stands outside the image.
    output_shape: the shape of the result.

    >>> image = np.array([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1)
    >>> pb.image.transform(image, np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]])).ravel()
    array([2., 3., 0.])
    """
    image, transforms = _check_pictures("transform", image), check_numbers("transform", "transforms", transforms)
    batch, height, width, _ = image.shape
    if transforms.ndim != 2 or transforms.shape[1] != 8 or transforms.shape[0] not in (1, batch):
        raise ShapeError(
            f"transform: image has shape {image.shape}, so transforms must have shape (1, 8) or ({batch}, 8), "
            f"got {transforms.shape}."
        )
    interpolation, fill_mode = interpolation or "nearest", fill_mode or "constant"
    if interpolation not in ("nearest", "bilinear"):
        raise ArgumentError(f"transform: interpolation must be 'nearest' or 'bilinear', got {interpolation!r}.")
    if fill_mode not in ("constant", "reflect", "wrap", "nearest"):
        raise ArgumentError(
            f"transform: fill_mode must be 'constant', 'reflect', 'wrap' or 'nearest', got {fill_mode!r}."
        )
    rows, columns = (height, width) if output_shape is None else _check_size("transform", "output_shape", output_shape)
    exact = transforms.astype(np.float64)
    a0, a1, a2, b0, b1, b2, c0, c1 = (np.reshape(exact[:, i], (-1, 1, 1)) for i in range(8))
    right, down = np.arange(columns), np.arange(rows)[:, None]
    scale = c0 * right + c1 * down + 1
    beyond = strip(scale) == 0
    scale = np.where(beyond, 1.0, scale)
    x = _fold_places((a0 * right + a1 * down + a2) / scale, width, fill_mode)
    y = _fold_places((b0 * right + b1 * down + b2) / scale, height, fill_mode)
    fill = image.dtype.type(as_number("transform", "fill_value", fill_value or 0))
    number = np.arange(batch).reshape(-1, 1, 1)

    def read(ys: Value, xs: Value) -> Any:
        inside = (ys >= 0) & (ys < height) & (xs >= 0) & (xs < width) & ~beyond
        ys, xs = (np.where(inside, at, 0).astype(np.intp) for at in (ys, xs))
        z = _pick_pixels(image, number, ys, xs)
        return np.where(inside[..., None], z, fill) if may_hold(~inside) else z

    if interpolation == "nearest":
        z = read(_round_place(strip(y)), _round_place(strip(x)))
        return _connect(_connect(z, x[..., None]), y[..., None])
    top, left = np.floor(strip(y)), np.floor(strip(x))
    low, across = (np.astype(part, image.dtype)[..., None] for part in (y - top, x - left))
    upper, lower = (_interpolate(read(row, left), read(row, left + 1), across) for row in (top, top + 1))
    return _interpolate(upper, lower, low)


# ---- rotated and mirrored


@observable
def rotate_with_offset(
    image: TensorLike,
    radians: float | Value,
    fill_value: float | Sequence[float] | None = 0,
    center: float | Sequence[float] | None = 0.5,
) -> Any:
    """Return images rotated by ``radians`` around ``center``, one fraction of both sides or two, ``[x, y]``.

    Outside the image the value is ``fill_value``: a number, or one for each of three channels; a fourth is opaque.

    image: images with channels along the last axis.
    radians: the angle.
    fill_value: what stands outside the image.
    center: the point that stays, as shares of width and height.

    >>> image = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
    >>> pb.image.rotate_with_offset(image, np.pi, center=0.25)[0, :, :, 0]
    array([[4., 3.],
           [2., 1.]])
    """
    name = "rotate_with_offset"
    image = _check_pictures(name, image)
    _, height, width, depth = image.shape
    share = as_array(0.5 if center is None else center, np.float64, f"{name}: center")
    fill = np.atleast_1d(as_array(0 if fill_value is None else fill_value, image.dtype, f"{name}: fill_value"))
    if share.shape not in ((), (2,)):
        raise ArgumentError(f"{name}: center must be a number or [x, y], got {center!r}.")
    if fill.shape == (3,) and depth == 4:
        fill = np.append(fill, image.dtype.type(255))
    if fill.ndim != 1 or len(fill) not in (1, depth):
        raise ShapeError(
            f"{name}: image has shape {image.shape}, so fill_value must be a number or {depth} of them, "
            f"got {fill_value!r}."
        )
    x0, y0 = np.array([width, height]) * share
    angle = strip(radians)
    if not isinstance(angle, Tensor):  # one angle for all examples
        angle = as_number(name, "radians", angle, -MOST, MOST)
    cosine, sine = (np.cos(angle), np.sin(angle)) if isinstance(angle, Tensor) else (cos(angle), sin(angle))
    x, y = np.arange(width) - x0, np.arange(height)[:, None] - y0
    xs = _round_place(x * cosine - y * sine + x0)
    ys = _round_place(x * sine + y * cosine + y0)
    inside = (xs >= 0) & (xs < width) & (ys >= 0) & (ys < height)
    place = np.where(inside, ys * width + xs, 0).astype(np.intp)
    z = pick(np.reshape(image, (image.shape[0], height * width, depth)), place, 1)
    return np.where(inside[..., None], z, fill)


@observable
def flip_left_right(image: TensorLike) -> Any:
    """Return images flipped horizontally.

    image: images with channels along the last axis.

    >>> pb.image.flip_left_right(np.array([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1)).ravel()
    array([3., 2., 1.])
    """
    name = "flip_left_right"
    return np.flip(check_rank(name, check_numbers(name, "image", image), 4, "image"), 2)
