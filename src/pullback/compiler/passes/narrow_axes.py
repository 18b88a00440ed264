"""Split arrays with a narrow last axis: points in space, colours of images, pairs of points.

They are computed as that many arrays without this axis, so that vectors go along the axis before it: a reduction over
the narrow axis combines arrays, one over the others is done for each of them, and an index of that axis picks one.
Their columns are loaded, and stacked again, by whole vectors.  This is done for what one loop over all elements cannot
compute, such as products with a number for each colour, and for pairs: ``x[:, None] - x[None]`` of points.
"""

from __future__ import annotations

import numpy as np

from pullback.compiler.ir.graph import (
    Fold,
    Graph,
    Node,
    Pieces,
    Shape,
    View,
    compute_strides,
    is_in_order,
    reshape,
    resolve_view,
)
from pullback.compiler.ir.kinds import FOLD, INPUT, MAP, PIECES, VIEW
from pullback.compiler.passes.stack import MIN_LONG, is_stackable, list_columns
from pullback.core.tensor import BY_KERNEL

__all__ = ["split_narrow_axes"]

MAX_NARROW = 7  # elements of a narrow axis: fewer than a vector of most CPUs has lanes
# Reductions that can be computed from the parts of an array, and the functions that combine these.
COMBINED = {np.sum: np.add, np.max: np.maximum, np.min: np.minimum}
MIN_RATIO = 8  # of the elements of a narrow array to those of its operands


def split_narrow_axes(graph: Graph) -> Graph:
    """Return an equivalent graph in which arrays of pairs with narrow last axes are split."""
    split = _find_split(graph)
    reduced = {n.number for n in graph.nodes if _reduces_narrow(n)}
    return _Splitter(graph, split, reduced).run() if split or reduced else graph


def _is_narrow(n: Node) -> bool:
    return (n.kind.is_elementwise or is_stackable(n)) and _has_narrow_axis(n)


def _has_narrow_axis(n: Node) -> bool:
    return len(n.shape) > 1 and 1 < n.shape[-1] <= MAX_NARROW and n.shape[-2] >= MIN_LONG and n.dtype.itemsize >= 4


def _reduces_narrow(n: Node) -> bool:
    """Return whether a node reduces an array over its narrow axis, or over others, but not over all."""
    return _is_reduction(n) and _has_narrow_axis(n.args[0]) and len(n.data.axes) < len(n.args[0].shape)


def _picks_place(u: Node, n: Node) -> bool:
    """Return whether a node ``u`` picks one place of the last axis of ``n``."""
    if u.kind is not VIEW or u.shape not in (n.shape[:-1], (*n.shape[:-1], 1)):
        return False
    view: View = u.data
    rank = len(n.shape) - 1
    return view.strides[:rank] == compute_strides(n.shape)[:-1] and 0 <= view.offset < n.shape[-1]


def _is_sum(n: Node) -> bool:
    return _is_reduction(n) and n.data.op.kernel is np.sum


def _is_reduction(n: Node) -> bool:
    return n.kind is FOLD and n.data.op.kernel in COMBINED and n.dtype == n.args[0].dtype


def _find_split(graph: Graph) -> set[int]:
    """Return the numbers of the nodes that are split."""
    return _find_pairs(graph) | _find_uneven(graph)


def _find_uneven(graph: Graph) -> set[int]:
    """Return the numbers of narrow nodes that one loop over all elements cannot compute.

    These are stacks, what is reduced over some axes, and what has an operand that is constant along some; with all that
    is computed from them element by element, or needed by them alone.
    """
    users, found = graph.users(), set[int]()
    for n in graph.nodes:
        follows = any(a.number in found and a.shape == n.shape for a in n.args)
        if _is_narrow(n) and (follows or _is_uneven(n, users[n.number])):
            found.add(n.number)
    for n in reversed(graph.nodes):
        if _is_narrow(n) and _is_needed_alone(n, users[n.number], found):
            found.add(n.number)
    return {number for number in found if graph.nodes[number].kind is not PIECES or users[number]}


def _is_needed_alone(n: Node, users: list[Node], found: set[int]) -> bool:
    """Return whether only nodes that are found, at least one, use a node, besides reductions and views of a column."""
    others = [u for u in users if u.number not in found]
    return len(others) < len(users) and all(_is_reduction(u) or _picks_place(u, n) for u in others)


def _is_uneven(n: Node, users: list[Node]) -> bool:
    """Return whether a node is a stack, or is reduced over some axes, or has an operand that is constant along some."""
    is_repeated = (a.size > 1 and (a.size < n.size or (_is_spread(a) and a.args[0].size > 1)) for a in n.args)
    return is_stackable(n) or any(map(_reduces_narrow, users)) or any(is_repeated)


def _find_pairs(graph: Graph) -> set[int]:
    """Return the numbers of the nodes of pairs, which are computed from smaller arrays and used by sums only."""
    users, wanted = graph.users(), {o.number for o in graph.outputs}
    found = {n.number for n in graph.nodes if _is_narrow(n) and n.number not in wanted and n.kind is not PIECES}
    before = -1
    while found and len(found) != before:
        before = len(found)
        found = {number for number in found if _can_split(graph.nodes[number], found, users[number])}
    return {number for group in _join_neighbours(graph, found) if _is_worth_it(graph, group, users) for number in group}


def _can_split(n: Node, found: set[int], users: list[Node]) -> bool:
    """Return whether a node is computed from small arrays and split nodes, and used only by such nodes and by sums."""
    if not all(a.number in found or a.size * MIN_RATIO <= n.size or _is_spread(a) for a in n.args):
        return False
    return all(u.number in found or _is_sum(u) for u in users)


def _is_spread(a: Node) -> bool:
    """Return whether an array is constant along its last axis."""
    return a.kind is VIEW and a.data.strides[-1:] == (0,)


def _join_neighbours(graph: Graph, found: set[int]) -> list[set[int]]:
    """Return the nodes in groups that use each other."""
    group: dict[int, set[int]] = {}
    for number in sorted(found):
        near = [group[a.number] for a in graph.nodes[number].args if a.number in group]
        whole = {number}.union(*near)
        group.update(dict.fromkeys(whole, whole))
    return list({id(g): g for g in group.values()}.values())


def _is_worth_it(graph: Graph, group: set[int], users: dict[int, list[Node]]) -> bool:
    """Return whether one of the nodes is reduced over its narrow axis."""
    nodes = [graph.nodes[number] for number in group]
    return any(u.kind is FOLD and len(n.shape) - 1 in u.data.axes for n in nodes for u in users[n.number])


class _Splitter:
    """Copies a graph, with some nodes as one node for each element of their last axis."""

    def __init__(self, graph: Graph, split: set[int], reduced: set[int]) -> None:
        self.old, self.split, self.reduced = graph, split, reduced
        self.new, self.made = graph.copy_inputs()
        self.parts: dict[int, list[Node]] = {}

    def run(self) -> Graph:
        new = self.new
        for n in self.old.nodes:
            if n.number in self.split:
                self.parts[n.number] = self._split(n)
            elif n.kind is not INPUT and n.args and n.args[0].number in self.split and _picks_place(n, n.args[0]):
                self.made[n.number] = reshape(new, self.parts[n.args[0].number][n.data.offset], n.shape)
            elif n.args and n.args[0].number in self.split and _is_reduction(n):
                self.made[n.number] = self._reduce(n, self.parts[n.args[0].number])
            elif n.number in self.reduced:
                (x,) = n.args
                self.made[n.number] = self._reduce(n, [self._take(x, place, False) for place in range(x.shape[-1])])
            elif n.kind is not INPUT:
                args = [self._find_whole(a) for a in n.args]
                self.made[n.number] = new.add(n.kind, args, n.shape, n.dtype, n.data, n.line)
        new.outputs = [self._find_whole(o) for o in self.old.outputs]
        return new

    def _find_whole(self, a: Node) -> Node:
        """Return an array of the new graph, stacked from its parts if it is split."""
        if a.number not in self.made:
            self.made[a.number] = self._stack(self.parts[a.number], a.line)
        return self.made[a.number]

    def _split(self, n: Node) -> list[Node]:
        """Return the parts of an elementwise node, or of one that is made of pieces."""
        if n.kind is PIECES:
            return list_columns(self.new, n, [self._find_whole(a) for a in n.args])
        parts = []
        for place in range(n.shape[-1]):
            args = [self._take(a, place, a.size * MIN_RATIO <= n.size) for a in n.args]
            parts.append(self.new.add(n.kind, args, n.shape[:-1], n.dtype, n.data, n.line))
        return parts

    def _take(self, a: Node, place: int, copies: bool) -> Node:
        """Return an array at a place of its last axis; ``copies``: it is small, and copied to be contiguous."""
        if a.number in self.split:
            return self.parts[a.number][place]
        x = self._find_whole(a)
        if not x.shape:
            return x
        base, offset, steps = resolve_view(x)
        offset += place * steps[-1] if x.shape[-1] > 1 else 0
        if not copies:
            return self._view(base, x.shape[:-1], View(offset, steps[:-1]), a.line)
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
        if x.shape == shape and is_in_order(shape, view):
            return x
        return self.new.add(VIEW, (x,), shape, x.dtype, view, line)

    def _reduce(self, n: Node, parts: list[Node]) -> Node:
        """Return a reduction over the narrow axis, over others, or over both."""
        last = len(n.args[0].shape) - 1
        axes = tuple(axis for axis in n.data.axes if axis != last)

        def fold(x: Node) -> Node:
            shape = tuple(length for axis, length in enumerate(x.shape) if axis not in axes)
            return self.new.add(FOLD, (x,), shape, n.dtype, Fold(n.data.op, axes), n.line) if axes else x

        if last not in n.data.axes:
            return self._stack([fold(x) for x in parts], n.line)
        combine = BY_KERNEL[COMBINED[n.data.op.kernel]]
        if combine.kernel is np.add:  # the sum of -0 is 0
            parts = [self.new.constant(0.0, n.dtype), *parts]
        total = parts[0]
        for x in parts[1:]:
            total = self.new.add(MAP, (total, x), x.shape, n.dtype, (combine, {}), n.line)
        return fold(total)

    def _stack(self, parts: list[Node], line: str) -> Node:
        """Return arrays joined along a new last axis."""
        shape = parts[0].shape
        columns = [reshape(self.new, x, (*shape, 1)) for x in parts]
        starts = tuple((0,) * len(shape) + (place,) for place in range(len(parts)))
        return self.new.add(PIECES, columns, (*shape, len(parts)), parts[0].dtype, Pieces(starts, 0.0), line)
