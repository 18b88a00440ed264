"""Losses: values by hand, reductions and weights, gradients of everything, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

Reduction = pb.losses.Reduction
R = np.random.default_rng(3)
LABELS, LOGITS = R.uniform(0.1, 0.9, (4, 3)), R.normal(size=(4, 3))
BINARY = np.array([[0.0, 1.0, 0.0]] * 4)
H = 1e-6


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def log_softmax(x: Any) -> Any:
    return x - np.log(np.sum(np.exp(x), -1, keepdims=True))


def huber(d: Any) -> Any:
    return np.where(abs(d) < 0.5, d * d / 2, 0.5 * abs(d) - 0.125)


# name, arguments before weights, arguments between weights and reduction, the losses by definition
LOSSES: list[tuple[str, tuple[Any, ...], tuple[Any, ...], Any]] = [
    ("absolute_difference", (LABELS, LOGITS), (), abs(LABELS - LOGITS)),
    ("mean_squared_error", (LABELS, LOGITS), (), (LABELS - LOGITS) ** 2),
    ("cosine_distance", (LABELS, LOGITS, 1), (), 1 - np.sum(LABELS * LOGITS, 1, keepdims=True)),
    ("cosine_distance", (LABELS, LOGITS, [0, 1]), (), 1 - np.sum(LABELS * LOGITS, keepdims=True)),
    ("hinge_loss", (BINARY, LOGITS), (), np.maximum(0, 1 - (2 * BINARY - 1) * LOGITS)),
    ("huber_loss", (LABELS, LOGITS), (0.5,), huber(LABELS - LOGITS)),
    ("log_loss", (BINARY, LABELS), (0.01,), -np.log(np.where(BINARY == 1, LABELS, 1 - LABELS) + 0.01)),
    ("sigmoid_cross_entropy", (LABELS, LOGITS), (0.0,),
     -LABELS * np.log(sigmoid(LOGITS)) - (1 - LABELS) * np.log(sigmoid(-LOGITS))),
    ("softmax_cross_entropy", (LABELS, LOGITS), (0.0,), -np.sum(LABELS * log_softmax(LOGITS), -1)),
    ("sparse_softmax_cross_entropy", (np.array([2, 0, 1, 1]), LOGITS), (),
     -log_softmax(LOGITS)[np.arange(4), [2, 0, 1, 1]]),
]  # fmt: skip
every_loss = pytest.mark.parametrize(("name", "before", "between", "want"), LOSSES)


def call(name: str, before: Any, weights: Any, between: Any, reduction: Any) -> Any:
    return getattr(pb.losses, name)(*before, weights, *between, reduction)


@every_loss
def test_loss_reductions(name: str, before: Any, between: Any, want: Any) -> None:
    n = want.size
    weights = R.uniform(0, 1, want.shape) * (np.arange(n).reshape(want.shape) % 2 == 0)
    for w, full in ((None, np.ones(want.shape)), (0.5, np.full(want.shape, 0.5)), (weights, weights)):
        z = want * full
        for reduction, expected in (
            (Reduction.NONE, z), (Reduction.MEAN, z.sum() / full.sum()), (Reduction.SUM, z.sum()),
            (Reduction.SUM_BY_NONZERO_WEIGHTS, z.sum() / np.count_nonzero(full)),
        ):  # fmt: skip
            got = call(name, before, w, between, reduction)
            assert isinstance(got, np.ndarray | np.generic)
            np.testing.assert_allclose(got, expected, rtol=1e-12)
            np.testing.assert_allclose(call(name, before, w, between, reduction.name.lower()), expected, rtol=1e-12)
            np.testing.assert_allclose(call(name, before, w, between, int(reduction)), expected, rtol=1e-12)
        np.testing.assert_array_equal(
            call(name, before, w, between, None), call(name, before, w, between, Reduction.SUM_BY_NONZERO_WEIGHTS)
        )


@every_loss
@pytest.mark.parametrize("reduction", list(Reduction))
def test_loss_gradients(name: str, before: Any, between: Any, want: Any, reduction: Any) -> None:
    weights = R.uniform(0.5, 2, want.shape)
    weights.flat[0] = 0 if want.size > 1 else 1
    labels, predictions, *more = before
    constant = labels.dtype.kind == "i"

    def f(*xs: Any) -> Any:
        first, second, w = (labels, *xs) if constant else xs
        return np.sum(call(name, (first, second, *more), w, between, reduction))

    point = [predictions, weights] if constant else [labels, predictions, weights]
    if reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:  # a step away from 0 the count is another one
        weights[weights == 0] = 1
    ts = [R.normal(size=x.shape) for x in point]
    ahead, behind = (f(*[x + s * H * t for x, t in zip(point, ts, strict=True)]) for s in (1, -1))
    got = pb.grads(f)(point)
    np.testing.assert_allclose(
        sum(np.vdot(d, t) for d, t in zip(got, ts, strict=True)), (ahead - behind) / (2 * H), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(pb.jvp(f, point, ts)[1], (ahead - behind) / (2 * H), rtol=1e-6, atol=1e-8)


@every_loss
def test_losses_of_float32_with_integer_labels_are_float32(name: str, before: Any, between: Any, want: Any) -> None:
    labels, predictions, *more = before
    narrow = predictions.astype(np.float32)
    whole = np.round(labels).astype(np.int32)
    for wrap in (lambda x: x, pb.tensor):
        assert call(name, (wrap(whole), wrap(narrow), *more), wrap(np.float32(2)), between, None).dtype == np.float32
        assert call(name, (wrap(whole), wrap(narrow), *more), 2, between, None).dtype == np.float32
    g = pb.grad(lambda x: call(name, (whole, x, *more), None, between, None))(narrow)
    assert g.dtype == np.float32


def test_losses_of_lists_tensors_and_variables() -> None:
    v = pb.variable([1.0, 2.0])
    z = pb.losses.mean_squared_error([1.0, 4.0], v)
    assert isinstance(z, pb.Tensor)
    assert z.item() == 2
    (g,) = pb.variable_grads(lambda: pb.losses.mean_squared_error([1.0, 4.0], v)).grads.values()
    np.testing.assert_array_equal(g.numpy(), [0, -2])


@pytest.mark.parametrize("reduction", [1, 3])
def test_losses_with_zero_weights(reduction: int) -> None:
    f = lambda y, w: pb.losses.mean_squared_error(LABELS, y, w, reduction)
    assert f(LOGITS, np.zeros((4, 1))) == 0
    assert not np.any(pb.grad(lambda y: f(y, 0.0))(LOGITS))
    assert pb.losses.absolute_difference(np.zeros((0, 2)), np.zeros((0, 2)), reduction=reduction) == 0


def test_losses_with_broadcast_weights() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert pb.losses.compute_weighted_loss(x, np.array([[1.0], [0.0]])) == 1  # (0 + 1 + 2) / 3
    assert pb.losses.compute_weighted_loss(x, np.array([[2.0, 0.0, 1.0]]), "mean") == (6 + 7) / 6


def test_label_smoothing() -> None:
    hot = np.eye(3)[[0, 2]]
    x = LOGITS[:2]
    np.testing.assert_allclose(
        pb.losses.softmax_cross_entropy(hot, x, None, 0.3), pb.losses.softmax_cross_entropy(hot * 0.7 + 0.1, x)
    )
    np.testing.assert_allclose(
        pb.losses.sigmoid_cross_entropy(hot, x, None, 0.3), pb.losses.sigmoid_cross_entropy(hot * 0.7 + 0.15, x)
    )


def test_cross_entropy_of_extreme_logits() -> None:
    far = np.array([[1e4, -1e4, 0.0]])
    for hot, want in ((0, 0.0), (1, 2e4), (2, 1e4)):
        labels = np.eye(3)[[hot]]
        value, g = pb.value_and_grad(lambda x, y=labels: pb.losses.softmax_cross_entropy(y, x))(far)
        assert value == want
        np.testing.assert_array_equal(g, [[1.0, 0.0, 0.0]] - labels)
    labels = np.array([[0.0, 1.0, 1.0]])
    value, g = pb.value_and_grad(lambda x: pb.losses.sigmoid_cross_entropy(labels, x, reduction="sum"))(far)
    assert value == 2e4 + np.log(2)
    np.testing.assert_array_equal(g, [[1, -1, -0.5]])


def test_cross_entropy_with_masked_class() -> None:
    x = np.array([[0.0, -np.inf, 0.0]])
    dense = lambda x: pb.losses.softmax_cross_entropy(np.array([[1.0, 0.0, 0.0]]), x)
    sparse = lambda x: pb.losses.sparse_softmax_cross_entropy(np.array([0]), x)
    for f in (dense, sparse):
        value, g = pb.value_and_grad(f)(x)
        np.testing.assert_allclose(value, np.log(2))
        np.testing.assert_allclose(g, [[-0.5, 0, 0.5]])
    assert pb.losses.softmax_cross_entropy(np.array([[0.0, 1.0, 0.0]]), x) == np.inf


def test_cross_entropy_second_order() -> None:
    x = LOGITS[0]
    f = lambda x: pb.losses.softmax_cross_entropy(np.array([0.0, 1.0, 0.0]), x)
    p = np.exp(log_softmax(x))
    for i in range(3):
        row = pb.grad(lambda x, i=i: pb.grad(f)(x)[i])(x)
        np.testing.assert_allclose(row, p[i] * (np.eye(3)[i] - p), rtol=1e-12)


def test_hinge_at_margin_and_nan() -> None:
    f = lambda y: pb.losses.hinge_loss(np.array([1.0, 0.0]), y, reduction=2)
    np.testing.assert_array_equal(pb.grad(f)(np.array([1.0, -1.0])), [0, 0])
    assert np.isnan(f(np.array([np.nan, 1.0])))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pb.losses.hinge_loss(np.ones((2, 3)), np.ones((3, 2))), ShapeError,
         r"hinge_loss: labels of shape \(2, 3\) and predictions of shape \(3, 2\) must have the same shape"),
        (lambda: pb.losses.softmax_cross_entropy(np.ones(3), np.ones((1, 3))), ShapeError,
         r"softmax_cross_entropy: onehot_labels of shape \(3,\) and logits of shape \(1, 3\)"),
        (lambda: pb.losses.softmax_cross_entropy(1.0, 2.0), ShapeError, "must have an axis of classes, got rank 0"),
        (lambda: pb.losses.mean_squared_error(np.ones(2), np.ones(2), np.ones((2, 1))), ShapeError,
         r"weights of shape \(2, 1\) do not broadcast to the losses, of shape \(2,\)"),
        (lambda: pb.losses.mean_squared_error(np.ones(2), np.ones(2), np.ones(3)), ShapeError,
         r"weights of shape \(3,\) do not broadcast"),
        (lambda: pb.losses.log_loss(np.ones(2), np.ones(2), reduction=7), ArgumentError,
         r"reduction must be one of NONE \(0\), MEAN \(1\), .*, got 7"),
        (lambda: pb.losses.log_loss(np.ones(2), np.ones(2), reduction="avg"), ArgumentError, "got 'avg'"),
        (lambda: pb.losses.huber_loss(np.ones(2), np.ones(2), delta=-1), ArgumentError,
         "delta must be positive, got -1"),
        (lambda: pb.losses.sigmoid_cross_entropy(np.ones(2), np.ones(2), None, 1.5), ArgumentError,
         "label_smoothing must be a number from 0 to 1, got 1.5"),
        (lambda: pb.losses.sparse_softmax_cross_entropy(np.array([0, 3]), np.ones((2, 3))), ShapeError,
         "the label 3 is not one of the 3 classes, 0 to 2"),
        (lambda: pb.losses.sparse_softmax_cross_entropy(np.array([0, -1]), np.ones((2, 3))), ShapeError,
         "the label -1"),
        (lambda: pb.losses.sparse_softmax_cross_entropy(np.array([0.0, 1.0]), np.ones((2, 3))), ArgumentError,
         "labels must be integers, got float64"),
        (lambda: pb.losses.sparse_softmax_cross_entropy(np.array([0]), np.ones((2, 3))), ShapeError,
         r"labels of shape \(1,\) and logits of shape \(2, 3\)"),
        (lambda: pb.losses.cosine_distance(np.ones(2), np.ones(2), 4), ShapeError, "axis 4 is out of range for rank 1"),
    ],
)  # fmt: skip
def test_losses_bad_input_raises(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_sparse_labels_in_lists() -> None:
    loss = pb.losses.sparse_softmax_cross_entropy
    expected = -np.log(np.exp(LOGITS)[range(4), [2, 0, 1, 1]] / np.exp(LOGITS).sum(1)).mean()
    for labels in ([2, 0, 1, 1], (2.0, 0.0, 1.0, 1.0), np.array([2, 0, 1, 1])):
        np.testing.assert_allclose(loss(labels, LOGITS), expected)
    with pytest.raises(ArgumentError, match="labels must be integers, got float"):
        loss([0.5, 0, 1, 1], LOGITS)


def test_softmax_cross_entropy_of_no_examples() -> None:
    nothing = np.zeros((0, 3))
    assert pb.losses.softmax_cross_entropy(nothing, nothing, reduction=Reduction.NONE).shape == (0,)
    assert pb.grad(lambda x: pb.losses.softmax_cross_entropy(nothing, x))(nothing).shape == (0, 3)
