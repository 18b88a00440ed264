"""The interface of a model that the training loop uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from pullback.core.variable import Variable
from pullback.train.io.checkpoints import StoredModel
from pullback.train.loop.metrics.metric import Metric
from pullback.typing import Value


class TrainableModel(StoredModel, Protocol):
    """What a trainer needs of a model."""

    @property
    def max_inputs(self) -> float:
        """How many inputs it takes at most; may be infinite."""

    @property
    def input_names(self) -> list[str]:
        """The names of its inputs; empty if they are not known."""

    @property
    def output_names(self) -> list[str] | None:
        """The names of its outputs; None if they are not known before it is called."""

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that training changes."""

    def __call__(self, *inputs: Any, training: bool = False) -> Any:
        """Return the output, or a tuple of several, for a batch of inputs."""

    def list_metrics(self) -> list[Metric]:
        """Return the metrics that its layers have in attributes, and update in calls."""

    def call_with_masks(self, *inputs: Any, training: bool = False) -> tuple[Any, Sequence[Any]]:
        """Return what a call returns, and the mask of each output, None for one without; empty if none has one."""

    @property
    def metrics(self) -> list[Any]:
        """Its metrics; of a model with a ``train_step`` of its own, those that are reset when an epoch begins."""

    def find_own_loss(self) -> Callable[..., Any] | None:
        """Return the function that computes the loss of a batch, if the model has one of its own."""

    def runs_on_host(self) -> bool:
        """Return whether it has layers that cannot be compiled: their inputs may be text."""

    def split_host_layers(self) -> tuple[TrainableModel, TrainableModel] | None:
        """Return the model in two: up to the last layer that cannot be compiled, and the rest; None if all can be."""

    def check_inputs(self, *xs: Value) -> None:
        """Raise an error for values that a layer cannot take."""

    def penalties(self) -> Any:
        """Return the sum of the regularizers' terms; None if there are none."""

    def list_structure(self) -> list[object]:
        """Return all its layers and variables, each followed by whether it is trained."""

    def iterate_generators(self) -> Iterator[np.random.Generator]:
        """Iterate over the random generators of layers with a seed."""
