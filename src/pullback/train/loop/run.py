"""One call of ``fit``: epochs and steps, what is measured, when it stops, and how it resumes from a checkpoint."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

import numpy as np

from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, WriteLog, log_writes
from pullback.diagnostics.nans import diagnose
from pullback.errors import DataError, NanError
from pullback.ops import random
from pullback.train.data.dataset import Dataset
from pullback.train.io.saving import StrPath
from pullback.train.loop.callback import CallbackLike, CallbackList
from pullback.train.loop.examples import Arrays, Examples
from pullback.train.loop.history import History
from pullback.train.loop.model import TrainableModel
from pullback.train.loop.progress import Progress, make_progress
from pullback.train.optim.step import Optimizer
from pullback.typing import Array

__all__ = ["RunningMeans", "Stepper", "TrainingRun"]


class Stepper(Protocol):
    """What a run needs of a trainer."""

    stop_training: bool

    @property
    def model(self) -> TrainableModel:
        """The model that is trained."""

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers that a step returns."""

    def get_optimizer(self) -> Optimizer:
        """Return the optimizer."""

    def make_train_step(self) -> Callable[[Arrays, Arrays], list[Any]]:
        """Return the function that makes one step."""

    def compute_loss(self, xs: Arrays, ys: Arrays, training: bool) -> tuple[Any, list[Any]]:
        """Return the loss and the metrics of a batch."""

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Load a checkpoint; return the position in training and the callbacks' state."""


class RunningMeans:
    """Means of named numbers over the examples of many batches, summed in float64."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.sums, self.count = names, [0.0] * len(names), 0

    def add(self, values: Sequence[Any], size: int) -> None:
        """Add the means of a batch of this size."""
        for i, v in enumerate(values):
            self.sums[i] += float(v) * size
        self.count += size

    def compute(self) -> dict[str, float]:
        """Return the means by name."""
        return {name: total / self.count for name, total in zip(self.names, self.sums, strict=True)}


class TrainingRun:
    """One training of a model on the batches of a dataset, from its first epoch or a checkpoint to its end."""

    def __init__(
        self,
        trainer: Stepper,
        batches: Dataset,
        convert: Callable[[Any], Examples],
        epochs: int,
        validate: Callable[[], dict[str, float]] | None,
        callbacks: CallbackLike,
        verbose: int | str,
    ) -> None:
        self.trainer, self.model = trainer, trainer.model
        self.batches, self.convert = batches, convert  # from an element of the dataset to inputs and targets
        self.epochs, self.validate, self.verbose = epochs, validate, verbose
        self.callbacks = CallbackList(callbacks, self.model)
        self.history = History()
        self.epoch = self.steps = 0
        self.means = RunningMeans(trainer.metric_names)

    # ---- position

    def state(self) -> dict[str, Any]:
        """Return the position in training, without what the model, its optimizer and the callbacks hold."""
        return {
            "epoch": self.epoch,
            "steps": self.steps,
            "names": self.means.names,
            "sums": list(self.means.sums),
            "count": self.means.count,
            "data": self.batches.state(),
            "random": random.get_state(),
            "generators": [g.bit_generator.state for g in self.model.generators()],
            "history": self.history.history,
            "epochs": self.history.epochs,
        }

    def resume(self, path: StrPath) -> None:
        """Continue from a checkpoint, if the file exists; if it does not fit, the model stays as it is."""
        if os.path.exists(path):
            with StepUndo(self.model, self.trainer.get_optimizer()).record(None):
                self._load(path)

    def _load(self, path: StrPath) -> None:
        state, remembered = self.trainer.load_checkpoint(path)
        if state is None:
            raise DataError(f"{self.model.name}.fit: {os.fspath(path)!r} was not written during a training.")
        if state["names"] != self.means.names:
            raise DataError(
                f"{self.model.name}.fit: {os.fspath(path)!r} was written in a training that measured "
                f"{', '.join(state['names'])}; this one measures {', '.join(self.means.names)}. "
                "Compile the model with the same metrics."
            )
        self.batches.resume(state["data"])
        self.epoch, self.steps = state["epoch"], state["steps"]
        self.means.sums, self.means.count = list(state["sums"]), state["count"]
        self.history.history, self.history.epochs = state["history"], state["epochs"]
        self.history.steps = self.steps
        self.callbacks.restore(remembered)
        random.set_state(state["random"])
        for generator, position in zip(self.model.generators(), state["generators"], strict=True):
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
        self.callbacks.on_train_end(logs)
        self.history.seconds = time.perf_counter() - began
        return self.history

    def _train_epoch(self, is_interrupted: Callable[[], bool]) -> dict[str, float]:
        means, epoch = self.means, self.epoch
        if not means.count:
            self.callbacks.on_epoch_begin(epoch, {})
        with make_progress(_find_length(self.batches), epoch, self.epochs, self.verbose) as progress:
            self._train_batches(progress, is_interrupted)
            if not means.count:
                raise DataError(f"{self.model.name}.fit: the dataset is empty: epoch {epoch + 1} has no batch.")
            logs = means.compute()
            if self.history.stopped is None and self.validate is not None:
                logs |= {f"val_{name}": value for name, value in self.validate().items()}
            progress.close(logs)
        self.history.add(epoch, logs)
        if self.history.stopped is not None:  # an epoch that was interrupted has no end
            return logs
        self.means, self.epoch = RunningMeans(means.names), epoch + 1
        self.callbacks.on_epoch_end(epoch, logs)
        if self.trainer.stop_training:
            self.history.stopped = self.callbacks.stopped or f"by a callback after epoch {epoch + 1}"
        return logs

    def _train_batches(self, progress: Progress, is_interrupted: Callable[[], bool]) -> None:
        """Train on the batches of an epoch, or on those that are left of it."""
        trainer, means, step = self.trainer, self.means, None
        names, has_batch_hooks = means.names, self.callbacks.has_batch_hooks
        for number, batch in enumerate(self.batches):
            xs, ys = self.convert(batch)
            if has_batch_hooks:
                self.callbacks.on_batch_begin(number, {})
            if step is None:
                step, undo = trainer.make_train_step(), StepUndo(self.model, trainer.get_optimizer())
            with undo.record((xs, ys)):
                values = [float(v) for v in step(xs, ys)]
            if not math.isfinite(values[0]):
                raise self._diagnose(undo, f"the loss is not finite in epoch {self.epoch + 1}, batch {number + 1}")
            self.steps += 1
            self.history.steps = self.steps
            means.add(values, len(xs[0]))
            progress.step(values[0], dict(zip(names[1:], values[1:], strict=True)))
            if has_batch_hooks:
                logs = {"batch": number, "size": len(xs[0]), **dict(zip(names, values, strict=True))}
                self.callbacks.on_batch_end(number, logs)
            if is_interrupted():
                self.history.stopped = f"by Ctrl-C after step {self.steps}"
                break
            if trainer.stop_training:
                self.history.stopped = self.callbacks.stopped or f"by a callback after step {self.steps}"
                break
        if step is not None and (nonfinite := undo.find_nonfinite()):  # after the last step no loss would show it
            which = f"{', '.join(nonfinite)} {'is' if len(nonfinite) == 1 else 'are'}"
            raise self._diagnose(undo, f"{which} not finite after epoch {self.epoch + 1}, batch {number + 1}")

    def _diagnose(self, undo: StepUndo, what: str) -> NanError:
        """Return an error that says where NaN or infinity came from; the model is put back before it had them."""
        xs, ys = undo.undo_to_finite()
        before = undo.get_values()
        report = diagnose(lambda *xs: self.trainer.compute_loss(xs, ys, True)[0])(*xs)
        undo.set_values(before)
        error = NanError(f"{self.model.name}.fit: {what}. The model is as it was after its last finite step.\n{report}")
        error.report = report
        return error


class StepUndo:
    """Undoes the latest two steps: logs what they wrote over in the model and its optimizer, and their batches.

    Of a variable that holds a new array after a step the log has the old one; where rows were written, the old rows.
    """

    def __init__(self, model: TrainableModel, optimizer: Optimizer) -> None:
        self._all = [*model.variables, *optimizer.slots(model.trainable_variables)]
        self._finite = [v for v in model.variables if _is_finite(v.held.value)]
        self._steps: list[tuple[WriteLog, Examples | None]] = []

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

    @contextmanager
    def record(self, batch: Examples | None) -> Iterator[None]:
        """Log the writes of a step in a ``with`` block; undo them if it raises."""
        with log_writes() as log:
            self._steps = [*self._steps[-1:], (log, batch)]
            try:
                yield
            except BaseException:
                log.undo()
                raise

    def undo_to_finite(self) -> Examples:
        """Undo the latest step, and the one before if its gradients were the cause; return the batch of the cause."""
        for log, batch in reversed(self._steps):
            log.undo()
            if batch is not None and all(_is_finite(v.held.value) for v in self._all):
                return batch
        latest = self._steps[-1][1]
        assert latest is not None  # only resuming records without a batch
        return latest


def _is_finite(x: Array) -> bool:
    return bool(np.all(np.isfinite(x)))


@contextmanager
def defer_sigint() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed in this block; a second Ctrl-C interrupts at once."""
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


def _find_length(batches: Dataset) -> int | None:
    try:
        return len(batches)
    except TypeError:
        return None
