"""Roll and tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import linear
from pullback.core.lowering import made_of
from pullback.core.op import op
from pullback.errors import ShapeError
from pullback.numerics.adjoints import as_axes
from pullback.numerics.axis_arguments import resolve_axes
from pullback.numerics.batching import batch_along_axis

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Axis, Lengths, TensorLike, Value

__all__ = ["roll", "tile"]


def _negate_shift(shift: Any) -> Any:
    return tuple(-n for n in shift) if isinstance(shift, list | tuple) else -shift


def _batch_roll(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    x, axis = args[0], params["axis"]
    rows = np.reshape(x, (x.shape[0], prod(x.shape[1:]))) if axis is None else x
    return np.reshape(batch_along_axis(op, [rows], on, {**params, "axis": 0 if axis is None else axis}), x.shape)


def _roll_by_halves(x: Value, shift: Lengths, axis: Axis) -> Any:
    """Roll along each axis by joining two halves."""
    if axis is None:
        return np.reshape(_roll_by_halves(np.reshape(x, (-1,)), shift, 0), x.shape)
    axes = axis if isinstance(axis, list | tuple) else (axis,)
    for a, by in np.broadcast(axes, shift):
        (at,) = resolve_axes(len(x.shape), int(a), "roll")
        n, whole = x.shape[at], (slice(None),) * at
        if n and by % n:
            x = np.concatenate([x[(*whole, slice(n - by % n, None))], x[(*whole, slice(n - by % n))]], at)
    return x


@op(
    np.roll,
    acts=moves(
        lambda s, shift, axis: np.roll(np.empty(s, bool), shift, as_axes(axis)).shape,
        [
            (((4,),), {"shift": 1}), (((2, 3),), {"shift": -2}), (((2, 3),), {"shift": [1, 2], "axis": [0, 1]}),
            (((0, 2),), {"shift": 1, "axis": 1}),
        ],
        _batch_roll,
    ),
    d=linear(lambda g, shift, axis: np.roll(g, _negate_shift(shift), as_axes(axis))),
    run=lambda x, shift, axis=None: np.roll(x, shift, as_axes(axis)),
    lower=made_of(_roll_by_halves),
)  # fmt: skip
def roll(x: TensorLike, /, shift: Lengths, axis: Axis = None) -> Any:
    """Return the elements shifted by ``shift`` places, cyclically.

    x: a tensor, an array or a number.
    shift: the number of places, or one for each axis.
    axis: the axis or axes.

    >>> roll(np.array([1.0, 2.0, 3.0]), 1)
    array([3., 1., 2.])
    """


def _align_reps(s: tuple[int, ...], reps: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and repetitions, which may be a tensor, padded to equal length."""
    reps = tuple(index(r) for r in ([reps] if np.ndim(reps) == 0 else reps))
    n = max(len(s), len(reps))
    return (1,) * (n - len(s)) + s, (1,) * (n - len(reps)) + reps


def _infer_tiled_shape(s: tuple[int, ...], reps: Lengths) -> list[int]:
    s, reps = _align_reps(s, reps)
    if min(reps, default=0) < 0:
        raise ShapeError(f"tile: reps must not be negative, got {reps}.")
    return [n * r for n, r in zip(s, reps, strict=True)]


def _pull_tile(g: Value, shape: tuple[int, ...], reps: Lengths) -> Any:
    s, r = _align_reps(shape, reps)
    each = np.reshape(g, [n for pair in zip(r, s, strict=True) for n in pair])
    z = np.sum(each, axis=tuple(range(0, 2 * len(s), 2)))
    return z if z.shape == shape else np.reshape(z, shape)


def _batch_tile(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    (x,) = args
    s, reps = _align_reps(x.shape[1:], params["reps"])
    return op.call([np.reshape(x, (x.shape[0], *s))], {"reps": (1, *reps)})


MAX_CONCATENATED = 4  # copies up to which concatenation is as fast as a broadcast


def _compose_tile(x: Value, reps: Lengths) -> Any:
    s, r = _align_reps(x.shape, reps)
    if max(r, default=1) <= MAX_CONCATENATED and min(r, default=1):
        x = np.reshape(x, s)
        for axis, times in enumerate(r):
            x = np.concatenate([x] * times, axis) if times > 1 else x
        return x
    spread = np.broadcast_to(
        np.reshape(x, [n for length in s for n in (1, length)]), [n for pair in zip(r, s, strict=True) for n in pair]
    )
    return np.reshape(spread, [n * times for n, times in zip(s, r, strict=True)])


@op(
    np.tile,
    acts=moves(
        _infer_tiled_shape,
        [
            (((3,),), {"reps": [2]}), (((2, 2),), {"reps": (2, 3)}), (((2,),), {"reps": (2, 2)}),
            (((2, 3),), {"reps": 2}), (((),), {"reps": (2,)}), (((0,),), {"reps": (2,)}), (((2,),), {"reps": (0,)}),
            (((2, 3),), {"reps": [1, 1]}),
        ],
        _batch_tile,
    ),
    d=linear(lambda g, x_shape, reps: _pull_tile(g, x_shape, reps)),
    run=lambda x, reps: np.tile(x, _align_reps(np.shape(x), reps)[1]),
    lower=made_of(_compose_tile),
)  # fmt: skip
def tile(x: TensorLike, /, reps: Lengths) -> Any:
    """Return ``x`` repeated ``reps`` times along each axis.

    >>> tile(np.array([1.0, 2.0]), [2])
    array([1., 2., 1., 2.])
    """
