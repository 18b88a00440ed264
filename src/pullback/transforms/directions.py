"""Pull many cotangents back at once, by a level of ``vmap``, in batches that fit the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import float_of, unwrap_constant
from pullback.core.tensor import all_values
from pullback.display.progress import report_progress
from pullback.errors import GradientError
from pullback.transforms.batch import Batched, take_out

if TYPE_CHECKING:
    from pullback.core.tensor import Tensor
    from pullback.typing import Array

BATCH_BYTES = 1024 * 1024  # bytes of a batch of cotangents at the largest step of the program
MIN_SINGLE_BYTES = 64 * 1024  # bytes of one cotangent there from which on pulling it back alone is quicker

Back = Callable[[Any], Sequence[Any]]  # from a cotangent to those of the inputs, None for one that is not reached


class Units:
    """All unit vectors of a shape, made when they are indexed."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], one: complex) -> None:
        self.shape, self.dtype, self.one, self.size = shape, dtype, one, prod(shape)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, these: slice) -> Any:
        numbers = np.arange(self.size)[these]
        units = np.zeros((len(numbers), self.size), self.dtype)
        units[np.arange(len(numbers)), numbers] = self.one
        return units.reshape(-1, *self.shape)


class UnitsOfExamples(Units):
    """All unit vectors of one example, each for all examples at once."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        super().__init__(shape[1:], dtype, 1)
        self.count = shape[0]

    def __getitem__(self, these: slice) -> Any:
        return np.repeat(super().__getitem__(these)[:, None], self.count, axis=1)


def find_widest(nodes: Iterable[Tensor]) -> int:
    """Return the bytes of the largest value among nodes of a tape."""
    return max((int(r.meta.size * r.meta.dtype.itemsize) for r in nodes), default=0)


def pull_unit_vectors(
    back: Back, shape: tuple[int, ...], dtype: np.dtype[Any], widest: int, number: int, count: int, one: complex = 1
) -> Sequence[Any]:
    """Return every unit vector of ``shape``, times ``one``, pulled back to each of ``count`` inputs, along axis 0.

    If the shape is () there is one unit vector, and no axis for it.
    """
    if not shape:
        return [None if d is None else unwrap_constant(d) for d in back(dtype.type(one))]
    chunks = list(pull_in_batches(back, Units(shape, dtype, one), widest, number))
    if len(chunks) == 1:
        return chunks[0]
    return [_join(rows) for rows in zip(*chunks, strict=True)] or [None] * count


def pull_examples(face: str, back: Back, y: Tensor, widest: int, number: int) -> list[Any]:
    """Return the jacobian of each example of ``y``, along axis 0, by the same example of each input.

    The cotangents of all examples are pulled back at once, so none may depend on another.
    """
    chunks = list(pull_in_batches(back, UnitsOfExamples(y.shape, float_of(y.dtype)), widest, number))
    found = []
    for i, rows in enumerate(zip(*chunks, strict=True)):
        d = _join(rows)
        if d is not None:
            d = np.moveaxis(d, 0, 1)  # examples, elements of y, the rest of x
            dtype = float_of(y.dtype)
            weights = np.random.default_rng(0).standard_normal((*d.shape[:2], *(1,) * (d.ndim - 2))).astype(dtype)
            mixed = back(weights.reshape(y.shape))[i]
            _check_apart(face, all_values(np.sum(weights * d, axis=1)), all_values(mixed), dtype)
            d = np.reshape(d, y.shape + d.shape[2:])
        found.append(d)
    return found or [None]


def _check_apart(face: str, expected: Array, mixed: Array, dtype: np.dtype[Any]) -> None:
    """Raise if examples depend on each other: pulling back a weighted sum then gives something else than expected."""
    near = np.sqrt(max(np.finfo(dtype).eps, np.finfo(mixed.dtype).eps))
    if expected.size and np.any(np.abs(mixed - expected) > near * (np.max(np.abs(expected)) + np.max(np.abs(mixed)))):
        raise GradientError(
            f"{face}: an example of the target depends on other examples of the source. "
            "Use jacobian, which has the derivatives by all of them."
        )


def _join(rows: Sequence[Any]) -> Any:
    return None if rows[0] is None else np.concatenate(rows)


def pull_in_batches(back: Back, cotangents: Any, widest: int, number: int) -> Iterator[list[Any]]:
    """Yield the results of pulling cotangents back, in batches along axis 0.

    ``widest`` is the bytes of one cotangent at the largest step of the program, ``number`` the level of ``vmap``.
    """
    size = 1 if widest >= MIN_SINGLE_BYTES else max(1, BATCH_BYTES // max(widest, 1))
    with report_progress("derivatives", -(-len(cotangents) // size)) as shown:
        for start in range(0, len(cotangents), size):
            part = cotangents[start : start + size]
            if size == 1:
                yield [None if d is None else unwrap_constant(d)[None] for d in back(part[0])]
            else:
                yield [None if d is None else take_out(d, 0, number, len(part)) for d in back(Batched(number, part))]
            shown.step()
        shown.close({})
