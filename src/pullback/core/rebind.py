"""``x[i] = v``: the object ``x`` stands for a new value, and whatever was recorded keeps the old one.

A tensor is its own node, so the user's object and the tape's are the same.  When it changes, a stand-in takes its place
in all that was recorded, and it becomes the node of the new value.

Nodes of its own tape that hold it come after it there.  A transform inside holds it as a value, on a tape that nothing
leads to from here, or on none; only the garbage collector knows all holders.  It is slow to ask, so it is asked only if
such a transform was begun at all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.core.interpreter import latest_level
from pullback.core.memory import node_of
from pullback.core.tape import TAPED
from pullback.core.tensor import Tensor, Wrapped
from pullback.errors import ArgumentError, VariableError

DEPTH = 2  # a node holds its operands in a list of a tuple


class Rebound(Wrapped):
    """A tensor that was given a value of another transform: it refers to that, and is read before it is used."""

    __slots__ = ()

    refers = True
    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    level = property(lambda self: self.value.level)

    def read(self) -> Tensor:
        held: Tensor = self.value.read()
        return held


def rebind(x: Any, change: Callable[[Any], Any]) -> None:
    """Let ``x`` stand for ``change(x)`` from now on."""
    if type(x) is Rebound:
        x.value = change(x.value)
        return
    if x.refers:
        raise VariableError(
            f"{x.name}[...] = value: a variable is changed as a whole; use assign, assign_add or assign_sub."
        )
    if x.level and type(x) in TAPED and node_of(x).x is None:
        raise ArgumentError(
            f"x[...] = value: this tensor of shape {x.shape} is an input of the function being differentiated, "
            "which stays as it is. Copy it first: x = pb.clone(x)."
        )
    if not x.level and type(x) is Tensor and x.x is not None:
        raise ArgumentError(
            f"x[...] = value: a tensor of shape {x.shape} is on a GradientTape that may still be asked for a gradient, "
            "and stays as it is. Copy it first: x = pb.clone(x)."
        )
    new = change(x)
    if x.level:
        old = _stand_in(x)
        if type(x) is Tensor:
            _replace(x.meta.tape.nodes, x, old)
        if latest_level() > x.level:  # a transform inside this one may hold it as a value
            for holder in [*_holders(x, DEPTH)]:
                _redirect(holder, x, old, _slots(type(holder)))
    _become(x, new)


def _stand_in(x: Any) -> Any:
    made = object.__new__(type(x))
    _copy(made, x)
    return made


def _copy(to: Any, of: Any) -> None:
    for slot in _slots(type(of)):
        if hasattr(of, slot):
            setattr(to, slot, getattr(of, slot))


def _slots(kind: type) -> Sequence[str]:
    if kind in TAPED:
        return Tensor.__slots__
    return [slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ())]


def _become(x: Any, new: Any) -> None:
    kind = type(new)
    if type(x) in TAPED and kind in TAPED:
        if kind is Tensor and new.level:
            _replace(new.meta.tape.nodes, new, x)
        x.__class__ = kind
        _copy(x, new)
    elif type(x) is kind:
        _copy(x, new)
    else:
        x.__class__ = Rebound
        x.value = new


def _replace(nodes: list[Any], x: Any, other: Any) -> None:
    """Put ``other`` in the place of ``x`` on a tape, for itself and for the nodes that came after it."""
    for i in range(len(nodes) - 1, -1, -1):
        if nodes[i] is x:
            nodes[i] = other
            return
        _redirect(nodes[i], x, other, ("x", "y"))


def _redirect(node: Any, x: Any, other: Any, slots: Sequence[str]) -> None:
    for slot in slots:
        held = getattr(node, slot, None)
        if held is x or type(held) in (tuple, list):
            setattr(node, slot, _swapped(held, x, other))


def _swapped(held: Any, x: Any, other: Any) -> Any:
    if held is x:
        return other
    if type(held) is tuple:
        return tuple([_swapped(h, x, other) for h in held])
    if type(held) is list:
        held[:] = [_swapped(h, x, other) for h in held]
    return held


def _holders(x: Any, depth: int) -> Iterator[Any]:
    """The tensors that hold ``x`` in a slot of theirs.  Users' own lists and names are no such thing."""
    for holder in gc.get_referrers(x):
        if isinstance(holder, Tensor):
            yield holder
        elif depth and type(holder) in (list, tuple):
            yield from _holders(holder, depth - 1)
