"""Fourier transforms as data of nodes: everything that their code depends on except the target."""

from __future__ import annotations

from functools import lru_cache
from math import pi, prod
from typing import Any, NamedTuple

import numpy as np

__all__ = ["MAX_LENGTH", "Fourier", "count_transforms", "factorize", "make_twiddles", "transform"]

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


def make_twiddles(n: int, dtype: Any) -> Any:
    """Return the twiddle factors: for each pass and position, those of all legs of the butterfly but the first.

    >>> make_twiddles(4, np.float64).size
    0
    """
    table, left = [], n
    for r in factorize(n):
        if left > r:
            turns = np.arange(left // r)[:, None] * np.arange(1, r) / left
            table.append(np.stack([np.cos(2 * pi * turns), -np.sin(2 * pi * turns)], -1).ravel())
        left //= r
    return np.concatenate([*table, np.zeros(0)]).astype(dtype)


def transform(data: Fourier, parts: list[Any]) -> Any:
    """Return the transform of real and imaginary parts, by NumPy."""
    wide = np.result_type(parts[0].dtype, np.complex64)
    x = parts[0].astype(wide)
    if len(parts) > 1:
        x = x + 1j * parts[1].astype(wide)
    back: Any = {"norm": "forward"} if data.inverse else {}  # without a factor
    if data.is_real:
        return (np.fft.irfft(x, data.n, data.axis, norm="forward") * data.factor).astype(parts[0].dtype)
    z = (np.fft.ifft if data.inverse else np.fft.fft)(x, data.n, data.axis, **back) * data.factor
    z = z[(slice(None),) * data.axis + (slice(data.out),)]
    return np.stack([z.real, z.imag]).astype(parts[0].dtype)


def count_transforms(shape: tuple[int, ...], axis: int) -> tuple[int, int]:
    """Return how many transforms there are before and after an axis."""
    return prod(shape[:axis]), prod(shape[axis + 1 :])
