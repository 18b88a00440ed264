"""Kernels of scatters: rows that are added at positions, and elements that are written at regular strides.

A part of a kernel is a range of the result's rows: it goes through all positions, and adds the rows that are in its
range.
"""

from __future__ import annotations

from math import prod

from pullback.compiler.builder import TYPES, Code, Value, code_of, literal, vector
from pullback.compiler.codegen.kernel_code import RANGE, Function, KernelCode, make_function, make_kernel
from pullback.compiler.ir.graph import Node, compute_strides, find_rows
from pullback.compiler.math import arithmetic
from pullback.compiler.math.building_blocks import MathBuilder
from pullback.compiler.schedule.scatters import ScatterPlan, SpacedPlan

COMBINED = {"maximum": arithmetic.maximum, "minimum": arithmetic.minimum}  # functions that combine instead of adding


class ScatterRows:
    """Emits the kernel that adds the rows of ``x`` at the positions ``rows``, or takes the maximum or minimum.

    They are added to zeros, to a copy of a third argument, or, ``in_place``, to that argument itself.
    """

    def __init__(self, n: Node, in_place: bool, plan: ScatterPlan) -> None:
        self.dtype, self.code = code_of(n.dtype), Code()
        self.adds, self.in_place = len(n.args) > 2, in_place
        self.shape, self.length, self.size = n.args[1].shape, prod(n.data.row), int(self.dtype[1])
        self.strides = find_rows(n.args[0], n.data.row)[2]
        self.combine, self.start = n.data.combine, n.data.start
        self.width, self.work = plan.width, plan.work

    def write(self) -> KernelCode:
        """Return the kernel, whose rows are those of the result."""
        code, work = self.code, self.work
        if not self.in_place:
            self._begin()
        if prod(self.shape) and self.length:
            self._loop(0, "0", "0", work.parts > 1)
        added = ("ptr %added",) if self.adds else ()
        arrays = "ptr noalias %x", "ptr noalias %rows", *added, "ptr %z"
        return make_kernel(code, *arrays, *RANGE)

    def _begin(self) -> None:
        """Emit the initial value of the result."""
        code = self.code
        first, count = code.times("%lo", self.length * self.size), code.op("sub i64 %hi, %lo")
        start = code.at("i8", "%z", first)
        size = code.times(count, self.length * self.size)
        if self.adds:
            code.copy_bytes(start, code.at("i8", "%added", first), size)
        elif self.start:
            filled, one = literal(self.start, self.dtype, 1), TYPES[self.dtype]
            with code.loop("0", code.times(count, self.length)) as i:
                code.store(one, filled, start, i)
        else:
            code.clear_bytes(start, size)

    def _loop(self, axis: int, number: str, source: str, shared: bool) -> None:
        """Emit the loops over the axes of the positions from ``axis`` on."""
        code = self.code
        if axis < len(self.shape):
            with code.loop("0", self.shape[axis]) as i:
                inner = code.add(code.times(number, self.shape[axis]), i)
                self._loop(axis + 1, inner, code.add(source, code.times(i, self.strides[axis])), shared)
            return
        row = code.load("i64", "%rows", number)
        if not shared:
            self._row(row, source)
            return
        ahead, count = code.op(f"sub i64 {row}, %lo"), code.op("sub i64 %hi, %lo")
        with code.when(code.op(f"icmp ult i64 {ahead}, {count}")):
            self._row(row, source)

    def _row(self, row: str, source: str) -> None:
        code = self.code
        to = code.times(row, self.length)
        whole = self.length // self.width * self.width
        with code.loop("0", whole, self.width) as j:
            self._combine(code.add(to, j), code.add(source, j), self.width)
        if whole < self.length:
            with code.loop(str(whole), self.length) as j:
                self._combine(code.add(to, j), code.add(source, j), 1)

    def _combine(self, to: str, source: str, width: int) -> None:
        code, one = self.code, TYPES[self.dtype]
        type_ = vector(one, width)
        place, other = (code.at(one, p, at) for p, at in (("%z", to), ("%x", source)))
        old, new = (code.op(f"load {type_}, ptr {p}, align {self.size}") for p in (place, other))
        x, y = (Value(code, name, self.dtype, width) for name in (old, new))
        z = x + y if self.combine == "add" else COMBINED[self.combine](MathBuilder(code), x, y)
        code.line(f"store {z!r}, ptr {place}, align {self.size}")


class Spaced:
    """Emits the function ``(x, z)`` that writes the elements of ``x`` into zeros at the strides of a view."""

    def __init__(self, n: Node, plan: SpacedPlan) -> None:
        (x,) = n.args
        self.code, self.view, self.nbytes = Code(), n.data, n.nbytes
        self.shape, self.strides_of_x = x.shape or (1,), compute_strides(x.shape) or (1,)
        self.strides = n.data.strides or (1,)
        self.one, self.size = "i8" if n.dtype == bool else TYPES[code_of(n.dtype)], n.dtype.itemsize
        self.width, self.is_by_rows = plan
        self.row = n.shape[-1] if n.shape else 1

    def write(self) -> Function:
        """Return the function."""
        code = self.code
        if self.is_by_rows:
            with code.loop("0", prod(self.shape[:-1])) as r:
                self._row(code.times(r, self.shape[-1]), code.times(r, self.row))
        else:
            self._clear("0", self.nbytes // self.size)
            self._axis(0, "0", str(self.view.offset))
        return make_function(code.body, "ptr noalias %x", "ptr noalias %z")

    def _clear(self, begin: str, count: int) -> None:
        if count:
            self.code.clear_bytes(self.code.at(self.one, "%z", begin), count * self.size)

    def _row(self, source: str, to: str) -> None:
        """Emit a row as vectors of elements with zeros between them."""
        code, step, first, wide = self.code, self.strides[-1], self.view.offset, self.width
        vectors = min(self.shape[-1] // wide, (self.row - first) // (step * wide))
        done = vectors * wide
        self._clear(to, first)
        type_ = vector(self.one, wide)
        if vectors:
            with code.loop("0", done, wide) as j:
                at = code.at(self.one, "%x", code.add(source, j))
                v = code.read(at, self.one, self.size, wide, None)
                place = code.add(code.add(to, str(first)), code.times(j, step))
                for k in range(step):
                    lanes = [p // step if p % step == 0 else wide for p in range(k * wide, (k + 1) * wide)]
                    out = code.shuffle(type_, v, "zeroinitializer", lanes)
                    there = code.at(self.one, "%z", code.add(place, str(k * wide)))
                    code.write(out, there, self.one, self.size, wide, None)
        end = first + done * step
        self._clear(code.add(to, str(end)), self.row - end)
        if done < self.shape[-1]:
            with code.loop(str(done), self.shape[-1]) as j:
                self._vector(code.add(source, j), code.add(to, code.add(str(first), code.times(j, step))), 1)

    def _axis(self, axis: int, source: str, to: str) -> None:
        code, length = self.code, self.shape[axis]
        if axis < len(self.shape) - 1:
            with code.loop("0", length) as i:
                there = code.add(to, code.times(i, self.strides[axis]))
                self._axis(axis + 1, code.add(source, code.times(i, self.strides_of_x[axis])), there)
            return
        whole = length // self.width * self.width
        with code.loop("0", whole, self.width) as j:
            self._vector(code.add(source, j), code.add(to, code.times(j, self.strides[-1])), self.width)
        if whole < length:
            with code.loop(str(whole), length) as j:
                self._vector(code.add(source, j), code.add(to, code.times(j, self.strides[-1])), 1)

    def _vector(self, source: str, to: str, width: int) -> None:
        code, step = self.code, self.strides[-1]
        v = code.read(code.at(self.one, "%x", source), self.one, self.size, width, None)
        place = code.at(self.one, "%z", to)
        if step == 1 or width == 1:
            code.write(v, place, self.one, self.size, width, None)
            return
        for k in range(width):
            one = code.op(f"extractelement {vector(self.one, width)} {v}, i64 {k}")
            code.write(one, code.at(self.one, place, k * step), self.one, self.size, 1, None)
