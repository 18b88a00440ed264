"""Search the noted ops, from a result that is not finite back to the ops that made it so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.op import Op
from pullback.core.tensor import Tensor, all_values
from pullback.diagnostics.monitor import Note

if TYPE_CHECKING:
    from pullback.typing import Array

Index = tuple[int, ...]


class Visit:
    """A visited note, the element of it that is not finite, and the visit that it was reached from."""

    __slots__ = ("clean", "first_back", "index", "note", "then")

    def __init__(self, note: Note, index: Index, then: Visit | None, bad: Sequence[Note]) -> None:
        self.note, self.index, self.then = note, index, then
        self.clean = not bad  # no input of it is bad: it began here
        # of the backward pass, and no input from the backward pass is bad: it entered the pass here
        self.first_back = note.backward and not any(a.backward for a in bad)


def get_values(x: object) -> Any:
    """Return the plain numbers of any argument of an op; None if it has none."""
    if isinstance(x, Note):
        return x.array
    if isinstance(x, Tensor | np.ndarray | np.generic | float | int | complex):
        return np.asarray(all_values(x))
    return None


def find_bad(values: Any) -> Index | None:
    """Return the index of the first NaN, else of the first infinity; None if all is finite.

    >>> find_bad(np.array([1.0, np.inf, np.nan]))
    (2,)
    """
    if values is None or values.dtype.kind not in "fc" or np.isfinite(values).all():
        return None
    bad = np.isnan(values)
    if not bad.any():
        bad = ~np.isfinite(values)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), values.shape))


def locate_operand(values: Array, index: Index, shape: Sequence[int]) -> Index | None:
    """Return the element of an input that went into ``index`` of a result of this shape, element by element."""
    if values.ndim > len(shape) or any(
        n not in (1, m) for n, m in zip(values.shape[::-1], tuple(shape)[::-1], strict=False)
    ):
        return None
    own = index[len(index) - values.ndim :]
    return tuple(0 if n == 1 else i for i, n in zip(own, values.shape, strict=True))


def select_inputs(note: Note, index: Index) -> Sequence[Any]:
    """Return the inputs that went into one element: of a choice, only the one that was chosen."""
    if note.name != "where" or len(note.args) != 3:
        return note.args
    condition, x, y = note.args
    truth = get_values(condition)
    place = None if truth is None else locate_operand(truth, index, note.array.shape)
    return note.args if place is None else (x,) if truth[place] else (y,)


def list_bad_inputs(note: Note, index: Index) -> Iterator[tuple[Any, Index]]:
    """Yield the inputs of an op that are not finite where ``index`` of its result needs them, with that element."""
    elementwise = isinstance(note.op, Op) and note.op.elementwise
    for a in select_inputs(note, index):
        values = get_values(a)
        if values is None or values.dtype.kind not in "fc":
            continue
        place = locate_operand(values, index, note.array.shape) if elementwise else None
        if place is None:
            place = find_bad(values)
        elif np.isfinite(values[place]):
            continue
        if place is not None:
            yield a, place


def visit_bad(root: Note) -> list[Visit]:
    """Return the visits of all values that are not finite and lead to a result; none if the result is finite."""
    begin = find_bad(root.array)
    if begin is None:
        return []
    found: list[Visit] = []
    seen = {id(root)}
    todo: list[tuple[Note, Index, Visit | None]] = [(root, begin, None)]
    while todo:
        note, index, then = todo.pop()
        bad = list(list_bad_inputs(note, index))
        notes = [(a, place) for a, place in bad if isinstance(a, Note)]
        visit = Visit(note, index, then, [a for a, _ in notes])
        found.append(visit)
        for a, place in notes:
            if id(a) not in seen:
                seen.add(id(a))
                todo.append((a, place, visit))
    return found


def list_path(visit: Visit) -> list[Note]:
    """Return the notes on the path from a visit to the result."""
    notes = []
    v: Visit | None = visit
    while v is not None:
        notes.append(v.note)
        v = v.then
    return notes
