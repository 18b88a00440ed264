"""Rewrite concatenations and paddings of sums, differences and multiples, which would have to be stored.

A piece of a concatenation or padding is read from memory.  ``pad(x[1:] - x[:-1])`` becomes the difference of two
paddings, ``pad(2 * x)`` becomes ``2 * pad(x)``: one kernel reads ``x``, and neither difference nor multiple is stored.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, Pieces, View, compose_views, is_number
from pullback.compiler.ir.kinds import INPUT, MAP, PIECES, VIEW

# What one term of a sum or difference is padded with, so that where it is padded the result is the other term, with
# its sign of zero.
NEUTRAL: dict[Any, float] = {np.add: -0.0, np.subtract: 0.0}
MAX_TERMS = 6  # terms of a sum that is separated: each is a load, at an address that may have to be selected


class Piece(NamedTuple):
    """An array of the given graph, or a view of it, and where it begins in the result."""

    base: Node
    view: View | None
    shape: tuple[int, ...]
    start: tuple[int, ...]

    def replace_base(self, x: Node) -> Piece | None:
        """Return the same piece of another array, of the shape of the base; None if it is no view of one array."""
        if x.kind is not VIEW:
            return self._replace(base=x)
        view = x.data if self.view is None else compose_views(self.shape, self.view, x)
        return None if view is None else self._replace(base=x.args[0], view=view)

    def is_apart(self, other: Piece) -> bool:
        """Return whether two pieces do not overlap."""
        ranges = (sorted((p.start[i], p.start[i] + p.shape[i]) for p in (self, other)) for i in range(len(self.shape)))
        return any(a[1] <= b[0] for both in ranges for a, b in pairwise(both))


def separate_pieces(graph: Graph) -> Graph:
    """Return an equivalent graph with the pieces of sums and multiples separated, where no more is stored then."""
    if not any(n.kind is PIECES for n in graph.nodes):
        return graph
    new, new_nodes = graph.copy_inputs()
    writer = PieceWriter(graph, new, new_nodes)
    for n in graph.nodes:
        if n.kind is PIECES and n.dtype.kind == "f":
            new_nodes[n.number] = writer.write(n)
        elif n.kind is not INPUT:
            new_nodes[n.number] = new.copy_node(n, [new_nodes[a.number] for a in n.args])
    new.outputs = [new_nodes[o.number] for o in graph.outputs]
    return new


class PieceWriter:
    """Writes the nodes of pieces of a graph into a new graph.

    ``new_nodes`` has the nodes of the new graph by the numbers of the old ones.
    """

    def __init__(self, graph: Graph, new: Graph, new_nodes: dict[int, Node]) -> None:
        self.new, self.new_nodes = new, new_nodes
        self.users, self.wanted = graph.find_users(), {o.number for o in graph.outputs}

    def write(self, n: Node) -> Node:
        pieces = []
        for a, start in zip(n.args, n.data.starts, strict=True):
            base, view = (a.args[0], a.data) if a.kind is VIEW else (a, None)
            pieces.append(Piece(base, view, a.shape, start))
        return self._join(n, pieces, n.data.fill)

    def _join(self, n: Node, pieces: list[Piece], fill: float) -> Node:
        """Return the pieces joined to the shape of ``n``, in the form that stores least."""
        if len(pieces) == 1 and (found := self._scale_after(n, pieces[0], fill)) is not None:
            return found
        for i, piece in enumerate(pieces):
            if self._is_separable(n, piece, pieces):
                return self._add_after(n, pieces, i, fill)
        args = [self._copy(n, piece) for piece in pieces]
        return self.new.add(PIECES, args, n.shape, n.dtype, Pieces(tuple(p.start for p in pieces), fill), n.line)

    def _copy(self, n: Node, piece: Piece) -> Node:
        base = self.new_nodes[piece.base.number]
        return base if piece.view is None else self.new.add(VIEW, (base,), piece.shape, base.dtype, piece.view, n.line)

    def _scale_after(self, n: Node, piece: Piece, fill: float) -> Node | None:
        """Return a zero-padded multiple of an array as a multiple of the zero-padded array; None if it is none.

        The gradient of a sum of shifted multiples is then a loop over one array, not over an array for each multiple.
        """
        m = piece.base
        factor = _find_factor(m)
        if fill != 0.0 or not factor:
            return None
        (source,) = (a for a in m.args if not is_number(a))
        is_free = self._is_multiple(source) or (piece.view is None and self._is_alone(m))
        inner = piece.replace_base(source) if is_free and source.shape == m.shape else None
        if inner is None:
            return None
        fill = np.copysign(0.0, factor * np.copysign(1.0, fill)).item()  # whose multiple is the fill value
        padded = self._join(n, [inner], fill)
        args = [self.new_nodes[a.number] if is_number(a) else padded for a in m.args]
        return self.new.add(MAP, args, n.shape, n.dtype, m.data, n.line)

    def _is_separable(self, n: Node, piece: Piece, pieces: list[Piece]) -> bool:
        """Return whether a piece is most of the result, and a sum of few arrays, nearly all of them in memory."""
        if 2 * piece.base.size < n.size or piece.view is not None or not self._is_sum(piece.base):
            return False
        terms = self._list_terms(piece.base)
        stored = sum(not self._is_in_memory(t) for t in terms)
        return len(terms) <= MAX_TERMS and stored <= 1 and all(p is piece or p.is_apart(piece) for p in pieces)

    def _add_after(self, n: Node, pieces: list[Piece], i: int, fill: float) -> Node:
        """Return pieces of which one is a sum or difference as one of two joined arrays."""
        op = pieces[i].base.data
        x, y = (pieces[i].replace_base(a) for a in pieces[i].base.args)
        assert x is not None  # a whole array can be replaced by any other
        assert y is not None
        left = self._join(n, [*pieces[:i], x, *pieces[i + 1 :]], fill)
        right = self._join(n, [y], NEUTRAL[op[0].kernel])
        return self.new.add(MAP, (left, right), n.shape, n.dtype, op, n.line)

    def _is_sum(self, m: Node) -> bool:
        """Return whether a node is a sum or difference of two arrays, and used only here."""
        if m.kind is not MAP or m.data[0].kernel not in NEUTRAL or not self._is_alone(m):
            return False
        return all(a.shape == m.shape and a.dtype == m.dtype for a in m.args)

    def _list_terms(self, m: Node) -> list[Node]:
        """Return the arrays that a sum of sums and multiples is computed from."""
        if self._is_sum(m):
            return [t for a in m.args for t in self._list_terms(a)]
        if _find_factor(m) and self._is_alone(m):
            return [a for a in m.args if not is_number(a)]
        return [m]

    def _is_alone(self, n: Node) -> bool:
        return len(self.users[n.number]) == 1 and n.number not in self.wanted

    def _is_multiple(self, n: Node) -> bool:
        """Return whether an array is in memory, or a multiple of one that is."""
        while not self._is_in_memory(n) and _find_factor(n):
            (n,) = (a for a in n.args if not is_number(a))
        return self._is_in_memory(n)

    def _is_in_memory(self, n: Node) -> bool:
        return n.kind is VIEW or not n.kind.fuses or n.number in self.wanted


def _find_factor(m: Node) -> float | None:
    """Return the number that a node multiplies an array by, -1 for its negative; None if it is no finite multiple."""
    if m.kind is not MAP or m.data[0].kernel not in (np.negative, np.multiply) or all(map(is_number, m.args)):
        return None
    factors: list[float] = [a.data.item() for a in m.args if is_number(a)] if len(m.args) == 2 else [-1.0]
    return factors[0] if len(factors) == 1 and np.isfinite(factors[0]) else None
