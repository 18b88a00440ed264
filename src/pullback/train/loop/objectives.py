"""The losses and metrics that ``compile`` finds by name or function: each gives one number for a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.core.tensor import all_values
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import losses
from pullback.train.loop import metrics
from pullback.typing import Shape, Value

__all__ = ["Metric", "Loss", "check_labels", "find_loss", "find_metric", "find_metrics"]

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Metric:
    """A named function of labels and predictions; called with a batch, it returns the mean."""

    name: str
    function: Function

    @property
    def is_builtin(self) -> bool:
        """Whether it is one of the library, so that a file can store it by name."""
        return not (isinstance(self.function, partial) and self.function.func is _call_user_function)

    def __call__(self, y: Value, prediction: Value) -> Any:
        return _reduce_to_mean(self.name, self.function(y, prediction))


@dataclass(frozen=True)
class Loss:
    """A loss that training minimizes; called with a batch, it returns the mean over the examples.

    >>> find_loss("meanSquaredError")(np.array([1.0, 2.0]), np.array([[1.0], [4.0]]))
    np.float64(2.0)
    """

    name: str
    function: Function
    sparse: bool = False  # labels are class numbers
    logits: bool = False  # predictions are logits, not probabilities

    @property
    def is_builtin(self) -> bool:
        """Whether it is one of the library, so that a file can store it by name."""
        return not (isinstance(self.function, partial) and self.function.func is _call_user_function)

    def __call__(self, y: Value, prediction: Value) -> Any:
        return _reduce_to_mean(self.name, self.function(y, prediction))


LossLike = str | Function | Loss | Sequence[str | Function | Loss]
MetricsLike = str | Function | Metric | Sequence[str | Function | Metric] | None


def _reduce_to_mean(name: str, made: Any) -> Any:
    """Return the mean of what a loss or metric returned for a batch."""
    if isinstance(made, float | int):
        return made
    if not hasattr(made, "shape"):
        raise ArgumentError(
            f"{name}: a loss or metric gives one number or one for each example, this one gave {type(made).__name__}."
        )
    return np.mean(made) if made.shape else made


def _make_losses() -> dict[str, Loss]:
    names = (
        "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error",
        "mean_squared_logarithmic_error", "huber_loss", "logcosh", "hinge", "squared_hinge", "categorical_hinge",
        "kullback_leibler_divergence", "poisson", "cosine_proximity", "binary_crossentropy",
        "categorical_crossentropy", "sparse_categorical_crossentropy", "sigmoid_cross_entropy",
        "softmax_cross_entropy", "sparse_softmax_cross_entropy",
    )  # fmt: skip
    return {
        name: Loss(name, getattr(metrics, name), name.startswith("sparse_"), name.endswith("cross_entropy"))
        for name in names
    }


LOSSES = _make_losses()
ALIASES = {
    "mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error", "huber": "huber_loss", "log_cosh": "logcosh",
    "kld": "kullback_leibler_divergence", "cosine": "cosine_proximity",
}  # fmt: skip
# Functions of pb.metrics and pb.losses that have a name here.
NAMES_OF_FUNCTIONS: dict[Any, str] = {loss.function: name for name, loss in LOSSES.items()} | {
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


def find_loss(given: str | Function | Loss, what: str = "compile: loss") -> Loss:
    """Return the loss of a name, TensorFlow.js's too, or of a function of ``y_true`` and ``y_pred``.

    >>> find_loss("sparseCategoricalCrossentropy").sparse
    True
    """
    name = _find_name(given)
    if name in LOSSES:
        return LOSSES[name]
    if isinstance(given, Loss):
        return given
    if not callable(given) or isinstance(given, str):
        raise _make_unknown_error(what, given, [*LOSSES, *ALIASES])
    return Loss(_get_display_name(given, "loss"), partial(_call_user_function, given))


def find_metric(given: str | Function | Metric, loss: Loss, what: str = "compile: metrics") -> Metric:
    """Return the metric of a name or a function; ``"accuracy"`` is the one that fits the loss.

    >>> accuracy = find_metric("accuracy", find_loss("sparse_softmax_cross_entropy"))
    >>> accuracy(np.array([0, 1]), np.array([[3.0, 1], [3, 1]]))
    np.float64(0.5)
    """
    name = _find_name(given)
    if name in ACCURACIES:
        return Metric(name, partial(_compute_accuracy, loss))
    if name in THRESHOLDED:
        return Metric(name, partial(THRESHOLDED[name], threshold=_get_threshold(loss)))
    if name in METRICS:
        return Metric(name, METRICS[name])
    if name in LOSSES:
        return Metric(name, LOSSES[name].function)
    if isinstance(given, Metric):
        return given
    if not callable(given) or isinstance(given, str):
        raise _make_unknown_error(what, given, [*ACCURACIES, *THRESHOLDED, *METRICS, *LOSSES, *ALIASES])
    return Metric(_get_display_name(given, "metric"), partial(_call_user_function, given))


def find_metrics(given: MetricsLike, loss: Loss, what: str = "compile: metrics") -> list[Metric]:
    """Return the metrics of one name or function, or of a list, each with a name of its own.

    >>> [metric.name for metric in find_metrics(["acc", lambda y, p: p, lambda y, p: y], find_loss("mse"))]
    ['acc', 'metric', 'metric_2']
    """
    found: dict[str, Metric] = {}
    listed: Sequence[Any] = given if isinstance(given, list | tuple) else [] if given is None else [given]
    for one in listed:
        metric = find_metric(one, loss, what)
        name, number = metric.name, 1
        while name in found or name == "loss":
            number += 1
            name = f"{metric.name}_{number}"
        found[name] = replace(metric, name=name)
    return list(found.values())


def check_labels(loss: Loss, y: Value, prediction_shape: Shape) -> None:
    """Raise an error for labels that are not class numbers, if the loss takes those: compiled steps do not check.

    >>> check_labels(find_loss("sparse_softmax_cross_entropy"), np.array([0, 3]), (None, 3))
    Traceback (most recent call last):
    ...
    pullback.errors.DataError: sparse_softmax_cross_entropy: labels must be 0 to 2, as there are 3 classes; the smallest is 0, the largest 3.
    """  # noqa: E501
    if not loss.sparse:
        return
    if not prediction_shape:
        raise ShapeError(f"{loss.name}: expected predictions by class along the last axis, got shape ().")
    metrics.check_range(loss.name, all_values(y), prediction_shape[-1])


def _find_name(given: object) -> str | None:
    """Return the library's name of a loss or metric; None for a user's function."""
    if isinstance(given, str):
        name = given.lower() if given.isupper() else snake_case(given)
        return ALIASES.get(name, name)
    for function, name in NAMES_OF_FUNCTIONS.items():
        if given is function:
            return name
    return next((name for name, one in {**METRICS, **THRESHOLDED}.items() if given is one), None)


def _make_unknown_error(what: str, given: object, known: list[str]) -> ArgumentError:
    return ArgumentError(
        f"{what}: expected a function of (y_true, y_pred), or one of {', '.join(known)}; got {given!r}."
        f"{did_you_mean(given, known)}"
    )


def _get_display_name(given: object, otherwise: str) -> str:
    name = getattr(given, "__name__", None) or getattr(given, "name", None)
    return name if isinstance(name, str) and name != "<lambda>" else otherwise


def _call_user_function(function: Function, y: Value, prediction: Value) -> Any:
    """Call a user's function with labels in the shape and dtype of the predictions, so that nothing is broadcast."""
    if hasattr(y, "shape") and hasattr(prediction, "shape"):
        if y.shape == (*prediction.shape, 1) or prediction.shape == (*y.shape, 1):
            y = np.reshape(y, prediction.shape)
        if y.dtype.kind == prediction.dtype.kind == "f" and y.dtype != prediction.dtype:
            y = y.astype(prediction.dtype)
    return function(y, prediction)


def _get_threshold(loss: Loss) -> float:
    """Return the prediction that means a probability of one half."""
    return 0.0 if loss.logits else 0.5


def _compute_accuracy(loss: Loss, y: Value, prediction: Value) -> Any:
    """Return the accuracy that Keras chooses for this loss and these shapes."""
    shape = tuple(prediction.shape)
    binary = loss.name in ("binary_crossentropy", "sigmoid_cross_entropy")
    if not loss.sparse and (binary or len(shape) < 2 or shape[-1] == 1):
        return metrics.binary_accuracy(y, prediction, _get_threshold(loss))
    if loss.sparse or tuple(y.shape) in (shape[:-1], (*shape[:-1], 1)):
        return metrics.sparse_categorical_accuracy(y, prediction)
    return metrics.categorical_accuracy(y, prediction)
