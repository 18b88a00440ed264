"""NumPy's functions that pick, choose, order or make elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.tape import constant
from pullback.core.tensor import BY_KERNEL, Tensor, concrete
from pullback.errors import ShapeError
from pullback.interop.numpy_arguments import aligned, lifted, ruleless, stepped, wrapped
from pullback.interop.numpy_shapes import along
from pullback.ops import elementwise

__all__: list[str] = []


# ---- picking


def _take(a: Any, indices: Any, /, axis: int | None = None, mode: str = "raise") -> Any:
    if axis is None:
        a, axis = np.reshape(a, -1), 0
    index, n = np.asarray(concrete(lifted(indices))), a.shape[axis]
    if mode != "raise":
        index = np.clip(index, 0, n - 1) if mode == "clip" else index % n
    return along(a if isinstance(a, Tensor) else constant(a), index, axis)


def _take_along_axis(arr: Any, indices: Any, /, axis: int | None = -1) -> Any:
    if axis is None:
        arr, axis = np.reshape(arr, -1), 0
    index = np.asarray(concrete(indices))
    n = arr.ndim
    grid: list[Any] = [np.reshape(np.arange(k), (1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, k in enumerate(arr.shape)]
    grid[axis] = index
    return (arr if isinstance(arr, Tensor) else constant(arr))[tuple(grid)]


def _compress(condition: Any, a: Any, /, axis: int | None = None) -> Any:
    return _take(a, np.flatnonzero(concrete(lifted(condition))), axis)


def _extract(condition: Any, arr: Any, /) -> Any:
    return _take(arr, np.flatnonzero(concrete(lifted(condition))))


def _delete(arr: Any, /, obj: Any, axis: int | None = None) -> Any:
    n = arr.size if axis is None else arr.shape[axis]
    return _take(arr, np.delete(np.arange(n), obj if isinstance(obj, slice) else concrete(lifted(obj))), axis)


def _diagonal(a: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    a = np.moveaxis(a, (axis1, axis2), (-2, -1))
    n = len(np.broadcast_to(0, a.shape[-2:]).diagonal(offset))
    i = np.arange(n)
    return a[..., i + max(-offset, 0), i + max(offset, 0)]


def _diag(v: Any, /, k: int = 0) -> Any:
    if v.ndim == 2:
        return _diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(f"np.diag: expected one or two axes, got shape {v.shape}.")
    made = np.where(np.eye(len(v), dtype=bool), np.expand_dims(v, 0), np.zeros((), v.dtype))
    return np.pad(made, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0)))) if k else made


def _lower(m: Any, k: int) -> Any:
    return np.tri(m.shape[-2:][0], m.shape[-1], k) > 0


def _tril(m: Any, /, k: int = 0) -> Any:
    return np.where(_lower(m, k), m, np.zeros((), m.dtype))


def _triu(m: Any, /, k: int = 0) -> Any:
    return np.where(_lower(m, k - 1), np.zeros((), m.dtype), m)


# ---- order


def _sort(a: Any, /, axis: int | None = -1) -> Any:
    if axis is None:
        a, axis = np.reshape(a, -1), -1
    return _take_along_axis(a, np.argsort(concrete(a), axis=axis, stable=True), axis) if a.ndim else a


def _partition(a: Any, /, kth: Any, axis: int | None = -1) -> Any:
    if axis is None:
        a, axis = np.reshape(a, -1), -1
    return _take_along_axis(a, np.argpartition(concrete(a), kth, axis=axis), axis)


def _unique(
    ar: Any, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True,
) -> Any:  # fmt: skip
    _, index, inverse, counts = np.unique(concrete(ar), True, True, True, axis, equal_nan=equal_nan)
    more = zip((return_index, return_inverse, return_counts), (index, inverse, counts), strict=True)
    results = (_take(ar, index, axis), *(constant(result) for asked, result in more if asked))
    return results if len(results) > 1 else results[0]


# ---- choosing


def _where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None and y is None:
        return stepped("np.where", np.nonzero(concrete(condition)), condition)
    return BY_KERNEL[np.where].function(condition, x, y)


def _select(condlist: Any, choicelist: Any, /, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ShapeError(f"np.select: {len(condlist)} conditions, but {len(choicelist)} choices.")
    made = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        made = np.where(condition, choice, made)
    return made


def _piecewise(x: Any, /, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Each function sees only the elements of its piece, so the others cannot disturb the gradient."""
    if not isinstance(condlist, list | tuple) or (x.ndim and not np.ndim(condlist[0])):
        condlist = [condlist]
    pieces = [np.broadcast_to(concrete(c), x.shape).reshape(-1) for c in condlist]
    if len(funclist) == len(pieces) + 1:
        pieces.append(~np.logical_or.reduce(pieces))
    if len(funclist) != len(pieces):
        raise ShapeError(f"np.piecewise: {len(condlist)} conditions, but {len(funclist)} functions.")
    flat = np.reshape(x, -1)
    parts, place = [np.zeros(1, x.dtype)], np.zeros(x.size, int)  # the first is for what is in no piece
    start = 1
    for piece, f in zip(pieces, funclist, strict=True):
        (index,) = np.nonzero(piece)
        part = f(flat[index], *args, **kw) if callable(f) else f
        parts.append(np.broadcast_to(part, index.shape))
        place[index] = start + np.arange(len(index))
        start += len(index)
    return np.reshape(np.astype(np.concatenate(parts), x.dtype)[place], x.shape)


def _clip(a: Any, /, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return elementwise.clip(lifted(a), a_min if min is None else min, a_max if max is None else max)


def _nan_to_num(x: Any, /, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind != "f":
        return x
    limits, values = np.finfo(x.dtype), concrete(x)
    x = np.where(np.isnan(values), nan, x)
    x = np.where(np.isposinf(values), limits.max if posinf is None else posinf, x)
    return np.where(np.isneginf(values), limits.min if neginf is None else neginf, x)


# ---- making


def _filled(fill: Any) -> Any:
    def like(a: Any, /, dtype: Any = None, *, shape: Any = None) -> Any:
        return wrapped(fill(np.shape(a) if shape is None else shape, a.dtype if dtype is None else dtype))

    return like


def _linspace(start: Any, stop: Any, /, num: int = 50, endpoint: bool = True) -> Any:
    start, stop = aligned((start, stop))
    step = stop - start
    places = np.linspace(0, 1, num, endpoint, dtype=step.dtype if step.dtype.kind == "f" else None)
    return start + step * np.reshape(places, (-1,) + (1,) * step.ndim)


def _full_like(a: Any, fill_value: Any, /, dtype: Any = None, *, shape: Any = None) -> Any:
    value = fill_value if isinstance(fill_value, Tensor) else constant(np.asarray(lifted(fill_value)))
    made = np.broadcast_to(value, np.shape(a) if shape is None else shape)
    return np.astype(made, a.dtype if dtype is None else dtype)


def _real(val: Any, /) -> Any:
    return ruleless("np.real of complex numbers", np.real, (val,)) if val.dtype.kind == "c" else val


def _imag(val: Any, /) -> Any:
    if val.dtype.kind == "c":
        return ruleless("np.imag of complex numbers", np.imag, (val,))
    return stepped("np.imag", np.imag(concrete(val)), val)


FUNCTIONS = {
    np.take: _take, np.take_along_axis: _take_along_axis, np.compress: _compress, np.extract: _extract,
    np.delete: _delete, np.diagonal: _diagonal, np.diag: _diag, np.tril: _tril, np.triu: _triu,
    np.diagflat: lambda v, /, k=0: _diag(np.reshape(v, -1), k),
    np.linalg.diagonal: lambda x, /, *, offset=0: _diagonal(x, offset, -2, -1),
    np.sort: _sort, np.partition: _partition, np.unique: _unique,
    np.where: _where, np.select: _select, np.piecewise: _piecewise, np.clip: _clip, np.nan_to_num: _nan_to_num,
    np.zeros_like: _filled(np.zeros), np.ones_like: _filled(np.ones), np.empty_like: _filled(np.empty),
    np.full_like: _full_like, np.linspace: _linspace, np.real: _real, np.imag: _imag,
    np.shape: lambda a, /: lifted(a).shape, np.ndim: lambda a, /: lifted(a).ndim,
    np.size: lambda a, /, axis=None: a.size if axis is None else a.shape[axis],
}  # fmt: skip
