"""Losses and metrics over the batches of an epoch or an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.train.loop.metrics.metric import add_sums
from pullback.train.loop.objectives import Objectives
from pullback.typing import Array

__all__ = ["Number", "RunningResults", "StepResults"]

Number: TypeAlias = "float | Array"  # a metric by class is an array
StepResults: TypeAlias = "Sequence[Any]"  # losses, then the statistics of all metrics; flat, which is quick to call


class RunningResults:
    """Losses and metrics over many batches: means weighted by the sizes of the batches, metrics exact; in float64."""

    def __init__(self, objectives: Objectives) -> None:
        self.objectives = objectives
        self.names, self.loss_names = objectives.names, ["loss", *objectives.loss_names]
        self.metrics = objectives.metrics
        self.sums = [0.0] * len(self.loss_names)
        self.statistics: list[list[Any]] = [[] for _ in self.metrics]
        self.count = 0

    def add(self, results: StepResults, size: int) -> None:
        """Add the results of a batch of this size."""
        at = len(self.sums)
        for i in range(at):
            self.sums[i] += float(results[i]) * size
        for i, count in enumerate(self.objectives.sizes):
            self.statistics[i] = add_sums(self.statistics[i], results[at : at + count])
            at += count
        self.count += size

    def compute(self) -> dict[str, Any]:
        """Return the results over all batches by name."""
        return self._name([total / self.count for total in self.sums], self.statistics)

    def compute_batch(self, results: StepResults) -> dict[str, Any]:
        """Return the results of one batch by name."""
        at = len(self.sums)
        losses, statistics = [float(loss) for loss in results[:at]], []
        for count in self.objectives.sizes:
            statistics.append(add_sums([], results[at : at + count]))
            at += count
        return self._name(losses, statistics)

    def _name(self, losses: list[float], statistics: Sequence[Sequence[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = dict(zip(self.loss_names, losses, strict=True))
        for bound, sums in zip(self.metrics, statistics, strict=True):
            found[bound.name] = _as_number(bound.metric.compute(*sums))
        return found

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        """Return all sums as numbers and lists."""
        statistics = [[x if isinstance(x, float) else x.tolist() for x in sums] for sums in self.statistics]
        return {"names": self.names, "sums": list(self.sums), "statistics": statistics, "count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` returned."""
        self.sums, self.count = list(state["sums"]), state["count"]
        stored = state.get("statistics") or [[] for _ in self.metrics]
        self.statistics = [[np.asarray(x) if isinstance(x, list) else x for x in sums] for sums in stored]


def _as_number(x: Any) -> Number:
    """Return a result as a float; one of several numbers as an array."""
    if isinstance(x, float):
        return x
    return float(np.reshape(x, ())) if np.size(x) == 1 else np.asarray(x)
