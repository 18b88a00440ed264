"""Masks: which steps of a sequence are data and which are padding.  A layer's output carries its mask along.

A mask is an array of booleans, (batch, steps).  It is stored for one value and removed with it.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from pullback.typing import Value

Mask = Any  # an array or a tensor of booleans, or None

_masks: dict[int, tuple[ref[Any], Mask]] = {}  # by the identity of the value


def has_masks() -> bool:
    """Return whether any value has a mask.

    >>> y = pb.layers.embedding(5, 2, mask_zero=True)(np.array([[3, 1, 0]]))
    >>> has_masks()
    True
    """
    return bool(_masks)


def get_mask(x: Value) -> Mask:
    """Return the mask of a value; None if it has none.

    >>> y = pb.layers.embedding(5, 2, mask_zero=True)(np.array([[3, 1, 0]]))
    >>> get_mask(y)
    array([[ True,  True, False]])
    """
    found = _masks.get(id(x)) if _masks else None
    return found[1] if found is not None and found[0]() is x else None


def set_mask(x: Value, mask: Mask) -> None:
    """Set the mask of a value, or remove it if the mask is None.

    >>> x = np.ones((1, 2, 3))
    >>> set_mask(x, np.array([[True, False]]))
    >>> get_mask(x)
    array([[ True, False]])
    """
    key = id(x)
    if mask is None:
        _masks.pop(key, None)
        return
    _masks[key] = (ref(x, lambda gone: _forget(key, gone)), mask)


def get_first_mask(mask: Mask) -> Mask:
    """Return the mask of the first of several inputs, or of the only one."""
    return mask[0] if isinstance(mask, list | tuple) and mask else mask


def expand_mask(mask: Any, rank: int) -> Any:
    """Return a mask with axes of length 1 at the end, so that it has this rank.

    >>> expand_mask(np.array([[True, False]]), 3).shape
    (1, 2, 1)
    """
    return np.reshape(mask, (*mask.shape, *(1,) * (rank - mask.ndim)))


def _forget(key: int, gone: ref[Any]) -> None:
    """Remove the mask of a value that is no more, unless a new value has its place in memory."""
    found = _masks.get(key)
    if found is not None and found[0] is gone:
        del _masks[key]
