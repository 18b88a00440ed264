"""Segment reductions, bincount and sparse_to_dense.  Segment numbers carry no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.accelerate import run_compiled_if
from pullback.core.axes import Sample, moves
from pullback.core.calculus import linear, rule
from pullback.core.composition import check_numbers
from pullback.core.convert import as_array
from pullback.core.lowering import call
from pullback.core.op import method, observable, op
from pullback.core.tape import as_tensor
from pullback.core.tensor import Tensor, all_values, concrete, read_sizes, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.adjoints import replace_zeros
from pullback.numerics.batching import broadcast_examples
from pullback.numerics.rows import add_rows

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, DType, ShapeLike, TensorLike, Value

__all__ = [
    "bincount", "dense_bincount", "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
    "sparse_to_dense", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sum",
]  # fmt: skip

Shape = tuple[int, ...]
MIN_COMPILED = 1 << 15  # added elements from which machine code is worth compiling
MIN_COMPILED_ROW = 4  # contiguous elements from which it is faster


def _check_integers(name: str, argument: str, values: TensorLike) -> Any:
    """Return indices given by the user as an array of integers."""
    integers = strip(values)
    if not isinstance(integers, Tensor):
        integers = (
            as_array(integers, subject=f"{name}: {argument}")
            if isinstance(integers, list | tuple)
            else np.asarray(integers)
        )
    listed = isinstance(values, list | tuple | float) and integers.dtype.kind == "f"  # Python's numbers
    if not integers.size or (listed and np.all(integers == np.floor(integers))):
        integers = integers.astype(np.intp)
    if integers.dtype.kind not in "iu":
        raise ArgumentError(
            f"{name}: {argument} must be integers, got {integers.dtype} of shape {integers.shape}; cast them to int32."
        )
    return integers.astype(np.intp)


def _check_length(name: str, argument: str, n: Any) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 0:
        raise ArgumentError(f"{name}: {argument} must be an integer >= 0, got {n!r}.")
    return int(n)


# ---- in any order


def _find_slice_shape(name: str, x: Shape, ids: Shape) -> Shape:
    """Return the axes of ``x`` after those of the segment numbers."""
    if x[: len(ids)] != ids:
        raise ShapeError(
            f"{name}: x has shape {x} and segment_ids have shape {ids}; x must begin with the axes of segment_ids."
        )
    return x[len(ids) :]


def _mask_members(ids: Array, n: int) -> Any:
    """Return a mask of the elements that belong to a segment, or None if all do."""
    if not ids.size or (ids.min() >= 0 and ids.max() < n):
        return None
    return (ids >= 0) & (ids < n)


def _list_members(name: str, x: Value, segment_ids: Value, num_segments: float) -> tuple[Any, Any, int]:
    """Return the elements that belong to a segment as rows, their segments, and the number of segments."""
    ids, n = _check_integers(name, "segment_ids", segment_ids), _check_length(name, "num_segments", num_segments)
    rest = _find_slice_shape(name, x.shape, ids.shape)
    inside = _mask_members(ids, n)
    if inside is None:
        return x.reshape(ids.size, *rest), ids.reshape(-1), n
    return x[inside], ids[inside], n


def _sum_segments(x: Array, segment_ids: Array, num_segments: int) -> Any:
    rows, ids, n = _list_members("unsorted_segment_sum", x, segment_ids, num_segments)
    if rows.dtype.kind == "b":
        rows = rows.astype(np.int32)
    e = np.zeros((n, *rows.shape[1:]), rows.dtype)
    if rows.size:
        add_rows(e, ids, rows, True)
    return e


def _is_worth_compiling(x: Array, segment_ids: Array, num_segments: float) -> bool:
    are_integers = type(segment_ids) is np.ndarray and segment_ids.dtype.kind == "i"
    return are_integers and x.size >= max(MIN_COMPILED, MIN_COMPILED_ROW * segment_ids.size)


def _spread_segments(x: Array, segment_ids: Array) -> Any:
    ids = np.asarray(segment_ids).astype(np.intp)
    inside = _mask_members(ids, x.shape[0])
    if inside is None:
        return np.take(x, ids, axis=0)
    if not inside.any():
        return np.zeros(ids.shape + x.shape[1:], x.dtype)
    taken = np.take(x, np.where(inside, ids, 0), axis=0)
    return np.where(inside.reshape(ids.shape + (1,) * (x.ndim - 1)), taken, np.zeros((), x.dtype))


def _number_in_all_examples(ids: Array, n: int) -> Any:
    """Return segment numbers of each example as numbers in all examples."""
    own = np.reshape(np.arange(ids.shape[0]) * n, (-1,) + (1,) * (ids.ndim - 1))
    return np.where((ids >= 0) & (ids < n), ids + own, -1)


def _batch_segments(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    if not on[1]:  # the examples are one more axis of the slices
        x, ids = args
        return np.moveaxis(op.call([np.moveaxis(x, 0, np.ndim(ids)), ids], params), 1, 0)
    x, ids = broadcast_examples(args, on)
    n = _check_length(op.name, "num_segments", params["num_segments"])
    z = op.call([x, _number_in_all_examples(ids, n)], {"num_segments": len(ids) * n})
    return np.reshape(z, (len(ids), n, *z.shape[1:]))


def _batch_spread(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    x, ids = args
    if not on[0]:
        return op.call(args, params)
    if not on[1]:
        return np.moveaxis(op.call([np.moveaxis(x, 0, 1), ids], params), np.ndim(ids), 0)
    return op.call(
        [np.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])), _number_in_all_examples(ids, x.shape[1])], params
    )


def _spread_vjp(g: Value, x_shape: Shape, segment_ids: Value) -> Any:
    return unsorted_segment_sum(g, segment_ids, x_shape[0])


@op(
    _spread_segments,
    acts=moves(
        lambda s, ids: ids + s[1:],
        [
            (((4,), np.array([2, 0, 2, 0, 0])), {}), (((2, 3), np.array([[1, 1], [0, -1]])), {}),
            (((3,), np.array(1)), {}), (((2, 2), np.empty(0, int)), {}), (((2,), np.array([-1, 5])), {}),
        ],
        _batch_spread,
    ),
    d=linear(_spread_vjp, None),
    lower=call("spread"),
)  # fmt: skip
def segment_spread(x: TensorLike, segment_ids: TensorLike, /) -> Any:
    """Return for each element the value of its segment, 0 if it is in none: the adjoint of the sum.

    >>> segment_spread(np.array([5.0, 6.0]), np.array([1, 0, 1, -1]))
    array([6., 5., 6., 0.])
    """


def _infer_segments_shape(x: Shape, ids: Shape, num_segments: float) -> Shape:
    return (
        _check_length("unsorted_segment_sum", "num_segments", num_segments),
        *_find_slice_shape("unsorted_segment_sum", x, ids),
    )


SAMPLES: list[Sample] = [
    (((5,), np.array([2, 0, 2, 0, 0])), {"num_segments": 4}), (((3, 2), np.array([1, 1, 0])), {"num_segments": 2}),
    (((2, 3, 2), np.array([[0, 3, 1], [1, 0, 3]])), {"num_segments": 4}),
    (((4, 2), np.array([0, -1, 5, 0])), {"num_segments": 3}), (((0, 2), np.empty(0, int)), {"num_segments": 2}),
    (((), np.array(1)), {"num_segments": 2}), (((2,), np.array([-1, 3])), {"num_segments": 0}),
]  # fmt: skip
# Every segment has elements here: the limits that stand for nothing are other ones for each dtype.
FULL: list[Sample] = [
    (((5,), np.array([2, 0, 2, 1, 0])), {"num_segments": 3}), (((3, 2), np.array([1, 1, 0])), {"num_segments": 2}),
    (((2, 3, 2), np.array([[0, 2, 1], [1, 0, 2]])), {"num_segments": 3}),
    (((4, 2), np.array([0, -1, 5, 0])), {"num_segments": 1}), (((0, 2), np.empty(0, int)), {"num_segments": 0}),
    (((), np.array(0)), {"num_segments": 1}),
]  # fmt: skip


@op(
    _sum_segments,
    acts=moves(_infer_segments_shape, SAMPLES, _batch_segments),
    d=linear(lambda g, segment_ids: segment_spread(g, segment_ids), None),
    run=run_compiled_if(_is_worth_compiling, _sum_segments),
    lower=call("segments"),
)
def unsorted_segment_sum(x: TensorLike, segment_ids: TensorLike, /, num_segments: int) -> Any:
    """Return the sum of each segment; ``segment_ids`` has the segment of each slice of ``x`` along its first axis.

    Slices whose number is negative or at least ``num_segments`` are in no segment and are left out.

    >>> unsorted_segment_sum(np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 0, 1, -1]), 2)
    array([2., 5.])
    """


def _make_extreme(ufunc: np.ufunc, name: str, sign: int) -> Any:
    """Return the kernel of a segment maximum or minimum; an empty segment gets the identity of the reduction."""

    def run(x: Array, segment_ids: Array, num_segments: int) -> Any:
        rows, ids, n = _list_members(name, x, segment_ids, num_segments)
        if rows.dtype.kind == "f":
            limit = sign * np.finfo(rows.dtype).max
        else:
            limit = np.iinfo(rows.dtype).max if sign > 0 else np.iinfo(rows.dtype).min
        e = np.full((n, *rows.shape[1:]), limit, rows.dtype)
        if rows.size:
            order = np.argsort(ids, kind="stable")
            named, starts = np.unique(ids[order], return_index=True)
            e[named] = ufunc.reduceat(rows[order], starts, axis=0)
        return e

    return run


def _share_among_ties(x: Value, z: Value, segment_ids: Value) -> Any:
    """Return the share of each element in the extreme of its segment, equal among ties."""
    x, z, ids = strip(x), strip(z), strip(segment_ids)
    hit = (x == segment_spread(z, ids)).astype(z.dtype)
    return hit / replace_zeros(segment_spread(unsorted_segment_sum(hit, ids, z.shape[0]), ids))


def _push_extreme(dx: Array, x: Array, z: Array, segment_ids: Array, num_segments: int) -> Any:
    return unsorted_segment_sum(dx * _share_among_ties(x, z, segment_ids), segment_ids, num_segments)


def _pull_extreme(g: Value, x: Value, z: Value, segment_ids: Value) -> Any:
    return segment_spread(g, segment_ids) * _share_among_ties(x, z, segment_ids)


_max, _min = _make_extreme(np.maximum, "unsorted_segment_max", -1), _make_extreme(np.minimum, "unsorted_segment_min", 1)


@op(
    _max,
    acts=moves(_infer_segments_shape, FULL, _batch_segments),
    d=rule(_pull_extreme, None, jvp=_push_extreme),
    lower=call("largest of segments"),
)
def unsorted_segment_max(x: TensorLike, segment_ids: TensorLike, /, num_segments: int) -> Any:
    """Return the maximum of each segment, the lowest number if it is empty; equal maxima share the gradient.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.
    num_segments: how many segments there are.

    >>> unsorted_segment_max(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), 2)
    array([2., 4.])
    """


@op(
    _min,
    acts=moves(_infer_segments_shape, FULL, _batch_segments),
    d=rule(_pull_extreme, None, jvp=_push_extreme),
    lower=call("smallest of segments"),
)
def unsorted_segment_min(x: TensorLike, segment_ids: TensorLike, /, num_segments: int) -> Any:
    """Return the minimum of each segment, the highest number if it is empty; equal minima share the gradient.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.
    num_segments: how many segments there are.

    >>> unsorted_segment_min(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), 2)
    array([2., 1.])
    """


def _count_members(ids: Value, n: int, rank: int, dtype: DType) -> Any:
    """Return the number of elements of each segment, shaped to broadcast against slices of this rank."""
    return np.reshape(unsorted_segment_sum(np.ones(ids.shape, dtype), ids, n), (n,) + (1,) * rank)


@method
def unsorted_segment_mean(x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Any:
    """Return the mean of each segment, 0 if it is empty.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.
    num_segments: how many segments there are.

    >>> unsorted_segment_mean(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), 3)
    array([2. , 2.5, 0. ])
    """
    name = "unsorted_segment_mean"
    x, ids = check_numbers(name, "x", x), _check_integers(name, "segment_ids", segment_ids)
    _find_slice_shape(name, x.shape, ids.shape)
    z = unsorted_segment_sum(x, ids, _check_length(name, "num_segments", num_segments))
    dtype = z.dtype if z.dtype.kind in "fc" else np.dtype(np.float64)  # as the mean of integers has
    return np.astype(z, dtype) / np.maximum(_count_members(ids, z.shape[0], z.ndim - 1, dtype), 1)


@method
def unsorted_segment_prod(x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Any:
    """Return the product of each segment, 1 if it is empty; the gradient is correct where elements are 0.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.
    num_segments: how many segments there are.

    >>> unsorted_segment_prod(np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), 3)
    array([2., 4., 1.])
    """
    name = "unsorted_segment_prod"
    x, ids = check_numbers(name, "x", x), _check_integers(name, "segment_ids", segment_ids)
    n = _check_length(name, "num_segments", num_segments)
    rest = _find_slice_shape(name, x.shape, ids.shape)
    if isinstance(ids, Tensor):  # other segments in each example
        chosen = np.reshape(ids, (-1, 1) + (1,) * len(rest)) == np.reshape(np.arange(n), (n,) + (1,) * len(rest))
        return np.prod(np.where(chosen, np.reshape(x, (ids.size, 1, *rest)), np.ones((), x.dtype)), axis=0)
    row = np.ones((1, *rest), x.dtype)  # a padding row of ones
    flat = ids.reshape(-1)
    order = np.argsort(flat, kind="stable")
    order = order[(flat[order] >= 0) & (flat[order] < n)]
    counts = np.bincount(flat[order], minlength=n)
    rows = np.take(np.reshape(x, (ids.size, *rest)), order, axis=0)
    # Neighbours are multiplied in pairs until every segment is one row, without division.
    while True:
        nothing, starts, half = rows.shape[0], np.cumsum(counts) - counts, np.maximum((counts + 1) // 2, 1)
        segment = np.repeat(np.arange(n), half)
        left = 2 * (np.arange(half.sum()) - np.repeat(np.cumsum(half) - half, half))
        rows = np.concatenate([rows, row])
        pick = [np.where(at < counts[segment], starts[segment] + at, nothing) for at in (left, left + 1)]
        rows, counts = np.take(rows, pick[0], axis=0) * np.take(rows, pick[1], axis=0), half
        if not n or half.max() == 1:
            return rows


# ---- in order


def _check_sorted(name: str, x: TensorLike, segment_ids: TensorLike) -> tuple[Any, Any, int]:
    known = read_sizes(name, segment_ids, f"Use unsorted_{name}, which takes the number of segments, or")
    x, ids = check_numbers(name, "x", x), _check_integers(name, "segment_ids", known)
    if ids.ndim != 1 or x.shape[:1] != ids.shape:
        raise ShapeError(
            f"{name}: segment_ids must be a vector, one number for each slice of x along its first axis; "
            f"x has shape {x.shape} and segment_ids have shape {ids.shape}."
        )
    if ids.size and (ids[0] < 0 or (np.diff(ids) < 0).any()):
        raise ArgumentError(f"{name}: segment_ids must be sorted and >= 0, got {ids[:8]}; use unsorted_{name}.")
    return x, ids, int(ids[-1]) + 1 if ids.size else 0


def _replace_empty(z: Value, ids: Array, n: int) -> Any:
    """Return 0 for segments without elements."""
    return np.where(_count_members(ids, n, z.ndim - 1, np.float32) > 0, z, np.zeros((), z.dtype))


@method
def segment_sum(x: TensorLike, segment_ids: TensorLike) -> Any:
    """Return the sum of each run of slices with the same number; the numbers are sorted.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.

    >>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]))
    array([3., 0., 4.])
    """
    return unsorted_segment_sum(*_check_sorted("segment_sum", x, segment_ids))


@method
def segment_mean(x: TensorLike, segment_ids: TensorLike) -> Any:
    """Return the mean of each run of slices with the same number; the numbers are sorted.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.

    >>> segment_mean(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]))
    array([1.5, 0. , 4. ])
    """
    return unsorted_segment_mean(*_check_sorted("segment_mean", x, segment_ids))


@method
def segment_prod(x: TensorLike, segment_ids: TensorLike) -> Any:
    """Return the product of each run of slices with the same number; the numbers are sorted.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.

    >>> segment_prod(np.array([3.0, 2.0, 4.0]), np.array([0, 0, 2]))
    array([6., 1., 4.])
    """
    return unsorted_segment_prod(*_check_sorted("segment_prod", x, segment_ids))


@method
def segment_max(x: TensorLike, segment_ids: TensorLike) -> Any:
    """Return the maximum of each run of slices with the same number; the numbers are sorted, a missing one gives 0.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.

    >>> segment_max(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]))
    array([2., 0., 4.])
    """
    x, ids, n = _check_sorted("segment_max", x, segment_ids)
    return _replace_empty(unsorted_segment_max(x, ids, n), ids, n)


@method
def segment_min(x: TensorLike, segment_ids: TensorLike) -> Any:
    """Return the minimum of each run of slices with the same number; the numbers are sorted, a missing one gives 0.

    x: a tensor, an array or a number.
    segment_ids: an integer for each row: the segment it belongs to.

    >>> segment_min(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]))
    array([1., 0., 4.])
    """
    x, ids, n = _check_sorted("segment_min", x, segment_ids)
    return _replace_empty(unsorted_segment_min(x, ids, n), ids, n)


# ---- counting


def _read_bincount_arguments(
    name: str, x: TensorLike, weights: TensorLike | None, size: int | None
) -> tuple[Value, Value, int]:
    """Return the checked numbers, their weights, and the number of bins."""
    found = _check_integers(name, "x", x if size is not None else read_sizes(name, x, "Give the size, or"))
    if (least := all_values(found).min(initial=0)) < 0:
        raise ArgumentError(f"{name}: x must not be negative, got {least}.")
    bins = int(found.max(initial=-1)) + 1 if size is None else _check_length(name, "size", size)
    weights = np.ones(found.shape, np.int32) if weights is None else check_numbers(name, "weights", weights)
    if not prod(weights.shape) and found.size:
        weights = np.ones(found.shape, weights.dtype)
    if prod(weights.shape) != found.size:
        raise ShapeError(
            f"{name}: x has shape {found.shape} and weights have shape {weights.shape}; there must be one weight "
            "for each number, or none at all."
        )
    return found, np.reshape(weights, found.shape), bins


@observable
def bincount(x: TensorLike, weights: TensorLike | None = None, size: int | None = None) -> Any:
    """Return how often each number from 0 to ``size - 1`` is in ``x``, or the sum of its weights.

    x: a tensor, an array or a number.
    weights: how much each element counts.
    size: how many bins there are.

    >>> bincount(np.array([1, 1, 3]), np.array([0.5, 1.0, 2.0]), 4)
    array([0. , 1.5, 0. , 2. ])
    """
    found, weights, bins = _read_bincount_arguments("bincount", x, weights, size)
    return unsorted_segment_sum(np.reshape(weights, -1), np.reshape(found, -1), bins)


@observable
def dense_bincount(
    x: TensorLike, weights: TensorLike | None = None, size: int | None = None, binary_output: bool = False
) -> Any:
    """Return ``bincount`` of a vector or of each row of a matrix; with ``binary_output``, 1 for numbers that occur.

    x: a tensor, an array or a number.
    weights: how much each element counts.
    size: how many bins there are.
    binary_output: whether the result is 1 for numbers that occur and 0 for others, instead of counts.

    >>> dense_bincount(np.array([[1, 1, 0], [2, 2, 2]]), None, 3)
    array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    found, weights, bins = _read_bincount_arguments("dense_bincount", x, weights, size)
    if found.ndim not in (1, 2):
        raise ShapeError(f"dense_bincount: x must have rank 1 or 2, got shape {found.shape}.")
    rows = prod(found.shape[:-1])
    at = np.reshape(np.where(found < bins, found + bins * np.arange(rows)[:, None], -1), -1)
    if binary_output:
        there = unsorted_segment_sum(np.ones(at.shape, bool), at, rows * bins) > 0
        return np.reshape(there.astype(weights.dtype), (*found.shape[:-1], bins))
    return np.reshape(unsorted_segment_sum(np.reshape(weights, -1), at, rows * bins), (*found.shape[:-1], bins))


# ---- from coordinates and values


@observable
def sparse_to_dense(
    sparse_indices: TensorLike, sparse_values: TensorLike, output_shape: ShapeLike, default_value: TensorLike | None = 0
) -> Any:
    """Return an array with values at these coordinates, the last one of repeated ones, and a default value elsewhere.

    sparse_indices: the positions, as rows.
    sparse_values: the value at each position.
    output_shape: the shape of the result.
    default_value: the value elsewhere.

    >>> sparse_to_dense(np.array([[0, 1], [1, 0]]), np.array([5.0, 6.0]), [2, 2])
    array([[0., 5.],
           [6., 0.]])
    """
    name = "sparse_to_dense"
    at, values = (
        _check_integers(name, "sparse_indices", sparse_indices),
        check_numbers(name, "sparse_values", sparse_values),
    )
    shape = tuple(_check_length(name, "output_shape", n) for n in np.atleast_1d(concrete(output_shape)))
    if at.ndim > 2 or len(shape) != (at.shape[1] if at.ndim == 2 else 1):
        raise ShapeError(
            f"{name}: sparse_indices have shape {at.shape} and output_shape is {shape}; each row of sparse_indices "
            f"holds the coordinates of one value, so output_shape must have as many axes."
        )
    at = np.reshape(at, (-1, len(shape)))
    if values.shape not in ((), (len(at),)):
        raise ShapeError(
            f"{name}: sparse_values have shape {values.shape}; for sparse_indices of shape {at.shape} they must be "
            f"one number, or {len(at)} in a vector."
        )
    every = all_values(at).reshape(-1, len(shape))
    wrong = ((every < 0) | (every >= np.array(shape, np.intp))).any(axis=1)
    if wrong.any():
        raise ShapeError(f"{name}: sparse_indices {every[wrong][0].tolist()} are outside of output_shape {shape}.")
    default = check_numbers(name, "default_value", 0.0 if default_value is None else default_value)
    if default.shape:
        raise ShapeError(f"{name}: default_value must be one number, got shape {default.shape}.")
    if isinstance(at, Tensor):  # other coordinates in each example
        fresh = as_tensor(np.broadcast_to(default.astype(values.dtype), shape))
        return fresh.tensor_scatter_update(at, np.broadcast_to(values, (len(at),)))
    both = np.concatenate([np.reshape(values, -1), np.reshape(default, -1).astype(values.dtype)])
    source = np.full(prod(shape), both.shape[0] - 1)  # which element goes where; the default is the last
    source[np.ravel_multi_index(tuple(at.T), shape)] = np.arange(len(at)) if values.shape else 0
    return np.reshape(np.take(both, source, axis=0), shape)
