"""Residuals: intermediate arrays of a kernel that its derivative rule uses again, kept as long as the result exists.

They are looked up by the result.  An op that saves some has a function ``saving``, which is called instead of ``run``
for operands on a tape; otherwise the rule computes them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from numpy import ndarray

if TYPE_CHECKING:
    from pullback.typing import ArrayOrNumber, Value

_kept: dict[int, tuple[Any, Any]] = {}


def keep_residual(z: ArrayOrNumber, residual: object) -> None:
    """Save a residual for the result of a kernel; nothing is saved for a NumPy scalar, which has no weak references.

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
    """Drop the residual of an array whose memory becomes that of another result."""
    if _kept:
        _kept.pop(id(z), None)


def find_residual(z: Value) -> Any:
    """Return the residual of the result of a kernel; None if there is none."""
    found = _kept.get(id(z))
    return found[1] if found is not None and found[0]() is z else None
