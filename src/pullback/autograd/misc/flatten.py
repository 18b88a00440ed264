"""Containers of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.autograd.core import make_vjp

if TYPE_CHECKING:
    from pullback.typing import Tree


def flatten(value: Tree) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of a container in one vector, and the function from such a vector to the container.

    value: a list, tuple or dict, nested as one likes, of arrays and numbers; dicts are read in the order of their keys.

    >>> vector, unflatten = flatten({"b": [1.0, 2.0], "a": (3.0,)})
    >>> vector
    array([3., 1., 2.])
    >>> unflatten(vector * 2)
    {'b': [np.float64(2.0), np.float64(4.0)], 'a': (np.float64(6.0),)}
    """
    unflatten, vector = make_vjp(_join, value)
    return vector, unflatten


def _join(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return _concatenate(map(_join, value))
    if isinstance(value, dict):
        return _concatenate(_join(value[key]) for key in sorted(value))
    return np.ravel(value)


def _concatenate(vectors: Iterable[Any]) -> Any:
    joined = list(vectors)
    return np.concatenate(joined) if joined else np.array([])


def flatten_func(func: Callable[..., Any], example: Tree) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """Return a function of vectors from one of containers, the function from vector to container, and the vector.

    func: a function from a container to a container.
    example: a container that it takes.

    >>> f, unflatten, x = flatten_func(lambda p: {"a": 2 * p["a"]}, {"a": 3.0})
    >>> f(x)
    array([6.])
    """
    x, unflatten = flatten(example)
    return (lambda vector, *args: flatten(func(unflatten(vector), *args))[0]), unflatten, x
