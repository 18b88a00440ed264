"""Write elements at regular strides of zeros as a padding of an array with more axes: the gradient of ``x[::2]``.

Along an axis with a step of n, the array is seen as one of n columns, in one of which the elements are.  Paddings of
the same kind are added up before they are seen in their own shape, so that they can be merged: the gradient of
``x[::2] * x[1::2]`` is one array of two columns, and neither is added to zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, Pieces, Shape, View, compute_strides, reshape
from pullback.compiler.ir.kinds import INPUT, MAP, PIECES, SPACED, VIEW

__all__ = ["pad_spaced"]

MAX_STEP = 9  # of the last axis: as many columns


class Spacing(NamedTuple):
    """Where the elements of an array are in a larger one, by axis of the larger one."""

    starts: Shape
    lengths: Shape
    steps: Shape


def pad_spaced(graph: Graph) -> Graph:
    """Return an equivalent graph in which elements at strides of zeros are paddings, where axes allow it."""
    found = {n.number: spacing for n in graph.nodes if n.kind is SPACED and (spacing := _find_spacing(n)) is not None}
    if not found:
        return graph
    new, made = graph.copy_inputs()
    padded: dict[Node, Node] = {}  # by view: the padding, or sum of paddings, that it is of
    for n in graph.nodes:
        args = [made[a.number] for a in n.args]
        if n.number in found:
            made[n.number] = _view(new, n, _pad(new, n, args[0], found[n.number]), found[n.number].steps, padded)
        elif n.kind is MAP and n.data[0].kernel is np.add and _are_alike(n, args, padded):
            x, y = (padded[a] for a in args)
            total = new.add(MAP, (x, y), x.shape, n.dtype, n.data, n.line)
            made[n.number] = new.add(VIEW, (total,), n.shape, n.dtype, args[0].data, n.line)
            padded[made[n.number]] = total
        elif n.kind is not INPUT:
            made[n.number] = new.add(n.kind, args, n.shape, n.dtype, n.data, n.line)
    new.outputs = [made[o.number] for o in graph.outputs]
    return new


def _are_alike(n: Node, args: list[Node], padded: dict[Node, Node]) -> bool:
    """Return whether two arrays are equal views of paddings of one shape."""
    if not all(a in padded and (a.shape, a.dtype) == (n.shape, n.dtype) for a in args):
        return False
    x, y = args
    return x.data == y.data and padded[x].shape == padded[y].shape


def _find_spacing(n: Node) -> Spacing | None:
    """Return where a node writes its argument; None unless that is a range with a step along each axis, in order."""
    x, view, units = n.args[0], n.data, compute_strides(n.shape)
    starts = [int(i) for i in np.unravel_index(view.offset, n.shape)] if n.size else []
    lengths, steps, axis = [1] * len(units), [1] * len(units), 0
    for length, stride in zip(x.shape, view.strides, strict=True):
        if length == 1:
            continue
        while axis < len(units) and not _fits(n.shape[axis], starts[axis], length, stride, units[axis]):
            axis += 1
        if axis == len(units):
            return None
        lengths[axis], steps[axis] = length, stride // units[axis]
        axis += 1
    is_narrow = bool(units) and steps[-1] <= MAX_STEP
    return Spacing(tuple(starts), tuple(lengths), tuple(steps)) if x.size and is_narrow else None


def _fits(whole: int, start: int, length: int, stride: int, unit: int) -> bool:
    return stride > 0 and stride % unit == 0 and start + (length - 1) * (stride // unit) < whole


def _pad(g: Graph, n: Node, x: Node, spacing: Spacing) -> Node:
    """Return the padding, in which an axis with a step is two axes: of groups, and of the elements of a group."""
    shape: list[int] = []
    block: list[int] = []
    start: list[int] = []
    for whole, first, length, step in zip(n.shape, *spacing, strict=True):
        shape += [whole] if step == 1 else [-(-whole // step), step]
        block += [length] if step == 1 else [length, 1]
        start += [first] if step == 1 else [first // step, first % step]
    return g.add(PIECES, (reshape(g, x, tuple(block)),), tuple(shape), n.dtype, Pieces((tuple(start),), 0.0), n.line)


def _view(g: Graph, n: Node, x: Node, steps: Shape, padded: dict[Node, Node]) -> Node:
    """Return a padding seen in the shape of the node, without the elements by which groups exceed it."""
    units, strides = iter(compute_strides(x.shape)), []
    for step in steps:
        unit = next(units)
        strides.append(unit if step == 1 else next(units))
    v = g.add(VIEW, (x,), n.shape, n.dtype, View(0, tuple(strides)), n.line)
    padded[v] = x
    return v
