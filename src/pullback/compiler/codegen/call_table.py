"""Functions that call the kernels of a program; a long run of calls becomes a table and a loop over it.

A call is a record (``Call``) until its function is rendered.  Calls that differ only in addresses become rows of a
table, so that a loop that was unrolled a hundred times does not become long text, which LLVM compiles slowly.  In the
table an address is one word: an offset, a bit for rounding down to a cache line, and in the last 15 bits the number
of its base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pullback.compiler.builder import Code, Definition, Label, define_function
from pullback.compiler.target import LINE_BYTES

MIN_CALLS = 48  # rows of a table; fewer calls compile as fast one by one
MIN_SHARED_CALLS = 4  # rows of a table for each signature, on average
ARENA, STACK, FIRST = 0, 1, 2  # numbers of bases: the arena, the stack of the function, the program's first slot
MAX_SLOTS = 1 << 12  # slots whose addresses a table may use: it copies them to the stack
ROUNDED_BIT = 1 << 15  # the bit of a word that says that the address is rounded down to a cache line


class Address(NamedTuple):
    """An address as a base and offsets, which is computed where a call is rendered."""

    base: int  # ARENA, STACK, or FIRST plus the number of a slot
    offset: int = 0  # bytes from the base
    rounded: bool = False  # whether base plus offset is rounded down to a cache line
    ahead: int = 0  # bytes that are added after rounding

    @classmethod
    def of_slot(cls, slot: int, offset: int = 0, rounded: bool = False) -> Address:
        """Return an address in the array of a slot."""
        return cls(slot + FIRST, offset, rounded)

    def further(self, count: int) -> Address:
        """Return the address ``count`` bytes further on."""
        if self.rounded:
            return self._replace(ahead=self.ahead + count)
        return self._replace(offset=self.offset + count)

    @property
    def has_word(self) -> bool:
        """Whether the address can be a word of a table."""
        return not self.ahead and self.base < FIRST + MAX_SLOTS

    @property
    def word(self) -> int:
        """The address as a word of a table."""
        return (self.offset << 16) + (ROUNDED_BIT if self.rounded else 0) + self.base


class ConstantOperand(NamedTuple):
    """An operand that is known while compiling, such as ``i64 3`` or ``ptr null``."""

    type: str
    value: str


def integer(value: int) -> ConstantOperand:
    """Return a 64-bit integer as an operand."""
    return ConstantOperand("i64", str(value))


class Local(NamedTuple):
    """An operand that is the result of an instruction of the calling function."""

    type: str
    name: str


Operand = Address | ConstantOperand | Local
# What calls with rows of the same form share: the function, and for each argument its value if that is constant.
Signature = tuple[str, tuple[ConstantOperand | None, ...]]


class Call(NamedTuple):
    """A call of a function that returns nothing."""

    function: str
    args: tuple[Operand, ...]

    @property
    def addresses(self) -> list[Address]:
        return [a for a in self.args if isinstance(a, Address)]

    @property
    def signature(self) -> Signature | None:
        """The function and its constant arguments; None if the call cannot be in a table."""
        if any(isinstance(a, Local) or (isinstance(a, Address) and not a.has_word) for a in self.args):
            return None
        return self.function, tuple(a if isinstance(a, ConstantOperand) else None for a in self.args)


class CallList(Code):
    """The body of a function ``(ptr %slots, ptr %arena)`` that does little but call others.

    ``parts`` has the calls so far and the text between them, the inherited ``lines`` the text after the last call.
    ``%small`` is the function's memory on the stack.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[list[str] | Call] = []
        self.pointers: dict[Address, str] = {}  # names of the addresses of calls since the last text between them

    def call_void(self, function: str, args: Sequence[Operand], first: bool = False) -> None:
        """Add a call, after everything there is so far or before it."""
        call = Call(function, tuple(args))
        if first:
            self.parts.insert(0, call)
            return
        self._close_text()
        self.parts.append(call)

    def pointer(self, at: Operand) -> str:
        """Return the name of a pointer operand; an address is computed here."""
        if isinstance(at, ConstantOperand):
            return at.value
        if isinstance(at, Local):
            return at.name
        if at.base >= FIRST:
            base = self.load("ptr", "%slots", at.base - FIRST)
        else:
            base = "%arena" if at.base == ARENA else "%small"
        address = self.at("i8", base, at.offset)
        if not at.rounded:
            return address
        self.declared.add("declare ptr @llvm.ptrmask.p0.i64(ptr, i64)")
        return self.at("i8", self.op(f"call ptr @llvm.ptrmask.p0.i64(ptr {address}, i64 {-LINE_BYTES})"), at.ahead)

    def render(self, name: str, has_stack: bool) -> tuple[list[str], list[Definition]]:
        """Return the lines of the function, and the functions ``name_0``, ``name_1``, … of its tables."""
        self._close_text()
        parts, self.parts = self.parts, []
        functions: list[Definition] = []
        run: list[Call] = []

        def close() -> None:
            signatures = {call.signature for call in run}
            if len(run) < max(MIN_CALLS, MIN_SHARED_CALLS * len(signatures)):
                for call in run:
                    self._write(call)
            else:
                self.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
                if any(a.rounded for call in run for a in call.addresses):
                    self.declared.add("declare ptr @llvm.ptrmask.p0.i64(ptr, i64)")
                table = f"{name}_{len(functions)}"
                functions.append(_emit_table(table, run))
                self.line(f"call void @{table}(ptr %slots, ptr %arena, ptr {'%small' if has_stack else 'null'})")
            run.clear()

        for part in parts:
            if isinstance(part, Call) and part.signature is not None:
                run.append(part)
                continue
            close()
            if isinstance(part, Call):
                self._write(part)
            else:
                self.lines += part
                self.pointers.clear()  # the text may be a loop
        close()
        return self.lines, functions

    def _close_text(self) -> None:
        if self.lines:
            self.parts.append(self.lines)
            self.lines = []

    def _write(self, call: Call) -> None:
        args = [
            f"{a.type} {a.value}" if isinstance(a, ConstantOperand) else _format_operand(a, self._name(a))
            for a in call.args
        ]
        self.line(f"call void @{call.function}({', '.join(args)})")

    def _name(self, operand: Address | Local) -> str:
        """Return the name of an operand of a call; an address is computed once, as a name takes no time to compile."""
        if isinstance(operand, Local):
            return operand.name
        if operand not in self.pointers:
            self.pointers[operand] = self.pointer(operand)
        return self.pointers[operand]


def _format_operand(operand: Address | Local, name: str) -> str:
    return f"{'ptr' if isinstance(operand, Address) else operand.type} {name}"


def _emit_table(name: str, run: list[Call]) -> Definition:
    """Return a table of calls, and a function with a loop over its rows that makes the calls."""
    signatures: dict[Signature, int] = {}
    rows = []
    rounded: set[tuple[int, int]] = set()  # signature and position of the addresses that some row rounds
    for call in run:
        if call.signature is not None:
            number = signatures.setdefault(call.signature, len(signatures))
            rows += [number, *(a.word for a in call.addresses)]
            rounded.update((number, i) for i, a in enumerate(call.addresses) if a.rounded)
    last = max([FIRST - 1, *(a.base for call in run for a in call.addresses)])
    cases = " ".join(f"i64 {n}, label %kind{n}" for n in range(1, len(signatures)))
    head = "\n".join(
        [
            f"@{name}_rows = private unnamed_addr constant [{len(rows)} x i64] [{', '.join(f'i64 {w}' for w in rows)}]",
            f'define internal void @{name}(ptr %slots, ptr %arena, ptr %small) noinline "no-jump-tables"="true" {{',
        ]
    )
    lines = [
        f"%bases = alloca [{last + 1} x ptr]",
        "store ptr %arena, ptr %bases",
        "%second = getelementptr ptr, ptr %bases, i64 1",
        "store ptr %small, ptr %second",
        f"%others = getelementptr ptr, ptr %bases, i64 {FIRST}",
        f"call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %slots, i64 {8 * (last + 1 - FIRST)}, i1 false)",
        "br label %next",
        Label("next:"),
        f"%row = phi ptr [@{name}_rows, %entry], [%following, %done]",
        "%kind = load i64, ptr %row",
        f"switch i64 %kind, label %kind0 [{cases}]",
    ]
    ways = []
    for (function, constants), number in signatures.items():
        lines.append(Label(f"kind{number}:"))
        args = []
        count = 0
        for constant in constants:
            if constant is None:
                lines += _read_address(number, count, (number, count) in rounded)
                args.append(f"ptr %p{number}.{count}")
                count += 1
            else:
                args.append(f"{constant.type} {constant.value}")
        lines += [
            f"call void @{function}({', '.join(args)})",
            f"%following{number} = getelementptr i64, ptr %row, i64 {count + 1}",
            "br label %done",
        ]
        ways.append(f"[%following{number}, %kind{number}]")
    lines += [
        Label("done:"),
        f"%following = phi ptr {', '.join(ways)}",
        f"%all = icmp eq ptr %following, getelementptr (i64, ptr @{name}_rows, i64 {len(rows)})",
        "br i1 %all, label %out, label %next",
        Label("out:"),
    ]
    return define_function(head, lines)


def _read_address(kind: int, place: int, rounded: bool) -> list[str]:
    """Return the instructions that compute an address of a call, ``%p<kind>.<place>``, from a word of the row."""
    x = f"{kind}.{place}"
    lines = [
        f"%at{x} = getelementptr i64, ptr %row, i64 {place + 1}",
        f"%word{x} = load i64, ptr %at{x}",
        f"%number{x} = and i64 %word{x}, {ROUNDED_BIT - 1}",
        f"%base.at{x} = getelementptr ptr, ptr %bases, i64 %number{x}",
        f"%base{x} = load ptr, ptr %base.at{x}",
        f"%offset{x} = ashr i64 %word{x}, 16",
        f"%{'exact' if rounded else 'p'}{x} = getelementptr i8, ptr %base{x}, i64 %offset{x}",
    ]
    if rounded:
        lines += [
            f"%bit{x} = lshr i64 %word{x}, 15",
            f"%one{x} = and i64 %bit{x}, 1",
            f"%less{x} = mul i64 %one{x}, {LINE_BYTES - 1}",
            f"%mask{x} = xor i64 %less{x}, -1",
            f"%p{x} = call ptr @llvm.ptrmask.p0.i64(ptr %exact{x}, i64 %mask{x})",
        ]
    return lines
