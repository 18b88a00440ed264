"""Products with a bias and an activation in one call, as TensorFlow.js has them under ``fused``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.composition import check_numbers, rename_errors
from pullback.core.suggestions import did_you_mean
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.numerics.axis_arguments import is_broadcastable

if TYPE_CHECKING:
    from pullback.typing import Lengths, Padding, TensorLike, Value

__all__ = ["conv2d", "depthwise_conv2d", "mat_mul"]

ACTIVATIONS = {
    "linear": None, "relu": "relu", "relu6": "relu6", "elu": "elu", "sigmoid": "sigmoid", "leakyrelu": "leaky_relu",
    "prelu": "prelu",
}  # fmt: skip


def _add_bias_and_activate(name: str, z: Value, bias: Any, activation: Any, weights: Any, alpha: Any) -> Any:
    """Add the bias and apply the activation, which is the method of Tensor of that name."""
    activation = "linear" if activation is None else activation
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ArgumentError(
            f"{name}: activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}."
            f"{did_you_mean(activation, ACTIVATIONS)}"
        )
    if activation == "prelu" and weights is None:
        raise ArgumentError(f"{name}: activation 'prelu' needs prelu_activation_weights.")
    if bias is not None:
        bias = check_numbers(name, "bias", bias)
        if not is_broadcastable(bias.shape, z.shape):
            raise ShapeError(f"{name}: bias of shape {bias.shape} must broadcast to the product, of shape {z.shape}.")
        z = np.add(z, bias)
    if activation == "linear":
        return z
    more = {"prelu": (weights,), "leakyrelu": (0.2 if alpha is None else alpha,)}.get(activation, ())
    return getattr(Tensor, str(ACTIVATIONS[activation]))(z, *more)


@rename_errors("fused.mat_mul")
def mat_mul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Any:
    """Return ``activation(mat_mul(a, b) + bias)``: linear, relu, relu6, elu, sigmoid, leakyrelu or prelu.

    a: matrices, along the last two axes.
    b: matrices, along the last two axes.
    transpose_a: whether ``a`` is transposed first.
    transpose_b: whether ``b`` is transposed first.
    bias: what is added to the result.
    activation: the name of a function of the result.
    prelu_activation_weights: the slopes of ``activation="prelu"``.
    leakyrelu_alpha: the slope of ``activation="leakyrelu"``.

    >>> pb.fused.mat_mul(np.eye(2), np.array([[1.0], [-5.0]]), bias=np.array([1.0]), activation="relu").ravel()
    array([2., 0.])
    """
    z = getattr(Tensor, "mat_mul")(a, b, bool(transpose_a), bool(transpose_b))  # noqa: B009
    return _add_bias_and_activate("fused.mat_mul", z, bias, activation, prelu_activation_weights, leakyrelu_alpha)


def _fuse(name: str, arguments: tuple[Any, ...], bias: Any, activation: Any, weights: Any, alpha: Any) -> Any:
    """Return a convolution with a bias and an activation, whose vectors have a number for each channel."""
    z, name = getattr(Tensor, name)(*arguments), f"fused.{name}"
    if arguments[4] == "NCHW":  # data_format
        bias, weights = _align_channels(name, "bias", bias), _align_channels(name, "prelu_activation_weights", weights)
    return _add_bias_and_activate(name, z, bias, activation, weights, alpha)


def _align_channels(name: str, argument: str, values: Any) -> Any:
    """Return values, one for each channel, shaped to broadcast along the channels."""
    if values is None:
        return None
    values = check_numbers(name, argument, values)
    return np.reshape(values, (-1, 1, 1)) if values.ndim == 1 else values


@rename_errors("fused.conv2d")
def conv2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Any:
    """Return ``activation(conv2d(x, filter) + bias)``.

    x: images.
    filter: the weights.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.
    dilations: the distance between the elements of a window, a number or one for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    bias: what is added to the result.
    activation: the name of a function of the result.
    prelu_activation_weights: the slopes of ``activation="prelu"``.
    leakyrelu_alpha: the slope of ``activation="leakyrelu"``.

    >>> pb.fused.conv2d(np.ones((1, 2, 2, 1)), -np.ones((2, 2, 1, 1)), bias=np.array([5.0]), activation="relu").ravel()
    array([1.])
    """
    convolution = x, filter, strides, pad, data_format, dilations, dim_rounding_mode
    return _fuse("conv2d", convolution, bias, activation, prelu_activation_weights, leakyrelu_alpha)


@rename_errors("fused.depthwise_conv2d")
def depthwise_conv2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Any:
    """Return ``activation(depthwise_conv2d(x, filter) + bias)``.

    x: a tensor, an array or a number.
    filter: the weights.
    strides: the distance between windows, a number or one for each axis.
    pad: ``"same"``, ``"valid"``, a number, or a pair [before, after] for each axis.
    data_format: ``"NHWC"``, channels last; ``"NCHW"`` is channels first.
    dilations: the distance between the elements of a window, a number or one for each axis.
    dim_rounding_mode: how to round the size of the result if ``pad`` is a number: ``"floor"``, ``"ceil"`` or
        ``"round"``.
    bias: what is added to the result.
    activation: the name of a function of the result.
    prelu_activation_weights: the slopes of ``activation="prelu"``.
    leakyrelu_alpha: the slope of ``activation="leakyrelu"``.

    >>> pb.fused.depthwise_conv2d(np.ones((1, 2, 2, 1)), np.ones((2, 2, 1, 1)), activation="relu6").ravel()
    array([4.])
    """
    convolution = x, filter, strides, pad, data_format, dilations, dim_rounding_mode
    return _fuse("depthwise_conv2d", convolution, bias, activation, prelu_activation_weights, leakyrelu_alpha)


install_answers("pb.fused")
