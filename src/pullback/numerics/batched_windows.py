"""Batching rules of convolutions: examples are merged into an axis that the op has anyway.

Images that share a filter become one bigger batch; filters of one image become one filter with more channels; in
depthwise convolutions examples become channels.  Only if every example has its own image and filter, there is one
matrix product for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.numerics.batching import batch_by_folding, batch_one_by_one, broadcast_examples, count_examples
from pullback.numerics.windows import BLOCK_BYTES, Windows, make_frame, pull_frame, split_images, view_windows

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Value


def merge_examples(a: Any, axis: int) -> Any:
    """Merge the axis of examples into another one, counted from the end; elements of one example stay together.

    >>> merge_examples(np.arange(4.0).reshape(2, 1, 2), -1)
    array([[0., 1., 2., 3.]])
    """
    a = np.moveaxis(a, 0, axis - 1)
    at = np.ndim(a) + axis
    return np.reshape(a, (*a.shape[: at - 1], a.shape[at - 1] * a.shape[at], *a.shape[at + 1 :]))


def split_examples(z: Value, axis: int, n: int) -> Any:
    """Split the axis of ``n`` examples off again: the inverse of ``merge_examples``.

    >>> split_examples(np.arange(4.0).reshape(1, 4), -1, 2).shape
    (2, 1, 2)
    """
    at = np.ndim(z) + axis
    return np.moveaxis(np.reshape(z, (*z.shape[:at], n, z.shape[at] // n, *z.shape[at + 1 :])), at, 0)


def run_merged(op: Op, args: Sequence[Any], places: Sequence[Any], out: int, n: int, params: Mapping[str, Any]) -> Any:
    """Run the op with the examples merged into the axes ``places`` (None: no examples); split them off axis ``out``."""
    if "shape" in params:
        shape = [*params["shape"]]
        shape[out] *= n
        params = {**params, "shape": tuple(shape)}
    merged = [a if axis is None else merge_examples(a, axis) for a, axis in zip(args, places, strict=True)]
    return split_examples(op.call(merged, params), out, n)


def batch_products(first: tuple[Any, Any], second: tuple[Any, Any]) -> Callable[..., Any]:
    """Return the batching rule of a convolution or one of its adjoints.

    ``first`` and ``second`` give for each input by which axis the examples go in if it alone has some, and by which
    axis of the result they come out; None is the batch.
    """

    def batch(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        rank = len(params["windows"].size) + 2
        n = count_examples(args, on)
        if any(np.ndim(a) - b > rank for a, b in zip(args, on, strict=True)):  # nested vmap
            return batch_by_folding(op, args, on, params)
        if not n:  # the result needs no split
            return batch_one_by_one(op, args, on, params)
        if all(on):  # the kernel distinguishes by the rank
            return op.call(args, {**params, "shape": (n, *params["shape"])} if "shape" in params else params)
        into, out = (-rank if axis is None else axis for axis in (first if on[0] else second))
        return run_merged(op, args, [into if b else None for b in on], out, n, params)

    return batch


def batch_products_by_channel(filter_at: Any, places: tuple[int, int], out: int) -> Callable[..., Any]:
    """Return the batching rule of a depthwise convolution: examples become channels, or a bigger batch."""

    def batch(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        rank, n = len(params["windows"].size) + 2, count_examples(args, on)
        if not n:
            return batch_one_by_one(op, args, on, params)
        if filter_at is not None and not on[filter_at]:
            return run_merged(op, args, [-rank if b else None for b in on], -rank, n, params)
        return run_merged(op, broadcast_examples(args, on), places, out, n, params)

    return batch


# ---- every example with an image and a filter of its own


def accept_examples(kernel: Callable[..., Any], small: Callable[..., Any]) -> Callable[..., Any]:
    """Adapt a kernel to two arrays that may have a leading axis of examples.

    ``small`` does several examples whose windows fit into the cache at once; bigger ones are done one after the other.
    """

    def run(x: Array, y: Array, windows: Windows, *shape: tuple[Any, ...]) -> Any:
        if x.ndim == len(windows.size) + 2:
            return kernel(x, y, windows, *shape)
        less = [s[1:] for s in shape]
        if not len(x):
            blank = (np.zeros(a.shape[1:], a.dtype) for a in (x, y))
            return kernel(*blank, windows, *less)[None][:0]
        channels = less[0][-1] if shape else x.shape[-1]
        windows_of_one = x.shape[1] * prod(windows.out) * prod(windows.size) * channels * x.itemsize
        if windows_of_one > BLOCK_BYTES:
            return np.stack([kernel(a, b, windows, *less) for a, b in zip(x, y, strict=True)])
        return np.concatenate(
            [small(x[part], y[part], windows, *less) for part in split_images(len(x), windows_of_one)]
        )

    return run


def list_window_rows(x: Array, windows: Windows) -> Any:
    """Return the windows of each example as the rows of a matrix."""
    n, batch = x.shape[:2]
    view = view_windows(make_frame(x.reshape(n * batch, *x.shape[2:]), windows), windows)
    return view.reshape(n, batch * prod(windows.out), prod(windows.size) * x.shape[-1])


def convolve_small(x: Array, filter: Array, windows: Windows) -> Any:
    """Return the convolution of each example's images with its filter, by one matrix product for each example."""
    n, depth = len(x), filter.shape[-1]
    z = list_window_rows(x, windows) @ filter.reshape(n, prod(windows.size) * x.shape[-1], depth)
    return z.reshape(*x.shape[:2], *windows.out, depth)


def convolve_small_input(y: Any, filter: Any, windows: Windows, shape: Any) -> Any:
    """Return the adjoint of ``convolve_small`` in the images, which have this shape."""
    (n, batch), (channels, depth) = y.shape[:2], filter.shape[-2:]
    matrices = filter.reshape(n, prod(windows.size) * channels, depth).swapaxes(-1, -2)
    rows = y.reshape(n, batch * prod(windows.out), depth) @ matrices
    rows = rows.reshape(n * batch, *windows.out, *windows.size, channels)
    e = np.zeros((n * batch, *windows.reach, channels), y.dtype)
    positions = (slice(None),) * (len(windows.size) + 1)
    for at, index in windows.offsets():
        e[index] += rows[(*positions, *at)]
    return pull_frame(e, windows, tuple(shape[1:-1])).reshape(n, *shape)


def convolve_small_filter(x: Array, y: Array, windows: Windows) -> Any:
    """Return the adjoint of ``convolve_small`` in the filters."""
    n, depth = len(x), y.shape[-1]
    z = list_window_rows(x, windows).swapaxes(-1, -2) @ y.reshape(n, y.shape[1] * prod(windows.out), depth)
    return z.reshape(n, *windows.size, x.shape[-1], depth)
