"""The trainer of a model: the work behind ``model.compile``, ``fit``, ``evaluate``, ``predict`` and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from operator import is_
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from pullback.compiler.api import compile as compiled
from pullback.core.convert import get_default_dtype
from pullback.core.variable import Variable
from pullback.diagnostics.nans import diagnose
from pullback.errors import ArgumentError, DataError, GradientError
from pullback.train.arguments import as_whole_number, check_count
from pullback.train.data.dataset import Dataset
from pullback.train.dry_runs import dry_run
from pullback.train.io.checkpoints import (
    OptimizerCopy,
    copy_optimizer,
    read_checkpoint,
    restore_optimizer,
    write_checkpoint,
    write_model,
)
from pullback.train.io.formats import write_layers_model
from pullback.train.io.saving import StrPath
from pullback.train.loop.added_losses import collect_losses
from pullback.train.loop.batches import Batches, LimitedBatches, as_batches
from pullback.train.loop.callback import CallbackLike, CallbackList
from pullback.train.loop.examples import (
    Arrays,
    ClassWeight,
    DataLike,
    Examples,
    WeightLike,
    as_inputs,
    as_parts,
    as_targets,
    cast_examples,
    flatten_examples,
    is_stream,
    join_examples,
    make_grouping,
    needs_cast,
    split_examples,
    split_rows,
)
from pullback.train.loop.history import History
from pullback.train.loop.metrics.metric import Mean, collect_updates
from pullback.train.loop.model import TrainableModel
from pullback.train.loop.objectives import Objectives, Settings, check_labels, describe_settings, find_loss, find_metric
from pullback.train.loop.own_steps import OwnSteps, pack_data
from pullback.train.loop.pools import TrainingPool
from pullback.train.loop.results import RunningResults, StepResults
from pullback.train.loop.run import EpochResults, FitSchedule, Stepper, TrainingRun
from pullback.train.masks import get_mask
from pullback.train.optim.named import as_optimizer
from pullback.train.optim.step import Optimizer
from pullback.typing import Shape, Value

EAGER_BATCHES = 16  # of a call of predict or evaluate, below which it runs eagerly: compiling takes longer than they do
EAGER_EPOCHS = 64  # in which batches of another size than the first run eagerly, for the same reason
DEFAULT_BATCH = 32  # examples


class TrainerState(NamedTuple):
    """What a copy of a model needs to train on: the optimizer, losses and metrics."""

    optimizer: OptimizerCopy | None
    settings: Settings | None
    eager: bool


class TrainingData(NamedTuple):
    """What ``fit`` trains on: arrays or batches, and how arrays become batches."""

    x: Any
    y: DataLike | None = None
    batch_size: int | None = None
    shuffle: bool = False
    sample_weight: WeightLike = None
    class_weight: ClassWeight = None

    @property
    def is_stream(self) -> bool:
        """Whether it gives batches itself."""
        return self.y is None and is_stream(self.x)

    @property
    def size(self) -> int:
        """How many examples make a batch."""
        return _find_batch_size(self.batch_size)

    def make_batches(self, arrays: Any, steps: int | None) -> Batches:
        """Return the batches of arrays."""
        dataset = Dataset.from_arrays(arrays)
        return as_batches((dataset.shuffle() if self.shuffle else dataset).batch(self.size), steps)


class Validation(NamedTuple):
    """What ``fit`` validates with, and when."""

    data: Any = None  # a pair, a triple with weights, a dataset or an iterable of batches
    split: float = 0.0
    batch_size: int | None = None
    steps: int | None = None
    freq: int | Sequence[int] = 1


class Prepared(NamedTuple):
    """What is known of a model once it was called."""

    dtype: np.dtype[Any]
    objectives: Objectives | None  # None before compile
    outputs: list[str]
    shapes: list[Shape]  # of the outputs, with a batch of 1


class Trainer:
    """Trains and evaluates one model: has its optimizer, losses and metrics, and the compiled steps."""

    def __init__(self, model: TrainableModel) -> None:
        self._model = ref(model)  # weak, as the model has the trainer: it goes when its last user does
        self.optimizer: Optimizer | str | None = None
        self.stop_training = False
        self.settings: Settings | None = None
        self._eager = False
        self._programs: dict[str, Callable[..., Any]] = {}
        self._structure: list[object] = []
        self._prepared: Prepared | None = None
        self._usual_size: int | None = None  # of batches
        self._results: RunningResults | None = None  # of calls of train_on_batch that are not reset
        self._run: TrainingRun | None = None  # while fit runs
        self.history: History | None = None  # of the latest fit
        self._batch: tuple[Sequence[Any], Sequence[Any]] | None = None  # masks and added losses, for compute_loss
        self._own: dict[str, OwnSteps] = {}  # steps that the model computes itself, by the name of the method
        self._own_objectives: Objectives | None = None
        self._own_metrics: list[Any] | None = None
        self._added: list[Any] = []  # losses that layers added in a step of the model's own

    @property
    def model(self) -> TrainableModel:
        """The model that is trained."""
        model = self._model()
        if model is None:
            raise ReferenceError("the model of this trainer does not exist any more.")
        return model

    @property
    def objectives(self) -> Objectives:
        """The losses and metrics of the outputs, once the model was called."""
        if self._prepared is None or self._prepared.objectives is None:
            raise ArgumentError(f"{self.model.name}: it was not trained or evaluated yet.")
        return self._prepared.objectives

    def begin_results(self) -> RunningResults:
        """Return the results of an epoch or evaluation that begins, once the model was called."""
        return RunningResults(self.objectives)

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers that ``evaluate`` returns: the loss and the metrics."""
        if self._prepared is not None and self._prepared.objectives is not None:
            return self._prepared.objectives.names
        outputs = self.model.output_names or ["output_1"]
        inner = self.model.list_metrics()
        return [] if self.settings is None else Objectives(self.settings, outputs, self.model.name, inner).names

    def compile(self, optimizer: Optimizer | str, settings: Settings, eager: bool) -> None:
        """Set the optimizer, the losses and the metrics."""
        self.optimizer = as_optimizer(optimizer)
        model = self.model
        if model.output_names is not None:
            Objectives(settings, model.output_names, model.name)  # raises an error for what is not known
        elif not isinstance(settings.loss, list | tuple | Mapping):
            _check_single(settings, model.name)
        self.settings, self._eager, self._results = settings, bool(eager), None
        self._own_objectives = self._own_metrics = None
        self._forget()

    def get_optimizer(self) -> Optimizer:
        """Return the optimizer; one that was set by its name is made now."""
        if not isinstance(self.optimizer, Optimizer):
            self.optimizer = as_optimizer(self.optimizer)
        return self.optimizer

    # ---- train

    def fit(
        self,
        data: TrainingData,
        validation: Validation,
        schedule: FitSchedule,
        method: str = "fit",
        pool: TrainingPool | None = None,
    ) -> History:
        """Train on arrays, or on the batches of a dataset or an iterable; with a pool, on shards."""
        self._check_compiled(method)
        if (own_steps := self._find_own_steps("train_step")) is not None:
            if pool is not None or data.class_weight is not None:
                raise ArgumentError(
                    f"{self.model.name}.{method}: with a train_step of its own, pool= and class_weight cannot be "
                    "given; sample_weight reaches the step as the third part of its data."
                )
            return self._fit_own(own_steps, data, validation, schedule, method)
        if pool is not None:
            if data.y is not None or data.sample_weight is not None or validation.split:
                raise ArgumentError(
                    f"{self.model.name}.{method}: with pool=, targets and weights are in the shards: "
                    "fit(pb.scale.Shards((x, y)), pool=pool). validation_data takes other data."
                )
            return self._fit_shards(pool, data, validation, schedule, method)
        if data.is_stream:
            if data.sample_weight is not None or validation.split:
                raise ArgumentError(
                    f"{self.model.name}.{method}: sample_weight and validation_split are for arrays. The batches of a "
                    "dataset may be triples of inputs, targets and weights; validation_data takes another dataset."
                )
            batches = as_batches(data.x, schedule.steps_per_epoch)
            convert = partial(self._convert_batch, method=method, class_weight=data.class_weight)
            return self._train(batches, convert, self._make_validation(validation, DEFAULT_BATCH), schedule, method)
        return self._fit_arrays(data, validation, schedule, method)

    def _fit_arrays(self, data: TrainingData, validation: Validation, schedule: FitSchedule, method: str) -> History:
        """Train on arrays; ``validation_split`` holds the last of the examples out."""
        examples = self._as_examples(data.x, data.y, data.sample_weight, data.class_weight)
        if validation.data is None and validation.split:
            # class weights are for training alone, as in Keras and TensorFlow.js
            unweighted = (
                examples if data.class_weight is None else self._as_examples(data.x, data.y, data.sample_weight)
            )
            _, held_out = split_examples(unweighted, validation.split, self.model.name)
            examples, _ = split_examples(examples, validation.split, self.model.name)
            validation = validation._replace(data=held_out)
        batches = data.make_batches(flatten_examples(examples), schedule.steps_per_epoch)
        convert = self._make_cast(examples)
        return self._train(batches, convert, self._make_validation(validation, data.size), schedule, method)

    def _fit_own(
        self, own_steps: OwnSteps, data: TrainingData, validation: Validation, schedule: FitSchedule, method: str
    ) -> History:
        """Train by the steps that the model computes itself, whose data have any structure."""
        if data.is_stream:
            batches, size = as_batches(data.x, schedule.steps_per_epoch), DEFAULT_BATCH
        else:
            arrays, size = pack_data(data.x, data.y, data.sample_weight), data.size
            if validation.data is None and validation.split:
                arrays, held_out = split_rows(arrays, validation.split, self.model.name)
                validation = validation._replace(data=held_out)
            batches = data.make_batches(arrays, schedule.steps_per_epoch)
        return self._train(
            batches, own_steps.convert, self._make_validation(validation, size), schedule, method, own_steps
        )

    def _find_own_steps(self, method: str) -> OwnSteps | None:
        """Return the steps that the model computes itself by a method of this name; None if it has none."""
        if not hasattr(self.model, method):
            return None
        self._refresh()
        return self._own.setdefault(method, OwnSteps(self, method, self._eager))

    def _fit_shards(
        self, pool: TrainingPool, data: TrainingData, validation: Validation, schedule: FitSchedule, method: str
    ) -> History:
        """Train on shards, whose parts of each batch workers compute."""
        steps = pool.begin_training(self, data.x, data.size, data.shuffle, data.class_weight)
        size = data.size if validation.batch_size is None else validation.batch_size
        evaluate = steps.make_validation(validation.data, size)
        if evaluate is None:
            validate = self._make_validation(validation, DEFAULT_BATCH)
        else:
            validate = partial(_validate_if_due, validation.freq, evaluate)
        limit = schedule.steps_per_epoch
        batches: Batches = steps if limit is None else LimitedBatches(steps, limit)
        return self._train(batches, lambda batch: ((batch,), (), ()), validate, schedule, method, steps)

    def train_on_batch(
        self,
        x: DataLike,
        y: DataLike | None,
        sample_weight: WeightLike,
        class_weight: ClassWeight,
        reset: bool,
        return_dict: bool,
    ) -> Any:
        """Make one step; return the loss before it and the metrics."""
        self._check_compiled("train_on_batch")
        if (own_steps := self._find_own_steps("train_step")) is not None:
            return own_steps.run_batch(pack_data(x, y, sample_weight), reset, return_dict)
        examples = self._run_front(self._as_examples(x, y, sample_weight, class_weight))
        results = self.make_train_step()(*examples)
        return self._format_batch(results, len(examples[0][0]), reset, return_dict)

    def test_on_batch(
        self, x: DataLike, y: DataLike | None, sample_weight: WeightLike, reset: bool, return_dict: bool
    ) -> Any:
        """Return the loss of a batch and the metrics."""
        self._check_compiled("test_on_batch", trains=False)
        if (own_steps := self._find_own_steps("test_step")) is not None:
            return own_steps.run_batch(pack_data(x, y, sample_weight), reset, return_dict)
        examples = self._run_front(self._as_examples(x, y, sample_weight))
        step = self._test_step if self._eager else self._get_program("test", self._test_step)
        return self._format_batch(step(*examples), len(examples[0][0]), reset, return_dict)

    def _format_batch(self, results: StepResults, size: int, reset: bool, return_dict: bool) -> Any:
        running = self._results
        if running is None or running.objectives is not self.objectives or (reset and running.count):
            running = self._results = RunningResults(self.objectives)
        if reset:
            found = running.compute_batch(results)
        else:
            running.add(results, size)
            found = running.compute()
        return found if return_dict else list(found.values())

    def _train(
        self,
        batches: Batches,
        convert: Callable[[Any], Examples],
        validate: Callable[[int], dict[str, Any] | None] | None,
        schedule: FitSchedule,
        method: str,
        stepper: Stepper | None = None,
    ) -> History:
        name = f"{self.model.name}.{method}"
        check_count(name, "epochs", schedule.epochs)
        as_whole_number(name, "initial_epoch", schedule.initial_epoch, 0)
        if schedule.steps_per_epoch is not None:
            check_count(name, "steps_per_epoch", schedule.steps_per_epoch)
        run = TrainingRun(self, self if stepper is None else stepper, batches, convert, validate, schedule)
        resume = run.callbacks.resumes_from if schedule.resume is None else schedule.resume
        if resume is not None:
            run.resume(resume)
        self._run, self.stop_training, self.history = run, False, run.history
        try:
            return run.train()
        finally:
            self._run = None

    # ---- evaluate

    def _make_validation(
        self, validation: Validation, batch_size: int
    ) -> Callable[[int], dict[str, Any] | None] | None:
        """Return the function that validates after an epoch of this number; None if there is nothing to validate."""
        if validation.data is None:
            return None
        if not isinstance(validation.freq, Collection):
            check_count(f"{self.model.name}.fit", "validation_freq", validation.freq)
        data, size = validation.data, batch_size if validation.batch_size is None else validation.batch_size
        if (own_steps := self._find_own_steps("test_step")) is not None:
            dataset = data if is_stream(data) else Dataset.from_arrays(data).batch(size)
            evaluate = partial(self.evaluate_batches, as_batches(dataset, validation.steps), own_steps=own_steps)
        elif is_stream(data):
            evaluate = partial(self.evaluate_batches, as_batches(data, validation.steps))
        else:
            examples = self._as_examples(*as_parts(data, f"{self.model.name}.fit: validation_data"))
            self._check_one(examples)
            evaluate = partial(self._evaluate_examples, examples, size, validation.steps)
        return partial(_validate_if_due, validation.freq, evaluate)

    def evaluate(
        self,
        x: Any,
        y: DataLike | None,
        batch_size: int | None,
        sample_weight: WeightLike,
        steps: int | None,
        return_dict: bool,
        callbacks: CallbackLike = (),
    ) -> Any:
        """Return the mean loss over arrays or batches; with metrics, a list of the loss and these."""
        self._check_compiled("evaluate", trains=False)
        hooks, size = CallbackList(callbacks, self.model), _find_batch_size(batch_size)
        if (own_steps := self._find_own_steps("test_step")) is not None:
            is_read = y is None and is_stream(x)
            dataset = x if is_read else Dataset.from_arrays(pack_data(x, y, sample_weight)).batch(size)
            found = self.evaluate_batches(as_batches(dataset, steps), hooks=hooks, own_steps=own_steps)
        elif y is None and is_stream(x):
            found = self.evaluate_batches(as_batches(x, steps), hooks=hooks)
        else:
            examples = self._as_examples(x, y, sample_weight)
            few = len(examples[0][0]) < EAGER_BATCHES * size
            found = self._evaluate_examples(examples, size, steps, few, hooks)
        values = list(found.values())
        return found if return_dict else values if len(values) > 1 else values[0]

    def _evaluate_examples(
        self,
        examples: Examples,
        batch_size: int,
        steps: int | None,
        runs_eagerly: bool = False,
        hooks: CallbackList | None = None,
    ) -> dict[str, Any]:
        """Return the loss and metrics over examples that were checked."""
        batches = as_batches(Dataset.from_arrays(flatten_examples(examples)).batch(batch_size), steps)
        return self.evaluate_batches(batches, self._make_cast(examples), batch_size, runs_eagerly, hooks)

    def evaluate_batches(
        self,
        batches: Iterable[Any],
        convert: Callable[[Any], Examples] | None = None,
        compiled_size: int | None = None,
        runs_eagerly: bool = False,
        hooks: CallbackList | None = None,
        own_steps: OwnSteps | None = None,
    ) -> dict[str, Any]:
        """Return the loss and metrics over batches, as users give them or as ``convert`` takes them.

        Batches of ``compiled_size``, or of the size of the first one, run compiled; others, such as a smaller last
        one, run eagerly, and so do all with ``runs_eagerly``.  ``hooks`` are callbacks; in ``fit``, those of it.
        ``own_steps`` are steps that the model computes itself.
        """
        convert = convert or (
            partial(self._convert_batch, method="evaluate") if own_steps is None else own_steps.convert
        )
        is_eager = runs_eagerly or self._eager
        hooks = self._run.callbacks if hooks is None and self._run is not None else hooks
        if hooks is None or not hooks.has_hooks("on_test"):
            return self._sum_results(batches, convert, compiled_size, is_eager, own_steps=own_steps).compute()
        hooks.call("on_test_begin", {})
        found = self._sum_results(batches, convert, compiled_size, is_eager, hooks, own_steps).compute()
        hooks.call("on_test_end", found)
        return found

    def _sum_results(
        self,
        batches: Iterable[Any],
        convert: Callable[[Any], Examples],
        compiled_size: int | None,
        runs_eagerly: bool,
        hooks: CallbackList | None = None,
        own_steps: OwnSteps | None = None,
    ) -> EpochResults:
        """Return the results over all batches; an error if there are none."""
        results: EpochResults | None = None
        for number, batch in enumerate(batches):
            if hooks is not None:
                hooks.call("on_test_batch_begin", number, {})
            examples = convert(batch)
            size = len(examples[0][0])
            compiled_size = compiled_size or size
            if results is None:
                results = self.begin_results() if own_steps is None else own_steps.begin_results()
                program = self._test_step if runs_eagerly else self._get_program("test", self._test_step)
            step = own_steps.step if own_steps is not None else program if size == compiled_size else self._test_step
            results.add(step(*examples), size)
            if hooks is not None and hooks.has_hooks("on_test_batch_end"):
                hooks.call("on_test_batch_end", number, results.compute())
        if results is None:
            raise DataError(f"{self.model.name}: there is nothing to evaluate: the dataset is empty.")
        return results

    def predict(self, x: Any, batch_size: int | None, steps: int | None, callbacks: CallbackLike = ()) -> Any:
        """Return the model's outputs for all examples, as arrays."""
        hooks = CallbackList(callbacks, self.model)
        hooks.call("on_predict_begin", {})
        outputs: list[Any] = []
        for number, compute in enumerate(self._list_predictions(x, _find_batch_size(batch_size), steps)):
            hooks.call("on_predict_batch_begin", number, {})
            outputs.append(compute())
            hooks.call("on_predict_batch_end", number, {"outputs": outputs[-1]})
        if not outputs:
            raise DataError(f"{self.model.name}.predict: there is nothing to predict: the dataset is empty.")
        hooks.call("on_predict_end", {})
        return _join_outputs(outputs)

    def _list_predictions(self, x: Any, size: int, steps: int | None) -> Iterator[Callable[[], Any]]:
        """Iterate over functions that compute the outputs of one batch each."""
        if is_stream(x):
            for batch in as_batches(x, steps):
                yield partial(self.predict_on_batch, _take_inputs(batch))
            return
        model = self.model
        xs = as_inputs(model, self.find_dtype(), x)
        if not len(xs[0]):
            yield lambda: _to_arrays(model(*xs))
            return
        self._refresh()
        batches = as_batches(Dataset.from_arrays(flatten_examples((xs, (), ()))).batch(size), steps)
        # By the number of batches of this call alone, so that the same call gives the same numbers every time.
        runs_eagerly = self._eager or len(xs[0]) < EAGER_BATCHES * size
        model = self._get_compiled_model()
        program = model if runs_eagerly else self._get_program("predict", self._predict_step)
        cast = self._make_cast((xs, (), ()))
        for batch in batches:
            inputs = cast(batch)[0]
            run = program if len(inputs[0]) == size else model
            yield lambda run=run, inputs=inputs: _to_arrays(run(*inputs))  # type: ignore[misc]

    def predict_on_batch(self, x: DataLike) -> Any:
        """Return the model's outputs for a batch, as arrays."""
        dtype = self.find_dtype()
        xs = as_inputs(self.model, dtype, x)
        self._refresh()
        program = self._get_compiled_model() if self._eager else self._get_program("predict", self._predict_step)
        return _to_arrays(program(*self._run_front(cast_examples(dtype, (xs, (), ())))[0]))

    # ---- files and copies

    def save_model(self, path: StrPath, with_training: bool = True) -> None:
        """Write the model, its variables, and what it is compiled with to a file, in the format of the path's end."""
        described = describe_settings(self.settings) if with_training and self.settings is not None else None
        optimizer = self._find_optimizer() if with_training else None
        if not write_layers_model(path, self.model, optimizer, described):
            write_model(path, self.model, optimizer, described)

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
        return TrainerState(copy, self.settings, self._eager)

    def import_state(self, state: TrainerState) -> None:
        """Take over what the trainer of the original model had, for the variables of this model."""
        copy, self.settings, self._eager = state
        self.optimizer = None if copy is None else restore_optimizer(self.model, copy)

    def _find_optimizer(self) -> Optimizer | None:
        return None if self.optimizer is None else self.get_optimizer()

    # ---- steps

    def compute_loss(
        self, xs: Arrays, ys: Arrays, ws: Arrays, training: bool, share: Any = None
    ) -> tuple[Any, list[Any], list[Any]]:
        """Return the loss of a batch, the losses of the outputs, and the statistics of the metrics.

        ``share`` is for a part of a batch: which share of the batch's examples it has.
        """
        model = self.model
        with collect_losses() as extra, collect_updates() as updates:
            out, masks = self._get_compiled_model().call_with_masks(*xs, training=training)
        if training and (penalty := model.penalties()) is not None:
            extra.append(penalty)
        outputs = [_widen(z, self.find_dtype()) for z in _list_outputs(out)]
        own_loss = model.find_own_loss()
        if own_loss is None:
            return self.objectives.compute(ys, outputs, ws, masks, extra, share, updates)
        if share is not None:
            raise ArgumentError(f"{model.name}: a compute_loss of its own is not the sum of parts, which pool= needs.")
        self._batch = masks, extra
        unpacked = [part[0] if len(part) == 1 else list(part) or None for part in (xs, ys, ws)]
        loss = own_loss(x=unpacked[0], y=unpacked[1], y_pred=out, sample_weight=unpacked[2], training=training)
        return loss, *self.objectives.measure(ys, outputs, ws, masks, updates)

    def compute_batch_loss(self, y: Any, y_pred: Any, sample_weight: Any) -> Any:
        """Return the loss that ``compile`` was given, for a ``compute_loss`` of the user's that adds to it."""
        objectives = self._make_objectives(y_pred)
        masks, extra = self._batch or self._find_batch_extras(y_pred)
        parts = [list(part) if isinstance(part, list | tuple) else [part] for part in (y, sample_weight)]
        weights = [] if sample_weight is None else parts[1]
        return objectives.compute(parts[0] if y is not None else [], _list_outputs(y_pred), weights, masks, extra)[0]

    def _make_objectives(self, y_pred: Any) -> Objectives:
        """Return the losses and metrics; of a model that was not called yet, for outputs like these."""
        if self._prepared is not None and self._prepared.objectives is not None:
            return self._prepared.objectives
        if self.settings is None:
            raise ArgumentError(f"{self.model.name}: the model is not compiled. Call model.compile(optimizer, loss).")
        if self._own_objectives is None:
            names, count = self.model.output_names, len(_list_outputs(y_pred))
            if names is None or len(names) != count:
                names = [f"output_{i + 1}" for i in range(count)]
            self._own_objectives = Objectives(self.settings, names, self.model.name)
        return self._own_objectives

    @contextmanager
    def collect_batch_losses(self) -> Iterator[None]:
        """Collect the losses that layers add in a ``with`` block, in which a step of the model's own is computed."""
        before, self._batch = self._batch, None
        try:
            with collect_losses() as self._added:
                yield
        finally:
            self._batch = before

    def _find_batch_extras(self, y_pred: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the masks of outputs, and the losses that layers and regularizers added in a step of the model."""
        penalty = self.model.penalties()
        return [get_mask(y) for y in _list_outputs(y_pred)], [*self._added, *([] if penalty is None else [penalty])]

    def list_own_metrics(self) -> list[Any]:
        """Return the metrics of a model with steps of its own: the mean loss, and those that ``compile`` was given."""
        if self.settings is None or self.settings.loss is None:
            return []
        if self._own_metrics is None:
            bound = Objectives(self.settings, self.model.output_names or ["output_1"], self.model.name).metrics
            self._own_metrics = [Mean("loss"), *(one.metric for one in bound)]
        return self._own_metrics

    def make_train_step(
        self, size: int | None = None, epoch: int = 0
    ) -> Callable[[Arrays, Arrays, Arrays], StepResults]:
        """Return the function that makes a step and returns losses and statistics, compiled unless eager.

        Batches of another ``size`` than the first, mostly the last one of each epoch, run eagerly in the first epochs.
        By the number of the epoch, not of the steps: a training that is resumed takes the same steps.
        """
        if self._usual_size is None:
            self._usual_size = size
        is_unusual = size is not None and size != self._usual_size and epoch < EAGER_EPOCHS
        if self._eager or is_unusual or not self.get_optimizer().is_compilable:
            return self._train_step
        return self._get_program("train", self._train_step)

    def _train_step(self, xs: Arrays, ys: Arrays, ws: Arrays) -> StepResults:
        optimizer = self.get_optimizer()
        results, grads = self._differentiate(xs, ys, ws, optimizer.wants_rows)
        optimizer.apply_gradients(grads)
        return results

    def _differentiate(
        self, xs: Arrays, ys: Arrays, ws: Arrays, wants_rows: Callable[[Variable], bool] | bool, share: Any = None
    ) -> tuple[StepResults, dict[Variable, Any]]:
        """Return losses and statistics of a batch, or of a part of one, and the gradients."""
        found: list[Any] = []

        def compute_loss() -> Any:
            loss, *found[:] = self.compute_loss(xs, ys, ws, True, share)
            return loss

        optimizer = self.get_optimizer()
        value, grads = optimizer.differentiate(compute_loss, self.model.trainable_variables, wants_rows)
        losses, statistics = found
        return [value, *losses, *chain.from_iterable(statistics)], grads

    def explain_nan(self, xs: Arrays, ys: Arrays, ws: Arrays) -> object:
        """Return a report of where NaN or infinity came from in a step."""
        return diagnose(lambda *xs: self.compute_loss(xs, ys, ws, True)[0])(*xs)

    # ---- parts of a batch, which workers compute

    def prepare_parts(self, batch: Any) -> None:
        """Find out what must be known of the model, from a batch of one example; raise an error for what cannot be."""
        optimizer = self.get_optimizer()
        if optimizer.get_config().get("lazy"):
            raise ArgumentError(
                f"{self.model.name}.fit: {optimizer.name} has lazy=True, which needs gradients of rows; those that "
                "workers compute with pool= are dense."
            )
        if optimizer.loss_scale.is_dynamic:
            raise ArgumentError(f"{self.model.name}.fit: workers of pool= do not know a dynamic loss scale.")
        self._check_one(self._as_examples(*as_parts(batch, f"{self.model.name}.fit")))
        if stateful := [bound.name for bound in self.objectives.metrics if bound.metric.keeps_state]:
            raise ArgumentError(
                f"{self.model.name}.fit: the metric {stateful[0]!r} has update_state, which workers of pool= cannot "
                "add up. Write measure and compute in its place."
            )

    def compute_part(self, batch: Any, share: float, class_weight: ClassWeight = None) -> list[Any]:
        """Return losses, statistics and gradients of a part of a batch, whose sums over all parts are the batch's.

        The gradient of a variable that the loss does not depend on is empty.
        """
        xs, ys, ws = self._convert_batch(batch, "fit", class_weight)
        program = self._part_step if self._eager else self._get_program("part", self._part_step)
        return [np.asarray(y) for y in program(xs, ys, ws, np.asarray(share, self.find_dtype()))]

    def _part_step(self, xs: Arrays, ys: Arrays, ws: Arrays, share: Any) -> list[Any]:
        results, grads = self._differentiate(xs, ys, ws, False, share)
        return [*results, *(grads.get(v, np.zeros(0)) for v in self.model.trainable_variables)]

    def apply_parts(self, totals: Sequence[Any]) -> StepResults:
        """Make a step with what all parts of a batch add up to; return its losses and statistics."""
        variables = self.model.trainable_variables
        at = len(totals) - len(variables)
        grads = [(g, v) for g, v in zip(totals[at:], variables, strict=True) if np.shape(g) == v.shape]
        self.get_optimizer().apply_gradients(grads)
        return totals[:at]

    def explain_batch(self, batch: Any, class_weight: ClassWeight = None) -> object:
        """Return a report of where NaN or infinity came from in a batch as users give it."""
        return self.explain_nan(*self._convert_batch(batch, "fit", class_weight))

    def evaluate_part(self, data: Any, batch_size: int) -> list[Any]:
        """Return the number of examples, the losses times it, and the metrics' statistics of a part of the data."""
        batches = as_batches(Dataset.from_arrays(data).batch(batch_size))
        convert = partial(self._convert_batch, method="evaluate")
        results: Any = self._sum_results(batches, convert, batch_size, self._eager)
        sums = [np.float64(results.count), *map(np.float64, results.sums)]
        return [*sums, *(np.asarray(x) for part in results.statistics for x in part)]

    def name_parts(self, totals: Sequence[Any]) -> dict[str, Any]:
        """Return losses and metrics by name, from the sums of what ``evaluate_part`` gave."""
        results = RunningResults(self.objectives)
        numbers = iter(totals)
        count, sums = int(next(numbers)), [float(next(numbers)) for _ in results.sums]
        statistics = [[next(numbers) for _ in range(size)] for size in self.objectives.sizes]
        results.restore({"count": count, "sums": sums, "statistics": statistics})
        return results.compute()

    def _test_step(self, xs: Arrays, ys: Arrays, ws: Arrays) -> StepResults:
        value, losses, statistics = self.compute_loss(xs, ys, ws, False)
        return [value, *losses, *chain.from_iterable(statistics)]

    def _predict_step(self, *xs: Value) -> Any:
        with collect_updates():  # which do not count
            return self._get_compiled_model()(*xs)

    # ---- layers for text, which run before a compiled step

    @cached_property
    def _split_model(self) -> tuple[TrainableModel, TrainableModel] | None:
        """The layers that run on the host and the rest, each as a model; None for a model without such layers."""
        return self.model.split_host_layers() if self.model.runs_on_host() and not self._eager else None

    def _get_compiled_model(self) -> TrainableModel:
        return self.model if self._split_model is None else self._split_model[1]

    def _run_front(self, examples: Examples) -> Examples:
        """Return a batch with the inputs of the compiled model."""
        if self._split_model is None:
            return examples
        out = self._split_model[0](*examples[0])
        return tuple(np.asarray(x) for x in _list_outputs(out)), *examples[1:]

    def _get_program(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a compiled step."""
        if name not in self._programs:
            self._programs[name] = compiled(function)
        return self._programs[name]

    # ---- what is known of the model

    def _refresh(self) -> None:
        """Forget compiled steps and what is known of the model if layers, variables or the optimizer changed."""
        now = [self.optimizer, *self.model.list_structure()[1:]]  # not the model, which it would keep alive
        if len(now) != len(self._structure) or not all(map(is_, now, self._structure)):
            self._forget()
            self._structure = now

    def _forget(self) -> None:
        self._programs, self._prepared, self._structure = {}, None, []
        self._usual_size, self._own = None, {}
        vars(self).pop("_split_model", None)

    def _prepare(self, xs: Arrays) -> Prepared:
        """Return what is known of the model; it is called with one example if that is not known yet."""
        self._refresh()
        if self._prepared is None:
            model = self.model
            with dry_run():
                out = model(*[a[:1] for a in xs])
            self._refresh()  # the call may have made variables
            model.named_variables()  # raises an error for two of one name, with which nothing could be saved
            names = list(out) if isinstance(out, dict) else model.output_names
            outs = _list_outputs(out)
            if names is None or len(names) != len(outs):
                names = [f"output_{i + 1}" for i in range(len(outs))]
            inner = model.list_metrics()
            objectives = None if self.settings is None else Objectives(self.settings, names, model.name, inner)
            self._prepared = Prepared(self._compute_dtype(), objectives, names, [tuple(z.shape) for z in outs])
        return self._prepared

    def find_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the model's floats."""
        return self._compute_dtype() if self._prepared is None else self._prepared.dtype

    def _compute_dtype(self) -> np.dtype[Any]:
        return next((v.dtype for v in self.model.variables if v.dtype.kind == "f"), get_default_dtype())

    def _as_examples(
        self, x: DataLike, y: DataLike | None, weight: WeightLike = None, class_weight: ClassWeight = None
    ) -> Examples:
        """Return inputs, targets and weights as arrays; raise an error for what the model or a loss cannot take."""
        name = self.model.name
        xs = as_inputs(self.model, self.find_dtype(), x)
        if not len(xs[0]):
            raise DataError(f"{name}: there are no examples: the arrays have shape {xs[0].shape}.")
        prepared = self._prepare(xs)
        ys, ws = as_targets(name, prepared.outputs, prepared.dtype, y, weight, class_weight)
        if prepared.objectives is not None:
            if not ys and all(loss is None for loss in prepared.objectives.losses):
                ys = (None,) * len(prepared.outputs)  # all loss is added by layers
            for loss, target, shape in zip(prepared.objectives.losses, ys, prepared.shapes, strict=False):
                if target is not None:
                    check_labels(loss, target, (len(target), *shape[1:]))
        return join_examples(name, xs, ys, ws)

    def _convert_batch(self, batch: Any, method: str, class_weight: ClassWeight = None) -> Examples:
        """Return a batch as users give it as arrays."""
        x, y, weight = as_parts(batch, f"{self.model.name}.{method}")
        return self._run_front(cast_examples(self.find_dtype(), self._as_examples(x, y, weight, class_weight)))

    def _make_cast(self, examples: Examples) -> Callable[[Any], Examples]:
        """Return the function that gives batches of these examples their structure and the dtype of the model."""
        dtype, group = self.find_dtype(), make_grouping(examples)
        if self._split_model is not None:
            return lambda batch: self._run_front(cast_examples(dtype, group(batch)))
        return (lambda batch: cast_examples(dtype, group(batch))) if needs_cast(dtype, examples) else group

    # ---- checks

    def _check_compiled(self, method: str, trains: bool = True) -> None:
        if self.optimizer is None or self.settings is None:
            raise ArgumentError(
                f"{self.model.name}.{method}: the model is not compiled. Call model.compile(optimizer, loss) first."
            )
        self.get_optimizer()
        if not trains or (self._prepared is not None and "train" in self._programs):
            return
        model = self.model
        if model.variables and not model.trainable_variables:
            raise GradientError(
                f"{model.name}.{method}: none of its {len(model.variables)} variables is trainable. "
                "Set layer.trainable = True for what should learn."
            )

    def _check_one(self, examples: Examples) -> None:
        """Run one example, so that validation data that does not fit is reported before the first epoch."""
        first = (tuple(None if a is None else a[:1] for a in part) for part in examples)
        with dry_run(), np.errstate(all="ignore"):
            self._test_step(*self._run_front(cast_examples(self.find_dtype(), tuple(first))))  # type: ignore[arg-type]


def _find_batch_size(batch_size: int | None) -> int:
    return DEFAULT_BATCH if batch_size is None else batch_size


def _validate_if_due(freq: int | Sequence[int], evaluate: Callable[[], dict[str, Any]], epoch: int) -> Any:
    """Return what is measured after an epoch of this number; None if it is not one of those that are validated."""
    is_due = (epoch + 1) in freq if isinstance(freq, Collection) else (epoch + 1) % freq == 0
    return evaluate() if is_due else None


def _check_single(settings: Settings, name: str) -> None:
    """Raise an error for a loss or metrics that are not known, of a model whose outputs are not known yet."""
    loss = None if settings.loss is None else find_loss(settings.loss, f"{name}.compile: loss")  # type: ignore[arg-type]
    listed = settings.metrics if isinstance(settings.metrics, list | tuple) else ()
    for metric in listed:
        if not isinstance(metric, list | tuple) and metric is not None:
            find_metric(metric, loss, f"{name}.compile: metrics")


def _widen(y: Any, dtype: np.dtype[Any]) -> Any:
    """Return an output in float32 if it is float16 but the model's variables are not: losses need the precision."""
    return y.astype(np.float32) if y.dtype == np.float16 != dtype else y


def _list_outputs(out: Any) -> Sequence[Any]:
    """Return the outputs of a call: one, several, or a dict of them."""
    return list(out.values()) if isinstance(out, dict) else out if isinstance(out, tuple | list) else (out,)


def _to_arrays(out: Any) -> Any:
    if isinstance(out, dict):
        return {name: np.asarray(z) for name, z in out.items()}
    return tuple(np.asarray(z) for z in out) if isinstance(out, tuple | list) else np.asarray(out)


def _join_outputs(outputs: list[Any]) -> Any:
    """Return the outputs of all batches as one."""
    first = outputs[0]
    if isinstance(first, dict):
        return {name: np.concatenate([out[name] for out in outputs]) for name in first}
    if isinstance(first, tuple):
        return tuple(np.concatenate(parts) for parts in zip(*outputs, strict=True))
    return np.concatenate(outputs)


def _take_inputs(batch: Any) -> Any:
    """Return the inputs of a batch: alone, or with targets and weights, which are not used."""
    if isinstance(batch, dict) and batch.keys() == {"xs", "ys"}:
        return batch["xs"]
    return batch[0] if isinstance(batch, tuple | list) and len(batch) in (1, 2, 3) else batch
