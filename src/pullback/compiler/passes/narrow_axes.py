"""Split arrays of pairs with a narrow last axis: distances between points in space become one loop over pairs.

``x[:, None] - x[None]`` of points has a last axis of two to seven coordinates.  It is computed as that many arrays
without this axis, so that vectors go along the pairs: a sum over the coordinates adds arrays, and a sum over pairs is
done for each coordinate.  This is done where such arrays are computed from smaller ones and are used by sums only.
An array that is stacked along its last axis is split in the same way, and an index of that axis picks one of the parts.
"""

from __future__ import annotations

import numpy as np

from pullback.compiler.ir.graph import Fold, Graph, Node, Pieces, Shape, View, compute_strides, resolve_view
from pullback.compiler.ir.kinds import FOLD, INPUT, MAP, PIECES, VIEW
from pullback.core.tensor import BY_KERNEL

__all__ = ["split_narrow_axes"]

MAX_NARROW = 7  # elements of a narrow axis: fewer than a vector of most CPUs has lanes
MIN_LONG = 16  # elements of the axis before it, along which vectors go
MIN_RATIO = 8  # of the elements of a narrow array to those of its operands


def split_narrow_axes(graph: Graph) -> Graph:
    """Return an equivalent graph in which arrays of pairs with narrow last axes are split."""
    split = _find_split(graph)
    return _Splitter(graph, split).run() if split else graph


def _is_narrow(n: Node) -> bool:
    shape = n.shape
    is_split = n.kind.is_elementwise or _is_stack(n)
    return is_split and len(shape) > 1 and 1 < shape[-1] <= MAX_NARROW and shape[-2] >= MIN_LONG


def _is_stack(n: Node) -> bool:
    """Return whether an array is stacked along its last axis from one array for each place."""
    if n.kind is not PIECES or len(n.args) != n.shape[-1]:
        return False
    places = tuple((*(0,) * (len(n.shape) - 1), place) for place in range(n.shape[-1]))
    pieces: Pieces = n.data
    return pieces.starts == places and all(a.shape == (*n.shape[:-1], 1) for a in n.args)


def _picks_place(u: Node, n: Node) -> bool:
    """Return whether a node ``u`` picks one place of the last axis of ``n``."""
    if u.kind is not VIEW or u.shape != n.shape[:-1]:
        return False
    view: View = u.data
    return view.strides == compute_strides(n.shape)[:-1] and 0 <= view.offset < n.shape[-1]


def _is_sum(n: Node) -> bool:
    return n.kind is FOLD and n.data.op.kernel is np.sum and n.dtype == n.args[0].dtype


def _find_split(graph: Graph) -> set[int]:
    """Return the numbers of the nodes that are split."""
    users, wanted = graph.users(), {o.number for o in graph.outputs}
    found = {n.number for n in graph.nodes if _is_narrow(n) and n.number not in wanted}
    before = -1
    while found and len(found) != before:
        before = len(found)
        found = {number for number in found if _can_split(graph.nodes[number], found, users[number])}
    return {number for group in _join_neighbours(graph, found) if _is_worth_it(graph, group, users) for number in group}


def _can_split(n: Node, found: set[int], users: list[Node]) -> bool:
    """Return whether a node is a stack or computed from small arrays and split nodes, and used only by such nodes."""
    made_of = all(a.number in found or a.size * MIN_RATIO <= n.size or _is_spread(a) for a in n.args)
    if not made_of and n.kind is not PIECES:
        return False
    return all(u.number in found or _is_sum(u) or _picks_place(u, n) for u in users)


def _is_spread(a: Node) -> bool:
    """Return whether an array is constant along its last axis."""
    return a.kind is VIEW and a.data.strides[-1] == 0


def _join_neighbours(graph: Graph, found: set[int]) -> list[set[int]]:
    """Return the nodes in groups that use each other."""
    group: dict[int, set[int]] = {}
    for number in sorted(found):
        near = [group[a.number] for a in graph.nodes[number].args if a.number in group]
        whole = {number}.union(*near)
        group.update(dict.fromkeys(whole, whole))
    return list({id(g): g for g in group.values()}.values())


def _is_worth_it(graph: Graph, group: set[int], users: dict[int, list[Node]]) -> bool:
    """Return whether one of the nodes is stacked, or summed over its narrow axis."""
    nodes = [graph.nodes[number] for number in group]
    if any(n.kind is PIECES for n in nodes):
        return True
    return any(u.kind is FOLD and len(n.shape) - 1 in u.data.axes for n in nodes for u in users[n.number])


class _Splitter:
    """Copies a graph, with some nodes as one node for each element of their last axis."""

    def __init__(self, graph: Graph, split: set[int]) -> None:
        self.old, self.split = graph, split
        self.new, self.made = graph.copy_inputs()
        self.parts: dict[int, list[Node]] = {}

    def run(self) -> Graph:
        new = self.new
        for n in self.old.nodes:
            if n.number in self.split:
                self.parts[n.number] = [self._split(n, place) for place in range(n.shape[-1])]
            elif n.kind is VIEW and n.args[0].number in self.split:
                self.made[n.number] = self.parts[n.args[0].number][n.data.offset]
            elif n.kind is FOLD and n.args[0].number in self.split:
                self.made[n.number] = self._sum(n, self.parts[n.args[0].number])
            elif n.kind is not INPUT:
                args = [self.made[a.number] for a in n.args]
                self.made[n.number] = new.add(n.kind, args, n.shape, n.dtype, n.data, n.line)
        new.outputs = [self.made[o.number] for o in self.old.outputs]
        return new

    def _split(self, n: Node, place: int) -> Node:
        """Return an elementwise node, or a stack, at one place of its last axis."""
        if n.kind is PIECES:
            return self._take(n.args[place], 0)
        args = [self._take(a, place) for a in n.args]
        return self.new.add(n.kind, args, n.shape[:-1], n.dtype, n.data, n.line)

    def _take(self, a: Node, place: int) -> Node:
        if a.number in self.split:
            return self.parts[a.number][place]
        x = self.made[a.number]
        if not x.shape:
            return x
        base, offset, steps = resolve_view(x)
        offset += place * steps[-1] if x.shape[-1] > 1 else 0
        return self._lay_out(base, offset, x.shape[:-1], steps[:-1], a.line)

    def _lay_out(self, base: Node, offset: int, shape: Shape, steps: Shape, line: str) -> Node:
        """Return a view of an array whose last axis is contiguous, copied if necessary."""
        kept = [i for i, (length, step) in enumerate(zip(shape, steps, strict=True)) if length > 1 and step]
        if kept and steps[kept[-1]] != 1:
            short = tuple(shape[i] for i in kept)
            view = self._view(base, short, View(offset, tuple(steps[i] for i in kept)), line)
            base, offset = self.new.add(MAP, (view,), short, base.dtype, (BY_KERNEL[np.copy], {}), line), 0
            own = dict(zip(kept, compute_strides(short), strict=True))
            steps = tuple(own.get(i, 0) for i in range(len(shape)))
        return self._view(base, shape, View(offset, steps), line)

    def _view(self, x: Node, shape: Shape, view: View, line: str) -> Node:
        return self.new.add(VIEW, (x,), shape, x.dtype, view, line)

    def _sum(self, n: Node, parts: list[Node]) -> Node:
        """Return a sum over the narrow axis, over others, or over both."""
        last = len(n.args[0].shape) - 1
        axes = tuple(axis for axis in n.data.axes if axis != last)

        def fold(x: Node) -> Node:
            shape = tuple(length for axis, length in enumerate(x.shape) if axis not in axes)
            return self.new.add(FOLD, (x,), shape, n.dtype, Fold(n.data.op, axes), n.line) if axes else x

        if last not in n.data.axes:
            return self._stack([fold(x) for x in parts], n.line)
        total = self.new.constant(0.0, n.dtype)  # the sum of -0 is 0
        for x in parts:
            total = self.new.add(MAP, (total, x), x.shape, n.dtype, (BY_KERNEL[np.add], {}), n.line)
        return fold(total)

    def _stack(self, parts: list[Node], line: str) -> Node:
        """Return arrays joined along a new last axis."""
        shape = parts[0].shape
        columns = [self._view(x, (*shape, 1), View(0, (*compute_strides(shape), 1)), line) for x in parts]
        starts = tuple((0,) * len(shape) + (place,) for place in range(len(parts)))
        return self.new.add(PIECES, columns, (*shape, len(parts)), parts[0].dtype, Pieces(starts, 0.0), line)
