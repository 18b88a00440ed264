"""Inputs and targets as users give them, converted to tuples of arrays with examples along the first axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.core.convert import as_array, as_number, get_default_dtype
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.train.loop.model import TrainableModel
from pullback.typing import Array, Shape, TensorLike

__all__ = ["Arrays", "DataLike", "Examples", "as_examples", "as_pair", "split_examples"]

Arrays = tuple[Array, ...]
Examples = tuple[Arrays, Arrays]  # inputs and targets
DataLike: TypeAlias = "TensorLike | Sequence[TensorLike]"  # an array, or one for each input or output


def as_examples(model: TrainableModel, x: DataLike, y: DataLike | None) -> Examples:
    """Return inputs and targets as tuples of arrays; floats get the dtype of the model."""
    dtype = next((v.dtype for v in model.variables if v.dtype.kind == "f"), get_default_dtype())
    inputs = _as_sequence(x)
    if len(inputs) > model.max_inputs:
        raise ShapeError(
            f"{model.name}: a list of {len(inputs)} arrays is so many inputs, and it has {model.max_inputs}. "
            "np.stack makes one array of the arrays of single examples."
        )
    xs = tuple(_as_array(a, dtype, f"{model.name}: x") for a in inputs)
    if any(a.ndim == 1 for a in xs) and len(xs) == len(model.shapes):
        xs = tuple(_add_feature_axis(a, shape, model.name) for a, shape in zip(xs, model.shapes, strict=True))
    ys = () if y is None else tuple(_as_array(a, dtype, f"{model.name}: y") for a in _as_sequence(y))
    sizes = {len(a) for a in (*xs, *ys)}
    if len(sizes) > 1:
        shapes = ", ".join(str(a.shape) for a in (*xs, *ys))
        raise ShapeError(f"{model.name}: inputs and targets must have equally many examples, got shapes {shapes}.")
    model.check_inputs(*xs)
    return xs, ys


def as_pair(given: object, what: str) -> tuple[Any, Any]:
    """Return inputs and targets of a pair, or of TensorFlow.js's dict ``{"xs": …, "ys": …}``."""
    if isinstance(given, dict) and given.keys() == {"xs", "ys"}:
        return given["xs"], given["ys"]
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise DataError(f"{what}: expected pairs of inputs and targets, got {type(given).__name__}.")
    return given[0], given[1]


def split_examples(examples: Examples, share: float, name: str) -> tuple[Examples, Examples]:
    """Return the first examples, to train on, and the last ``share`` of them, to validate with."""
    if not 0 <= as_number("fit", "validation_split", share) < 1:
        raise ArgumentError(f"{name}.fit: validation_split must be a share between 0 and 1, got {share!r}.")
    n = len(examples[0][0])
    at = int(round(n * (1 - share), 6))  # 0.7 of 90 is 62.99999999999999
    if at in (0, n):
        raise ArgumentError(f"{name}.fit: validation_split={share} of {n} examples leaves none on one side.")
    xs, ys = examples
    first = tuple(a[:at] for a in xs), tuple(a[:at] for a in ys)
    return first, (tuple(a[at:] for a in xs), tuple(a[at:] for a in ys))


def _as_sequence(given: DataLike) -> Sequence[Any]:
    """Return the arrays of a tuple, or of a list of arrays; anything else is one array."""
    if isinstance(given, tuple) or (isinstance(given, list) and given and isinstance(given[0], np.ndarray | Tensor)):
        return given
    return [given]


def _as_array(x: TensorLike, dtype: np.dtype[Any], what: str) -> Array:
    array = np.asarray(as_array(x, what=what))
    if not array.ndim:
        raise ShapeError(f"{what}: expected an array of examples, got one number.")
    if array.dtype.kind not in "fiubc":
        raise DataError(f"{what}: expected numbers, got dtype {array.dtype}.")
    return array.astype(dtype, copy=False) if array.dtype.kind == "f" else array


def _add_feature_axis(x: Array, shape: Shape, name: str) -> Array:
    """Return numbers as examples of one feature, as TensorFlow.js does; refuse a single example without a batch."""
    if x.ndim > 1 or not shape:
        return x
    if shape == (1,):
        return x.reshape(-1, 1)
    hint = " For one example: x[None]." if x.shape == shape else ""
    raise ShapeError(f"{name}: expected examples of shape {shape}, the batch in front, got shape {x.shape}.{hint}")
