"""Metrics of numbers that are not means over examples: the root mean square, the coefficient of determination."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.train.loop.metrics.functions import match_predictions
from pullback.train.loop.metrics.metric import Metric
from pullback.train.loop.weights import combine_weights, sum_weighted
from pullback.typing import Value

__all__ = ["R2Score", "RootMeanSquaredError"]


class RootMeanSquaredError(Metric):
    """The root of the mean of ``(y_pred - y_true) ** 2`` over all examples.

    >>> error = pb.metrics.RootMeanSquaredError()
    >>> error.update_state([0.0, 0.0], [3.0, 4.0])
    >>> round(error.result(), 4)
    3.5355
    """

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        y, p = match_predictions(self.name, y_true, y_pred)
        return sum_weighted(self.name, np.square(p - y), sample_weight)

    def compute(self, *sums: Any) -> Any:
        return float(np.sqrt(sums[0] / sums[1])) if sums[1] else 0.0


class R2Score(Metric):
    """The coefficient of determination over all examples: the fraction of the variance of the labels that is predicted.

    The last axis has several targets: ``class_aggregation`` is ``"uniform_average"``, ``"variance_weighted_average"``
    or None for one number each.  ``num_regressors`` is for the adjusted coefficient.

    class_aggregation: how the scores of several outputs are averaged.
    num_regressors: how many inputs, for the adjusted score.

    >>> score = pb.metrics.R2Score()
    >>> score.update_state([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]])
    >>> round(score.result(), 6)
    0.571429
    """

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(name or "r2_score", dtype)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ArgumentError(
                "R2Score: class_aggregation must be None, 'uniform_average' or 'variance_weighted_average', got "
                f"{class_aggregation!r}."
            )
        self.class_aggregation, self.num_regressors = class_aggregation, num_regressors

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        y, p = match_predictions(self.name, y_true, y_pred)
        columns = p.shape[-1] if len(p.shape) > 1 else 1
        weight = 1.0 if sample_weight is None else combine_weights(self.name, p, sample_weight, None)
        weights = np.reshape(np.ones(p.shape, p.dtype) * weight, (-1, columns))
        y, p = np.reshape(y, (-1, columns)), np.reshape(p, (-1, columns))
        sums = (np.sum(x * weights, axis=0) for x in (y, y * y, np.square(y - p)))
        return (*sums, np.sum(weights, axis=0), float(y.size))

    def compute(self, *sums: Any) -> Any:
        total, squares, left, count, size = sums
        variance = squares - total * total / count
        with np.errstate(all="ignore"):
            scores = 1.0 - left / variance
        scores = np.where(np.isinf(scores), 0.0, scores)
        score: Any = scores
        if self.class_aggregation == "uniform_average":
            score = float(np.mean(scores))
        elif self.class_aggregation == "variance_weighted_average":
            score = float(np.sum(variance * scores) / np.sum(variance))
        if 0 < self.num_regressors < size - 1:
            score = 1.0 - (1.0 - score) * (size - 1.0) / (size - self.num_regressors - 1.0)
        return score
