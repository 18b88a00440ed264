"""Which steps are worth several threads, and steps in parts for them to share out.

Measured on two cores: handing parts to a thread that is awake takes 1 to 2 µs, waking one costs its caller 3 to 10 µs,
and it comes after 50.  Costs are nanoseconds, estimated from the work of ops and the bytes of their elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

from pullback.compiler.builder import FLOATS, Code
from pullback.compiler.codegen.call_table import CallList, Local
from pullback.compiler.codegen.kernel_code import Function, KernelCode
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.products import Plan
from pullback.compiler.schedule.fuse import Kernel

__all__ = ["WORTH_SHARING", "WORTH_WAKING", "batched", "cost", "emit_task", "product_cost"]

WORTH_SHARING = 10_000  # by those who are awake
WORTH_WAKING = 40_000  # whoever sleeps
BATCHES = 32  # parts that a row of products is shared out in


def cost(step: Kernel | Node) -> int:
    """About how long one thread takes for a kernel, a scan, or for rows that are added at positions."""
    if isinstance(step, Kernel):
        widest = max((n.dtype.itemsize for n in step.nodes), default=1)
        return step.cost * prod(step.axes) * widest // 100
    return (step.nbytes + 2 * step.args[0].nbytes) // 20


def product_cost(plan: Plan) -> int:
    """The same for matrix products, all of a row of them."""
    p = plan.matrices
    return p.m * p.n * p.k * prod(plan.loop) * int(p.dtype[1]) // 200


def emit_task(name: str, w: KernelCode, arrays: int) -> Code:
    """What a thread does with one part: the addresses are taken out of the context, its scratch memory is its own."""
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


def batched(plan: Plan, call: Any, scratch: int) -> KernelCode:
    """A row of products as a kernel whose rows are the products; ``call`` writes one of them."""
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
