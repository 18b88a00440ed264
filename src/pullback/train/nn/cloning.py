"""Copies of models with new weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.errors import ArgumentError
from pullback.train.arguments import describe_given
from pullback.train.nn.layers.base import Layer
from pullback.train.nn.models import Model

M = TypeVar("M", bound=Model)


def clone_model(model: M, clone_function: Callable[[Layer], Layer] | None = None) -> M:
    """Return a model of the same layers, with variables of its own that begin as the initializers say.

    ``copy.deepcopy(model)`` copies the values as well.

    model: the model; a class of your own needs ``get_config``, or attributes named like its arguments.
    clone_function: returns the layer to take in place of one of the model's; without it, one with the same arguments.

    >>> model = pb.sequential([pb.layers.dense(3, input_shape=[2]), pb.layers.dense(1)])
    >>> other = pb.clone_model(model)
    >>> other.set_weights(model.get_weights())
    >>> bool(np.all(other(np.ones((1, 2))) == model(np.ones((1, 2)))))
    True
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"clone_model: expected a model, got {describe_given(model)}.")
    copies: dict[int, Any] = {}  # a layer that occurs twice is one layer in the copy too

    def copy(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(copy(one) for one in x)
        if isinstance(x, dict):
            return {key: copy(one) for key, one in x.items()}
        if not isinstance(x, Layer):
            return x
        if id(x) not in copies:
            copies[id(x)] = _rebuild(x) if clone_function is None or isinstance(x, Model) else clone_function(x)
        return copies[id(x)]

    def _rebuild(x: Layer) -> Any:
        return type(x).from_config(copy(x.get_config()))

    cloned: M = copy(model)
    return cloned
