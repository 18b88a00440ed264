"""Callbacks of ``fit``: early stopping, checkpoints, CSV logs, learning rates; with Keras's arguments."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from pullback.core.convert import as_number
from pullback.core.suggestions import did_you_mean
from pullback.errors import ArgumentError, DataError
from pullback.names.answers import install_answers
from pullback.train.arguments import as_whole_number, is_whole_number
from pullback.train.io.saving import save
from pullback.train.loop.callback import Callback, CallbackList, LambdaCallback, Logs
from pullback.train.loop.csv_log import CsvFile
from pullback.train.loop.tensorboard import EventFile

__all__ = [
    "BackupAndRestore", "Callback", "CallbackList", "CsvLogger", "EarlyStopping", "JsonLogger", "LambdaCallback",
    "LearningRateSchedule", "ModelCheckpoint", "ReduceLrOnPlateau", "SwapEMAWeights", "SwapEmaWeights", "TensorBoard",
    "TerminateOnNan",
    "backup_and_restore", "csv_logger", "custom_callback", "early_stopping", "json_logger", "lambda_callback",
    "learning_rate_schedule", "learning_rate_scheduler", "model_checkpoint", "reduce_lr_on_plateau", "swap_ema_weights",
    "tensorboard", "terminate_on_nan",
]  # fmt: skip

MODEL_ENDINGS = (".keras", ".h5", ".hdf5", ".json")  # of files that other libraries read


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

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0, verbose: int = 0) -> None:
        super().__init__()
        self.verbose = verbose
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"callbacks.{self.kind}: mode must be auto, min or max, got {mode!r}.")
        self.monitor = monitor
        self.min_delta = abs(as_number(f"callbacks.{self.kind}", "min_delta", min_delta))
        improves_upward = monitor.removeprefix("val_").endswith(("acc", "accuracy", "precision", "recall", "r2_score"))
        self.sign = 1.0 if mode == "max" or (mode == "auto" and improves_upward) else -1.0

    def print_line(self, text: str) -> None:
        """Print a line, if ``verbose``."""
        if self.verbose:
            print(text, file=sys.stderr)

    def is_without_validation(self, logs: Logs) -> bool:
        """Return whether this epoch was not validated, although others are."""
        was_validated = any(name.startswith("val_") for name in logs)
        return self.monitor.startswith("val_") and not was_validated and bool(self.params.get("do_validation"))

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

    monitor: the name of the number that is watched.
    min_delta: a smaller change does not count as an improvement.
    patience: for how many epochs.
    mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
    baseline: the value that must be exceeded.
    restore_best_weights: whether the weights of the best epoch are restored.
    start_from_epoch: epochs before it are ignored.
    verbose: 1 prints a line when it acts.

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
        start_from_epoch: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta, verbose)
        self.patience = as_whole_number("callbacks.early_stopping", "patience", patience, 0)
        self.baseline, self.restore_best_weights = baseline, restore_best_weights
        self.start_from_epoch = as_whole_number("callbacks.early_stopping", "start_from_epoch", start_from_epoch, 0)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if epoch < self.start_from_epoch or self.is_without_validation(logs):
            return
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
            self.print_line(f"Epoch {epoch + 1}: early stopping: {self.monitor} was {best}")

    def on_train_end(self, logs: Logs) -> None:
        super().on_train_end(logs)
        if self.weights is not None:
            self.model.set_weights(self.weights)


class ModelCheckpoint(MonitorCallback):
    """Save a checkpoint after each epoch, or every ``every`` steps: weights, optimizer state, position in training.

    A path that ends in ``.keras``, ``.h5`` or ``.json`` gets the model as ``model.save`` writes it, or its weights as
    ``model.save_weights`` does; others get a checkpoint for ``fit(resume=path)``.  The path may contain ``{epoch}``,
    from 1 on, and names of ``logs``, as in ``"{epoch:03d}-{val_loss:.3f}"``.
    ``save_best_only`` saves only when ``monitor`` is better than ever before.  Other callbacks are called first, so
    that their state is saved as it is after the epoch.

    path: the file.
    monitor: the name of the number that is watched.
    save_best_only: whether only better ones are saved.
    mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
    every: save after so many steps, not after each epoch.
    save_weights_only: whether only weights are saved, without optimizer and position.
    save_freq: ``"epoch"``, or a number of steps.
    initial_value_threshold: a first value must be better than this to be saved.
    verbose: 1 prints a line when it acts.

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
        save_weights_only: bool = False,
        save_freq: str | int = "epoch",
        initial_value_threshold: float | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(monitor, mode, verbose=verbose)
        if isinstance(save_freq, str) and save_freq != "epoch":
            raise ArgumentError(f"callbacks.{self.kind}: save_freq must be 'epoch' or a number, got {save_freq!r}.")
        every = save_freq if every is None and not isinstance(save_freq, str) else every
        self.save_weights_only, self.initial_value_threshold = save_weights_only, initial_value_threshold
        self.path, self.save_best_only = os.fspath(path), save_best_only
        self.every = every if every is None else as_whole_number("callbacks.model_checkpoint", "every", every, 1)
        if every is not None:
            if save_best_only:
                raise ArgumentError(
                    "callbacks.model_checkpoint: every=... and save_best_only=True exclude each other: which is best "
                    "is known only at the end of an epoch."
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
            if self.is_without_validation(logs):
                return
            value = self.get_monitored(logs)
            if not self.is_better(value, self.initial_value_threshold if self.best is None else self.best):
                return
            self.print_line(f"Epoch {epoch + 1}: {self.monitor} improved to {value:.5g}, saving")
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
        if path.endswith(MODEL_ENDINGS):
            (self.model.save_weights if self.save_weights_only else self.model.save)(path)
        elif self.save_weights_only:
            save(path, {"weights": self.model.named_variables()})
        else:
            self.model.save_checkpoint(path)


class BackupAndRestore(ModelCheckpoint):
    """Save a checkpoint in a folder while training, and continue from it if a training was interrupted.

    After a training that finished the checkpoint is deleted, unless ``delete_checkpoint`` is False.

    backup_dir: the folder.
    save_freq: ``"epoch"``, or a number of steps.
    delete_checkpoint: whether it is deleted after a training that finished.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pb.callbacks.backup_and_restore(folder).resumes_from.endswith("latest.safetensors")
    True
    """

    def __init__(
        self, backup_dir: str | os.PathLike[str], save_freq: str | int = "epoch", delete_checkpoint: bool = True
    ) -> None:
        super().__init__(os.path.join(os.fspath(backup_dir), "latest.safetensors"), "loss", save_freq=save_freq)
        self.delete_checkpoint = delete_checkpoint

    @property
    def resumes_from(self) -> str | None:
        return self.path

    def on_train_begin(self, logs: Logs) -> None:
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        super().on_train_begin(logs)

    def on_train_end(self, logs: Logs) -> None:
        super().on_train_end(logs)
        if self.delete_checkpoint and os.path.exists(self.path) and not self.model.stop_training:
            os.remove(self.path)


class TerminateOnNan(Callback):
    """Stop the training where the loss is not finite; without it, ``fit`` raises an error that says why it is not.

    The model keeps the weights of its last finite step.

    raise_error: whether to raise an error instead.

    >>> pb.callbacks.terminate_on_nan().stops_at_nan
    True
    """

    def __init__(self, raise_error: bool = False) -> None:
        self.stops_at_nan = not raise_error


class JsonLogger(Callback):
    """Write an object with the numbers of each epoch to a file of JSON lines.

    path: the file.
    append: whether lines are added to an existing file.

    >>> import os, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = pb.callbacks.json_logger(os.path.join(folder, "log.jsonl"))
    ...     log.on_train_begin({})
    ...     log.on_epoch_end(0, {"loss": 0.5})
    ...     print(pathlib.Path(log.path).read_text(), end="")
    {"epoch": 0, "loss": 0.5}
    """

    def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None:
        self.path, self.append = os.fspath(path), append

    def on_train_begin(self, logs: Logs) -> None:
        _check_folder("json_logger", self.path)
        if not self.append:
            open(self.path, "w", encoding="utf-8").close()

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        row = {"epoch": epoch, **{name: np.asarray(value).tolist() for name, value in logs.items()}}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


class TensorBoard(Callback):
    """Write event files that TensorBoard reads: losses and metrics, those of the validation in a folder of their own.

    ``update_freq`` is ``"epoch"``, ``"batch"`` or a number of batches, after which those of the batch are written too.

    log_dir: the folder of the event files.
    update_freq: ``"epoch"``, ``"batch"`` or a number of batches.

    >>> pb.callbacks.tensorboard("logs", update_freq=10).log_dir
    'logs'
    """

    def __init__(self, log_dir: str | os.PathLike[str] = "logs", update_freq: str | int = "epoch") -> None:
        if not is_whole_number(update_freq, 1) and update_freq not in ("epoch", "batch"):
            raise ArgumentError(
                "callbacks.tensorboard: update_freq must be 'epoch', 'batch' or a number of batches, got "
                f"{update_freq!r}."
            )
        self.log_dir, self.update_freq = os.fspath(log_dir), update_freq
        self._files: dict[str, EventFile] = {}
        self._steps = 0
        if update_freq != "epoch":
            vars(self)["on_batch_end"] = self._step  # a hook only where it is needed: logs of batches take time

    def _step(self, batch: int, logs: Logs) -> None:
        self._steps += 1
        if self._steps % (1 if self.update_freq == "batch" else int(self.update_freq)) == 0:
            for name, value in logs.items():
                if name not in ("batch", "size"):
                    self._get_file("train").add(f"batch_{name}", float(np.mean(value)), self._steps)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        for name, value in {**logs, "learning_rate": self.model.optimizer.learning_rate}.items():
            where = "validation" if name.startswith("val_") else "train"
            tag = f"epoch_{name.removeprefix('val_')}"
            self._get_file(where).add(tag, float(np.mean(value)), epoch)
        for file in self._files.values():
            file.flush()

    def on_train_end(self, logs: Logs) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}

    def _get_file(self, where: str) -> EventFile:
        if where not in self._files:
            self._files[where] = EventFile(os.path.join(self.log_dir, where))
        return self._files[where]


class CsvLogger(StatefulCallback):
    """Write a row of numbers to a CSV file after each epoch.

    A resumed training appends to the file, after removing the rows of epochs that are trained again.

    path: the file.
    separator: the text between two columns.
    append: whether lines are added to an existing file.

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
    """Set the learning rate before each epoch, by a function of its number, from 0 on, or of that and the rate.

    function: returns the rate.
    verbose: 1 prints a line when it acts.

    >>> pb.callbacks.learning_rate_schedule(lambda epoch: 0.1 / (epoch + 1)).function(1)
    0.05
    """

    def __init__(self, function: Callable[..., float], verbose: int = 0) -> None:
        if not callable(function):
            raise ArgumentError(
                "callbacks.learning_rate_schedule: expected a function of the number of the epoch, got "
                f"{type(function).__name__}."
            )
        self.function, self.verbose = function, verbose
        takes = signature(function).parameters.values()
        self._takes_rate = sum(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in takes) > 1

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        optimizer = self.model.optimizer
        rate = self.function(epoch, optimizer.learning_rate) if self._takes_rate else self.function(epoch)
        optimizer.set_learning_rate(rate)
        if self.verbose:
            print(f"Epoch {epoch + 1}: the learning rate is {rate:.5g}", file=sys.stderr)


class ReduceLrOnPlateau(MonitorCallback):
    """Multiply the learning rate by ``factor`` when a number has not improved for ``patience`` epochs.

    Afterwards no epochs are counted for ``cooldown`` epochs; the rate never gets below ``min_lr``.

    monitor: the name of the number that is watched.
    factor: what the rate is multiplied by.
    patience: for how many epochs.
    mode: ``"min"``, ``"max"``, or ``"auto"``: by the name.
    min_delta: a smaller change does not count as an improvement.
    cooldown: epochs after a reduction that do not count.
    min_lr: the least learning rate.
    verbose: 1 prints a line when it acts.

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
        verbose: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta, verbose)
        name = "callbacks.reduce_lr_on_plateau"
        self.factor = as_number(name, "factor", factor, 0, 1)
        if self.factor == 1:
            raise ArgumentError(f"{name}: factor must be less than 1, got {factor!r}.")
        self.patience = as_whole_number("callbacks.reduce_lr_on_plateau", "patience", patience, 0)
        self.cooldown = as_whole_number("callbacks.reduce_lr_on_plateau", "cooldown", cooldown, 0)
        self.min_lr = as_number(name, "min_lr", min_lr, 0)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        if self.is_without_validation(logs):
            return
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
                self.print_line(f"Epoch {epoch + 1}: the learning rate is {self.model.optimizer.learning_rate:.5g}")
                self.rest, self.wait = self.cooldown, 0


class SwapEmaWeights(Callback):
    """Validate, predict and save with the moving averages of an optimizer with ``use_ema=True``; train without them.

    swap_on_epoch: whether the averages are in the model from the end of each epoch to the beginning of the next, for
        a ``model_checkpoint`` after it in the list.

    >>> pb.callbacks.swap_ema_weights(swap_on_epoch=True).swap_on_epoch
    True
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        self.swap_on_epoch = swap_on_epoch

    def _swap(self, to_averages: bool) -> None:
        optimizer = self.model.optimizer
        if not optimizer.keeps_average:
            raise ArgumentError(f"callbacks.swap_ema_weights: {optimizer.name} was not made with use_ema=True.")
        optimizer.swap_averages(self.model.trainable_variables, to_averages)

    def on_test_begin(self, logs: Logs) -> None:
        self._swap(True)

    def on_test_end(self, logs: Logs) -> None:
        self._swap(False)

    def on_predict_begin(self, logs: Logs) -> None:
        self._swap(True)

    def on_predict_end(self, logs: Logs) -> None:
        self._swap(False)

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        self._swap(False)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        self._swap(self.swap_on_epoch)


def _check_folder(name: str, path: str) -> None:
    """Raise an error before the training if the folder to write to does not exist."""
    folder = os.path.dirname(path) or "."
    if "{" not in folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"callbacks.{name}: there is no folder '{folder}'. Make it first.")


early_stopping, model_checkpoint, csv_logger = EarlyStopping, ModelCheckpoint, CsvLogger
learning_rate_schedule, reduce_lr_on_plateau = LearningRateSchedule, ReduceLrOnPlateau
learning_rate_scheduler = LearningRateSchedule
swap_ema_weights = SwapEMAWeights = SwapEmaWeights
backup_and_restore, terminate_on_nan = BackupAndRestore, TerminateOnNan
json_logger, tensorboard = JsonLogger, TensorBoard
lambda_callback = custom_callback = LambdaCallback

install_answers("pb.callbacks")
