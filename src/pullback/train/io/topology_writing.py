"""Models as the JSON of Keras and TensorFlow.js, with arguments that the other library has, or an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np

from pullback.core.suggestions import snake_case
from pullback.errors import CheckpointError
from pullback.train.custom_objects import name_custom
from pullback.train.io.keras_names import SCALINGS, find_class, is_without_effect, normalize_name, spell_class
from pullback.train.io.peer_arguments import KERAS, TFJS
from pullback.train.io.structure import Configurable, is_kind

Json = Any  # what json.dumps takes
KERAS_VERSION = "3.15.0"  # whose files these are like
Config = dict[str, Any]
DESCRIBED = {"_initializer": "initializers", "_regularizer": "regularizers", "_constraint": "constraints"}
TFJS_ACTIVATIONS = {
    "elu", "selu", "relu", "relu6", "linear", "sigmoid", "hard_sigmoid", "softplus", "softsign", "tanh", "softmax",
    "log_softmax", "gelu", "mish", "swish",
}  # fmt: skip
RENAMED = {"output_dim": "output_shape", "alpha": "negative_slope", "negative_slope": "alpha"}
KERAS_ACTIVATIONS = {"hard_sigmoid6": "hard_sigmoid", "silu": "swish"}
# Functions of symbolic tensors as layers: of two tensors, of a tensor and a number, of one tensor.
MERGES = {
    "add": "Add", "subtract": "Subtract", "multiply": "Multiply", "maximum": "Maximum", "minimum": "Minimum",
}  # fmt: skip
RESCALINGS: dict[str, Callable[[float, bool], tuple[float, float] | None]] = {  # to a scale and an offset
    "add": lambda number, is_first: (1.0, number),
    "subtract": lambda number, is_first: (1.0, -number) if is_first else (-1.0, number),
    "multiply": lambda number, is_first: (number, 0.0),
    "divide": lambda number, is_first: (1.0 / number, 0.0) if is_first and number else None,
    "negative": lambda number, is_first: (-1.0, 0.0),
}
FUNCTIONS = {
    "tanh": "tanh", "exp": "exponential", "pb.relu": "relu", "pb.sigmoid": "sigmoid", "pb.softmax": "softmax",
    "pb.tanh": "tanh", "pb.elu": "elu", "pb.selu": "selu", "pb.softplus": "softplus",
}  # fmt: skip
# Functions that are operations in the graphs of Keras: of one tensor, and along axes.
OPERATIONS = (
    "absolute", "arctan", "arcsinh", "ceil", "cos", "cosh", "expm1", "floor", "log", "log1p", "reciprocal", "sign",
    "sin", "sinh", "sqrt", "square", "tan",
)  # fmt: skip
REDUCTIONS = {"mean": "Mean", "sum": "Sum", "max": "Max", "amax": "Max", "min": "Min", "amin": "Min", "prod": "Prod"}
CALL_SETTINGS = {"causal": "use_causal_mask", "return_attention_scores": "return_attention_scores"}


@dataclass(frozen=True)
class WrittenLibrary:
    """The library that a file is written for: the arguments of its layers, and which mean something else there."""

    library: str
    layers: Mapping[str, str]
    refused: tuple[tuple[str, str, Any], ...]  # class, argument and value; the class may be empty for all
    is_keras: bool


WRITES_TFJS = WrittenLibrary(
    "TensorFlow.js",
    TFJS,
    (
        ("UpSampling2d", "interpolation", "bilinear"),
        ("", "reset_after", True),
        ("Conv1d", "padding", "causal"),
    ),
    False,
)
WRITES_KERAS = WrittenLibrary(
    "Keras 3", KERAS, (("", "activation", "hard_sigmoid"), ("", "recurrent_activation", "hard_sigmoid")), True
)


class TopologyWriter:
    """Describes one model for one library; gives every layer a name that no other has."""

    def __init__(self, target: WrittenLibrary) -> None:
        self.target = target
        self.names: dict[int, str] = {}  # of layers, by identity
        self._taken: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._has_masks = False  # whether a layer of the model makes masks

    def describe_model(self, model: Any) -> Config:
        """Return the JSON data of a model."""
        self._name_layers(model, model.name)
        every = list(model.iterate_layers())
        self._has_masks = any(is_kind(one, "Masking") or getattr(one, "mask_zero", False) for one in every)
        return self.describe_layer(model)

    def name_layer(self, name: str) -> str:
        """Return this name, or one with a number if another layer has it."""
        free, number = name, 0
        while free in self._taken:
            number += 1
            free = f"{name}_{number}"
        self._taken.add(free)
        return free

    def _name_layers(self, layer: Any, name: str) -> None:
        if id(layer) in self.names:
            return
        self.names[id(layer)] = self.name_layer(name)
        for key, part in layer.parts():
            if is_kind(part, "Layer"):
                self._name_layers(part, key if is_kind(layer, "Model") else part.name.rpartition("/")[2])

    # ---- layers

    def describe_layer(self, layer: Any) -> Config:
        kind, name = type(layer), self.names[id(layer)]
        if kind is Configurable.registry.get("Sequential"):
            return self._wrap("Sequential", self._describe_sequential(layer, name), "keras")
        if kind is Configurable.registry.get("Functional"):
            spelt = "Functional" if self.target.is_keras else "Model"
            return self._wrap(spelt, GraphWriter(self, layer, name).describe(), "keras.src.models.functional")
        if is_kind(layer, "ApplyFunction") and (described := self._describe_function(layer)) is not None:
            module = "keras.layers" if described[0] in self.target.layers else "keras.src.ops.numpy"
            return self._wrap(described[0], described[1] | {"name": name}, module)
        is_custom = is_own_class(kind)
        spelt = kind.registered_name if is_custom else spell_class(kind.__name__)
        if not is_custom and spelt not in self.target.layers:
            raise CheckpointError(
                f"save: {name} is a {kind.__name__} layer, which {self.target.library} does not have."
            )
        config = self._describe_arguments(layer, spelt, is_custom, name)
        frozen = {} if layer.trainable else {"trainable": False}  # not every layer of Keras takes it
        return self._wrap(spelt, config | {"name": name, **frozen}, "keras.layers", is_custom)

    def _describe_function(self, layer: Any) -> tuple[str, Config] | None:
        """Return the class and config of a layer that computes a function of symbolic tensors; None if there is none.

        ``h + x`` is an ``Add`` layer, ``2.0 * h`` a ``Rescaling``, ``np.tanh(h)`` an ``Activation``.
        """
        name, operands = layer.function.removeprefix("np."), list(layer.arguments)
        if self._has_masks:  # which such a layer passes on, and the function does not
            return None
        if name == "concatenate" and operands == [[{"input": i} for i in range(len(layer.shapes))]]:
            return "Concatenate", {"axis": layer.keywords.get("axis", 0)}
        if self.target.is_keras and operands == [{"input": 0}]:
            if name in REDUCTIONS and layer.keywords.keys() <= {"axis", "keepdims"}:
                return REDUCTIONS[name], {"axis": None, "keepdims": False, **layer.keywords}
            if name in OPERATIONS and not layer.keywords:
                return name.capitalize(), {}
        return None if layer.keywords else self._describe_arithmetic(layer, name, operands)

    def _describe_arithmetic(self, layer: Any, name: str, operands: list[Any]) -> tuple[str, Config] | None:
        """Return the class and config of a sum, a multiple or an activation of symbolic tensors; None for others."""
        tensors = [isinstance(x, dict) and "input" in x for x in operands]
        merge, ranks = MERGES.get(name, ""), {len(shape) for shape in layer.shapes}
        if (
            all(tensors)
            and operands == [{"input": 0}, {"input": 1}]
            and merge in self.target.layers
            and len(ranks) == 1
        ):
            return merge, {}
        if name in RESCALINGS and sum(tensors) == 1 and len(operands) <= 2:
            return _describe_rescaling(name, operands, tensors[0])
        activation = FUNCTIONS.get(name)
        if tensors != [True] or activation is None or (not self.target.is_keras and activation not in TFJS_ACTIVATIONS):
            return None
        return "Activation", {"activation": activation}

    def _wrap(self, kind: str, config: Config, module: str, is_custom: bool = False) -> Config:
        described: Config = {"class_name": kind, "config": config}
        if self.target.is_keras:
            described |= {
                "module": None if is_custom else module,
                "registered_name": f"Custom>{kind}" if is_custom else None,
            }
        return described

    def _describe_arguments(self, layer: Any, spelt: str, is_custom: bool, name: str) -> Config:
        """Return the arguments of a layer that the library has; refuse the others, unless they mean nothing."""
        takes = signature(type(layer)).parameters
        taken = set(takes) if is_custom else set(self.target.layers[spelt].split())
        config: Config = {}
        for argument, value in layer.get_config().items():
            if argument in ("name", "trainable", "input_shape", "batch_input_shape"):
                continue
            written = RENAMED[argument] if argument not in taken and RENAMED.get(argument) in taken else argument
            self._check_meaning(type(layer).__name__, argument, value, name)
            if argument in CALL_SETTINGS and self.target.is_keras:
                continue  # an argument of the call there
            if argument == "dtype":
                config |= {} if value is None else {"dtype": self._describe(value, name, "dtype")}
            elif written in taken and value is None and written in config:
                continue  # an argument with two names, of which this one is not given
            elif written in taken:
                config[written] = self._describe(_repeat(value, argument, spelt), name, argument)
            elif not _is_without_effect(argument, value, takes.get(argument)):
                raise CheckpointError(
                    f"save: {name} has {argument}={value!r}, which {spelt} of {self.target.library} does not take."
                )
        return config

    def _check_meaning(self, kind: str, argument: str, value: Any, name: str) -> None:
        refused = any(
            owner in ("", kind) and argument == known and value == other for owner, known, other in self.target.refused
        )
        if argument == "lora_rank" and value is not None:
            raise CheckpointError(
                f"save: {name} has lora_rank={value}, which files of {self.target.library} hold otherwise. Call "
                "layer.merge_lora() first, or save it as .safetensors."
            )
        if argument.endswith("activation") and isinstance(value, str) and not self.target.is_keras:
            refused = refused or self._spell_activation(value) not in TFJS_ACTIVATIONS
        if refused:
            raise CheckpointError(
                f"save: {name} has {argument}={value!r}, which {self.target.library} does not compute as it is here."
            )

    def _describe(self, value: Any, name: str, argument: str) -> Json:
        """Return the value of an argument as JSON data."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self._describe_text(value, name, argument)
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return str(np.dtype(value))
        if isinstance(value, list | tuple):
            return [self._describe(item, name, argument) for item in value]
        if isinstance(value, dict):
            return {str(key): self._describe(item, name, argument) for key, item in value.items()}
        if is_kind(value, "Layer"):
            return self._describe_inner(value)
        if isinstance(value, Configurable):
            return self._describe_configurable(value, name, argument)
        if self.target.is_keras and (custom_name := name_custom(value)) is not None:
            return {
                "module": "builtins",
                "class_name": "function",
                "config": custom_name,
                "registered_name": "function",
            }
        raise CheckpointError(f"save: {name} has {argument}={value!r}, which a file cannot hold. Use a name.")

    def _describe_text(self, value: str, name: str, argument: str) -> Json:
        """Return an argument that is text: the name of an initializer and the like, of an activation, or plain text."""
        module = next((one for end, one in DESCRIBED.items() if argument.endswith(end)), None)
        if module is not None:
            return self._describe_named(value, name, argument, module)
        return self._spell_activation(value) if argument.endswith("activation") else value

    def _spell_activation(self, name: str) -> str:
        """Return the name of an activation in the library that is written for."""
        spellings = KERAS_ACTIVATIONS if self.target.is_keras else {"silu": "swish"}
        return spellings.get(snake_case(name), snake_case(name))

    def _describe_inner(self, layer: Any) -> Config:
        if id(layer) not in self.names:
            self._name_layers(layer, layer.name.rpartition("/")[2])
        return self.describe_layer(layer)

    def _describe_named(self, value: str, name: str, argument: str, module: str) -> Json:
        """Return an initializer, regularizer or constraint that is given by its name."""
        if normalize_name(value) in SCALINGS:
            return self._describe_scaling(SCALINGS[normalize_name(value)])
        kind = find_class(value)
        if kind is None:
            raise CheckpointError(f"save: {name} has {argument}={value!r}, which is not one of pb.{module}.")
        return self._describe_configurable(kind(), name, argument)

    def _describe_scaling(self, config: Config) -> Config:
        if self.target.is_keras and config["distribution"] == "normal":
            config = config | {"distribution": "truncated_normal"}
        return self._wrap("VarianceScaling", {"seed": None, **config}, "keras.initializers")

    def describe_object(self, x: Any, argument: str) -> Config:
        """Return an initializer, regularizer or constraint; ``argument`` is one of a layer that takes it."""
        return self._describe_configurable(x, "serialize", argument)

    def _describe_configurable(self, x: Any, name: str, argument: str) -> Config:
        kind, config = type(x).__name__, x.get_config()
        if kind == "VarianceScaling":
            return self._describe_scaling(config)
        if kind in ("L1", "L2") and not self.target.is_keras:
            kind, config = "L1L2", {"l1": 0.0, "l2": 0.0, **config}
        module = next((one for end, one in DESCRIBED.items() if argument.endswith(end)), "layers")
        described = {key: self._describe(item, name, f"{argument}: {key}") for key, item in config.items()}
        is_custom = is_own_class(type(x))
        return self._wrap(
            type(x).registered_name if is_custom else spell_class(kind), described, f"keras.{module}", is_custom
        )

    # ---- models

    def _describe_sequential(self, model: Any, name: str) -> Config:
        described = [self.describe_layer(layer) for layer in model.layers]
        for layer, one in zip(model.layers, described, strict=True):
            if settings := find_call_settings(layer):
                raise CheckpointError(
                    f"save: {one['config']['name']} has {', '.join(settings)}, which are arguments of the call in "
                    f"{self.target.library}: make the model with pb.model."
                )
        if model.shapes:
            first = self.describe_input(self.name_layer(f"{name}_input"), model.shapes[0])
            described.insert(0, first)
        return {"name": name, "layers": described}

    def describe_input(self, name: str, shape: Sequence[int | None]) -> Config:
        """Return the JSON data of an input layer."""
        size = [None, *(None if n is None else int(n) for n in shape)]
        key = "batch_shape" if self.target.is_keras else "batch_input_shape"
        return self._wrap("InputLayer", {key: size, "dtype": "float32", "sparse": False, "name": name}, "keras.layers")


class GraphWriter:
    """The functional graph of one model, as a list of layers with the outputs that each is applied to."""

    def __init__(self, writer: TopologyWriter, model: Any, name: str) -> None:
        self.writer, self.name = writer, name
        self.config = model.get_config()
        self.keras = writer.target.is_keras
        self.layers: list[Any] = self.config["layers"]

    def describe(self) -> Config:
        """Return the config of the model: layers, inputs and outputs."""
        inputs = self.config["inputs"]
        called = self.config.get("names") or [""] * len(inputs)
        numbers = [f"_{i + 1}" if len(inputs) > 1 else "" for i in range(len(inputs))]
        names = [
            self.writer.name_layer(name or f"{self.name}_input{number}")
            for name, number in zip(called, numbers, strict=True)
        ]
        ends: list[list[Any]] = [[name, 0, 0] for name in names]
        listed = [
            self.writer.describe_input(name, shape) | {"name": name, "inbound_nodes": []}
            for name, shape in zip(names, inputs, strict=True)
        ]
        described: dict[int, Config] = {}
        for i, (number, given) in enumerate(self.config["steps"]):
            layer = self.layers[number]
            if is_kind(layer, "SelectOutput"):
                name, node, _ = ends[given[0]]
                ends.append([name, node, layer.index])
                continue
            if number not in described:
                name = self.writer.names[id(layer)]
                described[number] = self.writer.describe_layer(layer) | {"name": name, "inbound_nodes": []}
            one = described[number]
            ends.append([one["name"], len(one["inbound_nodes"]) + self._find_offset(layer), 0])
            settings = self._describe_settings(i, one["name"], ends)
            one["inbound_nodes"].append(self._describe_node(layer, [ends[i] for i in given], settings))
        return {
            "name": self.name,
            "layers": [*listed, *(described[number] for number in sorted(described))],
            "input_layers": self._name_ends("input_keys", [[name, 0, 0] for name in names]),
            "output_layers": self._name_ends("output_keys", [ends[i] for i in self.config["outputs"]]),
        }

    def _name_ends(self, keys: str, ends: list[list[Any]]) -> Json:
        """Return the inputs or outputs, by their keys if the model has a dict of them, which only Keras has."""
        return dict(zip(self.config[keys], ends, strict=True)) if keys in self.config and self.keras else ends

    def _find_offset(self, layer: Any) -> int:
        """Return the number of a layer's first application: in TensorFlow.js the call that makes a model is 0."""
        return int(not self.keras and is_kind(layer, "Model"))

    def _describe_settings(self, i: int, name: str, ends: list[list[Any]]) -> Config:
        """Return the keywords that a step calls its layer with."""
        found = (self.config.get("settings") or {}).get(str(i), {})
        settings = {key: x for key, x in found.items() if x.get("value", True) not in (None, False)}
        if settings and not self.keras:
            raise CheckpointError(
                f"save: {name} is called with {', '.join(settings)}, which TensorFlow.js does not take."
            )
        return {key: _make_tensor(ends[x["step"]]) if "step" in x else x["value"] for key, x in settings.items()}

    def _describe_node(self, layer: Any, inputs: list[list[Any]], settings: Config) -> Json:
        if not self.keras:
            return [[*one, {}] for one in inputs]
        tensors = [_make_tensor(one) for one in inputs]
        settings = settings | {CALL_SETTINGS[key]: True for key in find_call_settings(layer)}
        if hasattr(layer, "num_heads") or hasattr(layer, "num_query_heads"):
            return {"args": tensors if len(tensors) > 1 else tensors * 2, "kwargs": settings}
        if hasattr(layer, "return_state") or hasattr(layer, "merge_mode"):
            states = {"initial_state": tensors[1:]} if len(tensors) > 1 else {}
            return {"args": tensors[:1], "kwargs": settings | states}
        return {"args": tensors if len(tensors) == 1 else [tensors], "kwargs": settings}


def _make_tensor(end: list[Any]) -> Config:
    """Return the JSON data of an output of a layer, as Keras 3 has it."""
    return {"class_name": "__keras_tensor__", "config": {"shape": [None], "dtype": "float32", "keras_history": end}}


def find_call_settings(layer: Any) -> list[str]:
    """Return which arguments of a layer are set that belong to the call in Keras."""
    return [key for key in CALL_SETTINGS if getattr(layer, key, False)]


def is_own_class(kind: type[Any]) -> bool:
    """Return whether a class is the user's."""
    return not kind.__module__.startswith("pullback.")


def _repeat(value: Any, argument: str, kind: str) -> Any:
    """Return one number for all axes as a list of one for each, where TensorFlow.js takes nothing else."""
    if argument not in ("size", "cropping") or not isinstance(value, int):
        return value
    axes = next((int(c) for c in kind if c.isdigit()), 1)
    return value if axes == 1 else [value if argument == "size" else [value, value]] * axes


# Arguments that only layers here have, and which change nothing where they are at their defaults.
OURS = ("fill_value", "negative_slope", "seed", "threshold", "unit_forget_bias")


def _is_without_effect(argument: str, value: Any, parameter: Parameter | None) -> bool:
    """Return whether an argument that the library has not changes nothing."""
    if is_without_effect(argument, value) or value == ():
        return True
    return parameter is not None and argument in OURS and value == parameter.default


def _describe_rescaling(name: str, operands: list[Any], is_tensor_first: bool) -> tuple[str, Config] | None:
    """Return the class and config of the layer for an operator of a tensor and a number; None if there is none."""
    number = next((x for x in operands if not isinstance(x, dict)), 0)
    if isinstance(number, bool) or not isinstance(number, int | float | np.number):
        return None
    found = RESCALINGS[name](float(number), is_tensor_first)
    return None if found is None else ("Rescaling", {"scale": found[0], "offset": found[1]})
