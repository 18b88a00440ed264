"""``pb.math``: the functions of TensorFlow.js's ``tf.math``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import moves
from pullback.core.calculus import no_derivative
from pullback.core.op import op
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike

__all__ = ["confusion_matrix"]


def _check_classes(num_classes: Any) -> int:
    if isinstance(num_classes, bool) or not hasattr(num_classes, "__index__") or num_classes < 1:
        raise ArgumentError(
            f"confusion_matrix: num_classes must be an integer >= 1, got {num_classes!r}; "
            "it is the highest label plus one."
        )
    return int(num_classes)


def _check_labels(argument: str, labels: Array, n: int) -> Any:
    if labels.dtype.kind not in "iu" and np.any(labels != np.floor(labels)):
        raise ArgumentError(f"confusion_matrix: {argument} must be whole numbers, got {labels.dtype}.")
    positions = labels.astype(np.intp)
    wrong = positions[(positions < 0) | (positions >= n)]
    if wrong.size:
        raise ArgumentError(
            f"confusion_matrix: {argument} must be from 0 to {n - 1} (num_classes={n}), got {wrong[0]}."
        )
    return positions


def _count_confusions(labels: Array, predictions: Array, num_classes: int | None) -> Any:
    n = _infer_square_shape(labels.shape, predictions.shape, num_classes)[0]
    at = _check_labels("labels", labels, n) * n + _check_labels("predictions", predictions, n)
    return np.bincount(at, minlength=n * n).astype(np.int32).reshape(n, n)


def _infer_square_shape(
    labels: tuple[int, ...], predictions: tuple[int, ...], num_classes: int | None
) -> tuple[int, int]:
    if len(labels) != 1 or labels != predictions:
        raise ShapeError(
            f"confusion_matrix: labels and predictions must be vectors of one length, got shapes {labels} and "
            f"{predictions}."
        )
    return _check_classes(num_classes), _check_classes(num_classes)


@op(
    _count_confusions,
    acts=moves(
        _infer_square_shape,
        [
            ((np.array([0, 1, 2, 1]), np.array([0, 2, 2, 1])), {"num_classes": 3}),
            ((np.empty(0, int), np.empty(0, int)), {"num_classes": 2}),
        ],
    ),
    d=no_derivative(),
)
def confusion_matrix(labels: TensorLike, predictions: TensorLike, /, num_classes: int) -> Any:
    """Return how often each label (the row) was predicted as each class (the column).

    labels: the true classes.
    predictions: the predicted classes.
    num_classes: how many classes there are.

    >>> confusion_matrix(np.array([0, 1, 1]), np.array([0, 1, 0]), 2)
    array([[1, 0],
           [1, 1]], dtype=int32)
    """


install_answers("pb.math")
