"""Layers of numbers without places: dense ones, activations, shapes, dropout, tables of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback.ops import random
from pullback.train.layers.activations import activation_of
from pullback.train.layers.base import Layer, positive

__all__ = ["Dense", "Dropout", "Flatten"]


@dataclass(eq=False)
class Dense(Layer):
    """``activation(x @ kernel + bias)``, along the last axis.

    >>> layer = pb.layers.dense(2, activation="relu", kernel_initializer="ones")
    >>> layer(np.array([[1.0, 2.0], [-3.0, 1.0]], np.float32))
    Tensor([[3., 3.], [0., 0.]], dtype=float32)
    """

    units: int
    activation: Any = None
    use_bias: bool = True
    kernel_initializer: Any = "glorot_uniform"
    bias_initializer: Any = "zeros"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "units")
        self._activate = activation_of(self.activation, self.name)

    def build(self, shape: Any) -> None:
        self.kernel = self.weight("kernel", (shape[-1], self.units), self.kernel_initializer)
        if self.use_bias:
            self.bias = self.weight("bias", (self.units,), self.bias_initializer)

    def call(self, x: Any) -> Any:
        y = x @ self.kernel
        return self._activate(y + self.bias if self.use_bias else y)


@dataclass(eq=False)
class Flatten(Layer):
    """Every example as one row.

    >>> pb.layers.flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def call(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1)


@dataclass(eq=False)
class Dropout(Layer):
    """In training a share ``rate`` of the inputs is zero, the others larger for it; otherwise nothing happens.

    >>> pb.layers.dropout(0.5)(np.ones((1, 3)))
    array([[1., 1., 1.]])
    """

    rate: float
    seed: Any = None

    def call(self, x: Any, training: bool = False) -> Any:
        return random.dropout(x, self.rate, seed=self.seed) if training and self.rate else x
