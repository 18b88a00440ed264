"""Functions that are not in the Array API but that libraries such as xarray and scikit-learn expect in a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pullback.interop.array_api.arguments import as_operand, as_result, call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pullback.core.tensor import Tensor
    from pullback.typing import Axis, Value


def einsum(subscripts: str, /, *operands: Value) -> Tensor:
    """Return a sum of products of elements, by Einstein's convention.

    subscripts: the letters of the axes, as in ``"ij,jk->ik"``.
    operands: the arrays.
    """
    result: Tensor = as_result(np.einsum(subscripts, *map(as_operand, operands)))
    return result


def gradient(f: Value, /, *spacing: Value, axis: Axis = None, edge_order: int = 1) -> Tensor | tuple[Tensor, ...]:
    """Return the numerical gradient along axes, by central differences.

    f: the array.
    spacing: the distance between neighbours, or their coordinates, for all axes or one for each.
    axis: one axis, several, or None for all.
    edge_order: 1 or 2, the order of the differences at the edges.
    """
    slopes: Callable[..., object] = np.gradient  # whose stubs distinguish edge orders
    result: Tensor | tuple[Tensor, ...] = as_result(
        slopes(as_operand(f), *map(as_operand, spacing), axis=axis, edge_order=edge_order)
    )
    return result


def median(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the medians over axes.

    x: the array.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.median, x, axis=axis, keepdims=keepdims)


def pad(
    x: Value, pad_width: int | Sequence[int] | Sequence[Sequence[int]], mode: str = "constant", **parameters: object
) -> Tensor:
    """Return the array padded at the ends of its axes.

    x: the array.
    pad_width: how many before and after each axis, as ``np.pad`` takes it.
    mode: what the new elements are, by the names of ``np.pad``.
    parameters: those of the mode, such as ``constant_values``.
    """
    return call(np.pad, x, pad_width=pad_width, mode=mode, **parameters)


def quantile(x: Value, q: Value, /, *, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Return quantiles over axes.

    x: the array.
    q: which ones, from 0 to 1.
    axis: one axis, several, or None for all.
    method: how to interpolate, by the names of ``np.quantile``.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.quantile, x, q, axis=axis, method=method, keepdims=keepdims)


def transpose(x: Value, axes: Sequence[int] | None = None) -> Tensor:
    """Return the array with its axes in another order.

    x: the array.
    axes: the order, or None for the reverse of what they are in.
    """
    return call(np.transpose, x, axes=axes)
