"""Models with a ``train_step`` or ``test_step`` of their own, as Keras's users write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers
from pullback.errors import ArgumentError, DataError, NanError

X = np.random.default_rng(0).normal(size=(70, 3)).astype(np.float32)
Y = X @ np.array([[1.0], [2.0], [-1.0]], np.float32)


class Plain(pb.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.dense(1, kernel_initializer="ones", kernel_regularizer=pb.regularizers.l2(0.01))

    def call(self, x: Any) -> Any:
        return self.dense(x)


class Own(Plain):
    """Keras's guide: the usual step, written by hand."""

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with pb.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {metric.name: metric.result() for metric in self.metrics}


@pytest.mark.parametrize("eager", [False, True])
def test_custom_train_step_equals_default_step(eager: bool) -> None:
    histories, kernels = [], []
    for kind in (Plain, Own):
        model = kind()
        model.compile(pb.train.sgd(0.05), "mse", metrics=["mae"], run_eagerly=eager)
        history = model.fit(X, Y, epochs=3, batch_size=16, shuffle=False, verbose=0, validation_split=0.2)
        histories.append(history.history)
        kernels.append(model.dense.kernel.numpy())
    np.testing.assert_allclose(kernels[0], kernels[1], rtol=1e-5)
    for name in ("mae", "val_loss", "val_mae"):
        np.testing.assert_allclose(histories[0][name], histories[1][name], rtol=1e-5)
    assert list(histories[1]) == ["loss", "mae", "val_loss", "val_mae"]


def test_custom_train_step_metrics_are_reset_each_epoch() -> None:
    class Tracked(Own):
        def __init__(self) -> None:
            super().__init__()
            self.tracker = pb.metrics.Mean(name="first")

        def train_step(self, data: Any) -> dict[str, Any]:
            self.tracker.update_state(data[0][:, 0])
            return {"first": self.tracker.result()}

    for eager in (False, True):
        model = Tracked()
        model.compile("sgd", "mse", run_eagerly=eager)
        history = model.fit(X, Y, epochs=3, batch_size=16, verbose=0)
        np.testing.assert_allclose(history.history["first"], [X[:, 0].mean()] * 3, rtol=1e-5)


class Encoder(pb.Model):
    """A model that is trained on inputs alone, with two optimizers and without ``call``."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = layers.dense(2, input_shape=[3]), layers.dense(3, input_shape=[2])

    def compile(self, inner: Any, outer: Any) -> None:  # type: ignore[override]
        super().compile()
        self.optimizers = inner, outer

    def train_step(self, data: Any) -> dict[str, Any]:
        x = data + 0.1 * pb.random.normal(data.shape)
        with pb.GradientTape(persistent=True) as tape:
            loss = np.mean((self.outer(self.inner(x)) - data) ** 2)
        for layer, optimizer in zip((self.inner, self.outer), self.optimizers, strict=True):
            gradients = tape.gradient(loss, layer.trainable_variables)
            optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        return {"loss": loss}


def test_custom_train_step_with_two_optimizers_and_no_targets() -> None:
    found = []
    for eager in (False, True):
        pb.random.seed(3)
        model = Encoder()
        model.compile(pb.train.adam(0.05), pb.train.adam(0.05))
        if eager:
            pb.Model.compile(model, run_eagerly=True)
        found.append(model.fit(X, epochs=20, batch_size=35, verbose=0).history["loss"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3)
    assert found[0][-1] < 0.5 * found[0][0]


def test_custom_train_step_takes_datasets_and_dicts() -> None:
    class Named(Plain):
        def train_step(self, data: Any) -> dict[str, Any]:
            with pb.GradientTape() as tape:
                loss = np.mean((self(data["x"]) - data["y"]) ** 2)
            v = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, v), v, strict=True))
            return {"loss": loss}

    model = Named()
    model.compile(pb.train.sgd(0.1))
    data = pb.data.Dataset.from_arrays({"x": X.astype(np.float64), "y": Y}).batch(35)
    losses = model.fit(data, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < 0.3 * losses[0]
    assert model.train_on_batch({"x": X, "y": Y}, return_dict=True)["loss"] < losses[0]


def test_custom_test_step_is_used_by_evaluate_and_validation() -> None:
    class Tested(Plain):
        def test_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            return {"largest": np.max(np.abs(self(x) - y))}

    model = Tested()
    model.compile("sgd", "mse")
    largest = float(np.max(np.abs(model.predict(X) - Y)))
    assert model.evaluate(X, Y, batch_size=70) == pytest.approx(largest, rel=1e-5)
    assert model.test_on_batch(X, Y, return_dict=True) == {"largest": pytest.approx(largest, rel=1e-5)}
    history = model.fit(X, Y, epochs=2, verbose=0, validation_data=(X, Y)).history
    assert list(history) == ["loss", "val_largest"]
    with pytest.raises(ArgumentError, match="batch_size must be an integer of 1 or more, got 0"):
        model.evaluate(X, Y, batch_size=0)


def test_custom_train_step_errors() -> None:
    class Wrong(Plain):
        def train_step(self, data: Any) -> Any:
            return float(np.mean(data[0].numpy()))

    model = Wrong()
    model.compile("sgd", "mse", run_eagerly=True)
    with pytest.raises(ArgumentError, match=r"train_step: expected a dict of numbers by name.*got float"):
        model.fit(X, Y, verbose=0)
    with pytest.raises(ArgumentError, match="class_weight cannot be given"):
        model.fit(X, Y, verbose=0, class_weight={0: 1.0})

    class Used(Plain):
        def train_step(self, data: Any) -> Any:
            mean = pb.metrics.Mean()
            mean.update_state(data[0])
            return {"loss": mean.result() * 2}

    model = Used()
    model.compile("sgd", "mse")
    with pytest.raises(ArgumentError, match=r"result of the metric 'mean' is not known .* run_eagerly=True"):
        model.fit(X, Y, verbose=0)

    class Infinite(Own):
        def train_step(self, data: Any) -> Any:
            return super().train_step((data[0] * np.inf, data[1]))

    model = Infinite()
    model.compile("sgd", "mse")
    with pytest.raises(NanError, match="the loss is not finite in epoch 1, batch 1"):
        model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(model.dense.kernel.numpy(), np.ones((3, 1)))

    class Constant(Plain):
        def train_step(self, data: Any) -> Any:
            return {"loss": np.float32("nan")}

    model = Constant()
    model.compile("sgd", "mse")
    with pytest.raises(NanError, match="Computed again, its gradients are finite"):
        model.fit(X, Y, verbose=0)
    with pytest.raises(DataError, match="fit: a batch has no array"):
        model.fit(iter([()]), verbose=0)


@pytest.mark.parametrize("eager", [False, True])
def test_compute_metrics_in_custom_train_step(eager: bool) -> None:
    class Short(Plain):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with pb.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            self.metrics[0].update_state(loss)
            return self.compute_metrics(x, y, y_pred)

    histories = []
    for kind in (Own, Short):
        model = kind()
        model.compile(pb.train.sgd(0.05), "mse", metrics=["mae"], run_eagerly=eager)
        histories.append(model.fit(X, Y, epochs=2, batch_size=35, shuffle=False, verbose=0).history)
    assert histories[0] == histories[1]
    assert [*model.get_metrics_result().values()] == [values[-1] for values in histories[1].values()]
    plain = Plain()
    plain.compile("sgd", "mse", metrics=["mae"])
    with pytest.raises(ArgumentError, match="for a train_step of the model's own, and it has none"):
        plain.compute_metrics(X, Y, Y)


def test_custom_train_step_is_not_resumed(tmp_path: Path) -> None:
    model = Own()
    model.compile("sgd", "mse")
    path = tmp_path / "run.safetensors"
    model.fit(X, Y, verbose=0, callbacks=[pb.callbacks.model_checkpoint(path, every=1)])
    with pytest.raises(ArgumentError, match="resume= cannot continue a training with a train_step of the model's own"):
        model.fit(X, Y, epochs=2, verbose=0, resume=path)


def test_predict_does_not_take_predict_step() -> None:
    class Doubled(Plain):
        def predict_step(self, data: Any) -> Any:
            return 2 * self(data)

    with pytest.raises(
        ArgumentError, match=r"predict does not call Doubled.predict_step. Write what it returns in call"
    ):
        Doubled().predict(X)
    with pytest.raises(ArgumentError, match=r"the model is not compiled"):
        Plain().compute_loss(y=Y, y_pred=Y)
