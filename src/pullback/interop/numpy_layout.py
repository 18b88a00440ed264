"""The order in which NumPy's results lie in memory, on which it depends whether ``ravel()`` and ``reshape`` give views.

An op whose kernel is NumPy's own function has NumPy's order by itself.  Functions that are composed here may have
another one where an argument is not in C order, such as a transposed matrix.  Then NumPy's function is run on small
arrays with the order of the arguments, and the result is copied into the order of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import FunctionType
from typing import Any

import numpy as np

from pullback.core.axes import reduces
from pullback.core.tensor import Tensor
from pullback.core.writes import are_in_order, base_links, get_layout, has_axes_in_order
from pullback.interop.numpy_arguments import iterate_tensors

__all__: list[str] = []

LENGTH = 4  # of the axes of small arrays
MAX_ORDERS = 1024  # calls whose order is remembered
_orders: dict[Any, list[Any]] = {}
# Whether a function that is composed here calls others: only its own result is arranged.
_is_composing: ContextVar[bool] = ContextVar("is_composing", default=False)


def has_order_of_kernel(op: Any) -> bool:
    """Return whether the results of an op lie in memory as those of its kernel, which is NumPy's function."""
    by_numpy = op.quick is None and not isinstance(op.kernel, FunctionType)
    return op.makes_views or op.elementwise or by_numpy or isinstance(op.acts, reduces)


def keep_order(func: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call``, which implements a NumPy function, with results in the order of NumPy's."""

    def run(*args: object, **kwargs: object) -> Any:
        if not has_other_order(args) or _is_composing.get():
            return call(*args, **kwargs)
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


def arrange(z: Any, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return the results of a call in the order of those of NumPy's function; what it does not copy as it is."""
    several = isinstance(z, tuple | list)
    results = z if several else (z,)
    if not any(isinstance(r, Tensor) and r.ndim > 1 for r in results):
        return z
    ranks = tuple(map(np.ndim, results))
    try:
        key = func, ranks, _make_key(args), _make_key(kwargs)
        orders = _orders.get(key)
    except TypeError:  # arrays, and other arguments without a hash
        key, orders = None, None
    if orders is None:
        orders = find_orders(func, ranks, several, args, kwargs)
        if key is not None and len(_orders) < MAX_ORDERS:
            _orders[key] = orders
    given = {id(_find_base(t)) for t in iterate_tensors((args, kwargs))}
    made = [_copy_in_order(r, order, given) for r, order in zip(results, orders, strict=True)]
    return made[0] if not several else type(z)(*made) if hasattr(z, "_fields") else type(z)(made)


def find_orders(func: Any, ranks: tuple[int, ...], several: bool, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return the order of the axes in memory for each result of NumPy's function; None for a view, or if not known."""
    for longest in (LENGTH, None):
        models: list[Any] = []
        try:
            with np.errstate(all="ignore"):
                made = func(*_make_models(args, longest, models), **_make_models(kwargs, longest, models))
        except Exception:  # parameters that only fit the whole arrays, or numbers that it does not accept
            continue
        made = made if several else (made,)
        if tuple(map(np.ndim, made)) == ranks:
            return [
                _list_order(r)
                if isinstance(r, np.ndarray) and not any(np.may_share_memory(r, m) for m in models)
                else None
                for r in made
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
    while (links := base_links(x.read())) is not None:
        x = links.base
    return x.read()


def _copy_in_order(z: Any, order: tuple[int, ...] | None, given: set[int]) -> Any:
    """Return a result with its axes in this order in memory; a view of an argument as it is."""
    if not isinstance(z, Tensor) or z.ndim < 2 or order is None or id(_find_base(z)) in given:
        return z
    if _list_order(get_layout(z.read())) == order:
        return z
    return z.transpose(order).copy().transpose([int(i) for i in np.argsort(order)])


def _list_order(a: Any) -> tuple[int, ...]:
    """Return the axes longer than 1, the one with the largest step in memory first, and then the others."""
    long = sorted((i for i, n in enumerate(a.shape) if n > 1), key=lambda i: -abs(a.strides[i]))
    return (*long, *(i for i, n in enumerate(a.shape) if n <= 1))
