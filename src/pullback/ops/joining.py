"""Concatenation, stacking, splitting and slicing."""

from __future__ import annotations

from builtins import slice as cut  # "slice" is a function of ours
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.axes import moves
from pullback.core.calculus import linear
from pullback.core.lowering import pieces
from pullback.core.op import alias, check_rank, convert_operand, method, op
from pullback.core.tensor import Tensor, concrete, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.batching import batch_along_axis, broadcast_examples

if TYPE_CHECKING:
    from pullback.typing import Axis, Lengths, TensorLike, Value

__all__ = [
    "concat", "concat1d", "concat2d", "concat3d", "concat4d", "concatenate", "slice", "slice1d", "slice2d", "slice3d",
    "slice4d", "split", "stack", "strided_slice", "unstack",
]  # fmt: skip

ALL = cut(None)


# ---- joining


def _infer_concat_shape(*shapes: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    if not shapes:
        raise ArgumentError("concat: expected at least one tensor, got an empty list.")
    if axis is None:
        return (sum(int(np.prod(s)) for s in shapes),)
    at = resolve_axis(len(shapes[0]), axis, "concat")
    for i, s in enumerate(shapes):
        if len(s) != len(shapes[0]) or any(
            n != m for k, (n, m) in enumerate(zip(s, shapes[0], strict=True)) if k != at
        ):
            raise ShapeError(
                f"concat: tensors[0] has shape {shapes[0]} and tensors[{i}] has shape {s}; "
                f"all lengths but that of axis {at} must be the same."
            )
    return (*shapes[0][:at], sum(s[at] for s in shapes), *shapes[0][at + 1 :])


def _split_cotangent(g: Any, shapes: list[tuple[int, ...]], axis: Any) -> list[Any]:
    """Split the cotangent into the part of each input."""
    lead, at, parts = (), 0, []
    if axis is not None:
        lead = (ALL,) * (axis % g.ndim)
    for s in shapes:
        n = int(np.prod(s)) if axis is None else s[axis]
        part = g[(*lead, cut(at, at + n))]
        parts.append(np.reshape(part, s) if axis is None else part)
        at += n
    return parts


def _list_slices(shapes: Sequence[Any], axis: int | None) -> list[Any]:
    """Return the slice of each tensor in the joined one."""
    if axis is None:
        return [np.empty(0, int) for _ in shapes]
    at, places = 0, []
    before = (np.s_[:],) * (axis % len(shapes[0]))
    for shape in shapes:
        n = shape[axis]
        places.append((*before, np.s_[at : at + n]))
        at += n
    return places


def _join_each(op: Any, args: Sequence[Any], on: Any, params: Mapping[str, Any]) -> Any:
    if params["axis"] is not None:
        return batch_along_axis(op, args, on, params)
    return op.call([np.reshape(x, (x.shape[0], prod(x.shape[1:]))) for x in broadcast_examples(args, on)], {"axis": 1})


@op(
    np.concatenate,
    acts=moves(
        _infer_concat_shape,
        [
            (((2,), (3,)), {}), (((2, 2), (1, 2)), {"axis": 0}), (((2, 1), (2, 3), (2, 2)), {"axis": -1}),
            (((2,), (0,)), {}), (((3,),), {}), (((2, 2), ()), {"axis": None}),
        ],
        _join_each,
    ),
    d=linear(each=lambda g, tensors_shapes, axis: _split_cotangent(g, tensors_shapes, axis)),
    run=lambda tensors, axis=0: np.concatenate(tensors, axis),
    lower=pieces(lambda shapes, axis: _list_slices(shapes, axis)),
)  # fmt: skip
def concat(tensors: Sequence[TensorLike] | Value, /, axis: Axis = 0) -> Any:
    """Return the tensors concatenated along an existing axis.

    tensors: a list of tensors or arrays.
    axis: the axis along which they are joined.

    >>> concat([np.array([1.0, 2.0]), np.array([3.0])])
    array([1., 2., 3.])
    """


concatenate = alias("concatenate", concat)


def _make_concat_of_rank(name: str, rank: int, tensors: Sequence[TensorLike] | Value, axis: int) -> Any:
    if not isinstance(tensors, list | tuple):
        raise ArgumentError(f"{name}: tensors must be a list of tensors, got {type(tensors).__name__}.")
    return concat([check_rank(name, t, rank, f"tensors[{i}]") for i, t in enumerate(tensors)], axis)


def concat1d(tensors: Sequence[TensorLike] | Value) -> Any:
    """Return concatenated vectors.

    tensors: a list of tensors or arrays.

    >>> concat1d([np.array([1.0]), np.array([2.0])])
    array([1., 2.])
    """
    return _make_concat_of_rank("concat1d", 1, tensors, 0)


def concat2d(tensors: Sequence[TensorLike] | Value, axis: int = 0) -> Any:
    """Return ``concat`` of tensors of rank 2.

    tensors: a list of tensors or arrays.
    axis: the axis along which they are joined.

    >>> concat2d([np.ones((1, 2)), np.ones((1, 3))], 1).shape
    (1, 5)
    """
    return _make_concat_of_rank("concat2d", 2, tensors, axis)


def concat3d(tensors: Sequence[TensorLike] | Value, axis: int = 0) -> Any:
    """Return ``concat`` of tensors of rank 3.

    tensors: a list of tensors or arrays.
    axis: the axis along which they are joined.

    >>> concat3d([np.ones((1, 1, 2)), np.ones((1, 1, 3))], 2).shape
    (1, 1, 5)
    """
    return _make_concat_of_rank("concat3d", 3, tensors, axis)


def concat4d(tensors: Sequence[TensorLike] | Value, axis: int = 0) -> Any:
    """Return ``concat`` of tensors of rank 4.

    tensors: a list of tensors or arrays.
    axis: the axis along which they are joined.

    >>> concat4d([np.ones((1, 1, 1, 2)), np.ones((1, 1, 1, 3))], 3).shape
    (1, 1, 1, 5)
    """
    return _make_concat_of_rank("concat4d", 4, tensors, axis)


def _method_concat(x: Tensor, others: TensorLike, axis: int = 0) -> Any:
    """Return ``x.concat(y)`` and ``x.concat([y, z])``, as in TensorFlow.js."""
    return concat([x, *others] if isinstance(others, list | tuple) else [x, others], axis)


alias("concat", _method_concat)
alias("concatenate", _method_concat)


def _infer_stack_shape(*shapes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    if not shapes:
        raise ArgumentError("stack: expected at least one tensor, got an empty list.")
    for i, s in enumerate(shapes):
        if s != shapes[0]:
            raise ShapeError(
                f"stack: tensors[0] has shape {shapes[0]} and tensors[{i}] has shape {s}; they must be the same."
            )
    at = resolve_axis(len(shapes[0]) + 1, axis, "stack")
    return (*shapes[0][:at], len(shapes), *shapes[0][at:])


def _split_layers(g: Any, axis: int) -> list[Any]:
    lead = (ALL,) * (axis % g.ndim)
    return [g[(*lead, i)] for i in range(g.shape[axis])]


def _list_layers(shapes: Sequence[tuple[int, ...]], axis: int) -> list[Any]:
    """Return where each tensor is in the stack."""
    lead = (ALL,) * (axis % (len(shapes[0]) + 1))
    return [(*lead, i) for i in range(len(shapes))]


def _stack_each(op: Any, args: Sequence[Any], on: Any, params: Mapping[str, Any]) -> Any:
    many = broadcast_examples(args, on)
    return op.call(many, {"axis": resolve_axis(np.ndim(many[0]), params["axis"], "stack") + 1})


@op(
    np.stack,
    acts=moves(
        _infer_stack_shape,
        [
            (((3,), (3,)), {}), (((3,), (3,)), {"axis": 1}), (((2, 2), (2, 2), (2, 2)), {"axis": -1}), (((), ()), {}),
            (((0, 2), (0, 2)), {"axis": 1}),
        ],
        _stack_each,
    ),
    d=linear(each=lambda g, axis: _split_layers(g, axis)),
    run=lambda tensors, axis=0: np.stack(tensors, axis),
    lower=pieces(_list_layers),
)  # fmt: skip
def stack(tensors: Sequence[TensorLike] | Value, /, axis: int = 0) -> Any:
    """Return the tensors stacked along a new axis.

    tensors: a list of tensors or arrays.
    axis: where the new axis is.

    >>> stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])], axis=1)
    array([[1., 3.],
           [2., 4.]])
    """


def _method_stack(x: Tensor, others: TensorLike, axis: int = 0) -> Any:
    """Return ``x.stack(y)`` and ``x.stack([y, z])``, as in TensorFlow.js."""
    return stack([x, *others] if isinstance(others, list | tuple) else [x, others], axis)


alias("stack", _method_stack)

# ---- splitting


@method
def unstack(x: TensorLike, axis: Axis = 0) -> list[Any]:
    """Return the list of the slices along ``axis``: the inverse of ``stack``.

    x: a tensor, an array or a number.
    axis: the axis that is removed.

    >>> unstack(np.array([[1.0, 2.0], [3.0, 4.0]]))
    [array([1., 2.]), array([3., 4.])]
    """
    x = convert_operand(x, "unstack")
    at = resolve_axis(x.ndim, 0 if axis is None else axis, "unstack")
    return [x[(ALL,) * at + (i,)] for i in range(x.shape[at])]


@method
def split(x: TensorLike, num_or_size_splits: Lengths, axis: Axis = 0) -> list[Any]:
    """Return ``x`` split along ``axis`` into equal parts, or into parts of given lengths (one may be -1).

    x: a tensor, an array or a number.
    num_or_size_splits: how many equal parts, or a list with the length of each.
    axis: the axis; a negative one counts from the last.

    >>> split(np.arange(5.0), [2, -1])
    [array([0., 1.]), array([2., 3., 4.])]
    """
    x = convert_operand(x, "split")
    at = resolve_axis(x.ndim, 0 if axis is None else axis, "split")
    lead, begin, parts = (ALL,) * at, 0, []
    for n in _resolve_sizes(x.shape, num_or_size_splits, at):
        parts.append(x[(*lead, cut(begin, begin + n))])
        begin += n
    return parts


def _resolve_sizes(shape: tuple[int, ...], wanted: object, axis: int) -> list[int]:
    n = shape[axis]
    if not isinstance(wanted, list | tuple | ndarray):
        (pieces,) = _as_integers("split", "num_or_size_splits", wanted)
        if pieces < 1 or n % pieces:
            raise ShapeError(
                f"split: x has shape {shape}; axis {axis} of length {n} cannot be cut into {pieces} equal pieces."
            )
        return [n // pieces] * pieces
    sizes = _as_integers("split", "num_or_size_splits", wanted)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = n - sum(sizes) - 1
    if sum(sizes) != n or min(sizes, default=0) < 0:
        raise ShapeError(
            f"split: x has shape {shape}; the lengths {[*wanted]} must add up to the length {n} of axis {axis}, "
            "with at most one -1 to be inferred."
        )
    return sizes


@method
def slice(x: TensorLike, begin: Lengths, size: Lengths | None = None) -> Any:
    """Return the block of ``x`` that starts at ``begin`` and has the lengths ``size``; -1 means up to the end.

    >>> slice(np.arange(12.0).reshape(3, 4), [1, 1], [-1, 2])
    array([[ 5.,  6.],
           [ 9., 10.]])
    """
    x = convert_operand(x, "slice")
    shape = x.shape
    sizes = [] if size is None else _as_integers("slice", "size", size)
    if any(isinstance(strip(a), Tensor) for a in (begin if isinstance(begin, list | tuple) else [begin])):
        return _slice_each(x, begin, sizes)
    begins = _as_integers("slice", "begin", begin)
    if max(len(begins), len(sizes)) > len(shape):
        raise ShapeError(f"slice: x has shape {shape}; begin {begin!r} and size {size!r} name more axes than that.")
    index = []
    for i, n in enumerate(shape):
        a = begins[i] if i < len(begins) else 0
        k = sizes[i] if i < len(sizes) else -1
        a = a + n if a < 0 else a
        k = n - a if k == -1 else k
        if a < 0 or k < 0 or a + k > n:
            raise ShapeError(
                f"slice: x has shape {shape}; begin {begin!r} with size {size!r} goes beyond axis {i} of length {n}."
            )
        index.append(cut(a, a + k))
    return x[tuple(index)]


def _slice_each(x: Any, begin: Any, sizes: list[int]) -> Any:
    """Batch a slice that begins elsewhere in each example; its lengths must be known."""
    for axis, a in enumerate(begin if isinstance(begin, list | tuple) or begin.ndim else [begin]):
        n, k = x.shape[axis], sizes[axis] if axis < len(sizes) else -1
        x = np.take(x, np.where(a < 0, a + n, a) + np.arange(n - int(a) % n if k == -1 else k), axis=axis)
    return x


def _as_integers(name: str, argument: str, values: Any) -> list[int]:
    """Return one or several integers as a list."""
    listed = concrete(values)
    listed = (
        [*listed] if isinstance(listed, list | tuple) or (isinstance(listed, ndarray) and listed.ndim) else [listed]
    )
    listed = [concrete(n) for n in listed]
    if not all(isinstance(n, int | float | np.number | ndarray) and float(n).is_integer() for n in listed):
        raise ArgumentError(f"{name}: {argument} must be integers, got {values!r}.")
    return [int(n) for n in listed]


@method
def slice1d(x: TensorLike, begin: Lengths, size: Lengths | None = None) -> Any:
    """Return ``slice`` of a vector.

    x: a tensor, an array or a number.
    begin: where the slice begins.
    size: how long the slice is.

    >>> slice1d(np.arange(4.0), 1, 2)
    array([1., 2.])
    """
    return slice(check_rank("slice1d", x, 1), begin, size)


@method
def slice2d(x: TensorLike, begin: Lengths, size: Lengths | None = None) -> Any:
    """Return ``slice`` of a tensor of rank 2.

    x: a tensor, an array or a number.
    begin: where the slice begins.
    size: how long the slice is.

    >>> slice2d(np.ones((3, 4)), [1, 1], [2, 2]).shape
    (2, 2)
    """
    return slice(check_rank("slice2d", x, 2), begin, size)


@method
def slice3d(x: TensorLike, begin: Lengths, size: Lengths | None = None) -> Any:
    """Return ``slice`` of a tensor of rank 3.

    x: a tensor, an array or a number.
    begin: where the slice begins.
    size: how long the slice is.

    >>> slice3d(np.ones((3, 4, 5)), [1, 1, 1], [2, 2, 2]).shape
    (2, 2, 2)
    """
    return slice(check_rank("slice3d", x, 3), begin, size)


@method
def slice4d(x: TensorLike, begin: Lengths, size: Lengths | None = None) -> Any:
    """Return ``slice`` of a tensor of rank 4.

    x: a tensor, an array or a number.
    begin: where the slice begins.
    size: how long the slice is.

    >>> slice4d(np.ones((3, 4, 5, 6)), [1, 1, 1, 1], [2, 2, 2, 2]).shape
    (2, 2, 2, 2)
    """
    return slice(check_rank("slice4d", x, 4), begin, size)


@method
def strided_slice(
    x: TensorLike, begin: Lengths, end: Lengths, strides: Lengths | None = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Any:  # fmt: skip
    """Return ``x[begin:end:strides]`` along each axis; bit ``i`` of a mask changes what entry ``i`` means.

    x: a tensor, an array or a number.
    begin: where each axis begins.
    end: the end along each axis, which is not included.
    strides: the steps.
    begin_mask: bits: axes whose ``begin`` is not used.
    end_mask: bits: axes whose ``end`` is not used.
    ellipsis_mask: the bit of the place that stands for all further axes.
    new_axis_mask: bits: places with a new axis of length 1.
    shrink_axis_mask: bits: axes that are indexed by ``begin`` alone and dropped.

    >>> strided_slice(np.arange(6.0), [1], [5], [2])
    array([1., 3.])
    >>> strided_slice(np.arange(6.0), [4], [0], [-1], end_mask=1)
    array([4., 3., 2., 1., 0.])
    """
    name = "strided_slice"
    x = convert_operand(x, name)
    begins, ends = _as_integers(name, "begin", begin), _as_integers(name, "end", end)
    steps = [1] * len(begins) if strides is None else _as_integers(name, "strides", strides)
    if not len(begins) == len(ends) == len(steps):
        raise ArgumentError(
            f"strided_slice: begin {begins}, end {ends} and strides {steps} must be of the same length."
        )
    if 0 in steps:
        raise ArgumentError(f"strided_slice: strides must not be 0, got {steps}.")
    masks = [mask or 0 for mask in (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)]
    index: list[Any] = []
    for i, (a, b, step) in enumerate(zip(begins, ends, steps, strict=True)):
        open_begin, open_end, rest, new, single = (mask >> i & 1 for mask in masks)
        if rest:
            index.append(...)
        elif new:
            index.append(None)
        elif single:
            index.append(a)
        else:
            index.append(cut(None if open_begin else a, None if open_end else b, step))
    named = len(index) - index.count(None) - index.count(...)
    if named > x.ndim:
        raise ShapeError(f"{name}: x has shape {x.shape}; begin {begins} and end {ends} name {named} axes.")
    return x[tuple(index)]
