"""Cells of recurrent layers: one step of a sequence; gates and weights are in Keras's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pullback.errors import ArgumentError, ShapeError
from pullback.ops import joining, random
from pullback.train.nn.constraints import ConstraintLike
from pullback.train.nn.initializers import InitializerLike, initializer
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.base import Layer, Symbolic
from pullback.train.nn.layers.checks import check_counts, check_shares
from pullback.train.nn.layers.noise import RandomLayer
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Array, Shape, Value

__all__ = ["GruCell", "LstmCell", "RecurrentCell", "SimpleRnnCell", "StackedRnnCells"]

NOTHING: Any = None
States = tuple[Any, ...]  # h, and c of an LSTM
Step = Callable[[Any, States], tuple[Any, States]]  # from an input and the states to the output and the next states


@dataclass(eq=False)
class RecurrentCell(RandomLayer):
    """The base of cells: ``cell(x, states)`` returns the output and the next states.

    A cell of your own has ``state_size``, a length or a list of them, and ``call(x, *states)``, which returns the
    output and a list of states; ``layers.rnn(cell)`` applies it to sequences.

    """

    several = True
    state_size = NOTHING  # of a subclass: the length of its state, or a list of them

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        listed = len(inputs) == 2 and isinstance(inputs[1], list | tuple)
        flat = (inputs[0], *inputs[1]) if listed else inputs
        out = super().__call__(*flat, **settings)
        if not listed or isinstance(out, Symbolic) or len(out) < 2 or isinstance(out[1], list | tuple):
            return out
        return out[0], list(out[1:])

    def get_state_shapes(self, shape: Shape) -> list[Shape]:
        """Return the shape of each state, without the batch, for an input of one step of this shape."""
        sizes = self.state_size if isinstance(self.state_size, list | tuple) else [self.state_size]
        if not sizes or any(n is None for n in sizes):
            raise ArgumentError(f"{self.name}: a cell needs state_size, a length or a list of them.")
        return [(n,) if isinstance(n, int) else tuple(n) for n in sizes]

    def run_one_step(self, x: Value, states: States, training: bool) -> tuple[Any, ...]:
        """Return the output and the next states of one step; it begins with zeros if no states are given."""
        shapes = [(x.shape[0], *shape) for shape in self.get_state_shapes(x.shape[1:])]
        if states and [s.shape for s in states] != shapes:
            got = " and ".join(str(s.shape) for s in states)
            raise ShapeError(f"expected {len(shapes)} state(s) of shape {shapes[0]}, got {got}.")
        states = states or tuple(np.zeros(shape, x.dtype) for shape in shapes)
        inputs, step = self.make_step(np.expand_dims(x, 0), training)
        out, states = step(inputs[0], states)
        return out, *states

    def make_step(self, x: Value, training: bool) -> tuple[Any, Step]:
        """Return what the steps take of a sequence, steps first, and the function of one step."""

        def step(x: Value, states: States) -> tuple[Any, States]:
            out = self(x, list(states), training=training)
            return out[0], tuple(out[1]) if isinstance(out[1], list | tuple) else tuple(out[1:])

        return x, step


@dataclass(eq=False)
class WeightedCell(RecurrentCell):
    """The base of cells with a kernel, a recurrent kernel and a bias: the arguments that all of them take."""

    kernel_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    recurrent_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    bias_regularizer: RegularizerLike | None = field(default=None, kw_only=True)
    kernel_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    recurrent_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    bias_constraint: ConstraintLike | None = field(default=None, kw_only=True)
    dropout: float = field(default=0.0, kw_only=True)
    recurrent_dropout: float = field(default=0.0, kw_only=True)
    implementation: int = field(default=2, kw_only=True)  # accepted, as other libraries have it
    argument_checks = ((check_shares, "dropout", "recurrent_dropout"),)

    def call(self, x: Value, *states: Value, training: bool = False) -> Any:
        return self.run_one_step(x, states, training)

    def drop_inputs(self, x: Value, training: bool) -> Any:
        """Return a sequence, steps first, with the same inputs of all its steps dropped in training."""
        drop = self._draw_mask(x.shape[1:], self.dropout, x.dtype) if training and self.dropout else None
        return x if drop is None else x * drop

    def draw_state_mask(self, shape: Shape, dtype: np.dtype[Any], training: bool) -> Any:
        """Return the dropout mask of the state, the same for all steps; None if nothing is dropped."""
        rate = self.recurrent_dropout
        return self._draw_mask(shape, rate, dtype) if training and rate else None

    def _draw_mask(self, shape: Shape, rate: float, dtype: np.dtype[Any]) -> Any:
        """Return zeros, and elsewhere numbers with which the mean is 1."""
        return random.dropout(np.ones(shape, dtype), rate, seed=self._generator)


@dataclass(eq=False)
class UnitCell(WeightedCell):
    """The base of cells with a number of units."""

    units: int
    activation: ActivationLike = "tanh"
    use_bias: bool = field(default=True, kw_only=True)
    kernel_initializer: InitializerLike = field(default="glorot_uniform", kw_only=True)
    recurrent_initializer: InitializerLike = field(default="orthogonal", kw_only=True)
    bias_initializer: InitializerLike = field(default="zeros", kw_only=True)

    rank: ClassVar[int | None] = 1
    gates = 1
    states = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "units")
        self._activate = find_activation(self.activation, self.name)

    def build(self, shape: Shape, *_: Shape) -> None:
        width = self.gates * self.units
        self.kernel = self.add_weight_by_arguments("kernel", (shape[-1], width))
        self.recurrent_kernel = self.add_weight_by_arguments("recurrent_kernel", (self.units, width), "recurrent")
        if self.use_bias:
            size, initial = self.get_bias_spec(width)
            self.bias = self.weight("bias", size, initial, penalty=self.bias_regularizer, limit=self.bias_constraint)

    def get_bias_spec(self, width: int) -> tuple[Shape, InitializerLike]:
        """Return the shape of the bias and its initializer."""
        return (width,), self.bias_initializer

    def get_state_shapes(self, shape: Shape) -> list[Shape]:
        return [(self.units,)] * self.states

    def make_step(self, x: Value, training: bool) -> tuple[Any, Step]:
        x = self.drop_inputs(x, training)
        drop = self.draw_state_mask((x.shape[1], self.units), x.dtype, training)
        return self.project_inputs(x), self.make_cell(drop)  # one product for all steps

    def project_inputs(self, x: Value) -> Any:
        """Return the inputs' part of the gates."""
        return x @ self.kernel + self.bias if self.use_bias else x @ self.kernel

    def make_cell(self, drop: Value | None) -> Step:
        """Return the function of one step; ``drop`` is multiplied with the state where that enters the gates."""
        raise NotImplementedError(f"{type(self).__name__} has no make_cell(drop).")


@dataclass(eq=False)
class SimpleRnnCell(UnitCell):
    """One step of ``simple_rnn``: ``h = activation(x @ kernel + h @ recurrent_kernel + bias)``.

    >>> h, states = pb.layers.simple_rnn_cell(3)(np.ones((2, 4)), [np.zeros((2, 3))])
    >>> h.shape, len(states)
    ((2, 3), 1)
    """

    def make_cell(self, drop: Value | None) -> Step:
        recurrent = self.recurrent_kernel

        def step(x: Value, states: States) -> tuple[Any, States]:
            (h,) = states
            h = self._activate(x + (h if drop is None else h * drop) @ recurrent)
            return h, (h,)

        return step


@dataclass(eq=False)
class GatedCell(UnitCell):
    """The base of cells with gates."""

    recurrent_activation: ActivationLike = "sigmoid"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._gate = find_activation(self.recurrent_activation, self.name)


@dataclass(eq=False)
class LstmCell(GatedCell):
    """One step of ``lstm``: gates decide what enters the cell state ``c``, what stays in it, and what is output.

    >>> h, (h, c) = pb.layers.lstm_cell(3)(np.ones((2, 4)), [np.zeros((2, 3)), np.zeros((2, 3))])
    >>> h.shape, c.shape
    ((2, 3), (2, 3))
    """

    unit_forget_bias: bool = True
    gates = 4
    states = 2

    def get_bias_spec(self, width: int) -> tuple[Shape, InitializerLike]:
        if not self.unit_forget_bias:
            return super().get_bias_spec(width)
        return (width,), set_forget_bias(self, self.bias_initializer, self.units)

    def make_cell(self, drop: Value | None) -> Step:
        recurrent, activate, gate = self.recurrent_kernel, self._activate, self._gate

        def step(x: Value, states: States) -> tuple[Any, States]:
            h, c = states
            h, c = update_lstm(x + (h if drop is None else h * drop) @ recurrent, c, activate, gate)
            return h, (h, c)

        return step


def update_lstm(gates: Value, c: Value, activate: Any, gate: Any) -> tuple[Any, Any]:
    """Return the next output and cell state of an LSTM, from its gates along the last axis before activation."""
    enter, stay, new, show = joining.split(gates, 4, -1)
    c = gate(stay) * c + gate(enter) * activate(new)
    return gate(show) * activate(c), c


def set_forget_bias(layer: Layer, initial: InitializerLike, units: int) -> Callable[[Shape, Any], Array]:
    """Return an initializer that sets the bias of the forget gate, the second of four, to 1."""
    begin = initializer(initial, f"{layer.name}: bias")

    def values(shape: Shape, dtype: np.dtype[Any]) -> Array:
        bias = np.array(begin(shape, dtype))
        bias[units : 2 * units] = 1
        return bias

    return values


@dataclass(eq=False)
class GruCell(GatedCell):
    """One step of ``gru``: an update gate and a reset gate.

    - reset_after: whether the reset gate is applied after the product with the recurrent kernel, as in Keras 3.

    >>> h, states = pb.layers.gru_cell(3)(np.ones((2, 4)), [np.zeros((2, 3))])
    >>> h.shape
    (2, 3)
    """

    reset_after: bool = False
    gates = 3

    def get_bias_spec(self, width: int) -> tuple[Shape, InitializerLike]:
        return ((2, width) if self.reset_after else (width,)), self.bias_initializer

    def project_inputs(self, x: Value) -> Any:
        return x @ self.kernel + self.bias[0] if self.use_bias and self.reset_after else super().project_inputs(x)

    def make_cell(self, drop: Value | None) -> Step:
        recurrent, activate, gate, units = self.recurrent_kernel, self._activate, self._gate, self.units
        later = self.bias[1] if self.use_bias and self.reset_after else None
        for_gates, for_new = recurrent[:, : 2 * units], recurrent[:, 2 * units :]

        def after(x: Value, states: States) -> tuple[Any, States]:
            (h,) = states
            seen = h if drop is None else h * drop
            memory = seen @ recurrent if later is None else seen @ recurrent + later
            stay, use, new = joining.split(x, 3, 1)
            stay_h, use_h, new_h = joining.split(memory, 3, 1)
            return update(h, gate(stay + stay_h), new + gate(use + use_h) * new_h)

        def before(x: Value, states: States) -> tuple[Any, States]:
            (h,) = states
            seen = h if drop is None else h * drop
            stay, use = joining.split(gate(x[:, : 2 * units] + seen @ for_gates), 2, 1)
            return update(h, stay, x[:, 2 * units :] + (use * seen) @ for_new)

        def update(h: Value, stay: Value, new: Value) -> tuple[Any, States]:
            new = activate(new)
            less: Any = h - new
            h = new + stay * less
            return h, (h,)

        return after if self.reset_after else before


@dataclass(eq=False)
class StackedRnnCells(RecurrentCell):
    """Several cells as one: each takes the output of the one before.

    - cells: the cells, the first one first.

    >>> cell = pb.layers.stacked_rnn_cells([pb.layers.gru_cell(3), pb.layers.lstm_cell(2)])
    >>> pb.layers.rnn(cell)(np.ones((2, 5, 4))).shape
    (2, 2)
    """

    cells: Sequence[Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.cells or not all(isinstance(cell, RecurrentCell) for cell in self.cells):
            raise ArgumentError(f"{self.name}: cells must be a list of cells, got {self.cells!r}.")

    def build(self, shape: Shape, *_: Shape) -> None:
        for cell in self.cells:
            cell.build_for([shape])
            shape = cell.get_state_shapes(shape)[0]

    def get_state_shapes(self, shape: Shape) -> list[Shape]:
        found: list[Shape] = []
        for cell in self.cells:
            own = cell.get_state_shapes(shape)
            found, shape = [*found, *own], own[0]
        return found

    def make_step(self, x: Value, training: bool) -> tuple[Any, Step]:
        first, *rest = self.cells
        projected, step = first.make_step(x, training)
        batch = x.shape[1]
        shapes, input_shape, steps = [first.get_state_shapes(x.shape[2:])], x.shape[2:], []
        for cell in rest:  # these project one step at a time, as their inputs are outputs of the step before
            input_shape = shapes[-1][0]
            shapes.append(cell.get_state_shapes(input_shape))
            _, alone = cell.make_step(np.zeros((1, batch, *input_shape), x.dtype), training)
            steps.append((cell, alone))
        counts = [len(own) for own in shapes]

        def run(x: Value, states: States) -> tuple[Any, States]:
            own, states = states[: counts[0]], states[counts[0] :]
            y, new = step(x, own)
            found = [*new]
            for (cell, alone), count in zip(steps, counts[1:], strict=True):
                own, states = states[:count], states[count:]
                inputs = cell.project_inputs(y) if isinstance(cell, UnitCell) else y
                y, new = alone(inputs, own)
                found += new
            return y, tuple(found)

        return projected, run

    def call(self, x: Value, *states: Value, training: bool = False) -> Any:
        return self.run_one_step(x, states, training)
