"""NumPy functions that write into their first argument: ``np.copyto``, ``np.put``, ``np.add.at`` and the like."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tape import as_tensor
from pullback.core.tensor import Tensor, may_hold, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import align_operands, is_traced, unwrap
from pullback.numerics.axis_arguments import resolve_axis
from pullback.ops.gathering import gather
from pullback.ops.segments import unsorted_segment_max, unsorted_segment_min, unsorted_segment_sum

if TYPE_CHECKING:
    from pullback.typing import TensorLike

Function = Callable[..., Any]


def make_in_place_error(name: str) -> ArgumentError:
    """Return the error of a function that would write a tensor into a NumPy array."""
    return ArgumentError(
        f"{name} writes into a NumPy array here, which cannot hold tensors: their gradients would be lost. "
        "Write into a Tensor (pb.zeros, or pb.tensor(a) for an array a), or make a new one with np.where."
    )


def choose_target(name: str, function: Function, write: Function) -> Function:
    """Return ``write`` for a target that is a tensor; NumPy's ``function`` writes what is not traced into arrays."""

    @wraps(write)
    def write_to(target: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(target, Tensor):
            write(target, *args, **kwargs)
        elif is_traced(args, kwargs):
            raise make_in_place_error(name)
        else:
            function(target, *unwrap(args), **unwrap(kwargs))

    return write_to


def _repeat(values: TensorLike, count: int) -> Any:
    """Return the values one after the other, again from the first where there are too few, as NumPy takes them."""
    return values if not np.ndim(values) else np.resize(values, count)


def _copyto(dst: Any, /, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if hasattr(src, "dtype") and not np.can_cast(src.dtype, dst.dtype, casting):
        raise ArgumentError(f"np.copyto: {src.dtype} cannot be cast to {dst.dtype} by the rule {casting!r}.")
    dst[...] = src if where is True else np.where(where, src, dst)


def _fill_diagonal(a: Any, /, val: Any, wrap: bool = False) -> None:
    shape = a.shape
    if len(shape) < 2 or (len(shape) > 2 and len({*shape}) > 1):
        raise ShapeError(f"np.fill_diagonal: expected two axes, or more of one length, got shape {shape}.")
    step = shape[1] + 1 if len(shape) == 2 else sum(np.cumprod((1, *shape[:-1])))
    end = shape[1] * shape[1] if len(shape) == 2 and not wrap else a.size
    places = np.arange(a.size)[:end:step]
    a[np.unravel_index(places, shape)] = _repeat(val, len(places))


def _put(a: Any, /, ind: Any, v: Any, mode: Any = "raise") -> None:
    places = np.take(np.arange(a.size), np.ravel(ind), mode=mode)  # as NumPy reads negative ones and those outside
    a[np.unravel_index(places, a.shape)] = _repeat(v, len(places))


def _putmask(a: Any, /, mask: Any, values: Any) -> None:
    if not np.size(values):
        return
    new = values if not np.ndim(values) else np.reshape(np.resize(values, a.size), a.shape)
    a[...] = np.where(np.reshape(mask, a.shape), new, a)


def _place(arr: Any, /, mask: Any, vals: Any) -> None:
    (values,) = align_operands((vals,))
    chosen = np.astype(np.reshape(as_tensor(mask), arr.shape), bool)
    if not np.size(values):
        if may_hold(strip(chosen)):
            raise ShapeError("np.place: there are no values for the elements that the mask chooses.")
        return
    places = np.reshape(np.cumsum(chosen) - 1, arr.shape) % np.size(values)  # how many were chosen before
    arr[...] = np.where(chosen, np.ravel(as_tensor(values))[places], arr)


def _put_along_axis(arr: Any, /, indices: Any, values: Any, axis: int | None) -> None:
    if axis is None:
        arr[np.unravel_index(np.arange(arr.size)[indices], arr.shape)] = values
        return
    if np.ndim(indices) != arr.ndim:
        raise ShapeError(f"np.put_along_axis: indices have {np.ndim(indices)} axes, but the array {arr.ndim}.")
    ranges = [np.arange(n).reshape([-1 if i == k else 1 for k in range(arr.ndim)]) for i, n in enumerate(arr.shape)]
    ranges[resolve_axis(arr.ndim, axis, "np.put_along_axis")] = indices
    arr[tuple(ranges)] = values


WRITES: dict[Any, Function] = {
    np.copyto: _copyto, np.fill_diagonal: _fill_diagonal, np.put: _put, np.putmask: _putmask, np.place: _place,
    np.put_along_axis: _put_along_axis,
}  # fmt: skip
FUNCTIONS = {f: choose_target(f"np.{f.__name__}", f, write) for f, write in WRITES.items()}


REDUCTIONS: dict[Any, Callable[..., Any]] = {  # how values for one place are joined before the place is changed
    np.add: unsorted_segment_sum, np.subtract: unsorted_segment_sum,
    np.maximum: unsorted_segment_max, np.minimum: unsorted_segment_min,
}  # fmt: skip


def write_at(ufunc: np.ufunc, *args: Any) -> None:
    """Call ``ufunc.at``, whose first argument is written to."""
    choose_target(f"np.{ufunc.__name__}.at", ufunc.at, partial(_write_at, ufunc))(*args)


def _write_at(ufunc: np.ufunc, a: Any, index: Any, *values: Any) -> None:
    """Do what ``ufunc.at`` does: an element that is named several times is changed several times."""
    if ufunc in REDUCTIONS:
        a[...] = _reduce_at(ufunc, a, index, *values)
        return
    places = np.arange(a.size).reshape(a.shape)[index]
    flat = places.ravel()
    new = [np.ravel(np.broadcast_to(v, places.shape)) for v in values]
    for chosen in _split_repeats(flat):
        at = np.unravel_index(flat[chosen], a.shape)
        a[at] = ufunc(a[at], *(v[chosen] for v in new))


def _reduce_at(ufunc: np.ufunc, a: Any, index: Any, values: TensorLike) -> Any:
    """Return ``a`` with what ``ufunc`` makes of each element and all values for its place, where there are any."""
    if isinstance(index, Tensor | np.ndarray) and index.dtype.kind in "iu":  # whole rows
        count, row = len(a), a.shape[1:]
        places = gather(np.arange(count), index)  # checked, and negative ones counted from the end
    else:
        count, row = a.size, ()
        places = as_tensor(np.arange(count).reshape(a.shape))[index]
    new = np.broadcast_to(values, (*places.shape, *row))
    changed = ufunc(a, np.reshape(REDUCTIONS[ufunc](new, places, count), a.shape))
    if REDUCTIONS[ufunc] is unsorted_segment_sum:
        return changed
    named = np.reshape(unsorted_segment_sum(np.ones(places.shape, np.int32), places, count), (count,) + (1,) * len(row))
    return np.where(np.broadcast_to(named > 0, (count, *row)).reshape(a.shape), changed, a)


def _split_repeats(places: Any) -> list[Any]:
    """Return the positions of the first time that each place is named, then of the second time, and so on."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    times = np.arange(len(places)) - np.searchsorted(ordered, ordered)
    return [np.sort(order[times == n]) for n in range(np.max(times, initial=-1) + 1)]
