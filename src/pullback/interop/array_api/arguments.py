"""Arguments and results of the functions of the Array API: arrays, dtypes and the one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pullback.core.tape import as_tensor, constant
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError

if TYPE_CHECKING:
    from pullback.typing import DType, Value

DEVICE = "cpu"
NUMBERS = (bool, int, float, complex)
F = TypeVar("F", bound=Callable[..., Any])


def as_operand(x: Any) -> Any:
    """Return an argument of a function of several arrays: a tensor, or a Python number unchanged.

    >>> as_operand(2.0), as_operand(np.array([1.0]))
    (2.0, Tensor([1.], dtype=float64))
    """
    return x if isinstance(x, Tensor) or type(x) in NUMBERS else as_tensor(x)


def as_result(x: Any) -> Any:
    """Return a result as a tensor, and several as a tuple of them.

    >>> as_result((np.array([1.0]), np.int64(2)))
    (Tensor([1.], dtype=float64), Tensor(2, dtype=int64))
    """
    if isinstance(x, Tensor):
        return x
    if isinstance(x, list | tuple):
        results = [as_result(item) for item in x]
        return type(x)(*results) if hasattr(x, "_fields") else tuple(results)
    return constant(np.asarray(x))


def call(f: Callable[..., Any], *arrays: Any, **parameters: Any) -> Tensor:
    """Return the result of a NumPy function for these arrays, as a tensor.

    >>> call(np.add, np.array([1.0]), 2.0)
    Tensor([3.], dtype=float64)
    """
    result: Tensor = as_result(_call(f, arrays, parameters))
    return result


def call_several(f: Callable[..., Any], *arrays: object, **parameters: object) -> tuple[Tensor, ...]:
    """Return the several results of a NumPy function for these arrays, as tensors.

    >>> call_several(np.modf, np.array([1.5]))
    (Tensor([0.5], dtype=float64), Tensor([1.], dtype=float64))
    """
    results: tuple[Tensor, ...] = as_result(_call(f, arrays, parameters))
    return results


def _call(f: Callable[..., Any], arrays: tuple[Any, ...], parameters: dict[str, Any]) -> Any:
    """Call a function with tensors; numbers alone become a tensor first."""
    operands = [as_operand(x) for x in arrays]
    if not any(isinstance(x, Tensor) for x in operands):
        operands[0] = constant(np.asarray(operands[0]))
    return f(*operands, **parameters)


def name_function(function: F, name: str, summary: str, *arguments: str) -> F:
    """Return a function under the name that the standard has for it, with a line of documentation for each argument.

    >>> name_function(lambda x: x, "positive", "Return a copy.", "x: the array.").__doc__
    'Return a copy.\\n\\n    x: the array.'
    """
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "\n    ".join([f"{summary}\n", *arguments]) if arguments else summary
    return function


def make_unary(name: str, f: Callable[..., Any], summary: str, *arguments: str) -> Callable[[Value], Tensor]:
    """Return a function of one array under the name that the standard has for it.

    >>> make_unary("abs", np.abs, "Return the absolute value of each element.")(np.array([-1.0]))
    Tensor([1.], dtype=float64)
    """

    def function(x: Value, /) -> Tensor:
        return call(f, x)

    return name_function(function, name, summary, *arguments)


def check_device(name: str, device: object) -> None:
    """Refuse a device other than the CPU.

    >>> check_device("zeros", "cuda")
    Traceback (most recent call last):
    ...
    pullback.errors.ArgumentError: zeros: device must be "cpu", where all tensors are, or None, got 'cuda'.
    """
    if device is not None and device != DEVICE:
        raise ArgumentError(f'{name}: device must be "cpu", where all tensors are, or None, got {device!r}.')


def widen(x: Any, dtype: DType) -> Any:
    """Return the argument of a sum or product in ``dtype``; without it, short integers in the widest of their kind.

    >>> widen(np.array([1], np.int8), None).dtype
    dtype('int64')
    """
    x = as_operand(x)
    if dtype is None and x.dtype.kind in "iub":
        dtype = np.uint64 if x.dtype.kind == "u" else np.int64
    return cast(x, dtype)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """Return an array in ``dtype``; unchanged if that is None.

    >>> cast(as_operand(np.array([1])), np.float32)
    Tensor([1.], dtype=float32)
    """
    result: Tensor = x if dtype is None or x.dtype == dtype else x.astype(dtype)
    return result
