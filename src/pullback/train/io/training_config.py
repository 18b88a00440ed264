"""What a model was compiled with, as Keras and TensorFlow.js write it: the optimizer, losses and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from pullback.train.optim.schedules import (
    Schedule,
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    piecewise_constant_decay,
    polynomial_decay,
)
from pullback.train.optim.step import ITERATIONS, RATE, Optimizer
from pullback.typing import Array

Json = Any  # what json.loads returns
Config = dict[str, Any]
OPTIONS = ("clip_value", "clip_norm", "clip_global_norm", "weight_decay")
AVERAGES = (
    "use_ema", "ema_momentum", "ema_overwrite_frequency", "gradient_accumulation_steps", "loss_scale_factor",
)  # fmt: skip
# Arguments of optimizers that are called otherwise here; of two, the one that the optimizer takes.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "learningrate": ("learning_rate",), "lr": ("learning_rate",), "beta1": ("beta1",), "beta2": ("beta2",),
    "nesterov": ("use_nesterov", "nesterov"), "usenesterov": ("use_nesterov",), "rho": ("rho", "decay"),
    "decay": ("decay",),
    "clipnorm": ("clip_norm",), "clipvalue": ("clip_value",), "globalclipnorm": ("clip_global_norm",),
    "weightdecay": ("weight_decay",), "epsilon": ("epsilon",), "momentum": ("momentum",), "centered": ("centered",),
}  # fmt: skip
SCHEDULES: dict[str, Callable[..., Schedule]] = {
    "CosineDecay": cosine_decay, "CosineDecayRestarts": cosine_decay_restarts, "ExponentialDecay": exponential_decay,
    "InverseTimeDecay": inverse_time_decay, "PiecewiseConstantDecay": piecewise_constant_decay,
    "PolynomialDecay": polynomial_decay,
}  # fmt: skip
WITHOUT_EFFECT = ("name", "emamomentum", "jitcompile", "islegacyoptimizer")
LOGITS = {
    "sigmoid_cross_entropy": "BinaryCrossentropy", "softmax_cross_entropy": "CategoricalCrossentropy",
    "sparse_softmax_cross_entropy": "SparseCategoricalCrossentropy",
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


def restore_state(optimizer: Optimizer, state: OptimizerState, where: str) -> bool:
    """Load a state into the optimizer that a file was compiled with; return whether it is one of such an optimizer."""
    try:
        if isinstance(state, ListedState):
            return load_state(optimizer, state.values, state.variables)
        own_state = {key: x for key, x in optimizer.state_dict().items() if "/" not in key}
        slots = {f"{v.name}/{slot}": np.asarray(x, v.dtype) for v, slot, x in state.slots}
        variables = list({id(v): v for v, _, _ in state.slots}.values())
        optimizer.load_state_dict(own_state | {ITERATIONS: state.iterations} | slots, variables)
        return True
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
        if data.get("weighted_metrics"):
            arguments["weighted_metrics"] = _read_names(data["weighted_metrics"])
        return CompileSettings(read_optimizer(described), arguments)
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
        return [None if one is None else _read_names(one) for one in data]
    if isinstance(data, dict) and "class_name" not in data:
        return {key: _read_names(one) for key, one in data.items()}
    return _read_name(data)


def _read_name(data: Json) -> Json:
    """Return the name of a loss or metric, or its class name and config."""
    if isinstance(data, str):
        return data
    if not isinstance(data, dict) or not isinstance(data.get("class_name"), str):
        raise CheckpointError(f"{data!r} is not a loss or metric.")
    if data["class_name"] == "function" and isinstance(data.get("config"), str):
        return str(data["config"])  # of the library, or of the user's
    config = dict(data["config"]) if isinstance(data.get("config"), dict) else {}
    if data["class_name"] in ("MeanMetricWrapper", "LossFunctionWrapper") and config.get("fn") is not None:
        return _read_name(config["fn"])  # Keras 2
    if config.get("reduction") == "auto":  # Keras 2
        del config["reduction"]
    for key in ("dtype", "fn"):
        config.pop(key, None)
    return {"class_name": data["class_name"].rpartition(">")[2], "config": config}


def read_optimizer(data: Json) -> Optimizer:
    """Return the optimizer of a class name and a config, or of a name."""
    if isinstance(data, str):
        return as_optimizer(data)
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("class_name"), str) or not isinstance(config, dict):
        raise CheckpointError(f"{data!r} is not an optimizer.")
    settings = {normalize_name(key): value for key, value in config.items() if value is not None}
    name = normalize_name(data["class_name"].rpartition(">")[2])
    if name == "lossscaleoptimizer":
        inner = read_optimizer(settings.pop("inneroptimizer", None))
        scale = _match_arguments(settings, ["initial_scale", "dynamic_growth_steps"], data["class_name"])
        return optimizers.loss_scale_optimizer(inner, **scale)
    make = {normalize_name(known): getattr(optimizers, known) for known in optimizers.__all__}.get(name)
    if make is None:
        raise CheckpointError(f"there is no optimizer {data['class_name']!r} here.")
    if isinstance(settings.get("learningrate"), dict):
        settings["learningrate"] = _read_schedule(settings["learningrate"])
    arguments = _match_arguments(settings, [*signature(make).parameters, *OPTIONS, *AVERAGES], data["class_name"])
    optimizer: Optimizer = make(**arguments)
    return optimizer


def _read_schedule(data: Config) -> Schedule:
    """Return the learning-rate schedule of a class name and a config."""
    name, config = data.get("class_name"), data.get("config")
    make = SCHEDULES.get(name) if isinstance(name, str) else None
    if make is None or not isinstance(config, dict):
        raise CheckpointError(f"{name!r} is not a learning-rate schedule of pb.train.")
    schedule: Schedule = make(**{key: value for key, value in config.items() if key != "name" and value is not None})
    return schedule


def _match_arguments(config: Config, takes: Sequence[str], name: str) -> Config:
    """Return the arguments of an optimizer by their names here; one that it has not must be switched off."""
    arguments: Config = {}
    for key, value in config.items():
        names = ARGUMENTS.get(key, [one for one in takes if normalize_name(one) == key])
        target = next((one for one in names if one in takes), None)
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
KERAS_LOSS_NAMES = {
    "logcosh": "log_cosh", "kullback_leibler_divergence": "kl_divergence", "huber_loss": "huber",
    "cosine_proximity": "cosine_similarity",
}  # fmt: skip
KERAS_LOSSES = (
    "mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error",
    "binary_crossentropy", "binary_focal_crossentropy", "categorical_crossentropy", "categorical_focal_crossentropy",
    "categorical_hinge", "circle", "cosine_similarity", "dice", "hinge", "huber", "kl_divergence", "log_cosh",
    "poisson", "sparse_categorical_crossentropy", "squared_hinge", "tversky",
)  # fmt: skip
# Metrics whose names Keras does not know, or with which it means something else.
NOT_KERAS_METRICS = (
    "circle", "cosine_proximity", "dice", "huber", "huber_loss", "kullback_leibler_divergence", "kld", "log_cosh",
    "logcosh", "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy", "tversky",
    "binary_focal_crossentropy", "categorical_focal_crossentropy", "categorical_generalized_cross_entropy",
)  # fmt: skip
KERAS_NAMES = {"beta1": "beta_1", "beta2": "beta_2", "use_nesterov": "nesterov", "clip_norm": "clipnorm",
               "clip_value": "clipvalue", "clip_global_norm": "global_clipnorm"}  # fmt: skip
TFJS_NAMES = {"learning_rate": "learningRate", "use_nesterov": "useNesterov",
              "initial_accumulator_value": "initialAccumulatorValue"}  # fmt: skip


def describe_training(optimizer: Optimizer | None, arguments: Mapping[str, Any] | None, is_keras: bool) -> Json:
    """Return what a model is compiled with as JSON data; None if it is not, or the other library has not all of it."""
    if optimizer is None or arguments is None or arguments.get("loss") is None:
        return None
    config = _list_settings(optimizer, is_keras)
    describe = _describe_for_keras if is_keras else _describe_for_tfjs
    return None if config is None else describe(optimizer.name, config, arguments)


def _list_settings(optimizer: Optimizer, is_keras: bool) -> Config | None:
    """Return the arguments of an optimizer that are set, a schedule as Keras writes it; None if JSON has not all."""
    whole = optimizer.get_config()
    config = {key: x for key, x in whole.items() if x is not None and x is not False and x != []}
    if whole != config and optimizer.name == "muon" and whole != {**config, "exclude_layers": []}:
        return None  # None and False are not its defaults
    if is_keras and isinstance(config[RATE], Schedule):
        config[RATE] = _describe_schedule(config[RATE])
    is_known = all(
        isinstance(x, bool | int | float) or (key == RATE and isinstance(x, dict)) for key, x in config.items()
    )
    return config if is_known else None


def _describe_for_tfjs(name: str, config: Config, arguments: Mapping[str, Any]) -> Json:
    loss, metrics = _spell_losses(arguments["loss"], _spell_loss), arguments.get("metrics") or []
    has_names = all(one in TFJS_LOSSES for one in _flatten(loss)) and all(
        one in TFJS_METRICS for one in _flatten(metrics)
    )
    if not has_names or arguments.get("loss_weights") or arguments.get("weighted_metrics"):
        return None
    if name not in TFJS_OPTIMIZERS or any(key in OPTIONS for key in config):
        return None
    described = {TFJS_NAMES.get(key, key): x for key, x in config.items()}
    spelt = TFJS_SPELLINGS.get(name) or SPELLINGS.get(name) or name.capitalize()
    return {"loss": loss, "metrics": metrics, "optimizer_config": {"class_name": spelt, "config": described}}


def describe_optimizer(optimizer: Optimizer) -> Config:
    """Return an optimizer as Keras writes it."""
    config = _list_settings(optimizer, True)
    if config is None:
        raise CheckpointError(f"serialize: JSON data cannot hold all arguments of {optimizer!r}.")
    return _describe_keras_optimizer(optimizer.name, config)


def _describe_keras_optimizer(name: str, config: Config) -> Config:
    renamed = KERAS_NAMES | ({"decay": "rho"} if name == "rmsprop" else {})
    described = {renamed.get(key, key): x for key, x in config.items() if key != "lazy"}
    growth = described.pop("dynamic_growth_steps", None)
    scale = described.pop("loss_scale_factor", 1.0) if growth is not None else None
    spelt = "SGD" if name == "momentum" else SPELLINGS.get(name) or name.capitalize()
    described_optimizer = _describe_keras_object("keras.optimizers", spelt, {"name": spelt.lower(), **described})
    if growth is not None:
        outer = {"inner_optimizer": described_optimizer, "initial_scale": scale, "dynamic_growth_steps": growth}
        described_optimizer = _describe_keras_object("keras.optimizers", "LossScaleOptimizer", outer)
    return described_optimizer


def _describe_for_keras(name: str, config: Config, arguments: Mapping[str, Any]) -> Json:
    described = _describe_keras_optimizer(name, config)
    try:
        loss = _spell_losses(arguments["loss"], _describe_keras_loss)
        metrics, weighted = (
            _map_names(_describe_keras_metric, arguments.get(key)) for key in ("metrics", "weighted_metrics")
        )
    except LookupError:
        return None
    rest = {"loss_weights": arguments.get("loss_weights"), "weighted_metrics": weighted or None}
    return {"optimizer": described, "loss": loss, "metrics": metrics or [], **rest}


def _describe_keras_loss(loss: Json) -> Json:
    """Return a loss as Keras writes it; raise LookupError if Keras has none such."""
    if not isinstance(loss, str):
        return _describe_keras_given("keras.losses", loss)
    name = _spell_loss(loss)
    if name in LOGITS:
        return _describe_keras_object("keras.losses", LOGITS[name], {"from_logits": True})
    name = KERAS_LOSS_NAMES.get(name, name)
    if name not in KERAS_LOSSES:
        raise LookupError(name)
    return name


def _describe_keras_metric(metric: Json) -> Json:
    """Return a metric as Keras writes it; raise LookupError if Keras has none such."""
    if not isinstance(metric, str):
        return _describe_keras_given("keras.metrics", metric)
    if snake_case(metric) in NOT_KERAS_METRICS:
        raise LookupError(metric)
    return metric


def _describe_keras_given(module: str, given: Config) -> Config:
    """Return a loss or metric with arguments, or a function of the user's, as Keras writes it."""
    kind, config = given["class_name"], given["config"]
    if kind == "function":
        return {"module": "builtins", "class_name": kind, "config": config, "registered_name": kind}
    return _describe_keras_object(module, kind, config)


def _describe_keras_object(module: str, name: str, config: Config) -> Config:
    return {"module": module, "class_name": name, "config": dict(config), "registered_name": None}


def _describe_schedule(schedule: Schedule) -> Json:
    """Return a schedule as Keras writes it; None if Keras has none such."""
    make, values = schedule.constructor or (None, ())
    spelt = next((name for name, known in SCHEDULES.items() if known is make), None)
    if make is None or spelt is None:
        return None
    first = {"steps": "first_decay_steps"} if make is cosine_decay_restarts else {}
    names = {"rate": "initial_learning_rate", "steps": "decay_steps", "factor": "decay_rate"}
    names |= {"final": "end_learning_rate"} | first
    config = {names.get(key, key): x for key, x in zip(signature(make).parameters, values, strict=False)}
    if make is cosine_decay:  # Keras has the last rate as a share of the largest
        final, top = config.pop("end_learning_rate"), config.get("warmup_target") or config["initial_learning_rate"]
        config["alpha"] = final / top if top else 0.0
    return _describe_keras_object("keras.optimizers.schedules", spelt, config)


def _spell_loss(loss: Json) -> Json:
    """Return the name of a loss that all libraries have; what has arguments stays as it is."""
    if not isinstance(loss, str):
        return loss
    spelled = snake_case(loss) if not loss.isupper() else loss.lower()
    return LOSS_NAMES.get(spelled, spelled)


def _spell_losses(losses: Json, describe: Callable[[Json], Json]) -> Json:
    """Return losses in their structure, each described; one in a list alone."""
    spelled = _map_names(describe, losses)
    return spelled[0] if isinstance(spelled, list) and len(spelled) == 1 else spelled


def _map_names(describe: Callable[[Json], Json], names: Json) -> Json:
    """Return losses or metrics in their structure, each described."""
    if names is None or isinstance(names, str) or (isinstance(names, Mapping) and "class_name" in names):
        return None if names is None else describe(names)
    if isinstance(names, Mapping):
        return {key: _map_names(describe, one) for key, one in names.items()}
    return [_map_names(describe, one) for one in names]


def _flatten(names: Json) -> list[str]:
    """Return the names of losses or metrics in a list; what has arguments has the name of its class."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, Mapping) and "class_name" in names:
        return [names["class_name"]]
    listed = names.values() if isinstance(names, Mapping) else names or []
    return [name for one in listed for name in _flatten(one)]
