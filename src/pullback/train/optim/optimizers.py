"""The update rules of the optimizers: one function each, in plain NumPy, with TensorFlow.js's arguments.

A rule takes the parameter ``x``, its gradient ``g``, the slots and the numbers of this step, and returns the new ``x``
and the new slots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

import numpy as np

from pullback.core.convert import as_number
from pullback.errors import ArgumentError
from pullback.train.arguments import accept_names, as_whole_number, describe_arguments
from pullback.train.optim.schedules import LearningRate
from pullback.train.optim.step import Common, Optimizer, OptimizerOptions
from pullback.typing import Array, Shape

__all__ = [
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "ftrl", "lamb", "lion", "loss_scale_optimizer",
    "momentum", "muon", "nadam", "rmsprop", "schedule_free_adamw", "sgd",
]  # fmt: skip

EPSILON = 1e-7  # TensorFlow.js's, for float32
# A step number or a rate, in a compiled step a tensor: with a union, type checkers take seconds for the rules.
Number: TypeAlias = float | Any


KERAS_NAMES = {
    "beta_1": "beta1", "beta_2": "beta2", "clipnorm": "clip_norm", "clipvalue": "clip_value",
    "global_clipnorm": "clip_global_norm", "rho": "decay", "nesterov": "use_nesterov",
}  # fmt: skip


@accept_names(KERAS_NAMES)
def sgd(
    learning_rate: LearningRate = 0.01,
    momentum: float = 0.0,
    nesterov: bool = False,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return gradient descent: ``x - learning_rate * g``; with ``momentum``, by a decaying sum of these steps.

    >>> w = pb.variable(4.0)
    >>> pb.train.sgd(0.25).minimize(lambda: w * w)
    >>> w.item()
    2.0
    """
    kept = _check_fraction("sgd", "momentum", momentum)

    def rule(x: Array, g: Array, rate: Number) -> Any:
        step: Any = rate * g
        return (x - step,)

    def rule_with_momentum(x: Array, g: Array, m: Array, rate: Number) -> Any:
        step: Any = rate * g
        moved: Any = kept * m - step
        return x + (kept * moved - step if nesterov else moved), moved

    if not kept:
        return Optimizer(sgd, {"learning_rate": learning_rate}, rule, _return_rate, {}, options, row_wise=True)
    config = {"learning_rate": learning_rate, "momentum": momentum, "nesterov": nesterov}
    return Optimizer(sgd, config, rule_with_momentum, _return_rate, {"momentum": 0.0}, options)


@accept_names(KERAS_NAMES)
def momentum(
    learning_rate: LearningRate, momentum: float, use_nesterov: bool = False, **options: Unpack[OptimizerOptions]
) -> Optimizer:
    """Return gradient descent with momentum: along an exponentially decaying sum of the gradients.

    >>> w = pb.variable(4.0)
    >>> optimizer = pb.train.momentum(0.25, 0.5)
    >>> for _ in range(2):
    ...     optimizer.minimize(lambda: w * w)
    >>> w.item()
    0.0
    """
    config = _collect_arguments(locals())
    decay_rate = _check_fraction("momentum", "momentum", momentum)

    def rule(x: Array, g: Array, m: Array, rate: Number) -> Any:
        moved: Any = decay_rate * m + g
        return x - rate * (g + decay_rate * moved if use_nesterov else moved), moved

    return Optimizer(_momentum, config, rule, _return_rate, {"momentum": 0.0}, options)


_momentum = momentum  # inside it, its argument hides the name


@accept_names(KERAS_NAMES)
def adagrad(
    learning_rate: LearningRate,
    initial_accumulator_value: float = 0.1,
    epsilon: float | None = None,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return Adagrad: steps divided by the root of the sum of all squared gradients.

    epsilon: what is added to the sums; 1e-7 unless given.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adagrad(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([ 0.51, 99.5 ], dtype=float32)
    """
    config = _collect_arguments(locals())
    start = as_number("adagrad", "initial_accumulator_value", initial_accumulator_value, 0)
    small = _check_epsilon("adagrad", epsilon)

    def rule(x: Array, g: Array, squares: Array, rate: Number) -> Any:
        squares = squares + g * g
        return x - rate * g / np.sqrt(squares + small), squares

    return Optimizer(adagrad, config, rule, _return_rate, {"accumulator": start}, options, row_wise=True)


@accept_names(KERAS_NAMES)
def adadelta(
    learning_rate: LearningRate = 0.001,
    rho: float = 0.95,
    epsilon: float | None = None,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return Adadelta (Zeiler): steps scaled by the root mean square of recent steps over that of recent gradients.

    rho: the decay rate of the averages.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adadelta(1000.0).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([-0.41, 98.59], dtype=float32)
    """
    config = _collect_arguments(locals())
    decay_rate, small = _check_fraction("adadelta", "rho", rho), _check_epsilon("adadelta", epsilon)

    def rule(x: Array, g: Array, squares: Array, steps: Array, rate: Number) -> Any:
        squares = decay_rate * squares + (1.0 - decay_rate) * (g * g)
        step = np.sqrt((steps + small) / (squares + small)) * g
        return x - rate * step, squares, decay_rate * steps + (1.0 - decay_rate) * (step * step)

    return Optimizer(adadelta, config, rule, _return_rate, {"accum_grad": 0.0, "accum_var": 0.0}, options)


@accept_names(KERAS_NAMES)
def adam(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    amsgrad: bool = False,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return Adam: the moving average of the gradients over the root of that of their squares.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adam(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    return _make_adam(adam, learning_rate, beta1, beta2, epsilon, amsgrad, options, scales_epsilon=False)


@accept_names(KERAS_NAMES)
def adamw(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    weight_decay: float = 0.004,
    amsgrad: bool = False,
    **options: Unpack[Common],
) -> Optimizer:
    """Return AdamW: ``adam`` with decoupled weight decay of ``learning_rate * weight_decay``, computed as Keras does.

    epsilon: what is added to the root of the average of squares, before this is corrected for starting at 0.
    weight_decay: the weight decay, which is multiplied by the learning rate.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adamw(0.5, weight_decay=0.1).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(4)
    array([ 0.45, 94.5 ], dtype=float32)
    """
    every: OptimizerOptions = {"weight_decay": weight_decay, **options}
    return _make_adam(adamw, learning_rate, beta1, beta2, epsilon, amsgrad, every, scales_epsilon=True)


def _make_adam(
    make: Callable[..., Optimizer],
    learning_rate: LearningRate,
    beta1: float,
    beta2: float,
    epsilon: float | None,
    amsgrad: bool,
    options: OptimizerOptions,
    scales_epsilon: bool,
) -> Optimizer:
    """Return Adam.

    epsilon is added to the root of the corrected average, as in TensorFlow.js, or, if ``scales_epsilon``, to that of
    the average itself, as in Keras.
    """
    name = make.__name__
    b1, b2 = _check_decay_rate(name, "beta1", beta1), _check_decay_rate(name, "beta2", beta2)
    small = _check_epsilon(name, epsilon)

    def numbers(rate: Number, steps: Number) -> Any:
        # corrects the bias of averages that start at 0
        first, second = 1.0 - b1**steps, 1.0 - b2**steps
        rate, scale = rate / first, second**-0.5
        return (rate / scale, 1.0) if scales_epsilon else (rate, scale)

    def rule(x: Array, g: Array, m: Array, v: Array, rate: Number, scale: Number) -> Any:
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        return x - rate * m / (scale * np.sqrt(v) + small), m, v

    def rule_with_largest(x: Array, g: Array, m: Array, v: Array, largest: Array, rate: Number, scale: Number) -> Any:
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        largest = np.maximum(largest, v)
        return x - rate * m / (scale * np.sqrt(largest) + small), m, v, largest

    config = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": small}
    if not amsgrad:
        return Optimizer(make, config, rule, numbers, {"m": 0.0, "v": 0.0}, options)
    starts = {"m": 0.0, "v": 0.0, "vhat": 0.0}
    return Optimizer(make, {**config, "amsgrad": True}, rule_with_largest, numbers, starts, options)


@accept_names(KERAS_NAMES)
def adamax(
    learning_rate: LearningRate = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    decay: float = 0.0,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return Adamax: ``adam`` with the decaying maximum of the gradients in place of the average of their squares.

    The learning rate is divided by ``1 + decay * step``.

    decay: how quickly the rate becomes smaller.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.adamax(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    config = _collect_arguments(locals())
    b1, b2 = _check_decay_rate("adamax", "beta1", beta1), _check_decay_rate("adamax", "beta2", beta2)
    small, slower = _check_epsilon("adamax", epsilon), as_number("adamax", "decay", decay, 0)

    def numbers(rate: Number, steps: Number) -> Any:
        weight: Any = b1**steps
        return (rate / (1.0 + slower * (steps - 1)) / (1.0 - weight),)

    def rule(x: Array, g: Array, m: Array, largest: Array, rate: Number) -> Any:
        m = b1 * m + (1.0 - b1) * g
        largest = np.maximum(b2 * largest, np.abs(g))
        return x - rate * m / (largest + small), m, largest

    return Optimizer(adamax, config, rule, numbers, {"m": 0.0, "v": 0.0}, options)


@accept_names(KERAS_NAMES)
def rmsprop(
    learning_rate: LearningRate,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float | None = None,
    centered: bool = False,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return RMSprop: the gradient over the root of the moving average of its squares, or if ``centered`` its variance.

    decay: the decay rate of the average of squared gradients.
    centered: whether the mean of the gradients is subtracted.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.rmsprop(0.1, decay=0.75).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.8, 99.8], dtype=float32)
    """
    config = _collect_arguments(locals())
    decay_rate = _check_fraction("rmsprop", "decay", decay)
    momentum_rate = _check_fraction("rmsprop", "momentum", momentum)
    small = _check_epsilon("rmsprop", epsilon)

    def about_zero(x: Array, g: Array, squares: Array, m: Array, rate: Number) -> Any:
        squares = decay_rate * squares + (1.0 - decay_rate) * (g * g)
        m = momentum_rate * m + rate * g / np.sqrt(squares + small)
        return x - m, squares, m

    def about_mean(x: Array, g: Array, squares: Array, m: Array, mean: Array, rate: Number) -> Any:
        squares = decay_rate * squares + (1.0 - decay_rate) * (g * g)
        mean = decay_rate * mean + (1.0 - decay_rate) * g
        variance = np.maximum(squares - mean * mean, 0.0)  # rounding can make it negative
        m = momentum_rate * m + rate * g / np.sqrt(variance + small)
        return x - m, squares, m, mean

    starts = {"rms": 0.0, "momentum": 0.0} | ({"mg": 0.0} if centered else {})
    return Optimizer(rmsprop, config, about_mean if centered else about_zero, _return_rate, starts, options)


@accept_names(KERAS_NAMES)
def lion(
    learning_rate: LearningRate = 1e-4, beta1: float = 0.9, beta2: float = 0.99, **options: Unpack[OptimizerOptions]
) -> Optimizer:
    """Return Lion (Chen and others, 2023): steps by the sign of a moving average of the gradients.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.lion(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy()
    array([ 0.5, 99.5], dtype=float32)
    """
    config = _collect_arguments(locals())
    b1, b2 = _check_decay_rate("lion", "beta1", beta1), _check_decay_rate("lion", "beta2", beta2)

    def rule(x: Array, g: Array, m: Array, rate: Number) -> Any:
        return x - rate * np.sign(b1 * m + (1.0 - b1) * g), b2 * m + (1.0 - b2) * g

    return Optimizer(lion, config, rule, _return_rate, {"m": 0.0}, options)


@accept_names(KERAS_NAMES)
def nadam(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return Nadam (Dozat): ``adam`` with Nesterov's momentum, which grows over the first steps.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.nadam(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(3)
    array([ 0.469, 99.469], dtype=float32)
    """
    config = _collect_arguments(locals())
    b1, b2 = _check_decay_rate("nadam", "beta1", beta1), _check_decay_rate("nadam", "beta2", beta2)
    small = _check_epsilon("nadam", epsilon)

    def numbers(rate: Number, steps: Number) -> Any:
        now, after = b1 * (1.0 - 0.5 * 0.96**steps), b1 * (1.0 - 0.5 * 0.96 ** (steps + 1))
        return rate, now, after, (1.0 - b2**steps) ** -0.5

    def rule(
        x: Array,
        g: Array,
        m: Array,
        v: Array,
        product: Array,
        rate: Number,
        now: Number,
        after: Number,
        scale: Number,
    ) -> Any:
        product = product * now
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        step = after * m / (1.0 - product * after) + (1.0 - now) * g / (1.0 - product)
        return x - rate * step / (scale * np.sqrt(v) + small), m, v, product

    starts = {"m": 0.0, "v": 0.0, "product": 1.0}
    return Optimizer(nadam, config, rule, numbers, starts, options, slot_shapes={"product": _use_no_shape}, whole=True)


@accept_names(KERAS_NAMES)
def ftrl(
    learning_rate: LearningRate = 0.001,
    learning_rate_power: float = -0.5,
    initial_accumulator_value: float = 0.1,
    l1_regularization_strength: float = 0.0,
    l2_regularization_strength: float = 0.0,
    l2_shrinkage_regularization_strength: float = 0.0,
    beta: float = 0.0,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return FTRL-proximal (McMahan and others, 2013), which sets parameters to zero: for wide linear models.

    learning_rate_power: the exponent of the sums of squares.
    l1_regularization_strength: the weight of the absolute values.
    l2_regularization_strength: the weight of the squares.
    l2_shrinkage_regularization_strength: the weight of the squares in the gradient alone.
    beta: what is added to the root of the sums of squares.

    >>> w = pb.variable([1.0, 0.001])
    >>> pb.train.ftrl(0.5, l1_regularization_strength=0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(3)
    array([0.226, 0.   ], dtype=float32)
    """
    config = _collect_arguments(locals())
    power, l1 = -learning_rate_power, l1_regularization_strength
    if power < 0:
        raise ArgumentError(f"ftrl: learning_rate_power must not be more than 0, got {learning_rate_power!r}.")
    for argument in ("l1", "l2", "l2_shrinkage"):
        as_number("ftrl", f"{argument}_regularization_strength", config[f"{argument}_regularization_strength"], 0)

    def rule(x: Array, g: Array, squares: Array, linear: Array, rate: Number) -> Any:
        new: Any = squares + g * g
        shrunk: Any = g + 2.0 * l2_shrinkage_regularization_strength * x
        linear = linear + shrunk - (new**power - squares**power) / rate * x
        quadratic = new**power / rate + 2.0 * (l2_regularization_strength + beta / (2.0 * rate))
        return (np.clip(linear, -l1, l1) - linear) / quadratic, new, linear

    start = as_number("ftrl", "initial_accumulator_value", initial_accumulator_value, 0)
    return Optimizer(ftrl, config, rule, _return_rate, {"accumulator": start, "linear": 0.0}, options)


@accept_names(KERAS_NAMES)
def lamb(
    learning_rate: LearningRate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return LAMB (You and others, 2019): ``adam`` with the step of each variable scaled to its norm.

    >>> w = pb.variable([3.0, 4.0])
    >>> pb.train.lamb(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(3)
    array([1.232, 2.232], dtype=float32)
    """
    config = _collect_arguments(locals())
    b1, b2 = _check_decay_rate("lamb", "beta1", beta1), _check_decay_rate("lamb", "beta2", beta2)
    small = _check_epsilon("lamb", epsilon)

    def numbers(rate: Number, steps: Number) -> Any:
        return rate, 1.0 / (1.0 - b1**steps), (1.0 - b2**steps) ** -0.5

    def rule(x: Array, g: Array, m: Array, v: Array, rate: Number, first: Number, second: Number) -> Any:
        m = b1 * m + (1.0 - b1) * g
        v = b2 * v + (1.0 - b2) * (g * g)
        step = first * m / (second * np.sqrt(v) + small)
        length, reach = np.sqrt(np.sum(x * x)), np.sqrt(np.sum(step * step))
        ratio = np.where((length > 0) & (reach > 0), length / np.where(reach > 0, reach, 1.0), 1.0)
        return x - (rate * ratio).astype(x.dtype) * step, m, v

    return Optimizer(lamb, config, rule, numbers, {"m": 0.0, "v": 0.0}, options, whole=True)


@accept_names(KERAS_NAMES)
def adafactor(
    learning_rate: LearningRate = 0.001,
    beta_2_decay: float = -0.8,
    epsilon_1: float = 1e-30,
    epsilon_2: float = 1e-3,
    clip_threshold: float = 1.0,
    relative_step: bool = True,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return Adafactor (Shazeer and Stern, 2018): of a matrix it keeps the sums of rows and columns, not all squares.

    beta_2_decay: how quickly the averages of squares become longer.
    epsilon_1: what is added to squares.
    epsilon_2: the least size of a parameter that a step is measured by.
    clip_threshold: the largest root mean square of a step.
    relative_step: whether steps become shorter by themselves.

    >>> w = pb.variable([[3.0, 4.0], [0.0, 1.0]])
    >>> optimizer = pb.train.adafactor(0.5)
    >>> optimizer.minimize(lambda: (w * w).sum())
    >>> [x.shape for x in optimizer.state_dict().values() if np.ndim(x)]
    [(2,), (2,), (0,)]
    """
    config = _collect_arguments(locals())
    _check_positive("adafactor", "clip_threshold", clip_threshold)

    def numbers(rate: Number, steps: Number) -> Any:
        limit = steps**-0.5  # Keras's rule has it with and without relative_step
        return np.minimum(rate, limit)[()], 1.0 - steps**beta_2_decay

    def rule(x: Array, g: Array, rows: Array, columns: Array, squares: Array, rate: Number, decay: Number) -> Any:
        new: Any = g * g + epsilon_1
        if len(x.shape) >= 2:
            rows = decay * rows + (1.0 - decay) * np.mean(new, axis=-1)
            columns = decay * columns + (1.0 - decay) * np.mean(new, axis=-2)
            share = rows / np.mean(rows, axis=-1, keepdims=True)
            average = share[..., None] * columns[..., None, :]
        else:
            average = squares = decay * squares + (1.0 - decay) * new
        step = g / np.sqrt(average)
        step = step / np.maximum(1.0, np.sqrt(np.mean(step * step)) / clip_threshold)
        size = np.maximum(epsilon_2, np.sqrt(np.mean(x * x)))
        return (x - rate * size * step).astype(x.dtype), rows, columns, squares

    shapes = {
        "rows": lambda shape, _: shape[:-1] if len(shape) >= 2 else (0,),
        "columns": lambda shape, _: (*shape[:-2], shape[-1]) if len(shape) >= 2 else (0,),
        "squares": lambda shape, _: (0,) if len(shape) >= 2 else shape,
    }
    starts = {"rows": 0.0, "columns": 0.0, "squares": 0.0}
    return Optimizer(adafactor, config, rule, numbers, starts, options, whole=True, slot_shapes=shapes)


@accept_names(KERAS_NAMES)
def muon(
    learning_rate: LearningRate = 0.001,
    adam_beta_1: float = 0.9,
    adam_beta_2: float = 0.999,
    adam_weight_decay: float | None = 0.004,
    epsilon: float | None = None,
    weight_decay: float | None = 0.004,
    exclude_layers: Sequence[str] = (),
    exclude_embeddings: bool = True,
    muon_a: float = 3.4445,
    muon_b: float = -4.775,
    muon_c: float = 2.0315,
    adam_lr_ratio: float = 1.0,
    momentum: float = 0.95,
    ns_steps: int = 5,
    nesterov: bool = True,
    rms_rate: float | None = 0.2,
    **options: Unpack[Common],
) -> Optimizer:
    """Return Muon (Jordan and others, 2024): matrices move by their momentum made orthogonal, the rest by AdamW.

    adam_beta_1: the decay rate of AdamW's average of gradients.
    adam_beta_2: the decay rate of AdamW's average of squared gradients.
    adam_weight_decay: the weight decay of the variables that AdamW updates.
    epsilon: a small number that is added to AdamW's denominator.
    weight_decay: the weight decay of matrices.
    exclude_layers: patterns; variables with such names are AdamW's. Mostly the last layer is.
    exclude_embeddings: whether variables with ``embedding`` in their names are AdamW's.
    muon_a: the first coefficient of the iteration of Newton and Schulz.
    muon_b: the second.
    muon_c: the third.
    adam_lr_ratio: what the rate is multiplied by for AdamW.
    momentum: the decay rate of the momentum of matrices.
    ns_steps: how many iterations.
    rms_rate: steps are this times the root of the larger side of the matrix; None leaves them.

    >>> w = pb.variable([[3.0, 1.0], [1.0, 3.0]])
    >>> pb.train.muon(4.0, weight_decay=0.0).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(2)
    array([[1.98, 1.24],
           [1.24, 1.98]], dtype=float32)
    """
    config = _collect_arguments(locals()) | {"exclude_layers": list(exclude_layers)}
    b1, b2 = (
        _check_decay_rate("muon", "adam_beta_1", adam_beta_1),
        _check_decay_rate("muon", "adam_beta_2", adam_beta_2),
    )
    kept, small = _check_fraction("muon", "momentum", momentum), _check_epsilon("muon", epsilon)
    as_whole_number("muon", "ns_steps", ns_steps, 1)
    patterns = [re.compile(pattern) for pattern in exclude_layers]

    def find_shape(shape: Shape, name: str) -> Shape:
        """Return the shape of AdamW's second slot, which matrices that Muon moves do not have."""
        is_adam = len(shape) != 2 or (exclude_embeddings and "embedding" in name.lower())
        return shape if is_adam or any(pattern.search(name) for pattern in patterns) else (0,)

    def numbers(rate: Number, steps: Number) -> Any:
        decays = [1.0 - rate * (decay or 0.0) for decay in (weight_decay, adam_weight_decay)]
        return rate, rate * adam_lr_ratio * (1.0 - b2**steps) ** 0.5 / (1.0 - b1**steps), *decays

    def rule(
        x: Array, g: Array, m: Array, v: Array, rate: Number, adam_rate: Number, decay: Number, adam_decay: Number
    ) -> Any:
        if tuple(v.shape) == tuple(x.shape):
            m = b1 * m + (1.0 - b1) * g
            v = b2 * v + (1.0 - b2) * (g * g)
            return x * adam_decay - adam_rate * m / (np.sqrt(v) + small), m, v
        m = kept * m + g
        ahead: Any = g + kept * m if nesterov else m
        length = 1.0 if rms_rate is None else rms_rate * max(x.shape) ** 0.5
        return x * decay - rate * length * _orthogonalize(ahead, ns_steps, muon_a, muon_b, muon_c), m, v

    starts, shapes = {"m": 0.0, "v": 0.0}, {"v": find_shape}
    return Optimizer(muon, config, rule, numbers, starts, {**options}, slot_shapes=shapes, whole=True)  # type: ignore[typeddict-item]


def _orthogonalize(x: Any, steps: int, a: float, b: float, c: float) -> Any:
    """Return nearly the matrix with the same singular vectors and all singular values 1, by Newton and Schulz."""
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (np.sqrt(np.sum(x * x)) + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if is_tall else x


@accept_names(KERAS_NAMES)
def schedule_free_adamw(
    learning_rate: LearningRate = 0.0025,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    warmup_steps: int = 0,
    **options: Unpack[OptimizerOptions],
) -> Optimizer:
    """Return schedule-free AdamW (Defazio and others, 2024): an average of the iterates in place of a schedule.

    warmup_steps: steps over which the rate grows.

    >>> w = pb.variable([1.0, 100.0])
    >>> pb.train.schedule_free_adamw(0.5).minimize(lambda: (w * w).sum())
    >>> w.numpy().round(3)
    array([ 0.5, 99.5], dtype=float32)
    """
    config, name = _collect_arguments(locals()), "schedule_free_adamw"
    _check_positive(name, "beta1", beta1)
    small, warm_steps = _check_epsilon(name, epsilon), as_whole_number(name, "warmup_steps", warmup_steps, 0)
    b1, b2 = _check_decay_rate(name, "beta1", beta1), _check_decay_rate(name, "beta2", beta2)

    def numbers(rate: Number, steps: Number) -> Any:
        warm = np.minimum(steps / warm_steps, 1.0)[()] if warm_steps else 1.0
        return rate * warm, (1.0 - b2**steps) ** -0.5, 1.0 / steps

    def rule(x: Array, g: Array, ahead: Array, v: Array, rate: Number, scale: Number, weight: Number) -> Any:
        v = b2 * v + (1.0 - b2) * (g * g)
        fast = x + ahead  # the iterate without averaging
        mean = (x - (1.0 - b1) * fast) / b1
        fast = fast - rate * g / (scale * np.sqrt(v) + small)
        kept_mean: Any = (1.0 - weight) * mean
        new = (1.0 - b1) * fast + b1 * (kept_mean + weight * fast)
        return new, fast - new, v

    return Optimizer(schedule_free_adamw, config, rule, numbers, {"ahead": 0.0, "v": 0.0}, options)


def _use_no_shape(shape: Shape, name: str) -> Shape:
    return ()


def _return_rate(rate: Number, steps: Number) -> tuple[Any, ...]:
    return (rate,)


def loss_scale_optimizer(
    inner_optimizer: Optimizer, initial_scale: float = 32768.0, dynamic_growth_steps: int = 2000
) -> Optimizer:
    """Return the optimizer with a dynamic loss scale, for gradients in float16, as Keras's ``LossScaleOptimizer``.

    ``fit`` and ``minimize`` multiply the loss by the scale, and gradients are divided by it.  A step with gradients
    that are not finite is skipped and halves the scale.

    - inner_optimizer: the optimizer; its state so far is not taken over.
    - initial_scale: the first scale.
    - dynamic_growth_steps: after so many steps with finite gradients in a row the scale is doubled.

    >>> w = pb.variable(np.float16(0.5))
    >>> optimizer = pb.train.loss_scale_optimizer(pb.train.sgd(0.25), initial_scale=2.0**17)
    >>> for _ in range(3):
    ...     optimizer.minimize(lambda: w * w)  # the gradient is 1, and 2**17 is more than float16 has
    >>> w.item(), optimizer.state_dict()["loss_scale"], optimizer.iterations
    (0.25, 32768.0, 1)
    """
    config = inner_optimizer.get_config()
    scale = {"loss_scale_factor": initial_scale, "dynamic_growth_steps": dynamic_growth_steps}
    return inner_optimizer.from_config({**config, **scale})


def _collect_arguments(local_names: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an optimizer, from the ``locals()`` of its function, without those of every optimizer."""
    config = {name: x for name, x in local_names.items() if name != "options"}
    return config | ({"epsilon": EPSILON} if config.get("epsilon", 0.0) is None else {})


def _check_fraction(name: str, argument: str, value: float) -> float:
    return float(as_number(name, argument, value, 0, 1))


def _check_decay_rate(name: str, argument: str, value: float) -> float:
    """Return the decay rate of an average that starts at 0: with 1 it would stay there."""
    if _check_fraction(name, argument, value) == 1:
        raise ArgumentError(f"{name}: {argument} must be less than 1, got {value!r}.")
    return float(value)


def _check_positive(name: str, argument: str, value: float) -> None:
    if as_number(name, argument, value, 0) == 0:
        raise ArgumentError(f"{name}: {argument} must be more than 0, got {value!r}.")


def _check_epsilon(name: str, value: float | None) -> float:
    return EPSILON if value is None else float(as_number(name, "epsilon", value, 0))


describe_arguments(
    [globals()[name] for name in __all__],
    {
        "learning_rate": "the learning rate: a number or a schedule.",
        "momentum": "the fraction of the previous step that is added.",
        "nesterov": "whether Nesterov momentum is used.",
        "use_nesterov": "whether Nesterov momentum is used.",
        "beta1": "the decay rate of the average of gradients.",
        "beta2": "the decay rate of the average of squared gradients.",
        "epsilon": "a small number that is added to the denominator.",
        "amsgrad": "whether the maximum of the averages of squares is used (AMSGrad).",
        "initial_accumulator_value": "the initial value of the sums of squares.",
        "options": "those of every optimizer: ``weight_decay``, ``clipnorm``, ``clipvalue``, ``global_clipnorm``, "
        "``use_ema``, ...",
    },
)
