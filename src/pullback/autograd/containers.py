"""The arguments that autograd differentiates by: numbers, arrays, and lists, tuples and dicts of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import tree
from pullback.core.tensor import Tensor

if TYPE_CHECKING:
    from pullback.typing import Operand, Tree

__all__: list[str] = []

NUMBERS = (Tensor, np.ndarray, np.number, float, int, complex)


def children(x: Tree) -> tuple[list[Any], Callable[[list[Any]], Any]] | None:
    """Return the parts of a list, tuple or dict and how to put others in their place; None for what is none."""
    return tree.get_branches(x) if isinstance(x, list | tuple | dict) else None


def flatten(x: Tree) -> list[Any]:
    """Return the leaves of a container from left to right."""
    parts = children(x)
    return [x] if parts is None else [leaf for part in parts[0] for leaf in flatten(part)]


def rebuild(x: Tree, leaves: Iterator[Any]) -> Any:
    """Return a container built as ``x`` with other leaves."""
    parts = children(x)
    return next(leaves) if parts is None else parts[1]([rebuild(part, leaves) for part in parts[0]])


def align(x: Tree, other: Any) -> list[Any]:
    """Return the leaves of ``other`` in the order of those of ``x``, which is built alike; dicts by their keys."""
    parts = children(x)
    if parts is None:
        return [other]
    if other is None:
        return [None] * len(flatten(x))
    theirs = [other[key] for key in x] if isinstance(x, dict) else children(other)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    if theirs is None or len(theirs) != len(parts[0]):
        raise TypeError(f"a {type(x).__name__} of {len(parts[0])} was expected, got {other!r}")
    return [leaf for part, operand in zip(parts[0], theirs, strict=True) for leaf in align(part, operand)]


def conjugate(x: Operand | None) -> Any:
    """Return the complex conjugate; real numbers as they are.

    The gradient of autograd is the conjugate of the one here (and in TensorFlow and PyTorch).
    """
    return np.conj(x) if x is not None and np.iscomplexobj(x) else x


def as_leaf(x: Tree) -> Any:
    """Return a number or an array by which one can differentiate; Python's numbers are those of NumPy."""
    if isinstance(x, Tensor | np.ndarray | np.inexact):
        return x
    if isinstance(x, complex):
        return np.complex128(x)
    if isinstance(x, float | int | np.integer) and not isinstance(x, bool):
        return np.float64(x)
    raise TypeError(f"Can't differentiate w.r.t. type {type(x)}")
