"""Calls of the kernels that factor matrices and solve linear equations."""

from __future__ import annotations

from pullback.compiler.codegen.call_table import CallList, ConstantOperand, Operand, integer
from pullback.compiler.codegen.calls import call_whole
from pullback.compiler.codegen.matrices.lanes import emit_lanes
from pullback.compiler.codegen.matrices.lapack import emit_lapack, list_routines
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.matrices import CHOLESKY, EIGH, LU, PIVOTS, QR, SVD, find_matrix
from pullback.compiler.schedule.matrices import MatricesPlan
from pullback.compiler.schedule.order import ScheduledStep


def call_matrices(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Emit the call of the kernel that factors the matrices of a batch, or solves equations with them."""
    n: Node = step.source
    plan: MatricesPlan = step.plan
    module.described.append(f"{n.data} {' '.join(str(list(x.shape)) for x in n.args)}")
    z = module.find_address(n)
    if plan.width:
        base, offset, _ = find_matrix(n)
        call_whole(
            module,
            code,
            step,
            emit_lanes(plan),
            [module.find_address(base, offset), *map(module.find_address, n.args[1:]), z],
        )
        return
    copies = n.data.name in (LU, PIVOTS, EIGH, SVD, QR)  # itself; the others work in place
    if not copies and n.number not in module.memory.over:
        code.declared.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        source = module.find_address(n.args[-1])
        code.call_void("llvm.memmove.p0.p0.i64", [z, source, integer(n.nbytes), ConstantOperand("i1", "false")])
    arrays: list[Operand] = [z]
    if n.data.name != CHOLESKY:
        base, offset, _ = find_matrix(n)
        arrays = [module.find_address(base, offset), z]
    module.imports |= {*list_routines(plan)}
    call_whole(module, code, step, emit_lapack(plan), arrays)
