"""The base class of callbacks, and the list that calls all callbacks of a ``fit``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.errors import ArgumentError
from pullback.train.arguments import describe_given
from pullback.train.loop.model import TrainableModel

Logs = dict[str, float]
HOOKS = (
    "on_train_begin", "on_epoch_begin", "on_batch_begin", "on_batch_end", "on_epoch_end", "on_train_end",
    "on_train_batch_begin", "on_train_batch_end",
    "on_test_begin", "on_test_batch_begin", "on_test_batch_end", "on_test_end",
    "on_predict_begin", "on_predict_batch_begin", "on_predict_batch_end", "on_predict_end",
)  # fmt: skip


class Callback:
    """The base class of callbacks; one of your own defines some of these methods.

    ``self.model`` is the model in training; ``self.model.stop_training = True`` stops it.  ``logs`` has numbers by
    name: ``loss``, the metrics, and those of the validation with ``val_`` in front.

    >>> class Printing(pb.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs):
    ...         print(epoch, logs["loss"])
    >>> Printing().on_epoch_end(0, {"loss": 0.5})
    0 0.5
    """

    model: Any = None
    params: Mapping[str, Any] = MappingProxyType({})  # of the training: epochs, steps, verbose, do_validation
    stopped: str | None = None  # why it stopped the training, if it did
    stops_at_nan = False  # whether a loss that is not finite stops the training, and is no error
    last = False  # whether it is called after the others, as it reads what they have done

    @property
    def kind(self) -> str:
        """Its name in messages and checkpoints."""
        return snake_case(type(self).__name__)

    def on_train_begin(self, logs: Logs) -> None:
        """Called before the first epoch.

        logs: empty.
        """

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        """Called before the first batch of an epoch; the first epoch is 0.

        epoch: the number of the epoch, from 0 on.
        logs: empty.
        """

    def on_batch_begin(self, batch: int, logs: Logs) -> None:
        """Called before a step.

        batch: the number of the batch in its epoch, from 0 on.
        logs: the number and the size of the batch, as ``"batch"`` and ``"size"``.
        """

    def on_batch_end(self, batch: int, logs: Logs) -> None:
        """Called after a step.

        batch: the number of the batch in its epoch, from 0 on.
        logs: loss and metrics of this batch, by name, with its number and size, as in TensorFlow.js.
        """

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        """Called after an epoch and its validation.

        epoch: the number of the epoch, from 0 on.
        logs: loss and metrics of the epoch, by name.
        """

    def on_train_end(self, logs: Logs) -> None:
        """Called after the last epoch, or when training was stopped.

        logs: loss and metrics, by name.
        """

    def on_train_batch_begin(self, batch: int, logs: Logs) -> None:
        """Called before a step, as in Keras.

        batch: the number of the batch in its epoch, from 0 on.
        logs: empty.
        """

    def on_train_batch_end(self, batch: int, logs: Logs) -> None:
        """Called after a step, as in Keras.

        batch: the number of the batch in its epoch, from 0 on.
        logs: loss and metrics of the epoch up to now, by name.
        """

    def on_test_begin(self, logs: Logs) -> None:
        """Called before ``evaluate``, or the validation of ``fit``.

        logs: empty.
        """

    def on_test_batch_begin(self, batch: int, logs: Logs) -> None:
        """Called before a batch is evaluated.

        batch: the number of the batch, from 0 on.
        logs: empty.
        """

    def on_test_batch_end(self, batch: int, logs: Logs) -> None:
        """Called after a batch was evaluated.

        batch: the number of the batch, from 0 on.
        logs: loss and metrics up to now, by name.
        """

    def on_test_end(self, logs: Logs) -> None:
        """Called after ``evaluate``, or the validation of ``fit``.

        logs: loss and metrics, by name.
        """

    def on_predict_begin(self, logs: Logs) -> None:
        """Called before ``predict``.

        logs: empty.
        """

    def on_predict_batch_begin(self, batch: int, logs: Logs) -> None:
        """Called before the outputs of a batch are computed.

        batch: the number of the batch, from 0 on.
        logs: empty.
        """

    def on_predict_batch_end(self, batch: int, logs: Logs) -> None:
        """Called after the outputs of a batch were computed.

        batch: the number of the batch, from 0 on.
        logs: the outputs, as ``"outputs"``.
        """

    def on_predict_end(self, logs: Logs) -> None:
        """Called after ``predict``.

        logs: empty.
        """

    @property
    def resumes_from(self) -> str | None:
        """A checkpoint that training continues from, if the file exists."""
        return None

    def state(self) -> dict[str, Any]:
        """Return what it needs to continue later, as numbers, text and arrays."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what ``state`` returned."""

    def stop(self, why: str) -> None:
        """Stop the training, for this reason.

        why: the reason, which the history shows.
        """
        self.stopped = why
        self.model.stop_training = True


class LambdaCallback(Callback):
    """A callback made of functions by hook; TensorFlow.js's names work too, as in ``onEpochEnd``.

    functions: hooks by name, as a dict.
    more: hooks by name, as keywords.

    >>> shown = pb.callbacks.lambda_callback(on_epoch_end=lambda epoch, logs: print(epoch, logs))
    >>> shown.on_epoch_end(3, {"loss": 0.5})
    3 {'loss': 0.5}
    """

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]] | None = None, /, **more: Callable[..., Any]
    ) -> None:
        for name, function in {**(functions or {}), **more}.items():
            hook = snake_case(name)
            if function is None:
                continue
            if hook not in HOOKS:
                raise ArgumentError(
                    f"callbacks: there is no hook {name!r}; there are {', '.join(HOOKS)}.{did_you_mean(hook, HOOKS)}"
                )
            if not callable(function):
                raise ArgumentError(f"callbacks: {name} must be a function, got {type(function).__name__}.")
            setattr(self, hook, function)


CallbackLike = Callback | Mapping[str, Callable[..., Any]] | Sequence[Any] | None  # one, a dict of hooks, or a list


class CallbackList:
    """All callbacks of a ``fit``: each hook calls that hook of every callback.

    Takes one callback or a list; a callback may be a dict of functions: ``{"onEpochEnd": f}``.

    >>> both = CallbackList([{"on_epoch_end": lambda epoch, logs: print(epoch)}, Callback()], model=None)
    >>> both.on_epoch_end(3, {})
    3
    >>> both.has_batch_hooks  # whether logs are needed for every batch
    False
    """

    def __init__(
        self, callbacks: CallbackLike, model: TrainableModel | None, params: Mapping[str, Any] | None = None
    ) -> None:
        listed: Sequence[Any] = (
            callbacks if isinstance(callbacks, list | tuple) else [] if callbacks is None else [callbacks]
        )
        self.callbacks = sorted((_as_callback(callback) for callback in listed), key=lambda callback: callback.last)
        for callback in self.callbacks:
            callback.model, callback.stopped, callback.params = model, None, dict(params or {})
        self._hooks = {hook: [getattr(c, hook) for c in self.callbacks if _overrides_hook(c, hook)] for hook in HOOKS}
        self.has_batch_hooks = self.has_hooks("on_batch") or self.has_hooks("on_train_batch")

    def has_hooks(self, start: str) -> bool:
        """Return whether a callback defines a hook whose name begins like this."""
        return any(hooks for name, hooks in self._hooks.items() if name.startswith(start))

    def call(self, hook: str, *arguments: Any) -> None:
        """Call this hook of every callback that defines it."""
        for one in self._hooks[hook]:
            one(*arguments)

    def on_train_begin(self, logs: Logs) -> None:
        """Called before the first epoch."""
        self.call("on_train_begin", logs)

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        """Called before an epoch."""
        self.call("on_epoch_begin", epoch, logs)

    def on_batch_begin(self, batch: int, logs: Logs) -> None:
        """Called before a step."""
        self.call("on_batch_begin", batch, logs)
        self.call("on_train_batch_begin", batch, {})

    def on_batch_end(self, batch: int, logs: Logs) -> None:
        """Called after a step."""
        self.call("on_batch_end", batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        """Called after an epoch."""
        self.call("on_epoch_end", epoch, logs)

    def on_train_end(self, logs: Logs) -> None:
        """Called after the last epoch."""
        self.call("on_train_end", logs)

    @property
    def stops_at_nan(self) -> bool:
        """Whether a loss that is not finite stops the training, and is no error."""
        return any(callback.stops_at_nan for callback in self.callbacks)

    @property
    def resumes_from(self) -> str | None:
        """The checkpoint that training continues from, if a callback has one."""
        return next((callback.resumes_from for callback in self.callbacks if callback.resumes_from), None)

    @property
    def stopped(self) -> str | None:
        """Why a callback stopped the training; None if none did."""
        return next((callback.stopped for callback in self.callbacks if callback.stopped), None)

    def state(self) -> dict[str, Any]:
        """Return the states of all callbacks, by kind and number within the kind."""
        return {name: state for name, callback in self._name_callbacks().items() if (state := callback.state())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the states of those callbacks that have one; new callbacks start from the beginning."""
        for name, callback in self._name_callbacks().items():
            if name in state:
                callback.restore(state[name])

    def _name_callbacks(self) -> dict[str, Callback]:
        named: dict[str, Callback] = {}
        for callback in self.callbacks:
            number = sum(other.kind == callback.kind for other in named.values()) + 1
            named[f"{callback.kind}_{number}"] = callback
        return named


def _as_callback(callback: Callback | Mapping[str, Callable[..., Any]]) -> Callback:
    if isinstance(callback, Callback):
        return callback
    if isinstance(callback, Mapping):
        return LambdaCallback(callback)
    raise ArgumentError(
        f"callbacks: expected one of pb.callbacks, or a dict of functions as in {{'on_epoch_end': f}}; "
        f"got {describe_given(callback)}."
    )


def _overrides_hook(callback: Callback, hook: str) -> bool:
    """Return whether a callback defines this hook."""
    return hook in vars(callback) or getattr(type(callback), hook) is not getattr(Callback, hook)
