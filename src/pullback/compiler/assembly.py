"""Kernels and calls as one module: functions, the order they are called in, and where every value lies.

A value lies in one of the arrays that the program is given (``slots``: inputs, outputs, constants, what opaque ops
give), or in the arena, planned by lifetime: what is no longer used makes room for what comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from pullback.compiler.alike import Alike
from pullback.compiler.blocked import blocked, is_blocked
from pullback.compiler.code import FLOATS, Code, code_of
from pullback.compiler.fuse import Fused, Kernel, fused, is_number, layout
from pullback.compiler.graph import Graph, Node
from pullback.compiler.kernels import Written
from pullback.compiler.products import Plan, blas_call, declaration, planned, small_product
from pullback.compiler.rolled import rolled
from pullback.compiler.scans import scanned
from pullback.compiler.scatter import ScatterAdd, Spaced
from pullback.compiler.sharing import WORTH_SHARING, WORTH_WAKING, batched, cost, product_cost, task

ALIGN = 64


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


def rounded(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


class Assembler:
    """Puts a module together."""

    def __init__(self, graph: Graph, lanes: int, threads: int = 1) -> None:
        self.graph, self.lanes = graph, lanes
        self.threads = threads  # at most; a negative number: exactly, whatever is set for all programs
        self.fused: Fused = fused(graph)
        self.made = Assembly()
        self.slot: dict[int, int] = {}
        self.touched: set[int] = set()  # slots, by the segment that is being written
        self.place: dict[int, int] = {}  # in the arena
        self.bodies: dict[str, str] = {}
        self.declared: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.writtens: dict[int, Written] = {}
        self.scans: dict[int, Written] = {}
        self.shared = 0  # what is shared out in the segment that is being written: its cost

    def run(self) -> Assembly:
        alike = Alike(self.fused, self.lanes)
        for step in self.fused.steps:
            if isinstance(step, Kernel):
                self.writtens[step.number] = alike.written(step)
            elif step.kind == "scan":
                self.scans[step.number] = scanned(step, self.lanes)
        self._lay_out()
        functions: list[str] = []
        code: Code | None = None
        for step in self.fused.steps:
            if isinstance(step, Node) and step.kind in ("opaque", "part"):
                if code is not None:
                    functions.append(self._closed(code))
                    code = None
                if step.kind == "opaque":
                    self.made.described.append(f"{step.name} {list(step.shape)} by its NumPy kernel")
                    self.made.segments.append(Segment(opaque=step))
                continue
            code = code or Code()
            if isinstance(step, Kernel):
                self._call_kernel(code, step)
            elif step.kind == "scan":
                self._call_scan(code, step)
            elif step.kind in ("scatter", "spaced"):
                self._call_scatter(code, step)
            else:
                self._call_product(code, step)
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

    def _closed(self, code: Code) -> str:
        name = f"run{len(self.made.segments)}"
        self.made.segments.append(Segment(name, slots=frozenset(self.touched)))
        self.touched.clear()
        if self.shared >= WORTH_WAKING:
            code.declared.add("declare void @rouse(i64)")
            code.lines.insert(0, f"call void @rouse(i64 {self.threads})")
        self.shared = 0
        self.declared |= code.declared
        lines, parts = rolled(code.lines, f"{name}_calls")
        if parts:
            self.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        return "\n".join([*parts, f"define void @{name}(ptr %slots, ptr %arena) {{", "entry:", *lines, "ret void", "}"])

    # ---- where everything lies

    def _lay_out(self) -> None:
        for n in [*self.graph.inputs, *self.graph.outputs]:
            if n.number not in self.slot and n.kind != "constant":
                self._give_slot(n)
        users = self.graph.users()
        for n in self.graph.nodes:
            if n.kind == "constant":
                if not is_number(n) or any(u.kind not in ("map", "cast", "fold") for u in users[n.number]):
                    self._give_slot(n)
            elif n.kind in ("opaque", "part"):
                for m in (n, *n.args):
                    if m.number not in self.slot and m.kind != "constant":
                        self._give_slot(m)
        last: dict[int, int] = {}
        for at, step in enumerate(self.fused.steps):
            for n in self._touched(step):
                last[n.number] = at
        taken: list[tuple[int, int, int]] = []  # offset, size, last step
        for at, step in enumerate(self.fused.steps):
            taken = [t for t in taken if t[2] >= at]
            for n in step.nodes if isinstance(step, Kernel) else [step]:
                if n.number in self.fused.stored and n.number not in self.slot:
                    over = self._over(n, last, at) if n.kind == "product" else None
                    if over is None:
                        self.place[n.number] = self._room(taken, rounded(n.nbytes), last.get(n.number, at))
                    else:
                        self.place[n.number] = self.place[over.number]
                        taken.append((self.place[n.number], rounded(n.nbytes), last.get(n.number, at)))
            if isinstance(step, Kernel):
                w = self.writtens[step.number]
                parts = max(1, -(-w.rows // w.part)) if w.rows else 1
                self.place[-1 - 2 * step.number] = self._room(taken, rounded(w.partial * parts), at)
                self.place[-2 - 2 * step.number] = self._room(taken, rounded(w.scratch) * self._workers(step), at)
            elif step.kind == "scan":
                need = rounded(self.scans[step.number].scratch) * self._scan_workers(step)
                self.place[-1 - 2 * len(self.fused.steps) - step.number] = self._room(taken, need, at)
            elif step.kind == "product":
                plan = planned(step)
                room = self._room(taken, self._product_scratch(plan) * self._product_workers(plan), at)
                self.place[-1 - 2 * len(self.fused.steps) - step.number] = room

    def _over(self, n: Node, last: dict[int, int], at: int) -> Node | None:
        """What a product is added to, if nobody asks for that afterwards: the sum may lie where it lay."""
        if len(n.args) < 3 or n.args[2].number not in self.place or last[n.args[2].number] != at:
            return None
        return n.args[2]

    def _give_slot(self, n: Node) -> None:
        self.slot[n.number] = len(self.made.slots)
        self.made.slots.append(n)

    def _touched(self, step: Any) -> list[Node]:
        if isinstance(step, Kernel):
            return [*self.writtens[step.number].arrays]
        return [step, *(layout(a)[0] if step.kind == "product" else a for a in step.args)]

    def _room(self, taken: list[tuple[int, int, int]], size: int, until: int) -> int:
        """The first gap that is wide enough."""
        taken.sort()
        at = 0
        for offset, length, _ in taken:
            if offset - at >= size:
                break
            at = max(at, offset + length)
        if size:
            taken.append((at, size, until))
        self.made.arena = max(self.made.arena, at + size)
        return at

    def _pointer(self, code: Code, n: Node, offset: int = 0) -> str:
        if n.number in self.slot:
            self.touched.add(self.slot[n.number])
            at = code.op(f"getelementptr ptr, ptr %slots, i64 {self.slot[n.number]}")
            base = code.op(f"load ptr, ptr {at}")
        else:
            base = code.op(f"getelementptr i8, ptr %arena, i64 {self.place[n.number]}")
        return base if not offset else code.op(f"getelementptr i8, ptr {base}, i64 {offset * n.dtype.itemsize}")

    # ---- calls

    def _named(self, body: str) -> str:
        """The name of a function; the same text is the same function."""
        return self.bodies.setdefault(body, f"k{len(self.bodies)}")

    def _call_kernel(self, code: Code, k: Kernel) -> None:
        w = self.writtens[k.number]
        self.made.kernels += 1
        self.made.described.append(described(k, w))
        if not w.rows:
            return
        self.declared |= w.declared
        self.helpers.update(w.helpers)
        name = self._named(w.body)
        after = [n for n in k.nodes if k.levels[n.number] == "after"]
        arrays = w.arrays[: len(w.arrays) - len(after)]
        given = [f"ptr {self._pointer(code, n)}" for n in arrays]
        args = "".join(f"{pointer}, " for pointer in given)
        partial = code.op(f"getelementptr i8, ptr %arena, i64 {self.place[-1 - 2 * k.number]}")
        scratch = code.op(f"getelementptr i8, ptr %arena, i64 {self.place[-2 - 2 * k.number]}")
        parts = -(-w.rows // w.part)
        if self._workers(k) > 1:
            self._by_threads(code, name, w, [*given, f"ptr {partial}", f"ptr {scratch}"], cost(k))
        elif parts == 1:
            code.line(f"call void @{name}({args}i64 0, i64 {w.rows}, ptr {partial}, ptr {scratch})")
        else:
            code.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
            with code.loop("0", parts) as p:
                lo = code.times(p, w.part)
                hi = code.op(f"call i64 @llvm.smin.i64(i64 {code.add(lo, str(w.part))}, i64 {w.rows})")
                mine = code.op(f"getelementptr i8, ptr {partial}, i64 {code.times(p, w.partial)}")
                code.line(f"call void @{name}({args}i64 {lo}, i64 {hi}, ptr {mine}, ptr {scratch})")
        if w.finish:
            outs = "".join(f"ptr {self._pointer(code, n)}, " for n in after)
            code.line(f"call void @{self._named(w.finish)}({outs}ptr {partial}, i64 {parts})")

    def _workers(self, k: Kernel) -> int:
        """How many threads may do parts of a kernel: one, if it is not worth the calling of others."""
        w = self.writtens[k.number]
        worth = cost(k) >= WORTH_SHARING
        return min(abs(self.threads), -(-w.rows // w.part)) if worth and w.rows else 1

    def _by_panels(self, plan: Plan) -> bool:
        return not plan.is_small and is_blocked(plan.matrices, self.lanes)

    def _product_scratch(self, plan: Plan) -> int:
        return rounded(blocked(plan.matrices, self.lanes).scratch if self._by_panels(plan) else plan.matrices.scratch)

    def _product_workers(self, plan: Plan) -> int:
        """How many threads share a product, by its panels, or many products."""
        by_panels = self._by_panels(plan)
        if product_cost(plan) < WORTH_SHARING or not (by_panels or plan.is_small):
            return 1
        parts = prod(plan.loop) if plan.loop else blocked(plan.matrices, self.lanes).rows if by_panels else 1
        return min(abs(self.threads), parts)

    def _by_threads(self, code: Code, name: str, w: Written, given: list[str], its_cost: int) -> None:
        """Have the parts of a kernel done by whoever claims them; each thread has scratch memory of its own."""
        self.shared += its_cost
        context = code.op(f"alloca [{len(given)} x ptr]")
        for i, pointer in enumerate(given):
            code.line(f"store {pointer}, ptr {code.op(f'getelementptr ptr, ptr {context}, i64 {i}')}")
        body = task(name, w._replace(scratch=rounded(w.scratch)), len(given) - 2)
        head = "define internal void @KERNEL(ptr %context, i64 %part, i64 %worker) {\nentry:"
        function = self._named("\n".join([head, *body.lines, "ret void", "}"]))
        code.declared |= {*body.declared, "declare void @parallel(ptr, ptr, i64, i64, i1)"}
        how = f"i64 {-(-w.rows // w.part)}, i64 {self.threads}, i1 {str(its_cost >= WORTH_WAKING).lower()}"
        code.line(f"call void @parallel(ptr @{function}, ptr {context}, {how})")

    def _scan_workers(self, n: Node) -> int:
        w = self.scans[n.number]
        return min(abs(self.threads), -(-w.rows // w.part)) if cost(n) >= WORTH_SHARING else 1

    def _call_scan(self, code: Code, n: Node) -> None:
        self.made.described.append(f"{n.name} {list(n.args[0].shape)} along {n.data[1]['axis']}")
        w = self.scans[n.number]
        name = self._named(w.body)
        self.declared |= w.declared
        scratch = code.op(f"getelementptr i8, ptr %arena, i64 {self.place[-1 - 2 * len(self.fused.steps) - n.number]}")
        given = [f"ptr {p}" for p in (*(self._pointer(code, x) for x in w.arrays), scratch, scratch)]
        if self._scan_workers(n) > 1:
            self._by_threads(code, name, w, given, cost(n))
        else:
            *arrays, partial, scratch = given
            code.line(f"call void @{name}({', '.join(arrays)}, i64 0, i64 {w.rows}, {partial}, {scratch})")

    def _call_scatter(self, code: Code, n: Node) -> None:
        self.made.described.append(f"{n.kind} {list(n.args[0].shape)} into {list(n.shape)}")
        given = [f"ptr {self._pointer(code, x)}" for x in (*n.args, n)]
        if n.kind != "scatter":
            spaced = Spaced(n, self.lanes)
            name = self._named(spaced.text())
            self.declared |= spaced.code.declared
            code.line(f"call void @{name}({', '.join(given)})")
            return
        workers = min(abs(self.threads), n.shape[0]) if cost(n) >= WORTH_SHARING else 1
        w = ScatterAdd(n, self.lanes).written(max(workers, 1))
        name = self._named(w.body)
        self.declared |= w.declared
        if workers > 1:
            self._by_threads(code, name, w, [*given, "ptr null", "ptr null"], cost(n))
        else:
            code.line(f"call void @{name}({', '.join(given)}, i64 0, i64 {w.rows}, ptr null, ptr null)")

    def _call_product(self, code: Code, n: Node) -> None:
        plan = planned(n)
        self.made.described.append(
            f"product {list(n.args[0].shape)} @ {list(n.args[1].shape)}{' added' if plan.adds else ''}"
        )
        if not n.size:
            return
        pointers = [self._pointer(code, base, offset) for base, offset in plan.bases]
        z = self._pointer(code, n)
        t = FLOATS[code_of(n.dtype)]
        c = self._pointer(code, n.args[2]) if plan.adds else z
        panels = blocked(plan.matrices, self.lanes) if self._by_panels(plan) else None
        scratch = "null"
        if plan.is_small or panels is not None:
            text, declared = (panels.body, panels.declared) if panels else small_product(plan.matrices, self.lanes)
            name = self._named(text)
            self.declared |= declared
            scratch = code.op(
                f"getelementptr i8, ptr %arena, i64 {self.place[-1 - 2 * len(self.fused.steps) - n.number]}"
            )
        elif plan.adds and c != z:
            code.declared.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            code.line(f"call void @llvm.memmove.p0.p0.i64(ptr {z}, ptr {c}, i64 {n.nbytes}, i1 false)")

        def call(code: Code, a: str, b: str, c: str, z: str, scratch: str) -> None:
            if plan.is_small:
                code.line(f"call void @{name}(ptr {a}, ptr {b}, ptr {c}, ptr {z}, ptr {scratch})")
            elif panels is not None:
                given = ", ".join(f"ptr {x}" for x in (a, b, c, z))
                code.line(f"call void @{name}({given}, i64 0, i64 {panels.rows}, ptr {scratch}, ptr {scratch})")
            else:
                self.declared.add(declaration(n.dtype))
                code.line(blas_call(plan, a, b, z))

        if self._product_workers(plan) > 1:
            w = panels if panels is not None and not plan.loop else batched(plan, call, self._product_scratch(plan))
            given = [f"ptr {x}" for x in (*pointers, c, z, scratch, scratch)]
            self._by_threads(code, self._named(w.body), w, given, product_cost(plan))
            return

        def looped(axes: list[int], a: str, b: str, c: str, z: str) -> None:
            if not axes:
                call(code, a, b, c, z, scratch)
                return
            i, *rest = axes
            with code.loop("0", plan.loop[i]) as at:
                ahead = [*(s[i] for s in plan.steps), plan.out[i], plan.out[i]]
                moved = [
                    code.op(f"getelementptr {t}, ptr {p}, i64 {code.times(at, s)}") if s else p
                    for p, s in zip((a, b, c, z), ahead, strict=True)
                ]
                looped(rest, *moved)

        looped([*range(len(plan.loop))], pointers[0], pointers[1], c, z)


def described(k: Kernel, w: Written) -> str:
    """A kernel in a line, for whoever reads a program."""
    names = ", ".join(n.name for n in k.nodes)
    return f"kernel {list(k.axes)}{f' by rows of {list(k.axes[k.split :])}' if k.split else ''}: {names}"
