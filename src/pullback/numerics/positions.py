"""Positions under ``vmap``: how ops that pick elements, or put them somewhere, do it for many examples at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.numerics.axis_arguments import one_axis
from pullback.numerics.batching import broadcast_examples, count_examples

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, ArrayOrNumber, Index

Args = Sequence[Any]
On = Sequence[bool]
Params = Mapping[str, Any]


# ---- along one axis


def _batch_axes(indices: Array, on: bool, params: Params) -> int:
    given = int(params["batch_dims"] or 0)
    return given + np.ndim(indices) - on if given < 0 else given


def gather_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """Picking along ``axis``; only if both are different for each example must they go together."""
    x, indices = args
    axis = 0 if params["axis"] is None else params["axis"]
    at, batch = one_axis(np.ndim(x) - on[0], axis, op.name), _batch_axes(indices, on[1], params)
    if batch or all(on):
        return op.call(broadcast_examples(args, on), {"axis": at + 1, "batch_dims": batch + 1})
    if on[0]:
        return op.call(args, {"axis": at + 1, "batch_dims": 0})
    return np.moveaxis(op.call(args, {"axis": at, "batch_dims": 0}), at, 0)


def scatter_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """The adjoint of it."""
    axis, shape = 0 if params["axis"] is None else params["axis"], tuple(params["shape"])
    at, batch = one_axis(len(shape), axis, op.name) + 1, _batch_axes(args[1], on[1], params)
    together = bool(batch or on[1])
    wide = {"shape": (count_examples(args, on), *shape), "axis": at, "batch_dims": batch + 1 if together else 0}
    return op.call(broadcast_examples(args, on) if together else args, wide)


# ---- by coordinates


def add_example_numbers(indices: Array) -> Any:
    """Coordinates in one example as coordinates in all of them: the number of the example comes first.

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


def gather_nd_each(op: Any, args: Args, on: On, params: Params) -> Any:
    """Picking by coordinates; where they are the same for all, the examples are but a part of what is picked."""
    x, indices = args
    if all(on):
        return op.call([x, add_example_numbers(indices)], params)
    if on[1] or indices.shape[-1] >= x.ndim:
        return op.call(args, params)
    z = op.call([np.moveaxis(x, 0, indices.shape[-1]), indices], params)
    return np.moveaxis(z, np.ndim(indices) - 1, 0)


def scatter_nd_each(op: Op, args: Args, on: On, params: Params) -> Any:
    """The adjoint of it."""
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


def update_each(op: Any, args: Args, on: On, params: Params) -> Any:
    """Putting something in place of what is at coordinates."""
    x, indices, updates = broadcast_examples(args, on)
    if on[1]:
        return op.call([x, add_example_numbers(indices), updates], params)
    depth = indices.shape[-1]
    z = op.call([np.moveaxis(x, 0, depth), args[1], np.moveaxis(updates, 0, np.ndim(args[1]) - 1)], params)
    return np.moveaxis(z, depth, 0)


# ---- as in x[i]


def is_advanced(i: Index) -> bool:
    """Whether a part of an index is one that NumPy broadcasts, if there is an array among the parts."""
    return not (isinstance(i, slice) or i is None or i is Ellipsis)


def are_separated(parts: Sequence[Any]) -> bool:
    """Whether something stands between the arrays of an index, so that NumPy puts what they pick in front.

    >>> are_separated([np.array([0]), slice(None), 1]), are_separated([slice(None), np.array([0]), 1])
    (True, False)
    """
    at = [k for k, i in enumerate(parts) if is_advanced(i)]
    return any(map(np.ndim, (parts[k] for k in at))) and at[-1] - at[0] >= len(at)


def index_each(index: Index, n: int) -> tuple[Any, ...]:
    """The index in ``n`` examples, which stay in front, that has this index in each of them.

    >>> index_each((0, ...), 5)
    (slice(None, None, None), 0, Ellipsis)
    """
    parts = index if type(index) is tuple else (index,)
    if not are_separated(parts):
        return slice(None), *parts
    picked = [_index_rank(i) for i in parts if is_advanced(i)]
    return np.arange(n).reshape(n, *(1,) * max(picked)), *parts


def _index_rank(i: ArrayOrNumber) -> int:
    i = np.asarray(i)
    return 1 if i.dtype.kind == "b" else i.ndim
