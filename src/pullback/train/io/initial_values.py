"""The initial values of variables while a model is read: zeros, and no more numbers than the file has weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pullback.core.context import bind
from pullback.errors import CheckpointError
from pullback.typing import Array, DType

LARGEST_EXAMPLE = 1 << 27  # elements of what a layer makes of one example: half a gigabyte
# Arguments by which a layer's output is larger than its input: times, plus, or the lengths themselves.
FACTORS = ("size", "n", "num_tokens", "max_tokens", "strides", "depth_multiplier", "num_bins", "batch_size")
MARGINS = ("padding", "output_padding")
LENGTHS = ("height", "width", "output_size")


class Expected:
    """How many numbers a file has that variables have not taken yet."""

    def __init__(self, where: str, count: int) -> None:
        self.where, self.left = where, count


_expected: ContextVar[Expected | None] = ContextVar("expected", default=None)


def expect_weights(where: str, count: int) -> AbstractContextManager[Expected]:
    """Inside this context variables of layers begin as zeros, without an initializer, of at most ``count`` numbers."""
    return bind(_expected, Expected(where, count))


def take_initial_values(name: str, shape: Sequence[int], dtype: DType) -> Array | None:
    """Return zeros for a variable while a file is read; None at other times.

    >>> with expect_weights("model.json", 6):
    ...     take_initial_values("dense/kernel", (1, 2), np.float32)
    array([[0., 0.]], dtype=float32)
    """
    expected = _expected.get()
    if expected is None:
        return None
    size = math.prod(shape)
    if size > expected.left:
        raise CheckpointError(
            f"load: {expected.where}: {name} would have shape {tuple(shape)}, but the file has only {expected.left} "
            "numbers for it and what follows."
        )
    expected.left -= size
    return np.zeros(shape, dtype)


def check_room(layer: Any, shapes: Sequence[Sequence[int | None]]) -> None:
    """Raise an error, while a file is read, for a layer whose output would be far larger than those of any model."""
    expected = _expected.get()
    if expected is None:
        return
    arguments = vars(layer)
    factor = math.prod(max(1, n) for name in FACTORS for n in _list_numbers(arguments.get(name)))
    margin = 2 * max((n for name in MARGINS for n in _list_numbers(arguments.get(name))), default=0)
    fixed = math.prod(max(1, n) for name in LENGTHS for n in _list_numbers(arguments.get(name)))
    for shape in shapes:
        lengths = [1 if n is None else n for n in shape]
        enlarged = math.prod(n + margin for n in lengths[:-1]) * max(lengths, default=1)
        if (
            max(math.prod(lengths), enlarged) * factor > LARGEST_EXAMPLE
            or fixed * max(lengths, default=1) > LARGEST_EXAMPLE
        ):
            raise CheckpointError(
                f"load: {expected.where}: {layer.name} would make more than {LARGEST_EXAMPLE} numbers of one example "
                f"of shape {tuple(shape)}, which no model does."
            )


def _list_numbers(value: object) -> list[int]:
    """Return the whole numbers in an argument."""
    if isinstance(value, list | tuple):
        return [n for one in value for n in _list_numbers(one)]
    return [int(value)] if isinstance(value, int) and not isinstance(value, bool) else []
