"""Padding with a constant or with reflected elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import rule
from pullback.core.lowering import pieces
from pullback.core.op import check_rank, convert_operand, method, op
from pullback.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from pullback.typing import Array, Lengths, Number, TensorLike, Value

__all__ = ["mirror_pad", "pad", "pad1d", "pad2d", "pad3d", "pad4d"]


def _read_pairs(name: str, shape: tuple[int, ...], paddings: Any) -> list[tuple[int, int]]:
    """Return the numbers of elements added before and after each axis."""
    try:
        pairs = [(int(before), int(after)) for before, after in paddings]
        if any((int(a), int(b)) != (a, b) for a, b in paddings):
            raise ValueError  # not whole numbers
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: paddings must be a pair [before, after] for each axis of x, got {paddings!r}."
        ) from None
    if len(pairs) != len(shape) or any(min(pair) < 0 for pair in pairs):
        raise ShapeError(
            f"{name}: x has shape {shape}, so paddings must be {len(shape)} pairs [before, after] of lengths >= 0, "
            f"got {paddings!r}."
        )
    return pairs


def _compute_padded_shape(shape: tuple[int, ...], pairs: list[tuple[int, int]]) -> list[int]:
    return [a + n + b for n, (a, b) in zip(shape, pairs, strict=True)]


def _locate_inside(shape: tuple[int, ...], paddings: Sequence[Any]) -> tuple[slice, ...]:
    return tuple([slice(a, a + n) for n, (a, _) in zip(shape, paddings, strict=True)])


def _pad(x: Array, paddings: Lengths, constant_value: Number = 0) -> Any:
    pairs = _read_pairs("pad", x.shape, paddings)
    z = np.full(_compute_padded_shape(x.shape, pairs), constant_value, x.dtype)
    z[_locate_inside(x.shape, pairs)] = x
    return z


def _pad_jvp(dx: Value, paddings: Sequence[Any]) -> Any:
    return pad(dx, paddings)


@op(
    _pad,
    acts=moves(
        lambda s, paddings, constant_value: _compute_padded_shape(s, _read_pairs("pad", s, paddings)),
        [
            (((3,),), {"paddings": [[1, 2]], "constant_value": 5}), (((2, 2),), {"paddings": [[1, 0], [0, 2]]}),
            (((2, 1, 2),), {"paddings": ((0, 0), (1, 1), (0, 1))}), (((0,),), {"paddings": [[1, 1]]}),
            (((),), {"paddings": []}),
        ],
        lambda op, args, on, params: op.call(args, {**params, "paddings": [(0, 0), *params["paddings"]]}),
    ),
    d=rule(
        lambda g, x_shape, paddings: g[_locate_inside(x_shape, paddings)],
        jvp=_pad_jvp,
    ),
    lower=pieces(lambda shapes, paddings, constant_value: [_locate_inside(shapes[0], paddings)], fill="constant_value"),
)  # fmt: skip
def pad(x: TensorLike, /, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Any:
    """Return ``x`` padded with ``constant_value`` by ``[before, after]`` elements along each axis.

    x: a tensor, an array or a number.
    paddings: a pair [before, after] for each axis.
    constant_value: what is put around.

    >>> pad(np.array([1.0, 2.0]), [[1, 2]])
    array([0., 1., 2., 0., 0.])
    """


@method
def pad1d(x: TensorLike, paddings: Sequence[int] | Array, constant_value: Number = 0) -> Any:
    """Return ``pad`` of a vector; ``paddings`` is one pair.

    x: a tensor, an array or a number.
    paddings: a pair [before, after] for each axis.
    constant_value: what is put around.

    >>> pad1d(np.array([1.0, 2.0]), [1, 0])
    array([0., 1., 2.])
    """
    return pad(check_rank("pad1d", x, 1), [paddings], constant_value)


@method
def pad2d(x: TensorLike, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Any:
    """Return ``pad`` of a tensor of rank 2.

    x: a tensor, an array or a number.
    paddings: a pair [before, after] for each axis.
    constant_value: what is put around.

    >>> pad2d(np.ones((1, 1)), [[0, 0], [1, 0]])
    array([[0., 1.]])
    """
    return pad(check_rank("pad2d", x, 2), paddings, constant_value)


@method
def pad3d(x: TensorLike, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Any:
    """Return ``pad`` of a tensor of rank 3.

    x: a tensor, an array or a number.
    paddings: a pair [before, after] for each axis.
    constant_value: what is put around.

    >>> pad3d(np.ones((1, 1, 1)), [[0, 0], [0, 0], [1, 0]])
    array([[[0., 1.]]])
    """
    return pad(check_rank("pad3d", x, 3), paddings, constant_value)


@method
def pad4d(x: TensorLike, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Any:
    """Return ``pad`` of a tensor of rank 4.

    x: a tensor, an array or a number.
    paddings: a pair [before, after] for each axis.
    constant_value: what is put around.

    >>> pad4d(np.ones((1, 1, 1, 1)), [[0, 0], [0, 0], [0, 0], [1, 0]])
    array([[[[0., 1.]]]])
    """
    return pad(check_rank("pad4d", x, 4), paddings, constant_value)


@method
def mirror_pad(x: TensorLike, paddings: Sequence[Any] | Array, mode: str = "reflect") -> Any:
    """Return ``x`` padded with its reflection; ``"symmetric"`` repeats the edge element, ``"reflect"`` does not.

    x: a tensor, an array or a number.
    paddings: a pair [before, after] for each axis.
    mode: ``"reflect"`` or ``"symmetric"``.

    >>> mirror_pad(np.array([1.0, 2.0, 3.0]), [[2, 1]], "reflect")
    array([3., 2., 1., 2., 3., 2.])
    """
    if mode not in ("reflect", "symmetric"):
        raise ArgumentError(f"mirror_pad: mode must be 'reflect' or 'symmetric', got {mode!r}.")
    z: Any = convert_operand(x, "mirror_pad")
    shape = z.shape
    pairs = _read_pairs("mirror_pad", shape, paddings)
    for axis, pair in enumerate(pairs):
        if any(pair) and not shape[axis]:
            raise ShapeError(f"mirror_pad: x has shape {shape}; there is nothing to mirror along axis {axis}.")
    return np.pad(z, pairs, mode=mode) if any(map(any, pairs)) else z  # type: ignore[call-overload]
