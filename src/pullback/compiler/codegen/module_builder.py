"""The module while it is emitted: names of its functions, addresses of its arrays, and segments of calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pullback.compiler.builder import Definition, define_function
from pullback.compiler.codegen.call_table import ARENA, STACK, Address, CallList, Operand, integer
from pullback.compiler.codegen.kernel_code import Function, KernelCode, make_function
from pullback.compiler.codegen.loops.kernel import KernelWriter
from pullback.compiler.codegen.loops.reductions import write_finish
from pullback.compiler.codegen.parallel import emit_task
from pullback.compiler.ir.graph import Node
from pullback.compiler.math.building_blocks import RARE
from pullback.compiler.schedule.loops import LoopPlan
from pullback.compiler.schedule.memory import Memory
from pullback.compiler.schedule.schedule import KernelPlan
from pullback.compiler.schedule.work import MIN_WAKING_TIME, Work
from pullback.compiler.target import LINE_BYTES, Options, Target

MANY_LINES = 16  # of a function that only calls others: optimizing a longer one takes longer than it ever saves


@dataclass(frozen=True)
class EmittedSegment:
    """The steps between two host ops, as one function; or a host op."""

    name: str = ""
    host_op: Node | None = None
    slots: frozenset[int] = frozenset()  # the slots that the function reads or writes


class ModuleBuilder:
    """Collects the functions of a module, and the segments that call them."""

    def __init__(
        self, memory: Memory, target: Target, options: Options, repeated: frozenset[LoopPlan], flags_rare: bool
    ) -> None:
        self.memory, self.target, self.options, self.threads = memory, target, options, options.threads
        self.repeated = repeated  # loop plans that several kernels have
        self.flags_rare = flags_rare  # kernels have no slow paths, but set a flag where one is needed
        self.segments: list[EmittedSegment] = []
        self.described: list[str] = []  # what each step does, in a line
        self.imports: set[str] = set()
        self.declared: set[str] = set()
        self.helpers: dict[str, Definition] = {}
        self.bodies: list[str] = []  # names of the functions of the bodies of loops and branches
        self._kernels: dict[tuple[LoopPlan, bool], KernelCode] = {}
        self._names: dict[Function, str] = {}
        self._runs: list[Definition] = []  # the functions of segments and bodies
        # Of the segment or body that is being emitted:
        self._slots: set[int] = set()  # slots that it uses
        self._shared = 0  # nanoseconds of the steps that several threads share
        self._stack = 0  # bytes that it needs on the stack

    def open_body(self, memory: Memory) -> ModuleBuilder:
        """Return a builder for the body of a loop or a branch, whose functions become part of this module."""
        inner = ModuleBuilder(memory, self.target, self.options, self.repeated, self.flags_rare)
        inner.imports, inner.declared, inner.helpers, inner.bodies = (
            self.imports, self.declared, self.helpers, self.bodies
        )  # fmt: skip
        inner._kernels, inner._names, inner._runs = self._kernels, self._names, self._runs
        return inner

    def name_function(self, function: Function) -> str:
        """Add a function to the module and return its name; equal functions are one and have one name."""
        return self._names.setdefault(function, f"k{len(self._names)}")

    def add(self, kernel: KernelCode) -> str:
        """Add a kernel to the module with what it calls, and return its name."""
        self.declared |= kernel.declared
        self.helpers.update(kernel.helpers)
        return self.name_function(kernel.function)

    def emit_loops(self, plan: LoopPlan, overwrites: bool) -> KernelCode:
        """Return the code of a loop kernel, emitted once; ``overwrites``: a result is written over an operand."""
        key = plan, overwrites
        if key not in self._kernels:
            kernel = KernelWriter(plan, overwrites, self.flags_rare).write()
            if plan.has_partial_results and (plan in self.repeated or any(map(plan.is_column, plan.after))):
                finish, declared = write_finish(plan)
                kernel = kernel._replace(finish=finish, declared=kernel.declared | declared)
            self._kernels[key] = kernel
        return self._kernels[key]

    def render(self) -> str:
        """Return the text of the module."""
        functions = [function.render(name) for function, name in self._names.items()]
        return "\n".join([
            *sorted(self.declared), *(d.text for d in self.helpers.values()), *functions, *(d.text for d in self._runs),
            '!0 = !{!"branch_weights", i32 1, i32 100000}', "",
        ])  # fmt: skip

    @property
    def longest_block(self) -> int:
        """The instructions of the longest basic block of all functions."""
        definitions = *self.helpers.values(), *self._runs
        return max([d.longest_block for d in definitions] + [f.longest_block for f in self._names], default=0)

    @property
    def has_flag(self) -> bool:
        """Whether the module may set the flag that says that slow paths are needed."""
        return RARE in self.declared

    def close_segment(self, code: CallList) -> None:
        """Add a function with these calls as a segment, which returns whether its results need slow paths."""
        name = f"run{len(self.segments)}"
        self.segments.append(EmittedSegment(name, slots=frozenset(self._slots)))
        if self.has_flag:
            self._write(f"i64 @{name}", code, ["%rare = load i64, ptr @rare"], "i64 %rare")
        else:
            self._write(f"i64 @{name}", code, [], "i64 0")

    def close_body(self, code: CallList) -> str:
        """Add a function with the calls of the body of a loop or a branch, and return its name."""
        name = f"body{len(self.bodies)}"
        self.bodies.append(name)
        self._write(f"internal void @{name}", code, [], "void")
        return name

    def _write(self, named: str, code: CallList, last: list[str], result: str) -> None:
        """Render a function of calls, which ends with the lines ``last`` and returns ``result``; begin the next one."""
        if self._shared >= MIN_WAKING_TIME:
            code.declared.add("declare void @rouse(i64)")
            code.call_void("rouse", [integer(self.threads)], first=True)
        lines, tables = code.render(f"{named.partition('@')[2]}_calls", self._stack > 0)
        self.declared |= code.declared
        small = [f"%small = alloca [{self._stack} x i8], align {LINE_BYTES}"] if self._stack else []
        attributes = "noinline optnone " if len(lines) > MANY_LINES else ""
        head = f"define {named}(ptr %slots, ptr %arena) {attributes}{{"
        self._runs += [*tables, define_function(head, [*small, *code.entry, *lines, *last], result)]
        self._slots, self._shared, self._stack = set(), 0, 0

    # ---- addresses

    def find_address(self, n: Node, offset: int = 0) -> Address:
        """Return the address of a value, or of one of its elements."""
        base = self._slot(self.memory.slot[n.number]) if n.number in self.memory.slot else self.find_memory(n.number)
        return base.further(offset * n.dtype.itemsize)

    def _slot(self, slot: int, offset: int = 0, rounded: bool = False) -> Address:
        self._slots.add(slot)
        return Address.of_slot(slot, offset, rounded)

    def find_memory(self, key: Hashable) -> Address:
        """Return the address of memory that was planned under a key, in the arena or in a result.

        If there is none, none is needed, and it is the address of the arena.
        """
        place = self.memory.layout.places.get(key)
        if place is None or place.slot < 0:
            return Address(ARENA, place.offset if place else 0)
        return self._slot(place.slot, place.offset + LINE_BYTES - 1, True) if place.lined else self._slot(place.slot)

    def find_partial_results(self, number: int, plan: KernelPlan) -> Address:
        """Return the address of the partial results of a kernel's parts: on the stack, if they are small."""
        if plan.work.partial and plan.is_on_stack:
            self._stack = max(self._stack, plan.work.partial * plan.work.parts)
            return Address(STACK)
        return self.find_memory(("partial", number))

    # ---- calls

    def call_kernel(self, code: CallList, work: Work, name: str, operands: Sequence[Operand]) -> None:
        """Call a kernel for all its rows, in one thread, or part by part in several.

        ``operands`` has the addresses of its arrays, and last those of its partial results and of scratch memory.
        """
        if work.workers > 1:
            self._call_in_parallel(code, work, name, operands)
        else:
            code.call_void(name, [*operands[:-2], integer(0), integer(work.rows), *operands[-2:]])

    def _call_in_parallel(self, code: CallList, work: Work, name: str, operands: Sequence[Operand]) -> None:
        self._shared += work.time
        context = code.op(f"alloca [{len(operands)} x ptr]")
        for i, x in enumerate(operands):
            pointer = code.pointer(x)
            code.line(f"store ptr {pointer}, ptr {code.at('ptr', context, i)}")
        task = emit_task(name, work, len(operands) - 2)
        function = self.name_function(
            make_function(task.body, "ptr %context", "i64 %part", "i64 %worker", attributes="")
        )
        code.declared |= {*task.declared, "declare void @parallel(ptr, ptr, i64, i64, i1)"}
        self.imports.add("parallel")
        shape = f"i64 {work.parts}, i64 {self.threads}, i1 {str(work.time >= MIN_WAKING_TIME).lower()}"
        code.line(f"call void @parallel(ptr @{function}, ptr {context}, {shape})")
