"""Metrics of regions: the intersection of predicted and true regions over their union."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.train.loop.metrics.confusion import divide
from pullback.train.loop.metrics.metric import Metric
from pullback.typing import Value

__all__ = ["BinaryIoU", "IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"]


class IoU(Metric):
    """The intersection over the union of the true and the predicted region, averaged over ``target_class_ids``.

    >>> share = pb.metrics.IoU(num_classes=2, target_class_ids=[0])
    >>> share.update_state([0, 0, 1, 1], [0, 1, 0, 1])
    >>> round(share.result(), 6)
    0.333333
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int] | None = None,
        name: str | None = None,
        dtype: object = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(name or KERAS_NAMES.get(type(self).__name__), dtype)
        self.num_classes, self.target_class_ids, self.ignore_class = num_classes, target_class_ids, ignore_class
        self.sparse_y_true, self.sparse_y_pred, self.axis = sparse_y_true, sparse_y_pred, axis

    def find_classes(self, y_true: Value, y_pred: Value) -> tuple[Any, Any]:
        """Return the true and the predicted class numbers."""
        y = y_true if self.sparse_y_true else np.argmax(y_true, axis=self.axis)
        return y, y_pred if self.sparse_y_pred else np.argmax(y_pred, axis=self.axis)

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        y, p = (np.reshape(x.astype(np.int64), -1) for x in self.find_classes(y_true, y_pred))
        classes = np.arange(self.num_classes)
        rows = (y[:, None] == classes).astype(np.float32)
        columns = (p[:, None] == classes).astype(np.float32)
        if sample_weight is not None:
            weight = np.reshape(sample_weight.astype(np.float32), -1)
            rows = rows * np.broadcast_to(np.reshape(weight, (-1, 1)), (y.size, 1))
        if self.ignore_class is not None:
            rows = np.where((y == self.ignore_class)[:, None], np.float32(0.0), rows)
        return (rows.T @ columns,)

    def compute(self, *sums: Any) -> Any:
        matrix = sums[0]
        hits = np.diagonal(matrix)
        union = matrix.sum(axis=0) + matrix.sum(axis=1) - hits
        chosen = list(range(self.num_classes)) if self.target_class_ids is None else list(self.target_class_ids)
        hits, union = hits[chosen], union[chosen]
        return float(divide(np.sum(divide(hits, union)), np.count_nonzero(union)))


class MeanIoU(IoU):
    """``IoU`` of all classes that occur.

    >>> share = pb.metrics.MeanIoU(num_classes=2)
    >>> share.update_state([0, 0, 1, 1], [0, 1, 0, 1])
    >>> round(share.result(), 6)
    0.333333
    """

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: object = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, None, name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


class BinaryIoU(IoU):
    """``IoU`` of two classes, predictions being probabilities of the class 1.

    threshold: the number from which a prediction is positive.
    """

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def find_classes(self, y_true: Value, y_pred: Value) -> tuple[Any, Any]:
        return y_true, (y_pred >= self.threshold).astype(np.int64)


class OneHotIoU(IoU):
    """``IoU`` of one-hot labels, and predictions by class unless ``sparse_y_pred``."""

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: object = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)


class OneHotMeanIoU(IoU):
    """``MeanIoU`` of one-hot labels, and predictions by class unless ``sparse_y_pred``."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: object = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, None, name, dtype, ignore_class, False, sparse_y_pred, axis)


KERAS_NAMES = {
    "IoU": "io_u", "MeanIoU": "mean_io_u", "BinaryIoU": "binary_io_u", "OneHotIoU": "one_hot_io_u",
    "OneHotMeanIoU": "one_hot_mean_io_u",
}  # fmt: skip
