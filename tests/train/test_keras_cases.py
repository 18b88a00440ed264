"""Losses, metrics, optimizers, schedules and trainings give the numbers that Keras 3.15 gives.

``keras.json`` is written by ``script/record_training.py``, which needs Keras; these tests do not.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from exhaustive import ALL

import pullback as pb
from pullback.train.optim import schedules

CASES = json.loads((Path(__file__).parent / "keras.json").read_text())


def name_case(case):
    given = ",".join(f"{key}={value}" for key, value in case["arguments"].items())
    return f"{case['name']}({given}){'*' if case.get('w') else ''}"


def arrays(case):
    y, p = np.asarray(case["y"]), np.asarray(case["p"])
    return y, p, None if case["w"] is None else np.asarray(case["w"])


@pytest.mark.parametrize("case", CASES["losses"], ids=name_case)
def test_loss_equals_keras(case):
    y, p, w = arrays(case)
    loss = getattr(pb.train.losses, case["name"])(**case["arguments"])
    np.testing.assert_allclose(loss(y, p, w), case["value"], rtol=2e-6, atol=1e-6)


# One case of each metric is compiled in the usual run.
COMPILED = [*{case["name"]: case for case in CASES["metrics"]}.values()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES["metrics"], ids=name_case)
def test_metric_equals_keras_for_any_batch_size(case):
    y, p, w = arrays(case)
    metric = getattr(pb.metrics, case["name"])(**case["arguments"])
    for size in (7, 2):
        metric.reset_state()
        for at in range(0, 7, size):
            part = slice(at, at + size)
            metric.update_state(y[part], p[part], None if w is None else w[part])
        np.testing.assert_allclose(metric.result(), case["value"], rtol=2e-6, atol=1e-6)
    if ALL or case in COMPILED:
        sums = pb.compile(metric.measure)(y, p, w)
        np.testing.assert_allclose(metric.compute(*pb_floats(sums)), case["value"], rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES["optimizers"], ids=name_case)
@pytest.mark.parametrize("compiled", [False, True])
def test_optimizer_steps_equal_keras(case, compiled):
    optimizer = getattr(pb.train, case["name"].lower())(**case["arguments"])
    variables = [pb.variable(np.asarray(x, np.float32)) for x in case["start"]]

    def step(*grads):
        optimizer.apply_gradients(list(zip(grads, variables, strict=True)))

    if compiled and not optimizer.is_compilable:
        pytest.skip("it skips updates")
    step = pb.compile(step) if compiled else step
    for grads in case["grads"]:
        step(*[np.asarray(g, np.float32) for g in grads])
    for v, expected in zip(variables, case["value"], strict=True):
        np.testing.assert_allclose(v.numpy(), expected, rtol=1e-5, atol=5e-6)


SCHEDULE_NAMES = {
    "CosineDecay": "cosine_decay", "CosineDecayRestarts": "cosine_decay_restarts",
    "ExponentialDecay": "exponential_decay", "InverseTimeDecay": "inverse_time_decay",
    "PiecewiseConstantDecay": "piecewise_constant_decay", "PolynomialDecay": "polynomial_decay",
}  # fmt: skip
SCHEDULE_ARGUMENTS = {
    "initial_learning_rate": "rate", "decay_steps": "steps", "first_decay_steps": "steps", "decay_rate": "factor",
    "end_learning_rate": "final",
}  # fmt: skip


@pytest.mark.parametrize("case", CASES["schedules"], ids=name_case)
def test_schedule_equals_keras(case):
    given = {SCHEDULE_ARGUMENTS.get(key, key): value for key, value in case["arguments"].items()}
    if case["name"] == "CosineDecay":
        if "warmup_target" in given:
            peak, start, warm = given["warmup_target"], given["rate"], given["warmup_steps"]
            rate = schedules.warm_up(schedules.cosine_decay(peak, given["steps"]), warm, start)
        else:
            rate = schedules.cosine_decay(given["rate"], given["steps"], given["rate"] * given["alpha"])
    else:
        rate = getattr(schedules, SCHEDULE_NAMES[case["name"]])(**given)
    np.testing.assert_allclose([rate(step) for step in range(12)], case["value"], rtol=1e-5, atol=1e-7)
    compiled = pb.compile(lambda step: rate(step))
    np.testing.assert_allclose([compiled(np.float64(step)) for step in range(12)], case["value"], rtol=1e-5, atol=1e-7)


def pb_floats(sums):
    return [np.asarray(x, np.float64) if np.ndim(x) else float(x) for x in sums]


@pytest.mark.parametrize("case", CASES["fits"], ids=range(len(CASES["fits"])))
@pytest.mark.parametrize("eager", [False, True])
def test_fit_history_equals_keras(case, eager):
    given = pb.input([3])
    a = pb.layers.dense(1, name="out_a")(given)
    b = pb.layers.dense(2, activation="softmax", name="out_b")(given)
    model = pb.model(given, [a, b])
    model.set_weights([np.asarray(w) for w in case["weights"]])
    model.compile("sgd", **case["compile"], eager=eager)
    x, ya, yb = (np.asarray(case[key]) for key in ("x", "ya", "yb"))
    how = {"epochs": 2, **case["fit"]}
    if how.get("sample_weight"):
        weight = (np.arange(10.0) / 4).round(4)
        how["sample_weight"] = [weight, weight[::-1].copy()]
    history = model.fit(
        x, {"out_a": ya, "out_b": yb}, batch_size=4, shuffle=False, validation_data=(x[:5], (ya[:5], yb[:5])), **how
    ).history
    assert history.keys() == case["history"].keys()
    for name, values in case["history"].items():
        np.testing.assert_allclose(history[name], values, rtol=1e-5, atol=1e-6, err_msg=name)
