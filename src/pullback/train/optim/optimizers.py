"""The update rules of the optimizers: one function each, in plain NumPy, with TensorFlow.js's arguments.

A rule takes the parameter ``x``, its gradient ``g``, the slots and the numbers of this step, and returns the new ``x``
and the new slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from pullback.core.convert import as_number
from pullback.train.optim.schedules import LearningRate, Number
from pullback.train.optim.step import Common, Optimizer, Options
from pullback.typing import Value

__all__ = ["adadelta", "adagrad", "adam", "adamax", "adamw", "lion", "momentum", "rmsprop", "sgd"]

EPSILON = 1e-7  # TensorFlow.js's, for float32


def sgd(learning_rate: LearningRate, **options: Unpack[Options]) -> Optimizer:
    """Return gradient descent: ``x - learning_rate * g``.

    >>> w = pb.variable(4.0)
    >>> pb.train.sgd(0.25).minimize(lambda: w * w)
    >>> w.item()
    2.0
    """

    def rule(x: Value, g: Value, rate: Number) -> Any:
        return (x - rate * g,)

    return Optimizer(sgd, {"learning_rate": learning_rate}, rule, _return_rate, {}, options, row_wise=True)


def momentum(
    learning_rate: LearningRate, momentum: float, use_nesterov: bool = False, **options: Unpack[Options]
) -> Optimizer:
    """Return gradient descent with momentum: along an exponentially decaying sum of the gradients.

    >>> w = pb.variable(4.0)
    >>> optimizer = pb.train.momentum(0.25, 0.5)
    >>> for _ in range(2):
    ...     optimizer.minimize(lambda: w * w)
    >>> w.item()
    0.0
    """
    decay_rate = _check_fraction("momentum", "momentum", momentum)

    def rule(x: Value, g: Value, m: Value, rate: Number) -> Any:
        m = decay_rate * m + g
        return x - rate * (g + decay_rate * m if use_nesterov else m), m

    config = {"learning_rate": learning_rate, "momentum": momentum, "use_nesterov": use_nesterov}
    return Optimizer(_momentum, config, rule, _return_rate, {"momentum": 0.0}, options)


_momentum = momentum  # inside it, its argument hides the name


def adagrad(
    learning_rate: LearningRate, initial_accumulator_value: float = 0.1, **options: Unpack[Options]
) -> Optimizer:
    """Adagrad: steps divided by the root of the sum of all squared gradients.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adagrad(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([ 0.51, 99.5 ], dtype=float32)
    """
    start = as_number("adagrad", "initial_accumulator_value", initial_accumulator_value, 0)

    def rule(x: Value, g: Value, squares: Value, rate: Number) -> Any:
        squares = squares + g * g
        return x - rate * g / np.sqrt(squares + EPSILON), squares

    config = {"learning_rate": learning_rate, "initial_accumulator_value": initial_accumulator_value}
    return Optimizer(adagrad, config, rule, _return_rate, {"accumulator": start}, options, row_wise=True)


def adadelta(
    learning_rate: LearningRate = 0.001, rho: float = 0.95, epsilon: float | None = None, **options: Unpack[Options]
) -> Optimizer:
    """Adadelta (Zeiler): steps scaled by the root mean square of recent steps over that of recent gradients.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adadelta(1000.0).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([-0.41, 98.59], dtype=float32)
    """
    decay_rate, small = _check_fraction("adadelta", "rho", rho), _check_epsilon("adadelta", epsilon)

    def rule(x: Value, g: Value, squares: Value, steps: Value, rate: Number) -> Any:
        squares = decay_rate * squares + (1.0 - decay_rate) * (g * g)
        step = np.sqrt((steps + small) / (squares + small)) * g
        return x - rate * step, squares, decay_rate * steps + (1.0 - decay_rate) * (step * step)

    config = {"learning_rate": learning_rate, "rho": rho, "epsilon": small}
    return Optimizer(adadelta, config, rule, _return_rate, {"accum_grad": 0.0, "accum_var": 0.0}, options)


def adam(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    **options: Unpack[Options],
) -> Optimizer:
    """Adam: the moving average of the gradients over the root of that of their squares.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adam(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    return _make_adam(adam, learning_rate, beta1, beta2, epsilon, options)


def adamw(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    weight_decay: float = 0.01,
    **options: Unpack[Common],
) -> Optimizer:
    """AdamW: ``adam`` with decoupled weight decay of ``learning_rate * weight_decay``.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adamw(0.5, weight_decay=0.1).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.45, 94.5 ], dtype=float32)
    """
    every: Options = {"weight_decay": weight_decay, **options}
    return _make_adam(adamw, learning_rate, beta1, beta2, epsilon, every)


def _make_adam(
    make: Callable[..., Optimizer],
    learning_rate: LearningRate,
    beta1: float,
    beta2: float,
    epsilon: float | None,
    options: Options,
) -> Optimizer:
    name = make.__name__
    b1, b2 = _check_fraction(name, "beta1", beta1), _check_fraction(name, "beta2", beta2)
    small = _check_epsilon(name, epsilon)

    def numbers(rate: Number, steps: Number) -> Any:
        return rate / (1.0 - b1**steps), (1.0 - b2**steps) ** -0.5  # corrects the bias of averages that start at 0

    def rule(x: Value, g: Value, m: Value, v: Value, rate: Number, scale: Number) -> Any:
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        return x - rate * m / (scale * np.sqrt(v) + small), m, v

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": small}
    return Optimizer(make, config, rule, numbers, {"m": 0.0, "v": 0.0}, options)


def adamax(
    learning_rate: LearningRate = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    decay: float = 0.0,
    **options: Unpack[Options],
) -> Optimizer:
    """Adamax: ``adam`` with the decaying maximum of the gradients in place of the average of their squares.

    The learning rate is divided by ``1 + decay * step``.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adamax(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    b1, b2 = _check_fraction("adamax", "beta1", beta1), _check_fraction("adamax", "beta2", beta2)
    small, slower = _check_epsilon("adamax", epsilon), as_number("adamax", "decay", decay, 0)

    def numbers(rate: Number, steps: Number) -> Any:
        return (rate / (1.0 + slower * (steps - 1)) / (1.0 - b1**steps),)

    def rule(x: Value, g: Value, m: Value, largest: Value, rate: Number) -> Any:
        m = b1 * m + (1.0 - b1) * g
        largest = np.maximum(b2 * largest, np.abs(g))
        return x - rate * m / (largest + small), m, largest

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": small, "decay": decay}
    return Optimizer(adamax, config, rule, numbers, {"m": 0.0, "v": 0.0}, options)


def rmsprop(
    learning_rate: LearningRate,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float | None = None,
    centered: bool = False,
    **options: Unpack[Options],
) -> Optimizer:
    """RMSprop: the gradient over the root of the moving average of its squares; if ``centered``, of its variance.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.rmsprop(0.1, decay=0.75).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.8, 99.8], dtype=float32)
    """
    decay_rate, momentum_rate = (
        _check_fraction("rmsprop", "decay", decay),
        _check_fraction("rmsprop", "momentum", momentum),
    )
    small = _check_epsilon("rmsprop", epsilon)

    def plain(x: Value, g: Value, squares: Value, m: Value, rate: Number) -> Any:
        squares = decay_rate * squares + (1.0 - decay_rate) * (g * g)
        m = momentum_rate * m + rate * g / np.sqrt(squares + small)
        return x - m, squares, m

    def about_mean(x: Value, g: Value, squares: Value, m: Value, mean: Value, rate: Number) -> Any:
        squares = decay_rate * squares + (1.0 - decay_rate) * (g * g)
        mean = decay_rate * mean + (1.0 - decay_rate) * g
        variance = np.maximum(squares - mean * mean, 0.0)  # rounding can make it negative
        m = momentum_rate * m + rate * g / np.sqrt(variance + small)
        return x - m, squares, m, mean

    config = {
        "learning_rate": learning_rate,
        "decay": decay,
        "momentum": momentum,
        "epsilon": small,
        "centered": centered,
    }
    starts = {"rms": 0.0, "momentum": 0.0} | ({"mg": 0.0} if centered else {})
    return Optimizer(rmsprop, config, about_mean if centered else plain, _return_rate, starts, options)


def lion(
    learning_rate: LearningRate = 1e-4, beta1: float = 0.9, beta2: float = 0.99, **options: Unpack[Options]
) -> Optimizer:
    """Lion (Chen and others, 2023): steps by the sign of a moving average of the gradients.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.lion(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    b1, b2 = _check_fraction("lion", "beta1", beta1), _check_fraction("lion", "beta2", beta2)

    def rule(x: Value, g: Value, m: Value, rate: Number) -> Any:
        return x - rate * np.sign(b1 * m + (1.0 - b1) * g), b2 * m + (1.0 - b2) * g

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2}
    return Optimizer(lion, config, rule, _return_rate, {"m": 0.0}, options)


def _return_rate(rate: Number, steps: Number) -> tuple[Any, ...]:
    return (rate,)


def _check_fraction(name: str, argument: str, value: float) -> float:
    return float(as_number(name, argument, value, 0, 1))


def _check_epsilon(name: str, value: float | None) -> float:
    return EPSILON if value is None else float(as_number(name, "epsilon", value, 0))
