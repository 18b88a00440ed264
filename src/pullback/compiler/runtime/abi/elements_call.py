"""A built-in function of arrays that runs machine code on their elements; a call through ctypes takes 4 µs more.

It reads the fields of arrays directly, so it is used only where ``layout`` finds these in their places.
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.runtime.abi.c_api import FASTCALL, declare_functions, find_functions, make_builtin
from pullback.compiler.runtime.abi.code_writer import Writer
from pullback.compiler.runtime.abi.layout import OFFSETS, Method

CALL = "call"  # the name of the function in the module
CALLED = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLong")


def find_imports() -> dict[str, int]:
    """Return the addresses of the functions that the text of ``write_call`` refers to."""
    return find_functions(CALLED)


def write_call(arrays: int, part_elements: int) -> str:
    """Return the text of a function of so many arrays, the last of which is for the result.

    It calls ``run(context, parts)`` of its module.  The context is a row of words: the addresses of the elements of the
    arrays, their number, and a word that is 0 until ``run`` sets it, which is returned as a Python integer.
    """
    code = Writer("ptr", CALL, "ptr self", "ptr args", "i64 given", internal=False)
    context = code.allocate(f"[{arrays + 2} x i64]")
    x = ""
    for i in range(arrays):
        x = code.word("%args", i, "ptr")
        code.set_word(code.load("i64", x, OFFSETS["ARRAY_DATA"]), context, i)
    lengths, rank = code.load("ptr", x, OFFSETS["ARRAY_SHAPE"]), code.load("i32", x, OFFSETS["ARRAY_RANK"])
    count = code.allocate("i64")
    code.store("i64", 1, count)
    axis = code.loop("axis", code.let(f"zext i32 {rank} to i64"))
    code.store("i64", code.let(f"mul i64 {code.load('i64', count)}, {code.word(lengths, axis)}"), count)
    code.end_loop("axis")
    elements = code.load("i64", count)
    code.set_word(elements, context, arrays)
    code.set_word(0, context, arrays + 1)
    above = code.let(f"add i64 {elements}, {part_elements - 1}")
    parts = code.let(f"sdiv i64 {above}, {part_elements}")
    thread = code.call("ptr", "@PyEval_SaveThread")
    code.call_void("@run", f"ptr {context}", f"i64 {parts}")
    code.call_void("@PyEval_RestoreThread", f"ptr {thread}")
    code.ret("ptr", code.call("ptr", "@PyLong_FromLong", f"i64 {code.word(context, arrays + 1)}"))
    return declare_functions(CALLED) + code.text()


def make_call(code: Any) -> Any:
    """Return the function of ``write_call`` in loaded machine code, as a built-in function."""
    method = Method(CALL.encode(), code.addresses[CALL], FASTCALL, None)
    return make_builtin(method, (method, code))
