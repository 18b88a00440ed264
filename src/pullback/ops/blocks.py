"""Blocks and grids: ``space_to_depth`` and its inverse, ``space_to_batch_nd``, broadcast shapes, ``meshgrid``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import linear, no_derivative
from pullback.core.composition import check_numbers
from pullback.core.lowering import made_of
from pullback.core.op import method, op
from pullback.core.tensor import concrete
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.batching import batch_by_folding

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Array, Lengths, ShapeLike, TensorLike, Value

__all__ = [
    "batch_to_space_nd", "broadcast_args", "depth_to_space", "ensure_shape", "meshgrid", "space_to_batch_nd",
    "space_to_depth",
]  # fmt: skip

Shape = tuple[int, ...]
Pairs = list[tuple[int, int]]


# ---- between the batch and the space


def _read_blocks(
    name: str, shape: Shape, block_shape: TensorLike, pairs: TensorLike, argument: str
) -> tuple[Shape, Pairs]:
    """Return the checked block lengths and pairs for each spatial axis."""
    try:
        blocks = tuple(int(n) for n in np.atleast_1d(concrete(block_shape)))
        widths = [(int(before), int(after)) for before, after in concrete(pairs)]
        if blocks != tuple(np.atleast_1d(concrete(block_shape))) or widths != [(a, b) for a, b in concrete(pairs)]:
            raise ValueError  # not whole numbers
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: block_shape must be a list of integers and {argument} a pair [before, after] for each, "
            f"got {block_shape!r} and {pairs!r}."
        ) from None
    if len(blocks) != len(widths) or len(shape) < 1 + len(blocks):
        raise ShapeError(
            f"{name}: x has shape {shape}, block_shape is {blocks} and {argument} {widths}; x must have a batch axis "
            f"and one for each block, and {argument} one pair for each."
        )
    if min(blocks, default=1) < 1 or min((min(pair) for pair in widths), default=0) < 0:
        raise ArgumentError(f"{name}: block_shape must be >= 1 and {argument} >= 0, got {blocks} and {widths}.")
    return blocks, widths


def _infer_batch_shape(shape: Shape, block_shape: TensorLike, paddings: TensorLike) -> Shape:
    blocks, pairs = _read_blocks("space_to_batch_nd", shape, block_shape, paddings, "paddings")
    space = [n + before + after for n, (before, after) in zip(shape[1:], pairs, strict=False)]
    if any(n % b for n, b in zip(space, blocks, strict=True)):
        raise ShapeError(
            f"space_to_batch_nd: x of shape {shape} has, with paddings {pairs}, the spatial lengths {tuple(space)}; "
            f"block_shape {blocks} does not divide them."
        )
    return (
        shape[0] * prod(blocks),
        *(n // b for n, b in zip(space, blocks, strict=True)),
        *shape[1 + len(blocks) :],
    )


def _infer_space_shape(shape: Shape, block_shape: TensorLike, crops: TensorLike) -> Shape:
    blocks, pairs = _read_blocks("batch_to_space_nd", shape, block_shape, crops, "crops")
    if shape[0] % prod(blocks):
        raise ShapeError(
            f"batch_to_space_nd: x has shape {shape}; its batch axis is not divisible by {prod(blocks)}, the number of "
            f"elements in a block of shape {blocks}."
        )
    space = [n * b - before - after for n, b, (before, after) in zip(shape[1:], blocks, pairs, strict=False)]
    if min(space, default=0) < 0:
        raise ShapeError(f"batch_to_space_nd: crops {pairs} take more than there is of x with shape {shape}.")
    return (shape[0] // prod(blocks), *space, *shape[1 + len(blocks) :])


def _space_to_batch(x: Value, block_shape: TensorLike, paddings: TensorLike) -> Any:
    due = _infer_batch_shape(x.shape, block_shape, paddings)
    blocks, pairs = _read_blocks("space_to_batch_nd", x.shape, block_shape, paddings, "paddings")
    m = len(blocks)
    if any(map(any, pairs)):
        x = np.pad(x, [(0, 0), *pairs, *[(0, 0)] * (x.ndim - 1 - m)])
    cut = x.reshape(x.shape[0], *sum(zip(due[1 : 1 + m], blocks, strict=True), ()), *due[1 + m :])
    order = (*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(1 + 2 * m, cut.ndim))
    return cut.transpose(order).reshape(due)


def _batch_to_space(x: Value, block_shape: TensorLike, crops: TensorLike) -> Any:
    due = _infer_space_shape(x.shape, block_shape, crops)
    blocks, pairs = _read_blocks("batch_to_space_nd", x.shape, block_shape, crops, "crops")
    m = len(blocks)
    cut = x.reshape(*blocks, due[0], *x.shape[1:])
    order = (m, *sum(((m + 1 + i, i) for i in range(m)), ()), *range(1 + 2 * m, cut.ndim))
    space = [n * b for n, b in zip(x.shape[1:], blocks, strict=False)]
    whole = cut.transpose(order).reshape(due[0], *space, *x.shape[1 + m :])
    inner = [slice(before, n - after) for n, (before, after) in zip(space, pairs, strict=True)]
    return whole[(slice(None), *inner)]


def _batch_behind(op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """Batch by moving the examples to the last axis, which the op leaves as it is."""
    return np.moveaxis(op.call([np.moveaxis(args[0], 0, -1)], params), -1, 0)


def _batch_to_space_vjp(g: Value, block_shape: Lengths, crops: Sequence[Any]) -> Any:
    return space_to_batch_nd(g, block_shape, crops)


@op(
    _batch_to_space,
    acts=moves(
        _infer_space_shape,
        [
            (((4, 2, 2, 1),), {"block_shape": [2, 2], "crops": [[1, 0], [0, 1]]}),
            (((4, 2, 1),), {"block_shape": [2], "crops": [[0, 1]]}),
            (((6, 1, 2),), {"block_shape": (3,), "crops": [(0, 0)]}),
            (((0, 2),), {"block_shape": [2], "crops": [[0, 0]]}), (((3, 2),), {"block_shape": [], "crops": []}),
        ],
        _batch_behind,
    ),
    d=linear(_batch_to_space_vjp),
    lower=made_of(_batch_to_space),
)  # fmt: skip
def batch_to_space_nd(x: TensorLike, /, block_shape: Lengths | Array, crops: Sequence[Any] | Array) -> Any:
    """Return the batch rearranged to blocks of ``block_shape`` in the spatial axes, from which ``crops`` are removed.

    x: a tensor, an array or a number.
    block_shape: the lengths of a block.
    crops: a pair [before, after] for each axis that is cut off.

    >>> batch_to_space_nd(np.array([[1.0], [2.0], [3.0], [4.0]]), [2], [[0, 0]])
    array([[1., 3.],
           [2., 4.]])
    """


@op(
    _space_to_batch,
    acts=moves(
        _infer_batch_shape,
        [
            (((1, 3, 4, 1),), {"block_shape": [2, 2], "paddings": [[1, 0], [0, 0]]}),
            (((2, 3, 1),), {"block_shape": [2], "paddings": [[0, 1]]}),
            (((1, 6, 2),), {"block_shape": (3,), "paddings": [(0, 0)]}),
            (((0, 2),), {"block_shape": [2], "paddings": [[0, 0]]}), (((3, 2),), {"block_shape": [], "paddings": []}),
        ],
        _batch_behind,
    ),
    d=linear(lambda g, block_shape, paddings: batch_to_space_nd(g, block_shape, paddings)),
    lower=made_of(_space_to_batch),
)  # fmt: skip
def space_to_batch_nd(x: TensorLike, /, block_shape: Lengths | Array, paddings: Sequence[Any] | Array) -> Any:
    """Return the spatial axes, padded with zeros, divided into blocks of ``block_shape``, which move to the batch axis.

    x: a tensor, an array or a number.
    block_shape: the lengths of a block.
    paddings: a pair [before, after] for each axis.

    >>> space_to_batch_nd(np.array([[1.0, 3.0], [2.0, 4.0]]), [2], [[0, 0]])
    array([[1.],
           [2.],
           [3.],
           [4.]])
    """


# ---- between the depth and the space


def _read_sides(name: str, shape: Shape, block_size: int, data_format: str) -> tuple[Shape, int, bool]:
    """Return batch, height, width and depth of ``shape``, the block length, and whether the depth is the last axis."""
    if data_format not in ("NHWC", "NCHW", None):
        raise ArgumentError(f"{name}: data_format must be 'NHWC' or 'NCHW', got {data_format!r}.")
    if len(shape) != 4:
        raise ShapeError(f"{name}: x must have rank 4, got shape {shape}.")
    if isinstance(block_size, bool) or not hasattr(block_size, "__index__") or block_size < 2:
        raise ArgumentError(f"{name}: block_size must be an integer >= 2, got {block_size!r}.")
    last = data_format != "NCHW"
    n, h, w, c = shape if last else (shape[0], *shape[2:], shape[1])
    return (n, h, w, c), int(block_size), last


def _infer_shallow_shape(shape: Shape, block_size: int, data_format: str) -> Shape:
    (n, h, w, c), b, last = _read_sides("depth_to_space", shape, block_size, data_format)
    if c % (b * b):
        raise ShapeError(
            f"depth_to_space: x has shape {shape}; its depth {c} is not divisible by {b * b} (block_size {b})."
        )
    h, w, c = h * b, w * b, c // (b * b)
    return (n, h, w, c) if last else (n, c, h, w)


def _infer_deep_shape(shape: Shape, block_size: int, data_format: str) -> Shape:
    (n, h, w, c), b, last = _read_sides("space_to_depth", shape, block_size, data_format)
    if h % b or w % b:
        raise ShapeError(
            f"space_to_depth: x has shape {shape}; its height {h} and width {w} are not divisible by block_size {b}."
        )
    h, w, c = h // b, w // b, c * b * b
    return (n, h, w, c) if last else (n, c, h, w)


def _depth_to_space(x: Value, block_size: int, data_format: str = "NHWC") -> Any:
    due = _infer_shallow_shape(x.shape, block_size, data_format)
    (n, h, w, c), b, last = _read_sides("depth_to_space", x.shape, block_size, data_format)
    c //= b * b
    if last:
        return x.reshape(n, h, w, b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(due)
    return x.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(due)


def _space_to_depth(x: Value, block_size: int, data_format: str = "NHWC") -> Any:
    due = _infer_deep_shape(x.shape, block_size, data_format)
    (n, h, w, c), b, last = _read_sides("space_to_depth", x.shape, block_size, data_format)
    if last:
        return x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(due)
    return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(due)


def _depth_to_space_vjp(g: Value, block_size: int, data_format: str) -> Any:
    return space_to_depth(g, block_size, data_format)


@op(
    _depth_to_space,
    acts=moves(
        _infer_shallow_shape,
        [
            (((1, 2, 1, 4),), {"block_size": 2}), (((2, 1, 2, 18),), {"block_size": 3}),
            (((2, 8, 1, 3),), {"block_size": 2, "data_format": "NCHW"}), (((0, 1, 1, 4),), {"block_size": 2}),
        ],
        batch_by_folding,
    ),
    d=linear(_depth_to_space_vjp),
    lower=made_of(_depth_to_space),
)  # fmt: skip
def depth_to_space(x: TensorLike, /, block_size: int, data_format: str = "NHWC") -> Any:
    """Return images in which the channels of each pixel are rearranged to a block of pixels.

    x: a tensor, an array or a number.
    block_size: the height and width of a block.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.

    >>> depth_to_space(np.array([1.0, 2.0, 3.0, 4.0]).reshape(1, 1, 1, 4), 2)[0, :, :, 0]
    array([[1., 2.],
           [3., 4.]])
    """


@op(
    _space_to_depth,
    acts=moves(
        _infer_deep_shape,
        [
            (((1, 4, 2, 1),), {"block_size": 2}), (((2, 3, 6, 2),), {"block_size": 3}),
            (((2, 2, 2, 6),), {"block_size": 2, "data_format": "NCHW"}), (((0, 2, 2, 1),), {"block_size": 2}),
        ],
        batch_by_folding,
    ),
    d=linear(lambda g, block_size, data_format: depth_to_space(g, block_size, data_format)),
    lower=made_of(_space_to_depth),
)  # fmt: skip
def space_to_depth(x: TensorLike, /, block_size: int, data_format: str = "NHWC") -> Any:
    """Return images in which each block of pixels is rearranged to the channels of one pixel.

    x: a tensor, an array or a number.
    block_size: the height and width of a block.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.

    >>> space_to_depth(np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 2, 1), 2)[0, 0, 0]
    array([1., 2., 3., 4.])
    """


# ---- shapes that agree


def _broadcast_shapes(a: Array, b: Array) -> Any:
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"broadcast_args: both shapes must be vectors, got shapes {a.shape} and {b.shape}.")
    for argument, s in (("s0", a), ("s1", b)):
        if np.any(s != np.floor(s)) or np.any(s < 0):
            raise ArgumentError(f"broadcast_args: {argument} must be a shape, lengths >= 0, got {s.tolist()}.")
    n = max(a.size, b.size)
    x, y = (np.concatenate([np.ones(n - s.size, s.dtype), s]) for s in (a, b))
    if np.any((x != y) & (x != 1) & (y != 1)):
        raise ShapeError(
            f"broadcast_args: the shapes {a.tolist()} and {b.tolist()} do not broadcast. "
            "Axes are compared from the last; each pair must be equal or one of them 1."
        )
    z = np.where(x == 1, y, x)
    return z if z.dtype.kind in "iu" else z.astype(np.int32)


@op(
    _broadcast_shapes,
    acts=moves(
        lambda a, b: (max(*a, *b),),
        [
            ((np.array([2, 1]), np.array([1, 3])), {}), ((np.array([4]), np.array([2, 3, 1])), {}),
            ((np.empty(0, int), np.array([2])), {}),
        ],
    ),
    d=no_derivative(),
)  # fmt: skip
def broadcast_args(s0: TensorLike, s1: TensorLike, /) -> Any:
    """Return the shape that two shapes broadcast to; all three are vectors of integers.

    s0: a shape.
    s1: another shape.

    >>> broadcast_args(np.array([2, 1]), np.array([3]))
    array([2, 3])
    """


@method
def ensure_shape(x: TensorLike, shape: ShapeLike) -> Any:
    """Return ``x`` itself, if it has this shape; ``None`` stands for any length.

    x: a tensor, an array or a number.
    shape: the lengths; None where any will do.

    >>> ensure_shape(np.ones((2, 3)), [None, 3]).shape
    (2, 3)
    """
    x = check_numbers("ensure_shape", "x", x)
    if not isinstance(shape, list | tuple):
        raise ArgumentError(f"ensure_shape: shape must be a list of lengths or None, got {shape!r}.")
    wanted = tuple(shape)
    if len(x.shape) != len(wanted) or any(w not in (None, n) for n, w in zip(x.shape, wanted, strict=True)):
        raise ShapeError(f"ensure_shape: x has shape {x.shape}, expected {wanted}.")
    return x


def meshgrid(*xs: TensorLike, indexing: str = "xy", sparse: bool = False) -> tuple[Any, ...]:
    """Return the coordinates of every point of a grid, one result for each vector of coordinates along an axis.

    With ``"xy"`` the first one runs along the columns, with ``"ij"`` along the rows.

    xs: vectors.
    indexing: ``"xy"`` or ``"ij"``, as in NumPy.
    sparse: whether axes along which a grid is constant have length 1.

    >>> meshgrid(np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]))[1]
    array([[3., 3.],
           [4., 4.],
           [5., 5.]])
    """
    return tuple(x.copy() for x in view_grid(*xs, indexing=indexing, sparse=sparse))


def view_grid(*xs: TensorLike, indexing: str, sparse: bool) -> list[Any]:
    """Return the coordinates of a grid as views of the given ones."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}.")
    n = len(xs)
    vectors = [check_numbers("meshgrid", f"xs[{i}]", x) for i, x in enumerate(xs)]
    grid = [np.reshape(x, (1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, x in enumerate(vectors)]
    if indexing == "xy" and n > 1:
        grid = [np.swapaxes(x, 0, 1) for x in grid]
    if sparse:
        return grid
    shape = np.broadcast_shapes(*(x.shape for x in grid))
    return [np.broadcast_to(x, shape) for x in grid]
