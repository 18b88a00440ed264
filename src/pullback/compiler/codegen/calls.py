"""Calls of kernels, scans and scatters: each step's function, the addresses it is given, and the threads it uses."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from pullback.compiler.codegen.call_table import CallList, ConstantOperand, Local, Operand, integer
from pullback.compiler.codegen.complex_parts import emit_join, emit_split
from pullback.compiler.codegen.fourier import emit_fourier, order_parts
from pullback.compiler.codegen.kernel_code import KernelCode, make_function
from pullback.compiler.codegen.loops.reductions import emit_finish
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.codegen.row_functions import emit_rows
from pullback.compiler.codegen.scan import emit_scan
from pullback.compiler.codegen.scatter import ScatterRows, Spaced
from pullback.compiler.ir.graph import Node, find_contiguous, find_rows
from pullback.compiler.ir.kinds import SPLIT
from pullback.compiler.schedule.fuse import Kernel
from pullback.compiler.schedule.order import ScheduledStep
from pullback.compiler.schedule.scatters import ScatterPlan
from pullback.compiler.schedule.schedule import KernelPlan
from pullback.compiler.schedule.work import Work

NULL = ConstantOperand("ptr", "null")


def call_kernel(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call a loop kernel, part by part, and the function that combines the partial results of the parts."""
    k: Kernel = step.source
    plan: KernelPlan = step.plan
    work, loops = plan.work, plan.loops
    module.described.append(k.name)
    if not work.rows:
        return
    aliases = _find_overwritten(module, k, loops.arrays)
    w = module.emit_loops(loops.plan, bool(aliases))
    name = module.add(w._replace(function=w.function._replace(aliases=aliases)))
    count = len(loops.offsets)
    arrays, after = loops.arrays[:count], loops.arrays[count:]
    operands: list[Operand] = [module.find_address(n, at) for n, at in zip(arrays, loops.offsets, strict=True)]
    if not loops.plan.has_partial_results:
        operands += map(module.find_address, after)
    partial = module.find_partial_results(k.number, plan)
    operands += [partial, module.find_memory(("scratch", k.number))]
    if work.workers > 1 or work.parts == 1:
        module.call_kernel(code, work, name, operands)
    elif loops.plan in module.repeated:
        _call_shared_parts(module, code, work, name, operands)
    else:
        _call_parts(code, work, name, operands)
    results = [module.find_address(n) for n in after]
    if w.finish:
        code.call_void(module.name_function(w.finish), [*results, partial, integer(work.parts)])
    elif loops.plan.has_partial_results:  # a function of its own takes longer to compile than these few lines
        emit_finish(code, loops.plan, [code.pointer(x) for x in results], code.pointer(partial), work.parts)


def _call_parts(code: CallList, work: Work, name: str, operands: list[Operand]) -> None:
    """Call a kernel for one part after the other."""
    *arrays, partial, scratch = (Local("ptr", code.pointer(x)) for x in operands)
    with code.loop("0", work.parts) as p:
        lo = code.times(p, work.part)
        hi = code.minimum(code.add(lo, str(work.part)), work.rows)
        own = code.at("i8", partial.name, code.times(p, work.partial))
        code.call_void(name, [*arrays, Local("i64", lo), Local("i64", hi), Local("ptr", own), scratch])


def _call_shared_parts(module: ModuleBuilder, code: CallList, work: Work, name: str, operands: list[Operand]) -> None:
    """Call a kernel for one part after the other, through a function that all kernels with the same plan share."""
    inner = CallList()
    pointers = [f"%p{i}" for i in range(len(operands))]
    _call_parts(inner, work, name, [Local("ptr", x) for x in pointers])
    lines, _ = inner.render("", False)
    module.declared |= inner.declared
    code.call_void(module.name_function(make_function(lines, *(f"ptr {x}" for x in pointers))), operands)


def _find_overwritten(module: ModuleBuilder, k: Kernel, arrays: tuple[Node, ...]) -> tuple[tuple[int, int], ...]:
    """Return the results of a kernel that overwrite another array: the positions of both among its arrays."""
    over = module.memory.over
    places: dict[Hashable, int] = {n.number: i for i, n in enumerate(arrays)}
    return tuple((places[n.number], places[over[n.number]]) for n in k.nodes if n.number in over)


def call_scan(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call the kernel of a scan or a search."""
    n: Node = step.source
    module.described.append(f"{n.name} {list(n.args[0].shape)} along {n.data[1]['axis']}")
    call_whole(module, code, step, emit_scan(step.plan))


def call_rows(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call the kernel of a function of rows."""
    module.described.append(f"{step.source.name} {list(step.source.args[0].shape)}")
    call_whole(module, code, step, emit_rows(step.plan))


def call_fourier(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call the kernel of Fourier transforms."""
    n: Node = step.source
    module.described.append(f"fourier {list(n.args[0].shape)} along {n.data.axis}")
    (*inputs, factors), order = _find_arguments(module, n), order_parts(n)
    results = (
        [module.find_address(n)] if n.data.is_real else [module.find_address(n, part * n.size // 2) for part in order]
    )
    operands = [*(inputs if order[0] == 0 else inputs[::-1]), factors, *results]
    call_whole(module, code, step, emit_fourier(step.plan), operands)


def call_parts(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call the function that splits complex numbers into real and imaginary parts, or joins them."""
    n: Node = step.source
    module.described.append(f"{n.name} {list(n.args[0].shape)}")
    function, declared = (emit_split if n.kind is SPLIT else emit_join)(n, module.target)
    module.declared |= declared
    code.call_void(module.name_function(function), [*_find_arguments(module, n), module.find_address(n)])


def _find_arguments(module: ModuleBuilder, n: Node) -> list[Operand]:
    """Return the addresses of the arguments of a node, which may be contiguous parts of other arrays."""
    return [module.find_address(*find_contiguous(x)) for x in n.args]


def call_whole(
    module: ModuleBuilder, code: CallList, step: ScheduledStep, w: KernelCode, operands: Sequence[Operand] | None = None
) -> None:
    """Call the kernel of a node without partial results.

    ``operands`` are the addresses of its arrays; by default those of the node's arguments and of the node.
    """
    n: Node = step.source
    scratch = module.find_memory(("scratch", n.number))
    arrays = [module.find_address(x) for x in (*n.args, n)] if operands is None else operands
    module.call_kernel(code, step.plan.work, module.add(w), [*arrays, scratch, scratch])


def call_spaced(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call the function that writes elements into zeros at regular strides."""
    operands = _describe_scatter(module, step.source)
    spaced = Spaced(step.source, step.plan)
    name = module.name_function(spaced.write())
    module.declared |= spaced.code.declared
    code.call_void(name, operands)


def call_scatter(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Call the kernel that adds rows to those at given positions."""
    n: Node = step.source
    plan: ScatterPlan = step.plan
    _, *others = _describe_scatter(module, n)
    base, offset, _ = find_rows(n.args[0], n.data.row)
    operands = [module.find_address(base, offset), *others]
    name = module.add(ScatterRows(n, n.number in module.memory.over, plan).write())
    module.call_kernel(code, plan.work, name, [*operands, NULL, NULL])


def _describe_scatter(module: ModuleBuilder, n: Node) -> list[Operand]:
    """Add a scatter to the descriptions of the module's steps, and return the addresses of its arrays."""
    module.described.append(f"{n.name} {list(n.args[0].shape)} into {list(n.shape)}")
    return [module.find_address(x) for x in (*n.args, n)]
