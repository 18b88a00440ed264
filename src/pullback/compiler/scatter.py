"""Rows added at positions: one after the other, as several may be added at the same place."""

from __future__ import annotations

from math import prod

from pullback.compiler.code import FLOATS, Code, code_of, vector
from pullback.compiler.graph import Node

__all__ = ["ScatterAdd"]


class ScatterAdd:
    """The text of the function ``(x, rows, z)`` that adds the rows of ``x`` to zeros, at the positions ``rows``."""

    def __init__(self, n: Node, lanes: int) -> None:
        rows = n.args[1]
        self.dtype, self.code = code_of(n.dtype), Code()
        self.rows, self.length, self.size = rows.size, prod(n.shape[1:]), int(self.dtype[1])
        self.nbytes = n.nbytes
        self.width = max(1, lanes // self.size)
        while self.width > 1 and self.width > self.length:
            self.width //= 2

    def text(self) -> str:
        code = self.code
        code.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        code.line(f"call void @llvm.memset.p0.i64(ptr %z, i8 0, i64 {self.nbytes}, i1 false)")
        if self.rows and self.length:
            with code.loop("0", self.rows) as r:
                row = code.op(f"load i64, ptr {code.op(f'getelementptr i64, ptr %rows, i64 {r}')}")
                to, source = code.times(row, self.length), code.times(r, self.length)
                whole = self.length // self.width * self.width
                with code.loop("0", whole, self.width) as j:
                    self._add(code.add(to, j), code.add(source, j), self.width)
                if whole < self.length:
                    with code.loop(str(whole), self.length) as j:
                        self._add(code.add(to, j), code.add(source, j), 1)
        head = "define internal void @KERNEL(ptr noalias %x, ptr noalias %rows, ptr noalias %z) noinline {\nentry:"
        return "\n".join([head, *code.lines, "ret void", "}"])

    def _add(self, to: str, source: str, width: int) -> None:
        code, one = self.code, FLOATS[self.dtype]
        type_ = vector(one, width)
        place, other = (code.op(f"getelementptr {one}, ptr {p}, i64 {at}") for p, at in (("%z", to), ("%x", source)))
        old, new = (code.op(f"load {type_}, ptr {p}, align {self.size}") for p in (place, other))
        code.line(f"store {type_} {code.op(f'fadd {type_} {old}, {new}')}, ptr {place}, align {self.size}")
