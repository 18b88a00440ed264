"""The native entry of a compiled program: a built-in function, in machine code, that Python calls directly.

The machine code (``entry_code``) is the same for all programs.  What it does for one of them is in that program's plan,
a row of 64-bit words that ``make_entry`` writes: the checks of the arguments, the slot of the program that the address
of each goes to, the arrays that are made for the results, and the steps that build the returned tree of them.
Arguments that fail a check are passed on to another function, which Python runs.

It reads the fields of CPython's and NumPy's objects directly, so it is used only where ``layout`` finds these in their
places.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.runtime.abi.c_api import FASTCALL_WITH_NAMES, find_functions, make_builtin
from pullback.compiler.runtime.abi.entry_code import CALLED, write_code
from pullback.compiler.runtime.abi.entry_records import (
    ARRAY,
    DICT,
    HEAD,
    IDENTICAL,
    INTEGER,
    LIST,
    MAKE_DICT,
    MAKE_LIST,
    MAKE_OTHER_TUPLE,
    MAKE_TUPLE,
    OBJECT,
    RESULT,
    SCALAR,
    TUPLE,
)
from pullback.compiler.runtime.abi.layout import Method, is_layout_known
from pullback.compiler.runtime.abi.memory_pool import FUNCTIONS, STATE, install_handler
from pullback.compiler.runtime.disk_cache import get_default_cache
from pullback.compiler.runtime.llvm import get_code
from pullback.core import tree
from pullback.settings import is_enabled

# Arguments that are compared by identity: equal ones need not be the same object, but the same object never changes.
UNCHANGING: tuple[type, ...] = (
    type(None), bool, int, float, complex, str, bytes, type, np.dtype, np.ufunc, FunctionType, BuiltinFunctionType,
)  # fmt: skip
KEYS = (str, int, bytes)  # types of a dict's keys: those whose lookup runs no Python code

NUMBERS = ((float, np.dtype(np.float64)), (int, np.dtype(np.int64)))  # Python's numbers that the entry reads, by dtype
LARGEST = 16  # bytes of a number: scalar results have places of this size on the stack
MOST_WORDS = 1 << 14  # on the stack; a program that needs more has no entry


class Leaves(NamedTuple):
    """The trees of a call's arguments and of its result; each array in them is replaced by ``hole``."""

    hole: Any
    arguments: Sequence[Any]  # trees, one for each argument
    inputs: Sequence[tuple[tuple[int, ...], Any, Any]]  # of each hole: shape, dtype, type of a Python number or None
    result: Any


class EntryResult(NamedTuple):
    """An array or number that the entry makes for a result."""

    slot: int  # the slot through which the program writes it, -1 if it is copied
    copied: int  # the slot that it is copied from after the program ran, -1 if it is written by the program
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    python: bool = False  # whether a number is returned as Python's float


def is_entry_usable() -> bool:
    """Return whether the entry may be used: it is not switched off, and objects have the layout that it assumes."""
    return is_enabled("native entry") and is_layout_known()


@lru_cache(1)
def _find_imports() -> dict[str, int]:
    """Return the addresses of the functions, types and memory that the code refers to, by name."""
    kinds = {"ndarray": np.ndarray, "list_type": list, "tuple_type": tuple, "dict_type": dict}
    return {
        **find_functions(CALLED),
        **{name: id(kind) for name, kind in kinds.items()},
        "pool": ctypes.addressof(STATE),
    }


ALWAYS = ctypes.c_int64()  # 0: the switch of entries that are valid in every environment


@lru_cache(1)
def _load_code() -> Any:
    """Return the loaded machine code of the entry; set up the memory pool that it uses."""
    # Hardly optimized: more takes twice as long to compile and gains nothing; less costs a tenth of a small call.
    code = get_code(write_code(), ["entry", "nothing", *FUNCTIONS], _find_imports(), get_default_cache(), effort=1)[0]
    code.keep()
    install_handler(tuple(code.addresses[name] for name in FUNCTIONS))
    return code


@lru_cache(1)
def _get_empty_code() -> ctypes.c_int64:
    """Return a word that holds the address of a program that does nothing."""
    return ctypes.c_int64(_load_code().addresses["nothing"])


def make_entry(
    run: ctypes.c_int64 | None, slots: Sequence[int], inputs: Sequence[int], results: Sequence[EntryResult],
    leaves: Leaves, otherwise: Callable[..., Any], *, arena: int = 0, held: Any = None, release: bool = False,
    arena_from: int = -1, forward_to: Callable[..., Any] | None = None, switch: int | None = None, flag: int = -1,
) -> Callable[..., Any] | None:  # fmt: skip
    """Return a built-in function that runs a program for arguments like ``leaves``, and calls ``otherwise`` for others.

    Return None if the trees have something that only Python can take apart or build.

    run: the word that holds the address of the program's code; None if there is nothing to run.
    slots: the initial table of slots: addresses of constants, 0 elsewhere.
    inputs: the slot of each array among the arguments.
    results: the arrays and numbers to be made.
    arena: bytes of memory that the program needs for itself.
    held: an object that the function keeps alive.
    release: run the program without the interpreter's lock.
    arena_from: the slot of an argument that is used as the arena, -1 for none.
    forward_to: a function that is called with the leaves of the arguments; no program is run then.
    switch: address of a word; while it is not 0, all arguments are passed on to ``otherwise``.
    flag: the slot of a truth value; if the program sets it, or its code returns another number than 0, the arguments
        are passed on as well.
    """
    if not is_entry_usable() or not _can_handle(leaves, results, builds=forward_to is None):
        return None
    checks, objects, containers = _describe_arguments(leaves, inputs)
    slots = [*slots, 0]  # the last one is for results that the program does not write itself
    outputs = [w for r in results for w in (r.slot, r.copied, *_describe_output(r))]
    steps, more = _describe_results(leaves) if forward_to is None else ([], [])
    if containers + len(slots) + 2 * len(checks) + 4 * len(results) + len(steps) > MOST_WORDS:
        return None
    code = _load_code()
    head = {
        "run": ctypes.addressof(_get_empty_code() if run is None else run),
        "arguments": len(leaves.arguments), "checks": len(checks),
        "results": len(results), "slots": len(slots), "arena": arena, "arena_from": arena_from, "release": int(release),
        "containers": containers, "steps": len(steps) // 3, "forwards": int(forward_to is not None),
        "switch": ctypes.addressof(ALWAYS) if switch is None else switch,
        "flag": len(slots) - 1 if flag < 0 else flag,
    }  # fmt: skip
    rows = {"checks": [w for check in checks for w in check], "results": outputs, "steps": steps, "slots": slots}
    plan = _write_plan(head, rows)
    method = Method(b"program", code.addresses["entry"], FASTCALL_WITH_NAMES, None)
    function: Callable[..., Any] = make_builtin(
        method, (plan, otherwise, forward_to, method, code, run, held, objects, more)
    )
    return function


def _write_plan(head: dict[str, int], rows: Mapping[str, Sequence[int]]) -> bytes:
    """Return a plan: its head, to which the positions of the rows are added, and the rows."""
    at = len(HEAD)
    for name, row in rows.items():
        head[f"{name}_at"] = at
        at += len(row)
    words = [*(head[name] for name in HEAD), *chain.from_iterable(rows.values())]
    return struct.pack(f"<{len(words)}q", *words)


def _can_handle(leaves: Leaves, results: Sequence[EntryResult], builds: bool) -> bool:
    """Return whether machine code can take the arguments apart and, with ``builds``, build the result."""
    numbers = all(weak is None or (weak, dtype) in NUMBERS for _, dtype, weak in leaves.inputs)
    dtypes = all(_is_copyable(dtype) for dtype in (*(x[1] for x in leaves.inputs), *(r.dtype for r in results)))
    can_check = numbers and dtypes and _can_be_checked(tuple(leaves.arguments), leaves.hole)
    return can_check and (not builds or _can_be_built(leaves.result))


def _is_copyable(dtype: np.dtype[Any]) -> bool:
    """Return whether elements may be copied byte by byte, and are no longer than the entry handles."""
    return np.dtype(dtype).kind in "biufc" and np.dtype(dtype).itemsize <= LARGEST


def _can_be_checked(x: Any, hole: Any) -> bool:
    """Return whether an argument's tree has only lists, tuples, dicts, holes and objects that never change."""
    if type(x) is dict and not all(type(key) in KEYS for key in x):
        return False
    if isinstance(x, tuple) or type(x) in (list, dict):
        return all(_can_be_checked(y, hole) for y in (x.values() if type(x) is dict else x))
    return x is hole or type(x) in UNCHANGING


def _can_be_built(x: Any) -> bool:
    """Return whether a result's tree has no containers but lists, tuples, named tuples and dicts."""
    if type(x) in (list, tuple, dict) or (
        isinstance(x, tuple) and hasattr(x, "_fields") and type(x).__bases__ == (tuple,)
    ):
        return all(map(_can_be_built, x.values() if type(x) is dict else x))
    return tree.get_branches(x) is None


def _describe_output(r: EntryResult) -> tuple[int, ...]:
    """Return the words of a plan about a result: bytes, address of its dtype (0 for a Python number), rank, shape."""
    dtype = np.dtype(np.dtype(r.dtype).type)  # NumPy keeps these for ever
    size = dtype.itemsize
    for n in r.shape:
        size *= n
    return (size, 0 if r.python else id(dtype), len(r.shape), *r.shape)


def _describe_arguments(leaves: Leaves, inputs: Sequence[int]) -> tuple[list[tuple[int, ...]], list[Any], int]:
    """Return the checks of the arguments, the objects whose addresses these have, and the number of containers.

    The words of a check are its kind, the container that the object is in, its index there, the slot (of a container:
    its own number), an object to compare with, and what else the kind needs.  Values of a dict are numbered after it.
    """
    checks: list[tuple[int, ...]] = []
    objects: list[Any] = []
    source = iter(zip(inputs, leaves.inputs, strict=True))
    containers = 1

    def keep_id(x: Any) -> int:
        objects.append(x)
        return id(x)

    def describe(x: Any, container: int, index: int) -> None:
        nonlocal containers
        if x is leaves.hole:
            slot, (shape, dtype, weak) = next(source)
            if weak is not None:
                checks.append((SCALAR if weak is float else INTEGER, container, index, slot, keep_id(weak), 0, 0, 0))
                return
            dtype = np.dtype(dtype)
            scalar_type = 0 if shape else keep_id(dtype.type)
            checks.append((ARRAY, container, index, slot, keep_id(dtype), dtype.num, len(shape), scalar_type, *shape))
            return
        if not isinstance(x, list | tuple | dict):
            checks.append((IDENTICAL, container, index, 0, keep_id(x), 0, 0, 0))
            return
        mine, containers = containers, containers + 1
        kind = LIST if type(x) is list else DICT if type(x) is dict else TUPLE
        about = (tuple(x), containers) if type(x) is dict else (type(x), 0)
        checks.append((kind, container, index, mine, keep_id(about[0]), len(x), 0, about[1]))
        containers += len(x) if type(x) is dict else 0
        for i, y in enumerate(x.values() if type(x) is dict else x):
            describe(y, mine, i)

    for i, x in enumerate(leaves.arguments):
        describe(x, 0, i)
    return checks, objects, containers


def _describe_results(leaves: Leaves) -> tuple[list[int], list[Any]]:
    """Return the steps that build the result, and the objects whose addresses these have.

    The words of a step are its kind, the number of a result or of the parts that a container takes off the stack, and
    the address of an object.
    """
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
        instructions: dict[Any, int] = {tuple: MAKE_TUPLE, list: MAKE_LIST, dict: MAKE_DICT}
        steps.extend((instructions.get(type(x), MAKE_OTHER_TUPLE), len(parts), id(objects[-1])))

    build(leaves.result)
    return steps, objects
