"""TensorFlow.js's models in files: ``model.json`` with the topology and a manifest, and shards of weights beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from pullback import __version__
from pullback.core.variable import Variable
from pullback.errors import CheckpointError
from pullback.train.io.initial_values import expect_weights
from pullback.train.io.saving import StrPath, write_atomically
from pullback.train.io.structure import is_kind
from pullback.train.io.tfjs import as_folder, read_json, read_weights, write_weights
from pullback.train.io.topology import Builder, TopologyReader, find_dialect
from pullback.train.io.topology_writing import KERAS_VERSION, WRITES_KERAS, WRITES_TFJS, TopologyWriter
from pullback.train.io.training_config import NamedState, OptimizerState
from pullback.train.io.weight_places import CELL, assign_matches, check_complete, find_places, match_by_name, name_part
from pullback.typing import Array

Json = Any  # what json.loads returns


def read_model_json(path: StrPath, builder: Builder) -> tuple[Any, Json, OptimizerState | None]:
    """Return the model of a ``model.json`` with its weights, its training config and the optimizer's state if any."""
    folder, name = as_folder(path)
    if not (folder / name).is_file():
        raise FileNotFoundError(f"load: there is no file {os.fspath(folder / name)!r}.")
    data = read_json(folder / name, name)
    if not isinstance(data, dict):
        raise CheckpointError(f"load: {name} holds a {type(data).__name__}, expected a model of TensorFlow.js.")
    if data.get("format") == "graph-model":
        raise CheckpointError(f"load: {name} is a graph model, whose layers are lost; only layers models can be read.")
    topology = data.get("modelTopology", data)
    manifest = data.get("weightsManifest")
    if manifest is None:
        return read_topology(topology, builder, name, in_browser=True), None, None
    weights, slots = read_weights(manifest, folder, name)
    with expect_weights(name, sum(x.size for x in weights.values())):
        model = read_topology(topology, builder, name, in_browser=True)
    found = _assign_weights(model, weights, name)
    inner = topology.get("training_config") if isinstance(topology, dict) else None
    return model, data.get("trainingConfig", inner), _read_state(slots, found, name)


def _read_state(slots: dict[str, Array], found: dict[str, Variable], where: str) -> OptimizerState | None:
    """Return the state of the optimizer, whose weights are named by those of the model and the slot."""
    steps = slots.pop("iter", None)
    if steps is None or steps.size != 1:
        return None
    state = NamedState(int(steps.ravel()[0]), [])
    for name, x in slots.items():
        weight, _, slot = name.rpartition("/")
        if weight not in found or x.shape != found[weight].shape:
            raise CheckpointError(f"load: {where} has a slot {name!r} of the optimizer, which fits no weight.")
        state.slots.append((found[weight], slot, x))
    return state


def read_topology(data: Json, builder: Builder, where: str, in_browser: bool) -> Any:
    """Return the model of a topology, which may be inside what names the version of Keras."""
    if isinstance(data, dict) and isinstance(data.get("model_config"), dict):  # a converted model
        version, data = data.get("keras_version"), data["model_config"]
    else:
        version = data.get("keras_version") if isinstance(data, dict) else None
    return TopologyReader(where, find_dialect(version, in_browser), builder).read_model(data)


def read_tfjs_weights(path: StrPath, model: Any) -> None:
    """Load the weights of a ``model.json``, or of a file that is the manifest alone, into a model."""
    folder, name = as_folder(path)
    data = read_json(folder / name, name)
    manifest = data.get("weightsManifest") if isinstance(data, dict) else data
    weights, _ = read_weights(manifest, folder, name)
    _assign_weights(model, weights, name)


def _assign_weights(model: Any, weights: dict[str, Array], where: str) -> dict[str, Variable]:
    """Assign the weights of a manifest to a model by their names, and return the variable of each."""
    places = find_places(model)
    found = match_by_name(places, list(weights), where)
    check_complete(places, found, where)
    assign_matches(found, weights, where)
    return found


def write_model_json(path: StrPath, model: Any, training: Json = None) -> None:
    """Write a model as TensorFlow.js does: ``model.json``, or another name that ends so, and weights beside it."""
    folder, name = as_folder(path)
    writer = TopologyWriter(WRITES_TFJS)
    described = writer.describe_model(model)
    weights = _collect_weights(model, writer)
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "format": "layers-model",
        "generatedBy": f"pullback {__version__}",
        "convertedBy": None,
        "modelTopology": {**described, "keras_version": "tfjs-layers 4.22.0", "backend": "tensor_flow.js"},
        "weightsManifest": write_weights(weights, folder, name.removesuffix(".json")),
    }
    if training is not None:
        content["trainingConfig"] = training
    write_atomically(folder / name, json.dumps(content).encode())


def describe_as_json(model: Any) -> str:
    """Return the topology of a model as JSON text in Keras's form."""
    described = TopologyWriter(WRITES_KERAS).describe_model(model)
    return json.dumps({**described, "keras_version": KERAS_VERSION, "backend": "pullback"})


def write_tfjs_weights(path: StrPath, model: Any) -> None:
    """Write the weights alone: a manifest in JSON, and shards beside it."""
    folder, name = as_folder(path)
    writer = TopologyWriter(WRITES_TFJS)
    writer.describe_model(model)
    weights = _collect_weights(model, writer)
    folder.mkdir(parents=True, exist_ok=True)
    manifest = write_weights(weights, folder, name.removesuffix(".json"))
    write_atomically(folder / name, json.dumps(manifest).encode())


def _collect_weights(model: Any, writer: TopologyWriter) -> dict[str, Array]:
    """Return the weights by the names that TensorFlow.js gives them; an error if two would have the same."""
    found: dict[str, Array] = {}
    for name, v in _name_weights(model, writer, ""):
        if name in found:
            raise CheckpointError(f"save: two variables would be called {name!r} in the file. Rename a layer.")
        found[name] = v.numpy()
    return found


def _name_weights(layer: Any, writer: TopologyWriter, scope: str) -> Iterator[tuple[str, Variable]]:
    """Iterate over the variables with the names that TensorFlow.js gives them: the layer's, and the weight's."""
    seen: set[int] = set()
    several = sum(not isinstance(part, Variable) for _, part in layer.parts()) > 1
    for key, part in layer.parts():
        if isinstance(part, Variable):
            found = [(f"{scope}/{key.rpartition('/')[2]}", part)]
        elif is_kind(layer, "Model"):
            found = list(_name_weights(part, writer, writer.names[id(part)]))
        elif is_kind(layer, "Bidirectional"):
            inner = writer.names[id(layer.layer)]
            direction = name_part(layer, key, part)[0].partition("_")[0]
            found = list(_name_weights(part, writer, f"{scope}/{direction}_{inner}"))
        elif is_kind(layer, "StackedRnnCells"):
            found = list(_name_weights(part, writer, f"{scope}/{CELL}{key.rpartition('/')[2]}"))
        else:
            found = list(_name_weights(part, writer, f"{scope}/{key}" if several else scope))
        for name, v in found:
            if id(v) not in seen:
                seen.add(id(v))
                yield name, v
