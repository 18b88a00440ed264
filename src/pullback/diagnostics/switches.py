"""What is switched on in a block of code: the engine has no hook for it, so nothing is asked when it is off.

The first block that switches anything on puts functions that ask in the place of the engine's own; when the last one
ends, in whatever thread, the engine has its own back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from threading import Lock
from types import FunctionType
from typing import Any

from pullback.core import environment

__all__: list[str] = []


class Mode:
    """What is on, in this thread."""

    __slots__ = ("guarded", "monitor", "strong")

    def __init__(self, monitor: Any = None, strong: bool = False, guarded: bool = False) -> None:
        self.monitor = monitor  # sees every op
        self.strong = strong  # zero times anything is zero
        self.guarded = guarded  # results are looked at


OFF = Mode()
_mode: ContextVar[Mode] = ContextVar("diagnostics", default=OFF)
mode = _mode.get
environment.add_part(lambda: "strong zero" if mode().strong else None)
_lock = Lock()
_number = count()
_blocks = 0
_wanted: list[tuple[Any, Callable[[Any], Any]]] = []  # functions that are to ask, and what they are then
_swaps: list[tuple[FunctionType, Any, Any]] = []  # the same when first used: a function, its code, the code that asks


def asking(f: Callable[..., Any], make: Callable[[Any], Any]) -> None:
    """While something is on, calling ``f``, under whatever name it is known, calls ``make`` of what it is.

    Its code is exchanged and not the attribute of a class: classes that change too often are slow for ever after.
    """
    _wanted.append((f, make))


def swap(f: Any, make: Callable[[Any], Any]) -> tuple[FunctionType, Any, Any]:
    """A function, its code, and code that calls ``make`` of what the function is."""
    own = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    own.__kwdefaults__ = f.__kwdefaults__
    name = f"_asking_{next(_number)}"
    f.__globals__[name] = make(own)
    source = f"lambda *args, **kwargs: {name}(*args, **kwargs)"
    made = eval(compile(source, f"<op {name}>", "eval"))  # by its file name it is ours
    return f, f.__code__, made.__code__


@contextmanager
def switched(**on: Any) -> Iterator[None]:
    """In this block, in this thread, the mode is another one."""
    _begin()
    now = _mode.get()
    token = _mode.set(Mode(**{"monitor": now.monitor, "strong": now.strong, "guarded": now.guarded, **on}))
    try:
        yield
    finally:
        _mode.reset(token)
        _end()


def _begin() -> None:
    global _blocks
    with _lock:
        _blocks += 1
        if _blocks == 1 or _wanted:  # a tool that is first asked for in the block of another one comes later
            while _wanted:
                _swaps.append(swap(*_wanted.pop()))
            for f, _, code in _swaps:
                f.__code__ = code
        if _blocks == 1:
            environment.change_blocks(1)


def _end() -> None:
    global _blocks
    with _lock:
        _blocks -= 1
        if not _blocks:
            for f, code, _ in _swaps:
                f.__code__ = code
            environment.change_blocks(-1)
