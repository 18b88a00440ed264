"""Checks of the arguments and inputs of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import as_number
from pullback.core.suggestions import snake_case
from pullback.core.tensor import all_values
from pullback.errors import ArgumentError, ShapeError
from pullback.train.arguments import check_count, is_whole_number
from pullback.typing import Value

if TYPE_CHECKING:
    from pullback.train.nn.layers.base import Layer

UnknownShape = tuple[int | None, ...]  # lengths, of which some may be unknown
Checks = Sequence[tuple[Any, ...]]  # functions that take a layer, each with further arguments


class LayerError(ShapeError):
    """A shape does not fit a layer; the message names the layer."""


def as_lengths_or_none(subject: str, shape: object) -> UnknownShape:
    """Return a shape as a tuple, in which None stands for an unknown length.

    >>> as_lengths_or_none("input", [None, 3])
    (None, 3)
    """
    lengths: list[Any] = list(shape) if isinstance(shape, list | tuple) else [shape]
    for n in lengths:
        if n is not None and not is_whole_number(n, 0):
            raise ArgumentError(f"{subject}: lengths must be whole numbers of 0 or more, or None, got {shape!r}.")
    return tuple(None if n is None else int(n) for n in lengths)


def check_counts(layer: Layer, *names: str) -> None:
    """Raise an error unless these arguments of a layer are positive whole numbers."""
    for name in names:
        check_count(layer.name, name, getattr(layer, name))


def check_number(layer: Layer, name: str, *limits: float) -> None:
    """Raise an error unless an argument is a number, not less and not more than the limits that are given."""
    as_number(layer.name, name, getattr(layer, name), *limits)


def check_numbers_below(layer: Layer, x: Value, count: int) -> None:
    """Raise an error if elements of an input, as far as they are known, are not numbers from 0 to ``count - 1``."""
    numbers: Any = np.ravel(all_values(x))
    wrong = numbers[(np.floor(numbers) != numbers) | (numbers < 0) | (numbers >= count)]
    if wrong.size:
        range_ = f"whole numbers from 0 to {count - 1}"
        raise LayerError(f"layer '{layer.name}', given shape {x.shape}: expected {range_}, got {wrong[0]}.")


def check_choice(layer: Layer, name: str, *choices: str) -> None:
    """Raise an error unless an argument is among these; TensorFlow.js's spelling is converted."""
    value = getattr(layer, name)
    choice = snake_case(value) if isinstance(value, str) else value
    if choice not in choices:
        raise ArgumentError(f"{layer.name}: {name} must be {' or '.join(map(repr, choices))}, got {value!r}.")
    setattr(layer, name, choice)


def check_data_format(layer: Layer) -> None:
    """Raise an error unless ``data_format`` says where the channels are, or is None."""
    if getattr(layer, "data_format", None) is not None:
        check_choice(layer, "data_format", "channels_last", "channels_first")


def check_shares(layer: Layer, *names: str) -> None:
    """Raise an error unless these arguments are numbers of 0 or more and less than 1."""
    for name in names:
        value = getattr(layer, name)
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < 1:
            raise ArgumentError(f"{layer.name}: {name} must be a number, at least 0 and less than 1, got {value!r}.")
