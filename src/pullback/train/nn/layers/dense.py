"""Dense layers and embeddings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core.tensor import Tensor, strip
from pullback.errors import ArgumentError, ShapeError
from pullback.ops import gathering
from pullback.train.masks import Mask
from pullback.train.nn.constraints import ConstraintLike
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.activations import ActivationLike, find_activation
from pullback.train.nn.layers.base import takes_output_shape
from pullback.train.nn.layers.checks import UnknownShape, check_counts, check_numbers_below
from pullback.train.nn.layers.lora import AdaptableLayer
from pullback.train.nn.regularizers import RegularizerLike
from pullback.typing import Shape, Value

__all__ = ["Dense", "EinsumDense", "Embedding", "ReversibleEmbedding"]


@dataclass(eq=False)
class Dense(AdaptableLayer):
    """``activation(x @ kernel + bias)``, along the last axis.

    - input_dim: another way to give ``input_shape=[input_dim]``.

    >>> layer = pb.layers.dense(2, activation="relu", kernel_initializer="ones")
    >>> layer(np.array([[1.0, 2.0], [-3.0, 1.0]], np.float32))
    Tensor([[3., 3.], [0., 0.]], dtype=float32)
    """

    units: int
    activation: ActivationLike = None
    use_bias: bool = True
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    kernel_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None
    kernel_constraint: ConstraintLike | None = None
    bias_constraint: ConstraintLike | None = None
    input_dim: int | None = None

    supports_masking = True

    def __post_init__(self) -> None:
        if self.input_dim is not None and self.input_shape is None:
            self.input_shape = [self.input_dim]
        super().__post_init__()
        check_counts(self, "units")
        self._activate = find_activation(self.activation, self.name)

    def build(self, shape: Shape) -> None:
        if not shape:
            raise ShapeError("there is no axis of features; layers.reshape([1]) makes one.")
        self.kernel = self.add_weight_by_arguments("kernel", (shape[-1], self.units))
        if self.use_bias:
            self.bias = self.add_weight_by_arguments("bias", (self.units,))
        self.build_lora()

    def call(self, x: Value) -> Tensor:
        kernel = self.kernel if self.lora_rank is None else self.adapt(self.kernel)
        y = x @ kernel.read()  # an op that reads a variable itself takes a microsecond longer
        result: Tensor = self._activate(y + self.bias.read() if self.use_bias else y)
        return result


@takes_output_shape
@dataclass(eq=False)
class EinsumDense(AdaptableLayer):
    """``activation(einsum(equation, x, kernel) + bias)``.

    - equation: of the input and the kernel, as "ab,bc->ac"; "..." stands for further axes.
    - output_shape: the shape of an output, without the batch; None for lengths that the input gives.
    - bias_axes: the output axes that the bias has, as "c"; None for no bias.

    >>> layer = pb.layers.einsum_dense("abc,cd->abd", output_shape=[None, 4], bias_axes="d")
    >>> layer(np.ones((2, 5, 3))).shape, layer.kernel.shape
    ((2, 5, 4), (3, 4))
    """

    equation: str
    output_shape: Any = None
    activation: ActivationLike = None
    bias_axes: str | None = None
    kernel_initializer: InitializerLike = "glorot_uniform"
    bias_initializer: InitializerLike = "zeros"
    kernel_regularizer: RegularizerLike | None = None
    bias_regularizer: RegularizerLike | None = None
    kernel_constraint: ConstraintLike | None = None
    bias_constraint: ConstraintLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._activate = find_activation(self.activation, self.name)
        parts = re.fullmatch(r"(\.\.\.)?(\w+)(\.\.\.)?,(\w+)->(\.\.\.)?(\w+)(\.\.\.)?", self.equation.replace(" ", ""))
        if parts is None:
            raise ArgumentError(f"{self.name}: equation must be like 'ab,bc->ac', got {self.equation!r}.")
        if not set(self.bias_axes or "") <= set(parts[6]):
            raise ArgumentError(
                f"{self.name}: bias_axes must be among the axes {parts[6]!r} of the output, got {self.bias_axes!r}."
            )

    def build(self, shape: Shape) -> None:
        left, right = self.equation.replace(" ", "").split("->")
        inside, kernel = left.split(",")
        lengths = _match_lengths(inside, (None, *shape))
        for axis, n in self._match_outputs(right).items():
            if lengths.get(axis) not in (None, n):
                raise ShapeError(f"output_shape says {n} for axis {axis!r} of {self.equation!r}, not {lengths[axis]}.")
            lengths[axis] = n
        if unknown := [axis for axis in kernel if lengths.get(axis) is None]:
            raise ShapeError(f"the length of axis {unknown[0]!r} of the kernel in {self.equation!r} is not known.")
        known = {axis: n for axis, n in lengths.items() if n is not None}
        self.kernel = self.add_weight_by_arguments("kernel", [known[axis] for axis in kernel])
        if self.bias_axes:
            letters = right.replace(".", "")
            first = min(letters.index(axis) for axis in self.bias_axes)
            size = [known[axis] if axis in self.bias_axes else 1 for axis in letters[first:]]
            self.bias = self.add_weight_by_arguments("bias", size)
        self.build_lora()

    def _match_outputs(self, right: str) -> dict[str, int]:
        output_shape: Any = self.wanted_shape  # type: ignore[attr-defined]
        listed = list(output_shape) if isinstance(output_shape, list | tuple) else [output_shape]
        letters = right.replace("...", "")
        if right.startswith("..."):
            pairs = list(zip(letters[::-1], listed[::-1], strict=False))
        elif output_shape is not None and len(listed) != len(letters) - 1:
            raise ShapeError(
                f"output_shape={output_shape!r} must have {len(letters) - 1} lengths for {self.equation!r}."
            )
        else:
            pairs = list(zip(letters, [None, *listed], strict=False))
        return {axis: n for axis, n in pairs if n is not None}

    def call(self, x: Value) -> Any:
        y = np.einsum(self.equation, x, self.adapt(self.kernel))
        return self._activate(y + self.bias if self.bias_axes else y)


def _match_lengths(axes: str, shape: UnknownShape) -> dict[str, int | None]:
    """Return the length of each axis that has a letter."""
    front, dots, back = axes.partition("...")
    found = dict(zip(front, shape, strict=False))
    return found | (dict(zip(back[::-1], shape[::-1], strict=False)) if dots else {})


@dataclass(eq=False)
class Embedding(AdaptableLayer):
    """Maps each integer from 0 to ``input_dim - 1`` to a row of a learned table.

    - input_dim: the number of rows.
    - output_dim: the length of a row.
    - mask_zero: whether 0 stands for padding; later layers then skip these steps.
    - input_length: another way to give ``input_shape=[input_length]``.

    >>> layer = pb.layers.embedding(3, 2, embeddings_initializer=pb.initializers.constant([[0, 1], [2, 3], [4, 5]]))
    >>> layer(np.array([[2, 0]]))
    Tensor([[[4., 5.], [0., 1.]]], dtype=float32)
    """

    input_dim: int
    output_dim: int
    embeddings_initializer: InitializerLike = "random_uniform"
    embeddings_regularizer: RegularizerLike | None = None
    embeddings_constraint: ConstraintLike | None = None
    mask_zero: bool = False
    input_length: int | Sequence[int | None] | None = None

    adapted = "embeddings"

    def __post_init__(self) -> None:
        if self.input_length is not None and self.input_shape is None:
            length = self.input_length
            self.input_shape = list(length) if isinstance(length, list | tuple) else [length]  # type: ignore[list-item]
        super().__post_init__()
        check_counts(self, "input_dim", "output_dim")

    def build(self, shape: Shape) -> None:
        self.embeddings = self.add_weight_by_arguments("embeddings", (self.input_dim, self.output_dim))
        self.build_lora()

    def check_inputs(self, *xs: Value) -> None:
        check_numbers_below(self, xs[0], self.input_dim)

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return np.not_equal(strip(inputs), 0) if self.mask_zero else None

    def call(self, x: Value) -> Tensor:
        self.check_inputs(x)
        places = strip(x)
        rows = places if places.dtype.kind in "iu" else places.astype(np.int32)
        found: Tensor = gathering.gather(self.embeddings, rows)
        return found if self.lora_rank is None else found + self.compute_update(gathering.gather(self.lora_a, rows))


@dataclass(eq=False)
class ReversibleEmbedding(Embedding):
    """An embedding that can be run backwards, ``layer(h, reverse=True)``: from vectors to a score of each row.

    - input_dim, output_dim: the number of rows and their length.
    - tie_weights: whether the scores are products with the same table; else with one of their own.
    - mask_zero: whether 0 stands for padding.
    - logit_soft_cap: scores are kept between minus and plus this number by a tanh.
    - reverse_dtype: the dtype in which scores are computed.

    >>> layer = pb.layers.reversible_embedding(5, 3)
    >>> h = layer(np.array([[2, 0]]))
    >>> layer(h, reverse=True).shape
    (1, 2, 5)
    """

    tie_weights: bool = True
    reverse_dtype: Any = None
    logit_soft_cap: float | None = None

    def build(self, shape: Shape) -> None:
        super().build(shape)
        if not self.tie_weights:
            self.reverse_embeddings = self.add_weight_by_arguments(
                "reverse_embeddings", (self.output_dim, self.input_dim), "embeddings"
            )

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return super().compute_mask(inputs, mask) if inputs.dtype.kind in "iu" else mask

    def call(self, x: Value, *, reverse: bool = False) -> Any:
        if not reverse:
            return super().call(x)
        table: Any = np.swapaxes(self.adapt(self.embeddings), 0, 1) if self.tie_weights else self.reverse_embeddings
        scores: Any = (x if self.reverse_dtype is None else x.astype(self.reverse_dtype)) @ table
        cap = self.logit_soft_cap
        return scores if cap is None else np.tanh(scores / cap) * cap
