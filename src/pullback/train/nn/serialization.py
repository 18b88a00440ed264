"""Layers, models, optimizers, losses, metrics and the arguments of layers as JSON data in Keras's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullback.errors import ArgumentError, CheckpointError
from pullback.train.arguments import describe_given
from pullback.train.custom_objects import custom_object_scope
from pullback.train.io.keras_names import normalize_name
from pullback.train.io.structure import is_kind
from pullback.train.io.topology import TopologyReader, find_dialect
from pullback.train.io.topology_writing import KERAS_VERSION, WRITES_KERAS, TopologyWriter
from pullback.train.io.training_config import describe_optimizer, read_optimizer
from pullback.train.loop.losses import Loss
from pullback.train.loop.metrics.metric import Metric
from pullback.train.loop.objectives import LOSS_CLASSES, METRIC_CLASSES, describe_objective, find_loss, find_metric
from pullback.train.nn.model_files import BUILDER
from pullback.train.optim import optimizers
from pullback.train.optim.step import Optimizer

ARGUMENTS = {
    "Initializer": "kernel_initializer",
    "Regularizer": "kernel_regularizer",
    "Constraint": "kernel_constraint",
}


def serialize(x: Any) -> dict[str, Any]:
    """Return an object as JSON data in Keras's form: its class and its arguments, without weights.

    x: a layer, a model, an optimizer, a loss, a metric, an initializer, a regularizer or a constraint.

    >>> pb.train.serialize(pb.initializers.constant(0.5))["config"]
    {'value': 0.5}
    >>> pb.train.deserialize(pb.train.serialize(pb.layers.dense(3, "relu", name="hidden"))).units
    3
    """
    if is_kind(x, "Layer"):
        return TopologyWriter(WRITES_KERAS).describe_model(x)
    if isinstance(x, Optimizer):
        return describe_optimizer(x)
    if isinstance(x, Loss | Metric):
        try:
            described = describe_objective(x)
        except LookupError:
            raise CheckpointError(f"serialize: {x!r} is a function without a name that a file can hold.") from None
        return {"module": "keras.losses" if isinstance(x, Loss) else "keras.metrics", **described}
    for kind, word in ARGUMENTS.items():
        if is_kind(x, kind):
            return TopologyWriter(WRITES_KERAS).describe_object(x, word)
    raise ArgumentError(f"serialize: expected a layer, model, optimizer, loss or metric, got {describe_given(x)}.")


def deserialize(data: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the object that ``serialize``, or one of Keras's functions of this name, described.

    data: the JSON data: a dict with ``class_name`` and ``config``.
    custom_objects: classes and functions of your own by their names in the data.

    >>> pb.train.deserialize({"class_name": "SGD", "config": {"learning_rate": 0.1}})
    sgd(learning_rate=0.1)
    """
    described: Any = dict(data)
    name, module = normalize_name(str(described.get("class_name"))), str(described.get("module"))
    with custom_object_scope(custom_objects):
        if name == "lossscaleoptimizer" or name in map(normalize_name, optimizers.__all__):
            return read_optimizer(described)
        if name in METRIC_CLASSES and (module == "keras.metrics" or name not in LOSS_CLASSES):
            return find_metric(described, None, "deserialize")
        if name in LOSS_CLASSES:
            return find_loss(described, "deserialize")
        return TopologyReader("deserialize", find_dialect(KERAS_VERSION, False), BUILDER).read_object(described)
