"""Winograd convolutions with filters of three rows: two rows of results by four products instead of six.

Four sums of four rows of the image are multiplied by four sums of the three rows of the filter; sums and differences of
the products are the two rows of results.  Every product is of whole planes, by BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.numerics.blas import align_to_cache_line
from pullback.numerics.windows import BLOCK, Windows, make_frame
from pullback.settings import is_enabled

if TYPE_CHECKING:
    from pullback.typing import Array

__all__ = ["pair_convolve", "pair_convolve_filter", "is_worthwhile"]

Ints = tuple[int, ...]
SUMS = ((np.add, 1, 2), (np.subtract, 2, 1), (np.subtract, 0, 2), (np.subtract, 3, 1))  # of four rows
WORTH = 6_000_000  # products with an element of the filter, of one image; fewer are quicker made one by one


def is_worthwhile(windows: Windows, channels: int, depth: int, dtype: np.dtype[Any]) -> bool:
    """Return whether the Winograd form is faster and as precise; the limits are measured.

    There must be enough products to save, and images wide enough that little is wasted between rows.  With few channels
    the sums lose more digits; with many the plain product is as fast.

    >>> is_worthwhile(Windows((3, 3), (1, 1), (1, 1), (1, 1), (56, 56)), 64, 64, np.dtype("f4"))
    True
    """
    if windows.size != (3, 3) or dtype.char not in "fd" or max(*windows.strides, *windows.dilations) > 1:
        return False
    narrow, broad, (height, width) = min(channels, depth), max(channels, depth), windows.out
    pays = height * width * narrow**2 >= WORTH and width >= 28 and narrow >= 32 and broad <= 128
    return pays and is_enabled("Winograd")


def pair_convolve(x: Array, filter: Array, windows: Windows) -> Any:
    """Return the convolution of (batch, height, width, channels) with a filter of three rows.

    >>> x, filter = np.arange(5.0).reshape(1, 5, 1, 1), np.array([1.0, 10.0, 100.0]).reshape(3, 1, 1, 1)
    >>> pair_convolve(x, filter, Windows((3, 1), (1, 1), (1, 1), (0, 0), (3, 1))).ravel()
    array([210., 321., 432.])
    """
    _, k, channels, depth = filter.shape
    first, middle, last = filter
    outer, middle = (first + last) / 2, middle / 2
    matrices = align_to_cache_line(np.stack([outer + middle, outer - middle, first, last])).reshape(
        4, k * channels, depth
    )
    z = np.empty((x.shape[0], *windows.out, depth), x.dtype)
    for here, sums, buffers in _strips(x, windows, (depth, depth)):
        left, right = (buffer[..., : windows.out[1], :] for buffer in buffers)
        even, odd = z[here][:, ::2], z[here][:, 1::2]
        both = odd.shape[1]
        for i, source in enumerate(sums):
            for rows, places in _phases(source, buffers[i == 1], k):
                np.matmul(rows, matrices[i], out=places)
            if i == 1:
                np.add(left, right, out=even)
                np.subtract(left[:, :both], right[:, :both], out=odd)
            elif i == 2:
                np.add(even, left, out=even)
            elif i == 3:
                np.add(odd, left[:, :both], out=odd)
    return z


def pair_convolve_filter(x: Array, y: Array, windows: Windows) -> Any:
    """Return the adjoint of ``pair_convolve`` in the filter.

    >>> x, y = np.arange(5.0).reshape(1, 5, 1, 1), np.array([1.0, 10.0, 100.0]).reshape(1, 3, 1, 1)
    >>> pair_convolve_filter(x, y, Windows((3, 1), (1, 1), (1, 1), (0, 0), (3, 1))).ravel()
    array([210., 321., 432.])
    """
    k, channels, depth = windows.size[1], x.shape[-1], y.shape[-1]
    totals = np.zeros((4, k * channels, depth), x.dtype)
    more = np.empty_like(totals[0])
    for here, sums, (spread,) in _strips(x, windows, (depth,)):
        inside = spread[..., : windows.out[1], :]
        even, odd = y[here][:, ::2], y[here][:, 1::2]
        both = odd.shape[1]
        for i, source in enumerate(sums):
            if i < 2:
                (np.add, np.subtract)[i](even[:, :both], odd, out=inside[:, :both])
            else:
                inside[:, :both] = (even[:, :both], odd)[i - 2]
            inside[:, both:] = even[:, both:] if i < 3 else 0  # a last row by itself
            for rows, places in _phases(source, spread, k):
                np.add(totals[i], np.matmul(rows.T, places, out=more), out=totals[i])
    plus, minus, first, last = totals
    outer = (plus + minus) / 2
    return np.stack([first + outer, (plus - minus) / 2, outer + last]).reshape(3, k, channels, depth)


def _strips(x: Array, windows: Windows, depths: Ints) -> Iterator[tuple[tuple[slice, slice], Iterator[Any], list[Any]]]:
    """Yield strips: the slice of the results, the four sums of rows of the image, and buffers for planes.

    Sums and planes are as wide as the image in its frame.  They are always in the same place, and 0 at the beginning.
    """
    (images, _, space, channels), (height, width), (above, left) = x.shape, windows.out, windows.before
    pairs, wide = -(-height // 2), width + windows.size[1] - 1
    first, stop = max(-left, 0), min(space, wide - left)  # of the columns that windows reach
    each = wide * (channels + sum(depths)) * x.itemsize
    high = -(-pairs // max(round(pairs * each / BLOCK), 1))  # strips of an image are about as high as each other
    many = max(min(BLOCK // (pairs * each), images), 1)
    buffers = [np.zeros((many * high, wide, depth), x.dtype) for depth in (channels, *depths)]
    for i in range(0, images, many):
        n = min(many, images - i)
        for j in range(0, pairs, high):
            now = min(high, pairs - j)
            rows = Windows((3, 1), (1, 1), (1, 1), (above - 2 * j, -first), (2 * now, stop - first))
            sums, *planes = (buffer[: n * now].reshape(n, now, *buffer.shape[1:]) for buffer in buffers)
            frame, inside = make_frame(x[i : i + n], rows), sums[:, :, first + left : stop + left]
            yield (slice(i, i + n), slice(2 * j, 2 * (j + now))), _sums(frame, inside, sums), planes


def _sums(frame: Array, inside: Array, whole: Array) -> Iterator[Any]:
    """Yield the four sums of rows, each in the same buffer."""
    n = frame.shape[1] - 2
    for ufunc, a, b in SUMS:
        ufunc(frame[:, a : a + n : 2], frame[:, b : b + n : 2], out=inside)
        yield whole


def _phases(source: Array, target: Array, k: int) -> Iterator[tuple[Any, Any]]:
    """Yield every k-th window of a plane as the rows of a matrix, without a copy, and the columns of the results.

    Windows continue from one row of the plane to the next; their results there are beyond the width and not used.
    """
    source, target = source.reshape(-1, source.shape[-1]), target.reshape(-1, target.shape[-1])
    count = len(source) - k + 1
    for i in range(k):
        n = -(-(count - i) // k)
        yield source[i : i + n * k].reshape(n, -1), target[i:count:k]
