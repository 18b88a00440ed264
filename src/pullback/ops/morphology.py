"""Morphological dilation, and the ops on windows that it is composed of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import linear, rule
from pullback.core.composition import check_numbers
from pullback.core.op import method, op
from pullback.errors import ShapeError
from pullback.numerics.batching import batch_by_folding
from pullback.numerics.windows import Windows, has_channels_last, make_frame, plan_windows, pull_frame, view_windows

if TYPE_CHECKING:
    from pullback.typing import Lengths, Padding, TensorLike, Value

__all__ = ["dilation2d"]

Ints = tuple[int, ...]
SAMPLES = [
    (x, plan_windows("cut_windows", x[1:-1], size, **how, both=True))
    for x, size, how in (
        ((1, 3, 4, 2), (2, 2), {"pad": "same"}), ((2, 5, 5, 1), (2, 2), {"strides": 2, "dilations": 2, "pad": 1}),
        ((2, 4, 1), (3,), {}), ((0, 3, 2), (2,), {}),
    )
]  # fmt: skip


def _infer_windows_shape(x: Ints, w: Windows) -> Ints:
    return (x[0], *w.out, *w.size, x[-1])


def _cut_windows_vjp(g: Value, x_shape: Ints, windows: Windows) -> Any:
    return add_windows(g, windows, x_shape)


def _cut_windows_jvp(dx: Value, windows: Windows) -> Any:
    return cut_windows(dx, windows)


@op(
    lambda x, windows, fill: view_windows(make_frame(x, windows, fill), windows).copy(),
    acts=moves(
        lambda x, windows, fill: _infer_windows_shape(x, windows),
        [((x,), {"windows": w, "fill": -1.0}) for x, w in SAMPLES],
        batch_by_folding,
    ),
    d=rule(_cut_windows_vjp, jvp=_cut_windows_jvp),
)
def cut_windows(x: TensorLike, /, windows: Windows, fill: float = 0.0) -> Any:
    """Return every window, (batch, *positions, *window, channels), with ``fill`` outside ``x``.

    >>> cut_windows(np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1), plan_windows("cut_windows", (3,), (2,)))[0, :, :, 0]
    array([[1., 2.],
           [2., 3.]])
    """


def _add_windows(x: Any, windows: Windows, shape: Ints) -> Any:
    e = np.zeros((shape[0], *windows.reach, shape[-1]), x.dtype)
    positions = (slice(None),) * (len(windows.size) + 1)
    for at, index in windows.offsets():
        e[index] += x[(*positions, *at)]
    return pull_frame(e, windows, shape[1:-1])


@op(
    _add_windows,
    acts=moves(
        lambda x, windows, shape: shape,
        [((_infer_windows_shape(x, w),), {"windows": w, "shape": x}) for x, w in SAMPLES],
        batch_by_folding,
    ),
    d=linear(lambda g, windows: cut_windows(g, windows)),
)
def add_windows(x: TensorLike, /, windows: Windows, shape: Ints) -> Any:
    """Return the adjoint of ``cut_windows``: windows added up where they overlap.

    >>> add_windows(np.ones((1, 2, 2, 1)), plan_windows("cut_windows", (3,), (2,)), (1, 3, 1)).ravel()
    array([1., 2., 1.])
    """


@method
def dilation2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilations: Lengths = 1,
    data_format: str = "NHWC",
) -> Any:
    """Return the maximum over each window of ``x`` plus ``filter`` (height, width, channels).

    x: a tensor, an array or a number.
    filter: the values added to each window (height, width, channels).
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dilations: the distance between the elements of a window, a number or one for each axis.
    data_format: ``"NHWC"``, channels last.

    >>> dilation2d(np.arange(4.0).reshape(1, 2, 2, 1), np.array([[[9.0], [0.0]], [[0.0], [0.0]]])).ravel()
    array([9.])
    """
    name = "dilation2d"
    filter, image = check_numbers(name, "filter", filter), check_numbers(name, "x", x)
    last = has_channels_last(name, data_format, 2)
    alone = image.ndim == 3
    if alone:
        image = np.reshape(image, (1, *image.shape))
    if image.ndim != 4:
        raise ShapeError(f"{name}: x must have rank 4, or 3 without a batch, got shape {image.shape}.")
    if not last:
        image = np.transpose(image, (0, 2, 3, 1))
    if filter.ndim != 3 or filter.shape[-1] != image.shape[-1]:
        raise ShapeError(
            f"{name}: x has {image.shape[-1]} channels, so filter must have shape (height, width, {image.shape[-1]}), "
            f"got {filter.shape}."
        )
    windows = plan_windows(name, image.shape[1:-1], filter.shape[:2], strides, pad, dilations, None, last, True)
    z = np.max(np.add(cut_windows(image, windows, -np.inf), filter), axis=(3, 4))
    if not last:
        z = np.moveaxis(z, -1, 1)
    return np.reshape(z, z.shape[1:]) if alone else z
