"""NumPy functions that index, select, sort or create elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tape import as_tensor, constant
from pullback.core.tensor import BY_KERNEL, Tensor, call_unfollowed, read_sizes, strip
from pullback.core.writes import link_part, mark_as_array
from pullback.errors import ArgumentError, ShapeError
from pullback.interop.numpy_arguments import (
    align_operands,
    as_numpy_array,
    as_numpy_number,
    run_without_rule,
    to_array,
    wrap,
    wrap_constant,
)
from pullback.numerics.axis_arguments import format_shapes, resolve_axes, resolve_axis
from pullback.ops import complex, conversion, elementwise, gathering, segments, sorting

if TYPE_CHECKING:
    from pullback.typing import DType, Lengths, Operand, TensorLike, Value

# ---- picking


def _read_positions(x: TensorLike) -> Any:
    """Return indices as an array, or as a tensor where they differ between examples of ``vmap``."""
    index = strip(to_array(x))
    return index if isinstance(index, Tensor) else np.asarray(index)


def _take(a: Value, indices: TensorLike, /, axis: int | None = None, mode: str = "raise") -> Any:
    if axis is None or not a.ndim:
        a, axis = np.reshape(a, -1), 0
    axis = resolve_axis(a.ndim, axis, "np.take")
    index, n = _read_positions(indices), a.shape[axis]
    if mode not in ("raise", "clip", "wrap"):
        raise ArgumentError(f"np.take: mode must be 'raise', 'clip' or 'wrap', got {mode!r}.")
    if mode != "raise":
        index = np.clip(index, 0, n - 1) if mode == "clip" else index % n
    return gathering.take(as_tensor(a), index, axis)


def _take_along_axis(arr: Any, indices: Value, /, axis: int | None = -1) -> Any:
    if axis is None:
        arr, axis = np.reshape(arr, -1), 0
    return gathering.take_along_axis(as_tensor(arr), _read_positions(indices), axis)


def _compress(condition: TensorLike, a: Value, /, axis: int | None = None) -> Any:
    return _take(a, np.flatnonzero(read_sizes("np.compress", to_array(condition))), axis)


def _extract(condition: Value, arr: Value, /) -> Any:
    return _take(arr, np.flatnonzero(read_sizes("np.extract", to_array(condition))))


def _list_places(name: str, obj: Any) -> Any:
    """Return the slice, mask or positions at which a function inserts or deletes; an empty list has none."""
    if isinstance(obj, slice):
        return obj
    where = read_sizes(name, to_array(obj))
    return where if where.size else where.astype(int)


def _delete(arr: Value, /, obj: Any, axis: int | None = None) -> Any:
    n = arr.size if axis is None else arr.shape[resolve_axis(arr.ndim, axis, "np.delete")]
    where = _list_places("np.delete", obj)
    return _take(arr, np.delete(np.arange(n), where), axis)


def _insert(arr: Value, obj: Any, values: Operand, /, axis: int | None = None) -> Any:
    """Insert element numbers by NumPy to find where each element goes."""
    x, y = (as_tensor(t) for t in align_operands((arr, values)))
    numbers = np.arange(x.size + y.size)
    where = _list_places("np.insert", obj)
    place = np.insert(np.reshape(numbers[: x.size], x.shape), where, np.reshape(numbers[x.size :], y.shape), axis)
    return np.concatenate([np.reshape(x, -1), np.reshape(conversion.cast(y, x.dtype), -1)])[place]


def _resize(a: Value, /, new_shape: Lengths) -> Any:
    place = np.resize(np.arange(a.size), new_shape)
    return mark_as_array(np.reshape(a, -1)[place] if a.size else wrap(np.zeros(place.shape, a.dtype)))


def _diagonal(a: Value, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    def derive(a: Value) -> Any:
        return _pick_diagonal(a, offset, axis1, axis2)

    return link_part(derive(a), a, derive)  # a read-only view in NumPy


def _pick_diagonal(a: Any, offset: int, axis1: int, axis2: int) -> Any:
    a = np.moveaxis(a, (axis1, axis2), (-2, -1))
    n = len(np.broadcast_to(0, a.shape[-2:]).diagonal(offset))
    i = np.arange(n)
    return a[..., i + max(-offset, 0), i + max(offset, 0)]


def _diag(v: Value, /, k: int = 0) -> Any:
    if v.ndim == 2:
        return _diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(f"np.diag: expected one or two axes, got shape {v.shape}.")
    result = np.where(np.eye(len(v), dtype=bool), np.expand_dims(v, 0), np.zeros((), v.dtype))
    return np.pad(result, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0)))) if k else result


def _mask_lower(m: Value, k: int) -> Any:
    return np.tri(m.shape[-2:][0], m.shape[-1], k, dtype=bool)


def _tril(m: Value, /, k: int = 0) -> Any:
    return np.where(_mask_lower(m, k), m, np.zeros((), m.dtype))


def _triu(m: Value, /, k: int = 0) -> Any:
    return np.where(_mask_lower(m, k - 1), np.zeros((), m.dtype), m)


# ---- order


def _sort(a: Value, /, axis: int | None = -1) -> Any:
    return sorting.sort(as_tensor(a), axis)


def _searchsorted(a: TensorLike, v: TensorLike, /, side: str = "left", sorter: Any = None) -> Any:
    a, v = align_operands((a, v))
    if np.ndim(a) != 1 or sorter is not None:
        return run_without_rule("np.searchsorted", np.searchsorted, (a, v), {"side": side, "sorter": sorter})
    found = np.astype(sorting.search_sorted(strip(a), strip(v), side), np.intp)
    return wrap_constant("np.searchsorted", found, (a, v))


def _partition(a: Value, /, kth: int, axis: int | None = -1) -> Any:
    if axis is None:
        a, axis = np.reshape(a, -1), -1
    return _take_along_axis(a, call_unfollowed(lambda values: np.argpartition(values, kth, axis=axis), a), axis)


def _unique(
    ar: Value, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True,
) -> Any:  # fmt: skip
    _, index, inverse, counts = np.unique(read_sizes("np.unique", ar), True, True, True, axis, equal_nan=equal_nan)
    more = zip((return_index, return_inverse, return_counts), (index, inverse, counts), strict=True)
    results = (_take(ar, index, axis), *(constant(result) for is_wanted, result in more if is_wanted))
    return results if len(results) > 1 else results[0]


def _name_results(function: Callable[..., Any], *options: str) -> Any:
    """Return our version of a NumPy function that gives unique elements in a named tuple; ``options`` of ``unique``."""
    named: Any = type(function(np.zeros(1)))

    def call(x: Value, /) -> Any:
        return named(*_unique(x, equal_nan=False, **dict.fromkeys(options, True)))

    return call


def _intersect1d(ar1: Value, ar2: Value, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    first, second = (np.reshape(as_tensor(a), -1) for a in align_operands((ar1, ar2)))
    here, there = (np.asarray(read_sizes("np.intersect1d", a)) for a in (first, second))
    _, here, there = np.intersect1d(here, there, assume_unique, return_indices=True)
    found = _take(first, here)
    return (found, constant(here), constant(there)) if return_indices else found


def _ix_(*args: object) -> Any:
    """Return each vector along an axis of its own; masks become the positions where they are true."""
    result = []
    for place, item in enumerate(align_operands(args)):
        if np.ndim(item) != 1:
            raise ShapeError(f"np.ix_: expected vectors, got shape {np.shape(item)}.")
        vector = np.flatnonzero(read_sizes("np.ix_", item)) if item.dtype.kind == "b" else item
        result.append(np.reshape(vector, [-1 if i == place else 1 for i in range(len(args))]))
    return tuple(result)


def _sort_complex(a: Any, /) -> Any:
    wide = a.dtype if a.dtype.kind == "c" else np.complex64 if a.dtype.char in "bhBH" else np.complex128  # as NumPy
    return np.sort(a).astype(wide)


def _adapt_set_function(function: Callable[..., Any]) -> Any:
    def call(ar1: Value, ar2: Value, /) -> Any:
        return function(*map(as_tensor, align_operands((ar1, ar2))))

    return call


def _setdiff1d(ar1: Value, ar2: Value, /, assume_unique: bool = False) -> Any:
    first, second = (np.reshape(as_tensor(a), -1) for a in align_operands((ar1, ar2)))
    left = sorting.setdiff1d(first, second).values
    return left if assume_unique else np.unique(left)


def _bincount(x: Value, /, weights: Value | None = None, minlength: int = 0) -> Any:
    numbers = strip(to_array(x))
    if weights is not None:
        weights = as_tensor(to_array(weights))
        weights = weights if weights.dtype.kind in "fc" else weights.astype(float)
    if minlength and isinstance(numbers, Tensor):  # other numbers in each call or example: those outside raise an error
        places = gathering.gather(np.arange(minlength), np.where(numbers < 0, minlength, numbers))
        counts = segments.bincount(places, weights, minlength)
        return counts if weights is not None else np.astype(counts, np.intp)
    numbers = np.asarray(read_sizes("np.bincount", numbers, "Give minlength, above which no number may be, or"))
    if weights is None:
        return wrap_constant("np.bincount", np.bincount(numbers, minlength=minlength), x)
    size = max(minlength, int(numbers.max(initial=-1)) + 1)
    return segments.bincount(numbers, weights, size)


# ---- choosing


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return wrap_constant("np.where", np.nonzero(read_sizes("np.where(condition)", condition)), condition)
    return BY_KERNEL[np.where].function(condition, x, y)


def _select(condlist: list[Any], choicelist: list[Any], /, default: Operand = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ShapeError(f"np.select: {len(condlist)} conditions, but {len(choicelist)} choices.")
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, choice, result)
    return mark_as_array(result)


def _choose(a: TensorLike, choices: list[Any], /, mode: str = "raise") -> Any:
    index, *rows = np.broadcast_arrays(strip(to_array(a)), *align_operands([*choices]))
    index = call_unfollowed(lambda values: np.choose(values, range(len(rows)), mode=mode), index)  # type: ignore[call-overload]
    return _take_along_axis(np.stack(rows), np.expand_dims(index, 0), 0)[0]


def _find_pieces(x: Any, condlist: Any, functions: int) -> list[Any]:
    """Return a mask of the elements for each of the functions of ``np.piecewise``."""
    is_one = not isinstance(condlist, list | tuple) and not np.ndim(condlist)
    if is_one or (x.ndim and not np.ndim(condlist[0])):
        condlist = [condlist]
    if any(np.shape(c) not in ((), x.shape) for c in condlist):
        shapes = format_shapes([np.shape(c) for c in condlist])
        raise ShapeError(f"np.piecewise: conditions must have the shape of x, {x.shape}, or be numbers; got {shapes}.")
    pieces = [np.reshape(np.broadcast_to(strip(c), x.shape), -1) for c in condlist]
    if functions == len(pieces) + 1:
        pieces.append(~np.any(np.stack(pieces), axis=0))
    if functions != len(pieces):
        raise ShapeError(f"np.piecewise: {len(condlist)} conditions, but {functions} functions.")
    return pieces


def _piecewise(x: Value, /, condlist: Sequence[Any], funclist: list[Any], *args: object, **kw: object) -> Any:
    """Apply each function to the elements of its piece only, so that NaNs elsewhere do not reach the gradient."""
    (x,) = align_operands((x,))
    pieces = _find_pieces(x, condlist, len(funclist))
    if not x.size:
        return np.zeros_like(x)
    flat = np.reshape(x, -1)
    if any(isinstance(piece, Tensor) for piece in pieces):  # the pieces differ between examples of vmap
        z = np.zeros((), x.dtype)
        for piece, f in zip(pieces, funclist, strict=True):
            inside = np.where(piece, flat, _take(strip(flat), np.argmax(piece), 0))  # others: one of this piece
            z = np.where(piece, f(inside, *args, **kw) if callable(f) else f, z)
        return np.reshape(np.astype(z, x.dtype), x.shape)
    parts, place = [np.zeros(1, x.dtype)], np.zeros(x.size, int)  # the first element is the value outside all pieces
    start = 1
    for piece, f in zip(pieces, funclist, strict=True):
        (index,) = np.nonzero(piece)
        part = f(flat[index], *args, **kw) if callable(f) else f
        parts.append(np.broadcast_to(part, index.shape))
        place[index] = start + np.arange(len(index))
        start += len(index)
    return np.reshape(np.astype(np.concatenate(parts), x.dtype)[place], x.shape)


def _clip(
    a: Value,
    /,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
    *,
    min: Any = None,
    max: Value | None = None,
) -> Any:
    return elementwise.clip(to_array(a), a_min if min is None else min, a_max if max is None else max)


def _nan_to_num(x: Any, /, copy: Any = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind == "c":
        result = complex.complex(*(_nan_to_num(part, True, nan, posinf, neginf) for part in (np.real(x), np.imag(x))))
        if copy:
            return result
        x[...] = result
    if x.dtype.kind != "f":
        return np.copy(x) if copy else x
    limits, values = np.finfo(x.dtype), strip(x)
    if type(values) is np.ndarray and np.isfinite(values).all():
        return np.copy(x) if copy else as_numpy_number(x)
    result = np.where(np.isnan(values), nan, x)
    result = np.where(values == np.inf, limits.max if posinf is None else posinf, result)
    result = np.where(values == -np.inf, limits.min if neginf is None else neginf, result)
    if copy:
        return result
    x[...] = result
    return as_numpy_number(x)


def _real_if_close(a: Value, /, tol: float = 100) -> Any:
    """Return the real part if the imaginary part is rounding errors; needs values, as the dtype depends on them."""
    if a.dtype.kind != "c":
        return as_numpy_array(a)
    values = np.asarray(read_sizes("np.real_if_close", np.imag(a)))
    limit = np.finfo(a.dtype).eps * tol if tol > 1 else tol
    return as_numpy_array(np.real(a) if np.all(np.absolute(values) < limit) else a)


# ---- making


def _make_like(fill: Any) -> Any:
    def like(a: Value, /, dtype: DType = None, *, shape: Any = None) -> Any:
        result = fill(np.shape(a) if shape is None else shape, a.dtype if dtype is None else dtype)
        return mark_as_array(wrap(a.embed(result) if isinstance(a, Tensor) else result))

    return like


def _space_evenly(num: int, endpoint: bool, like: Value) -> Any:
    """Return ``num`` numbers from 0 to 1 along a new first axis, of the precision of ``like`` if that has one."""
    places = np.linspace(0, 1, num, endpoint, dtype=np.finfo(like.dtype).dtype if like.dtype.kind in "fc" else None)
    return np.reshape(places, (-1,) + (1,) * like.ndim)


def _linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, retstep: bool = False, *, axis: int = 0
) -> Any:
    start, stop = (  # small integers would overflow; Python numbers widen no dtype
        float(x) if type(x) in (int, float, bool) else 1.0 * to_array(x) for x in (start, stop)
    )
    step = stop - start
    result = start + step * _space_evenly(num, endpoint, step)
    if endpoint and num > 1:  # without rounding, as in NumPy
        is_last = np.reshape(np.arange(num) == num - 1, (-1,) + (1,) * np.ndim(step))
        result = np.where(is_last, stop, result)
    result = np.moveaxis(result, 0, axis)
    return (result, step / (num - 1 if endpoint else num)) if retstep else result


def _logspace(
    start: Operand, stop: Value, /, num: int = 50, endpoint: bool = True, base: Any = 10.0, *, axis: int = 0
) -> Any:
    base = np.expand_dims(base, axis) if np.ndim(base) else base
    return base ** _linspace(start, stop, num, endpoint, axis=axis)


def _geomspace(start: Operand, stop: Value, /, num: int = 50, endpoint: bool = True, *, axis: int = 0) -> Any:
    start, stop = align_operands((start, stop))
    ratio = stop / start
    return np.moveaxis(start * ratio ** _space_evenly(num, endpoint, ratio), 0, axis)


def _full_like(a: Value, fill_value: Operand, /, dtype: DType = None, *, shape: Any = None) -> Any:
    value = to_array(fill_value)
    value = wrap(a.embed(value)) if isinstance(a, Tensor) and isinstance(value, np.ndarray) else as_tensor(value)
    result = np.broadcast_to(value, np.shape(a) if shape is None else shape)
    return mark_as_array(np.astype(result, a.dtype if dtype is None else dtype))


def _array(object: Any, /, dtype: DType = None, *, ndmin: int = 0) -> Any:
    """Return a tensor of its own, for ``np.array(x, like=tensor)``."""
    return _to_least_rank(np.copy(_asarray(object, dtype)), ndmin)


def _asarray(a: Any, /, dtype: DType = None) -> Any:
    """Return a tensor with the dtype that NumPy gives it, for ``np.asarray(x, like=tensor)``."""
    result: Any = as_tensor(to_array(a))
    return as_numpy_array(result if dtype is None else np.astype(result, dtype))


def _to_least_rank(x: Any, ndmin: int) -> Any:
    return np.reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def _full(shape: Lengths, fill_value: Operand, /, dtype: DType = None) -> Any:
    """Return a tensor filled with a value that may be traced, for ``np.full(shape, x, like=tensor)``."""
    result = np.broadcast_to(as_tensor(to_array(fill_value)), shape)
    return np.copy(result if dtype is None else np.astype(result, dtype), "C")


def _adapt_dtype_function(function: Callable[..., Any]) -> Any:
    """Adapt a NumPy function that depends on dtypes alone; values of tensors are not read."""

    def from_dtypes(*args: object) -> Any:
        return function(*(np.empty(0, a.dtype) if isinstance(a, Tensor) else a for a in args))

    return from_dtypes


def _unravel_index(indices: Any, /, shape: Any, order: str = "C") -> Any:
    """Return the places along each axis; what is computed while tracing is divided, without a check of its range."""
    at = strip(align_operands((indices,))[0])
    if not isinstance(at, Tensor):
        return wrap(np.unravel_index(at, shape, order))  # type: ignore[call-overload]
    sizes = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    places = []
    for n in sizes if order == "F" else sizes[::-1]:
        places.append(at % n)
        at = at // n
    return tuple(places if order == "F" else places[::-1])


def _adapt_shape_function(function: Callable[..., Any]) -> Any:
    """Adapt a NumPy function that depends on the shape of an array alone; values of tensors are not read."""

    def from_shape(a: Value, /, *args: object, **kwargs: object) -> Any:
        return function(np.broadcast_to(0, np.shape(a)), *args, **kwargs)

    return from_shape


def _angle(z: Value, /, deg: bool = False) -> Any:
    turn = complex.angle(z)
    return turn * (180 / pi) if deg else turn


FUNCTIONS = {
    np.take: _take, np.take_along_axis: _take_along_axis, np.compress: _compress, np.extract: _extract,
    np.delete: _delete, np.diagonal: _diagonal, np.diag: _diag, np.tril: _tril, np.triu: _triu,
    np.diagflat: lambda v, /, k=0: _diag(np.reshape(v, -1), k),
    np.linalg.diagonal: lambda x, /, *, offset=0: _diagonal(x, offset, -2, -1),
    np.insert: _insert, np.resize: _resize, np.choose: _choose, np.logspace: _logspace, np.geomspace: _geomspace,
    np.sort: _sort, np.searchsorted: _searchsorted, np.partition: _partition, np.unique: _unique,
    np.bincount: _bincount,
    np.union1d: _adapt_set_function(sorting.union1d), np.intersect1d: _intersect1d,
    np.unique_values: lambda x, /: _unique(x, equal_nan=False),
    np.unique_counts: _name_results(np.unique_counts, "return_counts"),
    np.unique_inverse: _name_results(np.unique_inverse, "return_inverse"),
    np.unique_all: _name_results(np.unique_all, "return_index", "return_inverse", "return_counts"),
    np.ix_: _ix_, np.sort_complex: _sort_complex,
    np.setxor1d: _adapt_set_function(sorting.setxor1d), np.setdiff1d: _setdiff1d,
    np.where: _where, np.select: _select, np.piecewise: _piecewise, np.clip: _clip, np.nan_to_num: _nan_to_num,
    np.zeros_like: _make_like(np.zeros), np.ones_like: _make_like(np.ones), np.empty_like: _make_like(np.empty),
    np.full_like: _full_like, np.linspace: _linspace, np.full: _full, np.array: _array, np.asarray: _asarray,
    np.asanyarray: _asarray, np.ascontiguousarray: _asarray, np.asfortranarray: _asarray,
    np.shape: lambda a, /: to_array(a).shape, np.ndim: lambda a, /: to_array(a).ndim,
    np.unravel_index: _unravel_index,
    np.diag_indices_from: _adapt_shape_function(np.diag_indices_from),
    np.triu_indices_from: _adapt_shape_function(np.triu_indices_from),
    np.tril_indices_from: _adapt_shape_function(np.tril_indices_from),
    np.result_type: _adapt_dtype_function(np.result_type), np.common_type: _adapt_dtype_function(np.common_type),
    np.iscomplexobj: lambda x, /: x.dtype.kind == "c", np.isrealobj: lambda x, /: x.dtype.kind != "c",
    np.isposinf: lambda x, /: np.isinf(x) & ~np.signbit(x), np.isneginf: lambda x, /: np.isinf(x) & np.signbit(x),
    np.angle: _angle, np.fix: lambda x, /: np.trunc(x), np.real_if_close: _real_if_close,
    np.size: lambda a, /, axis=None: prod(a.shape[i] for i in resolve_axes(a.ndim, axis, "np.size")),
}  # fmt: skip
