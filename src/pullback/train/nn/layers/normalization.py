"""Normalization layers: to mean 0 and variance 1 over the batch, or over each example."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core.convert import as_number
from pullback.core.variable import Variable
from pullback.errors import ArgumentError
from pullback.numerics.axis_arguments import resolve_axes
from pullback.ops import normalization
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.regularizers import RegularizerLike
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Shape, Value

__all__ = ["BatchNormalization", "LayerNormalization"]


@dataclass(eq=False)
class BatchNormalization(Layer):
    """Normalizes each feature to mean 0 and variance 1 over the batch, then applies a learned scale and offset.

    In training, mean and variance are those of the batch, and their moving averages are updated; otherwise, and in a
    frozen layer always, the moving averages are used.

    >>> layer = pb.layers.batch_normalization(momentum=0.5)
    >>> x = np.array([[1.0], [3.0]], np.float32)
    >>> layer(x, training=True)
    Tensor([[-0.9995004], [0.9995004]], dtype=float32)
    >>> layer.moving_mean, layer(np.ones((1, 1), np.float32))
    (Variable([1.], dtype=float32, name='batch_normalization...'), Tensor([[0.]], dtype=float32))
    """

    axis: int = -1
    momentum: float = 0.99
    epsilon: float = 1e-3
    center: bool = True
    scale: bool = True
    beta_initializer: InitializerLike = "zeros"
    gamma_initializer: InitializerLike = "ones"
    moving_mean_initializer: InitializerLike = "zeros"
    moving_variance_initializer: InitializerLike = "ones"
    beta_regularizer: RegularizerLike | None = None
    gamma_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number(self.name, "momentum", self.momentum, 0, 1)
        as_number(self.name, "epsilon", self.epsilon, 0)

    def build(self, shape: Shape) -> None:
        (axis,) = resolve_axes(len(shape) + 1, self.axis, self.name)
        if not axis:
            raise ArgumentError(f"{self.name}: axis 0 is the batch, over which is averaged; take another.")
        size = (shape[axis - 1],)
        if self.scale:
            self.gamma = self.weight("gamma", size, self.gamma_initializer, penalty=self.gamma_regularizer)
        if self.center:
            self.beta = self.weight("beta", size, self.beta_initializer, penalty=self.beta_regularizer)
        self.moving_mean = self.weight("moving_mean", size, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.weight("moving_variance", size, self.moving_variance_initializer, trainable=False)

    def call(self, x: Value, training: bool = False) -> Any:
        (axis,) = resolve_axes(x.ndim, self.axis, self.name)
        rest = tuple(i for i in range(x.ndim) if i != axis)
        shape: Shape = tuple(n if i == axis else 1 for i, n in enumerate(x.shape))  # one number for each feature
        count: int = math.prod(x.shape[i] for i in rest)
        if training and self.trainable and count:
            mean = np.mean(x, axis=rest, keepdims=True)
            centred = x - mean
            variance = np.mean(centred * centred, axis=rest, keepdims=True)
            self._update_average(self.moving_mean, mean)
            self._update_average(self.moving_variance, variance)
        else:
            centred = x - np.reshape(self.moving_mean, shape)
            variance = np.reshape(self.moving_variance, shape)
        factor = 1.0 / np.sqrt(variance + self.epsilon)
        y = centred * (np.reshape(self.gamma, shape) * factor if self.scale else factor)
        return y + np.reshape(self.beta, shape) if self.center else y

    def _update_average(self, average: Variable, new: Value) -> None:
        """Update a moving average with the value of this batch; no gradient goes through it."""
        old, new = stop_gradient(average), np.reshape(stop_gradient(new), average.shape)
        average.assign(np.astype(old * self.momentum + new * (1.0 - self.momentum), average.dtype))


@dataclass(eq=False)
class LayerNormalization(Layer):
    """Normalizes each example to mean 0 and variance 1 over ``axis``, then applies a learned scale and offset.

    >>> pb.layers.layer_normalization(epsilon=0.0)(np.array([[1.0, 3.0], [10.0, 30.0]]))
    Tensor([[-1., 1.], [-1., 1.]], dtype=float64)
    """

    axis: Any = -1
    epsilon: float = 1e-3
    center: bool = True
    scale: bool = True
    beta_initializer: InitializerLike = "zeros"
    gamma_initializer: InitializerLike = "ones"
    beta_regularizer: RegularizerLike | None = None
    gamma_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number(self.name, "epsilon", self.epsilon, 0)

    def build(self, shape: Shape) -> None:
        self._axes = resolve_axes(len(shape) + 1, self.axis, self.name)
        if 0 in self._axes:
            raise ArgumentError(f"{self.name}: axis 0 is the batch; take axes of the examples.")
        size = tuple(shape[i - 1] for i in self._axes)
        if self.scale:
            self.gamma = self.weight("gamma", size, self.gamma_initializer, penalty=self.gamma_regularizer)
        if self.center:
            self.beta = self.weight("beta", size, self.beta_initializer, penalty=self.beta_regularizer)

    def call(self, x: Value) -> Any:
        shape = tuple(n if i in self._axes else 1 for i, n in enumerate(x.shape))
        gamma = np.reshape(self.gamma, shape) if self.scale else None
        beta = np.reshape(self.beta, shape) if self.center else None
        return normalization.layer_norm(x, beta, gamma, self._axes, self.epsilon)
