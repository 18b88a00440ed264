"""Compute slices of an elementwise result from slices of its operands, where the whole result is not used.

The gates of a recurrent layer are parts of ``x @ w + b``: each is computed where it is used, and the sum is not stored.
"""

from __future__ import annotations

import numpy as np

from pullback.compiler.ir.graph import Graph, Node, View, compose_views, compute_strides, is_in_order, resolve_view
from pullback.compiler.ir.kinds import CONSTANT, INPUT, MAP, VIEW

__all__ = ["slice_maps"]

MIN_PIECE = 8  # elements that a part has in one piece


def slice_maps(graph: Graph) -> Graph:
    """Return an equivalent graph in which slices of elementwise results are computed from slices."""
    sliced = _find_sliced(graph)
    if not sliced:
        return graph
    new, made = graph.copy_inputs()
    for n in graph.nodes:
        if n.kind is VIEW and n.args[0].number in sliced:
            made[n.number] = _slice(new, n, n.args[0], made)
        elif n.kind is not INPUT and n.number not in sliced:
            args = [made[a.number] for a in n.args]
            made[n.number] = new.add(n.kind, args, n.shape, n.dtype, n.data, n.line)
    new.outputs = [made[o.number] for o in graph.outputs]
    return new


def _find_sliced(graph: Graph) -> set[int]:
    """Return the numbers of the elementwise nodes of which only slices are used, each once."""
    if not any(n.kind is VIEW and n.args[0].kind is MAP for n in graph.nodes):
        return set()
    users, wanted = graph.users(), {o.number for o in graph.outputs}
    found: set[int] = set()
    for n in reversed(graph.nodes):
        views = users[n.number]
        if n.kind is not MAP or n.number in wanted or len(views) < 2 or sum(v.size for v in views) > n.size:
            continue
        if _reads_stored(n) and all(_is_slice(v, n, users[v.number]) and v.number not in wanted for v in views):
            found.add(n.number)
    return found


def _is_slice(v: Node, n: Node, users: list[Node]) -> bool:
    """Return whether a node is a slice of another, in whole rows, that one loop can compute from its operands."""
    if v.kind is not VIEW or not v.shape or v.data.strides[-1] != 1 or v.shape[-1] < MIN_PIECE:
        return False
    if not users or not all(u.kind.fuses and u.kind.is_elementwise for u in users):
        return False
    return min(v.data.strides) > 0 and all(_find_view(v, n, a) is not None for a in n.args)


def _find_view(v: Node, n: Node, a: Node) -> View | None:
    """Return the view of an operand of ``n`` from which the slice ``v`` of it is computed; None if there is none."""
    if a.shape == n.shape:
        return v.data if a.kind is not VIEW else compose_views(v.shape, v.data, a)
    units = compute_strides(n.shape)
    start = [int(i) for i in np.unravel_index(v.data.offset, n.shape)]
    ends = list(start)
    _, offset, own = resolve_view(a)
    steps = [0] * (len(n.shape) - len(a.shape)) + [
        0 if length == 1 else step for length, step in zip(a.shape, own, strict=True)
    ]
    strides = []
    for length, step in zip(v.shape, v.data.strides, strict=True):
        axis = next(k for k, unit in enumerate(units) if step % unit == 0 and n.shape[k] > 1) if length > 1 else 0
        ends[axis] += (length - 1) * (step // units[axis])
        strides.append(step // units[axis] * steps[axis] if length > 1 else 0)
    if any(end >= length for end, length in zip(ends, n.shape, strict=True)):
        return None
    return View(offset + sum(i * s for i, s in zip(start, steps, strict=True)), tuple(strides))


def _slice(g: Graph, v: Node, n: Node, made: dict[int, Node]) -> Node:
    """Return a slice of an elementwise node, computed from slices of its operands."""
    args = []
    for a in n.args:
        view = _find_view(v, n, a)
        assert view is not None
        base = made[resolve_view(a)[0].number]
        same = a.size == 1 and a.kind is CONSTANT
        same = same or (base.shape == v.shape and is_in_order(v.shape, view))
        args.append(base if same else g.add(VIEW, (base,), v.shape, a.dtype, view, v.line))
    return g.add(MAP, args, v.shape, n.dtype, n.data, v.line)


def _reads_stored(n: Node) -> bool:
    """Return whether all arguments of a node are in memory, so that computing it in parts repeats nothing."""
    return all(a.kind is VIEW or not a.kind.fuses for a in n.args)
