"""Metrics with arguments that are means over the examples of a function: one class for each function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.train.arguments import bind_arguments, list_arguments
from pullback.train.loop.metrics import functions
from pullback.train.loop.metrics.metric import FunctionMetric

__all__ = [
    "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy", "CategoricalCrossentropy",
    "CategoricalHinge", "ConcordanceCorrelation", "CosineSimilarity", "Hinge", "KLDivergence", "LogCoshError",
    "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError",
    "PearsonCorrelation", "Poisson", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy", "SquaredHinge", "TopKCategoricalAccuracy",
]  # fmt: skip


class _MeanOfFunction(FunctionMetric):
    """The mean over all examples of one of the functions of ``pb.metrics``."""

    of: Callable[..., Any]
    default_name: str

    def __init__(self, *args: Any, name: str | None = None, dtype: object = None, **arguments: Any) -> None:
        if args and isinstance(args[0], str):  # as in Keras, a text in front is the name
            name, args = args[0], args[1:]
        every = bind_arguments(type(self).__name__, type(self).of, args, arguments, ("name", "dtype"))
        super().__init__(type(self).of, name or self.default_name, dtype, **every)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, **self.arguments}


def _make_class(class_name: str, function: Callable[..., Any], name: str | None = None) -> type[_MeanOfFunction]:
    """Return the class of a function; its arguments after labels and predictions are those of the class."""
    takes = ", ".join(f"``{one}``" for one in [*list_arguments(function), "name", "dtype"])
    body = {
        "__module__": __name__,
        "__doc__": f"The mean over all examples of ``pb.metrics.{function.__name__}``; takes {takes}.",
        "of": staticmethod(function),
        "default_name": name or function.__name__,
    }
    return type(class_name, (_MeanOfFunction,), body)


Accuracy = _make_class("Accuracy", functions.accuracy)
BinaryAccuracy = _make_class("BinaryAccuracy", functions.binary_accuracy)
CategoricalAccuracy = _make_class("CategoricalAccuracy", functions.categorical_accuracy)
SparseCategoricalAccuracy = _make_class("SparseCategoricalAccuracy", functions.sparse_categorical_accuracy)
TopKCategoricalAccuracy = _make_class("TopKCategoricalAccuracy", functions.top_k_categorical_accuracy)
SparseTopKCategoricalAccuracy = _make_class(
    "SparseTopKCategoricalAccuracy", functions.sparse_top_k_categorical_accuracy
)
BinaryCrossentropy = _make_class("BinaryCrossentropy", functions.binary_crossentropy)
CategoricalCrossentropy = _make_class("CategoricalCrossentropy", functions.categorical_crossentropy)
SparseCategoricalCrossentropy = _make_class("SparseCategoricalCrossentropy", functions.sparse_categorical_crossentropy)
KLDivergence = _make_class("KLDivergence", functions.kl_divergence, "kl_divergence")
Poisson = _make_class("Poisson", functions.poisson)
Hinge = _make_class("Hinge", functions.hinge)
SquaredHinge = _make_class("SquaredHinge", functions.squared_hinge)
CategoricalHinge = _make_class("CategoricalHinge", functions.categorical_hinge)
MeanSquaredError = _make_class("MeanSquaredError", functions.mean_squared_error)
MeanAbsoluteError = _make_class("MeanAbsoluteError", functions.mean_absolute_error)
MeanAbsolutePercentageError = _make_class("MeanAbsolutePercentageError", functions.mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _make_class("MeanSquaredLogarithmicError", functions.mean_squared_logarithmic_error)
CosineSimilarity = _make_class("CosineSimilarity", functions.cosine_similarity)
LogCoshError = _make_class("LogCoshError", functions.logcosh)
PearsonCorrelation = _make_class("PearsonCorrelation", functions.pearson_correlation)
ConcordanceCorrelation = _make_class("ConcordanceCorrelation", functions.concordance_correlation)
