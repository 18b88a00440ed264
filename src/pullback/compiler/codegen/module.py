"""The emit stage: the LLVM module of a program, with its kernels and the functions that call them in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pullback.compiler.codegen.call_table import CallList
from pullback.compiler.codegen.calls import (
    call_fourier,
    call_kernel,
    call_parts,
    call_rows,
    call_scan,
    call_scatter,
    call_spaced,
)
from pullback.compiler.codegen.gemm.calls import call_product
from pullback.compiler.codegen.matrices.calls import call_matrices
from pullback.compiler.codegen.module_builder import EmittedSegment, ModuleBuilder
from pullback.compiler.codegen.structured_calls import call_structure
from pullback.compiler.codegen.windows.calls import call_windows
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.kinds import (
    FOURIER,
    JOIN,
    MATRICES,
    OPAQUE,
    PRODUCT,
    ROWS,
    SCAN,
    SCATTER,
    SPACED,
    SPLIT,
    STRUCTURES,
    WHILE,
    WINDOWS,
    Kind,
)
from pullback.compiler.schedule.fuse import Kernel
from pullback.compiler.schedule.memory import Memory
from pullback.compiler.schedule.order import ScheduledStep
from pullback.compiler.target import Options, Target

# For each kind of node that is a step of its own: the function that emits its call.
CALLS: dict[Kind, Callable[[ModuleBuilder, CallList, ScheduledStep], None]] = {
    SCAN: call_scan,
    ROWS: call_rows,
    FOURIER: call_fourier,
    SPLIT: call_parts,
    JOIN: call_parts,
    SCATTER: call_scatter,
    SPACED: call_spaced,
    MATRICES: call_matrices,
    WINDOWS: call_windows,
    PRODUCT: call_product,
    **dict.fromkeys(STRUCTURES, lambda module, code, step: call_structure(module, code, step, call_step)),
}


@dataclass(frozen=True)
class Module:
    """A program as an LLVM module."""

    text: str
    segments: tuple[EmittedSegment, ...]  # functions and host ops, in the order in which they are called
    imports: tuple[str, ...]  # names of the library functions that it calls
    described: tuple[str, ...]  # what each step does, in a line
    longest_block: int  # the instructions of its longest basic block
    flags_rare: bool  # whether it sets a flag where a slow path would be needed, instead of having slow paths

    def __str__(self) -> str:
        return self.text


def call_step(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Emit the function of one step, and its call."""
    (call_kernel if isinstance(step.source, Kernel) else CALLS[step.source.kind])(module, code, step)


def emit(steps: Sequence[ScheduledStep], memory: Memory, target: Target, options: Options) -> Module:
    """Return the module of a program: its kernels, and functions that call them in the order of the steps."""
    counts = Counter(step.plan.loops.plan for step in steps if isinstance(step.source, Kernel))
    repeated = frozenset(plan for plan, count in counts.items() if count > 1)
    flags_rare = not options.has_slow_paths and all(map(_may_be_repeated, steps))
    module = ModuleBuilder(memory, target, options, repeated, flags_rare)
    code: CallList | None = None
    for step in steps:
        source = step.source
        if isinstance(source, Node) and source.kind.runs_on_host:
            if code is not None:
                module.close_segment(code)
                code = None
            if source.kind is OPAQUE:
                module.described.append(f"{source.name} {list(source.shape)} by its NumPy kernel")
                module.segments.append(EmittedSegment(host_op=source))
            continue
        code = code or CallList()
        call_step(module, code, step)
        if options.separate_steps:
            module.close_segment(code)
            code = None
    if code is not None:
        module.close_segment(code)
    return Module(
        module.render(),
        tuple(module.segments),
        tuple(sorted(module.imports)),
        tuple(module.described),
        module.longest_block,
        module.has_flag,
    )


def _may_be_repeated(step: ScheduledStep) -> bool:
    """Return whether a step may be run without slow paths, and again with them if a flag was set.

    A ``while`` loop might not end with wrong numbers, and a host op may have side effects.
    """
    if not isinstance(step.source, Node):
        return True
    bodies = step.plan.bodies if step.source.kind in STRUCTURES else ()
    is_known = step.source.kind is not WHILE and not step.source.kind.runs_on_host
    return is_known and all(_may_be_repeated(inner) for body in bodies for inner in body.steps)
