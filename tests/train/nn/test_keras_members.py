"""Members of models, layers and optimizers that programs for Keras use."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers
from pullback.errors import ArgumentError, CheckpointError

X, Y = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3), np.ones((8, 1), np.float32)


def make_model(units: int = 1) -> Any:
    return pb.sequential([layers.dense(4, "tanh", input_shape=[3], name="h"), layers.dense(units, name="out")])


# ---- optimizers


@pytest.mark.parametrize("eager", [True, False])
def test_learning_rate_is_assigned_during_training(eager: bool) -> None:
    found = []
    for assign in (lambda o: o.learning_rate.assign(0.0), lambda o: setattr(o, "learning_rate", 0.0)):
        model = make_model()
        model.compile(pb.train.sgd(0.1), "mse", eager=eager)
        model.train_on_batch(X, Y)
        before = model.get_weights()
        assign(model.optimizer)
        model.train_on_batch(X, Y)
        assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
        found.append(model.optimizer.learning_rate.numpy())
    assert found == [0.0, 0.0]


def test_learning_rate_pickles_as_a_number() -> None:
    assert type(pickle.loads(pickle.dumps(pb.train.sgd(0.5).learning_rate))) is float


def test_optimizer_variables_and_from_config() -> None:
    model = make_model()
    model.compile(pb.train.adam(0.01), "mse")
    model.fit(X, Y, verbose=0)
    optimizer = model.optimizer
    names = [v.name.rpartition("/")[2] for v in optimizer.variables]
    assert names == ["iterations", "learning_rate", *["m", "v"] * 4]
    assert optimizer.variables[0].numpy() == 1
    other = optimizer.from_config(optimizer.get_config())
    assert other.get_config() == optimizer.get_config()
    assert other.iterations == 0


def test_swap_ema_weights_validates_with_the_averages() -> None:
    seen: dict[str, Any] = {"epoch": [], "train": []}

    class Look(pb.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any) -> None:
            seen["epoch"].append(self.model.get_weights()[0])

        def on_batch_begin(self, batch: int, logs: Any) -> None:
            seen["train"].append(self.model.get_weights()[0])

    runs = []
    for swap in (False, True):
        pb.random.seed(0)
        model = make_model()
        model.compile(pb.train.sgd(0.1, use_ema=True, ema_momentum=0.5), "mse", eager=True)
        swapped = [pb.callbacks.SwapEMAWeights(swap_on_epoch=True)] if swap else []
        history = model.fit(X, Y, epochs=3, shuffle=False, validation_data=(X, Y), callbacks=[*swapped, Look()])
        runs.append((history.history, model.get_weights(), seen))
        seen = {"epoch": [], "train": []}
    (plain, last, first_seen), (averaged, last_averaged, second_seen) = runs
    assert plain["loss"] == averaged["loss"]  # training is the same
    assert plain["val_loss"][1:] != averaged["val_loss"][1:]
    assert all(np.array_equal(a, b) for a, b in zip(last, last_averaged, strict=True))
    np.testing.assert_array_equal(first_seen["train"], second_seen["train"])
    mean = first_seen["train"][1]
    for w, shown in zip(first_seen["epoch"], second_seen["epoch"], strict=True):
        mean = 0.5 * mean + 0.5 * w if w is not first_seen["epoch"][0] else w
        np.testing.assert_allclose(shown, mean, rtol=1e-6)


def test_swap_ema_weights_predicts_with_the_averages() -> None:
    model = make_model()
    model.compile(pb.train.sgd(0.1, use_ema=True, ema_momentum=0.5), "mse", eager=True)
    means = None
    for _ in range(3):
        model.train_on_batch(X, Y)
        now = model.get_weights()
        means = now if means is None else [0.5 * mean + 0.5 * w for mean, w in zip(means, now, strict=True)]
    before = model.predict(X)
    averaged = model.predict(X, callbacks=[pb.callbacks.SwapEMAWeights()])
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_weights(means)
    np.testing.assert_allclose(model.predict(X), averaged, rtol=1e-6)
    assert not np.allclose(before, averaged)


def test_swap_ema_weights_needs_averages() -> None:
    model = make_model()
    model.compile("sgd", "mse")
    with pytest.raises(ArgumentError, match="use_ema=True"):
        model.fit(X, Y, validation_data=(X, Y), callbacks=pb.callbacks.swap_ema_weights())


# ---- copies


def test_clone_model_shares_nothing_and_keeps_shared_layers() -> None:
    x = pb.input([5, 3])
    shared = layers.dense(3, "tanh")
    inner = pb.sequential([layers.dense(2, input_shape=[3])])
    h = layers.bidirectional(layers.gru(2, return_sequences=True))(shared(shared(x)))
    model = pb.model(x, inner(layers.dense(3)(h)[:, 0]))
    other = pb.clone_model(model)
    assert [v.shape for v in other.variables] == [v.shape for v in model.variables]
    assert not {id(v) for v in other.variables} & {id(v) for v in model.variables}
    other.set_weights(model.get_weights())
    given = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    np.testing.assert_allclose(other(given).numpy(), model(given).numpy(), rtol=1e-6)
    other.set_weights([w * 0 for w in model.get_weights()])
    assert np.abs(model(given).numpy()).max() > 0


def test_clone_model_takes_other_layers_from_a_function() -> None:
    def widen(layer: Any) -> Any:
        return layers.dense(7, input_shape=layer.input_shape) if layer.name == "h" else copy.copy(layer)

    model = pb.clone_model(pb.sequential([layers.dense(4, input_shape=[3], name="h"), layers.flatten()]), widen)
    assert model(X).shape == (8, 7)


# ---- files


@pytest.mark.parametrize("ending", ["w.safetensors", "w.weights.h5", "w.json", "w.keras"])
def test_load_weights_skip_mismatch_warns_and_keeps_layer(ending: str, tmp_path: Path) -> None:
    model, other = make_model(), make_model(units=2)
    path = tmp_path / ending
    (model.save if ending.endswith("keras") else model.save_weights)(path)
    with pytest.raises(CheckpointError):
        other.load_weights(path)
    before = other.get_layer("out").get_weights()[0]
    with pytest.warns(UserWarning, match="left out what does not fit"):
        other.load_weights(path, skip_mismatch=True)
    np.testing.assert_array_equal(other.get_layer("h").get_weights()[0], model.get_layer("h").get_weights()[0])
    np.testing.assert_array_equal(other.get_layer("out").get_weights()[0], before)


def test_save_with_overwrite_false_and_without_optimizer(tmp_path: Path) -> None:
    model = make_model()
    model.compile("adam", "mse")
    model.save(tmp_path / "m.safetensors", include_optimizer=False)
    assert pb.load_model(tmp_path / "m.safetensors").optimizer is None
    for save in (model.save, model.save_weights):
        with pytest.raises(ArgumentError, match="overwrite=False"):
            save(tmp_path / "m.safetensors", overwrite=False)


def test_layers_have_dtypes_by_name() -> None:
    assert layers.dense(1).compute_dtype == layers.dense(1).dtype_policy == "float32"
    wide = layers.dense(1, dtype="float64")
    assert (wide.compute_dtype, wide.dtype_policy) == ("float64", "float64")


# ---- metrics in layers


class Watch(layers.Layer):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.size = pb.metrics.Mean(name="size")

    def call(self, x: Any) -> Any:
        self.size.update_state(np.abs(x))
        return x * 1.0


@pytest.mark.parametrize("eager", [True, False])
def test_metrics_of_layers_appear_in_history(eager: bool) -> None:
    model = pb.sequential([layers.dense(2, input_shape=[3]), Watch(), layers.dense(1)])
    model.compile(pb.train.sgd(0.0), "mse", metrics=["mae"], eager=eager)
    sizes = np.abs(X @ model.get_weights()[0])
    found = model.fit(X, Y, epochs=2, batch_size=3, validation_data=(X[:3], Y[:3]), verbose=0).history
    assert list(found) == ["loss", "mae", "size", "val_loss", "val_mae", "val_size"]
    np.testing.assert_allclose(found["size"], [sizes.mean()] * 2, rtol=1e-5)
    np.testing.assert_allclose(found["val_size"], [sizes[:3].mean()] * 2, rtol=1e-5)
    assert model.metrics_names == ["loss", "mae", "size"]
    np.testing.assert_allclose(model.evaluate(X, Y, return_dict=True)["size"], sizes.mean(), rtol=1e-5)
    assert model.predict(np.tile(X, (100, 1)), batch_size=8).shape == (800, 1)


def test_metric_is_updated_in_a_gradient() -> None:
    layer = Watch()
    gradient = pb.grad(lambda x: pb.sum(layer(x) ** 2))(np.ones((2, 3)))
    np.testing.assert_array_equal(gradient, np.full((2, 3), 2.0))
    assert layer.size.result() == 1.0


# ---- JSON data


@pytest.mark.parametrize(
    "made",
    [
        layers.bidirectional(layers.gru(2)),
        pb.sequential([layers.dense(2, input_shape=[3])]),
        pb.train.adam(pb.train.exponential_decay(0.1, 10, 0.5)),
        pb.train.losses.BinaryCrossentropy(from_logits=True),
        pb.metrics.BinaryCrossentropy(from_logits=True),
        pb.metrics.AUC(curve="PR"),
        pb.initializers.constant(0.5),
        pb.regularizers.l2(0.1),
        pb.constraints.max_norm(2.0),
    ],
    ids=lambda made: type(made).__name__,
)
def test_serialize_deserialize_roundtrip(made: Any) -> None:
    data = json.loads(json.dumps(pb.train.serialize(made)))
    again = pb.train.deserialize(data)
    assert type(again) is type(made)
    assert pb.train.serialize(again) == data


def test_serialize_and_deserialize_of_unknown_class_error() -> None:
    with pytest.raises(CheckpointError, match="is a function without a name that a file can hold"):
        pb.train.serialize(pb.metrics.MeanMetricWrapper(lambda y, p: y))
    with pytest.raises(ArgumentError, match="expected a layer, model, optimizer, loss or metric"):
        pb.train.serialize(3)
    with pytest.raises(CheckpointError, match="Nothing"):
        pb.train.deserialize({"class_name": "Nothing", "config": {}})


# ---- low-rank adaptation


@pytest.mark.parametrize("eager", [True, False])
def test_lora_trains_only_its_factors(eager: bool) -> None:
    tokens = np.arange(32).reshape(8, 4) % 7
    model = pb.sequential([
        layers.embedding(7, 3, input_shape=[4]),
        layers.einsum_dense("abc,cd->abd", [None, 5]),
        layers.flatten(),
        layers.dense(1),
    ])  # fmt: skip
    model.compile(pb.train.sgd(0.1), "mse", eager=eager)
    model.fit(tokens, Y, verbose=0)
    adapted = [layer for layer in model.layers if hasattr(layer, "enable_lora")]
    before = model.predict(tokens)
    for layer in adapted:
        layer.enable_lora(2, lora_alpha=6.0)
    np.testing.assert_allclose(model.predict(tokens), before, rtol=1e-6)
    frozen = [getattr(layer, layer.adapted).numpy().copy() for layer in adapted]
    model.fit(tokens, Y, epochs=3, verbose=0)
    assert all(np.array_equal(a, getattr(b, b.adapted).numpy()) for a, b in zip(frozen, adapted, strict=True))
    expected = frozen[2] + 3.0 * adapted[2].lora_a.numpy() @ adapted[2].lora_b.numpy()
    assert np.abs(expected - frozen[2]).max() > 1e-3
    after = model.predict(tokens)
    for layer in adapted:
        layer.merge_lora()
    np.testing.assert_allclose(adapted[2].kernel.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict(tokens), after, rtol=1e-5, atol=1e-6)
    assert len(model.trainable_variables) == len(model.variables) == 4


def test_lora_model_is_saved_as_safetensors_and_refused_as_keras_file(tmp_path: Path) -> None:
    model = pb.sequential([layers.dense(2, input_shape=[3], lora_rank=1)])
    model.layers[0].lora_b.assign(np.ones((1, 2), np.float32))
    model.save(tmp_path / "m.safetensors")
    again = pb.load_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert [v.shape for v in again.trainable_variables] == [(2,), (3, 1), (1, 2)]
    with pytest.raises(CheckpointError, match="merge_lora"):
        model.save(tmp_path / "m.keras")


def test_enable_lora_of_unbuilt_or_adapted_layer_raises() -> None:
    with pytest.raises(ArgumentError, match="no variables yet"):
        layers.dense(2).enable_lora(1)
    layer = layers.dense(2, lora_rank=1)
    layer(X)
    with pytest.raises(ArgumentError, match="already"):
        layer.enable_lora(2)


# ---- functions in functional models


FUNCTIONS = {
    "square": np.square,
    "log1p": lambda h: np.log1p(h * h),
    "reciprocal": lambda h: np.reciprocal(h * h + 1.0),
    "mean": lambda h: np.mean(h, axis=1),
    "max": lambda h: np.max(h, axis=-1, keepdims=True),
    "concatenate": lambda h: np.concatenate([h, 2.0 * h], axis=-1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_saved_in_keras_files(name: str, tmp_path: Path) -> None:
    x = pb.input([4, 3])
    model = pb.model(x, FUNCTIONS[name](layers.dense(3)(x)))
    given = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 4, 3)
    for ending in ("m.keras", "m.h5"):
        model.save(tmp_path / ending)
        np.testing.assert_allclose(pb.load_model(tmp_path / ending).predict(given), model.predict(given), rtol=1e-6)


def test_automatic_layer_names_skip_given_names() -> None:
    x = pb.input([3])
    model = pb.model(x, layers.dense(2, name="dense_2")(layers.dense(4)(layers.dense(3)(x))))
    assert [name for name, _ in model.parts()] == ["dense_1", "dense_3", "dense_2"]
