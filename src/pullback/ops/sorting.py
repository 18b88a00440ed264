"""Sorting, searching and sets.  Values carry gradients, indices do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import no_derivative
from pullback.core.composition import check_numbers, rename_errors
from pullback.core.convert import check_real
from pullback.core.lowering import rows
from pullback.core.op import alias, convert_operand, method, observable, op
from pullback.core.tape import constant
from pullback.core.tensor import Tensor, read_sizes, strip
from pullback.core.writes import write
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.batching import (
    batch_aligned_axes,
    batch_along_axis,
    batch_leading_axes,
    batch_one_by_one,
    broadcast_examples,
)
from pullback.numerics.order import argsort_stable

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Axis, TensorLike, Value

__all__ = [
    "SetDifference", "Unique", "argsort", "in_top_k", "intersect1d", "isin", "lower_bound", "search_sorted",
    "searchsorted", "setdiff1d", "setxor1d", "sort", "union1d", "unique", "upper_bound",
]  # fmt: skip

Shape = tuple[int, ...]


# ---- order


def _argsort(x: Array, axis: int = -1, descending: bool = False) -> Any:
    if not x.ndim:
        return np.intp(0)
    return argsort_stable(x, resolve_axis(x.ndim, axis, "argsort"), descending)


def _batch_argsort(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    (x,) = args
    return batch_along_axis(op, args, on, params) if x.ndim > 1 else np.zeros(x.shape, np.intp)


def _infer_sorted_shape(s: Shape, axis: float, descending: bool) -> Shape:
    if s:
        resolve_axis(len(s), axis, "argsort")
    return s


@op(
    _argsort,
    acts=moves(
        _infer_sorted_shape,
        [
            (((5,),), {}), (((2, 3),), {"axis": 0, "descending": True}), (((2, 3, 4),), {"axis": 1}), (((),), {}),
            (((0, 3),), {"axis": 0}),
        ],
        _batch_argsort,
    ),
    d=no_derivative(),
)  # fmt: skip
def argsort(x: TensorLike, /, axis: int = -1, descending: bool = False) -> Any:
    """Return the indices that sort ``x`` along ``axis``; the order of equal elements is kept.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    descending: whether the largest comes first.

    >>> argsort(np.array([3.0, 1.0, 2.0, 1.0]))
    array([1, 3, 2, 0])
    """


@observable
def sort(x: TensorLike, axis: int | None = -1, descending: bool = False) -> Any:
    """Return the elements sorted along ``axis``, or the flattened array sorted.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    descending: whether the largest comes first.

    >>> sort(np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])
    >>> pb.grad(lambda x: pb.sort(x, descending=True)[0])(np.array([3.0, 1.0, 2.0]))
    array([1., 0., 0.])
    """
    x = check_numbers("sort", "x", x)
    if axis is None:
        x, axis = np.reshape(x, -1), -1
    if not x.ndim:
        return x
    at = resolve_axis(x.ndim, axis, "sort")
    if not isinstance(x, Tensor):
        z = np.sort(x, at)
        return np.flip(z, at) if descending else z
    places = argsort(strip(x), at, descending)
    if x.ndim == 1 and type(places) is np.ndarray:
        return x[places]  # which is quicker
    return np.take_along_axis(x, places, at)


def _sort_in_place(
    x: Tensor, axis: int = -1, kind: str | None = None, *, descending: bool = False, stable: bool | None = None
) -> None:
    """Sort a tensor in place along ``axis``, as the method of NumPy's arrays does; ``pb.sort`` gives a new one.

    >>> x = pb.tensor([3.0, 1.0, 2.0])
    >>> x.sort()
    >>> x
    Tensor([1., 2., 3.], dtype=float32)
    """
    write(x, lambda old: sort(old, axis, descending), "x.sort()")


alias("sort", _sort_in_place)

# ---- searching


def _search_sorted(sorted_sequence: Any, values: Any, side: Any = "left") -> Any:
    _infer_search_shape(sorted_sequence.shape, values.shape, side)
    side = side or "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, values, side)).astype(np.int32)
    rows, wanted = (a.reshape(math.prod(a.shape[:-1]), a.shape[-1]) for a in (sorted_sequence, values))
    found = [np.searchsorted(row, some, side) for row, some in zip(rows, wanted, strict=True)]
    return np.array(found, np.int32).reshape(values.shape)


def _batch_search(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    if not on[0] and np.ndim(args[0]) == 1:
        return op.call(args, params)
    sequence, values = broadcast_examples(args, on)
    if sequence.ndim > 2:
        return op.call([sequence, values], params)
    rows = np.reshape(values, (values.shape[0], math.prod(values.shape[1:])))
    return np.reshape(op.call([sequence, rows], params), values.shape)


def _infer_search_shape(sequence: Shape, values: Shape, side: str) -> Shape:
    if side not in ("left", "right", None):
        raise ArgumentError(f"search_sorted: side must be 'left' or 'right', got {side!r}.")
    if not sequence or (len(sequence) > 1 and sequence[:-1] != values[:-1]):
        raise ShapeError(
            f"search_sorted: sorted_sequence has shape {sequence} and values have shape {values}; "
            "sorted_sequence must be a vector, or all axes but the last must agree."
        )
    return values


@op(
    _search_sorted,
    acts=moves(
        _infer_search_shape,
        [
            ((np.array([1.0, 3.0, 5.0]), (4,)), {}), ((np.array([-1.0, 0.0]), (2, 3)), {"side": "right"}),
            ((np.array([[0.0, 1.0], [-1.0, 0.0]]), (2, 3)), {}), ((np.array([0.0]), ()), {}),
            ((np.empty((0, 2)), (0, 3)), {}), ((np.empty(0), (2,)), {}),
        ],
        _batch_search,
    ),
    d=no_derivative(),
    lower=rows("search sorted", np.int32),
)  # fmt: skip
def search_sorted(sorted_sequence: TensorLike, values: TensorLike, /, side: str = "left") -> Any:
    """Return the index at which each value can be inserted to keep the sequence sorted, before or after equal ones.

    sorted_sequence: rows in ascending order.
    values: the values to search for.
    side: ``"left"`` or ``"right"`` of equal elements.

    >>> search_sorted(np.array([1.0, 3.0, 5.0]), np.array([2.0, 5.0]))
    array([1, 2], dtype=int32)
    """


searchsorted = alias("searchsorted", search_sorted)


@method
@rename_errors("lower_bound")
def lower_bound(sorted_sequence: TensorLike, values: TensorLike) -> Any:
    """Return the index of the first element that is not less than each value.

    sorted_sequence: rows in ascending order.
    values: the values to search for.

    >>> lower_bound(np.array([1.0, 3.0, 3.0]), np.array([3.0]))
    array([1], dtype=int32)
    """
    return search_sorted(sorted_sequence, values, "left")


@method
@rename_errors("upper_bound")
def upper_bound(sorted_sequence: TensorLike, values: TensorLike) -> Any:
    """Return the index of the first element that is greater than each value.

    sorted_sequence: rows in ascending order.
    values: the values to search for.

    >>> upper_bound(np.array([1.0, 3.0, 3.0]), np.array([3.0]))
    array([3], dtype=int32)
    """
    return search_sorted(sorted_sequence, values, "right")


# ---- top k


def _in_top_k(predictions: Any, targets: Array, k: Any = 1) -> Any:
    _infer_top_k_shape(predictions.shape, targets.shape, k)
    check_real("in_top_k", predictions, "predictions")
    n = predictions.shape[-1]
    at = targets.astype(np.intp)
    if np.any((at != targets) | (at < 0) | (at >= n)):
        wrong = targets[(at != targets) | (at < 0) | (at >= n)][0]
        raise ArgumentError(f"in_top_k: targets must be whole numbers from 0 to {n - 1}, got {wrong}.")
    chosen = np.take_along_axis(predictions, at[..., None], -1)
    before = np.arange(n) < at[..., None]  # of equal ones the first is the better
    return np.sum((predictions > chosen) | ((predictions == chosen) & before), axis=-1) < (1 if k is None else k)


def _infer_top_k_shape(predictions: Shape, targets: Shape, k: Any) -> Shape:
    if not predictions or predictions[:-1] != targets:
        raise ShapeError(
            f"in_top_k: predictions have shape {predictions} and targets have shape {targets}; "
            f"targets must have the shape of predictions without its last axis."
        )
    k = 1 if k is None else k
    if not hasattr(k, "__index__") or not 0 < k <= predictions[-1]:
        raise ArgumentError(f"in_top_k: k must be from 1 to {predictions[-1]}, the number of classes, got {k!r}.")
    return targets


@op(
    _in_top_k,
    acts=moves(
        _infer_top_k_shape,
        [
            (((3, 4), np.array([0, 3, 1])), {"k": 2}), (((4,), np.array(2)), {}),
            (((2, 1, 3), np.array([[0], [2]])), {"k": 3}), (((0, 3), np.empty(0, int)), {}),
        ],
        batch_aligned_axes,
    ),
    d=no_derivative(),
)  # fmt: skip
def in_top_k(predictions: TensorLike, targets: TensorLike, /, k: int = 1) -> Any:
    """Return whether the score of the target class is among the ``k`` highest ones.

    predictions: scores of the classes, along the last axis.
    targets: the true class of each row.
    k: the number of highest scores.

    >>> in_top_k(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]]), np.array([2, 1]), 2)
    array([ True, False])
    """


# ---- sets


def _find_unique_indices(x: Array, axis: int = 0) -> Any:
    _infer_unique_shape(x.shape, axis)
    first, which = np.unique(x, return_index=True, return_inverse=True, axis=axis)[1:]
    rank = np.empty(len(first), np.int32)  # NumPy's are sorted by value
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.reshape(-1)]


def _infer_unique_shape(s: Shape, axis: int) -> Shape:
    if not s:
        raise ShapeError("unique: x must have at least one axis, got rank 0.")
    return (s[resolve_axis(len(s), axis, "unique")],)


@op(
    _find_unique_indices,
    acts=moves(
        _infer_unique_shape,
        [
            (((5,),), {}), ((np.array([2.0, 1.0, 2.0]),), {}), (((0, 3),), {}),
            ((np.array([[1, 2, 1], [0, 3, 0]]),), {"axis": -1}),
        ],
    ),
    d=no_derivative(),
)  # fmt: skip
def unique_indices(x: TensorLike, /, axis: int = 0) -> Any:
    """Return which of the different slices along ``axis`` each slice is, counted in the order in which they first come.

    >>> unique_indices(np.array([5.0, 3.0, 5.0]))
    array([0, 1, 0], dtype=int32)
    """


class Unique(NamedTuple):
    """The result of ``unique``.

    >>> unique(np.array([5.0, 3.0, 5.0])).indices
    array([0, 1, 0], dtype=int32)
    """

    values: Any
    indices: Any


@method
def unique(x: TensorLike, axis: Axis = 0) -> Unique:
    """Return the distinct slices along ``axis`` in the order of their first occurrence, and the index of each slice.

    The gradient goes to the first of several equal slices.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.

    >>> unique(np.array([5.0, 3.0, 5.0]))
    Unique(values=array([5., 3.]), indices=array([0, 1, 0], dtype=int32))
    """
    x = convert_operand(x, "unique")
    at: Any = 0 if axis is None else axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
    indices = unique_indices(x, at)
    first = np.unique(read_sizes("unique", indices), return_index=True)[1]
    return Unique(np.take(x, first, axis=at), indices)


@op(
    np.isin,
    acts=moves(
        lambda s, t: s,
        [
            ((np.array([1.0, 2.0, 3.0]), np.array([2.0])), {}),
            (((2, 3), (4,)), {}),
            (((), (0,)), {}),
            (((0,), (2,)), {}),
        ],
        lambda op, args, on, params: (batch_one_by_one if on[1] else batch_leading_axes)(op, args, on, params),
    ),
    d=no_derivative(),
    run=lambda element, test_elements: np.isin(element, test_elements)[()],
)
def isin(element: TensorLike, test_elements: TensorLike, /) -> Any:
    """Return whether each element is among the test elements.

    element: the elements to test.
    test_elements: the elements to compare with.

    >>> isin(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0]))
    array([ True, False,  True])
    """


class SetDifference(NamedTuple):
    """The result of ``setdiff1d``.

    >>> setdiff1d(np.array([1.0, 2.0, 3.0]), np.array([2.0])).indices
    array([0, 2], dtype=int32)
    """

    values: Any
    indices: Any


def _check_vector(name: str, argument: str, x: TensorLike) -> Any:
    x = check_numbers(name, argument, x)
    if x.ndim != 1:
        raise ShapeError(f"{name}: {argument} must be a vector, got shape {x.shape}; flatten it first.")
    return x


@method
def setdiff1d(x: TensorLike, y: TensorLike) -> SetDifference:
    """Return the elements of the vector ``x`` that are not in ``y``, in their order, and their indices.

    >>> setdiff1d(np.array([5.0, 2.0, 5.0]), np.array([2.0]))
    SetDifference(values=array([5., 5.]), indices=array([0, 2], dtype=int32))
    """
    x, y = _check_vector("setdiff1d", "x", x), _check_vector("setdiff1d", "y", y)
    indices = np.flatnonzero(~read_sizes("setdiff1d", isin(x, y))).astype(np.int32)
    values: Any = np.take(x, indices, axis=0)
    return SetDifference(values, constant(indices) if isinstance(values, Tensor) else indices)


def _flatten_sets(name: str, x: TensorLike, y: TensorLike) -> tuple[Any, Any]:
    """Return both sets flattened."""
    return np.reshape(check_numbers(name, "x", x), -1), np.reshape(check_numbers(name, "y", y), -1)


def _sort_set(name: str, x: Any, keep: Value) -> Any:
    """Return the sorted distinct elements for which ``keep`` holds."""
    first, keep = np.unique(read_sizes(name, x), return_index=True)[1], read_sizes(name, keep)
    return np.take(x, first[keep[first]], axis=0)


@method
def union1d(x: TensorLike, y: TensorLike) -> Any:
    """Return the sorted distinct elements of ``x`` and ``y``.

    >>> union1d(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    array([1., 2., 3.])
    """
    both = np.concatenate(_flatten_sets("union1d", x, y))
    return _sort_set("union1d", both, np.ones(both.shape, bool))


@method
def intersect1d(x: TensorLike, y: TensorLike) -> Any:
    """Return the sorted distinct elements that are in both ``x`` and ``y``.

    >>> intersect1d(np.array([3.0, 1.0, 2.0]), np.array([1.0, 3.0]))
    array([1., 3.])
    """
    x, y = _flatten_sets("intersect1d", x, y)
    return _sort_set("intersect1d", x, isin(x, y))


@method
def setxor1d(x: TensorLike, y: TensorLike) -> Any:
    """Return the sorted distinct elements that are in exactly one of ``x`` and ``y``.

    x: a tensor or array.
    y: a tensor or array.

    >>> setxor1d(np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    array([2., 3.])
    """
    x, y = _flatten_sets("setxor1d", x, y)
    both = np.concatenate([x, y])
    return _sort_set("setxor1d", both, ~(isin(both, x) & isin(both, y)))
