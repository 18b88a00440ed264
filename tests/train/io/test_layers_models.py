"""Models of TensorFlow.js and Keras: recorded files give the recorded predictions, and every layer comes back."""

from __future__ import annotations

import json
import math
import sys
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exhaustive import ALL
from layer_cases import list_layers, make_model, predict

import pullback as pb
from pullback.errors import CheckpointError, MissingPackageError, PullbackError
from pullback.train.io.peer_arguments import KERAS, TFJS

pytest.importorskip("safetensors")
DATA = Path(__file__).parent / "data"
ENDS = (".json", ".keras", ".h5", ".safetensors")
PEERS = {".json": TFJS, ".keras": KERAS, ".h5": KERAS}


def is_there(name: str, end: str) -> bool:
    """Return whether the library of a format has this layer."""
    known = {known.lower() for known in PEERS.get(end, ())}
    return end not in PEERS or name.lower() in known


def list_recorded(archive: str) -> list[str]:
    with zipfile.ZipFile(DATA / archive) as file:
        return sorted({name.split("/")[0].split(".")[0] for name in file.namelist()} - {"version"})


def check(model: Any, inputs: list[Any], outputs: list[Any]) -> None:
    made = predict(model, inputs)
    assert [y.shape for y in made] == [y.shape for y in outputs]
    for y, expected in zip(made, outputs, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


# ---- recorded files


def extract_tfjs(name: str, folder: Path) -> tuple[Path, list[Any], list[Any]]:
    with zipfile.ZipFile(DATA / "tfjs_models.zip") as file:
        file.extractall(folder, [one for one in file.namelist() if one.startswith(f"{name}/")])
    found = json.loads((folder / name / "recorded.json").read_text())
    inputs, outputs = ([np.reshape(x["values"], x["shape"]).astype(np.float32) for x in found[key]] for key in found)
    return folder / name, inputs, outputs


def extract_keras(name: str, folder: Path, archive: str = "keras_models.zip") -> tuple[list[Any], list[Any]]:
    with zipfile.ZipFile(DATA / archive) as file:
        file.extractall(folder, [one for one in file.namelist() if one.startswith(f"{name}.")])
    arrays = np.load(folder / f"{name}.npz")
    inputs, outputs = ([arrays[key] for key in arrays if key.startswith(kind)] for kind in "xy")
    return inputs, outputs


@pytest.mark.parametrize("name", list_recorded("tfjs_models.zip"))
def test_load_layers_model_of_tensorflow_js_predicts_as_recorded(tmp_path: Path, name: str) -> None:
    folder, inputs, outputs = extract_tfjs(name, tmp_path)
    model = pb.load_layers_model(folder / "model.json")
    check(model, inputs, outputs)
    for v in model.variables:
        v.assign(np.zeros_like(v.numpy()))
    model.load_weights(folder)
    check(model, inputs, outputs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("archive", "name"),
    [(archive, name) for archive in ("keras_models.zip", "keras2_models.zip") for name in list_recorded(archive)],
)
def test_load_layers_model_of_keras_files_predicts_as_recorded(tmp_path: Path, archive: str, name: str) -> None:
    pytest.importorskip("h5py")
    inputs, outputs = extract_keras(name, tmp_path, archive)
    for end in (".keras", ".h5"):
        model = pb.load_layers_model(tmp_path / f"{name}{end}")
        check(model, inputs, outputs)
        for v in model.variables:
            v.assign(np.zeros_like(v.numpy()))
        model.load_weights(tmp_path / f"{name}.weights.h5")
        check(model, inputs, outputs)
        if (archive, name) != (
            "keras2_models.zip",
            "image",
        ):  # it has Keras 2's hard sigmoid, which Keras 3 does not have
            model.save(tmp_path / f"again{end}")
            check(pb.load_layers_model(tmp_path / f"again{end}"), inputs, outputs)


def test_load_layers_model_compiles_with_training_config(tmp_path: Path) -> None:
    folder, inputs, _ = extract_tfjs("trained", tmp_path)
    model = pb.load_layers_model(folder)
    assert (model.optimizer.name, model.optimizer.learning_rate) == ("adam", 0.01)
    assert len(model.evaluate(inputs[0], np.eye(2, dtype=np.float32))) == 2
    assert model.optimizer.iterations == 1
    moments = [x for name, x in model.optimizer.state_dict().items() if name.endswith("/v")]
    assert len(moments) == len(model.trainable_variables)
    assert all(np.all(x >= 0) for x in moments)
    assert any(np.any(x > 0) for x in moments)
    assert pb.load_layers_model(folder, compile=False).optimizer is None


@pytest.mark.parametrize("name", ["dense", "image", "sequence", "branches"])
def test_load_layers_model_of_tfjs_converter_predicts_as_recorded(tmp_path: Path, name: str) -> None:
    """The converter of TensorFlow.js writes the config of an ``.h5`` file, and its weights by their names there."""
    h5py = pytest.importorskip("h5py")
    inputs, outputs = extract_keras(name, tmp_path)
    weights: dict[str, Any] = {}
    with h5py.File(tmp_path / f"{name}.h5") as file:
        topology = {key: file.attrs[key] for key in ("keras_version", "backend")}
        topology["model_config"] = json.loads(file.attrs["model_config"])
        for group in file["model_weights"].values():
            weights |= {key: group[key][()] for key in group.attrs["weight_names"]}
    entries = [{"name": key, "shape": x.shape, "dtype": "float32"} for key, x in weights.items()]
    (tmp_path / "group1-shard1of1.bin").write_bytes(b"".join(x.tobytes() for x in weights.values()))
    manifest = [{"paths": ["group1-shard1of1.bin"], "weights": entries}]
    content = {"format": "layers-model", "modelTopology": topology, "weightsManifest": manifest}
    (tmp_path / "model.json").write_text(json.dumps(content))
    check(pb.load_layers_model(tmp_path / "model.json"), inputs, outputs)


@pytest.mark.parametrize("end", [".json", ".keras", ".h5"])
@pytest.mark.parametrize(
    "optimizer", [pb.train.sgd(0.1, 0.9, nesterov=True), pb.train.rmsprop(0.02), pb.train.adam(0.03, amsgrad=True)]
)
def test_saved_model_restores_compile_arguments(tmp_path: Path, end: str, optimizer: Any) -> None:
    pytest.importorskip("h5py")
    model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    model.compile(optimizer, "mse", metrics=["mae"])
    model.save(tmp_path / f"model{end}")
    again = pb.load_layers_model(tmp_path / f"model{end}")
    assert (again.optimizer.name, again.optimizer.get_config()) == (optimizer.name, optimizer.get_config())
    x, y = np.ones((4, 2), np.float32), np.zeros((4, 1), np.float32)
    assert again.evaluate(x, y) == model.evaluate(x, y)


LOSS: Any = pb.train.losses
METRIC: Any = pb.metrics


@pytest.mark.parametrize("end", [".keras", ".h5", ".safetensors"])
@pytest.mark.parametrize(("optimizer", "loss", "metrics", "weighted"), [
    (pb.train.sgd(pb.train.exponential_decay(0.1, 2, 0.5)), LOSS.Huber(delta=0.3), [METRIC.AUC(10, "PR")], ["mae"]),
    (pb.train.adam(pb.train.cosine_decay(0.1, 4, 0.01, None, 0.2, 2)), LOSS.BinaryCrossentropy(label_smoothing=0.2),
     [METRIC.Precision(0.3, name="p")], [METRIC.F1Score("macro", 0.4)]),
    (pb.train.adam(0.01, use_ema=True, ema_momentum=0.9), "log_cosh", ["acc", METRIC.TopKCategoricalAccuracy(k=1)], []),
    (pb.train.adafactor(0.1, clip_threshold=0.5), "softmax_cross_entropy", [METRIC.R2Score], []),
    (pb.train.sgd(0.1, loss_scale_factor=2.0), LOSS.CategoricalFocalCrossentropy(alpha=0.5, reduction="sum"), [], []),
])  # fmt: skip
def test_losses_metrics_and_schedules_with_arguments_roundtrip(
    tmp_path: Path, end: str, optimizer: Any, loss: Any, metrics: Any, weighted: Any
) -> None:
    pytest.importorskip("h5py")
    model = pb.sequential([pb.layers.dense(2, activation="sigmoid", input_shape=[3])])
    model.compile(optimizer, loss, metrics=metrics, weighted_metrics=weighted, eager=True)
    model.save(tmp_path / f"model{end}")
    again = pb.load_layers_model(tmp_path / f"model{end}")
    assert str(again.optimizer.get_config()) == str(optimizer.get_config())
    x, y = np.sin(np.arange(24.0)).reshape(8, 3).astype(np.float32), np.eye(2, dtype=np.float32)[np.arange(8) % 2]
    weight = np.linspace(0.5, 1.5, 8).astype(np.float32)
    expected = model.evaluate(x, y, sample_weight=weight, return_dict=True)
    assert len(expected) == 1 + len(metrics) + len(weighted)
    found = again.evaluate(x, y, sample_weight=weight, return_dict=True)
    assert found == {key: pytest.approx(value, rel=1e-6) for key, value in expected.items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [
    lambda: pb.train.sgd(0.05), lambda: pb.train.sgd(0.05, 0.9, nesterov=True), lambda: pb.train.momentum(0.05, 0.9),
    lambda: pb.train.adam(0.05), lambda: pb.train.adamw(0.05, amsgrad=True), lambda: pb.train.adagrad(0.05),
    lambda: pb.train.adadelta(0.05), lambda: pb.train.adamax(0.05), lambda: pb.train.nadam(0.05),
    lambda: pb.train.rmsprop(0.05), lambda: pb.train.rmsprop(0.05, momentum=0.1, centered=True),
    lambda: pb.train.ftrl(0.05), lambda: pb.train.lion(0.05), lambda: pb.train.lamb(0.05),
    lambda: pb.train.momentum(0.05, 0.9, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3),
    lambda: pb.train.adam(pb.train.exponential_decay(0.1, 2, 0.5), gradient_accumulation_steps=3),
    lambda: pb.train.loss_scale_optimizer(pb.train.adam(0.05, use_ema=True), 8.0, 3),
])  # fmt: skip
def test_training_resumes_from_optimizer_state_in_keras_files(tmp_path: Path, make: Any) -> None:
    pytest.importorskip("h5py")
    x = np.sin(np.arange(24.0)).reshape(8, 3).astype(np.float32)
    layers = [pb.layers.dense(2, activation="tanh", name="a", input_shape=[3]), pb.layers.dense(1, name="b")]
    model = pb.sequential(layers)
    model.compile(make(), "mse", eager=True)
    for _ in range(4):
        model.train_on_batch(x, x[:, :1])
    for end in (".keras", ".h5"):
        model.save(tmp_path / f"model{end}")
    expected = [model.train_on_batch(x, x[:, :1]) for _ in range(3)]
    for end in (".keras", ".h5"):
        again = pb.load_layers_model(tmp_path / f"model{end}")
        again.compile(again.optimizer, "mse", eager=True)
        assert again.optimizer.iterations == 4
        np.testing.assert_allclose([again.train_on_batch(x, x[:, :1]) for _ in range(3)], expected, rtol=2e-5)


def train_and_save(optimizer: Any, path: Path) -> None:
    x = np.ones((2, 3), np.float32)
    model = pb.sequential([pb.layers.dense(1, name="a", input_shape=[3])])
    model.compile(optimizer, "mse", eager=True)
    model.train_on_batch(x, x[:, :1])
    model.save(path)


def test_optimizer_state_in_keras_files_has_the_order_of_keras(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    inner = pb.train.rmsprop(0.05, use_ema=True, gradient_accumulation_steps=3)
    train_and_save(pb.train.loss_scale_optimizer(inner), path := tmp_path / "model.h5")
    with h5py.File(path) as file:
        found = [name.partition("/")[2] for name in file["optimizer_state"].attrs["weight_names"].astype(str)]
    assert found == [  # as [v.path for v in optimizer.variables] of Keras 3.15
        "iteration", "learning_rate", "step_counter", "dynamic_scale", "iteration", "learning_rate",
        "a_kernel_average", "a_bias_average", "a_kernel_gradient_accumulator", "a_bias_gradient_accumulator",
        "a_kernel_velocity", "a_bias_velocity",
    ]  # fmt: skip


def test_keras_files_warn_of_optimizer_state_left_out(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with pytest.warns(UserWarning, match="save: the state of adafactor is left out") as caught:
        train_and_save(pb.train.adafactor(0.1), tmp_path / "model.keras")
    assert [w.filename for w in caught] == [__file__]
    train_and_save(pb.train.adam(0.1), path := tmp_path / "model.h5")
    with h5py.File(path, "a") as file:
        attributes = file["optimizer_state"].attrs
        names = attributes["weight_names"].tolist()
    for listed in (names[:-1], names[2:] + names[:2]):
        with h5py.File(path, "a") as file:
            file["optimizer_state"].attrs["weight_names"] = listed
        with pytest.warns(UserWarning, match=r"load: the state of adam in model.h5 is left out") as caught:
            assert pb.load_layers_model(path).optimizer.iterations == 0
        assert [w.filename for w in caught] == [__file__]
    with h5py.File(path, "a") as file:
        file["optimizer_state"].attrs["weight_names"] = names
        training = json.loads(file.attrs["training_config"])
        training["optimizer_config"] = {"class_name": "Adafactor", "config": {"learning_rate": 0.1}}
        file.attrs["training_config"] = json.dumps(training)
    with pytest.warns(UserWarning, match=r"load: the state of adafactor in model.h5 is left out"):
        pb.load_layers_model(path)


EMPTY_SCHEDULE = {"class_name": "CosineDecay", "config": {}}


def change_training(folder: Path, **training: Any) -> None:
    data = json.loads((folder / "model.json").read_text())
    data["trainingConfig"] |= training
    (folder / "model.json").write_text(json.dumps(data))


@pytest.mark.parametrize(("training", "message"), [
    ({"loss": 5}, "5 is not a loss or metric"),
    ({"optimizer_config": 5}, "5 is not an optimizer"),
    ({"optimizer_config": {"class_name": "Strange", "config": {}}}, "there is no optimizer 'Strange' here"),
    ({"optimizer_config": {"class_name": "SGD", "config": {"learning_rate": {"class_name": "Strange"}}}},
     "'Strange' is not a learning-rate schedule of pb.train"),
    ({"optimizer_config": {"class_name": "Adam", "config": {"learning_rate": EMPTY_SCHEDULE}}},
     r"its optimizer cannot be made: cosine_decay\(\) missing 2"),
])  # fmt: skip
def test_load_layers_model_rejects_unknown_training(tmp_path: Path, training: dict[str, Any], message: str) -> None:
    folder, *_ = extract_tfjs("trained", tmp_path)
    change_training(folder, **training)
    with pytest.raises(CheckpointError, match=f"{message}.* Load it with compile=False"):
        pb.load_layers_model(folder)
    assert pb.load_layers_model(folder, compile=False).optimizer is None


def test_load_layers_model_takes_loss_weights_and_automatic_reduction(tmp_path: Path) -> None:
    folder, inputs, outputs = extract_tfjs("trained", tmp_path)
    loss = {"class_name": "MeanSquaredError", "config": {"reduction": "auto", "name": "mse"}}
    change_training(folder, loss=loss, loss_weights=[3.0], metrics=[])
    found = pb.load_layers_model(folder).evaluate(inputs[0], np.eye(2, dtype=np.float32))
    np.testing.assert_allclose(found, 3 * np.mean((outputs[0] - np.eye(2)) ** 2), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "message"), [("dense_1/kernel/w", "/kernel/w' extra"), ("dense_9/kernel/v", "which fits no weight")]
)
def test_load_layers_model_rejects_unknown_optimizer_slots(tmp_path: Path, name: str, message: str) -> None:
    folder, *_ = extract_tfjs("trained", tmp_path)
    data = json.loads((folder / "model.json").read_text())
    weights = [weight for group in data["weightsManifest"] for weight in group["weights"]]
    slot = next(weight for weight in weights if weight["name"].endswith("/kernel/v"))
    slot["name"] = name.replace("dense_1/kernel", slot["name"].removesuffix("/v"))
    (folder / "model.json").write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match=message):
        pb.load_layers_model(folder)


@pytest.mark.parametrize("end", [".json", ".keras", ".h5"])
@pytest.mark.parametrize("arguments", [
    {"optimizer": pb.train.adam(lambda step: 0.1)}, {"optimizer": pb.train.adam(pb.train.step_decay(0.1, 2, 0.5))},
    {"optimizer": pb.train.muon(0.1, weight_decay=None)}, {"metrics": ["kld"]},
    {"loss": "huber_loss", "metrics": ["dice"]}, {"loss": "categorical_generalized_cross_entropy"},
])  # fmt: skip
def test_save_leaves_out_training_that_format_has_not(tmp_path: Path, end: str, arguments: dict[str, Any]) -> None:
    pytest.importorskip("h5py")
    model = pb.sequential([pb.layers.dense(2, input_shape=[3])])
    model.compile(**{"optimizer": "sgd", "loss": "mse"} | arguments)
    model.save(tmp_path / f"model{end}")
    again = pb.load_layers_model(tmp_path / f"model{end}")
    assert again.optimizer is None
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])


@pytest.mark.parametrize("arguments", [
    {"optimizer": pb.train.sgd(0.1, clip_norm=1.0)}, {"loss": LOSS.Huber(delta=0.5)}, {"metrics": [METRIC.AUC(10)]},
    {"optimizer": pb.train.sgd(pb.train.exponential_decay(0.1, 2, 0.5))},
])  # fmt: skip
def test_save_as_tfjs_leaves_out_training_that_keras_has(tmp_path: Path, arguments: dict[str, Any]) -> None:
    pytest.importorskip("h5py")
    model = pb.sequential([pb.layers.dense(2, input_shape=[3])])
    model.compile(**{"optimizer": "sgd", "loss": "mse"} | arguments)
    for end in (".json", ".keras"):
        model.save(tmp_path / f"model{end}")
        assert (pb.load_layers_model(tmp_path / f"model{end}").optimizer is None) == (end == ".json")


def test_serialize_rejects_optimizer_with_function_as_rate() -> None:
    with pytest.raises(CheckpointError, match="serialize: JSON data cannot hold all arguments of adam"):
        pb.train.serialize(pb.train.adam(lambda step: 0.1))


def test_load_layers_model_rejects_unknown_losses_by_name(tmp_path: Path) -> None:
    folder, *_ = extract_tfjs("trained", tmp_path)
    data = json.loads((folder / "model.json").read_text())
    data["trainingConfig"]["loss"] = "my_loss"
    (folder / "model.json").write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match=r"'my_loss'.*compile=False"):
        pb.load_layers_model(folder)
    data["trainingConfig"] |= {
        "loss": "mse",
        "optimizer_config": {"class_name": "Adam", "config": {"warmth": 2.0}},
    }
    (folder / "model.json").write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match=r"warmth=2.0.*compile=False"):
        pb.load_layers_model(folder)


def describe_call(name: str, kind: str, config: dict[str, Any], *args: Any, **keywords: Any) -> dict[str, Any]:
    """A layer, or an operation of lower-case module name, of a functional model as Keras writes it."""
    module = "keras.src.ops.numpy" if name.startswith("op") else "keras.layers"
    nodes = [{"args": list(args), "kwargs": keywords}] if args else []
    return {
        "module": module, "class_name": kind, "name": name, "config": {"name": name, **config}, "inbound_nodes": nodes,
    }  # fmt: skip


def describe_output(name: str) -> dict[str, Any]:
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, 0, 0]}}


def make_functional(*layers: dict[str, Any]) -> Any:
    ends = {"input_layers": [["x", 0, 0]], "output_layers": [[layers[-1]["name"], 0, 0]]}
    first = describe_call("x", "InputLayer", {"batch_shape": [None, 4, 3], "dtype": "float32"})
    data = {"class_name": "Functional", "config": {"name": "m", "layers": [first, *layers], **ends}}
    return pb.model_from_json(json.dumps(data))


def test_operations_in_keras_graphs_equal_functions() -> None:
    x, end = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype(np.float32), {"class_name": "__slice__", "config": {}}
    model = make_functional(
        describe_call("op1", "Multiply", {}, describe_output("x"), 2.0),
        describe_call("op2", "Add", {}, describe_output("op1"), describe_output("x")),
        describe_call("op3", "Maximum", {}, describe_output("op2"), 0.1),
        describe_call("op4", "Mean", {"axis": [1], "keepdims": False}, describe_output("op3")),
        describe_call("op5", "GetItem", {}, describe_output("op4"), [end, 0]),
    )
    np.testing.assert_allclose(model.predict(x), np.maximum(3 * x, 0.1).mean(1)[:, 0], rtol=1e-6)
    with pytest.raises(CheckpointError, match="'op1' is of class 'Kaiser'"):
        make_functional(describe_call("op1", "Kaiser", {}, describe_output("x")))


def test_operations_of_keras_keep_their_arguments() -> None:
    x = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype(np.float32)
    model = make_functional(
        describe_call("op1", "Elu", {"alpha": 0.5}, describe_output("x")),
        describe_call("op2", "Pad", {"pad_width": [[0, 0], [1, 0], [0, 0]], "mode": "reflect"}, describe_output("op1")),
    )
    y = np.where(x > 0, x, 0.5 * np.expm1(x))
    np.testing.assert_allclose(model.predict(x), np.concatenate([y[:, 1:2], y], 1), rtol=1e-6)
    model = make_functional(
        describe_call("op1", "Pad", {"pad_width": [[0, 0], [1, 0], [0, 0]]}, describe_output("x"), constant_values=2.0)
    )
    np.testing.assert_array_equal(model.predict(x)[:, 0], 2.0)


def test_mask_operations_in_keras_graphs_become_masking_layers() -> None:
    x = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype(np.float32)
    x[0, 2:] = 0.0
    model = make_functional(
        describe_call("op1", "NotEqual", {}, describe_output("x"), 0.0),
        describe_call("mask", "Masking", {"mask_value": 0.0}, describe_output("x")),
        describe_call("op2", "Any", {"axis": -1, "keepdims": False}, describe_output("op1")),
        describe_call(
            "rnn", "SimpleRNN", {"units": 2, "zero_output_for_mask": True, "return_sequences": True},
            describe_output("mask"), mask=describe_output("op2"),
        ),
    )  # fmt: skip
    found = model.predict(x)
    np.testing.assert_array_equal(found[0, 2:], 0.0)
    assert np.all(found[0, :2] != 0)
    assert [type(layer).__name__ for layer in model.layers] == ["Masking", "SimpleRnn"]


def test_mask_operations_are_found_through_layers_that_keep_masks() -> None:
    x = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype(np.float32)
    x[0, 2:] = 0.0
    rnn = {"units": 2, "zero_output_for_mask": True, "return_sequences": True}
    calls = [
        describe_call("op1", "NotEqual", {}, describe_output("x"), 0.0),
        describe_call("op2", "Any", {"axis": -1, "keepdims": False}, describe_output("op1")),
        describe_call("mask", "Masking", {"mask_value": 0.0}, describe_output("x")),
        describe_call("tanh", "Activation", {"activation": "tanh"}, describe_output("mask")),
    ]
    mask = describe_output("op2")
    model = make_functional(*calls, describe_call("rnn", "SimpleRNN", rnn, describe_output("tanh"), mask=mask))
    assert [type(layer).__name__ for layer in model.layers] == ["Masking", "Activation", "SimpleRnn"]
    np.testing.assert_array_equal(model.predict(x)[0, 2:], 0.0)
    model = make_functional(*calls[:2], describe_call("rnn", "SimpleRNN", rnn, describe_output("x"), mask=mask))
    assert len(model.layers) > 1  # the operations stay: nothing else makes the mask
    np.testing.assert_array_equal(model.predict(x)[0, 2:], 0.0)


def describe_array(value: Any, dtype: str = "float32") -> dict[str, Any]:
    return {"class_name": "__numpy__", "config": {"value": value, "dtype": dtype}}


def test_constants_and_ellipsis_in_keras_graphs() -> None:
    x, rest = np.arange(24, dtype=np.float32).reshape(2, 4, 3), {"class_name": "__ellipsis__", "config": {}}
    model = make_functional(
        describe_call("op1", "Multiply", {}, describe_output("x"), describe_array([1, 2, 4])),
        describe_call("op2", "GetItem", {}, describe_output("op1"), [rest, 1]),
    )
    np.testing.assert_array_equal(model.predict(x), 2 * x[..., 1])


@pytest.mark.parametrize(("kind", "config", "function"), [
    ("Relu6", {}, lambda x: np.clip(x, 0, 6)),
    ("Gelu", {"approximate": False}, lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2),
    ("Gelu", {"approximate": True}, lambda x: x / (1 + np.exp(-((8 / np.pi) ** 0.5) * (x + 0.044715 * x**3)))),
    ("Cast", {"dtype": "float32"}, lambda x: x),
    ("Cast", {"dtype": "int32"}, lambda x: x.astype(np.int32)),
])  # fmt: skip
def test_activations_and_casts_in_keras_graphs(kind: str, config: dict[str, Any], function: Any) -> None:
    x = np.linspace(-3, 8, 24, dtype=np.float32).reshape(2, 4, 3)
    found = make_functional(describe_call("op1", kind, config, describe_output("x"))).predict(x)
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-6)
    assert found.dtype == config.get("dtype", "float32")


def test_shared_object_in_keras_json_is_one_layer() -> None:
    inner = {"class_name": "Dense", "config": {"units": 3, "name": "d"}, "shared_object_id": 7}
    layers = [{"class_name": "TimeDistributed", "config": {"name": name, "layer": inner}} for name in "ab"]
    layers[0]["config"]["batch_input_shape"] = [None, 4, 3]
    model = pb.model_from_json(json.dumps({"class_name": "Sequential", "config": {"layers": layers}}))
    assert model.layers[0].layer is model.layers[1].layer
    assert len(model.variables) == 2


# ---- round trips


def as_plain(x: Any, key: str = "") -> Any:
    """Return a config such that a tuple is a list, one number stands for equal ones, and objects for their names."""
    if isinstance(x, pb.layers.Layer):
        return as_plain({key: item for key, item in x.get_config().items() if key not in ("name", "input_shape")})
    if isinstance(x, list | tuple):
        items = [as_plain(item) for item in x]
        return items[0] if items and all(item == items[0] for item in items) else items
    if isinstance(x, dict):
        return {key: as_plain(item, key) for key, item in x.items()}
    return pb.initializers.initializer(x) if key.endswith("_initializer") and isinstance(x, str) else x


@pytest.mark.parametrize("name", list_layers())
def test_every_layer_roundtrips_in_every_format(tmp_path: Path, name: str) -> None:
    pytest.importorskip("h5py")
    model, inputs = make_model(name)
    expected = predict(model, inputs)
    for end in ENDS:
        path = tmp_path / f"model{end}"
        if not is_there(name, end):
            with pytest.raises(CheckpointError, match=f"{name} layer, which (TensorFlow.js|Keras 3) does not have"):
                model.save(path)
            continue
        model.save(path)
        again = pb.load_layers_model(path)
        for y, wanted in zip(predict(again, inputs), expected, strict=True):
            np.testing.assert_array_equal(y, wanted)
        for layer, other in zip(model.layers, again.layers, strict=True):
            assert as_plain(layer) == as_plain(other)


@dataclass(eq=False)
class Scale(pb.layers.Layer):
    start: float = 1.0

    def build(self, shape: tuple[int, ...]) -> None:
        self.factor = self.weight("factor", shape, pb.initializers.constant(self.start))

    def call(self, x: Any) -> Any:
        return x * self.factor


@pytest.mark.parametrize("end", ENDS)
def test_load_finds_user_layers_by_class(tmp_path: Path, end: str) -> None:
    pytest.importorskip("h5py")
    x = np.ones((1, 2), np.float32)
    model = pb.sequential([Scale(3.0, input_shape=[2]), pb.layers.dense(1, kernel_initializer="ones")])
    model.save(tmp_path / f"model{end}")
    again = pb.load_layers_model(tmp_path / f"model{end}")
    assert again.layers[0].start == 3
    assert again.predict(x).tolist() == [[6]]


@dataclass(eq=False)
class lookupTable(pb.layers.Layer):  # noqa: N801 - a class that Keras would spell otherwise
    values: Any = None
    kind: Any = None
    options: Any = None

    def call(self, x: Any) -> Any:
        return x * float(np.sum(self.values)) + self.options["offset"][1]


@pytest.mark.parametrize("end", ENDS)
def test_arguments_of_user_layers_roundtrip_as_json(tmp_path: Path, end: str) -> None:
    pytest.importorskip("h5py")
    layer = lookupTable(np.array([1.0, 2.0]), np.dtype("float32"), {"offset": (1, 2)}, input_shape=[2])
    pb.sequential([layer, pb.layers.dense(1, kernel_initializer="ones")]).save(tmp_path / f"model{end}")
    again = pb.load_layers_model(tmp_path / f"model{end}")
    assert (list(again.layers[0].values), np.dtype(again.layers[0].kind)) == ([1, 2], np.float32)
    assert again.predict(np.ones((1, 2), np.float32)).tolist() == [[10]]


def test_dtype_initializers_and_regularizers_in_files(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    dense = pb.layers.dense(
        2, kernel_initializer="he_normal", kernel_regularizer="l1", dtype="float64", input_shape=[2]
    )
    for end in (".keras", ".h5", ".json"):
        pb.sequential([dense]).save(tmp_path / f"model{end}")
        layer = pb.load_layers_model(tmp_path / f"model{end}").layers[0]
        assert layer.kernel.dtype == np.float64
        initializer = layer.kernel_initializer
        assert (initializer.scale, initializer.mode, initializer.distribution) == (2.0, "fan_in", "normal")
        assert layer.kernel_regularizer(np.array([-2.0, 1.0])) == pytest.approx(0.03)
    config = json.loads(pb.sequential([dense]).to_json())["config"]["layers"][1]["config"]
    assert config["kernel_initializer"]["config"]["distribution"] == "truncated_normal"


def test_tuples_in_keras_json_are_tuples() -> None:
    config = {"size": {"class_name": "__tuple__", "items": [2, 3]}, "batch_input_shape": [None, 2, 2, 1]}
    data = {"class_name": "Sequential", "config": {"layers": [{"class_name": "UpSampling2D", "config": config}]}}
    assert pb.model_from_json(json.dumps(data)).layers[0].size == (2, 3)


def test_nested_models_with_equal_layer_names_roundtrip(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    x = pb.input([2])
    inner = [pb.sequential([pb.layers.dense(2, input_shape=[2])]) for _ in range(2)]
    model = pb.model(x, [inner[0](x), inner[1](inner[0](x))])
    given = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    for end in ENDS:
        model.save(tmp_path / f"model{end}")
        check(pb.load_layers_model(tmp_path / f"model{end}"), [given], predict(model, [given]))


@pytest.mark.parametrize("end", [".weights.h5", ".json", ".safetensors"])
def test_save_weights_roundtrip(tmp_path: Path, end: str) -> None:
    pytest.importorskip("h5py")

    def make() -> Any:
        stack = [pb.layers.lstm(2, input_shape=[3, 2]), pb.layers.batch_normalization(), pb.layers.dense(1)]
        return pb.sequential(stack)

    model, other = make(), make()
    model.save_weights(tmp_path / f"weights{end}")
    other.load_weights(tmp_path / f"weights{end}")
    given = np.ones((2, 3, 2), np.float32)
    check(other, [given], predict(model, [given]))
    with pytest.raises(CheckpointError):
        pb.sequential([pb.layers.dense(3, input_shape=[2])]).load_weights(tmp_path / f"weights{end}")


def test_call_keywords_roundtrip(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    x, allowed = pb.input([4, 6], name="x"), pb.input([4, 4], name="allowed")
    heads = pb.layers.multi_head_attention(2, 3)
    model = pb.model([x, allowed], [heads(x, x, use_causal_mask=True), heads(x, x, attention_mask=allowed)])
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(2, 4, 6)).astype(np.float32), np.tile(np.eye(4, dtype=np.float32), (2, 1, 1))]
    for end in (".keras", ".h5", ".safetensors"):
        model.save(tmp_path / f"model{end}")
        again = pb.load_layers_model(tmp_path / f"model{end}")
        check(again, inputs, predict(model, inputs))
    with pytest.raises(CheckpointError, match=r"which TensorFlow.js does not have"):
        model.save(tmp_path / "model.json")


def test_hard_sigmoid_differs_between_keras_3_and_tfjs() -> None:
    x = np.array([[1.0]], np.float32)
    layer = {"class_name": "Activation", "config": {"activation": "hard_sigmoid", "batch_input_shape": [None, 1]}}
    data = {"class_name": "Sequential", "config": {"layers": [layer]}}
    for version, expected in (("2.15.0", 0.7), ("tfjs-layers 4.22.0", 0.7), ("3.15.0", 4 / 6)):
        model = pb.model_from_json(json.dumps(data | {"keras_version": version}))
        np.testing.assert_allclose(model.predict(x), [[expected]], rtol=1e-6)


# ---- refusals


def describe_dense(**config: Any) -> dict[str, Any]:
    layer = {"class_name": "Dense", "config": {"units": 3, "name": "a", "batch_input_shape": [None, 2]} | config}
    return {"class_name": "Sequential", "config": {"name": "m", "layers": [layer]}}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"bogus": 3}, r"layer 'a' has bogus=3, which is unknown here"),
        ({"kernel_initializer": {"class_name": "Strange", "config": {}}}, "'Strange', which is not known here"),
        ({"units": -1}, "units must be"),
        ({"units": "three"}, "units must be"),
        ({"activation": "strange"}, "strange"),
        ({"activation": {"class_name": "function", "config": "os.system", "module": "os"}}, "is code in a file"),
        ({"dtype": "float99"}, "float99"),
        ({"batch_input_shape": [None, -2]}, "which is no shape"),
        ({"batch_input_shape": []}, "which is no shape"),
        ({"dtype": 5}, "the dtype 5 is not a name"),
    ],
)
def test_load_error_names_unknown_layer_argument(config: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        pb.model_from_json(json.dumps(describe_dense(**config)))


@pytest.mark.parametrize("config", [{"bogus": None}, {"bogus": False}, {"groups": 1}, {"implementation": 2}])
def test_load_ignores_arguments_without_effect(config: dict[str, Any]) -> None:
    assert pb.model_from_json(json.dumps(describe_dense(**config))).layers[0].units == 3


@pytest.mark.parametrize("shape", [[None, 2], [5, 2], {"class_name": "__tuple__", "items": [5, 2]}])
def test_load_keeps_batch_size_of_input_shape(shape: Any) -> None:
    layer = pb.model_from_json(json.dumps(describe_dense(batch_input_shape=shape))).layers[0]
    assert (layer.batch_size, layer.input_shape) == (None if shape == [None, 2] else 5, (2,))


@pytest.mark.parametrize("data", [
    {"config": {"layers": [{"class_name": "Dense", "config": {"units": 3}}], "build_input_shape": [None, 2]}},
    {"config": {"layers": [{"class_name": "Dense", "config": {"units": 3}}]}, "build_config": {"input_shape": [9, 2]}},
    {"config": describe_dense()["config"]["layers"]},  # of Keras before 2.2.3
])  # fmt: skip
def test_sequential_json_builds_with_input_shape_beside_layers(data: dict[str, Any]) -> None:
    model = pb.model_from_json(json.dumps({"class_name": "Sequential"} | data))
    assert [x.shape for x in model.get_weights()] == [(2, 3), (3,)]


@pytest.mark.parametrize(("config", "expected"), [
    ({"class_name": "RandomUniform",
      "config": {"minval": -1.0, "maxval": 1.0, "seed": {"class_name": "SeedGenerator", "config": {"seed": 3}}}},
     pb.initializers.random_uniform(-1.0, 1.0, seed=3)),
    ({"class_name": "VarianceScaling",
      "config": {"scale": 2.0, "mode": "fan_in", "distribution": "truncated_normal", "seed": 3}},
     pb.initializers.he_normal(seed=3)),
])  # fmt: skip
def test_initializers_in_keras_json_draw_as_here(config: dict[str, Any], expected: Any) -> None:
    model = pb.model_from_json(json.dumps(describe_dense(kernel_initializer=config)))
    np.testing.assert_array_equal(model.get_weights()[0], expected((2, 3), np.float32))


class Plain(pb.layers.Layer):
    def __init__(self, name: str = "") -> None:
        super().__init__(name=name)


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("Dense", 5, "the config of layer 0 must be a dict, got 5"),
        ("Plain", {"name": "p", "dtype": "float64"}, "layer 'p' has dtype 'float64', which it cannot have here"),
        (
            "UpSampling2D",
            {"name": "up", "interpolation": "bilinear"},
            "'up' has interpolation='bilinear', .* TensorFlow.js",
        ),
        ("Reshape", {"name": "r"}, r"do not fit together \(.*'target_shape'\)"),
    ],
)
def test_load_rejects_layer_that_cannot_be_made(kind: str, config: Any, message: str) -> None:
    data = {"class_name": "Sequential", "config": {"layers": [{"class_name": kind, "config": config}]}}
    with pytest.raises(CheckpointError, match=message):
        pb.model_from_json(json.dumps(data | {"keras_version": "tfjs-layers 4.22.0"}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "is not described by a class name"),
        ({"class_name": "Lambda", "config": {"function": ["4wEAAAA=", None, None]}}, "never run"),
        ({"class_name": "ApplyFunction", "config": {"function": "np.save"}}, "never run"),
        ({"class_name": "Dense", "config": {"units": 3}}, "expected a model, got a Dense"),
        ({"class_name": "Zeros", "config": {}}, "which is not a layer here"),
        ({"class_name": "Sequential", "config": {"layers": 5}}, "no list of layers"),
        ({"class_name": "Functional", "config": {"layers": []}}, "input_layers is None"),
        ({"class_name": "Nested", "config": {}}, "'Nested', which is not a layer here"),
    ],
)
def test_load_rejects_topology_without_model(data: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        pb.model_from_json(json.dumps(data))


def test_functional_graph_with_a_cycle_raises() -> None:
    layers = [
        {"name": "x", "class_name": "InputLayer", "config": {"batch_input_shape": [None, 2]}, "inbound_nodes": []},
        {"name": "a", "class_name": "Activation", "config": {"activation": "relu"}, "inbound_nodes": [[["b", 0, 0]]]},
        {"name": "b", "class_name": "Activation", "config": {"activation": "relu"}, "inbound_nodes": [[["a", 0, 0]]]},
    ]
    config = {"layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [["b", 0, 0]]}
    with pytest.raises(CheckpointError, match="needs its own output"):
        pb.model_from_json(json.dumps({"class_name": "Model", "config": config}))


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("model", {"layers": 5}, "a functional model has no list of layers"),
        ("model", {"output_layers": [["a", 0, 2]]}, "layer 'a' has no output number 2"),
        ("input", {"config": {}}, "input 'x' has no shape"),
        ("layer", {"inbound_nodes": 5}, "layer 'a' has no list of inbound nodes"),
        ("layer", {"inbound_nodes": [[["x", 0, 0, 5]]]}, "layer 'a' is called with 5, which is not known"),
        ("layer", {"inbound_nodes": [[["x", 3, 0]]]}, "layer 'x' has no application number 3"),
    ],
)
def test_functional_graph_with_wrong_references_raises(part: str, change: dict[str, Any], message: str) -> None:
    first = {"name": "x", "class_name": "InputLayer", "config": {"batch_input_shape": [None, 2]}, "inbound_nodes": []}
    last = {"name": "a", "class_name": "Dense", "config": {"units": 1}, "inbound_nodes": [[["x", 0, 0]]]}
    config = {"layers": [first, last], "input_layers": [["x", 0, 0]], "output_layers": [["a", 0, 0]]}
    {"model": config, "input": first, "layer": last}[part].update(change)
    with pytest.raises(CheckpointError, match=message):
        pb.model_from_json(json.dumps({"class_name": "Model", "config": config}))


@pytest.mark.parametrize(
    ("kind", "config", "keywords", "message"),
    [
        ("Dense", {"units": 2}, {"strange": 3}, "layer 'h' is called with strange=3, which is unknown here"),
        ("Dense", {"units": 2}, {"training": True}, "layer 'h' is called with training=True"),
        ("Attention", {}, {"key": describe_output("x")}, "layer 'h' is called with key="),
    ],
)
def test_functional_graph_with_unknown_call_keywords_raises(
    kind: str, config: dict[str, Any], keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        make_functional(describe_call("h", kind, config, describe_output("x"), **keywords))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (describe_array([[1], [2, 3]]), "do not fit together"),
        (describe_array([1, 2], "object"), "'op1' has a constant .*, which is not known"),
        ({"class_name": "__keras_tensor__", "config": {}}, "'op1' has an input .*, which is not known"),
    ],
)
def test_functional_graph_with_unknown_values_raises(value: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        make_functional(describe_call("op1", "Multiply", {}, describe_output("x"), value))
    with pytest.raises(CheckpointError, match="'op1' is of class 'Cast'"):
        make_functional(describe_call("op1", "Cast", {"dtype": "float64"}, describe_output("x")))


@dataclass(eq=False)
class Twins(pb.layers.Layer):
    def build(self, shape: tuple[int, ...]) -> None:
        self.pair = {"kernel": self.weight("one", (1,), "ones"), "inner": {"kernel": self.weight("two", (1,), "ones")}}

    def call(self, x: Any) -> Any:
        return x


def test_save_rejects_layers_with_other_meaning_in_format(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    up = pb.sequential([pb.layers.up_sampling2d(interpolation="bilinear", input_shape=[2, 2, 1])])
    with pytest.raises(CheckpointError, match="does not compute as it is here"):
        up.save(tmp_path / "model.json")
    with pytest.raises(CheckpointError, match="reset_after=True"):
        pb.sequential([pb.layers.gru(2, reset_after=True, input_shape=[2, 2])]).save(tmp_path / "model.json")
    with pytest.raises(CheckpointError, match="which a file cannot hold"):
        pb.sequential([pb.layers.dense(2, activation=np.tanh, input_shape=[2])]).save(tmp_path / "model.keras")
    with pytest.raises(CheckpointError, match=r"has groups=2, which Conv2D of TensorFlow.js does not take"):
        pb.sequential([pb.layers.conv2d(2, 2, groups=2, input_shape=[3, 3, 2])]).save(tmp_path / "model.json")
    with pytest.raises(CheckpointError, match="has causal, which are arguments of the call in Keras 3"):
        pb.sequential([pb.layers.multi_head_attention(2, 2, causal=True, input_shape=[4, 3])]).to_json()
    x, mask = pb.input([4, 3]), pb.input([4])
    with pytest.raises(CheckpointError, match=r"is called with mask, which TensorFlow.js does not take"):
        pb.model([x, mask], pb.layers.gru(2)(x, mask=mask)).save(tmp_path / "model.json")
    for end in (".json", ".keras"):
        with pytest.raises(CheckpointError, match="is a ApplyFunction layer"):
            pb.model(x, x * np.array([1.0, 2.0, 3.0])).save(tmp_path / f"model{end}")
    layer = pb.layers.dense(2, input_shape=[2])
    model = pb.sequential([layer])
    layer.kernel_initializer = "strange"
    with pytest.raises(CheckpointError, match=r"kernel_initializer='strange', which is not one of pb.initializers"):
        model.to_json()
    twins = pb.sequential([pb.layers.dense(1, name="a", input_shape=[2]), Twins(name="b")])
    with pytest.raises(CheckpointError, match=r"two variables would be called 'b/kernel' in the file. Rename a layer"):
        twins.save(tmp_path / "model.json")


# ---- files that lie


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    pb.sequential([pb.layers.dense(3, input_shape=[2], name="a")]).save(tmp_path / "model.json")
    return tmp_path / "model.json"


def change(path: Path, **weight: Any) -> None:
    """Change the first weight of a manifest, or its paths."""
    data = json.loads(path.read_text())
    group = data["weightsManifest"][0]
    (group if weight.keys() & {"paths", "weights"} else group["weights"][0]).update(weight)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({"paths": ["../secret.bin"]}, "not a file in its folder"),
        ({"paths": ["/etc/passwd"]}, "not a file in its folder"),
        ({"paths": ["..\\secret.bin"]}, "not a file in its folder"),
        ({"paths": ["link.bin"]}, "not a file in its folder"),
        ({"paths": ["there/is/none.bin"]}, "which is not in its folder"),
        ({"paths": [3]}, "not a file in its folder"),
        ({"shape": [2**39, 2**39]}, "bytes from"),
        ({"shape": [-1]}, "of shape"),
        ({"shape": [2, 4]}, "needs 44 bytes from .*, which have 36"),
        ({"dtype": "object"}, "dtype 'object'"),
        ({"name": "b/kernel"}, "'b/kernel', for which the model has no variable"),
        ({"name": "a/bias"}, "two weights called"),
        ({"name": "a/bias_1"}, "a/bias_1, a/bias may be a/bias. Give the layers names of their own"),
        ({"weights": 5}, "a group of weights without a list of weights"),
        ({"weights": [5]}, "has a weight 5, expected a name, a shape and a dtype"),
        ({"quantization": {"dtype": "uint4", "scale": 1, "min": 0}}, "quantization"),
        ({"quantization": {"dtype": "uint8", "scale": "1", "min": 0}}, "quantization"),
    ],
)
def test_load_rejects_wrong_manifest(saved: Path, weight: dict[str, Any], message: str) -> None:
    (saved.parent.parent / "secret.bin").write_bytes(b"x" * 36)
    (saved.parent / "link.bin").symlink_to(saved.parent.parent / "secret.bin")
    change(saved, **weight)
    with pytest.raises(CheckpointError, match=message):
        pb.load_layers_model(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "model.json holds a list, expected a model of TensorFlow.js"),
        ('{"format": "graph-model"}', "model.json is a graph model"),
        ('{"weightsManifest": 5}', "model.json has no manifest of weights"),
    ],
)
def test_load_rejects_json_without_layers_model(saved: Path, content: str, message: str) -> None:
    saved.write_text(content)
    with pytest.raises(CheckpointError, match=message):
        pb.load_layers_model(saved)
    for path in (saved.parent / "none.json", saved.parent / "none.keras"):
        with pytest.raises(FileNotFoundError, match=r"load: there is no file '.*none\.(json|keras)'"):
            pb.load_layers_model(path)
    saved.unlink()
    with pytest.raises(FileNotFoundError, match=r"load: there is no file '.*model\.json'"):
        pb.load_layers_model(saved.parent)


def test_load_weights_skip_mismatch_leaves_out_ambiguous_names(saved: Path) -> None:
    change(saved, name="a/bias_1")
    model = pb.sequential([pb.layers.dense(3, input_shape=[2], name="a", bias_initializer="ones")])
    with pytest.warns(UserWarning, match=r"a/bias_1, a/bias may be a/bias\. .* no weights for a/kernel, a/bias\."):
        model.load_weights(saved, skip_mismatch=True)
    np.testing.assert_array_equal(model.get_weights()[1], 1.0)


def test_load_rejects_layers_larger_than_file_before_allocating(saved: Path) -> None:
    data = json.loads(saved.read_text())
    data["modelTopology"]["config"]["layers"][1]["config"]["units"] = 10**12
    saved.write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match="but the file has only 9 numbers"):
        pb.load_layers_model(saved)


@pytest.mark.parametrize(
    "layers",
    [
        [("ZeroPadding2D", {"padding": 10**5})],
        [("ZeroPadding2D", {"padding": [[10**5, 1], [10**5, 1]]})],
        [("UpSampling2D", {"size": [10**5, 10**5]})],
        [("UpSampling2D", {"size": [8, 8]})] * 12,
        [("Resizing", {"height": 10**6, "width": 10**6})],
        [("Flatten", {}), ("RepeatVector", {"n": 10**10}), ("Flatten", {})],
    ],
)
def test_load_rejects_layers_with_huge_outputs(saved: Path, layers: list[Any]) -> None:
    data = json.loads(saved.read_text())
    first = {"class_name": "InputLayer", "config": {"batch_input_shape": [None, 2, 2, 1], "name": "x"}}
    made = [{"class_name": kind, "config": {"name": f"l{i}", **config}} for i, (kind, config) in enumerate(layers)]
    data["modelTopology"]["config"]["layers"] = [first, *made]
    saved.write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match="which no model does"):
        pb.load_layers_model(saved)


def test_load_rejects_deeply_nested_json(saved: Path) -> None:
    saved.write_text('{"modelTopology":' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(CheckpointError, match="nested too deeply"):
        pb.load_layers_model(saved)
    saved.write_text('{"modelTopology":' + '{"config":' * 100 + "1" + "}" * 100 + "}")
    with pytest.raises(CheckpointError, match="levels"):
        pb.load_layers_model(saved)


@pytest.mark.parametrize("name", ["np.save", "np.load", "np.ctypeslib.load_library", "np.fromfile", "os.system"])
def test_load_rejects_functions_outside_allowed_names(tmp_path: Path, name: str) -> None:
    x = pb.input([2])
    model = pb.model(x, np.tanh(x))
    model.layers[0].function = name
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"there is no function {name!r}"):
        pb.load_model(tmp_path / "model.safetensors")


def test_load_rejects_zip_bombs(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", " " * 50_000_000)
        archive.writestr("model.weights.h5", b"")
    with pytest.raises(CheckpointError, match="would have 50000000 bytes; it is not read"):
        pb.load_layers_model(path)


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5"])
def test_load_rejects_keras_archive_without_member(tmp_path: Path, name: str) -> None:
    pytest.importorskip("h5py")
    pb.sequential([pb.layers.dense(3, input_shape=[2])]).save(tmp_path / "whole.keras")
    with zipfile.ZipFile(tmp_path / "whole.keras") as whole, zipfile.ZipFile(tmp_path / "part.keras", "w") as part:
        for other in {*whole.namelist()} - {name}:
            part.writestr(other, whole.read(other))
    with pytest.raises(CheckpointError, match=f"part.keras has no {name}, so it is not a model of Keras 3"):
        pb.load_layers_model(tmp_path / "part.keras")


def test_load_rejects_unsafe_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("layers/dense/vars/0", shape=(10**6, 10**6), dtype="f4", chunks=(100, 100))
    model = pb.sequential([pb.layers.dense(3, input_shape=[2])])
    with pytest.raises(CheckpointError, match="it is not read"):
        model.load_weights(path)
    with h5py.File(path, "w") as file:
        file["outside"] = h5py.ExternalLink("/etc/hosts", "/")
    with pytest.raises(CheckpointError, match="which is not followed"):
        model.load_weights(path)
    with h5py.File(path, "w") as file:
        file["again"] = file
    with pytest.raises(CheckpointError, match="inside itself"):
        model.load_weights(path)
    with h5py.File(path, "w", libver="latest") as file:
        for i in range(100):
            file.create_dataset(f"v{i}", (16000,), "f4")
    with pytest.raises(CheckpointError, match="says that it holds 6400000 bytes of arrays, but has"):
        model.load_weights(path)
    with h5py.File(path, "w") as file:
        file["text"] = "text"
    with pytest.raises(CheckpointError, match="expected numbers"):
        model.load_weights(path)


def test_load_rejects_hdf5_external_datasets(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    (tmp_path / "other.bin").write_bytes(bytes(24))
    model = pb.sequential([pb.layers.dense(2, input_shape=[3], use_bias=False)])
    model.save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "a") as file:
        paths: list[str] = []
        file.visititems(lambda name, x: paths.append(name) if isinstance(x, h5py.Dataset) else None)
        del file[paths[0]]
        file.create_dataset(paths[0], (3, 2), "f4", external=[(str(tmp_path / "other.bin"), 0, 24)])
    with pytest.raises(CheckpointError, match="are in another file, which is not read"):
        pb.load_model(tmp_path / "m.h5")


@pytest.mark.parametrize("end", [".json", ".keras", ".h5"])
def test_load_of_damaged_files_raises_pullback_errors_only(tmp_path: Path, end: str) -> None:
    pytest.importorskip("h5py")
    x = pb.input([3, 2])
    model = pb.model(x, pb.layers.dense(2)(pb.layers.lstm(2)(x)))
    path, rng = tmp_path / f"model{end}", np.random.default_rng(5)
    model.save(path)
    whole = path.read_bytes()
    for i in range(150 if ALL else 60):
        data = bytearray(whole)
        if i % 3 == 0:
            data = data[: rng.integers(len(data))]
        for at in rng.integers(len(data), size=0 if i % 3 == 0 else 1 + i % 5) if data else ():
            data[at] = rng.integers(256)
        path.write_bytes(data)
        with suppress(PullbackError):
            pb.load_layers_model(path)


def test_keras_files_without_h5py_raise_with_install_hint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'pullback\[keras\]'"):
        pb.sequential([pb.layers.dense(3, input_shape=[2])]).save(tmp_path / "model.keras")


class Twice(pb.layers.Layer):
    """A layer with layers in a list and a dict."""

    def __init__(self, units: int = 3, **more: Any) -> None:
        super().__init__(**more)
        self.units = units
        self.blocks = [pb.layers.dense(units), pb.layers.dense(units)]
        self.named = {"last": pb.layers.dense(units, use_bias=False)}

    def call(self, x: Any) -> Any:
        return self.named["last"](self.blocks[1](self.blocks[0](x)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


def make_cells() -> Any:
    return pb.layers.rnn([pb.layers.lstm_cell(4), pb.layers.lstm_cell(3), pb.layers.simple_rnn_cell(2)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("file", ["model.json", "model.keras", "model.h5", "model.safetensors"])
@pytest.mark.parametrize("layer", [Twice, make_cells, lambda: pb.layers.bidirectional(make_cells())])
def test_layers_in_lists_are_saved_and_loaded(tmp_path: Path, layer: Any, file: str) -> None:
    model = pb.sequential([pb.layers.reshape([4, 3], input_shape=[12]), layer(), pb.layers.dense(1)])
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 12)
    model.save(tmp_path / file)
    np.testing.assert_array_equal(pb.load_layers_model(tmp_path / file).predict(x), model.predict(x))


def test_rnn_cells_are_saved_under_names_of_tfjs_and_keras(tmp_path: Path) -> None:
    model = pb.sequential([pb.layers.reshape([4, 3], input_shape=[12]), make_cells()])
    model.save(tmp_path / "model.json")
    manifest = json.loads((tmp_path / "model.json").read_text())["weightsManifest"]
    names = {weight["name"].partition("/")[2] for weight in manifest[0]["weights"]}
    assert {"RNNCell_0/kernel", "RNNCell_1/kernel", "RNNCell_2/bias"} <= names
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        (tmp_path / "weights.h5").write_bytes(archive.read("model.weights.h5"))
    with pytest.importorskip("h5py").File(tmp_path / "weights.h5") as file:
        assert {*file["layers/rnn/cell/cells"]} == {"lstm_cell", "lstm_cell_1", "simple_rnn_cell"}


def test_load_takes_arguments_of_a_cell_that_tfjs_repeats() -> None:
    cell = {"class_name": "SimpleRNNCell", "config": {"name": "cell", "units": 2, "use_bias": False}}
    config = {"name": "rnn", "units": 2, "use_bias": False, "cell": cell, "batch_input_shape": [None, 4, 3]}
    data = {"class_name": "Sequential", "config": {"layers": [{"class_name": "RNN", "config": config}]}}
    assert pb.model_from_json(json.dumps(data)).output_shape((4, 3)) == (2,)


def test_load_weights_takes_archives_of_keras(tmp_path: Path) -> None:
    model, other = (pb.sequential([pb.layers.dense(2, input_shape=[3])]) for _ in range(2))
    model.save(tmp_path / "model.keras")
    other.load_weights(tmp_path / "model.keras")
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


# ---- weights layer by layer in .h5 files


def make_stack(last: str = "b", seed: int = 0) -> Any:
    layers = [pb.layers.dense(3, name="a", input_shape=[2]), pb.layers.batch_normalization(name="n")]
    model = pb.sequential([*layers, pb.layers.dense(1, name=last)])
    for v in model.variables:
        v.assign(np.random.default_rng(seed).uniform(size=v.shape).astype(np.float32))
    return model


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """Weights of a model as ``save_weights`` of Keras 2 writes them: the groups of layers are at the top."""
    h5py = pytest.importorskip("h5py")
    make_stack().save(tmp_path / "model.h5")
    with h5py.File(tmp_path / "model.h5") as model, h5py.File(tmp_path / "listed.h5", "w") as file:
        for name, group in model["model_weights"].items():
            model.copy(group, file, name)
        file.attrs["layer_names"] = model["model_weights"].attrs["layer_names"]
    return tmp_path / "listed.h5"


def rename_weights(path: Path, names: list[str]) -> None:
    """Rename the first weights of batch normalization, and let the file list these names."""
    with pytest.importorskip("h5py").File(path, "a") as file:
        for old, new in zip(file["n"].attrs["weight_names"], names, strict=False):
            if new not in file["n"]:
                file["n"].move(old, new)
        file["n"].attrs["weight_names"] = names


def test_load_weights_takes_h5_files_with_and_without_model(listed: Path) -> None:
    for path in (listed, listed.parent / "model.h5"):
        model = make_stack(seed=1)
        model.load_weights(path)
        for found, expected in zip(model.get_weights(), make_stack().get_weights(), strict=True):
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(CheckpointError, match=r"listed.h5 holds weights, but not the model they are of"):
        pb.load_layers_model(listed)


@pytest.mark.parametrize("skip_mismatch", [False, True])
def test_load_weights_takes_h5_weights_of_other_names_in_order(listed: Path, skip_mismatch: bool) -> None:
    rename_weights(listed, ["n/w0", "n/w1", "n/w2", "n/w3"])
    model = make_stack(seed=1)
    model.load_weights(listed, skip_mismatch=skip_mismatch)
    for found, expected in zip(model.get_weights(), make_stack().get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_load_weights_skip_mismatch_leaves_out_h5_layers_and_weights(listed: Path) -> None:
    with pytest.raises(CheckpointError, match="has weights of a layer 'b', which the model does not have"):
        make_stack("other").load_weights(listed)
    rename_weights(listed, ["n/gamma", "n/w1", "n/w2"])
    with pytest.raises(CheckpointError, match="a weight 'n/w1', for which the model has no variable"):
        make_stack().load_weights(listed)
    model, before = make_stack("other", 1), make_stack("other", 1)
    missing = "no weights for n/beta, n/moving_mean, n/moving_variance, other/kernel, other/bias"
    with pytest.warns(UserWarning, match=f"'n/w1', .* 'n/w2', .* a layer 'b', .* {missing}"):
        model.load_weights(listed, skip_mismatch=True)
    for i, found in enumerate(model.get_weights()):
        np.testing.assert_array_equal(found, (make_stack() if i < 3 else before).get_weights()[i])
    rename_weights(listed, ["n/gamma", "n/w1", "n/w2", "n/w3"])
    with pytest.raises(CheckpointError, match="lists the weight 'n/w3' of 'n', but does not contain it"):
        make_stack().load_weights(listed)


def test_load_weights_without_variables_raises(listed: Path) -> None:
    model = pb.sequential([pb.layers.dense(3)], name="m")
    with pytest.raises(CheckpointError, match="load_weights: m has no variables yet: build it, or call it once"):
        model.load_weights(listed)
