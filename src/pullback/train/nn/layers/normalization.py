"""Normalization layers: to mean 0 and variance 1, or to length 1, over the batch or over each example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.variable import Variable
from pullback.errors import ArgumentError
from pullback.numerics.axis_arguments import resolve_axes
from pullback.ops import normalization
from pullback.train.masks import Mask, expand_mask
from pullback.train.nn.constraints import ConstraintLike
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_number
from pullback.train.nn.regularizers import RegularizerLike, scale_to_length_1
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Shape, Value

__all__ = [
    "BatchNormalization", "GroupNormalization", "LayerNormalization", "RmsNormalization", "UnitNormalization",
]  # fmt: skip

MASK_EPSILON = 1e-7  # added to the number of elements that count, as in Keras


class ScaledLayer(Layer):
    """The base of layers that multiply by a learned ``gamma`` and add a learned ``beta``."""

    center: bool
    scale: bool

    def _add_scale_and_offset(self, shape: Shape) -> None:
        if self.scale:
            self.gamma = self.add_weight_by_arguments("gamma", shape)
        if self.center:
            self.beta = self.add_weight_by_arguments("beta", shape)


@dataclass(eq=False)
class BatchNormalization(ScaledLayer):
    """Normalizes each feature to mean 0 and variance 1 over the batch, then applies a learned scale and offset.

    In training, mean and variance are those of the batch, and their moving averages are updated; otherwise, and in a
    frozen layer always, the moving averages are used.  Masked steps do not count.

    - axis: the axis of the features.
    - momentum: the decay rate of the moving averages.
    - moving_mean_initializer, moving_variance_initializer: the initial values of the moving averages.

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
    beta_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    gamma_constraint: ConstraintLike | None = field(default=None, kw_only=True)

    supports_masking = True
    argument_checks = ((check_number, "momentum", 0, 1), (check_number, "epsilon", 0))

    def build(self, shape: Shape) -> None:
        (axis,) = resolve_axes(len(shape) + 1, self.axis, self.name)
        if not axis:
            raise ArgumentError(f"{self.name}: axis 0 is the batch, over which is averaged; take another.")
        size = (shape[axis - 1],)
        self._add_scale_and_offset(size)
        self.moving_mean = self.weight("moving_mean", size, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.weight("moving_variance", size, self.moving_variance_initializer, trainable=False)

    def mixes_examples(self, training: bool) -> bool:
        return training and self.trainable

    def call(self, x: Value, training: bool = False, mask: Mask = None) -> Any:
        (axis,) = resolve_axes(x.ndim, self.axis, self.name)
        rest = tuple(i for i in range(x.ndim) if i != axis)
        shape: Shape = tuple(n if i == axis else 1 for i, n in enumerate(x.shape))  # one number for each feature
        count: int = math.prod(x.shape[i] for i in rest)
        if training and self.trainable and count:
            mean, variance = _compute_moments(x, rest, mask)
            centred = x - mean
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


def _compute_moments(x: Value, axes: tuple[int, ...], mask: Mask) -> tuple[Any, Any]:
    """Return mean and variance along axes; where a mask is False, elements do not count."""
    if mask is None:
        mean = np.mean(x, axis=axes, keepdims=True)
        centred = x - mean
        return mean, np.mean(centred * centred, axis=axes, keepdims=True)
    weights = np.broadcast_to(expand_mask(mask, x.ndim), x.shape).astype(x.dtype)
    count = np.sum(weights, axis=axes, keepdims=True) + MASK_EPSILON
    mean = np.sum(x * weights, axis=axes, keepdims=True) / count
    centred = (x - mean) * weights
    return mean, np.sum(centred * centred, axis=axes, keepdims=True) / count


def _find_axes(name: str, shape: Shape, axis: int | Sequence[int]) -> tuple[int, ...]:
    """Return axes of a batch of examples of this shape, counted from the front; the batch is none of them."""
    axes = resolve_axes(len(shape) + 1, axis, name)
    if 0 in axes:
        raise ArgumentError(f"{name}: axis 0 is the batch; take axes of the examples.")
    return axes


@dataclass(eq=False)
class LayerNormalization(ScaledLayer):
    """Normalizes each example to mean 0 and variance 1 over ``axis``, then applies a learned scale and offset.

    - axis: the axis, or axes, of an example.

    >>> pb.layers.layer_normalization(epsilon=0.0)(np.array([[1.0, 3.0], [10.0, 30.0]]))
    Tensor([[-1., 1.], [-1., 1.]], dtype=float64)
    """

    axis: int | Sequence[int] = -1
    epsilon: float = 1e-3
    center: bool = True
    scale: bool = True
    beta_initializer: InitializerLike = "zeros"
    gamma_initializer: InitializerLike = "ones"
    beta_regularizer: RegularizerLike | None = None
    gamma_regularizer: RegularizerLike | None = None
    beta_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    gamma_constraint: ConstraintLike | None = field(default=None, kw_only=True)

    supports_masking = True
    argument_checks = ((check_number, "epsilon", 0),)

    def build(self, shape: Shape) -> None:
        self._axes = _find_axes(self.name, shape, self.axis)
        size = tuple(shape[i - 1] for i in self._axes)
        self._add_scale_and_offset(size)

    def call(self, x: Value) -> Any:
        shape = tuple(n if i in self._axes else 1 for i, n in enumerate(x.shape))
        gamma = np.reshape(self.gamma, shape) if self.scale else None
        beta = np.reshape(self.beta, shape) if self.center else None
        return normalization.layer_norm(x, beta, gamma, self._axes, self.epsilon)


@dataclass(eq=False)
class GroupNormalization(ScaledLayer):
    """Normalizes groups of the channels of each example, then applies a learned scale and offset.

    - groups: the number of groups; -1 for one of each channel.
    - axis: the axis of the channels.

    >>> pb.layers.group_normalization(2, epsilon=0.0)(np.array([[1.0, 3.0, 10.0, 30.0]]))
    Tensor([[-1., 1., -1., 1.]], dtype=float64)
    """

    groups: int = 32
    axis: int = -1
    epsilon: float = 1e-3
    center: bool = True
    scale: bool = True
    beta_initializer: InitializerLike = "zeros"
    gamma_initializer: InitializerLike = "ones"
    beta_regularizer: RegularizerLike | None = None
    gamma_regularizer: RegularizerLike | None = None
    beta_constraint: ConstraintLike | None = None
    gamma_constraint: ConstraintLike | None = None

    supports_masking = True
    argument_checks = ((check_number, "epsilon", 0),)

    def build(self, shape: Shape) -> None:
        (axis,) = resolve_axes(len(shape) + 1, self.axis, self.name)
        channels = shape[axis - 1]
        groups = channels if self.groups == -1 else self.groups
        if not axis or groups < 1 or channels % groups:
            raise ArgumentError(f"{self.name}: {channels} channels cannot be divided into {groups} groups.")
        self._add_scale_and_offset((channels,))

    def call(self, x: Value) -> Any:
        (axis,) = resolve_axes(x.ndim, self.axis, self.name)
        channels = x.shape[axis]
        groups = channels if self.groups == -1 else self.groups
        apart = np.reshape(x, (*x.shape[:axis], groups, channels // groups, *x.shape[axis + 1 :]))
        axes = tuple(i for i in range(1, apart.ndim) if i != axis)
        y = np.reshape(normalization.layer_norm(apart, None, None, axes, self.epsilon), x.shape)
        shape = tuple(n if i == axis else 1 for i, n in enumerate(x.shape))
        y = y * np.reshape(self.gamma, shape) if self.scale else y
        return y + np.reshape(self.beta, shape) if self.center else y


@dataclass(eq=False)
class RmsNormalization(Layer):
    """Divides each example by the root of the mean of its squares over ``axis``, then applies a learned scale.

    - axis: the axis, or axes, of an example.
    - epsilon: is added to the mean of squares.

    >>> pb.layers.rms_normalization(epsilon=0.0)(np.array([[3.0, 3.0]]))
    Tensor([[1., 1.]], dtype=float64)
    """

    axis: int | Sequence[int] = -1
    epsilon: float = 1e-6

    supports_masking = True
    argument_checks = ((check_number, "epsilon", 0),)

    def build(self, shape: Shape) -> None:
        self._axes = _find_axes(self.name, shape, self.axis)
        self.scale = self.weight("scale", tuple(shape[i - 1] for i in self._axes), "ones")

    def call(self, x: Value) -> Any:
        shape = tuple(n if i in self._axes else 1 for i, n in enumerate(x.shape))
        squares: Any = x * x
        mean = np.mean(squares, axis=self._axes, keepdims=True)
        return x / np.sqrt(mean + self.epsilon) * np.reshape(self.scale, shape)


@dataclass(eq=False)
class UnitNormalization(Layer):
    """Scales each example to length 1 along ``axis``.

    - axis: the axis, or axes, of an example.

    >>> pb.layers.unit_normalization()(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    axis: int | Sequence[int] = -1

    supports_masking = True

    def call(self, x: Value) -> Any:
        return scale_to_length_1(x, resolve_axes(x.ndim, self.axis, self.name))
