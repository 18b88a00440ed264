"""Metrics: functions with one number for each example, and classes that are exact over many batches: ``pb.metrics``."""

from __future__ import annotations

from pullback.names.answers import install_answers as _install_answers
from pullback.train.arguments import describe_arguments as _describe_arguments
from pullback.train.loop.metrics.classes import *
from pullback.train.loop.metrics.confusion import *
from pullback.train.loop.metrics.functions import *
from pullback.train.loop.metrics.metric import Mean as Mean
from pullback.train.loop.metrics.metric import MeanMetricWrapper as MeanMetricWrapper
from pullback.train.loop.metrics.metric import Metric as Metric
from pullback.train.loop.metrics.metric import Sum as Sum
from pullback.train.loop.metrics.regions import *
from pullback.train.loop.metrics.regression import *

_SHARED_ARGUMENTS = {
    "y_true": "the true values.",
    "y_pred": "the predicted values.",
    "axis": "the axis; a negative one counts from the last.",
    "from_logits": "whether predictions are logits, not probabilities.",
    "threshold": "the number above which a prediction is positive.",
    "thresholds": "the thresholds above which a prediction is positive.",
    "num_thresholds": "the number of thresholds from 0 to 1.",
    "class_id": "the only class that is counted.",
    "num_classes": "how many classes there are.",
    "target_class_ids": "the classes that count.",
    "ignore_class": "a class whose examples do not count.",
    "sparse_y_true": "whether labels are integers, not one-hot.",
    "sparse_y_pred": "whether predictions are integers, not scores.",
    "dtype": "accepted as in Keras; sums are always float64.",
}
_public = {one for name, one in globals().items() if not name.startswith("_") and callable(one)}
_describe_arguments(_public, _SHARED_ARGUMENTS)
_install_answers("pb.metrics")
