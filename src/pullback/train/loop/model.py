"""The interface of a model that the training loop uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from pullback.core.variable import Variable
from pullback.train.io.checkpoints import StoredModel
from pullback.typing import Value

__all__ = ["TrainableModel"]


class HasTrainable(Protocol):
    """A layer, as far as freezing goes."""

    trainable: bool


class TrainableModel(StoredModel, Protocol):
    """What a trainer needs of a model."""

    @property
    def max_inputs(self) -> float:
        """How many inputs it takes at most; may be infinite."""

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""

    def __call__(self, *inputs: Any, training: bool = False) -> Any:
        """Return the output, or a tuple of several, for a batch of inputs."""

    def check_inputs(self, *xs: Value) -> None:
        """Raise an error for values that a layer cannot take."""

    def penalties(self) -> Any:
        """Return the sum of the regularizers' terms; None if there are none."""

    def every_layer(self) -> Iterator[HasTrainable]:
        """Iterate over the model itself and all its layers."""

    def generators(self) -> Iterator[np.random.Generator]:
        """Iterate over the random generators of layers with a seed."""
