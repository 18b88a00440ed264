"""Models from the JSON of Keras and TensorFlow.js: layers by class names, sequential and functional graphs.

Nothing in a file is run: a layer that holds code is refused, and so is every argument that is unknown here, unless its
value means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np

from pullback.core.convert import get_default_dtype
from pullback.core.suggestions import did_you_mean
from pullback.errors import CheckpointError, PullbackError
from pullback.train.custom_objects import find_custom
from pullback.train.io.keras_names import SCALINGS, find_class, is_without_effect, normalize_name
from pullback.train.io.keras_ops import find_operation
from pullback.train.io.structure import Configurable, is_kind

Json = Any  # what json.loads returns: dicts, lists, text, numbers, booleans and None
Config = dict[str, Any]

MIXED_POLICIES = ("mixed_float16", "mixed_bfloat16")  # whose variables are float32, in which layers compute here
COMMON_DTYPES = ("float32", "int32", "bool")  # those that every layer has by default
BUILTINS = ("builtins", "keras")  # modules whose functions are found by their names
LONGEST = 2**31
CONSTANT_DTYPES = ("bool", "float16", "float32", "float64", "int32", "int64", "uint8")  # of arrays in a graph
SHAPE_ARGUMENTS = ("batch_input_shape", "batch_shape", "input_shape")
# Other names of one argument, of which a layer here has one.
ALIASES = {"alpha": "negative_slope", "negative_slope": "alpha"}
ALWAYS_TRAINING = (
    "random",
    "centercrop",
    "resizing",
)  # layers of which Keras writes training=True, which predict replaces
INPUT_KEYWORDS = ("value", "key", "initial_state")  # inputs that a call may name, in the order of ``call`` here
MISSING = object()  # the layer's own default
# Classes whose config is a program.
CODE = ("ApplyFunction", "Lambda", "function", "__lambda__", "TFOpLambda", "SlicingOpLambda")
DEEPEST = 64  # levels of JSON: those of the deepest models are about 20


class Dialect(NamedTuple):
    """The library that wrote a file, and where its arguments and values mean something else than here."""

    library: str
    differences: tuple[tuple[str, str, str], ...]  # arguments and values that mean something else: class, name, value


@dataclass(frozen=True)
class Builder:
    """The functions that make inputs and models: they are in ``train.nn``, which ``io`` may not import."""

    make_input: Callable[..., Any]  # of a shape without the batch, a dtype and a name
    make_model: Callable[..., Any]  # of inputs, outputs and a name
    make_sequential: Callable[..., Any]  # of layers and a name


class LayerReference(NamedTuple):
    """An output of a layer in a functional graph: the layer's name, which of its applications, which of the outputs."""

    name: str
    number: int
    output: int


class Application(NamedTuple):
    """One application of a layer: its positional arguments and keywords, with references for symbolic tensors."""

    inputs: list[Any]
    keywords: Config

    def references(self) -> Iterator[LayerReference]:
        """Iterate over the references among the arguments."""
        yield from _iterate_references([*self.inputs, *self.keywords.values()])


BILINEAR = ("UpSampling2d", "interpolation", "bilinear")
TFJS = Dialect("TensorFlow.js", (BILINEAR,))
KERAS2 = Dialect("Keras 2", ())
KERAS3 = Dialect("Keras 3", ())
ACTIVATIONS = {"hard_sigmoid": "hard_sigmoid6"}  # of Keras 3, by the names that they have here


def find_dialect(version: object, in_browser: bool) -> Dialect:
    """Return the dialect of a file that names the version of Keras; a TensorFlow.js file follows its rules."""
    if in_browser or str(version).startswith("tfjs"):
        return TFJS
    return KERAS2 if str(version).startswith(("1.", "2.")) else KERAS3


class TopologyReader:
    """Makes layers and models from JSON data of one file."""

    def __init__(self, where: str, dialect: Dialect, builder: Builder) -> None:
        self.where, self.dialect, self.builder = where, dialect, builder
        self.order: dict[int, list[Any]] = {}  # the layers of functional models as the file lists them
        self._shared: dict[int, Any] = {}  # layers by the number that marks one object in several places

    def read_model(self, data: Json) -> Any:
        """Return the model that the data describes, with variables if the data says the shapes of the inputs."""
        check_depth(data, self.where)
        model = self.read_layer(data, "the model")
        if not is_kind(model, "Model"):
            raise self.make_error(f"expected a model, got a {type(model).__name__}.")
        return model

    def read_object(self, data: Json) -> Any:
        """Return the layer, model, initializer, regularizer or constraint that the data describes."""
        check_depth(data, self.where)
        is_described = isinstance(data, dict) and isinstance(data.get("class_name"), str)
        return self._convert_object(data, "the object") if is_described else self.read_layer(data, "the object")

    def make_error(self, why: str) -> CheckpointError:
        """Return the error that this file cannot be read."""
        return CheckpointError(f"load: {self.where}: {why}")

    def call(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Return the function's result; what it cannot take is an error of the file."""
        try:
            return function(*arguments, **keywords)
        except CheckpointError:
            raise
        except PullbackError as error:
            raise self.make_error(str(error)) from error
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError, MemoryError) as error:
            raise self.make_error(f"the layers or their arguments do not fit together ({error}).") from error

    def find_name(self, data: Config) -> str:
        """Return the name of a described layer; empty if it has none."""
        config = data.get("config")
        return _as_text(config.get("name")) if isinstance(config, dict) else ""

    # ---- layers

    def read_layer(self, data: Json, place: str) -> Any:
        """Return a layer or model with the arguments of its config."""
        kind, config = self._split(data, place)
        shared = data.get("shared_object_id")
        if isinstance(shared, int) and shared in self._shared:
            return self._shared[shared]
        found = self._find_layer_class(kind, data, place)
        if found is Configurable.registry["Sequential"]:
            layer = self._read_sequential(config, data)
        elif found is Configurable.registry["Functional"]:
            layer = self._read_functional(config)
        else:
            layer = self._make(found, self._convert_common(found, config), place)
        if isinstance(shared, int):
            self._shared[shared] = layer
        return layer

    def read_input(self, data: Config, name: str) -> Any:
        """Return the symbolic tensor of an input layer."""
        _, config = self._split(data, f"input {name!r}")
        shape = self._find_shape(config)
        if shape is None:
            raise self.make_error(f"input {name!r} has no shape.")
        dtype = self.read_dtype(config.get("dtype"))
        return self.call(self.builder.make_input, shape[1:], None if dtype == "float32" else dtype, name)

    def _split(self, data: Json, place: str) -> tuple[str, Config]:
        """Return the class name and the config of a described object."""
        if not isinstance(data, dict) or not isinstance(data.get("class_name"), str):
            raise self.make_error(f"{place} is not described by a class name and a config.")
        config = data.get("config", {})
        if data["class_name"] in ("Sequential", "Model") and isinstance(config, list):  # Keras before 2.2.3
            config = {"name": "", "layers": config}
        if data["class_name"] in CODE:
            raise self.make_error(
                f"{place} is of class {data['class_name']!r}, which is code in a file, and that is never run. "
                "Write it as a class of yours, a subclass of pb.layers.Layer, and load the weights alone."
            )
        if not isinstance(config, dict):
            raise self.make_error(f"the config of {place} must be a dict, got {_shorten(config)}.")
        return data["class_name"], config

    def _find_layer_class(self, kind: str, data: Config, place: str) -> type[Configurable]:
        base = Configurable.registry["Layer"]
        registered = data.get("registered_name")
        found = find_class(registered, "Layer") if isinstance(registered, str) and ">" in registered else None
        found = find_class(kind, "Layer") if found is None else found
        module = str(data.get("module") or "")
        if found is None or not issubclass(found, base) or ".ops." in module:
            names = [name for name, one in Configurable.registry.items() if issubclass(one, base)]
            raise self.make_error(
                f"{place} is of class {kind!r}{f' of {module}' if '.ops.' in module else ''}, which is not a layer "
                f"here.{did_you_mean(kind, names)} A layer of your own is found by the name of its class, which must "
                "be defined before, or be given in custom_objects={...}."
            )
        return found

    def _make(self, kind: type[Configurable], config: Config, place: str) -> Any:
        """Return an object of this class with the arguments of a config; refuse by name what is unknown here."""
        takes = signature(kind).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in takes.values())
        arguments: Config = {}
        for written, value in config.items():
            name = _find_argument(written, takes)
            if name in takes or (open_ended and not is_without_effect(written, value)):
                self._check_meaning(kind, name, value, place)
                converted = self._convert(value, f"{place}: {written}", takes.get(name))
                if self.dialect is KERAS3 and name.endswith("activation") and isinstance(converted, str):
                    converted = ACTIVATIONS.get(converted, converted)
                if converted is not MISSING:
                    arguments[name] = converted
            elif not is_without_effect(written, value):
                raise self.make_error(
                    f"{place} has {written}={_shorten(value)}, which is unknown here; it takes {', '.join(takes)}."
                    f"{did_you_mean(written, takes)}"
                )
        return self.call(kind.from_config, arguments)

    def _check_meaning(self, kind: type[Configurable], name: str, value: Json, place: str) -> None:
        for owner, argument, other in self.dialect.differences:
            if argument == name and value == other and owner in ("", kind.__name__):
                raise self.make_error(
                    f"{place} has {name}={value!r}, which computes something else in {self.dialect.library} than here."
                )

    # ---- arguments

    def _convert_common(self, kind: type[Configurable], config: Config) -> Config:
        """Return the config with the arguments of every layer as they are here: dtype and the shape of the input."""
        takes = signature(kind).parameters
        arguments = {
            key: value for key, value in config.items() if key not in (*SHAPE_ARGUMENTS, "dtype", "input_dtype")
        }
        cell = config.get("cell")
        if isinstance(cell, dict) and isinstance(inner := cell.get("config"), dict):  # which TensorFlow.js repeats
            arguments = {key: x for key, x in arguments.items() if key in takes or key not in inner or inner[key] != x}
        dtype = self._find_dtype(config, takes)
        if dtype is not None:
            arguments["dtype"] = dtype
        shape = self._find_shape(config)
        if shape is not None and shape[0] is not None and "batch_input_shape" in takes:
            arguments["batch_input_shape"] = shape
        elif shape is not None and "input_shape" in takes:
            arguments["input_shape"] = shape[1:]
        return arguments

    def _find_dtype(self, config: Config, takes: Collection[str]) -> str | None:
        """Return the dtype that a layer must be given; None if it has that without being told."""
        dtype = self.read_dtype(config.get("dtype"))
        if dtype in (None, str(get_default_dtype()), *COMMON_DTYPES):
            return None
        if "dtype" not in takes:
            raise self.make_error(f"layer {config.get('name')!r} has dtype {dtype!r}, which it cannot have here.")
        return dtype

    def _find_shape(self, config: Config) -> list[int | None] | None:
        """Return the shape of the inputs, with the batch, if the config has it."""
        shape = next((config[name] for name in SHAPE_ARGUMENTS if config.get(name) is not None), None)
        if shape is None:
            return None
        if isinstance(shape, dict) and isinstance(shape.get("items"), list):
            shape = shape["items"]  # a tuple
        if not isinstance(shape, list) or not shape or not all(map(_is_length, shape)):
            raise self.make_error(f"layer {config.get('name')!r} has the input shape {shape!r}, which is no shape.")
        return list(shape)

    def read_dtype(self, data: Json) -> str | None:
        """Return the name of a dtype; None if there is none.  With mixed precision it is that of the variables."""
        if isinstance(data, dict):
            inside = data.get("config")
            data = inside.get("name") if isinstance(inside, dict) else data
        if data is not None and not isinstance(data, str):
            raise self.make_error(f"the dtype {data!r} is not a name.")
        return "float32" if data in MIXED_POLICIES else data

    def read_array(self, data: Json, place: str) -> Any:
        """Return a constant array of a graph, from nested lists and the name of a dtype."""
        if not isinstance(data, dict) or data.get("dtype") not in CONSTANT_DTYPES:
            raise self.make_error(f"{place} has a constant {_shorten(data)}, which is not known.")
        return self.call(np.array, data.get("value"), data["dtype"])

    def _convert(self, value: Json, place: str, parameter: Parameter | None = None) -> Any:
        """Return the value of an argument: an object from its description, or plain data."""
        if value is None:
            return _replace_none(parameter)
        if isinstance(value, list):
            if parameter is not None and parameter.annotation in ("int", int) and len(value) == 1:
                return value[0]  # Keras 2 writes the axis of batch normalization as a list
            if parameter is not None and parameter.name == "target_shape":
                return [-1 if n is None else n for n in value]  # TensorFlow.js writes None for a length to be found
            return [self._convert(item, place) for item in value]
        if not isinstance(value, dict):
            return value
        if "class_name" not in value:
            return {key: self._convert(item, f"{place}: {key}") for key, item in value.items()}
        return self._convert_object(value, place)

    def _convert_object(self, data: Config, place: str) -> Any:
        name, config = data["class_name"], data.get("config")
        if name == "__tuple__" and isinstance(data.get("items"), list):
            return tuple(self._convert(item, place) for item in data["items"])
        if name == "function" and isinstance(config, str):
            custom = find_custom(config)
            if custom is not None or str(data.get("module")).startswith(BUILTINS):
                return config if custom is None else custom  # an activation by its name, or a function of the user's
        kind, config = self._split(data, place)
        if isinstance(seed := config.get("seed"), dict):  # a seed generator of Keras 3: its state is not in the file
            inside = seed.get("config")
            config = config | {"seed": inside.get("seed") if isinstance(inside, dict) else None}
        if normalize_name(kind) in SCALINGS:
            kind, config = "VarianceScaling", config | SCALINGS[normalize_name(kind)]
        if kind == "VarianceScaling" and str(config.get("distribution")).startswith("truncated"):
            config = config | {"distribution": "normal"}
        found = find_class(kind)
        if found is None:
            raise self.make_error(f"{place} is of class {kind!r}, which is not known here.")
        if issubclass(found, Configurable.registry["Layer"]):
            return self.read_layer(data, place)
        return self._make(found, config, place)

    # ---- models

    def _read_sequential(self, config: Config, data: Config) -> Any:
        listed = config.get("layers")
        if not isinstance(listed, list):
            raise self.make_error("a sequential model has no list of layers.")
        shape: list[int | None] | None = None
        layers: list[Any] = []
        for i, described in enumerate(listed):
            kind, inside = self._split(described, f"layer {i}")
            shape = shape or (None if layers else self._find_shape(inside))
            if normalize_name(kind) != "inputlayer":
                name = self.find_name(described)
                layers.append(self.read_layer(described, f"layer {name or i!r}"))
        if shape is None:
            built = data.get("build_config")
            input_shape = config.get("build_input_shape") or (
                built.get("input_shape") if isinstance(built, dict) else None
            )
            shape = self._find_shape({"batch_shape": input_shape}) if isinstance(input_shape, list) else None
        model = self.call(self.builder.make_sequential, layers, _as_text(config.get("name")))
        if shape is not None and layers:
            self.call(model.build_for, [tuple(shape[1:])])
        return model

    def _read_functional(self, config: Config) -> Any:
        listed = config.get("layers")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise self.make_error("a functional model has no list of layers.")
        graph = GraphReader(self, config, listed)
        model = graph.read()
        self.order[id(model)] = [graph.layers[name] for name in graph.described if name in graph.layers]
        return model


class GraphReader:
    """The functional graph of one model: layers are applied to the outputs of others, by name, number and output."""

    def __init__(self, reader: TopologyReader, config: Config, listed: list[Config]) -> None:
        self.reader, self.config = reader, config
        self.described = {_as_text(one.get("name")) or reader.find_name(one): one for one in listed}
        self.nodes = {name: self._read_nodes(name, one.get("inbound_nodes")) for name, one in self.described.items()}
        self.offsets = self._find_offsets()
        self.layers: dict[str, Any] = {}
        self.values: dict[tuple[str, int], Any] = {}  # the output, or a tuple of several, of each application

    def read(self) -> Any:
        """Return the model."""
        inputs = [self._find_value(end) for end in self._read_ends("input_layers")]
        outputs = [self._find_value(end) for end in self._read_ends("output_layers")]
        one_output = len(outputs) == 1 and not isinstance(self.config["output_layers"], dict)
        return self.reader.call(
            self.reader.builder.make_model,
            self._name_ends("input_layers", inputs),
            outputs[0] if one_output else self._name_ends("output_layers", outputs),
            _as_text(self.config.get("name")),
        )

    def _name_ends(self, key: str, tensors: list[Any]) -> Any:
        """Return the inputs or outputs as a dict if the file has one of them."""
        data = self.config[key]
        return dict(zip(data, tensors, strict=True)) if isinstance(data, dict) else tensors

    # ---- references

    def _read_ends(self, key: str) -> list[LayerReference]:
        """Return the inputs or outputs of the model."""
        data = self.config.get(key)
        listed = [data] if self._is_reference(data) else list(data.values()) if isinstance(data, dict) else data
        if not isinstance(listed, list) or not listed or not all(map(self._is_reference, listed)):
            raise self.reader.make_error(f"{key} is {data!r}, expected a list of [name, number, output].")
        return [LayerReference(*one[:3]) for one in listed]

    def _is_reference(self, data: Json) -> bool:
        return (
            isinstance(data, list)
            and len(data) in (3, 4)
            and isinstance(data[0], str)
            and all(type(n) is int and n >= 0 for n in data[1:3])
        )

    def _read_nodes(self, name: str, data: Json) -> list[Application]:
        """Return the applications of a layer, from one of the forms that files have."""
        if not isinstance(data, list):
            raise self.reader.make_error(f"layer {name!r} has no list of inbound nodes.")
        return [self._read_node(name, node) for node in data]

    def _read_node(self, name: str, node: Json) -> Application:
        if isinstance(node, dict) and isinstance(node.get("args"), list) and isinstance(node.get("kwargs"), dict):
            return Application(
                [self._read_value(x, name) for x in node["args"]], self._read_keywords(node["kwargs"], name)
            )
        listed = [node] if self._is_reference(node) else node
        if not isinstance(listed, list) or not listed or not all(map(self._is_reference, listed)):
            raise self.reader.make_error(f"layer {name!r} has an inbound node {_shorten(node)}, which is not known.")
        keywords: Config = {}
        for one in listed:
            if len(one) == 4:
                if not isinstance(one[3], dict):
                    raise self.reader.make_error(f"layer {name!r} is called with {one[3]!r}, which is not known.")
                keywords |= self._read_keywords(one[3], name)
        inputs = [LayerReference(*one[:3]) for one in listed]
        return Application([inputs] if len(inputs) > 1 else list(inputs), keywords)

    def _read_keywords(self, data: Config, name: str) -> Config:
        return {key: value for key, x in data.items() if (value := self._read_value(x, name)) not in (None, False)}

    def _read_value(self, data: Json, name: str) -> Any:
        """Return an argument of a call: a reference, a list of them, or plain data."""
        if isinstance(data, dict):
            return self._read_object(data, name)
        if self._is_reference(data) and data[0] in self.described:
            return LayerReference(*data[:3])
        return [self._read_value(item, name) for item in data] if isinstance(data, list) else data

    def _read_object(self, data: Config, name: str) -> Any:
        """Return an argument of a call that is written with its class: a reference, a slice or an array."""
        kind, inside = data.get("class_name"), data.get("config")
        if kind == "__keras_tensor__":
            history: Json = inside.get("keras_history") if isinstance(inside, dict) else None
            if not self._is_reference(history):
                raise self.reader.make_error(f"layer {name!r} has an input {_shorten(data)}, which is not known.")
            return LayerReference(*history[:3])
        if kind == "__slice__" and isinstance(inside, dict):
            return slice(*(inside.get(key) for key in ("start", "stop", "step")))
        if kind == "__ellipsis__":
            return ...
        if kind in ("__tensor__", "__numpy__"):
            return self.reader.read_array(inside, f"layer {name!r}")
        raise self.reader.make_error(f"layer {name!r} is called with {_shorten(data)}, which is not known.")

    def _find_offsets(self) -> dict[str, int]:
        """Return 1 for each layer whose applications are numbered from 1: that which makes a model may count as 0."""
        largest: dict[str, int] = {}
        ends = [*self._read_ends("input_layers"), *self._read_ends("output_layers")]
        inner = [x for nodes in self.nodes.values() for node in nodes for x in node.references()]
        for name, number, _ in [*ends, *inner]:
            largest[name] = max(largest.get(name, 0), number)
        return {name: 1 for name, n in largest.items() if n == len(self.nodes.get(name, ())) > 0}

    # ---- values

    def _find_value(self, end: LayerReference) -> Any:
        """Return the symbolic tensor of a reference; layers are applied in the order in which they need each other."""
        todo, open_ = [self._resolve(end)], set()
        while todo:
            key = todo[-1]
            needs = [] if key in self.values else [self._resolve(x) for x in self._get_application(key).references()]
            missing = [need for need in needs if need not in self.values]
            if missing and key in open_:
                raise self.reader.make_error(f"layer {key[0]!r} needs its own output.")
            open_.add(key)
            if missing:
                todo += missing
            else:
                if key not in self.values:
                    self.values[key] = self._apply(key)
                todo.pop()
        return self._select(end)

    def _resolve(self, x: LayerReference) -> tuple[str, int]:
        if x.name not in self.described:
            raise self.reader.make_error(f"there is no layer {x.name!r}, which another one needs.")
        return x.name, x.number - self.offsets.get(x.name, 0)

    def _get_application(self, key: tuple[str, int]) -> Application:
        name, number = key
        if self._is_input(name) and number == 0:
            return Application([], {})
        if not 0 <= number < len(self.nodes[name]):
            raise self.reader.make_error(f"layer {name!r} has no application number {number}.")
        return self.nodes[name][number]

    def _is_input(self, name: str) -> bool:
        return normalize_name(str(self.described[name].get("class_name"))) == "inputlayer"

    def _select(self, x: LayerReference) -> Any:
        value = self.values[self._resolve(x)]
        several = value if isinstance(value, tuple) else (value,)
        if x.output >= len(several):
            raise self.reader.make_error(f"layer {x.name!r} has no output number {x.output}.")
        return several[x.output]

    def _apply(self, key: tuple[str, int]) -> Any:
        """Return the output of an application, whose inputs are known."""
        name, reader = key[0], self.reader
        if self._is_input(name):
            return reader.read_input(self.described[name], name)
        node = self._get_application(key)
        if (operation := self._find_operation(self.described[name], node)) is not None:
            keywords = {word: self._fill(x) for word, x in node.keywords.items()}
            return reader.call(operation, *(self._fill(x) for x in node.inputs), **keywords)
        if name not in self.layers:
            self.layers[name] = reader.read_layer(self.described[name], f"layer {name!r}")
        layer = self.layers[name]
        inputs, settings = self._split_keywords(name, layer, node)
        values = [self._fill(x) for x in inputs]
        flat = [x for one in values for x in (one if isinstance(one, list) else [one])]
        return reader.call(layer, *flat, **{key: self._fill(x) for key, x in settings.items()})

    def _find_operation(self, described: Config, node: Application) -> Callable[..., Any] | None:
        """Return the function of an operation in the graph; None for a layer."""
        kind, module = str(described.get("class_name")), described.get("module")
        is_operation = find_class(kind) is None or len(node.inputs) > 1 or "newshape" in (described.get("config") or {})
        if module is None and is_operation:  # .h5 files do not say which it is
            module = "keras.ops"
        return find_operation(module, kind, described.get("config") or {})

    def _split_keywords(self, name: str, layer: Any, node: Application) -> tuple[list[Any], Config]:
        """Return the inputs of a call in the order of ``call`` here, and its other keywords, which the layer takes."""
        settings = {key: x for key, x in node.keywords.items() if key not in INPUT_KEYWORDS}
        if str(self.described[name].get("class_name")).lower().startswith(ALWAYS_TRAINING):
            settings.pop("training", None)
        takes = signature(layer.call).parameters
        unknown = [key for key in settings if key == "training" or (key not in takes and key != "mask")]
        if "key" in node.keywords and "value" not in node.keywords and len(node.inputs) < 2:
            unknown = ["key"]
        if unknown:
            value = _shorten(node.keywords[unknown[0]])
            raise self.reader.make_error(f"layer {name!r} is called with {unknown[0]}={value}, which is unknown here.")
        if node.inputs and self._has_mask(node.inputs[0], settings.get("mask")):
            del settings["mask"]
        named = [node.keywords[key] for key in INPUT_KEYWORDS if key in node.keywords]
        return [*node.inputs, *named], settings

    def _has_mask(self, x: Any, mask: Any) -> bool:
        """Return whether an input has this mask by itself, from a layer that makes it: Keras writes it down too."""
        while isinstance(mask, LayerReference) and self.described[mask.name].get("class_name") in (
            "Any",
            "ConvertToTensor",
        ):
            mask = self._get_application(self._resolve(mask)).inputs[0]
        if not isinstance(mask, LayerReference) or self.described[mask.name].get("class_name") != "NotEqual":
            return False
        source = self._get_application(self._resolve(mask)).inputs[0]
        while isinstance(x, LayerReference) and not self._is_input(x.name):
            inputs = self._get_application(self._resolve(x)).inputs
            if self.described[x.name].get("class_name") in ("Masking", "Embedding"):
                return bool(inputs[:1] == [source])
            layer = self.layers.get(x.name)
            x = inputs[0] if inputs and layer is not None and layer.supports_masking else None
        return False

    def _fill(self, x: Any) -> Any:
        if isinstance(x, LayerReference):
            return self._select(x)
        return [self._fill(item) for item in x] if isinstance(x, list) else x


def check_depth(data: Json, where: str) -> None:
    """Raise an error for JSON data with more levels than models have."""
    level, depth = [data], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise CheckpointError(f"load: {where} has JSON of more than {DEEPEST} levels, which no model has.")
        level = [
            x for one in level if isinstance(one, dict | list) for x in (one.values() if isinstance(one, dict) else one)
        ]


def _iterate_references(values: Sequence[Any]) -> Iterator[LayerReference]:
    for x in values:
        if isinstance(x, LayerReference):
            yield x
        elif isinstance(x, list):
            yield from _iterate_references(x)


def _replace_none(parameter: Parameter | None) -> Any:
    """Return what None in a file means for an argument: itself, or that it was not given."""
    if parameter is None or parameter.default is None or parameter.name.endswith("activation"):
        return None
    return False if isinstance(parameter.default, bool) else MISSING


def _find_argument(written: str, takes: Mapping[str, Parameter]) -> str:
    """Return what an argument of a file is called here; of two names that a layer takes, the first."""
    other = ALIASES.get(written, written)
    both = other in takes and written in takes
    first = min((written, other), key=list(takes).index) if both else written
    return other if written not in takes and other in takes else first


def _shorten(value: Json) -> str:
    """Return a value as text for a message."""
    text = repr(value)
    return text if len(text) < 100 else f"{text[:100]}…"


def _as_text(name: object) -> str:
    return name if isinstance(name, str) else ""


def _is_length(n: object) -> bool:
    return n is None or (type(n) is int and 0 <= n < LONGEST)
