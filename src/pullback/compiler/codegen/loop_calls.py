"""Calls of loops: the body is one function, which machine code calls for each step with the addresses of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.compiler.codegen.call_table import CallList, Operand
from pullback.compiler.codegen.kernel_code import Function
from pullback.compiler.codegen.kernels import BodyCode, count_carry_bytes
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.kinds import CONSTANT
from pullback.compiler.ir.structured import Loop
from pullback.compiler.schedule.arena import round_up

__all__ = ["call_loop"]

MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def call_loop(
    module: ModuleBuilder, code: CallList, n: Node, call_step: Callable[[ModuleBuilder, CallList, Any], None]
) -> None:
    """Call a loop; ``call_step`` calls a step of its body."""
    loop, body = n.data, module.kernels.bodies[n.number]
    inner, calls = module.open_body(body), CallList()
    for step in body.steps:
        call_step(inner, calls, step.what)
    name = inner.close_body(calls)
    module.described.append(f"loop of {loop.length} steps of {len(inner.described)}:")
    module.described += [f"  {line}" for line in inner.described]
    results = {r.data: r for r in module.results_of(n)}
    given: list[Operand] = [module.address(x) for x in n.args]
    given += [module.address(results[i]) for i in sorted(results)]
    writer = LoopFunction(loop, body, name, {r: len(n.args) + at for at, r in enumerate(sorted(results))})
    function = writer.write(len(given), len(module.helpers))
    module.helpers.update(writer.globals)
    module.declared.add(MEMCPY)
    code.call_void(module.name(function), [*given, module.find_memory(("scratch", n.number))])


class LoopFunction:
    """Writes the function of a loop: of the addresses of its operands and results, and of scratch memory."""

    def __init__(self, loop: Loop, body: BodyCode, name: str, results: dict[int, int]) -> None:
        self.loop, self.body, self.name = loop, body, name
        self.results = results  # which parameter has the address of a result
        self.lines: list[str] = []
        self.globals: dict[str, str] = {}
        self.count = 0

    def op(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def step(self, pointer: str, offset: str | int) -> str:
        """Return the address some bytes further on."""
        return pointer if offset == 0 else self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def store(self, n: Node, pointer: str) -> None:
        """Let the body find a value at an address."""
        slot = self.body.memory.slot.get(n.number)
        if slot is not None:
            at = self.op(f"getelementptr ptr, ptr %slots, i64 {slot}")
            self.lines.append(f"store ptr {pointer}, ptr {at}")

    def write(self, params: int, unique: int) -> Function:
        """Return the function; its last parameter is scratch memory, for the body and for the carry."""
        loop, slots = self.loop, self.body.memory.slots
        self.lines.append(f"%slots = alloca [{max(len(slots), 1)} x ptr]")
        for n in slots:
            if n.kind is CONSTANT:
                self.store(n, self._write_constant(n, unique))
        for i, n in enumerate(loop.body.inputs[: loop.constants]):
            self.store(n, f"%a{i}")
        self._write_steps()
        names = [f"ptr %a{i}" for i in range(params)]
        return Function((*names, "ptr %scratch"), "\n".join(self.lines))

    def _write_constant(self, n: Node, unique: int) -> str:
        name = f"@{self.name}.constant{n.number}"
        data = "".join(f"\\{byte:02x}" for byte in n.data.tobytes())
        self.globals[name] = f'{name} = private unnamed_addr constant [{n.nbytes} x i8] c"{data}", align 16'
        return name

    def _write_steps(self) -> None:
        loop, outputs = self.loop, self.loop.body.outputs
        stacks = {k: i for i, k in loop.find_stacks().items() if i in self.results}
        spare = round_up(self.body.memory.layout.arena)
        first, last, by = (loop.length - 1, 0, -1) if loop.reverse else (0, loop.length - 1, 1)
        entry: list[tuple[str, str]] = []  # addresses of the carry before the loop: where it is read, and written
        for k, size in enumerate(count_carry_bytes(loop)):
            begin = f"%a{loop.constants + k}"
            own = [self.step("%scratch", spare), self.step("%scratch", spare + size)]
            spare += 2 * size
            result = f"%a{self.results[k]}" if k in self.results else own[0]
            if k in stacks and outputs[stacks[k]] is loop.carried[k]:
                place = self.step(f"%a{self.results[stacks[k]]}", first * outputs[k].nbytes)
                self._copy(place, begin, outputs[k].nbytes)
                entry.append((place, result))
            elif k in stacks:
                entry.append((begin, result))
            else:
                pair = [result, own[1]]
                entry.append((begin, pair[(loop.length - 1) % 2]))
                self.lines.append(f"%second{k} = getelementptr i8, ptr {pair[loop.length % 2]}, i64 0")
        for i in range(loop.carry, len(outputs)):
            if i not in self.results:  # nobody reads it: all steps write to one place
                self.store(outputs[i], self.step("%scratch", spare))
                spare += round_up(outputs[i].nbytes)
        self.lines += ["br label %step", "step:", f"%t = phi i64 [{first}, %entry], [%following, %step]"]
        for k, (begin, out) in enumerate(entry):
            self.lines.append(f"%in{k} = phi ptr [{begin}, %entry], [%next{k}, %step]")
            if k not in stacks:
                self.lines.append(f"%out{k} = phi ptr [{out}, %entry], [%other{k}, %step]")
                self.lines.append(f"%other{k} = phi ptr [%second{k}, %entry], [%out{k}, %step]")
        self.lines.append(f"%following = add i64 %t, {by}")
        for k, (_, result) in enumerate(entry):
            self._write_carry(k, stacks.get(k), result, last)
        for i in range(loop.xs, len(loop.body.inputs)):
            self.store(loop.body.inputs[i], self._find_row(f"%a{i}", loop.body.inputs[i].nbytes))
        for i in range(loop.carry, len(outputs)):
            if i in self.results and i not in stacks.values():
                self.store(outputs[i], self._find_row(f"%a{self.results[i]}", outputs[i].nbytes))
        self.lines.append(f"call void @{self.name}(ptr %slots, ptr %scratch)")
        self.lines.append(f"%all = icmp eq i64 %t, {last}")
        self.lines += ["br i1 %all, label %done, label %step", "done:"]
        for k, i in stacks.items():
            if outputs[i] is not loop.carried[k] and k in self.results:
                self._copy(f"%a{self.results[k]}", f"%next{k}", outputs[k].nbytes)

    def _write_carry(self, k: int, stack: int | None, result: str, last: int) -> None:
        """Write where a part of the carry is read and written in a step; ``%next`` is where it is afterwards."""
        loop, outputs = self.loop, self.loop.body.outputs
        self.store(loop.carried[k], f"%in{k}")
        size = outputs[k].nbytes
        if stack is None:
            self.lines.append(f"%next{k} = getelementptr i8, ptr %out{k}, i64 0")
        elif outputs[stack] is loop.carried[k]:
            place = f"%a{self.results[stack]}"
            ahead = self.step(place, self.op(f"mul i64 %following, {size}"))
            is_last = self.op(f"icmp eq i64 %t, {last}")
            self.lines.append(f"%next{k} = select i1 {is_last}, ptr {result}, ptr {ahead}")
        else:
            ahead = self._find_row(f"%a{self.results[stack]}", size)
            self.lines.append(f"%next{k} = getelementptr i8, ptr {ahead}, i64 0")
        self.store(outputs[k], f"%next{k}")

    def _find_row(self, pointer: str, size: int) -> str:
        return self.step(pointer, self.op(f"mul i64 %t, {size}"))

    def _copy(self, target: str, source: str, size: int) -> None:
        self.lines.append(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")
