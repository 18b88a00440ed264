"""Mixed precision: float32 variables, float16 between layers; losses recorded from Keras, files, policies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers

MIXED = "mixed_float16"


def make_wave(shape: Any) -> Any:
    return np.sin(np.arange(1.0, 1 + np.prod(shape))).reshape(shape).astype(np.float32)


def make_image_model() -> Any:
    return pb.sequential([
        layers.conv2d(4, 3, activation="relu", input_shape=[5, 5, 2]), layers.batch_normalization(), layers.flatten(),
        layers.dense(3), layers.activation("softmax", dtype="float32"),
    ])  # fmt: skip


def make_sequence_model() -> Any:
    gates: Any = {"recurrent_activation": "sigmoid"}
    return pb.sequential([
        layers.lstm(4, return_sequences=True, input_shape=[4, 3], **gates), layers.layer_normalization(epsilon=1e-3),
        layers.gru(3, reset_after=False, **gates), layers.dense(3, kernel_regularizer="l2"),
    ])  # fmt: skip


@contextmanager
def global_policy(policy: str) -> Iterator[None]:
    pb.train.set_global_policy(policy)
    try:
        yield
    finally:
        pb.train.set_global_policy("float32")


# Keras 3.15 on torch, Adam(0.03): the dtype of the output and that for the first example, and the losses of six steps.
RECORDED = {
    "image": (make_image_model, "categorical_crossentropy", "float32", [0.32287672, 0.3275012, 0.34962207],
              [1.13151, 1.23631, 1.16686, 1.02947, 1.04919, 1.03588]),
    "sequence": (make_sequence_model, "mse", "float16", [-0.00084352, 0.00284576, 0.00393295],
                 [0.34779, 0.30823, 0.25139, 0.23081, 0.24019, 0.24764]),
}  # fmt: skip


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("name", RECORDED)
def test_mixed_precision_trains_as_in_keras(name: str, eager: bool) -> None:
    make, loss, dtype, outputs, losses = RECORDED[name]
    with global_policy(MIXED):
        model = make()
    optimizer = pb.train.adam(0.03)
    model.compile(optimizer, loss, eager=eager)
    for v in model.trainable_variables:
        if "kernel" in v.name:
            v.assign(make_wave(v.shape) * np.float32(0.5))
    x, y = make_wave((8, *model.input_shape)), np.eye(3, dtype=np.float32)[np.arange(8) % 3]
    found = model.predict(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found[0], outputs, atol=1e-3)
    np.testing.assert_allclose([model.train_on_batch(x, y)[0] for _ in range(6)], losses, rtol=3e-3)
    assert {v.dtype.name for v in model.variables} == {"float32"}
    assert (optimizer.state_dict()["loss_scale"], optimizer.iterations) == (2.0**15, 6)


def test_mixed_precision_sums_gradients_in_float32() -> None:
    x = np.ones((5000, 1), np.float32)  # in float16, a sum of ones ends at 2048
    layer = layers.dense(1, dtype=MIXED, input_shape=[1])
    grads = pb.variable_grads(lambda: pb.sum(layer(x).astype(np.float32))).grads
    assert [(g.item(), g.dtype) for g in grads.values()] == [(5000.0, np.float32)] * 2


def test_mixed_precision_rounds_inputs_variables_and_outputs_to_float16() -> None:
    layer = layers.dense(1, use_bias=False, kernel_initializer=pb.initializers.constant(1 + 2.0**-12), dtype=MIXED)
    y = layer(np.array([[1 + 2.0**-12, 2049.0]]))
    assert (y.dtype, y.item()) == (np.float16, 2048.0)
    assert layer.variables[0].numpy()[0, 0] == np.float32(1 + 2.0**-12)
    table = layers.embedding(3, 2, mask_zero=True, dtype=MIXED)
    pooled = layers.global_average_pooling1d(dtype=MIXED)(table(np.array([[1, 0]])))
    np.testing.assert_array_equal(pooled, table(np.array([1])))  # the mask is kept


@pytest.mark.parametrize("end", ["keras", "h5", "safetensors"])
def test_mixed_precision_is_kept_in_files(tmp_path: Path, end: str) -> None:
    pytest.importorskip("h5py" if end != "safetensors" else "safetensors")
    with global_policy(MIXED):
        model = make_image_model()
    plain = make_sequence_model()
    model.compile("adam", "mse")
    model.save(tmp_path / f"mixed.{end}")
    plain.save(tmp_path / f"plain.{end}")
    x = make_wave((2, 5, 5, 2))
    again = pb.load_layers_model(tmp_path / f"mixed.{end}")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert [layer.dtype for layer in again.layers] == [*[MIXED] * 4, np.float32]
    assert again.optimizer.get_config()["dynamic_growth_steps"] == 2000
    with global_policy(MIXED):
        again = pb.load_layers_model(tmp_path / f"plain.{end}")
    assert again.predict(make_wave((2, 4, 3))).dtype == np.float32
    with pytest.raises(pb.errors.CheckpointError, match="which TensorFlow"):
        model.save(tmp_path / "model.json")


def test_policies_are_dtypes_or_mixed_float16() -> None:
    for name in ("bfloat16", "mixed_bfloat16"):
        with pytest.raises(pb.errors.ArgumentError, match=f"{name}.*NumPy has no bfloat16"):
            layers.dense(1, dtype=name)
    with global_policy("float64"):
        layer = layers.dense(1)
        layer.build_for([(2,)])
        assert (layer.variables[0].dtype, pb.train.global_policy()) == (np.float64, "float64")
    with global_policy(MIXED):
        assert (pb.train.global_policy(), layers.dense(1).dtype) == (MIXED, MIXED)
    assert layers.dense(1).dtype is None
