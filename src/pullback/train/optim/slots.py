"""Slots: the variables in which an optimizer keeps its state, some of them for each trained variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import ref

import numpy as np

from pullback.core.tape import constant
from pullback.core.variable import Variable
from pullback.typing import Shape

SlotShape = Callable[[Shape, str], Shape]  # from the shape and the name of a variable


class Slot(Variable):
    """A variable that is not registered by name: another optimizer may have one of the same name.

    Being a variable, it is an argument of compiled programs, not a constant in them.
    """

    __slots__ = ()

    def __init__(self, value: Any, name: str) -> None:
        self.held = constant(np.array(value)[()])
        self.trainable = False
        self.name = name


class SlotTable:
    """The slots of each variable; they are freed with the variable."""

    def __init__(self, initial_values: dict[str, float], shapes: Mapping[str, SlotShape]) -> None:
        self.initial_values, self.shapes = initial_values, shapes
        self._table: dict[int, tuple[ref[Variable], list[Slot]]] = {}

    def get(self, v: Variable) -> list[Slot]:
        """Return the slots of ``v``, made at first use."""
        found = self._table.get(id(v))
        if found is not None:
            return found[1]
        slots = [
            Slot(np.full(self.find_shape(name, v.shape, v.name), x, v.dtype), f"{v.name}/{name}")
            for name, x in self.initial_values.items()
        ]
        table, key = self._table, id(v)
        table[key] = ref(v, lambda _: table.pop(key, None)), slots
        return slots

    def find_shape(self, name: str, shape: Shape, variable: str = "") -> Shape:
        """Return the shape of a slot of a variable of this shape: the same, unless the optimizer has another."""
        return self.shapes[name](shape, variable) if name in self.shapes else shape

    def __contains__(self, v: Variable) -> bool:
        return id(v) in self._table

    def __iter__(self) -> Iterator[tuple[Variable, list[Slot]]]:
        for one, slots in list(self._table.values()):
            v = one()
            if v is not None:
                yield v, slots
