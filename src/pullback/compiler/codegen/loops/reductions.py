"""Folds: running values in registers, in memory for each place along a row, and what is left of each part."""

from __future__ import annotations

from pullback.compiler.builder import TYPES, Code, Value, code_of, literal, vector
from pullback.compiler.codegen.loops.access import Access
from pullback.compiler.ir.graph import Node
from pullback.compiler.math.functions import VectorFunctions
from pullback.compiler.schedule.fuse import Fused, Kernel
from pullback.compiler.target import Target

__all__ = ["Finish", "Folds"]


class Folds(Access):
    """The text of a kernel, as far as it folds."""

    def __init__(self, kernel: Kernel, fused: Fused, target: Target) -> None:
        super().__init__(kernel, fused, target)
        self.width = 1
        self.accumulators: dict[int, str] = {}
        self.totals: dict[int, str] = {}
        self.partial_at: dict[int, int] = {}

    def _identity(self, n: Node, width: int) -> str:
        """What a fold begins with; so the sum of nothing but -0 is 0, as NumPy has it."""
        return literal(n.data.op.lower.start, code_of(n.dtype), width)

    def _accumulator(self, n: Node) -> str:
        room = self.code.room(vector(self._memory(n), self.width))
        self._reset(n, room)
        return room

    def _memory(self, n: Node) -> str:
        return TYPES[code_of(n.dtype)]

    def _reset(self, n: Node, room: str) -> None:
        self.code.line(
            f"store {vector(self._memory(n), self.width)} {self._identity(n, self.width)}, ptr {room}, align 64"
        )

    def _loaded(self, n: Node, room: str) -> Value:
        name = self.code.op(f"load {vector(self._memory(n), self.width)}, ptr {room}, align 64")
        return Value(self.code, name, code_of(n.dtype), self.width)

    def _fold_into(self, n: Node, room: str, v: Value) -> None:
        new = n.data.op.lower.emit(VectorFunctions(self.code), self._loaded(n, room), v)
        self.code.line(f"store {new.type} {new.name}, ptr {room}, align 64")

    def _fold_lanes(self, n: Node, v: Value, mask: str | None, index: str, axis: int | None) -> None:
        if mask is not None and not (self.across and n.number in self.accumulators):  # rows that are not there
            name = self.code.op(
                f"select <{v.width} x i1> {mask}, {v.type} {v.name}, {v.type} {self._identity(n, v.width)}"
            )
            v = Value(self.code, name, v.dtype, v.width)
        if self._is_column(n):
            self._add_to_column(n, v, index, mask)
        else:
            self._fold_into(
                n, self.accumulators[n.number] if n.number in self.accumulators else self.totals[n.number], v
            )

    def _across(self, n: Node, v: Value) -> Value:
        """Lanes folded into one number, by halves."""
        code = self.code
        while v.width > 1:
            half = v.width // 2
            parts = [Value(code, self._half(v, at, half), v.dtype, half) for at in (0, half)]
            v = n.data.op.lower.emit(VectorFunctions(code), *parts)
        return v

    def _half(self, v: Value, at: int, half: int) -> str:
        if half == 1:
            return self.code.op(f"extractelement {v.type} {v.name}, i64 {at}")
        lanes = ", ".join(f"i32 {i + at}" for i in range(half))
        return self.code.op(f"shufflevector {v.type} {v.name}, {v.type} poison, <{half} x i32> <{lanes}>")

    def _begin_after(self) -> None:
        self.accumulators = {}
        self.totals = {n.number: self._accumulator(n) for n in self.after if not self._is_column(n)}
        code = self.code
        for n in self.after:
            if self._is_column(n):
                memory, base = self._kept_as(n), self._columns_of(n)
                with code.loop("0", self._columns_size(n)) as i:
                    at = code.op(f"getelementptr {memory}, ptr {base}, i64 {i}")
                    self._write(Value(code, self._identity(n, 1), code_of(n.dtype), 1), at, None)

    def _columns_of(self, n: Node) -> str:
        """Where a fold over the rows has its running values."""
        return self.code.op(f"getelementptr i8, ptr %partial, i64 {self.partial_at[n.number]}")

    def _columns_size(self, n: Node) -> int:
        """How many there are, up to the end of the last vector."""
        return self._partial_size(n) // n.dtype.itemsize

    def _end_after(self) -> None:
        for n in self.after:
            if not self._is_column(n):
                at = self.code.op(f"getelementptr i8, ptr %partial, i64 {self.partial_at[n.number]}")
                self._write(self._across(n, self._loaded(n, self.totals[n.number])), at, None)

    def _add_to_column(self, n: Node, v: Value, index: str, mask: str | None) -> None:
        code = self.code
        memory = self._kept_as(n)
        pointer = code.op(f"getelementptr {memory}, ptr {self._columns_of(n)}, i64 {self._in_row(index)}")
        if len(self.axes[1]) == 1:  # there is room for all lanes: the sum of the next row need not wait for this one
            mask = None
        old = self._from_memory(self._read(pointer, memory, n.dtype.itemsize, mask, v.width), v.dtype, v.width)
        self._write(n.data.op.lower.emit(VectorFunctions(code), old, v), pointer, mask)


class Finish:
    """The function that puts the parts of a kernel together, in order."""

    def __init__(self, writer: Folds) -> None:
        self.writer, self.code = writer, Code()

    def text(self) -> str:
        code, writer = self.code, self.writer
        own, writer.code = writer.code, code
        size = sum(map(writer._partial_size, writer.after))
        for number, n in enumerate(writer.after):
            dtype = code_of(n.dtype)
            memory = writer._kept_as(n)
            with code.loop("0", max(n.size, 1)) as i:
                room = code.room(memory)
                writer._write(Value(code, writer._identity(n, 1), dtype, 1), room, None)
                with code.loop("0", "%parts") as p:
                    place = code.add(code.times(p, size), str(writer.partial_at[n.number]))
                    base = code.op(f"getelementptr i8, ptr %partial, i64 {place}")
                    at = code.op(f"getelementptr {memory}, ptr {base}, i64 {i}")
                    part, total = (
                        writer._from_memory(code.op(f"load {memory}, ptr {x}"), dtype, 1) for x in (at, room)
                    )
                    writer._write(n.data.op.lower.emit(VectorFunctions(code), total, part), room, None)
                total = writer._from_memory(code.op(f"load {memory}, ptr {room}"), dtype, 1)
                writer._write(total, code.op(f"getelementptr {memory}, ptr %o{number}, i64 {i}"), None)
        writer.code = own
        own.declared |= code.declared
        params = "".join(f"ptr %o{i}, " for i in range(len(writer.after)))
        head = f"define internal void @FINISH({params}ptr %partial, i64 %parts) noinline {{\nentry:"
        return "\n".join([head, *code.entry, *code.lines, "ret void", "}"])
