"""Data-parallel training: every shard gives its part of each batch, and workers compute the gradients of the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from pullback.errors import ArgumentError, DataError
from pullback.ops import random
from pullback.scale.replica import ReplicaStep, find_range
from pullback.scale.shards import Shards
from pullback.train.io.saving import StrPath
from pullback.train.loop.examples import Arrays
from pullback.train.loop.model import TrainableModel
from pullback.train.loop.results import RunningResults, StepResults
from pullback.train.loop.trainer import Trainer


class Workers(Protocol):
    """What training needs of a pool: sums over the shards of a task, and the answer of each shard."""

    def send_model(self, model: Any, shards: Shards) -> str:
        """Send a model, or none, with shards to the workers; return the key of the task."""

    def add_up(self, name: str, key: str, count: int, method: str, given: object) -> Sequence[Any]:
        """Return the sums over a number of shards of what a method of the workers gives."""

    def call_each(self, name: str, key: str, count: int, method: str, *args: object) -> list[Any]:
        """Return what a method of the workers gives for each shard."""


class BatchPlan:
    """A batch of training: which of the batches of an epoch it is, and how many rows it has."""

    def __init__(self, number: int, count: int, sizes: Sequence[int], order: tuple[int, int] | None) -> None:
        self.number, self.count, self.order = number, count, order
        ranges = [find_range(size, number, count) for size in sizes]
        self.rows: int = sum(r.stop - r.start for r in ranges)

    def __len__(self) -> int:
        return self.rows


class ShardSteps:
    """The steps of a training on shards: its batches, and what workers compute for each.

    Every shard gives to each of the batches of an epoch an equal part of its rows, to one row, in a random order if
    ``shuffle``; which rows these are does not depend on the workers.
    """

    def __init__(
        self, workers: Workers, trainer: Trainer, shards: Any, batch_size: int, shuffle: bool, class_weight: Any
    ) -> None:
        name = f"{trainer.model.name}.fit"
        if not isinstance(shards, Shards):
            raise ArgumentError(
                f"{name}: with pool=, expected pb.scale.Shards, as in Shards((x, y), parts=8), got "
                f"{type(shards).__name__}."
            )
        if type(batch_size) is not int or batch_size < 1:
            raise ArgumentError(f"{name}: batch_size must be 1 or more, got {batch_size!r}.")
        self.workers, self.trainer, self.shards = workers, trainer, shards
        self.class_weight, self.shuffle = class_weight, shuffle
        found = workers.call_each("fit", workers.send_model(None, shards), len(shards), "peek")
        self.sizes = [rows for rows, _ in found]
        if not sum(self.sizes):
            raise DataError(f"{name}: there are no examples: all {len(shards)} shards are empty.")
        trainer.prepare_parts(next(head for rows, head in found if rows))
        self.count: int = -(-sum(self.sizes) // batch_size)
        self.key = workers.send_model(trainer.model, shards)
        self.seed, self.epoch, self.position = _draw_seed(), 0, 0

    # ---- batches

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[BatchPlan]:
        while self.position < self.count:
            order = (self.seed, self.epoch) if self.shuffle else None
            self.position += 1
            yield BatchPlan(self.position - 1, self.count, self.sizes, order)
        self.epoch, self.position = self.epoch + 1, 0

    def state(self) -> dict[str, int]:
        """Return the position: the seed of the order, the epoch, and the number of batches that were read of it."""
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position, "count": self.count}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue at a position."""
        if state.get("count") != self.count:
            raise DataError(
                f"{self.model.name}.fit: the checkpoint was written in a training with {state.get('count')} batches "
                f"in an epoch; these shards make {self.count}. Give the same shards and batch_size."
            )
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]

    # ---- steps

    @property
    def model(self) -> TrainableModel:
        """The model that is trained."""
        return self.trainer.model

    def begin_results(self) -> RunningResults:
        """Return the results of an epoch that begins."""
        return self.trainer.begin_results()

    @property
    def metric_names(self) -> list[str]:
        """The names of all losses and metrics."""
        return self.trainer.metric_names

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Load a checkpoint; return the position in training and the callbacks' state."""
        return self.trainer.load_checkpoint(path)

    def make_train_step(
        self, size: int | None = None, epoch: int = 0
    ) -> Callable[[Arrays, Arrays, Arrays], StepResults]:
        """Return the function that makes one step."""
        return self._step

    def _step(self, xs: Arrays, ys: Arrays, ws: Arrays) -> StepResults:
        totals = self.workers.add_up("fit", self.key, len(self.shards), "train", self._make_step(xs[0], _draw_seed()))
        trained = {id(v) for v in self.model.trainable_variables}
        fixed = [v for v in self.model.variables if id(v) not in trained]
        at = len(totals) - len(fixed)
        results = self.trainer.apply_parts(totals[:at])
        for v, change in zip(fixed, totals[at:], strict=True):
            if np.ndim(change):  # a state that did not change has the number 0
                v.assign(v.numpy() + change)
        return results

    def _make_step(self, plan: BatchPlan, seed: int) -> ReplicaStep:
        values = [v.numpy() for v in self.model.variables]
        return ReplicaStep(values, plan.number, plan.count, plan.rows, plan.order, seed, self.class_weight)

    def explain_nan(self, xs: Arrays, ys: Arrays, ws: Arrays) -> object:
        """Return a report of where NaN or infinity came from in a step, with the name of the shard."""
        step = self._make_step(xs[0], _draw_seed())
        found = self.workers.call_each("fit", self.key, len(self.shards), "explain_nan", step)
        named = [f"shard {name}: {report}" for name, report in zip(self.shards.names, found, strict=True) if report]
        return named[0] if named else "computed again, it is finite: it came from random numbers of a layer."

    def make_validation(self, data: Any, batch_size: int) -> Callable[[], dict[str, Any]] | None:
        """Return the function that measures on shards; None for other data, which this process reads itself."""
        if not isinstance(data, Shards):
            return None
        key = self.workers.send_model(self.model, data)

        def evaluate() -> dict[str, Any]:
            step = ReplicaStep([v.numpy() for v in self.model.variables], 0, 1, batch_size, None, 0)
            return self.trainer.name_parts(self.workers.add_up("fit", key, len(data), "evaluate", step))

        return evaluate


def _draw_seed() -> int:
    """Return a seed from the generator of the process, whose state checkpoints have."""
    return int(random.uniform_int([], 0, 2**31 - 1).numpy())
