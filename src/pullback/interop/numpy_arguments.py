"""Conversion of the arguments and results of NumPy calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import generic, ndarray

from pullback.core.interpreter import level_of
from pullback.core.tape import constant
from pullback.core.tensor import Tensor, call_unfollowed, concrete, iterate_levels, strip
from pullback.core.variable import get_trace
from pullback.core.writes import is_array, mark_as_array
from pullback.errors import BatchedValueError, NoRuleError, SymbolValueError
from pullback.ops.conversion import clone

TABLES: list[Mapping[Any, Any]] = []  # NumPy's functions as compositions, from the files of this package


def iterate_tensors(x: Any) -> Iterator[Tensor]:
    """Yield the tensors among arguments, also those in lists, tuples and dicts."""
    if isinstance(x, Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for item in x:
            yield from iterate_tensors(item)
    elif isinstance(x, dict):
        yield from iterate_tensors(list(x.values()))


def is_traced(*args: object) -> bool:
    """Return whether a transform traces one of the arguments."""
    return any(level_of(t) for t in iterate_tensors(args))


def unwrap(x: object, value: Callable[[Any], Any] = concrete) -> Any:
    """Return the arguments with read-only arrays in place of tensors."""
    if isinstance(x, Tensor):
        values = value(x)
        if isinstance(values, ndarray):
            values = values.view()
            values.flags.writeable = False
        return values
    if isinstance(x, list | tuple):
        return _wrap_like(x, [unwrap(item, value) for item in x])
    return {k: unwrap(v, value) for k, v in x.items()} if isinstance(x, dict) else x


def wrap(x: object) -> Any:
    """Return a result with tensors in place of arrays."""
    if isinstance(x, ndarray | generic):
        return constant(x) if x.dtype.kind in "fiubc" else x
    return _wrap_like(x, [wrap(item) for item in x]) if isinstance(x, list | tuple) else x


def _wrap_like(x: Any, items: list[Any]) -> Any:
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)


def has_inexact(x: object) -> bool:
    """Return whether a result contains floats or complex numbers."""
    if isinstance(x, list | tuple):
        return any(has_inexact(item) for item in x)
    return isinstance(x, float | complex) or getattr(getattr(x, "dtype", None), "kind", "i") in "fcO"


def to_array(x: Any, like: np.dtype[Any] | None = None) -> Any:
    """Return a list or number as an array, or as a tensor if it contains tensors; floats get the dtype ``like``."""
    if not isinstance(x, list | tuple | float | int):
        return x
    if isinstance(x, list | tuple) and any(True for _ in iterate_tensors(x)):
        return np.stack([to_array(item, like) for item in x])
    array = np.asarray(x)
    return array.astype(like) if like is not None and like.kind == "f" and array.dtype.kind == "f" else array


def align_operands(args: Sequence[Any]) -> list[Any]:
    """Return operands with lists and numbers as arrays of the dtype of the tensors among them."""
    floats = [t.dtype for t in iterate_tensors(args) if t.dtype.kind == "f"]
    return [to_array(a, floats[0] if floats else None) for a in args]


def as_numpy_array(x: Any) -> Any:
    """Return ``x`` itself; of a number, which has no memory in NumPy, an array without axes."""
    return np.asarray(x) if not isinstance(x, Tensor) else x if is_array(x) else mark_as_array(clone(x))


def as_numpy_number(x: Any) -> Any:
    """Return ``x`` itself; of an array without axes, its number."""
    return x if x.ndim or not is_array(x) else x[()]


def wrap_constant(name: str, result: object, *args: object) -> Any:
    """Return a piecewise constant result as constant tensors: its derivative is zero.

    Every tape remembers the function, for the error message about an input without a gradient.
    """
    for t in iterate_tensors(args):
        for x in iterate_levels(t):
            tape = getattr(getattr(x, "meta", None), "tape", None)  # a dual number has none
            if tape is not None:
                tape.cut(name)
    return wrap(result)


def make_no_rule_error(name: str, why: str = "") -> NoRuleError:
    return NoRuleError(
        f"{name} has no rule of differentiation in pullback, so its gradient would be lost.{why} "
        "Write it with functions that have one, give it a gradient with pb.custom_gradient, or use stop_gradient."
    )


def run_without_rule(
    name: str, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, why: str = ""
) -> Any:
    """Run a function without a rule on plain values; raise an error if traced tensors would lose a gradient."""
    arguments = args, kwargs or {}
    found = [t.read() for t in iterate_tensors(arguments)]
    if any(isinstance(strip(t), Tensor) for t in found):  # many examples
        shapes: set[tuple[int, ...]] = set()

        def run_example(*values: Any) -> Any:
            return _run_example(name, run, arguments, values, shapes)

        run_example.__name__ = name  # of the host op
        result = call_unfollowed(run_example, *found)
        followed = any(t.level and strip(t) is not t for t in found)
    else:
        result, followed = run(*unwrap(arguments[0]), **unwrap(arguments[1])), is_traced(arguments)
    if followed and has_inexact(result):
        raise make_no_rule_error(name, why)
    return wrap_constant(name, result, args, kwargs)


def _run_example(
    name: str, run: Callable[..., Any], arguments: tuple[Any, ...], values: tuple[Any, ...], shapes: set[Any]
) -> Any:
    """Run a function on the values of one example of ``vmap``."""
    rest = iter(values)
    args, kwargs = unwrap(arguments, lambda _: next(rest))
    result = run(*args, **kwargs)
    array = np.asarray(None if isinstance(result, list | tuple) else result)
    shapes.add(array.shape)
    if array.dtype.kind not in "fiubc" or len(shapes) > 1:
        if get_trace() is not None:
            raise SymbolValueError(
                f"{name} in a function that is being compiled: its results are several, or their shape depends on "
                "values. Use np.where to choose, or do this outside of it."
            )
        raise BatchedValueError(
            f"{name} under vmap or compiled: its results are several, or their shape depends on values. Use np.where "
            "to choose, or do this outside of vmap and of the compiled function."
        )
    return array
