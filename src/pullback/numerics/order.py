"""Stable sorting along an axis: equal elements keep their order.

NumPy sorts with vector instructions if the order of equal elements does not matter, and much slower if it does.
Integers that combine an element and its position are all different, so they can be sorted with vector instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SHORTEST = {"f4": 16, "i4": 16, "i8": 16, "f8": 200}  # rows by dtype; for shorter ones NumPy's stable sort is as fast
FEW_ELEMENTS = 256  # of all rows; for fewer, the steps around the sorting of keys take longer than NumPy's stable sort
MIN_TIES = 0.1  # of all elements: if more are equal to a neighbour, sorting these again takes longer than sorting all


def argsort_stable(x: Any, axis: int = -1, descending: bool = False) -> Any:
    """Return where the elements along an axis come from when they are sorted; equal ones stay in their order.

    >>> argsort_stable(np.array([2.0, -0.0, np.nan, 0.0]), descending=True)
    array([2, 0, 1, 3])
    """
    kind, length = x.dtype.str[1:], x.shape[axis]
    if length < SHORTEST.get(kind, length + 1) or (kind != "f8" and x.size < FEW_ELEMENTS):
        return _sort_by_numpy(x, axis, descending)
    is_last = axis in (-1, x.ndim - 1)
    rows = np.ascontiguousarray(x if is_last else np.moveaxis(x, axis, -1))
    if kind == "f8":
        places = None if descending else _sort_again(rows)
    else:
        numbers = _find_order(rows)
        places = None if numbers is None else _sort_keys(numbers, descending)
    if places is None:
        return _sort_by_numpy(x, axis, descending)
    return places if is_last else np.moveaxis(places, -1, axis)


def find_rank(rows: Any, rank: int) -> Any:
    """Return which element of each row would be at place ``rank`` if it were sorted; equal ones stay in their order.

    >>> find_rank(np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 4.0]]), 1)
    array([2, 0])
    """
    value = np.partition(rows, rank)[..., rank]
    at = rows == value[..., None]
    if np.count_nonzero(at) == value.size and np.all(value == value):  # one in each row
        return at.argmax(-1)
    return argsort_stable(rows)[..., rank]


def _sort_by_numpy(x: Any, axis: int, descending: bool) -> Any:
    if not descending:
        return np.argsort(x, axis, kind="stable")
    # Backwards twice, so that of equal elements the first one still comes first.
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def _find_order(rows: Any) -> Any:
    """Return int64 keys below 2**31 in size that sort as the numbers do; None if the integers span more than that."""
    if rows.dtype.kind == "f":
        bits = (rows + np.float32(0.0)).view(np.int32)  # -0 is 0
        bits ^= (bits >> 31) & 0x7FFFFFFF
        bits[np.isnan(rows)] = np.iinfo(np.int32).max  # whatever their sign, they are last
        return bits.astype(np.int64)
    if rows.dtype.itemsize == 8 and rows.size:
        low, high = int(rows.min()), int(rows.max())
        return rows - low if high - low < 2**31 else None
    return rows.astype(np.int64)


def _sort_keys(keys: Any, descending: bool) -> Any:
    """Return the order of rows of integers of 32 bits, whose memory is used for keys that end in the place."""
    if descending:
        np.invert(keys, out=keys)
    keys <<= 32
    keys |= np.arange(keys.shape[-1])
    keys.sort(axis=-1)
    keys &= 0xFFFFFFFF
    return keys


def _sort_again(rows: Any) -> Any:
    """Return the stable order of rows: an unstable sort, then the runs of equal elements; None if many are equal."""
    places = np.argsort(rows, -1)
    ordered = rows[places] if rows.ndim == 1 else np.take_along_axis(rows, places, -1)
    before = ordered[..., :-1]
    equal = (ordered[..., 1:] == before) | (before != before)  # after NaN comes NaN
    count = np.count_nonzero(equal)
    if not count:
        return places
    if count > MIN_TIES * rows.size:
        return None
    follows = np.zeros(rows.shape, bool)
    follows[..., 1:] = equal
    run = np.cumsum(~follows)  # which run of equal elements each is of
    is_followed = np.zeros(rows.shape, bool)
    is_followed[..., :-1] = equal
    at = np.flatnonzero(follows | is_followed)
    flat = places.reshape(-1)
    flat[at] = flat[at][np.lexsort((flat[at], run[at]))]
    return places
