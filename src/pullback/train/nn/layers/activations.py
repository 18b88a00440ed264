"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.errors import ArgumentError
from pullback.ops import activations, gaussian
from pullback.typing import Value

__all__ = ["ActivationLike", "find_activation"]


ActivationLike = str | Callable[[Any], Any] | None  # a name, a function, or None for the identity


def _hard_sigmoid(x: Value) -> Any:
    return np.clip(x * 0.2 + 0.5, 0.0, 1.0)


def _linear(x: Value) -> Any:
    return x


def _softsign(x: Value) -> Any:
    return x / (np.abs(x) + 1.0)


BY_NAME: dict[str, Callable[[Any], Any]] = {
    "elu": activations.elu,
    "gelu": gaussian.gelu,
    "hard_sigmoid": _hard_sigmoid,
    "leaky_relu": activations.leaky_relu,
    "linear": _linear,
    "log_softmax": activations.log_softmax,
    "relu": activations.relu,
    "relu6": activations.relu6,
    "selu": activations.selu,
    "sigmoid": activations.sigmoid,
    "silu": activations.silu,
    "softmax": activations.softmax,
    "softplus": activations.softplus,
    "softsign": _softsign,
    "swish": activations.swish,
    "tanh": np.tanh,
}


def find_activation(given: ActivationLike, what: str) -> Callable[[Any], Any]:
    """Return the activation function of a name, of ``None`` (the identity), or of a function itself.

    >>> find_activation("tanh", "dense")(0.0)
    np.float64(0.0)
    """
    if callable(given):
        return given
    name = "linear" if given is None else snake_case(str(given))
    if name not in BY_NAME:
        raise ArgumentError(
            f"{what}: activation must be a function or one of {', '.join(BY_NAME)}, got {given!r}."
            f"{did_you_mean(name, BY_NAME)}"
        )
    return BY_NAME[name]
