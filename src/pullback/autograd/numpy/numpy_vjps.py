"""Helper functions for the rules of primitives: sums over broadcast axes, and similar ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.autograd.arrays import metadata

if TYPE_CHECKING:
    from pullback.typing import DType, Operand

Metadata = tuple[tuple[int, ...], int, Any, bool]


def match_complex(target: Operand, x: Operand) -> Any:
    """Return ``x`` as a real or complex number, whichever ``target`` is.

    >>> match_complex(1.0, 2.0 + 3.0j)
    2.0
    """
    if np.iscomplexobj(x) and not np.iscomplexobj(target):
        return np.real(x)
    return x + 0j if np.iscomplexobj(target) and not np.iscomplexobj(x) else x


def unbroadcast(x: Operand, target_meta: Metadata, broadcast_idx: int = 0) -> Any:
    """Return a cotangent summed over the axes that broadcasting added to its argument.

    x: the cotangent in the shape of the result.
    target_meta: what ``metadata`` says of the argument.
    broadcast_idx: where the added axes are.

    >>> unbroadcast(np.ones((2, 3)), metadata(np.ones(3)))
    array([2., 2., 2.])
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Operand, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function from a cotangent to ``f`` of it, summed over the axes that broadcasting added to ``target``.

    >>> unbroadcast_f(np.ones(3), lambda g: 2.0 * g)(np.ones((2, 3)))
    array([4., 4., 4.])
    """
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def balanced_eq(x: Operand, z: Operand, y: Operand) -> Any:
    """Return 1 where ``x`` alone is ``z``, 0.5 where ``y`` is, too, and 0 elsewhere: the slope of a maximum of both.

    >>> balanced_eq(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([0.5, 1. ])
    """
    return np.equal(x, z) / (1.0 + np.equal(x, y))


def replace_zero(x: Operand, val: float) -> Any:
    """Return ``x`` with another value in place of zeros.

    >>> replace_zero(np.array([0.0, 2.0]), 1.0)
    array([1., 2.])
    """
    return np.where(np.not_equal(x, 0), x, val)


def repeat_to_match_shape(
    g: Operand, shape: Sequence[int], dtype: DType, axis: int | Sequence[int] | None, keepdims: bool
) -> tuple[Any, int]:
    """Return the cotangent of a reduction in the shape of its argument, and how many elements each sum had.

    >>> repeat_to_match_shape(np.array([1.0, 2.0]), (2, 2), float, 1, False)
    (array([[1., 1.],
           [2., 2.]]), 2)
    """
    if not tuple(shape):
        return g, 1
    axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    gone = {a % len(shape) for a in axes}
    kept = [1 if i in gone else n for i, n in enumerate(shape)]
    repeats = int(np.prod([n for i, n in enumerate(shape) if i in gone]))
    return np.broadcast_to(np.reshape(g, kept), tuple(shape)), repeats
