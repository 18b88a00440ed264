"""Convolutions: windows slide over an image, and each is multiplied with a filter.

A convolution is linear in the image and in the filter, and so are its two adjoints.  Each of the three has the other
two as its adjoints, so gradients of any order stay among them.  Internally arrays are (batch, *space, channels):
windows are copied to rows, in parts that stay in the cache, and multiplied by BLAS.  Large convolutions are run by
machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.accelerate import run_compiled_if
from pullback.core.axes import moves
from pullback.core.calculus import linear
from pullback.core.composition import check_numbers
from pullback.core.lowering import windows as over_windows
from pullback.core.op import method, op
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.batched_windows import (
    accept_examples,
    batch_products,
    batch_products_by_channel,
    convolve_small,
    convolve_small_filter,
    convolve_small_input,
)
from pullback.numerics.windows import (
    Windows,
    has_channels_last,
    is_layered,
    iterate_windows,
    make_frame,
    plan_windows,
    pull_frame,
    run_on_images,
    split_images,
)

if TYPE_CHECKING:
    from pullback.typing import Array, Lengths, Padding, ShapeLike, TensorLike, Value

__all__ = [
    "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "depthwise_conv2d", "separable_conv2d",
]  # fmt: skip

Ints = tuple[int, ...]
MIN_COLUMNS = 16  # columns of a result; BLAS is slow on fewer
MIN_COMPILED = 1 << 20  # multiplications from which machine code is worth compiling
MIN_COMPILED_BY_CHANNEL = 1 << 18  # the same where NumPy multiplies them one by one
LARGE_FILTER = 1 << 20  # bytes from which BLAS computes the gradient of a filter faster


# ---- the three products


def _convolve(x: Array, filter: Array, windows: Windows) -> Any:
    channels, depth = filter.shape[-2:]
    shape = (x.shape[0], *windows.out, depth)
    if depth <= MIN_COLUMNS and is_layered(windows, channels, x.itemsize):
        filter, windows = _pair_columns(filter, windows)
    matrices = filter.reshape(_find_layer_shape(windows, channels, filter.shape[-1], x.itemsize))
    z = np.empty(shape, x.dtype)
    columns = z.reshape(x.shape[0], *windows.out, filter.shape[-1])
    for part, rows, step in iterate_windows(x, windows):
        _sum_products(rows, step, matrices, columns[part].reshape(len(rows), -1, filter.shape[-1]))
    return z


def _sum_products(rows: Array, step: int, matrices: Array, out: Array) -> None:
    """Write the sum over k of ``rows[:, k * step:] @ matrices[k]`` into each matrix of ``out``."""
    n = out.shape[1]
    np.matmul(rows[:, :n], matrices[0], out)
    more = np.empty_like(out) if len(matrices) > 1 else None
    for i in range(1, len(matrices)):
        np.add(out, np.matmul(rows[:, i * step : i * step + n], matrices[i], more), out)


def _add_transposed_products(rows: Array, step: int, weights: Array, totals: Array) -> None:
    """Add to each ``totals[k]`` the sum over the matrices of ``rows[:, k * step:].T @ weights``."""
    n = weights.shape[1]
    turned, more = rows.swapaxes(1, 2), np.empty((len(rows), *totals.shape[1:]), totals.dtype)
    for i, total in enumerate(totals):
        np.matmul(turned[:, :, i * step : i * step + n], weights, more)
        np.add(total, more[0] if len(more) == 1 else np.add.reduce(more, 0), total)


def _pair_columns(filter: Array, windows: Windows) -> tuple[Any, Windows]:
    """Return the filter for two neighbouring results at once, padded with zeros: BLAS is slow on narrow results."""
    *size, channels, depth = filter.shape
    if size[-1] < 4 or windows.strides[-1] != 1 or windows.dilations[-1] != 1 or windows.out[-1] % 2:
        return filter, windows  # too many of these, or no pairs
    wide = np.zeros((*size[:-1], size[-1] + 1, channels, 2, depth), filter.dtype)
    wide[..., :-1, :, 0, :] = wide[..., 1:, :, 1, :] = filter
    pairs = Windows(
        wide.shape[: len(size)], (*windows.strides[:-1], 2), windows.dilations, windows.before,
        (*windows.out[:-1], windows.out[-1] // 2),
    )  # fmt: skip
    return wide.reshape(*pairs.size, channels, 2 * depth), pairs


def _find_layer_shape(windows: Windows, channels: int, depth: int, itemsize: int) -> Ints:
    """Return the shape of a filter as matrices, one for each layer of the windows that ``iterate_windows`` yields."""
    layers = windows.size[0] if is_layered(windows, channels, itemsize) else 1
    return layers, prod(windows.size) // layers * channels, depth


def _convolve_input(x: Array, filter: Array, windows: Windows, shape: Ints) -> Any:
    space, axes = shape[1:-1], len(windows.size)
    if max(windows.strides) == 1:
        flipped = filter[(slice(None, None, -1),) * axes].swapaxes(-1, -2)
        return _convolve(x, flipped, windows.adjoint(space))
    channels, depth = filter.shape[-2:]
    e = np.zeros((shape[0], *windows.reach, channels), x.dtype)
    turned = np.ascontiguousarray(filter.swapaxes(-1, -2))
    taps = list(windows.offsets())
    for part in split_images(x.shape[0], prod(x.shape[1:-1]) * channels * x.itemsize):
        rows, target = x[part].reshape(-1, depth), e[part]
        for at, index in taps:
            target[index] += np.dot(rows, turned[at]).reshape(target[index].shape)
    return pull_frame(e, windows, space)


def _convolve_filter(x: Array, y: Array, windows: Windows) -> Any:
    channels, depth = x.shape[-1], y.shape[-1]
    totals: Any = np.zeros(_find_layer_shape(windows, channels, depth, x.itemsize), x.dtype)
    for part, rows, step in iterate_windows(x, windows):
        _add_transposed_products(rows, step, y[part].reshape(len(rows), -1, depth), totals)
    return totals.reshape(*windows.size, channels, depth)


def _has_many_products(x: Array, filter: Array, windows: Windows, *shape: Ints) -> bool:
    return len(x) * prod(windows.out) * filter.size >= MIN_COMPILED


def _has_many_sums(x: Array, y: Array, windows: Windows) -> bool:
    filter = prod(windows.size) * x.shape[-1]
    return bool(y.size * filter >= MIN_COMPILED and filter * y.shape[-1] * x.itemsize < LARGE_FILTER)


Cases = Sequence[tuple[Ints, Ints, dict[str, Any]]]  # image, filter, and options of ``plan_windows``
CASES: Cases = [
    ((2, 5, 3), (2, 3, 2), {}), ((1, 4, 5, 2), (3, 2, 2, 3), {"strides": (2, 1), "pad": "same"}),
    ((2, 4, 4, 1), (2, 2, 1, 2), {"dilations": 2, "pad": 1}), ((0, 3, 3, 2), (2, 2, 2, 1), {}),
    ((1, 3, 3, 2, 1), (2, 2, 1, 1, 2), {"strides": 2, "pad": "same"}),
    ((1, 6, 5, 2), (2, 2, 2, 2), {"strides": 3, "pad": ((0, 1), (2, 0))}),
]  # fmt: skip


def _list_samples(kind: int, cases: Cases = CASES, depthwise: bool = False) -> list[Any]:
    """Return samples of convolutions of all ranks; ``kind`` selects which two of image, filter and result are given."""
    samples: list[Any] = []
    for x, f, how in cases:
        w = plan_windows("conv", x[1:-1], f[:-2], **how)
        z = (x[0], *w.out, f[-1] * (f[-2] if depthwise else 1))
        samples.append(((x, f), {"windows": w}) if kind == 0 else
                    ((z, f), {"windows": w, "shape": x}) if kind == 1 else ((x, z), {"windows": w}))  # fmt: skip
    return samples


def _convolve_dx(g: Value, filter: Value, x_shape: Ints, windows: Windows) -> Any:
    return convolve_input(g, filter, windows, x_shape)


def _convolve_dfilter(g: Value, x: Value, windows: Windows) -> Any:
    return convolve_filter(x, g, windows)


@op(
    _convolve,
    acts=moves(
        lambda x, f, windows: (*x[: -len(windows.out) - 1], *windows.out, f[-1]),
        lambda: _list_samples(0),
        batch_products((None, None), (-1, -1)),
    ),
    d=linear(_convolve_dx, _convolve_dfilter),
    lower=over_windows("convolve"),
    run=accept_examples(run_compiled_if(_has_many_products, _convolve), convolve_small),
)
def convolve(x: TensorLike, filter: TensorLike, /, windows: Windows) -> Any:
    """Return the sum over each window of ``x`` times ``filter``; what conv1d, conv2d and conv3d are made of.

    >>> convolve(np.ones((1, 3, 1)), np.ones((2, 1, 1)), plan_windows("conv1d", (3,), (2,))).ravel()
    array([2., 2.])
    """


def _convolve_input_dfilter(g: Value, x: Value, windows: Windows) -> Any:
    return convolve_filter(g, x, windows)


@op(
    _convolve_input,
    acts=moves(lambda y, f, windows, shape: shape, lambda: _list_samples(1), batch_products((None, None), (-2, -1))),
    d=linear(
        lambda g, filter, windows: convolve(g, filter, windows),
        _convolve_input_dfilter,
    ),
    lower=over_windows("convolve_input"),
    run=accept_examples(run_compiled_if(_has_many_products, _convolve_input), convolve_small_input),
)
def convolve_input(x: TensorLike, filter: TensorLike, /, windows: Windows, shape: Ints) -> Any:
    """Return the adjoint of ``convolve`` in the image of this ``shape``: every window receives its part of ``filter``.

    >>> convolve_input(np.ones((1, 2, 1)), np.ones((2, 1, 1)), plan_windows("conv1d", (3,), (2,)), (1, 3, 1)).ravel()
    array([1., 2., 1.])
    """


@op(
    _convolve_filter,
    acts=moves(
        lambda x, y, windows: (*x[: -len(windows.size) - 2], *windows.size, x[-1], y[-1]),
        lambda: _list_samples(2),
        batch_products((-1, -2), (-1, -1)),
    ),
    d=linear(
        lambda g, y, x_shape, windows: convolve_input(y, g, windows, x_shape),
        lambda g, x, windows: convolve(x, g, windows),
    ),
    lower=over_windows("convolve_filter"),
    run=accept_examples(run_compiled_if(_has_many_sums, _convolve_filter), convolve_small_filter),
)
def convolve_filter(x: TensorLike, y: TensorLike, /, windows: Windows) -> Any:
    """Return the adjoint of ``convolve`` in the filter, given the image and the cotangent of the result.

    >>> convolve_filter(np.ones((1, 3, 1)), np.ones((1, 2, 1)), plan_windows("conv1d", (3,), (2,))).ravel()
    array([2., 2.])
    """


# ---- depthwise: each channel with a filter of its own


def _group_channels(y: Array, channels: int) -> Any:
    """Return the channels of a result grouped by the channel of the image."""
    return y.reshape(*y.shape[:-1], channels, y.shape[-1] // channels)


def _depthwise(x: Array, filter: Array, windows: Windows) -> Any:
    frame, (channels, each) = make_frame(x, windows), filter.shape[-2:]
    z = np.zeros((x.shape[0], *windows.out, channels, each), x.dtype)
    taps = list(windows.offsets())
    for part in split_images(x.shape[0], prod(z.shape[1:]) * x.itemsize):
        source, target = frame[part], z[part]
        for at, index in taps:
            target += source[index][..., None] * filter[at]
    return z.reshape(*z.shape[:-2], channels * each)


def _depthwise_input(x: Array, filter: Array, windows: Windows, shape: Ints) -> Any:
    channels, each = filter.shape[-2:]
    y = _group_channels(x, channels)
    e = np.zeros((shape[0], *windows.reach, channels), x.dtype)
    taps = list(windows.offsets())
    for part in split_images(x.shape[0], prod(y.shape[1:]) * x.itemsize):
        source, target = y[part], e[part]
        for at, index in taps:
            target[index] += source[..., 0] * filter[at][:, 0] if each == 1 else (source * filter[at]).sum(-1)
    return pull_frame(e, windows, shape[1:-1])


def _depthwise_filter(x: Array, y: Array, windows: Windows) -> Any:
    frame, channels = make_frame(x, windows), x.shape[-1]
    apart = _group_channels(y, channels)
    z = np.zeros((*windows.size, channels, apart.shape[-1]), x.dtype)
    positions = tuple(range(len(windows.size) + 1))
    taps = list(windows.offsets())
    for part in split_images(x.shape[0], prod(apart.shape[1:]) * x.itemsize):
        source, weights = frame[part], apart[part]
        for at, index in taps:
            z[at] += (source[index][..., None] * weights).sum(positions)
    return z


def _has_many_products_by_channel(x: Array, filter: Array, windows: Windows, *shape: Ints) -> bool:
    return len(x) * prod(windows.out) * filter.size >= MIN_COMPILED_BY_CHANNEL


def _has_many_sums_by_channel(x: Array, y: Array, windows: Windows) -> bool:
    return y.size * prod(windows.size) >= MIN_COMPILED_BY_CHANNEL


DEPTHWISE: Cases = [
    ((1, 4, 3, 2), (2, 2, 2, 1), {"pad": "same"}), ((2, 4, 4, 2), (3, 2, 2, 2), {"strides": 2, "pad": 1}),
    ((1, 5, 5, 1), (2, 2, 1, 3), {"dilations": 2}), ((0, 3, 3, 2), (2, 2, 2, 2), {}), ((2, 4, 2), (2, 2, 1), {}),
]  # fmt: skip


def _depthwise_dx(g: Value, filter: Value, x_shape: Ints, windows: Windows) -> Any:
    return depthwise_input(g, filter, windows, x_shape)


def _depthwise_dfilter(g: Value, x: Value, windows: Windows) -> Any:
    return depthwise_filter(x, g, windows)


@op(
    _depthwise,
    acts=moves(
        lambda x, f, windows: (x[0], *windows.out, f[-2] * f[-1]),
        lambda: _list_samples(0, DEPTHWISE, True),
        batch_products_by_channel(1, (-1, -2), -1),
    ),
    d=linear(_depthwise_dx, _depthwise_dfilter),
    lower=over_windows("depthwise"),
    run=run_compiled_if(_has_many_products_by_channel, _depthwise),
)
def depthwise(x: TensorLike, filter: TensorLike, /, windows: Windows) -> Any:
    """Return ``convolve`` of each channel with filters of its own; what depthwise_conv2d is made of.

    >>> depthwise(np.ones((1, 3, 1)), np.ones((2, 1, 2)), plan_windows("depthwise", (3,), (2,))).shape
    (1, 2, 2)
    """


def _depthwise_input_dfilter(g: Value, x: Value, windows: Windows) -> Any:
    return depthwise_filter(g, x, windows)


@op(
    _depthwise_input,
    acts=moves(
        lambda y, f, windows, shape: shape,
        lambda: _list_samples(1, DEPTHWISE, True),
        batch_products_by_channel(1, (-1, -2), -1),
    ),
    d=linear(
        lambda g, filter, windows: depthwise(g, filter, windows),
        _depthwise_input_dfilter,
    ),
    lower=over_windows("depthwise_input"),
    run=run_compiled_if(_has_many_products_by_channel, _depthwise_input),
)
def depthwise_input(x: TensorLike, filter: TensorLike, /, windows: Windows, shape: Ints) -> Any:
    """Return the adjoint of ``depthwise`` in the image.

    >>> windows = plan_windows("depthwise", (3,), (2,))
    >>> depthwise_input(np.ones((1, 2, 1)), np.ones((2, 1, 1)), windows, (1, 3, 1)).ravel()
    array([1., 2., 1.])
    """


@op(
    _depthwise_filter,
    acts=moves(
        lambda x, y, windows: (*windows.size, x[-1], y[-1] // x[-1]),
        lambda: _list_samples(2, DEPTHWISE, True),
        batch_products_by_channel(None, (-1, -1), -2),
    ),
    d=linear(
        lambda g, y, x_shape, windows: depthwise_input(y, g, windows, x_shape),
        lambda g, x, windows: depthwise(x, g, windows),
    ),
    lower=over_windows("depthwise_filter"),
    run=run_compiled_if(_has_many_sums_by_channel, _depthwise_filter),
)
def depthwise_filter(x: TensorLike, y: TensorLike, /, windows: Windows) -> Any:
    """Return the adjoint of ``depthwise`` in the filter.

    >>> depthwise_filter(np.ones((1, 3, 1)), np.ones((1, 2, 1)), plan_windows("depthwise", (3,), (2,))).ravel()
    array([2., 2.])
    """


# ---- the functions that users call


def _check_channels(name: str, x: Value, filter: Value, axes: int, axis: int) -> None:
    """Check that the filter has the rank and the channels of the image."""
    if filter.ndim != axes + 2:
        raise ShapeError(f"{name}: filter must have rank {axes + 2}, got shape {filter.shape}.")
    if x.shape[-1] != filter.shape[axis]:
        raise ShapeError(
            f"{name}: x has {x.shape[-1]} channels but filter, of shape {filter.shape}, has {filter.shape[axis]} "
            f"along axis {axis % filter.ndim}; they must be the same."
        )


def _convolve_images(
    name: str, axes: int, x: Any, filter: Any, strides: Any, pad: Any, data_format: Any, dilations: Any, rounding: Any,
    product: Any = convolve,
) -> Any:  # fmt: skip
    x, filter = check_numbers(name, "x", x), check_numbers(name, "filter", filter)
    last = has_channels_last(name, data_format, axes)

    def convolve_batch(x: Value) -> Any:
        _check_channels(name, x, filter, axes, -2)
        windows = plan_windows(name, x.shape[1:-1], filter.shape[:axes], strides, pad, dilations, rounding, last)
        return product(x, filter, windows)

    return run_on_images(name, convolve_batch, x, axes, last)


@method
def conv1d(
    x: TensorLike,
    filter: TensorLike,
    stride: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NWC",
    dilation: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Any:
    """Return the convolution of (batch, width, channels) with a filter of (width, channels, channels of the result).

    x: rows (batch, length, channels).
    filter: the weights (length, channels, results).
    stride: the distance between windows.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NWC"``, channels last.
    dilation: the distance between the elements of a window.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.

    >>> conv1d(np.array([[[1.0], [2.0], [4.0]]]), np.array([[[-1.0]], [[1.0]]])).ravel()
    array([1., 2.])
    """
    return _convolve_images("conv1d", 1, x, filter, stride, pad, data_format, dilation, dim_rounding_mode)


@method
def conv2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Any:
    """Return images (batch, height, width, channels) convolved with a filter (height, width, channels, results).

    ``pad`` is "same", "valid", a number, or a pair [before, after] for each axis.

    x: images.
    filter: the weights.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.
    dilations: the distance between the elements of a window, a number or one for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.

    >>> conv2d(np.ones((1, 3, 3, 1)), np.ones((2, 2, 1, 1)), 1, "same")[0, :, :, 0]
    array([[4., 4., 2.],
           [4., 4., 2.],
           [2., 2., 1.]])
    """
    return _convolve_images("conv2d", 2, x, filter, strides, pad, data_format, dilations, dim_rounding_mode)


@method
def conv3d(
    x: TensorLike,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Any:
    """Return the convolution of (batch, depth, height, width, channels) with a filter over three axes.

    x: volumes (batch, depth, height, width, channels).
    filter: the weights (depth, height, width, channels, results).
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NDHWC"``, channels last.
    dilations: the distance between the elements of a window, a number or one for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.

    >>> conv3d(np.ones((1, 2, 2, 2, 1)), np.ones((2, 2, 2, 1, 1))).ravel()
    array([8.])
    """
    return _convolve_images("conv3d", 3, x, filter, strides, pad, data_format, dilations, dim_rounding_mode)


def _convolve_transposed(
    name: str, axes: int, x: Any, filter: Any, output_shape: Any, strides: Any, pad: Any, data_format: Any,
    rounding: Any = None,
) -> Any:  # fmt: skip
    x, filter = check_numbers(name, "x", x), check_numbers(name, "filter", filter)
    last = has_channels_last(name, data_format, axes)
    alone = x.ndim == axes + 1
    try:
        shape = tuple(int(n) for n in output_shape)
    except TypeError:
        raise ArgumentError(f"{name}: output_shape must be a list of integers, got {output_shape!r}.") from None
    if len(shape) != axes + 2 - alone:
        raise ShapeError(
            f"{name}: output_shape must have as many axes as x, which has shape {x.shape}, got {output_shape!r}."
        )
    shape = (1, *shape) if alone else shape
    shape = shape if last else (shape[0], *shape[2:], shape[1])

    def spread_batch(x: Value) -> Any:
        _check_channels(name, x, filter, axes, -1)
        windows = plan_windows(name, shape[1:-1], filter.shape[:axes], strides, pad, 1, rounding, last)
        due = (shape[0], *windows.out)
        if x.shape[:-1] != due or shape[-1] != filter.shape[-2]:
            raise ShapeError(
                f"{name}: an output of {(*shape[:-1], filter.shape[-2])} with filter {filter.shape}, strides "
                f"{windows.strides} and pad={pad!r} comes from x of {(*due, filter.shape[-1])}; "
                f"got x of {x.shape} and output_shape {shape}."
            )
        return convolve_input(x, filter, windows, shape)

    return run_on_images(name, spread_batch, x, axes, last)


@method
def conv2d_transpose(
    x: TensorLike,
    filter: TensorLike,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Any:
    """Return the adjoint of ``conv2d`` in the image, with a filter (height, width, channels of the result, channels).

    x: images (batch, height, width, channels).
    filter: the weights (height, width, results, channels).
    output_shape: the shape of the result.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.

    >>> conv2d_transpose(np.ones((1, 1, 2, 1)), np.ones((2, 2, 1, 1)), [1, 2, 3, 1])[0, :, :, 0]
    array([[1., 2., 1.],
           [1., 2., 1.]])
    """
    return _convolve_transposed(
        "conv2d_transpose", 2, x, filter, output_shape, strides, pad, data_format, dim_rounding_mode
    )  # fmt: skip


@method
def conv3d_transpose(
    x: TensorLike,
    filter: TensorLike,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
) -> Any:
    """Return the adjoint of ``conv3d`` in the image.

    x: volumes (batch, depth, height, width, channels).
    filter: the weights (depth, height, width, results, channels).
    output_shape: the shape of the result.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NDHWC"``, channels last.

    >>> conv3d_transpose(np.ones((1, 1, 1, 1, 1)), np.ones((2, 1, 1, 1, 1)), [1, 2, 1, 1, 1]).ravel()
    array([1., 1.])
    """
    return _convolve_transposed("conv3d_transpose", 3, x, filter, output_shape, strides, pad, data_format)


@method
def depthwise_conv2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Any:
    """Return ``conv2d`` of each channel separately, with a filter (height, width, channels, results of each).

    x: images (batch, height, width, channels).
    filter: the weights (height, width, channels, multiplier).
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.
    dilations: the distance between the elements of a window, a number or one for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.

    >>> depthwise_conv2d(np.ones((1, 2, 2, 3)), np.ones((2, 2, 3, 1))).ravel()
    array([4., 4., 4.])
    """
    return _convolve_images(
        "depthwise_conv2d", 2, x, filter, strides, pad, data_format, dilations, dim_rounding_mode, depthwise
    )  # fmt: skip


@method
def separable_conv2d(
    x: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilation: Lengths = 1,
    data_format: str = "NHWC",
) -> Any:
    """Return ``depthwise_conv2d`` followed by a 1 × 1 convolution that mixes the channels.

    x: images (batch, height, width, channels).
    depthwise_filter: the weights of each channel (height, width, channels, multiplier).
    pointwise_filter: the weights (1, 1, channels × multiplier, results).
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dilation: the distance between the elements of a window.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.

    >>> separable_conv2d(np.ones((1, 2, 2, 3)), np.ones((2, 2, 3, 1)), np.ones((1, 1, 3, 1))).ravel()
    array([12.])
    """
    name = "separable_conv2d"
    pointwise_filter = check_numbers(name, "pointwise_filter", pointwise_filter)
    if pointwise_filter.ndim != 4 or pointwise_filter.shape[:2] != (1, 1):
        raise ShapeError(
            f"{name}: pointwise_filter must have shape (1, 1, channels, of the result), got {pointwise_filter.shape}."
        )
    y = _convolve_images(name, 2, x, depthwise_filter, strides, pad, data_format, dilation, None, depthwise)
    return _convolve_images(name, 2, y, pointwise_filter, 1, "valid", data_format, 1, None)
