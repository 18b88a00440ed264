"""Losses and metrics of predictions as functions, one number for each example.

With TensorFlow.js's names and formulas.  ``y_true`` is cast to the dtype of ``y_pred``; shapes ``(batch,)`` and
``(batch, 1)`` match, nothing else is broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.composition import check_numbers, pick
from pullback.core.convert import get_default_dtype
from pullback.core.tensor import all_values, strip
from pullback.errors import DataError, ShapeError
from pullback.numerics.adjoints import as_axes
from pullback.ops import activations, losses, sorting
from pullback.ops.reductions import log_sum_exp
from pullback.train.loop.metrics.ctc import ctc
from pullback.typing import TensorLike, Value

__all__ = [
    "accuracy", "binary_accuracy", "binary_crossentropy", "binary_focal_crossentropy", "categorical_accuracy",
    "categorical_crossentropy", "categorical_focal_crossentropy", "categorical_generalized_cross_entropy",
    "categorical_hinge", "circle", "concordance_correlation", "cosine_proximity", "cosine_similarity", "ctc", "dice",
    "hinge", "huber", "huber_loss", "kl_divergence", "kullback_leibler_divergence", "log_cosh", "logcosh", "mae",
    "mape", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error",
    "mean_squared_logarithmic_error", "mse", "msle", "pearson_correlation", "poisson", "precision", "r2_score",
    "recall", "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy", "sparse_softmax_cross_entropy", "sparse_top_k_categorical_accuracy",
    "squared_hinge", "top_k_categorical_accuracy", "tversky",
]  # fmt: skip

EPSILON = 1e-7  # Keras's: keeps logarithms finite


# ---- arguments


def match_predictions(name: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Any, Any]:
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


def match_classes(name: str, y_true: TensorLike, y_pred: TensorLike) -> tuple[Any, Any]:
    """Return class numbers as integers, one for each example, and the predictions."""
    y, p = strip(check_numbers(name, "y_true", y_true)), check_numbers(name, "y_pred", y_pred)
    if not p.shape or y.shape not in (p.shape[:-1], (*p.shape[:-1], 1)):
        cure = " For one-hot labels there are those without sparse_." if y.shape == p.shape else ""
        expected = f"labels of shape {p.shape[:-1]} or {(*p.shape[:-1], 1)}" if p.shape else "predictions by class"
        raise ShapeError(
            f"{name}: y_true of shape {y.shape} and y_pred of shape {p.shape}: expected {expected}, each label the "
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
    is_whole = labels.dtype.kind != "f" or bool(np.all(labels == np.floor(labels)))
    if is_whole and smallest >= 0 and largest < classes:
        return
    subject = "be" if is_whole else "be whole numbers,"
    raise DataError(
        f"{name}: labels must {subject} 0 to {classes - 1}, as there are {classes} classes; the smallest is "
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
    y, p = match_predictions("mean_squared_error", y_true, y_pred)
    return _mean_last_axis(np.square(p - y))


def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``abs(y_pred - y_true)``.

    >>> pb.metrics.mean_absolute_error(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    array([0.5, 1. ])
    """
    y, p = match_predictions("mean_absolute_error", y_true, y_pred)
    return _mean_last_axis(np.abs(p - y))


def mean_absolute_percentage_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``abs(y_true - y_pred) / abs(y_true)``, in percent.

    >>> pb.metrics.mean_absolute_percentage_error(np.array([[10.0, 20.0]]), np.array([[11.0, 24.0]]))
    array([15.])
    """
    y, p = match_predictions("mean_absolute_percentage_error", y_true, y_pred)
    return _mean_last_axis(np.abs((y - p) / np.maximum(np.abs(y), EPSILON))) * 100.0


def mean_squared_logarithmic_error(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``(log(1 + y_pred) - log(1 + y_true)) ** 2``; what is below 0 counts as 0.

    >>> pb.metrics.mean_squared_logarithmic_error(np.array([[0.0]]), np.array([[np.e - 1]])).round(6)
    array([1.])
    """
    y, p = match_predictions("mean_squared_logarithmic_error", y_true, y_pred)
    return _mean_last_axis(np.square(np.log1p(np.maximum(p, EPSILON)) - np.log1p(np.maximum(y, EPSILON))))


def huber_loss(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Any:
    """Return the mean Huber loss: half the square of differences up to ``delta``, linear beyond.

    delta: where squares end and absolute values begin.

    >>> pb.metrics.huber_loss(np.array([[0.0, 0.0]]), np.array([[1.0, 3.0]]))
    array([1.5])
    """
    y, p = match_predictions("huber_loss", y_true, y_pred)
    return _mean_last_axis(losses.huber_loss(y, p, delta=delta, reduction=losses.Reduction.NONE))


def logcosh(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``log(cosh(y_pred - y_true))``.

    >>> pb.metrics.logcosh(np.array([[0.0]]), np.array([[1.0]]))
    array([0.43378083])
    """
    y, p = match_predictions("logcosh", y_true, y_pred)
    x = p - y
    return _mean_last_axis(x + activations.softplus(x * -2.0) - math.log(2.0))


def poisson(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the mean of ``y_pred - y_true * log(y_pred)``: the Poisson log-likelihood of counts, up to a constant.

    >>> pb.metrics.poisson(np.array([[1.0]]), np.array([[1.0]])).round(6)
    array([1.])
    """
    y, p = match_predictions("poisson", y_true, y_pred)
    return _mean_last_axis(p - y * np.log(p + EPSILON))


def cosine_proximity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Any:
    """Return the negative cosine of the angle between both: a loss.

    >>> pb.metrics.cosine_proximity(np.array([[3.0, 4.0]]), np.array([[6.0, 8.0]]))
    array([-1.])
    """
    return -cosine_similarity(y_true, y_pred, axis)


def cosine_similarity(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Any:
    """Return the cosine of the angle between both: a metric; the loss of this name is ``cosine_proximity``.

    >>> pb.metrics.cosine_similarity(np.array([[3.0, 4.0]]), np.array([[6.0, 8.0]]))
    array([1.])
    """
    y, p = match_predictions("cosine_similarity", y_true, y_pred)
    return np.sum(_normalize(y, axis) * _normalize(p, axis), axis=axis)


def _normalize(x: Value, axis: int) -> Any:
    return x / np.sqrt(np.maximum(np.sum(np.square(x), axis=axis, keepdims=True), EPSILON))


def pearson_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Any:
    """Return the correlation coefficient of labels and predictions along an axis.

    >>> pb.metrics.pearson_correlation(np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 4.0, 6.0]])).round(6)
    array([1.])
    """
    y, p = match_predictions("pearson_correlation", y_true, y_pred)
    y, p = y - np.mean(y, axis=axis, keepdims=True), p - np.mean(p, axis=axis, keepdims=True)
    scale = np.sqrt(np.mean(y * y, axis=axis) * np.mean(p * p, axis=axis))
    return np.mean(y * p, axis=axis) / scale


def concordance_correlation(y_true: TensorLike, y_pred: TensorLike, axis: int = -1) -> Any:
    """Return the concordance of labels and predictions along an axis: 1 where both are equal.

    >>> pb.metrics.concordance_correlation(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.0, 3.0]])).round(6)
    array([1.])
    """
    y, p = match_predictions("concordance_correlation", y_true, y_pred)
    distance = np.square(np.mean(y, axis=axis) - np.mean(p, axis=axis))
    y, p = y - np.mean(y, axis=axis, keepdims=True), p - np.mean(p, axis=axis, keepdims=True)
    spread = np.mean(y * y, axis=axis) + np.mean(p * p, axis=axis)
    return 2.0 * np.mean(y * p, axis=axis) / (spread + distance + EPSILON)


def r2_score(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the coefficient of determination: the fraction of the variance of ``y_true`` that is predicted.

    >>> pb.metrics.r2_score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    np.float64(0.5)
    """
    y, p = match_predictions("r2_score", y_true, y_pred)
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
    y, p = match_predictions(name, y_true, y_pred)
    y = np.where(np.all((y == 0) | (y == 1)), y * 2.0 - 1.0, y)  # Keras takes labels 0 and 1 as well
    return np.maximum(1.0 - y * p, 0.0)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``max(1 + (highest wrong class) - (right class), 0)``; labels are one-hot.

    >>> pb.metrics.categorical_hinge(np.array([[0.0, 1.0, 0.0]]), np.array([[0.3, 0.9, 0.1]]))
    array([0.4])
    """
    y, p = match_predictions("categorical_hinge", y_true, y_pred)
    return np.maximum(np.max((1.0 - y) * p, axis=-1) - np.sum(y * p, axis=-1) + 1.0, 0.0)


# ---- probabilities


def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return the mean cross entropy of probabilities, each element being an independent yes or no.

    ``from_logits`` takes predictions before the sigmoid; ``label_smoothing`` moves labels towards one half.

    label_smoothing: how far labels are moved towards one half.
    axis: the axis over which the mean is taken.

    >>> pb.metrics.binary_crossentropy(np.array([[1.0], [0.0]]), np.array([[0.5], [0.0]])).round(6)
    array([0.693147, 0.      ])
    """
    y, p = match_predictions("binary_crossentropy", y_true, y_pred)
    return _mean_axis(_compute_binary_entropy(_smooth_binary(y, label_smoothing), p, from_logits), axis)


def _smooth_binary(y: Value, smoothing: float) -> Any:
    return y * (1.0 - smoothing) + 0.5 * smoothing if smoothing else y


def _compute_binary_entropy(y: Value, p: Value, from_logits: bool) -> Any:
    if from_logits:
        return losses.sigmoid_cross_entropy_with_logits(y, p)
    p = np.clip(p, EPSILON, 1.0 - EPSILON)
    return -(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))


def _mean_axis(x: Value, axis: int) -> Any:
    return _mean_last_axis(x) if axis in (-1, len(x.shape) - 1) else np.mean(x, axis=axis)


def binary_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return ``binary_crossentropy`` times ``(1 - p) ** gamma``, p being the probability of the right answer.

    ``apply_class_balancing`` weighs positives with ``alpha``, negatives with ``1 - alpha``.

    apply_class_balancing: whether ``alpha`` weighs the classes.
    alpha: the weight of the class 1; the other has ``1 - alpha``.
    gamma: the exponent that makes easy examples count less.
    label_smoothing: how far labels are moved towards one half.
    axis: the axis over which the mean is taken.

    >>> pb.metrics.binary_focal_crossentropy(np.array([[1.0]]), np.array([[0.5]])).round(6)
    array([0.173287])
    """
    y, p = match_predictions("binary_focal_crossentropy", y_true, y_pred)
    y, p = _smooth_binary(y, label_smoothing), activations.sigmoid(p) if from_logits else p
    right = y * p + (1.0 - y) * (1.0 - p)
    cost = (1.0 - right) ** gamma * _compute_binary_entropy(y, p, False)
    return _mean_axis(cost * (y * alpha + (1.0 - y) * (1.0 - alpha)) if apply_class_balancing else cost, axis)


def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return the cross entropy of the probabilities of classes, labels being one-hot.

    ``from_logits`` takes predictions before the softmax; ``label_smoothing`` gives a share to all classes.

    label_smoothing: the fraction of each label that is spread evenly over all classes.
    axis: the axis of the classes.

    >>> pb.metrics.categorical_crossentropy(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    y, p = match_predictions("categorical_crossentropy", y_true, y_pred)
    y = _smooth_classes(y, label_smoothing, axis)
    if from_logits:
        return -np.sum(y * activations.log_softmax(p, axis=axis), axis=axis)
    return -np.sum(y * np.log(_normalize_classes(p, axis)), axis=axis)


def _smooth_classes(y: Value, smoothing: float, axis: int) -> Any:
    return y * (1.0 - smoothing) + smoothing / y.shape[axis] if smoothing else y


def _normalize_classes(p: Value, axis: int) -> Any:
    """Return probabilities that sum to 1, far enough from 0 and 1 for a logarithm."""
    return np.clip(p / np.sum(p, axis=axis, keepdims=True), EPSILON, 1.0 - EPSILON)


def categorical_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Return ``categorical_crossentropy`` with each class times ``alpha * (1 - p) ** gamma``.

    alpha: the weight of the classes.
    gamma: the exponent that makes easy examples count less.
    label_smoothing: the fraction of each label that is spread evenly over all classes.
    axis: the axis of the classes.

    >>> pb.metrics.categorical_focal_crossentropy(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])).round(6)
    array([0.043322])
    """
    y, p = match_predictions("categorical_focal_crossentropy", y_true, y_pred)
    p = _normalize_classes(activations.softmax(p, axis=axis) if from_logits else p, axis)
    return -np.sum(alpha * (1.0 - p) ** gamma * _smooth_classes(y, label_smoothing, axis) * np.log(p), axis=axis)


def sparse_categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Any:
    """Return the cross entropy of the probabilities of classes, labels being numbers of classes.

    Labels of ``ignore_class`` have a loss of 0, and as a loss they do not count.

    axis: the axis of the classes.

    >>> pb.metrics.sparse_categorical_crossentropy(np.array([1]), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    if axis != -1:
        given_p: Any = check_numbers("sparse_categorical_crossentropy", "y_pred", y_pred)
        y_pred = np.moveaxis(given_p, axis, -1)
    if ignore_class is not None:
        labels = strip(check_numbers("sparse_categorical_crossentropy", "y_true", y_true))
        counts = labels != ignore_class
        y_true = np.where(counts, labels, 0)
    y, p = match_classes("sparse_categorical_crossentropy", y_true, y_pred)
    if from_logits:
        losses = -_select_class(activations.log_softmax(p), y)
    else:
        losses = -np.log(np.clip(_select_class(p, y) / np.sum(p, axis=-1), EPSILON, 1.0 - EPSILON))
    return losses if ignore_class is None else np.where(np.reshape(counts, losses.shape), losses, 0.0)


def categorical_generalized_cross_entropy(y_true: TensorLike, y_pred: TensorLike, q: float = 0.5) -> Any:
    """Return ``(1 - p ** q) / q``, p being the probability of the right class; labels are numbers of classes.

    It is robust to wrong labels.

    q: 0 is the cross-entropy, 1 the absolute difference.

    >>> pb.metrics.categorical_generalized_cross_entropy(np.array([1]), np.array([[0.75, 0.25]]))
    array([1.])
    """
    y, p = match_classes("categorical_generalized_cross_entropy", y_true, y_pred)
    return (1.0 - _select_class(p, y) ** q) / q


def kullback_leibler_divergence(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the Kullback-Leibler divergence of ``y_pred`` from ``y_true``, ``sum(y_true * log(y_true / y_pred))``.

    >>> pb.metrics.kullback_leibler_divergence(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]))
    array([0.69314718])
    """
    y, p = match_predictions("kullback_leibler_divergence", y_true, y_pred)
    return np.sum(y * np.log(np.clip(y, EPSILON, 1.0) / np.clip(p, EPSILON, 1.0)), axis=-1)


# ---- regions and pairs


def dice(y_true: TensorLike, y_pred: TensorLike, axis: int | Sequence[int] | None = None) -> Any:
    """Return 1 minus the Dice coefficient: twice the overlap over the sum of both regions, of the whole batch.

    axis: the axes over which sums are taken; all without it.

    >>> pb.metrics.dice(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])).round(6)
    np.float64(0.0)
    """
    y, p = match_predictions("dice", y_true, y_pred)
    axes = as_axes(axis)
    return 1.0 - 2.0 * np.sum(y * p, axis=axes) / (np.sum(y, axis=axes) + np.sum(p, axis=axes) + EPSILON)


def tversky(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: float = 0.5,
    beta: float = 0.5,
    axis: int | Sequence[int] | None = None,
) -> Any:
    """Return 1 minus the Tversky index: ``alpha`` weighs false negatives, ``beta`` false positives.

    alpha: the weight of false negatives.
    beta: the weight of false positives.
    axis: the axes over which sums are taken; all without it.

    >>> pb.metrics.tversky(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])).round(6)
    np.float64(0.0)
    """
    y, p = match_predictions("tversky", y_true, y_pred)
    axes = as_axes(axis)
    overlap = np.sum(y * p, axis=axes)
    missed, wrong = np.sum((1.0 - p) * y, axis=axes), np.sum(p * (1.0 - y), axis=axes)
    return 1.0 - overlap / (overlap + missed * alpha + wrong * beta + EPSILON)


def circle(
    y_true: TensorLike, y_pred: TensorLike, gamma: float = 80.0, margin: float = 0.4, remove_diagonal: bool = True
) -> Any:
    """Return the circle loss (Sun and others, 2020) of embeddings of length 1, labels being numbers of classes.

    Pairs of one class are drawn together, others apart.

    gamma: what similarities are multiplied by.
    margin: how far apart similarities must be.
    remove_diagonal: whether an example is not compared with itself.

    >>> pb.metrics.circle(np.array([0, 0, 1]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), gamma=1.0).shape
    (3,)
    """
    y, p = check_numbers("circle", "y_true", y_true), check_numbers("circle", "y_pred", y_pred)
    labels = np.reshape(y, -1)
    similarity: Any = p @ p.T
    distance = np.maximum(1.0 - similarity, 0.0)
    same = labels[:, None] == labels[None, :]
    others = ~np.eye(labels.size, dtype=bool) if remove_diagonal else True
    near = gamma * np.maximum(margin + distance, 0.0) * (distance - margin)
    far = gamma * np.maximum(1.0 + margin - distance, 0.0) * (1.0 - margin - distance)
    low = np.float32(-1e30)  # a pair that does not count
    sums = [log_sum_exp(np.where(mask, x, low), axis=1) for mask, x in ((same & others, near), (~same, far))]
    return activations.softplus(sums[0] + sums[1])


# ---- logits


def sigmoid_cross_entropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``binary_crossentropy`` of ``sigmoid(y_pred)``, without overflow.

    >>> pb.metrics.sigmoid_cross_entropy(np.array([[1.0]]), np.array([[-1000.0]]))
    array([1000.])
    """
    y, p = match_predictions("sigmoid_cross_entropy", y_true, y_pred)
    return _mean_last_axis(losses.sigmoid_cross_entropy_with_logits(y, p))


def softmax_cross_entropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``categorical_crossentropy`` of ``softmax(y_pred)``, without overflow.

    >>> pb.metrics.softmax_cross_entropy(np.array([[0.0, 1.0]]), np.array([[1000.0, 1000.0]]))
    array([0.69314718])
    """
    y, p = match_predictions("softmax_cross_entropy", y_true, y_pred)
    return losses.softmax_cross_entropy_with_logits(y, p)


def sparse_softmax_cross_entropy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return ``sparse_categorical_crossentropy`` of ``softmax(y_pred)``, without overflow.

    >>> pb.metrics.sparse_softmax_cross_entropy(np.array([1]), np.array([[1000.0, 1000.0]]))
    array([0.69314718])
    """
    y, p = match_classes("sparse_softmax_cross_entropy", y_true, y_pred)
    return -_select_class(activations.log_softmax(p), y)


# ---- accuracy


def accuracy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return the fraction of predictions that equal the labels.

    >>> pb.metrics.accuracy(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 5.0]]))
    array([1. , 0.5])
    """
    y, p = match_predictions("accuracy", y_true, y_pred)
    return _mean_last_axis((y == p).astype(p.dtype))


def binary_accuracy(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Any:
    """Return the fraction of elements that are on the correct side of the threshold; labels are 0 and 1.

    >>> pb.metrics.binary_accuracy(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.9, 0.6], [0.7, 0.8]]))
    array([0.5, 1. ])
    """
    y, p = match_predictions("binary_accuracy", y_true, y_pred)
    return _mean_last_axis((y == (p > threshold).astype(p.dtype)).astype(p.dtype))


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return 1 where the highest class is the right one, else 0; labels are one-hot.

    >>> pb.metrics.categorical_accuracy(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[0.3, 0.7], [0.6, 0.4]]))
    array([1., 0.])
    """
    y, p = match_predictions("categorical_accuracy", y_true, y_pred)
    return (np.argmax(y, axis=-1) == np.argmax(p, axis=-1)).astype(p.dtype)


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Return 1 where the highest class is the right one, else 0; labels are class numbers.

    >>> pb.metrics.sparse_categorical_accuracy(np.array([1, 1]), np.array([[0.3, 0.7], [0.6, 0.4]]))
    array([1., 0.])
    """
    y, p = match_classes("sparse_categorical_accuracy", y_true, y_pred)
    return (y == np.argmax(p, axis=-1)).astype(p.dtype)


def top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Any:
    """Return 1 where the right class is among the ``k`` highest, else 0; labels are one-hot.

    k: the number of highest predictions among which the true class must be.

    >>> pb.metrics.top_k_categorical_accuracy(np.array([[0.0, 0.0, 1.0]]), np.array([[0.1, 0.6, 0.3]]), k=2)
    array([1.])
    """
    y, p = match_predictions("top_k_categorical_accuracy", y_true, y_pred)
    return _is_in_top_k(np.argmax(y, axis=-1), p, k)


def sparse_top_k_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike, k: int = 5) -> Any:
    """Return 1 where the right class is among the ``k`` highest, else 0; labels are class numbers.

    k: the number of highest predictions among which the true class must be.

    >>> pb.metrics.sparse_top_k_categorical_accuracy(np.array([2]), np.array([[0.1, 0.6, 0.3]]), k=2)
    array([1.])
    """
    y, p = match_classes("sparse_top_k_categorical_accuracy", y_true, y_pred)
    return _is_in_top_k(y, p, k)


def _is_in_top_k(labels: Value, p: Value, k: int) -> Any:
    return sorting.in_top_k(p, labels, min(k, p.shape[-1])).astype(p.dtype)


def precision(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Any:
    """True positives over predicted positives; one number for all examples, 0 if there are no predicted positives.

    ``pb.metrics.Precision``, which the name stands for in ``compile``, is exact over many batches.

    >>> pb.metrics.precision(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.9, 0.8, 0.7, 0.1])).round(3)
    np.float64(0.667)
    """
    return _compute_share("precision", y_true, y_pred, threshold, of_predicted=True)


def recall(y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5) -> Any:
    """True positives over actual positives; one number for all examples, 0 if there are no actual positives.

    ``pb.metrics.Recall``, which the name stands for in ``compile``, is exact over many batches.

    >>> pb.metrics.recall(np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.9, 0.8, 0.7, 0.1])).round(3)
    np.float64(0.667)
    """
    return _compute_share("recall", y_true, y_pred, threshold, of_predicted=False)


def _compute_share(name: str, y_true: TensorLike, y_pred: TensorLike, threshold: float, of_predicted: bool) -> Any:
    y, p = match_predictions(name, y_true, y_pred)
    found = (p > threshold).astype(p.dtype)
    true = (y == 1).astype(p.dtype)
    return np.sum(true * found) / np.maximum(np.sum(found if of_predicted else true), 1.0)


mse, mae, mape, msle = (
    mean_squared_error,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_logarithmic_error,
)
huber, log_cosh, kl_divergence = huber_loss, logcosh, kullback_leibler_divergence
