"""Parameters that many NumPy functions share, handled once for all of them: dtype, where, initial, mean, order, kind.

A function of this library does not need to take them.  They are applied around it: its arguments are converted or
masked first, and its result is completed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import Tensor, strip
from pullback.errors import ArgumentError
from pullback.interop.numpy_arguments import iterate_tensors
from pullback.interop.numpy_reductions import resolve_ddof, take_root
from pullback.numerics.dtypes import make_dtype

if TYPE_CHECKING:
    from pullback.typing import Axis, DType, Value

Function = Callable[..., Any]
NOTHING = np._NoValue  # NumPy's default for a parameter that is not given

# The values that replace elements left out by ``where``, and how ``initial`` is combined with the result.
REDUCTIONS: dict[Any, tuple[Any, Function]] = {
    np.sum: (0, np.add), np.prod: (1, np.multiply), np.all: (True, np.logical_and), np.any: (False, np.logical_or),
    np.max: (None, np.maximum), np.min: (None, np.minimum),
}  # fmt: skip
ALIASES: dict[Any, Function] = {np.amax: np.max, np.amin: np.min}
WITHOUT_NAN: dict[Any, Function] = {
    np.nansum: np.sum, np.nanprod: np.prod, np.nanmax: np.max, np.nanmin: np.min, np.nanmean: np.mean,
    np.nanvar: np.var, np.nanstd: np.std,
}  # fmt: skip
# Functions that compute in a dtype of their own, and convert the result to ``dtype``.
SPACES = frozenset({np.linspace, np.logspace, np.geomspace})
# Where the order of elements in memory is all that ``order`` changes.
ORDERED = frozenset({np.copy, np.zeros_like, np.ones_like, np.full_like, np.empty_like})
SORTING = frozenset({"kind", "stable"})  # how, not what: every way here is stable
# Parameters by which the caller allows or promises something that is not used here.
PERMISSIONS = frozenset({"overwrite_input", "assume_unique"})


def apply_parameters(func: Any, call: Function, args: list[Any], kwargs: dict[str, Any], extra: dict[str, Any]) -> Any:
    """Return the result of a NumPy function with parameters that ``call`` does not take; NotImplemented if it cannot.

    ``args`` and ``kwargs`` are the arguments that ``call`` takes, ``extra`` are the others.
    """
    func = ALIASES.get(func, func)
    extra = {k: v for k, v in extra.items() if v is not NOTHING and not _has_no_effect(func, k, v)}
    if not extra:
        return call(*args, **kwargs)
    if "dtype" in extra:
        return _apply_dtype(func, call, args, kwargs, np.dtype(extra.pop("dtype")), extra)
    if "copy" in extra and func is np.reshape:
        del extra["copy"]
        return np.copy(apply_parameters(func, call, args, kwargs, extra))
    if "order" in extra and func is np.reshape:
        return _reshape(call, args, kwargs, extra["order"]) if len(extra) == 1 else NotImplemented
    return _apply_where(func, call, args, kwargs, extra)


def _apply_dtype(
    func: Any, call: Function, args: list[Any], kwargs: dict[str, Any], dtype: np.dtype[Any], extra: dict[str, Any]
) -> Any:
    """Return the result of a NumPy function that computes in ``dtype``, or converts its result to it."""
    if dtype.kind != "c" and any(t.dtype.kind == "c" for t in iterate_tensors(args)):
        raise ArgumentError(
            f"np.{func.__name__}(dtype={dtype.name}): complex numbers would lose their imaginary parts. Give "
            "np.real(x) instead, or a complex dtype."
        )
    if func not in SPACES:
        result = apply_parameters(func, call, [convert(a, dtype) for a in args], kwargs, extra)
        return result if result is NotImplemented else convert(result, dtype)
    result = apply_parameters(func, call, args, kwargs, extra)
    result, *step = result if kwargs.get("retstep") else (result,)
    result = convert(np.floor(result) if func is np.linspace and dtype.kind in "iu" else result, dtype)  # as NumPy does
    return (result, *step) if step else result


def _apply_where(func: Function, call: Function, args: list[Any], kwargs: dict[str, Any], extra: dict[str, Any]) -> Any:
    """Return a reduction of the elements that ``where=`` chooses, with ``initial=`` or ``mean=``; or NotImplemented."""
    if func in WITHOUT_NAN and extra.keys() <= {"where", "initial", "mean"}:
        present = ~np.isnan(strip(args[0]))
        extra["where"] = np.logical_and(extra.get("where", True), present)
        return WITHOUT_NAN[func](*args, **kwargs, **extra)
    if func is np.mean and extra.keys() == {"where"}:
        return _mean(args[0], extra["where"], **kwargs)
    if func in (np.var, np.std) and extra.keys() <= {"where", "mean"}:
        variance = _var(args[0], **extra, **kwargs)
        return variance if func is np.var else take_root(variance)
    if func in REDUCTIONS and extra.keys() <= {"where", "initial"}:
        return _reduce(func, call, args, kwargs, **extra)
    return NotImplemented


def _has_no_effect(func: Function, name: str, value: Any) -> bool:
    """Return whether a parameter has no visible effect on the result."""
    if name == "where":
        return value is True
    if name == "order":
        return value is None or func in ORDERED
    if name == "copy":
        return value is True if func is np.nan_to_num else func is np.reshape and not value
    if name in PERMISSIONS or (name == "device" and value == "cpu"):
        return True
    return name in SORTING or (name == "subok" and func is not np.broadcast_to) or value is None


def convert(x: Any, dtype: DType) -> Any:
    """Return arrays, tensors and lists of them in another dtype, with their gradients."""
    if isinstance(x, list | tuple):
        return [convert(item, dtype) for item in x] if any(True for _ in iterate_tensors(x)) else np.asarray(x, dtype)
    if isinstance(x, Tensor | np.ndarray | np.generic):
        return x if x.dtype == dtype else x.astype(dtype)
    return x


# ---- reductions


def _reduce(
    func: Any, call: Function, args: list[Any], kwargs: dict[str, Any], where: Any = True, initial: Any = None
) -> Any:
    neutral, join = REDUCTIONS[func]
    x, *rest = args
    if where is not True:
        neutral = initial if neutral is None else neutral
        if neutral is None:
            raise ArgumentError(
                f"np.{func.__name__}: where= needs initial= as well, which is the result where nothing is left."
            )
        x = np.where(where, x, np.asarray(neutral, x.dtype) if not isinstance(neutral, Tensor) else neutral)
    if initial is not None and not np.size(strip(x)) and REDUCTIONS[func][0] is None:
        return convert(np.sum(x, *rest, **kwargs), x.dtype) + _cast(initial, x.dtype)
    result = call(x, *rest, **kwargs)
    return result if initial is None else join(result, _cast(initial, result.dtype))


def _cast(initial: Any, dtype: np.dtype[Any]) -> Any:
    """Return ``initial=`` in the dtype of the result: of integers NumPy drops its fraction."""
    return convert(initial, dtype) if isinstance(initial, Tensor) else np.asarray(initial, dtype)[()]


def _count(x: Value, where: Any, axis: Axis, keepdims: bool) -> Any:
    """Return how many elements ``where`` leaves."""
    left = np.broadcast_to(strip(where), x.shape)
    return np.sum(left.astype(np.finfo(x.dtype).dtype if x.dtype.kind in "fc" else float), axis=axis, keepdims=keepdims)


def _mean(x: Value, where: Any = True, axis: Axis = None, keepdims: bool = False) -> Any:
    x = x if x.dtype.kind in "fc" else x.astype(float)  # a sum of integers may overflow
    return np.sum(x, axis=axis, keepdims=keepdims, where=where) / _count(x, where, axis, keepdims)


def _var(
    x: Value, axis: Axis = None, ddof: float = 0, keepdims: bool = False, where: Any = True, mean: Any = None,
    correction: float | None = None,
) -> Any:  # fmt: skip
    d: Any = x - (_mean(x, where, axis, True) if mean is None else mean)
    d = d if where is True else np.where(where, d, np.zeros((), d.dtype))  # what is left out may be NaN
    squares = np.real(d * np.conjugate(d)) if d.dtype.kind == "c" else d * d
    n = _count(x, where, axis, keepdims) - resolve_ddof(ddof, correction)
    return np.sum(squares, axis=axis, keepdims=keepdims) / np.maximum(n, 0)


# ---- elements in the order of Fortran


def _reshape(call: Function, args: list[Any], kwargs: dict[str, Any], order: str) -> Any:
    x, shape = args[0], kwargs.pop("shape", args[1] if len(args) > 1 else None)
    if order != "F" or shape is None:
        return NotImplemented
    lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    return np.transpose(call(np.transpose(x), lengths[::-1]))


# ---- ufuncs


def convert_operands(name: str, args: tuple[Any, ...], dtype: DType, casting: str) -> tuple[Any, ...]:
    """Return the operands of a ufunc in the dtype that ``dtype=`` names, as far as ``casting`` allows it."""
    wanted = make_dtype(dtype)
    for x in args:
        if isinstance(x, Tensor | np.ndarray | np.generic) and not np.can_cast(x.dtype, wanted, casting):  # type: ignore[arg-type]
            raise ArgumentError(
                f"{name}(dtype={wanted.name}): cannot cast {x.dtype} to that with casting={casting!r}. Convert with "
                "np.astype first."
            )
    return tuple(convert(x, wanted) for x in args)
