"""Loss functions of labels and predictions, as one number or one per example."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.accelerate import run_compiled_if, run_elements
from pullback.core.axes import elementwise2, keeps_shape
from pullback.core.calculus import partials
from pullback.core.composition import check_numbers, pick
from pullback.core.convert import as_array, as_number, check_real
from pullback.core.lowering import scalar
from pullback.core.memory import unwrap_scratch
from pullback.core.op import op
from pullback.core.suggestions import did_you_mean
from pullback.core.tensor import RAW, Tensor, all_values, may_hold, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.numerics.adjoints import find_repeated, replace_zeros, select
from pullback.numerics.axis_arguments import resolve_axes
from pullback.numerics.small_arrays import max_quickly, sum_quickly

if TYPE_CHECKING:
    from pullback.typing import Array, Axis, TensorLike, Value

__all__ = [
    "Reduction", "absolute_difference", "compute_weighted_loss", "cosine_distance", "hinge_loss", "huber_loss",
    "log_loss", "mean_squared_error", "sigmoid_cross_entropy", "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy", "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy",
    "sparse_softmax_cross_entropy_with_logits",
]  # fmt: skip

Shape = tuple[int, ...]
MIN_COMPILED = 1 << 16  # elements from which machine code is worth compiling
quick_exp, quick_log1p = run_elements(np.exp), run_elements(np.log1p)


class Reduction(IntEnum):
    """How the losses of the examples are reduced to one: the four ways of TensorFlow.js, with the same numbers.

    >>> pb.losses.Reduction.MEAN == 1
    True
    """

    NONE = 0
    MEAN = 1
    SUM = 2
    SUM_BY_NONZERO_WEIGHTS = 3


def _check_reduction(name: str, reduction: Any) -> Reduction:
    if reduction is None:
        return Reduction.SUM_BY_NONZERO_WEIGHTS
    try:
        return Reduction[reduction.upper()] if isinstance(reduction, str) else Reduction(reduction)
    except (KeyError, ValueError, TypeError):
        known = ", ".join(f"{r.name} ({r.value})" for r in Reduction)
        raise ArgumentError(
            f"{name}: reduction must be one of {known}, got {reduction!r}."
            f"{did_you_mean(reduction, Reduction.__members__)}"
        ) from None


# ---- one loss per element


def _prepare_pair(name: str, first: str, x: Any, second: str, y: Any) -> tuple[Any, Any]:
    """Return two arguments as operands, with integers in the float dtype of the other one."""
    x, y = check_numbers(name, first, x), check_numbers(name, second, y)
    if x.dtype != y.dtype:
        if isinstance(x, RAW) and x.dtype.kind in "iub" and y.dtype.kind == "f":
            x = x.astype(y.dtype)
        elif isinstance(y, RAW) and y.dtype.kind in "iub" and x.dtype.kind == "f":
            y = y.astype(x.dtype)
    return x, y


def _check_pair(name: str, first: str, x: Any, second: str, y: Any) -> tuple[Any, Any]:
    """Return labels and predictions, checked to have one shape: broadcasting would hide a mistake."""
    x, y = _prepare_pair(name, first, x, second, y)
    if x.shape != y.shape:
        raise ShapeError(
            f"{name}: {first} of shape {x.shape} and {second} of shape {y.shape} must have the same shape. "
            "Reshape or broadcast one of them first."
        )
    return x, y


def _reduce_weighted(name: str, losses: Any, weights: Any, reduction: Any) -> Any:
    kind = _check_reduction(name, reduction)
    if weights is None:
        if kind == Reduction.NONE:
            return losses
        z = np.sum(losses)
        return z if kind == Reduction.SUM else z / max(losses.size, 1)
    losses, weights = _prepare_pair(name, "losses", losses, "weights", weights)
    try:
        fits = np.broadcast_shapes(losses.shape, weights.shape) == losses.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{name}: weights of shape {weights.shape} do not broadcast to the losses, of shape {losses.shape}. "
            "Give one weight, one per loss, or length 1 along the axes that share it."
        )
    z = losses * weights
    if kind == Reduction.NONE:
        return z
    z = np.sum(z)
    if kind == Reduction.SUM:
        return z
    repeats = losses.size // max(weights.size, 1)  # how many losses share a weight
    if kind == Reduction.SUM_BY_NONZERO_WEIGHTS:
        counts: Any = np.count_nonzero(strip(weights))
        return z / (np.maximum(counts * repeats, 1) if isinstance(counts, Tensor) else max(int(counts) * repeats, 1))
    mass = np.sum(weights) * repeats
    return select(mass == 0, 0, z / replace_zeros(mass))


def compute_weighted_loss(
    losses: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Any:
    """Return the losses times their weights, reduced: by default their sum, divided by how many weights are not 0.

    ``Reduction.MEAN`` divides by the sum of the weights.  Where all weights are 0 the loss is 0.

    losses: the loss of each element.
    weights: how much each element counts: a number, or an array that is broadcast.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.compute_weighted_loss(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0]))
    np.float64(2.0)
    >>> pb.losses.compute_weighted_loss(np.array([1.0, 2.0]), 0.5, pb.losses.Reduction.NONE)
    array([0.5, 1. ])
    """
    name = "compute_weighted_loss"
    return _reduce_weighted(name, check_numbers(name, "losses", losses), weights, reduction)


def absolute_difference(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Any:
    """Return ``abs(labels - predictions)``, weighted and reduced.

    labels: the true values.
    predictions: the predicted values, of the same shape.
    weights: how much each element counts: a number, or an array that is broadcast.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.absolute_difference(np.array([1.0, 2.0]), np.array([1.5, 4.0]))
    np.float64(1.25)
    """
    x, y = _check_pair("absolute_difference", "labels", labels, "predictions", predictions)
    return _reduce_weighted("absolute_difference", np.abs(x - y), weights, reduction)


def mean_squared_error(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Any:
    """Return ``(labels - predictions) ** 2``, weighted and reduced.

    labels: the true values.
    predictions: the predicted values, of the same shape.
    weights: how much each element counts: a number, or an array that is broadcast.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.mean_squared_error(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(2.0)
    """
    x, y = _check_pair("mean_squared_error", "labels", labels, "predictions", predictions)
    return _reduce_weighted("mean_squared_error", np.square(x - y), weights, reduction)


def cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    axis: Axis,
    weights: TensorLike | None = None,
    reduction: str | int | None = None,
) -> Any:
    """Return ``1 - sum(labels * predictions)`` over ``axis``, of vectors that have length 1 already.

    labels: the true values.
    predictions: the predicted values, of the same shape.
    axis: the axis; a negative one counts from the last.
    weights: how much each element counts: a number, or an array that is broadcast.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.cosine_distance(np.array([0.0, 1.0]), np.array([0.6, 0.8]), 0)
    np.float64(0.19999999999999996)
    """
    x, y = _check_pair("cosine_distance", "labels", labels, "predictions", predictions)
    z = 1 - np.sum(x * y, axis=resolve_axes(len(x.shape), axis, "cosine_distance"), keepdims=True)
    return _reduce_weighted("cosine_distance", z, weights, reduction)


def hinge_loss(
    labels: TensorLike, predictions: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Any:
    """Return the hinge loss, weighted and reduced; labels are 0 or 1.

    labels: the true values.
    predictions: the predicted values, of the same shape.
    weights: how much each element counts: a number, or an array that is broadcast.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.hinge_loss(np.array([1.0, 0.0]), np.array([0.5, -3.0]), reduction=0)
    array([0.5, 0. ])
    """
    x, y = _check_pair("hinge_loss", "labels", labels, "predictions", predictions)
    z = 1 - (x * 2 - 1) * y
    return _reduce_weighted("hinge_loss", select(z <= 0, 0, z), weights, reduction)


def _huber(x: Array, delta: float = 1.0) -> Any:
    check_real("huber", x)
    size = np.abs(x)
    near = np.minimum(size, delta)
    return (size - near * 0.5) * near


def _pull_huber(g: Value, x: Value, delta: float) -> Any:
    return g * np.minimum(np.maximum(x, -delta), delta)


_pull_huber_quickly = run_compiled_if(lambda g, x, delta: x.size >= MIN_COMPILED, _pull_huber)


def _choose_pull_huber(g: Value, x: Value, delta: float) -> Any:
    g, x = unwrap_scratch(g), unwrap_scratch(x)
    if type(g) is type(x) is np.ndarray:
        return _pull_huber_quickly(find_repeated(g), x, delta)
    return _pull_huber(g, x, delta)


@op(
    _huber,
    acts=keeps_shape({}, {"delta": 0.5}, {"delta": 5.0}),
    d=partials(_choose_pull_huber),
    run=run_compiled_if(lambda x, delta: x.size >= MIN_COMPILED, _huber),
    lower=scalar(
        lambda s, x, delta: s.select(s.less(s.absolute(x), delta), x * x * 0.5, (s.absolute(x) - delta * 0.5) * delta)
    ),
)
def huber(x: TensorLike, /, delta: float = 1.0) -> Any:
    """Return half the square of ``x`` up to ``delta``, and a linear function beyond.

    >>> huber(pb.tensor([0.5, 3.0]))
    Tensor([0.125, 2.5], dtype=float32)
    """


def huber_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    delta: float | Value | None = 1.0,
    reduction: str | int | None = None,
) -> Any:
    """Return the Huber loss: quadratic for differences up to ``delta``, linear beyond; weighted and reduced.

    labels: the true values.
    predictions: the predicted values, of the same shape.
    weights: how much each element counts: a number, or an array that is broadcast.
    delta: where squares end and absolute values begin.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.huber_loss(np.array([1.0, 2.0]), np.array([1.5, 5.0]), reduction=0)
    array([0.125, 2.5  ])
    """
    x, y = _check_pair("huber_loss", "labels", labels, "predictions", predictions)
    delta = 1.0 if delta is None else float(as_number("huber_loss", "delta", delta))
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be positive, got {delta}.")
    return _reduce_weighted("huber_loss", huber(x - y, delta), weights, reduction)


def log_loss(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    epsilon: float | None = 1e-7,
    reduction: str | int | None = None,
) -> Any:
    """Return the cross entropy of probabilities, ``epsilon`` keeping the logarithms finite.

    labels: the true values.
    predictions: the predicted values, of the same shape.
    weights: how much each element counts: a number, or an array that is broadcast.
    epsilon: what is added to probabilities before the logarithm.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.log_loss(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    np.float64(0.6931469805599654)
    """
    x, y = _check_pair("log_loss", "labels", labels, "predictions", predictions)
    epsilon = 1e-7 if epsilon is None else float(as_number("log_loss", "epsilon", epsilon, 0))
    z = -(x * np.log(y + epsilon)) - (1 - x) * np.log(1 - y + epsilon)
    return _reduce_weighted("log_loss", z, weights, reduction)


# ---- from logits


def _sigmoid(x: Value) -> Any:
    if isinstance(x, Tensor):
        return x.sigmoid()
    e = quick_exp(np.minimum(x, np.floor(np.log(np.finfo(x.dtype).max))))  # no overflow to the right
    return e / (e + 1)


def _sigmoid_cross_entropy(labels: Array, logits: Array) -> Any:
    check_real("sigmoid_cross_entropy_with_logits", logits, "logits")
    if hasattr(logits, "dtype") and logits.dtype.kind != "f":  # the negative of an unsigned integer wraps around
        logits = logits.astype(np.result_type(logits.dtype, np.float32))
    return np.maximum(logits, 0) - logits * labels + quick_log1p(quick_exp(-np.abs(logits)))


@op(
    _sigmoid_cross_entropy,
    acts=elementwise2,
    d=partials(lambda g, logits: -(g * logits), lambda g, labels, logits: g * (_sigmoid(logits) - labels)),
    lower=scalar(lambda s, x, y: s.maximum(y, 0) - x * y + s.log1p(s.exp(-s.absolute(y)))),
)
def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, /) -> Any:
    """Return the cross entropy of ``sigmoid(logits)``, without overflow: one loss per element.

    labels: probabilities.
    logits: scores, whose exponentials are proportional to probabilities.

    >>> pb.losses.sigmoid_cross_entropy_with_logits(np.array([0.0, 1.0]), np.array([-1000.0, -1000.0]))
    array([   0., 1000.])
    """


def _smooth_labels(name: str, labels: Value, smoothing: float | Value | None, share: float) -> Any:
    """Return labels moved by ``smoothing`` towards the uniform ``share``."""
    if smoothing is None or as_number(name, "label_smoothing", smoothing, 0, 1) == 0:
        return labels
    rest, moved = 1 - smoothing, smoothing * share
    return labels * rest + moved


def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Any:
    """Return the binary cross entropy of ``sigmoid(logits)`` for every element, weighted and reduced.

    multi_class_labels: 0 or 1 for each class.
    logits: scores, whose exponentials are proportional to probabilities.
    weights: how much each element counts: a number, or an array that is broadcast.
    label_smoothing: how far labels are moved towards one half.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.sigmoid_cross_entropy(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    np.float64(0.6931471805599453)
    """
    x, y = _check_pair("sigmoid_cross_entropy", "multi_class_labels", multi_class_labels, "logits", logits)
    x = _smooth_labels("sigmoid_cross_entropy", x, label_smoothing, 0.5)
    return _reduce_weighted("sigmoid_cross_entropy", sigmoid_cross_entropy_with_logits(x, y), weights, reduction)


def _log_softmax(x: Value) -> Any:
    """Return the log-softmax over the last axis."""
    if isinstance(x, Tensor):
        return x.log_softmax()
    if not x.size:
        return x
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    x = x - max_quickly(x, -1, True)
    return x - np.log(sum_quickly(quick_exp(x), -1, True))


def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Any:
    """Return the cross entropy of ``softmax(logits)`` over the last axis: one loss per example.

    The labels may be any numbers, and have a gradient too.

    labels: probabilities of the classes, along the last axis.
    logits: scores, whose exponentials are proportional to probabilities.

    >>> pb.losses.softmax_cross_entropy_with_logits(np.array([[0.0, 1.0]]), np.array([[1000.0, 1000.0]]))
    array([0.69314718])
    """
    name = "softmax_cross_entropy_with_logits"
    x, y = _check_pair(name, "labels", labels, "logits", logits)
    if not y.shape:
        raise ShapeError(f"{name}: logits must have an axis of classes, got rank 0.")
    if not y.shape[-1]:
        raise ShapeError(f"{name}: logits must have one class at least along the last axis, got shape {y.shape}.")
    log_p = _log_softmax(y)
    with np.errstate(invalid="ignore"):
        z = np.sum(log_p * x, axis=-1)
    if may_hold(np.isnan(strip(z))):  # 0 * log(0) is 0
        log_p = select((strip(x) == 0) & (strip(log_p) == -np.inf), 0, log_p)
        z = np.sum(log_p * x, axis=-1)
    return -z


def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike | None = None,
    label_smoothing: float | Value = 0,
    reduction: str | int | None = None,
) -> Any:
    """Return the cross entropy of ``softmax(logits)`` over the last axis, weighted by example and reduced.

    onehot_labels: probabilities of the classes along the last axis.
    logits: scores, whose exponentials are proportional to probabilities.
    weights: how much each element counts: a number, or an array that is broadcast.
    label_smoothing: the share of each label that is spread evenly over all classes.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.softmax_cross_entropy(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 0.0], [9.0, -9.0]]))
    np.float64(0.346573597894...)
    """
    name = "softmax_cross_entropy"
    x, y = _check_pair(name, "onehot_labels", onehot_labels, "logits", logits)
    x = _smooth_labels(name, x, label_smoothing, 1 / max(x.shape[-1] if x.shape else 1, 1))
    return _reduce_weighted(name, softmax_cross_entropy_with_logits(x, y), weights, reduction)


# ---- integer labels


def _flatten_labels(labels: TensorLike, shape: Shape) -> Any:
    """Return the flat positions of the labelled logits; the labels are checked."""
    name = "sparse_softmax_cross_entropy"
    if isinstance(labels, list | tuple):  # of Python's integers, which would be floats
        listed = as_array(labels, subject=f"{name}: labels")
        labels = listed.astype(np.int64) if np.all(listed == np.floor(listed)) else listed
    labels = strip(labels)
    labels = labels if isinstance(labels, Tensor) else np.asarray(labels)
    if labels.dtype.kind not in "iu":
        raise ArgumentError(f"{name}: labels must be integers, got {labels.dtype}; cast them to int32.")
    if not shape or labels.shape != shape[:-1]:
        raise ShapeError(
            f"{name}: labels of shape {labels.shape} and logits of shape {shape}: expected the shape of the "
            "logits without their last axis, the classes."
        )
    n = shape[-1]
    values = all_values(labels)
    if values.size and values.view(values.dtype.str.replace("i", "u")).max() >= n:  # read so, -1 is large
        wrong = next(int(i) for i in values.ravel() if not 0 <= i < n)
        raise ShapeError(f"{name}: the label {wrong} is not one of the {n} classes, 0 to {n - 1}.")
    return labels + n * np.arange(labels.size).reshape(labels.shape)


def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike) -> Any:
    """Return ``softmax_cross_entropy_with_logits`` for integer labels, without one-hot vectors.

    labels: the true class of each row, an integer.
    logits: scores, whose exponentials are proportional to probabilities.

    >>> pb.losses.sparse_softmax_cross_entropy_with_logits(np.array([1]), np.array([[0.0, 0.0]]))
    array([0.69314718])
    """
    y = check_numbers("sparse_softmax_cross_entropy", "logits", logits)
    places = _flatten_labels(labels, y.shape)
    log_p = _log_softmax(y).reshape(-1)
    return -(pick(log_p, places) if isinstance(places, Tensor) else log_p[places])


def sparse_softmax_cross_entropy(
    labels: TensorLike, logits: TensorLike, weights: TensorLike | None = None, reduction: str | int | None = None
) -> Any:
    """Return the cross entropy of ``softmax(logits)`` for integer labels, weighted and reduced.

    labels: the true class of each row, an integer.
    logits: scores, whose exponentials are proportional to probabilities.
    weights: how much each element counts: a number, or an array that is broadcast.
    reduction: a ``pb.losses.Reduction``: how losses are added up; by default their sum over the number of weights that
        are not 0.

    >>> pb.losses.sparse_softmax_cross_entropy(np.array([1, 0]), np.array([[0.0, 0.0], [9.0, -9.0]]))
    np.float64(0.346573597894...)
    """
    losses = sparse_softmax_cross_entropy_with_logits(labels, logits)
    return _reduce_weighted("sparse_softmax_cross_entropy", losses, weights, reduction)


install_answers("pb.losses")
