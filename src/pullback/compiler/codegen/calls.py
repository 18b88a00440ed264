"""Calls of kernels, scans and scatters: the addresses they are given, and the threads that share them."""

from __future__ import annotations

from collections.abc import Hashable

from pullback.compiler.codegen.call_table import CallList, Constant, Local, Operand, integer
from pullback.compiler.codegen.kernel_code import Function, KernelCode
from pullback.compiler.codegen.kernels import count_parts
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.codegen.parallel import WORTH_SHARING, estimate_time
from pullback.compiler.codegen.scatter import ScatterAdd, Spaced
from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.fuse import AFTER, Kernel

__all__ = ["call_kernel", "call_scan", "call_scatter", "call_spaced"]

NULL = Constant("ptr", "null")


def call_kernel(module: ModuleBuilder, code: CallList, k: Kernel) -> None:
    """Call a loop kernel, in parts, and the function that combines what these leave."""
    w = module.kernels.written[k.number]
    module.described.append(k.name)
    if not w.rows:
        return
    module.declared |= w.declared
    module.helpers.update(w.helpers)
    name = module.name(_alias_overwritten(module, k, w))
    after = [n for n in k.nodes if k.levels[n.number] == AFTER]
    arrays = w.arrays[: len(w.arrays) - len(after)]
    given: list[Operand] = [module.address(n, at) for n, at in zip(arrays, w.offsets, strict=True)]
    parts, scratch = count_parts(w), module.find_memory(("scratch", k.number))
    partial = module.partial(k.number, w)
    if module.kernels.count_workers(k) > 1:
        module.call_in_parallel(code, w, name, [*given, partial, scratch], estimate_time(k))
    elif parts == 1:
        code.call_void(name, [*given, integer(0), integer(w.rows), partial, scratch])
    else:
        _call_parts(code, w, name, [*given, partial, scratch])
    if w.finish:
        code.call_void(module.name(w.finish), [*map(module.address, after), partial, integer(parts)])


def _call_parts(code: CallList, w: KernelCode, name: str, given: list[Operand]) -> None:
    """Call a kernel for one part after the other."""
    code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
    *arrays, partial, scratch = (Local("ptr", code.pointer(x)) for x in given)
    with code.loop("0", count_parts(w)) as p:
        lo = code.times(p, w.part)
        hi = code.op(f"call i64 @llvm.smin.i64(i64 {code.add(lo, str(w.part))}, i64 {w.rows})")
        own = code.op(f"getelementptr i8, ptr {partial.name}, i64 {code.times(p, w.partial)}")
        code.call_void(name, [*arrays, Local("i64", lo), Local("i64", hi), Local("ptr", own), scratch])


def _alias_overwritten(module: ModuleBuilder, k: Kernel, w: KernelCode) -> Function:
    """Return the function of a kernel, whose results that overwrite an array are aliases of it."""
    over = module.memory.over
    places: dict[Hashable, int] = {n.number: i for i, n in enumerate(w.arrays)}
    pairs = [(places[n.number], places[over[n.number]]) for n in k.nodes if n.number in over]
    return w.function._replace(aliases=tuple(pairs))


def call_scan(module: ModuleBuilder, code: CallList, n: Node) -> None:
    """Call the kernel of a scan or a search."""
    module.described.append(f"{n.name} {list(n.args[0].shape)} along {n.data[1]['axis']}")
    w = module.kernels.scans[n.number]
    name = module.name(w.function)
    module.declared |= w.declared
    scratch = module.find_memory(("scratch", n.number))
    arrays = [module.address(x) for x in w.arrays]
    if module.kernels.count_scan_workers(n) > 1:
        module.call_in_parallel(code, w, name, [*arrays, scratch, scratch], estimate_time(n))
    else:
        code.call_void(name, [*arrays, integer(0), integer(w.rows), scratch, scratch])


def call_spaced(module: ModuleBuilder, code: CallList, n: Node) -> None:
    """Call the function that writes elements into zeros at regular steps."""
    given = _describe_scatter(module, n)
    spaced = Spaced(n, module.target)
    name = module.name(spaced.write())
    module.declared |= spaced.code.declared
    code.call_void(name, given)


def call_scatter(module: ModuleBuilder, code: CallList, n: Node) -> None:
    """Call the kernel that adds rows at positions."""
    given = _describe_scatter(module, n)
    workers = min(abs(module.threads), n.shape[0]) if estimate_time(n) >= WORTH_SHARING else 1
    w = ScatterAdd(n, module.target).write(max(workers, 1))
    name = module.name(w.function)
    module.declared |= w.declared
    if workers > 1:
        module.call_in_parallel(code, w, name, [*given, NULL, NULL], estimate_time(n))
    else:
        code.call_void(name, [*given, integer(0), integer(w.rows), NULL, NULL])


def _describe_scatter(module: ModuleBuilder, n: Node) -> list[Operand]:
    """Describe a step, and return the addresses of its arrays."""
    module.described.append(f"{n.name} {list(n.args[0].shape)} into {list(n.shape)}")
    return [module.address(x) for x in (*n.args, n)]
