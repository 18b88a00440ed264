"""What a program needs to run, as plain data: all that is left of a graph once there is machine code for it.

It is kept on disk beside the code, as text, so that another process that traces the same graph need not go through
the compiler to find out what the compiler knew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from pullback.compiler.ir.graph import Graph
from pullback.compiler.ir.kinds import CONSTANT, KINDS, Kind
from pullback.compiler.runtime.disk_cache import summed

__all__ = ["Kernel", "Piece", "Recipe", "Slot", "arrays_of", "packed", "unpacked"]

MOST = 1 << 20  # bytes of constants that are kept, of those that are not in the graph as it was traced


class Slot(NamedTuple):
    """An array that the program is given, or makes."""

    kind: Kind
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        size = self.dtype.itemsize
        for n in self.shape:
            size *= n
        return size


class Kernel(NamedTuple):
    """An op that runs its NumPy kernel: where in the traced graph it is, or else in the prepared one."""

    traced: int
    prepared: int
    given: list[int]  # slots
    parts: list[tuple[int, int]]  # the slot of each result that is asked for, and its place; -1 for the only one


class Piece(NamedTuple):
    """Steps as one function of machine code, or an op between them."""

    name: str
    slots: list[int]
    kernel: Kernel | None


class Constant(NamedTuple):
    """An array that the program holds: that of a node of the traced graph, or these bytes."""

    slot: int
    traced: int
    bytes: str


@dataclass
class Recipe:
    """Everything but the machine code."""

    code: str = ""  # the key under which that is kept
    imports: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    slots: tuple[Slot, ...] = ()
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    constants: tuple[Constant, ...] = ()
    arena: int = 0
    blocks: tuple[tuple[int, int], ...] = ()  # of the arena, where they are walled in
    long: bool = False
    described: tuple[str, ...] = ()


def packed(recipe: Recipe, traced: Graph, arrays: dict[int, Any]) -> bytes | None:
    """As text, with the constants; None if it is too long, or there are arrays of another kind in it."""
    if any(s.dtype.kind not in "biufc" for s in recipe.slots):
        return None
    there = {_looks(n.data): n.number for n in traced.nodes if n.kind is CONSTANT} if arrays else {}
    found = [(slot, there.get(_looks(x), -1), x) for slot, x in arrays.items()]
    if sum(x.nbytes for _, at, x in found if at < 0) > MOST:
        return None
    recipe = replace(
        recipe, constants=tuple(Constant(i, at, "" if at >= 0 else x.tobytes().hex()) for i, at, x in found)
    )
    slots = [(s.kind.name, s.shape, s.dtype.str) for s in recipe.slots]
    return json.dumps({**vars(recipe), "slots": slots}, separators=(",", ":")).encode()


def _looks(x: Any) -> Any:
    return x.shape, x.dtype.str, summed(x.tobytes())


def arrays_of(recipe: Recipe, traced: Graph) -> dict[int, Any]:
    """The constants of a recipe that was kept; a ValueError if they are not as it says."""
    found = {}
    for slot, at, text in recipe.constants:
        _, shape, dtype = recipe.slots[slot]
        if at < 0:
            found[slot] = (np.frombuffer(bytes.fromhex(text), dtype) if text else np.zeros(0, dtype)).reshape(shape)
        elif traced.nodes[at].kind is CONSTANT and (traced.nodes[at].shape, traced.nodes[at].dtype) == (shape, dtype):
            found[slot] = traced.nodes[at].data
        else:
            raise ValueError("no recipe of this graph")
    return found


def unpacked(data: bytes) -> Recipe:
    """The recipe again; a ValueError if this is none."""
    try:
        found = json.loads(data)
        if found.keys() != {f.name for f in fields(Recipe)}:
            raise ValueError("no recipe: there is something else in it")
        found["slots"] = tuple(
            Slot(KINDS[kind], tuple(shape), np.dtype(dtype)) for kind, shape, dtype in found["slots"]
        )
        found["pieces"] = tuple(Piece(a, b, Kernel(*c) if c is not None else None) for a, b, c in found["pieces"])
        found["constants"] = tuple(Constant(*c) for c in found["constants"])
        made = Recipe(**found)
        named = [
            *made.inputs,
            *made.outputs,
            *(c.slot for c in made.constants),
            *(i for p in made.pieces for i in p.slots),
        ]
        if not all(0 <= i < len(made.slots) for i in named):
            raise ValueError("no recipe: it names slots that it does not have")
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"no recipe: {error}") from None
    return made
