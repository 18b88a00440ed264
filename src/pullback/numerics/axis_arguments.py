"""Checks of ``axis`` arguments, and axes as non-negative integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.errors import ArgumentError, AxisRangeError, ShapeError

Shape = tuple[int, ...]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # name axes; Python's module string is slow to import


def format_shapes(shapes: Sequence[Shape]) -> str:
    """Return shapes as text for messages.

    >>> format_shapes([(2,), (3,)])
    '(2,) and (3,)'
    """
    return " and ".join(map(str, shapes))


def resolve_axes(ndim: int, axis: object, name: str = "axis") -> tuple[int, ...]:
    """Return the axes in ``axis`` as sorted non-negative integers.

    >>> resolve_axes(3, None), resolve_axes(3, -1), resolve_axes(3, (2, 0))
    ((0, 1, 2), (2,), (0, 2))
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if not isinstance(axis, tuple | list) else axis
    for a in axes:
        if isinstance(a, bool) or not hasattr(a, "__index__"):
            raise ArgumentError(f"{name}: axis must be an integer or a tuple of them, got {axis!r}.")
        if not -ndim <= a < ndim:
            cure = f"use {-ndim} to {ndim - 1}" if ndim else "a number has no axes"
            raise AxisRangeError(f"{name}: axis {a} is out of range for rank {ndim}; {cure}.")
    found = tuple(sorted(int(a) % ndim for a in axes))
    if len({*found}) != len(found):
        raise ShapeError(f"{name}: an axis is named twice in {axis!r}.")
    return found


def resolve_reduced_axes(ndim: int, axis: object, name: str = "axis") -> tuple[int, ...]:
    """Return the axes of a reduction; a number has axes 0 and -1 too, as in NumPy.

    >>> resolve_reduced_axes(2, -1), resolve_reduced_axes(0, -1)
    ((1,), ())
    """
    return () if not ndim and type(axis) is int and axis in (0, -1) else resolve_axes(ndim, axis, name)


def is_broadcastable(shape: Shape, into: Shape) -> bool:
    """Return whether one shape broadcasts to the other.

    >>> is_broadcastable((3,), (2, 3)), is_broadcastable((2, 3), (3,))
    (True, False)
    """
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(shape[::-1], into[::-1], strict=False))


def resolve_axis(ndim: int, axis: Any, name: str) -> int:
    """Return a single axis as a non-negative integer.

    >>> resolve_axis(3, -1, "concat")
    2
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ArgumentError(f"{name}: axis must be one integer, got {axis!r}.")
    return resolve_axes(ndim, axis, name)[0]


def shift_axes(ndim: int, axis: object, name: str) -> Any:
    """Return axes of one example, of rank ``ndim``, as axes of the batched array.

    >>> shift_axes(3, -1, "roll"), shift_axes(3, [-1, 0], "roll"), shift_axes(2, None, "roll")
    (3, (3, 1), (1, 2))
    """
    axis = list(axis) if isinstance(axis, range) else axis
    found = resolve_axes(ndim, axis, name)
    if isinstance(axis, tuple | list):
        return tuple(int(a) % ndim + 1 for a in axis)
    return tuple(a + 1 for a in found) if axis is None else found[0] + 1
