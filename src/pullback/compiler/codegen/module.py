"""The module of a program: functions that call its kernels, in order, with the addresses of their arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.compiler.builder import FLOATS, code_of
from pullback.compiler.codegen.call_table import ARENA, STACK, Address, CallList, Constant, Local, Operand
from pullback.compiler.codegen.gemm.panels import blocked
from pullback.compiler.codegen.gemm.small import blas_name, call_blas, declaration, emit_small_product
from pullback.compiler.codegen.kernel_code import Function, KernelCode, make_function
from pullback.compiler.codegen.kernels import Kernels, count_parts
from pullback.compiler.codegen.parallel import WORTH_SHARING, WORTH_WAKING, batched, cost, emit_task, product_cost
from pullback.compiler.codegen.scatter import ScatterAdd, Spaced
from pullback.compiler.codegen.windows.calls import call_windows
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.kinds import OPAQUE, PRODUCT, SCAN, SCATTER, SPACED, WINDOWS, Kind
from pullback.compiler.ir.products import planned
from pullback.compiler.schedule.arena import rounded
from pullback.compiler.schedule.fuse import Kernel
from pullback.compiler.schedule.memory import Memory
from pullback.compiler.schedule.order import Step
from pullback.compiler.target import ALIGN

__all__ = ["Module", "Segment", "emit_module"]

NULL = Constant("ptr", "null")


@dataclass(frozen=True)
class Segment:
    """Steps between two host ops, as one function; or a host op."""

    name: str = ""
    host_op: Node | None = None
    slots: frozenset[int] = frozenset()  # those that it reads or writes


@dataclass(frozen=True)
class Module:
    """A program in LLVM's language: its text, the functions to call, and the library functions that these call."""

    text: str
    segments: tuple[Segment, ...]
    imports: tuple[str, ...]
    described: tuple[str, ...]  # what each step does, in a line

    def __str__(self) -> str:
        return self.text


def emit_module(kernels: Kernels, steps: Sequence[Step], memory: Memory) -> Module:
    """Return the module of a program: its kernels, and functions that call them in the order of the steps."""
    return Emitter(kernels, memory).emit(steps)


class Emitter:
    """Puts a module together."""

    def __init__(self, kernels: Kernels, memory: Memory) -> None:
        self.kernels, self.memory = kernels, memory
        self.target, self.threads = kernels.target, kernels.options.threads
        self.segments: list[Segment] = []
        self.described: list[str] = []
        self.imports: set[str] = set()
        self.touched: set[int] = set()  # slots, by the segment that is being written
        self.names: dict[Function, str] = {}
        self.declared: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.shared = 0  # what is shared out in the segment that is being written: its cost
        self.stack = 0  # bytes on the stack, in the segment that is being written

    def emit(self, steps: Sequence[Step]) -> Module:
        functions: list[str] = []
        code: CallList | None = None
        for step in (s.what for s in steps):
            if isinstance(step, Node) and step.kind.runs_on_host:
                if code is not None:
                    functions.append(self._closed(code))
                    code = None
                if step.kind is OPAQUE:
                    self.described.append(f"{step.name} {list(step.shape)} by its NumPy kernel")
                    self.segments.append(Segment(host_op=step))
                continue
            code = code or CallList()
            if isinstance(step, Kernel):
                self._call_kernel(code, step)
            else:
                CALLS[step.kind](self, code, step)
        if code is not None:
            functions.append(self._closed(code))
        bodies = [function.render(name) for function, name in self.names.items()]
        text = "\n".join([
            *sorted(self.declared), *self.helpers.values(), *bodies, *functions,
            '!0 = !{!"branch_weights", i32 1, i32 100000}', "",
        ])  # fmt: skip
        return Module(text, tuple(self.segments), tuple(sorted(self.imports)), tuple(self.described))

    def _closed(self, code: CallList) -> str:
        name = f"run{len(self.segments)}"
        self.segments.append(Segment(name, slots=frozenset(self.touched)))
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

    # ---- addresses

    def _pointer(self, n: Node, offset: int = 0) -> Address:
        """Where a value lies, from one of its elements on."""
        base = self._slot(self.memory.slot[n.number]) if n.number in self.memory.slot else self._at(n.number)
        return base.further(offset * n.dtype.itemsize)

    def _slot(self, slot: int, offset: int = 0, rounded: bool = False) -> Address:
        self.touched.add(slot)
        return Address.of_slot(slot, offset, rounded)

    def _at(self, key: Any) -> Address:
        """The room of a value, in the arena or in a result; of one that needs none, somewhere."""
        room = self.memory.layout.rooms.get(key)
        if room is None or room.slot < 0:
            return Address(ARENA, room.offset if room else 0)
        return self._slot(room.slot, room.offset + ALIGN - 1, True) if room.lined else self._slot(room.slot)

    # ---- calls

    def _name(self, function: Function) -> str:
        """Return the name of a function, which becomes part of the module; equal ones have one name."""
        return self.names.setdefault(function, f"k{len(self.names)}")

    def _call_kernel(self, code: CallList, k: Kernel) -> None:
        w = self.kernels.written[k.number]
        self.described.append(k.name)
        if not w.rows:
            return
        self.declared |= w.declared
        self.helpers.update(w.helpers)
        name = self._name(self._alias_overwritten(k, w))
        after = [n for n in k.nodes if k.levels[n.number] == "after"]
        arrays = w.arrays[: len(w.arrays) - len(after)]
        given: list[Operand] = [self._pointer(n, at) for n, at in zip(arrays, w.offsets, strict=True)]
        partial, parts = self._at(("partial", k.number)), count_parts(w)
        scratch = self._at(("scratch", k.number))
        if w.partial and self.kernels.is_on_stack(w):
            self.stack, partial = max(self.stack, w.partial * parts), Address(STACK)
        if self.kernels.count_workers(k) > 1:
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
            code.call_void(self._name(w.finish), [*map(self._pointer, after), partial, whole(parts)])

    def _alias_overwritten(self, k: Kernel, w: KernelCode) -> Function:
        """Return the function of a kernel, which takes what it writes over something else by the address of that."""
        over = self.memory.over
        places: dict[Hashable, int] = {n.number: i for i, n in enumerate(w.arrays)}
        pairs = [(places[n.number], places[over[n.number]]) for n in k.nodes if n.number in over]
        return w.function._replace(aliases=tuple(pairs))

    def _by_threads(self, code: CallList, name: str, w: KernelCode, given: list[Operand], its_cost: int) -> None:
        """Have the parts of a kernel done by whoever claims them; each thread has scratch memory of its own."""
        self.shared += its_cost
        context = code.op(f"alloca [{len(given)} x ptr]")
        for i, x in enumerate(given):
            pointer = code.pointer(x)
            code.line(f"store ptr {pointer}, ptr {code.op(f'getelementptr ptr, ptr {context}, i64 {i}')}")
        task = emit_task(name, w._replace(scratch=rounded(w.scratch)), len(given) - 2)
        params = "ptr %context", "i64 %part", "i64 %worker"
        function = self._name(make_function(task, *params, attributes=""))
        code.declared |= {*task.declared, "declare void @parallel(ptr, ptr, i64, i64, i1)"}
        how = f"i64 {-(-w.rows // w.part)}, i64 {self.threads}, i1 {str(its_cost >= WORTH_WAKING).lower()}"
        self.imports.add("parallel")
        code.line(f"call void @parallel(ptr @{function}, ptr {context}, {how})")

    def _call_scan(self, code: CallList, n: Node) -> None:
        self.described.append(f"{n.name} {list(n.args[0].shape)} along {n.data[1]['axis']}")
        w = self.kernels.scans[n.number]
        name = self._name(w.function)
        self.declared |= w.declared
        scratch = self._at(("scratch", n.number))
        arrays = [self._pointer(x) for x in w.arrays]
        if self.kernels.count_scan_workers(n) > 1:
            self._by_threads(code, name, w, [*arrays, scratch, scratch], cost(n))
        else:
            code.call_void(name, [*arrays, whole(0), whole(w.rows), scratch, scratch])

    def _describe_scatter(self, n: Node) -> list[Operand]:
        self.described.append(f"{n.name} {list(n.args[0].shape)} into {list(n.shape)}")
        return [self._pointer(x) for x in (*n.args, n)]

    def _call_spaced(self, code: CallList, n: Node) -> None:
        given = self._describe_scatter(n)
        spaced = Spaced(n, self.target)
        name = self._name(spaced.write())
        self.declared |= spaced.code.declared
        code.call_void(name, given)

    def _call_scatter(self, code: CallList, n: Node) -> None:
        given = self._describe_scatter(n)
        workers = min(abs(self.threads), n.shape[0]) if cost(n) >= WORTH_SHARING else 1
        w = ScatterAdd(n, self.target).write(max(workers, 1))
        name = self._name(w.function)
        self.declared |= w.declared
        if workers > 1:
            self._by_threads(code, name, w, [*given, NULL, NULL], cost(n))
        else:
            code.call_void(name, [*given, whole(0), whole(w.rows), NULL, NULL])

    def _call_product(self, code: CallList, n: Node) -> None:
        plan = planned(n)
        self.described.append(
            f"product {list(n.args[0].shape)} @ {list(n.args[1].shape)}{' added' if plan.adds else ''}"
        )
        if not n.size:
            return
        a, b = (self._pointer(base, offset) for base, offset in plan.bases)
        z = self._pointer(n)
        t = FLOATS[code_of(n.dtype)]
        c = self._pointer(n.args[2]) if plan.adds else z
        panels = blocked(plan.matrices, self.target) if self.kernels.is_by_panels(plan) else None
        scratch: Operand = NULL
        if plan.is_small or panels is not None:
            function, declared = (
                (panels.function, panels.declared) if panels else emit_small_product(plan.matrices, self.target)
            )
            name = self._name(function)
            self.declared |= declared
            scratch = self._at(("scratch", n.number))
        elif plan.adds and n.number not in self.memory.over:
            code.declared.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            code.call_void("llvm.memmove.p0.p0.i64", [z, c, whole(n.nbytes), Constant("i1", "false")])

        def call(code: CallList, a: Operand, b: Operand, c: Operand, z: Operand, scratch: Operand) -> None:
            if plan.is_small:
                code.call_void(name, [a, b, c, z, scratch])
            elif panels is not None:
                code.call_void(name, [a, b, c, z, whole(0), whole(panels.rows), scratch, scratch])
            else:
                self.declared.add(declaration(n.dtype))
                self.imports.add(blas_name(n.dtype))
                call_blas(code, plan, a, b, z)

        if self.kernels.count_product_workers(plan) > 1:
            each = self.kernels.count_product_scratch(plan)
            w = panels if panels is not None and not plan.loop else batched(plan, call, each)
            self._by_threads(code, self._name(w.function), w, [a, b, c, z, scratch, scratch], product_cost(plan))
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
CALLS: dict[Kind, Callable[[Emitter, CallList, Node], None]] = {
    SCAN: Emitter._call_scan,
    SCATTER: Emitter._call_scatter,
    SPACED: Emitter._call_spaced,
    WINDOWS: Emitter._call_windows,
    PRODUCT: Emitter._call_product,
}


def whole(value: int) -> Constant:
    """A whole number as an operand."""
    return Constant("i64", str(value))
