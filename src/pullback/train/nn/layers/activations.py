"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.errors import ArgumentError
from pullback.ops import activations, gaussian, sorting
from pullback.train.custom_objects import find_custom
from pullback.typing import Value

ActivationLike = str | Callable[[Any], Any] | None  # a name, a function, or None for the identity


def _hard_sigmoid(x: Value) -> Any:
    """TensorFlow.js's and Keras 2's; Keras 3 has ``relu6(x + 3) / 6``, which is ``hard_sigmoid6`` here."""
    return np.clip(x * 0.2 + 0.5, 0.0, 1.0)


def _hard_sigmoid6(x: Value) -> Any:
    return np.clip(x * (1.0 / 6.0) + 0.5, 0.0, 1.0)


def _hard_silu(x: Value) -> Any:
    return x * _hard_sigmoid6(x)


def _hard_tanh(x: Value) -> Any:
    return np.clip(x, -1.0, 1.0)


def _linear(x: Value) -> Any:
    return x


def _softsign(x: Value) -> Any:
    return x / (np.abs(x) + 1.0)


def _celu(x: Value) -> Any:
    return np.maximum(x, 0.0) + np.minimum(np.expm1(np.minimum(x, 0.0)), 0.0)


def _glu(x: Value) -> Any:
    if x.shape[-1] % 2:
        raise ArgumentError(f"glu: the last axis is halved, so its length must be even; got shape {x.shape}.")
    half = x.shape[-1] // 2
    return x[..., :half] * activations.sigmoid(x[..., half:])


def _mish(x: Value) -> Any:
    return x * np.tanh(activations.softplus(x))


def _squareplus(x: Value) -> Any:
    return (x + np.sqrt(x * x + 4.0)) / 2.0


def _shrink(x: Value, hard: bool) -> Any:
    """Return 0 between -0.5 and 0.5; other elements as they are, or closer to 0 by 0.5."""
    kept = x if hard else x - np.sign(x) * 0.5
    return np.where(np.abs(x) <= 0.5, 0.0, kept)


def _tanh_shrink(x: Value) -> Any:
    return x - np.tanh(x)


def _threshold(x: Value) -> Any:
    return np.where(x <= 0.0, 0.0, x)


def _sparse_plus(x: Value) -> Any:
    return np.where(x <= -1.0, 0.0, np.where(x < 1.0, (x + 1.0) * (x + 1.0) / 4.0, x))


def _sparse_sigmoid(x: Value) -> Any:
    return np.clip(0.5 * (x + 1.0), 0.0, 1.0)


def _sparsemax(x: Value) -> Any:
    """The projection onto probabilities: many of them are zero."""
    ordered = -sorting.sort(-x, axis=-1)
    counts = np.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    sums = np.cumsum(ordered, axis=-1)
    support = 1.0 + counts * ordered > sums
    size = np.sum(support, axis=-1, keepdims=True).astype(x.dtype)
    last = np.where(support, ordered, 0.0)
    return np.maximum(x - (np.sum(last, axis=-1, keepdims=True) - 1.0) / size, 0.0)


BY_NAME: dict[str, Callable[[Any], Any]] = {
    "celu": _celu,
    "elu": activations.elu,
    "exponential": np.exp,
    "gelu": gaussian.gelu,
    "gelu_new": partial(gaussian.gelu, approximate=True),
    "glu": _glu,
    "hard_shrink": partial(_shrink, hard=True),
    "hard_sigmoid": _hard_sigmoid,
    "hard_sigmoid6": _hard_sigmoid6,
    "hard_silu": _hard_silu,
    "hard_swish": _hard_silu,
    "hard_tanh": _hard_tanh,
    "leaky_relu": activations.leaky_relu,
    "linear": _linear,
    "log_sigmoid": activations.log_sigmoid,
    "log_softmax": activations.log_softmax,
    "mish": _mish,
    "relu": activations.relu,
    "relu6": activations.relu6,
    "selu": activations.selu,
    "sigmoid": activations.sigmoid,
    "silu": activations.silu,
    "soft_shrink": partial(_shrink, hard=False),
    "softmax": activations.softmax,
    "softplus": activations.softplus,
    "softsign": _softsign,
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": _sparse_sigmoid,
    "sparsemax": _sparsemax,
    "squareplus": _squareplus,
    "swish": activations.swish,
    "tanh": np.tanh,
    "tanh_shrink": _tanh_shrink,
    "threshold": _threshold,
}


def find_activation(identifier: ActivationLike, subject: str) -> Callable[[Any], Any]:
    """Return the activation function of a name, of ``None`` (the identity), or of a function itself.

    >>> find_activation("tanh", "dense")(0.0)
    np.float64(0.0)
    """
    function: Callable[[Any], Any] | None = identifier if callable(identifier) else find_custom(identifier)
    if function is not None:
        return function
    name = "linear" if identifier is None else snake_case(str(identifier))
    name = {"log_soft_max": "log_softmax", "hard_swish": "hard_silu"}.get(name, name)
    if name not in BY_NAME:
        raise ArgumentError(
            f"{subject}: activation must be a function or one of {', '.join(BY_NAME)}, got {identifier!r}."
            f"{did_you_mean(name, BY_NAME)}"
        )
    return BY_NAME[name]
