"""Write elements at regular strides of zeros as a padding of an array with more axes: the gradient of ``x[::2]``.

Along an axis with a step of n, the array is seen as one of n columns, in one of which the elements are.  Paddings of
the same kind are added up before they are seen in their own shape, so that they can be merged: the gradient of
``x[::2] * x[1::2]`` is one array of two columns, and neither is added to zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, Pieces, Shape, compute_strides, reshape
from pullback.compiler.ir.kinds import INPUT, MAP, PIECES, SPACED

MAX_STEP = 9  # of the last axis: as many columns


class Spacing(NamedTuple):
    """Where the elements of an array are in a larger one, by axis of the larger one."""

    starts: Shape
    lengths: Shape
    steps: Shape

    def find_column(self) -> Shape:
        """Return the column that the elements are in: along each axis their start modulo the step."""
        return tuple(start % step for start, step in zip(self.starts, self.steps, strict=True))


def pad_spaced(graph: Graph) -> Graph:
    """Return an equivalent graph in which elements at strides of zeros are paddings, where several columns are made."""
    found = _find_columns(graph)
    if not found:
        return graph
    new, new_nodes = graph.copy_inputs()
    padded: dict[int, Node] = {}  # by number: the padding, or sum of paddings, that a node is another shape of

    def find(a: Node) -> Node:
        if a.number not in new_nodes:
            new_nodes[a.number] = reshape(new, padded[a.number], a.shape)
        return new_nodes[a.number]

    for n in graph.nodes:
        if n.number in found:
            padded[n.number] = _pad(new, n, find(n.args[0]), found[n.number])
        elif n.kind is MAP and n.data[0].kernel is np.add and _adds_equal_paddings(n, padded):
            x, y = (padded[a.number] for a in n.args)
            padded[n.number] = new.add(MAP, (x, y), x.shape, n.dtype, n.data, n.line)
        elif n.kind is not INPUT:
            new_nodes[n.number] = new.copy_node(n, [find(a) for a in n.args])
    new.outputs = [find(o) for o in graph.outputs]
    return new


def _find_columns(graph: Graph) -> dict[int, Spacing]:
    """Return the spacing of each SPACED node that has others beside it: nodes with the same steps and other columns."""
    found = {n: spacing for n in graph.nodes if n.kind is SPACED and (spacing := _find_spacing(n)) is not None}
    columns: dict[tuple[Shape, Shape], set[Shape]] = {}
    for n, spacing in found.items():
        columns.setdefault((n.shape, spacing.steps), set()).add(spacing.find_column())
    return {n.number: spacing for n, spacing in found.items() if len(columns[n.shape, spacing.steps]) > 1}


def _adds_equal_paddings(n: Node, padded: dict[int, Node]) -> bool:
    """Return whether both operands of a sum are reshaped paddings, and the paddings have the same shape."""
    x, y = n.args
    if not all(a.number in padded and (a.shape, a.dtype) == (n.shape, n.dtype) for a in n.args):
        return False
    return padded[x.number].shape == padded[y.number].shape


def _find_spacing(n: Node) -> Spacing | None:
    """Return where a node writes its argument; None unless each axis is a range whose step divides its length."""
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
    divides = all(whole % step == 0 for whole, step in zip(n.shape, steps, strict=True))
    is_narrow = bool(units) and steps[-1] <= MAX_STEP
    return Spacing(tuple(starts), tuple(lengths), tuple(steps)) if x.size and divides and is_narrow else None


def _fits(whole: int, start: int, length: int, stride: int, unit: int) -> bool:
    return stride > 0 and stride % unit == 0 and start + (length - 1) * (stride // unit) < whole


def _pad(g: Graph, n: Node, x: Node, spacing: Spacing) -> Node:
    """Return the padding, in which an axis with a step is two axes: of groups, and of the elements of a group."""
    shape: list[int] = []
    block: list[int] = []
    start: list[int] = []
    for whole, first, length, step in zip(n.shape, *spacing, strict=True):
        shape += [whole] if step == 1 else [whole // step, step]
        block += [length] if step == 1 else [length, 1]
        start += [first] if step == 1 else [first // step, first % step]
    return g.add(PIECES, (reshape(g, x, tuple(block)),), tuple(shape), n.dtype, Pieces((tuple(start),), 0.0), n.line)
