"""The functions of ``pb.losses``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, Axis, TensorLike, TensorOrNested, Value
from typing import Any, overload

from pullback.ops.losses import Reduction as Reduction

@overload
def absolute_difference(
    labels: TensorOrNested,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return ``abs(labels - predictions)``, weighted and reduced."""

@overload
def absolute_difference(
    labels: TensorLike,
    predictions: TensorOrNested,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return ``abs(labels - predictions)``, weighted and reduced."""

@overload
def absolute_difference(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayOrNumber | None = None, reduction: str | int | None = None
) -> Array: ...
@overload
def absolute_difference(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor: ...
@overload
def compute_weighted_loss(
    losses: TensorOrNested, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor:
    """Return the losses times their weights, reduced: by default their sum, divided by how many weights are not 0."""

@overload
def compute_weighted_loss(
    losses: ArrayLike, weights: ArrayOrNumber | None = None, reduction: str | int | None = None
) -> Array: ...
@overload
def compute_weighted_loss(
    losses: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor: ...
@overload
def cosine_distance(
    labels: TensorOrNested,
    predictions: TensorLike,
    axis: Axis,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return ``1 - sum(labels * predictions)`` over ``axis``, of vectors that have length 1 already."""

@overload
def cosine_distance(
    labels: TensorLike,
    predictions: TensorOrNested,
    axis: Axis,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return ``1 - sum(labels * predictions)`` over ``axis``, of vectors that have length 1 already."""

@overload
def cosine_distance(
    labels: ArrayLike,
    predictions: ArrayLike,
    axis: Axis,
    weights: ArrayOrNumber | None = None,
    reduction: str | int | None = None,
) -> Array: ...
@overload
def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: Axis,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor: ...
@overload
def hinge_loss(
    labels: TensorOrNested,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the hinge loss, weighted and reduced; labels are 0 or 1."""

@overload
def hinge_loss(
    labels: TensorLike,
    predictions: TensorOrNested,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the hinge loss, weighted and reduced; labels are 0 or 1."""

@overload
def hinge_loss(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayOrNumber | None = None, reduction: str | int | None = None
) -> Array: ...
@overload
def hinge_loss(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor: ...
@overload
def huber_loss(
    labels: TensorOrNested,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    delta: float | Value | None = 1.0,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the Huber loss: quadratic for differences up to ``delta``, linear beyond; weighted and reduced."""

@overload
def huber_loss(
    labels: TensorLike,
    predictions: TensorOrNested,
    weights: TensorLike | None = None,
    delta: float | Value | None = 1.0,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the Huber loss: quadratic for differences up to ``delta``, linear beyond; weighted and reduced."""

@overload
def huber_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayOrNumber | None = None,
    delta: float | Value | None = 1.0,
    reduction: str | int | None = None,
) -> Array: ...
@overload
def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    delta: float | Value | None = 1.0,
    reduction: str | int | None = None,
) -> Tensor: ...
@overload
def log_loss(
    labels: TensorOrNested,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    epsilon: float | None = 1e-07,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the cross entropy of probabilities, ``epsilon`` keeping the logarithms finite."""

@overload
def log_loss(
    labels: TensorLike,
    predictions: TensorOrNested,
    weights: TensorLike | None = None,
    epsilon: float | None = 1e-07,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the cross entropy of probabilities, ``epsilon`` keeping the logarithms finite."""

@overload
def log_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    weights: ArrayOrNumber | None = None,
    epsilon: float | None = 1e-07,
    reduction: str | int | None = None,
) -> Array: ...
@overload
def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    epsilon: float | None = 1e-07,
    reduction: str | int | None = None,
) -> Tensor: ...
@overload
def mean_squared_error(
    labels: TensorOrNested,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return ``(labels - predictions) ** 2``, weighted and reduced."""

@overload
def mean_squared_error(
    labels: TensorLike,
    predictions: TensorOrNested,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Tensor:
    """Return ``(labels - predictions) ** 2``, weighted and reduced."""

@overload
def mean_squared_error(
    labels: ArrayLike, predictions: ArrayLike, weights: ArrayOrNumber | None = None, reduction: str | int | None = None
) -> Array: ...
@overload
def mean_squared_error(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor: ...
@overload
def sigmoid_cross_entropy(
    multi_class_labels: TensorOrNested,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(logits)`` for every element, weighted and reduced."""

@overload
def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorOrNested,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(logits)`` for every element, weighted and reduced."""

@overload
def sigmoid_cross_entropy(
    multi_class_labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayOrNumber | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Array: ...
@overload
def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Tensor: ...
@overload
def sigmoid_cross_entropy_with_logits(labels: TensorOrNested, logits: TensorLike, /) -> Tensor:
    """Return the cross entropy of ``sigmoid(logits)``, without overflow: one loss per element."""

@overload
def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorOrNested, /) -> Tensor:
    """Return the cross entropy of ``sigmoid(logits)``, without overflow: one loss per element."""

@overload
def sigmoid_cross_entropy_with_logits(labels: ArrayLike, logits: ArrayLike, /) -> Array: ...
@overload
def softmax_cross_entropy(
    onehot_labels: TensorOrNested,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the cross entropy of ``softmax(logits)`` over the last axis, weighted by example and reduced."""

@overload
def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorOrNested,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Tensor:
    """Return the cross entropy of ``softmax(logits)`` over the last axis, weighted by example and reduced."""

@overload
def softmax_cross_entropy(
    onehot_labels: ArrayLike,
    logits: ArrayLike,
    weights: ArrayOrNumber | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Array: ...
@overload
def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Tensor: ...
@overload
def softmax_cross_entropy_with_logits(labels: TensorOrNested, logits: TensorLike) -> Tensor:
    """Return the cross entropy of ``softmax(logits)`` over the last axis: one loss per example."""

@overload
def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorOrNested) -> Tensor:
    """Return the cross entropy of ``softmax(logits)`` over the last axis: one loss per example."""

@overload
def softmax_cross_entropy_with_logits(labels: ArrayLike, logits: ArrayLike) -> Array: ...
@overload
def sparse_softmax_cross_entropy(
    labels: TensorOrNested, logits: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor:
    """Return the cross entropy of ``softmax(logits)`` for integer labels, weighted and reduced."""

@overload
def sparse_softmax_cross_entropy(
    labels: TensorLike, logits: TensorOrNested, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor:
    """Return the cross entropy of ``softmax(logits)`` for integer labels, weighted and reduced."""

@overload
def sparse_softmax_cross_entropy(
    labels: ArrayLike, logits: ArrayLike, weights: ArrayOrNumber | None = None, reduction: str | int | None = None
) -> Array: ...
@overload
def sparse_softmax_cross_entropy(
    labels: TensorLike, logits: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Tensor: ...
@overload
def sparse_softmax_cross_entropy_with_logits(labels: TensorOrNested, logits: TensorLike) -> Tensor:
    """Return ``softmax_cross_entropy_with_logits`` for integer labels, without one-hot vectors."""

@overload
def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorOrNested) -> Tensor:
    """Return ``softmax_cross_entropy_with_logits`` for integer labels, without one-hot vectors."""

@overload
def sparse_softmax_cross_entropy_with_logits(labels: ArrayLike, logits: ArrayLike) -> Array: ...
