"""Records of emitted functions; ``module_builder`` gives them names and renders them, equal ones once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pullback.compiler.builder import Code, Definition, count_longest_block

# The last parameters of kernels: the range of rows, partial results, and scratch memory.
RANGE = "i64 %lo", "i64 %hi", "ptr %partial", "ptr noalias %scratch"


class Function(NamedTuple):
    """A function that returns nothing; equal ones become one function of the module."""

    params: tuple[str, ...]  # LLVM type, attributes and name of each, such as "ptr noalias %a0"
    body: str  # its instructions
    longest_block: int  # the instructions of its longest basic block
    attributes: str = "noinline "
    aliases: tuple[tuple[int, int], ...] = ()  # (i, j): array %ai is written over array %aj, so both are one address

    def render(self, name: str) -> str:
        """Return the text of the function."""
        params = list(self.params)
        lines = [f"%a{i} = getelementptr i8, ptr %a{j}, i64 0" for i, j in self.aliases]
        for i, _ in self.aliases:
            params[i] = f"ptr %unused{i}"
        head = f"define internal void @{name}({', '.join(params)}) {self.attributes}{{"
        return "\n".join([head, "entry:", *lines, self.body, "ret void", "}"])


class KernelCode(NamedTuple):
    """A kernel: a function of the addresses of its arrays, a range of rows, partial results and scratch memory."""

    function: Function
    declared: frozenset[str]  # declarations of the external functions that it calls
    finish: Function | None = None  # combines the partial results of all parts
    helpers: tuple[tuple[str, Definition], ...] = ()  # names and texts of the functions that it calls


def make_function(lines: Sequence[str], *params: str, attributes: str = "noinline ") -> Function:
    """Return the function with these instructions and labels."""
    return Function(params, "\n".join(lines), count_longest_block(lines), attributes)


def make_kernel(code: Code, *params: str, attributes: str = "noinline ") -> KernelCode:
    """Return the kernel that consists of emitted code, with all that it refers to."""
    function = make_function(code.body, *params, attributes=attributes)
    return KernelCode(function, frozenset(code.declared), helpers=tuple(code.helpers.items()))
