"""Metrics: functions with one number for each example, and classes that are exact over many batches: ``pb.metrics``."""

from __future__ import annotations

# fmt: off
from pullback.train.loop.metrics.classes import (
    Accuracy as Accuracy,
)
from pullback.train.loop.metrics.classes import (
    BinaryAccuracy as BinaryAccuracy,
)
from pullback.train.loop.metrics.classes import (
    BinaryCrossentropy as BinaryCrossentropy,
)
from pullback.train.loop.metrics.classes import (
    CategoricalAccuracy as CategoricalAccuracy,
)
from pullback.train.loop.metrics.classes import (
    CategoricalCrossentropy as CategoricalCrossentropy,
)
from pullback.train.loop.metrics.classes import (
    CategoricalHinge as CategoricalHinge,
)
from pullback.train.loop.metrics.classes import (
    ConcordanceCorrelation as ConcordanceCorrelation,
)
from pullback.train.loop.metrics.classes import (
    CosineSimilarity as CosineSimilarity,
)
from pullback.train.loop.metrics.classes import (
    Hinge as Hinge,
)
from pullback.train.loop.metrics.classes import (
    KLDivergence as KLDivergence,
)
from pullback.train.loop.metrics.classes import (
    LogCoshError as LogCoshError,
)
from pullback.train.loop.metrics.classes import (
    MeanAbsoluteError as MeanAbsoluteError,
)
from pullback.train.loop.metrics.classes import (
    MeanAbsolutePercentageError as MeanAbsolutePercentageError,
)
from pullback.train.loop.metrics.classes import (
    MeanSquaredError as MeanSquaredError,
)
from pullback.train.loop.metrics.classes import (
    MeanSquaredLogarithmicError as MeanSquaredLogarithmicError,
)
from pullback.train.loop.metrics.classes import (
    PearsonCorrelation as PearsonCorrelation,
)
from pullback.train.loop.metrics.classes import (
    Poisson as Poisson,
)
from pullback.train.loop.metrics.classes import (
    SparseCategoricalAccuracy as SparseCategoricalAccuracy,
)
from pullback.train.loop.metrics.classes import (
    SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
)
from pullback.train.loop.metrics.classes import (
    SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy,
)
from pullback.train.loop.metrics.classes import (
    SquaredHinge as SquaredHinge,
)
from pullback.train.loop.metrics.classes import (
    TopKCategoricalAccuracy as TopKCategoricalAccuracy,
)
from pullback.train.loop.metrics.confusion import (
    AUC as AUC,
)
from pullback.train.loop.metrics.confusion import (
    F1Score as F1Score,
)
from pullback.train.loop.metrics.confusion import (
    FalseNegatives as FalseNegatives,
)
from pullback.train.loop.metrics.confusion import (
    FalsePositives as FalsePositives,
)
from pullback.train.loop.metrics.confusion import (
    FBetaScore as FBetaScore,
)
from pullback.train.loop.metrics.confusion import (
    Precision as Precision,
)
from pullback.train.loop.metrics.confusion import (
    PrecisionAtRecall as PrecisionAtRecall,
)
from pullback.train.loop.metrics.confusion import (
    Recall as Recall,
)
from pullback.train.loop.metrics.confusion import (
    RecallAtPrecision as RecallAtPrecision,
)
from pullback.train.loop.metrics.confusion import (
    SensitivityAtSpecificity as SensitivityAtSpecificity,
)
from pullback.train.loop.metrics.confusion import (
    SpecificityAtSensitivity as SpecificityAtSensitivity,
)
from pullback.train.loop.metrics.confusion import (
    TrueNegatives as TrueNegatives,
)
from pullback.train.loop.metrics.confusion import (
    TruePositives as TruePositives,
)
from pullback.train.loop.metrics.ctc import (
    ctc as ctc,
)
from pullback.train.loop.metrics.functions import (
    accuracy as accuracy,
)
from pullback.train.loop.metrics.functions import (
    binary_accuracy as binary_accuracy,
)
from pullback.train.loop.metrics.functions import (
    binary_crossentropy as binary_crossentropy,
)
from pullback.train.loop.metrics.functions import (
    binary_focal_crossentropy as binary_focal_crossentropy,
)
from pullback.train.loop.metrics.functions import (
    categorical_accuracy as categorical_accuracy,
)
from pullback.train.loop.metrics.functions import (
    categorical_crossentropy as categorical_crossentropy,
)
from pullback.train.loop.metrics.functions import (
    categorical_focal_crossentropy as categorical_focal_crossentropy,
)
from pullback.train.loop.metrics.functions import (
    categorical_generalized_cross_entropy as categorical_generalized_cross_entropy,
)
from pullback.train.loop.metrics.functions import (
    categorical_hinge as categorical_hinge,
)
from pullback.train.loop.metrics.functions import (
    circle as circle,
)
from pullback.train.loop.metrics.functions import (
    concordance_correlation as concordance_correlation,
)
from pullback.train.loop.metrics.functions import (
    cosine_proximity as cosine_proximity,
)
from pullback.train.loop.metrics.functions import (
    cosine_similarity as cosine_similarity,
)
from pullback.train.loop.metrics.functions import (
    dice as dice,
)
from pullback.train.loop.metrics.functions import (
    hinge as hinge,
)
from pullback.train.loop.metrics.functions import (
    huber as huber,
)
from pullback.train.loop.metrics.functions import (
    huber_loss as huber_loss,
)
from pullback.train.loop.metrics.functions import (
    kl_divergence as kl_divergence,
)
from pullback.train.loop.metrics.functions import (
    kullback_leibler_divergence as kullback_leibler_divergence,
)
from pullback.train.loop.metrics.functions import (
    log_cosh as log_cosh,
)
from pullback.train.loop.metrics.functions import (
    logcosh as logcosh,
)
from pullback.train.loop.metrics.functions import (
    mae as mae,
)
from pullback.train.loop.metrics.functions import (
    mape as mape,
)
from pullback.train.loop.metrics.functions import (
    mean_absolute_error as mean_absolute_error,
)
from pullback.train.loop.metrics.functions import (
    mean_absolute_percentage_error as mean_absolute_percentage_error,
)
from pullback.train.loop.metrics.functions import (
    mean_squared_error as mean_squared_error,
)
from pullback.train.loop.metrics.functions import (
    mean_squared_logarithmic_error as mean_squared_logarithmic_error,
)
from pullback.train.loop.metrics.functions import (
    mse as mse,
)
from pullback.train.loop.metrics.functions import (
    msle as msle,
)
from pullback.train.loop.metrics.functions import (
    pearson_correlation as pearson_correlation,
)
from pullback.train.loop.metrics.functions import (
    poisson as poisson,
)
from pullback.train.loop.metrics.functions import (
    precision as precision,
)
from pullback.train.loop.metrics.functions import (
    r2_score as r2_score,
)
from pullback.train.loop.metrics.functions import (
    recall as recall,
)
from pullback.train.loop.metrics.functions import (
    sigmoid_cross_entropy as sigmoid_cross_entropy,
)
from pullback.train.loop.metrics.functions import (
    softmax_cross_entropy as softmax_cross_entropy,
)
from pullback.train.loop.metrics.functions import (
    sparse_categorical_accuracy as sparse_categorical_accuracy,
)
from pullback.train.loop.metrics.functions import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from pullback.train.loop.metrics.functions import (
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
from pullback.train.loop.metrics.functions import (
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
)
from pullback.train.loop.metrics.functions import (
    squared_hinge as squared_hinge,
)
from pullback.train.loop.metrics.functions import (
    top_k_categorical_accuracy as top_k_categorical_accuracy,
)
from pullback.train.loop.metrics.functions import (
    tversky as tversky,
)
from pullback.train.loop.metrics.metric import (
    Mean as Mean,
)
from pullback.train.loop.metrics.metric import (
    MeanMetricWrapper as MeanMetricWrapper,
)
from pullback.train.loop.metrics.metric import (
    Metric as Metric,
)
from pullback.train.loop.metrics.metric import (
    Sum as Sum,
)
from pullback.train.loop.metrics.regions import (
    BinaryIoU as BinaryIoU,
)
from pullback.train.loop.metrics.regions import (
    IoU as IoU,
)
from pullback.train.loop.metrics.regions import (
    MeanIoU as MeanIoU,
)
from pullback.train.loop.metrics.regions import (
    OneHotIoU as OneHotIoU,
)
from pullback.train.loop.metrics.regions import (
    OneHotMeanIoU as OneHotMeanIoU,
)
from pullback.train.loop.metrics.regression import (
    R2Score as R2Score,
)
from pullback.train.loop.metrics.regression import (
    RootMeanSquaredError as RootMeanSquaredError,
)
# fmt: on
