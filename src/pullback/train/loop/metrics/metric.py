"""The base class of metrics: numbers over many batches, exact for any batch size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from pullback.core.context import bind
from pullback.core.convert import as_array
from pullback.core.suggestions import snake_case
from pullback.core.tape import as_tensor
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.errors import ArgumentError
from pullback.numerics.dtypes import make_dtype
from pullback.train.dry_runs import is_dry_run
from pullback.train.loop.weights import sum_weighted
from pullback.transforms.modifiers import stop_gradient
from pullback.typing import Array, DType, TensorLike, Value

Updates = Sequence[tuple["Metric", tuple[Any, ...]]]  # metrics, with the statistics of a batch
_updates: ContextVar[list[Any] | None] = ContextVar("_updates", default=None)


def collect_updates() -> AbstractContextManager[list[Any]]:
    """Collect the statistics that metrics are updated with in a ``with`` block, in which a program is traced.

    The metrics do not change; their results are pending.
    """
    return bind(_updates, [])


def sum_updates(metric: Metric, updates: Updates) -> list[Any]:
    """Return the sums of a metric's statistics over its updates in a batch; zeros if there were none."""
    found = [statistics for one, statistics in updates if one is metric]
    if not found:
        return [np.zeros_like(x) for x in metric.measure(np.zeros(1), np.zeros(1))]
    return [sum(parts[1:], parts[0]) for parts in zip(*found, strict=True)]


class PendingResult:
    """The result of a metric in a step that is traced: it is known when the step has run, and can only be returned."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError(
            f"the result of the metric '{self.metric.name}' is not known while a step is being compiled: return it in "
            "the dict of the step, or compile the model with run_eagerly=True."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = __float__ = (
        lambda self, *_: self.__getattr__("value")
    )


class Metric:
    """A number over many batches: the statistics of all batches are summed, and the result is computed from the sums.

    A metric of your own has ``measure``, which returns the statistics of a batch as a tuple of numbers and arrays, and
    ``compute``, which returns the result from their sums; ``fit`` compiles the first.  One in Keras's style has
    ``update_state``, ``result`` and ``reset_state`` in their place, and its state in attributes or in variables from
    ``add_weight``; ``fit`` calls these with the arrays of each batch.

    >>> class Largest(pb.metrics.Metric):
    ...     def measure(self, y_true, y_pred, sample_weight=None):
    ...         return np.sum(np.abs(y_pred - y_true) > 1.0), y_true.size
    ...     def compute(self, far, count):
    ...         return far / count
    >>> share = Largest()
    >>> share.update_state(np.zeros(4), np.array([0.0, 3.0, 2.0, 0.5]))
    >>> share.result(), share.name
    (0.5, 'largest')
    """

    keeps_state: ClassVar[bool] = False  # whether it is in Keras's style: its own update_state is the newest method

    def __init__(self, name: str | None = None, dtype: object = None) -> None:
        self.name = name or snake_case(type(self).__name__)
        self.dtype = dtype  # Keras's argument; sums are always float64
        self._sums: list[Any] = []
        self._variables: list[Variable] = []

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        places = {name: _find_place(cls, name) for name in ("measure", "update_state")}
        cls.keeps_state = places["update_state"] < places["measure"]

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        """Return the statistics of a batch.

        y_true: the true values.
        y_pred: the predictions.
        sample_weight: a weight of each example.
        """
        raise NotImplementedError(f"{type(self).__name__} has no measure(y_true, y_pred, sample_weight).")

    def compute(self, *sums: Any) -> Any:
        """Return the result from the sums of the statistics of all batches."""
        raise NotImplementedError(f"{type(self).__name__} has no compute(*sums).")

    def collect(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        """Return the statistics of a batch; of a metric in Keras's style, what ``update_state`` takes."""
        if not self.keeps_state:
            return self.measure(y_true, y_pred, sample_weight)
        return (y_true, y_pred) if sample_weight is None else (y_true, y_pred, sample_weight)

    # ---- used by itself, as in Keras

    def update_state(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None) -> None:
        """Add the statistics of a batch.

        y_true: the true values.
        y_pred: the predictions.
        sample_weight: a weight of each example.
        """
        updates = _updates.get()
        if is_dry_run():
            return
        if updates is not None:
            labels, predictions = (stop_gradient(as_tensor(y)) for y in (y_true, y_pred))
            weights = None if sample_weight is None else as_tensor(sample_weight)
            updates.append((self, self.measure(labels, predictions, weights)))
            return
        weight = None if sample_weight is None else _as_array(sample_weight)
        self.add_statistics(self.measure(_as_array(y_true), _as_array(y_pred), weight))

    def add_statistics(self, statistics: Sequence[Any]) -> None:
        """Add what ``measure`` returned for a batch.

        statistics: numbers and arrays.
        """
        self._sums = add_sums(self._sums, statistics)

    def result(self) -> Any:
        """Return the result over all batches since ``reset_state``; 0 if there were none."""
        if _updates.get() is not None:
            return PendingResult(self)
        return self.compute(*self._sums) if self._sums else 0.0

    def reset_state(self) -> None:
        """Forget all batches; variables become 0."""
        self._sums = []
        for v in self._variables:
            v.assign(np.zeros(v.shape, v.dtype))

    def add_weight(
        self, shape: Any = (), initializer: Any = "zeros", dtype: DType | None = None, name: str | None = None
    ) -> Variable:
        """Return a variable for the state of a metric in Keras's style.

        - shape: its shape.
        - initializer: "zeros", "ones", or a function of shape and dtype.
        - dtype: its dtype, float32 unless given.
        - name: its name.
        """
        lengths = (shape,) if isinstance(shape, int) else () if isinstance(shape, str) else tuple(shape)
        name = shape if isinstance(shape, str) else name
        wanted = make_dtype(dtype or np.float32)
        make = STARTS.get(initializer, initializer) if isinstance(initializer, str | None) else initializer
        if not callable(make):
            raise ArgumentError(f"{self.name}.add_weight: initializer must be 'zeros', 'ones' or a function.")
        v = Variable(np.asarray(make(lengths, wanted), wanted), False, None if name is None else f"{self.name}/{name}")
        self._variables.append(v)
        return v

    add_variable = add_weight

    @property
    def variables(self) -> list[Variable]:
        """The variables from ``add_weight``."""
        return list(self._variables)

    def __call__(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None) -> Any:
        """Add a batch and return the result."""
        self.update_state(y_true, y_pred, sample_weight)
        return self.result()

    def get_config(self) -> dict[str, Any]:
        """Return the arguments it was made with, from the attributes of the same names."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters if name != "dtype"}

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.get_config().items() if k != "name")
        return f"{type(self).__name__}({arguments})"


STARTS: dict[Any, Any] = {"zeros": np.zeros, "ones": np.ones, None: np.zeros}


def _find_place(cls: type, name: str) -> int:
    """Return which class of the method resolution order defines a name; 0 is the class itself."""
    return next(i for i, one in enumerate(cls.__mro__) if name in vars(one))


def add_sums(sums: Sequence[Any], statistics: Sequence[Any]) -> list[Any]:
    """Return the sums with the statistics of one more batch, in float64.

    >>> add_sums([], (np.float32(2.0), 3)), add_sums([1.0, 2.0], (1.0, 1.0))
    ([2.0, 3.0], [2.0, 3.0])
    """
    new = [_as_float64(x) for x in statistics]
    return [a + b for a, b in zip(sums, new, strict=True)] if sums else new


def _as_array(x: TensorLike) -> Array:
    """Return an array of a value, which a tape may record: no gradient goes through metrics."""
    return np.asarray(as_array(stop_gradient(x) if isinstance(x, Tensor) else x))


def _as_float64(x: Any) -> float | Array:
    return float(x) if not getattr(x, "shape", ()) else np.asarray(x, np.float64)


class FunctionMetric(Metric):
    """The mean over the examples of a function of labels and predictions."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        dtype: object = None,
        **arguments: Any,
    ) -> None:
        super().__init__(name or getattr(function, "__name__", "metric"), dtype)
        self.function, self.arguments = function, arguments

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        values = self.function(y_true, y_pred, **self.arguments)
        if not hasattr(values, "shape") and not isinstance(values, float | int):
            raise ArgumentError(
                f"{self.name}: a metric gives one number or one for each example, this one gave "
                f"{type(values).__name__}."
            )
        if not getattr(values, "shape", ()):  # the mean of a batch, as functions of TensorFlow.js's users return it
            return values * len(y_true), len(y_true)
        total, count = sum_weighted(self.name, values, sample_weight)
        each = len(values) / values.size  # the weight of one of several values of an example
        return (total, count) if each == 1.0 else (total * each, count * each)

    def compute(self, *sums: Any) -> Any:
        total, count = sums
        return total / count if count else 0.0

    def get_config(self) -> dict[str, Any]:
        return {"function": self.function, "name": self.name, **self.arguments}


MeanMetricWrapper = FunctionMetric


class Mean(Metric):
    """The weighted mean of values.

    >>> mean = pb.metrics.Mean()
    >>> mean.update_state([1.0, 3.0, 5.0, 7.0], sample_weight=[1, 1, 0, 0])
    >>> mean.result()
    2.0
    """

    def measure(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> tuple[Any, ...]:
        return sum_weighted(self.name, y_true, sample_weight)

    def compute(self, *sums: Any) -> Any:
        return sums[0] / sums[1] if sums[1] else 0.0

    def update_state(  # type: ignore[override]  # of values alone
        self, values: TensorLike, sample_weight: TensorLike | None = None
    ) -> None:
        """Add values to the mean."""
        super().update_state(values, values, sample_weight)

    def __call__(self, values: TensorLike, sample_weight: TensorLike | None = None) -> Any:  # type: ignore[override]
        """Add values and return the result."""
        self.update_state(values, sample_weight)
        return self.result()


class Sum(Mean):
    """The weighted sum of values.

    >>> total = pb.metrics.Sum()
    >>> total.update_state([1.0, 3.0, 5.0, 7.0])
    >>> total.result()
    16.0
    """

    def compute(self, *sums: Any) -> Any:
        return sums[0]
