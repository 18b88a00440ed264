"""The losses and metrics of a model's outputs: found by name or function, and computed for a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.core.tensor import Tensor, all_values
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import losses as reduced_losses
from pullback.train.custom_objects import find_custom, name_custom
from pullback.train.io.structure import find_function
from pullback.train.loop import losses as loss_classes
from pullback.train.loop import metrics
from pullback.train.loop.losses import FunctionLoss, Loss
from pullback.train.loop.metrics import functions
from pullback.train.loop.metrics.metric import FunctionMetric, Metric, Updates, sum_updates
from pullback.train.loop.weights import multiply_weights
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Shape, Value

Kind = TypeVar("Kind", Loss, Metric)
Function = Callable[[Any, Any], Any]
OneLoss: TypeAlias = "str | Function | Loss | None"
LossLike: TypeAlias = "OneLoss | Sequence[OneLoss] | Mapping[str, OneLoss]"
MetricLike: TypeAlias = "str | Function | Metric | type[Metric]"
MetricsOfOutput: TypeAlias = "MetricLike | Sequence[MetricLike] | None"
MetricsLike: TypeAlias = "MetricsOfOutput | Sequence[MetricsOfOutput] | Mapping[str, MetricsOfOutput]"
LossWeights: TypeAlias = "float | Sequence[float] | Mapping[str, float] | None"

# ---- losses by name

LOSS_FUNCTIONS = (
    "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error",
    "huber_loss", "logcosh", "hinge", "squared_hinge", "categorical_hinge", "kullback_leibler_divergence", "poisson",
    "cosine_proximity", "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy",
    "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy", "binary_focal_crossentropy",
    "categorical_focal_crossentropy", "categorical_generalized_cross_entropy", "dice", "tversky", "circle",
    "ctc",
)  # fmt: skip
ALIASES = {
    "mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error", "huber": "huber_loss", "log_cosh": "logcosh",
    "kld": "kullback_leibler_divergence", "kl_divergence": "kullback_leibler_divergence",
    "cosine": "cosine_proximity", "bce": "binary_crossentropy",
}  # fmt: skip
ACCURACIES = ("accuracy", "acc")
CROSS_ENTROPIES = ("crossentropy", "ce")


def _spell(name: str) -> str:
    """Return a name in lower case without underscores: ``meanSquaredError`` is ``mean_squared_error``."""
    return name.replace("_", "").replace("-", "").lower()


LOSS_NAMES = {_spell(name): name for name in LOSS_FUNCTIONS} | {_spell(k): name for k, name in ALIASES.items()}
LOSS_NAMES["cosinesimilarity"] = "cosine_proximity"  # the metric of this name has the other sign
LOSS_CLASSES: dict[str, type[Loss]] = {
    _spell(name): getattr(loss_classes, name) for name in loss_classes.__all__ if name != "Loss"
}
NAMES_OF_FUNCTIONS: dict[Any, str] = {getattr(functions, name): name for name in LOSS_FUNCTIONS} | {
    reduced_losses.absolute_difference: "mean_absolute_error",
    reduced_losses.huber_loss: "huber_loss",
    reduced_losses.mean_squared_error: "mean_squared_error",
    reduced_losses.sigmoid_cross_entropy: "sigmoid_cross_entropy",
    reduced_losses.softmax_cross_entropy: "softmax_cross_entropy",
    reduced_losses.sparse_softmax_cross_entropy: "sparse_softmax_cross_entropy",
}


def find_loss(identifier: str | Function | Loss, subject: str = "compile: loss") -> Loss:
    """Return the loss of a name, TensorFlow.js's and Keras's too, or of a function of ``y_true`` and ``y_pred``.

    >>> find_loss("sparseCategoricalCrossentropy").sparse
    True
    """
    if (loss := _find_object(identifier, Loss, LOSS_CLASSES, subject)) is not None:
        return loss
    if isinstance(identifier, str):
        return _find_named_loss(identifier, subject)
    if (name := _find_function_name(identifier)) is not None:
        return FunctionLoss(getattr(functions, name), name)
    if not callable(identifier):
        raise _make_unknown_error(subject, identifier, [*LOSS_FUNCTIONS, *ALIASES])
    return FunctionLoss(partial(_call_user_function, identifier), _get_display_name(identifier, "loss"))


def _find_named_loss(identifier: str, subject: str) -> Loss:
    key = _spell(identifier)
    if key in CROSS_ENTROPIES:
        return FunctionLoss(_compute_cross_entropy, "crossentropy")
    if key not in LOSS_NAMES:
        raise _make_unknown_error(subject, identifier, [*LOSS_FUNCTIONS, *ALIASES])
    return FunctionLoss(getattr(functions, LOSS_NAMES[key]), LOSS_NAMES[key])


def _compute_cross_entropy(y: Value, p: Value) -> Any:
    """Return the cross entropy that fits the shapes: of two classes, of class numbers, or of one-hot labels."""
    shape = tuple(p.shape)
    if shape[-1] == 1:
        return functions.binary_crossentropy(y, p)
    is_sparse = len(y.shape) < len(shape) or y.shape[-1] == 1
    return (functions.sparse_categorical_crossentropy if is_sparse else functions.categorical_crossentropy)(y, p)


# ---- metrics by name

MEAN_METRICS = {
    _spell(name): name for name in functions.__all__ if name not in ("precision", "recall", "r2_score", "accuracy")
} | {_spell(k): name for k, name in ALIASES.items()}
METRIC_CLASSES: dict[str, type[Metric]] = {
    _spell(name): one
    for name, one in vars(metrics).items()
    if isinstance(one, type) and issubclass(one, Metric) and one not in (Metric, FunctionMetric)
}


def find_metric(identifier: MetricLike, loss: Loss | None, subject: str = "compile: metrics") -> Metric:
    """Return the metric of a name or a function; ``"accuracy"`` is the one that fits the loss.

    A name stays as it is written; a metric of several batches is exact: precision, recall, AUC.

    >>> accuracy = find_metric("acc", find_loss("sparse_softmax_cross_entropy"))
    >>> accuracy.name, accuracy(np.array([0, 1]), np.array([[3.0, 1], [3, 1]]))
    ('acc', 0.5)
    """
    if (metric := _find_object(identifier, Metric, METRIC_CLASSES, subject)) is not None:
        return metric
    if isinstance(identifier, str):
        return _find_named_metric(identifier, loss, subject)
    if not callable(identifier):
        raise _make_unknown_error(subject, identifier, _list_metric_names())
    name = _find_library_name(identifier)
    if name in ("precision", "recall", "r2_score", "binary_accuracy"):
        return _find_named_metric(name, loss, subject)
    if name is not None:
        return FunctionMetric(getattr(functions, name), name)
    return FunctionMetric(partial(_call_user_function, identifier), _get_display_name(identifier, "metric"))


def _find_named_metric(identifier: str, loss: Loss | None, subject: str) -> Metric:
    key = _spell(identifier)
    if key in ACCURACIES:
        return FunctionMetric(partial(_compute_accuracy, loss), identifier)
    if key in CROSS_ENTROPIES:
        return FunctionMetric(_compute_cross_entropy, identifier)
    limit = 0.0 if loss is not None and loss.logits else 0.5  # the prediction that means one half
    if key == "binaryaccuracy":
        return FunctionMetric(functions.binary_accuracy, identifier, threshold=limit)
    if key in ("precision", "recall"):
        kind = metrics.Precision if key == "precision" else metrics.Recall
        return kind(limit, name=identifier)
    if key in MEAN_METRICS:
        return FunctionMetric(getattr(functions, MEAN_METRICS[key]), identifier)
    if key in METRIC_CLASSES:
        try:
            return METRIC_CLASSES[key](name=identifier)
        except TypeError as error:
            raise ArgumentError(f"{subject}: {identifier!r} needs arguments: give the metric itself. {error}") from None
    raise _make_unknown_error(subject, identifier, _list_metric_names())


def _list_metric_names() -> list[str]:
    exact = [snake_case(kind.__name__) for key, kind in METRIC_CLASSES.items() if key not in MEAN_METRICS]
    return [*ACCURACIES, *dict.fromkeys(MEAN_METRICS.values()), *ALIASES, "auc", *exact]


def _compute_accuracy(loss: Loss | None, y: Value, prediction: Value) -> Any:
    """Return the accuracy that fits the loss and these shapes."""
    shape = tuple(prediction.shape)
    sparse, logits = (loss.sparse, loss.logits) if loss is not None else (False, False)
    binary = loss is not None and loss.name in ("binary_crossentropy", "sigmoid_cross_entropy")
    if not sparse and (binary or len(shape) < 2 or shape[-1] == 1):
        return functions.binary_accuracy(y, prediction, 0.0 if logits else 0.5)
    if sparse or tuple(y.shape) in (shape[:-1], (*shape[:-1], 1)):
        return functions.sparse_categorical_accuracy(y, prediction)
    return functions.categorical_accuracy(y, prediction)


def _find_object(identifier: Any, kind: type[Kind], classes: Mapping[str, type[Kind]], subject: str) -> Kind | None:
    """Return a loss or metric that is given itself, as its class, or as files have it; None for any other."""
    if isinstance(identifier, kind):
        return identifier
    if isinstance(identifier, type) and issubclass(identifier, kind):
        return identifier()
    if not _is_described(identifier):
        return None
    described = classes.get(_spell(identifier["class_name"]))
    if described is None:
        raise _make_unknown_error(subject, identifier["class_name"], [one.__name__ for one in classes.values()])
    return described(**identifier.get("config", {}))


def _find_function_name(identifier: object) -> str | None:
    """Return the name of a loss function of the library; None for any other function."""
    inner = getattr(identifier, "__wrapped__", identifier)
    return next((name for function, name in NAMES_OF_FUNCTIONS.items() if function in (identifier, inner)), None)


def _find_library_name(identifier: object) -> str | None:
    """Return the name of a loss or metric function of the library; None for any other function."""
    inner = getattr(identifier, "__wrapped__", identifier)
    name = getattr(inner, "__name__", "")
    return name if getattr(functions, name, None) is inner else _find_function_name(identifier)


def _make_unknown_error(subject: str, identifier: object, known: list[str]) -> ArgumentError:
    return ArgumentError(
        f"{subject}: got {identifier!r}.{did_you_mean(identifier, known)} Expected a function of (y_true, y_pred), or "
        f"one of {', '.join(known)}."
    )


def _get_display_name(identifier: object, otherwise: str) -> str:
    name = getattr(identifier, "__name__", None) or getattr(identifier, "name", None)
    return name.strip("<>") if isinstance(name, str) else otherwise


def _call_user_function(function: Function, y: Value, prediction: Value) -> Any:
    """Call a user's function with labels in the shape and dtype of the predictions, so that nothing is broadcast."""
    if hasattr(y, "shape") and hasattr(prediction, "shape"):
        if y.shape == (*prediction.shape, 1) or prediction.shape == (*y.shape, 1):
            y = np.reshape(y, prediction.shape)
        if y.dtype.kind == prediction.dtype.kind == "f" and y.dtype != prediction.dtype:
            y = y.astype(prediction.dtype)
    return function(y, prediction)


def check_labels(loss: Loss | None, y: Value, prediction_shape: Shape) -> None:
    """Raise an error for labels that are not class numbers, if the loss takes those: compiled steps do not check.

    >>> check_labels(find_loss("sparse_softmax_cross_entropy"), np.array([0, 3]), (None, 3))
    Traceback (most recent call last):
    ...
    pullback.errors.DataError: sparse_softmax_cross_entropy: labels must be 0 to 2, as there are 3 classes; the smallest is 0, the largest 3.
    """  # noqa: E501
    if loss is None or not loss.sparse:
        return
    if not prediction_shape:
        raise ShapeError(f"{loss.name}: expected predictions by class along the last axis, got shape ().")
    labels = np.asarray(all_values(y))
    ignored = loss.arguments.get("ignore_class") if isinstance(loss, FunctionLoss) else None
    if ignored is not None:
        labels = labels[labels != ignored]
    functions.check_range(loss.name, labels, prediction_shape[-1])


# ---- all outputs together


@dataclass(frozen=True)
class Settings:
    """The losses and metrics as ``compile`` was given them."""

    loss: LossLike
    metrics: MetricsLike = ()
    loss_weights: LossWeights = None
    weighted_metrics: MetricsLike = ()


@dataclass(frozen=True)
class BoundMetric:
    """A metric of one of the outputs, with the name that histories show."""

    name: str
    output: int  # its number; INNER for a metric that a layer updates itself
    metric: Metric
    weighted: bool  # whether sample weights count


INNER = -1


class Objectives:
    """The losses and metrics of the outputs of a model, for outputs of these names, and ``inner`` ones of layers.

    >>> both = Objectives(Settings({"a": "mse", "b": "mae"}, {"b": ["mse"]}), ["a", "b"], "model")
    >>> both.names
    ['loss', 'a_loss', 'b_loss', 'b_mse']
    """

    def __init__(self, settings: Settings, outputs: Sequence[str], subject: str, inner: Iterable[Metric] = ()) -> None:
        self.outputs, self.subject = list(outputs), subject
        losses = _spread(settings.loss, outputs, f"{subject}.compile: loss")
        self.losses = [None if one is None else find_loss(one, f"{subject}.compile: loss") for one in losses]
        weights = _spread(settings.loss_weights, outputs, f"{subject}.compile: loss_weights")
        self.loss_weights = [1.0 if w is None else float(w) for w in weights]
        self.metrics: list[BoundMetric] = []
        for listed, weighted in ((settings.metrics, False), (settings.weighted_metrics, True)):
            self._add_metrics(listed, weighted)
        for metric in inner:
            self.metrics.append(BoundMetric(self._find_free_name(metric.name), INNER, metric, False))
        self.sizes: list[int] = []  # how many statistics each metric has, once they were computed
        several = sum(loss is not None for loss in self.losses) > 1
        pairs = zip(self.outputs, self.losses, strict=True)
        self.loss_names = [f"{name}_loss" for name, loss in pairs if loss is not None] if several else []

    @property
    def names(self) -> list[str]:
        """The names of all numbers, as histories show them."""
        return ["loss", *self.loss_names, *(bound.name for bound in self.metrics)]

    def _add_metrics(self, metrics: MetricsLike, weighted: bool) -> None:
        argument = "weighted_metrics" if weighted else "metrics"
        subject = f"{self.subject}.compile: {argument}"
        for i, of_output in enumerate(_spread_metrics(metrics, self.outputs, subject)):
            for one in of_output:
                metric = find_metric(one, self.losses[i], subject)
                prefix = f"{self.outputs[i]}_" if len(self.outputs) > 1 else ""
                name = f"{prefix}{metric.name}"
                if weighted and name != self._find_free_name(name):
                    name = f"{prefix}weighted_{metric.name}"
                self.metrics.append(BoundMetric(self._find_free_name(name), i, metric, weighted))

    def _find_free_name(self, name: str) -> str:
        """Return this name, or one with a number if another metric has it."""
        taken = {"loss", *(bound.name for bound in self.metrics)}
        number, free = 0, name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        return free

    def compute(
        self,
        ys: Sequence[Any],
        predictions: Sequence[Any],
        weights: Sequence[Any],
        masks: Sequence[Any],
        extra: Sequence[Any] = (),
        share: Any = None,
        updates: Updates = (),
    ) -> tuple[Any, list[Any], list[Any]]:
        """Return the loss of a batch, the losses of the outputs if there are several, and the metrics' statistics.

        ``weights`` and ``masks`` have one array, or None, for each output, or are empty.  ``extra`` is added to the
        loss as it is.  No gradient goes through the statistics.  ``share`` is for a part of a batch, which has this
        share of its examples: the losses of all parts add up to that of the batch.
        ``updates`` are those of layers' metrics.
        """
        if len(predictions) != len(self.outputs) or len(ys) != len(self.outputs):
            if not ys:
                raise ArgumentError(f"{self.subject}: there are no targets. Give y, or batches that are pairs (x, y).")
            raise ArgumentError(
                f"{self.subject}: the model has {len(predictions)} outputs and {len(self.outputs)} losses, but the "
                f"number of targets is {len(ys)}. Give one target for each output."
            )
        none = [None] * len(ys)
        weights, masks = weights or none, masks or none
        rows = zip(self.losses, self.loss_weights, ys, predictions, weights, masks, strict=True)
        parts = [(loss(y, p, w, mask), factor) for loss, factor, y, p, w, mask in rows if loss is not None]
        if share is not None:
            parts, extra = self._share_losses(parts, masks, share), [x * share for x in extra]
        terms = [value if factor == 1.0 else value * factor for value, factor in parts]
        terms += extra
        if not terms:
            raise ArgumentError(f"{self.subject}: there is no loss: give compile one, or call add_loss in a layer.")
        statistics = self._measure(ys, predictions, weights, masks, updates)
        return sum(terms[1:], terms[0]), [value for value, _ in parts] if self.loss_names else [], statistics

    def measure(
        self,
        ys: Sequence[Any],
        predictions: Sequence[Any],
        weights: Sequence[Any],
        masks: Sequence[Any],
        updates: Updates = (),
    ) -> tuple[list[Any], list[Any]]:
        """Return the losses of the outputs if there are several, and the metrics' statistics."""
        none = [None] * len(ys)
        weights, masks = weights or none, masks or none
        rows = zip(self.losses, ys, predictions, weights, masks, strict=True) if self.loss_names else ()
        losses = [loss(y, p, w, mask) for loss, y, p, w, mask in rows if loss is not None]
        return losses, self._measure(ys, predictions, weights, masks, updates)

    def _measure(
        self,
        ys: Sequence[Any],
        predictions: Sequence[Any],
        weights: Sequence[Any],
        masks: Sequence[Any],
        updates: Updates,
    ) -> list[Any]:
        """Return the statistics of every metric, through which no gradient goes."""
        seen = [stop_gradient(p) if isinstance(p, Tensor) else p for p in predictions] if self.metrics else []
        statistics = []
        for bound in self.metrics:
            i = bound.output
            if i == INNER:
                statistics.append(sum_updates(bound.metric, updates))
                continue
            weight = multiply_weights(weights[i] if bound.weighted else None, masks[i])
            statistics.append(list(bound.metric.collect(ys[i], seen[i], weight)))
        self.sizes = [len(sums) for sums in statistics]
        return statistics

    def _share_losses(self, parts: Sequence[Any], masks: Sequence[Any], share: Any) -> list[Any]:
        """Return what a part of a batch adds to the losses: a mean is that of the parts, weighted by their sizes."""
        used = [(loss, mask) for loss, mask in zip(self.losses, masks, strict=True) if loss is not None]
        for loss, mask in used:
            if mask is not None or loss.has_mask or loss.reduction not in ("sum_over_batch_size", "mean", "sum"):
                raise ArgumentError(
                    f"{self.subject}: the loss {loss.name} with a mask, or with reduction={loss.reduction!r}, is "
                    "not the sum or the mean of the losses of parts of a batch. Train without pool=, or take "
                    "reduction='sum'."
                )
        shares = [1.0 if loss.reduction == "sum" else share for loss, _ in used]
        return [(value * part, factor) for part, (value, factor) in zip(shares, parts, strict=True)]


def _spread(values: Any, outputs: Sequence[str], subject: str) -> list[Any]:
    """Return one entry for each output: of a dict by name, of a list, or the same for all."""
    if isinstance(values, Mapping) and not _is_described(values):
        _check_names(values, outputs, subject)
        return [values.get(name) for name in outputs]
    if isinstance(values, list | tuple) and (len(outputs) > 1 or len(values) != 1):
        if len(values) != len(outputs):
            raise ArgumentError(f"{subject}: got {len(values)} for {len(outputs)} outputs, {', '.join(outputs)}.")
        return list(values)
    return [values[0] if isinstance(values, list | tuple) else values] * len(outputs)


def _spread_metrics(metrics: MetricsLike, outputs: Sequence[str], subject: str) -> list[list[Any]]:
    """Return the metrics of each output: of a dict by name, of a list with as many entries, or the same for all."""
    if metrics is None:
        return [[] for _ in outputs]
    if isinstance(metrics, Mapping) and not _is_described(metrics):
        _check_names(metrics, outputs, subject)
        return [_as_list(metrics.get(name)) for name in outputs]
    listed = _as_list(metrics)
    nested = any(one is None or isinstance(one, list | tuple) for one in listed)
    if len(outputs) == 1:
        return [[one for part in listed for one in _as_list(part)]]
    if nested or len(listed) == len(outputs):
        if len(listed) != len(outputs):
            raise ArgumentError(f"{subject}: got {len(listed)} lists for {len(outputs)} outputs, {', '.join(outputs)}.")
        return [_as_list(one) for one in listed]
    return [listed for _ in outputs]


def _as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else [] if x is None else [x]


def _check_names(values: Mapping[str, Any], outputs: Sequence[str], subject: str) -> None:
    for name in values:
        if name not in outputs:
            raise ArgumentError(
                f"{subject}: there is no output {name!r}; there are {', '.join(outputs)}.{did_you_mean(name, outputs)}"
            )


# ---- files


def describe_settings(settings: Settings) -> dict[str, Any] | None:
    """Return the settings with losses and metrics by their names, as a file stores them; None if one has no name."""
    try:
        described = {
            "loss": describe_objective(settings.loss),
            "metrics": describe_objective(settings.metrics),
            "loss_weights": settings.loss_weights,
            "weighted_metrics": describe_objective(settings.weighted_metrics),
        }
    except LookupError:
        return None
    return {key: value for key, value in described.items() if value not in (None, [], ())} | {
        "metrics": described["metrics"]
    }


def describe_objective(identifier: Any) -> Any:
    """Return a loss or metric, or a structure of them, by name or by class and arguments; else raise LookupError."""
    if identifier is None or isinstance(identifier, str) or _is_described(identifier):
        return identifier
    if isinstance(identifier, Mapping):
        return {name: describe_objective(one) for name, one in identifier.items()}
    if isinstance(identifier, list | tuple):
        return [describe_objective(one) for one in identifier]
    kind = identifier if isinstance(identifier, type) else type(identifier)
    if issubclass(kind, Loss | Metric) and kind not in (FunctionLoss, FunctionMetric):
        config = {} if kind is identifier else identifier.get_config()
        called = name_custom(kind) or kind.__name__
        return {"class_name": called, "config": {key: _as_json(x) for key, x in config.items()}}
    name = _find_library_name(identifier)
    if name is not None:
        return name
    custom_name = name_custom(identifier)
    if custom_name is None:
        raise LookupError
    return {"class_name": "function", "config": custom_name}


def _as_json(x: Any) -> Any:
    return list(x) if isinstance(x, tuple) else x.tolist() if isinstance(x, np.ndarray | np.generic) else x


def _is_described(x: Any) -> bool:
    """Return whether this is a loss or metric as files have it: the name of its class, and its arguments."""
    return isinstance(x, Mapping) and "class_name" in x


def resolve_custom(identifier: Any) -> Any:
    """Return losses or metrics with the user's own in place of the names and descriptions that files have for them."""
    if isinstance(identifier, Mapping) and not _is_described(identifier):
        return {name: resolve_custom(one) for name, one in identifier.items()}
    if isinstance(identifier, list | tuple):
        return [resolve_custom(one) for one in identifier]
    custom = _find_own(identifier)
    return identifier if custom is None else custom


def _find_own(identifier: Any) -> Any:
    """Return the loss or metric of the user's, or the class of one, that a name or a description means; or None."""
    if not _is_described(identifier):
        return find_custom(identifier)
    if identifier["class_name"] == "function":
        return find_function(identifier["config"], "what it was compiled with")
    custom = find_custom(identifier["class_name"])
    if not isinstance(custom, type):
        return custom
    config, make = identifier.get("config", {}), getattr(custom, "from_config", None)
    return custom(**config) if make is None else make(config)
