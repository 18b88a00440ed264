"""What a model learns with: ``compile``, ``fit``, ``fit_dataset``, ``evaluate``, ``predict``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.api import compile as compiled
from pullback.core.convert import as_array, as_number, get_default_dtype
from pullback.core.suggestions import did_you_mean, snake_case
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, DataError, GradientError, ShapeError
from pullback.train.data.dataset import Dataset
from pullback.train.io.checkpoints import (
    read_checkpoint,
    with_variables,
    without_variables,
    write_checkpoint,
    write_model,
)
from pullback.train.loop.history import History
from pullback.train.loop.objectives import Metric, Objective, check_labels, loss_of, metrics_of
from pullback.train.loop.run import Means, Run
from pullback.train.nn.layers.base import Layer, whole_number
from pullback.train.optim import optimizers
from pullback.train.optim.step import Optimizer
from pullback.transforms.modifiers import stop_gradient
from pullback.transforms.variables import differentiate_by_variables

__all__ = ["Learner"]

DEFAULTS: dict[str, tuple[float, ...]] = {
    "sgd": (0.01,),
    "momentum": (0.01, 0.9),
    "adagrad": (0.01,),
    "rmsprop": (0.001,),
}


class Learner(Layer):
    """The part of a model that learns."""

    optimizer: Any = None
    stop_training = False  # a callback sets it
    _objectives: Sequence[Objective] = ()
    _metrics: Sequence[Metric] = ()
    _eager = False
    _programs: Any = None  # what was compiled, and for which variables
    _run: Run | None = None  # the training that is going on

    def compile(self, optimizer: Any, loss: Any, metrics: Any = (), eager: bool = False) -> None:
        """Say how to learn: an optimizer or its name, a loss (one for each output) and metrics, names or functions.

        A training step is compiled, unless ``eager``; both give the same numbers.

        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
        >>> model.compile(optimizer=pb.train.adam(0.01), loss="mean_squared_error", metrics=["mae"])
        """
        self.optimizer = _optimizer(optimizer)
        losses = loss if isinstance(loss, list | tuple) else [loss]
        self._objectives = [loss_of(one, f"{self.name}.compile: loss") for one in losses]
        self._metrics = metrics_of(metrics, self._objectives[0], f"{self.name}.compile: metrics")
        self._eager, self._programs = bool(eager), None

    # ---- training

    def fit(
        self,
        x: Any,
        y: Any,
        epochs: int = 1,
        batch_size: int = 32,
        validation_split: float = 0.0,
        validation_data: Any = None,
        callbacks: Any = (),
        shuffle: bool = True,
        verbose: Any = "auto",
        resume: Any = None,
    ) -> History:
        """Train on arrays, ``epochs`` times all of them; the last ``validation_split`` of them are only measured on.

        Ctrl-C ends it after a step.  A loss that is not finite ends it with an error that says where that came from,
        and the model as it was before.  ``resume`` is a file that ``callbacks.model_checkpoint`` wrote, to go on from
        if it is there.

        >>> pb.random.seed(0)
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> history = model.fit(x, 3 * x + 1, epochs=200, batch_size=16)
        >>> model.predict(np.array([[0.0], [1.0]])).round(1)
        array([[1.],
               [4.]], dtype=float32)
        """
        self._ready("fit")
        rows = self._rows(x, y)
        held: Any = None if validation_data is None else self._rows(*_pair(validation_data, "fit: validation_data"))
        if validation_split and held is None:
            rows, held = _split(rows, validation_split, self.name)
        for given in (rows, held):
            if given is not None:
                self._check(*given)
        if held is not None:  # which comes in after an epoch: what does not fit is told now
            with np.errstate(all="ignore"):
                self._tested(*(tuple(a[:1] for a in group) for group in held))
        batches = Dataset.from_arrays(rows)
        batches = batches.shuffle() if shuffle else batches
        data = None if held is None else Dataset.from_arrays(held).batch(batch_size)
        measured = None if data is None else lambda: self._measured(data, batch_size)
        return self._train(batches.batch(batch_size), tuple, epochs, measured, callbacks, verbose, resume)

    def fit_dataset(
        self,
        dataset: Any,
        epochs: int = 1,
        validation_data: Any = None,
        callbacks: Any = (),
        verbose: Any = "auto",
        resume: Any = None,
    ) -> History:
        """Train on the batches of a dataset: pairs of inputs and what should come out.

        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
        >>> model = pb.sequential([pb.layers.dense(1, input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> data = pb.data.Dataset.from_arrays((x, 3 * x)).shuffle(seed=1).batch(16)
        >>> model.fit_dataset(data, epochs=2).epochs
        [0, 1]
        """
        self._ready("fit_dataset")
        if not isinstance(dataset, Dataset):
            raise ArgumentError(
                f"{self.name}.fit_dataset: expected a pb.data.Dataset of batches, got {type(dataset).__name__}. "
                "Arrays are for fit."
            )

        def checked(batch: Any) -> Any:
            rows = self._rows(*_pair(batch, f"{self.name}.fit_dataset"))
            if any(one.sparse for one in self._objectives) or not self.variables:
                self._check(*rows)
            return rows

        held = validation_data
        if held is not None and not isinstance(held, Dataset):
            held = Dataset.from_arrays(self._rows(*_pair(held, f"{self.name}.fit_dataset: validation_data"))).batch(32)
        measured = None if held is None else lambda: self._measured(held)
        return self._train(dataset, checked, epochs, measured, callbacks, verbose, resume)

    def train_on_batch(self, x: Any, y: Any) -> list[float]:
        """One step with these examples; gives the loss before it, and the metrics.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="zeros", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error")
        >>> model.train_on_batch(np.ones((2, 1)), np.ones((2, 1)))
        [1.0]
        """
        self._ready("train_on_batch")
        rows = self._rows(x, y)
        self._check(*rows)
        return [float(v) for v in self._step()(*rows)]

    # ---- measuring

    def evaluate(self, x: Any, y: Any = None, batch_size: int = 32) -> Any:
        """The mean loss over arrays, or over a dataset of batches; with metrics a list of the loss and these.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[1])])
        >>> model.compile("sgd", "mean_squared_error", metrics=["mae"])
        >>> model.evaluate(np.ones((2, 1)), np.zeros((2, 1)))
        [1.0, 1.0]
        """
        self._ready("evaluate", trains=False)
        if not isinstance(x, Dataset):
            rows = self._rows(x, y)
            self._check(*rows)
            x = Dataset.from_arrays(rows).batch(batch_size)
            found = list(self._measured(x, batch_size).values())
        else:
            found = list(self._measured(x).values())
        return found if self._metrics else found[0]

    def predict(self, x: Any, batch_size: int = 32) -> Any:
        """What the model gives for these examples, as arrays.

        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> model.predict([[1.0, 2.0], [3.0, 4.0]])
        array([[3.],
               [7.]], dtype=float32)
        """
        xs, _ = self._rows(x, None)
        if not len(xs[0]):
            return _arrays(self(*xs))
        batches = Dataset.from_arrays(xs).batch(batch_size)
        program = self if self._eager or len(xs[0]) < batch_size else self._program("predict", self._predicted)
        made = [_arrays((program if len(batch[0]) == batch_size else self)(*batch)) for batch in batches]
        if isinstance(made[0], tuple):
            return tuple(np.concatenate(parts) for parts in zip(*made, strict=True))
        return np.concatenate(made)

    # ---- files

    def save(self, path: Any) -> None:
        """Write the model to a file: its layers, its variables, and what it learns with.  ``pb.load_model`` reads it.

        >>> import os, tempfile
        >>> model = pb.sequential([pb.layers.dense(1, kernel_initializer="ones", input_shape=[2])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.safetensors")
        ...     model.save(path)
        ...     pb.load_model(path).predict([[1.0, 2.0]])
        array([[3.]], dtype=float32)
        """
        write_model(path, self)

    def save_checkpoint(self, path: Any) -> None:
        """Write variables, the optimizer's state and the place in training, from which ``fit(resume=path)`` goes on."""
        run = self._run
        write_checkpoint(path, self, run and run.state(), run and run.callbacks.state())

    def load_checkpoint(self, path: Any) -> tuple[Any, Any]:
        """Take variables and the optimizer's state from a file; gives the place in training that is noted there, and
        what callbacks remember.
        """
        place, remembered = read_checkpoint(path, self)
        return place, remembered

    # ---- copies

    def __getstate__(self) -> dict[str, Any]:
        left = {key: x for key, x in vars(self).items() if key not in ("_programs", "_run", "optimizer")}
        return left | {"optimizer": without_variables(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        with_variables(self)

    # ---- one step

    def _cost(self, xs: Sequence[Any], ys: Sequence[Any], training: bool) -> tuple[Any, list[Any]]:
        """The loss, and the metrics that no gradient goes through."""
        out = self(*xs, training=training)
        outs = out if isinstance(out, tuple | list) else (out,)
        objectives = self._objectives if len(self._objectives) > 1 else [self._objectives[0]] * len(outs)
        if not len(outs) == len(ys) == len(objectives):
            raise ArgumentError(
                f"{self.name}: it has {len(outs)} outputs, {len(objectives)} losses and was given {len(ys)} targets."
            )
        costs = [loss(y, z) for loss, y, z in zip(objectives, ys, outs, strict=True)]
        if training and (penalty := self.penalties()) is not None:
            costs.append(penalty)
        seen = stop_gradient(outs[0]) if isinstance(outs[0], Tensor) else outs[0]
        return sum(costs[1:], costs[0]), [metric(ys[0], seen) for metric in self._metrics]

    def _trained(self, xs: Any, ys: Any) -> list[Any]:
        metrics: list[Any] = []

        def cost() -> Any:
            value, metrics[:] = self._cost(xs, ys, True)
            return value

        value, grads = differentiate_by_variables(cost, self.trainable_variables, self.optimizer.wants_rows)
        self.optimizer.apply_gradients(grads)
        return [value, *metrics]

    def _tested(self, xs: Any, ys: Any) -> list[Any]:
        value, metrics = self._cost(xs, ys, False)
        return [value, *metrics]

    def _predicted(self, *xs: Any) -> Any:
        return self(*xs)

    def _step(self) -> Callable[..., Any]:
        return self._trained if self._eager else self._program("train", self._trained)

    def _program(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The compiled form of a function of this model; made anew if it was changed, or learns with something else."""
        made_of = [self.optimizer, *((layer, layer.trainable) for layer in self.every_layer())]
        made_of += [id(v) for v in self.trainable_variables]
        if self._programs is None or self._programs[0] != made_of:
            self._programs = made_of, {}
        programs: dict[str, Callable[..., Any]] = self._programs[1]
        if name not in programs:
            programs[name] = compiled(function)
        return programs[name]

    def _measured(self, batches: Any, whole: int | None = None) -> dict[str, float]:
        """Means over batches; those of the size of the first one, or as large as is said, are compiled."""
        means, program = Means(self._names()), None
        for batch in batches:
            xs, ys = self._rows(*_pair(batch, f"{self.name}.evaluate"))
            size = len(xs[0])
            whole = whole or size
            if program is None:
                program = self._tested if self._eager else self._program("test", self._tested)
            means.add((program if size == whole else self._tested)(xs, ys), size)
        if not means.count:
            raise DataError(f"{self.name}: there is nothing to evaluate: the dataset is empty.")
        return means.values()

    def _names(self) -> list[str]:
        return ["loss", *(metric.name for metric in self._metrics)]

    # ---- a training

    def _train(
        self, batches: Dataset, rows: Any, epochs: int, measured: Any, callbacks: Any, verbose: Any, resume: Any
    ) -> History:
        whole_number(f"{self.name}.fit", "epochs", epochs)
        run = Run(self, batches, rows, epochs, measured, callbacks, verbose)
        if resume is not None:
            run.resume(resume)
        self._run, self.stop_training = run, False
        try:
            return run.go()
        finally:
            self._run = None

    def _ready(self, what: str, trains: bool = True) -> None:
        if self.optimizer is None or not self._objectives:
            raise ArgumentError(f"{self.name}.{what}: say how to learn first: model.compile(optimizer, loss).")
        self.optimizer = _optimizer(self.optimizer)  # which may have been set since
        if trains and self.variables and not self.trainable_variables:
            raise GradientError(
                f"{self.name}.{what}: none of its {len(self.variables)} variables is trainable. "
                "Set layer.trainable = True for what should learn."
            )

    # ---- what is given

    def _rows(self, x: Any, y: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Inputs and targets as tuples of arrays; floats have the dtype of the model."""
        dtype = next((v.dtype for v in self.variables if v.dtype.kind == "f"), get_default_dtype())
        several = _several(x)
        if len(several) > self._most:
            raise ShapeError(
                f"{self.name}: a list of {len(several)} arrays is so many inputs, and it has {self._most}. "
                "np.stack makes one array of the arrays of single examples."
            )
        xs = tuple(_array(a, dtype, f"{self.name}: x") for a in several)
        if any(a.ndim == 1 for a in xs) and len(xs) == len(self.shapes):
            xs = tuple(_examples(a, shape, self.name) for a, shape in zip(xs, self.shapes, strict=True))
        ys = () if y is None else tuple(_array(a, dtype, f"{self.name}: y") for a in _several(y))
        sizes = {len(a) for a in (*xs, *ys)}
        if len(sizes) > 1:
            shapes = ", ".join(str(a.shape) for a in (*xs, *ys))
            raise ShapeError(f"{self.name}: inputs and targets must have equally many examples, got shapes {shapes}.")
        self.look_at(*xs)
        return xs, ys

    def _check(self, xs: tuple[Any, ...], ys: tuple[Any, ...]) -> None:
        """Look at all labels before anything is computed with them."""
        if not len(xs[0]):
            raise DataError(f"{self.name}: there are no examples: the arrays have shape {xs[0].shape}.")
        out = self(*[a[:1] for a in xs])
        outs = out if isinstance(out, tuple | list) else (out,)
        for i, (y, z) in enumerate(zip(ys, outs, strict=False)):
            objective = self._objectives[i if len(self._objectives) > 1 else 0]
            check_labels(objective, y, (len(y), *z.shape[1:]))


def _optimizer(given: Any) -> Optimizer:
    name = snake_case(given) if isinstance(given, str) else ""
    if name in optimizers.__all__:
        made: Optimizer = getattr(optimizers, name)(*DEFAULTS.get(name, ()))
        return made
    if isinstance(given, Optimizer):
        return given
    known = optimizers.__all__
    raise ArgumentError(
        f"compile: optimizer must be one of pb.train's, or one of the names {', '.join(known)}; got {given!r}."
        f"{did_you_mean(given, known)}"
    )


def _array(x: Any, dtype: Any, what: str) -> Any:
    made = np.asarray(as_array(x, what=what))
    if not made.ndim:
        raise ShapeError(f"{what}: expected an array of examples, got one number.")
    if made.dtype.kind not in "fiubc":
        raise DataError(f"{what}: expected numbers, got dtype {made.dtype}.")
    return made.astype(dtype, copy=False) if made.dtype.kind == "f" else made


def _examples(x: Any, shape: Any, name: str) -> Any:
    """Numbers are examples of one number, as in TensorFlow.js; one example alone is none."""
    if x.ndim > 1 or not shape:
        return x
    if shape == (1,):
        return x.reshape(-1, 1)
    hint = " For one example: x[None]." if x.shape == shape else ""
    raise ShapeError(f"{name}: expected examples of shape {shape}, the batch in front, got shape {x.shape}.{hint}")


def _several(given: Any) -> Any:
    """The arrays of a tuple, or of a list of arrays; anything else is one array."""
    if isinstance(given, tuple) or (isinstance(given, list) and given and isinstance(given[0], np.ndarray | Tensor)):
        return given
    return [given]


def _arrays(out: Any) -> Any:
    return tuple(np.asarray(z) for z in out) if isinstance(out, tuple | list) else np.asarray(out)


def _pair(given: Any, what: str) -> tuple[Any, Any]:
    if isinstance(given, dict) and given.keys() == {"xs", "ys"}:  # TensorFlow.js's
        return given["xs"], given["ys"]
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise DataError(f"{what}: expected pairs of inputs and targets, got {type(given).__name__}.")
    return given[0], given[1]


def _split(rows: Any, share: float, name: str) -> tuple[Any, Any]:
    """The first rows to train on, the last to measure with."""
    if not 0 <= as_number("fit", "validation_split", share) < 1:
        raise ArgumentError(f"{name}.fit: validation_split must be a share between 0 and 1, got {share!r}.")
    n = len(rows[0][0])
    at = int(round(n * (1 - share), 6))  # 0.7 of 90 is 62.99999999999999
    if at in (0, n):
        raise ArgumentError(f"{name}.fit: validation_split={share} of {n} examples leaves none on one side.")
    return (
        tuple(tuple(a[:at] for a in group) for group in rows),
        tuple(tuple(a[at:] for a in group) for group in rows),
    )
