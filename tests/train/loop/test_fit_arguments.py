"""The arguments of fit, evaluate and predict: weights, dicts by name, iterables of batches, steps, frequencies."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DataError, ShapeError

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
Y = np.arange(8, dtype=np.float32).reshape(8, 1) / 8


def linear(**settings):
    model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[3])])
    model.compile("sgd", "mse", eager=True, **settings)
    return model


def two_outputs(**settings):
    given = pb.input([3])
    outputs = [pb.layers.dense(n, kernel_initializer="ones", name=name)(given) for name, n in (("a", 1), ("b", 2))]
    model = pb.model(given, outputs)
    model.compile("sgd", "mse", eager=True, **settings)
    return model


def squares(model):
    return np.square(model.predict(X) - Y)[:, 0]


def test_sample_weight_multiplies_losses_and_weighted_metrics():
    model, weight = linear(metrics=["mae"], weighted_metrics=["mse"]), np.arange(8.0)
    found = model.evaluate(X, Y, batch_size=3, sample_weight=weight, return_dict=True)
    errors = squares(model)
    np.testing.assert_allclose(found["loss"], np.mean(errors * weight), rtol=1e-5)
    np.testing.assert_allclose(found["mse"], np.sum(errors * weight) / np.sum(weight), rtol=1e-5)
    np.testing.assert_allclose(found["mae"], np.mean(np.sqrt(errors)), rtol=1e-5)
    by_batch = model.evaluate(pb.data.Dataset.from_arrays((X, Y, weight)).batch(3), return_dict=True)
    assert by_batch == pytest.approx(found)


def test_class_weight_equals_sample_weight_of_labels():
    labels = np.array([0, 1, 2, 0, 1, 2, 1, 1])
    histories = []
    for how in ({"class_weight": {0: 2.0, 1: 0.5}}, {"sample_weight": np.array([2, 0.5, 1])[labels]}):
        model = pb.sequential([pb.layers.dense(3, kernel_initializer="ones", input_shape=[3])])
        model.compile("sgd", "sparse_softmax_cross_entropy")
        histories.append(model.fit(X, labels, batch_size=4, epochs=3, shuffle=False, **how).history["loss"])
    assert histories[0] == pytest.approx(histories[1])
    one_hot = pb.sequential([pb.layers.dense(3, kernel_initializer="ones", input_shape=[3])])
    one_hot.compile("sgd", "softmax_cross_entropy")
    made = one_hot.fit(X, np.eye(3)[labels], 3, 4, shuffle=False, class_weight={0: 2.0, 1: 0.5})
    assert made.history["loss"] == pytest.approx(histories[0])


def test_sample_weight_per_time_step():
    model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[4, 3])])
    model.compile("sgd", "mse", weighted_metrics=["mae"], eager=True)
    x, y = np.stack([X[:4], X[4:]]), np.zeros((2, 4, 1))
    weight = np.array([[1.0, 1, 0, 0], [2, 0, 0, 1]])
    errors = model.predict(x)[..., 0]
    loss, mae = model.evaluate(x, y, sample_weight=weight)
    np.testing.assert_allclose(loss, np.mean(errors**2 * weight), rtol=1e-5)
    np.testing.assert_allclose(mae, np.sum(np.abs(errors) * weight) / weight.sum(), rtol=1e-5)
    with pytest.raises(ShapeError, match="do not fit its values"):
        model.evaluate(x, y, sample_weight=np.ones((2, 3)))


def test_fit_of_several_outputs_takes_weights_as_dicts_or_lists():
    ya, yb = Y, np.eye(2)[[0, 1] * 4]
    histories = [
        two_outputs(loss_weights={"a": 2.0, "b": 1.0}).fit(X, y, shuffle=False, **how).history
        for y, how in (
            ({"b": yb, "a": ya}, {"class_weight": {"b": {0: 3.0}}, "sample_weight": {"a": np.arange(8.0)}}),
            ([ya, yb], {"class_weight": [None, {0: 3.0}], "sample_weight": [np.arange(8.0), None]}),
        )
    ]
    assert histories[0] == histories[1]
    assert list(histories[0]) == ["loss", "a_loss", "b_loss"]
    np.testing.assert_allclose(
        histories[0]["loss"], [2 * histories[0]["a_loss"][0] + histories[0]["b_loss"][0]], rtol=1e-6
    )
    with pytest.raises(ArgumentError, match="there is no 'c'; there are a, b"):
        two_outputs().fit(X, {"c": ya})
    with pytest.raises(ArgumentError, match="several outputs is a dict by output"):
        two_outputs().fit(X, [ya, yb], class_weight={0: 1.0})


@pytest.mark.parametrize("source", ["list", "generator", "iterable", "dataset"])
def test_fit_takes_any_iterable_of_batches(source):
    batches = [(X[i : i + 2], Y[i : i + 2]) for i in range(0, 8, 2)]

    class Loader:
        def __iter__(self):
            return iter(batches)

        def __len__(self):
            return 4

    given = {
        "list": iter(batches * 2),
        "generator": (batch for batch in batches * 2),
        "iterable": Loader(),
        "dataset": pb.data.Dataset.from_arrays((X, Y)).batch(2),
    }[source]
    model, other = linear(), linear()
    steps = None if source in ("iterable", "dataset") else 4
    history = model.fit(given, epochs=2, steps_per_epoch=steps, validation_data=Loader())
    expected = other.fit(X, Y, epochs=2, batch_size=2, shuffle=False, validation_data=(X, Y))
    assert history.history["loss"] == pytest.approx(expected.history["loss"])
    assert history.history["val_loss"] == pytest.approx(expected.history["val_loss"])
    assert history.params["steps"] == 4
    np.testing.assert_allclose(model.predict(Loader()), other.predict(X), rtol=1e-6)
    assert model.evaluate(Loader(), steps=2) == pytest.approx(other.evaluate(X[:4], Y[:4]))


def test_exhausted_generator_error_names_cure():
    with pytest.raises(DataError, match=r"epoch 2 has no batch\. A generator gives its batches once"):
        linear().fit(iter([(X, Y)]), epochs=2)


def test_initial_epoch_and_validation_frequency():
    history = linear().fit(X, Y, epochs=5, initial_epoch=2, validation_data=(X, Y), validation_freq=2)
    assert history.epoch == [2, 3, 4]
    assert (len(history.history["loss"]), len(history.history["val_loss"])) == (3, 1)
    listed = linear().fit(X, Y, epochs=3, validation_data=(X, Y, np.zeros(8)), validation_freq=[1, 3])
    assert listed.history["val_loss"] == [0.0, 0.0]
    assert str(listed).splitlines()[2].split()[-1] == "-"


def test_train_on_batch_reset_argument_accumulates_metrics():
    model = linear(metrics=["mae"])
    model.optimizer = pb.train.sgd(0.0)
    first, second = (model.train_on_batch(X[at], Y[at]) for at in (slice(0, 2), slice(2, 8)))
    assert model.train_on_batch(X[:2], Y[:2], reset=False) == pytest.approx(first)
    both = model.train_on_batch(X[2:], Y[2:], reset=False, return_dict=True)
    assert both["loss"] == pytest.approx((2 * first[0] + 6 * second[0]) / 8)
    assert model.test_on_batch(X[2:], Y[2:]) == pytest.approx(second)
    np.testing.assert_array_equal(model.predict_on_batch(X), model.predict(X))


def test_accumulated_gradients_and_averages_in_fit():
    wide, narrow = linear(), linear()
    wide.optimizer = pb.train.sgd(0.1)
    narrow.optimizer = pb.train.sgd(0.1, gradient_accumulation_steps=2)
    wide.fit(X, Y, batch_size=4, epochs=2, shuffle=False)
    narrow.fit(X, Y, batch_size=2, epochs=2, shuffle=False)
    np.testing.assert_allclose(wide.get_weights()[0], narrow.get_weights()[0], rtol=1e-5)
    averaged = linear()
    averaged.optimizer = pb.train.sgd(0.1, use_ema=True, ema_momentum=0.5)
    averaged.fit(X, Y, batch_size=4, epochs=1, shuffle=False)
    steps = linear()
    steps.optimizer = pb.train.sgd(0.1)
    seen = []
    for at in (slice(0, 4), slice(4, 8)):
        steps.train_on_batch(X[at], Y[at])
        seen.append(steps.get_weights()[0])
    np.testing.assert_allclose(averaged.get_weights()[0], (seen[0] + seen[1]) / 2, rtol=1e-5)


def test_fit_with_add_loss_only():
    class Penalty(pb.layers.Layer):
        def call(self, x):
            self.add_loss(np.mean(x * x))
            return x

    model = pb.sequential([pb.layers.dense(2, input_shape=[3]), Penalty()])
    model.compile("sgd")
    losses = model.fit(X, epochs=3).history["loss"]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("eager", [False, True])
def test_class_weights_do_not_count_in_validation_split(eager):
    x, y = np.sin(np.arange(40.0)).reshape(10, 4), np.arange(10) % 3
    model = pb.sequential([pb.layers.dense(3, activation="softmax", input_shape=[4])])
    model.compile(pb.train.sgd(0.0), "sparse_categorical_crossentropy", eager=eager)
    how = {"validation_split": 0.3, "class_weight": {0: 2.0, 1: 0.5}, "shuffle": False, "batch_size": 10}
    history = model.fit(x, y, **how, verbose=0).history
    weights = np.array([2.0, 0.5, 1.0])[y[:7]]
    assert history["loss"] == pytest.approx([model.evaluate(x[:7], y[:7], sample_weight=weights)], rel=1e-6)
    assert history["val_loss"] == pytest.approx([model.evaluate(x[7:], y[7:])], rel=1e-6)


def test_history_of_smaller_last_batch_equals_eager_steps():
    x, y = np.sin(np.arange(28.0)).reshape(7, 4), np.arange(7) % 3

    def train(eager):
        model = pb.sequential([pb.layers.dense(3, activation="softmax", kernel_initializer="ones", input_shape=[4])])
        metrics = [pb.metrics.SparseTopKCategoricalAccuracy(k=2)]
        model.compile(pb.train.sgd(0.1, use_ema=True), "sparse_categorical_crossentropy", metrics, eager=eager)
        return model.fit(x, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]

    assert train(eager=False) == pytest.approx(train(eager=True), rel=1e-5)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
@pytest.mark.parametrize("argument", ["batch_size", "steps_per_epoch", "validation_steps", "validation_batch_size"])
def test_fit_rejects_counts_below_1(argument, wrong):
    with pytest.raises(ArgumentError, match=f"got {wrong}"):
        linear().fit(X, Y, validation_data=(X, Y), verbose=0, **{argument: wrong})


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [("validation_freq", 0), ("validation_freq", 0.5), ("initial_epoch", -1), ("initial_epoch", 0.5)],
)
def test_fit_rejects_invalid_numbers_of_epochs(argument, wrong):
    with pytest.raises(ArgumentError, match=rf"fit: {argument} must be .*, got {wrong}\."):
        linear().fit(X, Y, validation_data=(X, Y), verbose=0, **{argument: wrong})


@pytest.mark.parametrize("wrong", [0, -1])
def test_evaluate_and_predict_reject_steps_below_1(wrong):
    for call in (lambda: linear().evaluate(X, Y, steps=wrong), lambda: linear().predict(X, steps=wrong)):
        with pytest.raises(ArgumentError, match=f"steps must be a positive whole number, got {wrong}"):
            call()
