"""What a callback is, and how all those of a ``fit`` are called as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pullback.core.suggestions import did_you_mean, snake_case
from pullback.errors import ArgumentError

__all__ = ["Callback", "CallbackList", "LambdaCallback", "Logs"]

Logs = dict[str, float]
HOOKS = ("on_train_begin", "on_epoch_begin", "on_batch_begin", "on_batch_end", "on_epoch_end", "on_train_end")


class Callback:
    """What callbacks are made of; one of your own has some of these methods.

    ``self.model`` is the model in training; ``self.model.stop_training = True`` ends it.  ``logs`` has numbers by
    name: ``loss``, the metrics, and those of the validation with ``val_`` in front.

    >>> class Printing(pb.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs):
    ...         print(epoch, logs["loss"])
    >>> Printing().on_epoch_end(0, {"loss": 0.5})
    0 0.5
    """

    model: Any = None
    stopped: str | None = None  # why it ended the training, if it did
    last = False  # whether its turn is after the others', as it looks at what they have done

    @property
    def kind(self) -> str:
        """What it is called, in messages and in checkpoints."""
        return snake_case(type(self).__name__)

    def on_train_begin(self, logs: Logs) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        """Before the first batch of an epoch; the first epoch is 0."""

    def on_batch_begin(self, batch: int, logs: Logs) -> None:
        """Before a step."""

    def on_batch_end(self, batch: int, logs: Logs) -> None:
        """After a step."""

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        """After an epoch and its validation."""

    def on_train_end(self, logs: Logs) -> None:
        """After the last epoch, or where training was stopped."""

    def state(self) -> dict[str, Any]:
        """What it has to know to go on later, as numbers, text and arrays."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what ``state`` gave."""

    def stop(self, why: str) -> None:
        """End the training, and say why."""
        self.stopped = why
        self.model.stop_training = True


class LambdaCallback(Callback):
    """A callback made of functions; TensorFlow.js's names are known too, as in ``onEpochEnd``.

    >>> shown = pb.callbacks.lambda_callback(on_epoch_end=lambda epoch, logs: print(epoch, logs))
    >>> shown.on_epoch_end(3, {"loss": 0.5})
    3 {'loss': 0.5}
    """

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]] | None = None, /, **more: Callable[..., Any]
    ) -> None:
        for given, function in {**(functions or {}), **more}.items():
            name = snake_case(given)
            if name not in HOOKS:
                raise ArgumentError(
                    f"callbacks: there is no hook {given!r}; there are {', '.join(HOOKS)}.{did_you_mean(name, HOOKS)}"
                )
            if not callable(function):
                raise ArgumentError(f"callbacks: {given} must be a function, got {type(function).__name__}.")
            setattr(self, name, function)


class CallbackList:
    """All callbacks of a ``fit``, called as one.

    They are given as one or as a list of them, or of dicts of functions: ``{"onEpochEnd": f}``.

    >>> both = CallbackList([{"on_epoch_end": lambda epoch, logs: print(epoch)}, Callback()], model=None)
    >>> both.on_epoch_end(3, {})
    3
    >>> both.has_batch_hooks  # whether logs have to be made for every batch
    False
    """

    def __init__(self, given: Any, model: Any) -> None:
        listed = given if isinstance(given, list | tuple) else [] if given is None else [given]
        self.callbacks = sorted((_one(callback) for callback in listed), key=lambda callback: callback.last)
        for callback in self.callbacks:
            callback.model, callback.stopped = model, None
        self._of = {hook: [getattr(c, hook) for c in self.callbacks if _has(c, hook)] for hook in HOOKS}
        self.has_batch_hooks = bool(self._of["on_batch_begin"] or self._of["on_batch_end"])

    def on_train_begin(self, logs: Logs) -> None:
        """Before the first epoch."""
        for hook in self._of["on_train_begin"]:
            hook(logs)

    def on_epoch_begin(self, epoch: int, logs: Logs) -> None:
        """Before an epoch."""
        for hook in self._of["on_epoch_begin"]:
            hook(epoch, logs)

    def on_batch_begin(self, batch: int, logs: Logs) -> None:
        """Before a step."""
        for hook in self._of["on_batch_begin"]:
            hook(batch, logs)

    def on_batch_end(self, batch: int, logs: Logs) -> None:
        """After a step."""
        for hook in self._of["on_batch_end"]:
            hook(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Logs) -> None:
        """After an epoch."""
        for hook in self._of["on_epoch_end"]:
            hook(epoch, logs)

    def on_train_end(self, logs: Logs) -> None:
        """After the last epoch."""
        for hook in self._of["on_train_end"]:
            hook(logs)

    @property
    def stopped(self) -> str | None:
        """Why the training was ended, if a callback said so."""
        return next((callback.stopped for callback in self.callbacks if callback.stopped), None)

    def state(self) -> dict[str, Any]:
        """What all of them have to know to go on, by their kinds and which of that kind they are."""
        return {name: state for name, callback in self._named().items() if (state := callback.state())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` gave; callbacks that are new begin, those that are gone are forgotten."""
        for name, callback in self._named().items():
            if name in state:
                callback.restore(state[name])

    def _named(self) -> dict[str, Callback]:
        named: dict[str, Callback] = {}
        for callback in self.callbacks:
            number = sum(other.kind == callback.kind for other in named.values()) + 1
            named[f"{callback.kind}_{number}"] = callback
        return named


def _one(given: Any) -> Callback:
    if isinstance(given, Callback):
        return given
    if isinstance(given, Mapping):
        return LambdaCallback(given)
    raise ArgumentError(
        f"callbacks: expected one of pb.callbacks, or a dict of functions as in {{'on_epoch_end': f}}; "
        f"got {type(given).__name__}."
    )


def _has(callback: Callback, hook: str) -> bool:
    """Whether the hook does something."""
    return hook in vars(callback) or getattr(type(callback), hook) is not getattr(Callback, hook)
