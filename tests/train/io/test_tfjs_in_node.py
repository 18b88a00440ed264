"""Models that are written here run in the real TensorFlow.js: every layer that it has, and trained models."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from layer_cases import list_layers, make_model, predict
from tfjs_package import find_node_modules

import pullback as pb
from pullback.errors import CheckpointError

# Layers of TensorFlow.js 4.22 that fail in any model: they change their input's shape, or do not unpack their inputs.
BROKEN_THERE = ("CategoryEncoding", "CenterCrop", "RandomWidth", "Resizing")
SCRIPT = Path(__file__).parent / "peers" / "predict.cjs"


def train_models() -> dict[str, tuple[Any, list[Any]]]:
    """Return trained models: a convolutional net, a recurrent one, and a graph with nested models and shared layers."""
    rng, layers = np.random.default_rng(1), pb.layers
    pb.random.seed(1)
    image = pb.sequential([
        layers.conv2d(4, 3, padding="same", activation="relu", input_shape=[8, 8, 1]), layers.batch_normalization(),
        layers.max_pooling2d(), layers.flatten(), layers.dropout(0.3), layers.dense(3, activation="softmax"),
    ])  # fmt: skip
    words = pb.sequential([
        layers.embedding(9, 4, input_shape=[6]), layers.bidirectional(layers.lstm(3, return_sequences=True)),
        layers.gru(3), layers.dense(1, activation="sigmoid"),
    ])  # fmt: skip
    x, y = pb.input([4]), pb.input([4])
    shared, inner = layers.dense(3, activation="tanh"), pb.sequential([layers.dense(3, input_shape=[3])])
    a, b = inner(shared(x)), inner(shared(y))
    joined = layers.concatenate()(a, layers.multiply()(a, b))
    graph = pb.model([x, y], [layers.dense(2)(joined), layers.dot(-1)(a, b)])
    made = {
        "image": (
            image,
            [rng.normal(size=(8, 8, 8, 1))],
            [np.eye(3)[rng.integers(0, 3, 8)]],
            "categorical_crossentropy",
        ),
        "words": (words, [rng.integers(0, 9, (8, 6))], [rng.integers(0, 2, (8, 1))], "binary_crossentropy"),
        "graph": (graph, [rng.normal(size=(8, 4)) for _ in range(2)], [np.ones((8, 2)), np.ones((8, 1))], "mse"),
    }
    for model, xs, ys, loss in made.values():
        model.compile("adam", loss)
        xs, ys = ([a.astype(np.float32) for a in arrays] for arrays in (xs, ys))
        model.fit(xs if len(xs) > 1 else xs[0], ys if len(ys) > 1 else ys[0], epochs=2, batch_size=4, verbose=0)
    return {name: (model, [x.astype(np.float32) for x in xs]) for name, (model, xs, *_) in made.items()}


def test_saved_models_predict_same_numbers_in_tensorflow_js_in_node(tmp_path: Path) -> None:
    modules = find_node_modules()
    cases = train_models() | {name: make_model(name) for name in list_layers() if name not in BROKEN_THERE}
    there = {}
    for name, (model, inputs) in cases.items():
        try:
            model.save(tmp_path / name / "model.json")
        except CheckpointError:  # layers that TensorFlow.js has not
            continue
        there[name] = predict(model, inputs)
        described = [{"values": x.ravel().tolist(), "shape": x.shape, "dtype": "float32"} for x in inputs]
        (tmp_path / name / "inputs.json").write_text(json.dumps(described))
    environment = os.environ | {"NODE_PATH": str(modules)}
    subprocess.run(["node", str(SCRIPT), str(tmp_path)], env=environment, check=True, capture_output=True, timeout=600)
    wrong, optimizers = [], []
    for name, outputs in there.items():
        found = json.loads((tmp_path / name / "outputs.json").read_text())
        if "error" in found:
            wrong.append(f"{name}: {found['error']}")
            continue
        optimizers.append(found.get("optimizer"))
        for y, expected in zip(found["outputs"], outputs, strict=True):
            made = np.reshape(y["values"], y["shape"])
            if made.shape != expected.shape:
                wrong.append(f"{name}: has shape {made.shape}, expected {expected.shape}")
            elif not np.allclose(made, expected, rtol=1e-6, atol=1e-6):
                wrong.append(f"{name}: differs by {np.abs(made - expected).max()}")
    assert not wrong, "\n".join(wrong)
    assert len(there) >= 41
    assert optimizers.count("Adam") == 3  # the trained models are compiled there too
