"""Convolution layers, for sequences (batch, steps, channels) and images (batch, height, width, channels)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.ops import convolution
from pullback.train.arguments import is_count
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.base import Layer, check_choice, check_counts
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Shape, Value

__all__ = ["Conv1d", "Conv2d", "Conv2dTranspose", "DepthwiseConv2d", "SeparableConv2d", "as_lengths"]


Lengths = int | Sequence[int]  # one number for all axes, or one for each


def as_lengths(layer: Layer, name: str, axes: int) -> tuple[int, ...]:
    """Return an argument that is one positive whole number, or one for each axis, as one for each axis."""
    given = getattr(layer, name)
    made = tuple(given) if isinstance(given, list | tuple) else (given,) * axes
    if len(made) != axes or not all(map(is_count, made)):
        each = f", or {axes} of them" if axes > 1 else ""
        raise ArgumentError(f"{layer.name}: {name} must be a positive whole number{each}, got {given!r}.")
    return tuple(int(n) for n in made)


class WindowLayer(Layer):
    """The base of layers with filters; subclasses declare these fields in the order of their arguments."""

    kernel_size: Lengths
    strides: Lengths
    padding: str
    dilation_rate: Lengths
    activation: ActivationLike
    use_bias: bool
    bias_initializer: InitializerLike
    bias_regularizer: RegularizerLike | None

    rank = 3
    paddings: tuple[str, ...] = ("valid", "same")

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = self.rank - 1
        self._size = as_lengths(self, "kernel_size", axes)
        self._strides = as_lengths(self, "strides", axes)
        self._dilation = as_lengths(self, "dilation_rate", axes)
        check_choice(self, "padding", *self.paddings)
        if max(self._strides) > 1 and max(self._dilation) > 1:
            raise ArgumentError(
                f"{self.name}: strides or dilation_rate must be 1, got {self.strides!r} and {self.dilation_rate!r}."
            )
        self._activate = find_activation(self.activation, self.name)

    def build_bias(self, channels: int) -> None:
        """Make the bias of each output channel, if the layer has one."""
        if self.use_bias:
            self.bias = self.weight("bias", (channels,), self.bias_initializer, penalty=self.bias_regularizer)

    def finish(self, y: Value) -> Any:
        """Return the filters' output with bias and activation."""
        return self._activate(y + self.bias if self.use_bias else y)


@dataclass(eq=False)
class FullConvolution(WindowLayer):
    """The base of convolutions in which every filter sees all channels."""

    filters: int
    kernel_size: Lengths
    strides: Lengths = 1
    padding: str = "valid"
    dilation_rate: Lengths = 1
    activation: ActivationLike = None
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    kernel_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "filters")

    def build(self, shape: Shape) -> None:
        size = (*self._size, shape[-1], self.filters)
        self.kernel = self.weight("kernel", size, self.kernel_initializer, penalty=self.kernel_regularizer)
        self.build_bias(self.filters)


@dataclass(eq=False)
class Conv1d(FullConvolution):
    """Convolution along sequences (batch, steps, channels).

    ``padding`` is "valid", "same", or "causal": then no step sees a later one.

    >>> pb.layers.conv1d(8, kernel_size=3, padding="same")(np.ones((2, 10, 4))).shape
    (2, 10, 8)
    """

    rank = 2
    paddings = ("valid", "same", "causal")

    def call(self, x: Value) -> Any:
        pad: Any = self.padding
        if pad == "causal":
            x, pad = np.pad(x, [(0, 0), (self._dilation[0] * (self._size[0] - 1), 0), (0, 0)]), "valid"
        y = convolution.conv1d(x, self.kernel, self._strides[0], pad, dilation=self._dilation[0])
        return self.finish(y)


@dataclass(eq=False)
class Conv2d(FullConvolution):
    """Convolution of images (batch, height, width, channels).

    >>> pb.layers.conv2d(8, kernel_size=3, strides=2, activation="relu")(np.ones((2, 9, 9, 3))).shape
    (2, 4, 4, 8)
    """

    def call(self, x: Value) -> Any:
        y = convolution.conv2d(x, self.kernel, self._strides, self.padding, dilations=self._dilation)
        return self.finish(y)


@dataclass(eq=False)
class Conv2dTranspose(WindowLayer):
    """Transposed convolution: each pixel adds a filter to the output, so images become larger with ``strides``.

    >>> pb.layers.conv2d_transpose(8, kernel_size=3, strides=2, padding="same")(np.ones((2, 4, 4, 3))).shape
    (2, 8, 8, 8)
    """

    filters: int
    kernel_size: Lengths
    strides: Lengths = 1
    padding: str = "valid"
    activation: ActivationLike = None
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    kernel_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None
    dilation_rate = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "filters")

    def build(self, shape: Shape) -> None:
        size = (*self._size, self.filters, shape[-1])
        self.kernel = self.weight("kernel", size, self.kernel_initializer, penalty=self.kernel_regularizer)
        self.build_bias(self.filters)

    def call(self, x: Value) -> Any:
        beyond = [
            0 if self.padding == "same" else max(n - s, 0) for n, s in zip(self._size, self._strides, strict=True)
        ]
        space = [n * s + more for n, s, more in zip(x.shape[1:3], self._strides, beyond, strict=True)]
        shape = [x.shape[0], *space, self.filters]
        return self.finish(convolution.conv2d_transpose(x, self.kernel, shape, self._strides, self.padding))


@dataclass(eq=False)
class DepthwiseConv2d(WindowLayer):
    """Depthwise convolution: each channel has ``depth_multiplier`` filters of its own.

    >>> pb.layers.depthwise_conv2d(kernel_size=3, depth_multiplier=2)(np.ones((2, 8, 8, 3))).shape
    (2, 6, 6, 6)
    """

    kernel_size: Lengths
    strides: Lengths = 1
    padding: str = "valid"
    depth_multiplier: int = 1
    dilation_rate: Lengths = 1
    activation: ActivationLike = None
    use_bias: bool = True
    depthwise_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    depthwise_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "depth_multiplier")

    def build(self, shape: Shape) -> None:
        size = (*self._size, shape[-1], self.depth_multiplier)
        self.depthwise_kernel = self.weight(
            "depthwise_kernel", size, self.depthwise_initializer, penalty=self.depthwise_regularizer
        )
        self.build_bias(shape[-1] * self.depth_multiplier)

    def call(self, x: Value) -> Any:
        y = convolution.depthwise_conv2d(
            x, self.depthwise_kernel, self._strides, self.padding, dilations=self._dilation
        )
        return self.finish(y)


@dataclass(eq=False)
class SeparableConv2d(WindowLayer):
    """Separable convolution: a depthwise convolution, then a pointwise one to ``filters`` channels.

    >>> layer = pb.layers.separable_conv2d(8, kernel_size=3)
    >>> layer(np.ones((2, 8, 8, 3))).shape
    (2, 6, 6, 8)
    >>> {name: v.shape for name, v in layer.named_variables().items()}
    {'depthwise_kernel': (3, 3, 3, 1), 'pointwise_kernel': (1, 1, 3, 8), 'bias': (8,)}
    """

    filters: int
    kernel_size: Lengths
    strides: Lengths = 1
    padding: str = "valid"
    depth_multiplier: int = 1
    dilation_rate: Lengths = 1
    activation: ActivationLike = None
    use_bias: bool = True
    depthwise_initializer: InitializerLike = "glorot_uniform"
    pointwise_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    depthwise_regularizer: RegularizerLike | None = None
    pointwise_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "filters", "depth_multiplier")

    def build(self, shape: Shape) -> None:
        deep, wide = (*self._size, shape[-1], self.depth_multiplier), (1, 1, shape[-1] * self.depth_multiplier)
        self.depthwise_kernel = self.weight(
            "depthwise_kernel", deep, self.depthwise_initializer, penalty=self.depthwise_regularizer
        )
        self.pointwise_kernel = self.weight(
            "pointwise_kernel", (*wide, self.filters), self.pointwise_initializer, penalty=self.pointwise_regularizer
        )
        self.build_bias(self.filters)

    def call(self, x: Value) -> Any:
        y = convolution.separable_conv2d(
            x, self.depthwise_kernel, self.pointwise_kernel, self._strides, self.padding, self._dilation
        )
        return self.finish(y)
