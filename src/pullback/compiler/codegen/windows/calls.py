"""Calls of what goes over windows: the room that it needs, and the threads that share its images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiler.codegen.call_table import Address, CallList, Constant, Local, Operand
from pullback.compiler.codegen.kernel_code import KernelCode
from pullback.compiler.codegen.parallel import WORTH_SHARING
from pullback.compiler.codegen.windows.convolution import emit_convolution
from pullback.compiler.codegen.windows.pooling import emit_pooling
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.windows import Convolution, Pooling
from pullback.compiler.target import Target

__all__ = ["call_windows", "window_rooms"]


EMIT: dict[type, Callable[..., KernelCode]] = {Convolution: emit_convolution, Pooling: emit_pooling}


def emit_windows(call: Any, target: Target) -> KernelCode:
    """Return the code of one call that a node of windows makes."""
    return EMIT[type(call)](call, target)


def _cost(n: Node, call: Any) -> int:
    """Nanoseconds, estimated as for matrix products."""
    return int(call.work) * n.dtype.itemsize // 200


def _workers(n: Node, call: Any, target: Target, threads: int) -> int:
    """How many threads share the images; examples are done one after the other."""
    w = emit_windows(call, target)
    alone = _cost(n, call) < WORTH_SHARING or _examples(n) > 1
    return 1 if alone else min(abs(threads), -(-w.rows // w.part))


def _examples(n: Node) -> int:
    return int(getattr(n.data, "examples", 1))


def window_rooms(n: Node, target: Target, threads: int) -> tuple[int, int]:
    """Bytes that a node needs for sums that are put together afterwards, and for itself."""
    made = [(emit_windows(call, target), _workers(n, call, target, threads)) for call, _ in n.data.calls]
    return max(w.partial * -(-w.rows // w.part) for w, _ in made), max(w.scratch * many for w, many in made)


def call_windows(emitter: Any, code: CallList, n: Node, partial: Address, scratch: Address) -> None:
    """Write down the calls for a node, given the addresses of its rooms."""
    emitter.described.append(n.data.described)
    if not getattr(n.data, "all", True):  # not all pixels of the result are written
        code.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        size = [Constant("i8", "0"), Constant("i64", str(n.nbytes)), Constant("i1", "false")]
        code.call_void("llvm.memset.p0.i64", [emitter._pointer(n), *size])
    if _examples(n) == 1:
        _call_each(emitter, code, n, partial, scratch)
        return
    with code.loop("0", _examples(n)) as e:
        _call_each(emitter, code, n, partial, scratch, e)


def _call_each(emitter: Any, code: CallList, n: Node, partial: Address, scratch: Address, e: str = "") -> None:
    """The calls for one example."""

    def address(x: Node) -> Operand:
        start: Address = emitter._pointer(x)
        if not e:
            return start
        ahead = code.times(e, x.nbytes // x.shape[0])
        return Local("ptr", code.op(f"getelementptr i8, ptr {code.pointer(start)}, i64 {ahead}"))

    for call, args in n.data.calls:
        w = emit_windows(call, emitter.target)
        emitter.declared |= w.declared
        name = emitter._name(w.function)
        given = [address(x) for x in [n.args[i] for i in args] + ([] if w.finish else [n])]
        if _workers(n, call, emitter.target, emitter.threads) > 1:
            emitter._by_threads(code, name, w, [*given, partial, scratch], _cost(n, call))
        else:
            part = w.part if w.partial else w.rows
            for p in range(-(-w.rows // part)):
                images = [Constant("i64", str(i)) for i in (p * part, min((p + 1) * part, w.rows))]
                code.call_void(name, [*given, *images, partial.further(p * w.partial), scratch])
        if w.finish:
            parts = Constant("i64", str(-(-w.rows // w.part)))
            code.call_void(emitter._name(w.finish), [address(n), partial, parts])
