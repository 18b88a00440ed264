"""The interface of a pool of workers that the training loop uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pullback.train.loop.batches import Batches
from pullback.train.loop.run import Stepper

if TYPE_CHECKING:
    from pullback.train.loop.trainer import Trainer


class PooledSteps(Stepper, Batches, Protocol):
    """Steps that workers compute: their batches are plans of which rows of the shards to take."""

    def make_validation(self, data: Any, batch_size: int) -> Callable[[], dict[str, Any]] | None:
        """Return the function that measures on shards; None for other data, which this process reads itself."""


class TrainingPool(Protocol):
    """Workers that compute the gradients of parts of a batch: ``pb.scale.Pool``."""

    def begin_training(
        self, trainer: Trainer, shards: Any, batch_size: int, shuffle: bool, class_weight: Any
    ) -> PooledSteps:
        """Send the model to the workers; return the steps of its training on shards."""
