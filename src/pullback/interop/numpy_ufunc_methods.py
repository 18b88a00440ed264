"""The methods of NumPy's ufuncs: ``reduce``, ``accumulate``, ``reduceat`` and ``outer``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tape import as_tensor
from pullback.core.tensor import BY_KERNEL, Tensor, call_unfollowed
from pullback.errors import ArgumentError, IndexRangeError, ShapeError
from pullback.interop.numpy_arguments import run_without_rule
from pullback.interop.numpy_parameters import convert
from pullback.interop.numpy_shapes import index_along
from pullback.interop.numpy_ufuncs import CALLS
from pullback.numerics.axis_arguments import resolve_axes, resolve_axis
from pullback.numerics.dtypes import make_dtype
from pullback.ops import reductions

if TYPE_CHECKING:
    from pullback.typing import Axis, DType, Value

Function = Callable[..., Any]
REDUCED: dict[Any, Function] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min, np.fmax: np.nanmax,
    np.fmin: np.nanmin,
}  # fmt: skip
ACCUMULATED: dict[Any, Function] = {np.add: np.cumsum, np.multiply: np.cumprod}


def reduce(ufunc: Any) -> Any:
    """Return the function for ``ufunc.reduce``, whose default axis is 0; None if there is none."""
    if not _has_rule(ufunc):
        return None

    def run(x: Value, axis: Axis = 0, dtype: Any = None, **kwargs: Any) -> Any:
        x = as_tensor(x)  # where= may be the tensor, for which NumPy's functions do not ask
        x = x if dtype is None else convert(x, make_dtype(dtype))
        if ufunc in REDUCED:
            return REDUCED[ufunc](x, axis=axis, **kwargs)
        if ufunc is np.logaddexp and not kwargs.keys() - {"keepdims"}:
            return reductions.log_sum_exp(x, axis, **kwargs)
        float_dtype = _find_float(ufunc, x)
        if float_dtype is None:
            return run_without_rule(f"np.{ufunc.__name__}.reduce", ufunc.reduce, (x,), {"axis": axis, **kwargs})
        return _fold(ufunc, convert(x, float_dtype), axis, **kwargs)

    return run


def _has_rule(ufunc: Any) -> bool:
    return ufunc in BY_KERNEL or ufunc in CALLS


def _find_float(ufunc: Any, x: Value) -> np.dtype[Any] | None:
    """Return the dtype of what a ufunc makes of two such operands; None if it is no float."""
    try:
        dtype: np.dtype[Any] = ufunc.resolve_dtypes((x.dtype, x.dtype, None))[-1]
    except TypeError:  # which NumPy raises then, too
        return None
    if dtype.kind not in "fc":
        return None
    return (
        dtype if x.dtype.kind in "fc" else np.promote_types(dtype, np.float32)
    )  # functions of bools are at least that


def _check_fold(name: str, ufunc: np.ufunc, axes: Sequence[int], initial: object, where: object) -> None:
    """Raise for several axes where the order of elements matters, and for ``where=`` without a first element."""
    if len(axes) > 1 and ufunc.identity is None and ufunc not in (np.logaddexp, np.logaddexp2, np.hypot):
        raise ArgumentError(f"{name}: the order of elements matters, so axis must be one axis, got {[*axes]}.")
    if where is not True and initial is None:
        raise ArgumentError(f"{name}: where= needs initial= as well, which is the result where nothing is left.")


def _fold(ufunc: Any, x: Any, axis: Axis, keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:
    """Apply a ufunc to one element after the other along an axis, or several."""
    name = f"np.{ufunc.__name__}.reduce"
    if not x.ndim and axis in (0, -1):  # as NumPy does
        return x[()] if initial is None else ufunc(initial, x)
    axes = resolve_axes(x.ndim, axis, name)
    initial = _find_initial(ufunc, x, initial)
    _check_fold(name, ufunc, axes, initial, where)
    rest = [n for i, n in enumerate(x.shape) if i not in axes]
    length = prod([x.shape[i] for i in axes])
    chosen = _merge_axes(np.broadcast_to(where, x.shape), axes, (length, *rest))
    x = _merge_axes(x, axes, (length, *rest))
    if not len(x) and initial is None:
        raise ShapeError(f"{name}: there are no elements along axis {axis}, and there is no initial=.")
    total, rows = (x[0], range(1, len(x))) if initial is None else (convert(initial, x.dtype), range(len(x)))
    for i in rows:
        total = ufunc(total, x[i]) if where is True else np.where(chosen[i], ufunc(total, x[i]), total)
    if list(np.shape(total)) != rest or (rest and length == 1):  # one element is a view of x
        total = np.copy(np.broadcast_to(total, rest))
    return np.expand_dims(total, axes) if keepdims else total


def _merge_axes(a: Any, axes: Sequence[int], shape: Sequence[int]) -> Any:
    """Return an array with these axes moved to the front and merged into one."""
    return np.reshape(np.moveaxis(a, axes, range(len(axes))), shape)


def _find_initial(ufunc: Any, x: Any, initial: Any) -> Any:
    """Return the value that a reduction begins with, in the dtype of ``x`` unless it is a tensor; None without one."""
    initial = ufunc.identity if initial is None else initial
    return initial if initial is None or isinstance(initial, Tensor) else np.asarray(initial, x.dtype)


def accumulate(ufunc: Any) -> Any:
    """Return the function for ``ufunc.accumulate``, whose default axis is 0; None if there is none."""
    if not _has_rule(ufunc):
        return None

    def run(x: Value, axis: Any = 0, dtype: Any = None) -> Any:
        x = x if dtype is None else convert(x, make_dtype(dtype))
        axis = 0 if axis is None and x.ndim == 1 else axis
        if ufunc in (np.maximum, np.minimum):
            return _accumulate_extreme(ufunc, x, axis)
        if ufunc in ACCUMULATED:
            return ACCUMULATED[ufunc](x, axis=axis)
        float_dtype = _find_float(ufunc, x)
        if float_dtype is None:
            return run_without_rule(f"np.{ufunc.__name__}.accumulate", ufunc.accumulate, (x,), {"axis": axis})
        x = convert(x, float_dtype)
        axis = resolve_axis(x.ndim, axis, f"np.{ufunc.__name__}.accumulate")
        totals = [index_along(x, 0, axis)] if x.shape[axis] else []
        for i in range(1, x.shape[axis]):
            totals.append(ufunc(totals[-1], index_along(x, i, axis)))
        return np.stack(totals, axis=axis) if totals else x

    return run


def _accumulate_extreme(ufunc: Any, x: Value, axis: int) -> Any:
    """Return the running maximum or minimum, gathered from the position where it last occurred."""
    axis = resolve_axis(x.ndim, axis, f"np.{ufunc.__name__}.accumulate")
    numbers = np.reshape(np.arange(x.shape[axis]), [-1 if i == axis else 1 for i in range(x.ndim)])

    def last_met(values: Any) -> Any:
        is_extreme = (values == ufunc.accumulate(values, axis)) | np.isnan(values)  # what follows a NaN is NaN
        met = np.where(is_extreme, numbers, 0)
        return np.maximum.accumulate(met, axis)

    return np.take_along_axis(x, call_unfollowed(last_met, x), axis)


def reduceat(ufunc: Any) -> Any:
    """Return the function for ``ufunc.reduceat``, whose default axis is 0; None if there is none."""
    if not _has_rule(ufunc):
        return None
    whole = reduce(ufunc)

    def run(x: Value, indices: Any, axis: int = 0, dtype: DType = None) -> Any:
        name = f"np.{ufunc.__name__}.reduceat"
        axis = resolve_axis(x.ndim, axis, name)
        starts = [int(i) for i in np.asarray(indices)]
        n = x.shape[axis]
        for i in starts:
            if not 0 <= i < n:
                raise IndexRangeError(f"{name}: index {i} is out of range for an axis of length {n}.")
        x = x if dtype is None else convert(x, make_dtype(dtype))
        float_dtype = _find_float(ufunc, x)

        def fold(part: Value) -> Any:
            if float_dtype is None or part.shape[axis] > 1:
                return whole(part, axis=axis)
            return index_along(convert(part, float_dtype), 0, axis)  # itself, without the identity

        ends = [*starts[1:], n]
        parts = [fold(index_along(x, slice(a, max(a + 1, b)), axis)) for a, b in zip(starts, ends, strict=True)]
        return np.stack(parts, axis=axis)

    return run


def outer(ufunc: Function) -> Any:
    """Return the function for ``ufunc.outer``; None if there is none."""
    if not _has_rule(ufunc):
        return None
    # Python's integers are those of NumPy here, which widen small integers
    return lambda x, y: ufunc(np.reshape(x, np.shape(x) + (1,) * np.ndim(y)), np.asarray(y) if type(y) is int else y)
