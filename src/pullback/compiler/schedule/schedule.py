"""The schedule stage: plan how each step is computed and the memory that it needs, and order the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.compiler.ir.graph import Graph, Node, is_number
from pullback.compiler.ir.kinds import (
    FOURIER,
    INPUT,
    JOIN,
    LOOP,
    MATRICES,
    OPAQUE,
    PART,
    PRODUCT,
    RESULT,
    ROWS,
    SCAN,
    SCATTER,
    SPACED,
    SPLIT,
    VIEW,
    WINDOWS,
    Kind,
)
from pullback.compiler.ir.structured import Loop
from pullback.compiler.schedule.deduplicate_kernels import LoopPlanner, PlannedLoops
from pullback.compiler.schedule.fourier import plan_fourier
from pullback.compiler.schedule.fuse import Fused, Kernel, find_stored_base, fuse
from pullback.compiler.schedule.matrices import find_overwritable_right_sides, plan_matrices
from pullback.compiler.schedule.memory import plan_memory
from pullback.compiler.schedule.order import ScheduledStep, order_steps
from pullback.compiler.schedule.products import schedule_product
from pullback.compiler.schedule.rows import plan_rows
from pullback.compiler.schedule.scans import plan_scan
from pullback.compiler.schedule.scatters import plan_scatter, plan_spaced
from pullback.compiler.schedule.structures import IN_REGISTERS, BodyPlan, plan_structure
from pullback.compiler.schedule.windows import WindowCall, plan_windows
from pullback.compiler.schedule.work import Work, estimate_time
from pullback.compiler.target import Options, Target

STACK_BYTES = 512  # of partial results up to which they are on the stack


class KernelPlan(NamedTuple):
    """The plan of a loop kernel."""

    loops: PlannedLoops
    work: Work
    is_on_stack: bool  # whether partial results are on the stack

    def __str__(self) -> str:
        return f"{self.loops.plan}, {self.work}"


def schedule(fused: Fused, outputs: Sequence[Node], target: Target, options: Options) -> tuple[ScheduledStep, ...]:
    """Return the steps of a program in the order in which they run, each with its plan and the memory it needs."""
    planner = StepPlanner(fused, target, options)
    # loops and branches write results
    steps = [s for s in fused.steps if isinstance(s, Kernel) or s.kind is not RESULT]
    return order_steps([planner.plan(step) for step in steps], outputs)


class StepPlanner:
    """Plans the steps of a program one by one."""

    def __init__(self, fused: Fused, target: Target, options: Options) -> None:
        self.fused, self.target, self.options = fused, target, options
        self.loops = LoopPlanner(fused, target)

    def plan(self, step: Kernel | Node) -> ScheduledStep:
        """Return a kernel or a node as a step."""
        if isinstance(step, Kernel):
            return self._plan_kernel(step)
        if step.kind.has_bodies:
            return self._plan_bodies(step)
        rules = CALL_RULES[step.kind]
        plan = rules.plan(step, self.target, self.options)
        scratch = rules.count_scratch(plan)
        read = tuple(find_stored_base(step, a) for a in step.args)
        x = rules.find_overwritable(step, read)
        overwritable = frozenset() if x is None else frozenset({(step.number, x.number)})
        return _make_step(step, plan, (step,), read, scratch, overwritable)

    def _plan_bodies(self, n: Node) -> ScheduledStep:
        """Return a loop or branches as a step."""
        results = tuple(s for s in self.fused.steps if isinstance(s, Node) and s.kind is RESULT and s.args[0] is n)
        read = tuple(find_stored_base(n, a) for a in n.args)
        if n.kind is LOOP and _is_scalar_loop(n.data):
            return _make_step(n, IN_REGISTERS, results, read, {})
        bodies = tuple(self._plan_body(body) for body in n.data.bodies)
        plan = plan_structure(n, bodies, {r.data for r in results})
        return _make_step(n, plan, results, read, {"scratch": plan.scratch_bytes})

    def _plan_body(self, graph: Graph) -> BodyPlan:
        options = self.options._replace(guarded=False)
        steps = schedule(fuse(graph), graph.outputs, self.target, options)
        return BodyPlan(graph, steps, plan_memory(graph, steps))

    def _plan_kernel(self, k: Kernel) -> ScheduledStep:
        loops, options = self.loops.plan(k), self.options
        work = loops.plan.work.share(estimate_time(k), options.threads)
        left = work.partial * work.parts
        is_on_stack = not options.guarded and left <= STACK_BYTES
        own = {n.number for n in k.nodes}
        stored = tuple(n for n in k.nodes if n.number in self.fused.stored)
        read = tuple(n for n in loops.arrays if n.number not in own)
        scratch = {"partial": 0 if is_on_stack else left, "scratch": work.scratch_bytes}
        plan = KernelPlan(loops, work, is_on_stack)
        # Elements of what is read from an offset would be written elsewhere.
        pairs = ((loops.arrays[z], loops.arrays[x]) for z, x in loops.overwritable if not loops.offsets[x])
        overwritable = frozenset((z.number, x.number) for z, x in pairs)
        return _make_step(k, plan, stored, read, scratch, overwritable)


def _make_step(
    source: Kernel | Node,
    plan: Any,
    stored: tuple[Node, ...],
    read: tuple[Node, ...],
    scratch: dict[str, int],
    overwritable: frozenset[tuple[int, int]] = frozenset(),
) -> ScheduledStep:
    fixed = isinstance(source, Node) and source.kind.runs_on_host
    needed = tuple((name, size) for name, size in scratch.items() if size)
    return ScheduledStep(source, plan, stored, read, fixed, needed, overwritable)


def _is_scalar_loop(loop: Loop) -> bool:
    """Return whether the steps of a loop compute single numbers; of constants that are arrays they read elements."""
    constants = {x.number for x in loop.body.inputs[: loop.constants]}
    return all(
        (n.number in constants or n.size == 1)
        and (n.kind.is_elementwise or n.kind in (INPUT, VIEW) or is_number(n))
        and (n.kind is VIEW or not any(x.number in constants and x.size != 1 for x in n.args))
        for n in loop.body.nodes
    ) and all(x.size == 1 for x in loop.body.outputs)


def _count_scratch(plan: Any) -> dict[str, int]:
    """Return the scratch memory of a plan with work that threads share."""
    return {"scratch": plan.work.scratch_bytes}


def _count_no_scratch(plan: object) -> dict[str, int]:
    return {}


def _count_window_bytes(calls: tuple[WindowCall, ...]) -> dict[str, int]:
    works = [c.work for c in calls]
    return {"partial": max(w.partial * w.parts for w in works), "scratch": max(w.scratch_bytes for w in works)}


def _overwrite_nothing(n: Node, read: tuple[Node, ...]) -> None:
    """Return no node: the result is written to memory of its own."""


def _find_accumulator(n: Node, read: tuple[Node, ...]) -> Node | None:
    """Return what a call adds to and may write its sums over: None if it also reads that otherwise, as h @ w + h."""
    return read[2] if len(read) > 2 and read[2] not in read[:2] else None


class CallRules(NamedTuple):
    """How calls of one kind are planned."""

    plan: Callable[[Node, Target, Options], Any]
    count_scratch: Callable[[Any], dict[str, int]] = _count_scratch  # names and bytes of the memory that a plan needs
    # What the result may be written over, of a node and what it reads.
    find_overwritable: Callable[[Node, tuple[Node, ...]], Node | None] = _overwrite_nothing


NO_PLAN = CallRules(lambda n, target, options: None, _count_no_scratch)  # all is known from the node
CALL_RULES: dict[Kind, CallRules] = {
    SCAN: CallRules(plan_scan),
    ROWS: CallRules(plan_rows),
    FOURIER: CallRules(plan_fourier),
    SCATTER: CallRules(plan_scatter, _count_no_scratch, _find_accumulator),
    SPACED: CallRules(plan_spaced, _count_no_scratch),
    WINDOWS: CallRules(plan_windows, _count_window_bytes),
    MATRICES: CallRules(plan_matrices, find_overwritable=find_overwritable_right_sides),
    PRODUCT: CallRules(schedule_product, find_overwritable=_find_accumulator),
    **dict.fromkeys((SPLIT, JOIN, OPAQUE, PART), NO_PLAN),
}
