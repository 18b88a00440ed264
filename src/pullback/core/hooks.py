"""Observers: how blocks such as ``with debug_nans():`` or ``override_gradient`` watch or change the engine.

An observer is on inside the block that adds it, in its thread.  ``blocks`` counts the open blocks in all threads; the
engine reads it once per gradient or call of a transform, and reads nothing else while it is 0.  ``Op.set_observed`` is
called when a block that observes the op is opened or closed, ``Composition.set_observed`` for blocks that observe all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pullback.core import environment

if TYPE_CHECKING:
    from pullback.core.op import Op

F = TypeVar("F", bound=Callable[..., Any])
blocks = 0  # the number of open blocks, in all threads


class Observer:
    """Base of observers.  ``events`` names the methods that a class has, by which the engine finds it.

    ``run_call(entry, function, *args, **kwargs)``
        runs a call of a transform, of a compiled function or of a function made of ops; ``entry`` is its name
    ``perform(op, args, params)``
        performs an op for which ``observes`` is true; called by the op's own function
    ``open_tape()``, ``walk(nodes, keep, transposed)``
        open a tape, and run the backward pass over nodes that stay
    ``fix_tangent(dual, op, args, params)``
        gives the tangent of the result of an op in forward mode, which is ``dual``
    ``record_lines(tape)``
        lets a new tape of a ``GradientTape`` remember lines of the program
    ``capture(args)``
        returns the operands of an op that is no ``Op`` as values of the block
    ``check_write(x, subject)``
        raises an error if a tensor must not be written to in the block; ``subject`` names the write
    ``note(kind, *data)``
        returns a context manager; reports say for what purpose the ops inside it were performed
    """

    events: frozenset[str] = frozenset()
    ops: Iterable[str] | None = ()  # the names of the ops that it observes, None for all

    def observes(self, op: Op) -> bool:
        """Return whether ``perform`` is to perform an op."""
        return self.ops is None or op.name in self.ops

    def cache_key(self) -> Hashable:
        """Return what a program that is compiled in the block depends on; None if on nothing."""
        return None


class CallObserver(Observer):
    """An observer that runs the calls that a program makes; it is off inside these calls."""

    events = frozenset({"run_call"})


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())
observers = _observers.get
_lock = Lock()
_counts: Counter[str | None] = Counter()  # the open blocks that observe an op, by its name; None: that observe all
_ops: dict[str, Any] = {}
_compositions: list[Any] = []


def find(event: str) -> Any:
    """Return the innermost observer of an event that is on here, or None."""
    return next((o for o in reversed(_observers.get()) if event in o.events), None)


def observe_calls(entry: str) -> Callable[[F], F]:
    """Return a decorator for a call of a transform, which the observer of calls runs if one is on; ``entry`` names it.

    The quickest calls have the test written out, to save the frame.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            if blocks and (observer := find("run_call")) is not None:
                return observer.run_call(entry, function, *args, **kwargs)
            return function(*args, **kwargs)

        return cast(F, call)

    return decorate


def capture_operands(args: list[Any]) -> list[Any]:
    """Return the operands of an op that is no ``Op`` as values of the innermost block that records a branch."""
    observer = find("capture") if blocks else None
    return args if observer is None else observer.capture(args)


def find_for_op(op: Op, without: type | tuple[type, ...] = ()) -> Any:
    """Return the innermost observer of an op that is on here, not counting some types of them, or None."""
    return next((o for o in reversed(_observers.get()) if o.observes(op) and not isinstance(o, without)), None)


@contextmanager
def observe(*added: Observer, without: type | tuple[type, ...] = ()) -> Iterator[None]:
    """Turn these observers on, and those of the types ``without`` off, in this block and thread."""
    _count_block(added, 1)
    before = _observers.get()
    now = (*(o for o in before if not isinstance(o, without)), *added)
    _observers.set(now)
    try:
        yield
    finally:
        last = _observers.get()  # another one if blocks do not end in the order in which they were opened
        _observers.set(before if last is now else tuple(o for o in last if o not in added))
        _count_block(added, -1)


def add_op(op: Op) -> None:
    """Register an op, whose ``set_observed`` is called from now on."""
    with _lock:
        _ops[op.name] = op
        op.set_observed(bool(_counts[op.name] or _counts[None]))


def add_composition(composition: Any) -> None:
    """Register a function made of ops, whose ``set_observed`` is called from now on."""
    with _lock:
        _compositions.append(composition)
        composition.set_observed(bool(_counts[None]))


def _count_block(added: Iterable[Observer], change: int) -> None:
    global blocks
    with _lock:
        blocks += change
        for o in added:
            for name in [None] if o.ops is None else o.ops:
                _counts[name] += change
            for name in _ops if o.ops is None else o.ops:
                _ops[name].set_observed(bool(_counts[name] or _counts[None]))
            for composition in _compositions if o.ops is None else ():
                composition.set_observed(bool(_counts[None]))
    environment.change_blocks(change)


def _cache_keys() -> Hashable:
    return tuple([key for o in _observers.get() if (key := o.cache_key()) is not None]) or None


environment.add_part(_cache_keys)
