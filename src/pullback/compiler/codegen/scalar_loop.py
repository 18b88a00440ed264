"""Loops over numbers: a carry of single numbers stays in registers, and a step is a few instructions.

Filters, autoregressive models and differential equations of one variable are such loops; a call of a kernel for each
step would take several times as long as the step.
"""

from __future__ import annotations

from pullback.compiler.builder import Code, Value, code_of
from pullback.compiler.codegen.kernel_code import Function, make_function
from pullback.compiler.codegen.loops.access import find_element_address, get_memory_type, read_vector, write_vector
from pullback.compiler.codegen.loops.row_blocks import emit_number
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import CAST, VIEW
from pullback.compiler.ir.structured import Loop
from pullback.compiler.math.functions import emit_scalar


class ScalarLoop:
    """Writes the function of a loop over numbers, whose parameters are the addresses of operands and results."""

    def __init__(self, loop: Loop, results: dict[int, int]) -> None:
        self.loop, self.results, self.code = loop, results, Code()
        self.values: dict[int, Value] = {}
        self.shared = loop.body.find_shared()

    def write(self, params: int) -> Function:
        """Return the function; its last parameter is scratch memory, which it does not need."""
        loop, code = self.loop, self.code
        inputs, outputs = loop.body.inputs, loop.body.outputs
        for n in loop.body.nodes:  # constants are loaded once, before the loop
            if self._is_constant(n):
                self.values[n.number] = self._load_constant(n)
        cells = [code.allocate(get_memory_type(x.dtype), 8) for x in loop.carry_inputs]
        for i, (x, cell) in enumerate(zip(loop.carry_inputs, cells, strict=True), loop.constants):
            write_vector(code, read_vector(code, f"%a{i}", x.dtype, 1, None), cell, None)
        with code.loop("0", loop.length) as t:
            row = code.op(f"sub i64 {loop.length - 1}, {t}") if loop.reverse else t
            for x, cell in zip(loop.carry_inputs, cells, strict=True):
                self.values[x.number] = read_vector(code, cell, x.dtype, 1, None)
            for i, x in enumerate(inputs[loop.xs :], loop.xs):
                self.values[x.number] = read_vector(
                    code, find_element_address(code, x, f"%a{i}", row), x.dtype, 1, None
                )
            values = [self._emit(n) for n in outputs]
            for v, cell in zip(values, cells, strict=False):
                write_vector(code, v, cell, None)
            for i, (n, v) in enumerate(zip(outputs, values, strict=True)):
                if i >= loop.carry and i in self.results:
                    write_vector(code, v, find_element_address(code, n, f"%a{self.results[i]}", row), None)
        for i, (x, cell) in enumerate(zip(loop.carry_inputs, cells, strict=True)):
            if i in self.results:
                write_vector(code, read_vector(code, cell, x.dtype, 1, None), f"%a{self.results[i]}", None)
        return make_function(code.body, *(f"ptr %a{i}" for i in range(params)), "ptr %scratch")

    def _is_constant(self, n: Node) -> bool:
        constants = self.loop.body.inputs[: self.loop.constants]
        return n.size == 1 and any(n is x or (n.kind is VIEW and n.args[0] is x) for x in constants)

    def _load_constant(self, n: Node) -> Value:
        base, offset = (n.args[0], n.data.offset) if n.kind is VIEW else (n, 0)
        array = next(i for i, x in enumerate(self.loop.body.inputs) if x is base)
        return read_vector(self.code, find_element_address(self.code, n, f"%a{array}", str(offset)), n.dtype, 1, None)

    def _emit(self, wanted: Node) -> Value:
        """Return the value of a node, after those that it needs."""
        pending = [wanted]
        while pending:
            n = pending[-1]
            if n.number in self.values:
                pending.pop()
            elif missing := [x for x in n.args if x.number not in self.values]:
                pending += missing
            else:
                self.values[n.number] = self._emit_node(n)
        return self.values[wanted.number]

    def _emit_node(self, n: Node) -> Value:
        if is_number(n):
            return emit_number(self.code, n, 1)
        args = [self.values[x.number] for x in n.args]
        if n.kind is VIEW:
            return args[0]
        if n.kind is CAST:
            return args[0].cast(code_of(n.dtype))
        op, params = n.data
        value = emit_scalar(self.code, op, params, args, 1, code_of(n.dtype))
        return value.round_product() if n.number in self.shared else value
