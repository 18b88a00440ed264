"""Calls of convolutions and pooling, image by image or shared by threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiler.codegen.call_table import CallList, ConstantOperand, Local, Operand, integer
from pullback.compiler.codegen.kernel_code import KernelCode
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.codegen.windows.convolution import emit_convolution
from pullback.compiler.codegen.windows.pooling import emit_pooling
from pullback.compiler.codegen.windows.winograd import emit_winograd
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.windows import count_examples, writes_all
from pullback.compiler.schedule.order import ScheduledStep
from pullback.compiler.schedule.windows import (
    ConvolutionPlan,
    PoolingPlan,
    WindowCall,
    WinogradPlan,
)

EMIT: dict[type, Callable[[Any], KernelCode]] = {
    ConvolutionPlan: emit_convolution,
    PoolingPlan: emit_pooling,
    WinogradPlan: emit_winograd,
}


def call_windows(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Emit the calls that compute a convolution or pooling node."""
    n: Node = step.source
    module.described.append(n.data.description)
    if not writes_all(n.data):  # some pixels of the result are not written: set all to zero before
        code.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        size = [ConstantOperand("i8", "0"), integer(n.nbytes), ConstantOperand("i1", "false")]
        code.call_void("llvm.memset.p0.i64", [module.find_address(n), *size])
    if count_examples(n.data) == 1:
        _call_each(module, code, n, step.plan)
        return
    with code.loop("0", count_examples(n.data)) as e:
        _call_each(module, code, n, step.plan, e)


def _call_each(module: ModuleBuilder, code: CallList, n: Node, calls: tuple[WindowCall, ...], e: str = "") -> None:
    """Emit the calls for one example."""
    partial, scratch = (module.find_memory((purpose, n.number)) for purpose in ("partial", "scratch"))

    def find_address(x: Node) -> Operand:
        start = module.find_address(x)
        if not e:
            return start
        ahead = code.times(e, x.nbytes // x.shape[0])
        return Local("ptr", code.at("i8", code.pointer(start), ahead))

    for plan, args, work in calls:
        w = EMIT[type(plan)](plan)
        name = module.add(w)
        operands = [find_address(x) for x in [n.args[i] for i in args] + ([] if w.finish else [n])]
        if work.workers > 1:
            module.call_kernel(code, work, name, [*operands, partial, scratch])
        else:
            part = work.part if work.partial else work.rows
            for p in range(-(-work.rows // part)):
                images = [integer(i) for i in (p * part, min((p + 1) * part, work.rows))]
                code.call_void(name, [*operands, *images, partial.further(p * work.partial), scratch])
        if w.finish:
            code.call_void(module.name_function(w.finish), [find_address(n), partial, integer(work.parts)])
