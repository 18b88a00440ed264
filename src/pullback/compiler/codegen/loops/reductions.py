"""Reductions of loop kernels: accumulators in registers, or in memory for each column, and partial results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from pullback.compiler.builder import TYPES, Code, Definition, Value, Variable, code_of, literal, slice_lanes, vector
from pullback.compiler.codegen.kernel_code import Function, make_function
from pullback.compiler.codegen.loops.access import (
    ArrayAccess,
    get_memory_type,
    make_loaded_value,
    read_vector,
    write_vector,
)
from pullback.compiler.ir.graph import Node
from pullback.compiler.math.functions import VectorFunctions
from pullback.compiler.schedule.loops import LoopPlan


def identity(n: Node, width: int) -> str:
    """Return the initial value of a reduction; for sums 0, so that the sum of -0 alone is 0 as in NumPy."""
    return literal(n.data.op.lower.start, code_of(n.dtype), width)


def combine(code: Code, n: Node, total: Value, more: Value) -> Value:
    """Return an accumulated value combined with another one by the op of the reduction."""
    combined: Value = n.data.op.lower.emit(VectorFunctions(code), total, more)
    return combined


def reduce_lanes(code: Code, n: Node, v: Value) -> Value:
    """Return the lanes of a vector reduced to one number, halving the vector at each step; of bools, all at once."""
    if v.kind == "b" and v.width > 1:  # any and all, maximum and minimum: whether a lane differs from the identity
        bits = code.op(f"bitcast {v!r} to i{v.width}")
        compare = f"ne i{v.width} {bits}, 0" if identity(n, 1) == literal(0, "b1", 1) else f"eq i{v.width} {bits}, -1"
        return Value(code, code.op(f"icmp {compare}"), "b1", 1)
    while v.width > 1:
        half = v.width // 2
        v = combine(code, n, slice_lanes(v, 0, half), slice_lanes(v, half, half))
    return v


class Reductions:
    """Emits the accumulators of a kernel's reductions."""

    def __init__(self, code: Code, plan: LoopPlan, access: ArrayAccess) -> None:
        self.code, self.plan, self.access = code, plan, access
        # By node: accumulators of reductions along the row, or of a vector of columns; and of those over all axes.
        self.accumulators: dict[int, Variable] = {}
        self.totals: dict[int, Variable] = {}

    # ---- accumulators in registers

    def allocate(self, n: Node, width: int = 0) -> Variable:
        """Return a new accumulator, set to the identity."""
        width = width or self.plan.width
        return Variable(Value(self.code, identity(n, width), code_of(n.dtype), width))

    def accumulate(self, n: Node, to: Variable, v: Value) -> None:
        """Add a vector to an accumulator, which may have more lanes."""
        width = to.start.width
        if v.width < width:
            lanes = ", ".join(f"i32 {min(i, v.width)}" for i in range(width))
            wide = f"shufflevector {v!r}, {v.type} {identity(n, v.width)}, <{width} x i32> <{lanes}>"
            if v.width == 1:
                wide = f"insertelement {vector(TYPES[v.dtype], width)} {identity(n, width)}, {v!r}, i64 0"
            v = Value(self.code, self.code.op(wide), v.dtype, width)
        to.set(combine(self.code, n, to.get(), v))

    def add(self, n: Node, v: Value, mask: str | None, index: str) -> None:
        """Add the lanes of a vector that are set in the mask to a reduction; ``index`` is that of its accumulators."""
        accumulator = self.accumulators.get(n.number) or self.totals.get(n.number)
        is_lane_of_row = self.plan.is_transposed and n.number in self.accumulators
        if mask is not None and not is_lane_of_row:  # else each lane is a row, and missing rows do no harm
            name = self.code.op(f"select <{v.width} x i1> {mask}, {v.type} {v.name}, {v.type} {identity(n, v.width)}")
            v = Value(self.code, name, v.dtype, v.width)
        if accumulator is None:
            self._add_to_columns(n, v, index)
        else:
            self.accumulate(n, accumulator, v)

    def select_mask(self, condition: str, count: int, width: int) -> str:
        """Return the address of a mask: of the last ``count`` lanes under the condition, else of all lanes.

        A mask has four bytes per lane.  All are parts of one constant: lanes that are not set, then lanes that are.
        """
        code, name = self.code, f"lanes{width}"
        lanes = ", ".join(["i32 0"] * width + ["i32 -1"] * width)
        text = f"@{name} = internal constant [{2 * width} x i32] [{lanes}], align 64"
        code.add_helper(name, lambda: ({name: Definition(text)}, set()))
        every, last = (f"getelementptr (i8, ptr @{name}, i64 {4 * at})" for at in (width, count))
        return code.op(f"select i1 {condition}, ptr {last}, ptr {every}")

    def mask(self, n: Node, v: Value, address: str) -> Value:
        """Return a vector with the identity of a reduction in the lanes that are not set in the mask at an address."""
        if self.plan.is_column(n):  # a vector of columns has accumulators of its own
            return v
        code, width = self.code, v.width
        mask = code.op(f"load <{width} x i32>, ptr {address}, align 4")
        if v.bits == 64:
            mask = code.op(f"sext <{width} x i32> {mask} to <{width} x i64>")
        whole = f"<{width} x i{v.bits}>"
        if n.data.op.lower.start == 0:
            bits = code.op(f"bitcast {v!r} to {whole}") if v.kind == "f" else v.name
            chosen = code.op(f"and {whole} {bits}, {mask}")
            return v.like(code.op(f"bitcast {whole} {chosen} to {v.type}") if v.kind == "f" else chosen)
        is_set = code.op(f"icmp slt {whole} {mask}, zeroinitializer")
        return v.like(code.op(f"select <{width} x i1> {is_set}, {v!r}, {v.type} {identity(n, width)}"))

    # ---- reductions over rows, which are known when the part is done

    def begin_part(self) -> None:
        """Set the accumulators of a part to their initial values."""
        code, after = self.code, self.plan.after
        self.accumulators = {}
        self.totals = {n.number: self.allocate(n) for n in after if not self.plan.is_column(n)}
        for n in after:
            if self.plan.is_column(n):
                base = self._columns(n)
                with code.loop("0", self._count_columns(n)) as i:
                    at = self.access.find_element(n, base, i)
                    write_vector(code, Value(code, identity(n, 1), code_of(n.dtype), 1), at, None)

    def end_part(self) -> None:
        """Store the reductions of a part in its partial results, or in the results if it is the only part."""
        code, plan = self.code, self.plan
        for number, n in enumerate(plan.after):
            if not plan.is_column(n):
                at = self._partial(n) if plan.has_partial_results else f"%o{number}"
                write_vector(code, reduce_lanes(code, n, self.totals[n.number].get()), at, None)
        for n in plan.after:
            if plan.is_transposed and plan.is_column(n):
                with code.loop("0", n.size) as j:
                    at = self.access.find_tile_place(n.number, n, code.times(j, plan.block))
                    lanes = read_vector(code, at, n.dtype, plan.block, None)
                    total = reduce_lanes(code, n, lanes)
                    write_vector(code, total, self.access.find_element(n, self._partial(n), j), None)

    def load_columns(self, index: str, width: int) -> None:
        """Load the accumulators of a vector of columns into registers."""
        for n in self.plan.after:
            if self.plan.is_column(n):
                pointer = self.access.find_element(n, self._columns(n), index)
                self.accumulators[n.number] = accumulators = self.allocate(n, width)
                accumulators.set(read_vector(self.code, pointer, n.dtype, width, None))

    def store_columns(self, index: str) -> None:
        """Store the accumulators of a vector of columns."""
        for n in self.plan.after:
            if self.plan.is_column(n):
                pointer = self.access.find_element(n, self._columns(n), index)
                write_vector(self.code, self.accumulators.pop(n.number).get(), pointer, None)

    def _partial(self, n: Node) -> str:
        return self.code.at("i8", "%partial", self.plan.partial_at[n.number])

    def _columns(self, n: Node) -> str:
        """Return the address of the accumulators of a reduction over rows, one for each column."""
        return self.access.find_tile_place(n.number, n, "0") if self.plan.is_transposed else self._partial(n)

    def _count_columns(self, n: Node) -> int:
        """Return the number of accumulators of a reduction over rows, up to the end of the last vector."""
        if self.plan.is_transposed:
            return n.size * self.plan.block
        return self.plan.count_partial_bytes(n) // n.dtype.itemsize

    def _add_to_columns(self, n: Node, v: Value, index: str) -> None:
        pointer = self.access.find_element(n, self._columns(n), self.access.find_accumulator(index))
        old = read_vector(self.code, pointer, n.dtype, v.width, None)
        write_vector(self.code, combine(self.code, n, old, v), pointer, None)


def _each(code: Code, count: int) -> AbstractContextManager[str]:
    """Emit a loop over indices below ``count``; nothing for a single one."""
    return code.loop("0", count) if count > 1 else nullcontext("0")


def emit_finish(code: Code, plan: LoopPlan, results: Sequence[str], partial: str, parts: int | str) -> None:
    """Emit the combination of the partial results of a kernel, in order, into results at these addresses."""
    size = sum(map(plan.count_partial_bytes, plan.after))
    for number, n in enumerate(plan.after):
        memory, layout = get_memory_type(n.dtype), plan.lay_out_partial(n)
        for first, count, place in layout.ranges:
            with _each(code, layout.rows) as row, _each(code, count) as i:
                at = code.add(code.add(code.times(row, layout.stride), str(place)), i)
                to = code.add(code.add(code.times(row, layout.length), str(first)), i)
                cell = code.allocate(memory)
                write_vector(code, Value(code, identity(n, 1), code_of(n.dtype), 1), cell, None)
                with code.loop("0", parts) as p:
                    begin = code.add(code.times(p, size), str(plan.partial_at[n.number]))
                    here = code.at(memory, code.at("i8", partial, begin), at)
                    part, total = (make_loaded_value(code, code.load(memory, x), n.dtype, 1) for x in (here, cell))
                    write_vector(code, combine(code, n, total, part), cell, None)
                total = make_loaded_value(code, code.load(memory, cell), n.dtype, 1)
                write_vector(code, total, code.at(memory, results[number], to), None)


def write_finish(plan: LoopPlan) -> tuple[Function, set[str]]:
    """Return the function that combines the partial results of a kernel, and its declarations."""
    code, results = Code(plan.target.has_fma), [f"%o{i}" for i in range(len(plan.after))]
    emit_finish(code, plan, results, "%partial", "%parts")
    # Of single numbers there are so few that LLVM takes longer to optimize the loop than the loop takes in many calls.
    attributes = "noinline " if any(map(plan.is_column, plan.after)) else "noinline optnone "
    params = *(f"ptr {o}" for o in results), "ptr %partial", "i64 %parts"
    return make_function(code.body, *params, attributes=attributes), code.declared
