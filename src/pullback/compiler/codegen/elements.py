"""Elementwise functions of arrays of any length, for eager code (``element_functions``); threads share long arrays.

The module exports ``run(context, parts)``.  The context is a row of words: the addresses of the operands and of the
result, the number of elements, and a word that is set to 1 if an element of the result is not finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.compiler.builder import FLOATS, Code, Definition, Value, define_function, splat, vector
from pullback.compiler.math.functions import emit_scalar
from pullback.compiler.target import Target

if TYPE_CHECKING:
    from pullback.core.op import Op

__all__ = ["PART_ELEMENTS", "emit_elements"]

PART_ELEMENTS = 16384  # elements that a thread takes at a time
VECTOR_BYTES = 64  # at least; several registers where these are shorter, so that their latencies overlap
COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def emit_elements(op: Op, dtype: str, repeated: tuple[bool, ...], target: Target, threads: bool) -> Definition:
    """Return the LLVM module of an op on floats; ``repeated`` says of each operand whether it is a single number."""
    writer = ElementsWriter(op, dtype, repeated, target)
    code = writer.code
    writer.write()
    declared = sorted({*code.declared, COPY, "declare i64 @llvm.smin.i64(i64, i64)"})
    part = define_function("define internal void @part(ptr %context, i64 %part, i64 %worker) {", code.body)
    functions = [*code.helpers.values(), part]
    text = "\n".join([*declared, *(f.text for f in functions), SHARED if threads else ALONE, BRANCHES])
    return Definition(text, max(f.longest_block for f in functions))


BRANCHES = '!0 = !{!"branch_weights", i32 1, i32 1000}'
SHARED = """declare void @parallel(ptr, ptr, i64, i64, i1)
define void @run(ptr %context, i64 %parts) {
  call void @parallel(ptr @part, ptr %context, i64 %parts, i64 255, i1 true)
  ret void
}"""
ALONE = """define void @run(ptr %context, i64 %parts) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  call void @part(ptr %context, i64 %i, i64 0)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %parts
  br i1 %more, label %loop, label %done
done:
  ret void
}"""


class ElementsWriter:
    """Emits the function that computes one part of the elements."""

    def __init__(self, op: Op, dtype: str, repeated: tuple[bool, ...], target: Target) -> None:
        self.op, self.dtype, self.repeated = op, dtype, repeated
        self.type, self.size, self.code = FLOATS[dtype], int(dtype[1]), Code()
        self.width = max(VECTOR_BYTES, target.vector_bytes) // self.size
        self.vector = vector(self.type, self.width)

    def write(self) -> None:
        """Emit the loop over whole vectors; the elements that remain are copied to a vector on the stack and back."""
        code, operands = self.code, len(self.repeated)
        places = [code.op(f"getelementptr i64, ptr %context, i64 {i}") for i in range(operands + 3)]
        *arrays, z = [code.op(f"load ptr, ptr {p}") for p in places[: operands + 1]]
        count, found = code.op(f"load i64, ptr {places[-2]}"), places[-1]
        xs = [self._read_number(x) if once else None for x, once in zip(arrays, self.repeated, strict=True)]
        lo = code.times("%part", PART_ELEMENTS)
        hi = code.op(f"call i64 @llvm.smin.i64(i64 {code.add(lo, str(PART_ELEMENTS))}, i64 {count})")
        rest = code.op(f"urem i64 {code.op(f'sub i64 {hi}, {lo}')}, {self.width}")
        stop = code.op(f"sub i64 {hi}, {rest}")
        self.bad = code.allocate(f"<{self.width} x i1>")
        code.line(f"store <{self.width} x i1> zeroinitializer, ptr {self.bad}")
        whole, after, tail, flag, done, wrong = map(code.block, ("whole", "after", "tail", "flag", "done", "wrong"))
        code.branch(code.op(f"icmp slt i64 {lo}, {stop}"), whole, after)
        code.begin(whole)
        with code.loop(lo, stop, self.width) as i:
            self._emit_vector(arrays, xs, z, i)
        code.jump(after)
        code.begin(after)
        code.branch(code.op(f"icmp ne i64 {rest}, 0"), tail, flag)
        code.begin(tail)
        buffers = [code.allocate(self.vector) for _ in (*arrays, z)]
        size = code.times(rest, self.size)
        for x, cell, once in zip(arrays, buffers, self.repeated, strict=False):
            if not once:
                first = self._read_number(self._at(x, stop))
                code.line(f"store {self.vector} {first}, ptr {cell}")
                self._copy(cell, self._at(x, stop), size)
        self._emit_vector(buffers[:-1], xs, buffers[-1], "0")
        self._copy(self._at(z, stop), buffers[-1], size)
        code.jump(flag)
        code.begin(flag)
        bad = code.op(f"load <{self.width} x i1>, ptr {self.bad}")
        code.declared.add(f"declare i1 @llvm.vector.reduce.or.v{self.width}i1(<{self.width} x i1>)")
        some = code.op(f"call i1 @llvm.vector.reduce.or.v{self.width}i1(<{self.width} x i1> {bad})")
        code.branch(some, wrong, done, unlikely=True)
        code.begin(wrong)
        code.line(f"store atomic i64 1, ptr {found} monotonic, align 8")
        code.jump(done)
        code.begin(done)

    def _at(self, base: str, place: str) -> str:
        return base if place == "0" else self.code.op(f"getelementptr {self.type}, ptr {base}, i64 {place}")

    def _read_number(self, pointer: str) -> str:
        number = self.code.op(f"load {self.type}, ptr {pointer}, align {self.size}")
        return splat(self.code, number, self.type, self.width)

    def _copy(self, to: str, source: str, size: str) -> None:
        self.code.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def _emit_vector(self, arrays: list[str], known: list[str | None], z: str, i: str) -> None:
        code = self.code
        names = [
            x or code.op(f"load {self.vector}, ptr {self._at(a, i)}, align {self.size}")
            for a, x in zip(arrays, known, strict=True)
        ]
        made = emit_scalar(
            code, self.op, {}, [Value(code, n, self.dtype, self.width) for n in names], self.width, self.dtype
        )
        code.line(f"store {self.vector} {made.name}, ptr {self._at(z, i)}, align {self.size}")
        size = made.like(code.call(f"llvm.fabs.{made.suffix}", made.type, [(made.type, made.name)]))
        odd = size.compare("uge", float("inf"))
        before = code.op(f"load {odd.type}, ptr {self.bad}")
        code.line(f"store {odd.type} {code.op(f'or {odd.type} {before}, {odd.name}')}, ptr {self.bad}")
