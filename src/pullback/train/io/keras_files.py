"""Keras's models in files: ``.keras`` archives, ``.h5`` files, and files of weights alone."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pullback.core.variable import Variable
from pullback.errors import CheckpointError
from pullback.train.io.hdf5 import Hdf5Content, encode_hdf5, read_hdf5
from pullback.train.io.initial_values import expect_weights
from pullback.train.io.keras_names import spell_class, spell_group
from pullback.train.io.optimizer_slots import OUTER_COUNT, list_state
from pullback.train.io.saving import StrPath, raise_mismatches, report_mismatch, write_atomically
from pullback.train.io.structure import is_kind
from pullback.train.io.tfjs import parse_json
from pullback.train.io.topology import Builder, TopologyReader, find_dialect
from pullback.train.io.topology_writing import KERAS_VERSION, WRITES_KERAS, TopologyWriter
from pullback.train.io.training_config import ListedState, OptimizerState
from pullback.train.io.weight_places import (
    WeightPlace,
    assign_matches,
    check_complete,
    find_places,
    match_by_name,
    match_in_order,
)
from pullback.train.optim.step import Optimizer
from pullback.typing import Array

Json = Any  # what json.loads returns
Order = Mapping[int, list[Any]]  # the layers of functional models, by identity, as a file lists them
STATE_GROUP = "optimizer_state"  # not optimizer_weights: Keras 3.15 cannot train a model whose .h5 file has them
LARGEST_TEXT = 1 << 28  # bytes of a config
LARGEST_RATIO = 64  # of the bytes of a member to those in the archive: Keras does not compress
# What Keras calls the parts of layers that have another name here.
PARTS = {
    "layer": "forward_layer", "backward": "backward_layer", "query": "query_dense", "key": "key_dense",
    "value": "value_dense", "attention_output": "output_dense",
}  # fmt: skip


# ---- read


def read_archive(path: StrPath, builder: Builder) -> tuple[Any, Json, OptimizerState | None]:
    """Return the model of a ``.keras`` archive, what it was compiled with and the optimizer's state, or None."""
    where = os.path.basename(os.fspath(path))
    members = _read_members(Path(path), where)
    config = parse_json(members["config.json"], where)
    metadata = parse_json(members.get("metadata.json", b"{}"), where)
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    content = read_hdf5(members["model.weights.h5"], where)
    reader = TopologyReader(where, find_dialect(version, False), builder)
    with expect_weights(where, sum(x.size for x in content.arrays.values())):
        model = reader.read_model(config)
    _assign_tree(model, content, where, reader.order)
    training = config.get("compile_config")
    values = [content.arrays.get(f"optimizer/vars/{i}") for i in range(len(content.arrays))]
    state = ListedState([x for x in values if x is not None], _list_trainable(model, reader.order))
    return model, training, state if state.values else None


def read_archive_weights(path: StrPath, model: Any) -> None:
    """Load the weights of a ``.keras`` archive into a model."""
    where = os.path.basename(os.fspath(path))
    content = read_hdf5(_read_members(Path(path), where)["model.weights.h5"], where)
    _assign_tree(model, content, where, {})


def _list_trainable(model: Any, order: Order) -> list[Variable]:
    """Return the trainable variables in the order of the file."""
    return list(dict.fromkeys(v for _, v in _iterate_paths(model, "", order, set()) if v.trainable))


def _read_members(path: Path, where: str) -> dict[str, bytes]:
    """Return the files of an archive that a model needs, after checking the lengths that the archive states."""
    try:
        with zipfile.ZipFile(path) as archive:
            found: dict[str, bytes] = {}
            for name in ("config.json", "metadata.json", "model.weights.h5"):
                if name in archive.NameToInfo:
                    info = archive.getinfo(name)
                    limit = LARGEST_TEXT if name.endswith(".json") else info.compress_size * LARGEST_RATIO
                    if info.file_size > min(limit, LARGEST_RATIO * info.compress_size + LARGEST_RATIO):
                        raise CheckpointError(
                            f"load: {where}: {name} would have {info.file_size} bytes; it is not read."
                        )
                    with archive.open(info) as file:
                        found[name] = file.read(info.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError, NotImplementedError) as error:
        raise CheckpointError(f"load: {where} is not a whole .keras archive ({error}).") from None
    for name in ("config.json", "model.weights.h5"):
        if name not in found:
            raise CheckpointError(f"load: {where} has no {name}, so it is not a model of Keras 3.")
    return found


def read_h5(path: StrPath, builder: Builder) -> tuple[Any, Json, OptimizerState | None]:
    """Return the model of an ``.h5`` file, what it was compiled with, and the optimizer's state, if it has them."""
    where = os.path.basename(os.fspath(path))
    content = read_hdf5(Path(path), where)
    text = content.get_text("model_config")
    if text is None:
        raise CheckpointError(
            f"load: {where} holds weights, but not the model they are of. Make the model and use "
            "model.load_weights(path)."
        )
    reader = TopologyReader(where, find_dialect(content.get_text("keras_version"), False), builder)
    config = parse_json(text, where)
    with expect_weights(where, sum(x.size for x in content.arrays.values())):
        model = reader.read_model(config)
    _assign_groups(model, content, "model_weights", where)
    training = content.get_text("training_config")
    group = STATE_GROUP if STATE_GROUP in content.attributes else "optimizer_weights"
    names = content.attributes.get(group, {}).get("weight_names", [])
    values = [x for name in names if (x := content.arrays.get(f"{group}/{name}")) is not None]
    if names and not names[0].endswith("iteration"):
        values = values[:1]  # after the step number, Keras 2 has another order
    state = ListedState(values, _list_trainable(model, reader.order)) if names else None
    return model, None if training is None else parse_json(training, where), state


def read_h5_weights(path: StrPath, model: Any) -> None:
    """Load the weights of an ``.h5`` file, with or without a model, into a model."""
    where = os.path.basename(os.fspath(path))
    content = read_hdf5(Path(path), where)
    if "layer_names" in content.attributes.get("model_weights", {}):
        _assign_groups(model, content, "model_weights", where)
    elif "layer_names" in content.attributes.get("", {}):
        _assign_groups(model, content, "", where)
    else:
        _assign_tree(model, content, where, {})


def _assign_groups(model: Any, content: Hdf5Content, root: str, where: str) -> None:
    """Assign weights that are listed layer by layer, as Keras 2 does: by their names, or in their order."""
    layers = {name: part for name, part in model.parts() if not isinstance(part, Variable)}
    prefix = f"{root}/" if root else ""
    values: dict[str, Array] = {}
    found: dict[str, Variable] = {}
    for name in content.attributes.get(root, {}).get("layer_names", []):
        group = f"{prefix}{name}"
        if listed := content.attributes.get(group, {}).get("weight_names", []):
            if name not in layers:
                report_mismatch(f"load: {where} has ", f"weights of a layer {name!r}, which the model does not have.")
                continue
            values |= _read_listed(content, group, listed, where)
            matched = _match_layer(layers[name], name, listed, where)
            found |= {f"{group}/{weight}": v for weight, v in matched.items()}
    check_complete(find_places(model), found, where)
    assign_matches(found, values, where)


def _read_listed(content: Hdf5Content, group: str, listed: Sequence[str], where: str) -> dict[str, Array]:
    """Return the arrays of a group by their paths; every weight that it lists must be there."""
    for weight in listed:
        if f"{group}/{weight}" not in content.arrays:
            raise CheckpointError(
                f"load: {where} lists the weight {weight!r} of {group.rpartition('/')[2]!r}, but does not contain it."
            )
    return {f"{group}/{weight}": content.arrays[f"{group}/{weight}"] for weight in listed}


def _match_layer(layer: Any, name: str, listed: list[str], where: str) -> dict[str, Variable]:
    places = [WeightPlace(((name,), *place.layers), place.name, place.variable) for place in find_places(layer)]
    try:
        with raise_mismatches():
            return match_by_name(places, listed, where)
    except CheckpointError:
        is_listed_whole = len(places) == len(listed)
        return match_in_order(places, listed) if is_listed_whole else match_by_name(places, listed, where)


def _assign_tree(model: Any, content: Hdf5Content, where: str, order: Order) -> None:
    """Assign weights whose paths are those of attributes and numbers, as Keras 3 writes them."""
    values = {
        _spell_path(path): x
        for path, x in content.arrays.items()
        if not path.startswith(("optimizer/", "metrics/")) and "seed_generator" not in path.split("/")
    }
    found = dict(_iterate_paths(model, "", order, set()))
    assign_matches(found, values, where)


def _spell_path(path: str) -> str:
    """Return a path of Keras 2, which has underscores before attributes, as Keras 3 writes it."""
    parts = (part.lstrip("_") for part in path.split("/"))
    return "/".join("layers" if part == "layer_checkpoint_dependencies" else part for part in parts)


def _iterate_paths(layer: Any, above: str, order: Order, seen: set[int]) -> Iterator[tuple[str, Variable]]:
    """Iterate over the variables with their paths in a file of Keras 3."""
    if id(layer) in seen:
        return
    seen.add(id(layer))
    if is_kind(layer, "Sequential") or is_kind(layer, "Functional"):
        for group, inner in _name_groups(order.get(id(layer)) or layer.layers):
            yield from _iterate_paths(inner, f"{above}layers/{group}/", order, seen)
        return
    inside = "cell/" if hasattr(layer, "recurrent_kernel") and not type(layer).__name__.endswith("Cell") else ""
    for i, v in enumerate(_list_own_variables(layer)):
        yield f"{above}{inside}vars/{i}", v
    for name, part in _name_parts(layer):
        yield from _iterate_paths(part, f"{above}{name}/", order, seen)


def _list_own_variables(layer: Any) -> list[Variable]:
    """Return the variables of a layer itself, in the order of the file."""
    found = [part for _, part in layer.parts() if isinstance(part, Variable)]
    found.sort(key=lambda v: is_fixed(layer, v))
    if is_kind(layer, "SpectralNormalization"):  # Keras stores the kernel with the wrapper too
        found.insert(0, layer.find_kernel())
    return found


def _name_parts(layer: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over the layers that are attributes of a layer, with their names in a file."""
    keeps_names = any(is_kind(layer, kind) for kind in ("TimeDistributed", "SpectralNormalization", "Model"))
    inner = {key: part for key, part in layer.parts() if not isinstance(part, Variable)}
    for attribute, listed in groupby(inner, lambda key: key.partition("/")[0]):
        keys = list(listed)
        if keys == [attribute]:
            yield attribute if keeps_names else PARTS.get(attribute, attribute), inner[attribute]
        else:  # a list or a dict
            for name, part in _name_groups(inner[key] for key in keys):
                yield f"{attribute}/{name}", part


def _name_groups(layers: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over layers with their names in a file: the class, and a number from the second one on."""
    counts: Counter[str] = Counter()
    for layer in layers:
        name = spell_group(spell_class(type(layer).__name__))
        yield f"{name}_{counts[name]}" if counts[name] else name, layer
        counts[name] += 1


def is_fixed(layer: Any, v: Variable) -> bool:
    """Return whether a variable is never trained, such as a moving average."""
    return any(v is one for one in vars(layer).get("_fixed", ()))


# ---- write


def write_archive(path: StrPath, model: Any, training: Json = None, optimizer: Optimizer | None = None) -> None:
    """Write a model as a ``.keras`` archive, with the state of its optimizer if that is known to Keras."""
    writer = TopologyWriter(WRITES_KERAS)
    config = writer.describe_model(model) | {"build_config": {"input_shape": None}}
    if training is not None:
        config["compile_config"] = training
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": KERAS_VERSION, "date_saved": ""}))
        archive.writestr("config.json", json.dumps(config))
        state = list_state(None if training is None else optimizer, _list_trainable(model, {}))
        slots = {f"optimizer/vars/{i}": x for i, (_, x) in enumerate(state)}
        if optimizer is not None and optimizer.loss_scale.is_dynamic:  # Keras reads the inner optimizer's once more
            slots |= {f"optimizer/inner_optimizer/vars/{i}": x for i, (_, x) in enumerate(state[OUTER_COUNT:])}
        archive.writestr("model.weights.h5", _encode_tree(model, slots))
    write_atomically(Path(os.fspath(path)), target.getvalue())


def write_h5_weights(path: StrPath, model: Any) -> None:
    """Write the weights alone, as ``.weights.h5`` of Keras 3."""
    TopologyWriter(WRITES_KERAS).describe_model(model)  # raises an error for a layer that Keras does not have
    write_atomically(Path(os.fspath(path)), _encode_tree(model, {}))


def _encode_tree(model: Any, slots: dict[str, Array]) -> bytes:
    """Return the content of ``model.weights.h5``: the weights of a model by their paths, and an optimizer's slots."""
    # Of this layer alone Keras keeps the underscores of attributes.
    spell = partial(re.sub, r"(grouped_query_attention\w*)/(\w+_dense)/", r"\1/_\2/")
    paths = {spell(path): v for path, v in _iterate_paths(model, "", {}, set())}
    return encode_hdf5({path: v.numpy() for path, v in paths.items()} | slots, {})


def _name_weights(name: str, layer: Any) -> dict[str, Array]:
    """Return the weights of a layer by their names in an ``.h5`` file, the trainable ones first."""
    places = sorted(find_places(layer), key=lambda place: not place.variable.trainable)
    return {"/".join([name, *(one[0] for one in p.layers), p.name]): p.variable.numpy() for p in places}


def write_h5(path: StrPath, model: Any, training: Json = None, optimizer: Optimizer | None = None) -> None:
    """Write a model as an ``.h5`` file: the config as text, weights layer by layer, the optimizer's state."""
    writer = TopologyWriter(WRITES_KERAS)
    config = writer.describe_model(model)
    top = {"keras_version": KERAS_VERSION, "backend": "pullback", "model_config": json.dumps(config)}
    if training is not None:
        settings = {key: x for key, x in training.items() if key != "optimizer"}
        top["training_config"] = json.dumps(settings | {"optimizer_config": training["optimizer"]})
    attributes: dict[str, dict[str, Any]] = {"": top}
    arrays: dict[str, Array] = {}
    layers = [(writer.names[id(part)], part) for _, part in model.parts()]
    attributes["model_weights"] = {"layer_names": [name for name, _ in layers]}
    for name, layer in layers:
        weights = _name_weights(name, layer)
        attributes[f"model_weights/{name}"] = {"weight_names": [*weights]}
        arrays |= {f"model_weights/{name}/{weight}": x for weight, x in weights.items()}
    state = list_state(None if training is None else optimizer, _list_trainable(model, {}))
    if optimizer is not None and state:
        names = [f"{optimizer.name}/{name}" for name, _ in state]
        attributes[STATE_GROUP] = {"weight_names": names}
        arrays |= {f"{STATE_GROUP}/{name}": x for name, (_, x) in zip(names, state, strict=True)}
    write_atomically(Path(os.fspath(path)), encode_hdf5(arrays, attributes))
