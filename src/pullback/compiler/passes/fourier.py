"""Lower Fourier transforms to nodes that have machine code.

Machine code computes one transform per vector lane.  If there are only a few long transforms, each becomes two rounds
of many short ones: along the columns of a matrix and, after a multiplication by twiddle factors, along its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, pi, prod
from typing import Any

import numpy as np

from pullback.compiler.ir.fourier import Fourier, count_transforms, factorize, make_twiddles
from pullback.compiler.ir.graph import Graph, Node, Pieces, View, compute_strides
from pullback.compiler.ir.kinds import FOURIER, MAP, PIECES, VIEW
from pullback.core.tensor import BY_KERNEL
from pullback.settings import is_enabled

__all__ = ["TRANSFORMS", "lower_fourier"]

TRANSFORMS = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
FEW_TRANSFORMS = 4  # fewer than this leave most lanes empty
MIN_TWO_ROUNDS = 256  # length from which a transform is worth two rounds


def lower_fourier(g: Graph, n: Node, parts: Sequence[Node]) -> list[Node] | None:
    """Return the parts of a transform of real and, if there are any, imaginary parts; None if it is a host op."""
    data = _describe(n, parts[0])
    if data is None or not is_enabled("Fourier transforms"):
        return None
    x = parts[0]
    sides = _find_sides(data.n)
    few = prod(count_transforms(x.shape, data.axis)) < FEW_TRANSFORMS and data.axis == len(x.shape) - 1
    whole = data.n // 2 + 1 if data.is_real else data.n
    if few and data.n >= MIN_TWO_ROUNDS and sides is not None and x.shape[-1] == whole:
        return TwoRounds(g, n.line, data, sides).lower(parts)
    return _add_transform(g, data, parts, n.line)


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
    table = g.constant(make_twiddles(data.n, x.dtype))
    made = g.add(FOURIER, (*parts, table), shape if data.is_real else (2, *shape), x.dtype, data, line)
    if data.is_real:
        return [made]
    views = (View(at, compute_strides(shape)) for at in (0, made.size // 2))
    return [g.add(VIEW, (made,), shape, x.dtype, view, line) for view in views]


class TwoRounds:
    """Makes the nodes of one transform along the last axis as two rounds of shorter ones."""

    def __init__(self, g: Graph, line: str, data: Fourier, sides: tuple[int, int]) -> None:
        self.g, self.line, self.data, self.sides = g, line, data, sides

    def lower(self, parts: Sequence[Node]) -> list[Node]:
        """Return the parts of the transform."""
        data, lead = self.data, parts[0].shape[:-1]
        rows, columns = self.sides
        if data.is_real:
            parts = self._mirror(parts)
        parts = [self._view(x, (*lead, rows, columns), 0, compute_strides((*lead, rows, columns))) for x in parts]
        down = Fourier(len(lead), rows, rows, data.inverse, 1.0, False)
        across = Fourier(len(lead) + 1, columns, columns, data.inverse, data.factor, False)
        parts = self._turn(_add_transform(self.g, down, parts, self.line))
        parts = _add_transform(self.g, across, parts, self.line)
        made = [self._read_columns(x, lead) for x in parts]
        return made[:1] if data.is_real else made

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

    def _turn(self, parts: Sequence[Node]) -> list[Node]:
        """Return the parts multiplied by the twiddle factors between the rounds."""
        rows, columns = self.sides
        turns = np.outer(np.arange(rows), np.arange(columns)) / (rows * columns)
        sign = 1 if self.data.inverse else -1
        c, s = (
            self.g.constant(x.astype(parts[0].dtype)) for x in (np.cos(2 * pi * turns), sign * np.sin(2 * pi * turns))
        )
        re, im = parts
        times = [self._map(np.multiply, x, y) for x, y in ((re, c), (im, s), (re, s), (im, c))]
        return [self._map(np.subtract, *times[:2]), self._map(np.add, *times[2:])]

    def _read_columns(self, x: Node, lead: tuple[int, ...]) -> Node:
        """Return the result, whose elements are in order down the columns."""
        rows, columns = self.sides
        *outer, row, column = compute_strides((*lead, rows, columns))
        turned = self._view(x, (*lead, columns, rows), 0, (*outer, column, row))
        flat = compute_strides((*lead, rows * columns))
        return self._view(turned, (*lead, self.data.out), 0, flat)

    def _view(self, x: Node, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> Node:
        if x.kind is VIEW and x.data.strides == compute_strides(x.shape):
            x, offset = x.args[0], x.data.offset + offset
        return self.g.add(VIEW, (x,), shape, x.dtype, View(offset, strides), self.line)

    def _place(self, parts: Sequence[Node], starts: Sequence[tuple[int, ...]], shape: tuple[int, ...]) -> Node:
        return self.g.add(PIECES, parts, shape, parts[0].dtype, Pieces(tuple(starts), 0.0), self.line)

    def _map(self, kernel: Any, *args: Node) -> Node:
        return self.g.add(MAP, args, args[0].shape, args[0].dtype, (BY_KERNEL[kernel], {}), self.line)
