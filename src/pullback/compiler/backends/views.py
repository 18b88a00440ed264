"""Views by strides as reshapes, slices, flips, transposes and broadcasts, which every array library has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple


class Decomposition(NamedTuple):
    """A view as steps: cut or pad the flat array, reshape, slice, flip, transpose, reshape, broadcast."""

    length: int  # of the flat array, cut or padded at its end
    grid: tuple[int, ...]  # its shape before it is sliced
    slices: tuple[slice, ...]
    flipped: tuple[int, ...]  # axes of the slice
    order: tuple[int, ...]  # of the axes of the slice
    kept: tuple[int, ...]  # the shape with axes of length 1 where the view repeats elements


def decompose_view(size: int, shape: Sequence[int], offset: int, strides: Sequence[int]) -> Decomposition | None:
    """Return the steps that make a view of ``size`` elements; None where elements overlap, as in sliding windows.

    >>> decompose_view(6, (3, 2), 0, (1, 3)).order
    (1, 0, 2)
    >>> decompose_view(5, (4, 2), 0, (1, 1)) is None
    True
    """
    axes = [(abs(s), n, i) for i, (n, s) in enumerate(zip(shape, strides, strict=True)) if n > 1 and s]
    axes.sort(reverse=True)
    flipped = {i for _, _, i in axes if strides[i] < 0}
    offset += sum(strides[i] * (shape[i] - 1) for i in flipped)
    cut = _cut_grid(size, offset, axes)
    if cut is None:
        return None
    grid, slices = cut
    places = [i for _, _, i in axes]
    order = sorted(range(len(places)), key=places.__getitem__)
    kept = tuple(n if n > 1 and s else 1 for n, s in zip(shape, strides, strict=True))
    return Decomposition(
        prod(grid), tuple(grid), tuple(slices), tuple(k for k, i in enumerate(places) if i in flipped),
        (*order, len(places)), kept,
    )  # fmt: skip


def _cut_grid(size: int, offset: int, axes: list[tuple[int, int, int]]) -> tuple[list[int], list[slice]] | None:
    """Return the shape of a grid of elements, and its slices that a view with these axes has; None if it has none."""
    grid: list[int] = []
    slices: list[slice] = []
    outer = axes[0][0] if axes else 1
    rows = -(-size // outer)  # of the grid, the last one filled up
    for place, (step, length, _) in enumerate(axes):
        inner = axes[place + 1][0] if place + 1 < len(axes) else 1
        if step % inner:
            return None
        first, offset = divmod(offset, step)
        count = rows if place == 0 else grid[-1]
        if first + length > count:
            return None
        slices.append(slice(first, first + length))
        grid[-1:] = [count, step // inner]
    if not axes:
        grid, slices = [rows], []
    slices.append(slice(offset, offset + 1))
    return grid, slices
