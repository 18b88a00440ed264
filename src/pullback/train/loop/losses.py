"""Losses that training minimizes: functions of ``pb.metrics`` with arguments and a reduction.  ``pb.train.losses``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.names.answers import install_answers
from pullback.train.arguments import bind_arguments, list_arguments
from pullback.train.loop.metrics import functions
from pullback.train.loop.weights import REDUCTIONS, reduce_values
from pullback.typing import Value

__all__ = [
    "CTC", "BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy", "CategoricalHinge", "Circle", "CosineSimilarity", "Dice", "Hinge", "Huber",
    "KLDivergence", "LogCosh", "Loss", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError",
    "MeanSquaredLogarithmicError", "Poisson", "SparseCategoricalCrossentropy", "SquaredHinge", "Tversky",
]  # fmt: skip

Function = Callable[..., Any]
TAKES_CLASS_NUMBERS = (
    functions.sparse_categorical_crossentropy, functions.sparse_softmax_cross_entropy,
    functions.categorical_generalized_cross_entropy, functions.ctc,
)  # fmt: skip
TAKES_LOGITS = (
    functions.sigmoid_cross_entropy, functions.softmax_cross_entropy, functions.sparse_softmax_cross_entropy,
    functions.ctc,
)  # fmt: skip


class Loss:
    """A loss that training minimizes; one of your own has ``call(y_true, y_pred)``, with one number for each example.

    ``reduction`` makes one number of these: ``"sum_over_batch_size"`` (the mean), ``"sum"``,
    ``"mean_with_sample_weight"`` (over the sum of the weights) or ``"none"``.

    dtype: accepted as in Keras; losses have the dtype of the predictions.

    >>> class Cubic(pb.train.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return np.mean(np.abs(y_pred - y_true) ** 3, axis=-1)
    >>> Cubic()(np.zeros((2, 1)), np.array([[1.0], [2.0]]))
    np.float64(4.5)
    """

    sparse = False  # labels are class numbers
    logits = False  # predictions are logits, not probabilities

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: object = None
    ) -> None:
        if reduction not in REDUCTIONS:
            raise ArgumentError(f"{type(self).__name__}: reduction must be one of {REDUCTIONS}, got {reduction!r}.")
        self.name, self.reduction, self.dtype = name or type(self).__name__.lower(), reduction, dtype

    def call(self, y_true: Value, y_pred: Value) -> Any:
        """Return the loss of each example."""
        raise NotImplementedError(f"{type(self).__name__} has no call(y_true, y_pred).")

    @property
    def has_mask(self) -> bool:
        """Whether it may find out itself which values count."""
        return type(self).find_mask is not Loss.find_mask

    def find_mask(self, y_true: Value, values: Value) -> Any:
        """Return which values count; None for all of them."""
        return None

    def __call__(
        self, y_true: Value, y_pred: Value, sample_weight: Value | None = None, mask: Value | None = None
    ) -> Any:
        """Return the loss of a batch; ``mask`` says which values count."""
        values = self.call(y_true, y_pred)
        if type(values) in (float, int):  # not NumPy's, which are weighted
            return values
        if not hasattr(values, "shape"):
            raise ArgumentError(
                f"{self.name}: a loss gives one number or one for each example, this one gave {type(values).__name__}."
            )
        found = self.find_mask(y_true, values)
        if found is not None:
            mask = found if mask is None else mask * found
        if sample_weight is None and mask is None and self.reduction in ("sum_over_batch_size", "mean"):
            return np.mean(values) if values.shape else values
        return reduce_values(self.name, values, sample_weight, mask, self.reduction)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of every loss, to which those of a class of your own are added."""
        return {"name": self.name, "reduction": self.reduction}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, reduction={self.reduction!r})"


class FunctionLoss(Loss):
    """A loss from a function of labels and predictions, and its further arguments."""

    def __init__(
        self,
        function: Function,
        name: str | None = None,
        reduction: str | None = "sum_over_batch_size",
        **arguments: Any,
    ) -> None:
        super().__init__(name or getattr(function, "__name__", "loss"), reduction)
        self.function, self.arguments = function, arguments
        self.sparse = function in TAKES_CLASS_NUMBERS
        self.logits = function in TAKES_LOGITS or bool(arguments.get("from_logits"))

    def call(self, y_true: Value, y_pred: Value) -> Any:
        return self.function(y_true, y_pred, **self.arguments)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.arguments}

    @property
    def has_mask(self) -> bool:
        return self.arguments.get("ignore_class") is not None or self.function is functions.circle

    def find_mask(self, y_true: Value, values: Value) -> Any:
        ignored = self.arguments.get("ignore_class")
        if ignored is not None:
            return np.reshape(y_true != ignored, values.shape).astype(values.dtype)
        return (values > 0).astype(values.dtype) if self.function is functions.circle else None


OPTIONS = ("reduction", "name", "dtype")


def _make_class(class_name: str, function: Function, name: str | None = None) -> type[FunctionLoss]:
    """Return the class of losses by one function; the function's arguments are those of the class."""

    def init(self: FunctionLoss, *args: Any, **more: Any) -> None:
        options = {key: more.pop(key) for key in OPTIONS if key in more}
        options.pop("dtype", None)
        options.setdefault("name", name or function.__name__)
        arguments = bind_arguments(class_name, function, args, more, OPTIONS)
        FunctionLoss.__init__(self, function, **options, **arguments)

    takes = ", ".join([*list_arguments(function), "reduction", "name"])
    text = f"The loss ``pb.metrics.{function.__name__}``; takes {takes}."
    return type(class_name, (FunctionLoss,), {"__init__": init, "__module__": __name__, "__doc__": text})


MeanSquaredError = _make_class("MeanSquaredError", functions.mean_squared_error)
MeanAbsoluteError = _make_class("MeanAbsoluteError", functions.mean_absolute_error)
MeanAbsolutePercentageError = _make_class("MeanAbsolutePercentageError", functions.mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _make_class("MeanSquaredLogarithmicError", functions.mean_squared_logarithmic_error)
Huber = _make_class("Huber", functions.huber_loss)
LogCosh = _make_class("LogCosh", functions.logcosh, "log_cosh")
Poisson = _make_class("Poisson", functions.poisson)
CosineSimilarity = _make_class("CosineSimilarity", functions.cosine_proximity, "cosine_similarity")
Hinge = _make_class("Hinge", functions.hinge)
SquaredHinge = _make_class("SquaredHinge", functions.squared_hinge)
CategoricalHinge = _make_class("CategoricalHinge", functions.categorical_hinge)
KLDivergence = _make_class("KLDivergence", functions.kl_divergence, "kl_divergence")
BinaryCrossentropy = _make_class("BinaryCrossentropy", functions.binary_crossentropy)
BinaryFocalCrossentropy = _make_class("BinaryFocalCrossentropy", functions.binary_focal_crossentropy)
CategoricalCrossentropy = _make_class("CategoricalCrossentropy", functions.categorical_crossentropy)
CategoricalFocalCrossentropy = _make_class("CategoricalFocalCrossentropy", functions.categorical_focal_crossentropy)
SparseCategoricalCrossentropy = _make_class("SparseCategoricalCrossentropy", functions.sparse_categorical_crossentropy)
CategoricalGeneralizedCrossEntropy = _make_class(
    "CategoricalGeneralizedCrossEntropy", functions.categorical_generalized_cross_entropy
)
Dice = _make_class("Dice", functions.dice)
Tversky = _make_class("Tversky", functions.tversky)
Circle = _make_class("Circle", functions.circle)
CTC = _make_class("CTC", functions.ctc)

install_answers("pb.train.losses")
