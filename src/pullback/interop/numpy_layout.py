"""The order in which NumPy's results lie in memory, on which it depends whether ``ravel()`` and ``reshape`` give views.

An op whose kernel is NumPy's own function has NumPy's order by itself.  Functions that are composed here may have
another one where an argument or a result is not in C order, such as a transposed matrix.  Then NumPy's function is run
on small arrays with the order of the arguments, and the result is copied into the order of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from sys import maxsize
from types import FunctionType
from typing import Any

import numpy as np

from pullback.core.axes import reduces
from pullback.core.tensor import Tensor
from pullback.core.writes import are_in_order, close_gaps, find_base_links, get_layout, has_axes_in_order
from pullback.interop.numpy_arguments import iterate_tensors

LENGTH = 4  # of the axes of small arrays
MAX_ORDERS = 1024  # calls whose order is remembered
# NumPy's functions with results that are not in C order, or not without gaps, for arguments in C order: if there are
# more arguments than this.
UNUSUAL: dict[Any, int] = {
    np.nanpercentile: 2, np.nanquantile: 2, np.cross: 2, np.linalg.cross: 2, np.unique: 1, np.linalg.eig: 0,
    np.histogramdd: 0, np.histogram2d: 0,
}  # fmt: skip
_orders: dict[Any, list[Any]] = {}
ORDERING = frozenset({"order", "optimize", "hermitian"})  # keywords on which the order of a result depends
# Whether a function that is composed here calls others: only its own result is arranged.
_is_composing: ContextVar[bool] = ContextVar("is_composing", default=False)


def has_order_of_kernel(op: Any) -> bool:
    """Return whether the results of an op lie in memory as those of its kernel, which is NumPy's function."""
    by_numpy = op.quick is None and not isinstance(op.kernel, FunctionType)
    return op.makes_views or op.elementwise or by_numpy or isinstance(op.acts, reduces)


def keep_order(func: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call``, which implements a NumPy function, with results in the order of NumPy's."""
    most = UNUSUAL.get(func, maxsize)
    ordering = ORDERING if most == maxsize else None

    def run(*args: object, **kwargs: object) -> Any:
        if _is_composing.get():
            return call(*args, **kwargs)
        is_unusual = kwargs and (ordering is None or not kwargs.keys().isdisjoint(ordering))
        if not (is_unusual or len(args) > most or has_other_order(args)):
            z = call(*args, **kwargs)
            return z if not has_gaps(z) or _close_all(z, args) else arrange(z, func, args, kwargs)
        token = _is_composing.set(True)
        try:
            z = call(*args, **kwargs)
        finally:
            _is_composing.reset(token)
        return arrange(z, func, args, kwargs)

    return run


def has_other_order(args: Any) -> bool:
    """Return whether a tensor among the arguments has several axes that are not in C order."""
    for a in args:
        if type(a) is Tensor and type(a.value) is np.ndarray:  # the usual case, without calls
            value = a.value
            if value.ndim > 1 and not value.flags.c_contiguous and not are_in_order(value.shape, value.strides):
                return True
        elif isinstance(a, Tensor):
            if a.ndim > 1 and not has_axes_in_order(a.read()):
                return True
        elif isinstance(a, list | tuple) and has_other_order(a):
            return True
    return False


def has_gaps(z: Any) -> bool:
    """Return whether a result with several axes is not in C order, or not without gaps."""
    if type(z) is Tensor and type(z.value) is np.ndarray:
        return z.value.ndim > 1 and not z.value.flags.c_contiguous
    if isinstance(z, list | tuple):
        return any(map(has_gaps, z))
    return isinstance(z, Tensor) and z.ndim > 1 and not get_layout(z.read()).flags.c_contiguous


def _close_all(z: Any, args: Any) -> bool:
    """Note that results with gaps have memory of their own in NumPy; return False if that is not clear for one of them.

    Such a result is part of a larger array of ours.  One that shares memory with an argument is a view, and stays.
    """
    arrays = [a.value for a in args if type(a) is Tensor and type(a.value) is np.ndarray]
    for r in z if isinstance(z, tuple) else (z,):
        if has_gaps(r):
            a = r.value if type(r) is Tensor else None
            if type(a) is not np.ndarray or len(arrays) < len(args) or not are_in_order(a.shape, a.strides):
                return False
            if not any(np.may_share_memory(a, x) for x in arrays):
                close_gaps(r)
    return True


def arrange(z: Any, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the results of a call in the order of those of NumPy's function; what it does not copy as it is."""
    several = isinstance(z, tuple | list)
    results = z if several else (z,)
    if not any(isinstance(r, Tensor | np.ndarray) and r.ndim > 1 for r in results):
        return z
    ranks = tuple(getattr(r, "ndim", 0) for r in results)  # 0 of what is no array, such as a tuple of edges
    try:
        key = func, ranks, _make_key(args), _make_key(kwargs)
        orders = _orders.get(key)
    except TypeError:  # arrays, and other arguments without a hash
        key, orders = None, None
    if orders is None:
        orders = find_orders(func, ranks, several, args, kwargs)
        if key is not None and len(_orders) < MAX_ORDERS:
            _orders[key] = orders
    inputs = {id(_find_base(t)) for t in iterate_tensors((args, kwargs))}
    copies = [_copy_in_order(r, order, inputs) for r, order in zip(results, orders, strict=True)]
    return copies[0] if not several else type(z)(*copies) if hasattr(z, "_fields") else type(z)(copies)


def find_orders(func: Any, ranks: tuple[int, ...], several: bool, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return for each result of NumPy's function the order of its axes in memory, and whether it has no gaps.

    It is None for a view, and if it is not known.
    """
    for longest in (LENGTH, None):
        models: list[Any] = []
        try:
            with np.errstate(all="ignore"):
                results = func(*_make_models(args, longest, models), **_make_models(kwargs, longest, models))
        except Exception:  # parameters that only fit the whole arrays, or numbers that it does not accept
            continue
        results = results if several else (results,)
        if tuple(getattr(r, "ndim", 0) for r in results) == ranks:
            return [
                _describe_order(r)
                if isinstance(r, np.ndarray) and not any(np.may_share_memory(r, m) for m in models)
                else None
                for r in results
            ]
    return [None] * len(ranks)


def _make_key(x: Any) -> Any:
    """Return arguments as a key: tensors by shape and layout."""
    if isinstance(x, Tensor):
        return x.shape, get_layout(x.read()).strides, x.dtype
    if isinstance(x, dict):
        return tuple((k, _make_key(v)) for k, v in x.items())
    return (type(x), *map(_make_key, x)) if isinstance(x, list | tuple) else (type(x), x, hash(x))


def _make_models(x: Any, longest: int | None, models: list[Any]) -> Any:
    """Return arguments with arrays in the order of NumPy's in place of tensors, with axes of at most this length."""
    if isinstance(x, dict):
        return {k: _make_models(v, longest, models) for k, v in x.items()}
    if isinstance(x, list | tuple) and any(True for _ in iterate_tensors(x)):
        return type(x)([_make_models(v, longest, models) for v in x])
    if not isinstance(x, Tensor):
        whole = isinstance(x, np.ndarray) and x.dtype.kind in "fcb" and longest is not None
        return x[tuple(slice(longest) for _ in x.shape)] if whole else x
    x = x.read()
    if not x.ndim:
        return np.ones((), x.dtype)[()]
    model = _make_model(get_layout(x), x.dtype, longest)
    models.append(model)
    return model


def _make_model(a: Any, dtype: np.dtype[Any], longest: int | None) -> Any:
    """Return an array with the axes of ``a`` in the same order in memory."""
    order = sorted(range(a.ndim), key=lambda i: -abs(a.strides[i]))
    shape = [a.shape[i] if longest is None else min(a.shape[i], longest) for i in order]
    values = np.zeros(shape, dtype)
    if dtype.kind in "fc":  # numbers of which no two are equal, and no row is a multiple of another
        values.ravel()[:] = np.arange(1, values.size + 1) * 0.6180339887498949 % 1
    model = values.transpose(np.argsort(order))
    return model[tuple(slice(None, None, -1 if step < 0 else None) for step in a.strides)]


def _find_base(x: Tensor) -> Tensor:
    """Return the tensor that a tensor is a view of, itself if it is none."""
    while (links := find_base_links(x.read())) is not None:
        x = links.base
    return x.read()


def _copy_in_order(z: Any, wanted: tuple[tuple[int, ...], bool] | None, inputs: set[int]) -> Any:
    """Return a result with its axes in this order in memory, with or without gaps; a view of an argument as it is."""
    if wanted is None or not isinstance(z, Tensor | np.ndarray) or z.ndim < 2:
        return z
    if isinstance(z, Tensor) and id(_find_base(z)) in inputs:
        return z
    found = _describe_order(get_layout(z.read()) if isinstance(z, Tensor) else z)
    order, has_no_gaps = wanted
    if found == wanted:
        return z
    if has_no_gaps and found[0] == order and isinstance(z, Tensor):
        return close_gaps(z.read())
    back = [int(i) for i in np.argsort(order)]
    moved = z.transpose(order)
    return (moved.copy() if has_no_gaps else np.repeat(moved[..., None], 2, -1)[..., 0]).transpose(back)


def _describe_order(a: Any) -> tuple[tuple[int, ...], bool]:
    """Return the axes by their steps in memory, the largest first, those of length 1 last; whether it has no gaps."""
    long = sorted((i for i, n in enumerate(a.shape) if n > 1), key=lambda i: -abs(a.strides[i]))
    order = (*long, *(i for i, n in enumerate(a.shape) if n <= 1))
    return order, bool(a.transpose(order).flags.c_contiguous)
