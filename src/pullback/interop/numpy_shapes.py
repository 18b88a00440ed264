"""NumPy functions that move elements: shapes, joining, splitting, padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import BY_KERNEL, Tensor, concrete, strip
from pullback.core.writes import link_part, mark_as_array, order_axes
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import align_operands, as_numpy_array, run_without_rule, to_array
from pullback.numerics.axis_arguments import resolve_axis
from pullback.ops import blocks, conversion, gathering, movement, padding

if TYPE_CHECKING:
    from pullback.typing import Array, Axis, Index, Lengths, TensorLike, Value

Function = Callable[..., Any]


def _make_blank(shape: tuple[int, ...]) -> Any:
    """Return a broadcast array of this shape without memory of its own, to find NumPy's result shapes."""
    return np.broadcast_to(False, shape)


def index_along(a: Any, index: Index, axis: int) -> Any:
    """Return ``a`` indexed by ``index`` along ``axis``."""
    return a[(slice(None),) * (axis % a.ndim) + (index,)]


# ---- order


def _copy(a: Any, /, order: str = "K") -> Any:
    """Return a copy that lies in memory as NumPy's does: by default as the original (``a.copy()`` is in C order)."""
    if isinstance(a, Tensor) and not a.ndim:
        return mark_as_array(conversion.clone(a))  # of a number too
    rows_first = [*range(np.ndim(a))]
    axes = order_axes(a.read()) if isinstance(a, Tensor) and order in "KA" else rows_first
    if order == "F" or (order == "A" and axes == rows_first[::-1]):
        axes = rows_first[::-1]
    elif order == "A":
        axes = rows_first
    if axes == rows_first:
        return conversion.clone(a)
    return np.transpose(conversion.clone(np.transpose(a, axes)), [axes.index(i) for i in rows_first])


def _rollaxis(a: Any, /, axis: int, start: int = 0) -> Any:
    axis = resolve_axis(a.ndim, axis, "np.rollaxis")
    start = start + a.ndim if start < 0 else start
    return np.moveaxis(a, axis, start - 1 if axis < start else start)


def _roll(a: Value, shift: TensorLike, /, axis: Axis = None) -> Any:
    places = strip(to_array(shift))
    if not isinstance(places, Tensor):
        return mark_as_array(BY_KERNEL[np.roll].function(a, places, axis))
    if axis is None:
        return np.reshape(_roll(np.reshape(a, -1), places, 0), a.shape)
    axes = (axis,) if hasattr(axis, "__index__") else axis
    for at, by in zip(axes, np.broadcast_to(places, (len(axes),)), strict=True):  # another shift for each example
        a = np.take(a, (np.arange(a.shape[at]) - by) % max(a.shape[at], 1), axis=at)
    return a


def _tile(a: Value, /, reps: Any) -> Any:
    return mark_as_array(BY_KERNEL[np.tile].function(a, reps))


def _rot90(m: Value, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    first, second = axes
    if k % 2 == 0:
        return np.flip(m, axes) if k % 4 else m
    return (
        np.swapaxes(np.flip(m, second), first, second) if k % 4 == 1 else np.flip(np.swapaxes(m, first, second), second)
    )


def _repeat(a: Value, /, repeats: Any, axis: int | None = None) -> Any:
    return gathering.repeat(np.reshape(a, np.shape(a) or 1), to_array(repeats), axis)  # a number has an axis 0 here


def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, /, *args: object, **kwargs: object) -> Any:
    rows = np.moveaxis(arr, axis, -1)
    lead = rows.shape[:-1]
    if not prod(lead):
        raise ShapeError(f"np.apply_along_axis: there are no vectors along axis {axis} of shape {arr.shape}.")
    result = np.stack([func1d(row, *args, **kwargs) for row in np.reshape(rows, (prod(lead), rows.shape[-1]))])
    z = np.reshape(result, lead + result.shape[1:])
    first = axis % arr.ndim
    return np.moveaxis(z, range(len(lead), z.ndim), range(first, first + z.ndim - len(lead)))


# ---- joining


def _concatenate(arrays: Sequence[Any], /, axis: int | None = 0) -> Any:
    return BY_KERNEL[np.concatenate].function(align_operands(arrays), axis)


def _stack(arrays: Sequence[Any], /, axis: int = 0) -> Any:
    return BY_KERNEL[np.stack].function(align_operands(arrays), axis)


def _vstack(tup: list[Any], /) -> Any:
    return _concatenate([np.atleast_2d(a) for a in align_operands(tup)], 0)


def _hstack(tup: Sequence[Any], /) -> Any:
    items = [np.atleast_1d(a) for a in align_operands(tup)]
    return _concatenate(items, 0 if items and items[0].ndim == 1 else 1)


def _dstack(tup: list[Any], /) -> Any:
    return _concatenate([np.atleast_3d(a) for a in align_operands(tup)], 2)


def _column_stack(tup: list[Any], /) -> Any:
    return _concatenate([np.reshape(a, (-1, 1)) if np.ndim(a) < 2 else a for a in align_operands(tup)], 1)


def _append(arr: Value, values: Value, /, axis: int | None = None) -> Any:
    return _concatenate([arr, values], axis)


def _block(arrays: list[Any], /) -> Any:
    def depth(x: TensorLike) -> int:
        return 1 + max(map(depth, x)) if isinstance(x, list) else 0

    def rank(x: TensorLike) -> int:
        return max(map(rank, x)) if isinstance(x, list) else np.ndim(x)

    levels = depth(arrays)
    n = max(levels, rank(arrays))

    def join(x: TensorLike, level: int) -> Any:
        if isinstance(x, list):
            return _concatenate([join(item, level - 1) for item in x], -level)
        return np.reshape(x, (1,) * (n - np.ndim(x)) + np.shape(x))

    return join(arrays, levels) if levels else np.copy(join(arrays, levels))


# ---- splitting


def _make_split(func: Callable[..., Any], fixed: int | None = None) -> Function:
    def split(ary: Value, /, indices_or_sections: Any, axis: int = 0) -> Any:
        if fixed is not None:
            axis = 0 if fixed == 1 and ary.ndim == 1 else fixed
            if fixed == 0 and ary.ndim < 2:
                raise ShapeError(f"np.vsplit: expected an array of two axes or more, got shape {ary.shape}.")
        axis = resolve_axis(ary.ndim, axis, f"np.{func.__name__}")
        sections = concrete(indices_or_sections)
        if np.ndim(sections):
            points = [0, *(int(i) for i in sections), ary.shape[axis]]
        else:  # NumPy checks the number of sections
            points = [0, *np.cumsum([len(p) for p in func(_make_blank((ary.shape[axis],)), int(sections))]).tolist()]
        return [index_along(ary, slice(start, stop), axis) for start, stop in pairwise(points)]

    return split


def _unstack(x: Value, /, axis: int = 0) -> Any:
    axis = resolve_axis(x.ndim, axis, "np.unstack")
    return tuple(index_along(x, i, axis) for i in range(x.shape[axis]))


def _make_to_rank(func: Callable[..., Any]) -> Function:
    def at_least(*arys: object) -> Any:
        result = [np.reshape(a, func(_make_blank(np.shape(a))).shape) for a in align_operands(arys)]
        return result[0] if len(result) == 1 else tuple(result)

    return at_least


def _broadcast_arrays(*args: object) -> Any:
    items = align_operands(args)
    shape = np.broadcast_shapes(*(np.shape(a) for a in items))
    return tuple(as_numpy_array(a) if np.shape(a) == shape else np.broadcast_to(a, shape) for a in items)


def _apply_over_axes(func: Function, a: Value, axes: Any, /) -> Any:
    """Apply a reduction along one axis after the other, and keep each as an axis of length 1."""
    result: Any = a
    for axis in axes if np.ndim(axes) else [axes]:
        reduced = func(result, axis)
        result = reduced if reduced.ndim == result.ndim else np.expand_dims(reduced, axis)
    return result


def _meshgrid(*xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    make = blocks.meshgrid if copy else blocks.view_grid
    return tuple(make(*align_operands(xi), indexing=indexing, sparse=sparse))


def _sliding_window_view(x: Value, /, window_shape: Lengths, axis: int | None = None) -> Any:
    """Index the tensor by NumPy's windows of element numbers."""
    numbers = np.reshape(np.arange(x.size), x.shape)
    places = np.lib.stride_tricks.sliding_window_view(numbers, window_shape, axis)

    def derive(base: Value) -> Any:
        if not isinstance(base, Tensor):  # the question is how the windows lie in memory
            return np.lib.stride_tricks.sliding_window_view(base, window_shape, axis)
        return np.reshape(base, -1)[places]

    return link_part(derive(x), x, derive)  # a read-only view in NumPy


# ---- padding

BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
MIN_JOINED_SIZE = 4096  # elements from which on joining slices is quicker than an index


def _pad(array: Value, /, pad_width: Any, mode: str = "constant", constant_values: TensorLike = 0) -> Any:
    widths = _list_widths(pad_width, array.ndim)
    if not any(map(any, widths)):
        return np.copy(array)
    if mode == "constant":
        if isinstance(constant_values, int | float) and (array.dtype.kind == "f" or constant_values == 0):
            return padding.pad(array, widths, constant_values)
        return _pad_constant(array, widths, to_array(constant_values))
    if mode not in BY_INDEX:
        why = f" There are constant, {', '.join(BY_INDEX)}."
        return run_without_rule(f"np.pad(mode={mode!r})", np.pad, (array, widths, mode), why=why)
    for axis, width in enumerate(widths):
        if any(width):
            array = _pad_by_position(array, width, mode, axis)
    return array


def _pad_by_position(array: Value, width: tuple[int, int], mode: str, axis: int) -> Any:
    """Return the array padded with its own elements; large arrays by joining slices, unless it is repeated."""
    length = array.shape[axis]
    places = np.pad(np.arange(length), width, mode=mode)  # type: ignore[call-overload]
    ends = places[: width[0]], places[width[0] + length :]
    steps = [np.unique(np.diff(end)) for end in ends]
    if array.size < MIN_JOINED_SIZE or any(step.size > 1 for step in steps):
        return index_along(array, places, axis)
    before, after = (_take_run(array, end, axis) for end in ends)
    return np.concatenate([*before, array, *after], axis=axis)


def _take_run(array: Value, places: Array, axis: int) -> list[Any]:
    """Return the elements at equal, increasing or decreasing places along an axis; none if there are no places."""
    if not places.size:
        return []
    first, last = int(places[0]), int(places[-1])
    if first == last:
        shape = (*array.shape[:axis], places.size, *array.shape[axis + 1 :])
        return [np.broadcast_to(index_along(array, slice(first, first + 1), axis), shape)]
    step = 1 if first < last else -1
    stop = last + step
    return [index_along(array, slice(first, None if stop < 0 else stop, step), axis)]


def _list_widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Return how much is added before and after the elements of each axis."""
    if isinstance(pad_width, dict):
        by_axis = {resolve_axis(ndim, axis, "np.pad"): width for axis, width in pad_width.items()}
        pad_width = [width if np.ndim(width) else (width, width) for width in map(by_axis.get, range(ndim), [0] * ndim)]
    given = np.asarray(concrete(to_array(pad_width)))
    if given.dtype.kind not in "iu" and given.size:
        raise ArgumentError(f"np.pad: pad_width must be integers, got {pad_width!r}.")
    return [(int(a), int(b)) for a, b in np.broadcast_to(given, (ndim, 2))]


def _pad_constant(array: Value, widths: list[tuple[int, int]], values: Value) -> Any:
    values = np.broadcast_to(values, (array.ndim, 2))
    for axis, width in enumerate(widths):
        if any(width):
            edge = [
                np.broadcast_to(
                    values[axis, side].astype(array.dtype), (*array.shape[:axis], n, *array.shape[axis + 1 :])
                )
                for side, n in enumerate(width)
            ]
            array = np.concatenate([edge[0], array, edge[1]], axis=axis)
    return array


FUNCTIONS = {
    np.copy: _copy, np.ravel: movement.ravel, np.rollaxis: _rollaxis,
    np.matrix_transpose: lambda x, /: np.swapaxes(x, -1, -2),
    np.flipud: lambda m, /: np.flip(m, 0), np.fliplr: lambda m, /: np.flip(m, 1), np.rot90: _rot90, np.repeat: _repeat,
    np.roll: _roll, np.tile: _tile,
    np.apply_along_axis: _apply_along_axis, np.apply_over_axes: _apply_over_axes,
    np.concatenate: _concatenate, np.stack: _stack, np.vstack: _vstack, np.hstack: _hstack, np.dstack: _dstack,
    np.column_stack: _column_stack, np.append: _append, np.block: _block,
    np.split: _make_split(np.split), np.array_split: _make_split(np.array_split),
    np.vsplit: _make_split(np.split, 0), np.hsplit: _make_split(np.split, 1), np.dsplit: _make_split(np.split, 2),
    np.unstack: _unstack, np.atleast_1d: _make_to_rank(np.atleast_1d), np.atleast_2d: _make_to_rank(np.atleast_2d),
    np.atleast_3d: _make_to_rank(np.atleast_3d), np.broadcast_arrays: _broadcast_arrays, np.meshgrid: _meshgrid,
    np.pad: _pad, np.lib.stride_tricks.sliding_window_view: _sliding_window_view,
}  # fmt: skip
