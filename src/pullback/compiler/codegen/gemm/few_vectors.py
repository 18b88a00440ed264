"""Matrix products of a large matrix and a few vectors: each row of the large one is multiplied by all of them.

The large matrix is the left one, and the vectors are the columns of the right one; or it is a transposed right one, and
the vectors are the rows of the left one.  Either way its rows are contiguous along the shared axis, so it is read once
and in order.  The vectors are copied to scratch memory, as many elements at a time as fit the first-level cache.
"""

from __future__ import annotations

from typing import TypeAlias

from pullback.compiler.builder import FLOATS, Code, Helpers, define_function, first_lanes, vector
from pullback.compiler.codegen.gemm.block import multiply_add
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.ir.products import Product
from pullback.compiler.schedule.products import FewVectorsPlan
from pullback.compiler.target import Target

Sums: TypeAlias = "dict[tuple[int, int], str]"  # by row and vector


class FewVectors:
    """Emits the kernel of one product, whose rows are groups of rows of the large matrix."""

    def __init__(self, p: Product, plan: FewVectorsPlan, target: Target) -> None:
        self.p, self.plan, self.target, self.code = p, plan, target, Code()
        self.type, self.size = FLOATS[p.dtype], int(p.dtype[1])
        self.width = target.vector_bytes // self.size

    def write(self) -> KernelCode:
        """Return the kernel."""
        code, k, depth = self.code, self.p.k, self.plan.depth
        whole = k // depth * depth
        with code.loop("0", whole, depth) as first:
            self._multiply_slice(first, depth)
        if whole < k:
            self._multiply_slice(str(whole), k - whole)
        arrays = "ptr noalias %a", "ptr noalias %b", "ptr %c", "ptr %z"
        return make_kernel(code, *arrays, *RANGE)

    def _multiply_slice(self, first: str, deep: int) -> None:
        """Emit the products of the elements from ``first`` on along the shared axis."""
        code, plan = self.code, self.plan
        starts = self._copy_vectors(first, deep)
        whole = plan.large_rows // plan.rows
        stop = code.minimum("%hi", whole)
        with code.when(code.op(f"icmp slt i64 %lo, {stop}")), code.loop("%lo", stop) as group:
            self._multiply_rows(code.times(group, plan.rows), plan.rows, first, deep, starts)
        if left := plan.large_rows - whole * plan.rows:
            with code.when(code.op(f"icmp sgt i64 %hi, {whole}")):
                self._multiply_rows(str(whole * plan.rows), left, first, deep, starts)

    def _copy_vectors(self, first: str, deep: int) -> list[str]:
        """Emit the copy of the vectors, by groups, with zeros behind the last elements; return where groups begin."""
        p, code, plan, width = self.p, self.code, self.plan, self.width
        base, strides = ("%b", (p.b.column, p.b.row)) if plan.is_left_large else ("%a", p.a)
        starts, start = [], "%scratch"
        registers = -(-deep // width)
        at = 0
        for count in plan.groups:
            starts.append(start)
            if deep % width:
                last = code.at(self.type, start, (registers - 1) * count * width)
                for v in range(count):
                    zeros = code.at(self.type, last, v * width)
                    code.line(f"store {vector(self.type, width)} zeroinitializer, ptr {zeros}, align {self.size}")
            with code.loop("0", deep) as k:
                lane = code.op(f"and i64 {k}, {width - 1}")
                to = code.add(code.times(code.op(f"sub nsw i64 {k}, {lane}"), count), lane)
                source = code.times(code.add(k, first), strides[1])
                for v in range(count):
                    x = code.load(self.type, base, code.add(source, str((at + v) * strides[0])))
                    code.store(self.type, x, start, code.add(to, str(v * width)))
            start = code.at(self.type, start, registers * count * width)
            at += count
        return starts

    def _multiply_rows(self, i: str, rows: int, first: str, deep: int, starts: list[str]) -> None:
        p, code, plan = self.p, self.code, self.plan
        base, stride = ("%a", p.a.row) if plan.is_left_large else ("%b", p.b.column)
        large = code.at(self.type, base, code.add(code.times(i, stride), first))
        is_later = code.op(f"icmp ne i64 {first}, 0")
        at = 0
        for count, start in zip(plan.groups, starts, strict=True):
            sums = GroupProduct(
                self.type, self.size, self.width, rows, count, deep % self.width, plan.is_left_large, self.target
            )
            place = code.add(code.times(i, p.n), str(at)) if plan.is_left_large else code.add(str(at * p.n), i)
            z = code.at(self.type, "%z", place)
            before = code.op(f"select i1 {is_later}, ptr {z}, ptr {code.at(self.type, '%c', place)}")
            flag = "true" if p.adds else is_later
            code.add_helper(sums.name, sums.write)
            arguments = [f"ptr {large}", f"i64 {stride}", f"ptr {start}", f"i64 {deep // self.width}", f"ptr {z}"]
            code.call_helper(sums.name, ", ".join([*arguments, f"i64 {p.n}", f"ptr {before}", f"i1 {flag}"]))
            at += count


class GroupProduct:
    """Emits the function that multiplies a few rows of the large matrix by a group of vectors.

    tail: the elements of a row behind its last whole register.
    by_rows: whether the sums of one row are neighbours in the result, else those of one vector.
    """

    def __init__(
        self, type_: str, size: int, width: int, rows: int, count: int, tail: int, by_rows: bool, target: Target
    ) -> None:
        self.type, self.size, self.width, self.rows, self.count = type_, size, width, rows, count
        self.tail, self.by_rows, self.target = tail, by_rows, target
        self.vector, self.code = vector(type_, width), Code()
        self.name = f"few_{type_}{width}_{rows}x{count}_{tail}{'' if by_rows else '_turned'}"

    def write(self) -> Helpers:
        """Return the function and its declarations."""
        code = self.code
        rows = ["%large"]
        for _ in range(1, self.rows):
            rows.append(code.at(self.type, rows[-1], "%row"))
        pairs = [(r, v) for r in range(self.rows) for v in range(self.count)]
        start = dict.fromkeys(pairs, "zeroinitializer")
        if self.tail:  # first, as behind the loop LLVM has too few registers for it and the sums
            start = self._multiply(rows, "%registers", self.tail, start, "first")
        code.branch(code.op("icmp sgt i64 %registers, 0"), "along", "store")
        code.begin("along")
        code.line("%k = phi i64 [0, %entry], [%k.next, %along]")
        for r, v in pairs:
            code.line(f"%sum{r}.{v} = phi {self.vector} [{start[r, v]}, %entry], [%next{r}.{v}, %along]")
        following = self._multiply(rows, "%k", self.width, {(r, v): f"%sum{r}.{v}" for r, v in pairs}, "next")
        code.line("%k.next = add nuw nsw i64 %k, 1")
        code.branch(code.op("icmp slt i64 %k.next, %registers"), "along", "store")
        code.begin("store")
        sums = {p: code.op(f"phi {self.vector} [{start[p]}, %entry], [{following[p]}, %along]") for p in pairs}
        self._store(sums)
        params = (
            "ptr noalias %large, i64 %row, ptr noalias %few, i64 %registers, ptr %z, i64 %z.row, ptr %before, i1 %adds"
        )
        head = f"define internal void @{self.name}({params}) noinline {{"
        return {self.name: define_function(head, code.body)}, code.declared

    def _multiply(self, rows: list[str], k: str, lanes: int, sums: Sums, name: str) -> Sums:
        """Emit the addition of the products of the ``k``-th registers to the sums, and return these."""
        code, fma = self.code, multiply_add(self.target, self.size, self.width)
        code.declared.add(f"declare {self.vector} @{fma}({', '.join([self.vector] * 3)})")
        place = code.op(f"mul nuw nsw i64 {k}, {self.width}")
        few = code.at(self.type, "%few", code.op(f"mul nuw nsw i64 {k}, {self.width * self.count}"))
        mask = first_lanes(lanes, self.width)
        left = [code.read(code.at(self.type, x, place), self.type, self.size, self.width, mask) for x in rows]
        for v in range(self.count):
            right = code.read(code.at(self.type, few, v * self.width), self.type, self.size, self.width, None)
            for r in range(self.rows):
                operands = ", ".join(f"{self.vector} {x}" for x in (left[r], right, sums[r, v]))
                code.line(f"%{name}{r}.{v} = call {self.vector} @{fma}({operands})")
        return {(r, v): f"%{name}{r}.{v}" for r, v in sums}

    def _store(self, sums: Sums) -> None:
        """Emit the sums of all lanes, and store them or add them to what is there before."""
        code, (lines, many) = self.code, (self.rows, self.count)
        if not self.by_rows:
            lines, many = many, lines
        z, before = "%z", "%before"
        for line in range(lines):
            own = [sums[(line, i) if self.by_rows else (i, line)] for i in range(many)]
            for at in range(0, many, self.width):
                part = own[at : at + self.width]
                totals, type_ = add_lanes(code, self.type, self.width, part), f"<{len(part)} x {self.type}>"
                old = code.op(f"load {type_}, ptr {code.at(self.type, before, at)}, align {self.size}")
                both = code.op(f"fadd {type_} {old}, {totals}")
                chosen = code.op(f"select i1 %adds, {type_} {both}, {type_} {totals}")
                code.line(f"store {type_} {chosen}, ptr {code.at(self.type, z, at)}, align {self.size}")
            if line + 1 < lines:
                z, before = code.at(self.type, z, "%z.row"), code.at(self.type, before, "%z.row")


def add_lanes(code: Code, type_: str, width: int, vectors: list[str]) -> str:
    """Return the vector of the sums of all lanes of each vector; there are at most as many as lanes.

    Two vectors are added up half by half into one, until each has a segment of one lane.
    """
    wanted, segment = len(vectors), width
    while segment > 1:
        half = segment // 2
        lows = [i for start in range(0, width, segment) for i in range(start, start + half)]
        pairs = [vectors[i : i + 2] for i in range(0, len(vectors), 2)]
        vector_type = f"<{width} x {type_}>"
        vectors = []
        for pair in pairs:
            a, b = pair if len(pair) == 2 else (pair[0], "poison")
            lanes = lows + [width + i for i in lows] if len(pair) == 2 or len(pairs) > 1 else lows
            low, high = (
                code.shuffle(vector_type, a, b, lanes),
                code.shuffle(vector_type, a, b, [i + half for i in lanes]),
            )
            vectors.append(code.op(f"fadd <{len(lanes)} x {type_}> {low}, {high}"))
        width, segment = len(lanes), half
    if wanted == width:
        return vectors[0]
    return code.shuffle(f"<{width} x {type_}>", vectors[0], "poison", range(wanted))
