"""Copy a transposed matrix whose rows are reduced and whose elements are used again, as a softmax of ``x.T`` does.

Each row would be read several times with every element in another cache line.  A copy reads each line once.
"""

from __future__ import annotations

from pullback.compiler.ir.graph import Graph, Node, View, compute_strides, is_large_transposed
from pullback.compiler.ir.kinds import FOLD, VIEW


def lay_out_rows(graph: Graph) -> Graph:
    """Return an equivalent graph in which such matrices are copied, which a view of a view implies."""
    chosen = {n.number for n in graph.nodes if is_large_transposed(n)}
    users, wanted = graph.find_users(), {o.number for o in graph.outputs}
    chosen = {number for number in chosen if _is_read_again(graph.nodes[number], users, wanted)}
    if not chosen:
        return graph

    def copy_matrices(g: Graph, n: Node, args: list[Node]) -> Node | None:
        if not n.kind.is_elementwise and n.kind is not FOLD:
            return None
        pairs = zip(args, n.args, strict=True)
        return g.copy_node(n, [_view_whole(g, x) if a.number in chosen else x for x, a in pairs])

    return graph.rewrite(copy_matrices)


def _view_whole(g: Graph, x: Node) -> Node:
    return g.add(VIEW, (x,), x.shape, x.dtype, View(0, compute_strides(x.shape)), x.line)


def _is_read_again(v: Node, users: dict[int, list[Node]], wanted: set[int]) -> bool:
    """Return whether values computed from a matrix are reduced along rows, and others are stored."""
    is_reduced = is_stored = False
    seen, waiting = {v.number}, [v]
    while waiting:
        n = waiting.pop()
        for u in users[n.number]:
            if u.kind is FOLD:
                is_reduced |= len(v.shape) - 1 in u.data.axes and 0 not in u.data.axes
            elif u.kind.is_elementwise and u.shape == v.shape:
                if u.number not in seen:
                    seen.add(u.number)
                    waiting.append(u)
            elif n is not v:
                is_stored = True
        is_stored |= n is not v and n.number in wanted
    return is_reduced and is_stored
