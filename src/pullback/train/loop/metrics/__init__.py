"""Metrics: functions with one number for each example, and classes that are exact over many batches: ``pb.metrics``."""

from __future__ import annotations

from pullback.names.answers import install_answers as _install_answers
from pullback.train.loop.metrics.classes import *
from pullback.train.loop.metrics.confusion import *
from pullback.train.loop.metrics.functions import *
from pullback.train.loop.metrics.metric import Mean as Mean
from pullback.train.loop.metrics.metric import MeanMetricWrapper as MeanMetricWrapper
from pullback.train.loop.metrics.metric import Metric as Metric
from pullback.train.loop.metrics.metric import Sum as Sum
from pullback.train.loop.metrics.regions import *
from pullback.train.loop.metrics.regression import *

_install_answers("pb.metrics")
