"""Merge sums of zero-padded blocks: blocks at one place are added up, and those that do not overlap become one array.

The gradient of ``x[0]``, ``x[1]``, … is such a sum, of as many arrays of the size of ``x``; that of ``x[0:5]``,
``x[1:6]``, … becomes a sum of five.  Where a loop uses ``p[0]`` and ``p[1]`` in every step, two numbers are added up
in the steps.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Block, Graph, Node
from pullback.compiler.ir.kinds import MAP, PIECES


class PaddedSum(NamedTuple):
    """A sum of arrays, each with blocks that do not overlap, and of other arrays."""

    groups: list[list[Block]]
    others: list[Node]
    padded: list[Node]  # the terms whose blocks are added up by their places
    absorbed: set[int]  # numbers of additions and padded arrays that nothing else uses
    adds_zeros: bool  # whether zeros around a term make 0 of -0 where all groups have blocks


def find_padded_sums(graph: Graph) -> dict[int, PaddedSum]:
    """Return the sums that can be merged, by the number of their last addition."""
    users = graph.find_users()
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
        places = list(dict.fromkeys(place for p in padded for place in list_blocks(p)))
        if len({p.number for p in padded}) > 1 and places:
            groups = _group_blocks(places)
            if len(groups) < len(padded):
                alone = [p.number for p in padded if len(users[p.number]) == 1 and p.number not in outputs]
                whole = {frozenset(group) for group in groups}
                adds_zeros = any(frozenset(list_blocks(p)) not in whole for p in padded)
                found[n.number] = PaddedSum(groups, others, padded, {*sums, *alone}, adds_zeros)
    return found


def _is_sum(n: Node) -> bool:
    adds = n.kind is MAP and n.data[0].kernel is np.add and n.dtype.kind == "f"
    return adds and all(a.shape == n.shape and a.dtype == n.dtype for a in n.args)


def _is_padded(n: Node) -> bool:
    """Return whether ``n`` is the sum of its blocks: it is zero elsewhere, and no block overlaps another."""
    if n.kind is not PIECES or not n.shape or n.data.fill != 0.0 or np.signbit(n.data.fill):
        return False
    return len(n.args) < 2 or len(_group_blocks(list_blocks(n))) == 1


def list_blocks(n: Node) -> list[Block]:
    """Return the places of the blocks of a padded array."""
    return [Block(start, a.shape) for a, start in zip(n.args, n.data.starts, strict=True)]


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


def _group_blocks(places: list[Block]) -> list[list[Block]]:
    """Return places in as few groups as possible, each of places that follow each other along some axis.

    Of several such axes it is the last one, so that groups have all columns of a narrow axis, which can be stacked.
    """
    return min((_group_along(places, axis) for axis in reversed(range(len(places[0].start)))), key=len)


def _group_along(places: list[Block], axis: int) -> list[list[Block]]:
    groups: list[list[Block]] = []
    ends: list[tuple[int, int]] = []  # a heap of where the last block of each group ends, and its number
    for place in sorted(places, key=lambda place: place.start[axis]):
        begin = place.start[axis]
        if ends and ends[0][0] <= begin:
            _, number = heappop(ends)
        else:
            number = len(groups)
            groups.append([])
        groups[number].append(place)
        heappush(ends, (begin + place.shape[axis], number))
    return groups
