"""Trainings recorded from Keras: masks in losses and metrics, constraints, statistics of each step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers

RECORDED = json.loads((Path(__file__).parent / "recorded" / "keras_training.json").read_text())
TOKENS = np.array([[1, 2, 3, 0, 0], [4, 1, 0, 0, 0], [2, 2, 2, 2, 0]])


def values(shape: Any, k: float = 0.0, scale: float = 1.0) -> Any:
    return (np.sin(np.arange(int(np.prod(shape))) * 0.7 + k + 0.3) * scale).reshape(shape).astype(np.float32)


def set_weights(model: Any) -> None:
    model.set_weights([values(w.shape, 10 + i, 0.5) for i, w in enumerate(model.get_weights())])


def make(kind: str) -> Any:
    i = pb.input([5], dtype="int32")
    h = layers.embedding(5, 3, mask_zero=True)(i)
    outputs = {
        "seq": lambda: layers.dense(1)(layers.lstm(4, return_sequences=True)(h)),
        "bi": lambda: layers.dense(1)(layers.bidirectional(layers.gru(3, return_sequences=True), "sum")(h)),
        "pool": lambda: layers.dense(1)(layers.global_average_pooling1d()(h)),
        "mha": lambda: layers.dense(1)(layers.multi_head_attention(2, 2)(h, h, use_causal_mask=True)),
        "td": lambda: layers.time_distributed(layers.dense(1))(layers.dropout(0.0)(h)),
        "cat": lambda: layers.dense(1)(layers.concatenate()([h, layers.layer_normalization()(h)])),
    }
    return pb.model(i, outputs[kind]())


@pytest.mark.parametrize("kind", RECORDED["masked"])
def test_masked_training_equals_recorded_keras(kind: str) -> None:
    eager = kind in ("bi", "td")
    model, y = make(kind), values((3, 1)) if kind == "pool" else values((3, 5, 1))
    set_weights(model)
    model.compile(pb.train.sgd(0.1), "mse", metrics=["mae"], eager=eager)
    before = model.evaluate(TOKENS, y, batch_size=3)
    history = model.fit(TOKENS, y, epochs=3, batch_size=3, shuffle=False, verbose=0).history
    total = float(np.sum(model.predict(TOKENS)))
    recorded = RECORDED["masked"][kind]
    for got, wanted in zip([before, history["loss"], history["mae"], total], recorded, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("eager", [True, False])
def test_time_distributed_batch_normalization_takes_statistics_of_each_step(eager: bool) -> None:
    layer = layers.time_distributed(layers.batch_normalization(momentum=0.9))
    x = values((3, 4, 2))
    layer.build_for([(4, 2)])
    run = (lambda x: layer(x, training=True)) if eager else pb.compile(lambda x: layer(x, training=True))
    np.testing.assert_allclose(np.ravel(run(x)), RECORDED["time_distributed"]["y"], rtol=1e-3, atol=1e-4)
    for w, wanted in zip(layer.get_weights(), RECORDED["time_distributed"]["w"], strict=True):
        np.testing.assert_allclose(w, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("eager", [True, False])
def test_constraints_and_activity_regularizer_in_training(eager: bool) -> None:
    limits = {"kernel_constraint": pb.constraints.max_norm(0.5), "bias_constraint": "nonNeg"}
    i = pb.input([3])
    model = pb.model(i, layers.dense(2, activity_regularizer=pb.regularizers.l2(0.1), **limits)(i))
    set_weights(model)
    model.compile(pb.train.sgd(0.5), "mse", eager=eager)
    x, y = values((4, 3)), values((4, 2), 3)
    recorded = RECORDED["constrained"]
    history = model.fit(x, y, epochs=3, shuffle=False, verbose=0, batch_size=4).history
    np.testing.assert_allclose(history["loss"], recorded["loss"], rtol=1e-4)
    for w, wanted in zip(model.get_weights(), recorded["w"], strict=True):
        np.testing.assert_allclose(w.ravel(), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.evaluate(x, y), recorded["eval"], rtol=1e-4)
