"""Recurrent layers, for sequences (batch, steps, features); gates and weights are in Keras's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.variable import writer
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import joining
from pullback.train.nn.initializers import InitializerLike, initializer
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.base import Layer, check_choice, check_counts
from pullback.train.nn.regularizers import RegularizerLike
from pullback.transforms.control_flow import scan
from pullback.typing import Array, Shape, Value

__all__ = ["Bidirectional", "Gru", "Lstm", "SimpleRnn", "TimeDistributed"]

States = tuple[Any, ...]  # h, and c of an LSTM
Cell = Callable[[Any, States], States]  # from the projected inputs of a step and the states to the next states


@dataclass(eq=False)
class RecurrentLayer(Layer):
    """The base of recurrent layers: a cell that is applied to one step after the other.

    They return the last ``h``, or all with ``return_sequences``; with ``return_state`` the last states too.
    """

    units: int
    activation: ActivationLike = "tanh"
    use_bias: bool = field(default=True, kw_only=True)
    kernel_initializer: InitializerLike = field(default="glorot_uniform", kw_only=True)
    recurrent_initializer: InitializerLike = field(default="orthogonal", kw_only=True)
    bias_initializer: InitializerLike = field(default="zeros", kw_only=True)
    kernel_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    recurrent_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    bias_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    return_sequences: bool = field(default=False, kw_only=True)
    return_state: bool = field(default=False, kw_only=True)
    go_backwards: bool = field(default=False, kw_only=True)

    rank = 2
    several = True  # the sequence and the initial states
    gates = 1
    states = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "units")
        self._activate = find_activation(self.activation, self.name)

    def __call__(
        self, *inputs: Any, initial_state: Value | Sequence[Value] | None = None, training: bool = False, **unknown: Any
    ) -> Any:
        begin = initial_state if isinstance(initial_state, list | tuple) else [initial_state]
        return super().__call__(*inputs, *(() if initial_state is None else begin), training=training, **unknown)

    def build(self, shape: Shape, *_: Shape) -> None:
        width = self.gates * self.units
        self.kernel = self.weight(
            "kernel", (shape[-1], width), self.kernel_initializer, penalty=self.kernel_regularizer
        )
        self.recurrent_kernel = self.weight(
            "recurrent_kernel", (self.units, width), self.recurrent_initializer, penalty=self.recurrent_regularizer
        )
        if self.use_bias:
            self.bias = self.weight("bias", *self.get_bias_spec(width), penalty=self.bias_regularizer)

    def get_bias_spec(self, width: int) -> tuple[Any, Any]:
        """Return the shape of the bias and its initializer."""
        return (width,), self.bias_initializer

    def call(self, x: Value, *states: Value) -> Any:
        if not x.shape[1]:
            raise ShapeError("there are no steps in the sequence.")
        states = self._make_initial_states(x, states)
        projections = self.project_inputs(np.swapaxes(x, 0, 1))  # one product for all steps
        outputs, states = (self._run_steps if writer() is None else self._scan_steps)(projections, states)
        y = outputs if self.return_sequences else states[0]
        return (y, *states) if self.return_state else y

    def _run_steps(self, projections: Value, states: States) -> tuple[Any, States]:
        """Apply the cell to one step after the other; return all ``h`` and the last states."""
        cell, outputs = self.cell(), []
        for at in range(len(projections))[:: -1 if self.go_backwards else 1]:
            states = cell(projections[at], states)
            outputs.append(states[0])
        return joining.stack(outputs, 1) if self.return_sequences else None, states

    def _scan_steps(self, projections: Any, states: States) -> tuple[Any, States]:
        """Return the same as a loop of the program that is being compiled."""
        cell = self.cell()
        dtype = np.result_type(projections.dtype, *(s.dtype for s in states))
        states = tuple(s if s.dtype == dtype else s.astype(dtype) for s in states)

        def step(states: States, x: Value) -> tuple[States, Any]:
            states = cell(x, states)
            return states, states[0]

        states, outputs = scan(step, states, projections[::-1] if self.go_backwards else projections)
        return np.swapaxes(outputs, 0, 1), states

    def _make_initial_states(self, x: Value, states: States) -> States:
        size = (x.shape[0], self.units)
        if not states:
            return (np.zeros(size, x.dtype),) * self.states
        if len(states) != self.states or any(s.shape != size for s in states):
            got = " and ".join(str(s.shape) for s in states)
            raise ShapeError(f"expected {self.states} initial state(s) of shape {size}, got {got}.")
        return states

    def project_inputs(self, x: Value) -> Any:
        """Return the inputs' part of the gates."""
        return x @ self.kernel + self.bias if self.use_bias else x @ self.kernel

    def cell(self) -> Cell:
        """Return the function that is applied at each step."""
        raise NotImplementedError(f"{type(self).__name__} has no cell().")


@dataclass(eq=False)
class SimpleRnn(RecurrentLayer):
    """``h = activation(x @ kernel + h @ recurrent_kernel + bias)``, step by step.

    >>> pb.layers.simple_rnn(3)(np.ones((2, 5, 4))).shape
    (2, 3)
    >>> pb.layers.simple_rnn(3, return_sequences=True)(np.ones((2, 5, 4))).shape
    (2, 5, 3)
    """

    def cell(self) -> Cell:
        recurrent = self.recurrent_kernel
        return lambda x, states: (self._activate(x + states[0] @ recurrent),)


@dataclass(eq=False)
class GatedLayer(RecurrentLayer):
    """The base of layers with gates."""

    recurrent_activation: ActivationLike = "sigmoid"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._gate = find_activation(self.recurrent_activation, self.name)


@dataclass(eq=False)
class Lstm(GatedLayer):
    """Long short-term memory: gates decide what enters the cell state ``c``, what stays in it, and what is output.

    ``unit_forget_bias`` sets the initial bias of the forget gate to 1.

    >>> layer = pb.layers.lstm(3, return_state=True)
    >>> [y.shape for y in layer(np.ones((2, 5, 4)))]
    [(2, 3), (2, 3), (2, 3)]
    >>> layer.kernel.shape
    (4, 12)
    """

    unit_forget_bias: bool = True
    gates = 4
    states = 2

    def get_bias_spec(self, width: int) -> tuple[Any, Any]:
        if not self.unit_forget_bias:
            return super().get_bias_spec(width)
        begin, units = initializer(self.bias_initializer, f"{self.name}: bias"), self.units

        def values(shape: Shape, dtype: np.dtype[Any]) -> Array:
            made = np.array(begin(shape, dtype))
            made[units : 2 * units] = 1
            return made

        return (width,), values

    def cell(self) -> Cell:
        recurrent, activate, gate = self.recurrent_kernel, self._activate, self._gate

        def step(x: Value, states: States) -> States:
            h, c = states
            enter, stay, new, show = joining.split(x + h @ recurrent, 4, 1)
            c = gate(stay) * c + gate(enter) * activate(new)
            return gate(show) * activate(c), c

        return step


@dataclass(eq=False)
class Gru(GatedLayer):
    """Gated recurrent unit: an update gate and a reset gate.

    ``reset_after`` applies the reset gate after the product with the recurrent kernel, as Keras 3 and cuDNN do;
    TensorFlow.js does not.

    >>> pb.layers.gru(3)(np.ones((2, 5, 4))).shape
    (2, 3)
    """

    reset_after: bool = False
    gates = 3

    def get_bias_spec(self, width: int) -> tuple[Any, Any]:
        return ((2, width) if self.reset_after else (width,)), self.bias_initializer

    def project_inputs(self, x: Value) -> Any:
        return x @ self.kernel + self.bias[0] if self.use_bias and self.reset_after else super().project_inputs(x)

    def cell(self) -> Cell:
        recurrent, activate, gate, units = self.recurrent_kernel, self._activate, self._gate, self.units
        later = self.bias[1] if self.use_bias and self.reset_after else None
        for_gates, for_new = recurrent[:, : 2 * units], recurrent[:, 2 * units :]

        def after(x: Value, states: States) -> States:
            (h,) = states
            memory = h @ recurrent if later is None else h @ recurrent + later
            stay, use, new = joining.split(x, 3, 1)
            stay_h, use_h, new_h = joining.split(memory, 3, 1)
            return update(h, gate(stay + stay_h), new + gate(use + use_h) * new_h)

        def before(x: Value, states: States) -> States:
            (h,) = states
            stay, use = joining.split(gate(x[:, : 2 * units] + h @ for_gates), 2, 1)
            return update(h, stay, x[:, 2 * units :] + (use * h) @ for_new)

        def update(h: Value, stay: Value, new: Value) -> States:
            new = activate(new)
            return (new + stay * (h - new),)

        return after if self.reset_after else before


@dataclass(eq=False)
class Bidirectional(Layer):
    """A recurrent layer and a copy that goes backwards; ``merge_mode`` is "concat", "sum", "mul" or "ave".

    >>> pb.layers.bidirectional(pb.layers.lstm(3))(np.ones((2, 5, 4))).shape
    (2, 6)
    """

    layer: Any
    merge_mode: str = "concat"
    rank = 2
    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.layer, RecurrentLayer):
            raise ArgumentError(f"{self.name}: expected a recurrent layer, got {type(self.layer).__name__}.")
        check_choice(self, "merge_mode", "concat", "sum", "mul", "ave")
        config = self.layer.get_config() | {"name": f"{self.layer.name}_backward"}
        self.backward = type(self.layer)(**config | {"go_backwards": not self.layer.go_backwards})

    def __call__(
        self, *inputs: Any, initial_state: Value | Sequence[Value] | None = None, training: bool = False, **unknown: Any
    ) -> Any:
        return super().__call__(*inputs, *(initial_state or ()), training=training, **unknown)

    def build(self, shape: Shape, *_: Shape) -> None:
        self.layer.build_for([shape])
        self.backward.build_for([shape])

    def call(self, x: Value, *states: Value, training: bool = False) -> Any:
        half = len(states) // 2
        forward = self.layer(x, *states[:half], training=training)
        backward = self.backward(x, *states[half:], training=training)
        if not self.layer.return_state:
            return self._merge(forward, backward)
        return (self._merge(forward[0], backward[0]), *forward[1:], *backward[1:])

    def _merge(self, x: Value, y: Value) -> Any:
        if self.layer.return_sequences:
            y = np.flip(y, 1)  # aligns the steps
        if self.merge_mode == "concat":
            return joining.concat([x, y], -1)
        return x * y if self.merge_mode == "mul" else x + y if self.merge_mode == "sum" else (x + y) / 2


@dataclass(eq=False)
class TimeDistributed(Layer):
    """Applies a layer to every step of sequences (batch, steps, …).

    >>> pb.layers.time_distributed(pb.layers.flatten())(np.ones((2, 5, 3, 4))).shape
    (2, 5, 12)
    """

    layer: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.layer, Layer):
            raise ArgumentError(f"{self.name}: expected a layer, got {type(self.layer).__name__}.")

    def build(self, shape: Shape) -> None:
        if not shape:
            raise ShapeError("there is no axis of steps.")
        self.layer.build_for([shape[1:]])

    def call(self, x: Value, training: bool = False) -> Any:
        batch, steps, *rest = x.shape
        y = self.layer(np.reshape(x, (batch * steps, *rest)), training=training)
        return np.reshape(y, (batch, steps, *y.shape[1:]))
