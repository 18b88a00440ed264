"""Calls of loops and branches: each body is a function of the module, with a table of slots of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from pullback.compiler.builder import Code, Definition
from pullback.compiler.codegen.call_table import CallList, Operand
from pullback.compiler.codegen.kernel_code import Function, make_function
from pullback.compiler.codegen.module_builder import ModuleBuilder
from pullback.compiler.codegen.scalar_loop import ScalarLoop
from pullback.compiler.ir.graph import Node, find_contiguous
from pullback.compiler.ir.kinds import CONSTANT, LOOP, MAP, SWITCH, WHILE, Kind
from pullback.compiler.schedule.order import ScheduledStep
from pullback.compiler.schedule.structures import StructurePlan, begins_in_stack


def call_structure(
    module: ModuleBuilder,
    code: CallList,
    step: ScheduledStep,
    call_step: Callable[[ModuleBuilder, CallList, ScheduledStep], None],
) -> None:
    """Emit the bodies of a loop or of branches and the call that runs them; ``call_step`` emits a step of a body."""
    n: Node = step.source
    plan: StructurePlan = step.plan
    results = {r.data: r for r in step.stored}
    operands: list[Operand] = [module.find_address(*find_contiguous(x)) for x in (*n.args, *results.values())]
    places = {r: len(n.args) + at for at, r in enumerate(results)}
    if plan.is_in_registers:
        function = _write_scalar_loop(module, n, places, len(operands))
    else:
        names, described = [], []
        for body in plan.bodies:
            inner, calls = module.open_body(body.memory), CallList()
            for inner_step in body.steps:
                call_step(inner, calls, inner_step)
            names.append(inner.close_body(calls))
            described += [f"  {line}" for line in inner.described]
        module.described += [f"{n.name} {' '.join(map(str, n.data.settings))}:", *described]
        writer = WRITERS[n.kind](n, plan, names, places)
        function = writer.write(len(operands))
        module.helpers.update(writer.code.helpers)
        module.declared |= writer.code.declared
    code.call_void(module.name_function(function), [*operands, module.find_memory(("scratch", n.number))])


def _write_scalar_loop(module: ModuleBuilder, n: Node, results: dict[int, int], params: int) -> Function:
    writer = ScalarLoop(n.data, results)
    function = writer.write(params)
    ops = ", ".join(x.name for x in n.data.body.nodes if x.kind is MAP)
    module.described += [f"{n.name} {' '.join(map(str, n.data.settings))}:", f"  in registers: {ops}"]
    module.helpers.update(writer.code.helpers)
    module.declared |= writer.code.declared
    return function


class StructureFunction(ABC):
    """Writes a function that calls bodies; its parameters are the addresses of operands, results and scratch memory."""

    def __init__(self, n: Node, plan: StructurePlan, names: list[str], results: dict[int, int]) -> None:
        self.data, self.plan, self.bodies, self.names = n.data, plan, plan.bodies, names
        self.results = results  # by number of a result: the parameter that is its address
        self.code = Code()

    def write(self, params: int) -> Function:
        """Return the function; its last parameter is the scratch memory."""
        for i, body in enumerate(self.bodies):
            self.code.line(f"%slots{i} = alloca [{max(len(body.memory.slots), 1)} x ptr]")
            for n in body.memory.slots:
                if n.kind is CONSTANT:
                    self.store(i, n, self._write_constant(i, n))
        self.write_calls()
        names = [f"ptr %a{i}" for i in range(params)]
        return make_function(self.code.body, *names, "ptr %scratch")

    @abstractmethod
    def write_calls(self) -> None:
        """Write the basic blocks that call the bodies."""

    def alias(self, name: str, pointer: str) -> None:
        """Write a second name for a pointer."""
        self.code.line(f"%{name} = getelementptr i8, ptr {pointer}, i64 0")

    def find_scratch(self, name: str, k: int) -> str:
        """Return the address of a value in scratch memory."""
        return self.code.at("i8", "%scratch", self.plan.offsets[name, k])

    def find_result(self, i: int) -> str:
        """Return the address to which a result is written: in scratch memory, if nothing reads it."""
        return f"%a{self.results[i]}" if i in self.results else self.find_scratch("result", i)

    def store(self, body: int, n: Node, pointer: str) -> None:
        """Store an address in the slot that a body has for a value."""
        slot = self.bodies[body].memory.slot.get(n.number)
        if slot is not None:
            self.code.store("ptr", pointer, f"%slots{body}", slot)

    def call(self, body: int) -> None:
        self.code.line(f"call void @{self.names[body]}(ptr %slots{body}, ptr %scratch)")

    def _write_constant(self, body: int, n: Node) -> str:
        name = f"@{self.names[body]}.constant{n.number}"
        data = "".join(f"\\{byte:02x}" for byte in n.data.tobytes())
        text = f'{name} = private unnamed_addr constant [{n.nbytes} x i8] c"{data}", align 16'
        self.code.helpers[name] = Definition(text)
        return name


class LoopFunction(StructureFunction):
    """A loop with a known number of steps.

    A step reads the carry from where the step before wrote it.  That is one of two places in turn, chosen such that the
    last step writes the result; or, if all values of the carry are a result, the array of these.
    """

    def write_calls(self) -> None:
        loop, code = self.data, self.code
        inputs, outputs = loop.body.inputs, loop.body.outputs
        self.first: int = loop.length - 1 if loop.reverse else 0
        self.last: int = loop.length - 1 - self.first
        self.stacks = self.plan.stacks
        self._begin_loop()
        code.jump("step")
        code.begin("step")
        code.line(f"%t = phi i64 [{self.first}, %entry], [%following, %step]")
        for k in range(loop.carry):
            code.line(f"%in{k} = phi ptr [%begin{k}, %entry], [%next{k}, %step]")
            if k not in self.stacks:
                code.line(f"%out{k} = phi ptr [%odd{k}, %entry], [%other{k}, %step]")
                code.line(f"%other{k} = phi ptr [%even{k}, %entry], [%out{k}, %step]")
        code.line(f"%following = add i64 %t, {-1 if loop.reverse else 1}")
        for k in range(loop.carry):
            self._write_carry(k)
        for i in range(loop.xs, len(inputs)):
            self.store(0, inputs[i], self._find_row(f"%a{i}", inputs[i].nbytes))
        for i in range(loop.carry, len(outputs)):
            if i in self.results and i not in self.stacks.values():
                self.store(0, outputs[i], self._find_row(f"%a{self.results[i]}", outputs[i].nbytes))
        self.call(0)
        code.branch(code.op(f"icmp eq i64 %t, {self.last}"), "done", "step")
        code.begin("done")
        for k in self.stacks:
            if k in self.results and not begins_in_stack(loop, self.stacks, k):
                code.copy_bytes(f"%a{self.results[k]}", f"%next{k}", outputs[k].nbytes)

    def _begin_loop(self) -> None:
        """Store, before the loop, the addresses of constants, of the first carry and of results that are not read."""
        loop, outputs = self.data, self.data.body.outputs
        for i in range(loop.constants):
            self.store(0, loop.body.inputs[i], f"%a{i}")
        for k in range(loop.carry):
            self._begin_carry(k)
        for i in range(loop.carry, len(outputs)):
            if i not in self.results:  # it is not read: all steps write it to the same place
                self.store(0, outputs[i], self.find_scratch("result", i))

    def _begin_carry(self, k: int) -> None:
        """Name the places of a part of the carry: before the first step, and those that steps write to in turn."""
        begin, size = f"%a{self.data.constants + k}", self.data.carry_inputs[k].nbytes
        if k not in self.stacks:
            pair = [self.find_result(k), self.find_scratch("other", k)]
            self.alias(f"odd{k}", pair[(self.data.length - 1) % 2])
            self.alias(f"even{k}", pair[self.data.length % 2])
        elif begins_in_stack(self.data, self.stacks, k):
            place = self.code.at("i8", f"%a{self.results[self.stacks[k]]}", self.first * size)
            self.code.copy_bytes(place, begin, size)
            begin = place
            self.alias(f"result{k}", self.find_result(k))
        self.alias(f"begin{k}", begin)

    def _write_carry(self, k: int) -> None:
        """Store the addresses at which a step reads and writes a part of the carry; ``%next`` is that for the next."""
        size = self.data.carry_inputs[k].nbytes
        self.store(0, self.data.carry_inputs[k], f"%in{k}")
        if k not in self.stacks:
            self.alias(f"next{k}", f"%out{k}")
        elif begins_in_stack(self.data, self.stacks, k):
            ahead = self.code.at("i8", f"%a{self.results[self.stacks[k]]}", self.code.op(f"mul i64 %following, {size}"))
            is_last = self.code.op(f"icmp eq i64 %t, {self.last}")
            self.code.line(f"%next{k} = select i1 {is_last}, ptr %result{k}, ptr {ahead}")
        else:
            self.alias(f"next{k}", self._find_row(f"%a{self.results[self.stacks[k]]}", size))
        self.store(0, self.data.body.outputs[k], f"%next{k}")

    def _find_row(self, pointer: str, size: int) -> str:
        return self.code.at("i8", pointer, self.code.op(f"mul i64 %t, {size}"))


class WhileFunction(StructureFunction):
    """A ``while`` loop, whose carry is in one of two places in turn, and is copied to the results at the end."""

    def write_calls(self) -> None:
        data, code = self.data, self.code
        condition, body = data.bodies
        carried = body.inputs[data.constants :]
        for i in range(data.constants):
            self.store(0, condition.inputs[i], f"%a{i}")
            self.store(1, body.inputs[i], f"%a{i}")
        goes_on = self.find_scratch("condition", 0)
        self.store(0, condition.outputs[0], goes_on)
        for k in range(len(carried)):
            self.alias(f"odd{k}", self.find_scratch("odd", k))
            self.alias(f"even{k}", self.find_scratch("even", k))
        code.jump("head")
        code.begin("head")
        for k in range(len(carried)):
            code.line(f"%in{k} = phi ptr [%a{data.constants + k}, %entry], [%out{k}, %step]")
            code.line(f"%out{k} = phi ptr [%odd{k}, %entry], [%other{k}, %step]")
            code.line(f"%other{k} = phi ptr [%even{k}, %entry], [%out{k}, %step]")
        for k in range(len(carried)):
            self.store(0, condition.inputs[data.constants + k], f"%in{k}")
        self.call(0)
        holds = code.op(f"icmp ne i8 {code.op(f'load i8, ptr {goes_on}')}, 0")
        code.branch(holds, "step", "done")
        code.begin("step")
        for k, x in enumerate(carried):
            self.store(1, x, f"%in{k}")
            self.store(1, body.outputs[k], f"%out{k}")
        self.call(1)
        code.jump("head")
        code.begin("done")
        for k, x in enumerate(carried):
            if k in self.results:
                code.copy_bytes(f"%a{self.results[k]}", f"%in{k}", x.nbytes)


class SwitchFunction(StructureFunction):
    """Branches, of which one is called: the body with the number that an operand has."""

    def write_calls(self) -> None:
        branches, code = self.data.branches, self.code
        places = [self.find_result(i) for i in range(len(branches[0].outputs))]
        number = code.load("i64", "%a0")
        cases = " ".join(f"i64 {i}, label %case{i}" for i in range(1, len(branches) - 1))
        is_last = code.op(f"icmp sge i64 {number}, {len(branches) - 1}")
        code.branch(is_last, f"case{len(branches) - 1}", "choose")
        code.begin("choose")
        code.line(f"switch i64 {number}, label %case0 [{cases}]")
        for i, branch in enumerate(branches):
            code.begin(f"case{i}")
            for k, x in enumerate(branch.inputs, 1):
                self.store(i, x, f"%a{k}")
            for place, o in zip(places, branch.outputs, strict=True):
                self.store(i, o, place)
            self.call(i)
            code.jump("done")
        code.begin("done")


WRITERS: dict[Kind, type[StructureFunction]] = {LOOP: LoopFunction, WHILE: WhileFunction, SWITCH: SwitchFunction}
