"""Sorting, searching, indexing and sets by the names of the Array API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pullback.core.tensor import Tensor, read_sizes
from pullback.interop.array_api.arguments import as_operand, as_result, call, call_several

if TYPE_CHECKING:
    from pullback.typing import Axis, Operand, Value

# ---- sorting


def argsort(x: Value, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the positions of the elements in their order.

    x: the array, of real numbers.
    axis: the axis to sort along.
    descending: whether the largest comes first.
    stable: whether equal elements stay in their order; here they always do.
    """
    operand: Any = as_operand(x)
    if not descending:
        return as_result(np.argsort(operand, axis=axis, stable=True))  # type: ignore[no-any-return]
    at = np.argsort(np.flip(operand, axis=axis), axis=axis, stable=True)
    return as_result(operand.shape[axis] - 1 - np.flip(at, axis=axis))  # type: ignore[no-any-return]


def sort(x: Value, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in their order.

    x: the array, of real numbers.
    axis: the axis to sort along.
    descending: whether the largest comes first.
    stable: whether equal elements stay in their order; here they always do.
    """
    result: Tensor = call(np.sort, x, axis=axis, stable=True)
    return np.flip(result, axis=axis) if descending else result  # type: ignore[return-value]


# ---- searching


def argmax(x: Value, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the positions of the largest elements.

    x: the array, of real numbers.
    axis: the axis to search along; None for the position among all elements.
    keepdims: whether the axis stays, with length 1.
    """
    return call(np.argmax, x, axis=axis, keepdims=keepdims)


def argmin(x: Value, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the positions of the smallest elements.

    x: the array, of real numbers.
    axis: the axis to search along; None for the position among all elements.
    keepdims: whether the axis stays, with length 1.
    """
    return call(np.argmin, x, axis=axis, keepdims=keepdims)


def count_nonzero(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return how many elements over axes are not zero.

    x: the array.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.count_nonzero, x, axis=axis, keepdims=keepdims)


def nonzero(x: Value, /) -> tuple[Tensor, ...]:
    """Return the positions of elements that are not zero, one tensor for each axis.

    x: the array, with at least one axis.
    """
    return call_several(np.nonzero, x)


def searchsorted(
    x1: Value, x2: Operand, /, *, side: Literal["left", "right"] = "left", sorter: Value | None = None
) -> Tensor:
    """Return the positions at which elements would keep an array sorted.

    x1: the sorted array.
    x2: the elements to place.
    side: whether an element goes to the left or to the right of those equal to it.
    sorter: the positions that sort ``x1``, if it is not sorted.
    """
    x1 = as_operand(x1) if sorter is None else take(x1, sorter)
    return call(np.searchsorted, x1, x2, side=side)


def where(condition: Value, x1: Operand, x2: Operand, /) -> Tensor:
    """Return elements of one array where a condition holds, and of another elsewhere.

    condition: the condition, of bools.
    x1: the elements where it holds.
    x2: the elements where it does not.
    """
    return call(np.where, condition, x1, x2)


# ---- indexing


def take(x: Value, indices: Value, /, *, axis: int | None = None) -> Tensor:
    """Return the elements, rows or other parts at positions along an axis.

    x: the array.
    indices: the positions.
    axis: the axis; it may be None where there is only one.
    """
    return call(np.take, x, as_operand(indices), axis=0 if axis is None else axis)


def take_along_axis(x: Value, indices: Value, /, *, axis: int = -1) -> Tensor:
    """Return an element for each of the positions along an axis.

    x: the array.
    indices: the positions, with as many axes as ``x``.
    axis: the axis.
    """
    return call(np.take_along_axis, x, as_operand(indices), axis=axis)


# ---- sets


class UniqueAll(NamedTuple):
    """The result of ``unique_all``."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of ``unique_counts``."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of ``unique_inverse``."""

    values: Tensor
    inverse_indices: Tensor


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """Return where elements are among those of another array.

    x1: the elements to look for.
    x2: the elements to look among.
    invert: whether to return where they are not.
    """
    return call(np.isin, x1, x2, invert=invert)


def unique_all(x: Value, /) -> UniqueAll:
    """Return the different elements in order, with their first positions, their places in ``x``, and their counts.

    x: the array.
    """
    x = as_operand(x)
    found = np.unique_all(read_sizes("unique_all", x))
    values = np.take(np.reshape(x, -1), found.indices, axis=0)
    return UniqueAll(values, *map(as_result, found[1:]))  # type: ignore[arg-type]


def unique_counts(x: Value, /) -> UniqueCounts:
    """Return the different elements in order, and their counts.

    x: the array.
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Value, /) -> UniqueInverse:
    """Return the different elements in order, and the place of each element of ``x`` among them.

    x: the array.
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Value, /) -> Tensor:
    """Return the different elements in order.

    x: the array.
    """
    return unique_all(x).values
