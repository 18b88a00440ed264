"""A builder of LLVM text: vectors as Python values with operators, loops, loads and stores.

``codegen`` and ``math`` emit everything with it.  Vectors are explicit; a vector of width 1 is a scalar.  The only
fast-math flag is ``contract``, by which LLVM may fuse a multiplication and an addition; ``Code.exactly`` forbids it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pullback.numerics.dtypes import make_dtype

FLOATS = {"f4": "float", "f8": "double"}
TYPES = {
    **FLOATS, "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
    "u1": "i8", "u2": "i16", "u4": "i32", "u8": "i64", "b1": "i1",
}  # fmt: skip


@lru_cache(256)
def code_of(dtype: DTypeLike) -> str:
    """Return the short name of a dtype, its kind and its bytes: what ``Value.dtype`` is.

    >>> code_of(np.float32), code_of(bool)
    ('f4', 'b1')
    """
    return str(make_dtype(dtype).str[1:])


class Label(str):
    """The line of a function that begins a basic block; all other lines are instructions."""

    __slots__ = ()


class Definition(NamedTuple):
    """The text of a function or a constant of a module."""

    text: str
    longest_block: int = 0  # the instructions of its longest basic block


Helpers = tuple[dict[str, Definition], set[str]]  # functions by name, and their declarations


def define_function(head: str, lines: list[str], result: str = "void") -> Definition:
    """Return a function with these instructions, which returns ``result``."""
    return Definition("\n".join([head, "entry:", *lines, f"ret {result}", "}"]), count_longest_block(lines))


def count_longest_block(lines: Iterable[str]) -> int:
    """Return the instructions of the longest basic block among the lines of a function."""
    longest = count = 0
    for line in lines:
        count += 1
        if type(line) is Label:
            longest, count = max(longest, count - 1), 0
    return max(longest, count)


class Code:
    """The text of one function, instruction by instruction, and what it refers to."""

    def __init__(self, has_fma: bool = True, register_bytes: int = 0) -> None:
        self.has_fma = has_fma  # whether the target has an instruction for x * y + z that rounds once
        self.register_bytes = register_bytes  # of a vector register; wider vectors are stored register by register
        self.lines: list[str] = []
        self.entry: list[str] = []  # allocations on the stack, which come first
        self.declared: set[str] = set()  # declarations of the functions that it calls
        self.helpers: dict[str, Definition] = {}  # functions that it calls, by name
        self.count = 0  # of the names that were made
        self.exact_depth = 0  # how many ``exactly`` blocks are open
        self.products: set[str] = set()  # names of products: LLVM may fuse them with a sum (for ARM even exact ones)
        self.scaled: dict[str, tuple[str, float]] = {}  # by product with a number: the other factor, and the number
        self.negated: dict[str, str] = {}  # by negative: what it is the negative of
        self.rare: list[Value] | None = None  # inside ``collect_rare``: the lanes that need a slow path
        self.flags_rare = False  # whether a flag is set where a lane needs a slow path, instead of taking it
        self.existing: str | None = None  # the mask of the lanes whose rows exist; None if all do
        self.splits: dict[str, tuple[str, str, int]] = {}  # by quotient: the index divided, the remainder, the divisor
        self.shared: dict[Any, Any] = {}  # values that later lines of the same basic block may use again

    @property
    def body(self) -> list[str]:
        """All lines of the function."""
        return [*self.entry, *self.lines]

    def line(self, text: str) -> None:
        self.lines.append(text)

    def fresh(self, base: str = "v") -> str:
        self.count += 1
        return f"{base}{self.count}"

    def op(self, text: str) -> str:
        """Add an instruction and return the name of its result."""
        name = f"%{self.fresh()}"
        self.lines.append(f"{name} = {text}")
        return name

    def divide(self, text: str) -> str:
        """Add a division, which takes longer than other instructions: builders that count costs override this."""
        return self.op(text)

    def call(self, function: str, result: str, args: Sequence[tuple[str, str]]) -> str:
        """Call and declare a function, with (type, value) for each argument."""
        self.declared.add(f"declare {result} @{function}({', '.join(t for t, _ in args)})")
        return self.op(f"call {result} @{function}({', '.join(f'{t} {v}' for t, v in args)})")

    def add_helper(self, name: str, write: Callable[[], Helpers]) -> None:
        """Add a function to the module unless it is there; ``write`` returns it, those it calls, and declarations."""
        if name not in self.helpers:
            helpers, declared = write()
            self.helpers.update(helpers)
            self.declared |= declared

    def call_helper(self, name: str, args: str) -> None:
        """Call a function that was added, which returns nothing."""
        self.line(f"call void @{name}({args})")

    def block(self, base: str) -> str:
        """Return the name of a new basic block."""
        return self.fresh(base)

    def begin(self, name: str) -> None:
        self.shared.clear()
        self.line(Label(f"{name}:"))

    def jump(self, name: str) -> None:
        self.line(f"br label %{name}")

    def branch(self, condition: str, yes: str, no: str, unlikely: bool = False) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}{', !prof !0' if unlikely else ''}")

    def allocate(self, type_: str, align: int = 64) -> str:
        """Return the address of memory on the stack, which is allocated when the function begins."""
        name = f"%{self.fresh('cell')}"
        self.entry.append(f"{name} = alloca {type_}, align {align}")
        return name

    @contextmanager
    def exactly(self) -> Iterator[None]:
        """Forbid LLVM to fuse the multiplications and additions of a ``with`` block."""
        self.exact_depth += 1
        try:
            yield
        finally:
            self.exact_depth -= 1

    @contextmanager
    def collect_rare(self) -> Iterator[list[Value]]:
        """Emit no slow paths in a ``with`` block, but collect the lanes that need one in the list that it gets."""
        before, self.rare = self.rare, []
        try:
            yield self.rare
        finally:
            self.rare = before

    @contextmanager
    def loop(self, start: int | str, stop: int | str, step: int = 1) -> Iterator[str]:
        """Emit a loop over ``range(start, stop, step)``, which must not be empty; the ``with`` block gets its index."""
        before, top, last, after = (self.block(b) for b in ("before", "loop", "next", "after"))
        self.jump(before)
        self.begin(before)
        self.jump(top)
        self.begin(top)
        i, following = f"%{self.fresh('i')}", f"%{self.fresh('i')}"
        self.line(f"{i} = phi i64 [{start}, %{before}], [{following}, %{last}]")
        yield i
        self.jump(last)
        self.begin(last)
        self.line(f"{following} = add nuw nsw i64 {i}, {step}")
        self.branch(self.op(f"icmp slt i64 {following}, {stop}"), top, after)
        self.begin(after)

    @contextmanager
    def loop_while(self, emit_condition: Callable[[], str]) -> Iterator[None]:
        """Emit a ``while`` loop with the ``with`` block as its body; ``emit_condition`` emits its condition."""
        top, body, after = self.block("while"), self.block("body"), self.block("after")
        self.jump(top)
        self.begin(top)
        self.branch(emit_condition(), body, after)
        self.begin(body)
        yield
        self.jump(top)
        self.begin(after)

    @contextmanager
    def when(self, condition: str, unlikely: bool = False) -> Iterator[None]:
        """Emit a ``with`` block that runs only if a condition holds."""
        yes, after = self.block("yes"), self.block("after")
        self.branch(condition, yes, after, unlikely)
        self.begin(yes)
        yield
        self.jump(after)
        self.begin(after)

    # ---- memory: single elements

    def at(self, type_: str, base: str, place: str | int) -> str:
        """Return the address of an element of an array; that of the first is the array's."""
        return base if place in ("0", 0) else self.op(f"getelementptr {type_}, ptr {base}, i64 {place}")

    def load(self, type_: str, base: str, place: str | int = 0) -> str:
        return self.op(f"load {type_}, ptr {self.at(type_, base, place)}")

    def store(self, type_: str, value: str, base: str, place: str | int = 0) -> None:
        self.line(f"store {type_} {value}, ptr {self.at(type_, base, place)}")

    def keep(self, type_: str, value: str) -> str:
        """Return the address of a new variable with an initial value."""
        cell = self.allocate(type_, 8)
        self.store(type_, value, cell)
        return cell

    def copy_bytes(self, to: str, source: str, size: str | int, align: int = 1) -> None:
        """Copy memory, both ends of which have this alignment, to memory that does not overlap with it."""
        self.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        ends = f"ptr align {align} {to}, ptr align {align} {source}"
        self.line(f"call void @llvm.memcpy.p0.p0.i64({ends}, i64 {size}, i1 false)")

    def clear_bytes(self, at: str, size: str | int) -> None:
        """Set memory to zero."""
        self.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.line(f"call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 false)")

    # ---- memory: whole vectors, or the lanes of a mask

    def read(
        self, pointer: str, memory: str, size: int, width: int, mask: str | None, idle: str = "zeroinitializer"
    ) -> str:
        """Load a vector of elements of this type and size in bytes; lanes that are not loaded hold ``idle``."""
        type_ = vector(memory, width)
        if mask is None:
            return self.op(f"load {type_}, ptr {pointer}, align {size}")
        lanes = [("ptr", pointer), ("i32", str(size)), (f"<{width} x i1>", mask), (type_, idle)]
        return self.call(f"llvm.masked.load.v{width}{_letter(memory)}.p0", type_, lanes)

    def gather(
        self, pointers: str, memory: str, size: int, width: int, mask: str | None, idle: str = "zeroinitializer"
    ) -> str:
        """Load an element for each lane from its own address."""
        type_, every = vector(memory, width), mask or "splat (i1 true)"
        lanes = [(f"<{width} x ptr>", pointers), ("i32", str(size)), (f"<{width} x i1>", every), (type_, idle)]
        return self.call(f"llvm.masked.gather.v{width}{_letter(memory)}.v{width}p0", type_, lanes)

    def write(self, value: str, pointer: str, memory: str, size: int, width: int, mask: str | None) -> None:
        """Store the lanes of a vector that are set in the mask; elements have this type and size in bytes."""
        type_ = vector(memory, width)
        if mask is None and width * size <= (self.register_bytes or width * size):
            self.line(f"store {type_} {value}, ptr {pointer}, align {size}")
            return
        if mask is None:  # LLVM would store the last register first, which takes up to twice as long
            part = self.register_bytes // size
            for i in range(0, width, part):
                piece = self.shuffle(type_, value, "poison", range(i, i + part))
                at = self.at(memory, pointer, i)
                self.line(f"store {vector(memory, part)} {piece}, ptr {at}, align {size}")
            return
        if mask == first_lanes(1, width):  # LLVM 20 stores too many bytes for a masked store of one truncated lane
            element = self.op(f"extractelement {type_} {value}, i64 0")
            self.line(f"store {memory} {element}, ptr {pointer}, align {size}")
            return
        function = f"llvm.masked.store.v{width}{_letter(memory)}.p0"
        self.declared.add(f"declare void @{function}({type_}, ptr, i32, <{width} x i1>)")
        self.line(f"call void @{function}({type_} {value}, ptr {pointer}, i32 {size}, <{width} x i1> {mask})")

    # ---- indices

    def shuffle(self, type_: str, a: str, b: str, lanes: Sequence[int]) -> str:
        """Return a vector of chosen lanes of two vectors; those of the second are counted on after the first's."""
        order = ", ".join(f"i32 {i}" for i in lanes)
        return self.op(f"shufflevector {type_} {a}, {type_} {b}, <{len(lanes)} x i32> <{order}>")

    def pack(self, type_: str, lanes: Sequence[str], width: int) -> str:
        """Return the vector that has scalars of this type in its first lanes; a vector of width 1 is the scalar."""
        if width == 1:
            return lanes[0]
        packed = "poison"
        for i, lane in enumerate(lanes):
            packed = self.op(f"insertelement {vector(type_, width)} {packed}, {type_} {lane}, i64 {i}")
        return packed

    def add(self, a: str, b: str) -> str:
        """Add two indices; adding 0 emits nothing."""
        if a == "0" or b == "0":
            return b if a == "0" else a
        return self.op(f"add nsw i64 {a}, {b}")

    def minimum(self, a: int | str, b: int | str) -> str:
        """Return the smaller of two indices."""
        return self.call("llvm.smin.i64", "i64", [("i64", str(a)), ("i64", str(b))])

    def maximum(self, a: int | str, b: int | str) -> str:
        """Return the larger of two indices."""
        return self.call("llvm.smax.i64", "i64", [("i64", str(a)), ("i64", str(b))])

    def times(self, a: str, n: int) -> str:
        """Multiply an index; by 0 or 1 emits nothing."""
        return "0" if not n or a == "0" else a if n == 1 else self.op(f"mul nsw i64 {a}, {n}")


class Value:
    """A vector, or a scalar of width 1, whose operators emit instructions; a Python number takes its dtype."""

    __slots__ = ("code", "dtype", "name", "number", "width")

    def __init__(self, code: Code, name: str, dtype: str, width: int, number: float | None = None) -> None:
        self.code, self.name, self.dtype, self.width = code, name, dtype, width
        self.number = number  # the number in all lanes, if it is a constant

    def __repr__(self) -> str:
        return f"{self.type} {self.name}"

    # ---- types

    @property
    def kind(self) -> str:
        return self.dtype[0]

    @property
    def type(self) -> str:
        return vector(TYPES[self.dtype], self.width)

    @property
    def bits(self) -> int:
        return 1 if self.dtype == "b1" else int(self.dtype[1]) * 8

    @property
    def suffix(self) -> str:
        """The type as the names of LLVM's intrinsics have it, such as ``v8f32``."""
        base = f"{'f' if self.kind == 'f' else 'i'}{self.bits}"
        return base if self.width == 1 else f"v{self.width}{base}"

    def like(self, name: str, dtype: str | None = None) -> Value:
        """Return the vector of this name, with the same width and, unless another is given, dtype."""
        return Value(self.code, name, dtype or self.dtype, self.width)

    def lift(self, x: Value | float) -> Value:
        """Return a Python number as a vector like this one, with the number in all lanes; a value as it is."""
        return x if isinstance(x, Value) else constant(self.code, x, self.dtype, self.width)

    # ---- arithmetic

    def _emit_binary(self, x: Value | float, real: str, whole: str, divides: bool = False) -> Value:
        """Emit the instruction ``real`` for floats, ``whole`` for integers and bools."""
        y, emit = self.lift(x), self.code.divide if divides else self.code.op
        if self.kind == "f":
            flags = "" if self.code.exact_depth else " contract"
            result = self.like(emit(f"{real}{flags} {self.type} {self.name}, {y.name}"))
            if real == "fmul":
                self.code.products.add(result.name)
            return result
        return self.like(emit(f"{whole} {self.type} {self.name}, {y.name}"))

    def __add__(self, x: Value | float) -> Value:
        return self._emit_binary(x, "fadd", "or" if self.kind == "b" else "add")

    def __sub__(self, x: Value | float) -> Value:
        y = self.lift(x)
        if y.number is not None and self.kind in "fi":  # so that both need one constant
            return self + (-float(y.number) if self.kind == "f" else -y.number)
        return self._emit_binary(y, "fsub", "sub")

    def __mul__(self, x: Value | float) -> Value:
        y = self.lift(x)
        if self.kind == "f" and y.number is not None:
            return self._scale(float(y.number))
        if self.kind == "f" and self.number is not None:
            return y._scale(float(self.number))
        return self._emit_binary(y, "fmul", "and" if self.kind == "b" else "mul")

    def _scale(self, factor: float) -> Value:
        """Return floats times a number; of a negative, the number has the sign."""
        if self.name in self.code.negated:
            return self.like(self.code.negated[self.name])._scale(-factor)
        product = self._emit_binary(factor, "fmul", "mul")
        self.code.scaled[product.name] = self.name, factor
        return product

    def __truediv__(self, x: Value | float) -> Value:
        return self._emit_binary(x, "fdiv", "udiv" if self.kind in "ub" else "sdiv", divides=True)

    def round_product(self) -> Value:
        """Return this value; if it is a product, LLVM may not fuse it with a sum.

        The users of a product may be in different loops.  Were it fused in one and rounded in another, then
        w * x - max(w * x) would not be 0 where w * x is largest, and its square root would be NaN.
        """
        if self.name not in self.code.products:
            return self
        function = f"{self.type} @llvm.arithmetic.fence.{self.suffix}({self.type}"
        self.code.declared.add(f"declare {function})")
        return self.like(self.code.op(f"call {function} {self.name})"))

    def __and__(self, x: Value | float) -> Value:
        return self._emit_binary(x, "and", "and")

    def __or__(self, x: Value | float) -> Value:
        return self._emit_binary(x, "or", "or")

    def __xor__(self, x: Value | float) -> Value:
        return self._emit_binary(x, "xor", "xor")

    def __lshift__(self, x: Value | float) -> Value:
        return self._emit_binary(x, "shl", "shl")

    def __rshift__(self, x: Value | float) -> Value:
        """Shift right: logical for unsigned lanes, else arithmetic."""
        return self._emit_binary(x, "ashr", "lshr" if self.kind == "u" else "ashr")

    def __radd__(self, x: Value | float) -> Value:
        return self.lift(x) + self

    def __rsub__(self, x: Value | float) -> Value:
        return self.lift(x) - self

    def __rmul__(self, x: Value | float) -> Value:
        return self.lift(x) * self

    def __rtruediv__(self, x: Value | float) -> Value:
        return self.lift(x) / self

    def __neg__(self) -> Value:
        if self.kind != "f":
            return self.lift(0) - self
        if not self.code.exact_depth and self.name in self.code.scaled:  # vector functions negate operands of FMA
            name, factor = self.code.scaled[self.name]
            with self.code.exactly():
                return self.like(name)._scale(-factor)
        negated = self.like(self.code.op(f"fneg {self.type} {self.name}"))
        self.code.negated[negated.name] = self.name
        return negated

    def __invert__(self) -> Value:
        return self ^ (True if self.kind == "b" else -1)

    # ---- comparisons

    def compare(self, word: str, x: Value | float) -> Value:
        """Compare by one of LLVM's predicates for floats, such as ``ogt`` (ordered) or ``ugt`` (true for NaN too)."""
        y = self.lift(x)
        if self.kind == "f":
            how = f"fcmp {word}"
        else:
            bare = word[1:]
            how = f"icmp {bare if bare in ('eq', 'ne') else ('u' if self.kind in 'ub' else 's') + bare}"
        return self.like(self.code.op(f"{how} {self.type} {self.name}, {y.name}"), "b1")

    def __gt__(self, x: Value | float) -> Value:
        return self.compare("ogt", x)

    def __lt__(self, x: Value | float) -> Value:
        return self.compare("olt", x)

    def __ge__(self, x: Value | float) -> Value:
        return self.compare("oge", x)

    def __le__(self, x: Value | float) -> Value:
        return self.compare("ole", x)

    def __eq__(self, x: Value | float) -> Value:  # type: ignore[override]
        return self.compare("oeq", x)

    def __ne__(self, x: Value | float) -> Value:  # type: ignore[override]
        return self.compare("une", x)

    __hash__ = object.__hash__

    # ---- other types

    def as_bits(self) -> Value:
        """Return the bits of floats as signed integers."""
        return self._convert(f"i{self.dtype[1]}", "bitcast")

    def as_floats(self) -> Value:
        """Return the floats that have these bits."""
        return self._convert(f"f{self.dtype[1]}", "bitcast")

    def _convert(self, dtype: str, how: str) -> Value:
        new = self.like("", dtype)
        new.name = self.code.op(f"{how} {self.type} {self.name} to {new.type}")
        return new

    def sign_extend(self, dtype: str) -> Value:
        """Return integers or bools as wider integers, whose new bits are copies of the highest one."""
        return self._convert(dtype, "sext")

    def cast(self, dtype: str) -> Value:
        """Return the same numbers in another dtype, as NumPy casts them."""
        if dtype == self.dtype:
            return self
        if dtype == "b1":
            return self.compare("une", 0)
        wide, wider = self.bits, 1 if dtype == "b1" else int(dtype[1]) * 8
        if self.kind == "f" and dtype[0] == "f":
            return self._convert(dtype, "fpext" if wider > wide else "fptrunc")
        if self.kind == "f":
            return self._to_integer(dtype)
        if dtype[0] == "f":
            return self._convert(dtype, "uitofp" if self.kind in "ub" else "sitofp")
        if wider == wide:
            return self.like(self.name, dtype)
        return self._convert(dtype, "trunc" if wider < wide else "zext" if self.kind in "ub" else "sext")

    def _to_integer(self, dtype: str) -> Value:
        """Return floats converted to integers, by way of wide signed ones: what is too large wraps, as in C."""
        wide = "i8" if dtype in ("u4", "u8", "i8") else "i4"
        if dtype != "u8":
            return self._to_signed(wide).cast(dtype)
        half = float(2**63)
        with self.code.exactly():
            upper = (self - half)._to_signed(wide) ^ -(2**63)
        above, lower = self.compare("oge", half), self._to_signed(wide)
        chosen = f"select {above.type} {above.name}, {lower.type} {upper.name}, {lower.type} {lower.name}"
        return lower.like(self.code.op(chosen), dtype)

    def _to_signed(self, dtype: str) -> Value:
        result = self._convert(dtype, "fptosi")
        # For NaN and numbers that are too large the result is undefined; frozen, it is some integer.
        return result.like(self.code.op(f"freeze {result.type} {result.name}"))


class Variable:
    """A vector on the stack, which LLVM keeps in registers."""

    def __init__(self, start: Value) -> None:
        self.start, self.cell = start, start.code.allocate(start.type)
        self.set(start)

    def set(self, v: Value) -> None:
        v.code.line(f"store {v!r}, ptr {self.cell}, align 64")

    def get(self) -> Value:
        return self.start.like(self.start.code.op(f"load {self.start.type}, ptr {self.cell}, align 64"))


def transpose_square(rows: Sequence[Value]) -> list[Value]:
    """Return the transposes of square matrices whose rows are the vectors, one beside the other in their lanes."""
    rows, step, count, width = [*rows], 1, len(rows), rows[0].width
    while step < count:
        low = [j if not j & step else width + j - step for j in range(width)]
        high = [j + step if not j & step else width + j for j in range(width)]
        for i in range(count):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i], rows[i + step] = (a.like(a.code.shuffle(a.type, a.name, b.name, of)) for of in (low, high))
        step *= 2
    return rows


def slice_lanes(v: Value, at: int, count: int) -> Value:
    """Return ``count`` lanes of a vector from the one at ``at`` on."""
    if count == 1:
        return Value(v.code, v.code.op(f"extractelement {v!r}, i64 {at}"), v.dtype, 1)
    return Value(v.code, v.code.shuffle(v.type, v.name, "poison", range(at, at + count)), v.dtype, count)


def join_lanes(parts: Sequence[Value]) -> Value:
    """Return a vector of the lanes of several, whose number is a power of two."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    a, b = join_lanes(parts[:half]), join_lanes(parts[half:])
    return Value(a.code, a.code.shuffle(a.type, a.name, b.name, range(2 * a.width)), a.dtype, 2 * a.width)


def vector(type_: str, width: int) -> str:
    """Return the type of a vector, or of a scalar for a width of 1."""
    return type_ if width == 1 else f"<{width} x {type_}>"


def _letter(memory: str) -> str:
    """Return a type as the names of LLVM's intrinsics have it."""
    return {"float": "f32", "double": "f64"}.get(memory, memory)


def first_lanes(count: int, width: int) -> str | None:
    """Return the mask of the first lanes, or None if these are all."""
    if count >= width:
        return None
    return f"<{', '.join('i1 true' if i < count else 'i1 false' for i in range(width))}>"


def last_lanes(count: int, width: int) -> str | None:
    """Return the mask of the last lanes, or None if these are all."""
    if count >= width:
        return None
    return f"<{', '.join('i1 true' if i >= width - count else 'i1 false' for i in range(width))}>"


def literal(x: float, dtype: str, width: int) -> str:
    """Return a number in all lanes as LLVM text."""
    if dtype in FLOATS:
        x = float(np.float32(x)) if dtype == "f4" else float(x)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
    elif dtype == "b1":
        text = "true" if x and x != -np.inf else "false"
    elif abs(x) == np.inf:  # the identity of a maximum or minimum
        bounds = np.iinfo(dtype)
        text = str(bounds.max if x > 0 else bounds.min)
    else:
        text = str(int(x))
    return text if width == 1 else f"splat ({TYPES[dtype]} {text})"


def constant(code: Code, x: float, dtype: str, width: int) -> Value:
    """Return a number in all lanes, as a value that keeps it as a Python number."""
    return Value(code, literal(x, dtype, width), dtype, width, float(np.float32(x)) if dtype == "f4" else x)


def splat(code: Code, scalar: str, type_: str, width: int) -> str:
    """Return the name of a vector that has a scalar in all lanes."""
    if width == 1:
        return scalar
    first = code.op(f"insertelement <{width} x {type_}> poison, {type_} {scalar}, i64 0")
    return code.op(
        f"shufflevector <{width} x {type_}> {first}, <{width} x {type_}> poison, <{width} x i32> zeroinitializer"
    )
