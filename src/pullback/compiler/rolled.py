"""Many calls of a few functions as a table and a loop: what is unrolled a hundred times is not worth a hundred texts.

A run of calls that differ in nothing but addresses becomes rows of a table, which a loop goes through.  An address is
one word: an offset, a bit that says whether it is rounded down to a line of the cache, and in the last 15 bits where it
is from: 0 is the arena, 1 the stack, and from 2 on they are the program's slots.
"""

from __future__ import annotations

import re
from typing import Any

from pullback.compiler.arena import ALIGN

__all__ = ["rolled"]

LEAST = 48  # calls; fewer are as quickly compiled one by one
SHARED = 4  # how many calls there must be for each that is of another kind

SLOT = re.compile(r"(%\w+) = getelementptr ptr, ptr %slots, i64 (\d+)$")
LOAD = re.compile(r"(%\w+) = load ptr, ptr (%\w+)$")
AHEAD = re.compile(r"(%\w+) = getelementptr i8, ptr (%\w+), i64 (-?\d+)$")
MASK = re.compile(rf"(%\w+) = call ptr @llvm.ptrmask.p0.i64\(ptr (%\w+), i64 {-ALIGN}\)$")
CALL = re.compile(r"call void @\w+\(")
POINTER = re.compile(r"ptr (%\w+)")
NAME = re.compile(r"%\w+")
MOST = 1 << 12  # slots, whose addresses are laid out on the stack after those of the arena and the stack
FIRST = 2  # the number of the first slot
LINED = 1 << 15


class Run:
    """Lines that do nothing but call, one after the other."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Go on with another run."""
        self.lines: list[str] = []
        self.known: dict[str, int] = {"%arena": 0, "%small": 1}
        self.slots: dict[str, int] = {}
        self.rows: list[tuple[int, list[Any]]] = []  # of each call its kind and its addresses
        self.kinds: dict[str, int] = {}  # by what stands between the addresses

    def takes(self, line: str) -> bool:
        """Whether a line is of this kind; then it is taken."""
        if line.startswith("%"):
            if not self._defines(line):
                return False
        elif CALL.match(line):
            text = POINTER.split(line)
            words = [self.known.get(name) for name in text[1::2]]
            kind = "\n".join(text[::2])
            if None in words or "%" in kind:
                return False
            self.rows.append((self.kinds.setdefault(kind, len(self.kinds)), words))
        else:
            return False
        self.lines.append(line)
        return True

    def _defines(self, line: str) -> bool:
        if found := AHEAD.match(line):
            name, base, offset = found.groups()
            if base not in self.known or self.known[base] & LINED:
                return False
            self.known[name] = self.known[base] + (int(offset) << 16)
        elif (found := MASK.match(line)) and found[2] in self.known:
            self.known[found[1]] = self.known[found[2]] | LINED
        elif (found := SLOT.match(line)) and int(found[2]) < MOST:
            self.slots[found[1]] = int(found[2]) + FIRST
        elif found := LOAD.match(line):
            if found[2] not in self.slots:
                return False
            self.known[found[1]] = self.slots[found[2]]
        else:
            return False
        return True

    def needed(self, names: set[str]) -> list[str]:
        """The lines that make these values, and what they are made of."""
        kept = []
        for line in reversed(self.lines):
            made, *others = NAME.findall(line)
            if line[0] == "%" and made in names:
                names.update(others)
                kept.append(line)
        return kept[::-1]

    def text(self, name: str) -> str:
        """The table, and the function that goes through it."""
        table = [f"i64 {word}" for kind, words in self.rows for word in (kind, *words)]
        last = max(self.slots.values(), default=FIRST - 1)
        lined = {(kind, i) for kind, words in self.rows for i, word in enumerate(words) if word & LINED}
        cases = " ".join(f"i64 {n}, label %kind{n}" for n in range(1, len(self.kinds)))
        lines = [
            f"@{name}_rows = private unnamed_addr constant [{len(table)} x i64] [{', '.join(table)}]",
            f'define internal void @{name}(ptr %slots, ptr %arena, ptr %small) noinline "no-jump-tables"="true" {{',
            "entry:",
            f"%bases = alloca [{last + 1} x ptr]",
            "store ptr %arena, ptr %bases",
            "%second = getelementptr ptr, ptr %bases, i64 1",
            "store ptr %small, ptr %second",
            f"%others = getelementptr ptr, ptr %bases, i64 {FIRST}",
            f"call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %slots, i64 {8 * (last + 1 - FIRST)}, i1 false)",
            "br label %next",
            "next:",
            f"%row = phi ptr [@{name}_rows, %entry], [%following, %done]",
            "%kind = load i64, ptr %row",
            f"switch i64 %kind, label %kind0 [{cases}]",
        ]
        ways = []
        for kind, number in self.kinds.items():
            text = kind.split("\n")
            count = len(text) - 1
            lines.append(f"kind{number}:")
            for i in range(count):
                x = f"{number}.{i}"
                lines += [
                    f"%at{x} = getelementptr i64, ptr %row, i64 {i + 1}",
                    f"%word{x} = load i64, ptr %at{x}",
                    f"%number{x} = and i64 %word{x}, {LINED - 1}",
                    f"%base.at{x} = getelementptr ptr, ptr %bases, i64 %number{x}",
                    f"%base{x} = load ptr, ptr %base.at{x}",
                    f"%offset{x} = ashr i64 %word{x}, 16",
                    f"%p{x} = getelementptr i8, ptr %base{x}, i64 %offset{x}",
                ]
                if (number, i) in lined:
                    lines += [
                        f"%bit{x} = lshr i64 %word{x}, 15",
                        f"%one{x} = and i64 %bit{x}, 1",
                        f"%less{x} = mul i64 %one{x}, {ALIGN - 1}",
                        f"%mask{x} = xor i64 %less{x}, -1",
                        f"%lined{x} = call ptr @llvm.ptrmask.p0.i64(ptr %p{x}, i64 %mask{x})",
                    ]
            lines += [
                "".join(
                    f"{part}ptr %{'lined' if (number, i) in lined else 'p'}{number}.{i}"
                    for i, part in enumerate(text[:-1])
                )
                + text[-1],
                f"%following{number} = getelementptr i64, ptr %row, i64 {count + 1}",
                "br label %done",
            ]
            ways.append(f"[%following{number}, %kind{number}]")
        lines += [
            "done:",
            f"%following = phi ptr {', '.join(ways)}",
            f"%all = icmp eq ptr %following, getelementptr (i64, ptr @{name}_rows, i64 {len(table)})",
            "br i1 %all, label %out, label %next",
            "out:",
            "ret void",
            "}",
        ]
        return "\n".join(lines)


def rolled(lines: list[str], name: str, small: str = "null") -> tuple[list[str], list[str]]:
    """The lines of a function with long runs of calls rolled up, and the functions that do these.

    ``small`` is the memory on its stack, if it has any.
    """
    if sum(line.startswith("call ") for line in lines) < LEAST:
        return lines, []
    uses: dict[str, int] = {}  # the last line that names a value
    out: list[str] = []
    functions: list[str] = []
    run = Run()

    def close(at: int) -> None:
        if len(run.rows) >= max(LEAST, SHARED * len(run.kinds)):
            functions.append(run.text(f"{name}_{len(functions)}"))
            out.append(f"call void @{name}_{len(functions) - 1}(ptr %slots, ptr %arena, ptr {small})")
            if at < len(lines):  # what was only on the way to a call is not needed any more
                if not uses:
                    uses.update((value, i) for i, line in enumerate(lines) for value in NAME.findall(line))
                out.extend(run.needed({name for name, last in uses.items() if last >= at}))
        else:
            out.extend(run.lines)
        run.begin()

    for at, line in enumerate(lines):
        if not run.takes(line):
            close(at)
            out.append(line)
    close(len(lines))
    return out, functions
