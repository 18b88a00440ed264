"""Reductions and running sums by the names of the Array API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from pullback.interop.array_api.arguments import as_operand, call, cast, name_function, widen

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Axis, DType, Value


class ReductionFunction(Protocol):
    """A function over axes."""

    def __call__(self, x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor: ...


def _reduce_axes(name: str, summary: str, of: str = "") -> ReductionFunction:
    """Return NumPy's reduction of this name; ``of`` ends the line about its argument, as ", of floats" does."""
    f = getattr(np, name)

    def function(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return call(f, x, axis=axis, keepdims=keepdims)

    lines = ["axis: one axis, several, or None for all.", "keepdims: whether the axes stay, with length 1."]
    return name_function(function, name, summary, f"x: the array{of}.", *lines)


all = _reduce_axes("all", "Return whether all elements over axes are true.")
any = _reduce_axes("any", "Return whether any element over axes is true.")
max = _reduce_axes("max", "Return the largest elements over axes.")
mean = _reduce_axes("mean", "Return the means over axes.", ", of floats")
min = _reduce_axes("min", "Return the smallest elements over axes.")


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
