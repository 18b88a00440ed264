"""Random numbers by their positions in a counter-based stream, which compiled programs compute where they use them.

The generator is NumPy's ``Philox``: each number is a function of a key of two words and of its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, broadcast
from pullback.core.calculus import no_derivative
from pullback.core.lowering import scalar
from pullback.core.op import op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Array, TensorLike

__all__: list[str] = []  # ops that others are made of

PER_BLOCK = {"f4": 8, "f8": 4}  # numbers of a block of the stream


def _list_samples(*bounds: Any) -> list[Sample]:
    """Return places of numbers, with the key and ``bounds``."""
    places = [
        (np.int64(3), np.int32(4)), (np.int64(5), np.arange(37, dtype=np.int32)),
        (np.arange(0, 12, 4)[:, None], np.arange(4, dtype=np.int32)),
        (np.int64(2), np.array([9, 3, 3, 40, 1], np.int32)), (np.int64(2), np.zeros((0, 2), np.int32)),
    ]  # fmt: skip
    return [((*place, np.int64(7), np.int64(-3), *bounds), {"dtype": "f4"}) for place in places]


def _list_numbers(at: Array, key: tuple[int, int], dtype: str) -> Any:
    """Return the numbers at these places of a stream."""
    first, count = int(at.min()), int(at.max() - at.min()) + 1
    block, skipped = divmod(first, PER_BLOCK[dtype])
    words = np.array(key, np.int64).view(np.uint64)
    stream = np.random.Generator(np.random.Philox(counter=block, key=words))
    precision: Any = np.float32 if dtype == "f4" else np.float64
    return stream.random(skipped + count, precision)[skipped:][at - first]


def _draw_uniform(base: Any, place: Any, key0: Any, key1: Any, dtype: str) -> Any:
    at = np.asarray(base) + place
    if np.ndim(key0) == np.ndim(key1) == 0 and at.size:
        return _list_numbers(at, (int(key0), int(key1)), dtype)
    at, key0, key1 = np.broadcast_arrays(at, key0, key1)
    drawn = np.empty(at.shape, dtype)
    for key in {*zip(key0.ravel().tolist(), key1.ravel().tolist(), strict=True)}:
        has_key = (key0 == key[0]) & (key1 == key[1])
        drawn[has_key] = _list_numbers(at[has_key], key, dtype)
    return drawn


def _has_signed_places(dtypes: Sequence[str], numbers: Sequence[Any]) -> bool:
    base, place, *keys = dtypes[:4]
    return place[0] == "i" and {base, *keys} == {"i8"}


@op(
    _draw_uniform,
    acts=broadcast("(),(),(),()->()", _list_samples),
    d=no_derivative(mixes=False),
    lower=scalar(
        lambda s, base, place, key0, key1, dtype: s.philox(base, place, key0, key1, dtype),
        draws=True,
        fits=_has_signed_places,
    ),
)
def draw_uniform(base: TensorLike, place: TensorLike, key0: TensorLike, key1: TensorLike, /, dtype: str = "f8") -> Any:
    """Return the numbers at the places ``base + place`` of the stream with a key, which are at least 0 and below 1.

    >>> draw_uniform(np.int64(0), np.arange(2), np.int64(0), np.int64(0))
    array([0.01154675, 0.2415492 ])
    """


@op(
    lambda base, place, key0, key1, bound, dtype: _draw_uniform(base, place, key0, key1, dtype) < bound,
    acts=broadcast("(),(),(),(),()->()", lambda: _list_samples(np.float32(0.5))),
    d=no_derivative(mixes=False),
    lower=scalar(
        lambda s, base, place, key0, key1, bound, dtype: s.less(s.philox(base, place, key0, key1, dtype), bound),
        draws=True,
        fits=_has_signed_places,
    ),
)
def draw_below(
    base: TensorLike, place: TensorLike, key0: TensorLike, key1: TensorLike, bound: TensorLike, /, dtype: str = "f8"
) -> Any:
    """Return where the numbers of ``draw_uniform`` are less than a bound.

    >>> draw_below(np.int64(0), np.arange(2), np.int64(0), np.int64(0), 0.5)
    array([ True,  True])
    """
