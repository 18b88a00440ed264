"""Functions of ``autograd.numpy`` that differ from NumPy's own: lists with traced arrays in them, Python's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import tree
from pullback.core.tensor import Tensor

if TYPE_CHECKING:
    from pullback.typing import DType, Function, TensorLike, Value

__all__: list[str] = []


def has_tensor(x: object) -> bool:
    """Return whether there is a tensor in nested lists."""
    return isinstance(x, list | tuple) and any(isinstance(leaf, Tensor) for leaf in tree.leaves(x))


def array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """Return an array of a number, an array, or nested lists of them; traced ones are stacked.

    A: what the array is made of.
    args, kwargs: further arguments of ``numpy.array``.

    >>> array([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    if isinstance(A, Tensor):
        return _as_dtype(A, *args, **kwargs)
    if has_tensor(A):
        return _as_dtype(np.stack([array(a) for a in A]), *args, **kwargs)
    return np.array(A, *args, **kwargs)


def _as_dtype(x: Value, dtype: DType = None, *, ndmin: int = 0, **_: object) -> Any:
    y = x if dtype is None else x.astype(dtype)
    return y if y.ndim >= ndmin else np.reshape(y, (1,) * (ndmin - y.ndim) + y.shape)


def take_list(f: Function) -> Any:
    """Return a function of an array that takes lists of traced arrays, too."""

    def call(a: TensorLike, *args: object, **kwargs: object) -> Any:
        return f(array(a) if has_tensor(a) else a, *args, **kwargs)

    call.__name__, call.__doc__, call.__wrapped__ = f.__name__, f.__doc__, f  # type: ignore[attr-defined]
    return call


def take_parts(f: Function) -> Any:
    """Return a function of a list of arrays that takes any iterable of them, and lists of traced numbers as parts."""

    def call(arrays: Any, *args: object, **kwargs: object) -> Any:
        if not isinstance(arrays, Tensor | np.ndarray):
            arrays = [array(x) if has_tensor(x) else x for x in arrays]
        return f(arrays, *args, **kwargs)

    call.__name__, call.__doc__, call.__wrapped__ = f.__name__, f.__doc__, f  # type: ignore[attr-defined]
    return call


def where(condition: TensorLike, *args: Any, **kwargs: Any) -> Any:
    """Return elements of ``x`` where ``condition`` is true and of ``y`` elsewhere; Python's numbers give Python's.

    condition: what is tested.
    args, kwargs: x and y, or neither for the positions where the condition is true.

    >>> where(True, 1, 2)
    1
    """
    choices = [*args, *(kwargs[name] for name in ("x", "y") if name in kwargs)]
    if not choices:
        return np.where(condition)
    if len(choices) != 2:
        raise ValueError("either both or neither of x and y should be given")
    if has_tensor(condition) or any(map(has_tensor, choices)):
        condition, choices = array(condition), [array(x) for x in choices]
    chosen = np.where(condition, *choices)
    parts = tree.leaves([condition, *choices])
    return chosen if any(isinstance(x, Tensor | np.ndarray | np.generic) for x in parts) else chosen.tolist()


def make_diagonal(D: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return an array whose last two axes are matrices with the last axis of ``D`` on their diagonals.

    D: the diagonals.
    offset, axis1, axis2: must be 0, -1 and -2.

    >>> make_diagonal(np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal takes offset=0, axis1=-1, axis2=-2 only")
    return D[..., None] * np.eye(D.shape[-1], dtype=D.dtype)


def metadata(A: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """Return shape, number of axes, dtype, and whether an array is complex.

    >>> metadata(np.ones(3))
    ((3,), 1, dtype('float64'), False)
    """
    return np.shape(A), np.ndim(A), np.result_type(A), bool(np.iscomplexobj(A))
