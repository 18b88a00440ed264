"""Weights of examples: sample weights, class weights and masks as one array, and the sums and means that use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.typing import Array, Value

REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "mean_with_sample_weight", "none", None)


def combine_weights(name: str, values: Value, weight: Value | None, mask: Value | None) -> Any:
    """Return the weight of each of the values: the sample weight times the mask; None if all weigh the same.

    Both have the leading axes of ``values``: ``(batch,)`` for one weight of each example, ``(batch, time)`` for one of
    each step; a further last axis of length 1 is ignored.

    >>> combine_weights("loss", np.ones((2, 3)), np.array([1.0, 2.0]), np.array([[True, True, False]] * 2))
    array([[1., 1., 0.],
           [2., 2., 0.]])
    """
    parts = [_match_leading_axes(name, values, w) for w in (weight, mask) if w is not None]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0] * parts[1]


def reduce_values(
    name: str, values: Value, weight: Value | None = None, mask: Value | None = None, reduction: str | None = "mean"
) -> Any:
    """Return a loss from its values: their weighted sum over their number, or as ``reduction`` says.

    A masked value does not count: it is not in the number that a mean is divided by.  A sample weight is not either,
    as in Keras and TensorFlow.js: weights of 2 double the loss.

    >>> reduce_values("loss", np.array([1.0, 3.0, 8.0]), np.array([2.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0]))
    np.float64(2.5)
    """
    factors = mask if weight is None else weight
    if not values.shape and factors is not None and factors.shape:  # the loss of a whole batch, as that of each example
        values = np.broadcast_to(values, factors.shape)
    weights = combine_weights(name, values, weight, mask)
    weighted = values if weights is None else values * weights
    if reduction in ("none", None) or not values.shape:
        return weighted
    if reduction == "sum":
        return np.sum(weighted)
    if reduction == "mean_with_sample_weight" and weights is not None:
        return _divide(np.sum(weighted), np.sum(np.broadcast_to(weights, values.shape)))
    if mask is None:
        return np.mean(weighted)
    valid = np.broadcast_to(_match_leading_axes(name, values, mask), values.shape)
    return _divide(np.sum(weighted), np.sum(valid))


def sum_weighted(name: str, values: Value, weight: Value | None = None) -> tuple[Any, Any]:
    """Return the weighted sum of values and the sum of the weights: their quotient is the mean over the examples.

    >>> sum_weighted("metric", np.array([1.0, 3.0]), np.array([2.0, 1.0]))
    (np.float64(5.0), np.float64(3.0))
    """
    if weight is None:
        return np.sum(values), float(values.size)
    weights = np.broadcast_to(combine_weights(name, values, weight, None), values.shape)
    return np.sum(values * weights), np.sum(weights)


def compute_class_weights(name: str, y: Array, class_weight: Mapping[int, float]) -> Array:
    """Return the weight of each example by its class: a label that is a number, or one-hot along the last axis.

    A class that is not named has weight 1.

    >>> compute_class_weights("fit", np.array([0, 1, 1]), {1: 3.0})
    array([1., 3., 3.], dtype=float32)
    """
    if not isinstance(class_weight, Mapping):
        raise ArgumentError(f"{name}: class_weight must be a dict from class to weight, got {class_weight!r}.")
    labels = np.asarray(y)
    if labels.ndim > 1:
        labels = labels[..., 0] if labels.shape[-1] == 1 else np.argmax(labels, axis=-1)
    if labels.ndim != 1:
        raise DataError(
            f"{name}: class_weight is for one label of each example, and the targets have shape {np.shape(y)}. "
            "Give sample_weight for weights of steps."
        )
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        wrong = labels[labels != np.round(labels)][0]
        raise DataError(f"{name}: class_weight is for targets that are classes, whole numbers or one-hot, got {wrong}.")
    classes = labels.astype(np.int64)
    weights = np.ones(len(classes), np.float32)
    for number, weight in class_weight.items():
        weights[classes == int(number)] = weight
    return weights


def _match_leading_axes(name: str, values: Value, weight: Value) -> Any:
    """Return a weight or mask in the dtype of the values, with axes of length 1 for those that it does not have."""
    weight = weight if weight.dtype == values.dtype else weight.astype(values.dtype)
    shape = weight.shape
    if len(shape) > len(values.shape) and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) > len(values.shape) or any(
        n not in (1, m) for n, m in zip(shape, values.shape[: len(shape)], strict=True)
    ):
        raise ShapeError(
            f"{name}: weights or a mask of shape {weight.shape} do not fit its values of shape {values.shape}: "
            "one for each example, or one for each step of each."
        )
    shape = shape + (1,) * (len(values.shape) - len(shape))
    return weight if shape == weight.shape else np.reshape(weight, shape)


def _divide(total: Value, count: Value) -> Any:
    """Return a mean; that of nothing is 0, as its sum is."""
    return total / np.where(count == 0, 1.0, count)


def multiply_weights(weight: Value | None, mask: Value | None) -> Any:
    """Return the product of a sample weight and a mask, which may have one more axis; None if there is neither.

    >>> multiply_weights(np.array([1.0, 2.0]), np.array([[True, False], [True, True]]))
    array([[1., 0.],
           [2., 2.]])
    """
    if weight is None or mask is None:
        return mask if weight is None else weight
    rank = max(len(weight.shape), len(mask.shape))
    weight, mask = (np.reshape(w, w.shape + (1,) * (rank - len(w.shape))) for w in (weight, mask))
    return weight * mask
