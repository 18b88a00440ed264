"""The base class of models: training, evaluation, files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from pullback.core.suggestions import did_you_mean
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, watch_variables
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import check_keywords
from pullback.train.io.formats import read_weights, write_weights
from pullback.train.io.model_json import describe_as_json
from pullback.train.io.saving import StrPath
from pullback.train.io.torch_names import ModuleMap
from pullback.train.loop.callback import CallbackLike
from pullback.train.loop.examples import ClassWeight, DataLike, WeightLike, is_stream, take_every_named
from pullback.train.loop.history import History
from pullback.train.loop.metrics.metric import Metric
from pullback.train.loop.objectives import LossLike, LossWeights, MetricsLike, Settings, resolve_custom
from pullback.train.loop.pools import TrainingPool
from pullback.train.loop.run import FitSchedule
from pullback.train.loop.trainer import Trainer, TrainingData, Validation
from pullback.train.masks import get_mask, set_mask
from pullback.train.nn.graphs import run_steps, sort_steps
from pullback.train.nn.layers.base import HasCall, Layer, R_co
from pullback.train.nn.layers.symbolic import SymbolicTensor
from pullback.train.nn.summary import format_summary, show_summary
from pullback.train.optim.step import Optimizer
from pullback.typing import Array, TensorLike, Value


@check_keywords
class Model(Layer):
    """A layer that can be trained; ``pb.sequential`` and ``pb.model`` make one.

    A model of your own has its layers in attributes, and ``call``.  ``fit`` calls ``train_step(data)`` of a class that
    has one, and ``evaluate`` its ``test_step(data)``, as in Keras.

    >>> class Twice(pb.Model):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = pb.layers.dense(3)
    ...         self.outer = pb.layers.dense(1)
    ...     def call(self, x):
    ...         return self.outer(np.tanh(self.inner(x))) + 1.0
    >>> model = Twice()
    >>> model(np.ones((5, 2))).shape
    (5, 1)
    >>> list(model.named_variables())
    ['inner/kernel', 'inner/bias', 'outer/kernel', 'outer/bias']
    """

    def __init__(self, name: str = "", trainable: bool = True, input_shape: Sequence[int] | None = None) -> None:
        Layer.__init__(self, name=name, trainable=trainable, input_shape=input_shape)

    @property
    def layers(self) -> list[Layer]:
        """The layers of the model."""
        return [part for _, part in self.parts() if isinstance(part, Layer)]

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """The symbolic inputs, in a list; a model that is a class of your own has none."""
        raise self._make_graph_error()

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """The symbolic outputs, in a list; a model that is a class of your own has none."""
        raise self._make_graph_error()

    def _make_graph_error(self) -> ArgumentError:
        return ArgumentError(
            f"{self.name}: a model that is a class of your own has no symbolic inputs and outputs. pb.sequential and "
            "pb.model make models that have them."
        )

    @property
    def input(self) -> Any:
        """The symbolic input; a list if there are several, a dict if the model was made with one.

        >>> model = pb.sequential([pb.layers.dense(4, name="features", input_shape=[3]), pb.layers.dense(1)])
        >>> pb.model(model.input, model.get_layer("features").output)(np.ones((2, 3))).shape
        (2, 4)
        """
        inputs = self.inputs
        return inputs[0] if len(inputs) == 1 else inputs

    @property
    def output(self) -> Any:
        """The symbolic output; a list if there are several, a dict if the model was made with one."""
        outputs = self.outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def get_layer(self, name: str | int | None = None, index: int | None = None) -> Layer:
        """Return the layer of this name, as ``summary`` shows it, or of this number.

        name: the name, or the number.
        index: the number, in place of a name.

        >>> pb.sequential([pb.layers.flatten(), pb.layers.dense(3)]).get_layer("dense_1").units
        3
        """
        if (name is None) == (index is None):
            raise ArgumentError(f"{self.name}.get_layer: give either the name of a layer or its index.")
        key = index if name is None else name
        found = {name: part for name, part in self.parts() if isinstance(part, Layer)}
        if isinstance(key, str) and key in found:
            return found[key]
        if isinstance(key, int) and -len(found) <= key < len(found):
            return self.layers[key]
        raise ArgumentError(
            f"{self.name}.get_layer: there is no layer {key!r}; there are {', '.join(found)}.{did_you_mean(key, found)}"
        )

    def params(self) -> dict[str, Any]:
        """Return the values of the trainable variables by their paths, as ``apply`` takes them.

        >>> pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])]).params()
        {'dense_1/kernel': Tensor([[1.], [1.]], dtype=float32), 'dense_1/bias': Tensor([0.], dtype=float32)}
        """
        return {name: v.held for name, v in self.named_variables().items() if v.trainable}

    @overload
    def apply(
        self: HasCall[Tensor], params: Mapping[str, Any], *inputs: TensorLike, training: bool = False
    ) -> Tensor: ...
    @overload
    def apply(self: HasCall[R_co], params: Mapping[str, Any], *inputs: TensorLike, training: bool = False) -> R_co: ...
    def apply(self, params: Mapping[str, Any], *inputs: TensorLike, training: bool = False) -> Any:
        """Return the output with these values in place of the variables': the model as a function of its parameters.

        Every transformation applies to it.

        params: values by the names of variables, as ``params()`` returns them.
        training: whether layers act as in training: dropout, batch statistics.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
        >>> slopes = pb.vmap(lambda x: pb.grad(lambda p: model.apply(p, x[None])[0, 0])(model.params()))(x)
        >>> slopes["dense_1/kernel"].shape
        (2, 2, 1)
        """
        places = self.named_variables()
        if unknown := [name for name in params if name not in places]:
            raise ArgumentError(
                f"{self.name}.apply: there is no variable {unknown[0]!r}; there are {', '.join(places) or 'none yet'}."
                f"{did_you_mean(unknown[0], places)}"
            )
        for name, value in params.items():
            if value.shape != places[name].shape:
                raise ShapeError(f"{self.name}.apply: {name} has shape {value.shape}, expected {places[name].shape}.")
        with watch_variables(VariableOverrides({id(places[name]): value for name, value in params.items()})):
            return self(*inputs, training=training)

    @overload
    def __call__(
        self,
        x: SymbolicTensor | Sequence[SymbolicTensor],
        *inputs: Any,
        training: bool | None = None,
        mask: Any = None,
        **settings: Any,
    ) -> SymbolicTensor: ...
    @overload
    def __call__(
        self: HasCall[Tensor], *inputs: Any, training: bool | None = None, mask: Any = None, **settings: Any
    ) -> Tensor: ...
    @overload
    def __call__(
        self: HasCall[R_co], *inputs: Any, training: bool | None = None, mask: Any = None, **settings: Any
    ) -> R_co: ...
    def __call__(self, *inputs: Any, mask: Any = None, **settings: Any) -> Any:
        if mask is None:
            return super().__call__(*inputs, **settings)
        before = [get_mask(x) for x in inputs]
        masks = mask if isinstance(mask, list | tuple) else [mask]
        for x, m in zip(inputs, masks, strict=False):
            set_mask(x, m)
        try:
            return super().__call__(*inputs, **settings)
        finally:
            for x, m in zip(inputs, before, strict=True):
                set_mask(x, m)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return the mask of the output, which its layers compute.

        inputs: the inputs.
        mask: their mask.
        """
        listed = inputs if isinstance(inputs, list | tuple) else [inputs]
        outputs: Any = self(*listed, mask=mask)
        return get_mask(outputs)

    def _set_output_mask(self, y: Any, xs: Any, masks: Any) -> None:
        """Do nothing: the last layer has set the mask."""

    def build(self, *shapes: Any) -> None:
        """Make the variables for inputs of these shapes, without the batch, by running on zeros."""
        self._built = True
        try:
            self._run_on_zeros(shapes, 1, {})
            self._shapes = tuple(tuple(shape) for shape in shapes)
        except BaseException:
            self._built = False
            raise

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], object] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
    ) -> None:
        """Print a table of the layers, their output shapes and their parameter counts.

        line_length: accepted, as other libraries have it; the columns are as wide as their text.
        positions: accepted, as other libraries have it.
        print_fn: a function that is called with each line, in place of ``print``.
        expand_nested: whether the layers of models in the model, and of layers with layers, are listed too.
        show_trainable: whether a column says which layers are trained.
        """
        for line in format_summary(self, expand_nested, show_trainable).splitlines():
            (print_fn or print)(line)

    def __repr__(self) -> str:
        """Return the model's kind, its name, and how much there is in it; ``summary`` has the table."""
        layers, count = len(self.layers), self.count_params()
        plural = "s" * (layers != 1)
        return f"<{type(self).__name__} {self.name!r}: {layers} layer{plural}, {count:,} parameters>"

    def _repr_html_(self) -> str:
        return show_summary(self)

    # ---- training

    _internal = ("get_trainer",)  # what dir() of a model does not list

    @cached_property
    def _trainer(self) -> Trainer:
        return Trainer(self)

    def get_trainer(self) -> Trainer:
        """Return what trains the model, which workers of a pool call."""
        return self._trainer

    @property
    def optimizer(self) -> Any:
        """The optimizer that ``compile`` was given; another one, or its name, can be set."""
        return self._trainer.optimizer

    @optimizer.setter
    def optimizer(self, optimizer: Optimizer | str | None) -> None:
        self._trainer.optimizer = optimizer

    @property
    def loss(self) -> Any:
        """The loss, or those of the outputs, as ``compile`` was given them; None before."""
        return None if self._trainer.settings is None else self._trainer.settings.loss

    @property
    def metrics(self) -> list[Any]:
        """The metrics as ``compile`` was given them; empty before.

        Of a class with a ``train_step`` of its own these are objects: the mean loss, those of ``compile``, and those in
        attributes.  They are reset when an epoch begins.
        """
        if hasattr(self, "train_step"):
            return [*self._trainer.list_own_metrics(), *(x for x in vars(self).values() if isinstance(x, Metric))]
        metrics: Any = () if self._trainer.settings is None else self._trainer.settings.metrics
        return list(metrics) if isinstance(metrics, list | tuple) else [metrics]

    def list_metrics(self) -> list[Metric]:
        """Return the metrics that its layers, and itself, have in attributes, and update in ``call``."""
        every = (x for layer in self.iterate_layers() for x in vars(layer).values() if isinstance(x, Metric))
        return list(dict.fromkeys(x for x in every if not x.keeps_state))

    @property
    def history(self) -> History | None:
        """What the latest ``fit`` returned; None before."""
        return self._trainer.history

    @property
    def stop_training(self) -> bool:
        """Whether training is to end after this step; callbacks set it."""
        return self._trainer.stop_training

    @stop_training.setter
    def stop_training(self, stop: bool) -> None:
        self._trainer.stop_training = stop

    @property
    def metrics_names(self) -> list[str]:
        """The names of the numbers that ``evaluate`` returns.

        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
        >>> model.compile("sgd", "mse", metrics=["mae"])
        >>> model.metrics_names
        ['loss', 'mae']
        """
        return self._trainer.metric_names

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, for dicts of arrays; empty if they have none."""
        return []

    @property
    def output_names(self) -> list[str] | None:
        """The names of the outputs, for dicts of targets and in histories; None if they are not known yet."""
        return None

    def call_with_masks(self, *inputs: Any, training: bool = False) -> tuple[Any, Sequence[Any]]:
        """Return what a call returns, and the mask of each output, None for one without; empty if none has one."""
        out = self(*inputs, training=training)
        outputs = list(out.values()) if isinstance(out, dict) else out
        masks = [get_mask(y) for y in (outputs if isinstance(outputs, list | tuple) else [outputs])]
        return out, masks if any(m is not None for m in masks) else ()

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        """Return the loss of a batch; a model of your own may compute another one, from the same arguments.

        x: the inputs; a list if there are several.
        y: the targets; a list if there are several.
        y_pred: the outputs.
        sample_weight: the weights of the examples, or None.
        training: whether it is for a training step.

        >>> class Shifted(pb.Model):
        ...     def call(self, x):
        ...         return x + 0.0
        ...     def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        ...         return super().compute_loss(x, y, y_pred, sample_weight, training) + 1.0
        >>> model = Shifted()
        >>> model.compile("sgd", "mse")
        >>> model.evaluate(np.ones((4, 1)), np.ones((4, 1)))
        1.0
        """
        return self._trainer.compute_batch_loss(y, y_pred, sample_weight)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Update the metrics that ``compile`` was given, in a ``train_step`` of your own; return all results by name.

        x: the inputs, which are not used.
        y: the targets.
        y_pred: the outputs.
        sample_weight: the weights of the examples, or None.
        """
        for metric in self._trainer.list_own_metrics()[1:]:
            metric.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the results of ``metrics`` by name, as a ``train_step`` of your own returns them."""
        if not hasattr(self, "train_step"):
            raise ArgumentError(
                f"{self.name}: compute_metrics and get_metrics_result are for a train_step of the model's own, and it "
                "has none: fit, evaluate and test_on_batch return its metrics."
            )
        return {metric.name: metric.result() for metric in self.metrics}

    def find_own_loss(self) -> Callable[..., Any] | None:
        """Return ``compute_loss`` if the class has one of its own."""
        return None if type(self).compute_loss is Model.compute_loss else self.compute_loss

    def runs_on_host(self) -> bool:
        return any(part.runs_on_host() for _, part in self.parts() if isinstance(part, Layer))

    def split_host_layers(self) -> tuple[Model, Model] | None:
        """Return the model in two: up to the last layer that cannot be compiled, and the rest; None if all can be."""
        return None

    def compile(
        self,
        optimizer: Optimizer | str = "rmsprop",
        loss: LossLike = None,
        metrics: MetricsLike = (),
        eager: bool = False,
        loss_weights: LossWeights = None,
        weighted_metrics: MetricsLike = (),
        run_eagerly: bool = False,
        *,
        steps_per_execution: int | None = 1,
        jit_compile: bool | str = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Set how to train: an optimizer or its name, a loss, and metrics, names, functions or ``pb.metrics``.

        Of a model with several outputs each argument may be a list, or a dict by the outputs' names; the loss is the
        sum of theirs, each times its ``loss_weights``.  ``weighted_metrics`` take sample weights into account.  A
        training step is compiled, unless ``eager`` (or Keras's ``run_eagerly``); both give the same numbers.

        optimizer: an optimizer of ``pb.train``, or its name.
        loss: a loss, its name, or a list or dict of one for each output.
        metrics: a list of metrics: names, functions or objects; of several outputs a list or dict of lists.
        steps_per_execution: accepted, as Keras has it: it changes no result.
        jit_compile: accepted, as Keras has it; False runs steps op by op, like ``eager``.
        auto_scale_loss: accepted, as Keras has it: no layer has mixed precision here.

        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
        >>> model.compile(optimizer=pb.train.adam(0.01), loss="mean_squared_error", metrics=["mae"])
        """
        losses, measured, weighted = (resolve_custom(setting) for setting in (loss, metrics, weighted_metrics))
        settings = Settings(losses, measured, loss_weights, weighted)
        self._trainer.compile(optimizer, settings, eager or run_eagerly or jit_compile is False)

    def fit(
        self,
        x: Any,
        y: DataLike | None = None,
        epochs: int = 1,
        batch_size: int | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        callbacks: CallbackLike = (),
        shuffle: bool = True,
        verbose: int | str = "auto",
        resume: StrPath | None = None,
        *,
        sample_weight: WeightLike = None,
        class_weight: ClassWeight = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
        pool: TrainingPool | None = None,
    ) -> History:
        """Train on arrays, on a ``pb.data.Dataset`` of batches, or on any iterable of batches.

        Ctrl-C stops after the current step.  A loss that is not finite raises an error that says where that came from,
        and leaves the model as it was before.

        x: Inputs with the examples along the first axis: an array, a list of one for each input, or a dict by
            their names.  Or batches: pairs of inputs and targets, or triples with weights.
        y: Targets: an array, a list of one for each output, or a dict by their names.
        epochs: The number of the epoch to end with.
        batch_size: How many examples make a step; 32 unless it is given.
        validation_split: The fraction of the examples, the last ones, that are used for validation only.
        validation_data: A pair of inputs and targets, or a triple with weights, or batches, to validate with.
        callbacks: One of ``pb.callbacks``, a dict of functions, or a list of these.
        shuffle: Whether the examples of arrays are shuffled in every epoch.
        verbose: 0 for nothing, 2 for a line for each epoch; else a bar in terminals and notebooks, lines elsewhere.
        resume: A file that ``callbacks.model_checkpoint`` writes: if it exists, training continues from it.
        sample_weight: A weight of each example, or of each step of each; of several outputs like ``y``.
        class_weight: A dict from class to weight; of several outputs a dict of these, or a list.
        initial_epoch: The number of the epoch to begin with.
        steps_per_epoch: How many batches make an epoch; the next one continues there.
        validation_steps: How many batches to validate with.
        validation_batch_size: How many examples of ``validation_data`` make a batch.
        validation_freq: Validate after every so many epochs, or after those in a list, the first being 1.
        pool: Workers, a ``pb.scale.Pool``, that compute the gradients; ``x`` is then ``pb.scale.Shards`` of pairs
            of inputs and targets, or triples with weights, and every shard gives its part of each batch.

        >>> pb.random.seed(0)
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> history = model.fit(x, 3 * x + 1, epochs=200, batch_size=16)
        >>> model.predict(np.array([[0.0], [1.0]])).round(1)
        array([[1.],
               [4.]], dtype=float32)
        """
        validation = Validation(
            validation_data, validation_split, validation_batch_size, validation_steps, validation_freq
        )
        schedule = FitSchedule(epochs, initial_epoch, steps_per_epoch, callbacks, verbose, resume)
        data = TrainingData(x, y, batch_size, shuffle, sample_weight, class_weight)
        return self._trainer.fit(data, validation, schedule, pool=pool)

    def fit_dataset(
        self,
        dataset: Any,
        epochs: int = 1,
        validation_data: Any = None,
        callbacks: CallbackLike = (),
        verbose: int | str = "auto",
        resume: StrPath | None = None,
        *,
        batches_per_epoch: int | None = None,
        class_weight: ClassWeight = None,
        initial_epoch: int = 0,
        validation_batches: int | None = None,
        validation_batch_size: int | None = None,
    ) -> History:
        """Train on the batches of a dataset: pairs of inputs and targets.  ``fit(dataset)`` is the same.

        dataset: batches: pairs of inputs and targets, or triples with weights.
        epochs: the number of the epoch to end with.
        validation_data: batches, or a pair of inputs and targets, to validate with.
        callbacks: one of ``pb.callbacks``, a dict of functions, or a list of these.
        verbose: 0 for nothing, 2 for a line for each epoch; else a bar in terminals and notebooks, lines elsewhere.
        resume: a file of a checkpoint to continue from, if it exists.
        batches_per_epoch: how many batches make an epoch.
        class_weight: a dict from class to weight.
        initial_epoch: the number of the epoch to begin with.
        validation_batches: how many batches to validate with.
        validation_batch_size: how many examples make a batch where validation data are arrays.

        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> data = pb.data.Dataset.from_arrays((x, 3 * x)).shuffle(seed=1).batch(16)
        >>> model.fit_dataset(data, epochs=2).epochs
        [0, 1]
        """
        if not is_stream(dataset):
            raise ArgumentError(
                f"{self.name}.fit_dataset: expected a pb.data.Dataset or another iterable of batches, got "
                f"{type(dataset).__name__}. Arrays are for fit."
            )
        validation = Validation(validation_data, 0.0, validation_batch_size, validation_batches)
        schedule = FitSchedule(epochs, initial_epoch, batches_per_epoch, callbacks, verbose, resume)
        data = TrainingData(dataset, class_weight=class_weight)
        return self._trainer.fit(data, validation, schedule, "fit_dataset")

    def train_on_batch(
        self,
        x: DataLike,
        y: DataLike | None = None,
        sample_weight: WeightLike = None,
        class_weight: ClassWeight = None,
        reset: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """Make one step with these examples; return the loss before it, and the metrics, as a list or a dict.

        Without ``reset`` they are over all batches since the latest call with it.

        x: the inputs.
        y: the targets.
        sample_weight: a weight of each example.
        class_weight: a dict from class to weight.
        return_dict: whether the numbers come in a dict by name.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="zeros", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> model.train_on_batch(np.ones((2, 1)), np.ones((2, 1)))
        [1.0]
        """
        return self._trainer.train_on_batch(x, y, sample_weight, class_weight, reset, return_dict)

    def test_on_batch(
        self,
        x: DataLike,
        y: DataLike | None = None,
        sample_weight: WeightLike = None,
        reset: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """Return the loss of these examples and the metrics, as a list or a dict.

        x: the inputs.
        y: the targets.
        sample_weight: a weight of each example.
        reset: whether metrics begin anew.
        return_dict: whether the numbers come in a dict by name.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="zeros", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error", metrics=["mae"])
        >>> model.test_on_batch(np.ones((2, 1)), np.ones((2, 1)), return_dict=True)
        {'loss': 1.0, 'mae': 1.0}
        """
        return self._trainer.test_on_batch(x, y, sample_weight, reset, return_dict)

    def evaluate(
        self,
        x: Any,
        y: DataLike | None = None,
        batch_size: int | None = None,
        sample_weight: WeightLike = None,
        steps: int | None = None,
        verbose: int | str = 0,
        return_dict: bool = False,
        callbacks: CallbackLike = (),
    ) -> Any:
        """Return the mean loss over arrays, or over batches; with metrics a list of the loss and these, or a dict.

        ``steps`` is how many batches are read; ``verbose`` is accepted, and nothing is shown.

        x: the inputs, as ``fit`` takes them.
        y: the targets.
        batch_size: how many examples are computed at once; 32 unless it is given.
        sample_weight: a weight of each example.
        return_dict: whether the numbers come in a dict by name.
        callbacks: callbacks whose ``on_test_...`` methods are called.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error", metrics=["mae"])
        >>> model.evaluate(np.ones((2, 1)), np.zeros((2, 1)))
        [1.0, 1.0]
        """
        return self._trainer.evaluate(x, y, batch_size, sample_weight, steps, return_dict, callbacks)

    def evaluate_dataset(self, dataset: Any, batches: int | None = None, verbose: int | str = 0) -> Any:
        """Return the mean loss over the batches of a dataset, or over the first ``batches``; like ``evaluate``.

        dataset: batches: pairs of inputs and targets, or triples with weights.
        verbose: accepted as in Keras; nothing is shown.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> model.evaluate_dataset(pb.data.Dataset.from_arrays((np.ones((4, 1)), np.zeros((4, 1)))).batch(2))
        1.0
        """
        return self._trainer.evaluate(dataset, None, None, None, batches, False)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = 0,
        steps: int | None = None,
        callbacks: CallbackLike = (),
    ) -> Array:
        """Return the outputs for these examples, or for batches of them, as arrays.

        x: the inputs, as ``fit`` takes them.
        batch_size: how many examples are computed at once; 32 unless it is given.
        verbose: accepted as in Keras; nothing is shown.
        steps: how many batches to take, where ``x`` is batches.
        callbacks: callbacks whose ``on_predict_...`` methods are called.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> model.predict([[1.0, 2.0], [3.0, 4.0]])
        array([[3.],
               [7.]], dtype=float32)
        """
        if hasattr(self, "predict_step"):
            raise ArgumentError(
                f"{self.name}.predict does not call {type(self).__name__}.predict_step. Write what it returns in call, "
                "or predict in a loop of your own."
            )
        outputs: Array = self._trainer.predict(x, batch_size, steps, callbacks)
        return outputs

    def predict_on_batch(self, x: DataLike) -> Array:
        """Return the outputs for one batch, as arrays.

        x: the inputs.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> model.predict_on_batch(np.array([[1.0, 2.0]]))
        array([[3.]], dtype=float32)
        """
        outputs: Array = self._trainer.predict_on_batch(x)
        return outputs

    def execute(self, inputs: Any, outputs: str | Sequence[str]) -> Any:
        """Return the outputs of layers inside the model, for these inputs, as in TensorFlow.js.

        inputs: an array, a list of one for each input, or a dict by their names.
        outputs: the name of a layer, or a list of names.

        >>> model = pb.sequential([pb.layers.dense(4, name="h", input_shape=[3]), pb.layers.dense(2)])
        >>> model.execute(np.ones((5, 3)), "h").shape
        (5, 4)
        """
        wanted = [self.get_layer(name).output for name in ([outputs] if isinstance(outputs, str) else outputs)]
        if isinstance(inputs, Mapping):
            inputs = take_every_named(inputs, self.input_names, f"{self.name}.execute: inputs")
        listed = inputs if isinstance(inputs, list | tuple) else [inputs]
        if len(listed) != len(self.inputs):
            raise ArgumentError(f"{self.name}.execute: expected {len(self.inputs)} inputs, got {len(listed)}.")
        values = {id(p): x for p, x in zip(self.inputs, listed, strict=True)}
        run_steps(sort_steps(self.inputs, wanted, self.name), values)
        results = tuple(values[id(p)] for p in wanted)
        return results[0] if isinstance(outputs, str) else results

    # ---- files and copies

    def save(self, path: StrPath, overwrite: bool = True, include_optimizer: bool = True) -> None:
        """Write the model to a file: layers, variables, and what it is compiled with.  ``pb.load_model`` reads it.

        A path that ends in ``.json``, or a folder, is written for TensorFlow.js; ``.keras`` and ``.h5`` for Keras.

        path: the file; its ending says of which kind it is.
        overwrite: whether a file of this name is replaced; else that is an error.
        include_optimizer: whether what it is compiled with is written.

        >>> import os, tempfile
        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.safetensors")
        ...     model.save(path)
        ...     pb.load_model(path).predict([[1.0, 2.0]])
        array([[3.]], dtype=float32)
        """
        _check_overwrite(path, overwrite)
        self._trainer.save_model(path, include_optimizer)

    def save_weights(self, path: StrPath, map: ModuleMap | None = None, overwrite: bool = True) -> None:
        """Write the variables alone; ``load_weights`` reads them.

        A path that ends in ``.h5`` is written for Keras, ``.json`` for TensorFlow.js, others as safetensors; with
        ``map``, as a state dict of PyTorch: see ``load_weights``.

        path: the file; its ending says of which kind it is.
        overwrite: whether a file of this name is replaced; else that is an error.

        >>> import os, tempfile
        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> other = pb.sequential([pb.layers.dense(1, input_shape=[2])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save_weights(os.path.join(folder, "weights.safetensors"))
        ...     other.load_weights(os.path.join(folder, "weights.safetensors"))
        >>> other.predict([[1.0, 2.0]])
        array([[3.]], dtype=float32)
        """
        _check_overwrite(path, overwrite)
        write_weights(path, self, map)

    def load_weights(self, path: StrPath, map: ModuleMap | None = None, skip_mismatch: bool = False) -> None:
        """Load the variables from a file of ``save_weights``, Keras (``.h5``) or TensorFlow.js (``model.json``).

        Every name and shape must match, or nothing is assigned, unless ``skip_mismatch``.  With ``map`` the file is a
        state dict of PyTorch in safetensors: a dict from its modules to layers here, or ``"torch"`` if they have the
        same names.  Axes, gates and projections are put in order.

        path: the file.
        skip_mismatch: whether variables that the file does not have, or has in another shape, keep their values, with
            a warning that names them.

        >>> import os, tempfile
        >>> model = pb.sequential([pb.layers.dense(2, kernel_initializer="ones", input_shape=[3])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "linear.safetensors")
        ...     model.save_weights(path, map={"fc": "dense_1"})
        ...     {name: x.shape for name, x in pb.train.load(path).items()}
        ...     model.load_weights(path, map={"fc": "dense_1"})
        {'fc.weight': (2, 3), 'fc.bias': (2,)}
        """
        read_weights(path, self, map, skip_mismatch)

    def to_json(self) -> str:
        """Return the layers and their arguments as JSON text in Keras's form, without the weights.

        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
        >>> pb.model_from_json(model.to_json()).output_shape((2,))
        (1,)
        """
        return describe_as_json(self)

    def save_checkpoint(self, path: StrPath) -> None:
        """Write variables, the optimizer's state and the position in training, for ``fit(resume=path)``.

        path: the file.
        """
        self._trainer.save_checkpoint(path)

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Load variables and the optimizer's state; return the position in training and the callbacks' state.

        path: the file.
        """
        return self._trainer.load_checkpoint(path)

    def __getstate__(self) -> dict[str, Any]:
        state = {key: x for key, x in vars(self).items() if key != "_trainer"}
        return state | {"_trainer": self._trainer.export_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({key: x for key, x in state.items() if key != "_trainer"})
        self._trainer.import_state(state["_trainer"])


def _check_overwrite(path: StrPath, overwrite: bool) -> None:
    if not overwrite and os.path.isfile(path):
        raise ArgumentError(f"save: there is a file {os.fspath(path)!r} already, and overwrite=False.")


class VariableOverrides:
    """A watcher of variable reads: some variables read as other values."""

    level = 0
    writes = False

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values

    def on_read(self, v: Variable, value: Value) -> Any:
        return self.values.get(id(v), value)
