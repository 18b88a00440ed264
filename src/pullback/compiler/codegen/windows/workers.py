"""The kernels of convolutions and pooling, the threads that share their images, and the memory they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiler.codegen.kernel_code import KernelCode
from pullback.compiler.codegen.parallel import WORTH_SHARING
from pullback.compiler.codegen.windows.convolution import emit_convolution
from pullback.compiler.codegen.windows.pooling import emit_pooling
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.windows import Convolution, Pooling
from pullback.compiler.target import Target

__all__ = ["count_examples", "count_window_bytes", "count_workers", "emit_windows", "estimate_time"]

EMIT: dict[type, Callable[..., KernelCode]] = {Convolution: emit_convolution, Pooling: emit_pooling}


def emit_windows(call: Any, target: Target) -> KernelCode:
    """Return the code of one call that a node of windows makes."""
    return EMIT[type(call)](call, target)


def estimate_time(n: Node, call: Any) -> int:
    """Return about how many nanoseconds one thread takes, estimated as for matrix products."""
    return int(call.work) * n.dtype.itemsize // 200


def count_workers(n: Node, call: Any, target: Target, threads: int) -> int:
    """Return how many threads share the images; examples are done one after the other."""
    w = emit_windows(call, target)
    alone = estimate_time(n, call) < WORTH_SHARING or count_examples(n) > 1
    return 1 if alone else min(abs(threads), -(-w.rows // w.part))


def count_examples(n: Node) -> int:
    """Return how many times the calls of a node are made, for filters of their own."""
    return int(getattr(n.data, "examples", 1))


def count_window_bytes(n: Node, target: Target, threads: int) -> tuple[int, int]:
    """Return the bytes that a node needs for the results of parts, and for scratch memory."""
    made = [(emit_windows(call, target), count_workers(n, call, target, threads)) for call, _ in n.data.calls]
    return max(w.partial * -(-w.rows // w.part) for w, _ in made), max(w.scratch * many for w, many in made)
