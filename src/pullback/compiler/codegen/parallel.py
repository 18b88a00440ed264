"""Functions that threads call for the parts of a step, and that compute a range of a batch of matrix products."""

from __future__ import annotations

from collections.abc import Callable

from pullback.compiler.builder import FLOATS, Code
from pullback.compiler.codegen.call_table import CallList, Local
from pullback.compiler.codegen.kernel_code import Function, make_function
from pullback.compiler.ir.products import BatchedProduct
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.work import Work


def emit_task(name: str, work: Work, arrays: int) -> Code:
    """Return the body of ``(context, part, worker)``, which calls a kernel for one part of its rows.

    ``context`` has the addresses of the arrays, of the partial results and of scratch memory, of which every worker has
    a piece of its own.
    """
    code = Code()
    *operands, partials, scratches = [code.load("ptr", "%context", i) for i in range(arrays + 2)]
    lo = code.times("%part", work.part)
    hi = code.minimum(code.add(lo, str(work.part)), work.rows)
    partial = code.at("i8", partials, code.times("%part", work.partial))
    scratch = code.at("i8", scratches, code.times("%worker", round_up(work.scratch)))
    args = "".join(f"ptr {p}, " for p in operands)
    code.line(f"call void @{name}({args}i64 {lo}, i64 {hi}, ptr {partial}, ptr {scratch})")
    return code


def emit_batch(product: BatchedProduct, call: Callable[..., None]) -> Function:
    """Return the function that computes a range of a batch of products; ``call`` emits the call for one of them."""
    code, t = CallList(), FLOATS[product.matrices.dtype]
    with code.loop("%lo", "%hi") as i:
        pointers, left = ["%a", "%b", "%c", "%z"], i
        for axis in reversed(range(len(product.loop))):
            at, left = left, code.op(f"udiv i64 {left}, {product.loop[axis]}")
            at = code.op(f"sub i64 {at}, {code.times(left, product.loop[axis])}")
            ahead = [*(s[axis] for s in product.strides), product.out[axis], product.out[axis]]
            pointers = [code.at(t, p, code.times(at, s)) if s else p for p, s in zip(pointers, ahead, strict=True)]
        call(code, *(Local("ptr", p) for p in (*pointers, "%scratch")))
    lines, _ = code.render("", False)
    params = "ptr %a", "ptr %b", "ptr %c", "ptr %z", "i64 %lo", "i64 %hi", "ptr %partial", "ptr %scratch"
    return make_function(lines, *params)
