"""Reductions and running sums by the names of the Array API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pullback.interop.array_api.arguments import as_operand, call, cast, widen

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Axis, DType, Value


def cumulative_prod(
    x: Value, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
) -> Tensor:
    """Return running products along an axis.

    x: the array.
    axis: the axis; it may be None where there is only one.
    dtype: the dtype to multiply in; without it that of ``x``, and short integers as int64 or uint64.
    include_initial: whether the products begin with 1.
    """
    return cast(call(np.cumulative_prod, widen(x, dtype), axis=axis, include_initial=include_initial), dtype)


def cumulative_sum(
    x: Value, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
) -> Tensor:
    """Return running sums along an axis.

    x: the array.
    axis: the axis; it may be None where there is only one.
    dtype: the dtype to add in; without it that of ``x``, and short integers as int64 or uint64.
    include_initial: whether the sums begin with 0.
    """
    return cast(call(np.cumulative_sum, widen(x, dtype), axis=axis, include_initial=include_initial), dtype)


def max(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest elements over axes.

    x: the array.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.max, x, axis=axis, keepdims=keepdims)


def mean(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the means over axes.

    x: the array, of floats.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.mean, x, axis=axis, keepdims=keepdims)


def min(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest elements over axes.

    x: the array.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.min, x, axis=axis, keepdims=keepdims)


def prod(x: Value, /, *, axis: Axis = None, dtype: DType = None, keepdims: bool = False) -> Tensor:
    """Return the products over axes.

    x: the array.
    axis: one axis, several, or None for all.
    dtype: the dtype to multiply in; without it that of ``x``, and short integers as int64 or uint64.
    keepdims: whether the axes stay, with length 1.
    """
    return cast(call(np.prod, widen(x, dtype), axis=axis, keepdims=keepdims), dtype)


def std(x: Value, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviations over axes.

    x: the array, of floats.
    axis: one axis, several, or None for all.
    correction: what is subtracted from the number of elements before dividing by it.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.std, x, axis=axis, ddof=correction, keepdims=keepdims)


def sum(x: Value, /, *, axis: Axis = None, dtype: DType = None, keepdims: bool = False) -> Tensor:
    """Return the sums over axes.

    x: the array.
    axis: one axis, several, or None for all.
    dtype: the dtype to add in; without it that of ``x``, and short integers as int64 or uint64.
    keepdims: whether the axes stay, with length 1.
    """
    return cast(call(np.sum, widen(x, dtype), axis=axis, keepdims=keepdims), dtype)


def var(x: Value, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variances over axes.

    x: the array, of floats.
    axis: one axis, several, or None for all.
    correction: what is subtracted from the number of elements before dividing by it.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.var, x, axis=axis, ddof=correction, keepdims=keepdims)


def all(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements over axes are true.

    x: the array.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.all, x, axis=axis, keepdims=keepdims)


def any(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether any element over axes is true.

    x: the array.
    axis: one axis, several, or None for all.
    keepdims: whether the axes stay, with length 1.
    """
    return call(np.any, x, axis=axis, keepdims=keepdims)


def diff(x: Value, /, n: int = 1, axis: int = -1, prepend: Value | None = None, append: Value | None = None) -> Tensor:
    """Return the differences of neighbours along an axis.

    x: the array.
    n: how many times; by position too, as in NumPy.
    axis: the axis.
    prepend: what stands before the elements first.
    append: what stands after them.
    """
    ends = {k: as_operand(v) for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return call(np.diff, x, n=n, axis=axis, **ends)
