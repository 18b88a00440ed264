"""The rules by which parameters go down: one function each, in plain NumPy, with TensorFlow.js's arguments.

``x`` is the parameter, ``g`` its gradient; then come what the rule keeps and the numbers of this step.  A rule gives
the new ``x`` and what to keep.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from pullback.core.convert import as_number
from pullback.train.optim.step import Common, Optimizer, Options

__all__ = ["adadelta", "adagrad", "adam", "adamax", "adamw", "lion", "momentum", "rmsprop", "sgd"]

EPSILON = 1e-7  # TensorFlow.js's, for float32


def sgd(learning_rate: Any, **options: Unpack[Options]) -> Optimizer:
    """Gradient descent: ``x - learning_rate * g``.

    >>> w = pb.variable(4.0)
    >>> pb.train.sgd(0.25).minimize(lambda: w * w)
    >>> w.item()
    2.0
    """

    def rule(x: Any, g: Any, rate: Any) -> Any:
        return (x - rate * g,)

    return Optimizer(sgd, {"learning_rate": learning_rate}, rule, _rate, {}, options, row_wise=True)


def momentum(learning_rate: Any, momentum: float, use_nesterov: bool = False, **options: Unpack[Options]) -> Optimizer:
    """Descent that keeps going: the gradients are summed up, older ones counting less and less.

    >>> w = pb.variable(4.0)
    >>> optimizer = pb.train.momentum(0.25, 0.5)
    >>> for _ in range(2):
    ...     optimizer.minimize(lambda: w * w)
    >>> w.item()
    0.0
    """
    kept = _part("momentum", "momentum", momentum)

    def rule(x: Any, g: Any, m: Any, rate: Any) -> Any:
        m = kept * m + g
        return x - rate * (g + kept * m if use_nesterov else m), m

    config = {"learning_rate": learning_rate, "momentum": momentum, "use_nesterov": use_nesterov}
    return Optimizer(_momentum, config, rule, _rate, {"momentum": 0.0}, options)


_momentum = momentum  # within it, its argument has the name


def adagrad(learning_rate: Any, initial_accumulator_value: float = 0.1, **options: Unpack[Options]) -> Optimizer:
    """Steps that get smaller where gradients were large: divided by the root of the sum of all their squares.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adagrad(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([ 0.51, 99.5 ], dtype=float32)
    """
    start = as_number("adagrad", "initial_accumulator_value", initial_accumulator_value, 0)

    def rule(x: Any, g: Any, squares: Any, rate: Any) -> Any:
        squares = squares + g * g
        return x - rate * g / np.sqrt(squares + EPSILON), squares

    config = {"learning_rate": learning_rate, "initial_accumulator_value": initial_accumulator_value}
    return Optimizer(adagrad, config, rule, _rate, {"accumulator": start}, options, row_wise=True)


def adadelta(
    learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float | None = None, **options: Unpack[Options]
) -> Optimizer:
    """Zeiler's rule: steps as long as recent steps were, for gradients as large as recent gradients were.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adadelta(1000.0).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([-0.41, 98.59], dtype=float32)
    """
    kept, small = _part("adadelta", "rho", rho), _epsilon("adadelta", epsilon)

    def rule(x: Any, g: Any, squares: Any, steps: Any, rate: Any) -> Any:
        squares = kept * squares + (1.0 - kept) * (g * g)
        step = np.sqrt((steps + small) / (squares + small)) * g
        return x - rate * step, squares, kept * steps + (1.0 - kept) * (step * step)

    config = {"learning_rate": learning_rate, "rho": rho, "epsilon": small}
    return Optimizer(adadelta, config, rule, _rate, {"accum_grad": 0.0, "accum_var": 0.0}, options)


def adam(
    learning_rate: Any = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    **options: Unpack[Options],
) -> Optimizer:
    """The mean of the gradients over the root of the mean of their squares, older ones counting less and less.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adam(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    return _adam(adam, learning_rate, beta1, beta2, epsilon, options)


def adamw(
    learning_rate: Any = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    weight_decay: float = 0.01,
    **options: Unpack[Common],
) -> Optimizer:
    """``adam`` with weights that decay by themselves: by ``learning_rate * weight_decay`` of what they are.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adamw(0.5, weight_decay=0.1).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.45, 94.5 ], dtype=float32)
    """
    every: Options = {"weight_decay": weight_decay, **options}
    return _adam(adamw, learning_rate, beta1, beta2, epsilon, every)


def _adam(make: Any, learning_rate: Any, beta1: float, beta2: float, epsilon: Any, options: Options) -> Optimizer:
    name = make.__name__
    b1, b2, small = _part(name, "beta1", beta1), _part(name, "beta2", beta2), _epsilon(name, epsilon)

    def numbers(rate: Any, steps: Any) -> Any:
        return rate / (1.0 - b1**steps), (1.0 - b2**steps) ** -0.5  # means of few gradients begin at nothing

    def rule(x: Any, g: Any, m: Any, v: Any, rate: Any, scale: Any) -> Any:
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        return x - rate * m / (scale * np.sqrt(v) + small), m, v

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": small}
    return Optimizer(make, config, rule, numbers, {"m": 0.0, "v": 0.0}, options)


def adamax(
    learning_rate: Any = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    decay: float = 0.0,
    **options: Unpack[Options],
) -> Optimizer:
    """``adam`` with the largest of recent gradients in place of the mean of their squares.

    ``decay`` makes the learning rate smaller: it is divided by ``1 + decay * step``.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adamax(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    b1, b2 = _part("adamax", "beta1", beta1), _part("adamax", "beta2", beta2)
    small, slower = _epsilon("adamax", epsilon), as_number("adamax", "decay", decay, 0)

    def numbers(rate: Any, steps: Any) -> Any:
        return (rate / (1.0 + slower * (steps - 1)) / (1.0 - b1**steps),)

    def rule(x: Any, g: Any, m: Any, largest: Any, rate: Any) -> Any:
        m = b1 * m + (1.0 - b1) * g
        largest = np.maximum(b2 * largest, np.abs(g))
        return x - rate * m / (largest + small), m, largest

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": small, "decay": decay}
    return Optimizer(adamax, config, rule, numbers, {"m": 0.0, "v": 0.0}, options)


def rmsprop(
    learning_rate: Any,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float | None = None,
    centered: bool = False,
    **options: Unpack[Options],
) -> Optimizer:
    """The gradient over the root of the mean of recent squares; if ``centered``, of their variance.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.rmsprop(0.1, decay=0.75).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.8, 99.8], dtype=float32)
    """
    kept, going = _part("rmsprop", "decay", decay), _part("rmsprop", "momentum", momentum)
    small = _epsilon("rmsprop", epsilon)

    def plain(x: Any, g: Any, squares: Any, m: Any, rate: Any) -> Any:
        squares = kept * squares + (1.0 - kept) * (g * g)
        m = going * m + rate * g / np.sqrt(squares + small)
        return x - m, squares, m

    def about_mean(x: Any, g: Any, squares: Any, m: Any, mean: Any, rate: Any) -> Any:
        squares = kept * squares + (1.0 - kept) * (g * g)
        mean = kept * mean + (1.0 - kept) * g
        variance = np.maximum(squares - mean * mean, 0.0)  # rounding can make it negative
        m = going * m + rate * g / np.sqrt(variance + small)
        return x - m, squares, m, mean

    config = {
        "learning_rate": learning_rate,
        "decay": decay,
        "momentum": momentum,
        "epsilon": small,
        "centered": centered,
    }
    starts = {"rms": 0.0, "momentum": 0.0} | ({"mg": 0.0} if centered else {})
    return Optimizer(rmsprop, config, about_mean if centered else plain, _rate, starts, options)


def lion(learning_rate: Any = 1e-4, beta1: float = 0.9, beta2: float = 0.99, **options: Unpack[Options]) -> Optimizer:
    """Steps of one length, in the direction of the sign of a mean of the gradients (Chen and others, 2023).

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.lion(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    b1, b2 = _part("lion", "beta1", beta1), _part("lion", "beta2", beta2)

    def rule(x: Any, g: Any, m: Any, rate: Any) -> Any:
        return x - rate * np.sign(b1 * m + (1.0 - b1) * g), b2 * m + (1.0 - b2) * g

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2}
    return Optimizer(lion, config, rule, _rate, {"m": 0.0}, options)


def _rate(rate: Any, steps: Any) -> tuple[Any, ...]:
    return (rate,)


def _part(name: str, argument: str, value: Any) -> float:
    return float(as_number(name, argument, value, 0, 1))


def _epsilon(name: str, value: Any) -> float:
    return EPSILON if value is None else float(as_number(name, "epsilon", value, 0))
