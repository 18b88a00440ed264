"""Losses and metrics by name: against formulas, eager and compiled, and their errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import pullback as pb
from pullback.errors import ArgumentError, DataError, ShapeError
from pullback.train.loop.objectives import Objectives, Settings, check_labels, find_loss, find_metric

RNG = np.random.default_rng(0)
LABELS = np.array([2, 0, 1, 2, 1])
ONE_HOT = np.eye(3)[LABELS]
LOGITS = RNG.normal(size=(5, 3)) * 2
SHARES = softmax(LOGITS, axis=-1)
SCALED = SHARES * np.array([[1.0], [2.0], [0.5], [1.0], [3.0]])  # Keras makes them sum to 1
ANY, OTHER = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
COUNTS = RNG.integers(0, 5, (5, 3)).astype(float)
ONES = (RNG.random((5, 3)) < 0.5).astype(float)
POSITIVE = RNG.random((5, 3)) * 3 + 0.1


def cosine(y, p):
    return -(y * p).sum(-1) / np.linalg.norm(y, axis=-1) / np.linalg.norm(p, axis=-1)


def entropy(y, p):
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def huber(x):
    return np.where(np.abs(x) < 1, 0.5 * x**2, np.abs(x) - 0.5)


# name: labels, predictions, Keras's result for each example
CASES = {
    "mean_squared_error": (ANY, OTHER, ((ANY - OTHER) ** 2).mean(-1)),
    "mean_absolute_error": (ANY, OTHER, np.abs(ANY - OTHER).mean(-1)),
    "mean_absolute_percentage_error": (ANY, OTHER, 100 * np.abs((ANY - OTHER) / ANY).mean(-1)),
    "mean_squared_logarithmic_error": (
        COUNTS, POSITIVE, ((np.log1p(np.maximum(COUNTS, 1e-7)) - np.log1p(POSITIVE)) ** 2).mean(-1),
    ),
    "huber_loss": (ANY, OTHER * 3, huber(ANY - OTHER * 3).mean(-1)),
    "logcosh": (ANY, OTHER, np.log(np.cosh(ANY - OTHER)).mean(-1)),
    "hinge": (ONES * 2 - 1, OTHER, np.maximum(1 - (ONES * 2 - 1) * OTHER, 0).mean(-1)),
    "squared_hinge": (ONES, OTHER, (np.maximum(1 - (ONES * 2 - 1) * OTHER, 0) ** 2).mean(-1)),
    "categorical_hinge": (
        ONE_HOT, ANY, np.maximum(1 + ((1 - ONE_HOT) * ANY).max(-1) - (ONE_HOT * ANY).sum(-1), 0),
    ),
    "kullback_leibler_divergence": (ONE_HOT, SHARES, -np.log(SHARES[range(5), LABELS])),
    "poisson": (COUNTS, POSITIVE, (POSITIVE - COUNTS * np.log(POSITIVE + 1e-7)).mean(-1)),
    "cosine_proximity": (ANY, OTHER, cosine(ANY, OTHER)),
    "binary_crossentropy": (ONES, SHARES, entropy(ONES, SHARES)),
    "categorical_crossentropy": (ONE_HOT, SCALED, -np.log(SHARES[range(5), LABELS])),
    "sparse_categorical_crossentropy": (LABELS, SCALED, -np.log(SHARES[range(5), LABELS])),
    "sigmoid_cross_entropy": (ONES, LOGITS, entropy(ONES, 1 / (1 + np.exp(-LOGITS)))),
    "softmax_cross_entropy": (ONE_HOT, LOGITS, -log_softmax(LOGITS, -1)[range(5), LABELS]),
    "sparse_softmax_cross_entropy": (LABELS, LOGITS, -log_softmax(LOGITS, -1)[range(5), LABELS]),
}  # fmt: skip
HITS = (np.argmax(LOGITS, -1) == LABELS).astype(float)
WIDE, WIDE_LABELS = RNG.normal(size=(20, 9)), RNG.integers(0, 9, 20)
AMONG_5 = np.array([label in np.argsort(row)[-5:] for label, row in zip(WIDE_LABELS, WIDE, strict=True)], float)
MEASURES = {
    "categorical_accuracy": (ONE_HOT, LOGITS, HITS),
    "sparse_categorical_accuracy": (LABELS, LOGITS, HITS),
    "top_k_categorical_accuracy": (np.eye(9)[WIDE_LABELS], WIDE, AMONG_5),
    "sparse_top_k_categorical_accuracy": (WIDE_LABELS, WIDE, AMONG_5),
    "binary_accuracy": (ONES, SHARES, ((SHARES > 0.5) == ONES).mean(-1)),
    "precision": (ONES, SHARES, ONES[SHARES > 0.5].mean()),
    "recall": (ONES, SHARES, (SHARES > 0.5)[ONES == 1].mean()),
    "r2_score": (ANY, OTHER, 1 - ((ANY - OTHER) ** 2).sum() / ((ANY - ANY.mean()) ** 2).sum()),
}


def in_camel_case(name):
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@pytest.mark.parametrize("name", [*CASES, *MEASURES])
def test_metric_equals_formula_per_example(name):
    y, p, expected = (CASES | MEASURES)[name]
    np.testing.assert_allclose(getattr(pb.metrics, name)(y, p), expected, rtol=2e-6, atol=1e-6)
    metric = find_metric(in_camel_case(name), find_loss("mse"))
    assert metric.name == in_camel_case(name)  # as it is written
    if name != "r2_score":  # that of all targets together; the metric is the mean of theirs
        np.testing.assert_allclose(metric(y, p), np.mean(expected), rtol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_loss_mean_and_gradient(name):
    y, p, expected = CASES[name]
    for called in (name, in_camel_case(name), getattr(pb.metrics, name)):
        loss = find_loss(called)
        assert (loss.name, loss.sparse) == (name, name.startswith("sparse"))
        np.testing.assert_allclose(loss(y, p), np.mean(expected), rtol=2e-6)
    pb.check_grads(lambda p: find_loss(name)(y, p), [p])


@pytest.mark.parametrize("name", [*CASES, *MEASURES])
def test_loss_eager_equals_compiled_in_float32(name):
    y, p, _ = (CASES | MEASURES)[name]
    metric, p = find_loss(name) if name in CASES else getattr(pb.metrics, name), p.astype(np.float32)
    eager = metric(y, p)  # labels are float64 or int64
    compiled = pb.compile(metric)(y, p)
    assert eager.dtype == compiled.dtype == np.float32
    np.testing.assert_allclose(compiled, eager, rtol=1e-5)
    if name in CASES:
        of = pb.grad(lambda p: metric(y, p))
        np.testing.assert_allclose(pb.compile(of)(p), of(p), rtol=1e-4, atol=1e-6)
        assert of(p).dtype == np.float32


@pytest.mark.parametrize("name", ["binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"])
def test_crossentropy_clips_probabilities_as_keras(name):
    y, p = {"binary": ([[0.0]], [[1.0]]), "categorical": ([[1.0, 0]], [[0.0, 1]]), "sparse": ([0], [[0.0, 1]])}[
        name.split("_")[0]
    ]
    assert find_loss(name)(np.array(y), np.array(p)) == pytest.approx(-np.log(1e-7), rel=1e-6)


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("mse", "mean_squared_error"), ("MAE", "mean_absolute_error"), ("huber", "huber_loss"),
        (pb.losses.sparse_softmax_cross_entropy, "sparse_softmax_cross_entropy"),
        (pb.losses.absolute_difference, "mean_absolute_error"), (pb.train.losses.Huber, "huber_loss"),
        ("CosineSimilarity", "cosine_proximity"),
    ],
)  # fmt: skip
def test_loss_names_and_aliases(short, name):
    assert find_loss(short).name == find_loss(name).name == name


@pytest.mark.parametrize(
    ("loss", "y", "p"),
    [
        ("mse", np.array([1.0, 2.0, 4.0]), np.array([[1.0], [1.0], [1.0]])),
        ("mse", np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 1.0, 1.0])),
        (lambda y, p: (y - p) ** 2, np.array([1.0, 2.0, 4.0]), np.array([[1.0], [1.0], [1.0]])),
        (lambda y, p: pb.mean((y - p) ** 2), np.array([1.0, 2.0, 4.0]), np.array([[1.0], [1.0], [1.0]])),
    ],
)
def test_labels_without_last_axis_are_not_broadcast(loss, y, p):
    assert float(find_loss(loss)(y, p)) == pytest.approx(10 / 3)
    assert float(find_metric(loss, find_loss("mse"))(y, p)) == pytest.approx(10 / 3)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_sparse_labels_dtypes_and_last_axis(dtype, shape):
    y = LABELS.astype(dtype).reshape(shape)
    for name in ("sparse_categorical_crossentropy", "sparse_softmax_cross_entropy", "sparse_categorical_accuracy"):
        function = getattr(pb.metrics, name)
        np.testing.assert_array_equal(function(y, SHARES), function(LABELS, SHARES))
        np.testing.assert_allclose(pb.compile(function)(y, SHARES), function(LABELS, SHARES), rtol=1e-12)


@pytest.mark.parametrize("name", ["categorical_accuracy", "sparse_categorical_accuracy"])
def test_accuracy_ties_take_first_class(name):
    p = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -1.0]], np.float32)
    y = np.array([0, 1, 0, 2, 2])
    function, y = getattr(pb.metrics, name), y if name.startswith("sparse") else np.eye(3)[y]
    np.testing.assert_array_equal(function(y, p), [1, 0, 1, 0, 0])
    np.testing.assert_array_equal(pb.compile(function)(y, p), [1, 0, 1, 0, 0])


@pytest.mark.parametrize("impossible", [-np.inf, -1e30])
def test_crossentropy_with_impossible_class(impossible):
    y, p = np.array([0, 1]), np.array([[1.0, 2.0, impossible], [impossible, 1.0, 1.0]], np.float32)
    loss = find_loss("sparse_softmax_cross_entropy")
    expected = (np.log1p(np.e) + np.log(2)) / 2
    of = pb.grad(lambda p: loss(y, p))
    for value, gradient in ((loss(y, p), of(p)), (pb.compile(loss)(y, p), pb.compile(of)(p))):
        assert value == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(gradient, (softmax(p, -1) - np.eye(3)[y]) / 2, atol=1e-6)


def test_sparse_labels_of_sequences():
    y, p = LABELS.reshape(5, 1).repeat(2, 1), np.stack([SHARES, SHARES], 1)
    expected = -np.log(SHARES[range(5), LABELS])
    np.testing.assert_allclose(
        pb.metrics.sparse_categorical_crossentropy(y, p), np.stack([expected, expected], 1), rtol=1e-6
    )


def test_user_loss_keeps_float32():
    loss = find_loss(lambda y, p: (y - p) ** 2)
    assert loss.name == "lambda"
    assert loss(ANY, OTHER.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("loss", "y", "p", "expected"),
    [
        ("binary_crossentropy", [[1], [0], [1]], [[0.4], [0.4], [0.7]], 2 / 3),
        ("sigmoid_cross_entropy", [1, 0, 1], [[0.4], [-0.4], [0.7]], 1.0),  # the threshold of logits is 0
        ("sigmoid_cross_entropy", [[1, 0]], [[0.4, 0.4]], 0.5),
        ("mse", [1, 0], [[0.4], [0.4]], 0.5),
        ("categorical_crossentropy", [[0, 1], [1, 0]], [[0.4, 0.6], [0.4, 0.6]], 0.5),
        ("sparse_categorical_crossentropy", [1, 0], [[0.4, 0.6], [0.4, 0.6]], 0.5),
        ("sparse_softmax_cross_entropy", [[1], [0]], [[-3.0, 2.0], [2.0, -3.0]], 1.0),
        (lambda y, p: p, [1, 0], [[0.4, 0.6], [0.4, 0.6]], 0.5),  # by the shapes alone
    ],
)
def test_accuracy_is_chosen_as_in_keras(loss, y, p, expected):
    metric = find_metric("acc", find_loss(loss))
    y, p = np.array(y), np.array(p, np.float32)
    assert metric(y, p) == pytest.approx(expected)
    assert metric.compute(*pb.compile(metric.measure)(y, p)) == pytest.approx(expected)


def test_precision_and_recall_of_logits_and_without_positives():
    y, logits = np.array([1.0, 0.0]), np.array([0.3, -0.3])
    for name in ("precision", "recall"):
        assert find_metric(name, find_loss("sigmoid_cross_entropy"))(y, logits) == 1.0
        assert find_metric(name, find_loss("mse"))(y * 0, logits) == 0.0


def test_top_k_with_fewer_classes_than_k():
    for function in (pb.metrics.top_k_categorical_accuracy, pb.compile(pb.metrics.top_k_categorical_accuracy)):
        np.testing.assert_array_equal(function(ONE_HOT, LOGITS), np.ones(5))


def test_metrics_get_unique_names():
    def loss(y, p):
        return p

    given = ["accuracy", "MSE", loss, lambda y, p: p, "accuracy"]
    named = Objectives(Settings("mse", given, weighted_metrics=["MSE", "mse"]), ["out"], "model").names
    assert named == ["loss", "accuracy", "MSE", "loss_1", "lambda", "accuracy_1", "weighted_MSE", "mse"]
    assert Objectives(Settings("mse", None), ["out"], "model").names == ["loss"]
    assert Objectives(Settings("mse", "acc"), ["out"], "model").names == ["loss", "acc"]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 3], "cross_entropy: labels must be 0 to 2, as there are 3 classes; the smallest is 0, the largest 3."),
        ([-1, 2], "labels must be 0 to 2, as there are 3 classes; the smallest is -1, the largest 2."),
        ([0.5, 2.0], "whole numbers, 0 to 2, as there are 3 classes; the smallest is 0.5, the largest 2.0."),
        ([0.0, np.nan], "labels must be whole numbers, 0 to 2"),
        (["a", "b"], "labels must be numbers of classes, 0 to 2, got dtype <U1."),
    ],
)
def test_sparse_labels_out_of_range_raise(y, message):
    loss = find_loss("sparse_softmax_cross_entropy")
    with pytest.raises(DataError) as caught:
        check_labels(loss, np.array(y), (None, 3))
    assert message in str(caught.value)
    if np.array(y).dtype.kind != "U":
        with pytest.raises(DataError, match="3 classes"):
            loss(np.array(y), np.ones((2, 3)))


@pytest.mark.parametrize("y", [np.array([True, False]), np.array([0.0, 2.0]), np.array([], int), pb.tensor([1, 2])])
def test_sparse_labels_in_range_are_accepted(y):
    check_labels(find_loss("sparse_categorical_crossentropy"), y, (None, 3))
    check_labels(find_loss("mse"), y - 7 if y.dtype != bool else y, (None, 3))


def test_sparse_labels_of_ignored_class_may_be_out_of_range():
    loss = pb.train.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    check_labels(loss, np.array([1, -1]), (None, 3))
    with pytest.raises(DataError, match="the smallest is -2"):
        check_labels(loss, np.array([1, -1, -2]), (None, 3))
    with pytest.raises(ShapeError, match=r"expected predictions by class along the last axis, got shape \(\)"):
        check_labels(loss, np.array([1]), ())


@pytest.mark.parametrize("name", ["crossentropy", "ce"])
def test_crossentropy_by_short_name_follows_shapes(name):
    expected = -np.log(SHARES[range(5), LABELS]).mean()
    binary = ONES[:, :1], SHARES[:, :1]
    for find in (find_loss, lambda name: find_metric(name, None)):
        for y in (LABELS, LABELS[:, None], ONE_HOT):
            np.testing.assert_allclose(find(name)(y, SHARES), expected, rtol=1e-6)
        np.testing.assert_allclose(find(name)(*binary), entropy(*binary).mean(), rtol=1e-6)


def test_metric_function_of_library_equals_metric_by_name():
    for name, (y, p, _) in MEASURES.items():
        by_function = find_metric(getattr(pb.metrics, name), find_loss("mse"))
        assert by_function.name == name
        np.testing.assert_allclose(by_function(y, p), find_metric(name, find_loss("mse"))(y, p), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": ["mse"] * 3}, "compile: loss: got 3 for 2 outputs, a, b."),
        ({"loss": {"c": "mse"}}, "compile: loss: there is no output 'c'; there are a, b."),
        ({"loss": "mse", "metrics": [["mae"]]}, "compile: metrics: got 1 lists for 2 outputs, a, b."),
    ],
)
def test_compile_rejects_other_number_of_outputs(arguments, message):
    x = pb.input([3])
    model = pb.model(x, [pb.layers.dense(1, name=name)(x) for name in "ab"])
    with pytest.raises(ArgumentError, match=re.escape(message)):
        model.compile("sgd", **arguments)


def test_fit_without_loss_raises():
    model = pb.sequential([pb.layers.dense(1, input_shape=[3])])
    model.compile("sgd", None)
    with pytest.raises(ArgumentError, match="there is no loss: give compile one, or call add_loss in a layer"):
        model.fit(np.ones((2, 3)), np.ones((2, 1)), verbose=0)


def test_library_functions_are_saved_by_name_and_others_not(tmp_path):
    for loss in (pb.metrics.mean_absolute_error, lambda y, p: np.mean(abs(y - p))):
        model = pb.sequential([pb.layers.dense(1, input_shape=[3])])
        model.compile("sgd", loss, metrics=[pb.metrics.mean_squared_error])
        model.save(tmp_path / "model.safetensors")
        again = pb.load_model(tmp_path / "model.safetensors")
        if loss is pb.metrics.mean_absolute_error:
            x, y = np.ones((2, 3)), np.zeros((2, 1))
            assert again.evaluate(x, y, return_dict=True) == model.evaluate(x, y, return_dict=True)
            assert again.metrics_names == ["loss", "mean_squared_error"]
        else:
            assert again.optimizer is None


@pytest.mark.parametrize(
    ("loss", "y", "p", "message"),
    [
        ("mse", (4, 2), (4, 3), "mean_squared_error: y_true of shape (4, 2) and y_pred of shape (4, 3) must have"),
        ("categorical_crossentropy", (4,), (4, 3), "For labels that are numbers of classes there are the sparse_ ones"),
        ("sparse_categorical_crossentropy", (4, 3), (4, 3), "sparse_categorical_crossentropy: y_true of shape (4, 3)"),
        ("sparse_categorical_crossentropy", (4, 3), (4, 3), "expected labels of shape (4,) or (4, 1), each label the"),
        ("sparse_categorical_crossentropy", (4, 3), (4, 3), "For one-hot labels there are those without sparse_."),
        ("sparse_softmax_cross_entropy", (5,), (4, 3), "y_true of shape (5,) and y_pred of shape (4, 3)"),
    ],
)
def test_metric_shape_errors(loss, y, p, message):
    with pytest.raises(ShapeError) as caught:
        find_loss(loss)(np.zeros(y), np.zeros(p))
    assert message in str(caught.value)
    with pytest.raises(ShapeError) as caught:
        pb.compile(find_loss(loss))(np.zeros(y), np.zeros(p))
    assert message in str(caught.value)


def test_unknown_loss_lists_known_names():
    with pytest.raises(ArgumentError, match=r"compile: loss: got 'square'.*mean_squared_error, .*, mse, "):
        find_loss("square")
    with pytest.raises(ArgumentError, match=r"compile: loss: got 3. Expected a function"):
        find_loss(3)
    with pytest.raises(ArgumentError, match=r"compile: metrics: got 'precise'.*accuracy, acc, .*recall, "):
        find_metric("precise", find_loss("mse"))
    with pytest.raises(ArgumentError, match=r"compile: metrics: got 3. Expected a function"):
        find_metric(3, None)
    with pytest.raises(ArgumentError, match=r"compile: metrics: 'mean_io_u' needs arguments: give the metric itself"):
        find_metric("mean_io_u", None)
    with pytest.raises(ArgumentError, match=r"compile: loss: got 'Strange'. Expected .* BinaryCrossentropy, "):
        find_loss({"class_name": "Strange", "config": {}})
    with pytest.raises(ArgumentError, match=r"lambda: a loss gives one number .* this one gave NoneType"):
        find_loss(lambda y, p: None)(ANY, OTHER)


@pytest.mark.parametrize(
    ("given", "proposed"),
    [
        ("mean_square_eror", "mean_squared_error"),
        ("meanSquaredErorr", "mean_squared_error"),
        ("catagorical_crossentropy", "categorical_crossentropy"),
        ("acuracy", "accuracy"),
        ("precison", "precision"),
    ],
)
def test_misspelt_loss_or_metric_suggests_nearest_name(given, proposed):
    with pytest.raises(ArgumentError, match=rf"got '{given}'\. Did you mean '{proposed}'"):
        find_metric(given, find_loss("mse"))
    if "error" in proposed or "entropy" in proposed:
        with pytest.raises(ArgumentError, match=rf"got '{given}'\. Did you mean '{proposed}'"):
            find_loss(given)


class MeanDistance(pb.metrics.Metric):
    """In Keras's style: state in variables."""

    def __init__(self, name: str = "distance") -> None:
        super().__init__(name=name)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.count = self.add_weight(shape=(), name="count")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        far = np.abs(y_true - y_pred) * (1.0 if sample_weight is None else sample_weight[:, None])
        self.total.assign_add(np.sum(far))
        self.count.assign_add(np.float32(far.size if sample_weight is None else np.sum(sample_weight)))

    def result(self) -> Any:
        return self.total / self.count


class Worst(pb.metrics.Metric):
    """In Keras's style: state in an attribute, and Python code that cannot be compiled."""

    largest = 0.0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.largest = max(self.largest, float(np.max(np.abs(y_true - y_pred))))

    def result(self) -> float:
        return self.largest

    def reset_state(self) -> None:
        self.largest = 0.0


class MeanSquare(pb.metrics.Mean):
    """In Keras's style: a mean of values that are computed first."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        super().update_state((y_true - y_pred) ** 2, sample_weight)


@pytest.mark.parametrize("eager", [False, True])
def test_metric_classes_in_keras_style(eager: bool) -> None:
    x = np.sin(np.arange(40.0)).reshape(20, 2).astype(np.float32)
    y, weights = x[:, :1] * 3, np.linspace(0, 1, 20, dtype=np.float32)
    model = pb.sequential([pb.layers.dense(1, kernel_initializer="zeros", input_shape=[2])])
    model.compile(
        pb.train.sgd(0.1), "mse", metrics=[MeanDistance(), "mae", Worst(), MeanSquare()], eager=eager,
        weighted_metrics=[MeanDistance("weighted"), pb.metrics.MeanAbsoluteError("weighted_mae")],
    )  # fmt: skip
    seen: list[float] = []
    watch = pb.callbacks.lambda_callback(on_batch_end=lambda batch, logs: seen.append(logs["distance"]))
    history = model.fit(
        x, y, sample_weight=weights, epochs=2, batch_size=8, verbose=0, shuffle=False, callbacks=[watch],
        validation_data=(x[:9], y[:9], weights[:9]),
    ).history  # fmt: skip
    for prefix in ("", "val_"):
        np.testing.assert_allclose(history[f"{prefix}distance"], history[f"{prefix}mae"], rtol=1e-5)
        np.testing.assert_allclose(history[f"{prefix}weighted"], history[f"{prefix}weighted_mae"], rtol=1e-5)
    assert len(seen) == 6
    assert seen[2] == history["distance"][0]
    found = model.evaluate(x, y, batch_size=7, return_dict=True)
    away = np.abs(y - model.predict(x))
    assert found["worst"] == pytest.approx(away.max(), rel=1e-6)
    assert found["mean_square"] == pytest.approx((away**2).mean(), rel=1e-5)
    one = model.test_on_batch(x[:4], y[:4], return_dict=True)
    assert one["distance"] == pytest.approx(away[:4].mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.metrics.AUC(curve="roc"), "AUC: curve must be 'ROC' or 'PR', got 'roc'."),
        (lambda: pb.metrics.AUC(summation_method="mean"), "AUC: summation_method must be 'interpolation', 'minoring'"),
        (lambda: pb.metrics.AUC(1), "AUC: num_thresholds must be more than 1, got 1."),
        (lambda: pb.metrics.RecallAtPrecision(1.5), "recall_at_precision: expected a rate from 0 to 1, got 1.5."),
        (lambda: pb.metrics.FBetaScore("mean"), "average must be None, 'micro', 'macro' or 'weighted', got 'mean'."),
        (lambda: pb.metrics.FBetaScore(beta=0.0), "beta must be more than 0, got 0.0."),
        (lambda: pb.metrics.FBetaScore()([1.0], [1.0]), "expected predictions of shape (batch, classes), got (1,)."),
        (lambda: pb.metrics.Mean().add_weight(3, "strange"), "initializer must be 'zeros', 'ones' or a function."),
        (lambda: pb.metrics.MeanMetricWrapper(lambda y, p: None, "m")([1.0], [1.0]), "this one gave NoneType."),
    ],
)
def test_metric_classes_reject_arguments(make, message):
    with pytest.raises((ArgumentError, ShapeError), match=re.escape(message)):
        make()


def test_auc_with_label_weights_equals_repeated_labels():
    y, p = np.array([[0.0, 1], [1, 1], [0, 0], [1, 0]]), np.array([[0.1, 0.7], [0.8, 0.3], [0.4, 0.2], [0.35, 0.9]])
    weighted = pb.metrics.AUC(label_weights=[1.0, 3.0])
    expected = pb.metrics.AUC()(y[:, [0, 1, 1, 1]], p[:, [0, 1, 1, 1]])
    assert weighted(y, p) == pytest.approx(expected, rel=1e-6)
    rows = np.array([2.0, 1.0, 0.0, 1.0])
    weighted.reset_state()
    again = pb.metrics.AUC()(y[[0, 0, 1, 3]][:, [0, 1, 1, 1]], p[[0, 0, 1, 3]][:, [0, 1, 1, 1]])
    assert weighted(y, p, rows) == pytest.approx(again, rel=1e-6)
    assert again != pytest.approx(expected)


def test_losses_of_one_number_for_a_batch_and_without_reduction():
    class Whole(pb.train.losses.Loss):
        def call(self, y_true, y_pred):
            return np.sum((y_true - y_pred) ** 2)

    y, p = np.ones((4, 1)), np.full((4, 1), 3.0)
    assert Whole()(y, p) == 16.0
    assert Whole()(y, p, np.array([1.0, 0, 0, 0])) == 4.0  # the mean of that number with each weight
    np.testing.assert_array_equal(pb.train.losses.MeanSquaredError(reduction="none")(y, p), [4.0] * 4)
    column = np.array([[1.0], [0.0], [0.0], [1.0]])
    assert pb.train.losses.MeanSquaredError()(y, p, column) == 2.0
    assert repr(Whole()) == "Whole(name='whole', reduction='sum_over_batch_size')"
    assert pb.metrics.mean_squared_error(1.0, 3.0) == 4.0


def test_sparse_crossentropy_along_another_axis():
    y, p = np.array([[0, 1, 2, 1], [2, 2, 0, 1]]), np.random.default_rng(0).dirichlet([1, 1, 1], (2, 4))
    expected = -np.log(np.take_along_axis(p, y[..., None], -1)[..., 0])
    found = pb.metrics.sparse_categorical_crossentropy(y, np.moveaxis(p, -1, 1), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_mean_iou_with_weights_and_ignored_class():
    y, p, weights = np.array([0, 1, 2, 1, 0]), np.array([0, 1, 1, 0, 0]), np.array([1.0, 2.0, 1.0, 3.0, 0.5])
    matrix = np.zeros((3, 3))
    np.add.at(matrix, (y, p), weights)
    union = matrix.sum(0) + matrix.sum(1) - matrix.diagonal()
    assert pb.metrics.MeanIoU(3)(y, p, weights) == pytest.approx((matrix.diagonal() / union).mean(), rel=1e-6)
    kept = y != 2
    expected = pb.metrics.MeanIoU(2)(y[kept], p[kept])
    assert pb.metrics.MeanIoU(3, ignore_class=2)(y, p) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": (np.ones(4), np.ones(4))}, "sample_weight has 2 parts, but the number of targets is 1."),
        ({"class_weight": [{0: 1.0}, {0: 1.0}]}, "class_weight has 2 parts, but the number of targets is 1."),
        ({"validation_split": 1.5}, "fit: validation_split must be a share between 0 and 1, got 1.5."),
    ],
)
def test_fit_rejects_weights_and_splits(arguments, message):
    model = pb.sequential([pb.layers.dense(1, input_shape=[3])])
    model.compile("sgd", "mse")
    with pytest.raises(ArgumentError, match=re.escape(message)):
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0, **arguments)


def test_class_weight_of_labels_of_steps_raises():
    model = pb.sequential([pb.layers.dense(2, input_shape=[4, 3])])
    model.compile("sgd", "mse")
    with pytest.raises(DataError, match=r"class_weight is for one label of each example.* \(2, 4, 2\)"):
        model.fit(np.ones((2, 4, 3)), np.zeros((2, 4, 2)), class_weight={0: 1.0}, verbose=0)


def test_mean_is_called_with_values_and_weights():
    mean = pb.metrics.Mean()
    assert mean([1.0, 3.0]) == 2.0
    assert mean([5.0], 2.0) == pytest.approx((1 + 3 + 2 * 5) / 4)
    assert repr(pb.metrics.AUC(10)).startswith("AUC(num_thresholds=10, curve='ROC', ")
    assert pb.metrics.MeanMetricWrapper(np.maximum, "most", factor=2).get_config() == {
        "function": np.maximum, "name": "most", "factor": 2,
    }  # fmt: skip


def test_precision_rejects_invalid_class_id():
    labels, predictions = np.eye(3)[[0, 1]], np.array([[0.9, 0.05, 0.05], [0.2, 0.5, 0.3]])
    assert pb.metrics.Precision(top_k=5)(labels, predictions) == pytest.approx(1 / 3)
    with pytest.raises(ShapeError, match="class_id=3 needs predictions by class"):
        pb.metrics.Recall(class_id=3)(labels, predictions)
    for wrong in ({"class_id": -1}, {"top_k": 0}):
        with pytest.raises(ArgumentError, match="must be"):
            pb.metrics.Precision(**wrong)


@pytest.mark.parametrize("loss", [pb.metrics.categorical_crossentropy, pb.metrics.categorical_focal_crossentropy])
def test_label_smoothing_is_spread_over_the_axis_of_the_classes(loss):
    scores = np.random.default_rng(0).random((2, 3, 4))
    labels = np.eye(3)[np.array([[0, 1, 2, 0], [1, 1, 0, 2]])]
    along_1 = loss(np.moveaxis(labels, -1, 1), scores, label_smoothing=0.1, axis=1)
    np.testing.assert_allclose(along_1, loss(labels, np.moveaxis(scores, 1, -1), label_smoothing=0.1))


def test_class_weight_of_targets_without_classes_raises():
    model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    model.compile("sgd", "mse")
    with pytest.raises(DataError, match=r"class_weight is for targets that are classes, .* got 0\.25"):
        model.fit(np.ones((3, 2)), np.array([0.0, 1.0, 0.25]), class_weight={0: 2.0})
