"""Callbacks of ``fit``: early stopping, checkpoints, CSV logs, learning rates; with Keras's arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pullback.core.convert import as_number
from pullback.core.suggestions import did_you_mean
from pullback.errors import ArgumentError, DataError
from pullback.train.arguments import as_whole_number
from pullback.train.loop.callback import Callback, CallbackList, LambdaCallback, Logs
from pullback.train.loop.csv_log import CsvFile

__all__ = [
    "Callback", "CallbackList", "CsvLogger", "EarlyStopping", "LambdaCallback", "LearningRateSchedule",
    "ModelCheckpoint", "ReduceLrOnPlateau", "csv_logger", "custom_callback", "early_stopping", "lambda_callback",
    "learning_rate_schedule", "model_checkpoint", "reduce_lr_on_plateau",
]  # fmt: skip


class StatefulCallback(Callback):
    """A callback with a state: reset at the beginning of each ``fit``, unless it is resumed."""

    initial_state: ClassVar[Mapping[str, Any]] = {}
    _is_resumed = False

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        vars(self).update(self.initial_state)

    def on_train_begin(self, logs: Logs) -> None:
        if not self._is_resumed:
            self._reset()

    def on_train_end(self, logs: Logs) -> None:
        self._is_resumed = False

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.initial_state}

    def restore(self, state: dict[str, Any]) -> None:
        if state.keys() != self.initial_state.keys():
            raise DataError(
                f"callbacks.{self.kind}.restore: expected a state of {', '.join(self.initial_state)}, got "
                f"{', '.join(map(repr, state)) or 'nothing'}."
            )
        vars(self).update(state)
        self._is_resumed = True


class MonitorCallback(StatefulCallback):
    """A callback that watches whether a number of the logs improves."""

    best: float | None

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"callbacks.{self.kind}: mode must be auto, min or max, got {mode!r}.")
        self.monitor = monitor
        self.min_delta = abs(as_number(f"callbacks.{self.kind}", "min_delta", min_delta))
        improves_upward = monitor.removeprefix("val_").endswith(("acc", "accuracy", "precision", "recall", "r2_score"))
        self.sign = 1.0 if mode == "max" or (mode == "auto" and improves_upward) else -1.0

    def get_monitored(self, logs: Logs) -> float:
        """Return the number that is monitored."""
        if self.monitor not in logs:
            cure = " There is no validation: give fit validation_data or validation_split."
            without = self.monitor.startswith("val_") and not any(name.startswith("val_") for name in logs)
            raise DataError(
                f"callbacks.{self.kind}: there is no {self.monitor!r} to monitor; there are {', '.join(logs)}."
                f"{cure if without else did_you_mean(self.monitor, logs)}"
            )
        return float(logs[self.monitor])

    def is_better(self, value: float, than: float | None) -> bool:
        """Return whether a value is better than another by more than ``min_delta``."""
        return value == value and (than is None or self.sign * (value - than) > self.min_delta)  # NaN is never better


class EarlyStopping(MonitorCallback):
    """Stop when a number has not improved for ``patience`` epochs.

    Only a change of more than ``min_delta``, and beyond ``baseline`` if there is one, counts as an improvement.
    ``restore_best_weights`` sets the weights to those after the best epoch.

    >>> pb.callbacks.early_stopping(monitor="val_loss", patience=3).patience
    3
    """

    initial_state: ClassVar[Mapping[str, Any]] = {"best": None, "wait": 0, "best_epoch": 0, "weights": None}
    wait: int
    best_epoch: int
    weights: list[Any] | None

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0.0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience = as_whole_number("callbacks.early_stopping", "patience", patience, 0)
        self.baseline, self.restore_best_weights = baseline, restore_best_weights

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        value = self.get_monitored(logs)
        self.wait += 1
        if self.is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.weights = self.model.get_weights()
            if self.baseline is None or self.is_better(value, self.baseline):
                self.wait = 0
                return
        if self.wait >= self.patience and epoch > 0:
            best = (
                "never a number" if self.best is None else f"best, {self.best:.4g}, after epoch {self.best_epoch + 1}"
            )
            self.stop(f"early_stopping: {self.monitor} was {best}")

    def on_train_end(self, logs: Logs) -> None:
        super().on_train_end(logs)
        if self.weights is not None:
            self.model.set_weights(self.weights)


class ModelCheckpoint(MonitorCallback):
    """Save a checkpoint after each epoch, or every ``every`` steps: weights, optimizer state, position in training.

    The path may contain ``{epoch}``, from 1 on, and names of ``logs``, as in ``"{epoch:03d}-{val_loss:.3f}"``.
    ``save_best_only`` saves only when ``monitor`` is better than ever before.  Other callbacks are called first, so
    that their state is saved as it is after the epoch.

    >>> pb.callbacks.model_checkpoint("best.safetensors", save_best_only=True).monitor
    'val_loss'
    """

    initial_state: ClassVar[Mapping[str, Any]] = {"best": None, "steps": 0, "epoch": 0}
    last = True
    steps: int
    epoch: int

    def __init__(
        self,
        path: str | os.PathLike[str],
        monitor: str = "val_loss",
        save_best_only: bool = False,
        mode: str = "auto",
        every: int | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        self.path, self.save_best_only = os.fspath(path), save_best_only
        self.every = every if every is None else as_whole_number("callbacks.model_checkpoint", "every", every, 1)
        if every is not None:
            if save_best_only:
                raise ArgumentError(
                    "callbacks.model_checkpoint: the best is known only after an epoch; give every or save_best_only."
                )
            vars(self)["on_batch_end"] = self._step  # a hook only where it is needed: logs of batches take time

    def on_train_begin(self, logs: Logs) -> None:
        super().on_train_begin(logs)
        _check_folder("model_checkpoint", self.path)

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        self.epoch = epoch

    def _step(self, batch: int, logs: Logs) -> None:
        self.steps += 1
        if self.every is not None and self.steps % self.every == 0:
            self._save(logs)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if self.every is not None:
            return
        self.epoch = epoch
        if self.save_best_only:
            value = self.get_monitored(logs)
            if not self.is_better(value, self.best):
                return
            self.best = value
        self._save(logs)

    def _save(self, logs: Logs) -> None:
        try:
            path = self.path.format(**{**logs, "epoch": self.epoch + 1})
        except (KeyError, IndexError, ValueError) as error:
            raise DataError(
                f"callbacks.model_checkpoint: the path {self.path!r} cannot be filled in: {error}; there are epoch, "
                f"{', '.join(logs)}."
            ) from None
        self.model.save_checkpoint(path)


class CsvLogger(StatefulCallback):
    """Write a row of numbers to a CSV file after each epoch.

    A resumed training appends to the file, after removing the rows of epochs that are trained again.

    >>> import os, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = pb.callbacks.csv_logger(os.path.join(folder, "log.csv"))
    ...     log.on_train_begin({})
    ...     log.on_epoch_end(0, {"loss": 0.5, "val_loss": 0.75})
    ...     log.on_train_end({})
    ...     print(pathlib.Path(log.path).read_text(), end="")
    epoch,loss,val_loss
    0,0.5,0.75
    """

    initial_state: ClassVar[Mapping[str, Any]] = {"rows": 0}
    rows: int

    def __init__(self, path: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.path, self.separator, self.append = os.fspath(path), separator, append
        self._file: CsvFile | None = None

    def on_train_begin(self, logs: Logs) -> None:
        super().on_train_begin(logs)
        _check_folder("csv_logger", self.path)
        self._file = None

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if self._file is None:
            keep = epoch if self._is_resumed else None
            self._file = CsvFile(self.path, self.separator, ["epoch", *logs], self.append or self._is_resumed, keep)
        self._file.write({"epoch": epoch, **logs})
        self.rows += 1

    def on_train_end(self, logs: Logs) -> None:
        super().on_train_end(logs)
        if self._file is not None:
            self._file.close()
            self._file = None


class LearningRateSchedule(Callback):
    """Set the learning rate before each epoch, by a function of its number; the first is 0.

    >>> pb.callbacks.learning_rate_schedule(lambda epoch: 0.1 / (epoch + 1)).function(1)
    0.05
    """

    def __init__(self, function: Callable[[int], float]) -> None:
        if not callable(function):
            raise ArgumentError(
                "callbacks.learning_rate_schedule: expected a function of the number of the epoch, got "
                f"{type(function).__name__}."
            )
        self.function = function

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        self.model.optimizer.set_learning_rate(self.function(epoch))


class ReduceLrOnPlateau(MonitorCallback):
    """Multiply the learning rate by ``factor`` when a number has not improved for ``patience`` epochs.

    Afterwards no epochs are counted for ``cooldown`` epochs; the rate never gets below ``min_lr``.

    >>> pb.callbacks.reduce_lr_on_plateau(factor=0.5, patience=3).factor
    0.5
    """

    initial_state: ClassVar[Mapping[str, Any]] = {"best": None, "wait": 0, "rest": 0}
    wait: int
    rest: int

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        name = "callbacks.reduce_lr_on_plateau"
        self.factor = as_number(name, "factor", factor, 0, 1)
        if self.factor == 1:
            raise ArgumentError(f"{name}: factor must be less than 1, or the rate stays as it is.")
        self.patience = as_whole_number("callbacks.reduce_lr_on_plateau", "patience", patience, 0)
        self.cooldown = as_whole_number("callbacks.reduce_lr_on_plateau", "cooldown", cooldown, 0)
        self.min_lr = as_number(name, "min_lr", min_lr, 0)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        value = self.get_monitored(logs)
        if self.rest:
            self.rest -= 1
        if self.is_better(value, self.best):
            self.best, self.wait = value, 0
        elif not self.rest:
            self.wait += 1
            rate = self.model.optimizer.learning_rate
            if self.wait >= self.patience and rate > self.min_lr:
                self.model.optimizer.set_learning_rate(max(rate * self.factor, self.min_lr))
                self.rest, self.wait = self.cooldown, 0


def _check_folder(name: str, path: str) -> None:
    """Raise an error before the training if the folder to write to does not exist."""
    folder = os.path.dirname(path) or "."
    if "{" not in folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"callbacks.{name}: there is no folder '{folder}'. Make it first.")


early_stopping, model_checkpoint, csv_logger = EarlyStopping, ModelCheckpoint, CsvLogger
learning_rate_schedule, reduce_lr_on_plateau = LearningRateSchedule, ReduceLrOnPlateau
lambda_callback = custom_callback = LambdaCallback
