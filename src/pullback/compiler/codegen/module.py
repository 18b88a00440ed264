"""Kernels and calls as one module: functions, the order they are called in, and where every value lies.

A value lies in one of the arrays that the program is given (``slots``: inputs, outputs, constants, what opaque ops
give), or in the arena, planned by lifetime: what is no longer used makes room for what comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.codegen.call_table import ARENA, STACK, Address, CallList, Constant, Local, Operand
from pullback.compiler.codegen.deduplicate_kernels import Alike
from pullback.compiler.codegen.gemm.panels import blocked, is_blocked
from pullback.compiler.codegen.gemm.small import call_blas, declaration, small_product
from pullback.compiler.codegen.loops.kernel import Written
from pullback.compiler.codegen.parallel import WORTH_SHARING, WORTH_WAKING, batched, cost, product_cost, task
from pullback.compiler.codegen.scan import scanned
from pullback.compiler.codegen.scatter import ScatterAdd, Spaced
from pullback.compiler.codegen.windows.calls import call_windows, window_rooms
from pullback.compiler.ir.graph import Graph, Node, is_number
from pullback.compiler.ir.kinds import CONSTANT, OPAQUE, PRODUCT, SCAN, SCATTER, SPACED, WINDOWS, Kind
from pullback.compiler.ir.products import Plan, layout, planned
from pullback.compiler.schedule.fuse import Fused, Kernel, fused
from pullback.compiler.schedule.in_place import InPlace
from pullback.compiler.schedule.memory import ALIGN, Layout, Value, laid_apart, laid_out, rounded, verify
from pullback.compiler.schedule.order import Step, in_time
from pullback.compiler.target import Target

STACK_BYTES = 512  # that a program takes from the stack for sums of parts
NULL = Constant("ptr", "null")


@dataclass
class Segment:
    """Steps between two opaque ones, as one function; or an opaque one."""

    name: str = ""
    opaque: Node | None = None
    slots: frozenset[int] = frozenset()  # those that it reads or writes


@dataclass
class Assembly:
    """A program as text, and what it must be given to run."""

    text: str = ""
    segments: list[Segment] = field(default_factory=list)
    slots: list[Node] = field(default_factory=list)
    arena: int = 0
    kernels: int = 0
    functions: int = 0
    described: list[str] = field(default_factory=list)
    copies: list[tuple[int, Node]] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)  # of an arena whose values lie apart


class Assembler:
    """Puts a module together."""

    def __init__(self, graph: Graph, target: Target, threads: int = 1, apart: bool = False) -> None:
        self.graph, self.target = graph, target
        self.apart = apart  # for tests: every value between walls of its own
        self.threads = threads  # at most; a negative number: exactly, whatever is set for all programs
        self.fused: Fused = fused(graph)
        self.made = Assembly()
        self.slot: dict[int, int] = {}
        self.touched: set[int] = set()  # slots, by the segment that is being written
        self.values: list[Value] = []  # that need memory besides the slots
        self.results: dict[Hashable, tuple[int, Value]] = {}  # with their slots
        self.over: dict[Hashable, Hashable] = {}  # which value is written over which
        self.orders: dict[str, InPlace] = {}
        self.allowed: dict[tuple[str, int, int], bool] = {}
        self.layout = Layout({}, 0, [])
        self.bodies: dict[str, str] = {}
        self.declared: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.writtens: dict[int, Written] = {}
        self.scans: dict[int, Written] = {}
        self.shared = 0  # what is shared out in the segment that is being written: its cost
        self.stack = 0  # bytes on the stack, in the segment that is being written

    def run(self) -> Assembly:
        self.alike = Alike(self.fused, self.target)
        for step in self.fused.steps:
            if isinstance(step, Kernel):
                self.writtens[step.number] = self.alike.written(step)
            elif step.kind is SCAN:
                self.scans[step.number] = scanned(step, self.target)
        self._in_time()
        self._lay_out()
        self.alike.forget()
        functions: list[str] = []
        code: CallList | None = None
        for step in self.fused.steps:
            if isinstance(step, Node) and step.kind.runs_on_host:
                if code is not None:
                    functions.append(self._closed(code))
                    code = None
                if step.kind is OPAQUE:
                    self.made.described.append(f"{step.name} {list(step.shape)} by its NumPy kernel")
                    self.made.segments.append(Segment(opaque=step))
                continue
            code = code or CallList()
            if isinstance(step, Kernel):
                self._call_kernel(code, step)
            else:
                CALLS[step.kind](self, code, step)
        if code is not None:
            functions.append(self._closed(code))
        bodies = [
            body.replace("@KERNEL", f"@{name}").replace("@FINISH", f"@{name}") for body, name in self.bodies.items()
        ]
        self.made.text = "\n".join([
            *sorted(self.declared), *self.helpers.values(), *bodies, *functions,
            '!0 = !{!"branch_weights", i32 1, i32 100000}', "",
        ])  # fmt: skip
        self.made.functions = len(self.bodies)
        return self.made

    def _closed(self, code: CallList) -> str:
        name = f"run{len(self.made.segments)}"
        self.made.segments.append(Segment(name, slots=frozenset(self.touched)))
        self.touched.clear()
        if self.shared >= WORTH_WAKING:
            code.declared.add("declare void @rouse(i64)")
            code.call_void("rouse", [whole(self.threads)], first=True)
        self.shared = 0
        lines, parts = code.render(f"{name}_calls", self.stack > 0)
        self.declared |= code.declared
        small = [f"%small = alloca [{self.stack} x i8], align {ALIGN}"] if self.stack else []
        self.stack = 0
        head = f"define void @{name}(ptr %slots, ptr %arena) {{"
        return "\n".join([*parts, head, "entry:", *small, *lines, "ret void", "}"])

    # ---- where everything lies

    def _in_time(self) -> None:
        steps = []
        for s in self.fused.steps:
            own = s.nodes if isinstance(s, Kernel) else [s]
            mine = {n.number for n in own}
            stored = tuple(n for n in own if n.number in self.fused.stored)
            read = tuple(n for n in self._touched(s) if n.number not in mine)
            steps.append(Step(s, stored, read, isinstance(s, Node) and s.kind.runs_on_host))
        self.fused.steps[:] = [s.what for s in in_time(steps, {o.number for o in self.graph.outputs})]

    def _lay_out(self) -> None:
        for n in [*self.graph.inputs, *self.graph.outputs]:
            if n.number not in self.slot and n.kind is not CONSTANT:
                self._give_slot(n)
        users = self.graph.users()
        for n in self.graph.nodes:
            if n.kind is CONSTANT:
                if not is_number(n) or any(u.kind.reads_memory for u in users[n.number]):
                    self._give_slot(n)
            elif n.kind.runs_on_host:
                for m in (n, *n.args):
                    if m.number not in self.slot and m.kind is not CONSTANT:
                        self._give_slot(m)
        self._ask_for_memory()
        lay = laid_apart if self.apart else laid_out
        self.layout = lay(self.values, self.over, self.results)
        self.made.arena, self.made.blocks = self.layout.arena, self.layout.blocks

    def _ask_for_memory(self) -> None:
        """What is needed when: every value, and what kernels and products need for themselves."""
        last: dict[int, int] = {}
        for at, step in enumerate(self.fused.steps):
            for n in self._touched(step):
                last[n.number] = at
        wanted = {o.number for o in self.graph.outputs}
        extent: dict[int, int] = {}  # bytes from where a value of the arena begins; what lay there before may be longer
        for at, step in enumerate(self.fused.steps):
            made = step.nodes if isinstance(step, Kernel) else [step]
            made = [n for n in made if n.number in self.fused.stored and not n.kind.runs_on_host]
            spent = [n for n in self._touched(step) if n.number in extent and last[n.number] == at]
            for z, x in self._places(step, [n for n in made if n.number in wanted or n.number not in self.slot], spent):
                is_result = z.number in self.slot
                if is_result and x.number in self.over:  # results are not aligned: what is often read had better be
                    continue
                if z.nbytes <= 2 * extent[x.number] <= (2 if is_result else 4) * z.nbytes:
                    self.over[z.number] = x.number
                    if not is_result:
                        extent[z.number] = max(z.nbytes, extent[x.number])
            for n in made:
                if n.number not in self.slot:
                    extent.setdefault(n.number, n.nbytes)
                    self.values.append(Value(n.number, n.nbytes, at, last.get(n.number, at)))
                elif n.number in wanted:
                    here = Value(n.number, n.nbytes, at, len(self.fused.steps))
                    self.results[n.number] = self.slot[n.number], here
            for what, size in self._needs(step):
                self.values.append(Value((what, step.number), size, at, at))

    def verify(self) -> None:
        """Refuse a layout in which a value is written over another one that is needed."""
        verify(self.layout, [*self.values, *(v for _, v in self.results.values())], self.over)

    def _places(self, step: Any, made: list[Node], spent: list[Node]) -> Iterator[tuple[Node, Node]]:
        """Which values may be written over which that are read for the last time, each of them once."""
        if not made or not spent:
            return
        if isinstance(step, Kernel):
            for z in sorted(made, key=lambda z: z.number not in self.slot):
                x = max((x for x in spent if self._allows(step, z, x)), key=lambda x: x.number, default=None)
                if x is not None:
                    spent.remove(x)
                    yield z, x
        elif step.kind is PRODUCT and len(step.args) > 2:
            a, b, c = (layout(x)[0] for x in step.args)
            if c in spent and c is not a and c is not b:  # h @ w + h reads h until the end
                yield step, c

    def _allows(self, k: Kernel, z: Node, x: Node) -> bool:
        """Whether one array of a kernel may be written over another; the same for all kernels of the same text."""
        w = self.writtens[k.number]
        key = w.body, w.arrays.index(z), w.arrays.index(x)
        if w.ahead[key[2]]:  # it is read from further on than it would be written, whatever those like it do
            return False
        if key not in self.allowed:
            writer, arrays = self.alike.writers[w.body]
            order = self.orders.get(w.body) or self.orders.setdefault(w.body, InPlace(writer))
            self.allowed[key] = order.allows(arrays[key[1]], arrays[key[2]])
        return self.allowed[key]

    def _needs(self, step: Any) -> Iterator[tuple[str, int]]:
        """What a step needs for itself, in bytes."""
        if isinstance(step, Kernel):
            w = self.writtens[step.number]
            if w.partial and not self._is_on_stack(w):
                yield "partial", w.partial * parts_of(w)
            if w.scratch:
                yield "scratch", rounded(w.scratch) * self._workers(step)
        elif step.kind is SCAN and self.scans[step.number].scratch:
            yield "scratch", rounded(self.scans[step.number].scratch) * self._scan_workers(step)
        elif step.kind is WINDOWS:
            rooms = zip(("partial", "scratch"), window_rooms(step, self.target, self.threads), strict=True)
            yield from ((what, size) for what, size in rooms if size)
        elif step.kind is PRODUCT:
            plan = planned(step)
            if need := self._product_scratch(plan) * self._product_workers(plan):
                yield "scratch", need

    def _is_on_stack(self, w: Written) -> bool:
        """Whether what the parts leave is little: a register or two."""
        return not self.apart and w.partial * parts_of(w) <= STACK_BYTES

    def _give_slot(self, n: Node) -> None:
        self.slot[n.number] = len(self.made.slots)
        self.made.slots.append(n)

    def _touched(self, step: Any) -> list[Node]:
        if isinstance(step, Kernel):
            return [*self.writtens[step.number].arrays]
        return [step, *(layout(a)[0] if step.kind is PRODUCT else a for a in step.args)]

    def _pointer(self, n: Node, offset: int = 0) -> Address:
        """Where a value lies, from one of its elements on."""
        base = self._slot(self.slot[n.number]) if n.number in self.slot else self._at(n.number)
        return base.further(offset * n.dtype.itemsize)

    def _slot(self, slot: int, offset: int = 0, rounded: bool = False) -> Address:
        self.touched.add(slot)
        return Address.of_slot(slot, offset, rounded)

    def _at(self, key: Any) -> Address:
        """The room of a value, in the arena or in a result; of one that needs none, somewhere."""
        room = self.layout.rooms.get(key)
        if room is None or room.slot < 0:
            return Address(ARENA, room.offset if room else 0)
        return self._slot(room.slot, room.offset + ALIGN - 1, True) if room.lined else self._slot(room.slot)

    # ---- calls

    def _named(self, body: str) -> str:
        """The name of a function; the same text is the same function."""
        return self.bodies.setdefault(body, f"k{len(self.bodies)}")

    def _call_kernel(self, code: CallList, k: Kernel) -> None:
        w = self.writtens[k.number]
        self.made.kernels += 1
        self.made.described.append(described(k, w))
        if not w.rows:
            return
        self.declared |= w.declared
        self.helpers.update(w.helpers)
        name = self._named(self._overwriting(k, w))
        after = [n for n in k.nodes if k.levels[n.number] == "after"]
        arrays = w.arrays[: len(w.arrays) - len(after)]
        given: list[Operand] = [self._pointer(n, at) for n, at in zip(arrays, w.ahead, strict=True)]
        partial, parts = self._at(("partial", k.number)), parts_of(w)
        scratch = self._at(("scratch", k.number))
        if w.partial and self._is_on_stack(w):
            self.stack, partial = max(self.stack, w.partial * parts), Address(STACK)
        if self._workers(k) > 1:
            self._by_threads(code, name, w, [*given, partial, scratch], cost(k))
        elif parts == 1:
            code.call_void(name, [*given, whole(0), whole(w.rows), partial, scratch])
        else:
            code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
            given = [Local("ptr", code.pointer(x)) for x in given]
            first, own = code.pointer(partial), Local("ptr", code.pointer(scratch))
            with code.loop("0", parts) as p:
                lo = code.times(p, w.part)
                hi = code.op(f"call i64 @llvm.smin.i64(i64 {code.add(lo, str(w.part))}, i64 {w.rows})")
                mine = code.op(f"getelementptr i8, ptr {first}, i64 {code.times(p, w.partial)}")
                code.call_void(name, [*given, Local("i64", lo), Local("i64", hi), Local("ptr", mine), own])
        if w.finish:
            code.call_void(self._named(w.finish), [*map(self._pointer, after), partial, whole(parts)])

    def _overwriting(self, k: Kernel, w: Written) -> str:
        """The text of a kernel, in which what is written over something else goes by the address of that."""
        places: dict[Hashable, int] = {n.number: i for i, n in enumerate(w.arrays)}
        body = w.body
        for n in k.nodes:
            if n.number in self.over:
                head, _, rest = body.partition("\n")
                rest = re.sub(rf"%a{places[n.number]}\b", f"%a{places[self.over[n.number]]}", rest)
                body = f"{head}\n{rest}"
        return body

    def _workers(self, k: Kernel) -> int:
        """How many threads may do parts of a kernel: one, if it is not worth the calling of others."""
        w = self.writtens[k.number]
        worth = cost(k) >= WORTH_SHARING
        return min(abs(self.threads), -(-w.rows // w.part)) if worth and w.rows else 1

    def _by_panels(self, plan: Plan) -> bool:
        return not plan.is_small and is_blocked(plan.matrices, self.target)

    def _product_scratch(self, plan: Plan) -> int:
        return rounded(blocked(plan.matrices, self.target).scratch if self._by_panels(plan) else plan.matrices.scratch)

    def _product_workers(self, plan: Plan) -> int:
        """How many threads share a product, by its panels, or many products."""
        by_panels = self._by_panels(plan)
        if product_cost(plan) < WORTH_SHARING or not (by_panels or plan.is_small):
            return 1
        parts = prod(plan.loop) if plan.loop else blocked(plan.matrices, self.target).rows if by_panels else 1
        return min(abs(self.threads), parts)

    def _by_threads(self, code: CallList, name: str, w: Written, given: list[Operand], its_cost: int) -> None:
        """Have the parts of a kernel done by whoever claims them; each thread has scratch memory of its own."""
        self.shared += its_cost
        context = code.op(f"alloca [{len(given)} x ptr]")
        for i, x in enumerate(given):
            pointer = code.pointer(x)
            code.line(f"store ptr {pointer}, ptr {code.op(f'getelementptr ptr, ptr {context}, i64 {i}')}")
        body = task(name, w._replace(scratch=rounded(w.scratch)), len(given) - 2)
        head = "define internal void @KERNEL(ptr %context, i64 %part, i64 %worker) {\nentry:"
        function = self._named("\n".join([head, *body.lines, "ret void", "}"]))
        code.declared |= {*body.declared, "declare void @parallel(ptr, ptr, i64, i64, i1)"}
        how = f"i64 {-(-w.rows // w.part)}, i64 {self.threads}, i1 {str(its_cost >= WORTH_WAKING).lower()}"
        code.line(f"call void @parallel(ptr @{function}, ptr {context}, {how})")

    def _scan_workers(self, n: Node) -> int:
        w = self.scans[n.number]
        return min(abs(self.threads), -(-w.rows // w.part)) if cost(n) >= WORTH_SHARING else 1

    def _call_scan(self, code: CallList, n: Node) -> None:
        self.made.described.append(f"{n.name} {list(n.args[0].shape)} along {n.data[1]['axis']}")
        w = self.scans[n.number]
        name = self._named(w.body)
        self.declared |= w.declared
        scratch = self._at(("scratch", n.number))
        arrays = [self._pointer(x) for x in w.arrays]
        if self._scan_workers(n) > 1:
            self._by_threads(code, name, w, [*arrays, scratch, scratch], cost(n))
        else:
            code.call_void(name, [*arrays, whole(0), whole(w.rows), scratch, scratch])

    def _describe_scatter(self, n: Node) -> list[Operand]:
        self.made.described.append(f"{n.name} {list(n.args[0].shape)} into {list(n.shape)}")
        return [self._pointer(x) for x in (*n.args, n)]

    def _call_spaced(self, code: CallList, n: Node) -> None:
        given = self._describe_scatter(n)
        spaced = Spaced(n, self.target)
        name = self._named(spaced.text())
        self.declared |= spaced.code.declared
        code.call_void(name, given)

    def _call_scatter(self, code: CallList, n: Node) -> None:
        given = self._describe_scatter(n)
        workers = min(abs(self.threads), n.shape[0]) if cost(n) >= WORTH_SHARING else 1
        w = ScatterAdd(n, self.target).written(max(workers, 1))
        name = self._named(w.body)
        self.declared |= w.declared
        if workers > 1:
            self._by_threads(code, name, w, [*given, NULL, NULL], cost(n))
        else:
            code.call_void(name, [*given, whole(0), whole(w.rows), NULL, NULL])

    def _call_product(self, code: CallList, n: Node) -> None:
        plan = planned(n)
        self.made.described.append(
            f"product {list(n.args[0].shape)} @ {list(n.args[1].shape)}{' added' if plan.adds else ''}"
        )
        if not n.size:
            return
        a, b = (self._pointer(base, offset) for base, offset in plan.bases)
        z = self._pointer(n)
        t = FLOATS[code_of(n.dtype)]
        c = self._pointer(n.args[2]) if plan.adds else z
        panels = blocked(plan.matrices, self.target) if self._by_panels(plan) else None
        scratch: Operand = NULL
        if plan.is_small or panels is not None:
            text, declared = (panels.body, panels.declared) if panels else small_product(plan.matrices, self.target)
            name = self._named(text)
            self.declared |= declared
            scratch = self._at(("scratch", n.number))
        elif plan.adds and n.number not in self.over:
            code.declared.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            code.call_void("llvm.memmove.p0.p0.i64", [z, c, whole(n.nbytes), Constant("i1", "false")])

        def call(code: CallList, a: Operand, b: Operand, c: Operand, z: Operand, scratch: Operand) -> None:
            if plan.is_small:
                code.call_void(name, [a, b, c, z, scratch])
            elif panels is not None:
                code.call_void(name, [a, b, c, z, whole(0), whole(panels.rows), scratch, scratch])
            else:
                self.declared.add(declaration(n.dtype))
                call_blas(code, plan, a, b, z)

        if self._product_workers(plan) > 1:
            w = panels if panels is not None and not plan.loop else batched(plan, call, self._product_scratch(plan))
            self._by_threads(code, self._named(w.body), w, [a, b, c, z, scratch, scratch], product_cost(plan))
            return

        def looped(axes: list[int], pointers: list[Operand]) -> None:
            if not axes:
                call(code, *pointers)
                return
            i, *rest = axes
            with code.loop("0", plan.loop[i]) as at:
                ahead = [*(s[i] for s in plan.steps), plan.out[i], plan.out[i], 0]
                moved = [
                    Local("ptr", code.op(f"getelementptr {t}, ptr {code.pointer(p)}, i64 {code.times(at, s)}"))
                    if s
                    else p
                    for p, s in zip(pointers, ahead, strict=True)
                ]
                looped(rest, moved)

        given: list[Operand] = [a, b, c, z, scratch]
        if plan.loop:  # computed once, before the loop
            given = [Local("ptr", code.pointer(p)) for p in given]
        looped([*range(len(plan.loop))], given)

    def _call_windows(self, code: CallList, n: Node) -> None:
        call_windows(self, code, n, *(self._at((what, n.number)) for what in ("partial", "scratch")))


# How the steps that are no kernels are emitted.
CALLS: dict[Kind, Callable[[Assembler, CallList, Node], None]] = {
    SCAN: Assembler._call_scan,
    SCATTER: Assembler._call_scatter,
    SPACED: Assembler._call_spaced,
    WINDOWS: Assembler._call_windows,
    PRODUCT: Assembler._call_product,
}


def whole(value: int) -> Constant:
    """A whole number as an operand."""
    return Constant("i64", str(value))


def parts_of(w: Written) -> int:
    """In how many parts a kernel is done."""
    return max(1, -(-w.rows // w.part)) if w.rows else 1


def described(k: Kernel, w: Written) -> str:
    """A kernel in a line, for whoever reads a program."""
    names = ", ".join(n.name for n in k.nodes)
    return f"kernel {list(k.axes)}{f' by rows of {list(k.axes[k.split :])}' if k.split else ''}: {names}"
