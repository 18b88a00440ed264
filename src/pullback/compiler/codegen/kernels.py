"""The steps of a program as functions in LLVM's language: what each reads and stores, and the memory it needs.

When they are called, and where their arrays are, is decided after this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

from pullback.compiler.codegen.deduplicate_kernels import KernelDeduplicator
from pullback.compiler.codegen.gemm.panels import emit_panels, is_panel_product
from pullback.compiler.codegen.kernel_code import Function, KernelCode
from pullback.compiler.codegen.parallel import WORTH_SHARING, estimate_product_time, estimate_time
from pullback.compiler.codegen.scan import emit_scan
from pullback.compiler.codegen.windows.workers import count_window_bytes
from pullback.compiler.ir.graph import Graph, Node
from pullback.compiler.ir.kinds import LOOP, PRODUCT, RESULT, SCAN, SWITCH, WHILE, WINDOWS, Kind
from pullback.compiler.ir.products import ProductPlan, find_operand, plan_product
from pullback.compiler.schedule.arena import round_up
from pullback.compiler.schedule.fuse import Fused, Kernel, fuse
from pullback.compiler.schedule.in_place import InPlace
from pullback.compiler.schedule.loops import LoopPlan
from pullback.compiler.schedule.memory import Memory, plan_memory
from pullback.compiler.schedule.order import Step, schedule
from pullback.compiler.target import Options, Target

__all__ = ["Kernels", "count_parts", "emit_kernels"]

STACK_BYTES = 512  # that a program takes from the stack for sums of parts


@dataclass(frozen=True)
class BodyCode:
    """The body of a loop or a branch: its graph, its functions, its steps in order, and its memory."""

    graph: Graph
    kernels: Kernels
    steps: tuple[Step, ...]
    memory: Memory


@dataclass(frozen=True)
class Kernels:
    """The functions of the kernels and scans of a program, by their numbers, and its steps."""

    target: Target
    options: Options
    written: dict[int, KernelCode]
    scans: dict[int, KernelCode]
    bodies: dict[int, tuple[BodyCode, ...]]  # of loops and branches
    steps: tuple[Step, ...]

    def count_workers(self, k: Kernel) -> int:
        """Return how many threads may do parts of a kernel: one, if it is not worth the calling of others."""
        w = self.written[k.number]
        worth = estimate_time(k) >= WORTH_SHARING
        return min(abs(self.options.threads), -(-w.rows // w.part)) if worth and w.rows else 1

    def count_scan_workers(self, n: Node) -> int:
        """Return how many threads may do parts of a scan."""
        w = self.scans[n.number]
        return min(abs(self.options.threads), -(-w.rows // w.part)) if estimate_time(n) >= WORTH_SHARING else 1

    def count_product_workers(self, plan: ProductPlan) -> int:
        """Return how many threads share a product, by its panels, or many products."""
        by_panels = self.is_by_panels(plan)
        if estimate_product_time(plan) < WORTH_SHARING or not (by_panels or plan.is_small):
            return 1
        parts = prod(plan.loop) if plan.loop else emit_panels(plan.matrices, self.target).rows if by_panels else 1
        return min(abs(self.options.threads), parts)

    def is_by_panels(self, plan: ProductPlan) -> bool:
        """Return whether a product is done by panels, in code of ours, rather than by BLAS."""
        return not plan.is_small and is_panel_product(plan.matrices, self.target)

    def count_product_scratch(self, plan: ProductPlan) -> int:
        """Return the bytes that one thread needs for a product."""
        if plan.is_tiny:
            return 0
        by_panels = self.is_by_panels(plan)
        return round_up(emit_panels(plan.matrices, self.target).scratch if by_panels else plan.matrices.scratch)

    def is_on_stack(self, w: KernelCode) -> bool:
        """Return whether what the parts of a kernel leave is little: a register or two."""
        return not self.options.guarded and w.partial * count_parts(w) <= STACK_BYTES

    def __str__(self) -> str:
        found = [(s.what.name, self._find_function(s)) for s in self.steps]
        return "\n".join(
            f"{name}: {len(w.arrays)} arrays, {w.rows} rows in parts of {w.part}, {w.scratch} bytes of scratch"
            for name, w in found
            if w is not None
        )

    def _find_function(self, step: Step) -> KernelCode | None:
        return (self.written if isinstance(step.what, Kernel) else self.scans).get(step.number)


def count_parts(w: KernelCode) -> int:
    """Return in how many parts a kernel is done."""
    return max(1, -(-w.rows // w.part)) if w.rows else 1


def emit_kernels(fused: Fused, target: Target, options: Options) -> Kernels:
    """Return the kernels and scans of a program as functions, and its steps with what these need."""
    emitter = KernelDeduplicator(fused, target)
    written: dict[int, KernelCode] = {}
    scans: dict[int, KernelCode] = {}
    for step in fused.steps:
        if isinstance(step, Kernel):
            written[step.number] = emitter.emit(step)
        elif step.kind is SCAN:
            scans[step.number] = emit_scan(step, target)
    bodies = {
        n.number: tuple(emit_body(body, target, options) for body in n.data.bodies)
        for n in fused.steps
        if not isinstance(n, Kernel) and n.kind.has_bodies
    }
    kernels = Kernels(target, options, written, scans, bodies, ())
    overwrites = Overwrites(emitter.plans)
    steps = [_make_step(kernels, overwrites, fused, step) for step in fused.steps if not _is_result(step)]
    return Kernels(target, options, written, scans, bodies, tuple(steps))


def emit_body(graph: Graph, target: Target, options: Options) -> BodyCode:
    """Return the functions of the body of a loop or a branch; its values have no guard pages."""
    options = options._replace(guarded=False)
    kernels = emit_kernels(fuse(graph), target, options)
    steps = schedule(kernels.steps, graph.outputs)
    return BodyCode(graph, kernels, steps, plan_memory(graph, steps))


def _is_result(step: Kernel | Node) -> bool:
    return not isinstance(step, Kernel) and step.kind is RESULT


def _make_step(kernels: Kernels, overwrites: Overwrites, fused: Fused, step: Kernel | Node) -> Step:
    if isinstance(step, Kernel):
        w = kernels.written[step.number]
        own = {n.number for n in step.nodes}
        stored = tuple(n for n in step.nodes if n.number in fused.stored)
        read = tuple(n for n in w.arrays if n.number not in own)
        return Step(step, stored, read, False, (*_list_scratch(kernels, step),), partial(overwrites.allow, w))
    scratch = SCRATCH[step.kind](kernels, step) if step.kind in SCRATCH else ()
    if step.kind.has_bodies:
        results = tuple(n for n in fused.steps if _is_result(n) and n.args[0] is step)
        return Step(step, results, step.args, False, (*scratch,))
    if step.kind is PRODUCT:
        read = tuple(find_operand(a)[0] for a in step.args)
        return Step(step, (step,), read, False, (*scratch,), partial(_may_accumulate, read))
    return Step(step, (step,), step.args, step.kind.runs_on_host, (*scratch,))


def _list_scratch(kernels: Kernels, k: Kernel) -> Iterator[tuple[str, int]]:
    w = kernels.written[k.number]
    if w.partial and not kernels.is_on_stack(w):
        yield "partial", w.partial * count_parts(w)
    if w.scratch:
        yield "scratch", round_up(w.scratch) * kernels.count_workers(k)


def _list_scan_scratch(kernels: Kernels, n: Node) -> Iterator[tuple[str, int]]:
    if scratch := kernels.scans[n.number].scratch:
        yield "scratch", round_up(scratch) * kernels.count_scan_workers(n)


def _list_window_scratch(kernels: Kernels, n: Node) -> Iterator[tuple[str, int]]:
    sizes = count_window_bytes(n, kernels.target, kernels.options.threads)
    return ((what, size) for what, size in zip(("partial", "scratch"), sizes, strict=True) if size)


def _list_product_scratch(kernels: Kernels, n: Node) -> Iterator[tuple[str, int]]:
    plan = plan_product(n)
    if need := kernels.count_product_scratch(plan) * kernels.count_product_workers(plan):
        yield "scratch", need


def count_body_bytes(bodies: tuple[BodyCode, ...]) -> int:
    """Return the bytes that the bodies of a loop or of branches need, one at a time."""
    return max(round_up(body.memory.layout.arena) for body in bodies)


def _list_structure_scratch(kernels: Kernels, n: Node) -> Iterator[tuple[str, int]]:
    """Yield the memory for the bodies, and twice that of the results of one step: for the carry, and unused results."""
    bodies = kernels.bodies[n.number]
    own = sum(round_up(o.nbytes) for body in bodies for o in body.graph.outputs)
    yield "scratch", count_body_bytes(bodies) + 2 * own


# The memory that steps need while they run, by kind: names and bytes.
SCRATCH: dict[Kind, Callable[[Kernels, Node], Iterator[tuple[str, int]]]] = {
    SCAN: _list_scan_scratch,
    WINDOWS: _list_window_scratch,
    PRODUCT: _list_product_scratch,
    **dict.fromkeys((LOOP, WHILE, SWITCH), _list_structure_scratch),
}


def _may_accumulate(read: tuple[Node, ...], z: Node, x: Node) -> bool:
    """Return whether a product may be added to what is at ``x``: not if it reads that until the end, as h @ w + h."""
    return len(read) > 2 and x is read[2] and x is not read[0] and x is not read[1]


class Overwrites:
    """Which results of kernels may be written over what they read; the same for all kernels of the same text."""

    def __init__(self, plans: dict[Function, tuple[LoopPlan, tuple[Node, ...]]]) -> None:
        self.plans = plans
        self.orders: dict[Function, InPlace] = {}
        self.known: dict[tuple[Function, int, int], bool] = {}

    def allow(self, w: KernelCode, z: Node, x: Node) -> bool:
        """Return whether one array of a kernel may be written over another."""
        key = w.function, w.arrays.index(z), w.arrays.index(x)
        if w.offsets[key[2]]:  # it is read from further on than it would be written, whatever those like it do
            return False
        if key not in self.known:
            plan, arrays = self.plans[w.function]
            order = self.orders.get(w.function) or self.orders.setdefault(w.function, InPlace(plan))
            self.known[key] = order.allows(arrays[key[1]], arrays[key[2]])
        return self.known[key]
