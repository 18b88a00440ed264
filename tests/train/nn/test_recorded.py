"""Answers recorded from Keras and TensorFlow.js: outputs, gradients and updated statistics of layers.

The scripts that recorded them are beside the answers, in ``recorded``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import layers

FOLDER = Path(__file__).parent / "recorded"


def values(shape: Any, k: float = 0.0, scale: float = 1.0) -> Any:
    return (np.sin(np.arange(int(np.prod(shape))) * 0.7 + k + 0.3) * scale).reshape(shape).astype(np.float32)


def find_layer(name: str) -> Any:
    spelt = {n.replace("_", "").lower(): getattr(layers, n) for n in dir(layers)}
    return spelt[name.replace("_", "").lower()]


def read(file: str) -> list[Any]:
    cases = json.loads((FOLDER / file).read_text())
    return [pytest.param(case, id=f"{file[:5]}-{i}-{case['layer']}") for i, case in enumerate(cases)]


def as_setting(x: Any, listed: bool) -> Any:
    if listed:
        return [None if m is None else np.array(m, bool) for m in x]
    return np.array(x, bool) if isinstance(x, list) else x


def close(y: Any, recorded: Any) -> None:
    wanted = np.array(recorded["values"]).reshape(recorded["shape"])
    assert y.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(y), wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("case", [*read("keras.json"), *read("tfjs.json")])
def test_layer_equals_recorded_keras_output(case: Any) -> None:
    layer = find_layer(case["layer"])(**case["config"])
    xs = [values(shape, i) for i, shape in enumerate(case["shapes"])]
    settings = {key: as_setting(x, case["layer"].endswith("Attention") and key == "mask")
                for key, x in case["settings"].items()}  # fmt: skip
    layer.build_for([x.shape[1:] for x in xs])
    if layer.variables:
        layer.set_weights([values(w.shape, 10 + i, 0.5) + np.float32(0.1) for i, w in enumerate(layer.get_weights())])
    if case["layer"].lower() == "batchnormalization":
        layer.moving_variance.assign(np.abs(layer.moving_variance.numpy()) + np.float32(0.5))
    trained = layer.trainable_variables

    def cost(*xs: Any) -> Any:
        out = layer(*xs, **settings)
        outs = out if isinstance(out, tuple) else (out,)
        total = sum(pb.sum(y * np.cos(np.arange(y.size, dtype=y.dtype)).reshape(y.shape)) for y in outs)
        return total, outs

    for y, recorded in zip(cost(*xs)[1], case["outputs"], strict=True):
        close(y, recorded)
    if case["after"] is not None:
        for v, recorded in zip(layer.non_trainable_variables, case["after"], strict=True):
            close(v, recorded)
    inputs = [pb.variable(x) for x in xs]
    found = pb.variable_grads(lambda: cost(*inputs)[0], [*inputs, *trained]).grads
    for v, recorded in zip([*inputs, *trained], case["grads"], strict=case["after"] is not None):
        if recorded is not None:
            close(found[v.name], recorded)
