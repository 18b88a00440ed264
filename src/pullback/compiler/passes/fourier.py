"""Lower Fourier transforms to nodes that have machine code.

Machine code computes one transform per vector lane.  If there are only a few long transforms, each becomes two rounds
of many short ones: along the columns of a matrix and, after a multiplication by twiddle factors, along its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt, pi, prod
from typing import Any

import numpy as np

from pullback.compiler.ir.fourier import MAX_LENGTH, Fourier, count_transforms, factorize, is_halved, make_factors
from pullback.compiler.ir.graph import Graph, Node, Pieces, View, compute_strides
from pullback.compiler.ir.kinds import FOURIER, PIECES, VIEW

TRANSFORMS = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
FEW_TRANSFORMS = 4  # fewer than this leave most lanes empty
MIN_TWO_ROUNDS = 256  # length from which a transform is worth two rounds
MAX_BYTES = 1 << 21  # of one part of a transform in two rounds: caches do not hold more, and NumPy is quicker
MIN_HALVED = 512  # length from which a transform of real numbers is worth making of half as many complex ones


def lower_fourier(g: Graph, n: Node, parts: Sequence[Node]) -> list[Node] | None:
    """Return the parts of a transform of real and, if there are any, imaginary parts; None if it is a host op."""
    data = _describe(n, parts[0])
    if data is None:
        return None
    x = parts[0]
    is_long = data.n > MAX_LENGTH
    few = prod(count_transforms(x.shape, data.axis)) < FEW_TRANSFORMS and data.n >= MIN_TWO_ROUNDS
    fits = data.axis == len(x.shape) - 1 and data.n * x.dtype.itemsize <= MAX_BYTES and _find_sides(data.n) is not None
    if (few or is_long) and fits:
        return LongTransform(g, n.line, data).lower(parts)
    return None if is_long else _add_transform(g, data, parts, n.line)


def _describe(n: Node, x: Node) -> Fourier | None:
    op, params = n.data
    axis = int(params["axis"]) % len(x.shape)
    is_real, inverse = op.kernel is np.fft.irfft, op.kernel in (np.fft.ifft, np.fft.irfft)
    length = 2 * (x.shape[axis] - 1) if is_real else x.shape[axis]
    count = length if params["n"] is None else int(params["n"])
    if (count > 1 and not factorize(count)) or x.dtype.itemsize not in (4, 8) or not n.size * x.size:
        return None
    norm = params["norm"] or "backward"
    divides = norm == ("backward" if inverse else "forward")
    factor = count**-0.5 if norm == "ortho" else 1 / count if divides else 1.0
    return Fourier(axis, count, n.shape[axis], inverse, factor, is_real)


def _find_sides(n: int) -> tuple[int, int] | None:
    """Return the sides of a matrix of ``n`` elements that is nearly square; None for a prime number."""
    found = next((m for m in range(isqrt(n), 1, -1) if n % m == 0), 0)
    return (found, n // found) if found >= 4 else None


def _add_transform(g: Graph, data: Fourier, parts: Sequence[Node], line: str) -> list[Node]:
    x = parts[0]
    shape = (*x.shape[: data.axis], data.out, *x.shape[data.axis + 1 :])
    table = g.add_constant(make_factors(data, x.dtype, is_halved(data, len(parts))))
    node = g.add(FOURIER, (*parts, table), shape if data.is_real else (2, *shape), x.dtype, data, line)
    if data.is_real:
        return [node]
    views = (View(at, compute_strides(shape)) for at in (0, node.size // 2))
    return [g.add(VIEW, (node,), shape, x.dtype, view, line) for view in views]


class LongTransform:
    """Makes the nodes of one transform along the last axis as two rounds of shorter ones.

    One of real numbers is made of one of half as many complex numbers, whose parts are every other number.
    """

    def __init__(self, g: Graph, line: str, data: Fourier) -> None:
        self.g, self.line, self.data = g, line, data

    def lower(self, parts: Sequence[Node]) -> list[Node]:
        """Return the parts of the transform."""
        data = self.data
        half, is_odd = divmod(data.n, 2)
        parts = [self._resize_last_axis(x, half + 1 if data.is_real else data.n) for x in parts]
        if not is_odd and _find_sides(half) is not None and data.n >= MIN_HALVED:
            if data.is_real:
                return [self._make_real(*parts)]
            if len(parts) == 1 and data.out <= half + 1:
                return self._transform_real(parts[0])
        if data.is_real:
            return self._transform(self._mirror(parts), data.n, data.out)[:1]
        return self._transform(parts, data.n, data.out)

    def _resize_last_axis(self, x: Node, length: int) -> Node:
        """Return ``x`` with its last axis cut to a length, or extended to it by zeros."""
        shape = (*x.shape[:-1], length)
        if x.shape[-1] < length:
            return self._place((x,), [(0,) * len(shape)], shape)
        return x if x.shape == shape else self._view(x, shape, 0, compute_strides(x.shape))

    def _transform(self, parts: Sequence[Node], n: int, out: int) -> list[Node]:
        """Return the first ``out`` numbers of a transform of ``n``."""
        lead, sides = parts[0].shape[:-1], _find_sides(n)
        assert sides is not None
        result = self._transform_sides(parts, sides)
        return [self._read_columns(x, lead, sides, out) for x in result]

    def _transform_sides(self, parts: Sequence[Node], sides: tuple[int, int]) -> list[Node]:
        """Return the transform in order down the columns of a matrix."""
        data, lead = self.data, parts[0].shape[:-1]
        shape = (*lead, *sides)
        parts = [self._view(x, shape, 0, compute_strides(shape)) for x in parts]
        down = Fourier(len(lead), sides[0], sides[0], data.inverse, 1.0, False)
        across = Fourier(len(lead) + 1, sides[1], sides[1], data.inverse, data.factor, False)
        parts = self._turn(_add_transform(self.g, down, parts, self.line), sides)
        return _add_transform(self.g, across, parts, self.line)

    def _transform_real(self, x: Node) -> list[Node]:
        """Return the transform of real numbers, from that of pairs of them as complex numbers."""
        lead, half = x.shape[:-1], self.data.n // 2
        every_other = (*compute_strides(x.shape)[:-1], 2)
        result = self._transform([self._view(x, (*lead, half), at, every_other) for at in (0, 1)], half, half)
        starts = [(0,) * len(lead) + (at,) for at in (0, half)]
        ends = [self._view(z, (*lead, 1), 0, compute_strides(z.shape)) for z in result]  # the first is the last again
        re, im = (self._place(z, starts, (*lead, half + 1)) for z in zip(result, ends, strict=True))
        (plus_re, plus_im), (turned_re, turned_im) = self._combine_mirrored(re, im)
        both = self._map(np.add, plus_re, turned_re), self._map(np.subtract, plus_im, turned_im)
        return [self._resize_last_axis(self._times(z, self.g.add_constant(0.5, x.dtype)), self.data.out) for z in both]

    def _make_real(self, re: Node, im: Node) -> Node:
        """Return a real result, the pairs of whose numbers are the transform of complex numbers."""
        lead, half = re.shape[:-1], self.data.n // 2
        between = self._view(im, (*lead, half - 1), 1, compute_strides(im.shape))  # the first and last do not count
        im = self._place((between,), [(0,) * len(lead) + (1,)], im.shape)
        (plus_re, plus_im), (turned_re, turned_im) = self._combine_mirrored(re, im)
        both = self._map(np.subtract, plus_re, turned_re), self._map(np.add, plus_im, turned_im)
        result = self._transform([self._resize_last_axis(z, half) for z in both], half, half)
        columns = [self._view(z, (*z.shape, 1), 0, (*compute_strides(z.shape), 1)) for z in result]
        starts = [(0,) * len(lead) + (0, at) for at in (0, 1)]
        pairs = self._place(columns, starts, (*lead, half, 2))
        return self._view(pairs, (*lead, self.data.n), 0, compute_strides((*lead, self.data.n)))

    def _combine_mirrored(self, re: Node, im: Node) -> tuple[tuple[Node, Node], tuple[Node, Node]]:
        """Return complex numbers plus and minus the conjugates of those in the opposite order, the latter rotated.

        They are multiplied by the factors of the bins of a transform of real numbers.
        """
        back = (*compute_strides(re.shape)[:-1], -1)
        re_back, im_back = (self._view(x, x.shape, x.shape[-1] - 1, back) for x in (re, im))
        plus = self._map(np.add, re, re_back), self._map(np.subtract, im, im_back)
        re, im = self._map(np.subtract, re, re_back), self._map(np.add, im, im_back)
        turns = 2 * pi * np.arange(re.shape[-1]) / self.data.n
        c, s = self._add_factors(turns, -1 if self.data.inverse else 1, re.dtype)
        rotated_re = self._map(np.subtract, self._times(im, c), self._times(re, s))
        return plus, (rotated_re, self._map(np.add, self._times(re, c), self._times(im, s)))

    def _add_factors(self, turns: Any, sign: int, dtype: np.dtype[Any]) -> tuple[Node, Node]:
        """Add the real and imaginary parts of the unit numbers at angles."""
        c, s = np.cos(turns), sign * np.sin(turns)
        return self.g.add_constant(c.astype(dtype)), self.g.add_constant(s.astype(dtype))

    def _times(self, x: Node, factor: Node) -> Node:
        return self._map(np.multiply, x, factor)

    def _mirror(self, parts: Sequence[Node]) -> list[Node]:
        """Return the bins of all frequencies of a real result; those without a mirror have no imaginary part."""
        re, im = parts
        lead, n = re.shape[:-1], self.data.n
        inner = (n + 1) // 2 - 1  # bins with a mirror image
        back = (*compute_strides(re.shape)[:-1], -1)
        mirrored = [self._view(x, (*lead, inner), inner, back) for x in parts]
        between = self._view(im, (*lead, inner), 1, compute_strides(im.shape))
        starts = [(0,) * len(lead) + (at,) for at in (0, n - inner, 1)]
        return [
            self._place((re, mirrored[0]), starts[:2], (*lead, n)),
            self._place((between, self._map(np.negative, mirrored[1])), [starts[2], starts[1]], (*lead, n)),
        ]

    def _turn(self, parts: Sequence[Node], sides: tuple[int, int]) -> list[Node]:
        """Return the parts multiplied by the twiddle factors between the rounds."""
        rows, columns = sides
        turns = 2 * pi * (np.outer(np.arange(rows), np.arange(columns)) / (rows * columns))
        c, s = self._add_factors(turns, 1 if self.data.inverse else -1, parts[0].dtype)
        re, im = parts
        times = [self._map(np.multiply, x, y) for x, y in ((re, c), (im, s), (re, s), (im, c))]
        return [self._map(np.subtract, *times[:2]), self._map(np.add, *times[2:])]

    def _read_columns(self, x: Node, lead: tuple[int, ...], sides: tuple[int, int], out: int) -> Node:
        """Return the first ``out`` of numbers that are in order down the columns of a matrix."""
        rows, columns = sides
        *outer, row, column = compute_strides((*lead, rows, columns))
        turned = self._view(x, (*lead, columns, rows), 0, (*outer, column, row))
        flat = compute_strides((*lead, rows * columns))
        return self._view(turned, (*lead, out), 0, flat)

    def _view(self, x: Node, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Node:
        if x.kind is VIEW and x.data.strides == compute_strides(x.shape):
            x, offset = x.args[0], x.data.offset + offset
        return self.g.add(VIEW, (x,), shape, x.dtype, View(offset, strides), self.line)

    def _place(self, parts: Sequence[Node], starts: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> Node:
        return self.g.add(PIECES, parts, shape, parts[0].dtype, Pieces(tuple(starts), 0.0), self.line)

    def _map(self, kernel: Callable[..., Any], *args: Node) -> Node:
        return self.g.add_op(kernel, *args, line=self.line)
