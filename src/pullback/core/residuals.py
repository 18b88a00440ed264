"""Arrays that a kernel computed on its way and that its rule uses again, kept as long as the result is there.

They are found by the result itself.  An op that keeps some says so by ``saving``, which its function calls in the place
of ``run`` where a tape follows the operand; everything else computes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from numpy import ndarray

if TYPE_CHECKING:
    from pullback.typing import ArrayOrNumber, Value

__all__ = ["drop_residual", "find_residual", "keep_residual"]

_kept: dict[int, tuple[Any, Any]] = {}


def keep_residual(z: ArrayOrNumber, residual: object) -> None:
    """Keep something beside the result of a kernel; a NumPy scalar, which nothing can refer to weakly, has nothing.

    >>> import numpy as np
    >>> z = np.ones(2)
    >>> keep_residual(z, "exponentials")
    >>> find_residual(z)
    'exponentials'
    """
    if type(z) is ndarray:
        number = id(z)
        _kept[number] = ref(z, lambda _: _kept.pop(number, None)), residual


def drop_residual(z: ArrayOrNumber) -> None:
    """Let go of what was kept beside an array that becomes the memory of another result."""
    if _kept:
        _kept.pop(id(z), None)


def find_residual(z: Value) -> Any:
    """Return what was kept beside the result of a kernel, None if nothing was."""
    found = _kept.get(id(z))
    return found[1] if found is not None and found[0]() is z else None
