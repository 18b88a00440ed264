"""What a model was compiled with, as Keras and TensorFlow.js write it: the optimizer, losses and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pullback.core.suggestions import snake_case
from pullback.core.variable import Variable
from pullback.errors import CheckpointError, PullbackError
from pullback.train.io.keras_names import normalize_name
from pullback.train.io.optimizer_slots import load_state
from pullback.train.optim import optimizers
from pullback.train.optim.named import as_optimizer
from pullback.train.optim.step import ITERATIONS, Optimizer
from pullback.typing import Array

__all__ = [
    "CompileSettings", "ListedState", "NamedState", "OptimizerState", "describe_training", "make_training_error",
    "read_training", "restore_state",
]  # fmt: skip

Json = Any  # what json.loads returns
Config = dict[str, Any]
OPTIONS = ("clip_value", "clip_norm", "clip_global_norm", "weight_decay")
# Arguments of optimizers that are called otherwise here; of two, the one that the optimizer takes.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "learningrate": ("learning_rate",), "lr": ("learning_rate",), "beta1": ("beta1",), "beta2": ("beta2",),
    "nesterov": ("use_nesterov", "nesterov"), "usenesterov": ("use_nesterov",), "rho": ("rho", "decay"),
    "decay": ("decay",),
    "clipnorm": ("clip_norm",), "clipvalue": ("clip_value",), "globalclipnorm": ("clip_global_norm",),
    "weightdecay": ("weight_decay",), "epsilon": ("epsilon",), "momentum": ("momentum",), "centered": ("centered",),
    "amsgrad": ("amsgrad",), "learningratepower": ("learning_rate_power",), "beta": ("beta",),
    "l1regularizationstrength": ("l1_regularization_strength",),
    "l2regularizationstrength": ("l2_regularization_strength",),
    "l2shrinkageregularizationstrength": ("l2_shrinkage_regularization_strength",),
    "initialaccumulatorvalue": ("initial_accumulator_value",),
}  # fmt: skip
WITHOUT_EFFECT = ("name", "emamomentum", "jitcompile", "islegacyoptimizer")
LOGITS = {
    "binary_crossentropy": "sigmoid_cross_entropy", "categorical_crossentropy": "softmax_cross_entropy",
    "sparse_categorical_crossentropy": "sparse_softmax_cross_entropy",
}  # fmt: skip
LOSS_DEFAULTS = {  # arguments of losses that mean nothing
    "reduction": ("sum_over_batch_size", "auto", "mean"), "axis": (-1,), "label_smoothing": (0,), "delta": (1,),
    "ignore_class": (), "threshold": (0.5,), "k": (5,),
}  # fmt: skip


class CompileSettings(NamedTuple):
    """The arguments of ``compile``: an optimizer, and the others by name."""

    optimizer: Optimizer
    arguments: Config


class NamedState(NamedTuple):
    """The state of an optimizer in a file: how many steps it made, and the slots of variables by their names."""

    iterations: int
    slots: list[tuple[Variable, str, Array]]


class ListedState(NamedTuple):
    """The state of an optimizer in a file: the arrays as Keras lists them, and the variables that they are of."""

    values: list[Array]
    variables: list[Variable]


OptimizerState: TypeAlias = "NamedState | ListedState"


def restore_state(optimizer: Optimizer, state: OptimizerState, where: str) -> None:
    """Load a state into the optimizer that a file was compiled with."""
    try:
        if isinstance(state, ListedState):
            load_state(optimizer, state.values, state.variables)
            return
        plain = {key: x for key, x in optimizer.state_dict().items() if "/" not in key}
        slots = {f"{v.name}/{slot}": np.asarray(x, v.dtype) for v, slot, x in state.slots}
        variables = list({id(v): v for v, _, _ in state.slots}.values())
        optimizer.load_state_dict(plain | {ITERATIONS: state.iterations} | slots, variables)
    except PullbackError as error:
        raise make_training_error(where, error) from error


def read_training(data: Json, where: str) -> CompileSettings | None:
    """Return the arguments of ``compile`` that a file has; None if the model was not compiled."""
    if not isinstance(data, dict):
        return None
    described = data.get("optimizer", data.get("optimizer_config"))
    if described is None or data.get("loss") is None:
        return None
    try:
        arguments = {"loss": _read_names(data["loss"]), "metrics": _read_names(data.get("metrics") or [])}
        if data.get("loss_weights") is not None:
            arguments["loss_weights"] = data["loss_weights"]
        return CompileSettings(_read_optimizer(described), arguments)
    except PullbackError as error:
        raise make_training_error(where, error) from error
    except (TypeError, ValueError) as error:
        raise make_training_error(where, f"its optimizer cannot be made: {error}.") from error


def make_training_error(where: str, why: object) -> CheckpointError:
    """Return the error that a model cannot be compiled with what its file says."""
    return CheckpointError(f"load: {where} was compiled with what is not known here: {why} Load it with compile=False.")


def _read_names(data: Json) -> Any:
    """Return losses or metrics in the form that the file has them in: one, or a list or dict by output."""
    if isinstance(data, list):
        return [_read_names(one) for one in data if one is not None]
    if isinstance(data, dict) and "class_name" not in data:
        return {key: _read_names(one) for key, one in data.items()}
    return _read_name(data)


def _read_name(data: Json) -> str:
    """Return the name of a loss or metric that is given by name, or by its class and arguments."""
    if isinstance(data, str):
        return data
    if not isinstance(data, dict) or not isinstance(data.get("class_name"), str):
        raise CheckpointError(f"{data!r} is no loss or metric.")
    if data["class_name"] == "function" and isinstance(data.get("config"), str):
        return str(data["config"])
    name, config = snake_case(data["class_name"]), data.get("config")
    config = dict(config) if isinstance(config, dict) else {}
    if data["class_name"] in ("MeanMetricWrapper", "LossFunctionWrapper") and config.get("fn") is not None:
        return _read_name(config["fn"])  # Keras 2
    if config.pop("from_logits", False):
        if name not in LOGITS:
            raise CheckpointError(f"{name} has from_logits=True, which it cannot have here.")
        name = LOGITS[name]
    for key, value in config.items():
        plain = key in ("name", "dtype", "fn") or value is None or value is False or value in LOSS_DEFAULTS.get(key, ())
        if not plain:
            raise CheckpointError(f"{name} has {key}={value!r}, which it cannot have here.")
    return name


def _read_optimizer(data: Json) -> Optimizer:
    """Return the optimizer of a class name and a config, or of a name."""
    if isinstance(data, str):
        return as_optimizer(data)
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("class_name"), str) or not isinstance(config, dict):
        raise CheckpointError(f"{data!r} is no optimizer.")
    given = {normalize_name(key): value for key, value in config.items() if value is not None}
    name = normalize_name(data["class_name"].rpartition(">")[2])
    make = {normalize_name(known): getattr(optimizers, known) for known in optimizers.__all__}.get(name)
    if make is None:
        raise CheckpointError(f"there is no optimizer {data['class_name']!r} here.")
    arguments = _match_arguments(given, [*signature(make).parameters, *OPTIONS], data["class_name"])
    made: Optimizer = make(**arguments)
    return made


def _match_arguments(config: Config, takes: Sequence[str], name: str) -> Config:
    """Return the arguments of an optimizer by their names here; one that it has not must be switched off."""
    arguments: Config = {}
    for key, value in config.items():
        target = next((one for one in ARGUMENTS.get(key, ()) if one in takes), None)
        if target is not None:
            arguments[target] = value
        elif value is not False and value != 0 and key not in WITHOUT_EFFECT:
            raise CheckpointError(f"{name} has {key}={value!r}, which it cannot have here.")
    return arguments


# ---- write

SPELLINGS = {"sgd": "SGD", "rmsprop": "RMSprop", "adamw": "AdamW"}
TFJS_SPELLINGS = {"rmsprop": "RMSProp", "momentum": "Momentum"}
TFJS_OPTIMIZERS = ("sgd", "momentum", "adagrad", "adadelta", "adam", "adamax", "rmsprop")
TFJS_LOSSES = (
    "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error",
    "squared_hinge", "hinge", "categorical_hinge", "logcosh", "categorical_crossentropy", "binary_crossentropy",
    "sparse_categorical_crossentropy", "kullback_leibler_divergence", "poisson", "cosine_proximity",
)  # fmt: skip
TFJS_METRICS = (
    "accuracy", "acc", "binary_accuracy", "categorical_accuracy", "precision", "recall", "mean_squared_error", "mse",
    "mean_absolute_error", "mae", "mean_absolute_percentage_error", "mape", "binary_crossentropy",
    "categorical_crossentropy", "sparse_categorical_accuracy", "sparse_categorical_crossentropy", "cosine_proximity",
)  # fmt: skip
LOSS_NAMES = {
    "mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error", "kld": "kullback_leibler_divergence", "log_cosh": "logcosh",
    "bce": "binary_crossentropy",
}  # fmt: skip
KERAS_NAMES = {"beta1": "beta_1", "beta2": "beta_2", "use_nesterov": "nesterov", "clip_norm": "clipnorm",
               "clip_value": "clipvalue", "clip_global_norm": "global_clipnorm"}  # fmt: skip
TFJS_NAMES = {"learning_rate": "learningRate", "use_nesterov": "useNesterov",
              "initial_accumulator_value": "initialAccumulatorValue"}  # fmt: skip


def describe_training(optimizer: Optimizer | None, arguments: Mapping[str, Any] | None, is_keras: bool) -> Json:
    """Return what a model is compiled with as JSON data; None if it is not, or the other library has not all of it."""
    if optimizer is None or arguments is None or arguments.get("loss") is None or arguments.get("weighted_metrics"):
        return None
    config = {key: x for key, x in optimizer.get_config().items() if x is not None and x is not False}
    if not all(isinstance(x, bool | int | float) for x in config.values()):
        return None
    loss = _spell_names(arguments["loss"])
    metrics = arguments.get("metrics") or []
    describe = _describe_for_keras if is_keras else _describe_for_tfjs
    return describe(optimizer.name, config, loss, metrics, arguments.get("loss_weights"))


def _describe_for_tfjs(name: str, config: Config, loss: Json, metrics: Json, weights: Json) -> Json:
    known = all(one in TFJS_LOSSES for one in _flatten(loss)) and all(one in TFJS_METRICS for one in _flatten(metrics))
    if not known or weights or name not in TFJS_OPTIMIZERS or any(key in OPTIONS for key in config):
        return None
    described = {TFJS_NAMES.get(key, key): x for key, x in config.items()}
    spelt = TFJS_SPELLINGS.get(name) or SPELLINGS.get(name) or name.capitalize()
    return {"loss": loss, "metrics": metrics, "optimizer_config": {"class_name": spelt, "config": described}}


def _describe_for_keras(name: str, config: Config, loss: Json, metrics: Json, weights: Json) -> Json:
    if any(one.endswith("cross_entropy") for one in _flatten(loss)):
        return None  # losses of logits have other names there
    renamed = KERAS_NAMES | ({"decay": "rho"} if name == "rmsprop" else {})
    described = {renamed.get(key, key): x for key, x in config.items() if key != "lazy"}
    spelt = "SGD" if name == "momentum" else SPELLINGS.get(name) or name.capitalize()
    made = {"class_name": spelt, "config": described, "module": "keras.optimizers", "registered_name": None}
    rest = {"loss_weights": weights, "weighted_metrics": None}
    return {"optimizer": made, "loss": loss, "metrics": metrics, **rest}


def _spell_names(names: Json) -> Json:
    """Return losses in their structure, by the names that all libraries have; one in a list alone."""
    if isinstance(names, str):
        plain = snake_case(names) if not names.isupper() else names.lower()
        return LOSS_NAMES.get(plain, plain)
    if isinstance(names, Mapping):
        return {key: _spell_names(one) for key, one in names.items()}
    made = [_spell_names(one) for one in names or []]
    return made[0] if len(made) == 1 else made


def _flatten(names: Json) -> list[str]:
    """Return the names of losses or metrics in a list."""
    if isinstance(names, str):
        return [names]
    listed = names.values() if isinstance(names, Mapping) else names or []
    return [name for one in listed for name in _flatten(one)]
