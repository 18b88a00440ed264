"""One training: epochs and steps, what is measured on the way, where it can stop, and from where it can go on."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.variable import Variable, WriteLog, logging_writes
from pullback.diagnostics.nans import diagnose
from pullback.errors import DataError, NanError
from pullback.ops import random
from pullback.train.data.dataset import Dataset
from pullback.train.loop.callback import CallbackList
from pullback.train.loop.history import History
from pullback.train.loop.progress import bar

__all__ = ["Means", "Run"]


class Means:
    """Means over the examples of many batches, added up in float64."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.sums, self.count = names, [0.0] * len(names), 0

    def add(self, values: Any, size: int) -> None:
        for i, v in enumerate(values):
            self.sums[i] += float(v) * size
        self.count += size

    def values(self) -> dict[str, float]:
        return {name: total / self.count for name, total in zip(self.names, self.sums, strict=True)}


class Run:
    """A training that is going on, of a model on the batches of a dataset."""

    def __init__(
        self,
        model: Any,
        batches: Dataset,
        rows: Callable[[Any], Any],
        epochs: int,
        measure: Callable[[], dict[str, float]] | None,
        callbacks: Any,
        verbose: Any,
    ) -> None:
        self.model, self.batches, self.rows = model, batches, rows  # what makes inputs and targets of a batch
        self.epochs, self.measure, self.verbose = epochs, measure, verbose
        self.callbacks = CallbackList(callbacks, model)
        self.history = History()
        self.epoch = self.steps = 0
        self.means = Means(model._names())

    # ---- where it is

    def state(self) -> dict[str, Any]:
        """Everything that decides how it goes on, but for what the model and its optimizer hold."""
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

    def resume(self, path: Any) -> None:
        """Go on from a checkpoint, if it is there; if it does not fit, the model stays as it is."""
        if os.path.exists(path):
            kept = Kept(self.model)
            with kept.unless_it_succeeds(None):
                self._go_on_from(path)

    def _go_on_from(self, path: Any) -> None:
        state, remembered = self.model.load_checkpoint(path)
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
        for generator, place in zip(self.model.generators(), state["generators"], strict=True):
            generator.bit_generator.state = place

    # ---- on it goes

    def go(self) -> History:
        began = time.perf_counter()
        self.callbacks.on_train_begin({})
        logs: dict[str, float] = {}
        with stoppable() as asked, np.errstate(all="ignore"):  # a loss that is not finite is diagnosed
            while self.epoch < self.epochs and not self.history.stopped:
                logs = self._epoch_of(asked)
        self.callbacks.on_train_end(logs)
        self.history.seconds = time.perf_counter() - began
        return self.history

    def _epoch_of(self, asked: Callable[[], bool]) -> dict[str, float]:
        model, means, epoch = self.model, self.means, self.epoch
        if not means.count:
            self.callbacks.on_epoch_begin(epoch, {})
        with bar(_length(self.batches), epoch, self.epochs, self.verbose) as progress:
            self._steps_of(progress, asked)
            if not means.count:
                raise DataError(f"{model.name}.fit: the dataset is empty: epoch {epoch + 1} has no batch.")
            logs = means.values()
            if self.history.stopped is None and self.measure is not None:
                logs |= {f"val_{name}": value for name, value in self.measure().items()}
            progress.close(logs)
        self.history.add(epoch, logs)
        if self.history.stopped is not None:  # an epoch that was broken off has no end
            return logs
        self.means, self.epoch = Means(means.names), epoch + 1
        self.callbacks.on_epoch_end(epoch, logs)
        if model.stop_training:
            self.history.stopped = self.callbacks.stopped or f"by a callback after epoch {epoch + 1}"
        return logs

    def _steps_of(self, progress: Any, asked: Callable[[], bool]) -> None:
        """The batches of an epoch, or of what is left of it."""
        model, means, step = self.model, self.means, None
        names, watched = means.names, self.callbacks.has_batch_hooks
        for number, batch in enumerate(self.batches):
            xs, ys = self.rows(batch)
            if watched:
                self.callbacks.on_batch_begin(number, {})
            if step is None:
                step, kept = model._step(), Kept(model)
            with kept.unless_it_succeeds((xs, ys)):
                values = [float(v) for v in step(xs, ys)]
            if not math.isfinite(values[0]):
                raise self._diagnosed(kept, f"the loss is not finite in epoch {self.epoch + 1}, batch {number + 1}")
            self.steps += 1
            self.history.steps = self.steps
            means.add(values, len(xs[0]))
            progress.step(values[0], dict(zip(names[1:], values[1:], strict=True)))
            if watched:
                logs = {"batch": number, "size": len(xs[0]), **dict(zip(names, values, strict=True))}
                self.callbacks.on_batch_end(number, logs)
            if asked():
                self.history.stopped = f"by Ctrl-C after step {self.steps}"
                break
            if model.stop_training:
                self.history.stopped = self.callbacks.stopped or f"by a callback after step {self.steps}"
                break
        if step is not None and (spoilt := kept.spoilt()):  # after the last step no loss would show it
            which = f"{', '.join(spoilt)} {'is' if len(spoilt) == 1 else 'are'}"
            raise self._diagnosed(kept, f"{which} not finite after epoch {self.epoch + 1}, batch {number + 1}")

    def _diagnosed(self, kept: Kept, what: str) -> NanError:
        """An error that says where numbers came from that are not finite; the model is as it was before it had them."""
        model, (xs, ys) = self.model, kept.back_to_finite()
        good = kept.values()
        report = diagnose(lambda *xs: model._cost(xs, ys, True)[0])(*xs)
        kept.put(good)
        error = NanError(f"{model.name}.fit: {what}. The model is as it was after its last finite step.\n{report}")
        error.report = report
        return error


class Kept:
    """What the latest two steps wrote over in a model and its optimizer, and the batches of these steps.

    Of variables that hold a new array after a step it is the old one; where rows were written into one, the old rows.
    """

    def __init__(self, model: Any) -> None:
        self.all = [*model.variables, *model.optimizer.slots(model.trainable_variables)]
        self.finite = [v for v in model.variables if _is_finite(v.held.value)]
        self.before: list[tuple[WriteLog, Any]] = []

    def values(self) -> list[tuple[Variable, Any]]:
        return [(v, v.held) for v in self.all]

    def spoilt(self) -> list[str]:
        """The names of the model's variables that were finite at first and are not any more."""
        return [v.name for v in self.finite if not _is_finite(v.held.value)]

    def put(self, values: list[tuple[Variable, Any]]) -> None:
        for v, held in values:
            v.held = held

    @contextmanager
    def unless_it_succeeds(self, batch: Any) -> Iterator[None]:
        """If a step is broken off, nothing of it stays."""
        with logging_writes() as log:
            self.before = [*self.before[-1:], (log, batch)]
            try:
                yield
            except BaseException:
                log.undo()
                raise

    def back_to_finite(self) -> Any:
        """Take the latest step back, and the one before if its gradients were the cause; gives the batch that was."""
        for log, batch in reversed(self.before):
            log.undo()
            if all(_is_finite(v.held.value) for v in self.all):
                return batch
        return self.before[-1][1]


def _is_finite(x: Any) -> bool:
    return bool(np.all(np.isfinite(x)))


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """In this block Ctrl-C is a wish, which the function that is given tells of; a second one breaks off."""
    wishes: list[int] = []

    def noted(number: int, frame: Any) -> None:
        if wishes:
            raise KeyboardInterrupt
        wishes.append(number)

    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, noted)
    try:
        yield lambda: bool(wishes)
    finally:
        signal.signal(signal.SIGINT, before)


def _length(batches: Dataset) -> int | None:
    try:
        return len(batches)
    except TypeError:
        return None
