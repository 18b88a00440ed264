"""Errors of optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import train
from pullback.errors import ArgumentError, DataError, GradientError, ShapeError, UnconnectedError, VariableError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.sgd(-0.1), "sgd: learning_rate must be a number of 0 or more, got -0.1."),
        (lambda: train.sgd("fast"), "sgd: learning_rate must be a number of 0 or more, got 'fast'."),
        (lambda: train.sgd(float("nan")), "sgd: learning_rate must be a number of 0 or more, got nan."),
        (lambda: train.sgd(0.1).set_learning_rate(None), "sgd: learning_rate must be a number of 0 or more, got None."),
        (lambda: train.adam(beta1=1.5), "adam: beta1 must be a number from 0 to 1, got 1.5."),
        (lambda: train.adam(epsilon=-1), "adam: epsilon must be a number of 0 or more, got -1."),
        (lambda: train.adam(beta1=1.0), "adam: beta1 must be less than 1, got 1.0."),
        (lambda: train.nadam(beta2=1.0), "nadam: beta2 must be less than 1, got 1.0."),
        (lambda: train.schedule_free_adamw(beta1=0.0), "schedule_free_adamw: beta1 must be more than 0, got 0.0."),
        (lambda: train.schedule_free_adamw(epsilon=-1.0), "epsilon must be a number of 0 or more, got -1.0."),
        (lambda: train.schedule_free_adamw(warmup_steps=-3), "warmup_steps must be an integer of 0 or more, got -3."),
        (lambda: train.adafactor(clip_threshold=0), "adafactor: clip_threshold must be more than 0, got 0."),
        (lambda: train.muon(ns_steps=0), "muon: ns_steps must be an integer of 1 or more, got 0."),
        (
            lambda: train.ftrl(l1_regularization_strength=-1),
            "ftrl: l1_regularization_strength must be a number of 0 or",
        ),
        (lambda: train.sgd(0.1, gradient_accumulation_steps=0), "gradient_accumulation_steps must be an integer of 1"),
        (lambda: train.sgd(0.1, use_ema=True, ema_overwrite_frequency=2.5), "ema_overwrite_frequency must be an inte"),
        (lambda: train.sgd(0.1, loss_scale_factor=0), "sgd: loss_scale_factor must be more than 0, got 0."),
        (lambda: train.cosine_decay_restarts(1.0, 2, t_mul=0.0), "t_mul must be more than 0, got 0.0."),
        (lambda: train.piecewise_constant_decay([5, 2], [1, 2, 3]), "boundaries must be in increasing order, got [5"),
        (lambda: train.sgd(0.1, weight_decay=-1), "sgd: weight_decay must be a number of 0 or more, got -1."),
        (lambda: train.sgd(0.1, clip_norm=0), "sgd: clip_norm: the limit must be more than 0, got 0."),
        (lambda: train.adam(b1=0.9), "adam() got an unexpected keyword argument 'b1'. It is 'beta1' here."),
        (lambda: train.sgd(train.constant_rate(1.0)).set_learning_rate(1), "the rate follows constant_rate(1.0)"),
        (lambda: train.sgd(lambda step: -1.0).learning_rate, "learning_rate must be a number of 0 or more, got -1.0."),
        (lambda: train.adam(0.1, lazy=True, use_ema=True), "lazy=True cannot be combined with use_ema or gradient_acc"),
        (lambda: train.ftrl(learning_rate_power=0.5), "ftrl: learning_rate_power must not be more than 0, got 0.5."),
        (lambda: train.sgd(0.1).apply([1.0], []), "sgd.apply: got 1 gradients for 0 variables."),
        (lambda: train.sgd(0.1).apply_gradients(3), "expected a dict of gradients by name, or a list"),
        (
            lambda: train.sgd(0.1).update([1.0, {}], [1.0], {"iterations": 0}),
            "grads: expected a list of 2 as in params",
        ),
        (
            lambda: train.sgd(0.1).update({"w": 1.0}, {"b": 1.0}, {"iterations": 0}),
            "grads: expected a dict of 'w' as in params, got a dict of 'b'.",
        ),
    ],
)
def test_optimizer_argument_errors(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        make()
    assert message in str(error.value)


def test_apply_gradients_errors() -> None:
    v, n = pb.variable([1.0, 2.0], name="fit_v"), pb.variable(np.arange(2), name="fit_n")
    optimizer = train.adam(0.1)
    for kind, given, message in (
        (VariableError, {"nobody": [1.0]}, "adam: there is no variable named 'nobody'."),
        (VariableError, {"nobody": [1.0]}, "are updated by optimizer.update(params, gradients, state)."),
        (ShapeError, {"fit_v": [1.0]}, "adam: the gradient of 'fit_v' has shape (1,), expected (2,)."),
        (GradientError, {"fit_n": [1.0, 1.0]}, "adam: variable 'fit_n' is int64; only floats can be trained."),
        (GradientError, {}, "adam.apply_gradients: there is no gradient to apply."),
        (GradientError, {"fit_v": None}, "adam.apply_gradients: there is no gradient to apply."),
        (ArgumentError, [([1.0, 1.0], v), ([1.0, 1.0], v)], "a variable has two gradients; add them up first."),
    ):
        with pytest.raises(kind) as error:
            optimizer.apply_gradients(given)
        assert message in str(error.value)
    with pytest.raises(GradientError, match="no trainable variable among its 1"):
        optimizer.minimize(lambda: pb.sum(v), [pb.variable(1.0, trainable=False)])
    with pytest.raises(UnconnectedError, match="read 0 trainable variables"):
        optimizer.minimize(lambda: pb.tensor(1.0))
    with pytest.raises(ShapeError, match=r"grads\['w'\] has shape \(2,\), expected \(\)"):
        optimizer.update({"w": 1.0}, {"w": [1.0, 2.0]}, optimizer.init({"w": 1.0}))
    with pytest.raises(DataError, match="the state does not fit: 'm', 'v' missing; 'x' extra"):
        optimizer.update(1.0, 1.0, {"iterations": 0, "x": 1})
    assert (v.tolist(), optimizer.iterations, n.tolist()) == ([1.0, 2.0], 0, [0, 1])


@pytest.mark.parametrize("var_list", [True, False])
def test_minimize_rejects_variables_of_integers(var_list: bool) -> None:
    n, v = pb.variable(np.arange(2), name="whole"), pb.variable(np.ones(2))
    with pytest.raises(GradientError, match="sgd: variable 'whole' is int64; only floats can be trained"):
        train.sgd(0.1).minimize(lambda: np.sum(n * v), [n, v] if var_list else None)
    np.testing.assert_array_equal(v, 1.0)


def test_accumulated_gradients_in_compiled_step_and_update_raise() -> None:
    v, optimizer = pb.variable(np.ones(2)), train.sgd(0.1, gradient_accumulation_steps=2)
    with pytest.raises(ArgumentError, match=r"sgd.update: gradient_accumulation_steps is for variables"):
        optimizer.update([1.0], [1.0], optimizer.init([1.0]))
    with pytest.raises(ArgumentError, match="gradient_accumulation_steps skips updates, which a compiled step cannot"):
        pb.compile(lambda g: optimizer.apply([g], [v]))(np.ones(2))
