"""What ``compile`` makes of a loss and of metrics: functions of a batch that give one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.core.tensor import all_values
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import losses
from pullback.train.loop import metrics

__all__ = ["Metric", "Objective", "check_labels", "loss_of", "metric_of", "metrics_of"]

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Metric:
    """A function of labels and predictions, and what it is called; of a batch it gives the mean."""

    name: str
    function: Function

    @property
    def named(self) -> bool:
        """Whether its name says it all, so that a file can hold it."""
        return not (isinstance(self.function, partial) and self.function.func is _own)

    def __call__(self, y: Any, prediction: Any) -> Any:
        return _one(self.name, self.function(y, prediction))


@dataclass(frozen=True)
class Objective:
    """What training makes smaller: a loss for each example, of which a batch has the mean.

    >>> loss_of("meanSquaredError")(np.array([1.0, 2.0]), np.array([[1.0], [4.0]]))
    np.float64(2.0)
    """

    name: str
    function: Function
    sparse: bool = False  # labels are numbers of classes
    logits: bool = False  # predictions are not probabilities yet

    @property
    def named(self) -> bool:
        """Whether its name says it all, so that a file can hold it."""
        return not (isinstance(self.function, partial) and self.function.func is _own)

    def __call__(self, y: Any, prediction: Any) -> Any:
        return _one(self.name, self.function(y, prediction))


def _one(name: str, made: Any) -> Any:
    """The mean of what a loss or metric gave."""
    if isinstance(made, float | int):
        return made
    if not hasattr(made, "shape"):
        raise ArgumentError(
            f"{name}: a loss or metric gives one number or one for each example, this one gave {type(made).__name__}."
        )
    return np.mean(made) if made.shape else made


def _objectives() -> dict[str, Objective]:
    names = (
        "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error",
        "mean_squared_logarithmic_error", "huber_loss", "logcosh", "hinge", "squared_hinge", "categorical_hinge",
        "kullback_leibler_divergence", "poisson", "cosine_proximity", "binary_crossentropy",
        "categorical_crossentropy", "sparse_categorical_crossentropy", "sigmoid_cross_entropy",
        "softmax_cross_entropy", "sparse_softmax_cross_entropy",
    )  # fmt: skip
    return {
        name: Objective(name, getattr(metrics, name), name.startswith("sparse_"), name.endswith("cross_entropy"))
        for name in names
    }


LOSSES = _objectives()
SHORT = {
    "mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error", "huber": "huber_loss", "log_cosh": "logcosh",
    "kld": "kullback_leibler_divergence", "cosine": "cosine_proximity",
}  # fmt: skip
# Functions that are one of these by another way to get at it.
KNOWN: dict[Any, str] = {objective.function: name for name, objective in LOSSES.items()} | {
    losses.absolute_difference: "mean_absolute_error",
    losses.huber_loss: "huber_loss",
    losses.mean_squared_error: "mean_squared_error",
    losses.sigmoid_cross_entropy: "sigmoid_cross_entropy",
    losses.softmax_cross_entropy: "softmax_cross_entropy",
    losses.sparse_softmax_cross_entropy: "sparse_softmax_cross_entropy",
}
THRESHOLDED: dict[str, Callable[..., Any]] = {
    "binary_accuracy": metrics.binary_accuracy,
    "precision": metrics.precision,
    "recall": metrics.recall,
}
METRICS: dict[str, Function] = {
    "categorical_accuracy": metrics.categorical_accuracy,
    "sparse_categorical_accuracy": metrics.sparse_categorical_accuracy,
    "top_k_categorical_accuracy": metrics.top_k_categorical_accuracy,
    "sparse_top_k_categorical_accuracy": metrics.sparse_top_k_categorical_accuracy,
    "r2_score": metrics.r2_score,
}
ACCURACIES = ("accuracy", "acc")


def loss_of(given: Any, what: str = "compile: loss") -> Objective:
    """The loss that is meant by a name, TensorFlow.js's too, or by a function of ``y_true`` and ``y_pred``.

    >>> loss_of("sparseCategoricalCrossentropy").sparse
    True
    """
    name = _named(given)
    if name in LOSSES:
        return LOSSES[name]
    if isinstance(given, Objective):
        return given
    if not callable(given) or isinstance(given, str):
        raise _unknown(what, given, [*LOSSES, *SHORT])
    return Objective(_called(given, "loss"), partial(_own, given))


def metric_of(given: Any, objective: Objective, what: str = "compile: metrics") -> Metric:
    """The metric that is meant by a name or a function; ``"accuracy"`` is the one that belongs to the loss.

    >>> metric_of("accuracy", loss_of("sparse_softmax_cross_entropy"))(np.array([0, 1]), np.array([[3.0, 1], [3, 1]]))
    np.float64(0.5)
    """
    name = _named(given)
    if name in ACCURACIES:
        return Metric(name, partial(_accuracy, objective))
    if name in THRESHOLDED:
        return Metric(name, partial(THRESHOLDED[name], threshold=_threshold(objective)))
    if name in METRICS:
        return Metric(name, METRICS[name])
    if name in LOSSES:
        return Metric(name, LOSSES[name].function)
    if isinstance(given, Metric):
        return given
    if not callable(given) or isinstance(given, str):
        raise _unknown(what, given, [*ACCURACIES, *THRESHOLDED, *METRICS, *LOSSES, *SHORT])
    return Metric(_called(given, "metric"), partial(_own, given))


def metrics_of(given: Any, objective: Objective, what: str = "compile: metrics") -> list[Metric]:
    """All metrics of a model, one or a list of them, each with a name of its own.

    >>> [metric.name for metric in metrics_of(["acc", lambda y, p: p, lambda y, p: y], loss_of("mse"))]
    ['acc', 'metric', 'metric_2']
    """
    found: dict[str, Metric] = {}
    for one in given if isinstance(given, list | tuple) else [] if given is None else [given]:
        metric = metric_of(one, objective, what)
        name, number = metric.name, 1
        while name in found or name == "loss":
            number += 1
            name = f"{metric.name}_{number}"
        found[name] = replace(metric, name=name)
    return list(found.values())


def check_labels(objective: Objective, y: Any, prediction_shape: Any) -> None:
    """Refuse labels that are not numbers of classes, where the loss takes those: compiled steps cannot look at them.

    >>> check_labels(loss_of("sparse_softmax_cross_entropy"), np.array([0, 3]), (None, 3))
    Traceback (most recent call last):
    ...
    pullback.errors.DataError: sparse_softmax_cross_entropy: labels must be 0 to 2, as there are 3 classes; the smallest is 0, the largest 3.
    """  # noqa: E501
    if not objective.sparse:
        return
    if not prediction_shape:
        raise ShapeError(f"{objective.name}: expected predictions by class along the last axis, got shape ().")
    metrics.check_range(objective.name, all_values(y), prediction_shape[-1])


def _named(given: Any) -> str | None:
    """What we call it, if it is one of ours."""
    if isinstance(given, str):
        name = given.lower() if given.isupper() else snake_case(given)
        return SHORT.get(name, name)
    for function, name in KNOWN.items():
        if given is function:
            return name
    return next((name for name, one in {**METRICS, **THRESHOLDED}.items() if given is one), None)


def _unknown(what: str, given: Any, known: list[str]) -> ArgumentError:
    return ArgumentError(
        f"{what}: expected a function of (y_true, y_pred), or one of {', '.join(known)}; got {given!r}."
        f"{did_you_mean(given, known)}"
    )


def _called(given: Any, otherwise: str) -> str:
    name = getattr(given, "__name__", None) or getattr(given, "name", None)
    return name if isinstance(name, str) and name != "<lambda>" else otherwise


def _own(function: Function, y: Any, prediction: Any) -> Any:
    """A function of the user's, kept from making ``(batch, batch)`` of labels without a last axis, and from float64."""
    if hasattr(y, "shape") and hasattr(prediction, "shape"):
        if y.shape == (*prediction.shape, 1) or prediction.shape == (*y.shape, 1):
            y = np.reshape(y, prediction.shape)
        if y.dtype.kind == prediction.dtype.kind == "f" and y.dtype != prediction.dtype:
            y = y.astype(prediction.dtype)
    return function(y, prediction)


def _threshold(objective: Objective) -> float:
    """What is more likely than not."""
    return 0.0 if objective.logits else 0.5


def _accuracy(objective: Objective, y: Any, prediction: Any) -> Any:
    """The accuracy that Keras chooses, by the loss and the shapes."""
    shape = tuple(prediction.shape)
    binary = objective.name in ("binary_crossentropy", "sigmoid_cross_entropy")
    if not objective.sparse and (binary or len(shape) < 2 or shape[-1] == 1):
        return metrics.binary_accuracy(y, prediction, _threshold(objective))
    if objective.sparse or tuple(y.shape) in (shape[:-1], (*shape[:-1], 1)):
        return metrics.sparse_categorical_accuracy(y, prediction)
    return metrics.categorical_accuracy(y, prediction)
