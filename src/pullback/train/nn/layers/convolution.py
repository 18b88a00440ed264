"""Convolution layers, for sequences, images and volumes: (batch, *space, channels)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.numerics.windows import plan_windows
from pullback.ops import joining
from pullback.ops.convolution import convolve, convolve_input, depthwise
from pullback.train.nn.constraints import ConstraintLike
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.checks import check_choice, check_counts
from pullback.train.nn.layers.spatial import Lengths, SpatialLayer, as_lengths
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Shape, Value

__all__ = [
    "Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dTranspose", "Conv3d", "Conv3dTranspose", "DepthwiseConv1d",
    "DepthwiseConv2d", "SeparableConv1d", "SeparableConv2d",
]  # fmt: skip


@dataclass(eq=False)
class BiasedLayer(SpatialLayer):
    """The base of layers with a bias for each channel."""

    bias_constraint: ConstraintLike | None = field(default=None, kw_only=True)


class WindowLayer(BiasedLayer):
    """The base of layers with filters; subclasses declare these fields in the order of their arguments."""

    kernel_size: Lengths
    strides: Lengths
    padding: str
    dilation_rate: Lengths
    activation: ActivationLike
    use_bias: bool

    paddings: tuple[str, ...] = ("valid", "same")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._size = as_lengths(self, "kernel_size", self.axes)
        self._strides = as_lengths(self, "strides", self.axes)
        self._dilation = as_lengths(self, "dilation_rate", self.axes)
        check_choice(self, "padding", *self.paddings)
        if max(self._strides) > 1 and max(self._dilation) > 1:
            raise ArgumentError(
                f"{self.name}: strides or dilation_rate must be 1, got {self.strides!r} and {self.dilation_rate!r}."
            )
        self._activate = find_activation(self.activation, self.name)

    def build_bias(self, channels: int) -> None:
        """Make the bias of each output channel, if the layer has one."""
        if self.use_bias:
            self.bias = self.add_weight_by_arguments("bias", (channels,))

    def apply_filters(self, x: Value) -> Any:
        """Return the filters' output for inputs with the channels last."""
        raise NotImplementedError(f"{type(self).__name__} has no apply_filters(x).")

    def plan(self, x: Value, filters: Value) -> Any:
        """Return the windows of filters over an input with the channels last, which is padded already if causal."""
        space, padding = x.shape[1:-1], "valid" if self.padding == "causal" else self.padding
        return plan_windows(self.name, space, filters.shape[:-2], self._strides, padding, self._dilation)

    def call(self, x: Value) -> Tensor:
        x = self.move_channels_last(x)
        if self.padding == "causal":
            x = np.pad(x, [(0, 0), (self._dilation[0] * (self._size[0] - 1), 0), (0, 0)])
        y = self.apply_filters(x)
        result: Tensor = self._activate(self.move_channels_back(y + self.bias if self.use_bias else y))
        return result


@dataclass(eq=False)
class FullConvolution(WindowLayer):
    """The base of convolutions in which every filter sees all channels, or those of its group."""

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
    kernel_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    groups: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "filters", "groups")
        if self.filters % self.groups:
            raise ArgumentError(f"{self.name}: filters={self.filters} is not a multiple of groups={self.groups}.")

    def build(self, shape: Shape) -> None:
        channels = self.count_channels(shape)
        if channels is not None and channels % self.groups:
            raise ArgumentError(f"{self.name}: {channels} channels are not a multiple of groups={self.groups}.")
        inside: Any = None if channels is None else channels // self.groups
        self.kernel = self.add_weight_by_arguments("kernel", (*self._size, inside, self.filters))
        self.build_bias(self.filters)

    def apply_filters(self, x: Value) -> Any:
        kernel = self.kernel.read()
        if self.groups == 1:
            return convolve(x, kernel, self.plan(x, kernel))
        parts = zip(joining.split(x, self.groups, -1), joining.split(kernel, self.groups, -1), strict=True)
        return joining.concat([convolve(a, b, self.plan(a, b)) for a, b in parts], -1)


@dataclass(eq=False)
class Conv1d(FullConvolution):
    """Convolution along sequences (batch, steps, channels).

    - padding: "valid", "same", or "causal": then no step sees a later one.

    >>> pb.layers.conv1d(8, kernel_size=3, padding="same")(np.ones((2, 10, 4))).shape
    (2, 10, 8)
    """

    rank = 2
    paddings = ("valid", "same", "causal")


@dataclass(eq=False)
class Conv2d(FullConvolution):
    """Convolution of images (batch, height, width, channels).

    >>> pb.layers.conv2d(8, kernel_size=3, strides=2, activation="relu")(np.ones((2, 9, 9, 3))).shape
    (2, 4, 4, 8)
    """


@dataclass(eq=False)
class Conv3d(FullConvolution):
    """Convolution of volumes (batch, depth, height, width, channels).

    >>> pb.layers.conv3d(4, kernel_size=2)(np.ones((1, 3, 4, 5, 2))).shape
    (1, 2, 3, 4, 4)
    """

    rank = 4


@dataclass(eq=False)
class TransposedConvolution(WindowLayer):
    """The base of transposed convolutions: each element adds a filter to the output."""

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
    kernel_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    dilation_rate: Lengths = field(default=1, kw_only=True)
    output_padding: Lengths | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "filters")
        self._more = None if self.output_padding is None else as_lengths(self, "output_padding", self.axes, least=0)
        if self._more is not None and any(n >= s for n, s in zip(self._more, self._strides, strict=True)):
            raise ArgumentError(f"{self.name}: output_padding must be less than strides, got {self.output_padding!r}.")

    def build(self, shape: Shape) -> None:
        self.kernel = self.add_weight_by_arguments("kernel", (*self._size, self.filters, self.count_channels(shape)))
        self.build_bias(self.filters)

    def apply_filters(self, x: Value) -> Any:
        kernel = self.kernel.read()
        spans = [(n - 1) * d + 1 for n, d in zip(self._size, self._dilation, strict=True)]
        same, pad = self.padding == "same", self.padding
        sizes = list(zip(x.shape[1:-1], self._strides, spans, strict=True))
        if self._more is None:
            space = tuple(n * s if same else n * s + max(span - s, 0) for n, s, span in sizes)
        else:
            half = [span // 2 if same else 0 for span in spans]
            pad = [(h, h) for h in half]  # type: ignore[assignment]
            space = tuple(
                (n - 1) * s + span - 2 * h + more for (n, s, span), h, more in zip(sizes, half, self._more, strict=True)
            )
        windows = plan_windows(self.name, space, self._size, self._strides, pad, self._dilation)
        return convolve_input(x, kernel, windows, (x.shape[0], *space, self.filters))


@dataclass(eq=False)
class Conv1dTranspose(TransposedConvolution):
    """Transposed convolution of sequences, which become longer with ``strides``.

    - strides: the distance between filters in the output.
    - padding: "valid" or "same".
    - output_padding: how many steps are added at the end of the output; less than ``strides``.

    >>> pb.layers.conv1d_transpose(4, kernel_size=3, strides=2, padding="same")(np.ones((2, 5, 3))).shape
    (2, 10, 4)
    """

    rank = 2


@dataclass(eq=False)
class Conv2dTranspose(TransposedConvolution):
    """Transposed convolution: each pixel adds a filter to the output, so images become larger with ``strides``.

    - strides: the distance between filters in the output.
    - padding: "valid" or "same".
    - output_padding: how many rows and columns are added at the end of the output; less than ``strides``.

    >>> pb.layers.conv2d_transpose(8, kernel_size=3, strides=2, padding="same")(np.ones((2, 4, 4, 3))).shape
    (2, 8, 8, 8)
    """


@dataclass(eq=False)
class Conv3dTranspose(TransposedConvolution):
    """Transposed convolution of volumes, which become larger with ``strides``.

    - strides: the distance between filters in the output.
    - padding: "valid" or "same".
    - output_padding: how many elements are added at the end of each axis; less than ``strides``.

    >>> pb.layers.conv3d_transpose(2, kernel_size=2, strides=2)(np.ones((1, 2, 2, 2, 1))).shape
    (1, 4, 4, 4, 2)
    """

    rank = 4


@dataclass(eq=False)
class DepthwiseConvolution(WindowLayer):
    """The base of depthwise convolutions: each channel has ``depth_multiplier`` filters of its own."""

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
    depthwise_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    argument_checks = ((check_counts, "depth_multiplier"),)

    def build(self, shape: Shape) -> None:
        channels = self.count_channels(shape)
        size = (*self._size, channels, self.depth_multiplier)
        self.depthwise_kernel = self.add_weight_by_arguments("depthwise_kernel", size, "depthwise")
        self.build_bias(channels * self.depth_multiplier)

    def apply_filters(self, x: Value) -> Any:
        kernel = self.depthwise_kernel.read()
        return depthwise(x, kernel, self.plan(x, kernel))


@dataclass(eq=False)
class DepthwiseConv1d(DepthwiseConvolution):
    """Depthwise convolution of sequences: each channel has ``depth_multiplier`` filters of its own.

    >>> pb.layers.depthwise_conv1d(kernel_size=3, depth_multiplier=2)(np.ones((2, 8, 3))).shape
    (2, 6, 6)
    """

    rank = 2


@dataclass(eq=False)
class DepthwiseConv2d(DepthwiseConvolution):
    """Depthwise convolution: each channel has ``depth_multiplier`` filters of its own.

    >>> pb.layers.depthwise_conv2d(kernel_size=3, depth_multiplier=2)(np.ones((2, 8, 8, 3))).shape
    (2, 6, 6, 6)
    """


@dataclass(eq=False)
class SeparableConvolution(WindowLayer):
    """The base of separable convolutions: a depthwise convolution, then a pointwise one to ``filters`` channels."""

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
    depthwise_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    pointwise_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    argument_checks = ((check_counts, "filters", "depth_multiplier"),)

    def build(self, shape: Shape) -> None:
        channels = self.count_channels(shape)
        deep = (*self._size, channels, self.depth_multiplier)
        wide = (*(1,) * self.axes, channels * self.depth_multiplier, self.filters)
        self.depthwise_kernel = self.add_weight_by_arguments("depthwise_kernel", deep, "depthwise")
        self.pointwise_kernel = self.add_weight_by_arguments("pointwise_kernel", wide, "pointwise")
        self.build_bias(self.filters)

    def apply_filters(self, x: Value) -> Any:
        deep, wide = self.depthwise_kernel.read(), self.pointwise_kernel.read()
        return depthwise(x, deep, self.plan(x, deep)) @ np.reshape(wide, wide.shape[-2:])


@dataclass(eq=False)
class SeparableConv1d(SeparableConvolution):
    """Separable convolution of sequences: a depthwise convolution, then a pointwise one to ``filters`` channels.

    - kernel_size, strides, padding, depth_multiplier, dilation_rate: of the depthwise convolution.

    >>> pb.layers.separable_conv1d(8, kernel_size=3)(np.ones((2, 8, 3))).shape
    (2, 6, 8)
    """

    rank = 2


@dataclass(eq=False)
class SeparableConv2d(SeparableConvolution):
    """Separable convolution: a depthwise convolution, then a pointwise one to ``filters`` channels.

    - kernel_size, strides, padding, depth_multiplier, dilation_rate: of the depthwise convolution.

    >>> layer = pb.layers.separable_conv2d(8, kernel_size=3)
    >>> layer(np.ones((2, 8, 8, 3))).shape
    (2, 6, 6, 8)
    >>> {name: v.shape for name, v in layer.named_variables().items()}
    {'depthwise_kernel': (3, 3, 3, 1), 'pointwise_kernel': (1, 1, 3, 8), 'bias': (8,)}
    """
