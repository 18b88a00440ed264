"""The trainer of a model: the work behind ``model.compile``, ``fit``, ``evaluate``, ``predict`` and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from pullback.compiler.api import compile as compiled
from pullback.core.suggestions import did_you_mean, snake_case
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, DataError, GradientError
from pullback.train.arguments import check_count
from pullback.train.data.dataset import Dataset
from pullback.train.io.checkpoints import (
    OptimizerCopy,
    copy_optimizer,
    read_checkpoint,
    restore_optimizer,
    write_checkpoint,
    write_model,
)
from pullback.train.io.saving import StrPath
from pullback.train.loop.callback import CallbackLike
from pullback.train.loop.examples import Arrays, DataLike, Examples, as_examples, as_pair, split_examples
from pullback.train.loop.history import History
from pullback.train.loop.model import TrainableModel
from pullback.train.loop.objectives import Loss, LossLike, Metric, MetricsLike, check_labels, find_loss, find_metrics
from pullback.train.loop.run import RunningMeans, TrainingRun
from pullback.train.optim import optimizers
from pullback.train.optim.step import Optimizer
from pullback.transforms.modifiers import stop_gradient
from pullback.transforms.variables import differentiate_by_variables
from pullback.typing import Value

__all__ = ["Trainer", "TrainerState"]

DEFAULTS: dict[str, tuple[float, ...]] = {
    "sgd": (0.01,),
    "momentum": (0.01, 0.9),
    "adagrad": (0.01,),
    "rmsprop": (0.001,),
}
VALIDATION_BATCH = 32  # for arrays beside a dataset, whose batches say nothing of these


class TrainerState(NamedTuple):
    """What a copy of a model needs to train on: the optimizer, losses and metrics."""

    optimizer: OptimizerCopy | None
    losses: Sequence[Loss]
    metrics: Sequence[Metric]
    eager: bool


class Trainer:
    """Trains and evaluates one model: has its optimizer, losses and metrics, and the compiled steps."""

    def __init__(self, model: TrainableModel) -> None:
        self._model = ref(model)  # weak, as the model has the trainer: it goes when its last user does
        self.optimizer: Optimizer | str | None = None
        self.stop_training = False
        self._losses: Sequence[Loss] = ()
        self._metrics: Sequence[Metric] = ()
        self._eager = False
        self._programs: dict[str, Callable[..., Any]] = {}
        self._programs_key: list[object] = []
        self._run: TrainingRun | None = None  # while fit runs

    @property
    def model(self) -> TrainableModel:
        """The model that is trained."""
        model = self._model()
        if model is None:
            raise ReferenceError("the model of this trainer does not exist any more.")
        return model

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers that a step returns: the loss and the metrics."""
        return ["loss", *(metric.name for metric in self._metrics)]

    def compile(self, optimizer: Optimizer | str, loss: LossLike, metrics: MetricsLike, eager: bool) -> None:
        """Set the optimizer, the losses and the metrics."""
        self.optimizer = as_optimizer(optimizer)
        losses: Sequence[Any] = loss if isinstance(loss, list | tuple) else [loss]
        name = self.model.name
        self._losses = [find_loss(one, f"{name}.compile: loss") for one in losses]
        self._metrics = find_metrics(metrics, self._losses[0], f"{name}.compile: metrics")
        self._eager, self._programs = bool(eager), {}

    def get_optimizer(self) -> Optimizer:
        """Return the optimizer; one that was set by its name is made now."""
        self.optimizer = as_optimizer(self.optimizer)
        return self.optimizer

    # ---- train

    def fit(
        self,
        x: DataLike,
        y: DataLike,
        epochs: int,
        batch_size: int,
        validation_split: float,
        validation_data: Dataset | Sequence[Any] | None,
        callbacks: CallbackLike,
        shuffle: bool,
        verbose: int | str,
        resume: StrPath | None,
    ) -> History:
        """Train on arrays."""
        self._check_ready("fit")
        model = self.model
        examples, held_out = as_examples(model, x, y), None
        if validation_data is not None:
            held_out = as_examples(model, *as_pair(validation_data, "fit: validation_data"))
        elif validation_split:
            examples, held_out = split_examples(examples, validation_split, model.name)
        self._check_labels(examples)
        batches = Dataset.from_arrays(examples)
        batches = batches.shuffle() if shuffle else batches
        validate = None
        if held_out is not None:
            self._check_validation(held_out)
            validate = partial(self.evaluate_batches, Dataset.from_arrays(held_out).batch(batch_size), batch_size)
        return self._train(batches.batch(batch_size), tuple, epochs, validate, callbacks, verbose, resume)

    def fit_dataset(
        self,
        dataset: Dataset,
        epochs: int,
        validation_data: Dataset | Sequence[Any] | None,
        callbacks: CallbackLike,
        verbose: int | str,
        resume: StrPath | None,
    ) -> History:
        """Train on the batches of a dataset."""
        self._check_ready("fit_dataset")
        model, what = self.model, f"{self.model.name}.fit_dataset"
        if not isinstance(dataset, Dataset):
            raise ArgumentError(
                f"{what}: expected a pb.data.Dataset of batches, got {type(dataset).__name__}. Arrays are for fit."
            )

        def convert(batch: Any) -> Examples:
            examples = as_examples(model, *as_pair(batch, what))
            if any(loss.sparse for loss in self._losses) or not model.variables:
                self._check_labels(examples)
            return examples

        held_out = validation_data
        if held_out is not None and not isinstance(held_out, Dataset):
            arrays = as_examples(model, *as_pair(held_out, f"{what}: validation_data"))
            held_out = Dataset.from_arrays(arrays).batch(VALIDATION_BATCH)
        validate = None if held_out is None else partial(self.evaluate_batches, held_out)
        return self._train(dataset, convert, epochs, validate, callbacks, verbose, resume)

    def train_on_batch(self, x: DataLike, y: DataLike) -> list[float]:
        """Make one step; return the loss before it and the metrics."""
        self._check_ready("train_on_batch")
        examples = as_examples(self.model, x, y)
        self._check_labels(examples)
        return [float(v) for v in self.make_train_step()(*examples)]

    def _train(
        self,
        batches: Dataset,
        convert: Callable[[Any], Examples],
        epochs: int,
        validate: Callable[[], dict[str, float]] | None,
        callbacks: CallbackLike,
        verbose: int | str,
        resume: StrPath | None,
    ) -> History:
        check_count(f"{self.model.name}.fit", "epochs", epochs)
        run = TrainingRun(self, batches, convert, epochs, validate, callbacks, verbose)
        if resume is not None:
            run.resume(resume)
        self._run, self.stop_training = run, False
        try:
            return run.train()
        finally:
            self._run = None

    # ---- evaluate

    def evaluate(self, x: DataLike | Dataset, y: DataLike | None, batch_size: int) -> float | list[float]:
        """Return the mean loss over arrays or a dataset; with metrics, a list of the loss and these."""
        self._check_ready("evaluate", trains=False)
        if isinstance(x, Dataset):
            means = self.evaluate_batches(x)
        else:
            examples = as_examples(self.model, x, y)
            self._check_labels(examples)
            means = self.evaluate_batches(Dataset.from_arrays(examples).batch(batch_size), batch_size)
        values = list(means.values())
        return values if self._metrics else values[0]

    def evaluate_batches(self, batches: Iterable[Any], compiled_size: int | None = None) -> dict[str, float]:
        """Return the mean loss and metrics over batches.

        Batches of ``compiled_size``, or of the size of the first one, run compiled; others, such as a smaller last
        one, run eagerly.
        """
        model, means, program = self.model, RunningMeans(self.metric_names), None
        for batch in batches:
            xs, ys = as_examples(model, *as_pair(batch, f"{model.name}.evaluate"))
            size = len(xs[0])
            compiled_size = compiled_size or size
            if program is None:
                program = self._test_step if self._eager else self._get_program("test", self._test_step)
            means.add((program if size == compiled_size else self._test_step)(xs, ys), size)
        if not means.count:
            raise DataError(f"{model.name}: there is nothing to evaluate: the dataset is empty.")
        return means.compute()

    def predict(self, x: DataLike, batch_size: int) -> Any:
        """Return the model's outputs for all examples, as arrays."""
        model = self.model
        xs, _ = as_examples(model, x, None)
        if not len(xs[0]):
            return _to_arrays(model(*xs))
        batches = Dataset.from_arrays(xs).batch(batch_size)
        runs_eagerly = self._eager or len(xs[0]) < batch_size
        program = model if runs_eagerly else self._get_program("predict", self._predict_step)
        outputs = [_to_arrays((program if len(batch[0]) == batch_size else model)(*batch)) for batch in batches]
        if isinstance(outputs[0], tuple):
            return tuple(np.concatenate(parts) for parts in zip(*outputs, strict=True))
        return np.concatenate(outputs)

    # ---- files and copies

    def save_model(self, path: StrPath) -> None:
        """Write the model, its variables, and what it is compiled with to a file."""
        named = all(loss.is_builtin for loss in self._losses) and all(metric.is_builtin for metric in self._metrics)
        names = [loss.name for loss in self._losses], [metric.name for metric in self._metrics]
        write_model(path, self.model, self._find_optimizer(), names if named else None)

    def save_checkpoint(self, path: StrPath) -> None:
        """Write variables, the optimizer's state and the position in training to a file."""
        run = self._run
        position, remembered = (None, None) if run is None else (run.state(), run.callbacks.state())
        write_checkpoint(path, self.model, self._find_optimizer(), position, remembered)

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Load variables and the optimizer's state; return the position in training and the callbacks' state."""
        return read_checkpoint(path, self.model, self._find_optimizer())

    def export_state(self) -> TrainerState:
        """Return what ``import_state`` of a copy's trainer takes."""
        optimizer = self._find_optimizer()
        copy = None if optimizer is None else copy_optimizer(self.model, optimizer)
        return TrainerState(copy, self._losses, self._metrics, self._eager)

    def import_state(self, state: TrainerState) -> None:
        """Take over what the trainer of the original model had, for the variables of this model."""
        copy, self._losses, self._metrics, self._eager = state
        self.optimizer = None if copy is None else restore_optimizer(self.model, copy)

    def _find_optimizer(self) -> Optimizer | None:
        return None if self.optimizer is None else self.get_optimizer()

    # ---- steps

    def compute_loss(self, xs: Arrays, ys: Arrays, training: bool) -> tuple[Any, list[Any]]:
        """Return the loss of a batch and its metrics, through which no gradient goes."""
        model = self.model
        out = model(*xs, training=training)
        outs = out if isinstance(out, tuple | list) else (out,)
        losses = self._losses if len(self._losses) > 1 else [self._losses[0]] * len(outs)
        if not len(outs) == len(ys) == len(losses):
            raise ArgumentError(
                f"{model.name}: it has {len(outs)} outputs, {len(losses)} losses and was given {len(ys)} targets."
            )
        costs = [loss(y, z) for loss, y, z in zip(losses, ys, outs, strict=True)]
        if training and (penalty := model.penalties()) is not None:
            costs.append(penalty)
        prediction = stop_gradient(outs[0]) if isinstance(outs[0], Tensor) else outs[0]
        return sum(costs[1:], costs[0]), [metric(ys[0], prediction) for metric in self._metrics]

    def make_train_step(self) -> Callable[[Arrays, Arrays], list[Any]]:
        """Return the function that makes a step and returns the loss and metrics, compiled unless eager."""
        return self._train_step if self._eager else self._get_program("train", self._train_step)

    def _train_step(self, xs: Arrays, ys: Arrays) -> list[Any]:
        metrics: list[Any] = []

        def compute_loss() -> Any:
            loss, metrics[:] = self.compute_loss(xs, ys, True)
            return loss

        optimizer = self.get_optimizer()
        value, grads = differentiate_by_variables(compute_loss, self.model.trainable_variables, optimizer.wants_rows)
        optimizer.apply_gradients(grads)
        return [value, *metrics]

    def _test_step(self, xs: Arrays, ys: Arrays) -> list[Any]:
        value, metrics = self.compute_loss(xs, ys, False)
        return [value, *metrics]

    def _predict_step(self, *xs: Value) -> Any:
        return self.model(*xs)

    def _get_program(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a compiled step; it is compiled anew if layers, variables or the optimizer have changed."""
        model = self.model
        key: list[object] = [self.optimizer, *((layer, layer.trainable) for layer in model.every_layer())]
        key += [id(v) for v in model.trainable_variables]
        if self._programs_key != key:
            self._programs_key, self._programs = key, {}
        if name not in self._programs:
            self._programs[name] = compiled(function)
        return self._programs[name]

    # ---- checks

    def _check_ready(self, what: str, trains: bool = True) -> None:
        model = self.model
        if self.optimizer is None or not self._losses:
            raise ArgumentError(f"{model.name}.{what}: say how to learn first: model.compile(optimizer, loss).")
        self.get_optimizer()
        if trains and model.variables and not model.trainable_variables:
            raise GradientError(
                f"{model.name}.{what}: none of its {len(model.variables)} variables is trainable. "
                "Set layer.trainable = True for what should learn."
            )

    def _check_labels(self, examples: Examples) -> None:
        """Raise an error for labels that a loss cannot take: compiled steps do not check values."""
        xs, ys = examples
        if not len(xs[0]):
            raise DataError(f"{self.model.name}: there are no examples: the arrays have shape {xs[0].shape}.")
        out = self.model(*[a[:1] for a in xs])
        outs = out if isinstance(out, tuple | list) else (out,)
        for i, (y, z) in enumerate(zip(ys, outs, strict=False)):
            loss = self._losses[i if len(self._losses) > 1 else 0]
            check_labels(loss, y, (len(y), *z.shape[1:]))

    def _check_validation(self, examples: Examples) -> None:
        """Run one example, so that validation data that does not fit is reported before the first epoch."""
        self._check_labels(examples)
        xs, ys = examples
        with np.errstate(all="ignore"):
            self._test_step(tuple(a[:1] for a in xs), tuple(a[:1] for a in ys))


def as_optimizer(given: Optimizer | str | None) -> Optimizer:
    """Return an optimizer; of a name, the one with default arguments."""
    if isinstance(given, Optimizer):
        return given
    known = optimizers.__all__
    name = snake_case(given) if isinstance(given, str) else ""
    if name not in known:
        raise ArgumentError(
            f"compile: optimizer must be one of pb.train's, or one of the names {', '.join(known)}; got {given!r}."
            f"{did_you_mean(given, known)}"
        )
    made: Optimizer = getattr(optimizers, name)(*DEFAULTS.get(name, ()))
    return made


def _to_arrays(out: Any) -> Any:
    return tuple(np.asarray(z) for z in out) if isinstance(out, tuple | list) else np.asarray(out)
