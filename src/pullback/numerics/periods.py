"""Where a sequence of labels repeats: the steps of loops that were recorded one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

__all__: list[str] = []

MIN_STEPS = 12  # steps of a loop that is found
COMPARED_NODES = 12  # labels in a row that are compared to find periods
MAX_PERIODS = 16  # lengths of periods that are tried


class Period(NamedTuple):
    """A part of a list of nodes that repeats."""

    start: int
    length: int  # of a period
    end: int


def find_periods(labels: Any) -> list[Period]:
    """Return the parts of an array of labels with at least MIN_STEPS equal periods, in order; they do not overlap.

    >>> find_periods(np.array([7, 8, *[1, 2, 3] * 100, 9, 9]))
    [Period(start=2, length=3, end=302)]
    """
    found: list[Period] = []
    taken = np.zeros(len(labels), bool)
    for length in _list_candidates(labels):
        same = (labels[length:] == labels[:-length]) & ~taken[length:] & ~taken[:-length]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], same, [0]])))
        end = 0
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            start = max(first, end)  # runs may overlap by less than a period
            if last - start >= (MIN_STEPS - 1) * length and not taken[start : last + length].any():
                end = last + length
                found.append(Period(start, _find_shortest(labels[start:end], length), end))
                taken[start:end] = True
    return sorted(found)


def find_outer_periods(labels: Any, inner: Sequence[Period]) -> list[Period]:
    """Return the parts that repeat as a whole, each period with one of these in it, as those of two nested loops do.

    >>> rows = np.array([7, *[1, 2] * 20] * 15)
    >>> find_outer_periods(rows, [Period(41 * i + 1, 2, 41 * i + 41) for i in range(15)])
    [Period(start=1, length=41, end=615)]
    """
    found: list[Period] = []
    for one, other in pairwise(inner):
        length = other.start - one.start
        if other.length != one.length or (found and one.start < found[-1].end):
            continue
        differ = np.flatnonzero(labels[one.start + length :] != labels[one.start : -length])
        end = one.start + length + int(differ[0]) if len(differ) else len(labels)
        if end - one.start >= MIN_STEPS * length:
            found.append(Period(one.start, length, end))
    return found


def _find_shortest(labels: Any, length: int) -> int:
    """Return the shortest period of labels that have a period of some length."""
    return next(d for d in range(1, length + 1) if length % d == 0 and (labels[d:] == labels[:-d]).all())


def _list_candidates(labels: Any) -> list[int]:
    """Return lengths that periods may have, those first that repeat more nodes."""
    if len(labels) < MIN_STEPS:
        return []
    mixed = np.zeros(len(labels), np.uint64)
    for i in range(min(COMPARED_NODES, len(labels))):  # a hash of each node and those after it
        mixed[: len(labels) - i] = mixed[: len(labels) - i] * np.uint64(0x9E3779B97F4A7C15) + labels[i:].astype(
            np.uint64
        )
    order = np.argsort(mixed, kind="stable")
    again = mixed[order][1:] == mixed[order][:-1]
    distances, counts = np.unique(np.diff(order)[again], return_counts=True)
    many = counts >= MIN_STEPS // 2
    ranked = sorted(
        zip((distances * counts)[many].tolist(), distances[many].tolist(), strict=True), key=lambda c: (-c[0], c[1])
    )
    return [distance for _, distance in ranked[:MAX_PERIODS]]
