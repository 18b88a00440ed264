"""Max pooling and average pooling: the maximum or the mean of every window.

If several elements of a window are equal to its maximum, the first one gets the cotangent, as in other libraries.
Padding is no element of a window: it is never the maximum, and the mean does not count it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.accelerate import run_compiled_if
from pullback.core.axes import moves
from pullback.core.calculus import linear, no_derivative, rule
from pullback.core.composition import check_numbers
from pullback.core.convert import get_default_dtype
from pullback.core.lowering import windows as over_windows
from pullback.core.op import method, op
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.batching import batch_by_folding, count_examples
from pullback.numerics.windows import (
    Windows,
    find_lowest_value,
    has_channels_last,
    make_frame,
    plan_windows,
    pull_frame,
    repeat_per_axis,
    run_on_images,
    view_windows,
)

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Lengths, Padding, TensorLike, Value

__all__ = [
    "PoolWithArgmax", "avg_pool", "avg_pool1d", "avg_pool3d", "max_pool", "max_pool1d", "max_pool3d",
    "max_pool_with_argmax", "pool",
]  # fmt: skip

Ints = tuple[int, ...]
GEOMETRIES: list[tuple[Ints, Ints, dict[str, Any]]] = [
    ((1, 4, 5, 1), (2, 2), {"strides": 2, "pad": "same"}), ((2, 5, 4, 2), (3, 2), {"strides": (2, 1), "pad": 1}),
    ((1, 5, 5, 1), (2, 2), {"dilations": 2}), ((2, 6, 3), (2,), {}), ((0, 3, 3, 2), (2, 2), {}),
    ((1, 3, 3, 2, 1), (2, 2, 1), {"strides": 2, "pad": "same"}),
]  # fmt: skip
SAMPLES = [(x, plan_windows("pool", x[1:-1], size, **how)) for x, size, how in GEOMETRIES]


MIN_COMPILED = 1 << 16  # elements of all windows from which machine code is worth compiling
MIN_COMPILED_CHANNELS = 4  # channels are the lanes of its vectors


def _infer_pooled_shape(x: Ints, windows: Windows) -> Ints:
    return (x[0], *windows.out, x[-1])


def _is_worth_compiling(x: Array, *more: object) -> bool:
    windows, channels = next(m for m in more if isinstance(m, Windows)), x.shape[-1]
    elements = len(x) * prod(windows.out) * prod(windows.size) * channels
    return bool(channels >= MIN_COMPILED_CHANNELS and elements >= MIN_COMPILED)


# ---- maxima


def _reduce_windows(frame: Array, windows: Windows, ufunc: Callable[..., Any]) -> Any:
    """Reduce each window by ``ufunc``, one axis after the other, first along whole rows."""
    z = frame
    for axis, (k, s, d, n) in enumerate(
        zip(windows.size, windows.strides, windows.dilations, windows.out, strict=True), 1
    ):
        before = (slice(None),) * axis
        taps = [z[(*before, slice(i * d, i * d + (n - 1) * s + 1, s) if n else slice(0, 0))] for i in range(k)]
        z = ufunc(taps[0], taps[1]) if k > 1 else taps[0]
        for tap in taps[2:]:
            ufunc(z, tap, out=z)
    return z.copy() if max(windows.size) == 1 else z


def _reduce_by_maximum(x: Array, windows: Windows) -> Any:
    return _reduce_windows(make_frame(x, windows, find_lowest_value(x.dtype)), windows, np.maximum)


def _find_first_largest(source: Array, largest: Array, windows: Windows) -> list[Any]:
    """Return for each position in a window where it is the first largest element; nowhere if there is a NaN."""
    frame = make_frame(source, windows, np.nan if source.dtype.kind == "f" else find_lowest_value(source.dtype))
    hits: list[Any] = []
    for _, index in windows.offsets():
        hit = frame[index] == largest
        if not hits:
            left = ~hit  # the windows whose largest element is still to come
        else:
            hit &= left
            left ^= hit
        hits.append(hit)
    return hits


def _make_choice(x: Array) -> Any:
    """Return a function that keeps elements where a condition holds: a product if ``x`` is finite, else ``where``."""
    return np.multiply if np.isfinite(x).all() else lambda x, hit: np.where(hit, x, x.dtype.type(0))


def _give_to_largest(x: Array, source: Array, largest: Array, windows: Windows) -> Any:
    hits = _find_first_largest(source, largest, windows)
    wide = [(k - 1) * d + 1 for k, d in zip(windows.size, windows.dilations, strict=True)]
    apart = all(s >= k for s, k in zip(windows.strides, wide, strict=True))
    make = np.empty if windows.strides == windows.size and apart else np.zeros  # every element is in a window, or not
    e, chosen = make((source.shape[0], *windows.reach, source.shape[-1]), x.dtype), _make_choice(x)
    for hit, (_, index) in zip(hits, windows.offsets(), strict=True):
        if apart:
            e[index] = chosen(x, hit)
        else:
            e[index] += chosen(x, hit)
    return pull_frame(e, windows, source.shape[1:-1])


def _take_from_largest(x: Array, source: Array, largest: Array, windows: Windows) -> Any:
    hits = _find_first_largest(source, largest, windows)
    frame = make_frame(x, windows)
    z, chosen = np.zeros(largest.shape, x.dtype), _make_choice(frame)
    for hit, (_, index) in zip(hits, windows.offsets(), strict=True):
        z += chosen(frame[index], hit)
    return z


def _list_samples_with_source(down: bool) -> list[Any]:
    """Return samples with an image and its largest elements; ``down``: the first input has the shape of the image."""
    random = np.random.default_rng(7)
    samples = []
    for x, w in SAMPLES:
        source = random.permutation(np.arange(float(prod(x)))).reshape(x)
        samples.append(
            ((x if down else _infer_pooled_shape(x, w), source, _reduce_by_maximum(source, w)), {"windows": w})
        )
    return samples


def _largest_vjp(g: Value, x: Value, z: Value, windows: Windows) -> Any:
    return give_to_largest(g, x, z, windows)


def _largest_jvp(dx: Value, x: Value, z: Value, windows: Windows) -> Any:
    return take_from_largest(dx, x, z, windows)


@op(
    _reduce_by_maximum,
    acts=moves(_infer_pooled_shape, [((x,), {"windows": w}) for x, w in SAMPLES], batch_by_folding),
    d=rule(_largest_vjp, jvp=_largest_jvp),
    lower=over_windows("largest"),
    run=run_compiled_if(_is_worth_compiling, _reduce_by_maximum),
)  # fmt: skip
def largest_in_window(x: TensorLike, /, windows: Windows) -> Any:
    """Return the largest element of each window.

    >>> largest_in_window(np.array([1.0, 3.0, 2.0]).reshape(1, 3, 1), plan_windows("pool", (3,), (2,))).ravel()
    array([3., 3.])
    """


def _give_vjp(g: Value, source: Value, largest: Value, windows: Windows) -> Any:
    return take_from_largest(g, source, largest, windows)


@op(
    _give_to_largest,
    acts=moves(lambda x, source, largest, windows: source, lambda: _list_samples_with_source(False), batch_by_folding),
    d=linear(_give_vjp, None, None),
    lower=over_windows("give"),
    run=run_compiled_if(_is_worth_compiling, _give_to_largest),
)
def give_to_largest(x: TensorLike, source: TensorLike, largest: TensorLike, /, windows: Windows) -> Any:
    """Return ``x`` added where each window of ``source`` has its largest element: the adjoint of ``largest_in_window``.

    >>> source = np.array([1.0, 3.0, 2.0]).reshape(1, 3, 1)
    >>> w = plan_windows("pool", (3,), (2,))
    >>> give_to_largest(np.array([[[1.0], [10.0]]]), source, largest_in_window(source, w), w).ravel()
    array([ 0., 11.,  0.])
    """


@op(
    _take_from_largest,
    acts=moves(lambda x, source, largest, windows: largest, lambda: _list_samples_with_source(True), batch_by_folding),
    d=linear(lambda g, source, largest, windows: give_to_largest(g, source, largest, windows), None, None),
    lower=over_windows("take"),
    run=run_compiled_if(_is_worth_compiling, _take_from_largest),
)
def take_from_largest(x: TensorLike, source: TensorLike, largest: TensorLike, /, windows: Windows) -> Any:
    """Return the elements of ``x`` that are where the largest of each window of ``source`` is.

    >>> source = np.array([1.0, 3.0, 2.0]).reshape(1, 3, 1)
    >>> w = plan_windows("pool", (3,), (2,))
    >>> take_from_largest(np.array([[[7.0], [8.0], [9.0]]]), source, largest_in_window(source, w), w).ravel()
    array([8., 8.])
    """


def _find_places(x: Array, windows: Windows, include_batch: bool = False) -> Any:
    axes = len(windows.size)
    view = view_windows(make_frame(x, windows, find_lowest_value(x.dtype)), windows)
    rows = np.moveaxis(view, -1, axes + 1).reshape(*view.shape[: axes + 1], x.shape[-1], prod(windows.size))
    at = np.unravel_index(np.argmax(rows, -1), windows.size)
    place: Any = np.arange(x.shape[0]).reshape(-1, *(1,) * (axes + 1)) if include_batch else 0
    for i, (tap, n) in enumerate(zip(at, x.shape[1:-1], strict=True)):
        first = np.arange(windows.out[i]).reshape(-1, *(1,) * (axes - i)) * windows.strides[i] - windows.before[i]
        place = place * n + np.clip(first + tap * windows.dilations[i], 0, max(n - 1, 0))
    return (place * x.shape[-1] + np.arange(x.shape[-1])).astype(np.int32)


def _batch_places(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    """Batch positions, which count from the beginning of each example."""
    places = batch_by_folding(op, args, on, params)
    if not params["include_batch"]:
        return places
    before = prod(args[0].shape[1:]) * np.arange(count_examples(args, on), dtype=np.int32)
    return places - np.reshape(before, (-1, *(1,) * (np.ndim(places) - 1)))


@op(
    _find_places,
    acts=moves(
        lambda x, windows, include_batch: _infer_pooled_shape(x, windows), [((x,), {"windows": w}) for x, w in SAMPLES],
        _batch_places,
    ),
    d=no_derivative(),
)  # fmt: skip
def largest_places(x: TensorLike, /, windows: Windows, include_batch: bool = False) -> Any:
    """Return where the largest element of each window is, the first of several: its number in the flattened image.

    >>> largest_places(np.array([1.0, 3.0, 2.0]).reshape(1, 3, 1), plan_windows("pool", (3,), (2,))).ravel()
    array([1, 1], dtype=int32)
    """


# ---- sums


def _reduce_by_sum(x: Array, windows: Windows) -> Any:
    return _reduce_windows(make_frame(x, windows), windows, np.add)


def _spread_sums(x: Array, windows: Windows, shape: Ints) -> Any:
    e = np.zeros((shape[0], *windows.reach, shape[-1]), x.dtype)
    for _, index in windows.offsets():
        e[index] += x
    return pull_frame(e, windows, shape[1:-1])


def _sums_vjp(g: Value, x_shape: Ints, windows: Windows) -> Any:
    return spread_over_windows(g, windows, x_shape)


@op(
    _reduce_by_sum,
    acts=moves(_infer_pooled_shape, [((x,), {"windows": w}) for x, w in SAMPLES], batch_by_folding),
    d=linear(_sums_vjp),
    lower=over_windows("sums"),
    run=run_compiled_if(_is_worth_compiling, _reduce_by_sum),
)
def sum_of_windows(x: TensorLike, /, windows: Windows) -> Any:
    """Return the sum of each window.

    >>> sum_of_windows(np.array([1.0, 3.0, 2.0]).reshape(1, 3, 1), plan_windows("pool", (3,), (2,))).ravel()
    array([4., 5.])
    """


@op(
    _spread_sums,
    acts=moves(
        lambda x, windows, shape: shape,
        [((_infer_pooled_shape(x, w),), {"windows": w, "shape": x}) for x, w in SAMPLES],
        batch_by_folding,
    ),
    d=linear(lambda g, windows: sum_of_windows(g, windows)),
    lower=over_windows("spread"),
    run=run_compiled_if(_is_worth_compiling, _spread_sums),
)
def spread_over_windows(x: TensorLike, /, windows: Windows, shape: Ints) -> Any:
    """Return the adjoint of ``sum_of_windows``: every element receives from all windows that it is in.

    >>> spread_over_windows(np.ones((1, 2, 1)), plan_windows("pool", (3,), (2,)), (1, 3, 1)).ravel()
    array([1., 2., 1.])
    """


def _refuse_empty_windows(name: str, windows: Windows, space: Ints, pad: object) -> None:
    if _has_empty_window(windows, space):
        raise ArgumentError(
            f"{name}: with pad={pad!r} a window of {windows.size} over {space} covers padding only. "
            "Use a pad smaller than the window, or another dim_rounding_mode."
        )


@lru_cache(1000)
def _has_empty_window(windows: Windows, space: Ints) -> bool:
    """Return whether a window is entirely outside the image, so that it has neither a maximum nor a mean."""
    for k, s, d, b, out, n in zip(*windows, space, strict=True):
        taps = np.arange(out)[:, None] * s + np.arange(k) * d - b
        if n and not np.all(np.any((taps >= 0) & (taps < n), axis=1)):
            return True
    return False


@lru_cache(100)
def _count_inside(windows: Windows, space: Ints, dtype: np.dtype[Any]) -> Any:
    """Return the number of elements of the image in each window; NaN for none."""
    count = _reduce_by_sum(np.ones((1, *space, 1), dtype), windows)
    if count.size and (count == count.flat[0]).all():
        count = np.array(count.flat[0])
    return np.where(count == 0, np.nan, count).astype(dtype)[()]


# ---- the functions that users call


def _pool(
    name: str, kind: str, axes: int, x: Any, size: Any, strides: Any, pad: Any, rounding: Any, data_format: Any = None,
    dilations: Any = 1, outside: bool = False,
) -> Any:  # fmt: skip
    """Pool by maximum or mean in either layout; ``outside``: padding zeros count as elements."""
    x, last = check_numbers(name, "x", x), has_channels_last(name, data_format, axes)

    def pool_batch(x: Value) -> Any:
        space, lengths = x.shape[1:-1], repeat_per_axis(name, "filter_size", size, axes, last)
        windows = plan_windows(name, space, lengths, strides, pad, dilations, rounding, last)
        _refuse_empty_windows(name, windows, space, pad)
        if outside:
            pairs = [(b, max(r - b - n, 0)) for b, r, n in zip(windows.before, windows.reach, space, strict=True)]
            x = np.pad(x, ((0, 0), *pairs, (0, 0)))
            windows = windows._replace(before=(0,) * axes)
        if kind == "max":
            return largest_in_window(x, windows)
        dtype = x.dtype if x.dtype.kind == "f" else get_default_dtype()
        return sum_of_windows(x, windows) / _count_inside(windows, x.shape[1:-1], dtype)

    return run_on_images(name, pool_batch, x, axes, last)


@method
def max_pool1d(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NWC",
) -> Any:
    """Return the maximum of each window of (batch, width, channels).

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NWC"``, channels last.

    >>> max_pool1d(np.array([[[1.0], [3.0], [2.0], [0.0]]]), 2, 2).ravel()
    array([3., 2.])
    """
    return _pool("max_pool1d", "max", 1, x, filter_size, strides, pad, dim_rounding_mode, data_format)


@method
def max_pool(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Any:
    """Return the maximum of each window of images (batch, height, width, channels).

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.

    >>> max_pool(np.arange(16.0).reshape(1, 4, 4, 1), 2, 2).ravel()
    array([ 5.,  7., 13., 15.])
    """
    return _pool("max_pool", "max", 2, x, filter_size, strides, pad, dim_rounding_mode, data_format)


@method
def max_pool3d(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Any:
    """Return the maximum of each window of (batch, depth, height, width, channels).

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NDHWC"``, channels last.

    >>> max_pool3d(np.arange(8.0).reshape(1, 2, 2, 2, 1), 2).ravel()
    array([7.])
    """
    return _pool("max_pool3d", "max", 3, x, filter_size, strides, pad, dim_rounding_mode, data_format)


@method
def avg_pool1d(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NWC",
) -> Any:
    """Return the mean of each window of (batch, width, channels).

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NWC"``, channels last.

    >>> avg_pool1d(np.array([[[1.0], [3.0], [2.0], [0.0]]]), 2, 2).ravel()
    array([2., 1.])
    """
    return _pool("avg_pool1d", "avg", 1, x, filter_size, strides, pad, dim_rounding_mode, data_format)


@method
def avg_pool(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Any:
    """Return the mean of each window of images (batch, height, width, channels).

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.

    >>> avg_pool(np.arange(9.0).reshape(1, 3, 3, 1), 2, 2, "same").ravel()
    array([2. , 3.5, 6.5, 8. ])
    """
    return _pool("avg_pool", "avg", 2, x, filter_size, strides, pad, dim_rounding_mode, data_format)


@method
def avg_pool3d(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Any:
    """Return the mean of each window of (batch, depth, height, width, channels).

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    data_format: ``"NDHWC"``, channels last.

    >>> avg_pool3d(np.arange(8.0).reshape(1, 2, 2, 2, 1), 2).ravel()
    array([3.5])
    """
    return _pool("avg_pool3d", "avg", 3, x, filter_size, strides, pad, dim_rounding_mode, data_format)


class PoolWithArgmax(NamedTuple):
    """The result of ``max_pool_with_argmax``.

    >>> max_pool_with_argmax(np.arange(4.0).reshape(1, 2, 2, 1), 2).indexes.ravel()
    array([3], dtype=int32)
    """

    result: Any
    indexes: Any


@method
def max_pool_with_argmax(
    x: TensorLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    include_batch_in_index: bool = False,
) -> PoolWithArgmax:
    """Return ``max_pool``, and the position of each of its elements in the flattened image, or in the whole batch.

    x: a tensor, an array or a number.
    filter_size: the size of the windows, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    include_batch_in_index: whether positions count through the whole batch.

    >>> max_pool_with_argmax(np.array([[[[1.0], [4.0]], [[2.0], [3.0]]]]), 2)
    PoolWithArgmax(result=array([[[[4.]]]]), indexes=array([[[[1]]]], dtype=int32))
    """
    name = "max_pool_with_argmax"
    x = check_numbers(name, "x", x)
    if x.ndim != 4:
        raise ShapeError(f"{name}: x must have rank 4, got shape {x.shape}.")
    windows = plan_windows(name, x.shape[1:-1], repeat_per_axis(name, "filter_size", filter_size, 2), strides, pad)
    _refuse_empty_windows(name, windows, x.shape[1:-1], pad)
    return PoolWithArgmax(largest_in_window(x, windows), largest_places(x, windows, bool(include_batch_in_index)))


@method
def pool(
    input: TensorLike,
    window_shape: Lengths,
    pooling_type: str = "max",
    pad: Padding = "valid",
    dilations: Lengths = 1,
    strides: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Any:
    """Return ``max_pool`` or ``avg_pool`` ("max", "avg"), whose windows may be dilated.

    With dilations and ``pad="same"`` the padding zeros count as elements, as in TensorFlow.

    input: a tensor or array.
    window_shape: the size of the windows, a number or one for each axis.
    pooling_type: ``"avg"`` or ``"max"``.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    dilations: the distance between the elements of a window, a number or one for each axis.
    strides: the distance between windows, a number or one for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.

    >>> pool(np.arange(9.0).reshape(1, 3, 3, 1), 2, "max", "valid", 2).ravel()
    array([8.])
    """
    if pooling_type not in ("max", "avg"):
        raise ArgumentError(f"pool: pooling_type must be 'max' or 'avg', got {pooling_type!r}.")
    gaps = max(repeat_per_axis("pool", "dilations", dilations, 2)) > 1
    outside = gaps and isinstance(pad, str) and pad.lower() == "same"
    return _pool(
        "pool", pooling_type, 2, input, window_shape, strides, pad, dim_rounding_mode, None, dilations, outside
    )  # fmt: skip
