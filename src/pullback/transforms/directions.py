"""Many directions at once: cotangents pulled back together, by ``vmap``'s level, as long as they fit into the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.core.convert import bare
from pullback.transforms.batch import Batched, left

__all__: list[str] = []

ROOM = 1024 * 1024  # bytes that directions taken together have at the widest place of the program
WIDE = 64 * 1024  # bytes of one direction from which on taking it by itself is quicker

Back = Callable[[Any], Sequence[Any]]  # a cotangent to those of the inputs, None where nothing comes back


class Units:
    """All unit vectors of a shape, made as they are asked for."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype, self.size = shape, dtype, prod(shape)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, these: slice) -> Any:
        numbers = np.arange(self.size)[these]
        made = np.zeros((len(numbers), self.size), self.dtype)
        made[np.arange(len(numbers)), numbers] = 1
        return made.reshape(-1, *self.shape)


def unit_pulls(back: Back, shape: tuple[int, ...], dtype: Any, widest: int, number: int, count: int) -> Sequence[Any]:
    """Every unit vector of ``shape`` pulled back to each of ``count`` inputs, along axis 0.

    Where there is but one direction, because the shape is (), there is no axis for it.
    """
    if not shape:
        return [None if d is None else bare(d) for d in back(dtype.type(1))]
    chunks = list(passes(back, Units(shape, dtype), widest, number))
    if len(chunks) == 1:
        return chunks[0]
    return [_joined(rows) for rows in zip(*chunks, strict=True)] or [None] * count


def _joined(rows: Sequence[Any]) -> Any:
    return None if rows[0] is None else np.concatenate(rows)


def passes(back: Back, cotangents: Any, widest: int, number: int) -> Iterator[list[Any]]:
    """Cotangents, along axis 0, pulled back as many at a time as is good.

    ``widest`` is how many bytes one direction has at the widest place of the program, ``number`` the level of many.
    """
    size = 1 if widest >= WIDE else max(1, ROOM // max(widest, 1))
    for start in range(0, len(cotangents), size):
        part = cotangents[start : start + size]
        if size == 1:
            yield [None if d is None else bare(d)[None] for d in back(part[0])]
        else:
            yield [None if d is None else left(d, 0, number, len(part)) for d in back(Batched(number, part))]
