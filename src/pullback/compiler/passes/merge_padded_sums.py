"""Merge sums of arrays that are zero outside of blocks which do not overlap: one array with all blocks.

The gradient of ``x[0]``, ``x[1]``, … is such a sum, of as many arrays of the size of ``x``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import MAP, PIECES

__all__ = ["PaddedSum", "find_padded_sums"]


class PaddedSum(NamedTuple):
    """A sum of blocks that do not overlap, and of at most one other array."""

    pieces: list[tuple[Node, tuple[int, ...]]]  # what lies where
    other: Node | None


def find_padded_sums(graph: Graph) -> dict[int, PaddedSum]:
    """Return the sums that can be merged, by the number of their last addition."""
    users = graph.users()
    asked = {o.number for o in graph.outputs}
    inner: set[int] = set()  # additions that are a part of a longer sum
    found: dict[int, PaddedSum] = {}
    for n in reversed(graph.nodes):
        if n.number in inner or not _is_sum(n):
            continue
        leaves, sums = _collect_terms(n, users, asked)
        pieces = [leaf for leaf in leaves if _is_padded(leaf)]
        if not pieces:  # nor are there any in a part of this sum
            inner.update(sums)
            continue
        others = [leaf for leaf in leaves if not _is_padded(leaf)]
        placed = [(a, start) for p in pieces for a, start in zip(p.args, p.data.starts, strict=True)]
        # pieces without elements are left out
        if len(pieces) > 1 and len(others) < 2 and placed and _are_apart(placed):
            inner.update(sums)
            found[n.number] = PaddedSum(placed, others[0] if others else None)
    return found


def _is_sum(n: Node) -> bool:
    adds = n.kind is MAP and n.data[0].kernel is np.add and n.dtype.kind == "f"
    return adds and all(a.shape == n.shape and a.dtype == n.dtype for a in n.args)


def _is_padded(n: Node) -> bool:
    return n.kind is PIECES and n.data.fill == 0.0 and not np.signbit(n.data.fill)


def _collect_terms(root: Node, users: dict[int, list[Node]], asked: set[int]) -> tuple[list[Node], list[int]]:
    """Return the terms of a sum, and the numbers of the additions that are used by it alone."""
    leaves: list[Node] = []
    sums: list[int] = []
    todo = list(reversed(root.args))
    while todo:
        n = todo.pop()
        if _is_sum(n) and len(users[n.number]) == 1 and n.number not in asked:
            sums.append(n.number)
            todo.extend(reversed(n.args))
        else:
            leaves.append(n)
    return leaves, sums


def _are_apart(placed: list[tuple[Node, tuple[int, ...]]]) -> bool:
    """Return whether no two blocks overlap: they follow each other along some axis."""
    for axis in range(len(placed[0][1])):
        spans = sorted((start[axis], start[axis] + a.shape[axis]) for a, start in placed)
        if all(end <= begin for (_, end), (begin, _) in pairwise(spans)):
            return True
    return False
