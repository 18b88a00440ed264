"""Recurrent layers, for sequences (batch, steps, features): a cell that is applied to one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pullback.core.variable import Variable, get_trace, watch_below
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import joining
from pullback.train.dry_runs import is_dry_run
from pullback.train.masks import Mask, expand_mask, get_first_mask
from pullback.train.nn.layers.base import Layer, make_unique_name
from pullback.train.nn.layers.cells import (
    GruCell,
    LstmCell,
    RecurrentCell,
    SimpleRnnCell,
    StackedRnnCells,
    States,
    Step,
)
from pullback.transforms.control_flow import scan
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Shape, TensorLike, Value

__all__ = ["Gru", "Lstm", "Rnn", "SimpleRnn"]


@dataclass(eq=False)
class RecurrentLayer(Layer):
    """The base of recurrent layers.

    They return the last output, or all with ``return_sequences``; with ``return_state`` the last states too.
    Steps that are masked do not change the states.
    """

    return_sequences: bool = field(default=False, kw_only=True)
    return_state: bool = field(default=False, kw_only=True)
    go_backwards: bool = field(default=False, kw_only=True)
    stateful: bool = field(default=False, kw_only=True)
    zero_output_for_mask: bool = field(default=False, kw_only=True)
    unroll: bool = field(default=False, kw_only=True)  # accepted, as other libraries have it
    input_dim: int | None = field(default=None, kw_only=True)
    input_length: int | None = field(default=None, kw_only=True)

    rank: ClassVar[int | None] = 2
    several = True  # the sequence and the initial states
    supports_masking = True

    def __post_init__(self) -> None:
        if self.input_dim is not None and self.input_shape is None:
            self.input_shape = [self.input_length, self.input_dim]
        super().__post_init__()
        self._states: list[Variable] = []

    def __call__(
        self,
        *inputs: Any,
        initial_state: Value | Sequence[Value] | None = None,
        training: bool | None = None,
        mask: Mask = None,
        **settings: Any,
    ) -> Any:
        begin = initial_state if isinstance(initial_state, list | tuple) else [initial_state]
        states = () if initial_state is None else begin
        return Layer.__call__(self, *inputs, *states, training=training, mask=mask, **settings)

    def get_cell(self) -> RecurrentCell:
        """Return the cell; most layers are the cell themselves."""
        assert isinstance(self, RecurrentCell)
        return self

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return get_first_mask(mask) if self.return_sequences else None

    def call(self, x: Value, *states: Value, mask: Mask = None, training: bool = False) -> Any:
        if not x.shape[1]:
            raise ShapeError("there are no steps in the sequence.")
        states = self._find_initial_states(x, states)
        steps_first = np.swapaxes(x, 0, 1)
        inputs, step = self.get_cell().make_step(steps_first, training)
        steps_mask = None if mask is None or mask[0] is None else np.swapaxes(mask[0], 0, 1)
        run = self._run_steps if get_trace() is None else self._scan_steps
        outputs, last, states = run(inputs, states, step, steps_mask)
        if self.stateful and not is_dry_run():
            for v, state in zip(self._states, states, strict=True):
                v.assign(np.astype(stop_gradient(state), v.dtype))
        y = outputs if self.return_sequences else last
        return (y, *states) if self.return_state else y

    def _run_steps(self, inputs: Value, states: States, step: Step, mask: Mask) -> tuple[Any, Any, States]:
        """Apply the cell to one step after the other; return all outputs, the last one, and the last states."""
        outputs: list[Any] = []
        y: Any = None
        for at in range(len(inputs))[:: -1 if self.go_backwards else 1]:
            new, after = step(inputs[at], states)
            if mask is None:
                y, states = new, after
            else:
                y, states = self._choose(mask[at], new, np.zeros_like(new) if y is None else y, after, states)
            outputs.append(y)
        return joining.stack(outputs, 1) if self.return_sequences else None, y, states

    def _choose(self, mask: Value, new: Value, before: Value, after: States, states: States) -> tuple[Any, States]:
        """Return output and states after a step: where it is masked, those before it."""

        def choose(x: Value, y: Value) -> Any:
            return np.where(expand_mask(mask, x.ndim), x, y)

        y = choose(new, np.zeros_like(new) if self.zero_output_for_mask else before)
        return y, tuple(choose(x, s) for x, s in zip(after, states, strict=True))

    def _scan_steps(self, inputs: Any, states: States, step: Step, mask: Mask) -> tuple[Any, Any, States]:
        """Return the same as a loop of the program that is being compiled."""
        dtype = np.result_type(inputs.dtype, *(s.dtype for s in states))
        states = tuple(s if s.dtype == dtype else s.astype(dtype) for s in states)
        if mask is None:

            def advance(states: States, x: Value) -> tuple[States, Any]:
                y, states = step(x, states)
                return states, y

            states, outputs = scan(advance, states, inputs[::-1] if self.go_backwards else inputs)
        else:

            def advance_masked(carry: Any, x_and_mask: Any) -> tuple[Any, Any]:
                (before, states), (x, is_data) = carry, x_and_mask
                new, after = step(x, states)
                y, states = self._choose(is_data, new, before, after, states)
                return (y, states), y

            first, _ = step(inputs[0], states)
            turn = slice(None, None, -1 if self.go_backwards else 1)
            (_, states), outputs = scan(advance_masked, (np.zeros_like(first), states), (inputs[turn], mask[turn]))
        return np.swapaxes(outputs, 0, 1), outputs[len(inputs) - 1], states

    def _find_initial_states(self, x: Value, states: States) -> States:
        """Return the states before the first step: those given, those kept from the call before, or zeros."""
        shapes = [(x.shape[0], *shape) for shape in self.get_cell().get_state_shapes(x.shape[2:])]
        if states:
            if len(states) != len(shapes) or any(s.shape != size for s, size in zip(states, shapes, strict=True)):
                got = " and ".join(str(s.shape) for s in states)
                raise ShapeError(f"expected {len(shapes)} initial state(s) of shape {shapes[0]}, got {got}.")
            if self.stateful and not is_dry_run():
                self._make_states(shapes, x.dtype)
            return states
        if self.stateful and not is_dry_run():
            self._make_states(shapes, x.dtype)
            return tuple(stop_gradient(v) for v in self._states)
        return tuple(np.zeros(shape, x.dtype) for shape in shapes)

    def _make_states(self, shapes: list[Shape], dtype: np.dtype[Any]) -> None:
        """Make the variables that keep the states between calls, for the batch of the first call."""
        if not self._states:
            with watch_below(-1):
                self._states = [
                    Variable(np.zeros(shape, dtype), False, make_unique_name(f"{self.name}/state")) for shape in shapes
                ]
        elif [v.shape for v in self._states] != shapes:
            raise ShapeError(
                f"a stateful layer takes batches of one size: it keeps states of shape {self._states[0].shape}, and "
                f"needs {shapes[0]}. Make a new layer for another batch size."
            )

    def reset_states(self, states: Sequence[TensorLike] | None = None) -> None:
        """Set the states that are kept between calls to zero, or to these.

        - states: the new states, one array for each.
        """
        for i, v in enumerate(self._states):
            v.assign(np.zeros(v.shape, v.dtype) if states is None else np.asarray(states[i], v.dtype))


@dataclass(eq=False)
class Rnn(RecurrentLayer):
    """A cell, or a list of cells that are stacked, applied to sequences.

    - cell: one of ``simple_rnn_cell``, ``gru_cell``, ``lstm_cell``, ``stacked_rnn_cells``, one of your own, or a list.

    >>> layer = pb.layers.rnn([pb.layers.lstm_cell(3), pb.layers.gru_cell(2)], return_sequences=True)
    >>> layer(np.ones((2, 5, 4))).shape
    (2, 5, 2)
    """

    cell: Any

    rank = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.cell, list | tuple):
            self.cell = StackedRnnCells(self.cell)
        if not isinstance(self.cell, RecurrentCell):
            raise ArgumentError(
                f"{self.name}: expected a cell, as layers.lstm_cell(3), or a list of them, got "
                f"{type(self.cell).__name__}. A cell of your own is a subclass of layers.RecurrentCell."
            )

    def get_cell(self) -> RecurrentCell:
        cell: RecurrentCell = self.cell
        return cell

    def build(self, shape: Shape, *_: Shape) -> None:
        if len(shape) < 2:
            raise ShapeError("expected sequences: (batch, steps, features).")
        self.cell.build_for([shape[1:]])


@dataclass(eq=False)
class SimpleRnn(RecurrentLayer, SimpleRnnCell):
    """``h = activation(x @ kernel + h @ recurrent_kernel + bias)``, step by step.

    >>> pb.layers.simple_rnn(3)(np.ones((2, 5, 4))).shape
    (2, 3)
    >>> pb.layers.simple_rnn(3, return_sequences=True)(np.ones((2, 5, 4))).shape
    (2, 5, 3)
    """


@dataclass(eq=False)
class Lstm(RecurrentLayer, LstmCell):
    """Long short-term memory: gates decide what enters the cell state ``c``, what stays in it, and what is output.

    >>> layer = pb.layers.lstm(3, return_state=True)
    >>> [y.shape for y in layer(np.ones((2, 5, 4)))]
    [(2, 3), (2, 3), (2, 3)]
    >>> layer.kernel.shape
    (4, 12)
    """


@dataclass(eq=False)
class Gru(RecurrentLayer, GruCell):
    """Gated recurrent unit: an update gate and a reset gate.

    ``reset_after`` applies the reset gate after the product with the recurrent kernel, as Keras 3 and cuDNN do;
    TensorFlow.js does not.

    - reset_after: where the reset gate is applied.

    >>> pb.layers.gru(3)(np.ones((2, 5, 4))).shape
    (2, 3)
    """
