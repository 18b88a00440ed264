"""``debug_nans`` where no gradient is taken: every function of the library that a program calls looks at its result.

While a block is open the code of ops, of functions made of ops and of NumPy's protocols is exchanged.  Only what the
program itself calls is looked at: what goes on inside of such a call is the library's own business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from types import FunctionType
from typing import Any

from pullback.core import tree
from pullback.core.op import REGISTRY, Op, first_call, first_reflected
from pullback.core.tape import ARRAYS
from pullback.core.tensor import BY_KERNEL, Tensor
from pullback.diagnostics import switches
from pullback.diagnostics.looking import Names, look_for_new
from pullback.transforms.arguments import parameters_of
from pullback.transforms.customop import is_differentiated
from pullback.transforms.override import _perform, _stand_in, _stand_in_reflected

__all__: list[str] = []

_lock = Lock()
_blocks = 0
_modules = {"pullback.ops.creation"}  # those that were looked through; what makes tensors of numbers computes nothing
_guards: dict[int, tuple[Any, Any, Any]] = {}  # a function, its code, and the code that looks
NOT_THEIRS = tuple(f.__code__ for f in (first_call, first_reflected, _stand_in, _stand_in_reflected))


@contextmanager
def guarding() -> Iterator[None]:
    """While any such block is open, in whatever thread, the functions look at their results if that thread wants it."""
    global _blocks
    with _lock:
        _blocks += 1
        for f in _new_functions():
            if id(f) not in _guards:
                _guards[id(f)] = switches.swap(f, partial(_look, f))
        for f, own, looking in _guards.values():
            if f.__code__ is own:  # else an override of its gradient that is open has put another one there
                f.__code__ = looking
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                for f, own, looking in _guards.values():
                    if f.__code__ is looking:
                        f.__code__ = own


def _new_functions() -> Iterator[Any]:
    """What a program calls and is not yet known: ops that are written out, functions made of ops, NumPy's protocols."""
    for op in REGISTRY.values():
        if id(op.function) not in _guards:
            yield from _of_op(op)
    for name in [n for n in sys.modules if n.startswith("pullback.ops.") and n not in _modules]:
        _modules.add(name)
        for f in (vars(sys.modules[name]).get(public) for public in getattr(sys.modules[name], "__all__", ())):
            if type(f) is FunctionType and not hasattr(f, "op") and not f.__code__.co_freevars:
                yield f
    if id(Tensor.__array_ufunc__) not in _guards:
        yield Tensor.__array_ufunc__
        yield Tensor.__array_function__


def _of_op(op: Op) -> Iterator[Any]:
    for f in (op.function, op.reflected):
        if f is not None and f.__code__ not in NOT_THEIRS:
            yield f


def _look(f: Callable[..., Any], own: Callable[..., Any]) -> Any:
    """The function that looks at what ``own``, the code of ``f``, gives."""

    def looking(*args: object, **kwargs: object) -> Any:
        if not _blocks and f.__code__ is _guards[id(f)][2]:  # an override that outlived the block has put it back
            f.__code__ = _guards[id(f)][1]
        if not switches.mode().guarded or _is_differentiated(args, kwargs):
            return own(*args, **kwargs)
        return look_for_new(own, args, kwargs, lambda args: _names(f, own, args), _is_followed)

    return looking


def _is_differentiated(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(x, Tensor) and is_differentiated(x, 0) for x in tree.leaves((args, kwargs)))


def _is_followed(x: object) -> bool:
    """Whether an argument of an op is numbers to compute with, and not an axis or a shape."""
    if tree.is_number_list(x):
        return any(isinstance(n, float) for n in tree.leaves(x))
    return isinstance(x, float) or (isinstance(x, ARRAYS) and x.dtype.kind in "fc")


def _names(f: Callable[..., Any], own: Callable[..., Any], args: tuple[Any, ...]) -> Names:
    """What a program calls the arguments of ``f``, whose signature only ``own`` has while a block is open."""
    if f is Tensor.__array_ufunc__:
        _, ufunc, _, *given = args
        op = BY_KERNEL.get(ufunc)
        names = op.inputs if op is not None else ("x", "y")
        return Names(ufunc.__name__, ["", "", "", *names[: len(given)]])
    if f is Tensor.__array_function__:
        _, func, _, given, _ = args
        return Names(func.__name__, ["", "", "", parameters_of(func, len(given))])
    op = f.__globals__.get("OP")
    if op is None:
        return Names(f.__name__, parameters_of(own, len(args)))
    return Names(op.name, op.inputs[::-1] if f is op.reflected else [*op.inputs, *op.params])


def _building(own: Callable[..., Any]) -> Any:
    """The same for an op that is written out while a block is open."""

    def build(self: Op, reflecting: bool) -> Any:
        made = own(self, reflecting)
        with _lock:
            if _blocks and id(self.function) not in _guards:
                for f in _of_op(self):  # it has just been written out
                    guard = _guards[id(f)] = switches.swap(f, partial(_look, f))
                    f.__code__ = guard[2]
        return made

    return build


def _first(own: Callable[..., Any]) -> Any:
    def first(self: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not switches.mode().guarded:
            return own(self, args, kwargs)
        self.build(False)
        return self.function(*args, **kwargs)

    return first


def _overridden(own: Callable[..., Any]) -> Any:
    """The same for an op whose gradient is overridden."""

    def perform(op: Op, reflected: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not switches.mode().guarded or _is_differentiated(args, kwargs):
            return own(op, reflected, args, kwargs)

        def call(*args: Tensor, **kwargs: object) -> Any:
            return own(op, reflected, args, kwargs)

        return look_for_new(call, args, kwargs, lambda args: Names(op.name, [*op.inputs, *op.params]), _is_followed)

    return perform


switches.asking(Op.build, _building)
switches.asking(Op.first, _first)
switches.asking(_perform, _overridden)
