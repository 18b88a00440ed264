"""Merge sums of zero-padded blocks: blocks that do not overlap become one array.

The gradient of ``x[0]``, ``x[1]``, … is such a sum, of as many arrays of the size of ``x``; that of ``x[0:5]``,
``x[1:6]``, … becomes a sum of five.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import MAP, PIECES

__all__ = ["PaddedSum", "find_padded_sums"]

Block = tuple[Node, tuple[int, ...]]  # an array, and where it begins


class PaddedSum(NamedTuple):
    """A sum of arrays, each with blocks that do not overlap, and of other arrays."""

    groups: list[list[Block]]
    others: list[Node]


def find_padded_sums(graph: Graph) -> dict[int, PaddedSum]:
    """Return the sums that can be merged, by the number of their last addition."""
    users = graph.users()
    outputs = {o.number for o in graph.outputs}
    inner: set[int] = set()  # additions that are part of a longer sum
    found: dict[int, PaddedSum] = {}
    for n in reversed(graph.nodes):
        if n.number in inner or not _is_sum(n):
            continue
        leaves, sums = _collect_terms(n, users, outputs)
        inner.update(sums)
        padded, others = _split_terms(leaves)
        # pieces without elements are left out
        placed = [block for p in padded for block in _place_blocks(p)]
        if len(padded) > 1 and placed:
            groups = _group_blocks(placed)
            if len(groups) < len(padded):
                found[n.number] = PaddedSum(groups, others)
    return found


def _is_sum(n: Node) -> bool:
    adds = n.kind is MAP and n.data[0].kernel is np.add and n.dtype.kind == "f"
    return adds and all(a.shape == n.shape and a.dtype == n.dtype for a in n.args)


def _is_padded(n: Node) -> bool:
    """Return whether ``n`` is the sum of its blocks: it is zero elsewhere, and no block overlaps another."""
    if n.kind is not PIECES or not n.shape or n.data.fill != 0.0 or np.signbit(n.data.fill):
        return False
    return len(n.args) < 2 or len(_group_blocks(_place_blocks(n))) == 1


def _place_blocks(n: Node) -> list[Block]:
    return list(zip(n.args, n.data.starts, strict=True))


def _collect_terms(root: Node, users: dict[int, list[Node]], outputs: set[int]) -> tuple[list[Node], list[int]]:
    """Return the terms of a sum, and the numbers of the additions that are used by it alone."""
    leaves: list[Node] = []
    sums: list[int] = []
    todo = list(reversed(root.args))
    while todo:
        n = todo.pop()
        if _is_sum(n) and len(users[n.number]) == 1 and n.number not in outputs:
            sums.append(n.number)
            todo.extend(reversed(n.args))
        else:
            leaves.append(n)
    return leaves, sums


def _split_terms(leaves: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the terms of a sum that are sums of blocks, and the other ones."""
    padded: list[Node] = []
    others: list[Node] = []
    for leaf in leaves:
        (padded if _is_padded(leaf) else others).append(leaf)
    return padded, others


def _group_blocks(placed: list[Block]) -> list[list[Block]]:
    """Return blocks in as few groups as possible, each of blocks that follow each other along some axis."""
    return min((_group_along(placed, axis) for axis in range(len(placed[0][1]))), key=len)


def _group_along(placed: list[Block], axis: int) -> list[list[Block]]:
    groups: list[list[Block]] = []
    ends: list[tuple[int, int]] = []  # a heap of where the last block of each group ends, and its number
    for a, start in sorted(placed, key=lambda block: block[1][axis]):
        begin = start[axis]
        if ends and ends[0][0] <= begin:
            _, number = heappop(ends)
        else:
            number = len(groups)
            groups.append([])
        groups[number].append((a, start))
        heappush(ends, (begin + a.shape[axis], number))
    return groups
