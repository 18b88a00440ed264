"""Losses and metrics of predictions, one number for each example: ``pb.metrics``.

With TensorFlow.js's names and formulas.  ``y_true`` is cast to the dtype of ``y_pred``; shapes ``(batch,)`` and
``(batch, 1)`` match, nothing else is broadcast.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.composition import check_numbers, pick
from pullback.core.convert import get_default_dtype
from pullback.core.tensor import all_values, strip
from pullback.errors import DataError, ShapeError
from pullback.ops import activations, losses, sorting
from pullback.typing import TensorLike, Value

__all__ = [
    "binary_accuracy", "binary_crossentropy", "categorical_accuracy", "categorical_crossentropy", "categorical_hinge",
    "cosine_proximity", "hinge", "huber_loss", "kullback_leibler_divergence", "logcosh", "mae", "mape",
    "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error",
    "mse", "poisson", "precision", "r2_score", "recall", "sigmoid_cross_entropy", "softmax_cross_entropy",
    "sparse_categorical_accuracy", "sparse_categorical_crossentropy", "sparse_softmax_cross_entropy",
    "sparse_top_k_categorical_accuracy", "squared_hinge", "top_k_categorical_accuracy",
]  # fmt: skip

EPSILON = 1e-7  # Keras's: keeps logarithms finite


# ---- arguments


def _match_predictions(name: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Any, Any]:
    """Return labels and predictions in the shape and dtype of the predictions."""
    y, p = check_numbers(name, "y_true", y_true), check_numbers(name, "y_pred", y_pred)
    if p.dtype.kind != "f":
        p = p.astype(get_default_dtype())
    if y.dtype != p.dtype:
        y = y.astype(p.dtype)
    return match_shape(name, y, p), p


def match_shape(name: str, y: Value, p: Value) -> Any:
    """Return ``y`` in the shape of the predictions, from which it may differ by a last axis of length 1."""
    if y.shape == p.shape:
        return y
    if y.shape != (*p.shape, 1) and p.shape != (*y.shape, 1):
        cure = " For labels that are numbers of classes there are the sparse_ ones." if _is_sparse(y, p) else ""
        raise ShapeError(
            f"{name}: y_true of shape {y.shape} and y_pred of shape {p.shape} must have the same shape.{cure}"
        )
    return np.reshape(y, p.shape)


def _is_sparse(y: Value, p: Value) -> bool:
    """Return whether labels have the shape of class numbers: the predictions' shape, its last axis gone or 1."""
    return len(p.shape) > 0 and y.shape in (p.shape[:-1], (*p.shape[:-1], 1)) and y.shape != p.shape


def _match_classes(name: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Any, Any]:
    """Return class numbers as integers, one for each example, and the predictions."""
    y, p = strip(check_numbers(name, "y_true", y_true)), check_numbers(name, "y_pred", y_pred)
    if not p.shape or y.shape not in (p.shape[:-1], (*p.shape[:-1], 1)):
        cure = " For one-hot labels there are those without sparse_." if y.shape == p.shape else ""
        wanted = f"labels of shape {p.shape[:-1]} or {(*p.shape[:-1], 1)}" if p.shape else "predictions by class"
        raise ShapeError(
            f"{name}: y_true of shape {y.shape} and y_pred of shape {p.shape}: expected {wanted}, each label the "
            f"number of a class.{cure}"
        )
    check_range(name, all_values(y), p.shape[-1])
    if y.shape != p.shape[:-1]:
        y = np.reshape(y, p.shape[:-1])
    return y if y.dtype.kind == "i" else y.astype(np.int64), p


def check_range(name: str, labels: Value, classes: int) -> None:
    """Raise an error for labels that are not class numbers."""
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iubf":
        raise DataError(f"{name}: labels must be numbers of classes, 0 to {classes - 1}, got dtype {labels.dtype}.")
    if not labels.size:
        return
    smallest, largest = labels.min(), labels.max()
    whole = labels.dtype.kind != "f" or bool(np.all(labels == np.floor(labels)))
    if whole and smallest >= 0 and largest < classes:
        return
    what = "be" if whole else "be whole numbers,"
    raise DataError(
        f"{name}: labels must {what} 0 to {classes - 1}, as there are {classes} classes; the smallest is "
        f"{smallest.item()}, the largest {largest.item()}."
    )


def _mean_last_axis(x: Value) -> Any:
    """Return the mean along the last axis, if there is one."""
    if not x.shape:
        return x
    return np.reshape(x, x.shape[:-1]) if x.shape[-1] == 1 else np.mean(x, axis=-1)


# ---- classes: in compiled programs a comparison with all classes fuses, an indexed load does not


def _is_compiled(x: Value) -> bool:
    """Return whether ``x`` belongs to a program that is being traced, and so has no values yet."""
    return bool(np.size(all_values(x)) < x.size)


def _select_class(x: Value, labels: Value) -> Any:
    """Return the entry of each label's class."""
    n = x.shape[-1]
    if _is_compiled(x) or _is_compiled(labels):
        return np.sum(np.where(np.expand_dims(labels, -1) == np.arange(n), x, 0.0), axis=-1)
    return pick(np.reshape(x, -1), labels + n * np.arange(labels.size).reshape(labels.shape))


# ---- numbers


def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``(y_pred - y_true) ** 2``.

    >>> pb.metrics.mean_squared_error(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    array([0.5, 2. ])
    """
    y, p = _match_predictions("mean_squared_error", y_true, y_pred)
    return _mean_last_axis(np.square(p - y))


def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``abs(y_pred - y_true)``.

    >>> pb.metrics.mean_absolute_error(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    array([0.5, 1. ])
    """
    y, p = _match_predictions("mean_absolute_error", y_true, y_pred)
    return _mean_last_axis(np.abs(p - y))


def mean_absolute_percentage_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``abs(y_true - y_pred) / abs(y_true)``, in percent.

    >>> pb.metrics.mean_absolute_percentage_error(np.array([[10.0, 20.0]]), np.array([[11.0, 24.0]]))
    array([15.])
    """
    y, p = _match_predictions("mean_absolute_percentage_error", y_true, y_pred)
    return _mean_last_axis(np.abs((y - p) / np.maximum(np.abs(y), EPSILON))) * 100.0


def mean_squared_logarithmic_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``(log(1 + y_pred) - log(1 + y_true)) ** 2``; what is below 0 counts as 0.

    >>> pb.metrics.mean_squared_logarithmic_error(np.array([[0.0]]), np.array([[np.e - 1]])).round(6)
    array([1.])
    """
    y, p = _match_predictions("mean_squared_logarithmic_error", y_true, y_pred)
    return _mean_last_axis(np.square(np.log1p(np.maximum(p, EPSILON)) - np.log1p(np.maximum(y, EPSILON))))


def huber_loss(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean Huber loss: half the square of differences up to 1, linear beyond.

    >>> pb.metrics.huber_loss(np.array([[0.0, 0.0]]), np.array([[1.0, 3.0]]))
    array([1.5])
    """
    y, p = _match_predictions("huber_loss", y_true, y_pred)
    return _mean_last_axis(losses.huber_loss(y, p, reduction=losses.Reduction.NONE))


def logcosh(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``log(cosh(y_pred - y_true))``.

    >>> pb.metrics.logcosh(np.array([[0.0]]), np.array([[1.0]]))
    array([0.43378083])
    """
    y, p = _match_predictions("logcosh", y_true, y_pred)
    x = p - y
    return _mean_last_axis(x + activations.softplus(x * -2.0) - math.log(2.0))


def poisson(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``y_pred - y_true * log(y_pred)``: the Poisson log-likelihood of counts, up to a constant.

    >>> pb.metrics.poisson(np.array([[1.0]]), np.array([[1.0]])).round(6)
    array([1.])
    """
    y, p = _match_predictions("poisson", y_true, y_pred)
    return _mean_last_axis(p - y * np.log(p + EPSILON))


def cosine_proximity(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the negative cosine of the angle between both.

    >>> pb.metrics.cosine_proximity(np.array([[3.0, 4.0]]), np.array([[6.0, 8.0]]))
    array([-1.])
    """
    y, p = _match_predictions("cosine_proximity", y_true, y_pred)
    return -np.sum(_normalize(y) * _normalize(p), axis=-1)


def _normalize(x: Value) -> Any:
    return x / np.sqrt(np.maximum(np.sum(np.square(x), axis=-1, keepdims=True), EPSILON))


def r2_score(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the coefficient of determination: the share of the variance of ``y_true`` that is predicted.

    >>> pb.metrics.r2_score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    np.float64(0.5)
    """
    y, p = _match_predictions("r2_score", y_true, y_pred)
    left = np.sum(np.square(y - p))
    return 1.0 - left / np.sum(np.square(y - np.mean(y)))


# ---- margins


def hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``max(1 - y_true * y_pred, 0)``; labels are -1 and 1, or 0 and 1.

    >>> pb.metrics.hinge(np.array([[-1.0, 1.0]]), np.array([[0.5, 2.0]]))
    array([0.75])
    """
    return _mean_last_axis(_compute_hinge("hinge", y_true, y_pred))


def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``max(1 - y_true * y_pred, 0) ** 2``; labels are -1 and 1, or 0 and 1.

    >>> pb.metrics.squared_hinge(np.array([[-1.0, 1.0]]), np.array([[0.5, 2.0]]))
    array([1.125])
    """
    return _mean_last_axis(np.square(_compute_hinge("squared_hinge", y_true, y_pred)))


def _compute_hinge(name: str, y_true: TensorLike, y_pred: TensorLike) -> Any:
    y, p = _match_predictions(name, y_true, y_pred)
    y = np.where(np.all((y == 0) | (y == 1)), y * 2.0 - 1.0, y)  # Keras takes labels 0 and 1 as well
    return np.maximum(1.0 - y * p, 0.0)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``max(1 + (highest wrong class) - (right class), 0)``; labels are one-hot.

    >>> pb.metrics.categorical_hinge(np.array([[0.0, 1.0, 0.0]]), np.array([[0.3, 0.9, 0.1]]))
    array([0.4])
    """
    y, p = _match_predictions("categorical_hinge", y_true, y_pred)
    return np.maximum(np.max((1.0 - y) * p, axis=-1) - np.sum(y * p, axis=-1) + 1.0, 0.0)


# ---- probabilities


def binary_crossentropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean cross entropy of probabilities, each element being an independent yes or no.

    >>> pb.metrics.binary_crossentropy(np.array([[1.0], [0.0]]), np.array([[0.5], [0.0]])).round(6)
    array([0.693147, 0.      ])
    """
    y, p = _match_predictions("binary_crossentropy", y_true, y_pred)
    p = np.clip(p, EPSILON, 1.0 - EPSILON)
    return -_mean_last_axis(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))


def categorical_crossentropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the cross entropy of the probabilities of classes, labels being one-hot.

    >>> pb.metrics.categorical_crossentropy(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    y, p = _match_predictions("categorical_crossentropy", y_true, y_pred)
    p = p / np.sum(p, axis=-1, keepdims=True)
    return -np.sum(y * np.log(np.clip(p, EPSILON, 1.0 - EPSILON)), axis=-1)


def sparse_categorical_crossentropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the cross entropy of the probabilities of classes, labels being numbers of classes.

    >>> pb.metrics.sparse_categorical_crossentropy(np.array([1]), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    y, p = _match_classes("sparse_categorical_crossentropy", y_true, y_pred)
    return -np.log(np.clip(_select_class(p, y) / np.sum(p, axis=-1), EPSILON, 1.0 - EPSILON))


def kullback_leibler_divergence(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the Kullback-Leibler divergence of ``y_pred`` from ``y_true``, ``sum(y_true * log(y_true / y_pred))``.

    >>> pb.metrics.kullback_leibler_divergence(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    y, p = _match_predictions("kullback_leibler_divergence", y_true, y_pred)
    return np.sum(y * np.log(np.clip(y, EPSILON, 1.0) / np.clip(p, EPSILON, 1.0)), axis=-1)


# ---- logits


def sigmoid_cross_entropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``binary_crossentropy`` of ``sigmoid(y_pred)``, without overflow.

    >>> pb.metrics.sigmoid_cross_entropy(np.array([[1.0]]), np.array([[-1000.0]]))
    array([1000.])
    """
    y, p = _match_predictions("sigmoid_cross_entropy", y_true, y_pred)
    return _mean_last_axis(losses.sigmoid_cross_entropy_with_logits(y, p))


def softmax_cross_entropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``categorical_crossentropy`` of ``softmax(y_pred)``, without overflow.

    >>> pb.metrics.softmax_cross_entropy(np.array([[0.0, 1.0]]), np.array([[1000.0, 1000.0]]))
    array([0.69314718])
    """
    y, p = _match_predictions("softmax_cross_entropy", y_true, y_pred)
    return losses.softmax_cross_entropy_with_logits(y, p)


def sparse_softmax_cross_entropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``sparse_categorical_crossentropy`` of ``softmax(y_pred)``, without overflow.

    >>> pb.metrics.sparse_softmax_cross_entropy(np.array([1]), np.array([[1000.0, 1000.0]]))
    array([0.69314718])
    """
    y, p = _match_classes("sparse_softmax_cross_entropy", y_true, y_pred)
    return -_select_class(activations.log_softmax(p), y)


# ---- accuracy


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Any:
    """Return the share of elements that are on the right side of the threshold; labels are 0 and 1.

    >>> pb.metrics.binary_accuracy(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.9, 0.6], [0.7, 0.8]]))
    array([0.5, 1. ])
    """
    y, p = _match_predictions("binary_accuracy", y_true, y_pred)
    return _mean_last_axis((y == (p > threshold).astype(p.dtype)).astype(p.dtype))


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return 1 where the highest class is the right one, else 0; labels are one-hot.

    >>> pb.metrics.categorical_accuracy(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[0.3, 0.7], [0.6, 0.4]]))
    array([1., 0.])
    """
    y, p = _match_predictions("categorical_accuracy", y_true, y_pred)
    return (np.argmax(y, axis=-1) == np.argmax(p, axis=-1)).astype(p.dtype)


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return 1 where the highest class is the right one, else 0; labels are class numbers.

    >>> pb.metrics.sparse_categorical_accuracy(np.array([1, 1]), np.array([[0.3, 0.7], [0.6, 0.4]]))
    array([1., 0.])
    """
    y, p = _match_classes("sparse_categorical_accuracy", y_true, y_pred)
    return (y == np.argmax(p, axis=-1)).astype(p.dtype)


def top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Any:
    """Return 1 where the right class is among the ``k`` highest, else 0; labels are one-hot.

    >>> pb.metrics.top_k_categorical_accuracy(np.array([[0.0, 0.0, 1.0]]), np.array([[0.1, 0.6, 0.3]]), k=2)
    array([1.])
    """
    y, p = _match_predictions("top_k_categorical_accuracy", y_true, y_pred)
    return _is_in_top_k(np.argmax(y, axis=-1), p, k)


def sparse_top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Any:
    """Return 1 where the right class is among the ``k`` highest, else 0; labels are class numbers.

    >>> pb.metrics.sparse_top_k_categorical_accuracy(np.array([2]), np.array([[0.1, 0.6, 0.3]]), k=2)
    array([1.])
    """
    y, p = _match_classes("sparse_top_k_categorical_accuracy", y_true, y_pred)
    return _is_in_top_k(y, p, k)


def _is_in_top_k(labels: Value, p: Value, k: int) -> Any:
    return sorting.in_top_k(p, labels, min(k, p.shape[-1])).astype(p.dtype)


def precision(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Any:
    """True positives over predicted positives; one number for all examples, 0 if there are no predicted positives.

    ``fit`` and ``evaluate`` show its mean over batches, which differs from the precision over all examples.

    >>> pb.metrics.precision(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.9, 0.8, 0.7, 0.1])).round(3)
    np.float64(0.667)
    """
    return _compute_share("precision", y_true, y_pred, threshold, of_predicted=True)


def recall(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Any:
    """True positives over actual positives; one number for all examples, 0 if there are no actual positives.

    ``fit`` and ``evaluate`` show its mean over batches, which differs from the recall over all examples.

    >>> pb.metrics.recall(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.9, 0.8, 0.7, 0.1])).round(3)
    np.float64(0.667)
    """
    return _compute_share("recall", y_true, y_pred, threshold, of_predicted=False)


def _compute_share(name: str, y_true: TensorLike, y_pred: TensorLike, threshold: float, of_predicted: bool) -> Any:
    y, p = _match_predictions(name, y_true, y_pred)
    found = (p > threshold).astype(p.dtype)
    true = (y == 1).astype(p.dtype)
    return np.sum(true * found) / np.maximum(np.sum(found if of_predicted else true), 1.0)


mse, mae, mape = mean_squared_error, mean_absolute_error, mean_absolute_percentage_error
