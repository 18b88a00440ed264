"""TensorFlow.js's files of weights: a manifest in JSON, and shards of bytes beside it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pullback.errors import CheckpointError
from pullback.train.io.saving import write_atomically
from pullback.typing import Array

Json = Any  # what json.loads returns
DTYPES = {"float32": "<f4", "int32": "<i4", "uint8": "u1", "bool": "?", "float16": "<f2", "complex64": "<c8"}
QUANTIZED = {"uint8": "u1", "uint16": "<u2", "float16": "<f2"}
LARGEST_JSON = 1 << 28  # bytes: a topology of a hundred thousand layers is smaller
SHARD = 4 << 20  # bytes, as the converter of TensorFlow.js makes them: browsers cache files of this size


class Weight(NamedTuple):
    """A weight as the manifest has it: its name, shape and dtype, and how its numbers were made small."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    stored: np.dtype[Any]
    scale: float | None
    minimum: float
    group: str

    @property
    def length(self) -> int:
        """The number of bytes in the shards."""
        return math.prod(self.shape) * self.stored.itemsize


def read_json(path: Path, where: str) -> Json:
    """Return the data of a JSON file, unless it is too large, too deep or no JSON."""
    if path.stat().st_size > LARGEST_JSON:
        raise CheckpointError(f"load: {where} is JSON of more than {LARGEST_JSON >> 20} MB, which no model has.")
    return parse_json(path.read_bytes(), where)


def parse_json(text: bytes | str, where: str) -> Json:
    """Return the data of JSON text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise CheckpointError(f"load: {where} has JSON that is nested too deeply.") from None
    except ValueError as error:
        raise CheckpointError(f"load: {where} is not JSON ({error}). It was cut short or is something else.") from None


# ---- read


def read_weights(manifest: Json, folder: Path, where: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the weights of a manifest by name, and those of the optimizer; shards are files in the folder."""
    if not isinstance(manifest, list) or not all(isinstance(group, dict) for group in manifest):
        raise CheckpointError(f"load: {where} has no manifest of weights.")
    groups = [_read_group(group, folder, where) for group in manifest]
    found: dict[str, dict[str, Array]] = {"model": {}, "optimizer": {}}
    for weights, paths in groups:
        data = b"".join(path.read_bytes() for path in paths)
        at = 0
        for weight in weights:
            kept = found["optimizer" if weight.group == "optimizer" else "model"]
            if weight.name in kept:
                raise CheckpointError(f"load: {where} has two weights called {weight.name!r}.")
            kept[weight.name] = _decode(weight, data[at : at + weight.length])
            at += weight.length
    return found["model"], found["optimizer"]


def _read_group(group: Mapping[str, Json], folder: Path, where: str) -> tuple[list[Weight], list[Path]]:
    """Return the weights and the shards of a group, after checking that the files are there and have that length."""
    listed, names = group.get("weights"), group.get("paths")
    if not isinstance(listed, list) or not isinstance(names, list):
        raise CheckpointError(f"load: {where} has a group of weights without a list of weights and of paths.")
    weights = [_read_weight(data, where) for data in listed]
    paths = [_find_shard(name, folder, where) for name in names]
    available, needed = sum(path.stat().st_size for path in paths), sum(weight.length for weight in weights)
    if available != needed:
        raise CheckpointError(
            f"load: {where} needs {needed} bytes from {', '.join(map(str, names))}, which have {available}. "
            "A shard was cut short, or the manifest is another file's."
        )
    return weights, paths


def _find_shard(name: Json, folder: Path, where: str) -> Path:
    """Return the path of a shard, which must be a file in the folder of the model or below it."""
    parts = Path(name).parts if isinstance(name, str) else ()
    inside = parts and "\\" not in name and "\0" not in name and ".." not in parts and not Path(name).is_absolute()
    path = folder.joinpath(*parts) if inside else folder
    if not inside or not path.resolve().is_relative_to(folder.resolve()):
        raise CheckpointError(f"load: {where} names the shard {name!r}, which is not a file in its folder.")
    if not path.is_file():
        raise CheckpointError(f"load: {where} needs the shard {name!r}, which is not in its folder.")
    return path


def _read_weight(data: Json, where: str) -> Weight:
    """Return an entry of a manifest after checking it."""
    if not isinstance(data, dict):
        raise CheckpointError(f"load: {where} has a weight {data!r}, expected a name, a shape and a dtype.")
    name, shape, dtype = data.get("name"), data.get("shape"), data.get("dtype")
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in DTYPES or not _is_shape(shape):
        raise CheckpointError(f"load: {where} has a weight {name!r} of shape {shape!r} and dtype {dtype!r}.")
    weight = Weight(name, tuple(shape or ()), dtype, np.dtype(DTYPES[dtype]), None, 0.0, str(data.get("group")))
    quantization = data.get("quantization")
    return weight if quantization is None else _quantize(weight, quantization, where)


def _is_shape(data: Json) -> bool:
    return isinstance(data, list) and len(data) <= 32 and all(type(n) is int and 0 <= n < 2**40 for n in data)


def _quantize(weight: Weight, data: Json, where: str) -> Weight:
    """Return a weight whose numbers are stored as small integers or halves, as the manifest describes."""
    small = data.get("dtype") if isinstance(data, dict) else None
    scale, minimum = (data.get("scale"), data.get("min")) if small else (None, None)
    is_affine = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (scale, minimum))
    if small == "float16":
        return weight._replace(stored=np.dtype(QUANTIZED[small]))
    if small not in QUANTIZED or not is_affine:
        raise CheckpointError(f"load: {where} has a weight {weight.name!r} with the quantization {data!r}.")
    return weight._replace(stored=np.dtype(QUANTIZED[small]), scale=scale, minimum=minimum or 0.0)


def _decode(weight: Weight, data: bytes) -> Array:
    """Return the numbers of a weight; quantized ones are ``scale * n + minimum``."""
    stored = np.frombuffer(data, weight.stored).reshape(weight.shape)
    dtype = np.dtype(DTYPES[weight.dtype]).newbyteorder("=")
    if weight.scale is None:
        return stored.astype(dtype)
    decoded = stored.astype(np.float64) * weight.scale + weight.minimum  # in doubles, as JavaScript does
    return np.round(decoded).astype(dtype) if dtype.kind in "iu" else decoded.astype(dtype)


# ---- write


def write_weights(weights: Mapping[str, Array], folder: Path, stem: str) -> list[dict[str, Any]]:
    """Write weights as shards ``stem.weights.bin`` into a folder; return the manifest."""
    entries, parts = [], []
    for name, x in weights.items():
        dtype = "float32" if x.dtype.kind == "f" else "bool" if x.dtype.kind == "b" else "int32"
        parts.append(np.ascontiguousarray(x, DTYPES[dtype]).tobytes())
        entries.append({"name": name, "shape": list(x.shape), "dtype": dtype})
    data = b"".join(parts)
    count = max(1, -(-len(data) // SHARD))
    names = [f"{stem}.weights.bin"] if count == 1 else [f"{stem}.weights-{i + 1}of{count}.bin" for i in range(count)]
    for i, name in enumerate(names):
        write_atomically(folder / name, data[i * SHARD : (i + 1) * SHARD])
    return [{"paths": names, "weights": entries}]


def as_folder(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return the folder and the name of the JSON file of a path: of the file itself, or of its folder."""
    folder = Path(os.fspath(path))
    return (folder.parent, folder.name) if folder.suffix == ".json" else (folder, "model.json")
