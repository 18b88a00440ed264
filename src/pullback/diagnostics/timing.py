"""``benchmark``: compares the time of a call of several functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from pullback.core import tree
from pullback.display.html import render_frame, render_table
from pullback.display.text import align_columns
from pullback.errors import ArgumentError

BURST = 2e-3  # seconds of calls between two readings of the clock, which is no finer than microseconds
HEADER = ("", "per call", "first call", "times as fast", "largest difference")


class Timing(NamedTuple):
    """The time of one of the functions that were measured."""

    name: str
    seconds: float  # of one call, the median over the rounds
    first_call: float  # seconds of the first call, which may compile
    speedup: float  # time of the first function divided by that of this one, the median over the rounds
    difference: float  # the largest difference from the first function's result, relative to its largest number


class Benchmark:
    """The times of several functions; printed, or shown in a notebook, it is a table."""

    def __init__(self, timings: Sequence[Timing], rounds: int) -> None:
        self.timings, self.rounds = list(timings), rounds

    def __getitem__(self, name: str) -> Timing:
        """Return the times of the function of this name."""
        for timing in self.timings:
            if timing.name == name:
                return timing
        known = ", ".join(timing.name for timing in self.timings)
        raise KeyError(f"{name!r} was not measured, only {known}.")

    def _list_rows(self) -> list[list[str]]:
        return [
            [t.name, format_time(t.seconds), format_time(t.first_call), f"{t.speedup:.3g}", f"{t.difference:.1g}"]
            for t in self.timings
        ]

    def __str__(self) -> str:
        return "\n".join(align_columns([[*HEADER], *self._list_rows()], right=range(1, len(HEADER))))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = render_table(HEADER, self._list_rows(), right=range(1, len(HEADER)))
        return render_frame("benchmark", [f"median of {self.rounds} rounds", "CPU time"], table)


def benchmark(
    functions: Callable[..., Any] | Mapping[str, Callable[..., Any]], *args: Any, rounds: int = 15
) -> Benchmark:
    """Measure how long a call of each function takes, and compare their results.

    functions: a function, or a dict of functions by the names that the table shows; the others are compared with the
        first of them.
    args: the arguments of every call.
    rounds: the number of turns of each function; times are medians over the rounds.

    Each function is called once before anything is measured, because the first call of a compiled function compiles it.
    Then the functions take turns, so that other load on the machine slows all of them alike.  Times are CPU times of
    the process, all threads included.  Times as fast: the time of the first function divided by that of each.

    >>> import numpy as np, pullback as pb
    >>> def loss(w):
    ...     return np.sum(np.tanh(w) ** 2)
    >>> slow = pb.grad(loss)
    >>> times = pb.benchmark({"eager": slow, "compiled": pb.compile(slow)}, np.ones(1000), rounds=5)
    >>> times["compiled"].difference < 1e-12
    True
    >>> print(times)
              per call  first call  times as fast  largest difference
    eager     ...
    compiled  ...
    """
    named = functions if isinstance(functions, Mapping) else {getattr(functions, "__name__", "function"): functions}
    if not named or not all(map(callable, named.values())):
        raise ArgumentError(f"benchmark: functions must be a function or a dict of functions (got {functions!r}).")
    if rounds < 1:
        raise ArgumentError(f"benchmark: rounds must be at least 1 (got {rounds}).")
    results, first_calls = zip(*(_call_once(f, args) for f in named.values()), strict=True)
    counts = [_count_calls(f, args) for f in named.values()]
    order = [*zip(named.values(), counts, range(len(counts)), strict=True)]
    times: list[list[float]] = [[] for _ in order]
    for turn in range(rounds):
        shift = turn % len(order)
        for f, count, i in order[shift:] + order[:shift]:
            times[i].append(_time_calls(f, args, count) / count)
    return Benchmark(
        [
            Timing(
                name,
                median(times[i]),
                first_calls[i],
                median(first / time for first, time in zip(times[0], times[i], strict=True)),
                _find_difference(results[0], results[i]),
            )
            for i, name in enumerate(named)
        ],
        rounds,
    )


def _call_once(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    begin = process_time()
    result = f(*args)
    return result, process_time() - begin


def _time_calls(f: Callable[..., Any], args: Sequence[Any], count: int) -> float:
    """Return the CPU time of so many calls, at least a microsecond: the clock may stand still meanwhile."""
    begin = process_time()
    for _ in range(count):
        f(*args)
    return max(process_time() - begin, 1e-6)


def _count_calls(f: Callable[..., Any], args: Sequence[Any]) -> int:
    """Return how many calls fill a burst."""
    count = 1
    while (taken := _time_calls(f, args, count)) < BURST / 4:
        count *= 4
    return max(1, round(count * BURST / taken))


def _find_difference(expected: Any, result: Any) -> float:
    """Return the largest difference of two results, relative to the largest number; infinite for other shapes."""
    a, b = ([np.asarray(leaf) for leaf in tree.leaves(it)] for it in (expected, result))
    if [x.shape for x in a] != [x.shape for x in b]:
        return np.inf
    largest = 0.0
    for x, y in zip(a, b, strict=True):
        if x.size and np.issubdtype(x.dtype, np.number) and not np.array_equal(x, y, equal_nan=True):
            with np.errstate(all="ignore"):
                apart = np.max(np.abs(x - y)) / np.max(np.abs(x))
            largest = max(largest, np.inf if np.isnan(apart) else float(apart))
    return largest


def format_time(seconds: float) -> str:
    """Return a time with its unit.

    >>> format_time(2.5e-7), format_time(0.0123), format_time(3.0)
    ('0.25 µs', '12.3 ms', '3 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
