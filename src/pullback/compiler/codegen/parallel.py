"""Steps that several threads share: which are worth it, and the functions that threads call for each part.

Measured on two cores: handing parts to a thread that is awake takes 1 to 2 µs, waking one costs its caller 3 to 10 µs,
and it begins after 50 µs.
"""

from __future__ import annotations

from math import prod
from typing import Any

from pullback.compiler.builder import FLOATS, Code
from pullback.compiler.codegen.call_table import CallList, Local
from pullback.compiler.codegen.kernel_code import Function, KernelCode
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.products import ProductPlan
from pullback.compiler.schedule.fuse import Kernel

__all__ = ["WORTH_SHARING", "WORTH_WAKING", "emit_batch", "emit_task", "estimate_product_time", "estimate_time"]

WORTH_SHARING = 10_000  # nanoseconds from which on threads that are awake share a step
WORTH_WAKING = 40_000  # the same for threads that sleep
BATCHES = 32  # parts of a batch of products


def estimate_time(step: Kernel | Node) -> int:
    """Return about how many nanoseconds one thread takes for a kernel, a scan or a scatter."""
    if isinstance(step, Kernel):
        widest = max((n.dtype.itemsize for n in step.nodes), default=1)
        return step.cost * prod(step.axes) * widest // 100
    return (step.nbytes + 2 * step.args[0].nbytes) // 20


def estimate_product_time(plan: ProductPlan) -> int:
    """Return the same for all matrix products of a node."""
    p = plan.matrices
    return p.m * p.n * p.k * prod(plan.loop) * int(p.dtype[1]) // 200


def emit_task(name: str, w: KernelCode, arrays: int) -> Code:
    """Return the body of the function that a thread calls for one part; each thread has scratch memory of its own."""
    code = Code()
    code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
    places = [code.op(f"getelementptr ptr, ptr %context, i64 {i}") for i in range(arrays + 2)]
    *given, partials, scratches = [code.op(f"load ptr, ptr {place}") for place in places]
    lo = code.times("%part", w.part)
    hi = code.op(f"call i64 @llvm.smin.i64(i64 {code.add(lo, str(w.part))}, i64 {w.rows})")
    partial = code.op(f"getelementptr i8, ptr {partials}, i64 {code.times('%part', w.partial)}")
    scratch = code.op(f"getelementptr i8, ptr {scratches}, i64 {code.times('%worker', w.scratch)}")
    args = "".join(f"ptr {p}, " for p in given)
    code.line(f"call void @{name}({args}i64 {lo}, i64 {hi}, ptr {partial}, ptr {scratch})")
    return code


def emit_batch(plan: ProductPlan, call: Any, scratch: int) -> KernelCode:
    """Return a kernel whose rows are the products of a batch; ``call`` emits the call for one of them."""
    code, t = CallList(), FLOATS[plan.matrices.dtype]
    count = prod(plan.loop)
    with code.loop("%lo", "%hi") as i:
        pointers, left = ["%a", "%b", "%c", "%z"], i
        for axis in reversed(range(len(plan.loop))):
            at, left = left, code.op(f"udiv i64 {left}, {plan.loop[axis]}")
            at = code.op(f"sub i64 {at}, {code.times(left, plan.loop[axis])}")
            ahead = [*(s[axis] for s in plan.steps), plan.out[axis], plan.out[axis]]
            pointers = [
                code.op(f"getelementptr {t}, ptr {p}, i64 {code.times(at, s)}") if s else p
                for p, s in zip(pointers, ahead, strict=True)
            ]
        call(code, *(Local("ptr", p) for p in (*pointers, "%scratch")))
    lines, _ = code.render("", False)
    params = "ptr %a", "ptr %b", "ptr %c", "ptr %z", "i64 %lo", "i64 %hi", "ptr %partial", "ptr %scratch"
    function = Function(params, "\n".join(lines))
    return KernelCode(function, count, -(-count // BATCHES), frozenset(code.declared), scratch=scratch)
