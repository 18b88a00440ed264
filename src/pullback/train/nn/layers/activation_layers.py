"""Activation functions as layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core.convert import as_number
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import activations
from pullback.train.masks import Mask
from pullback.train.nn.constraints import ConstraintLike
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_number
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Shape, Value

__all__ = ["Activation", "Elu", "LeakyRelu", "Prelu", "Relu", "Softmax", "ThresholdedRelu"]


@dataclass(eq=False)
class Activation(Layer):
    """An activation function, by its name or itself.

    - activation: the function, or its name.

    >>> pb.layers.activation("relu")(np.array([[-1.0, 2.0]]))
    array([[0., 2.]])
    """

    activation: ActivationLike
    supports_masking = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._activate = find_activation(self.activation, self.name)

    def call(self, x: Value) -> Any:
        return self._activate(x)


@dataclass(eq=False)
class Relu(Layer):
    """``x`` where it is above ``threshold``, ``negative_slope * (x - threshold)`` below, at most ``max_value``.

    - max_value: the largest output; None for no limit.
    - negative_slope: the slope below the threshold.
    - threshold: where the function begins to be the identity.

    >>> pb.layers.relu(max_value=1.5)(np.array([[-1.0, 1.0, 2.0]]))
    array([[0. , 1. , 1.5]])
    """

    max_value: float | None = None
    negative_slope: float = 0.0
    threshold: float = 0.0
    supports_masking = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("negative_slope", "threshold", *([] if self.max_value is None else ["max_value"])):
            as_number(self.name, name, getattr(self, name), 0)

    def call(self, x: Value) -> Any:
        if self.threshold:
            is_above = x > self.threshold
            none: Any = 0.0 * x
            y = np.where(is_above, x, none)
        else:
            y = activations.relu(x)
        if self.negative_slope:
            y = y - self.negative_slope * activations.relu(self.threshold - x)
        return y if self.max_value is None else np.minimum(y, self.max_value)


@dataclass(eq=False)
class LeakyRelu(Layer):
    """``x`` where it is positive, ``negative_slope * x`` elsewhere.

    - negative_slope: the slope for negative inputs.
    - alpha: another name of it, as in TensorFlow.js.

    >>> pb.layers.leaky_relu(0.5)(np.array([[-1.0, 2.0]]))
    array([[-0.5,  2. ]])
    """

    negative_slope: float = 0.3
    alpha: float | None = None
    supports_masking = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._slope = float(as_number(self.name, "alpha", self.negative_slope if self.alpha is None else self.alpha))

    def call(self, x: Value) -> Any:
        return activations.leaky_relu(x, self._slope)


@dataclass(eq=False)
class Elu(Layer):
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere.

    - alpha: minus the lowest output.

    >>> pb.layers.elu()(np.array([[-1.0, 2.0]])).round(3)
    array([[-0.632,  2.   ]])
    """

    alpha: float = 1.0
    supports_masking = True
    argument_checks = ((check_number, "alpha"),)

    def call(self, x: Value) -> Any:
        y = activations.elu(x)
        return y if self.alpha == 1.0 else np.where(x > 0, x, y * self.alpha)


@dataclass(eq=False)
class Prelu(Layer):
    """``x`` where it is positive, ``alpha * x`` elsewhere, with a learned ``alpha`` for each feature.

    - shared_axes: the axes along which slopes are shared: [1, 2] for one slope per channel of images.

    >>> pb.layers.prelu(alpha_initializer="ones")(np.array([[-1.0, 2.0]], np.float32))
    Tensor([[-1., 2.]], dtype=float32)
    """

    alpha_initializer: InitializerLike = "zeros"
    alpha_regularizer: RegularizerLike | None = None
    alpha_constraint: ConstraintLike | None = None
    shared_axes: Sequence[int] | int | None = None
    supports_masking = True

    def build(self, shape: Shape) -> None:
        shared = self.shared_axes
        axes = [shared] if isinstance(shared, int) else [] if shared is None else list(shared)
        if any(not 1 <= axis <= len(shape) for axis in axes):
            raise ArgumentError(f"{self.name}: shared_axes must be from 1 to {len(shape)}, got {shared!r}.")
        self._shared = axes
        self.alpha = self.add_weight_by_arguments("alpha", self._find_shape(shape))

    def _find_shape(self, shape: Shape) -> Shape:
        return tuple(1 if i in self._shared else n for i, n in enumerate(shape, 1))

    def call(self, x: Value) -> Any:
        if self._find_shape(x.shape[1:]) != self.alpha.shape:
            raise ShapeError(f"there are slopes of shape {self.alpha.shape}, which would be broadcast.")
        return activations.prelu(x, self.alpha)


@dataclass(eq=False)
class Softmax(Layer):
    """Probabilities in proportion to ``exp(x)`` along ``axis``.

    - axis: the axis, or several, along which probabilities add up to 1.

    Called with ``mask``, an array of booleans, only elements that are True have a probability.

    >>> pb.layers.softmax()(np.array([[0.0, np.log(3.0)]])).round(3)
    array([[0.25, 0.75]])
    """

    axis: int | Sequence[int] = -1
    supports_masking = True

    def call(self, x: Value, mask: Mask = None) -> Any:
        if mask is not None:
            x = np.where(mask, x, -3e4 if x.dtype == np.float16 else -1e9)
        axes = tuple(self.axis) if isinstance(self.axis, list | tuple) else (self.axis,)
        if len(axes) == 1:
            y = activations.softmax(x, axes[0])
        else:
            e = np.exp(x - np.max(x, axis=axes, keepdims=True))
            y = e / np.sum(e, axis=axes, keepdims=True)
        return y if mask is None else y * mask.astype(x.dtype)  # zeros if all are masked


@dataclass(eq=False)
class ThresholdedRelu(Layer):
    """``x`` where it is larger than ``theta``, 0 elsewhere.

    - theta: the threshold.

    >>> pb.layers.thresholded_relu(1.0)(np.array([[0.5, 2.0]]))
    array([[0., 2.]])
    """

    theta: float = 1.0
    supports_masking = True
    argument_checks = ((check_number, "theta", 0),)

    def call(self, x: Value) -> Any:
        return np.where(x <= self.theta, 0.0, x)
