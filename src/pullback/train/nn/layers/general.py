"""Layers for any input: the identity, functions, masks, and a term of the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.errors import ArgumentError
from pullback.train.masks import Mask
from pullback.train.nn.layers.base import Layer, takes_output_shape
from pullback.train.nn.layers.checks import check_number
from pullback.train.nn.regularizers import L1L2
from pullback.typing import Value

__all__ = ["ActivityRegularization", "Identity", "Lambda", "Masking"]


@dataclass(eq=False)
class Identity(Layer):
    """The input itself.

    >>> pb.layers.identity()(np.ones((1, 2)))
    array([[1., 1.]])
    """

    supports_masking = True

    def call(self, x: Value) -> Any:
        return x


@takes_output_shape
@dataclass(eq=False)
class Lambda(Layer):
    """A function as a layer; of a function with variables, make a layer class of your own.

    - function: of the input, or of a list of inputs; of ``training`` too, if it takes that.
    - output_shape: accepted, as Keras has it: the shape is found by running the function.
    - mask: the mask of the output, or a function of inputs and mask.
    - arguments: further keyword arguments of the function.

    >>> pb.layers.lambda_(lambda x: x**2)(np.array([[3.0]]))
    array([[9.]])
    """

    function: Callable[..., Any]
    output_shape: Any = None
    mask: Any = None
    arguments: Mapping[str, Any] | None = None

    several = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise ArgumentError(f"{self.name}: expected a function, got {type(self.function).__name__}.")

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def call(self, *xs: Value) -> Any:
        return self.function(xs[0] if len(xs) == 1 else list(xs), **(self.arguments or {}))


@dataclass(eq=False)
class Masking(Layer):
    """Marks the steps in which all features are ``mask_value`` as padding: later layers skip them.

    - mask_value: the value of padding.

    >>> layer = pb.layers.masking(mask_value=-1.0)
    >>> layer(np.array([[[1.0, 2.0], [-1.0, -1.0]]]))
    array([[[ 1.,  2.],
            [-0., -0.]]])
    """

    mask_value: float = 0.0
    argument_checks = ((check_number, "mask_value"),)

    def compute_mask(self, inputs: Any, mask: Mask = None) -> Mask:
        return np.any(np.not_equal(inputs, self.mask_value), axis=-1)

    def call(self, x: Value) -> Any:
        mask = np.any(np.not_equal(x, self.mask_value), axis=-1, keepdims=True)
        return x * mask.astype(x.dtype)


@dataclass(eq=False)
class ActivityRegularization(Layer):
    """The input itself; its absolute values and squares are added to the loss.

    - l1: the factor of absolute values.
    - l2: the factor of squares.

    >>> layer = pb.layers.activity_regularization(l2=0.5)
    >>> y = layer(np.array([[1.0, 3.0]]))
    >>> layer.losses
    [np.float64(5.0)]
    """

    l1: float = 0.0
    l2: float = 0.0
    supports_masking = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._activity = L1L2(self.l1, self.l2)

    def call(self, x: Value) -> Any:
        return x
