"""Helpers for functions that are composed of ops: checks of their arguments, and their error messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from pullback.core import hooks
from pullback.core.op import REGISTRY, convert_operand
from pullback.core.tensor import Tensor
from pullback.errors import DataError, PullbackError

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Value

F = TypeVar("F", bound=Callable[..., Any])


def check_numbers(name: str, argument: str, x: TensorLike) -> Value:
    """Return an argument as ``convert_operand`` does, after checking that it holds numbers or bools.

    >>> check_numbers("batch_norm", "mean", [1.0, 2.0]).shape
    (2,)
    """
    x = convert_operand(x, f"{name}: {argument}")
    if x.dtype.kind not in "fiubc":
        got = "text" if x.dtype.kind in "US" else f"an array of dtype {x.dtype}"
        raise DataError(f"{name}: {argument} must be numbers, got {got}.")
    return x


def rename_errors(name: str) -> Callable[[F], F]:
    """Return a decorator for a composition whose errors shall begin with its name, not with that of an op inside it.

    >>> @rename_errors("halved")
    ... def halved(x):
    ...     return REGISTRY["reshape"].function(x, (2, -1))
    >>> halved(np.ones(3))
    Traceback (most recent call last):
    ...
    pullback.errors.ShapeError: halved: x has shape (3,), that is 3 elements; they do not fit shape (2, -1).
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: TensorLike, **kwargs: object) -> Any:
            if hooks.blocks and (observer := hooks.find("run_call")) is not None:
                return observer.run_call("composition", call, *args, **kwargs)
            try:
                return function(*args, **kwargs)
            except PullbackError as error:
                inner, colon, rest = str(error).partition(":")
                if not colon or inner not in REGISTRY:
                    raise
                raise type(error)(f"{name}:{rest}") from None

        return cast(F, call)

    return decorate


def pick(x: Value, index: Value, axis: int = 0) -> Any:
    """Return ``np.take(x, index, axis)``, also where only the index is a tensor, which NumPy does not dispatch on.

    >>> pick(np.array([1.0, 2.0, 3.0]), np.array([2, 0]))
    array([3., 1.])
    """
    if isinstance(x, Tensor) or isinstance(index, Tensor):
        return REGISTRY["gather"].function(x, index, axis)  # as np.take does, by fewer calls
    return np.take(x, index, axis=axis)
