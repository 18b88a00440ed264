"""Calls of convolutions and pooling, image by image or shared by threads."""

from __future__ import annotations

from pullback.compiler.codegen.call_table import CallList, Constant, Local, Operand, integer
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.codegen.windows.workers import count_examples, count_workers, emit_windows, estimate_time
from pullback.compiler.ir.graph import Node

__all__ = ["call_windows"]


def call_windows(module: ModuleBuilder, code: CallList, n: Node) -> None:
    """Call what computes a node of windows."""
    module.described.append(n.data.described)
    if not getattr(n.data, "all", True):  # not all pixels of the result are written
        code.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        size = [Constant("i8", "0"), integer(n.nbytes), Constant("i1", "false")]
        code.call_void("llvm.memset.p0.i64", [module.address(n), *size])
    if count_examples(n) == 1:
        _call_each(module, code, n)
        return
    with code.loop("0", count_examples(n)) as e:
        _call_each(module, code, n, e)


def _call_each(module: ModuleBuilder, code: CallList, n: Node, e: str = "") -> None:
    """Emit the calls for one example."""
    partial, scratch = (module.find_memory((what, n.number)) for what in ("partial", "scratch"))

    def address(x: Node) -> Operand:
        start = module.address(x)
        if not e:
            return start
        ahead = code.times(e, x.nbytes // x.shape[0])
        return Local("ptr", code.op(f"getelementptr i8, ptr {code.pointer(start)}, i64 {ahead}"))

    for call, args in n.data.calls:
        w = emit_windows(call, module.target)
        module.declared |= w.declared
        name = module.name(w.function)
        given = [address(x) for x in [n.args[i] for i in args] + ([] if w.finish else [n])]
        if count_workers(n, call, module.target, module.threads) > 1:
            module.call_in_parallel(code, w, name, [*given, partial, scratch], estimate_time(n, call))
        else:
            part = w.part if w.partial else w.rows
            for p in range(-(-w.rows // part)):
                images = [integer(i) for i in (p * part, min((p + 1) * part, w.rows))]
                code.call_void(name, [*given, *images, partial.further(p * w.partial), scratch])
        if w.finish:
            code.call_void(module.name(w.finish), [address(n), partial, integer(-(-w.rows // w.part))])
