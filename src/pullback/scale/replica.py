"""A worker's copy of a model that is trained: the part of a step that one shard contributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.errors import VariableError
from pullback.ops import random
from pullback.scale.shards import count_rows
from pullback.train.loop.trainer import Trainer


@dataclass(frozen=True)
class ReplicaStep:
    """One step of training: the values of the model's variables, and which rows of the shards make its batch."""

    values: list[Any]
    number: int  # of the batch in its epoch
    count: int  # of the batches of an epoch
    rows: int  # of the whole batch
    order: tuple[int, int] | None  # a seed and the epoch, for a random order of rows; None for that of the data
    seed: int  # of what layers draw
    class_weight: Any = None


def take_rows(data: Any, rows: Any) -> Any:
    """Return rows of all arrays of a shard.

    >>> take_rows({"x": np.arange(4)}, slice(1, 3))
    {'x': array([1, 2])}
    """
    return tree.map_leaves(lambda a: np.asarray(a[rows]), data)


def find_range(rows: int, number: int, count: int) -> slice:
    """Return the rows that a shard gives to batch ``number`` of ``count``: all of them make the epoch.

    >>> [find_range(5, i, 2) for i in range(2)]
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return slice(rows * number // count, rows * (number + 1) // count)


class Replica:
    """A copy of a model, with the trainer that computes its gradients."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.trainer: Trainer = model.get_trainer()
        self.order: tuple[Any, Any] = None, None  # of which shard and epoch, and the rows

    def train(self, shard: int, data: Any, step: ReplicaStep) -> list[Any] | None:
        """Return the losses, statistics, gradients and states of a part of a batch; None for one without rows.

        They are such that the sums over all parts are those of the batch.  Layers draw from a generator of this step
        and shard, so that a step that is computed again is the same.
        """
        batch = self._get_batch(shard, data, step)
        if batch is None:
            return None
        share = count_rows(batch) / step.rows
        fixed = self._set_values(step)
        before = random.get_state()
        random.seed(np.random.default_rng([step.seed, shard]))
        for i, generator in enumerate(self.model.iterate_generators()):
            seeded = type(generator.bit_generator)(np.random.SeedSequence([step.seed, shard, i]))
            generator.bit_generator.state = seeded.state
        try:
            results = self.trainer.compute_part(batch, share, step.class_weight)
        finally:
            random.set_state(before)
        return [*results, *(_share_state(v, was, share) for v, was in fixed)]

    def evaluate(self, data: Any, step: ReplicaStep) -> list[Any]:
        """Return the number of rows of a shard, its losses times that, and the statistics of metrics."""
        self._set_values(step)
        return self.trainer.evaluate_part(data, step.rows)

    def explain_nan(self, shard: int, data: Any, step: ReplicaStep) -> str | None:
        """Return where a NaN or infinity came from; None if there is none in this part of the batch."""
        result = self.train(shard, data, step)
        if result is None or all(np.isfinite(x).all() for x in result):
            return None
        self._set_values(step)
        return str(self.trainer.explain_batch(self._get_batch(shard, data, step), step.class_weight))

    def _get_batch(self, shard: int, data: Any, step: ReplicaStep) -> Any:
        total = count_rows(data)
        rows: Any = find_range(total, step.number, step.count)
        if rows.start == rows.stop:
            return None
        if step.order is not None:
            key = shard, step.order
            if self.order[0] != key:
                self.order = key, np.random.default_rng([*step.order, shard]).permutation(total)
            rows = self.order[1][rows]
        return take_rows(data, rows)

    def _set_values(self, step: ReplicaStep) -> list[tuple[Any, Any]]:
        """Give the variables their values; return those that training does not change by gradients, with these."""
        trained = {id(v) for v in self.model.trainable_variables}
        for v, value in zip(self.model.variables, step.values, strict=True):
            v.assign(value)
        return [(v, value) for v, value in zip(self.model.variables, step.values, strict=True) if id(v) not in trained]


def _share_state(v: Any, before: Any, share: float) -> Any:
    """Return what a part of a batch adds to a state, such as a moving mean: its change times the share of the rows."""
    after = v.numpy()
    if np.array_equal(after, before, equal_nan=after.dtype.kind == "f"):
        return np.zeros((), after.dtype)
    if after.dtype.kind != "f":
        raise VariableError(f"{v.name}: a layer changes it in training, and states that are not floats have no mean.")
    return (after - before) * np.asarray(share, after.dtype)
