"""The native entry of a program: a built-in function of the interpreter, in machine code.

There is one such function for all programs.  What it is to do for one of them is written in a plan, a row of whole
numbers: how the arguments must look, where their memory goes in the table of slots, which arrays are to be made for the
results, and how these are put together.  Arguments that do not look so are handed on, to the function that comes next.

It reads the fields of arrays directly, so all of this is only done where these are found to be what is expected.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.runtime.abi.entry_code import TEXT
from pullback.compiler.runtime.abi.layout import Method, is_layout_known, numpy_functions
from pullback.compiler.runtime.abi.memory_pool import FUNCTIONS, STATE, install_handler
from pullback.compiler.runtime.disk_cache import default_cache
from pullback.compiler.runtime.llvm import get_library
from pullback.core import tree
from pullback.settings import is_enabled

__all__ = ["Leaves", "Result", "is_entry_usable", "make_entry"]

# words at the beginning of a plan
HEAD = ("run", "arguments", "takes", "results", "slots", "arena", "arena_from", "release", "containers", "steps",
        "takes_at", "results_at", "steps_at", "slots_at", "hand", "switch", "check")  # fmt: skip
# how an argument is looked at
ARRAY, SCALAR, LIST, TUPLE, DICT, SAME, WHOLE = range(7)
# how the result is put together
RESULT, MAKE_TUPLE, MAKE_OTHER_TUPLE, MAKE_LIST, MAKE_DICT, OBJECT = range(6)
FASTCALL_WITH_NAMES = 0x82
# what is recognised by being the same object: two that are equal need not be one, but one never becomes another
UNCHANGING = (
    type(None), bool, int, float, complex, str, bytes, type, np.dtype, np.ufunc, FunctionType, BuiltinFunctionType,
)  # fmt: skip
KEYS = (str, int, bytes)  # of dicts: those that are found without running anything in Python

NUMBERS = ((float, np.dtype(np.float64)), (int, np.dtype(np.int64)))  # numbers of Python that are read where they lie
LARGEST = 16  # bytes of a number: a scalar is made from a place of this size
MOST_WORDS = 1 << 14  # on the stack; a program with more arguments or slots than that has no entry


class Leaves(NamedTuple):
    """What is given and what is to be given back: trees, in which ``hole`` stands for an array."""

    hole: Any
    arguments: Sequence[Any]  # trees, one for each argument
    inputs: Sequence[tuple[tuple[int, ...], Any, Any]]  # of the holes: shape, dtype, the type of a number or None
    result: Any


class Result(NamedTuple):
    """An array that is made for a result: where it is written, or what is copied to it afterwards."""

    slot: int
    copied: int
    shape: tuple[int, ...]
    dtype: Any
    python: bool = False  # a float of Python's


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def is_entry_usable() -> bool:
    """Return whether the entry may be used: it is not switched off, and objects have the layout that it assumes."""
    return is_enabled("native entry") and is_layout_known()


@lru_cache(1)
def _imports() -> dict[str, int]:
    """Return everything that the code refers to."""
    table, api = numpy_functions(), ctypes.pythonapi
    found = {name: _address(getattr(api, name)) for name in re.findall(r"declare .*@(Py(?!Array)\w+)", TEXT)}
    kinds = {"ndarray": np.ndarray, "list_type": list, "tuple_type": tuple, "dict_type": dict}
    return {
        **found,
        **{name: id(kind) for name, kind in kinds.items()},
        "PyArray_New": table[93],
        "PyArray_Scalar": table[60],
        "pool": ctypes.addressof(STATE),
    }


ALWAYS = ctypes.c_int64()  # read by entries that hold in every environment


@lru_cache(1)
def _code() -> Any:
    # A few branches: done well enough without effort, in a fifth of the time.
    code = get_library(TEXT, ["entry", "nothing", *FUNCTIONS], _imports(), default_cache(), effort=0)[0]
    code.keep()
    install_handler(tuple(code.addresses[name] for name in FUNCTIONS))
    return code


@lru_cache(1)
def _get_empty_code() -> ctypes.c_int64:
    """Return where the address of a function that does nothing is kept."""
    return ctypes.c_int64(_code().addresses["nothing"])


def make_entry(
    run: ctypes.c_int64 | None, slots: Sequence[int], inputs: Sequence[int], results: Sequence[Result],
    leaves: Leaves, otherwise: Callable[..., Any], *, arena: int = 0, held: Any = None, release: bool = False,
    arena_from: int = -1, hand: Callable[..., Any] | None = None, switch: int | None = None, check: int = -1,
) -> Callable[..., Any] | None:  # fmt: skip
    """Return a function that runs a program for arguments like ``leaves``, and calls ``otherwise`` for any others.

    ``run`` is where the address of its code is kept, None if there is nothing to do; ``slots`` has the addresses of
    constants and 0 elsewhere; ``inputs`` says which slots the arguments go to.  With ``hand`` nothing is run: that
    function is given the leaves of the arguments.  ``switch`` is the address of a word; while that is not 0, everything
    is handed on.  ``check`` is the slot of a truth value: where the program sets it, or its code returns another number
    than 0, the arguments are handed on as well.
    None if there is something in the trees that can only be taken apart, or put together, in Python.
    """
    if not is_entry_usable() or not _can_handle(leaves, results, builds=hand is None):
        return None
    takes, objects, containers = _describe_arguments(leaves, inputs)
    slots = [*slots, 0]  # the last is where results go that are copied
    made = [w for r in results for w in (r.slot, r.copied, *_kind(r))]
    steps, more = _describe_results(leaves) if hand is None else ([], [])
    if containers + len(slots) + 2 * len(takes) + 4 * len(results) + len(steps) > MOST_WORDS:
        return None
    code = _code()
    head = {
        "run": ctypes.addressof(_get_empty_code() if run is None else run),
        "arguments": len(leaves.arguments), "takes": len(takes),
        "results": len(results), "slots": len(slots), "arena": arena, "arena_from": arena_from, "release": int(release),
        "containers": containers, "steps": len(steps) // 3, "hand": int(hand is not None),
        "switch": ctypes.addressof(ALWAYS) if switch is None else switch,
        "check": len(slots) - 1 if check < 0 else check,
    }  # fmt: skip
    flat = [w for t in takes for w in t]
    at = len(HEAD)
    for name, part in (("takes_at", flat), ("results_at", made), ("steps_at", steps), ("slots_at", [*slots])):
        head[name] = at
        at += len(part)
    words = [*(head[name] for name in HEAD), *flat, *made, *steps, *slots]
    plan = struct.pack(f"<{len(words)}q", *words)
    method = Method(b"program", code.addresses["entry"], FASTCALL_WITH_NAMES, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(
        ctypes.addressof(method), (plan, otherwise, hand, method, code, run, held, objects, more), None
    )
    return function


def _can_handle(leaves: Leaves, results: Sequence[Result], builds: bool) -> bool:
    """Return whether arguments can be taken apart, and with ``builds`` the result put together, in machine code."""
    numbers = all(weak is None or (weak, dtype) in NUMBERS for _, dtype, weak in leaves.inputs)
    plain = all(_is_plain(dtype) for dtype in (*(x[1] for x in leaves.inputs), *(r.dtype for r in results)))
    takes = numbers and plain and _can_be_taken(tuple(leaves.arguments), leaves.hole)
    return takes and (not builds or _can_be_built(leaves.result))


def _is_plain(dtype: Any) -> bool:
    """Return whether elements may be copied byte by byte, and are no longer than the entry handles."""
    return np.dtype(dtype).kind in "biufc" and np.dtype(dtype).itemsize <= LARGEST


def _can_be_taken(x: Any, hole: Any) -> bool:
    """Return whether an argument's tree is of lists, tuples of any kind and dicts.

    What else is in it must stay as it is.
    """
    if type(x) is dict and not all(type(key) in KEYS for key in x):
        return False
    if isinstance(x, tuple) or type(x) in (list, dict):
        return all(_can_be_taken(y, hole) for y in (x.values() if type(x) is dict else x))
    return x is hole or type(x) in UNCHANGING


def _can_be_built(x: Any) -> bool:
    """Return whether a result's tree is of lists, tuples, named tuples and dicts, and no others like these."""
    if type(x) in (list, tuple, dict) or (
        isinstance(x, tuple) and hasattr(x, "_fields") and type(x).__bases__ == (tuple,)
    ):
        return all(map(_can_be_built, x.values() if type(x) is dict else x))
    return tree.get_branches(x) is None


def _kind(r: Result) -> tuple[int, ...]:
    dtype = np.dtype(r.dtype)
    size = dtype.itemsize
    for n in r.shape:
        size *= n
    return (size, dtype.num, 0 if r.python else id(dtype), len(r.shape), *r.shape)


def _describe_arguments(leaves: Leaves, inputs: Sequence[int]) -> tuple[list[tuple[int, ...]], list[Any], int]:
    """Return the checks of the arguments in order, the objects that these name, and how many containers there are."""
    takes: list[tuple[int, ...]] = []
    objects: list[Any] = []
    source = iter(zip(inputs, leaves.inputs, strict=True))
    containers = 1

    def keep_id(x: Any) -> int:
        objects.append(x)
        return id(x)

    def take(x: Any, container: int, index: int, key: int) -> None:
        nonlocal containers
        if x is leaves.hole:
            slot, (shape, dtype, weak) = next(source)
            if weak is not None:
                takes.append((SCALAR if weak is float else WHOLE, container, index, key, slot, keep_id(weak), 0, 0, 0))
                return
            dtype = np.dtype(dtype)
            alone = 0 if shape else keep_id(dtype.type)
            takes.append((ARRAY, container, index, key, slot, keep_id(dtype), dtype.num, len(shape), alone, *shape))
            return
        if not isinstance(x, list | tuple | dict):
            takes.append((SAME, container, index, key, 0, keep_id(x), 0, 0, 0))
            return
        mine, containers = containers, containers + 1
        kind = LIST if type(x) is list else DICT if type(x) is dict else TUPLE
        takes.append((kind, container, index, key, mine, keep_id(type(x)), len(x), 0, 0))
        for i, (k, y) in enumerate(x.items() if type(x) is dict else enumerate(x)):
            take(y, mine, i, keep_id(k) if type(x) is dict else 0)

    for i, x in enumerate(leaves.arguments):
        take(x, 0, i, 0)
    return takes, objects, containers


def _describe_results(leaves: Leaves) -> tuple[list[int], list[Any]]:
    """Return the steps that put the result together, and the objects that are named in them."""
    steps: list[int] = []
    objects: list[Any] = []
    count = 0

    def build(x: Any) -> None:
        nonlocal count
        if x is leaves.hole:
            steps.extend((RESULT, count, 0))
            count += 1
            return
        parts = [*x.values()] if type(x) is dict else x if isinstance(x, list | tuple) else None
        if parts is None:
            objects.append(x)
            steps.extend((OBJECT, 0, id(x)))
            return
        for y in parts:
            build(y)
        objects.append(type(x) if type(x) is not dict else tuple(x))
        plain: dict[Any, int] = {tuple: MAKE_TUPLE, list: MAKE_LIST, dict: MAKE_DICT}
        steps.extend((plain.get(type(x), MAKE_OTHER_TUPLE), len(parts), id(objects[-1])))

    build(leaves.result)
    return steps, objects
