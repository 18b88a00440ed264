"""Layers that apply another layer: in both directions, to every step, or with a normalized kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.core.variable import Variable
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import joining
from pullback.train.dry_runs import is_dry_run
from pullback.train.masks import Mask, expand_mask, get_first_mask
from pullback.train.nn.initializers import TruncatedNormal
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.layers.checks import check_choice, check_counts
from pullback.train.nn.layers.recurrent import RecurrentLayer
from pullback.train.nn.regularizers import scale_to_length_1
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Shape, Value

__all__ = ["Bidirectional", "SpectralNormalization", "TimeDistributed", "Wrapper"]


@dataclass(eq=False)
class Wrapper(Layer):
    """The base of layers that apply another one; a wrapper of your own has ``call``.

    - layer: the layer that is applied.

    >>> pb.layers.wrapper(pb.layers.flatten())(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    layer: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.layer, Layer):
            raise ArgumentError(f"{self.name}: expected a layer, got {type(self.layer).__name__}.")

    def build(self, shape: Shape, *_: Shape) -> None:
        self.layer.build_for([shape])

    def call(self, x: Value) -> Any:
        return self.layer(x)


@dataclass(eq=False)
class Bidirectional(Layer):
    """A recurrent layer and a copy that goes backwards.

    - layer: the recurrent layer.
    - merge_mode: "concat", "sum", "mul" or "ave"; None returns both outputs.
    - backward_layer: the layer that goes backwards; by default a copy of ``layer``.

    >>> pb.layers.bidirectional(pb.layers.lstm(3))(np.ones((2, 5, 4))).shape
    (2, 6)
    """

    layer: Any
    merge_mode: str | None = "concat"
    backward_layer: Any = field(default=None, kw_only=True)

    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.layer, RecurrentLayer):
            raise ArgumentError(f"{self.name}: expected a recurrent layer, got {type(self.layer).__name__}.")
        if self.merge_mode is not None:
            check_choice(self, "merge_mode", "concat", "sum", "mul", "ave")
        self.backward = self.backward_layer or _make_backward(self.layer)
        if not isinstance(self.backward, RecurrentLayer) or self.backward.go_backwards == self.layer.go_backwards:
            raise ArgumentError(f"{self.name}: backward_layer must be a recurrent layer that goes the other way.")

    def __call__(self, *inputs: Any, initial_state: Value | Sequence[Value] | None = None, **settings: Any) -> Any:
        states: Any = () if initial_state is None else initial_state
        return super().__call__(*inputs, *states, **settings)

    def build(self, shape: Shape, *_: Shape) -> None:
        self.layer.build_for([shape])
        self.backward.build_for([shape])

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return get_first_mask(mask) if self.layer.return_sequences else None

    def call(self, x: Value, *states: Value, mask: Mask = None) -> Any:
        half = len(states) // 2
        steps_mask = None if mask is None else mask[0]
        forward = self.layer(x, *states[:half], mask=steps_mask)
        backward = self.backward(x, *states[half:], mask=steps_mask)
        if not self.layer.return_state:
            return self._merge(forward, backward, steps_mask)
        merged = self._merge(forward[0], backward[0], steps_mask)
        both = merged if self.merge_mode is None else (merged,)
        return (*both, *forward[1:], *backward[1:])

    def _merge(self, x: Value, y: Value, mask: Mask) -> Any:
        if self.layer.return_sequences:
            y = np.flip(y, 1)  # aligns the steps
            if mask is not None:  # outputs of masked steps are zero here, as in Keras
                weights = expand_mask(mask, x.ndim).astype(x.dtype)
                x, y = x * weights, y * weights
        if self.merge_mode is None:
            return x, y
        if self.merge_mode == "concat":
            return joining.concat([x, y], -1)
        return x * y if self.merge_mode == "mul" else x + y if self.merge_mode == "sum" else (x + y) / 2

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return config if self.backward_layer is not None else {k: x for k, x in config.items() if k != "backward_layer"}


def _make_backward(layer: RecurrentLayer) -> Any:
    """Return a copy of a recurrent layer, with variables of its own, that goes the other way."""
    config = layer.get_config() | {"name": f"{layer.name}_backward", "go_backwards": not layer.go_backwards}
    if "cell" in config:
        config["cell"] = _copy_cell(config["cell"])
    return type(layer)(**config)


def _copy_cell(cell: Any) -> Any:
    """Return a copy of a recurrent cell, or of a stack of them, with variables of its own."""
    config = cell.get_config() | {"name": f"{cell.name}_backward"}
    if "cells" in config:
        config["cells"] = [_copy_cell(one) for one in config["cells"]]
    return type(cell)(**config)


@dataclass(eq=False)
class TimeDistributed(Wrapper):
    """Applies a layer to every step of sequences (batch, steps, …).

    - layer: the layer.

    >>> pb.layers.time_distributed(pb.layers.flatten())(np.ones((2, 5, 3, 4))).shape
    (2, 5, 12)
    """

    supports_masking = True

    def build(self, shape: Shape, *_: Shape) -> None:
        if not shape:
            raise ShapeError("there is no axis of steps.")
        self.layer.build_for([shape[1:]])

    def call(self, x: Value, mask: Mask = None, training: bool = False) -> Any:
        batch, steps, *rest = x.shape
        if not steps:
            raise ShapeError("there are no steps in the sequence.")
        if mask is None and not any(part.mixes_examples(training) for part in self.layer.iterate_layers()):
            y = self.layer(np.reshape(x, (batch * steps, *rest)))  # all steps as one batch
            return np.reshape(y, (batch, steps, *y.shape[1:]))
        takes = mask is not None and mask.ndim > 1
        outputs = [self.layer(x[:, i], **({"mask": mask[:, i]} if takes else {})) for i in range(steps)]
        return joining.stack(outputs, 1)


@dataclass(eq=False)
class SpectralNormalization(Wrapper):
    """Divides the kernel of a layer by its largest singular value, which power iteration finds, in every training step.

    - layer: a layer with a kernel, or with embeddings.
    - power_iterations: how many iterations in each step.

    >>> layer = pb.layers.spectral_normalization(pb.layers.dense(3), power_iterations=50)
    >>> y = layer(np.ones((2, 4), np.float32), training=True)
    >>> float(np.linalg.norm(layer.layer.kernel.numpy(), 2).round(3))
    1.0
    """

    power_iterations: int = 1
    argument_checks = ((check_counts, "power_iterations"),)

    def build(self, shape: Shape, *_: Shape) -> None:
        super().build(shape)
        drawn = TruncatedNormal(stddev=0.02)
        self.vector_u = self.weight("vector_u", (1, self.find_kernel().shape[-1]), drawn, trainable=False)

    def named_variables(self, where: str = "") -> dict[str, Variable]:
        """Return every variable by its path in this layer; in Keras's order, the kernel and the vector first."""
        found = super().named_variables(where)
        first = {id(self.find_kernel()), id(self.vector_u)} if self.built else ()
        return dict(sorted(found.items(), key=lambda item: id(item[1]) not in first))

    def collect_variables(self, found: dict[int, Variable]) -> None:
        for v in self.named_variables().values():
            found.setdefault(id(v), v)

    def find_kernel(self) -> Variable:
        """Return the kernel or the embeddings of the layer."""
        kernel = getattr(self.layer, "kernel", None)
        kernel = kernel if kernel is not None else getattr(self.layer, "embeddings", None)
        if not isinstance(kernel, Variable):
            raise ArgumentError(f"{self.name}: layer '{self.layer.name}' has no kernel and no embeddings.")
        return kernel

    def call(self, x: Value, training: bool = False) -> Any:
        if training and self.trainable and not is_dry_run():
            kernel = self.find_kernel()
            matrix = np.reshape(stop_gradient(kernel), (-1, kernel.shape[-1]))
            u = stop_gradient(self.vector_u)
            v: Any = None
            for _ in range(self.power_iterations):
                v = scale_to_length_1(u @ matrix.T, None)
                u = scale_to_length_1(v @ matrix, None)
            sigma = np.reshape(v @ matrix @ u.T, ())
            self.vector_u.assign(np.astype(u, self.vector_u.dtype))
            kernel.assign(np.astype(np.reshape(matrix / np.where(sigma == 0, 1.0, sigma), kernel.shape), kernel.dtype))
        return self.layer(x)
