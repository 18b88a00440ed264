"""Ops that move elements: reshape, transpose, flip, broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.axes import moves
from pullback.core.calculus import linear
from pullback.core.lowering import view
from pullback.core.op import alias, check_rank, convert_operand, method, op
from pullback.core.tensor import NUMPY, Tensor
from pullback.core.writes import is_contiguous
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.adjoints import as_axes
from pullback.numerics.axis_arguments import resolve_axes
from pullback.numerics.batching import batch_along_axis, batch_axis_parameters, batch_broadcast, batch_shape_parameter

if TYPE_CHECKING:
    from pullback.typing import Array, Axis, Lengths, ShapeLike, TensorLike, Value

__all__ = [
    "as1d", "as2d", "as3d", "as4d", "as5d", "as_scalar", "broadcast_to", "expand_dims", "flatten", "flip", "moveaxis",
    "ravel", "reshape", "reshape_as", "reverse", "reverse1d", "reverse2d", "reverse3d", "reverse4d", "squeeze",
    "swapaxes", "transpose",
]  # fmt: skip


def _restore_shape(g: Value, shape: tuple[int, ...]) -> Any:
    """Return the cotangent in the shape of the input; scalars stay scalars."""
    if type(g) is ndarray and shape:
        return g.reshape(shape)
    return g if g.shape == shape else np.reshape(g, shape)


def _unwrap_scalar(z: Array) -> Any:
    """Return a value of rank 0 as a NumPy scalar."""
    return z if z.shape else z[()]


# ---- another shape


def _resolve_shape(s: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    wanted = [int(n) for n in shape] if hasattr(shape, "__len__") else [int(shape)]
    known = prod(n for n in wanted if n != -1)
    if wanted.count(-1) > 1:
        raise ShapeError(f"reshape: shape {tuple(wanted)} has more than one -1; only one length can be inferred.")
    if -1 in wanted and known and prod(s) % known == 0:
        wanted[wanted.index(-1)] = prod(s) // known
    if min(wanted, default=0) < 0 or prod(wanted) != prod(s):
        raise ShapeError(
            f"reshape: x has shape {s}, that is {prod(s)} elements; they do not fit shape {tuple(wanted)}."
        )
    return tuple(wanted)


@op(
    np.reshape,
    acts=moves(
        _resolve_shape,
        [
            (((2, 3),), {"shape": (3, 2)}), (((2, 3),), {"shape": [-1]}), (((),), {"shape": (1, 1)}),
            (((1,),), {"shape": ()}), (((0, 3),), {"shape": (3, 0)}), (((2, 3, 4),), {"shape": (4, -1)}),
        ],
        batch_shape_parameter,
    ),
    d=linear(lambda g, x_shape: _restore_shape(g, x_shape)),
    run=lambda x, shape: _unwrap_scalar(x.reshape(shape)),
    lower=view(by_layout=True),
)  # fmt: skip
def reshape(x: TensorLike, /, shape: ShapeLike) -> Any:
    """Return the elements of ``x``, in order, in another shape; a length of -1 is inferred.

    x: a tensor, an array or a number.
    shape: the new shape; one length may be -1.

    >>> reshape(np.arange(4.0), [2, -1])
    array([[0., 1.],
           [2., 3.]])
    """


@op(
    np.expand_dims,
    acts=moves(
        lambda s, axis: np.expand_dims(np.empty(s, bool), _choose_axis(axis)).shape,
        [
            (((3,),), {"axis": 0}), (((2, 3),), {"axis": -1}), (((2, 3),), {"axis": (0, 2)}), (((),), {"axis": 0}),
            (((0, 2),), {"axis": 1}),
        ],
        batch_shape_parameter,
    ),
    d=linear(lambda g, x_shape: _restore_shape(g, x_shape)),
    run=lambda x, axis=0: np.expand_dims(x, _choose_axis(axis)),
    lower=view(),
)  # fmt: skip
def expand_dims(x: TensorLike, /, axis: Axis = 0) -> Any:
    """Return ``x`` with a new axis of length 1 at ``axis``.

    x: a tensor, an array or a number.
    axis: the position of the new axis.

    >>> expand_dims(np.ones(3), 1).shape
    (3, 1)
    """


def _choose_axis(axis: Axis) -> Any:
    return 0 if axis is None else as_axes(axis)


@op(
    np.squeeze,
    acts=moves(
        lambda s, axis: np.empty(s, bool).squeeze(as_axes(axis)).shape,
        [
            (((1, 3, 1),), {}), (((1, 3, 1),), {"axis": 0}), (((1, 3, 1),), {"axis": [0, -1]}), (((1, 1),), {}),
            (((),), {}), (((1, 0),), {"axis": 0}),
        ],
        batch_shape_parameter,
    ),
    d=linear(lambda g, x_shape: _restore_shape(g, x_shape)),
    run=lambda x, axis=None: _unwrap_scalar(x.squeeze(as_axes(axis))),
    lower=view(),
)  # fmt: skip
def squeeze(x: TensorLike, /, axis: Axis = None) -> Any:
    """Return ``x`` without the axes of length 1, or without those named by ``axis``.

    >>> squeeze(np.ones((1, 3, 1)), [0]).shape
    (3, 1)
    """


@method
def flatten(x: TensorLike, order: Any = "C") -> Any:
    """Return a flattened copy; ``order="F"`` is column-major, with the first axis varying fastest.

    x: a tensor, an array or a number.
    order: the order of the elements, as in NumPy.

    >>> flatten(np.ones((2, 3))).shape
    (6,)
    """
    return np.copy(ravel(x, order))


@method
def ravel(x: TensorLike, /, order: str = "C") -> Any:
    """Return the flattened array, which shares memory with ``x`` if its elements are contiguous.

    ``order="F"`` is column-major, with the first axis varying fastest.

    >>> ravel(np.ones((2, 3))).shape
    (6,)
    """
    if order not in ("C", "F"):
        raise ArgumentError(
            f"ravel: order must be 'C' or 'F', got {order!r}; the memory layout of a tensor is not defined."
        )
    if order == "F":
        return ravel(np.transpose(x))
    z = reshape(x, (-1,))
    return np.copy(z) if isinstance(x, Tensor) and not is_contiguous(x.read()) else z


@method
def as_scalar(x: TensorLike) -> Any:
    """Return the only element as a scalar tensor.

    x: a tensor, an array or a number.

    >>> as_scalar(pb.tensor([[2.0]]))
    Tensor(2., dtype=float32)
    """
    x = convert_operand(x, "as_scalar")
    if prod(x.shape) != 1:
        raise ShapeError(f"as_scalar: x has shape {x.shape}; only one element can become a scalar.")
    return reshape(x, ())


@method
def as1d(x: TensorLike) -> Any:
    """Return all elements as a vector.

    x: a tensor, an array or a number.

    >>> as1d(np.ones((2, 3))).shape
    (6,)
    """
    return reshape(x, (-1,))


@method
def as2d(x: TensorLike, rows: int, columns: int) -> Any:
    """Return the elements as a matrix.

    x: a tensor, an array or a number.
    rows: the length of the first axis.
    columns: that of the second.

    >>> as2d(np.ones(6), 2, 3).shape
    (2, 3)
    """
    return reshape(x, (rows, columns))


@method
def as3d(x: TensorLike, rows: int, columns: int, depth: int) -> Any:
    """Return the elements as a tensor of rank 3.

    x: a tensor, an array or a number.
    rows: the first length.
    columns: the second length.
    depth: the third length.

    >>> as3d(np.ones(6), 1, 2, 3).shape
    (1, 2, 3)
    """
    return reshape(x, (rows, columns, depth))


@method
def as4d(x: TensorLike, rows: int, columns: int, depth: int, depth2: int) -> Any:
    """Return the elements as a tensor of rank 4.

    x: a tensor, an array or a number.
    rows: the first length.
    columns: the second length.
    depth: the third length.
    depth2: the fourth length.

    >>> as4d(np.ones(6), 1, 2, 3, 1).shape
    (1, 2, 3, 1)
    """
    return reshape(x, (rows, columns, depth, depth2))


@method
def as5d(x: TensorLike, rows: int, columns: int, depth: int, depth2: int, depth3: int) -> Any:
    """Return the elements as a tensor of rank 5.

    x: a tensor, an array or a number.
    rows: the first length.
    columns: the second length.
    depth: the third length.
    depth2: the fourth length.
    depth3: the fifth length.

    >>> as5d(np.ones(6), 1, 2, 3, 1, 1).shape
    (1, 2, 3, 1, 1)
    """
    return reshape(x, (rows, columns, depth, depth2, depth3))


@method
def reshape_as(x: TensorLike, y: TensorLike) -> Any:
    """Return the elements of ``x`` in the shape of ``y``.

    >>> reshape_as(np.ones(6), np.ones((2, 3))).shape
    (2, 3)
    """
    return reshape(x, convert_operand(y, "reshape_as").shape)


def _method_reshape(x: Tensor, *shape: ShapeLike, order: str = "C", copy: bool | None = None) -> Any:
    """Return ``x.reshape([2, 3])`` as in TensorFlow.js, ``x.reshape(2, 3)`` as in NumPy."""
    if order == "F" or copy:
        z = np.reshape(x, shape[0] if len(shape) == 1 else shape, order=order)  # type: ignore[call-overload]
        return np.copy(z) if copy else z
    return reshape(x, shape[0] if len(shape) == 1 else shape)  # type: ignore[arg-type]


alias("reshape", _method_reshape)

# ---- axes in another order


def _resolve_order(n: int, perm: Sequence[int] | None) -> tuple[int, ...]:
    if perm is None:
        return tuple(range(n))[::-1]
    if (
        not isinstance(perm, list | tuple | ndarray)
        or len(perm) != n
        or len({*resolve_axes(n, list(perm), "transpose")}) != n
    ):
        raise ShapeError(f"transpose: perm {perm!r} must name each of the {n} axes of x once.")
    return tuple(int(a) % n for a in perm)


@lru_cache(1000)
def _invert_order(perm: tuple[int, ...]) -> tuple[int, ...]:
    n = len(perm)
    where = {a % n: i for i, a in enumerate(perm)}
    return tuple(where[i] for i in range(n))


@op(
    np.transpose,
    acts=moves(
        lambda s, perm: [s[a] for a in _resolve_order(len(s), perm)],
        [
            (((2, 3, 4),), {"perm": (2, 0, 1)}), (((2, 3),), {}), (((2, 3, 4),), {"perm": [-1, 0, -2]}), (((),), {}),
            (((0, 3),), {}),
        ],
        lambda op, args, on, params: np.transpose(
            args[0], (0, *(a + 1 for a in _resolve_order(args[0].ndim - 1, params["perm"])))
        ),
    ),
    d=linear(lambda g, perm: np.transpose(g) if perm is None else np.transpose(g, _invert_order(tuple(perm)))),
    run=lambda x, perm=None: x.transpose() if perm is None else x.transpose(as_axes(perm)),
    lower=view(),
)  # fmt: skip
def transpose(x: TensorLike, /, perm: Sequence[int] | Array | None = None) -> Any:
    """Return ``x`` with its axes in the order ``perm``, by default reversed.

    >>> transpose(np.ones((2, 3, 4)), [1, 0, 2]).shape
    (3, 2, 4)
    """


def _method_transpose(x: Tensor, *perm: Lengths | None) -> Any:
    """Return ``x.transpose([1, 0])`` as in TensorFlow.js, ``x.transpose(1, 0)`` as in NumPy."""
    order = perm[0] if len(perm) == 1 else perm or None
    return transpose(x, (order,) if isinstance(order, int | np.integer) else order)  # type: ignore[arg-type]


alias("transpose", _method_transpose)
NUMPY[np.transpose] = lambda a, axes=None: _method_transpose(a, axes)  # its parameter has another name there


@op(
    np.swapaxes,
    acts=moves(
        lambda s, axis1, axis2: np.empty(s, bool).swapaxes(axis1, axis2).shape,
        [(((2, 3, 4),), {"axis1": -1, "axis2": 0}), (((0, 3),), {"axis1": 0, "axis2": 1})],
        batch_axis_parameters,
    ),
    d=linear(lambda g, axis1, axis2: np.swapaxes(g, axis1, axis2)),
    run=lambda x, axis1, axis2: x.swapaxes(axis1, axis2),
    lower=view(),
)
def swapaxes(x: TensorLike, /, axis1: int, axis2: int) -> Any:
    """Return ``x`` with two axes exchanged.

    x: a tensor, an array or a number.
    axis1: an axis.
    axis2: the axis to exchange it with.

    >>> swapaxes(np.ones((2, 3)), 0, 1).shape
    (3, 2)
    """


@op(
    np.moveaxis,
    acts=moves(
        lambda s, source, destination: np.moveaxis(np.empty(s, bool), source, destination).shape,
        [
            (((2, 3, 4),), {"source": 0, "destination": -1}),
            (((2, 3, 4),), {"source": (0, 1), "destination": (-1, 0)}),
            (((0, 3),), {"source": 1, "destination": 0}),
        ],
        batch_axis_parameters,
    ),
    d=linear(lambda g, source, destination: np.moveaxis(g, destination, source)),
    run=np.moveaxis,  # with its parameters by position, which is quicker
    lower=view(),
)
def moveaxis(x: TensorLike, /, source: Lengths, destination: Lengths) -> Any:
    """Return ``x`` with axes moved from ``source`` to ``destination``; the others keep their order.

    x: a tensor, an array or a number.
    source: the axes to move.
    destination: their new positions.

    >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """


# ---- elements in another order


@op(
    np.flip,
    acts=moves(
        lambda s, axis: np.flip(np.empty(s, bool), as_axes(axis)).shape,
        [
            (((4,),), {}), (((2, 3),), {}), (((2, 3),), {"axis": -1}), (((2, 3, 2),), {"axis": [0, 2]}), (((),), {}),
            (((0, 3),), {"axis": 0}),
        ],
        batch_along_axis,
    ),
    d=linear(lambda g, axis: np.flip(g, as_axes(axis))),
    run=lambda x, axis=None: np.flip(x, as_axes(axis)),
    lower=view(is_array=lambda **params: False),
)  # fmt: skip
def reverse(x: TensorLike, /, axis: Axis = None) -> Any:
    """Return the elements in reverse order along ``axis``, or along all axes.

    x: a tensor, an array or a number.
    axis: the axis or axes; all of them without it.

    >>> reverse(np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """


flip = alias("flip", reverse)


@method
def reverse1d(x: TensorLike) -> Any:
    """Return the elements of a vector in reverse order.

    x: a tensor, an array or a number.

    >>> reverse1d(np.array([1.0, 2.0]))
    array([2., 1.])
    """
    return reverse(check_rank("reverse1d", x, 1), 0)


@method
def reverse2d(x: TensorLike, axis: Axis = None) -> Any:
    """Return ``reverse`` of a tensor of rank 2.

    x: a tensor, an array or a number.
    axis: the axes to reverse; all without it.

    >>> reverse2d(np.array([[1.0, 2.0]]), 1)
    array([[2., 1.]])
    """
    return reverse(check_rank("reverse2d", x, 2), axis)


@method
def reverse3d(x: TensorLike, axis: Axis = None) -> Any:
    """Return ``reverse`` of a tensor of rank 3.

    x: a tensor, an array or a number.
    axis: the axes to reverse; all without it.

    >>> reverse3d(np.array([[[1.0, 2.0]]]), [0, 2])
    array([[[2., 1.]]])
    """
    return reverse(check_rank("reverse3d", x, 3), axis)


@method
def reverse4d(x: TensorLike, axis: Axis = None) -> Any:
    """Return ``reverse`` of a tensor of rank 4.

    x: a tensor, an array or a number.
    axis: the axes to reverse; all without it.

    >>> reverse4d(np.array([[[[1.0, 2.0]]]]), 3)
    array([[[[2., 1.]]]])
    """
    return reverse(check_rank("reverse4d", x, 4), axis)


# ---- repeated elements


def _sum_to_shape(g: Value, shape: tuple[int, ...]) -> Any:
    """Return the adjoint of a broadcast: sums over the repeated axes."""
    extra = g.ndim - len(shape)
    spread = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1))
    return _restore_shape(np.sum(g, axis=spread), shape) if spread else g


def _infer_broadcast_shape(s: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    wanted = tuple(int(n) for n in (shape if hasattr(shape, "__len__") else [shape]))
    try:
        fits = np.broadcast_shapes(s, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"broadcast_to: x has shape {s}, which cannot be broadcast to {wanted}.")
    return wanted


@op(
    np.broadcast_to,
    acts=moves(
        _infer_broadcast_shape,
        [
            (((1, 3),), {"shape": (2, 3)}), (((3,),), {"shape": [2, 3]}), (((),), {"shape": (2, 2)}),
            (((2, 1, 2),), {"shape": (2, 3, 2)}), (((1,),), {"shape": (0,)}), (((),), {"shape": ()}),
        ],
        batch_broadcast,
    ),
    d=linear(lambda g, x_shape: _sum_to_shape(g, x_shape)),
    run=lambda x, shape: np.broadcast_to(x, shape),
    lower=view(put=None),
)  # fmt: skip
def broadcast_to(x: TensorLike, /, shape: ShapeLike) -> Any:
    """Return ``x`` repeated along axes of length 1 and new leading axes, without copying.

    x: a tensor, an array or a number.
    shape: the shape to broadcast to.

    >>> broadcast_to(np.array([1.0, 2.0]), [2, 2])
    array([[1., 2.],
           [1., 2.]])
    """
