"""Gather and scatter by arrays of indices, which carry no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback import late_binding
from pullback.core.accelerate import run_compiled_if
from pullback.core.axes import moves
from pullback.core.calculus import linear, no_derivative, rule
from pullback.core.convert import as_dtype, check_real, get_default_dtype
from pullback.core.lowering import call, made_of, rows
from pullback.core.op import convert_operand, method, op
from pullback.core.rowsparse import rows_of_gather
from pullback.core.tensor import read_sizes
from pullback.errors import ArgumentError, IndexRangeError, ShapeError
from pullback.numerics.axis_arguments import resolve_axis
from pullback.numerics.batching import batch_leading_axes
from pullback.numerics.order import argsort_stable
from pullback.numerics.positions import (
    add_example_numbers,
    gather_each,
    gather_nd_each,
    scatter_each,
    scatter_nd_each,
    update_each,
)
from pullback.numerics.rows import (
    add_rows,
    is_worth_compiling,
    mark_last_positions,
    number_rows,
    resolve_gather_axes,
    scatter_rows,
)

if TYPE_CHECKING:
    from pullback.typing import Array, Axis, DType, Lengths, ShapeLike, TensorLike, Value

__all__ = [
    "TopK", "gather", "gather_nd", "one_hot", "repeat", "scatter_nd", "take", "take_along_axis",
    "tensor_scatter_update", "topk",
]  # fmt: skip

Shape = tuple[int, ...]
MIN_COMPARED = 1 << 11  # elements from which machine code is worth compiling for topk, which takes NumPy several sorts


def _check_integers(name: str, indices: Value) -> Any:
    """Return indices, checked to be integers."""
    if indices.dtype.kind in "iu":
        return indices
    if not indices.size:
        return indices.astype(np.intp)
    raise ArgumentError(
        f"{name}: indices must be integers, got {indices.dtype} of shape {indices.shape}; cast them to int32."
    )


def _check_range(name: str, indices: Array, length: int, where: str) -> Any:
    """Return indices, checked to be within an axis."""
    if indices.size and (indices.max() >= length or indices.min() < -length):
        wrong = next(int(i) for i in np.ravel(indices) if not -length <= i < length)
        raise IndexRangeError(f"{name}: the index {wrong} is out of range for {where} of length {length}.")
    return indices


# ---- along one axis


def _infer_gather_shape(s: Shape, i: Shape, axis: int, batch_dims: int) -> Shape:
    at, batch = resolve_gather_axes("gather", s, i, axis, batch_dims)
    return s[:at] + i[batch:] + s[at + 1 :]


def _gather(x: Array, indices: Array, axis: int | None = 0, batch_dims: int | None = 0) -> Any:
    at, batch = resolve_gather_axes("gather", x.shape, indices.shape, axis, batch_dims)
    n = x.shape[at]
    indices = _check_integers("gather", indices)
    if not batch:
        try:
            return x.take(indices, at)
        except IndexError:
            return _check_range("gather", indices, n, f"axis {at}")  # raises the error
    _check_range("gather", indices, n, f"axis {at}")
    front = x if at == batch else np.moveaxis(x, at, batch)  # batch, n, between, after
    # batch, picked, between, after
    rows = front.reshape(-1, *front.shape[batch + 1 :])[number_rows(indices, batch, n)]
    return _move_picked(rows, batch, indices.ndim - batch, at)


def _move_picked(z: Array, batch: int, picked: int, at: int) -> Any:
    """Transpose (batch, picked, between, after) to (batch, between, picked, after)."""
    return np.moveaxis(z, range(batch, batch + picked), range(at, at + picked)) if at > batch and picked else z


def _pull_gather(g: Value, x_shape: Shape, indices: Value, axis: int, batch_dims: int) -> Any:
    plain = type(g) is np.ndarray and type(indices) is np.ndarray
    return (_scatter_add_quickly if plain else scatter_add)(g, indices, x_shape, axis, batch_dims)


@op(
    _gather,
    acts=moves(
        _infer_gather_shape,
        [
            (((5,), np.array([4, 0, 0, 2])), {}), (((3, 2), np.array([2, 1, -1])), {}), (((3,), np.array(1)), {}),
            (((3, 5), np.array([[1, 0]])), {"axis": 1}), (((2, 3, 2), np.array([2, 2])), {"axis": -2}),
            (((3, 6), np.empty((0,), int)), {}),
            (((2, 3), np.array([[0, 2], [1, 1]])), {"axis": 1, "batch_dims": 1}),
            (((2, 3, 4, 5), np.array([[3, 0, 3], [1, 1, 2]])), {"axis": 2, "batch_dims": 1}),
        ],
        gather_each,
    ),
    d=linear(_pull_gather, None, rows=rows_of_gather),
    lower=call("take"),
)  # fmt: skip
def gather(x: TensorLike, indices: TensorLike, /, axis: Axis = 0, batch_dims: int = 0) -> Any:
    """Return the slices of ``x`` at these positions along ``axis``; ``batch_dims`` leading axes belong together.

    x: a tensor, an array or a number.
    indices: integers: the positions.
    axis: the axis; a negative one counts from the last.
    batch_dims: how many first axes are the same in both.

    >>> gather(np.array([1.0, 2.0, 3.0]), [2, 0, 2])
    Tensor([3., 1., 3.], dtype=float64)
    """


_scatter_add_quickly = run_compiled_if(is_worth_compiling, scatter_rows)


@op(
    scatter_rows,
    acts=moves(
        lambda s, i, shape, axis, batch_dims: shape,
        [
            (((4,), np.array([4, 0, 0, 2])), {"shape": (5,)}), (((4, 6), np.array([1, 0, 1, 1])), {"shape": (3, 6)}),
            (((3, 2), np.array([1, 1])), {"shape": (3, 5), "axis": 1}), (((0,), np.empty(0, int)), {"shape": (3,)}),
            (((2, 3, 3, 5), np.array([[3, 0, 3], [1, 1, 2]])), {"shape": (2, 3, 4, 5), "axis": 2, "batch_dims": 1}),
        ],
        scatter_each,
    ),
    d=linear(lambda g, indices, axis, batch_dims: gather(g, indices, axis, batch_dims), None),
    run=_scatter_add_quickly,
    lower=call("scatter"),
)  # fmt: skip
def scatter_add(x: TensorLike, indices: TensorLike, /, shape: Shape, axis: Axis = 0, batch_dims: int = 0) -> Any:
    """Return zeros of ``shape`` with the slices of ``x`` added at these positions: the adjoint of ``gather``.

    >>> scatter_add(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), (3,))
    array([2., 0., 5.])
    """


late_binding.scatter_add = scatter_add


# ---- by coordinates


def _flatten_coordinates(name: str, indices: Array, shape: Shape) -> Any:
    """Return the flat index of each vector of coordinates in the leading axes of ``shape``."""
    depth = _count_coordinates(name, indices.shape, shape)
    indices = _check_integers(name, indices).astype(np.intp)
    rows: Any = np.zeros(indices.shape[:-1], np.intp)
    for k, n in enumerate(shape[:depth]):
        at = _check_range(name, indices[..., k], n, f"axis {k}")
        rows = rows * n + np.where(at < 0, at + n, at)
    return rows


def _count_coordinates(name: str, indices: Shape, shape: Shape) -> int:
    if not indices or indices[-1] > len(shape):
        raise ShapeError(
            f"{name}: the last axis of indices holds coordinates in shape {shape}, so its length must be at most "
            f"{len(shape)}; indices have shape {indices}."
        )
    return indices[-1]


def _as_rows(x: Array, depth: int) -> Any:
    return x.reshape(prod(x.shape[:depth]), *x.shape[depth:])


def _gather_nd(x: Array, indices: Array) -> Any:
    rows = _flatten_coordinates("gather_nd", indices, x.shape)
    return _as_rows(x, indices.shape[-1])[rows]


def _gather_nd_vjp(g: Value, x_shape: Shape, indices: Value) -> Any:
    return scatter_nd(indices, g, x_shape)


@op(
    _gather_nd,
    acts=moves(
        lambda s, i: i[:-1] + s[_count_coordinates("gather_nd", i, s) :],
        [
            (((2, 3), np.array([[0, 1], [1, 2], [0, 1]])), {}), (((3, 5), np.array([[2], [0], [2]])), {}),
            (((2, 3), np.array([1, 2])), {}), (((2, 3), np.empty((2, 0), int)), {}),
            (((3,), np.empty((0, 1), int)), {}),
        ],
        gather_nd_each,
    ),
    d=linear(_gather_nd_vjp, None),
    lower=call("take at"),
)  # fmt: skip
def gather_nd(x: TensorLike, indices: TensorLike, /) -> Any:
    """Return the slices of ``x`` at coordinates, which are along the last axis of ``indices``.

    >>> gather_nd(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0, 1], [1, 1]]))
    array([2., 4.])
    """


def _check_update_shape(name: str, i: Shape, u: Shape, full_shape: Sequence[int]) -> Shape:
    shape: Shape = tuple(full_shape)
    due = i[:-1] + shape[_count_coordinates(name, i, shape) :]
    if u != due:
        raise ShapeError(
            f"{name}: updates have shape {u}; for indices of shape {i} and shape {shape} they must have {due}."
        )
    return shape


def _scatter_nd(indices: Array, updates: Array, shape: Sequence[int]) -> Any:
    shape = _check_update_shape("scatter_nd", indices.shape, updates.shape, shape)
    rows, depth = _flatten_coordinates("scatter_nd", indices, shape), indices.shape[-1]
    e = np.zeros(shape, updates.dtype)
    if updates.size:
        flat = e.reshape(prod(shape[:depth]), *shape[depth:])
        add_rows(flat, rows.reshape(-1), np.reshape(updates, (-1, *shape[depth:])), True)
    return e


@op(
    _scatter_nd,
    acts=moves(
        lambda i, u, shape: _check_update_shape("scatter_nd", i, u, shape),
        [
            ((np.array([[3], [1], [3]]), (3,)), {"shape": [4]}),
            ((np.array([[0, 1], [1, 2]]), (2,)), {"shape": (2, 3)}),
            ((np.array([[2], [2]]), (2, 5)), {"shape": (3, 5)}), ((np.empty((0, 1), int), (0,)), {"shape": (2,)}),
            ((np.array([1]), ()), {"shape": (2,)}),
        ],
        scatter_nd_each,
    ),
    d=linear(None, lambda g, indices: gather_nd(g, indices)),
    lower=call("put at"),
)  # fmt: skip
def scatter_nd(indices: TensorLike, updates: TensorLike, /, shape: ShapeLike) -> Any:
    """Return zeros of ``shape`` with ``updates`` added at coordinates; repeated coordinates are summed.

    indices: integers: the positions.
    updates: what is written.
    shape: the shape of the result.

    >>> scatter_nd(np.array([[3], [1]]), np.array([9.0, 7.0]), [4])
    array([0., 7., 0., 9.])
    """


def _scatter_update(tensor: Array, indices: Array, updates: Array) -> Any:
    name = "tensor_scatter_update"
    _check_update_shape(name, indices.shape, updates.shape, tensor.shape)
    if tensor.dtype.kind != "c":
        check_real(name, updates, "updates, as the tensor has them")
    z = np.array(tensor, order="C")  # its rows are written to
    _as_rows(z, indices.shape[-1])[_flatten_coordinates(name, indices, tensor.shape)] = updates
    return z


def _find_last_updates(indices: Array, shape: Shape) -> Any:
    rows = _flatten_coordinates("tensor_scatter_update", indices, shape)
    return mark_last_positions(rows, prod(shape[: indices.shape[-1]]))


@op(
    _find_last_updates,
    acts=moves(
        lambda i, shape: i[:-1],
        [((np.array([[3], [1], [3]]),), {"shape": (4,)}), ((np.array([0, 1]),), {"shape": (2, 3)})],
        lambda op, args, on, params: op.call(
            [add_example_numbers(args[0])], {"shape": (args[0].shape[0], *params["shape"])}
        ),
    ),
    d=no_derivative(),
)
def last_updates(indices: TensorLike, /, shape: Shape) -> Any:
    """Return which updates are the last ones for their coordinates, and so stay.

    >>> last_updates(np.array([[3], [1], [3]]), (4,))
    array([False,  True,  True])
    """


def _pull_updates(g: Value, indices: Value, tensor_shape: Shape) -> Any:
    """Return the cotangent of the updates, which is 0 for updates that are overwritten by later ones."""
    last = last_updates(indices, tensor_shape).astype(g.dtype)
    return gather_nd(g, indices) * np.reshape(last, last.shape + (1,) * (len(tensor_shape) - indices.shape[-1]))


def _pull_tensor(g: Value, indices: Value, updates_shape: Shape) -> Any:
    return tensor_scatter_update(g, indices, np.zeros(updates_shape, g.dtype)[()])


def _scatter_update_jvp(dtensor: Value, indices: Value, dupdates: Value) -> Any:
    return tensor_scatter_update(dtensor, indices, dupdates)


@op(
    _scatter_update,
    acts=moves(
        lambda t, i, u: _check_update_shape("tensor_scatter_update", i, u, t),
        [
            (((4,), np.array([[3], [1], [3]]), (3,)), {}), (((2, 3), np.array([[0, 1], [1, 2]]), (2,)), {}),
            (((3, 2), np.array([[2]]), (1, 2)), {}), (((3,), np.empty((0, 1), int), (0,)), {}),
        ],
        update_each,
    ),
    d=rule(
        _pull_tensor,
        None,
        _pull_updates,
        jvp=_scatter_update_jvp,
    ),
)  # fmt: skip
def tensor_scatter_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike, /) -> Any:
    """Return a copy of ``tensor`` with ``updates`` written at coordinates.

    tensor: the tensor that is copied.
    indices: integers: the positions.
    updates: what is written.

    >>> tensor_scatter_update(np.zeros(4), np.array([[3], [1]]), np.array([9.0, 7.0]))
    array([0., 7., 0., 9.])
    """


# ---- NumPy's functions


@method
def take(x: TensorLike, indices: TensorLike, axis: Axis = None, mode: str = "raise") -> Any:
    """Return the elements at these positions along ``axis``, or of the flattened array.

    A position out of range is an error, unless ``mode`` is ``"clip"`` (the nearest valid one) or ``"wrap"`` (modulo).

    x: a tensor, an array or a number.
    indices: integers: the positions.
    axis: the axis; without it, the flattened array is indexed.
    mode: how positions out of range are handled, as in NumPy.

    >>> take(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([3, 0]))
    array([4., 1.])
    """
    x = convert_operand(x)
    if axis is None:
        x, axis = np.reshape(x, -1), 0
    mode = mode or "raise"  # None is NumPy's ``out``, which is at this place
    if mode not in ("raise", "clip", "wrap"):
        raise ArgumentError(f"take: mode must be 'raise', 'clip' or 'wrap', got {mode!r}.")
    if mode != "raise":
        n = x.shape[axis]  # type: ignore[index]
        indices = np.clip(indices, 0, n - 1) if mode == "clip" else np.mod(indices, n)
    return gather(x, indices, axis)


@method
def take_along_axis(x: TensorLike, indices: TensorLike, axis: int = -1) -> Any:
    """Return for each line of ``x`` along ``axis`` the elements at the positions in the same line of ``indices``.

    >>> take_along_axis(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1], [0]]), 1)
    array([[2.],
           [3.]])
    """
    values: Any = convert_operand(x)
    places: Any = np.asarray(indices) if isinstance(indices, list | tuple) else convert_operand(indices)
    if values.ndim != places.ndim:
        raise ShapeError(
            f"take_along_axis: x has shape {values.shape} and indices have shape {places.shape}; the ranks must agree."
        )
    at, last = resolve_axis(values.ndim, axis, "take_along_axis"), values.ndim - 1
    if at != last:
        values, places = np.moveaxis(values, at, -1), np.moveaxis(places, at, -1)
    if values.shape[:-1] != places.shape[:-1]:
        lead = np.broadcast_shapes(values.shape[:-1], places.shape[:-1])
        values = np.broadcast_to(values, (*lead, values.shape[-1]))
        places = np.broadcast_to(places, (*lead, places.shape[-1]))
    z = gather(values, places, last, last)
    return z if at == last else np.moveaxis(z, -1, at).copy()  # as NumPy's, in C order


@method
def repeat(x: TensorLike, repeats: Lengths | Value, axis: Axis = None) -> Any:
    """Return each element repeated ``repeats`` times, along ``axis`` or of the flattened array.

    x: a tensor, an array or a number.
    repeats: how often, a number or one for each element.
    axis: the axis; without it, the flattened array is repeated.

    >>> repeat(np.array([1.0, 2.0]), 2)
    array([1., 1., 2., 2.])
    """
    x = convert_operand(x)
    if axis is None:
        x, axis = np.reshape(x, -1), 0
    at = resolve_axis(x.ndim, axis, "repeat")
    times, n = np.asarray(read_sizes("repeat", repeats)), x.shape[at]
    whole = times.dtype.kind in "iuf" and np.all((times >= 0) & (times == np.floor(times)))
    if not whole or times.shape not in ((), (1,), (n,)):
        raise ArgumentError(
            f"repeat: repeats must be an integer >= 0, or one for each of the {n} elements along axis {at}, "
            f"got {repeats!r}."
        )
    return gather(x, np.repeat(np.arange(n), times.astype(np.intp)), at)


# ---- one-hot vectors and the largest elements


def _one_hot(
    indices: Any, depth: int, on_value: float | None = 1, off_value: float | None = 0, dtype: DType = None
) -> Any:
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    if dtype is None:
        dtype = np.int32 if float(on).is_integer() and float(off).is_integer() else get_default_dtype()
    if indices.dtype.kind == "f" and np.all(indices == np.floor(indices)):  # a list of Python numbers
        indices = indices.astype(np.int64)
    kind, indices = as_dtype(dtype, "one_hot").type, _check_integers("one_hot", indices)
    places = np.arange(_check_depth(depth), dtype=np.result_type(indices.dtype, np.int32))
    return np.where(np.expand_dims(indices, -1) == places, kind(on), kind(off))


def _check_depth(depth: Any) -> int:
    if not isinstance(depth, int | float | np.number) or not float(depth).is_integer() or depth < 1:
        raise ArgumentError(f"one_hot: depth must be at least 1, got {depth!r}.")
    return int(depth)


@op(
    _one_hot,
    acts=moves(
        lambda s, depth, on_value, off_value, dtype: (*s, _check_depth(depth)),
        [
            ((np.array([0, 2, 1]),), {"depth": 3}), ((np.array(1),), {"depth": 2, "dtype": "float32"}),
            ((np.array([[0, 9]]),), {"depth": 4, "on_value": 5, "off_value": -1}),
            ((np.empty((0,), int),), {"depth": 3}),
        ],
        batch_leading_axes,
    ),
    d=no_derivative(),
    lower=made_of(_one_hot),
)  # fmt: skip
def one_hot(
    indices: TensorLike, /, depth: int, on_value: TensorLike = 1, off_value: TensorLike = 0, dtype: DType = None
) -> Any:
    """Return ``on_value`` at each index and ``off_value`` elsewhere along a new last axis; int32 by default.

    indices: integers: the positions.
    depth: how many classes there are.
    on_value: the value at the position of the class.
    off_value: the value elsewhere.
    dtype: the dtype of the result.

    >>> one_hot(np.array([0, 2]), 3)
    array([[1, 0, 0],
           [0, 0, 1]], dtype=int32)
    """


MAX_KEPT = 64  # elements among which a larger one is put in its place
MAX_SORTED = 512  # elements that are sorted as quickly as the largest of them are found


class TopK(NamedTuple):
    """The result of ``topk``.

    >>> topk(np.array([1.0, 5.0, 3.0])).indices
    array([1], dtype=int32)
    """

    values: Any
    indices: Any


def _find_largest(x: Array, k: int = 1, sorted: bool = True) -> Any:
    n = x.shape[-1] if x.ndim else 0
    if not x.ndim or not hasattr(k, "__index__") or not 0 <= k <= n:
        raise ShapeError(f"topk: k must be at most the length of the last axis of x, got k={k} for shape {x.shape}.")
    rows = x.reshape(prod(x.shape[:-1]), n)
    if 0 < 4 * k <= n and x.size > MAX_SORTED:
        return _select_largest(rows, k).reshape(*x.shape[:-1], k)
    return _sort_downwards(rows)[:, :k].astype(np.int32).reshape(*x.shape[:-1], k)


def _is_compiled(length: int, k: int) -> bool:
    return k <= MAX_KEPT and 2 * k <= length


def _is_worth_compiling(x: Array, k: Any, sorted: bool) -> bool:
    return x.size >= MIN_COMPARED and type(k) is int and k > 0 and _is_compiled(x.shape[-1], k)


def _sort_downwards(rows: Array) -> Any:
    """Return the indices that sort each row in descending order, stably."""
    return argsort_stable(rows, 1, descending=True)


def _select_largest(rows: Array, k: int) -> Any:
    """Return the indices of the ``k`` largest elements of each row, by a partial sort."""
    found = np.sort(np.argpartition(rows, -k, axis=1)[:, -k:], axis=1)
    values = np.take_along_axis(rows, found, 1)
    positions = np.take_along_axis(found, _sort_downwards(values), 1).astype(np.int32)
    # Which of several elements equal to the least of them are first, is only found by sorting all.
    least = values.min(axis=1, keepdims=True)
    unclear = (rows == least).sum(1) != (values == least).sum(1)
    if rows.dtype.kind == "f":
        unclear |= np.isnan(values).any(1)
    if unclear.any():
        positions[unclear] = _sort_downwards(rows[unclear])[:, :k]
    return positions


@op(
    _find_largest,
    acts=moves(
        lambda s, k, sorted: (*s[:-1], k),
        [(((5,),), {"k": 2}), (((2, 4),), {}), (((0, 3),), {"k": 3})],
        batch_leading_axes,
    ),
    d=no_derivative(),
    run=run_compiled_if(_is_worth_compiling, _find_largest),
    lower=rows("largest", np.int32, lambda shapes, k, sorted: _is_compiled(shapes[0][-1], k)),
)
def topk_indices(x: TensorLike, /, k: int = 1, sorted: bool = True) -> Any:
    """Return the indices of the ``k`` largest elements along the last axis.

    >>> topk_indices(np.array([1.0, 5.0, 3.0]), 2)
    array([1, 2], dtype=int32)
    """


@method
def topk(x: TensorLike, k: int | None = 1, sorted: bool = True) -> TopK:
    """Return the ``k`` largest elements along the last axis, in descending order, and their indices.

    x: a tensor, an array or a number.
    k: how many of each row.
    sorted: whether the largest comes first.

    >>> topk(np.array([1.0, 5.0, 3.0]), 2)
    TopK(values=array([5., 3.]), indices=array([1, 2], dtype=int32))
    """
    x = convert_operand(x)
    indices = topk_indices(x, 1 if k is None else k)
    return TopK(take_along_axis(x, indices, -1), indices)
