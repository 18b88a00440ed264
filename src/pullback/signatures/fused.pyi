"""The functions of ``pb.fused``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from pullback.core.tensor import Tensor
from pullback.typing import Array, ArrayLike, ArrayOrNumber, Lengths, Padding, TensorLike, TensorOrNested
from typing import Any, overload

@overload
def conv2d(
    x: TensorOrNested,
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
) -> Tensor:
    """Return ``activation(conv2d(x, filter) + bias)``."""

@overload
def conv2d(
    x: TensorLike,
    filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Tensor:
    """Return ``activation(conv2d(x, filter) + bias)``."""

@overload
def conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
    bias: ArrayOrNumber | None = None,
    activation: str = "linear",
    prelu_activation_weights: ArrayOrNumber | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Array: ...
@overload
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
) -> Tensor: ...
@overload
def depthwise_conv2d(
    x: TensorOrNested,
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
) -> Tensor:
    """Return ``activation(depthwise_conv2d(x, filter) + bias)``."""

@overload
def depthwise_conv2d(
    x: TensorLike,
    filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Tensor:
    """Return ``activation(depthwise_conv2d(x, filter) + bias)``."""

@overload
def depthwise_conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
    bias: ArrayOrNumber | None = None,
    activation: str = "linear",
    prelu_activation_weights: ArrayOrNumber | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Array: ...
@overload
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
) -> Tensor: ...
@overload
def mat_mul(
    a: TensorOrNested,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Tensor:
    """Return ``activation(mat_mul(a, b) + bias)``: linear, relu, relu6, elu, sigmoid, leakyrelu or prelu."""

@overload
def mat_mul(
    a: TensorLike,
    b: TensorOrNested,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Tensor:
    """Return ``activation(mat_mul(a, b) + bias)``: linear, relu, relu6, elu, sigmoid, leakyrelu or prelu."""

@overload
def mat_mul(
    a: ArrayLike,
    b: ArrayLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: ArrayOrNumber | None = None,
    activation: str = "linear",
    prelu_activation_weights: ArrayOrNumber | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Array: ...
@overload
def mat_mul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    bias: TensorLike | None = None,
    activation: str = "linear",
    prelu_activation_weights: TensorLike | None = None,
    leakyrelu_alpha: float = 0.2,
) -> Tensor: ...
