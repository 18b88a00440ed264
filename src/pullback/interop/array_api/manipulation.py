"""Functions that move elements, by the names of the Array API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.writes import find_base_links
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.array_api.arguments import as_operand, as_result, call, call_several

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Axis, Shape, Value

Lengths = tuple[int | None, ...]


def broadcast_arrays(*arrays: Value) -> tuple[Tensor, ...]:
    """Return arrays broadcast to one shape.

    arrays: the arrays.
    """
    results: tuple[Tensor, ...] = as_result(np.broadcast_arrays(*map(as_operand, arrays))) if arrays else ()
    return results


def broadcast_shapes(*shapes: Lengths) -> Lengths:
    """Return the shape that arrays of these shapes have together.

    shapes: the shapes; None stands for a length that is not known.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    rows = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(_join_lengths(lengths, shapes) for lengths in zip(*rows, strict=True))


def _join_lengths(lengths: Lengths, shapes: tuple[Lengths, ...]) -> int | None:
    """Return the length of one axis of arrays that are broadcast."""
    known = {n for n in lengths if n is not None and n != 1}
    if len(known) > 1:
        raise ShapeError(f"broadcast_shapes: shapes {', '.join(map(str, shapes))} do not broadcast together.")
    if known:
        return known.pop()
    return None if None in lengths else 1


def broadcast_to(x: Value, /, shape: Shape) -> Tensor:
    """Return an array repeated along axes to a shape.

    x: the array.
    shape: the shape.
    """
    return call(np.broadcast_to, x, shape=tuple(shape))


def concat(arrays: Sequence[Value], /, *, axis: int | None = 0) -> Tensor:
    """Return arrays joined along an axis.

    arrays: the arrays.
    axis: the axis; None for the elements of all in one row.
    """
    result: Tensor = as_result(np.concatenate([as_operand(a) for a in arrays], axis=axis))
    return result


def expand_dims(x: Value, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return an array with new axes of length 1.

    x: the array.
    axis: where the new axes are in the result.
    """
    return call(np.expand_dims, x, axis=axis)


def flip(x: Value, /, *, axis: Axis = None) -> Tensor:
    """Return the elements in reverse order along axes.

    x: the array.
    axis: one axis, several, or None for all.
    """
    return call(np.flip, x, axis=axis)


def moveaxis(x: Value, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Return an array with axes moved.

    x: the array.
    source: the axes to move.
    destination: where they are in the result.
    """
    return call(lambda x: np.moveaxis(x, source, destination), x)


def permute_dims(x: Value, /, axes: tuple[int, ...]) -> Tensor:
    """Return an array with its axes in another order.

    x: the array.
    axes: the axes of ``x`` in the order of those of the result.
    """
    return call(np.transpose, x, axes=axes)


def repeat(x: Value, repeats: int | Value, /, *, axis: int | None = None) -> Tensor:
    """Return each element, row or other part several times.

    x: the array.
    repeats: how many times: one number for all, or one for each.
    axis: the axis; None for the elements of all in one row.
    """
    return call(np.repeat, x, repeats, axis=axis)


def reshape(x: Value, /, shape: Shape, *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape.

    x: the array.
    shape: the shape; one length may be -1.
    copy: ``True`` for a copy, ``False`` for an error where one is needed.
    """
    result: Any = call(np.reshape, x, shape=tuple(shape))
    if copy:
        return np.copy(result)  # type: ignore[return-value]
    if copy is False and find_base_links(result.read()) is None:
        raise ArgumentError(
            f"reshape: copy=False, but shape {x.shape} to {tuple(shape)} needs a copy; leave copy=None."
        )
    return result  # type: ignore[no-any-return]


def roll(x: Value, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Tensor:
    """Return the elements moved along axes, those beyond the end at the beginning.

    x: the array.
    shift: how far, for each axis.
    axis: one axis, several, or None for the elements of all in one row.
    """
    return call(np.roll, x, shift=shift, axis=axis)


def squeeze(x: Value, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return an array without axes of length 1.

    x: the array.
    axis: the axes to leave out.
    """
    return call(np.squeeze, x, axis=axis)


def stack(arrays: Sequence[Value], /, *, axis: int = 0) -> Tensor:
    """Return arrays joined along a new axis.

    arrays: the arrays, of one shape.
    axis: where the new axis is in the result.
    """
    result: Tensor = as_result(np.stack([as_operand(a) for a in arrays], axis=axis))
    return result


def tile(x: Value, repetitions: tuple[int, ...], /) -> Tensor:
    """Return an array repeated as a whole along axes.

    x: the array.
    repetitions: how many times, for each axis.
    """
    return call(np.tile, x, reps=repetitions)


def unstack(x: Value, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the parts of an array along an axis.

    x: the array.
    axis: the axis.
    """
    return call_several(np.unstack, x, axis=axis)
