"""Place values in memory by lifetime: in the arena, and in results that are not written yet.

A result is memory that the caller gets in the end; until it is written, values that are gone by then may lie in it.  A
value may also take the very place of one that is read for the last time where it is made, element by element.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from pullback.compiler.target import ALIGN
from pullback.errors import CompileError

__all__ = ["Layout", "Place", "Value", "place_apart", "place_values", "round_up", "verify"]

ARENA = -1
PLACED_BY_SIZE = 64  # values that are placed first, from large to small; the others follow in the order of time
MAX_TRIED_RESULTS = 32  # results whose memory is tried for a temporary


class Value(NamedTuple):
    """Memory that is needed from the step that writes it to the last one that reads it."""

    key: Hashable
    size: int
    first: int
    last: int


class Place(NamedTuple):
    """An offset in the arena or in the array of a slot, there from the first cache line on if ``lined``."""

    slot: int
    offset: int
    lined: bool = True


class Layout(NamedTuple):
    """The places of all values, and the size of the arena."""

    places: dict[Hashable, Place]
    arena: int
    blocks: list[tuple[int, int]]  # of an arena whose values lie apart: where each begins, and its size


class Region:
    """Memory in which places are taken, each from one step to another.

    A few are taken in any order (``reserve``), then many in the order of their first steps (``take``): for these the
    few gaps are kept that there are at the time.
    """

    def __init__(self, size: float, until: float) -> None:
        self.size, self.until = size, until
        self.reserved: list[tuple[int, int, int, int]] = []  # offset, end, first and last step
        self.gaps: list[tuple[int, float]] = [(0, size)]  # offset, end
        self.taken: list[tuple[int, int, int]] = []  # a heap of last step, offset, end

    def offset(self, v: Value) -> int | None:
        """Return the offset of the first gap that is large enough for a value during its lifetime."""
        for start, stop in self.gaps:
            if stop - start >= v.size:
                at = start
                for offset, end, first, last in self.reserved:
                    if end > at and first <= v.last and v.first <= last:
                        if offset - at >= v.size:
                            break
                        at = end
                if at + v.size <= stop:
                    return at
        return None

    def reserve(self, v: Value, offset: int) -> None:
        insort(self.reserved, (offset, offset + round_up(v.size), v.first, v.last))

    def take(self, v: Value, offset: int) -> None:
        end = offset + round_up(v.size)
        at = bisect_right(self.gaps, (offset, inf)) - 1
        start, stop = self.gaps[at]
        self.gaps[at : at + 1] = [(a, b) for a, b in ((start, offset), (end, stop)) if a < b]
        heappush(self.taken, (v.last, offset, end))

    def forget(self, step: int) -> None:
        """Forget what is not needed from a step on."""
        while self.taken and self.taken[0][0] < step:
            _, start, stop = heappop(self.taken)
            self._free(start, stop)

    def _free(self, start: int, stop: float) -> None:
        """Add a gap, merged with those beside it."""
        at = bisect_right(self.gaps, (start, inf))
        stop = min(stop, self.size)
        first, last = at, at
        if at and self.gaps[at - 1][1] == start:
            first, start = at - 1, self.gaps[at - 1][0]
        if at < len(self.gaps) and self.gaps[at][0] == stop:
            last, stop = at + 1, self.gaps[at][1]
        self.gaps[first:last] = [(start, stop)]


def round_up(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


def merge_overwritten(
    values: Iterable[Value], over: dict[Hashable, Hashable], results: dict[Hashable, Value]
) -> tuple[list[Value], dict[Hashable, Hashable]]:
    """Return values that are written over each other as one, and for each value the one whose place it has."""
    whose: dict[Hashable, Hashable] = {}
    found: dict[Hashable, Value] = {}
    for v in sorted((*values, *results.values()), key=lambda v: v.first):
        root = whose.get(over.get(v.key), v.key) if v.key in over else v.key
        whose[v.key] = root
        before = found.get(root, v)
        found[root] = before._replace(size=max(before.size, v.size), last=max(before.last, v.last))
    return list(found.values()), whose


def place_values(
    values: list[Value], over: dict[Hashable, Hashable], results: dict[Hashable, tuple[int, Value]]
) -> Layout:
    """Return places for values, some of which are written over others (``over``) or are results."""
    groups, whose = merge_overwritten(values, over, {k: v for k, (_, v) in results.items()})
    by_root = {g.key: g for g in groups}
    homes = {whose[k]: (slot, v) for k, (slot, v) in results.items()}
    arena = Region(inf, inf)
    # a result is free until it is written, or what it is written over
    hosts = {slot: Region(v.size - ALIGN + 1, by_root[root].first) for root, (slot, v) in homes.items()}
    largest = sorted(hosts.items(), key=lambda host: -host[1].size)[:MAX_TRIED_RESULTS]
    regions = [*sorted(largest, key=lambda host: host[1].size), (ARENA, arena)]
    free = sorted((g for g in groups if g.key not in homes), key=lambda g: (-g.size, g.first))
    found = {root: Place(slot, 0, False) for root, (slot, _) in homes.items()}
    for g in free[:PLACED_BY_SIZE]:
        region, found[g.key] = _find_place(g, regions)
        region.reserve(g, found[g.key].offset)
    for g in sorted(free[PLACED_BY_SIZE:], key=lambda g: g.first):
        for _, region in regions:
            region.forget(g.first)
        region, found[g.key] = _find_place(g, regions)
        region.take(g, found[g.key].offset)
    length = max((found[g.key].offset + round_up(g.size) for g in free if found[g.key].slot == ARENA), default=0)
    return Layout({k: found[root] for k, root in whose.items()}, length, [])


def _find_place(g: Value, regions: list[tuple[int, Region]]) -> tuple[Region, Place]:
    """Return the first region that a value fits into, and its place there; it fits into the arena, the last one."""
    for slot, region in regions:
        if g.last < region.until:
            offset = region.offset(g)
            if offset is not None:
                return region, Place(slot, offset)
    raise AssertionError("the arena has no end")


def place_apart(
    values: list[Value], over: dict[Hashable, Hashable], results: dict[Hashable, tuple[int, Value]]
) -> Layout:
    """Return places at the end of separate pages, with a page between them, for tests with guard pages."""
    groups, whose = merge_overwritten(values, over, {k: v for k, (_, v) in results.items()})
    homes = {whose[k]: slot for k, (slot, _) in results.items()}
    found, blocks, at = {}, [], 0
    for g in groups:
        if g.key in homes:
            found[g.key] = Place(homes[g.key], 0, False)
            continue
        end = at + -(-round_up(g.size) // mmap.PAGESIZE) * mmap.PAGESIZE
        found[g.key] = Place(ARENA, end - round_up(g.size))
        blocks.append((end - round_up(g.size), g.size))
        at = end + mmap.PAGESIZE
    return Layout({k: found[root] for k, root in whose.items()}, at, blocks)


def verify(layout: Layout, values: Iterable[Value], over: dict[Hashable, Hashable]) -> None:
    """Raise CompileError if a value is written over another one that is still needed."""
    open_: list[tuple[Place, Value]] = []
    for place, v in sorted(((layout.places[v.key], v) for v in values if v.size), key=lambda pair: pair[0]):
        open_ = [(r, o) for r, o in open_ if r.slot == place.slot and (r.offset + o.size > place.offset or not r.lined)]
        for r, o in open_:
            early, late = sorted((o, v), key=lambda v: v.first)
            same = r == place and over.get(late.key) == early.key and early.last == late.first
            if late.first <= early.last and not same:
                raise CompileError(f"the value {late.key} is written over {early.key}, which is needed.")
        open_.append((place, v))
