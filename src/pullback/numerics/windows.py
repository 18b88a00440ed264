"""Geometry of sliding windows: where each begins, padding, and views of all windows without a copy.

Arrays are (batch, *space, channels).  The ops that slide windows (convolution, pooling, morphology) first make a
``Windows`` record, which holds the geometry and is a parameter of their ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from math import ceil, floor, prod, trunc
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pullback.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from pullback.typing import Array

Ints = tuple[int, ...]
FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}
ROUNDING = {None: trunc, "floor": floor, "ceil": ceil, "round": lambda n: floor(n + 0.5)}
BLOCK_BYTES = 512 * 1024  # bytes that stay in the cache while they are written and read again
MIN_RUN = 8  # elements that lie together; fewer are slow to copy


class Windows(NamedTuple):
    """The windows along each axis of space: ``before`` is how far the first one begins before the array.

    >>> plan_windows("pool", (5,), (2,), strides=2, pad="same")
    Windows(size=(2,), strides=(2,), dilations=(1,), before=(0,), out=(3,))
    """

    size: Ints
    strides: Ints
    dilations: Ints
    before: Ints
    out: Ints

    @property
    def reach(self) -> Ints:
        """Return the length of space from the beginning of the first window to the end of the last."""
        return _compute_reach(self)

    def offsets(self) -> list[tuple[Ints, tuple[Any, ...]]]:
        """Return each position in a window with the index that takes it from every window of a frame."""
        return _list_offsets(self)

    def adjoint(self, space: Ints) -> Windows:
        """Return the windows of the adjoint, over the results; only where all strides are 1."""
        before = tuple((k - 1) * d - b for k, d, b in zip(self.size, self.dilations, self.before, strict=True))
        return Windows(self.size, self.strides, self.dilations, before, space)


@lru_cache(1000)
def _compute_reach(windows: Windows) -> Ints:
    return tuple(
        (n - 1) * s + (k - 1) * d + 1 if n else 0
        for n, s, k, d in zip(windows.out, windows.strides, windows.size, windows.dilations, strict=True)
    )


@lru_cache(200)
def _list_offsets(windows: Windows) -> list[tuple[Ints, tuple[Any, ...]]]:
    found: list[tuple[Ints, tuple[Any, ...]]] = []
    for at in product(*map(range, windows.size)):
        inside = [
            slice(i * d, i * d + (n - 1) * s + 1, s) if n else slice(0, 0)
            for i, d, n, s in zip(at, windows.dilations, windows.out, windows.strides, strict=True)
        ]
        found.append((at, (slice(None), *inside)))
    return found


def find_lowest_value(dtype: np.dtype[Any]) -> Any:
    """Return the lowest value of a dtype: minus infinity, or the smallest integer.

    >>> find_lowest_value(np.dtype("i1"))
    -128
    """
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


# ---- arguments of users


def repeat_per_axis(name: str, argument: str, value: Any, axes: int, last: bool = True) -> Ints:
    """Return one positive integer for each axis, from one for all or a list.

    As in TensorFlow, a list may also have a 1 for the batch and one for the channels, the last axis or axis 1.

    >>> repeat_per_axis("conv2d", "strides", 2, 2), repeat_per_axis("conv2d", "strides", [1, 2, 3, 1], 2)
    ((2, 2), (2, 3))
    """
    if value is None:
        return (1,) * axes
    try:
        numbers = tuple(int(n) for n in value) if isinstance(value, list | tuple) else (int(value),)
        exact = numbers == (tuple(value) if isinstance(value, list | tuple) else (value,))
    except (TypeError, ValueError):
        exact, numbers = False, ()
    if len(numbers) == axes + 2 and numbers[0] == numbers[-1 if last else 1] == 1:
        numbers = numbers[1:-1] if last else numbers[2:]
    if not exact or len(numbers) not in (1, axes) or min(numbers) < 1:
        raise ArgumentError(
            f"{name}: {argument} must be a positive integer, or {axes} of them, one for each axis, got {value!r}."
        )
    return numbers * (axes if len(numbers) == 1 else 1)


def has_channels_last(name: str, data_format: str | None, axes: int) -> bool:
    """Return whether the channels are the last axis.

    >>> has_channels_last("conv2d", "NCHW", 2)
    False
    """
    last, first = FORMATS[axes]
    if data_format not in (None, last, first):
        raise ArgumentError(f"{name}: data_format must be '{last}' or '{first}', got {data_format!r}.")
    return bool(data_format != first)


def run_on_images(name: str, f: Callable[[Any], Any], x: Any, axes: int, last: bool) -> Any:
    """Return ``f`` of images (batch, *space, channels), given in either layout, with a batch axis or without.

    >>> run_on_images("first", lambda x: x[..., :1], np.ones((3, 4, 5)), 2, last=False).shape
    (1, 4, 5)
    """
    alone = x.ndim == axes + 1
    if alone:
        x = np.reshape(x, (1, *x.shape))
    if x.ndim != axes + 2:
        raise ShapeError(f"{name}: x must have rank {axes + 2}, or {axes + 1} without a batch, got shape {x.shape}.")
    z = f(x if last else np.moveaxis(x, 1, -1))
    if not last:
        z = np.moveaxis(z, -1, 1)
    return np.reshape(z, z.shape[1:]) if alone else z


def _as_hashable(x: object) -> Any:
    return tuple(map(_as_hashable, x)) if isinstance(x, list | tuple) else x


def plan_windows(
    name: str, space: Ints, size: Ints, strides: Any = 1, pad: Any = "valid", dilations: Any = 1, rounding: Any = None,
    last: bool = True, both: bool = False,
) -> Windows:  # fmt: skip
    """Return the windows of ``size`` over ``space``.  ``both``: strides and dilations may both be other than 1.

    ``pad`` is "same", "valid", a number, or a pair (before, after) for each axis, batch and channels included or not.
    Each axis counts its windows by its own size and stride, as in TensorFlow and PyTorch.

    >>> plan_windows("conv2d", (4, 5), (2, 3), [1, 2], 1).out
    (5, 3)
    """
    return _compute_windows(
        name, space, size, _as_hashable(strides), _as_hashable(pad), _as_hashable(dilations), rounding, last, both
    )  # fmt: skip


@lru_cache(1000)
def _compute_windows(
    name: str,
    space: Ints,
    size: Ints,
    strides: Any,
    pad: object,
    dilations: Any,
    rounding: str | None,
    last: bool,
    both: bool,
) -> Windows:
    axes = len(space)
    strides = repeat_per_axis(name, "strides", strides, axes, last)
    dilations = repeat_per_axis(name, "dilations", dilations, axes, last)
    if min(max(strides), max(dilations)) > 1 and not both:
        raise ArgumentError(
            f"{name}: either strides or dilations must be 1, got strides {strides} and dilations {dilations}."
        )
    wide = tuple((k - 1) * d + 1 for k, d in zip(size, dilations, strict=True))
    word = pad.lower() if isinstance(pad, str) else None
    _check_rounding(name, rounding, pad, word in ("same", "valid"))
    if word == "same":
        out = tuple(ceil(n / s) for n, s in zip(space, strides, strict=True))
        more = [(m - 1) * s + k - n for m, s, k, n in zip(out, strides, wide, space, strict=True)]
        return Windows(size, strides, dilations, tuple(max(n, 0) // 2 for n in more), out)
    pairs = ((0, 0),) * axes if word == "valid" else _read_padding(name, pad, axes, last)
    padded = [n + a + b for n, (a, b) in zip(space, pairs, strict=True)]
    if any(k > n for k, n in zip(wide, padded, strict=True)):
        raise ShapeError(
            f"{name}: a window of {wide} does not fit into {tuple(space)} with pad={pad!r}. "
            "Use a smaller window or filter, or more padding."
        )
    out = tuple(ROUNDING[rounding]((n - k) / s) + 1 for n, k, s in zip(padded, wide, strides, strict=True))
    return Windows(size, strides, dilations, tuple(a for a, _ in pairs), out)


def _check_rounding(name: str, rounding: str | None, pad: object, by_word: bool) -> None:
    if rounding not in ROUNDING:
        raise ArgumentError(f"{name}: dim_rounding_mode must be 'floor', 'round' or 'ceil', got {rounding!r}.")
    if by_word and rounding is not None:
        raise ArgumentError(
            f"{name}: with dim_rounding_mode {rounding!r} pad must be a number or pairs of numbers, got {pad!r}."
        )


def _read_padding(name: str, pad: Any, axes: int, last: bool) -> tuple[tuple[int, int], ...]:
    """Return the padding before and after each axis of space."""
    try:
        widths = [(pad, pad)] * axes if isinstance(pad, int | float | np.integer) else [(a, b) for a, b in pad]
        pairs = tuple((int(a), int(b)) for a, b in widths)
        if pairs != tuple(widths):
            raise ValueError
        if len(pairs) == axes + 2:
            outside = (0, axes + 1) if last else (0, 1)
            if any(pairs[i] != (0, 0) for i in outside):
                raise ValueError
            pairs = tuple(p for i, p in enumerate(pairs) if i not in outside)
        if len(pairs) != axes or min(map(min, pairs)) < 0:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{name}: pad must be 'same', 'valid', an integer >= 0, or a pair [before, after] for each axis "
            f"(nothing for batch and channels), got {pad!r}."
        ) from None
    return pairs


# ---- arrays


def make_frame(x: Array, windows: Windows, fill: float = 0) -> Any:
    """Return the part of ``x`` that the windows reach, padded with ``fill``; ``x`` itself if they are the same.

    >>> make_frame(np.ones((1, 2, 1)), plan_windows("pool", (2,), (3,), pad="same")).ravel()
    array([0., 1., 1., 0.])
    """
    reach, space = windows.reach, x.shape[1:-1]
    if reach == space and not any(windows.before):
        return x
    inside, outside = find_frame_slices(windows, space)
    if all(o == slice(0, n) for o, n in zip(outside, reach, strict=True)):
        return x[(slice(None), *inside)]
    e = np.full((x.shape[0], *reach, x.shape[-1]), fill, x.dtype) if fill else np.zeros(
        (x.shape[0], *reach, x.shape[-1]), x.dtype
    )  # fmt: skip
    e[(slice(None), *outside)] = x[(slice(None), *inside)]
    return e


def pull_frame(e: Array, windows: Windows, space: Ints) -> Any:
    """Return the adjoint of ``make_frame``: the part of a frame inside ``x``, and 0 where no window reaches.

    >>> pull_frame(np.ones((1, 4, 1)), plan_windows("pool", (2,), (3,), pad="same"), (2,)).shape
    (1, 2, 1)
    """
    inside, outside = find_frame_slices(windows, space)
    part = e[(slice(None), *outside)]
    if part.shape[1:-1] == space:
        return np.ascontiguousarray(part)
    x = np.zeros((e.shape[0], *space, e.shape[-1]), e.dtype)
    x[(slice(None), *inside)] = part
    return x


@lru_cache(1000)
def find_frame_slices(windows: Windows, space: Ints) -> tuple[list[slice], list[slice]]:
    """Return the slices of the array that are in the frame, and their slices in the frame.

    >>> find_frame_slices(plan_windows("pool", (2,), (3,), pad="same"), (2,))
    ([slice(0, 2, None)], [slice(1, 3, None)])
    """
    inside, outside = [], []
    for b, r, n in zip(windows.before, windows.reach, space, strict=True):
        first, stop = max(-b, 0), max(min(n, r - b), 0)
        inside.append(slice(min(first, stop), stop))
        outside.append(slice(min(first, stop) + b, stop + b) if stop > first else slice(0, 0))
    return inside, outside


def view_windows(frame: Array, windows: Windows, layered: bool = False) -> Any:
    """Return the windows of a frame as a view (batch, *out, *size, channels), or layers (batch, height, *out[1:], …).

    >>> view_windows(np.arange(3.0).reshape(1, 3, 1), plan_windows("pool", (3,), (2,)))[0, :, :, 0]
    array([[0., 1.],
           [1., 2.]])
    """
    n, *space, c = frame.strides
    steps = [a * s for a, s in zip(space, windows.strides, strict=True)]
    taps = [a * d for a, d in zip(space, windows.dilations, strict=True)]
    out, size = windows.out, windows.size
    if layered:
        out, size, steps, taps = (frame.shape[1], *out[1:]), size[1:], [space[0], *steps[1:]], taps[1:]
    return as_strided(frame, (frame.shape[0], *out, *size, frame.shape[-1]), (n, *steps, *taps, c), writeable=False)


def split_images(images: int, each: int) -> Iterator[slice]:
    """Return slices of as many images, of ``each`` bytes, as stay in the cache; at least one.

    >>> list(split_images(3, BLOCK_BYTES // 2))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    step = max(BLOCK_BYTES // max(each, 1), 1)
    return (slice(i, min(i + step, images)) for i in range(0, images, step))


def iterate_windows(x: Array, windows: Windows) -> Iterator[tuple[tuple[slice, ...], Any, int]]:
    """Yield the windows of ``x`` as rows of matrices, in parts that stay in the cache: where, the rows, and a step.

    Where windows follow each other closely only their layers along the first axis are laid out: they overlap, so that
    much less is copied.  There is a matrix for each image then, and layer k of its windows begins ``k * step`` rows
    further on.  Else there is one matrix of whole windows.  They are valid until the next part is taken, which is
    laid out in the same place.

    >>> [(part, rows.shape) for part, rows, _ in iterate_windows(np.ones((2, 3, 1)), plan_windows("pool", (3,), (2,)))]
    [((slice(0, 2, None),), (1, 4, 2))]
    """
    images, *space, channels = x.shape
    length, width = prod(windows.size) * channels, prod(windows.out[1:])
    height, layers = windows.out[0], windows.size[0]
    inside, outside = find_frame_slices(windows, tuple(space))
    whole = all(o == slice(0, n) for o, n in zip(outside, windows.reach, strict=True))
    layered = is_layered(windows, channels, x.itemsize)
    step, more = (windows.dilations[0] * width, windows.dilations[0] * (layers - 1)) if layered else (0, 0)
    if layered:
        length //= layers
    each = height * width * length * x.itemsize
    some = list(split_images(images, 2 * each if layered else each))
    count = images if whole or not some else some[0].stop
    frame = x[(slice(None), *inside)] if whole else np.zeros((count, *windows.reach, channels), x.dtype)
    view = view_windows(frame, windows, layered)
    strips = max(round(each / BLOCK_BYTES), 1)  # of an image, about as high as each other
    rows = max(-(-height // strips), 1)
    buffer: Any = None
    for part in some:
        frame_part = part if whole else slice(part.stop - part.start)
        if not whole:
            frame[(frame_part, *outside)] = x[(part, *inside)]
        for i in range(0, height, rows):
            high = min(rows, height - i)
            where = (part,) if strips == 1 else (part, slice(i, i + high))
            strip = view[frame_part, i : i + high + more]
            if buffer is None:
                buffer = np.empty(0 if strip.flags.c_contiguous else strip.size, x.dtype)
            matrix, n = _make_rows(strip, len(space), length, buffer), len(strip) if layered else 1
            yield where, matrix.reshape(n, len(matrix) // n, length), step


def is_layered(windows: Windows, channels: int, itemsize: int) -> bool:
    """Return whether ``iterate_windows`` yields the layers of the windows separately.

    >>> is_layered(plan_windows("conv2d", (56, 56), (3, 3)), 64, 4)
    True
    """
    run = prod(windows.size[1:]) * channels
    big = windows.size[0] * prod(windows.out) * run * itemsize >= BLOCK_BYTES // 4
    return len(windows.size) > 1 and windows.strides[0] == 1 and windows.size[0] > 1 and big and run >= 8 * MIN_RUN


def _make_rows(view: Array, axes: int, length: int, buffer: Array) -> Any:
    """Return windows as the rows of a matrix, in ``buffer`` if they must be copied.

    Where little lies together they are copied one position of the window at a time.
    """
    split = axes + 1
    count = prod(view.shape[:split])
    if view.flags.c_contiguous:
        return view.reshape(count, length)
    buffer = buffer[: view.size]
    if view.shape[-1] * view.shape[-2] >= MIN_RUN:
        np.copyto(buffer.reshape(view.shape), view)
        return buffer.reshape(count, length)
    view = view.transpose(*range(split, view.ndim), *range(split))
    np.copyto(buffer.reshape(view.shape), view)
    return buffer.reshape(length, count).T
