"""Steps that a model computes by methods of its own, as in Keras: ``train_step(data)`` and ``test_step(data)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.compiler.api import compile as compiled
from pullback.core import tree
from pullback.core.convert import as_array
from pullback.core.tape import constant
from pullback.diagnostics.nans import debug_nans
from pullback.errors import ArgumentError, DataError, NanError
from pullback.train.io.saving import StrPath
from pullback.train.loop.examples import Arrays, Examples
from pullback.train.loop.metrics.metric import Metric, PendingResult, collect_updates
from pullback.train.loop.results import StepResults, as_number
from pullback.train.optim.trees import rebuild_tree
from pullback.typing import Array

if TYPE_CHECKING:
    from pullback.train.loop.trainer import Trainer


def pack_data(x: Any, y: Any = None, weight: Any = None) -> Any:
    """Return arrays as a step takes them: the inputs alone, with targets, or with targets and weights.

    >>> pack_data(1), pack_data([1, 2]), pack_data(1, 2), pack_data(1, 2, 3)
    (1, ([1, 2],), (1, 2), (1, 2, 3))
    """
    if weight is not None:
        return x, y, weight
    if y is not None:
        return x, y
    return (x,) if isinstance(x, list | tuple) else x


class OwnResults:
    """What the latest step returned by name: metrics in it are over all batches since the epoch began."""

    def __init__(self, metrics: list[Any]) -> None:
        self.numbers: dict[str, Any] = {}
        self.count = 0
        for metric in metrics:
            if isinstance(metric, Metric):
                metric.reset_state()

    def add(self, results: StepResults, size: int) -> None:
        """Take over the results of a batch of this size."""
        self.numbers, self.count = results[1], self.count + size

    def compute(self) -> dict[str, Any]:
        """Return the results by name."""
        return dict(self.numbers)

    def compute_batch(self, results: StepResults) -> dict[str, Any]:
        """Return the results of one step by name."""
        return dict(results[1])

    def state(self) -> dict[str, Any]:
        """Return the results up to now."""
        return {"count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raise an error: a training with steps of its own is not resumed."""
        raise _make_resume_error("fit")


class Logged(NamedTuple):
    """What a traced step returned, besides numbers."""

    names: tuple[str, ...]
    pending: dict[str, Metric]  # results of metrics, which are known once these have the statistics
    updated: list[Metric]  # the metrics of which the program returns statistics


class OwnSteps:
    """What a training run needs of a model with its own ``train_step``, and an evaluation of its ``test_step``.

    The first step runs op by op, as it makes variables; the following ones of the same size run compiled.
    """

    def __init__(self, trainer: Trainer, method: str, eager: bool) -> None:
        self._trainer, self._name, self._method, self._eager = trainer, trainer.model.name, method, eager
        self._usual_size: int | None = None
        self._program: Callable[..., Any] | None = None
        self._logged: Logged | None = None
        self._structure: Any = None  # the latest batch as it was given

    # ---- what a run asks

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers that the latest step returned."""
        return [] if self._logged is None else list(self._logged.names)

    def begin_results(self) -> OwnResults:
        """Return the results of an epoch or evaluation that begins: the model's metrics forget what they have."""
        return OwnResults(self._trainer.model.metrics)

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Raise an error: what a step of the user's keeps between epochs is not in a checkpoint."""
        raise _make_resume_error(f"{self._name}.fit")

    def explain_nan(self, xs: Arrays, ys: Arrays, ws: Arrays) -> object:
        """Return a report of where NaN or infinity came from in a step."""
        try:
            with debug_nans():
                self._call(self._rebuild(xs))
        except NanError as error:
            return error
        return "Computed again, its gradients are finite: pb.diagnose(f)(x) says where the value of a loss f came from."

    # ---- batches

    def convert(self, batch: Any) -> Examples:
        """Return a batch as arrays in a row; floats get the dtype of the model."""
        self._structure = batch
        return tuple(map(self._as_array, _list_leaves(batch))), (), ()

    def _as_array(self, x: Any) -> Array:
        array = np.asarray(as_array(x, subject=f"{self._name}.{self._method}"))
        dtype = self._trainer.find_dtype()
        return array.astype(dtype) if array.dtype.kind == "f" and array.dtype != dtype else array

    def _rebuild(self, xs: Arrays) -> Any:
        """Return the arrays of a batch in the structure in which it was given."""
        return rebuild_tree(self._structure, xs)

    # ---- steps

    def make_train_step(
        self, size: int | None = None, epoch: int = 0
    ) -> Callable[[Arrays, Arrays, Arrays], StepResults]:
        """Return the function that makes one step."""
        return self.step

    def step(self, xs: Arrays, ys: Arrays = (), ws: Arrays = ()) -> StepResults:
        """Make one step; return the sum of all losses in what it returned, and that as numbers by name."""
        data, size = self._rebuild(xs), len(xs[0])
        is_first, self._usual_size = self._usual_size is None, self._usual_size or size
        numbers = self._call(data) if self._eager or is_first or size != self._usual_size else self._run_program(data)
        return [sum(float(np.sum(x)) for name, x in numbers.items() if "loss" in name), numbers]

    def run_batch(self, data: Any, reset: bool, return_dict: bool) -> Any:
        """Make one step with a batch; return its numbers as a list or a dict, with ``reset`` of this batch alone."""
        if reset:
            self.begin_results()
        numbers = self.step(*self.convert(data))[1]
        return numbers if return_dict else list(numbers.values())

    def _call(self, data: Any) -> dict[str, Any]:
        logs = self._call_method(tree.map_leaves(constant, data))
        return {name: as_number(x) for name, x in logs.items()}

    def _run_program(self, data: Any) -> dict[str, Any]:
        if self._program is None:
            self._program = compiled(self._trace)
        numbers, statistics = self._program(data)
        if self._logged is None:
            raise RuntimeError("a compiled step ran without having been traced.")
        for metric, sums in zip(self._logged.updated, statistics, strict=True):
            metric.add_statistics(sums)
        pending = self._logged.pending
        return {
            name: as_number(pending[name].result() if name in pending else numbers[name]) for name in self._logged.names
        }

    def _trace(self, data: Any) -> tuple[dict[str, Any], list[list[Any]]]:
        """Return the numbers of a step and the statistics of the metrics that it updates, as a program does."""
        with collect_updates() as updates:
            logs = self._call_method(data)
        pending = {name: x.metric for name, x in logs.items() if isinstance(x, PendingResult)}
        logged = Logged(tuple(logs), pending, [metric for metric, _ in updates])
        if self._logged not in (None, logged):
            raise ArgumentError(
                f"{self._name}.{self._method}: it returned {', '.join(logged.names)} and updated "
                f"{len(logged.updated)} metrics, and others for a batch of another shape. Compile the model with "
                "run_eagerly=True."
            )
        self._logged = logged
        return {name: x for name, x in logs.items() if name not in pending}, [list(sums) for _, sums in updates]

    def _call_method(self, data: Any) -> dict[str, Any]:
        with self._trainer.collect_batch_losses():
            logs = getattr(self._trainer.model, self._method)(data)
        if not isinstance(logs, dict) or not all(isinstance(name, str) for name in logs):
            raise ArgumentError(
                f"{self._name}.{self._method}: expected a dict of numbers by name, as {{'loss': loss}}, got "
                f"{type(logs).__name__}."
            )
        return logs


def _list_leaves(batch: Any) -> Iterator[Any]:
    """Iterate over the arrays of a batch; a list of numbers is one."""
    found: list[Any] = []
    tree.map_leaves(found.append, batch, whole=tree.is_number_list)
    if not found:
        raise DataError("fit: a batch has no array.")
    return iter(found)


def _make_resume_error(subject: str) -> ArgumentError:
    return ArgumentError(
        f"{subject}: resume= cannot continue a training with a train_step of the model's own: its other optimizers and "
        "metrics are not in the checkpoint. load_weights reads the variables."
    )
