"""The formats of model files: recognized by the first bytes of a file, or by the ending of the name to write to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from warnings import warn

from pullback.errors import ArgumentError, CheckpointError
from pullback.train.io.hdf5 import MAGIC
from pullback.train.io.keras_files import (
    read_archive,
    read_archive_weights,
    read_h5,
    read_h5_weights,
    write_archive,
    write_h5,
    write_h5_weights,
)
from pullback.train.io.model_json import read_model_json, read_tfjs_weights, write_model_json, write_tfjs_weights
from pullback.train.io.saving import StrPath, load, save, skip_mismatches
from pullback.train.io.topology import Builder
from pullback.train.io.torch_names import ModuleMap, load_torch_weights, save_torch_weights
from pullback.train.io.training_config import CompileSettings, OptimizerState, describe_training, read_training
from pullback.train.optim.step import Optimizer

BY_SUFFIX = {".keras": "keras", ".h5": "h5", ".json": "json"}  # of a file whose first bytes tell nothing


class ReadModel(NamedTuple):
    """A model from a file, and what it was compiled with and the optimizer's state, if the file has them."""

    model: Any
    settings: CompileSettings | None
    state: OptimizerState | None


def find_format(path: StrPath) -> str:
    """Return the format of a file that exists: "json", "keras", "h5" or "safetensors"."""
    file_path = Path(os.fspath(path))
    if file_path.is_dir():
        return "json"
    if not file_path.is_file():
        raise FileNotFoundError(f"load: there is no file {os.fspath(path)!r}.")
    with file_path.open("rb") as file:
        first = file.read(16)
    if first.startswith(b"PK\x03\x04"):
        return "keras"
    if first.startswith(MAGIC):
        return "h5"
    if first.lstrip()[:1] in (b"{", b"[") and file_path.suffix != ".safetensors":
        return "json"
    return "safetensors" if first[8:9] == b"{" else BY_SUFFIX.get(file_path.suffix, "safetensors")


def read_layers_model(path: StrPath, builder: Builder, compiles: bool) -> ReadModel:
    """Return the model of a file of Keras or TensorFlow.js, and what it was compiled with."""
    where = os.path.basename(os.fspath(path))
    readers = {"json": read_model_json, "keras": read_archive, "h5": read_h5}
    model, training, state = readers[find_format(path)](path, builder)
    return ReadModel(model, read_training(training, where) if compiles else None, state)


def write_layers_model(
    path: StrPath, model: Any, optimizer: Optimizer | None, arguments: Mapping[str, Any] | None
) -> bool:
    """Write a model in the format of another library, if the path ends like one; return whether it does.

    ``arguments`` are those of ``compile`` by name; they are written if the library has them.
    """
    file_path = Path(os.fspath(path))
    if file_path.suffix == ".json" or file_path.is_dir() or os.fspath(path).endswith(("/", os.sep)):
        write_model_json(path, model, describe_training(optimizer, _list_by_output(model, arguments), False))
    elif file_path.suffix == ".keras":
        write_archive(path, model, describe_training(optimizer, arguments, True), optimizer)
    elif file_path.suffix in (".h5", ".hdf5"):
        write_h5(path, model, describe_training(optimizer, arguments, True), optimizer)
    else:
        check_suffix("model.save", file_path.suffix, (".safetensors", ".keras", ".h5", ".hdf5", ".json"))
        return False
    return True


def check_suffix(subject: str, suffix: str, known: Sequence[str]) -> None:
    """Raise an error if a path ends in a suffix that stands for no format; none at all stands for safetensors."""
    if suffix and suffix not in known:
        raise ArgumentError(
            f"{subject}: the path ends in {suffix!r}, which is no known format. Known are {', '.join(known)}."
        )


def _list_by_output(model: Any, arguments: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return losses and metrics in the order of a model's outputs: TensorFlow.js has other names for them."""
    names = model.output_names
    if arguments is None or names is None:
        return arguments
    return {
        key: [x.get(name, [] if "metrics" in key else None) for name in names]
        if isinstance(x, Mapping) and "class_name" not in x
        else x
        for key, x in arguments.items()
    }


def read_weights(path: StrPath, model: Any, modules: ModuleMap | None = None, skips_mismatch: bool = False) -> None:
    """Load the weights of a file into a model that has its variables; ``modules`` names those of PyTorch.

    With ``skips_mismatch``, those that do not fit are left out, with a warning.
    """
    if not model.variables:
        raise CheckpointError(f"load_weights: {model.name} has no variables yet: build it, or call it once.")
    if skips_mismatch:
        with skip_mismatches() as skipped:
            read_weights(path, model, modules)
        if skipped:
            where = os.path.basename(os.fspath(path))
            warn(f"load_weights: {where}: left out what does not fit: {' '.join(skipped)}", stacklevel=4)
        return
    kind = find_format(path)
    if modules is not None:
        load_torch_weights(path, model, modules)
    elif kind == "json":
        read_tfjs_weights(path, model)
    elif kind == "h5":
        read_h5_weights(path, model)
    elif kind == "keras":
        read_archive_weights(path, model)
    else:
        load(path, into=model)


def write_weights(path: StrPath, model: Any, modules: ModuleMap | None = None) -> None:
    """Write the weights of a model alone: for Keras if the path ends in .h5, for TensorFlow.js if in .json.

    With ``modules``, which names those of PyTorch, as a state dict of PyTorch.
    """
    suffix = Path(os.fspath(path)).suffix
    if modules is not None:
        save_torch_weights(path, model, modules)
    elif suffix in (".h5", ".hdf5"):
        write_h5_weights(path, model)
    elif suffix == ".json":
        write_tfjs_weights(path, model)
    else:
        check_suffix("model.save_weights", suffix, (".safetensors", ".h5", ".hdf5", ".json"))
        save(path, model)
