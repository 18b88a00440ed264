"""Calls of matrix products: of a function for their size, a kernel of panels, or BLAS, in one thread or several."""

from __future__ import annotations

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.codegen.call_table import CallList, ConstantOperand, Local, Operand, integer
from pullback.compiler.codegen.gemm.panels import emit_panels
from pullback.compiler.codegen.gemm.small import (
    call_blas,
    declare_blas,
    emit_small_product,
    get_blas_name,
)
from pullback.compiler.codegen.gemm.tiny import emit_tiny_products
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.codegen.parallel import emit_batch
from pullback.compiler.ir.graph import Node
from pullback.compiler.schedule.order import ScheduledStep
from pullback.compiler.schedule.products import BlasPlan, ProductKernelPlan, ProductSchedule, SmallPlan, TinyPlan


def call_product(module: ModuleBuilder, code: CallList, step: ScheduledStep) -> None:
    """Emit the calls that compute a node of matrix products."""
    n: Node = step.source
    schedule: ProductSchedule = step.plan
    added = " added" if schedule.product.matrices.adds else ""
    module.described.append(f"product {list(n.args[0].shape)} @ {list(n.args[1].shape)}{added}")
    if n.size:
        ProductCall(module, n, schedule).emit(code)


class ProductCall:
    """Emits the calls for one node of matrix products."""

    def __init__(self, module: ModuleBuilder, n: Node, schedule: ProductSchedule) -> None:
        self.module, self.node, self.schedule = module, n, schedule
        self.product, self.plan = schedule.product, schedule.plan
        self.name = ""  # the function that is called; empty for BLAS

    def emit(self, code: CallList) -> None:
        """Emit the calls for all products of the node."""
        module, product, n, adds = self.module, self.product, self.node, self.product.matrices.adds
        a, b = (module.find_address(base, offset) for base, offset in product.bases)
        z = module.find_address(n)
        c = module.find_address(n.args[2]) if adds else z
        scratch: Operand = ConstantOperand("ptr", "null")
        if isinstance(self.plan, TinyPlan):
            self._call_tiny(code, self.plan, [a, b, c, z, scratch, scratch])
            return
        if not isinstance(self.plan, BlasPlan):
            self._name_function(self.plan)
            scratch = module.find_memory(("scratch", n.number))
        elif adds and n.number not in module.memory.over:
            code.declared.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            code.call_void("llvm.memmove.p0.p0.i64", [z, c, integer(n.nbytes), ConstantOperand("i1", "false")])
        if self.schedule.work.workers > 1:
            self._share(code, [a, b, c, z, scratch, scratch])
        elif product.loop:
            operands = [Local("ptr", code.pointer(p)) for p in (a, b, c, z, scratch)]  # computed once, before the loop
            self._loop(code, 0, [*operands])
        else:
            self._call(code, a, b, c, z, scratch)

    def _name_function(self, plan: SmallPlan | ProductKernelPlan) -> None:
        p, target = self.product.matrices, self.module.target
        is_small = isinstance(plan, SmallPlan)
        self.name = self.module.add(emit_small_product(p, plan, target) if is_small else emit_panels(p, plan, target))

    def _call_tiny(self, code: CallList, plan: TinyPlan, operands: list[Operand]) -> None:
        """Emit the call of the function that computes a whole batch of products of tiny matrices."""
        name = self.module.add(emit_tiny_products(self.product.matrices, plan, self.module.target))
        self.module.call_kernel(code, self.schedule.work, name, operands)

    def _call(self, code: CallList, a: Operand, b: Operand, c: Operand, z: Operand, scratch: Operand) -> None:
        """Emit the call for one product."""
        if isinstance(self.plan, BlasPlan):
            self.module.declared.add(declare_blas(self.node.dtype))
            self.module.imports.add(get_blas_name(self.node.dtype))
            call_blas(code, self.product.matrices, self.plan, a, b, z)
        elif isinstance(self.plan, SmallPlan):
            code.call_void(self.name, [a, b, c, z, scratch])
        else:
            self.module.call_kernel(code, self.plan.work, self.name, [a, b, c, z, scratch, scratch])

    def _share(self, code: CallList, operands: list[Operand]) -> None:
        """Emit a call whose parts, panels of one product or products of a batch, are shared by threads."""
        name = self.module.name_function(emit_batch(self.product, self._call)) if self.product.loop else self.name
        self.module.call_kernel(code, self.schedule.work, name, operands)

    def _loop(self, code: CallList, axis: int, pointers: list[Operand]) -> None:
        """Emit the loops over the batch axes from ``axis`` on."""
        product = self.product
        if axis == len(product.loop):
            self._call(code, *pointers)
            return
        type_ = FLOATS[code_of(self.node.dtype)]
        strides = [*(s[axis] for s in product.strides), product.out[axis], product.out[axis], 0]
        with code.loop("0", product.loop[axis]) as i:
            moved = [
                Local("ptr", code.at(type_, code.pointer(p), code.times(i, s))) if s else p
                for p, s in zip(pointers, strides, strict=True)
            ]
            self._loop(code, axis + 1, moved)
