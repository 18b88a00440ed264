"""Work: how a step is divided into parts, the memory that a part needs, and how many threads share the parts.

Measured on two cores: giving parts to a thread that is awake takes 1 to 2 µs; waking one takes its caller 3 to 10 µs,
and the thread begins after 50 µs.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.products import BatchedProduct
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.fuse import Kernel

MIN_SHARED_TIME = 10_000  # nanoseconds of a step from which on threads that are awake share it
MIN_WAKING_TIME = 40_000  # the same for sleeping threads, which must be woken


class Work(NamedTuple):
    """The rows of a step, how they are divided into parts, and the memory that it needs besides its arrays."""

    rows: int
    part: int  # rows of one part
    partial: int = 0  # bytes of the partial results of each part
    scratch: int = 0  # bytes of scratch memory for each thread
    workers: int = 1  # threads that share the parts
    time: int = 0  # estimated nanoseconds for one thread

    def __str__(self) -> str:
        return f"parts {self.parts}, threads {self.workers}"

    @property
    def parts(self) -> int:
        """The number of parts, at least one."""
        return max(1, -(-self.rows // self.part)) if self.rows else 1

    @property
    def scratch_bytes(self) -> int:
        """The bytes of scratch memory for all threads."""
        return round_up(self.scratch) * self.workers

    def share(self, time: int, threads: int) -> Work:
        """Return the work of a step that takes one thread ``time`` nanoseconds, with the threads that share it."""
        return self._replace(workers=min(abs(threads), self.parts) if time >= MIN_SHARED_TIME else 1, time=time)


def estimate_time(step: Kernel | Node) -> int:
    """Return the estimated nanoseconds of one thread for a kernel, a scan or a scatter."""
    if isinstance(step, Kernel):
        widest = max((n.dtype.itemsize for n in step.nodes), default=1)
        return step.cost * prod(step.axes) * widest // 100
    return (step.nbytes + 2 * step.args[0].nbytes) // 20


def estimate_product_time(product: BatchedProduct) -> int:
    """Return the estimated nanoseconds of one thread for all matrix products of a node."""
    p = product.matrices
    return p.m * p.n * p.k * prod(product.loop) * int(p.dtype[1]) // 200


def estimate_window_time(n: Node, multiplications: int) -> int:
    """Return the estimated nanoseconds of one thread for a call of a convolution or pooling node."""
    return multiplications * n.dtype.itemsize // 200
