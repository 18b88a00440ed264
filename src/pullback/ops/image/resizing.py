"""Resizing of images.  Both methods are linear, and so are their adjoints, which are ops too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, moves
from pullback.core.calculus import linear
from pullback.core.convert import check_real
from pullback.core.lowering import made_of
from pullback.core.op import op
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.rows import add_rows

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Lengths, TensorLike, Value

__all__ = ["resize_bilinear", "resize_nearest_neighbor"]

Shape = tuple[int, ...]
MAX_PRODUCT_LENGTH = 128  # up to this length an axis is resized by a product with a matrix
MIN_PRODUCT_SLICE = 16  # if there are so many elements in a slice


def _infer_resized_shape(
    name: str, shape: Shape, size: Sequence[Any], align_corners: bool, half_pixel_centers: bool
) -> Shape:
    if len(shape) not in (3, 4):
        raise ShapeError(f"{name}: images must have rank 3 or 4 (batch, height, width, depth), got shape {shape}.")
    if np.shape(size) != (2,) or not all(
        isinstance(n, int | float | np.number) and float(n).is_integer() for n in size
    ):
        raise ArgumentError(f"{name}: size must be two integers [height, width], got {size!r}.")
    height, width = int(size[0]), int(size[1])
    if min(height, width) < 1 or 0 in shape[-3:-1]:
        raise ShapeError(f"{name}: height and width must be >= 1, got images of shape {shape} and size {size!r}.")
    if align_corners and half_pixel_centers:
        raise ArgumentError(f"{name}: align_corners and half_pixel_centers exclude each other.")
    return (*shape[:-3], height, width, shape[-1])


def _find_positions(new: int, old: int, align: bool, shift: float) -> Any:
    """Return the coordinates of the new pixels among the old ones."""
    ratio = (old - 1) / (new - 1) if align and new > 1 else old / new
    return ratio * (np.arange(new) + shift)


def _add_slices(x: Array, index: Array | None, axis: int, n: int) -> Any:
    """Return the adjoint of gathering slices along ``axis`` of length ``n``: a scatter-add."""
    if index is None:
        return x
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    e = np.zeros((*lead, n, *rest), x.dtype)
    rows = prod(lead)
    if x.size:
        numbers = (np.arange(rows)[:, None] * n + index).reshape(-1)
        add_rows(e.reshape(rows * n, *rest), numbers, x.reshape(rows * x.shape[axis], *rest), True)
    return e


# ---- between neighbours


@lru_cache(256)
def _find_neighbours(new: int, old: int, align: bool, half: bool) -> tuple[Any, Any, Any] | None:
    """Return the two neighbours of each new pixel and the weight of the second; None if nothing changes."""
    if new == old:
        return None
    at = _find_positions(new, old, align, 0.5) - 0.5 if half else _find_positions(new, old, align, 0.0)
    low = np.maximum(np.floor(at), 0)
    high = np.minimum(np.ceil(at), old - 1)
    return low.astype(np.intp), high.astype(np.intp), np.where(high > low, at - low, 0)


def _shape_weights(x: Value, weights: Array, axis: int) -> Any:
    """Return weights in the dtype of ``x``, shaped to multiply its slices along an axis."""
    return weights.astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - 1 - axis))


@lru_cache(64)
def _make_weight_matrix(new: int, old: int, align: bool, half: bool, char: str) -> Any:
    """Return the matrix of weights of old pixels in new ones."""
    e, lines, mixed = np.zeros((new, old), char), np.arange(new), _find_neighbours(new, old, align, half)
    if mixed is not None:
        low, high, weights = mixed
        e[lines, low] = 1 - weights
        e[lines, high] += weights.astype(char)
    return e


def _is_product_faster(x: Array, axis: int, new: int) -> bool:
    """Return whether a matrix product is faster: for short axes and long rows."""
    old, beside = x.shape[axis], prod(x.shape[axis + 1 :])
    if max(old, new) > MAX_PRODUCT_LENGTH or old == new or beside < MIN_PRODUCT_SLICE:
        return False
    return bool(np.isfinite(x).all())  # 0 * inf would reach other pixels


def _multiply_along_axis(matrix: Array, x: Array, axis: int) -> Any:
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    return np.matmul(matrix, x.reshape(prod(lead), x.shape[axis], prod(rest))).reshape(*lead, -1, *rest)


def _interpolate(x: Array, mixed: tuple[Any, ...] | None, axis: int) -> Any:
    if mixed is None:
        return x
    low, high, weights = mixed
    z = x.take(low, axis)
    z += (x.take(high, axis) - z) * _shape_weights(x, weights, axis)
    return z


def _pull_interpolation(x: Array, mixed: tuple[Any, ...] | None, axis: int, n: int) -> Any:
    if mixed is None:
        return x
    low, high, weights = mixed
    part = x * _shape_weights(x, weights, axis)
    return _add_slices(x - part, low, axis, n) + _add_slices(part, high, axis, n)


def _as_floats(x: Array) -> Any:
    check_real("resize", x, "images")
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def _resize_bilinear(
    images: Array, size: Sequence[Any], align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    due = _infer_resized_shape("resize_bilinear", images.shape, size, align_corners, half_pixel_centers)
    x, alignment = _as_floats(images), (bool(align_corners), bool(half_pixel_centers))
    for axis in (x.ndim - 3, x.ndim - 2):
        new, old = due[axis], x.shape[axis]
        if _is_product_faster(x, axis, new):
            x = _multiply_along_axis(_make_weight_matrix(new, old, *alignment, x.dtype.char), x, axis)
        else:
            x = _interpolate(x, _find_neighbours(new, old, *alignment), axis)
    return x


def _pull_bilinear(x: Array, size: Sequence[int], align_corners: bool = False, half_pixel_centers: bool = False) -> Any:
    due = _infer_resized_shape("resize_bilinear_grad", x.shape, size, align_corners, half_pixel_centers)
    alignment = (bool(align_corners), bool(half_pixel_centers))
    for axis in (x.ndim - 2, x.ndim - 3):
        new, old = x.shape[axis], due[axis]
        if _is_product_faster(x, axis, old):
            x = _multiply_along_axis(_make_weight_matrix(new, old, *alignment, x.dtype.char).T, x, axis)
        else:
            x = _pull_interpolation(x, _find_neighbours(new, old, *alignment), axis, old)
    return x


# ---- compiled: a pass for each axis, over all of its slices


def _compose_bilinear(images: Value, size: Sequence[Any], align_corners: bool, half_pixel_centers: bool) -> Any:
    due = _infer_resized_shape("resize_bilinear", images.shape, size, align_corners, half_pixel_centers)
    check_real("resize", images, "images")
    x: Any = images if images.dtype.kind == "f" else images.astype(np.float32)
    for axis in (len(due) - 3, len(due) - 2):
        mixed = _find_neighbours(due[axis], x.shape[axis], bool(align_corners), bool(half_pixel_centers))
        if mixed is not None:
            low, high, weights = mixed
            z = np.take(x, low, axis)
            x = z + (np.take(x, high, axis) - z) * _shape_weights(x, weights, axis)
    return x


def _compose_pull_bilinear(x: Value, size: Sequence[Any], align_corners: bool, half_pixel_centers: bool) -> Any:
    due = _infer_resized_shape("resize_bilinear_grad", x.shape, size, align_corners, half_pixel_centers)
    for axis in (len(due) - 2, len(due) - 3):
        mixed = _find_neighbours(x.shape[axis], due[axis], bool(align_corners), bool(half_pixel_centers))
        if mixed is not None:
            low, high, weights = mixed[0], mixed[1], mixed[2].astype(x.dtype)
            if x.dtype == bool:
                x = x - x  # an error, as without being compiled
            x = _add_selected(x, ((low, 1 - weights), (high, weights)), axis, due[axis])
    return x


def _compose_pull_nearest(x: Value, size: Sequence[Any], align_corners: bool, half_pixel_centers: bool) -> Any:
    due = _infer_resized_shape("resize_nearest_neighbor_grad", x.shape, size, align_corners, half_pixel_centers)
    for axis in (len(due) - 2, len(due) - 3):
        index = _find_nearest(x.shape[axis], due[axis], bool(align_corners), bool(half_pixel_centers))
        if index is not None:
            x = _add_selected(x, ((index, np.ones(len(index))),), axis, due[axis])
    return x


def _add_selected(x: Value, pairs: Sequence[tuple[Any, Any]], axis: int, n: int) -> Any:
    """Return slices times their weights, added at their places: as many gathers as a place has slices at most."""
    places, weights = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    slices = np.tile(np.arange(x.shape[axis]), len(pairs))
    order = np.argsort(places, kind="stable")
    order = order[weights[order] != 0]
    starts = np.searchsorted(places[order], np.arange(n))
    counts = np.bincount(places[order], minlength=n)
    total: Any = None
    for turn in range(int(counts.max(initial=0))):
        has = turn < counts
        chosen = order[np.where(has, np.minimum(starts + turn, len(order) - 1), 0)]
        part = np.take(x, slices[chosen], axis) * _shape_weights(x, np.where(has, weights[chosen], 0.0), axis)
        if not has.all():  # 0 * inf would reach other pixels
            part = np.where(has.reshape((-1,) + (1,) * (len(x.shape) - 1 - axis)), part, np.zeros((), x.dtype))
        total = part if total is None else total + part
    return total


def _list_samples() -> list[Sample]:
    parameter_sets: list[dict[str, Any]] = [{}, {"align_corners": True}, {"half_pixel_centers": True}]
    sizes = [((1, 2, 2, 1), [3, 3]), ((2, 4, 3, 2), (2, 5)), ((3, 2, 2), [1, 4]), ((1, 1, 2, 1), [3, 2])]
    some = [((shape,), {"size": size, **alignment}) for shape, size in sizes for alignment in parameter_sets]
    return [*some, (((0, 2, 2, 1),), {"size": [3, 3]})]


SAMPLES = _list_samples()


def _act_on_pictures(name: str) -> Any:
    return moves(lambda s, size, align_corners, half_pixel_centers: (
        _infer_resized_shape(name, s, size, align_corners, half_pixel_centers)
    ), SAMPLES, _batch_pictures)  # fmt: skip


def _batch_pictures(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    """Batch by folding the examples into the batch of pictures."""
    (x,) = args
    lead = x.shape[:-3]
    z = op.call([np.reshape(x, (prod(lead), *x.shape[-3:]))], params)
    return np.reshape(z, (*lead, *z.shape[1:]))


def _bilinear_vjp(g: Value, images_shape: Shape, align_corners: bool, half_pixel_centers: bool) -> Any:
    return resize_bilinear_grad(g, images_shape[-3:-1], align_corners, half_pixel_centers)


@op(
    _resize_bilinear,
    acts=_act_on_pictures("resize_bilinear"),
    d=linear(_bilinear_vjp),
    lower=made_of(_compose_bilinear),
)
def resize_bilinear(
    images: TensorLike, /, size: Sequence[int] | Array, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    """Return images resized to ``size`` [height, width] by bilinear interpolation.

    ``align_corners`` aligns the corner pixels; with ``half_pixel_centers`` pixels are squares, not points.

    images: images (batch, height, width, channels).
    size: [height, width] of the results.
    align_corners: whether the centres of the corner pixels of both images coincide.
    half_pixel_centers: whether pixels have their centre at half numbers.

    >>> pb.image.resize_bilinear(np.array([1.0, 2.0]).reshape(1, 1, 2, 1), [1, 4]).ravel()
    array([1. , 1.5, 2. , 2. ])
    """


@op(
    _pull_bilinear,
    acts=_act_on_pictures("resize_bilinear_grad"),
    d=linear(
        lambda g, x_shape, align_corners, half_pixel_centers: resize_bilinear(
            g, x_shape[-3:-1], align_corners, half_pixel_centers
        )
    ),
    lower=made_of(_compose_pull_bilinear),
)
def resize_bilinear_grad(
    x: TensorLike, /, size: Lengths, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    """Return the adjoint of ``resize_bilinear``: from the cotangent of its result to that of pictures of ``size``.

    >>> resize_bilinear_grad(np.ones((1, 1, 4, 1)), [1, 2]).ravel()
    array([1.5, 2.5])
    """


# ---- the nearest one


@lru_cache(256)
def _find_nearest(new: int, old: int, align: bool, half: bool) -> Any:
    """Return the old pixel for each new one; None if nothing changes."""
    if new == old:
        return None
    at = _find_positions(new, old, align, 0.5 if half else 0.0)
    return np.minimum(np.floor(at + 0.5 if align else at), old - 1).astype(np.intp)


def _resize_nearest(
    images: Any, size: Sequence[Any], align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    due, x = (
        _infer_resized_shape("resize_nearest_neighbor", images.shape, size, align_corners, half_pixel_centers),
        images,
    )
    for axis in (len(due) - 3, len(due) - 2):
        index = _find_nearest(due[axis], x.shape[axis], bool(align_corners), bool(half_pixel_centers))
        x = x if index is None else np.take(x, index, axis)
    return x


def _pull_nearest(x: Array, size: Sequence[int], align_corners: bool = False, half_pixel_centers: bool = False) -> Any:
    due = _infer_resized_shape("resize_nearest_neighbor_grad", x.shape, size, align_corners, half_pixel_centers)
    for axis in (x.ndim - 2, x.ndim - 3):
        old = due[axis]
        index = _find_nearest(x.shape[axis], old, bool(align_corners), bool(half_pixel_centers))
        if _is_product_faster(x, axis, old):
            x = _multiply_along_axis((np.arange(old)[:, None] == index).astype(x.dtype), x, axis)
        else:
            x = _add_slices(x, index, axis, old)
    return x


def _nearest_vjp(g: Value, images_shape: Shape, align_corners: bool, half_pixel_centers: bool) -> Any:
    return resize_nearest_neighbor_grad(g, images_shape[-3:-1], align_corners, half_pixel_centers)


@op(
    _resize_nearest,
    acts=_act_on_pictures("resize_nearest_neighbor"),
    d=linear(_nearest_vjp),
    lower=made_of(_resize_nearest),
)
def resize_nearest_neighbor(
    images: TensorLike, /, size: Sequence[int] | Array, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:  # fmt: skip
    """Return images resized to ``size`` [height, width] by nearest-neighbour interpolation.

    images: images (batch, height, width, channels).
    size: [height, width] of the results.
    align_corners: whether the centres of the corner pixels of both images coincide.
    half_pixel_centers: whether pixels have their centre at half numbers.

    >>> pb.image.resize_nearest_neighbor(np.array([1.0, 2.0]).reshape(1, 1, 2, 1), [1, 4]).ravel()
    array([1., 1., 2., 2.])
    """


@op(
    _pull_nearest,
    acts=_act_on_pictures("resize_nearest_neighbor_grad"),
    d=linear(
        lambda g, x_shape, align_corners, half_pixel_centers: resize_nearest_neighbor(
            g, x_shape[-3:-1], align_corners, half_pixel_centers
        )
    ),
    lower=made_of(_compose_pull_nearest),
)
def resize_nearest_neighbor_grad(
    x: TensorLike, /, size: Lengths, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:  # fmt: skip
    """Return the adjoint of ``resize_nearest_neighbor``: the cotangent of pictures of ``size`` from that of the result.

    >>> resize_nearest_neighbor_grad(np.ones((1, 1, 4, 1)), [1, 2]).ravel()
    array([2., 2.])
    """
