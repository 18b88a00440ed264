"""Optimizers by name: those of TensorFlow.js and Keras, in any spelling."""

from __future__ import annotations

from pullback.core.suggestions import did_you_mean
from pullback.errors import ArgumentError
from pullback.train.optim import optimizers
from pullback.train.optim.step import Optimizer

DEFAULTS: dict[str, tuple[float, ...]] = {
    "sgd": (0.01,),
    "momentum": (0.01, 0.9),
    "adagrad": (0.01,),
    "rmsprop": (0.001,),
}
NAMES = [name for name in optimizers.__all__ if name != "loss_scale_optimizer"]
SPELLINGS = {name.replace("_", ""): name for name in NAMES}


def as_optimizer(identifier: Optimizer | str | None) -> Optimizer:
    """Return an optimizer; for a name, in any spelling, one with default arguments.

    >>> as_optimizer("RMSprop").name
    'rmsprop'
    """
    if isinstance(identifier, Optimizer):
        return identifier
    name = SPELLINGS.get(identifier.replace("_", "").lower()) if isinstance(identifier, str) else None
    if name is None:
        raise ArgumentError(
            f"compile: optimizer must be one of pb.train's, or one of the names {', '.join(NAMES)}; got {identifier!r}."
            f"{did_you_mean(identifier, NAMES)}"
        )
    optimizer: Optimizer = getattr(optimizers, name)(*DEFAULTS.get(name, ()))
    return optimizer
