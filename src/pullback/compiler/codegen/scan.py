"""Kernels of scans along an axis, such as cumulative sums, and of searches for a maximum or minimum (argmax).

An array has shape (``outer``, ``length``, ``inner``), with the axis of the scan in the middle.  Lanes are neighbours
along the inner axis.  Where that has one element, several rows are scanned at once, in NumPy's order of additions; only
a scan along one or two long rows is computed from the sums of vectors.  A search keeps the best element of each lane in
registers, and in the end finds the first of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pullback.compiler.builder import (
    TYPES,
    Code,
    Value,
    Variable,
    code_of,
    first_lanes,
    literal,
    slice_lanes,
    splat,
    vector,
)
from pullback.compiler.codegen.kernel_code import RANGE, KernelCode, make_kernel
from pullback.compiler.math.functions import VectorFunctions
from pullback.compiler.schedule.scans import ScanPlan, SearchPlan


def emit_scan(plan: ScanPlan | SearchPlan) -> KernelCode:
    """Return the kernel of a scan or a search; its arrays are the arguments and the result."""
    return (Scan(plan) if isinstance(plan, ScanPlan) else Search(plan)).write()


class AxisKernel(ABC):
    """Emits a kernel along an axis."""

    def __init__(self, plan: ScanPlan | SearchPlan) -> None:
        n = plan.node
        self.node, self.code, self.lower = n, Code(plan.target.has_fma), n.data[0].lower
        self.outer, self.length, self.inner = plan.outer, plan.length, plan.inner
        self.size, self.width, self.vectors, self.columns = plan.size, plan.width, plan.vectors, plan.columns
        x = n.args[-1]
        self.dtype = "u1" if x.dtype == bool else code_of(x.dtype)
        self.one = TYPES[self.dtype]

    def write(self) -> KernelCode:
        """Return the kernel of the node."""
        code = self.code
        with code.loop("%lo", "%hi") as u:
            self.emit_unit(u)
        names = [f"%a{i}" for i in range(len(self.node.args))]
        return make_kernel(code, *(f"ptr noalias {p}" for p in (*names, "%z")), *RANGE)

    @abstractmethod
    def emit_unit(self, u: str) -> None:
        """Emit the code of one unit of work."""

    # ---- for both

    def at(self, base: str, place: str, type_: str = "") -> str:
        return self.code.at(type_ or self.one, base, place)

    def value(self, name: str, width: int, dtype: str = "") -> Value:
        return Value(self.code, name, dtype or self.dtype, width)

    def shuffle(self, v: Value, lanes: Sequence[int]) -> Value:
        chosen = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in lanes)
        return v.like(self.code.op(f"shufflevector {v.type} {v.name}, {v.type} poison, <{v.width} x i32> <{chosen}>"))

    def find_block(self, u: str) -> tuple[str, str, str]:
        """Return the outer index of a unit of work, and the range of its vectors along the inner axis."""
        code, many = self.code, -(-self.vectors // self.columns)
        if many == 1:
            return u, "0", str(self.vectors)
        o, b = code.op(f"udiv i64 {u}, {many}"), code.op(f"urem i64 {u}, {many}")
        first = code.times(b, self.columns)
        return o, first, self.code.minimum(code.add(first, str(self.columns)), str(self.vectors))

    def find_column(self, v: str) -> str:
        """Return the inner index at which a vector begins; the last one may overlap the one before."""
        begin = self.code.times(v, self.width)
        return begin if self.inner % self.width == 0 else self.code.minimum(begin, str(self.inner - self.width))


class Scan(AxisKernel):
    """Emits a scan: each value is computed from the one before."""

    def __init__(self, plan: ScanPlan) -> None:
        super().__init__(plan)
        self.lag, self.back, self.shift, self.count = plan.lag, plan.back, plan.shift, plan.count
        self.rows, self.by_vectors, self.in_registers = plan.rows, plan.by_vectors, plan.in_registers

    def emit_unit(self, u: str) -> None:
        if self.inner == 1:
            code = self.code
            first = code.times(u, self.rows)
            if self.outer % self.rows:  # the last group of rows overlaps the one before
                first = self.code.minimum(first, str(self.outer - self.rows))
            if self.by_vectors:
                self._emit_row(code.times(first, self.length))
            else:
                lines = [code.times(code.add(first, str(r)), self.length) for r in range(self.rows)]
                self._scan_in_registers([(line, 1, None) for line in lines])
        elif self.in_registers:
            base, width = self.code.times(u, self.length * self.inner), self.width
            mask = first_lanes(self.inner, width)
            starts = [0] if mask else [min(v * width, self.inner - width) for v in range(self.vectors)]
            self._scan_in_registers([(self.code.add(base, str(s)), width, mask) for s in starts])
        else:
            self._scan_in_memory(*self.find_block(u))

    def _find_offset(self, p: str, shift: int = 0) -> str:
        """Return the offset of the p-th element in scan order, or of one ``shift`` later."""
        code = self.code
        if self.back:
            return code.times(code.op(f"sub nsw i64 {self.length - 1 - shift}, {p}"), self.inner)
        return code.times(code.add(p, str(shift)), self.inner)

    def _read(self, base: str, place: str, width: int, mask: str | None) -> Value:
        return self.value(self.code.read(self.at(base, place), self.one, self.size, width, mask), width)

    def _write(self, v: Value, place: str, mask: str | None) -> None:
        self.code.write(v.name, self.at("%z", place), self.one, self.size, v.width, mask)

    def _combine_next(self, acc: Value, line: str, p: str, mask: str | None) -> Value:
        *others, last = (f"%a{i}" for i in range(len(self.node.args)))
        at_element = self.code.add(line, self._find_offset(p))
        at_operand = self.code.add(line, self._find_offset(p, -1)) if self.lag else at_element
        xs = [self._read(x, at_operand, acc.width, mask) for x in others] + [
            self._read(last, at_element, acc.width, mask)
        ]
        combined: Value = self.lower.emit(VectorFunctions(self.code), acc, *xs)
        return combined

    def _emit_first(self, line: str, width: int, mask: str | None) -> Value | None:
        """Emit the first result of a scan, and return its accumulator."""
        if self.shift:
            start = self.value(literal(self.lower.start, self.dtype, width), width)
            self._write(start, self.code.add(line, self._find_offset("0")), mask)
        if not self.count:
            return None
        last = f"%a{len(self.node.args) - 1}"
        acc = self._read(last, self.code.add(line, self._find_offset("0")), width, mask)
        self._write(acc, self.code.add(line, self._find_offset("0", self.shift)), mask)
        return acc

    def _scan_in_registers(self, lines: list[tuple[str, int, str | None]]) -> None:
        """Emit several scans at once, with their accumulators in registers."""
        code = self.code
        running = [self._emit_first(*line) for line in lines]
        if self.count < 2:
            return
        totals = [Variable(acc) for acc in running if acc is not None]
        with code.loop("1", self.count) as p:
            for (line, _, mask), total in zip(lines, totals, strict=True):
                new = self._combine_next(total.get(), line, p, mask)
                total.set(new)
                self._write(new, code.add(line, self._find_offset(p, self.shift)), mask)

    def _scan_in_memory(self, o: str, begin: str, stop: str) -> None:
        """Emit the scans of many neighbours, each of which loads its previous result from memory."""
        code, base = self.code, self.code.times(o, self.length * self.inner)
        with code.loop(begin, stop) as v:
            self._emit_first(code.add(base, self.find_column(v)), self.width, None)
        if self.count < 2:
            return
        with code.loop("1", self.count) as p, code.loop(begin, stop) as v:
            line = code.add(base, self.find_column(v))
            before = self._read("%z", code.add(line, self._find_offset(p, self.shift - 1)), self.width, None)
            self._write(
                self._combine_next(before, line, p, None), code.add(line, self._find_offset(p, self.shift)), None
            )

    def _emit_row(self, line: str) -> None:
        """Emit the scan of one long row: a scan within each vector, combined with the carry from the vector before."""
        code, width = self.code, self.width
        whole = self.count // width * width
        if self.shift:
            start = self.value(literal(self.lower.start, self.dtype, 1), 1)
            self._write(start, code.add(line, self._find_offset("0")), None)
        first = self._scan_vector("0", line)
        self._store_vector(first, "0", line)
        carry = Variable(self.shuffle(first, [width - 1] * width))
        with code.loop(str(width), whole, width) as p:
            local = self._scan_vector(p, line)
            before, emit = carry.get(), self.lower.emit
            self._store_vector(emit(VectorFunctions(code), before, local), p, line)
            carry.set(emit(VectorFunctions(code), before, self.shuffle(local, [width - 1] * width)))
        if whole < self.count:
            rest = Variable(slice_lanes(carry.get(), 0, 1))
            with code.loop(str(whole), self.count) as p:
                new = self._combine_next(rest.get(), line, p, None)
                rest.set(new)
                self._write(new, code.add(line, self._find_offset(p, self.shift)), None)

    def _scan_vector(self, p: str, line: str) -> Value:
        """Return the vector from index p on, with each lane combined with the lanes before it."""
        code, width = self.code, self.width
        at = code.add(line, self._find_offset(p, width - 1) if self.back else self._find_offset(p))
        v = self._read("%a0", at, width, None)
        if self.back:
            v = self.shuffle(v, [*reversed(range(width))])
        by = 1
        while by < width:
            moved = self.shuffle(v, [i - by for i in range(width)])
            both = self.lower.emit(VectorFunctions(code), moved, v)
            early = first_lanes(by, width)
            v = v.like(code.op(f"select <{width} x i1> {early}, {v.type} {v.name}, {v.type} {both.name}"))
            by *= 2
        return v

    def _store_vector(self, v: Value, p: str, line: str) -> None:
        if self.back:
            v = self.shuffle(v, [*reversed(range(self.width))])
        ahead = self.shift + (self.width - 1 if self.back else 0)
        self._write(v, self.code.add(line, self._find_offset(p, ahead)), None)


class Search(AxisKernel):
    """Emits a search for the first position of the maximum or minimum; NaN counts as better than any number."""

    def __init__(self, plan: SearchPlan) -> None:
        super().__init__(plan)
        self.index, self.short, self.searches = plan.index, plan.short, plan.searches

    def emit_unit(self, u: str) -> None:
        if self.short:
            self._emit_short_rows(u)
        elif self.inner == 1:
            self._emit_row(u)
        elif self.vectors == 1:
            self._emit_one_vector(u)
        else:
            self._emit_blocks(*self.find_block(u))

    # ---- comparisons

    def _is_better(self, x: Value, best: Value) -> Value:
        """Return whether x is better than the best of earlier positions."""
        better = x.compare(f"u{self.lower.word}", best)
        return better & best.compare("ord", best) if x.kind == "f" else better

    def _is_before(self, x: Value, i: Value, best: Value, j: Value) -> Value:
        """Return whether x at position i is better than the best at position j, or equal to it and before it."""
        same = x.compare("oeq", best)
        if x.kind == "f":
            same = same | (x.compare("uno", x) & best.compare("uno", best))
        return self._is_better(x, best) | (same & i.compare("olt", j))

    def _choose(self, which: Value, a: Value, b: Value) -> Value:
        return a.like(self.code.op(f"select {which.type} {which.name}, {a.type} {a.name}, {b.type} {b.name}"))

    def _update(self, x: Value, i: Value, cells: tuple[str, str], mask: str | None = None) -> None:
        code = self.code
        best, j = (
            like.like(code.op(f"load {like.type}, ptr {cell}, align 8"))
            for like, cell in zip((x, i), cells, strict=True)
        )
        which = self._is_better(x, best)
        if mask is not None:
            which = which & which.like(mask)
        for new, cell in ((self._choose(which, x, best), cells[0]), (self._choose(which, i, j), cells[1])):
            code.line(f"store {new.type} {new.name}, ptr {cell}, align 8")

    def _make_positions(self, at: str, width: int, step: int) -> Value:
        """Return the positions of all lanes: ``at`` of the first, ``step`` more of each further one."""
        code, type_ = self.code, TYPES[self.index]
        number = at if self.index == "i8" else code.op(f"trunc i64 {at} to {type_}")
        every = self.value(splat(code, number, type_, width), width, self.index)
        if width == 1 or not step:
            return every
        return every + every.like(f"<{', '.join(f'{type_} {k * step}' for k in range(width))}>")

    def _allocate_best(self, x: Value) -> tuple[str, str]:
        code = self.code
        zero = self.value(literal(0, self.index, x.width), x.width, self.index)
        cells = code.allocate(x.type), code.allocate(zero.type)
        for v, cell in ((x, cells[0]), (zero, cells[1])):
            code.line(f"store {v.type} {v.name}, ptr {cell}, align 8")
        return cells

    def _read(self, place: str, width: int, mask: str | None = None) -> Value:
        return self.value(self.code.read(self.at("%a0", place), self.one, self.size, width, mask), width)

    def _write(self, i: Value, place: str, mask: str | None = None) -> None:
        self.code.write(i.cast("i8").name, self.at("%z", place, "i64"), "i64", 8, i.width, mask)

    # ---- loops

    def _emit_row(self, u: str) -> None:
        """Emit the search along a row: each lane has a best element, and these are compared in the end."""
        code, width = self.code, self.width
        base = code.times(u, self.length)
        first = self._read(base, 1)
        start = self.value(splat(code, first.name, self.one, width), width)
        found = [self._allocate_best(start) for _ in range(self.searches)]
        step = self.searches * width
        whole = self.length // step * step
        if self.length >= step:
            with code.loop("0", whole, step) as at:
                for k, cells in enumerate(found):
                    at_element = code.add(at, str(k * width))
                    self._update(
                        self._read(code.add(base, at_element), width), self._make_positions(at_element, width, 1), cells
                    )
        for k, left in enumerate(range(whole, self.length, width)):
            mask, at_element = first_lanes(self.length - left, width), str(left)
            self._update(
                self._read(code.add(base, at_element), width, mask),
                self._make_positions(at_element, width, 1),
                found[k],
                mask,
            )
        best, i = self._load_best(found[0], width)
        for cells in found[1:]:
            best, i = self._merge(best, i, *self._load_best(cells, width))
        while best.width > 1:
            half = best.width // 2
            best, i = self._merge(*(slice_lanes(v, at, half) for at in (0, half) for v in (best, i)))
        self._write(i, u)

    def _load_best(self, cells: tuple[str, str], width: int) -> tuple[Value, Value]:
        kinds = ((self.dtype, cells[0]), (self.index, cells[1]))
        best, i = (
            self.value(self.code.op(f"load {vector(TYPES[d], width)}, ptr {cell}, align 8"), width, d)
            for d, cell in kinds
        )
        return best, i

    def _merge(self, best: Value, j: Value, x: Value, i: Value) -> tuple[Value, Value]:
        which = self._is_before(x, i, best, j)
        return self._choose(which, x, best), self._choose(which, i, j)

    def _emit_short_rows(self, u: str) -> None:
        """Emit the search along several short rows, one in each lane."""
        code, width = self.code, self.width
        first = self.code.minimum(code.times(u, width), str(self.outer - width))
        base = self.at("%a0", code.times(first, self.length))
        steps = ", ".join(f"i64 {k * self.length}" for k in range(width))

        def gather(p: str) -> Value:
            pointers = code.op(f"getelementptr {self.one}, ptr {self.at(base, p)}, <{width} x i64> <{steps}>")
            return self.value(code.gather(pointers, self.one, self.size, width, None), width)

        cells = self._allocate_best(gather("0"))
        with code.loop("0", self.length) as p:
            self._update(gather(p), self._make_positions(p, width, 0), cells)
        self._write(self._load_best(cells, width)[1], first)

    def _emit_one_vector(self, u: str) -> None:
        """Emit the search for all neighbours along the inner axis, which fit one vector."""
        code, mask = self.code, first_lanes(self.inner, self.width)
        base = code.times(u, self.length * self.inner)
        cells = self._allocate_best(self._read(base, self.width, mask))
        with code.loop("0", self.length) as p:
            x = self._read(code.add(base, code.times(p, self.inner)), self.width, mask)
            self._update(x, self._make_positions(p, self.width, 0), cells)
        self._write(self._load_best(cells, self.width)[1], code.times(u, self.inner), mask)

    def _emit_blocks(self, o: str, begin: str, stop: str) -> None:
        """Emit the search for many neighbours along the inner axis, whose best elements are in scratch memory."""
        code, width = self.code, self.width
        base, half = code.times(o, self.length * self.inner), self.columns * width * 8

        def find_cells(v: str) -> tuple[str, str]:
            at = code.times(code.op(f"sub nsw i64 {v}, {begin}"), width * 8)
            return self.at("%scratch", at, "i8"), self.at("%scratch", code.add(at, str(half)), "i8")

        def visit_vectors(visit: Callable[[str], Any]) -> None:
            with code.loop(begin, stop) as v:
                visit(v)

        def store_first(v: str) -> None:
            kept, i = find_cells(v), self.value(literal(0, self.index, width), width, self.index)
            x = self._read(code.add(base, self.find_column(v)), width)
            for new, cell in ((x, kept[0]), (i, kept[1])):
                code.line(f"store {new.type} {new.name}, ptr {cell}, align 8")

        visit_vectors(store_first)
        with code.loop("0", self.length) as p:
            row, i = code.add(base, code.times(p, self.inner)), self._make_positions(p, width, 0)
            visit_vectors(
                lambda v: self._update(self._read(code.add(row, self.find_column(v)), width), i, find_cells(v))
            )
        out = code.times(o, self.inner)
        visit_vectors(
            lambda v: self._write(self._load_best(find_cells(v), width)[1], code.add(out, self.find_column(v)))
        )
