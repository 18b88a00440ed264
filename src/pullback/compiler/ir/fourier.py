"""Fourier transforms as data of nodes: everything that their code depends on except the target."""

from __future__ import annotations

from functools import lru_cache
from math import pi, prod
from typing import Any, NamedTuple

import numpy as np

RADICES = (4, 2, 3, 5, 7, 11, 13)  # of the passes of a transform
MAX_LENGTH = 1 << 14  # of a transform whose scratch memory fits the second-level cache, about


class Fourier(NamedTuple):
    """A transform along an axis of arrays that hold the real parts and the imaginary parts.

    An input that is too short is padded with zeros, one that is too long is truncated.  A complex result has its real
    parts first and then its imaginary parts, along a new first axis.
    """

    axis: int
    n: int  # the length of the transform
    out: int  # the length of the result along the axis
    inverse: bool
    factor: float
    is_real: bool  # the result is real; the input has only the non-negative frequencies


@lru_cache(256)
def factorize(n: int) -> tuple[int, ...]:
    """Return the radices of the passes of a transform; none if it has a large prime factor.

    >>> factorize(240), factorize(17)
    ((4, 4, 3, 5), ())
    """
    found, left = [], n
    for r in RADICES:
        while left % r == 0:
            found.append(r)
            left //= r
    return tuple(found) if left == 1 else ()


def is_halved(data: Fourier, parts: int) -> bool:
    """Return whether a transform, of one or two parts, is of real numbers and made of half as many complex ones."""
    return data.n % 2 == 0 and (data.is_real or parts == 1)


def make_factors(data: Fourier, dtype: np.dtype[Any], is_halved: bool = False) -> Any:
    """Return the factor of the result, followed by the twiddle factors.

    These are, for each pass and position, those of all legs of the butterfly but the first.  If a transform of real
    numbers is halved, those of its frequencies up to a quarter of all of them come before.

    >>> data = Fourier(axis=0, n=8, out=8, inverse=False, factor=1.0, is_real=False)
    >>> make_factors(data._replace(n=4), np.float64).size, make_factors(data, np.float64, is_halved=True).size
    (1, 7)
    """
    n = data.n
    table = [np.array([data.factor]), *([_list_turns(np.arange(n // 4 + 1) / n)] if is_halved else [])]
    left = n // 2 if is_halved else n
    for r in factorize(left):
        if left > r:
            table.append(_list_turns(np.arange(left // r)[:, None] * np.arange(1, r) / left))
        left //= r
    return np.concatenate(table).astype(dtype)


def _list_turns(turns: Any) -> Any:
    """Return the cosines and negative sines, one after the other, of parts of a circle."""
    return np.stack([np.cos(2 * pi * turns), -np.sin(2 * pi * turns)], -1).ravel()


def count_transforms(shape: tuple[int, ...], axis: int) -> tuple[int, int]:
    """Return how many transforms there are before and after an axis."""
    return prod(shape[:axis]), prod(shape[axis + 1 :])
