"""Metrics of positives and negatives: counts, precision, recall, areas under curves, F-scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.ops import activations
from pullback.train.arguments import as_whole_number, check_count
from pullback.train.loop.metrics.functions import EPSILON, match_predictions
from pullback.train.loop.metrics.metric import Metric
from pullback.train.loop.weights import combine_weights
from pullback.typing import Array, Value

__all__ = [
    "AUC", "F1Score", "FBetaScore", "FalseNegatives", "FalsePositives", "Precision", "PrecisionAtRecall", "Recall",
    "RecallAtPrecision", "SensitivityAtSpecificity", "SpecificityAtSensitivity", "TrueNegatives", "TruePositives",
]  # fmt: skip

Thresholds = float | Sequence[float] | None
LOWEST = -1e10  # the prediction of a class that is not among the highest


class ThresholdMetric(Metric):
    """A metric of the counts of true and false positives and negatives at one or more thresholds."""

    def __init__(
        self,
        thresholds: Thresholds = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(name, dtype)
        if top_k is not None:
            check_count(self.name, "top_k", top_k)
        if class_id is not None:
            as_whole_number(self.name, "class_id", class_id, 0)
        self.thresholds, self.top_k, self.class_id = thresholds, top_k, class_id
        limits = (0.5 if top_k is None else LOWEST) if thresholds is None else thresholds
        self._limits = np.atleast_1d(np.asarray(limits, np.float64))
        self._is_single = np.ndim(limits) == 0
        _check_thresholds(self.name, thresholds)

    def count(self, y_true: Value, y_pred: Value, sample_weight: Value | None) -> tuple[Any, Any, Any, Any]:
        """Return the weighted counts of true positives, false positives, true and false negatives by threshold."""
        y, p = match_predictions(self.name, y_true, y_pred)
        weight = None if sample_weight is None else combine_weights(self.name, p, sample_weight, None)
        if self.top_k is not None:
            p = _keep_highest(p, self.top_k)
        if self.class_id is not None:
            if len(p.shape) < 2 or self.class_id >= p.shape[-1]:
                raise ShapeError(
                    f"{self.name}: class_id={self.class_id} needs predictions by class, that one among them, got shape "
                    f"{p.shape}."
                )
            y, p = y[..., self.class_id : self.class_id + 1], p[..., self.class_id : self.class_id + 1]
            weight = weight[..., :1] if weight is not None and weight.shape[-1] != 1 else weight
        hits, alarms, rejections, misses = count_by_threshold(y, p, self._limits, weight)
        return hits, alarms, rejections, misses

    def _unpack(self, x: Array) -> Any:
        return float(x[0]) if self._is_single else x


def _check_thresholds(name: str, thresholds: Thresholds) -> None:
    if thresholds is not None and not np.all((np.asarray(thresholds) >= 0) & (np.asarray(thresholds) <= 1)):
        raise ArgumentError(f"{name}: thresholds must be from 0 to 1, got {thresholds!r}.")


def count_by_threshold(y: Value, p: Value, limits: Array, weight: Value | None, by_label: bool = False) -> Any:
    """Return the weighted counts of true positives, false positives, true and false negatives above each threshold."""
    if weight is not None:
        weight = np.broadcast_to(weight, p.shape)
    if by_label:
        columns = p.shape[-1]
        y, p = np.reshape(y, (1, -1, columns)), np.reshape(p, (1, -1, columns))
        weight = None if weight is None else np.reshape(weight, (1, -1, columns))
        limits = limits.reshape(-1, 1, 1)
    else:
        y, p = np.reshape(y, (1, -1)), np.reshape(p, (1, -1))
        weight = None if weight is None else np.reshape(weight, (1, -1))
        limits = limits.reshape(-1, 1)
    true = (y != 0).astype(p.dtype)
    false = 1.0 - true
    if weight is not None:
        true, false = true * weight, false * weight
    found = (p > limits.astype(p.dtype)).astype(p.dtype)
    hits, alarms = np.sum(found * true, axis=1), np.sum(found * false, axis=1)
    return hits, alarms, np.sum(false, axis=1) - alarms, np.sum(true, axis=1) - hits


def divide(x: Any, y: Any) -> Any:
    """Return ``x / y``, 0 where ``y`` is 0."""
    return np.where(y == 0, 0.0, x / np.where(y == 0, 1.0, y))


def _keep_highest(p: Value, k: int) -> Any:
    """Return predictions with all but the ``k`` highest of the last axis replaced by a low number."""
    if k >= p.shape[-1]:
        return p
    limit = np.sort(p, axis=-1)[..., -k : p.shape[-1] - k + 1]
    return np.where(p >= limit, p, LOWEST)


class TruePositives(ThresholdMetric):
    """The weighted number of positives that were predicted as such; for each threshold if there are several.

    >>> count = pb.metrics.TruePositives()
    >>> count.update_state([0, 1, 1, 1], [1, 0, 1, 1])
    >>> count.result()
    2.0
    """

    _which = 0

    def __init__(self, thresholds: Thresholds = None, name: str | None = None, dtype: object = None) -> None:
        super().__init__(thresholds, name=name, dtype=dtype)

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        return (self.count(y_true, y_pred, sample_weight)[self._which],)

    def compute(self, *sums: Any) -> Any:
        return self._unpack(sums[0])


class FalsePositives(TruePositives):
    """The weighted number of negatives that were predicted as positives."""

    _which = 1


class TrueNegatives(TruePositives):
    """The weighted number of negatives that were predicted as such."""

    _which = 2


class FalseNegatives(TruePositives):
    """The weighted number of positives that were predicted as negatives."""

    _which = 3


class Precision(ThresholdMetric):
    """True positives over predicted positives, over all examples; 0 if there are no predicted positives.

    ``top_k`` counts the k highest classes as predicted; ``class_id`` counts one class only.

    top_k: only the ``top_k`` highest predictions of a row are positive.

    >>> precision = pb.metrics.Precision()
    >>> precision.update_state([0, 1, 1, 1], [1, 0, 1, 1])
    >>> round(precision.result(), 6)
    0.666667
    """

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        hits, alarms, _, _ = self.count(y_true, y_pred, sample_weight)
        return hits, alarms

    def compute(self, *sums: Any) -> Any:
        return self._unpack(divide(sums[0], sums[0] + sums[1]))


class Recall(ThresholdMetric):
    """True positives over actual positives, over all examples; 0 if there are no actual positives.

    top_k: only the ``top_k`` highest predictions of a row are positive.

    >>> recall = pb.metrics.Recall()
    >>> recall.update_state([0, 1, 1, 1], [1, 0, 1, 1])
    >>> round(recall.result(), 6)
    0.666667
    """

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        hits, _, _, misses = self.count(y_true, y_pred, sample_weight)
        return hits, misses

    def compute(self, *sums: Any) -> Any:
        return self._unpack(divide(sums[0], sums[0] + sums[1]))


# ---- curves


def _spread_thresholds(count: int, thresholds: Sequence[float] | None) -> Array:
    """Return thresholds from just below 0 to just above 1."""
    inner = sorted(thresholds) if thresholds is not None else [(i + 1) / (count - 1) for i in range(count - 2)]
    return np.array([-EPSILON, *inner, 1.0 + EPSILON])


class AUC(Metric):
    """The area under the curve of true over false positives (ROC), or of precision over recall (PR).

    ``summation_method`` is ``"interpolation"``, ``"minoring"`` or ``"majoring"``; ``multi_label`` averages the areas of
    the labels along the last axis, with ``label_weights``; ``from_logits`` applies the sigmoid first.

    curve: ``"ROC"`` or ``"PR"``.
    summation_method: how the area is computed.
    multi_label: whether each label has an area of its own.
    num_labels: how many labels there are, if ``multi_label``.
    label_weights: how much each label counts.

    >>> area = pb.metrics.AUC(num_thresholds=3)
    >>> area.update_state([0, 0, 1, 1], [0, 0.5, 0.3, 0.9])
    >>> area.result()
    0.75
    """

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: object = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: Sequence[float] | None = None,
        from_logits: bool = False,
    ) -> None:
        super().__init__(name or "auc", dtype)
        if curve not in ("ROC", "PR"):
            raise ArgumentError(f"AUC: curve must be 'ROC' or 'PR', got {curve!r}.")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ArgumentError(
                f"AUC: summation_method must be 'interpolation', 'minoring' or 'majoring', got {summation_method!r}."
            )
        _check_thresholds(self.name, thresholds)
        if thresholds is None and num_thresholds <= 1:
            raise ArgumentError(f"AUC: num_thresholds must be more than 1, got {num_thresholds!r}.")
        self.num_thresholds, self.curve, self.summation_method = num_thresholds, curve, summation_method
        self.thresholds, self.multi_label, self.num_labels = thresholds, multi_label, num_labels
        self.label_weights, self.from_logits = label_weights, from_logits
        self._limits = _spread_thresholds(num_thresholds, thresholds)

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        y, p = match_predictions(self.name, y_true, y_pred)
        p = activations.sigmoid(p) if self.from_logits else p
        weight = None if sample_weight is None else combine_weights(self.name, p, sample_weight, None)
        if self.label_weights is not None and not self.multi_label:
            labels = np.asarray(self.label_weights, p.dtype)
            weight = np.broadcast_to(labels, p.shape) if weight is None else weight * labels
        return tuple(count_by_threshold(y, p, self._limits, weight, self.multi_label))

    def compute(self, *sums: Any) -> Any:
        areas = self._compute_areas(*sums)
        if not self.multi_label:
            return float(areas)
        return float(np.average(areas, weights=self.label_weights))

    def _compute_areas(self, tp: Array, fp: Array, tn: Array, fn: Array) -> Any:
        """Return the area of each label."""
        if self.curve == "PR" and self.summation_method == "interpolation":
            return _interpolate_pr_area(tp, fp, fn)
        recall = divide(tp, tp + fn)
        x, y = (divide(fp, fp + tn), recall) if self.curve == "ROC" else (recall, divide(tp, tp + fp))
        heights = {
            "interpolation": (y[:-1] + y[1:]) / 2,
            "minoring": np.minimum(y[:-1], y[1:]),
            "majoring": np.maximum(y[:-1], y[1:]),
        }
        return np.sum((x[:-1] - x[1:]) * heights[self.summation_method], axis=0)


def _interpolate_pr_area(tp: Array, fp: Array, fn: Array) -> Any:
    """Return the area under precision and recall with true positives linear in all positives (Davis and Goadrich)."""
    positives = tp + fp
    begin, end = positives[1:], positives[:-1]
    slope = divide(tp[:-1] - tp[1:], np.maximum(end - begin, 0.0))
    both = (begin > 0) & (end > 0)
    ratio = np.where(both, end / np.where(both, begin, 1.0), 1.0)
    part = slope * (tp[:-1] - tp[1:] + (tp[1:] - slope * begin) * np.log(ratio))
    return np.sum(divide(part, tp[1:] + fn[1:]), axis=0)


class CurvePoint(ThresholdMetric):
    """The best of one rate among those thresholds at which another is high enough."""

    def __init__(
        self, least: float, num_thresholds: int, class_id: int | None, name: str | None, dtype: object
    ) -> None:
        super().__init__(None, None, class_id, name, dtype)
        if not 0 <= least <= 1:
            raise ArgumentError(f"{self.name}: expected a rate from 0 to 1, got {least!r}.")
        self.num_thresholds = num_thresholds
        self._least = least
        self._limits = np.array([0.5]) if num_thresholds == 1 else _spread_thresholds(num_thresholds, None)
        if num_thresholds > 1:
            self._limits[0], self._limits[-1] = 0.0, 1.0

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        return self.count(y_true, y_pred, sample_weight)

    def rates(self, tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Any, Any]:
        """Return the rate that must be high enough, and the one of which the best is wanted."""
        raise NotImplementedError

    def compute(self, *sums: Any) -> Any:
        condition, wanted = self.rates(*sums)
        return float(np.max(np.where(condition >= self._least, wanted, 0.0), initial=0.0))


class SensitivityAtSpecificity(CurvePoint):
    """The best sensitivity (recall of positives) where the specificity is at least ``specificity``.

    specificity: the required specificity.

    >>> best = pb.metrics.SensitivityAtSpecificity(0.5)
    >>> best.update_state([0, 0, 0, 1, 1], [0, 0.3, 0.8, 0.3, 0.8])
    >>> best.result()
    0.5
    """

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)
        self.specificity = specificity

    def rates(self, tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Any, Any]:
        return divide(tn, tn + fp), divide(tp, tp + fn)


class SpecificityAtSensitivity(CurvePoint):
    """The best specificity (recall of negatives) where the sensitivity is at least ``sensitivity``.

    sensitivity: the required sensitivity.
    """

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)
        self.sensitivity = sensitivity

    def rates(self, tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Any, Any]:
        return divide(tp, tp + fn), divide(tn, tn + fp)


class PrecisionAtRecall(CurvePoint):
    """The best precision where the recall is at least ``recall``.

    recall: the required recall.
    """

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)
        self.recall = recall

    def rates(self, tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Any, Any]:
        return divide(tp, tp + fn), divide(tp, tp + fp)


class RecallAtPrecision(CurvePoint):
    """The best recall where the precision is at least ``precision``.

    precision: the required precision.
    """

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
        self.precision = precision

    def rates(self, tp: Array, fp: Array, tn: Array, fn: Array) -> tuple[Any, Any]:
        return divide(tp, tp + fp), divide(tp, tp + fn)


# ---- F-scores


class FBetaScore(Metric):
    """The weighted harmonic mean of precision and recall, recall counting ``beta`` times as much; by class.

    Without a ``threshold`` the highest class is predicted.  ``average`` is None for one number of each class, or
    ``"micro"``, ``"macro"`` or ``"weighted"``.

    average: how the classes are averaged: None, ``"micro"``, ``"macro"`` or ``"weighted"``.
    beta: how much more recall counts than precision.

    >>> score = pb.metrics.FBetaScore(beta=2.0, threshold=0.5)
    >>> score.update_state([[1, 1, 1], [1, 0, 0], [1, 1, 0]], [[0.2, 0.6, 0.7], [0.2, 0.6, 0.6], [0.6, 0.8, 0.0]])
    >>> score.result().round(6)
    array([0.384615, 0.909091, 0.833333])
    """

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(name or "fbeta_score", dtype)
        if average not in (None, "micro", "macro", "weighted"):
            raise ArgumentError(f"{self.name}: average must be None, 'micro', 'macro' or 'weighted', got {average!r}.")
        if beta <= 0:
            raise ArgumentError(f"{self.name}: beta must be more than 0, got {beta!r}.")
        self.average, self.beta, self.threshold = average, beta, threshold

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        y, p = match_predictions(self.name, y_true, y_pred)
        if len(p.shape) != 2:
            raise ShapeError(f"{self.name}: expected predictions of shape (batch, classes), got {p.shape}.")
        if self.threshold is None:
            found = ((p == np.max(p, axis=-1, keepdims=True)) & (np.abs(p) > 1e-9)).astype(p.dtype)
        else:
            found = (p > self.threshold).astype(p.dtype)
        weight = 1.0 if sample_weight is None else combine_weights(self.name, p, sample_weight, None)
        axis = None if self.average == "micro" else 0
        return tuple(
            np.sum(counts * weight, axis=axis) for counts in (found * y, found * (1.0 - y), (1.0 - found) * y, y)
        )

    def compute(self, *sums: Any) -> Any:
        tp, fp, fn, weights = sums
        precision, recall = divide(tp, tp + fp), divide(tp, tp + fn)
        scores = divide(precision * recall * (1.0 + self.beta**2), self.beta**2 * precision + recall)
        if self.average == "weighted":
            return float(np.sum(scores * divide(weights, np.sum(weights))))
        return scores if self.average is None else float(np.mean(scores))


class F1Score(FBetaScore):
    """The harmonic mean of precision and recall, by class; see ``FBetaScore``.

    average: how the classes are averaged: None, ``"micro"``, ``"macro"`` or ``"weighted"``.

    >>> score = pb.metrics.F1Score(average="macro")
    >>> score.update_state([[1, 0], [0, 1], [0, 1]], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> round(score.result(), 6)
    0.666667
    """

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = None,
        dtype: object = None,
    ) -> None:
        super().__init__(average, 1.0, threshold, name or "f1_score", dtype)
