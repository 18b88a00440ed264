"""Join arrays along a narrow last axis by shuffled vectors, as the gradient of ``x[:, 0] * x[:, 1]`` does.

Pieces of one column each are read element by element.  As a stack of arrays without the narrow axis, they are computed
by vectors along the axis before it, in the kernel that computes their elements.
"""

from __future__ import annotations

from pullback.compiler.ir.graph import Graph, Node, Pieces, View, compute_strides, reshape, resolve_view
from pullback.compiler.ir.kinds import PIECES, STACK, VIEW

MAX_STACKED = 9  # elements of the narrow axis: vectors that are shuffled into each other
MIN_LONG = 16  # elements of the axis before it, along which vectors go: at least one vector


def stack_pieces(graph: Graph) -> Graph:
    """Return an equivalent graph in which pieces of single columns are stacked."""
    users = graph.find_users()
    chosen = {n.number for n in graph.nodes if is_stackable(n, users[n.number])}
    if not chosen:
        return graph
    return graph.rewrite(lambda g, n, args: (
        g.add(STACK, list_columns(g, n, args), n.shape, n.dtype, None, n.line) if n.number in chosen else None
    ))  # fmt: skip


def is_stackable(n: Node, users: list[Node]) -> bool:
    """Return whether an array is made of pieces of single columns of a narrow last axis.

    What elementwise nodes use, and has pieces in no more than half of its columns, is cheaper to read as pieces.
    """
    if n.kind is not PIECES or len(n.shape) < 2 or n.dtype.itemsize < 4:
        return False
    if n.shape[-1] > MAX_STACKED or n.shape[-2] < MIN_LONG or any(a.shape[-1] != 1 for a in n.args):
        return False
    columns = len({start[-1] for start in n.data.starts})
    return n.shape[-1] > 1 and (2 * columns > n.shape[-1] or not any(u.kind.is_elementwise for u in users))


def list_columns(g: Graph, n: Node, args: list[Node]) -> list[Node]:
    """Return the columns of an array of pieces: each is one of them, or made of several, or the fill value."""
    shape = n.shape[:-1]
    columns: list[list[tuple[Node, tuple[int, ...]]]] = [[] for _ in range(n.shape[-1])]
    for a, start in zip(args, n.data.starts, strict=True):
        columns[start[-1]].append((_drop_last(g, a), start[:-1]))
    parts = []
    for column in columns:
        if not column:
            number = g.add_constant(n.data.fill, n.dtype)
            parts.append(g.add(VIEW, (number,), shape, n.dtype, View(0, (0,) * len(shape)), n.line))
        elif column[-1][0].shape == shape:  # it covers those before it
            parts.append(column[-1][0])
        else:
            data = Pieces(tuple(start for _, start in column), n.data.fill)
            parts.append(g.add(PIECES, [a for a, _ in column], shape, n.dtype, data, n.line))
    return parts


def _drop_last(g: Graph, a: Node) -> Node:
    """Return an array without its last axis, which has one element."""
    base, offset, strides = resolve_view(a)
    if offset == 0 and base.size == a.size and strides[:-1] == compute_strides(a.shape)[:-1]:
        return reshape(g, base, a.shape[:-1])
    return g.add(VIEW, (base,), a.shape[:-1], a.dtype, View(offset, strides[:-1]), a.line)
