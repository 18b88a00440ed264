"""State dicts of PyTorch: recorded modules give the recorded outputs, and come back as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, CheckpointError

pytest.importorskip("safetensors")
RECORDED = Path(__file__).parent / "data" / "torch_modules.safetensors"
IMAGE = {"0": "first", "2": "norm", "3": "apart", "4": "up", "7": "last"}
TEXT = {name: name for name in ("words", "both", "norm", "gru", "rnn", "heads")}


def make_image() -> Any:
    layers = pb.layers
    return pb.sequential([
        layers.conv2d(3, 3, padding="same", activation="relu", name="first", input_shape=[6, 6, 2]),
        layers.batch_normalization(epsilon=1e-5, name="norm"),
        layers.depthwise_conv2d(2, depth_multiplier=2, name="apart"),
        layers.conv2d_transpose(2, 2, strides=2, name="up"), layers.global_average_pooling2d(),
        layers.dense(3, name="last"),
    ])  # fmt: skip


def make_text() -> Any:
    layers = pb.layers
    return pb.sequential([
        layers.embedding(7, 4, name="words", input_shape=[5]),
        layers.bidirectional(layers.lstm(3, return_sequences=True), name="both"),
        layers.layer_normalization(epsilon=1e-5, name="norm"),
        layers.gru(3, return_sequences=True, reset_after=True, name="gru"),
        layers.simple_rnn(4, return_sequences=True, name="rnn"),
        layers.multi_head_attention(2, 2, name="heads"),
    ])  # fmt: skip


def make_steps() -> Any:
    layers = pb.layers
    return pb.sequential([
        layers.depthwise_conv1d(2, depth_multiplier=2, name="apart", input_shape=[5, 2]),
        layers.conv1d_transpose(3, 2, strides=2, name="up"), layers.prelu(shared_axes=[1], name="slopes"),
        layers.rms_normalization(epsilon=1e-6, name="norm"),
        layers.rnn([layers.lstm_cell(2), layers.lstm_cell(2)], return_sequences=True, name="both"),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make", "modules", "x", "y"),
    [
        ("image", make_image, IMAGE, "pixels", "z"),
        ("text", make_text, TEXT, "tokens", "y"),
        ("steps", make_steps, "torch", "signal", "s"),
    ],
)
def test_torch_state_dict_predicts_as_recorded_and_roundtrips(
    tmp_path: Path, name: str, make: Any, modules: Any, x: str, y: str
) -> None:
    recorded = pb.train.load(RECORDED)
    state = {key.removeprefix(f"{name}."): value for key, value in recorded.items() if key.startswith(f"{name}.")}
    pb.train.save(tmp_path / "state.safetensors", state)
    model = make()
    model.load_weights(tmp_path / "state.safetensors", map=modules)
    np.testing.assert_allclose(model.predict(recorded[x]), recorded[y], rtol=1e-5, atol=1e-5)
    model.save_weights(tmp_path / "again.safetensors", map=modules)
    again = pb.train.load(tmp_path / "again.safetensors")
    assert sorted(again) == sorted(key for key in state if "num_batches" not in key)
    other = make()
    other.load_weights(tmp_path / "again.safetensors", map=modules)
    np.testing.assert_array_equal(other.predict(recorded[x]), model.predict(recorded[x]))
    for key, value in again.items():
        if "bias_" not in key or "gru" in key:  # the two biases of a cell are one here
            np.testing.assert_array_equal(value, state[key])


def test_torch_module_map_must_cover_file_and_model(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    model = pb.sequential([pb.layers.dense(2, name="a", input_shape=[3]), pb.layers.dense(1, name="b")])
    model.save_weights(path, map="torch")
    assert sorted(pb.train.load(path)) == ["a.bias", "a.weight", "b.bias", "b.weight"]
    with pytest.raises(
        CheckpointError, match=r"b.bias, b.weight of the file and b/kernel, b/bias of the model: no counterpart"
    ):
        model.load_weights(path, map={"a": "a"})
    with pytest.raises(CheckpointError, match=r"the file has no 'c.weight' for b/kernel"):
        model.load_weights(path, map={"a": "a", "c": "b"})
    with pytest.raises(CheckpointError, match=r"a.weight is of shape \(2, 3\), which gives \(3, 2\)"):
        model.load_weights(path, map={"a": "b", "b": "a"})
    with pytest.raises(ArgumentError, match="has no layer 'c' with weights; it has a, b"):
        model.load_weights(path, map={"a": "c"})
    with pytest.raises(ArgumentError, match="map must be 'torch'"):
        model.load_weights(path, map="keras")
    with pytest.raises(CheckpointError, match=r"save_weights: b/kernel, b/bias has no module in map="):
        model.save_weights(path, map={"a": "a"})
    pb.train.save(path, {"c.weight": np.ones(3, np.float32), "c.bias": np.ones(2, np.float32)})
    with pytest.raises(CheckpointError, match=r"c.weight of shape \(3,\) does not fit"):
        pb.sequential([pb.layers.conv2d(2, 2, name="c", input_shape=[3, 3, 2])]).load_weights(path, map="torch")
    with pytest.raises(CheckpointError, match="reset_after=True"):
        pb.sequential([pb.layers.gru(2, input_shape=[3, 2])]).save_weights(path, map="torch")
    with pytest.raises(CheckpointError, match="whose weights have no names in PyTorch"):
        pb.sequential([pb.layers.separable_conv2d(2, 2, input_shape=[3, 3, 2])]).save_weights(path, map="torch")


def test_torch_names_of_layers_in_inner_models(tmp_path: Path) -> None:
    inner = pb.sequential([pb.layers.dense(2, name="a", input_shape=[3])], name="inner")
    model = pb.sequential([inner, pb.layers.dense(1, name="b")])
    model.save_weights(path := tmp_path / "state.safetensors", map="torch")
    state = pb.train.load(path)
    assert sorted(state) == ["b.bias", "b.weight", "inner.a.bias", "inner.a.weight"]
    np.testing.assert_array_equal(state["inner.a.weight"], inner.get_weights()[0].T)


class Scaled(pb.layers.Dense):
    def build(self, shape: Any) -> None:
        super().build(shape)
        self.factor = self.weight("factor", (1,), "ones")


class Product(pb.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense = pb.layers.dense(2)
        self.factor = self.weight("factor", (1,), "ones")

    def call(self, x: Any) -> Any:
        return self.dense(x) * self.factor


class Sum(pb.layers.RecurrentCell):
    state_size = 2

    def build(self, shape: Any) -> None:
        self.kernel = self.weight("kernel", (shape[-1], 2), "ones")

    def call(self, x: Any, state: Any) -> Any:
        return x @ self.kernel + state, x @ self.kernel + state


@pytest.mark.parametrize(("layer", "message"), [
    (lambda: Scaled(1, name="s"), "s: factor has no name in PyTorch that is known here"),
    (Product, "factor has no module in map="),
    (lambda: pb.layers.rnn(Sum(), name="r"), "r: PyTorch has no recurrent layer of Sum cells"),
])  # fmt: skip
def test_torch_names_of_own_weights_raise(tmp_path: Path, layer: Any, message: str) -> None:
    made = layer()
    model = made if isinstance(made, pb.Model) else pb.sequential([made])
    model(np.ones((1, 4, 2), np.float32))
    with pytest.raises(CheckpointError, match=message):
        model.save_weights(tmp_path / "state.safetensors", map="torch")
