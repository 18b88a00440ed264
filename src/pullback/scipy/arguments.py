"""Lazy import of SciPy, calls of its functions on plain values, and conversion of arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import BoundArguments, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import join_array
from pullback.core.interpreter import level_of
from pullback.core.tape import constant
from pullback.core.tensor import Tensor, concrete
from pullback.errors import ArgumentError, DataError, NoRuleError
from pullback.names.packages import import_package
from pullback.names.scipy import FUNCTIONS

if TYPE_CHECKING:
    from types import ModuleType

    from pullback.typing import TensorLike, Value

MAX_MATRIX_LENGTH = 20_000  # an axis whose matrix is made

# The original functions and classes of SciPy before ``install`` replaced them, by (module, name).
ORIGINALS: dict[tuple[str, str], Any] = {}


class SciPyModule:
    """A module of SciPy's with its own functions, also while ``install`` has replaced them."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self._name, self._module = name, module

    def __getattr__(self, name: str) -> Any:
        return ORIGINALS.get((self._name, name)) or getattr(self._module, name)


@cache
def load(module: str) -> SciPyModule:
    """Return a module of SciPy's, such as ``"linalg"``.

    >>> load("linalg").__name__
    'scipy.linalg'
    """
    return SciPyModule(module, import_package(f"scipy.{module}", f"pb.scipy.{module} needs SciPy", "pullback[scipy]"))


def find_tensors(x: object) -> list[Tensor]:
    """Return the tensors in an argument, also those in lists, tuples, dicts and object arrays."""
    if isinstance(x, Tensor):
        return [x]
    if isinstance(x, np.ndarray) and x.dtype == object:
        x = x.ravel().tolist()
    if isinstance(x, dict):
        x = list(x.values())
    return [t for item in x for t in find_tensors(item)] if isinstance(x, list | tuple) else []


def is_traced(*args: object) -> bool:
    """Return whether a transform follows one of the arguments.

    >>> is_traced(np.ones(2), [1.0])
    False
    """
    return any(level_of(t.read()) for t in find_tensors(args))


def as_operand(x: TensorLike) -> Any:
    """Return an argument as a tensor or an array; lists of traced numbers are stacked."""
    if isinstance(x, Tensor):
        return x
    if x is None:
        raise DataError("pb.scipy: expected numbers, got None. Is a return missing in the function?")
    if isinstance(x, list | tuple) and find_tensors(x):
        return np.stack([as_operand(item) for item in x])
    joined = join_array(x)
    return joined if isinstance(joined, Tensor) else np.asarray(joined)


def as_float(x: TensorLike) -> Any:
    """Return an argument as a tensor or an array of floats or complex numbers."""
    x = as_operand(x)
    return x if x.dtype.kind in "fc" else np.astype(x, np.float64)


def keep_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with results in the float dtype of the tensors among its arguments.

    Numbers and parameters that it computes with are float64, which would widen them.
    """

    @wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        result = function(*args, **kwargs)
        floats = [t.dtype for t in find_tensors([args, kwargs]) if t.dtype.kind in "fc"]
        if not floats or not isinstance(result, Tensor) or result.dtype.kind not in "fc":
            return result
        kind = np.result_type(*floats)
        return result if result.dtype == kind else result.astype(kind)

    return call


def unwrap(x: Any) -> Any:
    """Return an argument of SciPy's with arrays in place of tensors."""
    if isinstance(x, Tensor):
        return np.array(concrete(x))
    if isinstance(x, dict):
        return {k: unwrap(v) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)(unwrap(item) for item in x)
    return x


def make_fallback(module: str, name: str) -> Any:
    """Return a function that calls SciPy's own for plain arguments, and raises an error for traced ones."""
    if name.startswith("_"):
        raise AttributeError(name)
    original = getattr(load(module), name)  # an AttributeError as SciPy has it
    if not callable(original) or isinstance(original, type):
        return original

    @wraps(original, updated=())
    def call(*args: object, **kwargs: object) -> Any:
        if is_traced(args, kwargs):
            raise NoRuleError(
                f"scipy.{module}.{name} has no differentiable version in pullback, so a gradient would be lost. "
                "Define one with pb.custom_gradient, or pass pb.stop_gradient(x) if no gradient is wanted."
            )
        result = original(*unwrap(args), **unwrap(kwargs))
        return constant(result) if find_tensors([args, kwargs]) and isinstance(result, np.ndarray) else result

    return call


def list_functions(module: str) -> list[str]:
    """Return the names in a module of SciPy's that have a differentiable version here: what ``dir`` lists.

    >>> list_functions("spatial.transform")
    ['Rotation']
    """
    return sorted(FUNCTIONS[module])


def take_scipy_arguments(module: str, name: str, ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return our function with SciPy's signature: arguments that ours does not take must have no effect.

    With plain arguments SciPy's own function is called.  Each function with an ``axis`` also takes ``keepdims``.
    """
    original = getattr(load(module), name, None)
    if original is None:  # which older versions of SciPy do not have
        return ours
    theirs = signature(original)
    own = signature(ours)

    @wraps(ours)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            own.bind(*args, **kwargs)
        except TypeError:
            pass
        else:
            return ours(*args, **kwargs)
        if not is_traced(args, kwargs):
            return make_fallback(module, name)(*args, **kwargs)
        bound = theirs.bind(*args, **kwargs)
        extra = {k: v for k, v in bound.arguments.items() if k not in own.parameters}
        for k, v in extra.items():
            if k != "keepdims" and v is not theirs.parameters[k].default and v != theirs.parameters[k].default:
                raise ArgumentError(
                    f"pb.scipy.{module}.{name}: {k}={v!r} is not known of traced tensors. Leave it out, or prepare the "
                    "data first, as in x[~np.isnan(x)]."
                )
            del bound.arguments[k]
        result = ours(*bound.args, **{k: v for k, v in bound.kwargs.items() if k in own.parameters})
        return (
            _keep_axes(result, *_find_axis(own.bind(*bound.args, **bound.kwargs))) if extra.get("keepdims") else result
        )

    return call


def _find_axis(bound: BoundArguments) -> tuple[int, Any]:
    """Return how many axes the first argument has, and the one along which a function takes it."""
    bound.apply_defaults()
    first, *_ = bound.arguments.values()
    sample = first[0] if isinstance(first, tuple) and first else first  # *samples
    return np.ndim(sample), bound.arguments.get("axis")


def _keep_axes(result: Any, ndim: int, axis: Any) -> Any:
    """Return a result, or each of several, with axes of length 1 in the place of those that were reduced."""
    if isinstance(result, tuple):
        return type(result)(*(_keep_axes(m, ndim, axis) for m in result))
    return np.expand_dims(result, tuple(range(ndim)) if axis is None else axis)


def apply_matrix(matrix: Value, x: Any, axis: int) -> Any:
    """Return ``x`` with each vector along ``axis`` multiplied by a matrix."""
    moved = np.moveaxis(x, axis, -1)
    return np.moveaxis(np.matmul(moved, np.swapaxes(matrix, -1, -2)), -1, axis)


def apply_linear(function: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """Return the result of a SciPy function that is linear along ``axis``, by its matrix on the unit vectors.

    ``function`` takes an array and acts along its axis 0.
    """
    n = x.shape[axis]
    if n > MAX_MATRIX_LENGTH:
        raise ArgumentError(
            f"pb.scipy: an axis of length {n} is too long: the derivative of this function uses a matrix of {n} × {n}, "
            f"and {MAX_MATRIX_LENGTH} is the largest length."
        )
    return apply_matrix(np.asarray(function(np.eye(n, dtype=np.result_type(x.dtype, np.float32)))), x, axis)
