"""Elementwise functions of arrays of any length; threads share long arrays.

The LLVM module exports ``run(context, parts)``.  The context is a row of words: the addresses of the operands and of
the result, the number of elements, and a word that is set to 1 if an element of the result is not finite.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.builder import FLOATS, Code, Definition, Value, code_of, define_function, splat, vector
from pullback.compiler.math.functions import emit_scalar
from pullback.compiler.runtime.abi.elements_call import CALL, find_imports, make_call, write_call
from pullback.compiler.runtime.abi.layout import get_address, is_layout_known
from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.compiler.runtime.llvm import TranslatorError, get_code, llvm_available
from pullback.compiler.runtime.threads import get_pool, has_threads
from pullback.compiler.target import Target, get_target, has_numpy_avx512
from pullback.core.accelerate import Elements

if TYPE_CHECKING:
    from pullback.core.op import Op

PART_ELEMENTS = 16384  # elements that a thread takes at a time
VECTOR_BYTES = 64  # at least; several registers where these are shorter, so that their latencies overlap
COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
# The functions for which NumPy's own machine code, which it has for AVX-512, is slower than that of the compiler.
FASTER_ON_AVX512 = frozenset({np.exp, np.sin, np.cos, np.arctan2, np.logaddexp, np.logaddexp2, np.hypot})
SLOW_ON_AVX512 = frozenset({np.sin, np.cos})  # of float64, which NumPy has no machine code of AVX-512 for
MIN_ON_AVX512 = 1 << 16  # elements from which on the others are faster
AVX2 = 32  # bytes of its vectors


def compile_function(op: Op, dtype: np.dtype[Any], repeated: tuple[bool, ...]) -> Elements | None:
    """Return a function of arrays of any length; None if there is no such function that is faster than NumPy's.

    ``repeated``: which operands are single numbers.

    >>> from pullback.core.op import REGISTRY
    >>> f, z = compile_function(REGISTRY["exp"], np.dtype("f8"), (False,)), np.ones(2)
    >>> f is None or (f.run(np.array([0.0, np.inf]), z) and z.tolist() == [1.0, np.inf])
    True
    """
    target = get_target()
    if not llvm_available() or target.vector_bytes < AVX2 or not target.has_fma:
        return None  # where it was not measured
    if isinstance(op.kernel, np.ufunc) and has_numpy_avx512() and op.kernel not in FASTER_ON_AVX512:
        return None
    shared, direct = has_threads(), is_layout_known()
    try:
        text, longest_block = emit_elements(op, code_of(dtype), repeated, target, shared)
        imports = {"parallel": get_pool()["parallel"]} if shared else {}
        if direct:
            text += write_call(len(repeated) + 1, PART_ELEMENTS)
            imports |= find_imports()
        names = [CALL] if direct else ["run"]
        code, _ = get_code(text, names, imports, get_default_cache(), longest_block=longest_block)
    except TranslatorError:
        return None
    is_slow = not isinstance(op.kernel, np.ufunc) or (dtype.char == "d" and op.kernel in SLOW_ON_AVX512)
    least = MIN_ON_AVX512 if has_numpy_avx512() and not is_slow else 0
    return Elements(make_call(code) if direct else _call_by_ctypes(code, len(repeated) + 1), least)


def _call_by_ctypes(code: Any, arrays: int) -> Callable[..., int]:
    """Return the function ``run`` of loaded machine code as a function of so many arrays."""
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.addresses["run"])
    words = ctypes.c_int64 * (arrays + 2)

    def call(*operands: Any) -> int:
        n = operands[-1].size
        context = words(*map(get_address, operands), n, 0)
        run(ctypes.addressof(context), -(-n // PART_ELEMENTS))
        return context[-1]

    call.code = code  # type: ignore[attr-defined]  # whose memory has the code
    return call


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


BRANCHES = '!0 = !{!"branch_weights", i32 1, i32 1000}\n'
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
        """Emit the loop over whole vectors, the elements that remain, and the test whether all results are finite."""
        code, operands = self.code, len(self.repeated)
        places = [code.op(f"getelementptr i64, ptr %context, i64 {i}") for i in range(operands + 3)]
        *self.arrays, self.result = [code.op(f"load ptr, ptr {p}") for p in places[: operands + 1]]
        count, found = code.op(f"load i64, ptr {places[-2]}"), places[-1]
        # the single numbers among the operands, as vectors
        self.numbers = [
            self._read_number(x) if once else None for x, once in zip(self.arrays, self.repeated, strict=True)
        ]
        lo = code.times("%part", PART_ELEMENTS)
        hi = code.op(f"call i64 @llvm.smin.i64(i64 {code.add(lo, str(PART_ELEMENTS))}, i64 {count})")
        rest = code.op(f"urem i64 {code.op(f'sub i64 {hi}, {lo}')}, {self.width}")
        stop = code.op(f"sub i64 {hi}, {rest}")
        self.bad = code.allocate(f"<{self.width} x i1>")  # lanes in which a result was not finite
        code.line(f"store <{self.width} x i1> zeroinitializer, ptr {self.bad}")
        whole, after, tail, flag, done, wrong = map(code.block, ("whole", "after", "tail", "flag", "done", "wrong"))
        code.branch(code.op(f"icmp slt i64 {lo}, {stop}"), whole, after)
        code.begin(whole)
        with code.loop(lo, stop, self.width) as i:
            self._emit_vector(self.arrays, self.result, i)
        code.jump(after)
        code.begin(after)
        code.branch(code.op(f"icmp ne i64 {rest}, 0"), tail, flag)
        code.begin(tail)
        self._emit_rest(stop, rest)
        code.jump(flag)
        code.begin(flag)
        code.branch(self._emit_any_bad(), wrong, done, unlikely=True)
        code.begin(wrong)
        code.line(f"store atomic i64 1, ptr {found} monotonic, align 8")
        code.jump(done)
        code.begin(done)

    def _emit_rest(self, start: str, count: str) -> None:
        """Emit the last elements, fewer than a vector has: they are copied to a vector on the stack and back."""
        code = self.code
        buffers = [code.allocate(self.vector) for _ in (*self.arrays, self.result)]
        size = code.times(count, self.size)
        for x, cell, once in zip(self.arrays, buffers, self.repeated, strict=False):
            if not once:
                first = self._read_number(self._at(x, start))
                code.line(f"store {self.vector} {first}, ptr {cell}")
                self._copy(cell, self._at(x, start), size)
        self._emit_vector(buffers[:-1], buffers[-1], "0")
        self._copy(self._at(self.result, start), buffers[-1], size)

    def _emit_any_bad(self) -> str:
        """Return whether a result was not finite."""
        code = self.code
        bad = code.op(f"load <{self.width} x i1>, ptr {self.bad}")
        code.declared.add(f"declare i1 @llvm.vector.reduce.or.v{self.width}i1(<{self.width} x i1>)")
        return code.op(f"call i1 @llvm.vector.reduce.or.v{self.width}i1(<{self.width} x i1> {bad})")

    def _at(self, base: str, place: str) -> str:
        return base if place == "0" else self.code.op(f"getelementptr {self.type}, ptr {base}, i64 {place}")

    def _read_number(self, pointer: str) -> str:
        number = self.code.op(f"load {self.type}, ptr {pointer}, align {self.size}")
        return splat(self.code, number, self.type, self.width)

    def _copy(self, to: str, source: str, size: str) -> None:
        self.code.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")

    def _emit_vector(self, arrays: list[str], z: str, i: str) -> None:
        """Emit the op on the vectors at place ``i``, and note the lanes in which the result is not finite."""
        code = self.code
        names = [
            x or code.op(f"load {self.vector}, ptr {self._at(a, i)}, align {self.size}")
            for a, x in zip(arrays, self.numbers, strict=True)
        ]
        result = emit_scalar(
            code, self.op, {}, [Value(code, n, self.dtype, self.width) for n in names], self.width, self.dtype
        )
        code.line(f"store {self.vector} {result.name}, ptr {self._at(z, i)}, align {self.size}")
        size = result.like(code.call(f"llvm.fabs.{result.suffix}", result.type, [(result.type, result.name)]))
        odd = size.compare("uge", float("inf"))
        before = code.op(f"load {odd.type}, ptr {self.bad}")
        code.line(f"store {odd.type} {code.op(f'or {odd.type} {before}, {odd.name}')}, ptr {self.bad}")
