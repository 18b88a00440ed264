"""Place values in memory by lifetime: in the arena, and in results that are not written yet.

The memory of a result belongs to the caller; until the result is written, values whose lifetime has ended by then may
be there.  A value may also take the place of one that is read for the last time by the step that writes it, if that
step works element by element.  ``memory.py`` calls this stage.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from pullback.compiler.target import LINE_BYTES
from pullback.errors import CompileError

ARENA = -1
PLACED_BY_SIZE = 64  # the largest values, which are placed first, by size; the others follow by their first step
MAX_TRIED_RESULTS = 32  # results whose memory is tried for each value


class Allocation(NamedTuple):
    """Memory that is needed from the step that writes it to the last one that reads it."""

    key: Hashable
    size: int
    first: int
    last: int


class MemoryPlace(NamedTuple):
    """An offset in the arena or in the array of a slot; if ``lined``, counted from its first whole cache line."""

    slot: int
    offset: int
    lined: bool = True


class Layout(NamedTuple):
    """The places of all values, and the size of the arena."""

    places: dict[Hashable, MemoryPlace]
    arena: int
    blocks: list[tuple[int, int]]  # offset and size of each value, if they are between guard pages


class Region:
    """Memory in which values are placed, each for the steps of its lifetime.

    A few values are placed in any order (``reserve``), then many in the order of their first steps (``take``): for
    these it is enough to know the gaps at the current step.
    """

    def __init__(self, size: float, until: float) -> None:
        self.size, self.until = size, until
        self.reserved: list[tuple[int, int, int, int]] = []  # offset, end, first and last step
        self.gaps: list[tuple[int, float]] = [(0, size)]  # offset, end
        self.taken: list[tuple[int, int, int]] = []  # a heap of last step, offset, end

    def offset(self, v: Allocation) -> int | None:
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

    def reserve(self, v: Allocation, offset: int) -> None:
        insort(self.reserved, (offset, offset + round_up(v.size), v.first, v.last))

    def take(self, v: Allocation, offset: int) -> None:
        """Place a value in a gap, which has an offset that ``offset`` returned."""
        end = offset + round_up(v.size)
        at = bisect_right(self.gaps, (offset, inf)) - 1
        start, stop = self.gaps[at]
        self.gaps[at : at + 1] = [(a, b) for a, b in ((start, offset), (end, stop)) if a < b]
        heappush(self.taken, (v.last, offset, end))

    def forget(self, step: int) -> None:
        """Free the memory of values whose lifetime ends before a step."""
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
    """Return a number of bytes, rounded up to whole cache lines."""
    return -(-n // LINE_BYTES) * LINE_BYTES


def merge_overwritten(
    values: Iterable[Allocation], over: dict[Hashable, Hashable], results: dict[Hashable, Allocation]
) -> tuple[list[Allocation], dict[Hashable, Hashable]]:
    """Return allocations in which values that overwrite each other are one, and by value the allocation it is in."""
    whose: dict[Hashable, Hashable] = {}
    found: dict[Hashable, Allocation] = {}
    for v in sorted((*values, *results.values()), key=lambda v: v.first):
        root = whose.get(over.get(v.key), v.key) if v.key in over else v.key
        whose[v.key] = root
        before = found.get(root, v)
        found[root] = before._replace(size=max(before.size, v.size), last=max(before.last, v.last))
    return list(found.values()), whose


def place_values(
    values: list[Allocation], over: dict[Hashable, Hashable], results: dict[Hashable, tuple[int, Allocation]]
) -> Layout:
    """Return the places of values; ``over`` maps values to those that they are written over."""
    groups, whose = merge_overwritten(values, over, {k: v for k, (_, v) in results.items()})
    by_root = {g.key: g for g in groups}
    homes = {whose[k]: (slot, v) for k, (slot, v) in results.items()}
    arena = Region(inf, inf)
    # The memory of a result is free until the result is written, or the value that it is written over.
    hosts = {slot: Region(v.size - LINE_BYTES + 1, by_root[root].first) for root, (slot, v) in homes.items()}
    largest = sorted(hosts.items(), key=lambda host: -host[1].size)[:MAX_TRIED_RESULTS]
    regions = [*sorted(largest, key=lambda host: host[1].size), (ARENA, arena)]
    free = sorted((g for g in groups if g.key not in homes), key=lambda g: (-g.size, g.first))
    found = {root: MemoryPlace(slot, 0, False) for root, (slot, _) in homes.items()}
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


def _find_place(g: Allocation, regions: list[tuple[int, Region]]) -> tuple[Region, MemoryPlace]:
    """Return the first region that a value fits into, and its place there; the arena, the last one, fits all."""
    for slot, region in regions:
        if g.last < region.until:
            offset = region.offset(g)
            if offset is not None:
                return region, MemoryPlace(slot, offset)
    raise AssertionError("the arena has no end")


def place_apart(
    values: list[Allocation], over: dict[Hashable, Hashable], results: dict[Hashable, tuple[int, Allocation]]
) -> Layout:
    """Return places that end where separate pages end, each followed by a guard page, for tests."""
    groups, whose = merge_overwritten(values, over, {k: v for k, (_, v) in results.items()})
    homes = {whose[k]: slot for k, (slot, _) in results.items()}
    found, blocks, at = {}, [], 0
    for g in groups:
        if g.key in homes:
            found[g.key] = MemoryPlace(homes[g.key], 0, False)
            continue
        end = at + -(-round_up(g.size) // mmap.PAGESIZE) * mmap.PAGESIZE
        found[g.key] = MemoryPlace(ARENA, end - round_up(g.size))
        blocks.append((end - round_up(g.size), g.size))
        at = end + mmap.PAGESIZE
    return Layout({k: found[root] for k, root in whose.items()}, at, blocks)


def verify(layout: Layout, values: Iterable[Allocation], over: dict[Hashable, Hashable]) -> None:
    """Raise CompileError if two values share memory and their lifetimes overlap."""
    open_: list[tuple[MemoryPlace, Allocation]] = []
    for place, v in sorted(((layout.places[v.key], v) for v in values if v.size), key=lambda pair: pair[0]):
        open_ = [(r, o) for r, o in open_ if r.slot == place.slot and (r.offset + o.size > place.offset or not r.lined)]
        for r, o in open_:
            early, late = sorted((o, v), key=lambda v: v.first)
            same = r == place and over.get(late.key) == early.key and early.last == late.first
            if late.first <= early.last and not same:
                raise CompileError(f"the value {late.key} is written over {early.key}, which is needed.")
        open_.append((place, v))
