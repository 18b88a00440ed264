"""Timing: contestants in turn, process CPU time, ratios within a round."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from statistics import geometric_mean, median
from time import process_time
from typing import Any

import numpy as np

__all__ = ["compute_paired_ratio", "geometric_mean", "is_close", "time_interleaved"]

Clock = Callable[[], float]


def count_repetitions(call: Callable[[], Any], least: float, clock: Clock = process_time) -> int:
    """Return how many calls take at least ``least`` seconds; warms up on the way."""
    call()
    count = 1
    while True:
        start = clock()
        for _ in range(count):
            call()
        if (taken := clock() - start) >= least:
            return count
        count = max(2 * count, int(count * least / max(taken, 1e-6)))


def time_interleaved(
    calls: Mapping[str, Callable[[], Any]], rounds: int, least: float = 0.004, clock: Clock = process_time
) -> dict[str, list[float]]:
    """Seconds per call of each contestant in each round; each round begins with another one."""
    counts = {name: count_repetitions(call, least, clock) for name, call in calls.items()}
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.freeze()  # what was imported is not looked through again and again on somebody's time
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            call, count = calls[name], range(counts[name])
            start = clock()
            for _ in count:
                call()
            times[name].append((clock() - start) / len(count))
    return times


def compute_paired_ratio(numerator: list[float], denominator: list[float]) -> float:
    """Return the median of the ratios within each round: what slows the machine down slows both."""
    return median(a / b for a, b in zip(numerator, denominator, strict=True))


def is_close(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Return whether value and gradients are the same numbers, within ``tolerance`` of the largest of each."""
    (value, grads), (their_value, their_grads) = ours, theirs
    pairs = [(value, their_value), *zip(grads, their_grads, strict=True)]
    return all(_is_array_close(np.asarray(a), np.asarray(b), tolerance) for a, b in pairs)


def _is_array_close(a: Any, b: Any, tolerance: float) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.abs(a - b).max() <= tolerance * np.abs(b).max())
