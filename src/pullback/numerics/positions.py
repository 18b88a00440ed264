"""Batching rules of ops that gather or scatter by indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.batching import broadcast_examples, count_examples

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, ArrayOrNumber, Index

Args = Sequence[Any]
On = Sequence[bool]
Params = Mapping[str, Any]


# ---- along one axis


def _count_batch_axes(indices: Array, on: bool, params: Params) -> int:
    count = int(params["batch_dims"] or 0)
    return count + np.ndim(indices) - on if count < 0 else count


def gather_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """Batch a gather along ``axis``; only if data and indices both have examples does it need a batch axis."""
    x, indices = args
    axis = 0 if params["axis"] is None else params["axis"]
    at, batch = resolve_axis(np.ndim(x) - on[0], axis, op.name), _count_batch_axes(indices, on[1], params)
    if batch or all(on):
        return op.call(broadcast_examples(args, on), {"axis": at + 1, "batch_dims": batch + 1})
    if on[0]:
        return op.call(args, {"axis": at + 1, "batch_dims": 0})
    return np.moveaxis(op.call(args, {"axis": at, "batch_dims": 0}), at, 0)


def scatter_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """Batch a scatter along ``axis``, the adjoint of ``gather_each``."""
    axis, shape = 0 if params["axis"] is None else params["axis"], tuple(params["shape"])
    at, batch = resolve_axis(len(shape), axis, op.name) + 1, _count_batch_axes(args[1], on[1], params)
    together = bool(batch or on[1])
    wide = {"shape": (count_examples(args, on), *shape), "axis": at, "batch_dims": batch + 1 if together else 0}
    return op.call(broadcast_examples(args, on) if together else args, wide)


# ---- by coordinates


def add_example_numbers(indices: Array) -> Any:
    """Return coordinates in one example as coordinates in all of them: the example number comes first.

    >>> add_example_numbers(np.array([[[3]], [[5]]]))
    array([[[0, 3]],
    <BLANKLINE>
           [[1, 5]]])
    """
    n, *inner = indices.shape
    own = np.broadcast_to(np.reshape(np.arange(n), (n, *(1,) * len(inner))), (n, *inner[:-1], 1))
    if indices.dtype.kind in "iu" or not indices.size:
        indices = indices.astype(np.intp)
    return np.concatenate([own, indices], -1)


def gather_nd_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """Batch a gather by coordinates; where these have no examples, the examples are part of the gathered slices."""
    x, indices = args
    if all(on):
        return op.call([x, add_example_numbers(indices)], params)
    if on[1] or indices.shape[-1] >= x.ndim:
        return op.call(args, params)
    z = op.call([np.moveaxis(x, 0, indices.shape[-1]), indices], params)
    return np.moveaxis(z, np.ndim(indices) - 1, 0)


def scatter_nd_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """Batch a scatter by coordinates, the adjoint of ``gather_nd_each``."""
    n, shape = count_examples(args, on), tuple(params["shape"])
    if on[0]:
        indices, updates = broadcast_examples(args, on)
        return op.call([add_example_numbers(indices), updates], {"shape": (n, *shape)})
    indices, updates = args
    depth = indices.shape[-1]
    z = op.call(
        [indices, np.moveaxis(updates, 0, np.ndim(indices) - 1)], {"shape": (*shape[:depth], n, *shape[depth:])}
    )
    return np.moveaxis(z, depth, 0)


def update_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """Batch an update of elements at coordinates."""
    x, indices, updates = broadcast_examples(args, on)
    if on[1]:
        return op.call([x, add_example_numbers(indices), updates], params)
    depth = indices.shape[-1]
    z = op.call([np.moveaxis(x, 0, depth), args[1], np.moveaxis(updates, 0, np.ndim(args[1]) - 1)], params)
    return np.moveaxis(z, depth, 0)


# ---- as in x[i]


def is_advanced(i: Index) -> bool:
    """Return whether a part of an index is an array or integer, which NumPy broadcasts against the others."""
    return not (isinstance(i, slice) or i is None or i is Ellipsis)


def are_separated(parts: Sequence[Any]) -> bool:
    """Return whether the arrays of an index are not adjacent, so that NumPy puts their axes first.

    >>> are_separated([np.array([0]), slice(None), 1]), are_separated([slice(None), np.array([0]), 1])
    (True, False)
    """
    at = [k for k, i in enumerate(parts) if is_advanced(i)]
    return any(map(np.ndim, (parts[k] for k in at))) and at[-1] - at[0] >= len(at)


def index_each(index: Index, n: int) -> tuple[Any, ...]:
    """Return the index into ``n`` stacked examples that applies this index to each of them.

    >>> index_each((0, ...), 5)
    (slice(None, None, None), 0, Ellipsis)
    """
    parts = index if type(index) is tuple else (index,)
    if not are_separated(parts):
        return slice(None), *parts
    picked = [_count_index_axes(i) for i in parts if is_advanced(i)]
    return np.arange(n).reshape(n, *(1,) * max(picked)), *parts


def _count_index_axes(i: ArrayOrNumber) -> int:
    i = np.asarray(i)
    return 1 if i.dtype.kind == "b" else i.ndim


# ---- as in x[np.arange(n), i]


class Lines(NamedTuple):
    """An index that picks positions along one axis, in each of the lines that arrays such as ``np.arange(n)`` count."""

    rows: tuple[int, ...]  # the axes that are counted through
    axis: int  # along which positions are picked
    front: tuple[int, ...]  # the axes of the result that are the counted ones
    positions: Any  # with the counted axes first


def find_lines(parts: Sequence[Any], lengths: Sequence[int]) -> Lines | None:
    """Return an index of arrays, one for each of the first axes, as positions along lines; None if it is none.

    >>> find_lines([np.arange(2), np.array([5, 3])], (2, 6))
    Lines(rows=(0,), axis=1, front=(0,), positions=array([5, 3]))
    """
    shape = np.broadcast_shapes(*(np.shape(i) for i in parts))
    counted = {k: _find_counted_axis(i, n, shape) for k, (i, n) in enumerate(zip(parts, lengths, strict=False))}
    others = [k for k, axis in counted.items() if axis is None]
    if len(parts) < 2 or len(others) > 1:
        return None
    axis = others[0] if others else len(parts) - 1
    rows = sorted((k for k in counted if k != axis), key=lambda k: counted[k] or 0)
    front = tuple(counted[k] or 0 for k in rows)
    if len({*front}) < len(front):
        return None
    positions = np.moveaxis(np.broadcast_to(parts[axis], shape), front, range(len(front)))
    return Lines(tuple(rows), axis, front, positions)


def _find_counted_axis(i: Any, n: int, shape: tuple[int, ...]) -> int | None:
    """Return the axis of ``shape`` along which an array counts from 0 to ``n - 1``; None if it does not."""
    if not isinstance(i, np.ndarray) or i.dtype.kind not in "iu" or i.size != n or n < 2 or n not in i.shape:
        return None
    axis = len(shape) - i.ndim + i.shape.index(n)
    return axis if shape[axis] == n and np.array_equal(i.reshape(-1), np.arange(n)) else None


def pick_lines(x: Any, lines: Lines) -> Any:
    """Return the elements of a tensor at positions along lines."""
    count = len(lines.rows)
    y: Any = np.moveaxis(x, (*lines.rows, lines.axis), range(count + 1))
    return np.moveaxis(y.gather(lines.positions, count, count), range(count), lines.front)
