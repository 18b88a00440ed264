"""The cost of a scalar op: a count of the instructions that its lowering emits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pullback.compiler.builder import Code, Value, constant
from pullback.compiler.math.functions import emit_scalar
from pullback.errors import CompileError

if TYPE_CHECKING:
    from pullback.core.op import Op

SLOW = 12  # weight of a division or a square root, in simple instructions
LIBRARY_CALL = 40  # weight of a call of the C library


class InstructionCounter(Code):
    """A builder that only counts instructions, weighted by how long they take."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def op(self, text: str) -> str:
        self.total += 1
        return f"%{self.fresh()}"

    def divide(self, text: str) -> str:
        self.total += SLOW
        return f"%{self.fresh()}"

    def call(self, function: str, result: str, args: Sequence[tuple[str, str]]) -> str:
        if not function.startswith("llvm."):
            self.total += LIBRARY_CALL
        else:
            self.total += SLOW if function.startswith("llvm.sqrt") else 1
        return f"%{self.fresh()}"

    def call_helper(self, name: str, args: str) -> None:
        self.total += LIBRARY_CALL

    def add_helper(self, name: str, write: Any) -> None:
        """Count nothing: helper functions are for rare arguments."""


@lru_cache(4096)
def count_instructions(
    op: Op, dtypes: tuple[str, ...], dtype: str, params: Any, constants: tuple[Any, ...] = ()
) -> int | None:
    """Return the weighted number of instructions of an op per vector; None if it has no code for these dtypes.

    ``constants`` has for each argument its value if that is a known number, else None.
    """
    code = InstructionCounter()
    args = [
        Value(code, f"%x{i}", d, 1) if number is None else constant(code, number, d, 1)
        for i, (d, number) in enumerate(zip_longest(dtypes, constants))
    ]
    try:
        emit_scalar(code, op, params, args, 1, dtype)
    except CompileError:
        return None
    return code.total
