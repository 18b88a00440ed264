"""One call of ``fit``: its epochs and steps, measurements, early ends, and how it resumes from a checkpoint."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, WriteLog, log_writes
from pullback.display.progress import Progress, make_progress
from pullback.errors import DataError, NanError
from pullback.ops import random
from pullback.train.io.saving import StrPath
from pullback.train.loop.batches import Batches, find_length
from pullback.train.loop.callback import CallbackLike, CallbackList
from pullback.train.loop.examples import Arrays, Examples
from pullback.train.loop.history import History
from pullback.train.loop.model import TrainableModel
from pullback.train.loop.results import StepResults
from pullback.train.optim.step import Optimizer
from pullback.typing import Array

if TYPE_CHECKING:
    from pullback.train.loop.trainer import Trainer


class FitSchedule(NamedTuple):
    """How long ``fit`` trains, and what is shown and called meanwhile."""

    epochs: int = 1
    initial_epoch: int = 0
    steps_per_epoch: int | None = None
    callbacks: CallbackLike = ()
    verbose: int | str = "auto"
    resume: StrPath | None = None


class EpochResults(Protocol):
    """The results of an epoch up to now."""

    count: int  # of examples

    def add(self, results: StepResults, size: int) -> None:
        """Add the results of a batch of this size."""

    def compute(self) -> dict[str, Any]:
        """Return the results over all batches by name."""

    def compute_batch(self, results: StepResults) -> dict[str, Any]:
        """Return the results of one batch by name."""

    def state(self) -> dict[str, Any]:
        """Return what ``restore`` takes."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what ``state`` returned."""


class Stepper(Protocol):
    """What makes the steps of a run: the trainer itself, the model's own method, or workers."""

    @property
    def metric_names(self) -> list[str]:
        """The names of all losses and metrics."""

    def begin_results(self) -> EpochResults:
        """Return the results of an epoch that begins, once the model was called."""

    def make_train_step(
        self, size: int | None = None, epoch: int = 0
    ) -> Callable[[Arrays, Arrays, Arrays], StepResults]:
        """Return the function that makes one step on a batch of this size in an epoch."""

    def explain_nan(self, xs: Arrays, ys: Arrays, ws: Arrays) -> object:
        """Return a report of where NaN or infinity came from in a step."""

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Load a checkpoint; return the position in training and the callbacks' state."""


class TrainingRun:
    """One training of a model on the batches of a dataset, from its first epoch or a checkpoint to its end."""

    def __init__(
        self,
        trainer: Trainer,
        stepper: Stepper,
        batches: Batches,
        convert: Callable[[Any], Examples],
        validate: Callable[[int], dict[str, Any] | None] | None,
        schedule: FitSchedule,
    ) -> None:
        self.trainer, self.stepper, self.model = trainer, stepper, trainer.model
        self.batches, self.convert = batches, convert  # from an element of the dataset to inputs, targets and weights
        self.epochs, self.validate, self.verbose = schedule.epochs, validate, schedule.verbose
        self.length = find_length(batches)
        params = {"epochs": schedule.epochs, "steps": self.length, "verbose": schedule.verbose}
        self.callbacks = CallbackList(schedule.callbacks, self.model, params | {"do_validation": validate is not None})
        self.history = History(params=params)
        self.epoch, self.steps = schedule.initial_epoch, 0
        self.results: EpochResults | None = None  # of the epoch; None before its first batch
        self._stored: Mapping[str, Any] | None = None  # results of the epoch that a checkpoint was written in

    # ---- position

    def state(self) -> dict[str, Any]:
        """Return the position in training, without what the model, its optimizer and the callbacks hold."""
        return {
            "epoch": self.epoch,
            "steps": self.steps,
            "names": self.stepper.metric_names,
            "results": None if self.results is None else self.results.state(),
            "data": self.batches.state(),
            "random": random.get_state(),
            "generators": [g.bit_generator.state for g in self.model.iterate_generators()],
            "history": self.history.history,
            "epochs": self.history.epochs,
            "places": self.history.places,
        }

    def resume(self, path: StrPath) -> None:
        """Continue from a checkpoint, if the file exists; if it does not fit, the model stays as it is."""
        if os.path.exists(path):
            StepUndo(self.model, self.trainer.get_optimizer()).run(self._load, (path,))

    def _load(self, path: StrPath) -> None:
        state, remembered = self.stepper.load_checkpoint(path)
        if state is None:
            raise DataError(f"{self.model.name}.fit: {os.fspath(path)!r} was not written during a training.")
        names = self.stepper.metric_names
        if state["names"] != names:
            raise DataError(
                f"{self.model.name}.fit: {os.fspath(path)!r} was written in a training that measured "
                f"{', '.join(state['names'])}; this one measures {', '.join(names)}. "
                "Compile the model with the same metrics."
            )
        self._stored = state["results"]
        self.batches.resume(state["data"])
        self.epoch, self.steps = state["epoch"], state["steps"]
        self.history.history, self.history.epochs = state["history"], state["epochs"]
        self.history.places = state["places"]
        self.history.steps = self.steps
        self.callbacks.restore(remembered)
        random.set_state(state["random"])
        for generator, position in zip(self.model.iterate_generators(), state["generators"], strict=True):
            generator.bit_generator.state = position

    # ---- training

    def train(self) -> History:
        """Train until the last epoch, or until a callback or Ctrl-C stops it."""
        began = time.perf_counter()
        self.callbacks.on_train_begin({})
        logs: dict[str, float] = {}
        with defer_sigint() as is_interrupted, np.errstate(all="ignore"):  # a loss that is not finite is diagnosed
            while self.epoch < self.epochs and not self.history.stopped:
                logs = self._train_epoch(is_interrupted)
        optimizer = self.trainer.get_optimizer()
        if optimizer.keeps_average:
            optimizer.use_averages(self.model.trainable_variables)
        self.callbacks.on_train_end(logs)
        self.history.seconds = time.perf_counter() - began
        return self.history

    def _train_epoch(self, is_interrupted: Callable[[], bool]) -> dict[str, Any]:
        epoch = self.epoch
        if self._stored is None:
            self.callbacks.on_epoch_begin(epoch, {})
        title = f"Epoch {epoch + 1}/{self.epochs}"
        with make_progress(title, self.length, self.verbose, "fit") as progress:
            self._train_batches(progress, is_interrupted)
            results = self._begin_results() if self.results is None and self._stored else self.results
            if results is None:
                raise DataError(
                    f"{self.model.name}.fit: the dataset is empty: epoch {epoch + 1} has no batch. A generator gives "
                    "its batches once: for several epochs give steps_per_epoch, or a Dataset.from_generator."
                )
            logs = results.compute() if results.count else {"loss": math.nan}
            if self.history.stopped is None and self.validate is not None:
                found = self.validate(epoch)
                logs |= {f"val_{name}": value for name, value in (found or {}).items()}
            progress.close(logs)
        self.history.add(epoch, logs)
        if self.history.stopped is not None:  # an epoch that was interrupted has no end
            return logs
        self.results, self.epoch = None, epoch + 1
        self.callbacks.on_epoch_end(epoch, logs)
        if self.trainer.stop_training:
            self.history.stopped = self.callbacks.stopped or f"by a callback after epoch {epoch + 1}"
        return logs

    def _begin_results(self) -> EpochResults:
        """Return the results of the epoch: none yet, or those that a checkpoint stored."""
        self.results = self.stepper.begin_results()
        if self._stored is not None:
            self.results.restore(self._stored)
            self._stored = None
        return self.results

    def _train_batches(self, progress: Progress, is_interrupted: Callable[[], bool]) -> None:
        """Train on the batches of an epoch, or on those that are left of it."""
        history, step, step_size = self.history, None, 0
        has_batch_hooks = self.callbacks.has_batch_hooks
        for number, batch in enumerate(self.batches):
            examples = self.convert(batch)
            size = len(examples[0][0])
            if has_batch_hooks:
                self.callbacks.on_batch_begin(number, {"batch": number, "size": size})
            if step is None:
                undo = StepUndo(self.model, self.trainer.get_optimizer())
                results = self._begin_results()
            if step is None or size != step_size:
                step, step_size = self.stepper.make_train_step(size, self.epoch), size
            numbers = undo.run(step, examples)
            if not math.isfinite(numbers[0]):
                if self.callbacks.stops_at_nan:
                    undo.undo_to_finite()
                    history.stopped = f"terminate_on_nan: the loss of batch {number + 1} is not finite"
                    break
                raise self._diagnose(undo, f"the loss is not finite in epoch {self.epoch + 1}, batch {number + 1}")
            history.steps = self.steps = self.steps + 1
            results.add(numbers, size)
            progress.step(results)
            if has_batch_hooks:
                logs = {"batch": number, "size": size, **results.compute_batch(numbers)}
                self.callbacks.on_batch_end(number, logs)
                if self.callbacks.has_hooks("on_train_batch_end"):
                    self.callbacks.call("on_train_batch_end", number, results.compute())
            if is_interrupted():
                history.stopped = f"by Ctrl-C after step {self.steps}"
                break
            if self.trainer.stop_training:
                history.stopped = self.callbacks.stopped or f"by a callback after step {self.steps}"
                break
        if step is not None and (nonfinite := undo.find_nonfinite()):  # after the last step no loss would show it
            names = f"{', '.join(nonfinite)} {'is' if len(nonfinite) == 1 else 'are'}"
            raise self._diagnose(undo, f"{names} not finite after epoch {self.epoch + 1}, batch {number + 1}")

    def _diagnose(self, undo: StepUndo, subject: str) -> NanError:
        """Return an error that says where NaN or infinity came from; the model is put back before it had them."""
        xs, ys, ws = undo.undo_to_finite()
        before = undo.get_values()
        report = self.stepper.explain_nan(xs, ys, ws)
        undo.set_values(before)
        data = _describe_nonfinite(xs, ys, ws)
        error = NanError(
            f"{self.model.name}.fit: {subject}. The model is as it was after its last finite step.{data}\n{report}"
        )
        error.report = report
        return error


class StepUndo:
    """Undoes the latest two steps: logs what they wrote over in the model and its optimizer, and their batches.

    Of a variable that holds a new array after a step the log has the old one; where rows were written, the old rows.
    """

    def __init__(self, model: TrainableModel, optimizer: Optimizer) -> None:
        variables = model.variables
        self._all = [*variables, *optimizer.slots([v for v in variables if v.trainable])]
        self._finite = [v for v in variables if _is_finite(v.held.value)]
        self._steps: list[tuple[WriteLog, Any]] = []

    def get_values(self) -> list[tuple[Variable, Tensor]]:
        """Return what all variables hold now."""
        return [(v, v.held) for v in self._all]

    def set_values(self, values: list[tuple[Variable, Tensor]]) -> None:
        """Put back what ``get_values`` returned."""
        for v, held in values:
            v.held = held

    def find_nonfinite(self) -> list[str]:
        """Return the names of the model's variables that were finite at first and are not any more."""
        return [v.name for v in self._finite if not _is_finite(v.held.value)]

    def run(self, step: Callable[..., Any], arguments: Any) -> Any:
        """Make a step and log its writes; undo them if it raises."""
        with log_writes() as log:
            self._steps = [*self._steps[-1:], (log, arguments)]
            try:
                return step(*arguments)
            except BaseException:
                log.undo()
                raise

    def undo_to_finite(self) -> Examples:
        """Undo the latest step, and the one before if its gradients were the cause; return the batch of the cause."""
        for log, batch in reversed(self._steps):
            log.undo()
            if all(_is_finite(v.held.value) for v in self._all):
                found: Examples = batch
                return found
        latest: Examples = self._steps[-1][1]
        return latest


def _describe_nonfinite(*parts: Arrays) -> str:
    """Return a sentence about the first number in a batch that is not finite; an empty text if there is none."""
    for name, arrays in zip(("The inputs x", "The targets y", "The weights"), parts, strict=True):
        for x in (np.asarray(a) for a in arrays if a is not None):
            if x.dtype.kind in "fc" and not _is_finite(x):
                at = np.argwhere(~np.isfinite(x))[0]
                return f" {name} of this batch hold {x[tuple(at)]}, first at index {at.tolist()}."
    return ""


def _is_finite(x: Array) -> bool:
    return bool(np.all(np.isfinite(x)))


@contextmanager
def defer_sigint() -> Iterator[Callable[[], bool]]:
    """Give a function that returns whether Ctrl-C was pressed in this block; a second Ctrl-C interrupts at once."""
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGINT, before)
