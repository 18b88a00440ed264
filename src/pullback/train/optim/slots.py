"""What an optimizer keeps of its own: variables that nobody differentiates by, some of them for each variable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ref

import numpy as np

from pullback.core.tape import constant
from pullback.core.variable import Variable

__all__ = ["Kept", "Slot"]


class Slot(Variable):
    """A variable outside the register of names: another optimizer may keep one of the same name.

    Being a variable, it is an argument of the programs that ``compile`` makes, not a part of them.
    """

    __slots__ = ()

    def __init__(self, value: Any, name: str) -> None:
        self.held = constant(np.array(value)[()])
        self.trainable = False
        self.name = name


class Kept:
    """The slots of each variable, by the variable itself; they go when it goes."""

    def __init__(self, starts: dict[str, float]) -> None:
        self.starts = starts
        self._of: dict[int, tuple[ref[Variable], list[Slot]]] = {}

    def of(self, v: Variable) -> list[Slot]:
        """The slots of ``v``, made when it is first met."""
        found = self._of.get(id(v))
        if found is not None:
            return found[1]
        slots = [Slot(np.full(v.shape, x, v.dtype), f"{v.name}/{name}") for name, x in self.starts.items()]
        of, key = self._of, id(v)
        of[key] = ref(v, lambda _: of.pop(key, None)), slots
        return slots

    def __contains__(self, v: Variable) -> bool:
        return id(v) in self._of

    def __iter__(self) -> Iterator[tuple[Variable, list[Slot]]]:
        for one, slots in list(self._of.values()):
            v = one()
            if v is not None:
                yield v, slots
