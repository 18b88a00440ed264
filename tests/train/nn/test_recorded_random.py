"""Random arguments of layers, losses, metrics and optimizers against answers recorded from Keras, eager and compiled.

``recorded/record_keras_random.py`` made them; an answer is a shape and two weighted sums of each output.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback import layers
from pullback.core.suggestions import snake_case

CASES = json.loads((Path(__file__).parent / "recorded" / "keras_random.json").read_text())
COMPILED = {str(case) for case in sample(CASES, 4)}  # all of them in the exhaustive run
MASK = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0]], bool)
LAYERS = {name.replace("_", "").lower(): name for name in dir(layers)}


def values(shape: Any, k: float = 0.0, scale: float = 1.0) -> Any:
    return (np.sin(np.arange(int(np.prod(shape))) * 0.7 + k + 0.3) * scale).reshape(shape).astype(np.float32)


def make_layer(name: str, config: dict[str, Any]) -> Any:
    # Keras 3's hard sigmoid has another name here
    renamed = {key: "hard_sigmoid6" if x == "hard_sigmoid" else x for key, x in config.items()}
    return getattr(layers, LAYERS[name.lower()])(**renamed)


def set_weights(layer: Any) -> None:
    layer.set_weights([values(w.shape, 10 + i, 0.5) + np.float32(0.1) for i, w in enumerate(layer.get_weights())])


def check(found: list[Any], recorded: list[Any]) -> None:
    assert len(found) == len(recorded)
    for y, (shape, cosines, sines) in zip(found, recorded, strict=True):
        flat, at = np.asarray(y).astype(np.float64).ravel(), np.arange(int(np.prod(shape)))
        assert list(np.shape(y)) == shape
        size = 1e-5 * (1 + np.abs(flat).sum())
        np.testing.assert_allclose(flat @ np.cos(at), cosines, rtol=1e-4, atol=size)
        np.testing.assert_allclose(flat @ np.sin(2 * at + 1), sines, rtol=1e-4, atol=size)


def run_recurrent(name: str, config: Any, extra: Any) -> list[Any]:
    layer = make_layer(name, config)
    layer = layers.bidirectional(layer, merge_mode=extra["merge"]) if extra["merge"] else layer
    mask = {"mask": MASK} if extra["mask"] else {}
    layer(values((3, 6, 2)), **mask)
    set_weights(layer)
    layer.reset_states()
    made = [layer(values((3, 6, 2), k), **mask) for k in range(2)]
    return [z for y in made for z in (y if isinstance(y, list | tuple) else [y])]


def run_layer(name: str, config: Any, shape: Any, compiled: bool) -> list[Any]:
    layer, x = make_layer(name, config), values(shape)
    layer(x)
    set_weights(layer)

    def run(x: Any) -> Any:
        def cost(x: Any) -> Any:
            y = layer(x)
            return np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape).astype(np.float32))

        return layer(x), pb.grad(cost)(x)

    eager = run(x)
    for a, b in zip(eager, pb.compile(run)(x) if compiled else eager, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
    return list(eager)


def make_loss_data(name: str) -> tuple[Any, Any]:
    y, p = np.abs(values((4, 3), 1)), np.abs(values((4, 3), 2)) * np.float32(0.9) + np.float32(0.05)
    if "Categorical" in name or name == "KLDivergence":
        y, p = y / y.sum(-1, keepdims=True), p / p.sum(-1, keepdims=True)
    return (y > 0.5).astype(np.float32) if name.startswith("Binary") or "Hinge" in name else y, p


def make_metric_data(name: str, k: int, size: int) -> tuple[Any, Any]:
    y, p = (np.abs(values((size, 3), k)) > 0.5).astype(np.float32), np.abs(values((size, 3), k + 0.5))
    if "Categorical" in name or name in ("F1Score", "FBetaScore", "Recall"):
        y = np.eye(3, dtype=np.float32)[np.arange(size) % 3]
    if name in ("R2Score", "RootMeanSquaredError", "CosineSimilarity", "LogCoshError"):
        y = values((size, 3), k + 2)
    if name == "MeanIoU":
        return y.astype(int), (p > 0.5).astype(int)
    return np.abs(values((size, 3), k)) if name == "KLDivergence" else y, p


def run_metric(name: str, config: Any, weighted: bool) -> list[Any]:
    metric, out = getattr(pb.metrics, name)(**config), []
    for k, size in enumerate((5, 2, 7)):
        y, p = make_metric_data(name, k, size)
        metric.update_state(y, p, sample_weight=np.linspace(0.1, 1, size).astype(np.float32) if weighted else None)
        out.append(metric.result())
    return out


def run_optimizer(name: str, config: Any, compiled: bool) -> list[Any]:
    schedules = {key: x for key, x in config.items() if isinstance(x, dict)}
    rate = next((getattr(pb.train, snake_case(key))(**x) for key, x in schedules.items()), 0.1)
    plain = {key: x for key, x in config.items() if key not in schedules}
    optimizer = getattr(pb.train, name.lower())(learning_rate=rate, **plain)
    variables, out = [pb.variable(values((3, 4), k)) for k in range(2)], []
    step: Any = lambda a, b: optimizer.apply_gradients([(a, variables[0]), (b, variables[1])])
    step = pb.compile(step) if compiled else step
    for k in range(6):
        step(*[values((3, 4), k + j) * (1 + k) for j in range(2)])
        out += [v.numpy().copy() for v in variables]
    return out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", [pytest.param(c, id=f"{i}-{c[1]}") for i, c in enumerate(CASES)])
def test_layers_and_losses_with_random_arguments_equal_keras(case: Any) -> None:
    kind, name, config, extra, recorded = case
    compiled = str(case) in COMPILED
    if kind == "recurrent":
        check(run_recurrent(name, config, extra), recorded)
    elif kind == "layer":
        check(run_layer(name, config, extra, compiled), recorded)
    elif kind == "loss":
        weight = None if extra is None else np.array(extra, np.float32)
        loss, (y, p) = getattr(pb.train.losses, name)(**config), make_loss_data(name)
        check([loss(y, p, weight)], recorded)
        if compiled:
            check([pb.compile(lambda p: loss(y, p, weight))(p)], recorded)
    elif kind == "metric":
        check(run_metric(name, config, extra), recorded)
    else:
        check(run_optimizer(name, config, False), recorded)
        if compiled and "gradient_accumulation_steps" not in config:
            check(run_optimizer(name, config, True), recorded)
