"""Losses and metrics over the batches of an epoch or an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.train.loop.metrics.metric import add_sums
from pullback.train.loop.objectives import Objectives
from pullback.typing import Array

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
        self.has_states = any(bound.metric.keeps_state for bound in self.metrics)
        self._reset()

    def _reset(self) -> None:
        """Reset the metrics in Keras's style: their state is their own, and of one run at a time."""
        for bound in self.metrics if self.has_states else ():
            if bound.metric.keeps_state:
                bound.metric.reset_state()

    def add(self, results: StepResults, size: int) -> None:
        """Add the results of a batch of this size."""
        at = len(self.sums)
        for i in range(at):
            self.sums[i] += float(results[i]) * size
        for i, count in enumerate(self.objectives.sizes):
            if self.has_states and self.metrics[i].metric.keeps_state:
                self.metrics[i].metric.update_state(*[np.asarray(x) for x in results[at : at + count]])
            else:
                self.statistics[i] = add_sums(self.statistics[i], results[at : at + count])
            at += count
        self.count += size

    def compute(self) -> dict[str, Any]:
        """Return the results over all batches by name."""
        return self._name([total / self.count for total in self.sums], self.statistics)

    def compute_batch(self, results: StepResults) -> dict[str, Any]:
        """Return the results of one batch by name; a metric in Keras's style has those of all batches so far."""
        at = len(self.sums)
        losses, statistics = [float(loss) for loss in results[:at]], []
        for bound, count in zip(self.metrics, self.objectives.sizes, strict=True):
            if not bound.metric.keeps_state:
                statistics.append(add_sums([], results[at : at + count]))
            else:
                statistics.append([])
                if not self.count:
                    bound.metric.reset_state()
                    bound.metric.update_state(*[np.asarray(x) for x in results[at : at + count]])
            at += count
        return self._name(losses, statistics)

    def _name(self, losses: list[float], statistics: Sequence[Sequence[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = dict(zip(self.loss_names, losses, strict=True))
        for bound, sums in zip(self.metrics, statistics, strict=True):
            metric = bound.metric
            found[bound.name] = as_number(metric.result() if metric.keeps_state else metric.compute(*sums))
        return found

    # ---- checkpoints

    def state(self) -> dict[str, Any]:
        """Return all sums as numbers and lists."""
        statistics = [[x if isinstance(x, float) else x.tolist() for x in sums] for sums in self.statistics]
        states = [[v.numpy().tolist() for v in bound.metric.variables] for bound in self.metrics]
        found = {"names": self.names, "sums": list(self.sums), "statistics": statistics, "count": self.count}
        return found | ({"variables": states} if self.has_states else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` returned."""
        self.sums, self.count = list(state["sums"]), state["count"]
        stored = state.get("statistics") or [[] for _ in self.metrics]
        self.statistics = [[np.asarray(x) if isinstance(x, list) else x for x in sums] for sums in stored]
        for bound, values in zip(self.metrics, state.get("variables") or (), strict=False):
            for v, x in zip(bound.metric.variables, values, strict=True):
                v.assign(np.asarray(x, v.dtype))


def as_number(x: Any) -> Number:
    """Return a result as a float; one of several numbers as an array."""
    if isinstance(x, float):
        return x
    array = np.asarray(x)
    return float(array.reshape(())) if array.size == 1 else array
