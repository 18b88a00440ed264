"""Writes of a traced step or branch to Python objects from outside of it: lists, dicts, arrays, rebound names.

A step of a compiled loop is traced once, and every branch is traced, taken or not.  So a write that Python performs
while tracing, such as ``results.append(x)`` or ``count[0] += 1``, does not happen as often as the program says.  It is
found by comparing what the function reaches by name before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.transforms.captured import iterate_names, line_of

MAX_DEPTH = 8  # levels of functions, containers and objects that are searched
MAX_ITEMS = 1000  # items of a container that are looked into; more are only compared as a whole
CONSTANT = frozenset({str, bytes, bool, int, float, complex, type(None)})
LIBRARY = __name__.partition(".")[0]


class Role(NamedTuple):
    """What a traced function is, and what to do about a write in it, for the message."""

    name: str
    cure: str


STEP = Role(
    "the step",
    "A step of a compiled loop is traced once, so no step after it would see that. Make it a part of the carry, or "
    "return what each step makes as its result.",
)
BRANCH = Role("a branch", "All branches are traced, taken or not. Return the new value from each of them.")


@contextmanager
def refuse_outside_writes(name: str, functions: Sequence[Callable[..., Any]], role: Role) -> Iterator[None]:
    """Raise ArgumentError if functions that are traced in this block write to Python objects made outside of them.

    name: the function that the user called with them.
    """
    before = [OutsideState(f) for f in functions]
    yield
    for f, state in zip(functions, before, strict=True):
        changed = state.find_change(OutsideState(f))
        if changed is not None:
            line = line_of(f)
            raise ArgumentError(
                f"{name}: {role.name} writes to '{changed}', which was made outside of it ({line}). {role.cure}"
            )


class OutsideState:
    """What a function reaches by name: the values of names, items of containers and numbers in arrays.

    Functions and objects that it reaches are looked into if they are of the same module, and not of this library.
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self.facts: dict[tuple[int, str], Any] = {}  # by holder and path
        self.seen: set[int] = set()
        self.kept: list[Any] = []  # what the facts have ids of, so that these stay their own
        self.module = getattr(_find_inner(f), "__module__", "")
        if not _is_of_library(self.module):  # else it writes to nothing that is not its own
            self._visit("f", f, MAX_DEPTH)

    def find_change(self, after: OutsideState) -> str | None:
        """Return the path of the first difference, None if there is none."""
        for key in (*self.facts, *after.facts):
            if key not in self.facts or key not in after.facts or self.facts[key] != after.facts[key]:
                return key[1]
        return None

    def _visit(self, path: str, held: Any, depth: int) -> None:
        """Note the state of an object, and of what it holds."""
        held = _get_wrapped(held) or held
        if not depth or id(held) in self.seen:
            return
        self.seen.add(id(held))
        if isinstance(held, FunctionType | MethodType | partial):
            if isinstance(held, partial) or held.__module__ == self.module:
                self._visit_all(held, list(iterate_names(held)), depth)
        elif isinstance(held, dict):
            self._visit_items(held, path, list(held.items()), depth)
        elif isinstance(held, list | tuple):
            self._visit_items(held, path, list(enumerate(held)), depth)
        elif isinstance(held, Tensor | np.ndarray | set):
            self._note_numbers(held, path)
        elif type(held).__module__ == self.module and not any(map(_is_of_library, _list_modules(held))):
            self._visit_all(held, [(f"{path}.{k}", v) for k, v in getattr(held, "__dict__", {}).items()], depth)

    def _note_numbers(self, held: Any, path: str) -> None:
        """Note the elements of an array, a tensor that no transform follows, or a set."""
        if isinstance(held, set):
            self._note(held, path, frozenset(held))
        elif isinstance(held, np.ndarray):
            self._note(held, path, _sum_up(held))
        elif not held.level and not held.is_variable:
            self._note(held, path, _sum_up(held.read().value))

    def _visit_all(self, holder: Any, named: list[tuple[str, Any]], depth: int) -> None:
        """Note the values of names or attributes, each of which can be bound anew."""
        for path, held in named:
            self._note(holder, path, id(held))
        for path, held in named:
            self.kept.append(held)
            self._visit(path, held, depth - 1)

    def _visit_items(self, holder: Any, path: str, items: list[tuple[Any, Any]], depth: int) -> None:
        """Note the items of a container, each with its key."""
        self._note(holder, path, [(key if isinstance(key, int) else id(key), id(held)) for key, held in items])
        self.kept.append(items)
        for key, held in items if len(items) <= MAX_ITEMS else ():
            if type(held) not in CONSTANT:
                self._visit(f"{path}[{key!r}]", held, depth - 1)

    def _note(self, holder: Any, path: str, fact: Any) -> None:
        self.facts[id(holder), path] = fact
        self.kept.append(holder)


def _find_inner(f: Any) -> Any:
    """Return the function that a method, a partial or a transformed function calls in the end."""
    while isinstance(f, partial | MethodType) or _get_wrapped(f) is not None:
        f = _get_wrapped(f) or (f.func if isinstance(f, partial) else f.__func__)
    return f


def _get_wrapped(f: Any) -> Any:
    """Return the function of which an object is a derivative or a compiled form; None for any other object."""
    return None if isinstance(f, FunctionType) else getattr(f, "__dict__", {}).get("__wrapped__")


def _is_of_library(module: str | None) -> bool:
    """Return whether a module is one of ours; what was made by ``exec`` without a ``__name__`` has none."""
    return (module or "").partition(".")[0] == LIBRARY


def _list_modules(x: Any) -> list[str]:
    """Return the modules of the classes of an object; a layer of the user's, for instance, extends one of ours."""
    return [cls.__module__ for cls in type(x).__mro__]


def _sum_up(array: Any) -> Any:
    """Return what changes if an array is written to: a checksum, as a copy would take memory."""
    array = np.asarray(array)
    if array.dtype.hasobject:
        return [id(x) for x in array.flat]
    return crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
