"""Pictures read at other places: cut out, mirrored, rotated, warped.  Gradients by the picture and by the places."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np

from pullback.core.op import of_rank, operand
from pullback.core.tensor import Tensor, concrete
from pullback.errors import ArgumentError, ShapeError

__all__ = ["crop_and_resize", "flip_left_right", "rotate_with_offset", "transform"]


def _pictures(name: str, image: Any) -> Any:
    """The pictures as floats; a batch of them is due."""
    image = of_rank(name, image, 4, "image")
    return image if image.dtype.kind == "f" else image.astype(np.float32)


def _pixels(image: Any, batch: Any, y: Any, x: Any) -> Any:
    """The pixels at whole coordinates, which broadcast against each other."""
    n, height, width, depth = image.shape
    rows = (batch * height + y) * width + x
    return np.take(np.reshape(image, (n * height * width, depth)), rows, axis=0)


def _between(low: Any, high: Any, weight: Any) -> Any:
    """Exactly ``low`` where the weight is 0, exactly ``high`` where it is 1."""
    return low * (1 - weight) + high * weight


def _rounded(at: Any) -> Any:
    return np.floor(at + 0.5)


def _held(z: Any, at: Any) -> Any:
    """``z`` with a path to the places it was read at: it does not change with them, so their gradient is 0."""
    return z + np.astype(np.floor(at) - np.floor(concrete(at)), z.dtype) if isinstance(at, Tensor) else z


# ---- cut out


def _span(first: Any, last: Any, length: int, n: int) -> tuple[Any, Any]:
    """Where ``n`` new pixels lie between two borders of boxes, among ``length`` old ones, and which are within."""
    share = np.arange(n) / (n - 1) if n > 1 else np.array([0.5])
    at = _between(first, last, share) * (length - 1)
    here = concrete(at)
    within = (here >= 0) & (here <= length - 1)
    return np.where(within, at, 0.0), within


def _neighbours(at: Any, length: int) -> tuple[Any, Any, Any]:
    """The two old pixels around each place, and how much the second one weighs."""
    low = np.clip(np.floor(concrete(at)), 0, max(length - 2, 0)).astype(np.intp)
    return low, np.minimum(low + 1, length - 1), at - low


def crop_and_resize(
    image: Any, boxes: Any, box_ind: Any, crop_size: Any, method: str | None = "bilinear",
    extrapolation_value: Any = 0,
) -> Any:  # fmt: skip
    """What is in each box ``[y1, x1, y2, x2]``, from 0 to 1 over picture number ``box_ind``, at the size ``crop_size``.

    Beyond the border is ``extrapolation_value``.  There are gradients by ``image`` and by ``boxes``; with the method
    ``"nearest"`` that by ``boxes`` is 0.

    >>> image = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
    >>> pb.image.crop_and_resize(image, np.array([[0.0, 0.0, 1.0, 0.5]]), np.array([0]), [2, 2])[0, :, :, 0]
    array([[1. , 1.5],
           [3. , 3.5]])
    """
    name = "crop_and_resize"
    image, boxes = _pictures(name, image), operand(boxes)
    batch, height, width, _ = image.shape
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"{name}: boxes must have shape (number, 4), got {boxes.shape}.")
    which = np.asarray(concrete(box_ind))
    if which.shape != boxes.shape[:1]:
        raise ShapeError(
            f"{name}: boxes have shape {boxes.shape}, so box_ind must have {boxes.shape[:1]}, got {which.shape}."
        )
    if np.any((which < 0) | (which >= batch) | (which != np.floor(which))):
        raise ArgumentError(
            f"{name}: box_ind must be from 0 to {batch - 1}, the pictures in image, got {which.tolist()}."
        )
    if not isinstance(crop_size, list | tuple) or len(crop_size) != 2 or min(crop_size) < 1:
        raise ArgumentError(f"{name}: crop_size must be two integers >= 1 [height, width], got {crop_size!r}.")
    if method not in ("bilinear", "nearest", None):
        raise ArgumentError(f"{name}: method must be 'bilinear' or 'nearest', got {method!r}.")
    exact = np.astype(boxes, np.float64)  # a float32 could step over the border
    y, rows_within = _span(exact[:, 0:1], exact[:, 2:3], height, int(crop_size[0]))
    x, columns_within = _span(exact[:, 1:2], exact[:, 3:4], width, int(crop_size[1]))
    y, x = y[:, :, None], x[:, None, :]
    which = which.astype(np.intp)[:, None, None]
    if method == "nearest":
        ys, xs = (_rounded(concrete(at)).astype(np.intp) for at in (y, x))
        z = _held(_pixels(image, which, ys, xs), (y + x)[..., None])
    else:
        (top, bottom, down), (left, right, across) = _neighbours(y, height), _neighbours(x, width)
        down, across = (np.astype(weight, image.dtype)[..., None] for weight in (down, across))
        upper, lower = (
            _between(_pixels(image, which, row, left), _pixels(image, which, row, right), across)
            for row in (top, bottom)
        )  # fmt: skip
        z = _between(upper, lower, down)
    within = (rows_within[:, :, None] & columns_within[:, None, :])[..., None]
    return z if within.all() else np.where(within, z, image.dtype.type(extrapolation_value or 0))


# ---- by a projection


def _folded(at: Any, length: int, mode: str) -> Any:
    """Places beyond the border as ``mode`` sees them; the slope is kept, 0 where all beyond is the border itself."""
    here = np.asarray(concrete(at))
    slope = np.ones(here.shape)
    if mode == "constant":
        return at
    made = here
    if length <= 1:
        made = np.zeros(here.shape)
    elif mode == "reflect":
        period = 2 * length
        low, high = here < 0, here > length - 1
        made = np.where(low, here + period * np.trunc(-here / period), here)
        made = np.where(high, here - period * np.trunc(here / period), made)
        turned = np.where(low, made >= -length, high & (made >= length))
        made = np.where(turned, np.where(low, -made - 1, period - made - 1), np.where(low, made + period, made))
        slope = np.where(turned, -1.0, 1.0)
    elif mode == "wrap":
        made = np.where(here < 0, here + length * (np.trunc(-here / (length - 1)) + 1), here)
        made = np.where(here > length - 1, here - length * np.trunc(here / (length - 1)), made)
    held = np.clip(made, 0, length - 1)
    slope = np.where(held == made, slope if length > 1 else 0.0, 0.0)
    return at * slope + (held - here * slope)


def transform(
    image: Any, transforms: Any, interpolation: str | None = "nearest", fill_mode: str | None = "constant",
    fill_value: Any = 0, output_shape: Any = None,
) -> Any:  # fmt: skip
    """Each output pixel (x, y) read at ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)``, ``k = c0 x + c1 y + 1``.

    ``transforms`` has a row ``[a0, a1, a2, b0, b1, b2, c0, c1]`` for each picture, or one for all.  Beyond the border
    is ``fill_value``, or what ``fill_mode`` says: ``"reflect"``, ``"wrap"`` or ``"nearest"``.  There are gradients by
    ``image`` and by ``transforms``; with the interpolation ``"nearest"`` the latter is 0.

    >>> image = np.array([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1)
    >>> pb.image.transform(image, np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]])).ravel()
    array([2., 3., 0.])
    """
    image, transforms = _pictures("transform", image), operand(transforms)
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
    if output_shape is not None and len(output_shape) != 2:
        raise ArgumentError(f"transform: output_shape must be [height, width], got {output_shape!r}.")
    rows, columns = (height, width) if output_shape is None else map(int, output_shape)
    exact = np.astype(transforms, np.float64)
    a0, a1, a2, b0, b1, b2, c0, c1 = (np.reshape(exact[:, i], (-1, 1, 1)) for i in range(8))
    right, down = np.arange(columns), np.arange(rows)[:, None]
    scale = c0 * right + c1 * down + 1
    beyond = np.asarray(concrete(scale)) == 0
    scale = np.where(beyond, 1.0, scale)
    x = _folded((a0 * right + a1 * down + a2) / scale, width, fill_mode)
    y = _folded((b0 * right + b1 * down + b2) / scale, height, fill_mode)
    fill = image.dtype.type(fill_value or 0)
    number = np.arange(batch).reshape(-1, 1, 1)

    def read(ys: Any, xs: Any) -> Any:
        inside = (ys >= 0) & (ys < height) & (xs >= 0) & (xs < width) & ~beyond
        ys, xs = (np.where(inside, at, 0).astype(np.intp) for at in (ys, xs))
        z = _pixels(image, number, ys, xs)
        return z if inside.all() else np.where(inside[..., None], z, fill)

    if interpolation == "nearest":
        z = read(_rounded(concrete(y)), _rounded(concrete(x)))
        return _held(_held(z, x[..., None]), y[..., None])
    top, left = np.floor(concrete(y)), np.floor(concrete(x))
    low, across = (np.astype(part, image.dtype)[..., None] for part in (y - top, x - left))
    upper, lower = (_between(read(row, left), read(row, left + 1), across) for row in (top, top + 1))
    return _between(upper, lower, low)


# ---- rotated and mirrored


def rotate_with_offset(image: Any, radians: float, fill_value: Any = 0, center: Any = 0.5) -> Any:
    """Pictures turned by ``radians`` around ``center``, which is one share of both sides or two, ``[x, y]``.

    What comes from outside is ``fill_value``: a number, or one for each of three colours, opaque if there is a fourth.

    >>> image = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1)
    >>> pb.image.rotate_with_offset(image, np.pi, center=0.25)[0, :, :, 0]
    array([[4., 3.],
           [2., 1.]])
    """
    image = _pictures("rotate_with_offset", image)
    _, height, width, depth = image.shape
    share = [0.5 if center is None else center] * 2 if center is None or np.ndim(center) == 0 else center
    fill = np.atleast_1d(np.asarray(0 if fill_value is None else concrete(fill_value), image.dtype))
    if len(share) != 2:
        raise ArgumentError(f"rotate_with_offset: center must be a number or [x, y], got {center!r}.")
    if fill.shape == (3,) and depth == 4:
        fill = np.append(fill, image.dtype.type(255))
    if fill.ndim != 1 or len(fill) not in (1, depth):
        raise ShapeError(
            f"rotate_with_offset: image has shape {image.shape}, so fill_value must be a number or {depth} of them, "
            f"got {fill_value!r}."
        )
    x0, y0 = width * share[0], height * share[1]
    angle = float(concrete(radians))
    x, y = np.arange(width) - x0, np.arange(height)[:, None] - y0
    xs = _rounded(x * cos(angle) - y * sin(angle) + x0)
    ys = _rounded(x * sin(angle) + y * cos(angle) + y0)
    inside = (xs >= 0) & (xs < width) & (ys >= 0) & (ys < height)
    place = np.where(inside, ys * width + xs, 0).astype(np.intp)
    z = np.take(np.reshape(image, (image.shape[0], height * width, depth)), place, axis=1)
    return np.where(inside[..., None], z, fill)


def flip_left_right(image: Any) -> Any:
    """Pictures as in a mirror.

    >>> pb.image.flip_left_right(np.array([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1)).ravel()
    array([3., 2., 1.])
    """
    return np.flip(of_rank("flip_left_right", image, 4, "image"), 2)
