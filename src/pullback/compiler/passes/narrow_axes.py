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
    reshape,
    resolve_view,
    take_view,
)
from pullback.compiler.ir.kinds import FOLD, INPUT, PIECES, VIEW
from pullback.compiler.passes.stack import MIN_LONG, is_stackable, list_columns

MAX_NARROW = 4  # elements of a narrow axis: the code of a kernel is written for each of them
MAX_OF_PAIRS = 7  # the same of pairs of points, which need no memory if they are split
FILLS_REGISTER = 4  # elements of a narrow axis from which on rows are computed one by one without much loss
MIN_RATIO = 8  # of the elements of an array of pairs to those of its operands
# Reductions that can be computed from the parts of an array, and the functions that combine these.
COMBINED = {np.sum: np.add, np.max: np.maximum, np.min: np.minimum}


def split_narrow_axes(graph: Graph) -> Graph:
    """Return an equivalent graph in which arrays with narrow last axes are split where that is quicker."""
    split = _find_split(graph)
    reduced = {n.number for n in graph.nodes if _reduces_narrow(n)}
    return _AxisSplitter(graph, split, reduced).run() if split or reduced else graph


def _find_split(graph: Graph) -> set[int]:
    """Return the numbers of narrow nodes that one loop over all elements cannot compute.

    These are pairs, stacks, what is reduced, and what has an operand that is constant along some axes; with all that is
    computed from them element by element.
    """
    users, found = graph.find_users(), set[int]()
    for n in graph.nodes:
        is_stack = is_stackable(n, users[n.number])
        if not (n.kind.is_elementwise or is_stack) or not _has_narrow_axis(n, MAX_OF_PAIRS):
            continue
        follows = any(a.number in found and a.shape == n.shape for a in n.args)
        is_pair = not is_stack and all(a.size * MIN_RATIO <= n.size for a in n.args)
        gains = is_stack or any(map(_reduces_narrow, users[n.number])) or _repeats_operand(n)
        if follows or is_pair or (gains and _has_narrow_axis(n)):
            found.add(n.number)
    return found


def _has_narrow_axis(n: Node, most: int = MAX_NARROW) -> bool:
    return len(n.shape) > 1 and 1 < n.shape[-1] <= most and n.shape[-2] >= MIN_LONG and n.dtype.itemsize >= 4


def _reduces_narrow(n: Node) -> bool:
    """Return whether a node reduces an array over its narrow axis, or over others if that axis fills no register."""
    if not _is_reduction(n) or not _has_narrow_axis(n.args[0]):
        return False
    shape, axes = n.args[0].shape, n.data.axes
    return len(axes) < len(shape) and (len(shape) - 1 in axes or shape[-1] < FILLS_REGISTER)


def _is_reduction(n: Node) -> bool:
    return n.kind is FOLD and n.data.op.kernel in COMBINED and n.dtype == n.args[0].dtype


def _repeats_operand(n: Node) -> bool:
    """Return whether an operand is constant along the narrow axis, or along others if that axis fills no register."""
    is_short = n.shape[-1] < FILLS_REGISTER
    return any(a.size > 1 and (_is_spread(a) or (is_short and a.size < n.size)) for a in n.args)


def _is_spread(a: Node) -> bool:
    """Return whether an array, and no number, is constant along its last axis."""
    return a.shape[-1] == 1 or (a.kind is VIEW and a.data.strides[-1] == 0 and a.args[0].size > 1)


def _picks_place(u: Node, n: Node) -> bool:
    """Return whether a node ``u`` picks one place of the last axis of ``n``."""
    if u.kind is not VIEW or u.shape not in (n.shape[:-1], (*n.shape[:-1], 1)):
        return False
    view: View = u.data
    rank = len(n.shape) - 1
    return view.strides[:rank] == compute_strides(n.shape)[:-1] and 0 <= view.offset < n.shape[-1]


class _AxisSplitter:
    """Copies a graph, with some nodes as one node for each element of their last axis."""

    def __init__(self, graph: Graph, split: set[int], reduced: set[int]) -> None:
        self.old, self.split, self.reduced = graph, split, reduced
        self.new, self.new_nodes = graph.copy_inputs()
        self.parts: dict[int, list[Node]] = {}

    def run(self) -> Graph:
        for n in self.old.nodes:
            if n.number in self.split:
                self.parts[n.number] = self._split(n)
            elif n.kind is not INPUT:
                self.new_nodes[n.number] = self._copy(n)
        self.new.outputs = [self._find_whole(o) for o in self.old.outputs]
        return self.new

    def _copy(self, n: Node) -> Node:
        """Return a node that is not split; a view or a reduction of one that is split is computed from its parts."""
        x = n.args[0] if n.args else n
        parts = self.parts.get(x.number)
        if parts is not None and _picks_place(n, x):
            return reshape(self.new, parts[n.data.offset], n.shape)
        if parts is not None and _is_reduction(n):
            return self._reduce(n, parts)
        if n.number in self.reduced:
            return self._reduce(n, [self._take(x, place, False) for place in range(x.shape[-1])])
        return self.new.copy_node(n, [self._find_whole(a) for a in n.args])

    def _find_whole(self, a: Node) -> Node:
        """Return an array of the new graph, stacked from its parts if it is split."""
        if a.number not in self.new_nodes:
            self.new_nodes[a.number] = self._stack(self.parts[a.number], a.line)
        return self.new_nodes[a.number]

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
            return take_view(self.new, base, x.shape[:-1], View(offset, steps[:-1]), a.line)
        return self._lay_out(base, offset, x.shape[:-1], steps[:-1], a.line)

    def _lay_out(self, base: Node, offset: int, shape: Shape, steps: Shape, line: str) -> Node:
        """Return a view of an array whose last axis is contiguous, copied if necessary."""
        kept = [i for i, (length, step) in enumerate(zip(shape, steps, strict=True)) if length > 1 and step]
        if kept and steps[kept[-1]] != 1:
            short = tuple(shape[i] for i in kept)
            view = take_view(self.new, base, short, View(offset, tuple(steps[i] for i in kept)), line)
            base, offset = self.new.add_op(np.copy, view, line=line), 0
            own = dict(zip(kept, compute_strides(short), strict=True))
            steps = tuple(own.get(i, 0) for i in range(len(shape)))
        return take_view(self.new, base, shape, View(offset, steps), line)

    def _reduce(self, n: Node, parts: list[Node]) -> Node:
        """Return a reduction over the narrow axis, over others, or over both."""
        last = len(n.args[0].shape) - 1
        axes = tuple(axis for axis in n.data.axes if axis != last)

        def fold(x: Node) -> Node:
            shape = tuple(length for axis, length in enumerate(x.shape) if axis not in axes)
            return self.new.add(FOLD, (x,), shape, n.dtype, Fold(n.data.op, axes), n.line) if axes else x

        if last not in n.data.axes:
            return self._stack([fold(x) for x in parts], n.line)
        combine = COMBINED[n.data.op.kernel]
        if combine is np.add:  # the sum of -0 is 0
            parts = [self.new.add_constant(0.0, n.dtype), *parts]
        total = parts[0]
        for x in parts[1:]:
            total = self.new.add_op(combine, total, x, line=n.line)
        return fold(total)

    def _stack(self, parts: list[Node], line: str) -> Node:
        """Return arrays joined along a new last axis."""
        shape = parts[0].shape
        columns = [reshape(self.new, x, (*shape, 1)) for x in parts]
        starts = tuple((0,) * len(shape) + (place,) for place in range(len(parts)))
        return self.new.add(PIECES, columns, (*shape, len(parts)), parts[0].dtype, Pieces(starts, 0.0), line)
