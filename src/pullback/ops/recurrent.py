"""Recurrent cells, and the moving average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core.composition import check_numbers
from pullback.core.convert import as_number
from pullback.core.tape import as_tensor
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError
from pullback.numerics.axis_arguments import is_broadcastable

if TYPE_CHECKING:
    from pullback.typing import TensorLike

__all__ = ["CellState", "basic_lstm_cell", "moving_average", "multi_rnn_cell"]

Shape = tuple[int, ...]


class CellState(NamedTuple):
    """The state of an LSTM cell: its cell state ``c`` and its output ``h``; for several cells, a list of each.

    >>> pb.CellState(c=1.0, h=2.0).h
    2.0
    """

    c: Any
    h: Any


def _check_shapes(forget: Shape, kernel: Shape, bias: Shape, data: Shape, c: Shape, h: Shape) -> None:
    """Check the shapes of one cell and return the number of units."""

    def wrong(argument: str, expected: str, got: Shape) -> ShapeError:
        return ShapeError(f"basic_lstm_cell: {argument} must have shape {expected}, got {got}.")

    for argument, shape in (("lstm_kernel", kernel), ("data", data), ("c", c), ("h", h)):
        if len(shape) != 2:
            raise wrong(argument, "of rank 2", shape)
    batch, units = h
    if data[0] != batch:
        raise wrong("data", f"({batch}, inputs), the batch of h", data)
    if c != h:
        raise wrong("c", f"{h}, that of h", c)
    if kernel != (data[1] + units, 4 * units):
        raise wrong("lstm_kernel", f"({data[1] + units}, {4 * units}): inputs + units, 4 * units", kernel)
    if bias != (4 * units,):
        raise wrong("lstm_bias", f"({4 * units},): 4 * units", bias)
    if not is_broadcastable(forget, h):
        raise wrong("forget_bias", f"(), or one that broadcasts to {h}, that of h", forget)


def basic_lstm_cell(
    forget_bias: TensorLike,
    lstm_kernel: TensorLike,
    lstm_bias: TensorLike,
    data: TensorLike,
    c: TensorLike,
    h: TensorLike,
) -> CellState:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after.

    ``lstm_kernel`` has shape (inputs + units, 4 * units), in the order of gates of TensorFlow.js: input, candidate,
    forget, output.

    forget_bias: what is added to the forget gate.
    lstm_kernel: the weights of all gates.
    lstm_bias: the bias of all gates.
    data: the input of the step.
    c: the cell state.
    h: the output of the step before.

    >>> zeros = np.zeros((1, 2))
    >>> pb.basic_lstm_cell(1.0, np.ones((5, 8)), np.zeros(8), np.ones((1, 3)), zeros, zeros).c
    array([[0.94786341, 0.94786341]])
    """
    named = {
        "forget_bias": forget_bias, "lstm_kernel": lstm_kernel, "lstm_bias": lstm_bias, "data": data, "c": c, "h": h,
    }  # fmt: skip
    operands = [check_numbers("basic_lstm_cell", argument, a) for argument, a in named.items()]
    _check_shapes(*[a.shape for a in operands])
    forget, kernel, bias, x, memory, output = map(as_tensor, operands)
    units = output.shape[1]
    gates: Any = np.concatenate([x, output], axis=1)
    gates = gates @ kernel + bias
    into, candidate, keep, out = (gates[:, n * units : (n + 1) * units] for n in range(4))
    memory = into.sigmoid() * np.tanh(candidate) + memory * (forget + keep).sigmoid()
    output = np.tanh(memory) * out.sigmoid()
    if any(isinstance(a, Tensor) for a in operands):
        return CellState(memory, output)
    return CellState(memory.numpy(), output.numpy())


def multi_rnn_cell(
    lstm_cells: Sequence[object], data: TensorLike, c: Sequence[TensorLike], h: Sequence[TensorLike]
) -> CellState:
    """Perform one step of stacked cells: each takes the output of the one below as its data.

    lstm_cells: functions ``(data, c, h)`` that return the new state, one for each layer.
    data: the input of the step.
    c: the cell state.
    h: the output of the step before.

    >>> cell = lambda data, c, h: (c + data, h + data)
    >>> state = pb.multi_rnn_cell([cell, cell], 1.0, [0.0, 0.0], [1.0, 2.0])
    >>> state.c, state.h
    ([1.0, 2.0], [2.0, 4.0])
    """
    for argument, value in {"lstm_cells": lstm_cells, "c": c, "h": h}.items():
        if not isinstance(value, list | tuple):
            raise ArgumentError(f"multi_rnn_cell: {argument} must be a list, got {type(value).__name__}.")
    if not len(lstm_cells) == len(c) == len(h):
        raise ArgumentError(
            f"multi_rnn_cell: there must be one c and one h for each of the {len(lstm_cells)} lstm_cells, "
            f"got {len(c)} and {len(h)}."
        )
    memories, outputs = [], []
    for cell, memory, output in zip(lstm_cells, c, h, strict=True):
        state = cell(data, memory, output) if callable(cell) else None
        if not isinstance(state, list | tuple) or len(state) != 2:
            raise ArgumentError(
                "multi_rnn_cell: each of lstm_cells must be a function that returns the pair (c, h), "
                f"got {cell!r}" + (f", which returned {type(state).__name__}." if callable(cell) else ".")
            )
        memory, data = state
        memories.append(memory)
        outputs.append(data)
    return CellState(memories, outputs)


def moving_average(
    v: TensorLike, x: TensorLike, decay: TensorLike, step: TensorLike | None = None, zero_debias: bool = True
) -> Any:
    """Return the moving average ``decay * v + (1 - decay) * x``; nothing is assigned.

    With ``zero_debias`` an average that began at 0 is corrected for that, by the number ``step`` of the update.

    v: the average up to now.
    x: the new value.
    decay: the weight of the previous average.
    step: the number of this update, counted from 1, for ``zero_debias``.
    zero_debias: whether the average is corrected for having begun with 0.

    >>> pb.moving_average(np.array([1.0, 2.0]), np.array([3.0, 2.0]), 0.75, zero_debias=False)
    array([1.5, 2. ])
    >>> pb.moving_average(np.array([0.0]), np.array([3.0]), 0.75, step=1)
    array([3.])
    """
    v, x = check_numbers("moving_average", "v", v), check_numbers("moving_average", "x", x)
    if v.shape != x.shape:
        raise ShapeError(f"moving_average: v of shape {v.shape} and x of shape {x.shape} must have the same shape.")
    decay = decay if isinstance(decay, Tensor) else as_number("moving_average", "decay", decay)
    share = 1 - decay
    if zero_debias:
        if step is None:
            raise ArgumentError("moving_average: zero_debias needs step, the number of this update, counted from 1.")
        if not isinstance(step, Tensor):
            step = as_number("moving_average", "step", step, 1)
        if not isinstance(decay, Tensor) and decay == 1:
            raise ArgumentError("moving_average: with zero_debias decay must not be 1, which averages nothing.")
        share = share / (1 - decay**step)
    return v + (x - v) * share
