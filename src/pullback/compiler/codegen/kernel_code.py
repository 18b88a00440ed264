"""Emitted functions as records: they get their names, and become text, when the module is put together."""

from __future__ import annotations

from typing import NamedTuple

from pullback.compiler.builder import Code
from pullback.compiler.schedule.work import Work

__all__ = ["Function", "KernelCode", "make_function"]


class Function(NamedTuple):
    """A function that returns nothing; two that are equal are one function of the module."""

    params: tuple[str, ...]  # type, attributes and name of each
    body: str  # its instructions
    attributes: str = "noinline "
    aliases: tuple[tuple[int, int], ...] = ()  # array parameters (i, j): what is at %ai is the array at %aj

    def render(self, name: str) -> str:
        """Return the text of the function."""
        params = list(self.params)
        lines = [f"%a{i} = getelementptr i8, ptr %a{j}, i64 0" for i, j in self.aliases]
        for i, _ in self.aliases:
            params[i] = f"ptr %unused{i}"
        head = f"define internal void @{name}({', '.join(params)}) {self.attributes}{{"
        return "\n".join([head, "entry:", *lines, self.body, "ret void", "}"])


class KernelCode(NamedTuple):
    """A kernel as a function of its arrays, a range of rows, and memory for partial results and for itself."""

    function: Function
    work: Work
    declared: frozenset[str]  # what the function refers to
    finish: Function | None = None  # combines what the parts leave
    helpers: tuple[tuple[str, str], ...] = ()  # functions that it calls, by name


def make_function(code: Code, *params: str, attributes: str = "noinline ") -> Function:
    """Return the function whose instructions a builder has."""
    return Function(params, "\n".join([*code.entry, *code.lines]), attributes)
