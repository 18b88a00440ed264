"""Products of many matrices, and powers of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.composition import check_numbers, rename_errors
from pullback.core.op import observable
from pullback.errors import ArgumentError, ShapeError
from pullback.ops.linalg.pieces import same_square
from pullback.ops.linalg.solving import inv

if TYPE_CHECKING:
    from pullback.typing import TensorLike

__all__ = ["matrix_power", "multi_dot"]


@rename_errors("matrix_power")
def matrix_power(x: TensorLike, n: int) -> Any:
    """Return square matrices raised to the power ``n``; for negative ``n`` the inverse is raised.

    x: square matrices, along the last two axes.
    n: the power, an integer.

    >>> pb.linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 3)
    array([[1., 3.],
           [0., 1.]])
    """
    x = check_numbers("matrix_power", "x", x)
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ArgumentError(f"matrix_power: n must be an integer, got {n!r}.")
    same_square.shape("matrix_power", [x.shape], {})
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        identity: Any = np.eye(x.shape[-1], dtype=x.dtype)
        return np.zeros_like(x) + identity
    if n == 3:
        return (x @ x) @ x
    square: Any = x
    result = x if n % 2 else None  # in the order in which NumPy multiplies
    while n := n // 2:
        square = square @ square
        if n % 2:
            result = square if result is None else result @ square
    return result


@lru_cache(256)
def find_cheapest_order(sizes: tuple[int, ...]) -> tuple[int, Any]:
    """Return the least number of multiplications of a chain of products, and the order: a number, or a pair of orders.

    >>> find_cheapest_order((10, 100, 5, 50))
    (7500, ((0, 1), 2))
    """
    last = len(sizes) - 2
    if not last:
        return 0, 0
    splits = []
    for k in range(1, last + 1):
        (left, a), (right, b) = find_cheapest_order(sizes[: k + 1]), find_cheapest_order(sizes[k:])
        splits.append((left + right + sizes[0] * sizes[k] * sizes[-1], k, a, b))
    cost, k, a, b = min(splits, key=lambda split: split[:2])
    return cost, (a, shift_order(b, k))


def shift_order(order: Any, by: int) -> Any:
    return tuple(shift_order(part, by) for part in order) if isinstance(order, tuple) else order + by


@observable
def multi_dot(arrays: Sequence[Any]) -> Any:
    """Return the product of several matrices, in the order that takes the least work; the ends may be vectors.

    arrays: matrices, in order.

    >>> pb.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)])
    array([12., 12.])
    """
    if not isinstance(arrays, list | tuple) or len(arrays) < 2:
        got = f"{len(arrays)}" if isinstance(arrays, list | tuple) else type(arrays).__name__
        raise ArgumentError(f"multi_dot: arrays must be a list of two arrays at least, got {got}.")
    xs = [check_numbers("multi_dot", f"arrays[{i}]", x) for i, x in enumerate(arrays)]
    row, column = xs[0].ndim == 1, xs[-1].ndim == 1
    shapes = [x.shape for x in xs]
    if row:
        xs[0] = xs[0][None, :]
    if column:
        xs[-1] = xs[-1][:, None]
    if any(x.ndim != 2 for x in xs) or any(a.shape[1] != b.shape[0] for a, b in pairwise(xs)):
        raise ShapeError(
            f"multi_dot: expected matrices, the columns of each being as many as the rows of the next; got {shapes}."
        )
    _, order = find_cheapest_order((*(x.shape[0] for x in xs), xs[-1].shape[1]))
    z = multiply_in_order(xs, order)
    z = z[0] if row else z
    return z[..., 0] if column else z


def multiply_in_order(xs: Sequence[Any], order: Any) -> Any:
    return multiply_in_order(xs, order[0]) @ multiply_in_order(xs, order[1]) if isinstance(order, tuple) else xs[order]
