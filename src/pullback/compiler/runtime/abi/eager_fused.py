"""The rules of a run (see ``eager_blocks``) as one loop of machine code, for runs that come again and again.

``run_blocks`` calls an inner loop of NumPy for each operation, whose operands and result pass through the cache.  Here
the same operations are emitted as one loop, with what lies between them in registers: the numbers are equal bit by bit,
as each of these operations has one correctly rounded result.  Runs with other operations are left to ``run_blocks``,
and so are the blocks from the first one on that sets a floating-point flag which NumPy would report.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.runtime.abi.eager_programs import find_loop
from pullback.compiler.runtime.abi.eager_records import BLOCK, CALL, FLAGS, INPUTS, OUT, PART, PROGRAM, REGISTERS
from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.compiler.runtime.llvm import TranslatorError, get_code
from pullback.settings import is_enabled

Emit = Callable[[str, list[str]], str]  # an LLVM instruction, of the type of its operands and their names

WORK_TO_COMPILE = 100_000_000  # elements times parts that ``run_blocks`` computes in the time that compiling takes
MOST_LOOPS = 256  # that are compiled in a process
MOST_COUNTED = 4096  # structures whose work is counted: more than that do not come again
VECTOR_BYTES = 64  # of a vector of the loop; several registers where these are shorter
NUMBER_PLACE, ARRAY_PLACE, BUFFER_PLACE = range(3)  # what is at a place: see ``Place`` of ``eager_blocks``
PLACES = (*[PART["inputs"] + 3 * i for i in range(INPUTS)], PART["before"], PART["out"])  # fields of a part
CONTEXT = {"count": 0, "block": 1, "watched": 2, "saved": 3, "places": 4}  # words that the loop reads

OPERATIONS: dict[Any, Emit] = {
    np.add: lambda t, x: f"fadd {t} {x[0]}, {x[1]}",
    np.subtract: lambda t, x: f"fsub {t} {x[0]}, {x[1]}",
    np.multiply: lambda t, x: f"fmul {t} {x[0]}, {x[1]}",
    np.divide: lambda t, x: f"fdiv {t} {x[0]}, {x[1]}",
    np.negative: lambda t, x: f"fneg {t} {x[0]}",
    np.square: lambda t, x: f"fmul {t} {x[0]}, {x[0]}",
    np.positive: lambda t, x: f"select i1 true, {t} {x[0]}, {t} {x[0]}",
    np.sqrt: lambda t, x: f"call {t} @llvm.sqrt.{name_type(t)}({t} {x[0]})",
    np.absolute: lambda t, x: f"call {t} @llvm.fabs.{name_type(t)}({t} {x[0]})",
}


def name_type(t: str) -> str:
    """Return the name of a type in those of LLVM's functions.

    >>> name_type("<16 x float>"), name_type("double")
    ('v16f32', 'f64')
    """
    width, _, number = t.strip("<>").rpartition(" x ")
    return (f"v{width}" if width else "") + {"float": "f32", "double": "f64"}[number]


class JobPart(NamedTuple):
    """A part of a job, with places by their number."""

    program: int  # its address
    inputs: tuple[int, ...]  # -1 for one that is not read
    before: int  # -1 for none
    out: int


class RunPattern(NamedTuple):
    """What runs have in common that the same loop computes."""

    item: int  # bytes of an element
    kinds: tuple[int, ...]  # of the places: NUMBER_PLACE, ARRAY_PLACE or BUFFER_PLACE
    parts: tuple[JobPart, ...]


def find_pattern(parts: Sequence[tuple[int, ...]], item: int) -> tuple[RunPattern, list[int]]:
    """Return the pattern of a job (see ``PART``), and the addresses of its places."""
    numbers: dict[tuple[int, int], int] = {}
    kinds: list[int] = []
    made = []
    for part in parts:
        found = []
        for field in PLACES:
            at, stride, advance = part[field : field + 3]
            number = numbers.setdefault((at, stride), len(kinds)) if at else -1
            if number == len(kinds):
                kinds.append(ARRAY_PLACE if advance else BUFFER_PLACE if stride else NUMBER_PLACE)
            found.append(number)
        made.append(JobPart(part[PART["program"]], tuple(found[:INPUTS]), *found[INPUTS:]))
    return RunPattern(item, tuple(kinds), tuple(made)), [at for at, _ in numbers]


class Operation(NamedTuple):
    """One operation of a program: registers, or the text of a constant."""

    emit: Emit
    operands: list[int | str]
    out: int


def read_program(at: int, item: int) -> list[Operation] | None:
    """Return the operations of the program at an address; None if one of them is not among ``OPERATIONS``."""
    char, kind = ("f", ctypes.c_float) if item == 4 else ("d", ctypes.c_double)
    known = {find_loop(u, char * (u.nin + 1)): emit for u, emit in OPERATIONS.items()}
    words = (ctypes.c_int64 * PROGRAM["calls"]).from_address(at)
    calls = []
    for i in range(words[PROGRAM["length"]]):
        call = (ctypes.c_int64 * len(CALL)).from_address(at + 8 * (PROGRAM["calls"] + i * len(CALL)))
        emit = known.get((call[CALL["loop"]], call[CALL["data"]]))
        if emit is None:
            return None
        operands = [call[CALL["first"] + k] for k in range(call[CALL["inputs"]])]
        read = [n if 0 <= n < REGISTERS else write_constant(kind.from_address(n).value) for n in operands]
        calls.append(Operation(emit, read, call[CALL["out"]]))
    return calls


def write_constant(value: float) -> str:
    """Return a float as LLVM writes it: the bits of the double.

    >>> write_constant(0.5)
    '0x3FE0000000000000'
    """
    return f"0x{np.float64(value).view(np.uint64):016X}"


class RunWriter:
    """Writes the LLVM module of a pattern: ``run(context)``, which gives 0 if all blocks are done, else 1.

    ``run`` ends at the first block that sets a watched flag, with the arrays as they were before this block.
    """

    def __init__(self, pattern: RunPattern, programs: dict[int, list[Operation]]) -> None:
        self.pattern, self.programs = pattern, programs
        self.number = "float" if pattern.item == 4 else "double"
        self.lines: list[str] = []
        self.longest_block = 0  # the instructions of the loop's body
        self.count = 0
        written: set[int] = set()
        self.overwritten: list[int] = []  # arrays that are read before they are written
        for part in pattern.parts:
            for place in (*part.inputs, part.before):
                if place >= 0 and place not in written and pattern.kinds[place] == ARRAY_PLACE:
                    self.overwritten.append(place)
            written.add(part.out)
        self.overwritten = [k for k in dict.fromkeys(self.overwritten) if k in written]
        self.written = [k for k in sorted(written) if pattern.kinds[k] == ARRAY_PLACE]

    def let(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def address(self, place: int, index: str) -> str:
        return self.let(f"getelementptr {self.number}, ptr %p{place}, i64 {index}")

    def load_places(self) -> None:
        """Emit the addresses of all places, as ``%p0`` and so on."""
        for k, kind in enumerate(self.pattern.kinds):
            if kind != BUFFER_PLACE:
                at = self.let(f"getelementptr i64, ptr %context, i64 {CONTEXT['places'] + k}")
                self.lines.append(f"  %p{k} = load ptr, ptr {at}")

    def splat(self, x: str, width: int) -> str:
        """Return a number repeated as a vector, or itself for a width of 1."""
        if width == 1:
            return x
        t = f"<{width} x {self.number}>"
        first = self.let(f"insertelement {t} poison, {self.number} {x}, i64 0")
        return self.let(f"shufflevector {t} {first}, {t} poison, <{width} x i32> zeroinitializer")

    def write_block(self, width: int) -> str:
        """Return ``block<width>(context, start, stop)``, the loop over some elements, ``width`` at a time."""
        self.lines = []
        self.load_places()
        t = self.number if width == 1 else f"<{width} x {self.number}>"
        known = {}  # the value at each place so far
        for k, kind in enumerate(self.pattern.kinds):
            if kind == NUMBER_PLACE:
                known[k] = self.splat(self.let(f"load {self.number}, ptr %p{k}"), width)
        numbers = {
            x: self.splat(x, width)
            for part in self.pattern.parts for call in self.programs[part.program] for x in call.operands
            if isinstance(x, str)
        }  # fmt: skip
        self.lines += ["  br label %loop", "loop:", "  %i = phi i64 [%start, %entry], [%next, %loop]"]
        before = len(self.lines)
        self.write_parts(t, known, numbers)
        for k in self.written:
            self.lines.append(f"  store {t} {known[k]}, ptr {self.address(k, '%i')}, align {self.pattern.item}")
        self.lines += [
            f"  %next = add i64 %i, {width}", "  %more = icmp slt i64 %next, %stop",
            "  br i1 %more, label %loop, label %done",
        ]  # fmt: skip
        self.longest_block = len(self.lines) - before
        self.lines += ["done:", "  ret void"]
        body = "\n".join(self.lines)
        # a call of its own: arithmetic is not moved to the other side of the test for flags
        head = f"define internal void @block{width}(ptr %context, i64 %start, i64 %stop) noinline"
        return f"{head} {{\nentry:\n{body}\n}}\n"

    def write_parts(self, t: str, known: dict[int, str], numbers: dict[str, str]) -> None:
        """Emit the rules of all parts on vectors of type ``t``; ``known`` has the value at each place so far."""

        def read(place: int) -> str:
            if place not in known:
                known[place] = self.let(f"load {t}, ptr {self.address(place, '%i')}, align {self.pattern.item}")
            return known[place]

        for part in self.pattern.parts:
            registers = {r: read(place) for r, place in enumerate(part.inputs) if place >= 0}
            operations = self.programs[part.program]
            for operation in operations:
                given = [numbers[x] if isinstance(x, str) else registers[x] for x in operation.operands]
                registers[operation.out] = self.let(operation.emit(t, given))
            made = registers[OUT] if operations else registers[0]
            if part.before >= 0:
                made = self.let(f"fadd {t} {read(part.before)}, {made}")
            known[part.out] = made

    def write_copies(self, restores: bool) -> None:
        """Emit copies of a block of the arrays that are overwritten, or, to restore them, back."""
        for n, k in enumerate(self.overwritten):
            at = self.address(k, "%start")
            kept = self.let(f"getelementptr i8, ptr %saved, i64 {8 * BLOCK * n}")
            to, source = (at, kept) if restores else (kept, at)
            self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 %bytes, i1 false)")

    def write_block_loop(self, width: int) -> str:
        """Return ``run(context)``, the loop over blocks."""
        self.lines = []
        for name, word in CONTEXT.items():
            at = self.let(f"getelementptr i64, ptr %context, i64 {word}")
            if name == "block":
                self.lines.append(f"  %block_at = getelementptr i64, ptr %context, i64 {word}")
            if name != "places":
                kind = "ptr" if name == "saved" else "i64"
                self.lines.append(f"  %{name} = load {kind}, ptr {at}")
        self.load_places()
        self.lines += [
            "  %flags = trunc i64 %watched to i32", "  %before = call i32 @fetestexcept(i32 %flags)",
            "  %is_set = icmp ne i32 %before, 0", "  br i1 %is_set, label %clear, label %blocks", "clear:",
            "  call i32 @feclearexcept(i32 %flags)", "  br label %blocks", "blocks:",
            "  %b = phi i64 [%block, %entry], [%block, %clear], [%following, %good]",
            "  store i64 %b, ptr %block_at", f"  %start = mul i64 %b, {BLOCK}",
            "  %is_left = icmp slt i64 %start, %count", "  br i1 %is_left, label %work, label %done", "work:",
            f"  %end = add i64 %start, {BLOCK}", "  %is_last = icmp slt i64 %count, %end",
            "  %stop = select i1 %is_last, i64 %count, i64 %end", "  %size = sub i64 %stop, %start",
            f"  %bytes = mul i64 %size, {self.pattern.item}", f"  %rest = urem i64 %size, {width}",
            "  %middle = sub i64 %stop, %rest",
        ]  # fmt: skip
        self.write_copies(False)
        self.lines += [
            "  %is_long = icmp slt i64 %start, %middle", "  br i1 %is_long, label %whole, label %short", "whole:",
            f"  call void @block{width}(ptr %context, i64 %start, i64 %middle)", "  br label %short", "short:",
            "  %is_odd = icmp slt i64 %middle, %stop", "  br i1 %is_odd, label %tail, label %look", "tail:",
            "  call void @block1(ptr %context, i64 %middle, i64 %stop)", "  br label %look", "look:",
            "  %found = call i32 @fetestexcept(i32 %flags)", "  %is_bad = icmp ne i32 %found, 0",
            "  br i1 %is_bad, label %bad, label %good", "good:", "  %following = add i64 %b, 1",
            "  br label %blocks", "bad:",
        ]  # fmt: skip
        self.write_copies(True)
        self.lines += ["  ret i64 1", "done:", "  ret i64 0"]
        body = "\n".join(self.lines)
        return f"define i64 @run(ptr %context) {{\nentry:\n{body}\n}}\n"

    def write(self) -> str:
        """Return the text of the module."""
        width = VECTOR_BYTES // self.pattern.item
        types = self.number, f"<{width} x {self.number}>"
        declared = [f"declare {t} @llvm.{f}.{name_type(t)}({t})" for f in ("sqrt", "fabs") for t in types]
        return "\n".join([
            *declared, "declare i32 @fetestexcept(i32)", "declare i32 @feclearexcept(i32)",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)", self.write_block(width), self.write_block(1),
            self.write_block_loop(width),
        ])  # fmt: skip


class FusedRuns:
    """The loops of the runs of a process, by pattern; a loop is compiled once a pattern has had enough work."""

    def __init__(self) -> None:
        self.work: dict[RunPattern, int] = {}  # elements times parts that were computed without a loop
        self.loops: dict[RunPattern, Any] = {}  # None for a pattern that has none

    def run_parts(self, parts: Sequence[tuple[int, ...]], size: int, item: int, ignored: int, saved: int) -> int:
        """Run the parts of a job on its first blocks, and return the number of blocks that are done.

        ``ignored`` are the floating-point flags that do not matter, ``saved`` is the address of free memory.
        """
        pattern, places = find_pattern(parts, item)
        if pattern not in self.loops:
            if len(self.work) >= MOST_COUNTED:
                self.work.clear()
            self.work[pattern] = self.work.get(pattern, 0) + size * len(parts)
            if self.work[pattern] < WORK_TO_COMPILE or len(self.loops) >= MOST_LOOPS:
                return 0
            self.loops[pattern] = compile_loop(pattern) if is_enabled("fused runs") else None
        loop = self.loops[pattern]
        if loop is None:
            return 0
        context = (ctypes.c_int64 * (len(CONTEXT) - 1 + len(places)))(size, 0, FLAGS & ~ignored, saved, *places)
        loop(ctypes.addressof(context))
        return context[CONTEXT["block"]]


def compile_loop(pattern: RunPattern) -> Any:
    """Return ``run`` of the module of a pattern as a function of an address; None if there is none."""
    programs = {part.program: read_program(part.program, pattern.item) for part in pattern.parts}
    known = {at: calls for at, calls in programs.items() if calls is not None}
    if len(known) < len(programs):
        return None
    try:
        writer = RunWriter(pattern, known)
        text = writer.write()
        code = get_code(text, ["run"], {}, get_default_cache(), longest_block=writer.longest_block)[0]
    except TranslatorError:
        return None
    code.keep()
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.addresses["run"])
