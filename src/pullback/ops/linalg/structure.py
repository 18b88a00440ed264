"""Diagonals, bands and traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Shape, moves
from pullback.core.calculus import linear
from pullback.core.composition import check_numbers, rename_errors
from pullback.core.lowering import made_of
from pullback.core.op import op
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.batching import batch_leading_axes
from pullback.ops.linalg.pieces import Matrices

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.core.tensor import Tensor
    from pullback.typing import Array, ShapeLike, TensorLike, Value

__all__ = ["band_part", "diag", "diag_embed", "diag_part", "tensor_diag_part", "trace"]


# ---- tensors of twice the rank, as in TensorFlow.js


def make_tensor_diagonal(x: Array) -> Any:
    z = np.zeros((x.size, x.size), x.dtype)
    np.fill_diagonal(z, x)
    return z.reshape(x.shape * 2)


def take_tensor_diagonal(x: Array) -> Any:
    shape = halve_shape(x.shape)
    n = prod(shape)
    return x.reshape(n, n).diagonal().reshape(shape).copy()


def compose_tensor_diagonal(x: Tensor) -> Any:
    shape = halve_shape(x.shape)
    return np.reshape(compose_diagonal(np.reshape(x, (prod(shape), prod(shape))), 0), shape)


def halve_shape(shape: Shape) -> Shape:
    half = len(shape) // 2
    if shape[:half] != shape[half:]:
        raise ShapeError(f"tensor_diag_part: expected a shape that is another one twice, as diag makes; got {shape}.")
    return shape[:half]


def batch_diag(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    (x,) = args
    n, *shape = x.shape
    return np.reshape(diag_embed(np.reshape(x, (n, prod(shape)))), (n, *shape, *shape))


def batch_diag_part(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
    (x,) = args
    n, shape = x.shape[0], halve_shape(x.shape[1:])
    return np.reshape(diag_part(np.reshape(x, (n, prod(shape), prod(shape)))), (n, *shape))


def diag_vjp(g: Value) -> Any:
    return tensor_diag_part(g)


@op(
    make_tensor_diagonal,
    acts=moves(lambda s: s + s, [((s,), {}) for s in ((3,), (2, 3), (), (0,), (2, 1, 2))], batch_diag),
    d=linear(diag_vjp),
    lower=made_of(lambda x: np.reshape(compose_embedding(np.reshape(x, (-1,))), x.shape * 2)),
)
def diag(x: TensorLike, /) -> Any:
    """Return zeros with ``x`` on the diagonal: a matrix for a vector, a tensor of twice the rank for other inputs.

    >>> pb.diag(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    >>> pb.diag(np.ones((2, 3))).shape
    (2, 3, 2, 3)
    """


@op(
    take_tensor_diagonal,
    acts=moves(halve_shape, [((s * 2,), {}) for s in ((3,), (2, 3), (), (0,))], batch_diag_part),
    d=linear(lambda g: diag(g)),
    lower=made_of(compose_tensor_diagonal),
)
def tensor_diag_part(x: TensorLike, /) -> Any:
    """Return the diagonal of a tensor of shape ``(*s, *s)``: the inverse of ``diag``.

    x: a tensor, an array or a number.

    >>> pb.linalg.tensor_diag_part(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """


# ---- matrices over the last two axes


def check_diagonal_number(name: str, k: float) -> int:
    """Return the number of a diagonal, checked to be an integer."""
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise ArgumentError(f"{name}: the diagonal must be an integer, above the main one or negative; got {k!r}.")
    return int(k)


def take_diagonal(x: Array, k: int = 0) -> Any:
    return np.diagonal(x, k, -2, -1).copy()


def compose_diagonal(x: Value, k: int) -> Any:
    """Take the diagonal as a strided slice of the flattened matrix."""
    *batch, m, n = x.shape
    count, first = count_diagonal(m, n, k), max(k, 0) + max(-k, 0) * n
    end = first + max(count - 1, 0) * (n + 1) + 1 if count else first
    return np.reshape(x, (*batch, m * n))[..., first : end : n + 1]


def count_diagonal(m: int, n: int, k: int) -> int:
    return max(0, min(m + min(k, 0), n - max(k, 0)))


class Diagonals(Matrices):
    """The k-th diagonals of matrices."""

    def shape(self, name: str, shapes: Any, params: Any) -> Shape:
        *batch, m, n = super().shape(name, shapes, params)
        return (*batch, count_diagonal(m, n, check_diagonal_number(name, params["k"])))


WIDTHS: tuple[dict[str, Any], ...] = ({}, {"k": 1}, {"k": -2})


def diag_part_vjp(g: Value, x_shape: Shape, k: int) -> Any:
    return diag_embed(g, k, x_shape[-2:])


@op(
    take_diagonal,
    acts=Diagonals(lambda m, n: (m, n), [(3, 3), (2, 4, 3), (0, 3), (2, 1, 2)], square=False, parameter_sets=WIDTHS),
    d=linear(diag_part_vjp),
    lower=made_of(compose_diagonal),
)
def diag_part(x: TensorLike, /, k: int = 0) -> Any:
    """Return the diagonals of matrices over the last two axes; ``k`` above the main one, or below it if negative.

    x: a tensor, an array or a number.
    k: how far above the main diagonal; below it if negative.

    >>> pb.linalg.diag_part(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    >>> pb.linalg.diag_part(np.array([[1.0, 2.0], [3.0, 4.0]]), 1)
    array([2.])
    """


def embed_diagonal(x: Array, k: int = 0, shape: Sequence[int] | None = None) -> Any:
    m, n = find_embedding_shape(x.shape, k, shape)[-2:]
    z = np.zeros((*x.shape[:-1], m, n), x.dtype)
    i = np.arange(x.shape[-1])
    z[..., i + max(-k, 0), i + max(k, 0)] = x
    return z


def compose_embedding(x: Any, k: int = 0, shape: Sequence[int] | None = None) -> Any:
    """Embed a diagonal by padding and reshaping."""
    *batch, m, n = find_embedding_shape(x.shape, k, shape)
    before = min(max(-k, 0), m - x.shape[-1])  # a diagonal outside the matrix has no elements
    if x.shape[-1] != m:
        x = np.pad(x, [(0, 0)] * len(batch) + [(before, m - before - x.shape[-1])])
    return np.where(np.eye(m, n, k, dtype=bool), np.expand_dims(x, -1), np.zeros((), x.dtype))


def find_embedding_shape(x: Shape, k: int = 0, shape: Sequence[int] | None = None) -> Shape:
    if not x:
        raise ShapeError("diag_embed: x must be a vector, or several over its last axis; got a scalar.")
    n = x[-1] + abs(check_diagonal_number("diag_embed", k))
    if shape is not None and (not isinstance(shape, list | tuple) or len(shape) != 2):
        raise ArgumentError(f"diag_embed: shape must be [rows, columns], got {shape!r}.")
    rows, columns = (n, n) if shape is None else shape
    if count_diagonal(rows, columns, k) != x[-1]:
        raise ShapeError(
            f"diag_embed: the diagonal k={k} of shape {(rows, columns)} does not have the length {x[-1]} of x."
        )
    return (*x[:-1], rows, columns)


@op(
    embed_diagonal,
    acts=moves(
        find_embedding_shape,
        [
            (((3,),), {}),
            (((2, 3),), {"k": 1}),
            (((2, 2),), {"k": -1, "shape": (3, 4)}),
            (((2, 0),), {}),
            (((0, 2),), {}),
        ],
        batch_leading_axes,
    ),
    d=linear(lambda g, k: diag_part(g, k)),
    lower=made_of(compose_embedding),
)
def diag_embed(x: TensorLike, /, k: int = 0, shape: ShapeLike | None = None) -> Any:
    """Return matrices with the vectors ``x`` on their ``k``-th diagonal; of ``shape``, or the smallest square ones.

    >>> pb.linalg.diag_embed(np.array([[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2, 2)
    >>> pb.linalg.diag_embed(np.array([5.0]), 1)
    array([[0., 5.],
           [0., 0.]])
    """


@rename_errors("trace")
def trace(x: TensorLike, offset: int = 0) -> Any:
    """Return the sum of the diagonal, of matrices over the last two axes.

    x: matrices, along the last two axes.
    offset: which diagonal: above 0 those above the main one.

    >>> pb.linalg.trace(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.float64(5.0)
    """
    return np.sum(diag_part(check_numbers("trace", "x", x), check_diagonal_number("trace", offset)), axis=-1)


@lru_cache(256)
def mask_band(m: int, n: int, lower: int, upper: int) -> Any:
    """Return a mask of the elements at most ``lower`` below and ``upper`` above the diagonal; negative means all."""
    above = np.arange(n) - np.arange(m)[:, None]
    return (above >= (-lower if lower >= 0 else -m)) & (above <= (upper if upper >= 0 else n))


def keep_band(x: Value, num_lower: int, num_upper: int) -> Any:
    for name, value in {"num_lower": num_lower, "num_upper": num_upper}.items():
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ArgumentError(f"band_part: {name} must be an integer, negative for the whole side; got {value!r}.")
    return np.where(mask_band(*x.shape[-2:], int(num_lower), int(num_upper)), x, np.zeros((), x.dtype))


BANDS = tuple({"num_lower": lower, "num_upper": upper} for lower, upper in ((1, 0), (-1, 1), (0, 9)))


def band_part_vjp(g: Value, num_lower: int, num_upper: int) -> Any:
    return band_part(g, num_lower, num_upper)


@op(
    keep_band,
    acts=Matrices(lambda m, n: (m, n), [(3, 3), (2, 4, 3), (0, 3)], square=False, parameter_sets=BANDS),
    d=linear(band_part_vjp),
    lower=made_of(keep_band),
)
def band_part(x: TensorLike, /, num_lower: int, num_upper: int) -> Any:
    """Return a copy with zeros outside a band: ``num_lower`` diagonals below the main one stay, ``num_upper`` above it.

    A negative number means all of them, so ``band_part(x, -1, 0)`` is the lower triangle.

    x: a tensor, an array or a number.
    num_lower: diagonals below the main one that stay; all if negative.
    num_upper: diagonals above the main one that stay; all if negative.

    >>> pb.linalg.band_part(np.array([[1.0, 2.0], [3.0, 4.0]]), 0, -1)
    array([[1., 2.],
           [0., 4.]])
    """
