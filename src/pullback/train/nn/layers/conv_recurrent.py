"""Convolutional recurrent layers: an LSTM whose gates are convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.numerics.windows import plan_windows
from pullback.ops.convolution import convolve
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.cells import States, Step, WeightedCell, set_forget_bias, update_lstm
from pullback.train.nn.layers.checks import check_choice, check_counts, check_data_format
from pullback.train.nn.layers.recurrent import RecurrentLayer
from pullback.train.nn.layers.spatial import Lengths, as_lengths
from pullback.typing import Shape, Value

__all__ = ["ConvLstm1d", "ConvLstm2d", "ConvLstm2dCell", "ConvLstm3d"]


@dataclass(eq=False)
class ConvLstmCell(WeightedCell):
    """The base of convolutional LSTM cells, for any number of axes."""

    filters: int
    kernel_size: Lengths
    strides: Lengths = 1
    padding: str = "valid"
    data_format: str | None = None
    dilation_rate: Lengths = 1
    activation: ActivationLike = "tanh"
    recurrent_activation: ActivationLike = "sigmoid"
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    recurrent_initializer: InitializerLike = "orthogonal"
    bias_initializer: InitializerLike = "zeros"
    unit_forget_bias: bool = True

    axes = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "filters")
        check_choice(self, "padding", "valid", "same")
        check_data_format(self)
        self._first = self.data_format == "channels_first"
        self._size = as_lengths(self, "kernel_size", self.axes)
        self._strides = as_lengths(self, "strides", self.axes)
        self._dilation = as_lengths(self, "dilation_rate", self.axes)
        self._activate = find_activation(self.activation, self.name)
        self._gate = find_activation(self.recurrent_activation, self.name)

    def build(self, shape: Shape, *_: Shape) -> None:
        channels = shape[-self.axes - 1] if self._first else shape[-1]
        self.kernel = self.add_weight_by_arguments("kernel", (*self._size, channels, 4 * self.filters))
        self.recurrent_kernel = self.add_weight_by_arguments(
            "recurrent_kernel", (*self._size, self.filters, 4 * self.filters), "recurrent"
        )
        if self.use_bias:
            initial = self.bias_initializer
            if self.unit_forget_bias:
                initial = set_forget_bias(self, initial, self.filters)
            self.bias = self.weight(
                "bias", (4 * self.filters,), initial, penalty=self.bias_regularizer, limit=self.bias_constraint
            )

    def get_state_shapes(self, shape: Shape) -> list[Shape]:
        space = shape[1:] if self._first else shape[:-1]
        out = self._plan(space).out
        return [(self.filters, *out) if self._first else (*out, self.filters)] * 2

    def _plan(self, space: Shape) -> Any:
        return plan_windows(self.name, space, self._size, self._strides, self.padding, self._dilation)

    def make_step(self, x: Value, training: bool) -> tuple[Any, Step]:
        given: Any = x
        x = self.drop_inputs(np.moveaxis(given, 2, -1) if self._first else given, training)
        steps, batch, *space, channels = x.shape
        windows = self._plan(tuple(space))
        flat = np.reshape(x, (steps * batch, *space, channels))
        projected = convolve(flat, self.kernel.read(), windows)
        projected = projected + self.bias if self.use_bias else projected
        projected = np.reshape(projected, (steps, batch, *windows.out, 4 * self.filters))
        around = plan_windows(self.name, windows.out, self._size, 1, "same")
        drop = self.draw_state_mask((batch, *windows.out, self.filters), x.dtype, training)
        recurrent = self.recurrent_kernel.read()

        def step(x: Value, states: States) -> tuple[Any, States]:
            h, c = [np.moveaxis(s, 1, -1) for s in states] if self._first else states
            gates = x + convolve(h if drop is None else h * drop, recurrent, around)
            h, c = update_lstm(gates, c, self._activate, self._gate)
            if self._first:
                h, c = np.moveaxis(h, -1, 1), np.moveaxis(c, -1, 1)
            return h, (h, c)

        return projected, step


@dataclass(eq=False)
class ConvLstm2dCell(ConvLstmCell):
    """One step of ``conv_lstm2d``, for images (batch, height, width, channels).

    >>> h, (h, c) = pb.layers.conv_lstm2d_cell(3, 2)(np.ones((1, 4, 4, 2)), [np.zeros((1, 3, 3, 3))] * 2)
    >>> h.shape
    (1, 3, 3, 3)
    """


@dataclass(eq=False)
class ConvLstm1d(RecurrentLayer, ConvLstmCell):
    """An LSTM for sequences of sequences (batch, steps, length, channels), whose gates are convolutions.

    >>> pb.layers.conv_lstm1d(3, 2)(np.ones((1, 5, 4, 2))).shape
    (1, 3, 3)
    """

    rank = 3
    axes = 1


@dataclass(eq=False)
class ConvLstm2d(RecurrentLayer, ConvLstmCell):
    """An LSTM for sequences of images (batch, steps, height, width, channels), whose gates are convolutions.

    >>> pb.layers.conv_lstm2d(3, 2, return_sequences=True)(np.ones((1, 5, 4, 4, 2))).shape
    (1, 5, 3, 3, 3)
    """

    rank = 4


@dataclass(eq=False)
class ConvLstm3d(RecurrentLayer, ConvLstmCell):
    """An LSTM for sequences of volumes (batch, steps, depth, height, width, channels), whose gates are convolutions.

    >>> pb.layers.conv_lstm3d(2, 2)(np.ones((1, 2, 3, 3, 3, 1))).shape
    (1, 2, 2, 2, 2)
    """

    rank = 5
    axes = 3
