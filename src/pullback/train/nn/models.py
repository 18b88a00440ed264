"""Models: sequential, functional, or a class of your own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from inspect import signature
from typing import Any

from pullback.core.convert import as_shape
from pullback.core.suggestions import did_you_mean
from pullback.core.variable import Variable, watch_variables
from pullback.errors import ArgumentError, CheckpointError, ShapeError
from pullback.names.answers import check_keywords
from pullback.train.data.dataset import Dataset
from pullback.train.io.checkpoints import read_model
from pullback.train.io.saving import StrPath
from pullback.train.loop.callback import CallbackLike
from pullback.train.loop.examples import DataLike
from pullback.train.loop.history import History
from pullback.train.loop.objectives import LossLike, MetricsLike
from pullback.train.loop.trainer import Trainer
from pullback.train.nn.layers.base import Layer, SymbolicTensor
from pullback.train.nn.summary import format_summary
from pullback.train.optim.step import Optimizer
from pullback.typing import Shape, TensorLike, Value

__all__ = ["Model", "Sequential", "Functional", "load_model", "model", "sequential"]

SymbolicTensors = SymbolicTensor | Sequence[SymbolicTensor]


@check_keywords
class Model(Layer):
    """A layer that can be trained; ``pb.sequential`` and ``pb.model`` make one.

    A model of your own has its layers in attributes, and ``call``.

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

    def get_layer(self, which: str | int) -> Layer:
        """Return the layer of this name, as ``summary`` shows it, or of this number.

        >>> pb.sequential([pb.layers.flatten(), pb.layers.dense(3)]).get_layer("dense_1").units
        3
        """
        found = {name: part for name, part in self.parts() if isinstance(part, Layer)}
        if isinstance(which, str) and which in found:
            return found[which]
        if isinstance(which, int) and -len(found) <= which < len(found):
            return self.layers[which]
        raise ArgumentError(
            f"{self.name}.get_layer: there is no layer {which!r}; there are {', '.join(found)}."
            f"{did_you_mean(which, found)}"
        )

    def params(self) -> dict[str, Any]:
        """Return the values of the trainable variables by their paths, as ``apply`` takes them.

        >>> pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])]).params()
        {'dense_1/kernel': Tensor([[1.], [1.]], dtype=float32), 'dense_1/bias': Tensor([0.], dtype=float32)}
        """
        return {name: v.held for name, v in self.named_variables().items() if v.trainable}

    def apply(self, params: Mapping[str, Any], *inputs: TensorLike, training: bool = False) -> Any:
        """Return the output with these values in place of the variables': the model as a function of its parameters.

        Every transformation applies to it.

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

    def build(self, *shapes: Any) -> None:
        """Make the variables for inputs of these shapes, without the batch, by running on zeros."""
        self._built = True
        try:
            self.output_shape(*shapes)
            self._shapes = tuple(tuple(shape) for shape in shapes)
        except BaseException:
            self._built = False
            raise

    def get_config(self) -> dict[str, Any]:
        """Return the arguments it was made with, from the attributes of the same names."""
        takes = [
            p for p in signature(type(self)).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        if lost := [p.name for p in takes if p.default is p.empty and not hasattr(self, p.name)]:
            raise CheckpointError(
                f"save: {self.name}: what {type(self).__name__} was given for {lost[0]!r} is not known. Keep it in an "
                "attribute of that name, or write get_config; or write the variables alone: pb.train.save(path, model)."
            )
        found = {p.name: getattr(self, p.name) for p in takes if hasattr(self, p.name)}
        return found | {"name": ""} if self.numbered and "name" in found else found

    def summary(self) -> None:
        """Print a table of the layers, their output shapes and their parameter counts."""
        print(format_summary(self))

    # ---- training

    @cached_property
    def _trainer(self) -> Trainer:
        return Trainer(self)

    @property
    def optimizer(self) -> Any:
        """The optimizer that ``compile`` was given; another one, or its name, can be set."""
        return self._trainer.optimizer

    @optimizer.setter
    def optimizer(self, optimizer: Optimizer | str | None) -> None:
        self._trainer.optimizer = optimizer

    @property
    def stop_training(self) -> bool:
        """Whether training is to end after this step; callbacks set it."""
        return self._trainer.stop_training

    @stop_training.setter
    def stop_training(self, stop: bool) -> None:
        self._trainer.stop_training = stop

    def compile(
        self, optimizer: Optimizer | str, loss: LossLike, metrics: MetricsLike = (), eager: bool = False
    ) -> None:
        """Set how to train: an optimizer or its name, a loss (or one for each output) and metrics, names or functions.

        A training step is compiled, unless ``eager``; both give the same numbers.

        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
        >>> model.compile(optimizer=pb.train.adam(0.01), loss="mean_squared_error", metrics=["mae"])
        """
        self._trainer.compile(optimizer, loss, metrics, eager)

    def fit(
        self,
        x: DataLike,
        y: DataLike,
        epochs: int = 1,
        batch_size: int = 32,
        validation_split: float = 0.0,
        validation_data: Dataset | Sequence[Any] | None = None,
        callbacks: CallbackLike = (),
        shuffle: bool = True,
        verbose: int | str = "auto",
        resume: StrPath | None = None,
    ) -> History:
        """Train on arrays for ``epochs`` epochs; the last ``validation_split`` of the examples only validate.

        Ctrl-C stops after the current step.  A loss that is not finite raises an error that says where that came from,
        and leaves the model as it was before.  ``resume`` is a file that ``callbacks.model_checkpoint`` writes: if it
        exists, training continues from it.

        >>> pb.random.seed(0)
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> history = model.fit(x, 3 * x + 1, epochs=200, batch_size=16)
        >>> model.predict(np.array([[0.0], [1.0]])).round(1)
        array([[1.],
               [4.]], dtype=float32)
        """
        return self._trainer.fit(
            x, y, epochs, batch_size, validation_split, validation_data, callbacks, shuffle, verbose, resume
        )

    def fit_dataset(
        self,
        dataset: Dataset,
        epochs: int = 1,
        validation_data: Dataset | Sequence[Any] | None = None,
        callbacks: CallbackLike = (),
        verbose: int | str = "auto",
        resume: StrPath | None = None,
    ) -> History:
        """Train on the batches of a dataset: pairs of inputs and targets.

        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> data = pb.data.Dataset.from_arrays((x, 3 * x)).shuffle(seed=1).batch(16)
        >>> model.fit_dataset(data, epochs=2).epochs
        [0, 1]
        """
        return self._trainer.fit_dataset(dataset, epochs, validation_data, callbacks, verbose, resume)

    def train_on_batch(self, x: DataLike, y: DataLike) -> list[float]:
        """Make one step with these examples; return the loss before it, and the metrics.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="zeros", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> model.train_on_batch(np.ones((2, 1)), np.ones((2, 1)))
        [1.0]
        """
        return self._trainer.train_on_batch(x, y)

    def evaluate(self, x: DataLike | Dataset, y: DataLike | None = None, batch_size: int = 32) -> Any:
        """Return the mean loss over arrays, or over a dataset of batches; with metrics a list of the loss and these.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error", metrics=["mae"])
        >>> model.evaluate(np.ones((2, 1)), np.zeros((2, 1)))
        [1.0, 1.0]
        """
        return self._trainer.evaluate(x, y, batch_size)

    def predict(self, x: DataLike, batch_size: int = 32) -> Any:
        """Return the outputs for these examples, as arrays.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> model.predict([[1.0, 2.0], [3.0, 4.0]])
        array([[3.],
               [7.]], dtype=float32)
        """
        return self._trainer.predict(x, batch_size)

    # ---- files and copies

    def save(self, path: StrPath) -> None:
        """Write the model to a file: layers, variables, and what it is compiled with.  ``pb.load_model`` reads it.

        >>> import os, tempfile
        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.safetensors")
        ...     model.save(path)
        ...     pb.load_model(path).predict([[1.0, 2.0]])
        array([[3.]], dtype=float32)
        """
        self._trainer.save_model(path)

    def save_checkpoint(self, path: StrPath) -> None:
        """Write variables, the optimizer's state and the position in training, for ``fit(resume=path)``."""
        self._trainer.save_checkpoint(path)

    def load_checkpoint(self, path: StrPath) -> tuple[Any, Any]:
        """Load variables and the optimizer's state; return the position in training and the callbacks' state."""
        return self._trainer.load_checkpoint(path)

    def __getstate__(self) -> dict[str, Any]:
        own = {key: x for key, x in vars(self).items() if key != "_trainer"}
        return own | {"_trainer": self._trainer.export_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({key: x for key, x in state.items() if key != "_trainer"})
        self._trainer.import_state(state["_trainer"])


class VariableOverrides:
    """A watcher of variable reads: some variables read as other values."""

    level = 0
    writes = False

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values

    def on_read(self, v: Variable, value: Value) -> Any:
        return self.values.get(id(v), value)


@check_keywords
class Sequential(Model):
    """A model that applies one layer after the other; ``sequential`` makes one."""

    def __init__(self, layers: Sequence[Layer] = (), name: str = "") -> None:
        super().__init__(name)
        self.stack: list[Layer] = []
        for layer in layers:
            self.add(layer)

    def add(self, layer: Layer) -> None:
        """Add a layer at the end."""
        if not isinstance(layer, Layer):
            raise ArgumentError(f"{self.name}.add: expected a layer, got {type(layer).__name__}.")
        if any(layer is one for one in self.stack):
            raise ArgumentError(f"{self.name}.add: layer '{layer.name}' is in it already; use pb.model to share one.")
        _name_layers([*self.stack, layer], self.name)  # raises an error for a duplicate name
        first, self._built = not self.stack, False
        self.stack.append(layer)
        if first:
            self.input_shape = layer.input_shape
        if self.input_shape is not None:
            self.build_for([tuple(self.input_shape)])

    def parts(self) -> Iterator[tuple[str, Any]]:
        yield from _name_layers(vars(self).get("stack", ()), self.name).items()

    def build(self, shape: Sequence[int]) -> None:
        if not self.stack:
            raise ShapeError(f"{self.name} has no layers yet; add some.")
        first = self.input_shape = as_shape(f"{self.name}.build", shape)
        given: Shape = first
        for layer in self.stack:
            layer.build_for([given])
            given = layer.output_shape(given)
        self._built, self._shapes = True, (first,)

    def check_inputs(self, *xs: Value) -> None:
        for first in self.stack[:1]:
            first.check_inputs(*xs)

    def call(self, x: Value, training: bool = False) -> Any:
        for layer in self.stack:
            x = layer(x, training=training)
        return x

    def get_config(self) -> dict[str, Any]:
        return {"layers": self.stack, "name": "" if self.numbered else self.name, "input_shape": self.input_shape}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Sequential:
        model = cls(config["layers"], config["name"])
        if config["input_shape"] is not None:
            model.build_for([config["input_shape"]])
        return model


@check_keywords
class Functional(Model):
    """A model defined by its inputs and outputs, symbolic tensors that layers were applied to; ``model`` makes one."""

    def __init__(self, inputs: SymbolicTensors, outputs: SymbolicTensors, name: str = "") -> None:
        super().__init__(name)
        self._single = isinstance(outputs, SymbolicTensor)
        self._order: list[SymbolicTensor] = []  # each after its inputs
        self._inputs: list[SymbolicTensor] = [inputs] if isinstance(inputs, SymbolicTensor) else list(inputs)
        self._outputs: list[SymbolicTensor] = [outputs] if isinstance(outputs, SymbolicTensor) else list(outputs)
        for x in [*self._inputs, *self._outputs]:
            if not isinstance(x, SymbolicTensor):
                raise ArgumentError(
                    f"{self.name}: inputs and outputs are made by pb.input and by layers, got {type(x).__name__}."
                )
        self._order = _sort_steps(self._inputs, self._outputs, self.name)
        self._built, self._shapes = True, tuple(p.shape for p in self._inputs)
        list(self.parts())  # raises an error for two layers of one name

    def parts(self) -> Iterator[tuple[str, Any]]:
        layers = {id(step.layer): step.layer for step in vars(self).get("_order", ()) if step.layer is not None}
        yield from _name_layers(list(layers.values()), self.name).items()

    def check_inputs(self, *xs: Value) -> None:
        given = {id(p): x for p, x in zip(self._inputs, xs, strict=False)}
        for step in self._order:
            if step.layer is not None and all(id(p) in given for p in step.inputs):
                step.layer.check_inputs(*[given[id(p)] for p in step.inputs])

    def call(self, *xs: Value, training: bool = False) -> Any:
        if len(xs) != len(self._inputs):
            raise ArgumentError(f"{self.name}: expected {len(self._inputs)} inputs, got {len(xs)}.")
        values = {id(p): x for p, x in zip(self._inputs, xs, strict=True)}
        for step in self._order:
            if step.layer is not None:
                values[id(step)] = step.layer(*[values[id(p)] for p in step.inputs], training=training)
        out = [values[id(p)] for p in self._outputs]
        return out[0] if self._single else tuple(out)

    def get_config(self) -> dict[str, Any]:
        every = [*self._inputs, *self._order]
        number = {id(p): i for i, p in enumerate(every)}
        layers = {id(layer): i for i, layer in enumerate(self.layers)}
        return {
            "layers": self.layers,
            "inputs": [p.shape for p in self._inputs],
            "steps": [[layers[id(p.layer)], [number[id(x)] for x in p.inputs]] for p in self._order],
            "outputs": [number[id(p)] for p in self._outputs],
            "single": self._single,
            "name": "" if self.numbered else self.name,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Functional:
        every = [SymbolicTensor(tuple(shape), None, ()) for shape in config["inputs"]]
        inputs = list(every)
        for layer, given in config["steps"]:
            every.append(SymbolicTensor.apply(config["layers"][layer], [every[i] for i in given]))
        outputs = [every[i] for i in config["outputs"]]
        return cls(inputs, outputs[0] if config["single"] else outputs, config["name"])


def _name_layers(layers: Sequence[Layer], name: str) -> dict[str, Layer]:
    """Return the layers by their names in the model: the given one, or the kind and a number."""
    counts: Counter[str] = Counter()
    found: dict[str, Layer] = {}
    for layer in layers:
        counts[layer.kind] += 1
        called = f"{layer.kind}_{counts[layer.kind]}" if layer.numbered else layer.name
        if called in found:
            raise ArgumentError(f"{name}: two layers are called {called!r}. Give one another name.")
        found[called] = layer
    return found


def _sort_steps(inputs: list[SymbolicTensor], outputs: list[SymbolicTensor], name: str) -> list[SymbolicTensor]:
    """Return the symbolic tensors that outputs depend on, each after its inputs."""
    order: list[SymbolicTensor] = []
    done = {id(p) for p in inputs}
    todo = [(p, False) for p in reversed(outputs)]
    while todo:
        step, ready = todo.pop()
        if ready:
            order.append(step)
        elif id(step) not in done:
            done.add(id(step))
            if step.layer is None:
                raise ArgumentError(f"{name}: an output needs an input of shape {step.shape} that is not among inputs.")
            todo.append((step, True))
            todo.extend((p, False) for p in reversed(step.inputs))
    return order


def sequential(layers: Sequence[Layer] = (), name: str = "") -> Sequential:
    """Return a model that applies one layer after the other.

    >>> model = pb.sequential([pb.layers.dense(4, activation="relu", input_shape=[3]), pb.layers.dense(1)])
    >>> model(np.ones((2, 3))).shape
    (2, 1)
    """
    return Sequential(layers, name)


def model(inputs: SymbolicTensors, outputs: SymbolicTensors, name: str = "") -> Functional:
    """Return a model from inputs to outputs: layers applied to ``pb.input`` and to each other's outputs.

    >>> x = pb.input([3])
    >>> h = pb.layers.dense(3, activation="tanh")(x)
    >>> both = pb.model(inputs=x, outputs=[pb.layers.dense(1)(h), pb.layers.dense(2)(h)])
    >>> [y.shape for y in both(np.ones((5, 3)))]
    [(5, 1), (5, 2)]
    """
    return Functional(inputs, outputs, name)


def load_model(path: StrPath) -> Any:
    """Return the model that ``model.save`` wrote: layers, variables, and what it is compiled with if that has names.

    Layers of your own are found by the names of their classes, which must be defined already.

    >>> import os, tempfile
    >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.safetensors"))
    ...     again = pb.load_model(os.path.join(folder, "model.safetensors"))
    >>> again.predict([[1.0, 2.0]])
    array([[3.]], dtype=float32)
    """
    model, training = read_model(path)
    if training is not None:
        model.compile(training.optimizer, training.losses, training.metrics)
    return model
