"""Sums in a fixed order: the same bits for any number of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Failure:
    """What went wrong in a worker."""

    name: str  # of the shard or item
    error: str
    text: str  # the worker's traceback
    place: str  # the process and machine of the worker
    is_nan: bool = False


Terms: TypeAlias = "Sequence[Any] | Failure | None"  # arrays; None for nothing to add


def add_terms(a: Terms, b: Terms) -> Terms:
    """Return the sums of arrays in pairs; the first failure, if there is one.

    >>> add_terms([1.0, 2.0], [3.0, 4.0]), add_terms(None, [1.0])
    ([4.0, 6.0], [1.0])
    """
    if a is None or (isinstance(b, Failure) and not isinstance(a, Failure)):
        return b
    if b is None or isinstance(a, Failure) or isinstance(b, Failure):
        return a
    return [x + y for x, y in zip(a, b, strict=True)]


def add_range(compute: Callable[[int], Any], start: int, stop: int, add: Callable[[Any, Any], Any] = add_terms) -> Any:
    """Return the sum of ``compute(i)`` for a range of numbers: of pairs, pairs of pairs and so on.

    The order is that of the largest power of two, which does not depend on who computes which part of the range.

    >>> add_range(lambda i: [f"{i}"], 0, 5, lambda a, b: [f"({a[0]}{b[0]})"])
    ['(((01)(23))4)']
    """
    if stop - start == 1:
        return compute(start)
    middle = start + (1 << (stop - start - 1).bit_length() - 1)
    left = add_range(compute, start, middle, add)
    return left if isinstance(left, Failure) else add(left, add_range(compute, middle, stop, add))


@cache
def plan_blocks(count: int, workers: int) -> Sequence[tuple[int, int]]:
    """Return ranges of shards, each of which one worker adds up; no worker has more shards than it must have.

    >>> plan_blocks(8, 2), plan_blocks(3, 4)
    ([(0, 4), (4, 8)], [(0, 1), (1, 2), (2, 3)])
    """
    size = 1 << max((count - 1).bit_length(), 0)
    while size > 1 and _find_largest_share(count, workers, size) > -(-count // workers):
        size //= 2
    return [(start, min(start + size, count)) for start in range(0, count, size)]


def _find_largest_share(count: int, workers: int, size: int) -> int:
    """Return how many shards the worker with most of them has, with blocks of a size."""
    shares = [0] * workers
    for i, start in enumerate(range(0, count, size)):
        shares[i % workers] += min(size, count - start)
    return max(shares)
