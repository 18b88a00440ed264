"""The least time that the machine allows a program: to move its bytes, and to multiply what it multiplies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np

from pullback.compiler.ir.kinds import LOOP, PRODUCT, WINDOWS
from pullback.compiler.ir.windows import Pooling

SMALLEST = 256 * 1024  # bytes: copying less takes no longer than calling NumPy
TOGETHER = 4 * 1024 * 1024  # bytes that are copied at least while the time is taken
TRIES = 50


def compute_limit(arrays: Iterable[Any], flops: float, dtype: Any) -> float:
    """Seconds for a program that reads and writes these arrays once, of so many multiplications and additions.

    The longer of the two times: a program may multiply while it waits for memory.  Functions such as exp cost besides.
    """
    size = sum(x.nbytes for x in arrays)
    return max(size / measure_bandwidth(size), flops / measure_flops(np.dtype(dtype).str))


def measure_bandwidth(size: int) -> float:
    """Bytes per second that are read and written in copying, between arrays of so many bytes together."""
    return _measure_bandwidth(max(SMALLEST, 1 << (size - 1).bit_length()) if size else SMALLEST)


@lru_cache
def _measure_bandwidth(size: int) -> float:
    source, target = np.ones(size // 8, "f4"), np.ones(size // 8, "f4")
    return size / _find_shortest(lambda: np.copyto(target, source), max(1, TOGETHER // size))


@lru_cache
def measure_flops(dtype: str) -> float:
    """Multiplications and additions per second in matrix products by NumPy's BLAS."""
    n = 512
    a, b, out = (np.ones((n, n), dtype) for _ in range(3))
    return 2 * n**3 / _find_shortest(lambda: np.matmul(a, b, out=out))


def _find_shortest(call: Callable[[], Any], count: int = 1) -> float:
    """Return the shortest of several times of a call, which others on the machine disturb least."""
    times = []
    for _ in range(TRIES):
        begin = process_time()
        for _ in range(count):
            call()
        times.append((process_time() - begin) / count)
    return max(min(times), 1e-9)


def count_flops(graph: Any) -> float:
    """Multiplications and additions of the matrix products and convolutions in a graph of ours."""
    total = 0.0
    for node in graph.nodes:
        if node.kind is PRODUCT:
            total += 2.0 * node.size * node.args[0].shape[-1]
        elif node.kind is WINDOWS and not isinstance(node.data, Pooling):
            total += 2.0 * node.data.work
        elif node.kind is LOOP:
            total += node.data.length * count_flops(node.data.body)
    return total
